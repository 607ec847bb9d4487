"""Small plots of one claim as inline SVG.

Written by hand instead of by matplotlib: 400 claims take a second, the bytes depend on nothing but the numbers, and
colours come from the page's style sheet, so that dark mode and print work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

from auditor.report import words
from auditor.report.view import ClaimView
from auditor.results import number

#: Size of all plots in their own units, which are pixels at the width of a phone.
WIDTH, HEIGHT = 360, 270
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 40
#: A level beyond so many times the claimed one is drawn as an arrow at the edge: the ceiling would squeeze the rest.
OFF_SCALE = 4.0
#: Evidence below 10^-6 is drawn at 10^-6: it says the same, and would squeeze what is near the line.
FLOOR = -6.0

Point = tuple[float, float]


def sandwich(claim: ClaimView) -> Markup:
    """Lower bound, exact, claimed and detectable level and ceiling on one axis; empty without a level."""
    keys = (
        ("lower bound", "lower_bound"),
        ("exact", "exact"),
        ("claimed", "claimed_level"),
        ("detectable", "detectable_level"),
        ("ceiling", "ceiling"),
    )
    rows = [(name, value) for name, key in keys if (value := claim.number(key)) is not None]
    if not any(name != "claimed" for name, _ in rows):
        return Markup("")
    known = dict(rows)
    base = max((v for n, v in rows if n in ("claimed", "lower bound") and 0 < v < math.inf), default=1.0)
    top = 1.08 * max([base, *(v for _, v in rows if v <= OFF_SCALE * base)])
    left, right, height = 84, 296, 26
    bottom = 8 + height * len(rows)

    def x(value: float) -> float:
        return left + (right - left) * min(max(value, 0.0), top) / top

    parts = [_ticks_x([(x(t), words.level(t)) for t in _nice(0.0, top, 4)], 8, bottom)]
    for i, (name, value) in enumerate(rows):
        y = 8 + height * (i + 0.5)
        parts.append(_text(left - 8, y + 4, name, "end"))
        parts.append(_text(right + 10, y + 4, words.level(value), "start", "value"))
        parts.append(_mark(name, x(value), y, left) if value <= top else _arrow(right, y, name))
    claimed = known.get("claimed")
    if claimed is not None and claimed <= top:
        parts.insert(1, _line([(x(claimed), 8.0), (x(claimed), float(bottom))], "claimed thin"))
    said = ", ".join(f"{name} {words.level(value)}" for name, value in rows)
    return _svg(WIDTH, bottom + 24, f"Levels of {claim.symbol}: {said}", parts)


def _mark(name: str, x: float, y: float, left: float) -> str:
    if name == "lower bound":
        return f'<rect class="bound" x="{left}" y="{_f(y - 6)}" width="{_f(max(x - left, 1.5))}" height="12" rx="2"/>'
    shape = {
        "exact": f"M{_f(x)} {_f(y - 6)}l6 6l-6 6l-6 -6z",
        "claimed": f"M{_f(x)} {_f(y - 9)}v18",
        "detectable": f"M{_f(x)} {_f(y - 5)}l6 10h-12z",
        "ceiling": f"M{_f(x)} {_f(y - 7)}v14m-5 -14h5m-5 14h5",
    }[name]
    return f'<path class="mark {name}" d="{shape}"/>'


def _arrow(x: float, y: float, name: str) -> str:
    return f'<path class="mark {name} off" d="M{_f(x - 22)} {_f(y)}h20m-6 -5l6 5l-6 5"/>'


def tradeoff(claim: ClaimView) -> Markup:
    """Claimed cap, exact curve and events found, over the diagonal; empty without a curve."""
    data = claim.raw.get("tradeoff") or {}
    grid = [number(v) for v in data.get("q") or []]
    cap = _pairs(grid, data.get("claimed"))
    if not cap:
        return Markup("")
    ticks = [(t, f"{t:g}") for t in (0.0, 0.25, 0.5, 0.75, 1.0)]
    x, y = _Axis(0.0, 1.0, LEFT, WIDTH - RIGHT), _Axis(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    curve = _screen(cap, x, y)
    refuted = [*curve, (x.at(1), y.at(1)), (x.at(0), y.at(1))]
    parts = [
        _ticks_x([(x.at(t), s) for t, s in ticks], TOP, HEIGHT - BOTTOM),
        _ticks_y([(y.at(t), s) for t, s in ticks]),
        f'<polygon class="refuted" points="{_points(refuted)}"/>',
        _line(_screen([(0.0, 0.0), (1.0, 1.0)], x, y), "diagonal"),
        _line(curve, "claimed"),
    ]
    exact = _pairs(grid, data.get("exact"))
    if exact:
        parts.append(_line(_screen(exact, x, y), "exact"))
    points = data.get("points") or []
    parts += [_dot(x.at(q), y.at(p), f"probability {q:.4g} under x′, {p:.4g} under x") for q, p in points]
    found = claim.counterexample
    if found is not None and found["n"]:
        q, p = found["y_count"] / found["n"], found["x_count"] / found["n"]
        parts.append(f'<circle class="ring" cx="{_f(x.at(q))}" cy="{_f(y.at(p))}" r="8"/>')
    parts += _titles("probability under x′ (q)", "probability under x (p)")
    said = f"Trade-off plot: claimed cap, {'exact curve, ' if exact else ''}{len(points)} events found"
    return _svg(WIDTH, HEIGHT, said, parts)


def evidence(claim: ClaimView) -> Markup:
    """Evidence over draws with the line that decides; empty without draws."""
    data = claim.raw.get("wealth") or {}
    path = [
        (float(n), float(e)) for n, e in zip(data.get("draws") or [], data.get("log10_e_value") or [], strict=False)
    ]
    threshold = claim.threshold
    if not path or threshold is None:
        return Markup("")
    finite = [e for _, e in path if math.isfinite(e)]
    low = max(FLOOR, min([0.0, *finite]))
    high = max([threshold, *finite])
    low, high = low - 0.04 * (high - low), high + 0.08 * (high - low)
    path = [(n, min(max(e, low), high)) for n, e in path]
    first, last = math.log10(path[0][0]), math.log10(path[-1][0])
    x = _Axis(first, max(last, first + 0.1), LEFT, WIDTH - RIGHT)
    y = _Axis(low, high, HEIGHT - BOTTOM, TOP)
    current = [(x.at(math.log10(n)), y.at(e)) for n, e in path]
    highest: list[Point] = []
    for a, b in current:
        best = min(b, highest[-1][1]) if highest else b
        if highest:
            highest.append((a, highest[-1][1]))
        highest.append((a, best))
    parts = [
        _ticks_x([(x.at(math.log10(n)), _short(n)) for n in _decades(path[0][0], 10**x.high)], TOP, HEIGHT - BOTTOM),
        _ticks_y([(y.at(t), words.level(t)) for t in _nice(low, high, 5)]),
        _line([(LEFT, y.at(threshold)), (WIDTH - RIGHT, y.at(threshold))], "decides"),
        _line(current, "current"),
        _line(highest, "maximum"),
        _dot(*highest[-1], f"running maximum {words.power(claim.log10_max)} after {claim.draws:,} draws"),
    ]
    parts += _titles("draws, both sides together", "log10 of the e-value")
    said = f"Evidence over {claim.draws:,} draws: running maximum {words.power(claim.log10_max)}"
    return _svg(WIDTH, HEIGHT, f"{said}, {words.power(threshold)} decides", parts)


class _Axis:
    """A linear map from data to the page."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end

    def at(self, value: float) -> float:
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)


