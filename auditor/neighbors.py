"""Relations between datasets, crafted pairs, and patterns of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.errors import SpecificationError


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring datasets.

    Parameters
    ----------
    x, y : array, DataFrame, list or tuple
        Datasets; a row is an element of the first axis.
    name : str
        What is special about the pair, in words.
    """

    x: Any
    y: Any
    name: str = "given pair"


class Relation(Protocol):
    """When two datasets are neighbours."""

    name: ClassVar[str]

    def check(self, pair: Pair) -> None:
        """Raise `SpecificationError` if the pair's datasets are not neighbours."""

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """Neighbouring pairs of datasets whose rows are taken from ``values``, about ``size`` rows long."""


def _length(data: Any) -> int:
    if not hasattr(data, "__len__"):
        raise SpecificationError(f"a dataset must have rows (an array, DataFrame, list or tuple), got {data!r}")
    return len(data)


def _differs(x: Any, y: Any) -> NDArray[np.bool_]:
    """Which rows of two datasets of one length differ; missing values equal one another."""
    if isinstance(x, pd.DataFrame) and isinstance(y, pd.DataFrame):
        a, b = x.to_numpy(), y.to_numpy()
        same = np.asarray((a == b) | (pd.isna(a) & pd.isna(b)), bool)
        return np.asarray(~same.all(axis=1))
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.shape == y.shape and x.dtype.kind in "biuf":
        same = (x == y) | ((x != x) & (y != y))
        return np.asarray(~same.all(axis=tuple(range(1, x.ndim))))
    return np.array([not _same_row(a, b) for a, b in zip(_rows(x), _rows(y), strict=True)], dtype=bool)


def _part(data: Any, start: int, stop: int) -> Any:
    return data.iloc[start:stop] if isinstance(data, pd.DataFrame) else data[start:stop]


def _rows(data: Any) -> list[Any]:
    if isinstance(data, pd.DataFrame):
        return [tuple(row) for row in data.itertuples(index=False)]
    return list(data.tolist()) if isinstance(data, np.ndarray) else list(data)


def _same_row(a: Any, b: Any) -> bool:
    """Equality of rows, in which missing values (NaN, None, NaT) equal one another."""
    if isinstance(a, list | tuple | np.ndarray) and isinstance(b, list | tuple | np.ndarray):
        return len(a) == len(b) and all(_same_row(c, d) for c, d in zip(a, b, strict=True))
    if _missing(a) or _missing(b):
        return _missing(a) and _missing(b)
    return bool(a == b)


def _missing(value: Any) -> bool:
    return value is None or (np.ndim(value) == 0 and bool(pd.isna(value)))


def _same_columns(x: Any, y: Any) -> None:
    if isinstance(x, pd.DataFrame) and isinstance(y, pd.DataFrame) and list(x.columns) != list(y.columns):
        raise SpecificationError(f"the datasets have different columns: {list(x.columns)} and {list(y.columns)}")


