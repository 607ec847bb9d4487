"""Arbitrary trade-off curves (f-differential privacy)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from auditor.privacy.exact import LossCurve, PrivacyCurve
from auditor.privacy.guarantees.base import RARE, Array, Guarantee

#: Slack for vertices that were computed in floating point.
_ROUNDING = 1e-12
#: Units in the last place of 1 by which a vertex may be off that is a difference of numbers up to 1, as 1 - alpha is.
_ULPS = 4


@dataclass(frozen=True)
class TradeoffCurve(Guarantee):
    """f-differential privacy for any trade-off function f.

    The level is a factor t, and 1 is claimed.

    Parameters
    ----------
    alpha : tuple of float
        Type I errors, increasing from 0 to 1.
    beta : tuple of float
        Least type II error f(alpha) at each: decreasing, convex, at most 1 - alpha, 0 at alpha = 1. Between the
        points f is linear.
    name : str
        What the curve is, for reports.

    Notes
    -----
    With c(q) = 1 - f(q), the cap of level t is min(1, q + t (c(q) - q)), and the same of the mirrored point: the
    advantage p - q of any test is at most t times what f allows. A claim of f-DP under a symmetric relation implies f
    for both orders, so f is replaced by the larger of itself and its inverse (Dong, Roth and Su 2022, section 2).
    """

    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    name: str = "f"
    _lines: tuple[Array, Array] = field(init=False, repr=False, compare=False)

    notion: ClassVar[str] = "f-DP"
    symbol: ClassVar[str] = "t"
    claim_keys: ClassVar[tuple[str, ...]] = ("tradeoff",)
    level: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        try:
            x, y = np.array(self.alpha, dtype=float), np.array(self.beta, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"alpha and beta must be numbers, got {self.alpha!r} and {self.beta!r}") from None
        if x.ndim != 1 or x.shape != y.shape or len(x) < 2 or not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise ValueError(f"alpha and beta must be as many numbers, at least 2, got {self.alpha!r}, {self.beta!r}")
        if x[0] != 0 or x[-1] != 1 or not (np.diff(x) > 0).all():
            raise ValueError(f"alpha must increase from 0 to 1, got {self.alpha!r}")
        if (y < 0).any() or (y > 1 - x + _ROUNDING).any():
            raise ValueError(f"beta must be in [0, 1 - alpha], got {self.beta!r} for alpha {self.alpha!r}")
        slope = np.diff(y) / np.diff(x)
        _check_shape(x, y, slope)
        object.__setattr__(self, "alpha", tuple(x.tolist()))
        object.__setattr__(self, "beta", tuple(y.tolist()))
        # Lines p = intercept + rise q, of which the cap 1 - f is the least.
        lifted = _lift_intercepts(1.0 - y[:-1] + slope * x[:-1], -slope, x, np.maximum(1.0 - y, x))
        object.__setattr__(self, "_lines", (lifted, -slope))

    @classmethod
    def below(cls, f: Callable[[Array], Array], points: int = 200, name: str = "f") -> TradeoffCurve:
        """Piecewise linear curve below a convex trade-off function f.

        It is nowhere above f, and close to it.

        A claim of f implies a claim of the result, so no audit of it accuses what satisfies f. Between two points a
        convex function is above the chords of the two neighbouring intervals, extended. The points where these meet,
        one in each interval, are joined; the segment that passes under a point at which f was taken is under both of
        its lines. The lower convex hull of all that is the result.

        Parameters
        ----------
        f : callable
            Trade-off function, of an array of type I errors.
        points : int
            Points at which f is taken, denser at both ends.
        name : str
            What the curve is.

        Returns
        -------
        TradeoffCurve
        """
        half = np.concatenate([[0.0], np.geomspace(1e-6, 0.5, max(points // 2, 3))])
        x = np.concatenate([half, 1.0 - half[-2::-1]])
        y = np.asarray(f(x), dtype=float)
        slope = np.diff(y) / np.diff(x)
        before, after, left, right = slope[:-2], slope[2:], x[1:-2], x[2:-1]
        rise = y[1:-2] - y[2:-1] + after * right - before * left
        bend = after - before  # where f is straight the chords do not meet: any point of the interval will do
        meet = np.clip(np.divide(rise, bend, out=0.5 * (left + right), where=bend > _ROUNDING), left, right)
        low = np.minimum(y[1:-2] + before * (meet - left), y[2:-1] + after * (meet - right))
        first = y[1] - slope[1] * x[1]
        # The last chord, extended, reaches 0 before 1: a line from its end to (1, 0) would be above f.
        zero = min(1.0, x[-2] - y[-2] / slope[-2]) if slope[-2] < 0 else x[-2]
        alpha = np.concatenate([[0.0], meet, [zero, 1.0]])
        hull = _lower_hull(alpha, np.clip(np.concatenate([[first], low, [0.0, 0.0]]), 0.0, 1.0 - alpha))
        return cls(tuple(hull[:, 0].tolist()), tuple(hull[:, 1].tolist()), name)

    @classmethod
    def from_claim(cls, values: Mapping[str, str]) -> TradeoffCurve:
        """Read "tradeoff=FILE", a CSV file with columns alpha and beta."""
        path = Path(values["tradeoff"])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a file without rows, which is refused below
                table = np.genfromtxt(path, delimiter=",", names=True, dtype=float)
            return cls(tuple(table["alpha"].tolist()), tuple(table["beta"].tolist()), path.stem)
        except (OSError, ValueError, IndexError, TypeError) as error:
            why = "it is empty" if isinstance(error, IndexError) else " ".join(str(error).split())
            raise ValueError(f"{str(path)!r} is no CSV file with columns alpha and beta: {why}") from error

    def parameters(self) -> dict[str, object]:
        """The curve's name and number of points."""
        return {"curve": self.name, "points": len(self.alpha)}

    def __str__(self) -> str:
        return f"trade-off curve {self.name}"

    def cap(self, q: Array, level: Array | float) -> Array:
        """Largest p allowed at q: the least of all lines at it.

        The lines of f are scaled by the level. The mirror image of such a line p <= A + B q is 1 - q <= A + B (1 - p);
        lines that do not rise say nothing below 1.

        Parameters
        ----------
        q : ndarray
            Type I errors.
        level : ndarray or float
            Factor on the advantage; the two are broadcast.

        Returns
        -------
        ndarray
        """
        q, level = np.asarray(q, float), np.asarray(level, float)
        intercept, rise = (line.reshape(-1, *(1,) * max(q.ndim, level.ndim)) for line in self._lines)
        least = np.minimum(q + level * ((intercept + rise * q).min(axis=0) - q), 1.0)
        intercept, rise = level * intercept, 1.0 + level * (rise - 1.0)
        inverse = np.divide(1.0, rise, out=np.zeros_like(rise), where=rise > 0)
        mirrored = inverse * q
        mirrored += 1.0 - (1.0 - intercept) * inverse
        return np.asarray(np.minimum(least, mirrored.min(axis=0)))

    def level_of(self, p: Array, q: Array) -> Array:
        """Advantage p - q over the one that f allows.

        At the point or at its mirror image, whichever is larger.

        Parameters
        ----------
        p, q : ndarray
            Probabilities under the two datasets, broadcast.

        Returns
        -------
        ndarray
            Levels; infinite where none allows the point.
        """
        p, q = np.asarray(p, float), np.asarray(q, float)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = [np.where(p > q, (p - q) / self._allowed_excess(at), 0.0) for at in (q, 1.0 - p)]
        return np.asarray(np.maximum(*ratios))

    def exact_level(self, curve: PrivacyCurve) -> float:
        """Largest advantage of a test over the one that is allowed.

        Notes
        -----
        Of a finite pair: valid because both advantages are linear in q between the corners of the two curves, so that
        their ratio is monotone there and largest at a corner, or constant where both begin at 0. The exact curve is its
        own mirror image: corners with p + q <= 1 are enough, if each is held against the claim at its mirror image too.
        There nothing cancels, however small p and q are. Of other pairs see `Guarantee.event_level`: that holds tests
        with 1 - p of few digits too, so that a level above the claim by rounding alone, see `_surely_exceeds`, is the
        claimed one.
        """
        if not isinstance(curve, LossCurve):
            level = super().exact_level(curve)
            return level if level <= self.level or self._surely_exceeds(curve) else self.level
        x, y = np.array(self.alpha), np.array(self.beta)
        q = np.unique(np.concatenate([x, np.clip(curve.corners, 0.0, 1.0)]))
        q = np.unique(np.concatenate([q, np.interp(1.0 - x[::-1], curve.tradeoff(q), q)]))
        p = curve.tradeoff(q)
        q, p = q[p + q <= 1.0 + 1e-9], p[p + q <= 1.0 + 1e-9]
        with np.errstate(divide="ignore", invalid="ignore"):
            allowed = np.interp(q, x, 1.0 - y) - q, p - np.interp(p, 1.0 - x[::-1], y[::-1])
            ratios = [np.where(p > q, (p - q) / np.maximum(most, 0.0), 0.0) for most in allowed]
        return float(np.max(ratios))

    def _surely_exceeds(self, curve: PrivacyCurve) -> bool:
        """Whether some test has more than the allowed advantage, whatever rounding did.

        Valid because: tests with p + q <= 1 are held against the claim and its mirror image, as of a finite pair. There
        p and the interpolated claim are off by a few units in their own last place. A vertex of the claim other than 0
        or 1 is off by `_ULPS` units in the last place of 1, which count between vertices in proportion.
        """
        x, y = np.array(self.alpha), np.array(self.beta)
        q = np.concatenate([RARE, x, 1.0 - curve.tradeoff(1.0 - RARE)])
        p = curve.tradeoff(q)
        q, p = q[p + q <= 1.0], p[p + q <= 1.0]
        unit = _ULPS * float(np.finfo(float).eps)
        slack = np.where((y == 0.0) | (y == 1.0), 0.0, unit)
        allowed = np.interp(q, x, 1.0 - y) - q + np.interp(q, x, slack)
        mirrored = p - np.interp(p, 1.0 - x[::-1], y[::-1]) + np.interp(p, 1.0 - x[::-1], slack[::-1])
        return bool((p - q > np.minimum(allowed, mirrored) + 2.0 * unit * p).any())

    def _allowed_excess(self, q: Array) -> Array:
        """1 - f(q) - q."""
        return np.maximum(1.0 - np.interp(q, self.alpha, self.beta) - q, 0.0)


