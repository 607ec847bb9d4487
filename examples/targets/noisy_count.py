"""A count with noise that is exact, in Python, served by dpaudit's helper.

    dpaudit attack 'exec:python auditor/targets/helper.py examples/targets/noisy_count.py:noisy_count' \
        --claim "epsilon=1" --relation replace-one --domain 0,1 --rows 3

Counts the positive numbers; one row changes that by at most 1. The noise k has probability proportional to e^-|k|, and
is made of integers alone, so that there is no float whose bits could tell the count: see Canonne, Kamath and Steinke,
"The Discrete Gaussian for Differential Privacy" (2020), algorithms 1 and 2.
"""

from __future__ import annotations

import random

#: What the target says of itself.
STATES = {"noise": {"distribution": "two-sided geometric", "scale": 1.0, "sensitivity": 1}}


def noisy_count(data: list[float], n: int, seed: int | None) -> list[int]:
    """Draw n outputs; epsilon is 1."""
    return _draws(data, n, seed, epsilon=1)


def too_little_noise(data: list[float], n: int, seed: int | None) -> list[int]:
    """Draw n outputs with half the noise: epsilon is 2. What an audit of epsilon = 1 finds."""
    return _draws(data, n, seed, epsilon=2)


def _draws(data: list[float], n: int, seed: int | None, epsilon: int) -> list[int]:
    source = random.SystemRandom() if seed is None else random.Random(seed)
    count = sum(value > 0 for value in data)
    return [count + geometric(source) // epsilon - geometric(source) // epsilon for _ in range(n)]


def geometric(source: random.Random) -> int:
    """Draw k >= 0 with probability (1 - 1/e) e^-k; k // m then is at least j with probability e^-(j m)."""
    k = 0
    while one_in_e(source):
        k += 1
    return k


def one_in_e(source: random.Random) -> bool:
    """True with probability 1/e = 1 - 1 + 1/2 - 1/6 + ...: stop at the first k whose draw of one in k fails."""
    k = 1
    while source.randrange(k) == 0:
        k += 1
    return k % 2 == 1
