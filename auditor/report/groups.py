"""Claims grouped as a page shows them: by document, and by entry with its title."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auditor.report import words
from auditor.report.view import ClaimView, RunView


@dataclass(frozen=True)
class EntryView:
    """Claims of one entry.

    Parameters
    ----------
    name : str
        Its id, which begins the ids of its claims.
    title : str
        What it is; empty if no claim says it.
    place : str
        Where the document states it.
    claims : tuple of ClaimView
        In the order of the file.
    """

    name: str
    title: str
    place: str
    claims: tuple[ClaimView, ...]

    @property
    def tally(self) -> str:
        """Number of claims by verdict, in words."""
        return count_verdicts(self.claims)

    @property
    def unexpected(self) -> int:
        """Number of claims with an unexpected result."""
        return sum(claim.unexpected for claim in self.claims)

    def shorten_id(self, claim: ClaimView) -> str:
        """Shorten a claim's id by what all of the entry begin with."""
        return claim.id.removeprefix(f"{self.name}/")

    def note_of(self, claim: ClaimView) -> str:
        """Say what a claim's title adds to the entry's."""
        title = claim.text("title")
        return "" if title == self.title else title.removeprefix(f"{self.title}: ")


@dataclass(frozen=True)
class DocumentView:
    """Entries of one source document.

    Parameters
    ----------
    name : str
        What the claims call it; empty for claims that come from none.
    title : str
        What it is; empty if the results do not say it.
    entries : tuple of EntryView
        In the order of the file.
    """

    name: str
    title: str
    entries: tuple[EntryView, ...]

    @property
    def claims(self) -> list[ClaimView]:
        """Claims of all entries."""
        return [claim for entry in self.entries for claim in entry.claims]

    @property
    def heading(self) -> str:
        """Name and title in one line."""
        name = f"Document {self.name}" if self.name.isdigit() else self.name or "Claims without a document"
        return f"{name}: {self.title}" if self.title else name


def group_claims(run: RunView) -> list[DocumentView]:
    """Group the claims of a run by document and entry."""
    of: dict[str, dict[str, list[ClaimView]]] = {}
    for claim in run.claims:
        document = words.one_line(str((claim.raw.get("source") or {}).get("document") or ""))
        of.setdefault(document, {}).setdefault(claim.entry, []).append(claim)
    titles = run.results.get("documents") or {}
    return [
        DocumentView(name, str(titles.get(name, "")), tuple(_view_entry(*entry) for entry in entries.items()))
        for name, entries in of.items()
    ]


def count_verdicts(claims: Iterable[ClaimView]) -> str:
    """Count claims by verdict, in words: "8 consistent, 2 violation"."""
    number_of = Counter(claim.verdict for claim in claims)
    return ", ".join(f"{number_of[verdict]:,} {verdict}" for verdict in reversed(words.VERDICTS) if number_of[verdict])


def _view_entry(name: str, claims: Sequence[ClaimView]) -> EntryView:
    places = dict.fromkeys(words.one_line(str((c.raw.get("source") or {}).get("place") or "")) for c in claims)
    return EntryView(name, _title_of([c.text("title") for c in claims]), "; ".join(filter(None, places)), tuple(claims))


def _title_of(titles: Sequence[str]) -> str:
    """What all titles begin with: a claim's own is the entry's, or the entry's with more after a colon."""
    shortest = min(titles, key=len)
    for title in (shortest, shortest.partition(": ")[0]):
        if all(one == title or one.startswith(f"{title}: ") for one in titles):
            return title
    return ""
