"""Document 004, Theorem 5.6: when every soft-label query is answered."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy import Exactly
from auditor.claims import Draft, Erratum, Source, accuracy, as_corrected, as_printed, entry, scaling
from experiments.document_004_model_agnostic._soft_votes import QUARTERS, shifted_only, stable, unstable
from mechanisms.base.mechanism import FloatArray
from mechanisms.teacher_ensembles.soft_ensembles import EchoEnsemble
from mechanisms.teacher_ensembles.soft_labels import SoftLabels, corrected, printed

#: beta of the claims, and epsilon and delta of Theorem 5.6's counterexample.
_BETA, _EPSILON, _DELTA = 0.1, 1.0, 0.01
#: By the exact distribution of the run.
_NEEDED = Exactly("smallest gap at which all queries are answered with probability 1 - beta")

_ERR3 = Erratum(
    "ERR-3",
    "false",
    "Theorem 5.6 says that Algorithm 6 answers all m queries if at most T of them are unstable "
    "over the plain partition.",
    fails="queries that are unstable over both partitions cost 2: after floor(T/2) + 1 of them the run halts, and "
    "stable queries are not answered",
    correction="all are answered if the unstable ones, those over both partitions counted twice, are at most T, or "
    "with a loop that runs while c <= 2T",
)


@dataclass(frozen=True)
class WrongMidpoints:
    """How many of the stable queries are not answered with their midpoint.

    Parameters
    ----------
    expected : tuple of int
        For each query its midpoint, in units of gamma/2; 0 for a query that is unstable over both partitions.
    """

    expected: tuple[int, ...]

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        """Numbers for n runs, shape (n, m)."""
        wanted = np.array(self.expected)
        return np.asarray(((np.asarray(outputs) != wanted) & (wanted > 0)).sum(axis=1), dtype=np.float64)


def printed_distance(epsilon: float, delta: float, cutoff: int, queries: int, beta: float) -> float:
    """Theorem 5.6's d: ``32 ln(8 m T / min(delta, beta)) sqrt(4 T ln(2/delta)) / epsilon``."""
    log = math.log(8.0 * queries * cutoff / min(delta, beta))
    return 32.0 * log * math.sqrt(4.0 * cutoff * math.log(2.0 / delta)) / epsilon


def sharper_distance(run: SoftLabels, queries: int, beta: float) -> float:
    """``w + 2 lambda ln(2 m / (3 beta))``: each of the tests that are to pass fails with probability `tail` at most."""
    return run.threshold + 2.0 * run.scale * math.log(2.0 * queries / (3.0 * beta))


@entry(
    "004/slq_utility",
    title="When every soft-label query is answered",
    source=Source("004", "Theorem 5.6"),
    errata=[_ERR3],
)
def utility() -> Iterator[Draft]:
    """Two unstable queries and then two stable ones at T = 2; and the theorem where its condition is right."""
    votes = 4000  # more than d = 1826
    data = np.stack([unstable(votes)] * 2 + [stable(votes, votes)] * 2, axis=1)
    as_it_is = printed(EchoEnsemble(), QUARTERS, _EPSILON, _DELTA, 2, 4)
    doubled = corrected(EchoEnsemble(), QUARTERS, _EPSILON, _DELTA, 2, 4)
    error = WrongMidpoints((0, 0, 3, 3))
    for case, run in (("printed_threshold", as_it_is), ("corrected_threshold", doubled)):
        draft = _claim_stable_answered(run, data, error, case, expected="deviation")
        yield as_printed("ERR-3", draft)
    yield as_corrected("ERR-3", _claim_stable_answered(replace(doubled, cutoff=4), data, error, "loop_to_2t"))

    # One query that is unstable over both partitions, one over the plain one only, ten that are stable: 2 + 1 = T.
    cutoff, queries = 3, 12
    run = corrected(EchoEnsemble(), QUARTERS, _EPSILON, _DELTA, cutoff, queries)
    error = WrongMidpoints((0, 2, *[3] * (queries - 2)))
    for case, distance in (
        ("right_condition", printed_distance(_EPSILON, _DELTA, cutoff, queries, _BETA)),
        ("right_condition_sharper_d", sharper_distance(run, queries, _BETA)),
    ):
        votes = 2 * math.ceil((distance + 1) / 2)  # all of them for one bin: the least even gap, which is above d
        answered = [shifted_only(votes)] + [stable(votes, votes)] * (queries - 2)
        data = np.stack([unstable(votes), *answered], axis=1)
        draft = _claim_stable_answered(run, data, error, case, derived=case.endswith("sharper_d"))
        yield as_corrected("ERR-3", draft)
    yield from _exponents()


def _claim_stable_answered(
    run: SoftLabels, data: FloatArray, error: WrongMidpoints, case: str, **options: Any
) -> Draft:
    """With probability 1 - beta all stable queries are answered with their midpoints."""
    right = 0.0
    unstable = error.expected.count(0)
    rest = [1 if value % 2 == 0 else 0 for value in error.expected[unstable:]]
    for how in np.ndindex(*[3] * unstable):
        decided = [*map(int, how), *rest]
        if sum(decided[:-1]) <= run.cutoff:  # 0, 1 and 2 are also what they cost
            right += run.probability(data, decided)
    return accuracy(run, data, error, at_most=0, beta=_BETA, exact=max(0.0, 1.0 - right), case=case, **options)


def _needed_gap(epsilon: float, cutoff: int, queries: int) -> float:
    """The smallest even gap, of all queries, at which all of them are answered with probability 1 - beta: exact."""
    run = printed(EchoEnsemble(), QUARTERS, epsilon, _DELTA, cutoff, queries)

    def answered(half: int) -> float:
        return run.probability(np.stack([stable(2 * half, 2 * half)] * queries, axis=1), [0] * queries)

    half = bisect_left(range(math.ceil(run.threshold + 40.0 * run.scale)), 1.0 - _BETA, key=answered)
    return 2.0 * half


def _exponents() -> Iterator[Draft]:
    """The gap that is needed, against the printed d, whose logarithm is divided out where it depends on a parameter."""
    cutoff, queries = 4, 20
    yield scaling(
        lambda t: _needed_gap(_EPSILON, int(t), queries),
        parameter="T",
        at=(1, 4, 16),
        exponent=0.5,
        log_factor=lambda t: math.log(8.0 * queries * t / _DELTA),
        measure=_NEEDED,
        curve=lambda t: printed_distance(_EPSILON, _DELTA, int(t), queries, _BETA),
        criterion=False,
        case="cutoff",
    )
    yield scaling(
        lambda epsilon: _needed_gap(epsilon, cutoff, queries),
        parameter="eps",
        at=(0.1, 0.3, 1.0, 3.0, 10.0),
        exponent=-1.0,
        measure=_NEEDED,
        curve=lambda epsilon: printed_distance(epsilon, _DELTA, cutoff, queries, _BETA),
        criterion=False,
        case="epsilon",
    )

    def asked(log: float) -> int:
        return round(math.exp(log) * _DELTA / (8.0 * cutoff))

    yield scaling(
        lambda log: _needed_gap(_EPSILON, cutoff, asked(log)),
        parameter="ln(8 m T / delta)",
        at=tuple(math.log(8.0 * m * cutoff / _DELTA) for m in (5, 15, 45)),
        exponent=1.0,
        measure=_NEEDED,
        curve=lambda log: printed_distance(_EPSILON, _DELTA, cutoff, asked(log), _BETA),
        criterion=False,
        case="queries",
    )
