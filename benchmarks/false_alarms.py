"""Count how often the auditor accuses a mechanism that just keeps its claim.

Run ``python -m benchmarks.false_alarms`` from the repository's root. The table is the same for the same options,
whatever the number of jobs.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from joblib import Parallel, delayed
from scipy import stats

from benchmarks.families import ALPHA, EXTREMES, FAMILIES, STOPS, Outcome, trial

#: Confidence of the upper bounds on the rates.
CONFIDENCE = 0.99
#: What is audited.
ROWS = (*FAMILIES, *EXTREMES)
#: Audits in one piece of work: small enough to keep all workers busy to the end, arbitrary otherwise.
_BATCH = 20


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


def table(found: dict[tuple[int, str], list[Outcome]]) -> tuple[list[str], bool]:
    """Markdown rows, and whether every rate is at most alpha with confidence."""
    rows = [
        "| family | claim | stop | audits | false alarms | rate | 99 % upper bound | bounds above exact "
        "| 99 % upper bound | at most 5 % |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    all_good = True
    for (index, stop), results in found.items():
        family, n = ROWS[index], len(results)
        alarms, above = sum(r.alarm for r in results), sum(r.bound_above for r in results)
        bounds = upper_bound(alarms, n), upper_bound(above, n)
        good = max(bounds) <= ALPHA
        all_good = all_good and good
        rows.append(
            f"| {family.name} | {family.guarantee} | {stop} | {n} | {alarms} | {alarms / n:.4f} | {bounds[0]:.4f} "
            f"| {above} | {bounds[1]:.4f} | {'yes' if good else 'not shown'} |"
        )
    return rows, all_good


def document(found: dict[tuple[int, str], list[Outcome]], draws_a_side: int) -> tuple[str, bool]:
    """The report, and whether every rate is at most alpha with confidence."""
    rows, good = table(found)
    text = [
        "# False alarms at zero margin",
        "",
        "Every mechanism here keeps its claim and has no margin: its exact level is the claimed one. Audited at "
        f"alpha = {ALPHA:g} with up to {draws_a_side:,} draws a side, so at most {100 * ALPHA:g} % of the audits may "
        "say `violation`, and at most as many may give a lower bound above the exact level. Upper bounds on the rates "
        "are one-sided Clopper-Pearson bounds at 99 %; `yes` means that both are at most 5 %.",
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
    text, good = document(outcomes(options.audits, options.draws_a_side, options.jobs), options.draws_a_side)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
