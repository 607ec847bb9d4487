"""Soft labels: golden values, distributions against integrals, draws and the printed steps, levels, mutants."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from auditor.privacy.exact import curve
from auditor.privacy.laws import FiniteLaw
from experiments.common import person, rand, visits
from experiments.document_004_model_agnostic import _soft_votes as votes
from experiments.document_004_model_agnostic.soft_label_utility import (
    WrongMidpoints,
    printed_distance,
    sharper_distance,
)
from experiments.document_004_model_agnostic.soft_labels import _failed_tests
from mechanisms.base.queries import Count
from mechanisms.selection.free_tops import tail
from mechanisms.teacher_ensembles.soft_ensembles import EchoEnsemble, LabelMeans
from mechanisms.teacher_ensembles.soft_histogram import HistogramReadings, ScoreHistograms
from mechanisms.teacher_ensembles.soft_label_mutants import MUTANTS, PARTITIONS, leak, run_cost, total_leak
from mechanisms.teacher_ensembles.soft_labels import (
    BOTTOM,
    HALTED,
    FirstAnswer,
    SoftLabels,
    SoftLabelSteps,
    corrected,
    noise_scale,
    one_query,
    printed,
    until_first_failure,
)
from tests.statistics import level_of, p_value_of_outputs

# Chi-square tests fail at this level; all of them together at less than 1e-6.
P_VALUE = 1e-8
QUARTERS = ScoreHistograms(4)


class Given:
    """Data are the distances, shape (2, m)."""

    def __call__(self, data: Any) -> Any:
        return np.asarray(data, dtype=float)


class Unread:
    """Takes distances for what histograms say; the plain value is 1, the shifted one 2."""

    bins = 4

    def __call__(self, distances: Any) -> HistogramReadings:
        values = np.repeat([[1], [2]], distances.shape[1], axis=1)
        return HistogramReadings(values, distances)


def given(mechanism: SoftLabels) -> SoftLabels:
    return replace(mechanism, ensemble=Given(), histograms=Unread())  # type: ignore[arg-type]


def bare(scale: float, threshold: float, cutoff: int, **steps: Any) -> SoftLabels:
    return given(SoftLabels(EchoEnsemble(), QUARTERS, 1.0, 0.0, scale, threshold, cutoff, SoftLabelSteps(**steps)))


def masses(law: FiniteLaw) -> dict[Any, float]:
    return dict(zip(law.outcomes, law.probabilities.tolist(), strict=True))


def all_delta(mechanism: Any, x: Any, y: Any, epsilon: float = 50.0) -> float:
    return curve(mechanism.law(x), mechanism.law(y)).delta(epsilon)


# ----------------------------------------------------------------------------------- golden values


def test_a_deciding_vote_shows_as_often_as_the_catalogue_says() -> None:
    x, y = np.array([[0.3]]), np.array([[0.8]])
    for build, delta, golden in (
        (printed, 1e-2, 0.06475),
        (printed, 1e-3, 0.02089),
        (corrected, 1e-2, 0.003328),
        (corrected, 1e-3, 3.333e-4),
    ):
        for epsilon in (0.1, 1.0, 20.0):
            run = build(EchoEnsemble(), QUARTERS, epsilon, delta, 1, 1)
            assert all_delta(run, x, y) == pytest.approx(golden, rel=2e-4)
            root = math.sqrt(delta / 4) if build is printed else delta / 4
            assert leak(run) == pytest.approx((4 * root - root**2) / 6, rel=1e-12)
            assert all_delta(run, x, y) == pytest.approx(1 - (1 - leak(run)) ** 2, rel=1e-10)
    # One query of 100: the threshold is for all of them.
    assert all_delta(printed(EchoEnsemble(), QUARTERS, 1.0, 1e-6, 1, 100), x, y) == pytest.approx(6.7e-5, abs=5e-7)


@pytest.mark.parametrize(("cutoff", "queries"), [(1, 3), (2, 3), (3, 4), (4, 4)])
def test_a_stream_of_deciding_votes(cutoff: int, queries: int) -> None:
    x, y = np.full((1, queries), 0.3), np.full((1, queries), 0.8)
    for build in (printed, corrected):
        run = build(EchoEnsemble(), QUARTERS, 1.0, 0.1, cutoff, queries)
        found = all_delta(run, x, y)
        assert found == pytest.approx(1 - (1 - leak(run)) ** (2 * (cutoff // 2 + 1)), rel=1e-9)
        assert found <= total_leak(run) * (1 + 1e-12)
        if cutoff % 2 == 0:
            assert found == pytest.approx(total_leak(run), rel=1e-9)
        # The mutant tests 2 T + 2 of them, if there are so many.
        costly = replace(run, steps=SoftLabelSteps(bottom_costs=1))
        assert all_delta(costly, x, y) == pytest.approx(1 - (1 - leak(run)) ** (2 * min(cutoff + 1, queries)), rel=1e-9)


def test_the_counterexample_to_theorem_5_6() -> None:
    k = 4000
    assert printed_distance(1.0, 0.01, 2, 4, 0.1) == pytest.approx(1826, abs=0.5)
    assert printed_distance(1.0, 0.01, 2, 4, 0.1) == pytest.approx(8 * noise_scale(1.0, 0.01, 2) * math.log(64 / 0.01))
    data = np.stack([votes.unstable(k)] * 2 + [votes.stable(k, k)] * 2, axis=1)
    for build, golden in ((printed, 0.935), (corrected, 0.9983)):
        run = build(EchoEnsemble(), QUARTERS, 1.0, 0.01, 2, 4)
        found = masses(run.law(data))[(BOTTOM, BOTTOM, HALTED, HALTED)]
        assert found == pytest.approx(golden, abs=5e-4)
        assert found == pytest.approx((1 - leak(run)) ** 4, rel=1e-10)
        assert run.probability(data, [2, 2]) == pytest.approx(found, rel=1e-10)
    # With a loop to 2T the stable ones are answered.
    looped = masses(replace(run, cutoff=4).law(data))
    assert looped[(BOTTOM, BOTTOM, 3, 3)] == pytest.approx(found, rel=1e-6)


def test_the_first_query_and_the_epoch_of_sparse_vector() -> None:
    run = bare(1.5, 4.0, 0)
    for d1, d2 in ((0, 0), (3, 5), (9, 1)):
        plain, shifted, bottom = (masses(run.law([[d1], [d2]]))[(v,)] for v in (1, 2, BOTTOM))
        assert plain == pytest.approx(tail(4.0 - d1, 1.5), rel=1e-12)
        assert shifted == pytest.approx((1 - tail(4.0 - d1, 1.5)) * tail(4.0 - d2, 1.5), rel=1e-12)
        assert plain + shifted + bottom == pytest.approx(1, rel=1e-13)
    # Catalogue 004, section 0.3: ten tops at 0.5 and a bottom at 0, and the other way round.
    unit = bare(1.0, 0.0, 0)
    for tops, last, golden in ((0.5, 0.0, 0.009617149161774695), (0.0, 0.5, 0.0036245396138876646)):
        data = [[tops] * 10 + [last], [0.0] * 11]
        found = sum(unit.probability(data, [0] * 10 + [how]) for how in (1, 2))
        assert found == pytest.approx(golden, rel=1e-12)


# ------------------------------------------------------------------------------------- exact distributions


def integral(f: Callable[[float], float], scale: float) -> float:
    """Of f against the density of the threshold's noise, by adaptive quadrature."""
    pieces = [(-60 * scale, 0.0), (0.0, 60 * scale)]
    return sum(
        integrate.quad(
            lambda r: f(r) * math.exp(-abs(r) / scale) / (2 * scale), *piece, limit=400, points=(-4, -2, 2, 4)
        )[0]
        for piece in pieces
    )


