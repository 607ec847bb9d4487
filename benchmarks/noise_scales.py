"""Exact levels of releases whose noise has a scale that tells a private size, such as a batch.

A trainer that divides a noisy sum by a size releases noise of the scale 1 over this size, times what is public. One row
more makes it another scale, whatever the gradients are. Opacus does so: before 1.0.0 with the number of rows in the
drawn batch, or with rate times rows if its batches are Poisson; from 1.0.0 on with the floor of rate times rows, which
moves when a row carries it over an integer. See the cases ``opacus/drawn_batch``, ``opacus/average_batch`` and
``opacus/expected_batch`` in ``corpus/``.

Run ``python -m benchmarks.noise_scales [--out reports/noise_scales.md]``; it takes a second.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from scipy import stats

#: Delta of the table, and the sizes and dimensions that it has.
DELTA = 1e-5
SIZES = (1, 10, 100, 1_000, 10_000)
DIMENSIONS = (1, 10, 100, 10_000, 1_000_000)
#: Levels above this are not computed: probabilities underflow.
LARGEST = 600.0


def find_delta(epsilon: float, size: int, dimension: int) -> float:
    """Delta at which noise of scale 1 / size against 1 / (size + 1) has a level.

    The larger one of both orders.

    Parameters
    ----------
    epsilon : float
        The level, at least 0.
    size : int
        Of the smaller dataset.
    dimension : int
        Coordinates of the released vector, whose sums are 0.

    Notes
    -----
    Exact: with the scales a > b, ln(p/q) = d ln(b/a) + |x|^2 (1/b^2 - 1/a^2) / 2 grows with |x|^2, which is a^2 times
    chi-squared with d degrees under p, and b^2 times it under q. So the events that maximise p - e^epsilon q and
    q - e^epsilon p are those of a threshold on |x|^2. The scale of the noise itself cancels.
    """
    a, b = 1.0 / size, 1.0 / (size + 1)
    shift, slope = dimension * math.log(a / b), (b**-2 - a**-2) / 2.0
    above, below = (epsilon + shift) / slope, max(shift - epsilon, 0.0) / slope
    law = stats.chi2(dimension)
    wide = law.sf(above / a**2) - math.exp(epsilon + law.logsf(above / b**2))
    narrow = law.cdf(below / b**2) - math.exp(epsilon + law.logcdf(below / a**2)) if below else 0.0
    return max(float(wide), float(narrow))


def find_level(size: int, dimension: int, delta: float = DELTA) -> float:
    """Largest epsilon at which `find_delta` is above delta, to 1e-9; infinite above `LARGEST`."""
    low, high = 0.0, LARGEST
    if find_delta(high, size, dimension) > delta:
        return math.inf
    if find_delta(low, size, dimension) <= delta:
        return 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2.0
        low, high = (middle, high) if find_delta(middle, size, dimension) > delta else (low, middle)
    return low


def write_table() -> str:
    """The page."""
    about = (__doc__ or "").partition("\n\n")[2].partition("\n\nRun")[0]
    rows = []
    for size in SIZES:
        levels = (find_level(size, dimension) for dimension in DIMENSIONS)
        cells = [f"{level:.4g}" if math.isfinite(level) else f"above {LARGEST:g}" for level in levels]
        rows.append(f"| {size:,} against {size + 1:,} | {' | '.join(cells)} |")
    return "\n".join(
        [
            "# Noise whose scale tells a size",
            "",
            about.replace("``", "`"),
            "",
            f"Epsilon at delta = {DELTA:g} that the scale alone gives away, by number of coordinates of the vector. It "
            "does not depend on the noise multiplier: more noise does not help.",
            "",
            f"| size | {' | '.join(f'{dimension:,}' for dimension in DIMENSIONS)} |",
            f"|---|{'---:|' * len(DIMENSIONS)}",
            *rows,
            "",
            "Made by `python -m benchmarks.noise_scales`.",
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.noise_scales", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    options = parser.parse_args(arguments)
    page = write_table()
    if options.out is None:
        sys.stdout.write(page)
    else:
        options.out.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
