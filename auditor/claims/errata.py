"""Errata: statements that are wrong as printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from auditor.errors import SpecificationError

Class: TypeAlias = Literal["false", "proof"]
Role: TypeAlias = Literal["as printed", "as corrected", "printed step", "statement"]

#: Roles of claims that show what is wrong; those of the others show what is right.
WRONG: tuple[Role, ...] = ("as printed", "printed step")


@dataclass(frozen=True)
class Erratum:
    """A wrong statement in our copy of a document.

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
