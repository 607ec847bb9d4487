"""Guesses about canaries of one training run: how many may be right under a claim.

m canaries are each in the training data by a fair coin of their own. An adversary sees the trained model, guesses the
coins of some canaries, and abstains from the others. None of the bounds here assumes that canaries do not interact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from auditor.privacy.guarantees import Guarantee

Array = NDArray[np.float64]
Case = TypeVar("Case")

#: Parts of what may be bet on a guess without ruin, one expert each; equal masses, arbitrary, any are valid.
STAKES: Array = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.99])
#: Halvings of an interval of levels: 40 leave nothing that a reader could see.
_HALVINGS = 40
#: No level above it is looked for.
_HIGHEST = 40.0


def bound_correct_guesses(correct: int, guesses: int, canaries: int, epsilon: float, delta: float = 0.0) -> float:
    """Bound the probability of a number of right guesses.

    Under (epsilon, delta)-DP; Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run" (2023),
    Theorem 5.2 and section 5.

    Parameters
    ----------
    correct : int
        Guesses that are right.
    guesses : int
        Guesses that were made, a number fixed before the scores were seen (for delta = 0 it may depend on them).
    canaries : int
        All canaries, at least ``guesses``.
    epsilon, delta : float
        The claim.

    Returns
    -------
    float
        An upper bound on P[at least ``correct`` of the guesses are right], at most 1.

    Notes
    -----
    Valid because: under pure DP, given the output and all other coins, the odds of a coin are at most e^epsilon to 1,
    so that the number of right guesses is stochastically smaller than Binomial(r, e^epsilon / (1 + e^epsilon)) with
    upper tail f. Under (epsilon, delta)-DP it is so outside of failures of the output, which have the expected number m
    delta a side; the worst way to spend them adds 2 m delta max_i (f(v - i) - f(v)) / i.
    """
    right = math.exp(-math.log1p(math.exp(-epsilon)))
    tail = float(stats.binom.sf(correct - 1, guesses, right))
    if delta <= 0 or correct <= 0:
        return tail
    i = np.arange(1, correct + 1)
    gained = float(((stats.binom.sf(correct - i - 1, guesses, right) - tail) / i).max())
    return min(1.0, tail + 2.0 * canaries * delta * max(gained, 0.0))


def exceeds_curve(correct: int, guesses: int, canaries: int, guarantee: Guarantee, level: float, alpha: float) -> bool:
    """Tell whether a number of right guesses refutes a level.

    Of any notion that has a cap.

    Mahloujifar, Melis and Chaudhuri, "Auditing f-differential privacy in one run" (2024), Algorithm 3.

    Parameters
    ----------
    correct : int
        Guesses that are right.
    guesses : int
        Guesses that were made, a number fixed before the scores were seen.
    canaries : int
        All canaries, at least ``guesses``.
    guarantee : Guarantee
        The notion.
    level : float
        Its level.
    alpha : float
        Probability of a false alarm, in (0, 1).

    Notes
    -----
    Valid because: let r_i and h_i be the probabilities, over the outputs with at least i right guesses, of a random
    canary being guessed rightly and wrongly. The outputs with a right guess of a canary and those with the same guess
    where the coin fell otherwise are an event under two neighbouring distributions, so that the inverse of the cap at
    r_(i+1) is at most h_i; Theorem 3.2 of the paper turns that into a recursion from i = correct, where both are at
    most alpha times their shares, down to 0, where they add up to guesses / canaries. If the recursion exceeds that,
    the probability of ``correct`` right guesses is below alpha.
    """
    right, wrong = alpha * correct / canaries, alpha * (guesses - correct) / canaries
    invert = _inverse_cap(guarantee, level)
    for i in range(correct - 1, -1, -1):
        raised = max(wrong, invert(right))
        if raised == wrong:
            break  # then nothing changes any more
        right = min(1.0, right + i / (guesses - i) * (raised - wrong))
        wrong = raised
        if right + wrong > guesses / canaries:
            return True
    return right + wrong > guesses / canaries


def _inverse_cap(guarantee: Guarantee, level: float) -> Callable[[float], float]:
    """Smallest q at which the cap allows p; by the cap's symmetry 1 - cap(1 - p)."""

    def invert(p: float) -> float:
        return 1.0 - float(guarantee.cap(np.array(1.0 - p), level))

    return invert


