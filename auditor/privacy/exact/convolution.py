"""Privacy losses moved to a lattice, where independent losses add by convolution, with the error on a known side.

Two moves, each of which says on which side it errs:

* *Up*: a group of loss l between lattice points s < l <= t is shared out between s and t so that its mass under P and
  its mass under Q both stay ("connect the dots", Doroshenko et al. 2022). Undoing it is a merging of outcomes, so the
  lattice pair can only be easier to tell apart: it is a pair of distributions, and an upper bound in every respect.
* *Down*: groups within one lattice cell are merged, which makes the pair harder to tell apart, and the loss of the
  merged group is lowered to a lattice point. A lower bound on delta for one order of the pair.

Sharing out keeps first moments, so its error is of the second order in the lattice step. So is that of lowering where
the loss has a density or a lattice of its own; an irregular loss with a mass of its own may be lowered by a step.

Convolution is by fast Fourier transform of exponentially tilted masses: a tilt by theta makes the rounding errors small
where the sum is likely under the tilt, and some tens of tilts cover the range, so that masses of 1e-100 come out with
seven digits. A bound on the error is returned with the masses and goes to the side that is asked for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import fft

from auditor.privacy.exact.discrete_curves import DiscreteGaussianCurve
from auditor.privacy.exact.privacy_curve import CauchyCurve, GaussianCurve, LaplaceCurve, PrivacyCurve
from auditor.privacy.exact.privacy_loss import LossCurve
from auditor.privacy.laws import FloatArray, require

# Mass that may be cut off at either end of one curve's losses: below any delta that is asked for.
_CUT = 1e-40
# That is 13.4 standard deviations of a Gaussian loss.
_GAUSSIAN_REACH = 13.4
# Losses within this part of a step of a lattice point are on it, as long as that is rounding of losses computed along
# different paths: at most so much, relative to the largest loss or to 1.
_SNAP = 1e-7
_ROUNDING = 1e-12
# Cells wider than this are merged and shared out by e^-loss itself: 1 + expm1(-loss) has no digits left above 37.
_WIDE = 1.0
# Gauss-Legendre nodes a cell, for distributions with a density: exact to degree 15 where a cell is a small part of the
# scale.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
# Fewest cells for a distribution with a density, so that the quadrature is accurate however coarse the lattice;
# arbitrary.
_CELLS = 512
# Neighbouring tilts are at most this many standard deviations apart: rounding errors grow by e^(3^2 / 2) in between.
_TILT_GAP = 6.0
# Sums less likely than this, under both distributions, need no tilt of their own: they are below the smallest double.
LEAST_LOG = -745.0
# Root mean square error of the Fourier coefficients of masses that sum to one, per log2(size): at most 6.7 roundings
# (Higham 2002, Theorem 24.2, for a power of two).
_FFT_ERROR = 8 * 2.0**-53


class Losses(NamedTuple):
    """One order of a pair: masses under P at increasing losses.

    Attributes
    ----------
    loss, log_p : ndarray of shape (n,)
        Losses ``ln P - ln Q``, increasing, and log masses under P.
    p_only, q_only : float
        Mass with infinite loss, and mass of Q where P has none.
    p_cut, q_cut : float
        Mass of P above all and of Q below all listed losses that was cut off.
    """

    loss: FloatArray
    log_p: FloatArray
    p_only: float = 0.0
    q_only: float = 0.0
    p_cut: float = 0.0
    q_cut: float = 0.0

    def swapped(self) -> Losses:
        """Return the other order of the pair."""
        return Losses(
            -self.loss[::-1], (self.log_p - self.loss)[::-1], self.q_only, self.p_only, self.q_cut, self.p_cut
        )


class LatticeMasses(NamedTuple):
    """Log masses on the lattice points ``start + i step``."""

    start: float
    log_mass: FloatArray


def span(curve: PrivacyCurve) -> tuple[float, float]:
    """Smallest and largest loss that is kept of a curve."""
    match curve:
        case LaplaceCurve():
            return -curve.shift, curve.shift
        case CauchyCurve():
            return -curve.distance, curve.distance
        case GaussianCurve():
            reach = curve.shift * (_GAUSSIAN_REACH + curve.shift / 2.0)
            return -reach, reach
        case _:
            loss = losses(curve, 1.0).loss
            return float(loss[0]), float(loss[-1])


def spacing(curve: PrivacyCurve) -> float:
    """Spacing of the lattice of all losses, or 0."""
    match curve:
        case LaplaceCurve():
            return 2.0 * curve.shift  # the two atoms; in between there is a density
        case DiscreteGaussianCurve():
            return curve.shift / curve.sigma**2
        case LossCurve() if curve.loss.size > 1:
            length = float(curve.loss[0] - curve.loss[-1])
            step = length / round(length / -float(np.diff(curve.loss).max()))
            index = (curve.loss[0] - curve.loss) / step
            return step if np.all(np.abs(index - np.rint(index)) <= _snap(curve.loss, step)) else 0.0
    return 0.0


def _snap(loss: FloatArray, step: float) -> float:
    """Part of a step within which losses are on a lattice point."""
    return min(_SNAP, _ROUNDING * max(1.0, abs(float(loss[0])), abs(float(loss[-1]))) / step)


def losses(curve: PrivacyCurve, step: float) -> Losses:
    """Losses of a curve.

    For a curve with a density, by quadrature on cells no wider than `step`.

    Parameters
    ----------
    curve : PrivacyCurve
        The curve.
    step : float
        Width of the cells, in units of the loss.

    Returns
    -------
    Losses
        By increasing loss.

    Raises
    ------
    TypeError
        If the curve is of a kind that does not list its losses.
    """
    match curve:
        case DiscreteGaussianCurve():
            table = curve.losses
            return Losses(table.loss[::-1], table.log_p[::-1], 0.0, 0.0, table.p_only, table.q_only)
        case LossCurve():
            return _trim_ends(curve)
        case LaplaceCurve():
            # Between the atoms the loss has the density e^(-(shift - l) / 2) / 4 under P.
            loss, weight = _quadrature(_cells(-curve.shift, curve.shift, step))
            inner = np.log(weight / 4.0) - (curve.shift - loss) / 2.0
            atoms = np.array([-curve.shift, 0.0]) - math.log(2.0)
            return Losses(
                np.concatenate([[-curve.shift], loss, [curve.shift]]), np.concatenate([atoms[:1], inner, atoms[1:]])
            )
        case GaussianCurve():
            loss, weight = _quadrature(_cells(*span(curve), step))
            score = (loss - curve.shift**2 / 2.0) / curve.shift
            log_p = np.log(weight / (curve.shift * math.sqrt(2.0 * math.pi))) - 0.5 * score**2
            return Losses(loss, log_p, p_cut=_CUT, q_cut=_CUT)
        case CauchyCurve():
            return _cauchy(curve.distance, step)
    raise TypeError(f"expected a curve that lists its losses, got {curve!r}")


def _cauchy(d: float, step: float) -> Losses:
    """Losses of a Cauchy pair: the angle of `CauchyCurve` is uniform under P. Cells are cut at equal losses."""
    require(d <= 700.0, "a Cauchy pair at a distance of at most 700, where e^700 is near the largest double", d)
    edge = _cells(-d, d, step)
    # Half of the angle has the tangent `across` / `along`. Beyond a right angle what is left to pi is listed.
    across = np.sqrt(-np.expm1(edge - d))
    along = np.exp(0.5 * (edge - d)) * np.sqrt(-np.expm1(-(edge + d)))
    turn = int(np.count_nonzero(along < across))  # along grows with the loss, across falls
    rest, rest_weight = _quadrature(2.0 * np.arctan2(along[: turn + 1], across[: turn + 1]))
    angle, weight = _quadrature(2.0 * np.arctan2(across[turn:], along[turn:])[::-1])
    large, small = math.exp(d / 2.0), math.exp(-d / 2.0)  # inside the squares, which underflow
    low = np.log((large * np.sin(rest / 2.0)) ** 2 + (small * np.cos(rest / 2.0)) ** 2)
    high = np.log((large * np.cos(angle / 2.0)) ** 2 + (small * np.sin(angle / 2.0)) ** 2)
    log_p = np.log(np.concatenate([rest_weight, weight[::-1]]) / math.pi)
    return Losses(np.concatenate([low, high[::-1]]), log_p)


def _cells(low: float, high: float, step: float) -> FloatArray:
    """Edges of equal cells of at most `step`."""
    return np.linspace(low, high, max(_CELLS, math.ceil((high - low) / step)) + 1)


def _quadrature(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on the cells between increasing edges."""
    half = 0.5 * np.diff(edges)[:, None]
    nodes = edges[:-1, None] + half * (1.0 + _NODES)
    return nodes.ravel(), (half * _WEIGHTS).ravel()


