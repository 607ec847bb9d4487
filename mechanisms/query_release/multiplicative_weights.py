"""Private multiplicative weights: online answers from a hypothesis that is updated privately, and its mutants.

An interactive mechanism: the pool is the rows of a query matrix, any of which may be asked at any time and as often as
one likes. Called directly it is asked all of them, once each, in their order. Exact distributions are in
`mechanisms.query_release.multiplicative_weights_distribution`.

Answers and noise are integers: multiples of a power of two, counted in rows and not in fractions, so that one person
moves an answer by at most 1. What the mechanism says of the data is a function of these integers and of public numbers,
and no comparison of floats decides anything but what is public.

Source: document 003, section 3.2; catalogue 000_001_003, private_multiplicative_weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from auditor.datasets.pandas_types import is_frame
from auditor.privacy.exact import advanced_composition
from auditor.targets.analysts import FixedList
from auditor.targets.interactive import SKIP, History, Queries, pool_indices
from auditor.targets.transcripts import transcripts
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
)
from mechanisms.base.noise import base_for, round_to_lattice, two_sided_geometric
from mechanisms.base.queries import column_values
from mechanisms.query_release.multiplicative_weights_distribution import MultiplicativeWeightsBranches

#: Values of queries are multiples of this, so that 2^32 of them sum exactly in float64; a millionth.
GRAIN = 2.0**-20
#: An update lowers the divergence of the data from the hypothesis by at least this times alpha^2, if the answer was
#: wrong by at least alpha / 2: alpha^2 / 8 from the step alpha / 4, less alpha^2 / 128 by Hoeffding's lemma.
DROP = 15.0 / 128.0

#: Draws of noise that a session makes at once, if it needs no more: few runs ask for one or two at a time. Arbitrary.
_STOCK = 256

Answers: TypeAlias = Literal["fresh", "reused"]
Values: TypeAlias = Literal["noisy", "exact"]
Direction: TypeAlias = Literal["towards", "away"]


# ----------------------------------------------------------------------------- what is asked


@dataclass(frozen=True)
class DataUniverse:
    """The set of types of rows: every combination of several yes/no questions.

    Parameters
    ----------
    splits : tuple of (str, float)
        Column and cut: bit i of a row's type is 1 if the column's value is above the cut.
    """

    splits: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "splits", tuple(self.splits))
        require(1 <= len(self.splits) <= 16, "1 to 16 splits", self.splits)

    @property
    def size(self) -> int:
        """Number of types, N."""
        return 1 << len(self.splits)

    def __call__(self, data: Dataset) -> IntArray:
        """Return the type of each row, shape (rows,).

        Parameters
        ----------
        data : DataFrame, or ndarray of shape (rows,)
            A table with the columns, or the types themselves.
        """
        if not is_frame(data):
            types = np.asarray(data)
            known = types.ndim == 1 and types.dtype.kind in "iu" and bool(np.all((types >= 0) & (types < self.size)))
            require(known, f"a table, or types from 0 to {self.size - 1}", data)
            return types.astype(np.int64)
        bits = [column_values(data, column) > cut for column, cut in self.splits]
        return np.asarray(sum(bit.astype(np.int64) << i for i, bit in enumerate(bits)), dtype=np.int64)

    def counts(self, data: Dataset) -> FloatArray:
        """Return how many rows are of each type, shape (N,)."""
        return np.bincount(self(data), minlength=self.size).astype(np.float64)


@dataclass(frozen=True, eq=False)
class QueryWorkload:
    """Queries on types of rows.

    Parameters
    ----------
    values : ndarray of shape (m, N)
        Each row is a query q: X -> [0, 1]; multiples of `GRAIN`.
    """

    values: FloatArray

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)
        require(values.ndim == 2 and values.size > 0, "a matrix of queries", values.shape)
        allowed = (values >= 0) & (values <= 1) & (values == np.rint(values / GRAIN) * GRAIN)
        require(bool(np.all(allowed)), f"multiples of {GRAIN} from 0 to 1", values[~allowed][:1])
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    def __repr__(self) -> str:
        return "QueryWorkload({} queries on {} types)".format(*self.values.shape)


def subset_queries(m: int, universe: DataUniverse, rng: np.random.Generator) -> QueryWorkload:
    """Draw m queries "is the type in this set", every type being in every set with probability 1/2."""
    return QueryWorkload(rng.integers(0, 2, (m, universe.size)).astype(np.float64))


# ----------------------------------------------------------------- parameters of the theorem


def most_updates(universe: int, alpha: float) -> int:
    """Return the cap ``ceil((128/15) ln N / alpha^2)`` on updates.

    The divergence of the data from the hypothesis begins at ``ln N`` at most, never is negative, and every update
    lowers it by `DROP` times alpha^2 at least, if no noise exceeds alpha / 4.
    """
    require(universe >= 2, "at least two types", universe)
    require_positive("alpha", alpha)
    return math.ceil(math.log(universe) / (DROP * alpha * alpha))


def epoch_budget(epsilon: float, delta: float, epochs: int) -> float:
    """Return the largest eps0 for which `epochs` epochs of 4 eps0 each are (epsilon, delta)-DP by composition.

    By the advanced composition theorem or, where that says less, by adding up. The root is rounded down, so that
    the theorem's own formula does not exceed epsilon.
    """
    require_positive("epsilon", epsilon)
    require(0 < delta < 1, "delta in (0, 1)", delta)

    def beyond(level: float) -> float:
        return advanced_composition(level, epochs, delta)[0] - epsilon

    # One epoch alone costs at least its level, so the root is below epsilon.
    root = float(optimize.brentq(beyond, 0.0, epsilon, xtol=1e-300, rtol=1e-14))
    return max(root, epsilon / epochs) / 4.0 * (1.0 - 1e-12)


def rows_needed(universe: int, queries: int, epsilon: float, delta: float, alpha: float, beta: float) -> int:
    """Return the least n for which the largest of all draws of noise is at most alpha / 4 w.p. 1 - beta.

    The draws are one for each query and two for each epoch; a union bound over ``queries + 2 c`` of them.
    """
    cap = most_updates(universe, alpha)
    budget = epoch_budget(epsilon, delta, cap)
    return math.ceil(4.0 * math.log((queries + 2 * cap) / beta) / (budget * alpha))


def accuracy_bound(universe: int, queries: int, epsilon: float, delta: float, rows: int, beta: float) -> float:
    """Return the least alpha, to a millionth of itself, for which `rows_needed` is at most `rows`."""

    def missing(log_alpha: float) -> float:
        return math.log(rows_needed(universe, queries, epsilon, delta, math.exp(log_alpha), beta) / rows)

    # From a thousandth to a thousand: beyond, nothing is of interest. Steps of whole rows and updates may put the root
    # on the wrong side; a larger alpha needs fewer rows.
    return math.exp(float(optimize.brentq(missing, math.log(1e-3), math.log(1e3), xtol=1e-10)) + 1e-6)


# ------------------------------------------------------------------------------- the mechanism


@dataclass(frozen=True)
class MultiplicativeWeightsRules:
    """What the algorithm leaves no choice about; mutants break one of them.

    Parameters
    ----------
    noise_power : int
        Scale of all noise in counts is ``rows ** noise_power / epsilon0``; 0 is right.
    threshold_noise : bool
        Whether the threshold is noisy.
    refreshed : bool
        Whether the threshold's noise is drawn anew in each epoch.
    answer : {"fresh", "reused"}
        Whether a released answer has noise of its own, or is the one that was compared with the threshold.
    compared : {"noisy", "exact"}
        Answer that decides whether there is an update.
    side : {"noisy", "exact"}
        Answer that says in which direction.
    step : {"towards", "away"}
        Whether the hypothesis moves towards the answer or away from it.
    stops : bool
        Whether the run ends after the allowed number of updates.
    """

    noise_power: int = 0
    threshold_noise: bool = True
    refreshed: bool = True
    answer: Answers = "fresh"
    compared: Values = "noisy"
    side: Values = "noisy"
    step: Direction = "towards"
    stops: bool = True

    def __post_init__(self) -> None:
        require(self.noise_power in (-1, 0, 1), "a noise power of -1, 0 or 1", self.noise_power)
        for name, allowed in (("answer", Answers), ("compared", Values), ("side", Values), ("step", Direction)):
            value = getattr(self, name)
            require(value in get_args(allowed), f"{name} among {get_args(allowed)}", value)


@dataclass(frozen=True)
class MultiplicativeWeights:
    """Answer queries from a public hypothesis, and update it where it is wrong.

    Parameters
    ----------
    workload : QueryWorkload
        The pool of queries.
    universe : DataUniverse
        Types of rows.
    rows : int
        Public number of rows n.
    alpha : float
        Accuracy: the threshold is alpha plus noise, the step of an update alpha / 4.
    epsilon0 : float
        All noise has the scale ``1 / (epsilon0 n)``, ``1 / epsilon0`` in counts; an epoch costs 4 epsilon0.
    cap : int
        Updates after which a run halts: the number of epochs. See `most_updates`.
    step : float, default 2**-6
        Lattice of answers and noise, in counts; a power of two of at most 1. A 64th of a person is far below any noise.
    cuts : tuple of float or None, default None
        None: a released answer is published in full. Otherwise only between which of these numbers, in counts above
        the hypothesis' answer, it lies: post-processing, which makes outputs few enough for an exact distribution.
    rules : MultiplicativeWeightsRules
        See there.

    Notes
    -----
    An answer in a dialogue is two numbers: the side of an update (1 if the noisy answer was above that of the
    hypothesis, -1 if not, 0 for no update), and the released answer. With `cuts` it is one integer: 0 for no update,
    otherwise ``side * (1 + number of cuts that are at most the released answer)``. Both are NaN, or with `cuts`
    their number plus 2, where nothing was asked or the run has halted.

    The side is no extra leak: it can be read off the hypothesis' later answers, and the proof bounds the probability
    of each side by itself.
    """

    workload: QueryWorkload
    universe: DataUniverse
    rows: int
    alpha: float
    epsilon0: float
    cap: int
    step: float = 2.0**-6
    cuts: tuple[float, ...] | None = None
    rules: MultiplicativeWeightsRules = field(default=MultiplicativeWeightsRules())

    def __post_init__(self) -> None:
        types = self.workload.values.shape[1]
        require(types == self.universe.size, f"queries on {self.universe.size} types", types)
        for name in ("rows", "cap"):
            value = getattr(self, name)
            require(isinstance(value, (int, np.integer)) and bool(value >= 1), f"an integer {name} >= 1", value)
        require_positive("alpha", self.alpha)
        require_positive("epsilon0", self.epsilon0)
        require_positive("step", self.step)
        require(math.frexp(self.step)[0] == 0.5 and self.step <= 1, "a power of two of at most 1 as step", self.step)
        if self.cuts is not None:
            rising = np.diff(round_to_lattice(np.array(self.cuts, dtype=np.float64), self.step)) > 0
            require(bool(np.all(rising)), f"cuts that rise by more than {self.step}", self.cuts)

    # Everything below is in units of the lattice's step, and an integer.

    @property
    def base(self) -> float:
        """Base of the integer noise: one count, which is 1 / step lattice steps, costs epsilon0."""
        return base_for(self.epsilon0 * float(self.rows) ** -self.rules.noise_power, round(1.0 / self.step))

    @property
    def threshold(self) -> int:
        """The threshold without noise."""
        return int(round_to_lattice(np.array(self.alpha * self.rows), self.step))

    @property
    def lattice_cuts(self) -> IntArray:
        """The cuts, shape (cuts,)."""
        return round_to_lattice(np.array(self.cuts or (), dtype=np.float64), self.step)

    @property
    def silence(self) -> int | float:
        """See the notes."""
        return math.nan if self.cuts is None else len(self.cuts) + 2

    def answers(self, data: Dataset) -> IntArray:
        """Return the pool's answers, shape (m,); ValueError if the data do not have `rows` rows.

        Sums of multiples of `GRAIN` are exact, and rounding them to the lattice, of which 1 is a multiple, leaves the
        sensitivity at 1 count.
        """
        counts = self.universe.counts(data)
        require(counts.sum() == self.rows, f"{self.rows} rows", int(counts.sum()))
        return round_to_lattice(self.workload.values @ counts, self.step)

    def of_hypothesis(self, hypotheses: FloatArray, query: int) -> IntArray:
        """Return the answers of hypotheses, shape (states, N), to a query, shape (states,)."""
        return round_to_lattice(self.rows * (hypotheses @ self.workload.values[query]), self.step)

    def updated(self, hypotheses: FloatArray, queries: IntArray, sides: IntArray) -> FloatArray:
        """Return hypotheses, shape (states, N), after an update each; steps (b) and (c) of the algorithm."""
        rate = self.alpha / 4.0 if self.rules.step == "towards" else -self.alpha / 4.0
        weights = hypotheses * np.exp((rate * sides)[:, None] * self.workload.values[queries])
        return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)

    def start(self, data: Dataset, n: int, rng: np.random.Generator) -> MultiplicativeWeightsSession:
        """Begin `n` runs on `data`; see `auditor.targets.interactive.Interactive`."""
        require_draws(n)
        return MultiplicativeWeightsSession(self, self.answers(data), n, rng)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `n` transcripts of the whole pool in its order; shape (n, 2 m), or (n, m) with cuts."""
        pool = self.workload.values.shape[0]
        return transcripts(self.start(data, n, rng), FixedList(range(pool)), n, rng)

    def branches(self, data: Dataset, rounds: int) -> MultiplicativeWeightsBranches:
        """Begin the tree of answers on `data`, for exact distributions; see `auditor.targets.interactive.Branching`."""
        del rounds  # the tree is as exact for many queries as for few
        return MultiplicativeWeightsBranches(self, self.answers(data))


