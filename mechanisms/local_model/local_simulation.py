"""A statistical-query algorithm run by local users: every query is asked to a block of users of its own.

An algorithm that asks t queries gets query j answered by the mean of noisy messages from block j, rows j s to
(j + 1) s - 1. A user is in one block and sends one message, of level epsilon, so the whole transcript is epsilon-DP,
whatever the algorithm makes of the answers: adaptive queries are asked one block after the other, those that are fixed
in advance all at once. Queries have values in [0, 1]; a message is the value less 1/2, so b = 1/2, plus noise of scale
``1 / epsilon``, and the answer is 1/2 plus the mean of the messages.

Who is asked what depends on the order of the rows. The document says that none of its algorithms depends on that;
`ShuffledKeptBits`, which draws an order first, does not.

Source: document 002, section 5.1.1, Theorem 5.7; catalogue 002, local_sq_simulation.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

from auditor.privacy.exact import FiniteLaw, ProductLaw, TwoSidedGeometricLaw
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
)
from mechanisms.base.noise import base_for, round_to_lattice, two_sided_geometric
from mechanisms.local_model.fresh_users import users_needed
from mechanisms.statistical_queries.query_algorithms import ConjunctionAlgorithm, StatisticalQueryAlgorithm

# Queries have values in [0, 1]: half of the range.
_HALF = 0.5
# Orders that are listed: 8! of them.
_MOST_ORDERS = 40_320
# Lattice points on which sums of noise are listed; more would take seconds.
_MOST_POINTS = 1 << 14


@dataclass(frozen=True)
class LocalTranscript:
    """All messages of a run, as the collector sees them.

    Parameters
    ----------
    algorithm : StatisticalQueryAlgorithm
        Who asks; see `mechanisms.statistical_queries.query_algorithms`. Values of its queries are in [0, 1].
    epsilon : float
        Claimed pure level, under replace-one.
    users : int
        Users a block, s; public. The data must have t s rows or more; rows beyond are not asked.
    step : float, default 2**-10
        Lattice step of a message, a power of two, at most 1/2.

    Raises
    ------
    ValueError
        If a parameter is out of range, the data are short, or a query's values are not in [0, 1].
    """

    algorithm: StatisticalQueryAlgorithm
    epsilon: float
    users: int
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(isinstance(self.users, (int, np.integer)) and self.users >= 1, "a number of users >= 1", self.users)
        require_positive("step", self.step)
        require(math.frexp(self.step)[0] == 0.5 and self.step <= _HALF, "a power of two, at most 1/2", self.step)

    @property
    def calibrated(self) -> float:
        """The level to which the noise of one message is calibrated."""
        return self.epsilon

    @property
    def base(self) -> float:
        """Base of the integer noise: a value moves by at most ``1 / step`` lattice steps."""
        return base_for(self.calibrated, round(1.0 / self.step))

    @property
    def needed(self) -> int:
        """Rows that the data must have."""
        return self.algorithm.queries * self.users

    def block(self, index: int) -> IntArray:
        """Positions of the users who are asked query `index`, shape (s,)."""
        return np.arange(index * self.users, (index + 1) * self.users, dtype=np.int64)

    def centres(self, data: Dataset, positions: IntArray, asked: IntArray) -> IntArray:
        """Values less 1/2, in lattice steps, of the asked query of each run; shape (n, positions)."""
        require(len(data) >= self.needed, f"at least {self.needed} rows", len(data))
        rows = data.iloc[positions] if hasattr(data, "iloc") else np.asarray(data)[positions]
        queries, of_run = np.unique(asked, return_inverse=True)
        found = np.empty((queries.size, positions.size), dtype=np.int64)
        for k, query in enumerate(queries.tolist()):
            values = self.algorithm.values(query, rows)
            require(bool(np.all((values >= 0) & (values <= 1))), "values in [0, 1]", values)
            found[k] = round_to_lattice(values - _HALF, self.step)
        return found[of_run.ravel()]

    def run(self, data: Dataset, n: int, rng: np.random.Generator) -> tuple[list[FloatArray], FloatArray]:
        """Draw `n` runs: the messages of each block, shapes (n, s), and the answers, shape (n, t)."""
        require_draws(n)
        answers = np.empty((n, self.algorithm.queries), dtype=np.float64)
        sent: list[FloatArray] = []
        for i in range(self.algorithm.queries):
            centre = self.centres(data, self.block(i), self.algorithm.ask(answers[:, :i]))
            steps = centre + two_sided_geometric(self.base, centre.shape, rng)
            sent.append(steps.astype(np.float64) * self.step)
            answers[:, i] = _HALF + steps.sum(axis=1) * (self.step / steps.shape[1])
        return sent, answers

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` transcripts; float64 of shape (n, messages), multiples of the step, block after block."""
        return np.concatenate(self.run(data, n, rng)[0], axis=1)


