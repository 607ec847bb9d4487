"""Sums of small shifts: a score for losses that are spread over many coordinates, each of which says little.

Where many coordinates are shifted a little, a few hundred draws tell none of the shifts, but they tell how large shifts
are in general. So each coordinate's shift is estimated, and shrunk by a prior that is read off all of them ("empirical
Bayes"). Where all shifts are alike the shrunken ones are nearly equal, where a few coordinates are shifted all others
are left out. The sum of the coordinates' scores, each weighted with its shrunken shift, is to first order the
log-likelihood ratio of a vector with independent noise.

Nothing here bears on validity: what is learned is a function of past draws, and is bet on with new draws only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.events.candidates import Candidates, Prior, candidates_of
from auditor.events.log_likelihood_ratio import OwnRatio
from auditor.targets.outputs import Batch, read_matrix

Array = NDArray[np.float64]

#: Fewer coordinates than this say enough one by one; arbitrary.
LEAST_COORDINATES = 5
#: Draws a side from which shifts are estimated: those before the first bet.
_LEAST_DRAWS = 8
#: Rows a side that centres and the kind of noise are read off: enough for errors of a few per cent of the noise, which
#: hardly turn the score.
_ROWS = 512
#: Numbers that the kind of noise is read off; arbitrary, they tell the exponents below apart.
_NUMBERS = 4_096
#: Exponents b of densities proportional to exp(-|r|^b): near Laplace, Gaussian, and what lies between. Not 1: the score
#: is then the sign alone, and one coordinate that says everything would have one threshold.
_EXPONENTS = (1.25, 1.5, 2.0)
#: Parts of the draws: the score of each is learned on the other four, so that no draw is scored by what was learned
#: from it.
_FOLDS = 5
#: Points of the prior, an odd number so that no shift is one of them, and steps that it is fitted in; arbitrary, more
#: steps would fit the noise of few coordinates.
_POINTS, _STEPS = 25, 10
#: Draws that a normal fit to the score stands for, which is a sum of many terms; as in `normal_prior`.
_WEIGHT = 24.0
#: Nats by which an event of another feature has to be better: the best of hundreds of candidates looks that much better
#: than it is. While draws are few there are fewer different events, and it is this many nats a draw. It is no more than
#: this many times what the sum itself has gained, so that a sum that shows nothing holds back no other event. Chosen by
#: simulation on seeds from 500 on, and on planted violations with seeds below 100.
_PENALTY, _PENALTY_A_DRAW, _PENALTY_A_NAT = 8.0, 0.25, 1.5
#: Least and, from 1, largest probability that the fit gives; as in `normal_prior`.
_LEAST = 1e-4
#: Variance that is rounding, as a part of the mean square; and less than any likelihood that counts. Arbitrary, small.
_ROUNDING, _NOTHING = 1e-20, 1e-300
#: Terms that are written out; arbitrary, a line's length.
_WORDS = 8


@dataclass(frozen=True)
class SpreadShifts:
    """Sum of the coordinates' scores for a small shift of each.

    Parameters
    ----------
    weights : tuple of float
        Weight of each coordinate's score.
    centres : tuple of float
        Where each coordinate's score is 0.
    exponent : float
        The noise is taken to have a density proportional to exp(-|r|^exponent), r the distance from the centre. The
        score of a shift is then sign(r) |r|^(exponent - 1).
    """

    weights: tuple[float, ...]
    centres: tuple[float, ...]
    exponent: float

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`; a missing coordinate counts as its centre."""
        values = read_matrix(batch, len(self.weights))
        return np.asarray(_score_shifts(values, np.array(self.centres), self.exponent) @ np.array(self.weights))

    def _describe_terms(self) -> str:
        top = sorted(range(len(self.weights)), key=lambda j: -abs(self.weights[j]))[:_WORDS]
        of = {1.0: "sign(output[{}] - {:.4g})", 2.0: "(output[{}] - {:.4g})"}.get(self.exponent)
        of = of or f"signed |output[{{}}] - {{:.4g}}|^{self.exponent - 1:g}"
        terms = [f"{self.weights[j]:+.3g} {of.format(j, self.centres[j])}" for j in sorted(top) if self.weights[j]]
        return " ".join(terms) + (" + ..." if len(self.weights) > _WORDS else "")

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_terms()} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_terms()} > {cut:.6g}"


