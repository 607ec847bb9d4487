"""Threshold counts from a dyadic tree with Laplace noise, and its mutants.

The universe is 0 .. D - 1 with D = 2^d, and query t asks for the share of rows with a value of at least t (the document
counts from 1). Level l of the tree has the 2^l dyadic intervals of length 2^(d - l); a suffix of the universe is a
union of at most d of them, one a level.

Source: document 003, section 6.2, which has a table of bounds only; the tree is that of catalogue 000_001_003,
interval_queries.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, signal

from auditor.privacy.exact import FiniteLaw, Law, ProductLaw, TwoSidedGeometricLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    HasEpsilon,
    IntArray,
    Mutant,
    TimesEpsilon,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
)
from mechanisms.base.noise import base_for, two_sided_geometric
from mechanisms.base.queries import column_values

#: Deepest tree: 2^23 nodes are 64 MB a draw.
DEEPEST = 22
#: Where the sum of a tail is cut off. The tail falls by a factor e each scale, so as many scales are left out.
_TAIL = 1e-12


@dataclass(frozen=True)
class _Tree:
    """What the mechanism shares with its mutants: everything but a distribution."""

    column: Hashable | None
    depth: int
    size: int
    epsilon: float

    #: Whether the root, which is the public number of rows, gets noise.
    root_noise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        depth = isinstance(self.depth, (int, np.integer)) and 1 <= self.depth <= DEEPEST
        require(depth, f"a depth of 1 to {DEEPEST}", self.depth)
        require(isinstance(self.size, (int, np.integer)) and self.size >= 1, "a public size >= 1", self.size)
        require_positive("epsilon", self.epsilon)

    @property
    def universe(self) -> int:
        """Number of leaves, D = 2^d."""
        return 1 << self.depth

    def moved(self) -> int:
        """Nodes, at most, whose counts one row moves by 1, for which the noise is calibrated: two a level."""
        return 2 * self.depth

    @property
    def base(self) -> float:
        """Base of the noise on a count."""
        return base_for(self.epsilon, self.moved())

    @property
    def scale(self) -> float:
        """The Laplace scale of a node in counts, ``2 d / epsilon``."""
        return 1.0 / math.log1p(self.base - 1.0)

    @property
    def unit(self) -> float:
        """What a row is worth in an answer."""
        return 1.0 / self.size

    def counts(self, data: Dataset) -> IntArray:
        """Rows in each dyadic interval, int64 of shape (2 D - 1,), in heap order: the root, level 1, ..., the leaves.

        Raises
        ------
        ValueError
            If the data do not have `size` rows, or a value is no integer of 0 .. D - 1.
        """
        values = column_values(data, self.column).astype(np.float64)
        require(len(values) == self.size, f"{self.size} rows", len(values))
        inside = (values >= 0) & (values < self.universe) & (values == np.floor(values))
        require(bool(inside.all()), f"integers from 0 to {self.universe - 1}", values[~inside][:1])
        tree: IntArray = _sum_leaves(np.bincount(values.astype(np.int64), minlength=self.universe)[None])[0]
        return tree

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` noisy trees; float64 of shape (n, 2 D - 1), shares of the rows in heap order."""
        require_draws(n)
        nodes = self._noisy_nodes(self.counts(data), n, rng).astype(np.float64)
        nodes *= self.unit
        return nodes

    def _noisy_nodes(self, counts: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        first = 0 if self.root_noise else 1
        nodes = np.empty((n, counts.size), dtype=np.int64)
        nodes[:, 0] = counts[0]
        nodes[:, first:] = two_sided_geometric(self.base, (n, counts.size - first), rng)
        nodes[:, first:] += counts[first:]
        return nodes


def _sum_leaves(leaves: IntArray) -> IntArray:
    """All nodes of trees whose inner nodes are the sums of their children, from leaves of shape (n, D)."""
    levels = [leaves]
    while levels[-1].shape[1] > 1:
        levels.append(levels[-1][:, 0::2] + levels[-1][:, 1::2])
    return np.concatenate(levels[::-1], axis=1)


def threshold_answers(nodes: ArrayLike) -> FloatArray:
    """Answers to all threshold queries, from trees.

    Parameters
    ----------
    nodes : array_like of shape (n, 2 D - 1)
        Trees in heap order.

    Returns
    -------
    ndarray of float64, shape (n, D)
        Answer t is the share of values of at least t: of t = 0 the root, else the sum of the right siblings on the
        path to leaf t - 1.
    """
    trees = np.asarray(nodes, dtype=np.float64)
    suffix = np.zeros((len(trees), 1))
    width = 1
    while 2 * width < trees.shape[1]:
        width *= 2
        below = np.repeat(suffix, 2, axis=1)
        below[:, 0::2] += trees[:, width : 2 * width - 1 : 2]
        suffix = below
    return np.concatenate([trees[:, :1], suffix[:, :-1]], axis=1)


@dataclass(frozen=True)
class IntervalTree(_Tree):
    """Shares of the rows in all dyadic intervals, each with Laplace noise on the integers.

    Parameters
    ----------
    column : hashable or None
        Values of the rows, integers from 0 to 2^d - 1; see `mechanisms.base.queries.column_values`.
    depth : int
        d, from 1 to 22.
    size : int
        Number of rows n, which is public, and what the root says.
    epsilon : float
        Claimed level, under replace_one: a row that moves to the other half moves two nodes of each level.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def law(self, data: Dataset) -> ProductLaw:
        """Exact output distribution on `data`: the root, then two-sided geometric nodes, in units of 1/n."""
        counts, a = self.counts(data), self.base
        noisy = [TwoSidedGeometricLaw(int(c), a, self.unit) for c in counts]
        root: Law = noisy[0] if self.root_noise else FiniteLaw((float(counts[0] * self.unit),), np.ones(1))
        return ProductLaw((root, *noisy[1:]))

    # ------------------------------------------------------------------------------------ accuracy

    def query_variance(self, threshold: int) -> float:
        """Variance of the answer to one query: ``2 a / (a - 1)^2 / n^2`` a node, at most ``2 scale^2 / n^2``."""
        require(0 <= threshold < self.universe, f"a threshold from 0 to {self.universe - 1}", threshold)
        nodes = self.depth - (threshold - 1).bit_count() if threshold else 0
        return nodes * 2.0 * self.base / (self.base - 1.0) ** 2 / self.size**2

    def beyond(self, error: float) -> float:
        """Exact probability that an answer is off by more than `error`."""
        require(error >= 0, "an error >= 0", error)
        # A share's error is a count over n; a millionth of a count decides nothing but rounding.
        return largest_beyond(self.depth, self.base, math.floor(error * self.size + 1e-6))

    def quantile(self, q: float) -> float:
        """Return the least error that no answer exceeds with probability at least `q`, exactly."""
        return largest_quantile(self.depth, self.base, q) / self.size

    def expected_largest(self) -> float:
        """Expectation of the largest error over all queries, exactly: the sum of its tail."""
        total, reach, tail = 0.0, 0, 1.0
        while tail > _TAIL:
            tail = largest_beyond(self.depth, self.base, reach)
            total, reach = total + tail, reach + 1
        return total / self.size

    def bound(self, beta: float) -> float:
        """Error that no answer exceeds with probability at least ``1 - beta``: ``O(d^2 / (eps n))``.

        ``(scale / n) min over 0 < u < 1 of (d ln(1 + 1/(1 - u^2)) + ln(2/beta)) / u``. Valid because: with u in units
        of 1/scale, ``E e^(u Z) <= 1/(1 - u^2)`` (see Notes), so the sum over the leaves of ``E e^(u error)`` is at
        most ``(1 + 1/(1 - u^2))^d``, a factor of 1 or of a noise a level; Markov's inequality, and both signs.

        Notes
        -----
        ``E e^(u ln(a) Z) = 1 / (1 - (cosh(u l) - 1)/(cosh(l) - 1))`` with l = ln a, and the quotient is at most u^2,
        term by term in the series of cosh.
        """
        require(0 < beta < 1, "beta in (0, 1)", beta)
        return chernoff(self.depth, math.log(2.0 / beta)) * self.scale / self.size


def largest_beyond(depth: int, a: float, reach: int) -> float:
    """Exact probability that an answer of a tree of any depth is off by more than `reach` counts.

    With k levels to go and an error of c counts so far, all answers below stay within m counts with probability
    ``1 - H_k(c)``, where ``1 - H_k(c) = (1 - E[H_{k-1}(c + Z)]) (1 - H_{k-1}(c))``: to the left the right sibling's
    noise Z is added, to the right nothing, and the two subtrees have noise of their own. H_0 is 0 on -m .. m and 1
    elsewhere. Nothing is subtracted from a number near 1: errors of rounding would double with every level.
    """
    bad = np.zeros(2 * reach + 1)
    for _ in range(depth):
        left = _average_over_noise(bad, a)
        bad = left + bad * (1.0 - left)
    return float(bad[reach])


def largest_quantile(depth: int, a: float, q: float) -> int:
    """Return the least number of counts that no answer exceeds with probability at least `q`, exactly."""
    require(0 < q < 1, "a quantile in (0, 1)", q)
    low, high = -1, math.ceil(chernoff(depth, math.log(2.0 / (1.0 - q))) / math.log1p(a - 1.0))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if largest_beyond(depth, a, middle) <= 1.0 - q else (middle, high)
    return high


def chernoff(depth: int, log: float) -> float:
    """``min over 0 < u < 1 of (depth ln(1 + 1/(1 - u^2)) + log) / u``; see `IntervalTree.bound`."""

    def exponent(u: float) -> float:
        return float((depth * math.log1p(1.0 / (1.0 - u * u)) + log) / u)

    # Any u is valid, so the minimum need not be found to the last digit.
    return float(optimize.minimize_scalar(exponent, bounds=(1e-3, 1.0 - 1e-9), method="bounded").fun)


def _average_over_noise(values: FloatArray, a: float) -> FloatArray:
    """``E f(c + Z)`` for a function that is 1 beyond the ends, by one pass in each direction."""
    ratio = 1.0 / a
    forward = signal.lfilter([1.0], [1.0, -ratio], values)
    backward = signal.lfilter([1.0], [1.0, -ratio], values[::-1])[::-1]
    inner = (forward + backward - values) * ((a - 1.0) / (a + 1.0))
    # P[Z >= j] = a^(1 - j) / (a + 1), from the distance j >= 1 to either end on.
    tail = np.exp(-math.log1p(a - 1.0) * np.arange(values.size)) / (a + 1.0)
    return np.asarray(np.minimum(inner + tail + tail[::-1], 1.0), dtype=np.float64)


def packing_bound(depth: int, epsilon: float, size: int, probability: float) -> float:
    """Least error that an epsilon-DP mechanism can have, with this probability, on all datasets and thresholds.

    ``(d ln 2 - ln(1/p)) / (2 eps n)``, less half a row for the rounding. Valid because: datasets that have r rows at
    t and are equal otherwise, one for each of the 2^d values of t, are r replacements apart; where ``r > 2 al n``,
    answers that are within al on one are not on another. So ``2^d p <= e^(eps r)``, for the least such r, which is at
    most ``2 al n + 1``. The catalogue's formula leaves out that 1.
    """
    require(0 < probability <= 1, "a probability in (0, 1]", probability)
    return ((depth * math.log(2.0) + math.log(probability)) / epsilon - 1.0) / (2.0 * size)


# ----------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class TreeNoiseForOneNode(IntervalTree):
    """Noise 1/(eps n) a node, as if a row were in one node only."""

    def moved(self) -> int:
        """Return 1."""
        return 1


@dataclass(frozen=True)
class TreeNoiseForOneSide(IntervalTree):
    """Noise d/(eps n) a node: what a row adds is counted, what its replacement takes away is not."""

    def moved(self) -> int:
        """Return d."""
        return self.depth


@dataclass(frozen=True)
class NoisyRootWithoutBudget(IntervalTree):
    """The root gets noise as well, and no budget: it never changes under replace_one."""

    root_noise: ClassVar[bool] = True


@dataclass(frozen=True)
class NoisyLeavesOnly(_Tree):
    """Noise on the leaves only, for the two that a row moves; all other nodes are sums of them."""

    def moved(self) -> int:
        """Return 2."""
        return 2

    def _noisy_nodes(self, counts: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        leaves = counts[self.universe - 1 :]
        nodes = _sum_leaves(leaves + two_sided_geometric(self.base, (n, self.universe), rng))
        nodes[:, 0] = counts[0]
        return nodes


@dataclass(frozen=True)
class _TimesDepth:
    """A true level of `factor` times d times the claimed one."""

    factor: float

    def __call__(self, base: HasEpsilon) -> float:
        """Return it for the parameters of `base`."""
        return self.factor * base.depth * base.epsilon  # type: ignore[attr-defined, no-any-return]


MUTANTS: dict[str, Mutant[IntervalTree]] = tabulate_mutants(
    Mutant(
        "noise_1_over_eps_n",
        Twin(TreeNoiseForOneNode),
        _TimesDepth(2.0),
        "violation",
        "noise for one node: a row that moves to the other half moves 2 d of them",
    ),
    Mutant(
        "noise_d_over_eps_n",
        Twin(TreeNoiseForOneSide),
        TimesEpsilon(2.0),
        "violation",
        "noise for d nodes: a row that moves to the other half moves 2 d of them",
    ),
    Mutant(
        "root_without_budget",
        Twin(NoisyRootWithoutBudget),
        TimesEpsilon(1.0),
        "benign",
        "noise on the number of rows, which is public: no loss, another distribution",
    ),
    Mutant(
        "leaves_only",
        Twin(NoisyLeavesOnly),
        TimesEpsilon(1.0),
        "benign",
        "noise on the leaves only: errors add up over 2^d leaves",
    ),
)
