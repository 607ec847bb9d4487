"""DP-SGD: readings follow the stated distribution, and their level is that of sampled Gaussians."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.privacy.exact import FiniteLaw, ProductLaw, curve
from mechanisms.training.dp_sgd import DPSGD, CanaryReader, FeatureReader, TrainedWeights
from mechanisms.training.dp_sgd_mutants import MUTANTS
from mechanisms.training.models import HiddenLayerNetwork, LogisticRegression
from tests.statistics import p_value_of_outputs

#: Features of which nobody but the canary has the first; rows as in a small table.
FEATURES = 6
SAMPLED = DPSGD(LogisticRegression(FEATURES), FeatureReader(0), 0.1, 1.0, 3, rate=0.4, batch=3.0, learning_rate=0.02)
FULL = dataclasses.replace(SAMPLED, rate=1.0)
#: P-values below this fail a test of a distribution: its probability of failing by chance.
ALPHA = 1e-7


def make_rows(rows: int = 6, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, FEATURES))
    x[:, 0] = 0.0
    return np.column_stack([x, np.where(rng.random(rows) < 0.5, -1.0, 1.0)])


CANARY = np.array([[20.0, *[0.0] * (FEATURES - 1), 1.0]])
ODD = np.array([[2.0] * FEATURES + [1.0]])
WITHOUT, WITH = make_rows(), np.vstack([make_rows(), CANARY])
NETWORK = DPSGD(
    HiddenLayerNetwork(FEATURES, 2), CanaryReader(tuple(ODD[0])), 0.05, 1.5, 2, batch=6.0, learning_rate=0.05
)


def merge_rare(law: FiniteLaw, outputs: Any) -> tuple[FiniteLaw, Any]:
    """Outcomes in groups of about equal probability, so that a chi-squared test has enough of each."""
    group = np.minimum((np.cumsum(law.probabilities) * 40).astype(int), 39)
    index = {outcome: int(g) for outcome, g in zip(law.outcomes, group, strict=True)}
    masses = np.bincount(group, law.probabilities, 40)
    kept = np.flatnonzero(masses)
    merged = FiniteLaw(tuple(kept.tolist()), masses[kept] / masses.sum())
    return merged, np.array([index[int(one)] for one in outputs])


@pytest.mark.parametrize("data", [WITH, WITHOUT], ids=["with", "without"])
@pytest.mark.parametrize("mechanism", [SAMPLED, FULL], ids=["sampled", "full"])
def test_scores_follow_the_stated_distribution(mechanism: DPSGD, data: np.ndarray) -> None:
    law = mechanism.law(data)
    assert isinstance(law, FiniteLaw)
    merged, outputs = merge_rare(law, mechanism(data, 10_000, np.random.default_rng(2)))
    assert p_value_of_outputs(outputs, merged) > ALPHA


def test_each_step_follows_its_distribution_and_steps_are_independent() -> None:
    mechanism = dataclasses.replace(SAMPLED, release="steps", steps=2, cell=0.5)
    law = mechanism.law(WITH)
    assert isinstance(law, ProductLaw)
    first, second = law.parts
    assert isinstance(first, FiniteLaw)
    assert isinstance(second, FiniteLaw)
    outputs = mechanism(WITH, 10_000, np.random.default_rng(3))
    assert outputs.shape == (10_000, 2)
    joint = FiniteLaw(
        tuple((a, b) for a in first.outcomes for b in second.outcomes),
        np.outer(first.probabilities, second.probabilities).ravel(),
    )
    assert p_value_of_outputs(outputs, joint) > ALPHA


@pytest.mark.parametrize("present", [True, False])
def test_a_network_is_read_with_all_rows_known(present: bool) -> None:
    data = np.vstack([WITHOUT, ODD]) if present else WITHOUT
    law = NETWORK.law(data)
    assert isinstance(law, FiniteLaw)
    merged, outputs = merge_rare(law, NETWORK(data, 4_000, np.random.default_rng(4)))
    assert p_value_of_outputs(outputs, merged) > ALPHA


def test_sampled_steps_of_a_network_are_read_where_nobody_else_is() -> None:
    sampled = dataclasses.replace(NETWORK, rate=0.4, steps=3, learning_rate=0.01)
    for data in (ODD, WITHOUT[:0]):
        law = sampled.law(data)
        assert isinstance(law, FiniteLaw)
        merged, outputs = merge_rare(law, sampled(data, 4_000, np.random.default_rng(5)))
        assert p_value_of_outputs(outputs, merged) > ALPHA
    with pytest.raises(ValueError, match="full batches or one row for this reader, got 7"):
        sampled.law(np.vstack([WITHOUT, ODD]))


def test_full_batches_are_gaussian() -> None:
    found = curve(FULL.law(WITH), FULL.law(WITHOUT)).mu()
    assert FULL.mu() == pytest.approx(math.sqrt(3))
    # The part of the canary's gradient that is the bias's is 1/800 of its square; cells merge readings.
    assert 0.99 * FULL.mu() <= found <= FULL.mu() * FULL.reader.share(CANARY[0]) * (1 + 1e-12)


def test_samples_have_the_level_of_numerical_integration() -> None:
    """Delta of two sampled steps on a grid of 1,500^2 readings, with no code of the mechanism."""
    q, t = 0.4, np.linspace(-7, 8, 1_500)
    plain = stats.norm.pdf(t) * (t[1] - t[0])
    mixed = (1 - q) * plain + q * stats.norm.pdf(t, 1.0) * (t[1] - t[0])
    p, r = np.outer(mixed, mixed), np.outer(plain, plain)
    two = dataclasses.replace(SAMPLED, steps=2)
    found = curve(two.law(WITH), two.law(WITHOUT))
    for epsilon in (0.3, 1.0):
        delta = max(np.maximum(p - math.exp(epsilon) * r, 0).sum(), np.maximum(r - math.exp(epsilon) * p, 0).sum())
        # Cells of a sixteenth of a nat merge readings, which costs a few per cent of delta at most.
        assert 0.96 * delta <= found.delta(epsilon) <= delta * (1 + 1e-4)


def test_training_learns() -> None:
    rows = make_rows(200, seed=5)
    rows[:, -1] = np.where(rows[:, 1] + rows[:, 2] > 0, 1.0, -1.0)
    model = LogisticRegression(FEATURES)
    mechanism = TrainedWeights(model, FeatureReader(0), 1.0, 0.5, 30, rate=0.5, batch=100.0, learning_rate=2.0)
    weights = mechanism(rows, 20, np.random.default_rng(6))
    margins = weights[:, :-1] @ rows[:, :-1].T + weights[:, -1:]
    assert ((margins > 0) == (rows[:, -1] > 0)).mean() > 0.9


def test_a_canary_whose_gradient_may_be_short_is_refused() -> None:
    with pytest.raises(ValueError, match="a canary whose gradient has at least the norm"):
        dataclasses.replace(SAMPLED, learning_rate=5.0).law(WITH)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (np.vstack([WITH, CANARY]), "at most one row that has feature 0"),
        (np.vstack([WITHOUT, np.append(CANARY[0, :-1], -1.0)]), "label 1"),
    ],
)
def test_readings_that_are_no_shifted_noise_have_no_distribution(data: np.ndarray, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        SAMPLED.law(data)


def test_weights_have_no_distribution_and_lie_on_a_lattice() -> None:
    mechanism = dataclasses.replace(FULL, release="weights")
    with pytest.raises(ValueError, match="readings as outputs"):
        mechanism.law(WITH)
    weights = TrainedWeights(FULL.model, FULL.reader, 0.1, 1.0, 2, batch=3.0)(WITH, 5, np.random.default_rng(7))
    assert weights.shape == (5, FEATURES + 1)
    assert np.array_equal(weights * 2.0**30, np.rint(weights * 2.0**30))


@pytest.mark.parametrize(
    "changed",
    [{"clip": 0.0}, {"noise": -1.0}, {"steps": 0}, {"rate": 1.5}],
    ids=lambda changed: next(iter(changed)),
)
def test_parameters_out_of_range_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        dataclasses.replace(SAMPLED, **changed)


# -------------------------------------------------------------------------------------- mutants

LONE = np.zeros((0, FEATURES + 1))
STATED = {
    "accumulation_without_factor": (FULL, WITH),
    "noise_of_one_micro_batch": (FULL, WITH),
    "one_epoch_more": (FULL, WITH),
    "floor_of_the_batch": (dataclasses.replace(SAMPLED, batch=2.5), WITH),
    "delta_of_private_size": (dataclasses.replace(FULL, batch=2.0), WITH),
    "shuffled": (dataclasses.replace(SAMPLED, rate=1 / 3), WITH),
    "noise_scaled_by_the_batch": (dataclasses.replace(SAMPLED, batch=1.5), CANARY),
}


@pytest.mark.parametrize("name", STATED)
def test_a_mutant_follows_the_distribution_that_it_states(name: str) -> None:
    base, data = STATED[name]
    built: Any = MUTANTS[name].build(base)
    merged, outputs = merge_rare(built.law(data), built(data, 10_000, np.random.default_rng(8)))
    assert p_value_of_outputs(outputs, merged) > ALPHA
    # And it is another one than the reference's, whose cells have other probabilities.
    reference: Any = base.law(data)
    assert reference.outcomes != built.law(data).outcomes or not np.allclose(
        reference.probabilities, built.law(data).probabilities, atol=1e-3
    )


@pytest.mark.parametrize("name", ["accumulation_without_factor", "noise_of_one_micro_batch"])
def test_levels_that_are_stated_are_those_of_the_distribution(name: str) -> None:
    quiet = dataclasses.replace(FULL, noise=4.0)
    built: Any = MUTANTS[name].build(quiet)
    level = MUTANTS[name].true_level
    assert level is not None
    found = curve(built.law(WITH), built.law(WITHOUT)).mu()
    assert 0.97 * level(quiet) <= found <= level(quiet)


def test_shuffled_rows_are_in_one_batch_each() -> None:
    built: Any = MUTANTS["shuffled"].build(dataclasses.replace(SAMPLED, rate=1 / 3))
    batches = built.draw_batches(7, 50, np.random.default_rng(9))
    assert batches.shape == (3, 50, 7)
    assert (batches.sum(axis=0) == 1).all()
    assert (batches.sum(axis=2) >= 2).all()


def test_shuffled_epochs_follow_the_stated_distribution() -> None:
    built: Any = MUTANTS["shuffled"].build(dataclasses.replace(SAMPLED, rate=0.5, steps=4))
    batches = built.draw_batches(7, 50, np.random.default_rng(9))
    assert (batches[:2].sum(axis=0) == 1).all()
    assert (batches[2:].sum(axis=0) == 1).all()
    merged, outputs = merge_rare(built.law(WITH), built(WITH, 4_000, np.random.default_rng(8)))
    assert p_value_of_outputs(outputs, merged) > ALPHA
    begun: Any = MUTANTS["shuffled"].build(dataclasses.replace(SAMPLED, rate=0.5, steps=3))
    assert begun(WITH, 5, np.random.default_rng(8)).shape == (5,)
    with pytest.raises(ValueError, match="steps of whole epochs of 2, got 3"):
        begun.law(WITH)


@pytest.mark.parametrize("name", ["", *MUTANTS])
def test_a_batch_is_the_sum_of_its_clipped_examples(name: str) -> None:
    built: Any = MUTANTS[name].build(FULL) if name else FULL
    rng, weights = np.random.default_rng(11), 0.1 * np.random.default_rng(12).normal(size=(3, FEATURES + 1))
    examples = built.clip_examples(weights, WITH, rng)
    assert examples.shape == (3, len(WITH), FEATURES + 1)
    if name == "noise_before_clipping":
        assert (np.linalg.norm(examples, axis=2) <= built.clip * (1 + 1e-12)).all()
        return
    mask = rng.random((3, len(WITH))) < 0.5
    same = np.allclose(np.einsum("nm,nmp->np", mask, examples), built.sum_gradients(weights, WITH, mask))
    assert same == built.adds_up


def test_mutants_do_what_they_are_named_for() -> None:
    rng, weights = np.random.default_rng(10), np.zeros((2, FEATURES + 1))
    mask = np.ones((2, len(WITH)), dtype=np.bool_)
    batches = np.ones((3, 2, len(WITH)), dtype=np.bool_)

    def built(name: str) -> Any:
        return MUTANTS[name].build(FULL)

    whole = np.linalg.norm(built("clip_of_the_mean").sum_gradients(weights, WITH, mask), axis=1)
    np.testing.assert_allclose(whole, FULL.batch * FULL.clip)
    layers = built("clip_by_layer").sum_gradients(weights, CANARY, mask[:, :1])
    np.testing.assert_allclose(np.linalg.norm(layers, axis=1), FULL.clip * math.sqrt(2))
    bias = built("bias_not_clipped").sum_gradients(weights, CANARY, mask[:, :1])
    np.testing.assert_allclose(bias[:, -1], -0.5)  # the residual of a first step
    noise = built("seed_reused").draw_noise(batches, 4, rng)
    assert (noise == noise[0]).all()
    assert not (noise[0, 0] == noise[0, 1]).any()
    assert not built("layer_without_noise").draw_noise(batches, FEATURES + 1, rng)[:, :, -1].any()
    before = built("noise_before_clipping")
    assert not before.draw_noise(batches, 4, rng).any()
    released = before._release_sum(weights, CANARY, mask[:, :1], np.zeros_like(weights), rng)
    assert (np.linalg.norm(released, axis=1) <= FULL.clip * (1 + 1e-12)).all()
    black = np.vstack([WITHOUT, np.append(1e4 * CANARY[0, :-1], 1.0)])
    stopped = built("early_stopping")(black, 50, rng)
    assert set(stopped.tolist()) <= {0, 1}
