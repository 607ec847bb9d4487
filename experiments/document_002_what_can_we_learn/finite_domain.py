"""Document 002, section 3.2 and footnote 6: classes of finite dimension over a finite domain, and learners that fail.

Corollary 3.6 states its sample size as O(.); the constants here are those of `agnostic_bound` and `realizable_bound`,
with v ln|X| for ln(|H| - 1), by Sauer's lemma. Domains of millions of points are out of reach of exact distributions
and of many fresh samples; a single run on one is timed in the unit tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from auditor.audits.accuracy import Exactly, Smallest
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken,
    broken_and_deviating,
    entry,
    inequality,
    reference,
    scaling,
)
from auditor.datasets import Group, Pair
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE
from experiments.document_002_what_can_we_learn._learning import (
    by_size,
    flipped_last,
    learns,
    records,
    replaced_last,
    up,
)
from experiments.document_002_what_can_we_learn.error_estimate import persons
from mechanisms.base.mechanism import FloatArray, IntArray
from mechanisms.learning.agnostic_learner import AgnosticLearner
from mechanisms.learning.agnostic_mutants import MUTANTS
from mechanisms.learning.fresh_learner import (
    FiniteExampleDistribution,
    FreshLearner,
    agnostic_bound,
    identical_agnostic,
    least_size,
    realizable_bound,
)
from mechanisms.learning.hypotheses import (
    HypothesisClass,
    IntervalFunctions,
    PointFunctions,
    RectangleFunctions,
    ThresholdFunctions,
    sauer,
)

_ONE = PureDP(1.0)
_BETA = 0.05
#: Draws for distributions of a hundred labelled points: a sample is as many numbers.
_DRAWS = {"smoke": 4_000, "standard": 20_000}


@entry(
    "002/vc_finite_domain_learner",
    title="Infinite class over a finite domain",
    source=Source("002", "section 3.2, Corollary 3.6"),
)
def finite_domain() -> Iterator[Draft]:
    """Labelings of the whole domain by thresholds, intervals and rectangles; a label is flipped.

    In each database the last of several equal records is flipped; the event that tells is "the labeling contains that
    point", of probability 0.036 to 0.078.
    """
    for case, hypotheses, x, n in (
        ("thresholds_64", ThresholdFunctions(64), 40, 6),
        ("intervals_8", IntervalFunctions(8), 0, 3),
        ("rectangles_3_by_3", RectangleFunctions(3, 3), 4, 6),
    ):
        learner = AgnosticLearner(hypotheses, 1.0)
        pair = flipped_last(records((x, 0, n)), f"{n} records ({x}, 0), the last label flipped")
        yield from reference(learner, _ONE, pair, case=case, relation=REPLACE)
    yield from _mutants()
    yield from _counts()
    yield from _sizes()


def _mutants() -> Iterator[Draft]:
    thresholds, intervals = AgnosticLearner(ThresholdFunctions(16), 1.0), AgnosticLearner(IntervalFunctions(8), 1.0)
    appears = replaced_last(records((3, 0, 3)), 8, 0, "point 8 appears in the sample")
    yield broken(MUTANTS["labelings_of_the_sample"], thresholds, appears, relation=REPLACE)
    wider = replaced_last(records((3, 0, 1), (5, 1, 1), (7, 1, 1)), 12, 1, "the largest point goes from 7 to 12")
    yield broken(MUTANTS["grid_from_data_range"], thresholds, wider, relation=REPLACE)
    flip = flipped_last(records((0, 0, 3)), "three records (0, 0), the last label flipped")
    yield from broken_and_deviating(MUTANTS["weighted_by_parameters"], intervals, flip, relation=REPLACE)


def _classes() -> list[tuple[str, HypothesisClass, int]]:
    """Classes, and how many labelings they are said to have."""
    small: list[tuple[str, HypothesisClass, int]] = []
    for m in (2, 5, 30):
        small += [
            (f"thresholds, {m} points", ThresholdFunctions(m), m + 1),
            (f"intervals, {m} points", IntervalFunctions(m), 1 + m * (m + 1) // 2),
            (f"points, {m} points", PointFunctions(m), m),
        ]
    return [*small, ("rectangles, 4 by 5 points", RectangleFunctions(4, 5), 1 + 10 * 15)]


def _count_distinct(hypotheses: HypothesisClass) -> int:
    return int(np.unique(hypotheses.labels(np.arange(hypotheses.domain)), axis=1).shape[1])


def _counts() -> Iterator[Draft]:
    yield inequality(
        lambda: [(name, _count_distinct(hypotheses), count) for name, hypotheses, count in _classes()],
        statement="distinct labelings: m + 1 by thresholds, 1 + m (m + 1) / 2 by intervals, m by points",
        relation="==",
        level="L4",
        case="numbers_of_labelings",
        derived=True,
    )
    yield inequality(
        lambda: [
            row
            for name, hypotheses, _ in _classes()
            for m, v in [(hypotheses.domain, hypotheses.dimension)]
            for row in [
                (f"{name}: Sauer", hypotheses.size, sauer(m, v)),
                (f"{name}: |X|^v", sauer(m, v) - 1, float(m) ** v),
            ]
        ],
        statement="|H| <= sum over i <= v of C(|X|, i), and that less 1 is at most |X|^v",
        level="L4",
        case="sauer",
        derived=True,
    )


# ----------------------------------------------------------------------------------- sample sizes


def _doctors() -> FiniteExampleDistribution:
    """Who visits a doctor, by the index of chronic diseases: all persons, of whom any threshold gets many wrong."""
    found, counts = np.unique(persons(), axis=0, return_counts=True)
    return FiniteExampleDistribution(ThresholdFunctions(59), found, counts / counts.sum())


def _noisy_interval() -> FiniteExampleDistribution:
    """Sixteen points, uniformly, labelled by the interval 4, .. 11, with a fifth of all labels flipped."""
    inside = ((np.arange(16) >= 4) & (np.arange(16) < 12)).astype(np.int64)
    found = np.concatenate([np.stack([np.arange(16), y], axis=1) for y in (inside, 1 - inside)]).astype(np.int64)
    return FiniteExampleDistribution(IntervalFunctions(16), found, np.repeat([0.05, 0.0125], 16))


def _threshold() -> FiniteExampleDistribution:
    """Sixty-four points, uniformly, with label 1 from point 32 on."""
    found = np.stack([np.arange(64), np.arange(64) >= 32], axis=1).astype(np.int64)
    return FiniteExampleDistribution(ThresholdFunctions(64), found, np.full(64, 1.0 / 64.0))


def _logarithm(hypotheses: HypothesisClass) -> float:
    return hypotheses.dimension * math.log(hypotheses.domain)


def _sizes() -> Iterator[Draft]:
    for case, examples, epsilon, alpha in (
        ("thresholds_doctors", _doctors(), 0.1, 0.05),
        ("noisy_interval", _noisy_interval(), 1.0, 0.1),
    ):
        size = up(agnostic_bound(_logarithm(examples.hypotheses), epsilon, alpha, _BETA))
        learner = FreshLearner(epsilon, size)
        yield learns(learner, examples, alpha=alpha, beta=_BETA, case=case, draws=_DRAWS, derived=True)
    consistent = _threshold()
    size = up(realizable_bound(_logarithm(consistent.hypotheses), 0.5, 0.1, _BETA))
    yield learns(
        FreshLearner(0.5, size), consistent, alpha=0.1, beta=_BETA, case="threshold", draws=_DRAWS, derived=True
    )
    # Only points have many hypotheses just above alpha, whatever the domain: with thresholds n* saturates.
    epsilon, alpha, at = 0.05, 0.1, [math.log(m) for m in (4, 16, 256, 65_536)]
    yield scaling(
        lambda h: _least_for_points(round(math.exp(h)), epsilon, alpha),
        parameter="ln|X|",
        at=at,
        exponent=1.0,
        others=(0.5, 2.0),
        log_factor=_factor,
        measure=Exactly("exact least n"),
        curve=lambda h: agnostic_bound(h, epsilon, alpha, _BETA) + 1.0,
        both=True,
        case="n_by_domain",
        derived=True,
        note="points; ln(|X| - 1) + ln(1/beta) is taken as ln|X| times a factor",
    )
    yield scaling(
        lambda h: by_size(identical_agnostic(round(math.exp(h)), alpha), alpha, epsilon),
        parameter="ln|X|",
        at=at,
        exponent=1.0,
        others=(0.5, 2.0),
        log_factor=_factor,
        measure=Smallest(_BETA, low=200.0, high=2.0 * agnostic_bound(at[-1], epsilon, alpha, _BETA)),
        curve=lambda h: agnostic_bound(h, epsilon, alpha, _BETA) + 1.0,
        within=0.1,
        case="n_by_domain_drawn",
        draws={"smoke": 60_000, "standard": 400_000},
        derived=True,
    )


def _factor(h: float) -> float:
    """``(ln(|X| - 1) + ln(1/beta)) / ln|X|`` at h = ln|X|."""
    return (math.log(round(math.exp(h)) - 1) - math.log(_BETA)) / h


@cache
def _least_for_points(points: int, epsilon: float, alpha: float) -> int:
    examples = identical_agnostic(points, alpha)
    enough = up(agnostic_bound(math.log(points), epsilon, alpha, _BETA))
    return least_size(lambda size: examples.failure(FreshLearner(epsilon, size), alpha), _BETA, enough)


# ------------------------------------------------------------------------ private learners that fail


def _unanimous_records(n: int, label: int) -> IntArray:
    return records((0, label, n))


def least_failure(hypotheses: int, epsilon: float, n: int) -> float:
    """``(K - 1) e^(-eps n / 2) / (1 + (K - 1) e^(-eps n / 2))``."""
    odds = (hypotheses - 1) * math.exp(-0.5 * epsilon * n)
    return odds / (1.0 + odds)


@dataclass(frozen=True)
class _IsRight:
    """1 where the point that all records are at is chosen, so that it is a failure to be right."""

    def __call__(self, outputs: IntArray) -> FloatArray:
        return np.asarray(np.asarray(outputs) == 0, dtype=np.float64)


@entry(
    "002/dp_nonzero_error",
    title="Private learners must sometimes fail",
    source=Source("002", "footnote 6"),
)
def nonzero_error() -> Iterator[Draft]:
    """Sixteen points, and databases that are as far apart as they can be: all labels are flipped.

    The footnote gives no bound; group privacy gives ``P[o on z] >= e^(-eps n) P[o on z'']`` for databases of n records.
    """
    n, learner = 3, AgnosticLearner(PointFunctions(16), 1.0)
    far = Pair(_unanimous_records(n, 0), _unanimous_records(n, 1), "three records (0, 0), against three records (0, 1)")
    yield from reference(learner, PureDP(float(n)), far, case="all_records_replaced", relation=Group(n), follows=False)
    near = flipped_last(_unanimous_records(n, 1), "three records (0, 1), the last label flipped")
    yield from reference(learner, _ONE, near, case="one_record_replaced", relation=REPLACE, follows=False)
    never = MUTANTS["never_fails"]
    crossing = flipped_last(records((0, 1, 1)), "one record (0, 1), whose label is flipped")
    yield broken(never, learner, crossing, relation=REPLACE)

    yield inequality(
        _all_databases,
        statement="(K - 1) e^(-eps n / 2) / (1 + (K - 1) e^(-eps n / 2)) <= P[another hypothesis than h is chosen], "
        "for every database and every h",
        level="L4",
        case="least_failure",
        derived=True,
        note="the least probability over all h and all databases of n records, up to order",
    )
    yield inequality(
        _by_group_privacy,
        statement="e^(-eps n) P[o on z''] <= P[o on z] for every o, and all databases z and z'' of n records",
        level="L4",
        case="group_privacy",
        derived=True,
        note="the worst of all o, z and z''",
    )
    size = 6
    bound = least_failure(16, 1.0, size)
    for case, audited, mistake in (
        ("fails_as_often_as_it_must", learner, ""),
        ("never_fails", never.build(learner), never.note),
    ):
        yield accuracy(
            audited,
            _unanimous_records(size, 1),
            _IsRight(),
            at_most=0.0,
            beta=1.0 - bound,
            exact=1.0 if mistake else 1.0 - bound,
            # Being right so much more often than allowed is to be seen; half of the way to never failing.
            detect=1.0 - 0.5 * bound,
            case=case,
            expected="deviation" if mistake else "consistent",
            is_mutant=bool(mistake),
            derived=True,
            note=mistake or "six records that all say the same: the learner has to be wrong with probability 0.43",
            parameters={"K": 16, "n": size, "eps": 1.0},
        )


@cache
def _distributions(k: int, n: int, epsilon: float) -> FloatArray:
    """Distributions on all databases of n records, up to order; shape (databases, k)."""
    learner = AgnosticLearner(PointFunctions(k), epsilon)
    every = list(itertools.product(range(k), (0, 1)))
    databases = itertools.combinations_with_replacement(every, n)
    return np.array([learner.probabilities(np.array(rows)) for rows in databases])


_SMALL = [(k, n, epsilon) for k in (2, 3) for n in (1, 2, 3) for epsilon in (0.1, 1.0, 3.0)]


def _all_databases() -> list[Row]:
    return [
        (
            f"K = {k}, n = {n}, eps = {epsilon:g}",
            least_failure(k, epsilon, n),
            1.0 - float(_distributions(k, n, epsilon).max()),
        )
        for k, n, epsilon in _SMALL
    ]


def _by_group_privacy() -> list[Row]:
    """In each row the o for which the two sides are closest."""
    rows: list[Row] = []
    for k, n, epsilon in _SMALL:
        laws = _distributions(k, n, epsilon)
        o = int((laws.max(axis=0) / laws.min(axis=0)).argmax())
        most, least = float(laws[:, o].max()), float(laws[:, o].min())
        rows.append((f"K = {k}, n = {n}, eps = {epsilon:g}", math.exp(-epsilon * n) * most, least))
    return rows
