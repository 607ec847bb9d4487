"""The generic private learner: classes of hypotheses, distributions, levels, mutants, and sample sizes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, optimize, special, stats

from auditor.privacy.exact import FiniteLaw
from mechanisms.learning.agnostic_learner import (
    AgnosticLearner,
    HypothesisChoice,
    LabelsAt,
    gumbel_choice,
    level_of_flip,
)
from mechanisms.learning.agnostic_mutants import MUTANTS
from mechanisms.learning.fresh_learner import (
    ExcessError,
    FiniteExampleDistribution,
    FreshEpsHalved,
    FreshLearner,
    FreshScoreOverN,
    FreshSignFlipped,
    IndependentBits,
    agnostic_bound,
    agnostic_failure,
    identical_agnostic,
    identical_realizable,
    least_size,
    printed_failure,
    printed_size,
    realizable_bound,
    realizable_failure,
)
from mechanisms.learning.hypotheses import (
    HypothesisClass,
    IntervalFunctions,
    ParityFunctions,
    PointFunctions,
    RectangleFunctions,
    ThresholdFunctions,
    counts_of,
    sauer,
)
from tests.statistics import level_of, p_value_of_outputs

IntArray = NDArray[np.int64]

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

CLASSES: list[HypothesisClass] = [
    PointFunctions(5),
    PointFunctions(4, 3),
    ThresholdFunctions(6),
    IntervalFunctions(5),
    RectangleFunctions(3, 4),
    ParityFunctions(4),
]


def sample(domain: int, rows: int, seed: int) -> IntArray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, domain, rows), rng.integers(0, 2, rows)], axis=1)


def records(*groups: tuple[int, int, int]) -> IntArray:
    return np.array([[x, y] for x, y, many in groups for _ in range(many)])


def replaced(data: IntArray, x: int, y: int) -> IntArray:
    other = data.copy()
    other[-1] = (x, y)
    return other


def flipped(data: IntArray) -> IntArray:
    return replaced(data, int(data[-1, 0]), 1 - int(data[-1, 1]))


# ----------------------------------------------------------------------------------- hypotheses


@pytest.mark.parametrize("hypotheses", CLASSES, ids=repr)
def test_mistakes_are_those_of_the_labels(hypotheses: HypothesisClass) -> None:
    for seed in range(5):
        data = sample(hypotheses.domain, 40, seed)
        by_hand = (hypotheses.labels(data[:, 0]) != (data[:, 1] == 1)[:, None]).sum(axis=0)
        assert hypotheses.mistakes(counts_of(data, hypotheses.domain)).tolist() == by_hand.tolist()


@pytest.mark.parametrize("hypotheses", CLASSES, ids=repr)
def test_labelings_are_distinct(hypotheses: HypothesisClass) -> None:
    table = hypotheses.labels(np.arange(hypotheses.domain))
    assert table.shape == (hypotheses.domain, hypotheses.size)
    assert np.unique(table, axis=1).shape[1] == hypotheses.size
    assert hypotheses.parameters().shape == (hypotheses.size,)


@pytest.mark.parametrize("hypotheses", CLASSES, ids=repr)
def test_the_dimension_is_that_of_the_largest_shattered_set(hypotheses: HypothesisClass) -> None:
    def shattered(size: int) -> bool:
        return any(
            np.unique(hypotheses.labels(np.array(points)), axis=1).shape[1] == 2**size
            for points in itertools.combinations(range(hypotheses.domain), size)
        )

    v = hypotheses.dimension
    assert shattered(v)
    assert not shattered(v + 1)
    assert hypotheses.size <= sauer(hypotheses.domain, v)


def test_what_the_classes_are() -> None:
    x = np.arange(4)
    assert PointFunctions(2, 2).labels(x).astype(int).tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]
    assert ThresholdFunctions(4).labels(x)[:, 2].tolist() == [False, False, True, True]
    intervals = IntervalFunctions(4)
    kinds = {tuple(intervals.labels(x)[:, h].tolist()) for h in range(intervals.size)}
    by_hand = {tuple(a <= i < b for i in range(4)) for a in range(5) for b in range(5)}
    assert kinds == by_hand
    assert not intervals.labels(x)[:, 0].any()
    assert ParityFunctions(2).labels(x)[:, 3].tolist() == [False, True, True, False]


def test_parameters_of_intervals_are_counted() -> None:
    intervals = IntervalFunctions(4)
    table = intervals.labels(np.arange(4))
    for h, count in enumerate(intervals.parameters().tolist()):
        by_hand = [(a, b) for a in range(5) for b in range(5) if [a <= i < b for i in range(4)] == table[:, h].tolist()]
        assert len(by_hand) == count


def test_sauers_numbers_are_below_the_power() -> None:
    # The catalogue's range.
    for m in range(1, 101):
        for v in range(1, 7):
            assert sauer(m, v) - 1 <= m**v


def test_a_large_domain_takes_linear_time() -> None:
    data = sample(1_000_000, 1000, 1)
    wrong = ThresholdFunctions(1_000_000).mistakes(counts_of(data, 1_000_000))
    for t in (0, 1, 500_000, 1_000_000):
        assert wrong[t] == int(((data[:, 0] >= t) != (data[:, 1] == 1)).sum())


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (np.array([[0, 0], [4, 1]]), r"\[0, 4\]"),
        (np.array([[0, -1]]), r"\[-1\]"),
        (np.zeros((0, 2), dtype=int), r"shape=\(0, 2\)|\[\]"),
        (np.array([[0.0, 1.0]]), r"0\., 1\."),
        (np.array([0, 1]), r"\[0, 1\]"),
    ],
)
def test_data_that_are_refused(data: NDArray[Any], shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        counts_of(data, 4)


@pytest.mark.parametrize(
    ("build", "shown"),
    [
        (lambda: PointFunctions(0), "got 0"),
        (lambda: PointFunctions(3, -1), "got -1"),
        (lambda: ThresholdFunctions(0), "got 0"),
        (lambda: IntervalFunctions(-2), "got -2"),
        (lambda: RectangleFunctions(2, 0), r"\(2, 0\)"),
        (lambda: RectangleFunctions(2, 3).dimension, r"\(2, 3\)"),
        (lambda: ParityFunctions(23), "got 23"),
        (lambda: AgnosticLearner(PointFunctions(2), 0.0), "got 0.0"),
        (lambda: LabelsAt(AgnosticLearner(PointFunctions(2), 1.0), ()), r"got \(\)"),
        (lambda: level_of_flip(1.0, 1.0), "got 1.0"),
        (lambda: FreshLearner(1.0, 0), "got 0"),
        (lambda: FreshLearner(math.inf, 5), "got inf"),
        (lambda: IndependentBits(1, 0.1), "got 1"),
        (lambda: IndependentBits(2, 1.0), "got 1.0"),
        (lambda: identical_realizable(1, 0.1), "got 1"),
        (lambda: identical_agnostic(2, 1.5), "got 1.25"),
        (lambda: FiniteExampleDistribution(PointFunctions(2), np.array([[0, 1]]), np.array([0.5])), r"0\.5"),
        (lambda: least_size(lambda n: 1.0 / n, 0.1, 5), "got 5"),
    ],
)
def test_what_is_refused(build: Any, shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        build()


# ------------------------------------------------------------------------------ distribution of the learner


@pytest.mark.parametrize("hypotheses", CLASSES, ids=repr)
def test_probabilities_are_exponential_in_the_mistakes(hypotheses: HypothesisClass) -> None:
    data = sample(hypotheses.domain, 9, 3)
    wrong = [int((hypotheses.labels(data[:, 0])[:, h] != (data[:, 1] == 1)).sum()) for h in range(hypotheses.size)]
    weights = [math.exp(-0.7 * count / 2) for count in wrong]
    law = AgnosticLearner(hypotheses, 0.7).law(data)
    assert law.probabilities == pytest.approx(np.array(weights) / math.fsum(weights), rel=1e-13)


@pytest.mark.parametrize("hypotheses", CLASSES, ids=repr)
def test_draws_follow_the_law(hypotheses: HypothesisClass) -> None:
    learner, data = AgnosticLearner(hypotheses, 1.0), sample(hypotheses.domain, 8, 4)
    outputs = learner(data, 40_000, np.random.default_rng(5))
    assert p_value_of_outputs(outputs, learner.law(data)) > ALARM / len(CLASSES)


def test_draws_do_not_underflow_and_the_law_refuses() -> None:
    learner, data = AgnosticLearner(PointFunctions(2), 1.0), records((0, 0, 1500), (1, 0, 1501))
    outputs = learner(data, 40_000, np.random.default_rng(6))
    # A lead of one record out of 3001.
    assert p_value_of_outputs(outputs, FiniteLaw((0, 1), special.softmax([0.5, 0.0]))) > ALARM
    with pytest.raises(ValueError, match=r"got 750\.0"):
        learner.law(records((0, 1, 1500)))


def test_gumbel_choice_of_rows_is_that_of_each_row() -> None:
    rng = np.random.default_rng(7)
    rows = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 0.0]])
    chosen = gumbel_choice(np.repeat(rows, 20_000, axis=0), 40_000, rng)
    for i in range(2):
        law = FiniteLaw((0, 1, 2), special.softmax(rows[i]))
        assert p_value_of_outputs(chosen[20_000 * i : 20_000 * (i + 1)], law) > ALARM / 2


# ------------------------------------------------------------------------------------------ levels


def test_the_catalogues_levels_of_a_flip() -> None:
    for p, loss in ((0.05, 0.918), (0.01, 0.983), (0.001, 0.998), (0.5, 0.620)):
        assert level_of_flip(p, 1.0) == pytest.approx(loss, abs=5e-4)
    assert 1.0 - math.log1p(0.5 * math.expm1(1.0)) == pytest.approx(0.380, abs=5e-4)
    assert 0.05 * math.e / (1 + 0.05 * math.expm1(1.0)) == pytest.approx(0.125, abs=5e-4)
    turn = 1.0 / (1.0 + math.exp(0.5))
    assert level_of_flip(turn, 1.0) == pytest.approx(0.5)


@pytest.mark.parametrize("k", [2, 16, 256])
def test_points_on_unanimous_records(k: int) -> None:
    for n in range(1, 21):
        data, learner = records((0, 0, n)), AgnosticLearner(PointFunctions(k), 1.0)
        p = math.exp(-n / 2) / (math.exp(-n / 2) + k - 1)
        assert learner.law(data).probabilities[0] == pytest.approx(p, rel=1e-12)
        loss = 1.0 - math.log1p(p * math.expm1(1.0))
        assert level_of(learner, data, flipped(data)) == pytest.approx(loss, rel=1e-12)


def test_any_flip_has_the_level_of_its_formula() -> None:
    rng = np.random.default_rng(8)
    for trial in range(300):
        hypotheses = CLASSES[trial % len(CLASSES)]
        epsilon, data = float(rng.uniform(0.1, 3.0)), sample(hypotheses.domain, int(rng.integers(1, 12)), trial)
        learner, other = AgnosticLearner(hypotheses, epsilon), flipped(data)
        gains = hypotheses.labels(data[-1:, 0])[0] == (other[-1, 1] == 1)
        if gains.all() or not gains.any():
            continue
        p = float(learner.law(data).probabilities[gains].sum())
        assert level_of(learner, data, other) == pytest.approx(level_of_flip(p, epsilon), rel=1e-12, abs=1e-13)


def test_thresholds_cover_the_catalogues_range() -> None:
    found = [
        level_of(AgnosticLearner(ThresholdFunctions(m), 1.0), records((0, 0, n)), records((0, 0, n - 1), (0, 1, 1)))
        for m in (2, 3, 4)
        for n in (1, 2, 3)
    ]
    assert min(found) == pytest.approx(0.66, abs=5e-3)
    assert max(found) == pytest.approx(0.91, abs=5e-3)


@pytest.mark.parametrize(
    "hypotheses", [PointFunctions(3), ThresholdFunctions(3), IntervalFunctions(3), ParityFunctions(2)], ids=repr
)
def test_no_neighbours_exceed_epsilon(hypotheses: HypothesisClass) -> None:
    """All databases of two records, and all that replace the last one; inconsistent ones among them."""
    learner = AgnosticLearner(hypotheses, 1.5)
    every = list(itertools.product(range(hypotheses.domain), (0, 1)))
    worst = 0.0
    for first in every:
        laws = np.log([learner.probabilities(np.array([first, last])) for last in every])
        worst = max(worst, float(np.ptp(laws, axis=0).max()))
    assert 0.5 < worst <= 1.5


# ----------------------------------------------------------------------------------------- mutants


def built(name: str, hypotheses: HypothesisClass, epsilon: float = 1.0) -> HypothesisChoice:
    mutant = MUTANTS[name].build(AgnosticLearner(hypotheses, epsilon))
    assert isinstance(mutant, HypothesisChoice)
    return mutant


#: Mutants, and classes and data on which they differ from the reference.
DIFFERENT: list[tuple[str, HypothesisClass, IntArray]] = [
    ("half_missing", PointFunctions(4), records((0, 0, 2))),
    ("eps_halved", PointFunctions(4), records((0, 0, 2))),
    ("score_over_n", PointFunctions(4), records((0, 0, 4))),
    ("sign_flipped", PointFunctions(4), records((0, 0, 2))),
    ("parameters_with_multiplicity", IntervalFunctions(3), records((0, 0, 2))),
    ("weighted_by_parameters", IntervalFunctions(3), records((0, 0, 2))),
    ("noisy_min_lap_1_over_eps", PointFunctions(4), records((0, 0, 2))),
    ("score_on_random_subset", PointFunctions(4), records((0, 0, 2), (1, 1, 3))),
    ("argmax_on_ties", PointFunctions(4), records((0, 0, 1))),
    ("never_fails", PointFunctions(4), records((0, 0, 1))),
    ("gumbel_noise_reused", PointFunctions(4), records((0, 0, 1))),
    ("sample_dependent_class", PointFunctions(4), records((0, 0, 1), (2, 1, 1))),
    ("sample_dependent_class__consistent", PointFunctions(4), records((0, 0, 2))),
    ("deduplicated_on_sample", PointFunctions(5), records((0, 0, 1), (2, 1, 1))),
    ("labelings_of_the_sample", ThresholdFunctions(6), records((1, 0, 1), (4, 1, 1))),
    ("grid_from_data_range", ThresholdFunctions(6), records((1, 0, 1), (4, 1, 1))),
]


@pytest.mark.parametrize(("name", "hypotheses", "data"), DIFFERENT, ids=[row[0] for row in DIFFERENT])
def test_a_mutant_draws_from_the_law_that_it_states(name: str, hypotheses: HypothesisClass, data: IntArray) -> None:
    mutant = built(name, hypotheses)
    law = mutant.law(data)
    assert p_value_of_outputs(mutant(data, 40_000, np.random.default_rng(9)), law) > ALARM / len(DIFFERENT)
    assert np.abs(law.probabilities - AgnosticLearner(hypotheses, 1.0).probabilities(data)).max() > 0.01


@pytest.mark.parametrize("k", [2, 16])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_level_without_the_half(k: int, n: int) -> None:
    mutant, data = built("half_missing", PointFunctions(k)), records((0, 0, n))
    p = float(mutant.law(data).probabilities[0])
    assert level_of(mutant, data, flipped(data)) == pytest.approx(2.0 - math.log1p(p * math.expm1(2.0)), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "factor"),
    [("score_over_n", 0.25), ("eps_halved", 0.5), ("sign_flipped", 1.0), ("score_on_random_subset", 1.0)],
)
def test_mutants_that_are_as_private_as_the_reference(name: str, factor: float) -> None:
    """On all neighbours of four records of three points; with the last replaced, as they are symmetric."""
    mutant = built(name, PointFunctions(3))
    every = list(itertools.product(range(3), (0, 1)))
    for first in itertools.combinations_with_replacement(every, 3):
        laws = np.log([mutant.probabilities(np.array([*first, last])) for last in every])
        assert float(np.ptp(laws, axis=0).max()) <= factor * (1 + 1e-9)


def test_multiplicities_cost_no_privacy() -> None:
    mutant = built("parameters_with_multiplicity", IntervalFunctions(3))
    every = list(itertools.product(range(3), (0, 1)))
    for first in itertools.combinations_with_replacement(every, 2):
        laws = np.log([mutant.probabilities(np.array([*first, last])) for last in every])
        assert float(np.ptp(laws, axis=0).max()) <= 1 + 1e-9


def test_halves_of_the_data_by_enumeration() -> None:
    data, mutant = sample(3, 7, 10), built("score_on_random_subset", PointFunctions(3))
    reference = AgnosticLearner(PointFunctions(3), 1.0)
    halves = [reference.probabilities(data[list(rows)]) for rows in itertools.combinations(range(7), 3)]
    assert mutant.probabilities(data) == pytest.approx(np.mean(halves, axis=0), rel=1e-12)


def test_halves_of_much_data_are_refused() -> None:
    with pytest.raises(ValueError, match="subsets"):
        built("score_on_random_subset", PointFunctions(3)).law(sample(3, 200, 11))


def test_level_of_noisy_min_by_quadrature() -> None:
    """The pair of the claim: eight points, one record (0, 0) against (0, 1), noise of scale 1."""

    def wins(lead: float) -> float:
        """P[L_0 + lead > L_j for seven others]."""

        def integrand(t: float) -> float:
            return 0.5 * math.exp(-abs(t - lead)) * float(stats.laplace.cdf(t)) ** 7

        return sum(
            integrate.quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12)[0]
            for a, b in ((-40.0, -1.0), (-1.0, 0.0), (0.0, 1.0), (1.0, 45.0))
        )

    behind, ahead = wins(-1.0), wins(1.0)
    mutant, data = built("noisy_min_lap_1_over_eps", PointFunctions(8)), records((0, 0, 1))
    assert mutant.law(data).probabilities[0] == pytest.approx(behind, rel=1e-9)
    expected = max(math.log(ahead / behind), math.log((1 - behind) / (1 - ahead)))
    assert level_of(mutant, data, flipped(data)) == pytest.approx(expected, rel=1e-8)
    assert expected == pytest.approx(1.9053, abs=5e-5)


def test_weights_underflow_at_745() -> None:
    mutant = built("exp_underflow", PointFunctions(2))
    assert mutant.probabilities(records((0, 0, 1490), (1, 0, 1491))).tolist() == [1.0, 0.0]
    assert mutant.probabilities(records((0, 0, 1491), (1, 0, 1490))).tolist() == [0.0, 1.0]
    reference = AgnosticLearner(PointFunctions(2), 1.0)
    assert level_of(reference, records((0, 0, 1490), (1, 0, 1491)), records((0, 0, 1491), (1, 0, 1490))) < 1
    with pytest.raises(ValueError, match="weight above 0"):
        mutant.law(records((0, 0, 1491), (1, 0, 1491)))
    ties = built("argmax_on_ties", PointFunctions(2))
    assert ties.probabilities(records((0, 0, 1491), (1, 0, 1491))).tolist() == [1.0, 0.0]
    assert ties.probabilities(records((0, 0, 1492), (1, 0, 1490))).tolist() == [0.0, 1.0]


def test_ties_are_broken_without_noise() -> None:
    mutant = built("argmax_on_ties", PointFunctions(3))
    assert mutant.probabilities(records((0, 1, 1), (1, 1, 1))).tolist() == [1.0, 0.0, 0.0]
    once = records((0, 1, 1))
    assert mutant.probabilities(once) == pytest.approx(AgnosticLearner(PointFunctions(3), 1.0).probabilities(once))


@pytest.mark.parametrize(
    ("name", "hypotheses", "x", "y"),
    [
        ("argmax_on_ties", PointFunctions(2), records((0, 1, 1), (0, 0, 1)), records((0, 1, 2))),
        ("gumbel_noise_reused", PointFunctions(2), records((0, 1, 3)), records((0, 1, 2), (0, 0, 1))),
        ("never_fails", PointFunctions(16), records((0, 1, 1)), records((0, 0, 1))),
        ("sample_dependent_class", PointFunctions(4), records((0, 1, 1), (1, 1, 1)), records((0, 1, 2))),
        ("sample_dependent_class__consistent", PointFunctions(4), records((0, 0, 2)), records((0, 0, 1), (0, 1, 1))),
        ("labelings_of_the_sample", ThresholdFunctions(16), records((3, 0, 3)), records((3, 0, 2), (8, 0, 1))),
        ("grid_from_data_range", ThresholdFunctions(16), records((3, 0, 1), (7, 1, 1)), records((3, 0, 1), (12, 1, 1))),
    ],
)
def test_infinite_levels(name: str, hypotheses: HypothesisClass, x: IntArray, y: IntArray) -> None:
    assert level_of(built(name, hypotheses), x, y) == math.inf
    true = MUTANTS[name].true_level
    assert true is not None
    assert true(AgnosticLearner(hypotheses, 1.0)) == math.inf


def test_nothing_offered_means_everything_is() -> None:
    data = records((0, 0, 1), (0, 1, 1))
    expected = AgnosticLearner(PointFunctions(3), 1.0).probabilities(data)
    assert built("sample_dependent_class__consistent", PointFunctions(3)).probabilities(data) == pytest.approx(expected)
    assert built("sample_dependent_class", PointFunctions(3, 1)).probabilities(records((3, 0, 2))) == pytest.approx(
        1 / 3
    )


@pytest.mark.parametrize("k", [16, 64])
def test_level_of_deduplication_in_closed_form(k: int) -> None:
    """Records at the last point; on z' point 0 appears, and its hypothesis leaves those that agree."""
    mutant, n = built("deduplicated_on_sample", PointFunctions(k)), 4
    data = records((k - 1, 0, n))
    together = 1.0 / (math.exp(-n / 2) + 1.0) / (k - 1)
    alone = math.exp(-0.5) / (math.exp(-(n - 1) / 2) + math.exp(-0.5) + 1.0)
    assert mutant.law(data).probabilities[0] == pytest.approx(together, rel=1e-12)
    assert mutant.law(replaced(data, 0, 0)).probabilities[0] == pytest.approx(alone, rel=1e-12)
    assert level_of(mutant, data, replaced(data, 0, 0)) == pytest.approx(math.log(alone / together), rel=1e-12)


