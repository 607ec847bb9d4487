"""Prior estimates by normal fits: what they are, and where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.events.candidates import VAGUE, candidates_of
from auditor.events.features import Distance, LatticeExponent, Numeric
from auditor.events.normal_prior import add_priors
from auditor.targets.outputs import Batch

RNG = np.random.default_rng(11)
X, Y = RNG.normal(0, 2, 40), RNG.normal(1, 1, 40)


@pytest.mark.parametrize("side", ["below", "above"])
def test_half_lines_have_the_probabilities_of_the_fits(side: str) -> None:
    (group,) = (g for g in candidates_of(Numeric("value"), X, Y) if g.side == side)
    (found,) = add_priors(X, Y, [group])
    for prior, draws in ((found.prior.p, X), (found.prior.q, Y)):
        fit = stats.norm(draws.mean(), draws.std(ddof=1))
        expected = fit.cdf(group.cuts) if side == "below" else fit.sf(group.cuts)
        np.testing.assert_allclose(prior, np.clip(expected, 1e-4, 1 - 1e-4), rtol=1e-9)


def test_distances_have_the_probabilities_of_intervals() -> None:
    feature = Distance(0.3)
    group = candidates_of(feature, feature(X), feature(Y))[0]
    (found,) = add_priors(X, Y, [group])
    fit = stats.norm(X.mean(), X.std(ddof=1))
    expected = fit.cdf(0.3 + group.cuts) - fit.cdf(0.3 - group.cuts)
    np.testing.assert_allclose(found.prior.p, np.clip(expected, 1e-4, 1 - 1e-4), rtol=1e-9)


def test_counts_take_over() -> None:
    group = candidates_of(Numeric("value"), X, Y)[0]
    (found,) = add_priors(X, Y, [group])
    p, _ = found.prior.estimate(group.x, group.y, 40)
    np.testing.assert_allclose(p, (group.x + 24 * found.prior.p) / 64)
    p, _ = found.prior.estimate(1e6 * group.x, group.y, 40e6)
    np.testing.assert_allclose(p, group.x / 40, atol=1e-6)


def test_other_events_pay_for_not_being_rated_by_the_fit() -> None:
    first, second = (candidates_of(LatticeExponent(), X, Y)[0] for _ in range(2))
    first, second = add_priors(X, Y, [first, second])
    assert (first.prior, first.penalty) == (VAGUE, 3.0)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.zeros(40), Y),
        (np.repeat([1.0, 2.0], 20), np.repeat([1.0, 2.0], 20)),
        (np.full(40, np.inf), Y),
        (np.where(np.arange(40) == 3, np.nan, X), Y),
        (X[:, None], Y[:, None]),
        (list(X), list(Y)),
        (np.array(["a", "b"] * 20), np.array(["a", "b"] * 20)),
        (X > 0, Y > 0),
        (X[:1], Y[:1]),
        (np.sign(X) * 1.7e308, 1.7e308 * np.linspace(-1, 1, 40)),
    ],
    ids=["one value", "two values", "infinite", "missing", "rows", "lists", "texts", "bits", "one draw", "overflow"],
)
def test_outputs_that_no_normal_distribution_describes_have_no_prior(x: Batch, y: Batch) -> None:
    group = candidates_of(Numeric("value"), X, Y)[0]
    assert add_priors(x, y, [group]) == [group]
