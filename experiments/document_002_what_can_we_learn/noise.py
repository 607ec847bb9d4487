"""Document 002: what can be learned privately."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.audits.accuracy import Absolute, Exactly, Mean, Setting
from auditor.audits.accuracy.errors import ErrorOf
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken,
    broken_and_deviating,
    deviating,
    entry,
    expectation,
    reference,
    scaling,
)
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE, person, rand, replaced, visits
from mechanisms.additive_noise.laplace import MUTANTS, LatticeLaplace
from mechanisms.base.queries import ClippedMean, ClippedSum, Count
from mechanisms.local_model.randomized_response import MUTANTS as RESPONSES
from mechanisms.local_model.randomized_response import EstimateError, RandomizedResponse, from_epsilon, undivided_mean

_VISITS = Count("mdvis", low=10.0)


@entry("002/laplace_mechanism", title="Laplace mechanism", source=Source("002", "Theorem 2.3"))
def laplace() -> Iterator[Draft]:
    """Counts, sums and means under replace-one neighbours."""
    count = LatticeLaplace(_VISITS, 1.0)
    pair = replaced("a person goes from 0 to 10 visits", person(mdvis=0), person(mdvis=10))
    yield from reference(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    # Step: 2^-20, a thousandth of the mean's sensitivity of 20 / 20,190.
    mean = LatticeLaplace(ClippedMean(len(rand()), "mdvis", 0.0, 20.0), 0.5, step=2.0**-20)
    extreme = replaced("a person goes from 0 to 20 visits", person(mdvis=0), person(mdvis=20))
    yield from reference(mean, PureDP(0.5), extreme, case="mean_of_visits", relation=REPLACE)

    yield broken(MUTANTS["half_scale"], count, pair)
    yield broken(MUTANTS["std_as_scale"], count, pair)
    yield broken(MUTANTS["one_sided_exponential"], count, pair)
    # A count of no rows has local sensitivity 0 and so no noise; two persons, because the mutant takes quadratic time.
    few = rand().head(2).astype(float)
    two = Pair(few, few.assign(mdvis=[12.0, *few["mdvis"].iloc[1:]]), "neither of two has 10 visits, against one")
    yield broken(MUTANTS["local_sensitivity"], count, two, relation=REPLACE, exact_level=math.inf)
    signed = LatticeLaplace(ClippedSum("lncoins", -1.0, 1.0), 1.0)
    whole = replaced("a person's value goes from -1 to 1", person(lncoins=-1), person(lncoins=1))
    yield broken(MUTANTS["add_remove_sensitivity"], signed, whole, relation=REPLACE)
    yield from broken_and_deviating(MUTANTS["output_rounded_or_clamped"], count, pair)
    # Noise ends at three scales, and the pair is four apart: most outputs on one side are impossible on the other.
    yield broken(MUTANTS["bounded_support_noise"], LatticeLaplace(_VISITS, 4.0), pair)
    yield deviating(MUTANTS["bounded_support_noise"], count, pair)
    fraction = LatticeLaplace(ClippedSum("lncoins", 0.0, 1.0), 1.0)
    part = replaced("a person's value goes from 0.25 to 0.75", person(lncoins=0.25), person(lncoins=0.75))
    yield broken(MUTANTS["noise_rounded_before_adding"], fraction, part, relation=REPLACE)
    # Nobody has 36 visits: 0 against 1, where doubles are finest and the leak is largest.
    nobody = LatticeLaplace(Count("mdvis", equals=36.0), 1.0)
    yield from broken_and_deviating(
        MUTANTS["float_inverse_cdf"], nobody, visits(0, 36), case="low_order_bits", relation=REPLACE
    )
    yield from _laplace_accuracy(count)


@dataclass(frozen=True)
class ClippedError:
    """An error, of which no more than a bound counts.

    Parameters
    ----------
    error : callable
        From outputs to errors.
    bound : float
        What is beyond counts as this much.
    """

    error: ErrorOf
    bound: float

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        """Errors of n outputs, float64 of shape (n,)."""
        return np.minimum(np.asarray(self.error(outputs), dtype=np.float64), self.bound)


def _noisy_count(epsilon: float, beyond: float = math.inf) -> Setting:
    """The count of persons with ten visits or more; its error, clipped at so many scales."""
    error = Absolute(float(_VISITS(rand())))
    return Setting(LatticeLaplace(_VISITS, epsilon), rand(), ClippedError(error, beyond / epsilon))


def _mean_error(mechanism: LatticeLaplace) -> float:
    """E|Z| of the integer noise, in units of the output: ``step / sinh(ln a)``."""
    return mechanism.step / math.sinh(math.log(mechanism.base(1)))


def _laplace_accuracy(count: LatticeLaplace) -> Iterator[Draft]:
    """Tail and expectation of the noise, which the continuous distribution attains, and the exponent of the mean error.

    Noise on the lattice is lighter by less than one part in a thousand: ``2 a^-k / (a + 1)`` for more than k steps
    where ``a^-k`` is claimed, and ``step / sinh(ln a)`` for ``step / ln a``.
    """
    setting = _noisy_count(count.epsilon)
    steps, a = round(3.0 / count.step), count.base(1)
    yield accuracy(
        count,
        setting.data,
        setting.error,
        at_most=3.0,
        beta=math.exp(-3.0),
        exact=2.0 * a**-steps / (a + 1.0),
        case="tail",
        note="P[|error| >= t GS / eps] = e^-t, at t = 3",
    )
    yield expectation(
        count,
        setting.data,
        setting.error,
        at_most=1.0 / count.epsilon,
        exact=_mean_error(count),
        case="mean_error",
        note="the mean of |error| is GS / eps",
    )
    at = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
    # What is beyond thirty scales is e^-30 of the mean; without a bound a mean has no certified limits.
    yield scaling(
        lambda epsilon: _noisy_count(epsilon, beyond=30.0),
        parameter="eps",
        at=at,
        exponent=-1.0,
        others=(-0.5, -2.0),
        both=True,
        measure=Mean(30.0 / at[0]),
        curve=lambda epsilon: 1.0 / epsilon,
        case="mean_error_and_epsilon",
        draws={"smoke": 40_000, "standard": 400_000},
    )
    yield scaling(
        lambda epsilon: _mean_error(LatticeLaplace(_VISITS, epsilon)),
        parameter="eps",
        at=at,
        exponent=-1.0,
        others=(-0.5, -2.0),
        both=True,
        measure=Exactly("mean error of the stated distribution"),
        curve=lambda epsilon: 1.0 / epsilon,
        case="mean_error_and_epsilon_exact",
    )


@entry("002/warner_rr", title="Warner's randomised response", source=Source("002", "section 1.1"))
def warner() -> Iterator[Draft]:
    """Truth with probability 2/3 on each person's plan; one person's bit changes, event {that bit is reported as 1}."""
    mechanism = from_epsilon(math.log(2), column="idp")
    few = rand().head(4).astype(float)
    pair = Pair(few, few.assign(idp=[0.0, *few["idp"].iloc[1:]]), "the first of four persons changes plan")
    yield from reference(mechanism, PureDP(math.log(2)), pair, case="four_persons", relation=REPLACE)
    yield from broken_and_deviating(RESPONSES["half_truth_half_coin"], mechanism, pair)
    yield from broken_and_deviating(RESPONSES["memoised_seed"], mechanism, pair)
    yield from _estimates()


#: Warner's estimate from reports y is ``3 mean(y) - 1``: the parameter of a level of ln 2 is 1/3.
_LEVEL = math.log(2.0)


@cache
def _first_rows(rows: int) -> pd.DataFrame:
    return rand().head(rows)


def _estimate(rows: int, squared: bool = False) -> Setting:
    """The share of the first persons who are on the plan, as it is estimated from their responses."""
    mechanism, data = from_epsilon(_LEVEL, column="idp"), _first_rows(rows)
    error = EstimateError(mechanism.parameter, float(data["idp"].mean()), squared=squared)
    return Setting(mechanism, data, error)


@dataclass(frozen=True)
class SampledResponses:
    """Responses of persons drawn with replacement from a column of bits.

    Parameters
    ----------
    mechanism : RandomizedResponse
        How they respond.
    size : int
        Persons drawn, n.
    """

    mechanism: RandomizedResponse
    size: int

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Draw `n` times the responses of new persons; uint8 of shape (n, size)."""
        bits = np.asarray(data, dtype=np.uint8)[rng.integers(0, len(data), (n, self.size))]
        return bits ^ self.mechanism.flips(bits.shape, rng).astype(np.uint8)