def test_two_queries_against_integrals_by_hand() -> None:
    scale, w, (d1, e1), (d2, e2) = 0.8, 3.0, (2.0, 4.0), (3.5, 1.0)
    law = masses(bare(scale, w, 2).law([[d1, d2], [e1, e2]]))

    def passes(d: float) -> Callable[[float], float]:
        return lambda r: float(stats.laplace.sf(w + r - d, scale=2 * scale))

    g = {d: tail(w - d, scale) for d in (d1, d2, e1, e2)}
    kept = integral(lambda r: passes(d1)(r) * (1 - passes(d2)(r)), scale)
    assert law[(1, 1)] == pytest.approx(integral(lambda r: passes(d1)(r) * passes(d2)(r), scale), rel=1e-8)
    assert law[(1, BOTTOM)] == pytest.approx(kept * (1 - g[e2]), rel=1e-8)
    again = integral(lambda r: passes(e1)(r) * passes(d2)(r), scale)
    assert law[(2, 1)] == pytest.approx((1 - g[d1]) * again, rel=1e-8)
    assert law[(BOTTOM, 2)] == pytest.approx((1 - g[d1]) * (1 - g[e1]) * (1 - g[d2]) * g[e2], rel=1e-8)


def as_printed_in_algorithm_6(scores: np.ndarray, run: SoftLabels, rng: np.random.Generator) -> tuple[int, ...]:
    """One run, line by line, with the first threshold drawn."""
    c, outputs, gamma = 0, [], 1 / 4

    def distance(histogram: Counter[int], values: range) -> tuple[int, int]:
        ranked = sorted((histogram[v] for v in values), reverse=True)
        top = next(v for v in values if histogram[v] == ranked[0])
        return top, max(0, ranked[0] - ranked[1] - 1)

    bar = run.threshold + rng.laplace(0, run.scale)
    for row in scores:
        if c > run.cutoff:
            outputs.append(HALTED)
            continue
        top, dist = distance(Counter(min(int(s / gamma) + 1, 4) for s in row), range(1, 5))
        if dist + rng.laplace(0, 2 * run.scale) > bar:
            outputs.append(2 * top - 1)
            continue
        bar = run.threshold + rng.laplace(0, run.scale)
        top, dist = distance(Counter(math.floor(s / gamma + 0.5) for s in row), range(1, 4))
        if dist + rng.laplace(0, 2 * run.scale) > bar:
            outputs.append(2 * top)
            c += 1
        else:
            outputs.append(BOTTOM)
            c += 2
            bar = run.threshold + rng.laplace(0, run.scale)
    return tuple(outputs)


