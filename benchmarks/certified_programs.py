"""Programs with a known verdict for `auditor.prove`: textbook mechanisms, and what goes wrong with them.

The programs on query answers are those of Wang, Ding, Kifer and Zhang (2020), "CheckDP", section 6 (from Lyu, Su and
Li 2017; Ding and others 2018 and 2019; Chan, Shi and Song 2011), with geometric noise in place of Laplace noise.
Answers are lists of integers that one person changes by at most 1 each.
"""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from auditor.datasets import AddRemoveOne, AnswersWithin, Relation, ReplaceOne
from auditor.privacy.guarantees import ApproxDP, Guarantee, PureDP

Generator = np.random.Generator
HOLDS, VIOLATION = "holds", "violation"


class Domain(NamedTuple):
    """Values of a row or an answer, and the most and fewest of them."""

    values: Sequence[Any]
    rows: int
    least: int


@dataclass(frozen=True)
class Program:
    """A program, what it claims, and what is known of it.

    Parameters
    ----------
    name : str
        In words.
    function : callable
        (data, rng) of one draw.
    claim : Guarantee
        The claim.
    relation : Relation
        When two datasets are neighbours.
    domain : Domain
        The datasets.
    expected : str
        "holds" or "violation", from the theorem or the published counterexample.
    level : float or None
        The exact level on the domain, where there is a formula.
    units : sequence of callable
        Samplers with loops.
    """

    name: str
    function: Callable[[Any, Generator], Any]
    claim: Guarantee
    relation: Relation
    domain: Domain
    expected: str
    level: float | None = None
    units: Sequence[Callable[..., Any]] = ()


# -------------------------------------------------------------------------------------- samplers


def draw_noise(rng: Generator, epsilon: float) -> int:
    """Draw two-sided geometric noise: P[k] is proportional to e^(-epsilon |k|)."""
    p = -math.expm1(-epsilon)
    return rng.geometric(p) - rng.geometric(p)


