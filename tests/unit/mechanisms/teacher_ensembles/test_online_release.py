"""Online release of stable queries: golden values, leaks and distributions by independent routes, distances, mutants.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from auditor.privacy.exact import FiniteLaw, curve
from auditor.targets.analysts import FixedList, Phases
from auditor.targets.transcripts import ExactDialogue
from experiments.common import rand
from experiments.document_004_model_agnostic._questions import asked, asked_pair, flip, flip_pair, moving, nobody
from experiments.document_004_model_agnostic.online_release import (
    MissedLaterQueries,
    _all_unstable,
    _claim_far_copy,
    _release_at_distance,
    _streams,
)
from mechanisms.base.queries import IdentityQuery
from mechanisms.selection.free_tops import HARMLESS, bank, epoch, tail
from mechanisms.teacher_ensembles.distance_test import MUTANTS as OF_A_TEST
from mechanisms.teacher_ensembles.online_leaks import (
    fresh_leak,
    needed_distance,
    printed_distance,
    release_scale,
    release_threshold,
    sharper_distance,
    surviving_leak,
    total_leak,
)
from mechanisms.teacher_ensembles.online_mutants import of_questions, of_tests
from mechanisms.teacher_ensembles.online_release import (
    BOTTOM,
    HALTED,
    MUTANTS,
    GivenDistances,
    OnlineRelease,
    QuestionList,
    ValuesOfOldCopy,
    elsewhere,
)
from tests.claims.declared import claim_of, stated_on_pair
from tests.statistics import p_value_of_outputs

#: Of one check.
ALARM = 1e-8


def rows(distances: Any, value: int = 0) -> Any:
    """Data for `GivenDistances`: one value, these distances."""
    return np.column_stack([np.full(len(distances), float(value)), np.asarray(distances, dtype=float)])


def level(mechanism: Any, pair: Any, delta: float = 0.0) -> float:
    return curve(mechanism.law(pair[0]), mechanism.law(pair[1])).epsilon(delta)


def probability(law: FiniteLaw, event: Callable[[Any], bool]) -> float:
    """Probability of a set of transcripts."""
    chosen = np.array([event(outcome) for outcome in law.outcomes])
    return float(law.probabilities[chosen].sum())


def answered(law: FiniteLaw) -> float:
    """Probability that some query is answered."""
    return probability(law, lambda transcript: max(transcript) >= 0)


# ------------------------------------------------------------------------------------------ leaks


@pytest.mark.parametrize(
    ("m", "cutoff", "delta", "epsilon", "leak"),
    [(1, 1, 0.3, 4.0, 0.09625), (2, 1, 0.1, 4.0, 0.0165625), (10, 3, 0.05, 2.0, 0.001665625)],
)
def test_the_golden_leaks(m: int, cutoff: int, delta: float, epsilon: float, leak: float) -> None:
    assert fresh_leak(delta / (2 * m)) == pytest.approx(leak, rel=1e-12)
    for other in (epsilon, 3 * epsilon):  # the same at every level
        law = OnlineRelease(GivenDistances(m), other, delta, cutoff).law(rows([0] * m))
        first = probability(law, lambda transcript: transcript[0] == 0)
        assert first == pytest.approx(leak, rel=1e-10)
    assert leak < delta / (2 * m)


def test_the_golden_parameters() -> None:
    run = OnlineRelease(GivenDistances(1), 4.0, 0.3)
    assert run.noise == pytest.approx(1.9478808920906234, rel=1e-14)
    assert run.bar == pytest.approx(7.390727537124921, rel=1e-14)
    assert run.tests.threshold_scale == pytest.approx(run.noise)
    assert run.tests.query_scale == pytest.approx(2 * run.noise)
    assert run.pure_level == pytest.approx(4 / run.noise)
    # One query: G(w - distance), and the leak by the tail.
    for distance in (0.0, 3.0, 7.0, 20.0):
        law = run.law(rows([distance]))
        assert answered(law) == pytest.approx(tail(run.bar - distance, run.noise), rel=1e-10)
    assert fresh_leak(0.15) == pytest.approx(tail(run.bar, run.noise), rel=1e-12)


@pytest.mark.parametrize(
    ("m", "cutoff", "delta", "found", "bound"),
    [(5, 4, 0.3, 0.095387, 0.09925), (10, 2, 0.3, 0.029591, 0.029888), (3, 8, 0.2, 0.064665, 0.066111)],
)
def test_streams_of_unstable_queries(m: int, cutoff: int, delta: float, found: float, bound: float) -> None:
    g, epochs = fresh_leak(delta / (2 * m)), min(cutoff + 1, m)
    assert total_leak([True] * m, delta, cutoff) == pytest.approx(1 - (1 - g) ** epochs, rel=1e-10)
    assert answered(OnlineRelease(GivenDistances(m), 1.0, delta, cutoff).law(rows([0] * m))) == pytest.approx(
        found, abs=5e-7
    )
    assert total_leak([True] * m, delta, cutoff) == pytest.approx(found, abs=5e-7)
    assert epochs * g == pytest.approx(bound, abs=6e-7)
    assert epochs * g <= delta / 3


@pytest.mark.parametrize("pattern", ["wffwwf", "ffwfwf", "wwwwwf", "fwwwww"])
def test_a_leak_among_stable_queries_against_the_law(pattern: str) -> None:
    # A flip has another value: every transcript that shows it.
    unstable = [sign == "f" for sign in pattern]
    for cutoff in (1, 2, 6):
        run = OnlineRelease(GivenDistances(6), 4.0, 0.3, cutoff)
        data = np.array([[0.0, 0.0] if low else [1.0, run.bar] for low in unstable])
        law = run.law(data)
        shown = probability(law, lambda transcript: 0 in transcript)
        assert total_leak(unstable, 0.3, cutoff) == pytest.approx(shown, rel=1e-10)


def test_a_surviving_threshold() -> None:
    # Catalogue 004, entry 6: m = 1000, delta = 1e-6, queries at distance w before the flip.
    share = 1e-6 / 2000
    printed = {0: 0.667, 1: 0.771, 5: 0.979, 10: 1.119, 100: 1.766, 999: 2.555}
    for before, ratio in printed.items():
        assert surviving_leak(before, 1000, 1e-6) / share == pytest.approx(ratio, abs=6e-4)
    # By the trapezoid rule on a plain grid, as far as it is accurate.
    x = np.linspace(-90.0, 60.0, 300_001)
    step, bar = x[1] - x[0], 2 * math.log(2000 / 1e-6)
    fresh = 0.5 * np.exp(-np.abs(x)) * step
    density, passes = fresh, stats.laplace.sf(x / 2)
    for before in range(1000):
        if before in printed:
            leak = float((density * stats.laplace.sf((bar + x) / 2)).sum())
            assert surviving_leak(before, 1000, 1e-6) == pytest.approx(leak, rel=1e-6)
        passed = density * passes
        density = passed + (density - passed).sum() * fresh


def test_a_leak_by_simulation() -> None:
    # After nine queries at distance w, of a run that does not halt.
    run = OnlineRelease(GivenDistances(10), 4.0, 0.3, 10)
    data = np.array([[1.0, run.bar]] * 9 + [[0.0, 0.0]])
    n = 200_000
    count = int((run(data, n, np.random.default_rng(1))[:, 9] == 0).sum())
    expected = stats.binom(n, surviving_leak(9, 10, 0.3))
    assert expected.ppf(ALARM) <= count <= expected.isf(ALARM)


def test_leaks_in_all_stay_below_a_third_of_delta() -> None:
    for _, unstable in _streams():
        for cutoff, delta in ((1, 0.9), (3, 0.3)):
            assert total_leak(unstable, delta, cutoff) <= delta / 3
    # Refusals beyond the cutoff end the run: the queries after them cannot leak.
    assert total_leak([True] * 10, 0.3, 1) == pytest.approx(1 - (1 - fresh_leak(0.015)) ** 2, rel=1e-10)


# -------------------------------------------------------------------------------------- distances


def test_the_golden_distances() -> None:
    # m = 100, T = 10, delta = 1e-6, beta = 0.1, in units of lambda.
    assert needed_distance(100, 1e-6, 0.1) == pytest.approx(51.0, abs=0.05)
    assert sharper_distance(100, 1e-6, 0.1) == pytest.approx(51.2, abs=0.05)
    assert printed_distance(100, 10, 1e-6, 0.1) == pytest.approx(176.9, abs=0.05)
    assert release_scale(1.0, 1e-6, 10) == pytest.approx(math.sqrt(320 * math.log(2e6)))
    assert release_threshold(1e-6, 100) == pytest.approx(2 * math.log(2e8))
    for m, cutoff, delta, beta in ((10, 1, 0.01, 0.1), (100, 10, 1e-6, 0.1), (1000, 30, 1e-8, 0.01)):
        needed = needed_distance(m, delta, beta)
        assert needed <= sharper_distance(m, delta, beta) <= 1.02 * needed
        assert 2.5 <= printed_distance(m, cutoff, delta, beta) / needed <= 4.0


def test_the_needed_distance_by_quadrature() -> None:
    margin = needed_distance(20, 0.01, 0.1) - release_threshold(0.01, 20)
    all_pass, _ = integrate.quad(
        lambda r: 0.5 * math.exp(-abs(r)) * stats.laplace.cdf((margin - r) / 2) ** 20,
        -40, 60, points=(0.0, margin), limit=400,
    )  # fmt: skip
    assert 1 - all_pass == pytest.approx(0.1, abs=1e-7)


def test_runs_at_the_sharper_distance() -> None:
    m, cutoff, delta, beta, n = 50, 4, 1e-4, 0.2, 20_000
    run = OnlineRelease(GivenDistances(m), 1.0, delta, cutoff)
    data = rows([0.0] * cutoff + [sharper_distance(m, delta, beta) * run.noise] * (m - cutoff))
    outputs = run(data, n, np.random.default_rng(2))
    assert outputs.shape == (n, m)
    missed = MissedLaterQueries(cutoff)(outputs)
    assert int((missed > 0).sum()) <= stats.binom.isf(ALARM, n, beta)
    assert missed.max() > 0
    for t in (1, 3):
        assert _all_unstable(t) == t + 1


# ------------------------------------------------------------------------------------------- distributions


@pytest.mark.parametrize("name", ["reference", *(name for name in MUTANTS if name != "answers_after_halt")])
def test_laws_against_samples(name: str) -> None:
    reference = OnlineRelease(asked("+-+-"), 6.0, 0.5, 1)
    mechanism: Any = reference if name == "reference" else MUTANTS[name].build(reference)
    pair, n = asked_pair(), 40_000
    for seed, data in enumerate((pair.x, pair.y)):
        assert p_value_of_outputs(mechanism(data, n, np.random.default_rng(seed)), mechanism.law(data)) > ALARM


def test_laws_of_long_runs_against_samples() -> None:
    checked: list[tuple[Any, Any]] = [
        (OnlineRelease(QuestionList((flip(),), (0,) * 5), 4.0, 0.3, 4), flip_pair().x),
        (_release_at_distance("+++-", 8.0, 0.5, epochs=1), asked_pair().x),
        (MUTANTS["answers_after_halt"].build(_release_at_distance("+++-", 8.0, 0.5, epochs=1)), asked_pair().x),
    ]
    for mechanism, data in checked:
        outputs = mechanism(data, 40_000, np.random.default_rng(3))
        assert p_value_of_outputs(outputs, mechanism.law(data)) > ALARM


def test_outputs_are_values_refusals_and_what_was_not_asked() -> None:
    run = OnlineRelease(GivenDistances(4), 1.0, 0.1, 1)
    data = np.array([[5.0, 1e5], [7.0, -1e5], [2.0, -1e5], [3.0, 1e5]])
    assert run(data, 3, np.random.default_rng(0)).tolist() == [[5, BOTTOM, BOTTOM, HALTED]] * 3
    law = run.law(rows([run.bar] * 4, value=9))
    assert {symbol for outcome in law.outcomes for symbol in outcome} == {9, BOTTOM, HALTED}  # type: ignore[attr-defined]


def test_it_is_interactive() -> None:
    run, pair = OnlineRelease(asked("+-"), 6.0, 0.5, 1), asked_pair()
    fixed = ExactDialogue(run, FixedList((1, 0)))
    law = OnlineRelease(asked("-+"), 6.0, 0.5, 1).law(pair.x)
    assert dict(zip(fixed.law(pair.x).outcomes, fixed.law(pair.x).probabilities, strict=True)) == pytest.approx(
        dict(zip(law.outcomes, law.probabilities, strict=True))
    )
    adaptive = ExactDialogue(run, Phases(0, 1, length=3, epochs=2))
    outputs = adaptive(pair.x, 40_000, np.random.default_rng(4))
    assert p_value_of_outputs(outputs, adaptive.law(pair.x)) > ALARM
    assert level(adaptive, (pair.x, pair.y)) <= run.pure_level
    # Not asked is not refused.
    session = run.start(pair.x, 2, np.random.default_rng(5))
    assert session.pool == 2
    assert session.ask(np.array([-1, 0])).tolist()[0] == HALTED


# ----------------------------------------------------------------------------------------- levels


def opposed(queries: int, at: float, shift: float = 1.0) -> Any:
    """All but the last up by a shift and that one down, against all at one distance."""
    return rows([at + shift] * (queries - 1) + [at - shift]), rows([at] * queries)


def test_an_epoch_costs_two_over_lambda() -> None:
    found = []
    for m in (3, 10, 40):
        run = OnlineRelease(GivenDistances(m), 6.0, 0.5, epochs=1)
        found.append(level(run, opposed(m, run.bar - 2)) / run.pure_level)
    assert found == sorted(found)
    assert 0.99 < found[-1] <= 1 + 1e-9
    # The rows of the bank change what they change in the sparse vector of the distances.
    run = OnlineRelease(GivenDistances(6), 6.0, 0.5, epochs=1)
    x, y = opposed(6, run.bar)
    unlawful = ("m9a_value_released_on_top", "m9b_value_released_on_bot", "m14_one_query_draw")  # no tree of answers
    for name, mutant in bank(4, 0.01, 0.25).items():
        base: Any = mutant.build(epoch(IdentityQuery(), run.noise, run.bar))
        if name != "m18_sensitivity_two" and name not in unlawful:
            broken = replace(run, row=base.variant)
            assert level(broken, (x, y)) == pytest.approx(level(base, (x[:, 1], y[:, 1])), rel=1e-9), name


def test_levels_of_mutants() -> None:
    m = 200
    base = OnlineRelease(GivenDistances(m), 6.0, 0.5, epochs=1)
    for name, factor in (("noise_half_lambda", 2.5), ("log_1_over_delta_in_lambda", math.sqrt(2.0))):
        mutant: Any = MUTANTS[name].build(base)
        found = level(mutant, opposed(m, mutant.bar - 1))
        stated = MUTANTS[name].true_level
        assert stated is not None
        assert stated(base) == pytest.approx(factor * base.pure_level)
        assert 0.98 * stated(base) < found <= stated(base) * (1 + 1e-9)


def test_a_threshold_that_is_kept_costs_less() -> None:
    run = OnlineRelease(GivenDistances(8), 6.0, 0.5, 1)
    mutant, stated = MUTANTS["threshold_not_refreshed"].build(run), MUTANTS["threshold_not_refreshed"].true_level
    assert stated is not None
    assert stated(run) == pytest.approx(3 / run.noise)
    assert stated(run) < run.pure_level
    for at in (-3.0, 0.0, 3.0):
        x = rows(([run.bar + at + 1] * 3 + [run.bar + at - 1]) * 2)
        assert level(mutant, (x, rows([run.bar + at] * 8))) <= stated(run) + 1e-9


def test_answers_after_the_halt_cost_half_a_shift_each() -> None:
    run = OnlineRelease(GivenDistances(5), 6.0, 0.5, epochs=1)
    mutant, stated = MUTANTS["answers_after_halt"].build(run), MUTANTS["answers_after_halt"].true_level
    assert stated is not None
    far = run.bar - 60 * run.noise
    top = run.bar + 60 * run.noise
    assert level(mutant, (rows([top + 1] * 5), rows([top] * 5))) == pytest.approx(stated(run), rel=1e-6)
    assert level(mutant, (rows([far + 1] * 5), rows([far] * 5))) <= stated(run) + 1e-9
    assert stated(run) == pytest.approx(5 / (2 * run.noise))


def test_thresholds_that_are_too_low() -> None:
    for delta in (0.01, 0.3):
        run, p = OnlineRelease(GivenDistances(1), 2.0, delta), delta / 2
        for name, leak in (
            ("threshold_lambda_log", (4 * math.sqrt(p) - p) / 6),
            ("threshold_log10", (4 * p ** (1 / math.log(10)) - p ** (2 / math.log(10))) / 6),
            ("threshold_without_m", (4 * p - p * p) / 6),
        ):
            found: Any = MUTANTS[name].build(run)
            assert answered(found.law(rows([0]))) == pytest.approx(leak, rel=1e-9), name
    # Without m: T + 1 flips, above delta from T = 3 on.
    for cutoff, above in ((2, False), (3, True), (9, True)):
        base = OnlineRelease(GivenDistances(cutoff + 1), 2.0, 1e-3, cutoff)
        found = MUTANTS["threshold_without_m"].build(base)
        total = answered(found.law(rows([0] * (cutoff + 1))))
        assert total == pytest.approx((cutoff + 1) * 1e-3 / 3, rel=5e-3)
        assert (total > 1e-3) == above


def test_values_from_elsewhere() -> None:
    draft = _claim_far_copy()
    (pair,) = draft.pairs
    assert draft.mechanism is not None
    x, y = (draft.mechanism.stream(data) for data in (pair.x, pair.y))  # type: ignore[attr-defined]
    assert [int(values[0]) for values, _ in (x, y)] == [1, 0]
    assert [float(distances[0]) for _, distances in (x, y)] == [35.0, 36.0]
    curve_ = curve(draft.mechanism.law(pair.x), draft.mechanism.law(pair.y))  # type: ignore[attr-defined]
    assert curve_.delta(50.0) > 0.99
    assert elsewhere(3).build(OnlineRelease(asked("+"), 1.0, 0.1)).stream.queries == 1  # type: ignore[attr-defined]


def test_streams() -> None:
    stream = asked("+-+")
    values, distances = stream(rand())
    assert (values.tolist(), distances.tolist()) == ([0, 0, 0], [8.0, 8.0, 8.0])
    values, distances = stream(asked_pair().x)
    assert distances.tolist() == [9.0, 7.0, 9.0]
    assert QuestionList(moving()).queries == 2
    values, distances = GivenDistances(2)([[3, 1.5], [0, 2]])
    assert (values.tolist(), distances.tolist()) == ([3, 0], [1.5, 2.0])
    last = ValuesOfOldCopy(QuestionList((nobody(), flip())), 1)
    assert last(flip_pair().x)[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: OnlineRelease(GivenDistances(1), 0.0, 0.1), r"a finite epsilon > 0, got 0\.0"),
        (lambda: OnlineRelease(GivenDistances(1), 1.0, 1.0), r"a delta in \(0, 1\), got 1\.0"),
        (lambda: OnlineRelease(GivenDistances(1), 1.0, 0.1, 0), "a cutoff >= 1, got 0"),
        (lambda: OnlineRelease(GivenDistances(1), 1.0, 0.1, scale=-2.0), r"a finite scale > 0, got -2\.0"),
        (lambda: OnlineRelease(GivenDistances(1), 1.0, 0.1, threshold=math.inf), "a finite threshold, got inf"),
        (lambda: OnlineRelease(GivenDistances(1), 1.0, 0.1, epochs=0), "at least one epoch, got 0"),
        (lambda: OnlineRelease(GivenDistances(1), 1.0, 0.1).law([[-1, 2]]), "values >= 0"),
        (lambda: GivenDistances(0), "a number of queries >= 1, got 0"),
        (lambda: GivenDistances(2)([[1, 2]]), r"an array of shape \(2, 2\), got \(1, 2\)"),
        (lambda: QuestionList(()), "at least one question"),
        (lambda: QuestionList((flip(),), (0, 1)), r"indices of 1 questions, got \(0, 1\)"),
        (lambda: ValuesOfOldCopy(GivenDistances(1), 0), "at least one row, got 0"),
        (lambda: fresh_leak(0.0), r"a p in \(0, 1\], got 0\.0"),
        (lambda: release_scale(1.0, 0.0, 1), r"a delta in \(0, 1\), got 0\.0"),
    ],
)
def test_mistakes_are_shown(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


# ------------------------------------------------------------------------------ inherited mutants


def test_a_mutant_of_the_tests_is_another_row() -> None:
    run = OnlineRelease(GivenDistances(6), 6.0, 0.5, 1)
    for name, own in (("m3_threshold_not_redrawn", "threshold_not_refreshed"), ("m7_no_cutoff", "answers_after_halt")):
        found: Any = of_tests({**bank(1, 0.5, 6.0), **HARMLESS}[name]).build(run)
        claimed: Any = MUTANTS[own].build(run)
        assert found == replace(claimed, epochs=claimed.most_refusals), name
    stopped: Any = of_tests(HARMLESS["m13_stops_after_T"]).build(run)
    assert (stopped.most_refusals, run.most_refusals) == (1, 2)
    with pytest.raises(ValueError, match="another row of the sparse vector"):
        of_tests(bank(1, 0.5, 6.0)["m18_sensitivity_two"]).build(run)


def test_a_mutant_of_the_questions_changes_distances() -> None:
    run = OnlineRelease(QuestionList((flip(),)), 4.0, 0.3)
    pair = flip_pair()
    for name, x, y in (
        ("distance_of_sensitivity_two", 0, 0),
        ("distance_off_by_one", 1, 1),
        ("distance_not_capped_at_zero", 0, -1),
    ):
        found: Any = of_questions(OF_A_TEST[name]).build(run)
        told = [found.stream(data) for data in (pair.x, pair.y)]
        assert [(int(v[0]), float(d[0])) for v, d in told] == [(1, x), (0, y)], name
    # A flip at distance 1 leaks what an answer one above the tie does.
    off: Any = of_questions(OF_A_TEST["distance_off_by_one"]).build(run)
    assert answered(off.law(pair.x)) == pytest.approx(tail(run.bar - 1, run.noise), rel=1e-12)
    with pytest.raises(ValueError, match="a stream of questions"):
        of_questions(OF_A_TEST["distance_off_by_one"]).build(OnlineRelease(GivenDistances(1), 4.0, 0.3))


def test_the_level_of_distances_of_sensitivity_two() -> None:
    """Of each place of the first refusal, or none: by adaptive quadrature over the noise of the threshold."""
    run = _release_at_distance("+" * 11 + "-", 17.0, 0.5, epochs=1)

    def beyond(t: float) -> float:
        """Probability that noise of scale 2 lambda exceeds t."""
        half = 0.5 * math.exp(-abs(t) / (2 * run.noise))
        return half if t >= 0 else 1 - half

    def law(distances: list[float]) -> list[float]:
        def mass(tops: int) -> float:
            def integrand(r: float) -> float:
                passes = [beyond(17.0 + r - d) for d in distances]
                ended = 1 - passes[tops] if tops < len(passes) else 1.0
                return math.exp(-abs(r) / run.noise) / (2 * run.noise) * math.prod(passes[:tops]) * ended

            pieces = (-40 * run.noise, -3.0, -1.0, 0.0, 1.0, 40 * run.noise)
            return sum(integrate.quad(integrand, a, b, epsabs=1e-14)[0] for a, b in itertools.pairwise(pieces))

        return [mass(tops) for tops in range(13)]

    x, y = law([18.0] * 11 + [14.0]), law([16.0] * 12)
    assert sum(x) == pytest.approx(1, abs=1e-9)
    loss = max(abs(math.log(a / b)) for a, b in zip(x, y, strict=True))
    assert loss == pytest.approx(stated_on_pair(claim_of("004/oqr/distance_of_sensitivity_two")), abs=5e-6)
    assert loss > 1.9 * run.pure_level
