"""Document 002, section 5.3: masked parity learned by local users in two rounds.

Privacy is audited per message and on the transcript of a few users, accuracy on users from the distribution at the
theorem's sizes. The document states those with O(.): constants are the catalogue's. How many users are needed is
measured for one concept a size, r with as many ones as zeros and a = 1; for others wrong answers are about as likely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from auditor.audits.accuracy import Setting, Smallest
from auditor.claims import Draft, Source, accuracy, component, conformity, entry, privacy, scaling, smallest
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE
from mechanisms.base.mechanism import IntArray
from mechanisms.local_model.local_query import UserMessages
from mechanisms.local_model.masked_parity import ErrorOfHypothesis, MaskedParityGame, all_concepts
from mechanisms.local_model.masked_parity_learner import TwoRoundParityLearner
from mechanisms.local_model.masked_parity_local import (
    CountsBit,
    CountsMismatch,
    ErrorOfBits,
    FreshTwoRounds,
    TwoRoundTranscript,
    first_users,
    fresh_oracles,
    half_ones,
    row,
    second_users,
    users_in_all,
)

_EPSILON, _BETA = 1.0, 0.1
_CLAIM = PureDP(_EPSILON)

#: Four bits; one user in each block of round 1, and two in round 2.
_D, _FIRST, _SECOND = 4, 1, 2
_ROUND_2 = _D * _FIRST


# ------------------------------------------------------------------------------------- pairs


def _users() -> IntArray:
    """Examples of the concept r = 0110, a = 1, one after the other: points 5, 22, 39, .. of 128."""
    r, a, d = 0b0110, 1, _D
    rows = []
    for k in range(_ROUND_2 + _SECOND):
        code = (5 + 17 * k) % ((2 * d) << d)
        x, i, b = code & 15, (code >> d) % d, (code >> d) // d
        minus = (r >> i) & 1 if b else ((r & x).bit_count() + a) & 1
        rows.append(row(d, x, i, b, 1 - 2 * minus))
    return np.array(rows, dtype=np.int64)


def _pair(name: str, position: int, first: tuple[int, int], second: tuple[int, int]) -> Pair:
    one, other = _users(), _users()
    one[position], other[position] = first, second
    return Pair(one, other, name)


def _pairs() -> list[Pair]:
    """Users whose label contradicts the others' in one dataset, and counts in one only."""
    return [
        _pair("the label of a user of round 1", 2, row(_D, 0, 2, 1, -1), row(_D, 0, 2, 1, 1)),
        _pair("the label of the last user of round 1", _ROUND_2 - 1, row(_D, 0, 3, 1, -1), row(_D, 0, 3, 1, 1)),
        _pair("the label of the first user of round 2", _ROUND_2, row(_D, 0, 0, 0, -1), row(_D, 0, 0, 0, 1)),
    ]


def _message_pairs() -> list[tuple[str, UserMessages, Pair]]:
    one, last, second = _pairs()
    return [
        ("message_of_round_1", UserMessages(CountsBit(_D, 2), _EPSILON, 2), one),
        ("message_of_round_2", UserMessages(CountsMismatch(_D, 0b0110), _EPSILON, _ROUND_2), second),
        ("message_at_a_border", UserMessages(CountsBit(_D, 3), _EPSILON, _ROUND_2 - 1), last),
    ]


# ---------------------------------------------------------------------------------- accuracy


def _per_query(d: int, epsilon: float = _EPSILON) -> Callable[[int], Setting]:
    """From users a query of round 1 to what is learned; round 2 has the users of the theorem."""
    target, second = half_ones(d), second_users(d, epsilon, _BETA)
    return lambda first: Setting(FreshTwoRounds(epsilon, first, second), target, ErrorOfBits(target), 0.0)


def _in_all(d: int, epsilon: float = _EPSILON) -> Callable[[int], Setting]:
    """From users in all to what is learned; both rounds have their share of them."""
    target, theirs = half_ones(d), users_in_all(d, epsilon, _BETA)

    def build(total: int) -> Setting:
        first = max(1, round(total * first_users(d, epsilon, _BETA) / theirs))
        mechanism = FreshTwoRounds(epsilon, first, max(1, total - d * first))
        return Setting(mechanism, target, ErrorOfBits(target), 0.0)

    return build


def _log_factor(d: float) -> float:
    """The theorem's ln(d / beta), as it enters: the squared normal quantile at which one of d bits is allowed to fail.

    It is 2 ln(d / beta) (1 + o(1)); at d = 4 to 64 the logarithm grows more slowly.
    """
    return float(stats.norm.isf(-np.expm1(np.log1p(-_BETA) / d)) ** 2)


