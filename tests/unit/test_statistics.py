"""The statistics that tests share: fair at the nominal level, and not blind."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.privacy.exact import FiniteLaw
from tests.statistics import p_value, p_value_of_outputs

SKEWED = np.array([0.5, 0.3, 0.1999, 0.0001])


@pytest.mark.parametrize("mass", [SKEWED, np.array([0.9998, 0.0002])])
def test_p_values_are_seldom_small_under_the_null(mass: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    small = sum(p_value(rng.multinomial(20_000, mass), mass) <= 0.05 for _ in range(2_000))
    assert small <= 170  # expected at most 100; 170 lies 7 standard deviations above


def test_other_probabilities_are_noticed() -> None:
    counts = np.random.default_rng(4).multinomial(20_000, SKEWED)
    assert p_value(counts, [0.52, 0.28, 0.1999, 0.0001]) < 1e-6
    assert p_value([19_900, 100], [0.9998, 0.0002]) < 1e-6


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(AssertionError):
        p_value([99, 1], [1.0, 0.0])
    with pytest.raises(AssertionError):
        p_value_of_outputs([0, 0, 2], FiniteLaw((0, 1), np.array([0.5, 0.5])))
    with pytest.raises(AssertionError):
        p_value([3, 4], [0.5, 0.5])
    assert p_value_of_outputs(np.zeros((80, 2), dtype=int), FiniteLaw(((0, 0),), np.array([1.0]))) == 1.0