class MultiplicativeWeightsSession:
    """Runs of multiplicative weights side by side; see `auditor.targets.interactive.Session`.

    Runs with the same past share one hypothesis, which is a function of that past.

    Parameters
    ----------
    mechanism : MultiplicativeWeights
        Which one.
    answers : ndarray of shape (m,), int64
        Noiseless answers of the pool on the dataset, in lattice steps.
    n : int
        Number of runs.
    rng : numpy.random.Generator
        Source of all noise.
    """

    def __init__(self, mechanism: MultiplicativeWeights, answers: IntArray, n: int, rng: np.random.Generator) -> None:
        self._mechanism, self._answers, self._n, self._rng = mechanism, answers, n, rng
        self._base, self._cuts, self._threshold = mechanism.base, mechanism.lattice_cuts, mechanism.threshold
        size = mechanism.universe.size
        self._hypotheses = np.full((1, size), 1.0 / size)
        self._state = np.zeros(n, dtype=np.int64)  # which hypothesis each run has
        self._updates = np.zeros(n, dtype=np.int64)
        self._runs = np.ones(n, dtype=np.bool_)
        self._stock = np.zeros(0, dtype=np.int64)
        self._bar = self._thresholds(n)

    @property
    def pool(self) -> int:
        """Number of queries in the pool."""
        return self._answers.size

    @property
    def silence(self) -> int | float:
        """See `MultiplicativeWeights.silence`."""
        return self._mechanism.silence

    @property
    def hypotheses(self) -> FloatArray:
        """The hypothesis of each run, shape (n, N); public."""
        return self._hypotheses[self._state]

    @property
    def updates(self) -> IntArray:
        """Number of updates of each run so far, shape (n,); public."""
        return self._updates.copy()

    def ask(self, queries: Queries) -> NDArray[Any]:
        """Return shape (n, 2), side and released answer; or (n,), see `MultiplicativeWeights`."""
        rules, n = self._mechanism.rules, self._n
        indices = pool_indices(queries, n, self.pool)
        asked = np.flatnonzero(self._runs & (indices != SKIP))
        query = indices[asked]
        expected = self._expected_answers(query, self._state[asked])
        gap = self._answers[query] - expected
        noisy = gap + self._noise(asked.size)
        compared = noisy if rules.compared == "noisy" else gap
        update = np.abs(compared) >= self._bar[asked]
        above = (noisy if rules.side == "noisy" else gap) > 0
        side = np.where(update, np.where(above, 1, -1), 0)
        released = np.zeros(asked.size, dtype=np.int64)  # above the hypothesis' answer
        fresh = rules.answer == "fresh"
        released[update] = gap[update] + self._noise(int(update.sum())) if fresh else noisy[update]

        self._updates[asked] += update
        if rules.stops:
            self._runs &= self._updates < self._mechanism.cap
        goes_on = update & self._runs[asked]
        if goes_on.any():
            self._update(asked[goes_on], query[goes_on], side[goes_on])
        return self._publish_answers(asked, side, released, expected)

    def _expected_answers(self, query: IntArray, state: IntArray) -> IntArray:
        """Answers of the runs' hypotheses to their queries."""
        if query.size and bool(np.all(query == query[0])):
            return self._mechanism.of_hypothesis(self._hypotheses, int(query[0]))[state]
        expected = np.empty(query.size, dtype=np.int64)
        for one in np.unique(query).tolist():
            which = query == one
            states, of = np.unique(state[which], return_inverse=True)
            expected[which] = self._mechanism.of_hypothesis(self._hypotheses[states], one)[of]
        return expected

    def _update(self, runs: IntArray, query: IntArray, side: IntArray) -> None:
        """Give each of some runs its new hypothesis and threshold."""
        # One number for each triple of state, query and side.
        triples = (self._state[runs] * self.pool + query) * 2 + (side > 0)
        _, first, of = np.unique(triples, return_index=True, return_inverse=True)
        old = self._hypotheses[self._state[runs[first]]]
        self._state[runs] = len(self._hypotheses) + of
        # States are small numbers: they are marked and counted, not sorted.
        held = np.zeros(len(self._hypotheses) + len(old), dtype=np.bool_)
        held[self._state] = True
        kept, self._state = np.flatnonzero(held), (np.cumsum(held) - 1)[self._state]
        moved = self._mechanism.updated(old, query[first], side[first])
        self._hypotheses = np.concatenate([self._hypotheses, moved])[kept]
        if self._mechanism.rules.refreshed:
            self._bar[runs] = self._thresholds(runs.size)

    def _publish_answers(self, asked: IntArray, side: IntArray, released: IntArray, expected: IntArray) -> NDArray[Any]:
        mechanism = self._mechanism
        if mechanism.cuts is not None:
            codes = np.full(self._n, mechanism.silence, dtype=np.int64)
            codes[asked] = side * (1 + np.searchsorted(self._cuts, released, side="right"))
            return codes
        answers = np.full((self._n, 2), math.nan)
        answers[asked, 0] = side
        answers[asked, 1] = (expected + released) * (mechanism.step / mechanism.rows)
        return answers

    def _noise(self, n: int) -> IntArray:
        """The next `n` draws; every draw is used once."""
        if n > self._stock.size:
            more = two_sided_geometric(self._base, max(n, _STOCK), self._rng)
            self._stock = np.concatenate([self._stock, more])
        drawn, self._stock = self._stock[:n], self._stock[n:]
        return drawn

    def _thresholds(self, n: int) -> IntArray:
        noise = self._noise(n) if self._mechanism.rules.threshold_noise else np.zeros(n, dtype=np.int64)
        return self._threshold + noise


