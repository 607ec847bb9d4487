"""Cells of a known distribution: partitions of all outputs whose probabilities are exact.

Every partition has one more cell, of probability 0, for outputs that the distribution does not have: off its lattice,
of another shape or type, not a number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from auditor.audits.partitions.finite import finite_cells
from auditor.audits.partitions.partition import Cells, FloatArray, IntArray, LawCells, View
from auditor.audits.partitions.scalar import Scalar, check_scalar, continuous_cells, lattice_cells
from auditor.errors import SpecificationError
from auditor.privacy.laws import FiniteLaw, Law, ProductLaw

__all__ = ["Cells", "FloatArray", "IntArray", "LawCells", "View", "cells_of"]

#: Coordinates of a product that are looked at, evenly spaced over all: arbitrary, bounds the time.
COORDINATES = 64
#: Pairs of coordinates up to which all pairs are looked at; beyond, neighbours, and the first with the last.
PAIRS = 32
#: Cells of a joint partition, and outcomes up to which a product of finite distributions is read as one finite
#: distribution.
JOINT, WHOLE = 4096, 256


def cells_of(law: Law, rounding: float | None = None) -> LawCells:
    """Partitions of the outputs of a distribution.

    Parameters
    ----------
    law : Law
        A finite distribution, one with a distribution function, or a product of such.
    rounding : float, optional
        Outputs of a continuous distribution are multiples of this, the nearest ones to what the distribution says; any
        other output is impossible. By default they may be rounded to multiples of
        `auditor.audits.partitions.scalar.GRAIN` or not; where the central half of the distribution is narrower than
        that, to `NARROW` of it.

    Raises
    ------
    SpecificationError
        If the distribution is none of these.

    Notes
    -----
    A cell's probability is exact: cells of continuous distributions end half-way between multiples of the rounding, so
    that an output falls into a cell rounded if and only if it does unrounded; those of lattice distributions, between
    lattice points.
    """
    if isinstance(law, ProductLaw):
        return _product(law, rounding)
    return LawCells(None, ((0, _cells(law, "output", rounding)),))


def _cells(law: Law, name: str, rounding: float | None) -> tuple[Cells, ...]:
    if isinstance(law, FiniteLaw):
        return (finite_cells(law, name),)
    if not callable(getattr(law, "cdf", None)):
        raise SpecificationError(f"expected a finite distribution, one with a cdf, or a product of such, got {law!r}")
    scalar: Scalar = law  # type: ignore[assignment]
    check_scalar(scalar, name)
    step = getattr(law, "step", None)
    if step is None:
        return (continuous_cells(scalar, name, rounding),)
    return lattice_cells(scalar, name, float(step))


def _product(law: ProductLaw, rounding: float | None) -> LawCells:
    width = len(law.parts)
    finite = [part for part in law.parts if isinstance(part, FiniteLaw)]
    if len(finite) == width and math.prod(len(part.outcomes) for part in finite) <= WHOLE:
        return LawCells(None, ((0, (finite_cells(_product_on_tuples(finite), "output"),)),))
    chosen = np.unique(np.linspace(0, width - 1, min(width, COORDINATES)).round().astype(int)).tolist()
    coordinates = tuple((i, _cells(law.parts[i], f"output[{i}]", rounding)) for i in chosen)
    every = list(itertools.combinations(range(len(chosen)), 2))
    if len(every) > PAIRS:
        every = [*itertools.pairwise(range(len(chosen))), (0, len(chosen) - 1)]
    small = [len(several[0].coarse[0].labels) for _, several in coordinates]
    return LawCells(width, coordinates, tuple((i, j) for i, j in every if small[i] * small[j] <= JOINT))


def _product_on_tuples(parts: Sequence[FiniteLaw]) -> FiniteLaw:
    """The product of finite distributions as one on tuples."""
    outcomes = tuple(itertools.product(*(part.outcomes for part in parts)))
    mass = np.array([math.prod(p) for p in itertools.product(*(part.probabilities.tolist() for part in parts))])
    return FiniteLaw(outcomes, mass)
