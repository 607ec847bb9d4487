"""zCDP, Renyi DP, trade-off curves and delta at a fixed epsilon, against definitions and brute force."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, special

import auditor
from auditor import ZCDP, ApproxDP, DeltaDP, GaussianDP, PureDP, RenyiDP, TradeoffCurve
from auditor.audits.exact import allow_rounding
from auditor.errors import SpecificationError
from auditor.evidence.power import divergence_rate, find_ceiling
from auditor.evidence.two_sample_bet import Stake, log_factors
from auditor.privacy.exact import CauchyCurve, FiniteLaw, GaussianCurve, GaussianLaw, LaplaceCurve, LaplaceLaw, curve
from auditor.privacy.guarantees import NOTIONS, Guarantee, parse_claim
from auditor.privacy.guarantees.base import cap_of, level_of
from auditor.privacy.guarantees.supporting_lines import lines_above, make_table
from benchmarks.cost import KLPrivacy

Array = NDArray[np.float64]


def gaussian_tradeoff(alpha: Array) -> Array:
    """Trade-off function of mu = 1 (Dong, Roth and Su 2022, equation 6)."""
    found: Array = special.ndtr(special.ndtri(1.0 - alpha) - 1.0)
    return found


CLAIMS: list[Guarantee] = [
    ZCDP(0.01),
    ZCDP(0.5),
    ZCDP(3.0),
    RenyiDP({2: 0.3, 8: 1.1}),
    RenyiDP({2: 1.0, 8: 4.0}),
    RenyiDP({1.5: 0.2}),
    DeltaDP(0.05, 1.0),
    DeltaDP(1e-6, 0.5),
    TradeoffCurve((0.0, 0.2, 1.0), (0.7, 0.4, 0.0), "two pieces"),
    TradeoffCurve.below(gaussian_tradeoff, name="mu = 1"),
]
claims = pytest.mark.parametrize("claim", CLAIMS, ids=str)


def renyi(order: float, p: float, q: float) -> float:
    """Renyi divergence of two coins, by its definition."""
    return math.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)


# ---------------------------------------------------------------------------------------- caps


@claims
def test_caps_are_increasing_concave_symmetric_and_above_the_diagonal(claim: Guarantee) -> None:
    q = np.linspace(0, 1, 101)
    for level in (0.7 * claim.level, claim.level, 1.5 * claim.level):
        p = claim.cap(q, level)
        assert np.all((p >= q - 1e-12) & (p <= 1))
        assert np.all(np.diff(p) >= -1e-12)
        assert np.all(np.diff(p, 2) <= 1e-12)
        assert np.all(claim.cap(q, 1.2 * level) >= p - 1e-12)
        inner = (p < 1 - 1e-9) & (q > 0)
        # Rounding of p by 1e-13 is multiplied by the slope of the cap, below 1e6 where p is not within 1e-9 of 1.
        np.testing.assert_allclose(claim.cap(1 - p[inner], level), 1 - q[inner], atol=1e-6)


@pytest.mark.parametrize("rho", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("q", [1e-4, 0.03, 0.5, 0.9])
def test_the_cap_of_zcdp_keeps_every_order_within_its_bound_and_touches_one(rho: float, q: float) -> None:
    p = float(ZCDP(rho).cap(np.array(q), rho))

    def worst(at: float) -> float:
        """Largest D_a / a of both orders of the pair over all a > 1, by a bounded search in ln(a - 1)."""

        def loss(log: float) -> float:
            a = 1 + math.exp(log)
            return -max(_safe(a, at, q), _safe(a, q, at)) / a

        starts = np.linspace(-7, 7, 141)
        best = starts[int(np.argmin([loss(s) for s in starts]))]
        return -float(optimize.minimize_scalar(loss, bounds=(best - 0.1, best + 0.1), method="bounded").fun)

    # The orders that are tested miss the largest ratio by at most 1.5 %, as their docstring says.
    assert rho * (1 - 1e-9) <= worst(p) <= rho * 1.015


def _safe(a: float, p: float, q: float) -> float:
    logs = (a * math.log(p) - (a - 1) * math.log(q), a * math.log1p(-p) - (a - 1) * math.log1p(-q))
    return float(np.logaddexp(*logs)) / (a - 1)


def test_the_cap_of_renyi_dp_is_where_a_divergence_meets_its_bound() -> None:
    claim = RenyiDP({2: 0.3, 8: 1.1})
    for q in (0.01, 0.2, 0.6, 0.95):
        p = float(claim.cap(np.array(q), 1.0))
        ratios = [renyi(a, *pair) / r for a, r in claim.bounds.items() for pair in ((p, q), (q, p))]
        assert max(ratios) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("rho", [0.02, 0.5])
def test_an_event_of_gaussian_noise_shows_the_part_of_rho_that_the_report_says(rho: float) -> None:
    # Design, section 3: about 70 % at moderate probabilities, 84 % at 1e-3, 90 % at 1e-6.
    mu = math.sqrt(2 * rho)
    claim = ZCDP(rho)
    shown = {}
    for q in (0.3, 1e-3, 1e-6):
        p = special.ndtr(special.ndtri(q) + mu)
        shown[q] = float(claim.level_of(np.array(p), np.array(q))) / rho
    assert 0.6 < shown[0.3] < 0.75
    assert 0.75 < shown[1e-3] < 0.9
    assert 0.85 < shown[1e-6] < 0.95


def test_delta_at_an_epsilon_is_the_same_claim_as_epsilon_at_a_delta() -> None:
    q = np.linspace(0, 1, 501)
    np.testing.assert_array_equal(DeltaDP(0.05, 1.0).cap(q, 0.05), ApproxDP(1.0, 0.05).cap(q, 1.0))
    p = np.full_like(q, 0.6)
    inside = ApproxDP(1.0, 0.05).level_of(p, q) <= 1.0
    np.testing.assert_array_equal(DeltaDP(0.05, 1.0).level_of(p, q) <= 0.05, inside)


def test_a_trade_off_curve_of_two_lines_is_pure_dp() -> None:
    e = math.e
    kink = 1 / (1 + e)
    claim = TradeoffCurve((0.0, kink, 1.0), (1.0, kink, 0.0))
    q = np.linspace(0, 1, 501)
    np.testing.assert_allclose(claim.cap(q, 1.0), PureDP(1.0).cap(q, 1.0), atol=1e-12)


@pytest.mark.parametrize("points", [50, 999])
def test_rounding_never_makes_a_claimed_cap_smaller(points: int) -> None:
    """On straight pieces the slopes are all noise: extended over the whole interval they would cut into the cap."""
    x = np.union1d(np.linspace(0, 1, points), 1 / (1 + math.e))
    f = np.maximum(0.0, np.maximum(1 - math.e * x, (1 - x) / math.e))
    claim = TradeoffCurve(tuple(x.tolist()), tuple(f.tolist()))
    assert (claim.cap(x, 1.0) - (1 - f)).min() >= -4 * np.finfo(float).eps  # of the last few additions
    assert (claim.cap(x, 1.0) - (1 - f)).max() <= 1e-12  # and hardly larger


def test_a_trade_off_function_is_replaced_by_the_larger_of_itself_and_its_inverse() -> None:
    # f(a) = max(0, 1 - 3a) allows the point p = 0.3, q = 0.1 and forbids its mirror image p = 0.9, q = 0.7 not at all:
    # c(0.7) = 1. Mirrored, c(1 - p) = 1 - f(0.7) = 1. The inverse of c is q / 3 up to 1.
    claim = TradeoffCurve((0.0, 1 / 3, 1.0), (1.0, 0.0, 0.0))
    q = np.array([0.1, 0.3, 0.5, 0.9])
    inverse = 1 - (1 - q) / 3  # the cap whose mirror image is p = 3 q
    np.testing.assert_allclose(claim.cap(q, 1.0), np.minimum(np.minimum(3 * q, 1), inverse), atol=1e-12)


@pytest.mark.parametrize("points", [8, 40, 200])
def test_a_curve_below_a_function_is_nowhere_above_it_and_close(points: int) -> None:
    x = np.concatenate([np.linspace(0, 1, 20_001), np.geomspace(1e-9, 0.1, 500)])
    for f in (gaussian_tradeoff, lambda a: np.maximum(0.0, np.maximum(1 - math.e * a, (1 - a) / math.e))):
        claim = TradeoffCurve.below(f, points)
        gap = f(x) - np.interp(x, claim.alpha, claim.beta)
        assert gap.min() >= -1e-12
        if points == 200:
            assert gap.max() < 0.005


# ------------------------------------------------------------------------------------ tangents


@claims
def test_tangents_are_nowhere_below_the_cap(claim: Guarantee) -> None:
    rng = np.random.default_rng(0)
    levels = claim.level * np.array([0.6, 1.0])
    p, q = rng.random((2000, 1)), rng.random((2000, 1)) * np.exp(-8 * rng.random((2000, 1)))
    beyond = claim.level_of(p, q)[:, 0] > levels[1]
    p, q = p[beyond][:100], q[beyond][:100]
    p0, q0, slope = (value[:, :, None] for value in claim.tangent(p, q, levels))
    assert np.all(claim.level_of(p0, q0) >= levels[:, None] * (1 - 1e-9))
    near = np.clip(q0 + np.linspace(-1e-3, 1e-3, 21), 1e-9, 1 - 1e-9)
    far = np.broadcast_to(
        np.concatenate([np.linspace(0.01, 0.99, 25), np.geomspace(1e-9, 0.1, 20)]), (*q0.shape[:2], 45)
    )
    at = np.concatenate([near, far], axis=2)
    line = p0 + slope * (at - q0)
    assert np.all(line >= at)
    # Where the line is below 1 it has to be outside: its points are at the level or above, but for rounding, which
    # slopes of up to 1e4 enlarge and which matters most where p is near 1.
    inside = claim.level_of(np.minimum(line, 1.0), at) < levels[:, None] * (1 - 1e-6)
    assert not np.any(inside & (line < 1 - 1e-9))


@claims
def test_the_projection_grows_nearly_as_fast_as_the_best_one(claim: Guarantee) -> None:
    rng = np.random.default_rng(1)
    p, q = rng.random(4_000), rng.random(4_000) * np.exp(-8 * rng.random(4_000))
    beyond = claim.level_of(p, q) > 1.05 * claim.level
    p, q = p[beyond][:40], q[beyond][:40]
    found = divergence_rate(p, q, claim, claim.level)
    grid = special.expit(np.linspace(-16, 16, 1_501))
    cap = np.minimum(claim.cap(grid, claim.level), 1.0)
    with np.errstate(divide="ignore"):
        brute = np.array([_divergence(a, b, cap, grid).min() for a, b in zip(p, q, strict=True)])
    assert np.all(found <= brute * 1.001 + 1e-6)  # the grid is no finer than that
    # One Renyi order at a time, and the brute force's own grid, cost a few per cent in the worst case.
    assert np.median(found / brute) > 0.99
    assert np.min(found / brute) > 0.9


def _divergence(p: float, q: float, p0: Array, q0: Array) -> Array:
    total = special.rel_entr(p, p0) + special.rel_entr(1 - p, 1 - p0)
    return np.asarray(total + special.rel_entr(q, q0) + special.rel_entr(1 - q, 1 - q0))


# ------------------------------------------------------------------ what the cap alone is good for


@dataclass(frozen=True)
class CapOnly(Guarantee):
    """mu-GDP of which only the cap is given."""

    mu: float
    notion: ClassVar[str] = "GDP by its cap"
    symbol: ClassVar[str] = "μ"

    @property
    def level(self) -> float:
        return self.mu

    def cap(self, q: Array, level: Array | float) -> Array:
        found: Array = special.ndtr(special.ndtri(q) + level)
        return found


def test_all_else_follows_from_the_cap() -> None:
    alone, closed = CapOnly(1.0), GaussianDP(1.0)
    rng = np.random.default_rng(2)
    p, q = rng.random(200), rng.random(200)
    p, q = np.maximum(p, q), np.minimum(p, q)
    np.testing.assert_allclose(alone.level_of(p, q), closed.level_of(p, q), atol=1e-8)
    beyond = closed.level_of(p, q) > 1.1
    rates = [divergence_rate(p[beyond], q[beyond], claim, 1.0) for claim in (alone, closed)]
    # Lines from values of the cap alone are those of a level 0.05 % higher: less growth, by 1 % at most.
    assert np.all(rates[0] <= rates[1] * (1 + 1e-5))
    np.testing.assert_allclose(rates[0], rates[1], rtol=0.01)
    assert find_ceiling(1000, alone, 0.05) == pytest.approx(find_ceiling(1000, closed, 0.05))
    pair = curve(GaussianLaw(0.0, 1.0), GaussianLaw(1.3, 1.0))
    assert alone.exact_level(pair) == pytest.approx(1.3)
    assert str(alone) == "μ = 1"
    assert alone.parameters() == {"mu": 1.0}
    pair_of = auditor.Pair(np.array([1]), np.array([0]))
    result = auditor.audit(_gaussian, CapOnly(0.5), pair_of, draws=20_000, seed=1)
    assert result.verdict == "violation"
    assert 0.5 < (result.lower_bound or 0) <= 1


def _gaussian(data: NDArray[np.int64], n: int, rng: np.random.Generator) -> Array:
    return np.asarray(np.round((data[0] + rng.standard_normal(n)) * 1024) / 1024)


#: Levels from 0 to where an event is certain.
LEVELS = np.array([0.0, 0.02, 0.5, 12.0])


@pytest.mark.parametrize(
    "claim",
    [*CLAIMS[2:6], *CLAIMS[8:], KLPrivacy(1.0), CapOnly(1.0), PureDP(1.0), ApproxDP(1.0, 0.05), DeltaDP(0.05, 1.0)],
    ids=str,
)
def test_no_line_of_a_table_is_below_the_cap(claim: Guarantee) -> None:
    """At 10,000 probabilities from 1e-300 to 1 - 1e-16, in extended precision, for every ninth line of every level."""
    rng = np.random.default_rng(4)
    ends = np.geomspace(1e-300, 1e-12, 1_000)
    q = np.unique(np.concatenate([ends, special.expit(rng.uniform(-36, 36, 9_000)), [0.0, 1.0, 1.0 - 2.0**-53]]))
    q = q[::10] if isinstance(claim, ZCDP) else q  # 46 orders, each at its cap, take that much longer
    levels = LEVELS[claim.highest > LEVELS]
    lines = claim.lines(levels) if type(claim).tangent is Guarantee.tangent else lines_above(claim.cap, levels)
    points = make_table(lines).lines
    cap = np.minimum(claim.cap(q, levels[:, None]), 1.0)
    for p0, q0, slope in zip(*(value.reshape(len(levels), -1)[:, ::9].T for value in points), strict=True):
        away = q.astype(np.longdouble) - q0[:, None]
        assert (p0[:, None] + slope[:, None] * away - cap).min() >= 0


@pytest.mark.parametrize("claim", [*CLAIMS[1:6], *CLAIMS[8:], KLPrivacy(0.5), CapOnly(1.0)], ids=str)
def test_the_table_makes_a_level_larger_by_less_than_half_a_per_cent(claim: Guarantee) -> None:
    """The least of all lines at q is on the cap of a slightly higher level: what a lower bound loses at most."""
    q = special.expit(np.linspace(-13.0, 2.0, 400))
    p0, q0, slope = (value[:, None] for value in make_table(claim.lines(np.array([claim.level]))).lines)
    p = (p0 + slope * (q - q0)).min(axis=0)
    shown = claim.level_of(p, q)[p < 1 - 1e-9] / claim.level - 1
    assert shown.max() < 0.005
    assert shown.mean() < 0.0005


@pytest.mark.parametrize("claim", [*CLAIMS[1:6], *CLAIMS[8:], KLPrivacy(0.5), CapOnly(1.0)], ids=str)
def test_no_bet_on_tabulated_lines_gains_under_the_null(claim: Guarantee) -> None:
    """The expected factor of one draw a side, by its definition, over 1,000 points of the cap."""
    q = np.concatenate([np.geomspace(1e-300, 1e-13, 50), special.expit(np.linspace(-30, 36, 950))])
    rng = np.random.default_rng(5)
    pairs = np.sort(special.expit(rng.uniform(-12, 6, (30, 2))), axis=1)
    levels = claim.level * np.array([0.5, 1.0])
    cap = np.minimum(claim.cap(q, levels[:, None]), 1.0)
    p_in, q_in = np.stack([1 - cap, cap]), np.stack([1 - q, q])
    gained = 0
    for b, a in [*pairs, (1e-12, 1.0), (0.0, 0.1), (1 - 1e-6, 1 - 1e-9)]:
        for k, level in enumerate(levels):
            cells = [
                [log_factors([Stake(0, 0, (a,), (b,), x, y)], claim, np.array([level]))[0, 0, :, 0] for y in SIDES]
                for x in SIDES
            ]
            factors = np.exp(np.array(cells))
            gained += bool((factors > 1).any())
            expected = np.einsum("xn,yn,xye->ne", p_in[:, k], q_in, factors)
            assert expected.max() <= 1 + 1e-12
    assert gained > 15


#: Counts of one draw outside and inside of an event.
SIDES = ((1, 0), (0, 1))


def test_a_notion_without_a_cap_is_refused() -> None:
    with pytest.raises(TypeError, match="Nothing must define cap or level_of"):
        type("Nothing", (Guarantee,), {})


def test_a_cap_and_its_inverse_are_found_from_one_another() -> None:
    claim = ApproxDP(1.0, 0.01)
    q = np.linspace(0.001, 0.9, 50)
    np.testing.assert_allclose(cap_of(claim.level_of, q, 0.7), claim.cap(q, 0.7), atol=1e-12)
    p = claim.cap(q, 0.7)
    np.testing.assert_allclose(level_of(claim.cap, p, q, 20.0), np.where(p > q, 0.7, 0.0), atol=1e-9)
    assert level_of(claim.cap, np.array(0.5), np.array(0.0), 20.0) == np.inf


# -------------------------------------------------------------------------------- exact levels


def test_the_exact_level_of_gaussian_noise() -> None:
    pair = curve(GaussianLaw(0.0, 2.0), GaussianLaw(1.0, 2.0))
    assert ZCDP(1.0).exact_level(pair) == pytest.approx(0.125)
    assert RenyiDP({2: 1.0, 8: 2.0}).exact_level(pair) == pytest.approx(max(2 / 8, 8 / 8 / 2))
    assert DeltaDP(0.1, 0.5).exact_level(pair) == pair.delta(0.5)
    same = curve(GaussianLaw(0.0, 1.0), GaussianLaw(1.0, 1.0))
    factor = TradeoffCurve.below(gaussian_tradeoff).exact_level(same)
    assert 0.97 < factor <= 1


@pytest.mark.parametrize("distance", [1e-6, 1e-4, 0.01, 1.0, 5.0, 20.0])
def test_noise_with_exactly_the_claimed_curve_keeps_it_and_a_little_less_noise_does_not(distance: float) -> None:
    """At q = 1 - 1e-12 few digits of 1 - p are known: by these the level of Laplace noise was 1.48, or infinite."""
    corner = special.expit(-distance)
    lines = TradeoffCurve((0.0, corner, 1.0), (1.0, corner, 0.0), "of pure DP")
    for kind in (LaplaceCurve, CauchyCurve):
        pair = kind(distance)
        for claim in (lines, TradeoffCurve.below(lambda alpha, pair=pair: 1.0 - pair.tradeoff(alpha))):  # type: ignore[misc]
            assert claim.exact_level(pair) <= allow_rounding(claim)
            assert claim.exact_level(kind(1.01 * distance)) > 1.0 + 1e-6


def test_the_exact_level_of_two_coins_is_theirs() -> None:
    p, q = 0.3, 0.1
    pair = curve(FiniteLaw((1, 0), np.array([p, 1 - p])), FiniteLaw((1, 0), np.array([q, 1 - q])))
    # For a coin one event is the whole distribution, so events show all of it.
    assert ZCDP(1.0).exact_level(pair) == pytest.approx(ZCDP(1.0).event_level(pair), rel=0.015)
    worst = max(renyi(2, p, q), renyi(2, q, p))
    assert RenyiDP({2: 0.5}).exact_level(pair) == pytest.approx(worst / 0.5)


@pytest.mark.parametrize("k", [0.306, 0.344, 0.02])
def test_the_exact_level_of_a_coin_is_found_where_its_curve_bends(k: float) -> None:
    """Between the points of a grid up to 1 % of it was missed, so that a violation was consistent."""
    pair = curve(FiniteLaw((0, 1), np.array([1 - k, k])), FiniteLaw((0, 1), np.array([k, 1 - k])))
    f_dp = TradeoffCurve.below(gaussian_tradeoff)
    for claim in (f_dp, ZCDP(0.1), RenyiDP({2: 0.5})):
        wanted = pytest.approx(float(claim.level_of(np.array(1 - k), np.array(k))), rel=1e-9)
        assert claim.event_level(pair) == wanted
    assert f_dp.exact_level(pair) == pytest.approx(f_dp.event_level(pair), rel=1e-9)


def test_an_event_shows_less_than_the_exact_level_of_laplace_noise() -> None:
    pair = curve(LaplaceLaw(0.0, 1.0), LaplaceLaw(1.0, 1.0))
    claim = ZCDP(0.5)
    assert 0.5 * claim.exact_level(pair) < claim.event_level(pair) < claim.exact_level(pair)


@pytest.mark.parametrize("claim", [ZCDP(0.5), RenyiDP({2: 1.0, 16: 8.0})], ids=str)
@pytest.mark.parametrize("shift", [1.0, 3.0, 8.0, 30.0])
def test_an_event_shows_no_more_than_the_exact_level_of_little_noise(claim: ZCDP | RenyiDP, shift: float) -> None:
    """An event that is certain but for 1e-13 and less has no digits of its complement, and showed an infinite level."""
    for pair in (GaussianCurve(shift), LaplaceCurve(shift)):
        assert 0.05 * claim.exact_level(pair) < claim.event_level(pair) <= claim.exact_level(pair)


# ---------------------------------------------------------------------------- claims in words


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("epsilon=1", PureDP(1.0)),
        (" epsilon = 1 , delta=1e-6", ApproxDP(1.0, 1e-6)),
        ("delta=1e-6, at_epsilon=1", DeltaDP(1e-6, 1.0)),
        ("mu=0.5", GaussianDP(0.5)),
        ("rho=0.1", ZCDP(0.1)),
        ("renyi=2:0.3,8:1.1", RenyiDP({2: 0.3, 8: 1.1})),
        ("renyi = 8:1.1, 2:0.3", RenyiDP({2: 0.3, 8: 1.1})),
    ],
)
def test_a_claim_is_read_from_text(text: str, claim: Guarantee) -> None:
    assert parse_claim(text) == claim


def test_a_trade_off_curve_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "half.csv"
    path.write_text("alpha,beta\n0,0.7\n0.2,0.4\n1,0\n", encoding="utf-8")
    claim = parse_claim(f"tradeoff={path}")
    assert claim == TradeoffCurve((0.0, 0.2, 1.0), (0.7, 0.4, 0.0), "half")
    assert str(claim) == "trade-off curve half"


@pytest.mark.parametrize(
    ("rows", "why"),
    [("", "it is empty"), ("alpha,beta\n0,1\n0.5,0.2,7\n1,0\n", r"Line #3 \(got 3 columns instead of 2\)")],
)
def test_a_file_of_no_trade_off_curve_is_refused_in_one_line(
    tmp_path: Path, rows: str, why: str, recwarn: pytest.WarningsRecorder
) -> None:
    path = tmp_path / "curve.csv"
    path.write_text(rows, encoding="utf-8")
    with pytest.raises(SpecificationError, match=f"curve.csv' is no CSV file .*{why}") as caught:
        parse_claim(f"tradeoff={path}")
    assert "\n" not in str(caught.value)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "''"),
        ("epsilon", "'epsilon'"),
        ("epsilon=x", "'x'"),
        ("epsilon=1, epsilon=2", "'epsilon=2'"),
        ("epsilon=1,2", "'1,2'"),
        ("rho=-1", "-1"),
        ("rho=0.1, mu=1", "rho, mu"),
        ("delta=1e-6", "delta"),
        ("renyi=2", "'2'"),
        ("renyi=2:0.3,2:0.4", "'2:0.4'"),
        ("renyi=1:0.3", "orders must be above 1 and bounds above 0, got {1.0: 0.3}"),
        ("renyi=0.5:0.3", "orders must be above 1 and bounds above 0, got {0.5: 0.3}"),
        ("tradeoff=nowhere.csv", "'nowhere.csv'"),
    ],
)
def test_a_claim_that_cannot_be_read_is_shown(text: str, shown: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        parse_claim(text)
    assert shown in str(caught.value)


@pytest.mark.parametrize(
    ("alpha", "beta", "why"),
    [
        ((0.0, 1.0), (1.0,), "as many"),
        # The slope of -1e8 near 0 is no excuse for the one that falls from -1 to -1.00005.
        (
            (0.0, 1e-9, 0.3, 0.5, 0.7, 1.0),
            (1.0, 0.9, 0.5, 0.3, 0.09999, 0.0),
            "convex .* 0.3 at alpha 0.5, .* -1.00005",
        ),
        ((0.1, 1.0), (0.9, 0.0), "from 0 to 1"),
        ((0.0, 0.5, 0.5, 1.0), (1.0, 0.4, 0.3, 0.0), "increase"),
        ((0.0, 0.5, 1.0), (1.0, 0.6, 0.0), "1 - alpha"),
        (
            (0.0, 0.5, 0.6, 1.0),
            (0.5, 0.4, 0.1, 0.0),
            "convex in alpha, got beta 0.4 at alpha 0.5, where the slope falls",
        ),
        ((0.0, 0.5, 1.0), (0.1, 0.2, 0.0), "decreasing in alpha, got beta 0.1 at alpha 0.0 and beta 0.2 at alpha 0.5"),
        ((0.0, math.nan, 1.0), (1.0, 0.2, 0.0), "numbers"),
        (("a", "b"), (1.0, 0.0), "numbers"),
    ],
)
def test_what_is_no_trade_off_function_is_refused_and_shown(
    alpha: tuple[float, ...], beta: tuple[float, ...], why: str
) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        TradeoffCurve(alpha, beta)
    shown = str(caught.value)
    assert repr(alpha) in shown or repr(beta) in shown or "at alpha" in shown


@pytest.mark.parametrize("bounds", [{}, {1: 0.5}, {0.5: 1.0}, {2: 0.0}, {2: -1}, {2: math.inf}, {"2": 1.0}, [(2, 1)]])
def test_bad_renyi_bounds_are_refused_and_shown(bounds: object) -> None:
    with pytest.raises(ValueError, match=r"order|bound"):
        RenyiDP(bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("claim", [ZCDP(0.3), RenyiDP({2: 0.3}), DeltaDP(1e-5, 1.0), CLAIMS[8]], ids=str)
def test_the_representation_of_a_claim_makes_it_again(claim: Guarantee) -> None:
    assert eval(repr(claim), {name: getattr(auditor, name) for name in auditor.__all__}) == claim
    assert hash(claim) == hash(eval(repr(claim), {name: getattr(auditor, name) for name in auditor.__all__}))


def test_every_notion_has_a_name_a_symbol_and_a_text_of_its_own() -> None:
    assert len({notion.notion for notion in NOTIONS.values()}) == len(NOTIONS) >= 7
    assert all(notion.symbol for notion in NOTIONS.values())
