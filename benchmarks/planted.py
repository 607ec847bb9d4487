"""Violations planted in one event: what the resolution of an audit speaks of, see `auditor.evidence.power`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.guarantees import Guarantee
from auditor.neighbors import Pair

Array: TypeAlias = NDArray[np.float64]
Hits: TypeAlias = NDArray[np.bool_]
Place: TypeAlias = Callable[[Hits, float, np.random.Generator], Any]
"""Outputs, in the event where ``hits`` says so, by a law under which the event has the given probability."""

#: The pair of every planted violation.
PAIR = Pair(np.array([0]), np.array([1]), "0 against 1")
#: Symbols of an alphabet, and of a set of them; arbitrary.
_SYMBOLS, _SET = 30, 5
#: Where an interval begins; arbitrary.
_BEGIN = 0.37


@dataclass(frozen=True)
class Plant:
    """A kind of event.

    Parameters
    ----------
    name : str
        For tables; it keys the draws.
    place : callable
        Draws outputs in the event and outside.
    """

    name: str
    place: Place


@dataclass(frozen=True)
class Planted:
    """A mechanism with one event that is more probable on the first dataset, and nothing else that differs.

    Parameters
    ----------
    plant : Plant
        The event.
    rare, often : float
        Probability of the event on the second dataset, and on the first.
    """

    plant: Plant
    rare: float
    often: float

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        """``n`` outputs."""
        probability = self.rare if data[0] else self.often
        return self.plant.place(rng.random(n) < probability, self.rare, rng)


def plant_violation(plant: Plant, guarantee: Guarantee, level: float, rare: float) -> Planted:
    """A mechanism that attains ``level`` on an event of probability ``rare``, and keeps it elsewhere."""
    return Planted(plant, rare, float(guarantee.cap(np.array(rare), level)))


def _upper(hits: Hits, b: float, rng: np.random.Generator) -> Array:
    """Uniform numbers, the hits in the upper part of probability b."""
    u = rng.random(len(hits))
    return np.where(hits, 1 - b * u, (1 - b) * u)


def _interval(hits: Hits, b: float, rng: np.random.Generator) -> Array:
    u = rng.random(len(hits))
    outside = (1 - b) * u
    return np.where(hits, _BEGIN + b * u, np.where(outside < _BEGIN, outside, outside + b))


def _symbol(hits: Hits, _: float, rng: np.random.Generator) -> NDArray[np.int64]:
    others = rng.integers(1, _SYMBOLS, len(hits))
    return np.where(hits, 0, others)


def _set_of_symbols(hits: Hits, _: float, rng: np.random.Generator) -> NDArray[np.int64]:
    inside, outside = rng.integers(0, _SET, len(hits)), rng.integers(_SET, _SYMBOLS, len(hits))
    return (np.where(hits, inside, outside) * 7) % _SYMBOLS  # scattered among the others


def _words(hits: Hits, _: float, rng: np.random.Generator) -> list[str]:
    return [f"word {k}" for k in _symbol(hits, 0.0, rng).tolist()]


def _coordinate(d: int) -> Place:
    def place(hits: Hits, b: float, rng: np.random.Generator) -> Array:
        outputs = rng.random((len(hits), d))
        outputs[:, d // 2] = _upper(hits, b, rng)
        return outputs

    return place


def _bit(d: int) -> Place:
    """All of the first bits are 1 that make up b, among d of which others are fair."""

    def place(hits: Hits, _: float, rng: np.random.Generator) -> NDArray[np.int64]:
        outputs = rng.integers(0, 2, (len(hits), d))
        outputs[:, d // 2] = hits
        return outputs

    return place


def _sum(d: int) -> Place:
    def place(hits: Hits, b: float, rng: np.random.Generator) -> Array:
        outputs = rng.standard_normal((len(hits), d))
        wanted = special.ndtri(_upper(hits, b, rng)) * math.sqrt(d)
        return np.asarray(outputs + ((wanted - outputs.sum(axis=1)) / d)[:, None])

    return place


def _cell(hits: Hits, b: float, rng: np.random.Generator) -> Array:
    """Two coordinates, the hits with both in the upper part of probability sqrt(b)."""
    cut = 1 - math.sqrt(b)
    outputs = rng.random((len(hits), 2))
    while (wrong := ~hits & (outputs > cut).all(axis=1)).any():
        outputs[wrong] = rng.random((int(wrong.sum()), 2))
    outputs[hits] = cut + (1 - cut) * outputs[hits]
    return outputs


def _field(hits: Hits, b: float, rng: np.random.Generator) -> list[dict[str, float]]:
    first, second = rng.random((2, len(hits))).tolist()
    return [{"a": x, "b": y, "c": z} for x, y, z in zip(first, second, _upper(hits, b, rng).tolist(), strict=True)]


def _key(hits: Hits, _: float, rng: np.random.Generator) -> list[dict[str, float]]:
    values = rng.random(len(hits)).tolist()
    return [{"a": x, "b": 1.0} if hit else {"a": x} for x, hit in zip(values, hits.tolist(), strict=True)]


def _nothing(hits: Hits, _: float, rng: np.random.Generator) -> list[float | None]:
    return [None if hit else x for x, hit in zip(rng.random(len(hits)).tolist(), hits.tolist(), strict=True)]


def _length(hits: Hits, _: float, rng: np.random.Generator) -> list[list[int]]:
    sizes = np.where(hits, 5, rng.integers(2, 5, len(hits))).tolist()
    values = rng.integers(0, 10, (len(hits), 5)).tolist()
    return [row[:size] for row, size in zip(values, sizes, strict=True)]


PLANTS: tuple[Plant, ...] = (
    Plant("half line", _upper),
    Plant("interval", _interval),
    Plant("one symbol of 30", _symbol),
    Plant("five symbols of 30", _set_of_symbols),
    Plant("one string of 30", _words),
    Plant("presence of None", _nothing),
    Plant("presence of a key", _key),
    Plant("field of a dict", _field),
    Plant("length of a list", _length),
    Plant("cell of two coordinates", _cell),
    *(Plant(f"one coordinate of {d}", _coordinate(d)) for d in (2, 5, 20, 50, 120, 200)),
    *(Plant(f"one bit of {d}", _bit(d)) for d in (20, 120)),
    *(Plant(f"sum of {d} coordinates", _sum(d)) for d in (2, 20, 120)),
)
