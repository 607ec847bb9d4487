"""Accounting of DP-SGD against numerical integration, with no code of an accountant."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event, rdp
from scipy import integrate, stats

from mechanisms.training.accounting import loss_delta, loss_epsilon, renyi_epsilon, sampled_renyi


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.5), (0.7, 0.1), (2.0, 0.9)])
@pytest.mark.parametrize("order", [2, 5])
def test_a_step_has_the_renyi_divergence_of_its_integral(noise: float, rate: float, order: int) -> None:
    def integrand(x: float) -> float:
        plain = -0.5 * (x / noise) ** 2
        shifted = np.logaddexp(math.log1p(-rate) + plain, math.log(rate) - 0.5 * ((x - 1) / noise) ** 2)
        return math.exp(order * shifted + (1 - order) * plain) / (noise * math.sqrt(2 * math.pi))

    total = integrate.quad(integrand, -12 * noise, 12 * noise + order, limit=200)[0]
    found = sampled_renyi(noise, rate, order)
    assert found == pytest.approx(math.log(total) / (order - 1), rel=1e-6)
    step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    assert found == pytest.approx(rdp.RdpAccountant([order]).compose(step)._rdp[0], rel=1e-9)


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.5), (0.6, 0.2)])
def test_two_steps_have_the_delta_of_their_integral(noise: float, rate: float) -> None:
    t = np.linspace(-8 * noise, 8 * noise + 1, 1_501)
    plain = stats.norm.pdf(t, 0, noise) * (t[1] - t[0])
    mixed = (1 - rate) * plain + rate * stats.norm.pdf(t, 1, noise) * (t[1] - t[0])
    p, q = np.outer(mixed, mixed), np.outer(plain, plain)
    for epsilon in (0.5, 1.5):
        both = (np.maximum(p - math.exp(epsilon) * q, 0).sum(), np.maximum(q - math.exp(epsilon) * p, 0).sum())
        found = loss_delta(noise, rate, 2, epsilon)
        assert found == pytest.approx(max(both), abs=1e-5)
        assert loss_epsilon(noise, rate, 2, found) == pytest.approx(epsilon, abs=1e-5)


def test_moments_are_looser_than_losses() -> None:
    for delta in (0.1, 1e-5):
        assert loss_epsilon(1.0, 0.5, 4, delta) < renyi_epsilon(1.0, 0.5, 4, delta)


@pytest.mark.parametrize(("noise", "rate", "order"), [(0.0, 0.5, 2), (1.0, 0.0, 2), (1.0, 0.5, 1)])
def test_parameters_out_of_range_are_refused(noise: float, rate: float, order: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        sampled_renyi(noise, rate, order)
