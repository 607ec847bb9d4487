"""Results in a notebook: the card of a claim, its figure, and a table of many."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from auditor.errors import SpecificationError, has_library, require_library
from auditor.report import words
from auditor.report.view import ClaimView
from auditor.results import AuditResult, parse_number

if TYPE_CHECKING:
    import jinja2
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Members of a record that a table of results has, in this order.
COLUMNS = (
    "id",
    "verdict",
    "expected",
    "notion",
    "claimed",
    "claimed_level",
    "lower_bound",
    "reached",
    "exact",
    "resolves",
    "draws",
    "alpha",
    "event",
)
_LEVELS = ("claimed_level", "lower_bound", "reached", "exact", "resolves", "alpha")
#: Levels of a figure, each with its record's member, colour and marker; colours that the colour-blind tell apart.
_MARKS = (
    ("lower bound", "lower_bound", "#1d5875", ">"),
    ("exact", "exact", "#1f5fa8", "D"),
    ("claimed", "claimed_level", "#a4241a", "|"),
    ("resolves", "resolves", "#566170", "^"),
)
#: Name of the end of a line of evidence; a heading of a notebook may be called "end".
_END = "dpaudit-end"
#: Size of each panel of a figure, in inches.
_PANEL = (3.6, 3.0)


def view_result(result: AuditResult | Mapping[str, Any]) -> ClaimView:
    """Read a result, or its record, for people."""
    record = result.to_json() if isinstance(result, AuditResult) else result
    return ClaimView(words.clean_values(record), "claim", 1)


def render_card(result: AuditResult | Mapping[str, Any]) -> str | None:
    """Render one claim as HTML that a notebook shows.

    Parameters
    ----------
    result : AuditResult or mapping
        A result, or its record in results.json.

    Returns
    -------
    str or None
        A section with its own style, which reaches nothing outside it; it follows the reader's dark or light mode.
        None without the library that fills in templates: the notebook then shows text.
    """
    if not has_library("jinja2"):
        return None
    from markupsafe import Markup

    from auditor.report import plots
    from auditor.report.page import without_indentation

    claim = view_result(result)
    pictures = [
        (name, Markup(_inline_parts(picture)))
        for name, picture in (
            ("Levels", plots.plot_levels(claim)),
            ("Scores", plots.plot_scores(claim)),
            ("Trade-off", plots.plot_tradeoff(claim)),
            ("Evidence against the claim", plots.plot_evidence(claim)),
        )
        if picture
    ]
    return without_indentation(_template().render(claim=claim, style=Markup(_scoped_style()), pictures=pictures))


@cache
def _template() -> jinja2.Template:
    from markupsafe import Markup

    from auditor.report import plots
    from auditor.report.explain import explain_verdict
    from auditor.report.html import format_prose
    from auditor.report.page import create_environment, read_asset

    made = create_environment()
    made.filters.update(prose=format_prose)
    (marker,) = re.findall(r"<marker.*?</marker>", plots.draw_definitions())
    made.globals.update(explain=explain_verdict, marker=Markup(marker.replace('id="end"', f'id="{_END}"')))
    return made.from_string(read_asset("card.html"))


@cache
def _scoped_style() -> str:
    """The report's style for what is inside a card, by nested rules."""
    from auditor.report.page import read_asset

    style, _, _ = read_asset("report.css").partition("@media print")
    style = re.sub(r"^\s*(?:html|body) \{.*\}\n|^@media \(prefers-reduced-motion.*\n", "", style, flags=re.MULTILINE)
    style = re.sub(r"^body \{\n.*?;", "& {\n  padding: 0.5rem;", style, flags=re.MULTILINE | re.DOTALL)
    return f".dpaudit {{\n{style.replace(':root', '&').replace('url(#end)', f'url(#{_END})')}}}\n"


def _inline_parts(pictures: str) -> str:
    """Pictures with their parts in place: rules that are nested do not reach what is used by reference."""
    from auditor.report import plots

    defined = re.findall(r'<g id="(\w+)">(.*?)</g>(?=<g id="|<marker|</defs>)', plots.draw_definitions())
    parts = dict(defined)

    def put(found: re.Match[str]) -> str:
        moved = f' transform="translate({found[2]} 0)"' if found[2] else ""
        return f"<g{moved}>{parts[found[1]]}</g>"

    return re.sub(r'<use href="#(\w+)"(?: x="([^"]+)")?/>', put, pictures)


def results_to_frame(results: AuditResult | Iterable[AuditResult | Mapping[str, Any]]) -> pd.DataFrame:
    """Collect results as a DataFrame, one row a claim.

    Parameters
    ----------
    results : iterable of AuditResult or mapping
        Results, or records as the array "claims" of results.json has them; or a single result.

    Returns
    -------
    DataFrame
        With the columns `COLUMNS`. ``reached`` is the lower bound as a part of the claimed level; NaN stands for a
        level that does not apply.

    Raises
    ------
    MissingLibraryError
        If pandas is not installed.
    SpecificationError
        If something else than results is given.
    """
    require_library("pandas", "tables of results")
    import pandas as pd

    if not isinstance(results, AuditResult | Iterable):
        raise SpecificationError(f"results must be results of audits, or their records, got {results!r}")
    listed: Sequence[Any] = [results] if isinstance(results, AuditResult) else list(results)
    for result in listed:
        if not isinstance(result, AuditResult) and not (isinstance(result, Mapping) and "verdict" in result):
            raise SpecificationError(f"results must be results of audits, or their records, got {result!r}")
    records = [result.to_json() if isinstance(result, AuditResult) else result for result in listed]
    frame = pd.DataFrame([[record.get(name) for name in COLUMNS] for record in records], columns=list(COLUMNS))
    return frame.astype({**dict.fromkeys(_LEVELS, "float64"), "draws": "int64"})


