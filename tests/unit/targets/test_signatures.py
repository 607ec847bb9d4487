"""Functions and classes of any signature as targets."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from auditor.errors import SpecificationError
from auditor.targets import source_hash
from auditor.targets.callables import OneDraw, load_file, one_draw
from auditor.targets.outputs import Raised
from auditor.targets.raises import describe_error, find_raise
from auditor.targets.signatures import explain_guess, parse_arguments, split_labels, takes_randomness, write_argument
from auditor.targets.target_names import target_named

SOURCE = """
    import auditor
    import numpy as np

    def batch(data, n, rng): return [("batch", data, n, type(rng).__name__)] * n
    def renamed(d, size, g): return [("renamed", d, size, type(g).__name__)] * size
    def swapped(data, rng, n): return [("swapped", data, n, type(rng).__name__)] * n
    def own_batch(data, n): return [("own_batch", data, n)] * n
    def keyed(data, *, n, rng): return [("keyed", data, n, type(rng).__name__)] * n
    def scaled_batch(epsilon, data, n, rng): return [("scaled", epsilon, data, n, type(rng).__name__)] * n

    def once(data, rng): return ("once", data, type(rng).__name__)
    def yields(data, rng): yield from (data, type(rng).__name__)
    def mapped(data, rng): return map(str, [data])
    def backwards(data, rng): return reversed([data, 1])
    def endless(data, rng): yield from iter(int, 1)
    async def later(data, rng): return 0
    def odd(data, source_of_all): return ("odd", data, type(source_of_all).__name__)
    def own(data): return ("own", data)
    def optional(data, rng=None): return ("optional", data, type(rng).__name__)
    def setting(data, epsilon): return ("setting", data, epsilon)
    wrapped = auditor.one_draw(setting)
    def several(data, epsilon, delta, rng): return ("several", data, epsilon, delta, type(rng).__name__)
    def annotated(data, value: int): return ("annotated", data, value)
    def typed(data, stream: np.random.Generator, epsilon=2): return ("typed", type(stream).__name__, epsilon)
    def seeded(data, seed): return ("seeded", data, seed)
    def state(data, epsilon=1.0, random_state=None): return ("state", epsilon, random_state)
    def labelled(X, y, epsilon, rng): return ("labelled", np.asarray(X).tolist(), np.asarray(y).tolist(), epsilon)
    def anything(*parts): return ("anything", len(parts))
    def rest(data, **settings): return ("rest", data, settings)
    def nothing(): return 1
    def divides(data, wobble): return data / wobble

    class Model:
        def __init__(self, epsilon, random_state=None):
            self.epsilon, self.random_state = epsilon, random_state

        def fit(self, X, y):
            self.coef_ = np.asarray(X).T @ np.asarray(y)
            self.seed_, self.hidden, self._private_ = self.random_state, 1, 2
            return self

        def predict(self, X):
            return (np.asarray(X) @ self.coef_).tolist()

    class Scaler:
        def fit(self, X):
            self.mean_ = float(np.mean(X))

    class Blank:
        def fit(self, X):
            pass

    class Release:
        def __init__(self, epsilon=1.0):
            self.epsilon = epsilon

        def __call__(self, data, n, rng):
            return [self.epsilon] * n

        def draw(self, data, rng, factor=1):
            return self.epsilon * factor

        @staticmethod
        def fixed(data, rng):
            return 7

    class Silent:
        def draw(self, data, n, rng):
            return [0] * n

    class Broken:
        def __init__(self):
            raise ValueError("not today")