def find_rejected_level(rejects: Callable[[float], bool], claimed: float, highest: float = _HIGHEST) -> float:
    """Find the largest level that is rejected with all smaller ones.

    Valid because: ``rejects`` is monotone, what refutes a level refutes smaller ones; so the level exceeds the truth
    only if the truth is rejected. The lower end of the last interval is returned.

    Parameters
    ----------
    rejects : callable
        Whether a level is rejected.
    claimed : float
        The claimed level, where the search begins; if it is rejected the result is at least that.
    highest : float
        No level above it is looked for.

    Returns
    -------
    float
        0 if no level above 0 is rejected.
    """
    low, high = 0.0, highest
    if 0 < claimed < highest:
        low, high = (claimed, high) if rejects(claimed) else (low, claimed)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rejects(middle) else (low, middle)
    return low


def find_largest_level(
    listed: Sequence[Case], rejects: Callable[[Case, float], bool], claimed: float, highest: float = _HIGHEST
) -> tuple[Case, float]:
    """Find the largest of several rejected levels, and whose it is.

    Valid because: it is the largest of the levels that `find_rejected_level` finds, and the first that has it. All of
    these are on one grid on either side of ``claimed``, the steps of which are left after all halvings. ``rejects`` is
    monotone, so that a case that does not reject the next level of the grid has none above the largest so far.

    Parameters
    ----------
    listed : sequence
        Cases, at least one.
    rejects : callable
        Whether a case rejects a level.
    claimed, highest : float
        As for `find_rejected_level`.
    """

    def find_level(case: Case) -> float:
        return find_rejected_level(lambda level: rejects(case, level), claimed, highest)

    best, bound = listed[0], find_level(listed[0])
    for case in listed[1:]:
        width = highest if not 0 < claimed < highest else highest - claimed if bound >= claimed else claimed
        if bound < highest and rejects(case, bound + width * 0.5**_HALVINGS) and (found := find_level(case)) > bound:
            best, bound = case, found
    return best, bound


class GuessWealth:
    """Wealth of bets on guesses, one after another, against pure DP.

    Parameters
    ----------
    right : ndarray of shape (n_guesses,)
        1.0 where a guess was right and 0.0 where it was wrong, in the order in which the coins were opened.
    sure : ndarray of shape (n_guesses,)
        Part of the stake that is put on each guess, in [0, 1]: a function of the scores and of the coins opened before.

    Notes
    -----
    Valid because: under epsilon-DP, given the output and all other coins, a guess is right with probability at most p =
    e^epsilon / (1 + e^epsilon). Which canary is next, what is guessed and how much is bet are functions of the output
    and of the coins that were opened before; so each factor 1 + s (1[right] - p) / p with s in [0, 1) has expectation
    at most 1 given the past. The product is a test supermartingale, as is the average over stakes, and reaches 1/alpha
    at any guess with probability at most alpha. No number of guesses has to be fixed.
    """

    def __init__(self, right: Array, sure: Array) -> None:
        self.right, self.sure = right, sure

    def path(self, epsilon: float) -> Array:
        """Natural logarithm of the wealth after each guess.

        Parameters
        ----------
        epsilon : float
            The level that is bet against.
        """
        if not len(self.right):
            return np.zeros(0)
        p = math.exp(-math.log1p(math.exp(-epsilon)))
        over = (self.right / p - 1.0) * self.sure
        paths = np.cumsum(np.log1p(STAKES[:, None] * over), axis=1)
        found: Array = special.logsumexp(paths, axis=0) - math.log(len(STAKES))
        return found

    def rejects(self, epsilon: float, alpha: float) -> bool:
        """Whether the wealth ever reaches 1/alpha.

        Parameters
        ----------
        epsilon : float
            The level.
        alpha : float
            Probability of a false alarm.
        """
        return bool(len(self.right)) and float(self.path(epsilon).max()) >= -math.log(alpha)
