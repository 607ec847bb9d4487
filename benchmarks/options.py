"""The options that benchmarks of many seeds share."""

from __future__ import annotations

import argparse
from pathlib import Path


def parser_of(
    name: str, about: str | None, what: str, default: int, first_seed: int | None = None
) -> argparse.ArgumentParser:
    """Parser of a benchmark's command line, for its own checks of what it is given.

    Parameters
    ----------
    name : str
        Of the module; its report is ``reports/NAME.md``.
    about : str or None
        Its docstring.
    what : str
        What it makes many of, as "audits": ``--audits`` is how many of each row.
    default : int
        How many.
    first_seed : int, optional
        Seed of the first of them, if it can be chosen.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=about)
    parser.add_argument(f"--{what}", type=int, default=default, help=f"{what} of each row")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    if first_seed is not None:
        parser.add_argument("--first-seed", type=int, default=first_seed, help="first seed of each row")
    parser.add_argument("--out", type=Path, default=Path(f"reports/{name}.md"), help="Markdown file to write")
    return parser
