"""Smaller and simpler pairs than a given one, as candidates for shrinking."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.datasets import AnswersWithin, EdgeNeighbors, NodeNeighbors, Pair, Relation
from auditor.datasets.column_dicts import get_columns, is_column_dict
from auditor.datasets.json_codec import same_data
from auditor.datasets.pandas_types import is_frame
from auditor.datasets.query_answers import read_answers
from auditor.datasets.rows import count_rows, describe_kind, has_rows, rows_of, rows_with_labels
from auditor.errors import SpecificationError

T = TypeVar("T")


class EnoughError(Exception):
    """Raised by a callable `Serves` that will be asked no more."""


#: Says of a pair whether it serves as well as the one before; raises `EnoughError` where nothing more is to be tried.
Serves: TypeAlias = Callable[[Pair], bool]
#: Places of a row in the two datasets; None where it is in one of them only.
Unit: TypeAlias = tuple[int | None, int | None]

#: Times that all steps are gone through: a later step seldom makes room for an earlier one. Arbitrary.
_ROUNDS = 3
#: Values that all common rows are set to at once, and rows that are set one by one; arbitrary, bounds what is tried.
_COMMON, _ONE_BY_ONE = 3, 20
#: What the name of a pair says of it.
_SHRUNK = ", shrunk"


def smaller_pair(
    pair: Pair, relation: Relation | None, serves: Serves, values: Sequence[Any] | None = None, least: int = 0
) -> Pair:
    """Remove and simplify what can be, as long as the pair serves.

    Parameters
    ----------
    pair : Pair
        What is known to serve.
    relation : Relation or None
        Every pair that is tried is checked against it. Without one only rows are removed that stand in both datasets at
        the same place, so that what the two differ in stays as it is.
    serves : callable
        Asked of each pair that is tried, at most once.
    values : sequence, optional
        The domain of a row. Without it, or where a row of the pair is none of these, only rows of the pair itself are
        taken in place of others: nobody says that a claim covers any that it does not hold.
    least : int
        Fewest rows of a dataset that the claim is about.

    Returns
    -------
    Pair
        The last one that served; the same object if none did.
    """
    best = pair

    def checked(found: Pair) -> bool:
        if has_fewer_rows(found, least):
            return False
        if relation is not None:
            try:
                relation.check(found)
            except SpecificationError:
                return False
        if not serves(found):
            return False
        nonlocal best
        best = found
        return True

    with suppress(EnoughError):
        if isinstance(relation, EdgeNeighbors | NodeNeighbors):
            _shrink_graphs(pair, checked)
        elif _pool(pair, ()) is not None:
            _shrink_rows(pair, relation, checked, values)
        elif isinstance(relation, AnswersWithin):
            _bring_to_zero(pair, checked)
    return best


def has_fewer_rows(pair: Pair, least: int) -> bool:
    """Whether a dataset of a pair has too few rows.

    Parameters
    ----------
    pair : Pair
        The pair; datasets without rows have none too few.
    least : int
        Fewest rows.
    """
    return any(has_rows(data) and count_rows(data) < least for data in (pair.x, pair.y))


def explain_kept(pair: Pair, relation: Relation | None) -> str:
    """Explain why nothing can be taken from a pair's datasets.

    Empty if something can.

    Parameters
    ----------
    pair : Pair
        The pair.
    relation : Relation or None
        As for `smaller_pair`.
    """
    if isinstance(relation, AnswersWithin | EdgeNeighbors | NodeNeighbors) or _pool(pair, ()) is not None:
        return ""
    if has_rows(pair.x) and has_rows(pair.y):
        return "the datasets are as given: their rows are of different types"
    return f"the datasets are as given: {describe_kind(pair.x)} has no rows to remove"


def _shrink_rows(pair: Pair, relation: Relation | None, serves: Serves, values: Sequence[Any] | None) -> None:
    rows = _Rows(pair, values, serves)
    for _ in range(_ROUNDS):
        before = rows.x, rows.y
        rows.drop(beyond_common=relation is not None)
        if relation is not None and not isinstance(relation, AnswersWithin):
            rows.simplify()
        if (rows.x, rows.y) == before:
            break
    if isinstance(relation, AnswersWithin):
        _bring_to_zero(rows.best, serves)


def _remove_units(units: Sequence[T], serves: Callable[[Sequence[T]], bool]) -> None:
    """Offer ever fewer of the units, first none, then without ever smaller blocks, down to one by one."""
    kept = list(units)
    if not kept or serves([]):
        return
    size = len(kept) // 2
    while size:
        start = 0
        while start < len(kept):
            fewer = kept[:start] + kept[start + size :]
            if serves(fewer):
                kept = fewer
            else:
                start += size
        size //= 2


# -------------------------------------------------------------------------------------------- rows


def _pool(pair: Pair, values: Sequence[Any]) -> Any:
    """Rows of both datasets and of the domain in one dataset of their kind, None where they are of several kinds."""
    x, y = pair.x, pair.y
    if type(x) is not type(y):
        return None
    if is_frame(x):
        import pandas as pd  # takes longer to import than all the rest together

        if len(values) or list(x.columns) != list(y.columns) or list(x.dtypes) != list(y.dtypes):
            return None
        pool = pd.concat([x, y])
        return pool if list(pool.dtypes) == list(x.dtypes) else None
    if isinstance(x, dict):
        return None if len(values) else _pool_columns(x, y)
    if isinstance(x, np.ndarray):
        if not x.ndim or not y.ndim or x.dtype != y.dtype or x.shape[1:] != y.shape[1:] or x.dtype.kind == "O":
            return None
        domain = np.empty((0, *x.shape[1:]), x.dtype)
        if len(values):
            domain = np.asarray(values)
            if domain.shape[1:] != x.shape[1:] or not np.can_cast(domain.dtype, x.dtype, "same_kind"):
                return None
        return np.concatenate([x, y, domain.astype(x.dtype)])
    return [*x, *y, *values] if type(x) in (list, tuple) else None


def _pool_columns(x: dict[Any, Any], y: dict[Any, Any]) -> Any:
    """Rows of two dicts of arrays as one, None unless their other members are the same."""
    columns = get_columns(x)
    if not (is_column_dict(x) and is_column_dict(y)) or columns.keys() != get_columns(y).keys() or x.keys() != y.keys():
        return None
    if not all(same_data(x[name], y[name]) for name in x.keys() - columns.keys()):
        return None
    pools = {name: _pool(Pair(column, y[name]), ()) for name, column in columns.items()}
    return None if any(pool is None for pool in pools.values()) else x | pools


def _take_rows(pool: Any, places: Sequence[int], like: Any) -> Any:
    """Rows of a pool at some places, as a dataset of the kind of another one."""
    if isinstance(pool, dict):
        return pool | {name: _take_rows(column, places, like[name]) for name, column in get_columns(pool).items()}
    if isinstance(pool, list):
        found = [pool[k] for k in places]
        return tuple(found) if isinstance(like, tuple) else found
    chosen = np.array(places, dtype=np.intp)
    if isinstance(pool, np.ndarray):
        return pool[chosen]
    import pandas as pd  # takes longer to import than all the rest together

    frame = pool.iloc[chosen]
    return frame.reset_index(drop=True) if isinstance(like.index, pd.RangeIndex) else frame


class _Rows:
    """A pair as places in a pool of rows: ``x`` and ``y`` say which ones the best pair so far has."""

    def __init__(self, pair: Pair, values: Sequence[Any] | None, serves: Serves) -> None:
        self.best, self._serves = pair, serves
        n, m = count_rows(pair.x), count_rows(pair.y)
        pool = _pool(pair, values) if values is not None and len(values) else None
        self._pool = _pool(pair, ()) if pool is None else pool
        rows = rows_of(self._pool)
        first: dict[str, int] = {}
        places = [first.setdefault(text, k) for k, text in enumerate(_write_rows(self._pool))]
        self.x, self.y = tuple(places[:n]), tuple(places[n : n + m])
        own, given = set(places[: n + m]), list(dict.fromkeys(places[n + m :]))
        if given and own <= set(given):
            at = {place: k for k, place in enumerate(given)}
            ends = (0, len(given) - 1)
            order = sorted(given, key=lambda place: (not _is_zero(rows[place]), at[place] not in ends, at[place]))
        else:
            order = sorted(own, key=lambda place: (not _is_zero(rows[place]), _size(rows[place]), place))
        #: Rows that may take the place of others, the simplest first.
        self._order = order
        self._tried: set[tuple[tuple[int, ...], tuple[int, ...]]] = {(self.x, self.y)}

    def _try_rows(self, x: Sequence[int], y: Sequence[int]) -> bool:
        chosen = tuple(x), tuple(y)
        if chosen in self._tried:
            return False
        self._tried.add(chosen)
        pair = Pair(self.take(chosen[0]), self.take(chosen[1]), _shrunk_name(self.best))
        if not self._serves(pair):
            return False
        self.best, (self.x, self.y) = pair, chosen
        return True

    def take(self, places: Sequence[int]) -> Any:
        """A dataset made of rows of the pool."""
        return _take_rows(self._pool, places, self.best.x)

    def _ends(self) -> tuple[int, int]:
        """How many rows the two have in common from the first one on, and then how many up to the last one."""
        shorter = min(len(self.x), len(self.y))
        start = next((k for k in range(shorter) if self.x[k] != self.y[k]), shorter)
        rest = shorter - start
        return start, next((k for k in range(rest) if self.x[-1 - k] != self.y[-1 - k]), rest)

    def _units(self) -> tuple[list[Unit], list[Unit]]:
        """Rows at one place of both datasets, and what the two differ in."""
        start, end = self._ends()
        n, m = len(self.x), len(self.y)
        common: list[Unit] = [(k, k) for k in range(start)]
        common += [(n - k, m - k) for k in range(end, 0, -1)]
        own: list[Unit] = []
        if n == m:
            for k in range(start, n - end):
                (common if self.x[k] == self.y[k] else own).append((k, k))
        else:
            own += [(k, None) for k in range(start, n - end)]
            own += [(None, k) for k in range(start, m - end)]
        return sorted(common, key=lambda unit: unit[0] or 0), own

    def drop(self, beyond_common: bool) -> None:
        """Remove common rows, or with ``beyond_common`` also differing ones."""
        _remove_units(self._units()[0], self._serves_with_only(0))
        if beyond_common:
            _remove_units(self._units()[1], self._serves_with_only(1))

    def _serves_with_only(self, which: int) -> Callable[[Sequence[Unit]], bool]:
        """Try the pair without all other units of the common ones (0), or of those that differ (1)."""
        x, y, units = self.x, self.y, self._units()[which]

        def serves(kept: Sequence[Unit]) -> bool:
            gone = set(units) - set(kept)
            gone_x, gone_y = ({unit[side] for unit in gone} for side in (0, 1))
            return self._try_rows(
                [place for k, place in enumerate(x) if k not in gone_x],
                [place for k, place in enumerate(y) if k not in gone_y],
            )

        return serves

    def simplify(self) -> None:
        """Put simpler rows in the place of others."""
        common, own = self._units()
        for place in self._order[:_COMMON] if common else ():
            if all(self.x[k] == place for k, _ in common if k is not None) or self._set_rows(common, place):
                break
        for i, j in own:
            self._set_simpler(i, None)
            self._set_simpler(None, j)
        for i, j in common if len(common) <= _ONE_BY_ONE else ():
            self._set_simpler(i, j)

    def _set_simpler(self, i: int | None, j: int | None) -> None:
        if i is None and j is None:
            return
        now = self.x[i] if i is not None else self.y[j or 0]
        rank = self._order.index(now) if now in self._order else len(self._order)
        # The simplest ones first; of many, those nearer by halves.
        for k in sorted({0, 1, 2, rank // 2, rank - rank // 4, rank - 1}):
            if 0 <= k < rank and self._set_rows([(i, j)], self._order[k]):
                return

    def _set_rows(self, units: Sequence[Unit], place: int) -> bool:
        """Try the pair with one row at all these places."""
        x, y = list(self.x), list(self.y)
        for i, j in units:
            if i is not None:
                x[i] = place
            if j is not None:
                y[j] = place
        return self._try_rows(x, y)


def _write_rows(data: Any) -> list[str]:
    """Texts of rows, equal for equal ones; arrays in them are not shortened."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return [repr(row) for row in rows_with_labels(data)]


