"""A static check of an algorithm's constants: what its noise, threshold and loop certify, whatever it claims.

The algorithms of document 004 test distances against a noisy threshold, give values out where a test passes and draw
the threshold anew where it fails. From the scale of the noise, the threshold, the sensitivity of the distance and the
number of epochs the ledger certifies a level: each epoch costs ``2 Delta / lambda``, the epochs compose by the optimal
theorem (Kairouz, Oh, Viswanath) at half of delta, and a value that changes between neighbours is given out with
probability ``G(w - d)`` an epoch at most, d the largest distance at which it can change.

Source: document 004, Lemma 2.4, Theorems 2.7, 3.6 and 5.4, Corollary 3.10; catalogue 004, ledger and sections 0.2, 0.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from auditor.privacy.exact import optimal_composition
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_positive
from mechanisms.base.queries import IdentityQuery
from mechanisms.selection import free_tops
from mechanisms.teacher_ensembles import soft_labels
from mechanisms.teacher_ensembles.soft_label_votes import FreshSoftLabels, OneSoftLabel

#: Relative rounding of levels and leaks that are compared with claims.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class CompositionLedger:
    """Constants of one algorithm.

    Parameters
    ----------
    name : str
        For reports.
    epsilon, delta : float
        The claimed level.
    scale : float
        lambda: the threshold's noise; that of distances is twice as large.
    epochs : int
        Most fresh thresholds that are used to their end: failed tests, and the one at which a run ends.
    bar : float or None
        w, an absolute number; None where no value is given out, and the threshold may be anything.
    tests : int
        Tests that a run can make: no more epochs than that.
    sensitivity : float, default 1
        Delta: by how much a distance moves between neighbours.
    flip : float, default 0
        Largest distance at which the value can change between neighbours.
    """

    name: str
    epsilon: float
    delta: float
    scale: float
    epochs: int
    bar: float | None
    tests: int
    sensitivity: float = 1.0
    flip: float = 0.0

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(0 < self.delta < 1, "a delta in (0, 1)", self.delta)
        require_positive("scale", self.scale)
        require(min(self.epochs, self.tests) >= 1, "at least one epoch and one test", (self.epochs, self.tests))
        require_positive("sensitivity", self.sensitivity)
        require(self.flip >= 0, "a distance >= 0", self.flip)

    @property
    def per_epoch(self) -> float:
        """``2 Delta / lambda``."""
        return 2.0 * self.sensitivity / self.scale

    @property
    def used(self) -> int:
        """Epochs that a run can use."""
        return min(self.epochs, self.tests)

    @property
    def share(self) -> float:
        """What the composition may use of delta: half of it, or all where nothing can leak."""
        return self.delta if self.bar is None else 0.5 * self.delta

    @property
    def leak(self) -> float:
        """Bound on the probability that a value is given out that neighbours do not share.

        Valid because: in an epoch the first test of such a value leaks or ends the epoch, and with a fresh threshold
        the test passes with probability ``G(w - d)``; earlier tests of the epoch can only end it before.
        """
        if self.bar is None:
            return 0.0
        return min(1.0, self.used * free_tops.tail(self.bar - self.flip, self.scale))

    @property
    def composed(self) -> float:
        """Delta of the composed epochs at the claimed epsilon."""
        return optimal_composition(self.per_epoch, self.used).delta(self.epsilon)

    def certified(self) -> tuple[float, float]:
        """A level (epsilon, delta) that the constants certify: the composition's at its share of delta, and the leak.

        Not a lower bound: an algorithm may be better than what is certified.
        """
        return optimal_composition(self.per_epoch, self.used).epsilon(self.share), self.share + self.leak

    @property
    def flags(self) -> tuple[str, ...]:
        """What the claim is not certified for: "composition", "leak"; none if it is certified."""
        found = (
            ("composition", self.composed > self.share * (1 + _ROUNDING)),
            ("leak", self.bar is not None and self.leak > 0.5 * self.delta * (1 + _ROUNDING)),
        )
        return tuple(name for name, wrong in found if wrong)


# ---------------------------------------------------------------------------------- algorithms


def algorithm_1(epsilon: float, delta: float, queries: int, cutoff: int) -> CompositionLedger:
    """Sparse vector: T + 1 epochs, and no values."""
    scale = free_tops.noise_scale(epsilon, delta, cutoff)
    return CompositionLedger("Algorithm 1", epsilon, delta, scale, cutoff + 1, None, queries)


def algorithm_3(epsilon: float, delta: float, queries: int, cutoff: int) -> CompositionLedger:
    """Online release: noise of Algorithm 1 at delta/2, ``w = 2 lambda ln(2m/delta)``; exact distances."""
    scale = free_tops.noise_scale(epsilon, delta / 2.0, cutoff)
    bar = 2.0 * scale * math.log(2.0 * queries / delta)
    return CompositionLedger("Algorithm 3", epsilon, delta, scale, cutoff + 1, bar, queries)


def algorithm_4(epsilon: float, delta: float, queries: int, cutoff: int) -> CompositionLedger:
    """Sub-sample and aggregate: Algorithm 3 with the distance ``gap - 1`` of votes, which moves by 2."""
    return with_gap(replace(algorithm_3(epsilon, delta, queries, cutoff), name="Algorithm 4"))


def algorithm_6(epsilon: float, delta: float, queries: int, cutoff: int) -> CompositionLedger:
    """Soft labels as printed in the copy we have: ``w = lambda ln(4m/delta)``, the loop while c <= T.

    Up to T + 2 tests fail: c is T after T shifted answers, and the next query can fail both of its tests.
    """
    scale = soft_labels.noise_scale(epsilon, delta, cutoff)
    bar = soft_labels.printed_threshold(scale, delta, queries)
    return with_gap(CompositionLedger("Algorithm 6", epsilon, delta, scale, cutoff + 2, bar, 2 * queries))


def with_gap(ledger: CompositionLedger) -> CompositionLedger:
    """The same with ``gap - 1`` as distance: it moves by 2, and the value can change at a distance of 1."""
    return replace(ledger, sensitivity=2.0, flip=1.0)


def with_distance(ledger: CompositionLedger) -> CompositionLedger:
    """The same with a distance that moves by 1 and is 0 where the value changes, such as ``ceil(gap/2) - 1``."""
    return replace(ledger, sensitivity=1.0, flip=0.0)


def doubled(ledger: CompositionLedger) -> CompositionLedger:
    """The same with twice the threshold."""
    require(ledger.bar is not None, "an algorithm with a threshold", ledger.name)
    return replace(ledger, bar=2.0 * float(ledger.bar or 0.0))


def looping(ledger: CompositionLedger, most: int) -> CompositionLedger:
    """Algorithm 6 with the loop while c <= `most`: up to most + 2 tests fail."""
    return replace(ledger, epochs=most + 2)


# ------------------------------------------------------------------------------ what is printed


def delta_of_flips(ledger: CompositionLedger, unstable: int) -> float:
    """Exact delta, at any epsilon, of so many tests in a row of values that neighbours do not share.

    ``1 - (1 - G(w))^unstable``: at distance 0 on both sides, with a fresh threshold each.
    """
    require(ledger.bar is not None, "an algorithm with a threshold", ledger.name)
    leak = free_tops.tail(float(ledger.bar or 0.0), ledger.scale)
    return -math.expm1(unstable * math.log1p(-leak))


def refusals(cutoff: int) -> int:
    """How many bottoms Algorithm 1 gives out, and so 3 and 4, on answers that are all far below the threshold."""
    run = free_tops.inverted(IdentityQuery(), 1.0, 0.01, cutoff)
    far = -1_000.0 * run.threshold_scale  # such an answer passes with probability e^-500
    return int((run(np.full(cutoff + 4, far), 1, np.random.default_rng(0)) == 1).sum())


def failing_tests(cutoff: int) -> int:
    """How many tests fail in a run of Algorithm 6 on T queries that fail the first test only, then unstable ones."""
    far = 1_000.0  # in units of lambda: such tests fail, or pass, with probability 1 - e^-500
    labels = FreshSoftLabels(2, 1, 1.0, far, cutoff)
    none, sure = np.zeros(1, dtype=np.int64), np.full(1, round(2.0 * far))
    tests = [[(none, none), (none, sure)]] * cutoff + [[(none, none), (none, none)]] * 2
    codes = labels.answers(tests, 1, np.random.default_rng(0))[0]
    return int(2 * (codes == soft_labels.BOTTOM).sum() + ((codes > 0) & (codes % 2 == 0)).sum())


def student(points: FloatArray, codes: IntArray, bins: int) -> float:
    """A classifier that is learned from released labels: the threshold on public points that errs least on them.

    Parameters
    ----------
    points : ndarray of shape (m,)
        Where the labels were asked for.
    codes : ndarray of shape (m,)
        What was released, codes as in `FreshSoftLabels`; a soft label above 1/2 counts as 1, no label as nothing.
    bins : int
        1/gamma.

    Returns
    -------
    float
        From there on it says 1; of several thresholds the first. It sees no data.
    """
    used = codes > 0
    thresholds = np.append(points, np.inf)
    wrong = ((points[used] >= thresholds[:, None]) != (codes[used] > bins)).sum(axis=1)
    return float(thresholds[wrong.argmin()])


def most_students(mechanism: OneSoftLabel, points: FloatArray, datasets: Sequence[Dataset], runs: int) -> int:
    """Most different students of one transcript, over runs on all the datasets: 1 where it is post-processing."""
    found: dict[tuple[int, ...], set[float]] = {}
    for data in datasets:
        drawn = np.asarray(mechanism(data, runs * len(points), np.random.default_rng(0)), dtype=np.int64)
        for row in drawn.reshape(runs, len(points)):
            found.setdefault(tuple(row.tolist()), set()).add(student(points, row, mechanism.bins))
    return max(len(students) for students in found.values())
