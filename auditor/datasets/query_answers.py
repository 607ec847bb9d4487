"""Query answers, of which one row of the data moves each by at most the sensitivity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from auditor.datasets.pandas_types import is_frame, is_series
from auditor.datasets.relation import Pair
from auditor.errors import SpecificationError

#: Relative slack that lets answers that were computed in floating point attain the sensitivity.
SLACK = 1e-12


def read_answers(data: Any, like: Any = None) -> NDArray[np.float64]:
    """Read query answers as numbers: one, several, or a dict of them.

    Parameters
    ----------
    data : number, array, list, tuple or dict of these
        The answers.
    like : optional
        Answers of the same queries, whose order those of a dict get.

    Raises
    ------
    ValueError, TypeError, KeyError
        If they are no numbers, or not those of the same queries.
    """
    if not isinstance(data, dict):
        return _as_numbers(data)
    names = list(like) if isinstance(like, dict) else list(data)
    if len(names) != len(data) or not names:
        raise KeyError("other queries")
    return np.concatenate([_as_numbers(data[name]).ravel() for name in names])


def _as_numbers(answers: Any) -> NDArray[np.float64]:
    found = np.asarray(answers)
    if found.dtype.kind in "cSUmM" or np.ma.getmaskarray(answers).any():
        raise TypeError("complex numbers, texts, times and masked entries are no answers")
    return np.asarray(found, dtype=float)


def _find_other_queries(x: Any, y: Any) -> str:
    """Why two datasets do not answer the same queries; empty if they do."""
    if isinstance(x, dict) != isinstance(y, dict):
        return "only one of the datasets is a dict"
    if isinstance(x, dict):
        if x.keys() != y.keys():
            return f"the datasets answer {list(x)} and {list(y)}"
        other = [name for name in x if np.shape(x[name]) != np.shape(y[name])]
        return f"{np.shape(x[other[0]])} answers against {np.shape(y[other[0]])} of {other[0]!r}" if other else ""
    if (is_frame(x) and is_frame(y)) or (is_series(x) and is_series(y)):
        names, others = (list(data.columns if is_frame(data) else data.index) for data in (x, y))
        return "" if names == others else f"the datasets answer {names} and {others}"
    return ""


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
            x, y = read_answers(pair.x), read_answers(pair.y)
        except (ValueError, TypeError, KeyError) as error:
            raise SpecificationError(
                f"{pair.name}: query answers must be numbers, got {pair.x!r} and {pair.y!r}"
            ) from error
        other = _find_other_queries(pair.x, pair.y)
        if other:
            raise SpecificationError(f"{pair.name}: not neighbours under {self.name}: {other}")
        if x.shape != y.shape:
            raise SpecificationError(f"{pair.name}: not neighbours: {x.shape} answers against {y.shape}")
        y = read_answers(pair.y, like=pair.x)
        moved = float(np.abs(x - y).max(initial=0.0))
        if not 0 < moved <= self.sensitivity * (1 + SLACK):
            raise SpecificationError(
                f"{pair.name}: not neighbours: an answer moves by {moved:g}, expected more than 0 and at most "
                f"{self.sensitivity:g}"
            )

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """All answers up, one up, and mixed patterns.

        One up and the rest down; half up and half down.

        See `Relation.patterns`; here ``size`` is the number of answers, and the first value one of them.
        """
        base, s = np.full(size, float(values[0])), self.sensitivity
        moves = {"all up": np.full(size, s), "one up": np.where(np.arange(size) == 0, s, 0.0)}
        if size > 1:
            moves["one up, the rest down"] = np.where(np.arange(size) == size - 1, s, -s)
            moves["half up, half down"] = np.where(np.arange(size) < size // 2, s, -s)
        for name, move in moves.items():
            up = base + np.maximum(move, 0)
            yield Pair(up, up - move, name)
