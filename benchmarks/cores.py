"""How much of two cores a run uses: whole commands on one core and on two, in pairs.

Run ``python -m benchmarks.cores [--pairs 3] [--out reports/cores.md]`` from the repository's root, on a machine that
does nothing else.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import cores_claims as claims

#: What is run, by the entry of `benchmarks.cores_claims`, and its draws a claim.
RUNS = {
    "start": ("starting, and nothing to draw", None),
    "single": ("one claim of 1 ms a draw", claims.SLOW * claims.SLOW_DRAWS),
    "slow": (f"{claims.SLOW} claims of 1 ms a draw", claims.SLOW_DRAWS),
    "cheap": (f"{claims.CHEAP} claims of 0.1 µs a draw", 200_000),
}
_ROOT = Path(__file__).resolve().parents[1]
#: Fewest draws of a claim, however small the scale: `Settings` wants 32.
_FEWEST = 100


class PairOfTimes(NamedTuple):
    """Seconds of one pair of runs, on one core and on two."""

    one: float
    two: float

    def efficiency(self, without: PairOfTimes | None = None) -> float:
        """Part of two cores that was used; without the seconds of ``without``, what both took to start."""
        one, two = (self.one, self.two) if without is None else (self.one - without.one, self.two - without.two)
        return one / (2 * two)


def seconds(entry: str, jobs: int, draws: int | None, out: Path) -> float:
    """Seconds of a whole command, from its start to its end; its results are in ``out``.

    Raises
    ------
    RuntimeError
        If it ends with another exit code than 0, or 3, which small budgets give; what it said is shown.
    """
    command = [sys.executable, "-m", "auditor", "run", "benchmarks/cores_claims.py", "-k", f"cores/{entry}"]
    command += ["--jobs", str(jobs), "--out", str(out), *([] if draws is None else ["--draws", str(draws)])]
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=_ROOT, env=_one_thread(), capture_output=True, text=True, check=False)
    taken = time.perf_counter() - begun
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{' '.join(command[1:])} ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
    return taken


def pair(entry: str, draws: int | None, first: int) -> PairOfTimes:
    """One run on one core and one on two, that with ``first`` cores before the other.

    Raises
    ------
    RuntimeError
        If a run fails, or the two have other results.
    """
    with tempfile.TemporaryDirectory() as folder:
        taken = {jobs: seconds(entry, jobs, draws, Path(folder, str(jobs))) for jobs in (first, 3 - first)}
        results = [Path(folder, str(jobs), "results.json").read_bytes() for jobs in (1, 2)]
    if results[0] != results[1]:
        raise RuntimeError(f"cores/{entry}: the results on one core and on two differ")
    return PairOfTimes(taken[1], taken[2])


def report(pairs: int, scale: float, entries: Sequence[str] = tuple(RUNS)) -> list[str]:
    """The table of efficiencies.

    Parameters
    ----------
    pairs : int
        Pairs of runs of each kind; which of the two comes first alternates.
    scale : float
        Draws of each claim, as a multiple of those in `RUNS`.
    entries : sequence of str
        Which kinds, "start" first.
    """
    made: dict[str, PairOfTimes] = {}
    lines = [
        "Whole commands `dpaudit run --jobs 1` and `--jobs 2`, from start to end, with the same results to the byte; "
        f"median of {pairs}. Efficiency is the time on one core over twice the time on two. The target of 1 ms a draw "
        f"works, it does not sleep: here {1000 * busy_seconds():.2f} ms. Of a single claim the second process draws "
        "one of the two sides of each chunk. Without start: both times less those of the first row, in which each "
        "process loads libraries and claims.",
        "",
        "| run | s on one core | s on two | efficiency | without start |",
        "|---|---:|---:|---:|---:|",
    ]
    for entry in entries:
        name, usual = RUNS[entry]
        draws = None if usual is None else max(round(scale * usual), _FEWEST)
        taken = []
        for k in range(pairs):
            print(f"two cores, {name}: pair {k + 1} of {pairs}", file=sys.stderr, flush=True)
            taken.append(pair(entry, draws, 1 + k % 2))
        made[entry] = PairOfTimes(statistics.median(t.one for t in taken), statistics.median(t.two for t in taken))
        start, run = made["start"], made[entry]
        alone = f"{run.efficiency(start):.2f}" if run.two > start.two else "–"
        shown = "|" if entry == "start" else f"{run.efficiency():.2f} | {alone}"
        lines.append(f"| {name} | {run.one:.1f} | {run.two:.1f} | {shown} |")
    return lines


def busy_seconds(draws: int = 200) -> float:
    """Seconds of one core that a draw of the slow target takes."""
    rng, data = np.random.default_rng(0), np.array([1])
    begun = time.process_time()
    for _ in range(draws):
        claims.busy(data, rng)
    return (time.process_time() - begun) / draws


def _one_thread() -> dict[str, str]:
    """Variables of this process, numeric libraries held to one thread: a run on one core is to use one core."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cores", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=3, help="pairs of runs on one core and on two")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the runs")
    parser.add_argument("--out", type=Path, default=Path("reports/cores.md"), help="Markdown file to write")
    options = parser.parse_args(arguments)
    if options.pairs < 1:
        parser.error(f"--pairs must be at least 1, got {options.pairs}")
    if not 0 < options.scale < math.inf:
        parser.error(f"--scale must be a positive number, got {options.scale}")
    if not options.out.parent.is_dir():
        parser.error(f"--out: no such folder: {str(options.out.parent)!r}")
    lines = ["# The use of two cores", "", *report(options.pairs, options.scale), ""]
    text = "\n".join([*lines, "Made by `python -m benchmarks.cores`.", ""])
    print(text)
    options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
