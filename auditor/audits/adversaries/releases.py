"""Releases of tables that an adversary made up: column counts, or means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from auditor.audits.adversaries.base import FloatArray, Stack
from auditor.errors import SpecificationError, TargetError
from auditor.targets import Mechanism

Unit: TypeAlias = Literal["counts", "means"]


def check_unit(unit: str) -> None:
    """Raise `SpecificationError` unless the unit is known."""
    if unit not in get_args(Unit):
        raise SpecificationError(f"unit must be one of {', '.join(get_args(Unit))}, got {unit!r}")


def release_tables(target: Mechanism, stack: Stack, rng: np.random.Generator) -> FloatArray:
    """One release for each of several tables.

    Parameters
    ----------
    target : Mechanism
        If it has a method ``each(stack, rng)``, that is asked for one release for each of several tables.
    stack : ndarray of int8, shape (trials, rows, columns)
        The tables.
    rng : numpy.random.Generator
        Of the target.

    Returns
    -------
    ndarray of shape (trials, columns)
        In the target's unit; it may hold anything that a float can.

    Raises
    ------
    TargetError
        If the target releases something else.
    """
    trials, _, columns = stack.shape
    each: Callable[[Stack, np.random.Generator], Any] | None = getattr(target, "each", None)
    # Copies: a target that changes its tables in place must not change what the adversary knows of them.
    if each is not None:
        found = [each(stack.copy(), rng)]
    else:
        found = [target(table.astype(np.int64), 1, rng) for table in stack]
    expected = f"expected {columns} numbers for each of {trials} tables"
    try:
        numbers = np.concatenate([_read_floats(one).reshape(-1, columns) for one in found])
    except (TypeError, ValueError, OverflowError):
        raise TargetError(f"{expected}, got {found[0]!r:.200}") from None
    if numbers.shape != (trials, columns):
        raise TargetError(f"{expected}, got shape {numbers.shape}")
    return numbers


def _read_floats(release: Any) -> FloatArray:
    """A release as floats; TypeError for complex numbers, times and texts, of which numpy makes floats too."""
    found = np.asarray(release)
    if found.dtype.kind not in "biufO":
        raise TypeError(f"no numbers: {found.dtype}")
    return found.astype(np.float64)