def test_single_precision_loses_small_weights() -> None:
    """Two of 2^17 points lead by 32 records: others are lost where the leaders tie, and not where they do not."""
    mutant = LabelsAt(built("float32_cumulative_sum", PointFunctions(1 << 17)), (0, 1))
    tie = records((0, 1, 32), (1, 1, 32))
    assert mutant.law(tie).probabilities.tolist() == [0.0, 0.5, 0.5, 0.0]
    # Each comes out as a unit in the last place of the leaders' 1 + 1/e.
    kept = (2**17 - 2) * 2.0**-23
    others = float(mutant.law(flipped(tie)).probabilities[0])
    assert others == pytest.approx(kept / (1 + math.exp(-1) + kept), rel=1e-6)
    assert level_of(mutant, tie, flipped(tie)) == math.inf
    lost = records((0, 1, 34), (1, 1, 34))
    assert mutant.law(flipped(lost)).probabilities[0] == 0.0
    assert level_of(mutant, lost, flipped(lost)) <= 1.0
    reference = LabelsAt(AgnosticLearner(PointFunctions(1 << 17), 1.0), (0, 1))
    missing = (2**17 - 2) * math.exp(-17)
    assert reference.law(lost).probabilities[0] == pytest.approx(missing / (2 + missing), rel=1e-12)


