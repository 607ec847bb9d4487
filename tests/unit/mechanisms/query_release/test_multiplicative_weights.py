"""Private multiplicative weights: the catalogue's figures, distributions against enumeration and draws, mutants."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from auditor.privacy.exact import advanced_composition, curve
from auditor.targets.analysts import Adaptive, FixedList, Phases, RandomQueries
from auditor.targets.interactive import SKIP, Analyst, History
from auditor.targets.transcripts import Dialogue, ExactDialogue
from mechanisms.query_release.multiplicative_weights import (
    DROP,
    MUTANTS,
    DataUniverse,
    MultiplicativeWeights,
    MultiplicativeWeightsRules,
    QueryWorkload,
    WorstQuery,
    accuracy_bound,
    epoch_budget,
    most_updates,
    rows_needed,
    subset_queries,
)
from tests.statistics import p_value_of_outputs

# 1000 rows of four types; the first row's type changes. A query (1 or 0, 0 or 1, w, 0) has a gap of 50 + 50 w persons.
FOUR = DataUniverse((("a", 0.0), ("b", 0.0)))
X = np.repeat([0, 1, 2, 3], [300, 300, 300, 100])
Y = np.concatenate([[1], X[1:]])
RISES, FALLS, STAYS = [0.0, 1.0, 0.5, 0.0], [1.0, 0.0, 0.5, 0.0], [0.5, 0.5, 0.5, 0.0]
GAP = 75.0
# A scale below the threshold of 8 scales.
NEAR = [1.0, 0.0, 0.3125, 0.0]

# Chi-square tests fail at this level; all of them together at less than 1e-6.
P_VALUE = 1e-8


def mechanism(
    *queries: list[float], alpha: float = GAP, epsilon0: float = 8 / GAP, cap: int = 1, **options: Any
) -> MultiplicativeWeights:
    workload = QueryWorkload(np.array(queries))
    return MultiplicativeWeights(workload, FOUR, 1000, alpha / 1000, epsilon0, cap, **{"cuts": (), **options})


def level(target: ExactDialogue) -> float:
    """Exact level of the pair in units of eps0."""
    assert isinstance(target.mechanism, MultiplicativeWeights)
    return curve(target.law(X), target.law(Y)).epsilon(0.0) / target.mechanism.epsilon0


def probabilities(target: ExactDialogue, data: np.ndarray) -> dict[Any, float]:
    law = target.law(data)
    return dict(zip(law.outcomes, law.probabilities.tolist(), strict=True))


def event(target: ExactDialogue, *transcripts: tuple[int, ...]) -> float:
    """Privacy loss of an event on the pair, in units of eps0."""
    assert isinstance(target.mechanism, MultiplicativeWeights)
    p, q = (sum(probabilities(target, data)[one] for one in transcripts) for data in (X, Y))
    return abs(math.log(p / q)) / target.mechanism.epsilon0


# ------------------------------------------------------------------- parameters of the theorem


def test_the_figures_of_the_catalogue() -> None:
    assert most_updates(256, 0.1) == 4732
    assert rows_needed(256, 4000, 1.0, 1e-6, 0.1, 0.05) == 736_252
    # Its rough form, alpha = 8.1 times the root, leaves out the second term of advanced composition: 1 % here.
    rough = math.sqrt(math.sqrt(math.log(256) * math.log(1e6)) * math.log((4000 + 2 * 4732) / 0.05) / 736_252)
    constant = math.sqrt(16 * math.sqrt(2 / DROP))
    assert constant == pytest.approx(8.1, abs=0.05)
    assert constant < 0.1 / rough < 1.01 * constant


def test_the_budget_of_an_epoch_is_what_composition_allows() -> None:
    for epsilon, epochs in ((1.0, 4732), (2.0, 198), (8.0, 40)):
        spent = 4 * epoch_budget(epsilon, 1e-6, epochs)
        total = min(advanced_composition(spent, epochs, 1e-6)[0], epochs * spent)
        assert epsilon * (1 - 1e-9) < total <= epsilon
    # Few epochs are cheaper added up.
    assert 4 * epoch_budget(1.0, 1e-6, 3) == pytest.approx(1 / 3, rel=1e-9)


def test_the_bound_is_the_inverse_of_the_rows_that_are_needed() -> None:
    for rows in (20_190, 736_252):
        alpha = accuracy_bound(256, 4000, 1.0, 1e-6, rows, 0.05)
        assert rows_needed(256, 4000, 1.0, 1e-6, alpha, 0.05) <= rows
        assert rows_needed(256, 4000, 1.0, 1e-6, alpha * (1 - 1e-4), 0.05) > rows


def test_an_update_lowers_the_divergence_by_the_constant() -> None:
    def drop(x: np.ndarray, h: np.ndarray, query: np.ndarray, alpha: float) -> float:
        universe = DataUniverse(tuple((str(i), 0.0) for i in range(int(math.log2(x.size)))))
        one = MultiplicativeWeights(QueryWorkload(query[None]), universe, 1, alpha, 1.0, 1)
        side = 1 if query @ x > query @ h else -1
        after = one.updated(h[None], np.array([0]), np.array([side]))[0]
        return float(x @ np.log(after / h))

    rng = np.random.default_rng(1)
    for _ in range(200):
        x, h = rng.dirichlet(np.full(8, 0.5)), rng.dirichlet(np.ones(8))
        query = np.rint(rng.random(8) * 2**20) / 2**20
        alpha = float(2 * abs(query @ x - query @ h))
        assert drop(x, h, query, alpha) >= DROP * alpha**2 * (1 - 1e-9)
    # Attained, in the limit: a hypothesis that is 1/2, wrong by exactly alpha / 2.
    small = 1e-3
    x = np.array([0.5 - small / 2, 0.5 + small / 2])
    assert drop(x, np.full(2, 0.5), np.array([0.0, 1.0]), small) == pytest.approx(DROP * small**2, rel=1e-3)


# --------------------------------------------------------------------------- the bound is tight


def test_the_update_pattern_reaches_three_and_the_answer_adds_one() -> None:
    # A threshold of 8 scales, which are 4 persons: 32. The cheap gap is 32 and rises, the costly one is 28 and falls.
    x = np.repeat([0, 1, 2, 3], [282, 282, 282, 154])
    y = np.concatenate([[1], x[1:]])
    costly = [1.0, 0.0, 0.0, round(2**20 / 24) / 2**20]
    pattern = mechanism([0.0, 1.0, 0.0, 0.0], costly, alpha=32.0, epsilon0=0.25)
    uniform = [int(pattern.of_hypothesis(np.full((1, 4), 0.25), query)[0]) for query in (0, 1)]
    assert (pattern.answers(x) - uniform) * pattern.step == pytest.approx([32.0, 28.0], abs=0.02)
    answered = replace(pattern, cuts=(30.0,))  # above both centres of its noise, 28 and 27
    for earlier, expected in ((10, 2.997), (100, 3.000)):
        stream = FixedList([0] * earlier + [1])
        for one, added in ((pattern, 0), (answered, 1)):
            target = ExactDialogue(one, stream)
            reached = curve(target.law(x), target.law(y)).epsilon(0.0) / one.epsilon0
            assert reached == pytest.approx(expected + added, abs=5e-4)


def test_publishing_the_side_costs_nothing() -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        # Thresholds around and below 0, where either side has an update; gaps of both signs.
        queries = [[*rng.integers(0, 2, 2).astype(float), *(rng.integers(0, 5, 2) / 4)] for _ in range(3)]
        one = mechanism(*queries, alpha=1.0, epsilon0=0.125, step=2.0**-3)
        assert level(ExactDialogue(one, FixedList([0, 1, 2, 0, 1]))) <= 3 + 1e-9


def test_epochs_add_up() -> None:
    two = mechanism(RISES, FALLS, cap=2, epsilon0=1.0)
    both = level(ExactDialogue(two, Phases(0, 1, length=4, epochs=2)))
    assert 5 < both <= 6


def test_the_law_is_the_integral_of_the_proof() -> None:
    scale = 4.0
    one = mechanism(RISES, NEAR, epsilon0=1 / scale, step=2.0**-9)
    for data, (rising, near) in ((X, (75.0, 65.625)), (Y, (76.0, 64.625))):
        found = probabilities(ExactDialogue(one, FixedList([0] * 5 + [1])), data)

        def integrand(bar: float, rising: float = rising, near: float = near) -> float:
            below = stats.laplace.cdf(bar, rising, scale) - stats.laplace.cdf(-bar, rising, scale)
            above = stats.laplace.sf(bar, near, scale)
            return float(stats.laplace.pdf(bar, GAP, scale) * below**5 * above) if bar > 0 else 0.0

        kinks = (0.0, near, GAP, rising, 200.0)
        parts = [integrate.quad(integrand, a, b, epsabs=1e-16, epsrel=1e-10)[0] for a, b in itertools.pairwise(kinks)]
        # On the lattice "below" is one point shorter than in the integral: 1/512 of a person, times the queries.
        assert found[0, 0, 0, 0, 0, 1] == pytest.approx(sum(parts), rel=6 / 512 / scale)


# ------------------------------------------------------------------------- distributions by enumeration


def enumerated(one: MultiplicativeWeights, data: np.ndarray, queries: list[int]) -> dict[tuple[int, ...], float]:
    """Probabilities of transcripts: the algorithm as it is printed, run on every combination of noises in turn."""
    rules, silence = one.rules, int(one.silence)
    a, n = math.exp(one.epsilon0), one.rows
    draws = [(z, a ** -abs(z) * (a - 1) / (a + 1)) for z in range(-8, 9)]
    x = np.bincount(data, minlength=4) / n
    cuts = np.array(one.cuts)
    known: dict[tuple[int, bytes, float, int], dict[tuple[int, ...], float]] = {}

    def threshold() -> list[tuple[float, float]]:
        return [(one.alpha * n + z, p) for z, p in draws] if rules.threshold_noise else [(one.alpha * n, 1.0)]

    def rest(asked: int, h: np.ndarray, bar: float, left: int) -> dict[tuple[int, ...], float]:
        """Probabilities of what follows; the same whatever noise led here, so each state is run once."""
        if asked == len(queries) or (rules.stops and left == 0):
            return {(silence,) * (len(queries) - asked): 1.0}
        state = (asked, h.tobytes(), bar, left)
        if state not in known:
            known[state] = run(asked, h, bar, left)
        return known[state]

    def run(asked: int, h: np.ndarray, bar: float, left: int) -> dict[tuple[int, ...], float]:
        found: dict[tuple[int, ...], float] = defaultdict(float)
        q = one.workload.values[queries[asked]]
        truth, expected = math.floor(n * q @ x + 0.5), math.floor(n * q @ h + 0.5)
        for z, p in draws:
            answer = truth + z
            if abs((answer if rules.compared == "noisy" else truth) - expected) < bar:
                for suffix, mass in rest(asked + 1, h, bar, left).items():
                    found[0, *suffix] += p * mass
                continue
            side = 1 if (answer if rules.side == "noisy" else truth) > expected else -1
            after = h * np.exp((side if rules.step == "towards" else -side) * one.alpha / 4 * q)
            after /= after.sum()
            cells = [(answer, 1.0)] if rules.answer == "reused" else [(truth + b, r) for b, r in draws]
            ends = asked + 1 == len(queries) or (rules.stops and left == 1)
            fresh = [(bar, 1.0)] if ends or not rules.refreshed else threshold()
            for b, r in cells:
                code = side * (1 + int((cuts <= b - expected).sum()))
                for new, s in fresh:
                    for suffix, mass in rest(asked + 1, after, new, left - 1).items():
                        found[code, *suffix] += p * r * s * mass
        return found

    total: dict[tuple[int, ...], float] = defaultdict(float)
    for bar, p in threshold():
        for transcript, mass in rest(0, np.full(4, 0.25), bar, one.cap).items():
            total[transcript] += p * mass
    return dict(total)


@pytest.mark.parametrize(
    "rules",
    [
        MultiplicativeWeightsRules(),
        MultiplicativeWeightsRules(threshold_noise=False),
        MultiplicativeWeightsRules(refreshed=False),
        MultiplicativeWeightsRules(answer="reused"),
        MultiplicativeWeightsRules(compared="exact"),
        MultiplicativeWeightsRules(side="exact"),
        MultiplicativeWeightsRules(step="away"),
        MultiplicativeWeightsRules(stops=False),
    ],
    ids=str,
)
def test_laws_agree_with_an_enumeration_of_all_noise(rules: MultiplicativeWeightsRules) -> None:
    # A threshold of 4 scales; gaps of 3 persons up and 2 down. On the lattice of whole persons every combination of
    # noises can be tried: beyond 8 noise has probability e^-16.
    data = np.repeat([0, 1, 2, 3], [13, 8, 9, 10])
    queries = QueryWorkload(np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]))
    cap = 2 if rules.refreshed is False else 1
    one = MultiplicativeWeights(queries, FOUR, 40, 2 / 40, 2.0, cap, 1.0, cuts=(1.0,), rules=rules)
    found = probabilities(ExactDialogue(one, FixedList([0, 1])), data)
    expected = enumerated(one, data, [0, 1])
    assert set(found) == set(expected)
    for transcript, probability in found.items():
        assert probability == pytest.approx(expected[transcript], abs=2e-6), transcript


# ------------------------------------------------------------------------------ distributions and draws


def chi_square(target: ExactDialogue, data: np.ndarray, seed: int, n: int = 40_000) -> None:
    """Draws agree with the distribution."""
    assert p_value_of_outputs(target(data, n, np.random.default_rng(seed)), target.law(data)) > P_VALUE


# With n times more or less noise a distribution on this lattice would have too many points, or a single one.
@pytest.mark.parametrize("name", ["reference", *sorted(set(MUTANTS) - {"noise_without_n", "n_dropped_the_other_way"})])
def test_draws_follow_the_law(name: str) -> None:
    base = mechanism(RISES, NEAR, FALLS, cap=2, epsilon0=0.25, step=2.0**-3, cuts=(60.0, 70.0))
    one = base if name == "reference" else MUTANTS[name].build(base)
    assert isinstance(one, MultiplicativeWeights)
    chi_square(ExactDialogue(one, FixedList([0, 1, 2])), X, 5)


def test_draws_of_an_adaptive_analyst_follow_the_law() -> None:
    two = mechanism(RISES, FALLS, cap=2, epsilon0=0.25, step=2.0**-4)
    chi_square(ExactDialogue(two, Phases(0, 1, length=3, epochs=2)), X, 6)


@pytest.mark.parametrize(("power", "scale"), [(1, 4000.0), (-1, 0.004)])
def test_the_scale_of_noise_without_n(power: int, scale: float) -> None:
    # Twenty thousand released answers have a mean absolute deviation within 10 % of the scale but with probability
    # e^-99 (their own is 0.7 % of it); below the lattice it is 0.
    one = mechanism(
        STAYS,
        alpha=1e-3,
        epsilon0=0.25,
        cuts=None,
        rules=MultiplicativeWeightsRules(noise_power=power, threshold_noise=False),
    )
    drawn = Dialogue(one, FixedList([0]))(X, 20_000, np.random.default_rng(0))
    deviation = float(np.abs(drawn[:, 1] * 1000 - 450).mean())
    assert deviation == pytest.approx(scale, rel=0.1) if power > 0 else deviation < scale


def test_the_two_ways_of_publishing_say_the_same() -> None:
    coded = mechanism(RISES, NEAR, cap=3, epsilon0=0.125, cuts=(60.0, 70.0))
    full = replace(coded, cuts=None)
    stream = FixedList([0, 1, 1, 0, 1, 0])
    codes = Dialogue(coded, stream)(X, 500, np.random.default_rng(4))
    both = Dialogue(full, stream)(X, 500, np.random.default_rng(4))
    sides, answers = both[:, 0::2], both[:, 1::2]
    halted = codes == coded.silence
    assert np.array_equal(np.isnan(sides), halted)
    assert halted.any()
    assert (codes == 0).any()
    assert np.array_equal(np.sign(codes[~halted]), sides[~halted])
    # Everything that is published is a multiple of the lattice's step.
    steps = answers[~halted] * 1000 / full.step
    assert np.abs(steps - np.rint(steps)).max() < 1e-6


# ----------------------------------------------------------------------------------- sessions


def test_a_run_halts_after_its_updates_and_a_skipped_round_changes_nothing() -> None:
    one = mechanism(RISES, cap=2, alpha=1e-3, epsilon0=100.0)
    session = one.start(X, 3, np.random.default_rng(0))
    assert session.ask(np.array([0, SKIP, 0])).tolist() == [1, 2, 1]
    before = session.hypotheses
    assert session.ask(SKIP).tolist() == [2, 2, 2]
    assert np.array_equal(session.hypotheses, before)
    assert session.ask(0).tolist() == [1, 1, 1]
    assert session.ask(0).tolist() == [2, 1, 2]
    assert session.updates.tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="from 0 to 0"):
        session.ask(1)


def test_hypotheses_are_those_of_the_algorithm() -> None:
    one = mechanism(RISES, NEAR, STAYS, alpha=50.0, epsilon0=1 / 30, cap=50, cuts=None)
    n, rng = 40, np.random.default_rng(7)
    session = one.start(X, n, np.random.default_rng(8))
    expected = np.full((n, 4), 0.25)
    for _ in range(30):
        queries = rng.integers(0, 3, n)
        answered = session.ask(queries)
        inside = np.einsum("ij,ij->i", expected, one.workload.values[queries])
        quiet = answered[:, 0] == 0
        assert answered[quiet, 1] == pytest.approx(inside[quiet], abs=one.step / 1000)
        expected *= np.exp(answered[:, :1] * one.alpha / 4 * one.workload.values[queries])
        expected /= expected.sum(axis=1, keepdims=True)
        assert session.hypotheses == pytest.approx(expected, rel=1e-12)
    assert session.updates.any()


def test_all_answers_are_near_where_the_theorem_says_so() -> None:
    alpha, m = 0.3, 60
    universe = DataUniverse((("a", 0.0), ("b", 0.0)))
    n = rows_needed(4, m, 2.0, 1e-6, alpha, 1e-6)
    types = np.resize([0, 0, 0, 0, 0, 0, 0, 1], n)
    cap = most_updates(4, alpha)
    queries = subset_queries(m, universe, np.random.default_rng(0))
    one = MultiplicativeWeights(queries, universe, n, alpha, epoch_budget(2.0, 1e-6, cap), cap)
    truth = queries.values @ universe.counts(types) / n
    drawn = one(types, 50, np.random.default_rng(1))
    # The theorem's own probability of failure in 50 runs is 5e-5; the noise of a failure is 4 times what occurs.
    assert np.abs(drawn[:, 1::2] - truth).max() <= 1.5 * alpha
    assert (drawn[:, ::2] != 0).any()


@pytest.mark.parametrize("step", ["towards", "away"])
def test_the_worst_query_is_found_from_the_transcript(step: Any) -> None:
    queries = subset_queries(12, FOUR, np.random.default_rng(3)).values.tolist()
    one = mechanism(*queries, alpha=40.0, epsilon0=1 / 8, cap=9, cuts=None, rules=MultiplicativeWeightsRules(step=step))
    asks = WorstQuery(one, X)
    session = one.start(X, 30, np.random.default_rng(4))
    asked, given = np.empty((30, 0), dtype=np.int64), np.empty((30, 0, 2))
    truth = np.array(queries) @ FOUR.counts(X) / 1000
    for _ in range(12):
        history = History(asked, given, math.nan, np.empty((30, 0)))
        chosen = asks(history)
        runs = session.updates < one.cap
        assert np.array_equal(chosen == SKIP, history.halted())
        wrong = np.abs(session.hypotheses @ np.array(queries).T - truth)
        assert wrong[runs, chosen[runs]] == pytest.approx(wrong[runs].max(axis=1), abs=1e-5)
        answer = session.ask(chosen)
        asked, given = np.column_stack([asked, chosen]), np.concatenate([given, answer[:, None]], axis=1)


@pytest.mark.parametrize(
    "analyst", [RandomQueries(range(3), 12), Phases(0, 1, length=2, epochs=3), FixedList([0, 1, 2])], ids=repr
)
def test_sessions_serve_the_usual_analysts(analyst: Analyst) -> None:
    one = mechanism(RISES, NEAR, STAYS, epsilon0=0.125, cap=3)
    drawn = Dialogue(one, analyst)(X, 20, np.random.default_rng(0))
    assert drawn.shape == (20, analyst.rounds * (2 if analyst.adaptive else 1))


def test_the_worst_query_passes_the_check_of_adaptive_analysts() -> None:
    one = mechanism(RISES, NEAR, STAYS, alpha=20.0, epsilon0=0.125, cap=3, cuts=None)
    drawn = Dialogue(one, Adaptive(WorstQuery(one, X), 6))(X, 20, np.random.default_rng(0))
    assert drawn.shape == (20, 18)


# ------------------------------------------------------------------------------------- mutants


def test_what_cheap_answers_cost_without_threshold_noise() -> None:
    # The catalogue: t = 2, 5, 11 give 1, 4, 10 eps0 for gaps just above the threshold, where the mechanism itself gives
    # 0.52 to 0.68, 0.95 to 1.00 and 1.00, depending on the gap.
    right = mechanism(RISES, alpha=GAP - 1)
    wrong = replace(right, rules=MultiplicativeWeightsRules(threshold_noise=False))
    for t, low, high in ((2, 0.50, 0.70), (5, 0.93, 1.001), (11, 0.99, 1.001)):
        stream = FixedList([0] * (t - 1))
        assert event(ExactDialogue(wrong, stream), (0,) * (t - 1)) == pytest.approx(t - 1, abs=1e-9)
        assert low <= event(ExactDialogue(right, stream), (0,) * (t - 1)) <= high


def test_the_update_adds_two_without_threshold_noise() -> None:
    wrong = mechanism(
        RISES, [1.0, 0.0, 0.0, 0.0], alpha=GAP - 1, cuts=(GAP,), rules=MultiplicativeWeightsRules(threshold_noise=False)
    )
    for t in (2, 5, 11):
        # All cheap, then an update by noise of a scale or more, and a high answer.
        assert event(ExactDialogue(wrong, FixedList([0] * (t - 1) + [1])), (0,) * (t - 1) + (2,)) == pytest.approx(
            t + 1
        )


def test_what_a_reused_answer_costs() -> None:
    # A released answer below the gaps of the cheap queries, whose noise was lower still.
    for last, factor in ((STAYS, -1), (RISES, 0)):
        wrong = mechanism(RISES, last, cuts=(GAP - 5,), rules=MultiplicativeWeightsRules(answer="reused"))
        right = replace(wrong, rules=MultiplicativeWeightsRules())
        for t in (2, 5, 11):
            stream, low = FixedList([0] * (t - 1) + [1]), (0,) * (t - 1) + (1,)
            assert event(ExactDialogue(wrong, stream), low) == pytest.approx(t + factor, abs=1e-6)
            assert event(ExactDialogue(right, stream), low) <= 4


def test_a_threshold_that_is_kept_is_paid_for_once() -> None:
    for cap in (1, 2, 3):
        one = mechanism(
            RISES, FALLS, cap=cap, epsilon0=0.5, step=2.0**-2, rules=MultiplicativeWeightsRules(refreshed=False)
        )
        assert level(ExactDialogue(one, Phases(0, 1, length=3, epochs=cap))) <= 2 * cap + 1 + 1e-9


def test_exact_answers_cost_everything() -> None:
    ordered = mechanism(
        [0.0, 1.0, 0.4921875, 0.0],
        [1.0, 0.0, 0.5, 0.0],
        epsilon0=1.0,
        rules=MultiplicativeWeightsRules(compared="exact"),
    )
    assert level(ExactDialogue(ordered, FixedList([0, 1]))) == math.inf
    # A gap of half a person, on either side of 0 on the two datasets.
    flips = mechanism(
        [1.0, 0.0, 0.0, 0.328125], alpha=2.0, epsilon0=1.0, rules=MultiplicativeWeightsRules(side="exact")
    )
    gap = flips.answers(X)[0] * flips.step - 1000 * 1.328125 / 4
    assert 0 < gap < 1
    assert level(ExactDialogue(flips, FixedList([0]))) == math.inf


def test_no_cap_costs_more_with_every_query() -> None:
    base = mechanism(RISES, epsilon0=0.5, step=2.0**-2, cuts=(GAP,))
    free = replace(base, rules=MultiplicativeWeightsRules(stops=False))
    levels = [level(ExactDialogue(free, FixedList([0] * k))) for k in (1, 3, 5)]
    assert level(ExactDialogue(base, FixedList([0] * 5))) <= 4
    assert levels[0] < levels[1] < levels[2]
    assert levels[2] > 4


# -------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DataUniverse(()), r"1 to 16 splits, got \(\)"),
        (lambda: FOUR.counts(np.array([0, 4])), "types from 0 to 3"),
        (lambda: QueryWorkload(np.array([0.5])), r"a matrix of queries, got \(1,\)"),
        (lambda: QueryWorkload(np.array([[1.5]])), "from 0 to 1, got array"),
        (lambda: QueryWorkload(np.array([[0.1]])), "multiples of"),
        (lambda: mechanism([0.0, 1.0]), "queries on 4 types, got 2"),
        (lambda: mechanism(RISES, cap=0), "an integer cap >= 1, got 0"),
        (lambda: mechanism(RISES, alpha=0.0), "a finite alpha > 0, got 0.0"),
        (lambda: mechanism(RISES, epsilon0=-1.0), "a finite epsilon0 > 0, got -1.0"),
        (lambda: mechanism(RISES, step=0.3), "a power of two of at most 1 as step, got 0.3"),
        (lambda: mechanism(RISES, step=2.0), "a power of two of at most 1 as step, got 2.0"),
        (lambda: mechanism(RISES, cuts=(2.0, 1.0)), r"cuts that rise .* got \(2.0, 1.0\)"),
        (lambda: mechanism(RISES).answers(X[:10]), "1000 rows, got 10"),
        (lambda: mechanism(RISES, cuts=None).branches(X, 1), "a mechanism with cuts"),
        (lambda: mechanism(RISES, epsilon0=1e-6).branches(X, 1), "a noise scale of at most"),
        (lambda: WorstQuery(mechanism(RISES), X), r"a mechanism without cuts, got \(\)"),
        (lambda: MultiplicativeWeightsRules(noise_power=2), "a noise power of -1, 0 or 1, got 2"),
        (lambda: MultiplicativeWeightsRules(answer="old"), "answer among"),  # type: ignore[arg-type]
        (lambda: most_updates(1, 0.1), "at least two types, got 1"),
        (lambda: epoch_budget(1.0, 0.0, 3), r"delta in \(0, 1\), got 0.0"),
    ],
)
def test_errors_show_what_was_given(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_laws_refuse_what_would_underflow() -> None:
    far = ExactDialogue(mechanism(RISES, alpha=1.0, epsilon0=20.0), FixedList([0]))
    with pytest.raises(ValueError, match=r"gaps within 700\.0 noise scales"):
        far.law(X)