def flip_with_exponential(numerator: int, denominator: int) -> bool:
    """True with probability e^(-numerator / denominator) for a ratio in [0, 1] (Canonne, Kamath and Steinke 2020)."""
    k = 1
    while random.randrange(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def flip_with_any_exponential(numerator: int, denominator: int) -> bool:
    """The same for a ratio of any size."""
    while numerator > denominator:
        if not flip_with_exponential(1, 1):
            return False
        numerator -= denominator
    return flip_with_exponential(numerator, denominator)


def propose_laplace(scale: int) -> int | None:
    """One proposal of the discrete Laplace distribution of an integer scale."""
    low = random.randrange(scale)
    if not flip_with_exponential(low, scale):
        return None
    high = 0
    while flip_with_exponential(1, 1):
        high += 1
    value = low + scale * high
    negative = random.getrandbits(1)
    if negative and value == 0:
        return None
    return -value if negative else value


def draw_discrete_laplace(scale: int) -> int:
    """Draw from the discrete Laplace distribution: P[k] is proportional to e^(-|k| / scale)."""
    while (value := propose_laplace(scale)) is None:
        pass
    return value


def propose_gaussian(variance: int) -> int | None:
    """One proposal of the discrete Gaussian distribution of an integer variance."""
    scale = math.isqrt(variance) + 1
    value = draw_discrete_laplace(scale)
    distance = abs(value) * scale - variance
    return value if flip_with_any_exponential(distance**2, 2 * variance * scale**2) else None


def draw_discrete_gaussian(variance: int) -> int:
    """Draw from the discrete Gaussian distribution: P[k] is proportional to e^(-k^2 / (2 variance))."""
    while (value := propose_gaussian(variance)) is None:
        pass
    return value


LAPLACE_UNITS = (flip_with_exponential, propose_laplace, draw_discrete_laplace)
GAUSSIAN_UNITS = (*LAPLACE_UNITS, flip_with_any_exponential, propose_gaussian)


def gaussian_delta(variance: int, epsilon: float) -> float:
    """Delta of discrete Gaussian noise at sensitivity 1, by its series."""
    ks = range(-80, 81)
    weights = {k: math.exp(-(k**2) / (2 * variance)) for k in ks}
    total = math.fsum(weights.values())
    gaps = (weights[k] - math.exp(epsilon) * math.exp(-((k - 1) ** 2) / (2 * variance)) for k in ks)
    return math.fsum(max(0.0, gap) for gap in gaps) / total


# ------------------------------------------------------------------------------ counts and responses


def noisy_count(data: Any, rng: Generator, epsilon: float = 1.0) -> Any:
    """A count with geometric noise."""
    return sum(data) + draw_noise(rng, epsilon)


def noisy_count_of_long_data(data: Any, rng: Generator) -> Any:
    """A count whose noise is left out for one row: an early return."""
    return int(sum(data)) if len(data) == 1 else noisy_count(data, rng)


def noisy_count_scaled_by_data(data: Any, rng: Generator) -> Any:
    """A count whose noise has a scale that depends on the data."""
    return sum(data) + draw_noise(rng, 1.0 if sum(data) else 2.0)


def count_with_one_sided_noise(data: Any, rng: Generator) -> Any:
    """A count with noise that is never negative."""
    return sum(data) + rng.geometric(-math.expm1(-1.0)) - 1


def clamped_count(data: Any, rng: Generator) -> Any:
    """A noisy count, clamped to 0 to 3 afterwards."""
    return min(max(noisy_count(data, rng), 0), 3)


def peeking_count(data: Any, rng: Generator) -> Any:
    """A noisy count, clamped to the true count afterwards: post-processing that looks at the data."""
    return min(noisy_count(data, rng), int(sum(data)))


def two_counts(data: Any, rng: Generator, epsilon: float = 0.5) -> Any:
    """The same count twice, each with its noise."""
    return [noisy_count(data, rng, epsilon) for _ in range(2)]


def count_and_difference(data: Any, rng: Generator) -> Any:
    """The same noise twice."""
    noise = draw_noise(rng, 1.0)
    return [sum(data) + noise, 2 * sum(data) + noise]


def laplace_count(data: Any, _rng: Generator, scale: int = 1) -> Any:
    """A count with discrete Laplace noise from integers alone."""
    return int(sum(data)) + draw_discrete_laplace(scale)


def gaussian_count(data: Any, _rng: Generator, variance: int = 4) -> Any:
    """A count with discrete Gaussian noise from integers alone."""
    return int(sum(data)) + draw_discrete_gaussian(variance)


def threshold_laplace(data: Any, rng: Generator) -> bool:
    """Whether a count with continuous Laplace noise is above 1."""
    return bool(sum(data) + rng.laplace() > 1)


def randomized_response(data: Any, rng: Generator, keep: float = 0.75) -> int:
    """Randomised response of one bit."""
    return int(data[0] if rng.random() < keep else 1 - data[0])


def randomized_response_of_secrets(data: Any, _rng: Generator) -> int:
    """Randomised response by two coins of the module secrets."""
    return int(data[0]) if secrets.randbelow(2) else secrets.randbelow(2)


def many_valued_response(data: Any, rng: Generator, keep: float = 0.5, values: int = 4) -> int:
    """Randomised response of several values."""
    return int(data[0]) if rng.random() < keep else int(rng.integers(values))


def biased_response(data: Any, rng: Generator) -> int:
    """Randomised response whose other answer never is the value itself."""
    others = [v for v in range(4) if v != data[0]]
    return int(data[0]) if rng.random() < 0.5 else int(rng.choice(others))


def unary_response(data: Any, rng: Generator, p: float = 0.75, q: float = 0.25) -> list[bool]:
    """Unary encoding of one of three values, with noise in each bit."""
    return [bool(rng.random() < (p if v == data[0] else q)) for v in range(3)]


def unary_response_of_one_bit(data: Any, rng: Generator) -> list[bool]:
    """Unary encoding whose bits of 0 are not randomised."""
    return [bool(rng.random() < 0.75) if v == data[0] else False for v in range(3)]


def sampled_row(data: Any, rng: Generator) -> Any:
    """A random row, as it is: delta = 1/n only."""
    return int(data[rng.integers(len(data))])


def sampled_response(data: Any, rng: Generator) -> Any:
    """Randomised response of a random row: amplified by sampling."""
    return randomized_response([data[rng.integers(len(data))]], rng)


# ------------------------------------------------------------------------------------- selection


def exponential_mechanism(data: Any, rng: Generator, epsilon: float = 1.0) -> int:
    """Exponential mechanism for the commonest of three values."""
    scores = [sum(1 for row in data if row == v) for v in range(3)]
    weights = np.exp(epsilon * np.array(scores) / 2)
    return int(rng.choice(3, p=weights / weights.sum()))


def exponential_mechanism_without_half(data: Any, rng: Generator) -> int:
    """Exponential mechanism with twice the exponent."""
    return exponential_mechanism(data, rng, 2.0)


def permute_and_flip(data: Any, rng: Generator, epsilon: float = 1.0) -> int:
    """Permute-and-flip for the commonest of three values (McKenna and Sheldon 2020)."""
    scores = [sum(1 for row in data if row == v) for v in range(3)]
    for v in rng.permutation(3):
        if rng.random() < math.exp(epsilon * (scores[v] - max(scores)) / 2):
            return int(v)
    raise AssertionError("the largest score is always taken")


def noisy_max(data: Any, rng: Generator, epsilon: float = 1.0) -> int:
    """Index of the largest noisy answer."""
    return int(np.argmax([answer + draw_noise(rng, epsilon / 2) for answer in data]))


def noisy_max_value(data: Any, rng: Generator, epsilon: float = 1.0) -> Any:
    """The largest noisy answer itself: pays for every answer."""
    return max(answer + draw_noise(rng, epsilon / 2) for answer in data)


def noisy_max_of_half_noise(data: Any, rng: Generator) -> int:
    """Index of the largest noisy answer, with half the noise."""
    return noisy_max(data, rng, 2.0)


# ---------------------------------------------------------------------------------- sparse vector


def sparse_vector(
    data: Any,
    rng: Generator,
    epsilon: float = 1.0,
    *,
    most: int = 1,
    threshold_noise: bool = True,
    query_noise: float | None = None,
    values: bool = False,
    gap: bool = False,
    refresh: bool = False,
) -> list[Any]:
    """Answers above a threshold of 1, up to the first ``most``, and its published variants.

    Parameters
    ----------
    data : sequence of int
        Answers.
    rng : Generator
        Noise.
    epsilon : float
        The claim.
    most : int
        Answers above at most.
    threshold_noise : bool
        The threshold is noisy.
    query_noise : float, optional
        Level of the answers' noise in place of epsilon / (4 most); 0 is none.
    values : bool
        The noisy answer itself is released, with the noise of the comparison.
    gap : bool
        The gap between noisy answer and noisy threshold is released.
    refresh : bool
        The threshold is made noisy anew after each answer above.
    """
    level = epsilon / (4 * most) if query_noise is None else query_noise
    threshold = 1 + (draw_noise(rng, epsilon / 2) if threshold_noise else 0)
    out: list[Any] = []
    above = 0
    for answer in data:
        noisy = answer + (draw_noise(rng, level) if level else 0)
        if noisy >= threshold:
            out.append(noisy if values else noisy - threshold if gap else True)
            above += 1
            if above == most:
                break
            if refresh:
                threshold = 1 + draw_noise(rng, epsilon / 2)
        else:
            out.append(False)
    return out


def adaptive_sparse_vector(data: Any, rng: Generator, epsilon: float = 1.0, first_noise: bool = True) -> list[Any]:
    """Sparse vector that pays less for answers far above the threshold of 1 (Ding and others 2019).

    Parameters
    ----------
    data : sequence of int
        Answers.
    rng : Generator
        Noise.
    epsilon : float
        The claim: half for the threshold, half for answers above.
    first_noise : bool
        The first comparison of each answer is noisy.
    """
    threshold = 1 + draw_noise(rng, epsilon / 2)
    out: list[Any] = []
    left = epsilon / 2
    for answer in data:
        if left < epsilon / 4:
            break
        if answer + (draw_noise(rng, epsilon / 16) if first_noise else 0) >= threshold + 2:
            out.append("far above")
            left -= epsilon / 8
        elif answer + draw_noise(rng, epsilon / 8) >= threshold:
            out.append("above")
            left -= epsilon / 4
        else:
            out.append("below")
    return out


def numeric_sparse_vector(data: Any, rng: Generator) -> list[Any]:
    """Sparse vector at 1/2, and the first answer above with fresh noise at 1/2."""
    out = sparse_vector(data, rng, 0.5)
    return [*out[:-1], int(data[len(out) - 1]) + draw_noise(rng, 0.5)] if out and out[-1] is True else out


def gap_noisy_max(data: Any, rng: Generator, epsilon: float = 1.0) -> list[Any]:
    """Index of the largest noisy answer, with its gap to the second (Ding and others 2019)."""
    noisy = [answer + draw_noise(rng, epsilon / 2) for answer in data]
    best = int(np.argmax(noisy))
    return [best, noisy[best] - max(v for k, v in enumerate(noisy) if k != best)]


# -------------------------------------------------------------------------------------- sums


def partial_sum(data: Any, rng: Generator, epsilon: float = 1.0) -> Any:
    """The sum of answers of which one changes, with noise."""
    return sum(data) + draw_noise(rng, epsilon)


def smart_sum(data: Any, rng: Generator, epsilon: float = 1.0, block: int = 2, noisy_blocks: bool = True) -> list[Any]:
    """Running sums, with noise in each answer and in each block (Chan, Shi and Song 2011)."""
    out, before, partial_, waiting = [], 0, 0, 0
    for k, answer in enumerate(data, 1):
        if k % block == 0:
            before = before + waiting + answer + (draw_noise(rng, epsilon) if noisy_blocks else 0)
            partial_, waiting = 0, 0
            out.append(before)
        else:
            partial_ = partial_ + answer + draw_noise(rng, epsilon)
            waiting += answer
            out.append(before + partial_)
    return out


# ----------------------------------------------------------------------------------- the table


def list_programs() -> list[Program]:
    """All programs: the verdict of each is known."""
    bit, rows = ReplaceOne(), ReplaceOne()
    add, answers = AddRemoveOne(), AnswersWithin(1)
    one, two = Domain((0, 1), 1, 1), Domain((0, 1), 2, 0)
    three, pairs = Domain((0, 1), 3, 3), Domain((0, 1), 2, 2)
    log3 = math.log(3)

    def dp(epsilon: float) -> PureDP:
        return PureDP(epsilon)

    p = Program
    return [
        p("geometric count", noisy_count, dp(1), add, two, HOLDS, 1.0),
        p("geometric count, half the noise", partial(noisy_count, epsilon=2.0), dp(1), add, two, VIOLATION, 2.0),
        p("count without noise for one row", noisy_count_of_long_data, dp(1), add, two, VIOLATION),
        p("count, scale from the data", noisy_count_scaled_by_data, dp(1), add, two, VIOLATION),
        p("count, one-sided noise", count_with_one_sided_noise, dp(1), add, two, VIOLATION),
        p("count, clamped", clamped_count, dp(1), add, two, HOLDS, 1.0),
        p("count, clamped to the truth", peeking_count, dp(1), add, two, VIOLATION),
        p("two counts at 1/2", two_counts, dp(1), add, Domain((0, 1), 1, 0), HOLDS, 1.0),
        p("two counts at 1", partial(two_counts, epsilon=1.0), dp(1), add, Domain((0, 1), 1, 0), VIOLATION, 2.0),
        p("two releases of one noise", count_and_difference, dp(1), add, Domain((0, 1), 1, 0), VIOLATION),
        p("discrete Laplace, scale 1", laplace_count, dp(1), bit, one, HOLDS, 1.0, LAPLACE_UNITS),
        p("discrete Laplace, scale 2", partial(laplace_count, scale=2), dp(0.5), bit, one, HOLDS, 0.5, LAPLACE_UNITS),
        p("discrete Laplace, half", laplace_count, dp(0.5), bit, one, VIOLATION, 1.0, LAPLACE_UNITS),
        p(
            "discrete Gaussian, variance 4",
            gaussian_count,
            ApproxDP(1.0, gaussian_delta(4, 1.0) * (1 + 1e-6)),
            bit,
            one,
            HOLDS,
            None,
            GAUSSIAN_UNITS,
        ),
        p(
            "discrete Gaussian, delta too small",
            gaussian_count,
            ApproxDP(1.0, gaussian_delta(4, 1.0) * 0.99),
            bit,
            one,
            VIOLATION,
            None,
            GAUSSIAN_UNITS,
        ),
        p("Laplace noise, compared", threshold_laplace, dp(1), bit, one, HOLDS, 1.0),
        p("randomised response", randomized_response, dp(log3), bit, one, HOLDS, log3),
        p("randomised response at 0.76", partial(randomized_response, keep=0.76), dp(log3), bit, one, VIOLATION),
        p("randomised response, two coins", randomized_response_of_secrets, dp(log3), bit, one, HOLDS, log3),
        p(
            "response of four values",
            many_valued_response,
            dp(math.log(5)),
            bit,
            Domain(range(4), 1, 1),
            HOLDS,
            math.log(5),
        ),
        p("response, never the value", biased_response, dp(1.0), bit, Domain(range(4), 1, 1), VIOLATION, log3),
        p("unary encoding", unary_response, dp(2 * log3), bit, Domain(range(3), 1, 1), HOLDS, 2 * log3),
        p(
            "unary encoding, zeros as they are",
            unary_response_of_one_bit,
            dp(3),
            bit,
            Domain(range(3), 1, 1),
            VIOLATION,
            math.inf,
        ),
        p("a row as it is", sampled_row, ApproxDP(0.5, 1 / 3), rows, three, HOLDS),
        p("a row as it is, delta too small", sampled_row, ApproxDP(0.1, 0.2), rows, three, VIOLATION),
        p("response of a random row", sampled_response, dp(math.log(2)), rows, pairs, HOLDS),
        p("response of a random row, claim too small", sampled_response, dp(0.4), rows, pairs, VIOLATION),
        p("exponential mechanism", exponential_mechanism, dp(1), rows, Domain(range(3), 2, 2), HOLDS),
        p(
            "exponential mechanism, no half",
            exponential_mechanism_without_half,
            dp(1),
            rows,
            Domain(range(3), 2, 2),
            VIOLATION,
        ),
        p("permute-and-flip", permute_and_flip, dp(1), rows, Domain(range(3), 2, 2), HOLDS),
        p("permute-and-flip, claim too small", permute_and_flip, dp(0.6), rows, Domain(range(3), 2, 2), VIOLATION),
        p("CheckDP: noisy max", noisy_max, dp(1), answers, three, HOLDS),
        p("CheckDP: noisy max, its value", noisy_max_value, dp(1), answers, three, VIOLATION, 1.5),
        p("noisy max, half the noise", noisy_max_of_half_noise, dp(1), answers, three, VIOLATION),
        p("noisy max with gap", gap_noisy_max, dp(1), answers, pairs, HOLDS),
        p("CheckDP: sparse vector", sparse_vector, dp(1), answers, pairs, HOLDS),
        p("CheckDP: sparse vector, two above", partial(sparse_vector, most=2), dp(1), answers, pairs, HOLDS),
        p(
            "CheckDP: sparse vector, no noise in answers",
            partial(sparse_vector, query_noise=0.0),
            dp(1),
            answers,
            three,
            VIOLATION,
            math.inf,
        ),
        p(
            "CheckDP: sparse vector, threshold as it is",
            partial(sparse_vector, threshold_noise=False, most=3, query_noise=0.5),
            dp(1),
            answers,
            three,
            VIOLATION,
        ),
        p(
            "CheckDP: sparse vector, noise not scaled by the number above",
            partial(sparse_vector, most=3, query_noise=0.75),
            dp(1),
            answers,
            three,
            VIOLATION,
        ),
        p(
            "CheckDP: sparse vector, releases what it compared",
            partial(sparse_vector, values=True, query_noise=0.5),
            dp(1),
            answers,
            three,
            VIOLATION,
        ),
        p("CheckDP: sparse vector with gap", partial(sparse_vector, gap=True), dp(1), answers, pairs, HOLDS),
        p(
            "CheckDP: sparse vector with gap, half the noise",
            partial(sparse_vector, gap=True, epsilon=2.5),
            dp(1),
            answers,
            pairs,
            VIOLATION,
        ),
        p("CheckDP: adaptive sparse vector", adaptive_sparse_vector, dp(1), answers, pairs, HOLDS),
        p(
            "CheckDP: adaptive sparse vector, first noise left out",
            partial(adaptive_sparse_vector, first_noise=False),
            dp(1),
            answers,
            three,
            VIOLATION,
            math.inf,
        ),
        p("CheckDP: numeric sparse vector", numeric_sparse_vector, dp(1), answers, pairs, HOLDS),
        p("CheckDP: partial sum", partial_sum, dp(1), rows, three, HOLDS, 1.0),
        p(
            "CheckDP: partial sum, half the noise",
            partial(partial_sum, epsilon=2.0),
            dp(1),
            rows,
            three,
            VIOLATION,
            2.0,
        ),
        p("CheckDP: smart sum", smart_sum, dp(2), rows, pairs, HOLDS),
        p(
            "CheckDP: smart sum, blocks without noise",
            partial(smart_sum, noisy_blocks=False),
            dp(2),
            rows,
            pairs,
            VIOLATION,
            math.inf,
        ),
    ]