def test_released_labels_are_those_of_the_chosen_hypothesis() -> None:
    learner, data = AgnosticLearner(ParityFunctions(3), 1.0), sample(8, 5, 12)
    released = LabelsAt(learner, (1, 6, 7))
    table = ParityFunctions(3).labels(np.array([1, 6, 7])).astype(int)
    expected = np.zeros(8)
    for h, mass in enumerate(learner.law(data).probabilities):
        expected[table[0, h] + 2 * table[1, h] + 4 * table[2, h]] += mass
    law = released.law(data)
    assert law.probabilities == pytest.approx(expected, rel=1e-12)
    assert p_value_of_outputs(released(data, 40_000, np.random.default_rng(13)), law) > ALARM
    assert released.epsilon == 1.0


# ---------------------------------------------------------------------------------- fresh examples


def test_a_fresh_learner_is_the_learner_on_fresh_records() -> None:
    rng, n, size = np.random.default_rng(14), 4_000, 6
    found = np.array([[0, 1], [0, 0], [2, 1], [3, 0]])
    examples = FiniteExampleDistribution(PointFunctions(4), found, np.array([0.3, 0.1, 0.2, 0.4]))
    learner = AgnosticLearner(PointFunctions(4), 1.0)
    honest = np.concatenate([learner(found[rng.choice(4, size, p=examples.weights)], 1, rng) for _ in range(n)])
    # Points 0, .. 3 are told apart by the records, all but points 1 and 3: on (3, 0) they differ too.
    errors = (PointFunctions(4).labels(found[:, 0]) != (found[:, 1] == 1)[:, None]).astype(float)
    by_hand = examples.weights @ errors
    drawn = examples.errors[FreshLearner(1.0, size)(examples, n, rng)]
    cells = np.unique(by_hand)
    assert cells == pytest.approx(np.unique(examples.errors))
    table = [
        [int(np.isclose(by_hand[honest], cell).sum()) for cell in cells],
        [int(np.isclose(drawn, cell).sum()) for cell in cells],
    ]
    assert min(min(row) for row in table) >= 50
    assert stats.chi2_contingency(table).pvalue > ALARM
    assert examples.multiplicities.sum() == 4


