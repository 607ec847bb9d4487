"""What commands print: it may come from a target or a file, and a terminal obeys control characters."""

from __future__ import annotations

import click


def print_text(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print a text for people, with control characters escaped.

    Parameters
    ----------
    text : object
        What to print.
    err : bool
        Print it on standard error.
    nl : bool
        End the line.
    """
    shown = str(text)
    if not shown.isprintable():
        from auditor.report.words import escape_controls  # takes longer to import than a list of claims

        shown = escape_controls(shown)
    click.echo(shown, err=err, nl=nl)
