"""Document 002, section 5.1.1: one statistical query answered by a local protocol.

Privacy is about messages: the claims audit what one user sends, what several send, and the answer, which is a mean of
messages and hides what is wrong with them (`_log_ratio_rows`). Accuracy is about users from a distribution: for a query
with two values only its expectation matters, and at 0 the variance is largest. Lemma 5.6 has no range of epsilon, and
an open constant: as printed it is claimed at the constant that is enough up to epsilon = 1, and, as no constant would
do, at a hundred times that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditor.audits.accuracy import Smallest
from auditor.audits.accuracy.measures import Effort, Measure, Point
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    broken,
    conformity,
    deviating,
    entry,
    inequality,
    mutant,
    privacy,
    reference,
    scaling,
    smallest,
)
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE, visits
from experiments.document_002_what_can_we_learn._local import (
    BETA,
    E9,
    EPSILON,
    exponent_of,
    large_epsilon,
    misses,
    setting,
    within,
)
from mechanisms.local_model.fresh_users import typical_users, users_needed
from mechanisms.local_model.local_query import (
    MUTANTS,
    CountOfHigh,
    MeanOfMessages,
    ScaledColumn,
    UserMessages,
    UserQueriedTwice,
)
from mechanisms.statistical_queries.tails import laplace_sum_tail

FloatArray = NDArray[np.float64]

_CLAIM = PureDP(EPSILON)

# ---------------------------------------------------------------------------- messages (5.6)

#: Visits to a doctor from 0 to 20, mapped onto -1 to 1; more count as 20.
_VISITS = ScaledColumn("mdvis", 0.0, 20.0)
#: A position among the first, arbitrary.
_USER = 3


def _log_ratio_rows() -> list[Row]:
    """Best log-ratio of an event "the mean is at least x" of probability 0.01 on both sides, of half the noise."""
    rows = []
    for users in (5, 20):
        # In units of a noise scale one user moves the sum by 2 epsilon; points are 1/64 apart.
        tail = np.array([_tail_above(users, k / 64) for k in range(-64 * 8 * users, 64 * 8 * users)])
        moved = round(64 * 2 * EPSILON)
        less, more = tail[moved:], tail[:-moved]
        seen = np.log(more[less >= 0.01] / less[less >= 0.01]).max()
        rows.append((f"mean of {users}", float(seen), {5: 2 * EPSILON, 20: EPSILON}[users]))
    return rows


def _tail_above(terms: int, x: float) -> float:
    tail = laplace_sum_tail(terms, abs(x)) / 2
    return tail if x >= 0 else 1 - tail


@entry(
    "002/local_sq_query",
    title="One statistical query from noisy messages",
    source=Source("002", "section 5.1.1, Lemma 5.6"),
    errata=[E9],
)
def query() -> Iterator[Draft]:
    """The number of visits of every person; one person goes from none to twenty, from -b to b."""
    pair = visits(0, 20, _USER)
    message = UserMessages(_VISITS, EPSILON, _USER)
    yield from reference(message, _CLAIM, pair, case="message", relation=REPLACE)
    five = UserMessages(_VISITS, EPSILON, tuple(range(5)))
    fewer = {"smoke": 100_000, "standard": 500_000}
    yield from reference(five, _CLAIM, pair, case="five_messages", relation=REPLACE, draws=fewer)
    yield privacy(
        MeanOfMessages(_VISITS, EPSILON, 5),
        _CLAIM,
        pair,
        case="mean_of_five",
        relation=REPLACE,
        exact_level=EPSILON,
        note="the level is that of the far tail; likely events show less of it",
    )
    yield inequality(
        _log_ratio_rows,
        statement="half the noise, so level 2 epsilon: events of probability 0.01 show less on the mean of 5, and no "
        "more than epsilon, which is claimed, on the mean of 20",
        case="means_hide_messages",
        derived=True,
    )
    yield from _message_mutants(message, pair)
    yield from _query_accuracy()
    yield from large_epsilon(0.05, 1)
    yield from _query_exponents()


def _message_mutants(message: UserMessages, pair: Pair) -> Iterator[Draft]:
    for name in ("half_scale", "std_as_scale", "central_noise", "overwide_b"):
        yield broken(MUTANTS[name], message, pair, relation=REPLACE)
    for name in ("half_scale", "std_as_scale", "central_noise", "overwide_b"):
        yield deviating(MUTANTS[name], message, pair)
    # Of the two messages only what tells: how many of them are high.
    twice = CountOfHigh(UserQueriedTwice(_VISITS, EPSILON, _USER), _VISITS.bound)
    name = "user_queried_twice"
    yield mutant(name, twice, _CLAIM, pair, relation=REPLACE, note=MUTANTS[name].note)
    two = UserMessages(_VISITS, EPSILON, (_USER - 1, _USER))
    shared = MUTANTS["shared_noise"]
    yield broken(shared, two, pair, relation=REPLACE)
    # What one user sends does not show it.
    yield conformity(shared.build(message), pair, reference=message, case="shared_noise_in_one_message")
    yield broken(MUTANTS["no_clipping"], message, visits(0, 77, _USER), relation=REPLACE)


def _query_accuracy() -> Iterator[Draft]:
    for epsilon, tolerance in ((0.25, 0.1), (1.0, 0.05), (4.0, 0.05)):
        case = f"bound_epsilon_{epsilon:g}".replace(".", "_")
        yield within(case, epsilon, tolerance, users_needed(epsilon, tolerance, BETA))
    claimed = users_needed(EPSILON, 0.05, BETA)
    yield smallest(
        lambda users: setting(users, EPSILON, 0.05),
        parameter="users",
        claimed=claimed,
        beta=BETA,
        low=claimed / 32,
        case="smallest_sample",
        draws={"smoke": 20_000, "standard": 100_000},
        derived=True,
    )
    size = math.ceil(typical_users(EPSILON, 0.05, BETA))
    yield inequality(
        lambda: [
            (f"epsilon = {e:g}", misses(e, math.ceil(typical_users(e, 0.05, BETA)), 0.05), BETA)
            for e in (0.1, 1.0, 2.0, 10.0)
        ],
        statement="at n = z^2 (b^2 + 8 b^2/epsilon^2)/tau^2 the failure rate is beta, within 1 %",
        relation="==",
        level="L4",
        tolerance=0.01,
        case="typical_sample",
        derived=True,
        parameters={"tau": 0.05, "users at epsilon = 1": size},
    )


def _query_exponents() -> Iterator[Draft]:
    yield exponent_of(
        "users_by_tolerance",
        "tau",
        (0.02, 0.04, 0.08, 0.16),
        -2.0,
        (-1.0, -1.5),
        lambda tau: lambda users: setting(users, EPSILON, tau),
        lambda tau: users_needed(EPSILON, tau, BETA),
    )
    yield exponent_of(
        "users_by_epsilon",
        "epsilon",
        (0.05, 0.1, 0.2, 0.4),
        -2.0,
        (-1.0, -1.5),
        lambda epsilon: lambda users: setting(users, epsilon, 0.1),
        lambda epsilon: users_needed(epsilon, 0.1, BETA),
    )
    yield exponent_of(
        "users_by_large_epsilon",
        "epsilon",
        (16.0, 32.0, 64.0),
        0.0,
        (-1.0, -2.0),
        lambda epsilon: lambda users: setting(users, epsilon, 0.1),
        lambda epsilon: users_needed(epsilon, 0.1, BETA),
        note="beyond epsilon = 3 the sample is what matters, and the noise is not",
    )
    yield exponent_of(
        "users_by_bound",
        "b",
        (0.5, 1.0, 2.0, 4.0),
        2.0,
        (1.0, 1.5),
        lambda b: lambda users: setting(users, EPSILON, 0.1, bound=b),
        lambda b: users_needed(EPSILON, 0.1, BETA, b),
    )
    yield scaling(
        lambda log: (math.exp(-log), lambda users: setting(users, EPSILON, 0.1)),
        parameter="ln(1/beta)",
        at=tuple(math.log(1 / beta) for beta in (0.2, 0.05, 0.02, 0.005)),
        exponent=1.0,
        others=(0.5, 2.0),
        log_factor=_normal_factor,
        measure=_SmallestAt(100.0, users_needed(EPSILON, 0.1, 0.005)),
        curve=lambda log: users_needed(EPSILON, 0.1, math.exp(-log)),
        case="users_by_confidence",
        draws={"smoke": 160_000, "standard": 800_000},
        derived=True,
        note="divided by z^2 / (2 ln(1/beta)), z the two-sided normal quantile of beta: it goes to 1 as beta goes to 0",
    )


@dataclass(frozen=True)
class _SmallestAt(Measure):
    """`Smallest` where the subject names its own beta: a pair of beta and what `Smallest` takes."""

    low: float
    high: float

    def __call__(self, subject: Any, effort: Effort) -> Point:
        """Bisect over the number of users."""
        beta, build = subject
        return Smallest(beta, self.low, self.high)(build, effort)

    def __str__(self) -> str:
        return "smallest value that works"


def _normal_factor(log: float) -> float:
    """``z^2 / (2 ln(1/beta))``, the lower-order part of the growth of a normal quantile."""
    return float(stats.norm.isf(math.exp(-log) / 2)) ** 2 / (2 * log)