INSTANCES: list[tuple[FiniteExampleDistribution | IndependentBits, FreshLearner]] = [
    (identical_realizable(16, 0.1), FreshLearner(0.5, 100)),
    (identical_agnostic(16, 0.2), FreshLearner(0.1, 300)),
    (IndependentBits(16, 0.2), FreshLearner(1.0, 100)),
    (IndependentBits(3, 0.2), FreshLearner(0.1, 200)),
    (identical_realizable(16, 0.1), FreshEpsHalved(0.5, 100)),
    (identical_agnostic(16, 0.2), FreshScoreOverN(0.1, 300)),
    (identical_agnostic(2, 0.2), FreshSignFlipped(0.1, 30)),
]


@pytest.mark.parametrize(("examples", "learner"), INSTANCES)
def test_failures_are_as_frequent_as_computed(examples: Any, learner: FreshLearner) -> None:
    alpha = 0.1 if examples.errors.min() == 0 else 0.2
    failures = ExcessError(examples)(learner(examples, 20_000, np.random.default_rng(15))) >= alpha
    exact = examples.failure(learner, alpha)
    assert 0.02 < exact < 0.98
    assert stats.binomtest(int(failures.sum()), 20_000, exact).pvalue > ALARM / len(INSTANCES)


@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.3), (16, 2.0)])
def test_failure_with_identical_hypotheses_is_the_catalogues_sum(k: int, epsilon: float) -> None:
    n, alpha = 60, 0.1
    b = np.arange(n + 1)
    learner = FreshLearner(epsilon, n)
    realizable = stats.binom.pmf(b, n, alpha) @ special.expit(math.log(k - 1) - epsilon * b / 2)
    agnostic = stats.binom.pmf(b, n, (1 + alpha) / 2) @ special.expit(math.log(k - 1) - epsilon * (2 * b - n) / 2)
    assert identical_realizable(k, alpha).failure(learner, alpha) == pytest.approx(realizable, rel=1e-6)
    assert identical_agnostic(k, alpha).failure(learner, alpha) == pytest.approx(agnostic, rel=1e-6)