def _trim_ends(curve: LossCurve) -> Losses:
    """Increasing losses, without the ends that have hardly any mass under either distribution."""
    above = np.cumsum(np.exp(curve.log_p)) <= _CUT  # losses decrease
    below = np.cumsum(np.exp(curve.log_q[::-1]))[::-1] <= _CUT
    kept = ~(above | below)
    if not kept.any():  # hardly any finite loss at all
        return Losses(curve.loss[::-1], curve.log_p[::-1], curve.p_only, curve.q_only)
    return Losses(
        curve.loss[kept][::-1],
        curve.log_p[kept][::-1],
        curve.p_only,
        curve.q_only,
        float(np.exp(curve.log_p[above]).sum()),
        float(np.exp(curve.log_q[below]).sum()),
    )


def shared_out(listed: Losses, step: float) -> LatticeMasses:
    """Move each group to the lattice points on both sides.

    An upper bound: the two masses are unchanged.

    Parameters
    ----------
    listed : Losses
        Groups with their losses.
    step : float
        Spacing of the lattice.

    Returns
    -------
    LatticeMasses
        Masses of the lattice points.
    """
    snap = _snap(listed.loss, step)
    size = math.ceil((listed.loss[-1] - listed.loss[0]) / step - snap) + 1
    start = float(listed.loss[-1]) - (size - 1) * step
    place = (listed.loss - start) / step
    point = np.floor(place + snap)
    part = np.where(place - point <= snap, 0.0, (place - point) * step)
    upper = np.expm1(-part) / math.expm1(-step)
    # In wide cells what is left for the lower point is tiny under P, and may be nearly all under Q: no difference.
    wide = step > _WIDE
    lower = np.expm1(part - step) / math.expm1(-step) if wide else 1.0 - upper
    lost = part if wide else 0.0
    index = np.clip(point, 0, size - 1).astype(np.int64)
    points = start + step * np.arange(size)
    # Masses are added up under P where the loss is positive and under Q where it is not: the larger of the two, so that
    # what underflows is negligible under both.
    under_q = np.minimum(points, 0.0)
    above = np.minimum(index + 1, size - 1)
    low = np.bincount(index, np.exp(listed.log_p - lost - under_q[index]) * lower, size)
    high = np.bincount(above, np.exp(listed.log_p - under_q[above]) * upper, size)
    with np.errstate(divide="ignore"):
        return LatticeMasses(start, np.log(low + high) + under_q)


