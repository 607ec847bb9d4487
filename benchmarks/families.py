"""Mechanisms that attain their claim exactly: every alarm about them is false.

Shared by ``benchmarks/false_alarms.py`` and ``tests/validity/test_false_alarms.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from auditor import ZCDP, ApproxDP, DeltaDP, GaussianDP, Pair, PureDP, RenyiDP, TradeoffCurve
from auditor.collect import Settings, collect
from auditor.evidence.bound import level_grid, lower_bound
from auditor.exact import GaussianCurve
from auditor.guarantees import Guarantee
from auditor.sampling import Sampler

#: Level of every audit here. 5 % and not the default 1 %, so that a count of alarms says more.
ALPHA = 0.05
#: Stopping rules, by the name that `auditor.audit` has for them.
STOPS = ("verdict", "budget")
#: Pairs of the search: ten records, each pair in both orders.
_RECORDS = 10
#: Gaussian outputs are rounded to multiples of this.
_LATTICE = 2.0**-20


class Outcome(NamedTuple):
    """One audit of a mechanism that keeps its claim."""

    alarm: bool
    bound_above: bool


@dataclass(frozen=True)
class Family:
    """A mechanism at zero margin: its exact level on ``pairs`` is the claimed one.

    Parameters
    ----------
    name : str
        For tables and test ids.
    mechanism : callable
        ``(data, n, rng) -> ndarray of shape (n,)``.
    guarantee : Guarantee
        The claim; its level is the exact level.
    pairs : tuple of Pair
        What is searched.
    share : float
        Part of the usual number of audits that is made: less where the notion's tangents take long, more where audits
        are fast and the rate is highest.
    """

    name: str
    mechanism: Callable[[Any, int, np.random.Generator], NDArray[Any]]
    guarantee: Guarantee
    pairs: tuple[Pair, ...]
    share: float = 1.0


def randomised_response(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Report the first bit with probability e / (1 + e), the other bit otherwise: epsilon is exactly 1."""
    truthful = rng.random(n) < math.e / (1 + math.e)
    return np.where(truthful, int(data[0]), 1 - int(data[0]))


def discrete_laplace(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Add the difference of two geometrics with P[k] proportional to e^-|k|: epsilon is exactly 1 for a shift of 1."""
    success = -math.expm1(-1.0)
    return int(data[0]) + rng.geometric(success, n) - rng.geometric(success, n)


def gaussian(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Add standard Gaussian noise and round: mu is 1 for a shift of 1.

    Without the rounding the claim would be false: double-precision outputs on 0 and on 1 lie on different lattices
    (design, section 4), and the auditor finds that. Rounding to multiples of 2^-20 is a function of the output alone,
    post-processing, so it can only lower mu; cells a millionth wide lower it by less than 10^-12, so the margin stays
    zero for any number of draws that is made here.
    """
    noisy: NDArray[np.float64] = float(data[0]) + rng.standard_normal(n)
    return np.round(noisy / _LATTICE) * _LATTICE


@dataclass(frozen=True)
class Coin:
    """Heads with probability ``p`` on data 1 and ``q`` on data 0: one event is the whole law."""

    p: float
    q: float

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``n`` coins."""
        return (rng.random(n) < (self.p if data[0] else self.q)).astype(np.int64)


def at_the_cap(claim: Guarantee, q: float) -> Coin:
    """A coin whose heads are on the claim's cap: for what is tested, at zero margin."""
    return Coin(float(claim.cap(np.array(q), claim.level)), q)


_ONE, _ZERO = np.array([1]), np.array([0])
_PAIR = (Pair(_ONE, _ZERO, "1 against 0"),)
_SEARCH = tuple(
    pair
    for k in range(_RECORDS)
    for pair in (Pair(_ONE, _ZERO, f"record {k}"), Pair(_ZERO, _ONE, f"record {k}, other order"))
)

_RHO, _RENYI = ZCDP(0.5), RenyiDP({2.0: 0.3, 8.0: 1.1})
#: The point of the antidiagonal that is on the cap.
_KINK = float(optimize.brentq(lambda p: float(_RHO.level_of(np.array(p), np.array(1 - p))) - _RHO.rho, 0.5, 0.99))
_PIECES = TradeoffCurve((0.0, 0.2, 1.0), (0.7, 0.4, 0.0), "of two pieces")

FAMILIES = (
    Family("randomised response", randomised_response, PureDP(1.0), _PAIR, 3.5),
    Family("discrete Laplace", discrete_laplace, PureDP(1.0), _PAIR),
    Family("Gaussian, claimed mu", gaussian, GaussianDP(1.0), _PAIR),
    # delta at which a shift of one standard deviation has epsilon exactly 1.
    Family("Gaussian, claimed epsilon and delta", gaussian, ApproxDP(1.0, GaussianCurve(1.0).delta(1.0)), _PAIR),
    Family("search over 20 pairs", randomised_response, PureDP(1.0), _SEARCH),
    # Symmetric, where the bounds of both orders of the pair meet, and far from it.
    Family("coin at the kink of a zCDP cap", Coin(_KINK, 1 - _KINK), _RHO, _PAIR, 0.5),
    Family("coin, claimed rho", at_the_cap(_RHO, 0.02), _RHO, _PAIR, 0.5),
    Family("coin, claimed Renyi bounds", at_the_cap(_RENYI, 0.1), _RENYI, _PAIR, 0.5),
    Family("coin, claimed delta at an epsilon", at_the_cap(DeltaDP(0.05, 1.0), 0.1), DeltaDP(0.05, 1.0), _PAIR),
    Family("coin, claimed trade-off curve", at_the_cap(_PIECES, 0.2), _PIECES, _PAIR, 0.5),
)


def trial(family: Family, stop: str, seed: int, draws_a_side: int) -> Outcome:
    """Audit a family once at level `ALPHA`.

    This is the part of `auditor.audit` that can raise a false alarm: its verdict is "violation" if and only if the
    wealth at the claimed level reached 1/alpha. The tests of independence and the power of the audit are left out,
    which saves a third of the time.

    Parameters
    ----------
    family : Family
        What is audited.
    stop : {"verdict", "budget"}
        Stopping rule.
    seed : int
        Seed of the audit.
    draws_a_side : int
        Budget.

    Returns
    -------
    Outcome
        Whether the claim was refuted, and whether the lower bound is strictly above the exact level. The claimed level
        is on the grid of levels, so rounding to the grid needs no slack.
    """
    settings = Settings(alpha=ALPHA, draws=2 * draws_a_side, stop=stop, seed=seed)
    evidence = collect(Sampler(family.mechanism, seed, family.name), family.guarantee, family.pairs, settings)
    level = family.guarantee.level
    bound = lower_bound(
        evidence.chunks, family.guarantee, level_grid(level, family.guarantee.highest, family.guarantee.unit), ALPHA
    )
    return Outcome(bool(evidence.wealth.best[0] >= math.log(1 / ALPHA)), bound > level)
