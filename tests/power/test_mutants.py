"""The oracle of ``benchmarks/mutants.py``, the distributions it rests on, and mutants found within its factor."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, special, stats

from auditor.calibration.oracles import Masses, compute_rate, from_cdfs, single_event_rate, whole_distribution_rate
from auditor.claims import Claim
from auditor.privacy.exact import GaussianCurve, LaplaceCurve
from auditor.privacy.guarantees import ApproxDP, GaussianDP, PureDP
from auditor.targets.sampler import make_generator
from benchmarks.mutant_distributions import float_masses, from_curve, masses_of
from benchmarks.mutants import FACTOR, MOST, OracleDraws, benign_row, budget, is_benign, mutants, oracle, row, trial
from benchmarks.power import whole_law
from tests.counting import first_that_hold

#: Probability with which a statistical test here fails for what it describes, whatever the seed.
FALSE_ALARM = 1e-6
DRAWS = 20_000


def pair(seed: int, outcomes: int = 4, impossible: bool = False) -> Masses:
    """Two distributions, arbitrary; some outcomes impossible on one side."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(outcomes, 0.6)), rng.dirichlet(np.full(outcomes, 0.6))
    if impossible:
        p[0] = q[1] = 0
    return Masses(p / p.sum(), q / q.sum())


def by_convex_optimisation(masses: Masses, epsilon: float, delta: float) -> float:
    """The primal problem, by a general solver over the logarithms of P0 and Q0 and the excesses."""
    e, k = math.exp(epsilon), len(masses.p)

    def parts(z: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        return [np.exp(z[:k]), np.exp(z[k : 2 * k]), z[2 * k : 3 * k], z[3 * k :]]

    def distance(z: NDArray[np.float64]) -> float:
        p0, q0, _, _ = parts(z)
        return float(special.rel_entr(masses.p, p0).sum() + special.rel_entr(masses.q, q0).sum())

    def sums(z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([part.sum() for part in parts(z)])

    def excesses(z: NDArray[np.float64]) -> NDArray[np.float64]:
        p0, q0, over, under = parts(z)
        return np.concatenate([over - p0 + e * q0, under - q0 + e * p0])

    allowed = [
        optimize.NonlinearConstraint(lambda z: sums(z)[:2], 1.0, 1.0),
        optimize.NonlinearConstraint(lambda z: sums(z)[2:], -np.inf, delta),
        optimize.NonlinearConstraint(excesses, 0.0, np.inf),
    ]
    found = optimize.minimize(
        distance,
        np.concatenate([np.full(2 * k, -math.log(k)), np.full(2 * k, delta / (2 * k))]),
        method="SLSQP",
        bounds=[(-40.0, 0.0)] * (2 * k) + [(0.0, 1.0)] * (2 * k),
        constraints=allowed,
        options={"maxiter": 2_000, "ftol": 1e-13},
    )
    assert found.success
    return float(found.fun)


# --------------------------------------------------------------------------------- the oracle


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("impossible", [False, True])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 0.05), (1.0, 1e-3)])
def test_the_rate_is_that_of_the_nearest_laws(seed: int, impossible: bool, epsilon: float, delta: float) -> None:
    masses = pair(seed, impossible=impossible)
    # Both are accurate to about 1e-8: the solver's tolerance is in the constraints, the dual's 1e-7 is relative.
    expected = by_convex_optimisation(masses, epsilon, delta)
    assert whole_distribution_rate(masses, epsilon, delta) == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("scale", [0.5, 0.8, 0.9])
def test_a_symmetric_pair_has_the_closed_form(scale: float) -> None:
    expected = whole_law(stats.laplace(0, scale), PureDP(1.0))
    edges = np.linspace(-40, 41, 81_001)
    cells = from_cdfs(stats.laplace(0, scale).cdf, stats.laplace(1, scale).cdf, edges)
    # Cells of a thousandth blur the ratio by a thousandth; the closed form is a sum over finer ones.
    assert whole_distribution_rate(cells, 1.0) == pytest.approx(expected, rel=1e-4)
    assert whole_distribution_rate(from_curve(LaplaceCurve(1 / scale)), 1.0) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
