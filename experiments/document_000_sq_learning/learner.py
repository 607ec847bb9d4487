"""Document 000, section 1: a private learner driven by statistical queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy import Largest, Setting, Smallest
from auditor.claims import (
    Draft,
    Erratum,
    Source,
    accuracy,
    broken,
    broken_and_deviating,
    conformity,
    deviating,
    entry,
    exact,
    privacy,
    proof_step,
    reference,
    scaling,
    smallest,
    statement_holds,
)
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from experiments._errors import FirstAnswerError
from experiments.common import REPLACE, person, rand, replaced
from mechanisms.statistical_queries.query_algorithms import (
    AllBitsSet,
    ColumnBit,
    ConjunctionAlgorithm,
    ThresholdAlgorithm,
    chunk_size,
    printed_chunk_size,
)
from mechanisms.statistical_queries.statistical_queries import (
    MUTANTS,
    ChunkedAnswers,
    ConjunctionLearner,
    FixedAnswers,
    FreshAnswers,
    FreshPrintedNoise,
    StatisticalQueryLearner,
    expectations,
    sorted_by,
)

FloatArray = NDArray[np.float64]

#: Ten bits of a person, ordered so that one person can lack each of them and have the next (`_sorted_pair`).
_BITS = (
    ColumnBit("idp", 1),
    ColumnBit("lncoins", 4),
    ColumnBit("lncoins", 1),
    ColumnBit("fmde", 6.5),
    ColumnBit("fmde", 1),
    ColumnBit("physlm", high=0),
    ColumnBit("disea", 10),
    ColumnBit("hlthg", 1),
    ColumnBit("hlthf", high=0),
    ColumnBit("hlthp", high=0),
)
#: A person who lacks all of them: the ten queries count that person if there was a visit to a doctor, and only then.
_NOTHING = {"idp": 0, "lncoins": 0, "fmde": 0, "physlm": 1, "disea": 0, "hlthg": 0, "hlthf": 1, "hlthp": 1}
#: Who visited a doctor; the sample's label where only privacy is at stake, which does not ask for a concept that fits.
_VISITED = ColumnBit("mdvis", 1)
#: 20,190 persons in ten chunks.
_ROWS = 2019
_CONJUNCTION = ConjunctionAlgorithm(_BITS, _VISITED, error=0.2)
#: Eight chunks for the last eight bits. In the last chunk 45 or 46 persons are in poor health and visited a doctor, and
#: tau s = 44.8: on both datasets the bit is kept only if the noise is negative, so that event costs all of epsilon.
_EIGHT, _EIGHT_ROWS = ConjunctionAlgorithm(_BITS[2:], _VISITED, error=0.284), 2523
#: Thresholds 0, 1/16, .. 64 for the index of chronic diseases, whose largest value is 58.6. In chunk 3 a threshold of 4
#: is asked for, below which there are 206 or 207 persons who visited a doctor, and tau s = 204.9.
_THRESHOLDS = ThresholdAlgorithm("disea", _VISITED, rounds=10, low=0.0, width=0.0625, tolerance=0.1015)

#: Lattice step in rows: fine enough that the curve is nearly that of the Laplace distribution (A1), coarse enough that
#: ten answers which all move are composed in no time.
_STEP = 2.0**-6
_EPSILON, _DELTA = 0.5, 0.05
_CLAIM = PureDP(_EPSILON)
#: For mutants in which a row moves several answers at once: noise of a third of a row, with which a few draws tell the
#: two datasets apart.
_LARGE_EPSILON = 3.0

#: Ten numbers a draw: a part of the usual budget.
_DRAWS = {"smoke": 40_000, "standard": 400_000}
#: Those that resolve twice the claimed level.
_ENOUGH = {"smoke": 165_000, "standard": 400_000}

_J4 = Erratum(
    "J4",
    "proof",
    "The proof of Theorem 1 adds Laplace noise of scale M/(|S_i| alpha) to each response, and "
    "bounds its magnitude by O(ln(2M/delta)/(alpha |S_i|)) <= tau/2.",
    fails="noise of that scale is larger by a factor of M: at M = 100, alpha = tau = 0.1, delta = 0.05 and |S_i| = "
    "3318 it exceeds tau/2 with probability 0.85, where delta/(2M) = 0.00025 is needed",
    correction="noise of scale 1/(|S_i| alpha), which is alpha-DP because the chunks are disjoint; with it the theorem "
    "holds at the printed sample size",
)


# ------------------------------------------------------------------------------------- pairs


def _chunk_pair(index: int, name: str) -> Pair:
    """A person whom every query counts in one dataset and none in the other."""
    return replaced(name, person(**_NOTHING, mdvis=0), person(**_NOTHING, mdvis=1), index)


def _health_pair() -> Pair:
    """A person in the last of eight chunks, who was not in poor health."""
    index = int(np.flatnonzero(rand()["hlthp"].to_numpy()[: 8 * _EIGHT_ROWS] == 0)[-1])
    return replaced(
        "a person in the last chunk goes from good health to poor",
        person(hlthp=0, mdvis=1),
        person(hlthp=1, mdvis=1),
        index,
    )


def _sorted_pair() -> Pair:
    """One person moves from the lowest to the highest value that rows are sorted by: every cut shifts by one person.

    The person at cut i has bit i and lacks bit i - 1, so leaves a chunk whose query does not count that person for one
    whose query does: every answer rises.
    """
    data = rand().astype(float)
    order = np.argsort(data["lpi"].to_numpy(), kind="stable")
    lacks: dict[int, dict[str, float]] = {
        0: {"idp": 0},
        1: {"lncoins": 2},
        2: {"lncoins": 0},
        3: {"fmde": 3},
        4: {"fmde": 0},
        5: {"physlm": 1},
        6: {"disea": 0},
        7: {"hlthg": 0},
        8: {"hlthf": 1},
        9: {"hlthp": 1},
    }
    has = {"idp": 1, "lncoins": 4.6, "fmde": 7, "physlm": 0, "disea": 20, "hlthg": 1, "hlthf": 0, "hlthp": 0}
    for i in range(1, len(_BITS)):
        for name, value in {**has, **lacks[i - 1], "mdvis": 3}.items():
            data.loc[data.index[order[i * _ROWS]], name] = value
    moved = data.copy()
    last = {**has, **lacks[9], "mdvis": 3, "lpi": float(data["lpi"].max()) + 1}
    for name, value in last.items():
        moved.loc[moved.index[order[0]], name] = value
    for name, value in {**has, "mdvis": 3}.items():
        data.loc[data.index[order[0]], name] = value
    return Pair(data, moved, "a person goes from the lowest participation incentive to the highest")


# ---------------------------------------------------------------------------------- accuracy


def _cuts(column: str, low: float, high: float) -> tuple[ColumnBit, ...]:
    return tuple(ColumnBit(column, float(cut)) for cut in np.linspace(low, high, 25))


#: A hundred bits, 25 cuts of each of four columns, and a concept that has three of them.
_HUNDRED = (*_cuts("disea", 1, 49), *_cuts("fmde", 0.25, 6.25), *_cuts("lpi", 0.25, 6.25), *_cuts("mdvis", 1, 25))
_CONCEPT = AllBitsSet((_HUNDRED[2], _HUNDRED[30], _HUNDRED[75]))
_LARGE = ConjunctionAlgorithm(_HUNDRED, _CONCEPT, error=0.2)
#: The catalogue's example, where only the answers are looked at; alpha is the document's name for epsilon.
_M, _TAU, _ALPHA = 100, 0.1, 0.1
#: One query, asked M times, of expectation 0.524: near the 1/2 at which sampling errors are largest.
_AGAIN = _BITS[0]


@cache
def _means(algorithm: ConjunctionAlgorithm | ThresholdAlgorithm) -> FloatArray:
    return expectations(algorithm, rand())


def _repeated_queries(queries: int) -> ConjunctionAlgorithm:
    return ConjunctionAlgorithm((_AGAIN,) * queries, _VISITED, error=0.5)


@cache
def _repeated_mean() -> float:
    return float(expectations(_repeated_queries(1), rand())[0])


@dataclass(frozen=True)
class WrongPredictions:
    """Part of the persons whose label the learned conjunction gets wrong."""

    algorithm: ConjunctionAlgorithm

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n hypotheses of shape (n, d)."""
        kept, of_run = np.unique(np.asarray(outputs, dtype=np.float64), axis=0, return_inverse=True)
        label = self.algorithm.label(rand())
        wrong = [np.mean(self.algorithm.learned(hypothesis)(rand()) != label) for hypothesis in kept]
        return np.array(wrong)[of_run.ravel()]


