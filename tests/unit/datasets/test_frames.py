"""Telling DataFrames and missing values without importing pandas."""

from __future__ import annotations

import datetime
import math
import subprocess
import sys
import types
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from auditor.datasets import pandas_types
from auditor.datasets.pandas_types import is_frame, is_index, is_missing, is_na, is_series

FRAME = pd.DataFrame({"a": [1, 2]})
OTHERS: list[Any] = [None, 1, "a", [1], {"a": [1]}, np.zeros(2), pd.DataFrame, pd.NA]


class _Float(float):
    """A float by another name."""


class _Frame(pd.DataFrame):
    """A DataFrame by another name."""


class _Unordered:
    """A value that does not equal itself, but is no number."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return False

    def __repr__(self) -> str:
        return "not itself"


#: Python that makes a scalar, with what it is made of in `MADE_OF`.
SCALARS = (
    "None",
    "True",
    "0",
    "10**400",
    "1.5",
    "math.inf",
    "math.nan",
    "complex(math.nan, 1)",
    "complex(1, math.nan)",
    "1j",
    "''",
    "'nan'",
    "b'nan'",
    "Decimal('NaN')",
    "Decimal('1')",
    "Decimal('Infinity')",
    "Fraction(1, 3)",
    "datetime.datetime(2020, 1, 1)",
    "datetime.timedelta(1)",
    "np.float16('nan')",
    "np.float32('nan')",
    "np.float64('nan')",
    "np.longdouble('nan')",
    "np.float32(1)",
    "np.complex64(complex('nan'))",
    "np.clongdouble(complex(0, math.nan))",
    "np.complex128(1)",
    "np.int8(0)",
    "np.uint64(2**63)",
    "np.bool_(True)",
    "np.str_('nan')",
    "np.bytes_(b'nan')",
    "np.void(b'abc')",
    "np.array([(math.nan,)], dtype=[('a', float)])[0]",
    "np.datetime64('NaT')",
    "np.datetime64('NaT', 'D')",
    "np.datetime64('2020-01-01')",
    "np.timedelta64('NaT')",
    "np.timedelta64('NaT', 's')",
    "np.timedelta64(1, 's')",
    "{}",
    "{'a': math.nan}",
    "{math.nan}",
    "object()",
    "float",
    "np.float64",
    "np.ndarray",
    "math.sqrt",
)
#: Those that have an ``__array__`` and no axes.
ARRAYS = (
    "np.array(math.nan)",
    "np.array(1.0)",
    "np.array(3)",
    "np.array(None)",
    "np.array('nan')",
    "np.array('NaT', 'M8[s]')",
    "np.array(complex('nan'))",
)
MADE_OF = {
    "Decimal": Decimal,
    "Fraction": Fraction,
    "datetime": datetime,
    "math": math,
    "np": np,
}


@pytest.fixture
def without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """What holds where pandas was never imported."""
    monkeypatch.setattr(pandas_types, "find_pandas", lambda: None)


def kinds(value: Any) -> list[str]:
    told = {"frame": is_frame(value), "series": is_series(value), "index": is_index(value)}
    return [kind for kind, is_one in told.items() if is_one]


def test_frames_series_and_indices_are_told_apart() -> None:
    assert kinds(FRAME) == kinds(_Frame(FRAME)) == ["frame"]
    assert kinds(FRAME["a"]) == ["series"]
    assert kinds(FRAME.index) == kinds(FRAME.columns) == ["index"]


@pytest.mark.parametrize("value", OTHERS, ids=repr)
def test_other_values_are_none_of_them(value: Any) -> None:
    assert kinds(value) == []


def test_only_none_and_the_constants_of_pandas_are_na() -> None:
    assert all(map(is_na, (None, pd.NA, pd.NaT)))
    assert not any(map(is_na, (math.nan, np.datetime64("NaT"), np.float64("nan"), "", 0, [])))


@pytest.mark.parametrize("module", [None, types.ModuleType("pandas")], ids=["not imported", "being imported"])
def test_nothing_is_a_frame_before_pandas_is_there(
    module: types.ModuleType | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", module)
    assert pandas_types.find_pandas() is None
    assert [kinds(value) for value in (FRAME, FRAME["a"], FRAME.index)] == [[], [], []]
    assert is_na(None)
    assert not is_na(math.nan)
    assert is_missing(math.nan)
    assert not is_missing(1.0)


@pytest.mark.parametrize("value", [pd.NA, pd.NaT, _Float("nan"), _Float(1), _Unordered(), pd.Timestamp(0)], ids=repr)
def test_missing_is_what_pandas_calls_so(value: Any) -> None:
    assert is_missing(value) is bool(pd.isna(value))


@pytest.mark.parametrize("made", [*SCALARS, *ARRAYS])
def test_missing_is_the_same_with_pandas(made: str) -> None:
    value = eval(made, dict(MADE_OF))
    assert is_missing(value) is bool(pd.isna(value))


@pytest.mark.usefixtures("without_pandas")
@pytest.mark.parametrize("made", [*SCALARS, *ARRAYS])
def test_missing_is_the_same_without_pandas(made: str) -> None:
    value = eval(made, dict(MADE_OF))
    assert is_missing(value) is bool(pd.isna(value))


@pytest.mark.usefixtures("without_pandas")
@pytest.mark.parametrize("value", [_Float("nan"), _Float(1), _Unordered()], ids=repr)
def test_missing_subclasses_are_the_same_without_pandas(value: Any) -> None:
    assert is_missing(value) is bool(pd.isna(value))


def test_scalars_do_not_import_pandas() -> None:
    code = f"""
import datetime, math, sys
from decimal import Decimal
from fractions import Fraction
import numpy as np
from auditor.datasets.pandas_types import is_missing
print([is_missing(eval(made)) for made in {SCALARS!r}])
assert "pandas" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{[bool(pd.isna(eval(made, dict(MADE_OF)))) for made in SCALARS]}\n"