def test_the_law_is_that_of_the_printed_steps() -> None:
    rng = np.random.default_rng(3)
    scores = np.array([[0.3, 0.3, 0.3, 0.9, 0.1], [0.26, 0.24, 0.2, 0.24, 0.26], [0.7, 0.7, 0.7, 0.7, 0.3]])
    run = replace(printed(EchoEnsemble(), QUARTERS, 8.0, 0.5, 2, 3), threshold=1.0)
    outputs = [as_printed_in_algorithm_6(scores, run, rng) for _ in range(20_000)]
    assert p_value_of_outputs(outputs, run.law(scores.T)) > P_VALUE


VARIANTS: list[dict[str, Any]] = [
    {},
    {"refreshes_between": False},
    {"refreshes_after_bottom": False},
    {"bottom_costs": 1},
    {"shows_flag": True},
    {"noisy_threshold": False},
    {"stops": False},
    {"refreshes_between": False, "refreshes_after_bottom": False, "bottom_costs": 1},
]


@pytest.mark.parametrize("steps", VARIANTS, ids=lambda steps: "-".join(steps) or "reference")
def test_draws_follow_the_law(steps: dict[str, Any]) -> None:
    run, rng = bare(1.0, 3.0, 2, **steps), np.random.default_rng(1)
    for data in ([[2, 3, 4], [3, 1, 2]], [[0, 5], [0, 5]]):
        outputs = [tuple(row) for row in run(np.array(data), 60_000, rng).tolist()]
        assert p_value_of_outputs(outputs, run.law(data)) > P_VALUE


