"""Numbers and symbols that can be read off an output.

A feature maps a batch to one float an output; NaN means "has none", and lies in no event. Events are sets
{feature <= t} or {feature > t}. A learned ordering of symbols or cells is a feature as well: the rank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from auditor.events.elements import place_of
from auditor.targets.outputs import Batch, hash_outputs, read_column, read_matrix
from auditor.targets.values import PLAIN, strip_type

Array = NDArray[np.float64]

#: Outputs with more coordinates than this are looked at through sums, extremes and a linear score, and the first
#: coordinates only; arbitrary, keeps learning linear in what is drawn.
MAX_COORDINATES = 24
#: A set of values is written out up to this size; arbitrary, a line's length.
_WORDS = 8
#: Types that have a length.
_SIZED = {dict, list, tuple, str, bytes, set, frozenset}


class Feature(Protocol):
    """A number read off each output."""

    def __call__(self, batch: Batch) -> Array:
        """Values of shape (n,), NaN where there is none."""

    def below(self, cut: float) -> str:
        """The event {feature <= cut} in words."""

    def above(self, cut: float) -> str:
        """The event {feature > cut} in words."""


class Part(Protocol):
    """A part of each output, which is a symbol by itself."""

    @property
    def name(self) -> str:
        """In words."""

    def __call__(self, batch: Batch) -> Batch:
        """The part of each output."""


def subject_of(base: Feature | None) -> str:
    """Name what a feature reads; None is the whole output."""
    return "output" if base is None else str(getattr(base, "name", "a number of the output"))


def _rows(batch: Batch, width: int) -> Array:
    """Rows of ``width`` numbers; 0 stands for the width of the batch, which must be an array then."""
    return read_matrix(batch, width or np.shape(batch)[1])


def columns_of(batch: Batch, columns: Sequence[int], width: int) -> Array:
    """Columns of numeric outputs, shape (n, len(columns)).

    Outputs that are not ``width`` numbers are NaN.

    Parameters
    ----------
    batch : ndarray of shape (n, d), or list
        Outputs.
    columns : sequence of int
        Which columns, from 0.
    width : int
        Numbers that an output should have.
    """
    if isinstance(batch, np.ndarray) and batch.shape[1:] == (width,):
        return np.asarray(batch[:, list(columns)], dtype=np.float64)  # the other columns need not become floats
    return read_matrix(batch, width)[:, list(columns)]


@dataclass(frozen=True)
class Numeric:
    """A function of a numeric output.

    It is a coordinate or a statistic of all coordinates.

    Parameters
    ----------
    kind : str
        "value" for outputs of shape (n,); "coordinate", "difference" (coordinate i minus coordinate j), "sum", "half"
        (sum of the first half minus sum of the second), "max", "min" or "argmax" for outputs of shape (n, d).
    i, j : int
        Coordinates.
    width : int
        Number of coordinates d; an output of another shape has no value. 0: that of the batch.
    """

    kind: str
    i: int = 0
    j: int = 0
    width: int = 0

    @property
    def name(self) -> str:
        """In words."""
        return {
            "value": "output",
            "coordinate": f"output[{self.i}]",
            "difference": f"output[{self.i}] - output[{self.j}]",
            "sum": "sum(output)",
            "half": "sum(first half) - sum(second half)",
            "max": "max(output)",
            "min": "min(output)",
            "argmax": "argmax(output)",
        }[self.kind]

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        if self.kind == "value":
            return read_column(batch)
        if self.kind in ("coordinate", "difference"):
            return self._columns(batch)
        values = _rows(batch, self.width)
        with np.errstate(invalid="ignore", over="ignore"):
            if self.kind in ("sum", "half"):
                d = values.shape[1]
                signs = np.where(np.arange(d) < d // 2, 1.0, -1.0 if self.kind == "half" else 1.0)
                return np.asarray(values @ signs)
            if self.kind == "argmax":
                missing = np.isnan(values)
                filled = np.where(missing, -np.inf, values) if missing.any() else values
                first = place_of("first", filled == filled.max(axis=1, keepdims=True))
                return np.where(missing.all(axis=1), np.nan, first)
            return np.asarray(getattr(values, self.kind)(axis=1))

    def _columns(self, batch: Batch) -> Array:
        width = self.width or np.shape(batch)[1]
        values = columns_of(batch, [self.i] if self.kind == "coordinate" else [self.i, self.j], width)
        with np.errstate(invalid="ignore", over="ignore"):
            return values[:, 0] if self.kind == "coordinate" else np.asarray(values[:, 0] - values[:, 1])

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self.name} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self.name} > {cut:.6g}"


@dataclass(frozen=True)
class Distance:
    """Distance of a number from a point.

    Its events are intervals around the point, and their complements.
    """

    centre: float

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        with np.errstate(invalid="ignore", over="ignore"):
            return np.abs(read_column(batch) - self.centre)

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self.centre - cut:.6g} <= output <= {self.centre + cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"output < {self.centre - cut:.6g} or output > {self.centre + cut:.6g}"


@dataclass(frozen=True)
class Linear:
    """A linear score of the coordinates, missing ones counted as 0.

    Parameters
    ----------
    weights : tuple of float
        Weight of each coordinate, or of each of ``columns``.
    columns : tuple of int
        Coordinates that are scored; empty: all.
    width : int
        Number of coordinates of an output, where only some are scored.
    """

    weights: tuple[float, ...]
    columns: tuple[int, ...] = ()
    width: int = 0

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        values = columns_of(batch, self.columns, self.width) if self.columns else _rows(batch, len(self.weights))
        if (
            not (isinstance(batch, np.ndarray) and batch.dtype.kind in "biu" and batch.ndim == 2)
            or np.isnan(values).any()
        ):
            values = np.where(np.isfinite(values), values, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(values @ np.array(self.weights))

    def _describe_terms(self) -> str:
        top = sorted(range(len(self.weights)), key=lambda j: -abs(self.weights[j]))[:_WORDS]
        place = self.columns or range(len(self.weights))
        terms = [f"{self.weights[j]:+.3g} output[{place[j]}]" for j in sorted(top) if self.weights[j]]
        return " ".join(terms) + (" + ..." if len(self.weights) > _WORDS else "")

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_terms()} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_terms()} > {cut:.6g}"


@dataclass(frozen=True)
class Additive:
    """A sum of scores of the coordinates' cells ("naive Bayes").

    For coordinates with independent noise the sum of the cells' log-likelihood ratios is the whole output's.

    Parameters
    ----------
    edges : tuple of tuple of float
        Inner edges of each coordinate's cells, increasing.
    scores : tuple of tuple of float
        Score of each cell, in nats; the last one is that of a missing value.
    width : int
        Number of coordinates of an output; only the first ones may be scored.
    """

    edges: tuple[tuple[float, ...], ...]
    scores: tuple[tuple[float, ...], ...]
    width: int

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        values = _rows(batch, self.width)
        total = np.zeros(len(values))
        for j, (edges, scores) in enumerate(zip(self.edges, self.scores, strict=True)):
            if any(scores):  # NaN sorts last, into the cell of its own
                total += np.array(scores)[np.searchsorted(np.array([*edges, np.inf]), values[:, j], side="left")]
        return total

    def _describe_terms(self) -> str:
        used = [j for j, scores in enumerate(self.scores) if any(scores)]
        shown = ", ".join(f"output[{j}]" for j in used[:_WORDS]) + (", ..." if len(used) > _WORDS else "")
        return f"sum of log-likelihood ratios of {shown}"

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_terms()} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_terms()} > {cut:.6g}"


@dataclass(frozen=True)
class LatticeExponent:
    """Exponent of the largest power of two dividing a float.

    It counts the float's trailing zero bits.

    Floating-point noise leaves the outputs of two datasets on different lattices (Mironov 2012; design section 4).

    Parameters
    ----------
    i : int or None
        Coordinate of outputs of shape (n, width); None: the output is the number.
    width : int
        Number of coordinates; 0: that of the batch.
    base : Feature or None
        Where else the number is read.
    """

    i: int | None = None
    width: int = 0
    base: Feature | None = None

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        if self.base is not None:
            values = self.base(batch)
        else:
            values = read_column(batch) if self.i is None else Numeric("coordinate", self.i, width=self.width)(batch)
        finite = np.isfinite(values) & (values != 0)
        mantissa, exponent = np.frexp(np.where(finite, values, 1.0))
        whole = np.abs(mantissa * 2.0**53).astype(np.int64)
        trailing = np.log2((whole & -whole).astype(np.float64))
        return np.asarray(np.where(finite, exponent - 53 + trailing, np.nan))

    def _describe_subject(self) -> str:
        return subject_of(self.base) if self.i is None else f"output[{self.i}]"

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_subject()} is not a multiple of 2^{math.floor(cut) + 1}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_subject()} is a multiple of 2^{math.floor(cut) + 1}"


@dataclass(frozen=True)
class Lattice:
    """Distance from the lattice ``offset + step * integers``.

    The event {0} is membership (design, section 4).

    Exact where step and offset are multiples of one power of two and outputs below 2^53 times that.
    """

    step: float
    offset: float

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        with np.errstate(invalid="ignore"):
            away = np.fmod(read_column(batch) - self.offset, self.step)
            return np.asarray(np.minimum(np.abs(away), self.step - np.abs(away)))

    def below(self, cut: float) -> str:
        """In words."""
        return f"output is {self._points(cut)}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"output is not {self._points(cut)}"

    def _points(self, cut: float) -> str:
        near = f"within {cut:.6g} of " if cut else ""
        return f"{near}{f'{self.offset:.6g} plus ' if self.offset else ''}a multiple of {self.step:.6g}"


def _length_of(value: Any) -> float:
    """Length of an output, -1 where it has none: classes name the method, and one of an object's may raise anything."""
    try:
        return len(value)
    except Exception:  # noqa: BLE001 - code of the target
        return -1.0


