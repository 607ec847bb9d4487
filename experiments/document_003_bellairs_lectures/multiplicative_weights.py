"""Document 003, section 3.2: private multiplicative weights, as an interactive mechanism.

Rows of the RAND data are of 2^k types, by k yes/no questions. One run of the mechanism allowed a single update is one
epoch, and is where the bounds are tight; the parameters of whole runs follow from the theorem with the constants of the
catalogue.

What the experiments found beside the statement:

* The catalogue gives (t - 1) eps0 for the mutants that reuse the noise of the answer, or have none on the threshold.
  That is the loss of the t - 1 cheap answers alone. The update at query t adds to it: reused noise costs t eps0 if the
  last gap moves as the others do, and without threshold noise the update and its answer add 2 eps0.
* A threshold that is not drawn anew is no violation: as in sparse vector it is paid for once, and c epochs cost
  (3 c + 1) eps0 instead of 4 c eps0. The argument for a single epoch does not cover it, its distribution is another.
* With |Q| = 4000 and alpha = 0.1 the cap of 4732 updates exceeds the number of queries, so that it cannot bind; at
  smaller n and larger alpha it can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy import Quantile, Setting
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    component,
    conformity,
    entry,
    inequality,
    mutant,
    privacy,
    reference,
    scaling,
)
from auditor.datasets import Pair
from auditor.privacy.guarantees import ApproxDP, PureDP
from auditor.targets.analysts import Adaptive, FixedList, Phases
from auditor.targets.transcripts import Dialogue, ExactDialogue
from experiments.common import REPLACE, person, rand, replaced
from mechanisms.base.mechanism import FloatArray, IntArray
from mechanisms.query_release.multiplicative_weights import (
    DROP,
    GRAIN,
    MUTANTS,
    DataUniverse,
    MultiplicativeWeights,
    QueryWorkload,
    WorstQuery,
    accuracy_bound,
    epoch_budget,
    most_updates,
    rows_needed,
    subset_queries,
)

_N = 20_190
#: Medians, or "any at all", so that types are spread: 158 of the 256 that the first eight make occur.
_SPLITS = (
    ("mdvis", 1.0),
    ("lncoins", 0.0),
    ("idp", 0.0),
    ("lpi", 6.0),
    ("fmde", 0.0),
    ("physlm", 0.0),
    ("disea", 10.5),
    ("hlthg", 0.0),
    ("hlthf", 0.0),
    ("hlthp", 0.0),
)
_TYPES = DataUniverse(_SPLITS[:8])
#: Rare properties: far from uniform, which is where the hypothesis begins, so that there are many updates.
_RARE = (("hlthp", 0.0), ("hlthf", 0.0), ("physlm", 0.0))
_DELTA, _BETA = 1e-6, 0.05

#: The epoch: the threshold is 8 scales of the noise, which is 2 persons.
_EPSILON0, _FAR = 0.5, 8.0
#: Earlier queries of the epoch.
_EARLIER = 10


# ------------------------------------------------------------------------------------- one epoch


@cache
def _plan_changes() -> Pair:
    return _pair_of_types(
        _TYPES, replaced("a person's plan has a deductible instead of none", person(idp=0), person(idp=1))
    )


def _pair_of_types(universe: DataUniverse, pair: Pair) -> Pair:
    """The same pair with rows' types, which are all that is asked about, in their place."""
    return Pair(universe(pair.x), universe(pair.y), pair.name)


def _query(one: int, zero: int, gap: float, data: object) -> FloatArray:
    """A query that is 1 on one type, 0 on another, and on the data exceeds the uniform hypothesis by a gap in persons.

    On the other types that occur more often than under the hypothesis, or less often if the gap asks for it, it has the
    one value that makes the gap.
    """
    excess = _TYPES.counts(data) - _N / _TYPES.size
    left = gap - excess[one]
    others = np.sign(excess) == np.sign(left)
    others[[one, zero]] = False
    query = np.zeros(_TYPES.size)
    query[others] = np.rint(left / excess[others].sum() / GRAIN) * GRAIN
    query[one] = 1.0
    return query


