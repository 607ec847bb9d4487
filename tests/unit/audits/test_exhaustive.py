"""Exhaustive reconstruction: the search against trying everything, the theorem's distance, the mutants, the adversary.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.audits.adversaries import exhaustive as module
from auditor.audits.adversaries.bounds import bound_guessing
from auditor.audits.adversaries.exhaustive import (
    Exhaustive,
    Goal,
    enumerate_bits,
    from_all_subsets,
    from_queries,
    subset_counts,
)
from auditor.audits.adversaries.game import Game, run_game
from auditor.audits.context import Question
from auditor.audits.privacy_loop import Settings
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import ApproxDP, PureDP
from auditor.results import Verdict
from mechanisms.additive_noise.column_counts import LaplaceCounts
from mechanisms.lower_bounds.noisy_counts import UniformCounts
from mechanisms.lower_bounds.subset_answers import (
    ClosedMidpointAnswers,
    ConsistentReconstruction,
    ExactAnswers,
    FarthestConsistent,
    MidpointAnswers,
    NonStrictConsistency,
    StopsAtFirstFailure,
    TrueQueries,
    UniformAnswers,
    partner,
    worst_distance,
)

RNG = np.random.default_rng(20240601)


def tried(queries: Any, answers: Any, error: float) -> list[tuple[tuple[int, ...], float]]:
    """All consistent candidates in lexicographic order, by definition, with their largest errors."""
    found = []
    for candidate in itertools.product((0, 1), repeat=queries.shape[1]):
        off = max(
            abs(float(y) - sum(a * b for a, b in zip(q, candidate, strict=True)))
            for q, y in zip(queries, answers, strict=True)
        )
        if off < error:
            found.append((candidate, off))
    return found


def noisy(people: int, error: float, trials: int) -> Any:
    counts = subset_counts(RNG.integers(0, 2, (trials, people), dtype=np.int8))
    return counts + RNG.uniform(-error, error, counts.shape)


# ----------------------------------------------------------------------------------- the search


def test_subset_counts_are_inner_products() -> None:
    assert np.array_equal(subset_counts(enumerate_bits(5)), enumerate_bits(5) @ enumerate_bits(5).T)


@pytest.mark.parametrize("error", [0.4, 1.0, 1.7, 3.0])
@pytest.mark.parametrize("shrunk", [False, True])
def test_the_search_finds_what_trying_everything_finds(error: float, shrunk: bool, monkeypatch: Any) -> None:
    if shrunk:  # one prefix a block
        monkeypatch.setattr(module, "_BLOCK", 1)
    answers = noisy(5, 0.99 * error, 6)
    # Half-way answers have many consistent candidates, and ties.
    answers[0] = (
        MidpointAnswers(error).draw(np.array([1, 0, 0, 1, 0], dtype=np.int8), 1, RNG)[0] if error < 1.5 else answers[0]
    )
    for limit in (error, 2 * error):
        known = [tried(enumerate_bits(5), row, limit) for row in answers]
        everything = from_all_subsets(answers, limit, "all")
        for i, wanted in enumerate(known):
            assert [tuple(bits) for bits in everything.bits[everything.trial == i].tolist()] == [x for x, _ in wanted]
            assert everything.largest[everything.trial == i] == pytest.approx([off for _, off in wanted])
        first, closest = from_all_subsets(answers, limit, "first"), from_all_subsets(answers, limit, "closest")
        assert first.trial.tolist() == closest.trial.tolist() == list(range(len(answers)))
        assert first.bits.tolist() == [list(wanted[0][0]) for wanted in known]
        assert closest.largest == pytest.approx([min(off for _, off in wanted) for wanted in known])


@pytest.mark.parametrize("goal", ["first", "all", "closest"])
def test_answers_that_fit_nothing(goal: Goal) -> None:
    answers = np.full((3, 16), 10.0)
    assert from_all_subsets(answers, 2.0, goal).trial.size == 0
    assert from_queries(enumerate_bits(4), answers, 2.0, goal).bits.shape == (0, 4)


def test_without_a_limit_the_closest_is_found_for_any_answers() -> None:
    answers = RNG.normal(2, 3, (8, 16))
    found = from_all_subsets(answers, goal="closest")
    best = [min(off for _, off in tried(enumerate_bits(4), row, math.inf)) for row in answers]
    assert found.largest == pytest.approx(best)
    assert from_queries(enumerate_bits(4), answers, goal="closest").largest == pytest.approx(best)


def test_given_queries_against_trying_everything() -> None:
    queries = RNG.integers(0, 2, (9, 5), dtype=np.int8)
    answers = RNG.integers(0, 2, (7, 5)) @ queries.T + RNG.uniform(-1.2, 1.2, (7, 9))
    known = [tried(queries, row, 1.3) for row in answers]
    everything = from_queries(queries, answers, 1.3, "all")
    for i, wanted in enumerate(known):
        found = {tuple(bits) for bits in everything.bits[everything.trial == i].tolist()}
        assert found == {x for x, _ in wanted}
    closest = from_queries(queries, answers, 1.3, "closest")
    assert closest.largest == pytest.approx([min(off for _, off in wanted) for wanted in known])
    first = from_queries(queries, answers, 1.3, "first")
    assert all(
        tuple(bits) in {x for x, _ in known[i]} for i, bits in zip(first.trial, first.bits.tolist(), strict=True)
    )


def test_twenty_people_are_in_reach() -> None:
    x = RNG.integers(0, 2, 20, dtype=np.int8)
    # 2^19 queries have each person: that all noises leave room for another bit has probability (3/4)^(2^19).
    assert from_all_subsets(UniformAnswers(2.0).draw(x, 1, RNG), 2.0).bits.tolist() == [x.tolist()]


@pytest.mark.parametrize("shape", [(2, 3), (1, 1 << 21), (0,)])
def test_answers_of_another_number_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises((SpecificationError, IndexError)):
        from_all_subsets(np.zeros(shape))


def test_queries_and_answers_must_match() -> None:
    with pytest.raises(SpecificationError, match=r"\(16, 4\) and \(1, 15\)"):
        from_queries(enumerate_bits(4), np.zeros((1, 15)))


# ---------------------------------------------------------------------------------- the theorem


@pytest.mark.parametrize("error", [0.3, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0])
def test_the_worst_distance_is_that_of_all_differences(error: float) -> None:
    """Answers within E of both exist if and only if no query tells x from x' by 2 E or more."""
    z = np.array(list(itertools.product((-1, 0, 1), repeat=8)))
    apart = np.maximum((z == 1).sum(axis=1), (z == -1).sum(axis=1))
    assert np.abs(z).sum(axis=1)[apart < 2 * error].max() == worst_distance(error) < 4 * error


