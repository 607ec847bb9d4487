"""Scores that are learned: sums of coordinate scores, distances, classifiers."""

from __future__ import annotations

import math
import re
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import Pair, PureDP, SpecificationError, audit, classifier
from auditor.audits.privacy_loop import FIRST
from auditor.events import classifier as classifiers
from auditor.events import feature_detection
from auditor.events.classifier import FIRST_FIT, ROWS, Score, Training, fitters_of
from auditor.events.event_learner import EventLearner
from auditor.events.features import Additive, Distance, Feature
from auditor.events.fitting import learn_additive, learn_distance, learn_linear
from auditor.results import Verdict

PAIR = Pair(np.array([0]), np.array([1]))


def test_a_distance_is_an_interval_in_words() -> None:
    feature = Distance(2.0)
    np.testing.assert_array_equal(feature(np.array([2.0, 3.5, -1.0, np.nan])), [0.0, 1.5, 3.0, np.nan])
    assert feature.below(1.5) == "0.5 <= output <= 3.5"
    assert feature.above(1.5) == "output < 0.5 or output > 3.5"


def test_the_distance_is_from_the_pooled_median() -> None:
    assert learn_distance(np.array([1.0, 2.0]), np.array([3.0, np.inf])) == Distance(2.0)
    assert learn_distance(np.array([np.nan]), np.array([np.inf])) is None
    assert learn_distance(np.array([1.7e308]), np.array([1.7e308])) is None  # half their sum is no float


@pytest.mark.filterwarnings("error")
def test_one_draw_a_side_has_no_direction() -> None:
    one, two = np.array([[0.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 1.0]])
    assert learn_linear(one, one + 1.0) is None
    assert learn_linear(two, one) is None
    assert learn_linear(two, two + 1.0) is not None


def test_a_sum_of_scores_reads_each_coordinate_by_itself() -> None:
    feature = Additive(((0.0,), (1.0, 2.0)), ((1.0, -1.0, 0.0), (0.5, 0.0, -0.5, 3.0)), 2)
    rows = np.array([[-1.0, 0.0], [0.5, 1.5], [0.0, 9.0], [np.nan, np.nan], [np.inf, -np.inf]])
    np.testing.assert_array_equal(feature(rows), [1.5, -1.0, 0.5, 3.0, -0.5])
    assert feature.below(1.0) == "sum of log-likelihood ratios of output[0], output[1] <= 1"


def test_sums_of_scores_are_the_log_likelihood_ratio_of_independent_bits() -> None:
    # Two bits, kept with probability 3/4: the exact ratio of each is ln 3. With 40,000 draws a side a count of 10,000
    # has a standard error of 87, so each learned score is within 0.1 but for a probability below 1e-20.
    rng = np.random.default_rng(1)
    x = (rng.random((40_000, 2)) < 0.75).astype(float)
    y = (rng.random((40_000, 2)) < 0.25).astype(float)
    feature = learn_additive(x, y, 10)
    assert feature is not None
    found = feature(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]))
    np.testing.assert_allclose(found, [2 * math.log(3), 0.0, -2 * math.log(3)], atol=0.2)


def test_coordinates_that_say_nothing_have_no_score() -> None:
    same = np.arange(200.0).reshape(100, 2)
    assert learn_additive(same, same, 10) is None


