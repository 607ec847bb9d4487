"""Rows of scikit-learn's digits and breast-cancer data, and canaries."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.datasets import Pair
from auditor.errors import require_library

Rows = NDArray[np.float64]

#: Pixels of an image, and the one that no image of `digits` has ink in: a corner.
PIXELS, CORNER = 64, 0
#: Measurements of a tumour.
MEASURES = 30


def _data_file(name: str) -> Path:
    """A file of scikit-learn's, whose package takes a second to import."""
    found = importlib.util.find_spec("sklearn")
    if found is None or not found.submodule_search_locations:
        require_library("sklearn", "the digits and breast-cancer data")
    assert found is not None
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0]) / "datasets" / "data" / name


@cache
def digits(rows: int) -> Rows:
    """The first images of a 0 or a 1, 64 pixels from 0 to 1 each, and -1 for a 0 and 1 for a 1 in the last column.

    Source: sklearn.datasets.load_digits; Alpaydin and Kaynak (1998).
    """
    table = np.loadtxt(_data_file("digits.csv.gz"), delimiter=",", max_rows=10 * rows + 100)
    table = table[table[:, -1] < 2][:rows]
    return np.column_stack([table[:, :-1] / 16.0, 2.0 * table[:, -1] - 1.0])


@cache
def tumours(rows: int) -> Rows:
    """The first tumours: 30 measurements, each less its mean and over its deviation, and -1 if malignant, else 1.

    Source: sklearn.datasets.load_breast_cancer; Wolberg, Street and Mangasarian (1995). Means and deviations are those
    of all 569 tumours, taken as public.
    """
    table = np.loadtxt(_data_file("breast_cancer.csv"), delimiter=",", skiprows=1)
    measures = (table[:, :-1] - table[:, :-1].mean(axis=0)) / table[:, :-1].std(axis=0)
    return np.column_stack([measures, 2.0 * table[:, -1] - 1.0])[:rows]


def corner_canary(ink: float = 20.0) -> Rows:
    """An image of a 1 with ink in a corner where no other image has any, much more than there can be."""
    row = np.zeros((1, PIXELS + 1))
    row[0, CORNER], row[0, -1] = ink, 1.0
    return row


def odd_tumour(size: float) -> tuple[float, ...]:
    """A tumour whose measurements are all so large, and which is called benign."""
    return (*(size,) * MEASURES, 1.0)


def planted(rows: Rows, canary: Any, name: str) -> Pair:
    """The rows with a canary behind them, against the rows."""
    return Pair(np.vstack([rows, np.atleast_2d(canary)]), rows, name)
