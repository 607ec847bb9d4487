"""Mutants: wrong twins of a mechanism, which an audit has to catch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from auditor.targets.callables import Mechanism

Kind: TypeAlias = Literal["violation", "benign"]

Base = TypeVar("Base")
Built = TypeVar("Built", covariant=True)


@dataclass(frozen=True)
class Mutant(Generic[Base]):
    """A wrong twin of a reference mechanism.

    Parameters
    ----------
    name : str
        Names its claims, see `auditor.claims.broken`.
    build : callable
        From the reference mechanism to its mutant, which still claims what the reference claims.
    true_level : callable or None
        From the reference mechanism to the level of the claimed notion that the mutant has in truth: the supremum over
        neighbouring pairs, for a scalar query unless the note says otherwise. None where it depends on more than the
        reference mechanism; then the note says on what.
    kind : {"violation", "benign"}
        Whether the claim is broken. A benign mutant must never be called a violation; its distribution may still differ
        from the reference's (a deviation).
    note : str
        What is wrong, and which pair shows it.
    """

    name: str
    build: Callable[[Base], Mechanism]
    true_level: Callable[[Base], float] | None
    kind: Kind
    note: str


@dataclass(frozen=True)
class Twin(Generic[Built]):
    """Builds `cls` from the fields of the reference mechanism (for `Mutant.build`).

    Parameters
    ----------
    cls : callable
        A dataclass with the fields of the reference's.
    """

    cls: Callable[..., Built]

    def __call__(self, base: Any) -> Built:
        """Return the mutant with the same parameters as `base`."""
        return self.cls(**{field.name: getattr(base, field.name) for field in fields(base)})
