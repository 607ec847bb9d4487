"""The theorems and errata of the documents, as tables, from the results of a run.

Run as ``dpaudit run experiments --level standard --out out/standard`` and then ``python -m benchmarks.theorems
out/standard/results.json [--out reports/theorems.md]``. Tables and figures are those of the run's report; the figures
go to the folder ``figures`` beside the page, one SVG file each.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import escape

from auditor.report import svg, words
from auditor.report.figures import COLOURS, FigureView, build_figures, draw_marker
from auditor.report.markdown import errata_table, theorems_table
from auditor.report.view import RunView
from auditor.runs.diff import read_results

#: Colours of curves on white, in the order of the report's.
_INK = ("#1f5fa8", "#a4241a", "#22664b", "#8a4a00", "#6d2170", "#5a5468")
#: The report's style sheet, as far as these plots need it, for a file that stands alone.
_STYLE = (
    "svg{font:11px system-ui,sans-serif;background:#fff}text{fill:#1b2430}.tick,.label{fill:#566170}"
    ".grid{stroke:#dce1e7;fill:none}polyline,.mark{fill:none;stroke-width:1.5;stroke-linejoin:round}"
    ".joined,.bounds{stroke:currentColor}.bounds{stroke-dasharray:5 4;opacity:.75}.limits{stroke:#566170}"
    ".shape{fill:currentColor}" + "".join(f".curve{i}{{color:{colour}}}" for i, colour in enumerate(_INK))
)
#: Height of a line of the key.
_LINE = 16


def picture(figure: FigureView) -> str:
    """A figure as an SVG file with its title and key."""
    drawn = str(figure.picture)
    inner = drawn[drawn.index(">") + 1 : drawn.rindex("</svg>")]
    lines = [(i % COLOURS, curve.title) for i, curve in enumerate(figure.curves)]
    key = [
        f'<g class="curve{i}">{draw_marker(i, 14, svg.HEIGHT + 12 + _LINE * row, "")}</g>'
        + svg.draw_text(26, svg.HEIGHT + 16 + _LINE * row, title, "start")
        for row, (i, title) in enumerate(lines)
    ]
    if figure.bounded:
        key.append(svg.draw_text(26, svg.HEIGHT + 16 + _LINE * len(lines), "dashed: the theorem's curve", "start"))
    height = svg.HEIGHT + 20 + _LINE * len(key)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {svg.WIDTH} {height}" width="{2 * svg.WIDTH}">'
    return f"{head}<title>{escape(figure.name)}</title><style>{_STYLE}</style>{inner}{''.join(key)}</svg>\n"


def pictures(results: Mapping[str, Any]) -> dict[str, FigureView]:
    """The figures of a run by the name of their file."""
    found = build_figures(RunView.of(results).claims)
    slugs = words.make_slugs([figure.name.lower() for figure in found])
    return {f"{slug.removeprefix('claim-')}.svg": figure for slug, figure in zip(slugs, found, strict=True)}


def document(results: Mapping[str, Any]) -> str:
    """The page for the parsed content of results.json."""
    run = RunView.of(results)
    about = run.manifest
    text = [
        "# Theorems and errata",
        "",
        f"Level {about.get('level')}, seed {about.get('seed')}, alpha {about.get('alpha')} for all claims together. "
        f"{run.sentence}",
        "",
        "Slack is a factor by which the bound exceeds what was measured. An exponent has its 95 % bootstrap interval, "
        "or, where it is computed, the range between neighbouring values; other intervals are those of the claim's "
        "share of alpha. Where the outcome says that a bound holds, the exponent is that of the bound, and what is "
        "measured may fall faster. The basis of a claim is measured (by draws), exact (an exact distribution was "
        "computed) or "
        "computed (a formula, or both sides of a statement: nothing was measured). The last column says what would "
        "have refuted the claim: growth or a factor that the limits would have told, or a broken version, such as a "
        "smaller epsilon, that was refuted when it was tried, with few draws.",
        "",
        "## Theorems",
        "",
        *theorems_table(run),
        "## Errata",
        "",
        "What is wrong in the copies of the documents that we have, as the claims show. A row needs a claim that "
        "refutes what is printed.",
        "",
        *errata_table(run),
        *_list_figures(pictures(results)),
        "Made by `dpaudit run experiments --level standard` and `python -m benchmarks.theorems`.",
        "",
    ]
    return "\n".join(text)


def _list_figures(found: Mapping[str, FigureView]) -> list[str]:
    lines = ["## Figures", ""] if found else []
    for file, figure in found.items():
        lines += [f"### {figure.name}", "", f"![{figure.name}](figures/{file})", ""]
        lines += [f"- {curve.title}: `{curve.claim.id}`" for curve in figure.curves] + [""]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; 1 if a claim of the run did not come out as expected."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.theorems", description=__doc__)
    parser.add_argument("results", type=Path, help="results.json of a run, also packed as .xz")
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    options = parser.parse_args(arguments)
    results = read_results(options.results)
    text = document(results)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
        for file, figure in pictures(results).items():
            folder = options.out.parent / "figures"
            folder.mkdir(exist_ok=True)
            (folder / file).write_text(picture(figure), encoding="utf-8")
    print(text)
    return 0 if RunView.of(results).fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
