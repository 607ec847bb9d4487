"""Document 001, section 12.3: how many counting queries can be answered."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache

import pandas as pd

from auditor.audits.accuracy import Exactly, Largest, Setting, Smallest
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    conformity,
    entry,
    exact,
    inequality,
    reference,
    scaling,
    smallest,
)
from auditor.privacy.guarantees import ApproxDP, PureDP
from auditor.privacy.laws import DiscreteGaussianLaw
from experiments._errors import FirstAnswerError
from experiments.common import REPLACE, rand, visits
from mechanisms.additive_noise.gaussian import CalibratedGaussian
from mechanisms.query_release.counting_queries import (
    CountingQueries,
    ThresholdCounts,
    capacity,
    spread_cuts,
    stated_capacity,
)

#: The constants of the example in the catalogue; the document only says that they are constants.
_EPSILON, _ERROR, _BETA = 1.0, 0.1, 0.05
#: For the mechanisms that need a delta; arbitrary, and less than 1/n.
_DELTA = 1e-5
_EXAMPLE = 10_000
_ROWS = (1250.0, 2500.0, 5000.0, 10_000.0, 20_000.0)


@cache
def _first_rows(rows: int) -> pd.DataFrame:
    return rand().head(rows)


def _queries(k: int) -> ThresholdCounts:
    return spread_cuts("mdvis", 0.0, 75.0, k)


def _one_answer_setting(rows: int, delta: float = 0.0) -> Callable[[int], Setting]:
    """From k to the error of one of k answers."""

    def build(k: int) -> Setting:
        truth = float(_queries(k)(_first_rows(rows))[0]) / rows
        return Setting(
            CountingQueries(_queries(k), rows, _EPSILON, delta), _first_rows(rows), FirstAnswerError(truth), _ERROR
        )

    return build


def _all_answers_setting(rows: int) -> Callable[[int], Setting]:
    """From k to the largest error of k answers."""

    def build(k: int) -> Setting:
        truth = _queries(k)(_first_rows(rows)) / rows
        return Setting(CountingQueries(_queries(k), rows, _EPSILON), _first_rows(rows), Largest(truth), _ERROR)

    return build


def _laplace_capacity(rows: int, delta: float, *, together: bool) -> int:
    def works(k: int) -> bool:
        mechanism = CountingQueries(ThresholdCounts("mdvis", (1.0,) * k), rows, _EPSILON, delta)
        return (mechanism.miss_any(_ERROR) if together else mechanism.miss(_ERROR)) <= _BETA

    return capacity(works)


def _gaussian_capacity(rows: int) -> int:
    def works(k: int) -> bool:
        same = ThresholdCounts("mdvis", (1.0,) * k)
        sigma = CalibratedGaussian(same, _EPSILON, _DELTA, step=1.0).sigma(k)
        beyond = math.floor(_ERROR * rows) + 1
        return 2.0 * float(DiscreteGaussianLaw(0, sigma).cdf(-beyond)) <= _BETA

    return capacity(works)


@entry(
    "001/laplace_query_capacity",
    title="How many counting queries pure privacy can answer",
    source=Source("001", "section 12.3, opening"),
)
def laplace_query_capacity() -> Iterator[Draft]:
    """As many counts as can all be answered on the whole of the data to within 0.1 with probability 0.95.

    The text says k = O(n) and leaves open whether each answer is to be accurate, or all of them at once. For each one
    k <= alpha eps n / ln(1/beta); for all at once k ln(k/beta) <= alpha eps n, which is O(n / log n).
    """
    whole = len(rand())
    k = stated_capacity(_EPSILON, whole, _ERROR, _BETA, together=True)
    mechanism, pair = CountingQueries(_queries(k), whole, _EPSILON), visits(0, 77)
    budget, note = {"smoke": 40_000, "standard": 60_000}, f"{k} counts, all of which move"
    yield from reference(
        mechanism, PureDP(_EPSILON), pair, case="all_counts", relation=REPLACE, draws=budget, follows=False, note=note
    )
    few = CountingQueries(_queries(10), whole, _EPSILON)
    yield conformity(few, pair, case="ten_counts", draws={"smoke": 40_000, "standard": 400_000})
    several = CountingQueries(_queries(k), whole, _EPSILON, _DELTA)
    yield exact(several, ApproxDP(_EPSILON, _DELTA), pair, case="all_counts_advanced", relation=REPLACE)
    yield from _accuracy()
    yield from _exponents()


def _accuracy() -> Iterator[Draft]:
    few = {"smoke": 4_000, "standard": 20_000}
    for case, together, build in (
        ("one_answer", False, _one_answer_setting(_EXAMPLE)),
        ("all_answers", True, _all_answers_setting(_EXAMPLE)),
    ):
        k = stated_capacity(_EPSILON, _EXAMPLE, _ERROR, _BETA, together=together)
        setting = build(k)
        built = CountingQueries(_queries(k), _EXAMPLE, _EPSILON)
        yield accuracy(
            built,
            setting.data,
            setting.error,
            at_most=_ERROR,
            beta=_BETA,
            exact=built.miss_any(_ERROR) if together else built.miss(_ERROR),
            case=case,
            draws=few,
            derived=True,
            parameters={"k": k, "n": _EXAMPLE},
        )
        yield smallest(
            build,
            parameter="k",
            claimed=k,
            beta=_BETA,
            low=k // 8,
            high=4 * k,
            largest=True,
            case=f"most_queries_{case}",
            draws={"smoke": 8_000, "standard": 60_000},
            derived=True,
        )
    yield inequality(
        _capacities,
        statement="the formulas' capacity is one at which the lattice mechanism's exact failure rate is at most beta",
        level="L4",
        case="stated_capacities",
        derived=True,
    )


def _capacities() -> list[Row]:
    rows: list[Row] = []
    for n in (1000, *map(int, _ROWS)):
        for together, words in ((False, "each"), (True, "all at once")):
            stated = stated_capacity(_EPSILON, n, _ERROR, _BETA, together=together)
            rows.append((f"n = {n}, {words}", float(stated), float(_laplace_capacity(n, 0.0, together=together))))
    return rows


def _exponents() -> Iterator[Draft]:
    yield scaling(
        lambda rows: _laplace_capacity(int(rows), 0.0, together=False),
        parameter="n",
        at=_ROWS,
        exponent=1.0,
        others=(0.5, 2.0),
        measure=Exactly("most queries, each accurate"),
        benefit=True,
        curve=lambda rows: stated_capacity(_EPSILON, int(rows), _ERROR, _BETA, together=False),
        case="capacity_one_answer",
        derived=True,
    )
    yield scaling(
        lambda rows: _all_answers_setting(int(rows)),
        parameter="n",
        at=_ROWS,
        exponent=1.0,
        others=(0.5, 2.0),
        log_factor=lambda rows: 1.0 / math.log(rows),
        measure=Smallest(_BETA, low=4.0, high=1024.0, largest=True),
        benefit=True,
        curve=lambda rows: stated_capacity(_EPSILON, int(rows), _ERROR, _BETA, together=True),
        case="capacity_all_answers",
        draws={"smoke": 40_000, "standard": 200_000},
        derived=True,
    )
    for name, exactly in (
        ("advanced_composition", lambda rows: _laplace_capacity(int(rows), _DELTA, together=False)),
        ("gaussian", lambda rows: _gaussian_capacity(int(rows))),
    ):
        yield scaling(
            exactly,
            parameter="n",
            at=_ROWS,
            exponent=2.0,
            others=(1.0,),
            measure=Exactly("most queries, each accurate"),
            benefit=True,
            case=f"capacity_{name}",
            derived=True,
            note="(1, 1e-5)-DP: as many as n^2",
        )
    most = _laplace_capacity(2000, _DELTA, together=False)
    yield smallest(
        _one_answer_setting(2000, _DELTA),
        parameter="k",
        claimed=most,
        beta=_BETA,
        low=most // 8,
        high=4 * most,
        largest=True,
        case="most_queries_advanced_composition",
        draws={"smoke": 8_000, "standard": 60_000},
        derived=True,
    )
