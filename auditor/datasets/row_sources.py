"""Sources of generated rows: a strategy for one row, or an example dataset.

hypothesis and pandas are imported inside functions only, so that `import auditor` stays light.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from auditor.datasets.pandas_types import is_frame
from auditor.datasets.rows import find_column, rows_of, same_row
from auditor.errors import SpecificationError, require_library

if TYPE_CHECKING:
    import pandas as pd
    from hypothesis.strategies import SearchStrategy


@dataclass(frozen=True, eq=False)
class RowSource:
    """How rows are drawn and become datasets.

    Two lists of them become two datasets of one kind.

    Parameters
    ----------
    row : SearchStrategy
        One row.
    build : callable
        From two lists of rows to two datasets.
    example : Any
        The example dataset, None for a strategy.
    """

    row: SearchStrategy[Any]
    build: Callable[[list[Any], list[Any]], tuple[Any, Any]]
    example: Any = None

    def place(self, place: int | str) -> int | str:
        """Place of a dataset's entry in a drawn row.

        A DataFrame's rows are drawn as tuples.
        """
        return find_column(self.example, place) if is_frame(self.example) else place


def source_of(rows: Any) -> RowSource:
    """Rows of a strategy, or like those of an example dataset.

    Parameters
    ----------
    rows : SearchStrategy, DataFrame, ndarray of shape (rows,) or (rows, columns), list or tuple

    Raises
    ------
    SpecificationError
        If it is none of these, or an example without rows.
    """
    from hypothesis.strategies import SearchStrategy

    if isinstance(rows, SearchStrategy):
        return RowSource(rows, _numbers_or_lists)
    if not isinstance(rows, np.ndarray | list | tuple) and not is_frame(rows):
        raise SpecificationError(f"rows must be a hypothesis strategy for one row or an example dataset, got {rows!r}")
    if not len(rows) or (not isinstance(rows, list | tuple) and not rows.size):
        raise SpecificationError(f"an example dataset needs rows, got {rows!r}")
    if isinstance(rows, np.ndarray):
        return _like_array(rows)
    return _like_list(rows) if isinstance(rows, list | tuple) else _like_frame(rows)


def _numbers_or_lists(x: list[Any], y: list[Any]) -> tuple[Any, Any]:
    """Two arrays if all rows are numbers, or sequences of numbers, that an array holds exactly; otherwise two lists."""
    both = [*x, *y]
    try:
        array = np.asarray(both)
    except (ValueError, OverflowError):  # rows of several lengths
        return x, y
    if array.dtype.kind not in "biuf" or not all(map(same_row, array.tolist(), both)):
        return x, y
    return array[: len(x)], array[len(x) :]


def _like_frame(example: pd.DataFrame) -> RowSource:
    import pandas as pd

    def frame(rows: list[Any]) -> pd.DataFrame:
        columns = {j: pd.Series([row[j] for row in rows], dtype=dtype) for j, dtype in enumerate(example.dtypes)}
        found = pd.DataFrame(columns)
        found.columns = example.columns
        return found

    row = _records([_column(example.iloc[:, j]) for j in range(example.shape[1])], rows_of(example), tuple)
    return RowSource(row, lambda x, y: (frame(x), frame(y)), example)


def _like_array(example: np.ndarray[Any, np.dtype[Any]]) -> RowSource:
    require_library("pandas", "rows like those of an example")
    import pandas as pd
    from hypothesis import strategies as st

    if example.ndim > 2:
        raise SpecificationError(f"an example array must have one or two axes, got shape {example.shape}")
    if isinstance(example, np.ma.MaskedArray):
        raise SpecificationError(f"an example array must have no mask, got {example!r}")

    def column(entries: np.ndarray[Any, np.dtype[Any]]) -> SearchStrategy[Any]:
        if entries.dtype.kind in "mM":  # numpy makes no times from pandas' NaT
            return st.sampled_from(list(entries))
        return _column(pd.Series(entries))

    def array(rows: list[Any]) -> np.ndarray[Any, np.dtype[Any]]:
        return np.array(rows, dtype=example.dtype).reshape(len(rows), *example.shape[1:])

    if example.dtype.names:
        row = _records([column(example[name]) for name in example.dtype.names], example.tolist(), tuple)
    elif example.ndim == 1:
        row = column(example)
    else:
        row = _records([column(entries) for entries in example.T], example.tolist(), tuple)
    return RowSource(row, lambda x, y: (array(x), array(y)), example)


def _like_list(example: list[Any] | tuple[Any, ...]) -> RowSource:
    require_library("pandas", "rows like those of an example")
    import pandas as pd
    from hypothesis import strategies as st

    kind = type(example[0])
    if all(isinstance(v, int | float) for v in example):
        row = _column(pd.Series(list(example)))
    elif kind in (list, tuple) and all(type(v) is kind and len(v) == len(example[0]) for v in example):
        row = _records([_column(pd.Series(list(entries))) for entries in zip(*example, strict=True)], example, kind)
    else:
        row = st.sampled_from(list(example))
    whole = tuple if isinstance(example, tuple) else list
    return RowSource(row, lambda x, y: (whole(x), whole(y)), example)


def _records(columns: list[SearchStrategy[Any]], observed: Any, kind: type[Any]) -> SearchStrategy[Any]:
    """Rows that were observed, in which columns go together, and rows made column by column."""
    from hypothesis import strategies as st

    return st.sampled_from([kind(row) for row in observed]) | st.tuples(*columns).map(kind)


def _column(values: pd.Series[Any]) -> SearchStrategy[Any]:
    """Values like those of a column: observed ones, numbers in their range, every category, missing where some are."""
    import pandas as pd
    from hypothesis import strategies as st
    from pandas.api import types

    known = values[~values.isna()]
    found: list[SearchStrategy[Any]] = []
    if isinstance(values.dtype, pd.CategoricalDtype):
        observed = values.dtype.categories.tolist()
    else:
        observed = _list_distinct(known)
    if observed:
        found.append(st.sampled_from(observed))
    if types.is_bool_dtype(values.dtype):
        found.append(st.booleans())
    elif types.is_integer_dtype(values.dtype) and len(known):
        found.append(st.integers(int(known.min()), int(known.max())))
    elif types.is_float_dtype(values.dtype):
        finite = known[np.isfinite(known.to_numpy(dtype=float))]
        if len(finite):
            found.append(st.floats(float(finite.min()), float(finite.max())))
    if len(known) < len(values):
        found.append(st.just(values[values.isna()].iloc[0]))
    return st.one_of(found)


def _list_distinct(values: pd.Series[Any]) -> list[Any]:
    """Values of a column, each once where pandas can compare them."""
    try:
        return list(values.drop_duplicates().tolist())
    except (TypeError, NotImplementedError):  # such as lists of Arrow
        return list(values.tolist())
