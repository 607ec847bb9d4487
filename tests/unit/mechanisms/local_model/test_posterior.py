"""Posteriors against priors: the constants of the equivalence with differential privacy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from auditor.privacy.exact import FiniteLaw, Law, ProductLaw, TwoSidedGeometricLaw
from experiments.document_003_bellairs_lectures._posterior import (
    average_distance,
    distances,
    largest_distance,
    largest_move,
    likelihoods,
    posteriors,
    two_point_priors,
    worst_prior,
)
from mechanisms.local_model.randomized_response import from_epsilon

EPSILONS = [0.01, 0.1, 0.5, 1.0, 2.0, 5.0]


def response(epsilon: float, rows: int = 3) -> tuple[Law, Law]:
    """Distributions of randomised response on data that differ in the first bit."""
    mechanism = from_epsilon(epsilon)
    return mechanism.law([0] + [1] * (rows - 1)), mechanism.law([1] * rows)


def test_likelihoods_of_a_product_are_those_of_its_outcomes() -> None:
    table = likelihoods(response(1.0, 2))
    keep = math.e / (1 + math.e)
    # Outcomes 00, 01, 10, 11; the rows are 01 and 11.
    np.testing.assert_allclose(
        table,
        [
            [keep * (1 - keep), keep * keep, (1 - keep) ** 2, (1 - keep) * keep],
            [(1 - keep) ** 2, (1 - keep) * keep, keep * (1 - keep), keep * keep],
        ],
        rtol=1e-12,
    )


def test_likelihoods_join_outcomes_that_only_one_law_has() -> None:
    first, second = FiniteLaw(("a", "b"), np.array([0.25, 0.75])), FiniteLaw(("b", "c"), np.array([1.0, 0.0]))
    np.testing.assert_array_equal(likelihoods([first, second]), [[0.25, 0.75], [0.0, 1.0]])


def test_likelihoods_on_a_lattice() -> None:
    laws = [TwoSidedGeometricLaw(loc, 1.5) for loc in (3, 4)]
    table = likelihoods(laws)
    k = np.arange(-2, 10)
    for row, law in zip(table, laws, strict=True):
        np.testing.assert_allclose(row, np.diff(law.cdf(np.arange(-3, 10))), rtol=1e-10)
        np.testing.assert_allclose(row, 1.5 ** -np.abs(k - law.loc) * 0.5 / 2.5, rtol=1e-12)


def test_likelihoods_of_laws_of_two_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected distributions of one kind: .*, got \(FiniteLaw"):
        likelihoods((FiniteLaw((1,), np.ones(1)), ProductLaw((FiniteLaw((1,), np.ones(1)),))))


def test_posteriors_by_hand() -> None:
    # A test of sensitivity 0.9 and false-positive rate 0.2, prior 0.1: posterior 0.09 / 0.27.
    table = np.array([[0.9, 0.1], [0.2, 0.8]])
    found = posteriors((0.1, 0.9), table)
    np.testing.assert_allclose(found[0], [1 / 3, 0.01 / 0.73], rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=0), 1.0)
    np.testing.assert_allclose(distances((0.1, 0.9), table), [1 / 3 - 0.1, 0.1 - 0.01 / 0.73], rtol=1e-12)
    # An output that the prior makes impossible has no posterior.
    assert posteriors((1.0, 0.0), np.array([[1.0, 0.0], [0.5, 0.5]])).shape == (2, 1)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_randomised_response_moves_beliefs_by_tanh_of_a_quarter(epsilon: float) -> None:
    table = likelihoods(response(epsilon))
    assert float(distances(worst_prior(epsilon), table).max()) == pytest.approx(math.tanh(epsilon / 4), rel=1e-12)
    # Nothing beyond it on a fine grid, and the grid comes close.
    fine = largest_distance(table, two_point_priors(2001))
    assert fine <= math.tanh(epsilon / 4) * (1 + 1e-12)
    assert fine == pytest.approx(math.tanh(epsilon / 4), rel=1e-5)
    assert largest_distance(table, [(0.5, 0.5)]) == pytest.approx(math.tanh(epsilon / 2) / 2, rel=1e-12)
    assert largest_move(table, two_point_priors(99)) <= epsilon
    assert 4 * math.atanh(math.tanh(epsilon / 4)) == pytest.approx(epsilon)


def test_the_worst_ratio_is_the_worst_for_more_than_two_values() -> None:
    # Random likelihoods of four values whose ratios are within e^eps, and random priors: never beyond tanh(eps / 4).
    rng, epsilon = np.random.default_rng(11), 1.3
    for _ in range(200):
        table = np.exp(rng.uniform(0, epsilon, (4, 6)))
        prior = tuple(rng.dirichlet(np.ones(4)).tolist())
        assert float(distances(prior, table).max()) <= math.tanh(epsilon / 4)


def test_averaging_over_outputs_gives_the_prior_back() -> None:
    for prior in two_point_priors(5):
        assert average_distance(prior, likelihoods(response(3.0))) == pytest.approx(0.0, abs=1e-15)
