"""Pairs that real implementations fail on: odd sizes, ends of the domain, duplicates, rows out of range."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.datasets.arithmetic import craft_changes
from auditor.datasets.labels import ReplaceCell, ReplaceLabel
from auditor.datasets.pandas_types import is_frame
from auditor.datasets.records import AddRemoveAnyOrder, AddRemoveOne, ReplaceOne, reverse_pairs
from auditor.datasets.relation import Pair, Relation
from auditor.datasets.rows import count_rows, find_ends, make_rows, rows_with_labels, same_row, with_entry
from auditor.datasets.users import PerUser
from auditor.errors import SpecificationError

#: Pairs at most: the last is looked at after 12,800 draws, 3 % of an audit's default budget, see
#: `auditor.audits.pair_search.next_pair`. The usual lists are shorter; what goes beyond differs little from earlier
#: pairs.
MOST_PAIRS = 200
#: Rows at most of the pairs beyond a relation's own patterns, so that 200 pairs fit into memory whatever ``rows`` is;
#: sizes beyond that were given have two pairs each.
MOST_ROWS = 10_000
#: Pairs of the relation's own patterns for each pair of another kind: the usual ones are tight more often.
_USUAL = 3
#: Entries of a record that are put out of range one by one; arbitrary.
_ENTRIES = 3
#: Values of the domain, and places in a dataset, that have a pair of their own: all of what people write down one by
#: one, and some of a longer range. Arbitrary.
_EACH = 30
#: A row, by what it is.
_Rows = dict[str, Any]


def hard_pairs(
    relation: Relation,
    values: Sequence[Any],
    rows: int,
    *,
    least: int = 0,
    outside: bool = False,
    arithmetic: bool = False,
    sizes: Iterable[int] = (),
) -> list[Pair]:
    """Pairs on which implementations go wrong, the most promising first.

    Parameters
    ----------
    relation : Relation
        For `ReplaceOne` and `AddRemoveOne` all kinds below are made, for others ``relation.patterns(values, rows)``.
    values : sequence
        Values of a row: numbers, texts, or records (lists, tuples, mappings, arrays). The first and the last are the
        ends of the domain.
    rows : int
        Rows of the longest datasets, at least 1, but for ``sizes`` and ``arithmetic``.
    least : int
        No dataset has fewer rows.
    outside : bool
        Make rows out of the domain as well. Off by default: a claim may assume the domain.
    arithmetic : bool
        Make rows between the ends of a numeric domain as well, and datasets of up to 65,536 rows, at which sums
        overflow, round or cancel. Off by default: a claim may be about the listed values alone.
    sizes : iterable of int
        Sizes at which the target is known to behave differently than with a row less, see
        `auditor.audits.size_thresholds.sizes_of_interest`.

    Returns
    -------
    list of Pair
        At most `MOST_PAIRS`, all different, each checked against the relation. The kinds take turns, so that any
        beginning of the list has some of each: the relation's own patterns; one row or none; sizes that were given;
        even and odd sizes; sizes around powers of two; zero and the middle of the domain; duplicated and different
        rows at the first and last index; rows out of the domain; and those of `auditor.datasets.arithmetic`. After all
        of these come each value of a short domain and each place of a short dataset.

    Raises
    ------
    SpecificationError
        If an argument is not what it must be, or no pair is left.
    """
    known = list(sizes)
    for name, value, smallest in (("rows", rows, 1), ("least", least, 0), *(("sizes", size, 0) for size in known)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < smallest:
            raise SpecificationError(f"{name} must be an integer of at least {smallest}, got {value!r}")
    gone, most = isinstance(relation, AddRemoveOne), max([int(rows), *known])
    usual = relation.patterns(values, max(int(rows) - gone, 1))  # those of a row that is added have one row more
    kinds: list[Iterator[Pair]] = [_up_to(most, usual)]
    each: list[Iterator[Pair]] = []  # these come last, as most defects show on others
    if isinstance(relation, ReplaceOne | AddRemoveOne):
        craft = _Craft(values, gone, min(int(rows), MOST_ROWS))
        kinds += [
            craft.tiny(),
            craft.thresholds(sorted(set(known))),
            craft.parities(),
            craft.powers(),
            craft.inside(),
            craft.copies(),
        ]
        kinds += [craft.beyond()] if outside else []
        each = [craft.each_value(), craft.each_place()]
        kinds, each = ([_up_to(most, kind) for kind in some] for some in (kinds, each))
        kinds += [craft.arithmetic()] if arithmetic else []
        if isinstance(relation, AddRemoveAnyOrder):
            kinds[1:], each = map(reverse_pairs, kinds[1:]), [reverse_pairs(kind) for kind in each]
    elif isinstance(relation, ReplaceLabel | ReplaceCell | PerUser):
        each = [_up_to(most, _to_each_value(relation, values, int(rows)))]
    pairs: dict[frozenset[Any], Pair] = {}
    for pair in itertools.chain(_in_turn(kinds), _in_turn(each)):
        if min(count_rows(pair.x), count_rows(pair.y)) < least:
            continue
        key = frozenset((hash_dataset(pair.x), hash_dataset(pair.y)))
        if key not in pairs and _neighbours(relation, pair):
            pairs[key] = pair
        if len(pairs) == MOST_PAIRS:
            break
    if not pairs:
        raise SpecificationError(
            f"no pair of datasets with rows of {_show_values(values)} and at least {least} rows, at most {most}, is "
            f"neighbouring under {relation.name}"
        )
    return list(pairs.values())


def _up_to(rows: int, pairs: Iterator[Pair]) -> Iterator[Pair]:
    return (pair for pair in pairs if max(count_rows(pair.x), count_rows(pair.y)) <= rows)


def _to_each_value(relation: Relation, values: Sequence[Any], rows: int) -> Iterator[Pair]:
    """A relation's first patterns, whose entry or row goes to each value of the domain in the place of its last one."""
    for k in _spread_places(values, range(1, len(values) - 1)):
        pairs = relation.patterns([*values[:k], *values[k + 1 :], values[k]], rows)
        for pair in itertools.islice(pairs, _USUAL):
            yield Pair(pair.x, pair.y, f"{pair.name}, to value {k} of the domain")


