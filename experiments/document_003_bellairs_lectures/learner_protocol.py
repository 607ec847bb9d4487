"""Document 003, section 9.2: private learners and one-way communication with shared coins, both ways.

The document's Theta hides the constants, which are derived here, and is for pure privacy. Its learner has level eps;
the exponential mechanism of Theorem 8.2.2 has level 2 eps, so that the list needs ``e^(2 eps n)`` hypotheses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from auditor.audits.accuracy import Exactly, Figure
from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, accuracy, entry, exact, inequality, scaling
from auditor.datasets import Group, Pair
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE
from mechanisms.base.mechanism import IntArray
from mechanisms.learning.fresh_learner import least_size
from mechanisms.learning.learner_protocol import (
    BobsError,
    CoverProtocol,
    EqualityError,
    EqualityLearner,
    FreshEquality,
    HalfOnPoint,
    OnlyZero,
    PrivateCoins,
    corner_in_list,
    corner_success,
    equality_bits,
    list_length,
    message_bits,
    protocol_rows,
    zero_rows,
)
from mechanisms.learning.threshold_learner import ReleasedThresholdPiece, ThresholdLearner
from mechanisms.learning.threshold_samples import TwoPoints, balanced_failure, fresh_failure

_EPSILON = 0.5
_BETA = 0.1
#: Of the instance that the mutants fail on: threshold 0 is learned with probability 0.24 there.
_BITS, _ROWS = 6, 6
#: Probability with which a learner of the growth claims fails; arbitrary, a constant.
_FAILS = 1 / 3


def _zero_rows_pair(rows: IntArray, name: str) -> Pair:
    return Pair(rows, zero_rows(len(rows)), f"{name}, against as many rows (0, 0)")


def _corner(rows: int) -> Pair:
    """All rows (0, 1): the threshold 0 is right, and rows (0, 0) say that it alone is wrong."""
    return _zero_rows_pair(np.tile(np.array([[0, 1]], dtype=np.int64), (rows, 1)), f"{rows} rows (0, 1)")


def _two_points(d: int, rows: int) -> Pair:
    middle = 2 ** (d - 1)
    data = np.array([[middle - i % 2, 1 - i % 2] for i in range(rows)], dtype=np.int64)
    return _zero_rows_pair(data, f"{rows} rows on either side of the middle of {d} bits")


@entry(
    "003/learner_to_protocol",
    title="Private learners and one-way communication, both ways",
    source=Source("003", "section 9.2, closing sketches"),
)
def learner_to_protocol() -> Iterator[Draft]:
    """What a learner says of rows of zeros covers what it says of any data; lists, messages, and the way back."""
    learner = ThresholdLearner(_BITS, _EPSILON)
    for case, pair in (("corner", _corner(_ROWS)), ("two_points", _two_points(_BITS, _ROWS))):
        yield exact(learner, PureDP(_ROWS * learner.level), pair, case=case, relation=Group(_ROWS))
    long = ReleasedThresholdPiece(ThresholdLearner(62, _EPSILON), (0,))
    yield exact(
        long,
        PureDP(8 * long.level),
        _corner(8),
        case="corner_62_bits",
        relation=Group(8),
        note="attained as d grows: 2 eps n for the exponential mechanism, not eps n",
    )
    yield inequality(
        _coverage_rows,
        statement="e^(-2 eps n) P[L(D) = h] <= P[L(0) = h] for all datasets of 3 rows of 2 bits and all h",
        case="cover",
    )
    yield inequality(
        _messages,
        statement="an index of the list has as many bits as 2 eps n log2(e) + log2(ln(1/beta)/p), rounded up",
        relation="==",
        case="message",
        derived=True,
    )
    yield from _lists()
    yield from _growth()
    yield from _claim_equality_lengths()


def _coverage_rows() -> list[Row]:
    rows: list[Row] = []
    records = list(itertools.product(range(4), (0, 1)))
    for epsilon in (0.1, 0.5, 2.0):
        learner = ThresholdLearner(2, epsilon)
        known = learner.law(zero_rows(3)).probabilities
        for data in itertools.combinations_with_replacement(records, 3):
            law = math.exp(-3 * learner.level) * learner.law(np.array(data, dtype=np.int64)).probabilities
            worst = int(np.argmax(law / known))
            rows.append((f"eps = {epsilon:g}, D = {data}, h = {worst}", float(law[worst]), float(known[worst])))
    return rows


def _messages() -> list[Row]:
    rows: list[Row] = []
    for d, n, beta in itertools.product((2, 6, 16), (2, 6, 8), (0.1, 0.01)):
        given = (2 * _EPSILON, n, corner_success(d, _EPSILON, n), beta)
        bits = math.ceil(math.log2(list_length(*given)))
        rows.append((f"d = {d}, n = {n}, beta = {beta:g}", float(bits), float(math.ceil(message_bits(*given)))))
    return rows


# ------------------------------------------------------------------------- from learners to protocols


def _claim_threshold_zero(protocol: CoverProtocol, case: str, mistake: str = "", draws: int = 1_000) -> Draft:
    """Claim that Bob's threshold is Alice's, 0, with probability 1 - beta."""
    learner = protocol.learner
    alone = corner_in_list(learner.d, learner.epsilon, protocol.rows)
    return accuracy(
        protocol,
        OnlyZero(),
        BobsError(OnlyZero()),
        at_most=protocol.alpha,
        beta=_BETA,
        exact=None if isinstance(protocol, PrivateCoins) else math.exp(protocol.length * math.log1p(-alone)),
        case=case,
        draws={"smoke": draws, "standard": 4 * draws},
        expected="deviation" if mistake else "consistent",
        is_mutant=bool(mistake),
        parameters={"d": learner.d, "rows": protocol.rows, "list": protocol.length},
        derived=True,
        note=mistake,
    )


def _list_protocol(d: int, rows: int) -> CoverProtocol:
    learner = ThresholdLearner(d, _EPSILON)
    length = list_length(learner.level, rows, corner_success(d, _EPSILON, rows), _BETA)
    return CoverProtocol(learner, rows, length, 0.0)


def _lists() -> Iterator[Draft]:
    reference = _list_protocol(_BITS, _ROWS)
    yield _claim_threshold_zero(reference, "corner")
    # eps n = 4: 8,868 hypotheses.
    yield _claim_threshold_zero(_list_protocol(4, 8), "corner_eight_rows", draws=700)
    learner, rows = ThresholdLearner(4, _EPSILON), 6
    success = 1.0 - fresh_failure(learner.d, _EPSILON, rows)
    examples = TwoPoints(2 ** (learner.d - 1))
    yield accuracy(
        CoverProtocol(learner, rows, list_length(learner.level, rows, success, _BETA), 0.0),
        examples,
        BobsError(examples),
        at_most=0.0,
        beta=_BETA,
        case="two_points",
        draws={"smoke": 700, "standard": 3_000},
        parameters={"d": learner.d, "rows": rows},
        derived=True,
    )
    success = corner_success(_BITS, _EPSILON, _ROWS)
    yield _claim_threshold_zero(
        PrivateCoins(reference.learner, _ROWS, reference.length, 0.0),
        "private_coins",
        "Bob lists with coins of his own, so that an index of Alice's list says nothing",
    )
    yield _claim_threshold_zero(
        replace(reference, length=list_length(_EPSILON, _ROWS, success, _BETA)),
        "learner_eps_not_doubled",
        "e^(eps n) hypotheses, where the exponential mechanism has level 2 eps",
    )
    yield _claim_threshold_zero(
        replace(reference, length=list_length(reference.learner.level, _ROWS, 1.0, _BETA)),
        "list_without_1_over_p",
        "the list is as long as if the learner never failed; it succeeds in 24 %",
    )


def _needed_size(d: float, epsilon: float = 0.01) -> float:
    """Least ``eps n`` for success 2/3 on a balanced sample, at an epsilon so small that whole rows do not matter."""
    bits = int(d)
    high = math.ceil(4.0 * (bits + 2) / epsilon)
    return epsilon * least_size(lambda rows: balanced_failure(bits, epsilon, rows), _FAILS, high)


def _bits_sent(d: float) -> float:
    """Bits of the message for so many rows: the level of a row is 2 eps."""
    return message_bits(2.0, _needed_size(d), 1.0 - _FAILS, _BETA)  # type: ignore[arg-type]


def _growth() -> Iterator[Draft]:
    at = (16, 32, 64, 128, 256, 512)
    yield scaling(
        _needed_size,
        parameter="d",
        at=at,
        exponent=1.0,
        others=(0.5, 2.0),
        measure=Exactly("least eps n"),
        # The two points have 2^d thresholds beside the true one: W = 2^d e^(-eps n / 2) <= 1/2, and a row for rounding.
        curve=lambda d: 2.0 * (d * math.log(2.0) + math.log((1.0 - _FAILS) / _FAILS)) + 0.02,
        case="eps_n_by_bits",
        derived=True,
        note="2 ln 2 a bit, on a balanced sample of the two numbers on either side of the threshold, success 2/3",
    )
    yield scaling(
        _bits_sent,
        parameter="d",
        at=at,
        exponent=1.0,
        others=(0.5, 2.0),
        measure=Exactly("bits of the message", formula=True),
        figure=Figure("Message for thresholds by the list of a private learner", "message", "bits d", "bits"),
        case="message_by_bits",
        derived=True,
        note="four bits for each bit of a threshold, which d + 1 bits say as it is: no protocol has o(d)",
    )


# ------------------------------------------------------------------------- from protocols to learners


def _claim_equality_lengths() -> Iterator[Draft]:
    """Messages about equality are short whatever d is, and so are the samples of the learner that they give."""
    small = EqualityLearner(8, _EPSILON, 3, (0b10110101, 0b01101100, 0b11100010))
    records = np.array([[9, 1], [200, 0], [17, 0], [9, 1], [64, 0], [9, 1]], dtype=np.int64)
    flipped = records.copy()
    flipped[-1, 1] = 0
    yield exact(
        small,
        PureDP(small.level),
        Pair(records, flipped, "a label of six rows flips"),
        case="messages_as_hypotheses",
        relation=REPLACE,
        note="for shared coins that are drawn without the data",
    )
    alpha = 0.1
    bits = equality_bits(_EPSILON, alpha, _BETA)
    rows = protocol_rows(bits, _EPSILON, alpha, _BETA)
    for d in (16, 62):
        examples = HalfOnPoint(d, 2**d // 3)
        yield accuracy(
            FreshEquality(EqualityLearner(d, _EPSILON, bits), rows),
            examples,
            EqualityError(examples),
            at_most=alpha,
            beta=_BETA,
            case=f"equality_{d}_bits",
            draws={"smoke": 600, "standard": 6_000},
            parameters={"d": d, "bits": bits, "rows": rows},
            derived=True,
            note="2 (m ln 2 + ln(2/beta))/(alpha (1 - e^-eps)) rows for messages of m bits, whatever d",
        )
