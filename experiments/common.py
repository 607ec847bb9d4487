"""What the experiments share: the RAND microdata, neighbouring pairs of it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from auditor.datasets import AddRemoveOne, Pair, ReplaceOne

REPLACE, ADD_REMOVE = ReplaceOne(), AddRemoveOne()


@cache
def rand() -> pd.DataFrame:
    """RAND health insurance experiment: 20,190 person-years, with visits (mdvis), health and plan of each.

    Source: statsmodels.datasets.randhie; Deb and Trivedi (2002).
    """
    import statsmodels.datasets.randhie  # half a second, which commands that draw nothing need not pay

    data: pd.DataFrame = statsmodels.datasets.randhie.load_pandas().data
    return data


def person(**values: float) -> dict[str, float]:
    """A row of the data: the first person's, with some values changed."""
    return {**{str(k): float(v) for k, v in rand().iloc[0].items()}, **values}


def replaced(name: str, first: dict[str, float], second: dict[str, float], index: int = 0) -> Pair:
    """The data with row ``index`` replaced by one person, against the same by another."""
    return Pair(_with_row(tuple(first.items()), index), _with_row(tuple(second.items()), index), name)


@cache
def _with_row(row: tuple[tuple[str, float], ...], index: int) -> pd.DataFrame:
    # Half of the people are among several pairs. By column: mechanisms ask for one at a time.
    values = rand().to_numpy(float, copy=True)
    values[index] = pd.Series(dict(row))[list(rand().columns)]
    return pd.DataFrame(np.asfortranarray(values), columns=rand().columns)


def added(name: str, row: dict[str, float]) -> Pair:
    """The data with one more person, against the data."""
    data = rand().astype(float)
    return Pair(pd.concat([data, pd.DataFrame([row])[list(data.columns)]], ignore_index=True), data, name)


def visits(first: float, second: float, index: int = 0) -> Pair:
    """One person's number of doctor visits changes."""
    return replaced(
        f"person {index} goes from {first:g} visits to {second:g}", person(mdvis=first), person(mdvis=second), index
    )


def answers(*values: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A vector of query answers."""
    return np.array(values, dtype=float)