"""
TABLE = {"X": np.array([[1, 2], [3, 4]]), "y": np.array([0, 1])}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("signatures") / "mine.py"
    path.write_text(textwrap.dedent(SOURCE), encoding="utf-8")
    return path


def drawn(file: Path, name: str, data: Any = 5, n: int = 2, one_draw: bool = False, **given: Any) -> Any:
    target = target_named(f"{file}:{name}", one_draw=one_draw, given=given)
    outputs = list(target(data, n, np.random.default_rng(0)))
    assert len(outputs) == n
    return outputs[0]


def test_a_function_that_is_made_to_draw_once_may_be_said_to_and_takes_values(file: Path) -> None:
    for said in (True, False):
        assert drawn(file, "wrapped", one_draw=said, epsilon=2) == ("setting", 5, 2)


@pytest.mark.parametrize(
    ("name", "given", "output"),
    [
        ("batch", {}, ("batch", 5, 2, "Generator")),
        ("renamed", {}, ("renamed", 5, 2, "Generator")),
        ("swapped", {}, ("swapped", 5, 2, "Generator")),
        ("own_batch", {}, ("own_batch", 5, 2)),
        ("keyed", {}, ("keyed", 5, 2, "Generator")),
        ("scaled_batch", {"epsilon": 3}, ("scaled", 3, 5, 2, "Generator")),
        ("Release", {}, 1.0),
        ("Release", {"epsilon": 3}, 3),
        ("Silent.draw", {}, 0),
    ],
)
def test_targets_of_many_draws(file: Path, name: str, given: dict[str, Any], output: Any) -> None:
    assert drawn(file, name, **given) == output


@pytest.mark.parametrize(
    ("name", "given", "output"),
    [
        ("once", {}, ("once", 5, "Generator")),
        ("yields", {}, [5, "Generator"]),
        ("mapped", {}, ["5"]),
        ("backwards", {}, [1, 5]),
        ("endless", {}, Raised("ValueError")),
        ("odd", {}, ("odd", 5, "Generator")),
        ("own", {}, ("own", 5)),
        ("optional", {}, ("optional", 5, "Generator")),
        ("setting", {"epsilon": 3}, ("setting", 5, 3)),
        ("several", {"epsilon": 3, "delta": 0.1}, ("several", 5, 3, 0.1, "Generator")),
        ("annotated", {"value": 3}, ("annotated", 5, 3)),
        ("typed", {}, ("typed", "Generator", 2)),
        ("typed", {"epsilon": 3}, ("typed", "Generator", 3)),
        ("anything", {}, ("anything", 2)),
        ("rest", {"epsilon": 3}, ("rest", 5, {"epsilon": 3})),
        ("Release.draw", {}, 1.0),
        ("Release.draw", {"epsilon": 3, "factor": 2}, 6),
        ("Release.fixed", {}, 7),
    ],
)
def test_targets_of_one_draw(file: Path, name: str, given: dict[str, Any], output: Any) -> None:
    assert drawn(file, name, one_draw=True, **given) == output


@pytest.mark.parametrize("name", ["seeded", "state"])
def test_seeds_are_integers_that_the_generator_gives(file: Path, name: str) -> None:
    target = target_named(f"{file}:{name}", one_draw=True)
    first, second, *_ = (output[-1] for output in target(5, 2, np.random.default_rng(0)))
    assert isinstance(first, int)
    assert first != second
    assert target(5, 1, np.random.default_rng(0))[0][-1] == first


@pytest.mark.parametrize(
    ("name", "one_draw", "given", "said"),
    [
        ("setting", False, {}, "(data, epsilon), expected (data, n, rng): try --one-draw --arg epsilon=1"),
        ("setting", True, {}, "(data, epsilon), expected (data, rng) or (data): try --arg epsilon=1"),
        ("several", True, {}, "try --arg epsilon=1 --arg delta=1e-6"),
        ("several", False, {"epsilon": 1}, "try --one-draw --arg delta=1e-6"),
        ("annotated", True, {}, "try --arg value=1"),
        ("once", False, {}, "try --one-draw"),
        ("later", True, {}, "is an async function"),
        ("later", False, {}, "is an async function"),
        ("own", False, {}, "try --one-draw"),
        ("scaled_batch", False, {}, "try --arg epsilon=1"),
        ("batch", True, {}, "draws n at once: leave out --one-draw"),
        ("nothing", False, {}, "takes no dataset"),
        ("own", True, {"data": 1}, "one has to be left for the dataset"),
        ("setting", True, {"epsillon": 1}, "no parameter 'epsillon' for --arg epsillon=1; did you mean 'epsilon'?"),
        ("own", True, {"zzz": 1}, "its parameters are data"),
        ("settin", False, {}, "has no attribute 'settin'; did you mean 'setting'"),
        ("Model", False, {}, "is a model with fit: --one-draw"),
        ("Model", True, {}, "needs a value for epsilon: --arg 'epsilon=1'"),
        ("Model", True, {"epsilon": 1, "depth": 2}, "no parameter 'depth'"),
        ("Model.predict", True, {"epsilon": 1}, "needs a value for X: --arg 'X=[[0.5]]'"),
        ("Model.predict", True, {"epsilon": 1, "Y": 1}, "no parameter 'Y'"),
        ("Model.predikt", True, {"epsilon": 1}, "did you mean 'predict'"),
        ("Silent", False, {}, "name a method, as in "),
        ("Broken", False, {}, "no Broken can be made: ValueError: not today"),
        ("Release.epsilom", False, {}, "no attribute"),
    ],
)
def test_what_mends_a_call_is_said(file: Path, name: str, one_draw: bool, given: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        target_named(f"{file}:{name}", one_draw=one_draw, given=given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_features_and_labels_come_from_a_dict_or_from_columns(file: Path) -> None:
    expected = ("labelled", [[1, 2], [3, 4]], [0, 1], 3)
    rows = np.array([[1, 2, 0], [3, 4, 1]])
    for data in (TABLE, {"y": TABLE["y"], "x": TABLE["X"]}, rows, rows.tolist(), pd.DataFrame(rows)):
        assert drawn(file, "labelled", data, one_draw=True, epsilon=3) == expected
    for wrong in ({"X": [1]}, [1, 2], 7):
        with pytest.raises(TypeError, match="expected a d"):
            split_labels(wrong)


def test_a_model_releases_what_it_has_learned(file: Path) -> None:
    seeds = [drawn(file, "Model", TABLE, one_draw=True, epsilon=1)["seed_"] for _ in range(2)]
    assert seeds[0] == seeds[1] > 0
    released = drawn(file, "Model", TABLE, one_draw=True, epsilon=1, random_state=7)
    assert released.keys() == {"coef_", "seed_"}
    assert released["seed_"] == 7
    assert drawn(file, "Model.coef_", TABLE, one_draw=True, epsilon=1).tolist() == [3, 4]
    assert drawn(file, "Model.predict", TABLE, one_draw=True, epsilon=1, X=[[1, 1]]) == [7]
    assert drawn(file, "Scaler", np.array([[1.0], [2.0]]), one_draw=True) == {"mean_": 1.5}
    assert drawn(file, "Blank", 5, one_draw=True) == Raised("AttributeError")
    assert drawn(file, "Model", 5, one_draw=True, epsilon=1) == Raised("TypeError")


def test_values_are_part_of_the_source(file: Path) -> None:
    def hashed(name: str, **given: Any) -> str:
        return source_hash(target_named(f"{file}:{name}", one_draw=True, given=given))

    assert hashed("setting", epsilon=1) == hashed("setting", epsilon=1) != hashed("setting", epsilon=2)
    assert hashed("Model", epsilon=1) != hashed("Model", epsilon=2)
    assert hashed("Model", epsilon=1) != hashed("Model.coef_", epsilon=1)


def test_usual_functions_are_left_as_they_are(file: Path) -> None:
    module = load_file(file)
    assert target_named(f"{file}:batch") is module.batch
    assert target_named(f"{file}:once", one_draw=True) == OneDraw(module.once)


def test_a_guess_is_explained(file: Path) -> None:
    target = target_named(f"{file}:divides", one_draw=True)
    (raised,) = target(5, 1, np.random.default_rng(0))
    assert raised == Raised("TypeError")
    assert "unsupported operand" in raised.message
    assert raised.message.endswith(raised.place)
    assert raised.place == f" (mine.py, line {1 + textwrap.dedent(SOURCE).splitlines().index(DIVIDES)})"
    assert "--arg wobble=1" in explain_guess(target)
    assert explain_guess(target_named(f"{file}:once", one_draw=True)) == ""
    assert takes_randomness(target)
    assert not takes_randomness(target_named(f"{file}:own", one_draw=True))


DIVIDES = "def divides(data, wobble): return data / wobble"


def test_the_line_of_a_raise_is_the_users() -> None:
    def own() -> None:
        np.array([1.0]).reshape(3, 3)

    with pytest.raises(ValueError, match="reshape") as caught:
        own()
    assert find_raise(caught.value).startswith(" (test_signatures.py, line ")
    assert find_raise(ValueError("never raised")) == ""
    assert describe_error(ValueError("no  such\n  column")) == "no such column"

    class MuteError(ValueError):
        def __str__(self) -> str:
            raise RuntimeError

    assert describe_error(MuteError()) == ""


def test_values_are_json() -> None:
    texts = [
        "epsilon=1",
        "bounds=[0, 10]",
        "name=laplace",
        'text="a b"',
        "on=true",
        "none=null",
        "x = 1e-6",
        "p=(0, [1, 2.5])",
    ]
    assert parse_arguments(texts) == {
        "epsilon": 1, "bounds": [0, 10], "name": "laplace", "text": "a b", "on": True, "none": None, "x": 1e-6,
        "p": (0, [1, 2.5]),
    }  # fmt: skip
    for name, value in parse_arguments(texts).items():
        assert parse_arguments([write_argument(name, value)]) == {name: value}


@pytest.mark.parametrize(
    "text", ["epsilon", "=1", "a b=1", "epsilon=", "epsilon=[1", "epsilon=1 2", "e=(1", "e=(f())", "1=2", ""]
)
def test_values_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(SpecificationError, match="expected") as caught:
        parse_arguments([text])
    assert repr(text) in str(caught.value)
    with pytest.raises(SpecificationError, match="epsilon has a value already, 1"):
        parse_arguments(["epsilon=1", "epsilon=2"])


def test_one_draw_refuses_an_async_function(file: Path) -> None:
    with pytest.raises(SpecificationError, match=r"later.*is an async function"):
        one_draw(load_file(file).later)
