"""Masked parity: its points and queries by their definitions, every concept under every oracle, and what is fixed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from mechanisms.base.mechanism import FloatArray, IntArray, Mutant
from mechanisms.local_model.masked_parity import (
    BlockAnswerer,
    BlockQueries,
    ErrorOfHypothesis,
    FaithfulAnswerer,
    LazyAnswerer,
    MaskedParityGame,
    MaskedParityLearner,
    all_concepts,
    errors,
    hypothesis,
    labels,
    play,
    split,
)
from mechanisms.local_model.masked_parity_learner import (
    MUTANTS,
    TwoRoundParityLearner,
    faithful,
    first_round,
    second_round,
)
from mechanisms.local_model.masked_parity_nonadaptive import MUTANTS as WEAK_MUTANTS
from mechanisms.local_model.masked_parity_nonadaptive import (
    BentQueries,
    BestNonadaptiveLearner,
    FixedQueryList,
    NonadaptiveWeakLearner,
    RandomFunctions,
    RandomParityQueries,
    RandomSigns,
)
from mechanisms.statistical_queries.lazy_oracles import DecomposedQueries, LazyOracle, hit_bound
from mechanisms.statistical_queries.sq_oracles import (
    ExactOracle,
    HighestAnswersOracle,
    LowestAnswersOracle,
    RandomErrorOracle,
    StatisticalQueryOracle,
    TowardThresholdOracle,
)

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

LAZY = LazyAnswerer(LazyOracle())


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def label(r: int, a: int, x: int, i: int, b: int) -> int:
    """The document's definition."""
    inner = bin(r & x).count("1") % 2
    return 1 - 2 * ((inner + a) % 2) if b == 0 else 1 - 2 * (r >> i & 1)


def points(d: int) -> list[tuple[int, int, int]]:
    return list(product(range(1 << d), range(d), (0, 1)))


def built(mutant: Mutant[MaskedParityGame], base: MaskedParityGame) -> MaskedParityGame:
    game = mutant.build(base)
    assert isinstance(game, MaskedParityGame)
    return game


def misses(learner: MaskedParityLearner, answerer: BlockAnswerer, d: int, **options: bool) -> float:
    """Part of the concepts with an error of 1/4 or more."""
    codes = all_concepts(d)
    return float((errors(codes, play(learner, answerer, codes, rng(), **options).learned, d) >= 0.25).mean())


# ---------------------------------------------------------------------------------- the class


@pytest.mark.parametrize("d", [2, 3, 4])
def test_labels_are_those_of_the_document(d: int) -> None:
    codes = all_concepts(d)
    table = labels(codes, d)
    for code in codes:
        r, a = int(code) & ((1 << d) - 1), int(code) >> d
        for x, i, b in points(d):
            assert table[code, b, i, x] == label(r, a, x, i, b)


def test_errors_are_counted_on_all_points() -> None:
    d, chosen = 3, rng(1)
    codes = chosen.integers(0, 2 << d, 60)
    bits, parity, mask = (chosen.integers(0, high, 60) for high in (8, 8, 2))
    parity[:30] = codes[:30] & 7
    found = errors(codes, hypothesis(bits, parity, mask, d), d)
    for k in range(60):
        r, a = int(codes[k]) & 7, int(codes[k]) >> 3
        wrong = [
            label(r, a, x, i, b)
            != (label(int(parity[k]), int(mask[k]), x, i, 0) if b == 0 else (-1) ** (bits[k] >> i & 1))
            for x, i, b in points(d)
        ]
        assert found[k] == pytest.approx(np.mean(wrong))


def test_codes_that_are_no_concepts() -> None:
    with pytest.raises(ValueError, match=r"codes of concepts in \[0, 16\), got array\(\[16\]\)"):
        split(np.array([16]), 3)
    with pytest.raises(ValueError, match="1 to 30 bits, got 31"):
        split(np.array([0]), 31)


# ---------------------------------------------------------------------------------- the queries


