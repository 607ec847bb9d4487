"""The mean that is estimated from randomised response, what is published of the other rows, and levels in numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.exact import curve
from mechanisms.local_model.randomized_response import (
    EstimateError,
    OtherRows,
    RandomizedResponse,
    estimated_mean,
    undivided_mean,
)

BITS = np.array([1, 0, 1, 1, 0, 0, 0, 1])
PARAMETERS = [0.1, 0.5, 0.9]


def every_output(mechanism: RandomizedResponse) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """All outputs on `BITS`, shape (256, 8), and their probabilities."""
    outputs = ((np.arange(2**BITS.size)[:, None] >> np.arange(BITS.size)) & 1).astype(np.uint8)
    kept = outputs == BITS
    return outputs, np.where(kept, mechanism.keep, 1 - mechanism.keep).prod(axis=1)


@pytest.mark.parametrize(("parameter", "level"), [(0.1, 0.2007), (0.5, 1.0986), (0.9, 2.944)])
def test_levels_in_numbers_of_the_catalogue(parameter: float, level: float) -> None:
    mechanism = RandomizedResponse(parameter)
    moved = BITS.copy()
    moved[0] = 0
    # Printed with four digits.
    assert curve(mechanism.law(BITS), mechanism.law(moved)).epsilon(0.0) == pytest.approx(level, rel=3e-4)


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_mean_and_variance_of_the_estimate_by_enumeration(parameter: float) -> None:
    outputs, mass = every_output(RandomizedResponse(parameter))
    estimates = estimated_mean(outputs, parameter)
    assert float(mass @ estimates) == pytest.approx(BITS.mean(), rel=1e-12)
    squared = EstimateError(parameter, float(BITS.mean()), squared=True)(outputs)
    # The same whatever the bits are: (1 - parameter^2) / (4 parameter^2 n).
    assert float(mass @ squared) == pytest.approx((1 - parameter**2) / (4 * parameter**2 * BITS.size), rel=1e-12)
    # Undivided, it estimates the parameter times the mean.
    assert float(mass @ undivided_mean(outputs, parameter)) == pytest.approx(parameter * BITS.mean(), rel=1e-12)
    largest = EstimateError(parameter, 0.0)(outputs).max()
    assert largest == pytest.approx((1 + parameter) / (2 * parameter))


@pytest.mark.parametrize("parameter", PARAMETERS)
@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-3])
def test_hoeffdings_bound_by_enumeration(parameter: float, beta: float) -> None:
    outputs, mass = every_output(RandomizedResponse(parameter))
    errors = EstimateError(parameter, float(BITS.mean()))(outputs)
    assert float(mass[errors > math.sqrt(math.log(2 / beta) / (2 * BITS.size)) / parameter].sum()) <= beta


def test_what_is_published_of_the_other_rows() -> None:
    mechanism, n = RandomizedResponse(0.5), 40_000
    others = OtherRows(mechanism, 2)
    assert others.law(BITS).parts == mechanism.law(np.delete(BITS, 2)).parts
    moved = BITS.copy()
    moved[2] = 0
    assert others.law(moved) == others.law(BITS)
    outputs = others(BITS, n, np.random.default_rng(8))
    assert outputs.shape == (n, BITS.size - 1)
    for ones, bit in zip(outputs.sum(axis=0).tolist(), np.delete(BITS, 2).tolist(), strict=True):
        # Exact two-sided tests at 1e-7 over all seven coordinates together.
        assert stats.binomtest(ones, n, 0.75 if bit else 0.25).pvalue > 1e-7 / 7
