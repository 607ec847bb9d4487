"""Certificates: the exact level of code, by walking all of its random decisions on every pair of a small domain."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.context import watch_datasets
from auditor.audits.counterexamples.snippet import show_pair
from auditor.audits.exact import allow_rounding
from auditor.audits.finish import fields_of_claim
from auditor.audits.summary import describe_target
from auditor.datasets import Pair, Relation, check_pairs, check_relation
from auditor.datasets.rows import make_rows
from auditor.errors import SpecificationError, check_id
from auditor.privacy.exact.privacy_loss import LossCurve, grouped
from auditor.privacy.guarantees import ZCDP, ApproxDP, Guarantee
from auditor.results import ENUMERATION, AuditResult, Verdict
from auditor.targets import Mechanism, source_hash
from auditor.targets.outputs import show_output
from auditor.targets.process_settings import keep_apart
from auditor.targets.randomness.calls import ControlledSource
from auditor.targets.randomness.enumeration import (
    Budget,
    Outcomes,
    enumerate_outputs,
    follow_units,
    run_again,
    run_once,
)
from auditor.targets.randomness.signals import Uncontrolled

#: Relative errors of probabilities are below this, see `auditor.targets.randomness.distributions`.
_ERROR = 1e-10
#: Datasets at most; more take longer than anybody waits.
MOST_DATASETS = 20_000
#: Datasets at most that are called before the walks and after them; arbitrary.
_FIRST = 30
#: Orders at most at which the level of zCDP is refined; arbitrary.
_HALVINGS = 3_000
#: The order above 1 that is nearest to it, less 1: divergences there are exact to some 1e-10.
_NEAREST = 1e-5
#: Levels above this are called infinite.
_HIGHEST = 700.0

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """Bounds on the level of one pair.

    Parameters
    ----------
    low, high : float
        The level lies between them.
    forward : bool
        It is reached by outputs on x against those on y.
    outputs : sequence of hashable
        Keys of the outputs that reach ``low``.
    """

    low: float
    high: float
    forward: bool = True
    outputs: Sequence[Hashable] = field(default_factory=tuple)


def make_datasets(values: Sequence[Any], rows: int, least: int = 0) -> list[Any]:
    """Make every dataset of a domain, in every order of rows.

    Parameters
    ----------
    values : sequence
        What a row may be.
    rows, least : int
        Most and fewest rows.

    Raises
    ------
    SpecificationError
        If there are more than `MOST_DATASETS`.
    """
    count = sum(len(values) ** size for size in range(least, rows + 1))
    if count > MOST_DATASETS:
        raise SpecificationError(
            f"{len(values)} values in up to {rows} rows make {count:,} datasets; at most {MOST_DATASETS:,} are walked"
        )
    sizes = range(least, rows + 1)
    return [make_rows(values, list(row)) for size in sizes for row in itertools.product(values, repeat=size)]


def _neighbours(datasets: Sequence[Any], relation: Relation) -> Iterator[tuple[int, int]]:
    """Places of neighbouring datasets."""
    for i, j in itertools.combinations(range(len(datasets)), 2):
        if abs(len(datasets[i]) - len(datasets[j])) > 1:
            continue
        try:
            relation.check(Pair(datasets[i], datasets[j]))
        except SpecificationError:
            continue
        yield i, j


def bound_level(x: Outcomes, y: Outcomes, guarantee: Guarantee, spare: float) -> Level:
    """Bound the level of a pair from both sides.

    Parameters
    ----------
    x, y : Outcomes
        Outputs on both datasets with their probabilities.
    guarantee : Guarantee
        The claim.
    spare : float
        Probability that the upper bound may leave out where tails were cut: the upper level is then that of
        (epsilon, delta + spare).

    Notes
    -----
    Valid because: let P~ and Q~ be what was walked, P and Q the distributions and l, m what they lack to 1. For every
    set E of outputs P~(E) <= P(E) <= P~(E) + l, and the same for Q. So P(E) - e^eps Q(E) is at most
    P~(E) - e^eps Q~(E) + l and, for sets of outputs that were seen, at least P~(E) - e^eps (Q~(E) + m). The largest
    value of the first over all E is the sum of the positive parts of P~ - e^eps Q~, which falls as eps grows: the
    least eps at which it is within delta is found by bisection. Errors of rounding are relative, since only positive
    numbers are multiplied and added, and both bounds are widened by them.
    """
    keys = list(x.masses | y.masses)
    p = np.array([x.masses.get(key, 0.0) for key in keys])
    q = np.array([y.masses.get(key, 0.0) for key in keys])
    if not isinstance(guarantee, ApproxDP):
        if not (x.whole and y.whole):
            return Level(0.0, math.inf)
        both = (p > 0) & (q > 0)
        curve = grouped(np.log(p[both]), np.log(q[both]), float(p[q == 0].sum()), float(q[p == 0].sum()))
        if isinstance(guarantee, ZCDP):
            return _bound_rho(curve)
        level = guarantee.exact_level(curve)
        return Level(level * (1 - 1e-9), level * (1 + 1e-9))
    sides = []
    for forward, (a, b, lost_a, lost_b) in ((True, (p, q, x.lost, y.lost)), (False, (q, p, y.lost, x.lost))):
        room = guarantee.delta * (1 + 1e-9) + (0.0 if x.whole and y.whole else spare)
        low = _largest_level(a, b, 1.0 - _ERROR, 0.0, lost_b, guarantee.delta)
        high = _largest_level(a, b, 1.0 + _ERROR, lost_a, 0.0, room)
        low, high = max(0.0, low - 2 * _ERROR), high + 2 * _ERROR
        reached = [keys[k] for k in np.flatnonzero(a > b * math.exp(min(low, _HIGHEST) - 1e-9))]
        sides.append(Level(low, high, forward, reached))
    worst = max(sides, key=lambda side: (side.low, side.high))
    return Level(worst.low, max(side.high for side in sides), worst.forward, worst.outputs)


def _bound_rho(curve: LossCurve) -> Level:
    """Bounds on the largest D_a / a over all orders a > 1.

    Notes
    -----
    Valid because: D_a grows with a. So between the orders a and b it is at most D_b / a; above the last order at most
    the largest loss over that order. Intervals that may hold the largest value are halved until their bounds agree.
    Logarithms are off by some 1e-15, which is divided by a - 1, and masses are scaled to add up to 1.
    By epsilon alone rho is at most epsilon^2 / 2 (Bun and Steinke 2016), which is exact near 0.
    """
    if curve.p_only > 0 or curve.q_only > 0:
        return Level(math.inf, math.inf)
    totals = np.logaddexp.reduce(curve.log_p), np.logaddexp.reduce(curve.log_q)  # 1 but for rounding
    curve = replace(curve, log_p=curve.log_p - totals[0], log_q=curve.log_q - totals[1])
    ends = [1.0, *(1.0 + np.geomspace(_NEAREST, 1e4, 100)).tolist()]
    values = [0.0, *(curve.renyi(end) for end in ends[1:])]
    low = max(value / end for value, end in zip(values, ends, strict=True))
    waiting = [(-values[k + 1] / ends[k], ends[k], ends[k + 1], values[k + 1]) for k in range(len(ends) - 1)]
    heapq.heapify(waiting)
    for _ in range(_HALVINGS):
        high, a, b, value = waiting[0]
        if -high <= low * (1 + 1e-9) or b - a < _NEAREST * (1 + 1e-3):
            break
        middle = 0.5 * (a + b)
        inner = curve.renyi(middle)
        low = max(low, inner / middle)
        heapq.heapreplace(waiting, (-inner / a, a, middle, inner))
        heapq.heappush(waiting, (-value / middle, middle, b, value))
    high = max(-waiting[0][0], curve.renyi(math.inf) / ends[-1], low)
    low, high = max(0.0, low * (1 - 1e-9) - 1e-10), high * (1 + 1e-9) + 1e-10
    pure = 0.5 * float(np.abs(curve.loss).max()) ** 2 * (1 + 1e-9)  # what epsilon alone implies
    return Level(low, max(low, min(high, pure)))


def _largest_level(a: Array, b: Array, factor: float, more: float, less: float, delta: float) -> float:
    """Largest level at which ``factor`` excess(level) + ``more`` - e^level ``less`` is above delta."""
    if delta == more == less == 0.0:  # nothing is left out, and the largest ratio is the level
        with np.errstate(divide="ignore"):
            return float((np.log(a[a > 0]) - np.log(b[a > 0])).max(initial=0.0))

    def exceeds(level: float) -> bool:
        e = math.exp(level)
        return factor * float(np.maximum(a - e * b, 0.0).sum()) + more - e * less > delta

    if not exceeds(0.0):
        return 0.0
    if exceeds(_HIGHEST):
        return math.inf
    low, high = 0.0, _HIGHEST
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


@keep_apart()
def prove(
    mechanism: Mechanism,
    guarantee: Guarantee,
    *,
    relation: Relation | None = None,
    domain: Sequence[Any] | None = None,
    rows: int = 2,
    min_rows: int = 0,
    pairs: Pair | Sequence[Pair] | None = None,
    seconds: float = 60.0,
    paths: int = 1_000_000,
    spare: float = 1e-9,
    units: Sequence[Callable[..., Any]] = (),
    id: str = "prove/L0/claim/given",  # noqa: A002 - the name that results use
) -> AuditResult:
    """Bracket the exact level of code on a small domain.

    The code runs once for each path of its random decisions, with randomness under control, see
    `auditor.targets.randomness`. The only way to the verdict "holds", which is about these datasets alone.

    Parameters
    ----------
    mechanism : callable
        The target, ``(data, n, rng)``; one output is asked for.
    guarantee : Guarantee
        The claim.
    relation : Relation, optional
        When two datasets are neighbours; needed with a domain.
    domain : sequence, optional
        Values that a row may have: all datasets of these are walked.
    rows, min_rows : int
        Most and fewest rows of a dataset of the domain.
    pairs : Pair or sequence of Pair, optional
        Instead of a domain, the pairs to look at.
    seconds : float
        Time in all, beside that in which generators are looked for in the process.
    paths : int
        Paths of one dataset at most.
    spare : float
        Probability that may be left out where the support is infinite or a loop has no end: "holds" then is about
        (epsilon, delta + spare).
    units : sequence of callable
        Functions of modules that draw random numbers and are taken as single draws, see `follow_units`: samplers with
        loops in them.
    id : str
        The result's id.

    Returns
    -------
    AuditResult
        Verdict "violation", "holds" or "inconclusive"; ``exact`` is the level, or the lower bound that refutes.

    Raises
    ------
    SpecificationError
        If an argument is not what it must be, or there are no neighbours among the datasets.
    TargetError
        If the target changes a dataset that it is given.

    Notes
    -----
    Valid because: see `enumerate_outputs` and `bound_level`; "violation" needs a lower bound above the claim on one
    pair, "holds" an upper bound within it on all.
    """
    from auditor.report.words import number_of  # no audit needs the reports

    check_id(id)
    _check_numbers(guarantee, seconds, paths, spare)
    if pairs is not None:
        if domain is not None:
            raise SpecificationError("pairs and a domain cannot be given together")
        listed = [pairs] if isinstance(pairs, Pair) else list(pairs)
        check_pairs(listed, relation)
        datasets = [data for pair in listed for data in (pair.x, pair.y)]
        neighbours = [(2 * k, 2 * k + 1) for k in range(len(listed))]
        about = f"{len(listed):,} given pair{'s' * (len(listed) != 1)}"
    else:
        _check_domain(relation, domain, rows, min_rows)
        assert relation is not None
        assert domain is not None
        datasets = make_datasets(domain, rows, min_rows)
        neighbours = list(_neighbours(datasets, relation))
        if not neighbours:
            raise SpecificationError(f"none of the {len(datasets)} datasets are neighbours under {relation.name}")
        about = f"{len(datasets):,} datasets of up to {number_of(rows, 'row')} of "
        about += f"{number_of(len(domain), 'value')}, {number_of(len(neighbours), 'pair')}"
    needed = sorted({k for pair in neighbours for k in pair})
    budget = Budget(paths, time.monotonic() + seconds, spare)
    with watch_datasets([datasets[k] for k in needed]):
        laws, stopped = _walk_datasets(mechanism, datasets, needed, budget, units)
    within = allow_rounding(guarantee)
    levels = {(i, j): bound_level(laws[i], laws[j], guarantee, spare) for i, j in neighbours if i in laws and j in laws}
    top = max(levels, key=lambda pair: (levels[pair].low, levels[pair].high), default=neighbours[0])
    level = levels.get(top, Level(0.0, math.inf))
    high = max((max(one.low, one.high) for one in levels.values()), default=math.inf)
    broken, holds = level.low > within, not stopped and len(levels) == len(neighbours) and high <= within
    verdict = Verdict.VIOLATION if broken else Verdict.HOLDS if holds else Verdict.INCONCLUSIVE
    lost = max((law.lost for law in laws.values()), default=0.0)
    shown = _show_event(level, laws[top[0]], laws[top[1]]) if broken else None
    first, second = (top if level.forward else top[::-1]) if levels else top
    return AuditResult(
        **fields_of_claim(id, id.partition("/")[0], guarantee, "L0"),
        alpha=0.0,
        verdict=verdict,
        expected=Verdict.HOLDS,
        exact=level.low if broken or not math.isfinite(high) else high,
        pair=" against ".join(show_pair(datasets[first], datasets[second])) if levels else None,
        event=shown,
        mechanism=describe_target(mechanism),
        source_hash=source_hash(mechanism),
        title="Certificate of code",
        stop="budget",
        method=ENUMERATION,
        caveat=_caveat(about, lost, spare, laws),
        message=_message(verdict, guarantee, level.low, high, lost, spare, laws, stopped),
        record={
            "datasets": len(needed),
            "neighbours": len(neighbours),
            "paths": sum(law.paths for law in laws.values()),
            "low": level.low,
            "high": high,
            "lost": lost,
        },
    )


def _walk_datasets(
    mechanism: Mechanism,
    datasets: Sequence[Any],
    needed: Sequence[int],
    budget: Budget,
    units: Sequence[Callable[..., Any]],
) -> tuple[dict[int, Outcomes], str]:
    """Outputs on the datasets of some places, and why there are not all of them.

    The first of them are called once before all else, and again at last: what calls leave behind may not matter.
    """
    source, laws = ControlledSource(), dict[int, Outcomes]()
    follow_units(source, units, replace(budget, lost=budget.lost * 1e-4))
    begun = time.monotonic()
    with source.replacing():
        # Generators are looked for among all objects of the process, which is no time of the mechanism.
        budget = replace(budget, deadline=budget.deadline + time.monotonic() - begun)
        firsts = {k: run_once(mechanism, datasets[k], source, budget) for k in needed[:_FIRST]}
        source.find_more()  # one that the first call makes and keeps, drawn from in later ones
        for done, k in enumerate(needed):
            now = time.monotonic()
            share = (budget.deadline - now) / (len(needed) - done)
            own = replace(budget, deadline=min(budget.deadline, now + 4 * share), lost=budget.lost / 4)
            try:
                laws[k] = enumerate_outputs(mechanism, datasets[k], source, own)
                if laws[k].only_raises:
                    raise Uncontrolled(f"it only raises exceptions: {next(iter(laws[k].values.values()))!r}")
            except Uncontrolled as signal:
                return laws, f"on {show_pair(datasets[k], datasets[k])[0]} {signal.reason}"
        source.find_more()
        before = source.read_states()
        for k, first in firsts.items():
            try:
                if first is not None:
                    run_again(mechanism, datasets[k], source, first)
            except Uncontrolled as signal:
                said = f"on {show_pair(datasets[k], datasets[k])[0]} {signal.reason}"
                return {}, f"{said}, or calls before it matter"
        if source.read_states() != before:
            return {}, "it draws from a generator that it has made in another call and kept, which is not followed"
    return laws, ""


def _check_numbers(guarantee: Any, seconds: float, paths: int, spare: float) -> None:
    if not isinstance(guarantee, Guarantee):
        raise SpecificationError(f"claim must be a guarantee such as PureDP(1.0), got {guarantee!r}")
    if not seconds > 0 or not paths >= 1:
        raise SpecificationError(f"seconds and paths must be above 0, got {seconds!r} and {paths!r}")
    if not 0 < spare < 1e-3:
        raise SpecificationError(f"spare must be a probability between 0 and 0.001, got {spare!r}")


def _check_domain(relation: Any, domain: Any, rows: Any, min_rows: Any) -> None:
    check_relation(relation)
    if isinstance(domain, str) or not hasattr(domain, "__len__") or len(domain) < 1:
        raise SpecificationError(f"domain must be a sequence of the values of a row, such as [0, 1], got {domain!r}")
    whole = all(isinstance(v, int) and not isinstance(v, bool) for v in (rows, min_rows))
    if not whole or not 0 <= min_rows <= rows:
        raise SpecificationError(f"rows must be integers with 0 <= min_rows <= rows, got {min_rows!r} and {rows!r}")


def _show_event(level: Level, x: Outcomes, y: Outcomes) -> str | None:
    """The outputs that refute a claim, with their probabilities on both datasets; None if they are not known."""
    if not level.outputs:  # the level is not that of one event
        return None
    first, second = (x, y) if level.forward else (y, x)
    outputs = sorted(level.outputs, key=lambda key: -first.masses.get(key, 0.0))
    values = first.values | second.values
    named = ", ".join(show_output(values[key]) for key in outputs[:3]) + (
        f" and {len(outputs) - 3} more" if len(outputs) > 3 else ""
    )
    p, q = (sum(side.masses.get(key, 0.0) for key in outputs) for side in (first, second))
    return f"output {named}: probability {p:.6g} against {q:.6g}"


def _caveat(about: str, lost: float, spare: float, laws: Mapping[int, Outcomes]) -> str:
    parts = [f"The certificate is about {about}, and nothing else"]
    if lost:
        parts.append(f"it leaves out events of probability up to {spare:g}")
    parts += sorted({caveat for law in laws.values() for caveat in law.caveats})
    return "; ".join(parts)


def _message(
    verdict: Verdict,
    guarantee: Guarantee,
    low: float,
    high: float,
    lost: float,
    spare: float,
    laws: Mapping[int, Outcomes],
    stopped: str,
) -> str:
    symbol = guarantee.symbol
    if verdict == Verdict.VIOLATION:
        size = f"of at least {low:.6g}" if math.isfinite(low) else "without a bound"
        return f"the code has {symbol} {size} on this pair"
    if verdict == Verdict.HOLDS:
        most = f" up to events of probability {spare:g}" if lost else ""
        return f"the code has {symbol} = {high:.6g} at most on these datasets{most}"
    if stopped:
        return f"not all could be enumerated: {stopped}"
    if lost > spare:
        return (
            f"probability {lost:.3g} was not enumerated after {sum(law.paths for law in laws.values()):,} paths, "
            f"{spare:g} may be: {symbol} is at least {low:.6g}"
        )
    if not isinstance(guarantee, ApproxDP) and lost:
        return "the support is infinite, which only claims of epsilon and (epsilon, delta) allow for"
    return f"{symbol} is between {low:.6g} and {high:.6g}"
