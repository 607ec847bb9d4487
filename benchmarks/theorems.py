"""The theorems and errata of the documents, from the claims that show them.

Run as ``python -m benchmarks.theorems [--jobs 2] [--level standard] [--out reports/theorems.md]``. All claims of
accuracy, computed statements and claims that show an erratum are audited as declared; the tables are those of the
report.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from auditor import registry, runner
from auditor.accuracy.base import Theorem
from auditor.declare import Claim
from auditor.report.markdown import errata_table, theorems_table
from auditor.report.view import RunView


def selected() -> list[Claim]:
    """Claims of accuracy, computed statements, and what shows an erratum."""
    claims = registry.claims(["experiments"])
    return [c for c in claims if isinstance(c.draft.guarantee, Theorem) or c.draft.shows is not None]


def document(level: str, jobs: int) -> tuple[str, bool]:
    """The report, and whether every claim came out as expected."""
    run, claims = runner.Run(level=level, jobs=jobs), selected()
    outcome = runner.execute(run, claims)
    view = RunView.of(json.loads(json.dumps(runner.results_document(run, claims, outcome))))
    text = [
        "# Theorems and errata",
        "",
        f"{len(claims)} claims at level {level}, seed {run.seed}, alpha {run.alpha} for all together: {view.sentence}",
        "",
        "Slack is a factor by which the bound exceeds what was measured. An exponent has its 95 % bootstrap interval, "
        "or, where it is computed, the range between neighbouring values; other intervals are those of the claim's "
        "share of alpha. Where the outcome says that a bound holds, the exponent is that of the bound, and what is "
        "measured may fall faster.",
        "",
        "## Theorems",
        "",
        *theorems_table(view),
        "## Errata",
        "",
        "What is wrong in the copies of the documents that we have, as the claims show. A row needs a claim that "
        "refutes what is printed.",
        "",
        *errata_table(view),
        "Made by `python -m benchmarks.theorems`.",
        "",
    ]
    return "\n".join(text), all(result.ok for result in outcome.results)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the claims; 1 if one does not come out as expected."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.theorems", description=__doc__)
    parser.add_argument("--level", default="standard", help="budgets: smoke, standard or full")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    options = parser.parse_args(arguments)
    text, good = document(options.level, options.jobs)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
