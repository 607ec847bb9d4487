"""False alarms at zero margin, over many resumptions of a ledger with the same seed every night.

Randomised response at its exact level: a true rate of at most 5 % over the whole history of a ledger, and not in each
night of it. The harness is held against a ledger that counts the same draws every night, and is seen to fail there.
Where nights are ended by who has seen their draws, it is held against a ledger that forgets what it had begun.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditor.audits.privacy_loop import Evidence, Settings, collect_evidence
from auditor.datasets import Pair
from auditor.evidence.lower_bound import level_grid, lower_bound
from auditor.evidence.two_sample_bet import Stake, Wealth
from auditor.privacy.guarantees import PureDP
from auditor.results import AuditResult, Verdict
from auditor.runs.ledger import Ledger, Night
from auditor.runs.ledger.record import past_of
from auditor.runs.ledger.session import share_of
from auditor.targets.sampler import Sampler
from benchmarks.ledgers import CONTROL, ENDS, ledger_of

ALPHA = 0.05
LEDGERS, NIGHTS, DRAWS = 40, 8, 300
#: What the first series of a state has of it.
OWN = ALPHA * share_of(1)
CLAIM = PureDP(math.log(3))
PAIR = [Pair(0, 1, "0 against 1")]
SETTINGS = Settings(alpha=ALPHA, draws=DRAWS, stop="budget")
#: More alarms than this have a probability of at most 1e-6 for a rate of 5 %.
MOST = int(stats.binom.isf(1e-6, LEDGERS, ALPHA))


def coin(data: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Randomised response at epsilon = ln 3 exactly."""
    return np.where(rng.random(n) < 0.75, data, 1 - data)


def one_night(path: Path) -> Evidence:
    """One night as `auditor.audits.privacy.run_audit` has it, without what it says of the evidence."""
    with Ledger(path).night(coin, CLAIM, PAIR, SETTINGS, "own/coin/L1/pure_dp/exact", False) as night:
        assert isinstance(night, Night)
        sampler = Sampler(coin, SETTINGS.seed, night.key)
        evidence = collect_evidence(sampler, CLAIM, PAIR, night.settings, night.past(sampler), night)
        verdict = Verdict.VIOLATION if evidence.refuted(night.settings.alpha) else Verdict.CONSISTENT
        night.end(evidence, False, _result(verdict))
    return evidence


def _result(verdict: Verdict) -> AuditResult:
    labels: dict[str, Any] = dict.fromkeys(("id", "entry", "level", "notion", "claimed"), "")
    return AuditResult(
        **labels,
        source={},
        claimed_level=CLAIM.level,
        parameters={},
        alpha=ALPHA,
        verdict=verdict,
        expected=Verdict.CONSISTENT,
    )


def hindsight(evidence: Evidence) -> float:
    """Wealth of a ledger that draws the same every night, and so bets on what it has learned from the same draws.

    The estimates of both probabilities are beyond the cap in three of four cases, by one error or so, however the
    draws came out; many nights of them refute any claim that holds at zero margin.
    """
    chunks = [(chunk.n, chunk.stake) for chunk in evidence.chunks if chunk.stake is not None]
    n = sum(drawn for drawn, _ in chunks)
    x, y = (sum(sum(getattr(stake, side)[stake.best + 1 :]) for _, stake in chunks) for side in ("x", "y"))
    stake = Stake(0, 0, ((x + 1) / (n + 2),), ((y + 1) / (n + 2),), (n - x, x), (n - y, y))
    wealth = Wealth(CLAIM, np.array([CLAIM.level]))
    for _ in range(100):
        wealth.bet(stake)
    return float(wealth.best[0])


def test_alarms_over_the_whole_history_are_rare_and_the_same_draws_every_night_would_be_found(tmp_path: Path) -> None:
    grid = level_grid(CLAIM.level)
    alarms = above = multiplied = 0
    for k in range(LEDGERS):
        path = tmp_path / f"{k}"
        nights = [one_night(path) for _ in range(NIGHTS)]
        whole = nights[-1]
        assert whole.n == NIGHTS * DRAWS // 2
        alarms += any(evidence.refuted(OWN) for evidence in nights)
        assert whole.refuted(OWN) == any(evidence.refuted(OWN) for evidence in nights)
        above += lower_bound(whole.chunks, CLAIM, grid, ALPHA) > CLAIM.level
        multiplied += hindsight(nights[0]) >= -math.log(ALPHA)
    assert alarms <= MOST
    assert above <= MOST
    assert multiplied > MOST


def test_alarms_are_rare_where_nights_are_ended_by_a_look_at_their_draws() -> None:
    # More alarms than `few` have a probability of at most 1e-6 for a rate of 5 %. The numbers drawn are those of the
    # seeds: the ledger that forgets has the same alarms always, in nine of ten ledgers by the benchmark.
    seeds, nights = range(8), 60
    few = int(stats.binom.isf(1e-6, len(seeds), ALPHA))
    outcomes = {end: [ledger_of(end, seed, nights) for seed in seeds] for end in (ENDS[4], CONTROL)}
    killed = {end: sum(outcome.killed for outcome in found) for end, found in outcomes.items()}
    alarms = {end: sum(outcome.alarm for outcome in found) for end, found in outcomes.items()}
    assert killed[ENDS[4]] > 100
    assert alarms[ENDS[4]] <= few < alarms[CONTROL]


def test_a_ledger_is_one_long_run_that_was_interrupted(tmp_path: Path) -> None:
    for _ in range(5):
        whole = one_night(tmp_path / "ledger")
    wealth = Wealth(CLAIM, np.array([CLAIM.level]))
    logs = []
    for chunk in whole.chunks:
        wealth.bet(chunk.stake)
        logs.append(float(wealth.current[0]))
    assert logs == [log for _, log in whole.path]
    with Ledger(tmp_path / "ledger").night(coin, CLAIM, PAIR, SETTINGS, "own/coin/L1/pure_dp/exact", False) as night:
        past = past_of(night.store, 1)
    assert list(past.chunks) == whole.chunks
    np.testing.assert_allclose([log for _, log in past.path], logs, rtol=1e-12)
    # Every stake's estimates are of chunks before it: with other counts in the last chunk they are the same.
    assert replace(past, memory={}).chunks[-1].stake == whole.chunks[-1].stake
