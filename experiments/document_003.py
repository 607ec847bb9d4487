"""Document 003: workshop notes on the complexity of differential privacy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from auditor.declare import Draft, Source, entry, exact, privacy
from auditor.guarantees import ApproxDP, GaussianDP, PureDP
from auditor.neighbors import Pair
from experiments._common import ADD_REMOVE, REPLACE, added, broken, person, rand, replaced, visits
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
    # The same mechanism under other notions: its own delta at half its epsilon, and the smallest mu of its curve.
    (curve,) = exact(count, PureDP(1.0), pair).curves
    half, gaussian = ApproxDP(0.5, _rounded_up(curve.delta(0.5))), GaussianDP(_rounded_up(curve.mu()))
    yield privacy(count, half, pair, case="count", relation=REPLACE)
    yield privacy(count, gaussian, pair, case="count", relation=REPLACE)

    mean = LatticeLaplace(Mean(len(rand()), "mdvis", 0.0, 20.0), 1.0, step=2.0**-20)
    pairs = [visits(0, 20), visits(0, 77), visits(3, 4), visits(0, 20, index=20_189), visits(77, 5, index=10_000)]
    yield exact(mean, PureDP(1.0), pairs, case="mean_of_visits", relation=REPLACE)
    yield privacy(mean, PureDP(1.0), pairs, case="mean_of_visits", relation=REPLACE, note="a search over five pairs")

    yield broken("scale_inverted", MUTANTS["scale_times_epsilon"], LatticeLaplace(_WEAK, 0.5), pair)
    yield broken("std_as_scale", MUTANTS["scale_as_deviation"], count, pair)
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


@entry(
    "003/discrete_laplace_lattice", title="Laplace noise on a lattice", source=Source("003", "Example 1.1.3, remark")
)
def discrete_laplace() -> Iterator[Draft]:
    """Noise on the multiples of 1 for a count: the curve of randomised response."""
    count = LatticeLaplace(_WEAK, 1.0, step=1.0)
    pair = _health_changes()
    yield exact(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    yield privacy(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    fraction = LatticeLaplace(Sum("lncoins", 0.0, 1.0), 1.0)
    part = replaced("a person's value goes from 0.25 to 0.75", person(lncoins=0.25), person(lncoins=0.75))
    yield broken("query_off_lattice", MUTANTS["coarse_noise"], fraction, part, relation=REPLACE)
    # 302 persons in poor health, one of them replaced: 301 rounds to 300 and 302 to 304, in multiples of 4.
    index = int(np.flatnonzero(rand()["hlthp"].to_numpy() == 1)[0])
    straddles = replaced("one of 302 persons in poor health is replaced", person(hlthp=1), person(hlthp=0), index)
    yield broken("coarse_grid_first", MUTANTS["coarse_rounding"], count, straddles, relation=REPLACE)
    yield broken("half_lattice_step", MUTANTS["half_step"], count, pair)


@entry(
    "003/neighbour_convention", title="Neighbours: replace against add or remove", source=Source("003", "footnote 1")
)
def neighbours() -> Iterator[Draft]:
    """A histogram calibrated for add/remove is exactly eps there, and exactly 2 eps under replace."""
    query = Histogram("mdvis", edges=(0, 1, 3, 6, 11, 78), relation="add_remove_one")
    mechanism = LatticeLaplace(query, 1.0, step=1.0)
    one_more = added("one more person, with 2 visits", person(mdvis=2))
    yield exact(mechanism, PureDP(1.0), one_more, case="histogram", relation=ADD_REMOVE)
    yield privacy(mechanism, PureDP(1.0), one_more, case="histogram", relation=ADD_REMOVE)
    correct = LatticeLaplace(replace(query, relation="replace_one"), 1.0, step=1.0)
    yield broken(
        "calibrated_for_the_other_relation",
        MUTANTS["add_remove_sensitivity"],
        correct,
        replaced("a person goes from 0 visits to 2", person(mdvis=0), person(mdvis=2)),
        relation=REPLACE,
    )


@entry("003/randomized_response", title="Randomised response", source=Source("003", "Example 1.1.2"))
def randomized_response() -> Iterator[Draft]:
    """The plan of four persons, each kept with probability (1 + eps) / 2; one bit changes."""
    mechanism = RandomizedResponse(0.5, column="idp")
    few = rand().head(4).astype(float)
    pair = Pair(few, few.assign(idp=[0.0, *few["idp"].iloc[1:]]), "the first of four persons changes plan")
    claim = PureDP(mechanism.epsilon)
    yield exact(mechanism, claim, pair, case="four_persons", relation=REPLACE)
    yield privacy(mechanism, claim, pair, case="four_persons", relation=REPLACE)
    yield broken("shared_coin", RESPONSES["shared_coin"], mechanism, pair)
    small = RandomizedResponse(0.2, column="idp")
    yield broken("keep_probability_eps", RESPONSES["keep_with_parameter"], small, pair)
    yield broken("parameter_claimed_as_eps", RESPONSES["parameter_as_level"], mechanism, pair, guarantee=PureDP(0.5))
    yield broken("memoised_seed", RESPONSES["memoised_seed"], mechanism, pair)
