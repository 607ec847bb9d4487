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
from auditor.errors import SpecificationError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def read_scores_file(path: Path, column: str | None, missing: str) -> NDArray[np.float64]:
    """Read scores from a file.

    Parameters
    ----------
    path : Path
        .csv (one column, or several with names), .json (an array of numbers) or .npy.
    column : str or None
        Column of a CSV file; None if it has one only.
    missing : {"error", "drop"}
        What becomes of empty cells, null and NaN.

    Raises
    ------
    SpecificationError
        If there are no scores, or something else.
    """
    import numpy as np  # takes longer to import than all that a list of claims needs

    from auditor.audits.training.given_numbers import read_numbers
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


def _pick_column(path: Path, table: Any, column: str | None) -> Any:
    names = [str(name) for name in table.columns]
    if column is None:
        if len(names) > 1:
            raise SpecificationError(f"{str(path)!r} has the columns {', '.join(names)}: choose one by --column")
        try:  # a file of numbers without a heading: the first of them was taken for one
            first = [float(names[0])]
        except ValueError:
            first = []
        return [*first, *table.iloc[:, 0]]
    if column not in names:
        raise SpecificationError(f"{str(path)!r} has no column {column!r}; it has {', '.join(names)}")
    if path.suffix.lower() == ".csv":
        _refuse_equal_names(path, column)
    return list(table[table.columns[names.index(column)]])


def _refuse_equal_names(path: Path, column: str) -> None:
    """Refuse two columns of one name: pandas numbers them."""
    import pandas as pd  # takes longer to import than all the rest together

    heads = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0].tolist()
    if heads.count(column) > 1:
        raise SpecificationError(f"{str(path)!r} has {heads.count(column)} columns of the name {column!r}: rename them")


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
    click.echo(result)
    click.echo(f"This bound {result.caveat}.")
    sys.exit(exit_code([result]))
