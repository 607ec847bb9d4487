"""Document 003, sections 2.1.2 and 3.1: k counting queries with Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import pandas as pd
from scipy import special

from auditor.audits.accuracy import Exactly, Largest, Quantile, Setting
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken,
    broken_and_deviating,
    deviating,
    entry,
    expectation,
    inequality,
    reference,
    scaling,
)
from auditor.privacy.guarantees import ApproxDP, PureDP
from experiments._errors import FirstAnswerError, TypicalError
from experiments.common import REPLACE, rand, visits
from mechanisms.additive_noise.gaussian import CalibratedGaussian
from mechanisms.query_release.counting_queries import MUTANTS, CountingQueries, ThresholdCounts, capacity, spread_cuts

_N = len(rand())
_EPSILON, _DELTA = 1.0, 1e-5
_PURE, _APPROXIMATE = PureDP(_EPSILON), ApproxDP(_EPSILON, _DELTA)
#: A person with no visits replaced by one with 77, the most that anybody has, moves every count of visits.
_TEN, _FIFTY = spread_cuts("mdvis", 0.0, 20.0, 10), spread_cuts("mdvis", 0.0, 75.0, 50)
#: Lattice step where errors are compared with those of the Laplace distribution: a 64th of a row, because the scale of
#: few answers is not much more than a row.
_FINE = 2.0**-6
#: Outputs of fifty numbers: a quarter of the usual budget shows as much as is to be detected.
_FEWER = {"smoke": 50_000, "standard": 500_000}


@cache
def _first_rows(rows: int) -> pd.DataFrame:
    return rand().head(rows)


def _queries(k: int) -> ThresholdCounts:
    return spread_cuts("mdvis", 0.0, 75.0, k)


def _typical_error(k: int, rows: int, epsilon: float, delta: float) -> Setting:
    """Error of one of k answers on the first rows of the data."""
    data, mechanism = _first_rows(rows), CountingQueries(_queries(k), rows, epsilon, delta, _FINE)
    return Setting(mechanism, data, TypicalError(_queries(k)(data) / rows))


def _harmonic_number(k: float) -> float:
    """H_k, the expectation of the largest of k exponential variables."""
    return sum(1.0 / i for i in range(1, int(k) + 1))


def _normal_maximum(k: float) -> float:
    """Median of the largest of k normal variables in absolute value; ``sqrt(2 ln k)`` to leading order."""
    return float(special.ndtri((1.0 + 2.0 ** (-1.0 / k)) / 2.0))


@entry(
    "003/k_counting_queries_laplace",
    title="k counting queries, pure or approximate budget",
    source=Source("003", "section 2.1.2, end; section 3.1"),
)
def counting_queries() -> Iterator[Draft]:
    """How many visits persons had, by 10 and by 50 thresholds; a row that moves all counts, statistic: their sum.

    The document states O(.) with an open constant c in eps0; the noise here is that of A11, whose constant is derived.
    Section 3.1 gives the largest of k errors a factor sqrt(ln k), section 2.1.2 a factor ln k: Laplace noise has the
    second, Gaussian noise the first, and both are claims here.
    """
    pure, approximate = CountingQueries(_TEN, _N, _EPSILON), CountingQueries(_FIFTY, _N, _EPSILON, _DELTA)
    all_move = visits(0, 77)
    yield from reference(pure, _PURE, all_move, case="ten_counts", relation=REPLACE, follows={"draws": _FEWER})
    few = {"draws": {"smoke": 25_000, "standard": 100_000}}
    yield from reference(
        approximate, _APPROXIMATE, all_move, case="fifty_counts", relation=REPLACE, draws=_FEWER, follows=few
    )

    # At a level of 4 the noise of an answer has a scale of 1.8 rows: the pair moves the sum of all answers by 50 rows,
    # nearly three standard deviations of its noise.
    generous = CountingQueries(_FIFTY, _N, 4.0, _DELTA)
    yield broken(
        MUTANTS["sqrt_k_without_log"],
        generous,
        all_move,
        guarantee=ApproxDP(generous.epsilon, _DELTA),
        relation=REPLACE,
        draws=_FEWER,
    )
    yield from broken_and_deviating(MUTANTS["largest_sensitivity_only"], pure, all_move, relation=REPLACE)
    yield broken(MUTANTS["noise_reused"], pure, visits(0, 5), relation=REPLACE)
    yield deviating(MUTANTS["noise_reused"], pure, all_move)
    twice = CountingQueries(ThresholdCounts("mdvis", (1.0, 5.0, 1.0, 5.0)), _N, _EPSILON)
    yield broken(MUTANTS["k_after_dedup"], twice, all_move, relation=REPLACE)
    yield from _accuracy()
    yield from _exponents()


def _accuracy() -> Iterator[Draft]:
    beta, draws = 0.05, {"smoke": 5_000, "standard": 50_000}
    for name, k, delta in (("pure", 100, 0.0), ("approximate", 100, _DELTA)):
        mechanism = CountingQueries(_queries(k), _N, _EPSILON, delta)
        truth = _queries(k)(rand()) / _N
        one, largest = mechanism.bound(beta), mechanism.bound(beta, k)
        yield accuracy(
            mechanism,
            rand(),
            FirstAnswerError(float(truth[0])),
            at_most=one,
            beta=beta,
            exact=mechanism.miss(one),
            case=f"{name}_one_answer",
            draws=draws,
            derived=True,
            note="scale times ln(1/beta), and half a step of the lattice",
        )
        yield accuracy(
            mechanism,
            rand(),
            Largest(truth),
            at_most=largest,
            beta=beta,
            exact=mechanism.miss_any(largest),
            case=f"{name}_all_answers",
            draws=draws,
            derived=True,
            note="scale times ln(k/beta), and half a step of the lattice",
        )
        yield expectation(
            mechanism,
            rand(),
            Largest(truth),
            at_most=mechanism.scale * _harmonic_number(k),
            exact=mechanism.expected_largest(),
            case=f"{name}_largest",
            draws=draws,
            derived=True,
            note="the expectation is b H_k for the Laplace distribution: nothing is lost",
        )
    yield inequality(
        _expected_maxima,
        statement="the expectation of the largest of k Laplace errors is b H_k",
        relation="==",
        level="L4",
        tolerance=1e-6,
        case="expected_largest",
        derived=True,
    )
    yield inequality(
        _advanced_levels,
        statement="k answers at the eps0 of advanced composition keep (eps, delta), exactly composed",
        case="advanced_calibration",
        derived=True,
    )


def _expected_maxima() -> list[Row]:
    rows: list[Row] = []
    for k in (10, 100, 1000):
        mechanism = CountingQueries(_queries(k), _N, _EPSILON, 0.0, _FINE)
        rows.append((f"k = {k}, in scales", mechanism.expected_largest() / mechanism.scale, _harmonic_number(k)))
    return rows


def _advanced_levels() -> list[Row]:
    rows: list[Row] = []
    for epsilon in (0.1, 1.0, 4.0):
        for k in (1, 10, 100, 1000):
            mechanism = CountingQueries(_queries(k), _N, epsilon, _DELTA)
            rows.append((f"k = {k}, eps = {epsilon:g}", mechanism.exact_epsilon(_DELTA), epsilon))
    return rows


def _exponents() -> Iterator[Draft]:
    draws, by_k = {"smoke": 4_000, "standard": 20_000}, (8, 32, 128, 512)
    for name, delta, exponent, other in (("pure", 0.0, 1.0, 0.5), ("approximate", _DELTA, 0.5, 1.0)):

        def by_queries(k: float, delta: float = delta) -> Setting:
            return _typical_error(int(k), _N, _EPSILON, delta)

        def by_rows(rows: float, delta: float = delta) -> Setting:
            return _typical_error(50, int(rows), _EPSILON, delta)

        def by_epsilon(epsilon: float, delta: float = delta) -> Setting:
            return _typical_error(50, _N, epsilon, delta)

        yield scaling(
            by_queries,
            parameter="k",
            at=by_k,
            exponent=exponent,
            others=(other,),
            case=f"{name}_error_by_queries",
            draws=draws,
        )
        yield scaling(
            by_rows,
            parameter="n",
            at=(1250, 2500, 5000, 10_000, 20_000),
            exponent=-1.0,
            others=(-0.5,),
            case=f"{name}_error_by_rows",
            draws=draws,
        )
        # Beyond 1 the second term of advanced composition is felt.
        yield scaling(
            by_epsilon,
            parameter="eps",
            at=(0.0625, 0.125, 0.25, 0.5, 1.0),
            exponent=-1.0,
            others=(-0.5,),
            case=f"{name}_error_by_epsilon",
            draws=draws,
        )
    yield scaling(
        _largest_laplace,
        parameter="k",
        at=by_k,
        exponent=0.5,
        others=(1.0,),
        log_factor=_harmonic_number,
        case="largest_laplace_error",
        draws=draws,
        note="section 2.1.2: sqrt(k) ln k",
    )
    yield scaling(
        _largest_gaussian,
        parameter="k",
        at=by_k,
        exponent=0.5,
        others=(1.0,),
        log_factor=_normal_maximum,
        measure=Quantile(0.5),
        case="largest_gaussian_error",
        draws=draws,
        note="section 3.1: sqrt(k ln k), which Laplace noise does not reach; for finite k the median of the maximum",
    )
    # Which k a given error allows: "noise o(1/sqrt n)" and "noise o(1)" of section 2.1.2.
    rows = (1250.0, 2500.0, 5000.0, 10_000.0, 20_000.0)
    yield scaling(
        lambda n: _most_queries(int(n), 1 / math.sqrt(n)),
        parameter="n",
        at=rows,
        exponent=1.0,
        others=(0.5, 2.0),
        measure=Exactly("most queries with a median error of 1/sqrt(n)"),
        benefit=True,
        case="queries_at_sampling_error",
    )
    yield scaling(
        lambda n: _most_queries(int(n), 0.05),
        parameter="n",
        at=rows,
        exponent=2.0,
        others=(1.0,),
        measure=Exactly("most queries with a median error of 0.05"),
        benefit=True,
        case="queries_at_constant_error",
    )


def _largest_laplace(k: float) -> Setting:
    queries = _queries(int(k))
    return Setting(CountingQueries(queries, _N, _EPSILON, _DELTA, _FINE), rand(), Largest(queries(rand()) / _N))


def _largest_gaussian(k: float) -> Setting:
    # Answers are counts, not fractions: a constant factor.
    queries = _queries(int(k))
    return Setting(CalibratedGaussian(queries, _EPSILON, _DELTA, step=_FINE), rand(), Largest(queries(rand())))


def _most_queries(rows: int, error: float) -> int:
    """Largest k at which an answer is off by more than `error` with probability at most 1/2."""
    return capacity(
        lambda k: CountingQueries(ThresholdCounts("mdvis", (1.0,) * k), rows, _EPSILON, _DELTA).miss(error) <= 0.5
    )
