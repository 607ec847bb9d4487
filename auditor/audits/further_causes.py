"""After a violation: further searches that leave out the kinds of causes that were found."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from auditor.audits.context import Question
from auditor.audits.defaults import METHODS
from auditor.audits.privacy_loop import FIRST, Settings
from auditor.events.cause_kinds import IGNORABLE, find_kind, kind_of
from auditor.results import AuditResult, Verdict

#: Draws of a further search, in those of the first, and what it may take where the first took few: a defect that is
#: found without the kind in question mostly takes more draws than the bits of floats do, which show after some dozens.
TIMES, LEAST_DRAWS = 4, 100_000
#: Seconds that a further search may take, of those that are left: as long as one looks at a screen; arbitrary, what
#: shrinking may take too.
MOST_SECONDS = 15.0


def find_further_causes(
    first: AuditResult,
    settings: Settings,
    question: Question,
    search: Callable[[Settings, Question], AuditResult],
    begun: float,
) -> tuple[Mapping[str, Any], ...]:
    """Search on without the kinds of causes that were found.

    Parameters
    ----------
    first : AuditResult
        What was found at first.
    settings : Settings
        Of the first audit; without ``also`` nothing is searched.
    question : Question
        Of the first audit.
    search : callable
        Audits the same claim on the same pairs.
    begun : float
        When the first audit began, by `time.monotonic`.

    Returns
    -------
    tuple of mapping
        For each search ``ignore``, ``verdict``, ``cause``, ``pair``, ``event``, ``draws``, ``lower_bound``,
        ``log10_max_e_value`` and ``message``. Empty unless the first was a violation by a kind of cause that can be
        ignored. The last one is the first that found nothing more, or a cause that cannot be ignored.

    Notes
    -----
    Valid because: each search is an audit of its own, with a wealth that begins with 1, on draws keyed apart from all
    others; whether it is made depends on these others only. It bets on no event of the ignored kinds. So if all other
    events satisfy the claim, whatever those of the ignored kinds do, its wealth reaches 1/alpha with probability at
    most alpha: "also violated without floating-point" is a statement by itself, at level alpha. It takes nothing from
    the alpha of the first, and is not part of it: that all of k such statements hold has confidence 1 - k alpha. The
    verdict rests on the first audit alone, and that any verdict is false keeps probability alpha, since no search is
    made without a violation before it.
    """
    found: list[Mapping[str, Any]] = []
    if not settings.also or settings.method != METHODS[0]:
        return ()
    kinds, latest, spent = settings.ignore, first, first.draws
    while len(found) < len(IGNORABLE):
        kind = _find_ignorable(latest)
        left = settings.draws - spent
        seconds = None if settings.seconds is None else settings.seconds - (time.monotonic() - begun)
        if kind is None or kind in kinds or left < 4 * FIRST or (seconds is not None and seconds <= 0):
            break
        own = replace(
            settings,
            ignore=(*kinds, kind),
            draws=min(left, max(TIMES * first.draws, LEAST_DRAWS)),
            seconds=None if seconds is None else min(seconds, MOST_SECONDS),
            stop="verdict",
            chunks=None,
            also=False,
        )
        kinds = own.ignore
        about = replace(question, id=f"{question.id}/without {' '.join(kinds)}", shrink=None, snippet=None)
        latest = search(own, about)
        spent += latest.draws
        found.append(_summarise_search(latest))
    return tuple(found)


def _find_ignorable(result: AuditResult) -> str | None:
    """Name of the kind of a violation's cause, if it can be ignored."""
    if result.verdict != Verdict.VIOLATION or result.counterexample is None:
        return None
    return find_kind(kind_of(result.counterexample.cause))


def _summarise_search(result: AuditResult) -> Mapping[str, Any]:
    seen = result.counterexample
    return {
        "ignore": result.ignore,
        "verdict": result.verdict,
        "cause": "" if seen is None else seen.cause,
        "pair": result.pair,
        "event": result.event,
        "draws": result.draws,
        "lower_bound": result.lower_bound,
        "log10_max_e_value": result.log10_max_e_value,
        "message": result.message,
    }
