"""A defect that one of 200 pairs shows is found, and one that the first pair shows with few draws."""

from __future__ import annotations

import pytest
from scipy import stats

from auditor.audits.pair_search import keep_affordable
from auditor.audits.privacy_loop import FIRST
from benchmarks.many_pairs import DEFECTS, PAIRS, DefectOnOnePair, crowd, search, spread

LEVEL_TWO, HALF, _, COARSE, _, _ = DEFECTS

#: Probability that an audit finds the defect, taken for granted. With these budgets all of 12 audits found level 2 and
#: the frequent leak on 200 pairs, all of 40 the rare one, 35 and 39 of 40 what slow targets have, and all of 60 the
#: leak of the first pair.
FOUND = 0.75
#: Audits of each kind at most, and how many must find the defect: an engine as good as that misses this with
#: probability 6e-7.
AUDITS, ENOUGH = 13, 2


def check(defect: DefectOnOnePair, pairs: int, places: list[int], draws: int) -> None:
    """Fail unless enough audits find the defect; those that would change nothing are not made."""
    found = 0
    for seed, place in enumerate(places):
        found += search(defect, pairs, [place], draws, seed).found
        if found == ENOUGH:
            return
    pytest.fail(f"{found} of {len(places)} audits found it")


def test_the_bound_of_this_test_is_what_it_says() -> None:
    assert stats.binom.cdf(ENOUGH - 1, AUDITS, FOUND) <= 1e-6


@pytest.mark.parametrize(
    ("defect", "draws"), [(LEVEL_TWO, 60_000), (HALF, 60_000), (COARSE, 60_000)], ids=lambda v: getattr(v, "name", v)
)
def test_a_defect_on_any_of_200_pairs_is_found(defect: DefectOnOnePair, draws: int) -> None:
    check(defect, PAIRS, spread(PAIRS, AUDITS)[::-1], draws)  # the last pair is the hardest to come to


@pytest.mark.parametrize("defect", [LEVEL_TWO, HALF], ids=lambda d: d.name)
def test_a_slow_target_with_a_defect_on_an_early_pair_is_found(defect: DefectOnOnePair) -> None:
    draws = 2_500
    check(defect, len(keep_affordable(crowd(PAIRS), draws)), spread(15, AUDITS)[::-1], draws)


def test_a_defect_on_the_first_of_200_pairs_is_found_with_a_quarter_of_what_one_look_at_all_would_take() -> None:
    check(HALF, PAIRS, [0] * AUDITS, 2 * FIRST * PAIRS // 4)
