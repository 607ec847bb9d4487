"""The parity learner with a coin: its distribution against the definition, exact level, mutants, and sample sizes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.datasets import Pair
from auditor.privacy.exact import FiniteLaw, curve
from mechanisms.base.mechanism import Mechanism
from mechanisms.learning.coin_parity import (
    MUTANTS,
    CoinParity,
    FirstHypothesisOfBatches,
    FreshBatches,
    any_rows,
    uniform_rows,
)
from mechanisms.learning.parity import NULL
from mechanisms.learning.parity_samples import ParityOnFreshSamples, SparseInputs, UniformInputs

#: Probability with which a statistical test here fails for a right implementation, whatever the seed.
FALSE_ALARM = 1e-6


def rows(*records: tuple[str, int]) -> np.ndarray[Any, Any]:
    return np.array([[*map(int, x), y] for x, y in records], dtype=np.uint8)


def by_definition(data: np.ndarray[Any, Any], epsilon: float, stop: float = 0.5) -> dict[int, float]:
    """The document's four steps: all sets of rows kept, the others replaced by zeros, all hypotheses tried."""
    n, d = len(data), data.shape[1] - 1
    law = {NULL: stop, **dict.fromkeys(range(2**d), 0.0)}
    for kept in itertools.product((0, 1), repeat=n):
        weight = (1 - stop) * math.prod(epsilon if k else 1 - epsilon for k in kept)
        hat = [row if k else [0] * (d + 1) for k, row in zip(kept, data.tolist(), strict=True)]
        space = [h for h in range(2**d) if all(sum((h >> j & 1) * r[j] for j in range(d)) % 2 == r[d] for r in hat)]
        for h in space or [NULL]:
            law[h] += weight / max(len(space), 1)
    return law


def agrees(law: FiniteLaw, known: dict[int, float]) -> None:
    assert law.outcomes == tuple(known)
    np.testing.assert_allclose(law.probabilities, list(known.values()), rtol=1e-12, atol=1e-15)


def follows(mechanism: Mechanism, data: Any, law: FiniteLaw, seed: int, n: int = 60_000) -> None:
    """Draws against a distribution: each outcome by its exact binomial tails, the false alarm split over them."""
    drawn = mechanism(data, n, np.random.default_rng(seed))
    place = {outcome: i for i, outcome in enumerate(law.outcomes)}
    counts = np.zeros(len(place), dtype=np.int64)
    for outcome, times in zip(*np.unique(drawn, axis=0, return_counts=True), strict=True):
        counts[place[tuple(outcome.tolist()) if drawn.ndim > 1 else int(outcome)]] += times
    each = FALSE_ALARM / (2 * len(counts))
    assert np.all(stats.binom.cdf(counts, n, law.probabilities) >= each)
    assert np.all(stats.binom.sf(counts - 1, n, law.probabilities) >= each)


DATABASES = [
    rows(("01", 1)),
    rows(("00", 1), ("10", 0)),
    rows(("11", 1), ("11", 0), ("01", 1), ("00", 0)),
    rows(("011", 1), ("101", 0), ("110", 0), ("111", 1), ("000", 1)),
]


@pytest.mark.parametrize("data", DATABASES, ids=len)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 0.95])
def test_the_law_is_the_definition(data: Any, epsilon: float) -> None:
    agrees(CoinParity(epsilon, data.shape[1] - 1).law(data), by_definition(data, epsilon))


@pytest.mark.parametrize("data", DATABASES, ids=len)
def test_draws_follow_the_law(data: Any) -> None:
    learner = CoinParity(0.4, data.shape[1] - 1)
    follows(learner, data, learner.law(data), len(data))


def test_draws_follow_the_law_where_subsets_are_not_listed() -> None:
    data = np.random.default_rng(1).integers(0, 2, (12, 5), dtype=np.uint8)
    learner = CoinParity(0.4, 4)
    follows(learner, data, learner.law(data), 2)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_exact_level_is_the_largest_of_all_databases(n: int) -> None:
    records = [("".join(map(str, x)), y) for x in itertools.product((0, 1), repeat=2) for y in (0, 1)]
    for epsilon, golden in ((0.05, 0.10008), (0.1, 0.20067), (0.3, 0.61904), (0.5, 1.09861)):
        if n == 3 and epsilon != 0.3:  # 512 databases take a second
            continue
        laws = {
            data: np.log(list(by_definition(rows(*data), epsilon).values()))
            for data in itertools.product(records, repeat=n)
        }
        worst = max(
            np.abs(laws[data] - laws[(*data[:i], other, *data[i + 1 :])]).max()
            for data in laws
            for i in range(n)
            for other in records
        )
        assert worst == pytest.approx(CoinParity(epsilon, 2).exact_epsilon, rel=1e-12)
        assert round(float(worst), 5) == golden


