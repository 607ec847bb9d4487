"""False alarms about targets that keep their claim in each draw, and whose draws depend on one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor import Pair, PureDP, Verdict, audit
from benchmarks.dependent import CASES, batch
from benchmarks.families import ALPHA

Rng = np.random.Generator
PAIR = Pair(np.array([0]), np.array([1]))

AUDITS = 12
#: Fails for any seed with probability below 1e-6 where alarms have probability ALPHA.
MOST = int(stats.binom.isf(1e-6, AUDITS, ALPHA))
#: Each had 40 % or more of false alarms where nothing but the tests beforehand looked at the draws.
NAMES = (
    ("event", "a tenth of the draws of 6 calls alike"),
    ("game", "table of 16"),
    ("phase diagram", "a tenth of the draws of a call alike"),
)


@pytest.mark.parametrize(("audited", "name"), NAMES)
def test_dependent_draws_raise_no_more_alarms_than_alpha_allows(audited: str, name: str) -> None:
    case = next(k for k, case in enumerate(CASES) if (case.audited, case.name) == (audited, name))
    counts = batch(case, range(500, 500 + AUDITS))
    assert counts["alarm"] + counts["error"] <= MOST


@pytest.mark.parametrize("share", [0.5, 0.9, 0.97])
@pytest.mark.parametrize("method", ["e-process", "clopper-pearson"])
def test_a_coin_that_the_draws_of_a_call_share_makes_no_violation(share: float, method: str) -> None:
    # The first test has few comparisons that are not ties, and misses some of these. Both sides have the same
    # distribution.
    def shared(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        return np.full(n, int(rng.random() < share))

    for seed in range(12):
        found = audit(shared, PureDP(0.1), PAIR, alpha=1e-9, draws=4_000, seed=seed, method=method)
        assert found.verdict != Verdict.VIOLATION


def test_noise_shared_on_another_pair_only_is_found_when_it_speaks_against_the_claim() -> None:
    def shared_on_two(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        if data[0] == 2:
            return np.full(n, rng.integers(0, 2))
        return rng.integers(0, 2, n) if data[0] else np.zeros(n, dtype=np.int64)

    # Every single draw on 1 and on 2 is a fair coin, but those of a call on 2 have one value, and look like evidence
    # when calls happen to agree: in 34 of 40 audits by bets. By the fixed-size method, whose judging calls are many,
    # hardly ever. None of 20 has that with probability 3e-17.
    pairs = [Pair(np.array([0]), np.array([0]), "constant"), Pair(np.array([1]), np.array([2]), "shared")]

    def verdicts(method: str, seeds: int) -> set[Verdict]:
        return {
            audit(shared_on_two, PureDP(0.1), pairs, method=method, seed=seed, alpha=1e-8, draws=20_000).verdict
            for seed in range(seeds)
        }

    assert Verdict.VIOLATION not in verdicts("clopper-pearson", 20)
    found = verdicts("e-process", 20)
    assert Verdict.VIOLATION not in found
    assert Verdict.DEVIATION in found


#: Mechanisms that do not look at their data, and whose outputs come as an array or as a list, of integers or of floats,
#: depending on what else is in the batch.
MIXED: dict[str, Any] = {
    "rarely nothing": lambda data, n, rng: [None if u < 0.01 else int(3 * u) for u in rng.random(n)],
    "rarely a float": lambda data, n, rng: [0.5 if u < 0.01 else int(3 * u) for u in rng.random(n)],
    "rarely large": lambda data, n, rng: [10**30 if u < 0.01 else int(3 * u) for u in rng.random(n)],
    "rarely a word": lambda data, n, rng: ["failed" if u < 0.01 else u for u in rng.random(n)],
    "rarely shorter": lambda data, n, rng: [[1, 2] if u < 0.01 else [int(3 * u), 0, 1] for u in rng.random(n)],
    "rows or nothing": lambda data, n, rng: [None if u < 0.01 else [int(3 * u), 0, 1] for u in rng.random(n)],
}


@pytest.mark.parametrize("name", MIXED)
def test_what_else_is_in_a_batch_makes_no_violation(name: str) -> None:
    # Pure noise: with alpha = 1e-8 a run, 20 runs raise a false alarm with probability at most 2e-7.
    verdicts = [audit(MIXED[name], PureDP(0.5), PAIR, draws=3_000, alpha=1e-8, seed=seed).verdict for seed in range(20)]
    assert set(verdicts) <= {Verdict.CONSISTENT, Verdict.INCONCLUSIVE}
