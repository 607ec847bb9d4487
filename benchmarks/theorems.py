"""The theorems and errata of the documents, as tables, from the results of a run.

Run as ``dpaudit run experiments --level standard --out out/standard`` and then ``python -m benchmarks.theorems
out/standard/results.json [--out reports/theorems.md]``. The tables are those of the run's report.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.report.markdown import errata_table, theorems_table
from auditor.report.view import RunView


def document(results: Mapping[str, Any]) -> str:
    """The page for the parsed content of results.json."""
    run = RunView.of(results)
    about = run.manifest
    text = [
        "# Theorems and errata",
        "",
        f"Level {about.get('level')}, seed {about.get('seed')}, alpha {about.get('alpha')} for all claims together. "
        f"{run.sentence}",
        "",
        "Slack is a factor by which the bound exceeds what was measured. An exponent has its 95 % bootstrap interval, "
        "or, where it is computed, the range between neighbouring values; other intervals are those of the claim's "
        "share of alpha. Where the outcome says that a bound holds, the exponent is that of the bound, and what is "
        "measured may fall faster.",
        "",
        "## Theorems",
        "",
        *theorems_table(run),
        "## Errata",
        "",
        "What is wrong in the copies of the documents that we have, as the claims show. A row needs a claim that "
        "refutes what is printed.",
        "",
        *errata_table(run),
        "Made by `dpaudit run experiments --level standard` and `python -m benchmarks.theorems`.",
        "",
    ]
    return "\n".join(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; 1 if a claim of the run did not come out as expected."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.theorems", description=__doc__)
    parser.add_argument("results", type=Path, help="results.json of a run")
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    options = parser.parse_args(arguments)
    results = json.loads(options.results.read_text(encoding="utf-8"))
    text = document(results)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0 if RunView.of(results).fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
