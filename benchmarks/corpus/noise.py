"""Defective noise: its bits, its distribution, its scale, and what it is drawn from."""

from __future__ import annotations

import hashlib
import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.datasets import AddRemoveOne, ReplaceOne
from auditor.privacy.guarantees import GaussianDP, PureDP
from benchmarks.corpus.base import defect, found_in, geometric, geometrics, rounded

Generator = np.random.Generator

BITS = ("bit structure", "a float", "multiple of 2^")
SHARED = ("difference", "equal", " - output", " - sum")

# -------------------------------------------------------------------------------- bits of floats


@defect("numpy's Laplace noise added in doubles", PureDP(1.0), AddRemoveOne(), (0.0, 1.0), 1, BITS)
def textbook_laplace_noise(data: Any, rng: Generator, fixed: bool) -> float:
    noisy = float(np.sum(data)) + rng.laplace(0.0, 1.0)
    return rounded(noisy) if fixed else noisy


@defect("numpy's Gaussian noise added in doubles", GaussianDP(1.0), AddRemoveOne(), (0.0, 1.0), 1, BITS)
def textbook_gaussian_noise(data: Any, rng: Generator, fixed: bool) -> float:
    noisy = float(np.sum(data)) + rng.normal(0.0, 1.0)
    return rounded(noisy) if fixed else noisy


@defect("Laplace noise added in single precision", PureDP(1.0), AddRemoveOne(), (0.0, 1.0), 1, BITS)
def noise_in_float32(data: Any, rng: Generator, fixed: bool) -> Any:
    noisy = np.float32(np.sum(data)) + np.float32(rng.laplace(0.0, 1.0))
    return rounded(float(noisy)) if fixed else noisy


@defect("textbook noise on a vector, of which one coordinate moves", PureDP(1.0), AddRemoveOne(), (0, 4), 1, BITS)
def textbook_noise_on_a_vector(data: Any, rng: Generator, fixed: bool) -> list[float]:
    noisy = np.bincount(data, minlength=5) + rng.laplace(0.0, 1.0, 5)
    return [rounded(v) for v in noisy.tolist()] if fixed else noisy.tolist()


@defect(
    "small totals are zeroed by a product, whose sign is the total's",
    PureDP(1.0),
    ReplaceOne(),
    (-1, 1),
    1,
    ("-0.0", "sign of zero"),
)
def negative_zero(data: Any, rng: Generator, fixed: bool) -> float:
    total = float(np.sum(data))
    noisy = total + geometric(rng, 2.0)
    if abs(noisy) > 1:
        return noisy
    return 0.0 if fixed else 0.0 * total


# --------------------------------------------------------------------------------- distribution and scale


@defect("a sampler of geometric noise that never returns 0", PureDP(1.0), AddRemoveOne(), (0, 1), 3, (), draws=5_000)
def geometric_noise_that_is_never_zero(data: Any, rng: Generator, fixed: bool) -> int:
    if fixed:
        return int(np.sum(data)) + geometric(rng, 1.0)
    sign = 1 if rng.random() < 0.5 else -1
    return int(np.sum(data)) + sign * int(rng.geometric(-math.expm1(-1.0)))


@defect("noise that is never negative", PureDP(1.0), AddRemoveOne(), (0, 1), 3, ())
def one_sided_noise(data: Any, rng: Generator, fixed: bool) -> int:
    noise = geometric(rng, 1.0) if fixed else int(rng.geometric(-math.expm1(-1.0))) - 1
    return int(np.sum(data)) + noise


@defect("uniform noise of the variance of Laplace noise", PureDP(1.0), AddRemoveOne(), (0, 1), 3, (), draws=8_000)
def uniform_noise(data: Any, rng: Generator, fixed: bool) -> float:
    noise = rng.laplace(0.0, 1.0) if fixed else rng.uniform(-math.sqrt(6.0), math.sqrt(6.0))
    return rounded(float(np.sum(data)) + noise)


@defect("noise clipped to three scales", PureDP(1.0), AddRemoveOne(), (0, 1), 3, (), draws=20_000)
def truncated_noise(data: Any, rng: Generator, fixed: bool) -> float:
    noise = rng.laplace(0.0, 1.0)
    return rounded(float(np.sum(data)) + (noise if fixed else min(max(noise, -3.0), 3.0)))