@pytest.mark.parametrize(("k", "n", "epsilon"), [(2, 5, 1.0), (3, 4, 0.3), (4, 3, 6.0)])
def test_failure_with_independent_hypotheses_by_enumeration(k: int, n: int, epsilon: float) -> None:
    examples = IndependentBits(k, 0.2)
    best, worse = (stats.binom.pmf(np.arange(n + 1), n, examples.errors[j]) for j in (0, -1))
    exact = 0.0
    for wrong in itertools.product(range(n + 1), repeat=k):
        mass = best[wrong[0]] * math.prod(worse[m] for m in wrong[1:])
        exact += mass * (1.0 - float(special.softmax(-epsilon / 2 * np.array(wrong))[0]))
    assert examples.failure(FreshLearner(epsilon, n), 0.2) == pytest.approx(exact, rel=1e-9)
    assert examples.failure(FreshLearner(epsilon, n), 0.3) == 0.0


def test_exact_failures_are_of_two_records_only() -> None:
    found = np.array([[0, 1], [1, 0], [2, 0]])
    examples = FiniteExampleDistribution(PointFunctions(3), found, np.array([0.5, 0.25, 0.25]))
    with pytest.raises(ValueError, match="two records"):
        examples.failure(FreshLearner(1.0, 5), 0.1)


