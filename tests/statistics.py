"""Statistics that tests share: counts against probabilities, and the exact level of a pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from auditor.privacy.exact import FiniteLaw, curve

#: Least expected count of a cell: the chi-squared approximation then holds far into the tail.
LEAST = 50.0


def p_value(counts: ArrayLike, probabilities: ArrayLike) -> float:
    """P-value of counts against probabilities: by a chi-squared test, or exactly if all outcomes but one are rare.

    Parameters
    ----------
    counts : array_like of int, shape (cells,)
        How often each outcome was drawn.
    probabilities : array_like of float, shape (cells,)
        Probabilities of the outcomes, which sum to 1.

    Returns
    -------
    float
        The p-value. Outcomes expected less than `LEAST` times are one cell, with the most frequent one if it is too
        small still; 1 if a single outcome is possible.

    Raises
    ------
    AssertionError
        Where an impossible outcome was drawn, and where no outcome is expected `LEAST` times.
    """
    seen, mass = np.asarray(counts, dtype=float), np.asarray(probabilities, dtype=float)
    assert seen.shape == mass.shape
    assert abs(mass.sum() - 1) < 1e-6, mass.sum()
    assert not seen[mass <= 0].any()
    if np.count_nonzero(mass > 0) == 1:
        return 1.0
    expected = mass * seen.sum() / mass.sum()
    often = expected >= LEAST
    rare, least = seen[~often].sum(), expected[~often].sum()
    cells, wanted = seen[often], expected[often]
    assert cells.size > 0, expected
    if cells.size == 1:
        return float(stats.binomtest(int(rare), int(seen.sum()), least / seen.sum()).pvalue)
    if least >= LEAST:
        cells, wanted = np.append(cells, rare), np.append(wanted, least)
    else:
        most = int(wanted.argmax())
        cells[most] += rare
        wanted[most] += least
    return float(stats.chisquare(cells, wanted).pvalue)


def p_value_of_outputs(outputs: Iterable[Any] | NDArray[Any], law: FiniteLaw) -> float:
    """P-value of outputs against a distribution; an output that it does not have is an error. See `p_value`."""
    if isinstance(outputs, np.ndarray):
        outputs = outputs.tolist()
    drawn: Counter[Hashable] = Counter(tuple(one) if isinstance(one, list) else one for one in outputs)
    assert set(drawn) <= set(law.outcomes)
    return p_value([drawn[one] for one in law.outcomes], law.probabilities)


def level_of(mechanism: Any, x: Any, y: Any, delta: float = 0.0) -> float:
    """Exact epsilon of a mechanism on a pair, in both directions, from the distributions that it states."""
    return curve(mechanism.law(x), mechanism.law(y)).epsilon(delta)
