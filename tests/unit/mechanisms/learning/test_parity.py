"""The parity learners: distributions against draws and against enumerations written here, levels, sample sizes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from auditor.privacy.exact import curve
from experiments.document_002_what_can_we_learn.parity import private
from mechanisms.learning.parity import MOST_BITS, NULL, GaussianElimination, PrivateParityLearner
from mechanisms.learning.parity_levels import (
    biased_level,
    greedy_level,
    level_of_null,
    level_of_one_row,
    resampling_level,
    uniform_level,
)
from mechanisms.learning.parity_mutants import (
    CONTRADICTION,
    MUTANTS,
    BiasedFreeVariables,
    FixedSizeSubset,
    SampleByContentHash,
    SampleWithReplacement,
    StepOneRare,
)
from tests.statistics import p_value_of_outputs

FloatArray = NDArray[np.float64]
Row = tuple[int, int]
"""Bits of x as a number, bit j of it in column j, and the label."""

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6


def database(rows: Iterable[Row], d: int) -> NDArray[np.uint8]:
    return np.array([[*(x >> j & 1 for j in range(d)), y] for x, y in rows], dtype=np.uint8)


def parity(a: int, b: int) -> int:
    return (a & b).bit_count() % 2


def by_definition(rows: Sequence[Row], d: int, p: float, stop: float = 0.5) -> FloatArray:
    """Distribution of algorithm A, row by row from its four steps: null, then the hypotheses by code."""
    law = np.zeros(1 + 2**d)
    law[0] = stop
    for taken in itertools.product((0, 1), repeat=len(rows)):
        mass = (1 - stop) * math.prod(p if t else 1 - p for t in taken)
        chosen = [row for row, t in zip(rows, taken, strict=True) if t]
        agree = [h for h in range(2**d) if all(parity(h, x) == y for x, y in chosen)]
        for h in agree:
            law[1 + h] += mass / len(agree)
        law[0] += 0.0 if agree else mass
    return law


def largest_loss(laws: Sequence[FloatArray]) -> float:
    """Largest loss between any two of the distributions."""
    masses = np.array(laws)
    low, high = masses.min(axis=0), masses.max(axis=0)
    some = high > 0
    return math.inf if np.any(low[some] == 0) else float(np.log(high[some] / low[some]).max())


def over_all_neighbours(mechanism: Any, rows: int, ordered: bool = False) -> float:
    """Largest level over all neighbouring databases of so many rows, whose order does not matter to a learner."""
    universe = list(itertools.product(range(2**mechanism.d), (0, 1)))
    worst = 0.0
    contexts: Iterable[tuple[Row, ...]] = (
        itertools.product(universe, repeat=rows - 1)
        if ordered
        else itertools.combinations_with_replacement(universe, rows - 1)
    )
    for rest in contexts:
        places = range(rows) if ordered else (0,)
        for place in places:
            laws = [
                mechanism.law(database([*rest[:place], row, *rest[place:]], mechanism.d)).probabilities
                for row in universe
            ]
            worst = max(worst, largest_loss(laws))
    return worst


def level(mechanism: Any, x: Sequence[Row], y: Sequence[Row]) -> float:
    d = mechanism.d
    return curve(mechanism.law(database(x, d)), mechanism.law(database(y, d))).epsilon(0.0)


def p_value(mechanism: Any, data: NDArray[np.uint8], n: int, seed: int) -> float:
    """P-value of draws against the stated distribution."""
    return p_value_of_outputs(mechanism(data, n, np.random.default_rng(seed)), mechanism.law(data))


# -------------------------------------------------------------------------------------- distributions


def test_one_more_row_doubles_a_hypothesis_at_most() -> None:
    """Claim 4.3: the ratio 2 is attained for each number of bits and rows, and not exceeded by the four steps."""
    (claim,) = [c for c in private.claims() if c.id.endswith("/one_more_row")]
    assert [left / right for _, left, right in claim.draft.subject()] == pytest.approx([1.0] * 4, rel=1e-9)
    p = 0.25
    for rows in itertools.combinations_with_replacement(list(itertools.product(range(4), (0, 1))), 3):
        without = by_definition(rows[1:], 2, p)[1:]
        taken = (by_definition(rows, 2, p)[1:] - (1 - p) * without) / p
        assert np.all(taken <= 2 * without * (1 + 1e-12) + 1e-15)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_law_is_that_of_the_four_steps(d: int, epsilon: float) -> None:
    rng = np.random.default_rng(d)
    for rows in (1, 2, 3, 5):
        for _ in range(8):
            given = [(int(rng.integers(2**d)), int(rng.integers(2))) for _ in range(rows)]
            law = PrivateParityLearner(epsilon, d).law(database(given, d))
            assert law.outcomes == (NULL, *range(2**d))
            assert law.probabilities == pytest.approx(by_definition(given, d, epsilon / 4), rel=1e-12)


def test_rows_that_repeat_are_merged_in_the_law() -> None:
    given = [(1, 1)] * 4 + [(3, 0)] + [(1, 1)] * 2 + [(0, 0)] * 3
    law = PrivateParityLearner(1.0, 2).law(database(given, 2))
    assert law.probabilities == pytest.approx(by_definition(given, 2, 0.25), rel=1e-12)


@pytest.mark.parametrize("rows", [1, 3, 12, 16])  # from 9 runs of equal rows on, subsets are drawn and solved each
@pytest.mark.parametrize("kind", ["consistent", "one bad row", "random"])
def test_draws_follow_the_law(rows: int, kind: str) -> None:
    rng = np.random.default_rng(rows)
    data = rng.integers(0, 2, (rows, 5), dtype=np.uint8)
    if kind != "random":
        data[:, -1] = data[:, :-1] @ rng.integers(0, 2, 4, dtype=np.uint8) % 2
    if kind == "one bad row":
        data[0, -1] ^= 1
    assert p_value(PrivateParityLearner(2.0, 4), data, 100_000, rows) > ALARM


def test_the_closed_form_of_an_atom() -> None:
    rng = np.random.default_rng(1)
    seen = 0
    for _ in range(60):
        given = [(int(rng.choice([0, 1, 2, 4, 7])), int(rng.integers(2))) for _ in range(int(rng.integers(1, 7)))]
        law = by_definition(given, 3, 0.3)
        learner = PrivateParityLearner(1.2, 3)
        for h in range(8):
            agree = {x for x, y in given if parity(h, x) == y and x}
            if agree == {1, 2, 4, 7}:
                with pytest.raises(ValueError, match="linearly independent x"):
                    learner.atom(database(given, 3), h)
            else:
                assert learner.atom(database(given, 3), h) == pytest.approx(law[1 + h], rel=1e-12)
                seen += 1
    assert seen > 300


# ------------------------------------------------------------------------------------- levels


def test_the_catalogues_levels() -> None:
    for epsilon, exact in ((0.5, 0.25131), (1.0, 0.51083), (2.0, 1.09861), (3.9, 4.3694)):
        learner = PrivateParityLearner(epsilon, 3)
        assert learner.exact_epsilon == pytest.approx(exact, abs=5e-5)
        assert level(learner, [(4, 1)], [(4, 0)]) == pytest.approx(learner.exact_epsilon, rel=1e-12)
    assert (
        PrivateParityLearner(4.0, 3).exact_epsilon
        == math.inf
        == level(PrivateParityLearner(4.0, 3), [(4, 1)], [(4, 0)])
    )
    root = optimize.brentq(lambda eps: 2 * math.atanh(eps / 4) - eps, 3.0, 3.99)
    assert root == pytest.approx(3.8300, abs=5e-5)
    # The half of epsilon, and what is next.
    assert PrivateParityLearner(0.1, 1).exact_epsilon == pytest.approx(0.1 / 2 + 0.1**3 / 96, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize(("d", "rows"), [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)])
def test_no_neighbours_lose_more_than_one_row_does(epsilon: float, d: int, rows: int) -> None:
    learner = PrivateParityLearner(epsilon, d)
    assert over_all_neighbours(learner, rows) == pytest.approx(learner.exact_epsilon, rel=1e-9)


def test_what_a_null_costs() -> None:
    """ln(1 + p), over all neighbours of up to three rows of two bits; the tight event is a half of all outputs."""
    p, universe = 0.25, list(itertools.product(range(4), (0, 1)))
    worst = 0.0
    for rows in (1, 2, 3):
        for rest in itertools.combinations_with_replacement(universe, rows - 1):
            nulls = [by_definition([*rest, row], 2, p)[0] for row in universe]
            worst = max(worst, math.log(max(nulls) / min(nulls)))
    assert worst == pytest.approx(math.log1p(p), rel=1e-12)
    law = PrivateParityLearner(1.0, 2).law
    assert law(database([(0, 1), (0, 0)], 2)).probabilities[0] == pytest.approx((1 + p) / 2)
    assert law(database([(0, 0), (0, 0)], 2)).probabilities[0] == pytest.approx(1 / 2)
    assert law(database([(0, 1)] * 40, 2)).probabilities[0] == pytest.approx(1.0, abs=1e-4)


def test_the_event_of_the_pair_has_a_quarter() -> None:
    law = PrivateParityLearner(1.0, 3).law(database([(4, 1)], 3))
    assert law.probabilities[5:].sum() == pytest.approx((1 + 0.25) / 4)
    assert law.probabilities[1:5].sum() == pytest.approx((1 - 0.25) / 4)


# ------------------------------------------------------------------------------------ mutants

ONE, OTHER = [(4, 1)], [(4, 0)]
WRONG, RIGHT = [(0, 1)], [(0, 0)]


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_draws_of_a_mutant_follow_its_law(name: str) -> None:
    base = PrivateParityLearner(2.0 if name != "p_eps" else 0.7, 2)
    mutant = MUTANTS[name].build(base)
    for seed, given in enumerate(([(2, 1)], [(0, 1), (2, 0)], [(2, 1), (2, 1), (1, 0), (2, 0), (3, 1)])):
        assert p_value(mutant, database(given, 2), 50_000, seed) > ALARM, given


@pytest.mark.parametrize(
    ("name", "epsilon", "x", "y"),
    [
        ("p_half_eps", 0.5, ONE, OTHER),
        ("p_half_eps", 1.0, ONE, OTHER),
        ("p_eps", 0.5, ONE, OTHER),
        ("no_subsampling", 0.5, ONE, OTHER),
        ("step_one_missing", 0.5, WRONG, RIGHT),
        ("step_one_rare", 0.5, WRONG, RIGHT),
        ("distinguishable_nulls", 0.5, WRONG, RIGHT),
        ("fixed_size_sample", 0.5, [*ONE, (0, 1)], [*OTHER, (0, 1)]),
        ("sample_with_replacement", 0.5, [*ONE, (0, 1)], [*OTHER, (0, 1)]),
        ("deterministic_solution", 0.5, ONE, OTHER),
        ("exact_budget_variant", 0.5, ONE, OTHER),
        ("exact_budget_variant", 2.0, WRONG, RIGHT),
        ("step_one_just_enough", 0.5, WRONG, RIGHT),
        ("inconsistent_zero_rows_ignored", 0.5, ONE, OTHER),
    ],
)
def test_a_mutants_level_is_attained(name: str, epsilon: float, x: list[Row], y: list[Row]) -> None:
    base, mutant = PrivateParityLearner(epsilon, 3), MUTANTS[name]
    assert mutant.true_level is not None
    found, wanted = level(mutant.build(base), x, y), mutant.true_level(base)
    assert found == wanted if math.isinf(wanted) else found == pytest.approx(wanted, rel=1e-9)


def test_the_catalogues_levels_of_mutants() -> None:
    assert level_of_one_row(0.25) == pytest.approx(0.5108, abs=5e-5)
    assert level_of_one_row(0.25) == pytest.approx(0.5 + 0.5**3 / 12, abs=5e-4)
    assert level_of_one_row(0.5) == pytest.approx(1.0986, abs=5e-5)
    assert level_of_null(0.125, 0.25) == pytest.approx(0.318, abs=5e-4)
    assert level_of_null(0.125, 0.05) == pytest.approx(1.216, abs=5e-4)
    for epsilon, stop in ((0.1, 0.192), (0.5, 0.162), (1.0, 0.127)):
        enough = MUTANTS["step_one_just_enough"].build(PrivateParityLearner(epsilon, 1))
        assert enough.stop == pytest.approx(stop, abs=5e-4)  # type: ignore[attr-defined]
        assert level_of_null(epsilon / 4, enough.stop) == pytest.approx(epsilon)  # type: ignore[attr-defined]
    assert isinstance(MUTANTS["step_one_rare"].build(PrivateParityLearner(0.5, 1)), StepOneRare)


@pytest.mark.parametrize("name", [name for name, mutant in MUTANTS.items() if mutant.kind == "benign"])
@pytest.mark.parametrize(("epsilon", "d", "rows"), [(0.5, 1, 3), (0.5, 2, 2), (2.0, 1, 4), (2.0, 2, 3)])
def test_benign_variants_keep_the_claim_on_all_neighbours(name: str, epsilon: float, d: int, rows: int) -> None:
    base = PrivateParityLearner(epsilon, d)
    worst = over_all_neighbours(MUTANTS[name].build(base), rows)
    assert worst <= epsilon * (1 + 1e-9)
    if name == "exact_budget_variant":
        assert worst == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(("d", "rows"), [(1, 1), (1, 3), (1, 5), (1, 7), (2, 1), (2, 2), (2, 3), (2, 4)])
def test_the_level_of_a_uniform_answer_to_contradictions(d: int, rows: int) -> None:
    mutant = MUTANTS["uniform_on_inconsistency"].build(PrivateParityLearner(0.5, d))
    wanted = uniform_level(0.125, rows)
    assert over_all_neighbours(mutant, rows) == pytest.approx(wanted, rel=1e-9)
    assert level(mutant, [(1, 0), *[(1, 1)] * (rows - 1)], [(1, 1)] * rows) == pytest.approx(wanted, rel=1e-9)


def test_a_uniform_answer_breaks_the_claim_from_eleven_rows_on() -> None:
    p = 0.125
    assert uniform_level(p, 1) == pytest.approx(2 * math.atanh(p))
    assert uniform_level(p, 5) == pytest.approx(0.327, abs=5e-4)
    assert uniform_level(p, 10) < 0.5 < uniform_level(p, 11)
    threshold = math.log((math.exp(0.5) - 1 / (1 - p)) / p) / math.log(1 / (1 - p))
    assert math.floor(threshold) + 1 == 11
    # The pair of rows (0, 1) and (0, 0) shows less.
    mutant = MUTANTS["uniform_on_inconsistency"].build(PrivateParityLearner(0.5, 1))
    less = level(mutant, [(0, 1), *[(1, 0)] * 6], [(0, 0), *[(1, 0)] * 6])
    assert less == pytest.approx(math.log(1 - p + p * (1 - p) ** -6))
    assert less < uniform_level(p, 7)


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_the_level_of_dropping_conflicts(rows: int) -> None:
    mutant = MUTANTS["conflicts_dropped_greedily"].build(PrivateParityLearner(0.5, 1))
    wanted = greedy_level(0.125, rows)
    assert level(mutant, [(1, 1), *[(1, 0)] * (rows - 1)], [(1, 0)] * rows) == pytest.approx(wanted, rel=1e-9)
    assert over_all_neighbours(mutant, rows, ordered=True) == pytest.approx(wanted, rel=1e-9)


def test_the_level_of_drawing_again() -> None:
    mutant = MUTANTS["resample_until_consistent"].build(PrivateParityLearner(0.5, 1))
    p = 0.125
    for rows in (1, 2, 5, 30):
        x, y = [(1, 0), *[(1, 1)] * (rows - 1)], [(1, 1)] * rows
        assert level(mutant, x, y) == pytest.approx(resampling_level(p, rows), rel=1e-9)
        assert resampling_level(p, rows) < resampling_level(p) == math.log((1 + p) / (1 - p) ** 2)
    assert over_all_neighbours(mutant, 4) == pytest.approx(resampling_level(p, 4), rel=1e-9)
    end = optimize.brentq(lambda eps: resampling_level(eps / 4) - eps, 1.0, 3.9)
    assert end == pytest.approx(2.599, abs=5e-4)


@pytest.mark.parametrize(("d", "rows"), [(1, 1), (1, 3), (2, 2), (2, 3), (3, 1), (3, 2)])
def test_the_level_of_biased_bits(d: int, rows: int) -> None:
    wanted = biased_level(0.125, BiasedFreeVariables.bias)
    assert wanted == pytest.approx(0.7621, abs=5e-5)
    assert wanted > 0.5
    assert over_all_neighbours(BiasedFreeVariables(0.5, d), rows) == pytest.approx(wanted, rel=1e-9)


def test_samples_of_a_fixed_size() -> None:
    given = [(1, 1), (2, 0), (2, 0)]
    read = FixedSizeSubset(0.5, 2, 2).read(database(given, 2))
    drawn, mass = FixedSizeSubset(0.5, 2, 2).drawn_subsets(read)
    assert {tuple(s): m for s, m in zip(drawn.astype(int).tolist(), mass.tolist(), strict=True) if m} == {
        (1, 1, 0): 1 / 3,
        (1, 0, 1): 1 / 3,
        (0, 1, 1): 1 / 3,
    }
    drawn, mass = SampleWithReplacement(0.5, 2, 2).drawn_subsets(read)
    assert mass[drawn.sum(axis=1) == 1] == pytest.approx([1 / 9] * 3)
    assert mass[drawn.sum(axis=1) == 2] == pytest.approx([2 / 9] * 3)
    assert mass.sum() == pytest.approx(1.0)
    # As the catalogue says, also two of three rows.
    three = FixedSizeSubset(0.5, 3, 2)
    assert level(three, [*ONE, *WRONG, *RIGHT], [*OTHER, *WRONG, *RIGHT]) == math.inf


def test_a_hash_decides_by_the_row_alone() -> None:
    mechanism = SampleByContentHash(1.0, 1)
    taken = [row for row in itertools.product((0, 1), (0, 1)) if mechanism.takes(database([row], 1)[0])]
    assert (1, 1) in taken
    assert (1, 0) not in taken
    assert level(mechanism, [(1, 1)], [(1, 0)]) == math.inf
    assert over_all_neighbours(mechanism, 2) == math.inf


def test_a_null_that_says_why() -> None:
    mutant = MUTANTS["distinguishable_nulls"].build(PrivateParityLearner(1.0, 2))
    law = mutant.law(database(WRONG, 2))  # type: ignore[attr-defined]
    assert law.outcomes[:2] == (CONTRADICTION, NULL)
    assert law.probabilities[:2] == pytest.approx([0.125, 0.5])


# ------------------------------------------------------------------------------- elimination


def test_elimination_agrees_with_all_rows() -> None:
    rng = np.random.default_rng(1)
    learner = GaussianElimination(1.0, 8)
    data = rng.integers(0, 2, (6, 9), dtype=np.uint8)
    data[:, -1] = data[:, :-1] @ rng.integers(0, 2, 8, dtype=np.uint8) % 2
    assert p_value(learner, data, 20_000, 1) > ALARM
    outputs = learner(data, 500, rng)
    assert all(
        parity(h, sum(int(b) << j for j, b in enumerate(r[:-1]))) == r[-1] for h in outputs.tolist() for r in data
    )
    data[0, -1] ^= 1
    data[1] = data[0]
    data[1, -1] ^= 1
    assert learner(data, 5, rng).tolist() == [NULL] * 5
    assert level(GaussianElimination(1.0, 3), ONE, OTHER) == math.inf


def test_many_rows_are_eliminated_at_once() -> None:
    rng = np.random.default_rng(2)
    concept = rng.integers(0, 2, 40)
    x = rng.integers(0, 2, (300, 40))
    data = np.column_stack([x, x @ concept % 2])
    outputs = GaussianElimination(1.0, 40)(data, 3, rng)
    assert outputs.tolist() == [sum(int(b) << j for j, b in enumerate(concept))] * 3


# ----------------------------------------------------------------------------- more than 62 bits


@pytest.mark.parametrize("d", [MOST_BITS, MOST_BITS + 1, 256])
def test_long_hypotheses(d: int) -> None:
    rng = np.random.default_rng(d)
    n, rows, learner = 3_000, 6 * d, PrivateParityLearner(2.0, d)
    concept = rng.integers(0, 2, d)
    x = rng.integers(0, 2, (rows, d))
    data = np.column_stack([x, x @ concept % 2])
    outputs = learner(data, n, rng)
    if d <= MOST_BITS:
        assert outputs.shape == (n,)
        null, known = outputs == NULL, outputs == sum(int(b) << j for j, b in enumerate(concept))
    else:
        assert outputs.shape == (n, d)
        null, known = (outputs == NULL).all(axis=1), (outputs == concept).all(axis=1)
        assert np.array_equal(null, (outputs == NULL).any(axis=1))
    # Half of the rows are taken, three times as many as there are bits: they say all of the concept, but for 2^-100.
    assert np.array_equal(known, ~null)
    assert stats.binomtest(int(null.sum()), n, 0.5).pvalue > ALARM


def test_one_row_says_one_bit_of_a_long_hypothesis() -> None:
    d, n, p = 130, 8_000, 0.5
    data = np.zeros((1, d + 1), dtype=np.uint8)
    data[0, 70] = data[0, -1] = 1
    outputs = PrivateParityLearner(2.0, d)(data, n, np.random.default_rng(1))
    ones = (outputs == 1).sum(axis=0)
    chances = np.full(d, 1 / 4)
    chances[70] = (1 + p) / 4
    assert all(stats.binomtest(int(c), n, q).pvalue > ALARM / d for c, q in zip(ones, chances.tolist(), strict=True))


# ------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: PrivateParityLearner(0.0, 3), "epsilon > 0, got 0.0"),
        (lambda: PrivateParityLearner(4.5, 3), "epsilon <= 4.0, got 4.5"),
        (lambda: PrivateParityLearner(0.5, 0), "d >= 1, got 0"),
        (lambda: PrivateParityLearner(0.5, 3).law(np.zeros((2, 3))), r"3 bits and a label, got \(2, 3\)"),
        (lambda: PrivateParityLearner(0.5, 1).law(np.array([[2, 0]])), r"bits 0 and 1, got \[2\]"),
        (lambda: PrivateParityLearner(0.5, 1).law(np.zeros((0, 2))), r"at least one row, got \(0, 2\)"),
        (lambda: PrivateParityLearner(0.5, 30).law(np.zeros((1, 31))), "at most 24, got 31"),
        (lambda: PrivateParityLearner(0.5, 1)(np.zeros((1, 2)), 0, np.random.default_rng(0)), "n >= 1, got 0"),
        (
            lambda: PrivateParityLearner(0.5, 1).law(np.arange(40).reshape(20, 2) // 2 % 2),
            "at most 16 runs of equal rows, got 20",
        ),
        (lambda: FixedSizeSubset(0.5, 1, 0), "a sample size >= 1, got 0"),
    ],
)
def test_errors_show_what_was_given(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()