def _score_shifts(values: Array, centres: Array, exponent: float) -> Array:
    """Score of a shift of each number, 0 where there is none."""
    with np.errstate(invalid="ignore", over="ignore"):
        away = values - centres
        if exponent == 1.0:
            away = np.sign(away)
        elif exponent != 2.0:
            away = np.sign(away) * np.abs(away) ** (exponent - 1.0)
    return np.where(np.isfinite(away), away, 0.0)


def add_shifts(x: Batch, y: Batch, groups: Sequence[Candidates]) -> list[Candidates]:
    """Add events of a sum of small shifts; see `penalise_others`.

    Parameters
    ----------
    x, y : ndarray of shape (n, d)
        Past draws, as many of each side.
    groups : sequence of Candidates
        Events of other features, with counts.

    Returns
    -------
    list of Candidates
        The same where nothing is learned, see `learn_shifts`.

    Notes
    -----
    Valid because: all is a function of the past draws that are given, and what is proposed is bet on with draws that
    are made later. That a score is rated on draws that it was not learned from is for power alone.
    """
    learned = learn_shifts(x, y)
    if learned is None:
        return list(groups)
    feature, a, b = learned
    found = list(groups)
    for group in candidates_of(feature, a, b):
        p, q = (_fit_probability(group, values) for values in (a, b))
        found.append(replace(group, prior=Prior(p, q, _WEIGHT)))
    return found


def penalise_others(groups: Sequence[Candidates], gained: Array) -> list[float]:
    """Nats by which events have to beat the sum of shifts.

    Parameters
    ----------
    groups : sequence of Candidates
        All groups of events.
    gained : ndarray of shape (n_events,)
        Nats that each event would have gained, one group after the other.

    Returns
    -------
    list of float
        One for each group; 0 for the sum of shifts, for what the target offers, which is one feature and no luck, and
        for what the survey prefers.
    """
    ends = np.cumsum([len(group.cuts) for group in groups])
    penalty = 0.0
    for group, end in zip(groups, ends, strict=True):
        if isinstance(group.feature, SpreadShifts):
            most = float(gained[end - len(group.cuts) : end].max(initial=0.0))
            penalty = max(penalty, min(_PENALTY, _PENALTY_A_DRAW * group.n, _PENALTY_A_NAT * most))
    free = [isinstance(group.feature, SpreadShifts | OwnRatio) or group.penalty < 0 for group in groups]
    return [0.0 if spared else penalty for spared in free]


def _fit_probability(group: Candidates, values: Array) -> Array:
    """Probability of each event under a normal distribution with the values' mean and deviation."""
    deviation = float(values.std(ddof=1))
    if not deviation > 0:
        return np.full(len(group.cuts), 0.5)
    below = special.ndtr((group.cuts - values.mean()) / deviation)
    return np.asarray(np.clip(below if group.side == "below" else 1.0 - below, _LEAST, 1.0 - _LEAST))


def learn_shifts(x: Batch, y: Batch) -> tuple[SpreadShifts, Array, Array] | None:
    """Learn a score of small shifts, and values for past draws.

    Parameters
    ----------
    x, y : ndarray of shape (n, d)
        Past draws, as many of each side.

    Returns
    -------
    tuple of (SpreadShifts, ndarray, ndarray) or None
        The score learned from all draws, and values of shape (n,) for the draws of each side. The values are those of
        scores that were learned without the fifth of the draws that they are for, so that a score that fits noise looks
        no better than it is. All scores have the same deviation, 1. None for few coordinates or draws, and where
        nothing varies or numbers overflow.
    """
    width = np.shape(x)[1]
    if width < LEAST_COORDINATES or len(x) < _LEAST_DRAWS:
        return None
    a, b = read_matrix(x, width), read_matrix(y, width)
    with np.errstate(invalid="ignore", over="ignore"):
        centres, exponent = _fit_noise(a[:_ROWS], b[:_ROWS])
        first, second = (_score_shifts(side, centres, exponent) for side in (a, b))
        weights = _learn_weights(first, second)
    if weights is None or not np.isfinite(weights).all():
        return None
    learned = SpreadShifts(tuple(weights[-1].tolist()), tuple(centres.tolist()), exponent)
    return learned, _cross_values(first, weights), _cross_values(second, weights)


def _cross_values(scores: Array, weights: Array) -> Array:
    """Each fold's sums with the weights that were learned without it."""
    values = np.empty(len(scores))
    for fold in range(_FOLDS):
        values[fold::_FOLDS] = scores[fold::_FOLDS] @ weights[fold]
    return values


