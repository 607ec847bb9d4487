"""Testers of the definitions: exact ones against quadrature and brute force, sampled ones against their promise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.audits.inequality import Inequality
from auditor.privacy.exact import (
    CauchyLaw,
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    Law,
    ProductLaw,
    TwoSidedGeometricLaw,
    curve,
)
from experiments.document_001_lecture_dp import definitions
from mechanisms.additive_noise.gaussian import analytic_mu
from mechanisms.composition.testers import (
    DeltaOnBothSidesTester,
    DeltaTwiceTester,
    OneOrderTester,
    PointMassRatio,
    SampledTester,
    ScoredOnTrainingTester,
    draw,
    hockey_stick,
    largest_loss,
    loss_event,
)

EPSILONS = [0.0, 0.2, 0.7, 1.1]


def density(law: Law, x: Any) -> Any:
    match law:
        case LaplaceLaw():
            return stats.laplace.pdf(x, law.loc, law.scale)
        case GaussianLaw():
            return stats.norm.pdf(x, law.loc, law.sigma)
        case CauchyLaw():
            return stats.cauchy.pdf(x, law.loc, law.scale)
    raise AssertionError(law)


# -------------------------------------------------------------------------------------- exact


def test_the_largest_loss() -> None:
    assert largest_loss([0.5, 0.3, 0.2], [0.25, 0.35, 0.4]) == pytest.approx(math.log(2), rel=1e-15)
    assert largest_loss([0.2, 0.8, 0.0], [0.4, 0.6, 0.0]) == pytest.approx(math.log(2), rel=1e-15)
    assert largest_loss([1.0, 0.0], [0.5, 0.5]) == math.inf
    assert largest_loss([0.5, 0.5], [1.0, 0.0]) == math.inf
    assert largest_loss([1.0], [1.0]) == 0.0


def test_the_hockey_stick_is_the_largest_over_all_events() -> None:
    rng = np.random.default_rng(3)
    for epsilon in EPSILONS:
        p, q = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(9))
        best = max(
            sum(p[i] - math.exp(epsilon) * q[i] for i in event)
            for size in range(10)
            for event in itertools.combinations(range(9), size)
        )
        assert hockey_stick(p, q, epsilon) == pytest.approx(best, abs=1e-14)


@pytest.mark.parametrize(
    ("law_p", "law_q"),
    [
        (LaplaceLaw(0.0, 2.0), LaplaceLaw(3.0, 2.0)),
        (GaussianLaw(1.0, 0.5), GaussianLaw(0.3, 0.5)),
        (CauchyLaw(0.0, 0.4), CauchyLaw(0.0, 1.7)),
    ],
)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_event_of_the_largest_losses_by_quadrature(law_p: Law, law_q: Law, epsilon: float) -> None:
    # The whole line as a bounded interval, in cells of 8e-6, because the event has an edge.
    angle = (np.arange(400_000) + 0.5) / 400_000 * math.pi - math.pi / 2
    x = np.tan(angle)
    held = density(law_p, x) >= math.exp(epsilon) * density(law_q, x)
    p, q = ((density(law, x) * held / np.cos(angle) ** 2).mean() * math.pi for law in (law_p, law_q))
    # At most one cell is missed at each of two edges, where the integrand is below 4.
    assert loss_event(law_p, law_q, epsilon) == pytest.approx((p, q), abs=1e-4)
    p, q = loss_event(law_p, law_q, epsilon)
    assert p - math.exp(epsilon) * q == pytest.approx(curve(law_p, law_q).delta(epsilon), abs=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 1.5, 2.0, 2.6])
def test_the_event_of_geometric_laws_by_a_sum(steps: int, epsilon: float) -> None:
    laws = TwoSidedGeometricLaw(3, math.exp(0.5)), TwoSidedGeometricLaw(3 + steps, math.exp(0.5))
    k = np.arange(-120, 130)
    p, q = (np.exp(-0.5 * np.abs(k - law.loc)) * math.tanh(0.25) for law in laws)
    held = 0.5 * (np.abs(k - laws[1].loc) - np.abs(k - laws[0].loc)) >= epsilon - 1e-12
    assert loss_event(*laws, epsilon) == pytest.approx((p[held].sum(), q[held].sum()), abs=1e-14)


def test_pairs_without_a_formula_are_refused() -> None:
    pairs: list[tuple[Law, Law]] = [
        (LaplaceLaw(0.0, 1.0), LaplaceLaw(0.0, 2.0)),
        (GaussianLaw(0.0, 1.0), LaplaceLaw(0.0, 1.0)),
        (CauchyLaw(0.0, 2.0), CauchyLaw(0.0, 1.0)),
    ]
    for first, second in pairs:
        with pytest.raises(ValueError, match=r"expected two distributions of one family .*, got "):
            loss_event(first, second, 1.0)


def test_tails_of_calibrated_gaussian_noise_in_numbers_of_the_catalogue() -> None:
    for epsilon, tail, factor in ((1.0, 1.6e-4, 16), (0.1, 1.1e-3, 111)):
        mu = analytic_mu(epsilon, 1e-5)
        # The loss is normal with mean mu^2 / 2 and variance mu^2.
        expected = stats.norm.sf(epsilon, mu**2 / 2, mu)
        found, _ = loss_event(GaussianLaw(0.0, 1.0), GaussianLaw(mu, 1.0), epsilon)
        assert found == pytest.approx(expected, rel=1e-9)
        assert found == pytest.approx(tail, rel=0.02)
        assert round(found / 1e-5) == factor


def test_the_converse_is_the_one_with_the_factor() -> None:
    # Of two outcomes the first has the loss eps' exactly: the bound is attained.
    low, high, q = 0.5, 1.2, 0.1
    p = math.exp(high) * q
    tail, _ = loss_event(FiniteLaw((0, 1), np.array([p, 1 - p])), FiniteLaw((0, 1), np.array([q, 1 - q])), high)
    delta = hockey_stick([p, 1 - p], [q, 1 - q], low)
    assert tail == pytest.approx(delta / -math.expm1(low - high), rel=1e-12)


@pytest.mark.parametrize("entry", [definitions.definitions, definitions.tail_condition], ids=lambda entry: entry.id)
def test_computed_statements_are_as_expected(entry: Any) -> None:
    drafts = [claim.draft for claim in entry.claims() if isinstance(claim.draft.guarantee, Inequality)]
    assert drafts
    for draft in drafts:
        failed = [row for row in draft.subject() if draft.guarantee.excess(*row[1:]) > 0]
        assert bool(failed) == (draft.expected == "deviation"), draft.case


# ------------------------------------------------------------------------------------ sampled


@pytest.mark.parametrize(
    "law",
    [
        LaplaceLaw(1.0, 2.0),
        GaussianLaw(-1.0, 0.5),
        CauchyLaw(2.0, 3.0),
        TwoSidedGeometricLaw(2, 1.7, 0.5),
        FiniteLaw((0, 2, 5), np.array([0.2, 0.5, 0.3])),
    ],
    ids=lambda law: type(law).__name__,
)
def test_draws_follow_the_law(law: Any) -> None:
    n = 20_000
    outputs = np.sort(draw(law, n, np.random.default_rng(4)))
    if isinstance(law, FiniteLaw):
        grid = np.array(law.outcomes, dtype=float)
        stated = law.probabilities.cumsum()
    else:
        grid = outputs
        stated = law.cdf(outputs)
    empirical = np.searchsorted(outputs, grid, side="right") / n
    # Dvoretzky, Kiefer, Wolfowitz: 2 exp(-2 n t^2) = 2e-7 for each of five distributions, 1e-6 in all.
    assert np.abs(empirical - stated).max() <= math.sqrt(math.log(2 / 2e-7) / (2 * n)) + 1 / n


def test_draws_of_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a distribution of one number, got ProductLaw"):
        draw(ProductLaw((LaplaceLaw(0.0, 1.0),)), 1, np.random.default_rng(0))


def reference_audit(tester: SampledTester, data: tuple[Law, Law], rng: np.random.Generator) -> float:
    """One audit, written out: best prefix of cells in either order on one half, judged on the other."""
    cells, runs = len(tester.edges) + 1, tester.runs
    samples = [[draw(law, runs, rng) for law in data] for _ in range(2)]
    training, scoring = (
        [np.bincount(np.searchsorted(tester.edges, x, side="right"), minlength=cells) for x in half] for half in samples
    )

    def bound(p: int, q: int) -> float:
        low = stats.beta.ppf(tester.error / 2, p, runs - p + 1) if p else 0.0
        high = stats.beta.isf(tester.error / 2, q + 1, runs - q) if q < runs else 1.0
        return math.log((low - tester.delta) / high) if low > tester.delta else -math.inf

    candidates = []
    for first, second in ((0, 1), (1, 0)):
        ratio = (training[first] + 0.5) / (training[second] + 0.5)
        order = sorted(range(cells), key=lambda c: -ratio[c])
        for size in range(1, cells + 1):
            event = order[:size]
            promise = bound(int(training[first][event].sum()), int(training[second][event].sum()))
            candidates.append((promise, bound(int(scoring[first][event].sum()), int(scoring[second][event].sum()))))
    return max(0.0, max(candidates, key=lambda candidate: candidate[0])[1])


def test_an_audit_is_the_written_out_one() -> None:
    data = (LaplaceLaw(0.0, 1.0), LaplaceLaw(1.0, 1.0))
    for seed in range(20):
        tester = SampledTester((-1.0, -0.3, 0.2, 0.9, 2.0), 0.01, 300)
        found = float(tester(data, 1, np.random.default_rng(seed))[0])
        assert found == pytest.approx(reference_audit(tester, data, np.random.default_rng(seed)), abs=1e-12)


def test_the_tester_keeps_its_promise_where_the_wrong_ones_break_it() -> None:
    """False alarm at most 1e-7 for each that is right; the wrong ones' true rates are above 50 %, against 5 %."""
    n, rng = 1000, np.random.default_rng(5)
    uniform = FiniteLaw(tuple(range(64)), np.full(64, 1 / 64))
    cells = tuple(k + 0.5 for k in range(63))
    gaussian = (GaussianLaw(0.0, 1.0), GaussianLaw(1.0, 1.0))
    edges = tuple(np.linspace(-3.0, 4.0, 15).tolist())
    level = curve(*gaussian).epsilon(0.05)
    for tester, data, truth, holds in (
        (SampledTester(cells), (uniform, uniform), 0.0, True),
        (ScoredOnTrainingTester(cells), (uniform, uniform), 0.0, False),
        (SampledTester(edges, 0.05), gaussian, level, True),
        (DeltaTwiceTester(edges, 0.05), gaussian, level, True),
        (DeltaOnBothSidesTester(edges, 0.05), gaussian, level, False),
        (PointMassRatio(), gaussian, level, False),
    ):
        count = int((tester(data, n, rng) > truth).sum())
        # P-value of so many failures at a rate of 5 %.
        assert (stats.binom.sf(count - 1, n, 0.05) > 1e-7) == holds, tester


