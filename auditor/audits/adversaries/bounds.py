"""Bounds on an adversary by a guarantee: largest expected score of a guess, a reconstruction, a packing.

Each bound takes the guarantee's cap, so that it holds for every notion: for neighbouring datasets an event of
probability q on one has a probability of at most cap(q) on the other, and the cap is concave and increasing.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy import special

from auditor.errors import SpecificationError
from auditor.privacy.guarantees import ApproxDP, GaussianDP, Guarantee

#: Steps of the golden section below: 60 leave an interval of 3e-13, in which a slope of 1 moves the value by as much.
_STEPS = 60
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def cap_at(guarantee: Guarantee, q: float, level: float) -> float:
    """Largest probability of an event that the level allows.

    It has probability ``q`` on a neighbour.

    Parameters
    ----------
    guarantee : Guarantee
        The notion of privacy.
    q : float
        In [0, 1].
    level : float
        Its level, at least 0.
    """
    return float(guarantee.cap(np.array(q), np.array(level)))


def bound_guessing(guarantee: Guarantee, level: float) -> float:
    """Largest probability of guessing a secret, uniform bit of one row right.

    Parameters
    ----------
    guarantee : Guarantee
        The notion of privacy.
    level : float
        Its level, at least 0.

    Returns
    -------
    float
        ``(1 + max_q (cap(q) - q)) / 2``; for (epsilon, delta) it is ``(e^epsilon + delta) / (1 + e^epsilon)``.

    Notes
    -----
    Valid because: let p and q be the probabilities that the guess is 1 where the bit is 1 and where it is 0, the other
    rows drawn at random. Both are averages over the other rows, for each of which p <= cap(q), and by concavity so
    it is for the averages. The guess is right with probability (p + 1 - q) / 2. Sources: 003, Definition 4.1.1; for
    delta = 0 randomised response attains it.
    """
    if isinstance(guarantee, ApproxDP) and guarantee.delta >= 0:
        # The level of an approximate claim is its epsilon; the maximum is where both lines of the cap meet.
        e = math.exp(min(level, 700.0))
        return min(1.0, (e + guarantee.delta) / (1.0 + e))
    if isinstance(guarantee, GaussianDP):
        return float(special.ndtr(level / 2.0))
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if cap_at(guarantee, a, level) - a < cap_at(guarantee, b, level) - b:
            low = a
        else:
            high = b
    best = max(cap_at(guarantee, q, level) - q for q in (low, high, 0.5 * (low + high)))
    return min(1.0, 0.5 * (1.0 + best) + 1e-12)


def bound_reconstruction(guarantee: Guarantee, level: float, n: int, wrong: int) -> float:
    """Largest probability of reconstructing all but ``wrong`` bits.

    Of n secret, uniform bits, one a row, at most ``wrong`` are wrong.

    Parameters
    ----------
    guarantee : Guarantee
        The notion of privacy.
    level : float
        Its level, at least 0.
    n : int
        Number of bits.
    wrong : int
        Wrong bits that are allowed, 0 <= wrong < n.

    Returns
    -------
    float
        ``cap((wrong + 1) / n) / (1 - wrong / n)``, at most 1.

    Notes
    -----
    Valid because: let R be the event that at most ``wrong`` bits are wrong, and R_i that besides bit i is right. On the
    data themselves the R_i have probabilities whose average is at least P(R)(1 - wrong / n). On the data with bit i
    flipped R_i is the event that bit i is wrong (of the flipped data), and at most ``wrong`` + 1 are; the flipped data
    are uniform too, so the average over i of its probability is at most (wrong + 1) / n. The cap bounds each by
    the other, and being concave and increasing it does so for the averages. Source: derived.
    """
    if not 0 <= wrong < n:
        raise SpecificationError(f"the number of wrong bits must be from 0 to {n - 1}, got {wrong!r}")
    return min(1.0, cap_at(guarantee, min((wrong + 1) / n, 1.0), level) / (1.0 - wrong / n))


def bound_packing(guarantee: Guarantee, level: float, log_datasets: float, steps: int) -> float:
    """Largest average probability of disjoint good outputs.

    There are many datasets, and no output is good for two of them.

    Parameters
    ----------
    log_datasets : float
        Natural logarithm of their number.
    steps : int
        Neighbouring steps that lead from any of them to any other.

    Returns
    -------
    float
        The cap, applied ``steps`` times to one over their number; for pure DP it is e^(epsilon steps) / datasets.

    Notes
    -----
    Valid because: on a dataset x_0 of them the probabilities q_i of the disjoint sets of good outputs have an average
    of at most 1 / datasets. Along ``steps`` neighbouring datasets an event's probability grows to at most the cap
    applied so many times, which is concave and increasing as each cap is, so this holds for the averages. Source: 003,
    Lemma 4.3.1.
    """
    if isinstance(guarantee, ApproxDP) and guarantee.delta == 0:
        return max(math.exp(min(0.0, level * steps - log_datasets)), sys.float_info.min)
    # A cap is never smaller at the smallest normal double than at a smaller probability, which would be 0 as a double.
    p = max(math.exp(-log_datasets), sys.float_info.min)
    for _ in range(steps):
        p = min(1.0, cap_at(guarantee, p, level))
    return p
