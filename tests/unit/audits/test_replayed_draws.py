"""Replay of draws on the neighbour: what is found, in which line, what certifies it, and what stays hidden."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pytest

from auditor import ApproxDP, Pair, PureDP, SpecificationError, TargetError, one_draw, trace
from auditor.targets.randomness.recorder import DrawRecorder, Tape
from benchmarks.traced import is_judged_rightly
from benchmarks.traced_programs import BITS, NUMBERS, TracedProgram, list_traced


@pytest.mark.parametrize("program", list_traced(), ids=lambda program: program.name)
def test_programs_are_judged_rightly(program: TracedProgram) -> None:
    result = trace(one_draw(program.function), program.claim, program.pair)
    assert is_judged_rightly(program, result), (result.verdict, result.message, result.checks)


def test_right_noise_at_its_very_level_is_not_accused() -> None:
    """Zero margin: the loss is the claimed one, whatever the variates."""
    for scale in (0.3, 1.0, 7.0):
        for seed in range(4):

            def scaled(data: Any, rng: np.random.Generator, scale: float = scale) -> Any:
                return data.sum() * scale / 10 + rng.laplace(scale=scale)

            assert trace(one_draw(scaled), PureDP(1.0), NUMBERS, seed=seed).verdict == "consistent"


def test_a_loss_that_no_draws_certify_is_a_deviation() -> None:
    """Epsilon 1.01 where 1 is claimed: 200 draws say nothing."""
    result = trace(one_draw(lambda data, rng: data.sum() + rng.laplace(scale=9.9)), PureDP(1.0), NUMBERS, draws=200)
    assert result.verdict == "deviation"
    assert "1.01 times the scale of its noise; in all ε = 1.01, claimed 1" in result.message
    assert "draws did not certify it" in result.message


def test_a_walk_that_takes_a_second_keeps_a_right_program_from_being_accused() -> None:
    def shown(data: Any, rng: np.random.Generator) -> bool:
        time.sleep(0.02)  # thirty runs with the same variates take more than half a second
        return len(data) > 0 and len(data) + rng.laplace() > 1 + np.log(1 / 2e-9)

    assert trace(one_draw(shown), ApproxDP(1.0, 1e-9), Pair([1], []), draws=200).verdict == "holds"


def test_private_data_stay_hidden() -> None:
    def leaks(data: Any, rng: np.random.Generator) -> Any:
        return {"sum": data.sum() + rng.laplace(), "all": data.tolist(), "noise": rng.laplace(size=len(data))}

    secret = Pair(np.array([123457]), np.array([123457, 530864]), "a.npy against b.npy")
    certified = []
    for function in (
        leaks,
        lambda data, rng: data.sum() + 0 * rng.laplace(),
        lambda data, rng: sum(data) + rng.laplace(),
    ):
        hidden = trace(one_draw(function), PureDP(1.0), secret, private=True)
        assert hidden.verdict == "violation"
        text = str(hidden.to_json())
        for word in ("12345", "53086", "65432", "(2,)", "(1,)"):
            assert word not in text
        assert hidden.pair == "a.npy against b.npy"
        certified.append(hidden.draws > 0)
        if hidden.draws:  # what certifies it is seen as that of any audit, but for values
            assert hidden.counterexample is not None
            assert hidden.counterexample.event == hidden.event
            assert hidden.independence["draws"] > 0
            assert hidden.record["pairs"] == ["a.npy against b.npy"]
    assert any(certified)
    shown = trace(one_draw(leaks), PureDP(1.0), secret)
    assert "(1,) and (2,)" in str(shown.to_json())


def test_what_cannot_be_replayed_is_said() -> None:
    class Hidden:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(1)

        def __call__(self, data: Any, rng: np.random.Generator) -> float:
            return float(data.sum() + self.rng.laplace(scale=10.0))

    result = trace(one_draw(Hidden()), PureDP(1.0), NUMBERS)
    assert result.verdict == "inconclusive"
    assert "it draws from a source that is not replaced" in result.message
    seeded = trace(one_draw(lambda data, rng: np.random.seed(2)), PureDP(1.0), NUMBERS)  # noqa: NPY002
    assert "seeds numpy.random itself" in seeded.message
    with pytest.raises(TargetError, match="IndexError"):
        trace(one_draw(lambda data, rng: data[77]), PureDP(1.0), NUMBERS)
    with pytest.raises(SpecificationError, match="'epsilon=1'"):
        trace(one_draw(lambda data, rng: 0), "epsilon=1", NUMBERS)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match="got 10"):
        trace(one_draw(lambda data, rng: 0), PureDP(1.0), NUMBERS, draws=10)


def test_batches_and_gaussian_claims_are_replayed() -> None:
    def batch(data: Any, n: int, rng: np.random.Generator) -> Any:
        return data.sum() + rng.normal(scale=4.0, size=n)

    claim = ApproxDP(1.0, 1e-5)
    assert trace(batch, claim, BITS).verdict == "consistent"
    assert trace(batch, ApproxDP(0.5, 1e-5), BITS).checks[0]["name"] == "shift larger than the noise allows"


def test_equal_calls_get_equal_variates() -> None:
    recorder, scales = DrawRecorder(), (1.0, 3.0)

    def draw(scale: float) -> list[Any]:
        tape = Tape(4)
        with recorder.using(tape):
            values = [recorder.rng.laplace(scale=scale), random.random(), recorder.rng.normal(size=3, scale=scale)]
        assert [d.primitive for d in tape.draws] == ["Generator.laplace", "random.random", "Generator.normal"]
        assert all(d.place.startswith("test_replayed_draws.py:") for d in tape.draws)
        return values

    with recorder.replacing():
        one, two = (draw(scale) for scale in scales)
    assert two[0] == pytest.approx(3 * one[0])
    assert two[1] == one[1]
    assert two[2] == pytest.approx(3 * one[2])
