"""What the contenders of `benchmarks.peers` are held against: mechanisms whose level is known, and their draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditor import ApproxDP, GaussianDP, Pair, PureDP
from auditor.evidence.binomial import clopper_pearson
from auditor.evidence.power import divergence_rate
from auditor.privacy.exact import GaussianCurve
from auditor.privacy.guarantees import Guarantee
from auditor.targets import Mechanism
from auditor.targets.sampler import make_generator
from mechanisms.additive_noise.gaussian import LatticeGaussian
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.queries import IdentityQuery
from mechanisms.local_model.randomized_response import from_epsilon

Array = NDArray[np.float64]

#: Level of every bound and verdict here: 5 %, as in the other benchmarks, so that a count of false alarms says more.
ALPHA = 0.05
#: The delta of (epsilon, delta) claims, as in ``benchmarks/power.py``.
DELTA = 1e-5
#: A verdict is asked for at this part of the true level.
CLAIMED = 0.8
#: The rare event: its probability, and the level that it shows.
_RARE, _RARE_LEVEL = 0.0024, 4.061
_SIGMA = 1.8653


@dataclass(frozen=True)
class RareEvent:
    """1 with probability ``p`` on data 1 and ``q`` on data 0, else 0: one event is the whole distribution."""

    p: float
    q: float

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``n`` outputs."""
        return (rng.random(n) < (self.p if data[0] else self.q)).astype(np.int64)


@dataclass(frozen=True)
class PeerCase:
    """A mechanism on one pair, at its true level.

    Parameters
    ----------
    name : str
        For tables.
    mechanism, pair : Mechanism, Pair
        What is drawn; outputs are one number each, and larger ones speak for the first dataset.
    notion : callable
        Guarantee at a level.
    truth : float
        Exact level on the pair.
    p, q : ndarray of shape (n_thresholds,)
        P(output >= threshold) on the two datasets, by which the oracle chooses; no bound rests on them.
    thresholds : ndarray of shape (n_thresholds,)
    peers : tuple of str
        Bounds of the peer that are bounds on this level.
    delta : float
        Of the peer's bounds.
    """

    name: str
    mechanism: Mechanism
    pair: Pair
    notion: Callable[[float], Guarantee]
    truth: float
    p: Array
    q: Array
    thresholds: Array
    peers: tuple[str, ...]
    delta: float = 0.0

    @property
    def claim(self) -> Guarantee:
        """The claim that is just true."""
        return self.notion(self.truth)

    @property
    def too_small(self) -> Guarantee:
        """The claim that is to be refuted."""
        return self.notion(CLAIMED * self.truth)

    def draws(self, seed: int, n: int) -> PairOfDraws:
        """``n`` outputs a side: the same for every contender, and by themselves for every case, seed and n."""
        x, y = (
            np.asarray(self.mechanism(data, n, make_generator(seed, "peers", self.name, side, n)))
            for side, data in (("x", self.pair.x), ("y", self.pair.y))
        )
        return PairOfDraws(x.reshape(n), y.reshape(n))

    def best(self, n: int) -> float:
        """Threshold of the half line whose Clopper-Pearson bound would be largest, at the expected counts."""
        lower = clopper_pearson(n * self.p, n, ALPHA / 2, "lower")
        upper = clopper_pearson(n * self.q, n, ALPHA / 2, "upper")
        levels = np.where(lower > upper, self.claim.level_of(lower, upper), 0.0)
        return float(self.thresholds[int(np.argmax(levels))])

    def oracle_draws(self) -> float:
        """ln(1/alpha) over the divergence rate of the best half line from the claim to be refuted; draws a side."""
        claim = self.too_small
        return math.log(1 / ALPHA) / float(divergence_rate(self.p, self.q, claim, claim.level).max())


@dataclass(frozen=True)
class PairOfDraws:
    """Outputs on the first and the second dataset, ndarrays of shape (n_draws,)."""

    x: NDArray[Any]
    y: NDArray[Any]

    def first(self, n: int) -> PairOfDraws:
        """The first ``n`` of each side."""
        return PairOfDraws(self.x[:n], self.y[:n])


def cases() -> list[PeerCase]:
    """The tightness list: what bounds are close to the truth on."""
    gaussian = LatticeGaussian(IdentityQuery(), _SIGMA)
    mu = gaussian.mu()
    curve = GaussianCurve(mu)
    t = np.linspace(-4 * _SIGMA, 6 * _SIGMA, 2001)
    tails = stats.norm.sf(t, 1.0, _SIGMA), stats.norm.sf(t, 0.0, _SIGMA), t
    one, bit = Pair(np.array([1.0]), np.array([0.0]), "1 against 0"), Pair(np.array([1]), np.array([0]), "one bit")
    keep, q = math.e / (1 + math.e), _RARE * math.exp(-_RARE_LEVEL)
    pure, within = ("bonferroni", "split"), ("bonferroni", "split", "gdp")
    rest = partial(ApproxDP, delta=DELTA)
    return [
        *(_laplace(epsilon, one) for epsilon in (1.0, 2.0)),
        PeerCase("Gaussian, as mu", gaussian, one, GaussianDP, mu, *tails, ("gdp",), DELTA),
        PeerCase("Gaussian, as (epsilon, 1e-5)", gaussian, one, rest, curve.epsilon(DELTA), *tails, within, DELTA),
        PeerCase("randomised response", from_epsilon(1.0), bit, PureDP, 1.0, *_two_outcome_tails(keep, 1 - keep), pure),
        PeerCase(
            "rare event, 0.0024",
            RareEvent(_RARE, q),
            bit,
            PureDP,
            math.log(_RARE / q),
            *_two_outcome_tails(_RARE, q),
            pure,
        ),
    ]


def identical() -> list[PeerCase]:
    """Both datasets have the same distribution: the true level is 0, and any bound above it is wrong."""
    same = Pair(np.array([0.0]), np.array([0.0]), "0 twice")
    pure, within = ("bonferroni", "split"), ("bonferroni", "split", "gdp")
    rest = partial(ApproxDP, delta=DELTA)
    t = np.linspace(-10.0, 10.0, 401)
    laplace, gaussian = stats.laplace.sf(t), stats.norm.sf(t, 0.0, _SIGMA)
    return [
        PeerCase(
            "no difference, Laplace", LatticeLaplace(IdentityQuery(), 1.0), same, PureDP, 0.0, laplace, laplace, t, pure
        ),
        PeerCase(
            "no difference, Gaussian, as (epsilon, 1e-5)",
            LatticeGaussian(IdentityQuery(), _SIGMA),
            same,
            rest,
            0.0,
            gaussian,
            gaussian,
            t,
            within,
            DELTA,
        ),
    ]


def _laplace(epsilon: float, pair: Pair) -> PeerCase:
    t = np.linspace(-8.0, 8.0, 1601) / epsilon
    p, q = stats.laplace.sf(t, 1.0, 1 / epsilon), stats.laplace.sf(t, 0.0, 1 / epsilon)
    name = f"Laplace, epsilon {epsilon:g}"
    return PeerCase(
        name, LatticeLaplace(IdentityQuery(), epsilon), pair, PureDP, epsilon, p, q, t, ("bonferroni", "split")
    )


def _two_outcome_tails(p: float, q: float) -> tuple[Array, Array, Array]:
    """Tails of outputs 0 and 1 at the one threshold between them."""
    return np.array([p]), np.array([q]), np.array([0.5])
