"""Questions about the RAND data, "which of two numbers of visits is the more frequent", and neighbouring pairs.

Visits are rare from 20 on: 20 of them occur 26 times, 21 occur 22 times, 22 and 23 occur 19 times each, 24 occur 13
times, 26 ten times, 28 twelve times, 33 five times; 29 to 34 occur 40 times, and 36 and 42 never.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditor.datasets import Pair
from experiments.common import added, person, rand
from mechanisms.base.queries import Count
from mechanisms.teacher_ensembles.online_release import QuestionList
from mechanisms.teacher_ensembles.vote_distance import MostFrequentGroup


def visits(low: float, high: float | None = None) -> Count:
    """Persons with so many visits, or with a number in a closed range."""
    if high is None:
        return Count("mdvis", equals=low, relation="add_remove_one")
    return Count("mdvis", low=low, high=high, relation="add_remove_one")


def flip() -> MostFrequentGroup:
    """22 visits or 23: 19 persons each, so the answer is the first one, at distance 0."""
    return MostFrequentGroup((visits(22.0), visits(23.0)))


def flip_pair() -> Pair:
    """The answer of `flip` goes from 23 visits, by one person, to 22 by a tie."""
    return added("one more person, with 23 visits: the tie is broken", person(mdvis=23))


def lead() -> MostFrequentGroup:
    """24 visits or 26: 13 persons against 10, distance 3."""
    return MostFrequentGroup((visits(24.0), visits(26.0)))


def lead_pair() -> Pair:
    """The distance of `lead` goes from 4 to 3."""
    return added("one more person, with 24 visits: distances 4 and 3", person(mdvis=24))


def far_lead() -> MostFrequentGroup:
    """20 or 21 visits, or 28: 48 persons against 12, distance 36."""
    return MostFrequentGroup((visits(20.0, 21.0), visits(28.0)))


def far_lead_pair() -> Pair:
    """The distance of `far_lead` goes from 37 to 36."""
    return added("one more person, with 20 visits: distances 37 and 36", person(mdvis=20))


def nobody() -> MostFrequentGroup:
    """42 visits or 36: nobody has either."""
    return MostFrequentGroup((visits(42.0), visits(36.0)))


def nobody_pair() -> Pair:
    """The answer of `nobody` goes from 36 visits, by one person, to 42 by a tie."""
    return added("one more person, the first with 36 visits", person(mdvis=36))


def tied_pair(question: MostFrequentGroup, second: float) -> Pair:
    """The data without as many persons of the first group as it leads by, and with one more of the second group.

    Parameters
    ----------
    question : MostFrequentGroup
        Whose first group leads on the whole data.
    second : float
        Number of visits of the added person.
    """
    first, other = (group.matches(rand()) for group in question.groups)
    surplus = np.flatnonzero(first)[: first.sum() - other.sum()]
    tied = rand().drop(index=rand().index[surplus]).astype(float).reset_index(drop=True)
    row = pd.DataFrame([person(mdvis=second)])[list(tied.columns)]
    name = f"{len(surplus)} persons fewer, a tie, and one more with {second:g} visits, who breaks it"
    return Pair(pd.concat([tied, row], ignore_index=True), tied, name)


def moving() -> tuple[MostFrequentGroup, MostFrequentGroup]:
    """Two questions at distance 8: 24 visits or 33, 13 against 5; and 29 to 34 or 23 to 24, 40 against 32."""
    first = MostFrequentGroup((visits(24.0), visits(33.0)))
    return first, MostFrequentGroup((visits(29.0, 34.0), visits(23.0, 24.0)))


def asked(pattern: str) -> QuestionList:
    """The questions of `moving`, the first for "+" and the second for "-": a person with 24 visits moves them so."""
    return QuestionList(moving(), tuple("+-".index(sign) for sign in pattern))


def asked_pair() -> Pair:
    """Distances of 9 ("+") and 7 ("-") against 8."""
    return added("one more person, with 24 visits: distances 9 and 7, against 8", person(mdvis=24))
