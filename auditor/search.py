"""Which pair to draw from next."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.events.learner import EventLearner


def next_pair(learners: Sequence[EventLearner], first: int) -> int:
    """Index of the pair to draw from: each pair once, then the one whose best event may show the highest level.

    "May show" is optimistic: the level of the best event with its counts moved one standard error in its favour. So a
    pair with few draws is tried again until it is clear that it shows less. The choice is a function of past draws, and
    the chunks of all pairs are factors of one supermartingale, so it needs no correction.
    """
    for index, learner in enumerate(learners):
        if learner.n < first:
            return index
    if len(learners) == 1:
        return 0
    # Of equally hopeful pairs the one with fewer draws.
    return max(range(len(learners)), key=lambda k: (learners[k].hope, -learners[k].n, -k))
