"""Randomness under control: every path of a call, held against brute force, and what cannot be followed."""

from __future__ import annotations

import contextlib
import enum
import gc
import itertools
import math
import operator
import os
import random
import secrets
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from auditor.targets import one_draw
from auditor.targets.outputs import show_output
from auditor.targets.randomness import distributions
from auditor.targets.randomness.calls import ControlledSource
from auditor.targets.randomness.enumeration import Budget, Outcomes, enumerate_outputs, freeze_output
from auditor.targets.randomness.signals import Uncontrolled

#: A generator that a module holds, as many do.
MODULE_RNG = np.random.default_rng(5)
ZERO = "raised ZeroDivisionError"


def walk(function: Callable[..., Any], data: Any = (), paths: int = 50_000, lost: float = 1e-13) -> Outcomes:
    """All outputs of a function (data, rng) of one draw."""
    source = ControlledSource()
    with source.replacing():
        return walk_with(source, function, data, paths, lost)


def walk_with(
    source: ControlledSource, function: Callable[..., Any], data: Any = (), paths: int = 50_000, lost: float = 1e-13
) -> Outcomes:
    """All outputs of a function that draws from what it is given only.

    Other sources are not replaced, which takes a tenth of a second where all of the tests are imported.
    """
    return enumerate_outputs(one_draw(function), data, source, Budget(paths, time.monotonic() + 60, lost))


def masses(found: Outcomes) -> dict[str, float]:
    return {show_output(found.values[key]): mass for key, mass in found.masses.items()}


# ------------------------------------------------------------------------------ against brute force

OPERATIONS: tuple[Callable[[Any, Any], Any], ...] = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.mod,
    operator.floordiv,
    operator.xor,
    max,
    min,
    operator.lt,
    operator.eq,
)
#: Steps of a program: an operation and the places of its two operands among the values so far; or a branch.
STEPS = st.lists(
    st.tuples(st.integers(0, len(OPERATIONS)), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=7
)


def run_program(steps: list[tuple[int, int, int]], numbers: list[Any]) -> Any:
    """Values of a program of operations and branches on some numbers."""
    values = [*numbers, 2]
    for kind, i, j in steps:
        a, b = values[i % len(values)], values[j % len(values)]
        if kind == len(OPERATIONS):
            values.append(b + 1 if a > 1 else b)
        elif OPERATIONS[kind] in (operator.mod, operator.floordiv):
            values.append(OPERATIONS[kind](a, 3))
        else:
            values.append(OPERATIONS[kind](a, b))
    return [int(value) for value in values[-3:]]


def outcome_of(steps: list[tuple[int, int, int]], numbers: list[Any]) -> Hashable:
    """What a walk gives for a program on these numbers: numpy refuses to subtract booleans."""
    try:
        return freeze_output(run_program(steps, numbers))
    except TypeError as error:
        return ("raised", type(error).__name__)


@settings(max_examples=120, deadline=None)
@given(STEPS, st.lists(st.integers(2, 5), min_size=1, max_size=4))
@example([(8, 0, 0), (1, 4, 4)], [2, 2, 2])
@example([(8, 0, 1), (10, 2, 3), (1, 4, 4)], [2, 2, 2])
def test_random_programs_have_the_probabilities_of_brute_force(
    steps: list[tuple[int, int, int]], sizes: list[int]
) -> None:
    def program(data: Any, rng: np.random.Generator) -> Any:
        return run_program(steps, [rng.integers(0, size) for size in sizes])

    exact: Counter[Hashable] = Counter()
    for numbers in itertools.product(*(range(size) for size in sizes)):
        key = outcome_of(steps, [np.int64(n) for n in numbers])
        exact[key] += Fraction(1, math.prod(sizes))  # type: ignore[assignment]
    found = walk_with(ControlledSource(), program)
    assert found.whole
    assert found.masses.keys() == exact.keys()
    for key, mass in found.masses.items():
        assert mass == pytest.approx(float(exact[key]), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.05, 0.95), min_size=2, max_size=3), STEPS)