def test_draws_follow_the_law_of_a_reused_noise() -> None:
    run, rng = bare(0.7, 3.0, 0, reuses_noise=True), np.random.default_rng(2)
    for d1, d2 in ((3, 3), (1, 4), (6, 2)):
        law = run.law([[d1], [d2]])
        assert law.probabilities.sum() == pytest.approx(1, rel=1e-12)
        assert law.probabilities[0] == pytest.approx(tail(3.0 - d1, 0.7), rel=1e-10)
        outputs = [tuple(row) for row in run(np.array([[d1], [d2]]), 60_000, rng).tolist()]
        assert p_value_of_outputs(outputs, law) > P_VALUE


@pytest.mark.parametrize("name", PARTITIONS)
def test_draws_over_other_partitions_follow_the_law(name: str) -> None:
    built = PARTITIONS[name].build(one_query(EchoEnsemble(), QUARTERS, 1.0, 2.0))
    assert isinstance(built, SoftLabels)
    data = np.array([[0.05], [0.1], [0.6], [0.61], [0.62]])
    outputs = [tuple(row) for row in built(data, 40_000, np.random.default_rng(5)).tolist()]
    assert p_value_of_outputs(outputs, built.law(data)) > P_VALUE


def test_the_first_answer() -> None:
    run = corrected(EchoEnsemble(), QUARTERS, 4.0, 0.5, 2, 3)
    data = np.full((6, 3), 0.3)
    first = FirstAnswer(run)
    outputs = first(data, 60_000, np.random.default_rng(4)).tolist()
    assert p_value_of_outputs(outputs, first.law(data)) > P_VALUE
    stated = masses(first.law(data))
    silent = sum(mass for outcome, mass in masses(run.law(data)).items() if max(outcome) <= BOTTOM)
    assert stated[BOTTOM] == pytest.approx(silent, rel=1e-12)


# ------------------------------------------------------------------------------- levels of the parts


def opposed(passes: int, high: float, second: tuple[float, float]) -> tuple[Any, Any]:
    """Distances high + 1 and then high, against high and then high + 1; of the last the second test's too."""
    x = [[high + 1] * passes + [high], [0] * passes + [second[0]]]
    y = [[high] * passes + [high + 1], [0] * passes + [second[1]]]
    return x, y


def loss(mechanism: SoftLabels, x: Any, y: Any, how: list[int]) -> float:
    return math.log(mechanism.probability(x, how) / mechanism.probability(y, how))


def test_a_threshold_without_noise_and_a_run_without_end() -> None:
    bare_threshold = bare(1.5, 4.0, 0, noisy_threshold=False)
    for d1, d2 in ((0, 0), (3, 5), (9, 1)):
        found = masses(bare_threshold.law([[d1], [d2]]))
        first, second = (float(stats.laplace.sf(4.0 - d, scale=3.0)) for d in (d1, d2))
        assert found[(1,)] == pytest.approx(first, rel=1e-12)
        assert found[(2,)] == pytest.approx((1 - first) * second, rel=1e-12)
    with pytest.raises(ValueError, match="a noisy threshold"):
        bare(1.5, 4.0, 0, noisy_threshold=False, reuses_noise=True).law([[1], [1]])
    # Sixteen tests that fail, each with a threshold of its own: none stops the run.
    endless = bare(1.0, 2.5, 0, stops=False)
    laws = [masses(endless.law(np.full((2, 8), d))) for d in (3, 2)]
    fails = [1 - tail(2.5 - d, 1.0) for d in (3, 2)]
    for law, fail in zip(laws, fails, strict=True):
        assert law[(BOTTOM,) * 8] == pytest.approx(fail**16, rel=1e-10)
    assert 16 * math.log(fails[1] / fails[0]) > 2.5


