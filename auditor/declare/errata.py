"""Errata: statements that are wrong as printed, and the claims that show it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from auditor.errors import SpecificationError
from auditor.results import Verdict

if TYPE_CHECKING:
    from auditor.declare.base import Draft

Class: TypeAlias = Literal["false", "proof"]
Role: TypeAlias = Literal["as printed", "as corrected", "printed step", "statement"]

#: Roles of claims that show what is wrong; those of the others show what is right.
WRONG: tuple[Role, ...] = ("as printed", "printed step")


@dataclass(frozen=True)
class Erratum:
    """A statement that is wrong in the copy of the document that we have.

    Parameters
    ----------
    id : str
        Its id in the catalogue.
    kind : {"false", "proof"}
        "false": the statement has a counterexample. "proof": the statement holds, a printed step does not.
    summary : str
        What is stated.
    fails : str
        What fails.
    correction : str
        What is right.
    """

    id: str
    kind: Class
    summary: str
    fails: str = ""
    correction: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Class):
            raise SpecificationError(f"{self.id}: an erratum is of class {get_args(Class)}, got {self.kind!r}")


@dataclass(frozen=True)
class Shows:
    """What a claim shows of an erratum."""

    erratum: str
    role: Role


def as_printed(erratum: str, draft: Draft) -> Draft:
    """The statement as it is printed, expected to be refuted."""
    return _tagged(erratum, "as printed", draft)


def as_corrected(erratum: str, draft: Draft) -> Draft:
    """The statement as it should be, expected to hold."""
    return _tagged(erratum, "as corrected", draft)


def proof_step(erratum: str, draft: Draft) -> Draft:
    """A printed step of the proof by itself, expected to be refuted."""
    return _tagged(erratum, "printed step", draft)


def statement_holds(erratum: str, draft: Draft) -> Draft:
    """The statement whose proof has such a step, expected to hold."""
    return _tagged(erratum, "statement", draft)


def _tagged(erratum: str, role: Role, draft: Draft) -> Draft:
    refuted = draft.expected in (Verdict.VIOLATION, Verdict.DEVIATION)
    if refuted != (role in WRONG):
        wanted = "violation or deviation" if role in WRONG else "consistent"
        raise SpecificationError(
            f"case {draft.case}: shows {erratum!r} {role}, so it must expect {wanted}, not {draft.expected}"
        )
    return replace(draft, shows=Shows(erratum, role))
