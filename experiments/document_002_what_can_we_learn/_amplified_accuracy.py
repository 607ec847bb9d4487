"""Accuracy of A* at its corrected parameters, and of its noisy error estimates; used by `amplified`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy import Setting
from auditor.claims import Draft, accuracy, proof_step, smallest, statement_holds
from auditor.privacy.exact import TwoSidedGeometricLaw
from mechanisms.base.mechanism import FloatArray
from mechanisms.learning.amplified_fresh import (
    FreshAmplified,
    ParityErrorDistribution,
    SparseBits,
    TrueErrorOfHypothesis,
    UniformBits,
    code_of,
)
from mechanisms.learning.amplified_parity import ParityErrors, TargetLabels, corrected
from mechanisms.learning.amplified_selection import NoisyErrorCounts
from mechanisms.learning.boosting import TrainTestSplit
from mechanisms.learning.boosting_parts import FixedErrors, errors_of

#: The catalogue's reference parameters.
EPSILON, ALPHA, BETA = 0.5, 0.1, 0.1
#: Lattice steps an error where the theorem's Laplace noise is followed; 16 steps miss its tails by 0.1 %.
_FINE = 16


def fresh(distribution: ParityErrorDistribution, split: TrainTestSplit, *, choice_only: bool = False) -> FreshAmplified:
    """A* on fresh samples, with its noise, or that for the release of the choice alone."""
    level = EPSILON / (2.0 if choice_only else split.rounds)
    return FreshAmplified(EPSILON, split, NoisyErrorCounts(level, _FINE), distribution)


def target(d: int) -> NDArray[np.uint8]:
    """The bits of a parity: every other one."""
    return (np.arange(d) % 2).astype(np.uint8)


def true_error(distribution: ParityErrorDistribution) -> TrueErrorOfHypothesis:
    """Error of a hypothesis for that target."""
    return TrueErrorOfHypothesis(distribution, code_of(target(distribution.d), distribution.d))


def accuracy_claims() -> Iterator[Draft]:
    """Failures at the corrected sample size, and the smallest size that works."""
    cases: list[tuple[str, ParityErrorDistribution, float]] = [
        ("uniform_bits", UniformBits(10), BETA),
        ("sparse_bits", SparseBits(10, 4.0 * ALPHA), BETA),
        ("uniform_bits_small_beta", UniformBits(10), 0.01),
    ]
    for case, distribution, beta in cases:
        split = corrected(distribution.d, EPSILON, ALPHA, beta)
        yield accuracy(
            fresh(distribution, split),
            target(distribution.d),
            true_error(distribution),
            at_most=ALPHA,
            beta=beta,
            case=case,
            draws={"smoke": 4_000, "standard": 10_000},
            derived=True,
            # The draws of one of them are tested.
            independence=case == "uniform_bits",
            parameters={"k": split.rounds, "n'": split.rows, "s": split.tests, "n": split.needed},
            note="corrected parameters; every draw has a sample of its own",
        )
    hard = SparseBits(8, 4.0 * ALPHA)
    yield smallest(
        lambda total: Setting(fresh(hard, _split_of_size(hard.d, total)), target(hard.d), true_error(hard), ALPHA),
        parameter="samples",
        claimed=corrected(hard.d, EPSILON, ALPHA, BETA).needed,
        beta=BETA,
        low=corrected(hard.d, EPSILON, ALPHA, BETA).needed / 200,
        case="samples_needed",
        draws={"smoke": 6_000, "standard": 20_000},
        derived=True,
        note="blocks and test part are cut by the same factor; sparse bits, the hardest distribution here",
    )


def _split_of_size(d: int, total: int) -> TrainTestSplit:
    """The corrected split with all parts but the number of runs cut so that the sample has about this size."""
    full = corrected(d, EPSILON, ALPHA, BETA)
    part = total / full.needed
    return TrainTestSplit(full.rounds, max(1, round(part * full.rows)), max(1, round(part * full.tests)))


def estimate_claims() -> Iterator[Draft]:
    """E8: how far a noisy error is from the error; and a mutant that takes labels from the concept."""
    split, failure, step = corrected(10, EPSILON, ALPHA, BETA), BETA / 3.0, ALPHA / 5.0
    k, s = split.rounds, split.tests
    noise = NoisyErrorCounts(EPSILON / k, 1 << 10)
    hypotheses = ParityErrors(10)
    rng = np.random.default_rng(0)
    tests = rng.integers(0, 2, (s, 11), dtype=np.uint8)
    one = FixedErrors((1,), hypotheses, noise, EPSILON)
    away = ErrorRateDistance(tuple(_exact_errors(one, tests)), s, noise.fineness)
    beyond = _at_least(noise, step * s)
    yield proof_step(
        "E8",
        accuracy(
            one,
            tests,
            _IsCloser(away, step),
            at_most=0.0,
            beta=failure / k,
            exact=1.0 - beyond,
            expected="deviation",
            case="noise_below_alpha",
            draws={"smoke": 4_000, "standard": 20_000},
            parameters={"k": k, "s": s, "beta'/k": failure / k},
            note="as displayed: P[|noise| < alpha'] <= beta'/k",
        ),
    )
    yield statement_holds(
        "E8",
        accuracy(
            one,
            tests,
            away,
            at_most=step,
            beta=failure / k,
            strict=True,
            exact=beyond,
            case="noise_of_one_estimate",
            draws={"smoke": 40_000, "standard": 200_000},
            parameters={"k": k, "s": s, "beta'/k": failure / k},
            note="P[|noise| >= alpha'] <= beta'/k at the corrected size of the test part",
        ),
    )
    # Random labels are consistent with no concept: every hypothesis errs on about half of the rows.
    codes = tuple(range(k))
    some = FixedErrors(codes, hypotheses, noise, EPSILON)
    errors = ErrorRateDistance(tuple(_exact_errors(some, tests)), s, noise.fineness)
    yield accuracy(
        some,
        tests,
        errors,
        at_most=step,
        beta=failure,
        strict=True,
        exact=1.0 - (1.0 - beyond) ** k,
        case="noise_of_all_estimates",
        draws={"smoke": 4_000, "standard": 20_000},
        parameters={"k": k, "s": s, "beta'": failure},
        note="all k estimates at once, on labels that are consistent with no concept",
    )
    yield accuracy(
        replace(some, count=TargetLabels(10, 1)),
        tests,
        errors,
        at_most=step,
        beta=failure,
        strict=True,
        expected="deviation",
        case="labels_from_target_concept",
        is_mutant=True,
        draws={"smoke": 4_000, "standard": 20_000},
        note="errors against the concept's labels c(x), as step 5 displays them: they are not errors on the data",
    )


def _exact_errors(mechanism: FixedErrors, tests: NDArray[np.uint8]) -> list[int]:
    return [
        mechanism.selection.estimate(int(errors)).loc
        for errors in errors_of(mechanism.hypotheses, mechanism.count, tests)
    ]


def _at_least(noise: NoisyErrorCounts, errors: float) -> float:
    """Probability that the noise is so many errors or more, in either direction."""
    least = math.ceil(errors * noise.fineness)
    return 2.0 * float(TwoSidedGeometricLaw(0, noise.base).cdf(-least))


@dataclass(frozen=True)
class ErrorRateDistance:
    """Largest distance of a noisy error rate from the exact one.

    Parameters
    ----------
    centres : tuple of int
        Exact errors, in lattice steps.
    rows : int
        Test rows.
    fineness : int
        Lattice steps an error.
    """

    centres: tuple[int, ...]
    rows: int
    fineness: int

    def __call__(self, outputs: Any) -> FloatArray:
        """Distances of n releases of shape (n, k)."""
        away = np.abs(np.asarray(outputs, dtype=np.int64) - np.array(self.centres)).max(axis=1)
        return np.asarray(away / (self.rows * self.fineness), dtype=np.float64)


@dataclass(frozen=True)
class _IsCloser:
    """1 where a distance is below a bound, 0 where it is not."""

    distance: ErrorRateDistance
    bound: float

    def __call__(self, outputs: Any) -> FloatArray:
        """Indicators of n releases."""
        return np.asarray(self.distance(outputs) < self.bound, dtype=np.float64)
