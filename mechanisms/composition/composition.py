"""Several mechanisms on the same data: a budget accountant, and its mutants.

Source: D003 Theorem 2.1.2; catalogue 000_001_003, basic_composition and A4; Kairouz, Oh and Viswanath (2015) for the
worst case of composition.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.datasets.rows import slice_rows
from auditor.privacy.exact import FiniteLaw, Law, ProductLaw
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    Mutant,
    Twin,
    require,
    require_draws,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.queries import Count, CountingQuery, Query, Relation

#: First and last row, the last one excluded, that a part of a composition reads; None for all rows.
Rows: TypeAlias = tuple[int, int] | None


def _require_rows(rows: Rows) -> None:
    require(rows is None or 0 <= rows[0] < rows[1], "a range of rows, or None for all", rows)


# --------------------------------------------------------------------------- queries on some rows


@dataclass(frozen=True)
class CountOnRows(CountingQuery):
    """A count over a range of rows; neighbours replace one row, so that positions are public.

    Parameters
    ----------
    count : Count
        Under replace_one.
    rows : (int, int)
        First row, and the row after the last.
    """

    count: Count
    rows: tuple[int, int]

    def __post_init__(self) -> None:
        _require_rows(self.rows)
        require(self.count.relation == "replace_one", "a count under replace_one", self.count.relation)

    @property
    def relation(self) -> Relation:
        """Always replace_one."""
        return "replace_one"

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the count, shape (); ValueError if the data have fewer rows."""
        require(self.rows[1] <= len(data), f"at least {self.rows[1]} rows", len(data))
        return self.count(slice_rows(data, *self.rows))


@dataclass(frozen=True)
class RowBit:
    """Whether one row satisfies a predicate.

    Parameters
    ----------
    predicate : Count
        Counts a row that satisfies it.
    row : int, default 0
        Position of the row.
    """

    predicate: Count
    row: int = 0

    def __post_init__(self) -> None:
        require(self.row >= 0, "a row >= 0", self.row)

    def __call__(self, data: Dataset) -> int:
        """Return 0 or 1."""
        return int(CountOnRows(self.predicate, (self.row, self.row + 1))(data))


# ------------------------------------------------------------------- the parts of a composition


@dataclass(frozen=True)
class LeakyResponse:
    """Randomised response to one bit that, with probability `delta`, publishes the bit as it is.

    Parameters
    ----------
    bit : RowBit
        What is asked.
    epsilon : float
        At least 0; the true bit is answered with probability ``e^epsilon / (1 + e^epsilon)``.
    delta : float, default 0.0
        In [0, 1). With ``epsilon = 0`` this is "publish the row with probability delta", as far as the bit goes.

    Notes
    -----
    (epsilon, delta)-DP, and of all such mechanisms the one whose composition is worst. The outputs are 0 and 1 where
    the response is random, 2 and 3 where 0 and 1 are published as they are. Source: Kairouz, Oh and Viswanath (2015),
    section 3.
    """

    bit: RowBit
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        require(0.0 <= self.epsilon < math.inf, "a finite epsilon >= 0", self.epsilon)
        require(0.0 <= self.delta < 1.0, "delta in [0, 1)", self.delta)

    @property
    def keep(self) -> float:
        """Probability that a random response is the bit."""
        return float(special.expit(self.epsilon))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Draw `n` responses; uint8 of shape (n,)."""
        require_draws(n)
        bit = self.bit(data)
        response = np.where(rng.random(n) < self.keep, bit, 1 - bit)
        if self.delta:
            response = np.where(rng.random(n) < self.delta, 2 + bit, response)
        return response.astype(np.uint8)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`."""
        bit, noisy = self.bit(data), 1.0 - self.delta
        kept, flipped = noisy * self.keep, noisy * float(special.expit(-self.epsilon))
        probabilities = [flipped, kept] if bit else [kept, flipped]
        return FiniteLaw((0, 1, 2, 3), np.array([*probabilities, *((0.0, self.delta) if bit else (self.delta, 0.0))]))


