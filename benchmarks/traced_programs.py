"""Programs for `auditor.trace`, half of them right: what is wrong with the others is said, and in which line."""

from __future__ import annotations

import inspect
import math
import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.datasets import Pair
from auditor.privacy.guarantees import ApproxDP, Guarantee, PureDP

Generator = np.random.Generator
#: Bits, with a person more on one side.
BITS = Pair(np.array([1, 0, 1]), np.array([1, 0, 1, 1]))
#: Numbers from 0 to 10, of which one differs by all.
NUMBERS = Pair(np.array([3.0, 0.0, 7.0]), np.array([3.0, 10.0, 7.0]))
EMPTIED = Pair(np.array([1]), np.array([], dtype=int))


@dataclass(frozen=True)
class TracedProgram:
    """A program, and whether it is right.

    Parameters
    ----------
    function : callable
        (data, rng) of one draw; its docstring's first line is its name.
    claim : Guarantee
        The claim.
    pair : Pair
        Neighbouring datasets.
    finding : str
        Kind of the finding if it is wrong; empty if it is right.
    """

    function: Callable[[Any, Generator], Any]
    claim: Guarantee
    pair: Pair
    finding: str = ""

    @property
    def name(self) -> str:
        """The program in words."""
        return (self.function.__doc__ or "").strip().rstrip(".")

    @property
    def line(self) -> int | None:
        """Number of the line that is marked as wrong; None if none is."""
        lines, first = inspect.getsourcelines(self.function)
        marked = [first + k for k, line in enumerate(lines) if "# wrong" in line]
        return marked[0] if marked else None


# ---------------------------------------------------------------------------------------- right


def laplace_sum(data: Any, rng: Generator) -> Any:
    """Sum with Laplace noise."""
    return data.sum() + rng.laplace(scale=10.0)


def located_sum(data: Any, rng: Generator) -> Any:
    """Sum as the location of its noise."""
    return rng.laplace(data.sum(), 10.0)


def gaussian_sum(data: Any, rng: Generator) -> Any:
    """Sum with Gaussian noise."""
    return data.sum() + rng.normal(scale=40.0)


def scaled_sum(data: Any, rng: Generator) -> Any:
    """Sum with standard normal noise, scaled by hand."""
    return data.sum() + 40.0 * rng.standard_normal()


def python_sum(data: Any, _rng: Generator) -> Any:
    """Sum with noise of the module random."""
    return data.sum() + random.gauss(0.0, 40.0)


def legacy_sum(data: Any, _rng: Generator) -> Any:
    """Sum with noise of numpy.random."""
    return data.sum() + np.random.laplace(0.0, 10.0)  # noqa: NPY002


def clipped_mean(data: Any, rng: Generator) -> Any:
    """Clipped mean of a known number of rows."""
    return np.clip(data, 0, 10).mean() + rng.laplace(scale=10.0 / 3)


def histogram(data: Any, rng: Generator) -> Any:
    """Histogram with noise in each cell."""
    return {value: int((data == value).sum()) + rng.laplace() for value in (0, 1)}


def two_sums(data: Any, rng: Generator) -> Any:
    """Two releases at half the level each."""
    return [data.sum() + rng.laplace(scale=20.0), (2 * data).sum() + rng.laplace(scale=40.0)]


def mixed_sums(data: Any, rng: Generator) -> Any:
    """Two noisy sums, mixed afterwards."""
    noisy = np.array([data.sum(), (data > 0).sum()]) + rng.laplace(size=2, scale=[20.0, 2.0])
    return np.array([[2.0, 1.0], [1.0, -3.0]]) @ noisy


def clamped_sum(data: Any, rng: Generator) -> Any:
    """Noisy sum, clamped and rounded afterwards."""
    return round(min(max(data.sum() + rng.laplace(scale=10.0), 0.0), 30.0))


def geometric_count(data: Any, rng: Generator) -> Any:
    """Count with geometric noise."""
    p = -math.expm1(-1.0)
    return int(data.sum()) + rng.geometric(p) - rng.geometric(p)


def response(data: Any, rng: Generator) -> Any:
    """Randomised response of one bit."""
    return int(data[1]) if rng.random() < 0.75 else 1 - int(data[1])


def secret_response(data: Any, _rng: Generator) -> Any:
    """Randomised response by coins of the module secrets."""
    return int(data[1]) if secrets.randbelow(2) else secrets.randbelow(2)


def sparse_vector(data: Any, rng: Generator) -> Any:
    """First answer above a noisy threshold."""
    p, q = -math.expm1(-0.5), -math.expm1(-0.25)
    threshold = 2 + rng.geometric(p) - rng.geometric(p)
    for k in range(3):
        if data[: k + 1].sum() + rng.geometric(q) - rng.geometric(q) >= threshold:
            return k
    return None


def choice(data: Any, rng: Generator) -> Any:
    """Exponential mechanism."""
    weights = np.exp(np.array([(data == v).sum() for v in range(2)]) / 2)
    return int(rng.choice(2, p=weights / weights.sum()))


# ---------------------------------------------------------------------------------------- wrong


def no_noise_on_empty_data(data: Any, rng: Generator) -> Any:
    """Noise is missing on one branch."""
    return data.sum() + rng.laplace() if len(data) else 0.0  # wrong


def scale_from_data(data: Any, rng: Generator) -> Any:
    """Scale from the data."""
    return data.sum() + rng.laplace(scale=data.max() + 1.0)  # wrong


