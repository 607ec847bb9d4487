"""Events for defects of real mechanisms: each is caught within some hundred draws, and the sound version is not.

Corrected versions are audited at alpha = 1e-6: that is the false-alarm probability of each of those tests. Broken ones
are found with a margin: where an event has probability 0 on one side, what a test needs is that some draws of the other
side have it, and budgets are several times what that takes.
"""

from __future__ import annotations

import collections
import ctypes
import datetime
import decimal
import fractions
import io
import math
import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import auditor
from auditor import ApproxDP, Pair, PureDP, audit, one_draw
from auditor.audits.context import Question
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.events.event_learner import EventLearner
from auditor.events.feature_detection import WIDE
from auditor.events.features import Feature, LatticeExponent, Linear, Missing, Numeric, Rank, Shape
from auditor.events.fitting import learn_symbols
from auditor.events.float_bits import BitPattern, NegativeZero, Unreachable, near_answers, precision_of
from auditor.events.learners.bit_strings import BitsSet, bits_of
from auditor.events.learners.coordinate_pairs import CoordinateProduct
from auditor.events.learners.element_types import KindAt
from auditor.events.learners.residues import Remainder
from auditor.events.learners.texts import CharacterInText, NumberInText, WordInText
from auditor.events.numbers_in_text import Written, written_in
from auditor.events.output_types import Flag, IsValue, KeyOrder, KindIs, kinds_of
from auditor.events.presence import Presence, moved_items
from auditor.events.reservoir import NUMBERS, Reservoir
from auditor.events.root_causes import cause_of, rank_simplicity
from auditor.events.screening import best_columns, screen_coordinates
from auditor.events.shared_noise import Cancelled, Equal, Repeats, equal_coordinates, without_noise
from auditor.events.structure import Item
from auditor.targets.outputs import (
    Batch,
    Raised,
    Typed,
    as_batch,
    concatenate_batches,
    hash_outputs,
    read_column,
    read_matrix,
)
from auditor.targets.values import kind_of, make_visible

NAN = math.nan
PAIR = Pair(np.array([0.0]), np.array([1.0]))
Array = NDArray[Any]


def found_event(
    mechanism: Any, *, guarantee: Any = None, draws: int = 1_200, pair: Pair = PAIR, seed: int = 0
) -> tuple[str, str]:
    """Event and cause of a violation; an assertion fails if there is none."""
    result = audit(mechanism, guarantee or PureDP(1.0), pair, draws=draws, alpha=1e-6, seed=seed)
    assert result.verdict == "violation", f"{result.verdict}: {result.event}"
    assert result.event is not None
    assert result.counterexample is not None
    return result.event, result.counterexample.cause


def not_found(mechanism: Any, *, guarantee: Any = None, draws: int = 1_200, pair: Pair = PAIR) -> None:
    result = audit(mechanism, guarantee or PureDP(1.0), pair, draws=draws, alpha=1e-6)
    assert result.verdict in ("consistent", "inconclusive"), f"{result.verdict}: {result.event} {result.message}"


def lattice_noise(rng: np.random.Generator, size: Any, epsilon: float = 1.0) -> Array:
    """Two-sided geometric noise for answers that differ by 1."""
    p = 1 - math.exp(-epsilon)
    return np.asarray(rng.geometric(p, size) - rng.geometric(p, size))


# --------------------------------------------------------------------------------- floating point


def laplace(scale: float, kind: type = float, single: bool = False) -> Callable[..., Array]:
    def mechanism(data: Array, n: int, rng: np.random.Generator) -> Array:
        noise = rng.laplace(0, scale, n)
        return np.asarray((np.float32(data[0]) + noise.astype(np.float32)) if single else data[0] + noise, dtype=kind)

    return mechanism


@pytest.mark.parametrize(("scale", "draws"), [(1.0, 1_000), (2.0, 1_200), (10.0, 4_000), (100.0, 16_000)])
def test_textbook_laplace_noise_is_caught_at_any_scale(scale: float, draws: int) -> None:
    event, cause = found_event(laplace(scale), guarantee=PureDP(1 / scale), draws=draws)
    assert "float" in event or "multiple" in event or "bit" in event
    assert "bit structure" in cause or scale > 2


@pytest.mark.parametrize(("unit", "draws"), [(1e6, 2_000), (1e12, 2_000), (1e-9, 2_000), (0.1, 6_000), (1 / 3, 8_000)])
def test_textbook_noise_is_caught_in_any_unit(unit: float, draws: int) -> None:
    # From f = unit to f = 2 unit, with noise of that scale.
    pair = Pair(np.array([unit]), np.array([2 * unit]))
    event, _ = found_event(laplace(unit), draws=draws, pair=pair)
    assert "float" in event or "multiple" in event or "bit" in event


def test_textbook_gaussian_noise_is_caught() -> None:
    def gaussian(data: Array, n: int, rng: np.random.Generator) -> Array:
        return np.asarray(data[0] + rng.normal(0, 3, n))

    # Its delta at epsilon 2 is below 1e-5 (analytic: sensitivity 1, standard deviation 3).
    event, cause = found_event(gaussian, guarantee=ApproxDP(2.0, 1e-5), draws=8_000)
    assert "float" in event
    assert "bit structure" in cause


def test_noise_in_single_precision_is_caught() -> None:
    event, cause = found_event(laplace(1.0, np.float32, single=True))
    assert "single precision" in event
    assert "bit structure" in cause


