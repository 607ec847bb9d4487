"""Datasets and domains as the command line gives them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from auditor.errors import MissingLibraryError, SpecificationError, require_library

#: Most rows of a crafted dataset, and values of a row; arbitrary, so that a slip of the pen does not fill the memory.
MOST = 1_000_000


def read_data(path: Path) -> Any:
    """Read a dataset from a file.

    .csv as a DataFrame, .json as an array or list, .npy as an array.
    """
    readers: dict[str, Callable[[Path], Any]] = {".csv": _read_csv, ".json": _read_json, ".npy": np.load}
    if path.suffix not in readers:
        raise SpecificationError(f"data file {str(path)!r}: expected .csv, .json or .npy")
    try:
        data = readers[path.suffix](path)
    except MissingLibraryError:
        raise
    except (OSError, ValueError) as error:
        raise SpecificationError(f"data file {str(path)!r} cannot be read: {error}") from error
    if np.ndim(data) == 0:
        raise SpecificationError(f"data file {str(path)!r}: expected rows, got a single value")
    return data


def _read_csv(path: Path) -> Any:
    require_library("pandas", "CSV files")
    import pandas as pd  # takes longer to import than all the rest together

    return pd.read_csv(path)


def _read_json(path: Path) -> Any:
    rows = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(rows, list):
        raise SpecificationError(f"data file {str(path)!r}: expected an array of rows, got {type(rows).__name__}")
    return (
        np.array(rows) if rows and all(isinstance(r, int | float) and not isinstance(r, bool) for r in rows) else rows
    )


def parse_domain(text: str) -> list[Any]:
    """Read the values of a row: "0,1", "0:10" (integers, both ends), "a,b,c".

    Raises
    ------
    SpecificationError
        If it cannot be read, or has fewer than two values or more than `MOST`.
    """
    low, colon, high = text.partition(":")
    try:
        if colon and int(high) - int(low) >= MOST:
            raise SpecificationError(f"domain {text!r}: expected at most {MOST:,} values")
        values: list[Any] = list(range(int(low), int(high) + 1)) if colon else [_value(v) for v in text.split(",")]
    except SpecificationError:
        raise
    except ValueError:
        values = []
    if len(values) < 2:
        raise SpecificationError(f'domain {text!r}: expected at least two values, as in "0,1", "0:10" or "a,b,c"')
    return values


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()
