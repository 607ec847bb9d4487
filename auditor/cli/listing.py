"""Declared claims for people: the list of entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from auditor.errors import SpecificationError
from auditor.runs.declarations import Declarations

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


def list_entries(paths: Sequence[str]) -> list[dict[str, Any]]:
    """List entries with the ids of their claims, as JSON."""
    index = read_declarations(paths).index
    listed = []
    for entry in index.entries:
        own = [claim for claim in index.claims if claim.entry == entry.id]
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


def list_lines(paths: Sequence[str]) -> Iterator[str]:
    """List entries and claims as text, with a count."""
    index = read_declarations(paths).index
    for entry in index.entries:
        yield f"{entry.id}  {entry.title}"
        for claim in index.claims:
            if claim.entry == entry.id:
                yield f"  {claim.id}  {claim.guarantee}  expected {claim.expected}"
    plural = "entry" if len(index.entries) == 1 else "entries"
    yield f"{len(index.entries)} {plural}, {len(index.claims)} claim{'s' * (len(index.claims) != 1)}"