@pytest.mark.parametrize(("d", "moved"), [(3, 1), (9, 7), (60, 41)])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_textbook_noise_on_one_coordinate_is_caught(d: int, moved: int, kind: type) -> None:
    def vector(data: Array, n: int, rng: np.random.Generator) -> Array:
        answers: Array = np.zeros(d, dtype=kind)
        answers[moved] = data[0]
        return np.asarray(answers + rng.laplace(0, 1, (n, d)).astype(kind))

    event, _ = found_event(vector, draws=2_400)
    assert event.startswith(f"output[{moved}] is")


@pytest.mark.parametrize("form", ["tuple", "dict", "ragged", "nested"])
def test_textbook_noise_in_structured_outputs_is_caught(form: str) -> None:
    def structured(data: Array, rng: np.random.Generator) -> Any:
        count, noise = float(data[0] + rng.laplace()), float(rng.integers(5))
        return {
            "tuple": (count, "ok"),
            "dict": {"count": count, "version": 3},
            "ragged": [count, *([noise] * int(rng.integers(1, 3)))],
            "nested": {"results": [["count", count]]},
        }[form]

    event, cause = found_event(one_draw(structured), draws=2_400)
    assert event.startswith("output[")
    assert "float" in event
    assert "bit structure" in cause


def test_floats_keep_their_structure_where_some_draws_raise() -> None:
    def sometimes(data: Array, rng: np.random.Generator) -> Any:
        if rng.random() < 0.2:
            raise ValueError("no luck")
        return data[0] + rng.laplace()

    event, cause = found_event(one_draw(sometimes), draws=2_400)
    assert "float" in event
    assert "bit structure" in cause


@pytest.mark.parametrize("kind", [float, np.float32])
def test_noise_on_a_lattice_is_not_flagged(kind: type) -> None:
    def rounded(data: Array, n: int, rng: np.random.Generator) -> Array:
        return np.asarray((1024 * data[0] + lattice_noise(rng, n, 1 / 1024)).astype(kind) / kind(1024))

    not_found(rounded, draws=8_000)


def test_large_noise_far_from_zero_is_not_flagged() -> None:
    # All outputs lie between 2^19 and 2^20: one lattice for both datasets, of which the noise has all points.
    not_found(laplace(10.0), guarantee=PureDP(0.1), pair=Pair(np.array([7e5]), np.array([7e5 + 1])), draws=8_000)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e9])
def test_precision_is_seen_at_any_scale(scale: float) -> None:
    rng = np.random.default_rng(1)
    # 60 draws: 60 floats of one binade only, or all with zeros in the last two bits, are impossible in practice.
    noise = scale * rng.laplace(size=(2, 60))
    assert precision_of(noise[0], noise[1]) == 53
    single = noise.astype(np.float32).astype(float)
    assert precision_of(single[0], single[1]) == 24
    step = 2.0 ** round(math.log2(scale / 1000))
    assert precision_of(*(np.rint(noise / step) * step)) == 0
    assert precision_of(np.zeros(5), np.full(5, scale)) == 0
    assert precision_of(np.full(5, NAN), np.full(5, math.inf)) == 0


def test_negative_zero_is_told_from_zero() -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, NAN])
    np.testing.assert_array_equal(NegativeZero()(values), [0, 1, NAN, NAN, NAN])
    assert NegativeZero().above(0.0) == "output is -0.0"
    assert NegativeZero(Numeric("coordinate", 3, width=4)).below(0.0) == "output[3] is 0.0, not -0.0"

    def zero(data: Array, n: int, rng: np.random.Generator) -> Array:
        return np.full(n, -0.0 if data[0] else 0.0)

    event, cause = found_event(zero)
    assert "-0.0" in event
    assert "sign bit" in cause
    not_found(lambda data, n, rng: np.where(rng.random(n) < 0.5, -0.0, 0.0))


def test_a_negative_zero_in_a_row_is_found_where_both_sides_have_some() -> None:
    def rows(data: Array, n: int, rng: np.random.Generator) -> Array:
        zeros = np.where(rng.random(n) < (0.9 if data[0] else 0.1), -0.0, 0.0)
        return np.column_stack([rng.integers(1_000, size=n), zeros])

    event, _ = found_event(rows, draws=600)
    assert event in ("output[1] is -0.0", "output[1] is 0.0, not -0.0")


def test_the_bit_pattern_in_words_is_sign_first_and_last_bit() -> None:
    pattern = BitPattern()
    codes = pattern(np.array([0.75, -6.0, 1.0, 0.0, NAN, 2.0**-1074]))
    assert [pattern.label(code) for code in codes] == [
        "+2^-1..2^-2",
        "-2^2..2^1",
        "+2^0..2^0",
        "no bits",
        "no bits",
        "+2^-1074..2^-1074",
    ]
    assert pattern.name == "sign, first and last bit of output"
    assert BitPattern(Item(("n",))).name == "sign, first and last bit of output['n']"


def test_small_noise_has_decimal_fractions_for_answers() -> None:
    x = 0.3 + np.array([-0.011, 0.0, 0.012])
    offsets = {feature.offset for feature in near_answers(x, x + 0.1)}
    assert {0.3, 0.4} <= offsets
    assert not Unreachable(0.3)(0.3 + np.random.default_rng(2).laplace(0, 0.01, 1_000)).any()


# ---------------------------------------------------------------------------------- long vectors


def bits(d: int, last: float, kind: type = np.int8) -> Callable[..., Array]:
    """Randomised response with epsilon 1 on bits, of which the last is the person's; ``last``: how it is flipped."""

    def mechanism(data: Array, n: int, rng: np.random.Generator) -> Array:
        flip = rng.random((n, d)) < 1 / (1 + math.e)
        flip[:, -1] &= rng.random(n) < last
        truth = np.zeros(d, dtype=bool)
        truth[-1] = bool(data[0])
        return np.asarray(truth ^ flip, dtype=kind)

    return mechanism