def noise_used_twice(data: Any, rng: Generator) -> Any:
    """One variate for two sums."""
    noise = rng.laplace(scale=40.0)  # wrong
    return [data.sum() + noise, (data**2).sum() / 5 + noise]


def sensitivity_of_one(data: Any, rng: Generator) -> Any:
    """Numbers up to 10 with noise for numbers up to 1."""
    return data.sum() + rng.laplace(scale=1.0)  # wrong


def scale_turned_over(data: Any, rng: Generator) -> Any:
    """Epsilon as the scale."""
    return data.sum() + rng.laplace(scale=0.1)  # wrong


def half_the_noise(data: Any, rng: Generator) -> Any:
    """Gaussian noise for half the sensitivity."""
    return data.sum() + rng.normal(scale=20.0)  # wrong


def two_full_sums(data: Any, rng: Generator) -> Any:
    """Two releases at the full level each."""
    return [data.sum() + rng.laplace(scale=10.0) for _ in range(2)]  # wrong


def constant_noise(data: Any, _rng: Generator) -> Any:
    """Noise from a fixed seed."""
    return data.sum() + np.random.default_rng(0).laplace(scale=10.0)


def bare_count(data: Any, rng: Generator) -> Any:
    """A number of rows beside a noisy sum."""
    return {"sum": data.sum() + rng.laplace(), "rows": len(data)}


def first_cell_only(data: Any, rng: Generator) -> Any:
    """Noise in the first cell of two."""
    counts = np.array([(data == 0).sum(), (data == 1).sum()], dtype=float)
    counts[0] += rng.laplace()
    return counts


def one_noise_for_all(data: Any, rng: Generator) -> Any:
    """One variate for all cells."""
    return np.array([(data > t).sum() for t in (0, 2, 20)]) + rng.laplace(scale=3.0)  # wrong


def peeking_clamp(data: Any, rng: Generator) -> Any:
    """Clamped to the true sum afterwards."""
    return min(data.sum() + rng.laplace(scale=10.0), data.sum())


def noise_taken_back(data: Any, rng: Generator) -> Any:
    """Noise that cancels."""
    noise = rng.laplace(scale=10.0)
    return data.sum() + noise - noise


def length_of_output(data: Any, rng: Generator) -> Any:
    """A number for each row."""
    return data + rng.laplace(size=len(data))  # wrong


def failure(data: Any, rng: Generator) -> Any:
    """An exception on an empty dataset."""
    return data.max() + rng.laplace()


def empty_text(data: Any, rng: Generator) -> Any:
    """Another kind of output on an empty dataset."""
    return "empty" if len(data) == 0 else data.sum() + rng.laplace()


def unclipped_mean(data: Any, rng: Generator) -> Any:
    """A mean whose noise is that of a sum of more rows."""
    return data.mean() + rng.laplace(scale=10.0 / 30)  # wrong


def early_zero(data: Any, rng: Generator) -> Any:
    """An early return before the noise of two."""
    first = float(len(data)) + rng.laplace(scale=2.0)
    return [first, 0.0] if data.sum() < 3 else [first, data.sum() + rng.laplace(scale=2.0)]


def list_traced() -> list[TracedProgram]:
    """All programs."""
    p, one = TracedProgram, PureDP(1.0)
    gauss = ApproxDP(1.0, 1e-5)
    return [
        p(laplace_sum, one, NUMBERS),
        p(located_sum, one, NUMBERS),
        p(gaussian_sum, gauss, NUMBERS),
        p(scaled_sum, gauss, NUMBERS),
        p(python_sum, gauss, NUMBERS),
        p(legacy_sum, one, NUMBERS),
        p(clipped_mean, one, NUMBERS),
        p(histogram, one, BITS),
        p(two_sums, one, NUMBERS),
        p(mixed_sums, one, NUMBERS),
        p(clamped_sum, one, NUMBERS),
        p(geometric_count, one, BITS),
        p(response, PureDP(math.log(3)), Pair(np.array([0, 0]), np.array([0, 1]))),
        p(secret_response, PureDP(math.log(3)), Pair(np.array([0, 0]), np.array([0, 1]))),
        p(sparse_vector, one, Pair(np.array([0, 1, 0]), np.array([1, 1, 0]))),
        p(choice, one, BITS),
        p(no_noise_on_empty_data, one, EMPTIED, "draw on one dataset only"),
        p(scale_from_data, one, NUMBERS, "scale depends on the data"),
        p(noise_used_twice, one, NUMBERS, "the same variate is used twice"),
        p(sensitivity_of_one, one, NUMBERS, "shift larger than the noise allows"),
        p(scale_turned_over, PureDP(0.1), BITS, "shift larger than the noise allows"),
        p(half_the_noise, gauss, NUMBERS, "shift larger than the noise allows"),
        p(two_full_sums, one, NUMBERS, "shift larger than the noise allows"),
        p(constant_noise, one, NUMBERS, "data reach the output without noise"),
        p(bare_count, one, BITS, "data reach the output without noise"),
        p(first_cell_only, one, BITS, "data reach the output without noise"),
        p(one_noise_for_all, one, NUMBERS, "the same variate is used twice"),
        p(peeking_clamp, one, NUMBERS, "data reach the output without noise"),
        p(noise_taken_back, one, NUMBERS, "data reach the output without noise"),
        p(length_of_output, one, BITS, "number of variates depends on the data"),
        p(failure, one, EMPTIED, "outputs of another kind"),
        p(empty_text, one, EMPTIED, "outputs of another kind"),
        p(unclipped_mean, one, NUMBERS, "shift larger than the noise allows"),
        p(early_zero, one, BITS, "data reach the output without noise"),
    ]