class HasLawAndDraws(Protocol):
    """A mechanism with one output a draw and a known distribution."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator, /) -> NDArray[Any]:
        """Draw `n` outputs, shape (n,)."""
        ...

    def law(self, data: Dataset, /) -> Law:
        """Exact output distribution on `data`."""
        ...


class AccountedPart(Protocol):
    """What an accountant hands a share of the budget to."""

    @property
    def rows(self) -> Rows:
        """The rows that it reads."""
        ...

    def spending(self, epsilon: float, delta: float, /) -> HasLawAndDraws:
        """Return the mechanism that spends this share."""
        ...


@dataclass(frozen=True)
class NoisyCountPart:
    """A count with Laplace noise on a lattice; of its share it spends epsilon and leaves delta.

    Parameters
    ----------
    count : Count
        What is counted.
    rows : (int, int), optional
        Where; default everywhere.
    step : float, default 2**-10
        See `mechanisms.additive_noise.laplace.LatticeLaplace`.
    """

    count: Count
    rows: Rows = None
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        _require_rows(self.rows)

    def spending(self, epsilon: float, delta: float) -> LatticeLaplace:
        """Return the count with noise of level `epsilon`."""
        del delta
        query: Query = self.count if self.rows is None else CountOnRows(self.count, self.rows)
        return LatticeLaplace(query, epsilon, self.step)


@dataclass(frozen=True)
class LeakyResponsePart:
    """A `LeakyResponse`, which spends all of its share."""

    bit: RowBit

    @property
    def rows(self) -> Rows:
        """The one row."""
        return self.bit.row, self.bit.row + 1

    def spending(self, epsilon: float, delta: float) -> LeakyResponse:
        """Return the response of that level."""
        return LeakyResponse(self.bit, epsilon, delta)


# ------------------------------------------------------------------------------- the accountant


def multiplicity(parts: Collection[AccountedPart]) -> int:
    """Most parts that one row is read by."""
    whole = sum(part.rows is None for part in parts)
    ranges = [part.rows for part in parts if part.rows is not None]
    # It is reached at the first row of some range.
    return whole + max((sum(low <= start < high for low, high in ranges) for start, _ in ranges), default=0)


@dataclass(frozen=True)
class _Accountant:
    """What the accountant shares with its mutants; most of them replace the divisor."""

    parts: Sequence[AccountedPart]
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        require(len(self.parts) > 0, "at least one part", self.parts)
        require(0.0 <= self.epsilon < math.inf, "a finite epsilon >= 0", self.epsilon)
        require(0.0 <= self.delta < 1.0, "delta in [0, 1)", self.delta)
        self.mechanisms()

    @property
    def divisor(self) -> float:
        """What the budget is divided by to give a part's share."""
        return float(multiplicity(self.parts))

    def mechanisms(self) -> list[HasLawAndDraws]:
        """Return the parts' mechanisms, each with its share."""
        return [one.spending(self.epsilon / self.divisor, self.delta / self.divisor) for one in self.parts]

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `n` outputs, shape (n, parts): what all parts publish, each with coins of its own."""
        require_draws(n)
        return np.stack([mechanism(data, n, rng) for mechanism in self.mechanisms()], axis=1)


@dataclass(frozen=True)
class Accountant(_Accountant):
    """Divides a budget evenly, runs all parts and publishes everything: basic and parallel composition.

    Parameters
    ----------
    parts : sequence of AccountedPart
        What is run, at least one.
    epsilon, delta : float
        The budget, which is the claim; epsilon >= 0, delta in [0, 1).

    Notes
    -----
    k parts that read all the data get ``(epsilon / k, delta / k)`` each (Theorem 2.1.2). A row that is not read by a
    part does not matter to it, so where ranges of rows are disjoint the share is the whole budget, and in general it is
    the budget over the largest number of parts that read one row. Neighbours replace one row.
    """

    def law(self, data: Dataset) -> ProductLaw:
        """Exact output distribution on `data`: independent coordinates."""
        laws = {mechanism: mechanism.law(data) for mechanism in set(self.mechanisms())}
        return ProductLaw(tuple(laws[mechanism] for mechanism in self.mechanisms()))


@dataclass(frozen=True)
class NoiseReusedInEveryPart(_Accountant):
    """Every part begins with the same coins."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `n` outputs, shape (n, parts)."""
        require_draws(n)
        seed = int(rng.integers(2**63))
        return np.stack([m(data, n, np.random.default_rng(seed)) for m in self.mechanisms()], axis=1)


@dataclass(frozen=True)
class BudgetNotDivided(Accountant):
    """Every part gets the whole budget."""

    @property
    def divisor(self) -> float:
        """1, whatever the parts."""
        return 1.0


@dataclass(frozen=True)
class BudgetDividedByRoot(Accountant):
    """The square root of advanced composition, for a pure claim."""

    @property
    def divisor(self) -> float:
        """Square root of the right one."""
        return math.sqrt(super().divisor)


@dataclass(frozen=True)
class BudgetCountedByText(Accountant):
    """What is asked again in the same words is answered again, with fresh noise, and not charged."""

    @property
    def divisor(self) -> float:
        """Number of different parts that read one row."""
        return float(multiplicity(set(self.parts)))


@dataclass(frozen=True)
class ParallelOnOverlap(Accountant):
    """Parts with different ranges of rows are taken to have no row in common."""

    @property
    def divisor(self) -> float:
        """Most parts with the same range."""
        return float(max(Counter(part.rows for part in self.parts).values()))


@dataclass(frozen=True)
class _Shares:
    """True pure level of a mutant that only has another divisor, if all answers move (for `Mutant.true_level`)."""

    mutant: Callable[..., _Accountant]

    def __call__(self, base: Accountant) -> float:
        """Return it for the parameters of `base`."""
        return base.epsilon * base.divisor / self.mutant(base.parts, base.epsilon, base.delta).divisor


MUTANTS: dict[str, Mutant[Accountant]] = tabulate_mutants(
    Mutant(
        "noise_reused",
        Twin(NoiseReusedInEveryPart),
        unbounded,
        "violation",
        "one draw of noise for all parts: two answers whose difference changes",
    ),
    Mutant(
        "budget_not_divided",
        Twin(BudgetNotDivided),
        _Shares(BudgetNotDivided),
        "violation",
        "k eps: each part gets it all",
    ),
    Mutant(
        "budget_divided_by_sqrt_k",
        Twin(BudgetDividedByRoot),
        _Shares(BudgetDividedByRoot),
        "violation",
        "sqrt(k) eps: the root of advanced composition under a pure claim",
    ),
    Mutant(
        "counted_by_query_text",
        Twin(BudgetCountedByText),
        _Shares(BudgetCountedByText),
        "violation",
        "repeated queries are answered with fresh noise and not charged: eps times queries over different queries",
    ),
    Mutant(
        "parallel_on_overlap",
        Twin(ParallelOnOverlap),
        _Shares(ParallelOnOverlap),
        "violation",
        "ranges of rows that overlap are charged like disjoint ones: eps times the parts that read one row",
    ),
)
