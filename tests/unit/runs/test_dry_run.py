"""What a run would take: schedules that are those of real audits, and times that follow from the pilot's."""

from __future__ import annotations

import heapq
import math
import random
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor import audit
from auditor.audits.defaults import DRAWS
from auditor.audits.privacy_loop import CHUNKS, LARGEST, Settings
from auditor.claims import Claim, Source, conformity, exact, privacy
from auditor.datasets import Pair
from auditor.errors import TargetError
from auditor.privacy.exact import FiniteLaw
from auditor.privacy.guarantees import PureDP
from auditor.runs import dry_run
from auditor.runs.dry_run import (
    Estimate,
    Speed,
    audit_seconds,
    chunk_sizes,
    estimate_claim,
    format_estimates,
    time_calls,
    total_seconds,
)
from auditor.targets import Mechanism
from tests.commandline import FINE, Command, declare, refused

PAIR = Pair(np.array([0]), np.array([1]), "one bit")
PAIRS = [Pair(np.array([0, k]), np.array([1, k])) for k in range(5)]


@dataclass
class Timed:
    """Randomised response that takes ``start + n * each`` seconds on a clock of its own."""

    start: float = 1e-4
    each: float = 1e-6
    now: float = 0.0
    calls: list[int] = field(default_factory=list)

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        self.calls.append(n)
        self.now += self.start + n * self.each
        return np.where(rng.random(n) < 0.7, data[0], 1 - data[0])

    def law(self, data: Any) -> FiniteLaw:
        return FiniteLaw((int(data[0]), 1 - int(data[0])), np.array([0.7, 0.3]))

    def clock(self) -> float:
        return self.now


def claim(mechanism: Mechanism, kind: Any = privacy, *arguments: Any) -> Claim:
    draft = kind(mechanism, *(arguments or (PureDP(1.0), PAIR)))
    return Claim(f"a/b/{draft.level}/x/y", "a/b", "a claim", Source("a", "b"), draft)


# ------------------------------------------------------------------------------------ schedule


def spread(side: int, pairs: int) -> list[int]:
    return [n for n, times in chunk_sizes(side, pairs) for _ in range(times)]


