"""Events on texts, on remainders of whole numbers, and on pairs of coordinates."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import Pair, PureDP, audit, one_draw
from auditor.events.cause_kinds import kind_of
from auditor.events.codec import chain_from_json, chain_to_json
from auditor.events.discrete_fields import OutputPlace
from auditor.events.event_learner import Chain
from auditor.events.ignored_causes import find_kept_without
from auditor.events.learners import coordinate_pairs, element_types, key_orders, residues, texts, ties
from auditor.events.learners.coordinate_pairs import CoordinateProduct
from auditor.events.learners.element_types import KindAt
from auditor.events.learners.key_orders import KeyBefore
from auditor.events.learners.residues import Remainder
from auditor.events.learners.texts import CharacterInText, NumberInText, WordInText, find_texts
from auditor.events.learners.ties import Tie
from auditor.targets.values import Typed

Array = NDArray[Any]
Rng = np.random.Generator
NAN = math.nan
PAIR = Pair(np.array([0.0]), np.array([1.0]))
LETTERS = np.array(list("abcdefghij"))


def audited(mechanism: Any, draws: int, epsilon: float = 1.0) -> Any:
    """At alpha = 1e-6, the false-alarm probability of each test of a mechanism that keeps its claim."""
    return audit(mechanism, PureDP(epsilon), PAIR, draws=draws, alpha=1e-6)


def letters(rng: Rng, size: int = 6) -> str:
    return "".join(rng.choice(LETTERS, size))


def flag(data: Array, rng: Rng, level: float) -> bool:
    """Randomised response of a level: whether the data are 1."""
    return bool(rng.random() < math.exp(level) / (1 + math.exp(level))) == bool(data[0])


# ------------------------------------------------------------------------------------------ texts


def test_numbers_characters_and_words_are_read_by_their_place() -> None:
    batch = ["a 1.5, -2e3 and .5", "none", "7", {"a": "x3"}, {"a": [1, "4-5"]}, 2.5, None, Typed("T", "1_0")]
    np.testing.assert_array_equal(NumberInText(1)(batch), [-2000, *[NAN] * 6, 0.0])
    np.testing.assert_array_equal(NumberInText(0, ("a",))(batch), [*[NAN] * 3, 3.0, *[NAN] * 4])
    np.testing.assert_array_equal(NumberInText(1, ("a", 1))(batch), [*[NAN] * 4, -5.0, *[NAN] * 3])
    np.testing.assert_array_equal(CharacterInText(1)(batch), [32.0, 111.0, *[NAN] * 5, 95.0])
    np.testing.assert_array_equal(CharacterInText(-1)(batch), [53.0, 101.0, 55.0, *[NAN] * 4, 48.0])
    np.testing.assert_array_equal(WordInText("and")(batch), [1.0, 0.0, 0.0, *[NAN] * 4, 0.0])
    np.testing.assert_array_equal(WordInText("x", ("a",))(batch), [*[NAN] * 3, 1.0, *[NAN] * 4])
    for feature in (NumberInText(0), CharacterInText(0), WordInText("a")):
        assert np.isnan(feature(np.zeros(3))).all()
    assert list(find_texts({"a": ["b", 1], "c": {"d": "e"}})) == [(("a", 0), "b"), (("c", "d"), "e")]
    assert list(find_texts([1.0, 2])) == list(find_texts(3)) == list(find_texts(b"ab")) == []
    assert list(find_texts([b"\xff", 1])) == [((0,), "\xff")]
    np.testing.assert_array_equal(CharacterInText(0, (0,))([[b"\xff"], ["a"], b"ab", [1]]), [255.0, 97.0, NAN, NAN])


def test_events_on_texts_in_words() -> None:
    number, character, word = NumberInText(1), CharacterInText(-1, ("a", 1)), WordInText("yes")
    assert number.below(2.0) == "number 2 in the text of output <= 2"
    assert number.above(2.0) == "number 2 in the text of output > 2"
    assert character.below(97.0) == "character [-1] in the text of output['a'][1] <= 'a'"
    assert character.above(97.0) == "character [-1] in the text of output['a'][1] > 'a'"
    assert word.below(0.0) == "the text of output does not hold the word 'yes'"
    assert word.above(0.0) == "the text of output holds the word 'yes'"
    for feature in (number, character, word, Remainder(2, 1, 3, 9), CoordinateProduct(0, 1, (0.0, 1.0), 2)):
        chain = Chain(feature, "below", (0.5,))
        record = chain_to_json(chain)
        assert record is not None
        assert chain_from_json(record) == chain


def test_what_differs_in_texts_is_offered() -> None:
    low, high = [f"{k % 3} of {k % 5}" for k in range(60)], [f"{k % 3} of {k % 5 + 4}" for k in range(60)]
    assert NumberInText(1) in dict(texts.learn_features(low, high))
    so, not_so = [f"{k} it is so" for k in range(60)], [f"{k} it is not so" for k in range(60)]
    said = dict(texts.learn_features(so, not_so))
    assert said[WordInText("not")] > 7
    assert any(isinstance(feature, CharacterInText) for feature in said)
    # Of texts that repeat, symbols tell as much.
    assert not dict(texts.learn_features(["it is so"] * 60, ["it is not so"] * 60))
    # Equal texts, texts that are numbers, and outputs without texts offer nothing.
    assert not dict(texts.learn_features(low, low))
    assert not dict(texts.learn_features(["text"] * 9, ["text"] * 9))
    assert not any(isinstance(f, NumberInText) for f in dict(texts.learn_features(["1", "2"] * 20, ["5", "6"] * 20)))
    assert not dict(texts.learn_features([1.0, 2.0] * 20, [3.0, 4.0] * 20))
    assert not dict(texts.learn_features(np.zeros(20), np.ones(20)))
    assert not dict(texts.learn_features([{"a": k} for k in range(60)], [{"a": k + 9} for k in range(60)]))
    # That a number is missing is another kind of event.
    assert not any(isinstance(f, WordInText) for f in dict(texts.learn_features(["nan a"] * 60, ["inf a"] * 60)))


WRITERS: dict[str, tuple[Callable[[bool, Rng], Any], str]] = {
    "first character": (lambda bit, rng: ("A" if bit else "B") + letters(rng), "character [0]"),
    "character": (lambda bit, rng: letters(rng) + ("A" if bit else "B") + letters(rng), "character [6]"),
    "last digit": (lambda bit, rng: f"{rng.normal():.3f}{'7' if bit else '1'}", "character [-1]"),
    "word": (lambda bit, rng: " ".join(rng.permutation([letters(rng), letters(rng), "yes" if bit else "not"])), "word"),
    "field": (lambda bit, rng: {"id": letters(rng), "is": f"{letters(rng)}{int(bit)}"}, "output['is']"),
    "long": (lambda bit, rng: letters(rng, 150) + ("A" if bit else "B") + letters(rng, 150), "character ["),
    "bytes of a field": (lambda bit, rng: {"is": rng.bytes(9) + bytes([90 + bit]) + rng.bytes(9)}, "output['is']"),
    "base 64": (
        lambda bit, rng: base64.b64encode(np.float64(rng.normal() + (1e9 if bit else 0)).tobytes()).decode(),
        "character [",
    ),
}


@pytest.mark.parametrize("form", WRITERS)
def test_a_bit_that_a_text_shows_is_found(form: str) -> None:
    write, words = WRITERS[form]
    found = audited(one_draw(lambda data, rng: write(flag(data, rng, 3.0), rng)), 1_000)
    assert found.verdict == "violation"
    assert words in found.event
    kept = audited(one_draw(lambda data, rng: write(flag(data, rng, 1.0), rng)), 2_000)
    assert kept.verdict in ("consistent", "inconclusive")


@pytest.mark.parametrize("write", [repr, lambda value: f"about {value!r}", lambda value: {"a": repr(value)}])
def test_bits_of_floats_are_not_found_by_the_characters_of_a_text(write: Any) -> None:
    def textbook(data: Array, rng: Rng) -> Any:
        return write(float(data[0] + rng.laplace()))

    ignoring = audit(one_draw(textbook), PureDP(1.0), PAIR, draws=8_000, alpha=1e-6, ignore="floating-point")
    assert ignoring.verdict in ("consistent", "inconclusive"), ignoring.event
    keeps = find_kept_without(("floating-point",))
    assert keeps is not None
    drawn = [write(float(value)) for value in np.random.default_rng(0).laplace(size=40)]
    assert not keeps(drawn, drawn)(CharacterInText(-1))
    short = [write(k) for k in range(40)]
    assert keeps(short, short)(CharacterInText(-1))


# ------------------------------------------------------------------------- remainders, coordinates


def test_remainders_of_whole_numbers() -> None:
    even = Remainder(2, 0)
    np.testing.assert_array_equal(even(np.array([2, 3, -4, -5, 2**62])), [1.0, 0.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal(even(np.array([2.0, 2.5, NAN, np.inf, 2.0**60])), [1.0, *[NAN] * 4])
    np.testing.assert_array_equal(even(["2", 2, None, [2]]), [NAN, 1.0, NAN, NAN])
    # In an array or beside a text, an integer that no float equals has its own remainder.
    large = [2**60 + 1, -(2**61), 2**53 + 2]
    np.testing.assert_array_equal(even(np.array(large)), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(even([*large, Typed("int64", 2**60 + 1), "text"]), [0.0, 1.0, 1.0, 0.0, NAN])
    of_rows = Remainder(2, 0, 1, 2)
    np.testing.assert_array_equal(of_rows(np.array([[1, 2**60 + 1], [1, 2**60]])), [0.0, 1.0])
    np.testing.assert_array_equal(of_rows([Typed("int64", [1, 2**60 + 1]), [1, 2**60], "text"]), [0.0, 1.0, NAN])
    assert even.above(0.0) == "output leaves the remainder 0 when divided by 2"
    assert even.below(0.0) == "output does not leave the remainder 0 when divided by 2"


def test_a_bit_in_the_last_place_of_large_numbers_is_found() -> None:
    def parity(level: float, step: int = 2) -> Any:
        def mechanism(data: Array, n: int, rng: Rng) -> Array:
            shown = (rng.random(n) < math.exp(level) / (1 + math.exp(level))) == bool(data[0])
            return np.asarray(step * rng.integers(0, 2**40, size=n) + shown)

        return mechanism

    for step in (2, 5):
        found = audited(parity(3.0, step), 2_000)
        assert found.verdict == "violation"
        assert f"divided by {step}" in found.event
    assert audited(parity(1.0), 4_000).verdict in ("consistent", "inconclusive")


def test_a_bit_in_the_last_place_of_a_pixel_is_found() -> None:
    def image(level: float) -> Any:
        def mechanism(data: Array, n: int, rng: Rng) -> Array:
            pixels = rng.integers(0, 256, size=(n, 5, 5)).astype(np.uint8)
            shown = (rng.random(n) < math.exp(level) / (1 + math.exp(level))) == bool(data[0])
            pixels[:, 2, 3] = pixels[:, 2, 3] & 254 | shown
            return pixels

        return mechanism

    found = audited(image(3.0), 2_000)
    assert found.verdict == "violation"
    assert found.event in (
        f"output[13] {does} the remainder 1 when divided by 2" for does in ("leaves", "does not leave")
    )
    assert audited(image(1.0), 4_000).verdict in ("consistent", "inconclusive")


def test_the_remainder_of_a_coordinate() -> None:
    odd = Remainder(2, 1, 1, 2)
    np.testing.assert_array_equal(odd(np.array([[1, 2], [2, 3]])), [0.0, 1.0])
    np.testing.assert_array_equal(odd(np.array([[1.0, 2.5], [2.0, 3.0]])), [NAN, 1.0])
    np.testing.assert_array_equal(odd([[1, 3], [1, 2, 3], "text"]), [1.0, NAN, NAN])
    rows = np.random.default_rng(0).integers(2**30, size=(2, 400, 3))
    assert not list(residues.learn_features(rows[0], rows[1]))
    assert [f for f, _ in residues.learn_features(rows[0] * 2, rows[1] * 2 + [0, 1, 0])] == [Remainder(2, 1, 1, 3)]
    assert not list(residues.learn_features(rows[0] % 2, rows[1] % 2 * 0))  # they repeat


def test_types_of_numbers_inside_of_outputs() -> None:
    whole, real = [{"a": 1, "b": [0.5 * k]} for k in range(40)], [{"a": 1.0, "b": [0.5 * k]} for k in range(40)]
    offered = dict(element_types.learn_features(whole, real))
    assert set(offered) == {KindAt("int", ("a",)), KindAt("float", ("a",))}
    np.testing.assert_array_equal(KindAt("float", ("a",))([whole[0], real[0], 1.0]), [0.0, 1.0, NAN])
    np.testing.assert_array_equal(KindAt("int", (0,))([[1, "a"], [1.0, "a"], [1, 2], "a"]), [1.0, 0.0, NAN, NAN])
    assert np.isnan(KindAt("float", ("a",))(np.zeros(2))).all()
    assert KindAt("float", ("b", 0)).above(0.0) == "type of output['b'][0] is float"
    assert KindAt("float", ("b", 0)).below(0.0) == "type of output['b'][0] is not float"
    assert not dict(element_types.learn_features(whole, whole))
    assert not dict(element_types.learn_features([[1], [None]] * 20, [[1], ["a"]] * 20))
    assert not dict(element_types.learn_features(np.zeros(9), np.zeros(9)))

    def shown(data: Array, rng: Rng) -> Any:
        return {"count": 3.0 if flag(data, rng, 3.0) else 3, "noise": float(rng.normal())}

    found = audited(one_draw(shown), 1_000)
    assert found.verdict == "violation"
    assert found.event.startswith("type of output['count'] is")
    assert found.counterexample.cause == "type of the output"
    ignoring = audit(one_draw(shown), PureDP(1.0), PAIR, draws=1_000, alpha=1e-6, ignore="types")
    assert ignoring.verdict in ("consistent", "inconclusive")


def test_remainders_are_offered_beyond_doubt_alone() -> None:
    rng = np.random.default_rng(0)
    even, odd = 2 * rng.integers(2**40, size=(2, 400)) + np.array([[0], [1]])
    assert [feature for feature, _ in residues.learn_features(even, odd)] == [Remainder(2, 0)]
    assert not list(residues.learn_features(even[:60], odd[:60]))
    mixed = rng.integers(2**40, size=(2, 4_000))
    assert not list(residues.learn_features(*mixed))
    assert not list(residues.learn_features(even % 8, odd % 8))  # they repeat: symbols tell as much
    assert not list(residues.learn_features(even + 0.5, odd + 0.5))
    with_text: list[Any] = ["text", *even.tolist()]
    assert not list(residues.learn_features(with_text, odd))


def correlated(rng: Rng, n: int, i: int, j: int, r: float, d: int = 30) -> Array:
    """Standard normal coordinates, two of them with a correlation."""
    rows = rng.normal(size=(n, d))
    rows[:, j] = r * rows[:, i] + math.sqrt(1 - r * r) * rows[:, j]
    return rows


def test_the_product_of_two_coordinates() -> None:
    product = CoordinateProduct(0, 2, (1.0, -0.5), 3)
    np.testing.assert_array_equal(product(np.array([[2.0, 9.0, 1.5], [0.0, 9.0, -1.5]])), [2.0, 1.0])
    assert np.isnan(product(np.zeros((2, 4)))).all()
    np.testing.assert_array_equal(product([[2.0, 9.0, 1.5], "text"]), [2.0, NAN])
    assert product.below(0.5) == "(output[0] - 1) (output[2] + 0.5) <= 0.5"
    assert product.above(0.5) == "(output[0] - 1) (output[2] + 0.5) > 0.5"


@pytest.mark.parametrize("r", [0.95, -0.95])
def test_two_coordinates_that_go_together_on_one_dataset_are_found(r: float) -> None:
    def mechanism(data: Array, n: int, rng: Rng) -> Array:
        return correlated(rng, n, 2, 27, r * float(data[0]))

    found = audited(mechanism, 3_000)
    assert found.verdict == "violation"
    assert "output[2]" in found.event
    assert "output[27]" in found.event
    assert "go together" in found.counterexample.cause
    same = audited(lambda data, n, rng: correlated(rng, n, 2, 27, r), 3_000)
    assert same.verdict in ("consistent", "inconclusive")


def test_pairs_of_coordinates_are_offered_beyond_doubt_alone() -> None:
    rng = np.random.default_rng(0)
    apart, together = correlated(rng, 400, 2, 27, 0.0), correlated(rng, 400, 2, 27, 0.9)
    ((feature, score),) = coordinate_pairs.learn_features(apart, together)
    assert (feature.i, feature.j, score > 8) == (2, 27, True)  # type: ignore[attr-defined]
    assert not list(coordinate_pairs.learn_features(apart, correlated(rng, 400, 2, 27, 0.0)))
    assert not list(coordinate_pairs.learn_features(apart[:40], together[:40]))
    assert not list(coordinate_pairs.learn_features(apart[:, 0], together[:, 0]))
    assert not list(coordinate_pairs.learn_features(apart > 0, together > 0))
    assert not list(coordinate_pairs.learn_features(list(apart), list(together)))
    wide = np.zeros((400, 300))
    assert not list(coordinate_pairs.learn_features(wide, wide + 1))


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("difference", -3.0, "output[0] - output[1]"),
        ("ratio", math.log(0.5), "log |output[0] / output[1]|"),
        ("rest", -10.0, "output[0] - output[1] - output[2]"),
        ("norm", math.sqrt(126), "length of the vector of output[0], ..., output[2]"),
        ("sum", 16.0, "sum of output[0], ..., output[2]"),
        ("range", 7.0, "range of output[0], ..., output[2]"),
        ("gap", 3.0, "least difference of two of output[0], ..., output[2]"),
    ],
)
def test_ties_of_numbers(kind: str, value: float, said: str) -> None:
    places = tuple(OutputPlace((k,)) for k in range(2 if kind in ("difference", "ratio") else 3))
    row = [3.0, 6.0, 10.0] if kind == "gap" else [3.0, 6.0, 7.0] if kind == "rest" else [3.0, 6.0, 9.0]
    row = {"norm": [3.0, 6.0, 9.0], "sum": [3.0, 6.0, 7.0], "range": [3.0, 6.0, 10.0]}.get(kind, row)
    for batch in ([row, ["text", 1.0, 2.0]], np.array([row, [NAN, 1.0, 2.0]])):
        np.testing.assert_allclose(Tie(kind, places)(batch), [value, NAN])
        np.testing.assert_allclose(Tie(kind, places, value)(batch), [0.0, NAN], atol=1e-15)
    assert Tie(kind, places).below(0.5) == f"{said} <= 0.5"
    assert Tie(kind, places, 1.5).above(0.5) == f"|{said} - 1.5| > 0.5"
    chain = Chain(Tie(kind, places, -1.5), "below", (0.5,))
    record = chain_to_json(chain)
    assert record is not None
    assert chain_from_json(record) == chain


@pytest.mark.parametrize("tied", ["noise", "ratio", "total", "norm", "gap"])
@pytest.mark.parametrize(
    "form", [np.array, lambda rows: [{"a": row[0], "b": row[1:]} for row in np.array(rows).tolist()]]
)
def test_numbers_that_are_tied_now_and_then_are_found(tied: str, form: Callable[[Any], Any]) -> None:
    def draw(data: Array, rng: Rng) -> Array:
        row = rng.laplace(scale=5.0, size=4)
        row[3] = row[0] + row[1] + row[2] + rng.laplace(scale=5.0) if tied == "total" else row[3]
        row = row / np.linalg.norm(row) * rng.uniform(0.8, 1.2) if tied == "norm" else row
        if data[0] and rng.random() < 0.3:
            row[1:3] = [10.0 + row[0], row[2]] if tied == "noise" else row[1:3]
            row[1:3] = [2 * row[0], row[2]] if tied == "ratio" else row[1:3]
            row[3] = row[:3].sum() if tied == "total" else row[2] + 1e-3 if tied == "gap" else row[3]
            row = row / np.linalg.norm(row) if tied == "norm" else row
        return row

    found = audited(lambda data, n, rng: form([draw(data, rng) for _ in range(n)]), 2_500)
    assert found.verdict == "violation"
    kind = "values" if tied == "norm" else "shared noise"
    assert kind_of(found.counterexample.cause) == kind


def test_ties_are_offered_beyond_doubt_alone() -> None:
    rng = np.random.default_rng(0)
    for shift in (0.0, 1.0, 9.0):
        x, y = rng.laplace(size=(2, 512, 6))
        whole_x, whole_y = rng.geometric(0.05, (2, 512, 6)) - rng.geometric(0.05, (2, 512, 6))
        for a, b in ((x, y), (whole_x, whole_y)):
            assert not list(ties.learn_features(a, b + shift * np.eye(6)[0]))
    free = rng.laplace(size=(512, 6))
    tied = np.column_stack([free[:, :5], free[:, 2]])
    assert list(ties.learn_features(tied, rng.laplace(size=(512, 6))))
    assert not list(ties.learn_features(tied[:100], free[:100]))
    assert not list(ties.learn_features(tied[:, 0], free[:, 0]))
    assert not list(ties.learn_features(tied > 0, free > 0))


@pytest.mark.parametrize("form", [lambda found: found, lambda found: [1, {"groups": found, "n": 2}]])
def test_a_key_before_another_one_is_found(form: Callable[[Any], Any]) -> None:
    def draw(data: Array, rng: Rng) -> Any:
        keys = rng.permutation(LETTERS[:7]).tolist()
        if data[0] and keys.index("a") > keys.index("b"):
            keys = [{"a": "b", "b": "a"}.get(key, key) for key in keys]
        return form({key: float(rng.normal()) for key in keys})

    found = audited(one_draw(draw), 1_500)
    assert found.verdict == "violation"
    assert kind_of(found.counterexample.cause) == "order of the output's keys"


def test_the_order_of_two_keys() -> None:
    before = KeyBefore("a", "b", (1,))
    rows = [[0, {"a": 1, "b": 2}], [0, {"c": 0, "b": 1, "a": 2}], [0, {"a": 1}], 3]
    np.testing.assert_array_equal(before(rows), [1.0, 0.0, NAN, NAN])
    assert np.isnan(before(np.zeros(2))).all()
    assert before.above(0.5) == "output[1] has the key 'a' before 'b'"
    assert before.below(0.5) == "output[1] has the key 'b' before 'a'"
    same, other = [{"a": 1, "b": k} for k in range(60)], [{"b": k, "a": 1} for k in range(60)]
    assert dict(key_orders.learn_features(same, other)) == {KeyBefore("a", "b"): pytest.approx(60 / 61**0.5)}
    assert not list(key_orders.learn_features(same, same))
    assert not list(key_orders.learn_features(same, [{"b": 1}] * 60))
    assert not list(key_orders.learn_features([1.0] * 60, ["a"] * 60))
    assert not list(key_orders.learn_features(np.zeros(60), np.ones(60)))
