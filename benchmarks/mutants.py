"""Mutants against the oracle: caught at the catalogue's parameters within five times the draws it needs, or not.

Run as ``python -m benchmarks.mutants [--runs 100] [--jobs 2] [--out reports/mutants.md]``. All mutants of levels L1
and L2 in ``experiments/`` are audited as declared, with nothing told about the event. The oracle knows both
distributions beforehand: ln(1/alpha) over the divergence rate of the whole distribution where the claim is (epsilon,
delta)-DP, of the best single event otherwise (auditor/calibration/oracles.py).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
from scipy import stats

from auditor.audits.privacy_loop import FIRST, SMALLEST, Settings, collect_evidence
from auditor.calibration.oracles import compute_rate
from auditor.claims import Claim, Draft, registry
from auditor.results import Verdict
from auditor.targets.sampler import Sampler
from benchmarks.mutant_distributions import masses_of

ALPHA = 0.01
#: What the requirement allows: caught within so many times the oracle's draws.
FACTOR = 5.0
#: Audits that have to be caught of 100.
WANTED = 0.9
#: An audit that the required budget did not suffice for is followed up to so many times that budget, for the table.
FURTHER = 4
#: Largest budget of one audit, draws a side: the benchmark is to take minutes.
MOST = 50_000
#: Audits in one piece of work; arbitrary, small enough to keep all workers busy to the end.
_BATCH = 25
#: A benign mutant is flagged with probability at most alpha a run; more flags than this have probability 1e-6.
_RARE = 1e-6
#: Rates below this are rounding: the pair satisfies the claim.
_ZERO = 1e-12


@dataclass(frozen=True)
class OracleDraws:
    """Draws a side that an auditor needs who knows both distributions.

    Parameters
    ----------
    draws : float
        Infinite where the pair satisfies the claim.
    kind : str
        "whole distribution" or "single event".
    """

    draws: float
    kind: str


def mutants() -> list[Claim]:
    """Mutants of levels L1 and L2 (parts of mechanisms), in the registry's order."""
    claims = registry.load_claims(["experiments"])
    return [c for c in claims if c.draft.is_mutant and c.draft.level in ("L1", "L2") and c.draft.pairs]


def is_benign(draft: Draft) -> bool:
    """Whether the mutant keeps its claim."""
    return draft.expected == Verdict.CONSISTENT


def oracle(draft: Draft) -> OracleDraws | None:
    """Oracle of a mutant on its first pair; None if the distributions are not known."""
    masses = masses_of(draft)
    if masses is None:
        return None
    nats, kind = compute_rate(masses, draft.privacy_guarantee)
    return OracleDraws(math.log(1 / ALPHA) / nats if nats > _ZERO else math.inf, kind)


def budget(found: OracleDraws | None) -> int:
    """Draws a side that the requirement allows, at least what an audit takes and at most `MOST`."""
    allowed = MOST if found is None or math.isinf(found.draws) else math.floor(FACTOR * found.draws)
    return min(max(allowed, 2 * FIRST), MOST)


def trial(claim: Claim, draws_a_side: int, seed: int) -> float:
    """Draws a side to a verdict, infinite if the budget ends before it.

    This is the part of `auditor.audit` that decides: the verdict is "violation" if and only if the wealth at the
    claimed level reaches 1/alpha. The tests of independence and the bounds are left out, which saves most of the time.
    """
    draft = claim.draft
    if draft.mechanism is None:
        raise ValueError(f"expected a mechanism to draw from, got none in {claim.id}")
    settings = Settings(alpha=ALPHA, draws=2 * draws_a_side, seed=seed, learners=draft.learners)
    evidence = collect_evidence(
        Sampler(draft.mechanism, seed, claim.id), draft.privacy_guarantee, draft.pairs, settings
    )
    return evidence.n if evidence.wealth.best[0] >= math.log(1 / ALPHA) else math.inf


def batch(claim_id: str, budgets: Sequence[int], seeds: Sequence[int]) -> list[float]:
    """Draws a side to a verdict for each seed, with the first of the budgets that suffices."""
    (claim,) = [c for c in mutants() if c.id == claim_id]
    found = []
    for seed in seeds:
        draws = math.inf
        for draws_a_side in budgets:
            draws = min(draws, trial(claim, draws_a_side, seed))
            if math.isfinite(draws):
                break
        found.append(draws)
    return found


def outcomes(work: dict[str, list[int]], runs: int, jobs: int) -> dict[str, list[float]]:
    """All audits, by claim id; the table is the same whatever the number of jobs."""
    pieces = [
        (claim_id, budgets, range(start, min(start + _BATCH, runs)))
        for claim_id, budgets in sorted(work.items(), key=lambda item: -item[1][-1])
        for start in range(0, runs, _BATCH)
    ]
    with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        done = joblib.Parallel(batch_size=1)(joblib.delayed(batch)(*piece) for piece in pieces)
    found: dict[str, list[float]] = {}
    for (claim_id, _, _), results in zip(pieces, done, strict=True):
        found.setdefault(claim_id, []).extend(results)
    return found


def name(claim: Claim) -> str:
    """Entry and case."""
    return f"{claim.entry} {claim.draft.case}"


def true_level(draft: Draft) -> str:
    """Exact level on the pairs, where it is known."""
    level = max((draft.privacy_guarantee.exact_level(c) for c in draft.curves), default=draft.exact_level)
    return "" if level is None else f"{level:.4g}"


