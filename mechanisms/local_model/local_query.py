"""One statistical query answered by a local protocol: every user sends a noisy value, the answer is their mean.

The protocol A_g: for a query g with values in [-b, b], user i sends ``g(z_i) + eta_i`` with independent noise of the
Laplace distribution of scale ``2 b / epsilon``, and the mean of the messages is the answer. Each user sends one
message, so what a user has to be protected from is the message itself: `UserMessages` is what is to be audited.
`MeanOfMessages`, the answer, hides in its noise what is wrong with the messages.

Noise is integer noise on a power-of-two lattice. Accuracy is about users drawn from a distribution:
`mechanisms.local_model.fresh_users`.

Source: document 002, section 5.1.1, Lemma 5.6; catalogue 002, local_sq_query.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from auditor.privacy.exact import FiniteLaw, Law, ProductLaw, TwoSidedGeometricLaw
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
from mechanisms.base.noise import base_for, lattice_law, round_to_lattice, two_sided_geometric
from mechanisms.base.queries import column_values
from mechanisms.local_model.fresh_users import FreshUsers as FreshUsers
from mechanisms.local_model.fresh_users import noise_sums as noise_sums

# ----------------------------------------------------------------------------------- queries


class UserQuery(Protocol):
    """A query g about one user, with values in [-b, b]."""

    @property
    def bound(self) -> float:
        """The b that noise is calibrated to."""
        ...

    def __call__(self, rows: Dataset, /) -> FloatArray:
        """Return g of every row, float64 of shape (rows,)."""
        ...


@dataclass(frozen=True)
class ScaledColumn:
    """A column's value, clipped to [low, high] and mapped linearly onto [-b, b].

    Parameters
    ----------
    column : hashable or None
        See `mechanisms.base.queries.column_values`.
    low, high : float
        Range; values beyond it count as its ends.
    bound : float, default 1
        b.
    """

    column: Hashable | None
    low: float
    high: float
    bound: float = 1.0

    def __post_init__(self) -> None:
        require(-math.inf < self.low < self.high < math.inf, "a finite range, low < high", (self.low, self.high))
        require_positive("bound", self.bound)

    def clipped(self, values: FloatArray) -> FloatArray:
        """Return the values, moved into the range; shape (rows,)."""
        return np.clip(values, self.low, self.high)

    def __call__(self, rows: Dataset) -> FloatArray:
        """Return g of every row, float64 of shape (rows,)."""
        values = self.clipped(column_values(rows, self.column).astype(np.float64))
        return self.bound * (2.0 * (values - self.low) / (self.high - self.low) - 1.0)


@dataclass(frozen=True)
class UnclippedColumn(ScaledColumn):
    """`ScaledColumn` that leaves values beyond the range where they are: its values are not in [-b, b]."""

    def clipped(self, values: FloatArray) -> FloatArray:
        """Return the values as they are; shape (rows,)."""
        return values


# -------------------------------------------------------------------------------- mechanisms


@dataclass(frozen=True)
class _SentMessages:
    """What the messages share with all of their mutants: everything but the distribution."""

    query: UserQuery
    epsilon: float
    asked: int | tuple[int, ...]
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require_positive("step", self.step)
        require(math.frexp(self.step)[0] == 0.5, "a power of two as step", self.step)
        require(np.size(self.asked) > 0 and bool(np.all(np.asarray(self.asked) >= 0)), "positions >= 0", self.asked)

    @property
    def calibrated(self) -> float:
        """The level to which the noise of one message is calibrated."""
        return self.epsilon

    @property
    def base(self) -> float:
        """Base of the integer noise of one message."""
        return base_for(self.calibrated, math.ceil(2.0 * self.query.bound / self.step))

    @property
    def sent_by(self) -> IntArray:
        """Who sends the messages, one position each; shape () or (messages,)."""
        return np.asarray(self.asked, dtype=np.int64)

    def centre(self, data: Dataset) -> IntArray:
        """Return g of the users who send, in lattice steps; shape () or (messages,). ValueError beyond [-b, b]."""
        values, bound = _values(self.query, data, self.sent_by), self.query.bound
        require(bool(np.all(np.abs(values) <= bound)), f"values in [-{bound}, {bound}]", values)
        return round_to_lattice(values, self.step)

    def noise(self, size: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Draw the noise of n releases; int64 of shape (n,) or (n, messages)."""
        return two_sided_geometric(self.base, size, rng)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` releases; float64 of shape (n,) or (n, messages), exact multiples of the step."""
        require_draws(n)
        centre = self.centre(data)
        return (centre + self.noise((n, *centre.shape), rng)).astype(np.float64) * self.step


@dataclass(frozen=True)
class UserMessages(_SentMessages):
    """What some of the users send, each a message of their own, as the collector sees it.

    Parameters
    ----------
    query : UserQuery
        g, with its bound b.
    epsilon : float
        Claimed pure level of each user's messages, and of all of them under replace-one.
    asked : int or tuple of int
        Positions of the users, public. For one position the output is one number.
    step : float, default 2**-10
        Lattice step, a power of two: g is rounded to a multiple of it, and so moves by at most ``ceil(2 b / step)``
        steps from one user to another. Noise has base ``a = exp(epsilon / ceil(2 b / step))``. If b is a multiple of
        the step, values of b and -b cost exactly epsilon.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def law(self, data: Dataset) -> Law:
        """Exact distribution of a release: independent two-sided geometric messages in units of the step."""
        return lattice_law(self.centre(data), self.base, self.step)


class HasMessages(Protocol):
    """A mechanism that releases messages, independent of one another, and states their distribution."""

    @property
    def epsilon(self) -> float:
        """The claimed level."""
        ...

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator, /) -> FloatArray:
        """Draw `n` releases, shape (n,) or (n, messages)."""
        ...

    def law(self, data: Dataset, /) -> Law:
        """Exact distribution of a release: `TwoSidedGeometricLaw`, or a product of them."""
        ...


@dataclass(frozen=True)
class CountOfHigh:
    """How many of the messages are at least so high: post-processing that keeps what they tell about a user.

    Parameters
    ----------
    messages : HasMessages
        Who sends what.
    least : float
        From where on a message counts. At b each message keeps all of its level: with g = b it counts with probability
        about 1/2, with g = -b with ``exp(-epsilon)`` times that.
    """

    messages: HasMessages
    least: float

    @property
    def epsilon(self) -> float:
        """The claimed level of the messages."""
        return self.messages.epsilon

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` counts, int64 of shape (n,)."""
        sent = self.messages(data, n, rng).reshape(n, -1)
        return np.asarray((sent >= self.least).sum(axis=1), dtype=np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the count, one message after the other."""
        law, masses = self.messages.law(data), np.ones(1)
        for part in law.parts if isinstance(law, ProductLaw) else (law,):
            if not isinstance(part, TwoSidedGeometricLaw):
                raise ValueError(f"expected messages with two-sided geometric noise, got {part!r}")
            # P[S >= k] = P[-S <= -k], without cancellation.
            mirrored = TwoSidedGeometricLaw(-part.loc, part.a, part.step)
            high = float(mirrored.cdf(-self.least))
            low = float(part.cdf((math.ceil(self.least / part.step) - 1) * part.step))
            masses = np.append(masses * low, 0.0) + np.append(0.0, masses * high)
        return FiniteLaw(tuple(range(masses.size)), masses)


