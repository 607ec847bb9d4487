"""Document 003, section 8.1: all disjunctions of at most t attributes from the coefficients of a polynomial."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from auditor.audits.accuracy import Exactly, Figure
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken,
    conformity,
    deviating,
    entry,
    expectation,
    inequality,
    reference,
    scaling,
)
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE, rand, replaced
from experiments.document_003_bellairs_lectures.marginals import (
    HEALTH,
    NOBODY,
    TEN,
    TWENTY,
    TWO,
    complementary,
    fair_and_poor,
)
from mechanisms.additive_noise.gaussian import analytic_mu
from mechanisms.base.mechanism import FloatArray
from mechanisms.query_release.counting_queries import advanced_epsilon
from mechanisms.query_release.disjunction_mutants import MUTANTS
from mechanisms.query_release.disjunctions import (
    DisjunctionSummary,
    degree_of,
    l1_sensitivity,
    l2_sensitivity,
    polynomial,
    terms,
    value_at,
)
from mechanisms.query_release.marginals import BinaryAttributes

_N = len(rand())
_EPSILON = 1.0
_ALPHA = Fraction(1, 10)
#: The catalogue's polynomial: t = 4, of degree 3. With 16 lattice steps in the coefficients' common unit.
_TEN = DisjunctionSummary(TEN, 4, _ALPHA, _N, _EPSILON, 16)
_TWENTY = DisjunctionSummary(TWENTY, 4, _ALPHA, _N, _EPSILON)
#: Limitation, and health rated good, fair or poor: 14 coefficients.
_FOUR = DisjunctionSummary(BinaryAttributes((("physlm", 0.5), *HEALTH.cuts)), 4, _ALPHA, _N, _EPSILON, 16)

#: An output is 175 numbers.
_FEWER = {"smoke": 4_000, "standard": 20_000}
_SOME = {"smoke": 10_000, "standard": 200_000}
#: delta of the catalogue's comparison.
_DELTA = 1e-6


def _visits_and_coinsurance() -> Pair:
    """Two attributes and three coefficients move: of either, and of both."""
    both = {**NOBODY, "mdvis": 77.0, "lncoins": float(rand()["lncoins"].max())}
    return replaced("person 0 has none of the attributes, against visits and coinsurance", NOBODY, both)


def _one_for_another() -> Pair:
    """One coefficient falls and another rises."""
    visits = {**NOBODY, "mdvis": 77.0}
    coinsured = {**NOBODY, "lncoins": float(rand()["lncoins"].max())}
    return replaced("person 0 has visits and no coinsurance, against coinsurance and no visits", visits, coinsured)


@dataclass(frozen=True)
class _Error:
    """Error of the answer to one disjunction; about the truth, or about what there would be without noise."""

    mechanism: Any
    query: tuple[int, ...]
    about: float
    power: int = 1

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n summaries, to the power, shape (n,)."""
        error: FloatArray = abs(self.mechanism.answer(outputs, self.query) - self.about) ** self.power
        return error


def _noise(mechanism: Any, query: tuple[int, ...]) -> _Error:
    return _Error(mechanism, query, mechanism.noiseless(rand(), query), 2)


@entry(
    "003/chebyshev_disjunction_summary",
    title="Disjunctions from a noisy polynomial",
    source=Source("003", "section 8.1, Fact 8.1.1"),
)
def disjunctions() -> Iterator[Draft]:
    """Disjunctions of at most four attributes, from a polynomial of degree 3 in the indicators of a query.

    The document states O(.) and d^O(sqrt t); the polynomial, its degree and the noise are derived. In the copy we have,
    the summary is to "add error to" f_x, where it approximates it, and (8.4) is stated for all x and y: it holds for y
    with at most t ones, and far from it beyond (J9e, slips).

    A mutant that the catalogue gives no level for: noise on the coefficients of g in powers of m. One row with all
    attributes against one with none moves it by at most eps; a row whose attribute becomes another one changes the
    difference of two coefficients that have the same noise, which no level allows. Both are claimed.
    """
    claimed = PureDP(_EPSILON)
    pairs = [complementary(), _visits_and_coinsurance()]
    draws = {"smoke": 70_000, "standard": 70_000}
    yield from reference(_TEN, claimed, pairs, case="ten_attributes", relation=REPLACE, draws=draws, follows=False)
    yield conformity(_FOUR, rand(), case="four_attributes", draws={"smoke": 14_000, "standard": 200_000})
    yield from _mutants()
    yield from _polynomials()
    yield from _accuracy()
    yield from _sizes()


