"""Privacy losses of whole runs of sparse vector: against enumeration, golden values, leaks and a game by hand."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from auditor.privacy.exact import LossCurve, curve, optimal_composition
from experiments.document_004_model_agnostic._canaries import turns_of_the_gap
from experiments.document_004_model_agnostic.aggregation import _shown_share
from experiments.document_004_model_agnostic.free_tops import _LARGE, _WITH_DELTA, certified_parts, run_of
from mechanisms.base.queries import IdentityQuery
from mechanisms.selection import sparse_vector_losses
from mechanisms.selection.free_tops import epoch, inverted, tail
from mechanisms.selection.sparse_vector import VARIANTS, SparseVector
from mechanisms.selection.sparse_vector_losses import RunLosses, epochs, run_losses
from mechanisms.teacher_ensembles.online_leaks import release_scale, release_threshold, total_leak
from mechanisms.teacher_ensembles.online_release import GivenDistances, OnlineRelease
from mechanisms.teacher_ensembles.vote_aggregation import CanaryLearner, ChunkVotes, ContiguousChunks

#: Rounding: what adds up to 1 from some thousand numbers.
ROUNDING = 1e-12
LEVELS = (-0.2, 0.0, 0.03, 0.1, 0.3, 1.0, 2.0)


def true_curve(mechanism: Any, x: Any, y: Any) -> LossCurve:
    found = curve(mechanism.law(x), mechanism.law(y))
    assert isinstance(found, LossCurve)
    return found


def assert_between(found: RunLosses, truth: LossCurve, width: float) -> None:
    """Both bounds are on their side of everything that a curve says, and delta is known within `width`."""
    for e in LEVELS:
        low, high = found.lower.delta(e), found.upper.delta(e)
        assert low - ROUNDING <= truth.delta(e) <= high + ROUNDING
        assert high - low <= width
    for delta in (0.0, 1e-6, 1e-3, 0.1):
        assert found.lower.epsilon(delta) - 1e-9 <= truth.epsilon(delta) <= found.upper.epsilon(delta) + 1e-9
    q = np.linspace(0.0, 1.0, 41)
    assert np.all(found.lower.tradeoff(q) - ROUNDING <= truth.tradeoff(q))
    assert np.all(truth.tradeoff(q) <= found.upper.tradeoff(q) + ROUNDING)
    for order in (1.5, 2.0, 8.0):
        assert found.lower.renyi(order) - 1e-9 <= truth.renyi(order) <= found.upper.renyi(order) + 1e-9


# ----------------------------------------------------------------------------- small, by enumeration


@pytest.mark.parametrize(("m", "cutoff"), [(1, 0), (1, 3), (2, 1), (5, 1), (8, 2), (8, 20)])
@pytest.mark.parametrize("points", [2, 37, 4096])
def test_bounds_hold_the_law_of_all_transcripts(m: int, cutoff: int, points: int) -> None:
    rng = np.random.default_rng([m, cutoff])
    run = inverted(IdentityQuery(), 4.0, 0.5, max(cutoff, 1), threshold=0.3)
    run = replace(run, cutoff=cutoff + 1)
    x = rng.uniform(-2.0, 3.0, m)
    y = x + rng.uniform(-1.0, 1.0, m)
    truth = true_curve(run, x, y)
    found = run_losses(run, x, y, points=points)
    assert_between(found, truth, 1e-6 if points == 4096 else 1.0)
    swapped = run_losses(run, y, x, points=points)
    assert_between(swapped, truth, 1e-6 if points == 4096 else 1.0)


def test_probabilities_of_epochs_by_adaptive_quadrature() -> None:
    run = inverted(IdentityQuery(), 3.0, 0.2)
    answers = np.array([0.5, -1.0, 2.0, 0.0])
    # Costly is the row's "above", whose answers are negated.
    found = epochs(run, -answers, np.array([False, False, True, False]))
    bar, noise = stats.laplace(scale=run.threshold_scale), stats.laplace(scale=run.query_scale)

    def chance(start: int, tops: int, *, bottom: bool) -> float:
        def joint(r: float) -> float:
            passed = np.prod([noise.sf(r - answers[i]) for i in range(start, start + tops)])
            return float(bar.pdf(r) * passed * (noise.cdf(r - answers[start + tops]) if bottom else 1.0))

        ends = sorted({-45 * run.threshold_scale, 0.0, *answers, 45 * run.threshold_scale})
        return sum(integrate.quad(joint, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(ends))

    for s, e in itertools.product(range(4), repeat=2):
        # A top on the third query reveals the dataset, and nothing comes after it.
        expected = chance(s, e - s, bottom=True) if s <= e <= 2 or (s, e) == (3, 3) else 0.0
        assert found.ended[s, e] == pytest.approx(expected, abs=1e-10)
    assert found.ended[:3, 4] == pytest.approx(0.0)
    assert found.ended[3, 4] == pytest.approx(chance(3, 1, bottom=False), abs=1e-10)
    assert found.shown[0] == pytest.approx(chance(0, 3, bottom=False), abs=1e-10)
    assert found.ended.sum(axis=1) + found.shown == pytest.approx(1.0, abs=ROUNDING)


def test_the_nodes_of_long_epochs_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    run, m = inverted(IdentityQuery(), 4.0, 0.5), 200
    offsets = np.resize([0.0, 3.0, -6.0, 1.0], m) * run.threshold_scale
    none = np.zeros(m, dtype=np.bool_)
    found = epochs(run, offsets, none)
    monkeypatch.setattr(sparse_vector_losses, "_STEEPEST", m)
    more = epochs(run, offsets, none)
    assert found.ended == pytest.approx(more.ended, rel=1e-11, abs=1e-30)


def test_equal_laws_have_no_losses() -> None:
    run = inverted(IdentityQuery(), 1.0, 0.1)
    found = run_losses(run, np.zeros(5), np.zeros(5))
    assert found.upper.delta(0.0) <= ROUNDING
    assert found.lower.delta(-0.5) == pytest.approx(1 - math.exp(-0.5))
    assert (found.upper.epsilon(1e-9), found.lower.epsilon(1e-9)) == (0.0, 0.0)


# --------------------------------------------------------------------------------- golden values


def test_the_golden_values_of_an_epoch() -> None:
    # 004, section 0.3: ten tops at 1/2 and a bottom at 0, against ten tops at 0 and a bottom at 1/2.
    unit = epoch(IdentityQuery(), 1.0)
    for k, shift, golden in (
        (10, 0.5, (0.009617149161774695, 0.0036245396138876646)),
        (20, 1.0, (0.0033581818588445597, 0.00045663762425183)),
    ):
        pair = ([shift] * k + [0.0], [0.0] * k + [shift])
        none = np.zeros(k + 1, dtype=np.bool_)
        masses = [epochs(unit, -np.array(answers), none).ended[0, k] for answers in pair]
        assert masses == pytest.approx(golden, rel=1e-12)
        found = run_losses(unit, *map(np.array, pair))
        loss = math.log(golden[0] / golden[1])
        assert found.lower.epsilon(0.0) == pytest.approx(loss, abs=1e-9)
        assert loss <= found.upper.epsilon(0.0) <= loss * (1 + 1e-3)


@pytest.mark.parametrize(("m", "cutoff"), [(150, 1), (40, 2)])
def test_longer_runs_against_the_law_of_all_transcripts(m: int, cutoff: int) -> None:
    run = replace(inverted(IdentityQuery(), 4.0, 0.5), cutoff=cutoff)
    pattern = np.resize([0.5, 0.5, -0.5], m)
    x, y = run.threshold_scale + pattern, run.threshold_scale - pattern
    assert_between(run_losses(run, x, y), true_curve(run, x, y), 1e-7)


def test_a_run_is_never_worse_than_the_optimal_composition_of_its_epochs() -> None:
    m, cutoff = 60, 3
    pattern = np.tile([0.5, -0.5], m // 2)
    run = inverted(IdentityQuery(), 6.0, 0.3, cutoff)
    cost = 2.0 / run.threshold_scale
    found = run_losses(run, pattern, -pattern, points=1024)
    worst = optimal_composition(cost, cutoff + 1)
    for e in (0.0, 0.5, 1.0, 3.0):
        assert found.upper.delta(e) <= worst.delta(e)
    assert found.lower.epsilon(0.0) <= (cutoff + 1) * cost


def test_two_hundred_queries() -> None:
    # 004, section 0.6: eps = 1, delta = 1e-2, T = 1: about 5 % of eps, at least 0.048.
    found = run_of("+-", 0.8, (1.0, 1e-2, 1), 200)
    low, high = found.lower.epsilon(1e-2), found.upper.epsilon(1e-2)
    assert 0.048 <= low <= high <= 0.055
    assert high - low < 1e-6 * high
    run = inverted(IdentityQuery(), 1.0, 1e-2)
    scale = run.threshold_scale
    # A stream of one query only: the tails of the two noises.
    one = run_losses(run, np.array([0.5]), np.array([-0.5]), points=64)
    top, other = tail(-0.5, scale), tail(0.5, scale)
    assert one.lower.delta(0.0) == pytest.approx(top - other, rel=1e-9)


def test_thirty_epochs_that_each_cost_twice_as_much() -> None:
    # The same place: up to 34 % of eps at eps = 32, T = 30 with answers that move by 2; reached at delta = 0.1.
    scale = release_scale(32.0, 0.1, 30)
    run = replace(epoch(IdentityQuery(), scale), cutoff=31)
    pattern = np.resize([1.0, 1.0, -1.0], 200)
    found = run_losses(run, 0.6 * scale + pattern, 0.6 * scale - pattern, points=384)
    low, high = (side.epsilon(0.1) / 32.0 for side in (found.lower, found.upper))
    assert 0.335 <= low <= 0.345
    assert low <= high <= 0.35
    assert _shown_share(100) <= high  # the canary of Algorithm 4, half as long
    pair = turns_of_the_gap("++-", 60)
    moved = [ChunkVotes(ContiguousChunks(60, 60), CanaryLearner(3))(data) for data in (pair.x, pair.y)]
    assert [labels.tolist() for labels, _ in moved] == [[0, 0, 0]] * 2
    assert [distances.tolist() for _, distances in moved] == [[27.0, 27.0, 25.0], [25.0, 25.0, 27.0]]


def test_runs_with_losses_above_the_claimed_epsilon() -> None:
    for epsilon, delta, cutoff, m in _WITH_DELTA:
        found = run_of(_LARGE, 0.0, (epsilon, delta, cutoff), m)
        assert found.lower.epsilon(0.0) > epsilon
        assert 0 < found.lower.delta(epsilon) <= found.upper.delta(epsilon) <= delta


def test_the_certified_part_of_an_epoch() -> None:
    # 004, section 0.6: at 10^6 draws a side and shift 1/2 it is 0.90. Once more from the distributions, at other tops.
    (part,) = certified_parts(0.5, (1_000_000,))
    assert 0.88 <= part <= 0.93
    unit, best = epoch(IdentityQuery(), 1.0), 0.0
    for k in (8, 10, 12):
        laws = [unit.law(answers) for answers in ([0.5] * k + [0.0], [0.0] * k + [0.5])]
        p, q = (float(law.probabilities[law.outcomes.index((0,) * k + (1,))]) for law in laws)
        low = stats.beta.ppf(0.005, 1e6 * p, 1e6 * (1 - p) + 1)
        high = stats.beta.isf(0.005, 1e6 * q + 1, 1e6 * (1 - q))
        best = max(best, math.log(low / high))
    assert 0.87 <= best <= part + 1e-9


def test_bounds_close_with_the_square_of_the_step() -> None:
    run = inverted(IdentityQuery(), 8.0, 0.1, 4)
    pattern = np.tile([0.5, 0.5, -0.5], 10)
    widths = []
    for points in (64, 256, 1024):
        found = run_losses(run, pattern, -pattern, points=points)
        widths.append(found.upper.delta(0.5) - found.lower.delta(0.5))
    assert widths[2] < widths[1] / 8 < widths[0] / 64 * 2


# ------------------------------------------------------------------------- values that tell the data


@pytest.mark.parametrize("unstable", [[True] * 6, [False, True] * 3, [False] * 5 + [True], [True] + [False] * 5])
def test_released_values_against_the_law_of_the_transcripts(unstable: list[bool]) -> None:
    m, delta = 6, 0.3
    run = OnlineRelease(GivenDistances(m), 4.0, delta, 2)
    flips = np.array(unstable)
    bar = run.bar
    x = np.column_stack([np.zeros(m), np.where(flips, 0.0, bar + 0.5)])
    y = np.column_stack([flips.astype(float), np.where(flips, 0.0, bar - 0.5)])
    found = run_losses(run.tests, x[:, 1], y[:, 1], revealed=flips)
    truth = true_curve(run, x, y)
    assert_between(found, truth, 1e-6)
    assert found.lower.p_only == pytest.approx(truth.p_only, rel=1e-10)
    assert found.upper.q_only == pytest.approx(truth.q_only, rel=1e-10)


def test_the_mass_of_infinite_loss_is_the_leak() -> None:
    # Stable queries at w on both sides: nothing but the leak, by the recursion of `total_leak`.
    m, delta, cutoff = 150, 0.3, 3
    run = OnlineRelease(GivenDistances(m), 2.0, delta, cutoff)
    flips = np.arange(m) % 5 == 4
    distances = np.where(flips, 0.0, run.bar)
    found = run_losses(run.tests, distances, distances, revealed=flips, points=2)
    leak = total_leak(flips.tolist(), delta, cutoff)
    assert run.bar == pytest.approx(run.noise * release_threshold(delta, m))
    for side in found:
        assert side.p_only == pytest.approx(leak, rel=1e-9)
        assert side.delta(5.0) == pytest.approx(leak, rel=1e-9)


# --------------------------------------------------------------------------------------- refusals


def _row(**changed: Any) -> SparseVector:
    return SparseVector(IdentityQuery(), 1.0, cutoff=2, variant=replace(VARIANTS["V2"], **changed))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: run_losses(_row(redraws="never"), [1.0], [0.0]), "redraws after each costly above"),
        (lambda: run_losses(_row(stops=False), [1.0], [0.0]), "redraws after each costly above"),
        (lambda: run_losses(_row(releases="above"), [1.0], [0.0]), "redraws after each costly above"),
        (lambda: run_losses(_row(query=0.0), [1.0], [0.0]), "Laplace query noise"),
        (lambda: run_losses(_row(query_noise="exponential"), [1.0], [0.0]), "Laplace query noise"),
        (lambda: run_losses(_row(), [1.0, 2.0], [0.0]), r"as many queries on both datasets, got \[2, 1\]"),
        (lambda: run_losses(_row(), [1e5], [0.0]), "within 700.0 noise scales"),
        (lambda: run_losses(_row(), [1.0], [0.0], points=1), "at least two lattice points, got 1"),
        (lambda: run_losses(_row(), [1.0], [0.0], revealed=np.zeros(2, dtype=np.bool_)), "1 booleans"),
        (lambda: run_losses(_row(), [-2500.0] * 2, [2500.0] * 2), "losses of a run of at most 600"),
        (lambda: run_losses(_row(), np.zeros(5000), np.zeros(5000)), "fewer queries"),
        (
            lambda: run_losses(_row(threshold_noise="gaussian"), [1000.0] * 7 + [0.0], [0.0] * 8),
            "answers closer to the threshold: a probability underflows",
        ),
        (
            lambda: run_losses(replace(_row(), cutoff=30), [1.0, 0.0] * 30, [0.0, 1.0] * 30, points=2**16),
            "fewer lattice points",
        ),
    ],
)
def test_what_is_refused(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
