"""Streams of differences of counts on the RAND data, in which one added person moves the answers against each other.

302 persons are in poor health, and 302 have an index of chronic diseases between 31 and 37.9; their difference is 0.
"""

from __future__ import annotations

from auditor.datasets import Pair
from experiments.common import added, person
from mechanisms.base.queries import Count
from mechanisms.selection.free_tops import CountDifferences

_WEAK = Count("hlthp", equals=1.0, relation="add_remove_one")
_DISEASED = Count("disea", low=31.0, high=37.9, relation="add_remove_one")


def stream(pattern: str) -> CountDifferences:
    """Differences of the two counts: "+" weak persons less diseased ones, "-" the other way round."""
    return CountDifferences(_WEAK, _DISEASED, pattern)


def added_pair() -> Pair:
    """Answers 1 to "+" and -1 to "-", against 0 and 0."""
    return added("one more person, in poor health and with few diseases", person(hlthp=1, disea=10))
