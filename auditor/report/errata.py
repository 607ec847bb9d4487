"""The table of errata: rows that the claims of the same results show, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from auditor.report import theorems, words
from auditor.report.view import ClaimView

#: What the classes of errata say, in the table.
CLASSES = {"false": "false as printed", "proof": "holds; the printed step does not"}
_WRONG, _RIGHT = ("as printed", "printed step"), ("as corrected", "statement")


@dataclass(frozen=True)
class ErratumView:
    """A statement that is wrong in a source document.

    It comes with the claims that show it; the document is the copy that was read.

    Parameters
    ----------
    raw : mapping
        Its record in results.json.
    wrong, right : tuple of ClaimView
        Claims that refute what is printed, and those of what is right.
    part : str
        A letter, where several entries show parts of one erratum; empty where one does.
    """

    raw: Mapping[str, Any]
    wrong: tuple[ClaimView, ...]
    right: tuple[ClaimView, ...]
    part: str = ""

    def text(self, key: str) -> str:
        """Read a field as text."""
        return str(self.raw.get(key) or "")

    @property
    def name(self) -> str:
        """Document and id, which name an erratum."""
        document = str((self.raw.get("source") or {}).get("document") or "")
        return words.one_line(f"{document} {self.text('id')}")

    @property
    def label(self) -> str:
        """Its name, with the letter of a part.

        No other row has it.
        """
        return f"{self.name} {self.part}".rstrip()

    @property
    def kind(self) -> str:
        """Its class, in words."""
        return CLASSES.get(self.text("class"), self.text("class"))

    @property
    def place(self) -> str:
        """Document and place."""
        return words.format_place(self.raw.get("source") or {})

    @property
    def how_much(self) -> list[str]:
        """By how much each of the claims of what is printed fails."""
        return [words.one_line(theorems.describe_discrepancy(claim)) for claim in self.wrong]

    @property
    def held(self) -> bool:
        """What is right was checked in the same run, and not refuted."""
        return bool(self.right) and all(claim.verdict == "consistent" for claim in self.right)


def list_errata(records: Sequence[Mapping[str, Any]], claims: Sequence[ClaimView]) -> list[ErratumView]:
    """List errata that the claims show.

    What is printed was refuted, as expected, by at least one of them.

    A record whose claims are not among the results, or did not come out as expected, accuses nobody: it gives no row.

    Parameters
    ----------
    records : sequence of mapping
        Errata of results.json.
    claims : sequence of ClaimView
        Claims of the same results.
    """
    by_id = {claim.id: claim for claim in claims}
    found = []
    for record in records:
        roles = {id_: role for id_, role in dict(record.get("claims") or {}).items() if id_ in by_id}
        wrong = tuple(by_id[id_] for id_, role in roles.items() if role in _WRONG and by_id[id_].refuted)
        right = tuple(by_id[id_] for id_, role in roles.items() if role in _RIGHT)
        if wrong:
            found.append(ErratumView(record, wrong, right))
    return _name_parts(found)


def _name_parts(errata: Sequence[ErratumView]) -> list[ErratumView]:
    """The same errata, the parts of one beside each other, with a letter each."""
    of: dict[str, list[ErratumView]] = {}
    for erratum in errata:
        of.setdefault(erratum.name, []).append(erratum)
    return [
        replace(erratum, part=chr(ord("a") + i) if len(parts) > 1 else "")
        for parts in of.values()
        for i, erratum in enumerate(parts)
    ]
