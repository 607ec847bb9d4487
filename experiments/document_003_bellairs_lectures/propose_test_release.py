"""Document 003, section 2.2.2: propose a bound, test the distance, release."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from auditor.audits.accuracy import Exactly, Setting
from auditor.claims import (
    Draft,
    Erratum,
    Source,
    accuracy,
    broken,
    broken_and_deviating,
    conformity,
    entry,
    exact,
    privacy,
    proof_step,
    reference,
    scaling,
    smallest,
    statement_holds,
)
from auditor.datasets import Pair
from auditor.privacy.guarantees import ApproxDP, DeltaDP
from experiments._points import MIDDLE, around, index, moved, whole_range, zeros
from experiments.common import REPLACE
from mechanisms.base.mechanism import FloatArray
from mechanisms.stability.median import ClippedMedian
from mechanisms.stability.propose_test_release import MUTANTS, ProposeTestRelease

_BOUND = 1 / 64
_TEST = ProposeTestRelease(ClippedMedian(), _BOUND, 0.5, 0.05)


def _claim(mechanism: ProposeTestRelease) -> ApproxDP:
    return ApproxDP(2 * mechanism.epsilon, mechanism.delta)


def _both_move(distance: int) -> Pair:
    """The distance falls by one row to `distance`, and the median rises by the bound.

    The median is the last of 64 zeros, followed by distance + 1 points at the bound and by ones; a zero becomes a one.
    """
    block, ones = distance + 1, MIDDLE - 65 - distance
    rest = (_BOUND,) * block + (1.0,) * ones
    name = f"distances {distance + 1} and {distance}, answers apart by the bound"
    return moved(name, ((0.0,) * 64 + rest), ((1.0,) + (0.0,) * 63 + rest))


def _far_apart() -> Pair:
    return moved("distance 0 on both sides, the median goes from 0 to 1", zeros(64), zeros(63))


def _distances(distance: int) -> Pair:
    """The same median, 0; it moves to 1 once `distance`, or one row more, are replaced, and then one more."""
    return moved(f"distances {distance + 1} and {distance}", zeros(65 + distance), zeros(64 + distance))


# --------------------------------------------------------------------------------------- accuracy


def _is_released(outputs: FloatArray) -> FloatArray:
    return np.isfinite(outputs).astype(np.float64)


def _is_withheld(outputs: FloatArray) -> FloatArray:
    return np.isnan(outputs).astype(np.float64)


@dataclass(frozen=True)
class _ErrorOfReleases:
    """Distance from the truth, infinite where nothing is released."""

    truth: float

    def __call__(self, outputs: FloatArray) -> FloatArray:
        return np.where(np.isnan(outputs), np.inf, np.abs(outputs - self.truth))


def _sufficient_distance(mechanism: ProposeTestRelease, eta: float) -> float:
    """Distance from which on something is released with probability 1 - eta, and two steps of the noise's grid."""
    return (-math.log(mechanism.delta) - math.log(2 * eta)) / mechanism.epsilon + 2 * mechanism.grid


def _needed_rows(mechanism: ProposeTestRelease, eta: float) -> int:
    """Least number of rows with which something is released with probability 1 - eta, by bisection."""
    low, high = 0, math.ceil(_sufficient_distance(mechanism, eta)) + 1
    while low < high:
        middle = (low + high) // 2
        if mechanism.release_probability(middle) >= 1.0 - eta:
            high = middle
        else:
            low = middle + 1
    return low


def _needed_for_delta(log: float) -> float:
    return _needed_rows(replace(_TEST, epsilon=0.01, delta=math.exp(-log)), 0.5)


def _needed_for_epsilon(epsilon: float) -> float:
    return _needed_rows(replace(_TEST, epsilon=epsilon, delta=1e-6), 0.5)


def _at_distance(distance: float) -> Setting:
    data = around(*zeros(64 + int(distance)))
    return Setting(replace(_TEST, delta=1e-6), data, _is_withheld, at_most=0.5)


