"""Reports of a run, all rendered from the content of results.json alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.errors import has_library
from auditor.report.junit import render_junit
from auditor.report.markdown import render_markdown
from auditor.report.sarif import render_sarif
from auditor.report.table import summarize_run, summary_table
from auditor.report.view import RunView
from auditor.results import write_whole

if TYPE_CHECKING:
    from auditor.report.html import render_html

__all__ = [
    "RunView",
    "find_unrendered",
    "read_schema",
    "render_html",
    "render_junit",
    "render_markdown",
    "render_sarif",
    "summarize_run",
    "summary_table",
    "write_reports",
]


def __getattr__(name: str) -> Any:
    if name == "render_html":  # it needs an optional library
        from auditor.report.html import render_html

        return render_html
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def write_reports(results: Mapping[str, Any] | RunView, out: Path, run: Mapping[str, Any] | None = None) -> list[Path]:
    """Write report.html, report.md, junit.xml and results.sarif.

    Parameters
    ----------
    results : mapping or RunView
        Parsed content of results.json.
    out : Path
        Directory to write to; it is made if it is not there.
    run : mapping, optional
        Content of run.json (times and host), see `render_junit`. It goes into junit.xml alone, so that the other files
        are the same to the byte whenever results.json is.

    Returns
    -------
    list of Path
        What was written. Without the library that fills in templates there is no report.html.
    """
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, content in _render_all(RunView.of(results), run).items():
        write_whole(out / name, content)
        paths.append(out / name)
    return paths


def _render_all(view: RunView, run: Mapping[str, Any] | None = None) -> dict[str, str]:
    contents = {}
    if has_library("jinja2"):
        from auditor.report.html import render_html

        contents["report.html"] = render_html(view)
    return contents | {
        "report.md": render_markdown(view),
        "junit.xml": render_junit(view, run),
        "results.sarif": render_sarif(view),
    }


def find_unrendered(results: Mapping[str, Any]) -> str:
    """Find a claim that cannot be rendered.

    A file that was edited may hold numbers that no audit gives.

    Parameters
    ----------
    results : mapping
        Parsed content of results.json.

    Returns
    -------
    str
        Its id; empty if each claim can be rendered by itself.
    """

    def fails(claims: Sequence[Any]) -> bool:
        try:
            _render_all(RunView.of({**results, "claims": claims, "errata": []}))
        except Exception:  # noqa: BLE001 - whatever it raises
            return True
        return False

    left = list(results["claims"])
    while len(left) > 1:
        half = left[: len(left) // 2]
        left = half if fails(half) else left[len(half) :]
    return str(left[0]["id"]) if left and fails(left) else ""


def read_schema() -> dict[str, Any]:
    """Return the published JSON Schema (2020-12) of results.json."""
    content: dict[str, Any] = json.loads((files("auditor.report") / "schema.json").read_text(encoding="utf-8"))
    return content
