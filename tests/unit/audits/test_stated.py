"""What a target states of itself, against independent computation."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from auditor.audits.self_reported.accountant import SelfReport, accountant_levels
from auditor.audits.self_reported.checks import DRAWS, Check, chance_of_agreement, check_statements, states_of
from auditor.datasets import Pair, ReplaceOne
from auditor.privacy.exact import GaussianCurve, LaplaceCurve
from auditor.privacy.guarantees import ZCDP, ApproxDP, DeltaDP, GaussianDP, Guarantee, PureDP, RenyiDP, TradeoffCurve
from auditor.targets import one_draw
from auditor.targets.protocol import Hello
from auditor.targets.sampler import Sampler

PAIR = Pair(np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0]), "first row replaced")
EMPTY = Pair(np.array([]), np.array([1.0]), "one row against none")


CLAIM = PureDP(1.0)


def only(states: Any, guarantee: Guarantee = CLAIM, name: str = "", **options: Any) -> Check:
    """The one check of that name."""
    found = check_statements(states, guarantee, options.pop("pairs", [PAIR]), **options)
    (check,) = [one for one in found if name in ("", one.name)]
    return check


def noise(distribution: str, scale: float, sensitivity: float = 1.0) -> dict[str, Any]:
    return {"noise": {"distribution": distribution, "scale": scale, "sensitivity": sensitivity}}


# ------------------------------------------------------------------------------------- noise scale


def gaussian_delta(sigma: float, epsilon: float, sensitivity: float) -> float:
    """Balle and Wang (2018), Theorem 8."""
    a, b = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    return float(stats.norm.cdf(a - b) - math.exp(epsilon) * stats.norm.cdf(-a - b))


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    return float(optimize.brentq(lambda s: gaussian_delta(s, epsilon, sensitivity) - delta, 0.01, 1e3, xtol=1e-12))


def discrete_gaussian_delta(sigma: float, epsilon: float, shift: int) -> float:
    k = np.arange(-200, 201)
    p = np.exp(-(k**2) / (2 * sigma**2))
    q = np.exp(-((k - shift) ** 2) / (2 * sigma**2))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() / p.sum())


#: Statement, claim, and the smallest scale that keeps it; all by formulas that the check does not use.
EXACT: list[tuple[str, float, Guarantee, float]] = [
    ("laplace", 3.0, PureDP(1.5), 2.0),
    ("laplace", 1.0, ApproxDP(1.0, 0.1), 1.0 / (1.0 - 2.0 * math.log1p(-0.1))),
    ("geometric", 3.0, PureDP(1.5), 2.0),
    ("discrete laplace", 1.0, PureDP(0.25), 4.0),
    ("gaussian", 2.0, ApproxDP(1.0, 1e-5), gaussian_sigma(1.0, 1e-5, 2.0)),
    ("gaussian", 2.0, DeltaDP(1e-5, 1.0), gaussian_sigma(1.0, 1e-5, 2.0)),
    ("gaussian", 2.0, GaussianDP(0.5), 4.0),
    ("gaussian", 2.0, ZCDP(0.5), 2.0),
    ("gaussian", 2.0, RenyiDP({2: 1.0, 8: 4.0}), 2.0),
    ("gaussian", 1.0, TradeoffCurve.below(lambda x: stats.norm.cdf(stats.norm.ppf(1 - x) - 0.5)), 2.0),
    ("discrete gaussian", 2.0, ZCDP(0.02), 10.0),
    (
        "discrete gaussian",
        1.0,
        DeltaDP(discrete_gaussian_delta(3.0, 0.5, 1), 0.5),
        3.0,
    ),
]


@pytest.mark.parametrize(("law", "sensitivity", "claim", "scale"), EXACT)
def test_noise_passes_from_the_exact_scale_on(law: str, sensitivity: float, claim: Guarantee, scale: float) -> None:
    assert only(noise(law, scale * 1.0001, sensitivity), claim).passed is True
    # The curve of points under a Gaussian trade-off is up to half a percent looser than it.
    short = 0.98 if isinstance(claim, TradeoffCurve) else 0.9999
    check = only(noise(law, scale * short, sensitivity), claim)
    # Laplace noise on several numbers may give less than on one, but for the largest loss.
    assert check.passed is (None if law == "laplace" and isinstance(claim, ApproxDP) and claim.delta else False)
    assert "more than the claimed" in check.finding


def test_a_sensitivity_that_may_be_spread_refutes_no_claim_that_holds_then() -> None:
    # Laplace noise of scale 1 on two numbers that move by 1 each has rho = 0.736 and delta(1.6) = 0.1, below the claim.
    for claim in (ZCDP(0.743), ApproxDP(1.6, 0.1)):
        check = only(noise("laplace", 1.0, 2.0), claim)
        assert check.passed is None
        assert "over several it may give less" in check.finding
    assert only(noise("laplace", 1.0, 2.0), PureDP(1.99)).passed is False
    assert only(noise("geometric", 1.0, 1.0), ZCDP(0.3)).passed is False  # a 1 cannot be spread over integers


def test_discrete_gaussian_noise_on_a_histogram_has_a_sensitivity_that_is_no_integer() -> None:
    assert only(noise("discrete gaussian", 3.0, math.sqrt(2)), ZCDP(1 / 9)).passed is True
    assert only(noise("discrete gaussian", 3.0, math.sqrt(2)), ZCDP(0.11)).passed is None
    assert only(noise("discrete gaussian", 3.0, math.sqrt(2)), ApproxDP(1.0, 1e-5)).passed is None


@pytest.mark.parametrize(("sigma", "steps"), [(1.0, 1), (20.0, 400), (5.0, 100)])
@pytest.mark.parametrize("delta", [1e-5, 1e-9, 1e-10, 1e-12, 1e-15])
def test_an_exact_figure_at_a_tiny_delta_does_not_fail(sigma: float, steps: int, delta: float) -> None:
    """Sampled with probability 1 - 1e-13, so that the exact Gaussian curve is the truth."""
    event = {"gaussian": {"noise_multiplier": sigma, "count": steps, "sampling_probability": 1 - 1e-13}}
    exact = GaussianCurve(math.sqrt(steps) / sigma).epsilon(delta)
    states = {"accountant": {"events": [event], "epsilon": exact, "delta": delta}}
    check = only(states, name="accountant")
    assert check.passed is (None if delta < 1e-10 else True)
    states["accountant"]["epsilon"] = 0.98 * exact
    assert only(states, name="accountant").passed is (None if delta < 1e-10 else False)


@pytest.mark.parametrize(
    ("kind", "scale", "sensitivity", "claim", "passed"),
    [
        ("geometric", 1e12, 1, PureDP(1e-12), True),
        ("geometric", 1e12, 1, PureDP(0.9999e-12), False),
        ("geometric", 1e-3, 5, PureDP(4000.0), None),
        ("geometric", 1e-3, 5, PureDP(3000.0), False),
        ("geometric", 1e-3, 0, PureDP(0.0), True),
        ("discrete gaussian", 10.0, 1, ApproxDP(2.0, 1e-50), None),
        ("discrete gaussian", 10.0, 1, PureDP(2.0), False),
    ],
)
def test_noise_at_the_ends_of_doubles_is_judged_rightly_or_not(
    kind: str, scale: float, sensitivity: int, claim: Guarantee, passed: bool | None
) -> None:
    """A base of e^1e-12 has four digits, one of e^1000 is no double, and tables of a lattice end somewhere."""
    check = only(noise(kind, scale, sensitivity), claim)
    assert check.passed is passed, check.finding


def test_the_finding_says_the_level() -> None:
    check = only(noise("laplace", 2.0, 1.0), PureDP(1.0))
    assert check == Check(
        "noise scale",
        True,
        "laplace noise of scale 2 at sensitivity 1 gives ε = 0.5, within the claimed ε = 1",
    )


def test_gaussian_noise_never_keeps_a_pure_claim() -> None:
    assert "ε = inf" in only(noise("gaussian", 100.0), PureDP(5.0)).finding
    assert only(noise("gaussian", 100.0), PureDP(5.0)).passed is False


def test_hardly_any_integer_noise_fails() -> None:
    assert only(noise("geometric", 1e-6), PureDP(100.0)).passed is False


def test_sensitivity_0_needs_no_noise() -> None:
    for law in ("laplace", "geometric", "gaussian", "discrete gaussian"):
        assert only(noise(law, 1.0, 0.0), PureDP(0.0)).passed is True


def test_a_law_that_is_too_wide_is_not_checked() -> None:
    check = only(noise("discrete gaussian", 1e9), GaussianDP(1.0))
    assert check.passed is None
    assert check.finding.startswith("not checked: it cannot be computed")


@pytest.mark.parametrize(
    ("stated", "shows"),
    [
        ([1, 2], "[1, 2]"),
        ({"distribution": "laplace", "scale": -2.0, "sensitivity": 1}, "-2.0"),
        ({"distribution": "laplace", "scale": 0, "sensitivity": 1}, "0.0"),
        ({"distribution": "laplace", "scale": True, "sensitivity": 1}, "True"),
        ({"distribution": "laplace", "scale": {"__float__": "inf"}, "sensitivity": 1}, "__float__"),
        ({"distribution": "laplace", "scale": 10**400, "sensitivity": 1}, "10000"),
        ({"distribution": "laplace", "scale": 1.0, "sensitivity": -1}, "-1.0"),
        ({"distribution": "laplace", "scale": 1.0}, "sensitivity must be a finite number of at least 0, got None"),
        ({"distribution": ["laplace"], "scale": 1.0, "sensitivity": 1}, "['laplace']"),
        ({"distribution": "geometric", "scale": 1.0, "sensitivity": 1.5}, "1.5"),
    ],
)
def test_a_bad_statement_of_noise_fails_and_is_shown(stated: Any, shows: str) -> None:
    check = only({"noise": stated})
    assert check.passed is False
    assert shows in check.finding


def test_noise_of_a_law_that_is_not_known_here_is_not_checked() -> None:
    check = only({"noise": {"distribution": "cauchy", "scale": 1.0, "sensitivity": 1}})
    assert check.passed is None
    assert "'cauchy'" in check.finding


@pytest.mark.parametrize(
    ("name", "same"), [("Laplace", "laplace"), ("two-sided geometric", "geometric"), ("normal", "gaussian")]
)
def test_laws_have_other_names(name: str, same: str) -> None:
    found = [only({"noise": {"distribution": law, "scale": 2.0, "sensitivity": 1}}) for law in (name, same)]
    assert found[0] == found[1]


def test_states_that_are_no_object_fail() -> None:
    assert only(["laplace"], name="statement").passed is False


def test_nothing_stated_nothing_checked() -> None:
    assert check_statements({}, PureDP(1.0), [PAIR]) == []
    assert check_statements({"version": "1.2"}, PureDP(1.0), [PAIR]) == []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_NUMBERS = st.one_of(_JSON, st.floats(1e-3, 1e3), st.integers(1, 20))
_EVENT = st.sampled_from(["gaussian", "laplace", "other"]).flatmap(
    lambda kind: st.fixed_dictionaries({kind: st.fixed_dictionaries({"noise_multiplier": _NUMBERS, "count": _NUMBERS})})
)
_STATES = st.fixed_dictionaries(
    {},
    optional={
        "noise": _JSON
        | st.fixed_dictionaries(
            {
                "distribution": st.sampled_from(["laplace", "geometric", "gaussian", "discrete gaussian", "x"]),
                "scale": _NUMBERS,
                "sensitivity": _NUMBERS,
            }
        ),
        "query": _JSON | st.sampled_from(["sum", "count", "mean"]),
        "accountant": _JSON
        | st.fixed_dictionaries(
            {"events": st.lists(_EVENT, max_size=2) | _JSON, "epsilon": _NUMBERS, "delta": st.just(0.0) | _JSON}
        ),
    },
)


@settings(max_examples=150, deadline=None)
@given(_STATES | _JSON)
def test_nothing_that_a_target_states_raises(states: Any) -> None:
    for claim in (PureDP(1.0), GaussianDP(1.0)):
        for check in check_statements(states, claim, [PAIR, EMPTY]):
            assert check.passed in (True, False, None)
            assert check.finding


# -------------------------------------------------------------------------------------- sensitivity


@pytest.mark.parametrize(
    ("query", "pair", "move"),
    [
        ("sum", PAIR, 1.0),
        ("sum", Pair([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [0.0, 0.0]], "a row"), 7.0),
        ("count", EMPTY, 1.0),
        ("mean", PAIR, 1 / 3),
    ],
)
def test_a_stated_query_moves_by_what_it_does(query: str, pair: Pair, move: float) -> None:
    short = only({**noise("laplace", 10.0, move * 0.99), "query": query}, name="sensitivity", pairs=[pair])
    right = only({**noise("laplace", 10.0, move), "query": query}, name="sensitivity", pairs=[pair])
    assert (short.passed, right.passed) == (False, True)
    assert f'"{pair.name}"' in short.finding


def test_gaussian_noise_goes_by_the_euclidean_norm() -> None:
    pair = Pair(np.array([[3.0, 4.0]]), np.array([[0.0, 0.0]]), "one row")
    for law, move in (("gaussian", 5.0), ("laplace", 7.0)):
        states = {**noise(law, 10.0, move), "query": "sum"}
        assert only(states, name="sensitivity", pairs=[pair]).passed is True
        states = {**noise(law, 10.0, move - 0.01), "query": "sum"}
        assert only(states, name="sensitivity", pairs=[pair]).passed is False


def test_private_findings_hold_no_values() -> None:
    states = {**noise("laplace", 2.0, 0.5), "query": "sum"}
    pairs = [Pair([0.0], [987654.0], "one row")]
    assert "987654" in only(states, name="sensitivity", pairs=pairs).finding
    assert "987654" not in only(states, name="sensitivity", pairs=pairs, private=True).finding
    states = {**noise("laplace", 2.0, 1e6), "query": "sum"}
    assert "987654" not in only(states, name="sensitivity", pairs=pairs, private=True).finding


@pytest.mark.parametrize(
    ("query", "pairs", "passed", "words"),
    [
        ("sum", [Pair(["a"], ["b"], "texts")], None, "not numbers"),
        ("mean", [EMPTY], None, "no pair"),
        ("sum", [Pair([math.nan], [0.0], "NaN")], False, "not a finite number"),
        ("sum", [Pair([math.inf, 0.0], [math.inf, 1.0], "infinite")], False, "not a finite number"),
        ("median", [PAIR], False, "'median'"),
        ("sum", [Pair([[1.0, 2.0]], [], "empty")], False, "2 and 1 numbers"),
    ],
)
def test_queries_without_a_number(query: str, pairs: list[Pair], passed: bool | None, words: str) -> None:
    check = only({**noise("laplace", 2.0), "query": query}, name="sensitivity", pairs=pairs)
    assert check.passed is passed
    assert words in check.finding


class Clipped:
    """Sum of clipped rows with Laplace noise; it offers its noiseless query."""

    states: Any = noise("laplace", 2.0, 1.0)

    def __init__(self, high: float = 1.0) -> None:
        self.high = high

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        return self.query(data) + rng.laplace(0.0, 2.0, n)

    def query(self, data: Any) -> float:
        return float(np.clip(data, 0.0, self.high).sum())


def test_the_targets_own_query_is_asked() -> None:
    pairs = [PAIR, Pair([0.0], [50.0], "out of range")]
    for high, passed in ((1.0, True), (2.0, False)):
        sampler = Sampler(Clipped(high), 0, "stated", 5.0)
        check = only(states_of(sampler.target), pairs=pairs, sampler=sampler, name="sensitivity")
        assert check.passed is passed
    assert check.finding == 'the query moves by more than the stated 1 on the pair "out of range": by 2'


def test_a_query_that_raises_is_not_checked() -> None:
    class Broken(Clipped):
        def query(self, data: Any) -> float:
            raise RuntimeError("row 17 is 4242")

        def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
            return rng.laplace(0.0, 2.0, n)

    sampler = Sampler(Broken(), 0, "stated", 5.0)
    check = only(Broken.states, sampler=sampler, name="sensitivity", private=True)
    assert check.passed is None
    assert "RuntimeError" in check.finding
    assert "4242" not in check.finding


def test_states_of_a_function() -> None:
    def total(data: Any, rng: np.random.Generator) -> float:
        return 0.0

    total.states = {"query": "sum"}  # type: ignore[attr-defined]
    assert states_of(one_draw(total)) == states_of(total) == {"query": "sum"}
    assert states_of(lambda data, n, rng: []) == {}


# --------------------------------------------------------------------------------------- accountant


def accountant(events: list[Any], epsilon: float, delta: float = 1e-5) -> dict[str, Any]:
    return {"accountant": {"events": events, "epsilon": epsilon, "delta": delta}}


def test_composed_gaussians_by_the_closed_form() -> None:
    events = [{"gaussian": {"noise_multiplier": 8.0, "count": 100}}, {"gaussian": {"scale": 6.0, "sensitivity": 3.0}}]
    sigma = 1 / math.sqrt(100 / 64 + 1 / 4)
    true = float(optimize.brentq(lambda e: gaussian_delta(sigma, e, 1.0) - 1e-5, 0.0, 50.0))
    assert only(accountant(events, true * 1.00001), name="accountant").passed is True
    assert only(accountant(events, true * 0.99999), name="accountant").passed is False
    loose = only(accountant(events, true * 2), name="accountant")
    assert loose.passed is True
    assert loose.finding.endswith(", 2 times that")


def test_a_mixed_composition_by_dp_accounting() -> None:
    events = [{"gaussian": {"noise_multiplier": 2.0, "count": 3}}, {"laplace": {"scale": 4.0, "count": 5}}]
    bounds = []
    for pessimistic in (False, True):
        options = {"value_discretization_interval": 1e-4, "pessimistic_estimate": pessimistic}
        options["use_connect_dots"] = pessimistic
        total = pld.from_gaussian_mechanism(2.0, **options).self_compose(3)
        total = total.compose(pld.from_laplace_mechanism(4.0, **options).self_compose(5))
        bounds.append(float(total.get_epsilon_for_delta(1e-5)))
    assert only(accountant(events, bounds[0] * 0.999), name="accountant").passed is False
    assert only(accountant(events, bounds[1]), name="accountant").passed is True


def test_sampled_steps_by_a_finer_grid() -> None:
    events = [{"gaussian": {"noise_multiplier": 2.0, "count": 20, "sampling_probability": 0.1}}]
    levels = accountant_levels(SelfReport("accountant", {"events": events}), 1e-5)
    assert not isinstance(levels, str)
    low, high = levels
    bounds = [
        pld.from_gaussian_mechanism(
            2.0, value_discretization_interval=5e-5, sampling_prob=0.1, pessimistic_estimate=p, use_connect_dots=p
        )
        .self_compose(20)
        .get_epsilon_for_delta(1e-5)
        for p in (False, True)
    ]
    # Both brackets hold the true value, so they overlap; ours is narrow.
    assert low <= bounds[1]
    assert high >= bounds[0]
    assert low > 0.999 * high
    both = "accountant", "accountant and claim"
    for figure, claim, expected in (
        (0.99 * low, ApproxDP(0.99 * low, 1e-5), (False, False)),
        (high, ApproxDP(high, 1e-5), (True, True)),
        (high, GaussianDP(1.0), (True, None)),
    ):
        found = {check.name: check.passed for check in check_statements(accountant(events, figure), claim, [PAIR])}
        assert tuple(found[name] for name in both) == expected


@pytest.mark.parametrize("delta", [1e-8, 1e-3])
@pytest.mark.parametrize(
    ("kind", "scale", "rate"),
    [("laplace", 5.0, 0.9), ("laplace", 1.0, 0.01), ("gaussian", 20.0, 0.01), ("gaussian", 0.3, 0.5)],
)
def test_the_exact_figure_of_one_sampled_step_passes_and_less_fails(
    kind: str, scale: float, rate: float, delta: float
) -> None:
    """A step has ``ln(1 + q (e^eps - 1))`` at the delta q times that without sampling: a grid's error decided here."""
    curve = LaplaceCurve(1 / scale) if kind == "laplace" else GaussianCurve(1 / scale)
    exact = math.log1p(rate * math.expm1(curve.epsilon(delta / rate)))
    event = {kind: {"scale": scale, "sampling_probability": rate}}
    for claim, passed in ((exact, True), (0.99 * exact, exact == 0)):
        check = only(accountant([event], exact, delta), ApproxDP(claim, delta), "accountant and claim")
        assert check.passed is passed, check.finding
    assert only(accountant([event], exact, delta), name="accountant").passed is True


