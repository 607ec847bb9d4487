"""Exceptions as outcomes: an alarm about them is valid, and it would not be if raised batches were drawn again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from auditor import ApproxDP, PureDP, Verdict, audit
from auditor.audits.context import Question
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.datasets import Pair
from auditor.evidence.two_sample_bet import Stake, log_factors, worst_counts
from tests.statistics import ALLOWED as ALPHA
from tests.statistics import check_rates

Rng = np.random.Generator
PAIR = Pair(np.array([0]), np.array([1]))


class Fails:
    """Raises in a draw with probability e/100 on one dataset and 1/100 on the other: epsilon is exactly 1 where the
    other outcome is a coin of ratio below e. For a batch it raises if one of its draws does."""

    def __call__(self, data: Any, n: int, rng: Rng) -> Any:
        rate = math.e / 100 if data[0] else 0.01
        if (rng.random(n) < rate).any():
            raise ValueError("a draw failed")
        return np.zeros(n)


class DrawnAgain(Fails):
    """What an auditor sees that draws a batch again, draw by draw, where it raised, and goes on with batches."""

    def __call__(self, data: Any, n: int, rng: Rng) -> Any:
        try:
            return super().__call__(data, n, rng).tolist()
        except ValueError:
            outputs: list[Any] = []
            for _ in range(n):
                try:
                    outputs.append(float(super().__call__(data, 1, rng)[0]))
                except ValueError:
                    outputs.append("raised")
            return outputs


def check(mechanism: Any, draws: int) -> None:
    """The harness: fails if alarms are too many for a rate of 5 %."""

    def alarms(seed: int) -> tuple[bool]:
        how = Settings(alpha=ALPHA, draws=draws, seed=seed, independence=False)
        return (run_audit(mechanism, PureDP(1.0), [PAIR], how, Question()).verdict == Verdict.VIOLATION,)

    check_rates(alarms, "false alarms")


def test_exceptions_at_the_claimed_level_are_seldom_an_alarm() -> None:
    check(Fails(), 1_000)


class RareInSmallBatches(Fails):
    """The distribution of `DrawnAgain` at its limit: kept draws of a batch of 8 raise with the squared rate."""

    def __call__(self, data: Any, n: int, rng: Rng) -> Any:
        rate = math.e / 30 if data[0] else 1 / 30
        seen = rate * (1 - (1 - rate) ** 7)
        return np.where(rng.random(n) < seen, 1.0, 0.0)


def test_drawing_raised_batches_again_would_be_invalid() -> None:
    # The rates' ratio is about e^2 where it was e: for batches of 8 it is far beyond the claim.
    with pytest.raises(AssertionError, match="false alarms"):
        check(RareInSmallBatches(), 3_000)


@pytest.mark.parametrize("side", ["x", "y"])
def test_worst_counts_gain_no_more_than_any_counts(side: str) -> None:
    rng = np.random.default_rng(0)
    for guarantee in (PureDP(1.0), ApproxDP(0.5, 0.01)):
        for _ in range(50):
            outer, inner = sorted(rng.random(2))[::-1]
            p = (outer, inner)
            q = (outer * rng.random(), inner * rng.random() ** 2)
            q = (max(q), min(q))
            x, y = rng.multinomial(20, [0.4, 0.3, 0.3]), rng.multinomial(20, [0.4, 0.3, 0.3])
            stake = Stake(0, int(rng.integers(2)), p, q, tuple(x.tolist()), tuple(y.tolist()))
            worst = worst_counts(stake, 20, side == "x", side == "y")
            level = np.array([guarantee.level])
            at_worst, at_all = log_factors([worst, stake], guarantee, level)
            assert (at_worst <= at_all + 1e-9).all()


def test_an_exception_on_one_dataset_is_a_violation() -> None:
    def raises(data: Any, n: int, rng: Rng) -> Any:
        if data[0]:
            raise KeyError(data[0])
        return rng.laplace(size=n)

    result = audit(raises, PureDP(1.0), PAIR)
    assert result.verdict == Verdict.VIOLATION
    assert str(result.event) in ("raised KeyError", "did not raise KeyError")
    assert result.counterexample is not None
    assert result.counterexample.cause == "exception"


def test_a_rare_exception_is_found() -> None:
    class Rare(Fails):
        def __call__(self, data: Any, n: int, rng: Rng) -> Any:
            if data[0] and (rng.random(n) < 0.02).any():
                raise OverflowError
            return np.rint(rng.laplace(scale=2, size=n))

    result = audit(Rare(), PureDP(1.0), PAIR)
    assert result.verdict == Verdict.VIOLATION


def test_nothing_but_exceptions_is_an_error() -> None:
    def broken(data: Any, n: int, rng: Rng) -> Any:
        raise TypeError("no such column")

    result = audit(broken, PureDP(1.0), [PAIR, Pair(np.array([1]), np.array([2]))])
    assert result.verdict == Verdict.ERROR
    assert "no such column" in result.message
