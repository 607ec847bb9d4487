"""Measure audits of training: white-box false alarms, bounds and pitfalls; many runs as draws.

Run ``python -m benchmarks.training`` from the repository's root. The page is the same for the same options.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy import optimize, stats

from auditor.audits.training.many_runs import EVIDENCE, GUESSES, bound_by_guesses
from auditor.audits.training.step_level import Steps, compose_level
from auditor.privacy.exact import GaussianCurve
from auditor.privacy.guarantees import ApproxDP, GaussianDP, Guarantee, PureDP
from auditor.training import StepRecorder, audit_runs, audit_steps
from benchmarks.false_alarms import upper_bound
from benchmarks.recorded_training import FULL, PITFALLS, SAMPLED, train

ALPHA, DELTA, STEPS = 0.05, 1e-5, 200
#: Levels of the audits of pitfalls and of what is corrected: the default, at which one false alarm in 100 is allowed,
#: and one at which none is expected.
USUAL, STRICT = 0.01, 1e-4
#: Audits of one piece of work.
_BATCH = 20
#: Pitfalls that need sampled steps; the others are made in full batches.
OF_SAMPLING = ("noise scaled by the batch", "floor of the batch size", "shuffled", "rate of the accountant halved")


# ------------------------------------------------------------------------------------------------ steps


def sampled(seed: int) -> StepRecorder:
    return train(seed, steps=STEPS)


def full(seed: int) -> StepRecorder:
    return train(seed, rate=1.0, noise=FULL, steps=STEPS)


def loud(seed: int) -> StepRecorder:
    return train(seed, rate=1.0, noise=0.8, steps=150)


def one_coordinate(seed: int) -> StepRecorder:
    rng = np.random.default_rng(seed)
    recorder = StepRecorder(1.0, 1.5, coin=0.3)
    for _ in range(120):
        included = bool(rng.random() < 0.3)
        recorder.add(rng.normal(scale=1.5, size=1) + included, [1.0], included=included)
    return recorder


class StepNull(NamedTuple):
    """A training whose steps are what is claimed, and whose level is the claim.

    Parameters
    ----------
    name : str
        For tables.
    record : callable
        From a seed to a record.
    claim : Guarantee
        What holds with no margin.
    """

    name: str
    record: Callable[[int], StepRecorder]
    claim: Guarantee


def step_nulls() -> tuple[StepNull, ...]:
    """The nulls; the level of sampled steps is composed."""
    level = compose_level([Steps(STEPS, SAMPLED, 0.1)], ApproxDP(1.0, DELTA)) * (1 + 1e-6)
    return (
        StepNull("200 steps, sampled at 0.1", sampled, ApproxDP(level, DELTA)),
        StepNull("200 full batches", full, GaussianDP(math.sqrt(STEPS) / FULL)),
        StepNull("150 full batches with little noise", loud, GaussianDP(math.sqrt(150) / 0.8)),
        StepNull(
            "120 steps, one coordinate, coins and releases only", one_coordinate, GaussianDP(math.sqrt(120) / 1.5)
        ),
    )


def audit_null(null: int, seeds: range, alpha: float) -> list[tuple[str, float]]:
    """Verdicts and bounds of audits of a null.

    Parameters
    ----------
    null : int
        Index in `step_nulls`.
    seeds : range
        One audit each.
    alpha : float
        Level of the audits.
    """
    row = step_nulls()[null]
    found = [audit_steps(row.record(200_000 + seed), row.claim, alpha=alpha, seed=seed) for seed in seeds]
    return [(str(result.verdict), result.lower_bound or 0.0) for result in found]


def alarm_rows(audits: int, jobs: int) -> Iterator[str]:
    """Table of false alarms and bounds of white-box audits."""
    yield "| training | claim | audits | alarms | bound too large | 99 % upper bound | at most 5 % | median bound |"
    yield "|---|---|---:|---:|---:|---:|---|---:|"
    for k, null in enumerate(step_nulls()):
        work = [range(s, min(s + _BATCH, audits)) for s in range(0, audits, _BATCH)]
        done = [one for part in Parallel(n_jobs=jobs)(delayed(audit_null)(k, w, ALPHA) for w in work) for one in part]
        alarms = sum(verdict in ("violation", "deviation") for verdict, _ in done)
        above = sum(bound > null.claim.level for _, bound in done)
        most = upper_bound(alarms, audits)
        yield (
            f"| {null.name} | {null.claim} | {audits} | {alarms} | {above} | {most:.4f} "
            f"| {'yes' if most <= ALPHA else 'not shown'} | {statistics.median(bound for _, bound in done):.3f} |"
        )


class AuditedRecord(NamedTuple):
    """What audits of one record gave.

    Parameters
    ----------
    verdict, strict : str
        At `USUAL` and at `STRICT`.
    bound : float
        At `USUAL`.
    failed : tuple of str
        Tests that failed at `USUAL`.
    """

    verdict: str
    strict: str
    bound: float
    failed: tuple[str, ...]


def audit_pitfall(pitfall: str, runs: int) -> list[AuditedRecord]:
    """Audit runs with a pitfall; "" for none.

    Parameters
    ----------
    pitfall : str
        One of `PITFALLS`, or none.
    runs : int
        Number of runs, of other seeds.
    """
    options: dict[str, Any] = {} if pitfall in OF_SAMPLING else {"rate": 1.0, "noise": FULL}
    found = []
    for seed in range(runs):
        record, claim = train(300_000 + seed, pitfall=pitfall, **options), ApproxDP(4.0, DELTA)
        result, strict = (audit_steps(record, claim, alpha=alpha) for alpha in (USUAL, STRICT))
        failed = tuple(check["name"] for check in result.checks if not check["passed"])
        found.append(AuditedRecord(str(result.verdict), str(strict.verdict), result.lower_bound or 0.0, failed))
    return found


def pitfall_rows(runs: int, jobs: int) -> Iterator[str]:
    """Table of pitfalls: found in so many runs, as what, and by which tests."""
    yield f"| pitfall | runs | found | found at {STRICT:.2%} | verdicts | median bound on ε | tests that fail most |"
    yield "|---|---:|---:|---:|---|---:|---|"
    listed = ["", *PITFALLS]
    for name, done in zip(
        listed,
        Parallel(n_jobs=jobs)(delayed(audit_pitfall)(name, runs if name else 5 * runs) for name in listed),
        strict=True,
    ):
        found, strict = (
            sum(verdict in ("violation", "deviation") for verdict in column)
            for column in ([one.verdict for one in done], [one.strict for one in done])
        )
        said = ", ".join(f"{verdict} {count}" for verdict, count in Counter(one.verdict for one in done).most_common())
        failed = Counter(test for one in done for test in one.failed)
        yield (
            f"| {name or 'none'} | {len(done)} | {found} | {strict} | {said} "
            f"| {statistics.median(one.bound for one in done):.2f} "
            f"| {', '.join(test for test, _ in failed.most_common(3))} |"
        )


# ------------------------------------------------------------------------------------------------- runs


def gaussian_run(data: Any, rng: np.random.Generator) -> Any:
    return np.round(rng.normal() + data[0], 2)


def wide_run(data: Any, rng: np.random.Generator) -> Any:
    return np.round(rng.normal() + 2 * data[0], 2)


def vector_run(data: Any, rng: np.random.Generator) -> Any:
    return np.round(rng.normal(size=12) + data[0] / math.sqrt(12), 2)


def response_run(data: Any, rng: np.random.Generator) -> Any:
    return data[0] if rng.random() < math.e / (1 + math.e) else 1 - data[0]


RUNS: tuple[tuple[str, Callable[..., Any], Guarantee], ...] = (
    ("Gaussian score", gaussian_run, GaussianDP(1.0)),
    ("Gaussian score of ε = 10 at δ = 1e-5", wide_run, GaussianDP(2.0)),
    ("12 weights", vector_run, GaussianDP(1.0)),
    ("randomised response", response_run, PureDP(1.0)),
)


def audit_run_null(null: int, evidence: str, seeds: range, runs: int) -> list[tuple[str, float]]:
    """Verdicts and bounds of audits of many runs at zero margin.

    Parameters
    ----------
    null : int
        Index in `RUNS`.
    evidence : str
        "bets" or "guesses".
    seeds : range
        One audit each.
    runs : int
        Runs of an audit.
    """
    _, make, claim = RUNS[null]
    options: dict[str, Any] = {"runs": runs, "evidence": evidence, "alpha": ALPHA, "progress": False}
    found = [audit_runs(make, [1], [0], None, claim, seed=400_000 + seed, **options) for seed in seeds]
    return [(str(result.verdict), result.lower_bound or 0.0) for result in found]


def level_of_guesses(claim: Guarantee, runs: int) -> float:
    """Probability that guesses refute a claim that holds, at most.

    Exact: that of as many guesses, each right with the largest probability that the claim allows, by what
    `bound_by_guesses` makes of each number of right ones.

    Parameters
    ----------
    claim : Guarantee
        The claim.
    runs : int
        Number of guesses.
    """
    q = float(optimize.brentq(lambda v: float(claim.cap(np.array(v), claim.level)) - 1 + v, 0.0, 1.0, xtol=1e-15))
    refuted = [k for k in range(runs + 1) if bound_by_guesses(k, runs, claim, ALPHA) > claim.level]
    return float(stats.binom.sf(refuted[0] - 1, runs, 1 - q)) if refuted else 0.0


def run_rows(audits: int, runs: int, jobs: int) -> Iterator[str]:
    """Table of false alarms and bounds of audits of many runs."""
    yield "| output | claim | evidence | audits | refuted | 99 % upper bound | at most 5 % | median bound | as ε |"
    yield "|---|---|---|---:|---:|---:|---|---:|---:|"
    for k, (name, _, claim) in enumerate(RUNS):
        for evidence in EVIDENCE:
            work = [range(s, min(s + _BATCH, audits)) for s in range(0, audits, _BATCH)]
            parts = Parallel(n_jobs=jobs)(delayed(audit_run_null)(k, evidence, w, runs) for w in work)
            done = [one for part in parts for one in part]
            alarms = sum(verdict == "violation" for verdict, _ in done)
            most, median = upper_bound(alarms, audits), statistics.median(bound for _, bound in done)
            holds = "yes" if most <= ALPHA else "not shown"
            if evidence == GUESSES and most > ALPHA:
                level = level_of_guesses(claim, runs)
                holds = f"yes, {level:.4f} exactly" if level <= ALPHA else "no"
            epsilon = f"{GaussianCurve(median).epsilon(DELTA):.2f}" if isinstance(claim, GaussianDP) and median else ""
            yield (
                f"| {name} | {claim} | {evidence} | {audits} | {alarms} | {most:.4f} "
                f"| {holds} | {median:.3f} | {epsilon} |"
            )


TEXT = """# Audits of training