@pytest.mark.parametrize("draws", [80, 2_000, 200_000])
def test_chunks_are_those_of_an_audit(draws: int) -> None:
    record = audit(Timed(), PureDP(1.0), PAIR, draws=draws, stop="budget").record
    assert spread(draws // 2, 1) == [n for _, n, _ in record["chunks"]]


def test_several_pairs_never_make_more_chunks_than_are_expected() -> None:
    record = audit(Timed(), PureDP(1.0), PAIRS, draws=20_000, stop="budget").record
    sizes = spread(10_000, 5)
    assert sum(sizes) == sum(n for _, n, _ in record["chunks"]) == 10_000
    assert len(record["chunks"]) <= len(sizes)


def test_the_schedule_of_a_large_budget_has_chunks_of_bounded_size() -> None:
    sizes = spread(10_000_000, 3)
    assert sum(sizes) == 10_000_000
    assert max(sizes) == LARGEST
    drawn = 0
    for n in spread(3_000_000, 1):
        assert n == CHUNKS.size(drawn, 3_000_000 - drawn)
        drawn += n


def test_the_largest_budget_is_estimated_at_once() -> None:
    speed = Speed((1, LARGEST), (0.0, LARGEST * 1e-6), 1)
    assert math.isclose(audit_seconds(speed, Settings(draws=10**30), 1), 1e24, rel_tol=0.1)


def test_the_time_of_an_audit_is_that_of_all_its_calls() -> None:
    # The model of the target is exact, so what is left is the engine's own time.
    target, settings = Timed(), Settings(draws=200_000, stop="budget")
    audit(target, PureDP(1.0), PAIR, draws=settings.draws, stop="budget")
    speed = Speed((1, LARGEST), (1e-4 + 1e-6, 1e-4 + LARGEST * 1e-6), 1)
    free = audit_seconds(Speed((1,), (0.0,), 1), settings, 1)
    drawing = audit_seconds(speed, settings, 1) - free
    # 2 datasets, one long call of 192 draws each, which the estimate takes for a short one.
    assert math.isclose(drawing, target.now - 2 * 180e-6, rel_tol=1e-9)


def test_a_budget_of_seconds_bounds_the_estimate() -> None:
    speed = Speed((1, 1000), (1e-3, 1.0), 1)
    whole, cut = (audit_seconds(speed, Settings(seconds=s), 1) for s in (None, 0.5))
    assert whole > 2 * DRAWS / 2 * 1e-3
    # Half a second, the last chunk, the tests of independence and the engine's own time.
    assert 0.5 < cut < 0.5 + 2 * 0.2 * DRAWS / 2 * 1e-3 + 2 * 26 * 12e-3 + 1


# --------------------------------------------------------------------------------------- pilot


@pytest.mark.parametrize("start", [1e-6, 1e-3, 0.02])
@pytest.mark.parametrize("each", [1e-8, 1e-6, 1e-4, 1e-2])
def test_a_pilot_is_short_and_finds_the_speed(start: float, each: float) -> None:
    target = Timed(start, each)
    speed = time_calls(target, (PAIR.x, PAIR.y), 0, "a", target.clock)
    # Calls that begin before the end of a pilot and draw for half of it at most, or some calls that take longer.
    assert target.now <= max(1.5 * dry_run.PILOT + start, 9 * (start + each)) + 1e-12
    assert speed.width == 1
    for n in (1, 3, 10, 1000, 100_000, 10_000_000):
        assert math.isclose(speed.call(n), start + n * each, rel_tol=1e-6)


def test_a_very_slow_target_is_asked_for_two_draws_only() -> None:
    target = Timed(0.0, 1.0)
    speed = time_calls(target, (PAIR.x, PAIR.y), 0, "a", target.clock)
    assert target.calls == [1, 1]
    assert speed.call(1000) == 1000.0


def test_noise_in_the_times_makes_no_speed_negative() -> None:
    speed = Speed((1, 64), (2e-3, 1e-3), 1)
    assert speed.call(10_000) == 1e-3


def test_what_only_the_first_call_costs_is_not_counted() -> None:
    target = Timed()

    def loads(data: Any, n: int, rng: np.random.Generator) -> Any:
        target.now += 0.005 * (not target.calls)
        return target(data, n, rng)

    assert math.isclose(time_calls(loads, (PAIR.x, PAIR.y), 0, "a", target.clock).call(1), 1e-4 + 1e-6)


@pytest.mark.parametrize("fixed", [0.06, 0.2, 0.4])
def test_a_long_call_is_not_taken_for_a_slow_draw(fixed: float) -> None:
    target = Timed(fixed, 1e-7)

    def loads(data: Any, n: int, rng: np.random.Generator) -> Any:
        target.now += 0.7 * (not target.calls)
        return target(data, n, rng)

    speed = time_calls(loads, (PAIR.x, PAIR.y), 0, "a", target.clock)
    assert math.isclose(speed.call(10_000_000), fixed + 1.0, rel_tol=1e-6)


def test_coordinates_are_counted() -> None:
    def wide(data: Any, n: int, rng: np.random.Generator) -> Any:
        return rng.random((n, 7))

    assert time_calls(wide, (PAIR.x, PAIR.y), 0, "a").width == 7
    assert time_calls(lambda data, n, rng: ["a"] * n, (PAIR.x, PAIR.y), 0, "a").width == 1


def test_a_pilot_uses_other_draws_than_the_audit() -> None:
    seen: list[int] = []

    def records(data: Any, n: int, rng: np.random.Generator) -> Any:
        seen.append(int(rng.bit_generator.state["state"]["state"]))
        return np.where(rng.random(n) < 0.7, data[0], 1 - data[0])

    estimate_claim(claim(records), Settings(draws=400))
    piloted = set(seen)
    seen.clear()
    audit(records, PureDP(1.0), PAIR, id="a/b/L1/x/y", draws=400)
    assert piloted
    assert not piloted & set(seen)


def test_a_target_that_hangs_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_run, "PILOT_LIMIT", 0.2)

    def sleeps(data: Any, n: int, rng: np.random.Generator) -> Any:
        time.sleep(60)

    begun = time.monotonic()
    found = estimate_claim(claim(sleeps), Settings())
    assert time.monotonic() - begun < 30
    assert found.seconds is None
    assert "did not answer within 0.2 s" in found.failure
    with pytest.raises(TargetError):
        time_calls(sleeps, (PAIR.x, PAIR.y), 0, "a")