def plot_result(result: AuditResult | Mapping[str, Any]) -> Figure:
    """Plot levels, scores, trade-off curve and evidence of one claim.

    Parameters
    ----------
    result : AuditResult or mapping
        A result, or its record in results.json.

    Returns
    -------
    matplotlib.figure.Figure
        With a panel for each that there is. No window is opened; ``figure.savefig("claim.png")`` writes it.

    Raises
    ------
    MissingLibraryError
        If matplotlib is not installed.
    """
    require_library("matplotlib", "plots of results")
    import matplotlib.pyplot  # noqa: F401 - it tells a notebook how to show a figure
    from matplotlib.figure import Figure

    claim = view_result(result)
    panels = [
        draw
        for draw, there in (
            (_draw_levels, not claim.conformity and _levels(claim)),
            (_draw_scores, ((claim.raw.get("record") or {}).get("canary_scores"))),
            (_draw_tradeoff, (claim.raw.get("tradeoff") or {}).get("q")),
            (_draw_evidence, (claim.raw.get("wealth") or {}).get("draws")),
        )
        if there
    ]
    width, height = _PANEL
    figure = Figure(figsize=(width * max(len(panels), 1), height + 0.4), layout="constrained")
    figure.suptitle(f"{words.shorten_text(claim.id, 70)}: {claim.said}", fontsize=10)
    for k, draw in enumerate(panels, 1):
        draw(figure.add_subplot(1, len(panels), k), claim)
    return figure


def _levels(claim: ClaimView) -> list[tuple[str, float, str, str]]:
    """Finite levels of a claim, with how they are drawn."""
    listed = [(name, claim.number(key), colour, marker) for name, key, colour, marker in _MARKS]
    return [(n, value, c, m) for n, value, c, m in listed if value is not None and math.isfinite(value)]


def _draw_levels(axes: Axes, claim: ClaimView) -> None:
    listed = _levels(claim)[::-1]
    for k, (name, value, colour, marker) in enumerate(listed):
        if name == "lower bound":
            axes.barh(k, value, height=0.3, color=colour)
        else:
            axes.plot(value, k, marker, color=colour, markersize=9, markeredgewidth=2)
        axes.annotate(f"{value:.4g}", (value, k), (8, 0), textcoords="offset points", va="center")
    axes.set(yticks=range(len(listed)), yticklabels=[name for name, *_ in listed], ylim=(-0.6, len(listed) - 0.4))
    axes.set(xlabel=claim.symbol, title="levels", xlim=(0, 1.25 * max(*(v for _, v, *_ in listed), 1e-9)))


def _draw_scores(axes: Axes, claim: ClaimView) -> None:
    data = claim.raw["record"]["canary_scores"]
    edges = [float(edge) for edge in data["edges"]]
    for name, label, colour in (("outside", "not in it", "#566170"), ("inside", "in the training data", "#1d5875")):
        counts = [int(count) for count in data[name]]
        axes.stairs([count / max(sum(counts), 1) for count in counts], edges, color=colour, label=label, linewidth=1.8)
    axes.set(xlabel="score, beyond the ends in the outer bins", ylabel="part of the side", title="scores")
    axes.legend(fontsize="x-small")


def _draw_tradeoff(axes: Axes, claim: ClaimView) -> None:
    data = claim.raw["tradeoff"]
    q = [float(v) for v in data["q"]]
    axes.plot([0, 1], [0, 1], ":", color="#566170", label="nothing leaks")
    axes.plot(q, [float(v) for v in data["claimed"]], color="#a4241a", label="claimed")
    if data.get("exact") is not None:
        axes.plot(q, [float(v) for v in data["exact"]], "--", color="#1f5fa8", label="exact")
    points = data.get("points") or []
    axes.plot([float(x) for x, _ in points], [float(y) for _, y in points], ".", color="#1d5875", label="events")
    found = claim.counterexample
    if found and found["n"]:
        rates = found["y_count"] / found["n"], found["x_count"] / found["n"]
        axes.plot(*rates, "o", markerfacecolor="none", markersize=11, color="black", label="counterexample")
    axes.set(xlabel="probability on x′", ylabel="probability on x", title="trade-off", xlim=(0, 1), ylim=(0, 1))
    axes.legend(fontsize="x-small", loc="lower right")


def _draw_evidence(axes: Axes, claim: ClaimView) -> None:
    data = claim.raw["wealth"]
    log10 = [parse_number(v) for v in data["log10_e_value"]]
    finite = [(n, v) for n, v in zip(data["draws"], log10, strict=True) if v is not None and math.isfinite(v)]
    axes.plot([n for n, _ in finite], [v for _, v in finite], ".-", color="#1d5875", label="evidence")
    if claim.threshold is not None:
        axes.axhline(claim.threshold, linestyle="--", color="#a4241a", label="decides")
    axes.set(xlabel="draws", ylabel="e-value, power of ten", title="evidence against the claim")
    axes.legend(fontsize="x-small")
