"""LP decoding at sizes where scipy's HiGHS takes minutes: seconds, and bits that are wrong, from 4n random counts.

Run as ``python -m benchmarks.decoding [--sizes 500,1000,2000] [--highs 500] [--out FILE]``. Each size is decoded at E =
0.1 sqrt(n) and 0.25 sqrt(n) by the interior point method, and up to ``--highs`` by HiGHS as well; a line on standard
error says what is running. 2,000 bits are a programme of 2,000 unknowns and 8,000 dense rows: 400 MB, half a minute.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from auditor.audits.adversaries.decoding import LeastAbsolute, random_rows

_HEADING = "| n | k | E / sqrt(n) | solver | seconds | bits wrong |\n|---|---|---|---|---|---|"


def lines(sizes: list[int], highs: int, seed: int) -> Iterator[str]:
    """One line of the table for each programme."""
    for n in sizes:
        rng = np.random.default_rng([seed, n])
        queries = random_rows("subset", (1, 4 * n, n), rng)
        secret = rng.integers(0, 2, n)
        noise = rng.uniform(-1.0, 1.0, (1, 4 * n))
        for al in (0.1, 0.25):
            answers = queries @ secret + al * math.sqrt(n) * noise
            for solver in ("interior", "highs") if n <= highs else ("interior",):
                print(f"n = {n:,}, E = {al:g} sqrt(n), {solver}", file=sys.stderr, flush=True)
                start = time.perf_counter()
                decoder = LeastAbsolute(solver=solver, tolerance=1e-2)
                wrong = int(((decoder(queries, answers)[0] > 0.5) != secret).sum())
                seconds = time.perf_counter() - start
                yield f"| {n:,} | {4 * n:,} | {al:g} | {solver} | {seconds:.1f} | {wrong} |"


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="250,500,1000,2000", help="numbers of bits")
    parser.add_argument("--highs", type=int, default=500, help="largest number of bits that HiGHS decodes too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    text = "\n".join([_HEADING, *lines(sizes, options.highs, options.seed)]) + "\n"
    if options.out is None:
        print(text, end="")
    else:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
