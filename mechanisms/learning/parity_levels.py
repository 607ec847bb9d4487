"""True levels of the private parity learner's wrong twins, in closed form.

A row is taken with probability p. A level is the largest over all neighbouring databases, of the number of rows where
one is given; that of a null is of this output alone.

Source: document 002, section 4; catalogue 002, parity_base_A. The level of biased bits is derived here.
"""

from __future__ import annotations

import math


def level_of_one_row(p: float) -> float:
    """``ln((1 + p) / (1 - p))``: what a row costs in a hypothesis, on any database."""
    return math.inf if p >= 1 else 2.0 * math.atanh(p)


def level_of_null(p: float, stop: float) -> float:
    """``ln(1 - p + p / stop)``: what a null costs, (0, 1) against (0, 0)."""
    return math.log1p(p / stop - p)


def uniform_level(p: float, rows: int) -> float:
    """``ln(1/(1-p) + p (1-p)^-n)``: level of `UniformOnInconsistency` on n - 1 rows (x, 1), and (x, 1) or (x, 0)."""
    return math.log(1.0 / (1.0 - p) + p * (1.0 - p) ** -rows)


def greedy_level(p: float, rows: int) -> float:
    """``ln(1 + 2p (1-p)^-n)``: level of `ConflictsDropped` on (x, 0) or (x, 1), then n - 1 rows (x, 0)."""
    return math.log1p(2.0 * p * (1.0 - p) ** -rows)


def resampling_level(p: float, rows: int | None = None) -> float:
    """``ln((1+p) / ((1-p) (1-p+p(1-p)^(n-1))))``: level of `ResampleUntilConsistent` on n rows; None for all n."""
    rest = 0.0 if rows is None else p * (1.0 - p) ** (rows - 1)
    return math.log((1.0 + p) / ((1.0 - p) * (1.0 - p + rest)))


def biased_level(p: float, bias: float) -> float:
    """``ln(1 + p / ((1-p) b))``, b = min(bias, 1 - bias): level of `BiasedFreeVariables`, on any database.

    A further equation adds one pivot to those that are there, so it takes one factor of at least b from the
    probability of a hypothesis that agrees with it: L = 0 and U = 1/b in ``(1 - p + pU) / (1 - p + pL)``.
    """
    return math.log1p(p / ((1.0 - p) * min(bias, 1.0 - bias)))
