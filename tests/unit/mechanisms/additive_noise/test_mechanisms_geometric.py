"""Geometric noise with the output clamped: distribution, levels and mutants, computed another way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from auditor.privacy.exact import FiniteLaw, ProductLaw, curve
from mechanisms.additive_noise.truncated_geometric import MUTANTS, TruncatedGeometric
from mechanisms.base.queries import Count, IdentityQuery, SeveralCounts

#: The answer is the dataset.
WHOLE = IdentityQuery(granularity=1.0)
BASES = [math.exp(0.1), math.exp(0.5), math.e, 20.0]


def draw(mechanism: Any, data: Any, n: int = 1000) -> Any:
    return mechanism(data, n, np.random.default_rng(11))


@pytest.mark.parametrize("a", BASES)
def test_the_law_is_that_of_the_catalogue(a: float) -> None:
    b = 6
    for g in range(b + 1):
        law: Any = TruncatedGeometric(WHOLE, a, b).law(float(g))
        inside = [a ** -abs(k - g) * (a - 1) / (a + 1) for k in range(1, b)]
        expected = [a ** (1 - g) / (a + 1), *inside, a ** (1 - (b - g)) / (a + 1)]
        assert law.outcomes == tuple(range(b + 1))
        np.testing.assert_allclose(law.probabilities, expected, rtol=1e-13)
        assert sum(expected) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("a", BASES)
def test_every_pair_of_neighbouring_answers_is_at_its_level(a: float) -> None:
    base = TruncatedGeometric(WHOLE, a, 9)
    for g in range(9):
        assert curve(base.law(float(g)), base.law(g + 1.0)).epsilon(0.0) == pytest.approx(base.epsilon, rel=1e-12)
    assert base.epsilon == pytest.approx(math.log(a), rel=1e-15)


def test_answers_outside_are_clamped_first() -> None:
    base = TruncatedGeometric(WHOLE, 2.0, 5)
    assert base.law(9.0) == base.law(5.0)
    assert base.law(-1.0) == base.law(0.0)
    assert set(draw(base, 9.0).tolist()) <= set(range(6))
    two = TruncatedGeometric(SeveralCounts((Count(low=1), Count(low=2))), 2.0, 3)
    law = two.law([1, 2, 5, 7, 1])
    assert isinstance(law, ProductLaw)
    assert law.parts == (base_of(two, 3.0), base_of(two, 3.0))


def base_of(like: TruncatedGeometric, answer: float) -> Any:
    return TruncatedGeometric(WHOLE, like.a, like.bound).law(answer)


@pytest.mark.parametrize(("a", "printed"), [(math.e, 1.2091), (math.exp(0.5), 0.7140), (math.exp(0.1), 0.1826)])
def test_redrawing_has_the_level_of_the_catalogue(a: float, printed: float) -> None:
    base = TruncatedGeometric(WHOLE, a, 400)
    mutant = MUTANTS["reject_and_redraw"]
    built: Any = mutant.build(base)
    assert mutant.true_level is not None
    level = mutant.true_level(base)
    assert level == pytest.approx(math.log((a * a + a - 1) / a), rel=1e-12)
    assert level == pytest.approx(printed, abs=5e-5)
    assert curve(built.law(0.0), built.law(1.0)).epsilon(0.0) == pytest.approx(level, rel=1e-12)
    # The supremum: no other neighbouring answers are worse.
    for g in (1, 2, 5, 50, 200):
        assert curve(built.law(float(g)), built.law(g + 1.0)).epsilon(0.0) < level


def test_a_small_bound_makes_redrawing_no_better() -> None:
    # Three outcomes, by hand: answers 0 and 1 have normalisers 1 + r + r^2 and 1 + 2 r.
    base = TruncatedGeometric(WHOLE, 2.0, 2)
    level = MUTANTS["reject_and_redraw"].true_level
    assert level is not None
    assert level(base) == pytest.approx(math.log((1 / 1.75) / (0.5 / 2.0)), rel=1e-14)


def test_mutants_with_impossible_outputs() -> None:
    # Each event has probability at least 0.5 on one side, so 1000 draws miss it with probability below 1e-300.
    base = TruncatedGeometric(Count(low=1), math.e, 400)
    clamped = MUTANTS["noise_clamped"].build(base)
    assert draw(clamped, [1, 1]).min() == 2
    assert draw(clamped, [1, 0]).min() == 1
    everybody = TruncatedGeometric(Count(low=1, relation="add_remove_one"), math.e, 400)
    from_data = MUTANTS["data_dependent_bound"].build(everybody)
    assert draw(from_data, [1, 1]).max() == 2
    assert draw(from_data, [1, 1, 1]).max() == 3
    assert {m.kind for m in MUTANTS.values()} == {"violation"}
    assert MUTANTS["noise_clamped"].true_level is MUTANTS["data_dependent_bound"].true_level
    assert not hasattr(clamped, "law")  # the reference's would be wrong
    assert not hasattr(from_data, "law")


def test_a_law_whose_probabilities_would_underflow_is_refused() -> None:
    base = TruncatedGeometric(WHOLE, math.e, 20_000)
    assert draw(base, 19_990.0).max() <= 20_000
    with pytest.raises(ValueError, match=r"expected bound \* ln a at most 690"):
        base.law(3.0)
    assert isinstance(TruncatedGeometric(WHOLE, math.e, 690).law(0.0), FiniteLaw)


@pytest.mark.parametrize(
    "build",
    [
        lambda: TruncatedGeometric(WHOLE, 1.0, 5),
        lambda: TruncatedGeometric(WHOLE, math.exp(-1.0), 5),  # 1/a for a
        lambda: TruncatedGeometric(WHOLE, 2.0, 0),
        lambda: TruncatedGeometric(WHOLE, 2.0, 2.5),  # type: ignore[arg-type]
        lambda: TruncatedGeometric(IdentityQuery(1.5), 2.0, 5),
        lambda: TruncatedGeometric(WHOLE, 2.0, 5)(0.5, 1, np.random.default_rng(0)),
    ],
)
def test_refusals_show_what_was_expected(build: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"expected .*, got "):
        build()
