"""Measure what many pairs in play cost: false alarms, draws to a verdict, and the engine's own time.

Run ``python -m benchmarks.many_pairs`` from the repository's root. All tables but that of times are the same for the
same options.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats

from auditor import Pair, PureDP, Verdict
from auditor.audits.context import Question
from auditor.audits.pair_search import keep_affordable
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings, collect_evidence
from auditor.evidence.power import divergence_rate
from auditor.targets.sampler import Sampler
from benchmarks.false_alarms import upper_bound
from benchmarks.families import ALPHA, Family, NullAudit, discrete_laplace, randomised_response, trial

#: Pairs of the crowd, and of smaller ones to compare with.
PAIRS, SIZES = 200, (1, 20, 200)
#: Probability that a rate of alpha gives more alarms than are taken to be explained by it.
_CHANCE = 1e-6
#: Audits in one piece of work; arbitrary.
_BATCH = 10
#: What a leak gives away, far from what the noise reaches.
_LEAKED = -99
#: Level of a test in the tables of draws to a verdict: the default of `auditor.audit`.
_LEVEL = 0.01
#: Searches that know the distributions; they are cheap.
_KNOWN = 101
#: Budgets of slow targets, both sides.
SLOW = (1_000, 2_000, 4_000)
CLAIM = PureDP(1.0)
#: Claimed level of pairs that all show it, the level of the one that does not, and the draws of an attack by default.
TIGHT, ABOVE, PASS_DRAWS = 0.5, 0.6, 400_000

Mechanism = Callable[[Any, int, np.random.Generator], NDArray[np.int64]]


def crowd(pairs: int) -> tuple[Pair, ...]:
    """Pairs that a mechanism tells apart by their number, the second entry; the first differs within a pair."""
    return tuple(Pair(np.array([1, k]), np.array([0, k]), f"pair {k}") for k in range(pairs))


@dataclass(frozen=True)
class DefectOnOnePair:
    """A mechanism of level 1 on all pairs but one.

    Parameters
    ----------
    name : str
        For tables.
    noise : Mechanism
        What it is on the other pairs.
    leak : float
        On the one pair, one dataset gives itself away with this probability: epsilon is infinite. 0: the noise on that
        pair is that of level 2.
    apart : int
        Distance of each pair's outputs, but for the leak, from those of the next pair.
    """

    name: str
    noise: Mechanism
    leak: float = 0.0
    apart: int = 0

    def on(self, where: int) -> Mechanism:
        """The mechanism with its defect on this pair; on none if negative."""

        def mechanism(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
            place = self.apart * int(data[1])
            if int(data[1]) != where:
                return self.noise(data, n, rng) + place
            if self.leak:
                outputs = self.noise(data, n, rng) + place
                return np.where(rng.random(n) < self.leak, _LEAKED, outputs) if data[0] else outputs
            success = -math.expm1(-2.0)
            return int(data[0]) + place + rng.geometric(success, n) - rng.geometric(success, n)

        return mechanism

    @property
    def event(self) -> tuple[float, float]:
        """Probabilities of the best event on the one pair: the leak, or an output above 0."""
        return (self.leak, 0.0) if self.leak else (1 / (1 + math.exp(-2.0)), 1 / (1 + math.exp(2.0)))

    def log_ratio(self, x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.float64]:
        """Logarithm of how much likelier outputs of both datasets are on the one pair than on the others.

        ``apart`` is 0.
        """
        if self.leak:
            return np.where(x == _LEAKED, math.inf, math.log1p(-self.leak)) + np.zeros(len(y))
        # Two-sided geometric noise k has the probability tanh(level / 2) e^(-level |k|).
        return 2 * math.log(math.tanh(1.0) / math.tanh(0.5)) - np.abs(x - 1) - np.abs(y)


DEFECTS = (
    DefectOnOnePair("level 2, claimed 1", discrete_laplace),
    DefectOnOnePair("a leak with probability 0.5", discrete_laplace, 0.5),
    DefectOnOnePair("a leak with probability 0.1", discrete_laplace, 0.1),
    DefectOnOnePair("a leak with probability 0.1, coarse outputs", randomised_response, 0.1),
    DefectOnOnePair("level 2, pairs share no outputs", discrete_laplace, apart=3),
    DefectOnOnePair("a leak with probability 0.1, pairs share no outputs", discrete_laplace, 0.1, 3),
)


#: Too rare for the table of medians: how many of `--rare` audits find it on one of all pairs.
RARE, RARE_DRAWS = DefectOnOnePair("a leak with probability 0.01", discrete_laplace, 0.01), 400_000

#: Mechanisms whose exact level on every pair of a crowd is the claimed one. Where pairs share no outputs, each has
#: exclusive ones, see `auditor.audits.pair_search.ExclusiveOutputs`.
NULLS = (
    Family(f"randomised response, {PAIRS} pairs", randomised_response, CLAIM, crowd(PAIRS)),
    Family(f"discrete Laplace, {PAIRS} pairs", discrete_laplace, CLAIM, crowd(PAIRS)),
    Family("discrete Laplace, 20 pairs that share no outputs", DEFECTS[4].on(-1), CLAIM, crowd(20)),
)


class PairSearches(NamedTuple):
    """Audits that were to find a defect."""

    found: int
    audits: int
    draws: int
    seconds: float


def search(
    defect: DefectOnOnePair,
    pairs: int,
    places: Sequence[int],
    draws: int,
    first_seed: int = 0,
    even: bool = False,
) -> PairSearches:
    """Audit a mechanism with a defect on one pair, until the verdict or the end of the budget; once for each place.

    Parameters
    ----------
    defect : DefectOnOnePair
    pairs : int
        Pairs in play.
    places : sequence of int
        Pair with the defect, for each audit.
    draws : int
        Budget of one audit, both sides.
    first_seed : int
        Seed of the first audit; each has the next one.
    even : bool
        The pairs are in the order of their promise, as those of an attack, see `Settings`.

    Returns
    -------
    PairSearches
        ``draws`` and ``seconds`` are medians; an audit that finds nothing counts with its budget.
    """
    found, used, took = 0, [], []
    for seed, where in enumerate(places, first_seed):
        settings = Settings(alpha=_LEVEL, draws=draws, seed=seed, even=even)
        begun = time.process_time()
        evidence = collect_evidence(Sampler(defect.on(where), seed, defect.name), CLAIM, crowd(pairs), settings)
        took.append(time.process_time() - begun)
        used.append(2 * evidence.n)
        found += evidence.refuted(_LEVEL)
    return PairSearches(found, len(places), round(statistics.median(used)), statistics.median(took))


def search_knowing_distributions(defect: DefectOnOnePair, pairs: int, where: int, seed: int) -> int:
    """Draws, both sides, of a search that knows the distributions on both kinds of pairs.

    It always draws from the pair that is likeliest to be the one with the defect, the first of equal ones, until that
    pair has had the draws of the single-event oracle. So each pair before it is drawn from until its likelihood ratio
    is below the least that the pair with the defect comes to, each later one until it is not above.
    """
    p, q = np.array(defect.event)
    draws = math.ceil(math.log(1 / _LEVEL) / float(divergence_rate(p, q, CLAIM, CLAIM.level)))
    rng, mechanism = np.random.default_rng(seed), replace(defect, apart=0).on(where)
    size = 2 * draws + 1_000  # enough for all but the rarest of searches

    def path(k: int) -> NDArray[np.float64]:
        x, y = (mechanism(np.array([bit, k]), size, rng) for bit in (1, 0))
        return np.concatenate([[0.0], np.cumsum(defect.log_ratio(x, y))])

    least = float(path(where)[:draws].min())
    for k in range(pairs):
        if k != where:
            ended = np.flatnonzero(path(k) < least if k < where else path(k) <= least)
            draws += int(ended[0]) if len(ended) else size
    return 2 * draws


def spread(pairs: int, audits: int) -> list[int]:
    """Places all over the list, in an order that has nothing to do with the seeds."""
    return [(2 * k + 1) * pairs // (2 * audits) for k in range(audits)]


def batch(null: int, seeds: Sequence[int], draws_a_side: int) -> list[NullAudit]:
    """Audits of one mechanism that keeps its claim."""
    return [trial(NULLS[null], "budget", seed, draws_a_side) for seed in seeds]


def alarm_rows(audits: int, draws_a_side: int, jobs: int) -> tuple[list[str], bool]:
    """Table of false alarms, and whether none is more than a rate of alpha explains.

    The table is the same whatever the number of jobs.
    """
    rows = [
        "| mechanism | audits | false alarms | 99 % upper bound | bounds above exact | 99 % upper bound "
        "| at most 5 % |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    explained = True
    most = int(stats.binom.isf(_CHANCE, audits, ALPHA))
    for number, null in enumerate(NULLS):
        work = [range(k, min(k + _BATCH, audits)) for k in range(0, audits, _BATCH)]
        done = Parallel(n_jobs=jobs)(delayed(batch)(number, seeds, draws_a_side) for seeds in work)
        outcomes = [outcome for part in done for outcome in part]
        alarms, above = sum(o.alarm for o in outcomes), sum(o.bound_above for o in outcomes)
        bounds = upper_bound(alarms, audits), upper_bound(above, audits)
        explained = explained and max(alarms, above) <= most
        rows.append(
            f"| {null.name} | {audits} | {alarms} | {bounds[0]:.4f} | {above} | {bounds[1]:.4f} "
            f"| {'yes' if max(bounds) <= ALPHA else 'not shown'} |"
        )
    return rows, explained


def verdict_rows(audits: int, draws: int) -> tuple[list[str], list[str]]:
    """Tables of draws to a verdict, and of the seconds that they took."""
    rows = [
        "| defect | pairs | on the first pair | anywhere | times one pair | distributions known |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    times = ["| defect | pairs | seconds to the verdict |", "|---|---:|---:|"]
    for defect in DEFECTS:
        alone = search(defect, 1, [0] * audits, draws)
        for pairs in SIZES:
            first = alone if pairs == 1 else search(defect, pairs, [0] * audits, draws)
            other = first if pairs == 1 else search(defect, pairs, spread(pairs, audits), draws)
            known = [
                search_knowing_distributions(defect, pairs, k, seed) for seed, k in enumerate(spread(pairs, _KNOWN))
            ]
            rows.append(
                f"| {defect.name} | {pairs} | {_cell(first)} | {_cell(other)} | {other.draws / alone.draws:.1f} "
                f"| {statistics.median(known):,.0f} |"
            )
            times.append(f"| {defect.name} | {pairs} | {other.seconds:.2f} |")
    return rows, times


def rare_row(audits: int, jobs: int) -> str:
    """What audits of `RARE` on one of all pairs find, in a sentence; the same whatever the number of jobs."""
    work = [(seed, [where]) for seed, where in enumerate(spread(PAIRS, audits))]
    done = Parallel(n_jobs=jobs)(delayed(search)(RARE, PAIRS, where, RARE_DRAWS, seed) for seed, where in work)
    found, used = sum(result.found for result in done), [result.draws for result in done]
    return (
        f"{RARE.name.capitalize()} anywhere on {PAIRS} pairs is found within {RARE_DRAWS:,} draws in {found} of "
        f"{audits} audits, with a median of {statistics.median(used):,.0f}."
    )


def slow_rows(audits: int) -> list[str]:
    """Table of what few draws find, on lists that are cut to what they can look at, and on all pairs."""
    rows = ["| draws | pairs | defect | found, on one of the first 15 pairs |", "|---:|---:|---|---:|"]
    for draws in SLOW:
        for pairs in (len(keep_affordable(crowd(PAIRS), draws)), PAIRS):
            for defect in DEFECTS[:2]:
                result = search(defect, pairs, spread(15, audits), draws, even=True)
                rows.append(f"| {draws:,} | {pairs} | {defect.name} | {result.found} of {audits} |")
    return rows


def audit_tight_pairs(pairs: int, seed: int, where: int) -> tuple[Verdict, float | None]:
    """Verdict of an attack on pairs that show `TIGHT` exactly, but for one, and what it resolves."""

    def mechanism(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        success = -math.expm1(-(ABOVE if int(data[1]) == where else TIGHT))
        return int(data[0]) + rng.geometric(success, n) - rng.geometric(success, n)

    settings = Settings(alpha=_LEVEL, draws=PASS_DRAWS, seed=seed, even=True)
    result = run_audit(mechanism, PureDP(TIGHT), crowd(pairs), settings, Question("passes"))
    return result.verdict, result.resolves


def pass_rows(audits: int, jobs: int) -> list[str]:
    """Table of what attacks on equally tight pairs come to; the same whatever the number of jobs."""
    rows = [
        "| pairs | one of them shows | consistent | inconclusive | violation | passes resolve |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for pairs, defect in ((20, False), (64, False), (PAIRS, False), (64, True)):
        places = spread(pairs, audits) if defect else [-1] * audits
        done = Parallel(n_jobs=jobs)(delayed(audit_tight_pairs)(pairs, *one) for one in enumerate(places))
        verdicts = Counter(verdict for verdict, _ in done)
        resolved = [resolves for verdict, resolves in done if verdict == Verdict.CONSISTENT and resolves is not None]
        counts = " | ".join(
            str(verdicts[kind]) for kind in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE, Verdict.VIOLATION)
        )
        worst = f"at most {max(resolved):.2f}" if resolved else "–"
        rows.append(f"| {pairs} | {ABOVE if defect else TIGHT:g} | {counts} | {worst} |")
    return rows


def cost_rows(draws: int) -> list[str]:
    """Table of the engine's own seconds and memory, on a mechanism that keeps its claim."""
    rows = ["| pairs | draws | chunks | seconds | microseconds a draw | MB kept |", "|---:|---:|---:|---:|---:|---:|"]
    for pairs in SIZES:
        took = []
        for traced in (False, True):
            if traced:
                tracemalloc.start()
            begun = time.process_time()
            evidence = collect_evidence(
                Sampler(discrete_laplace, 0, "cost"), CLAIM, crowd(pairs), Settings(alpha=_LEVEL, draws=draws)
            )
            took.append(time.process_time() - begun)
        kept = tracemalloc.get_traced_memory()[0] / 1e6
        tracemalloc.stop()
        rows.append(
            f"| {pairs} | {draws:,} | {len(evidence.chunks):,} | {took[0]:.1f} | {took[0] / draws * 1e6:.1f} "
            f"| {kept:.0f} |"
        )
    return rows


