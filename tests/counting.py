"""Counts of random outcomes, of which a test asks only whether they are large enough."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice


def first_that_hold(outcomes: Iterable[bool], enough: int) -> int:
    """Number of outcomes that hold, up to ``enough``: those after that would change nothing, and are not made."""
    return sum(1 for _ in islice(filter(None, outcomes), enough))
