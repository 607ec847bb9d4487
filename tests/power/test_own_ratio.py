"""A mechanism's own log-likelihood ratio reaches the whole distribution; coordinates, sums and linear scores do not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditor import Pair, PureDP, Verdict, audit
from auditor.evidence.power import divergence_rate
from tests.counting import first_that_hold

#: 64 coordinates with Laplace noise of scale 1, moved by 1/4 each, and one random sign for all of them: a true epsilon
#: of 16, in sums of small losses, and no shift that a score of the coordinates could follow.
PAIR = Pair(np.zeros(64), np.full(64, 0.25))
CLAIM, ALPHA = PureDP(2.5), 0.01
RUNS, FALSE_ALARM = 20, 1e-6
#: Draws allowed, in multiples of the oracle's. Of 12 runs with the ratio all had a verdict within 3.6 of them, half
#: within 2.5; of 12 without it none within 8.
TIMES = 5
#: Probabilities of a verdict in time that are taken for granted: at least this with the ratio, at most that without it.
WITH, WITHOUT = 0.9, 0.05


class Plain:
    """Noise on a lattice of 2^-10, so that no float gives anything away."""

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        noisy = (data + rng.laplace(size=(n, len(data)))) * rng.choice([-1.0, 1.0], (n, 1))
        return np.asarray(np.rint(noisy * 2.0**10) / 2.0**10)


class Telling(Plain):
    """The same, with its log-likelihood ratio."""

    def log_likelihood_ratio(self, outputs: Any, x: Any, y: Any) -> Any:
        first, second = (
            np.logaddexp(*(-np.abs(outputs - sign * data).sum(axis=1) for sign in (1, -1))) for data in (x, y)
        )
        return first - second


def oracle() -> int:
    """Draws a side of ln(1/alpha) over the divergence rate of the best set in the order of the likelihood ratio.

    Its probabilities are those of 100,000 draws a side: the rate, about 0.009, is right to some percent.
    """
    target, rng = Telling(), np.random.default_rng(7)
    a, b = (
        np.sort(
            np.concatenate([target.log_likelihood_ratio(target(data, 10_000, rng), PAIR.x, PAIR.y) for _ in range(10)])
        )
        for data in (PAIR.x, PAIR.y)
    )
    cuts = np.quantile(np.concatenate([a, b]), np.linspace(0.002, 0.998, 300))
    p, q = (1 - np.searchsorted(v, cuts) / len(v) for v in (a, b))
    rates = [divergence_rate(p, q, CLAIM, CLAIM.level), divergence_rate(1 - q, 1 - p, CLAIM, CLAIM.level)]
    return math.ceil(math.log(1 / ALPHA) / float(np.max(rates)))


def test_the_own_ratio_reaches_the_whole_laws_oracle_and_plain_events_do_not() -> None:
    draws = 2 * TIMES * oracle()

    def verdicts(target: Plain) -> Iterator[bool]:
        for seed in range(RUNS):
            found = audit(target, CLAIM, PAIR, alpha=ALPHA, draws=draws, seed=seed, id="power/own")
            yield found.verdict == Verdict.VIOLATION

    least = max(k for k in range(RUNS + 1) if stats.binom.cdf(k - 1, RUNS, WITH) <= FALSE_ALARM / 2)
    most = min(k for k in range(RUNS + 1) if stats.binom.sf(k, RUNS, WITHOUT) <= FALSE_ALARM / 2)
    assert most < least  # otherwise the two counts could be the same
    assert first_that_hold(verdicts(Telling()), least) == least
    missed = (not found for found in verdicts(Plain()))
    assert first_that_hold(missed, RUNS - most) == RUNS - most
