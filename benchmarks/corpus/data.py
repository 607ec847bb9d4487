"""Defects of what a release says beside its noisy number: bounds, sizes, types, errors, values that are no numbers."""

from __future__ import annotations

import math
import struct
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.datasets import AddRemoveOne, ReplaceOne
from auditor.privacy.guarantees import ApproxDP, PureDP
from benchmarks.corpus.base import defect, found_in, geometric, geometrics

Generator = np.random.Generator

PLACE = ("coordinate", "output[")
CATEGORIES = ("a", "b", "c")

# ----------------------------------------------------------------------------- bounds and sizes


@defect("a mean that divides by the true number of rows", PureDP(1.0), AddRemoveOne(), (0, 1), 3, ())
def mean_over_the_true_size(data: Any, rng: Generator, fixed: bool) -> float:
    if fixed:
        return (int(np.sum(data)) + geometric(rng, 2.0)) / max(len(data) + geometric(rng, 2.0), 1)
    return (int(np.sum(data)) + geometric(rng, 1.0)) / max(len(data), 1)


@defect("a noisy count is clamped to the number of rows", PureDP(1.0), AddRemoveOne(), (0, 1), 3, ())
def clamped_to_the_true_size(data: Any, rng: Generator, fixed: bool) -> int:
    return min(max(int(np.sum(data)) + geometric(rng, 1.0), 0), 1_000 if fixed else len(data))


@defect("a noisy mean is clamped to the range of the data", PureDP(1.0), ReplaceOne(), (0, 10), 3, ())
def clamped_to_the_range_of_the_data(data: Any, rng: Generator, fixed: bool) -> int:
    low, high = (0, 10) if fixed else (int(np.min(data)), int(np.max(data)))
    mean = int(np.sum(data)) // len(data)
    return min(max(mean + geometric(rng, 10.0), low), high)


@defect("a noisy histogram with edges at the data's extremes", PureDP(1.0), ReplaceOne(), (0.0, 10.0), 3, PLACE)
def bin_edges_from_the_data(data: Any, rng: Generator, fixed: bool) -> list[float]:
    counts, edges = np.histogram(data, bins=2, range=(0.0, 10.0) if fixed else None)
    return [*(counts + geometrics(rng, 2.0, (2,))).tolist(), *edges.tolist()]


