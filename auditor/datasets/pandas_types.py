"""DataFrames without pandas: where it was never imported, no value is one.

pandas takes longer to import than numpy and this package together; data that are arrays or lists do not need it.
"""

from __future__ import annotations

import numbers
import sys
from decimal import Decimal
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

#: Values that have no axes though they may have what makes arrays of others.
_SCALARS = (type, np.generic, numbers.Number, str, bytes)


def find_pandas() -> ModuleType | None:
    """Return pandas if it has been imported, else None.

    It is None while pandas is being imported.
    """
    pandas = sys.modules.get("pandas")
    return pandas if hasattr(pandas, "DataFrame") else None


def is_frame(value: Any) -> TypeGuard[pd.DataFrame]:
    """Whether a value is a DataFrame."""
    pandas = find_pandas()
    return pandas is not None and isinstance(value, pandas.DataFrame)


def is_series(value: Any) -> TypeGuard[pd.Series[Any]]:
    """Whether a value is a Series."""
    pandas = find_pandas()
    return pandas is not None and isinstance(value, pandas.Series)


def is_index(value: Any) -> TypeGuard[pd.Index[Any]]:
    """Whether a value is an Index."""
    pandas = find_pandas()
    return pandas is not None and isinstance(value, pandas.Index)


def is_named_type(dtype: Any) -> bool:
    """Whether a column's type can be made again from its name."""
    import pandas as pd  # takes longer to import than all the rest together

    try:
        return bool(pd.api.types.pandas_dtype(str(dtype)) == dtype)
    except (TypeError, NotImplementedError):  # such as decimals of Arrow
        return False


def is_na(value: Any) -> bool:
    """Whether a value is None or pandas' NA or NaT."""
    pandas = find_pandas()
    return value is None or (pandas is not None and (value is pandas.NA or value is pandas.NaT))


def is_missing(value: Any) -> bool:
    """Whether a scalar is missing: None, NaN, NaT, NA.

    It is the truth value of ``pandas.isna``.

    Examples
    --------
    >>> is_missing(float("nan")), is_missing(np.datetime64("NaT")), is_missing("nan")
    (True, True, False)
    """
    if find_pandas() is None and (isinstance(value, _SCALARS) or not hasattr(value, "__array__")):
        return _missing_scalar(value)
    import pandas as pd  # takes longer to import than all the rest together

    return bool(pd.isna(value))


def _missing_scalar(value: Any) -> bool:
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return value is None or (isinstance(value, float | complex | np.inexact | Decimal) and bool(value != value))
