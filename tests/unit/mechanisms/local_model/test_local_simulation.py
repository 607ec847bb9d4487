"""A statistical-query algorithm run by local users: distributions, levels, and the order of the users."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.exact import TwoSidedGeometricLaw
from mechanisms.local_model.fresh_users import users_needed
from mechanisms.local_model.local_simulation import (
    MUTANTS,
    BlocksWithReplacement,
    BudgetSplitOverQueries,
    FixedTranscript,
    KeptBits,
    LearnedFromTranscript,
    LocalTranscript,
    MessagesOfOneUser,
    SameUsersFullBudget,
    ShuffledKeptBits,
    simulation_size,
)
from mechanisms.statistical_queries.query_algorithms import ColumnBit, ConjunctionAlgorithm, ThresholdAlgorithm
from tests.statistics import level_of
from tests.unit.mechanisms.local_model.test_local_query import ALARM, fits, masses

FloatArray = NDArray[np.float64]

# --------------------------------------------------------------------------------- transcripts

#: Columns 0 and 1 are bits, column 2 the label, column 3 a value.
BITS, LABEL = (ColumnBit(0, 1), ColumnBit(1, 1)), ColumnBit(2, 1)
TWO = ConjunctionAlgorithm(BITS, LABEL, error=0.9)
SEARCH = ThresholdAlgorithm(3, LABEL, rounds=2, low=0.0, width=1.0, tolerance=0.4)
ROWS = np.array([[0, 0, 1, 0], [1, 0, 1, 3], [0, 1, 1, 1], [1, 1, 1, 2], [0, 0, 0, 3], [0, 0, 1, 1]], dtype=np.float64)
#: A row that every query counts, and one that none does.
ALL, NONE = [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]


def with_row(index: int, row: list[float]) -> FloatArray:
    changed = ROWS.copy()
    changed[index] = row
    return changed


def test_a_transcript_follows_its_law() -> None:
    protocol = FixedTranscript(TWO, 1.0, 2, step=2.0**-2)
    law = protocol.law(ROWS)
    centres = [part.loc for part in law.parts if isinstance(part, TwoSidedGeometricLaw)]
    assert centres == [2, -2, -2, -2]  # of rows 0 and 1, the first lacks x_0; of rows 2 and 3, none lacks x_1
    drawn = np.rint(protocol(ROWS, 20_000, np.random.default_rng(7)) / 2.0**-2).astype(np.int64)
    for column, centre in enumerate(centres):
        assert fits(drawn[:, column], centre, masses(protocol.base, 1, 400)) > ALARM


def test_each_user_sends_one_message_of_the_whole_level() -> None:
    protocol = FixedTranscript(TWO, 0.7, 3)
    for index in range(6):
        sent = MessagesOfOneUser(protocol, index)
        assert sent.queries == (index // 3,)
        assert level_of(sent, with_row(index, NONE), with_row(index, ALL)) == pytest.approx(0.7, rel=1e-9)
        assert level_of(protocol, with_row(index, NONE), with_row(index, ALL)) == pytest.approx(0.7, rel=1e-9)
    longer = np.vstack([ROWS, ROWS[:1]])
    assert protocol.law(longer) == protocol.law(ROWS)


def test_what_a_user_sends_follows_its_law() -> None:
    sent = MessagesOfOneUser(SameUsersFullBudget(TWO, 1.0, 3, 0.25), 1)
    drawn = np.rint(sent(ROWS, 20_000, np.random.default_rng(8)) / 0.25).astype(np.int64)
    assert drawn.shape == (20_000, 2)
    for column, centre in ((0, -2), (1, 2)):  # row 1 has x_0 and lacks x_1
        assert fits(drawn[:, column], centre, masses(sent.transcript.base, 1, 400)) > ALARM


def test_levels_of_the_simulations_mutants() -> None:
    base = MessagesOfOneUser(FixedTranscript(TWO, 0.7, 3, 2.0**-6), 2)
    x, y = with_row(2, NONE), with_row(2, ALL)
    for name, times in (("same_users_full_budget", 2.0), ("budget_split", 1.0)):
        mutant: Any = MUTANTS[name]
        assert level_of(mutant.build(base), x, y) == pytest.approx(0.7 * times, rel=1e-9)
        assert mutant.true_level(base) == pytest.approx(0.7 * times)
    random: Any = MUTANTS["blocks_with_replacement"]
    asked_times = []
    for user in range(6):
        one = MessagesOfOneUser(FixedTranscript(TWO, 0.7, 3, 2.0**-6), user)
        blocks = BlocksWithReplacement(TWO, 0.7, 3, 2.0**-6)
        asked = sum(user in blocks.block(i) for i in range(2))
        asked_times.append(asked)
        if asked:
            assert random.true_level(one) == pytest.approx(0.7 * asked)
            found = level_of(random.build(one), with_row(user, NONE), with_row(user, ALL))
            assert found == pytest.approx(0.7 * asked, rel=1e-9)
    assert sum(asked_times) == 6
    assert max(asked_times) == 2


def test_a_split_budget_asks_everybody() -> None:
    split = BudgetSplitOverQueries(TWO, 1.0, 3)
    assert split.block(0).tolist() == split.block(1).tolist() == list(range(6))
    assert split.base == FixedTranscript(TWO, 0.5, 3).base
    assert split(ROWS, 2, np.random.default_rng(9)).shape == (2, 12)


def test_an_adaptive_transcript_costs_epsilon_by_enumeration() -> None:
    """One user a query: the second query depends on the first message. Log-ratio of every pair of messages."""
    protocol = LocalTranscript(SEARCH, 0.9, 1, step=0.5)
    k = np.arange(-40, 41)

    def table(rows: FloatArray) -> FloatArray:
        a = protocol.base

        def pmf(x: NDArray[np.int64]) -> FloatArray:
            return np.asarray(a ** -np.abs(x).astype(float) * (a - 1) / (a + 1))

        first = pmf(k - protocol.centres(rows, protocol.block(0), SEARCH.ask(np.zeros((1, 0))))[0])
        asked = SEARCH.ask(np.asarray(0.5 + 0.5 * k[:, None]))
        assert set(asked.tolist()) == {1, 3}
        second = pmf(k[None, :] - protocol.centres(rows, protocol.block(1), asked))
        return np.asarray(first[:, None] * second)

    for index in (0, 1):
        ratio = np.abs(np.log(table(with_row(index, NONE)) / table(with_row(index, ALL))))
        assert ratio.max() == pytest.approx(0.9, rel=1e-9)
    # The transcripts that are drawn follow the table: their first two messages, cell by cell.
    drawn = np.rint(protocol(ROWS, 20_000, np.random.default_rng(10)) / 0.5).astype(np.int64)
    law = table(ROWS)
    likely = 20_000 * law > 5
    counts = np.zeros_like(law)
    inside = np.abs(drawn).max(axis=1) <= 40
    np.add.at(counts, (drawn[inside, 0] + 40, drawn[inside, 1] + 40), 1)
    observed, expected = counts[likely], 20_000 * law[likely]
    rest = 20_000 - observed.sum(), 20_000 - expected.sum()
    assert stats.chisquare(np.append(observed, rest[0]), np.append(expected, rest[1])).pvalue > ALARM


def test_answers_are_means_of_the_messages() -> None:
    protocol = LocalTranscript(SEARCH, 0.9, 3)
    sent, answers = protocol.run(ROWS, 5, np.random.default_rng(11))
    assert answers == pytest.approx(0.5 + np.stack([block.mean(axis=1) for block in sent], axis=1))
    whole = protocol(ROWS, 5, np.random.default_rng(11))
    assert whole.tolist() == np.concatenate(sent, axis=1).tolist()
    learned = LearnedFromTranscript(protocol)(ROWS, 5, np.random.default_rng(11))
    assert learned.tolist() == SEARCH.hypothesis(answers).tolist()


def test_the_total_is_that_of_the_blocks() -> None:
    assert simulation_size(10, 1.0, 0.1, 0.05, 1.0) == 10 * users_needed(1.0, 0.1, 0.005)
    # Values in [0, 1]: b is 1/2, which takes a quarter of the users.
    assert users_needed(1.0, 0.1, 0.05, 0.5) == pytest.approx(users_needed(1.0, 0.2, 0.05, 1.0))


# -------------------------------------------------------------------------- the order of users

FEW = FixedTranscript(TWO, 1.0, 2, step=0.25)
FOUR = ROWS[[0, 5, 3, 4]]  # two that both queries count, two that none does


def test_kept_bits_follow_their_law() -> None:
    for mechanism, seed in ((KeptBits(FEW), 12), (ShuffledKeptBits(FEW), 13)):
        codes, law = mechanism(FOUR, 20_000, np.random.default_rng(seed)), mechanism.law(FOUR)
        assert law.outcomes == (0, 1, 2, 3)
        assert stats.chisquare(np.bincount(codes, minlength=4), 20_000 * law.probabilities).pvalue > ALARM


def test_kept_bits_by_enumeration() -> None:
    """Bit i is kept if 1/2 and the mean of two messages is at most tau."""
    law, k = KeptBits(FEW).law(FOUR).probabilities, np.arange(-800, 801)
    noise = masses(FEW.base, 2, 800)
    kept = [float(noise[0.5 + (total + k) * 0.25 / 2 <= TWO.tolerance].sum()) for total in (4, -4)]
    expected = [(1 - kept[0]) * (1 - kept[1]), kept[0] * (1 - kept[1]), (1 - kept[0]) * kept[1], kept[0] * kept[1]]
    assert law == pytest.approx(expected, rel=1e-9)


def test_only_a_random_order_forgets_the_order_of_the_data() -> None:
    in_order = {KeptBits(FEW).law(FOUR[list(order)]) for order in permutations(range(4))}
    at_random = {ShuffledKeptBits(FEW).law(FOUR[list(order)]) for order in permutations(range(4))}
    assert len(at_random) == 1
    assert len(in_order) > 1
    mean = np.mean([KeptBits(FEW).law(FOUR[list(order)]).probabilities for order in permutations(range(4))], axis=0)
    assert at_random.pop().probabilities == pytest.approx(mean, rel=1e-12)
    changed = FOUR.copy()
    changed[0, 2] = 0.0
    assert level_of(ShuffledKeptBits(FEW), FOUR, changed) <= 1.0


# --------------------------------------------------------------------------------------- errors


def test_errors_show_the_value() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"expected at least 6 rows, got 5"):
        FixedTranscript(TWO, 1.0, 3)(ROWS[:5], 1, rng)
    with pytest.raises(
        ValueError, match=r"expected an algorithm whose queries are fixed in advance, got ThresholdAlgorithm"
    ):
        FixedTranscript(SEARCH, 1.0, 3)
    with pytest.raises(ValueError, match=r"expected a user who is asked, got 6"):
        MessagesOfOneUser(FixedTranscript(TWO, 1.0, 3), 6)
    with pytest.raises(ValueError, match=r"expected a power of two, at most 1/2, got 1\.0"):
        FixedTranscript(TWO, 1.0, 3, 1.0)
    with pytest.raises(ValueError, match=r"expected at most 8 rows, got 9"):
        ShuffledKeptBits(FixedTranscript(TWO, 1.0, 4, 0.25))(np.zeros((9, 3)), 1, rng)
