"""Dataset sizes at which a target changes its behaviour, found by bisection."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from auditor.datasets.rows import find_ends, make_rows
from auditor.errors import SpecificationError, TargetRaised
from auditor.targets.outputs import Raised, Typed, hash_outputs
from auditor.targets.sampler import Sampler

#: A property of an output: where in it, of what kind, and what.
Trait: TypeAlias = tuple[str, str, Hashable]

#: Draws on each size. A property that a random half of the outputs has looks like a difference of two sizes, see
#: `Behaviour.differs`, with probability 2 * 4^-8 = 3e-5.
DRAWS = 8
#: Sizes that are looked at, at most: 320 draws. A ladder to 1,000 rows has 12 and a bisection between its upper rungs
#: takes 9 more; a target that behaves differently on every size is not to take the whole budget.
MOST_SIZES = 40
#: Elements of an output that are looked at, and characters of a text; arbitrary.
_ELEMENTS, _CHARACTERS = 16, 40
#: Outputs inside outputs are looked at down to this depth; arbitrary.
_DEPTH = 2


@dataclass(frozen=True)
class Behaviour:
    """What a target does on one dataset, coarsely.

    Parameters
    ----------
    always : frozenset of Trait
        Properties that all outputs had.
    ever : frozenset of Trait
        Properties that some output had.
    size : int
        Rows of the dataset.
    """

    always: frozenset[Trait]
    ever: frozenset[Trait]
    size: int = 0

    def differs(self, other: Behaviour) -> bool:
        """Whether a property separates the outputs on two datasets.

        It is that of all outputs on the one and of none on the other.

        What is random, such as a length that varies or a value that some draws have, is hardly ever seen so. Outputs
        that are as long as the dataset behave alike, whatever that is.
        """
        return self._loses_trait(other) or other._loses_trait(self)

    def _loses_trait(self, other: Behaviour) -> bool:
        return any(other.ever.isdisjoint((trait, self._trait_at_size(trait, other.size))) for trait in self.always)

    def _trait_at_size(self, trait: Trait, size: int) -> Trait:
        """The same property of outputs on so many rows, where it is the number of rows."""
        place, aspect, what = trait
        return (place, aspect, size) if aspect == "length" and what == self.size else trait


def summarise_behaviour(outputs: Sequence[Any], size: int = 0) -> Behaviour:
    """Coarse signature of what a target does on a dataset.

    Parameters
    ----------
    outputs : sequence
        A few outputs.
    size : int
        Rows of the dataset.

    Returns
    -------
    Behaviour
        Types, lengths, keys, exceptions, NaN and infinities, zeros and whole numbers, texts and other symbols; and
        whether neighbouring outputs are equal.
    """
    seen = [frozenset(_traits(output, "", 0)) for output in outputs]
    if not seen:
        return Behaviour(frozenset(), frozenset(), size)
    repeats = {("", "repeats", bool(a == b)) for a, b in pairwise(hash_outputs(list(outputs)).tolist())}
    always = frozenset.intersection(*seen) | (repeats if len(repeats) == 1 else set())
    return Behaviour(always, frozenset.union(*seen) | repeats, size)


def _traits(value: Any, place: str, depth: int) -> Iterator[Trait]:
    """Properties of one output, or of what stands at a place in it."""
    if isinstance(value, Raised):
        yield (place, "raised", value.error)
        return
    if isinstance(value, Typed):
        yield (place, "type", value.kind)
        yield from _traits(value.value, place, depth)
        return
    yield (place, "type", type(value).__name__)
    if value is None or isinstance(value, bool | str):
        yield (place, "symbol", repr(value)[:_CHARACTERS])
    elif isinstance(value, int | float):
        yield (place, "zero", value == 0)
        yield (place, "finite", isinstance(value, int) or math.isfinite(value))
        yield (place, "NaN", value != value)
        yield (place, "whole", isinstance(value, int) or value.is_integer())
    elif isinstance(value, Mapping | list | tuple | bytes | set | frozenset):
        yield (place, "length", len(value))
        if depth == _DEPTH:
            return
        if isinstance(value, Mapping):
            for key in list(value)[:_ELEMENTS]:
                name = repr(key)[:_CHARACTERS]
                yield (place, "key", name)
                yield from _traits(value[key], f"{place}[{name}]", depth + 1)
        elif isinstance(value, list | tuple):
            for element in value[:_ELEMENTS]:
                yield from _traits(element, f"{place}[]", depth + 1)


def find_thresholds(draw: Callable[[int], Sequence[Any]], sizes: Iterable[int]) -> list[int]:
    """Sizes on which a target behaves differently than with one row less.

    Parameters
    ----------
    draw : callable
        From a number of rows to a few outputs on so many.
    sizes : iterable of int
        Sizes to begin with. Between two that follow one another and behave differently one change is found.

    Returns
    -------
    list of int
        Increasing. No more than `MOST_SIZES` sizes are looked at; where that ends the search, changes that were not yet
        narrowed down to one row are given as their upper ends.
    """
    known: dict[int, Behaviour] = {}

    def at(size: int) -> Behaviour:
        if size not in known:
            known[size] = summarise_behaviour(draw(size), size)
        return known[size]

    ladder = sorted(set(sizes))[:MOST_SIZES]
    changes = deque((a, b) for a, b in pairwise(ladder) if at(a).differs(at(b)))
    found = []
    while changes:
        # Wide and narrow gaps in turn, so that the end of the budget is felt by all.
        low, high = changes.popleft()
        middle = (low + high) // 2
        if high - low == 1 or (middle not in known and len(known) >= MOST_SIZES):
            found.append(high)
        else:
            changes.append((low, middle) if at(low).differs(at(middle)) else (middle, high))
    return sorted(set(found))


def ladder_of(rows: int, least: int = 0) -> list[int]:
    """Sizes 0, 1, 2, 4, 8, ... and ``rows``, from ``least`` on.

    Parameters
    ----------
    rows : int
        Largest size.
    least : int
        Smallest size, by default 0.

    Returns
    -------
    list of int
        Increasing; empty if ``least`` is above ``rows``.
    """
    powers = [2**k for k in range(rows.bit_length())]
    return sorted({size for size in (0, least, *powers, rows) if least <= size <= rows})


def sizes_of_interest(
    sampler: Sampler, values: Sequence[Any], rows: int, *, least: int = 0, draws: int = DRAWS
) -> tuple[int, ...]:
    """Numbers of rows at which a target changes its behaviour.

    They are for `auditor.datasets.hard_pairs`.

    Parameters
    ----------
    sampler : Sampler
        Draws of the target.
    values : sequence
        Values of a row; datasets have the first and the last in turns.
    rows : int
        Largest number of rows.
    least : int
        Smallest number of rows.
    draws : int
        Draws on each size, at least 2; each is asked for by itself, so that an exception is an outcome.

    Returns
    -------
    tuple of int
        Sizes on which the target behaves differently than on one row less, increasing.

    Raises
    ------
    TargetError
        If the target dies, hangs, or answers what cannot be read; not if its code raises.
    SpecificationError
        If an argument is not what it must be.

    Notes
    -----
    Valid because: the draws are keyed by "search" and are no evidence. Given the sizes, an audit's draws are
    independent of them, as of sizes that were fixed beforehand.
    """
    for name, value, smallest in (("rows", rows, 1), ("least", least, 0), ("draws", draws, 2)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < smallest:
            raise SpecificationError(f"{name} must be an integer of at least {smallest}, got {value!r}")
    low, high = find_ends(values)

    def draw(size: int) -> list[Any]:
        data = make_rows(values, [(low, high)[k % 2] for k in range(size)])
        return [_output(sampler, data, size, k) for k in range(draws)]

    return tuple(find_thresholds(draw, ladder_of(int(rows), int(least))))


def _output(sampler: Sampler, data: Any, size: int, k: int) -> Any:
    """One draw, as plain Python data."""
    try:
        batch = sampler.draw(data, 1, "search", "behaviour", size, k)
    except TargetRaised as error:
        return Raised(error.error)
    return batch.tolist()[0] if isinstance(batch, np.ndarray) else batch[0]