def _shrunk_name(pair: Pair) -> str:
    return pair.name if pair.name.endswith(_SHRUNK) else pair.name + _SHRUNK


def _is_zero(row: Any) -> bool:
    if isinstance(row, tuple | list):
        return all(map(_is_zero, row))
    try:
        return not np.any(np.asarray(row, dtype=float))
    except (TypeError, ValueError):
        return False


def _size(row: Any) -> tuple[float, int]:
    """How far from simple a row is: a number by its size, others by the length of their text."""
    if isinstance(row, bool | int | float):
        return (abs(row) if math.isfinite(row) else math.inf), 0
    return 0.0, len(repr(row))


def _bring_to_zero(pair: Pair, serves: Serves) -> None:
    """Move both answers of a query together, so that the smaller one is 0: for all queries, or one after another."""
    try:
        x, y = read_answers(pair.x), read_answers(pair.y, like=pair.x)
    except (TypeError, ValueError, KeyError):
        return
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return
    places = [np.full(x.shape, True)]
    if x.ndim:
        places += [np.arange(len(x)) == k for k in range(min(len(x), _ONE_BY_ONE))]
    for at in places:
        low = np.where(at, np.minimum(x, y), 0.0)
        if low.any() and serves(
            Pair(_with_type_of(pair.x, x - low), _with_type_of(pair.y, y - low, pair.x), _shrunk_name(pair))
        ):
            x, y = x - low, y - low