@pytest.mark.parametrize("error", [0.5, 1.0, 1.25, 1.5, 2.0])
def test_midpoint_answers_are_within_the_error_of_both(error: float) -> None:
    x = enumerate_bits(8)[0b10110100]
    answers = MidpointAnswers(error)
    other = partner(x, answers.flips)
    y = answers.draw(x, 1, RNG)[0]
    assert (x != other).sum() == worst_distance(error)
    for one in (x, other):
        assert np.abs(y - subset_counts(one)).max() < error


def test_uniform_answers_are_within_the_error() -> None:
    x = enumerate_bits(10)[700]
    off = np.abs(UniformAnswers(1.5).draw(x, 200, RNG) - subset_counts(x))
    assert 1.49 < off.max() < 1.5
    assert np.array_equal(ExactAnswers(1.0).draw(x, 2, RNG)[1], subset_counts(x))


def test_the_farthest_candidate_is_the_farthest() -> None:
    x = enumerate_bits(6)[0b000111]
    for answers in (MidpointAnswers(1.0), UniformAnswers(2.5)):
        drawn = answers.draw(x, 5, np.random.default_rng(3))
        wrong = (FarthestConsistent(answers).guessed(drawn, x) != x).sum(axis=1)
        known = [max(sum(np.array(c) != x) for c, _ in tried(enumerate_bits(6), row, answers.error)) for row in drawn]
        assert wrong.tolist() == known


def test_answers_beyond_the_error_are_refused() -> None:
    x = enumerate_bits(6)[0b000111]
    for attack in (ConsistentReconstruction, FarthestConsistent):
        with pytest.raises(ValueError, match="within the error of some x"):
            attack(ClosedMidpointAnswers(1.0))(x, 1, RNG)
    with pytest.raises(ValueError, match="at least 3 people with the bit 0"):
        partner(np.ones(4, dtype=np.int8), 3)
    with pytest.raises(ValueError, match="multiple of 1/2"):
        ClosedMidpointAnswers(0.7).draw(x, 1, RNG)


# ---------------------------------------------------------------------------------- the mutants


def test_not_strict_reaches_four_times_the_error() -> None:
    x = np.repeat(np.array([1, 0], dtype=np.int8), 4)
    for error in (0.5, 1.0, 1.5, 2.0):
        assert NonStrictConsistency(ClosedMidpointAnswers(error))(x, 1, RNG).tolist() == [4 * error]


