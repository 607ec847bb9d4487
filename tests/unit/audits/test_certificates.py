"""Certificates: known verdicts and levels, what is beyond them, and what the result says."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import auditor
from auditor import (
    ZCDP,
    AddRemoveOne,
    ApproxDP,
    GaussianDP,
    PureDP,
    ReplaceOne,
    SpecificationError,
    TradeoffCurve,
    one_draw,
    prove,
)
from auditor.audits.certificates import bound_level
from auditor.privacy.exact.discrete_curves import finite_pair
from auditor.privacy.laws import FiniteLaw
from auditor.targets.randomness.enumeration import Outcomes, freeze_output
from benchmarks.certificates import certify, is_as_known
from benchmarks.certified_programs import Program, list_programs, noisy_count, randomized_response, two_counts

BITS: dict[str, Any] = {"relation": ReplaceOne(), "domain": [0, 1], "rows": 1, "min_rows": 1}


#: Programs that take seconds: `python -m benchmarks.certificates` has them.
SLOW = {
    "CheckDP: adaptive sparse vector",
    "CheckDP: adaptive sparse vector, first noise left out",
    "CheckDP: numeric sparse vector",
    "CheckDP: sparse vector, two above",
    "CheckDP: sparse vector, releases what it compared",
    "CheckDP: sparse vector, noise not scaled by the number above",
    "CheckDP: noisy max, its value",
    "discrete Gaussian, delta too small",
}
QUICK = [program for program in list_programs() if program.name not in SLOW]


@pytest.mark.parametrize("program", QUICK, ids=lambda program: program.name)
def test_programs_are_judged_as_known(program: Program) -> None:
    result = certify(program)
    assert is_as_known(program, result), (result.verdict, result.exact, result.message)


def test_a_certificate_says_on_what_it_holds() -> None:
    result = prove(one_draw(noisy_count), PureDP(1.0), relation=AddRemoveOne(), domain=[0, 1], rows=2)
    assert result.verdict == "holds"
    assert result
    assert result.ok
    assert "the code has ε = 1 at most on these datasets up to events of probability 1e-09" in str(result)
    assert result.caveat.startswith(
        "The certificate is about 7 datasets of up to 2 rows of 2 values, 8 pairs, and nothing else"
    )
    assert (result.record["datasets"], result.record["neighbours"]) == (7, 8)
    finite = prove(one_draw(randomized_response), PureDP(math.log(3)), **BITS)
    assert finite.record["lost"] == 0
    assert "up to events" not in str(finite), "nothing is left out"


def test_a_violation_names_pair_and_output_with_exact_probabilities() -> None:
    result = prove(one_draw(randomized_response), PureDP(1.0), **BITS)
    assert result.verdict == "violation"
    assert not result.ok
    assert result.exact == pytest.approx(math.log(3), abs=1e-9)
    assert result.pair == "[0] against [1]"
    assert result.event == "output 0: probability 0.75 against 0.25"


def test_other_notions_are_certified_where_nothing_is_left_out() -> None:
    claim = GaussianDP(2 * 0.6744897501960817)
    result = prove(one_draw(randomized_response), claim, **BITS)
    assert result.verdict == "holds"
    assert prove(one_draw(randomized_response), GaussianDP(1.3), **BITS).verdict == "violation"
    cut = prove(one_draw(noisy_count), claim, **BITS)
    assert cut.verdict == "inconclusive"
    assert "support is infinite" in cut.message


def test_what_cannot_be_walked_is_inconclusive_with_its_reason() -> None:
    continuous = prove(lambda data, n, rng: data.sum() + rng.laplace(size=n), PureDP(1.0), **BITS)
    assert continuous.verdict == "inconclusive"
    assert "on [0] a continuous random number is needed as a number" in continuous.undecided
    assert "or audit draws" in continuous.undecided
    raising = prove(one_draw(lambda data, rng: data[7]), PureDP(1.0), **BITS)
    assert raising.verdict == "inconclusive"
    assert "it only raises exceptions: raised IndexError" in raising.message
    short = prove(one_draw(two_counts), PureDP(1.0), **BITS, paths=1, seconds=1e-6)
    assert short.verdict == "inconclusive"
    assert "was not enumerated" in short.message


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rows": 1.5}, "1.5"),
        ({"rows": 1, "min_rows": 2}, "got 2 and 1"),
        ({"domain": "01"}, "'01'"),
        ({"relation": ReplaceOne}, "ReplaceOne"),
        ({"seconds": 0}, "got 0"),
        ({"spare": 0.5}, "0.5"),
        ({"domain": list(range(200)), "rows": 3, "min_rows": 3}, "8,000,000 datasets"),
        ({"rows": 0, "min_rows": 0}, "none of the 1 datasets are neighbours"),
        ({"units": [3]}, "got 3"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], named: str) -> None:
    with pytest.raises(SpecificationError, match=named.replace("(", r"\(")):
        prove(one_draw(noisy_count), PureDP(1.0), **(BITS | change))
    with pytest.raises(SpecificationError, match="'epsilon=1'"):
        prove(one_draw(noisy_count), "epsilon=1", **BITS)  # type: ignore[arg-type]


def outcomes(masses: list[float], whole: bool = True) -> Outcomes:
    return Outcomes(
        {freeze_output(k): mass for k, mass in enumerate(masses)}, dict(enumerate(range(len(masses)))), whole
    )


def test_bounds_enclose_the_level_of_every_completion() -> None:
    """What is left out is put where it does most and least: the level stays between the bounds."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        p, q = (rng.dirichlet(np.ones(4)) for _ in range(2))
        cut = 10.0 ** rng.uniform(-9, -3)
        kept = outcomes((p * (1 - cut)).tolist(), whole=False), outcomes((q * (1 - cut)).tolist(), whole=False)
        delta = float(rng.choice([0.0, 0.01]))
        claim = PureDP(1.0) if delta == 0 else ApproxDP(1.0, delta)
        found = bound_level(*kept, claim, spare=2 * cut)
        for place in range(4):  # all that is lost of P, or of Q, may be one output
            whole_p, whole_q = p * (1 - cut), q * (1 - cut)
            whole_p[place] += cut
            whole_q[3 - place] += cut
            curve = finite_pair(_law(whole_p), _law(whole_q))
            exact = claim.exact_level(curve)
            relaxed = ApproxDP(1.0, delta + 2 * cut).exact_level(curve)
            assert found.low <= exact + 1e-9
            assert relaxed <= found.high + 1e-9