def test_a_run_up_to_its_first_failure_costs_two_and_a_half_over_lambda() -> None:
    for scale in (1.0, 0.4):
        part = given(until_first_failure(EchoEnsemble(), QUARTERS, scale, 20.0))
        assert part.epsilon == 2.5 / scale
        # A second test far below the threshold, so that a pass costs all it can.
        x, y = opposed(40, 20.0, (1.0, 0.0))
        found = scale * loss(part, x, y, [0] * 40 + [1])
        assert 2.49 < found <= 2.5
        kept = replace(part, steps=SoftLabelSteps(refreshes_between=False))
        x, y = opposed(40, 20.0, (22.0, 23.0))
        found = scale * loss(kept, x, y, [0] * 40 + [2])
        assert 2.95 < found <= 3.0
        rng = np.random.default_rng(0)
        for _ in range(30):
            x = 20 + rng.uniform(-4, 4, (2, 5))
            move = rng.uniform(-1, 1, (2, 5))
            assert level_of(part, x, x + move) <= 2.5 / scale + 1e-9
            assert (
                level_of(replace(part, steps=SoftLabelSteps(refreshes_after_bottom=False)), x, x + move)
                <= 2.5 / scale + 1e-9
            )


def test_four_passes_are_needed_to_see_that_the_threshold_was_kept() -> None:
    part = given(until_first_failure(EchoEnsemble(), QUARTERS, 1.0, 20.0))
    kept = replace(part, steps=SoftLabelSteps(refreshes_between=False))
    # Three passes and two failed tests cost Delta/(2 lambda) each, 2.5 in all.
    rng = np.random.default_rng(1)
    for _ in range(30):
        x = 20 + rng.uniform(-4, 4, (2, 4))
        assert level_of(kept, x, x + rng.choice([-1.0, 1.0], (2, 4))) <= 2.5 + 1e-9


def test_one_query_costs_one_over_lambda_and_twice_that_with_one_noise() -> None:
    one = given(one_query(EchoEnsemble(), QUARTERS, 0.5, 10.0))
    assert one.epsilon == 2.0
    reused = replace(one, steps=SoftLabelSteps(reuses_noise=True))
    for d1, d2, e1, e2 in ((10, 10, 11, 9), (2, 2, 3, 1), (16, 4, 17, 3), (4, 4, 5, 5), (11, 9, 10, 10)):
        assert 0.5 * level_of(one, [[d1], [d2]], [[e1], [e2]]) <= 1 + 1e-9
        assert 0.5 * level_of(reused, [[d1], [d2]], [[e1], [e2]]) <= 2 + 1e-9
    assert 0.5 * level_of(one, [[16], [4]], [[17], [3]]) > 0.99
    assert 0.5 * level_of(reused, [[16], [4]], [[17], [3]]) > 1.9
    assert 0.5 * level_of(reused, [[10], [10]], [[11], [9]]) == pytest.approx(1.72813, abs=1e-5)


def test_a_whole_run_costs_at_most_what_is_said() -> None:
    run = bare(1.0, 20.0, 1)
    assert run_cost(run) == 4.5
    rng = np.random.default_rng(2)
    for _ in range(20):
        x = 20 + rng.uniform(-3, 3, (2, 4))
        assert level_of(run, x, x + rng.choice([-1.0, 1.0], (2, 4))) <= 4.5
    # Passes, a pass of the second test, passes again, and then both tests fail.
    up, k = 21.0, 30
    before = [[up] * k + [up - 1] + [up] * k + [up - 1], [0] * k + [up] + [0] * k + [1]]
    after = [[up - 1] * k + [up] + [up - 1] * k + [up], [0] * k + [up - 1] + [0] * k + [2]]
    found = loss(run, before, after, [0] * k + [1] + [0] * k + [2])
    assert 3.5 < found <= 4.5