def _epoch(
    cheap: float,
    costly: float,
    *,
    opposed: bool = True,
    epsilon0: float = _EPSILON0,
    far: float = _FAR,
    cut: float | None = None,
    cap: int = 1,
) -> MultiplicativeWeights:
    """Two queries with the given gaps on the pair's first dataset, and a threshold ``far``, all in scales of the noise.

    On the second dataset the cheap one's gap is larger by one person, the costly one's smaller or, unless they are
    opposed, larger too. A released answer is published as above or below the cut, if there is one.
    """
    pair, scale = _plan_changes(), 1.0 / epsilon0
    before, after = int(_TYPES(pair.x)[0]), int(_TYPES(pair.y)[0])
    moves = (before, after) if opposed else (after, before)
    queries = QueryWorkload(
        np.array([_query(after, before, cheap * scale, pair.x), _query(*moves, costly * scale, pair.x)])
    )
    cuts = () if cut is None else (cut * scale,)
    return MultiplicativeWeights(queries, _TYPES, _N, far * scale / _N, epsilon0, cap, cuts=cuts)


def _rising_gaps(
    queries: int, epsilon0: float, low: float, high: float, cuts: Sequence[float]
) -> MultiplicativeWeights:
    """Queries whose gaps rise evenly from `low` to `high`, and all are larger by one person on the second dataset.

    Gaps and cuts are in scales of the noise and from the threshold, which is `_FAR` of them.
    """
    pair, scale = _plan_changes(), 1.0 / epsilon0
    before, after = int(_TYPES(pair.x)[0]), int(_TYPES(pair.y)[0])
    gaps = (_FAR + np.linspace(low, high, queries)) * scale
    workload = QueryWorkload(np.array([_query(after, before, gap, pair.x) for gap in gaps.tolist()]))
    published = tuple((_FAR + cut) * scale for cut in cuts)
    return MultiplicativeWeights(workload, _TYPES, _N, _FAR * scale / _N, epsilon0, 1, step=2.0**-3, cuts=published)


@dataclass(frozen=True)
class RatedDialogue(ExactDialogue):
    """A dialogue that also offers its exact log-likelihood ratio: the leaks here are unions of rare transcripts."""

    def log_likelihood_ratio(self, outputs: NDArray[np.int64], x: object, y: object) -> FloatArray:
        """Logarithm of the ratio of each transcript's probabilities on two datasets, shape (n,)."""
        keys, ratios = self._table(x, y)
        return ratios[np.searchsorted(keys, self._keys(np.asarray(outputs)))]

    def _keys(self, transcripts: IntArray) -> IntArray:
        """One number for each transcript, shape (n,): its answers are digits, and the number is taken modulo 2^64."""
        assert isinstance(self.mechanism, MultiplicativeWeights)
        base = np.int64(2 * int(self.mechanism.silence) + 1)
        return np.asarray(transcripts @ np.cumprod(np.full(self.analyst.rounds, base)), dtype=np.int64)

    def _table(self, x: object, y: object) -> tuple[IntArray, FloatArray]:
        # A distribution takes a hundredth of a second, and every chunk asks for it. The datasets are kept beside the
        # table, so that their addresses stay their own.
        tables: dict[tuple[int, int], Any] = self.__dict__.setdefault("_tables", {})
        if (id(x), id(y)) not in tables:
            first, second = self.law(x), self.law(y)
            there = dict(zip(second.outcomes, second.probabilities.tolist(), strict=True))
            here = dict(zip(first.outcomes, first.probabilities.tolist(), strict=True))
            listed = sorted({*here, *there}, key=lambda outcome: int(self._keys(np.array(outcome))))
            p, q = (np.array([table.get(one, 0.0) for one in listed]) for table in (here, there))
            keys = self._keys(np.array(listed))
            assert np.unique(keys).size == keys.size, "no two transcripts have one number"
            with np.errstate(divide="ignore"):
                tables[id(x), id(y)] = keys, np.log(p) - np.log(q), x, y
        keys, ratios, *_ = tables[id(x), id(y)]
        return keys, ratios


