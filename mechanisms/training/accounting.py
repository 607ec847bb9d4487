"""Accounting of DP-SGD: Renyi divergences in closed form, and epsilon by dp-accounting, by both of its accountants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from auditor.errors import require_library
from mechanisms.base.mechanism import require, require_positive

#: Orders that dp-accounting minimises over: integers, for which it has a finite sum.
_ORDERS = (*range(2, 65), 128, 256)
#: Spacing of privacy losses in dp-accounting, ten times its default: the bound is too large by some 1e-5.
_SPACING = 1e-3


def sampled_renyi(noise: float, rate: float, order: int) -> float:
    """Renyi divergence of a step: of a sampled Gaussian from the plain one, at an integer order.

    Parameters
    ----------
    noise : float
        Noise multiplier, > 0.
    rate : float
        Sampling rate, in (0, 1].
    order : int
        At least 2.

    Notes
    -----
    ``ln(sum over k of binomial(a, k) (1 - q)^(a - k) q^k exp(k (k - 1) / (2 s^2))) / (a - 1)``, which is the larger of
    the two directions (Mironov, Talwar and Zhang 2019, sections 3.1 and 3.3).
    """
    require_positive("noise", noise)
    require(0 < rate <= 1, "a rate in (0, 1]", rate)
    require(order >= 2 and int(order) == order, "an integer order of at least 2", order)
    if rate == 1:
        return order / (2 * noise**2)
    k = np.arange(order + 1)
    logs = np.log(special.binom(order, k)) + (order - k) * math.log1p(-rate) + k * math.log(rate)
    return float(special.logsumexp(logs + k * (k - 1) / (2 * noise**2))) / (order - 1)


def _sampled_event(noise: float, rate: float, steps: int) -> Any:
    require_library("dp_accounting", "accounting of training")
    from dp_accounting import dp_event

    plain = dp_event.GaussianDpEvent(noise)
    step = plain if rate == 1 else dp_event.PoissonSampledDpEvent(rate, plain)
    return dp_event.SelfComposedDpEvent(step, steps)


def renyi_epsilon(noise: float, rate: float, steps: int, delta: float) -> float:
    """Epsilon of DP-SGD by dp-accounting's Renyi accountant, for adding or removing a row.

    Parameters
    ----------
    noise, rate : float
        See `sampled_renyi`.
    steps : int
        Number of steps.
    delta : float
        In (0, 1).
    """
    event = _sampled_event(noise, rate, steps)
    from dp_accounting import rdp

    return float(rdp.RdpAccountant(list(_ORDERS)).compose(event).get_epsilon(delta))


def _loss_accountant(noise: float, rate: float, steps: int) -> Any:
    event = _sampled_event(noise, rate, steps)
    from dp_accounting import pld

    return pld.PLDAccountant(value_discretization_interval=_SPACING).compose(event)


def loss_epsilon(noise: float, rate: float, steps: int, delta: float) -> float:
    """Epsilon of DP-SGD by dp-accounting's privacy loss distributions, for adding or removing a row.

    Parameters
    ----------
    noise, rate, steps, delta
        See `renyi_epsilon`.
    """
    return float(_loss_accountant(noise, rate, steps).get_epsilon(delta))


def loss_delta(noise: float, rate: float, steps: int, epsilon: float) -> float:
    """Delta at an epsilon, as `loss_epsilon`.

    Parameters
    ----------
    noise, rate, steps
        See `renyi_epsilon`.
    epsilon : float
        At least 0.
    """
    return float(_loss_accountant(noise, rate, steps).get_delta(epsilon))