def test_disjoint_outputs_have_the_rate_of_a_coin(epsilon: float) -> None:
    # The nearest distributions are those of randomised response: both draws gain -ln(e^eps / (1 + e^eps)).
    disjoint = Masses(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    expected = 2 * math.log1p(math.exp(-epsilon))
    assert whole_distribution_rate(disjoint, epsilon) == pytest.approx(expected, rel=1e-9)
    assert single_event_rate(disjoint, PureDP(epsilon)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_no_event_says_more_than_the_whole_law(seed: int) -> None:
    masses = pair(seed, outcomes=6, impossible=seed % 2 == 1)
    rates = []
    for delta in (0.0, 1e-3, 0.05, 0.2):
        whole = whole_distribution_rate(masses, 0.8, delta)
        assert whole >= single_event_rate(masses, ApproxDP(0.8, delta)) * (1 - 1e-6) - 1e-9  # the dual's accuracy
        rates.append(whole)
    assert all(a >= b * (1 - 1e-6) - 1e-9 for a, b in itertools.pairwise(rates))  # the claim gets weaker


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_a_pair_that_keeps_the_claim_has_rate_zero(delta: float) -> None:
    kept = Masses(np.array([0.6, 0.4]), np.array([0.4, 0.6]))
    assert whole_distribution_rate(kept, math.log(1.5) + 1e-9, delta) == pytest.approx(0.0, abs=1e-12)


def test_merging_outcomes_loses_and_splitting_them_does_not() -> None:
    fine = pair(3, outcomes=6)
    split = Masses(np.repeat(fine.p, 2) / 2, np.repeat(fine.q, 2) / 2)
    merged = Masses(fine.p.reshape(3, 2).sum(axis=1), fine.q.reshape(3, 2).sum(axis=1))
    assert whole_distribution_rate(split, 0.5) == pytest.approx(whole_distribution_rate(fine, 0.5), rel=1e-9)
    assert whole_distribution_rate(merged, 0.5) < whole_distribution_rate(fine, 0.5)


def test_notions_without_a_dual_have_the_single_event() -> None:
    masses = pair(1)
    assert compute_rate(masses, GaussianDP(0.1)) == (single_event_rate(masses, GaussianDP(0.1)), "single event")
    assert compute_rate(masses, PureDP(0.1))[1] == "whole distribution"


@pytest.mark.parametrize("p", [[0.5, 0.6], [-0.1, 1.1], [[1.0]]])
def test_what_is_no_pair_of_laws_is_refused(p: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        Masses(np.array(p), np.array([0.5, 0.5]))


# -------------------------------------------------------------------------- distributions of the mutants


def test_finer_cuts_of_a_trade_off_curve_change_no_rate() -> None:
    curve = GaussianCurve(1.0)
    coarse, fine = (whole_distribution_rate(from_curve(curve, points), 1.0, 1e-5) for points in (4_000, 12_000))
    assert coarse == pytest.approx(fine, rel=1e-3)
    edges = np.linspace(-12, 13, 200_001)
    cells = from_cdfs(stats.norm(0, 1).cdf, stats.norm(1, 1).cdf, edges)
    assert coarse == pytest.approx(whole_distribution_rate(cells, 1.0, 1e-5), rel=1e-3)


def claim_of(part: str) -> Claim:
    """The first mutant whose id contains this."""
    return next(claim for claim in mutants() if part in claim.id)


def outputs(claim: Claim, side: str) -> Any:
    mechanism, datasets = claim.draft.mechanism, claim.draft.pairs[0]
    assert mechanism is not None
    return mechanism(getattr(datasets, side), DRAWS, make_generator(1, claim.id, side))


def agrees(count: int, probability: float) -> bool:
    return bool(stats.binomtest(count, DRAWS, min(probability, 1.0)).pvalue > FALSE_ALARM / 100)  # under 100 calls


@pytest.mark.parametrize("part", ["pure_dp/one_sided", "one_sided_exponential", "noise_clamped"])
def test_noise_of_one_sign_leaves_outputs_to_one_side(part: str) -> None:
    claim = claim_of(part)
    mechanism: Any = claim.draft.mechanism
    step = getattr(mechanism, "grid", 1.0)
    answers = {side: float(mechanism.centre(getattr(claim.draft.pairs[0], side))) * step for side in ("x", "y")}
    low, high = sorted(answers, key=lambda side: answers[side])
    masses = masses_of(claim.draft)
    assert masses is not None
    alone = masses.p[masses.q == 0].sum() + masses.q[masses.p == 0].sum()
    assert (outputs(claim, high) >= answers[high]).all()
    assert agrees(int((outputs(claim, low) < answers[high]).sum()), float(alone))


def test_the_bound_from_the_data_shows() -> None:
    claim = claim_of("data_dependent_bound")
    masses = masses_of(claim.draft)
    assert masses is not None
    rows = min(len(claim.draft.pairs[0].x), len(claim.draft.pairs[0].y))
    above = [int((outputs(claim, side) > rows).sum()) for side in ("x", "y")]
    assert min(above) == 0
    alone = masses.p[masses.q == 0].sum() + masses.q[masses.p == 0].sum()
    assert agrees(max(above), float(alone))


@pytest.mark.parametrize("part", ["noise_rounded_before_adding", "same_noise_for_two", "shared_coin", "memoised_seed"])
def test_outputs_that_are_said_to_be_disjoint_are(part: str) -> None:
    claim = claim_of(part)
    x, y = outputs(claim, "x"), outputs(claim, "y")
    masses = masses_of(claim.draft)
    assert masses is not None
    assert (masses.p * masses.q).sum() == 0
    assert not {v.tobytes() for v in np.asarray(x)} & {v.tobytes() for v in np.asarray(y)}


def test_released_values_have_the_stated_masses() -> None:
    # The expectation of ln(P / Q) is a property of the pair; draws estimate it with the mechanism's own density.
    claim = claim_of("released_maximum")
    mechanism: Any = claim.draft.mechanism
    datasets = claim.draft.pairs[0]
    masses = masses_of(claim.draft)
    assert masses is not None
    loss = mechanism.log_ratio(datasets.x, datasets.y, outputs(claim, "x"))
    stated = special.rel_entr(masses.p, masses.q).sum()
    # Losses are at most 2.5; five standard errors, and a thousandth for the cells.
    assert abs(loss.mean() - stated) < 5 * 2.5 / math.sqrt(DRAWS) + 1e-3


def test_the_masses_of_released_answers_are_those_of_the_draws() -> None:
    # P[none is above] and P[the first is above] are single numbers of the distribution; both are checked against draws.
    claim = claim_of("v3_roth")
    masses = masses_of(claim.draft)
    assert masses is not None
    for side, mass in (("x", masses.p), ("y", masses.q)):
        none = np.isnan(outputs(claim, side)).all(axis=1)
        assert agrees(int(none.sum()), float(mass[-1]))  # the last outcome; the cells before it are far smaller
        assert mass[-1] > 10 * mass[:-1].max()


def test_doubles_on_one_lattice_only() -> None:
    claim = claim_of("float_lattice")
    mechanism: Any = claim.draft.mechanism
    zero, one = sorted(("x", "y"), key=lambda side: float(mechanism.query(getattr(claim.draft.pairs[0], side))))
    noise, moved = outputs(claim, zero), outputs(claim, one)
    masses = float_masses(stats.laplace.cdf, 53)
    # A double that no double added to 1 gives.
    assert agrees(int((1 + (noise - 1) != noise).sum()), float(masses.p[masses.q == 0].sum()))
    assert (1 + (moved - 1) == moved).all()
    # In [1.5, 2) the noise has one bit more than the output; ties go to even, so that a quarter of the outputs is odd.
    here = moved[(moved >= 1.5) & (moved < 2)]
    odd = int(((here * 2.0**52).astype(np.int64) % 2).sum())
    assert stats.binomtest(odd, len(here), 0.25).pvalue > FALSE_ALARM


# ---------------------------------------------------------------------------------- the table


def test_the_budget_is_the_factor_times_the_oracle() -> None:
    assert budget(OracleDraws(100.0, "whole distribution")) == 500
    assert budget(OracleDraws(1e9, "whole distribution")) == MOST
    assert budget(OracleDraws(math.inf, "whole distribution")) == MOST
    assert budget(None) == MOST
    assert budget(OracleDraws(1e-3, "whole distribution")) < 100  # the least that an audit takes


def test_a_row_counts_what_the_factor_allows() -> None:
    claim = claim_of("half_scale")
    draws = [100.0] * 9 + [FACTOR * 40 + 1]
    line, good = row(claim, OracleDraws(40.0, "whole distribution"), draws)
    assert good
    assert "| 9 | yes |" in line
    line, good = row(claim, OracleDraws(40.0, "whole distribution"), [*draws[:8], 201.0, math.inf])
    assert good is False
    assert "| 8 | no |" in line
    line, good = row(claim, None, draws)
    assert good is None
    assert "no distribution known" in line
    line, good = row(claim, OracleDraws(1e9, "whole distribution"), [math.inf] * 10)
    assert good is None
    assert "capped" in line


def test_a_benign_row_allows_for_alpha() -> None:
    claim = next(c for c in mutants() if is_benign(c.draft))
    assert benign_row(claim, [math.inf] * 99 + [50.0], 1_000)[1]
    assert not benign_row(claim, [50.0] * 20 + [math.inf] * 80, 1_000)[1]


#: Mutants that the benchmark's runs caught within the factor in 97 of 100 runs or more, and whose oracle is small.
FOUND = (
    "geometric_mechanism/L1/pure_dp/one_sided",
    "geometric_mechanism/L1/pure_dp/sensitivity_ignored",
    "002/laplace_mechanism/L1/pure_dp/half_scale",
    "003/laplace_mechanism/L1/pure_dp/scale_inverted",
    "keep_probability_eps",
    "004/svt_mutants/L1/pure_dp/v5_stoddard",
)
RUNS = 30


@pytest.mark.parametrize("part", FOUND)
def test_a_mutant_is_caught_within_five_times_the_oracles_draws(part: str) -> None:
    claim = claim_of(part)
    known = oracle(claim.draft)
    assert known is not None
    caught = (trial(claim, budget(known), seed) <= FACTOR * known.draws for seed in range(RUNS))
    # An engine that catches it with probability 0.9 has fewer with probability at most 1e-6 (of all six tests: / 6).
    fewest = next(k for k in range(RUNS + 1) if stats.binom.cdf(k, RUNS, 0.9) > FALSE_ALARM / len(FOUND))
    assert fewest == 16
    assert first_that_hold(caught, fewest) == fewest


#: Mutants whose pair of distributions nobody has written down, by entry and case.
WITHOUT_LAWS = {
    "003/basic_composition/noise_reused",
    "003/k_counting_queries_laplace/noise_reused",
    "003/chebyshev_disjunction_summary/power_basis_noise",
    "003/tway_marginals_laplace/negatives_by_exact_subtraction",
    "003/private_multiplicative_weights/n_dropped_the_other_way",
    "003/gaussian_projection_marginals/private_n",
    "003/gaussian_projection_marginals/exact_y_projected",
    "003/smooth_sensitivity_cauchy/laplace_noise",
    "003/smooth_sensitivity_cauchy/gaussian_noise",
    "003/signature_dataset_hard_to_sanitize/subsampling_synthesiser",
    "003/fingerprinting_dp_attack/rounding_before_noise",
    "004/svt_mutants/m9a_value_released_on_top",
    "004/svt_mutants/m6_no_query_noise__whole_run",
    "004/svt_mutants/m14_one_query_draw__whole_run",
    "further/dp_sgd/bias_not_clipped",
    "further/dp_sgd/clip_by_layer",
    "further/dp_sgd/clip_of_the_mean",
    "further/dp_sgd/early_stopping",
    "further/dp_sgd/layer_without_noise",
    "further/dp_sgd/noise_before_clipping",
    "further/dp_sgd/seed_reused",
    "further/output_perturbation/noise_by_coordinate",
}
BROKEN = [claim for claim in mutants() if not is_benign(claim.draft)]


def entry_and_case(claim: Claim) -> str:
    return f"{claim.entry}/{claim.draft.case}"


def test_the_oracles_of_the_registry_can_all_be_computed() -> None:
    known = {entry_and_case(claim): oracle(claim.draft) for claim in BROKEN}
    assert {case for case, found in known.items() if found is None} == WITHOUT_LAWS
    assert all(found.draws > 1 for found in known.values() if found is not None)


@pytest.mark.parametrize(
    "claim",
    [c for c in BROKEN if c.draft.exact_level is not None and entry_and_case(c) not in WITHOUT_LAWS],
    ids=lambda claim: claim.id,
)
def test_a_level_that_a_claim_declares_is_that_of_its_laws(claim: Claim) -> None:
    masses, declared = masses_of(claim.draft), claim.draft.exact_level
    assert masses is not None
    assert declared is not None
    impossible = max(masses.p[masses.q == 0].sum(), masses.q[masses.p == 0].sum())
    if math.isinf(declared):
        assert impossible > getattr(claim.draft.privacy_guarantee, "delta", 0.0)
    else:
        both = (masses.p > 0) & (masses.q > 0)
        # Answers that are numbers are put into cells, which hide a little of the largest loss.
        found = np.abs(np.log(masses.p[both] / masses.q[both])).max()
        assert impossible == 0
        assert (1 - 1e-5) * declared <= found <= (1 + 1e-9) * declared