_AT = (4, 16, 64)
_DRAWS = {"smoke": 30_000, "standard": 200_000}


@entry(
    "002/masked_parity_interactive_local",
    title="Masked parity learned by local users in two rounds",
    source=Source("002", "section 5.3.1, Theorem 5.16(1) with Theorem 5.7"),
)
def interactive_local() -> Iterator[Draft]:
    """A user sends one message, in whatever round, so transcripts cost what a message does: all of epsilon."""
    for case, message, pair in _message_pairs():
        yield component(message, _CLAIM, pair, case=case, relation=REPLACE)
        yield conformity(message, pair, case=case)
    yield privacy(
        TwoRoundTranscript(_D, _EPSILON, _FIRST, _SECOND),
        _CLAIM,
        _pairs(),
        case="transcript",
        relation=REPLACE,
        exact_level=_EPSILON,
    )
    eight = MaskedParityGame(
        TwoRoundParityLearner(8),
        fresh_oracles(_EPSILON, first_users(8, _EPSILON, _BETA), second_users(8, _EPSILON, _BETA)),
    )
    yield accuracy(
        eight,
        all_concepts(8),
        ErrorOfHypothesis(8),
        at_most=0,
        beta=_BETA,
        case="every_concept",
        draws={"smoke": 1_000, "standard": 20_000},
        derived=True,
        parameters={"d": 8, "epsilon": _EPSILON, "users": users_in_all(8, _EPSILON, _BETA)},
        note="a concept drawn uniformly, its examples labelled by it: learned without error",
        controls={
            "a 64th of the users": MaskedParityGame(
                TwoRoundParityLearner(8),
                fresh_oracles(_EPSILON, first_users(8, _EPSILON, _BETA) // 64, second_users(8, _EPSILON, _BETA) // 64),
            )
        },
    )
    many = half_ones(64)
    yield accuracy(
        FreshTwoRounds(_EPSILON, first_users(64, _EPSILON, _BETA), second_users(64, _EPSILON, _BETA)),
        many,
        ErrorOfBits(many),
        at_most=0,
        beta=_BETA,
        case="sixty_four_bits",
        draws={"smoke": 1_000, "standard": 20_000},
        derived=True,
        parameters={"d": 64, "epsilon": _EPSILON, "users": users_in_all(64, _EPSILON, _BETA)},
    )
    own = first_users(16, _EPSILON, _BETA)
    yield smallest(
        _per_query(16),
        parameter="n_1",
        claimed=own,
        beta=_BETA,
        low=own / 100,
        case="users_a_query",
        draws={"smoke": 20_000, "standard": 200_000},
        derived=True,
        parameters={"d": 16, "epsilon": _EPSILON},
        note="users a query of round 1",
    )
    yield from _exponents()


def _exponents() -> Iterator[Draft]:
    yield scaling(
        lambda d: _per_query(int(d)),
        parameter="d",
        at=_AT,
        exponent=2.0,
        others=(1.0, 1.5, 2.5, 3.0),
        log_factor=_log_factor,
        measure=Smallest(_BETA, low=200.0, high=float(first_users(_AT[-1], _EPSILON, _BETA))),
        curve=lambda d: first_users(int(d), _EPSILON, _BETA),
        case="users_a_query_by_bits",
        draws=_DRAWS,
        derived=True,
        note="users a query of round 1",
    )
    yield scaling(
        lambda d: _in_all(int(d)),
        parameter="d",
        at=_AT,
        exponent=3.0,
        others=(2.0, 2.5, 3.5),
        log_factor=_log_factor,
        measure=Smallest(_BETA, low=1_000.0, high=float(users_in_all(_AT[-1], _EPSILON, _BETA))),
        curve=lambda d: users_in_all(int(d), _EPSILON, _BETA),
        case="users_by_bits",
        draws=_DRAWS,
        derived=True,
        note="users in all",
    )
    levels = (0.25, 0.5, 1.0, 2.0)
    yield scaling(
        lambda epsilon: _in_all(8, epsilon),
        parameter="epsilon",
        at=levels,
        exponent=-2.0,
        criterion=False,
        measure=Smallest(_BETA, low=1_000.0, high=float(users_in_all(8, levels[0], _BETA))),
        curve=lambda epsilon: users_in_all(8, epsilon, _BETA),
        case="users_by_epsilon",
        draws=_DRAWS,
        derived=True,
        note="eight bits, users in all",
    )