def test_errors_are_compared_with_the_best_of_the_class() -> None:
    examples = identical_agnostic(4, 0.2)
    best = int(examples.errors.argmin())
    assert ExcessError(examples)(np.array([best, 1 - best])) == pytest.approx([0.0, 0.2])
    assert ExcessError(examples, 0.0)(np.array([best])) == pytest.approx([0.4])


# ------------------------------------------------------------------------------------ sample sizes


def least(examples: Any, epsilon: float, alpha: float, beta: float, high: int) -> int:
    return least_size(lambda n: examples.failure(FreshLearner(epsilon, n), alpha), beta, high)


def test_the_catalogues_least_size_on_consistent_data() -> None:
    epsilon, alpha, k, beta = 0.1, 0.02, 1024, 0.05
    bound = realizable_bound(math.log(k - 1), epsilon, alpha, beta)
    assert bound == pytest.approx(10176.5, abs=0.1)
    examples = identical_realizable(k, alpha)
    assert least(examples, epsilon, alpha, beta, 10_177) == 10_090
    assert examples.failure(FreshLearner(epsilon, 10_089), alpha) > beta
    assert printed_size(k, epsilon, alpha, beta) == pytest.approx(148_908, abs=1)


@pytest.mark.parametrize(("epsilon", "excess"), [(0.1, 0.04), (0.5, 0.04), (1.0, 0.10), (2.0, 0.24)])
def test_the_bound_on_consistent_data_is_nearly_the_least_size(epsilon: float, excess: float) -> None:
    for k in (16, 64, 4096):
        for alpha in (0.01, 0.05, 0.1):
            for beta in (0.05, 0.01):
                bound = realizable_bound(math.log(k - 1), epsilon, alpha, beta)
                exact = least(identical_realizable(k, alpha), epsilon, alpha, beta, math.ceil(bound))
                assert exact <= math.ceil(bound) <= (1 + excess) * exact + 1


