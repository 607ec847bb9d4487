"""Parts of plots as inline SVG: axes, ticks, lines, dots.

Written by hand instead of by matplotlib: 400 claims take a second, the bytes depend on nothing but the numbers, and
colours come from the page's style sheet, so that dark mode and print work.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

from markupsafe import Markup, escape

from auditor.report import words

#: Size of all plots in their own units, which are pixels at the width of a phone.
WIDTH, HEIGHT = 360, 270
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 12, 40
#: Width of a character of a label, at most; by eye.
_CHARACTER = 6.6
#: Width of a character of a title, on average; by eye.
_NARROW = 5.8

Point = tuple[float, float]


class Axis:
    """A linear map from data to the page.

    Parameters
    ----------
    low, high : float
        Values at both ends; they differ.
    start, end : float
        Places of both ends, in pixels.
    """

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end

    def at(self, value: float) -> float:
        """Place a value."""
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)


def list_round_numbers(low: float, high: float, count: int) -> list[float]:
    """List about ``count`` round numbers in an interval.

    Parameters
    ----------
    low, high : float
        The interval; ``low`` alone is given back if it is empty.
    count : int
        How many are wanted, at least 1.

    Returns
    -------
    list of float
        Multiples of 1, 2 or 5 times a power of ten.
    """
    raw = (high - low) / count
    if not raw > 0:
        return [low]
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [float(f"{k * step:.12g}") + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]


def list_decades(low: float, high: float) -> list[float]:
    """List powers of ten in an interval.

    Other multiples of them are added if they are too few to read a scale from.

    Parameters
    ----------
    low, high : float
        The interval, above 0.
    """
    largest = min(math.ceil(math.log10(high)), sys.float_info.max_10_exp)
    exponents = range(math.floor(math.log10(low)), largest + 1)
    tens = [10.0**k for k in exponents if low <= 10.0**k <= high]
    if len(tens) >= 3:
        return tens
    for multiples in ((1, 2, 5), range(1, 10)):
        found = [m * 10.0**k for k in exponents for m in multiples if low <= m * 10.0**k <= high]
        if len(found) >= 2:
            break
    return found


def shorten_count(value: float) -> str:
    """Format a count in few characters, for example "20k" and "4,096"."""
    if value >= 1e12:
        return words.shorten_powers(f"{value:.2g}")
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            if value < 1e5 and value == round(value) and value % 100:
                return f"{value:,.0f}"
            return f"{value / unit:.3g}{name}"
    return words.shorten_powers(f"{value:.3g}")


def space_ticks(ticks: Iterable[tuple[float, str]], free: float = -math.inf) -> list[tuple[float, str]]:
    """Drop ticks whose labels would touch the one before.

    Parameters
    ----------
    ticks : iterable of (float, str)
        Place, in pixels from the left, and label of each tick, from left to right.
    free : float
        Where there is room from.
    """
    kept: list[tuple[float, str]] = []
    for x, said in ticks:
        half = _CHARACTER * len(said) / 2
        if x - half >= free:
            kept.append((x, said))
            free = x + half + _CHARACTER
    return kept


def thin_labels(decades: list[float]) -> list[float]:
    """At most eight of the labels, evenly."""
    return decades[:: max(1, math.ceil(len(decades) / 8))]


def label_decade(value: float) -> str:
    """Label a place of a logarithmic axis."""
    return shorten_count(value) if 1 <= value < 1e10 else words.format_level(value)


def label_tick(value: float) -> str:
    """Label a place of a linear axis.

    Long numbers are shortened: beside an axis there is room for six characters.
    """
    if 1e4 <= abs(value) < 1e10:
        return ("−" if value < 0 else "") + shorten_count(abs(value))
    return words.format_level(value).replace("-", "−")


def px(value: float) -> str:
    """Format a coordinate, to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def format_points(listed: Iterable[Point]) -> str:
    """Format the points of a line or polygon."""
    return " ".join(f"{px(a)},{px(b)}" for a, b in listed)


def draw_line(listed: Iterable[Point], name: str) -> str:
    """Draw an open line of a class of the style sheet.

    Parameters
    ----------
    listed : iterable of (float, float)
        Its points, in pixels.
    name : str
        The class.
    """
    return f'<polyline class="{name}" points="{format_points(listed)}"/>'


def draw_dot(x: float, y: float, title: str) -> str:
    """Draw a dot, with a tooltip.

    Parameters
    ----------
    x, y : float
        Its middle, in pixels from the left and from the top.
    title : str
        Text of the tooltip.
    """
    return f'<circle class="point" cx="{px(x)}" cy="{px(y)}" r="3.5"><title>{escape(title)}</title></circle>'


def draw_text(x: float, y: float, said: str, anchor: str, name: str = "label") -> str:
    """Draw text that starts, ends or has its middle at a point.

    Parameters
    ----------
    x, y : float
        The point, on the base line; in pixels from the left and from the top.
    said : str
        The text, which is escaped.
    anchor : str
        Which part of the text is at ``x``: "start", "middle" or "end".
    name : str
        Class of the style sheet.
    """
    return f'<text class="{name}" x="{px(x)}" y="{px(y)}" text-anchor="{anchor}">{escape(said)}</text>'


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
    grid = "".join(f"M{px(x)} {px(top)}V{px(bottom)}" for x, _ in listed)
    return f'<path class="grid" d="{grid}"/>' + "".join(
        draw_text(x, bottom + 14, s, "middle", "tick") for x, s in listed
    )


def draw_ticks_y(ticks: Iterable[tuple[float, str]]) -> str:
    """Draw horizontal grid lines with labels on the left."""
    listed = list(ticks)
    grid = "".join(f"M{LEFT} {px(y)}H{WIDTH - RIGHT}" for y, _ in listed)
    return f'<path class="grid" d="{grid}"/>' + "".join(draw_text(LEFT - 6, y + 4, s, "end", "tick") for y, s in listed)


def draw_titles(x: str, y: str) -> list[str]:
    """Draw titles of both axes.

    Parameters
    ----------
    x, y : str
        Titles of the horizontal and the vertical axis.
    """
    # A title that is longer than the axis goes down beside the lower margin rather than up into the caption.
    middle = min(max((TOP + HEIGHT - BOTTOM) / 2, _NARROW * len(y) / 2), HEIGHT / 2)
    turn = f"translate(11 {px(middle)}) rotate(-90)"
    turned = f'<text class="label" transform="{turn}" text-anchor="middle">{escape(y)}</text>'
    return [draw_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x, "middle"), turned]


def draw_picture(width: float, height: float, said: str, parts: Iterable[str]) -> Markup:
    """Draw the whole plot, with what it shows in words.

    Parameters
    ----------
    width, height : float
        Size, in pixels.
    said : str
        What the plot shows, for readers who do not see it; it is escaped.
    parts : iterable of str
        SVG elements.
    """
    label = escape(said)
    head = f'<svg viewBox="0 0 {px(width)} {px(height)}" role="img" aria-label="{label}">'
    return Markup(head + "".join(parts) + "</svg>")
