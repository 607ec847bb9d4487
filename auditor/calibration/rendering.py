"""A calibration as text, Markdown and HTML, all from the content of calibration.json alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from auditor.calibration import figures
from auditor.report import words
from auditor.report.figures import draw_legend
from auditor.report.page import create_environment, read_asset, without_indentation
from auditor.results import write_whole

NAMES = ("calibration.json", "calibration.md", "calibration.html")
#: How the stopping rules are told to people.
_STOPS = {"verdict": "at the verdict", "budget": "runs on"}


def write_report(content: Mapping[str, Any], out: Path) -> list[Path]:
    """Write calibration.json, calibration.md and calibration.html, each whole or not at all.

    Parameters
    ----------
    content : mapping
        What `auditor.calibration.measure.run_calibration` returns.
    out : Path
        Folder; it has to be there.
    """
    said = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    paths = []
    for name, text in zip(NAMES, (said, render_markdown(content), render_html(content)), strict=True):
        write_whole(out / name, text)
        paths.append(out / name)
    return paths


def summarize_calibration(content: Mapping[str, Any]) -> str:
    """Summarize a calibration in a sentence."""
    about = content["manifest"]
    if content["sound"]:
        return (
            f"Sound: {words.number_of(int(about['tests']), 'count')} of errors, none more than "
            f"alpha = {float(about['alpha']):g} allows."
        )
    broken = content["broken"]
    return f"UNSOUND: {broken[0]}" + (f", and {words.number_of(len(broken) - 1, 'more')}." if broken[1:] else ".")


def format_rate(count: Mapping[str, Any]) -> str:
    """Format a rate with its interval."""
    rate, low, high = (words.format_percent(count[part]) for part in ("rate", "low", "high"))
    return f"{rate} ({low} to {high})"


def format_lines(content: Mapping[str, Any]) -> list[str]:
    """Format a calibration as lines for a terminal.

    The last one is "sound", or begins with "UNSOUND".
    """
    about = content["manifest"]
    budget = int(about["draws"])
    said = [f"claims that hold exactly, at alpha = {float(about['alpha']):g}, up to {budget:,} draws"]
    for row in content["false_alarms"]:
        name = f"{row['family']}{', event stated' if row['events'] == 'stated' else ''}"
        said.append(
            f"  {name:<43} {row['claim']:<29} {_STOPS[row['stop']]:<14} "
            f"{row['alarms']['count']} of {row['alarms']['of']} flagged, "
            f"{row['above']['count']} lower bounds above the truth"
        )
    for row in content["together"]:
        name = f"all together, events {row['events']}"
        said.append(
            f"  {name:<43} {format_rate(row['alarms'])} flagged, {format_rate(row['above'])} bounds above the truth"
        )
    said.append("claims that are exceeded: found, and draws in the median beside an oracle that knows the event")
    for row in content["power"]:
        name = f"{row['family']}, {row['ratio']:g} times the claim"
        own, oracle = (figures.format_draws(row[key], budget) for key in ("median_draws", "oracle_median_draws"))
        flagged = f"{row['found']['count']} of {row['found']['of']} flagged"
        said.append(f"  {name:<57} {flagged}, {own} / {oracle} draws")
    if content["sound"]:
        return [*said, "sound"]
    return [*said, *(f"UNSOUND: {what}" for what in content["broken"])]


def render_markdown(content: Mapping[str, Any]) -> str:
    """Render the report in Markdown, without the figures."""
    about = content["manifest"]
    said = [
        "# Calibration: the auditor measured on itself",
        "",
        f"**{summarize_calibration(content)}**",
        "",
        *explain_numbers(content),
        "",
        "## False alarms at zero margin",
        "",
        "| mechanism | claim | events | stop | audits | false alarms | rate (interval) | bounds above the exact level "
        "| rate (interval) |",
        "|---|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in content["false_alarms"]:
        stop = _STOPS[row["stop"]]
        said.append(f"| {row['family']} | {row['claim']} | {row['events']} | {stop} | {_counts(row)} |")
    said += [f"| all together |  | {row['events']} | either | {_counts(row)} |" for row in content["together"]]
    said += [
        "",
        "## Detection above the claim",
        "",
        "Draws are those of both sides together; the first number is the median, the one in brackets is enough in nine "
        "audits of ten.",
        "",
        "| mechanism | claim | true level / claimed | found | rate (interval) | draws to a verdict | oracle's median "
        "| by the whole distribution |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in content["power"]:
        found, ratio = row["found"], f"{row['ratio']:g}"
        median, ninety, oracle, whole = (
            figures.format_draws(row[key], int(about["draws"]))
            for key in ("median_draws", "ninety_draws", "oracle_median_draws", "whole_law_draws")
        )
        said.append(
            f"| {row['family']} | {row['claim']} | {ratio} | {found['count']} of {found['of']} | {format_rate(found)} "
            f"| {median} ({ninety}) | {oracle} | {whole} |"
        )
    command = f"dpaudit calibrate --audits {about['audits']} --draws {about['draws']} --alpha {about['alpha']:g}"
    said += [
        "",
        f"Made by `{command} --seed {about['seed']}`; the figures are in [calibration.html](calibration.html).",
        "",
    ]
    return "\n".join(said)


def _counts(row: Mapping[str, Any]) -> str:
    alarms, above = row["alarms"], row["above"]
    return f"{alarms['of']} | {alarms['count']} | {format_rate(alarms)} | {above['count']} | {format_rate(above)}"


def explain_numbers(content: Mapping[str, Any]) -> list[str]:
    """Explain how to read the numbers, in paragraphs."""
    about = content["manifest"]
    alpha, confidence = float(about["alpha"]), float(about["confidence"])
    return [
        f"Audited at alpha = {alpha:g} with up to {int(about['draws']):,} draws, both sides together. At zero margin "
        "the exact level of a mechanism is the claimed one: every finding is false, and a lower bound above that level "
        f"is wrong. Each may happen in {words.format_percent(alpha)} of the audits. Intervals are exact (Clopper and "
        f"Pearson), at {words.format_percent(confidence)} each.",
        "",
        "An event is *learned* from past draws, as in every audit, or *stated* beforehand. An audit stops at the "
        "verdict, or runs on to its budget.",
        "",
        f"Soundness is {words.number_of(int(about['tests']), 'binomial test')}: one of them fails for an auditor that "
        f"keeps its promise with a probability of at most {float(about['unsound_by_chance']):g} in all. Few audits "
        "find only gross mistakes; the intervals say what they leave open.",
        "",
        "The *oracle* is told the best single event and both its probabilities, bets on every draw what grows fastest, "
        f"looks after each, and keeps the same promise (simulated {int(about['oracle_audits']):,} times). The auditor "
        "is told nothing; it can be faster where several events together say more than the best one, and in a lucky "
        "few draws, as what grows fastest is not what gambles most. *By the whole distribution* is ln(1/alpha) over "
        "the "
        "divergence rate of both distributions from the claim, which no auditor can beat on the average.",
    ]


def render_html(content: Mapping[str, Any]) -> str:
    """Render the report as one offline file with figures.

    It depends on nothing but ``content``.
    """
    alarms = {
        row["family"]: row["alarms"]
        for row in content["false_alarms"]
        if row["stop"] == "verdict" and row["events"] == "learned"
    }
    page = _template().render(
        content=content,
        about=content["manifest"],
        sentence=summarize_calibration(content),
        notes=[Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)) for text in explain_numbers(content) if text],
        curves=figures.group_families(content["power"]),
        alarms=alarms,
        style=Markup(read_asset("report.css")),
    )
    return without_indentation(page)


@cache
def _template() -> jinja2.Template:
    made = create_environment()
    made.filters.update(rate=format_rate, draws=figures.format_draws)
    made.globals.update(figures=figures, legend=draw_legend, stops=_STOPS)
    return made.from_string(read_asset("calibration.html"))
