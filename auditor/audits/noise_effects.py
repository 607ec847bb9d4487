"""What the noise of a call does to its output, and what shifts of it lose together."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.events.noise_score import NoiseScore, make_noise_score
from auditor.privacy.exact.composition import composed, optimal_composition
from auditor.privacy.exact.curve_bounds import PessimisticCurve
from auditor.privacy.exact.privacy_curve import GaussianCurve, LaplaceCurve, PrivacyCurve
from auditor.privacy.guarantees import Guarantee, PureDP
from auditor.targets.replays import Bumps, DrawFacts

#: Scalar variates whose effect on the output is looked at; and of quick targets, that take no more seconds for these.
_MOST_VARIATES, _OF_QUICK, _QUICK = 60, 400, 0.2
#: Relative error up to which the output is taken to be linear in the noise, in doubles and in floats of less precision.
_LINEAR, _SINGLE = 1e-6, 1e-3
#: Scales that all variates are moved by together, in turn, to see that their effects add; arbitrary small integers.
_STEPS = ((1.0, 2.0, 2.0, 1.0, 3.0), (2.0, 1.0, 3.0, 4.0, 1.0))
#: Scales that they are moved by to see whether noise reaches a number at all: 30 of them are beyond any clamp that
#: noise of this scale passes with probability 1e-13.
_WIDE = (-1.0, 3.0, -10.0, 10.0, -30.0, 30.0)
#: Step of a variate, in scales, by which it is seen what it changes; and the singular value, of directions of length 1,
#: from which directions count as different. Arbitrary, well above rounding.
_SMALL, _READABLE = 1e-3, 1e-4
#: Parts of one composition at most that are convolved; arbitrary, a few seconds.
_MOST_PARTS = 40

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NoiseEffects:
    """What each scalar variate does to the output.

    Parameters
    ----------
    matrix : ndarray of shape (outputs, variates)
        Change of the output by change of the variate.
    draws : sequence of int
        Number of each variate's draw.
    scales : sequence of float
        Scale of each variate.
    families : sequence of str
        "laplace", "gaussian", or "whole laplace" for geometric noise.
    slack : float
        Error of the matrix, absolute.
    """

    matrix: Array
    draws: Sequence[int]
    scales: Sequence[float]
    families: Sequence[str]
    slack: float


def find_effects(run: Callable[[Bumps], Array], draws: Sequence[DrawFacts], start: Array) -> NoiseEffects | None:
    """Find what noise does to the output.

    Each variate is moved by its scale, then all of them at once.

    Parameters
    ----------
    run : callable
        Numbers of the output, given what is added to the variates.
    draws : sequence of DrawFacts
        Draws of the run.
    start : ndarray
        Numbers of its output.

    Returns
    -------
    NoiseEffects or None
        None if there are draws of another kind, too many variates, or the output is not linear in them.
    """
    if any(not d.family or d.values is None or (d.whole and d.family != "laplace") for d in draws):
        return None
    places, sizes = _list_variates(draws)
    if len(places) > _OF_QUICK:
        return None
    begun = time.monotonic()
    single = any(draw.single for draw in draws)
    columns: list[Array] = []
    for (number, place), size in zip(places, sizes, strict=True):
        effect = _measure_effect(run, start, number, place, size)
        if effect is None:
            return None
        columns.append(effect)
        if len(columns) == _MOST_VARIATES < len(places) and time.monotonic() - begun > _QUICK:
            return None
    matrix = np.array(columns).T if columns else np.zeros((start.size, 0))
    linear = _SINGLE if single else _LINEAR
    for pattern in _STEPS if columns else ():
        steps = np.array([pattern[k % len(pattern)] * size for k, size in enumerate(sizes)])
        if not _is_linear(_move_all(run, places, steps), start, matrix @ steps, steps, linear):
            return None
    largest = float(np.abs(start).max(initial=1.0)) / min((size for size in sizes if size), default=1.0)
    slack = max(1e-9, (1e-6 if single else 1e-14) * largest, _SINGLE if single else 0.0)
    scales = [scale for draw in draws for scale in draw.scales]
    families = [draw.noise for draw in draws for _ in draw.scales]
    return NoiseEffects(matrix, [number for number, _ in places], scales, families, slack)


def _measure_effect(run: Callable[[Bumps], Array], start: Array, number: int, place: int, step: float) -> Array | None:
    """Change of the output by change of one variate; None where it has another shape then, or is not finite."""
    moved = run({number: {place: step}})
    if moved.shape != start.shape or not np.isfinite(moved).all():
        return None
    return (moved - start) / step if step else moved - start


def _list_variates(draws: Sequence[DrawFacts]) -> tuple[list[tuple[int, int]], list[float]]:
    """Number and place of each variate, and its scale, which is rounded for integers."""
    places = [(number, place) for number, draw in enumerate(draws) for place in range(len(draw.values or ()))]
    sizes = [max(1.0, round(scale)) if draw.whole else scale for draw in draws for scale in draw.scales]
    return places, sizes


def _move_all(run: Callable[[Bumps], Array], places: Sequence[tuple[int, int]], steps: Array) -> Array:
    """Numbers of the output after a move of all variates."""
    bumps: dict[int, dict[int, float]] = {}
    for (number, place), step in zip(places, steps, strict=True):
        bumps.setdefault(number, {})[place] = float(step)
    return run(bumps)


def _is_linear(moved: Array, start: Array, expected: Array, steps: Array, linear: float) -> bool:
    """Whether a move of all variates does what moves of each do together."""
    if moved.shape != start.shape:
        return False
    size = linear * max(float(np.abs(steps).max()), float(np.abs(start).max(initial=0.0)) * 1e-6)
    return bool(np.allclose(expected, moved - start, rtol=linear, atol=size))


def find_reached(run: Callable[[Bumps], Array], draws: Sequence[DrawFacts], start: Array) -> NDArray[np.bool_]:
    """Numbers of the output that large noise reaches.

    A clamped number may not be reached by small noise.

    Parameters
    ----------
    run, draws, start
        See `find_effects`, which has found effects.

    Returns
    -------
    ndarray of bool
        By number; all of them if the numbers are others then.
    """
    places, sizes = _list_variates(draws)
    found = np.zeros(start.size, dtype=bool)
    for step in _WIDE if places else ():
        moved = _move_all(run, places, step * np.array(sizes))
        if moved.shape != start.shape:
            return np.ones(start.size, dtype=bool)
        found |= moved != start
    return found


def are_readable(
    run: Callable[[Bumps], Array], draws: Sequence[DrawFacts], start: Array, chosen: Sequence[int]
) -> bool:
    """Whether draws can be read off the output.

    They can, near this run, if a small change of each changes the output in a way that changes of all others together
    cannot make.

    Parameters
    ----------
    run, draws, start
        See `find_effects`.
    chosen : sequence of int
        Numbers of the draws that are asked about.
    """
    columns: list[Array] = []
    numbers: list[int] = []
    for number, draw in enumerate(draws):
        if draw.values is None or not (draw.family or draw.unit) or len(columns) + len(draw.values) > _MOST_VARIATES:
            return False
        for place, value in enumerate(draw.values):
            size = draw.scales[place] if draw.scales else max(1.0, abs(value))
            step = 1.0 if draw.whole else _SMALL * size
            effect = _measure_effect(run, start, number, place, step)
            if effect is None or not step:
                return False
            columns.append(effect)
            numbers.append(number)
    if not columns:
        return False
    matrix = np.array(columns).T
    sizes = np.linalg.norm(matrix, axis=0)
    matrix = matrix / np.where(sizes > 0, sizes, 1.0)
    others = matrix[:, [number not in chosen for number in numbers]]
    rank = np.linalg.matrix_rank(others, tol=_READABLE) if others.size else 0
    count = sum(number in chosen for number in numbers)
    return bool(np.linalg.matrix_rank(matrix, tol=_READABLE) == rank + count)


def score_noise(
    run: Callable[[Bumps], Array], x: Sequence[DrawFacts], z: Sequence[DrawFacts], shift: Array, start: Array
) -> NoiseScore | None:
    """Score outputs by the noise behind them on either dataset.

    Parameters
    ----------
    run : callable
        Numbers of the output on the first dataset, given what is added to the variates.
    x, z : sequence of DrawFacts
        Draws on the first dataset, and on the second one where the values of primitives are forced to be the same.
    shift : ndarray
        Numbers of the first output less those of the second.
    start : ndarray
        Numbers of the first output.

    Returns
    -------
    NoiseScore or None
        None if the draws differ, are too many or are no numbers, or nothing of them differs.

    Notes
    -----
    Noise of which no more is known is taken for Laplace noise of the scale that is declared. Draws that are no noise
    stay as they are in this run. What moves the output beside what noise is added to counts as a shift of the plain
    noise that moves it so.
    """
    if [(draw.primitive, list(draw.shape)) for draw in x] != [(draw.primitive, list(draw.shape)) for draw in z]:
        return None
    columns: list[Array] = []
    variates: list[tuple[float, float, float, float, bool, bool]] = []
    for number, (one, two) in enumerate(zip(x, z, strict=True)):
        if not (one.unit or one.family):
            continue
        if one.values is None or len(columns) + len(one.values) > _MOST_VARIATES:
            return None
        for place, value in enumerate(one.values):
            scale = _scale_of(one, place)
            step = max(1.0, round(scale)) if one.whole or float(value).is_integer() else _SMALL * scale
            effect = _measure_effect(run, start, number, place, step)
            if effect is None:
                return None
            columns.append(effect)
            plain = not one.unit and one.family != ""
            centres = _centre_of(one, place), _centre_of(two, place)
            variates.append((value, *centres, scale, one.family == "gaussian", plain))
    if not columns:
        return None
    table: list[Array] = [np.array(column, dtype=np.float64) for column in zip(*variates, strict=True)]
    values, on_x, on_y, scales = table[:4]
    gaussian, free = (column.astype(bool) for column in table[4:])
    effects = np.array(columns).T
    if free.any() and np.isfinite(shift).all():
        found, *_ = np.linalg.lstsq((effects * scales)[:, free], shift, rcond=1e-9)
        on_y[free] -= found * scales[free]
    if not np.any(on_x != on_y):
        return None
    return make_noise_score(start, values, effects, on_x, on_y, scales, gaussian.tolist())


def _scale_of(draw: DrawFacts, place: int) -> float:
    """Scale of a variate: its own, that which epsilon and sensitivity declare, or 1."""
    scale = draw.scales[place] if len(draw.scales) > place else 0.0
    epsilon, sensitivity = draw.parameters.get("epsilon", 0.0), draw.parameters.get("sensitivity", 0.0)
    scale = scale or (sensitivity / epsilon if epsilon > 0 and math.isfinite(epsilon) else 0.0)
    return scale if scale > 0 and math.isfinite(scale) else 1.0


def _centre_of(draw: DrawFacts, place: int) -> float:
    """What the noise of a variate was added to; 0 if nothing is known."""
    given = draw.given or [0.0]
    return given[place] if len(given) == len(draw.values or ()) else given[0] if len(given) == 1 else 0.0


def solve_shift(effects: NoiseEffects, shift: Array) -> Array | None:
    """Find the shift of the variates that shifts the output so.

    Parameters
    ----------
    effects : NoiseEffects
        What the variates do.
    shift : ndarray
        Of the output.

    Returns
    -------
    ndarray or None
        The smallest one, in scales; None if there is none.
    """
    scales = np.maximum(np.array(effects.scales), 1e-300)
    scaled = effects.matrix * scales
    found, *_ = np.linalg.lstsq(scaled, shift, rcond=1e-12)
    left = np.abs(scaled @ found - shift)
    allowed = 1e-6 * np.abs(shift).max(initial=0.0) + effects.slack * np.abs(scaled).sum(axis=1)
    return np.asarray(found * scales, dtype=np.float64) if np.all(left <= allowed) else None


def compose_level(guarantee: Guarantee, parts: Sequence[tuple[str, float]]) -> float | None:
    """Level that independent shifts of noise have together.

    Where it is not known exactly, a lower bound.

    Parameters
    ----------
    guarantee : Guarantee
        The claim.
    parts : sequence of (str, float)
        Family of the noise, with the shift in scales; or the empty text, with an epsilon that a primitive declares.

    Returns
    -------
    float or None
        None if there is no shift, or the parts are too many.
    """
    moved = [(family, ratio) for family, ratio in parts if ratio > 0]
    if not moved:
        return None
    normal = math.sqrt(sum(ratio**2 for family, ratio in moved if family == "gaussian"))
    others = [(family, ratio) for family, ratio in moved if family != "gaussian"]
    if not others:
        return guarantee.exact_level(GaussianCurve(normal))
    if isinstance(guarantee, PureDP):
        return math.inf if normal else math.fsum(ratio for _, ratio in others)
    if len(others) > _MOST_PARTS or any(family.startswith("whole") for family, _ in others):
        return None
    curves: list[PrivacyCurve] = [GaussianCurve(normal)] if normal else []
    curves += [LaplaceCurve(ratio) if family else optimal_composition(ratio, 1) for family, ratio in others]
    curve = curves[0] if len(curves) == 1 else composed(curves)
    return guarantee.exact_level(curve.optimistic if isinstance(curve, PessimisticCurve) else curve)