def _build_mutant(name: str, base: MultiplicativeWeights) -> MultiplicativeWeights:
    """The mutant of this name, which like all of this family is the mechanism with other rules."""
    built = MUTANTS[name].build(base)
    assert isinstance(built, MultiplicativeWeights)
    return built


def _epochs() -> Iterator[Draft]:
    """The bound of one epoch, which is tight, and of two."""
    pair = _plan_changes()
    # Cheap answers must stay below a threshold that they are at, the costly one is a scale below it. Above the cut the
    # released answer is in the tail of its noise on both datasets.
    pattern, stream = _epoch(_FAR, _FAR - 1), FixedList([0] * _EARLIER + [1])
    answered = _epoch(_FAR, _FAR - 1, cut=_FAR - 0.5)
    for case, mechanism, times, note in (
        ("update_pattern", pattern, 3.0, "which query was updated, and the side"),
        ("epoch", answered, 4.0, "and whether the released answer is above a cut"),
    ):
        target, claim = ExactDialogue(mechanism, stream), PureDP(times * _EPSILON0)
        yield from reference(target, claim, pair, level="L2", case=case, relation=REPLACE, note=note)
    # Three earlier queries, so that events which tell something are not rare.
    released, note = Dialogue(replace(pattern, cuts=None), FixedList([0] * 3 + [1])), "side and released answer in full"
    draws = {"smoke": 500_000}
    claim = PureDP(4 * _EPSILON0)
    yield component(released, claim, pair, case="full_answers", relation=REPLACE, draws=draws, note=note)

    twice, analyst = replace(pattern, cap=2), Phases(0, 1, length=4, epochs=2)
    target, claim = ExactDialogue(twice, analyst), PureDP(2 * 3 * _EPSILON0)
    note = "after an update the cheap query is asked again"
    yield from reference(target, claim, pair, case="two_patterns", relation=REPLACE, note=note)
    kept = "threshold_not_refreshed"
    built, note = ExactDialogue(_build_mutant(kept, twice), analyst), MUTANTS[kept].note
    yield mutant(kept, built, claim, pair, expected="consistent", relation=REPLACE, note=note)
    yield conformity(built, pair, reference=target, case=kept, expected="deviation", note=note)


def _claim_epoch_leaks() -> Iterator[Draft]:
    """Mutants that break the bound of one epoch; each on gaps that make its own leak frequent."""
    pair = _plan_changes()
    # A released answer says that the threshold was below it, and the noise of all answers before it with it: the more
    # the lower it is and the more there were. Gaps that rise keep both likely, 12 cuts tell how low it is. A coarse
    # lattice, for the distribution of so many transcripts.
    reused = _rising_gaps(24, 0.75, -1.8, 2.1, [-1.0 + 0.3 * k for k in range(12)])
    many = {"smoke": 2_000_000, "standard": 2_000_000}
    # A near threshold, so that a query whose gap is half a person, and changes its sign, has an update.
    flips = _epoch(_FAR, 0.25, far=2.0)
    # A query just below the threshold is asked again after its update.
    repeated = replace(_epoch(_FAR - 0.5, _FAR - 0.5, epsilon0=0.8, cut=_FAR), step=2.0**-3)
    for name, base, queries, draws in (
        ("answer_noise_reused", reused, list(range(24)), many),
        ("no_threshold_noise", _epoch(_FAR - 0.5, _FAR), [0] * _EARLIER + [1], {}),
        # Two gaps on either side of the threshold, whose order changes.
        ("update_from_exact_answer", _epoch(_FAR - 0.25, _FAR + 0.25), [0, 1], {}),
        ("sign_from_exact_answer", flips, [1], {}),
        ("cap_removed", repeated, [0] * 5, many),
    ):
        target, claim = RatedDialogue(_build_mutant(name, base), FixedList(queries)), PureDP(4 * base.epsilon0)
        yield mutant(name, target, claim, pair, relation=REPLACE, draws=draws, note=MUTANTS[name].note)
    name, base = "n_dropped_the_other_way", replace(_epoch(_FAR, _FAR), cuts=None)
    dropped, claim = Dialogue(_build_mutant(name, base), FixedList([0, 1])), PureDP(4 * base.epsilon0)
    yield mutant(name, dropped, claim, pair, relation=REPLACE, note=MUTANTS[name].note)


