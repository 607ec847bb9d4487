"""Conformity: how often a correct sampler is accused, and how many draws a wrong one takes to be found.

Run ``python -m benchmarks.conformity`` from the repository's root. The table is the same for the same options, whatever
the number of jobs.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from benchmarks.false_alarms import upper_bound
from benchmarks.samplers import ALPHA, FAMILIES, MUTANT_ALPHA, SamplerTrial, built_cases, case_trial, family_trial

#: Audits in one piece of work: small enough to keep all workers busy to the end, arbitrary otherwise.
_BATCH = 50


def _batch(
    trial: Callable[[int, int, int], SamplerTrial], which: int, seeds: Sequence[int], draws: int
) -> list[SamplerTrial]:
    return [trial(which, seed, draws) for seed in seeds]


def _run_trials(
    trial: Callable[[int, int, int], SamplerTrial], count: int, runs: int, draws: int, jobs: int
) -> list[list[SamplerTrial]]:
    work = [(k, range(start, min(start + _BATCH, runs))) for k in range(count) for start in range(0, runs, _BATCH)]
    done = Parallel(n_jobs=jobs)(delayed(_batch)(trial, k, seeds, draws) for k, seeds in work)
    found: list[list[SamplerTrial]] = [[] for _ in range(count)]
    for (k, _), results in zip(work, done, strict=True):
        found[k].extend(results)
    return found


def alarm_rows(found: Sequence[Sequence[SamplerTrial]]) -> tuple[list[str], bool]:
    """Markdown rows on correct samplers, and whether every rate is at most alpha with confidence."""
    rows = [
        "| sampler | audits | false alarms | rate | 99 % upper bound | at most 5 % |",
        "|---|---:|---:|---:|---:|---|",
    ]
    good = True
    for family, trials in zip(FAMILIES, found, strict=True):
        alarms, n = sum(trial.rejected for trial in trials), len(trials)
        bound = upper_bound(alarms, n)
        good = good and bound <= ALPHA
        shown = "yes" if bound <= ALPHA else "not shown"
        rows.append(f"| {family.name} | {n} | {alarms} | {alarms / n:.4f} | {bound:.4f} | {shown} |")
    return rows, good


def mutant_rows(found: Sequence[Sequence[SamplerTrial]]) -> tuple[list[str], bool]:
    """Markdown rows on mutants, and whether all were found."""
    rows = ["| reference | mutant | found | median draws | 90 % quantile |", "|---|---|---:|---:|---:|"]
    good = True
    for (case, _), trials in zip(built_cases(), found, strict=True):
        caught = sum(trial.rejected for trial in trials)
        good = good and caught == len(trials)
        draws = [trial.draws if trial.rejected else math.inf for trial in trials]
        middle, late = (float(np.quantile(draws, q, method="higher")) for q in (0.5, 0.9))
        rows.append(f"| {case.family} | {case.name} | {caught} of {len(trials)} | {middle:,.0f} | {late:,.0f} |")
    return rows, good


def document(alarms: list[str], mutants: list[str], draws: int, budget: int) -> str:
    """The report."""
    text = [
        "# Conformity",
        "",
        "## Correct samplers",
        "",
        f"Each sampler follows the distribution that it is held against, with no margin. Audited at alpha = {ALPHA:g} "
        "with up "
        f"to {draws:,} draws, with a look after every chunk, so at most {100 * ALPHA:g} % of the audits may say "
        "`deviation`. The upper bounds are one-sided Clopper-Pearson bounds at 99 %.",
        "",
        *alarms,
        "",
        "## Mutants",
        "",
        f"Each mutant is held against the distribution of its reference on two datasets, at alpha = {MUTANT_ALPHA:g} "
        "with up to "
        f"{budget:,} draws, both datasets together. The first chunk has 40 draws. Benign mutants, whose outputs are as "
        "private as the reference's, are deviations too.",
        "",
        *mutants,
        "",
        "Made by `python -m benchmarks.conformity`.",
        "",
    ]
    return "\n".join(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a rate is not shown to be at most alpha, or a mutant was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conformity", description=__doc__)
    parser.add_argument("--audits", type=int, default=2_000, help="audits of each correct sampler")
    parser.add_argument("--draws", type=int, default=20_000, help="budget of each")
    parser.add_argument("--runs", type=int, default=100, help="audits of each mutant")
    parser.add_argument("--budget", type=int, default=200_000, help="budget of each")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--out", type=Path, default=Path("reports/conformity.md"), help="Markdown file to write")
    options = parser.parse_args(arguments)
    for name in ("audits", "draws", "runs", "budget", "jobs"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    correct = _run_trials(family_trial, len(FAMILIES), options.audits, options.draws, options.jobs)
    wrong = _run_trials(case_trial, len(built_cases()), options.runs, options.budget, options.jobs)
    alarms, rare = alarm_rows(correct)
    mutants, found = mutant_rows(wrong)
    text = document(alarms, mutants, options.draws, options.budget)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0 if rare and found else 1


if __name__ == "__main__":
    raise SystemExit(main())