@dataclass(frozen=True)
class MeanOfMessages:
    """The protocol's answer: the mean of the messages of the first `users` rows.

    Parameters as in `UserMessages`; float64 outputs of shape (n,). As private as the messages, and not more, though no
    event that is likely shows it.
    """

    query: UserQuery
    epsilon: float
    users: int
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        UserMessages(self.query, self.epsilon, 0, self.step)
        require(isinstance(self.users, (int, np.integer)) and self.users >= 1, "a number of users >= 1", self.users)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` answers, shape (n,)."""
        require_draws(n)
        own = UserMessages(self.query, self.epsilon, tuple(range(self.users)), self.step)
        total = int(own.centre(data).sum())
        return (total + noise_sums(own.base, self.users, (n,), rng)).astype(np.float64) * (self.step / self.users)


def _values(query: UserQuery, data: Dataset, positions: IntArray) -> FloatArray:
    """Values of g at some rows, of the shape of `positions`; ValueError if the rows are too few."""
    require(int(np.max(positions)) < len(data), f"at least {int(np.max(positions)) + 1} rows", len(data))
    flat = np.ravel(positions)
    rows = data.iloc[flat] if hasattr(data, "iloc") else np.asarray(data)[flat]
    return query(rows).reshape(np.shape(positions))


# ----------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class HalfScaleMessages(UserMessages):
    """Noise of scale ``b / epsilon``."""

    @property
    def calibrated(self) -> float:
        """Twice the claimed level."""
        return 2.0 * self.epsilon


@dataclass(frozen=True)
class StdAsScaleMessages(UserMessages):
    """Noise whose standard deviation is ``2 b / epsilon``."""

    @property
    def calibrated(self) -> float:
        """The claimed level times the root of 2."""
        return math.sqrt(2.0) * self.epsilon


@dataclass(frozen=True)
class NoiseForTwiceTheBound(UserMessages):
    """Noise for twice the bound."""

    @property
    def calibrated(self) -> float:
        """Half the claimed level."""
        return self.epsilon / 2.0


@dataclass(frozen=True)
class CentralNoiseMessages(UserMessages):
    """Noise is added to the mean, once, by the collector: the messages are the values."""

    def noise(self, size: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """No noise."""
        del rng
        return np.zeros(size, dtype=np.int64)

    def law(self, data: Dataset) -> Law:
        """Exact distribution of a release: a point."""
        centre = self.centre(data)
        parts = tuple(FiniteLaw((c * self.step,), np.ones(1)) for c in centre.ravel().tolist())
        return parts[0] if centre.ndim == 0 else ProductLaw(parts)


@dataclass(frozen=True)
class NoiseSharedByUsers(_SentMessages):
    """One draw of noise for all users: each message alone has the distribution that it should have."""

    def noise(self, size: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Draw once a release."""
        one = two_sided_geometric(self.base, (size[0],) + (1,) * (len(size) - 1), rng)
        return np.broadcast_to(one, size)


@dataclass(frozen=True)
class UnclippedMessages(UserMessages):
    """Values beyond the query's range are sent as they are."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(type(self.query) is ScaledColumn, "a ScaledColumn query", self.query)

    def centre(self, data: Dataset) -> IntArray:
        """Return the values without clipping, in lattice steps."""
        assert isinstance(self.query, ScaledColumn)
        given = UnclippedColumn(self.query.column, self.query.low, self.query.high, self.query.bound)
        return round_to_lattice(_values(given, data, self.sent_by), self.step)


@dataclass(frozen=True)
class UserQueriedTwice(UserMessages):
    """Every user sends two messages, each of the whole level."""

    @property
    def sent_by(self) -> IntArray:
        """Every position twice, shape (2 users,)."""
        return np.repeat(np.asarray(self.asked, dtype=np.int64), 2)


MUTANTS: dict[str, Mutant[UserMessages]] = tabulate_mutants(
    Mutant("half_scale", Twin(HalfScaleMessages), TimesEpsilon(2.0), "violation", "scale b / eps for 2 b / eps"),
    Mutant(
        "central_noise",
        Twin(CentralNoiseMessages),
        unbounded,
        "violation",
        "one draw of noise on the mean: private for whoever sees the mean only, the messages are the values",
    ),
    Mutant(
        "shared_noise",
        Twin(NoiseSharedByUsers),
        unbounded,
        "violation",
        "one draw for all users: a message alone is as it should be, the difference of two is that of the values",
    ),
    Mutant(
        "no_clipping",
        Twin(UnclippedMessages),
        None,
        "violation",
        "values outside [-b, b]: eps (g(u) - g(u')) / (2 b) for the users of the pair",
    ),
    Mutant(
        "std_as_scale",
        Twin(StdAsScaleMessages),
        TimesEpsilon(math.sqrt(2.0)),
        "violation",
        "standard deviation 2 b / eps: scale 2 b / (sqrt(2) eps)",
    ),
    Mutant(
        "user_queried_twice", Twin(UserQueriedTwice), TimesEpsilon(2.0), "violation", "two messages from every user"
    ),
    Mutant(
        "overwide_b",
        Twin(NoiseForTwiceTheBound),
        TimesEpsilon(0.5),
        "benign",
        "noise for twice the bound: half the level",
    ),
)