# --------------------------------------------------------------------------------- the whole run


def _claim_all_epochs() -> Iterator[Draft]:
    """All epochs that the theorem allows, by composition, against an analyst who knows the data."""
    epsilon, alpha, universe = 2.0, 0.3, DataUniverse(_RARE)
    cap = most_updates(universe.size, alpha)
    budget = epoch_budget(epsilon, _DELTA, cap)
    mechanism = MultiplicativeWeights(_pool(universe, 64), universe, _N, alpha, budget, cap)
    change = "a person in poor health is replaced by one who is not"
    pair = _pair_of_types(universe, replaced(change, person(hlthp=1), person(hlthp=0)))
    yield privacy(
        Dialogue(mechanism, Adaptive(WorstQuery(mechanism, pair.x), 25)),
        ApproxDP(epsilon, _DELTA),
        pair,
        case="worst_queries",
        relation=REPLACE,
        draws={"smoke": 10_000, "standard": 25_000},
        parameters={"N": universe.size, "alpha": alpha, "cap": cap, "epsilon0": budget},
        note="the analyst asks the query on which the hypothesis is most wrong, 25 times; nearly all lead to updates",
    )


# -------------------------------------------------------------------------------------- accuracy


@dataclass(frozen=True, eq=False)
class LargestAnswerError:
    """Largest error of all answers of a run; infinite if it halted before the end.

    Parameters
    ----------
    truth : ndarray of shape (m,)
        Exact answers of the pool.
    rounds : int
        Queries of a run.
    adaptive : bool
        Outputs end with the queries; otherwise the pool was asked in its order.
    """

    truth: FloatArray
    rounds: int
    adaptive: bool = False

    def __call__(self, outputs: FloatArray) -> FloatArray:
        """Errors of n transcripts, shape (n,)."""
        transcripts = np.asarray(outputs, dtype=np.float64)
        released = transcripts[:, 1 : 2 * self.rounds : 2]
        if not self.adaptive:
            expected = self.truth[: self.rounds]
        else:
            # A run that has halted asks nothing; its answers are NaN and make the error infinite.
            expected = self.truth[np.maximum(transcripts[:, 2 * self.rounds :].astype(np.int64), 0)]
        errors = np.abs(released - expected).max(axis=1)
        return np.where(np.isnan(errors), np.inf, errors)


@cache
def _rows(universe: DataUniverse, rows: int) -> IntArray:
    """Types of the real rows, repeated in their order until there are so many."""
    return np.resize(universe(rand()), rows)


@cache
def _pool(universe: DataUniverse, queries: int) -> QueryWorkload:
    return subset_queries(queries, universe, np.random.default_rng(queries))


def _theorem(universe: DataUniverse, queries: int, epsilon: float, alpha: float, rows: int) -> MultiplicativeWeights:
    """The mechanism with all of the theorem's parameters, for a stream of random queries."""
    cap = most_updates(universe.size, alpha)
    budget = epoch_budget(epsilon, _DELTA, cap)
    return MultiplicativeWeights(_pool(universe, queries), universe, rows, alpha, budget, cap)