@dataclass(frozen=True)
class Shape:
    """Shape of any Python value: its length, or its number."""

    kind: str

    @property
    def name(self) -> str:
        """In words."""
        return "length of the output" if self.kind == "length" else "output"

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        if isinstance(batch, np.ndarray):
            if self.kind == "length":
                return np.full(len(batch), batch.shape[1] if batch.ndim == 2 else -1.0)
            return np.full(len(batch), np.nan) if batch.dtype.kind == "b" else read_column(batch)
        kinds = set(map(type, batch))
        if self.kind == "length":
            if kinds <= _SIZED:
                return np.fromiter(map(len, batch), np.float64, len(batch))
            if kinds <= _SIZED | PLAIN:
                lengths = [len(v) if type(v) in _SIZED else -1.0 for v in batch]
                return np.array(lengths, dtype=np.float64)
            return np.fromiter(map(_length_of, map(strip_type, batch)), np.float64, len(batch))
        values = read_column(batch)
        if not kinds.isdisjoint({bool, np.bool_}):
            values[[isinstance(v, bool | np.bool_) for v in batch]] = np.nan
        return values

    def below(self, cut: float) -> str:
        """In words."""
        return f"{'length of the output' if self.kind == 'length' else 'output is a number and'} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{'length of the output' if self.kind == 'length' else 'output is a number and'} > {cut:.6g}"


