"""What a chain of two events gains over its best event alone, from exact distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor import ApproxDP, GaussianDP, PureDP
from auditor.evidence.power import divergence_rate
from auditor.evidence.two_sample_bet import CHAIN_SCALE, EXPERTS, Stake, find_spread, log_factors
from auditor.privacy.guarantees import Guarantee

#: So many draws that counts rounded to integers give growth rates to five digits.
MANY = 10**9


def growth(law: Any, shift: float, claim: Guarantee) -> tuple[float, float]:
    """Nats a draw of the best event alone and of the chain with its best partner, by the best plug-in expert."""
    cut = np.linspace(-8, 9, 6001)
    p, q = law.cdf(cut), law.cdf(cut - shift)
    rate = divergence_rate(p, q, claim, claim.level)
    low = p > 1 - q
    outer = int(np.argmax(np.where(low, rate, -1.0)))
    inner = int(np.argmax(np.where(low, -1.0, rate)))

    def counts(cdf: NDArray[np.float64]) -> tuple[int, ...]:
        cells = np.diff([0.0, cdf[inner], cdf[outer], 1.0])[::-1]
        return tuple(np.rint(MANY * cells).astype(int).tolist())

    best = 0 if rate[outer] > rate[inner] else 1
    stake = Stake(0, best, (p[outer], p[inner]), (q[outer], q[inner]), counts(p), counts(q))
    plug = [kind == "plug" for kind, _, _ in EXPERTS]
    alone, chain, every = log_factors([stake], claim, np.array([claim.level]))[0][:, plug, 0].max(axis=1) / MANY
    assert every == chain  # nothing is spread
    return float(alone), float(chain)


@pytest.mark.parametrize("scale", [0.5, 0.8, 0.95])
def test_a_chain_grows_nearly_half_as_fast_again_on_laplace_noise(scale: float) -> None:
    alone, chain = growth(stats.laplace(0, scale), 1.0, PureDP(1.0))
    assert 1.44 < chain / alone < 1.48


def test_a_chain_nearly_doubles_the_growth_on_the_tails_of_gaussian_noise() -> None:
    alone, chain = growth(stats.norm(0, 1.8653), 1.0, ApproxDP(1.0, 1e-5))
    # 1.97 at the best amount; 0.7 of the sum of amounts gives up (1 - 0.7)^2 of the growth, to second order.
    assert 1.97 * (1 - (1 - CHAIN_SCALE) ** 2) - 0.03 < chain / alone < 2.0


def test_a_chain_says_nothing_new_against_mu_and_costs_little() -> None:
    alone, chain = growth(stats.norm(0, 1.8653), 1.0, GaussianDP(0.4))
    # At the best amount both grow alike; 0.7 is 1.4 times that, and 0.6 of 0.7 is 0.84 times.
    assert 1 - (1 - 0.84) ** 2 - 0.02 < chain / alone < 1.01


def test_the_single_event_grows_at_its_divergence_rate() -> None:
    law, claim = stats.laplace(0, 0.5), PureDP(1.0)
    cut = np.linspace(-8, 9, 6001)
    best = divergence_rate(law.cdf(cut), law.cdf(cut - 1.0), claim, 1.0).max()
    alone, _ = growth(law, 1.0, claim)
    assert alone == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize(
    ("claim", "law"),
    [(PureDP(0.01), stats.norm(0, 1)), (PureDP(1.0), stats.laplace(0, 0.5)), (GaussianDP(0.4), stats.norm(0, 1))],
    ids=["epsilon 0.01", "epsilon 1", "mu 0.4"],
)
def test_a_bet_is_spread_in_the_amount_that_grows_fastest(claim: Guarantee, law: Any) -> None:
    """Beside a search over amounts, by the growth that the factors have."""
    cut = np.linspace(1.5, -0.5, 7)
    p, q = law.cdf(cut), law.cdf(cut - 1.0)

    def counts(masses: NDArray[np.float64]) -> tuple[int, ...]:
        return tuple(np.rint(-MANY * np.diff(masses, prepend=1.0, append=0.0)).astype(int).tolist())

    def growth_at(spread: float) -> float:
        stake = Stake(0, 0, tuple(p), tuple(q), counts(p), counts(q), (0,), spread)
        full = next(k for k, (kind, value, _) in enumerate(EXPERTS) if (kind, value) == ("plug", 1.0))
        return float(log_factors([stake], claim, np.array([claim.level]))[0, 2, full, 0]) / MANY

    found = find_spread(p, q, claim)
    assert found > 0
    best = max(growth_at(spread) for spread in np.geomspace(0.01, 2.0, 400))
    assert growth_at(found) > 0.999 * best


def test_nothing_is_spread_where_no_event_speaks_against_the_claim() -> None:
    assert find_spread(np.array([0.6, 0.4]), np.array([0.5, 0.3]), PureDP(1.0)) == 0.0
