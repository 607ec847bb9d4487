"""Defects of histograms, of selections and of what is released or not."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.datasets import AddRemoveOne, ReplaceOne
from auditor.privacy.guarantees import ApproxDP, PureDP
from benchmarks.corpus.base import defect, found_in, geometric, geometrics

Generator = np.random.Generator

KEY = ("key", "length", "has output", "has no output")
CATEGORIES = ("a", "b", "c")


@defect("a histogram that drops empty bins", PureDP(1.0), AddRemoveOne(), CATEGORIES, 3, KEY)
def empty_bins_dropped(data: Any, rng: Generator, fixed: bool) -> dict[str, int]:
    counts = Counter(data)
    return {key: counts[key] + geometric(rng, 1.0) for key in (CATEGORIES if fixed else sorted(counts))}


@defect("bins with no rows get no noise", PureDP(1.0), AddRemoveOne(), CATEGORIES, 3, ())
def no_noise_on_empty_bins(data: Any, rng: Generator, fixed: bool) -> dict[str, int]:
    counts = Counter(data)
    return {key: counts[key] + (geometric(rng, 1.0) if fixed or counts[key] else 0) for key in CATEGORIES}


def _release_counts(data: Any, rng: Generator, threshold: float) -> dict[str, int]:
    noisy = {key: count + geometric(rng, 1.0) for key, count in sorted(Counter(data).items())}
    return {key: count for key, count in noisy.items() if count > threshold}


#: A key of one row passes with probability delta at most: P[1 + noise > t] = a^-t a / (a + 1) with a = e.
_THRESHOLD = 1.0 - math.log(1e-5)


@defect("every key whose noisy count is positive", ApproxDP(1.0, 1e-5), AddRemoveOne(), CATEGORIES, 3, KEY)
def keys_released_without_a_threshold(data: Any, rng: Generator, fixed: bool) -> dict[str, int]:
    return _release_counts(data, rng, _THRESHOLD if fixed else 0.0)


@defect(
    "keys released above a threshold for delta = 0.3",
    ApproxDP(1.0, 1e-5),
    AddRemoveOne(),
    CATEGORIES,
    3,
    KEY,
    draws=4_000,
)
def threshold_for_a_larger_delta(data: Any, rng: Generator, fixed: bool) -> dict[str, int]:
    return _release_counts(data, rng, _THRESHOLD if fixed else 1.0)


@defect("a ranking, ties by the order of the rows", PureDP(1.0), ReplaceOne(), CATEGORIES, 3, (), draws=8_000)
def ties_by_the_order_of_the_rows(data: Any, rng: Generator, fixed: bool) -> list[str]:
    counts = Counter(data)
    keys = CATEGORIES if fixed else dict.fromkeys([*data, *CATEGORIES])
    # Counts are coarsened, so that there are many ties; sorted() keeps the order of the keys where there is one.
    noisy = {key: (counts[key] + geometric(rng, 2.0)) // 4 for key in keys}
    return sorted(keys, key=lambda key: -noisy[key])


@defect("the exponential mechanism without its 2", PureDP(1.0), ReplaceOne(), ("a", "b"), 3, (), draws=20_000)
def exponential_mechanism_without_the_two(data: Any, rng: Generator, fixed: bool) -> str:
    counts = Counter(data)
    score = {key: counts[key] / (2.0 if fixed else 1.0) + rng.gumbel() for key in ("a", "b")}
    return max(score, key=lambda key: score[key])


@defect(
    "sparse vector without noise on the threshold",
    PureDP(1.0),
    AddRemoveOne(),
    (0, 1),
    3,
    (),
    draws=20_000,
)
def sparse_vector_without_threshold_noise(data: Any, rng: Generator, fixed: bool) -> int:
    threshold = 1 + (geometric(rng, 2.0) if fixed else 0)
    for asked in range(5):
        if int(np.sum(data)) + geometric(rng, 4.0 if fixed else 2.0) >= threshold:
            return asked
    return 5


@defect("sparse vector without noise on the queries", PureDP(1.0), ReplaceOne(), (0, 1), 3, ())
def sparse_vector_without_query_noise(data: Any, rng: Generator, fixed: bool) -> tuple[bool, ...]:
    threshold, ones = 2 + geometric(rng, 2.0), int(np.sum(data))
    answers: list[bool] = []
    for query in (ones, len(data) - ones):
        answers.append(query + (geometric(rng, 4.0) if fixed else 0) >= threshold)
        if fixed and answers[-1]:
            break
    return tuple(answers)


@defect(
    "randomised response on 64 bits, of which the last is never flipped",
    PureDP(1.0),
    ReplaceOne(),
    (0, 1),
    64,
    ("coordinate",),  # the last one of as few bits as it shrinks to
    batch=True,
)
def last_bit_never_flipped(data: Any, n: int, rng: Generator, fixed: bool) -> NDArray[Any]:
    flipped = rng.random((n, len(data))) < 1.0 / (1.0 + math.e)
    if not fixed:
        flipped[:, -1] = False
    return np.asarray(data, dtype=bool) ^ flipped


@defect(
    "a histogram of 100 bins, the last without noise",
    PureDP(1.0),
    ReplaceOne(),
    tuple(range(100)),
    3,
    ("coordinate 99", "output[99]"),
    batch=True,
    draws=1_000,
)
def last_of_many_bins_without_noise(data: Any, n: int, rng: Generator, fixed: bool) -> NDArray[np.int64]:
    noise = geometrics(rng, 2.0, (n, 100))
    if not fixed:
        noise[:, -1] = 0
    return np.asarray(np.bincount(data, minlength=100) + noise)


@defect(
    "noisy counts of 400 cells, one cell with a tenth of the noise",
    PureDP(1.0),
    ReplaceOne(),
    tuple(range(400)),
    3,
    ("coordinate 399", "output[399]"),
    batch=True,
    draws=1_000,
)
def one_of_many_cells_with_little_noise(data: Any, n: int, rng: Generator, fixed: bool) -> NDArray[np.int64]:
    noise = geometrics(rng, 2.0, (n, 400))
    if not fixed:
        noise[:, 399] = geometrics(rng, 0.2, (n,))
    return np.asarray(np.bincount(data, minlength=400) + noise)


DEFECTS = found_in(globals())