def test_the_bound_from_below_of_sampled_steps_is_below_the_largest_loss() -> None:
    event = {"laplace": {"scale": 0.7, "count": 2, "sampling_probability": 1e-4}}
    levels = accountant_levels(SelfReport("accountant", {"events": [event]}), 1e-10)
    assert not isinstance(levels, str)
    largest = 2 * math.log1p(1e-4 * math.expm1(1 / 0.7))
    assert 0.999 * largest < levels[0] < largest


def test_at_delta_0_epsilons_add() -> None:
    laplace = [{"laplace": {"scale": 2.0, "count": 10}}, {"laplace": {"scale": 1.0, "sampling_probability": 0.1}}]
    true = 5.0 + math.log1p(0.1 * math.expm1(1.0))
    assert only(accountant(laplace, true, 0.0), name="accountant").passed is True
    assert only(accountant(laplace, true * 0.9999, 0.0), name="accountant").passed is False
    assert only(accountant(laplace, true, 0.0), PureDP(5.0), "accountant and claim").passed is False
    gaussian = [{"gaussian": {"noise_multiplier": 100.0}}]
    assert only(accountant(gaussian, 1e9, 0.0), name="accountant").passed is False


@pytest.mark.parametrize(
    ("claim", "passed"),
    [
        (GaussianDP(0.5), True),
        (GaussianDP(0.499), False),
        (ZCDP(0.125), True),
        (ZCDP(0.124), False),
        (RenyiDP({4: 0.5}), True),
        (RenyiDP({4: 0.49}), False),
    ],
)
def test_composed_events_against_the_claim(claim: Guarantee, passed: bool) -> None:
    events = [{"gaussian": {"noise_multiplier": 20.0, "count": 100}}]
    assert only(accountant(events, 5.0), claim, "accountant and claim").passed is passed


