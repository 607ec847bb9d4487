"""Rows of datasets of every kind: their number, equality, entries, and datasets made of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.datasets.column_dicts import get_columns, is_column_dict
from auditor.datasets.pandas_types import is_frame, is_missing, is_series
from auditor.errors import SpecificationError, require_library

#: Floats are exact for integers up to it.
_EXACT = 2**53
#: Error message for sets where rows have places.
UNORDERED = "the rows of a set have no order: give a list, or state that rows are added or removed in any order"


def has_rows(data: Any) -> bool:
    """Whether a dataset has rows.

    A number, a text or None has none.
    """
    if isinstance(data, dict):
        return is_column_dict(data)
    if isinstance(data, str | bytes) or not hasattr(data, "__len__"):
        return False
    return not isinstance(data, np.ndarray) or data.ndim > 0


def count_rows(data: Any) -> int:
    """Count the rows.

    Raises
    ------
    SpecificationError
        If the dataset has none.
    """
    if not has_rows(data):
        raise SpecificationError(
            "a dataset must have rows (an array, DataFrame, list, tuple or dict of equally long arrays), got "
            f"{describe_kind(data) if isinstance(data, dict) else repr(data)}"
        )
    return len(next(iter(get_columns(data).values()))) if isinstance(data, dict) else len(data)


def describe_kind(data: Any) -> str:
    """Say of what kind a dataset is, without its values."""
    if data is None:
        return "null"
    if isinstance(data, dict):
        lengths = sorted({len(column) for column in get_columns(data).values()})
        if len(lengths) > 1:
            return f"a dict of arrays of {', '.join(map(str, lengths[:-1]))} and {lengths[-1]} entries"
        return "a dict of arrays" if lengths else "a dict without arrays"
    if isinstance(data, bool | np.bool_):
        return "a truth value"
    if isinstance(data, int | float | np.number):
        return "a number"
    return "a text" if isinstance(data, str) else f"a {type(data).__name__}"


def find_differing_rows(x: Any, y: Any) -> NDArray[np.bool_]:
    """Rows in which two datasets of one length differ.

    Shape (rows,); missing values equal one another.

    Parameters
    ----------
    x, y : array, DataFrame, list, tuple or dict of equally long arrays
        Datasets of one length. The index of a DataFrame counts, but for numbers of rows without a name.
    """
    if isinstance(x, set | frozenset) or isinstance(y, set | frozenset):
        raise SpecificationError(UNORDERED)
    if isinstance(x, dict) and isinstance(y, dict) and get_columns(x).keys() == get_columns(y).keys():
        differing = [find_differing_rows(column, y[name]) for name, column in get_columns(x).items()]
        return np.asarray(np.any(differing, axis=0), bool)
    if is_frame(x) and is_frame(y):
        if _is_of_one_type(x) and _is_of_one_type(y):  # a table of them is no conversion
            columns = [find_differing_rows(x.to_numpy(), y.to_numpy())]
        else:
            columns = [find_differing_rows(x.iloc[:, k], y.iloc[:, k]) for k in range(x.shape[1])]
        return np.asarray(np.any([*columns, find_differing_labels(x, y)], axis=0), bool)
    if is_series(x) and is_series(y):
        # Nullable types have objects that `==` does not compare, and numbers that are no floats.
        return find_differing_rows(*(part.to_numpy() if _is_of_numpy(part) else part.tolist() for part in (x, y)))
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.shape == y.shape and _are_comparable(x, y):
        same = (x == y) | ((x != x) & (y != y))
        return np.asarray(~same.all(axis=tuple(range(1, x.ndim))))
    return np.array([not same_row(a, b) for a, b in zip(rows_of(x), rows_of(y), strict=True)], dtype=bool)


def find_differing_labels(x: Any, y: Any) -> NDArray[np.bool_]:
    """Rows in which the indices of two DataFrames differ.

    None where both indices are numbers of rows without a name.

    Parameters
    ----------
    x, y : DataFrame
        Datasets of one length, whose indices have the same names.
    """
    if not (_has_labels(x) or _has_labels(y)):
        return np.zeros(len(x), dtype=bool)
    levels = [find_differing_rows(*part) for part in zip(_list_labels(x), _list_labels(y), strict=True)]
    return np.asarray(np.any(levels, axis=0), bool)


def _has_labels(frame: Any) -> bool:
    """Whether the index of a DataFrame holds more than numbers of rows without a name."""
    named = any(name is not None for name in frame.index.names)
    return named or bool(len(frame) and frame.index.dtype.kind not in "iu")


def _list_labels(frame: Any) -> list[Any]:
    """Levels of the index of a DataFrame, as columns."""
    return [frame.index.get_level_values(k).to_series() for k in range(frame.index.nlevels)]


def _are_comparable(x: NDArray[Any], y: NDArray[Any]) -> bool:
    """Whether `==` compares all entries of two arrays.

    It does not compare those that a mask covers, and rounds large integers beside floats.
    """
    if isinstance(x, np.ma.MaskedArray) or isinstance(y, np.ma.MaskedArray):
        return False
    kinds = {x.dtype.kind, y.dtype.kind}
    if "f" in kinds and kinds & {"i", "u"}:
        whole = y if x.dtype.kind == "f" else x
        return not whole.size or (int(whole.min()) >= -_EXACT and int(whole.max()) <= _EXACT)
    return kinds <= set("biuf") or x.dtype.kind == y.dtype.kind in "mM"


def _is_of_one_type(frame: Any) -> bool:
    """Whether all columns of a DataFrame are of one type of numpy's numbers."""
    return len(set(frame.dtypes)) == 1 and _is_of_numpy(frame.iloc[:, 0])


