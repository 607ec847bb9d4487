"""Votes of teachers on points of several classes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mechanisms.teacher_ensembles.classification_queries import ClassificationSizes, fewest_queries
from mechanisms.teacher_ensembles.several_classes import MislabelledClasses, count_votes, draw_shifts


def test_votes_by_a_loop() -> None:
    rng = np.random.default_rng(0)
    for classes in (2, 3, 5):
        shifts, points = rng.random((7, classes - 1)) / classes, rng.random(40)
        expected = np.zeros((40, classes), dtype=np.int64)
        for i, point in enumerate(points):
            for row in shifts:
                thresholds = [(j + 1) / classes + shift for j, shift in enumerate(row)]
                expected[i, sum(point > t for t in thresholds)] += 1
        assert count_votes(points, shifts).tolist() == expected.tolist()


def test_shifts_have_the_tails_of_distances_to_the_next_example() -> None:
    """A part of 200,000 teachers is off by more than 5.2 standard deviations with a probability below 1e-6 in all."""
    n, examples = 200_000, 12
    for classes, above in ((2, (0.1,)), (3, (0.05, 0.1)), (4, (0.02, 0.0, 0.05))):
        shifts = draw_shifts(classes, examples, n, np.random.default_rng(classes))
        assert shifts.shape == (n, classes - 1)
        assert float(shifts.max()) <= 1 / classes
        p = (1 - sum(above)) ** examples
        found = float((shifts > np.array(above)).all(axis=1).mean())
        assert abs(found - p) <= 5.2 * math.sqrt(p * (1 - p) / n)


def test_teachers_of_many_examples_miss_no_point() -> None:
    sizes = ClassificationSizes(fewest_queries(0.1, 0.1), 0.1)
    run = MislabelledClasses(sizes, 3)
    # The part with fewer than 2/3 of the votes is below 2 alpha here, and T is 0.455 m.
    assert (run(None, 3, np.random.default_rng(0)) <= sizes.cutoff).all()
    with pytest.raises(ValueError, match="at least 2 classes, got 1"):
        MislabelledClasses(sizes, 1)
    with pytest.raises(ValueError, match=r"a gamma of 0, got 0\.1"):
        MislabelledClasses(ClassificationSizes(2000, 0.05, 0.1), 3)
