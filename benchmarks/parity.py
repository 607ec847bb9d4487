"""Hypotheses a second of the private parity learner, in batches.

Run as ``python -m benchmarks.parity [--pairs 7] [--out reports/parity.md]``. Databases of 256 bits have the sample size
of Lemma 4.1. Each run of a batch is paired with one of elimination on Python integers, one hypothesis after the other
with the same subset sizes, and the ratio is taken pair by pair: a drifting machine does not matter to it. Times are of
the processor, on one core.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.learning.parity import PrivateParityLearner
from mechanisms.learning.parity_samples import lemma_size

Bits = NDArray[np.uint8]

D, EPSILON, ALPHA = 256, 0.5, 0.1
#: What the learner is to reach.
WANTED = 10_000
#: Draws of a batch, and hypotheses of the integers' run: half a second each.
BATCH, FEW = 8_000, 200


def databases(rng: np.random.Generator) -> dict[str, Bits]:
    """Databases of the lemma's size."""
    rows = lemma_size(EPSILON, ALPHA, D)
    x = rng.integers(0, 2, (rows, D), dtype=np.uint8)
    concept = rng.integers(0, 2, D, dtype=np.uint8)
    y = x @ concept % 2
    bad = y.copy()
    bad[0] ^= 1
    sparse = np.zeros((rows, D), dtype=np.uint8)
    sparse[np.arange(rows), rng.integers(0, D, rows)] = rng.random(rows) < 4 * ALPHA
    return {
        "uniform x, labels of a parity": np.column_stack([x, y]),
        "the same, one label wrong": np.column_stack([x, bad]),
        "uniform x, random labels": np.column_stack([x, rng.integers(0, 2, rows, dtype=np.uint8)]),
        "unit vectors and zeros, labels of a parity": np.column_stack([sparse, sparse @ concept % 2]),
    }


def few_rows(rows: int, rng: np.random.Generator) -> Bits:
    """A database for a privacy audit."""
    return rng.integers(0, 2, (rows, 4), dtype=np.uint8)


def batch(learner: PrivateParityLearner, data: Bits, n: int, rng: np.random.Generator) -> float:
    """Draws a second of the learner."""
    start = time.process_time()
    learner(data, n, rng)
    return n / (time.process_time() - start)


def integers(data: Bits, p: float, n: int, rng: np.random.Generator) -> float:
    """Draws a second of elimination on Python integers, half of which stop in step 1; subsets end at full rank."""
    d = data.shape[1] - 1
    rows = [int("".join(map(str, row[::-1])), 2) for row in data.tolist()]
    start = time.process_time()
    for _ in range(n):
        if rng.random() < 0.5:
            continue
        leading: dict[int, int] = {}
        for index in np.flatnonzero(rng.random(len(rows)) < p).tolist():
            row = rows[index]
            while low := row & -row & (2**d - 1):
                if low not in leading:
                    leading[low] = row
                    break
                row ^= leading[low]
            if len(leading) == d:
                break
    return n / (time.process_time() - start)


def paired(first: Callable[[], float], second: Callable[[], float], pairs: int) -> tuple[float, float, float]:
    """Median of either rate, and of the ratios of pairs."""
    found = [(first(), second()) for _ in range(pairs)]
    fast, slow = zip(*found, strict=True)
    return statistics.median(fast), statistics.median(slow), statistics.median(a / b for a, b in found)


def document(pairs: int) -> tuple[str, bool]:
    """The report, and whether the rate is reached on all databases."""
    rng = np.random.default_rng(1)
    learner = PrivateParityLearner(EPSILON, D)
    text = [
        "# Private parity learner",
        "",
        f"d = {D}, epsilon = {EPSILON}, alpha = {ALPHA}, {lemma_size(EPSILON, ALPHA, D):,} rows, batches of {BATCH:,}. "
        f"Draws a second of processor time, half of which stop in step 1; wanted: {WANTED:,}.",
        "",
        "| database | draws a second | on Python integers | ratio |",
        "|---|---:|---:|---:|",
    ]
    reached = True
    for name, data in databases(rng).items():
        learner(data, 1, rng)  # sorts the equations, which is kept
        fast, slow, ratio = paired(
            lambda data=data: batch(learner, data, BATCH, rng),  # type: ignore[misc]
            lambda data=data: integers(data, learner.p, FEW, rng),  # type: ignore[misc]
            pairs,
        )
        reached = reached and fast >= WANTED
        text.append(f"| {name} | {fast:,.0f} | {slow:,.0f} | {ratio:.1f} |")
    text += ["", "Databases of privacy audits, three bits:", "", "| rows | draws a second |", "|---:|---:|"]
    for rows in (1, 2, 3):
        data, small = few_rows(rows, rng), PrivateParityLearner(EPSILON, 3)
        rates = [batch(small, data, 1_000_000, rng) for _ in range(pairs)]
        text.append(f"| {rows} | {statistics.median(rates):,.0f} |")
    return "\n".join([*text, "", "Made by `python -m benchmarks.parity`.", ""]), reached


def main() -> int:
    """Write the report; 1 if the rate is not reached."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=7, help="pairs of runs")
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    arguments = parser.parse_args()
    text, reached = document(arguments.pairs)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    print(text)
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
