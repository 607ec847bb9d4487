"""Adversaries by name, as the command line has them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from auditor.audits.adversaries.base import Adversary
from auditor.audits.adversaries.exhaustive import Exhaustive
from auditor.audits.adversaries.fingerprints import BonehShaw, Tardos
from auditor.audits.adversaries.packing import Packing
from auditor.audits.adversaries.reconstruction import Decoding, Reconstruction
from auditor.audits.adversaries.releases import Unit
from auditor.audits.adversaries.tracing import Tracing
from auditor.errors import SpecificationError
from auditor.targets import Mechanism


def boneh_shaw(users: int = 10, block: int = 100) -> Callable[[Mechanism, Unit], Tracing]:
    """Tracing by the code of Boneh and Shaw.

    (users + 1) block columns, and one user fewer in each table.

    Parameters
    ----------
    users : int
        Number of users, at least 2.
    block : int
        Columns a block, at least 1.

    Returns
    -------
    callable
        From a target and what it releases ("counts" or "means") to the tracing.
    """
    code = BonehShaw(users, block)
    return lambda target, unit: Tracing(target, code, unit, difference=True)


def tardos(users: int = 10, coalition: int = 9, xi: float = 0.01) -> Callable[[Mechanism, Unit], Tracing]:
    """Tracing by the code of Tardos, whose length is 100 coalition^2 ln(1/xi).

    Parameters
    ----------
    users : int
        Number of users, at least 2.
    coalition : int
        Largest coalition that is to be traced, at least 1.
    xi : float
        Probability of accusing a given innocent user, in (0, 1).

    Returns
    -------
    callable
        From a target and what it releases ("counts" or "means") to the tracing.
    """
    code = Tardos(users, coalition, xi)
    return lambda target, unit: Tracing(target, code, unit)


#: What can be asked for, with its parameters and their defaults.
BY_NAME: Mapping[str, Callable[..., Any]] = {
    "reconstruction": Reconstruction,
    "decoding": Decoding,
    "exhaustive": Exhaustive,
    "packing": Packing,
    "tracing": boneh_shaw,
    "tardos": tardos,
}


@dataclass(frozen=True)
class Asked:
    """What a text asks for.

    Parameters
    ----------
    adversary : Adversary or None
        It plays games with the target.
    tracing : callable or None
        It makes an ordinary target of the target and the unit.
    unit : {"counts", "means"}
        What the target releases.
    """

    adversary: Adversary | None
    tracing: Callable[[Mechanism, Unit], Tracing] | None
    unit: Unit


def parameters_of(name: str) -> dict[str, int | float | str | None]:
    """Command-line parameters of an adversary, with defaults.

    None stands for a number or nothing.

    Others, such as a decoder, are for Python.
    """
    return {
        key: parameter.default
        for key, parameter in inspect.signature(BY_NAME[name]).parameters.items()
        if isinstance(parameter.default, int | float | str | None)
    }


def adversary_named(text: str) -> Asked:
    """Read ``NAME`` or ``NAME:key=value,key=value``, for example "packing:rows=50,columns=50,unit=means".

    Raises
    ------
    SpecificationError
        If there is no such adversary or parameter, or a value is of another kind.
    """
    name, _, rest = text.partition(":")
    if name not in BY_NAME:
        raise SpecificationError(f"adversary must be one of {', '.join(BY_NAME)}, got {name!r}")
    known = parameters_of(name)
    values: dict[str, Any] = {}
    unit: Any = "counts"
    for part in filter(None, rest.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key == "unit":
            unit = value
            continue
        if not equals or key not in known:
            takes = ", ".join(f"{one}={default}" for one, default in known.items())
            raise SpecificationError(f"adversary {text!r}: {part!r} is none of {takes}, unit=counts")
        values[key] = _read(text, key, value, known[key])
    if unit not in get_args(Unit):
        raise SpecificationError(f"adversary {text!r}: unit must be counts or means, got {unit!r}")
    made = BY_NAME[name](**values)
    return Asked(made, None, unit) if isinstance(made, Adversary) else Asked(None, made, unit)


def _read(text: str, key: str, value: str, default: float | str | None) -> int | float | str:
    """A value of the default's kind; a whole number where that is one, or None."""
    if isinstance(default, str):
        return value
    whole = default is None or isinstance(default, int)
    try:
        return int(value) if whole else float(value)
    except ValueError:
        kind = "a whole number" if whole else "a number"
        raise SpecificationError(f"adversary {text!r}: {key} must be {kind}, got {value!r}") from None
