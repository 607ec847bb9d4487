"""Parities learned by local protocols, on fresh examples from the uniform distribution: brute force.

The query ``g_r(x, y) = (-1)^(<r, x> + y)`` has expectation 1 for the target and 0 for every other parity. A local
learner asks all 2^d of them, each of users of its own, or all of the same users with an equal share of epsilon, and
takes the parity with the largest answer. If all answers are within a tolerance below 1/2 that is the target, so with
the sample size of Theorem 5.7 it fails with probability at most beta.

Source: document 002, section 5.2, Corollary 5.15; catalogue 002, local_vs_central_parity_gap. The document shows that
no local learner is efficient; brute force is this harness's, and shows how many users the obvious one takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.base.noise import base_for
from mechanisms.local_model.fresh_users import noise_sums, users_needed
from mechanisms.local_model.local_simulation import simulation_size
from mechanisms.statistical_queries.lazy_oracles import walsh_hadamard

# Messages are integers: values are 1 and -1, which lie two lattice steps apart.
_STEPS = 2
# A period of the discrete Fourier transform that holds all but e^-45 = 3e-20 of a sum.
_REACH = 45.0
# Answers that are drawn for one run, at most: 2^16 of them take about ten milliseconds.
_MOST_BITS = 16


@lru_cache(maxsize=64)
def wrong_answer(epsilon: float, users: int) -> tuple[int, FloatArray]:
    """Distribution of the sum of the messages of all users who are asked about a wrong parity.

    Parameters
    ----------
    epsilon : float
        Level of a message.
    users : int
        Users n who are asked; the value of each is a fair sign.

    Returns
    -------
    reach : int
        The sum is tabulated from -reach to reach.
    cdf : ndarray of shape (2 reach + 1,)
        Probability of at most so much.

    Notes
    -----
    A convolution of the binomial distribution with the difference of two negative binomial ones, by its characteristic
    function ``(cos t)^n (1 + (sin(t/2) / sinh(epsilon/4))^2)^-n``, within about 1e-14. `noise_sums` states the second
    distribution.
    """
    log_a = math.log1p(base_for(epsilon, _STEPS) - 1.0)
    spread = math.sinh(log_a / 2.0)
    deviation = math.sqrt(users * (1.0 + 0.5 / spread**2))
    reach = math.ceil(_REACH * (deviation + 1.0 / log_a))
    period = 1 << (2 * reach).bit_length()
    t = np.arange(period // 2 + 1) * (2.0 * math.pi / period)
    damped = np.exp(-users * np.log1p((np.sin(t / 2.0) / spread) ** 2))
    mass = np.fft.irfft(np.cos(t) ** users * damped, period)
    centred = np.maximum(np.concatenate([mass[-reach:], mass[: reach + 1]]), 0.0)
    cdf = np.cumsum(centred)
    cdf /= cdf[-1]
    cdf.setflags(write=False)
    return reach, cdf


@dataclass(frozen=True)
class LocalParity:
    """By how much the target's answer is above all others, where every parity is asked of users of its own.

    Parameters
    ----------
    d : int
        Bits, at least 1.
    epsilon : float
        Level of each user's message.
    users : int
        Users a query; ``2^d`` times as many in all.

    Notes
    -----
    The answers about wrong parities are independent and have one distribution, `wrong_answer`: the largest of them is
    drawn by inverting its distribution function to the power ``2^d - 1``. All users agree on the target, whose answer
    is off by noise only. In a tie nothing is learned.
    """

    d: int
    epsilon: float
    users: int

    def __post_init__(self) -> None:
        _require_bits(self.d)
        require_positive("epsilon", self.epsilon)
        require(isinstance(self.users, (int, np.integer)) and self.users >= 1, "a number of users >= 1", self.users)

    @property
    def others(self) -> int:
        """Wrong parities."""
        return (1 << int(self.d)) - 1

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` margins; float64 of shape (n,). The data are the target's bits, shape (d,)."""
        require_draws(n)
        _require_target(data, self.d)
        reach, cdf = wrong_answer(self.epsilon, int(self.users))
        target = self.users + noise_sums(base_for(self.epsilon, _STEPS), self.users, (n,), rng)
        largest = np.searchsorted(cdf, rng.random(n) ** (1.0 / self.others)) - reach
        return np.asarray((target - largest) / self.users, dtype=np.float64)

    def failure(self) -> float:
        """Probability that the target's answer is not above all others, exact within about 1e-13 times 2^d."""
        reach, cdf = wrong_answer(self.epsilon, int(self.users))
        a = base_for(self.epsilon, _STEPS)
        noise = _noise_mass(a, int(self.users), reach)
        # The target's sum is the users plus noise k; all others are to be at most users + k - 1.
        place = np.arange(-reach, reach + 1) + self.users - 1 + reach
        below = np.where(place < 0, 0.0, cdf[np.clip(place, 0, cdf.size - 1)])
        return float(max(0.0, 1.0 - noise @ below**self.others))