def _accuracy() -> Iterator[Draft]:
    for distance in (12, 7):
        yield accuracy(
            _TEST,
            around(*zeros(64 + distance)),
            _is_withheld,
            at_most=0.5,
            # The noise is on a grid and the threshold is rounded up to it: less than two steps together.
            beta=0.5 * math.exp(-math.log(_TEST.delta) - _TEST.epsilon * (distance - 2 * _TEST.grid)),
            exact=1.0 - _TEST.release_probability(distance),
            case=f"withheld_at_distance_{distance}",
            derived=True,
        )
    yield accuracy(
        _TEST,
        around(*zeros(64)),
        _is_released,
        at_most=0.5,
        beta=_TEST.delta / 2,
        exact=_TEST.release_probability(0),
        case="released_at_distance_0",
        derived=True,
    )
    # The index as it is, at a small delta.
    careful = replace(_TEST, epsilon=0.1, delta=1e-6, bound=1 / 256, step=2.0**-12)
    eta, beta = 0.005, 0.045
    truth = float(careful.query(index()))
    yield accuracy(
        careful,
        index(),
        _ErrorOfReleases(truth),
        # The error of a release beyond its last quantile, and half a step for the rounding of the answer.
        at_most=careful.bound / careful.epsilon * math.log(1 / beta) + 1.5 * careful.step,
        beta=eta + beta,
        case="index",
        note="released with probability 0.995 as the distance is "
        f"{careful.distance(index()):.0f}, {_sufficient_distance(careful, eta):.0f} are enough; then Laplace noise of "
        "scale bound/eps",
        derived=True,
    )
    yield scaling(
        _needed_for_delta,
        parameter="ln(1/delta)",
        at=(4.0, 8.0, 16.0, 32.0),
        exponent=1.0,
        others=(0.5, 2.0),
        measure=Exactly("distance at which half of the runs release"),
        curve=lambda log: _sufficient_distance(replace(_TEST, epsilon=0.01, delta=math.exp(-log)), 0.5) + 1,
        case="distance_and_delta",
        derived=True,
    )
    yield scaling(
        _needed_for_epsilon,
        parameter="eps",
        at=(0.005, 0.01, 0.02, 0.04, 0.08),
        exponent=-1.0,
        others=(-0.5, -2.0),
        measure=Exactly("distance at which half of the runs release"),
        curve=lambda epsilon: _sufficient_distance(replace(_TEST, epsilon=epsilon, delta=1e-6), 0.5) + 1,
        case="distance_and_epsilon",
        derived=True,
    )
    eta = 0.05
    yield smallest(
        _at_distance,
        parameter="distance",
        claimed=math.ceil(_sufficient_distance(replace(_TEST, delta=1e-6), eta)),
        beta=eta,
        low=16,
        case="sufficient_distance",
        derived=True,
        note="eps = 0.5, delta = 1e-6; released with probability 0.95 from (ln(1/delta) + ln 10)/eps rows on",
    )


