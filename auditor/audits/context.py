"""The context of one audit: the labels of its result, and what is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from auditor.audits.counterexamples.confirm import EventCounts
from auditor.audits.counterexamples.shrink import Shrunk
from auditor.audits.interfaces import EvidenceStore
from auditor.datasets import Pair
from auditor.events.event_learner import Chain
from auditor.privacy.exact import PrivacyCurve
from auditor.targets.sampler import Prefetch, Sampler


@dataclass(frozen=True)
class Question:
    """Labels of a result and prior knowledge of the target.

    How the target is audited is in `Settings`.

    Parameters
    ----------
    id : str
        The claim's id; it keys the draws.
    curves : sequence of PrivacyCurve
        Exact curves of the pairs, where they are known.
    exact : float or None
        Exact level on the pairs; computed from ``curves`` if those are given.
    labels : mapping
        Further fields of `AuditResult`.
    replay : str
        A line that finds a counterexample again.
    private : bool
        Datasets are not shown.
    shrink : callable, optional
        Takes the sampler of the evidence, and the pairs that a violation rests on with their events, the most telling
        first; gives a smaller counterexample.
    snippet : callable, optional
        Takes a pair, an event in words and its counts, and gives lines of Python that show it.
    ledger : EvidenceStore, optional
        Where evidence is carried from run to run.
    ahead : callable, optional
        Takes the datasets, and gives what makes calls before they are asked for.
    """

    id: str = "audit/L1/claim/given"
    curves: Sequence[PrivacyCurve] = ()
    exact: float | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)
    replay: str = ""
    private: bool = False
    shrink: Callable[[Sampler, Sequence[tuple[Pair, Sequence[Chain]]]], Shrunk | None] | None = None
    snippet: Callable[[Pair, str, EventCounts], str] | None = None
    ledger: EvidenceStore | None = None
    ahead: Callable[[Sequence[Any]], Prefetch] | None = None

    @contextmanager
    def helped(self, datasets: Sequence[Any]) -> Iterator[Prefetch | None]:
        """Partner that makes calls beforehand, until the block ends.

        None if there is none.
        """
        if self.ahead is None:
            yield None
            return
        ahead = self.ahead(datasets)
        try:
            yield ahead
        finally:
            ahead.close()