def expectation(query: Callable[[int, int, int, int], bool], r: int, a: int, d: int) -> float:
    return float(np.mean([query(x, i, b, label(r, a, x, i, b)) for x, i, b in points(d)]))


def asked_in_round_1(j: int, x: int, i: int, b: int, y: int) -> bool:
    return i == j and b == 1 and y == -1


@pytest.mark.parametrize("d", [2, 3, 4])
def test_queries_of_both_rounds_by_their_definition(d: int) -> None:
    codes = all_concepts(d)
    r_all, sign = split(codes, d)
    nothing = np.zeros_like(codes)
    first = first_round(d).means(nothing, r_all, sign)
    guess = 3 % (1 << d)
    second = second_round(np.array([guess]), d).means(nothing, r_all, sign)
    for code in codes:
        r, a = int(code) & ((1 << d) - 1), int(code) >> d
        for j in range(d):
            by_definition = expectation(partial(asked_in_round_1, j), r, a, d)
            assert first[code, j] == pytest.approx(by_definition) == pytest.approx((r >> j & 1) / (2 * d))
        mismatch = expectation(lambda x, i, b, y: b == 0 and y != (-1) ** bin(guess & x).count("1"), r, a, d)
        assert second[code, 0] == pytest.approx(mismatch) == pytest.approx(a / 2 if r == guess else 1 / 4)


# ------------------------------------------------------------------------------- the two rounds


@pytest.mark.parametrize("d", [2, 4, 8])
def test_the_learner_is_right_for_every_concept_under_every_oracle(d: int) -> None:
    """The catalogue's 480 runs, all concepts of d = 2, 4, 8; and both lazy oracles."""
    codes = all_concepts(d)
    oracles: list[BlockAnswerer] = [*faithful(d).values(), LAZY, LazyAnswerer(LazyOracle(strict=False))]
    for oracle in oracles:
        played = play(TwoRoundParityLearner(d), oracle, codes, rng())
        assert not errors(codes, played.learned, d).any()
        assert (played.queries, played.rounds, played.least_tolerance) == (d + 1, 2, 1 / (4 * d + 1))


def test_margins() -> None:
    for d in range(2, 200):
        assert 1 / (2 * d) - 1 / (4 * d + 1) > 1 / (4 * d) > 1 / (4 * d + 1)


def test_an_oracle_that_is_not_valid_misleads_it() -> None:
    """Just past the margin: the claim is about tolerances, and the game shows what is beyond them."""
    d = 4

    class Further:
        def __call__(self, truth: FloatArray, tolerance: ArrayLike, _: np.random.Generator) -> FloatArray:
            more = np.asarray(tolerance) * (4 * d + 1) / (4 * d) * 1.001
            return TowardThresholdOracle(1 / (4 * d))(truth, more, rng())

    assert misses(TwoRoundParityLearner(d), FaithfulAnswerer((Further(), ExactOracle())), d) == 1.0


def rate(name: str, oracle: str, d: int = 8) -> float:
    game = built(MUTANTS[name], MaskedParityGame(TwoRoundParityLearner(d), faithful(d)[oracle]))
    codes = all_concepts(d)
    return float((errors(codes, play(game.learner, game.answerer, codes, rng()).learned, d) > 0).mean())


def test_rates_of_the_mutants() -> None:
    """The exact values that the experiment states."""
    assert rate("tolerance_1_over_2d", "toward_the_threshold") == 1.0
    assert rate("tolerance_1_over_2d", "above") == 1 - 2.0**-8
    assert rate("tolerance_1_over_2d", "exact") == 0.0
    assert rate("bit_order", "exact") == 1 - 2 / 2**8
    weights = np.bitwise_count(np.arange(256))
    assert rate("integer_inner_product", "exact") == (weights >= 4).sum() / 512 == 163 / 512
    assert rate("second_round_prepared_early", "exact") == 0.5 * (1 - 2.0**-8)