def test_without_dp_accounting_sampled_steps_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    sampled = [{"gaussian": {"noise_multiplier": 1.0, "sampling_probability": 0.1}}]
    check = only(accountant(sampled, 1.0), name="accountant")
    assert check.passed is None
    assert "not installed" in check.finding
    assert only(accountant([{"gaussian": {"noise_multiplier": 1.0}}], 9.0), name="accountant").passed is True


@pytest.mark.parametrize(
    "event",
    [
        {"gaussian": {"noise_multiplier": 1e-3, "count": 1_000_000, "sampling_probability": 0.5}},
        {"gaussian": {"noise_multiplier": 1e-300, "sampling_probability": 0.5}},
        {"laplace": {"scale": 1e-9, "count": 10_000_000, "sampling_probability": 0.5}},
        {"laplace": {"scale": 1.0, "count": 10_000_000}},
    ],
)
def test_an_accountant_that_would_take_for_ever_is_not_checked(event: Any) -> None:
    assert only(accountant([event], 1.0), name="accountant").passed is None


@pytest.mark.parametrize(
    ("stated", "shows"),
    [
        (7, "7"),
        ({"events": [], "epsilon": 1.0, "delta": 0.1}, "[]"),
        ({"events": [{"cauchy": {}}], "epsilon": 1.0, "delta": 0.1}, "cauchy"),
        ({"events": ["gaussian"], "epsilon": 1.0, "delta": 0.1}, "'gaussian'"),
        ({"events": [{"gaussian": {"noise_multiplier": -1}}], "epsilon": 1.0, "delta": 0.1}, "-1.0"),
        ({"events": [{"gaussian": {"noise_multiplier": 1, "count": 1.5}}], "epsilon": 1.0, "delta": 0.1}, "1.5"),
        (
            {"events": [{"laplace": {"scale": 1, "sampling_probability": 2}}], "epsilon": 1.0, "delta": 0.1},
            "2.0",
        ),
        ({"events": [{"laplace": {"scale": 1}}], "epsilon": 1.0, "delta": 1.5}, "1.5"),
        ({"events": [{"laplace": {"scale": 1}}], "delta": 0.5}, "epsilon must be"),
    ],
)
def test_a_bad_accountant_fails_and_is_shown(stated: Any, shows: str) -> None:
    check = only({"accountant": stated}, name="accountant")
    assert check.passed is False
    assert shows in check.finding