def test_geometric_programs_have_the_probabilities_of_brute_force(
    ps: list[float], steps: list[tuple[int, int, int]]
) -> None:
    """Programs that see a draw up to 4 at most; a walk that is cut lacks no more than it says."""

    def program(data: Any, rng: np.random.Generator) -> Any:
        return run_program(steps, [min(rng.geometric(p), 4) for p in ps])

    exact: dict[Hashable, float] = {}
    laws = [[p * (1 - p) ** k for k in range(3)] for p in ps]
    for numbers in itertools.product(range(1, 5), repeat=len(ps)):
        key = freeze_output(run_program(steps, list(numbers)))
        mass = math.prod(law[n - 1] if n < 4 else 1 - math.fsum(law) for n, law in zip(numbers, laws, strict=True))
        exact[key] = exact.get(key, 0.0) + mass
    found = walk_with(ControlledSource(), program, paths=3_000)
    assert found.masses.keys() <= exact.keys()
    for key, mass in exact.items():
        assert -1e-9 * mass <= mass - found.masses.get(key, 0.0) <= found.lost + 1e-9 * mass
    event("all paths" if found.lost < 1e-9 else "some paths")


@pytest.mark.parametrize("cut", [0.1, 0.3, 1 / 3, 0.75, 2.0**-40])
def test_a_uniform_float_is_below_a_number_for_so_many_of_its_grid_points(cut: float) -> None:
    exact = Fraction(math.ceil(Fraction(cut) * 2**53), 2**53)
    found = walk(lambda data, rng: bool(rng.random() < cut))
    assert found.whole
    assert masses(found)["True"] == float(exact)
    scaled = walk(lambda data, rng: 3 * rng.random() - 1 >= 3 * cut - 1)
    assert masses(scaled)["False"] == pytest.approx(cut, abs=1e-15)


def test_a_uniform_float_is_followed_through_floors_and_logarithms() -> None:
    found = masses(walk(lambda data, rng: int(rng.random() * 5)))
    assert found == pytest.approx({str(k): 0.2 for k in range(5)}, abs=1e-15)
    inverted = walk(lambda data, rng: int(np.floor(np.log1p(-rng.random()) / np.log(0.5))), lost=1e-9)
    assert not inverted.whole, "logarithms have errors of rounding, so a margin is left out"
    for k in range(20):
        assert masses(inverted)[str(k)] == pytest.approx(0.5 ** (k + 1), abs=1e-11)


def test_sums_of_noise_are_convolved() -> None:
    p = 1 - math.exp(-0.7)
    found = walk(lambda data, rng: 4 + rng.geometric(p) - rng.geometric(p))
    assert found.paths == 1
    a = math.exp(-0.7)
    for k in range(-20, 20):
        assert masses(found)[str(4 + k)] == pytest.approx(a ** abs(k) * (1 - a) / (1 + a), rel=1e-10)
    assert 0 < found.lost < 1e-13


@pytest.mark.parametrize(
    ("law", "moments"),
    [
        (distributions.geometric(0.3), (1 / 0.3, 0.7 / 0.09)),
        (distributions.binomial(20, 0.3), (6.0, 4.2)),
        (distributions.poisson(3.5), (3.5, 3.5)),
        (distributions.categories((0.2, 0.5, 0.3)), (1.1, 0.49)),
    ],
)
def test_tables_have_the_moments_of_their_distributions(
    law: distributions.MassTable, moments: tuple[float, float]
) -> None:
    mean = float(law.masses @ law.values)
    assert float(law.masses.sum()) == pytest.approx(1.0, abs=1e-14)
    assert (mean, float(law.masses @ (law.values - mean) ** 2)) == pytest.approx(moments, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "parameters", "cut"),
    [
        ("laplace", (1.0, 2.0), 2.5),
        ("gumbel", (0.5, 2.0), 1.0),
        ("exponential", (2.0,), 1.5),
        ("normal", (1.0, 2.0), 0.3),
    ],
)
def test_continuous_noise_is_compared_as_numpy_draws_it(name: str, parameters: tuple[float, ...], cut: float) -> None:
    found = masses(walk(lambda data, rng: bool(getattr(rng, name)(*parameters) <= cut), lost=1e-9))
    drawn = getattr(np.random.default_rng(3), name)(*parameters, size=400_000) <= cut
    assert abs(drawn.mean() - found["True"]) < 5 * math.sqrt(found["True"] * found["False"] / 400_000)


