"""Figures of a calibration, from the content of calibration.json, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup

from auditor.report import svg, words
from auditor.report.curves import Log
from auditor.report.figures import draw_marker
from auditor.results import parse_number

Rows = Sequence[Mapping[str, Any]]

#: Shape and colour of the two stopping rules, see `auditor.report.figures.draw_marker`.
_STOPS = {"verdict": 0, "budget": 1}
#: Size of the figure of false alarms, in pixels: names, each of two columns, between them, each row; by eye.
_NAMES, _COLUMN, _GAP, _ROW = 250, 190, 40, 24
#: What the columns show, in the content and in words.
_COUNTS = (("alarms", "false alarms"), ("above", "lower bounds above the exact level"))
#: The axis of false alarms ends at this many times alpha, unless a rate is beyond; arbitrary, most intervals fit.
_WIDEST = 4
#: Budgets among which detection is shown over the true level: the whole, and parts of it; arbitrary.
_PARTS = (1, 4, 16)
#: Marks of different curves at one place stand this far apart, in pixels; by eye.
_APART = 4.0


def group_families(power: Rows) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Group points of power by mechanism, in their order."""
    return [(name, list(rows)) for name, rows in groupby(power, key=lambda row: str(row["family"]))]


def false_alarms(content: Mapping[str, Any]) -> Markup:
    """Plot rates of false alarms and of bounds too high.

    They have intervals, beside alpha; a bound is too high above the exact level.
    """
    alpha = float(content["manifest"]["alpha"])
    lines = _lines(content)
    counts = [row[key] for _, rows in lines for row in rows for key in ("alarms", "above")]
    widest = min(1.0, max(_WIDEST * alpha, 1.2 * max(float(count["rate"]) for count in counts)))
    bottom = svg.TOP + _ROW * len(lines)
    parts = [svg.draw_text(_NAMES - 10, _row_middle(i) + 4, name, "end") for i, (name, _) in enumerate(lines)]
    for column, (key, title) in enumerate(_COUNTS):
        left = _NAMES + column * (_COLUMN + _GAP)
        across = svg.Axis(0.0, widest, left, left + _COLUMN)
        ticks = [(across.at(v), words.format_percent(v)) for v in svg.list_round_numbers(0.0, widest, 4)]
        at = svg.px(across.at(alpha))
        parts += [
            svg.draw_ticks_x(ticks, svg.TOP, bottom),
            f'<path class="claimed thin" d="M{at} {svg.px(svg.TOP)}V{svg.px(bottom)}"/>',
            svg.draw_text(left + _COLUMN / 2, bottom + 34, title, "middle"),
        ]
        for i, (name, rows) in enumerate(lines):
            for row in rows:
                parts.append(_interval(row, key, name, across, _row_middle(i)))
    said = f"false alarms and lower bounds above the exact level of {words.number_of(len(lines), 'kind')} of audits"
    return svg.draw_picture(_NAMES + 2 * _COLUMN + _GAP + svg.RIGHT, bottom + svg.BOTTOM, said, parts)


