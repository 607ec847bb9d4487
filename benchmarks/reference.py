"""The page of commands, options and public names, generated from the code."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from auditor.audits.adversaries.named import BY_NAME, parameters_of
from auditor.cli.examples import EXAMPLES
from auditor.cli.main import cli
from auditor.privacy.guarantees.base import NOTIONS
from auditor.report.results_schema import describe_fields
from auditor.results import AuditResult

_HEAD = """\
# Reference

Commands with their options, and public names in Python. This page is made from the code by
`python -m benchmarks.reference --out docs/reference.md`, and a test holds it against the code."""

_COMMANDS = """\
Every command has `--help`. Progress and notices go to standard error, results to standard output. Exit codes are those
of [reading a report](reading-a-report.md#exit-codes) unless the command says otherwise."""

_NOTIONS = """\
What `--claim` takes, as `name=value, name=value`, and the class in Python."""

_ADVERSARIES = """\
What `dpaudit attack --adversary NAME:key=value,key=value` takes, with the defaults; `unit=means` besides, for targets
that release means."""

_RESULTS = """\
What the members of a claim in results.json mean; those that do not apply are null, empty or absent. The schema with all
of them is [auditor/report/schema.json](../auditor/report/schema.json)."""

_ENVIRONMENT = """\
| variable | says |
|---|---|
| `DPAUDIT_CACHE` | folder for environments and indexes of claims (default: `dpaudit` in the user's cache folder) |
| `DPAUDIT_NO_INDEX` | if set, every command loads all claims, and keeps no index of them |
| `DPAUDIT_AUTHORIZATION` | sent to audited services as the header `Authorization`, and nowhere else |
| `DPAUDIT_TRACEBACK` | if set, a fault of dpaudit itself shows its traceback |"""

_PYTHON = """\
`help(auditor.audit)` and so on have parameters, errors and sources. What these modules have besides is for dpaudit
itself."""

#: Modules whose ``__all__``, or what they take over from others, is public beside `auditor`'s own names.
MODULES = {
    "auditor.training": "audits of training: canaries of one run, many runs, every step of one run",
    "auditor.claims": "what claim files import: entries, claims, errata",
    "auditor.targets.mutants": "wrong twins of a mechanism, which `broken` declares",
    "auditor.audits.accuracy": "accuracy claims and measures of error",
    "auditor.privacy.exact": "exact distributions and privacy curves",
    "auditor.privacy.laws": "distributions that a mechanism may state, for conformity",
    "auditor.targets.analysts": "who asks an interactive mechanism",
    "auditor.targets.transcripts": "a mechanism and an analyst together",
    "auditor.audits.adversaries": "attacks that make up the data",
}


def document() -> str:
    """The page in Markdown."""
    lines = [_HEAD, "", "## Commands", "", _COMMANDS, ""]
    for name, command in sorted(cli.commands.items()):
        lines += [f"### dpaudit {name}", "", *_command(name, command), ""]
        if isinstance(command, click.Group):
            for part, subcommand in sorted(command.commands.items()):
                lines += [f"#### dpaudit {name} {part}", "", *_command(f"{name} {part}", subcommand), ""]
    lines += ["## Claims", "", _NOTIONS, "", *_notions(), ""]
    lines += ["## Adversaries", "", _ADVERSARIES, "", *_adversaries(), ""]
    lines += ["## Results", "", _RESULTS, "", *_members(), ""]
    lines += ["## Environment", "", _ENVIRONMENT, "", "## Python", "", _PYTHON, ""]
    lines += ["### auditor", "", *_names("auditor"), ""]
    for module, what in MODULES.items():
        lines += [f"### {module}", "", f"{what[0].upper()}{what[1:]}.", "", *_names(module), ""]
    return "\n".join(lines).rstrip() + "\n"


def _command(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=f"dpaudit {name}")
    yield f"`{' '.join([f'dpaudit {name}', *command.collect_usage_pieces(context)])}`"
    yield ""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        lines = paragraph.splitlines()
        if lines[0] == "\b":  # click's mark of lines to keep
            yield from ["```text", *lines[1:], "```", ""]
        else:
            yield from [" ".join(lines).replace("<", "\\<"), ""]
    if name in EXAMPLES:
        yield from [f"Example: `{EXAMPLES[name]}`", ""]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    if not options:
        yield "No options."
        return
    yield "| option | says |"
    yield "|---|---|"
    for option in options:
        written, said = option.get_help_record(context) or (", ".join(option.opts), "")
        yield _row(written, said)


def _notions() -> Iterator[str]:
    yield "| parameters | class | notion | level |"
    yield "|---|---|---|---|"
    own = [notion for notion in NOTIONS.values() if notion.__module__.startswith("auditor.")]
    for notion in sorted(own, key=lambda notion: notion.__name__):
        yield f"| `{', '.join(notion.claim_keys)}` | `{notion.__name__}` | {notion.notion} | {notion.symbol} |"


def _adversaries() -> Iterator[str]:
    yield "| name | parameters | does |"
    yield "|---|---|---|"
    for name, make in BY_NAME.items():
        parameters = ", ".join(
            f"{key}={'none' if value is None else value}" for key, value in parameters_of(name).items()
        )
        said = (inspect.getdoc(make) or "").split("\n\n")[0]
        yield f"| `{name}` | `{parameters}` | {_cell(said)} |"


def _members() -> Iterator[str]:
    """The documented fields of a result, from the section of parameters of its docstring."""
    yield "| member | is |"
    yield "|---|---|"
    for name, (kind, said) in describe_fields(AuditResult).items():
        yield f"| `{name}` ({_cell(kind)}) | {_cell(said)} |"


def _row(first: str, second: str) -> str:
    return "| " + " | ".join([f"`{_cell(first)}`", _cell(second)]) + " |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def public(module: str) -> list[str]:
    """Public names of a module: its ``__all__``, or its own functions and classes without an underscore."""
    loaded = importlib.import_module(module)
    listed = getattr(loaded, "__all__", None)
    if listed is not None:
        return list(listed)
    # What a package takes over from its modules is public, what it imports from elsewhere is not.
    return [
        name
        for name, value in sorted(vars(loaded).items())
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and f"{value.__module__}.".startswith(f"{module}.")
    ]


def _names(module: str) -> Iterator[str]:
    loaded = importlib.import_module(module)
    yield "| name | is |"
    yield "|---|---|"
    for name in public(module):
        value = getattr(loaded, name)
        documented = inspect.isclass(value) or inspect.isroutine(value)
        said = (inspect.getdoc(value) or "").split("\n\n")[0] if documented else "A type of values, for annotations."
        yield _row(name, said)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reference", description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write [default: standard output]")
    text = document()
    options = parser.parse_args(arguments)
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
