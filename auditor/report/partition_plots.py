"""Plot of a claim of conformity: stated against observed frequencies of cells, and how far they are apart."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial

from markupsafe import Markup, escape

from auditor.report import compact, svg, words
from auditor.report.view import ClaimView

#: Left and right ends of the two panels, which leave room for labels of `LABEL` characters.
FREQUENCY, DEVIATION = (124.0, 230.0), (246.0, 348.0)
LABEL = 18
#: Height of a row: a line of text.
ROW = 14.0
#: Deviations up to here are shaded: of the at most 29 cells of a distribution that is followed, one lies outside in 13
#: plots.
USUAL = 3.0
#: A decimal fraction in a label, without an exponent; not the step of a lattice, "a multiple of 0.5".
_DECIMAL = re.compile(r"(?<!of )(?<![\w.-])-?\d+\.\d+(?![\w.])")
#: An interval whose ends look the same.
_POINT = re.compile(r"(\S+)…\1")


def plot_cells(claim: ClaimView) -> Markup:
    """Plot frequencies of cells, and deviations from stated ones.

    Frequencies are on a root scale, deviations are signed; empty without cells.

    On a root scale chance moves every frequency equally far, so that rare cells can be seen beside frequent ones.
    """
    data = claim.raw.get("cells") or {}
    labels = [str(label) for label in data.get("labels") or []]
    stated = [float(p) for p in data.get("stated") or []]
    counts = [int(c) for c in data.get("counts") or []]
    n = sum(counts)
    if not n or not len(labels) == len(stated) == len(counts):
        return Markup("")
    apart = compute_deviations(counts, stated)
    names = short_labels(labels, str(data.get("view") or ""))
    bottom = 8 + ROW * len(labels)
    top = 1.04 * max(math.sqrt(v) for v in [*stated, *(c / n for c in counts)])
    far = 1.08 * max([USUAL + 1, *(abs(d) for d in apart if math.isfinite(d))])
    x, z = svg.Axis(0.0, top, *FREQUENCY), svg.Axis(-far, far, *DEVIATION)
    largest, wide = _round(top * top), z.at(USUAL) - z.at(-USUAL)
    parts = [
        compact.draw_ticks_x(
            svg.space_ticks((x.at(math.sqrt(v)), f"{v:g}") for v in (0.0, largest / 10, largest)), 8, bottom
        ),
        f'<path class="usual" d="M{svg.px(z.at(-USUAL))} 8h{svg.px(wide)}V{svg.px(bottom)}h{svg.px(-wide)}z"/>',
        compact.draw_ticks_x(
            svg.space_ticks(
                ((z.at(v), svg.label_tick(v)) for v in svg.list_round_numbers(-far, far, 6)),
                FREQUENCY[1] + 16,
            ),
            8,
            bottom,
        ),
    ]
    drawn: dict[str, list[str]] = {"observed": [], "mark claimed": [], "apart": [], "apart far": [], "mark far": []}
    for i, (label, p, count, d) in enumerate(zip(labels, stated, counts, apart, strict=True)):
        y = 8 + ROW * (i + 0.5)
        said = f"{label}: {count:,} of {n:,} draws, {count / n:.4g} of them; stated {p:.4g}, deviation {d:+.2g}"
        name = f'<text class="bin">{escape(words.shorten_text(names[i], LABEL))}</text>'
        parts.append(compact.place_parts(FREQUENCY[0], y, ['<path class="row" d="M-124 0h360"/>', name], said))
        observed = x.at(math.sqrt(count / n)) - FREQUENCY[0]
        drawn["observed"].append(f"M{svg.px(FREQUENCY[0])} {svg.px(y)}h{svg.px(observed)}")
        drawn["mark claimed"].append(f"M{svg.px(x.at(math.sqrt(p)))} {svg.px(y - 6)}v12")
        kind = "mark far" if math.isinf(d) else "apart far" if abs(d) > USUAL else "apart"
        drawn[kind].append(_bar(z, d, y))
    parts += [f'<path class="{name}" d="{"".join(bars)}"/>' for name, bars in drawn.items() if bars]
    parts.append(svg.draw_text(sum(FREQUENCY) / 2, bottom + 30, "frequency (root scale)", "middle"))
    parts.append(svg.draw_text(sum(DEVIATION) / 2, bottom + 30, "deviation", "middle"))
    worst = max(range(len(apart)), key=lambda i: abs(apart[i]))
    said = f"{len(labels)} cells, stated and observed: {labels[worst]} deviates most"
    return svg.draw_picture(svg.WIDTH, bottom + 36, said, parts)


def compute_deviations(counts: Sequence[int], stated: Sequence[float]) -> list[float]:
    """Compute signed roots of the binomial deviances of cells.

    For a distribution that is followed each is about standard normal, in cells of few expected draws as well, where a
    difference over its standard deviation would be huge at the first draw.

    Parameters
    ----------
    counts : sequence of int
        Draws in each cell, at least one altogether.
    stated : sequence of float
        Probabilities, which sum to 1 within their rounding.

    Returns
    -------
    list of float
        Positive where a cell is too full; infinite where it must be empty or hold all draws and does not.
    """
    n, total = sum(counts), math.fsum(stated)
    found = []
    for i, (count, p) in enumerate(zip(counts, stated, strict=True)):
        # Not 1 - p, which is rounded away where a cell has nearly all draws.
        rest = math.fsum([*stated[:i], *stated[i + 1 :]]) / total
        expected = n * p / total
        deviance = 2 * (_term(count, expected) + _term(n - count, n * rest))
        found.append(math.copysign(math.sqrt(max(deviance, 0.0)), count - expected))
    return found


def _term(count: int, expected: float) -> float:
    if count == 0:
        return 0.0
    return count * math.log(count / expected) if expected > 0 else math.inf


def short_labels(labels: Sequence[str], view: str) -> list[str]:
    """Shorten the labels of cells.

    What all cells are of, and decimals that tell nothing apart, are left out.

    For example "= 3", "1.2…4" and, for two elements at once, "≤ 2, = 5". Numbers keep three digits of the width of
    all, and as many as make labels, and both ends of an interval, different.

    Parameters
    ----------
    labels : sequence of str
        Labels of the cells of one partition.
    view : str
        What of an output the cells are of, as the labels name it; two are joined by "and".

    Returns
    -------
    list of str
        Short labels, in the order of ``labels``; a label of another form keeps its words.
    """
    short = [_short_label(label, view) for label in labels]
    numbers = [float(number) for label in short for number in _DECIMAL.findall(label)]
    width = max(numbers, default=0.0) - min(numbers, default=0.0)
    for digits in range(max(0, 2 - math.floor(math.log10(width))) if width > 0 else 12, 12):
        rounded = [_DECIMAL.sub(partial(_round_number, digits), label) for label in short]
        if len(set(rounded)) == len(set(short)) and not any(_POINT.fullmatch(label) for label in rounded):
            return rounded
    return short


def _round_number(digits: int, found: re.Match[str]) -> str:
    return f"{float(found[0]):.{digits}f}"


def _short_label(label: str, view: str) -> str:
    names, pieces = view.split(" and "), label.split(" and ")
    if not view or len(names) != len(pieces):
        return label
    found = [_label_without_name(name, piece) for name, piece in zip(names, pieces, strict=True)]
    return label if "" in found else ", ".join(found)


def _label_without_name(name: str, piece: str) -> str:
    between = re.fullmatch(rf"(\S+) <= {re.escape(name)} <= (\S+)", piece)
    if between:
        low, high = between.groups()
        return f"= {low}" if low == high else f"{low}…{high}"
    if not piece.startswith(f"{name} "):
        return ""
    # The step of a lattice is the same in all labels, and in the full ones that a pointer shows.
    bare = piece.removeprefix(f"{name} ").partition(", in steps of ")[0]
    return bare.replace("<=", "≤").replace(">=", "≥")


def _round(value: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most ``value``."""
    unit = 10.0 ** math.floor(math.log10(value))
    return max(m * unit for m in (0.5, 1, 2, 5) if m * unit <= value)


def _bar(z: svg.Axis, deviation: float, y: float) -> str:
    """A bar from 0 to the deviation; an arrow to the edge where it is infinite."""
    start = f"M{svg.px(z.at(0.0))} {svg.px(y)}H"
    if math.isinf(deviation):
        x, sign = (z.end - 2, -1) if deviation > 0 else (z.start + 2, 1)
        return f"{start}{svg.px(x)}m{5 * sign}-4l{-5 * sign} 4 {5 * sign} 4"
    return start + svg.px(z.at(deviation))