def merged(listed: Losses, step: float) -> LatticeMasses:
    """Merge the groups of a cell, loss lowered to a lattice point.

    A lower bound, for this order.

    Cells are centred on the lattice that ends in the largest loss, so that atoms at both ends, or all over such a
    lattice, are in the middle of theirs. For the points see `lowered`.

    Parameters
    ----------
    listed : Losses
        Groups with their losses.
    step : float
        Spacing of the lattice.

    Returns
    -------
    LatticeMasses
        Masses of the lattice points.
    """
    size = math.ceil((listed.loss[-1] - listed.loss[0]) / step - _SNAP) + 2
    start = float(listed.loss[-1]) - (size - 0.5) * step
    index = np.clip(np.floor((listed.loss - start) / step), 0, size - 1).astype(np.int64)
    mass = np.exp(listed.log_p)
    total: FloatArray = np.asarray(np.bincount(index, mass, size), dtype=np.float64)
    within = listed.loss - (start + step * index)
    used = total > 0
    offset = np.zeros(size)
    if step > _WIDE:
        # Counted from the smallest loss of the cell, so that not all of its mass under Q underflows. A group without
        # mass under P is dropped, which makes the pair harder to tell apart.
        index, mass, within = (array[mass > 0] for array in (index, mass, within))
        least = np.full(size, np.inf)
        np.minimum.at(least, index, within)
        under_q = np.bincount(index, mass * np.exp(least[index] - within), size)
        offset[used] = least[used] - np.log(under_q[used] / total[used])
    else:
        shrink = np.bincount(index, mass * np.expm1(-within), size)
        offset[used] = -np.log1p(shrink[used] / total[used])
    return lowered(total, offset, start, step, _snap(listed.loss, step) * step)


def lowered(total: FloatArray, offset: FloatArray, start: float, step: float, snap: float = 0.0) -> LatticeMasses:
    """Lower the losses of cells to lattice points.

    The points lie at the offset within the cells that costs the least; a loss that is below the point of its cell moves
    to the point below.

    Parameters
    ----------
    total : ndarray of shape (n,)
        Masses of the cells.
    offset : ndarray of shape (n,)
        By how much the loss of each cell is at least above the cell's lower end: from 0 to `step`.
    start : float
        Lower end of the first cell.
    step : float
        Width of the cells.
    snap : float
        Losses so little below a point are on it.

    Returns
    -------
    LatticeMasses
        Masses of the lattice points, the first of which is below all cells.
    """
    # A point at offset x costs (offset - x) for every cell, and a step for the cells with an offset below x.
    order = np.argsort(offset)
    below = np.concatenate([[0.0], np.cumsum(total[order])[:-1]])
    best = float(offset[order][np.argmax(offset[order] * total.sum() - step * below)])
    down = offset < best - snap
    moved = np.zeros(total.size + 1)
    moved[1:] += np.where(down, 0.0, total)
    moved[:-1] += np.where(down, total, 0.0)
    with np.errstate(divide="ignore"):
        return LatticeMasses(start - step + best, np.log(moved))


