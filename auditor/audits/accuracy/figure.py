"""Curves that belong into one plot: an upper bound beside a lower one, a protocol beside another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.errors import SpecificationError


def _identity(value: float) -> float:
    return value


@dataclass(frozen=True)
class Figure:
    """The plot that a measured curve is drawn in.

    A report has one plot for each name.

    Parameters
    ----------
    name : str
        Title of the plot, a phrase; claims of any entry that give the same name share it.
    curve : str
        What this curve is, in a few words.
    axis : str
        Title of the horizontal axis, the same for all curves of the plot.
    measured : str
        Title of the vertical axis, the same for all curves of the plot. It is logarithmic.
    at : callable
        From a value of the claim's parameter to its place on the horizontal axis, default the value itself. A claim
        about growth in 2^d is drawn over d with ``math.log2``.
    logarithmic : bool
        The horizontal axis is logarithmic, where powers are straight lines. False: exponential growth is.

    Raises
    ------
    SpecificationError
        If a title is empty.
    """

    name: str
    curve: str
    axis: str
    measured: str
    at: Callable[[float], float] = _identity
    logarithmic: bool = True

    def __post_init__(self) -> None:
        for key in ("name", "curve", "axis", "measured"):
            if not str(getattr(self, key)).strip():
                raise SpecificationError(f"a figure needs {key}, got {getattr(self, key)!r}")

    @property
    def plot(self) -> tuple[str, str, bool]:
        """What all curves of the plot have in common."""
        return self.axis, self.measured, self.logarithmic

    def places(self, values: Sequence[float]) -> list[float]:
        """Places of values of the parameter on the horizontal axis.

        Raises
        ------
        SpecificationError
            If a place cannot be drawn.
        """
        found = [float(self.at(value)) for value in values]
        for value, place in zip(values, found, strict=True):
            if not math.isfinite(place) or (self.logarithmic and place <= 0):
                raise SpecificationError(f"figure {self.name!r}: {self.curve} cannot be drawn at {value:g} ({place})")
        return found

    def record(self, values: Sequence[float]) -> dict[str, Any]:
        """What a result holds of it, for the report."""
        return {
            "name": self.name,
            "curve": self.curve,
            "axis": self.axis,
            "measured": self.measured,
            "logarithmic": self.logarithmic,
            "at": self.places(values),
        }


def check_figures(figures: Sequence[tuple[str, Figure]]) -> None:
    """Refuse claims of one plot that disagree.

    They disagree about its axes, or share a curve's name.

    Parameters
    ----------
    figures : sequence of (str, Figure)
        Id of the claim, and its figure.

    Raises
    ------
    SpecificationError
        Naming both claims.
    """
    first: dict[str, tuple[str, Figure]] = {}
    curves: dict[tuple[str, str], str] = {}
    for claim, figure in figures:
        other, known = first.setdefault(figure.name, (claim, figure))
        if known.plot != figure.plot:
            raise SpecificationError(
                f"figure {figure.name!r} has axes {known.plot} in {other} and {figure.plot} in {claim}"
            )
        same = curves.setdefault((figure.name, figure.curve), claim)
        if same != claim:
            raise SpecificationError(f"figure {figure.name!r} has a curve {figure.curve!r} in {same} and in {claim}")