@dataclass(frozen=True)
class FixedTranscript(LocalTranscript):
    """`LocalTranscript` of an algorithm whose queries are fixed in advance, so that messages are independent."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(not self.algorithm.adaptive, "an algorithm whose queries are fixed in advance", self.algorithm)

    def asked(self, index: int) -> IntArray:
        """Query `index`, shape (1,)."""
        return self.algorithm.ask(np.zeros((1, index)))

    def law(self, data: Dataset) -> ProductLaw:
        """Exact distribution of a transcript: two-sided geometric messages, independent of one another."""
        steps = [self.centres(data, self.block(i), self.asked(i))[0] for i in range(self.algorithm.queries)]
        return ProductLaw(tuple(TwoSidedGeometricLaw(c, self.base, self.step) for c in np.concatenate(steps).tolist()))


@dataclass(frozen=True)
class MessagesOfOneUser:
    """What one user sends in all, which is what that user has to be protected from.

    Parameters
    ----------
    transcript : FixedTranscript
        The protocol.
    user : int
        Position of the user; ValueError if the user is not asked.
    """

    transcript: FixedTranscript
    user: int

    def __post_init__(self) -> None:
        require(len(self.queries) > 0, "a user who is asked", self.user)

    @property
    def epsilon(self) -> float:
        """The claimed level."""
        return self.transcript.epsilon

    @property
    def queries(self) -> tuple[int, ...]:
        """Indices of the queries that the user is asked, once for each time."""
        protocol = self.transcript
        times = [int((protocol.block(i) == self.user).sum()) for i in range(protocol.algorithm.queries)]
        return tuple(i for i, count in enumerate(times) for _ in range(count))

    def _centre(self, data: Dataset) -> IntArray:
        protocol, own = self.transcript, np.array([self.user], dtype=np.int64)
        return np.array([protocol.centres(data, own, protocol.asked(i))[0, 0] for i in self.queries], dtype=np.int64)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` times what the user sends; float64 of shape (n, messages), multiples of the step."""
        require_draws(n)
        centre = self._centre(data)
        steps = centre + two_sided_geometric(self.transcript.base, (n, centre.size), rng)
        return steps.astype(np.float64) * self.transcript.step

    def law(self, data: Dataset) -> ProductLaw:
        """Exact distribution of what the user sends."""
        protocol = self.transcript
        parts = (TwoSidedGeometricLaw(c, protocol.base, protocol.step) for c in self._centre(data).tolist())
        return ProductLaw(tuple(parts))


@dataclass(frozen=True)
class LearnedFromTranscript:
    """What the algorithm learns from a transcript: post-processing."""

    transcript: LocalTranscript

    @property
    def epsilon(self) -> float:
        """The claimed level of the transcript."""
        return self.transcript.epsilon

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` hypotheses; float64 of shape (n,) or (n, d)."""
        return self.transcript.algorithm.hypothesis(self.transcript.run(data, n, rng)[1])


def simulation_size(queries: int, epsilon: float, tolerance: float, beta: float, bound: float = 0.5) -> int:
    """Users in all at which the answers to all queries are within the tolerance with probability ``1 - beta``.

    t blocks of `users_needed` at ``beta / t``. Source: document 002, Theorem 5.7, with the constants and the range of
    epsilon of catalogue 002, local_sq_simulation.
    """
    require(queries >= 1, "at least one query", queries)
    return queries * users_needed(epsilon, tolerance, beta / queries, bound)


# ------------------------------------------------------------------------- the order of the users


@dataclass(frozen=True)
class KeptBits:
    """Which bits a conjunction's learner keeps, as one integer (bit j of it for query j), for few users.

    Parameters
    ----------
    transcript : FixedTranscript
        The protocol, whose algorithm is a `ConjunctionAlgorithm`.
    """

    transcript: FixedTranscript

    def __post_init__(self) -> None:
        require(
            isinstance(self.transcript.algorithm, ConjunctionAlgorithm),
            "ConjunctionAlgorithm",
            self.transcript.algorithm,
        )

    @property
    def epsilon(self) -> float:
        """The claimed level of the transcript."""
        return self.transcript.epsilon

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` codes, int64 of shape (n,)."""
        kept = self.transcript.algorithm.hypothesis(self.transcript.run(data, n, rng)[1])
        return np.asarray(kept @ 2.0 ** np.arange(kept.shape[1]), dtype=np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the code: bits are independent."""
        protocol, masses = self.transcript, np.ones(1)
        noise = _sum_masses(protocol.base, protocol.users)
        reach = noise.size // 2
        for i in range(protocol.algorithm.queries):
            total = int(protocol.centres(data, protocol.block(i), protocol.asked(i)).sum())
            sums = total + np.arange(-reach, reach + 1)
            kept = float(noise[_HALF + sums * (protocol.step / protocol.users) <= protocol.algorithm.tolerance].sum())
            masses = np.concatenate([masses * (1.0 - kept), masses * kept])
        return FiniteLaw(tuple(range(masses.size)), masses)