# -------------------------------------------------------------------------------- the analysts


@dataclass(frozen=True, eq=False)
class WorstQuery:
    """Asks the query on which the hypothesis is most wrong, for one dataset (see `auditor.targets.analysts.Adaptive`).

    The logarithm of a weight is alpha / 4 times the sum of the queries that have led to updates, with their signs, so
    the hypothesis follows from the transcript.

    Parameters
    ----------
    mechanism : MultiplicativeWeights
        Without cuts; what is public of it.
    data : Dataset
        The dataset that the analyst has in mind: one of the pair that is audited, or a guess.
    """

    mechanism: MultiplicativeWeights
    data: Dataset

    def __post_init__(self) -> None:
        require(self.mechanism.cuts is None, "a mechanism without cuts", self.mechanism.cuts)
        object.__setattr__(self, "_truth", self.mechanism.answers(self.data))

    def __call__(self, history: History) -> IntArray:
        """Return the worst query of each trial, shape (n,); nothing where the run has halted."""
        queries, n = self.mechanism.workload.values, history.n
        signed = np.zeros((n, queries.shape[0]))
        if history.answers.ndim == 3:
            # A query that was not asked has side 0, so which one it adds to does not matter.
            cells = np.arange(n)[:, None] * queries.shape[0] + np.maximum(history.asked, 0)
            sides = np.nan_to_num(history.answers[:, :, 0])
            signed += np.bincount(cells.ravel(), sides.ravel(), signed.size).reshape(signed.shape)
        if self.mechanism.rules.step == "away":
            signed = -signed
        weights = np.exp(self.mechanism.alpha / 4.0 * (signed @ queries))
        expected = (weights @ queries.T) / weights.sum(axis=1, keepdims=True) * self.mechanism.rows
        truth: IntArray = self.__dict__["_truth"]
        # Rounded, because products of matrices differ in their last digits with the number of rows.
        wrong = np.rint(np.abs(truth * self.mechanism.step - expected) / GRAIN)
        return np.where(history.halted(), SKIP, np.argmax(wrong, axis=1))