@dataclass(frozen=True)
class BundledParity:
    """By how much the target's answer is above all others, where every user answers all 2^d queries.

    Parameters
    ----------
    d : int
        Bits, from 1 to 16.
    epsilon : float
        Level of all messages of a user together: each is of level ``epsilon / 2^d``.
    users : int
        Users in all.

    Notes
    -----
    How many users have each example is multinomial, and the sums over users of all queries are the Walsh-Hadamard
    transform of that, so the answers depend on each other as they do in the protocol. The noise is drawn as sums.
    """

    d: int
    epsilon: float
    users: int

    def __post_init__(self) -> None:
        _require_bits(self.d)
        require(self.d <= _MOST_BITS, f"at most {_MOST_BITS} bits", self.d)
        require_positive("epsilon", self.epsilon)
        require(isinstance(self.users, (int, np.integer)) and self.users >= 1, "a number of users >= 1", self.users)

    @property
    def base(self) -> float:
        """Base of the integer noise of one message."""
        return base_for(self.epsilon / 2**self.d, _STEPS)

    def sums(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` times the sums of the messages about all parities; int64 of shape (n, 2^d), by code."""
        require_draws(n)
        target, size = _require_target(data, self.d), 2**self.d
        counts = rng.multinomial(self.users, np.full(size, 1.0 / size), n)
        # With x from the counts and y = <target, x>, the sign of r is that of r + target on x.
        signs = np.rint(walsh_hadamard(counts.astype(np.float64))).astype(np.int64)
        values = signs[:, np.arange(size) ^ target]
        return np.asarray(values + noise_sums(self.base, self.users, (n, size), rng), dtype=np.int64)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` margins; float64 of shape (n,). The data are the target's bits, shape (d,)."""
        sums, target = self.sums(data, n, rng), _require_target(data, self.d)
        others = np.delete(sums, target, axis=1).max(axis=1)
        return np.asarray((sums[:, target] - others) / self.users, dtype=np.float64)


def local_users(d: int, epsilon: float, beta: float, tolerance: float = 0.49) -> int:
    """Users of brute force in all, ``2^d ln(4 2^d / beta) max((64 / (eps^2 tau^2))(1 + eps tau / 8), 8 / tau^2)``.

    Theorem 5.7 for t = 2^d queries with b = 1 and a tolerance below 1/2, with the catalogue's constants; the first term
    of the maximum is the larger for epsilon up to 2 sqrt 2, and a little beyond.
    """
    _require_bits(d)
    return int(simulation_size(2**d, epsilon, tolerance, beta, bound=1.0))


def bundled_users(d: int, epsilon: float, beta: float, tolerance: float = 0.49) -> int:
    """Users where each answers all 2^d queries, at ``epsilon / 2^d`` each: about ``4^d ln(4 2^d / beta) 64 / ...``."""
    _require_bits(d)
    return users_needed(epsilon / 2**d, tolerance, beta / 2**d)


def _noise_mass(a: float, users: int, reach: int) -> FloatArray:
    """Distribution of `noise_sums` on -reach..reach: the characteristic function of the noise alone, inverted."""
    spread = math.sinh(math.log1p(a - 1.0) / 2.0)
    period = 1 << (2 * reach).bit_length()
    t = np.arange(period // 2 + 1) * (2.0 * math.pi / period)
    mass = np.fft.irfft(np.exp(-users * np.log1p((np.sin(t / 2.0) / spread) ** 2)), period)
    return np.asarray(np.maximum(np.concatenate([mass[-reach:], mass[: reach + 1]]), 0.0), dtype=np.float64)


def _require_bits(d: int) -> None:
    require(isinstance(d, (int, np.integer)) and d >= 1, "a number of bits d >= 1", d)


def _require_target(data: Dataset, d: int) -> int:
    bits = np.asarray(data)
    require(bits.shape == (d,) and bool(np.isin(bits, (0, 1)).all()), f"{d} bits", data)
    return int(bits.astype(np.int64) @ (1 << np.arange(d, dtype=np.int64)))