def _mutants() -> Iterator[Draft]:
    one, wrong = MUTANTS["noise_of_one_coefficient"], MUTANTS["wrong_d_in_binomial"]
    # Two attributes, three coefficients: together they move by 2.85 times the largest of all.
    four = replace(_FOUR, epsilon=2.0)
    yield broken(one, four, fair_and_poor(), relation=REPLACE, draws=_SOME)
    # Noise for one attribute and there are two: three coefficients of 1 move.
    two = DisjunctionSummary(TWO, 2, _ALPHA, _N, 2.0, 64)
    yield broken(wrong, two, fair_and_poor(), relation=REPLACE, draws=_SOME)
    univariate = MUTANTS["power_basis_noise"]
    yield deviating(univariate, _FOUR, rand(), draws={"smoke": 2_000, "standard": 20_000})
    # On rows 1^d against 0^d the sum of all noise protects: what moves has the shape of the noise.
    yield broken(univariate, _TEN, _one_for_another(), relation=REPLACE, draws=_FEWER)
    long, constant = MUTANTS["long_queries_answered"], MUTANTS["constant_term_noised"]
    any_length = long.build(_TEN)
    query = tuple(range(len(TEN)))
    yield accuracy(
        any_length,
        rand(),
        _Error(any_length, query, _TEN.truth(rand(), query)),
        at_most=_TEN.answer_bound(_TEN.t, 0.05),
        beta=0.05,
        case="long_queries_answered",
        expected="deviation",
        is_mutant=True,
        draws={"smoke": 200, "standard": 1_000},
        note=long.note,
    )
    noisy = constant.build(_TEN)
    yield expectation(
        noisy,
        rand(),
        _noise(noisy, (0,)),
        at_most=2.0 * _TEN.scale**2,
        case="constant_term_noised",
        expected="deviation",
        is_mutant=True,
        draws={"smoke": 2_000, "standard": 10_000},
        note=constant.note,
    )


# ------------------------------------------------------------------------------------- polynomial


def _polynomials() -> Iterator[Draft]:
    yield inequality(
        _approximation,
        statement="|g(i) - 1| <= alpha for i = 1 .. t, and g(0) = 0",
        level="L4",
        case="approximation",
        derived=True,
        note="exact rationals",
    )
    yield inequality(
        lambda: [(f"t = {t}", degree_of(t, _ALPHA), r) for t, r in ((4, 3), (9, 5), (16, 6), (25, 8))],
        statement="the degree for alpha = 0.1 and t = 4, 9, 16, 25 is 3, 5, 6, 8",
        relation="==",
        level="L4",
        case="degrees",
        derived=True,
    )
    yield inequality(
        _degrees,
        statement="r <= (sqrt(t)/2) ln(2/alpha) + 1",
        level="L4",
        case="bound_on_the_degree",
        derived=True,
    )
    yield inequality(
        _coefficients,
        statement="no coefficient is above 1 in absolute value, for alpha >= 0.03 and t <= 30",
        level="L4",
        # Equality where r = t.
        case="coefficients_of_at_most_1",
        derived=True,
        note="the noise d^O(sqrt t) comes from the number of the coefficients alone",
    )
    yield scaling(
        lambda t: degree_of(int(t), _ALPHA),
        parameter="t",
        at=(100.0, 400.0, 1600.0, 6400.0),
        exponent=0.5,
        others=(1.0,),
        measure=Exactly("degree r", formula=True),
        curve=lambda t: math.sqrt(t) / 2.0 * math.log(2.0 / float(_ALPHA)) + 1.0,
        case="degree_by_t",
        note="rounding to an integer is felt below t = 100",
    )


def _approximation() -> list[Row]:
    rows: list[Row] = []
    for t in (1, 2, 4, 9, 16, 25, 30):
        for alpha in (Fraction(1, 2), _ALPHA, Fraction(3, 100), Fraction(1, 1000)):
            g = polynomial(t, alpha)
            worst = max(abs(value_at(g, i) - 1) for i in range(1, t + 1))
            rows += [
                (f"t = {t}, alpha = {float(alpha):g}", float(worst), float(alpha)),
                (f"t = {t}, at 0", float(value_at(g, 0)), 0.0),
            ]
    return rows


def _degrees() -> list[Row]:
    return [
        (
            f"t = {t}, alpha = {float(alpha):g}",
            degree_of(t, alpha),
            math.sqrt(t) / 2.0 * math.log(2.0 / float(alpha)) + 1.0,
        )
        for t in (1, 2, 3, 4, 9, 25, 100, 1000, 10_000)
        for alpha in (Fraction(1, 2), _ALPHA, Fraction(1, 100), Fraction(1, 1000))
    ]


def _coefficients() -> list[Row]:
    return [
        (f"t = {t}, alpha = {float(alpha):g}", float(max(map(abs, polynomial(t, alpha)))), 1.0)
        for t in range(1, 31)
        for alpha in (Fraction(3, 100), _ALPHA, Fraction(3, 10))
    ]


# --------------------------------------------------------------------------------------- accuracy


def _accuracy() -> Iterator[Draft]:
    #: Visits, coinsurance, limitation and poor health.
    query, beta = (0, 1, 5, 9), 0.05
    yield accuracy(
        _TEN,
        rand(),
        _Error(_TEN, query, _TEN.truth(rand(), query)),
        at_most=_TEN.answer_bound(len(query), beta),
        beta=beta,
        case="ten_attributes",
        # Enough for a failure rate of 5 % to be excluded where one occurs or two do.
        draws={"smoke": 800, "standard": 4_000},
        derived=True,
        note="alpha, and the noise of the 14 coefficients that are added up; at twenty attributes the bound is 0.68, "
        "which says little of a share",
    )
    for name, asked in (("one", (0,)), ("four", query)):
        yield expectation(
            _TEN,
            rand(),
            _noise(_TEN, asked),
            at_most=2.0 * _TEN.scale**2 * terms(_TEN.degree, len(asked)),
            exact=_TEN.answer_variance(len(asked)),
            case=f"noise_of_{name}_attribute{'s' if len(asked) > 1 else ''}",
            draws={"smoke": 1_500, "standard": 15_000},
            derived=True,
            note="(D1/eps)^2 times twice the number of coefficients that are added up",
        )


