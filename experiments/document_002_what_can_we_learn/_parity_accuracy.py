"""Accuracy of the parity learners: how often they succeed, and the sample size that it takes.

Both distributions of x have their success probabilities computed exactly, and drawn: see `learning.parity_samples`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy import Exactly, Figure, Setting, Smallest
from auditor.audits.inequality import Row
from auditor.claims import Draft, accuracy, inequality, scaling, smallest
from mechanisms.learning.parity import PrivateParityLearner, SubsetLearner
from mechanisms.learning.parity_samples import (
    InputDistribution,
    ParityError,
    ParityOnFreshSamples,
    SparseInputs,
    UniformInputs,
    least_size,
    lemma_size,
)

Bits = NDArray[np.uint8]

#: Step 1 fails half of the runs; the lemma allows three quarters.
_BETA = 0.75


def concept(d: int) -> Bits:
    """A parity of every other bit; which one it is does not matter."""
    return (np.arange(d) % 2).astype(np.uint8)


def error(d: int, x: InputDistribution) -> ParityError:
    return ParityError(tuple(concept(d).tolist()), x)


def name_of(x: InputDistribution) -> str:
    return "uniform" if isinstance(x, UniformInputs) else "sparse"


def probability(value: float) -> float:
    """Without the rounding of a sum over all sizes of a sample."""
    return min(max(value, 0.0), 1.0)


def by_rows(learner: SubsetLearner, x: InputDistribution, alpha: float) -> Callable[[int], Setting]:
    """From a sample size to the error of what is learned from it."""

    def build(rows: int) -> Setting:
        return Setting(ParityOnFreshSamples(learner, x, rows), concept(learner.d), error(learner.d, x), alpha)

    return build


def lemma() -> Iterator[Draft]:
    # Ten thousand hypotheses a second.
    few = {"smoke": 2_000, "standard": 20_000}
    for d, epsilon, alpha, x, draws in (
        (64, 0.5, 0.1, SparseInputs(0.4), None),
        (16, 0.1, 0.05, SparseInputs(0.2), None),
        (256, 0.5, 0.1, SparseInputs(0.4), few),
        (32, 0.5, 0.1, UniformInputs(), None),
    ):
        size = lemma_size(epsilon, alpha, d)
        fresh = ParityOnFreshSamples(PrivateParityLearner(epsilon, d), x, size)
        yield accuracy(
            fresh,
            concept(d),
            error(d, x),
            at_most=alpha,
            beta=_BETA,
            exact=probability(fresh.failure(alpha)),
            case=f"lemma_4_1_{name_of(x)}_{d}_bits",
            draws=draws,
            independence=draws is None,
            # Twice the allowed rate is no probability.
            detect=0.9,
            parameters={"d": d, "epsilon": epsilon, "rows": size},
        )
    yield inequality(
        _success,
        statement="1/4 <= P[err <= alpha] at the size of Lemma 4.1",
        level="L4",
        case="lemma_4_1_exact",
    )
    yield inequality(
        lambda: [(label, success, 0.5) for label, _, success in _success()],
        statement="P[err <= alpha] <= 1/2, the probability that step 1 goes on",
        level="L4",
        case="ceiling",
        derived=True,
    )
    yield smallest(
        by_rows(PrivateParityLearner(0.5, 16), SparseInputs(0.4), 0.1),
        parameter="rows",
        claimed=lemma_size(0.5, 0.1, 16),
        beta=_BETA,
        low=20,
        case="lemma_4_1_smallest",
    )


def _success() -> list[Row]:
    found: list[Row] = []
    for d in (4, 16, 64):
        for epsilon in (0.1, 0.5, 2.0):
            for alpha in (0.01, 0.1, 0.25):
                for x in (SparseInputs(4.0 * alpha), UniformInputs()):
                    fresh = ParityOnFreshSamples(PrivateParityLearner(epsilon, d), x, lemma_size(epsilon, alpha, d))
                    label = f"{name_of(x)} x, d = {d}, eps = {epsilon:g}, alpha = {alpha:g}"
                    found.append((label, 0.25, probability(1.0 - fresh.failure(alpha))))
    return found


def _figure(axis: str, curve: str) -> Figure:
    return Figure(f"Sample size of the private parity learner, by {axis}", curve, axis, "least sample size")


def least_sizes() -> Iterator[Draft]:
    """Exponents where the lemma's bound has them, and, for uniform x, where it is loose."""
    draws = {"smoke": 20_000, "standard": 200_000}
    d = 16
    yield scaling(
        lambda bits: least_size(PrivateParityLearner(0.5, int(bits)), SparseInputs(0.4), 0.1, _BETA),
        parameter="d",
        at=(64, 128, 256, 512),
        exponent=1.0,
        others=(0.5, 2.0),
        measure=Exactly("least sample size"),
        curve=lambda bits: lemma_size(0.5, 0.1, int(bits)),
        case="rows_by_bits",
        figure=_figure("bits d", "sparse x, by the exact distribution"),
        derived=True,
        note="x is a unit vector with probability 4 alpha, else 0; by the exact distribution of the learner's success",
    )
    yield scaling(
        lambda bits: by_rows(PrivateParityLearner(0.5, int(bits)), SparseInputs(0.4), 0.1),
        parameter="d",
        at=(32, 64, 128),
        exponent=1.0,
        others=(0.5, 2.0),
        measure=Smallest(_BETA, low=100.0, high=3_000.0),
        curve=lambda bits: lemma_size(0.5, 0.1, int(bits)),
        within=0.1,
        case="rows_by_bits_drawn",
        figure=_figure("bits d", "sparse x, by draws"),
        draws={"smoke": 6_000, "standard": 30_000},
        derived=True,
        note="the constant grows from 0.62 at d = 32 to 0.68 at d = 128",
    )
    yield scaling(
        lambda epsilon: by_rows(PrivateParityLearner(epsilon, d), SparseInputs(0.4), 0.1),
        parameter="eps",
        at=(0.1, 0.2, 0.4, 0.8),
        exponent=-1.0,
        others=(-2.0, -0.5),
        measure=Smallest(_BETA, low=20.0, high=4_000.0),
        curve=lambda epsilon: lemma_size(epsilon, 0.1, d),
        case="rows_by_eps",
        draws=draws,
        derived=True,
    )
    yield scaling(
        lambda alpha: by_rows(PrivateParityLearner(0.5, d), SparseInputs(4.0 * alpha), alpha),
        parameter="alpha",
        at=(0.01, 0.03, 0.1, 0.25),
        exponent=-1.0,
        others=(-2.0, -0.5),
        measure=Smallest(_BETA, low=20.0, high=6_000.0),
        curve=lambda alpha: lemma_size(0.5, alpha, d),
        case="rows_by_alpha",
        figure=_figure("error alpha", "sparse x"),
        draws=draws,
        derived=True,
    )
    yield scaling(
        lambda alpha: by_rows(PrivateParityLearner(0.5, d), UniformInputs(), alpha),
        parameter="alpha",
        at=(0.01, 0.05, 0.4),
        exponent=0.0,
        others=(-1.0, -0.5, 0.5),
        measure=Smallest(_BETA, low=20.0, high=1_000.0),
        curve=lambda alpha: lemma_size(0.5, alpha, d),
        case="rows_by_alpha_uniform",
        figure=_figure("error alpha", "uniform x"),
        draws=draws,
        derived=True,
        both=True,
        note="a wrong parity has error 1/2 under uniform x, whatever is allowed",
    )
    yield inequality(
        _constants,
        statement="least sample sizes are 0.56 to 0.69 d/(eps alpha) for sparse x, 3.5 to 4 d/eps for uniform x",
        level="L4",
        case="constants",
        derived=True,
    )


def _constants() -> list[Row]:
    """The catalogue's measured constants, each with the limits between which it says they are."""
    rows: list[Row] = []
    for epsilon in (0.1, 0.5):
        for bits in (16, 64):
            for alpha in (0.2, 0.05, 0.01):
                least = least_size(PrivateParityLearner(epsilon, bits), SparseInputs(4.0 * alpha), alpha, _BETA)
                label, unit = f"sparse, d = {bits}, eps = {epsilon:g}, alpha = {alpha:g}", bits / (epsilon * alpha)
                rows += [
                    (f"{label}, from below", 0.555, least / unit),
                    (f"{label}, from above", least / unit, math.log(2)),
                ]
        for bits in (4, 8, 16, 32):
            least = least_size(PrivateParityLearner(epsilon, bits), UniformInputs(), 0.1, _BETA)
            label, unit = f"uniform, d = {bits}, eps = {epsilon:g}", bits / epsilon
            rows += [(f"{label}, from below", 3.495, least / unit), (f"{label}, from above", least / unit, 4.0)]
    return rows
