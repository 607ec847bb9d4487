"""Defects in other forms and units of output, at thresholds of size, and under other relations."""

from __future__ import annotations

import decimal
import math
import struct
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.datasets import AddRemoveOne, EdgeNeighbors, PerUser, ReplaceOne
from auditor.privacy.guarantees import PureDP
from benchmarks.corpus.base import defect, found_in, geometric, geometrics, rounded
from benchmarks.corpus.noise import BITS

Generator = np.random.Generator

CATEGORIES = ("a", "b", "c")

# ------------------------------------------------------------------------- floats in other forms


@defect("textbook noise in large units", PureDP(1.0), AddRemoveOne(), (0.0, 3e6), 1, BITS)
def noise_in_large_units(data: Any, rng: Generator, fixed: bool) -> float:
    noisy = float(np.sum(data)) + rng.laplace(0.0, 3e6)
    return rounded(noisy / 3e6) * 3e6 if fixed else noisy


@defect("textbook noise in small units", PureDP(1.0), AddRemoveOne(), (0.0, 3e-9), 1, BITS)
def noise_in_small_units(data: Any, rng: Generator, fixed: bool) -> float:
    noisy = float(np.sum(data)) + rng.laplace(0.0, 3e-9)
    return rounded(noisy / 3e-9) * 3e-9 if fixed else noisy


@defect("textbook noise, the answer as text", PureDP(1.0), AddRemoveOne(), (0.0, 1.0), 1, BITS)
def double_as_text(data: Any, rng: Generator, fixed: bool) -> str:
    noisy = float(np.sum(data)) + rng.laplace(0.0, 1.0)
    return str(rounded(noisy) if fixed else noisy)


@defect("textbook noise, the answer as eight bytes", PureDP(1.0), AddRemoveOne(), (0.0, 1.0), 1, BITS)
def double_as_bytes(data: Any, rng: Generator, fixed: bool) -> bytes:
    noisy = float(np.sum(data)) + rng.laplace(0.0, 1.0)
    return struct.pack("<d", rounded(noisy) if fixed else noisy)


class TotalWithMargin(NamedTuple):
    """A noisy total and its public margin of error."""

    total: float
    margin: float


@defect("textbook noise in a named tuple", PureDP(1.0), AddRemoveOne(), (0.0, 1.0), 1, BITS)
def double_in_a_named_tuple(data: Any, rng: Generator, fixed: bool) -> TotalWithMargin:
    noisy = float(np.sum(data)) + rng.laplace(0.0, 1.0)
    return TotalWithMargin(rounded(noisy) if fixed else noisy, 3.0)


@defect(
    "less noise than claimed, in a sentence beside random digits",
    PureDP(1.0),
    AddRemoveOne(),
    (0, 1),
    1,
    ("number in a text",),
)
def total_in_a_sentence(data: Any, rng: Generator, fixed: bool) -> str:
    noisy = int(np.sum(data)) + geometric(rng, 1.0 if fixed else 0.4)
    return f"query {rng.integers(10**9):09d}: about {noisy} rows"


@defect("less noise than claimed, in a decimal amount", PureDP(1.0), AddRemoveOne(), (0, 1), 1, ("attribute",))
def total_as_a_decimal(data: Any, rng: Generator, fixed: bool) -> decimal.Decimal:
    return decimal.Decimal(100 * int(np.sum(data)) + geometric(rng, 100.0 if fixed else 40.0)) / 100


@defect(
    "a random number is even more often for one value", PureDP(1.0), ReplaceOne(), (0, 1), 1, ("remainder",), batch=True
)
def parity_of_a_random_number(data: Any, n: int, rng: Generator, fixed: bool) -> NDArray[np.int64]:
    level = 1.0 if fixed else 3.0
    shown = (rng.random(n) < math.exp(level) / (1.0 + math.exp(level))) == bool(data[0])
    return np.asarray(2 * rng.integers(0, 2**40, n) + shown)


@defect("integer noise on answers that are no integers", PureDP(1.0), ReplaceOne(), (0.0, 0.3), 3, ())
def integer_noise_on_a_real_answer(data: Any, rng: Generator, fixed: bool) -> float:
    total = float(np.sum(data))
    return rounded(total + rng.laplace(0.0, 1.0)) if fixed else total + geometric(rng, 1.0)


# ------------------------------------------------------------------------------ arrays and tables


@defect(
    "two far coordinates of many share their noise",
    PureDP(1.0),
    ReplaceOne(),
    tuple(range(40)),
    3,
    ("shared noise",),
    batch=True,
    draws=4_000,
)
def far_coordinates_share_noise(data: Any, n: int, rng: Generator, fixed: bool) -> NDArray[np.int64]:
    noise = geometrics(rng, 2.0, (n, 40))
    if not fixed:
        noise[:, 39] = noise[:, 7]
    return np.asarray(np.bincount(data, minlength=40) + noise)


