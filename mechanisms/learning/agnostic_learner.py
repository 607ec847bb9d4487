"""The generic private learner: the exponential mechanism over a fixed hypothesis class.

Its mutants are in `mechanisms.learning.agnostic_mutants`.

Source: document 002, section 3.1, Lemma 3.3 and Theorem 3.4, section 3.2; catalogue 002, exp_mech_generic_agnostic,
exp_mech_realizable, exp_mech_improper, vc_finite_domain_learner, dp_nonzero_error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.kept import compute_once
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.base.noise import draw_index
from mechanisms.learning.hypotheses import HypothesisClass, counts_of
from mechanisms.selection.exponential import softmax

#: Numbers that are drawn at once: 32 MB. Arbitrary.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class HypothesisChoice:
    """What the learner shares with its mutants: a hypothesis is drawn with the stated probabilities."""

    hypotheses: HypothesisClass
    epsilon: float

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)

    def mistakes(self, data: Dataset) -> IntArray:
        """Records that each hypothesis gets wrong, shape (size,)."""
        return self.hypotheses.mistakes(counts_of(data, self.hypotheses.domain))

    def exponents(self, data: Dataset) -> FloatArray:
        """Logarithms of the weights, ``-eps mistakes / 2``; shape (size,)."""
        return compute_once(self._exponents, data)

    def _exponents(self, data: Dataset) -> FloatArray:
        return np.asarray(-0.5 * self.epsilon * self.mistakes(data), dtype=np.float64)

    def probabilities(self, data: Dataset) -> FloatArray:
        """Probabilities of the hypotheses, shape (size,)."""
        return softmax(self.exponents(data))

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`: outcomes 0, 1, .. are the hypotheses."""
        mass = self.probabilities(data)
        return FiniteLaw(tuple(range(mass.size)), mass)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses; int64 of shape (n,)."""
        require_draws(n)
        return draw_index(compute_once(self.probabilities, data), n, rng)


@dataclass(frozen=True)
class AgnosticLearner(HypothesisChoice):
    """Choose a hypothesis with probability proportional to ``exp(-eps mistakes / 2)``.

    Parameters
    ----------
    hypotheses : HypothesisClass
        Distinct labelings of the domain; fixed without looking at the data.
    epsilon : float
        Claimed pure level, under replace-one.

    Raises
    ------
    ValueError
        From `law`, if numbers of mistakes are further apart than 1400 / eps: probabilities would underflow to
        impossible. Draws have no such limit.

    Notes
    -----
    Hypotheses with equally many mistakes are one group, whose exponent has the logarithm of its size added; standard
    Gumbel noise is added to the exponent of each group, the largest sum wins, and a hypothesis of the group is drawn
    uniformly. Nothing is exponentiated, so that nothing underflows.

    One record moves each number of mistakes by at most 1. Where it takes one mistake from a set G of hypotheses and
    gives one to all others, the level is `level_of_flip`; epsilon itself is a supremum.
    """

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses; int64 of shape (n,)."""
        require_draws(n)
        values, group, counts = np.unique(self.exponents(data), return_inverse=True, return_counts=True)
        chosen = gumbel_choice((values + np.log(counts))[None, :], n, rng)
        members, first = np.argsort(group, kind="stable"), np.cumsum(counts) - counts
        return np.asarray(members[first[chosen] + rng.integers(0, counts[chosen])], dtype=np.int64)


def gumbel_choice(exponents: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Draw indices with probabilities proportional to ``exp(exponents)``.

    Parameters
    ----------
    exponents : ndarray of shape (n, k) or (1, k)
        Of each run, or of all of them.
    n : int
        Runs.
    rng : numpy.random.Generator
        The only source of randomness.

    Returns
    -------
    ndarray of int64, shape (n,)
        ``argmax(exponents + G)`` with independent standard Gumbel variables G.
    """
    k = exponents.shape[1]
    chosen = np.empty(n, dtype=np.int64)
    step = max(1, _BLOCK // k)
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        rows = exponents if len(exponents) == 1 else exponents[part]
        chosen[part] = np.argmax(rows + rng.gumbel(size=(part.stop - start, k)), axis=1)
    return chosen


def level_of_flip(p: float, epsilon: float) -> float:
    """Exact level of the learner on a flip that is right for a set G of hypotheses and wrong for all others.

    Parameters
    ----------
    p : float
        Probability of G on the dataset on which its hypotheses have one mistake more; in (0, 1).
    epsilon : float
        The learner's level.

    Notes
    -----
    The event G loses ``eps - ln(1 + p (e^eps - 1))``, what is outside of it ``ln(1 + p (e^eps - 1))``; the first one is
    larger if and only if ``p <= 1 / (1 + e^(eps / 2))``. Source: catalogue 002, exp_mech_generic_agnostic.
    """
    require(0 < p < 1, "a probability in (0, 1)", p)
    outside = math.log1p(p * math.expm1(epsilon))
    return max(epsilon - outside, outside)


@dataclass(frozen=True)
class LabelsAt:
    """Releases only the labels that the chosen hypothesis gives to a few points: bit i is the label of point i.

    Parameters
    ----------
    learner : HypothesisChoice
        Chooses the hypothesis.
    points : tuple of int
        One to 16 points of the domain; 16 is arbitrary.
    """

    learner: HypothesisChoice
    points: tuple[int, ...]

    def __post_init__(self) -> None:
        require(1 <= len(self.points) <= 16, "1 to 16 points", self.points)

    @property
    def epsilon(self) -> float:
        """The claimed level of the hypothesis, which post-processing keeps."""
        return self.learner.epsilon

    def _codes(self) -> IntArray:
        """Code of each hypothesis, shape (size,)."""
        labels = self.learner.hypotheses.labels(np.array(self.points, dtype=np.int64))
        return np.asarray((1 << np.arange(len(self.points))) @ labels, dtype=np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`: outcomes are all codes, possible or not."""
        size = 1 << len(self.points)
        mass = np.bincount(self._codes(), self.learner.probabilities(data), minlength=size)
        return FiniteLaw(tuple(range(size)), mass.astype(np.float64))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` codes; int64 of shape (n,)."""
        return self._codes()[self.learner(data, n, rng)]