@dataclass(frozen=True)
class ShuffledKeptBits(KeptBits):
    """`KeptBits` on the data in an order that is drawn first: as private, and the same in whatever order they come.

    At most 8 rows: all orders are listed.
    """

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` codes, int64 of shape (n,); runs with the same order are drawn together."""
        require_draws(n)
        rows, codes = np.asarray(data), np.empty(n, dtype=np.int64)
        orders = _orders(len(rows))
        drawn = rng.integers(len(orders), size=n)
        for k in np.unique(drawn):
            runs = np.flatnonzero(drawn == k)
            codes[runs] = super().__call__(rows[orders[k]], runs.size, rng)
        return codes

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the code: the mean over all orders."""
        rows = np.asarray(data)
        # In an order of their own first, so that the order of the data is not even seen in the last digit.
        rows = rows[np.lexsort(rows.T)]
        laws = [super(ShuffledKeptBits, self).law(rows[order]) for order in _orders(len(rows))]
        return FiniteLaw(laws[0].outcomes, np.mean([law.probabilities for law in laws], axis=0))


def _orders(rows: int) -> IntArray:
    """All orders of so many rows, shape (orders, rows); ValueError for more than 8."""
    require(math.factorial(rows) <= _MOST_ORDERS, "at most 8 rows", rows)
    return np.array(list(itertools.permutations(range(rows))), dtype=np.int64)


def _sum_masses(a: float, terms: int) -> FloatArray:
    """Masses of a sum of two-sided geometric variables, all but 1e-18 of it; odd length, centred."""
    reach = math.ceil(_reach_of(terms) / math.log1p(a - 1.0))
    require(terms * reach <= _MOST_POINTS, "a coarser step or fewer users: noise of a smaller base", (a, terms))
    k = np.arange(-reach, reach + 1)
    one = np.exp(-math.log1p(a - 1.0) * np.abs(k)) * (a - 1.0) / (a + 1.0)
    masses = one
    for _ in range(terms - 1):
        masses = np.convolve(masses, one)
    return np.asarray(masses / masses.sum(), dtype=np.float64)


def _reach_of(terms: int) -> float:
    """Noise scales beyond which a variable has less than 1e-18 / terms of its mass."""
    return 42.0 + math.log(terms)


# ----------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class SameUsersFullBudget(FixedTranscript):
    """The first block is asked every query, each with the whole level."""

    def block(self, index: int) -> IntArray:
        """Positions of the first block."""
        del index
        return super().block(0)


@dataclass(frozen=True)
class BudgetSplitOverQueries(FixedTranscript):
    """All users are asked every query, each with a share of the level: as private, and less accurate."""

    @property
    def calibrated(self) -> float:
        """The claimed level, divided among the queries."""
        return self.epsilon / self.algorithm.queries

    def block(self, index: int) -> IntArray:
        """All positions."""
        del index
        return np.arange(self.needed, dtype=np.int64)


@dataclass(frozen=True)
class BlocksWithReplacement(FixedTranscript):
    """Every block is chosen, publicly and at random, among all users: some users are in several.

    Parameters
    ----------
    seed : int, default 0
        Of the public choice.
    """

    seed: int = field(default=0)

    def block(self, index: int) -> IntArray:
        """Positions of a random block, in order."""
        public = np.random.default_rng([self.seed, index])
        return np.sort(public.choice(self.needed, self.users, replace=False)).astype(np.int64)


@dataclass(frozen=True)
class _InProtocol:
    """Builds what the same user sends in another protocol."""

    cls: type[FixedTranscript]

    def __call__(self, base: MessagesOfOneUser) -> MessagesOfOneUser:
        """Return the mutant of `base`."""
        return MessagesOfOneUser(Twin(self.cls)(base.transcript), base.user)


def _every_query(base: MessagesOfOneUser) -> float:
    return base.epsilon * base.transcript.algorithm.queries


def _as_often_as_asked(base: MessagesOfOneUser) -> float:
    return base.epsilon * len(_InProtocol(BlocksWithReplacement)(base).queries)


MUTANTS: dict[str, Mutant[MessagesOfOneUser]] = tabulate_mutants(
    Mutant(
        "same_users_full_budget",
        _InProtocol(SameUsersFullBudget),
        _every_query,
        "violation",
        "every query to the first block, at the whole level: t eps for a user whom all queries count or none",
    ),
    Mutant(
        "budget_split",
        _InProtocol(BudgetSplitOverQueries),
        TimesEpsilon(1.0),
        "benign",
        "every query to all users, at eps / t: as private, and n has to grow as t^2 for t",
    ),
    Mutant(
        "blocks_with_replacement",
        _InProtocol(BlocksWithReplacement),
        _as_often_as_asked,
        "violation",
        "blocks chosen anew among all users: eps for every block that the user is in",
    ),
)