@defect(
    "noise has the correlation that the data have",
    PureDP(1.0),
    ReplaceOne(),
    (0, 1),
    1,
    ("go together",),
    batch=True,
    draws=8_000,
)
def noise_correlated_as_the_data_are(data: Any, n: int, rng: Generator, fixed: bool) -> NDArray[np.int64]:
    noise = geometrics(rng, 20.0, (n, 30))
    if data[0] and not fixed:
        noise[:, 27] = noise[:, 3] + geometrics(rng, 5.0, (n,))
    return noise


@defect(
    "a table of noisy counts, one cell of it without noise",
    PureDP(1.0),
    ReplaceOne(),
    tuple(range(20)),
    3,
    ("coordinate 19", "output[19]", "output[3][4]"),
    batch=True,
)
def cell_of_a_table_without_noise(data: Any, n: int, rng: Generator, fixed: bool) -> NDArray[np.int64]:
    noise = geometrics(rng, 2.0, (n, 4, 5))
    if not fixed:
        noise[:, 3, 4] = 0
    return np.asarray(np.bincount(data, minlength=20).reshape(4, 5) + noise)


@defect(
    "a set of the keys that occur", PureDP(1.0), AddRemoveOne(), CATEGORIES, 3, ("key", "member", "value", "length")
)
def set_of_keys(data: Any, rng: Generator, fixed: bool) -> set[str]:
    counts = Counter(data)
    keys = CATEGORIES if fixed else counts
    return {key for key in keys if counts[key] + geometric(rng, 1.0) > -3}


@defect(
    "a pandas Series with an index of the keys that occur",
    PureDP(1.0),
    AddRemoveOne(),
    CATEGORIES,
    3,
    ("key", "length", "has output", "place", "never"),
    draws=800,
)
def index_of_a_series(data: Any, rng: Generator, fixed: bool) -> Any:
    counts = Counter(data)
    keys = list(CATEGORIES) if fixed else sorted(counts)
    return pd.Series([counts[key] + geometric(rng, 1.0) for key in keys], index=keys, dtype=np.int64)


@defect("the mean's sign is told without noise", PureDP(1.0), ReplaceOne(), (-1, 1), 3, ())
def sign_without_noise(data: Any, rng: Generator, fixed: bool) -> int:
    total = int(np.sum(data))
    noisy = total + geometric(rng, 2.0)
    return noisy if fixed else abs(noisy) * (1 if total > 0 else -1)


# ----------------------------------------------------------------------------- thresholds of size


@defect(
    "no answer where the true count is below four",
    PureDP(1.0),
    AddRemoveOne(),
    (0, 1),
    6,
    ("none", "type"),
    draws=4_000,
)
def small_counts_suppressed(data: Any, rng: Generator, fixed: bool) -> int | None:
    noisy = int(np.sum(data)) + geometric(rng, 1.0)
    small = (noisy if fixed else int(np.sum(data))) < 4
    return None if small else noisy


@defect("chunks of 32 rows get noise, the rows beyond do not", PureDP(1.0), AddRemoveOne(), (0, 1), 40, ())
def last_chunk_without_noise(data: Any, rng: Generator, fixed: bool) -> int:
    chunks = 1 if fixed else len(data) // 32
    return int(np.sum(data)) + sum(geometric(rng, 1.0) for _ in range(chunks))


@defect("a different algorithm for more than sixteen rows", PureDP(1.0), AddRemoveOne(), (0, 1), 20, ())
def noise_doubled_for_many_rows(data: Any, rng: Generator, fixed: bool) -> int:
    return int(np.sum(data)) + geometric(rng, 1.0) * (1 if fixed or len(data) <= 16 else 2)


@defect("rows are summed before the noise is clipped to 30", PureDP(1.0), AddRemoveOne(), (0, 100), 3, ())
def rows_not_clipped(data: Any, rng: Generator, fixed: bool) -> int:
    return int(np.sum(np.clip(data, 0, 30) if fixed else data)) + geometric(rng, 30.0)


# -------------------------------------------------------------------------------- other relations


@defect("a user's rows all count, the noise is for one", PureDP(1.0), PerUser(), (0, 1), 6, ())
def contributions_not_bounded(data: Any, rng: Generator, fixed: bool) -> int:
    total = sum({int(user): int(value) for user, value in data}.values()) if fixed else int(data[:, 1].sum())
    return total + geometric(rng, 1.0)


@defect("an edge counted once moves two degrees", PureDP(1.0), EdgeNeighbors(), (0, 1), 5, ())
def edge_that_moves_two_degrees(data: Any, rng: Generator, fixed: bool) -> int:
    return int(np.sum(data)) + geometric(rng, 2.0 if fixed else 1.0)


DEFECTS = found_in(globals())
