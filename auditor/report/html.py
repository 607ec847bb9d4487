"""The report as one HTML file that opens offline."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from auditor.evidence.power import LEARNED
from auditor.report import phases, plots, theorems, words
from auditor.report.columns import HTML, Column, columns_on
from auditor.report.curves import plot_growth
from auditor.report.errata import list_errata
from auditor.report.explain import explain_verdict, summarize_finding
from auditor.report.figures import build_figures, draw_legend
from auditor.report.page import create_environment, read_asset, without_indentation
from auditor.report.partition_plots import plot_cells
from auditor.report.view import RunView

if TYPE_CHECKING:
    import jinja2


def render_html(results: Mapping[str, Any] | RunView) -> str:
    """Render results as one self-contained page.

    Parameters
    ----------
    results : mapping or RunView
        Parsed content of results.json.

    Returns
    -------
    str
        The page. It refers to nothing outside itself and depends on nothing but ``results``.

    Notes
    -----
    Names, events and messages may come from a hostile target: the template escapes everything, and a content security
    policy allows no script but ours, by its hash.
    """
    run = RunView.of(results)
    columns = columns_on(HTML)
    style, script = read_asset("report.css") + _column_style(columns), read_asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = _template().render(
        run=run,
        columns=columns,
        errata=list_errata(run.results.get("errata") or [], run.claims),
        figures=build_figures(run.claims),
        diagrams=phases.select_diagrams(run.claims),
        theorems=theorems.tabulate_theorems(run),
        theorem_heads=theorems.HEADS,
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'",
    )
    return without_indentation(page)


def _column_style(columns: Sequence[Column]) -> str:
    """Rules for the table of claims: numbers on the right, and on a phone the head before each cell."""
    placed = list(enumerate(columns, 1))
    numbers = ", ".join(f":nth-child({i})" for i, column in placed if column.numeric)
    heads = "\n".join(f'  .all td:nth-child({i})::before {{ content: "{column.name}"; }}' for i, column in placed[1:])
    return (
        f".all :is(th, td):is({numbers}) {{ text-align: right; font-variant-numeric: tabular-nums; }}\n"
        f"@media screen and (max-width: 44rem) {{\n{heads}\n}}\n"
    )


@cache
def _template() -> jinja2.Template:
    made = create_environment()
    made.filters.update(
        level=words.format_level,
        share=words.format_share,
        power=_power,
        soft=add_breaks,
        prose=format_prose,
        terms=format_terms,
        command=format_command,
        place=words.format_place,
        sort_key=sort_key,
        flat=words.flatten_value,
        scalar=words.format_scalar,
    )
    made.globals.update(
        plots=plots,
        cells=plot_cells,
        curve=plot_growth,
        explain=explain_verdict,
        summarize_finding=summarize_finding,
        legend=draw_legend,
        phases=phases,
        levels=words.LEVELS,
        learned=LEARNED,
        zip=zip,
    )
    return made.from_string(read_asset("report.html"))


def add_breaks(text: str) -> Markup:
    """Let text break after slashes and commas.

    A long id would widen its column.

    Numbers such as "40,000" and "0.25" stay whole.
    """
    parts = re.split(r"(?<=[/_])(?=\w)|(?<=[,.=:])(?=[^\W\d])", text)
    return Markup("<wbr>").join(escape(part) for part in parts)


def format_prose(text: str) -> Markup:
    """Format a sentence: raise exponents, let long ids break."""
    parts = re.split(r"\b10\^(-?\d+(?:\.\d+)?)", text)
    raised = (Markup("10<sup>{}</sup>").format(part) if i % 2 else add_breaks(part) for i, part in enumerate(parts))
    return Markup("").join(raised)


def format_terms(text: str, longest: int = 20) -> Markup:
    """Format a claim, such as "ε = 1, δ = 1e-05".

    It may break between its terms only, unless they are long.

    Parameters
    ----------
    text : str
        The claim in words.
    longest : int
        Most characters of a term that may not break: 20 are what a column takes without squeezing the others.
    """
    parts = text.split(", ")
    return Markup(", ").join(
        escape(p.replace(" ", "\N{NO-BREAK SPACE}")) if len(p) <= longest else add_breaks(p) for p in parts
    )


def format_command(text: str) -> Markup:
    """Format a command, which may not break after an option's dashes."""
    options = (Markup("<i>{}</i>").format(word) if word.startswith("--") else escape(word) for word in text.split(" "))
    return Markup(" ").join(options)


def sort_key(value: float | None) -> str:
    """Format a number for sorting in JavaScript.

    Empty if there is none.
    """
    if value is None:
        return ""
    return {"inf": "Infinity", "-inf": "-Infinity"}.get(f"{value:g}", f"{value:.8g}")


def _power(log10: float | None) -> Markup:
    """An e-value with its exponent raised."""
    return format_prose(words.format_e_value(log10))
