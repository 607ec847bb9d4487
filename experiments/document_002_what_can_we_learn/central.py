"""Document 002, introduction: statistical queries answered centrally, and what a local protocol needs for the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.audits.accuracy import Exactly, Figure, Largest, Setting, Smallest
from auditor.claims import Draft, Source, accuracy, entry, reference, scaling, smallest
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE, person, rand, replaced
from mechanisms.local_model.central_simulation import CentralQueries, FreshSample, rows_needed
from mechanisms.local_model.fresh_users import FreshUsers, users_needed
from mechanisms.local_model.local_query import ScaledColumn
from mechanisms.query_release.counting_queries import advanced_epsilon

FloatArray = NDArray[np.float64]
#: From a number of queries and a tolerance to what is measured at a sample size, and to the sample size of the theorem.
Build = Callable[[int, float], Callable[[int], Setting]]
Bound = Callable[[int, float], int]

_CLAIM = PureDP(1.0)
#: Four queries about a person, with values from -1 to 1.
_QUERIES = (
    ScaledColumn("mdvis", 0.0, 20.0),
    ScaledColumn("disea", 0.0, 50.0),
    ScaledColumn("physlm", 0.0, 1.0),
    ScaledColumn("hlthp", 0.0, 1.0),
)
_LOWEST = {"mdvis": 0, "disea": 0, "physlm": 0, "hlthp": 0}
_HIGHEST = {"mdvis": 20, "disea": 50, "physlm": 1, "hlthp": 1}

#: Where sample sizes are measured: small enough that noise needs more rows than sampling does.
_EPSILON, _TAU, _BETA = 0.1, 0.1, 0.05
_TIMES = (1, 4, 16, 64)
_TAUS = (0.025, 0.05, 0.1, 0.2)
#: Many answers a draw; every point of a curve has an equal part.
_DRAWS = {"smoke": 20_000, "standard": 120_000}


@dataclass(frozen=True)
class LocalAnswers:
    """Answers of a local protocol in which each query has users of its own, drawn from a distribution.

    The data are the expectations of t queries with values -1 and 1, shape (t,), as for `FreshSample`.

    Parameters
    ----------
    users : int
        Users in all; a t-th of them, rounded down, answers each query.
    epsilon : float
        Level of each user's message.
    """

    users: int
    epsilon: float

    def __call__(self, data: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` times all answers; float64 of shape (n, t)."""
        truth = np.broadcast_to(np.asarray(data, dtype=np.float64), (n, len(data)))
        return FreshUsers(self.epsilon, max(1, self.users // len(data)))(truth, 1.0, rng)


def _central_setting(queries: int, tau: float) -> Callable[[int], Setting]:
    """From a number of rows to the answers, off by more than the tolerance or not."""
    nothing = np.zeros(queries)
    return lambda rows: Setting(FreshSample(rows, _EPSILON), nothing, Largest(nothing), tau)


def _local_setting(queries: int, tau: float) -> Callable[[int], Setting]:
    nothing = np.zeros(queries)
    return lambda users: Setting(LocalAnswers(users, _EPSILON), nothing, Largest(nothing), tau)


def _local_bound(queries: int, tau: float) -> int:
    """Theorem 5.7 with the catalogue's constants: each query fails with probability at most beta / t."""
    return queries * users_needed(_EPSILON, tau, _BETA / queries)


def _central_bound(queries: int, tau: float) -> int:
    return rows_needed(queries, _EPSILON, tau, _BETA)


@cache
def _first_rows(rows: int) -> pd.DataFrame:
    return rand().head(rows)


def _truth(data: pd.DataFrame) -> FloatArray:
    return np.array([query(data).mean() for query in _QUERIES])


@entry(
    "002/central_sq_simulation",
    title="Statistical queries answered centrally",
    source=Source("002", "Introduction (mention)"),
)
def central() -> Iterator[Draft]:
    """Four means over 20,190 persons; one person moves all of them by as much as one can.

    The document only mentions that averages are answered with error O(1/n), and that simulating t queries takes about
    sqrt(t)/eps times the data. Under pure privacy with a noise for each answer it is t/eps, which is what is claimed
    here; the root is that of (eps, delta) and advanced composition, and is shown to hold there.
    """
    mechanism = CentralQueries(_QUERIES, len(rand()), 1.0)
    pair = replaced("a person goes from the lowest values to the highest", person(**_LOWEST), person(**_HIGHEST))
    one = CentralQueries(_QUERIES[:1], len(rand()), 1.0)
    for case, answered in (("four_queries", mechanism), ("one_query", one)):
        draws, half = {"smoke": 100_000}, {"draws": {"smoke": 50_000}}
        yield from reference(answered, _CLAIM, pair, case=case, relation=REPLACE, draws=draws, follows=half)
    yield from _errors(mechanism)
    yield from _sizes()
    yield from _exponents()


def _errors(mechanism: CentralQueries) -> Iterator[Draft]:
    """The noise alone, on the persons of the data."""
    # Values are rounded to a lattice, which moves a mean by at most half a step.
    rounding = mechanism.step / 2.0
    yield accuracy(
        mechanism,
        rand(),
        Largest(_truth(rand())),
        at_most=mechanism.reach(_BETA) + rounding,
        beta=_BETA,
        case="noise_of_four_queries",
        derived=True,
        note="all answers within (2 b t / (n eps)) ln(t / beta)",
    )
    at = (64, 256, 1024, 4096, 16_384)
    step = 2.0**-20  # a lattice much finer than the noise of 16,384 rows

    def of_rows(n: float) -> Setting:
        data = _first_rows(int(n))
        return Setting(CentralQueries(_QUERIES, int(n), 1.0, step), data, Largest(_truth(data)))

    yield scaling(
        of_rows,
        parameter="n",
        at=at,
        exponent=-1.0,
        others=(-0.5, -2.0),
        both=True,
        case="error_and_rows",
        note="an error of O(1/n) for each average",
    )


def _sizes() -> Iterator[Draft]:
    """The sample size, at which all answers are to be within the tolerance."""
    for queries in (1, 16):
        nothing, rows = np.zeros(queries), _central_bound(queries, _TAU)
        fresh = FreshSample(rows, _EPSILON)
        yield accuracy(
            fresh,
            nothing,
            Largest(nothing),
            at_most=_TAU,
            beta=_BETA,
            exact=fresh.miss(nothing, _TAU),
            case=f"{queries}_answers",
            draws=_DRAWS,
            derived=True,
            parameters={"t": queries, "n": rows, "tau": _TAU, "eps": _EPSILON},
        )
    yield smallest(
        _central_setting(16, _TAU),
        parameter="n",
        claimed=_central_bound(16, _TAU),
        beta=_BETA,
        low=_central_bound(16, _TAU) / 16,
        case="16_answers_smallest",
        draws=_DRAWS,
        derived=True,
    )


def _figure(axis: str, curve: str) -> Figure:
    return Figure(f"Answering statistical queries locally and centrally, by {axis}", curve, axis, "least sample size")


def _curves(
    case: str, built: Build, bound: Bound, curve: str, per_query: float, by_tolerance: float
) -> Iterator[Draft]:
    """Sample sizes that work, by the number of queries and by the tolerance of four queries."""
    yield scaling(
        lambda t: built(int(t), _TAU),
        parameter="t",
        at=_TIMES,
        exponent=1.0,
        criterion=False,
        log_factor=lambda t: math.log(per_query * t / _BETA),
        measure=Smallest(_BETA, low=bound(1, _TAU) / 40, high=1.5 * bound(_TIMES[-1], _TAU)),
        curve=lambda t: bound(int(t), _TAU),
        figure=_figure("number of queries", curve),
        case=f"{case}_samples_by_queries",
        draws=_DRAWS,
        derived=True,
    )
    yield scaling(
        lambda tau: built(4, tau),
        parameter="tau",
        at=_TAUS,
        exponent=by_tolerance,
        criterion=False,
        measure=Smallest(_BETA, low=bound(4, _TAUS[-1]) / 40, high=1.5 * bound(4, _TAUS[0])),
        curve=lambda tau: bound(4, tau),
        figure=_figure("tolerance", curve),
        case=f"{case}_samples_by_tolerance",
        draws=_DRAWS,
        derived=True,
        note="four queries",
    )


def _exponents() -> Iterator[Draft]:
    """Sample sizes that work: t/(eps tau) + 1/tau^2 rows centrally, t/(eps^2 tau^2) users locally, up to logarithms."""
    yield from _curves("central", _central_setting, _central_bound, "one data set, eps/t an answer", 2.0, -1.0)
    yield from _curves("local", _local_setting, _local_bound, "local, users of its own for each query", 4.0, -2.0)
    times, delta = (16, 64, 256, 1024, 4096), 1e-5
    yield scaling(
        lambda t: math.log(t / _BETA) / advanced_epsilon(_EPSILON, int(t), delta),
        parameter="t",
        at=times,
        exponent=0.5,
        others=(0.0, 1.0),
        both=True,
        log_factor=lambda t: math.log(t / _BETA),
        measure=Exactly(
            "rows that t answers take with (eps, delta)-DP and advanced composition, times tau / 2 b", formula=True
        ),
        case="root_of_t_with_delta",
        note="the factor sqrt(t)/eps that the introduction quotes: of the cited analysis, which is not pure",
    )
