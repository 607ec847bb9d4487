"""Declared claims for people: the list of entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from auditor.errors import SpecificationError
from auditor.runs.declarations import Declarations
from auditor.runs.index import ListedClaim, ListedEntry
from auditor.runs.selection import select_or_suggest

#: Where claims are looked for if no path is given.
DEFAULT = "experiments"


def read_declarations(paths: Sequence[str]) -> Declarations:
    """Claims declared in paths, by default in `DEFAULT`.

    A missing default is no mistake of the user's.

    Raises
    ------
    SpecificationError
        See `Declarations`.
    """
    if not paths and not Path(DEFAULT).exists():
        raise SpecificationError(
            f"there is no folder {DEFAULT!r} in {str(Path.cwd())!r}: name the files or folders that declare claims"
        )
    if "" in paths:
        raise SpecificationError("a path must not be empty, got ''")
    return Declarations(paths or (DEFAULT,))


def _choose_entries(paths: Sequence[str], expression: str | None) -> list[tuple[ListedEntry, list[ListedClaim]]]:
    """Entries with their claims whose ids match."""
    index = read_declarations(paths).index
    own: dict[str, list[ListedClaim]] = {entry.id: [] for entry in index.entries}
    for claim in select_or_suggest(index.claims, expression):
        own[claim.entry].append(claim)
    return [(entry, own[entry.id]) for entry in index.entries if own[entry.id] or expression is None]


def list_entries(paths: Sequence[str], expression: str | None = None) -> list[dict[str, Any]]:
    """List entries with the ids of their claims, as JSON.

    Parameters
    ----------
    paths : sequence of str
        Where claims are declared, by default `DEFAULT`.
    expression : str, optional
        Which claims, see `auditor.runs.selection.select_claims`.
    """
    listed = []
    for entry, own in _choose_entries(paths, expression):
        listed.append(
            {
                "entry": entry.id,
                "name": entry.title,
                "source": {"document": entry.document, "place": entry.place},
                "mechanism": ", ".join(sorted({claim.mechanism for claim in own if not claim.is_mutant})),
                "claims": [claim.id for claim in own if not claim.is_mutant],
                "mutants": [claim.id for claim in own if claim.is_mutant],
                "exact": any(claim.is_exact for claim in own),
                "accuracy": any(claim.level == "L4" for claim in own),
            }
        )
    return listed


def list_lines(paths: Sequence[str], expression: str | None = None) -> Iterator[str]:
    """List entries and claims as text, with a count.

    Parameters
    ----------
    paths : sequence of str
        Where claims are declared, by default `DEFAULT`.
    expression : str, optional
        Which claims, see `auditor.runs.selection.select_claims`.
    """
    listed = _choose_entries(paths, expression)
    for entry, own in listed:
        yield f"{entry.id}  {entry.title}"
        for claim in own:
            yield f"  {claim.id}  {claim.guarantee}  expected {claim.expected}"
    claims = sum(len(own) for _, own in listed)
    yield f"{len(listed)} {'entry' if len(listed) == 1 else 'entries'}, {claims} claim{'s' * (claims != 1)}"