def _cell(result: PairSearches) -> str:
    missed = "" if result.found == result.audits else f" ({result.found} of {result.audits} found)"
    return f"{result.draws:,}{missed}"


def document(options: argparse.Namespace) -> tuple[str, bool]:
    """The report, and whether no rate of false alarms is more than alpha explains."""
    alarms, explained = alarm_rows(options.audits, options.draws_a_side, options.jobs)
    verdicts, times = verdict_rows(options.searches, options.draws)
    text = [
        "# Many pairs in play",
        "",
        "One budget is spent on all pairs of an audit, and their draws make one supermartingale, so that nothing is "
        "corrected for the number of pairs. Every mechanism here tells its pairs apart by a number.",
        "",
        "## False alarms",
        "",
        f"All pairs are at the claimed level exactly. Audited at alpha = {ALPHA:g} with {options.draws_a_side:,} "
        "draws a side, to the end of the budget; otherwise as in `false_alarms.md`. With 6,400 all 200 pairs have been "
        "looked at. Where pairs share no outputs, each has some that no other gives, which are looked for. `yes` means "
        "that both upper bounds are at most 5 %; for a rate of 2.5 %, which randomised response has with one pair, "
        "some 400 to 1,000 audits are needed for that (`--audits`).",
        "",
        *alarms,
        "",
        "## Draws to a verdict",
        "",
        f"Median draws, both sides, until the claim epsilon = 1 is refuted at alpha = {_LEVEL:g}, of "
        f"{options.searches} audits with at most {options.draws:,} draws each; the mechanism breaks its claim on one "
        "pair, and has noise of level 1 exactly on all others. Up to 30 pairs are all looked at first; more are opened "
        "one by one, so that what an early pair shows at once is found as if there were few. The last column is no "
        "auditor: it knows the distributions on the pair with the defect and on the others, draws from the pair that "
        "is likeliest to be the one, and needs for the verdict what the single-event oracle needs; median of "
        f"{_KNOWN} searches. It need not be the best such search.",
        "",
        *verdicts,
        "",
        rare_row(options.rare, options.jobs),
        "",
        "## Slow targets",
        "",
        "A target of 20 milliseconds a draw has some 2,000 draws in a minute beside those of the independence tests. "
        "What they find on a list in the order of promise, as `dpaudit attack` has, that is cut to what they can look "
        "at (`auditor.audits.pair_search.keep_affordable`), and on all pairs.",
        "",
        *slow_rows(options.searches),
        "",
        "## Passes",
        "",
        f"What attacks say of pairs that all show ε = {TIGHT:g} exactly, as is claimed, or of which one shows "
        f"ε = {ABOVE:g}: {options.passes} audits each, of {PASS_DRAWS:,} draws at alpha = {_LEVEL:g}. A pass has to "
        f"resolve ε = {2 * TIGHT:g} on the pair with the most draws; the pairs are equally promising until the last "
        "draws go to one of them (`auditor.audits.pair_search.LastDraws`).",
        "",
        *pass_rows(options.passes, options.jobs),
        "",
        "## Time and memory",
        "",
        "The engine's own, of the last column above, and for a mechanism that keeps its claim (two-sided geometric "
        "noise, level 1) to the end of its budget, with the memory that its learners keep. These figures depend on the "
        "machine.",
        "",
        *times,
        "",
        *cost_rows(options.draws),
        "",
        "Made by `python -m benchmarks.many_pairs`.",
        "",
    ]
    return "\n".join(text), explained


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if there are more false alarms than a rate of alpha explains."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_pairs", description=__doc__)
    parser.add_argument("--audits", type=int, default=400, help="audits of each mechanism that keeps its claim")
    parser.add_argument("--draws-a-side", type=int, default=6_500, help="budget of one of these")
    parser.add_argument("--searches", type=int, default=11, help="audits of each defect")
    parser.add_argument("--rare", type=int, default=100, help="audits of the rarest defect")
    parser.add_argument("--passes", type=int, default=20, help="attacks on each list of equally tight pairs")
    parser.add_argument("--draws", type=int, default=200_000, help="budget of one of these, both sides")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes, but for medians and times")
    parser.add_argument("--out", type=Path, default=Path("reports/many_pairs.md"), help="Markdown file to write")
    options = parser.parse_args(arguments)
    for name in ("audits", "draws_a_side", "searches", "rare", "passes", "draws", "jobs"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, got {getattr(options, name)}")
    text, explained = document(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0 if explained else 1


if __name__ == "__main__":
    raise SystemExit(main())
