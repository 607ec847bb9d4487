"""Synthetic data by the exponential mechanism over small databases (Blum, Ligett, Roth), and its mutants.

The universe is {0,1}^d, read from d columns of the data, and the queries are all 3^d conjunctions of literals: each
column is asked to be 1, to be 0, or not asked. They contain the 2^d elements of the universe themselves.

A synthetic database of m rows is drawn as its histogram. Its probability is that of all its orderings together: the
number of orderings (a multinomial coefficient) times the weight of one.

Source: D001 section 12.4, Theorems 12.6 and 12.7; D003 section 3.1, Theorem 3.1.1; catalogue 000_001_003,
blr_small_database.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from auditor.privacy.laws import FiniteLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    TimesEpsilon,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.queries import column_values

#: What a table may leave out of a distribution, as e^-45 < 3e-20: less than a uniform draw in double precision
#: resolves.
_LEFT_OUT = 45.0
#: Histograms in a table: 2^22 of four cells are 100 MB while it is built.
_MOST_TYPES = 2**22
#: Histograms in a stated distribution, whose outcomes are Python tuples: four cells up to m = 114.
_MOST_OUTCOMES = 2**18
#: exp(-700) is still a normal double; below that a possible outcome would be stated as impossible.
_FURTHEST = 700.0


@lru_cache(maxsize=8)
def conjunctions(d: int) -> NDArray[np.bool_]:
    """All conjunctions of literals on {0,1}^d.

    Parameters
    ----------
    d : int
        Number of bits, from 1 to 8.

    Returns
    -------
    ndarray of shape (3^d, 2^d), bool
        Which elements satisfy which conjunction; element e has the bits of the number e, the first one the highest.
    """
    require(isinstance(d, int) and 1 <= d <= 8, "a number of bits from 1 to 8", d)
    elements = np.array(list(itertools.product((0, 1), repeat=d)))
    asked = np.array(list(itertools.product((-1, 0, 1), repeat=d)))
    held = (asked[:, None, :] == -1) | (asked[:, None, :] == elements[None, :, :])
    found: NDArray[np.bool_] = held.all(axis=2)
    found.setflags(write=False)
    return found


def largest_errors(histograms: IntArray, truth: FloatArray) -> FloatArray:
    """Largest error over all conjunctions of the answers of synthetic databases.

    Parameters
    ----------
    histograms : ndarray of shape (n, 2^d)
        Rows of each synthetic database by element; all databases have at least one row.
    truth : ndarray of shape (2^d,)
        Fractions of the real rows by element.

    Returns
    -------
    ndarray of shape (n,)
        ``max over q of |q(D) - q(synthetic)|``, answers being fractions.
    """
    queries = conjunctions(truth.size.bit_length() - 1)
    size = histograms.sum(axis=1)
    worst = np.zeros(len(histograms))
    for query in queries:  # one at a time, so that memory is that of one query's answers
        answers = histograms[:, query].sum(axis=1) / size
        np.maximum(worst, np.abs(answers - truth[query].sum()), out=worst)
    return worst


@dataclass(frozen=True)
class ConjunctionError:
    """Largest error over all conjunctions of draws of a mechanism of this family, on one dataset.

    Parameters
    ----------
    truth : tuple of float
        Fractions of the real rows by element.
    """

    truth: tuple[float, ...]

    def __call__(self, outputs: IntArray) -> FloatArray:
        """Errors of n histograms, float64 of shape (n,)."""
        return largest_errors(np.asarray(outputs, dtype=np.int64), np.array(self.truth))


def histograms_within(low: IntArray, high: IntArray, size: int) -> IntArray:
    """All histograms of ``size`` rows with every cell between its bounds.

    Parameters
    ----------
    low, high : ndarray of shape (cells,), int64
        Bounds of each cell, both included.
    size : int
        Number of rows.

    Returns
    -------
    ndarray of shape (histograms, cells), int64

    Raises
    ------
    ValueError
        If there are more than 2^22 of them.
    """
    rows, left = np.zeros((1, 0), dtype=np.int64), np.array([size])
    for cell in range(low.size):
        # What the later cells can and must hold bounds this one, so that every prefix can be completed.
        first = np.maximum(low[cell], left - high[cell + 1 :].sum())
        last = np.minimum(high[cell], left - low[cell + 1 :].sum())
        times = np.maximum(last - first + 1, 0)
        total = int(times.sum())
        require(total <= _MOST_TYPES, f"at most {_MOST_TYPES} histograms", total)
        start = np.repeat(np.cumsum(times) - times, times)
        value = np.repeat(first, times) + np.arange(total) - start
        rows = np.column_stack([np.repeat(rows, times, axis=0), value])
        left = np.repeat(left, times) - value
    return rows


def log_orderings(histograms: IntArray) -> FloatArray:
    """Logarithm of the number of ordered databases with each histogram, float64 of shape (n,)."""
    size = histograms.sum(axis=1)
    return np.asarray(special.gammaln(size + 1.0) - special.gammaln(histograms + 1.0).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class TypeTable:
    """Synthetic databases by histogram, with their probabilities.

    Attributes
    ----------
    types : ndarray of shape (T, cells), int64
        Histograms.
    log_mass : ndarray of shape (T,)
        Logarithms of their probabilities.
    errors : ndarray of shape (T,)
        Largest error over the conjunctions.
    cumulative : ndarray of shape (T,)
        Running sums of the probabilities.
    """

    types: IntArray
    log_mass: FloatArray
    errors: FloatArray
    cumulative: FloatArray


@lru_cache(maxsize=16)
def type_table(counts: tuple[int, ...], size: int, rate: float, ordered: bool, whole: bool) -> TypeTable:
    """Distribution of the exponential mechanism over histograms.

    Parameters
    ----------
    counts : tuple of int
        Rows of the dataset by element.
    size : int
        Rows of the synthetic database.
    rate : float
        The weight of one ordered database is ``exp(-rate * error)``.
    ordered : bool
        Whether a histogram counts once for each of its orderings, or once.
    whole : bool
        List all histograms, or only those that matter: what is left out has a probability below e^-45.

    Returns
    -------
    TypeTable

    Raises
    ------
    ValueError
        If more than 2^22 histograms would have to be listed.

    Notes
    -----
    A histogram that differs in one cell by more than r, as a fraction, has an error above r, because single elements
    are conjunctions. All such histograms together have at most the weight ``exp(-rate * r)`` of the whole base measure,
    and the distribution's normaliser is at least the weight of the histogram nearest to the data. r is chosen by that.
    """
    truth = np.array(counts) / sum(counts)
    cells = len(counts)
    low, high = np.zeros(cells, dtype=np.int64), np.full(cells, size, dtype=np.int64)
    if not whole:
        near = _nearest_histogram(truth, size)[None, :]
        log_base = (
            float(log_orderings(near)[0]) - size * math.log(cells)
            if ordered
            else -math.log(math.comb(size + cells - 1, size))
        )
        reach = float(largest_errors(near, truth)[0]) + (_LEFT_OUT - log_base) / rate
        low = np.maximum(low, np.ceil((truth - reach) * size).astype(np.int64))
        high = np.minimum(high, np.floor((truth + reach) * size).astype(np.int64))
    types = histograms_within(low, high, size)
    errors = largest_errors(types, truth)
    log_weight = -rate * errors + (log_orderings(types) if ordered else 0.0)
    log_mass = log_weight - special.logsumexp(log_weight)
    cumulative = np.cumsum(np.exp(log_mass))
    for array in (types, log_mass, errors, cumulative):
        array.setflags(write=False)
    return TypeTable(types, log_mass, errors, cumulative)


def _nearest_histogram(truth: FloatArray, size: int) -> IntArray:
    """A histogram of ``size`` rows that differs from the fractions by less than one row in every cell."""
    found = np.floor(truth * size).astype(np.int64)
    missing = size - int(found.sum())
    found[np.argsort(found - truth * size, kind="stable")[:missing]] += 1
    return found


@dataclass(frozen=True)
class _SyntheticBase:
    """What the mechanism shares with its mutants: everything but the distribution."""

    columns: tuple[Hashable, ...]
    epsilon: float
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        require(1 <= len(self.columns) <= 8, "from 1 to 8 columns", self.columns)
        require(len(set(self.columns)) == len(self.columns), "distinct columns", self.columns)
        require_positive("epsilon", self.epsilon)
        whole = isinstance(self.size, (int, np.integer)) and not isinstance(self.size, bool)
        require(whole and self.size >= 1, "a whole number of synthetic rows >= 1", self.size)

    def counts(self, data: Dataset) -> tuple[int, ...]:
        """Rows of the dataset by element; ValueError if a column holds anything but 0 and 1, or there is no row."""
        element: IntArray = np.zeros((), dtype=np.int64)
        for column in self.columns:
            bits = column_values(data, column)
            others = bits[(bits != 0) & (bits != 1)]
            require(others.size == 0, f"only 0 and 1 in column {column!r}", others[:3].tolist())
            element = 2 * element + bits.astype(np.int64)
        require(element.size > 0 and element.ndim == 1, "at least one row", element.shape)
        return tuple(np.bincount(element, minlength=2 ** len(self.columns)).tolist())

    def error(self, data: Dataset) -> ConjunctionError:
        """The largest error over all conjunctions, of outputs on ``data``."""
        counts = self.counts(data)
        return ConjunctionError(tuple(count / sum(counts) for count in counts))


@dataclass(frozen=True)
class _WeightedSelection(_SyntheticBase):
    """The exponential mechanism with some weight ``exp(-rate * error)``."""

    ordered = True

    def rate(self, rows: int) -> float:
        """``1 / sigma = rows * eps / 2``: the score has sensitivity 1 / rows."""
        return rows * self.epsilon / 2.0

    def synthetic_rows(self, counts: tuple[int, ...]) -> int:  # noqa: ARG002 -- a mutant's depends on the data
        """Rows of the synthetic database."""
        return self.size

    def table(self, data: Dataset, *, whole: bool = False) -> TypeTable:
        """Histograms and their probabilities, see `type_table`."""
        counts = self.counts(data)
        return type_table(counts, self.synthetic_rows(counts), self.rate(sum(counts)), self.ordered, whole)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` synthetic databases; histograms, int64 of shape (n, 2^d), each with ``size`` rows in all."""
        require_draws(n)
        found = self.table(data)
        index = np.searchsorted(found.cumulative, rng.random(n) * found.cumulative[-1], side="right")
        return np.asarray(found.types[index], dtype=np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`; outcomes are histograms, as tuples.

        Raises
        ------
        ValueError
            If there are more than 2^18 histograms, or the least probable one has a probability below e^-700.
        """
        counts = self.counts(data)
        return _stated_distribution(counts, self.synthetic_rows(counts), self.rate(sum(counts)), self.ordered)

    def failure(self, data: Dataset, at_least: float) -> float:
        """Probability of an error of at least ``at_least``, to within 3e-20."""
        found = self.table(data)
        return float(np.exp(found.log_mass[found.errors >= at_least]).sum())

    def quantile(self, data: Dataset, level: float) -> float:
        """Smallest error that is exceeded with probability at most ``1 - level``."""
        found = self.table(data)
        order = np.argsort(found.errors, kind="stable")
        place = int(np.searchsorted(np.cumsum(np.exp(found.log_mass[order])), level))
        return float(found.errors[order[min(place, len(order) - 1)]])


@lru_cache(maxsize=16)
def _stated_distribution(counts: tuple[int, ...], size: int, rate: float, ordered: bool) -> FiniteLaw:
    histograms = math.comb(size + len(counts) - 1, size)
    require(histograms <= _MOST_OUTCOMES, f"a distribution on at most {_MOST_OUTCOMES} histograms", histograms)
    found = type_table(counts, size, rate, ordered, True)
    least = float(found.log_mass.min())
    require(least >= -_FURTHEST, f"log probabilities of at least {-_FURTHEST:g}", least)
    return FiniteLaw(tuple(map(tuple, found.types.tolist())), np.exp(found.log_mass))


@dataclass(frozen=True)
class SmallDatabase(_WeightedSelection):
    """Draw a synthetic database of ``size`` rows with probability proportional to ``exp(u / sigma)``.

    ``u = -max over conjunctions of |q(D) - q(synthetic)|`` and ``sigma = 2 / (rows * eps)``, as in document 001; in
    document 003 the weight is ``exp(-eps * rows * max|.|)``, which is this with twice the level. Neighbours differ in
    one of a public number of rows, which moves u by at most 1 / rows.

    Parameters
    ----------
    columns : tuple of hashables
        Columns of zeros and ones, 1 to 8 of them; the universe is {0,1}^d.
    epsilon : float
        Claimed pure level.
    size : int
        Rows of the synthetic database, public; see `theorem_size`.

    Raises
    ------
    ValueError
        If a parameter is not what it must be; on use, if a column holds other values, or the distribution is too large.

    Notes
    -----
    Drawn from the exact distribution on histograms, by inverting its cumulative probabilities. Where the distribution
    is concentrated only the histograms near the data are listed (see `type_table`): that is what makes hundreds of rows
    cheap.
    """


def theorem_alpha(rows: int, epsilon: float, beta: float, d: int) -> float:
    """Error of Theorem 12.7 with its constants, for all 3^d conjunctions on {0,1}^d.

    The solution of ``al^3 = (8 ln(2k) ln N + 4 al^2 ln(1/beta)) / (n eps)``: what ``N^m exp(-al n eps / 4) <= beta``
    asks with ``m = 2 ln(2k) / al^2``. Rounding m up to whole rows would add at most ``4 ln N / (n eps)``.
    """
    return theorem_root(math.log(2 * 3**d) * d * math.log(2), rows, epsilon, beta)


def theorem_root(logarithms: float, rows: int, epsilon: float, beta: float) -> float:
    """Error of Theorem 12.7 with its constants, for any k queries and N elements: ``logarithms`` is ln(2k) ln N."""
    return _root(8 * logarithms, 4 * math.log(1 / beta), rows * epsilon)


def theorem_size(alpha: float, d: int) -> int:
    """Rows of the synthetic database in document 001: ``2 ln(2k) / alpha^2`` for k = 3^d, rounded up."""
    return math.ceil(2 * math.log(2 * 3**d) / alpha**2)


def lecture_alpha(rows: int, epsilon: float, beta: float, d: int) -> float:
    """Half the error in document 003's proof, whose weights give the privacy level 2 epsilon.

    The solution of ``al^3 = (ln(2k) ln N / 2 + al^2 ln(1/beta)) / (n eps)``; the error is at most 2 al.
    """
    return _root(math.log(2 * 3**d) * d * math.log(2) / 2, math.log(1 / beta), rows * epsilon)


def lecture_size(alpha: float, d: int) -> int:
    """Rows of the synthetic database in document 003: the first integer above ``ln(2k) / (2 alpha^2)``."""
    return math.floor(math.log(2 * 3**d) / (2 * alpha**2)) + 1


def _root(constant: float, square: float, strength: float) -> float:
    """The positive solution of ``strength al^3 = constant + square al^2``."""
    # The left side over the right one grows with al: at most constant / al^2 + square is needed of strength * al.
    high = (constant / strength) ** (1 / 3) + square / strength + 1.0
    return float(optimize.brentq(lambda al: strength * al**3 - square * al**2 - constant, 0.0, high, xtol=1e-15))


def datasets(rows: int, cells: int) -> Iterator[tuple[int, ...]]:
    """All datasets of so many rows on a universe of so many elements, as histograms."""
    bounds = np.zeros(cells, dtype=np.int64), np.full(cells, rows, dtype=np.int64)
    yield from map(tuple, histograms_within(*bounds, rows).tolist())


def worst_level(mechanism: SmallDatabase, rows: int) -> float:
    """Exact pure level: the largest privacy loss over all neighbours of all datasets of so many rows."""
    cells, rate = 2 ** len(mechanism.columns), mechanism.rate(rows)
    log_mass = {
        counts: type_table.__wrapped__(counts, mechanism.size, rate, True, True).log_mass
        for counts in datasets(rows, cells)
    }
    worst = 0.0
    for counts, mass in log_mass.items():
        for source, target in itertools.permutations(range(cells), 2):
            if counts[source]:
                moved = list(counts)
                moved[source] -= 1
                moved[target] += 1
                worst = max(worst, float(np.max(np.abs(mass - log_mass[tuple(moved)]))))
    return worst


@dataclass(frozen=True)
class ScoreScaleHalved(_WeightedSelection):
    """``sigma = 1 / (n eps)``: the move of the normaliser is forgotten."""

    def rate(self, rows: int) -> float:
        """``rows * eps``."""
        return rows * self.epsilon


@dataclass(frozen=True)
class TimesSyntheticRows(_WeightedSelection):
    """m in place of n in the weight: ``sigma = 2 / (m eps)``."""

    def rate(self, rows: int) -> float:  # noqa: ARG002 -- that is the mistake
        """``size * eps / 2``."""
        return self.size * self.epsilon / 2.0


@dataclass(frozen=True)
class ScoreNotDividedByRows(_WeightedSelection):
    """The score is an error in counts, the scale is still that of an error in fractions."""

    def rate(self, rows: int) -> float:
        """``rows^2 * eps / 2``."""
        return rows * rows * self.epsilon / 2.0


@dataclass(frozen=True)
class UnorderedBaseMeasure(_WeightedSelection):
    """Every histogram counts once, whatever the number of its orderings."""

    ordered = False


@dataclass(frozen=True)
class SizeFromData(_WeightedSelection):
    """As few rows as can come within alpha/2 of the data, alpha being the error for which ``size`` rows are meant."""

    def synthetic_rows(self, counts: tuple[int, ...]) -> int:
        """The smallest size at which some synthetic database has an error of at most alpha/2."""
        truth = np.array(counts) / sum(counts)
        half = math.sqrt(2 * math.log(2 * 3 ** len(self.columns)) / self.size) / 2
        cells = np.zeros(len(counts), dtype=np.int64)
        for size in range(1, self.size):
            if largest_errors(histograms_within(cells, cells + size, size), truth).min() <= half:
                return size
        return self.size


@dataclass(frozen=True)
class RandomSubsampleOfData(_SyntheticBase):
    """Rows of the data, drawn with replacement: the proof that a good database exists, taken for the algorithm."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` histograms, int64 of shape (n, 2^d)."""
        require_draws(n)
        counts = self.counts(data)
        return np.asarray(rng.multinomial(self.size, np.array(counts) / sum(counts), size=n), dtype=np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`; databases with a row that the data do not have are impossible."""
        counts = self.counts(data)
        share = np.array(counts) / sum(counts)
        outcomes = list(datasets(self.size, len(counts)))
        types = np.array(outcomes)
        # xlogy(0, 0) is 0, and log 0 otherwise leaves a probability of exactly 0.
        return FiniteLaw(tuple(outcomes), np.exp(log_orderings(types) + special.xlogy(types, share).sum(axis=1)))


MUTANTS: dict[str, Mutant[SmallDatabase]] = tabulate_mutants(
    Mutant(
        "score_scale_halved",
        Twin(ScoreScaleHalved),
        TimesEpsilon(2.0),
        "violation",
        "sigma = 1/(n eps): up to 2 eps, approached where one database has nearly no or nearly all the probability",
    ),
    Mutant(
        "score_times_m",
        Twin(TimesSyntheticRows),
        None,
        "benign",
        "m in place of n in the weight: at most eps m/n on n rows, another distribution; a violation only if m > n",
    ),
    Mutant(
        "score_not_divided_by_n",
        Twin(ScoreNotDividedByRows),
        None,
        "violation",
        "errors in counts with the scale for fractions: up to n eps on n rows",
    ),
    Mutant(
        "unordered_base_measure",
        Twin(UnorderedBaseMeasure),
        TimesEpsilon(1.0),
        "benign",
        "multinomial weights dropped: the exponential mechanism over histograms, as private, another distribution",
    ),
    Mutant(
        "random_subsample_of_data",
        Twin(RandomSubsampleOfData),
        unbounded,
        "violation",
        "m rows of the data: a row that only one dataset has shows with probability 1 - (1 - 1/n)^m",
    ),
    Mutant(
        "m_from_data",
        Twin(SizeFromData),
        unbounded,
        "violation",
        "as few rows as the data allow: where one replaced row changes that number, every output tells",
    ),
)