def _law(masses: np.ndarray[Any, Any]) -> FiniteLaw:
    return FiniteLaw(tuple(range(len(masses))), masses / masses.sum())


def test_a_test_suite_can_ask_for_a_certificate() -> None:
    pair = auditor.Pair([0], [1])
    options: dict[str, Any] = {"prove": True, "relation": ReplaceOne()}
    held = auditor.assert_private(one_draw(randomized_response), PureDP(math.log(3)), pair, **options)
    assert held.verdict == "holds"
    assert held.caveat == "The certificate is about 1 given pair, and nothing else"
    with pytest.raises(auditor.PrivacyViolation, match=r"probability 0\.75 against 0\.25"):
        auditor.assert_private(one_draw(randomized_response), PureDP(1.0), pair, **options)
    with pytest.raises(AssertionError, match="not all could be enumerated"):
        auditor.assert_private(lambda data, n, rng: rng.laplace(size=n), PureDP(1.0), pair, **options)
    with pytest.raises(SpecificationError, match="cannot be given together"):
        prove(one_draw(randomized_response), PureDP(1.0), pairs=pair, **BITS)


def test_what_calls_leave_behind_is_found() -> None:
    def leaks_at_first(data: Any, rng: Any, _calls: list[int] = [0]) -> Any:  # noqa: B006 - what is looked for
        _calls[0] += 1
        return data[0] if _calls[0] <= 2 else 0

    result = prove(one_draw(leaks_at_first), PureDP(1.0), **BITS)
    assert result.verdict == "inconclusive"
    assert "calls before it matter" in result.message


@pytest.mark.parametrize("make", [lambda: np.random.default_rng(0), lambda: random.Random(1)])
def test_generators_that_a_call_makes_and_keeps_are_found(make: Callable[[], Any]) -> None:
    kept = functools.lru_cache(make)
    result = prove(one_draw(lambda data, rng: data[0] if kept().random() < 0.01 else 0), PureDP(0.1), **BITS)
    assert result.verdict == "inconclusive"
    assert "a generator that an object holds" in result.message


def test_arithmetic_that_wraps_around_or_raises_is_no_certificate() -> None:
    def far_apart(data: Any, rng: Any) -> int:
        return random.randrange(8 if data[0] else 4) * 2**62

    def raises(data: Any, rng: Any) -> int:
        return 10 // random.randrange(-1, 2) if data[0] else (-10, 10, 0)[random.randrange(3)]

    for leaking in (far_apart, raises):
        assert prove(one_draw(leaking), PureDP(0.1), **BITS).verdict == "violation"

    def one_time_pad(data: Any, rng: np.random.Generator) -> Any:
        return rng.integers(0, 256, dtype=np.uint8) + np.uint8(data[0])

    with np.errstate(over="ignore"):
        assert prove(one_draw(one_time_pad), PureDP(0.1), **BITS).verdict == "holds"


def test_no_event_is_shown_for_levels_that_are_of_no_event() -> None:
    result = prove(one_draw(randomized_response), GaussianDP(1.3), **BITS)
    assert (result.verdict, result.event) == ("violation", None)


@pytest.mark.parametrize("keep", [0.6, 0.75, 0.9])
def test_zcdp_counts_orders_near_one(keep: float) -> None:
    """The divergence of randomized response is largest in the limit, where it is that of Kullback and Leibler."""

    def response(data: Any, rng: Any) -> Any:
        return data[0] if rng.random() < keep else 1 - data[0]

    exact = (2 * keep - 1) * math.log(keep / (1 - keep))
    assert prove(one_draw(response), ZCDP(exact * (1 - 1e-4)), **BITS).verdict == "violation"
    held = prove(one_draw(response), ZCDP(exact * (1 + 1e-4)), **BITS)
    assert held.verdict == "holds"
    assert held.record["low"] <= exact <= held.record["high"]
    assert prove(one_draw(lambda data, rng: rng.random() < keep), ZCDP(0.0), **BITS).verdict == "holds"


def test_a_tight_trade_off_curve_holds() -> None:
    tight = TradeoffCurve((0.0, 0.25, 1.0), (1.0, 0.25, 0.0))
    held = prove(one_draw(randomized_response), tight, **BITS)
    assert held.verdict == "holds"
    assert held.exact == pytest.approx(1.0, abs=1e-8)
    less = TradeoffCurve((0.0, 0.25, 1.0), (1.0, 0.2501, 0.0))
    assert prove(one_draw(randomized_response), less, **BITS).verdict == "violation"
    assert prove(one_draw(lambda data, rng: data[0]), tight, **BITS).verdict == "violation"