def _with_type_of(like: Any, values: NDArray[np.float64], order: Any = None) -> Any:
    """Numbers in a dataset of the same kind; those of a dict in the order of another one."""
    if isinstance(like, dict):
        found, first = {}, 0
        for name in order or like:
            size = np.size(like[name])
            found[name] = _with_type_of(like[name], values[first : first + size].reshape(np.shape(like[name])))
            first += size
        return {name: found[name] for name in like}
    if isinstance(like, np.ndarray):
        return values.astype(like.dtype)
    if not isinstance(like, list | tuple):
        return type(like)(values.item())
    rows = [type(old)(new) for old, new in zip(like, values.tolist(), strict=True)]
    return tuple(rows) if isinstance(like, tuple) else rows


def places_of(pair: Pair, original: Pair) -> tuple[list[int], list[int], list[Any]] | None:
    """Which rows of another pair a pair is made of.

    Parameters
    ----------
    pair : Pair
        The pair.
    original : Pair
        The other pair, from which it was made.

    Returns
    -------
    (list of int, list of int, list of rows) or None
        Places of the rows of either dataset in a list that holds first the rows of both original datasets and then the
        rows returned, which are in neither. None if the datasets are not of one kind.
    """
    whole, part = _pool(original, ()), _pool(pair, ())
    if whole is None or part is None or type(whole) is not type(part):
        return None
    first: dict[str, int] = {}
    for k, text in enumerate(_write_rows(whole)):
        first.setdefault(text, k)
    added: list[Any] = []
    places: list[int] = []
    for row, text in zip(rows_of(part), _write_rows(part), strict=True):
        if text not in first:
            first[text] = count_rows(whole) + len(added)
            added.append(row)
        places.append(first[text])
    n = count_rows(pair.x)
    return places[:n], places[n:], added


