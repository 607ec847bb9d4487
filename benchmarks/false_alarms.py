"""Count how often the auditor accuses a mechanism that just keeps its claim.

Run ``python -m benchmarks.false_alarms`` from the repository's root. The table is the same for the same options,
whatever the number of jobs.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy import stats

from auditor.audits.adversaries.game import Game, run_game
from auditor.audits.adversaries.packing import Packing
from auditor.audits.context import Question
from auditor.audits.privacy_loop import Settings
from auditor.audits.self_reported.checks import check_statements
from auditor.datasets import Pair
from auditor.privacy.exact import GaussianCurve
from auditor.privacy.guarantees import ApproxDP, Guarantee, PureDP
from auditor.results import Verdict
from benchmarks.families import ALPHA, EXTREMES, FAMILIES, STOPS, Outcome, Telling, trial

#: Confidence of the upper bounds on the rates.
CONFIDENCE = 0.99
#: What is audited.
ROWS = (*FAMILIES, *EXTREMES)
#: Audits in one piece of work: small enough to keep all workers busy to the end, arbitrary otherwise.
_BATCH = 20


#: Columns of the tables of a packing: their number, 2^2000, is beyond what a double holds.
_COLUMNS = 2_000


def packing(guarantee: Guarantee, rows: int, probability: float) -> Callable[[int], Outcome]:
    """Play games of packing with `_COLUMNS` columns, against a target that wins with the given probability."""

    def once(seed: int) -> Outcome:
        settings = Settings(alpha=ALPHA, draws=400, stop="budget", seed=seed)
        found = run_game(Game(Telling(probability), Packing(rows, _COLUMNS)), guarantee, settings, Question())
        above = found.lower_bound is None or found.lower_bound > guarantee.level
        return Outcome(found.verdict in (Verdict.VIOLATION, Verdict.DEVIATION, Verdict.ERROR), above)

    return once


def accountant(seed: int) -> Outcome:
    """Check the figure of a correct accountant: Gaussian steps, of which all rows but one in 10^13 take part.

    The exact level is that of the unsampled steps, to more digits than a double holds.
    """
    rng = np.random.default_rng(seed)
    noise, steps = math.exp(rng.uniform(math.log(0.8), math.log(30.0))), int(math.exp(rng.uniform(0, math.log(400))))
    delta = 10.0 ** rng.uniform(-15, -9)
    event = {"noise_multiplier": noise, "count": steps, **({"sampling_probability": 1 - 1e-13} if seed % 4 else {})}
    exact = GaussianCurve(math.sqrt(steps) / noise).epsilon(delta)
    stated = {"accountant": {"events": [{"gaussian": event}], "epsilon": exact, "delta": delta}}
    checks = check_statements(stated, ApproxDP(exact, delta), [Pair(0, 1)])
    return Outcome(any(check.passed is False for check in checks), False)


@dataclass(frozen=True)
class Extreme:
    """Something other than events that is judged, at an unusual size: name, claim and one audit by its seed."""

    name: str
    claim: str
    once: Callable[[int], Outcome]


#: By this level 2 % of the games may be won; a target that wins less often by a part of 2 % attains it.
_WON = 0.02
_MANY = PureDP((math.log(_WON) + _COLUMNS * math.log(2)) / 100)
SIZES = (
    Extreme("accountant at a delta of 1e-9 to 1e-15", "ε and δ, exact", accountant),
    Extreme(f"packing with {_COLUMNS:,} columns, 100 rows", str(_MANY), packing(_MANY, 100, _WON / (1 + _WON))),
    Extreme(
        f"packing with {_COLUMNS:,} columns, 1 row",
        str(ApproxDP(1.0, 0.1)),
        packing(ApproxDP(1.0, 0.1), 1, 0.1),
    ),
)


def upper_bound(count: int, audits: int) -> float:
    """One-sided Clopper-Pearson upper bound on a rate, at `CONFIDENCE`."""
    return 1.0 if count == audits else float(stats.beta.ppf(CONFIDENCE, count + 1, audits - count))


def batch(family: int, stop: str, seeds: Sequence[int], draws_a_side: int) -> list[Outcome]:
    """Audits of one family with the given seeds."""
    return [trial(ROWS[family], stop, seed, draws_a_side) for seed in seeds]


def seeds_of(family: int, rule: int, audits: int) -> list[int]:
    """Seeds of one family by one stopping rule, which the other has not; those beyond ``audits`` are interleaved."""
    n = math.ceil(ROWS[family].share * audits)
    return [rule * audits + k if k < audits else len(STOPS) * k + rule for k in range(n)]


def outcomes_at_sizes(audits: int, jobs: int) -> list[list[Outcome]]:
    """Audits of each of `SIZES`."""
    parallel = Parallel(n_jobs=jobs)
    return [parallel(delayed(one.once)(seed) for seed in range(audits)) for one in SIZES]


def outcomes(audits: int, draws_a_side: int, jobs: int) -> dict[tuple[int, str], list[Outcome]]:
    """All audits, by index of the family and stopping rule; the two rules have seeds of their own."""
    work = [
        (family, stop, seeds_of(family, rule, audits)[start : start + _BATCH])
        for family in range(len(ROWS))
        for rule, stop in enumerate(STOPS)
        for start in range(0, math.ceil(ROWS[family].share * audits), _BATCH)
    ]
    done = Parallel(n_jobs=jobs)(delayed(batch)(family, stop, seeds, draws_a_side) for family, stop, seeds in work)
    found: dict[tuple[int, str], list[Outcome]] = {}
    for (family, stop, _), results in zip(work, done, strict=True):
        found.setdefault((family, stop), []).extend(results)
    return found


def table(found: dict[tuple[int, str], list[Outcome]], at_sizes: Sequence[Sequence[Outcome]]) -> tuple[list[str], bool]:
    """Markdown rows, and whether every rate is at most alpha with confidence."""
    rows = [
        "| family | claim | stop | audits | false alarms | rate | 99 % upper bound | bounds above exact "
        "| 99 % upper bound | at most 5 % |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    made = [row(ROWS[k].name, str(ROWS[k].guarantee), stop, results) for (k, stop), results in found.items()]
    made += [row(one.name, one.claim, "", results) for one, results in zip(SIZES, at_sizes, strict=True)]
    return rows + [text for text, _ in made], all(good for _, good in made)


def row(name: str, claim: str, stop: str, results: Sequence[Outcome]) -> tuple[str, bool]:
    """One Markdown row, and whether its rates are at most alpha with confidence."""
    n, alarms, above = len(results), sum(r.alarm for r in results), sum(r.bound_above for r in results)
    bounds = upper_bound(alarms, n), upper_bound(above, n)
    good = max(bounds) <= ALPHA
    return (
        f"| {name} | {claim} | {stop} | {n} | {alarms} | {alarms / n:.4f} | {bounds[0]:.4f} "
        f"| {above} | {bounds[1]:.4f} | {'yes' if good else 'not shown'} |"
    ), good


def document(
    found: dict[tuple[int, str], list[Outcome]], at_sizes: Sequence[Sequence[Outcome]], draws_a_side: int
) -> tuple[str, bool]:
    """The report, and whether every rate is at most alpha with confidence."""
    rows, good = table(found, at_sizes)
    text = [
        "# False alarms at zero margin",
        "",
        "Every mechanism here keeps its claim and has no margin: its exact level is the claimed one. Audited at "
        f"alpha = {ALPHA:g} with up to {draws_a_side:,} draws a side, so at most {100 * ALPHA:g} % of the audits may "
        "say `violation`, and at most as many may give a lower bound above the exact level. Upper bounds on the rates "
        "are one-sided Clopper-Pearson bounds at 99 %; `yes` means that both are at most 5 %. In the last rows no "
        "events are learned: an alarm about an accountant is a failed check of a correct figure (sampled steps below a "
        "delta of 1e-10 are not checked), and a packing is a game.",
        "",
        *rows,
        "",
        "Made by `python -m benchmarks.false_alarms`; the families are in `benchmarks/families.py`.",
        "",
    ]
    return "\n".join(text), good


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a rate is not shown to be at most alpha."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.false_alarms", description=__doc__)
    parser.add_argument("--audits", type=int, default=600, help="audits of each family by each stopping rule")
    parser.add_argument("--draws-a-side", type=int, default=100_000, help="budget of one audit")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--out", type=Path, default=Path("reports/false_alarms.md"), help="Markdown file to write")
    options = parser.parse_args(arguments)
    for name in ("audits", "draws_a_side", "jobs"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, got {getattr(options, name)}")
    found = outcomes(options.audits, options.draws_a_side, options.jobs)
    text, good = document(found, outcomes_at_sizes(options.audits, options.jobs), options.draws_a_side)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