@dataclass(frozen=True)
class Missing:
    """Which coordinates are NaN or infinite, counted.

    ``width`` is 0 for a number.

    With ``base`` whether the number that it reads is NaN or infinite: 1 or 0.
    """

    width: int = 0
    base: Feature | None = None

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        if self.base is not None:
            values = self.base(batch)
        elif self.width or (isinstance(batch, np.ndarray) and batch.ndim == 2):
            values = _rows(batch, self.width)
        else:
            values = read_column(batch)
        bad = ~np.isfinite(values)
        return np.asarray(bad.astype(np.float64) if bad.ndim == 1 else bad.sum(axis=1, dtype=np.float64))

    def below(self, cut: float) -> str:
        """In words."""
        if self.base is not None:
            return f"{subject_of(self.base)} is a finite number"
        if cut < 1:
            return "no coordinate is NaN or infinite"
        return f"at most {math.floor(cut)} coordinates are NaN or infinite"

    def above(self, cut: float) -> str:
        """In words."""
        if self.base is not None:
            return f"{subject_of(self.base)} is NaN or infinite"
        if cut < 1:
            return "a coordinate is NaN or infinite"
        return f"more than {math.floor(cut)} coordinates are NaN or infinite"


@dataclass(frozen=True)
class Rank:
    """A learned order of symbols or of histogram cells.

    Rank 0 is the most likely on the first dataset, relative to the second.

    Parameters
    ----------
    base : Feature or None
        None: symbols, the whole output is one. Otherwise the feature whose histogram cells are ranked.
    table : tuple of float or of int
        Sorted keys of the symbols, or sorted inner edges of the cells.
    ranks : tuple of int
        Rank of each symbol or cell. Symbols not in the table have none.
    labels : tuple of str
        Symbols or cells by rank, for the words.
    part : Part or None
        The part of an output that is the symbol; None: all of it.
    """

    base: Feature | None
    table: tuple[float, ...]
    ranks: tuple[int, ...]
    labels: tuple[str, ...] = field(compare=False)
    part: Part | None = None

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        if self.base is None:
            return self.of_keys(hash_outputs(batch if self.part is None else self.part(batch)))
        ranks = np.array(self.ranks, dtype=np.float64)
        values = self.base(batch)
        cell = np.searchsorted(np.array(self.table), values, side="left")
        return np.asarray(np.where(np.isnan(values), np.nan, ranks[np.minimum(cell, len(ranks) - 1)]))

    def of_keys(self, key: NDArray[np.int64]) -> Array:
        """Ranks of symbols with these keys, shape (n,)."""
        ranks = np.array(self.ranks, dtype=np.float64)
        table = np.array(self.table, dtype=np.int64)
        at = np.minimum(np.searchsorted(table, key), len(table) - 1)
        return np.asarray(np.where(table[at] == key, ranks[at], np.nan))

    def _describe_terms(self, labels: Sequence[str]) -> str:
        subject = "output" if self.part is None else self.part.name
        if len(labels) == 1:
            return f"{subject} is {labels[0]}"
        shown = ", ".join(labels[:_WORDS])
        more = f", ... ({len(labels)} in all)" if len(labels) > _WORDS else ""
        return f"{subject} in {{{shown}{more}}}"

    def below(self, cut: float) -> str:
        """In words."""
        return self._describe_terms(self.labels[: math.floor(cut) + 1])

    def above(self, cut: float) -> str:
        """In words."""
        return self._describe_terms(self.labels[math.floor(cut) + 1 :][::-1])


