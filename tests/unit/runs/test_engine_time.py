"""The engine's own time, measured on a target's outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from auditor.audits.privacy_loop import Settings
from auditor.events.event_learner import RESERVOIR
from auditor.privacy.guarantees import PureDP
from auditor.runs.dry_run import Speed, audit_seconds
from auditor.runs.engine_time import EngineTime, measure_engine


class Slow:
    """A target whose calls move the clock, which nothing else does."""

    now = 0.0

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        self.now += 1.0 + n
        return [{"a": int(value)} for value in rng.integers(5, size=n)]


def test_drawing_is_not_the_engines_own_time() -> None:
    target = Slow()
    found = measure_engine(target, np.zeros(1), PureDP(1.0), 400, clock=lambda: target.now)
    assert target.now > 400
    assert found.sizes[-1] == 200
    assert set(found.seconds) == {0.0}
    assert found.late == 0


def test_all_that_is_not_drawing_is_the_engines_own_time() -> None:
    ticks = iter(range(10**6))
    found = measure_engine(Slow(), np.zeros(1), PureDP(1.0), 400, clock=lambda: float(next(ticks)))
    # Between two chunks the clock is read twice by the draws, which count as one tick, and once by the notes.
    assert np.diff(found.seconds).tolist() == [2.0] * (len(found.seconds) - 1)


def test_time_beyond_what_was_measured() -> None:
    found = EngineTime((100, 200, 400), (1.0, 2.0, 3.0), 0.001)
    assert found.of_pair(0) == 0
    assert found.of_pair(150) == 1.5
    assert found.of_pair(700) == pytest.approx(5.0)  # the slope from 100 to 400
    assert found.of_pair(RESERVOIR + 1000) == pytest.approx(3.0 + (RESERVOIR - 400) / 150 + 1.0)
    assert found.of_pairs(301, 3) == pytest.approx(1.01 + 2 * 1.0)


def test_an_audit_is_estimated_with_the_time_that_was_measured() -> None:
    free, engine = Speed((1,), (0.0,), 1), EngineTime((100, 10**6), (10.0, 10.0), 0.0)
    settings = Settings(draws=20_000)
    none = EngineTime((1,), (0.0,), 0.0)
    one, many = (
        audit_seconds(free, settings, pairs, engine=engine) - audit_seconds(free, settings, pairs, engine=none)
        for pairs in (1, 100)
    )
    assert one == pytest.approx(10.0)
    assert many == pytest.approx(1000.0)