@entry(
    "003/propose_test_release",
    title="Propose a bound, test the distance, release",
    source=Source("003", "section 2.2.2, Claim 2.2.1"),
    errata=[
        Erratum(
            "J13",
            "proof",
            "Case 1 of the proof: if LS(x) is above the bound, then both M(x) and M(x') release "
            "with probability at most delta",
            fails="a neighbour x' at distance 1 releases with probability e^epsilon delta/2, more than delta for "
            "epsilon > ln 2",
            correction="such a neighbour's answer is within the bound of that of x, so Case 2 covers it; where answers "
            "are further apart both distances are 0. The claim holds, with delta/2",
        )
    ],
)
def propose_test_release() -> Iterator[Draft]:
    """The claim, (2 eps, delta), and what is true, (2 eps, delta/2); the step of the proof that fails; and mutants.

    First pair: answers far apart, both at distance 0, so that delta(2 eps) = delta/2. Second pair: the distance and the
    answer both move, so that {released, on the far side} has a loss of 2 eps.
    """
    far, both = _far_apart(), _both_move(4)
    claimed = _claim(_TEST)
    half = ApproxDP(claimed.epsilon, claimed.delta / 2)
    yield exact(_TEST, claimed, [far, both, _distances(0)], case="reference", relation=REPLACE)
    yield privacy(_TEST, claimed, [both, far, _distances(0)], case="reference", relation=REPLACE)
    yield exact(_TEST, half, [far, both, _distances(0)], case="half_of_delta", relation=REPLACE)
    yield exact(_TEST, DeltaDP(half.delta, half.epsilon), [far, both], case="half_of_delta", relation=REPLACE)
    yield conformity(_TEST, both, case="reference")
    # The index between 0.25 and 0.3125, where its median lies: 37 rows or so from a local sensitivity above the bound.
    narrow = replace(_TEST, query=ClippedMedian(low=0.25, high=0.3125), bound=1 / 256, step=2.0**-12)
    whole = whole_range()
    yield from reference(narrow, claimed, whole, case="index", relation=REPLACE)

    # The printed step: distances 1 and 0 at eps = 2, where e^2 / 2 = 3.7.
    large = replace(_TEST, epsilon=2.0)
    near = _distances(0)
    yield proof_step(
        "J13",
        accuracy(
            large,
            near.x,
            _is_released,
            at_most=0.5,
            beta=large.delta,
            exact=large.release_probability(1),
            case="case_1_of_the_proof",
            expected="deviation",
            note="the neighbour's local sensitivity is above the bound; a release counts as a failure",
        ),
    )
    for draft in reference(large, _claim(large), near, case="case_1_of_the_proof", relation=REPLACE, follows=False):
        yield statement_holds("J13", draft)

    yield from _mutants()
    yield from _accuracy()


def _mutants() -> Iterator[Draft]:
    claimed, far = _claim(_TEST), _far_apart()
    # The threshold is 5.99, between both distances.
    yield broken(
        MUTANTS["no_noise_on_distance"],
        _TEST,
        _distances(5),
        guarantee=claimed,
        relation=REPLACE,
    )
    yield broken(MUTANTS["threshold_zero"], _TEST, far, guarantee=claimed, relation=REPLACE)
    # At three times epsilon a release is within a few lattice steps of the median.
    sharper = replace(_TEST, epsilon=1.5)
    yield broken(MUTANTS["log_base_10"], sharper, far, guarantee=_claim(sharper), relation=REPLACE)
    # Its threshold is 8.64, so releases are neither certain nor rare here.
    yield from broken_and_deviating(MUTANTS["log_base_2"], _TEST, _both_move(8), guarantee=claimed, relation=REPLACE)
    yield broken(MUTANTS["yes_no_distance"], _TEST, _distances(0), guarantee=claimed, relation=REPLACE)
    # A delta so small that 2 eps at it and at 0 agree to ten digits; the threshold is 27.6.
    strict = replace(_TEST, epsilon=1.0, delta=1e-12)
    yield broken(
        MUTANTS["eps_claimed"],
        strict,
        _both_move(26),
        guarantee=ApproxDP(strict.epsilon, strict.delta),
        relation=REPLACE,
    )
    yield from broken_and_deviating(MUTANTS["draw_reused"], _TEST, _distances(4), guarantee=claimed, relation=REPLACE)
    edge = (0.0,) * 64 + (_BOUND / 2,) * 40 + (1.0,) * 23
    within = (0.0,) * 65 + (_BOUND / 2,) * 39 + (1.0,) * 23
    yield broken(
        MUTANTS["release_at_local_sensitivity"],
        _TEST,
        moved("local sensitivity of half the bound against 0, both far from any above it", edge, within),
        guarantee=claimed,
        relation=REPLACE,
    )
    # The index is at most 0.6, below the bound. One value of 1 makes 10,094 rows the observed distance; so many are
    # within reach of the threshold only for a small eps, of 13,816.
    wide = ProposeTestRelease(ClippedMedian(), 0.625, 0.001, 1e-6)
    yield broken(
        MUTANTS["nearest_observed_distance"],
        wide,
        whole_range(),
        guarantee=_claim(wide),
        relation=REPLACE,
    )
