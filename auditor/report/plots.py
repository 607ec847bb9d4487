"""Small plots of one claim: its levels, its scores, its trade-off curve, its evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from auditor.report import compact, svg, words
from auditor.report.svg import Point
from auditor.report.view import PHASE_DIAGRAM, ClaimView
from auditor.results import parse_number

#: A level beyond so many times the claimed one is drawn as an arrow at the edge: the ceiling would squeeze the rest.
OFF_SCALE = 4.0
#: Evidence below 10^-6 is drawn at 10^-6: it says the same, and would squeeze what is near the line.
FLOOR = -6.0
#: Events rarer than this on both sides are plotted on logarithmic axes: a twentieth of the square is 15 pixels wide.
CORNER = 0.05
#: Where logarithmic axes begin: the least positive q at which curves are given.
LEAST = 1e-4
#: Width of the strip for smaller q beside them: three dots.
STRIP = 14.0

#: Radius of the ring around the counterexample's event, which is often in a corner.
RING = 8.0

#: The line on which nothing leaks; on logarithmic axes it begins at `LEAST`.
_DIAGONAL = ((LEAST, LEAST), (1.0, 1.0))


def plot_levels(claim: ClaimView) -> Markup:
    """Plot lower bound, exact, claimed and resolved level, ceiling.

    All are on one axis; empty without a level.
    """
    if claim.conformity or claim.found.get("kind") == PHASE_DIAGRAM:
        return Markup("")  # a log-ratio beside a divergence; a count of cells
    keys = (
        ("lower bound", "lower_bound"),
        ("exact", "exact"),
        ("one event", "event_level"),
        ("claimed", "claimed_level"),
        ("resolves", "resolves"),
        ("ceiling", "ceiling"),
    )
    hidden = ("resolves", "ceiling") if claim.found_wrong else ()
    rows = [(name, value) for name, key in keys if key not in hidden and (value := claim.number(key)) is not None]
    if not any(name != "claimed" for name, _ in rows):
        return Markup("")
    known = dict(rows)
    base = max((v for n, v in rows if n in ("claimed", "lower bound") and 0 < v < math.inf), default=1.0)
    top = 1.08 * max([base, *(v for _, v in rows if v <= OFF_SCALE * base)])
    left, right, height = 84, 282, 26
    bottom = 8 + height * len(rows)

    def x(value: float) -> float:
        return left + (right - left) * min(max(value, 0.0), top) / top

    parts = [
        compact.draw_ticks_x(
            svg.space_ticks((x(t), svg.label_tick(t)) for t in svg.list_round_numbers(0.0, top, 4)), 8, bottom
        )
    ]
    claimed = known.get("claimed")
    if claimed is not None and claimed <= top:
        parts.append(compact.draw_path([(x(claimed), 8.0), (x(claimed), float(bottom))], "claimed thin"))
    for i, (name, value) in enumerate(rows):
        said = f'<text class="name">{name}</text><text class="value">{words.format_level(value)}</text>'
        parts.append(f'<g class="level{i}">{said}{_mark(name, x(value) - left, right - left, value <= top)}</g>')
    said = ", ".join(f"{name} {words.format_level(value)}" for name, value in rows)
    return svg.draw_picture(svg.WIDTH, bottom + 24, f"Levels of {claim.symbol}: {said}", parts)


def say_order(claim: ClaimView) -> str:
    """Say how shown levels are ordered if the claim is true."""
    keys = (("lower bound", "lower_bound"), ("exact", "exact"), ("claimed", "claimed_level"))
    shown = [name for name, key in keys if claim.number(key) is not None]
    return f"If the claim is true, {' ≤ '.join(shown)}." if len(shown) > 1 else ""


#: Marks of levels, about their places; the lower bound is a bar.
_MARKS = {
    "exact": "M0-6l6 6-6 6-6-6z",
    "one event": "M0-5l5 5-5 5-5-5z",
    "claimed": "M0-9v18",
    "resolves": "M0-5l6 10h-12z",
    "ceiling": "M0-7v14m-5-14h5m-5 14h5",
}


def _mark(name: str, x: float, right: float, inside: bool) -> str:
    """Mark at a place of a row that begins at 0; an arrow at its end for what is beyond."""
    if not inside:
        return compact.use_part("off", right)
    if name == "lower bound":
        return f'<path class="bound" d="M0 0h{svg.px(max(x, 1.5))}"/>'
    return compact.use_part(name.replace(" ", "_"), x)


def plot_tradeoff(claim: ClaimView) -> Markup:
    """Plot claimed cap, exact curve and events.

    They are drawn over the diagonal; empty without a curve.
    """
    data = claim.raw.get("tradeoff") or {}
    grid = [parse_number(v) for v in data.get("q") or []]
    cap = _pairs(grid, data.get("claimed"))
    if not cap:
        return Markup("")
    points = [(float(q), float(p)) for q, p in data.get("points") or []]
    found = claim.counterexample
    ring = (found["y_count"] / found["n"], found["x_count"] / found["n"]) if found and found["n"] else None
    highest = max((p for _, p in [*points, *([ring] if ring else [])]), default=1.0)
    plane = _LogarithmicPlane() if highest < CORNER else _Plane()
    exact = _pairs(grid, data.get("exact"))
    parts = [compact.use_part(plane.name), plane.refuted(cap)]
    parts += [plane.curve(cap, "claimed"), *([plane.curve(exact, "exact")] if exact else [])]
    drawn = data.get("draws") or [None] * len(points)
    parts += [svg.draw_dot(plane.x(q), plane.y(p), _rates(q, p, n)) for (q, p), n in zip(points, drawn, strict=False)]
    if ring:
        x, y = svg.px(plane.x(ring[0])), svg.px(plane.y(ring[1]))
        parts.append(f'<circle class="ring" cx="{x}" cy="{y}" r="{svg.px(RING)}"/>')
    listed = f"claimed cap, {'exact curve, ' if exact else ''}{words.number_of(len(points), 'event')} found"
    return svg.draw_picture(svg.WIDTH, svg.HEIGHT, f"Trade-off plot: {listed}{plane.said}", parts)


def _rates(q: float, p: float, n: int | None) -> str:
    if not n:
        return f"probability {q:.4g} under x′, {p:.4g} under x"
    return f"{round(q * n):,} of {n:,} draws on x′ ({q:.4g}), {round(p * n):,} on x ({p:.4g})"


def draw_definitions() -> Markup:
    """Draw definitions that plots share: axes, titles and marks."""
    parts = {plane.name: plane.axes() for plane in (_Plane(), _LogarithmicPlane())}
    parts |= {name.replace(" ", "_"): [f'<path class="mark {name}" d="{d}"/>'] for name, d in _MARKS.items()}
    parts["off"] = ['<path class="mark off" d="M-22 0h20m-6-5l6 5-6 5"/>']
    marker = '<marker id="end" refX="4" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse">'
    return compact.define_parts(parts, f'{marker}<circle class="point" cx="4" cy="4" r="3.5"/></marker>')


class _Plane:
    """The unit square of (q, p)."""

    said = ""
    name = "square"

    def __init__(self) -> None:
        self._x = svg.Axis(0.0, 1.0, svg.LEFT, svg.WIDTH - svg.RIGHT)
        self._y = svg.Axis(0.0, 1.0, svg.HEIGHT - svg.BOTTOM, svg.TOP)

    def x(self, q: float) -> float:
        return self._x.at(q)

    def y(self, p: float) -> float:
        return self._y.at(p)

    def ticks(self) -> list[str]:
        marks = [(t, f"{t:g}") for t in (0.0, 0.25, 0.5, 0.75, 1.0)]
        across = compact.draw_ticks_x([(self.x(t), s) for t, s in marks], svg.TOP, svg.HEIGHT - svg.BOTTOM)
        return [across, compact.draw_ticks_y([(self.y(t), s) for t, s in marks], RING - 2)]

    def axes(self) -> list[str]:
        """Ticks, titles, and the line on which nothing leaks."""
        diagonal = self.curve([(0.0, 0.0), *_DIAGONAL], "diagonal")
        return [*self.ticks(), compact.draw_titles("probability under x′ (q)", "probability under x (p)"), diagonal]

    def screen(self, points: Iterable[Point]) -> list[Point]:
        return compact.thin_points((self.x(q), self.y(p)) for q, p in points)

    def curve(self, points: Sequence[Point], name: str) -> str:
        return compact.draw_path(self.screen(points), name)

    def refuted(self, cap: Sequence[Point]) -> str:
        around = [*self.screen(cap), (self.x(1), self.y(1)), (self.x(0), self.y(1))]
        return compact.draw_path(around, "refuted", closed=True)


class _LogarithmicPlane(_Plane):
    """The same on logarithmic axes, with a strip on the left for events that hardly occur on x′."""

    said = ", on logarithmic axes"
    name = "corner"

    def __init__(self) -> None:
        low = math.log10(LEAST)
        self._x = svg.Axis(low, 0.0, svg.LEFT + STRIP + 14, svg.WIDTH - svg.RIGHT)
        self._y = svg.Axis(low, 0.0, svg.HEIGHT - svg.BOTTOM, svg.TOP)

    def x(self, q: float) -> float:
        return self._x.at(math.log10(q)) if q >= LEAST else svg.LEFT + STRIP / 2

    def y(self, p: float) -> float:
        return self._y.at(math.log10(max(p, LEAST)))

    def ticks(self) -> list[str]:
        marks = [(10.0**k, f"1e{k}" if k else "1") for k in range(round(math.log10(LEAST)), 1)]
        across = [(svg.LEFT + STRIP / 2, "0"), *((self.x(t), s) for t, s in marks)]
        return [
            compact.draw_ticks_x(across, svg.TOP, svg.HEIGHT - svg.BOTTOM),
            compact.draw_ticks_y([(self.y(t), s) for t, s in marks]),
        ]

    def screen(self, points: Iterable[Point]) -> list[Point]:
        return super().screen((q, p) for q, p in points if q >= LEAST)

    def curve(self, points: Sequence[Point], name: str) -> str:
        at_zero = [self.y(p) for q, p in points if q == 0]
        strip = "".join(compact.draw_path([(svg.LEFT, y), (svg.LEFT + STRIP, y)], name) for y in at_zero)
        return strip + compact.draw_path(self.screen(points), name)

    def refuted(self, cap: Sequence[Point]) -> str:
        inside = self.screen(cap)
        around = [*inside, (self.x(1), self.y(1)), *((a, self.y(1)) for a, _ in inside[:1])]
        left, right = svg.LEFT, svg.LEFT + STRIP
        strip = [
            [(left, self.y(p)), (right, self.y(p)), (right, self.y(1)), (left, self.y(1))] for q, p in cap if q == 0
        ]
        return "".join(compact.draw_path(area, "refuted", closed=True) for area in [around, *strip])


def plot_scores(claim: ClaimView) -> Markup:
    """Plot the distributions of scores of both sides.

    Empty unless the claim was audited by scores.
    """
    found = read_scores(claim)
    if not found:
        return Markup("")
    edges, sides = found
    highest = max(max(shares) for shares in sides.values())
    x = svg.Axis(edges[0], edges[-1], svg.LEFT, svg.WIDTH - svg.RIGHT)
    y = svg.Axis(0.0, 1.08 * highest, svg.HEIGHT - svg.BOTTOM, svg.TOP)
    ticks = svg.space_ticks((x.at(t), svg.label_tick(t)) for t in svg.list_round_numbers(edges[0], edges[-1], 5))
    parts = [
        compact.draw_ticks_x(ticks, svg.TOP, svg.HEIGHT - svg.BOTTOM),
        compact.draw_ticks_y([(y.at(t), svg.label_tick(t)) for t in svg.list_round_numbers(0.0, 1.08 * highest, 4)]),
    ]
    for name, style in (("outside", "current"), ("inside", "exact")):
        outline = [(x.at(edges[0]), y.at(0.0))]
        for a, b, share in zip(edges, edges[1:], sides[name], strict=False):
            outline += [(x.at(a), y.at(share)), (x.at(b), y.at(share))]
        parts.append(compact.draw_path([*outline, (x.at(edges[-1]), y.at(0.0))], style))
    parts.append(compact.draw_titles("score, beyond the ends in the outer bins", "part of the side"))
    said = f"Scores of both sides, from {words.format_level(edges[0])} to {words.format_level(edges[-1])}"
    return svg.draw_picture(svg.WIDTH, svg.HEIGHT, said, parts)


def read_scores(claim: ClaimView) -> tuple[list[float], dict[str, list[float]]] | None:
    """Read edges of bins, and each side's shares.

    None if the claim was not audited by scores.
    """
    data = (claim.raw.get("record") or {}).get("canary_scores") or {}
    edges = [float(edge) for edge in data.get("edges") or []]
    counts = {name: [int(c) for c in data.get(name) or []] for name in ("inside", "outside")}
    if (
        len(edges) < 2
        or not edges[0] < edges[-1]
        or any(len(side) != len(edges) - 1 or not sum(side) for side in counts.values())
    ):
        return None
    return edges, {name: [count / sum(side) for count in side] for name, side in counts.items()}


def plot_evidence(claim: ClaimView) -> Markup:
    """Plot evidence over draws, with the line that decides.

    Empty without draws.
    """
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
    x = svg.Axis(first, max(last, first + 0.1), svg.LEFT, svg.WIDTH - svg.RIGHT)
    y = svg.Axis(low, high, svg.HEIGHT - svg.BOTTOM, svg.TOP)
    current = [(x.at(math.log10(n)), y.at(e)) for n, e in path]
    highest: list[Point] = []
    for a, b in current:
        best = min(b, highest[-1][1]) if highest else b
        if highest:
            highest.append((a, highest[-1][1]))
        highest.append((a, best))
    counts = svg.space_ticks(
        (x.at(math.log10(n)), svg.shorten_count(n)) for n in svg.list_decades(path[0][0], 10**x.high)
    )
    parts = [
        compact.draw_ticks_x(counts, svg.TOP, svg.HEIGHT - svg.BOTTOM),
        compact.draw_ticks_y([(y.at(t), svg.label_tick(t)) for t in svg.list_round_numbers(low, high, 5)]),
        compact.draw_path([(svg.LEFT, y.at(threshold)), (svg.WIDTH - svg.RIGHT, y.at(threshold))], "decides"),
        compact.draw_path(compact.thin_points(current, 0.4), "current"),
        compact.draw_path(compact.thin_points(highest, 0.2), "maximum"),
        compact.draw_titles(_name_draws(claim), "log10 of the e-value"),
    ]
    said = f"Evidence over {claim.draws:,} draws: running maximum {words.format_e_value(claim.log10_max)}"
    return svg.draw_picture(svg.WIDTH, svg.HEIGHT, f"{said}, {words.format_e_value(threshold)} decides", parts)


def _name_draws(claim: ClaimView) -> str:
    if claim.theorem or claim.is_game:
        return "draws"  # of errors, on one dataset, or games
    return "draws, all datasets together" if claim.conformity else "draws, both sides together"


def _pairs(grid: Sequence[float | None], values: Sequence[Any] | None) -> list[Point]:
    """Points of a curve, up to where it has reached the corner, so that a flat end costs one point."""
    listed = [(q, v) for q, v in zip(grid, (parse_number(v) for v in values or []), strict=False)]
    return [(q, v) for q, v in listed if q is not None and v is not None and math.isfinite(q) and math.isfinite(v)]
