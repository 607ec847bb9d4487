"""Independent draws pass the tests of independence, shared and repeated noise does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor import Pair, PureDP, audit
from auditor.audits import independence
from auditor.audits.context import Question
from auditor.audits.independence import (
    COMPARISONS,
    FALSE_ALARM,
    LONGER,
    MOST,
    Independence,
    check_calls,
    check_independence,
    dependent_counts,
)
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.results import Verdict
from auditor.targets.sampler import Sampler

Rng = np.random.Generator
Target = Callable[[Any, int, Rng], Any]


def check(target: Target, seed: int = 0) -> Independence:
    return check_independence(Sampler(target, seed, "claim"), np.array([0]))


# ---------------------------------------------------------------------------------- independent

INDEPENDENT: dict[str, Target] = {
    "continuous": lambda data, n, rng: rng.normal(size=n),
    "heavy tails": lambda data, n, rng: rng.standard_cauchy(n),
    "discrete": lambda data, n, rng: rng.integers(0, 3, n),
    "rarely not 0": lambda data, n, rng: (rng.random(n) < 0.01).astype(int),
    "booleans": lambda data, n, rng: rng.random(n) < 0.5,
    "constant": lambda data, n, rng: np.zeros(n),
    "constant symbol": lambda data, n, rng: ["yes"] * n,
    "nothing": lambda data, n, rng: [None] * n,
    "strings": lambda data, n, rng: rng.choice(["a", "bb", "ccc"], n).tolist(),
    "vectors": lambda data, n, rng: rng.normal(size=(n, 4)),
    "tables": lambda data, n, rng: rng.integers(0, 2, (n, 2, 3)),
    "ragged": lambda data, n, rng: [rng.random(int(k)).tolist() for k in rng.integers(0, 4, n)],
    "with nan": lambda data, n, rng: np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
    "with infinities": lambda data, n, rng: rng.choice([math.inf, -math.inf, 0.0, math.nan], n),
    "huge": lambda data, n, rng: rng.choice([1e308, -1e308], (n, 3)),
    "number or symbol": lambda data, n, rng: [None if u < 0.3 else float(u) for u in rng.random(n)],
    "large integers": lambda data, n, rng: [2**70 + int(k) for k in rng.integers(0, 5, n)],
    "dicts": lambda data, n, rng: [{"a": int(k)} for k in rng.integers(0, 3, n)],
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_draws_of_any_kind_pass(name: str) -> None:
    # By construction with probability at least 1 - FALSE_ALARM = 1 - 1e-6 each.
    found = check(INDEPENDENT[name])
    assert found.passed
    assert found.finding == ""
    assert min(found.p_values.values()) >= FALSE_ALARM / 4


@pytest.mark.parametrize("name", ["continuous", "discrete", "strings", "vectors"])
def test_independent_draws_do_not_fail_in_five_hundred_runs(name: str) -> None:
    # The stated rate is at most 1e-6 a run, so 0.002 failures are expected in the 2,000 runs of the four kinds. Two or
    # more of 500 have a probability of (500e-6)^2 / 2 = 1.3e-7, for any of the four kinds of 5e-7.
    assert sum(not check(INDEPENDENT[name], seed).passed for seed in range(500)) <= 1


def test_p_values_of_independent_draws_are_not_too_small() -> None:
    # A valid p-value is at most 0.01 with probability at most 0.01, and a Binomial(200, 0.01) exceeds 14 with
    # probability 3e-9.
    counts = {"within a call": 0, "between calls": 0, "neighbouring draws": 0, "draws at a distance": 0}
    for seed in range(200):
        for name, p in check(INDEPENDENT["continuous"], 1_000 + seed).p_values.items():
            counts[name] += p <= 0.01
    assert max(counts.values()) <= 14


@pytest.mark.parametrize("calls", [2, 12, 24, 384])
@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_no_draw_is_in_two_comparisons_of_a_test(calls: int, blocks: int) -> None:
    # Every draw is its own number.
    table = np.arange(calls * blocks * 6, dtype=float).reshape(calls, blocks, 6, 1)
    for triples in (independence._triples_within_blocks(table), independence._triples_between_calls(table)):
        used = np.concatenate(triples).ravel()
        assert len(used) == 3 * calls * blocks == len(set(used))
    long = np.arange(8.0 * calls)[:, None]
    used = np.concatenate(independence._neighbouring_triples(long)).ravel()
    assert len(used) == 6 * calls == len(set(used))


def test_comparisons_are_of_the_calls_that_their_names_say() -> None:
    call = np.repeat(np.arange(24.0), 12).reshape(24, 2, 6, 1)
    a, b, c = independence._triples_within_blocks(call)
    assert (a == b).all()
    assert (a != c).all()
    a, b, c = independence._triples_between_calls(call)
    assert (a != b).all()
    assert (a != c).all()
    place = np.tile(np.arange(12.0), 24).reshape(24, 2, 6, 1)
    a, b, c = independence._triples_between_calls(place)
    assert (a == b).all()
    assert (a != c).all()


# ------------------------------------------------------------------------------------ dependent


@pytest.mark.parametrize("period", [2, 3, 5, 16, 31, 48])
def test_noise_that_is_recycled_within_a_call_is_found(period: int) -> None:
    def recycled(data: Any, n: int, rng: Any) -> Any:
        return np.resize(rng.laplace(size=min(n, period)), n)

    found = check(recycled)
    assert not found.passed
    assert "repeat at a fixed distance" in found.finding


def shared(data: Any, n: int, rng: Rng) -> NDArray[np.float64]:
    """Noise drawn once a call."""
    return np.repeat(rng.normal(), n)


def partly_shared(data: Any, n: int, rng: Rng) -> NDArray[np.float64]:
    """A large common part and a small own part."""
    return 1e6 * rng.normal() + rng.normal(size=n)


def shared_symbols(data: Any, n: int, rng: Rng) -> list[str]:
    return [str(rng.integers(1000))] * n


def shared_vectors(data: Any, n: int, rng: Rng) -> NDArray[np.float64]:
    return np.tile(rng.normal(size=3), (n, 1))


def fixed_seed(data: Any, n: int, rng: Rng) -> NDArray[np.float64]:
    """Ignores the generator it was given."""
    return np.random.default_rng(42).normal(size=n)


def fixed_symbols(data: Any, n: int, rng: Rng) -> list[str]:
    return [str(letter) for letter in np.random.default_rng(42).choice(list("abcdefgh"), n)]


def drifting(data: Any, n: int, rng: Rng) -> NDArray[np.float64]:
    """Each draw is the one before and a little more."""
    return np.cumsum(rng.random(n))


def in_pairs(data: Any, n: int, rng: Rng) -> NDArray[np.float64]:
    """Every draw is given twice."""
    return np.repeat(rng.normal(size=(n + 1) // 2), 2)[:n]


@pytest.mark.parametrize(
    ("target", "finding"),
    [
        (shared, "draws of one call are closer"),
        (partly_shared, "draws of one call are closer"),
        (shared_symbols, "draws of one call are closer"),
        (shared_vectors, "draws of one call are closer"),
        (in_pairs, "draws of one call are closer"),
        (fixed_seed, "repeat those of an earlier call"),
        (fixed_symbols, "repeat those of an earlier call"),
        (drifting, "neighbouring draws"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_dependent_draws_fail_with_the_reason_in_words(target: Target, finding: str) -> None:
    # Each target wins all of its 48 comparisons that are not ties, but for a probability below 1e-6 that one in fifty
    # thousand of partly shared noise's is lost (it takes eight), and for steps that outweigh tens of others.
    for seed in range(5):
        found = check(target, seed)
        assert not found.passed
        assert finding in found.finding


def test_the_draws_that_the_tests_cost_are_counted() -> None:
    asked: list[int] = []

    def target(data: Any, n: int, rng: Rng) -> NDArray[np.float64]:
        asked.append(n)
        return rng.normal(size=n)

    assert check(target).draws == sum(asked)


# ---------------------------------------------------------------------------- judged by an audit

PAIR = Pair(np.array([1]), np.array([0]))


def geometric(rng: Rng, n: int) -> NDArray[np.int64]:
    """Difference of two geometrics: epsilon is exactly 1 for a shift of 1."""
    success = -math.expm1(-1.0)
    return rng.geometric(success, n) - rng.geometric(success, n)


def shared_lattice_noise(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
    """1-DP in every draw, but one noise for the whole call."""
    return np.repeat(data[0] + geometric(rng, 1), n)


@pytest.mark.parametrize("seed", range(5))
def test_shared_noise_of_a_private_mechanism_is_a_deviation_and_no_violation(seed: int) -> None:
    # Judged on one draw a call. alpha = 1e-7 a run, so that a false violation in five has a probability of 5e-7.
    result = audit(shared_lattice_noise, PureDP(1.0), PAIR, alpha=1e-7, draws=4_000, seed=seed)
    assert result.verdict == Verdict.DEVIATION
    assert "draws are not independent" in result.message
    assert "draws of one call are closer" in result.message
    assert not result
    assert result.counterexample is None


def test_shared_noise_judged_naively_would_be_a_violation() -> None:
    # What the tests of independence are for: the same draws taken as independent.
    verdicts = [
        run_audit(
            shared_lattice_noise, PureDP(1.0), [PAIR], Settings(draws=4_000, seed=seed, independence=False), Question()
        ).verdict
        for seed in range(20)
    ]
    # All draws of a call fall on the same side of a threshold, so that nearly every run errs. At the rate that the
    # design gives for it, 4 in 5, fewer than 5 of 20 have a probability of 1.4e-8.
    assert verdicts.count(Verdict.VIOLATION) >= 5


def test_shared_noise_that_is_too_small_is_a_violation_on_one_draw_a_call() -> None:
    def target(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        return np.repeat(10 * data[0] + geometric(rng, 1), n)

    result = audit(target, PureDP(1.0), PAIR, draws=4_000)
    assert result.verdict == Verdict.VIOLATION
    assert "draws are not independent" in result.message
    assert "one draw a call" in result.message


def test_a_mechanism_with_a_fixed_seed_gives_its_data_away() -> None:
    # Its output is a function of the data: no noise at all, as far as anybody who has the source is concerned.
    def target(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        return np.asarray(data[0] + geometric(np.random.default_rng(42), n))

    result = audit(target, PureDP(1.0), PAIR, draws=4_000)
    assert result.verdict == Verdict.VIOLATION
    assert "repeat those of an earlier call" in result.message


def test_noise_shared_on_one_of_the_two_datasets_only_is_found() -> None:
    def target(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        return np.asarray(data[0] + (geometric(rng, n) if data[0] else np.repeat(geometric(rng, 1), n)))

    result = audit(target, PureDP(1.0), PAIR, draws=4_000, alpha=1e-6)
    assert result.verdict == Verdict.DEVIATION


def test_noise_shared_on_one_of_several_pairs_only_is_found() -> None:
    def target(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        return np.asarray(data[0] + (geometric(rng, n) if len(data) == 1 else np.repeat(geometric(rng, 1), n)))

    pairs = [PAIR, Pair(np.array([1, 0]), np.array([0, 0]))]
    result = audit(target, PureDP(1.0), pairs, draws=4_000, alpha=1e-6)
    assert result.verdict == Verdict.DEVIATION


def test_a_passed_audit_records_the_tests() -> None:
    result = audit(lambda data, n, rng: rng.integers(0, 2, n), PureDP(1.0), PAIR, draws=400)
    assert result.independence["passed"] is True
    assert set(result.independence["p_values"]) == {
        "within a call",
        "between calls",
        "neighbouring draws",
        "draws at a distance",
    }


# ------------------------------------------------------------- before a claim is called violated


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_counts_of_independent_draws_are_no_evidence(share: float) -> None:
    # An e-value exceeds 1e6 with probability at most 1e-6, and 1e4 in none of 100 runs but with probability 1 %; these
    # are far from it because calls of 20 draws can hardly differ more than calls with a rate of their own.
    rng = np.random.default_rng(0)
    for _ in range(100):
        sizes = rng.integers(5, 200, 30)
        groups = [[(int(n), int(rng.binomial(n, share))) for n in sizes] for _ in range(2)]
        assert check_calls(groups) < math.log(1e6)


def test_the_expectation_of_the_evidence_is_at_most_1() -> None:
    # Three calls of 2 draws, all 27 outcomes, at 101 rates.
    counts = [(a, b, c) for a in range(3) for b in range(3) for c in range(3)]
    values = np.array([math.exp(check_calls([[(2, k) for k in outcome]])) for outcome in counts])
    for p in np.linspace(0, 1, 101):
        mass = np.array([math.prod(stats.binom.pmf(k, 2, p) for k in outcome) for outcome in counts])
        assert mass.sum() == pytest.approx(1)
        assert (mass * values).sum() <= 1 + 1e-12


def test_counts_that_come_together_are_found() -> None:
    together = [[(10, 10 * (k % 2)) for k in range(20)]]
    before = Independence(True, "", {}, 100)
    after = dependent_counts(together, before)
    assert not after.passed
    assert "together" in after.finding
    apart = dependent_counts([[(10, 5)] * 20], before)
    assert apart.passed
    assert apart.p_values["counts of calls"] == 1.0


def test_a_call_without_bets_is_no_evidence() -> None:
    assert check_calls([]) == 0.0


@pytest.mark.parametrize("share", [0.5, 0.9, 0.97])
def test_more_comparisons_find_a_coin_that_the_draws_of_a_call_share(share: float) -> None:
    # At 0.97 a run of 384 calls misses it where fewer than three calls have the rare side, with probability 1e-3; four
    # or more of 20 with probability 4845 * 1e-12. For the others the probability is far smaller.
    def shared(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        return np.full(n, int(rng.random() < share))

    size = {"comparisons": MOST * COMPARISONS, "blocks": LONGER}
    found = [check_independence(Sampler(shared, seed, "claim"), np.array([0]), **size) for seed in range(20)]
    assert sum(test.passed for test in found) <= 3


def test_vectors_of_no_numbers_are_outputs_like_others() -> None:
    def empty(data: Any, n: int, rng: np.random.Generator) -> Any:
        return np.zeros((n, 0))

    result = audit(empty, PureDP(1.0), Pair([0], [1]), draws=400)
    assert result.verdict == Verdict.INCONCLUSIVE, result.message  # 400 draws decide nothing
    assert result.independence is not None
    assert result.independence["passed"]