def test_exact_claims_draw_nothing() -> None:
    target = Timed()
    found = estimate_claim(claim(target, exact), Settings())
    assert (found.seconds, found.failure, target.calls) == (None, "", [])


def test_claims_of_conformity_are_estimated() -> None:
    target = Timed()
    found = estimate_claim(claim(target, conformity, PAIR.x), Settings(draws=10_000), clock=target.clock)
    assert found.seconds is not None
    assert found.seconds >= 10_000 * target.each


# --------------------------------------------------------------------------------------- total


def of_seconds(*seconds: float | None) -> list[Estimate]:
    return [Estimate(claim(Timed()), Settings(draws=1_000), s) for s in seconds]


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_no_schedule_ends_later_than_the_total(jobs: int) -> None:
    draw = random.Random(jobs)
    for _ in range(50):
        seconds = [draw.expovariate(1.0) for _ in range(draw.randint(1, 20))]
        free = [0.0] * jobs
        for s in seconds:  # the worker that is free first takes the next claim
            heapq.heappush(free, heapq.heappop(free) + s)
        assert max(free) <= total_seconds(of_seconds(*seconds), jobs, 0.0) + 1e-9
    assert math.isclose(total_seconds(of_seconds(1.0, None, 2.0), 1, 5.0), 3.0)
    assert math.isclose(total_seconds(of_seconds(1.0, 2.0), 2, 5.0), 5 + 1.5 + 1)


def test_the_table_says_what_is_bounded_and_what_failed() -> None:
    early = of_seconds(0.5)[0]
    late = Estimate(early.claim, Settings(draws=1_000, stop="budget"), 0.5)
    failing = Estimate(early.claim, Settings(draws=1_000), None, "the target raised KeyError: 'age'")
    head, first, second, third, blank, why, total, note = format_estimates([early, late, failing], 1, 0.0)
    assert head.split() == ["id", "claimed", "expected", "budget", "share", "of", "alpha", "time"]
    assert first.endswith("at most 500 ms")
    assert second.endswith("about 500 ms")
    assert third.endswith("FAILS")
    assert blank == ""
    assert why == "FAILS in its pilot: a/b/L1/x/y: the target raised KeyError: 'age'"
    assert total == "3 claims would run: 2,000 draws, at most about 1 s on 1 worker"
    assert "estimates" in note
    assert "claims that fail are not counted" in note
    assert "at most" not in format_estimates([late], 1, 0.0)[-2]


# -------------------------------------------------------------------------------- command line


def test_a_dry_run_of_the_command_line(dpaudit: Command, tmp_path: Path) -> None:
    body = "    yield privacy(crashing, PureDP(1.0), PAIR, case='crash')\n" + FINE
    said = dpaudit("run", declare(tmp_path, body), "--dry-run", "--out", tmp_path / "out", "--alpha", 0.02, "--jobs", 3)
    assert said.code == 0, said
    assert said.err == ""
    assert not (tmp_path / "out").exists()
    head, crash, law, held, strong, _, why, total, note = said.out.splitlines()
    assert head.startswith("id ")
    for line, case in ((crash, "crash"), (law, "L0"), (held, "reference"), (strong, "strong")):
        assert case in line.split()[0]
    assert re.search(r"200,000 draws +0\.01 +FAILS$", crash)
    assert re.search(r"exact distribution +- +-$", law)
    assert re.search(r"200,000 draws +0\.01 +at most [0-9.]+ m?s$", held)
    assert "violation" in strong
    assert re.fullmatch(
        r"FAILS in its pilot: 900/response/L1/pure_dp/crash: the target raised RuntimeError: no entropy left "
        r"\(claims\.py, line \d+\)",
        why,
    )
    assert total.startswith("4 claims would run: 400,000 draws, at most about ")
    assert total.endswith(" on 3 workers")
    assert "estimates" in note


def test_a_dry_run_checks_its_options(dpaudit: Command, tmp_path: Path) -> None:
    refused(dpaudit("run", declare(tmp_path), "--dry-run", "--alpha", 2), "2.0")
