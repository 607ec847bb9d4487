"""Document 001, section 12.3: the exponential mechanism."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken,
    broken_and_deviating,
    deviating,
    entry,
    inequality,
    reference,
)
from auditor.privacy.exact import FiniteLaw
from auditor.privacy.guarantees import PureDP
from experiments._queries import opposed_pair, stream
from experiments.common import REPLACE, person, rand, replaced
from mechanisms.base.mechanism import FloatArray, IntArray
from mechanisms.base.queries import Count, SeveralCounts
from mechanisms.selection.exponential import MUTANTS, ExponentialMechanism


@entry("001/exponential_mechanism", title="Exponential mechanism", source=Source("001", "section 12.3, Theorem 12.4"))
def exponential() -> Iterator[Draft]:
    """Choices among groups of persons; one replaced person moves one score up and all others down."""
    mechanism = ExponentialMechanism(stream("wwwwwwwwwd"), 1.0)
    pair, groups = opposed_pair(), ExponentialByDefinition((("hlthp", 1.0, 1.0),) * 9 + (("disea", 31.0, 37.9),), 1.0)
    law: dict[str, Any] = {"reference": groups}
    yield from reference(mechanism, PureDP(1.0), pair, case="largest_group", relation=REPLACE, follows=law)

    frequent = ExponentialMechanism(_visits_of(*range(27, 39)), 1.0)
    move = replaced("a person goes from 34 to 38 visits", person(mdvis=34), person(mdvis=38))
    law = {"reference": ExponentialByDefinition(tuple(("mdvis", float(v), float(v)) for v in range(27, 39)), 1.0)}
    yield from reference(frequent, PureDP(1.0), move, case="most_common_visits", relation=REPLACE, follows=law)

    yield inequality(
        _rare_choices,
        statement="two outcomes, scores (K, 0) against (K - 1, 1): the loss of the second is at most eps, and above "
        "0.999 eps at K = 40 / eps",
        case="level_approached",
        derived=True,
        note="the level of the theorem is approached as K grows, by an event that is rare",
    )
    yield inequality(
        _same_direction,
        statement="where no score falls from one dataset to the other, the level is eps / 2",
        case="scores_that_rise_together",
        derived=True,
        note="all scores from 0 to 3 of three outcomes, each of which rises by 1 or stays",
    )
    yield broken(MUTANTS["factor_two_missing"], mechanism, opposed_pair(), relation=REPLACE)
    yield from broken_and_deviating(MUTANTS["sign_flipped"], mechanism, opposed_pair(), relation=REPLACE)
    yield broken(MUTANTS["greedy_argmax"], mechanism, opposed_pair(), relation=REPLACE)
    yield broken(MUTANTS["sum_for_mean_sensitivity"], mechanism, opposed_pair(), relation=REPLACE)
    # Nobody has 36 visits: the value enters the range with the person who does.
    rare = ExponentialMechanism(_visits_of(33, 34, 35, 36, 37), 1.0)
    enters = replaced("a person goes from 36 to 33 visits", person(mdvis=36), person(mdvis=33))
    yield broken(MUTANTS["data_dependent_range"], rare, enters, relation=REPLACE)
    # 22 persons have 21 visits, 13 have 24: the lead is 10 or 8, and noise on [0, 8.9) can turn only the smaller one.
    behind = ExponentialMechanism(_visits_of(21, 24), 1.0)
    closer = replaced("a person goes from 24 to 21 visits", person(mdvis=24), person(mdvis=21))
    yield broken(MUTANTS["uniform_noise_for_gumbel"], behind, closer, relation=REPLACE)
    yield deviating(MUTANTS["uniform_noise_for_gumbel"], mechanism, opposed_pair())

    # 22 persons have 21 visits and 10 have 26: with 20 outcomes the error of the theorem is 11.98 at a beta of 0.05, so
    # that nineteen outcomes that are 12 behind fail nearly as often as is allowed.
    behind_by_12 = ExponentialMechanism(_visits_of(21, *[26] * 19), 1.0)
    common = ExponentialMechanism(_visits_of(*range(20, 40)), 1.0)
    yield _claim_utility(behind_by_12, behind_by_12, "nineteen_outcomes_behind")
    yield _claim_utility(common, common, "most_common_visits")
    flipped = MUTANTS["sign_flipped"]
    yield _claim_utility(flipped.build(common), common, flipped.name, flipped.note)


def _log_probabilities(epsilon: float, scores: Sequence[float]) -> FloatArray:
    """Logarithms of the mechanism's probabilities, for scores of sensitivity 1."""
    return np.log(ExponentialMechanism(stream("w" * len(scores)), epsilon).probabilities(np.array(scores)))


