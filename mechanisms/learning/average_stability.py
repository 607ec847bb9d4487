"""How much a learner's output moves when one record is replaced, on average.

A learner is alpha-on-average stable at sample size n if the mean over the positions j of ``E |h_D - h_(D^j)|^2`` is at
most ``alpha^2``, where D^j has a fresh record at position j and both trainings have the same coins. Nobody is protected
here: it is a property of learners, and nothing is claimed about privacy.

Source: document 004, Definition 5.7; catalogue 004, onavg_stability and sgd_onavg.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.base.mechanism import FloatArray, IntArray, Mutant, Twin, require, require_draws, tabulate_mutants
from mechanisms.learning.stable_learners import (
    FiniteRecordDistribution,
    Order,
    RandomizedLearner,
    StochasticGradientDescent,
)


@dataclass(frozen=True)
class EnumeratedMoments:
    """Exact moments of descent on few records, over all datasets.

    Attributes
    ----------
    stored : float
        Mean over the positions of ``E (w_D - w_(D^j))^2``, in stored order.
    permuted : float
        ``E (w_s(D) - w_s(D'))^2``, D' with a fresh record at position 1, over all orders s of the positions.
    variance : float
        Of the weight, in stored order.
    uniform : float
        The largest mean over the orders of ``(w_s(D) - w_s(D'))^2``, over all pairs of datasets.
    by_position : tuple of float
        The terms of ``stored``.
    """

    stored: float
    permuted: float
    variance: float
    uniform: float
    by_position: tuple[float, ...]


def enumerated(learner: StochasticGradientDescent, source: FiniteRecordDistribution, size: int) -> EnumeratedMoments:
    """Sum over all datasets of `size` records, all fresh records and all orders."""
    atoms, weights = np.asarray(source.values), np.asarray(source.probabilities)
    index = np.array(list(itertools.product(range(len(atoms)), repeat=size + 1)))  # the last one is the fresh record
    mass = weights[index].prod(axis=1)
    records, fresh = atoms[index[:, :-1]], atoms[index[:, -1]]

    def trained(data: FloatArray, order: tuple[int, ...]) -> FloatArray:
        return learner(data, np.tile(np.array(order * learner.passes), (len(data), 1)))

    def replaced(position: int) -> FloatArray:
        other: FloatArray = records.copy()
        other[:, position] = fresh
        return other

    plain = tuple(range(size))
    weight, first = trained(records, plain), replaced(0)
    moved = [float(mass @ (weight - trained(replaced(j), plain)) ** 2) for j in range(size)]
    orders = list(itertools.permutations(range(size)))
    over_orders = np.mean([(trained(records, order) - trained(first, order)) ** 2 for order in orders], axis=0)
    mean = float(mass @ weight)
    return EnumeratedMoments(
        math.fsum(moved) / size,
        float(mass @ over_orders),
        float(mass @ (weight - mean) ** 2),
        float(over_orders.max()),
        tuple(moved),
    )


def expected_outputs(
    learner: RandomizedLearner, source: FiniteRecordDistribution, size: int, coins: IntArray
) -> FloatArray:
    """Expected output over all datasets of few records, for given coins.

    Parameters
    ----------
    learner : RandomizedLearner
        Trained on each dataset with each of the coins.
    source : FiniteRecordDistribution
        Where records come from.
    size : int
        Records in a dataset; there are as many datasets as its power of the number of different records.
    coins : ndarray of shape (r, c), int64
        One outcome of the learner's coins a row.

    Returns
    -------
    ndarray of shape (r,)
    """
    atoms, weights = np.asarray(source.values), np.asarray(source.probabilities)
    index = np.array(list(itertools.product(range(len(atoms)), repeat=size)))
    mass, records = weights[index].prod(axis=1), atoms[index]
    return np.array([float(mass @ learner(records, np.tile(row, (len(records), 1)))) for row in coins])


# ----------------------------------------------------------------------------------- estimator


@dataclass(frozen=True)
class SquaredMove:
    """One draw is ``|h_D - h_(D^j)|^2``, at a random position j; its expectation is alpha^2.

    Parameters
    ----------
    learner : RandomizedLearner
        Trained twice, with the same coins.
    size : int
        Records in D.

    Notes
    -----
    The data are `FiniteRecordDistribution`, where records come from. Source: document 004, Definition 5.7.
    """

    learner: RandomizedLearner
    size: int

    def __post_init__(self) -> None:
        require(isinstance(self.size, (int, np.integer)) and self.size >= 2, "at least two records", self.size)

    def other_coins(self, coins: IntArray, size: int, n: int, rng: np.random.Generator) -> IntArray:
        """Coins of the second training: those of the first."""
        del size, n, rng
        return coins

    def fresh(self, source: FiniteRecordDistribution, n: int, rng: np.random.Generator) -> FloatArray:
        """Records that are put in, shape (n, d)."""
        return source.draw((n,), rng)

    def moment(self, moved: FloatArray) -> FloatArray:
        """What is averaged, of differences of shape (n,)."""
        return np.asarray(moved**2, dtype=np.float64)

    def __call__(self, source: FiniteRecordDistribution, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` squared differences; float64 of shape (n,)."""
        require_draws(n)
        records, fresh = source.draw((n, self.size), rng), self.fresh(source, n, rng)
        coins = self.learner.coins(self.size, n, rng)
        before, again = self.learner(records, coins), self.other_coins(coins, self.size, n, rng)
        return self.of_positions(records, fresh, before, again, rng)

    def of_positions(
        self, records: FloatArray, fresh: FloatArray, before: FloatArray, coins: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """The moment at one random position a draw; shape (n,)."""
        other, n = records.copy(), len(records)
        other[np.arange(n), rng.integers(0, self.size, n)] = fresh
        return self.moment(before - self.learner(other, coins))


@dataclass(frozen=True)
class RootMeanSquareMove:
    """One draw is an estimate of alpha: the root of the mean of so many squared differences.

    Parameters
    ----------
    moves : SquaredMove
        What draws them.
    repeats : int
        So many.
    """

    moves: SquaredMove
    repeats: int

    def __call__(self, source: FiniteRecordDistribution, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` estimates; float64 of shape (n,)."""
        require_draws(n)
        moves = self.moves(source, n * self.repeats, rng).reshape(n, self.repeats)
        return np.asarray(np.sqrt(moves.mean(axis=1)))


# ------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class FirstMoment(SquaredMove):
    """``|h_D - h_(D^j)|`` in place of its square."""

    def moment(self, moved: FloatArray) -> FloatArray:
        """What is averaged, of differences of shape (n,)."""
        return np.abs(moved)


@dataclass(frozen=True)
class IndependentCoins(SquaredMove):
    """The second training tosses its own coins."""

    def other_coins(self, coins: IntArray, size: int, n: int, rng: np.random.Generator) -> IntArray:
        """Fresh coins."""
        del coins
        return self.learner.coins(size, n, rng)


@dataclass(frozen=True)
class LargestMove(SquaredMove):
    """The largest over the positions in place of their mean."""

    def of_positions(
        self, records: FloatArray, fresh: FloatArray, before: FloatArray, coins: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """The largest moment over the positions; shape (n,)."""
        del rng
        largest = np.zeros(len(records))
        for j in range(self.size):
            other = records.copy()
            other[:, j] = fresh
            largest = np.maximum(largest, self.moment(before - self.learner(other, coins)))
        return largest


@dataclass(frozen=True)
class FixedRecord(SquaredMove):
    """What is put in is always the distribution's last value."""

    def fresh(self, source: FiniteRecordDistribution, n: int, rng: np.random.Generator) -> FloatArray:
        """The last value, shape (n, d)."""
        del rng
        return np.tile(np.asarray(source.values[-1]), (n, 1))


@dataclass(frozen=True)
class RemovedForReplaced(SquaredMove):
    """The record is taken out, and none put in; for learners without coins."""

    def of_positions(
        self, records: FloatArray, fresh: FloatArray, before: FloatArray, coins: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """The moment at one random position a draw; shape (n,)."""
        del fresh
        n = len(records)
        out = rng.integers(0, self.size, n)
        kept = np.arange(self.size - 1) + (np.arange(self.size - 1) >= out[:, None])
        return self.moment(before - self.learner(records[np.arange(n)[:, None], kept], coins))


#: None of them breaks a claim of privacy, as there is none: each estimates another number than alpha^2.
MUTANTS: dict[str, Mutant[SquaredMove]] = tabulate_mutants(
    Mutant("first_moment", Twin(FirstMoment), None, "benign", "|.| for |.|^2: of the order 1/n, not 1/n^2"),
    Mutant(
        "independent_coins", Twin(IndependentCoins), None, "benign", "the coins' own variance is counted, for every n"
    ),
    Mutant("maximum_over_entries", Twin(LargestMove), None, "benign", "the largest move, as in uniform stability"),
    Mutant(
        "adversarial_replacement",
        Twin(FixedRecord),
        None,
        "benign",
        "a fixed record, the rarest here, is put in for a fresh one",
    ),
    Mutant("add_remove_for_replace", Twin(RemovedForReplaced), None, "benign", "add/remove: about half of the square"),
)


def _descent(**changed: Order | int | bool) -> Callable[[SquaredMove], SquaredMove]:
    def build(base: SquaredMove) -> SquaredMove:
        learner = base.learner
        if not isinstance(learner, StochasticGradientDescent):
            raise ValueError(f"expected a learner by descent, got {learner!r}")
        return replace(base, learner=replace(learner, **changed))  # type: ignore[arg-type]

    return build


def _uncouple_coins(base: SquaredMove) -> SquaredMove:
    permuted = _descent(order="permuted")(base)
    return IndependentCoins(permuted.learner, permuted.size)


#: Gradient descent that is held against the closed form of another one.
DESCENT_MUTANTS: dict[str, Mutant[SquaredMove]] = tabulate_mutants(
    Mutant(
        "sampling_with_replacement",
        _descent(order="replacement"),
        None,
        "benign",
        "an index is hit 0, 1, 2.. times: the square of a sum is counted",
    ),
    Mutant("several_epochs", _descent(passes=2), None, "benign", "two passes, held against one"),
    Mutant("uncoupled_permutations", _uncouple_coins, None, "benign", "two orders: alpha does not vanish"),
    Mutant("last_iterate_for_average", _descent(average=False), None, "benign", "the last weight for the mean of all"),
)
