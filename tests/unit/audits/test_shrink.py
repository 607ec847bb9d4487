"""Simpler events, their confirmation on fresh draws, and shrinking as a whole."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor import AddRemoveOne, Pair, PureDP, ReplaceOne
from auditor.audits.counterexamples.confirm import EventCounts, confirm_event
from auditor.audits.counterexamples.shrink import Shrunk, shrink_counterexample
from auditor.audits.counterexamples.simplify_event import round_cuts, simple_events, simplest_event, single_events
from auditor.datasets import Relation
from auditor.errors import SpecificationError, TargetError
from auditor.events.event_learner import Chain
from auditor.events.features import Numeric, Rank, Shape
from auditor.events.root_causes import cause_of, rank_simplicity
from auditor.targets.sampler import Sampler

CLAIM = PureDP(1.0)
#: A hundred alternating zeros and ones.
LONG = [0, 1] * 50

# ------------------------------------------------------------------------------------------ events


def test_cuts_are_rounded_and_places_in_an_order_are_not() -> None:
    cuts = [chain.cuts[0] for chain in round_cuts(Chain(Numeric("value"), "below", (0.4871,)))]
    assert cuts == [0.0, 0.4, 0.5, 0.48, 0.49, 0.487, 0.488]
    cuts = [chain.cuts[0] for chain in round_cuts(Chain(Numeric("value"), "below", (-15120.125,)))]
    assert cuts[:5] == [0.0, -15121.0, -15120.0, -20000.0, -10000.0]
    assert not list(round_cuts(Chain(Numeric("value"), "below", (17.0,))))
    assert not list(round_cuts(Chain(Numeric("value"), "below", (math.inf,))))
    assert not list(round_cuts(Chain(Rank(None, (1, 2), (0, 1), ("a", "b")), "below", (0.5,))))


def test_each_event_of_a_chain_stands_by_itself() -> None:
    chain = Chain(Numeric("value"), "below", (2.0, 1.0))
    assert single_events([chain, chain]) == [Chain(Numeric("value"), "below", (cut,)) for cut in (2.0, 1.0)]


def test_a_simple_event_is_preferred_and_said_with_few_digits() -> None:
    rng = np.random.default_rng(1)
    past, fresh = ((rng.laplace(0, 0.1, (400, 2)), rng.laplace((0, 1), 0.1, (400, 2))) for _ in range(2))
    chains = simple_events(*past, CLAIM)
    found = simplest_event(chains, past, fresh, CLAIM, 0.01)
    assert found is not None
    chain, counts, needed = found
    # Between two distributions of scale 0.1 at distance 1 there are several cuts of one digit.
    assert chain.words()[0] in [f"output[1] <= 0.{digit}" for digit in (3, 4, 5, 6, 7)]
    assert counts.n == 800
    assert needed < 40


def test_of_equally_simple_events_the_one_with_the_known_cause_is_taken() -> None:
    past: tuple[Any, Any] = [[1.0]] * 200, [[]] * 200
    chains = simple_events(*past, CLAIM)
    length = next(chain for chain in chains if isinstance(chain.feature, Shape) and chain.feature.kind == "length")
    for cause in {cause_of(chain) for chain in chains if rank_simplicity(chain) == rank_simplicity(length)}:
        found = simplest_event(chains, past, past, CLAIM, 0.01, cause)
        assert found is not None
        assert cause_of(found[0]) == cause


def test_no_event_is_found_where_there_is_none() -> None:
    # Two batches of one distribution: the best event's excess over the cap of epsilon = 1, a factor e, in 400 draws
    # would have to be worth 9.2 nats; below 1e-9 for any event, times some hundred events.
    rng = np.random.default_rng(2)
    past, fresh = ((rng.normal(size=400), rng.normal(size=400)) for _ in range(2))
    assert simplest_event(simple_events(*past, CLAIM), past, fresh, CLAIM, 0.01) is None


# ------------------------------------------------------------------------------------ confirmation


def response(data: Any, n: int, rng: np.random.Generator) -> Any:
    """Randomised response at exactly epsilon = 1."""
    return (rng.random(n) < 1 / (1 + math.exp(1 - 2 * data[0]))).astype(np.int64)


ONE = Chain(Numeric("value"), "above", (0.5,))


def test_a_claim_that_holds_exactly_is_confirmed_against_with_probability_alpha_at_most() -> None:
    # 200 confirmations at alpha = 0.05, on a pair that attains the level: the number of false ones is at most
    # Binomial(200, 0.05), which exceeds its quantile with probability below 1e-6.
    alarms = sum(
        confirm_event(
            Sampler(response, 0, f"boundary {k}"),
            CLAIM,
            Pair([1], [0]),
            ONE,
            EventCounts(80, 20, 100),
            alpha=0.05,
            most=400,
        ).reached
        for k in range(200)
    )
    assert alarms <= stats.binom.isf(1e-6, 200, 0.05)


def test_the_same_draws_come_again_and_are_counted_in_all() -> None:
    target = Sampler(lambda data, n, rng: data[0] + rng.laplace(0, 0.05, n), 3, "again")
    pair, before = Pair([1.0], [0.0]), EventCounts(50, 0, 50)
    first = confirm_event(target, CLAIM, pair, ONE, before, alpha=0.01, most=1_000)
    assert first.reached
    assert first.counts.n < 40
    again = confirm_event(target, CLAIM, pair, ONE, before, alpha=0.5, most=first.counts.n, to_the_end=True)
    assert again.counts == first.counts
    assert again.log_wealth == first.log_wealth


def test_a_call_that_raises_counts_as_the_worst() -> None:
    def sometimes(data: Any, n: int, rng: np.random.Generator) -> Any:
        if n > 1:
            raise ValueError
        return np.array([data[0]])

    sampler = Sampler(sometimes, 0, "raises", catching=True)
    found = confirm_event(sampler, CLAIM, Pair([1.0], [0.0]), ONE, EventCounts(50, 0, 50), alpha=0.01, most=8)
    assert found.counts == EventCounts(0, 0, 8)  # drawn one a call from then on
    assert not found.reached


# --------------------------------------------------------------------------------------- shrinking


def count(data: Any, n: int, rng: np.random.Generator) -> Any:
    """A count with twenty times too little noise, on a lattice so that bits tell nothing."""
    return np.round((np.sum(data) + rng.laplace(0, 0.05, n)) * 64) / 64


def shrunk(target: Any, pair: Pair, relation: Relation | None, **options: Any) -> Shrunk | None:
    arguments: dict[str, Any] = {"alpha": 0.01, "draws": 20_000, "values": [0, 1], **options}
    sampler = Sampler(target, 5, "claim", 10.0, catching=True)
    return shrink_counterexample(sampler, CLAIM, relation, pair, [], **arguments)


BIG = Pair(np.array([*LONG, 1]), np.array(LONG), "big")


def test_a_violation_is_shrunk_and_confirmed() -> None:
    found = shrunk(count, BIG, AddRemoveOne())
    assert found is not None
    assert found.pair.x.tolist() == [1]
    assert found.pair.y.tolist() == []
    assert found.pair.name == "big, shrunk"
    assert found.n <= 40
    assert found.x_count > 0.9 * found.n
    assert found.y_count < 0.1 * found.n
    assert found.log10_e_value >= 2
    assert len(found.chain.cuts) == 1
    assert found.cause
    assert 0 < found.draws <= 20_000
    assert not found.synthetic


def test_the_same_seed_gives_the_same_example() -> None:
    first, second = (shrunk(count, BIG, AddRemoveOne()) for _ in range(2))
    assert first is not None
    assert second is not None
    assert (first.chain, first.n, first.draws) == (second.chain, second.n, second.draws)


def test_made_up_rows_are_tried_first() -> None:
    private = Pair(np.array([37, 41, 58, 58]), np.array([37, 41, 58]), "private")
    made_up = [
        Pair(np.array([2, 2]), np.array([2, 2, 2]), "no neighbours"),
        Pair(np.array([1, 0]), np.array([0]), "ok"),
    ]
    made_up[0] = Pair(np.array([2, 2]), np.array([5, 5, 5]), "no neighbours")
    found = shrunk(count, private, AddRemoveOne(), synthetic=made_up, values=None)
    assert found is not None
    assert found.synthetic
    assert found.original is private
    assert set(found.pair.x.tolist()) | set(found.pair.y.tolist()) <= {0, 1}


def test_where_made_up_rows_do_not_violate_the_pair_itself_is_made_smaller() -> None:
    def large(data: Any, n: int, rng: np.random.Generator) -> Any:
        return count([float(np.max(data, initial=0) > 50)], n, rng)

    private = Pair(np.array([37, 41, 58]), np.array([37, 41]), "private")
    made_up = Pair(np.array([1, 0]), np.array([0]), "made up")
    found = shrunk(large, private, AddRemoveOne(), synthetic=[made_up], values=None)
    assert found is not None
    assert not found.synthetic
    assert found.pair.x.tolist() == [58]


def test_a_mechanism_that_keeps_its_claim_is_not_shrunk() -> None:
    # Two different pairs of an exact 1-DP mechanism: the first repetitions, at alpha = 1e-9 each, would have to fail.
    assert shrunk(response, Pair([1, 1], [0, 1]), ReplaceOne(), alpha=1e-9) is None


def test_a_smaller_dataset_on_which_the_target_raises_is_no_example_of_something_else() -> None:
    def needs_rows(data: Any, n: int, rng: np.random.Generator) -> Any:
        if len(data) < 4:
            raise ValueError("too few rows")
        return count(data, n, rng)

    found = shrunk(needs_rows, BIG, AddRemoveOne())
    assert found is not None
    # With three rows against four the exception tells them apart, which is a violation as well, and smaller.
    assert sorted((len(found.pair.x), len(found.pair.y))) == [3, 4]
    assert "ValueError" in found.chain.words()[0] or "output" in found.chain.words()[0]


def test_the_budget_in_draws_is_kept() -> None:
    drawn = 0

    def counted(data: Any, n: int, rng: np.random.Generator) -> Any:
        nonlocal drawn
        drawn += n
        return count(data, n, rng) if len(data) >= 100 else np.zeros(n)

    found = shrunk(counted, BIG, AddRemoveOne(), draws=2_000)
    assert found is not None
    assert len(found.pair.x) == 101
    assert found.draws <= 2_000
    assert drawn <= 2_000


def test_the_budget_in_seconds_is_kept() -> None:
    def slow(data: Any, n: int, rng: np.random.Generator) -> Any:
        time.sleep(0.001 * n)
        return count(data, n, rng) if len(data) >= 100 else np.zeros(n)

    begun = time.monotonic()
    shrunk(slow, BIG, AddRemoveOne(), draws=1_000_000, seconds=1.0)
    assert time.monotonic() - begun < 5


def test_nothing_that_the_example_was_chosen_by_counts_in_its_confirmation() -> None:
    first = shrunk(count, BIG, AddRemoveOne())
    assert first is not None
    left = first.draws - 2 * first.n

    def until_then(data: Any, n: int, rng: np.random.Generator) -> Any:
        nonlocal left
        left -= n
        return count(data, n, rng) if left >= 0 else np.zeros(n)

    assert shrunk(until_then, BIG, AddRemoveOne()) is None
    assert left < 0


def test_a_target_that_fails_ends_shrinking() -> None:
    calls = 0

    def dies(data: Any, n: int, rng: np.random.Generator) -> Any:
        nonlocal calls
        calls += 1
        if calls > 30:
            raise TargetError("the process died")
        return count(data, n, rng)

    assert shrunk(dies, BIG, AddRemoveOne()) is None
    assert calls <= 33


def test_a_known_event_is_confirmed_where_finding_one_again_takes_too_many_draws() -> None:
    # Learning an event at this level takes some thousand draws a side; 500 that are left to it are too few.
    def weak(data: Any, n: int, rng: np.random.Generator) -> Any:
        return np.sum(data) + rng.geometric(0.86, n) - rng.geometric(0.86, n)

    event = Chain(Numeric("value"), "above", (0.5,))
    sampler = Sampler(weak, 5, "claim", catching=True)
    # The event has probabilities 0.877 and 0.123, that is a level of 1.97: 200 draws a side suffice in nearly all runs.
    found = shrink_counterexample(sampler, CLAIM, None, Pair([1], [0]), [event], alpha=0.01, draws=4_000)
    assert found is not None
    assert found.pair.x == [1]


def test_another_pair_is_taken_where_the_first_one_had_luck_only() -> None:
    def some(data: Any, n: int, rng: np.random.Generator) -> Any:
        return count(data if len(data) > 3 else [0], n, rng)

    sound, broken = Pair(np.array([1, 1]), np.array([0, 1])), Pair(np.array([1, 1, 0, 0]), np.array([0, 1, 0, 0]))
    found = shrunk(some, sound, ReplaceOne(), others=[(broken, [ONE])])
    assert found is not None
    assert found.original is broken
    assert len(found.pair.x) == 4


@pytest.mark.parametrize("draws", [0, 31, True, 100.0])
def test_a_budget_that_is_none_is_refused(draws: Any) -> None:
    with pytest.raises(SpecificationError, match="draws"):
        shrunk(count, BIG, AddRemoveOne(), draws=draws)
