"""False alarms with 200 pairs in play, at zero margin: at most 5 % at alpha = 0.05, without any correction.

Every pair is at the claimed level exactly, so that wherever the audit turns it has nothing to find but luck: that of
the pair which looks worst of 200 on the draws so far. The harness is held against auditors that take that luck for
evidence.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.audits import pair_search
from auditor.audits.privacy_loop import FIRST, Settings, collect_evidence
from auditor.targets.sampler import Sampler
from benchmarks.families import ALPHA, Family, trial
from benchmarks.many_pairs import NULLS, PAIRS
from tests.statistics import check_audits, check_rates

RESPONSE, LAPLACE, EXCLUSIVE = NULLS


def check(null: Family, stop: str, draws: int) -> None:
    """The harness: fails if alarms or bounds above the exact level are too many for a rate of 5 %."""
    check_audits(lambda seed: trial(null, stop, seed, draws))


# reports/many_pairs.md has several hundred audits of each null with all pairs opened in their turn, which take minutes.


@pytest.mark.parametrize("null", [RESPONSE, LAPLACE], ids=lambda null: null.name)
def test_false_alarms_are_rare_where_the_luckiest_of_200_pairs_is_followed(
    null: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All are opened at once, so that there is as much luck to choose from as can be, and 400 draws a side follow it.
    monkeypatch.setattr(pair_search, "OPENING", 1.0)
    monkeypatch.setattr(pair_search, "OPENING_EARLY", 1.0)
    side = pair_search.FIRST_OF_MANY * PAIRS + 400
    check(null, "budget", side)
    found = collect_evidence(
        Sampler(null.mechanism, 0, null.name), null.guarantee, null.pairs, Settings(draws=2 * side)
    )
    assert {chunk.pair for chunk in found.chunks} == set(range(PAIRS))


@pytest.mark.parametrize(("null", "draws"), [(RESPONSE, 1_200), (EXCLUSIVE, 600)], ids=lambda v: getattr(v, "name", v))
def test_false_alarms_are_rare_where_pairs_are_opened_in_their_turn_or_have_outputs_of_their_own(
    null: Family, draws: int
) -> None:
    check(null, "verdict", draws)


# ----------------------------------------------------------------------------- known to be wrong


def p_values(x: NDArray[np.int64], y: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    """Exact p-values of the claim from counts of the event under P and under Q, n draws each.

    Under the claim the difference of the two counts is at most, in distribution, that of two binomials at the claimed
    level.
    """
    kept = math.e / (1 + math.e)
    law = np.convolve(stats.binom.pmf(np.arange(n + 1), n, kept), stats.binom.pmf(np.arange(n + 1), n, kept))
    tail: NDArray[np.float64] = np.cumsum(law[::-1])[::-1]  # of x + (n - y)
    return np.asarray(tail[x + n - y])


@pytest.mark.parametrize("n", [FIRST, 20, 100])
def test_the_harness_finds_auditors_that_judge_the_best_pair_on_the_draws_that_chose_it(n: int) -> None:
    audits, kept = 1_000, math.e / (1 + math.e)

    def check_alarms(p: NDArray[np.float64]) -> None:
        check_rates(lambda audit: [p[audit] <= ALPHA], "false alarms")

    rng = np.random.default_rng(0)
    x, y = rng.binomial(n, kept, (audits, PAIRS)), rng.binomial(n, 1 - kept, (audits, PAIRS))
    # One pair, settled beforehand: a valid test.
    check_alarms(p_values(x[:, 0], y[:, 0], n))
    # The best of 200 tests without a correction.
    with pytest.raises(AssertionError, match="false alarms"):
        check_alarms(p_values(x, y, n).min(axis=1))
    # The pair that looks best on some draws, judged on these and as many again.
    best = (np.arange(audits), np.argmax(x - y, axis=1))
    more_x, more_y = x[best] + rng.binomial(n, kept, audits), y[best] + rng.binomial(n, 1 - kept, audits)
    if n == FIRST:
        with pytest.raises(AssertionError, match="false alarms"):
            check_alarms(p_values(more_x, more_y, 2 * n))
    # Judged on the other draws alone it is valid.
    fresh = p_values(rng.binomial(n, kept, audits), rng.binomial(n, 1 - kept, audits), n)
    check_alarms(fresh)
