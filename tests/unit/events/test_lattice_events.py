"""Events on lattices: which multiples the outputs of the two datasets are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import Pair, PureDP, audit
from auditor.events.features import Lattice
from auditor.events.fitting import learn_lattices

RNG = np.random.default_rng(0)


def test_the_distance_is_that_to_the_nearest_point_of_the_lattice() -> None:
    lattice = Lattice(4.0, 1.0)
    np.testing.assert_array_equal(
        lattice(np.array([1.0, 5.0, -3.0, 2.0, 4.5, 3.0, np.nan])), [0, 0, 0, 1, 0.5, 2, np.nan]
    )
    assert lattice.below(0.0) == "output is 1 plus a multiple of 4"
    assert Lattice(0.5, 0.0).above(0.0) == "output is not a multiple of 0.5"


def test_each_output_is_read_by_itself() -> None:
    lattice, values = Lattice(0.75, 0.25), RNG.integers(-1000, 1000, 200) / 8
    alone = np.concatenate([lattice(values[k : k + 1]) for k in range(len(values))])
    np.testing.assert_array_equal(lattice(values), alone)


def test_the_lattice_of_one_dataset_is_learned_where_the_other_leaves_it() -> None:
    noise = RNG.integers(-50, 50, (2, 200)).astype(float)
    found = learn_lattices(noise[0] + 0.25, noise[1] + 0.75)
    assert set(found) == {Lattice(1.0, 0.25), Lattice(1.0, 0.75)}
    assert learn_lattices(noise[0], noise[1]) == []  # one lattice for both
    assert learn_lattices(3 * noise[0], noise[1]) == [Lattice(3.0, 0.0)]


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (RNG.normal(size=50), RNG.normal(size=50)),  # doubles of full precision
        (np.array([1.0, np.nan]), np.array([1.0, 2.0])),
        (np.array([np.inf, 1.0]), np.array([1.0, 2.0])),
        (np.zeros(5), np.zeros(5)),
        (np.full(5, 3.0), np.full(5, 3.0)),
        (np.array([1e300, 1.0]), np.array([1.0, 2.0])),
        (np.array([True, False]), np.array([False, True])),
    ],
)
def test_outputs_without_a_lattice_of_their_own_give_none(x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    assert learn_lattices(x, y) == []


def test_noise_that_was_rounded_before_adding_is_found_at_once() -> None:
    # Lattices without a common point, and so few equal outputs that symbols say nothing: 8 draws to learn, and then
    # every draw is on its side. 200 draws a side miss it with probability far below 1e-6.
    def coarse(data: NDArray[np.float64], n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.asarray(data[0] + np.rint(rng.laplace(scale=1000.0, size=n)))

    pair = Pair(np.array([0.25]), np.array([0.75]))
    found = audit(coarse, PureDP(1.0), pair, draws=400)
    assert found.verdict == "violation"
    assert "plus a multiple of 1" in str(found.event)