# ------------------------------------------------------------------------------------------ sizes


def _summary_rows(d: int, t: int, *, gaussian: bool = False) -> float:
    """Rows for a standard deviation of 0.1 of the answer to a query of t attributes, at eps = 1."""
    g = polynomial(t, _ALPHA)
    added = terms(len(g) - 1, t)
    if gaussian:
        return l2_sensitivity(g, d) / analytic_mu(_EPSILON, _DELTA) * math.sqrt(added) / 0.1
    return float(l1_sensitivity(g, d)) * math.sqrt(2.0 * added) / (_EPSILON * 0.1)


def _separate_rows(d: int, t: int, how: str) -> float:
    """The same with noise on the answer to each of the disjunctions of at most t attributes."""
    k = terms(t, d)
    if how == "pure":
        return math.sqrt(2.0) * k / (_EPSILON * 0.1)
    if how == "composed":
        return math.sqrt(2.0) / (advanced_epsilon(_EPSILON, k, _DELTA) * 0.1)
    return math.sqrt(k) / analytic_mu(_EPSILON, _DELTA) / 0.1


def _sizes() -> Iterator[Draft]:
    yield inequality(
        _practical_sizes,
        statement="rows for a standard deviation of 0.1 at eps = 1 (delta = 1e-6), as in the catalogue to its digits",
        relation="==",
        level="L4",
        # The catalogue gives two digits.
        tolerance=0.01,
        case="rows_at_laptop_sizes",
        derived=True,
    )
    yield inequality(
        lambda: [
            ("d = 20, t = 4: pure", _summary_rows(20, 4), _separate_rows(20, 4, "pure")),
            ("d = 30, t = 9: pure", _summary_rows(30, 9), _separate_rows(30, 9, "pure")),
            ("d = 30, t = 9: Gaussian", _summary_rows(30, 9, gaussian=True), _separate_rows(30, 9, "gaussian")),
            ("d = 20, t = 4: against composition", _separate_rows(20, 4, "composed"), _summary_rows(20, 4)),
            ("d = 30, t = 9: against composition", _separate_rows(30, 9, "composed"), _summary_rows(30, 9)),
        ],
        statement="the summary needs fewer rows than answers with noise of their own at the same kind of level, and "
        "more than these by advanced composition",
        relation="<",
        level="L4",
        case="where_the_summary_gains",
        derived=True,
    )
    for t in (4, 9):
        r = degree_of(t, _ALPHA)
        yield scaling(
            _Rows(_summary_rows, (t,)),
            parameter="d",
            at=(128.0, 256.0, 512.0, 1024.0),
            exponent=float(r),
            others=(r - 1.0, t / 2.0, float(t)) if t != 2 * r else (r - 1.0, float(t)),
            measure=Exactly("rows for a standard deviation of 0.1", formula=True),
            within=0.1,
            figure=_figure(t, f"summary, degree {r}"),
            case=f"rows_by_d_t_{t}",
            derived=True,
        )
        for how, exponent in (("pure", float(t)), ("composed", t / 2.0)):
            yield scaling(
                _Rows(_separate_rows, (t, how)),
                parameter="d",
                at=(128.0, 256.0, 512.0, 1024.0),
                exponent=exponent,
                others=(float(r),),
                measure=Exactly("rows for a standard deviation of 0.1", formula=True),
                # C(d, 9) is d^9/9! to 25 % at d = 128.
                within=0.2,
                figure=_figure(t, f"separate answers, {how}"),
                case=f"rows_of_separate_answers_{how}_t_{t}",
                derived=True,
            )


@dataclass(frozen=True)
class _Rows:
    """A number of rows by the number of attributes."""

    rows: Callable[..., float]
    options: tuple[Any, ...]

    def __call__(self, d: float) -> float:
        return self.rows(int(d), *self.options)


def _figure(t: int, curve: str) -> Figure:
    return Figure(f"Disjunctions of {t} attributes", curve, "attributes d", "rows")


def _practical_sizes() -> list[Row]:
    rows: list[Row] = []
    for d, t, summary, pure, composed in ((20, 4, 40.6e3, 87.6e3, 6.0e3), (30, 9, 8.1e6, 325e6, 363e3)):
        rows += [
            (f"d = {d}, t = {t}: summary", _summary_rows(d, t), summary),
            (f"d = {d}, t = {t}: separate answers, pure", _separate_rows(d, t, "pure"), pure),
            (f"d = {d}, t = {t}: separate answers, composed", _separate_rows(d, t, "composed"), composed),
        ]
    return rows
