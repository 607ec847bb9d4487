"""Many audits of mechanisms of known level, and what the counts say of the auditor."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np
from scipy import stats

from auditor.audits.privacy_loop import Settings
from auditor.calibration.audits import Auditor, AuditOutcome, audit_learned, audit_stated
from auditor.calibration.families import GRADED, NULLS, Family, Graded
from auditor.calibration.oracles import best_event, compute_rate, simulate_passages
from auditor.errors import SpecificationError, require_library
from auditor.evidence.binomial import clopper_pearson
from auditor.results import make_plain
from auditor.targets.sampler import check_seed, make_generator

SCHEMA = "dpaudit-calibration/1"
#: Stopping rules, by the name that `auditor.audit` has for them.
STOPS = ("verdict", "budget")
#: True levels of the power curves, over the claimed one; arbitrary, from hardly to be found to found at once.
RATIOS = (1.1, 1.25, 1.5, 2.0)
#: Part of the usual number of audits that is made at each point of a power curve; arbitrary, few rates there are small.
POWER_SHARE = 2 / 3
#: Confidence of every interval, on both sides together.
CONFIDENCE = 0.99
#: Probability with which an auditor that keeps its promise is called unsound, in one whole calibration.
FALSE_ALARM = 1e-6
#: An audit may call independent draws dependent, too: a `deviation`. Probability that is allowed for it: five tests at
#: most at 1e-6 each (`auditor.audits.independence.FALSE_ALARM`) where one pair is audited, with room for more.
_DEPENDENT = 1e-5
#: Simulated audits of the oracle: a standard error of at most 0.011.
_PATHS = 2_000
#: Points of a power curve over draws, each twice the one before; the last is the budget.
_POINTS = 8
#: Audits in one piece of work: small enough to keep all workers busy to the end, arbitrary otherwise.
_BATCH = 5
#: Libraries whose versions bear on the numbers.
_LIBRARIES = ("numpy", "scipy", "scikit-learn")

#: Called after each row: what it is, and how many audits it took.
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Parameters
    ----------
    audits : int
        Audits of each mechanism by each stopping rule; families with a ``share`` have that part of them.
    draws : int
        Budget of an audit in outputs, both sides together.
    alpha : float
        Level of each audit.
    seed : int
        Of all draws.
    jobs : int
        Worker processes; results do not depend on it.
    nulls : tuple of Family
        What false alarms are counted on.
    graded : tuple of Graded
        What power is measured on.
    ratios : tuple of float
        True levels for that, over the claimed one; all above 1.
    auditor : callable
        What is measured.

    Raises
    ------
    SpecificationError
        If one of the numbers is out of range, or two rows would have the same name.
    """

    audits: int
    draws: int
    alpha: float = 0.05
    seed: int = 0
    jobs: int = 1
    nulls: tuple[Family, ...] = NULLS
    graded: tuple[Graded, ...] = GRADED
    ratios: tuple[float, ...] = RATIOS
    auditor: Auditor = audit_learned

    def __post_init__(self) -> None:
        for name in ("audits", "jobs"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SpecificationError(f"{name} must be an integer of at least 1, got {value!r}")
        check_seed(self.seed)
        Settings(alpha=self.alpha, draws=self.draws, seed=self.seed)
        if not self.nulls:
            raise SpecificationError("nulls must hold a family at least: of no audits nothing can be said, got ()")
        if not all(ratio > 1 for ratio in self.ratios):
            raise SpecificationError(f"ratios must be above 1, got {self.ratios!r}")
        names = [row.name for row in [*null_rows(self), *(row for _, row in power_rows(self))]]
        for name in names:
            if names.count(name) > 1:  # they would have the same draws, and not be two measurements
                raise SpecificationError(f"families and ratios must differ in their names, got {name!r} twice")

    def settings(self, stop: str) -> Settings:
        """Settings of each audit."""
        return Settings(alpha=self.alpha, draws=self.draws, seed=self.seed, stop=stop)


@dataclass(frozen=True)
class AuditRow:
    """Audits that are counted together.

    Parameters
    ----------
    family : Family
        What is audited.
    events : str
        "learned", or "stated": which auditor it was.
    auditor : callable
        That auditor.
    stop : str
        Stopping rule.
    audits : int
        How many.
    true : float
        The exact level.
    """

    family: Family
    events: str
    auditor: Auditor
    stop: str
    audits: int
    true: float

    @property
    def name(self) -> str:
        """In words; it also keys the draws."""
        return f"{self.family.name}, level {self.true:g}, events {self.events}, stop at {self.stop}"

    def batch(self, settings: Settings, numbers: Sequence[int]) -> list[AuditOutcome]:
        """Run audits of these numbers.

        Each has a key, and with it draws that no other has.

        Parameters
        ----------
        settings : Settings
            Those of each audit.
        numbers : sequence of int
            Numbers of the audits within the row.
        """
        return [self.auditor(self.family, settings, f"calibrate/{self.name}/{k}") for k in numbers]


def null_rows(plan: Plan) -> list[AuditRow]:
    """List rows of false alarms.

    Every family by both stopping rules, and once more where it states an event.
    """
    return [
        AuditRow(family, events, auditor, stop, math.ceil(family.share * plan.audits), family.guarantee.level)
        for family in plan.nulls
        for events, auditor in (("learned", plan.auditor), ("stated", audit_stated))
        if events == "learned" or family.event is not None
        for stop in STOPS
    ]


def power_rows(plan: Plan) -> list[tuple[Graded, AuditRow]]:
    """List the rows on which power is measured."""
    audits = math.ceil(POWER_SHARE * plan.audits)
    return [
        (graded, AuditRow(graded.at(ratio), "learned", plan.auditor, "verdict", audits, ratio))
        for graded in plan.graded
        for ratio in plan.ratios
    ]


@dataclass
class Promises:
    """Tests of soundness so far.

    Attributes
    ----------
    tests : list of (str, int, int, float)
        What is counted, the count, how many audits it is of, and the largest probability that is promised.
    """

    tests: list[tuple[str, int, int, float]] = field(default_factory=list)

    def count(self, what: str, of: Sequence[bool], promised: float) -> dict[str, Any]:
        """Count an event that the auditor promises to be rare.

        The test is remembered.

        Parameters
        ----------
        what : str
            The event, in words.
        of : sequence of bool
            Whether it occurred, for each audit.
        promised : float
            Largest probability of it that is promised.

        Returns
        -------
        dict
            The rate and its interval, see `estimate_rate`.
        """
        self.tests.append((what, sum(of), len(of), promised))
        return estimate_rate(sum(of), len(of))

    def broken(self) -> list[str]:
        """Tests that fail, in words.

        Notes
        -----
        Valid because: if each of n independent audits errs with a probability of at most r, whatever the audits before
        it, the count K of errors is stochastically at most Binomial(n, r), so the p-value P[Binomial(n, r) >= K] is at
        most c with a probability of at most c. Each test has c = `FALSE_ALARM` over the number of tests; by the union
        bound, which needs no independence between tests, one of them fails with a probability of at most `FALSE_ALARM`.
        """
        share = FALSE_ALARM / len(self.tests)
        return [
            f"{what}: {count} of {n}, where at most {promised:.3g} of them are promised"
            for what, count, n, promised in self.tests
            if stats.binom.sf(count - 1, n, promised) <= share
        ]


def estimate_rate(count: int, n: int) -> dict[str, Any]:
    """Estimate a rate, with the interval of Clopper and Pearson.

    Parameters
    ----------
    count : int
        How often it occurred.
    n : int
        Out of how many, at least 1.

    Returns
    -------
    dict
        ``count``, ``of``, ``rate``, and the limits ``low`` and ``high``, at confidence `CONFIDENCE`.
    """
    low, high = (float(clopper_pearson(count, n, (1 - CONFIDENCE) / 2, side)) for side in ("lower", "upper"))
    return {"count": count, "of": n, "rate": count / n, "low": low, "high": high}


def run_calibration(plan: Plan, progress: Progress | None = None) -> dict[str, Any]:
    """Measure, and judge.

    Parameters
    ----------
    plan : Plan
        What.
    progress : callable, optional
        Called after each of `count_rows` rows, in their order.

    Returns
    -------
    dict
        The content of calibration.json, the same for the same plan, whatever ``jobs``. ``sound`` is false if the counts
        are incompatible with what is promised; an auditor that keeps its promise is called so with a probability of at
        most 1e-6.
    """
    nulls, power = null_rows(plan), power_rows(plan)
    found = _outcomes(plan, [*nulls, *(row for _, row in power)], progress)
    promises = Promises()
    alarms = [_false_alarms(row, found[k], plan, promises) for k, row in enumerate(nulls)]
    whole = _count_all_rows(found[: len(nulls)], nulls, plan, promises)
    curves = [_power(row, graded, found[len(nulls) + k], plan, promises) for k, (graded, row) in enumerate(power)]
    broken = promises.broken()
    return dict(
        make_plain(
            {
                "schema": SCHEMA,
                "manifest": {
                    "dpaudit": metadata.version("dpaudit"),
                    "python": platform.python_version(),
                    "libraries": {name: metadata.version(name) for name in _LIBRARIES},
                    "audits": plan.audits,
                    "draws": plan.draws,
                    "alpha": plan.alpha,
                    "seed": plan.seed,
                    "confidence": CONFIDENCE,
                    "unsound_by_chance": FALSE_ALARM,
                    "oracle_audits": _PATHS,
                    "tests": len(promises.tests),
                },
                "sound": not broken,
                "broken": broken,
                "together": whole,
                "false_alarms": alarms,
                "power": curves,
            }
        )
    )


def count_rows(plan: Plan) -> int:
    """Count the rows of a calibration."""
    return len(null_rows(plan)) + len(power_rows(plan))


def _outcomes(plan: Plan, rows: Sequence[AuditRow], progress: Progress | None) -> list[list[AuditOutcome]]:
    """Outcomes of all rows, in batches on several cores."""
    work = [
        (k, range(first, min(first + _BATCH, row.audits)))
        for k, row in enumerate(rows)
        for first in _first_batches(row)
    ]
    found: list[list[AuditOutcome]] = [[] for _ in rows]
    for (k, _), outcomes in zip(work, _run_batches(plan, rows, work), strict=True):
        found[k].extend(outcomes)
        if progress is not None and len(found[k]) == rows[k].audits:
            progress(rows[k].name, rows[k].audits)
    return found


def _first_batches(row: AuditRow) -> range:
    return range(0, row.audits, _BATCH)


def _run_batches(
    plan: Plan, rows: Sequence[AuditRow], work: Sequence[tuple[int, range]]
) -> Iterator[list[AuditOutcome]]:
    tasks = [partial(rows[k].batch, plan.settings(rows[k].stop), numbers) for k, numbers in work]
    if plan.jobs == 1:
        yield from (task() for task in tasks)
        return
    require_library("joblib", "several workers (--jobs 1 needs none)")
    import joblib

    # One thread a worker: more would change no number and only compete.
    with joblib.parallel_config("loky", n_jobs=plan.jobs, inner_max_num_threads=1):
        yield from joblib.Parallel(return_as="generator")(joblib.delayed(task)() for task in tasks)


def _describe_row(row: AuditRow) -> dict[str, Any]:
    return {"family": row.family.name, "claim": str(row.family.guarantee), "notion": row.family.guarantee.notion}


def _false_alarms(row: AuditRow, found: Sequence[AuditOutcome], plan: Plan, promises: Promises) -> dict[str, Any]:
    return {
        **_describe_row(row),
        "events": row.events,
        "pairs": len(row.family.pairs),
        "stop": row.stop,
        "alarms": promises.count(
            f"{row.name}: false alarms", [outcome.finding for outcome in found], plan.alpha + _DEPENDENT
        ),
        "above": _count_bounds_above(row, found, plan, promises),
    }


def _count_bounds_above(row: AuditRow, found: Sequence[AuditOutcome], plan: Plan, promises: Promises) -> dict[str, Any]:
    # The claimed level is on the grid of levels, and a bound above any other truth rejects the grid level above it: no
    # slack is needed.
    over = [outcome.bound > row.true for outcome in found]
    return promises.count(f"{row.name}: lower bounds above the exact level", over, plan.alpha)


def _count_all_rows(
    found: Sequence[Sequence[AuditOutcome]], rows: Sequence[AuditRow], plan: Plan, promises: Promises
) -> list[dict[str, Any]]:
    """All audits at zero margin by the same auditor: draws are all their own, so that their counts may be added up."""
    several = []
    for events in dict.fromkeys(row.events for row in rows):
        outcomes = [(row, o) for row, some in zip(rows, found, strict=True) if row.events == events for o in some]
        finding = [outcome.finding for _, outcome in outcomes]
        above = [outcome.bound > row.true for row, outcome in outcomes]
        name = f"all together, events {events}"
        several.append(
            {
                "events": events,
                "alarms": promises.count(f"{name}: false alarms", finding, plan.alpha + _DEPENDENT),
                "above": promises.count(f"{name}: lower bounds above the exact level", above, plan.alpha),
            }
        )
    return several


def _power(
    row: AuditRow, graded: Graded, found: Sequence[AuditOutcome], plan: Plan, promises: Promises
) -> dict[str, Any]:
    """One mechanism at one level: when it was found, and when the oracle would have found it."""
    claim, masses = row.family.guarantee, graded.masses(row.true)
    draws = np.array([outcome.draws if outcome.finding else math.inf for outcome in found])
    event = best_event(masses, claim)
    rng = make_generator(plan.seed, "calibrate/oracle", row.name)
    oracle = 2 * simulate_passages(event, claim, plan.alpha, plan.draws // 2, _PATHS, rng)
    whole, kind = compute_rate(masses, claim)
    nats = math.log(1 / plan.alpha)
    points = [plan.draws >> k for k in range(_POINTS - 1, -1, -1) if plan.draws >> k >= 2]
    median, ninety = (float(v) for v in np.quantile(draws, [0.5, 0.9], method="higher"))
    return {
        **_describe_row(row),
        "ratio": row.true,
        "found": estimate_rate(int(np.isfinite(draws).sum()), len(draws)),
        "above": _count_bounds_above(row, found, plan, promises),
        "median_draws": median,
        "ninety_draws": ninety,
        "oracle_median_draws": float(np.quantile(oracle, 0.5, method="higher")),
        "oracle_event": {"p": event.p, "q": event.q},
        # Draws at which the expected growth has made 1/alpha: both sides together.
        "event_draws": 2 * nats / event.rate if event.rate > 0 else math.inf,
        "whole_law_draws": 2 * nats / whole if kind == "whole distribution" and whole > 0 else None,
        "points": [
            {"draws": n, **estimate_rate(int((draws <= n).sum()), len(draws)), "oracle": float((oracle <= n).mean())}
            for n in points
        ],
    }
