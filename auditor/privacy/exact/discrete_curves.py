"""Pairs of distributions on outcomes one can list: finite ones, and those on an integer lattice."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from auditor.privacy.exact.privacy_curve import checked_order
from auditor.privacy.exact.privacy_loss import MAX_GROUPS, LossCurve, grouped
from auditor.privacy.laws import FiniteLaw, FloatArray, TwoSidedGeometricLaw, discrete_gaussian_table, require

# Mass that may be left out of an infinite lattice, per distribution and end: below any delta that is asked for.
_NEGLECTED = 1e-40
# Thresholds within this many standard deviations of both centres decide mu: the table goes on for four more, so what is
# missing from the sums beyond a threshold is less than e^-40 of them.
_MU_REACH = 9.5
# From this scale on the sums over the lattice of a Gaussian and of its shifted copy agree to 2 e^(-2 pi^2 25) < 1e-200.
_SMOOTH = 5.0


def finite_pair(law_p: FiniteLaw, law_q: FiniteLaw) -> LossCurve:
    """Curve of two finite distributions.

    Outcomes that only one of them has carry an infinite loss.

    Parameters
    ----------
    law_p, law_q : FiniteLaw
        The two distributions.

    Returns
    -------
    LossCurve
    """
    index = {outcome: i for i, outcome in enumerate(law_p.outcomes)}
    for outcome in law_q.outcomes:
        index.setdefault(outcome, len(index))
    p, q = np.zeros(len(index)), np.zeros(len(index))
    p[: len(law_p.outcomes)] = law_p.probabilities
    q[[index[outcome] for outcome in law_q.outcomes]] = law_q.probabilities
    both = (p > 0) & (q > 0)
    return grouped(np.log(p[both]), np.log(q[both]), float(p[q == 0].sum()), float(q[p == 0].sum()))


def geometric_pair(law: TwoSidedGeometricLaw, shift: int) -> LossCurve:
    """Curve of two geometric distributions at centres 0 and `shift`.

    Bases are equal and `shift` > 0: outcomes 1..shift-1 have one loss each, the tails one each.

    Parameters
    ----------
    law : TwoSidedGeometricLaw
        The first distribution, about 0.
    shift : int
        Centre of the second, in steps, at least 1.

    Returns
    -------
    LossCurve
    """
    if shift > MAX_GROUPS:
        raise ValueError(f"expected a shift of at most {MAX_GROUPS} steps, got {shift}")
    k = np.arange(1, shift, dtype=np.float64)
    log_total = math.log(law.a + 1.0)
    head = law.log_a - log_total  # P[Z <= 0] = a / (a + 1)
    tail = (1 - shift) * law.log_a - log_total  # P[Z >= shift] = a^(1 - shift) / (a + 1)
    peak = math.log(law.a - 1.0) - log_total
    log_p = np.concatenate([[head], peak - k * law.log_a, [tail]])
    return LossCurve(log_p, log_p[::-1].copy())


def unequal_geometric_pair(law_p: TwoSidedGeometricLaw, law_q: TwoSidedGeometricLaw) -> LossCurve:
    """Different bases on one lattice, any centres.

    The loss grows without bound in both tails. Outcomes are listed until less than 1e-40 of either distribution is left
    beyond; what is left counts as infinite loss, so every answer is an upper bound, by at most that much in delta.

    Parameters
    ----------
    law_p, law_q : TwoSidedGeometricLaw
        The two distributions.

    Returns
    -------
    LossCurve
    """
    laws = (law_p, law_q)
    # P[|Z| > reach] = 2 a^-reach / (a + 1).
    reach = max(math.ceil(-math.log(_NEGLECTED) / law.log_a) for law in laws)
    low, high = min(law.loc for law in laws) - reach, max(law.loc for law in laws) + reach
    if high - low >= MAX_GROUPS:
        raise ValueError(
            f"expected geometric distributions that spread over less than {MAX_GROUPS} steps, got {high - low}"
        )
    k = np.arange(low, high + 1, dtype=np.float64)
    log_p, log_q = (math.log((x.a - 1.0) / (x.a + 1.0)) - x.log_a * np.abs(k - x.loc) for x in laws)
    beyond_p, beyond_q = (
        (x.a ** -float(x.loc - low) + x.a ** -float(high - x.loc)) / (x.a + 1.0) for x in laws
    )  # P[Z < -t] = a^-t / (a + 1)
    return grouped(log_p, log_q, beyond_p, beyond_q)


@dataclass(frozen=True)
class DiscreteGaussianCurve:
    """Two discrete Gaussian distributions, centres `shift` steps apart.

    They have equal scale on one lattice.

    Parameters
    ----------
    shift : int
        Lattice steps between the centres, at least 1.
    sigma : float
        Scale in lattice steps.

    Notes
    -----
    With the centres at 0 and `shift` the loss of k is ``shift (shift - 2k) / (2 sigma^2)``: every outcome has its own.
    Outcomes are listed as far as 13.6 sigma beyond both centres. The mass beyond, less than 1e-40, counts as infinite
    loss, so `delta`, `epsilon` and `tradeoff` are upper bounds, by at most that much in delta. `mu` and `renyi` leave
    nothing out. Source: Canonne, Kamath, Steinke (2020).
    """

    shift: int
    sigma: float

    def __post_init__(self) -> None:
        require(self.shift >= 1, "a shift of at least one step", self.shift)

    @cached_property
    def losses(self) -> LossCurve:
        """The listed outcomes and the mass beyond."""
        table = discrete_gaussian_table(self.sigma)
        size = 2 * table.reach + 1 + self.shift
        if size > MAX_GROUPS:
            raise ValueError(f"expected a shift of at most {MAX_GROUPS - size + self.shift} steps, got {self.shift}")
        k = np.arange(-table.reach, table.reach + self.shift + 1, dtype=np.float64)
        log_p = table.log_pmf[table.reach] - 0.5 * (k / self.sigma) ** 2
        # The two sides beyond the list hold less than the two sides beyond the table.
        return LossCurve(log_p, log_p[::-1].copy(), table.neglected, table.neglected)

    def delta(self, epsilon: float) -> float:
        """See `PrivacyCurve.delta`."""
        return self.losses.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """See `PrivacyCurve.epsilon`."""
        return self.losses.epsilon(delta)

    def tradeoff(self, q: ArrayLike) -> FloatArray:
        """See `PrivacyCurve.tradeoff`."""
        return self.losses.tradeoff(q)

    def mu(self) -> float:
        """Largest gap of normal scores over thresholds near both centres.

        Thresholds are within 9.5 sigma of both.

        Further out the gaps fall towards ``shift / sigma`` from above: ``-Phi^-1(P[Z >= k])`` is k / sigma minus a term
        of the order of ln(k) / k, which falls once k is beyond e sigma.
        """
        table, size = discrete_gaussian_table(self.sigma), self.losses.log_p.size
        skipped = table.reach - max(math.ceil(_MU_REACH * self.sigma), 1)
        inner = slice(skipped, size - skipped)
        # The ends keep the sums of what is skipped, so that all the gaps within are gaps of the whole distributions.
        ends = [(slice(None, skipped + 1),), (slice(size - skipped - 1, None),)]
        log_p, log_q = self.losses.log_p[inner].copy(), self.losses.log_q[inner].copy()
        for place, (end,) in zip((0, -1), ends, strict=True):
            log_p[place] = np.logaddexp.reduce(self.losses.log_p[end])
            log_q[place] = np.logaddexp.reduce(self.losses.log_q[end])
        return replace(self.losses, log_p=log_p, log_q=log_q, p_only=0.0, q_only=0.0).mu()

    def renyi(self, order: float) -> float:
        """Renyi divergence, at most that of the Gaussian pair.

        It is ``order shift^2 / (2 sigma^2)`` less a term of the lattice.

        ``sum p^a q^(1-a)`` is ``exp(a (a-1) shift^2 / (2 sigma^2))`` times the sum over the lattice of
        ``exp(-(k - (1-a) shift)^2 / (2 sigma^2))``, over the same sum without the offset, which is the larger one.
        """
        a = checked_order(order)
        if math.isinf(a):
            return math.inf
        smooth = a * self.shift**2 / (2.0 * self.sigma**2)
        offset = math.fmod((a - 1.0) * self.shift, 1.0)
        if self.sigma >= _SMOOTH or offset == 0.0:
            return smooth
        k = np.arange(-math.ceil(_SMOOTH * 14), math.ceil(_SMOOTH * 14) + 1)
        shifted, plain = (np.logaddexp.reduce(-0.5 * ((k - x) / self.sigma) ** 2) for x in (offset, 0.0))
        return max(0.0, smooth + min(0.0, float(shifted - plain)) / (a - 1.0))
