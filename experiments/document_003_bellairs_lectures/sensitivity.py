"""Document 003, sections 2.2 and 2.2.1: noise for the sensitivity of the median at hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from auditor.audits.accuracy import Absolute, Setting
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Erratum,
    Source,
    accuracy,
    as_corrected,
    as_printed,
    broken,
    component,
    conformity,
    deviating,
    entry,
    exact,
    inequality,
    privacy,
    reference,
    scaling,
)
from auditor.datasets import Pair
from auditor.privacy.exact import curve
from auditor.privacy.guarantees import ApproxDP, PureDP
from experiments._points import around, index, moved, whole_range, zeros
from experiments.common import REPLACE
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.mechanism import FloatArray, require, require_draws
from mechanisms.stability.local_sensitivity import MUTANTS as LOCAL
from mechanisms.stability.median import (
    ClippedMedian,
    DistanceFromPublicNumber,
    MeanOfMiddlePoints,
    MedianOfObservedRange,
    MedianOfShortWindow,
    enumerated,
    rank,
    replacements,
)
from mechanisms.stability.propose_test_release import ProposeTestRelease
from mechanisms.stability.smooth_sensitivity import MUTANTS as SMOOTH
from mechanisms.stability.smooth_sensitivity import SmoothCauchy, literature, printed, sharp

_MEDIAN = ClippedMedian()


def _by_distance(draft: Draft, point: float) -> Draft:
    """The same claim of the output's distance from a point that is the median on both sides, and has the same curve."""
    assert draft.mechanism is not None
    return replace(draft, mechanism=DistanceFromPublicNumber(draft.mechanism, point))


# ------------------------------------------------------------------- noise for the local sensitivity