@pytest.mark.parametrize("d", [64, 256, 1024])
@pytest.mark.parametrize("kind", [np.int8, bool, float])
def test_a_last_bit_that_is_never_flipped_is_caught(d: int, kind: type) -> None:
    event, cause = found_event(bits(d, 0.0, kind), draws=600)
    assert event in (f"output[{d - 1}] is 0", f"output[{d - 1}] is 1")
    assert cause.startswith(f"coordinate {d - 1}")


@pytest.mark.parametrize("d", [64, 1024])
def test_a_last_bit_that_is_flipped_is_not(d: int) -> None:
    not_found(bits(d, 1.0), guarantee=PureDP(1.0001), draws=1_200)


def test_one_of_many_bins_with_half_of_the_noise_is_caught() -> None:
    def bins(data: Array, n: int, rng: np.random.Generator) -> Array:
        noise = lattice_noise(rng, (n, 300))
        noise[:, 211] = lattice_noise(rng, n, 4.0)
        noise[:, 211] += int(data[0])
        return noise

    event, cause = found_event(bins, draws=2_400)
    assert "output[211]" in event
    assert "coordinate 211" in cause


def test_a_hundred_thousand_coordinates_are_looked_at_within_seconds() -> None:
    d = 100_000
    rng = np.random.default_rng(3)
    learner = EventLearner(PureDP(1.0), 1e-6)
    for _ in range(3):
        x, y = (rng.integers(0, 2, (20, d), dtype=np.int8) for _ in range(2))
        x[:, 77_777], y[:, 77_777] = 0, 1
        learner.add(x, y, learner.count(x, y))
        learner.learn(False)
    assert learner.proposal is not None
    assert learner.proposal.chain.words()[learner.proposal.best] in ("output[77777] is 0", "output[77777] <= 0")


