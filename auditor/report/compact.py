"""Parts of the plots of single claims, of which a page has thousands, in as few bytes as they take.

What all of them have in common, colours, anchors and the places of titles, is in the page's style sheet; axes that are
always the same are drawn once and referred to. Plots that have to stand alone are made of the parts in
`auditor.report.svg`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup, escape

from auditor.report.svg import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, Point, px
from auditor.report.words import shorten_text

#: Most characters of a vertical title; by eye, of the smallest of them.
LONGEST = 40


def draw_path(listed: Iterable[Point], name: str, *, closed: bool = False) -> str:
    """Draw a line, or with `closed` an area.

    Coordinates are to a tenth of a pixel. Every step is relative to the rounded point before it, so that roundings do
    not add up.

    Parameters
    ----------
    listed : iterable of (float, float)
        Points in pixels; at least one.
    name : str
        Class of the style sheet.
    closed : bool
        Whether the last point is joined to the first.
    """
    tenths = [(round(10 * a), round(10 * b)) for a, b in listed]
    (a, b), *rest = tenths
    parts, command = [f"M{_number(a)} {_number(b)}"], ""
    for c, d in rest:
        step = (c - a, d - b)
        a, b = c, d
        if step == (0, 0):
            continue
        letter = "v" if step[0] == 0 else "h" if step[1] == 0 else "l"
        said = _numbers([v for v, needed in zip(step, (letter != "v", letter != "h"), strict=True) if needed])
        repeated = letter == command
        parts.append((said if said.startswith("-") else f" {said}") if repeated else letter + said)
        command = letter
    return f'<path class="{name}" d="{"".join(parts)}{"z" if closed else ""}"/>'


def draw_ticks_x(ticks: Iterable[tuple[float, str]], top: float, bottom: float) -> str:
    """Draw vertical grid lines with labels below.

    Parameters
    ----------
    ticks : iterable of (float, str)
        Place, in pixels from the left, and label of each line.
    top, bottom : float
        Ends of the lines, in pixels from the top.
    """
    listed = list(ticks)
    grid = "".join(f"M{px(x)}-14v{px(top - bottom)}" for x, _ in listed)
    labels = "".join(f'<text x="{px(x)}">{escape(said)}</text>' for x, said in listed)
    usual = bottom == HEIGHT - BOTTOM
    where = 'class="across foot"' if usual else f'class="across" transform="translate(0 {px(bottom + 14)})"'
    return f'<g {where}><path d="{grid}"/>{labels}</g>'


def draw_ticks_y(ticks: Iterable[tuple[float, str]], room: float = 0.0) -> str:
    """Draw horizontal grid lines with labels on the left.

    Parameters
    ----------
    ticks : iterable of (float, str)
        Place, in pixels from the top, and label of each line.
    room : float
        Pixels that are left between axis and labels for marks on the axis, beyond the usual 6.
    """
    listed = list(ticks)
    grid = "".join(f"M6 {px(y - 4)}h{WIDTH - RIGHT - LEFT}" for y, _ in listed)
    apart = f' x="{px(-room)}"' if room else ""
    labels = "".join(f'<text{apart} y="{px(y)}">{escape(said)}</text>' for y, said in listed)
    return f'<g class="up"><path d="{grid}"/>{labels}</g>'


def draw_titles(x: str, y: str) -> str:
    """Draw titles of both axes of a plot of the usual size.

    Parameters
    ----------
    x, y : str
        Titles of the horizontal and the vertical axis. The latter is cut in its middle where it is longer than the
        plot is high: what a plot shows is in its caption as well.
    """
    return f'<text class="below">{escape(x)}</text><text class="beside">{escape(shorten_text(y, LONGEST))}</text>'


def place_parts(x: float, y: float, parts: Iterable[str], said: str = "") -> str:
    """Place parts at a point, with a tooltip.

    Parameters
    ----------
    x, y : float
        The point, in pixels from the left and from the top.
    parts : iterable of str
        SVG elements, placed relative to the point.
    said : str
        Text of the tooltip; there is none if it is empty.
    """
    title = f"<title>{escape(said)}</title>" if said else ""
    return f'<g transform="translate({px(x)} {px(y)})">{title}{"".join(parts)}</g>'


def use_part(name: str, x: float = 0.0) -> str:
    """Draw a part that the page defines once, moved to the right.

    Parameters
    ----------
    name : str
        Id of the part, see `define_parts`.
    x : float
        How far it is moved, in pixels.
    """
    return f'<use href="#{name}" x="{px(x)}"/>' if x else f'<use href="#{name}"/>'


def define_parts(parts: Mapping[str, Sequence[str]], more: str = "") -> Markup:
    """Define the parts that `use_part` refers to, by name, and others.

    Parameters
    ----------
    parts : mapping of str to sequence of str
        SVG elements of each part, by its id.
    more : str
        Further definitions, as SVG.
    """
    groups = "".join(f'<g id="{name}">{"".join(drawn)}</g>' for name, drawn in parts.items())
    return Markup(f'<svg class="hidden" aria-hidden="true"><defs>{groups}{more}</defs></svg>')


def thin_points(listed: Iterable[Point], tolerance: float = 0.05) -> list[Point]:
    """Drop points that a line passes within `tolerance` pixels.

    A twentieth of a pixel cannot be seen.

    Parameters
    ----------
    listed : iterable of (float, float)
        Points of a line, in pixels.
    tolerance : float
        Largest distance of a dropped point from the line, in pixels.

    Returns
    -------
    list of (float, float)
        Some of the points, in their order, with the first and the last.
    """
    points = list(listed)
    kept = points[:1]
    # Of the lines from the point that was kept last: a direction, how far to either side of it all points since then
    # are within the tolerance, and how long the line has to be.
    ahead, low, high, reach = 0.0, -math.inf, math.inf, 0.0
    for before, point in itertools.pairwise(points):
        turn, distance = _bearing_of(kept[-1], point, ahead)
        if distance < reach or not low <= turn <= high:
            kept.append(before)
            turn, distance = _bearing_of(before, point, ahead)
            low, high, reach = -math.inf, math.inf, 0.0
        if distance > tolerance:
            if math.isinf(low):
                ahead, turn = ahead + turn, 0.0
            room = math.asin(tolerance / distance)
            low, high = max(low, turn - room), min(high, turn + room)
        reach = max(reach, distance)
    return kept + points[1:][-1:]


def _bearing_of(a: Point, b: Point, ahead: float) -> tuple[float, float]:
    """Direction of b from a, as an angle from the one ahead, and its distance."""
    x, y = b[0] - a[0], b[1] - a[1]
    return math.remainder(math.atan2(y, x) - ahead, math.tau), math.hypot(x, y)


def _number(tenths: int) -> str:
    whole, tenth = divmod(abs(tenths), 10)
    text = f"{whole or ''}.{tenth}" if tenth else str(whole)
    return f"-{text}" if tenths < 0 else text


def _numbers(tenths: Iterable[int]) -> str:
    """Numbers with a space between them where a minus sign does not part them."""
    return " ".join(map(_number, tenths)).replace(" -", "-")