def pair_at(x: Sequence[int], y: Sequence[int], added: Sequence[Any], original: Pair) -> Pair:
    """Inverse of `places_of`.

    Parameters
    ----------
    x, y : sequence of int
        Places of the rows of either dataset.
    added : sequence
        Rows that are in neither of the original datasets.
    original : Pair
        The pair that the places refer to.

    Raises
    ------
    SpecificationError
        If the original has no such rows.
    """
    rows = [count_rows(data) if has_rows(data) else 0 for data in (original.x, original.y)]
    size = sum(rows) + len(added)
    if _pool(original, added) is None or not all(0 <= k < size for side in (x, y) for k in side):
        raise SpecificationError(
            f"the datasets, of {rows[0]} and {rows[1]} rows, do not hold the recorded rows: "
            "are they those of the attack?"
        )
    made = _Rows(original, added, lambda _: False)
    return Pair(made.take(x), made.take(y), _shrunk_name(original))


# ------------------------------------------------------------------------------------------ graphs


def _shrink_graphs(pair: Pair, serves: Serves) -> None:
    """Remove nodes that both graphs have, then edges."""
    x, y, name = np.asarray(pair.x), np.asarray(pair.y), _shrunk_name(pair)
    nodes = _common_nodes(x, y)
    best = x, y

    def without_nodes(kept: Sequence[tuple[int, int]]) -> bool:
        nonlocal best
        gone = set(nodes) - set(kept)
        fewer = _delete_nodes(x, [i for i, _ in gone]), _delete_nodes(y, [j for _, j in gone])
        if not serves(Pair(*fewer, name)):
            return False
        best = fewer
        return True

    _remove_units(nodes, without_nodes)
    first, second = best
    place = dict(_common_nodes(first, second))
    edges = [(i, j) for i, j in np.argwhere(np.triu(first)).tolist()]

    def without_edges(kept: Sequence[tuple[int, int]]) -> bool:
        a, b = first.copy(), second.copy()
        for i, j in set(edges) - set(kept):
            a[i, j] = a[j, i] = 0
            if i in place and j in place:
                b[place[i], place[j]] = b[place[j], place[i]] = 0
        return serves(Pair(a, b, name))

    _remove_units(edges, without_edges)


def _delete_nodes(graph: NDArray[Any], nodes: list[int]) -> NDArray[Any]:
    return np.delete(np.delete(graph, nodes, axis=0), nodes, axis=1)


def _common_nodes(x: NDArray[Any], y: NDArray[Any]) -> list[tuple[int, int]]:
    """Nodes that two graphs have in common, of which one may have one node more."""
    n, m = len(x), len(y)
    if n == m:
        return [(k, k) for k in range(n)]
    long, short = (x, y) if n > m else (y, x)
    odd = next((v for v in range(len(long)) if np.array_equal(_delete_nodes(long, [v]), short)), None)
    if odd is None:
        return []
    pairs = [(k, k - (k > odd)) for k in range(len(long)) if k != odd]
    return pairs if n > m else [(j, i) for i, j in pairs]
