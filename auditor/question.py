"""What is asked of one target, beside how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from auditor.counterexamples.confirm import Counts
from auditor.counterexamples.shrink import Shrunk
from auditor.events.learner import Chain
from auditor.exact import PrivacyCurve
from auditor.neighbors import Pair
from auditor.sampling import Sampler

if TYPE_CHECKING:
    from auditor.ledger import Ledger
    from auditor.partners import Ahead


@dataclass(frozen=True)
class Question:
    """What is asked of one target, beside how (`Settings`): the labels of a result and what is known beforehand.

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
    ledger : Ledger, optional
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
    snippet: Callable[[Pair, str, Counts], str] | None = None
    ledger: Ledger | None = None
    ahead: Callable[[Sequence[Any]], Ahead] | None = None

    @contextmanager
    def helped(self, datasets: Sequence[Any]) -> Iterator[Ahead | None]:
        """What makes calls on datasets before they are asked for, until the end of the block; None if nothing does."""
        if self.ahead is None:
            yield None
            return
        ahead = self.ahead(datasets)
        try:
            yield ahead
        finally:
            ahead.close()
