"""Audit runs of Opacus and of jax-privacy by their steps, set up rightly and wrongly.

Run ``python -m benchmarks.training_libraries`` from the repository's root. Each library is installed into an
environment of its own the first time; torch alone takes some 200 MB from an index of builds for processors alone, and
several GB from others. A run is 200 steps of batches of some 30 of 300 examples, at epsilon = 4 as an accountant says.
"""

from __future__ import annotations

import argparse
import collections
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from auditor.privacy.guarantees import ApproxDP
from auditor.results import AuditResult
from auditor.targets.environments import find_environment
from auditor.training import audit_steps, read_steps
from benchmarks.library_runs import jax_privacy_runs, opacus_runs

ROOT = Path(__file__).resolve().parents[1]
CLAIM, ALPHA, FIRST_SEED = ApproxDP(epsilon=4.0, delta=1e-5), 0.01, 5_000
#: What dpaudit itself needs to record.
_OWN = ("numpy", "scipy", "click", "threadpoolctl")


@dataclass(frozen=True)
class Library:
    """A library, the script that trains with it, and its set-ups.

    Parameters
    ----------
    name : str
        As it is called.
    requirements : tuple of str
        What pip installs.
    script : str
        In ``benchmarks/library_runs``.
    setups : tuple of str
        All of the script's.
    right : tuple of str
        Those that keep the claim.
    """

    name: str
    requirements: tuple[str, ...]
    script: str
    setups: tuple[str, ...]
    right: tuple[str, ...]


LIBRARIES = (
    Library(
        "Opacus 1.6.0",
        ("opacus==1.6.0", "torch==2.13.0"),
        "opacus_runs.py",
        opacus_runs.SETUPS,
        ("as documented", "batches in parts", "sum of losses"),
    ),
    Library(
        "Opacus 1.0.0",
        ("opacus==1.0.0", "torch==2.13.0"),
        "opacus_runs.py",
        opacus_runs.SETUPS,
        ("as documented", "batches in parts", "sum of losses"),
    ),
    Library(
        "jax-privacy 2.0.0",
        ("jax-privacy==2.0.0",),
        "jax_privacy_runs.py",
        jax_privacy_runs.SETUPS,
        ("as documented",),
    ),
)


def make_records(library: Library, folder: Path, runs: int) -> None:
    """Train in the library's environment."""
    python = find_environment([*library.requirements, *_OWN]) / "bin" / "python"
    script = ROOT / "benchmarks" / "library_runs" / library.script
    variables = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run([str(python), str(script), str(folder), str(FIRST_SEED), str(runs)], env=variables, check=True)


def library_rows(library: Library, folder: Path, runs: int) -> Iterator[str]:
    """Rows of a library's set-ups."""
    for setup in library.setups:
        found = [
            audit_steps(read_steps(folder / f"{setup}-{seed}.npz"), CLAIM, alpha=ALPHA)
            for seed in range(FIRST_SEED, FIRST_SEED + runs)
        ]
        yield format_row(library.name, setup, setup in library.right, found)


def format_row(library: str, setup: str, right: bool, found: list[AuditResult]) -> str:
    """A row of the table.

    Parameters
    ----------
    library, setup : str
        What was run.
    right : bool
        Whether it keeps the claim.
    found : list of AuditResult
        One for each run.
    """
    verdicts = collections.Counter(str(result.verdict) for result in found)
    bounds = statistics.median(result.lower_bound or 0.0 for result in found)
    tests = collections.Counter(
        check["name"] for result in found for check in result.checks if not check["passed"]
    ).most_common(3)
    return (
        f"| {library} | {setup} | {'right' if right else 'wrong'} "
        f"| {', '.join(f'{name} {n}' for name, n in verdicts.most_common())} | {bounds:.3g} "
        f"| {', '.join(f'{name} ({n})' for name, n in tests)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_libraries", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="runs of each set-up")
    parser.add_argument("--only", default="", help="libraries whose name holds this text")
    parser.add_argument(
        "--out", type=Path, default=Path("reports/training_libraries.md"), help="Markdown file to write"
    )
    asked = parser.parse_args()
    lines = [
        "# Training with libraries, audited by steps",
        "",
        f"{asked.runs} runs of each set-up, of 200 steps each with batches of some 30 of 300 examples, audited at "
        "alpha = 1 % against epsilon = 4 at delta = 1e-5, which is what an accountant says. A canary of full norm is "
        "put into each sum by a fair coin. Tests are those that failed most often.",
        "",
        "| library | set-up | is | verdicts | median bound | failed tests (runs) |",
        "|---|---|---|---|---:|---|",
    ]
    for library in LIBRARIES:
        if asked.only in library.name:
            print(library.name, file=sys.stderr)
            with tempfile.TemporaryDirectory() as folder:
                make_records(library, Path(folder), asked.runs)
                lines += library_rows(library, Path(folder), asked.runs)
    lines += ["", "Made by `python -m benchmarks.training_libraries`."]
    asked.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
