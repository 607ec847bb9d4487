"""How many subset counts two candidates share, for the reconstruction from 51 % of them."""

from __future__ import annotations

import math

import pytest

from experiments.document_003_bellairs_lectures.robust_decoding import shared_part


def test_a_part_of_a_hundred_places_by_exact_integers() -> None:
    for places in (99, 100, 101):
        for away in (0, 1, 7):
            sums = [
                sum(math.comb(places, v) for v in range(max(0, b - away), min(places, b + away) + 1))
                for b in range(places + 1)
            ]
            assert shared_part(places, away + 0.5) == pytest.approx(max(sums) / 2**places, rel=1e-12)


@pytest.mark.parametrize("places", [10**8, 10**10])
def test_a_part_of_many_places_by_stirling(places: int) -> None:
    """The middle of binomial coefficients is flat over a window far below the root of the places."""
    assert shared_part(places, 20.0) == pytest.approx(41 * math.sqrt(2 / (math.pi * places)), rel=1e-4)