def _estimates() -> Iterator[Draft]:
    """The estimate ``3 mean - 1``: its variance is 2/n over the responses, 9/4n if the persons are sampled as well.

    The latter is the claim, with the standard deviation ``1.5 / sqrt(n)``. The exponent is that of the mean error,
    which is the standard deviation's up to a constant.
    """
    n, beta = 1024, 0.05
    draws = {"smoke": 4_000, "standard": 20_000, "full": 200_000}
    squared, plain = _estimate(n, squared=True), _estimate(n)
    yield expectation(
        squared.mechanism,
        squared.data,
        squared.error,
        at_most=2.25 / n,
        exact=2.0 / n,
        case="given_persons",
        draws=draws,
        note="the standard deviation of the estimate is at most 1.5 / sqrt(n)",
    )
    share = float(rand()["idp"].mean())
    reported = (1.0 + share) / 3.0
    yield expectation(
        SampledResponses(from_epsilon(_LEVEL), n),
        rand()["idp"],
        EstimateError(1.0 / 3.0, share, squared=True),
        at_most=2.25 / n,
        exact=9.0 * reported * (1.0 - reported) / n,
        case="sampled_persons",
        draws=draws,
        note="persons sampled as well; 1.5 / sqrt(n) is attained where half of them are on the plan",
    )
    at_most = 3.0 * math.sqrt(math.log(2.0 / beta) / (2.0 * n))
    for case, error, wrong in (
        ("mean_of_plans", plain.error, False),
        ("biased_estimator", EstimateError(1.0 / 3.0, float(_first_rows(n)["idp"].mean()), undivided_mean), True),
    ):
        yield accuracy(
            plain.mechanism,
            plain.data,
            error,
            at_most=at_most,
            beta=beta,
            case=case,
            draws=draws,
            derived=True,
            is_mutant=wrong,
            expected="deviation" if wrong else "consistent",
            note="mean - 1/3 for 3 mean - 1"
            if wrong
            else "Hoeffding's bound: error at most 3 sqrt(ln(2 / beta) / (2 n))",
        )
    yield scaling(
        lambda rows: _estimate(int(rows)),
        parameter="n",
        at=(64, 256, 1024, 4096),
        exponent=-0.5,
        others=(-1.0, -0.25),
        both=True,
        # No estimate is further from a share than 2: all reports are ones, and the estimate is 2.
        measure=Mean(2.0),
        curve=lambda rows: 1.5 / math.sqrt(rows),
        case="error_and_persons",
        draws={"smoke": 10_000, "standard": 20_000, "full": 200_000},
    )
