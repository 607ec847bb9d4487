"""Levels of noise whose scale tells a size, against integrals and samples."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from benchmarks.noise_scales import DELTA, find_delta, find_level, main


@pytest.mark.parametrize(("size", "epsilon"), [(1, 0.1), (1, 2.0), (10, 0.05), (10, 0.3), (100, 0.01)])
def test_one_coordinate_is_the_integral(size: int, epsilon: float) -> None:
    wide, narrow = stats.norm(scale=1 / size), stats.norm(scale=1 / (size + 1))

    def integral(p: Any, q: Any) -> float:
        def excess(x: float) -> float:
            return float(max(p.pdf(x) - math.exp(epsilon) * q.pdf(x), 0.0))

        points = np.linspace(0.0, 12.0 / size, 80)
        return 2 * sum(integrate.quad(excess, a, b)[0] for a, b in itertools.pairwise(points))

    assert find_delta(epsilon, size, 1) == pytest.approx(max(integral(wide, narrow), integral(narrow, wide)), abs=1e-6)


def test_eight_coordinates_of_one_row_and_two_are_those_of_the_case() -> None:
    # corpus/cases/opacus/drawn_batch.py counts norms above 8 of noise 4 and 2, of gradients that hardly matter.
    rng = np.random.default_rng(3)
    norms = [(rng.normal(scale=scale, size=(200_000, 8)) ** 2).sum(axis=1) for scale in (1.0, 0.5)]
    level, t = 3.0, (3.0 + 8 * math.log(2)) / 1.5
    shares = [float((squares > t).mean()) for squares in norms]
    assert find_delta(level, 1, 8) == pytest.approx(shares[0] - math.exp(level) * shares[1], abs=0.02)


def test_the_level_is_where_delta_is_reached() -> None:
    for size, dimension in ((1, 1), (10, 100), (1_000, 10_000)):
        level = find_level(size, dimension)
        assert find_delta(level, size, dimension) == pytest.approx(DELTA, rel=1e-4)
    assert find_level(1, 100) > find_level(10, 100) > find_level(1_000, 100) > 0
    assert math.isinf(find_level(1, 1_000_000))


def test_the_page_is_current() -> None:
    page = Path("reports/noise_scales.md")
    kept = page.read_text(encoding="utf-8")
    assert main(["--out", str(page)]) == 0
    assert page.read_text(encoding="utf-8") == kept
