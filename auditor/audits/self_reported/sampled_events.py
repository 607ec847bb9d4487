"""Noise on samples of the rows: the epsilon of many steps, bounded from above and from below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from scipy import special

from auditor.privacy.exact import GaussianCurve, LaplaceCurve, PrivacyCurve
from auditor.privacy.exact.convolution import LatticeMasses, lowered
from auditor.privacy.exact.privacy_loss import solve
from auditor.privacy.laws import FloatArray

#: Spacing of dp-accounting's grid of privacy losses, its default. The losses of one step of each event take at most so
#: many points together, about two seconds, and the composed losses at most the last number.
_STEP, _POINTS, _MOST_POINTS = 1e-4, 200_000, 5_000_000
#: Largest spacing, and largest width of the losses of Laplace noise: e to the power of it is a double.
_WIDEST = 700.0
#: Standard deviations beyond which losses are left out when the size of a grid is estimated.
_REACH = 12.0
#: Cells of the losses of one step for a bound from below, and points of the composed losses. Arbitrary: they take a
#: second, and leave 0.0001 % of epsilon for 200 steps at a rate of 0.1. There are more points for more steps, up to the
#: last number.
_CELLS, _COMPOSED, _COMPOSED_A_STEP, _MOST_COMPOSED = 200_000, 1_000_000, 4, 2_000_000
#: Gaussian outputs further from both centres, in standard deviations, are one cell at either end.
_FAR = 10.0
#: Cells narrower than this, in standard deviations, are integrated by eight nodes: no difference of two numbers.
_NARROW = 0.5
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
#: Probabilities below it have few digits left, and say nothing of a ratio.
_TINY = 1e-290
#: Mass that a composition leaves out at either end.
_CUT = 1e-15
#: Least delta at which a sampled composition is bounded; and what rounding may add to masses, at once and at each step:
#: transforms of 10^6 losses are rounded by some 1e-14 together. Measured against exact curves they added less than a
#: fiftieth of it at 1 to 10^7 steps. At this delta and 400 steps it moves the lower bound by 0.1 %.
LEAST_DELTA, _MASS, _MASS_OF_STEP = 1e-10, 1e-12, 1e-14


@dataclass(frozen=True)
class Event:
    """Noise added to queries on samples of the rows.

    It is added some times.

    Parameters
    ----------
    kind : {"gaussian", "laplace"}
    scale : float
        Standard deviation, or scale, over the sensitivity.
    count : int
        How often.
    sampling : float
        Probability with which each row is in the sample, independently (Poisson sampling); 1 for no sampling.
    """

    kind: str
    scale: float
    count: int
    sampling: float

    @property
    def curve(self) -> PrivacyCurve:
        """Curve of one step, without sampling."""
        return GaussianCurve(1 / self.scale) if self.kind == "gaussian" else LaplaceCurve(1 / self.scale)

    @property
    def span(self) -> float:
        """Width of the privacy losses of one step, about."""
        return 1 / self.scale**2 + 2 * _REACH / self.scale if self.kind == "gaussian" else 2 / self.scale


def bound_sampled_events(events: tuple[Event, ...], delta: float) -> tuple[float, float] | str:
    """Bounds on the epsilon of sampled events.

    For adding or removing a row.

    Parameters
    ----------
    events : tuple of Event
        The events, any of which may be without sampling.
    delta : float
        In (0, 1).

    Returns
    -------
    (float, float) or str
        A lower and an upper bound; or why there are none.

    Notes
    -----
    dp-accounting bounds the composition from above, by connecting dots of the privacy curve (Doroshenko, Ghazi, Kamath,
    Kumar, Manurangsi 2022). From below see `bound_from_below`. (To take twice the difference of two grids for the error
    of the finer one would be wrong: it falls with the square of the spacing only where losses are spread over many
    points.)
    """
    if sum(map(_width, events)) > _MOST_POINTS * _spacing(events):
        return "so little noise, or so many steps, would need a grid of too many privacy losses"
    if _spacing(events) > _WIDEST or any(event.kind == "laplace" and event.span > _WIDEST for event in events):
        return "so little noise has privacy losses that are too large for a grid"
    if delta < LEAST_DELTA:
        return f"sampled events can be bounded at a delta of {LEAST_DELTA:g} or more, got {delta:g}"
    try:
        high = float(_losses(events, _spacing(events)).get_epsilon_for_delta(delta))
        low = bound_from_below(events, delta)
    except ImportError:
        return "sampled events need dp-accounting, which is not installed"
    if not math.isfinite(high):
        return f"the composition of sampled events has no finite bound at a delta of {delta:g}"
    return min(low, high), high


# ------------------------------------------------------------------------------------------- from above


def _width(event: Event) -> float:
    """Width of the composed privacy losses of one event's steps, about: that of a Gaussian of the same variance."""
    # The variance of a sampled likelihood ratio, capped where it overflows; the sum of the widths is a bound too.
    exponent = event.span if event.kind == "laplace" else 1 / event.scale**2
    variance = event.count * event.sampling**2 * math.expm1(min(exponent, 700.0))
    return min(variance + 2 * _REACH * math.sqrt(variance), event.count * event.span)