def test_thresholds_that_forget_something() -> None:
    run = corrected(EchoEnsemble(), QUARTERS, 1.0, 0.3, 1, 1)
    half, fewer = (MUTANTS[name].build(run) for name in ("printed_threshold", "threshold_forgets_2m_tests"))
    assert isinstance(half, SoftLabels)
    assert isinstance(fewer, SoftLabels)
    assert half.threshold == printed(EchoEnsemble(), QUARTERS, 1.0, 0.3, 1, 1).threshold
    v = 0.3 / 2
    assert leak(fewer) == pytest.approx((4 * v - v * v) / 6, rel=1e-12)
    found = all_delta(fewer, np.array([[0.3]]), np.array([[0.8]]))
    assert 0.15 < found == pytest.approx(0.18324, abs=1e-5)


def test_tests_that_fail_before_a_run_halts() -> None:
    assert [_failed_tests(cutoff) for cutoff in (1, 2, 3)] == [3, 4, 5]


def test_the_flag_is_a_function_of_the_value() -> None:
    run = corrected(EchoEnsemble(), QUARTERS, 4.0, 0.5, 2, 3)
    outputs = MUTANTS["flag_released"].build(run)(np.full((6, 3), 0.3), 20_000, np.random.default_rng(0))
    values, flags = outputs[:, :3], outputs[:, 3:]
    assert (flags[values > 0] == 1 - values[values > 0] % 2).all()
    assert (flags[values == BOTTOM] == 1).all()
    assert (flags[values == HALTED] == HALTED).all()


# ---------------------------------------------------------------------------------------- ensembles


def test_pairs_of_votes_have_the_distances_that_they_state() -> None:
    pair = votes.epoch_pair(2)
    for data, distances in ((pair.x, [[4, 4, 3], [0, 0, 2]]), (pair.y, [[3, 3, 4], [0, 0, 3]])):
        assert votes.HALVES(EchoEnsemble()(data)).distances.tolist() == distances
    pair = votes.canary_pair(2)
    for data, distances in ((pair.x, [[8, 8, 6], [0, 0, 0]]), (pair.y, [[6, 6, 8], [0, 0, 0]])):
        assert ScoreHistograms(2)(EchoEnsemble()(data)).distances.tolist() == distances
    columns = [votes.unstable(10), votes.shifted_only(10), votes.stable(10, 4)]
    assert QUARTERS(np.stack(columns)).distances.tolist() == [[0, 0, 3], [0, 9, 3]]


def test_means_of_labels_against_a_table() -> None:
    data, label = rand(), Count("mdvis", low=1.0)
    queries = (Count("mdvis"), Count("hlthf", equals=1.0))
    for by_record in (False, True):
        ensemble = LabelMeans(label, queries, 60, by_record)
        frame = data.assign(chunk=ensemble.chunk_of(data), label=label.matches(data))
        scores = ensemble(data)
        everybody = frame.groupby("chunk")["label"].mean()
        assert scores[0] == pytest.approx(everybody.to_numpy())
        fair = frame[frame.hlthf == 1].groupby("chunk")["label"].mean()
        assert scores[1][fair.index] == pytest.approx(fair.to_numpy())
    assert (np.bincount(LabelMeans(label, queries, 673).chunk_of(data)) == 30).all()
    assert (LabelMeans(label, queries, 30_000, by_record=True)(data)[0] == 0.5).any()  # empty chunks


def test_one_record_is_in_one_chunk() -> None:
    label, queries = Count("mdvis", low=1.0), (Count("mdvis"),)
    pair = visits(0, 1, 727)
    by_position = LabelMeans(label, queries, 673)
    assert (by_position(pair.x) != by_position(pair.y)).sum() == 1
    assert np.abs(QUARTERS(by_position(pair.x)).distances - QUARTERS(by_position(pair.y)).distances).max() == 2
    hashed = LabelMeans(label, queries, 673, by_record=True)
    data = rand()
    found = hashed(data)
    assert (hashed(data.iloc[::-1]) == found).all()
    assert (hashed.chunk_of(data.astype(float)) == hashed.chunk_of(data)).all()
    shorter = data.drop(index=data.index[727])
    assert (hashed(shorter) != found).sum() == 1
    # All positions move when the first record goes, so that a record of most chunks goes to the one before.
    assert (by_position(data.iloc[1:]) != by_position(data)).sum() > 200


