"""Accuracy claims: evidence, errors, smallest parameters, exponents, computed statements."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from auditor.audits.accuracy import (
    Absolute,
    Exactly,
    Expectation,
    HighProbability,
    Largest,
    Mean,
    PhaseDiagram,
    PowerLaw,
    Quantile,
    Setting,
    Smallest,
    SmallestParameter,
    Squared,
    check_accuracy,
)
from auditor.audits.accuracy.errors import ErrorSampler, errors_of
from auditor.audits.accuracy.smallest import Search, bisect_parameter, decide_setting
from auditor.audits.context import Question
from auditor.audits.inequality import Inequality
from auditor.audits.privacy_loop import Settings
from auditor.claims import accuracy, inequality, scaling, smallest
from auditor.errors import MissingLibraryError, SpecificationError
from auditor.evidence.bernoulli import find_detectable, log_evidence, lower_limit, upper_limit
from auditor.results import AuditResult, Verdict
from auditor.targets.values import Raised
from tests.commandline import run_line

Rng = np.random.Generator
ASKED = Question(id="a/b/L4/x/c")


class Exponential:
    """Errors of a given mean, whatever the data."""

    def __init__(self, mean: float) -> None:
        self.mean = mean

    def __call__(self, data: Any, n: int, rng: Rng) -> Any:
        return rng.exponential(self.mean, n)


def same(outputs: Any) -> Any:
    return outputs


def exponential(mean: float, at_most: float = math.nan) -> Setting:
    return Setting(Exponential(mean), None, same, at_most)


# ------------------------------------------------------------------------------------ evidence


@pytest.mark.parametrize(("count", "n", "bound"), [(3, 40, 0.02), (30, 40, 0.5), (1, 5, 0.3), (0, 9, 0.1), (9, 9, 0.6)])
def test_the_evidence_is_the_average_over_the_prior(count: int, n: int, bound: float) -> None:
    prior = stats.beta(0.5, 0.5)

    def ratio(p: float) -> float:
        return float((p / bound) ** count * ((1 - p) / (1 - bound)) ** (n - count) * prior.pdf(p))

    betting, _ = integrate.quad(ratio, bound, 1.0, limit=200)
    assert log_evidence(count, n, bound) == pytest.approx(math.log(betting + prior.cdf(bound)), rel=1e-6, abs=1e-9)


def test_the_evidence_decreases_in_the_bound_while_it_is_evidence() -> None:
    for count, n in ((1, 10), (40, 100), (99, 100), (100, 100), (700, 10_000)):
        values = np.array([log_evidence(count, n, bound) for bound in np.linspace(1e-6, 1.0, 400)])
        evidence = values > 0
        assert evidence[: int(evidence.sum())].all()
        assert (np.diff(values[evidence]) <= 1e-9).all()


def test_huge_errors_overflow_in_silence() -> None:
    for size, claimed in ((1e200, 1.0), (1e308, 0.5)):
        huge = Setting(lambda data, n, rng, size=size: np.full(n, size), None, same)
        found = Expectation(claimed).audit(huge, Settings(draws=400), ASKED)
        assert found.verdict == Verdict.DEVIATION
        assert found.accuracy["mean"] == pytest.approx(1e200 if size == 1e200 else math.inf)


def test_an_impossible_failure_is_decisive() -> None:
    assert log_evidence(1, 1000, 0.0) == math.inf
    assert log_evidence(0, 1000, 0.0) < 0
    assert log_evidence(5, 10, 1.0) == 0.0


@pytest.mark.parametrize(("count", "n"), [(1, 1), (5, 5), (1, 400), (37, 500), (499, 500), (20_000, 1_000_000)])
def test_a_limit_is_where_the_evidence_reaches_its_threshold(count: int, n: int) -> None:
    limit = lower_limit(count, n, 0.01)
    assert 0 < limit < count / n
    assert log_evidence(count, n, limit) == pytest.approx(math.log(100), rel=1e-5)
    assert upper_limit(n - count, n, 0.01) == pytest.approx(1 - limit, abs=1e-15)
    assert lower_limit(0, n, 0.01) == 0.0


@pytest.mark.parametrize(("n", "bound"), [(50, 0.05), (2000, 0.05), (2000, 0.001), (100_000, 0.3)])
def test_a_detectable_rate_is_flagged_nine_times_in_ten(n: int, bound: float) -> None:
    rate = find_detectable(n, bound, 0.01)
    counts = np.arange(n + 1)
    flagged = np.array([k / n > bound and log_evidence(int(k), n, bound) >= math.log(100) for k in counts])
    assert float(stats.binom.pmf(counts[flagged], n, rate).sum()) == pytest.approx(0.9, abs=1e-6)
    assert find_detectable(0, bound, 0.01) == 1.0


# -------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("beta", [0.0, 0.05])
def test_errors_equal_to_the_claimed_one_but_for_rounding_are_no_failures(beta: float) -> None:
    def shares(data: Any, n: int, rng: Rng) -> Any:
        return rng.choice([0.2, 0.4], n)

    assert Absolute(0.3)(np.array([0.4])) > 0.1
    theorem, draws = HighProbability(0.1, beta), 2_000
    held = theorem.audit(Setting(shares, None, Absolute(0.3), 0.1), Settings(draws=draws, detect=0.5), ASKED)
    assert (held.verdict, held.accuracy["failures"]) == (Verdict.CONSISTENT, 0)
    found = theorem.audit(Setting(shares, None, Absolute(0.3 - 1e-9), 0.1), Settings(draws=draws), ASKED)
    assert found.verdict == Verdict.DEVIATION
    assert decide_setting(Setting(shares, None, Absolute(0.3), 0.1), ErrorSampler(0, "s"), 100, 0.1, 0.01).count == 0


def test_errors_of_numbers_and_vectors() -> None:
    assert Absolute(2.0)(np.array([1.0, 4.0])).tolist() == [1.0, 2.0]
    assert Largest([1.0, 2.0])(np.array([[1.0, 0.0], [4.0, 2.5]])).tolist() == [2.0, 3.0]
    assert Squared([1.0, 2.0])(np.array([[1.0, 0.0], [4.0, 2.0]])).tolist() == [2.0, 4.5]
    assert Squared(3.0)(np.array([1.0])).tolist() == [4.0]
    with pytest.raises(SpecificationError, match=r"\(2, 3\)"):
        Absolute(2.0)(np.zeros((2, 3)))
    with pytest.raises(SpecificationError, match=r"the truth has 2 numbers, outputs have shape \(3, 1\)"):
        Largest([1.0, 2.0])(np.zeros((3, 1)))
    # None, and an exception in a draw of `one_draw`, are no answers: failures.
    assert np.isnan(Absolute(2.0)([None, Raised("KeyError"), 1.0])).tolist() == [True, True, False]
    with pytest.raises(SpecificationError, match=r"outputs must be numbers.* got '2\.5'"):
        Absolute(2.0)(["2.5"])


@pytest.mark.parametrize("truth", [math.nan, math.inf, None, "2", 2 + 1j, []])
def test_a_truth_that_is_no_finite_number_is_refused(truth: Any) -> None:
    for error in (Absolute, Largest):
        with pytest.raises(SpecificationError, match=re.escape(repr(truth))):
            error(truth)


def test_what_an_error_function_must_return() -> None:
    assert errors_of(same, np.array([1.0, math.nan]), 2).tolist() == [1.0, math.inf]
    with pytest.raises(SpecificationError, match=r"shape \(3,\), got \(2,\)"):
        errors_of(lambda outputs: outputs[:2], np.zeros(3), 3)
    with pytest.raises(SpecificationError, match="at least 0, got -1"):
        errors_of(same, np.array([2.0, -1.0]), 2)
    assert errors_of(same, [True, Decimal("0.5"), Fraction(1, 4)], 3).tolist() == [1.0, 0.5, 0.25]


@pytest.mark.parametrize(
    ("errors", "shown"),
    [
        ([3 + 4j, 1.0], "3\\+4j"),  # its imaginary part was lost
        (["0.5", "0.5"], "'0.5'"),
        ([None, 0.5], "None"),
        (np.ma.masked_array([1.0, 9.0], mask=[False, True]), "entry 2 is masked"),  # the 9 beneath counted
        (np.array([5, 6], "m8[s]"), "timedelta"),
        ([[1.0], 2.0], "inhomogeneous"),
        ({"a": 1.0}, "{'a': 1.0}"),
    ],
)
def test_errors_that_are_no_numbers_are_refused(errors: Any, shown: str) -> None:
    with pytest.raises(SpecificationError, match=f"errors must be numbers.*{shown}"):
        errors_of(lambda _: errors, np.zeros(2), 2)


# -------------------------------------------------------------------------- high probability


def check(theorem: Any, subject: Any, **options: Any) -> AuditResult:
    found: AuditResult = theorem.audit(subject, Settings(**{"draws": 20_000, **options}), ASKED)
    return found


def test_a_bound_at_its_own_failure_rate_is_consistent_and_a_smaller_one_deviates() -> None:
    # P[Exp(1) > ln 20] = 0.05.
    held = check(HighProbability(math.log(20), 0.05, exact=0.05), exponential(1.0))
    assert held.verdict == Verdict.CONSISTENT
    assert held.accuracy["lower"] <= 0.05 <= held.accuracy["upper"]
    assert held.accuracy["quantile_lower"] <= math.log(20) <= held.accuracy["quantile_upper"]
    assert held.accuracy["slack"] == pytest.approx(1.0, rel=0.1)
    broken = check(HighProbability(math.log(20), 0.04), exponential(1.0))
    assert broken.verdict == Verdict.DEVIATION
    assert broken.lower_bound is not None
    assert broken.lower_bound > 0.04
    assert broken.draws < 20_000, "it stops as soon as it is refuted"
    low, high = (broken.accuracy[f"quantile_{side}"] for side in ("lower", "upper"))
    assert low <= broken.accuracy["quantile"] <= high
    assert "at least 0.04" in broken.message


def test_what_is_certified_to_hold_stops_a_quick_run_only() -> None:
    quick = check(HighProbability(10.0, 0.05), exponential(1.0))
    assert quick.verdict == Verdict.CONSISTENT
    assert quick.draws < 1_000
    assert quick.accuracy["upper"] <= 0.05
    assert check(HighProbability(10.0, 0.05), exponential(1.0), stop="budget").draws == 20_000


def test_an_error_at_the_limit_is_a_failure_only_if_the_claim_is_strict() -> None:
    constant = Setting(lambda data, n, rng: np.ones(n), None, same)
    assert check(HighProbability(1.0, 0.1), constant).accuracy["failures"] == 0
    assert check(HighProbability(1.0, 0.1, strict=True), constant).verdict == Verdict.DEVIATION


def test_too_few_draws_are_inconclusive_and_say_what_was_wanted() -> None:
    found = check(HighProbability(math.log(20), 0.05), exponential(1.0), draws=100)
    assert found.verdict == Verdict.INCONCLUSIVE
    assert "0.1 was to be found" in found.message
    assert check(HighProbability(math.log(20), 0.05), exponential(1.0), draws=100, detect=0.9).verdict == "consistent"


def test_a_target_that_fails_is_an_error_and_dependent_draws_are_a_deviation() -> None:
    def broken(data: Any, n: int, rng: Rng) -> Any:
        raise RuntimeError("no data")

    def shared(data: Any, n: int, rng: Rng) -> Any:
        return np.full(n, rng.random())

    for theorem in (HighProbability(1.0, 0.1), Expectation(1.0)):
        failed = check(theorem, Setting(broken, None, same))
        assert failed.verdict == Verdict.ERROR
        assert "no data" in failed.message
        dependent = check(theorem, Setting(shared, None, same))
        assert dependent.verdict == Verdict.DEVIATION
        assert "not independent" in dependent.message


@pytest.mark.parametrize(
    "theorem",
    [
        SmallestParameter("n", 100.0, Search(0.1, 10.0, 1000.0)),
        PhaseDiagram("a", "b", (1.0, 2.0), (1.0, 2.0), lambda *_: 0.9, lambda *_: None),
        PowerLaw("n", (1.0, 2.0, 4.0), 0.0, Quantile(), curve=lambda _: 2.0, criterion=False),
    ],
    ids=lambda theorem: theorem.notion,
)
def test_a_statement_about_many_settings_does_not_pass_on_noise_that_a_call_shares(theorem: Any) -> None:
    def shared(data: Any, n: int, rng: Rng) -> Any:
        return np.full(n, rng.random())

    dependent = check(theorem, lambda *_: Setting(shared, None, same, 2.0), draws=2_000)
    assert dependent.verdict == Verdict.DEVIATION
    assert dependent.message.startswith("draws are not independent: draws of one call are closer")

    def find_held(independence: bool) -> AuditResult:
        settings = Settings(alpha=0.01, draws=2_000, independence=independence)
        found: AuditResult = theorem.audit(lambda *_: exponential(0.1, 2.0), settings, ASKED)
        return found

    # A test that passes leaves no trace.
    assert find_held(True).verdict == Verdict.CONSISTENT
    assert find_held(True).to_json() == find_held(False).to_json()


def test_time_truncates_and_chunks_replay() -> None:
    theorem = HighProbability(math.log(20), 0.05)
    cut = check(theorem, exponential(1.0), seconds=1e-9)
    assert cut.truncated_by == "time"
    again = check(theorem, exponential(1.0), chunks=len(cut.record["chunks"]))
    assert again.record == cut.record


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((-1.0, 0.1), "-1.0"), ((math.inf, 0.1), "inf"), ((1.0, 1.0), "1.0"), ((1.0, -0.1), "-0.1")],
)
def test_a_claim_that_cannot_be_is_refused(arguments: tuple[float, float], message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        HighProbability(*arguments)


def test_a_claim_of_another_type_is_refused() -> None:
    no_float: Any = np.complex128(1.0)
    for build, message in (
        (lambda: HighProbability(no_float, 0.1), "got np.complex128"),
        (lambda: HighProbability(1.0, 0.1, strict="no"), "'no'"),  # type: ignore[arg-type]
        (lambda: Expectation(no_float), "got np.complex128"),
        (lambda: Expectation(1.0, exact=math.nan), "nan"),
    ):
        with pytest.raises(SpecificationError, match=message):
            build()


# ------------------------------------------------------------------------------- expectations


def test_an_expectation_is_refuted_from_above_only() -> None:
    held = check(Expectation(1.0), exponential(1.0))
    assert held.verdict == Verdict.CONSISTENT
    assert held.accuracy["mean"] == pytest.approx(1.0, abs=0.05)
    assert 0.9 <= held.accuracy["lower"] <= 1.0
    assert held.resolves is not None
    assert 1.0 < held.resolves < 1.1
    broken = check(Expectation(0.9), exponential(1.0))
    assert broken.verdict == Verdict.DEVIATION
    assert broken.lower_bound is not None
    assert broken.lower_bound >= 0.9
    assert check(Expectation(5.0), exponential(1.0)).accuracy["slack"] == pytest.approx(5.0, rel=0.1)
    with pytest.raises(SpecificationError, match=r"0\.0"):
        Expectation(0.0)


def test_a_detectable_expectation_is_flagged_nine_times_in_ten_or_so() -> None:
    level = check(Expectation(1.0), exponential(1.0), draws=2_000, stop="budget").resolves
    assert level is not None
    runs = [check(Expectation(1.0), exponential(level), draws=2_000, seed=s, independence=False) for s in range(60)]
    # A normal approximation: between 0.75 and 1, of 60 runs, with a false alarm below 1e-6 at 0.9.
    flagged = sum(run.verdict == Verdict.DEVIATION for run in runs)
    assert stats.binom.cdf(flagged, 60, 0.9) > 1e-6


# ------------------------------------------------------------------------- smallest parameters


def crossing_at(value: float, beta: float) -> Callable[[float], Setting]:
    """Errors Exp(1) / v, whose failure rate exp(-v c) crosses beta where v is ``value``."""
    limit = -math.log(beta) / value
    return lambda v: exponential(1.0 / v, limit)


@pytest.mark.parametrize("beta", [0.01, 0.1, 0.5])
def test_a_bisection_finds_the_crossing(beta: float) -> None:
    search = Search(beta, 1.0, 10_000.0, 1.05)
    found = bisect_parameter(crossing_at(300.0, beta), search, ErrorSampler(3, "s"), 40_000, 0.001)
    assert found.low < 300 <= found.high
    assert found.value(beta) == pytest.approx(300, rel=0.1)
    assert sum(step["draws"] for step in found.steps) <= 40_000
    assert len(found.steps) <= search.evaluations


def test_a_capacity_is_the_largest_value_that_works() -> None:
    # The failure rate exp(-90 / k) of k queries crosses 0.1 at 90 / ln 10.
    def build(k: float) -> Setting:
        return exponential(k / 90.0, 1.0)

    search = Search(0.1, 1.0, 1_000.0, 1.02, largest=True)
    found = bisect_parameter(build, search, ErrorSampler(3, "s"), 100_000, 0.001)
    assert found.low <= 90 / math.log(10) <= found.high
    assert found.value(0.1) == pytest.approx(90 / math.log(10), rel=0.08)


def test_a_crossing_outside_the_range_is_said_to_be_there() -> None:
    build = crossing_at(300.0, 0.1)
    below = bisect_parameter(build, Search(0.1, 600.0, 900.0), ErrorSampler(3, "s"), 10_000, 0.01)
    above = bisect_parameter(build, Search(0.1, 10.0, 150.0), ErrorSampler(3, "s"), 10_000, 0.01)
    assert (below.low, below.high) == (0.0, 600.0)
    assert (above.low, above.high) == (150.0, math.inf)


def test_the_theorems_own_value_decides() -> None:
    build = crossing_at(300.0, 0.1)
    held = check(SmallestParameter("n", 450.0, Search(0.1, 10.0, 450.0)), build)
    assert held.verdict == Verdict.CONSISTENT
    assert held.accuracy["slack"] == pytest.approx(1.5, rel=0.1)
    assert held.accuracy["rate_upper"] <= 0.1
    broken = check(SmallestParameter("n", 200.0, Search(0.1, 10.0, 1000.0)), build)
    assert broken.verdict == Verdict.DEVIATION
    assert "at n = 200 the failure rate is at least" in broken.message
    few = check(SmallestParameter("n", 280.0, Search(0.1, 10.0, 1000.0)), build, draws=64)  # 32 draws decide nothing
    assert few.verdict == Verdict.INCONCLUSIVE
    assert re.match(r"a failure rate below 0\.\d+ at n = 280 might have been missed, 0\.2 was to be found", few.message)


def test_a_search_is_refused_with_the_value_shown() -> None:
    for arguments, message in (((0.0, 1, 2), "0.0"), ((0.1, 3, 2), "3 and 2"), ((0.1, 1, 2, 1.0), "1.0")):
        with pytest.raises(SpecificationError, match=message):
            Search(*arguments)
    with pytest.raises(SpecificationError, match=r"no integer from 10\.2 to 10\.8"):
        Search(0.1, 10.2, 10.8)
    for claimed, largest, message in (
        (10.5, False, "10.5: round it up"),
        (10.5, True, "down"),
        (math.nan, False, "nan"),
    ):
        with pytest.raises(SpecificationError, match=message):
            SmallestParameter("n", claimed, Search(0.1, 1, 20, largest=bool(largest)))
    assert SmallestParameter("n", 10.5, Search(0.1, 1, 20, integer=False)).level == 10.5
    with pytest.raises(SpecificationError, match="needs at_most, got nan"):
        decide_setting(exponential(1.0), ErrorSampler(0, "s"), 100, 0.1, 0.01)


# ----------------------------------------------------------------------------------- exponents


def power(exponent: float) -> Callable[[float], Setting]:
    return lambda x: exponential(x**exponent)


def test_an_exponent_is_told_from_its_neighbours() -> None:
    claim = PowerLaw("k", (4, 16, 64, 256), 0.5, Quantile(0.5), (0.0, 1.0), curve=lambda k: math.sqrt(k))
    found = check(claim, power(0.5))
    assert found.verdict == Verdict.CONSISTENT
    assert found.accuracy["exponent"] == pytest.approx(0.5, abs=0.03)
    assert found.accuracy["exponent_lower"] < 0.5 < found.accuracy["exponent_upper"]
    assert found.accuracy["growth_lower"] <= 0.5 <= found.accuracy["growth_upper"]
    assert min(found.accuracy["slack"]) == pytest.approx(1 / math.log(2), rel=0.15)
    assert found.accuracy["outcome"] == "consistent"
    assert found.draws == 20_000
    assert check(claim, power(0.5)).to_json() == found.to_json()


def test_a_library_that_is_missing_is_named_before_any_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels", None)

    def build(x: float) -> Setting:
        raise AssertionError("built")

    with pytest.raises(MissingLibraryError, match="accuracy"):
        check(PowerLaw("k", (4, 16, 64), 0.5, Quantile(0.5)), build)


def test_worse_growth_deviates_and_better_growth_is_called_looser() -> None:
    worse = check(PowerLaw("k", (4, 16, 64), 0.5, Quantile(0.5)), power(1.0))
    assert worse.verdict == Verdict.DEVIATION
    assert "exponent of k is at least" in worse.message
    better = check(PowerLaw("k", (4, 16, 64), 0.5, Quantile(0.5)), power(0.2))
    assert better.verdict == Verdict.CONSISTENT
    assert better.accuracy["outcome"].startswith("looser")
    # For a capacity slow growth is the bad one.
    capacity = check(PowerLaw("n", (4, 16, 64), 1.0, Quantile(0.5), benefit=True), power(0.5))
    assert capacity.verdict == Verdict.DEVIATION
    assert "at most" in capacity.message


def test_a_candidate_in_the_interval_is_inconclusive() -> None:
    found = check(PowerLaw("k", (4, 5, 6), 0.5, Quantile(0.5), (0.6, 0.4)), power(0.5), draws=120)
    assert found.verdict == Verdict.INCONCLUSIVE
    assert found.accuracy["outcome"] == "not told apart"


def test_a_log_factor_is_divided_out() -> None:
    claim = PowerLaw("k", (2, 8, 32, 128), 1.0, Quantile(0.5), (1.3,), log_factor=math.log)
    found = check(claim, lambda k: exponential(k * math.log(k)))
    assert found.verdict == Verdict.CONSISTENT
    assert found.accuracy["exponent"] == pytest.approx(1.0, abs=0.03)


def test_a_bound_is_tested_from_one_side_where_growth_is_no_criterion() -> None:
    bound = PowerLaw("n", (100, 200, 400), -1 / 3, Quantile(0.9), curve=lambda n: n ** (-1 / 3), criterion=False)
    held = check(bound, lambda n: exponential(n ** (-2 / 3)))
    assert held.verdict == Verdict.CONSISTENT
    assert held.accuracy["outcome"] == "bound holds"
    broken = check(bound, lambda n: exponential(n ** (-1 / 3)))
    assert broken.verdict == Verdict.DEVIATION
    assert "exceeded at n = 100, n = 200, n = 400" in broken.message


def test_exact_numbers_need_no_draws() -> None:
    claim = PowerLaw("eps", (0.01, 0.02, 0.04), 2.0, Exactly("divergence"), (1.0,))
    found = check(claim, lambda eps: eps * math.tanh(eps / 2))
    assert (found.verdict, found.draws) == (Verdict.CONSISTENT, 0)
    assert found.accuracy["exponent"] == pytest.approx(2.0, abs=1e-3)
    exact = PowerLaw("eps", (0.01, 0.02, 0.04), 2.0, Exactly("divergence"), (1.0,), both=True)
    for exponent in (1.0, 3.0):
        assert check(exact, lambda eps, e=exponent: eps**e).verdict == Verdict.DEVIATION
    assert check(exact, lambda eps: eps**2).verdict == Verdict.CONSISTENT


def test_the_smallest_parameter_is_measured_too() -> None:
    claim = PowerLaw("m", (1, 4, 16), 1.0, Smallest(0.1, 1, 10_000), (0.5, 1.5))
    found = check(claim, lambda m: crossing_at(20.0 * m, 0.1), draws=60_000)
    assert found.verdict == Verdict.CONSISTENT
    assert found.accuracy["exponent"] == pytest.approx(1.0, abs=0.1)
    with pytest.raises(SpecificationError, match="not between"):
        check(claim, lambda m: crossing_at(1e6, 0.1))
    with pytest.raises(SpecificationError, match="not between 1 and 10000: 10 draws are too few to decide at"):
        check(claim, lambda m: crossing_at(20.0 * m, 0.1), draws=32)


def test_an_exponent_needs_a_draw_at_each_value() -> None:
    claim = PowerLaw("m", tuple(range(1, 41)), 1.0, Quantile(), (0.5, 1.5))
    with pytest.raises(SpecificationError, match="32 draws are less than one at each of 40 values"):
        check(claim, lambda m: crossing_at(20.0 * m, 0.1), draws=32)


def test_too_few_draws_for_any_limit_are_inconclusive() -> None:
    # Median limits need ten draws and more: whatever was drawn, nothing would have been refuted.
    bounded: dict[str, Any] = {"curve": lambda x: 2.0 * x, "criterion": False}
    for options in ({}, bounded):
        result = check(PowerLaw("x", (1.0, 2.0, 4.0, 8.0), 1.0, Quantile(), **options), power(1.0), draws=32)
        assert result.verdict == Verdict.INCONCLUSIVE, result
        assert "the draws are too few" in result.message


@pytest.mark.parametrize("value", [math.nan, 0.0, -1.0, math.inf, "1"])
def test_a_bound_that_is_no_number_above_zero_is_refused(value: Any) -> None:
    shown = f"got {re.escape(repr(value))} at x = 1"
    with pytest.raises(SpecificationError, match=f"curve must be .*{shown}"):  # nothing exceeds NaN: it held
        PowerLaw("x", (1.0, 2.0, 4.0), 1.0, Exactly(), curve=lambda _: value, criterion=False)
    with pytest.raises(SpecificationError, match=f"log_factor must be .*{shown}"):
        check(PowerLaw("x", (1.0, 2.0, 4.0), 1.0, Exactly(), log_factor=lambda _: value), float)


def test_what_is_built_is_checked() -> None:
    for theorem in (
        SmallestParameter("n", 3, Search(0.1, 1, 9)),
        PhaseDiagram("x", "y", (1.0, 2.0), (1.0, 2.0), lambda x, y: 0.5, lambda x, y: None),
    ):
        with pytest.raises(SpecificationError, match="expected a Setting, got None"):
            check(theorem, lambda *values: None)
    with pytest.raises(SpecificationError, match="the error function raised ValueError: math domain error"):
        errors_of(lambda outputs: math.sqrt(-1), np.zeros(2), 2)
    with pytest.raises(SpecificationError, match="bound of errors must be a positive number, got -1"):
        Mean(-1.0)


@pytest.mark.parametrize("rows", [5, [("a", 1.0)], [("a", "x", 1.0)], [("a", 1j, 1.0)], [("a", [1.0, 2.0], 1.0)]])
def test_rows_that_are_none_are_refused(rows: Any) -> None:
    shown = rows if isinstance(rows, int) else rows[0][1] if len(rows[0]) == 3 and isinstance(rows[0][1], str) else ""
    with pytest.raises(SpecificationError, match=f"s: .*got .*{shown}"):
        check(Inequality("s"), lambda: rows)


def test_what_an_exponent_needs() -> None:
    with pytest.raises(SpecificationError, match="at least three increasing"):
        PowerLaw("k", (1, 2), 1.0, Quantile())
    with pytest.raises(SpecificationError, match=r"within 0\.05 of 1"):
        PowerLaw("k", (1, 2, 3), 1.0, Quantile(), (1.01,))
    with pytest.raises(SpecificationError, match="k = 1: 0"):
        check(PowerLaw("k", (1, 2, 3), 1.0, Exactly()), lambda k: k - 1)
    with pytest.raises(SpecificationError, match="expected a Setting, got 3"):
        check(PowerLaw("k", (1, 2, 3), 1.0, Quantile()), lambda k: 3)
    with pytest.raises(SpecificationError, match=r"curve raised ZeroDivisionError at k = 2: float division by zero"):
        PowerLaw("k", (1, 2, 3), 1.0, Exactly(), curve=lambda k: 1.0 / abs(k - 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exponent": math.nan}, "exponent must be a finite number, got nan"),  # nothing is faster than NaN: it held
        ({"exponent": "1"}, "exponent must be a finite number, got '1'"),
        ({"exponent": 10**400}, "exponent must be a finite number, got 1000"),
        ({"at": (1, math.nan, 3)}, "values to measure at must be a finite number, got nan"),
        ({"at": 5}, "at least three increasing positive values to measure at, got (5.0,)"),
        ({"others": (math.inf,)}, "other candidates must be a finite number, got inf"),
        ({"within": None}, "within must be a finite number, got None"),
        ({"measure": 5}, "measure must be such as Quantile(), got 5"),
        ({"curve": 5}, "curve must be a function of k, got 5"),
        ({"figure": "plot"}, "figure must be a Figure, got 'plot'"),
    ],
)
def test_an_exponent_of_no_numbers_is_refused_when_it_is_declared(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError, match=re.escape(message)):
        scaling(float, **{"parameter": "k", "at": (1, 2, 3), "exponent": 1.0, **options})


# -------------------------------------------------------------------------- computed statements


@pytest.mark.parametrize(
    ("comparison", "left", "right", "holds"),
    [
        ("<=", 1.0, 1.0, True),
        ("<=", 1.0 + 1e-12, 1.0, True),
        ("<=", 1.0 + 1e-6, 1.0, False),
        ("<=", -math.inf, 0.0, True),
        ("<=", math.inf, 1.0, False),
        ("<=", math.inf, math.inf, True),
        ("<=", math.nan, 1.0, False),
        ("<", 0.0, 0.0, False),
        ("<", 1.0, 1.0 + 1e-12, True),
        ("<", math.inf, math.inf, False),
        ("==", 2.0, 2.0 * (1 + 1e-12), True),
        ("==", 2.0, 2.1, False),
        ("==", 2.1, 2.0, False),
    ],
)
def test_comparisons(comparison: Any, left: float, right: float, holds: bool) -> None:
    found = check(Inequality("left against right", comparison), lambda: [("case", left, right)])
    assert (found.verdict == Verdict.CONSISTENT) == holds


def test_the_worst_row_is_named() -> None:
    rows = [("first", 1.0, 2.0), ("second", 3.0, 2.0), ("third", 2.5, 2.0)]
    found = check(Inequality("left is at most right"), lambda: rows)
    assert found.verdict == Verdict.DEVIATION
    assert found.message == "second: 3 where ≤ 2 is stated; 2 of 3 cases fail"
    assert found.accuracy["worst"] == {"case": "second", "left": 3.0, "right": 2.0}
    assert len(found.accuracy["rows"]) == 3
    with pytest.raises(SpecificationError, match="at least one row"):
        check(Inequality("nothing"), list)


# --------------------------------------------------------------------------------- declarations


def test_declarations_are_refused_with_the_value_shown() -> None:
    with pytest.raises(SpecificationError, match="'a case'"):
        accuracy(Exponential(1.0), None, same, at_most=1.0, beta=0.1, case="a case")
    with pytest.raises(SpecificationError, match="L1"):
        inequality(lambda: [("a", 1, 1)], statement="x", level="L1")
    with pytest.raises(SpecificationError, match="expected a function that builds settings, got 3"):
        scaling(3, parameter="k", at=(1, 2, 3), exponent=1.0)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match="no privacy guarantee"):
        _ = accuracy(Exponential(1.0), None, same, at_most=1.0, beta=0.1).privacy_guarantee


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exact": "0.1"}, "exact must be a finite number, got '0.1'"),
        ({"case": 5}, "a case must be of letters, digits and . _ + -, got 5"),
        ({"controls": 5}, "case reference: controls must be by name, got 5"),
        ({"parameters": 5}, "case reference: parameters must be by name, got 5"),
        ({"parameters": {"k": {1, 2}}}, "the parameter 'k' must be a number, a text or a list of these, got {1, 2}"),
        ({"note": 5}, "case reference: note must be a text, got 5"),
    ],
)
def test_what_no_result_can_hold_is_refused_when_it_is_declared(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError, match=re.escape(message)):  # it ended the run after all draws
        accuracy(Exponential(1.0), None, same, at_most=1.0, beta=0.1, **options)


@pytest.mark.parametrize("value", [None, "3", math.nan, 1j])
def test_numbers_of_searches_and_quantiles_are_refused_with_the_value_shown(value: Any) -> None:
    shown = f"must be a finite number, got {re.escape(repr(value))}"
    for name in ("beta", "low", "high", "resolution"):
        with pytest.raises(SpecificationError, match=f"{name} {shown}"):
            Smallest(**{"beta": 0.1, "low": 1.0, "high": 9.0, name: value})
    with pytest.raises(SpecificationError, match=f"the claimed n {shown}"):
        smallest(crossing_at(30.0, 0.1), parameter="n", claimed=value, beta=0.1, low=1)
    with pytest.raises(SpecificationError, match=f"the quantile {shown}"):
        Quantile(value)
    with pytest.raises(SpecificationError, match=f"tolerance {shown}"):
        Inequality("s", tolerance=value)
    with pytest.raises(SpecificationError, match=f"xs {shown}"):
        PhaseDiagram("x", "y", (1.0, value), (1.0, 2.0), lambda x, y: 0.5, lambda x, y: None)


def test_budgets_of_accuracy_claims_are_their_own() -> None:
    draft = smallest(crossing_at(30.0, 0.1), parameter="n", claimed=45, beta=0.1, low=1, draws={"full": 5_000})
    assert draft.budgets == {"smoke": (20_000, "verdict"), "standard": (200_000, "budget"), "full": (5_000, "budget")}
    few = smallest(crossing_at(30.0, 0.1), parameter="n", claimed=45, beta=0.1, low=1, draws={"standard": 300})
    assert few.budgets == {"smoke": (20_000, "verdict"), "standard": (300, "budget"), "full": (3_000, "budget")}
    assert draft.mechanism is None
    assert inequality(lambda: [("a", 1, 1)], statement="x").draws_any is False


def test_the_public_function_says_what_it_did() -> None:
    found = check_accuracy(Exponential(1.0), None, same, at_most=2.0, beta=0.05, draws=5_000)
    assert found.verdict == Verdict.DEVIATION
    assert "check_accuracy(mechanism, None, same, at_most=2.0" in found.replay
    assert found.replay.endswith("  # mechanism is the one that was audited")
    assert run_line(found.replay, mechanism=Exponential(1.0)).record == found.record
    with pytest.raises(SpecificationError, match="callable as \\(outputs\\), got 3"):
        check_accuracy(Exponential(1.0), None, 3, at_most=2.0, beta=0.05)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match="got 'noise'"):
        check_accuracy("noise", None, same, at_most=2.0, beta=0.05)  # type: ignore[arg-type]