@entry(
    "003/local_sensitivity_noise_broken",
    title="Noise scaled to the local sensitivity",
    source=Source("003", "section 2.2"),
)
def local_sensitivity() -> Iterator[Draft]:
    """What the document warns of, and the global sensitivity for comparison, on the same pairs.

    First pair: the median and both points beside it are 0, so that no row moves it, against a dataset where a row does:
    {output = 0} has probability 1 against 1/128 on the lattice (against 0 as the lattice is refined). Second pair:
    local sensitivities 0.1 and 0.2, so that the loss of {|output - median| > t} grows with t without bound.
    """
    everywhere = LatticeLaplace(_MEDIAN, 1.0, step=2.0**-6)
    atom = moved("local sensitivity 0 against 1", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    unequal = moved("local sensitivity 0.1 against 0.2", (0.4, 0.5, 0.6), (0.4, 0.5, 0.7))
    across = moved("the median goes from 0 to 1", zeros(64), zeros(63))
    yield exact(everywhere, PureDP(1.0), [atom, unequal, across], case="global_sensitivity", relation=REPLACE)
    yield privacy(everywhere, PureDP(1.0), [across, atom, unequal], case="global_sensitivity", relation=REPLACE)

    described = LOCAL["as_described"]
    yield _control(described.name, everywhere, atom)
    yield broken(described, everywhere, atom, relation=REPLACE)
    # The median is 0.5 on both sides: the event is that the output is further from it than t.
    stronger = LatticeLaplace(_MEDIAN, 1.5, step=2.0**-6)
    yield _control("as_described__both_positive", stronger, unequal)
    yield _by_distance(broken(described, stronger, unequal, asked="both_positive", relation=REPLACE), 0.5)


def _control(case: str, base: LatticeLaplace, pair: Pair) -> Draft:
    """What the document describes, refuted by its distribution."""
    built = LOCAL["as_described"].build(base)
    return exact(built, PureDP(base.epsilon), pair, case=case, expected="violation", relation=REPLACE)


# -------------------------------------------------------------------------- sensitivities of the median

#: Five points of [0, 1], and sizes of which all datasets on them are enumerated; 4 for the rule of the even median.
_GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
_SIZES = (3, 4, 5)


def _by_brute_force() -> list[Row]:
    return [
        (f"A_{k} of {points}", float(_MEDIAN.most_sensitive(np.array(points), k)), float(least))
        for rows in _SIZES
        for points, found in enumerated(_MEDIAN.of, _GRID, rows).items()
        for k, least in enumerate(found)
    ]


def _between_neighbours() -> list[Row]:
    rows: list[Row] = []
    for size in (3, 5):
        most = {
            points: [float(_MEDIAN.most_sensitive(np.array(points), k)) for k in range(size + 2)]
            for points in enumerated(_MEDIAN.of, _GRID, size)
        }
        rows += [
            (f"A_{k} of {x} and A_{k + 1} of {y}", most[x][k], most[y][k + 1])
            for x in most
            for y in replacements(x, _GRID)
            for k in range(size + 1)
        ]
    return rows


def _global_sensitivity() -> list[Row]:
    small = [np.repeat([0.0, 1.0], [count, 5 - count]) for count in (2, 3)]
    large = [around(*zeros(63)), around(*zeros(64))]
    return [
        (f"{len(x):,} points", abs(float(_MEDIAN(x)) - float(_MEDIAN(y))), _MEDIAN.sensitivity)
        for x, y in (small, large)
    ]


def _without_a_rule() -> list[Row]:
    other = MeanOfMiddlePoints()
    return [
        (f"A_{k} of {points}", float(most), float(other.most_sensitive(np.array(points), k)))
        for points, found in enumerated(other.of, _GRID, 4).items()
        for k, most in enumerate(found)
    ]


@entry(
    "003/median_sensitivities",
    title="Global, local and distance-k sensitivity of the median",
    source=Source("003", "sections 2.2 and 2.2.1"),
)
def median_sensitivities() -> Iterator[Draft]:
    """The formula for A_k by brute force, and mechanisms that are calibrated to it, rightly and wrongly.

    The document says that the smooth sensitivity of the median can be computed efficiently, and gives no formula; this
    one is of Nissim, Raskhodnikova and Smith (2007). A window that is too short makes distances too large by one: the
    delta in effect is e^eps delta/2, more than delta for eps > ln 2. The observed range for [0, 1] makes scales at
    neighbours differ by more than e^b.
    """
    yield inequality(
        _by_brute_force,
        statement="A_k is the largest local sensitivity within k replaced rows, on every dataset of 3, 4 and 5 points",
        relation="==",
        level="L2",
        case="formula",
    )
    yield inequality(
        _between_neighbours,
        statement="A_k(x) is at most A_(k+1)(x') for all neighbours x and x' of 3 and 5 points",
        level="L2",
        case="neighbours",
    )
    yield inequality(
        _global_sensitivity,
        statement="one row takes the median from 0 to 1, the global sensitivity",
        relation="==",
        level="L2",
        case="global",
    )

    test = ProposeTestRelease(_MEDIAN, 1 / 64, 2.0, 0.05)
    claim = ApproxDP(2 * test.epsilon, test.delta)
    across = moved("the median goes from 0 to 1", zeros(64), zeros(63))
    further = moved("0 or 1 rows from a local sensitivity above the bound", zeros(64), zeros(65))
    yield component(test, claim, [further, across], case="distance", relation=REPLACE)
    short = replace(test, query=MedianOfShortWindow())
    yield _broken_component("window_k", short, claim, across, "windows of k gaps: distances are too large by one")

    smooth = sharp(_MEDIAN, 0.5)
    three = Pair(np.array([0.5, 0.5, 0.6]), np.array([0.5, 0.5, 1.0]), "one of three points goes from 0.6 to 1")
    yield component(smooth, PureDP(0.5), three, case="smooth", relation=REPLACE)
    observed = replace(smooth, query=MedianOfObservedRange())
    note = "the data's smallest and largest point for 0 and 1: scales differ by a factor of 5"
    yield _broken_component("clamps_missing", observed, PureDP(0.5), three, note)

    yield inequality(
        _without_a_rule,
        statement="sensitivities of the lower median bound those of the mean of both middle points, for 4 points",
        level="L2",
        case="even_n_without_rule",
        expected="deviation",
        is_mutant=True,
        note="one rule for the answer and another for its sensitivity",
    )


def _broken_component(
    case: str, mechanism: ProposeTestRelease | SmoothCauchy, claim: ApproxDP | PureDP, pair: Pair, note: str
) -> Draft:
    draft = component(mechanism, claim, pair, case=case, expected="violation", relation=REPLACE, note=note)
    return replace(draft, is_mutant=True)


# ------------------------------------------------------------------------------- smooth sensitivity

#: Points at which the loss of the printed parameters is 0.625 at eps = 0.5: smooth sensitivities that differ by e^0.5,
#: and medians that differ too. The catalogue's example, in the midst of the RAND data.
_PRINTED = ((0.0, 0.05, 0.8), (0.5, 0.05, 0.8))
#: Nearly the worst for eps = 0.5 and worst for eps = 1 at the sharp factor: 0.4995, and 1 up to rounding.
_WORST = {0.5: ((0.0, 0.1, 1.0), (0.8, 0.1, 1.0)), 1.0: ((0.0, 0.0, 0.7), (0.0, 0.9, 0.7))}
#: Lattice of outputs where the scale of the noise is some 1e-4.
_FINE = 2.0**-30


@cache
def _factors() -> list[Row]:
    pair = moved("as printed", *_PRINTED)
    rows: list[Row] = []
    for c in (0.5, 1.0, 2.0, 5.0, 20.0, 100.0, 1000.0):
        mechanism = SmoothCauchy(_MEDIAN, 0.5, 0.5, c)
        rows.append((f"c = {c:g}", 0.5, curve(mechanism.law(pair.x), mechanism.law(pair.y)).epsilon(0.0)))
    return rows


@dataclass(frozen=True)
class OnUniformPoints:
    """The error of a mechanism on fresh independent uniform points, an odd number of them.

    Parameters
    ----------
    mechanism : SmoothCauchy
        Its scale and noise.
    rows : int
        Number of points.

    Notes
    -----
    Only the points near the median are drawn: sums of independent exponential numbers, divided by the sum of all rows
    + 1 of them, are the uniform points in order, and the sums of those that do not matter are Gamma numbers. Terms of
    the smooth sensitivity that would need more points weigh less than what is found, which is checked.
    """

    mechanism: SmoothCauchy
    rows: int

    def __post_init__(self) -> None:
        require(self.rows % 2 == 1, "an odd number of rows", self.rows)

    @property
    def half(self) -> int:
        """Points that are drawn on either side of the median: e^(-b half) is at most e^-6 / (n b), or all."""
        rate = self.mechanism.smoothing
        return min(math.ceil((math.log1p(self.rows * rate) + 6.0) / rate), (self.rows - 1) // 2)

    def smooth(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw the smooth sensitivity of `n` datasets, shape (n,)."""
        half, rate = self.half, self.mechanism.smoothing
        before = rank(self.rows) - half
        sums = np.concatenate([rng.gamma(before, size=(n, 1)), rng.exponential(size=(n, 2 * half))], axis=1)
        np.cumsum(sums, axis=1, out=sums)
        total = sums[:, -1] + rng.gamma(self.rows + 1 - before - 2 * half, size=n)
        found = self.mechanism.query.smoothed(sums / total[:, None], rate)
        reached = 2 * half + 1 == self.rows or math.exp(-rate * half) <= found.min()
        require(bool(reached), "more points around the median", half)
        return found

    def __call__(self, data: object, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` datasets, and an error on each; float64 of shape (n,)."""
        del data
        require_draws(n)
        block = max(1, _NUMBERS // (2 * self.half + 1))
        sizes = [min(block, n - start) for start in range(0, n, block)]
        return np.concatenate(
            [self.mechanism.factor * self.smooth(m, rng) * np.abs(self.mechanism.noise(m, rng)) for m in sizes]
        )


#: Numbers that are drawn at once: 8 MB, arbitrary.
_NUMBERS = 1 << 20


def _identity(outputs: FloatArray) -> FloatArray:
    return outputs


def _error_of_rows(rows: float) -> Setting:
    return Setting(OnUniformPoints(sharp(_MEDIAN, 0.5), int(rows)), (), _identity)


def _error_of_epsilon(epsilon: float) -> Setting:
    return Setting(OnUniformPoints(sharp(_MEDIAN, epsilon), 8001), (), _identity)


@entry(
    "003/smooth_sensitivity_cauchy",
    title="Cauchy noise scaled to the smooth sensitivity",
    source=Source("003", "section 2.2.1"),
    errata=[
        Erratum(
            "J3",
            "false",
            "With the smooth sensitivity for the parameter epsilon, Cauchy noise of scale "
            "O(SS(x)/epsilon) gives epsilon-differential privacy",
            fails="with the same epsilon it is false at the level of constants: at neighbours whose smooth "
            "sensitivities differ by e^epsilon and whose medians differ, the loss is above epsilon for every constant "
            "(0.625 for 0.5 at the scale SS/epsilon)",
            correction="it is O(epsilon)-differentially private; for epsilon itself the smoothing parameter has to be "
            "smaller, for instance epsilon/6 with the factor 6/epsilon, or epsilon/2 with about 1/epsilon",
        )
    ],
)
def smooth_sensitivity() -> Iterator[Draft]:
    """As printed, with smaller smoothing parameters, and with wrong noise or wrong scales.

    The document's O(.) has no constant; as printed means a factor 1/eps, and other factors are tried.
    """
    pair = moved("smooth sensitivities that differ by e^0.5", *_PRINTED)
    as_stated = printed(_MEDIAN, 0.5)
    yield as_printed(
        "J3", exact(as_stated, PureDP(0.5), pair, case="as_printed", expected="violation", relation=REPLACE)
    )
    yield as_printed(
        "J3", privacy(as_stated, PureDP(0.5), pair, case="as_printed", expected="violation", relation=REPLACE)
    )
    yield inequality(
        _factors,
        statement="with the smoothing parameter 0.5 the loss on this pair is above 0.5 for every factor tried",
        relation="<",
        case="every_factor",
    )
    for epsilon in (0.5, 1.0):
        worst = moved("nearly the worst pair on a grid", *_WORST[epsilon])
        for name, mechanism, fine in (
            ("sharp", sharp(_MEDIAN, epsilon), sharp(_MEDIAN, epsilon, _FINE)),
            ("literature", literature(_MEDIAN, epsilon), literature(_MEDIAN, epsilon, _FINE)),
        ):
            case = f"{name}_{10 * epsilon:02.0f}"
            pairs = [worst, pair]
            yield as_corrected("J3", exact(mechanism, PureDP(epsilon), pairs, case=case, relation=REPLACE))
            yield as_corrected("J3", privacy(mechanism, PureDP(epsilon), pairs, case=case, relation=REPLACE))
            yield conformity(mechanism, worst, case=case, rounding=mechanism.step)
            if epsilon == 1.0:
                whole = whole_range()
                case, law = f"{name}_of_the_index", {"rounding": fine.step}
                yield from reference(fine, PureDP(epsilon), whole, case=case, relation=REPLACE, follows=law)

    base = sharp(_MEDIAN, 0.5)
    for name in ("laplace_noise", "gaussian_noise"):
        yield broken(SMOOTH[name], base, pair, relation=REPLACE)
        yield deviating(SMOOTH[name], base, pair, rounding=base.step)
    local = moved("local sensitivity 0.1 against 0.5", (0.4, 0.5, 0.6), (0.0, 0.5, 0.6))
    yield broken(SMOOTH["local_for_smooth"], base, local, relation=REPLACE)
    two_away = moved(
        "a gap comes within one row of the median", (0.46, 0.48, 0.5, 0.52, 0.54), (0.46, 0.48, 0.5, 0.52, 0.65)
    )
    few = broken(SMOOTH["maximum_over_few_k"], base, two_away, relation=REPLACE)
    yield _by_distance(few, 0.5)

    yield from _accuracy()


def _accuracy() -> Iterator[Draft]:
    """Quantiles: the noise has no mean."""
    mechanism = sharp(_MEDIAN, 0.5, _FINE)
    scale, median = mechanism.scale(index()), float(_MEDIAN(index()))
    for t in (1.0, 4.0, 20.0):
        beta = 1.0 - 2.0 / math.pi * math.atan(t)
        # Rounding of the output adds at most half a step.
        limit = t * scale + 0.5 * _FINE
        case = f"{t:g}_scales"
        yield accuracy(mechanism, index(), Absolute(median), at_most=limit, beta=beta, exact=beta, case=case)
    # e^(b n) = e^(eps n / 12) is a finite float64 on all the data for eps = 0.1.
    small = literature(_MEDIAN, 0.1, _FINE)
    growing = SMOOTH["growing_weight"]
    yield accuracy(
        growing.build(small),
        index(),
        Absolute(median),
        at_most=small.scale(index()),
        beta=0.5,
        case=growing.name,
        expected="deviation",
        is_mutant=True,
        note=growing.note,
    )
    yield scaling(
        _error_of_rows,
        parameter="n",
        at=(401, 801, 1601, 3201, 6401, 12_801),
        exponent=-1.0,
        others=(-0.5, -2.0),
        case="error_and_rows",
        draws={"standard": 60_000},
        note="independent uniform points: the smooth sensitivity is 0.5 to 2.4 times 1/(n b)",
    )
    yield scaling(
        _error_of_epsilon,
        parameter="eps",
        at=(0.02, 0.04, 0.08, 0.16),
        exponent=-2.0,
        others=(-1.0, -3.0),
        # The largest of some 1/b random windows is wider than the mean one by a share of the order of sqrt(b): by 14 %
        # to 46 % over this range, which is 0.09 of an exponent, and less for smaller eps.
        within=0.12,
        case="error_and_epsilon",
        draws={"smoke": 2_000, "standard": 12_000, "full": 120_000},
        note="b = eps/2, independent uniform points; about 0.4/(n b eps), and slowly more as b grows",
    )
