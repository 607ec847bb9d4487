"""False alarms of conformity at zero margin: in at most 5 % of audits of samplers that just follow their distribution.

Of 200 audits at alpha = 0.05 no more may raise an alarm than a true rate of 5 % would exceed with a probability of one
in a million. The harness is held against engines that are known to be invalid, so that it is seen to fail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from auditor.audits.conformity import collect_cells
from auditor.audits.privacy_loop import Settings
from auditor.evidence.multinomial import Multinomials
from auditor.targets.sampler import Sampler
from benchmarks.samplers import ALPHA, FAMILIES, family_cells, family_trial
from tests.statistics import check_rates

DRAWS = 2_000
NAMES = [family.name for family in FAMILIES]
LOADED = next(k for k, family in enumerate(FAMILIES) if family.error > 0.01)


def check(family: int) -> None:
    """The harness: fails if the null is rejected too often for a rate of 5 %."""
    check_rates(lambda seed: [family_trial(family, seed, DRAWS).rejected], "false alarms")


@pytest.mark.parametrize("family", range(len(FAMILIES)), ids=NAMES)
def test_false_alarms_are_rare(family: int) -> None:
    """False alarm: 1e-6. A look after each chunk, so the rate is that at any time."""
    check(family)


@pytest.mark.parametrize("family", range(len(FAMILIES)), ids=NAMES)
def test_both_stopping_rules_raise_the_same_alarms_and_bound_as_often(family: int) -> None:
    """The alarm is that the wealth ever reached the threshold; a bound above the stated level is the same event."""
    level = math.log1p(FAMILIES[family].error)
    threshold = -math.log(0.5)  # a level at which there are alarms at all
    for seed in range(30):
        found = []
        for stop in ("verdict", "budget"):
            settings = Settings(alpha=0.5, draws=1_000, seed=seed, stop=stop)
            sampler = Sampler(FAMILIES[family].draw, seed, FAMILIES[family].name)
            tally = collect_cells(sampler, FAMILIES[family].datasets, family_cells(family), level, settings)
            assert (tally.bound > level) == (tally.highest > threshold)
            found.append(tally)
        by_verdict, at_budget = found
        assert by_verdict.path == at_budget.path[: len(by_verdict.path)]
        assert (by_verdict.highest >= threshold) == (at_budget.highest >= threshold)


def test_the_harness_finds_a_null_that_is_not_widened() -> None:
    """The loaded die is no fair one: without the error that it is allowed nearly every audit is an alarm."""
    family = FAMILIES[LOADED]
    fair = [
        collect_cells(
            Sampler(family.draw, seed, family.name),
            family.datasets,
            family_cells(LOADED),
            0.0,
            Settings(alpha=ALPHA, draws=20_000, seed=seed),
        )
        for seed in range(20)
    ]
    assert sum(tally.highest >= -math.log(ALPHA) for tally in fair) == 20


def test_the_harness_finds_a_bet_on_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A likelihood ratio with the observed frequencies themselves is no e-process: it alarms nearly always."""

    def hindsight(self: Multinomials, counts: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        return np.array(
            [
                special.rel_entr(c[:-1], c.sum() * p / p.sum()).sum()
                for p, c in zip(self.probabilities, counts, strict=True)
            ]
        )

    monkeypatch.setattr(Multinomials, "log_wealth", hindsight)
    with pytest.raises(AssertionError, match="false alarms"):
        check(0)


def test_views_of_the_same_draws_must_not_be_multiplied() -> None:
    """Two views that are one: each wealth has an expectation of exactly 1, their product of more."""
    pi, n = np.array([0.9, 0.1]), 50
    p = stats.binom.pmf(np.arange(n + 1), n, pi[1])
    wealths = np.exp([Multinomials([pi]).log_wealth([np.array([n - k, k, 0])])[0] for k in range(n + 1)])
    assert float(p @ wealths) == pytest.approx(1, rel=1e-6)
    assert float(p @ wealths**2) > 1.1