def test_what_is_kept_of_long_outputs_is_bounded_in_numbers() -> None:
    long = Reservoir(20_000)
    long.add(np.zeros((8, NUMBERS // 100), dtype=np.int8), np.zeros((8, NUMBERS // 100), dtype=np.int8))
    assert long.size == 100
    wide = Reservoir(20_000)
    wide.add(np.zeros((2, 1_000)), np.zeros((2, 1_000)))
    assert wide.size == 20_000


def test_screening_scores_what_differs_and_nothing_else() -> None:
    rng = np.random.default_rng(4)
    n, d = 200, 50
    x, y = rng.normal(size=(2, n, d))
    x[:, 3] += 2  # mean
    x[:, 7] *= 5  # spread
    x[:50, 11] = NAN
    x[:60, 13] = y[0, 13]  # a value that repeats
    x[:, 17], y[:, 17] = 1.0, 2.0  # constants
    x[:, 19], y[:, 19] = 3.0, 3.0
    x[:, 23] = np.rint(x[:, 23])  # last bits
    scores = screen_coordinates(x, y)
    # The largest of 43 coordinates' dozen scores is above 6 with probability below 1e-6 (normal tails, 500 of them),
    # each of those above is beyond 6 but for a probability of the same order.
    assert set(np.flatnonzero(scores > 6).tolist()) == {3, 7, 11, 13, 17, 23}
    assert scores[19] == 0
    assert best_columns(scores, 1, 0.0) == [17]


def test_scores_of_long_outputs_use_some_coordinates() -> None:
    feature = Linear((1.0, -0.5), (700, 3), 1_000)
    rows = np.zeros((2, 1_000), dtype=np.int8)
    rows[1, [3, 700]] = 4, 3
    np.testing.assert_array_equal(feature(rows), [0.0, 1.0])
    np.testing.assert_array_equal(feature([rows[1].tolist(), [1, 2]]), [1.0, 0.0])
    assert feature.below(1.0) == "+1 output[700] -0.5 output[3] <= 1"
    assert WIDE < 1_000


# ------------------------------------------------------------------- exceptions, types, attributes


def test_an_exception_on_one_dataset_is_caught() -> None:
    def raising(data: Array, rng: np.random.Generator) -> Any:
        if data[0] and rng.random() < 0.5:
            raise ZeroDivisionError("float division by zero")
        return int(lattice_noise(rng, ()))

    for pair in (PAIR, Pair(PAIR.y, PAIR.x)):
        event, cause = found_event(one_draw(raising), pair=pair)
        assert event in ("raised ZeroDivisionError", "did not raise ZeroDivisionError")
        assert cause == "exception"


def test_another_class_of_exception_is_caught() -> None:
    def raising(data: Array, rng: np.random.Generator) -> Any:
        if rng.random() < 0.5:
            raise (KeyError if data[0] else ValueError)("row")
        return float(lattice_noise(rng, ()))

    event, cause = found_event(one_draw(raising))
    assert "raise" in event
    assert cause == "exception"
    not_found(one_draw(lambda data, rng: [][0] if rng.random() < 0.5 else 1.0))


@dataclass
class Release:
    """What some libraries return: a value with notes."""

    value: float
    rows: int


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (3, 3),
        ([1, (2.0, "a")], [1, (2.0, "a")]),
        (np.float32(1.5), Typed("float32", 1.5)),
        (np.float64(1.5), 1.5),
        (np.array([1, 2], dtype=np.int8), Typed("int8", [1, 2])),
        (np.array([1.0, 2.0]), [1.0, 2.0]),
        ({"a": np.float32(2)}, {"a": Typed("float32", 2.0)}),
        (Release(1.5, 7), Typed(f"{__name__}.Release", {"value": 1.5, "rows": 7})),
        (
            np.ma.MaskedArray([1.0, 2.0], [False, True]),
            Typed("numpy.ma.MaskedArray", {"data": [1.0, 2.0], "mask": [False, True]}),
        ),
        (
            pd.Series([1.0, 2.0], index=["a", "b"], name="mean"),
            Typed("pandas.Series", {"dtype": "float64", "values": [1.0, 2.0], "index": ["a", "b"], "name": "mean"}),
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_can_be_seen_of_a_value(value: Any, plain: Any) -> None:
    assert make_visible(value) == plain


def test_a_table_shows_its_labels_types_and_attributes() -> None:
    table = pd.DataFrame({"n": [1, 2], "m": [0.5, None]}, index=[3, 4])
    table.attrs["rows"] = 17
    seen = make_visible(table)
    assert seen.kind == "pandas.DataFrame"
    assert seen.value["columns"] == ["n", "m"]
    assert seen.value["dtypes"] == ["int64", "float64"]
    assert seen.value["index"] == [3, 4]
    assert seen.value["attrs"] == {"rows": 17}


def test_an_object_that_holds_itself_ends() -> None:
    class Ring:
        def __init__(self) -> None:
            self.me = self
            self._hidden = 1

    assert make_visible(Ring()).kind.endswith("Ring")
    assert hash_outputs([make_visible(Ring())]).shape == (1,)


def test_what_is_plain_stays_what_it_is_and_an_object_without_attributes_has_its_text() -> None:
    for value in (len, Release, {1, 2}, "text", Raised("ValueError")):
        assert make_visible(value) is value
    assert make_visible(object()) == Typed("object", {"repr()": "<object object>"})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, "int"),
        (np.int64(1), "int"),
        (np.int8(1), "int8"),
        (1.0, "float"),
        (True, "bool"),
        (None, "None"),
        ("a", "str"),
        ((1, 2), "sequence"),
        ([], "sequence"),
        (np.zeros(2), "sequence"),
        (np.zeros(2, dtype=np.float32), "float32"),
        ({}, "dict"),
        (frozenset(), "set"),
        (Typed("a.B", 1), "a.B"),
        (Raised("KeyError"), "raised KeyError"),
    ],
    ids=repr,
)
def test_the_kind_of_a_value(value: Any, kind: str) -> None:
    assert kind_of(value) == kind
    np.testing.assert_array_equal(KindIs(kind)([value, object()]), [1, 0])


@pytest.mark.parametrize("kind", [np.int32, np.float32, np.uint8])
@pytest.mark.parametrize("whole", [True, False])
def test_another_type_of_numbers_is_caught(kind: type, whole: bool) -> None:
    def typed(data: Array, n: int, rng: np.random.Generator) -> Any:
        values: Array = rng.integers(0, 2, n).astype(kind if data[0] else np.float64)
        return values if whole else list(values)

    event, cause = found_event(typed)
    assert event.startswith("type of the output is")
    assert cause == "type of the output"
    not_found(lambda data, n, rng: rng.integers(0, 2, n).astype(kind))


def test_integers_among_floats_are_caught() -> None:
    def typed(data: Array, rng: np.random.Generator) -> Any:
        value = float(lattice_noise(rng, ()))
        return int(value) if data[0] and rng.random() < 0.5 else value

    event, cause = found_event(one_draw(typed))
    assert event.startswith("type of the output is")
    assert cause == "type of the output"


def test_a_type_that_changes_from_call_to_call_is_no_evidence() -> None:
    # The type is a coin's, call by call, and the coin knows nothing of the data. Bets take the draws of a call to be
    # independent. That the first 11 calls of one side are all of one type, and of the other all of the other, has
    # probability 2^-21.
    def fickle(data: Array, n: int, rng: np.random.Generator) -> Array:
        return rng.integers(0, 2, n).astype(np.int32 if rng.random() < 0.5 else np.float64)

    not_found(fickle, draws=4_000)


def shaped(*shapes: tuple[int, ...]) -> Any:
    """Noise whose shape depends on the data."""

    def mechanism(data: Array, n: int, rng: np.random.Generator) -> Array:
        return lattice_noise(rng, (n, *shapes[int(data[0]) % len(shapes)]))

    return mechanism


@pytest.mark.parametrize("shapes", [((2, 3), (3, 2)), ((1,), (1, 1)), ((4,), (2, 2))])
def test_another_shape_of_arrays_is_caught(shapes: Any) -> None:
    event, cause = found_event(shaped(*shapes))
    assert event.startswith("type of the output is")
    assert cause == "type of the output"
    not_found(shaped(shapes[1]))


def test_rows_keep_the_shape_of_their_arrays() -> None:
    batch = as_batch(np.arange(12, dtype=np.uint8).reshape(2, 3, 2), 2)
    kind = "uint8 array of shape (3, 2)"
    assert batch.shape == (2, 6)  # type: ignore[union-attr]
    joined = concatenate_batches([batch, pickle.loads(pickle.dumps(batch))])
    for one in (batch, batch[1:], batch.copy(), joined, concatenate_batches([batch, [1]])[:2]):
        np.testing.assert_array_equal(KindIs(kind)(one), 1)
    other = as_batch(np.arange(12, dtype=np.uint8).reshape(2, 2, 3), 2)
    np.testing.assert_array_equal(KindIs(kind)(concatenate_batches([batch, other])), [1, 1, 0, 0])


def test_attributes_are_read() -> None:
    def released(data: Array, rng: np.random.Generator) -> Release:
        return Release(float(lattice_noise(rng, ())), rows=10 + int(data[0]))

    event, cause = found_event(one_draw(released))
    assert "output['rows']" in event
    assert "attribute" in cause


def test_tables_are_read() -> None:
    def table(data: Array, rng: np.random.Generator) -> pd.DataFrame:
        found = pd.DataFrame({"n": lattice_noise(rng, 3)})
        found.attrs["rows"] = 17 + int(data[0])
        return found

    event, _ = found_event(one_draw(table), draws=600)
    assert "rows" in event


def test_a_mask_is_read() -> None:
    def masked(data: Array, n: int, rng: np.random.Generator) -> Any:
        return np.ma.MaskedArray(rng.integers(0, 2, n), mask=rng.random(n) < 0.9 * data[0])

    found_event(masked)
    assert as_batch(np.ma.MaskedArray([1, 2]), 2) != [1, 2]


# ----------------------------------------------------------------------- bytes, keys and members


@pytest.mark.parametrize("size", [2, 8, 128])
def test_a_bit_of_bytes_that_is_never_flipped_is_caught(size: int) -> None:
    def packed(data: Array, n: int, rng: np.random.Generator) -> list[bytes]:
        return [row.tobytes() for row in np.packbits(bits(8 * size, 0.0)(data, n, rng).astype(bool), axis=1)]

    event, cause = found_event(packed, draws=600)
    assert event in (f"output[{8 * size - 1}] is 0", f"output[{8 * size - 1}] is 1")
    assert cause.startswith(f"coordinate {8 * size - 1}")


def test_bytes_are_read_bit_by_bit() -> None:
    values = [b"\x80\x01", b"\x00\x03", b"\xff", "text"]
    np.testing.assert_array_equal(Flag(0, 16)(values), [1, 0, NAN, NAN])
    np.testing.assert_array_equal(Flag(15, 16)(values), [1, 1, NAN, NAN])
    np.testing.assert_array_equal(BitsSet()(values), [2, 2, 8, NAN])
    rows = bits_of(values[:2])
    assert rows is not None
    np.testing.assert_array_equal(rows[:, [0, 14, 15]], [[1, 0, 1], [0, 1, 1]])
    assert bits_of(values) is None
    assert bits_of([b"", b""]) is None


@pytest.mark.parametrize("form", ["dict", "set", "list"])
def test_a_rare_member_of_one_side_is_caught(form: str) -> None:
    # Forty others come and go; "rare" is released with probability 0.03, and never on the other dataset. Some 15 of
    # them in 500 draws are needed; 200 draws without any have probability 0.002, and there are 6,000.
    def partitions(data: Array, rng: np.random.Generator) -> Any:
        members = [f"key {k}" for k in range(40) if rng.random() < 0.5]
        if data[0] and rng.random() < 0.03:
            members.append("rare")
        return {"dict": {k: int(rng.integers(3)) for k in members}, "set": set(members), "list": members}[form]

    event, cause = found_event(one_draw(partitions), guarantee=ApproxDP(1.0, 1e-6), draws=12_000)
    assert "'rare'" in event
    assert "present" in cause


def test_what_is_held_is_counted_by_side() -> None:
    seen = Presence()
    seen.add([{"a": 1, "b": 2}, {"b": 1}, {"a": 3}] * 4, [{"b": 1}, {"b": 3}, [1, "x"]] * 4)
    assert (seen.keys.x[("a",)], seen.keys.y[("a",)], seen.keys.y[("b",)]) == (8, 0, 8)
    assert seen.members.y["str", "x"] == 4
    assert Item(("a",), "present") in seen.features()
    assert "sequence" in seen.different_kinds()


_PRINT_FEATURES = """
import numpy as np
from auditor.events.feature_detection import telling_features
rng = np.random.default_rng(1)
names = list("abcdefghijkl")
def outputs(p):
    return [{name: int(rng.integers(3)) for name in names if rng.random() < p} for _ in range(60)]
sides = [outputs(0.3), outputs(0.7)]
print(*map(repr, telling_features(*sides)), sep=";")
print(*map(repr, telling_features(*([set(output) for output in side] for side in sides))), sep=";")
"""


def test_what_is_offered_is_the_same_in_every_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", _PRINT_FEATURES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert "present" in found.pop()


def test_numbers_at_far_places_are_found() -> None:
    rng = np.random.default_rng(5)
    x, y = ([{f"k{j}": float(v) for j, v in enumerate(rng.normal(size=200))} for _ in range(80)] for _ in range(2))
    for output in x:
        output["k150"] += 4
    assert moved_items(x, y)[0] == Item(("k150",))


def test_the_order_of_keys_is_seen() -> None:
    def ordered(data: Array, rng: np.random.Generator) -> Any:
        first, second = ("a", "b") if data[0] else ("b", "a")
        return {first: int(lattice_noise(rng, ())), second: 1}

    event, cause = found_event(one_draw(ordered))
    assert event.startswith("order of the output's keys")
    assert "order" in cause
    assert KeyOrder()(np.zeros(2)) == [None, None]


@pytest.mark.parametrize("form", ["list", "text", "nested"])
def test_a_length_that_depends_on_the_data_is_caught(form: str) -> None:
    def grown(data: Array, rng: np.random.Generator) -> Any:
        size = 3 + int(data[0])
        row = [float(v) for v in lattice_noise(rng, size)]
        return {"list": row, "text": "".join(rng.choice(list("abcdef"), size + 9)), "nested": [row]}[form]

    event, cause = found_event(one_draw(grown), draws=800)
    assert "length" in event or form == "nested"
    assert "length" in cause or form == "nested"


@pytest.mark.parametrize("form", ["text", "<d", ">d", "<f"])
def test_floats_that_are_written_are_read(form: str) -> None:
    def write(value: float) -> Any:
        return repr(value) if form == "text" else struct.pack(form, value)

    def single(value: float) -> float:
        return float(np.float32(value)) if form == "<f" else value

    def written(data: Array, rng: np.random.Generator) -> Any:
        return write(single(float(data[0]) + single(rng.laplace())))

    event, cause = found_event(one_draw(written), draws=3_000)
    assert "float" in event
    assert "bit structure of a number that the output writes" in cause
    not_found(one_draw(lambda data, rng: write(float(lattice_noise(rng, ())) + float(data[0]))), draws=3_000)


def test_only_numbers_are_read_as_numbers() -> None:
    values = ["1.5", " -2e3", "1_0", "nan", "0x1p3", "about 3", b"1.5", 1.5, None]
    np.testing.assert_array_equal(Written("text")(values), [1.5, -2000, *[NAN] * 7])
    np.testing.assert_array_equal(Written("<d")([struct.pack("<d", 0.1), b"short", "text"]), [0.1, NAN, NAN])
    assert Written("text").below(1.0) == "number that the output writes <= 1"
    assert written_in(["a", 1.0]) == written_in([1.0, 2.0]) == []
    assert written_in(["1", "2.5"]) == [Written("text")]
    assert written_in([struct.pack("<d", value) for value in (0.1, -3.7, 12.0)])[0] == Written("<d")


FIRST_DAY = datetime.datetime(2026, 1, 1)
#: Outputs of which nothing but one number varies, all of one length, and words of the event that shows it.
FORMS: dict[str, tuple[Callable[[int], Any], str]] = {
    "sentence": (lambda v: f"about {v} people", "number 1 in the text of output"),
    "json": (lambda v: f'{{"of": 1000, "count": {v}}}', "number 2 in the text of output"),
    "money": (lambda v: f"${v:.2f}", "number 1 in the text of output"),
    "date": (lambda v: (FIRST_DAY + datetime.timedelta(hours=v + 12)).isoformat(), "in the text of output"),
    "field": (lambda v: {"count": str(v)}, "number 1 in the text of output['count']"),
    "two fields": (lambda v: ("n", [f"{v} of 1000"]), "number 1 in the text of output[1][0]"),
    "decimal": (lambda v: decimal.Decimal(v), "output['value']"),
    "fraction": (lambda v: fractions.Fraction(v, 7), "output['"),
    "complex": (lambda v: complex(0, v), "output['imag']"),
    "moment": (lambda v: FIRST_DAY + datetime.timedelta(hours=v), "output['seconds']"),
    "duration": (lambda v: datetime.timedelta(seconds=v), "output['seconds']"),
    "numpy's moment": (lambda v: np.datetime64(v, "s"), "output is a number"),
    "buffer": (lambda v: bytearray(struct.pack("<d", v)), "output read as a double"),
    "queue": (lambda v: collections.deque([v]), "output[0]"),
    "view": (lambda v: {"count": v}.values(), "output[0]"),
    "buffered text": (lambda v: io.StringIO(f"about {v} people"), "number 1 in the text of output"),
    "row of fields": (lambda v: np.array([(0, v)], dtype="i4, f8")[0], "output['f1']"),
    "compiled class": (lambda v: ctypes.c_double(v), "output['value']"),
    "categories": (lambda v: pd.Categorical(["a"], categories=["a", v]), "output['categories'][0][1]"),
    "name of an index": (lambda v: pd.Series([0.5], index=pd.Index([0], name=v)), "output['index names'][0]"),
    "object with a text": (lambda v: Opaque(v, f"Model({v} of 1000)"), "number 1 in the text of output['repr()']"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_number_is_read_in_whatever_form_it_is_given(form: str) -> None:
    write, words = FORMS[form]

    def target(shift: int) -> Any:
        return one_draw(lambda data, rng: write(500 + shift * int(data[0]) + int(lattice_noise(rng, ()))))

    event, cause = found_event(target(4), draws=600)
    assert words in event
    assert "threshold" in cause or "value at a place" in cause
    not_found(target(1), draws=2_000)


def test_arrays_of_complex_numbers_are_read_as_single_ones_are() -> None:
    def rows(data: Array, n: int, rng: np.random.Generator) -> Array:
        return np.asarray(lattice_noise(rng, (n, 2)) + 1j * (4 * data[0] + lattice_noise(rng, (n, 2))))

    batch = as_batch(np.array([1 + 2j, 3j]), 2)
    assert batch == [make_visible(np.complex128(1 + 2j)), make_visible(np.complex128(3j))]
    event, _ = found_event(rows, draws=600)
    assert "imag" in event


class Opaque:
    """Of which nothing can be read."""

    def __init__(self, value: float, text: str = "Opaque") -> None:
        self._value, self._text = value, text

    def __repr__(self) -> str:
        return self._text


@pytest.mark.parametrize(("private", "what"), [(False, "objects of class Opaque"), (True, "objects")])
def test_a_pass_says_what_could_not_be_read(private: bool, what: str) -> None:
    def opaque(data: Array, n: int, rng: np.random.Generator) -> list[Any]:
        return [Opaque(float(data[0]))] * n

    settings = Settings(draws=400, alpha=0.01, detect=9.0)
    result = run_audit(opaque, PureDP(1.0), [PAIR], settings, Question("opaque", private=private))
    assert result.verdict == "consistent"
    said = f"only the texts of {what} in the outputs could be read, so that nothing else of them was tested"
    assert result.message == said
    assert f"note         {said}" in auditor.explain(result)


# ------------------------------------------------------------------ shared noise, constants, NaN


def test_noise_that_cancels_between_far_coordinates_is_caught() -> None:
    def shared(data: Array, n: int, rng: np.random.Generator) -> Array:
        noise = lattice_noise(rng, (n, 12), 0.5)
        noise[:, 9] = -2 * noise[:, 3]
        noise[:, 9] += int(data[0])
        return noise

    event, cause = found_event(shared)
    assert "output[3]" in event
    assert "output[9]" in event
    assert "shared noise" in cause


def test_coordinates_that_are_equal_on_one_dataset_are_caught() -> None:
    def copied(data: Array, n: int, rng: np.random.Generator) -> Array:
        values = rng.normal(size=(n, 30))
        if data[0]:
            values[:, 27] = values[:, 2]
        return values

    event, cause = found_event(copied)
    assert event in ("output[2] equals output[27]", "output[2] and output[27] differ") or "equal coordinates" in event
    assert "equal coordinates" in cause


def test_combinations_without_noise_are_found_where_there_are_any() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 60, 4))
    assert without_noise(x, y, (0, 1, 2, 3), 4) is None
    x[:, 2], y[:, 2] = x[:, 0] + 5, y[:, 0] + 6
    assert without_noise(x, y, (0, 1, 2, 3), 4) == Cancelled((1.0, -1.0), (2, 0), 4)
    y[:, 2] -= 1
    assert without_noise(x, y, (0, 1, 2, 3), 4) is None  # no noise, but no difference
    assert without_noise(x[:2], y[:2], (0, 1, 2, 3), 4) is None
    assert Cancelled((1.0, -0.5), (2, 0), 3).above(1.0) == "output[2] - 0.5 output[0] > 1"


def test_equal_coordinates_count_where_values_hardly_repeat() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(2, 40, 5))
    assert equal_coordinates(x, y) == []
    x[:, 4] = x[:, 1]
    assert equal_coordinates(x, y) == [Repeats(5), Equal(1, 4, 5)]
    coarse = np.rint(3 * x) / 10
    assert equal_coordinates(coarse, np.rint(3 * y) / 10) == []
    np.testing.assert_array_equal(
        Repeats(3)(np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 1.0], [NAN, NAN, NAN]])), [2, 1, NAN]
    )