def _rare_choices() -> list[Row]:
    rows: list[Row] = []
    for epsilon in (0.1, 1.0, 3.0):
        for lead in (1.0, 4.0, 40.0 / epsilon):
            first, second = (_log_probabilities(epsilon, scores) for scores in ((lead, 0.0), (lead - 1.0, 1.0)))
            rows.append((f"eps = {epsilon:g}, K = {lead:g}", float(second[1] - first[1]), epsilon))
        rows.append((f"eps = {epsilon:g}, K = {lead:g}, from below", 0.999 * epsilon, float(second[1] - first[1])))
    return rows


def _same_direction() -> list[Row]:
    rows: list[Row] = []
    for epsilon in (0.1, 1.0, 3.0):
        losses = [
            float(np.abs(_log_probabilities(epsilon, up) - _log_probabilities(epsilon, scores)).max())
            for scores in itertools.product(range(4), repeat=3)
            for up in ([score + move for score, move in zip(scores, moves, strict=True)] for moves in _MOVES)
        ]
        rows.append((f"eps = {epsilon:g}: largest loss", max(losses), epsilon / 2.0))
    return rows


#: Scores of three outcomes that rise by 1, or stay.
_MOVES = tuple(itertools.product((0, 1), repeat=3))


@dataclass(frozen=True)
class ExponentialByDefinition:
    """The distribution by its definition: weights e^(eps u / 2), u the persons of a group, each weight by itself.

    The mechanism draws from the array that its own ``law`` returns: nothing to hold it against.

    Parameters
    ----------
    groups : tuple of (str, float, float)
        Column, and the least and the largest of its values in the group.
    epsilon : float
        The level.
    """

    groups: tuple[tuple[str, float, float], ...]
    epsilon: float

    def law(self, data: pd.DataFrame) -> FiniteLaw:
        """Distribution of the group's number."""
        scores = [sum(low <= value <= high for value in data[column].tolist()) for column, low, high in self.groups]
        mass = [1.0 / math.fsum(math.exp(self.epsilon / 2.0 * (v - u)) for v in scores) for u in scores]
        return FiniteLaw(tuple(range(len(mass))), np.array(mass))


def _visits_of(*values: int) -> SeveralCounts:
    """How many persons have so many visits, for each value."""
    return SeveralCounts(tuple(Count("mdvis", equals=float(value)) for value in values))


@dataclass(frozen=True)
class _Shortfall:
    """By how much the scores of chosen outcomes fall short of the best one."""

    scores: tuple[float, ...]

    def __call__(self, outputs: IntArray) -> FloatArray:
        """``u* - u(output)``, shape (n,)."""
        scores = np.array(self.scores)
        return np.asarray(scores.max() - scores[np.asarray(outputs, dtype=np.int64)], dtype=np.float64)


def _claim_utility(audited: Any, correct: ExponentialMechanism, case: str, mistake: str = "") -> Draft:
    """``P[u <= u* - al] <= beta`` for ``al = (2 Du / eps)(ln |L| + ln(1/beta))``, on the whole data."""
    beta, scores = 0.05, correct.scores(rand())
    alpha = 2 * correct.sensitivity / correct.epsilon * (math.log(scores.size) + math.log(1 / beta))
    failing = scores.max() - scores >= alpha
    return accuracy(
        audited,
        rand(),
        _Shortfall(tuple(scores.tolist())),
        at_most=alpha,
        beta=beta,
        strict=True,
        exact=float(audited.law(rand()).probabilities[failing].sum()),
        case=case,
        expected="deviation" if mistake else "consistent",
        is_mutant=bool(mistake),
        derived=True,
        note=mistake,
        parameters={"outcomes": scores.size, "Du": correct.sensitivity, "eps": correct.epsilon},
    )
