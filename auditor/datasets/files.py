"""Datasets and domains as the command line gives them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
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
    except (OSError, ValueError, EOFError) as error:
        raise SpecificationError(f"data file {str(path)!r} cannot be read: {error}") from error


def _read_csv(path: Path) -> Any:
    require_library("pandas", "CSV files")
    import pandas as pd  # takes longer to import than all the rest together

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(path, index_col=False)  # else the first cells of longer rows were names of rows
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