def test_at_least_for_above_changes_nothing() -> None:
    for oracle in faithful(4):
        assert rate("non_strict_comparison", oracle, 4) == 0.0


def test_a_second_query_that_is_prepared_early_tells_nothing_under_any_oracle() -> None:
    d = 4
    oracles: tuple[StatisticalQueryOracle, ...] = (
        ExactOracle(),
        HighestAnswersOracle(),
        LowestAnswersOracle(),
        RandomErrorOracle(),
    )
    for oracle in oracles:
        mutant = built(
            MUTANTS["second_round_prepared_early"],
            MaskedParityGame(TwoRoundParityLearner(d), FaithfulAnswerer((ExactOracle(), oracle))),
        )
        codes = np.arange(10_000) % (2 << d)
        played = play(mutant.learner, mutant.answerer, codes, rng(3), frozen=True)
        apart = (codes & 15) != 0
        wrong = errors(codes, played.learned, d)[apart] >= 0.25
        assert stats.binomtest(int(wrong.sum()), len(wrong), 0.5).pvalue > ALARM


def test_the_learner_has_two_bits_or_more() -> None:
    with pytest.raises(ValueError, match="2 to 16 bits, got 1"):
        TwoRoundParityLearner(1)
    with pytest.raises(ValueError, match="2 to 16 bits, got 17"):
        TwoRoundParityLearner(17)


# ------------------------------------------------------------------------------------- one round


@pytest.mark.parametrize("d", [2, 4, 8])
def test_the_weak_learner_errs_on_a_quarter_for_every_concept(d: int) -> None:
    codes = all_concepts(d)
    oracles: list[BlockAnswerer] = [*faithful(d).values(), LAZY]
    for oracle in oracles:
        played = play(NonadaptiveWeakLearner(d), oracle, codes, rng(), frozen=True)
        assert np.array_equal(errors(codes, played.learned, d), np.full(2 << d, 0.25))
        assert (played.queries, played.rounds) == (d, 1)


def test_a_constant_where_b_is_0_fails_at_r_0_only() -> None:
    game = built(WEAK_MUTANTS["constant_guess"], MaskedParityGame(NonadaptiveWeakLearner(4), faithful(4)["exact"]))
    codes = all_concepts(4)
    found = errors(codes, play(game.learner, game.answerer, codes, rng()).learned, 4)
    assert (found[0], found[16]) == (0.0, 0.5)
    assert np.array_equal(found[np.flatnonzero(codes & 15)], np.full(30, 0.25))


def test_random_parities_at_the_catalogues_sizes() -> None:
    """Drawn there (.494, .493, .468, .370); here all concepts, which gives (1 - t/256)/2."""
    for t, drawn in ((0, 0.494), (4, 0.493), (16, 0.468), (64, 0.370)):
        for seed in (0, 1):
            exact = misses(BestNonadaptiveLearner(8, RandomParityQueries(t, seed), 0.5), LAZY, 8, frozen=True)
            assert exact == 0.5 * (1 - t / 256)
            assert exact == pytest.approx(drawn, abs=0.007)


@pytest.mark.parametrize(
    ("m", "expected"),
    [
        (2, {0: 0.5, 16: 0.375, 32: 0.25, 64: 0.0}),
        (4, {0: 0.5, 4: 0.375, 8: 0.25, 16: 0.0}),
        (6, {0: 0.5, 1: 0.375, 2: 0.25, 4: 0.0}),
    ],
)
def test_bent_queries_attain_the_bound(m: int, expected: dict[int, float]) -> None:
    tau = 0.5 * 2.0 ** (-m / 2)
    for t, value in expected.items():
        learner = BestNonadaptiveLearner(8, BentQueries(t, m), tau)
        assert misses(learner, LAZY, 8, frozen=True) == value == 0.5 * (1 - t / 2 ** (8 - m))
        assert 0.5 * (1 - hit_bound(learner.fixed, np.full(t, tau), own=0.5)) == pytest.approx(value)
        # An oracle that is lazy at just the tolerance defeats it.
        assert misses(learner, LazyAnswerer(LazyOracle(strict=False)), 8, frozen=True) == 0.5