def test_stopping_early_is_what_its_loop_does() -> None:
    x = enumerate_bits(5)[0b10111]
    attack = StopsAtFirstFailure(UniformAnswers(1.2))
    answers = attack.answers.draw(x, 30, RNG)
    for row, guess in zip(answers, attack.guessed(answers, x).tolist(), strict=True):
        left = list(itertools.product((0, 1), repeat=5))
        for query, y in zip(enumerate_bits(5), row, strict=True):
            kept = [c for c in left if abs(y - query @ np.array(c)) < 1.2]
            stop, left = len(kept) < len(left), kept
            if stop:
                break
        assert guess == list(left[0])


def test_true_queries_are_what_their_loop_does() -> None:
    attack = TrueQueries(UniformAnswers(1.7))
    for x in enumerate_bits(5)[[0b10110, 0b00001, 0b11111]]:
        answers = attack.answers.draw(x, 10, RNG)
        numbers = (int((1 - x) @ (1 << np.arange(5))), int(x @ (1 << np.arange(5))))
        for row, guess in zip(answers, attack.guessed(answers, x).tolist(), strict=True):
            wanted = tried(np.array([1 - x, x]), row[list(numbers)], 1.7)
            assert guess == list(wanted[0][0])


# -------------------------------------------------------------------------------- the adversary


@pytest.mark.parametrize(
    "played",
    [
        Exhaustive(8),
        Exhaustive(8, queries=64),
        Exhaustive(8, error=0.5),
        Exhaustive(3, matrix=((1, 0, 0), (1, 1, 0), (1, 1, 1))),
    ],
    ids=str,
)
def test_accurate_answers_give_all_bits_away(played: Exhaustive) -> None:
    target = UniformCounts(0.4)
    assert Game(target, played)(None, 25, RNG).tolist() == [1.0] * 25


def test_noise_for_all_queries_gives_nothing_away() -> None:
    scores = Game(LaplaceCounts(256, 0.01), Exhaustive(8))(None, 400, RNG)
    # 3,200 guesses whose probability of being right is at most that of the bound at 0.01, 0.5025.
    assert stats.binomtest(round(float(scores.sum()) * 8), 3200, 0.5025, alternative="greater").pvalue > 1e-6


def test_where_nothing_fits_zeros_are_guessed() -> None:
    assert Exhaustive(4, error=0.5).reconstructed(np.full((2, 16), 9.0)).tolist() == [[0] * 4] * 2


def test_the_adversary_says_what_it_does() -> None:
    played = Exhaustive(10, queries=40)
    assert str(played) == "exhaustive reconstruction of 10 bits from 40 subset counts"
    assert str(Exhaustive(10)) == "exhaustive reconstruction of 10 bits from all 1,024 subset counts"
    assert played.bits == 10
    assert played.most(ApproxDP(1.0, 0.1), 1.0) == bound_guessing(ApproxDP(1.0, 0.1), 1.0)
    assert np.array_equal(played.asked, Exhaustive(10, queries=40).asked)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"people": 21}, "from 1 to 20, got 21"),
        ({"queries": -1}, "at least 0, got -1"),
        ({"error": -0.5}, "at least 0, got -0.5"),
        ({"people": 2, "matrix": ((0, 2),)}, "2 zeros and ones"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        Exhaustive(**options)


# ------------------------------------------------------------------- false alarms, at zero margin


@dataclass(frozen=True)
class Responses:
    """Randomised response to whether a row has any one, then exact counts: the bound is attained."""

    epsilon: float
    delta: float

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        return self.each(np.repeat(np.asarray(data)[None], n, axis=0), rng)

    def each(self, stack: Any, rng: np.random.Generator) -> Any:
        # Every person is in the last query.
        right = rng.random(stack.shape[:2]) < (math.exp(self.epsilon) + self.delta) / (1 + math.exp(self.epsilon))
        said = np.where(right, stack[:, :, -1], 1 - stack[:, :, -1])
        return said @ enumerate_bits(stack.shape[1]).T.astype(np.float64)


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ApproxDP(1.0, 0.1)], ids=str)
def test_responses_at_the_bound_are_rarely_an_alarm(guarantee: Any) -> None:
    alpha, runs, alarms, above = 0.1, 100, 0, 0
    game = Game(Responses(1.0, getattr(guarantee, "delta", 0.0)), Exhaustive(4))
    for seed in range(runs):
        settings = Settings(alpha=alpha, draws=40, stop="budget", seed=seed, independence=False)
        found = run_game(game, guarantee, settings, Question())
        alarms += found.verdict == Verdict.VIOLATION
        assert found.lower_bound is not None
        above += found.lower_bound > 1.0
    assert max(alarms, above) <= stats.binom.isf(1e-6, runs, alpha)
