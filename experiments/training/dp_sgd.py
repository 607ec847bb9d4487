"""DP-SGD on digits and tumours, its accountants, and its pitfalls."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from auditor.claims import Draft, Source, broken, deviating, entry, exact, inequality, privacy, reference
from auditor.datasets import Pair
from auditor.privacy.exact import GaussianCurve, curve
from auditor.privacy.guarantees import ApproxDP, DeltaDP, GaussianDP, Guarantee, RenyiDP
from experiments.common import ADD_REMOVE
from experiments.training._rows import (
    CORNER,
    MEASURES,
    PIXELS,
    corner_canary,
    digits,
    odd_tumour,
    planted,
    tumours,
)
from mechanisms.training.accounting import loss_delta, loss_epsilon, renyi_epsilon, sampled_renyi
from mechanisms.training.dp_sgd import DPSGD, CanaryReader, FeatureReader, GradientDescent, TrainedWeights
from mechanisms.training.dp_sgd_mutants import MUTANTS
from mechanisms.training.models import HiddenLayerNetwork, LogisticRegression

#: Runs of a training at each level. What is broken shows in fewer.
_RUNS: Mapping[str, int] = {"smoke": 20_000, "standard": 200_000}
#: Outputs of 65 numbers take longer to learn events of.
_WIDE_RUNS: Mapping[str, int] = {"smoke": 10_000, "standard": 100_000}
#: A distribution that is another one shows in fewer.
_SAME_RUNS: Mapping[str, int] = {"smoke": 20_000, "standard": 50_000}
#: At a delta of a tenth, the best event is one of a few per cent.
_SAMPLED_RUNS: Mapping[str, int] = {"smoke": 30_000, "standard": 600_000}
_BROKEN_RUNS: Mapping[str, int] = {"smoke": 20_000, "standard": 20_000}
#: And what is broken by little shows in more.
_MORE: Mapping[str, int] = {"smoke": 60_000, "standard": 60_000}
_MANY: Mapping[str, int] = {"smoke": 200_000, "standard": 200_000}
#: Steps, noise and rate of the sampled training, and what the accountant says of it, rounded up.
_STEPS, _NOISE, _RATE, _CLAIM = 4, 1.0, 0.5, ApproxDP(1.45, 0.1)
#: The same of three steps.
_SHORTER = ApproxDP(1.15, 0.1)
_LOGISTIC = LogisticRegression(PIXELS)
_SAMPLED = DPSGD(_LOGISTIC, FeatureReader(CORNER), 0.1, _NOISE, _STEPS, rate=_RATE, batch=10.0)
#: Full batches at exactly 1-GDP.
_FULL = DPSGD(_LOGISTIC, FeatureReader(CORNER), 0.1, math.sqrt(2), 2, batch=20.0)
_WEIGHTS = TrainedWeights(_LOGISTIC, FeatureReader(CORNER), 0.1, math.sqrt(2), 2, batch=20.0)
_ORDERS = (2, 4, 8)


def _images(rows: int = 20) -> Pair:
    return planted(digits(rows), corner_canary(), f"an image with ink in a corner beside {rows} images")


def _alone() -> Pair:
    return planted(np.zeros((0, PIXELS + 1)), corner_canary(), "an image alone, against none")


def _network(size: float = 2.0, clip: float = 0.05) -> tuple[DPSGD, Pair]:
    canary = odd_tumour(size)
    pair = planted(tumours(8), canary, "a tumour with large measurements beside 8 tumours")
    return DPSGD(HiddenLayerNetwork(MEASURES, 3), CanaryReader(canary), clip, math.sqrt(2), 2, batch=8.0), pair


@entry(
    "further/dp_sgd",
    title="Differentially private stochastic gradient descent",
    source=Source("Abadi et al. 2016", "Algorithm 1"),
)
def dp_sgd() -> Iterator[Draft]:
    """Full batches and Poisson samples, logistic regression and a network; the accountants."""
    full: dict[str, Any] = {"relation": ADD_REMOVE, "draws": _RUNS, "follows": {"draws": _SAME_RUNS}}
    yield from reference(_FULL, GaussianDP(_FULL.mu()), _images(), case="full_batches", **full)
    network, pair = _network()
    yield from reference(network, GaussianDP(network.mu()), pair, case="network", **full)
    # 65 weights, and the corner's is the only one that the canary moves by more than the bias.
    weights = GaussianDP(_WEIGHTS.mu())
    yield privacy(_WEIGHTS, weights, _images(), case="weights", relation=ADD_REMOVE, draws=_WIDE_RUNS)
    sampled: dict[str, Any] = {"relation": ADD_REMOVE, "draws": _SAMPLED_RUNS, "follows": {"draws": _SAME_RUNS}}
    yield from reference(_SAMPLED, _CLAIM, _images(), case="sampled", **sampled)
    steps = dataclasses.replace(_SAMPLED, release="steps", steps=3, cell=0.125)
    yield from reference(steps, _SHORTER, _images(), case="each_step", **sampled)
    # In sampled steps of a network the canary is alone. Other rows would hide it, as it is not known which of them were
    # drawn.
    network = dataclasses.replace(network, noise=_NOISE, steps=_STEPS, rate=_RATE, batch=4.0)
    rows, canary = np.zeros((0, MEASURES + 1)), odd_tumour(2.0)
    alone = planted(rows, canary, "a tumour with large measurements alone, against none")
    yield from reference(network, _CLAIM, alone, case="network_sampled", **sampled)
    yield from _accounts()
    yield from _pitfalls_of_clipping()
    yield from _pitfalls_of_noise()
    yield from _pitfalls_of_batches()


def _accounts() -> Iterator[Draft]:
    """What the accountants say, on the training whose distribution is known."""
    divergences = {order: _STEPS * sampled_renyi(_NOISE, _RATE, order) for order in _ORDERS}
    renyi = RenyiDP({float(order): value for order, value in divergences.items()})
    yield exact(_SAMPLED, renyi, _images(), case="sampled", relation=ADD_REMOVE)
    pair = _images()

    def epsilons() -> list[tuple[str, float, float]]:
        known, rows = curve(_SAMPLED.law(pair.x), _SAMPLED.law(pair.y)), []
        for delta in (0.1, 0.01):
            losses = loss_epsilon(_NOISE, _RATE, _STEPS, delta)
            rows.append((f"exact, and privacy losses, delta = {delta:g}", known.epsilon(delta), losses))
            moments = renyi_epsilon(_NOISE, _RATE, _STEPS, delta)
            rows.append((f"privacy losses, and moments, delta = {delta:g}", losses, moments))
        for steps, claim in ((_STEPS, _CLAIM), (3, _SHORTER)):
            claimed = loss_epsilon(_NOISE, _RATE, steps, claim.delta)
            rows.append((f"privacy losses of {steps} steps, and the claim", claimed, claim.epsilon))
        return rows

    yield inequality(
        epsilons,
        statement="the exact epsilon is at most that of privacy losses, which is at most that of moments",
        case="accountants",
    )


def _caught(
    name: str, base: GradientDescent, pair: Pair, guarantee: Guarantee, at_l0: bool = False, **options: Any
) -> Iterator[Draft]:
    """A pitfall that draws show, and, where its distribution is known, the distribution too."""
    found, shared = MUTANTS[name], {"relation": ADD_REMOVE, "guarantee": guarantee}
    if at_l0:
        certain = exact(found.build(base), guarantee, pair, case=name, relation=ADD_REMOVE, expected="violation")
        yield dataclasses.replace(certain, is_mutant=True, note=found.note)
    yield broken(found, base, pair, **{"draws": _BROKEN_RUNS, "attained": False, **shared, **options})


def _pitfalls_of_clipping() -> Iterator[Draft]:
    claim, pair = GaussianDP(_FULL.mu()), _images()
    yield from _caught("noise_before_clipping", _FULL, pair, claim)
    yield from _caught("clip_of_the_mean", _FULL, pair, claim)
    network, odd = _network()
    yield from _caught("clip_by_layer", network, odd, GaussianDP(network.mu()))
    canary = odd_tumour(0.2)
    tumour = planted(tumours(8), canary, "a tumour with small measurements beside 8 tumours")
    bias = DPSGD(LogisticRegression(MEASURES), CanaryReader(canary), 0.1, math.sqrt(2), 2, batch=8.0)
    yield from _caught("bias_not_clipped", bias, tumour, claim)
    yield from _caught("accumulation_without_factor", _FULL, pair, claim, at_l0=True)


def _pitfalls_of_noise() -> Iterator[Draft]:
    claim, pair = GaussianDP(_FULL.mu()), _images()
    yield from _caught("noise_of_one_micro_batch", _FULL, pair, claim, at_l0=True)
    # With no more ink than there can be, the bias is moved as much as the corner's weight.
    black = planted(digits(20), corner_canary(1.0), "an image with a black corner beside 20 images")
    yield from _caught("layer_without_noise", _WEIGHTS, black, claim)
    steps = dataclasses.replace(_SAMPLED, release="steps")
    yield from _caught("seed_reused", steps, pair, _CLAIM)
    small = dataclasses.replace(_SAMPLED, batch=1.5, learning_rate=0.02)
    yield from _caught("noise_scaled_by_the_batch", small, _alone(), _CLAIM, at_l0=True)
    yield deviating(MUTANTS["noise_scaled_by_the_batch"], _SAMPLED, _images(), relation=ADD_REMOVE, draws=_MORE)
    three = planted(digits(3), corner_canary(), "an image with ink in a corner beside three images")
    yield from _caught("floor_of_the_batch", small, three, _CLAIM, at_l0=True)
    one = DPSGD(_LOGISTIC, FeatureReader(CORNER), 0.1, 1.0, 1, batch=2.0)
    two = planted(digits(2), corner_canary(), "an image with ink in a corner beside two images")
    own = ApproxDP(GaussianCurve(one.mu()).epsilon(0.1), 0.1)
    yield from _caught("delta_of_private_size", one, two, own, at_l0=True, draws=_MANY)


def _pitfalls_of_batches() -> Iterator[Draft]:
    # With little noise it counts most whether the canary takes part at all.
    loud = DPSGD(_LOGISTIC, FeatureReader(CORNER), 0.1, 0.4, 3, rate=1 / 3, batch=7.0)
    claim = DeltaDP(0.42, 1.0)
    yield exact(loud, claim, _images(), case="little_noise", relation=ADD_REMOVE)
    yield inequality(
        lambda: [("delta at epsilon = 1", loss_delta(loud.noise, loud.rate, loud.steps, 1.0), claim.delta)],
        statement="the claim for little noise is that of privacy losses, rounded up",
        case="little_noise",
    )
    yield from _caught("shuffled", loud, _images(), claim, at_l0=True)
    yield from _caught("one_epoch_more", _FULL, _images(), GaussianDP(_FULL.mu()), at_l0=True, draws=_MORE)
    quiet = DPSGD(_LOGISTIC, FeatureReader(CORNER), 0.1, 4.0, 3, batch=20.0, learning_rate=0.005)
    black = planted(digits(20), corner_canary(2_000.0), "an image with very much ink in a corner beside 20 images")
    yield from _caught("early_stopping", quiet, black, GaussianDP(quiet.mu()))