def _is_of_numpy(column: Any) -> bool:
    return isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufmM"


def slice_rows(data: Any, start: int, stop: int) -> Any:
    """Rows ``start`` to ``stop``.

    Parameters
    ----------
    data : array, DataFrame, list or tuple
        A dataset.
    start, stop : int
        As in a slice: from 0, ``stop`` left out.

    Returns
    -------
    array, DataFrame, list or tuple
        Of the type of the dataset.
    """
    if isinstance(data, dict):
        return data | {name: slice_rows(column, start, stop) for name, column in get_columns(data).items()}
    if isinstance(data, set | frozenset):
        raise SpecificationError(UNORDERED)
    return data.iloc[start:stop] if is_frame(data) else data[start:stop]


def reverse_rows(data: Any) -> Any:
    """Rows in the opposite order.

    Parameters
    ----------
    data : array, DataFrame, list, tuple or dict of equally long arrays
        A dataset.

    Returns
    -------
    array, DataFrame, list, tuple or dict
        Of the type of the dataset.
    """
    if isinstance(data, dict):
        return data | {name: reverse_rows(column) for name, column in get_columns(data).items()}
    return data.iloc[::-1].reset_index(drop=True) if is_frame(data) else data[::-1]


def select_rows(data: Any, kept: NDArray[np.bool_]) -> Any:
    """Rows at which ``kept``, of shape (rows,), is true.

    Parameters
    ----------
    data : array, DataFrame, list or tuple
        A dataset.
    kept : ndarray of bool, shape (rows,)
        Which rows to keep.

    Returns
    -------
    array, DataFrame or list
        A list of a list's or tuple's rows.
    """
    if isinstance(data, dict):
        return data | {name: select_rows(column, kept) for name, column in get_columns(data).items()}
    if isinstance(data, np.ndarray) or is_frame(data):
        return data[kept]
    return [row for row, keep in zip(data, kept, strict=True) if keep]


def join_rows(data: Any, more: Any) -> Any:
    """Rows of a dataset, then those of another of its kind.

    Parameters
    ----------
    data, more : array, DataFrame, list, tuple or dict of equally long arrays
        Datasets.

    Returns
    -------
    array, DataFrame, list or dict
        Of the kind of the first; a list of a list's or tuple's rows.

    Raises
    ------
    SpecificationError
        If their rows are not alike.
    """
    one_kind(data, more)
    count_rows(data)
    count_rows(more)
    if isinstance(data, dict):
        return data | {name: join_rows(column, more[name]) for name, column in get_columns(data).items()}
    if is_frame(data):
        import pandas as pd  # takes longer to import than all the rest together

        return pd.concat([data, more], ignore_index=True)
    if isinstance(data, np.ndarray):
        if data.shape[1:] != np.shape(more)[1:]:
            raise SpecificationError(f"rows have the shapes {data.shape[1:]} and {np.shape(more)[1:]}")
        if isinstance(data, np.ma.MaskedArray) or isinstance(more, np.ma.MaskedArray):
            return np.ma.concatenate([data, more])  # type: ignore[no-untyped-call]
        joined = np.concatenate([data, more])
        if (data.dtype.kind in "biufc") != (joined.dtype.kind in "biufc"):  # numbers would be texts, or objects
            raise SpecificationError(f"rows have the types {data.dtype} and {np.asarray(more).dtype}")
        return joined
    return [*data, *more]