# ---------------------------------------------------------------------------------------- batches


def test_the_first_hypothesis_of_several_batches() -> None:
    data = rows(("01", 1), ("01", 0), ("11", 1), ("00", 1), ("10", 1), ("11", 0))
    batches = FirstHypothesisOfBatches(CoinParity(0.6, 2), 3)
    known, none = dict.fromkeys((NULL, 0, 1, 2, 3), 0.0), 1.0
    for part in (data[:2], data[2:4], data[4:]):
        law = by_definition(part, 0.6)
        for h in range(4):
            known[h] += none * law[h]
        none *= law[NULL]
    known[NULL] = none
    agrees(batches.law(data), known)
    follows(batches, data, batches.law(data), 3)


def test_repeating_fails_as_the_experiment_says() -> None:
    fresh = ParityOnFreshSamples(CoinParity(0.5, 4), UniformInputs(), 8)
    wrong = 1 - 2 * (1 - fresh.failure(0.01))
    n, t = 40_000, 3
    found = FreshBatches(fresh, t)(np.array([0, 1, 0, 1]), n, np.random.default_rng(4))
    failures = int((found != 0b1010).sum())
    p = wrong + (1 - wrong) * 2.0**-t
    assert wrong > 0.2  # so that 2^-t alone would be far off
    assert stats.binom.cdf(failures, n, p) >= FALSE_ALARM / 2
    assert stats.binom.sf(failures - 1, n, p) >= FALSE_ALARM / 2


@pytest.mark.parametrize("d", [2, 16, 256])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 0.9])
def test_the_sample_sizes_suffice(d: int, epsilon: float) -> None:
    learner = CoinParity(epsilon, d)
    assert ParityOnFreshSamples(learner, UniformInputs(), uniform_rows(d, epsilon)).failure(0.01) <= 0.51
    hard = SparseInputs(min(1.0, 0.01 * d * (1 + 1e-9)))
    assert ParityOnFreshSamples(learner, hard, any_rows(d, epsilon)).failure(0.01) <= 0.5 + 0.5 * 0.01
    # The union bound of the larger size, which has no distribution in it.
    assert d * math.log(2) + any_rows(d, epsilon) * math.log1p(-0.01 * epsilon) <= math.log(0.01)


# ---------------------------------------------------------------------------------------- mutants

PAIR = Pair(rows(("01", 1), ("10", 0), ("11", 0)), rows(("01", 0), ("10", 0), ("11", 0)))


@pytest.mark.parametrize(
    "name", ["no_coin", "fixed_representative", "fixed_size_sample", "kept_rows_revealed", "real_arithmetic"]
)
def test_draws_of_mutants_follow_their_laws(name: str) -> None:
    mutant = MUTANTS[name].build(CoinParity(0.4, 2))
    for i, data in enumerate((PAIR.x, PAIR.y)):
        follows(mutant, data, mutant.law(data), i)  # type: ignore[attr-defined]


def test_no_coin_is_the_definition_without_one() -> None:
    agrees(MUTANTS["no_coin"].build(CoinParity(0.4, 2)).law(PAIR.x), by_definition(PAIR.x, 0.4, 0.0))  # type: ignore[attr-defined]
    # Null on two rows that contradict each other: eps^2, against 0.
    mutant = MUTANTS["no_coin"].build(CoinParity(0.1, 1))
    laws = [mutant.law(rows(("1", 0), ("1", y))).probabilities[0] for y in (1, 0)]  # type: ignore[attr-defined]
    assert laws == pytest.approx([0.01, 0.0], abs=1e-15)


def test_rows_that_are_dropped_instead_of_replaced_are_no_leak() -> None:
    data = np.random.default_rng(6).integers(0, 2, (6, 4), dtype=np.uint8)
    agrees(CoinParity(0.4, 3).law(data), by_definition(data, 0.4))
    follows(MUTANTS["zero_rows_dropped"].build(CoinParity(0.4, 3)), data, CoinParity(0.4, 3).law(data), 7)


