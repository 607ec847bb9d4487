"""Phase diagrams: how often something succeeds over a grid of two parameters, and a theorem's lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from auditor.report import svg, words
from auditor.report.view import PHASE_DIAGRAM, ClaimView
from auditor.results import parse_number

#: Colours of the lines: none is that of a cell.
COLOURS = (2, 1, 3, 4, 5)


def describe_diagram(claim: ClaimView, found: Mapping[str, Any]) -> Iterator[str]:
    """Describe a diagram, in paragraphs.

    Parameters
    ----------
    claim : ClaimView
        A claim that has a diagram.
    found : mapping
        Its `ClaimView.found`.
    """
    told = [cell for cell in found["cells"] if cell["stated"]]
    for kind, bounded in (("promised", "≥"), ("excluded", "≤")):
        cells = [cell for cell in told if cell["stated"] == kind]
        if cells:
            successes, draws = (sum(int(cell[key]) for cell in cells) for key in ("successes", "draws"))
            bounds = sorted({parse_number(cell["bound"]) or 0.0 for cell in cells})
            listed = words.join_texts(words.format_level(bound) for bound in bounds)
            yield (
                f"For {words.number_of(len(cells), 'cell')} the claim is that the probability of success "
                f"({found['success']}) is {bounded} {listed}; {successes:,} of {draws:,} draws there succeeded."
            )
    if claim.verdict in ("consistent", "inconclusive"):
        level = words.format_level(claim.number("resolves"))
        yield f"9 of 10 audits would find a cell that breaks its statement with a probability of {level}."
    yield f"The section Figures shows the rates of success by {found['across']} and {found['up']}."


def select_diagrams(claims: Sequence[ClaimView]) -> list[ClaimView]:
    """Select the claims that have a diagram."""
    return [claim for claim in claims if claim.found.get("kind") == PHASE_DIAGRAM and claim.found.get("cells")]


def statement_row(found: Mapping[str, Any]) -> tuple[str, str, str]:
    """Build the row of the table of theorems for a diagram.

    What was measured, what is stated, and what was found.
    """
    told = [cell for cell in found["cells"] if cell["stated"]]
    kept = len(told) - int(found["broken"])
    cells = words.number_of(len(told), "cell")
    return (
        f"{found['success']}, by {found['across']} and {found['up']}",
        f"{cells} of a grid",
        f"{kept} of {cells} hold",
    )


def tabulate_cells(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Build head and rows of the table of a diagram.

    The largest value of the vertical parameter comes first.
    """
    xs, ys, cells = _grid(found)
    head = [f"{found['up']} \\ {found['across']}", *(f"{x:g}" for x in xs)]
    return head, [[f"{y:g}", *(_count_text(cells.get((x, y))) for x in xs)] for y in reversed(ys)]


def draw_diagram(found: Mapping[str, Any]) -> Markup:
    """Draw the diagram: more colour where more trials succeeded.

    Cells that a theorem is about are framed.
    """
    xs, ys, cells = _grid(found)
    width = (svg.WIDTH - svg.LEFT - svg.RIGHT) / len(xs)
    height = (svg.HEIGHT - svg.TOP - svg.BOTTOM) / len(ys)
    bottom = svg.HEIGHT - svg.BOTTOM
    parts: list[str] = []
    frames: list[str] = []
    for i, x in enumerate(xs):
        for j, y in enumerate(ys):
            cell = cells.get((x, y))
            if cell is None:
                continue
            rate = int(cell["successes"]) / max(int(cell["draws"]), 1)
            said = f"{found['across']} = {x:g}, {found['up']} = {y:g}: {_count_text(cell)} succeed"
            if cell["stated"]:
                said += f"; {cell['stated']}: {words.format_level(parse_number(cell['bound']))}"
            left, top = svg.LEFT + i * width, bottom - (j + 1) * height
            parts.append(
                f'<rect class="cell" {_box(left, top, width, height, 0.5)} fill-opacity="{rate:.2f}">'
                f"<title>{escape(said)}</title></rect>"
            )
            if cell["stated"]:
                inside = _box(left, top, width, height, 3.0)
                frames.append(f'<rect class="halo" {inside}/><rect class="framed {cell["stated"]}" {inside}/>')
    parts += frames
    for i, line in enumerate(found.get("lines") or []):
        placed = [
            (svg.LEFT + (k + 0.5) * width, bottom - (_axis_position(ys, value) + 0.5) * height)
            for k, value in enumerate(parse_number(point[1]) for point in line["points"])
            if value is not None and -0.5 <= _axis_position(ys, value) <= len(ys) - 0.5
        ]
        if len(placed) > 1:
            parts.append(f'<g class="curve{COLOURS[i % len(COLOURS)]}"><title>{escape(line["title"])}</title>')
            parts.append(svg.draw_line(placed, "halo") + svg.draw_line(placed, f"joined line{i % 4}") + "</g>")
    parts += _labels(xs, ys, width, height)
    parts += svg.draw_titles(str(found["across"]), str(found["up"]))
    said = f"{found['success']}: rate over {found['across']} and {found['up']}, {len(cells)} cells"
    return svg.draw_picture(svg.WIDTH, svg.HEIGHT, said, parts)


def draw_key(index: int) -> Markup:
    """Draw a sample of a line, for a key."""
    line = svg.draw_line([(0.0, 8.0), (28.0, 8.0)], f"joined line{index % 4}")
    return Markup(
        f'<svg class="wide curve{COLOURS[index % len(COLOURS)]}" viewBox="0 0 28 16" aria-hidden="true">{line}</svg>'
    )


def draw_frame(stated: str) -> Markup:
    """Draw a sample of a frame, for a key."""
    frame = f'<rect class="framed {escape(stated)}" {_box(0, 0, 16, 16, 1)}/>'
    return Markup(f'<svg viewBox="0 0 16 16" aria-hidden="true">{frame}</svg>')


def _box(left: float, top: float, width: float, height: float, margin: float) -> str:
    inside = (left + margin, top + margin, width - 2 * margin, height - 2 * margin)
    return " ".join(f'{name}="{svg.px(v)}"' for name, v in zip(("x", "y", "width", "height"), inside, strict=True))


def _labels(xs: Sequence[float], ys: Sequence[float], width: float, height: float) -> Iterator[str]:
    for at, said in svg.space_ticks((svg.LEFT + (i + 0.5) * width, svg.shorten_count(x)) for i, x in enumerate(xs)):
        yield svg.draw_text(at, svg.HEIGHT - svg.BOTTOM + 14, said, "middle", "tick")
    for j, y in enumerate(ys):
        at = svg.HEIGHT - svg.BOTTOM - (j + 0.5) * height
        yield svg.draw_text(svg.LEFT - 6, at + 4, svg.shorten_count(y), "end", "tick")


def _axis_position(values: Sequence[float], value: float) -> float:
    """Place of a value among the indices of increasing values, on logarithms between and beyond them."""
    if value <= 0:
        return -math.inf
    k = min(max(sum(one <= value for one in values) - 1, 0), len(values) - 2)
    a, b = math.log(values[k]), math.log(values[k + 1])
    return k + (math.log(value) - a) / (b - a)


def _grid(
    found: Mapping[str, Any],
) -> tuple[list[float], list[float], dict[tuple[float, float], Mapping[str, Any]]]:
    cells = {(float(cell["x"]), float(cell["y"])): cell for cell in found["cells"]}
    return sorted({x for x, _ in cells}), sorted({y for _, y in cells}), cells


def _count_text(cell: Mapping[str, Any] | None) -> str:
    return "" if cell is None else f"{int(cell['successes']):,} of {int(cell['draws']):,}"