@pytest.mark.parametrize("form", ["vector", "list", "text"])
def test_an_output_that_never_varies_on_one_dataset_is_caught(form: str) -> None:
    def stuck(data: Array, rng: np.random.Generator) -> Any:
        row = np.zeros(3) if data[0] else rng.normal(size=3)
        return {"vector": row, "list": [row.tolist(), "ok"], "text": repr(row.tolist())}[form]

    for pair in (PAIR, Pair(PAIR.y, PAIR.x)):
        found_event(one_draw(stuck), pair=pair)


def test_a_value_in_words_is_that_value() -> None:
    rows = as_batch([(1.0, 2.0), (3.0, 4.0)], 2)
    feature = IsValue(int(hash_outputs(rows)[1]), "[3.0, 4.0]")
    np.testing.assert_array_equal(feature(rows), [0, 1])
    np.testing.assert_array_equal(feature([[3.0, 4.0], "a"]), [1, 0])
    assert (feature.above(0.0), feature.below(0.0)) == ("output is [3.0, 4.0]", "output is not [3.0, 4.0]")


@pytest.mark.parametrize("bad", [NAN, math.inf, -math.inf])
@pytest.mark.parametrize("d", [0, 5, 40])
def test_a_coordinate_that_is_missing_on_one_dataset_is_caught(bad: float, d: int) -> None:
    def missing(data: Array, n: int, rng: np.random.Generator) -> Array:
        values = lattice_noise(rng, (n, d) if d else n).astype(float)
        hit = rng.random(n) < 0.6 * data[0]
        values[hit] = bad if not d else np.where(np.arange(d) == d - 2, bad, values[hit])
        return values

    event, _ = found_event(missing, draws=1_600)
    assert any(word in event for word in ("NaN", "inf", "finite", "<=", ">"))
    feature = Missing(base=Numeric("coordinate", 3, width=5))
    assert feature.above(0.0) == "output[3] is NaN or infinite"