See [training](../docs/training.md). The training is that of a network by DP-SGD in numpy (`mechanisms/training`), 41
weights in four layers, 300 examples, with a canary of full norm (`benchmarks/recorded_training.py`).

## White box: false alarms and bounds

Steps are exactly what is claimed, and the claim is their level with no margin; alpha = 5 %. An alarm is a violation or
a deviation, of all tests together. "Bound too large" counts certified levels above the truth.
"""

PITFALL_TEXT = """
## White box: pitfalls

A claim of ε = 4 at δ = 1e-5, one run of 200 steps, alpha = 1 % for all tests of a run together; and the same runs at a
smaller alpha, since 1 % allows for one false alarm in 100.
"""

RUN_TEXT = """
## Many runs

{} runs an audit, at zero margin, alpha = 5 %; ε at δ = 1e-5 on the Gaussian curve of the median bound. A guess of
randomised response is right with exactly the probability that the claim allows: that row's rate is the level of the
binomial test itself, which so few audits do not show to be below 5 %. It is computed.
"""


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=400, help="audits of each row of false alarms")
    parser.add_argument("--pitfalls", type=int, default=20, help="runs with each pitfall; five times as many without")
    parser.add_argument("--runs", type=int, default=200, help="runs of an audit of many runs")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    asked = parser.parse_args()
    lines = [*TEXT.splitlines(), "", *alarm_rows(asked.audits, asked.jobs)]
    lines += [*PITFALL_TEXT.splitlines(), "", *pitfall_rows(asked.pitfalls, asked.jobs)]
    lines += [*RUN_TEXT.format(asked.runs).splitlines(), "", *run_rows(asked.audits, asked.runs, asked.jobs)]
    page = "\n".join([*lines, "", "Made by `python -m benchmarks.training`."]) + "\n"
    print(page)
    if asked.out is not None:
        asked.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