@pytest.mark.parametrize(
    "points",
    [
        distributions.UNIFORM,
        distributions.laplace(1.0, 2.0),
        distributions.gumbel(1.0, 2.0),
        distributions.exponential(2.0),
        distributions.normal(1.0, 2.0),
        distributions.uniform_integers(-3, 2**40),
    ],
)
def test_points_are_in_increasing_order(points: distributions.Points) -> None:
    places = np.unique(np.geomspace(max(points.first, 1), points.count - 1, 200).astype(np.int64)).tolist()
    places = sorted({points.first, *places, *(points.count - k for k in places), points.count - 1})
    values = [points.value(k) for k in places if points.first <= k < points.count]
    assert all(a <= b for a, b in itertools.pairwise(values))
    assert values[0] < values[-1]


# ---------------------------------------------------------------------------------- all sources


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda data, rng: random.random() < 0.25, {"True": 0.25, "False": 0.75}),
        (lambda data, rng: random.randint(1, 3), {"1": 1 / 3, "2": 1 / 3, "3": 1 / 3}),
        (lambda data, rng: random.choice("ab"), {"'a'": 0.5, "'b'": 0.5}),
        (lambda data, rng: random.choices("ab", weights=[1, 3])[0], {"'a'": 0.25, "'b'": 0.75}),
        (lambda data, rng: random.sample([1, 2], 2)[0], {"1": 0.5, "2": 0.5}),
        (lambda data, rng: random.getrandbits(2) & 1, {"0": 0.5, "1": 0.5}),
        (lambda data, rng: secrets.randbelow(4) == 0, {"True": 0.25, "False": 0.75}),
        (lambda data, rng: os.urandom(1)[0] < 64, {"True": 0.25, "False": 0.75}),
        (lambda data, rng: np.random.rand() < 0.25, {"True": 0.25, "False": 0.75}),  # noqa: NPY002
        (lambda data, rng: int(np.random.randint(0, 2)), {"0": 0.5, "1": 0.5}),  # noqa: NPY002
        (lambda data, rng: np.random.default_rng().integers(2) == 1, {"True": 0.5, "False": 0.5}),
        (lambda data, rng: MODULE_RNG.integers(2) == 1, {"True": 0.5, "False": 0.5}),
        (
            lambda data, rng: np.random.default_rng(7).integers(1_000_000),
            {str(np.random.default_rng(7).integers(1_000_000)): 1.0},
        ),
        (lambda data, rng: rng.choice([5, 6], p=[0.25, 0.75]), {"5": 0.25, "6": 0.75}),
        (lambda data, rng: rng.permutation(3)[0], {"0": 1 / 3, "1": 1 / 3, "2": 1 / 3}),
        (lambda data, rng: (rng.random(2) < 0.5).sum(), {"0": 0.25, "1": 0.5, "2": 0.25}),
        (lambda data, rng: rng.binomial(2, 0.5), {"0": 0.25, "1": 0.5, "2": 0.25}),
        (
            lambda data, rng: {"a": rng.integers(2), "b": [1.5]},
            {"{'a': 0, 'b': [1.5]}": 0.5, "{'a': 1, 'b': [1.5]}": 0.5},
        ),
        (lambda data, rng: 1 // random.randint(0, 1), {"1": 0.5, "raised ZeroDivisionError": 0.5}),
        (lambda data, rng: ~(rng.random(1) < 0.25), {"[False]": 0.25, "[True]": 0.75}),
        (lambda data, rng: np.where(rng.random(1) < 0.25, 7, 8)[0], {"7": 0.25, "8": 0.75}),
        (lambda data, rng: f"{rng.integers(2)}!", {"'0!'": 0.5, "'1!'": 0.5}),
        (lambda data, rng: {rng.integers(2): 1}, {"{0: 1}": 0.5, "{1: 1}": 0.5}),
    ],
)
def test_sources_are_followed(function: Callable[..., Any], expected: dict[str, float]) -> None:
    found = walk(function)
    assert masses(found) == pytest.approx(expected, abs=1e-15)
    assert found.whole


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        # Python's integers have no largest value, numpy's wrap around.
        (lambda data, rng: random.randrange(8) * 2**62, {str(k * 2**62): 1 / 8 for k in range(8)}),
        (lambda data, rng: random.randrange(4) << 62, {str(k << 62): 1 / 4 for k in range(4)}),
        (lambda data, rng: random.randrange(4) ** 40, {str(k**40): 1 / 4 for k in range(4)}),
        (lambda data, rng: np.random.randint(4) * 2**62, {str(k * 2**62): 1 / 4 for k in range(4)}),  # noqa: NPY002
        (lambda data, rng: bool(rng.integers(8) * 2**62 == 0), {"True": 1 / 4, "False": 3 / 4}),
        (lambda data, rng: random.randrange(5000) * 2**51 >= 0, {"True": 1.0}),
        # Python raises where numpy has nan, infinity or 0.
        (
            lambda data, rng: 10 // random.randrange(-1, 2),
            {"-10": 1 / 3, "10": 1 / 3, "raised ZeroDivisionError": 1 / 3},
        ),
        (lambda data, rng: 1 % random.randrange(-1, 2) + 1, {"1": 2 / 3, ZERO: 1 / 3}),
        (lambda data, rng: 1 / rng.binomial(1, 0.5), {"1.0": 1 / 2, ZERO: 1 / 2}),
        # Python compares integers with floats exactly.
        (lambda data, rng: 2**53 + random.randrange(3) == 2.0**53, {"True": 1 / 3, "False": 2 / 3}),
        (lambda data, rng: 2**53 + random.randrange(3) > 2.0**53, {"True": 2 / 3, "False": 1 / 3}),
        # Types of few bits wrap around early.
        (lambda data, rng: int(rng.integers(4, dtype=np.uint8) + 252) // 2, {"126": 1 / 2, "127": 1 / 2}),
        (
            lambda data, rng: (rng.integers(254, 256, size=1, dtype=np.uint8) + 1).tolist(),
            {"[0]": 1 / 2, "[255]": 1 / 2},
        ),
        (lambda data, rng: ~rng.integers(2, dtype=bool), {"-1": 1 / 2, "-2": 1 / 2}),
        # 0.0 and -0.0 are two outputs.
        (lambda data, rng: random.randrange(-1, 2) * 0.0, {"-0.0": 1 / 3, "0.0": 2 / 3}),
        (lambda data, rng: str(random.randrange(-1, 2) * 0.0), {"'-0.0'": 1 / 3, "'0.0'": 2 / 3}),
        (lambda data, rng: random.randrange(-1, 1) * 0.0 * random.randrange(1, 3), {"-0.0": 1 / 2, "0.0": 1 / 2}),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")
def test_arithmetic_is_that_of_plain_numbers(function: Callable[..., Any], expected: dict[str, float]) -> None:
    assert {repr(value): walked for value, walked in _by_value(walk(function))} == pytest.approx(expected, abs=1e-12)


def _by_value(found: Outcomes) -> list[tuple[Any, float]]:
    return [(found.values[key], mass) for key, mass in found.masses.items()]


def test_other_values_than_the_likeliest_are_tried() -> None:
    """Whatever variates do otherwise than plain numbers shows in a run with another value."""

    def looks(data: Any, rng: np.random.Generator) -> Any:
        k = rng.integers(5)
        return k if type(k).__name__ == "Variate" or k != 4 else -1

    assert masses(walk(looks)) == pytest.approx({"0": 0.2, "1": 0.2, "2": 0.2, "3": 0.2, "-1": 0.2})


def test_nothing_is_left_replaced() -> None:
    before = (random.random, np.random.rand, secrets.randbelow, os.urandom, threading.Thread.start, MODULE_RNG)
    source = ControlledSource()
    with contextlib.suppress(KeyError), source.replacing():
        assert random.random is not before[0]
        raise KeyError
    assert before == (
        random.random,
        np.random.rand,
        secrets.randbelow,
        os.urandom,
        threading.Thread.start,
        MODULE_RNG,
    )
    assert 0 <= random.random() < 1


# ------------------------------------------------------------------------- what cannot be followed


def started(data: Any, rng: np.random.Generator) -> int:
    thread = threading.Thread(target=int)
    thread.start()
    return 0


class Stateful:
    """A function whose outputs depend on how often it was called."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)

    def __call__(self, data: Any, rng: np.random.Generator) -> int:
        return int(self.rng.integers(1_000))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda data, rng: rng.laplace(), "continuous random number is needed as a number"),
        (lambda data, rng: rng.random() < rng.random(), "two continuous random numbers are compared"),
        (lambda data, rng: math.log(rng.random()) < -1, "continuous random number is needed as a number"),
        (lambda data, rng: rng.gamma(2.0), "Generator.gamma is not followed"),
        (lambda data, rng: np.random.seed(3), "seeds numpy.random itself"),  # noqa: NPY002
        (lambda data, rng: random.seed(3), "seeds the module random itself"),
        (lambda data, rng: os.urandom(8), "8 random bytes have too many values"),
        (lambda data, rng: int(rng.integers(2**60)) % 7, "1.15e+18 values"),
        # What the functions themselves refuse, or do in another way than by default.
        (lambda data, rng: rng.choice(3, 3, replace=False, shuffle=False), "replacement and shuffle"),  # in order
        (lambda data, rng: rng.uniform(3, 1) > 2, "uniform from high to low"),
        (lambda data, rng: rng.permutation(3.0), "3.0, which is no integer"),
        (lambda data, rng: rng.integers(2, dtype=float), "dtype float64"),
        (lambda data, rng: random.choices("abc", weights=[1, 1]), "choices of 3 with weights"),
        (lambda data, rng: random.choices("ab", [1, 3], cum_weights=[1, 4]), "weights of two kinds"),
        (lambda data, rng: random.sample("ab", counts=[1, 2], k=2), "unexpected keyword argument 'counts'"),
        (lambda data, rng: random.sample({1, 2}, 1), "sample of set"),  # type: ignore[arg-type]
        (lambda data, rng: random.randint(0, 1.5), "1.5, which is no integer"),  # type: ignore[arg-type]
        (lambda data, rng: random.expovariate(-1) > -5, "a rate of -1"),
        (lambda data, rng: secrets.token_bytes(), "32 random bytes"),
        # Floats of 32 bits round what is added to them.
        (lambda data, rng: (np.ones(1, np.float32) + rng.random())[0] > 1.5, "meets float32"),
        (lambda data, rng: np.float32(1) + rng.random() > 1.5, "meets float32"),
        (lambda data, rng: rng.integers(5000) // 0, "divided by 0"),
        (lambda data, rng: bool(rng.integers(5000) * 2**51 >= 0), "5e+03 values may wrap around"),
        (started, "starts a thread"),
        (lambda data, rng: subprocess.run(["true"], check=True), "starts a process"),
        (lambda data, rng: os.system("exit 0"), "starts a process"),
        (Stateful(), "it has randomness that is not followed"),
    ],
)
def test_what_is_not_followed_is_said(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(Uncontrolled) as error:
        walk(function)
    assert reason in error.value.reason


def test_code_that_asks_for_types_is_run_on_plain_numbers() -> None:
    """It sees no difference from numpy: a variate is none of its numbers, so this one starts anew with plain ones."""
    found = masses(walk(lambda data, rng: isinstance(rng.integers(2), np.integer)))
    assert found == {"True": 1.0}
    reused = walk(lambda data, rng: (lambda a, b: (a + b, a))(rng.integers(2), rng.integers(2)))
    assert reused.masses == {freeze_output((a + b, a)): 0.25 for a in (0, 1) for b in (0, 1)}


def test_a_loop_without_end_is_walked_as_far_as_the_budget_goes() -> None:
    def reject(data: Any, rng: np.random.Generator) -> int:
        while (k := int(rng.integers(4))) == 3:
            pass
        return k

    found = walk(reject, lost=1e-9)
    assert not found.whole
    assert 0 < found.lost < 1e-9
    assert masses(found) == pytest.approx({"0": 1 / 3, "1": 1 / 3, "2": 1 / 3}, abs=1e-9)
    assert walk(reject, paths=3).lost == pytest.approx(0.25)


# ------------------------------------------------------------------- sources that no substitute reaches


class _Holder:
    """An object that holds a generator, and a method of one."""

    rng = np.random.default_rng(7)
    older = np.random.RandomState(7)
    python = random.Random(7)
    draw = rng.random


class _Older:
    state = np.random.mtrand._rand


#: A class that a module has imported by name.
IMPORTED_STATE = np.random.RandomState

HIDDEN: dict[str, tuple[Callable[[], Any], str]] = {
    "scipy": (lambda: stats.uniform.rvs(), "an object holds"),
    "a kept RandomState": (lambda: _Older.state.random_sample(), "an object holds"),
    "a kept generator": (lambda: _Holder.rng.random(), "an object holds"),
    "a kept generator of numpy's older kind": (lambda: _Holder.older.random_sample(), "an object holds"),
    "a kept generator of Python": (lambda: _Holder.python.random(), "an object holds"),
    "a kept method": (lambda: _Holder.draw(), "an object holds"),
    "Generator": (lambda: np.random.Generator(np.random.PCG64()).random(), "without a seed"),
    "SeedSequence": (lambda: np.random.default_rng(np.random.SeedSequence()).random(), "without a seed"),
    "a new seed": (lambda: operator.methodcaller("seed")(np.random.RandomState(3)), "without a seed"),
    "random.Random": (lambda: random.Random().random(), "without a number"),
    "os.getrandom": (lambda: os.getrandom(1), "os.getrandom"),
    "/dev/urandom": (lambda: Path("/dev/urandom").read_bytes(), "/dev/urandom"),
    "the kernel's": (lambda: Path("/proc/sys/kernel/random/uuid").read_bytes(), "random/uuid"),
    "os.open": (lambda: os.open("/dev/urandom", os.O_RDONLY), "/dev/urandom"),
    "the clock": (lambda: time.perf_counter_ns() % 2, "it returns"),
}


@pytest.mark.parametrize(("draw", "reason"), HIDDEN.values(), ids=HIDDEN)
def test_sources_that_cannot_be_replaced_are_refused(draw: Callable[[], Any], reason: str) -> None:
    with pytest.raises(Uncontrolled) as error:
        walk(lambda data, rng: (draw(), 1)[reason != "it returns"])
    assert reason in error.value.reason


def shows(source: ControlledSource, generator: np.random.Generator) -> bool:
    """Whether a draw from a generator is seen."""
    before = source.read_states()
    generator.random()
    return source.read_states() != before


def test_generators_are_found_that_are_made_before_and_between_looks() -> None:
    source, held = ControlledSource(), [np.random.default_rng(1)]
    aside = gc.get_freeze_count()  # 0, but Python 3.12 sets some objects aside when it starts
    with source.replacing():
        for seed in (2, 3):
            held.append(np.random.default_rng(seed))
            gc.collect()  # what is new is not told by its age
            assert not shows(source, held[-1])
            source.find_more()
            assert all(shows(source, one) for one in held)
        gc.unfreeze()  # by a target, say
        source.find_more()
        assert all(shows(source, one) for one in held)
    assert gc.get_freeze_count() <= aside


def test_objects_that_a_user_has_set_aside_stay_so() -> None:
    source = ControlledSource()
    gc.freeze()
    try:
        with source.replacing():
            made = np.random.default_rng(1)
            source.find_more()
            assert shows(source, made)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_randomness_that_shows_rarely_is_found_by_running_again() -> None:
    calls = itertools.count()
    with pytest.raises(Uncontrolled, match="run again with the same random numbers"):
        walk(lambda data, rng: int(next(calls) == 20))


SEEDED: tuple[Callable[[int], Any], ...] = (
    lambda seed: random.Random(seed),
    lambda seed: np.random.default_rng(seed),
    lambda seed: np.random.RandomState(seed),
    lambda seed: np.random.Generator(np.random.PCG64(seed)),
    lambda seed: np.random.default_rng(np.random.SeedSequence(seed)),
    lambda seed: np.random.default_rng([3, seed]),
)


@pytest.mark.parametrize("make", SEEDED)
def test_generators_get_the_same_seeds_in_each_run(make: Callable[[int], Any]) -> None:
    """Seeds of a clock show in no output where what is drawn from them decides rarely."""
    calls = itertools.count()
    with pytest.raises(Uncontrolled, match="seeds that differ from call to call"):
        walk(lambda data, rng: make(next(calls)).random() < 1e-9)
    assert masses(walk(lambda data, rng: make(int(rng.integers(2))).random() < 1e-9)) == {"False": 1.0}


@pytest.mark.parametrize("make", [lambda: np.random.RandomState(), lambda: IMPORTED_STATE()])
def test_an_unseeded_random_state_is_followed(make: Callable[[], Any]) -> None:
    found = walk(lambda data, rng: make().rand() < 0.25)
    assert sorted(found.masses.values()) == [0.25, 0.75]


def test_the_generator_of_numpy_itself_is_followed() -> None:
    found = walk(lambda data, rng: np.random.mtrand._rand.random_sample() < 0.25)
    assert sorted(found.masses.values()) == [0.25, 0.75]
    with pytest.raises(Uncontrolled, match=r"RandomState.standard_t"):
        walk(lambda data, rng: np.random.mtrand._rand.standard_t(3))


def _swallow(draw: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def swallow(data: Any, rng: Any) -> Any:
        try:
            return bool(draw(rng) > 3)
        except:  # noqa: E722 - what is looked for
            return False

    return swallow


@pytest.mark.parametrize(
    ("draw", "reason"),
    [
        (lambda rng: rng.standard_t(3), "standard_t is not followed"),
        (lambda rng: os.urandom(8)[0], "too many values"),
        (lambda rng: rng.normal() * rng.normal(), "two continuous random numbers"),
    ],
)
def test_code_that_catches_everything_does_not_hide_what_it_asked_for(draw: Callable[[Any], Any], reason: str) -> None:
    with pytest.raises(Uncontrolled, match=reason):
        walk(_swallow(draw))


def test_code_that_catches_everything_is_walked_where_it_can_be() -> None:
    assert masses(walk(_swallow(lambda rng: 7 * rng.integers(2)))) == {"True": 0.5, "False": 0.5}


@pytest.mark.parametrize("first", [True, False])
def test_seeded_generators_stay_as_they_are(first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    tempfile.gettempdir()
    if first:  # the target makes the first temporary file of the process, and with it a generator of names
        monkeypatch.setattr(tempfile, "_name_sequence", None)
    else:
        next(tempfile._get_candidate_names())  # type: ignore[attr-defined]

    def seeded(data: Any, rng: np.random.Generator) -> Any:
        state = np.random.RandomState(3)
        with tempfile.NamedTemporaryFile():
            return [isinstance(state, np.random.RandomState), state.rand(), random.Random(3).random()]

    expected = [True, np.random.RandomState(3).rand(), random.Random(3).random()]
    (value,) = walk(seeded).values.values()
    assert value == expected
    assert np.random.RandomState().rand() != np.random.RandomState().rand(), "all is as it was"


# ------------------------------------------------------------------------------- outputs that are not read


class _Hidden:
    def __init__(self, value: Any) -> None:
        self._value = value


class _Frame(_Hidden):
    """A table as polars has them: public properties, and content that is not read."""

    columns: tuple[str, ...] = property(lambda self: ("a",))  # type: ignore[assignment]
    shape: tuple[int, ...] = property(lambda self: (1, 1))  # type: ignore[assignment]

    def __getitem__(self, name: str) -> Any:
        return self._value


class _Public:
    def __init__(self, value: Any) -> None:
        self.value = value


@pytest.mark.parametrize(
    "make",
    [lambda v: lambda: v, _Hidden, _Frame, lambda v: [_Public(_Frame(v))]],
    ids=["closure", "private attribute", "frame", "inside"],
)
def test_outputs_that_are_not_read_are_refused(make: Callable[[Any], Any]) -> None:
    with pytest.raises(Uncontrolled, match="of which not all can be read"):
        walk(lambda data, rng: make(1))


def test_objects_that_are_read_are_followed() -> None:
    found = walk(lambda data, rng: _Public(int(rng.random() < 0.25)))
    assert sorted(found.masses.values()) == [0.25, 0.75]
    assert walk(lambda data, rng: (Fraction(1, 3), 1j, {1: {2}}, np.datetime64("2020-01-01"))).whole


class _Number(int):
    pass


class _Row(list[int]):
    pass


class _Answer(enum.IntEnum):
    NO = 0
    YES = 1


@pytest.mark.parametrize("kind", [_Number, _Row])
def test_attributes_of_classes_that_are_built_on_numbers_and_lists_are_read(kind: Callable[[], Any]) -> None:
    def with_attribute(data: Any, rng: np.random.Generator) -> Any:
        output = kind()
        output.more = int(rng.integers(4) == 1)
        return output

    assert sorted(walk(with_attribute).masses.values()) == [0.25, 0.75]
    with pytest.raises(Uncontrolled, match="not all can be read"):
        walk(lambda data, rng: _hide(kind(), rng.integers(2)))
    assert sorted(walk(lambda data, rng: _Answer(int(rng.integers(2)))).masses.values()) == [0.5, 0.5]


def _hide(output: Any, value: Any) -> Any:
    output._more = int(value)
    return output


def test_shapes_of_empty_arrays_are_told_apart() -> None:
    assert len(walk(lambda data, rng: np.zeros((0, int(rng.integers(1, 3))))).masses) == 2


def test_types_of_numpy_are_told_apart() -> None:
    assert freeze_output(np.float32(1)) != freeze_output(1.0) == freeze_output(np.float64(1))
    assert freeze_output(np.ones(2, np.int32)) != freeze_output(np.ones(2, np.int64)) == freeze_output([1, 1])
    assert freeze_output(np.array(["a"])) == freeze_output(["a"])
    assert freeze_output(np.ma.array([1, 2], mask=[False, True])) != freeze_output(
        np.ma.array([1, 3], mask=[False, True])
    )


def test_outputs_without_end_and_wide_floats_end_no_walk_in_an_error() -> None:
    def itself(data: Any, rng: np.random.Generator) -> Any:
        endless: list[Any] = [1]
        endless.append(endless)
        return endless

    with pytest.raises(Uncontrolled, match="nested in more than 50 containers"):
        walk(itself)
    assert (
        walk(lambda data, rng: np.longdouble(1)).masses.keys() != walk(lambda data, rng: np.longdouble(2)).masses.keys()
    )
    assert freeze_output(np.longdouble(1)) != freeze_output(np.longdouble(2))
    assert walk(lambda data, rng: np.ones(2, np.longdouble)).whole