# ------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True)
class BrokenRulesTwin:
    """Builds the mechanism with some rules broken (for `Mutant.build`)."""

    broken: MultiplicativeWeightsRules

    def __call__(self, base: MultiplicativeWeights) -> MultiplicativeWeights:
        """Return `base` with these rules."""
        return replace(base, rules=self.broken)


def _unbounded_level(base: MultiplicativeWeights) -> float:  # noqa: ARG001 -- the signature of Mutant.true_level
    return math.inf


MUTANTS: dict[str, Mutant[MultiplicativeWeights]] = tabulate_mutants(
    Mutant(
        "answer_noise_reused",
        BrokenRulesTwin(MultiplicativeWeightsRules(answer="reused")),
        _unbounded_level,
        "violation",
        "b = a: a released answer near the hypothesis says that all noise before it was on one side; t eps0 for an "
        "update at query t if all gaps move one way, (t - 1) eps0 if the last does not move",
    ),
    Mutant(
        "no_threshold_noise",
        BrokenRulesTwin(MultiplicativeWeightsRules(threshold_noise=False)),
        _unbounded_level,
        "violation",
        "each cheap answer costs eps0: (t - 1) eps0 before the update at query t, which costs 2 eps0 more",
    ),
    Mutant(
        "threshold_not_refreshed",
        BrokenRulesTwin(MultiplicativeWeightsRules(refreshed=False)),
        None,
        "benign",
        "one draw for all epochs; as in sparse vector the threshold is then paid for once, so no level is exceeded",
    ),
    Mutant(
        "noise_without_n",
        BrokenRulesTwin(MultiplicativeWeightsRules(noise_power=1)),
        None,
        "benign",
        "scale 1 / eps0 on fractions: n times too much, useless answers",
    ),
    Mutant(
        "n_dropped_the_other_way",
        BrokenRulesTwin(MultiplicativeWeightsRules(noise_power=-1)),
        lambda base: 4.0 * base.epsilon0 * base.rows * base.cap,
        "violation",
        "scale 1 / (eps0 n) on counts: n times too little",
    ),
    Mutant(
        "update_sign_reversed",
        BrokenRulesTwin(MultiplicativeWeightsRules(step="away")),
        None,
        "benign",
        "the hypothesis moves away from the data",
    ),
    Mutant(
        "cap_removed",
        BrokenRulesTwin(MultiplicativeWeightsRules(stops=False)),
        _unbounded_level,
        "violation",
        "every update costs, and nothing ends them",
    ),
    Mutant(
        "update_from_exact_answer",
        BrokenRulesTwin(MultiplicativeWeightsRules(compared="exact")),
        _unbounded_level,
        "violation",
        "the answer without noise is compared with the threshold: which of two gaps is larger is published",
    ),
    Mutant(
        "sign_from_exact_answer",
        BrokenRulesTwin(MultiplicativeWeightsRules(side="exact")),
        _unbounded_level,
        "violation",
        "the side is that of the answer without noise: a gap that changes its sign",
    ),
)
