"""The report as one HTML file that opens offline."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from markupsafe import Markup, escape

from auditor.evidence.power import LEARNED
from auditor.report import phases, plots, theorems, words
from auditor.report.columns import HTML, columns_on
from auditor.report.curves import plot_growth
from auditor.report.errata import list_errata
from auditor.report.explain import explain_verdict, summarize_finding
from auditor.report.figures import build_figures, draw_legend
from auditor.report.groups import DocumentView, group_claims
from auditor.report.page import create_environment, pack_text, read_asset, without_indentation
from auditor.report.partition_plots import plot_cells
from auditor.report.view import ClaimView, RunView
from auditor.results import say_counts

if TYPE_CHECKING:
    import jinja2

#: Up to so many claims a page has all details in it, and reads the same without its script. Of more claims the details
#: are packed, and expanded when they are opened: thousands of plots take seconds to lay out.
WHOLE = 20
#: Unexpected findings that are shown in full; of more there is a list.
MOST_FINDINGS = 50
#: Claims whose details are packed together: fewer compress worse, more take longer to expand.
TOGETHER = 120

Row: TypeAlias = tuple[ClaimView, theorems.TheoremRow]


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
    columns = [column for column in columns_on(HTML) if column.name not in ("claim", "expected")]
    style = read_asset("report.css") + _card_style(".theorems", theorems.HEADS)
    style += _card_style(".errata", ["stated", "class", "what fails", "correction"])
    style += _card_style(".all", [column.name for column in columns], [column.numeric for column in columns])
    script = read_asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    documents, rows = group_claims(run), theorems.tabulate_theorems(run)
    packed = len(run.claims) > WHOLE
    page = _template("report.html").render(
        run=run,
        documents=documents,
        columns=columns,
        errata=list_errata(run.results.get("errata") or [], run.claims),
        figures=build_figures(run.claims),
        diagrams=phases.select_diagrams(run.claims),
        theorems=[_rows_of(view, rows) for view in documents],
        theorem_count=len(rows),
        packed=packed,
        together=TOGETHER,
        most=MOST_FINDINGS,
        packs=_pack_parts(run, documents, rows) if packed else {},
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'",
    )
    return without_indentation(page)


def _rows_of(view: DocumentView, rows: Sequence[Row]) -> list[Row]:
    """The rows of the table of theorems that are of one document's claims."""
    own = {claim.anchor for claim in view.claims}
    return [row for row in rows if row[0].anchor in own]


def _pack_parts(run: RunView, documents: Sequence[DocumentView], rows: Sequence[Row]) -> dict[str, str]:
    """Parts that the script expands when they are opened, by name, each packed."""
    parts: Any = _template("claim.html").module
    packs = {}
    for i, view in enumerate(documents):
        listed = _rows_of(view, rows)
        if listed:
            packs[f"theorems-{i}"] = parts.theorems_table(listed)
    for anchor, _, claims in run.caught:
        packs[anchor] = parts.caught(claims)
    claims = [claim for view in documents for claim in view.claims]
    for i in range(0, len(claims), TOGETHER):
        articles = (parts.article(claim, False) for claim in claims[i : i + TOGETHER])
        packs[f"claims-{i // TOGETHER}"] = Markup("").join(articles)
    return {name: pack_text(without_indentation(part)) for name, part in packs.items()}


def _card_style(table: str, names: Sequence[str], numeric: Sequence[bool] = ()) -> str:
    """Rules for a table: numbers on the right, and on a phone the head before each cell.

    Parameters
    ----------
    table : str
        Selector of the table; its first column has the claim.
    names : sequence of str
        Heads of the other columns.
    numeric : sequence of bool
        Which of them have numbers.
    """
    cell = f"{table} > tbody > tr > td"
    heads = "\n".join(f'  {cell}:nth-child({i})::before {{ content: "{name}"; }}' for i, name in enumerate(names, 2))
    rules = f"@media screen and (max-width: 44rem) {{\n{heads}\n}}\n"
    placed = ", ".join(f":nth-child({i})" for i, number in enumerate(numeric, 2) if number)
    if placed:
        right = "text-align: right; font-variant-numeric: tabular-nums;"
        rules += f"{table} > * > tr > :is(th, td):is({placed}) {{ {right} }}\n"
    return rules


@cache
def _template(name: str) -> jinja2.Template:
    made = create_environment()
    made.filters.update(
        level=words.format_level,
        share=words.format_share,
        power=_power,
        soft=add_breaks,
        long=break_long,
        prose=format_prose,
        terms=format_terms,
        math=format_math,
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
        say_counts=say_counts,
        legend=draw_legend,
        phases=phases,
        theorem_heads=theorems.HEADS,
        levels=words.LEVELS,
        learned=LEARNED,
        zip=zip,
    )
    return made.get_template(name)


def add_breaks(text: str) -> Markup:
    """Let text break after slashes and commas.

    A long id would widen its column.

    Numbers such as "40,000" and "0.25" stay whole.
    """
    parts = re.split(r"(?<=[/_])(?=\w)|(?<=[,.=:])(?=[^\W\d])", text)
    return Markup("<wbr>").join(escape(part) for part in parts)


def break_long(text: str) -> Markup:
    """Let words of more than 24 characters break after an underscore.

    Shorter ones fit into the column; what every word takes would be a tenth of a long page.
    """
    return Markup("/").join(add_breaks(part) if len(part) > 24 else escape(part) for part in text.split("/"))


def format_prose(text: str) -> Markup:
    """Format a sentence: numbers as they are printed, commands as code.

    Long ids may break. Messages are kept as they were recorded, where 1e+06 and inf are numbers of Python.
    """
    parts = re.split(r"\b10\^(-?\d+(?:\.\d+)?)|`([^`<>]+)`", format_numbers(text))
    made = [add_breaks(parts[0])]
    for power, code, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        made += [Markup("10<sup>{}</sup>").format(power) if power else Markup("<code>{}</code>").format(code)]
        made += [add_breaks(after)]
    return Markup("").join(made)


def format_numbers(text: str) -> str:
    """Write Python's 1e-05, 1e+06 and inf as 1e-5, 1e6 and ∞."""
    return re.sub(r"(?<== )(-?)inf\b", lambda found: "−∞" if found[1] else "∞", words.shorten_powers(text))


#: Words of formulas that are written without symbols, and what a page shows for them.
_SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "epsilon": "ε", "lambda": "λ", "mu": "μ",
    "sigma": "σ", "tau": "τ", "nu": "ν", "<=": "≤", ">=": "≥", "!=": "≠", "sqrt": "√",
}  # fmt: skip


def format_math(text: str) -> str:
    """Write the Greek letters and relations of formulas as symbols."""
    return re.sub(r"(?<![A-Za-z])([a-z]+)(?![a-z])|[<>!]=", lambda found: _SYMBOLS.get(found[0], found[0]), text)


def format_terms(text: str, longest: int = 20) -> Markup:
    """Format a claim, such as "ε = 1, δ = 1e-5".

    It may break between its terms only, unless they are long.

    Parameters
    ----------
    text : str
        The claim in words.
    longest : int
        Most characters of a term that may not break: 20 are what a column takes without squeezing the others.
    """
    parts = format_numbers(text).split(", ")
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
