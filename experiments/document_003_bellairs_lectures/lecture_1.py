"""Document 003, lecture 1: definitions and the basic mechanisms."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from auditor.audits.accuracy import Absolute, Setting, Squared
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken,
    broken_and_deviating,
    conformity,
    deviating,
    entry,
    exact,
    expectation,
    inequality,
    privacy,
    reference,
    scaling,
)
from auditor.datasets import Pair
from auditor.privacy.exact import LaplaceCurve, curve
from auditor.privacy.guarantees import ApproxDP, DeltaDP, GaussianDP, PureDP
from experiments.common import ADD_REMOVE, REPLACE, added, person, rand, replaced, visits
from mechanisms.additive_noise.histogram import MUTANTS as SIZES
from mechanisms.additive_noise.histogram import SumAndSize, gaussian_histogram, laplace_histogram
from mechanisms.additive_noise.laplace import MUTANTS, LatticeLaplace, default_step
from mechanisms.base.queries import ClippedMean, ClippedSum, Count, Histogram, SeveralCounts
from mechanisms.local_model.randomized_response import MUTANTS as RESPONSES
from mechanisms.local_model.randomized_response import EstimateError, OtherRows, RandomizedResponse, undivided_mean

_WEAK = Count("hlthp", equals=1.0)


def _rounded_up(level: float) -> float:
    return math.ceil(level * 1e6) / 1e6


def _health_changes() -> Pair:
    return replaced("a person in poor health is replaced by one who is not", person(hlthp=1), person(hlthp=0))


@entry("003/laplace_mechanism", title="Laplace mechanism", source=Source("003", "Example 1.1.3, Proposition 1.1.4"))
def laplace() -> Iterator[Draft]:
    """Counts and means; the query moves by its sensitivity, event {output < smaller value}."""
    count = LatticeLaplace(_WEAK, 1.0)
    pair = _health_changes()
    yield from reference(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    # The same mechanism under other notions: its own delta at half its epsilon, and the smallest mu of its curve.
    (known,) = exact(count, PureDP(1.0), pair).curves
    half, gaussian = ApproxDP(0.5, _rounded_up(known.delta(0.5))), GaussianDP(_rounded_up(known.mu()))
    # With delta above the probability of 0.01 that is asked about, such an event has to show more.
    yield privacy(count, half, pair, case="count", relation=REPLACE, draws={"smoke": 700_000})
    yield from reference(count, DeltaDP(half.delta, half.epsilon), pair, case="count", relation=REPLACE, follows=False)
    yield privacy(count, gaussian, pair, case="count", relation=REPLACE)

    mean = LatticeLaplace(ClippedMean(len(rand()), "mdvis", 0.0, 20.0), 1.0, step=2.0**-20)
    pairs = [visits(0, 20), visits(0, 77), visits(3, 4), visits(0, 20, index=20_189), visits(77, 5, index=10_000)]
    yield exact(mean, PureDP(1.0), pairs, case="mean_of_visits", relation=REPLACE)
    yield privacy(mean, PureDP(1.0), pairs, case="mean_of_visits", relation=REPLACE, note="a search over five pairs")
    yield conformity(mean, pairs[0], case="mean_of_visits")

    yield broken(MUTANTS["scale_times_epsilon"], LatticeLaplace(_WEAK, 0.5), pair, case="scale_inverted")
    yield from broken_and_deviating(MUTANTS["std_as_scale"], count, pair)
    yield broken(MUTANTS["one_sided_exponential"], count, pair)
    # The smaller the scale, the more outputs of either dataset are impossible on the other.
    yield broken(MUTANTS["bounded_support_noise"], LatticeLaplace(_WEAK, 4.0), pair, case="truncated_noise")
    yield broken(MUTANTS["noise_seeded_by_data"], count, pair)
    signed = LatticeLaplace(ClippedSum("lncoins", -1.0, 1.0), 1.0)
    whole = replaced("a person's value goes from -1 to 1", person(lncoins=-1), person(lncoins=1))
    yield broken(
        MUTANTS["add_remove_sensitivity"], signed, whole, case="add_remove_sensitivity_under_replace", relation=REPLACE
    )
    # Nobody has 36 visits: 0 against 1, where doubles are finest and the leak is largest.
    nobody = LatticeLaplace(Count("mdvis", equals=36.0), 1.0)
    yield broken(MUTANTS["float_inverse_cdf"], nobody, visits(0, 36), case="float_lattice", relation=REPLACE)
    two = LatticeLaplace(SeveralCounts((_WEAK, Count("hlthf", equals=1.0))), 1.0)
    yield broken(MUTANTS["same_noise_for_two_queries"], two, pair, relation=REPLACE)
    yield conformity(two, pair, case="two_counts")
    yield deviating(MUTANTS["same_noise_for_two_queries"], two, pair)
    yield from _laplace_accuracy(count, mean)


def _laplace_accuracy(count: LatticeLaplace, mean: LatticeLaplace) -> Iterator[Draft]:
    """Tail, expectation and standard deviation of the noise, all three attained; exponents of the median error.

    Errors on the lattice have slightly lighter tails than those of the continuous distribution, at the lattice points:
    their chance is ``2 a^-k / (a + 1)`` for more than k steps, where ``a^-k`` is claimed.
    """
    for mechanism, case, rounding in ((count, "count", 0.0), (mean, "mean_of_visits", mean.step)):
        truth = float(mechanism.query(rand()))
        # The sensitivity in whole steps: noise on the lattice is calibrated to that. One step more for an answer that
        # is rounded to it.
        scale = mechanism.steps(1) * mechanism.step / mechanism.epsilon
        yield accuracy(
            mechanism,
            rand(),
            Absolute(truth),
            at_most=3.0 * scale + rounding,
            beta=math.exp(-3.0),
            case=case,
            derived=True,
            note="P[|error| > b t] = e^-t, at t = 3; the document has e^-Omega(t)",
        )
        expected = scale + rounding
        yield expectation(
            mechanism, rand(), Absolute(truth), at_most=expected, case=case, derived=True, note="E|Lap(b)| = b"
        )
        yield expectation(
            mechanism,
            rand(),
            Squared(truth),
            at_most=2.0 * expected**2,
            case=f"{case}_squared",
            derived=True,
            note="standard deviation b sqrt 2",
        )

    def of_rows(n: float) -> Setting:
        query, data = ClippedMean(int(n), "mdvis", 0.0, 20.0), rand().head(int(n))
        step = default_step(query.sensitivity)
        return Setting(LatticeLaplace(query, 1.0, step), data, Absolute(float(query(data))))

    def of_epsilon(epsilon: float) -> Setting:
        return Setting(LatticeLaplace(_WEAK, epsilon), rand(), Absolute(float(_WEAK(rand()))))

    # The median of |Lap(b)| is b ln 2. The bound of a rounded mean has one part in 512 more: a step for the noise, and
    # one for the answer.
    yield scaling(
        of_rows,
        parameter="n",
        at=(64, 256, 1024, 4096, 16_384),
        exponent=-1.0,
        others=(-0.5, -2.0),
        curve=lambda n: math.log(2.0) * 20.0 / n * (1.0 + 1 / 256),
        case="error_and_rows",
    )
    yield scaling(
        of_epsilon,
        parameter="eps",
        at=(1 / 16, 1 / 4, 1, 4, 16),
        exponent=-1.0,
        others=(-0.5, -2.0),
        curve=lambda epsilon: math.log(2.0) / epsilon + 2.0**-10,
        case="error_and_epsilon",
    )


@entry(
    "003/discrete_laplace_lattice", title="Laplace noise on a lattice", source=Source("003", "Example 1.1.3, remark")
)
def discrete_laplace() -> Iterator[Draft]:
    """Noise on the multiples of 1 for a count: the curve of randomised response."""
    count = LatticeLaplace(_WEAK, 1.0, step=1.0)
    pair = _health_changes()
    yield from reference(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    yield inequality(
        _deltas_of_responses,
        statement="delta at E is (e^eps - e^E) / (1 + e^eps), that of randomised response of level eps",
        relation="==",
        case="curve_of_randomised_response",
        derived=True,
        note="no mechanism of the level has a larger one",
    )
    yield inequality(
        _deltas_of_continuous_noise,
        statement="delta at E of continuous Laplace noise of level eps is smaller, for 0 <= E < eps",
        relation="<",
        case="worse_than_continuous_noise",
        derived=True,
    )
    fraction = LatticeLaplace(ClippedSum("lncoins", 0.0, 1.0), 1.0)
    part = replaced("a person's value goes from 0.25 to 0.75", person(lncoins=0.25), person(lncoins=0.75))
    yield from broken_and_deviating(
        MUTANTS["noise_rounded_before_adding"], fraction, part, case="query_off_lattice", relation=REPLACE
    )
    # 302 persons in poor health, one of them replaced: 301 rounds to 300 and 302 to 304, in multiples of 4.
    index = int(np.flatnonzero(rand()["hlthp"].to_numpy() == 1)[0])
    straddles = replaced("one of 302 persons in poor health is replaced", person(hlthp=1), person(hlthp=0), index)
    yield broken(MUTANTS["coarse_grid_first"], count, straddles, relation=REPLACE)
    yield from broken_and_deviating(MUTANTS["half_lattice_step"], count, pair)

    share = _share(16_384, 1.0)
    yield from reference(share, PureDP(1.0), _share_pair(), case="share", relation=REPLACE, follows=False)
    for mechanism, data, n, case in ((count, rand(), 1, "count"), (share, rand().head(16_384), 16_384, "share")):
        a = mechanism.base(1)
        variance = 2.0 * a / ((a - 1.0) * n) ** 2
        yield expectation(
            mechanism,
            data,
            Squared(float(mechanism.query(data))),
            at_most=variance,
            exact=variance,
            case=case,
            derived=True,
            note="standard deviation sqrt(2 a) / ((a - 1) n), a = e^eps",
        )

    def of_rows(n: float) -> Setting:
        mechanism, data = _share(int(n), 0.1), rand().head(int(n))
        return Setting(mechanism, data, Absolute(float(mechanism.query(data))))

    def of_epsilon(epsilon: float) -> Setting:
        mechanism = LatticeLaplace(_WEAK, epsilon, step=1.0)
        return Setting(mechanism, rand(), Absolute(float(_WEAK(rand()))))

    # Medians, which are proportional to the standard deviation in n; in eps where the noise is wide.
    yield scaling(
        of_rows,
        parameter="n",
        at=(64, 256, 1024, 4096, 16_384),
        exponent=-1.0,
        others=(-0.5, -2.0),
        case="error_and_rows",
        derived=True,
    )
    yield scaling(
        of_epsilon,
        parameter="eps",
        at=tuple(2.0**-k for k in range(9, 4, -1)),
        exponent=-1.0,
        others=(-0.5, -2.0),
        case="error_and_epsilon",
        derived=True,
        note="for eps far below 1",
    )


def _lattice_deltas() -> list[tuple[str, float, float, float]]:
    """Label, eps, E and delta at E of a count with noise on the integers, on the data; E below eps."""
    pair, found = _health_changes(), []
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        count = LatticeLaplace(_WEAK, epsilon, step=1.0)
        losses = curve(count.law(pair.x), count.law(pair.y))
        for part in (0.0, 0.25, 0.5, 0.9):
            label = f"eps = {epsilon:g}, E = {part * epsilon:g}"
            found.append((label, epsilon, part * epsilon, losses.delta(part * epsilon)))
    return found


def _deltas_of_responses() -> list[Row]:
    return [
        (label, delta, (math.exp(eps) - math.exp(e)) / (1.0 + math.exp(eps)))
        for label, eps, e, delta in _lattice_deltas()
    ]


def _deltas_of_continuous_noise() -> list[Row]:
    return [(label, LaplaceCurve(eps).delta(e), delta) for label, eps, e, delta in _lattice_deltas()]


def _share(n: int, epsilon: float) -> LatticeLaplace:
    """Share of n persons in poor health, with noise on the multiples of 1/n; n is a power of two: these are exact."""
    return LatticeLaplace(ClippedMean(n, "hlthp", 0.0, 1.0, resolution=1.0), epsilon, step=1.0 / n)


def _share_pair() -> Pair:
    whole = _health_changes()
    return Pair(whole.x.head(16_384), whole.y.head(16_384), whole.name)


@entry(
    "003/neighbour_convention", title="Neighbours: replace against add or remove", source=Source("003", "footnote 1")
)
def neighbours() -> Iterator[Draft]:
    """A histogram calibrated for add/remove is exactly eps there, and exactly 2 eps under replace."""
    replacing = Histogram("mdvis", edges=(0, 1, 3, 6, 11, 78))
    adding = replace(replacing, relation="add_remove_one")
    one_more = added("one more person, with 2 visits", person(mdvis=2))
    moved = replaced("a person goes from 0 visits to 2", person(mdvis=0), person(mdvis=2))
    mechanism, correct = laplace_histogram(adding, 1.0), laplace_histogram(replacing, 1.0)
    yield from reference(mechanism, PureDP(1.0), one_more, case="histogram", relation=ADD_REMOVE, follows=False)
    yield from reference(correct, PureDP(1.0), moved, case="histogram_under_replace", relation=REPLACE)
    yield broken(
        MUTANTS["add_remove_sensitivity"], correct, moved, case="calibrated_for_the_other_relation", relation=REPLACE
    )

    # The same with Gaussian noise: a factor of sqrt 2, because the l2 norm of the move counts.
    for cells, pair, case in (
        (adding, one_more, "gaussian_histogram"),
        (replacing, moved, "gaussian_histogram_under_replace"),
    ):
        noisy, relation = gaussian_histogram(cells, 1.0, 1e-5), REPLACE if cells is replacing else ADD_REMOVE
        yield from reference(noisy, ApproxDP(1.0, 1e-5), pair, case=case, relation=relation, follows=False)
    for_adding = gaussian_histogram(adding, 1.0, 1e-5)
    claim, case = GaussianDP(for_adding.plain(5).mu(5)), "gaussian_histogram_for_the_other_relation"
    note = "calibrated for add/remove, documented for replace: sqrt 2 times the claimed mu"
    yield exact(for_adding, claim, moved, case=case, relation=REPLACE, expected="violation", note=note)
    yield privacy(for_adding, claim, moved, case=case, relation=REPLACE, expected="violation", note=note)

    # A mean needs the number of rows, which is not public under add/remove.
    both = SumAndSize(ClippedSum("mdvis", 0.0, 20.0, resolution=1.0, relation="add_remove_one"), 1.0)
    frequent = added("one more person, with 20 visits", person(mdvis=20))
    yield from reference(both, PureDP(1.0), frequent, case="sum_and_size", relation=ADD_REMOVE)
    yield broken(SIZES["public_n_under_add_remove"], both, frequent, relation=ADD_REMOVE)
    yield inequality(
        _moves_of_a_mean,
        statement="one row more moves the mean of n values in [0, 1] by at most 1/(n + 1)",
        case="mean_under_add_remove",
        note="all values on a grid of 5, up to 4 rows; the size itself is published with it",
    )
    yield inequality(
        lambda: [
            (f"values {values} become {moved}", float(_distance(values, moved)), 2.0 * hamming)
            for values, moved, hamming in _replacements()
        ],
        statement="datasets of one size that differ in k rows are 2k rows apart under add/remove, never more",
        case="factor_of_two",
        note="so a level under replace is at most twice that under add/remove; all triples of three values",
    )


def _moves_of_a_mean() -> list[tuple[str, float, float]]:
    """The largest move of the mean by one more row, for each size."""
    grid = np.linspace(0.0, 1.0, 5)
    rows = []
    for n in range(1, 5):
        moves = (
            abs(float(np.mean([*values, new]) - np.mean(values)))
            for values in itertools.product(grid, repeat=n)
            for new in grid
        )
        rows.append((f"{n} rows", max(moves), 1 / (n + 1)))
    return rows


def _replacements() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """All pairs of triples, and in how many places they differ."""
    triples = list(itertools.product(range(3), repeat=3))
    for values, moved in itertools.product(triples, repeat=2):
        yield values, moved, sum(a != b for a, b in zip(values, moved, strict=True))


def _distance(values: tuple[int, ...], moved: tuple[int, ...]) -> int:
    """Rows to remove and to add, the fewest: the symmetric difference of the multisets."""
    first, second = Counter(values), Counter(moved)
    return (first - second).total() + (second - first).total()


@entry("003/randomized_response", title="Randomised response", source=Source("003", "Example 1.1.2"))
def randomized_response() -> Iterator[Draft]:
    """The plan of four persons, each kept with probability (1 + eps) / 2; one bit changes.

    The estimate of the mean is from 1,024 persons: each draw publishes a bit of everybody.
    """
    mechanism = RandomizedResponse(0.5, column="idp")
    few = rand().head(4).astype(float)
    pair = Pair(few, few.assign(idp=[0.0, *few["idp"].iloc[1:]]), "the first of four persons changes plan")
    claim = PureDP(mechanism.epsilon)
    yield from reference(mechanism, claim, pair, case="four_persons", relation=REPLACE)
    yield from broken_and_deviating(RESPONSES["shared_coin"], mechanism, pair)
    small = RandomizedResponse(0.2, column="idp")
    yield broken(RESPONSES["keep_probability_eps"], small, pair)
    yield broken(RESPONSES["parameter_claimed_as_eps"], mechanism, pair, guarantee=PureDP(0.5))
    yield from broken_and_deviating(RESPONSES["memoised_seed"], mechanism, pair)
    # What is published of the others says nothing about the person who changes plan.
    others = OtherRows(mechanism, 0)
    # A level of 0.1, the usual one next to 0, takes millions of draws.
    yield from reference(others, PureDP(0.0), pair, case="other_rows", relation=REPLACE, detect=0.7, follows=False)
    yield from _response_accuracy()


def _plans(n: int, parameter: float, squared: bool = False) -> Setting:
    """The estimated share of the first n persons on plan 1."""
    data = rand().head(n)
    error = EstimateError(parameter, float(data["idp"].mean()), squared=squared)
    return Setting(RandomizedResponse(parameter, "idp"), data, error)


def _response_accuracy() -> Iterator[Draft]:
    """The estimator's variance, which is the same whatever the bits are, and Hoeffding's bound."""
    n, parameter, beta = 1024, 0.5, 0.05
    draws = {"smoke": 4_000, "standard": 20_000, "full": 200_000}
    setting = _plans(n, parameter)
    at_most = math.sqrt(math.log(2.0 / beta) / (2.0 * n)) / parameter
    yield accuracy(
        setting.mechanism,
        setting.data,
        setting.error,
        at_most=at_most,
        beta=beta,
        case="mean_of_plans",
        draws=draws,
        derived=True,
        note="error at most sqrt(ln(2 / beta) / (2 n)) / eps; the document has O(1 / (eps sqrt n))",
    )
    squared = _plans(n, parameter, squared=True)
    variance = (1.0 - parameter**2) / (4.0 * parameter**2 * n)
    yield expectation(
        squared.mechanism,
        squared.data,
        squared.error,
        at_most=variance,
        exact=variance,
        case="mean_of_plans",
        draws=draws,
        derived=True,
        note="standard deviation sqrt(1 - eps^2) / (2 eps sqrt n)",
    )
    yield accuracy(
        setting.mechanism,
        setting.data,
        EstimateError(parameter, float(setting.data["idp"].mean()), undivided_mean),
        at_most=at_most,
        beta=beta,
        case="debias_without_eps",
        draws=draws,
        expected="deviation",
        is_mutant=True,
        note="the estimate is not divided by eps",
    )
    # Medians: the error may be so large that limits of its mean tell no exponents apart. From 256 persons on the whole
    # counts by which a median moves are below a quarter of it.
    budget = {"smoke": 10_000, "standard": 20_000, "full": 200_000}
    yield scaling(
        lambda rows: _plans(int(rows), parameter),
        parameter="n",
        at=(256, 1024, 4096, 16_384),
        exponent=-0.5,
        others=(-1.0, -0.25),
        case="error_and_rows",
        draws=budget,
    )
    small = (1 / 32, 1 / 16, 1 / 8, 1 / 4)
    yield scaling(
        lambda eps: _plans(n, eps),
        parameter="eps",
        at=small,
        exponent=-1.0,
        others=(-0.5, -2.0),
        case="error_and_epsilon",
        draws=budget,
        note="for small eps",
    )
