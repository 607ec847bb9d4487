"""Pitfalls by rung: every mutant of DP-SGD is in the table, and has its claims."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from auditor.privacy.guarantees import PureDP
from benchmarks import recorded_training
from benchmarks.training import ALPHA, level_of_guesses
from benchmarks.training_rungs import PITFALLS, Pitfall, claims_of, find_in_one_run, steps_needed
from mechanisms.training.dp_sgd_mutants import MUTANTS


def test_every_mutant_is_in_the_table() -> None:
    assert sorted(one.mutant for one in PITFALLS) == sorted(MUTANTS)
    recorded = {one.recorded for one in PITFALLS} - {None, "longer"}
    assert recorded <= set(recorded_training.PITFALLS)


@pytest.mark.parametrize("one", PITFALLS, ids=lambda one: one.mutant)
def test_every_pitfall_is_claimed_to_be_refuted_by_runs(one: Pitfall) -> None:
    levels = claims_of(one.mutant)
    assert str(levels["L1"].draft.expected) == "violation"
    # Where readings have a distribution, it is known without a run.
    assert ("L0" in levels) == hasattr(levels["L1"].draft.mechanism, "law")


def test_rungs_are_measured() -> None:
    # Coordinates without any noise show in every record, and four times the level in scores of 1,000 canaries.
    assert steps_needed("layer without noise", 1) == "5 (violation)"
    assert find_in_one_run("accumulation_without_factor", 0) == "violation"


def test_the_level_of_guesses_is_that_of_the_binomial_test() -> None:
    p = math.e / (1 + math.e)
    tests = (stats.binomtest(k, 200, p, alternative="greater").pvalue for k in range(201))
    assert level_of_guesses(PureDP(1.0), 200) == pytest.approx(next(value for value in tests if value <= ALPHA))