@defect(
    "a buffer of noise runs empty: one draw in twenty is the answer itself",
    PureDP(1.0),
    AddRemoveOne(),
    (0, 1),
    3,
    (),
    draws=20_000,
)
def noise_left_out_now_and_then(data: Any, rng: Generator, fixed: bool) -> float:
    noise, empty = rng.laplace(0.0, 1.0), rng.random() < 1 / 20
    return rounded(float(np.sum(data)) + (0.0 if empty and not fixed else noise))


@defect("the noise is rounded, not the noisy mean", PureDP(1.0), ReplaceOne(), (0, 1), 8, ())
def rounded_noise(data: Any, rng: Generator, fixed: bool) -> float:
    noise = rng.laplace(0.0, 1.0 / len(data))
    return rounded(float(np.mean(data)) + (noise if fixed else round(noise)))


@defect("a sum gets the noise of a mean", PureDP(1.0), ReplaceOne(), (0, 1), 8, ())
def noise_divided_by_the_number_of_rows(data: Any, rng: Generator, fixed: bool) -> float:
    return rounded(float(np.sum(data)) + rng.laplace(0.0, 1.0 if fixed else 1.0 / len(data)))


@defect("1/epsilon taken as the standard deviation", PureDP(1.0), AddRemoveOne(), (0, 1), 3, (), draws=20_000)
def standard_deviation_for_scale(data: Any, rng: Generator, fixed: bool) -> float:
    return rounded(float(np.sum(data)) + rng.laplace(0.0, 1.0 if fixed else math.sqrt(0.5)))


@defect("the variance passed where a standard deviation is expected", GaussianDP(2.0), AddRemoveOne(), (0, 1), 3, ())
def variance_for_standard_deviation(data: Any, rng: Generator, fixed: bool) -> float:
    sigma = 0.5
    return rounded(float(np.sum(data)) + rng.normal(0.0, sigma if fixed else sigma**2))


@defect("the sensitivity of adding a row, where one is replaced", PureDP(1.0), ReplaceOne(), (-1, 1), 3, ())
def sensitivity_of_another_relation(data: Any, rng: Generator, fixed: bool) -> int:
    return int(np.sum(data)) + geometric(rng, 2.0 if fixed else 1.0)


@defect("two releases, each with the whole epsilon", PureDP(1.0), AddRemoveOne(), (0, 1), 3, (), draws=8_000)
def budget_spent_twice(data: Any, rng: Generator, fixed: bool) -> tuple[int, int]:
    total, scale = int(np.sum(data)), 2.0 if fixed else 1.0
    return total + geometric(rng, scale), total + geometric(rng, scale)


@defect("noise scaled to the largest row there is", PureDP(1.0), ReplaceOne(), (0, 10), 3, ())
def sensitivity_from_the_data(data: Any, rng: Generator, fixed: bool) -> int:
    sensitivity = 10 if fixed else int(np.max(data))
    return int(np.sum(data)) + (geometric(rng, float(sensitivity)) if sensitivity else 0)


@defect("a median with noise scaled to its local sensitivity", PureDP(1.0), ReplaceOne(), (0, 10), 3, ())
def local_sensitivity(data: Any, rng: Generator, fixed: bool) -> int:
    s: list[int] = sorted(data.tolist())
    m = len(data) // 2
    gap = 10 if fixed else max(s[min(m + 1, len(s) - 1)] - s[m], s[m] - s[max(m - 1, 0)])
    return s[m] + (geometric(rng, float(gap)) if gap else 0)


@defect(
    "rows are clipped coordinate by coordinate, the noise is for their norm",
    GaussianDP(1.0),
    AddRemoveOne(),
    ((0.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0)),
    2,
    (),
    draws=3_000,
)
def coordinates_clipped_for_the_norm(data: Any, rng: Generator, fixed: bool) -> list[float]:
    clipped = np.clip(data, -1.0, 1.0)
    if fixed:
        clipped = clipped / np.maximum(np.linalg.norm(clipped, axis=1, keepdims=True), 1.0)
    return [rounded(v) for v in (clipped.sum(axis=0) + rng.normal(0.0, 1.0, 4)).tolist()]