@dataclass(frozen=True)
class WrongThreshold:
    """Part of the persons whose label the learned threshold gets wrong."""

    algorithm: ThresholdAlgorithm

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n thresholds of shape (n,)."""
        learned, of_run = np.unique(np.asarray(outputs, dtype=np.float64), return_inverse=True)
        label, values = self.algorithm.label(rand()), rand()[self.algorithm.column].to_numpy()
        return np.array([np.mean((values >= t) != label) for t in learned])[of_run.ravel()]


def _by_size(
    queries: int, tolerance: float, epsilon: float, made: Callable[..., FreshAnswers] = FreshAnswers
) -> Callable[[int], Setting]:
    """From a total sample size to the answers of the repeated query, off by more than the tolerance or not."""
    algorithm, mean = _repeated_queries(queries), np.full(queries, _repeated_mean())

    def build(total: int) -> Setting:
        return Setting(made(algorithm, epsilon, max(1, total // queries)), mean, Largest(mean), tolerance)

    return build


@entry(
    "000/sq_to_dp_learner",
    title="Private learner driven by statistical queries on disjoint chunks",
    source=Source("000", "section 1, Theorem 1"),
    errata=[_J4],
)
def learner() -> Iterator[Draft]:
    """Ten queries on the whole of the data, one chunk each; the pair moves the answer of one chunk by 1/s.

    Accuracy is that of fresh samples from the uniform distribution on the persons of the data, labelled by a concept.
    The document states sample sizes as O(.): the constants are those of the derivation in the catalogue.
    """
    answers = FixedAnswers(_CONJUNCTION, _EPSILON, _ROWS, _STEP)
    in_chunk = _chunk_pair(4 * _ROWS + 7, "a person in chunk 4, whom no query counts or all do")
    at_border = _chunk_pair(9 * _ROWS, "the first person of the last chunk, whom no query counts or all do")
    yield from reference(
        answers, _CLAIM, [in_chunk, at_border], case="ten_answers", relation=REPLACE, draws=_ENOUGH, follows=False
    )
    yield conformity(answers, in_chunk, case="ten_answers", draws=_DRAWS)
    learned, healthy = ConjunctionLearner(FixedAnswers(_EIGHT, _EPSILON, _EIGHT_ROWS, _STEP)), _health_pair()
    yield from reference(
        learned, _CLAIM, healthy, case="hypothesis", relation=REPLACE, draws=_ENOUGH, follows={"draws": _DRAWS}
    )
    # Whatever threshold is asked for, the pair moves its answer by 1/s, so the transcript costs exactly epsilon.
    adaptive = ChunkedAnswers(_THRESHOLDS, _EPSILON, _ROWS, _STEP)
    asked = _chunk_pair(3 * _ROWS + 7, "a person in chunk 3, whom no query counts or all do")
    yield privacy(
        adaptive,
        _CLAIM,
        asked,
        case="adaptive_answers",
        relation=REPLACE,
        exact_level=_EPSILON,
        # Which of the ten numbers tells is learned: 200,000 draws show twice the level at any share of alpha.
        draws={**_DRAWS, "smoke": 200_000},
    )
    yield privacy(
        StatisticalQueryLearner(adaptive), _CLAIM, asked, case="adaptive_hypothesis", relation=REPLACE, draws=_ENOUGH
    )
    yield from _mutants(answers, in_chunk)
    yield from _accuracy()
    yield from _exponents()


def _mutants(answers: FixedAnswers, in_chunk: Pair) -> Iterator[Draft]:
    in_first = _chunk_pair(7, "a person in the first chunk, whom no query counts or all do")
    in_two = _chunk_pair(_ROWS - 7, "a person in two windows, whom no query counts or all do")
    precise = FixedAnswers(_CONJUNCTION, _LARGE_EPSILON, _ROWS, _STEP)
    for found, pair in (
        (MUTANTS["shared_chunk"], in_first),
        (MUTANTS["overlapping_chunks"], in_two),
        (sorted_by("lpi"), _sorted_pair()),
    ):
        yield broken(found, precise, pair, relation=REPLACE, draws=_DRAWS)
    for name in ("noise_scale_alpha_over_s", "noise_scale_1_over_s"):
        yield from broken_and_deviating(MUTANTS[name], answers, in_chunk, relation=REPLACE, draws=_DRAWS)
    # As printed it is M times as private as claimed; what it breaks is accuracy.
    printed = MUTANTS["printed_noise_scale"]
    yield exact(
        printed.build(answers),
        PureDP(_EPSILON / _CONJUNCTION.queries),
        in_chunk,
        case=printed.name,
        relation=REPLACE,
        note=printed.note,
    )
    yield deviating(printed, answers, in_chunk, draws=_DRAWS)


def _accuracy() -> Iterator[Draft]:
    means, size = _means(_LARGE), chunk_size(_M, _TAU, _ALPHA, _DELTA)
    fresh = FreshAnswers(_LARGE, _ALPHA, size)
    few = {"smoke": 4_000, "standard": 20_000}
    yield accuracy(
        fresh,
        means,
        Largest(means),
        at_most=_TAU,
        beta=_DELTA,
        exact=fresh.miss_any(means, _TAU),
        case="hundred_answers",
        draws=few,
        derived=True,
        parameters={"M": _M, "alpha": _ALPHA, "chunk": size},
        note="a hundred queries, all answers within tau",
    )
    # The printed example: chunks of 3318.
    printed_size = printed_chunk_size(_M, _TAU, _ALPHA, _DELTA)
    sound, printed = FreshAnswers(_LARGE, _ALPHA, printed_size), FreshPrintedNoise(_LARGE, _ALPHA, printed_size)
    numbers = {"M": _M, "alpha": _ALPHA, "tau": _TAU, "delta": _DELTA, "chunk": printed_size}
    # With expectations of 0 an answer is its noise.
    nothing = np.zeros(_M)
    yield proof_step(
        "J4",
        accuracy(
            printed,
            nothing,
            FirstAnswerError(0.0),
            at_most=_TAU / 2,
            beta=_DELTA / (2 * _M),
            exact=printed.miss(0.0, _TAU / 2),
            expected="deviation",
            case="printed_noise_of_one_answer",
            draws=few,
            parameters=numbers,
            note="the noise M/(alpha s) of one answer is to be at most tau/2 with probability 1 - delta/(2M)",
        ),
    )
    yield statement_holds(
        "J4",
        accuracy(
            sound,
            means,
            Largest(means),
            at_most=_TAU,
            beta=_DELTA,
            exact=sound.miss_any(means, _TAU),
            case="answers_at_the_printed_size",
            draws=few,
            derived=True,
            parameters=numbers,
            note="noise 1/(alpha s), at the printed sample size: all answers within tau",
        ),
    )
    yield accuracy(
        printed,
        means,
        Largest(means),
        at_most=_TAU,
        beta=_DELTA,
        exact=printed.miss_any(means, _TAU),
        expected="deviation",
        case="printed_noise_scale",
        draws=few,
        is_mutant=True,
        parameters=numbers,
        note="scale M/(alpha s) with the printed sample size: answers miss tau",
    )
    yield accuracy(
        StatisticalQueryLearner(FreshAnswers(_LARGE, _EPSILON, chunk_size(_M, _LARGE.tolerance, _EPSILON, _DELTA))),
        means,
        WrongPredictions(_LARGE),
        at_most=_LARGE.error,
        beta=_DELTA,
        case="learned_conjunction",
        draws=few,
        derived=True,
        note="a conjunction of three of a hundred bits; error at most 2 d tau",
    )
    search = ThresholdAlgorithm("fmde", ColumnBit("fmde", 6.0), rounds=10, low=0.0, width=2.0**-7, tolerance=0.02)
    yield accuracy(
        StatisticalQueryLearner(FreshAnswers(search, _EPSILON, chunk_size(10, search.tolerance, _EPSILON, _DELTA))),
        _means(search),
        WrongThreshold(search),
        at_most=2 * search.tolerance,
        beta=_DELTA,
        case="learned_threshold",
        draws=few,
        derived=True,
        note="binary search, every query depends on the answers before it; error at most 2 tau",
    )


def _exponents() -> Iterator[Draft]:
    claimed = _M * chunk_size(_M, _TAU, _ALPHA, _DELTA)
    yield smallest(
        _by_size(_M, _TAU, _ALPHA),
        parameter="samples",
        claimed=claimed,
        beta=_DELTA,
        low=claimed / 32,
        case="hundred_answers_smallest",
        draws={"smoke": 10_000, "standard": 60_000},
        derived=True,
    )

    def log_factor(queries: float) -> float:
        return math.log(2 * queries / _DELTA)

    def bound(queries: int, tolerance: float, epsilon: float) -> int:
        return queries * chunk_size(queries, tolerance, epsilon, _DELTA)

    at = (4, 16, 64)
    yield scaling(
        lambda queries: _by_size(int(queries), _TAU, _ALPHA),
        parameter="M",
        at=at,
        exponent=1.0,
        others=(0.5, 2.0),
        log_factor=log_factor,
        measure=Smallest(_DELTA, low=400.0, high=2.0 * bound(at[-1], _TAU, _ALPHA)),
        curve=lambda queries: bound(int(queries), _TAU, _ALPHA),
        case="samples_by_queries",
        draws={"smoke": 60_000, "standard": 300_000},
        derived=True,
    )
    alphas, taus = (0.001, 0.002, 0.004, 0.008), (0.005, 0.01, 0.02, 0.04)
    yield scaling(
        lambda alpha: _by_size(10, 0.1, alpha),
        parameter="alpha",
        at=alphas,
        exponent=-1.0,
        others=(-2.0, -0.5),
        measure=Smallest(_DELTA, low=0.1 * bound(10, 0.1, alphas[-1]), high=2.0 * bound(10, 0.1, alphas[0])),
        curve=lambda alpha: bound(10, 0.1, alpha),
        case="samples_by_alpha",
        draws={"smoke": 60_000, "standard": 300_000},
        derived=True,
        note="alpha well below tau = 0.1",
    )
    yield scaling(
        lambda tau: _by_size(10, tau, 1.0),
        parameter="tau",
        at=taus,
        exponent=-2.0,
        others=(-1.0,),
        measure=Smallest(_DELTA, low=0.05 * bound(10, taus[-1], 1.0), high=2.0 * bound(10, taus[0], 1.0)),
        curve=lambda tau: bound(10, tau, 1.0),
        case="samples_by_tau",
        draws={"smoke": 60_000, "standard": 300_000},
        derived=True,
        note="tau well below alpha = 1",
    )
    yield scaling(
        lambda queries: _by_size(int(queries), _TAU, _ALPHA, FreshPrintedNoise),
        parameter="M",
        at=at,
        exponent=1.0,
        others=(0.5,),
        log_factor=log_factor,
        measure=Smallest(_DELTA, low=400.0, high=100.0 * bound(at[-1], _TAU, _ALPHA)),
        expected="deviation",
        is_mutant=True,
        case="printed_noise_scale__samples",
        draws={"smoke": 60_000, "standard": 300_000},
        note="with the printed noise the sample has to grow as M^2",
    )