def test_wrong_answers_are_counted() -> None:
    outputs = np.array([[BOTTOM, 3, 2], [5, 3, 3], [2, HALTED, HALTED]])
    assert WrongMidpoints((0, 3, 2))(outputs).tolist() == [0, 1, 2]


def test_the_sharper_distance_is_below_the_printed_one_and_suffices() -> None:
    for cutoff, queries in ((1, 1), (3, 12), (5, 100)):
        run = corrected(EchoEnsemble(), QUARTERS, 1.0, 0.01, cutoff, queries)
        d = sharper_distance(run, queries, 0.1)
        assert d < printed_distance(1.0, 0.01, cutoff, queries, 0.1)
        data = [[math.ceil(d)] * queries, [0] * queries]
        assert given(run).probability(data, [0] * queries) >= 0.9


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon > 0, got 0.0"),
        ({"delta": 1.0}, r"delta in \[0, 1\), got 1.0"),
        ({"scale": -1.0}, "scale > 0, got -1.0"),
        ({"threshold": math.inf}, "finite threshold, got inf"),
        ({"cutoff": -1}, "cutoff >= 0, got -1"),
    ],
)
def test_parameters_are_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(corrected(EchoEnsemble(), QUARTERS, 1.0, 0.01, 1, 1), **change)


def test_what_is_asked_for_is_checked() -> None:
    with pytest.raises(ValueError, match=r"1 <= T <= m, got \(3, 2\)"):
        printed(EchoEnsemble(), QUARTERS, 1.0, 0.01, 3, 2)
    with pytest.raises(ValueError, match=r"delta in \(0, 1\), got 0"):
        noise_scale(1.0, 0, 1)
    with pytest.raises(ValueError, match="cutoff >= 1, got 0"):
        noise_scale(1.0, 0.1, 0)
    run = bare(1.0, 3.0, 1)
    with pytest.raises(ValueError, match=r"700\.0 noise scales of the threshold, got 997"):
        run.law([[1000], [0]])
    with pytest.raises(ValueError, match=r"lasts 2 queries, got \[2, 0\]"):
        run.probability([[1, 1], [1, 1]], [2, 0])
    with pytest.raises(ValueError, match="0, 1 or 2, got 3"):
        run.probability([[1], [1]], [3])
    with pytest.raises(ValueError, match="too many transcripts, got 30"):
        bare(1.0, 3.0, 30).law(np.ones((2, 30)))
    with pytest.raises(ValueError, match="one query, got 2"):
        bare(1.0, 3.0, 1, reuses_noise=True).law([[1, 1], [1, 1]])
    with pytest.raises(ValueError, match="a threshold for each test, got SoftLabelSteps"):
        bare(1.0, 3.0, 1, reuses_noise=True, refreshes_between=False).law([[1], [1]])
    with pytest.raises(ValueError, match="number of draws n >= 1, got 0"):
        run([[1], [1]], 0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="a run without flags, got SoftLabelSteps"):
        FirstAnswer(bare(1.0, 3.0, 1, shows_flag=True))


def test_ensembles_check_what_they_are_given() -> None:
    label, queries = Count("mdvis", low=1.0), (Count("mdvis"),)
    with pytest.raises(ValueError, match=r"at least one query, got \(\)"):
        LabelMeans(label, (), 2)
    with pytest.raises(ValueError, match="number of chunks >= 1, got 0"):
        LabelMeans(label, queries, 0)
    with pytest.raises(ValueError, match=r"a DataFrame, got <class 'numpy\.ndarray'>"):
        LabelMeans(label, queries, 2)(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="at least 3 records, got 2"):
        LabelMeans(label, queries, 3)(rand().iloc[:2])
    assert person()["mdvis"] == 0
