"""Draws are keyed, and nothing that a target does gets past the sampler but as a `TargetError`."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import copy
import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import SpecificationError, TargetError, one_draw
from auditor.errors import TargetRaised
from auditor.events.elements import list_elements
from auditor.targets.outputs import Raised, as_batch, hash_outputs, show_output
from auditor.targets.sampler import GuardedCall, Sampler, TimeLimit, make_generator


def noise(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.normal(size=n)


# ------------------------------------------------------------------------------------ generator


def test_the_same_key_gives_the_same_draws() -> None:
    np.testing.assert_array_equal(make_generator(1, "claim", 3).random(5), make_generator(1, "claim", 3).random(5))


def test_different_seeds_and_keys_give_different_draws() -> None:
    # Two independent streams agree in their first 53 bits with probability 2^-53.
    keys: list[tuple[int, tuple[str | int, ...]]] = [
        (1, ("claim", 0, "x", 0)),
        (2, ("claim", 0, "x", 0)),
        (1, ("other", 0, "x", 0)),
        (1, ("claim", 1, "x", 0)),
        (1, ("claim", 0, "y", 0)),
        (1, ("claim", 0, "x", 1)),
        (1, ("claim", 0, "x")),
        (1, ("claim", "0x", 0)),
        (1, ()),
        (2**64 + 1, ("claim", 0, "x", 0)),
    ]
    assert len({make_generator(seed, *key).random() for seed, key in keys}) == len(keys)


def test_draws_do_not_depend_on_what_else_was_drawn() -> None:
    sampler = Sampler(noise, 5, "claim")
    alone = sampler.draw(None, 4, 0, "x", 7)
    for k in range(3):
        sampler.draw(None, 10 + k, 0, "x", k)
    np.testing.assert_array_equal(sampler.draw(None, 4, 0, "x", 7), alone)
    np.testing.assert_array_equal(Sampler(noise, 5, "claim").draw(None, 4, 0, "x", 7), alone)


def test_the_claims_id_keys_the_draws() -> None:
    one, other = Sampler(noise, 5, "one").draw(None, 3, 0), Sampler(noise, 5, "other").draw(None, 3, 0)
    assert not np.array_equal(one, other)


def test_numpy_integers_are_seeds() -> None:
    numpys: Any = np.int64(5)
    one, other = Sampler(noise, 5, "a"), Sampler(noise, numpys, "a")
    np.testing.assert_array_equal(one.draw(None, 3, 0), other.draw(None, 3, 0))
    Sampler(noise, 0, "a").draw(None, 3, 0)


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True, math.nan], ids=repr)
def test_a_bad_seed_is_refused_and_shown(seed: Any) -> None:
    with pytest.raises(SpecificationError, match="seed") as caught:
        Sampler(noise, seed, "claim")
    assert repr(seed) in str(caught.value)


@pytest.mark.parametrize("limit", [0, -1.0, math.nan, "1"], ids=repr)
def test_a_bad_limit_is_refused_and_shown(limit: Any) -> None:
    with pytest.raises(SpecificationError, match="limit") as caught:
        Sampler(noise, 1, "claim", limit=limit)
    assert repr(limit) in str(caught.value)


# ---------------------------------------------------------------------------------- one a call


def test_one_draw_a_call_asks_for_each_draw_alone_with_its_own_generator() -> None:
    asked: list[int] = []

    def target(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        asked.append(n)
        return np.repeat(rng.random(), n)  # noise shared within a call

    batch = Sampler(target, 1, "claim", one_a_call=True).draw(None, 30, 0, "x", 0)
    assert asked == [1] * 30
    assert isinstance(batch, np.ndarray)
    assert len(np.unique(batch)) == 30  # independent uniforms agree with probability 2^-53
    shared = Sampler(target, 1, "claim").draw(None, 30, 0, "x", 0)
    assert isinstance(shared, np.ndarray)
    assert len(np.unique(shared)) == 1


def test_one_draw_a_call_joins_symbols_and_vectors() -> None:
    def letters(data: Any, n: int, rng: np.random.Generator) -> list[str]:
        return [str(rng.choice(["a", "b"])) for _ in range(n)]

    def vectors(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.random((n, 3))

    assert set(Sampler(letters, 1, "claim", one_a_call=True).draw(None, 50, 0)) == {"a", "b"}  # but for 2^-49
    batch = Sampler(vectors, 1, "claim", one_a_call=True).draw(None, 5, 0)
    assert isinstance(batch, np.ndarray)
    assert batch.shape == (5, 3)


# ------------------------------------------------------------------------------ errors and hangs


@pytest.mark.parametrize(
    "error",
    [ValueError("odd value 17"), KeyError("missing"), ZeroDivisionError(), MemoryError("much"), RecursionError("deep")],
    ids=repr,
)
def test_what_a_target_raises_is_a_target_error_that_quotes_it(error: Exception) -> None:
    def target(data: Any, n: int, rng: np.random.Generator) -> Any:
        raise error

    with pytest.raises(TargetError, match=type(error).__name__) as caught:
        Sampler(target, 1, "claim").draw(None, 3, 0)
    assert str(error) in str(caught.value)
    assert caught.value.__cause__ is error


def test_a_function_of_one_draw_is_told_what_makes_a_mechanism_of_it() -> None:
    def once(data: Any, rng: np.random.Generator) -> float:
        return rng.normal()

    def inside(data: Any, n: int, rng: np.random.Generator) -> Any:
        return once(data)  # type: ignore[call-arg]

    def another(data: Any, n: int, rng: np.random.Generator) -> Any:
        return once(data, n, rng)  # type: ignore[call-arg, arg-type]

    with pytest.raises(TargetError, match=r"3 were given \(a mechanism takes .*auditor.one_draw makes"):
        Sampler(once, 1, "claim").draw(None, 3, 0)  # type: ignore[arg-type]
    for target in (inside, another):  # the fault is in the target's own code
        with pytest.raises(TargetError, match=r"test_sampling.py, line \d+\)$"):
            Sampler(target, 1, "claim").draw(None, 3, 0)


def test_a_target_that_exits_the_interpreter_is_a_target_error() -> None:
    def target(data: Any, n: int, rng: np.random.Generator) -> Any:
        sys.exit(0)

    with pytest.raises(TargetError, match="SystemExit"):
        Sampler(target, 1, "claim").draw(None, 3, 0)


@pytest.mark.parametrize("error", [asyncio.CancelledError("later"), GeneratorExit("closed")], ids=repr)
def test_what_is_no_exception_is_an_outcome_of_a_draw_too(error: BaseException) -> None:
    def target(data: Any, n: int, rng: np.random.Generator) -> Any:
        raise error

    name = type(error).__name__
    with pytest.raises(TargetRaised, match=f"{name}: {error}"):
        Sampler(target, 1, "claim").draw(None, 3, 0)
    assert list(Sampler(target, 1, "claim", catching=True).draw(None, 1, 0)) == [Raised(name)]


@pytest.mark.parametrize("end", [pytest.fail, pytest.skip], ids=["fail", "skip"])
def test_what_ends_a_test_is_an_outcome_only_where_no_test_runs(
    end: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def target(data: Any, n: int, rng: np.random.Generator) -> Any:
        end("the time of this test is over")

    sampler = Sampler(target, 1, "claim", catching=True)
    with pytest.raises((pytest.fail.Exception, pytest.skip.Exception), match="is over"):
        sampler.draw(None, 1, 0)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    assert [type(output) for output in sampler.draw(None, 1, 1)] == [Raised]


def test_a_limit_that_passes_before_the_call_is_a_hang() -> None:
    with pytest.raises(TargetError, match="did not answer within 1e-06 s"), GuardedCall("the target", "1 draw", 1e-6):
        time.sleep(1.0)


def test_an_interrupt_by_the_user_is_none_of_the_targets_errors() -> None:
    def target(data: Any, n: int, rng: np.random.Generator) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Sampler(target, 1, "claim").draw(None, 3, 0)


class Counter:
    """An object that a function changes and returns."""

    def __init__(self) -> None:
        self.value, self.parts = 0, [0]


def fill(kind: str) -> Callable[[int], Any]:
    """A function that writes a number into one and the same object."""
    row, table, array, counter = [0], {"a": [0]}, np.zeros(2), Counter()
    deque = collections.deque([0])

    def write(number: int) -> Any:
        row[0] = table["a"][0] = array[1] = counter.value = counter.parts[0] = deque[0] = number
        return {"list": row, "dict": table, "tuple": (1, row), "array": array, "object": counter, "deque": deque}[kind]

    return write


@pytest.mark.parametrize("kind", ["list", "dict", "tuple", "array", "object", "deque"])
def test_outputs_are_kept_as_they_were_returned(kind: str) -> None:
    write, fresh = fill(kind), iter(range(100))
    sampler = Sampler(one_draw(lambda data, rng: write(next(fresh))), 0, "k")
    first = list(sampler.draw(0, 3, "x"))
    later = sampler.draw(0, 3, "y")
    expected = as_batch([copy.deepcopy(fill(kind)(number)) for number in range(6)], 6)
    assert hash_outputs([*first, *later]).tolist() == hash_outputs(list(expected)).tolist()


@pytest.mark.parametrize("kind", [np.longdouble, np.float32, np.complex64, np.bool_, "M8[D]"], ids=str)
@pytest.mark.parametrize("inside", [False, True])
def test_numbers_of_numpy_of_any_type_are_outputs(kind: Any, inside: bool) -> None:
    numbers = np.arange(3).astype(kind)

    def write(number: Any) -> Any:
        return {"a": [number, None]} if inside else number

    fresh = iter(numbers)
    drawn = Sampler(one_draw(lambda data, rng: write(next(fresh))), 0, "k").draw(0, 3, "x")
    assert hash_outputs(drawn).tolist() == hash_outputs(as_batch([write(number) for number in numbers], 3)).tolist()
    assert len(set(hash_outputs(drawn))) == len(set(numbers.tolist()))


@pytest.mark.parametrize("shape", [(5,), (5, 2), (5, 2, 2)])
def test_an_array_that_a_target_fills_again_is_copied(shape: tuple[int, ...]) -> None:
    buffer = np.zeros(shape)

    def mechanism(data: Any, n: int, rng: np.random.Generator) -> Any:
        buffer[:n] = rng.random((n, *shape[1:]))
        return buffer[:n] if n < len(buffer) else buffer

    sampler = Sampler(mechanism, 0, "k")
    for n in (3, 5):
        first = sampler.draw(0, n, "x")
        before = first.copy()
        sampler.draw(0, n, "y")
        np.testing.assert_array_equal(first, before)


@pytest.mark.parametrize("kind", ["list", "dict", "tuple", "array", "object", "deque"])
def test_lists_that_a_target_fills_again_are_copied(kind: str) -> None:
    numbers = iter(range(100))
    outputs: list[Any] = []
    writers = [fill(kind) for _ in range(3)]

    def mechanism(data: Any, n: int, rng: np.random.Generator) -> Any:
        outputs[:] = [write(next(numbers)) for write in writers]
        return outputs

    sampler = Sampler(mechanism, 0, "k")
    drawn = [*sampler.draw(0, 3, "x"), *sampler.draw(0, 3, "y")]
    expected = as_batch([copy.deepcopy(fill(kind)(number)) for number in range(6)], 6)
    assert hash_outputs(drawn).tolist() == hash_outputs(list(expected)).tolist()


def test_an_answer_of_the_wrong_length_is_a_target_error() -> None:
    def target(data: Any, n: int, rng: np.random.Generator) -> Any:
        return np.zeros(n + 1)

    with pytest.raises(TargetError, match=r"\(4,\)"):
        Sampler(target, 1, "claim").draw(None, 3, 0)


def sleeping(data: Any, n: int, rng: np.random.Generator) -> Any:
    time.sleep(60)


def looping(data: Any, n: int, rng: np.random.Generator) -> Any:
    while True:
        pass


def stubborn(data: Any, n: int, rng: np.random.Generator) -> Any:
    while True:
        with contextlib.suppress(Exception):
            time.sleep(60)


def shameless(data: Any, n: int, rng: np.random.Generator) -> Any:
    with contextlib.suppress(BaseException):
        time.sleep(60)
    return np.zeros(n)


@pytest.mark.parametrize("target", [sleeping, looping, stubborn], ids=lambda f: f.__name__)
def test_a_target_that_hangs_is_interrupted_and_named_with_its_limit(target: Any) -> None:
    begun = time.monotonic()
    with pytest.raises(TargetError, match=r"did not answer within 0\.2 s when asked for 3 draws"):
        Sampler(target, 1, "claim", limit=0.2).draw(None, 3, 0)
    assert 0.2 <= time.monotonic() - begun < 5  # 5 s: far from 60 and enough for a busy machine


def test_a_late_answer_of_a_target_that_swallowed_the_interruption_is_no_answer() -> None:
    with pytest.raises(TargetError, match="did not answer"):
        Sampler(shameless, 1, "claim", limit=0.2).draw(None, 3, 0)


def test_a_target_within_its_limit_is_left_alone_and_so_is_what_comes_after() -> None:
    before = signal.getsignal(signal.SIGALRM)
    assert len(Sampler(noise, 1, "claim", limit=0.2).draw(None, 3, 0)) == 3
    time.sleep(0.3)  # an alarm that was not switched off would end this test
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_draws_one_a_call_are_limited_call_by_call_whatever_handler_a_target_leaves() -> None:
    calls: list[int] = []

    def target(data: Any, n: int, rng: np.random.Generator) -> Any:
        calls.append(n)
        if len(calls) == 1:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
        time.sleep(60 if len(calls) == 30 else 0.02)  # longer than the limit together, each of them shorter
        return np.zeros(n)

    before, begun = signal.getsignal(signal.SIGALRM), time.monotonic()
    with pytest.raises(TargetError, match=r"did not answer within 0\.3 s when asked for 1 draws"):
        Sampler(target, 1, "claim", limit=0.3, one_a_call=True).draw(None, 40, 0)
    assert len(calls) == 30
    assert time.monotonic() - begun < 20
    assert signal.getsignal(signal.SIGALRM) is before


def test_the_alarm_is_off_after_a_hang() -> None:
    with pytest.raises(TargetError):
        Sampler(sleeping, 1, "claim", limit=0.05).draw(None, 3, 0)
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_outside_the_main_thread_draws_are_made_without_a_limit() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(len(Sampler(noise, 1, "c", limit=0.2).draw(None, 3, 0))))
    thread.start()
    thread.join()
    assert found == [3]


def test_no_limit_sets_no_alarm() -> None:
    with TimeLimit(None):
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    with TimeLimit(5.0):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_integers_of_more_digits_than_python_writes_are_told_apart_and_shown() -> None:
    many = [10**5000, -(10**5000), 10**5000 + 1]
    for outputs in (
        many,
        [[value, "a"] for value in many],
        [{"a": value} for value in many],
        [{value} for value in many],
    ):
        batch = as_batch(outputs, 3)
        assert len(set(hash_outputs(batch).tolist())) == 3
        assert all("bits)" in show_output(value) or "0x" in show_output(value) for value in outputs)
    assert list_elements({*many}) == list_elements({*reversed(many)})


def test_what_cannot_be_written_is_shown_without_addresses() -> None:
    deep: list[Any] = []
    for _ in range(100_000):  # Python 3.13 writes lists some ten thousand deep
        deep = [deep]
    assert show_output(deep) == "[[[[[<list object>]]]]]"
    assert show_output(object()) == "<object object>"


def test_half_of_a_surrogate_pair_in_an_error_is_escaped() -> None:
    def target(data: Any, n: int, rng: np.random.Generator) -> Any:
        raise ValueError("m\ud800")

    with pytest.raises(TargetRaised) as caught:
        Sampler(target, 1, "claim").draw(None, 3, 0)
    assert r"ValueError: m\ud800" in str(caught.value)