def _setting(universe: DataUniverse, queries: int, epsilon: float, rows: int) -> Setting:
    """The least alpha that the theorem gives for so many rows."""
    alpha = accuracy_bound(universe.size, queries, epsilon, _DELTA, rows, _BETA)
    mechanism, data = _theorem(universe, queries, epsilon, alpha, rows), _rows(universe, rows)
    return Setting(mechanism, data, LargestAnswerError(_truth(mechanism, data), queries), 1.5 * alpha)


def _truth(mechanism: MultiplicativeWeights, data: object) -> FloatArray:
    return mechanism.workload.values @ mechanism.universe.counts(data) / mechanism.rows


def _accuracy() -> Iterator[Draft]:
    """Every answer within 3 alpha / 2 with probability 0.95, at the least n that the theorem asks for."""
    alpha, epsilon, queries, universe = 0.3, 2.0, 200, DataUniverse(_RARE[::2])
    needed = rows_needed(universe.size, queries, epsilon, _DELTA, alpha, _BETA)
    mechanism, data = _theorem(universe, queries, epsilon, alpha, needed), _rows(universe, needed)
    truth, rounds = _truth(mechanism, data), mechanism.cap + 1
    assert rounds <= queries, "the union bound is over so many queries"
    reversed_step = _build_mutant("update_sign_reversed", mechanism)
    for case, target, error, note in (
        ("random_queries", mechanism, LargestAnswerError(truth, queries), "in a fixed order"),
        (
            "worst_queries",
            Dialogue(mechanism, Adaptive(WorstQuery(mechanism, data), rounds)),
            LargestAnswerError(truth, rounds, adaptive=True),
            "adaptive, and one query more than updates are allowed; a run that halts is a failure",
        ),
        (
            "noise_without_n",
            _build_mutant("noise_without_n", mechanism),
            LargestAnswerError(truth, queries),
            MUTANTS["noise_without_n"].note,
        ),
        (
            "update_sign_reversed",
            Dialogue(reversed_step, Adaptive(WorstQuery(reversed_step, data), rounds)),
            LargestAnswerError(truth, rounds, adaptive=True),
            MUTANTS["update_sign_reversed"].note,
        ),
    ):
        broken = case in MUTANTS
        yield accuracy(
            target,
            data,
            error,
            at_most=1.5 * alpha,
            beta=_BETA,
            case=case,
            expected="deviation" if broken else "consistent",
            is_mutant=broken,
            # With 600 draws a failure rate of 0.1 is detectable, or excluded, at any share of the run's alpha.
            draws={"smoke": 600, "standard": 1_200, "full": 10_000},
            # The other runs are of the same class, which is tested here and at level L1: hundreds of rounds a call.
            independence=case == "random_queries",
            derived=True,
            parameters={"N": universe.size, "queries": queries, "n": needed, "alpha": alpha, "cap": mechanism.cap},
            note=note,
        )

    # At the size that the catalogue works out. A run answers 4,000 queries; that runs are independent was tested above.
    needed = rows_needed(_TYPES.size, 4000, 1.0, _DELTA, 0.1, _BETA)
    mechanism, data = _theorem(_TYPES, 4000, 1.0, 0.1, needed), _rows(_TYPES, needed)
    yield accuracy(
        mechanism,
        data,
        LargestAnswerError(_truth(mechanism, data), 4000),
        at_most=1.5 * 0.1,
        beta=_BETA,
        case="four_thousand_queries",
        draws={"smoke": 520, "standard": 520, "full": 2_000},
        independence=False,
        derived=True,
        parameters={"N": _TYPES.size, "queries": 4000, "n": needed, "alpha": 0.1, "cap": mechanism.cap},
        note="eps = 1, delta = 1e-6; the real rows are repeated to reach n",
    )


