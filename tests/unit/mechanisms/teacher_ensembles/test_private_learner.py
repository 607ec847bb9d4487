"""Private learners: distributions against enumeration and draws, what a student may see, thresholds at full size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.privacy.exact import FiniteLaw, curve
from experiments.document_004_model_agnostic import private_learner as experiment
from mechanisms.base.mechanism import FloatArray
from mechanisms.selection.free_tops import tail
from mechanisms.teacher_ensembles.online_leaks import fresh_leak
from mechanisms.teacher_ensembles.private_learner import (
    LabellingPipeline,
    LabelPrivateLearner,
    PrivateLearner,
    average,
    predicted,
    rows_of,
)
from mechanisms.teacher_ensembles.private_learner_mutants import (
    LABEL_MUTANTS,
    MUTANTS,
    BestOfSeveralRuns,
    MorePointsThanBudgeted,
    more_points,
    released_of_equals,
)
from mechanisms.teacher_ensembles.threshold_students import (
    ChunkThreshold,
    LabelPrivateStudents,
    MidpointThreshold,
    NoisyLabels,
    SmallestPositiveThreshold,
    ThresholdStudents,
    ThresholdStudentSizes,
    printed_cutoff,
    public_points,
    sizes,
    uniform_examples,
)
from mechanisms.teacher_ensembles.vote_distance import gap_distance

#: False alarm of each statistical test.
_ALPHA = 1e-6
#: The same for chi-square tests: cells with 25 expected draws have heavier tails than the chi-square distribution, by
#: less.
_CHI_SQUARE = 1e-9
_ROWS = np.array([[1.0, 1], [1, 1], [1, 0]])
_ONE = PrivateLearner(3, 4.0, 0.3, points=((1.0,),))


def _fits(law: FiniteLaw, outputs: Any) -> float:
    """P-value of draws under a finite distribution; 0 if an outcome is impossible."""
    found: dict[tuple[int, ...], int] = {}
    for row in map(tuple, np.asarray(outputs).tolist()):
        found[row] = found.get(row, 0) + 1
    if any(row not in law.outcomes for row in found):
        return 0.0
    expected = law.probabilities * len(outputs)
    observed = np.array([found.get(o, 0) if isinstance(o, tuple) else 0 for o in law.outcomes], dtype=np.float64)
    if observed[expected == 0].any():
        return 0.0
    order = np.argsort(-expected)
    observed, expected = observed[order], expected[order]
    # All rare outcomes, and the rarest of the others, are one cell.
    last = max(int((expected >= 25).sum()) - 1, 0)
    o, e = (np.append(a[:last], a[last:].sum()) for a in (observed, expected))
    return float(stats.chi2.sf(((o - e) ** 2 / e).sum(), len(o) - 1)) if len(o) > 1 else 1.0


# ------------------------------------------------------------------------------------- parts


def test_the_learner_of_one_row_returns_what_the_row_says() -> None:
    x = np.array([[1.0, -1.0, 1.0]])
    for label in (0, 1):
        weights = average(x, np.array([label]))
        assert predicted(weights, np.eye(3)).tolist() == ([1, 0, 1] if label else [0, 1, 0])


def test_the_learner_takes_many_labelings_at_once() -> None:
    x = np.random.default_rng(0).integers(-3, 4, (5, 2)).astype(float)
    labels = np.array(list(itertools.product((0, 1), repeat=5)))
    each = [sum(((2 * y - 1) * row for y, row in zip(one, x, strict=True)), np.zeros(2)) for one in labels]
    np.testing.assert_array_equal(average(x, labels), each)


def test_chunks_are_by_position_and_as_large_as_each_other() -> None:
    data = np.array([[1.0, 1], [2, 0], [4, 1], [8, 1], [16, 0], [32, 1], [64, 1]])
    learner = PrivateLearner(3, 4.0, 0.3, points=((1.0,),))
    np.testing.assert_array_equal(learner.teachers(data).ravel(), [1 - 2, 4 + 8, -16 + 32])
    assert learner.votes(data).tolist() == [[1, 2]]


def test_one_row_changes_one_teacher() -> None:
    rng = np.random.default_rng(1)
    data = np.column_stack([rng.normal(size=(12, 2)), rng.integers(0, 2, 12)])
    learner = PrivateLearner(4, 4.0, 0.3, points=((1.0, 0.0),))
    before = learner.teachers(data)
    for row in range(12):
        other = data.copy()
        other[row] = [5.0, -7.0, 1.0]
        changed = (learner.teachers(other) != before).any(axis=1)
        assert changed.tolist() == [j == row // 3 for j in range(4)]


# -------------------------------------------------------------------------------------- distributions


def test_one_point_is_the_leak_and_half_of_the_rest() -> None:
    # Catalogue, oqr: at m = 1, T = 1, delta = 0.3 a flip leaks with probability 0.09625.
    leak = fresh_leak(0.15)
    assert leak == pytest.approx(0.09625, rel=1e-12)
    law = _ONE.law(_ROWS)
    assert dict(zip(law.outcomes, law.probabilities, strict=True)) == pytest.approx(
        {(1,): leak + (1 - leak) / 2, (-1,): (1 - leak) / 2}, rel=1e-9
    )
    flipped = _ROWS.copy()
    flipped[0, 1] = 0
    found = curve(law, _ONE.law(flipped))
    assert found.epsilon(0.0) == pytest.approx(math.log((1 + leak) / (1 - leak)), rel=1e-9)
    assert found.delta(0.0) == pytest.approx(leak, rel=1e-9)


def test_two_points_by_hand() -> None:
    # Votes of 6 to 1 and 5 to 2, so distances 2 and 1: the four transcripts, and uniform bits for refusals.
    learner = PrivateLearner(7, 8.0, 0.3, points=((1.0, 0.0), (0.0, 1.0)))
    votes = np.ones((7, 2))
    votes[:1, 0], votes[:2, 1] = -1.0, -1.0
    data = np.column_stack([votes, np.ones(7)])
    values, distances = learner.stream(data).T
    assert values.tolist() == [1, 1]
    assert distances.tolist() == [2, 1]
    noise, bar = learner.labeller(2).noise, learner.labeller(2).bar
    x, w = np.polynomial.legendre.leggauss(400)
    rho, weight = np.concatenate([(x - 1) * 30, (x + 1) * 30]), np.concatenate([w * 30, w * 30]) * noise
    density = np.exp(-np.abs(rho)) / (2 * noise)

    def passes(distance: float) -> FloatArray:
        t = (bar + rho * noise - distance) / (2 * noise)
        return np.where(t > 0, 0.5 * np.exp(-np.abs(t)), 1 - 0.5 * np.exp(-np.abs(t)))

    both = float(weight @ (density * passes(2) * passes(1)))
    first, second = tail(bar - 2, noise), tail(bar - 1, noise)
    # After a refusal the threshold is fresh; with T = 1 the second point is still asked.
    only_first, only_second = first - both, (1 - first) * second
    neither = 1 - both - only_first - only_second
    expected = {
        (1, 1): both + only_first / 2 + only_second / 2 + neither / 4,
        (1, -1): only_first / 2 + neither / 4,
        (-1, 1): only_second / 2 + neither / 4,
        (-1, -1): neither / 4,
    }
    law = learner.law(data)
    assert dict(zip(law.outcomes, law.probabilities, strict=True)) == pytest.approx(expected, rel=1e-5)


def _pairs() -> list[Any]:
    flip, two = experiment._flip_pair(), PrivateLearner(3, 4.0, 0.3, points=((1.0, 0.0),))
    sure = LabelPrivateLearner(21, 4.0, 0.3, unlabelled=1)
    five = LabelPrivateLearner(3, 4.0, 0.3, unlabelled=2)
    many = PrivateLearner(3, 0.5, 0.3, points=((1.0,),) * 64)
    found: list[tuple[str, LabellingPipeline, Any]] = [
        ("reference", _ONE, flip),
        ("nine", experiment._NINE, experiment._payloads()),
    ]
    found += [
        (name, mutant.build(two if name == "student_on_private_points" else _ONE), pair)  # type: ignore[misc]
        for name, mutant in MUTANTS.items()
        for pair in [experiment._moved_person_pair() if name == "student_on_private_points" else flip]
    ]
    found.append(("more_than_m_points", more_points(1).build(many), flip))  # type: ignore[arg-type]
    bases = dict(
        zip(LABEL_MUTANTS, (five, sure, experiment._LABELS), strict=True),
    )
    pairs = dict(
        zip(
            LABEL_MUTANTS,
            (experiment._sorted_rows_pair(), experiment._dropped_row_pair(21), experiment._flip_pair(1)),
            strict=True,
        ),
    )
    found += [(name, mutant.build(bases[name]), pairs[name]) for name, mutant in LABEL_MUTANTS.items()]  # type: ignore[misc]
    return found


@pytest.mark.parametrize(("name", "mechanism", "pair"), _pairs(), ids=lambda p: p if isinstance(p, str) else "")
def test_draws_follow_the_exact_law(name: str, mechanism: LabellingPipeline, pair: Any) -> None:
    for seed, data in enumerate((pair.x, pair.y)):
        outputs = mechanism(data, 20_000, np.random.default_rng([seed, len(name)]))
        assert outputs.dtype == np.int64
        assert _fits(mechanism.law(data), outputs) > _CHI_SQUARE


@pytest.mark.parametrize("name", ["true_labels_on_bot", "private_validation", "majority_on_bot"])
def test_what_a_student_sees_is_published_with_certainty(name: str) -> None:
    built, pair = MUTANTS[name].build(_ONE), experiment._flip_pair()
    assert curve(built.law(pair.x), built.law(pair.y)).delta(50.0) == pytest.approx(1.0)  # type: ignore[attr-defined]


def test_the_best_of_eight_runs_is_wrong_if_all_are() -> None:
    built, pair = MUTANTS["best_of_several_seeds"].build(_ONE), experiment._flip_pair()
    wrong = ((1 - fresh_leak(0.15)) / 2) ** 8
    found = curve(built.law(pair.x), built.law(pair.y)).epsilon(0.0)  # type: ignore[attr-defined]
    assert found == pytest.approx(math.log((1 - wrong) / wrong), rel=1e-9)


def test_the_best_of_several_runs_by_enumeration() -> None:
    mechanism = BestOfSeveralRuns(3, 4.0, 0.3, points=((1.0,), (1.0,)), runs=3)
    one = PrivateLearner(3, 4.0, 0.3, points=mechanism.points).law(_ROWS)
    features, labels = rows_of(_ROWS)
    expected = dict.fromkeys(one.outcomes, 0.0)
    for runs in itertools.product(range(len(one.outcomes)), repeat=3):
        wrong = [((np.array(one.outcomes[i]) * features[:, 0] > 0) != labels).sum() for i in runs]
        kept = runs[int(np.argmin(wrong))]
        expected[one.outcomes[kept]] += float(np.prod(one.probabilities[list(runs)]))
    law = mechanism.law(_ROWS)
    assert dict(zip(law.outcomes, law.probabilities, strict=True)) == pytest.approx(expected, rel=1e-12)


def test_a_run_that_never_halts_by_the_general_law() -> None:
    mechanism = MorePointsThanBudgeted(3, 4.0, 0.3, points=((1.0,),) * 5, budgeted=1)
    general = PrivateLearner.law(mechanism, _ROWS)
    closed = mechanism.law(_ROWS)
    assert dict(zip(closed.outcomes, closed.probabilities, strict=True)) == pytest.approx(
        dict(zip(general.outcomes, general.probabilities, strict=True)), rel=1e-10
    )
    # At the threshold one query is answered with probability 1/2, two in a row with 7/24.
    np.testing.assert_allclose(released_of_equals(1, 0.0), [0.5, 0.5])
    assert released_of_equals(2, 0.0)[2] == pytest.approx(7 / 24, rel=1e-12)


def test_more_points_than_budgeted_break_the_level() -> None:
    pair, base = experiment._flip_pair(), PrivateLearner(3, 0.5, 0.3, points=((1.0,),) * 64)
    built = more_points(1).build(base)
    assert curve(built.law(pair.x), built.law(pair.y)).delta(0.5) > 0.3  # type: ignore[attr-defined]


def test_the_printed_distance_costs_more_at_nine_points_and_keeps_the_level() -> None:
    pair, nine = experiment._payloads(), experiment._NINE
    assert nine.labeller(9).noise == pytest.approx(0.9739, abs=5e-5)
    printed = replace(nine, distance=gap_distance)
    assert printed.stream(pair.x)[:, 1].tolist() == [8.0] * 9
    assert printed.stream(pair.y)[:, 1].tolist() == [6.0] * 8 + [10.0]
    levels = [curve(m.law(pair.x), m.law(pair.y)).epsilon(0.0) for m in (nine, printed)]
    assert levels[0] == pytest.approx(0.32783, abs=5e-5)
    assert levels[1] == pytest.approx(1.80562, abs=5e-5)


# --------------------------------------------------------------------------------- data flow


def test_equal_votes_give_equal_hypotheses_under_a_seed() -> None:
    assert experiment._count_differing(experiment._NINE, experiment._same_votes()) == 0
    assert experiment._count_differing(experiment._NINE, experiment._payloads()) > 0


def test_a_dropped_label_changes_nothing() -> None:
    pair = experiment._dropped_row_pair(3)
    assert experiment._count_differing(experiment._LABELS, pair) == 0
    assert experiment._LABELS.law(pair.x) == experiment._LABELS.law(pair.y)


@pytest.mark.parametrize("name", ["stratified_split", "labels_for_early_stopping"])
def test_in_these_it_changes_something(name: str) -> None:
    five = LabelPrivateLearner(3, 4.0, 0.3, unlabelled=2)
    pair = experiment._sorted_rows_pair()
    built = LABEL_MUTANTS[name].build(five)
    assert curve(built.law(pair.x), built.law(pair.y)).delta(50.0) > 0  # type: ignore[attr-defined]
    assert curve(five.law(pair.x), five.law(pair.y)).epsilon(0.0) == 0.0


# -------------------------------------------------------------------------------- thresholds


def _thresholds(teachers: ChunkThreshold, size: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Thresholds less 1/2 that teachers learn from examples."""
    found = np.empty(n)
    for i in range(n):
        x = np.sort(rng.random(size) - 0.5)
        if isinstance(teachers, NoisyLabels):
            y = (x >= 0) != (rng.random(size) < teachers.noise)
            cost = np.concatenate([[0], np.cumsum(np.where(y, 1, -1))])
            places, middle = np.flatnonzero(cost == cost.min()), int((x < 0).sum())
            distance = np.abs(places - middle)
            right = places[places >= middle]
            # As in the distribution: no example away if that is best; of the others those on the right, the nearest
            # first.
            place = right.min() if right.size and (middle in places or right.size) else places[distance.argmin()]
            found[i] = 0.0 if place == middle else x[place - 1] if place > middle else x[place]
        else:
            low, high = x[x < 0].max(), x[x >= 0].min()
            found[i] = high if isinstance(teachers, SmallestPositiveThreshold) else (low + high) / 2
    return found