@dataclass(frozen=True)
class ReplaceOne:
    """Datasets of one length that differ in one row."""

    name: ClassVar[str] = "replace one"

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        n, m = _length(pair.x), _length(pair.y)
        if n != m:
            raise SpecificationError(f"{pair.name}: not neighbours under {self.name}: {n} rows against {m}")
        _same_columns(pair.x, pair.y)
        differing = int(_differs(pair.x, pair.y).sum())
        if differing != 1:
            raise SpecificationError(
                f"{pair.name}: not neighbours under {self.name}: {differing} rows differ, expected exactly 1"
            )

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """One row goes from the first value to the last, at the first, middle and last index of several datasets."""
        low, high = _ends(values)
        bases = {
            "all lowest": [low] * size,
            "all highest": [high] * size,
            "half and half": [low] * (size // 2) + [high] * (size - size // 2),
            "alternating": [(low, high)[k % 2] for k in range(size)],
        }
        for name, base in bases.items():
            for index in sorted({0, size // 2, size - 1}):
                a, b = list(base), list(base)
                a[index], b[index] = low, high
                yield Pair(_like(values, a), _like(values, b), f"{name}, row {index} replaced")
        yield Pair(_like(values, [low]), _like(values, [high]), "one row, replaced")


@dataclass(frozen=True)
class AddRemoveOne:
    """One dataset is the other with one row removed."""

    name: ClassVar[str] = "add or remove one"

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        n, m = _length(pair.x), _length(pair.y)
        if abs(n - m) != 1:
            raise SpecificationError(f"{pair.name}: not neighbours under {self.name}: {n} rows against {m}")
        _same_columns(pair.x, pair.y)
        long, short, size = (pair.x, pair.y, m) if n > m else (pair.y, pair.x, n)
        moved = np.flatnonzero(_differs(_part(long, 0, size), short))
        k = int(moved[0]) if len(moved) else size
        if _differs(_part(long, k + 1, size + 1), _part(short, k, size)).any():
            raise SpecificationError(
                f"{pair.name}: not neighbours under {self.name}: rows {k} and later are not those of the longer "
                "dataset with one row removed"
            )

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """One row is removed at the first, middle and last index of several datasets; down to the empty dataset."""
        low, high = _ends(values)
        bases = {
            "all lowest": [low] * size,
            "all highest": [high] * size,
            "half and half": [low] * (size // 2) + [high] * (size - size // 2),
        }
        for name, base in bases.items():
            for index in sorted({0, size // 2, size - 1}):
                for what, row in (("lowest", low), ("highest", high)):
                    long = [*base[:index], row, *base[index:]]
                    yield Pair(_like(values, long), _like(values, base), f"{name}, {what} row added at {index}")
        yield Pair(_like(values, [high]), _like(values, []), "one row against none")


@dataclass(frozen=True)
class AnswersWithin:
    """Vectors of query answers, each of which moves by at most ``sensitivity``.

    For mechanisms whose input is the answers of queries of bounded sensitivity (sparse vector, report noisy max): one
    row of the data moves every answer by at most the sensitivity.
    """

    sensitivity: float = 1.0
    name: ClassVar[str] = "every answer within the sensitivity"

    def __post_init__(self) -> None:
        if not self.sensitivity > 0:
            raise SpecificationError(f"sensitivity must be positive, got {self.sensitivity!r}")

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        try:
            x, y = np.asarray(pair.x, float), np.asarray(pair.y, float)
        except (ValueError, TypeError) as error:
            raise SpecificationError(
                f"{pair.name}: query answers must be numbers, got {pair.x!r} and {pair.y!r}"
            ) from error
        if x.shape != y.shape:
            raise SpecificationError(f"{pair.name}: not neighbours: {x.shape} answers against {y.shape}")
        moved = float(np.abs(x - y).max(initial=0.0))
        # A relative slack of 1e-12 lets answers that were computed in floating point attain the sensitivity.
        if not 0 < moved <= self.sensitivity * (1 + 1e-12):
            raise SpecificationError(
                f"{pair.name}: not neighbours: an answer moves by {moved:g}, expected more than 0 and at most "
                f"{self.sensitivity:g}"
            )

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """All answers up, one up, one up and the rest down, half up and half down."""
        base, s = np.full(size, float(values[0])), self.sensitivity
        moves = {"all up": np.full(size, s), "one up": np.where(np.arange(size) == 0, s, 0.0)}
        if size > 1:
            moves["one up, the rest down"] = np.where(np.arange(size) == size - 1, s, -s)
            moves["half up, half down"] = np.where(np.arange(size) < size // 2, s, -s)
        for name, move in moves.items():
            up = base + np.maximum(move, 0)
            yield Pair(up, up - move, name)


def _ends(values: Sequence[Any]) -> tuple[Any, Any]:
    if len(values) < 2:
        raise SpecificationError(f"a domain needs at least two values, got {list(values)!r}")
    return values[0], values[-1]


def _like(values: Sequence[Any], rows: list[Any]) -> Any:
    """Rows as an array where the domain's values are numbers, as a list otherwise."""
    return np.array(rows, dtype=np.asarray(values).dtype) if np.asarray(values).dtype.kind in "biuf" else rows


def check_pairs(pairs: Sequence[Pair], relation: Relation | None) -> None:
    """Check every pair at load.

    Raises
    ------
    SpecificationError
        If there is no pair, or the datasets of one are not neighbours.
    """
    if not pairs:
        raise SpecificationError("no pair of neighbouring datasets was given")
    if relation is not None and (isinstance(relation, type) or not hasattr(relation, "check")):
        raise SpecificationError(f"relation must be one such as ReplaceOne(), got {relation!r}")
    for pair in pairs:
        if not isinstance(pair, Pair):
            raise SpecificationError(f"expected a Pair, got {pair!r}")
        if relation is not None:
            relation.check(pair)


#: Relations by the names that the command line takes.
RELATIONS: dict[str, type[ReplaceOne] | type[AddRemoveOne] | type[AnswersWithin]] = {
    "replace-one": ReplaceOne,
    "add-remove-one": AddRemoveOne,
    "answers-within": AnswersWithin,
}