# ----------------------------------------------------------------- each output is read by itself

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, -0.0, 0.0, NAN, math.inf, 0.1, 1e-300]),
    st.sampled_from(
        [
            b"ab",
            b"\x00\x01",
            bytes(8),
            "ab",
            "1.5",
            Raised("ValueError"),
            Typed("float32", 0.5),
            np.float32(2),
            np.int8(1),
        ]
    ),
)
OUTPUTS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
        st.builds(Typed, st.just("a.B"), st.dictionaries(st.sampled_from("xy"), inner, max_size=2)),
    ),
    max_leaves=6,
)
NUMBER = Shape("number")
FEATURES: list[Feature] = [
    KindIs("int"),
    KindIs("float32"),
    KindIs("raised ValueError"),
    KindIs("sequence"),
    NegativeZero(NUMBER),
    LatticeExponent(base=NUMBER),
    LatticeExponent(base=Item(("x",))),
    Unreachable(1.0, base=Item((0,))),
    Missing(base=NUMBER),
    Flag(1, 2),
    Flag(3, 16),
    BitsSet(),
    Written("text"),
    Written("<d"),
    NumberInText(0),
    NumberInText(0, ("x",)),
    CharacterInText(-1),
    WordInText("x"),
    Remainder(2, 1),
    Remainder(2, 1, 0, 2),
    CoordinateProduct(0, 1, (0.5, -0.5), 2),
    KindAt("float", ("x",)),
    KindAt("int", (0,)),
    Equal(0, 1, 2),
    Repeats(2),
    Cancelled((1.0, -1.0), (0, 1), 2),
    Linear((1.0, 2.0), (0, 1), 2),
    IsValue(int(hash_outputs([0.5])[0]), "0.5"),
    Item(("x",), "present"),
    Shape("length"),
]