@defect(
    "amplification by sampling claimed for every fourth row",
    PureDP(math.log1p(0.25 * math.expm1(1.0))),
    AddRemoveOne(),
    (0, 1),
    3,
    (),
    draws=20_000,
)
def sample_that_is_not_random(data: Any, rng: Generator, fixed: bool) -> int:
    sample = data[rng.random(len(data)) < 0.25] if fixed else data[::4]
    return int(np.sum(sample)) + geometric(rng, 1.0)


@defect("the sum is accumulated in eight bits", PureDP(1.0), ReplaceOne(), (0, 1), 256, ())
def overflow_of_small_integers(data: Any, rng: Generator, fixed: bool) -> int:
    return int(np.sum(data, dtype=np.int64 if fixed else np.uint8)) + geometric(rng, 1.0)


# ------------------------------------------------------------------- what the noise is drawn from


@defect("a generator seeded with a constant", PureDP(1.0), AddRemoveOne(), (0, 1), 3, ())
def constant_seed(data: Any, rng: Generator, fixed: bool) -> int:
    return int(np.sum(data)) + geometric(rng if fixed else np.random.default_rng(42), 1.0)


@defect("a generator seeded with a hash of the data", PureDP(1.0), AddRemoveOne(), (0, 1), 3, ())
def seed_from_the_data(data: Any, rng: Generator, fixed: bool) -> int:
    seed = int.from_bytes(hashlib.sha256(np.asarray(data).tobytes()).digest()[:8], "big")
    return int(np.sum(data)) + geometric(rng if fixed else np.random.default_rng(seed), 1.0)


_CACHE: dict[bytes, int] = {}


@defect("noisy answers are cached, so that a dataset has one for ever", PureDP(1.0), AddRemoveOne(), (0, 1), 3, ())
def memoised_answer(data: Any, rng: Generator, fixed: bool) -> int:
    answer = int(np.sum(data)) + geometric(rng, 1.0)
    return answer if fixed else _CACHE.setdefault(np.asarray(data).tobytes(), answer)


_CLOCK = itertools.count()


@defect(
    "a seed taken from a clock that ticks every 400 draws",
    PureDP(1.0),
    AddRemoveOne(),
    (0, 1),
    3,
    (),
    verdicts=("violation", "deviation"),
)
def seed_from_a_slow_clock(data: Any, rng: Generator, fixed: bool) -> int:
    return int(np.sum(data)) + geometric(rng if fixed else np.random.default_rng(next(_CLOCK) // 400), 1.0)


@defect(
    "each draw of noise serves two neighbouring outputs of a call",
    PureDP(1.0),
    AddRemoveOne(),
    (0, 1),
    3,
    ("independent",),
    batch=True,
    verdicts=("deviation",),
)
def noise_for_two_outputs(data: Any, n: int, rng: Generator, fixed: bool) -> NDArray[Any]:
    noise = geometrics(rng, 1.0, (n,)) if fixed else np.repeat(geometrics(rng, 1.0, (n // 2 + 1,)), 2)[:n]
    return np.asarray(int(np.sum(data)) + noise)


@defect(
    "sixteen draws of noise are used over and over within a call",
    PureDP(1.0),
    AddRemoveOne(),
    (0, 1),
    3,
    ("independent",),
    batch=True,
    verdicts=("deviation",),
)
def noise_recycled_within_a_call(data: Any, n: int, rng: Generator, fixed: bool) -> NDArray[Any]:
    noise = geometrics(rng, 1.0, (n if fixed else min(n, 16),))
    return np.asarray(int(np.sum(data)) + np.resize(noise, n))


@defect("one draw of noise for the sum and the count", PureDP(1.0), AddRemoveOne(), (0, 1), 3, SHARED)
def draw_used_twice(data: Any, rng: Generator, fixed: bool) -> tuple[int, int]:
    first = geometric(rng, 2.0)
    second = geometric(rng, 2.0) if fixed else first
    return int(np.sum(data)) + first, len(data) + second


@defect("one draw of noise for all bins", PureDP(1.0), AddRemoveOne(), (0, 1, 2, 3), 3, SHARED)
def noise_shared_by_all_bins(data: Any, rng: Generator, fixed: bool) -> list[int]:
    noise = geometrics(rng, 1.0, (4,)) if fixed else geometric(rng, 1.0)
    found: list[int] = (np.bincount(data, minlength=4) + noise).tolist()
    return found


DEFECTS = found_in(globals())
