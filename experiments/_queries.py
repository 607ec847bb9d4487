"""Streams of counting queries on the RAND data in which one replaced person moves the answers against each other.

302 persons are in poor health, and 302 have an index of chronic diseases between 31 and 37.9. A person who is in the
second group and not in the first, replaced by one of whom the opposite holds, moves the first count up and the second
down; both counts lie at the threshold 302.5. So the pairs that make sparse vector's bounds tight exist in real data.
"""

from __future__ import annotations

from auditor.datasets import Pair
from experiments.common import person, replaced
from mechanisms.base.queries import Count, SeveralCounts

#: Both groups have 302 members without the person who is replaced; a threshold between the two answers.
THRESHOLD = 302.5

_WEAK = Count("hlthp", equals=1.0)
_DISEASED = Count("disea", low=31.0, high=37.9)


def stream(pattern: str) -> SeveralCounts:
    """A stream of counts: "w" asks for persons in poor health, "d" for those with many diseases."""
    return SeveralCounts(tuple({"w": _WEAK, "d": _DISEASED}[letter] for letter in pattern))


def opposed_pair() -> Pair:
    """Answers 302 to "w" and 303 to "d", against 303 and 302."""
    return replaced(
        "a person with many diseases is replaced by one in poor health",
        person(hlthp=0, disea=33),
        person(hlthp=1, disea=10),
    )


def one_sided_pair() -> Pair:
    """Answers 302 to "w", against 303."""
    return replaced("a person in good health is replaced by one in poor health", person(hlthp=0), person(hlthp=1))
