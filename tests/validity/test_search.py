"""False alarms of audits that search for their pairs, at zero margin: at most 5 % at alpha = 0.05.

Randomised response of the parity of the rows: every replaced row flips the parity, so every pair is at the claimed
level exactly, and the search has nothing to find but luck.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from auditor import PureDP, ReplaceOne, Verdict, audit, pairs_of
from tests.statistics import check_rates

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


def test_false_alarms_are_rare_on_pairs_that_were_searched() -> None:
    claim = PureDP(math.log(KEPT / (1 - KEPT)))

    def outcomes(seed: int) -> tuple[bool, bool]:
        result = audit(parity, claim, STRATEGY, draws=DRAWS, search_draws=SEARCH_DRAWS, seed=seed, alpha=ALPHA)
        assert result.verdict != Verdict.ERROR
        assert result.lower_bound is not None
        return result.verdict == Verdict.VIOLATION, result.lower_bound > claim.level * (1 + 1e-9)

    check_rates(outcomes, "false alarms", "lower bounds above the exact level")


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
    check_rates(lambda audit: [p_values[audit, 0] <= ALPHA], "false alarms")
    with pytest.raises(AssertionError, match="false alarms"):
        check_rates(lambda audit: [p_values[audit].min() <= ALPHA], "false alarms")
