"""Outputs, keys, features, chains and the learner of events."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import tracemalloc
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from auditor import ApproxDP, GaussianDP, PureDP, TargetError
from auditor.events.event_learner import RESERVOIR, Chain, EventLearner
from auditor.events.features import (
    LatticeExponent,
    Linear,
    Missing,
    Numeric,
    Rank,
    Shape,
)
from auditor.events.fitting import learn_histogram, learn_symbols
from auditor.targets.outputs import Batch, Raised, Typed, as_batch, concatenate_batches, hash_outputs, show_output

Array = NDArray[np.float64]


# ------------------------------------------------------------------------------------- outputs


@pytest.mark.parametrize(
    ("outputs", "shape", "kind"),
    [
        (np.array([1, 2, 3]), (3,), "i"),
        (np.array([1.5, 2, 3]), (3,), "f"),
        (np.array([True, False, True]), (3,), "b"),
        (np.array([1, 2, 3], dtype=np.uint8), (3,), "u"),
        (np.zeros((3, 2)), (3, 2), "f"),
        (np.zeros((3, 2, 4)), (3, 8), "f"),
        ([1, 2, 3], (3,), "i"),
        ((1, 2, 3), (3,), "i"),
        (range(3), (3,), "i"),
        (deque([1, 2, 3]), (3,), "i"),
        ([np.float64(1), 2.5, 3.0], (3,), "f"),
        ([math.nan, math.inf, -math.inf], (3,), "f"),
        ([np.float32(1), np.float32(2), np.float32(3)], (3,), "f"),
        ([np.int8(1), np.int8(2), np.int8(3)], (3,), "i"),
        ([(1, 2), (3, 4), (5, 6)], (3, 2), "f"),
        ([[1.5, 2], [3, 4], [5, 6]], (3, 2), "f"),
        ([np.zeros(2), np.ones(2), np.ones(2)], (3, 2), "f"),
        (pd.Series([1, 2, 3]), (3,), "i"),
        (pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, 3]}), (3, 2), "i"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_numbers_become_arrays_with_the_trial_axis_first(outputs: Any, shape: tuple[int, ...], kind: str) -> None:
    batch = as_batch(outputs, 3)
    assert isinstance(batch, np.ndarray)
    assert (batch.shape, batch.dtype.kind) == (shape, kind)


@pytest.mark.parametrize(
    "outputs",
    [
        ["a", "b", "a"],
        [None, None, None],
        [True, False, True],
        [1, "a", None],
        [(1, "a"), (2, "b"), (3, "c")],
        [{"a": 1}, {}, {"b": [2]}],
        [[1], [1, 2], []],
        [[], [], []],
        [b"a", b"b", b"c"],
        [2**70, 1, 2],
        [Raised("ValueError"), 1.0, 2.0],
        [1.0, None, math.nan],
        [1, 2.5, 3],  # an array would hold no integers
    ],
    ids=repr,
)
def test_all_other_values_stay_a_list_of_symbols(outputs: list[Any]) -> None:
    assert as_batch(outputs, 3) == outputs


@pytest.mark.parametrize(
    "outputs",
    [
        np.array(["a", "b", "a"]),
        np.array(["a", None, 1], dtype=object),
        pd.Series(["a", "b", "c"]),
    ],
    ids=repr,
)
def test_arrays_of_other_values_become_lists(outputs: Any) -> None:
    assert as_batch(outputs, 3) == outputs.tolist()


@pytest.mark.parametrize(
    "outputs", [[10**400, 1.5], [[10**400, 1], [1, 2]], [1.5, -(10**400)]], ids=lambda v: str(v)[:9]
)
def test_integers_too_large_for_floats_are_symbols(outputs: list[Any]) -> None:
    assert as_batch(outputs, 2) == outputs


@pytest.mark.parametrize(
    ("outputs", "shown"),
    [
        (np.zeros(4), "(4,)"),
        (np.zeros((2, 3)), "(2, 3)"),
        (np.array(1.0), "()"),
        ([1, 2], "[1, 2]"),
        ([], "[]"),
        ((1,) * 1_000, "1000"),
        (3.25, "3.25"),
        (None, "None"),
        ("abc", "'abc'"),
        (b"abc", "b'abc'"),
        ({"a": 1, "b": 2, "c": 3}, "{'a': 1, 'b': 2, 'c': 3}"),
        ({17}, "{17}"),
        ((k for k in range(3)), "generator"),
        (map(abs, [1, 2, 3]), "map object"),
        (object, "class 'object'"),
    ],
    ids=lambda value: re.sub(r"(generator|map) object.*", r"\1", repr(value))[:30],
)
def test_what_is_not_n_outputs_is_an_error_that_shows_it(outputs: Any, shown: str) -> None:
    with pytest.raises(TargetError, match="3 outputs were asked for") as caught:
        as_batch(outputs, 3)
    assert shown in str(caught.value)
    assert len(str(caught.value)) < 250  # a screen's line, however much the target returned


def test_batches_of_one_shape_are_joined_as_an_array_and_others_as_a_list() -> None:
    joined = concatenate_batches([np.zeros((2, 3)), np.ones((1, 3))])
    assert isinstance(joined, np.ndarray)
    assert joined.shape == (3, 3)
    assert concatenate_batches([np.zeros((1, 2)), np.ones((1, 3))]) == [[0.0, 0.0], [1.0, 1.0, 1.0]]
    assert concatenate_batches([np.array([1, 2]), ["a"]]) == [1, 2, "a"]


def test_a_long_output_is_shown_short() -> None:
    assert show_output("a" * 100) == "'" + "a" * 56 + "..."
    assert show_output(np.float64(1 / 3)) == "0.333333"
    assert show_output(np.arange(3)) == "[0, 1, 2]"


@pytest.mark.parametrize(
    "value",
    [[], (), {}, set(), frozenset(), (1,), [1.5, ("a", None)], {"a": [1], 2: {}}, Typed("t", {"b": (1, 2)}), {(1,): 2}],
    ids=repr,
)
def test_what_holds_no_set_is_shown_by_its_repr(value: object) -> None:
    assert show_output(value) == repr(value)


def test_sets_are_shown_in_an_order_that_all_processes_share() -> None:
    assert show_output(({"b", "a"}, [frozenset({"d", "c"})])) == "({'a', 'b'}, [frozenset({'c', 'd'})])"
    assert show_output({"k": Typed("t", {"x", 1, None}), "l": set()}) == "{'k': t({'x', 1, None}), 'l': set()}"


# ---------------------------------------------------------------------------------------- keys

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False).map(lambda v: v + 0.0), st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.tuples(inner, inner)), max_leaves=5
)


@settings(deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=5))
def test_equal_outputs_of_one_type_have_equal_keys(values: list[Any]) -> None:
    found = hash_outputs([*values, *values])
    assert np.array_equal(found[: len(values)], found[len(values) :])


@settings(deadline=None)
@given(st.lists(SCALARS, min_size=2, max_size=20))
def test_different_outputs_have_different_keys(values: list[Any]) -> None:
    # Keys agree by chance with probability about 2^-64 a pair. Equal numbers are one output, whatever their type: a
    # batch of numbers is an array, in which 1 and 1.0 are the same.
    texts = [repr(float(v)) if type(v) is int and float(v) == v else repr(v) for v in values]
    by_text = dict(zip(texts, hash_outputs(values).tolist(), strict=True))
    assert len(set(by_text.values())) == len(by_text)


def test_nan_has_one_key_and_so_has_zero() -> None:
    payload = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    found = hash_outputs(np.array([np.nan, -np.nan, payload, 0.0, -0.0, 1.0]))
    assert len(set(found[:3].tolist())) == 1
    assert found[3] == found[4] != found[5]
    in_lists = hash_outputs([math.nan, float("nan"), None])
    assert in_lists[0] == in_lists[1] != in_lists[2]
    rows = hash_outputs(np.array([[np.nan, 1.0], [np.nan, 1.0], [1.0, np.nan]]))
    assert rows[0] == rows[1] != rows[2]


def test_rows_that_differ_in_zeros_have_different_keys() -> None:
    rows = [[1.0], [1.0, 0.0], [1.0, 0.0, 0.0], [0.0], [0.0, 0.0], [0.0, 1.0], [], 0.0, 1.0, [False], [True, False]]
    assert len(np.unique(hash_outputs(rows))) == len(rows)
    assert hash_outputs(np.array([[1.0, 0.0]])) == hash_outputs([[1, 0], "other"])[:1]


def test_rows_of_small_numbers_all_have_different_keys() -> None:
    bits = (np.arange(2**16)[:, None] >> np.arange(16)) & 1
    assert len(np.unique(hash_outputs(bits))) == 2**16
    grid = np.stack(np.meshgrid(np.arange(200), np.arange(200)), axis=-1).reshape(-1, 2)
    assert len(np.unique(hash_outputs(grid))) == 40_000
    assert len(np.unique(hash_outputs(grid / 7))) == 40_000


def test_dicts_and_sets_that_are_equal_have_equal_keys() -> None:
    found = hash_outputs([{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 2, "b": 1}])
    assert found[0] == found[1] != found[2]
    # 8 and 16 collide in a small hash table, so that the order of insertion shows in the order of iteration.
    sets = hash_outputs([{8, 16}, {16, 8}, {8, 17}])
    assert sets[0] == sets[1] != sets[2]


MIXED: list[tuple[list[Any], list[Any]]] = [
    ([1, 2], [1, None]),
    ([1, 2], [1, 0.5]),
    ([1, 2], [1, 10**30]),
    ([1, 2], [1, True]),
    ([1, 2], [1, "failed"]),
    ([1.5, 2], [1.5, None]),
    ([[1, 2], [3, 4]], [[1, 2], [3]]),
    ([[1, 2], [3, 4]], [[1, 2], None]),
]


@pytest.mark.parametrize(("one", "other"), MIXED, ids=repr)
def test_an_outputs_key_does_not_depend_on_what_else_is_in_its_batch(one: list[Any], other: list[Any]) -> None:
    # Otherwise the draws of a chunk fall into an event together or not at all, and the bet, which takes them to be
    # independent, raises false alarms.
    assert hash_outputs(as_batch(one, 2))[0] == hash_outputs(as_batch(other, 2))[0]


_PRINT_KEYS = """
import numpy as np
from auditor.targets.outputs import Raised, hash_outputs
print(hash_outputs({values}).tolist(), hash_outputs(np.array([[1.5, 2], [3, 4]])).tolist())
"""


@pytest.mark.parametrize(
    "values",
    [
        '["a", ("b", 1), {"x": [1.5]}, None, Raised("ValueError"), float("nan")]',
        '[{"a", "b", "c", "d"}, frozenset({"x", "y", "z"})]',
    ],
    ids=["symbols", "sets"],
)
def test_keys_are_the_same_in_every_process(values: str) -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", _PRINT_KEYS.format(values=values)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


# ------------------------------------------------------------------------------------ features

VECTORS = np.array([[1.0, 5.0, 2.0, 4.0], [0.0, -1.0, np.nan, np.inf]])


@pytest.mark.parametrize(
    ("feature", "first", "second", "below", "above"),
    [
        (Numeric("coordinate", 1), 5.0, -1.0, "output[1] <= 2.5", "output[1] > 2.5"),
        (Numeric("difference", 1, 0), 4.0, -1.0, "output[1] - output[0] <= 2.5", "output[1] - output[0] > 2.5"),
        (Numeric("sum"), 12.0, math.nan, "sum(output) <= 2.5", "sum(output) > 2.5"),
        (
            Numeric("half"),
            0.0,
            math.nan,
            "sum(first half) - sum(second half) <= 2.5",
            "sum(first half) - sum(second half) > 2.5",
        ),
        (Numeric("max"), 5.0, math.nan, "max(output) <= 2.5", "max(output) > 2.5"),
        (Numeric("min"), 1.0, math.nan, "min(output) <= 2.5", "min(output) > 2.5"),
        (Numeric("argmax"), 1.0, 3.0, "argmax(output) <= 2.5", "argmax(output) > 2.5"),
        (
            Missing(),
            0.0,
            2.0,
            "at most 2 coordinates are NaN or infinite",
            "more than 2 coordinates are NaN or infinite",
        ),
        (
            Linear((1.0, -0.5, 0.0, 0.0)),
            -1.5,
            0.5,
            "+1 output[0] -0.5 output[1] <= 2.5",
            "+1 output[0] -0.5 output[1] > 2.5",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_statistics_of_vectors(feature: Any, first: float, second: float, below: str, above: str) -> None:
    np.testing.assert_array_equal(feature(VECTORS), [first, second])
    assert (feature.below(2.5), feature.above(2.5)) == (below, above)


def test_a_number_is_its_own_feature() -> None:
    np.testing.assert_array_equal(Numeric("value")(np.array([1, 3])), [1.0, 3.0])
    np.testing.assert_array_equal(Numeric("value")(np.array([True, False])), [1.0, 0.0])
    assert Numeric("value").above(1 / 3) == "output > 0.333333"


def test_missing_numbers_are_counted() -> None:
    np.testing.assert_array_equal(Missing()(np.array([1.0, np.nan, np.inf, -np.inf])), [0, 1, 1, 1])


def test_length_and_number_are_read_off_any_value() -> None:
    values = ["ab", (), [1, 2, 3], {"a": 1}, None, 2.5, True, 10**400]
    np.testing.assert_array_equal(Shape("length")(values), [2, 0, 3, 1, -1, -1, -1, -1])
    nan = math.nan
    np.testing.assert_array_equal(Shape("number")(values), [nan, nan, nan, nan, nan, 2.5, nan, nan])
    assert Shape("length").above(2.0) == "length of the output > 2"
    assert Shape("number").below(2.0) == "output is a number and <= 2"


@pytest.mark.parametrize(
    ("value", "exponent"),
    [
        (1.0, 0),
        (-1.0, 0),
        (3.0, 0),
        (6.0, 1),
        (1024.0, 10),
        (0.75, -2),
        (1 + 2**-52, -52),
        (0.1, -55),  # 0.1 = 3602879701896397 / 2^55
        (2.0**-1074, -1074),
        (2.0**1023, 1023),
    ],
)
def test_the_lattice_exponent_is_that_of_the_largest_power_of_two_that_divides(value: float, exponent: int) -> None:
    assert LatticeExponent()(np.array([value]))[0] == exponent
    if abs(exponent) < 1000:
        quotient = int(value / 2.0**exponent)
        assert quotient * 2.0**exponent == value
        assert quotient % 2 == 1


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda v: v != 0))
def test_the_lattice_exponent_of_any_float_is_that_of_its_exact_fraction(value: float) -> None:
    numerator, denominator = value.as_integer_ratio()
    twos = (numerator & -numerator).bit_length() - 1
    assert LatticeExponent()(np.array([value]))[0] == twos - (denominator.bit_length() - 1)


def test_zero_and_what_is_no_number_have_no_lattice() -> None:
    assert np.isnan(LatticeExponent()(np.array([0.0, -0.0, np.nan, np.inf, -np.inf]))).all()
    np.testing.assert_array_equal(LatticeExponent(1)(np.array([[1.0, 2.0], [1.0, 12.0]])), [1.0, 2.0])


def test_the_lattice_event_in_words_is_the_event() -> None:
    feature, values = LatticeExponent(), np.array([0.5, 1.0, 1.5, 2.0, 6.0])
    assert feature.below(-0.5) == "output is not a multiple of 2^0"
    np.testing.assert_array_equal(feature(values) <= -0.5, np.mod(values, 1) != 0)
    assert feature.above(0.0) == "output is a multiple of 2^1"
    np.testing.assert_array_equal(feature(values) > 0.0, np.mod(values, 2) == 0)


def test_symbols_are_ranked_by_how_much_they_speak_for_the_first_dataset() -> None:
    rank = learn_symbols(["a"] * 8 + ["b"] * 4, ["a"] * 2 + ["b"] * 4 + ["c"] * 6, 100)
    assert rank is not None
    np.testing.assert_array_equal(rank(["a", "b", "c"]), [0, 1, 2])
    assert rank.below(0.0) == "output is 'a'"
    assert rank.below(1.0) == "output in {'a', 'b'}"
    assert rank.above(0.0) == "output in {'c', 'b'}"


def test_symbols_never_seen_before_lie_in_no_event() -> None:
    rank = learn_symbols(["a", "a", "b", "b"], ["b", "b", "a", "b"], 100)
    assert rank is not None
    values = rank(["a", "new", "b", "zzz"])
    np.testing.assert_array_equal(np.isnan(values), [False, True, False, True])
    chain = Chain(rank, "above", (0.0, -1.0))
    assert sum(chain.cells(["new"] * 5)[1:]) == 0


def test_many_symbols_are_written_short() -> None:
    rank = Rank(None, tuple(range(20)), tuple(range(20)), tuple(map(str, range(20))))
    assert rank.below(19.0) == "output in {0, 1, 2, 3, 4, 5, 6, 7, ... (20 in all)}"


def test_too_many_symbols_or_one_alone_are_not_ranked() -> None:
    assert learn_symbols(list("abcdefgh"), list("abcdefgh"), 5) is None
    assert learn_symbols(["a"] * 9, ["a"] * 9, 5) is None


def test_histogram_cells_are_ranked_and_hold_their_edges() -> None:
    base = Numeric("value")
    x, y = np.array([0.0] * 9 + [1.0, 2.0, 3.0]), np.array([1.0, 2.0] + [3.0] * 10)
    rank = learn_histogram(base, x, y, 4)
    assert rank is not None
    values = rank(np.array([0.0, 3.0, math.nan, -100.0, 100.0]))
    assert values[0] < values[1]
    assert math.isnan(values[2])
    assert values[3] == values[0]  # the outer cells reach to infinity
    assert "(" in rank.below(0.0)
    assert "]" in rank.below(0.0)
    assert learn_histogram(base, np.ones(9), np.ones(9), 4) is None


# -------------------------------------------------------------------------------------- chains


@settings(deadline=None)
@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.lists(st.floats(-5, 5), min_size=1, max_size=4, unique=True)
)
def test_cells_of_a_chain_count_every_output_once(values: list[float], cuts: list[float]) -> None:
    batch = np.array([*values, math.nan])
    for side, order in (("below", sorted(cuts, reverse=True)), ("above", sorted(cuts))):
        cells = Chain(Numeric("value"), side, tuple(order)).cells(batch)
        assert len(cells) == len(cuts) + 1
        assert min(cells) >= 0
        assert sum(cells) == len(batch)
        for j, cut in enumerate(order):
            inside = sum(v <= cut for v in values) if side == "below" else sum(v > cut for v in values)
            assert sum(cells[j + 1 :]) == inside  # event j holds the cells beyond it


def test_the_words_of_a_chain_are_those_of_its_events() -> None:
    assert Chain(Numeric("value"), "below", (2.0, 1.0)).words() == ("output <= 2", "output <= 1")
    assert Chain(Numeric("value"), "above", (1.0, 2.0)).words() == ("output > 1", "output > 2")


# ------------------------------------------------------------------------------------- learner


def learned(x: Batch, y: Batch, guarantee: Any = PureDP(1.0)) -> EventLearner:  # noqa: B008 - frozen
    learner = EventLearner(guarantee, 0.01)
    learner.add(x, y, learner.count(x, y))
    learner.learn(False)
    return learner


def best_event(learner: EventLearner) -> tuple[str, float, float]:
    proposal = learner.proposal
    assert proposal is not None
    p, q = proposal.estimates()
    return proposal.chain.words()[proposal.best], p[proposal.best], q[proposal.best]


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ApproxDP(1.0, 1e-3), GaussianDP(1.0)], ids=str)
@pytest.mark.parametrize("order", [1, -1])
def test_a_shift_is_found_as_a_threshold_on_the_right_side(guarantee: Any, order: int) -> None:
    # Uniform on [0, 1] against [0.5, 1.5], 300 draws: thresholds at sixteenths of the draws, so a cut within the part
    # that only one of them reaches, of probability a half, exists unless there is no draw in it (probability 2^-300).
    rng = np.random.default_rng(7)
    low, high = rng.random(300), 0.5 + rng.random(300)
    x, y = (low, high)[::order]
    words, p, q = best_event(learned(x, y, guarantee))
    assert words.startswith("output <= " if order == 1 else "output > ")
    assert max(p / q, (1 - q) / (1 - p)) > 10


def test_a_symbol_set_is_found() -> None:
    rng = np.random.default_rng(8)
    letters = np.array(list("abcdef"))
    x = letters[rng.choice(6, 300, p=[0.3, 0.05, 0.3, 0.05, 0.25, 0.05])].tolist()
    y = letters[rng.choice(6, 300, p=[0.05, 0.3, 0.05, 0.3, 0.05, 0.25])].tolist()
    # Each letter's count is Binomial(150, at least 0.25) on one side and Binomial(150, 0.05) on the other, among the
    # draws that it is ranked by: no order is reversed but with probability below 1e-6 (the means are 8 standard
    # deviations of the difference apart).
    words, p, q = best_event(learned(x, y))
    assert words.startswith(("output in {", "output is "))
    assert set("ace") >= {letter for letter in "abcdef" if f"'{letter}'" in words} > set()
    assert p > 2 * q


def test_a_difference_in_length_is_found() -> None:
    rng = np.random.default_rng(9)
    # Contents never repeat, so they are no symbols; only lengths differ.
    x = [rng.random(int(k)).tolist() for k in rng.integers(3, 6, 200)]
    y = [rng.random(int(k)).tolist() for k in rng.integers(1, 3, 200)]
    words, p, q = best_event(learned(x, y))
    assert words == "length of the output > 2"
    assert (p, q) == (201 / 202, 1 / 202)


def test_textbook_laplace_noise_is_found_on_its_float_lattice() -> None:
    # Design section 4: for 0 against 1 "is not a multiple of 2^-53" has probability 0.27 against exactly 0, and is part
    # of what 1 + noise cannot be.
    rng = np.random.default_rng(10)
    learner = learned(rng.laplace(0.0, 1.0, 300), 1 + rng.laplace(0.0, 1.0, 300))
    words, p, q = best_event(learner)
    assert words == "output is not 1 plus a float"
    assert p > 0.3
    assert q == 1 / 302


def test_the_part_of_a_vector_that_differs_is_found() -> None:
    # A shift of 3 standard deviations in one of five coordinates.
    rng = np.random.default_rng(11)
    x, y = np.round(rng.normal(size=(400, 5)), 3), np.round(rng.normal(size=(400, 5)), 3)
    x[:, 2] += 3
    words, p, q = best_event(learned(x, y))
    assert "output[2]" in words
    assert p > 3 * q


def test_missing_numbers_are_found() -> None:
    rng = np.random.default_rng(12)
    x, y = rng.integers(0, 2, 200).astype(float), rng.integers(0, 2, 200).astype(float)
    x[::2] = np.nan
    words, p, q = best_event(learned(x, y))
    assert words in ("a coordinate is NaN or infinite", "output is nan")
    assert p > 0.4
    assert q < 0.02


def test_infinite_outputs_and_huge_vectors_are_learned_from_without_a_warning() -> None:
    rng = np.random.default_rng(13)
    x, y = rng.laplace(size=200), rng.laplace(size=200)
    x[::2] = np.inf
    assert best_event(learned(x, y))[1] > 0.4
    best_event(learned(np.where(rng.random((200, 3)) < 0.5, 1e308, -1e308), np.full((200, 3), 1e308)))


def test_outputs_of_another_type_on_the_other_dataset_are_found() -> None:
    _, p, q = best_event(learned(["a"] * 100, np.zeros((100, 2))))
    assert p > 0.9 > 0.1 > q
    _, p, q = best_event(learned(np.zeros((100, 3)), np.zeros((100, 2))))
    assert p > 0.9 > 0.1 > q


def test_constant_outputs_give_a_proposal_that_bets_nothing() -> None:
    for batch in (np.zeros(50), ["a"] * 50, [None] * 50, np.zeros((50, 3))):
        _, p, q = best_event(learned(batch, batch))
        assert p == q


def feed(learner: EventLearner, rng: np.random.Generator, draws: int) -> None:
    """Chunks as the audit makes them: 20 draws, then 15 % of what has been drawn."""
    while learner.n < draws:
        n = max(20, math.ceil(0.15 * learner.n))
        x, y = rng.normal(size=n), 0.5 + rng.normal(size=n)
        learner.add(x, y, learner.count(x, y))
        learner.learn(False)


def test_what_is_learned_depends_on_the_draws_only() -> None:
    first, second = EventLearner(PureDP(1.0), 0.01), EventLearner(PureDP(1.0), 0.01)
    feed(first, np.random.default_rng(3), 5_000)
    feed(second, np.random.default_rng(3), 5_000)
    assert first.proposal is not None
    assert second.proposal is not None
    assert first.proposal.chain == second.proposal.chain
    assert (first.reach, first.hope) == (second.reach, second.hope)


@pytest.mark.parametrize(("values", "alone", "supposed"), [(2, True, True), (3, True, False), (2, False, False)])
def test_estimates_suppose_a_violation_where_no_event_was_chosen(values: int, alone: bool, supposed: bool) -> None:
    learner = EventLearner(PureDP(1.0), 0.01, alone=alone)
    assert learner.stake_on(0) is None
    rng = np.random.default_rng(5)
    x, y = rng.integers(values, size=400), rng.integers(values, size=400)
    learner.add(x, y, learner.count(x, y))
    learner.learn(False)
    stake = learner.stake_on(3)
    assert stake is not None
    assert (stake.chain, stake.draws > 400) == (3, supposed)


def test_memory_does_not_grow_beyond_the_reservoir() -> None:
    learner = EventLearner(PureDP(1.0), 0.01)
    rng = np.random.default_rng(4)
    feed(learner, rng, RESERVOIR)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    feed(learner, rng, 20 * RESERVOIR)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert learner.n >= 20 * RESERVOIR
    # The reservoir itself, both sides in doubles, is 320 kB, and a learner may copy it when it joins chunks.
    assert after - before < 2 * 2 * 8 * RESERVOIR


def test_a_large_chunk_is_not_kept_alive_by_the_few_draws_taken_from_it() -> None:
    learner = EventLearner(PureDP(1.0), 0.01)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    learner.add(np.zeros(100 * RESERVOIR), np.zeros(100 * RESERVOIR), [])
    learner.learn(False)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 4 * 2 * 8 * RESERVOIR


def test_counts_of_a_proposal_include_every_draw_since_it_was_learned() -> None:
    learner = learned(np.arange(100.0), 50 + np.arange(100.0))
    proposal = learner.proposal
    assert proposal is not None
    before = proposal.n, proposal.x.copy(), proposal.y.copy()
    x, y = np.arange(10.0), 50 + np.arange(10.0)
    learner.add(x, y, learner.count(x, y))
    assert proposal.n == before[0] + 10
    assert proposal.x[0] == before[1][0] + sum(proposal.chain.cells(x)[1:])
    assert proposal.y[0] == before[2][0] + sum(proposal.chain.cells(y)[1:])


def test_the_counts_of_a_chunk_are_the_cells_of_each_finalist() -> None:
    rng = np.random.default_rng(5)
    learner = learned(rng.normal(size=500), 1 + rng.normal(size=500))
    x, y = rng.normal(size=50), 1 + rng.normal(size=50)
    assert learner.proposal in learner.finalists
    assert learner.count(x, y) == [(f.chain.cells(x), f.chain.cells(y)) for f in learner.finalists]


@pytest.mark.parametrize("later", [["failed", 1.5], [None, 1.5], [[1.0], 1.5], np.zeros((2, 3))], ids=repr)
def test_a_kind_of_output_that_comes_first_after_learning_is_counted(later: Batch) -> None:
    learner = learned(np.arange(40.0) + 0.1, np.arange(40.0) + 10.1)
    for x, y in learner.count(later, np.array([1.5, 2.5])):
        assert sum(x) == sum(y) == 2
        assert min(*x, *y) >= 0


@pytest.mark.parametrize("kind", [np.int64, np.uint64, object])
@pytest.mark.parametrize("value", [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**62 + 1, 2**63 + 1])
def test_the_key_of_a_large_integer_depends_on_nothing_else_in_the_batch(kind: Any, value: int) -> None:
    alone = hash_outputs([value])[0]
    assert hash_outputs(["word", value, None])[1] == alone
    if kind is object or np.iinfo(kind).min <= value <= np.iinfo(kind).max:
        for others in ([], [0], [2**53 + 2], [2**53]):
            batch = as_batch(np.array([value, *others], dtype=kind), 1 + len(others))
            assert hash_outputs(batch)[0] == alone
