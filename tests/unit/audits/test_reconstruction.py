"""Reconstruction: its tables, scores and bounds, answers that are spoiled, mutants, and the union bound.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest
from scipy import special, stats

from auditor.audits.adversaries import Game
from auditor.audits.adversaries.bounds import bound_guessing, bound_reconstruction
from auditor.audits.adversaries.decoding import LeastAbsolute, LeastSquares, random_rows
from auditor.audits.adversaries.reconstruction import Decoding, Reconstruction, build_tables
from auditor.datasets import Pair, ReplaceOne
from auditor.errors import SpecificationError
from auditor.privacy.exact import curve
from auditor.privacy.guarantees import ApproxDP
from experiments.document_003_bellairs_lectures.blatant import DIAGRAM, mechanisms, promised, tolerated
from experiments.document_003_bellairs_lectures.reconstruction import (
    _CONSTANTS,
    ToleratedError,
    sharp_bound,
    small_answer,
)
from mechanisms.additive_noise.column_counts import ConstantCounts, LaplaceCounts
from mechanisms.lower_bounds.decoding_mutants import MUTANTS, ROBUST_MUTANTS
from mechanisms.lower_bounds.noisy_counts import SpoiledCounts, SpoiledQueries, UniformCounts

RNG = np.random.default_rng
SMALL = Reconstruction(16, 64)


def exact(stack: Any) -> Any:
    return stack.sum(axis=1, dtype=np.float64)


# ----------------------------------------------------------------------------------------- tables


def test_column_counts_are_the_answers() -> None:
    secret, questions = RNG(0).integers(0, 2, (5, 16), dtype=np.int8), SMALL.questions(5, RNG(1))
    stack = build_tables(questions, secret)
    assert stack.shape == (5, 16, 64)
    np.testing.assert_array_equal(exact(stack), (questions.astype(int) @ secret[:, :, None])[:, :, 0])


def test_a_bit_is_a_row() -> None:
    secret, questions = np.zeros((1, 16), dtype=np.int8), SMALL.questions(1, RNG(1))
    other = secret.copy()
    other[0, 3] = 1
    ReplaceOne().check(Pair(build_tables(questions, secret)[0], build_tables(questions, other)[0]))
    assert (build_tables(questions, secret)[0] != build_tables(questions, other)[0]).any(axis=1).sum() == 1


@pytest.mark.parametrize("attack", [SMALL, Decoding(16, 64)], ids=str)
def test_what_is_decoded_are_linear_queries(attack: Reconstruction) -> None:
    secret, questions = RNG(0).integers(0, 2, (5, 16), dtype=np.int8), attack.questions(5, RNG(1))
    rows, answers = attack.released(questions, secret, exact)
    np.testing.assert_array_equal(answers, (rows @ secret[:, :, None].astype(float))[:, :, 0])
    assert set(rows.ravel()) == ({-1.0, 1.0} if isinstance(attack, Decoding) else {0.0, 1.0})


# ----------------------------------------------------------------------------------------- scores


@pytest.mark.parametrize("attack", [SMALL, Decoding(16, 64), replace(SMALL, wrong=0)], ids=str)
def test_exact_counts_give_every_bit_away(attack: Reconstruction) -> None:
    """64 random rows have rank 16 but for a probability of 2^-48: over two elements already, and so over the reals."""
    np.testing.assert_array_equal(attack.play(exact, 20, RNG(3)), 1.0)


@pytest.mark.parametrize("attack", [SMALL, Decoding(16, 64)], ids=str)
def test_nothing_is_learned_from_a_constant(attack: Reconstruction) -> None:
    scores = Game(ConstantCounts(64 * (1 + isinstance(attack, Decoding)), 8.0), attack)(None, 500, RNG(4))
    assert stats.binom.ppf(5e-7, 500 * 16, 0.5) <= 16 * scores.sum() <= stats.binom.isf(5e-7, 500 * 16, 0.5)


def test_all_or_nothing_counts_errors() -> None:
    @dataclass(frozen=True)
    class Fixed(Reconstruction):
        """All ones, whatever is asked."""

        def rounded(self, estimates: Any) -> Any:
            return np.ones(estimates.shape, dtype=np.int8)

    part = Fixed(16, 4).play(exact, 300, RNG(5))
    found = Fixed(16, 4, wrong=7).play(exact, 300, RNG(5))
    np.testing.assert_array_equal(found, 16 * (1 - part) <= 7)
    assert set(found) == {0.0, 1.0}


def test_games_are_played_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.audits.adversaries.reconstruction._BLOCK", 3 * 16 * 64)
    sizes: list[int] = []

    def ask(stack: Any) -> Any:
        sizes.append(len(stack))
        return exact(stack)

    assert SMALL.play(ask, 8, RNG(6)).shape == (8,)
    assert sizes == [3, 3, 2]


def test_bounds_are_those_of_a_guess_and_of_a_reconstruction() -> None:
    claimed = ApproxDP(1.0, 0.1)
    assert SMALL.most(claimed, 1.0) == bound_guessing(claimed, 1.0) == pytest.approx(0.75795, abs=5e-6)
    few = replace(SMALL, wrong=1)
    assert (
        few.most(claimed, 1.0)
        == bound_reconstruction(claimed, 1.0, 16, 1)
        == pytest.approx((math.e / 8 + 0.1) / (15 / 16))
    )
    assert (SMALL.bits, few.bits) == (16, 0)


def test_they_say_what_they_do() -> None:
    text = "of 16 bits from 64 random counts, by least absolute deviations in [0, 1]"
    assert str(SMALL) == f"reconstruction {text}"
    assert str(Decoding(16, 64)) == f"decoding {text}"
    assert "bits but for 2 from" in str(replace(SMALL, wrong=2))
    assert "bits without an error from" in str(replace(SMALL, wrong=0))


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(SpecificationError, match="rows must be a positive whole number, got 0"):
        Reconstruction(0)
    with pytest.raises(SpecificationError, match=r"queries must be a positive whole number, got 1.5"):
        Reconstruction(4, cast(Any, 1.5))
    with pytest.raises(SpecificationError, match="from 0 to 3, or None, got 4"):
        Reconstruction(4, 8, wrong=4)


# ---------------------------------------------------------------------------------------- answers


def test_uniform_noise_is_within_its_bound() -> None:
    table, target = RNG(0).integers(0, 2, (16, 8), dtype=np.int8), UniformCounts(0.75)
    errors = target(table, 2_000, RNG(1)) - table.sum(axis=0)
    assert np.abs(errors).max() < 0.75
    # 16,000 errors: a standard deviation off by 5.5 of its own has a probability below 1e-6.
    assert errors.std() == pytest.approx(0.75 / math.sqrt(3), rel=5.5 / math.sqrt(2.5 * errors.size))
    np.testing.assert_array_equal(UniformCounts(0.0).each(table[None], RNG(2)), table.sum(axis=0)[None])
    for bad in (-1.0, math.nan):
        with pytest.raises(ValueError, match=f"finite error >= 0, got {bad}"):
            UniformCounts(bad)
    with pytest.raises(ValueError, match="a table of zeros and ones"):
        target([[2]], 1, RNG(0))


def test_spoiled_counts_are_as_many_as_said_and_within_the_rows() -> None:
    stack = RNG(0).integers(0, 2, (200, 16, 40), dtype=np.int8)
    found = SpoiledCounts(0.26).each(stack, RNG(1))
    different = found != stack.sum(axis=1)
    assert different.sum(axis=1).max() == 10  # floor(0.26 * 40); some are spoiled into what they were
    assert ((found >= 0) & (found <= 16)).all()
    np.testing.assert_array_equal(SpoiledCounts(0.0).each(stack, RNG(1)), stack.sum(axis=1))
    with pytest.raises(ValueError, match=r"a part in \[0, 1\], got 2"):
        SpoiledCounts(2)


class _Seen:
    """A decoder that keeps what it is given."""

    def __call__(self, queries: Any, answers: Any) -> Any:
        self.queries, self.answers = queries, answers
        return LeastAbsolute()(queries, answers)


@pytest.mark.parametrize("corruption", ["worst", "random"])
def test_a_part_is_answered_for_the_opposite_bits(corruption: Any) -> None:
    seen = _Seen()
    game = SpoiledQueries(10, 50, part=0.1, corruption=corruption, decoder=seen)
    np.testing.assert_array_equal(game(None, 30, RNG(0)), 0.0)
    secret = (LeastAbsolute()(seen.queries, seen.answers) > 0.5).astype(float)
    moves = (seen.queries @ (1 - 2 * secret)[:, :, None])[:, :, 0]
    truth = (seen.queries @ secret[:, :, None])[:, :, 0]
    spoiled = seen.answers != truth
    np.testing.assert_allclose(seen.answers[spoiled], (truth + moves)[spoiled])
    # A query that does not tell both apart is answered rightly, spoiled or not.
    assert (spoiled.sum(axis=1) <= 5).all()
    if corruption == "worst":
        assert (spoiled.sum(axis=1) == 5).all()
        kept = np.where(spoiled, 0, np.abs(moves)).max(axis=1)
        assert (np.where(spoiled, np.abs(moves), np.inf).min(axis=1) >= kept).all()


def test_the_programme_prefers_the_alternative_where_spoiled_answers_weigh_more() -> None:
    rng = RNG(1)
    queries, x = random_rows("sign", (40, 12), rng), rng.integers(0, 2, 12)
    weights = np.abs(queries @ (1 - 2 * x))
    spoiled = rng.random(40) < 0.4
    answers = np.where(spoiled, queries @ (1 - x), queries @ x)
    truth, other = (np.abs(answers - queries @ z).sum() for z in (x, 1 - x))
    assert other - truth == pytest.approx(weights[~spoiled].sum() - weights[spoiled].sum())


@pytest.mark.parametrize("kind", ["sign", "gaussian", "subset", "centred"])
def test_every_kind_of_row_is_decoded_where_little_is_spoiled(kind: Any) -> None:
    # Failures at a tenth, less than half of the threshold, have a probability far below 1e-6.
    game = SpoiledQueries(24, 600, part=0.1, kind=kind, error=0.01)
    np.testing.assert_array_equal(game(None, 5, RNG(2)), 0.0)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("part", 1.5, r"a part in \[0, 1\], got 1.5"),
        ("corruption", "bad", "got 'bad'"),
        ("kind", "rows", "got 'rows'"),
        ("error", math.inf, "got inf"),
        ("rows", 0, "rows >= 1, got 0"),
    ],
)
def test_spoiled_queries_refuse_bad_parameters(field: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SpoiledQueries(), **{field: value})


# ---------------------------------------------------------------------------------------- mutants


def test_mutants_of_the_attack_differ_in_one_thing() -> None:
    base = Game(UniformCounts(0.5), SMALL)
    built = {name: cast(Game, mutant.build(base)) for name, mutant in MUTANTS.items()}
    assert all(game.target == base.target for game in built.values())
    attacks: dict[str, Any] = {name: game.adversary for name, game in built.items()}
    assert attacks["no_box_constraint"] == replace(SMALL, decoder=LeastAbsolute(-1000.0, 1001.0))
    np.testing.assert_array_equal(attacks["rounding_threshold"].rounded(np.array([[0.5, 0.8, 0.95]])), [[0, 0, 1]])
    repeated = attacks["repeated_query"].questions(3, RNG(0))
    assert repeated.shape == (3, 64, 16)
    assert max(np.linalg.matrix_rank(one) for one in repeated) <= 8
    assert len(np.unique(repeated[0], axis=0)) <= 8


def test_the_attack_that_is_handed_the_data_needs_no_answers() -> None:
    game = cast(Game, MUTANTS["attack_handed_x"].build(Game(ConstantCounts(64, 8.0), SMALL)))
    np.testing.assert_array_equal(game(None, 20, RNG(0)), 1.0)


def test_mutants_of_robust_decoding() -> None:
    base = SpoiledQueries(kind="centred")
    squares = cast(SpoiledQueries, ROBUST_MUTANTS["l2_for_l1"].build(base))
    assert squares == replace(base, decoder=LeastSquares())
    seen = _Seen()
    uncentred = cast(SpoiledQueries, ROBUST_MUTANTS["uncentred_rows"].build(replace(base, part=0.0, decoder=seen)))
    uncentred(None, 1, RNG(0))
    offsets = seen.answers - (seen.queries @ np.ones((1, 48, 1)))[:, :, 0]
    # Twice a count is the row of signs' answer plus the number of ones: even, and not what any z in the box gives.
    assert (seen.answers % 2 == 0).all()
    assert offsets.max() > 0


# ------------------------------------------------------------------------- what the errata rest on


@pytest.mark.parametrize(("entries", "minus"), [(1, 0), (5, 2), (9, 9), (12, 6)])
@pytest.mark.parametrize("t", [0.4, 1.0, 2.5, 20.0])
def test_small_answers_by_enumeration(entries: int, minus: int, t: float) -> None:
    z = np.array([-1] * minus + [1] * (entries - minus))
    answers = np.array(list(itertools.product((0, 1), repeat=entries))) @ z
    assert math.exp(small_answer(entries, minus, t)) == pytest.approx((np.abs(answers) < t).mean(), rel=1e-12)


def test_the_union_bound_covers_the_sum_over_all_vectors() -> None:
    n, k, t = 9, 6, 1.3
    total = 0.0
    for entries in range(math.floor(n / 100) + 1, n + 1):
        for minus in range(entries + 1):
            total += math.comb(n, entries) * math.comb(entries, minus) * math.exp(k * small_answer(entries, minus, t))
    bound = sharp_bound(n, k, t)
    assert math.log(total) <= bound
    # With one entry of one sign counted as the likeliest split, it is not far above.
    assert bound <= math.log(total) + math.log(4)


def test_the_catalogues_constant_is_that_of_the_gaussian_limit() -> None:
    """erf(14.14 B) = 3^(-1/c): B rounds to 0.040 and 0.076 for k = 2n and 8n, and those of the claims are below it."""
    for (ratio, constant, _), stated in zip(_CONSTANTS, (0.040, 0.076), strict=True):
        solved = float(special.erfinv(3.0 ** (-1.0 / ratio))) / (10 * math.sqrt(2))
        assert round(solved, 3) == stated
        assert constant < solved


def test_the_stated_levels_of_what_the_meter_attacks_are_exact() -> None:
    """A constant, which releases the same of any data, has the level 0; Laplace noise is calibrated to 1."""
    stated = {name: level for name, _, _, level in mechanisms(6)}
    assert stated == {"laplace": 1.0, "largest_norm": 1.0, "gaussian": 1.0, "constant": 0.0}
    laplace = next(made for name, made, _, _ in mechanisms(6) if name == "laplace")
    assert isinstance(laplace, LaplaceCounts)
    laws = [laplace.plain.law(np.full((1, 6), bit)) for bit in (0, 1)]
    assert curve(*laws).epsilon(0.0) == pytest.approx(1.0)
    constant = ConstantCounts(6, 4.0)
    none, everything = (constant(np.full((1, 6), bit), 3, RNG(0)) for bit in (0, 1))
    np.testing.assert_array_equal(none, everything)


def test_the_diagram_promises_where_answers_are_exact_and_queries_of_full_rank() -> None:
    """E is 1/2 for every ratio; at k = n the rank modulo 2 is too small in most games, so nothing is promised."""
    n = 32
    for ratio in DIAGRAM.xs:
        assert tolerated(ratio) * math.sqrt(n) * math.log(ratio * n / 0.05) == pytest.approx(0.5)
        assert promised(ratio, 0.002) == (None if ratio < 2 else 0.9)
        assert promised(ratio, 0.05) is None
    assert {x for (x, _), (kind, _) in DIAGRAM.bounds().items() if kind == "promised"} == {2.0, 4.0, 8.0, 16.0}


def test_the_tolerated_error_is_bisected() -> None:
    @dataclass(frozen=True)
    class Limited(Reconstruction):
        """Right as long as no answer is off by more than 2; then wrong everywhere."""

        limit: float = 2.0

        def rounded(self, estimates: Any) -> Any:
            return (estimates > 0.5).astype(np.int8)

    def decoder(queries: Any, answers: Any) -> Any:
        exact_z = np.rint(LeastSquares()(queries, np.rint(answers)))
        off = np.abs(answers - (queries @ exact_z[:, :, None])[:, :, 0]).max(axis=1, keepdims=True) > 0.3
        return np.where(off, 1 - exact_z, exact_z)

    attack = Limited(16, 256, decoder=decoder)
    found = ToleratedError(attack, 2, low=0.04, high=0.48, halvings=8)(None, 20, RNG(0))
    # The largest of 256 numbers from (-1, 1) is above 0.9 in absolute value but for a probability of 0.9^256 = 2e-12.
    assert (found >= 0.3 * 0.99).all()
    assert (found <= 0.3 / 0.9 * 1.01).all()
