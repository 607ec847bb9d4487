"""Many randomised responses: the composition with the largest privacy loss, and the mean of the loss of one step.

Source: D003 Theorem 2.1.3 and Claim 2.1.4; catalogue 000_001_003, advanced_composition, kl_of_dp_mechanism, A4, A6 and
A11; Kairouz, Oh and Viswanath (2015) for the worst case of composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from auditor.privacy.exact import FiniteLaw, LossCurve, advanced_composition, optimal_composition
from mechanisms.base.mechanism import Dataset, IntArray, Mutant, Twin, require, require_draws, tabulate_mutants
from mechanisms.composition.composition import RowBit


@dataclass(frozen=True)
class ManyResponses:
    """`steps` independent randomised responses to one bit; the number of answers 1 is published.

    Parameters
    ----------
    bit : RowBit
        What is asked, again and again.
    step_epsilon : float
        Level of each response, > 0.
    steps : int
        How many, at least 1.
    slack : float
        The delta' of the theorem, in (0, 1).

    Notes
    -----
    The number of ones is sufficient: of all events about the responses, the best ones are about it. Of all compositions
    of mechanisms of this level, chosen adaptively or not, this one's curve is the largest (catalogue A4).
    """

    bit: RowBit
    step_epsilon: float
    steps: int
    slack: float

    def __post_init__(self) -> None:
        require(0.0 < self.step_epsilon < math.inf, "a finite step_epsilon > 0", self.step_epsilon)
        whole = isinstance(self.steps, (int, np.integer)) and not isinstance(self.steps, bool)
        require(whole and self.steps >= 1, "steps >= 1", self.steps)
        require(0.0 < self.slack < 1.0, "slack in (0, 1)", self.slack)

    @property
    def epsilon(self) -> float:
        """Claimed epsilon, ``e sqrt(2 k ln(1/delta')) + k e tanh(e/2)`` (catalogue A11)."""
        return advanced_composition(self.step_epsilon, self.steps, self.slack)[0]

    @property
    def delta(self) -> float:
        """Claimed delta, the slack."""
        return self.slack

    def probability(self, data: Dataset) -> float:
        """Probability of a response 1."""
        return float(special.expit(self.step_epsilon if self.bit(data) else -self.step_epsilon))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` numbers of ones; int64 of shape (n,)."""
        require_draws(n)
        return rng.binomial(self.steps, self.probability(data), n)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`: binomial."""
        ones = np.arange(self.steps + 1)
        mass = stats.binom.pmf(ones, self.steps, self.probability(data))
        return FiniteLaw(tuple(ones.tolist()), mass)


@dataclass(frozen=True)
class CompositionLogDropped(ManyResponses):
    """Claims ``sqrt(k) e``."""

    @property
    def epsilon(self) -> float:
        """Claimed epsilon, without the logarithm of the slack."""
        return math.sqrt(self.steps) * self.step_epsilon


@dataclass(frozen=True)
class CompositionSecondOrderDropped(ManyResponses):
    """Claims ``e sqrt(2 k ln(1/delta'))`` for any k."""

    @property
    def epsilon(self) -> float:
        """Claimed epsilon, without the mean of the loss."""
        return self.step_epsilon * math.sqrt(2.0 * self.steps * -math.log(self.slack))


@dataclass(frozen=True)
class CompositionSlackMissing(ManyResponses):
    """Claims the epsilon of the theorem with the steps' delta alone, which is 0."""

    @property
    def delta(self) -> float:
        """Claimed delta: 0."""
        return 0.0


@dataclass(frozen=True)
class CompositionOfHalfSteps(ManyResponses):
    """Composes steps of level e as if they were of level e / 2."""

    @property
    def epsilon(self) -> float:
        """Claimed epsilon, of the theorem for half the level."""
        return advanced_composition(self.step_epsilon / 2.0, self.steps, self.slack)[0]


@dataclass(frozen=True)
class _AtItsDelta:
    """Exact epsilon at the delta that a mutant claims (for `Mutant.true_level`)."""

    mutant: Callable[..., ManyResponses]

    def __call__(self, base: ManyResponses) -> float:
        """Return it for the parameters of `base`."""
        delta = self.mutant(base.bit, base.step_epsilon, base.steps, base.slack).delta
        return optimal_composition(base.step_epsilon, base.steps).epsilon(delta)


def _claiming_mutant(name: str, cls: Callable[..., ManyResponses], note: str) -> Mutant[ManyResponses]:
    return Mutant(name, Twin(cls), _AtItsDelta(cls), "violation", note)


#: The mechanism is the reference; what is wrong is the claim, `epsilon` and `delta` of the mutant.
MUTANTS: dict[str, Mutant[ManyResponses]] = tabulate_mutants(
    _claiming_mutant("log_dropped", CompositionLogDropped, "claims sqrt(k) e at delta'"),
    _claiming_mutant(
        "second_order_dropped",
        CompositionSecondOrderDropped,
        "claims e sqrt(2k ln(1/delta')), too little for large k e^2",
    ),
    _claiming_mutant("delta_prime_missing", CompositionSlackMissing, "claims the theorem's epsilon with a delta of 0"),
    _claiming_mutant("step_eps_halved", CompositionOfHalfSteps, "steps of level e, composed as if of e/2"),
)


# ------------------------------------------------------------------------- the mean of the loss


def expected_loss(curve: LossCurve) -> float:
    """Mean of the privacy loss ``ln P - ln Q`` under P: the KL divergence of the pair.

    Parameters
    ----------
    curve : LossCurve
        Oriented: P is the distribution on the first dataset.

    Returns
    -------
    float
        Infinite if P has mass where Q has none.
    """
    return math.inf if curve.p_only > 0 else float(np.exp(curve.log_p) @ curve.loss)


def expected_loss_under_other(curve: LossCurve) -> float:
    """Mutant of `expected_loss`: the same loss averaged under Q, which is never positive."""
    return -math.inf if curve.q_only > 0 else float(np.exp(curve.log_q) @ curve.loss)


def expected_absolute_loss(curve: LossCurve) -> float:
    """Mutant of `expected_loss`: the mean of the loss's absolute value."""
    return math.inf if curve.p_only > 0 else float(np.exp(curve.log_p) @ np.abs(curve.loss))


def largest_expected_loss(epsilon: float) -> float:
    """Return ``epsilon tanh(epsilon / 2)``, the largest mean loss of an epsilon-DP mechanism.

    Valid because: the divergence is ``E_Q[r ln r]`` for the ratio r = P/Q, which has mean 1 under Q and lies in
    ``[e^-epsilon, e^epsilon]``. The convex function ``r ln r`` lies below its chord there, and the value of the chord
    at 1 is the divergence of the pair that has only the two ratios at the ends: randomised response. Source: catalogue
    000_001_003, A6 and kl_of_dp_mechanism.
    """
    require(0.0 <= epsilon < math.inf, "a finite epsilon >= 0", epsilon)
    return epsilon * math.tanh(epsilon / 2.0)