def _pairs(grid: Sequence[float | None], values: Sequence[Any] | None) -> list[Point]:
    """Points of a curve, up to where it has reached the corner, so that a flat end costs one point."""
    listed = [(q, v) for q, v in zip(grid, (number(v) for v in values or []), strict=False)]
    return [(q, v) for q, v in listed if q is not None and v is not None and math.isfinite(q) and math.isfinite(v)]


def _screen(points: Iterable[Point], x: _Axis, y: _Axis) -> list[Point]:
    """Points on the page, without those that lie on the line between their neighbours."""
    kept: list[Point] = []
    for a, b in ((x.at(q), y.at(p)) for q, p in points):
        while len(kept) > 1:
            (a0, b0), (a1, b1) = kept[-2:]
            # Twice the triangle's area over its base is the distance; a twentieth of a pixel cannot be seen.
            base = math.hypot(a - a0, b - b0)
            if abs((a1 - a0) * (b - b0) - (a - a0) * (b1 - b0)) > 0.05 * base:
                break
            kept.pop()
        kept.append((a, b))
    return kept


def _nice(low: float, high: float, count: int) -> list[float]:
    """About ``count`` round numbers in an interval."""
    raw = (high - low) / count
    if not raw > 0:
        return [low]
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten in an interval; with other multiples of them if they are too few to read a scale from."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    tens = [10.0**k for k in exponents if low <= 10.0**k <= high]
    if len(tens) >= 3:
        return tens
    for multiples in ((1, 2, 5), range(1, 10)):
        found = [m * 10.0**k for k in exponents for m in multiples if low <= m * 10.0**k <= high]
        if len(found) >= 2:
            break
    return found


def _short(value: float) -> str:
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def _f(value: float) -> str:
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def _points(points: Iterable[Point]) -> str:
    return " ".join(f"{_f(a)},{_f(b)}" for a, b in points)


def _line(points: Iterable[Point], name: str) -> str:
    return f'<polyline class="{name}" points="{_points(points)}"/>'


def _dot(x: float, y: float, title: str) -> str:
    return f'<circle class="point" cx="{_f(x)}" cy="{_f(y)}" r="3.5"><title>{escape(title)}</title></circle>'


def _text(x: float, y: float, text: str, anchor: str, name: str = "label") -> str:
    return f'<text class="{name}" x="{_f(x)}" y="{_f(y)}" text-anchor="{anchor}">{escape(text)}</text>'


def _ticks_x(ticks: Iterable[tuple[float, str]], top: float, bottom: float) -> str:
    listed = list(ticks)
    grid = "".join(f"M{_f(x)} {_f(top)}V{_f(bottom)}" for x, _ in listed)
    return f'<path class="grid" d="{grid}"/>' + "".join(_text(x, bottom + 14, s, "middle", "tick") for x, s in listed)


def _ticks_y(ticks: Iterable[tuple[float, str]]) -> str:
    listed = list(ticks)
    grid = "".join(f"M{LEFT} {_f(y)}H{WIDTH - RIGHT}" for y, _ in listed)
    return f'<path class="grid" d="{grid}"/>' + "".join(_text(LEFT - 6, y + 4, s, "end", "tick") for y, s in listed)


def _titles(x: str, y: str) -> list[str]:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turn = f"translate(11 {_f(middle)}) rotate(-90)"
    turned = f'<text class="label" transform="{turn}" text-anchor="middle">{escape(y)}</text>'
    return [_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x, "middle"), turned]


def _svg(width: float, height: float, said: str, parts: Iterable[str]) -> Markup:
    label = escape(said)
    head = f'<svg viewBox="0 0 {_f(width)} {_f(height)}" role="img" aria-label="{label}">'
    return Markup(head + "".join(parts) + "</svg>")