def test_one_order_misses_what_the_other_shows() -> None:
    data = (FiniteLaw((0,), np.ones(1)), FiniteLaw((0, 1), np.array([0.5, 0.5])))
    rng = np.random.default_rng(6)
    assert OneOrderTester((0.5,))(data, 200, rng).max() <= math.log(1 / 0.3)
    # 200 outputs of probability 1/2: fewer than 60 have a probability of 1e-9 an audit, and 60 still certify 2.5.
    assert SampledTester((0.5,))(data, 200, rng).min() > 2.4


def test_point_masses_of_discrete_laws_are_frequencies() -> None:
    data = (FiniteLaw((0, 1), np.array([0.5, 0.5])), FiniteLaw((0, 1), np.array([0.25, 0.75])))
    found = PointMassRatio(runs=500)(data, 50, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    first, second = (draw(law, 50 * 500, rng).reshape(50, 500).mean(axis=1) for law in data)
    expected = np.maximum(np.log(first / second), np.log((1 - first) / (1 - second)))
    assert found == pytest.approx(np.maximum(expected, 0.0), rel=1e-9)


@pytest.mark.parametrize(
    "build",
    [
        lambda: SampledTester(()),
        lambda: SampledTester((1.0, 1.0)),
        lambda: SampledTester((0.0,), 1.0),
        lambda: SampledTester((0.0,), runs=0),
        lambda: SampledTester((0.0,), error=0.0),
        lambda: PointMassRatio()((GaussianLaw(0.0, 1.0),) * 2, 0, np.random.default_rng(0)),
    ],
)
def test_refusals_show_what_was_expected(build: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"expected .*, got "):
        build()