def test_half_of_the_level_needs_about_twice_the_sample() -> None:
    examples, beta = identical_realizable(1024, 0.02), 0.05
    sound = least(examples, 0.1, 0.02, beta, 11_000)
    halved = least_size(lambda n: examples.failure(FreshEpsHalved(0.1, n), 0.02), beta, 30_000)
    assert 1.9 < halved / sound < 2.1


@pytest.mark.parametrize("epsilon", [0.001, 0.01])
def test_the_catalogues_constant_for_small_eps(epsilon: float) -> None:
    for k in (16, 1024):
        alpha, beta = 0.1, 0.05
        size = least(identical_agnostic(k, alpha), epsilon, alpha, beta, 10**6)
        assert 1.9 < size * epsilon * alpha / math.log(k / beta) < 2.4


def test_the_catalogues_constant_for_large_eps() -> None:
    alpha, beta, k = 0.1, 0.05, 64
    size = least(IndependentBits(k, alpha), 1.0, alpha, beta, 2_000)
    assert size * alpha**2 / math.log(k / beta) == pytest.approx(0.6, abs=0.1)


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.2, 0.3, 1.0, 4.0])
def test_failures_are_below_the_bounds(epsilon: float) -> None:
    alpha = 0.1
    for k in (2, 16, 256):
        for n in (10, 100, 400):
            learner = FreshLearner(epsilon, n)
            bound = agnostic_failure(k, epsilon, alpha, n)
            assert identical_agnostic(k, alpha).failure(learner, alpha) <= bound * (1 + 1e-6)
            assert IndependentBits(k, alpha).failure(learner, alpha) <= bound * (1 + 1e-6)
            consistent = identical_realizable(k, alpha)
            assert consistent.failure(learner, alpha) <= realizable_failure(k, epsilon, alpha, n) * (1 + 1e-6)


