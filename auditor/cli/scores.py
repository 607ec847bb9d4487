"""`dpaudit scores`: canary scores of one training run against a claim."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auditor.cli.commands import GivenPath, make_folder
from auditor.cli.one_result import save_result
from auditor.cli.terminal import print_text
from auditor.errors import SpecificationError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def read_scores_file(path: Path, column: str | None, missing: str) -> NDArray[np.float64]:
    """Read scores from a file.

    Parameters
    ----------
    path : Path
        .csv (one column, or several with names), .json (an array of numbers), .npy or .parquet.
    column : str or None
        Column of a CSV or Parquet file; None if it has one only.
    missing : {"error", "drop"}
        What becomes of empty cells, null and NaN.

    Raises
    ------
    SpecificationError
        If there are no scores, or something else.
    """
    import numpy as np  # takes longer to import than all that a list of claims needs

    from auditor.audits.given_numbers import read_numbers
    from auditor.datasets.files import read_data

    found = read_data(path)
    if hasattr(found, "columns"):
        found = _pick_column(path, found, column)
    elif column is not None:
        raise SpecificationError(f"{str(path)!r} has no columns, so that --column {column} is not one of them")
    what = f"{str(path)!r} must hold an array of numbers"
    if not isinstance(found, list | np.ndarray):
        raise SpecificationError(f"{what}, got {type(found).__name__}")
    if path.suffix.lower() == ".csv" and missing == "error":
        _refuse_empty_lines(path)
    for k, value in enumerate(found, 1):  # one text makes texts of all numbers of a column
        if isinstance(value, str) and not _is_number(value):
            raise SpecificationError(f"{what}: score {k} is {value!r}")
    values = read_numbers(what, [np.nan if v is None else v for v in found])
    if values.ndim != 1:
        raise SpecificationError(f"{str(path)!r} must hold a list of numbers, got shape {values.shape}")
    gone = np.isnan(values)
    if gone.any() and missing == "error":
        where = int(np.flatnonzero(gone)[0]) + 1
        raise SpecificationError(
            f"{str(path)!r}: score {where} is missing ({int(gone.sum())} in all); --missing drop leaves them out, "
            "valid only if whether a score is missing does not depend on the training"
        )
    kept: NDArray[np.float64] = values[~gone]
    return kept


def _refuse_empty_lines(path: Path) -> None:
    """Refuse lines that pandas leaves out: of one column, an empty cell is an empty line."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            raise SpecificationError(
                f"{str(path)!r}: line {number} is empty, which may be a missing score; delete it if it is none, or "
                "give --missing drop"
            )


def _pick_column(path: Path, table: Any, column: str | None) -> list[Any]:
    """Scores of one column, None where one is missing."""
    of_text = path.suffix.lower() == ".csv"
    names = _read_heading(path) if of_text else [str(name) for name in table.columns]
    if column is None:
        if len(names) != 1:
            raise SpecificationError(f"{str(path)!r} has the columns {', '.join(names)}: choose one by --column")
        first = _score_of_heading(path, names[0]) if of_text else []
        return [*first, *_list_values(table.iloc[:, 0])]
    if column not in names:
        raise SpecificationError(f"{str(path)!r} has no column {column!r}; it has {', '.join(names)}")
    if names.count(column) > 1:
        raise SpecificationError(f"{str(path)!r} has {names.count(column)} columns of the name {column!r}: rename them")
    if of_text and names != [str(k) for k in range(len(names))] and all(map(_is_number, names)):
        raise SpecificationError(
            f"{str(path)!r}: its first line holds numbers, {', '.join(names)}, which would be lost as names of "
            "columns: write names above it"
        )
    return _list_values(table.iloc[:, names.index(column)])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _list_values(column: Any) -> list[Any]:
    """Values of a column, None where it has none, of whatever type."""
    return [None if gone else value for value, gone in zip(column, column.isna(), strict=True)]


def _read_heading(path: Path) -> list[str]:
    """Names of columns as they are in a CSV file: pandas numbers equal ones."""
    import pandas as pd  # takes longer to import than all the rest together

    names: list[str] = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0].tolist()
    return names


def _score_of_heading(path: Path, name: str) -> list[float]:
    """The first score, where a file of numbers has no heading: it was taken for one."""
    if name == "0":  # pandas writes it above numbers that have no name
        raise SpecificationError(
            f"{str(path)!r}: its first line, 0, is a score or the name of the column; give --column 0 if it is the "
            "name, and else write a name above it"
        )
    return [float(name)] if _is_number(name) else []


@click.command(short_help="Audit canary scores of one training run.")
@click.argument("inside", metavar="IN", type=GivenPath(dir_okay=False))
@click.argument("outside", metavar="OUT", type=GivenPath(dir_okay=False))
@click.option("--claim", required=True, help='The claim, as for `dpaudit attack`: "epsilon=8, delta=1e-5".')
@click.option(
    "--assume",
    type=click.Choice(["nothing", "independent-canaries"]),
    default="nothing",
    show_default=True,
    help="What the bound may rest on beyond the claim and fair coins.",
)
@click.option("--column", default=None, help="Column of CSV files with several.")
@click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="What becomes of missing scores.",
)
@click.option(
    "--guesses",
    type=click.IntRange(min=1),
    default=None,
    help="Canaries to guess about, fixed beforehand; not for pure DP, nor with independent canaries.",
)
@click.option("--alpha", type=float, default=0.01, show_default=True, help="Probability of a false alarm.")
@click.option(
    "--detect",
    type=float,
    default=None,
    help="Level that has to be found [default: more than the claim; with independent canaries twice the claim].",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the order of canaries.")
@click.option("--out", type=GivenPath(file_okay=False), default=None, help="Folder for results.json and the reports.")
def scores(
    inside: Path, outside: Path, claim: str, column: str | None, missing: str, out: Path | None, **asked: Any
) -> None:
    """Audit one training run from the scores of its canaries.

    Each canary was put into the training data by a fair coin of its own. IN has the scores of those that were, OUT of
    those that were not: losses, or whatever the trained model says of them. Whether high or low ones speak for
    inclusion is learned.

    With --assume nothing the bound holds however canaries interact. With --assume independent-canaries it is larger,
    and wrong if one canary's score depends on whether another one was in.

    Exit codes: 0 not refuted; 1 refuted; 2 an error; 3 too few canaries to find what is asked for.
    """
    from auditor.audits.training.scores import audit_scores
    from auditor.privacy.guarantees import parse_claim
    from auditor.runs.run import exit_code

    guarantee = parse_claim(claim)
    x, y = (read_scores_file(path, column, missing) for path in (inside, outside))
    if inside.samefile(outside):
        raise SpecificationError(f"IN and OUT are the same file, {str(inside)!r}: their scores cannot differ")
    if out is not None:
        make_folder(out)
    options = {"column": column, "missing": missing, **asked}
    words = ["dpaudit", "scores", str(inside), str(outside), "--claim", claim]
    words += [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    result = replace(audit_scores(x, y, guarantee, **asked), replay=shlex.join(words))
    if out is not None:
        save_result(out, result, {"target": f"{inside.name}, {outside.name}", **asked})
    print_text(result)
    print_text(f"This bound {result.caveat}.")
    sys.exit(exit_code([result]))
