"""False alarms at zero margin: in at most 5 % of audits of mechanisms that just keep their claim.

Every family's exact level is the claimed level. Audits at alpha = 0.05, to a verdict and to the end of the budget, are
judged by a sequential test that fails at a rate of 5 % with a probability of at most one in a million, and finds one of
25 % (`tests.statistics.check_rates`); the same for lower bounds above the exact level. The harness is held against
engines that are known to be invalid, so that it is seen to fail.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import RenyiDP, TradeoffCurve, audit
from auditor.evidence.two_sample_bet import Stake, Wealth
from auditor.privacy.guarantees import Guarantee
from auditor.results import Verdict
from benchmarks.families import ALPHA, EXTREMES, FAMILIES, STOPS, Family, NullAudit, randomised_response, trial
from benchmarks.spread import VectorCase
from tests.statistics import check_audits

#: A tenth of what `benchmarks.false_alarms` draws, which takes an hour and is published.
DRAWS_A_SIDE = 10_000
FAMILY_NAMES = [family.name for family in FAMILIES]


@pytest.mark.parametrize("family", FAMILIES, ids=FAMILY_NAMES)
def test_false_alarms_are_rare_by_either_stopping_rule(family: Family) -> None:
    for stop in STOPS:
        check_audits(partial(trial, family, stop, draws_a_side=DRAWS_A_SIDE))


@pytest.mark.parametrize("family", EXTREMES, ids=lambda family: family.name)
def test_outputs_at_the_limits_of_doubles_raise_no_more_alarms(family: Family) -> None:
    check_audits(lambda seed: trial(family, "verdict", seed, 2_000))


def test_sums_over_twenty_coordinates_raise_no_more_alarms() -> None:
    # Each coordinate loses 1/20, so that the sum of the scores is what is bet on: exactly 1 in all.
    vector = VectorCase("geometric", 20, 1, "both", True)
    family = Family("twenty coordinates", vector.mechanism, vector.claim, (vector.pair,))
    check_audits(lambda seed: trial(family, "verdict", seed, 400))


@pytest.mark.parametrize("family", FAMILIES, ids=FAMILY_NAMES)
def test_both_rules_give_the_same_audit_until_the_wealth_is_near(family: Family) -> None:
    for seed in range(4):
        verdict, budget = (
            audit(
                family.mechanism,
                family.guarantee,
                family.pairs,
                id=family.name,
                alpha=ALPHA,
                draws=8_000,
                seed=seed,
                stop=stop,
            )
            for stop in STOPS
        )
        wealth = Wealth(family.guarantee, np.array([family.guarantee.level]))
        for one, other in zip(verdict.record["chunks"], budget.record["chunks"], strict=False):
            if one != other:  # smaller, where 2.5 nats at most are missing
                assert one[1] < other[1]
                assert 0 < math.log(1 / ALPHA) - wealth.current[0] < 2.5
                break
            wealth.bet(None if one[2] is None else Stake(*one[2]))
        else:
            assert (verdict.verdict == Verdict.VIOLATION) == (budget.verdict == Verdict.VIOLATION)
            if verdict.verdict != Verdict.VIOLATION:
                assert verdict.draws == budget.draws == 8_000
                assert verdict.lower_bound == budget.lower_bound


@pytest.mark.parametrize("family", FAMILIES, ids=FAMILY_NAMES)
def test_a_trial_is_what_the_public_function_finds(family: Family) -> None:
    # Also a claim of half the level, so that there are alarms to agree on.
    for seed in range(2):
        for claim in (family.guarantee, halved(family.guarantee)):
            outcome = trial(Family(family.name, family.mechanism, claim, family.pairs), "verdict", seed, 4_000)
            result = audit(family.mechanism, claim, family.pairs, id=family.name, alpha=ALPHA, draws=8_000, seed=seed)
            assert result.lower_bound is not None
            assert outcome == NullAudit(result.verdict == Verdict.VIOLATION, result.lower_bound > claim.level)


def halved(claim: Guarantee) -> Guarantee:
    """A claim of half the level; for notions whose level is a factor, of half of what it multiplies."""
    match claim:
        case RenyiDP(bounds):
            return RenyiDP({order: bound / 2 for order, bound in bounds.items()})
        case TradeoffCurve(alpha, beta):
            return TradeoffCurve(alpha, tuple(1 - a - (1 - a - b) / 2 for a, b in zip(alpha, beta, strict=True)))
    name = next(iter(claim.parameters()))
    return type(claim)(**{**claim.parameters(), name: claim.level / 2})


# -------------------------------------------------------------------------- tests of this test

TRUTH = math.e / (1 + math.e)
#: Amount that they bet; small, so that their wealth hardly overshoots 1/alpha.
S = 0.2


def factors(rng: np.random.Generator) -> NDArray[np.float64]:
    """Factors of the bet on the event 1 of randomised response at its exact level, draw by draw, shape (5000,).

    The point is the kink of the cap, (p0, q0) = (TRUTH, 1 - TRUTH), with slope 1. This is also what a bet on the event
    0 for the other order gives: there x and y change places and 1 - TRUTH - (1 - x) is x - TRUTH.
    """
    x, y = rng.random(5_000) < TRUTH, rng.random(5_000) >= TRUTH
    found: NDArray[np.float64] = (1 + S * (x - TRUTH)) * (1 - S * (y - (1 - TRUTH)))
    return found


def outcome(log_wealth: NDArray[np.float64]) -> NullAudit:
    alarm = bool(log_wealth.max() >= math.log(1 / ALPHA))
    return NullAudit(alarm, alarm)


def one_order(seed: int) -> NullAudit:
    """Valid: one order of the pair."""
    return outcome(np.cumsum(np.log(factors(np.random.default_rng(seed)))))


def both_orders_on_shared_draws(seed: int) -> NullAudit:
    """Invalid: the product of the e-values of both orders of the pair on the same draws (design, section 3)."""
    one = other = factors(np.random.default_rng(seed))
    return outcome(np.cumsum(np.log(one * other)))


def both_orders_averaged(seed: int) -> NullAudit:
    """Valid: the average of the wealths of both orders on the same draws."""
    one = other = np.cumsum(np.log(factors(np.random.default_rng(seed))))
    return outcome(np.logaddexp(one, other) - math.log(2))


def events_chosen_on_the_draws_they_are_judged_by(seed: int) -> NullAudit:
    """Invalid: in each chunk, the estimates and the event are those of the chunk itself."""
    rng = np.random.default_rng(seed)
    claim = FAMILIES[0].guarantee
    wealth = Wealth(claim, np.array([claim.level]))
    for _ in range(40):
        n = 100
        x = int(randomised_response([1], n, rng).sum())
        y = int(randomised_response([0], n, rng).sum())
        if (n - y) / (x + 1) < (n - x) / (y + 1):  # the more telling of the two events 1 and 0
            x, y = n - y, n - x
        wealth.bet(Stake(0, 0, ((x + 1) / (n + 2),), ((y + 1) / (n + 2),), (n - x, x), (n - y, y)))
    return outcome(wealth.best)


def test_this_test_can_fail() -> None:
    # The product is the square of a valid wealth, which reaches the root of 1/alpha with a probability of nearly
    # 20^-1/2 = 0.22.
    with pytest.raises(AssertionError, match="false alarms in"):
        check_audits(both_orders_on_shared_draws)


@pytest.mark.parametrize("engine", [one_order, both_orders_averaged])
def test_the_same_engine_without_the_mistake_passes(engine: Callable[[int], NullAudit]) -> None:
    check_audits(engine)


def test_the_product_of_both_orders_gains_on_the_boundary_and_one_order_does_not() -> None:
    # Exact expectation over the four outcomes of a draw of each.
    product = alone = 0.0
    for (x, mass_x), (y, mass_y) in itertools.product(((1, TRUTH), (0, 1 - TRUTH)), ((1, 1 - TRUTH), (0, TRUTH))):
        one = (1 + S * (x - TRUTH)) * (1 - S * (y - (1 - TRUTH)))
        other = (1 + S * ((1 - y) - TRUTH)) * (1 - S * ((1 - x) - (1 - TRUTH)))
        alone += mass_x * mass_y * one
        product += mass_x * mass_y * one * other
    assert alone == pytest.approx(1.0)
    assert product == pytest.approx((1 + S * S * TRUTH * (1 - TRUTH)) ** 2)


def test_this_test_finds_events_chosen_on_the_draws_they_are_judged_by() -> None:
    with pytest.raises(AssertionError, match="false alarms in"):
        check_audits(events_chosen_on_the_draws_they_are_judged_by)