@pytest.mark.parametrize(
    "teachers", [SmallestPositiveThreshold(), MidpointThreshold(), NoisyLabels(0.1)], ids=lambda t: type(t).__name__
)
def test_the_law_of_a_teacher_by_training_it(teachers: ChunkThreshold) -> None:
    n, size = 4_000, 100
    found = np.sort(_thresholds(teachers, size, n, np.random.default_rng(5)))
    at = np.array([-0.1, -0.03, -0.01, -1e-9, 0.0, 0.003, 0.01, 0.02, 0.05, 0.1])
    below = np.searchsorted(found, at, side="right")
    stated = np.clip(teachers.cdf(at, size), 0.0, 1.0)
    for count, p in zip(below, stated, strict=True):
        assert stats.binomtest(int(count), n, float(p)).pvalue > _ALPHA / len(at)


def test_the_places_of_noisy_teachers_add_up() -> None:
    q = 0.1 / 0.9
    right, left = NoisyLabels(0.1).examples
    assert right.sum() + left.sum() + (1 - q) ** 2 == pytest.approx(1.0, abs=1e-12)


# Catalogue, bin_clas and pri_learn: m, T/m, k, n, and the student's error with one-sided teachers at eps = 8.
_CATALOGUE = [
    (0.1, 1843, 0.455, 22930, 2.84e6, 0.0056),
    (0.05, 8478, 0.228, 38844, 1.0e7, 0.0027),
    (0.02, 62147, 0.091, 75571, 5.1e7, 0.0010),
]