def convolved(
    parts: list[tuple[LatticeMasses, int]], step: float, *, both_tails: bool
) -> tuple[LatticeMasses, FloatArray]:
    """Distribution of the sum of independent lattice losses.

    With a bound on the errors of its masses.

    Parameters
    ----------
    parts : list of (LatticeMasses, int)
        Masses on lattices of spacing `step`, and how many independent copies of each.
    step : float
        Lattice step.
    both_tails : bool
        Whether the masses of the smallest sums are wanted as accurately as those of the largest.

    Returns
    -------
    masses : LatticeMasses
        The convolution.
    log_error : ndarray
        Log of an upper bound on the absolute error of each mass.

    Notes
    -----
    Valid because: for a tilt theta the tilted masses sum to one, and so does every one of their convolutions; an
    error e in each Fourier coefficient X_j, |X_j| <= 1, changes the product by at most ``prod (|X_j| + e)^k_j -
    prod |X_j|^k_j``, and the mean of that over frequencies bounds what the inverse transform makes of it. That the
    errors are spread evenly over the coefficients, ``e = 8 log2(n)`` roundings each, is a model: the theorem bounds
    their root mean square by less than that. For each mass the tilt with the smallest bound is taken.
    """
    size = sum(count * (masses.log_mass.size - 1) for masses, count in parts) + 1
    start = math.fsum(count * masses.start for masses, count in parts)
    length = fft.next_fast_len(size, real=True)
    error = _FFT_ERROR * math.log2(length + 1)
    position = step * np.arange(size)
    log_mass, log_error = np.full(size, -np.inf), np.full(size, np.inf)
    for theta in _tilts(parts, step, both_tails):
        log_total, spectrum = 0.0, np.ones(length // 2 + 1, dtype=np.complex128)
        high, low = np.zeros(spectrum.size), np.zeros(spectrum.size)
        for masses, count in parts:
            tilted = masses.log_mass + theta * position[: masses.log_mass.size]
            log_sum = float(np.logaddexp.reduce(tilted))
            transform = fft.rfft(np.exp(tilted - log_sum), length)
            with np.errstate(divide="ignore", under="ignore"):
                spectrum *= transform**count
                high += count * np.log(np.abs(transform) + error)
                low += count * np.log(np.abs(transform))
            log_total += count * log_sum
        noise = float(2.0 * np.sum(np.exp(high) - np.exp(low)) + error * 2.0 * np.sum(np.exp(low))) / length
        value = fft.irfft(spectrum, length)[:size]
        back = log_total - theta * position
        better = back + math.log(noise) < log_error
        with np.errstate(divide="ignore"):
            log_mass = np.where(better, np.log(np.maximum(value, 0.0)) + back, log_mass)
        log_error = np.where(better, back + math.log(noise), log_error)
    return LatticeMasses(start, log_mass), log_error


def _tilts(parts: list[tuple[LatticeMasses, int]], step: float, both_tails: bool) -> list[float]:
    """Tilts whose means are at most `_TILT_GAP` standard deviations apart, over all that is not negligible."""
    start = math.fsum(count * masses.start for masses, count in parts)
    end = step * sum(count * (masses.log_mass.size - 1) for masses, count in parts)
    used = [(np.flatnonzero(masses.log_mass > -np.inf), count) for masses, count in parts]
    first, last = (step * sum(count * int(points[place]) for points, count in used) for place in (0, -1))
    tilts = [0.0]
    for side in (1, -1) if both_tails else (1,):
        theta = 0.0
        while True:
            log_total, mean, deviation = _moments(parts, step, theta)
            room = end - mean if side > 0 else mean
            # Chernoff's bound on the mass under P beyond the mean; that under Q is e^-loss times as large.
            log_tail = log_total - theta * mean
            negligible = max(log_tail, log_tail - (start + mean)) < LEAST_LOG
            at_end = (last - mean if side > 0 else mean - first) <= _SNAP * step
            if negligible or at_end or room <= 0.5 * _TILT_GAP * deviation:
                break
            # Where nearly all is on one point a tilt may still move it to the next: e^-60 of it shows up then.
            theta += side * _TILT_GAP / max(deviation, 0.1 * step)
            tilts.append(theta)
    return tilts


def _moments(parts: list[tuple[LatticeMasses, int]], step: float, theta: float) -> tuple[float, float, float]:
    """Log of the tilted sum's total mass, and its mean, from the first lattice point, and standard deviation."""
    log_total = mean = variance = 0.0
    for masses, count in parts:
        position = step * np.arange(masses.log_mass.size)
        tilted = masses.log_mass + theta * position
        largest = float(np.max(tilted))
        weight = np.exp(tilted - largest)
        total = float(weight.sum())
        centre = float(weight @ position) / total
        log_total += count * (largest + math.log(total))
        mean += count * centre
        variance += count * float(weight @ (position - centre) ** 2) / total
    return log_total, mean, math.sqrt(variance)
