"""Controls of claims of accuracy: what would have refuted them, and when nothing would."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.audits.accuracy import Absolute, Constant, Expectation, HighProbability, PowerLaw, Quantile, Setting
from auditor.audits.accuracy.base import Theorem
from auditor.audits.accuracy.controls import add_basis_and_control, scale_noise
from auditor.audits.accuracy.measures import Exactly, Smallest
from auditor.audits.accuracy.smallest import Search, SmallestParameter
from auditor.audits.context import Question
from auditor.audits.inequality import Inequality
from auditor.audits.privacy_loop import Settings
from auditor.errors import SpecificationError
from auditor.results import ANSWER_ZERO, AuditResult, Verdict
from mechanisms.additive_noise.geometric import TwoSidedGeometric
from mechanisms.base.queries import IdentityQuery
from mechanisms.local_model.local_randomizers import response
from mechanisms.local_model.randomized_response import from_epsilon

SETTINGS, QUESTION = Settings(draws=4_000, seed=1), Question("audit/L4/controls/given")


@dataclass(frozen=True)
class Noisy:
    """A number with noise of scale 1 / epsilon, kept between 0 and ``most``."""

    epsilon: float = 1.0
    most: float = np.inf

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.asarray(np.clip(data + rng.laplace(0.0, 1.0 / self.epsilon, n), -self.most, self.most))


@dataclass(frozen=True)
class Within:
    """A mechanism with another in it, and sizes that were chosen for some epsilon."""

    inner: Noisy
    sizes: tuple[int, ...] = (1, 2)

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return self.inner(data, n, rng)


def checked(theorem: Theorem, subject: Any, **given: Any) -> AuditResult:
    result = theorem.audit(subject, SETTINGS, QUESTION)
    return add_basis_and_control(result, theorem, subject, SETTINGS, QUESTION, given)


def setting(mechanism: Any, at_most: float = 5.0) -> Setting:
    return Setting(mechanism, 10.0, Absolute(10.0), at_most)


def test_more_noise_is_the_same_mechanism_with_other_parameters() -> None:
    assert scale_noise(Noisy(1.0), 4.0) == (Noisy(0.25), ("epsilon / 4",))
    assert scale_noise(Noisy(1.0), 0.25) == (Noisy(4.0), ("4 epsilon",))
    assert scale_noise(Within(Noisy(2.0)), 2.0) == (Within(Noisy(1.0)), ("epsilon / 2",))
    assert scale_noise(Constant(0.0), 2.0)[1] == ()
    assert scale_noise(lambda data, n, rng: None, 2.0)[1] == ()


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_mechanisms_that_know_their_noise_have_the_level_of_the_factor(factor: float) -> None:
    geometric, bits, values = TwoSidedGeometric(IdentityQuery(), 2.0), from_epsilon(1.0), response(1.0, 5)
    assert scale_noise(geometric, factor)[0].epsilon == pytest.approx(geometric.epsilon / factor)
    assert scale_noise(bits, factor)[0].epsilon == pytest.approx(1.0 / factor)
    assert scale_noise(values, factor)[0].level == pytest.approx(1.0 / factor)


def test_a_bound_that_holds_says_how_much_noise_breaks_it() -> None:
    found = checked(HighProbability(5.0, 0.05), setting(Noisy())).accuracy
    assert found["basis"] == "measured"
    assert found["control"]["what"] in ("epsilon / 2", "epsilon / 8")
    assert "is claimed" in found["control"]["message"]
    assert found["control"]["zero"]


@pytest.mark.parametrize(("beta", "said"), [(0.0, "1"), (0.05, "0.95"), (1e-6, "0.999999"), (1e-20, "1 - 1e-20")])
def test_a_small_probability_of_failure_is_not_said_to_be_none(beta: float, said: str) -> None:
    assert str(HighProbability(5.0, beta)) == f"error ≤ 5 with probability ≥ {said}"


def test_a_bound_above_every_error_has_no_control() -> None:
    theorem = HighProbability(5.0, 0.05)
    found = checked(theorem, Setting(Noisy(most=11.0), 8.0, Absolute(8.0), 20.0)).accuracy
    assert found["control"] is None or found["control"]["what"] != ANSWER_ZERO
    vacuous = HighProbability(30.0, 0.05)
    assert checked(vacuous, Setting(Noisy(most=11.0), 8.0, Absolute(8.0), 30.0)).accuracy["control"] is None


def test_what_is_given_is_tried_first_and_zero_last() -> None:
    theorem = HighProbability(5.0, 0.05)
    wrong = replace(setting(Noisy()), mechanism=Constant(30.0))
    assert checked(theorem, setting(Noisy()), **{"always 30": wrong}).accuracy["control"]["what"] == "always 30"
    plain = setting(lambda data, n, rng: data + rng.normal(size=n))
    assert checked(theorem, plain).accuracy["control"]["what"] == ANSWER_ZERO


def test_what_was_refuted_has_no_control() -> None:
    result = checked(HighProbability(5.0, 0.05), setting(Noisy(0.01)))
    assert result.verdict == Verdict.DEVIATION
    assert "control" not in result.accuracy


def test_expectations_and_smallest_parameters_have_controls() -> None:
    assert checked(Expectation(1.5), setting(Noisy())).accuracy["control"]["what"].startswith("epsilon /")
    smallest = SmallestParameter("epsilon", 2.0, Search(0.1, 0.1, 2.0, integer=False))
    found = checked(smallest, lambda epsilon: setting(Noisy(epsilon), 3.0)).accuracy
    assert found["control"]["what"].startswith("epsilon /")


def test_growth_says_what_other_growth_would_have_been_refuted() -> None:
    law = PowerLaw("x", (1.0, 4.0, 16.0), -1.0, Quantile(), (-0.5, -2.0))
    found = checked(law, lambda x: setting(Noisy(x))).accuracy["control"]
    assert 0 < found["by"] < 0.5
    assert found["what"].startswith("growth as x^-")
    exact = PowerLaw("x", (1.0, 4.0, 16.0), 0.5, Exactly(), (1.0,), both=True)
    result = checked(exact, lambda x: 3.0 * x**0.5)
    assert result.accuracy["basis"] == "exact"
    assert result.accuracy["control"]["by"] == pytest.approx(0.05)
    faster = exact.audit(lambda x: 3.0 * x ** (0.5 + 0.051), SETTINGS, QUESTION)
    assert faster.verdict == Verdict.DEVIATION


def test_a_formula_is_called_computed() -> None:
    law = PowerLaw("x", (1.0, 4.0, 16.0), 0.5, Exactly("rows", formula=True), (1.0,))
    assert checked(law, lambda x: x**0.5).accuracy["basis"] == "computed"


def test_a_bound_without_growth_needs_a_curve() -> None:
    with pytest.raises(SpecificationError, match="cannot fail"):
        PowerLaw("x", (1.0, 2.0, 3.0), 1.0, Exactly(), criterion=False)


def test_a_bound_of_another_exponent_says_so() -> None:
    def law(curve: Any) -> PowerLaw:
        return PowerLaw("x", (1.0, 2.0, 4.0), 1.0, Exactly("rows"), curve=curve, criterion=False)

    assert str(law(lambda x: 5 * x)) == "rows is below a bound that grows as x^1"
    assert str(law(lambda x: x + 10)).endswith("x^1 in the limit, as x^0.174 over these values")
    found = checked(law(lambda x: 5 * x), lambda x: 2.0 * x).accuracy["control"]
    assert (found["by"], found["what"]) == (2.5, "a number that is larger by a factor of 2.5")


def test_a_bound_on_a_smallest_parameter_is_tried_at_the_bound() -> None:
    def build(x: float) -> Any:
        return lambda epsilon: setting(Noisy(epsilon), 3.0 * x)

    law = PowerLaw(
        "x", (1.0, 2.0, 4.0), -1.0, Smallest(0.1, 0.01, 50.0, integer=False), curve=lambda x: 3.0 / x, criterion=False
    )
    assert checked(law, build).accuracy["control"]["what"].startswith("epsilon /")


def test_sides_that_are_equal_are_refuted_by_any_larger_one() -> None:
    one, many = [("n = 1", 1.0, 1.5)], [("n = 1", 1.0, 1.5), ("n = 2", 2.0, 2.0)]
    assert checked(Inequality("a"), lambda: one).accuracy["control"]["by"] == 0.5
    assert checked(Inequality("a"), lambda: many).accuracy["control"]["what"] == "any larger left side"
    assert checked(Inequality("a"), lambda: [("n = 1", 1.0, np.inf)]).accuracy["control"] is None
