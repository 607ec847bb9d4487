"""What is read off structured outputs and transcripts, and that each output is read by itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from auditor import Pair, PureDP, audit
from auditor.events.elements import Elements, Outputs, Table, list_elements, make_token, read_once
from auditor.events.event_learner import EventLearner
from auditor.events.features import Numeric
from auditor.events.reservoir import Reservoir
from auditor.events.structure import Item, PartAt, structure_of
from auditor.targets.outputs import Batch, Raised, as_batch, hash_outputs

NAN = math.nan

# ------------------------------------------------------------------------------------ elements


def test_elements_are_what_no_container_holds_deeper() -> None:
    assert list_elements([1, (2, [3]), {"b": 5, "a": 4}, np.array([6.0, 7.0]), "text"]) == [
        1,
        2,
        3,
        4,
        5,
        6.0,
        7.0,
        "text",
    ]
    assert list_elements({3, 1, 2}) == [1, 2, 3]
    assert list_elements("text") == ["text"]


def test_a_list_that_holds_itself_ends() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    assert list_elements(ring)[:2] == [1, 1]
    assert np.isfinite(Elements("sum")([ring])).all()


def test_values_are_told_apart_by_kind_and_numbers_by_value() -> None:
    assert make_token(True) != make_token(1) == make_token(1.0) == make_token(np.float32(1))
    assert make_token(NAN) == make_token(np.float64("nan")) != make_token(None)
    assert make_token("a") != make_token(b"a")
    assert make_token(10**400) is None
    assert make_token(object()) is None


@pytest.mark.parametrize("form", [lambda a, b: {"id": a, "x": b}, lambda a, b: [a, b], lambda a, b: np.array([a, b])])
@pytest.mark.parametrize("base", [2**53, 2**60, -(2**53) - 1])
def test_integers_that_are_one_float_are_told_apart(form: Any, base: int) -> None:
    def numbered(data: NDArray[Any], n: int, rng: np.random.Generator) -> Any:
        return [form(base + int(data[0]), int(rng.integers(10**6))) for _ in range(n)]

    found = audit(numbered, PureDP(1), Pair(np.array([0]), np.array([1])), draws=500)
    assert found.verdict == "violation"
    assert found.event is not None
    # A list of integers up to 2^53 is a row of floats, and is shown as one.
    assert f"is {base}" in found.event or (base == 2**53 and "is 9.0072e+15" in found.event)


def test_integers_that_are_different_floats_are_no_symbols() -> None:
    for large in (2**60 + 2**20 * np.arange(2), np.arange(2), np.arange(2) + 0.5):
        rows = np.column_stack([np.tile(large, 40), np.arange(80)])
        assert structure_of(rows[:40], rows[40:]).parts == ()
        assert structure_of(rows[:40].tolist(), rows[40:].tolist()).parts == ()


RAGGED: list[Any] = [[3, 1, 2, 2], ["a", "b", "a"], [None, NAN, 2.0, math.inf], [], {"k": 1, "m": [True, "a"]}, "a", 7]


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Elements("size"), [4, 3, 4, 0, 3, NAN, NAN]),
        (Elements("sum"), [8, 0, 2, 0, 1, NAN, NAN]),
        (Elements("max"), [3, NAN, math.inf, NAN, 1, NAN, NAN]),
        (Elements("min"), [1, NAN, 2, NAN, 1, NAN, NAN]),
        (Elements("missing"), [0, 0, 3, 0, 0, NAN, NAN]),
        (Elements("distinct"), [3, 2, 4, 0, 3, NAN, NAN]),
        (Elements("descents"), [1, 0, 0, 0, 0, NAN, NAN]),
        (Elements("count", ("str", "a")), [0, 2, 0, 0, 1, NAN, NAN]),
        (Elements("count", ("number", 2.0)), [2, 0, 1, 0, 0, NAN, NAN]),
        (Elements("count", ("number", 1.0)), [1, 0, 0, 0, 1, NAN, NAN]),
        (Elements("count", ("bool", True)), [0, 0, 0, 0, 1, NAN, NAN]),
        (Elements("count", ("number", "nan")), [0, 0, 1, 0, 0, NAN, NAN]),
        (Elements("first", ("str", "a")), [4, 0, 4, 0, 2, NAN, NAN]),
        (Elements("last", ("str", "a")), [-1, 2, -1, -1, 2, NAN, NAN]),
        (Elements("first", ("number", 2.0)), [2, 3, 2, 0, 3, NAN, NAN]),
        (Elements("last", ("number", 2.0)), [3, -1, 2, -1, -1, NAN, NAN]),
        (Item((0,)), [3, NAN, NAN, NAN, NAN, NAN, NAN]),
        (Item((2,)), [2, NAN, 2, NAN, NAN, NAN, NAN]),
        (Item(("k",)), [NAN, NAN, NAN, NAN, 1, NAN, NAN]),
        (Item(("k",), "present"), [0, 0, 0, 0, 1, 0, 0]),
        (Item((0,), "difference", (1,)), [2, NAN, NAN, NAN, NAN, NAN, NAN]),
    ],
    ids=lambda value: str(value)[:60],
)
def test_statistics_of_any_values(feature: Any, expected: list[float]) -> None:
    np.testing.assert_array_equal(feature(RAGGED), expected)
    np.testing.assert_array_equal(feature(Outputs(RAGGED)), expected)


def test_an_event_in_words() -> None:
    assert Elements("count", ("str", "a")).above(1.0) == "number of elements that are 'a' > 1"
    assert Elements("first", ("number", "nan")).below(2.0).startswith("place of the first element that is NaN")
    assert Item((0, "x")).below(0.5) == "output[0]['x'] <= 0.5"
    assert Item((1,), "difference", (0,)).above(0.5) == "output[1] - output[0] > 0.5"
    assert Item(("x",), "present").below(0.5) == "output['x'] is absent"
    assert PartAt(("s", 0)).name == "output['s'][0]"


TRANSCRIPTS = np.array([[-1, 0, 1, 1], [0, 0, 0, 0], [1, -1, -1, 1]], dtype=np.int8)


@pytest.mark.parametrize(
    "values", [TRANSCRIPTS, TRANSCRIPTS.astype(float), TRANSCRIPTS.tolist()], ids=["int", "float", "list"]
)
def test_ones_are_counted_and_placed_in_transcripts(values: Batch) -> None:
    one, none = ("number", 1.0), ("number", 5.0)
    np.testing.assert_array_equal(Elements("count", one)(values), [2, 0, 2])
    np.testing.assert_array_equal(Elements("first", one)(values), [2, 4, 0])
    np.testing.assert_array_equal(Elements("last", one)(values), [3, -1, 3])
    np.testing.assert_array_equal(Elements("first", none)(values), [4, 4, 4])
    np.testing.assert_array_equal(Elements("count", ("bool", True))(values), [0, 0, 0])


def test_nan_and_booleans_are_placed_in_rows() -> None:
    rows = np.array([[1.0, NAN, 2.0], [1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(Elements("first", ("number", "nan"))(rows), [1, 3])
    flags = np.array([[False, True], [False, False]])
    for values in (flags, flags.tolist()):
        np.testing.assert_array_equal(Elements("first", ("bool", True))(values), [1, 2])
        np.testing.assert_array_equal(Elements("count", ("number", 1.0))(values), [0, 0])


LEAF = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, NAN, math.inf, 2.0**60]),
    st.sampled_from(["a", "b", b"a", Raised("ValueError")]),
    st.just(10**400),
)
ANY = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner, inner), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    ),
    max_leaves=6,
)
ROWS = st.lists(st.lists(st.sampled_from([0, 1, -1, NAN, 2.5]), min_size=3, max_size=3), min_size=1, max_size=6)


@settings(deadline=None, max_examples=40)
@given(st.lists(ANY, min_size=1, max_size=5), st.one_of(st.lists(ANY, min_size=1, max_size=5), ROWS))
def test_what_else_is_in_the_batch_changes_nothing(values: list[Any], others: list[Any]) -> None:
    # Otherwise the draws of a chunk would fall into an event together or not at all.
    found = structure_of(others, others + values)
    more = [Elements(kind) for kind in ("size", "sum", "max", "min", "missing", "distinct", "descents")]
    for feature in (*found.features, *more):
        together = feature(read_once([*values, *others]))
        alone = np.concatenate([feature(as_batch([value], 1)) for value in (*values, *others)])
        np.testing.assert_array_equal(together, alone)


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_rows_are_read_alike_as_an_array_and_as_a_list(rows: list[list[float]]) -> None:
    batch = as_batch(rows, len(rows))
    assert isinstance(batch, np.ndarray)
    wanted = [("number", 1.0), ("number", "nan"), ("number", 0.0)]
    features: list[Any] = [Elements(kind, value) for value in wanted for kind in ("count", "first", "last")]
    features += [Elements(kind) for kind in ("sum", "max", "min", "missing", "distinct", "descents", "size")]
    features += [Item((1,)), Item((1,), "present"), Item((2,), "difference", (0,))]
    for feature in features:
        np.testing.assert_array_equal(feature(batch), feature([*rows, "text"])[:-1])


def test_the_table_of_a_batch_is_read_once() -> None:
    batch = Outputs([[1, 2], [3]])
    assert batch.table is batch.table
    assert isinstance(batch.table, Table)


# -------------------------------------------------------------------------------- what is offered


def offered(values: Batch) -> set[str]:
    half = len(values) // 2
    return {feature.above(0.0) for feature in structure_of(values[:half], values[half:]).features}


def test_plain_values_and_rows_of_measurements_have_no_structure() -> None:
    rng = np.random.default_rng(1)
    counts = np.column_stack([rng.geometric(0.5, 300) + 100 * k for k in range(6)])
    for values in (["a", "b", None] * 20, rng.normal(size=50), rng.normal(size=(50, 9)), counts, np.zeros((50, 9))):
        assert structure_of(values, values).features == ()


def test_rows_that_repeat_as_a_whole_are_left_to_symbols() -> None:
    rng = np.random.default_rng(2)
    assert offered(rng.integers(-1, 2, (200, 3))) == set()  # 27 rows
    assert "number of elements that are 1 > 0" in offered(rng.integers(-1, 2, (200, 30)))
    bits = offered(rng.integers(0, 2, (200, 30)))  # of two values the sum tells how many there are
    assert any("first element that is 1" in words for words in bits)
    assert not any("number of elements" in words for words in bits)


def test_keys_and_places_are_found() -> None:
    outputs = [{"n": 1.5 * k, "status": "ok"} if k % 3 else {"n": 1.5 * k} for k in range(30)]
    found = structure_of(outputs, outputs)
    assert Item(("n",)) in found.features
    assert Item(("status",), "present") in found.features
    assert found.parts == (PartAt(("status",)),)


# ------------------------------------------------------------------------------------ reservoir


@pytest.mark.parametrize("kind", ["numbers", "lists", "mixed"])
def test_what_is_remembered_is_what_reading_all_draws_anew_gives(kind: str) -> None:
    rng = np.random.default_rng(6)
    past = Reservoir(50)
    given: list[Any] = []
    for k in range(8):
        table = rng.integers(-1, 2, (9, 4)).astype(float)
        rows: Batch = table
        if kind == "lists" or (kind == "mixed" and k % 2):
            rows = [row[: 1 + j % 4] for j, row in enumerate(table.tolist())]
        given += rows if isinstance(rows, list) else rows.tolist()
        past.add(rows, rows[::-1])
        draws, _ = past.draws()
        assert past.held == len(draws) == min(9 * (k + 1), 50)
        for feature in (Elements("sum"), Elements("first", ("number", 1.0)), Item((2,)), Numeric("max", width=4)):
            np.testing.assert_array_equal(past.values(feature)[0], feature(as_batch(given[: past.held], past.held)))
        np.testing.assert_array_equal(past.keys()[0], hash_outputs(as_batch(given[: past.held], past.held)))
        part = PartAt((0,))
        np.testing.assert_array_equal(past.keys(part)[0], hash_outputs(part(given[: past.held])))


def test_what_is_forgotten_is_read_again() -> None:
    past, feature = Reservoir(10), Elements("size")
    past.add(np.zeros((3, 2)), np.zeros((3, 2)))
    first = past.values(feature)[0]
    past.forget(feature)
    past.forget(feature)
    assert past.values(feature)[0] is not first
    np.testing.assert_array_equal(past.values(feature)[0], first)


# ------------------------------------------------------------------------------------- learning


def learned(x: Batch, y: Batch) -> str:
    learner = EventLearner(PureDP(1.0), 0.01)
    learner.add(x, y, learner.count(x, y))
    learner.learn(False)
    assert learner.proposal is not None
    return learner.proposal.chain.words()[learner.proposal.best]


def test_a_symbol_at_a_place_is_found_beside_numbers_that_never_repeat() -> None:
    rng = np.random.default_rng(3)
    x = [(float(v), "high" if k % 8 else "low") for k, v in enumerate(rng.normal(size=200))]
    y = [(float(v), "low" if k % 8 else "high") for k, v in enumerate(rng.normal(size=200))]
    assert learned(x, y) == "output[1] is 'high'"


def test_what_lies_too_deep_is_a_symbol() -> None:
    def nested(data: NDArray[Any], n: int, rng: np.random.Generator) -> Any:
        bits = np.where(rng.random(n) < 0.9, data[0], 1 - data[0]).tolist()
        return [
            {"a": {"b": {"c": [[{"d": bit}]]}}, "z": float(z)} for bit, z in zip(bits, rng.normal(size=n), strict=True)
        ]

    result = audit(nested, PureDP(1.0), Pair(np.array([0]), np.array([1])), draws=4_000)
    assert result.verdict == "violation"
    assert str(result.event) in {f"output['a']['b']['c'][0] is [{{'d': {bit}}}]" for bit in (0, 1)}


def test_a_number_at_a_key_is_found() -> None:
    rng = np.random.default_rng(4)
    x = [{"noise": float(v), "sum": float(w)} for v, w in rng.normal(size=(200, 2))]
    y = [{"noise": float(v), "sum": float(w) + 5} for v, w in rng.normal(size=(200, 2))]
    assert "output['sum']" in learned(x, y)


def ragged(data: Any, n: int, rng: np.random.Generator) -> list[list[str]]:
    """Lists of 5 to 9 letters; "a" is four times as frequent on the second dataset."""
    letters = np.array(list("abcdefgh"))
    p = np.full(8, (1 - 0.1 * (1 + 3 * data[0])) / 7)
    p[0] = 0.1 * (1 + 3 * data[0])
    return [letters[rng.choice(8, size=int(k), p=p)].tolist() for k in rng.integers(5, 10, n)]


def test_a_value_that_is_more_frequent_is_a_violation() -> None:
    # Lists hardly ever repeat, and at each place the ratio of "a" is 4 at probability 0.1: it takes the count to gain
    # more. Among 7 letters at least 3 are "a" with probability 0.58 against 0.03, for any place in 0.4 against 0.1.
    found = audit(ragged, PureDP(1.0), Pair(np.array([0]), np.array([1])), alpha=1e-4, draws=4_000)
    assert found.verdict == "violation"
    assert found.event is not None
    assert "that are 'a'" in found.event


def transcripts(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Rows of -1, 0 and 1, half of them 0; ones are twice as frequent on the second dataset, and -1 makes up for it."""
    one = np.where(rng.random((n, 1)) < (0.2 if data[0] else 0.8), 0.15, 0.35)
    u = rng.random((n, 40))
    return np.where(u < one, 1, np.where(u < 2 * one, -1, 0)).astype(np.int8)


def test_a_count_shows_what_neither_places_nor_sums_do() -> None:
    # Sums and places have mean 0 on both datasets; the number of ones is about Binomial(40, 0.15) or (40, 0.35).
    found = audit(transcripts, PureDP(1.0), Pair(np.array([0]), np.array([1])), alpha=1e-4, draws=20_000)
    assert found.verdict == "violation"
    assert found.event is not None
    assert found.event.startswith("number of elements that are")


def test_structured_outputs_that_keep_their_claim_are_consistent_with_it() -> None:
    found = audit(ragged, PureDP(3.0), Pair(np.array([0]), np.array([0])), alpha=1e-6, draws=4_000, detect=10.0)
    assert found.verdict == "consistent"


@pytest.mark.parametrize("alike", [True, False])
def test_symbols_are_read_behind_many_numbers(alike: bool) -> None:
    outputs: list[Any] = [{"a": [0.5] * (30 + k % 2 * (not alike)), "kind": "text"} for k in range(4)]
    assert [part.path for part in structure_of(outputs, outputs).parts] == [("kind",)]
