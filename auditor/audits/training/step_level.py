"""Level of the run whose steps were recorded: bounds on noise and sampling rate, composed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.audits.self_reported.accountant import SelfReport, accountant_levels
from auditor.audits.training.steps import UNKNOWN, StepTable
from auditor.evidence.binomial import clopper_pearson
from auditor.privacy.guarantees import ApproxDP, GaussianDP, Guarantee

Array = NDArray[np.float64]

#: Scales of the alternatives over that of the null, one expert each: from a scale that is lower by a thousandth, which
#: 10^7 coordinates show, to one of a twentieth. Equal masses; arbitrary, any are valid.
RATIOS: Array = np.array([0.999, 0.998, 0.995, 0.99, 0.98, 0.96, 0.92, 0.85, 0.7, 0.5, 0.25, 0.05])
#: Halvings of an interval of logarithms of scales.
_HALVINGS = 50
#: Relative rounding error of a norm: norms that differ by less are the same.
_ROUNDING = 1e-9
#: Kinds of steps that an accountant takes at most. Where there are more, noise is rounded up and rates down to powers
#: of e^0.005, and coarser until there are so few.
_KINDS, _COARSE = 20, 0.005
#: Normal quantile for a power of 0.9.
_POWER = 1.2816
#: Noise is doubled at most so often before it is composed: from 1e-120 clip norms on it is enough.
_DOUBLINGS = 400
#: No scale below this part of the claimed one is told from it: the level would be larger than anybody asks for.
_LOWEST = 1e-2


@dataclass(frozen=True)
class Steps:
    """Steps of one kind: as many with the same noise and sampling.

    Parameters
    ----------
    count : int
        How many.
    multiplier : float
        Standard deviation of the noise over the norm of what the canary adds.
    rate : float
        Sampling rate.
    """

    count: int
    multiplier: float
    rate: float


@dataclass(frozen=True)
class RunLevel:
    """Level of the run that its noise and batches certify.

    Parameters
    ----------
    level : float
        In the claim's unit; 0 if nothing is certified.
    scale : float
        Upper bound of the noise's standard deviation over the claimed one; infinite if there is none.
    rate : float
        Lower bound of the sampling rate over the claimed one.
    finding : str
        In words.
    """

    level: float
    scale: float
    rate: float
    finding: str


def find_level(table: StepTable, claim: Guarantee, alpha: float, broken: bool) -> RunLevel:
    """Level of the recorded steps.

    Parameters
    ----------
    table : StepTable
        The record.
    claim : Guarantee
        The notion.
    alpha : float
        Probability that it is too large: half for the noise's scale and half for the rate, if that is measured.
    broken : bool
        Steps are no independent sampled Gaussians, so that nothing is certified.
    """
    share = alpha / 2 if has_rates(table) else alpha
    rate = bound_rate(table, share) if has_rates(table) else 1.0
    scale = bound_scale(*sum_of_squares(table), share)
    if broken or not math.isfinite(scale):
        return RunLevel(0.0, scale, rate, "")
    level = compose_level(group_steps(table, scale, rate), claim)
    norm = float(np.max(table.canary_norm / table.clip))
    finding = f"noise has at most {scale:.4g} times the claimed scale, the canary adds up to {norm:.4g} clip norms"
    return RunLevel(level, scale, rate, finding)


def has_rates(table: StepTable) -> bool:
    """Whether there is a sampling rate that the record shows."""
    return bool((table.rate < 1).any() and (table.batch != UNKNOWN).all()) and math.isfinite(table.examples)


def find_resolved(table: StepTable, claim: Guarantee, alpha: float) -> float:
    """Level that is found with probability 0.9, about.

    By normal approximations.

    Parameters
    ----------
    table : StepTable
        The record.
    claim : Guarantee
        The claim.
    alpha : float
        As for `find_level`.
    """
    n = sum_of_squares(table)[1]
    share = alpha / 2 if has_rates(table) else alpha
    # Relative deviations of scale and rate that are told from none.
    missed = math.sqrt((math.log(len(RATIOS)) - math.log(share)) / n) + _POWER / math.sqrt(2 * n) if n else 1.0
    drawn = max(int(table.batch.sum()), 1)
    raised = (_POWER - float(special.ndtri(share))) / math.sqrt(drawn) if has_rates(table) else 0.0
    stated = compose_level(group_steps(table, 1.0, 1.0), claim)
    if missed >= 1 or stated <= 0:
        return math.inf
    most = min(1.0 + raised, 1.0 / float(table.rate.max()))
    return claim.level * compose_level(group_steps(table, 1.0 - missed, most), claim) / stated


def sum_of_squares(table: StepTable) -> tuple[list[tuple[float, int]], int]:
    """Sums of squares with their numbers of coordinates, all together first.

    Of the noise of all coordinates, and of each layer; where the sum before noise is not known, of what was released
    along the canary's direction.

    Parameters
    ----------
    table : StepTable
        The record.

    Returns
    -------
    list of (float, int), int
        And the number of coordinates of the first.
    """
    if table.has_noise:
        layers = [
            (float(s), int(n) * table.steps) for s, n in zip(table.squares.sum(axis=0), table.layers, strict=True)
        ]
        whole = (math.fsum(s for s, _ in layers), sum(n for _, n in layers))
        return ([whole, *layers] if len(layers) > 1 else [whole]), whole[1]
    along = table.score[np.isfinite(table.score)]
    return [(float(along @ along), len(along))], len(along)


def bound_scale(squares: Sequence[tuple[float, int]], n: int, alpha: float) -> float:
    """Bound the noise's standard deviation, over the claimed one, from above.

    Parameters
    ----------
    squares : sequence of (float, int)
        Sums of squares in claimed units, with their numbers of coordinates, see `sum_of_squares`.
    n : int
        Coordinates of the first; nothing is bounded without any.
    alpha : float
        Probability that the bound is too small.

    Returns
    -------
    float
        Infinite if there is none.

    Notes
    -----
    Valid because: for a variate of N(m, s^2), c < k and s >= k, the factor (k / c) exp(-x^2 (1/c^2 - 1/k^2) / 2) has
    expectation at most 1, with equality for m = 0 and s = k. So, given the past, has the product over the independent
    coordinates of a step, and over steps; so have averages over c and over layers. What a signal adds to the noise, and
    scales that are larger than k, only make it smaller. The average exceeds 1/alpha with probability at most alpha if
    no scale is below k. It is also so for the level of full batches, if scales s_t that differ from step to step have
    the same sum of 1 / s_t^2, on which the level depends, as T steps of scale k: the logarithm of the expectation of a
    step's factor, -ln(1 + a / m) / 2 + const with m = 1 / s_t^2, is concave in m, so that equal scales are worst. The
    factors grow with k, so that the rejected k are an interval from the bound on.
    """
    if not n:
        return math.inf
    threshold = -math.log(alpha)

    def wealth(scale: float) -> float:
        logs = [
            special.logsumexp(-count * np.log(RATIOS) - 0.5 * total * (RATIOS**-2.0 - 1.0) / scale**2)
            for total, count in squares
        ]
        return float(special.logsumexp(logs)) - math.log(len(RATIOS) * len(squares))

    low, high = math.log(_LOWEST), math.log(1 / _LOWEST)
    if wealth(math.exp(high)) < threshold:
        return math.inf
    if wealth(math.exp(low)) >= threshold:
        return _LOWEST
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if wealth(math.exp(middle)) >= threshold else (middle, high)
    return math.exp(high)


def bound_rate(table: StepTable, alpha: float) -> float:
    """Bound the sampling rate, over the claimed one, from below.

    Parameters
    ----------
    table : StepTable
        The record, with batch sizes.
    alpha : float
        Probability that the bound is too large.

    Notes
    -----
    Valid because: if no example is drawn with a rate above r times the claimed one, given the draws before, the number
    of drawn examples is stochastically smaller than a binomial one of that rate; the bound is that of Clopper and
    Pearson. Where claimed rates differ between steps, the smallest of the bounds of equal rates is taken, each at its
    share of alpha.
    """
    rates = np.unique(table.rate)
    ratios = []
    for rate in rates:
        drawn = table.batch[table.rate == rate]
        count, n = int(drawn.sum()), round(len(drawn) * table.examples)
        ratios.append(float(clopper_pearson(count, n, alpha / len(rates), "lower")) / float(rate))
    return min(ratios)


def group_steps(table: StepTable, scale: float, rate: float, mu: float | None = None) -> list[Steps]:
    """Group steps into kinds, with scaled noise and rates.

    Parameters
    ----------
    table : StepTable
        The record.
    scale, rate : float
        Factors of the claimed noise and of the claimed rate.
    mu : float, optional
        Level of each step before sampling, in the place of what noise and the canary's norm give.
    """
    norms = table.canary_norm / table.clip
    use = norms > 0 if mu is None else np.full(table.steps, mu > 0)
    noise = table.multiplier[use] * scale / norms[use] if mu is None else np.full(int(use.sum()), 1 / mu if mu else 1.0)
    rates = np.where(table.rate < 1, np.minimum(table.rate * rate, 1.0), 1.0)[use]
    noise, rates = noise[rates > 0], rates[rates > 0]
    noise, rates = (np.round(np.log(v) / _ROUNDING) * _ROUNDING for v in (noise, rates))
    unit = _COARSE
    kinds, counts = np.unique(np.stack([noise, rates]), axis=1, return_counts=True)
    while kinds.shape[1] > _KINDS:
        least, most = noise.min(), rates.max()  # of these the steps that show most are not rounded
        coarse = np.stack(
            [least + np.ceil((noise - least) / unit) * unit, most + np.floor((rates - most) / unit) * unit]
        )
        kinds, counts = np.unique(coarse, axis=1, return_counts=True)
        unit *= 1.25
    return [Steps(int(n), math.exp(m), math.exp(q)) for n, m, q in zip(counts, *kinds, strict=True)]


def compose_level(kinds: Sequence[Steps], claim: Guarantee) -> float:
    """Level of the composition of steps, rounded down.

    Parameters
    ----------
    kinds : sequence of Steps
        The steps.
    claim : Guarantee
        Says in which notion, and at which delta.
    """
    if not kinds:
        return 0.0
    if isinstance(claim, GaussianDP):
        return math.sqrt(math.fsum(kind.count / kind.multiplier**2 for kind in kinds))
    assert isinstance(claim, ApproxDP)
    for doublings in range(_DOUBLINGS):  # noise so small that no grid holds its losses: more noise has a smaller level
        events = [
            {
                "gaussian": {
                    "noise_multiplier": kind.multiplier * 2.0**doublings,
                    "sampling_probability": kind.rate,
                    "count": kind.count,
                }
            }
            for kind in kinds
        ]
        levels = accountant_levels(SelfReport.of("steps", {"events": events}), claim.delta)
        if not isinstance(levels, str):
            return levels[0] if math.isfinite(levels[0]) else math.inf
    return 0.0