def product_of_signs(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Two numbers, each standard normal on both datasets; only the sign of their product depends on the data."""
    values = np.abs(rng.normal(size=(n, 2)))
    first = rng.choice([-1, 1], size=n)
    agree = np.where(rng.random(n) < (0.9 if data[0] else 0.1), 1, -1)
    noisy = np.column_stack([values[:, 0] * first, values[:, 1] * first * agree])
    return np.asarray(np.rint(noisy * 2.0**12) / 2.0**12)


def test_a_classifier_finds_what_no_coordinate_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_detection, "LEARNERS", [])  # pairs of coordinates show it too
    # The sign of the product has a likelihood ratio of 9 at probability 0.9. A score that orders outputs by it gains
    # 0.6 nats a draw against epsilon = 1; 9 nats are needed at alpha = 1e-4, and there are 2,000 draws a side.
    found = audit(product_of_signs, PureDP(1.0), PAIR, alpha=1e-4, draws=4_000, learners=classifier)
    assert found.verdict == Verdict.VIOLATION
    assert found.event is not None
    assert "score" in found.event


def test_audits_with_a_classifier_can_be_repeated() -> None:
    options: dict[str, Any] = {"draws": 2_000, "learners": classifier, "stop": "budget"}
    one, two = (audit(product_of_signs, PureDP(1.0), PAIR, **options).to_json() for _ in range(2))
    assert one == two


def test_a_classifier_takes_numbers_and_missing_values_and_leaves_the_rest() -> None:
    assert classifier(["a", "b"], ["c", "d"]) == []
    rng = np.random.default_rng(2)
    x = np.where(rng.random((300, 2)) < 0.5, np.nan, rng.normal(size=(300, 2)))
    y = rng.normal(size=(300, 2))
    for feature in classifier(x, y):
        assert isinstance(feature, Score)
        assert np.isfinite(feature(x)).all()
        assert np.isfinite(feature(np.array([[np.inf, 0.0]]))).all()
        assert feature(x).mean() > feature(y).mean()


@pytest.mark.parametrize("shape", [(50,), (50, 20)])
def test_a_classifier_is_trained_on_any_width(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    (feature,) = classifier(rng.normal(size=shape) + 1, rng.normal(size=shape))
    assert feature(rng.normal(size=shape)).shape == (50,)
    assert feature.above(0.5) == "logistic score > 0.5"


# ------------------------------------------------------------------------------ names and cost


def test_classifiers_are_given_by_name_or_as_a_function() -> None:
    assert fitters_of("classifiers") == fitters_of(classifier) == (classifiers.logistic, classifiers.boosted_trees)
    assert fitters_of("logistic") == (classifiers.logistic,)
    assert fitters_of(None) == ()

    def own(x: Any, y: Any) -> list[Any]:
        return []

    assert fitters_of(own) == (own,)


@pytest.mark.parametrize(("learners", "shown"), [("forest", "'forest'"), (3, "3")])
def test_what_is_no_learner_is_refused_and_shown(learners: Any, shown: str) -> None:
    with pytest.raises(SpecificationError, match="learners must be") as caught:
        audit(product_of_signs, PureDP(1.0), PAIR, learners=learners)
    assert shown in str(caught.value)


def test_declared_claims_take_names_and_refuse_others_at_load() -> None:
    from auditor.claims import privacy

    assert privacy(product_of_signs, PureDP(1.0), PAIR, learners="logistic").learners == "logistic"
    with pytest.raises(SpecificationError, match="'forest'"):
        privacy(product_of_signs, PureDP(1.0), PAIR, learners="forest")


def test_the_record_says_what_fitting_has_cost() -> None:
    found = audit(product_of_signs, PureDP(1.0), PAIR, draws=4_000, stop="budget", learners="logistic")
    assert "training" not in audit(product_of_signs, PureDP(1.0), PAIR, draws=400).record
    cost = found.record["training"]
    # From 100 draws a side at doublings, and chunks are of 15 % to 20 %: at most log2(2000 / 100) + 1 = 5 fits, and the
    # rows of all are at most twice those of the last, which has half of the 2,000 draws of each side.
    assert 3 <= cost["fits"] <= 5
    assert cost["fits"] * FIRST_FIT <= cost["rows"] <= 2 * 2_000


def test_fits_come_at_doublings_and_see_a_bounded_number_of_rows() -> None:
    seen: list[int] = []

    def fitter(x: Any, y: Any) -> list[Any]:
        seen.append(len(x))
        return [Distance(0.0)]

    training = Training((fitter,))
    at = [n for n in range(1, 40_001) if training.due(n) and training.fit(np.zeros(n), np.zeros(n), n, lambda: True)]
    assert at == [FIRST_FIT * 2**k for k in range(9)]
    assert seen == [min(n, ROWS) for n in at]
    assert training.rows == 2 * sum(seen)


def test_no_fit_begins_after_the_end_and_what_was_not_finished_changes_nothing() -> None:
    begun: list[str] = []

    def first(x: Any, y: Any) -> list[Any]:
        begun.append("first")
        return [Distance(0.0)]

    def second(x: Any, y: Any) -> list[Any]:
        begun.append("second")
        return [Distance(1.0)]

    for answers, expected in (([False], []), ([True, False], ["first"]), ([True, True, False], ["first", "second"])):
        begun.clear()
        training, left = Training((first, second)), iter(answers)
        assert not training.fit(np.zeros(200), np.zeros(200), 200, lambda left=left: next(left))  # type: ignore[misc]
        assert begun == expected
        assert (training.features, training.fits, training.rows) == ([], 0, 0)


def test_a_budget_in_seconds_is_passed_by_one_fit_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("auditor.audits.loop.time.monotonic", lambda: clock[0])
    begun: list[float] = []

    def slow(x: Any, y: Any) -> list[Any]:
        begun.append(clock[0])
        clock[0] += 4.0
        return [Distance(0.0)]

    found = audit(product_of_signs, PureDP(5.0), PAIR, draws=100_000, seconds=10.0, learners=slow, limit=None)
    assert begun == [0.0, 4.0, 8.0]  # the third one ends after the budget, and is the last
    assert found.truncated_by == "time"
    assert found.record["training"]["fits"] == 2  # what came too late is not used, so that a replay finds the same


def test_a_run_cut_short_by_time_can_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    from auditor.audits.context import Question
    from auditor.audits.privacy import run_audit
    from auditor.audits.privacy_loop import Settings

    calls = [0]

    def clock() -> float:
        calls[0] += 1
        return float(calls[0])

    options: dict[str, Any] = {"draws": 20_000, "learners": "logistic", "stop": "budget"}
    with monkeypatch.context() as patch:
        patch.setattr("auditor.audits.loop.time.monotonic", clock)
        settings = Settings(seconds=30.0, **options)
        cut = run_audit(product_of_signs, PureDP(3.0), [PAIR], settings, Question())
    assert cut.truncated_by == "time"
    settings = Settings(chunks=len(cut.record["chunks"]), **options)
    again = run_audit(product_of_signs, PureDP(3.0), [PAIR], settings, Question())
    before, after = cut.to_json(), again.to_json()
    assert {k: v for k, v in before.items() if k != "truncated_by"} == {
        k: v for k, v in after.items() if k != "truncated_by"
    }


def test_scores_are_thresholded_on_draws_that_they_were_not_trained_on() -> None:
    # A score that has learned its rows by heart: 1 for those of x that it was shown, which are the even draws.
    class Heart:
        def __init__(self, rows: Any) -> None:
            self.rows = rows

        def __call__(self, batch: Any) -> Any:
            return np.isin(batch, self.rows).astype(float)

        def below(self, cut: float) -> str:
            return "not by heart"

        def above(self, cut: float) -> str:
            return "by heart"

    def by_heart(x: Any, y: Any) -> list[Feature]:
        return [Heart(x)]

    learner = EventLearner(PureDP(1.0), 0.01, by_heart)
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 2**40, (2, 400)).astype(float)
    learner.add(x, y, [])
    learner.learn(False)
    assert learner.fit(False)
    assert all("heart" not in f.chain.words()[f.best] or f.x[f.best] == f.y[f.best] for f in learner.finalists)


# --------------------------------------------------------------- the mechanism's own likelihood ratio


class NoisyVector:
    """Laplace noise of scale 1 on each coordinate, on a lattice of 2^-10, and one random sign for all coordinates."""

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        noisy = (data + rng.laplace(size=(n, len(data)))) * rng.choice([-1.0, 1.0], (n, 1))
        return np.asarray(np.rint(noisy * 2.0**10) / 2.0**10)


class WithRatio(NoisyVector):
    """The same, and it states its log-likelihood ratio."""

    def log_likelihood_ratio(self, outputs: Any, x: Any, y: Any) -> Any:
        first, second = (
            np.logaddexp(*(-np.abs(outputs - sign * data).sum(axis=1) for sign in (1, -1))) for data in (x, y)
        )
        return first - second


def test_the_mechanisms_own_ratio_is_used_and_named() -> None:
    pair = Pair(np.zeros(64), np.full(64, 0.25))
    found = audit(WithRatio(), PureDP(1.0), pair, alpha=1e-4, draws=4_000)
    assert found.verdict == Verdict.VIOLATION
    assert found.event is not None
    assert "the mechanism's own log-likelihood ratio" in found.event


class Bad:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.random(n)

    def log_likelihood_ratio(self, outputs: Any, x: Any, y: Any) -> Any:
        return self.answer(outputs)


def fails(outputs: Any) -> Any:
    raise KeyError("secret")


CHANCE = np.random.default_rng(6)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (fails, "log_likelihood_ratio raised KeyError"),
        (lambda o: None, rf"shape \(\), expected \({FIRST},\)"),
        (lambda o: [[0.0], [0.0, 0.0]], f"returned a list, expected {FIRST} numbers"),
        (lambda o: ["a"] * len(o), "expected"),
        (lambda o: 1.0, rf"shape \(\), expected \({FIRST},\)"),
        (lambda o: np.zeros((len(o), 2)), rf"shape \({FIRST}, 2\), expected \({FIRST},\)"),
        (lambda o: o - o.mean(), "must read each output by itself"),
        (lambda o: CHANCE.random(len(o)), "must read each output by itself"),
    ],
    ids=["raises", "none", "ragged", "text", "scalar", "wide", "batch", "chance"],
)
def test_a_ratio_that_cannot_be_used_is_an_error_of_the_target(answer: Any, message: str) -> None:
    found = audit(Bad(answer), PureDP(1.0), PAIR, draws=400)
    assert found.verdict == Verdict.ERROR
    assert re.search(message, found.message)


def test_a_ratio_that_hangs_is_an_error_of_the_target() -> None:
    found = audit(Bad(lambda o: time.sleep(5)), PureDP(1.0), PAIR, draws=400, limit=0.2)
    assert found.verdict == Verdict.ERROR
    assert "did not answer within 0.2 s" in found.message


def test_what_a_ratio_says_in_an_error_is_not_shown_of_private_data() -> None:
    from auditor.audits.context import Question
    from auditor.audits.privacy import run_audit
    from auditor.audits.privacy_loop import Settings

    found = run_audit(Bad(fails), PureDP(1.0), [PAIR], Settings(draws=400), Question(private=True))
    assert "KeyError" in found.message
    assert "secret" not in found.message
