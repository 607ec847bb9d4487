"""False alarms of audits that search for their pairs, at zero margin: at most 5 % at alpha = 0.05.

Randomised response of the parity of the rows: every replaced row flips the parity, so every pair is at the claimed
level exactly, and the search has nothing to find but luck.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from auditor import PureDP, ReplaceOne, Verdict, audit, pairs_of

ALPHA = 0.05
AUDITS = 200
#: Draws of an audit, both sides, and of its search, which looks at seven pairs.
DRAWS, SEARCH_DRAWS = 4_000, 2_000
#: The true answer is kept with this probability, so the level is ln 3.
KEPT = 0.75
STRATEGY = pairs_of(ReplaceOne(), st.integers(0, 1), max_size=6)


def parity(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Randomised response of the parity."""
    return (int(np.sum(data)) + (rng.random(n) >= KEPT)) % 2


def most(audits: int) -> int:
    """More alarms than this have a probability of at most 1e-6 for a rate of 5 %."""
    return int(stats.binom.isf(1e-6, audits, ALPHA))


def test_false_alarms_are_rare_on_pairs_that_were_searched() -> None:
    claim = PureDP(math.log(KEPT / (1 - KEPT)))
    alarms = above = 0
    for seed in range(AUDITS):
        result = audit(parity, claim, STRATEGY, draws=DRAWS, search_draws=SEARCH_DRAWS, seed=seed, alpha=ALPHA)
        assert result.verdict != Verdict.ERROR
        assert result.lower_bound is not None
        alarms += result.verdict == Verdict.VIOLATION
        above += result.lower_bound > claim.level * (1 + 1e-9)
    assert alarms <= most(AUDITS), f"{alarms} false alarms in {AUDITS} audits"
    assert above <= most(AUDITS), f"{above} lower bounds above the exact level in {AUDITS} audits"


def test_this_test_would_find_a_search_whose_own_draws_were_evidence() -> None:
    """The best of 100 pairs by an exact test of its pilot: valid for one pair, not for the best."""
    rng = np.random.default_rng(0)
    n, pairs = 100, 100
    # Under the claim the difference of the two counts of the event is at most that of these distributions.
    x = rng.binomial(n, KEPT, (AUDITS, pairs))
    y = rng.binomial(n, 1 - KEPT, (AUDITS, pairs))
    law = np.asarray(stats.binom.pmf(np.arange(n + 1), n, KEPT))
    difference = np.convolve(law, law)
    tail = np.cumsum(difference[::-1])[::-1]  # distribution of x + (n - y)
    p_values = tail[x + n - y]
    one = int((p_values[:, 0] <= ALPHA).sum())
    best = int((p_values.min(axis=1) <= ALPHA).sum())
    assert one <= most(AUDITS) < best