def rows_of(data: Any) -> list[Any]:
    """List the rows.

    Those of a DataFrame and of a dict of arrays are tuples.
    """
    if isinstance(data, dict):
        return list(zip(*map(rows_of, get_columns(data).values()), strict=True))
    if is_frame(data):
        return [tuple(row) for row in data.itertuples(index=False)]
    return list(data.tolist()) if isinstance(data, np.ndarray) else list(data)


def rows_with_labels(data: Any) -> list[Any]:
    """List the rows, those of a DataFrame with what its index holds.

    Numbers of rows without a name are left out.
    """
    rows = rows_of(data)
    if not is_frame(data) or not _has_labels(data):
        return rows
    return list(zip(rows, data.index.tolist(), strict=True))


def same_row(a: Any, b: Any) -> bool:
    """Whether two rows are equal.

    Missing values (NaN, None, NaT) equal one another.

    Parameters
    ----------
    a, b : value, sequence or mapping
        Rows; sequences are compared entry by entry, whatever their types, and mappings key by key.
    """
    if type(a) is type(b) and type(a) in _PLAIN:
        return bool(a == b or (a != a and b != b))
    if _is_sequence(a) or _is_sequence(b):
        if not (_is_sequence(a) and _is_sequence(b)) or len(a) != len(b):
            return False
        return all(same_row(c, d) for c, d in zip(a, b, strict=True))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same_row(a[key], b[key]) for key in a)
    if is_frame(a) and is_frame(b):
        return bool(a.equals(b))
    if is_series(a) and is_series(b):
        return bool(a.equals(b))
    if _is_missing(a) or _is_missing(b):
        return _is_missing(a) and _is_missing(b)
    try:
        return bool(a == b)
    except (TypeError, ValueError) as error:  # such as arrays of other libraries
        kinds = " and ".join(dict.fromkeys(type(value).__name__ for value in (a, b)))
        raise SpecificationError(f"rows or entries that are a {kinds} cannot be compared: {error}") from error


#: Types whose values are compared as they are.
_PLAIN = frozenset({int, float, bool, str, bytes})


def _is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def key_of_row(row: Any) -> Any:
    """Key of a row: equal rows, by `same_row`, have equal keys.

    Parameters
    ----------
    row : value, sequence or mapping
        A row of a dataset.
    """
    if isinstance(row, list | tuple | np.ndarray):
        return ("sequence", *map(key_of_row, row))
    if isinstance(row, Mapping):
        return ("mapping", frozenset((key, key_of_row(value)) for key, value in row.items()))
    if isinstance(row, set):
        return frozenset(row)
    try:
        hash(row)
    except TypeError as error:
        raise SpecificationError(
            f"rows or entries that are a {type(row).__name__} cannot be counted: {error}"
        ) from error
    return None if _is_missing(row) else row


def _is_missing(value: Any) -> bool:
    sized = hasattr(type(value), "__len__") and np.ndim(value) > 0
    return value is None or (not sized and is_missing(value))