def _spacing(events: tuple[Event, ...]) -> float:
    return max(_STEP, sum(event.span for event in events) / _POINTS)


@lru_cache(maxsize=8)  # one accountant's events are asked for twice
def _losses(events: tuple[Event, ...], step: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    made = {"gaussian": pld.from_gaussian_mechanism, "laplace": pld.from_laplace_mechanism}
    composed = [
        made[event.kind](event.scale, value_discretization_interval=step, sampling_prob=event.sampling).self_compose(
            event.count
        )
        for event in events
    ]
    return reduce(lambda one, two: one.compose(two), composed)


# ------------------------------------------------------------------------------------------- from below


def bound_from_below(events: tuple[Event, ...], delta: float) -> float:
    """Lower bound on the epsilon of sampled events.

    Parameters
    ----------
    events : tuple of Event
        The events.
    delta : float
        In (0, 1).

    Notes
    -----
    Valid because: let P be the distribution of a step's output with the row and Q that without it, or the other way
    round. Outputs are merged into cells, which is post-processing, and the loss of each cell is lowered to a lattice
    point (`auditor.privacy.exact.convolution.lowered`). Losses that are smaller for every outcome add up to smaller
    sums, and what is cut off is dropped, so that delta at every epsilon is at most the true one, but for rounding, for
    which the bound is the epsilon at a larger delta.
    """
    count = sum(event.count for event in events)
    room = delta + _MASS + _MASS_OF_STEP * count
    return max([0.0, *(solve(loss, log_mass, room) for loss, log_mass in _compose_lowered(events))])


@lru_cache(maxsize=4)  # one accountant's events are asked for twice
def _compose_lowered(events: tuple[Event, ...]) -> list[tuple[FloatArray, FloatArray]]:
    """Decreasing losses and log masses of the composition, for a row that is removed and for one that is added."""
    from dp_accounting.pld import common
    from scipy import signal

    step, orders = _step_below(events), []
    if step < _TINY:
        return []  # hardly any loss at all
    for added in (False, True):
        start, mass = 0.0, np.ones(1)
        for event in events:
            one = _lower_losses(event, step, added)
            first, composed = common.self_convolve(np.exp(one.log_mass), event.count, _CUT)
            start += event.count * one.start + first * step
            mass = signal.fftconvolve(mass, np.asarray(composed))
        used = mass > 0
        loss = start + step * np.arange(mass.size, dtype=np.float64)
        log_mass: FloatArray = np.log(mass[used])
        orders.append((np.asarray(loss[used][::-1]), np.asarray(log_mass[::-1])))
    return orders


def _step_below(events: Sequence[Event]) -> float:
    """Step of the lattice: it divides the losses of Laplace noise, which has atoms at both ends."""
    ranges = [_range_of(event) for event in events]
    points = min(max(_COMPOSED, _COMPOSED_A_STEP * sum(event.count for event in events)), _MOST_COMPOSED)
    step = max(max(high - low for low, high in ranges) / _CELLS, sum(map(_width, events)) / points)
    atoms = [high - low for event, (low, high) in zip(events, ranges, strict=True) if event.kind == "laplace"]
    return atoms[0] / math.ceil(atoms[0] / step) if atoms and step < atoms[0] else step


def _range_of(event: Event) -> tuple[float, float]:
    """Smallest and largest loss that is told from others, of a row that is removed."""
    mu = 1 / event.scale
    most = mu if event.kind == "laplace" else _FAR * mu + 0.5 * mu * mu
    return _loss_of(event, -most), _loss_of(event, most)


def _loss_of(event: Event, unsampled: float) -> float:
    """Loss of an output whose loss without sampling is given: ln(1 - q + q e^l)."""
    if unsampled > 0:  # e^l may be no double
        return unsampled + math.log(event.sampling + (1 - event.sampling) * math.exp(-unsampled))
    return math.log1p(event.sampling * math.expm1(unsampled)) if event.sampling < 1 else unsampled


def _lower_losses(event: Event, step: float, added: bool) -> LatticeMasses:
    """Masses of one step on a lattice, with losses that are not above the true ones."""
    low, high = _range_of(event)
    size = math.ceil((high - low) / step) + 1
    # The largest loss is in the middle of the last cell.
    edge = high + step * (np.arange(size + 1, dtype=np.float64) - (size - 0.5))
    unsampled: FloatArray = edge.copy()
    if event.sampling < 1:
        with np.errstate(divide="ignore", invalid="ignore"):  # ln((e^l - 1 + q) / q), nothing below the smallest loss
            large = edge + np.log1p((event.sampling - 1.0) * np.exp(-np.abs(edge))) - math.log(event.sampling)
            small = np.log1p(np.expm1(np.minimum(edge, 0.0)) / event.sampling)
        unsampled = np.where(edge > 0, large, np.nan_to_num(small, nan=-np.inf, neginf=-np.inf)).astype(np.float64)
    unsampled[0], unsampled[-1] = -np.inf, np.inf
    unsampled = np.asarray(np.maximum.accumulate(unsampled), dtype=np.float64)
    base, moved = (_gaussian_cells if event.kind == "gaussian" else _laplace_cells)(unsampled, 1 / event.scale)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        loss = np.log1p(event.sampling * (moved / base - 1.0))
    total = base if added else (1.0 - event.sampling) * base + event.sampling * moved
    known = (base > _TINY) & ((moved > _TINY) | (event.sampling < 1))
    if added:
        total, loss, edge, known = total[::-1], -loss[::-1], -edge[::-1], known[::-1]
    # A cell whose ratio is not known has at least the loss of its lower end, but for the first, which has no lower end.
    offset = np.where(known, loss - edge[:-1], 0.0)
    dropped = (offset < 0) | ((np.arange(size) == 0) & ~known)
    return lowered(np.where(dropped, 0.0, total), np.clip(offset, 0.0, step), float(edge[0]), step)


def _gaussian_cells(unsampled: FloatArray, mu: float) -> tuple[FloatArray, FloatArray]:
    """Masses of N(0, 1) and of N(mu, 1) in cells between losses."""
    edge = unsampled / mu + 0.5 * mu
    return _normal_mass(edge), _normal_mass(edge - mu)


def _normal_mass(edge: FloatArray) -> FloatArray:
    a, b = edge[:-1], edge[1:]
    flip = a > 0
    mass = special.ndtr(np.where(flip, -a, b)) - special.ndtr(np.where(flip, -b, a))
    narrow = np.flatnonzero(np.isfinite(a) & (b < a + _NARROW))
    half = 0.5 * (b[narrow] - a[narrow])[:, None]
    node = a[narrow, None] + half * (1.0 + _NODES)
    mass[narrow] = (half * _WEIGHTS * np.exp(-0.5 * node * node)).sum(axis=1) / math.sqrt(2 * math.pi)
    return np.asarray(mass, dtype=np.float64)


def _laplace_cells(unsampled: FloatArray, shift: float) -> tuple[FloatArray, FloatArray]:
    """Masses of two Laplace distributions, centred at 0 and at the shift, in cells between losses."""
    edge = 0.5 * (np.clip(unsampled, -shift, shift) + shift)
    a, width = edge[:-1], np.diff(edge)
    base = -0.5 * np.exp(-a) * np.expm1(-width)
    moved = 0.5 * np.exp(a + width - shift) * -np.expm1(-width)
    # Outputs beyond the centres have the smallest and the largest loss.
    lowest, highest = np.flatnonzero(edge <= 0)[-1], np.flatnonzero(edge >= shift)[0] - 1
    base[lowest], moved[lowest] = base[lowest] + 0.5, moved[lowest] + 0.5 * math.exp(-shift)
    base[highest], moved[highest] = base[highest] + 0.5 * math.exp(-shift), moved[highest] + 0.5
    return base, moved
