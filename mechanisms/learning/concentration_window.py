"""The window around the expected prediction in which most predictions of a stable learner lie.

Chunks of n' examples are trained on one by one. A chunk's prediction at a fixed point is its vote. Here a vote is
``offset + slope * (mean of n' Bernoulli(q) labels)``, where the learner's coins decide offset and slope: what the
document calls h^(r), exact in every respect. Lemma 5.8 says that a vote is within ``4 alpha sqrt(2 n')`` of its
expectation over the data, for the coins at hand, with probability 3/4; Corollary 5.10 that 2/3 of k votes are, with
probability 1 - beta', if ``k >= 72 ln(1/beta')`` and the expectation is the same for all coins.

Source: document 004, Lemma 5.8, Definition 5.9, Corollary 5.10; catalogue 004, conc_window.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from mechanisms.base.mechanism import (
    FloatArray,
    Mutant,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
)

#: Share of a window by which a vote may miss it and be inside: votes and windows are computed in floating point.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class CoinOutcome:
    """An outcome of a learner's coins.

    Parameters
    ----------
    probability : float
        Of the outcome.
    offset, slope : float
        The vote is ``offset + slope * mean``.
    """

    probability: float
    offset: float
    slope: float


@dataclass(frozen=True)
class BernoulliVote:
    """Distribution of a vote: of a learner on `size` Bernoulli(q) labels.

    Parameters
    ----------
    q : float
        Probability of the label 1.
    size : int
        n', labels in a chunk.
    coins : tuple of CoinOutcome
        Outcomes of the learner's coins; default none are tossed, and the vote is the mean of the labels.

    Raises
    ------
    ValueError
        If the coins' probabilities do not sum to 1, or a vote could leave [0, 1].
    """

    q: float
    size: int
    coins: tuple[CoinOutcome, ...] = (CoinOutcome(1.0, 0.0, 1.0),)

    def __post_init__(self) -> None:
        require(0 < self.q < 1, "a probability q in (0, 1)", self.q)
        require(isinstance(self.size, (int, np.integer)) and self.size >= 1, "a chunk of n' >= 1", self.size)
        require(abs(math.fsum(coin.probability for coin in self.coins) - 1) < 1e-9, "coins that sum to 1", self.coins)
        ends = [end for coin in self.coins for end in (coin.offset, coin.offset + coin.slope)]
        require(min(ends) >= 0 and max(ends) <= 1, "votes in [0, 1]", ends)

    @property
    def mean_variance(self) -> float:
        """Variance of the mean of the labels: ``q (1 - q) / n'``."""
        return self.q * (1.0 - self.q) / self.size

    @property
    def variance(self) -> float:
        """Variance of a vote over the data, averaged over the coins."""
        return math.fsum(coin.probability * coin.slope**2 for coin in self.coins) * self.mean_variance

    @property
    def alpha(self) -> float:
        """On-average stability: a replaced label moves the mean by 1/n' with probability 2 q (1 - q), else not."""
        squares = math.fsum(coin.probability * coin.slope**2 for coin in self.coins)
        return math.sqrt(squares * 2.0 * self.q * (1.0 - self.q)) / self.size

    @property
    def expectation(self) -> float:
        """Expectation of a vote, over data and coins."""
        return math.fsum(coin.probability * (coin.offset + coin.slope * self.q) for coin in self.coins)

    @property
    def unstable_coins(self) -> float:
        """Probability of coins whose own mean squared move is above ``8 alpha^2``: at most 1/8, by Markov."""
        moves = ((coin.probability, coin.slope**2 * 2.0 * self.q * (1.0 - self.q)) for coin in self.coins)
        most = 8.0 * (self.alpha * self.size) ** 2
        return math.fsum(probability for probability, move in moves if move > most)

    def window(self, factor: float = 4.0) -> float:
        """``factor * alpha * sqrt(2 n')``."""
        return factor * self.alpha * math.sqrt(2.0 * self.size)

    def outside(self, window: float) -> float:
        """Exact probability that a vote is farther than this from its expectation over the data."""
        ones = np.arange(self.size + 1)
        mass = stats.binom.pmf(ones, self.size, self.q)
        away = np.abs(ones / self.size - self.q)
        far = [float(mass[abs(c.slope) * away > window * (1 + _ROUNDING)].sum()) for c in self.coins]
        return math.fsum(coin.probability * one for coin, one in zip(self.coins, far, strict=True))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Votes, and their expectations over the data for the coins of each; both of the shape."""
        chosen = rng.choice(len(self.coins), size=shape, p=[coin.probability for coin in self.coins])
        offsets, slopes = (np.array([getattr(coin, name) for coin in self.coins]) for name in ("offset", "slope"))
        mean = rng.binomial(self.size, self.q, shape) / self.size
        return offsets[chosen] + slopes[chosen] * mean, offsets[chosen] + slopes[chosen] * self.q


def stressed(q: float, size: int, probability: float) -> BernoulliVote:
    """A learner that listens to its data with a small probability only, and else says q.

    With a probability just under 1/8 the coins' own mean squared move is just above ``8 alpha^2``: Markov's step in the
    proof of Lemma 5.8 is tight. The expectation is the same for all coins.
    """
    return BernoulliVote(q, size, (CoinOutcome(probability, 0.0, 1.0), CoinOutcome(1.0 - probability, q, 0.0)))


def started(q: float, size: int) -> BernoulliVote:
    """A learner whose prediction is half its random start, 0 or 1, and half the mean of the labels.

    Its randomization is not consistent: the expectation over the data depends on the start.
    """
    return BernoulliVote(q, size, (CoinOutcome(0.5, 0.0, 0.5), CoinOutcome(0.5, 0.5, 0.5)))


def enough_chunks(beta: float) -> int:
    """Chunks k of Corollary 5.10: ``72 ln(1/beta')``, rounded up."""
    require(0 < beta < 1, "a beta in (0, 1)", beta)
    return math.ceil(72.0 * math.log(1.0 / beta))


def few_inside(inside: float, chunks: int) -> float:
    """Exact probability that fewer than 2/3 of so many votes lie in a window that each hits with this probability."""
    return float(stats.binom.cdf(math.ceil(2 * chunks / 3) - 1, chunks, inside))


# ---------------------------------------------------------------------------------- mechanisms


@dataclass(frozen=True)
class VoteDeviation:
    """One draw is how far a vote is from its expectation over the data, for the coins at hand.

    Notes
    -----
    The data are `BernoulliVote`, the distribution of a vote.
    """

    def __call__(self, data: BernoulliVote, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` distances; float64 of shape (n,)."""
        require_draws(n)
        votes, expectations = data.draw((n,), rng)
        return np.abs(votes - self.centre(data, expectations))

    def centre(self, data: BernoulliVote, expectations: FloatArray) -> FloatArray:
        """What votes are compared with: their expectations over the data, shape (n,)."""
        del data
        return expectations


@dataclass(frozen=True)
class FarVotes:
    """One draw is which part of k votes lies outside of a window around the expected vote.

    Parameters
    ----------
    chunks : int
        k.
    window : float
        Half its length.

    Notes
    -----
    The data are `BernoulliVote`, the distribution of a vote; each chunk tosses its own coins.
    """

    chunks: int
    window: float

    def __post_init__(self) -> None:
        require(isinstance(self.chunks, (int, np.integer)) and self.chunks >= 1, "a number of chunks >= 1", self.chunks)
        require_positive("window", self.window)

    def __call__(self, data: BernoulliVote, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` parts; float64 of shape (n,)."""
        require_draws(n)
        votes, _ = data.draw((n, self.chunks), rng)
        return np.asarray(self.outside(votes, data.expectation) / self.chunks)

    def outside(self, votes: FloatArray, expectation: float) -> FloatArray:
        """How many of the votes, shape (..., k), lie outside; shape (...)."""
        far = np.abs(votes - self.centre(votes, expectation)) > self.window * (1 + _ROUNDING)
        return np.asarray(far.sum(axis=-1), dtype=np.float64)

    def centre(self, votes: FloatArray, expectation: float) -> FloatArray:
        """Middle of the window; broadcasts against the votes."""
        del votes
        return np.asarray(expectation)


def most_moved(votes: FarVotes, before: FloatArray, values: FloatArray, expectation: float) -> float:
    """By how much the number of votes inside moves at most, if the first vote takes any of the values."""
    after = np.tile(before, (len(values), 1))
    after[:, 0] = values
    inside = [votes.chunks - votes.outside(one, expectation) for one in (before, after)]
    return float(np.abs(inside[1] - inside[0]).max())


# ------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class OverallCentre(VoteDeviation):
    """The expectation is taken over the coins, too."""

    def centre(self, data: BernoulliVote, expectations: FloatArray) -> FloatArray:
        """One number for all coins, shape (n,)."""
        return np.full(len(expectations), data.expectation)


@dataclass(frozen=True)
class SampleMeanCentre(FarVotes):
    """The window is around the mean of the votes."""

    def centre(self, votes: FloatArray, expectation: float) -> FloatArray:
        """Mean of the votes, shape (..., 1)."""
        del expectation
        return np.asarray(votes.mean(axis=-1, keepdims=True))


#: None of them breaks a claim of privacy, as there is none.
MUTANTS: dict[str, Mutant[VoteDeviation]] = tabulate_mutants(
    Mutant("expectation_over_coins_too", Twin(OverallCentre), None, "benign", "E also over r, which need not agree"),
)
FAR_MUTANTS: dict[str, Mutant[FarVotes]] = tabulate_mutants(
    Mutant(
        "centred_at_the_sample_mean",
        Twin(SampleMeanCentre),
        None,
        "benign",
        "the centre depends on the votes: one of them moves the window of all",
    ),
)
