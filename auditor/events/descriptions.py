"""Events in words, for those who may see the data's values and for those who may not."""

from __future__ import annotations

from auditor.events.event_learner import Chain
from auditor.events.root_causes import cause_of


def say_event(chain: Chain, k: int, private: bool) -> str:
    """Describe an event of a chain.

    Only its kind is given if the data are private.

    An event's values are outputs that were seen, and a mechanism that is not what it claims to be may release rows.

    Parameters
    ----------
    chain : Chain
    k : int
        Index of the event in the chain.
    private : bool
        The datasets are not to be shown.
    """
    return f"{cause_of(chain)} (values not shown)" if private else chain.words()[k]