def test_bounds_fail_with_beta_at_their_sample_sizes() -> None:
    for k, epsilon, alpha, beta in ((2, 0.1, 0.1, 0.4), (64, 1.0, 0.1, 0.05), (64, 0.02, 0.1, 0.05)):
        size = agnostic_bound(math.log(k - 1), epsilon, alpha, beta)
        assert agnostic_failure(k, epsilon, alpha, size) == pytest.approx(beta, rel=1e-9)
        size = realizable_bound(math.log(k - 1), epsilon, alpha, beta)
        # ln(1 - x) < -x, by little where x = alpha (1 - e^(-eps / 2)) is small.
        assert 0.8 * beta < realizable_failure(k, epsilon, alpha, size) < beta


def test_hoeffdings_lemma_as_the_bound_uses_it() -> None:
    """E e^(-s D) <= e^(-s alpha + s^2 / 2) for a term in {-1, 0, 1} of mean alpha."""
    for alpha in (0.01, 0.1, 0.5):
        for s in (0.001, 0.05, 0.1, 0.5, 2.0):
            for stay in np.linspace(0.0, 1.0 - alpha, 9):
                plus, minus = (1.0 - stay + alpha) / 2, (1.0 - stay - alpha) / 2
                moment = plus * math.exp(-s) + stay + minus * math.exp(s)
                assert moment <= math.exp(-s * alpha + s * s / 2) * (1 + 1e-12)


# --------------------------------------------------------------------- the printed proof of 3.4, E2


def test_the_printed_line_at_the_catalogues_examples() -> None:
    size = printed_size(10, 0.1, 0.1, 0.1)
    assert size == pytest.approx(2763.1, abs=0.1)
    for n in (2763, 2764):
        assert printed_failure(10, 0.1, 0.1, n) == pytest.approx(1.43 * 0.1, abs=5e-4)
    assert printed_failure(2, 1.0, 0.1, math.ceil(printed_size(2, 1.0, 0.1, 0.4))) == pytest.approx(
        1.17 * 0.4, abs=2e-3
    )
    # The second term alone is beta where eps <= alpha.
    for k, epsilon, alpha, beta in ((10, 0.1, 0.1, 0.1), (1000, 0.01, 0.2, 0.05)):
        size = printed_size(k, epsilon, alpha, beta)
        assert k * math.exp(-epsilon * size * alpha / 6) == pytest.approx(beta, rel=1e-9)
    # At |H| / beta = 4 the line needs 9, beyond that less: 7.4845 at 10.
    for k, beta, enough in ((2, 0.5, 9.0), (1, 0.1, 7.4846)):
        for constant, holds in ((enough * (1 + 1e-9), True), (enough * 0.999, False)):
            size = constant * math.log(k / beta) / 0.1**2
            assert (printed_failure(k, 0.1, 0.1, size) <= beta) == holds


def test_the_constants_that_the_printed_line_needs() -> None:
    """At eps = alpha both terms are as large as they can be, and the line depends on |H| / beta only."""

    def needed(ratio: float) -> float:
        logarithm = math.log(ratio)
        return float(
            optimize.brentq(
                lambda c: ratio * (2 * math.exp(-2 * c * logarithm / 9) + math.exp(-c * logarithm / 6)) - 1, 1, 30
            )
        )

    assert needed(4.0) == pytest.approx(9.0, abs=1e-6)
    assert 7.48 < needed(10.0) < 7.49
    assert needed(1e12) == pytest.approx(6.0, abs=0.1)
    for ratio in (4.0, 8.0, 100.0, 1e6):
        assert needed(ratio) <= 9.0 + 1e-9


def test_the_printed_size_suffices() -> None:
    for k in (2, 10, 10**6):
        for epsilon in (0.01, 0.1, 1.0, 10.0):
            for alpha in (0.01, 0.1, 0.4):
                for beta in (0.4, 0.1, 1e-6):
                    size = printed_size(k, epsilon, alpha, beta)
                    assert agnostic_failure(k, epsilon, alpha, size) <= beta
                    assert size >= agnostic_bound(math.log(max(k - 1, 1)), epsilon, alpha, beta)
