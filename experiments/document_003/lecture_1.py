"""Document 003, lecture 1: definitions and the basic mechanisms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from auditor.declare import Draft, Source, conformity, entry, exact, privacy
from auditor.guarantees import ApproxDP, DeltaDP, GaussianDP, PureDP
from auditor.neighbors import Pair
from experiments._common import ADD_REMOVE, REPLACE, added, broken, deviating, person, rand, replaced, visits
from mechanisms.histogram import MUTANTS as SIZES
from mechanisms.histogram import SumAndSize, gaussian_histogram, laplace_histogram
from mechanisms.laplace import MUTANTS, LatticeLaplace
from mechanisms.queries import Count, Histogram, Mean, SeveralCounts, Sum
from mechanisms.randomized_response import MUTANTS as RESPONSES
from mechanisms.randomized_response import RandomizedResponse

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
    yield exact(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    yield privacy(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    yield conformity(count, pair, case="count")
    # The same mechanism under other notions: its own delta at half its epsilon, and the smallest mu of its curve.
    (curve,) = exact(count, PureDP(1.0), pair).curves
    half, gaussian = ApproxDP(0.5, _rounded_up(curve.delta(0.5))), GaussianDP(_rounded_up(curve.mu()))
    yield privacy(count, half, pair, case="count", relation=REPLACE)
    yield exact(count, DeltaDP(half.delta, half.epsilon), pair, case="count", relation=REPLACE)
    yield privacy(count, DeltaDP(half.delta, half.epsilon), pair, case="count", relation=REPLACE)
    yield privacy(count, gaussian, pair, case="count", relation=REPLACE)

    mean = LatticeLaplace(Mean(len(rand()), "mdvis", 0.0, 20.0), 1.0, step=2.0**-20)
    pairs = [visits(0, 20), visits(0, 77), visits(3, 4), visits(0, 20, index=20_189), visits(77, 5, index=10_000)]
    yield exact(mean, PureDP(1.0), pairs, case="mean_of_visits", relation=REPLACE)
    yield privacy(mean, PureDP(1.0), pairs, case="mean_of_visits", relation=REPLACE, note="a search over five pairs")
    yield conformity(mean, pairs[0], case="mean_of_visits")

    yield broken("scale_inverted", MUTANTS["scale_times_epsilon"], LatticeLaplace(_WEAK, 0.5), pair)
    yield broken("std_as_scale", MUTANTS["scale_as_deviation"], count, pair)
    yield deviating("std_as_scale", MUTANTS["scale_as_deviation"], count, pair)
    yield broken("one_sided_exponential", MUTANTS["one_sided"], count, pair)
    yield broken("truncated_noise", MUTANTS["truncated_noise"], count, pair)
    yield broken("noise_seeded_by_data", MUTANTS["seeded_by_data"], count, pair)
    signed = LatticeLaplace(Sum("lncoins", -1.0, 1.0), 1.0)
    whole = replaced("a person's value goes from -1 to 1", person(lncoins=-1), person(lncoins=1))
    yield broken(
        "add_remove_sensitivity_under_replace", MUTANTS["add_remove_sensitivity"], signed, whole, relation=REPLACE
    )
    # Nobody has 36 visits: 0 against 1, where doubles are finest and the leak is largest.
    nobody = LatticeLaplace(Count("mdvis", equals=36.0), 1.0)
    yield broken("float_lattice", MUTANTS["textbook_float"], nobody, visits(0, 36), relation=REPLACE)
    two = LatticeLaplace(SeveralCounts((_WEAK, Count("hlthf", equals=1.0))), 1.0)
    yield broken("same_noise_for_two_queries", MUTANTS["shared_noise"], two, pair, relation=REPLACE)
    yield conformity(two, pair, case="two_counts")
    yield deviating("same_noise_for_two_queries", MUTANTS["shared_noise"], two, pair)


@entry(
    "003/discrete_laplace_lattice", title="Laplace noise on a lattice", source=Source("003", "Example 1.1.3, remark")
)
def discrete_laplace() -> Iterator[Draft]:
    """Noise on the multiples of 1 for a count: the curve of randomised response."""
    count = LatticeLaplace(_WEAK, 1.0, step=1.0)
    pair = _health_changes()
    yield exact(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    yield privacy(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    yield conformity(count, pair, case="count")
    fraction = LatticeLaplace(Sum("lncoins", 0.0, 1.0), 1.0)
    part = replaced("a person's value goes from 0.25 to 0.75", person(lncoins=0.25), person(lncoins=0.75))
    yield broken("query_off_lattice", MUTANTS["coarse_noise"], fraction, part, relation=REPLACE)
    yield deviating("query_off_lattice", MUTANTS["coarse_noise"], fraction, part)
    # 302 persons in poor health, one of them replaced: 301 rounds to 300 and 302 to 304, in multiples of 4.
    index = int(np.flatnonzero(rand()["hlthp"].to_numpy() == 1)[0])
    straddles = replaced("one of 302 persons in poor health is replaced", person(hlthp=1), person(hlthp=0), index)
    yield broken("coarse_grid_first", MUTANTS["coarse_rounding"], count, straddles, relation=REPLACE)
    yield broken("half_lattice_step", MUTANTS["half_step"], count, pair)
    yield deviating("half_lattice_step", MUTANTS["half_step"], count, pair)


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
    yield exact(mechanism, PureDP(1.0), one_more, case="histogram", relation=ADD_REMOVE)
    yield privacy(mechanism, PureDP(1.0), one_more, case="histogram", relation=ADD_REMOVE)
    yield exact(correct, PureDP(1.0), moved, case="histogram_under_replace", relation=REPLACE)
    yield privacy(correct, PureDP(1.0), moved, case="histogram_under_replace", relation=REPLACE)
    yield conformity(correct, moved, case="histogram_under_replace")
    yield broken(
        "calibrated_for_the_other_relation", MUTANTS["add_remove_sensitivity"], correct, moved, relation=REPLACE
    )

    # The same with Gaussian noise: a factor of sqrt 2, because the l2 norm of the move counts.
    for cells, pair, case in (
        (adding, one_more, "gaussian_histogram"),
        (replacing, moved, "gaussian_histogram_under_replace"),
    ):
        noisy, relation = gaussian_histogram(cells, 1.0, 1e-5), REPLACE if cells is replacing else ADD_REMOVE
        yield exact(noisy, ApproxDP(1.0, 1e-5), pair, case=case, relation=relation)
        yield privacy(noisy, ApproxDP(1.0, 1e-5), pair, case=case, relation=relation)
    for_adding = gaussian_histogram(adding, 1.0, 1e-5)
    claim, case = GaussianDP(for_adding.plain(5).mu(5)), "gaussian_histogram_for_the_other_relation"
    note = "calibrated for add/remove, documented for replace: sqrt 2 times the claimed mu"
    yield exact(for_adding, claim, moved, case=case, relation=REPLACE, expected="violation", note=note)
    yield privacy(for_adding, claim, moved, case=case, relation=REPLACE, expected="violation", note=note)

    # A mean needs the number of rows, which is not public under add/remove.
    both = SumAndSize(Sum("mdvis", 0.0, 20.0, resolution=1.0, relation="add_remove_one"), 1.0)
    frequent = added("one more person, with 20 visits", person(mdvis=20))
    yield exact(both, PureDP(1.0), frequent, case="sum_and_size", relation=ADD_REMOVE)
    yield privacy(both, PureDP(1.0), frequent, case="sum_and_size", relation=ADD_REMOVE)
    yield conformity(both, frequent, case="sum_and_size")
    yield broken("public_n_under_add_remove", SIZES["public_size"], both, frequent, relation=ADD_REMOVE)


@entry("003/randomized_response", title="Randomised response", source=Source("003", "Example 1.1.2"))
def randomized_response() -> Iterator[Draft]:
    """The plan of four persons, each kept with probability (1 + eps) / 2; one bit changes."""
    mechanism = RandomizedResponse(0.5, column="idp")
    few = rand().head(4).astype(float)
    pair = Pair(few, few.assign(idp=[0.0, *few["idp"].iloc[1:]]), "the first of four persons changes plan")
    claim = PureDP(mechanism.epsilon)
    yield exact(mechanism, claim, pair, case="four_persons", relation=REPLACE)
    yield privacy(mechanism, claim, pair, case="four_persons", relation=REPLACE)
    yield conformity(mechanism, pair, case="four_persons")
    yield broken("shared_coin", RESPONSES["shared_coin"], mechanism, pair)
    yield deviating("shared_coin", RESPONSES["shared_coin"], mechanism, pair)
    small = RandomizedResponse(0.2, column="idp")
    yield broken("keep_probability_eps", RESPONSES["keep_with_parameter"], small, pair)
    yield broken("parameter_claimed_as_eps", RESPONSES["parameter_as_level"], mechanism, pair, guarantee=PureDP(0.5))
    yield broken("memoised_seed", RESPONSES["memoised_seed"], mechanism, pair)
    yield deviating("memoised_seed", RESPONSES["memoised_seed"], mechanism, pair)