def _exponents() -> Iterator[Draft]:
    """The bound against runs at growing n, eps and N; the 95 % quantile of the largest error may not exceed it.

    This is the theorem at its own parameters, at each of the values. The number of runs at a value is a quarter of the
    draws, for a run takes thousands of queries: 40 at level smoke, 250 at standard.
    """
    least = rows_needed(_TYPES.size, 4000, 1.0, _DELTA, 0.1, _BETA)
    rows = [least // 4, least // 2, least, 2 * least]
    # In every case the curve is 3 alpha / 2 with the alpha of the theorem.
    yield _growth(
        "n",
        rows,
        -0.5,
        lambda n: _setting(_TYPES, 4000, 1.0, int(n)),
        "4000 queries on 256 types; the real rows are repeated to reach n, of which 736,252 gives alpha = 0.1",
    )
    sixteen = DataUniverse(_SPLITS[:4])
    yield _growth(
        "eps", [0.25, 0.5, 1.0, 2.0], -0.5, lambda eps: _setting(sixteen, 500, eps, 10 * _N), "500 queries on 16 types"
    )
    yield _growth(
        "ln_N",
        [bits * math.log(2.0) for bits in (4, 6, 8, 10)],
        0.25,
        lambda ln: _setting(DataUniverse(_SPLITS[: round(ln / math.log(2.0))]), 500, 1.0, 20 * _N),
        "500 queries on 16 to 1024 types",
    )


def _growth(
    parameter: str, at: Sequence[float], exponent: float, build: Callable[[float], Setting], note: str
) -> Draft:
    return scaling(
        build,
        parameter=parameter,
        at=at,
        exponent=exponent,
        measure=Quantile(1.0 - _BETA),
        curve=lambda value: build(value).at_most,
        criterion=False,
        case=f"bound_in_{parameter.lower()}",
        draws={"smoke": 160, "standard": 1_000, "full": 4_000},
        derived=True,
        note=note,
    )


def _potential_drops() -> list[tuple[str, float, float]]:
    """Every update of one run that answers a query on which the hypothesis was wrong by alpha / 2, and their number."""
    alpha = 0.1
    rows = rows_needed(_TYPES.size, 4000, 1.0, _DELTA, alpha, _BETA)
    mechanism, data = _theorem(_TYPES, 4000, 1.0, alpha, rows), _rows(_TYPES, rows)
    x, truth = _TYPES.counts(data) / rows, _truth(mechanism, data)
    occurs = x > 0
    session = mechanism.start(data, 1, np.random.default_rng(0))
    found: list[tuple[str, float, float]] = []
    h = session.hypotheses[0]
    for query, answer in enumerate(truth):
        session.ask(query)
        after = session.hypotheses[0]
        if not np.array_equal(after, h) and abs(answer - mechanism.workload.values[query] @ h) >= alpha / 2:
            drop = float(x[occurs] @ np.log(after[occurs] / h[occurs]))
            found.append((f"update at query {query}", DROP * alpha**2, drop))
        h = after
    return [*found, ("number of updates against the cap", float(session.updates[0]), float(mechanism.cap))]


@entry(
    "003/private_multiplicative_weights",
    title="Private multiplicative weights",
    source=Source("003", "section 3.2, Claims 3.2.1 and 3.2.2"),
)
def multiplicative_weights() -> Iterator[Draft]:
    """Epochs at their tight bound, whole runs by composition, nine mutants, and accuracy at the theorem's own n."""
    yield from _epochs()
    yield from _claim_epoch_leaks()
    yield from _claim_all_epochs()
    yield from _accuracy()
    yield from _exponents()
    yield inequality(
        _potential_drops,
        statement="an update lowers the divergence of the data from the hypothesis by (15/128) alpha^2 at least",
        level="L4",
        case="potential_drop",
        derived=True,
        note="4000 random queries on 256 types at n = 736,252 and alpha = 0.1, the real rows repeated",
    )
