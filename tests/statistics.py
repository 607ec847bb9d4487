"""Statistics that tests share: counts against probabilities, rates of events, and the exact level of a pair."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from auditor.privacy.exact import FiniteLaw, curve
from benchmarks.families import NullAudit

#: Least expected count of a cell: the chi-squared approximation then holds far into the tail.
LEAST = 50.0
#: Rate of false alarms that `check_rates` allows, and the one that it finds.
ALLOWED, FOUND = 0.05, 0.25
#: Probabilities with which `check_rates` fails at a rate of `ALLOWED`, and passes at one of `FOUND`.
FAILS_WRONGLY, PASSES_WRONGLY = 1e-6, 1e-3


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


def check_rates(
    outcomes: Callable[[int], Sequence[bool]], *names: str, allowed: float = ALLOWED, found: float = FOUND
) -> None:
    """Fail if events are more frequent than allowed.

    Trials are made until each event is decided, by Wald's sequential test of one rate against another. With the two
    rates by default its power is that of 200 trials with a fixed limit, and where there are no events 30 trials decide
    (`tests/unit/test_statistics.py`).

    Valid because: let each trial have the event with probability at most ``allowed``, given the trials before. Then the
    likelihood ratio of ``found`` against ``allowed`` is a non-negative supermartingale that starts at 1. By Ville's
    inequality it ever reaches 1 / `FAILS_WRONGLY` with at most that probability. Its inverse is one where the
    probability is at least ``found``.

    Parameters
    ----------
    outcomes : callable
        From the number of a trial, 0, 1, ..., to whether each of the events happened.
    names : str
        What the events are, for the message.
    allowed, found : float
        Rate at which the test fails with probability `FAILS_WRONGLY` at most, and rate at which it passes with
        probability `PASSES_WRONGLY` at most.

    Raises
    ------
    AssertionError
        If one of them is too frequent.
    """
    ratios, counts = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    for trial in itertools.count():
        for name, happened in zip(names, outcomes(trial), strict=True):
            if name in ratios:
                counts[name] += bool(happened)
                ratios[name] += math.log(found / allowed if happened else (1 - found) / (1 - allowed))
                assert ratios[name] < -math.log(FAILS_WRONGLY), f"{counts[name]} {name} in {trial + 1} trials"
                if ratios[name] <= math.log(PASSES_WRONGLY):
                    del ratios[name]
        if not ratios:
            return


def check_audits(audit_of: Callable[[int], NullAudit]) -> None:
    """Fail if alarms, or bounds above the exact level, are too many for a rate of `ALLOWED`.

    Parameters
    ----------
    audit_of : callable
        From a seed to what an audit found of a mechanism that just keeps its claim.
    """

    def outcomes(seed: int) -> tuple[bool, bool]:
        found = audit_of(seed)
        return found.alarm, found.bound_above

    check_rates(outcomes, "false alarms", "lower bounds above the exact level")
