"""The context of one audit: the labels of its result, and what is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from auditor.audits.counterexamples.confirm import EventCounts
from auditor.audits.counterexamples.shrink import Shrunk
from auditor.audits.interfaces import EvidenceStore
from auditor.datasets import Pair
from auditor.datasets.json_codec import same_data
from auditor.errors import TargetError
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

        Raises
        ------
        TargetError
            At the end of the block, see `watch_datasets`.
        """
        with watch_datasets(datasets):
            if self.ahead is None:
                yield None
                return
            ahead = self.ahead(datasets)
            try:
                yield ahead
            finally:
                ahead.close()


@contextmanager
def watch_datasets(datasets: Sequence[Any]) -> Iterator[None]:
    """Refuse a target that changes its datasets, in a block.

    It raises at the end of the block.

    Draws are of one dataset only if every call gets the same. Two datasets may become equal by the first call, which
    would be a pass whatever that call showed, or stop being neighbours, which would be a violation.

    Parameters
    ----------
    datasets : sequence
        Those whose content can be compared are watched, as `same_data` does: arrays, data frames, lists, dictionaries.
        Of other objects their attributes are, but for those that were missing or empty before, which may be caches.

    Raises
    ------
    TargetError
        If the content of one is not what it was.
    """
    copies = [(data, _copy(data)) for data in {id(data): data for data in datasets}.values()]
    kept = [(data, before) for data, before in copies if _are_same(data, before)]
    yield
    changed = [(data, before) for data, before in kept if not _are_same(data, before)]
    if changed:
        what = ""
        with suppress(Exception):  # of a class of somebody else's, which cannot be compared any more
            what = f" (attribute {name!r})" if (name := _find_changed_attribute(*changed[0])) else ""
        raise TargetError(
            f"the target changed {len(changed)} of {len(kept)} datasets that it was given{what}, so that its draws are "
            "not of these: it has to copy what it changes"
        )


def _copy(data: Any) -> Any:
    """A copy of a dataset, if its class has one."""
    try:
        return deepcopy(data)
    except Exception:  # noqa: BLE001 - of a class of somebody else's
        return None


def _are_same(data: Any, before: Any) -> bool:
    try:
        return same_data(data, before) or _have_same_content(data, before)  # the first is the faster one
    except Exception:  # noqa: BLE001 - of a class of somebody else's, which is compared otherwise
        return False


def _have_same_content(data: Any, before: Any) -> bool:
    """Whether two datasets are equal; objects that do not say so are by their attributes."""
    kind: Any = type(data)
    if kind is not type(before):
        return False
    if isinstance(data, list | tuple):
        return len(data) == len(before) and all(map(_have_same_content, data, before))
    if kind is dict:
        return same_data(list(data), list(before)) and all(_have_same_content(data[key], before[key]) for key in data)
    if _is_watched_by_attributes(data):
        return not _find_changed_attribute(data, before)
    return same_data(data, before)


def _is_watched_by_attributes(data: Any) -> bool:
    return getattr(type(data), "__eq__", None) is object.__eq__ and hasattr(data, "__dict__")


def _find_changed_attribute(data: Any, before: Any) -> str:
    """Name of an attribute with another content than before; empty if there is none, or attributes are not watched."""
    if not _is_watched_by_attributes(data):
        return ""
    now = vars(data)
    held = {name: value for name, value in vars(before).items() if not _is_empty(value)}
    return next((name for name in held if name not in now or not _have_same_content(now[name], held[name])), "")


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, list | tuple | dict | set) and not value)
