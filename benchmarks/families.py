"""Mechanisms that attain their claim exactly: every alarm about them is false.

Shared by ``benchmarks/false_alarms.py`` and ``tests/validity/test_false_alarms.py``; the mechanisms are those of
`auditor.calibration.families`, which `dpaudit calibrate` has too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from auditor.audits.privacy_loop import Settings, collect_evidence
from auditor.calibration import families
from auditor.calibration.families import Family, Geometric, Response
from auditor.evidence.lower_bound import level_grid, lower_bound
from auditor.privacy.guarantees import PureDP
from auditor.targets.sampler import Sampler

__all__ = [
    "ALPHA",
    "EXTREMES",
    "FAMILIES",
    "STOPS",
    "Family",
    "NullAudit",
    "RowTellingTable",
    "discrete_laplace",
    "randomised_response",
    "trial",
]

#: Level of every audit here. 5 % and not the default 1 %, so that a count of alarms says more.
ALPHA = 0.05
#: Stopping rules, by the name that `auditor.audit` has for them.
STOPS = ("verdict", "budget")

#: Both have a level of exactly 1.
randomised_response, discrete_laplace = Response(1.0), Geometric(1.0)

PAIR = families.PAIR


@dataclass(frozen=True)
class ResponseOfMixedTypes:
    """Randomised response at epsilon = 1 whose outputs are large integers and texts; some are None."""

    answers: tuple[int | str, int | str]
    missing: float = 0.03

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> list[int | str | None]:
        """``n`` outputs."""
        bits = np.where(rng.random(n) < math.e / (1 + math.e), data[0], 1 - data[0]).tolist()
        none = (rng.random(n) < self.missing).tolist()
        return [None if gone else self.answers[bit] for bit, gone in zip(bits, none, strict=True)]


@dataclass(frozen=True)
class GeometricInOddSteps:
    """A count with two-sided geometric noise at epsilon = 1, in steps that are no power of two."""

    step: float

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """``n`` noisy counts, each one product of an integer and the step."""
        return np.asarray(discrete_laplace(data, n, rng) * self.step)


@dataclass(frozen=True)
class RowTellingTable:
    """Tells the row of a table of identical rows with a probability, and otherwise another one at random."""

    probability: float

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """``n`` releases, see `each`."""
        return self.each(np.repeat(np.asarray(data)[None], n, axis=0), rng)

    def each(self, stack: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        """Counts of the columns of each table, as if all its rows were the one that is told; (tables, columns)."""
        truth = np.asarray(stack[:, 0, :])
        said, wrong = truth.copy(), rng.random(len(truth)) >= self.probability
        while (equal := wrong & (said == truth).all(axis=1)).any():
            said[equal] = rng.integers(0, 2, (int(equal.sum()), truth.shape[1]))
        return np.asarray(said * float(stack.shape[1]))


#: Outputs at the limits of what doubles and keys hold; families have arrays for outputs elsewhere.
EXTREMES = (
    Family("integers beyond 2^53, 0 and None", cast(Any, ResponseOfMixedTypes((2**53 + 1, 0))), PureDP(1.0), PAIR),
    Family(
        "integers beyond 2^53, texts and None", cast(Any, ResponseOfMixedTypes((-(2**53) - 1, "no"))), PureDP(1.0), PAIR
    ),
    Family("lattice of step 0.1", GeometricInOddSteps(0.1), PureDP(1.0), PAIR),
    Family("lattice of step 1/3", GeometricInOddSteps(1 / 3), PureDP(1.0), PAIR),
    Family("lattice of step 1e-3", GeometricInOddSteps(1e-3), PureDP(1.0), PAIR),
)

FAMILIES = (
    families.make_response(1.0),
    families.make_discrete_laplace(1.0),
    families.make_gaussian(1.0),
    families.make_gaussian_delta(1.0),
    families.SEARCH,
    families.KINK,
    families.RHO,
    families.RENYI,
    families.DELTA,
    families.PIECES,
)


class NullAudit(NamedTuple):
    """One audit of a mechanism that keeps its claim."""

    alarm: bool
    bound_above: bool


def trial(family: Family, stop: str, seed: int, draws_a_side: int) -> NullAudit:
    """Audit a family once at level `ALPHA`.

    This is the part of `auditor.audit` that can raise a false alarm: its verdict is "violation" only if the claimed
    level is rejected. The tests of independence and the power of the audit are left out, which saves a third of the
    time.

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
    NullAudit
        Whether the claim was refuted, and whether the lower bound is strictly above the exact level. The claimed level
        is on the grid of levels, so rounding to the grid needs no slack.
    """
    settings = Settings(alpha=ALPHA, draws=2 * draws_a_side, stop=stop, seed=seed)
    evidence = collect_evidence(Sampler(family.mechanism, seed, family.name), family.guarantee, family.pairs, settings)
    level = family.guarantee.level
    bound = lower_bound(
        evidence.chunks, family.guarantee, level_grid(level, family.guarantee.highest, family.guarantee.unit), ALPHA
    )
    return NullAudit(evidence.refuted(ALPHA), bound > level)