def _check_shape(x: Array, y: Array, slope: Array) -> None:
    """Refuse vertices that are not decreasing and convex, and show the one that is not.

    What is forgiven is the rounding of the vertices next to it: a slope is off by the errors of its two ends over their
    distance, so that a steep piece excuses nothing elsewhere. It is never more than `_ROUNDING` of the steepest slope.

    Raises
    ------
    ValueError
        If a slope is positive, or smaller than the one before.
    """

    def vertex(k: int) -> str:
        return f"beta {float(y[k])!r} at alpha {float(x[k])!r}"

    rising = np.flatnonzero(slope > _ROUNDING)
    if rising.size:
        k = int(rising[0])
        raise ValueError(f"beta must be decreasing in alpha, got {vertex(k)} and {vertex(k + 1)}")
    error = 2 * _ULPS * np.finfo(float).eps * (1.0 + np.abs(slope)) / np.diff(x)
    forgiven = np.minimum(error[:-1] + error[1:], _ROUNDING * np.abs(slope).max())
    bent = np.flatnonzero(np.diff(slope) < -forgiven)
    if bent.size:
        k = int(bent[0]) + 1
        raise ValueError(
            f"beta must be convex in alpha, got {vertex(k)}, where the slope falls from {slope[k - 1]:.9g} to "
            f"{slope[k]:.9g}, between {vertex(k - 1)} and {vertex(k + 1)}"
        )


def _lift_intercepts(intercept: Array, rise: Array, x: Array, cap: Array) -> Array:
    """Intercepts of the lines, raised by what is needed for none of them to be below the cap at any vertex.

    Valid because: between two vertices the cap is linear, so a line that is nowhere below it at vertices is nowhere
    below it. Rounding, also where it bends a curve that is convex, thus makes the claimed cap larger and never smaller.
    """
    return np.array([a + max(0.0, float((cap - (a + b * x)).max())) for a, b in zip(intercept, rise, strict=True)])


def _lower_hull(x: Array, y: Array) -> Array:
    """Corners of the largest convex function below the points, shape (n_corners, 2); x increases."""
    corners: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while corners and corners[-1][0] >= point[0]:  # meeting points may coincide; the first is as good
            corners.pop()
        while len(corners) > 1:
            (x0, y0), (x1, y1) = corners[-2:]
            if (y1 - y0) * (point[0] - x0) < (point[1] - y0) * (x1 - x0):
                break
            corners.pop()
        corners.append(point)
    return np.array(corners)
