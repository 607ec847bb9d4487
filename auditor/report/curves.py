"""Plot of a measured number over a parameter, with the theorem's curve and the fitted power."""

from __future__ import annotations

import math
import sys

from markupsafe import Markup

from auditor.report import compact, svg, words
from auditor.report.view import ClaimView
from auditor.results import parse_number

#: The axes reach beyond the outermost points by this part of their width.
_MARGIN = 0.06
#: Logarithms between which floats have all of their digits, so that the ends of an axis are among them.
_LEAST, _MOST = math.log(sys.float_info.min), math.log(sys.float_info.max)


def plot_growth(claim: ClaimView) -> Markup:
    """Plot measured points with limits on logarithmic axes.

    Empty for claims that have none.
    """
    found = claim.found
    points = found.get("points") or []
    if found.get("kind") != "exponent" or not points:
        return Markup("")
    x = [float(point["at"]) for point in points]
    values = {
        key: [parse_number(point[key]) for point in points] for key in ("value", "lower", "upper", "fit", "curve")
    }
    shown = [v for several in values.values() for v in several if v is not None and 0 < v < math.inf]
    across = Log(min(x), max(x), svg.LEFT, svg.WIDTH - svg.RIGHT)
    up = Log(min(shown), max(shown), svg.HEIGHT - svg.BOTTOM, svg.TOP)
    parts = [
        compact.draw_ticks_x(
            svg.space_ticks((across.at(v), svg.shorten_count(v)) for v in x), svg.TOP, svg.HEIGHT - svg.BOTTOM
        ),
        compact.draw_ticks_y(
            [(up.at(v), svg.label_decade(v)) for v in svg.thin_labels(svg.list_decades(up.least, up.most))]
        ),
    ]
    for key, name in (("curve", "claimed"), ("fit", "fit")):
        line = [(across.at(a), up.at(v)) for a, v in zip(x, values[key], strict=True) if v is not None and v > 0]
        if len(line) > 1:
            parts.append(compact.draw_path(line, name))
    name, what = str(found["parameter"]), str(found["measured"])
    for i, a in enumerate(x):
        value, low, high = (values[key][i] for key in ("value", "lower", "upper"))
        if value is None:
            continue
        top = up.at(high) if high is not None and high < math.inf else svg.TOP
        bottom = up.at(low) if low else svg.HEIGHT - svg.BOTTOM
        middle, least, most = (words.format_level(level) for level in (value, low, high))
        said = f"{name} = {words.format_level(a)}: {middle}, between {least} and {most}"
        limits = f"M{svg.px(across.at(a))} {svg.px(top)}V{svg.px(bottom)}"
        parts.append(f'<path class="mark limits" d="{limits}"/>' + svg.draw_dot(across.at(a), up.at(value), said))
    parts.append(compact.draw_titles(name, what))
    said = f"{what} over {name}: {len(points)} points, exponent {words.format_level(parse_number(found['exponent']))}"
    return svg.draw_picture(svg.WIDTH, svg.HEIGHT, said, parts)


class Log:
    """A logarithmic axis with a margin.

    Parameters
    ----------
    low, high : float
        Smallest and largest value that is shown, above 0.
    start, end : float
        Places of both ends, in pixels.
    """

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        a, b = math.log(low), math.log(high)
        margin = _MARGIN * (b - a) if b > a else 1.0
        self._axis = svg.Axis(a - margin, b + margin, start, end)
        self.least, self.most = (math.exp(min(max(end, _LEAST), _MOST)) for end in (a - margin, b + margin))

    def at(self, value: float) -> float:
        """Place a value.

        One beyond the axis, such as 0 or infinity, is at its end.
        """
        return self._axis.at(math.log(min(max(value, self.least), self.most)))