@pytest.mark.parametrize(
    ("d", "tau", "others"), [(5, 0.06, RandomSigns(6, seed=4)), (8, 1 / 16, RandomFunctions(3, seed=5))]
)
def test_random_queries_do_as_well_as_what_they_hit(d: int, tau: float, others: FixedQueryList) -> None:
    """The learner's success is counted from the coefficients alone."""
    learner = BestNonadaptiveLearner(d, others, tau)
    hit = (np.abs(learner.fixed.hidden[0]) >= tau).any(axis=0)
    assert 0 < hit.sum() < 1 << d
    assert misses(learner, LAZY, d, frozen=True) == 0.5 * (1 - hit.mean())
    assert hit.mean() <= others.t / (4 * tau**2 * 2**d)


def test_the_mask_is_no_secret_to_an_exact_oracle() -> None:
    """The bound is the oracle's doing: the same queries, answered exactly, tell everything."""
    assert misses(BestNonadaptiveLearner(5, RandomSigns(6, seed=4), 0.06), FaithfulAnswerer((ExactOracle(),)), 5) == 0.0


def test_lists_that_are_too_long() -> None:
    with pytest.raises(ValueError, match="at most 16 parities, got 17"):
        RandomParityQueries(17).tables(4)
    with pytest.raises(ValueError, match="at most 4 queries, got 5"):
        BentQueries(5, 2).tables(4)


# ------------------------------------------------------------------------ what is fixed in advance


def test_answers_that_leak_into_round_two_are_seen_once_queries_are_frozen() -> None:
    codes = all_concepts(4)
    assert misses(TwoRoundParityLearner(4), LAZY, 4) == 0.0
    with pytest.raises(ValueError, match=r"the queries of block 1 that were fixed, [0-9a-f]{12}, got '[0-9a-f]{12}'"):
        play(TwoRoundParityLearner(4), LAZY, codes, rng(), frozen=True)


def test_digests_are_of_what_each_run_asks() -> None:
    lists, tau = second_round(np.array([1, 2, 2, 3]), 3), np.array([0.2])

    def digest(*which: int, tolerances: FloatArray = tau, queries: DecomposedQueries = lists) -> str:
        return BlockQueries(queries, np.array(which), tolerances).digest()

    assert digest(0, 1, 0) == digest(0, 2, 0)  # lists 1 and 2 hold the same query
    assert digest(0, 1, 0) != digest(1, 0, 0)
    assert digest(0, 1, 0) != digest(0, 1, 3)
    assert digest(0, 1) != digest(0, 1, tolerances=np.array([0.1]))
    assert digest(0, 1) == digest(0, 1, queries=second_round(np.array([1, 2]), 3))


# -------------------------------------------------------------------------------------- the game


def test_a_game_draws_concepts_uniformly_and_plays_each() -> None:
    game = MaskedParityGame(TwoRoundParityLearner(4), faithful(4)["random"])
    found: IntArray = game(all_concepts(4), 32 * 400, rng(5))
    assert stats.chisquare(np.bincount(found[:, 0], minlength=32)).pvalue > ALARM
    assert not ErrorOfHypothesis(4)(found).any()
    with pytest.raises(ValueError, match="draws n >= 1, got 0"):
        game(all_concepts(4), 0, rng())


def test_a_games_failure_rate_is_the_one_over_all_concepts() -> None:
    game = built(MUTANTS["integer_inner_product"], MaskedParityGame(TwoRoundParityLearner(8), faithful(8)["exact"]))
    wrong = ErrorOfHypothesis(8)(game(all_concepts(8), 4_000, rng(6))) > 0
    assert stats.binomtest(int(wrong.sum()), 4_000, 163 / 512).pvalue > ALARM
