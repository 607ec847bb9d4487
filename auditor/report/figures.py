"""Plots of several claims: what grows one way beside what grows another way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from auditor.report import svg, words
from auditor.report.curves import Log
from auditor.report.view import ClaimView
from auditor.results import parse_number

#: Curves that are told apart by colour and shape; more begin again with the first. The style sheet has as many.
COLOURS = 6


@dataclass(frozen=True)
class Curve:
    """One claim's points in a plot.

    Parameters
    ----------
    claim : ClaimView
        The claim.
    title : str
        What the curve is.
    points : tuple of (float, float, float, float)
        Place, measured number, and its limits.
    bound : tuple of (float, float)
        Places and values of the theorem's curve; empty if there is none.
    """

    claim: ClaimView
    title: str
    points: tuple[tuple[float, float, float, float], ...]
    bound: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class FigureView:
    """A plot that claims share.

    Parameters
    ----------
    name, axis, measured : str
        Titles of the plot and its axes.
    logarithmic : bool
        Whether the horizontal axis is.
    curves : tuple of Curve
        In the order of the claims.
    """

    name: str
    axis: str
    measured: str
    logarithmic: bool
    curves: tuple[Curve, ...]

    @property
    def bounded(self) -> bool:
        """Whether some curve has a theorem's beside it."""
        return any(curve.bound for curve in self.curves)

    @property
    def picture(self) -> Markup:
        """The plot."""
        places = sorted({point[0] for curve in self.curves for point in curve.points})
        values = [v for c in self.curves for p in (*c.points, *c.bound) for v in p[1:] if 0 < v < math.inf]
        across = self._horizontal_axis(places)
        up = Log(min(values), max(values), svg.HEIGHT - svg.BOTTOM, svg.TOP)
        ticks = svg.space_ticks((across.at(place), svg.shorten_count(place)) for place in places)
        parts = [
            svg.draw_ticks_x(ticks, svg.TOP, svg.HEIGHT - svg.BOTTOM),
            svg.draw_ticks_y(
                [(up.at(v), svg.label_decade(v)) for v in svg.thin_labels(svg.list_decades(up.least, up.most))]
            ),
        ]
        for i, curve in enumerate(self.curves):
            parts.append(f'<g class="curve{i % COLOURS}">')
            if len(curve.bound) > 1:
                parts.append(svg.draw_line([(across.at(x), up.at(v)) for x, v in curve.bound], "bounds"))
            parts.append(svg.draw_line([(across.at(x), up.at(v)) for x, v, _, _ in curve.points], "joined"))
            for x, value, low, high in curve.points:
                bottom = up.at(low) if low > 0 else svg.HEIGHT - svg.BOTTOM
                top = up.at(high) if high < math.inf else svg.TOP
                limits = f"M{svg.px(across.at(x))} {svg.px(top)}V{svg.px(bottom)}"
                said = f"{curve.title}, {self.axis} = {words.format_level(x)}: {words.format_level(value)}"
                if low < high:
                    said += f", between {words.format_level(low)} and {words.format_level(high)}"
                parts.append(f'<path class="mark limits" d="{limits}"/>')
                parts.append(draw_marker(i % COLOURS, across.at(x), up.at(value), said))
            parts.append("</g>")
        parts += svg.draw_titles(self.axis, self.measured)
        said = f"{self.name}: {self.measured} over {self.axis}, {words.number_of(len(self.curves), 'curve')}"
        return svg.draw_picture(svg.WIDTH, svg.HEIGHT, said, parts)

    def _horizontal_axis(self, places: Sequence[float]) -> Log | svg.Axis:
        start, end = svg.LEFT, svg.WIDTH - svg.RIGHT
        if self.logarithmic:
            return Log(places[0], places[-1], start, end)
        margin = 0.06 * (places[-1] - places[0])
        return svg.Axis(places[0] - margin, places[-1] + margin, start, end)


def build_figures(claims: Sequence[ClaimView]) -> list[FigureView]:
    """Group claims into plots, in the order of their first claims."""
    found: dict[str, list[ClaimView]] = {}
    for claim in claims:
        figure = claim.found.get("figure")
        if figure and claim.found.get("points"):
            found.setdefault(str(figure["name"]), []).append(claim)
    views = []
    for name, several in found.items():
        first = several[0].found["figure"]
        curves = tuple(map(_curve, several))
        views.append(FigureView(name, str(first["axis"]), str(first["measured"]), bool(first["logarithmic"]), curves))
    return views


def draw_legend(index: int) -> Markup:
    """Draw the mark of a curve, for a key."""
    shape = draw_marker(index % COLOURS, 8, 8, "")
    return Markup(f'<svg class="curve{index % COLOURS}" viewBox="0 0 16 16" aria-hidden="true">{shape}</svg>')


def _curve(claim: ClaimView) -> Curve:
    figure = claim.found["figure"]
    listed = zip(figure["at"], claim.found["points"], strict=True)
    points, bound = [], []
    for place, point in listed:
        value, low, high, above = (parse_number(point[key]) for key in ("value", "lower", "upper", "curve"))
        x = parse_number(place) or 0.0
        if value is not None:
            points.append((x, value, value if low is None else low, value if high is None else high))
        if above is not None:
            bound.append((x, above))
    return Curve(claim, str(figure["curve"]), tuple(points), tuple(bound))


def draw_marker(index: int, x: float, y: float, said: str) -> str:
    """Draw the marker of a curve, with a tooltip.

    Parameters
    ----------
    index : int
        Which marker: 0 to `COLOURS` - 1.
    x, y : float
        Its middle, in pixels from the left and from the top.
    said : str
        Text of the tooltip.
    """
    a, b = svg.px(x), svg.px(y)
    shape = (
        f"M{a} {b}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
        f"M{a} {b}m-3.2 -3.2h6.4v6.4h-6.4z",
        f"M{a} {b}m0 -4.2l4.2 4.2l-4.2 4.2l-4.2 -4.2z",
        f"M{a} {b}m0 -4l3.9 6.8h-7.8z",
        f"M{a} {b}m0 4l3.9 -6.8h-7.8z",
        f"M{a} {b}m-3.5 -1.2h2.3v-2.3h2.4v2.3h2.3v2.4h-2.3v2.3h-2.4v-2.3h-2.3z",
    )[index]
    title = f"<title>{escape(said)}</title>" if said else ""
    return f'<path class="shape" d="{shape}">{title}</path>'