def same_columns(x: Any, y: Any) -> None:
    """Raise `SpecificationError` if two datasets have different columns.

    So do DataFrames whose indices have different names, and dicts of arrays that differ in a member that belongs to no
    row.

    Parameters
    ----------
    x, y : array, DataFrame, list, tuple or dict of equally long arrays
        Datasets; nothing is raised unless both are DataFrames, or both dicts.
    """
    if isinstance(x, dict) and isinstance(y, dict):
        names, others = get_columns(x).keys(), get_columns(y).keys()
        if names != others or x.keys() != y.keys():
            raise SpecificationError(f"the datasets have different members: {list(x)} and {list(y)}")
        for name in x.keys() - names:
            if not same_row(x[name], y[name]):
                raise SpecificationError(f"the datasets differ in {name!r}, which is no array with an entry a row")
    if is_frame(x) and is_frame(y):
        if list(x.columns) != list(y.columns):
            raise SpecificationError(f"the datasets have different columns: {list(x.columns)} and {list(y.columns)}")
        own, other = list(x.index.names), list(y.index.names)
        if own != other:
            raise SpecificationError(f"the datasets have different names of the index: {own} and {other}")


def one_kind(x: Any, y: Any) -> None:
    """Raise `SpecificationError` unless two datasets' rows are alike.

    Entries of one dataset's rows have to be found as those of the other's.

    Parameters
    ----------
    x, y : array, DataFrame, list or tuple
        Datasets.
    """
    same_columns(x, y)
    if is_frame(x) != is_frame(y) or isinstance(x, dict) != isinstance(y, dict):
        raise SpecificationError(
            f"the datasets are of different kinds: {type(x).__name__} and {type(y).__name__}, expected two of one kind"
        )


# ------------------------------------------------------------------------------------- entries


def find_column(data: Any, place: int | str) -> int:
    """Index of a column of a table or dict of arrays.

    Parameters
    ----------
    data : DataFrame, dict of equally long arrays, or ndarray of shape (rows, columns)
    place : int or str
        Index, which may count from the end, or the name of a column or member.

    Raises
    ------
    SpecificationError
        If there is no such column.
    """
    if isinstance(data, dict) or isinstance(place, str):
        names = list_columns(data)
        if isinstance(place, str) and names.count(place) == 1:
            return names.index(place)
        if isinstance(place, str) or not -len(names) <= place < len(names):
            known = names or f"those of an array, {data.shape}"
            raise SpecificationError(f"no column {place!r}: the columns are {known}")
        return place % len(names)
    if data.ndim < 2 or not -data.shape[1] <= place < data.shape[1]:
        raise SpecificationError(f"no column {place}: the dataset has shape {data.shape}")
    return place % int(data.shape[1])


def list_columns(data: Any) -> list[Any]:
    """List the names of columns; other datasets have none."""
    return list(data.columns) if is_frame(data) else list(get_columns(data))


def get_entry(row: Any, place: int | str) -> Any:
    """Entry of a row, by its index or key.

    Parameters
    ----------
    row : sequence or mapping
        A row; a text counts as one value.
    place : int or str
        Index, which may count from the end, or key.

    Raises
    ------
    SpecificationError
        If the row has no such entry.
    """
    try:
        if isinstance(row, str | bytes):
            raise TypeError
        return row[place]
    except (TypeError, IndexError, KeyError) as error:
        raise SpecificationError(
            f"a row has no entry {place!r}: rows must be sequences with that index or mappings with that key, "
            f"this one is a {type(row).__name__}"
        ) from error


def with_entry(row: Any, place: int | str, value: Any) -> Any:
    """Return the row with one entry replaced.

    Parameters
    ----------
    row : sequence or mapping
        A row, which is left as it is.
    place : int or str
        Index, which may count from the end, or key.
    value : object
        The new entry.

    Returns
    -------
    dict, tuple or list
        A list of a row that is neither mapping nor tuple.

    Raises
    ------
    SpecificationError
        If the row has no such entry.
    """
    get_entry(row, place)
    if isinstance(row, Mapping):
        return {**row, place: value}
    changed = list(row)
    changed[int(place)] = value
    return tuple(changed) if isinstance(row, tuple) else changed


def get_column(data: Any, place: int | str) -> NDArray[Any]:
    """One entry of every row, shape (rows,).

    Parameters
    ----------
    data : array, DataFrame, list or tuple
        A dataset.
    place : int or str
        Index of the entry, which may count from the end, or name of a column or key.

    Raises
    ------
    SpecificationError
        If rows have no such entry.
    """
    if not count_rows(data):
        return np.empty(0, dtype=object)
    if isinstance(data, dict):
        column = get_columns(data)[list_columns(data)[find_column(data, place)]]
        return _as_objects(rows_of(column)) if np.ndim(column) != 1 else np.asarray(column)
    if is_frame(data):
        return np.asarray(data.iloc[:, find_column(data, place)].to_numpy())
    if isinstance(data, np.ndarray) and (data.ndim >= 2 or data.dtype.kind in "biuf"):
        return np.asarray(data[:, find_column(data, place)])
    return _as_objects([get_entry(row, place) for row in data])