def row(claim: Claim, found: OracleDraws | None, draws: Sequence[float]) -> tuple[str, bool | None]:
    """One line of the table of violations, and whether the requirement is met; None if it cannot be judged."""
    start = f"| {name(claim)} | {claim.draft.guarantee} | {true_level(claim.draft)} "
    median, ninety = np.quantile(draws, [0.5, 0.9], method="higher")
    figures = f"| {_draws(median)} | {_draws(ninety)} "
    if found is None or math.isinf(found.draws):
        why = "no distribution known" if found is None else "the pair keeps the claim"
        return f"{start}| {why} {figures}| | {int(np.isfinite(draws).sum())} with {MOST:,} | not judged |", None
    # Only what is within the factor counts, even where the least budget of an audit is larger.
    caught = sum(n <= FACTOR * found.draws for n in draws)
    judged = FACTOR * found.draws <= MOST
    good = caught >= WANTED * len(draws)
    verdict = "yes" if good else "no" if judged else "not judged: budget capped"
    kind = "" if found.kind == "whole distribution" else f" ({found.kind})"
    ratio = f"{_ratio(median, found)} ({_ratio(ninety, found)})"
    line = f"{start}| {found.draws:,.1f}{kind} {figures}| {ratio} | {caught} | {verdict} |"
    return line, good if good or judged else None


def _draws(n: float) -> str:
    return f"{n:,.0f}" if math.isfinite(n) else "not within"


def _ratio(n: float, found: OracleDraws) -> str:
    return f"{n / found.draws:.2f}" if math.isfinite(n) else f"> {FACTOR * FURTHER:g}"


def benign_row(claim: Claim, draws: Sequence[float], most: int) -> tuple[str, bool]:
    """One line of the table of benign mutants."""
    flagged = int(np.isfinite(draws).sum())
    good = flagged <= stats.binom.isf(_RARE, len(draws), ALPHA)
    line = f"| {name(claim)} | {claim.draft.guarantee} | {most:,} | {flagged} | {'yes' if good else 'no'} |"
    return line, bool(good)


def document(runs: int, jobs: int, only: str = "") -> tuple[str, bool]:
    """The report, and whether every mutant that could be judged meets the requirement."""
    claims = [claim for claim in mutants() if only in claim.id]
    oracles = {claim.id: None if is_benign(claim.draft) else oracle(claim.draft) for claim in claims}
    broken = [claim for claim in claims if not is_benign(claim.draft)]
    benign = [claim for claim in claims if is_benign(claim.draft)]
    work = {c.id: sorted({budget(oracles[c.id]), min(FURTHER * budget(oracles[c.id]), MOST)}) for c in broken}
    largest = max((budgets[0] for budgets in work.values()), default=MOST)
    work |= {claim.id: [largest] for claim in benign}
    done = outcomes(work, runs, jobs)
    rows = [row(claim, oracles[claim.id], done[claim.id]) for claim in broken]
    held = [benign_row(claim, done[claim.id], largest) for claim in benign]
    judged = [good for _, good in rows if good is not None]
    text = [
        "# Mutants against the oracle",
        "",
        f"{runs} audits of each mutant, alpha {ALPHA}, nothing told about the event. Draws are draws a side. The "
        f"oracle knows both distributions and bets on all of them: ln(1/alpha) = {math.log(1 / ALPHA):.3f} nats over "
        "the "
        "smallest KL(P || P0) + KL(Q || Q0) among the pairs (P0, Q0) that satisfy the claim; where marked, on the best "
        f"single event only. Wanted: caught within {FACTOR:g} times the oracle's draws in at least {WANTED:.0%} of the "
        f"audits. {sum(judged)} of {len(judged)} mutants meet that.",
        "",
        f"Audits that the budget of {FACTOR:g} times the oracle's draws did not suffice for went on to {FURTHER} times "
        f"it, at most {MOST:,}, so that the quantiles are known. An audit learns from its first {FIRST} draws a side "
        f"and decides after {FIRST + SMALLEST} at the earliest. The true level is the exact level on the declared "
        "pairs.",
        "",
        "| mutant | claimed | true | oracle | median | 90 % quantile | ratio of median (90 %) | caught within "
        f"{FACTOR:g} times | met |",
        "|---|---|---|---:|---:|---:|---:|---:|---|",
        *[line for line, _ in rows],
        "",
        "## Benign variants",
        "",
        f"They keep their claims and are audited with the largest of the budgets above; more than "
        f"{stats.binom.isf(_RARE, runs, ALPHA):.0f} flags of {runs} would have probability {_RARE:g} at most.",
        "",
        "| variant | claimed | draws a side | flagged | held |",
        "|---|---|---:|---:|---|",
        *[line for line, _ in held],
        "",
        "Made by `python -m benchmarks.mutants`; the distributions are in `benchmarks/mutant_distributions.py`.",
        "",
    ]
    return "\n".join(text), all(judged) and all(good for _, good in held)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a mutant misses the requirement."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="audits of each mutant")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--only", default="", help="claims whose id contains this")
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    options = parser.parse_args(arguments)
    for option in ("runs", "jobs"):
        if getattr(options, option) < 1:
            parser.error(f"--{option} must be at least 1, got {getattr(options, option)}")
    text, good = document(options.runs, options.jobs, options.only)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