def test_a_fixed_size_is_a_mean_over_the_sets_of_that_size() -> None:
    data = rows(("01", 1), ("10", 0), ("11", 0), ("00", 1), ("11", 1))
    mutant = MUTANTS["fixed_size_sample"].build(CoinParity(0.4, 2))
    known = dict.fromkeys((NULL, 0, 1, 2, 3), 0.0)
    for some in itertools.combinations(range(5), 2):
        # All of the set is kept for certain.
        for h, p in by_definition(data[list(some)], 1.0).items():
            known[h] += p / 10
    agrees(mutant.law(data), known)  # type: ignore[attr-defined]


def test_a_batch_that_is_reused() -> None:
    data = rows(("1", 1), ("1", 0), ("0", 0), ("0", 0), ("1", 1), ("0", 1))
    batches = FirstHypothesisOfBatches(CoinParity(0.4, 1), 3)
    mutant = MUTANTS["batch_reused"].build(batches)
    one = by_definition(data[:2], 0.4)
    still = 1 + one[NULL] + one[NULL] ** 2
    agrees(mutant.law(data), {NULL: one[NULL] ** 3, 0: one[0] * still, 1: one[1] * still})  # type: ignore[attr-defined]
    follows(mutant, data, mutant.law(data), 8)  # type: ignore[attr-defined]


def test_nulls_of_a_reused_batch_add_up() -> None:
    batches = FirstHypothesisOfBatches(CoinParity(0.5, 1), 4)
    x, y = (rows(("0", label), ("0", 0), ("0", 0), ("0", 0)) for label in (1, 0))
    mutant = MUTANTS["batch_reused"].build(batches)
    found = curve(mutant.law(x), mutant.law(y)).epsilon(0.0)  # type: ignore[attr-defined]
    assert found == pytest.approx(4 * math.log1p(0.5), rel=1e-9)
    assert curve(batches.law(x), batches.law(y)).epsilon(0.0) <= math.log(3)


def test_elimination_over_the_reals_is_least_squares() -> None:
    data = rows(("0110", 0), ("1000", 1), ("0101", 1), ("1111", 0))
    mutant = MUTANTS["real_arithmetic"].build(CoinParity(0.5, 4))
    known = dict.fromkeys((NULL, *range(16)), 0.0)
    known[NULL] = 0.5
    for kept in itertools.product((False, True), repeat=4):
        x, y = data[list(kept), :-1].astype(float), data[list(kept), -1].astype(float)
        found = np.linalg.lstsq(x, y, rcond=None)[0]
        solved = np.allclose(x @ found, y)
        # Halves go up.
        bits = np.floor(np.round(found, 6) + 0.5).astype(int) % 2
        code = int(bits @ [1, 2, 4, 8]) if solved else NULL
        known[code] += 0.5 / 16
    agrees(mutant.law(data), known)  # type: ignore[attr-defined]


def test_what_is_revealed_is_what_was_kept() -> None:
    law: FiniteLaw = MUTANTS["kept_rows_revealed"].build(CoinParity(0.3, 1)).law(rows(("1", 1), ("0", 1)))  # type: ignore[attr-defined]
    known = dict(zip(law.outcomes, law.probabilities.tolist(), strict=True))
    # The code of the row (1, 1) is 3, with the hypothesis 1 alone; that of (0, 1) is 2, with none.
    assert known[1, 3, 0] == pytest.approx(0.5 * 0.3 * 0.7)
    assert known[0, 0, 0] == known[1, 0, 0] == pytest.approx(0.5 * 0.7 * 0.7 / 2)
    assert known[-1, 0, 2] == pytest.approx(0.5 * 0.7 * 0.3)
    assert known[-1, 3, 2] == pytest.approx(0.5 * 0.3 * 0.3)
    assert known[-1, 0, 0] == 0.5
    assert len(known) == 6


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: CoinParity(1.0, 2), "epsilon < 1.0, got 1.0"),
        (lambda: CoinParity(0.0, 2), "epsilon > 0, got 0.0"),
        (lambda: CoinParity(0.5, 2).law(rows(("011", 1))), "rows of 2 bits and a label"),
        (lambda: FirstHypothesisOfBatches(CoinParity(0.5, 2), 0), "batches >= 1, got 0"),
        (
            lambda: FirstHypothesisOfBatches(CoinParity(0.5, 2), 2).law(rows(("01", 1))),
            "2 batches of equal size, got 1",
        ),
    ],
)
def test_bad_input_is_shown(make: Any, shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        make()
