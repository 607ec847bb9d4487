"""Datasets, and an audit of them, as Python that a maintainer can paste."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.counterexamples.confirm import EventCounts
from auditor.datasets import Pair
from auditor.datasets.pandas_types import find_pandas, is_frame, is_named_type
from auditor.datasets.rows import count_rows, has_rows
from auditor.privacy.guarantees import Guarantee

if TYPE_CHECKING:
    import pandas as pd

#: Equal entries one after the other that are multiplied instead of being written out; arbitrary, more than one counts.
_RUN = 6
#: Periods of repeating entries that are looked for; arbitrary, patterns alternate.
_PERIODS = 4
#: Characters of a dataset, or of a row, that are shown in a line.
_LINE = 100
#: Modules of Python whose objects datasets may hold.
_MODULES = ("datetime", "decimal", "fractions", "uuid", "zoneinfo")
#: Rows that are shown of those in which two datasets differ.
_MOST_ROWS = 3


def python_of(data: Any) -> str:
    """Shortest readable Python expression for a dataset.

    With numpy as ``np`` and pandas as ``pd``.

    Evaluates to an equal dataset for all that `auditor.datasets.json_codec` stores; what else there is is
    shown by its repr.

    Examples
    --------
    >>> python_of(np.zeros(64)), python_of(np.array([0, 0, 1]))
    ('np.zeros(64)', 'np.array([0, 0, 1])')
    """
    if is_frame(data):
        return _frame_text(data)
    if isinstance(data, np.ndarray):
        return _array_text(data)
    if type(data) in (list, tuple):
        return _row_text([python_of(v) for v in data], type(data) is tuple)
    if type(data) is dict:
        return "{" + ", ".join(f"{python_of(k)}: {python_of(v)}" for k, v in data.items()) + "}"
    if type(data) is float and not math.isfinite(data):
        return "np.nan" if math.isnan(data) else "np.inf" if data > 0 else "-np.inf"
    if isinstance(data, np.bool_ | np.integer | np.floating):
        return f"np.{data.dtype.name}({python_of(data.item())})"
    return _object_text(data)


def _object_text(value: Any) -> str:
    """The repr of an object, with the module where its class writes none."""
    text, kind = repr(value), type(value)
    if (pandas := find_pandas()) is not None and (value is pandas.NA or value is pandas.NaT):
        return f"pd.{kind.__name__.removesuffix('Type')}"
    if not text.startswith(f"{kind.__name__}("):
        return text
    if kind.__module__.partition(".")[0] == "pandas":
        return f"pd.{text}"
    return f"{kind.__module__}.{text}" if kind.__module__ in _MODULES else text


def _row_text(parts: list[str], is_tuple: bool = False) -> str:
    """A list or tuple of entries that are texts already; entries that repeat are multiplied, where that is shorter."""
    first, last = ("(", ")") if is_tuple else ("[", "]")

    def listed(some: list[str]) -> str:
        return first + ", ".join(some) + ("," if is_tuple and len(some) == 1 else "") + last

    found = [listed(parts)]
    for period in range(1, _PERIODS + 1):
        if len(parts) >= _RUN and len(parts) % period == 0 and parts == parts[:period] * (len(parts) // period):
            found.append(f"{listed(parts[:period])} * {len(parts) // period}")
            break
    pieces: list[str] = []
    single: list[str] = []
    k = 0
    while k < len(parts):
        run = k
        while run < len(parts) and parts[run] == parts[k]:
            run += 1
        if run - k >= _RUN and len(f"{listed([parts[k]])} * {run - k} + []") < len(", ".join(parts[k:run])):
            pieces += [listed(single)] if single else []
            pieces.append(f"{listed([parts[k]])} * {run - k}")
            single = []
        else:
            single += parts[k:run]
        k = run
    found.append(" + ".join([*pieces, *([listed(single)] if single else [])]) or listed([]))
    return min(found, key=len)


def _entry(value: Any) -> str:
    """An entry of an array, in as few digits as its type needs."""
    if isinstance(value, np.float32 | np.float16) and np.isfinite(value) and type(value)(float(str(value))) == value:
        return str(value)
    return python_of(value.item() if isinstance(value, np.generic) else value)


def _nested_text(array: NDArray[Any]) -> str:
    if array.ndim == 1:
        return _row_text([_entry(v) for v in array])
    return _row_text([_nested_text(part) for part in array])


def _dtype_text(dtype: np.dtype[Any]) -> str:
    native = dtype.kind in "biuf" and dtype.isnative
    return {"O": "object", "b": "bool"}.get(dtype.kind, f"np.{dtype.name}" if native else repr(dtype.str))


def _array_text(array: NDArray[Any]) -> str:
    shape = str(array.shape[0]) if array.ndim == 1 else str(array.shape)
    dtype = _dtype_text(array.dtype)
    if array.dtype.kind in "Mm":
        entries = array.view(array.dtype.str[0] + "i8")
        return f"np.array({_nested_text(entries)}, {_dtype_text(entries.dtype)}).view({dtype})"
    default = array.dtype == np.float64
    if array.size == 0 or array.ndim == 0:
        if array.ndim == 0:
            return f"np.array({python_of(array[()].item() if array.dtype.kind != 'O' else array[()])}, dtype={dtype})"
        return f"np.zeros({shape}{'' if default else f', dtype={dtype}'})"
    if array.dtype.kind == "O":
        # numpy would read sequences in an object array as further axes: they are put in one by one.
        parts = [python_of(v) for v in array.reshape(-1).tolist()]
        text = f"pd.Series({_row_text(parts)}, dtype=object).to_numpy()"
        found = [text if array.ndim == 1 else f"{text}.reshape({shape})"]
    else:
        inferred = np.array(array.tolist()).dtype == array.dtype
        found = [f"np.array({_nested_text(array)}{'' if inferred else f', dtype={dtype}'})"]
    if array.dtype.kind in "biuf":
        flat = array.reshape(-1)
        negative_zero = array.dtype.kind == "f" and bool(((flat == 0) & np.signbit(flat)).any())
        same = bool((flat == flat[0]).all()) and not negative_zero
        if same and array.dtype.kind != "b" and flat[0] in (0, 1):
            found.append(f"np.{'ones' if flat[0] else 'zeros'}({shape}{'' if default else f', dtype={dtype}'})")
        elif same:
            made = np.full(array.shape, flat[0].item())
            extra = "" if made.dtype == array.dtype else f", dtype={dtype}"
            found.append(f"np.full({shape}, {_entry(flat[0])}{extra})")
        if (
            array.dtype == np.int64
            and array.ndim == 1
            and len(array) >= _RUN
            and (array == np.arange(len(array))).all()
        ):
            found.append(f"np.arange({len(array)})")
    return min(found, key=len)


def _frame_text(frame: pd.DataFrame) -> str:
    import pandas as pd  # takes longer to import than all the rest together

    labels = list(frame.columns)
    plain_index = frame.index.equals(pd.RangeIndex(len(frame)))
    index = "" if plain_index and frame.index.name is None else f", index={_index_text(frame.index)}"
    parts, types = [], {}
    for j, label in enumerate(labels):
        column = frame.iloc[:, j]
        values = column.tolist()
        if isinstance(column.dtype, pd.CategoricalDtype):
            categories = python_of(column.dtype.categories.tolist())
            ordered = ", ordered=True" if column.dtype.ordered else ""
            shown = python_of([None if pd.isna(v) else v for v in values])
            parts.append(f"{python_of(label)}: pd.Categorical({shown}, categories={categories}{ordered})")
            continue
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "Mm":
            parts.append(f"{python_of(label)}: {_array_text(column.to_numpy())}")
            continue
        if not isinstance(column.dtype, np.dtype):
            if not is_named_type(column.dtype):
                return repr(frame)
            values = [None if missing else v for v, missing in zip(values, column.isna(), strict=True)]
            # A text of a time does not say its unit.
            if pd.DataFrame({0: values}).dtypes.iloc[0] != column.dtype or column.dtype.kind == "M":
                parts.append(f"{python_of(label)}: pd.array({python_of(values)}, dtype={str(column.dtype)!r})")
                continue
        parts.append(f"{python_of(label)}: {python_of(values)}")
        if pd.DataFrame({0: values}).dtypes.iloc[0] != column.dtype:
            types[label] = column.dtype
    if len(set(labels)) < len(labels):  # a dict has no two equal keys
        return repr(frame)
    kinds = ", ".join(f"{python_of(label)}: {str(dtype)!r}" for label, dtype in types.items())
    return f"pd.DataFrame({{{', '.join(parts)}}}{index})" + (f".astype({{{kinds}}})" if kinds else "")


def _index_text(index: pd.Index[Any]) -> str:
    labels = python_of(index.tolist())
    return f"pd.Index({labels}, name={python_of(index.name)})" if index.name is not None else labels


# ---------------------------------------------------------------------------------------- audits

#: Characters of a snippet's datasets, at most: arbitrary, about ten lines.
LONGEST = 1_000


def python_of_pair(pair: Pair) -> tuple[str, str] | None:
    """Python expressions of both datasets.

    None if they are too large to be pasted.

    Parameters
    ----------
    pair : Pair
        Datasets that may be shown.
    """
    x, y = python_of(pair.x), python_of(pair.y)
    return None if len(x) + len(y) > LONGEST or "\n" in x + y else (x, y)


def list_imports(text: str) -> list[str]:
    """Imports of the modules that an expression of `python_of` uses."""
    marks = {"numpy as np": "np.", "pandas as pd": "pd.", **{name: f"{name}." for name in _MODULES}}
    return [f"import {module}" for module, mark in marks.items() if mark in text]


def describe_counts(counts: EventCounts, event: str, second: str = "x'") -> str:
    """Describe the counts on both datasets in words.

    Parameters
    ----------
    counts : EventCounts
        Draws a side, and how many were in the event.
    event : str
        The event in words.
    second : str
        Name of the second dataset.
    """
    return f"{event}: {counts.x:,} of {counts.n:,} draws on x, {counts.y:,} of {counts.n:,} on {second}"


def write_snippet(
    target: str,
    claim: str | Guarantee,
    pair: Pair,
    event: str = "",
    counts: EventCounts | None = None,
    *,
    alpha: float = 0.01,
    one_draw: bool = False,
    ignore: Sequence[str] = (),
    given: Mapping[str, Any] | None = None,
) -> str:
    """Lines of Python that audit a target on one pair.

    A maintainer can paste them.

    Parameters
    ----------
    target : str
        Name as the command line takes it, without secrets.
    claim : str or Guarantee
        The claim, as its text or as an object.
    pair : Pair
        Datasets that may be shown.
    event : str
        What tells them apart, in words.
    counts : EventCounts, optional
        How often it occurred.
    alpha : float
        Level of the audit.
    one_draw : bool
        The target is a function of one draw.
    ignore : sequence of str
        Kinds of causes that the audit ignores.
    given : mapping, optional
        Values of further parameters of the target.

    Returns
    -------
    str
        Empty if the datasets are too large to be pasted.
    """
    shown = python_of_pair(pair)
    if shown is None:
        return ""
    x, y = shown
    uses = list_imports(x + y)
    stated = f"parse_claim({claim!r})" if isinstance(claim, str) else f"auditor.{claim!r}"
    once = (", one_draw=True" if one_draw else "") + (f", given={python_of(dict(given))}" if given else "")
    without = f", ignore={','.join(ignore)!r}" if ignore else ""
    lines = [
        *uses,
        "import auditor",
        *(["from auditor.privacy.guarantees import parse_claim"] if isinstance(claim, str) else []),
        "from auditor.targets.target_names import closing_target, target_named",
        "",
        f"x = {x}",
        f"y = {y}",
        *([f"# {describe_counts(counts, event, 'y')}"] if event and counts is not None else []),
        f"with closing_target(target_named({target!r}{once})) as target:",
        f"    result = auditor.audit(target, {stated}, auditor.Pair(x, y), alpha={alpha!r}{without})",
        "    print(auditor.explain(result))",
    ]
    return "\n".join(lines) + "\n"


def show_data(data: Any) -> str:
    """A dataset in at most about 100 characters."""
    if is_frame(data):
        return f"DataFrame of {len(data):,} rows, columns {', '.join(map(str, data.columns[:6]))}"
    text = python_of(data) if isinstance(data, dict) else repr(data.tolist() if isinstance(data, np.ndarray) else data)
    rows = f" ({count_rows(data):,} rows)" if has_rows(data) else ""
    return text if len(text) <= _LINE else f"{text[: _LINE - 20]}...{rows}"


def show_pair(x: Any, y: Any) -> tuple[str, str]:
    """Two datasets in a line each.

    Of those that are too long the rows are shown in which they differ, counted from 0.

    Parameters
    ----------
    x, y : object
        Neighbouring datasets.
    """
    shown = (show_data(x), show_data(y))
    if not any(_is_shortened(data) for data in (x, y)) or not (_is_of_rows(x) and _is_of_rows(y)):
        return shown
    start, end = _find_ends(x, y)
    parts = [_list_rows(_take_rows(data, start, len(data) - end)) for data in (x, y)]
    if not any(parts):
        return shown
    names = [str(name) for name in x.columns] if is_frame(x) and is_frame(y) and list(x) == list(y) else []
    told = [_say_rows(part, other, start, names) for part, other in (parts, parts[::-1])]
    return _say_size(x, told[0]), _say_size(y, told[1])


def _say_size(data: Any, rows: str) -> str:
    return f"{'DataFrame of ' if is_frame(data) else ''}{len(data):,} rows, {rows}"


def _is_shortened(data: Any) -> bool:
    return is_frame(data) or len(repr(data.tolist() if isinstance(data, np.ndarray) else data)) > _LINE


def _is_of_rows(data: Any) -> bool:
    return is_frame(data) or isinstance(data, list | tuple) or (isinstance(data, np.ndarray) and data.ndim > 0)


def _take_rows(data: Any, first: int, end: int) -> Any:
    return data.iloc[first:end] if is_frame(data) else data[first:end]


def _list_rows(data: Any) -> list[Any]:
    if is_frame(data):
        return list(data.itertuples(index=False, name=None))
    return data.tolist() if isinstance(data, np.ndarray) else list(data)


def _find_ends(x: Any, y: Any) -> tuple[int, int]:
    """How many rows two datasets have in common at their beginnings, and then at their ends."""
    least = min(len(x), len(y))
    start = _count_alike(_compare_rows(*(_take_rows(data, 0, least) for data in (x, y))))
    last = (_take_rows(data, len(data) - least + start, len(data)) for data in (x, y))
    return start, _count_alike(_compare_rows(*last)[::-1])


def _count_alike(alike: NDArray[np.bool_]) -> int:
    """How many are True before the first that is not."""
    return len(alike) if alike.all() else int(np.argmin(alike))


def _compare_rows(x: Any, y: Any) -> NDArray[np.bool_]:
    """Which rows of as many have one text: a missing value is then equal to itself, and 1 is not equal to 1.0."""
    if is_frame(x) and is_frame(y) and list(x.dtypes) == list(y.dtypes) and object not in list(x.dtypes):
        alike = np.ones(len(x), dtype=bool)
        for k in range(x.shape[1]):
            a, b = (data.iloc[:, k].reset_index(drop=True) for data in (x, y))
            same = a.eq(b).fillna(False)
            if a.dtype.kind == "f":
                same &= np.signbit(a.to_numpy(dtype=float)) == np.signbit(b.to_numpy(dtype=float))
            alike &= (same | (a.isna() & b.isna())).to_numpy(dtype=bool)
        return alike
    return np.array([repr(a) == repr(b) for a, b in zip(_list_rows(x), _list_rows(y), strict=True)], dtype=bool)


def _say_rows(rows: list[Any], others: list[Any], start: int, names: list[str]) -> str:
    """The rows of one side, up to `_MOST_ROWS`; of a row that replaces another the columns that are others."""
    if not rows:
        return f"without row {start:,}" if len(others) == 1 else f"without {len(others):,} rows from row {start:,} on"
    told = []
    for i, row in enumerate(rows[:_MOST_ROWS]):
        other = others[i] if len(rows) == len(others) else None
        text = _say_row(row, other, names)
        told.append(f"row {start + i:,}: {text if len(text) <= _LINE else text[: _LINE - 20] + '...'}")
    more = len(rows) - len(told)
    return "; ".join(told) + (f"; and {more:,} more" if more else "")


def _say_row(row: Any, other: Any, names: list[str]) -> str:
    if not names:
        return repr(row)
    apart = [i for i in range(len(names)) if other is None or repr(row[i]) != repr(other[i])]
    same = ", the same in all other columns" if len(apart) < len(names) else ""
    return ", ".join(f"{names[i]} = {row[i]}" for i in apart) + same