def _fit_noise(a: Array, b: Array) -> tuple[Array, float]:
    """Centre of each coordinate, and the exponent under which the deviations are most likely."""
    first, second = (np.median(np.where(np.isfinite(side), side, 0.0), axis=0) for side in (a, b))
    away = np.abs(np.concatenate([a - first, b - second]))
    away = np.where(np.isfinite(away), away, 0.0)
    size = away.mean(axis=0)
    away = (away / np.where((size > 0) & (size < np.inf), size, np.inf)).ravel()
    return 0.5 * first + 0.5 * second, _choose_exponent(away[:: max(1, away.size // _NUMBERS)])


def _choose_exponent(away: Array) -> float:
    """Exponent under which distances from a centre are most likely."""

    def loss(b: float) -> float:
        # The density is b / (2 s Gamma(1/b)) exp(-|r/s|^b), with the likeliest s.
        s = (b * float(np.mean(away**b))) ** (1.0 / b)
        return math.log(2.0 * s / b) + math.lgamma(1.0 / b) + 1.0 / b

    return min(_EXPONENTS, key=loss) if away.any() else 2.0


def _learn_weights(a: Array, b: Array) -> Array | None:
    """Weights without each fold, and with all draws, shape (folds + 1, d); None where nothing differs."""
    n = len(a)
    sums_a, sums_b = (np.stack([side[k::_FOLDS].sum(axis=0) for k in range(_FOLDS)]) for side in (a, b))
    all_a, all_b = sums_a.sum(axis=0), sums_b.sum(axis=0)
    squares = np.einsum("ij,ij->j", a, a) + np.einsum("ij,ij->j", b, b)
    variance = squares / (2 * n) - 0.5 * ((all_a / n) ** 2 + (all_b / n) ** 2)
    # What varies by rounding only does not vary.
    deviation = np.sqrt(np.where(variance > _ROUNDING * squares / n, variance, np.inf))
    left = np.array([n - len(range(k, n, _FOLDS)) for k in range(_FOLDS)] + [n])[:, None]
    gaps = np.concatenate([all_a - sums_a, all_a[None]]) - np.concatenate([all_b - sums_b, all_b[None]])
    effects = shrink_effects(gaps / left / deviation, np.sqrt(2.0 / left))
    norm = np.sqrt((effects**2).sum(axis=1, keepdims=True))
    return np.asarray(effects / norm / deviation) if (norm > 0).all() else None


def shrink_effects(effects: Array, errors: Array) -> Array:
    """Shrink estimates by a prior that is fitted to them.

    Parameters
    ----------
    effects : ndarray of shape (m, d)
        m sets of d estimates.
    errors : ndarray of shape (m, 1)
        Standard error of each set's estimates.

    Returns
    -------
    ndarray of shape (m, d)
        Mean of each true effect given the estimates. Each set's effects come from a distribution on a grid, and from
        one point at their mean; it is fitted to the set by expectation and maximisation, and begins half as a normal
        distribution around the mean and half as one around 0, with the variances that the estimates have beyond their
        errors.
    """
    noise = errors**2
    mean, reach = effects.mean(axis=1, keepdims=True), np.abs(effects).max(axis=1, keepdims=True)
    points = np.concatenate([reach * np.linspace(-1.0, 1.0, _POINTS), mean], axis=1)
    step = np.maximum(reach / _POINTS, np.finfo(np.float64).tiny ** 0.25)
    spread = np.maximum(effects.var(axis=1, keepdims=True) - noise, 0.0)
    around = np.exp(-0.5 * (points - mean) ** 2 / (spread + step**2))
    # All effects are one, as far as the estimates tell, if they vary no more than by their errors.
    around[:, -1:] *= np.where(spread > 0, 0.5, _POINTS)
    # The variance of d estimates has a relative error of sqrt(2/d): less than that says nothing.
    square = (effects**2).mean(axis=1, keepdims=True) - noise
    wide = np.exp(-0.5 * points**2 / np.maximum(square, noise * math.sqrt(2.0 / effects.shape[1])))
    wide[:, -1:] = 0.0
    prior = 0.5 * around / around.sum(axis=1, keepdims=True) + 0.5 * wide / wide.sum(axis=1, keepdims=True)
    likelihood = np.exp(-0.5 * ((effects[:, :, None] - points[:, None, :]) / errors[:, :, None]) ** 2)
    for _ in range(_STEPS):
        share = np.maximum(likelihood @ prior[:, :, None], _NOTHING)
        prior = prior * (likelihood / share).mean(axis=1)
    joint = likelihood * prior[:, None, :]
    return np.asarray((joint @ points[:, :, None])[:, :, 0] / np.maximum(joint.sum(axis=2), _NOTHING))