@settings(deadline=None, max_examples=60)
@given(st.lists(OUTPUTS, min_size=1, max_size=5), st.lists(OUTPUTS, min_size=1, max_size=5))
def test_what_else_is_in_the_batch_changes_nothing(values: list[Any], others: list[Any]) -> None:
    # Otherwise the draws of a chunk would fall into an event together or not at all.
    together = as_batch([*values, *others], len(values) + len(others))
    alone = [as_batch([value], 1) for value in (*values, *others)]
    for feature in FEATURES:
        np.testing.assert_array_equal(
            feature(together), np.concatenate([feature(batch) for batch in alone]), err_msg=str(feature)
        )
    np.testing.assert_array_equal(hash_outputs(together), np.concatenate([hash_outputs(batch) for batch in alone]))
    joined = concatenate_batches(alone)
    for feature in FEATURES:
        np.testing.assert_array_equal(feature(joined), feature(together), err_msg=str(feature))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.one_of(
            st.integers(-3, 3),
            st.floats(-2, 2),
            st.sampled_from([np.float32(0.5), np.int8(3), np.float64(0.25), np.int64(2)]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_numbers_keep_their_types_whatever_is_beside_them(values: list[Any]) -> None:
    together = as_batch(values, len(values))
    for k, value in enumerate(values):
        kinds = kinds_of(together)
        assert kinds[0 if isinstance(together, np.ndarray) else k] == kind_of(value)
        assert read_column(together)[k] == float(value)


def test_batches_of_several_types_are_joined_with_their_types() -> None:
    joined = concatenate_batches([np.array([1, 2]), np.array([0.5]), np.array([3], dtype=np.float32), np.array([True])])
    assert joined == [1, 2, 0.5, Typed("float32", 3.0), True]
    np.testing.assert_array_equal(hash_outputs(joined)[:4], hash_outputs(np.array([1, 2, 0.5, 3.0])))
    rows = concatenate_batches([np.ones((1, 2)), np.ones((1, 2), dtype=np.int8)])
    assert rows == [[1.0, 1.0], Typed("int8", [1, 1])]
    np.testing.assert_array_equal(read_matrix(rows, 2), np.ones((2, 2)))
    assert hash_outputs(rows)[0] == hash_outputs(rows)[1]


def test_arrays_of_each_draw_become_one_array_or_keep_their_types() -> None:
    alike = as_batch([np.zeros(2, dtype=np.int8), np.ones(2, dtype=np.int8)], 2)
    assert isinstance(alike, np.ndarray)
    assert alike.dtype == np.int8
    mixed = as_batch([np.zeros(2, dtype=np.int8), np.ones(2)], 2)
    assert mixed == [Typed("int8", [0, 0]), [1.0, 1.0]]
    ragged: Batch = as_batch([np.zeros(2, dtype=np.int8), np.ones(3, dtype=np.int8)], 2)
    assert ragged == [Typed("int8", [0, 0]), Typed("int8", [1, 1, 1])]


def test_bit_patterns_are_learned_as_symbols() -> None:
    rng = np.random.default_rng(9)
    x, y = rng.laplace(size=400), 1 + rng.laplace(size=400)
    part = BitPattern()
    symbols = learn_symbols(part(x), part(y), 1_000, None, part.label)
    assert isinstance(symbols, Rank)
    assert all(label[0] in "+-" for label in symbols.labels)


# -------------------------------------------------------------- nothing that is returned stops the audit

EXTREMES = [0.0, -0.0, NAN, math.inf, -math.inf, 1e308, -1e308, 5e-324, 2.0**-1074 * 3, 0.1]


def learn_from(*chunks: tuple[Batch, Batch]) -> None:
    learner = EventLearner(PureDP(1.0), 0.01)
    for x, y in chunks:
        learner.add(x, y, learner.count(x, y))
        learner.learn(False)
        for finalist in learner.finalists:
            assert all(finalist.chain.words())
            assert cause_of(finalist.chain)
            assert 0 <= rank_simplicity(finalist.chain) <= 6


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(OUTPUTS, OUTPUTS), min_size=8, max_size=24), st.integers(1, 3))
def test_any_outputs_are_learned_from_without_a_warning(drawn: list[tuple[Any, Any]], times: int) -> None:
    x, y = ([pair[k] for pair in drawn] * times for k in (0, 1))
    learn_from(*[(as_batch(x, len(x)), as_batch(y, len(y)))] * 3)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (40,)], ids=str)
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.uint64, np.int8, bool])
def test_extreme_numbers_of_any_shape_are_learned_from_without_a_warning(shape: tuple[int, ...], kind: type) -> None:
    rng = np.random.default_rng(8)
    with np.errstate(all="ignore"):
        batches: list[Any] = [rng.choice(EXTREMES, size=(n, *shape)).astype(kind) for n in (8, 30, 30, 8)]
    learn_from((batches[0], batches[3]), (batches[1], batches[2]), (batches[1], batches[2].astype(np.float64)))


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e300])
def test_floats_at_the_ends_of_their_range_are_learned_from(scale: float) -> None:
    rng = np.random.default_rng(10)
    learn_from(*[(scale * rng.laplace(size=40), scale * (1 + rng.laplace(size=40))) for _ in range(5)])


@pytest.mark.parametrize("key", [3, "three", (3,)])
def test_keys_of_any_kind_are_counted(key: Any) -> None:
    held = [{0: 1.0, key: 2.0}] * 40 + [[5.0, 6.0]]
    lacking: list[Any] = [{0: 1.0}] * 40 + [[5.0, 6.0]]
    presence = Presence()
    presence.add(held, lacking)
    # Indices of lists are no keys.
    assert Item((key,), "present") in presence.features()
    assert (1,) not in presence.keys.x