def is_coarse(values: NDArray[np.floating[Any]]) -> bool:
    """Whether all finite numbers are multiples of 2^-20.

    Outputs of usual size then have no low bits.
    """
    return bool(np.all(np.fmod(values[np.isfinite(values)], 2.0**-20) == 0))


def fixed_features(batch: Batch) -> list[Feature]:
    """Features that need no learning, simplest first, for outputs like these."""
    if isinstance(batch, list):
        return [Shape("number"), Shape("length")]
    floats = batch.dtype.kind == "f"
    finite = batch[np.isfinite(batch)] if floats else batch
    rounded = floats and is_coarse(finite)
    if batch.ndim == 1:
        found: list[Feature] = [Numeric("value")]
        if floats and len(finite) < len(batch):
            found.append(Missing())
        return found if rounded or not floats else [*found, LatticeExponent()]
    d = batch.shape[1]
    first = range(min(d, MAX_COORDINATES))
    found = [Numeric("coordinate", j, width=d) for j in first]
    if d > 1:
        found += [Numeric(kind, width=d) for kind in ("sum", "max", "min", "half", "argmax")]
        pairs = [(i, j) for i in range(d) for j in range(i)] if d <= 4 else [(j, j - 1) for j in first if j > 0]
        found += [Numeric("difference", i, j, width=d) for i, j in pairs]
    if floats:
        found.append(Missing(d))
        if not rounded:
            found += [LatticeExponent(j, d) for j in range(min(d, 4))]
    return found