@pytest.mark.parametrize(("alpha", "points", "share", "chunks", "rows", "error"), _CATALOGUE)
def test_the_catalogues_sizes_and_errors(
    alpha: float, points: int, share: float, chunks: int, rows: float, error: float
) -> None:
    assert math.ceil(4 * math.log(1 / (alpha * 0.1)) / alpha**2) == points
    numbers = sizes(alpha, 0.1, 8.0, 0.01, points=points)
    assert numbers.cutoff / points == pytest.approx(share, abs=6e-4)
    assert numbers.chunks == chunks
    assert numbers.rows == pytest.approx(rows, rel=0.005)
    found = (
        ThresholdStudents(SmallestPositiveThreshold(), numbers, 8.0, 0.01)(None, 2_000, np.random.default_rng(6)) - 0.5
    )
    # The catalogue's are means of 20 runs; so they have 1/10 of the spread of these as standard error, twice.
    assert abs(found.mean() - error) < 6 * found.std() / math.sqrt(20) + 5e-5
    assert found.min() > 0


def _by_hand(
    teachers: SmallestPositiveThreshold,
    numbers: ThresholdStudentSizes,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> float:
    """One student, with every teacher's threshold and every point drawn, one query after the other."""
    students = ThresholdStudents(teachers, numbers, epsilon, delta)
    thresholds = np.sort(1.0 - rng.random(numbers.chunks) ** (1.0 / numbers.chunk))
    x = rng.random(numbers.points) - 0.5
    ones = np.searchsorted(thresholds, x, side="right")
    distance = np.maximum(np.abs(2 * ones - numbers.chunks) - 1, 0)
    label = (2 * ones > numbers.chunks).astype(int)
    refused, bar = 0, students.bar + rng.laplace(0, students.noise)
    for i in range(numbers.points):
        if refused > numbers.cutoff or distance[i] + rng.laplace(0, 2 * students.noise) <= bar:
            label[i] = rng.integers(0, 2)
            refused, bar = refused + 1, students.bar + rng.laplace(0, students.noise)
    order = np.argsort(x)
    x, y = x[order], label[order]
    wrong = np.concatenate([[0], np.cumsum(y)]) + (1 - y).sum() - np.concatenate([[0], np.cumsum(1 - y)])
    return float(x[wrong.argmin()])


def test_students_by_drawing_everything() -> None:
    numbers = ThresholdStudentSizes(points=300, cutoff=40, chunks=4_000, chunk=20)
    rng = np.random.default_rng(7)
    slow = [_by_hand(SmallestPositiveThreshold(), numbers, 20.0, 0.01, rng) for _ in range(300)]
    for fast in (ThresholdStudents, LabelPrivateStudents):
        found = fast(SmallestPositiveThreshold(), numbers, 20.0, 0.01)(None, 3_000, rng) - 0.5
        assert stats.ks_2samp(slow, found).pvalue > _ALPHA / 2


def test_growth_is_claimed_where_the_theorems_hold() -> None:
    # Theorems 4.6 and 4.7: beta <= alpha at every size.
    growing: dict[str, Any] = {draft.case: draft.guarantee for draft in experiment._exponents()}
    for case, share in (("rows_realizable", 0.0), ("rows_agnostic", 0.5)):
        rows = [sizes(alpha, alpha, 8.0, 0.01, share * alpha).rows for alpha in (0.02, 0.01, 0.005, 0.0025)]
        assert [int(n) for n in growing[case].at] == rows


def test_sizes_by_hand() -> None:
    assert public_points(0.02, 0.02) == math.ceil(8 * math.log(200) / 0.0004)
    assert uniform_examples(0.1, 0.1, 3.0) == math.ceil(800 * (2 + math.log(40)))
    assert printed_cutoff(100, 0.1, 0.1) == math.floor(3 * (10 + math.sqrt(50 * math.log(1000))))
    assert sizes(0.1, 0.1, 8.0, 0.01, gamma=0.05).chunk > sizes(0.1, 0.1, 8.0, 0.01).chunk


# ----------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PrivateLearner(0, 4.0, 0.3, points=((1.0,),)), "chunks >= 1, got 0"),
        (lambda: PrivateLearner(3, -4.0, 0.3, points=((1.0,),)), "epsilon > 0, got -4.0"),
        (lambda: PrivateLearner(3, 4.0, 1.5, points=((1.0,),)), r"delta in \(0, 1\), got 1.5"),
        (lambda: PrivateLearner(3, 4.0, 0.3, points=((1.0,), (1.0, 2.0))), "as many features each"),
        (lambda: PrivateLearner(3, 4.0, 0.3), r"got \(\)"),
        (lambda: LabelPrivateLearner(3, 4.0, 0.3, unlabelled=0), "at least one unlabelled row, got 0"),
        (lambda: _ONE(_ROWS[:2], 1, np.random.default_rng(0)), "at least 3 rows, got 2"),
        (lambda: _ONE(np.ones((3, 4)), 1, np.random.default_rng(0)), "1 features, got 3"),
        (lambda: _ONE(_ROWS * 2, 1, np.random.default_rng(0)), "labels 0 and 1"),
        (lambda: _ONE(_ROWS, 0, np.random.default_rng(0)), "n >= 1, got 0"),
        (lambda: replace(_ONE, points=((1.0,),) * 17).law(_ROWS), "at most 16 points, for a distribution, got 17"),
        (lambda: replace(_ONE, points=((0.5,),))(_ROWS, 1, np.random.default_rng(0)), "whole numbers"),
        (lambda: NoisyLabels(0.3), r"label noise in \(0, 0.1\], got 0.3"),
        (lambda: sizes(1.5, 0.1, 1.0, 0.1), "got 1.5"),
        (
            lambda: ThresholdStudents(SmallestPositiveThreshold(), ThresholdStudentSizes(100, 10, 20, 5), 1.0, 0.01),
            "unanimous votes",
        ),
        (
            lambda: ThresholdStudents(
                SmallestPositiveThreshold(), ThresholdStudentSizes(4_000, 2, 2_000, 1), 20.0, 0.01
            ),
            "at most T = 2",
        ),
        (
            lambda: LabelPrivateStudents(MidpointThreshold(), ThresholdStudentSizes(300, 40, 4_000, 20), 20.0, 0.01),
            "that are one-sided",
        ),
    ],
)
def test_bad_input_is_refused_with_its_value(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
