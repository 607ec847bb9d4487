"""Tests whether the steps of a training run are what is claimed of them: noise, sampling, clipping.

Each test returns a p-value that is valid for the steps as claimed: noise that is Gaussian with the claimed standard
deviation in all coordinates, independent of everything before it and of the batch; batches to which every example
belongs with the claimed probability, independently. Tests "of the model" tell whether steps are sampled Gaussians at
all, of whatever scale; the others compare them with the claimed numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from auditor.audits.training.p_values import normal_p, to_normal, to_p_value, two_sided
from auditor.audits.training.steps import UNKNOWN, StepTable
from auditor.evidence.bernoulli import PRIOR
from auditor.evidence.multinomial import LEAST, Multinomials

Array = NDArray[np.float64]

EXACT, ANYTIME, CERTAIN = "exact", "anytime", "certain"
#: Relative rounding error that norms may have: those of float32 are some 1e-7 of their terms.
SLACK = 1e-5
#: Noise of two steps that agrees to this, in claimed standard deviations, is one draw: rounding of sums is far below.
EQUAL = 1e-9
#: Cells of equal probability that noise falls into; arbitrary.
CELLS = 20
#: Least probability of a cell that batch sizes fall into, about; arbitrary.
SHARE = 0.1
#: Logits around the claimed rate in which the likeliest one is looked for; arbitrary, a factor of a hundred.
_LOGITS = 5.0
#: Name of the test of the canary's coin: bets on it hold only if it passes.
CANARY_RATE = "canary's rate"
#: Number of sums whose norm is the clip norm, of norms that add up to more than `SEVERAL` clip norms: no
#: accident. On one line, where values of few digits add up to it now and then, as many as `CLIPPED_ON_LINE`. Arbitrary.
CLIPPED_SUMS, CLIPPED_ON_LINE, SEVERAL = 3, 20, 1.01
#: Steps that are compared with one another at most: the comparisons take a matrix of their number squared.
COMPARED = 2_000


@dataclass(frozen=True)
class StepTest:
    """Outcome of one test.

    Parameters
    ----------
    name : str
        What was tested.
    p_value : float
        Probability, at most, of what was seen, if all is as claimed; 0 or 1 for a test without chance.
    finding : str
        What it means if that is too small.
    kind : {"exact", "anytime", "certain"}
        Valid at the number of steps that was fixed before; at any number; or without chance.
    of_model : bool
        Steps that fail it are no independently sampled Gaussians of any scale and rate.
    """

    name: str
    p_value: float
    finding: str
    kind: str = EXACT
    of_model: bool = False


def check_steps(table: StepTable) -> list[StepTest]:
    """Make all tests that the record allows.

    Parameters
    ----------
    table : StepTable
        The record.
    """
    found: list[StepTest] = []
    if table.has_noise:
        found += [*check_scale(table), *check_shape(table), *check_reuse(table)]
    found += [*check_sampling(table), *check_clipping(table)]
    return found


# ------------------------------------------------------------------------------------------------ noise


def check_scale(table: StepTable) -> Iterator[StepTest]:
    """Test the standard deviation of the noise.

    Over all coordinates, by layer, by step, along the canary and the sum, and against the batch size.

    Valid because: sums of squares of standard normal variates are chi-squared. A step's sum, put through the
    distribution function and the normal quantile, is a standard normal variate that is independent of everything before
    and of the step's batch; so are the noise's projections on the directions of the canary and of the sum before noise,
    which are functions of the past and of the batch. Sums of these, with weights that the batches and coins fix, are
    normal again, and sums of squares chi-squared.
    """
    squares, layers, t = table.squares, table.layers, table.steps
    d = int(layers.sum())
    whole = float(squares.sum())
    yield StepTest(
        "noise scale",
        two_sided(stats.chi2(t * d), whole),
        f"noise has {math.sqrt(whole / (t * d)):.3g} times the claimed standard deviation",
    )
    if len(layers) > 1:
        p = np.array([two_sided(stats.chi2(t * n), s) for n, s in zip(layers, squares.sum(axis=0), strict=True)])
        k = int(np.argmin(p))
        part = math.sqrt(float(squares[:, k].sum()) / (t * float(layers[k])))
        yield StepTest(
            "noise scale of layers",
            min(1.0, len(p) * float(p[k])),
            f"noise of layer {k} has {part:.3g} times the claimed standard deviation",
        )
    z = to_normal(stats.chi2(d), squares.sum(axis=1))
    yield StepTest(
        "noise scale of steps", float(stats.chi2.sf((z * z).sum(), t)), "noise has another scale from step to step"
    )
    sizes = table.batch.astype(np.float64)
    if (table.batch != UNKNOWN).all() and np.ptp(sizes) > 0:
        yield StepTest(
            "noise scale and batch size",
            normal_p(float((sizes - sizes.mean()) @ z / np.linalg.norm(sizes - sizes.mean()))),
            "the noise's scale follows the size of the batch",
        )
    yield from _check_projections(table)


def _check_projections(table: StepTable) -> Iterator[StepTest]:
    along = table.along_canary[np.isfinite(table.along_canary)]
    if len(along):
        yield StepTest(
            "noise along the canary",
            two_sided(stats.chi2(len(along)), float((along * along).sum())),
            f"noise along the canary has {math.sqrt(float(np.mean(along * along))):.3g} times the claimed scale",
        )
        known = np.isfinite(table.along_canary) & (table.included != UNKNOWN)
        coins = table.included[known].astype(np.float64)
        if len(coins) and np.ptp(coins) > 0:
            coins -= coins.mean()
            yield StepTest(
                "noise and the canary's coin",
                normal_p(float(coins @ table.along_canary[known] / np.linalg.norm(coins))),
                "what the canary adds is not what was recorded",
            )
    along = table.along_sum[np.isfinite(table.along_sum)]
    if len(along):
        yield StepTest(
            "noise along the sum",
            normal_p(float(along.sum()) / math.sqrt(len(along))),
            "what is released is not the recorded sum with noise: the sum is larger or smaller in it",
        )


def check_shape(table: StepTable) -> Iterator[StepTest]:
    """Test whether the noise is Gaussian, whatever its scale.

    Valid because: let the coordinates of a layer be independent normal variates of one scale. Each kept one, over the
    root mean square of the coordinates that are not kept and of the kept ones before it, has Student's distribution,
    and these ratios are independent (the ratio of two independent chi-squared variates is independent of their sum).
    Put through the distribution functions they are independent and uniform; their counts in cells of equal probability
    are a multinomial, see `Multinomials.log_wealth`.
    """
    uniform = []
    which = table.layer_of_kept()
    for k, n in enumerate(table.layers):
        own = table.kept[:, which == k]
        free = int(n) - own.shape[1]
        rest = np.maximum(table.squares[:, k] - (own * own).sum(axis=1), 0.0) if free else np.zeros(table.steps)
        before = rest[:, None] + np.cumsum(own * own, axis=1) - own * own
        degrees = free + np.arange(own.shape[1])
        use = (degrees > 0)[None, :] & (before > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = own / np.sqrt(before / np.maximum(degrees, 1))
        uniform.append(special.stdtr(np.broadcast_to(np.maximum(degrees, 1), own.shape)[use], ratio[use]))
    values = np.concatenate(uniform)
    if len(values):
        counts = np.bincount(np.minimum((values * CELLS).astype(np.int64), CELLS - 1), minlength=CELLS + 1)
        wealth = Multinomials([np.full(CELLS, 1.0 / CELLS)]).log_wealth([counts.astype(np.int64)])
        yield StepTest("noise shape", to_p_value(float(wealth[0])), "noise is not Gaussian", ANYTIME, True)


def check_reuse(table: StepTable) -> Iterator[StepTest]:
    """Test whether noise is drawn anew: between steps, and between coordinates.

    Valid because: the cosine c between a direction that is fixed, or independent, and noise of one scale in n
    coordinates is such that c sqrt((n - 1) / (1 - c^2)) has Student's distribution with n - 1 degrees of freedom,
    whatever the scale. Given the step before, those of consecutive steps are independent, so that their normal scores
    add. Of all pairs of steps, and all pairs of coordinates over the steps, the smallest p-value is taken as often as
    there are pairs. Two independent draws agree to h standard deviations in d coordinates with probability at most
    h^d, as the density of their difference is at most 1 / (2 sqrt(pi)).
    """
    t = table.steps
    if t > 1:
        scores, weights = [], []
        for k, n in enumerate(table.layers):
            cosine = table.cosines[1:, k]
            if n > 1 and np.isfinite(cosine).all():
                scores.append(_cosine_score(cosine, int(n)).sum() / math.sqrt(t - 1))
                weights.append(float(n))
        if scores:
            z = float(np.sqrt(weights) @ scores / math.sqrt(sum(weights)))
            yield StepTest(
                "noise of consecutive steps", normal_p(z), "noise depends on that of the step before", EXACT, True
            )
        yield _compare_steps(table)
    if table.kept.shape[1] > 1 and t > 2:
        p = _smallest_pair(table.kept.T)
        yield StepTest(
            "noise of coordinates", p, "noise of some coordinates, or layers, depends on that of others", EXACT, True
        )


def _compare_steps(table: StepTable) -> StepTest:
    last = table.kept[-COMPARED:]
    pairs = math.comb(len(last), 2)
    apart = min(
        (float(np.abs(last[i + 1 :] - last[i]).max(axis=1).min()) for i in range(len(last) - 1)), default=math.inf
    )
    equal = min(1.0, pairs * EQUAL ** last.shape[1]) if apart <= EQUAL else 1.0
    which = table.layer_of_kept()
    several = [last[:, which == k] for k in range(len(table.layers)) if (which == k).sum() > 1]
    p = [equal, *(_smallest_pair(part) for part in several)]
    finding = "noise of one step is used again in another"
    return StepTest("noise of all steps", min(1.0, len(p) * min(p)), finding, EXACT, True)


def _smallest_pair(rows: Array) -> float:
    """Smallest p-value of a cosine between two rows, times the number of pairs."""
    lengths = np.linalg.norm(rows, axis=1)
    rows = rows[lengths > 0] / lengths[lengths > 0][:, None]
    if len(rows) < 2:
        return 1.0
    cosines = rows @ rows.T
    largest = float(np.abs(cosines[np.triu_indices(len(rows), 1)]).max())
    return min(1.0, math.comb(len(rows), 2) * _cosine_p(largest, rows.shape[1]))


def _cosine_p(cosine: float, n: int) -> float:
    """Two-sided p-value of a cosine in n dimensions: (1 - c^2) has a beta distribution."""
    return float(special.betainc((n - 1) / 2, 0.5, max(0.0, 1.0 - cosine * cosine)))


def _cosine_score(cosine: Array, n: int) -> Array:
    """Normal scores of cosines in n dimensions."""
    tail = np.maximum(0.5 * special.betainc((n - 1) / 2, 0.5, np.maximum(0.0, 1.0 - cosine * cosine)), 1e-300)
    score: Array = np.sign(cosine) * -special.ndtri(tail)
    return score


# --------------------------------------------------------------------------------------------- sampling


def check_sampling(table: StepTable) -> Iterator[StepTest]:
    """Test whether every example is drawn independently, with the claimed rate.

    Valid because: under Poisson sampling at rate q the size of a batch is Binomial(n, q) given the past; of the b
    examples of the batch before, Binomial(b, q) are drawn again, and independently Binomial(n - b, q) of the others;
    and how often an example is drawn in T steps is Binomial(T, q), independently. The ratio of a mixture of likelihoods
    to the claimed one is a test supermartingale (Ville's inequality), as is that of cells, see
    `Multinomials.log_wealth`. Tests of the model divide by the largest likelihood of any q instead, which makes the
    ratio smaller than with the true one (universal inference, Wasserman, Ramdas and Balakrishnan 2020).
    """
    rates, n = table.rate, table.examples
    known = table.included != UNKNOWN
    if known.any():
        tossed, coins = table.included[known], table.coins[known]
        yield StepTest(
            CANARY_RATE,
            to_p_value(rate_wealth(tossed, np.ones(len(tossed)), coins)),
            f"the canary was in {int(tossed.sum())} of {len(tossed)} steps, where its coin is {coins.mean():.4g}",
            ANYTIME,
        )
    if (table.batch == UNKNOWN).any() or not math.isfinite(n):
        return
    seen = float(table.batch.mean()) / n
    yield StepTest(
        "sampling rate",
        to_p_value(rate_wealth(table.batch, np.full(table.steps, n), rates)),
        f"batches hold {seen:.4g} of the examples, claimed is {float(rates.mean()):.4g}",
        ANYTIME,
    )
    if np.ptp(rates) > 0 or rates[0] == 1:
        return
    yield StepTest(
        "batch sizes",
        to_p_value(_count_wealth(table.batch, int(n), float(rates[0]))),
        f"batches of {int(table.batch.min())} to {int(table.batch.max())} are not of independently drawn examples",
        ANYTIME,
        True,
    )
    if not len(table.drawn):
        return
    again, before = table.repeated[1:], table.batch[:-1]
    yield StepTest(
        "consecutive batches",
        to_p_value(_repetition_wealth(again, before, table.batch[1:] - again, int(n) - before)),
        f"{int(again.sum())} examples were drawn again at the next step, expected were {seen * before.sum():.4g}",
        ANYTIME,
        True,
    )
    yield StepTest(
        "draws of examples",
        to_p_value(_count_wealth(table.drawn, table.steps, float(rates[0]))),
        f"examples were drawn {int(table.drawn.min())} to {int(table.drawn.max())} times, unlike by independent draws",
        EXACT,
        True,
    )


def rate_wealth(count: NDArray[np.int64], n: Array, rate: Array) -> float:
    """Largest logarithm of the wealth against rates of successes, step after step.

    Parameters
    ----------
    count, n : ndarray of shape (n_steps,)
        Successes and trials of each step.
    rate : ndarray of shape (n_steps,)
        Claimed rates.
    """
    won, lost = np.cumsum(count).astype(float), np.cumsum(n - count).astype(float)
    stated = np.cumsum(special.xlogy(count, rate) + special.xlog1py(n - count, -rate))
    return float(np.max(_mixed_likelihood(won, lost) - stated, initial=0.0))


def _mixed_likelihood(won: Any, lost: Any) -> Any:
    """Logarithm of the likelihood of successes and failures, averaged over a Beta prior of their rate."""
    return special.betaln(won + PRIOR, lost + PRIOR) - special.betaln(PRIOR, PRIOR)


def _repetition_wealth(*counts: NDArray[np.int64]) -> float:
    """Logarithm of the wealth against one rate of two kinds of trials, from successes and trials of each kind."""
    won, n, won_too, n_too = (float(c.sum()) for c in counts)
    total, trials = won + won_too, n + n_too
    best = special.xlogy(total, total / trials) + special.xlog1py(trials - total, -total / trials) if trials else 0.0
    return float(_mixed_likelihood(won, n - won) + _mixed_likelihood(won_too, n_too - won_too) - best)


def _count_wealth(counts: NDArray[np.int64], n: int, rate: float) -> float:
    """Logarithm of the wealth against counts that are Binomial(n, q), in cells that are chosen for q = rate."""
    from scipy import optimize  # takes longer to import than numpy

    stated = stats.binom(n, rate)
    edges = np.unique([stated.ppf(p) for p in np.arange(SHARE, 1.0 - SHARE / 2, SHARE)])
    edges = edges[edges < n]
    cells = np.bincount(np.searchsorted(edges, counts, side="left"), minlength=len(edges) + 1)

    def log_likelihood(logit: float) -> float:
        q = special.expit(logit)
        found = np.diff(np.concatenate([[0.0], special.bdtr(edges, n, q), [1.0]]))
        return float(special.xlogy(cells, np.maximum(found, LEAST)).sum())

    center = float(special.logit(rate))
    probabilities = np.diff(np.concatenate([[0.0], special.bdtr(edges, n, rate), [1.0]]))
    wealth = float(Multinomials([probabilities]).log_wealth([np.append(cells, 0)])[0])
    # The likelihood of counts in intervals has one maximum in the logit.
    best = optimize.minimize_scalar(
        lambda logit: -log_likelihood(logit), bounds=(center - _LOGITS, center + _LOGITS), method="bounded"
    )
    return wealth + log_likelihood(center) - max(-float(best.fun), log_likelihood(center))


# --------------------------------------------------------------------------------------------- clipping


def check_clipping(table: StepTable) -> Iterator[StepTest]:
    """Compare norms with the clip norm; nothing here is by chance.

    Valid because: a sum of clipped gradients has no term above the clip norm, and differs by what the canary adds where
    the canary is in. That its norm is the clip norm itself at several steps, where the norms of its terms add up to
    more, and that no such sum without the canary is longer, is possible only if their gradients conspire. They do where
    all are clipped and lie on one line, as in a model of one parameter, or are 0: steps whose norms add up to a whole
    number of clip norms are not counted. Numbers of few digits, as in a mean of quarters, add up to the clip norm now
    and then, but then to more as well.
    """
    largest = float(np.nanmax(table.largest, initial=0.0))
    if np.isfinite(table.largest).any():
        yield _certain("norms", largest > 1 + SLACK, f"a gradient of {largest:.4g} clip norms is in the sum")
    canary = float(np.max(table.canary_norm / table.clip, initial=0.0))
    yield _certain("canary's norm", canary > 1 + SLACK, f"the canary adds {canary:.4g} clip norms to the sum")
    if np.isfinite(table.surplus).any():
        surplus = float(np.nanmax(table.surplus))
        size = float(np.nanmax(table.total, initial=1.0))
        yield _certain(
            "sum",
            surplus > SLACK * max(1.0, size),
            f"the sum before noise differs by {surplus:.4g} clip norms from that of the others and the canary",
        )
    if np.isfinite(table.summed).any():
        together = table.summed + np.where(table.included == 1, table.canary_norm / table.clip, 0.0)
        generic = np.abs(together - np.rint(together)) > SLACK
        clipped = int(((np.abs(table.total - 1) < SLACK / 10) & (together > SEVERAL) & generic).sum())
        # What the canary adds may be added after the sum is clipped.
        longer = bool(((table.total > 1 + SLACK) & np.isfinite(table.summed) & (table.included != 1)).any())
        yield _certain(
            "clipping of sums",
            clipped >= (CLIPPED_SUMS if table.layers.sum() > 1 else CLIPPED_ON_LINE) and not longer,
            f"the sum of a whole batch has the clip norm at {clipped} steps: it is clipped, not each example",
        )


def _certain(name: str, wrong: bool, finding: str) -> StepTest:
    return StepTest(name, 0.0 if wrong else 1.0, finding, CERTAIN)
