"""Many claims, one run: all selected claims audited by workers, and the document of the results."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from auditor.claims import Claim, Entry
from auditor.results import AuditResult, make_document
from auditor.runs.manifest import build_manifest
from auditor.runs.run import HandOut, Outcome, Progress, Run, WorkersLost, split_alpha
from auditor.runs.source_locations import add_places
from auditor.runs.workers import start_workers


def execute_run(
    run: Run,
    selected: Sequence[Claim],
    progress: Progress | None = None,
    only: Mapping[str, float] | None = None,
    finished: Mapping[str, tuple[AuditResult, float]] | None = None,
    hand_out: HandOut | None = None,
) -> Outcome:
    """Audit the selected claims.

    Ctrl-C, or the loss of all workers, keeps what is done.

    Parameters
    ----------
    run : Run
        How.
    selected : sequence of Claim
        What; alpha is split over them.
    progress : callable, optional
        Called with each result, as it comes, and the seconds that it took.
    only : mapping of str to float, optional
        Ids of the claims to audit, with their shares of alpha; default all, with those of `split_alpha`.
    finished : mapping, optional
        Results with their seconds, by claim id, that an interrupted run left: these claims are not audited again.
    hand_out : callable, optional
        Workers that wait for work; by default, those of `auditor.runs.workers.start_workers`.

    Raises
    ------
    SpecificationError
        If there can be no workers.
    """

    alpha = split_alpha(selected, run.alpha) if only is None else only
    done = {id_: result for id_, (result, _) in (finished or {}).items()}
    seconds = {id_: took for id_, (_, took) in (finished or {}).items()}
    wanted = [claim.id for claim in selected if (only is None or claim.id in only) and claim.id not in done]
    interrupted, lost = False, ""
    try:
        with start_workers(run, alone=len(selected) == 1) if hand_out is None else nullcontext(hand_out) as available:
            for result, took in available(wanted, alpha):
                done[result.id], seconds[result.id] = result, took
                if progress is not None:
                    progress(result, took)
    except KeyboardInterrupt:
        interrupted = True
    except WorkersLost as error:
        interrupted, lost = True, str(error)
    ordered = [done[claim.id] for claim in selected if claim.id in done]
    return Outcome(ordered, seconds, interrupted, lost)


def collect_errata(selected: Sequence[Claim]) -> list[dict[str, Any]]:
    """Errata of the entries that were run.

    With the claims that show what is wrong and what is right.
    """
    return [
        {
            "id": erratum.id,
            "entry": entry.id,
            "class": erratum.kind,
            "source": {"document": entry.source.document, "place": entry.source.place},
            "summary": erratum.summary,
            "fails": erratum.fails,
            "correction": erratum.correction,
            "claims": {
                claim.id: claim.draft.shows.role
                for claim in selected
                if claim.entry == entry.id and claim.draft.shows and claim.draft.shows.erratum == erratum.id
            },
        }
        for entry in _entries_of(selected)
        for erratum in entry.errata
    ]


def collect_documents(selected: Sequence[Claim]) -> dict[str, str]:
    """Titles of the source documents.

    The docstring of an entry's module, or of its package, begins with ``Document NAME: title.``.
    """
    titles: dict[str, str] = {}
    for entry in _entries_of(selected):
        name, module = entry.source.document, entry.function.__module__
        for said in (sys.modules.get(module), sys.modules.get(module.rpartition(".")[0])):
            first = ((said and said.__doc__) or "").strip().partition("\n")[0]
            if name and first.startswith(f"Document {name}: "):
                title = first.removeprefix(f"Document {name}: ").removesuffix(".")
                titles.setdefault(name, title[:1].upper() + title[1:])
    return titles


def _entries_of(selected: Sequence[Claim]) -> list[Entry]:
    """Entries that declare claims, each once, in the order of the claims."""
    return list({claim.entry: claim.origin for claim in selected if claim.origin is not None}.values())


def results_document(run: Run, selected: Sequence[Claim], outcome: Outcome) -> dict[str, Any]:
    """The content of results.json.

    Parameters
    ----------
    run : Run
        What was asked for.
    selected : sequence of Claim
        Claims of the run.
    outcome : Outcome
        What was found.
    """
    about = build_manifest(run, selected)
    if outcome.interrupted:
        about["interrupted"] = True
    results = add_places(outcome.results, selected, _entries_of(selected))
    return make_document(about, results, collect_errata(selected), collect_documents(selected))