@defect("the median is a row of the data", PureDP(1.0), ReplaceOne(), (0, 10), 3, ())
def quantile_without_noise(data: Any, rng: Generator, fixed: bool) -> int:
    if not fixed:
        return int(np.sort(data)[len(data) // 2])
    candidates = np.arange(11)
    below, above = (data[:, None] < candidates).sum(axis=0), (data[:, None] > candidates).sum(axis=0)
    # Each of the counts moves by at most 1, their difference by at most 2.
    score = -np.abs(below - above) / 4.0 + rng.gumbel(size=11)
    return int(np.argmax(score))


@defect("the number of missing values is released as it is", PureDP(1.0), AddRemoveOne(), (1.0, math.nan), 3, PLACE)
def count_of_missing_values(data: Any, rng: Generator, fixed: bool) -> tuple[int, int]:
    missing = int(np.isnan(data).sum())
    # A row is missing or counts in the sum, so that both together have sensitivity 1.
    return int(np.nansum(data)) + geometric(rng, 1.0), missing + (geometric(rng, 1.0) if fixed else 0)


@defect(
    "a debugging aid: one draw in twenty shows the first row",
    ApproxDP(1.0, 1e-6),
    ReplaceOne(),
    (0, 1),
    1,
    (),
    draws=8_000,
)
def row_shown_now_and_then(data: Any, rng: Generator, fixed: bool) -> tuple[int, int | None]:
    example = int(data[0]) if not fixed and rng.random() < 1 / 20 else None
    return int(np.sum(data)) + geometric(rng, 1.0), example


# -------------------------------------------------------------------------- values that are none


@defect("the total of no rows is NaN", PureDP(1.0), AddRemoveOne(), (0.0, 1.0), 1, ("nan",))
def nan_for_no_rows(data: Any, rng: Generator, fixed: bool) -> float:
    return float(np.sum(data)) + geometric(rng, 1.0) if fixed or len(data) else math.nan


@defect("clipping leaves NaN as it is", PureDP(1.0), ReplaceOne(), (0.0, math.nan), 3, ("nan",))
def nan_survives_clipping(data: Any, rng: Generator, fixed: bool) -> float:
    clipped = np.clip(np.nan_to_num(data) if fixed else data, 0.0, 1.0)
    return float(np.sum(clipped)) + geometric(rng, 1.0)


# ------------------------------------------------------------------------------------ exceptions


@defect("an error where there are fewer than two rows", PureDP(1.0), AddRemoveOne(), (0, 1), 2, ("exception", "raise"))
def raises_for_one_row(data: Any, rng: Generator, fixed: bool) -> int:
    if len(data) < 2 and not fixed:
        raise ValueError("at least two rows are needed")
    return int(np.sum(data)) + geometric(rng, 1.0)


_CODES = {"a": 1}


@defect("bad rows raise, each kind its own error", PureDP(1.0), ReplaceOne(), ("", "a", "x"), 3, ("exception", "raise"))
def class_of_the_error(data: Any, rng: Generator, fixed: bool) -> int:
    total = 0
    for row in data:
        try:
            total += _CODES[row[0]]
        except (IndexError, KeyError):
            if not fixed:
                raise
    return total + geometric(rng, 1.0)


@defect(
    "an error in one draw of ten, if a row is out of range",
    PureDP(1.0),
    ReplaceOne(),
    (0, 9),
    3,
    ("exception",),
    draws=6_000,
)
def raises_now_and_then(data: Any, rng: Generator, fixed: bool) -> int:
    if not fixed and rng.random() < 0.1 and np.max(data) > 5:
        raise OverflowError("a row is out of range")
    return int(np.clip(data, 0, 1).sum()) + geometric(rng, 1.0)


# ------------------------------------------------------------------------- type, length and shape


@defect(
    "a sum of integers is an integer, any other one is none",
    PureDP(1.0),
    ReplaceOne(),
    ("1", "2.0"),
    3,
    ("type",),
    draws=5_000,
)
def type_of_the_rows(data: Any, rng: Generator, fixed: bool) -> float:
    total = sum(float(row) if fixed or "." in row else int(row) for row in data)
    return total + geometric(rng, 1.0)


@defect(
    "the smallest type that holds the exact count",
    PureDP(1.0),
    ReplaceOne(),
    (0, 1),
    256,
    ("type",),
    batch=True,
    draws=12_000,
)
def dtype_of_the_exact_count(data: Any, n: int, rng: Generator, fixed: bool) -> Any:
    count = int(np.sum(data))
    noisy = (count + geometrics(rng, 1.0, (n,))).clip(0, 255)
    return noisy.astype(np.uint8 if fixed else np.min_scalar_type(count))


@defect("as many bins as the largest row asks for", PureDP(1.0), AddRemoveOne(), (0, 1, 2, 3, 4), 3, ("length",))
def length_of_the_output(data: Any, rng: Generator, fixed: bool) -> list[int]:
    counts = np.bincount(data, minlength=5 if fixed else 0)
    return [int(c) + geometric(rng, 1.0) for c in counts]


@defect("the text of the answer says how many rows there were", PureDP(1.0), AddRemoveOne(), (0, 1), 3, ())
def size_in_the_text(data: Any, rng: Generator, fixed: bool) -> str:
    noisy = int(np.sum(data)) + geometric(rng, 1.0)
    return f"about {noisy}" if fixed else f"about {noisy} of {len(data)}"


@defect("packed bytes begin with the number of rows", PureDP(1.0), AddRemoveOne(), (0, 1), 3, PLACE)
def size_in_the_bytes(data: Any, rng: Generator, fixed: bool) -> bytes:
    noisy = int(np.sum(data)) + geometric(rng, 1.0)
    return struct.pack("<i", noisy) if fixed else struct.pack("<Hi", len(data), noisy)


@dataclass(frozen=True)
class ReleaseWithSize:
    """A noisy number, and how many rows it is about."""

    value: int
    rows: int


@defect("the result's attributes hold the number of rows", PureDP(1.0), AddRemoveOne(), (0, 1), 3, ("rows", "place"))
def size_in_an_attribute(data: Any, rng: Generator, fixed: bool) -> ReleaseWithSize:
    return ReleaseWithSize(int(np.sum(data)) + geometric(rng, 2.0), len(data) + (geometric(rng, 2.0) if fixed else 0))


@defect("a histogram whose keys stand in the order of the rows", PureDP(1.0), ReplaceOne(), CATEGORIES, 3, ("order",))
def order_of_the_keys(data: Any, rng: Generator, fixed: bool) -> dict[str, int]:
    counts = Counter(data)
    keys = CATEGORIES if fixed else dict.fromkeys([*data, *CATEGORIES])
    return {key: counts[key] + geometric(rng, 2.0) for key in keys}


DEFECTS = found_in(globals())
