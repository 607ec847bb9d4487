"""What must be found, quickly: the cases of ``benchmarks/power.py``, with fewer runs.

The benchmark judges medians of 101 runs. A test of a median flickers when the engine is close to its target, so here
only a count is judged, with a bound that an engine as good as the measured one misses with probability at most 1e-6.
"""

from __future__ import annotations

import pytest
from scipy import stats

from auditor import AuditResult, Verdict, audit
from benchmarks.power import ALPHA, DRAWS_A_SIDE, PowerCase, cases
from tests.statistics import check_rates

#: Probability with which a test here fails for an engine as it was measured, whatever the seeds.
FALSE_ALARM = 1e-6
#: Probability of a verdict within the target that is taken for granted. Of 150 runs of each case, 136 (V4) to 150 had
#: one: below 0.7 the count of V4 would have had probability 1e-9. An engine with half of that is found.
REACHED = 0.7
#: Runs of each mechanism that keeps its claim, and their draws a side: a tenth of the benchmark's, for the time.
HELD_RUNS, HELD_DRAWS_A_SIDE = 15, 20_000
#: What 200,000 draws a side on Laplace noise of scale 1 have to certify of the true level, 1.
CERTIFIED = 0.9

CASES = list(enumerate(cases()))


def run(index: int, case: PowerCase, draws_a_side: int, seed: int, stop: str = "verdict") -> AuditResult:
    return audit(
        case.mechanism,
        case.claim,
        case.pair,
        alpha=ALPHA,
        draws=2 * draws_a_side,
        stop=stop,
        seed=seed,
        id=f"tests/power/{index}",
    )


def most(runs: int, probability: float) -> int:
    """Smallest count that a binomial variable reaches with probability at most 1e-6 (two counts are judged)."""
    return min(k for k in range(runs + 2) if stats.binom.sf(k - 1, runs, probability) <= FALSE_ALARM / 2)


def named(part: str) -> tuple[int, PowerCase]:
    """The case whose name contains this."""
    (found,) = [(index, case) for index, case in CASES if part in case.name]
    return found


def test_the_bounds_of_these_tests_are_what_they_say() -> None:
    assert most(HELD_RUNS, ALPHA) == 8
    assert stats.binom.sf(most(HELD_RUNS, ALPHA) - 1, HELD_RUNS, ALPHA) <= FALSE_ALARM / 2


def test_every_kind_of_case_is_there() -> None:
    assert sum(bool(case.draws_at_most) for _, case in CASES) == 7
    assert sum(case.draws_at_most is None for _, case in CASES) == 8


@pytest.mark.parametrize(
    ("index", "case"), [(i, c) for i, c in CASES if c.draws_at_most], ids=[c.name for _, c in CASES if c.draws_at_most]
)
def test_a_violation_is_found_within_the_targets_draws(index: int, case: PowerCase) -> None:
    # The budget is the target, so that a run counts exactly if it ends with a verdict.
    most_draws = case.draws_at_most
    assert most_draws

    def missed(seed: int) -> tuple[bool]:
        result = run(index, case, most_draws, seed)
        return (result.verdict != Verdict.VIOLATION or result.draws // 2 > most_draws,)

    check_rates(missed, f"without a verdict in {most_draws:,} draws a side", allowed=1 - REACHED, found=1 - REACHED / 2)


@pytest.mark.parametrize(
    ("index", "case"),
    [(i, c) for i, c in CASES if c.draws_at_most is None],
    ids=[c.name for _, c in CASES if c.draws_at_most is None],
)
def test_what_keeps_its_claim_is_not_flagged_more_often_than_alpha_allows(index: int, case: PowerCase) -> None:
    # Each run flags with probability at most alpha, and bounds the level wrongly with at most alpha. (Gaussian noise
    # of 3.7306 exceeds (1, 1e-5) by 1e-4, of which these draws see nothing.)
    results = [run(index, case, HELD_DRAWS_A_SIDE, seed) for seed in range(HELD_RUNS)]
    flagged = sum(result.verdict == Verdict.VIOLATION for result in results)
    # Bounds are on a grid with 9 digits.
    above = sum((result.lower_bound or 0.0) > case.exact * (1 + 1e-8) for result in results)
    assert flagged < most(HELD_RUNS, ALPHA)
    assert above < most(HELD_RUNS, ALPHA)


@pytest.mark.parametrize("seed", range(3))
def test_the_lower_bound_for_laplace_noise_is_tight(seed: int) -> None:
    # The best event, {output <= 0}, has probabilities 1/2 and 0.184: the logarithm of the ratio of its counts has a
    # standard deviation of 0.005. The bound is 0.975 as a rule, some 14 of these above what is asked for.
    index, case = named("Laplace, scale 1")
    assert case.exact == 1.0
    result = run(index, case, DRAWS_A_SIDE, seed, stop="budget")
    assert result.lower_bound is not None
    assert result.lower_bound >= CERTIFIED
