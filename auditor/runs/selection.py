"""Selection of claims by their ids, and ids that are close to an unknown one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from auditor.errors import SpecificationError

#: Ids that are suggested for an unknown one.
_SUGGESTED = 3


class Identified(Protocol):
    """What has the id of a claim."""

    @property
    def id(self) -> str:
        """The id."""


class Filed(Identified, Protocol):
    """What has the id of a claim, and that of its entry."""

    @property
    def entry(self) -> str:
        """The entry's id."""


T = TypeVar("T", bound=Identified)
U = TypeVar("U", bound=Filed)


def select_claims(available: Sequence[T], expression: str | None) -> list[T]:
    """Claims whose id matches an expression.

    Parameters
    ----------
    available : sequence
        Claims, or anything else with an ``id``.
    expression : str, optional
        Substrings of ids, without case, with "and", "or", "not" and parentheses; or one whole id. None selects all.

    Returns
    -------
    list
        In the order of ``available``.

    Raises
    ------
    SpecificationError
        If the expression cannot be read or is empty, or nothing matches.
    """
    if expression is None:
        return list(available)
    if not expression.strip():  # such as a variable of a script that is not set
        raise SpecificationError(f"the selection {expression!r} is empty; without one, all claims are selected")
    exact = [claim for claim in available if claim.id == expression.strip()]
    if exact:
        return exact
    matches = [claim for claim in available if _Expression(expression).holds(claim.id)]
    if not matches:
        raise SpecificationError(f"no claim matches {expression!r} (there are {len(available)}; see `dpaudit list`)")
    return matches


def select_or_suggest(available: Sequence[U], expression: str | None) -> list[U]:
    """Select claims, with close ids in the message if nothing matches.

    Parameters
    ----------
    available : sequence
        Claims to choose from.
    expression : str or None
        As for `select_claims`; None selects all.

    Raises
    ------
    SpecificationError
        If the expression cannot be read, or nothing matches.
    """
    try:
        return select_claims(available, expression)
    except SpecificationError as error:
        close = suggest_ids(expression or "", available) if str(error).startswith("no claim") else ""
        raise SpecificationError(f"{error}{close}") from error


def suggest_ids(wanted: str, available: Sequence[Filed]) -> str:
    """Suggest ids close to an unknown one.

    They end a message; empty if there is none.

    Parameters
    ----------
    wanted : str
        The unknown id, or a part of one.
    available : sequence
        Claims whose ids, and whose entries' ids, are suggested.
    """
    ids = list(dict.fromkeys([*(claim.entry for claim in available), *(claim.id for claim in available)]))
    parts = [id_ for id_ in ids if wanted and wanted.lower() in id_.lower()]
    # Parts of ids, because most people know a mechanism's name and not its document.
    names = {part: id_ for id_ in reversed(ids) for part in (id_, id_.rpartition("/")[2])}
    close = [names[match] for match in difflib.get_close_matches(wanted, names, n=_SUGGESTED, cutoff=0.7)]
    found = list(dict.fromkeys([*parts, *close]))[:_SUGGESTED]
    return f"; did you mean {' or '.join(found)}?" if found else ""


class _Expression:
    """Recursive descent over ``or`` < ``and`` < ``not`` < word or parentheses; a word is a substring, without case."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = re.findall(r"[()]|[^\s()]+", text)

    def holds(self, id_: str) -> bool:
        """Whether the expression matches an id."""
        self.at, self.id = 0, id_.lower()
        value = self._parse_or()
        if self.at < len(self.tokens):
            raise self._error()
        return value

    def _error(self) -> SpecificationError:
        near = self.tokens[self.at] if self.at < len(self.tokens) else "its end"
        return SpecificationError(f"cannot read the selection {self.text!r} near {near!r}")

    def _take_token(self, *expected: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] in expected:
            self.at += 1
            return True
        return False

    def _parse_or(self) -> bool:
        value = self._parse_and()
        while self._take_token("or"):
            value = self._parse_and() or value
        return value

    def _parse_and(self) -> bool:
        value = self._parse_not()
        while self._take_token("and"):
            value = self._parse_not() and value
        return value

    def _parse_not(self) -> bool:
        if self._take_token("not"):
            return not self._parse_not()
        if self._take_token("("):
            value = self._parse_or()
            if not self._take_token(")"):
                raise self._error()
            return value
        if self.at >= len(self.tokens) or self.tokens[self.at] in ("and", "or", ")"):
            raise self._error()
        self.at += 1
        return self.tokens[self.at - 1].lower() in self.id