def _lines(content: Mapping[str, Any]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    together = [(f"all together, events {row['events']}", [row]) for row in content["together"]]
    by_family = groupby(content["false_alarms"], key=lambda row: (str(row["family"]), str(row["events"])))
    suffix = {"learned": "", "stated": ", event stated"}
    return together + [(name + suffix[events], list(rows)) for (name, events), rows in by_family]


def _row_middle(i: int) -> float:
    return svg.TOP + _ROW * (i + 0.5)


def _interval(row: Mapping[str, Any], key: str, name: str, across: svg.Axis, y: float) -> str:
    count, stop = row[key], row.get("stop")
    i = _STOPS.get(str(stop), 2)
    place = y + (2 * i - 1) * _APART if stop else y
    ends = (svg.px(across.at(min(float(count[end]), across.high))) for end in ("low", "high"))
    rule = f", stop at {stop}" if stop else ""
    said = f"{name}{rule}: {_count(count)}"
    limits = f'<path class="interval" d="M{next(ends)} {svg.px(place)}H{next(ends)}"/>'
    return f'<g class="curve{i}">{limits}{draw_marker(i, across.at(float(count["rate"])), place, said)}</g>'


def _count(count: Mapping[str, Any]) -> str:
    low, high = (words.format_percent(count[end]) for end in ("low", "high"))
    return f"{count['count']} of {count['of']}, between {low} and {high}"


def over_draws(name: str, rows: Rows) -> Markup:
    """Plot the probability of detection over draws.

    There is a curve for each true level, and the oracle's beside it.

    Parameters
    ----------
    name : str
        The mechanism.
    rows : sequence of mapping
        Its points of power, one for each true level.
    """
    points = rows[0]["points"]
    across = Log(points[0]["draws"], points[-1]["draws"], svg.LEFT, svg.WIDTH - svg.RIGHT)
    ticks = [(across.at(v), svg.shorten_count(v)) for v in svg.list_decades(across.least, across.most)]
    curves = []
    for i, row in enumerate(rows):
        measured = [(across.at(p["draws"]), p, f"level {row['ratio']:g}, {p['draws']:,} draws") for p in row["points"]]
        curves.append(_curve(i, measured, [(x, p["oracle"]) for x, p, _ in measured]))
    return _probabilities(f"{name}: detection over draws", ticks, "draws, both sides together", curves)


def over_levels(name: str, rows: Rows, alarms: Mapping[str, Any] | None) -> Markup:
    """Plot the probability of detection over the true level.

    There is a curve for each budget, and the oracle's beside it.

    Parameters
    ----------
    name : str
        The mechanism.
    rows : sequence of mapping
        Its points of power.
    alarms : mapping or None
        Its false alarms: the point at the claimed level.
    """
    ratios = [float(row["ratio"]) for row in rows]
    margin = 0.05 * (max(ratios) - 1.0)
    across = svg.Axis(1.0 - margin, max(ratios) + margin, svg.LEFT, svg.WIDTH - svg.RIGHT)
    ticks = [(across.at(v), f"{v:g}") for v in svg.list_round_numbers(1.0, max(ratios), 5)]
    curves = []
    for i, draws in enumerate(list_budgets(rows)):
        at = [(r, next(p for p in row["points"] if p["draws"] == draws)) for r, row in zip(ratios, rows, strict=True)]
        oracle = [(across.at(r), p["oracle"]) for r, p in at]
        measured = [(across.at(r), p, f"level {r:g}, {draws:,} draws") for r, p in at]
        if alarms is not None and i == 0:
            measured.insert(0, (across.at(1.0), alarms, f"level 1 (false alarms), {draws:,} draws"))
        curves.append(_curve(i, measured, oracle))
    return _probabilities(f"{name}: detection over the true level", ticks, "true level / claimed level", curves)


def list_budgets(rows: Rows) -> list[int]:
    """List numbers of draws that `over_levels` has curves for."""
    draws = [int(point["draws"]) for point in rows[0]["points"]]
    return [n for n in (draws[-1] // part for part in _PARTS) if n in draws]


def _curve(i: int, measured: Sequence[tuple[float, Mapping[str, Any], str]], oracle: Sequence[svg.Point]) -> str:
    up = _vertical_axis()
    aside = (i - 1.5) * _APART / 2  # so that intervals of different curves are told apart
    parts = [svg.draw_line([(x, up.at(v)) for x, v in oracle], "bounds")]
    parts.append(svg.draw_line([(x + aside, up.at(p["rate"])) for x, p, _ in measured], "joined"))
    for x, p, said in measured:
        limits = f"M{svg.px(x + aside)} {svg.px(up.at(p['high']))}V{svg.px(up.at(p['low']))}"
        full = f"{said}: {_count(p)}" + (f"; oracle {words.format_percent(p['oracle'])}" if "oracle" in p else "")
        parts.append(f'<path class="interval" d="{limits}"/>' + draw_marker(i, x + aside, up.at(p["rate"]), full))
    return f'<g class="curve{i}">{"".join(parts)}</g>'


def _vertical_axis() -> svg.Axis:
    return svg.Axis(0.0, 1.0, svg.HEIGHT - svg.BOTTOM, svg.TOP)


def _probabilities(said: str, ticks: list[tuple[float, str]], axis: str, curves: list[str]) -> Markup:
    up = _vertical_axis()
    parts = [
        svg.draw_ticks_x(ticks, svg.TOP, svg.HEIGHT - svg.BOTTOM),
        svg.draw_ticks_y([(up.at(v), f"{v:g}") for v in svg.list_round_numbers(0.0, 1.0, 5)]),
        *curves,
        *svg.draw_titles(axis, "probability of detection"),
    ]
    return svg.draw_picture(svg.WIDTH, svg.HEIGHT, said, parts)


def format_draws(value: Any, budget: int) -> str:
    """Format a quantile of draws.

    Parameters
    ----------
    value : float, str or None
        The quantile, as JSON has it; None is a dash, "inf" is beyond the budget.
    budget : int
        Most draws of an audit.
    """
    found = parse_number(value)
    return "–" if found is None else f"> {budget:,}" if found == math.inf else f"{found:,.0f}"
