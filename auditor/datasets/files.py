"""Datasets and domains as the command line gives them."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from auditor.datasets.pandas_types import is_frame
from auditor.errors import MissingLibraryError, SpecificationError, require_library

#: Most rows of a crafted dataset, and values of a row; arbitrary, so that a slip of the pen does not fill the memory.
MOST = 1_000_000


def read_data(path: Path) -> Any:
    """Read a dataset of any kind from a file.

    Parameters
    ----------
    path : Path
        .csv and .parquet are read as a DataFrame, .npy as an array or a number, .json as what it holds: a number, a
        truth value, null, a text, an array of numbers, a list, or a dict. In a dict, lists of numbers are read as
        arrays, and so are nested lists of numbers of one length.

    Raises
    ------
    SpecificationError
        If the file is of another kind, or cannot be read.
    """
    readers: dict[str, Callable[[Path], Any]] = {
        ".csv": _read_csv,
        ".json": _read_json,
        ".npy": _read_numpy,
        ".parquet": _read_parquet,
    }
    kind = path.suffix.lower()
    if kind not in readers:
        raise SpecificationError(f"data file {str(path)!r}: expected {', '.join(readers)}")
    try:
        return readers[kind](path)
    except MissingLibraryError as error:
        raise MissingLibraryError(f"data file {str(path)!r}: {error}") from error
    except SpecificationError as error:
        raise SpecificationError(f"data file {str(path)!r}: {error}") from error
    except RecursionError:
        raise SpecificationError(f"data file {str(path)!r} cannot be read: it is nested too deep") from None
    except (OSError, ValueError, EOFError, TypeError, NotImplementedError) as error:  # types that pandas cannot make
        raise SpecificationError(f"data file {str(path)!r} cannot be read: {error}") from error


def read_pair(data: Path, neighbor: Path) -> tuple[Any, Any]:
    """Read two datasets, with columns of the same types in both.

    A file of text holds no types. Read by itself, a column of whole numbers is one of fractions where a single row has
    a fraction or no number, so that neighbours would differ in more than that row.

    Parameters
    ----------
    data, neighbor : Path
        Files, see `read_data`. Types are shared between two of CSV or two of JSON; other files state theirs.

    Returns
    -------
    tuple of two datasets
        Whole numbers beside fractions or missing ones are floats, if all of them are floats exactly. Numbers beside
        texts are texts in CSV, and entries of a list in JSON.

    Raises
    ------
    SpecificationError
        As `read_data`.
    """
    x, y = read_data(data), read_data(neighbor)
    kinds = {path.suffix.lower() for path in (data, neighbor)}
    if kinds == {".json"}:
        return _share_types(x, y)
    if kinds != {".csv"} or list(x.columns) != list(y.columns):
        return x, y
    types = {name: _common_type(x[name], y[name]) for name in x.columns if x[name].dtype != y[name].dtype}
    texts = [name for name, kind in types.items() if kind is str]
    if texts:
        x, y = (_read_csv(path, texts) for path in (data, neighbor))
    numbers = {name: kind for name, kind in types.items() if kind is not str}
    return x.astype(numbers), y.astype(numbers)


def _common_type(a: Any, b: Any) -> Any:
    """Type for both of two columns of other types; of texts it is str."""
    if not (len(a) and len(b)):
        return (a if len(a) else b).dtype
    known = [part for part in (a, b) if not part.isna().all()]
    if all(part.dtype.kind in "iuf" for part in known):
        return float if all(map(_are_floats, known)) else object
    if all(isinstance(value, bool) for part in known for value in part.dropna()):
        return object
    return str


def _are_floats(numbers: Any) -> bool:
    """Whether all numbers are floats exactly."""
    return all(math.isnan(v) or float(v) == v for v in numbers.tolist())


def _share_types(x: Any, y: Any) -> tuple[Any, Any]:
    """Two datasets of JSON, with arrays of one type, or lists, in the same places."""
    if isinstance(x, dict) and isinstance(y, dict):
        shared = {name: _share_types(x[name], y[name]) for name in x.keys() & y.keys()}
        first, second = ({name: pair[k] for name, pair in shared.items()} for k in (0, 1))
        return {name: first.get(name, part) for name, part in x.items()}, {
            name: second.get(name, part) for name, part in y.items()
        }
    if not all(isinstance(part, np.ndarray | list) for part in (x, y)):
        return x, y
    if not (len(x) and len(y)):
        return _like(x, y), _like(y, x)
    if isinstance(x, list) or isinstance(y, list):
        return _list(x), _list(y)
    if x.dtype == y.dtype or not (_are_floats(x.ravel()) and _are_floats(y.ravel())):
        return x, y
    return x.astype(float), y.astype(float)


def _like(part: Any, other: Any) -> Any:
    """A dataset without rows as one of the kind of another; one with rows as it is."""
    return part if len(part) else other[:0]


def _list(part: Any) -> list[Any]:
    return part if isinstance(part, list) else list(part.tolist())


def _read_csv(path: Path, texts: Sequence[str] = ()) -> Any:
    require_library("pandas", "CSV files")
    import pandas as pd  # takes longer to import than all the rest together

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # Without index_col=False the first cells of longer rows were names of rows.
            return pd.read_csv(path, index_col=False, dtype=dict.fromkeys(texts, str))
    except pd.errors.ParserWarning:
        raise SpecificationError(
            "rows have more cells than the heading: cells are separated by commas, decimals by points, and each column "
            "has a name"
        ) from None


def _read_parquet(path: Path) -> Any:
    require_library("pyarrow", "Parquet files")  # pandas reads them by it, and its own message is of several lines
    import pandas as pd  # takes longer to import than all the rest together

    return pd.read_parquet(path)


def _read_numpy(path: Path) -> Any:
    found = np.load(path)
    if not isinstance(found, np.ndarray):  # an archive of several, by another name
        raise SpecificationError(f"expected one array, got {type(found).__name__}")
    return found if found.ndim else found.item()


def _read_json(path: Path) -> Any:
    found = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(found, list):
        return np.array(found) if found and all(map(_is_number, found)) else found
    return _with_arrays(found) if isinstance(found, dict) else found


def _with_arrays(members: dict[str, Any]) -> dict[str, Any]:
    """Members of a dict of JSON, with arrays in the place of lists of numbers; inner dicts too."""
    found: dict[str, Any] = {}
    for name, part in members.items():
        if isinstance(part, dict):
            found[name] = _with_arrays(part)
        else:
            found[name] = _make_array(part) if isinstance(part, list) else part
    return found


def _make_array(entries: list[Any]) -> Any:
    """Lists of numbers, nested or not, as an array; anything else as it is."""
    if not _are_numbers(entries):
        return entries
    try:
        array = np.array(entries)
    except ValueError:  # rows of several lengths
        return entries
    return array if array.dtype.kind in "iuf" else entries


def _are_numbers(entries: list[Any]) -> bool:
    return all(_are_numbers(entry) if isinstance(entry, list) else _is_number(entry) for entry in entries)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def parse_domain(text: str) -> list[Any]:
    """Read the values of a row: "0,1", "0:10", "a,b,c", or records.

    Parameters
    ----------
    text : str
        The values; "0:10" are integers with both ends. A JSON array of values or records, or ``@FILE`` with the rows of
        a data file, see `read_data`.

    Raises
    ------
    SpecificationError
        If it cannot be read, or has fewer than two values or more than `MOST`.
    """
    if text.startswith(("@", "[")):
        return _read_records(text)
    low, colon, high = text.partition(":")
    if colon:
        try:
            first, last = int(low), int(high)
        except ValueError:
            first = last = 0
        if first >= last:
            raise SpecificationError(f'domain {text!r}: the ends must be increasing whole numbers, as in "0:10"')
        if last - first >= MOST:
            raise SpecificationError(f"domain {text!r}: expected at most {MOST:,} values")
        return list(range(first, last + 1))
    values = [_value(v) for v in text.split(",")]
    if len(values) < 2:
        raise SpecificationError(f'domain {text!r}: expected at least two values, as in "0,1", "0:10" or "a,b,c"')
    return values


def _read_records(text: str) -> list[Any]:
    if text.startswith("@"):
        data = read_data(Path(text[1:]))
        values = data.to_dict("records") if is_frame(data) else list(data) if np.ndim(data) else data
    else:
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SpecificationError(f"domain {text!r} is no JSON array: {error}") from error
    if not isinstance(values, list) or not 2 <= len(values) <= MOST:
        raise SpecificationError(f"domain {text!r}: expected an array of 2 to {MOST:,} values")
    return values


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()