def _spread_places(values: Sequence[Any], places: range) -> list[int]:
    """Places in the domain, `_EACH` at most: those of missing values and of another type first, then evenly spread."""
    kind = type(values[0])
    odd = [k for k in places if type(values[k]) is not kind or _is_empty(values[k])]
    return list(dict.fromkeys([*odd[:_EACH], *_take_spread(places)]))[:_EACH]


def _take_spread(places: range) -> range:
    """`_EACH` of some places at most, evenly spread."""
    return places[:: max(1, -(-len(places) // _EACH))]


def _is_empty(value: Any) -> bool:
    return value != value if isinstance(value, float) else hasattr(value, "__len__") and not len(value)


@dataclass(frozen=True)
class _Craft:
    """Makes pairs of one relation: a row of x is replaced in y, or (``gone``) is not there."""

    values: Sequence[Any]
    gone: bool
    rows: int

    def pair(self, others: list[Any], index: int, a: tuple[str, Any], b: tuple[str, Any], what: str) -> Pair:
        """``a`` against ``b`` between the other rows, or ``b`` against nothing.

        Parameters
        ----------
        others : list
            The rows that both datasets share.
        index : int
            Place of the row among them, from 0.
        a, b : tuple of (str, value)
            Description and value of the row in the first and in the second dataset. Where the row is gone the first
            has ``b``, and ``a`` is not used.
        what : str
            What the other rows are, for the pair's name; it follows their number.
        """
        before, after = others[:index], others[index:]
        n = len(others) + 1
        count = "one row" if n == 1 else f"{n} rows"
        x = make_rows(self.values, [*before, b[1], *after])
        if self.gone:
            return Pair(x, make_rows(self.values, others), f"{count}{what}, row {index} ({b[0]}) removed")
        name = f"{count}{what}, row {index} {a[0]} against {b[0]}"
        return Pair(make_rows(self.values, [*before, a[1], *after]), x, name)

    def moves(self, rows: _Rows) -> Iterator[tuple[tuple[str, Any], tuple[str, Any]]]:
        """Pairs of changes of one row, and its removals.

        Each two of ``rows`` are exchanged, and each of them removed.
        """
        listed = list(rows.items())
        if self.gone:
            yield from ((row, row) for row in (*listed[1:2], listed[0], *listed[2:]))
            return
        for k in range(1, len(listed)):
            yield from ((listed[j], listed[j + k]) for j in range(len(listed) - k))

    def ends(self) -> _Rows:
        """The two ends of the domain."""
        low, high = find_ends(self.values)
        return {"lowest": low, "highest": high}

    def landmarks(self) -> _Rows:
        """Rows of the domain with a special property.

        All are different; the ends come first.
        """
        found = self.ends()
        numbers = [v for v in self.values if _is_number(v) and v == v]
        if len(numbers) == len(self.values):
            found |= {"zero": next((v for v in numbers if v == 0), numbers[0])}
            found |= {"smallest": min(numbers), "largest": max(numbers)}
        return _distinct_rows(found | {"middle": self.values[len(self.values) // 2]})

    def bases(self, n: int) -> dict[str, list[Any]]:
        """Other rows, n of them, by what they are."""
        low, high = find_ends(self.values)
        found = {", the others lowest": [low] * n, ", the others highest": [high] * n}
        if n > 1:
            found[", half of the others highest"] = [low] * (n // 2) + [high] * (n - n // 2)
        return found if n else {"": []}

    # ------------------------------------------------------------------------------------- kinds

    def tiny(self) -> Iterator[Pair]:
        """One row against another or none, and two and three rows."""
        for a, b in self.moves(self.landmarks()):
            yield self.pair([], 0, a, b, "")
        for n in (2, 3):
            yield from self._pairs_of_size(n, (n - 1,))

    def thresholds(self, sizes: Sequence[int]) -> Iterator[Pair]:
        """Sizes around a threshold of behaviour: before and after."""
        for size in sizes:
            yield from itertools.islice(self._pairs_of_size(size, (size - 1, 0)), None if size <= MOST_ROWS else 2)
        for size in sizes:
            for n in (size - 1, size + 1):
                yield from self._pairs_of_size(n, (n - 1,)) if size <= MOST_ROWS else ()

    def parities(self) -> Iterator[Pair]:
        """Even and odd sizes, whose halves differ most.

        They are the largest two, and small ones.
        """
        for n in dict.fromkeys((self.rows - 1, self.rows, 4, 5, 6, 7)):
            if n <= self.rows:
                yield from self._pairs_of_size(n, ((n - 1) // 2,))

    def powers(self) -> Iterator[Pair]:
        """Sizes around powers of two."""
        for power in (2**k for k in range(1, self.rows.bit_length() + 1)):
            for n in (power, power + 1, power - 1):
                if n <= self.rows:
                    yield from self._pairs_of_size(n, (n - 1,))

    def inside(self) -> Iterator[Pair]:
        """Zero, the middle and the ends, among equal rows."""
        rows = self.landmarks()
        for a, b in self.moves(rows):
            yield from (
                self.pair([row] * (self.rows - 1), 0, a, b, f", the others {name}" if self.rows > 1 else "")
                for name, row in rows.items()
            )

    def copies(self) -> Iterator[Pair]:
        """The changed row is a copy of others, or unique.

        The others are all different, or each is there twice.
        """
        n, (low, high) = self.rows - 1, find_ends(self.values)
        if n < 1:
            return
        cycle = [self.values[k % len(self.values)] for k in range(n)]
        bases = {
            ", one of the others highest": [low] * (n - 1) + [high],
            ", one of the others lowest": [high] * (n - 1) + [low],
            ", the others in the domain's order": cycle,
            ", the others against the domain's order": cycle[::-1],
            ", the others in twos": [self.values[k // 2 % len(self.values)] for k in range(n)],
        }
        for what, others in bases.items():
            for index in dict.fromkeys((0, n)):
                for a, b in self.moves(self.ends()):
                    yield self.pair(others, index, a, b, what)

    def each_value(self) -> Iterator[Pair]:
        """Each value of the domain against the lowest, among lowest rows."""
        low = self.values[0]
        for k in _spread_places(self.values, range(1, len(self.values))):
            value = f"value {k} of the domain", self.values[k]
            yield self.pair([low] * (self.rows - 1), 0, ("lowest", low), value, ", the others lowest")

    def each_place(self) -> Iterator[Pair]:
        """The changed row at each place, among lowest rows."""
        low, high = find_ends(self.values)
        for k in _take_spread(range(self.rows)):
            yield self.pair([low] * (self.rows - 1), k, ("lowest", low), ("highest", high), ", the others lowest")

    def beyond(self) -> Iterator[Pair]:
        """A row out of the domain against one in it.

        It is alone, among others, and one of the others.
        """
        inside, wild = self.ends(), _rows_outside(self.values)
        for n, k in ((self.rows, 0), (1, 0), (self.rows, 1)):
            for what, others in list(self.bases(n - 1).items())[k : k + 1]:
                for name, row in wild.items():
                    yield self.pair(others, 0, ("lowest", inside["lowest"]), (name, row), what)
        for name, row in wild.items():
            others = [inside["lowest"]] * max(self.rows - 2, 0) + [row]
            for a, b in self.moves(inside):
                yield self.pair(others, 0, a, b, f", one of the others {name}")

    def arithmetic(self) -> Iterator[Pair]:
        """Sums that overflow, round or cancel; none where rows are no numbers."""
        if all(_is_number(v) and math.isfinite(v) for v in self.values):
            for change in craft_changes(self.values, self.rows):
                yield self.pair(*change)

    def _pairs_of_size(self, n: int, indices: Sequence[int]) -> Iterator[Pair]:
        """Pairs of n rows."""
        if n < 1:
            return
        for index in dict.fromkeys(indices):
            for what, others in self.bases(n - 1).items():
                for a, b in self.moves(self.ends()):
                    yield self.pair(others, index, a, b, what)


def _rows_outside(values: Sequence[Any]) -> _Rows:
    """Rows out of the domain, of the kind of those in it; none for truth values."""
    low, high = find_ends(values)
    if all(_is_number(v) for v in values):
        return _numbers_outside(values)
    if all(isinstance(v, str) for v in values):
        found = {"empty": "", "unknown": "not in the domain", "long": max(values, key=len) * 1_000, "NUL": "\0"}
        found |= {"not ASCII": "\u00e9\u4e2d"}
        # Keys that become one where texts are folded or stripped.
        found |= {"lowest in the other case": low.swapcase(), "lowest with a space": f"{low} "}
        return {name: text for name, text in found.items() if text not in values}
    entries: Iterable[Any] = high if isinstance(high, Mapping) else range(min(map(_width, values)))
    found = {}
    for place in list(entries)[:_ENTRIES]:
        column = [row[place] for row in values if not isinstance(row, Mapping) or place in row]
        if all(_is_number(v) or isinstance(v, str) for v in column):
            for name, entry in _rows_outside([*column, *column]).items():
                found[f"entry {place} {name}"] = with_entry(low if place in _row_keys(low) else high, place, entry)
    return found


def _numbers_outside(values: Sequence[Any]) -> _Rows:
    """Numbers out of the domain; integers for a domain of integers, which an array of them holds."""
    low, high = min(values), max(values)
    if all(isinstance(v, int | np.integer) for v in values):
        size = max(abs(int(low)), abs(int(high)), 1)
        found: _Rows = {"just above": int(high) + 1, "just below": int(low) - 1, "ten times": 10 * size}
        # Beyond 32 bits, and beyond what floats hold exactly, each with room to be added up in 64 bits.
        found |= {"negative": -10 * size, "huge": 2**40, "hugely negative": -(2**54), "zero": 0}
        domain = np.asarray(values)
        held = np.iinfo(domain.dtype) if domain.dtype.kind in "iu" else np.iinfo(np.int64)
        found = {name: v for name, v in found.items() if held.min <= v <= held.max}
        return {name: v for name, v in found.items() if not low <= v <= high and abs(v) < 2**62}
    most = max(abs(float(low)), abs(float(high)), 1.0)
    found = {"just above": math.nextafter(high, math.inf), "just below": math.nextafter(low, -math.inf)}
    found |= {"ten times": 10 * most, "negative": -10 * most, "huge": 1e300, "hugely negative": -1e300, "zero": 0.0}
    found |= {"NaN": math.nan, "infinite": math.inf, "minus infinity": -math.inf}
    return {name: v for name, v in found.items() if not low <= v <= high}


def _row_keys(row: Any) -> Iterable[Any]:
    return row if isinstance(row, Mapping) else range(_width(row))


def _width(row: Any) -> int:
    return len(row) if isinstance(row, Mapping | list | tuple | np.ndarray) else 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool | np.bool_)


def _distinct_rows(rows: _Rows) -> _Rows:
    """Without rows that are the same as an earlier one."""
    found: _Rows = {}
    for name, row in rows.items():
        if not any(same_row(row, other) for other in found.values()):
            found[name] = row
    return found


def _in_turn(kinds: Sequence[Iterator[Pair]]) -> Iterator[Pair]:
    """The first kind's next pairs, then one of each other kind, until all are exhausted."""
    left = list(kinds)
    turns = {id(kind): 1 for kind in left} | {id(kind): _USUAL for kind in left[:1]}
    while left:
        for kind in list(left):
            for _ in range(turns[id(kind)]):
                pair = next(kind, None)
                if pair is None:
                    left.remove(kind)
                    break
                yield pair


def _neighbours(relation: Relation, pair: Pair) -> bool:
    try:
        relation.check(pair)
    except SpecificationError:
        return False
    return True


def _show_values(values: Sequence[Any]) -> str:
    text = repr(list(values[:6]))
    return text if len(text) <= 60 else text[:57] + "..."


def hash_dataset(data: Any) -> Any:
    """Hashable key, equal for datasets of equal type and content."""
    if isinstance(data, np.ndarray) and data.dtype != object:
        return (data.dtype.str, data.shape, data.tobytes())
    if is_frame(data):
        return (repr(list(data.columns)), repr(list(data.dtypes)), *map(hash_dataset, rows_with_labels(data)))
    if isinstance(data, list | tuple | np.ndarray):
        return (type(data).__name__, *map(hash_dataset, data))
    return repr(data)