# -------------------------------------------------------------------------------------- determinism


def seeded(data: Any, n: int, rng: np.random.Generator) -> Any:
    return rng.integers(0, 2, n)


def own_entropy(data: Any, n: int, rng: np.random.Generator) -> Any:
    return np.random.default_rng().random(n)


def constant_seed(data: Any, n: int, rng: np.random.Generator) -> Any:
    return np.random.default_rng(7).integers(0, 2, n)


def constant(data: Any, n: int, rng: np.random.Generator) -> Any:
    return np.zeros(n)


def fails(data: Any, n: int, rng: np.random.Generator) -> Any:
    raise RuntimeError("row 17 is 4242")


@pytest.mark.parametrize(
    ("target", "says", "passed", "words"),
    [
        (seeded, True, True, "repeats itself with the same seed"),
        (seeded, None, True, "repeats itself with the same seed"),
        (own_entropy, False, True, "entropy of its own"),
        (own_entropy, None, True, "entropy of its own"),
        (own_entropy, True, False, "says that it is seeded"),
        (constant_seed, None, False, "constant seed"),
        (constant_seed, False, False, "constant seed"),
        (constant_seed, True, False, "constant seed"),
        (constant, None, None, "vary too little"),
        (fails, None, None, "RuntimeError"),
    ],
)
def test_determinism(target: Callable[..., Any], says: bool | None, passed: bool | None, words: str) -> None:
    states = {} if says is None else {"seeded": says}
    check = only(states, sampler=Sampler(target, 3, "stated", 5.0), name="determinism")
    assert check.passed is passed
    assert words in check.finding
    assert "4242" not in check.finding


@pytest.mark.parametrize("inferred", [False, True])
def test_the_attribute_seeded_counts_unless_it_is_inferred(inferred: bool) -> None:
    class Target:
        seeded, hello = True, Hello(seeded=True, inferred=inferred)

        def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
            return own_entropy(data, n, rng)

    assert only({}, sampler=Sampler(Target(), 3, "stated", 5.0)).passed is inferred
    assert only({"seeded": True}, sampler=Sampler(Target(), 3, "stated", 5.0)).passed is False


@pytest.mark.parametrize("outputs", [[0, 0, 1], [0, 1, 2], [5, 5, 5], [1, 2, 1, 2]])
def test_the_chance_of_agreement_by_counting(outputs: list[int]) -> None:
    n = len(outputs)
    orders = list(itertools.permutations(outputs * 2))
    agree = sum(order[:n] == order[n:] for order in orders)
    assert chance_of_agreement(np.array(outputs)) == pytest.approx(agree / len(orders), rel=1e-9)


def test_fair_coins_vary_enough() -> None:
    assert chance_of_agreement([True, False] * (DRAWS // 2)) < 1e-9


def test_the_pairs_here_are_neighbours() -> None:
    ReplaceOne().check(PAIR)