def _as_objects(entries: list[Any]) -> NDArray[Any]:
    found = np.empty(len(entries), dtype=object)
    for k, entry in enumerate(entries):
        found[k] = entry
    return found


# ---------------------------------------------------------------------------- datasets of patterns


def find_ends(values: Sequence[Any]) -> tuple[Any, Any]:
    """First and last value of a domain."""
    if len(values) < 2:
        raise SpecificationError(f"a domain needs at least two values, got {list(values)!r}")
    return values[0], values[-1]


def make_rows(values: Sequence[Any], rows: list[Any]) -> Any:
    """Rows as an array of numbers, otherwise as a list.

    It goes by the domain's values.

    Parameters
    ----------
    values : sequence
        Domain of the rows.
    rows : list
        Rows, each a value of the domain.

    Returns
    -------
    ndarray of shape (rows, ...) or list
        An array of the domain's type if that is of numbers or booleans.
    """
    domain = _as_array(values)
    return rows if domain is None else np.array(rows, dtype=domain.dtype).reshape(len(rows), *domain.shape[1:])


def _as_array(values: Sequence[Any]) -> NDArray[Any] | None:
    """A domain as an array of numbers or booleans; None if it has others, or integers that no array of them holds."""
    try:
        domain = np.asarray(values)
    except ValueError:  # records of several lengths, or of several depths
        return None
    # Integers on both sides of 2^63 would become floats, which are other numbers.
    rounded = domain.dtype.kind == "f" and all(isinstance(v, int | np.integer) for v in values)
    return domain if domain.dtype.kind in "biuf" and not rounded else None


def are_records(values: Sequence[Any]) -> bool:
    """Whether each value of a domain has entries."""
    return all(isinstance(v, Mapping | list | tuple) or np.ndim(v) > 0 for v in values)


def make_bases(low: Any, high: Any, size: int) -> dict[str, list[Any]]:
    """Rows that patterns start from, by what they are.

    Parameters
    ----------
    low, high : object
        First and last value of the domain.
    size : int
        Number of rows.
    """
    return {
        "all lowest": [low] * size,
        "all highest": [high] * size,
        "half and half": [low] * (size // 2) + [high] * (size - size // 2),
        "alternating": [(low, high)[k % 2] for k in range(size)],
    }


def join_entries(
    entries: Sequence[Any],
    others: Sequence[Any],
    place: int | str,
    name: str,
    domains: tuple[Sequence[Any], Sequence[Any]],
) -> Any:
    """Rows of two entries.

    A DataFrame where the place is a name; otherwise an array or, with symbols, a list. It goes by the domains, so that
    all datasets of them are of one type.

    Parameters
    ----------
    entries, others : sequence of one length
        What stands at ``place``, and beside it.
    place : int or str
        Index 0, 1, -1 or -2, or a column's name.
    name : str
        Name of the other column, to which a word is added where it is that of the place.
    domains : tuple of two sequences
        What the entries and the others are taken from, or values of their types.
    """
    if isinstance(place, str):
        require_library("pandas", "rows whose columns have names")
        import pandas as pd  # takes longer to import than all the rest together

        beside = f"other {name}" if place == name else name
        columns = {beside: (others, domains[1]), place: (entries, domains[0])}
        return pd.DataFrame({c: pd.Series(list(v), dtype=pd.Series(list(d)).dtype) for c, (v, d) in columns.items()})
    if not -2 <= place < 2:
        raise SpecificationError(f"rows of patterns have two entries, there is none at {place}")
    rows = [(b, a) if place % 2 else (a, b) for a, b in zip(entries, others, strict=True)]
    domain = _as_array([*domains[0], *domains[1]])
    return rows if domain is None else np.array(rows, dtype=domain.dtype).reshape(len(rows), 2)
