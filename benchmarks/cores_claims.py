"""Claims for timing whole runs on one core and on two: what is declared here says nothing about a mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from auditor import Pair, PureDP, one_draw
from auditor.claims import Draft, Source, entry, exact, privacy
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.queries import IdentityQuery
from mechanisms.local_model.randomized_response import from_epsilon

#: Claims of the two long runs: one to two minutes of one core each on the machine of the reports, beside which the
#: seconds in which workers start are few.
SLOW, CHEAP = 24, 500
#: Outputs of a slow claim, both sides together; its tests of independence draw a thousand more.
SLOW_DRAWS = 4_000
#: Additions a draw: about 1 ms of one core of that machine. Work of a fixed size, and not a sleep or a loop until a
#: clock says so: only work shares the cores as real targets do.
ADDITIONS = 30_000

_BIT = Pair(np.array([0]), np.array([1]), "one bit")
_ONE = Pair(np.array([0.0]), np.array([1.0]), "0 against 1")
_SOURCE = Source("none", "made for timing")


def busy(data: Any, rng: np.random.Generator) -> int:
    """Randomised response of level 1, after work."""
    total = 0
    for k in range(ADDITIONS):
        total += k
    truthful = rng.random() < 0.7310585786300049  # e / (1 + e)
    return int(data[0]) if truthful and total else 1 - int(data[0])


def _slow_claim(case: str) -> Draft:
    # What 4,000 draws can detect is beyond twice the claimed level, the default.
    return privacy(one_draw(busy), PureDP(1.0), _BIT, case=case, draws={"smoke": SLOW_DRAWS}, detect=3.0)


@entry("cores/start", title="Nothing to draw", source=_SOURCE)
def start() -> Iterator[Draft]:
    """Two claims, so that two workers start."""
    for case in ("first", "second"):
        mechanism = from_epsilon(1.0)
        yield exact(mechanism, PureDP(1.0), _BIT, case=case)


@entry("cores/single", title="One slow claim", source=_SOURCE)
def single() -> Iterator[Draft]:
    """Two processes draw for one claim."""
    yield _slow_claim("single")


@entry("cores/slow", title="Slow claims", source=_SOURCE)
def slow() -> Iterator[Draft]:
    """Targets of 1 ms a draw."""
    for k in range(SLOW):
        yield _slow_claim(f"claim_{k:02d}")


@entry("cores/cheap", title="Many cheap claims", source=_SOURCE)
def cheap() -> Iterator[Draft]:
    """Targets of a tenth of a microsecond a draw."""
    for k in range(CHEAP):
        yield privacy(LatticeLaplace(IdentityQuery(), 1.0), PureDP(1.0), _ONE, case=f"claim_{k:03d}", detect=3.0)
