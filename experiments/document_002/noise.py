"""Document 002: what can be learned privately."""

from __future__ import annotations

import math
from collections.abc import Iterator

from auditor.declare import Draft, Source, conformity, entry, exact, privacy
from auditor.guarantees import PureDP
from auditor.neighbors import Pair
from experiments._common import REPLACE, broken, deviating, person, rand, replaced, visits
from mechanisms.laplace import MUTANTS, LatticeLaplace
from mechanisms.queries import Count, Mean, Sum
from mechanisms.randomized_response import MUTANTS as RESPONSES
from mechanisms.randomized_response import from_epsilon


@entry("002/laplace_mechanism", title="Laplace mechanism", source=Source("002", "Theorem 2.3"))
def laplace() -> Iterator[Draft]:
    """Counts, sums and means under replace-one neighbours."""
    count = LatticeLaplace(Count("mdvis", low=10.0), 1.0)
    pair = replaced("a person goes from 0 to 10 visits", person(mdvis=0), person(mdvis=10))
    yield exact(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    yield privacy(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    yield conformity(count, pair, case="count")
    # Step: 2^-20, a thousandth of the mean's sensitivity of 20 / 20,190.
    mean = LatticeLaplace(Mean(len(rand()), "mdvis", 0.0, 20.0), 0.5, step=2.0**-20)
    extreme = replaced("a person goes from 0 to 20 visits", person(mdvis=0), person(mdvis=20))
    yield exact(mean, PureDP(0.5), extreme, case="mean_of_visits", relation=REPLACE)
    yield privacy(mean, PureDP(0.5), extreme, case="mean_of_visits", relation=REPLACE)
    yield conformity(mean, extreme, case="mean_of_visits")

    yield broken("half_scale", MUTANTS["half_scale"], count, pair)
    yield broken("std_as_scale", MUTANTS["scale_as_deviation"], count, pair)
    yield broken("one_sided_exponential", MUTANTS["one_sided"], count, pair)
    # A count of no rows has local sensitivity 0 and so no noise; six persons, because the mutant takes quadratic time.
    few = rand().head(6).astype(float)
    six = Pair(few, few.assign(mdvis=[12.0, *few["mdvis"].iloc[1:]]), "nobody of six has 10 visits, against one")
    yield broken("local_sensitivity", MUTANTS["local_sensitivity"], count, six, relation=REPLACE, exact_level=math.inf)
    signed = LatticeLaplace(Sum("lncoins", -1.0, 1.0), 1.0)
    whole = replaced("a person's value goes from -1 to 1", person(lncoins=-1), person(lncoins=1))
    yield broken("add_remove_sensitivity", MUTANTS["add_remove_sensitivity"], signed, whole, relation=REPLACE)
    yield broken("output_rounded_or_clamped", MUTANTS["rounded_output"], count, pair)
    yield deviating("output_rounded_or_clamped", MUTANTS["rounded_output"], count, pair)
    yield broken("bounded_support_noise", MUTANTS["truncated_noise"], count, pair)
    yield deviating("bounded_support_noise", MUTANTS["truncated_noise"], count, pair)
    fraction = LatticeLaplace(Sum("lncoins", 0.0, 1.0), 1.0)
    part = replaced("a person's value goes from 0.25 to 0.75", person(lncoins=0.25), person(lncoins=0.75))
    yield broken("noise_rounded_before_adding", MUTANTS["coarse_noise"], fraction, part, relation=REPLACE)
    # Nobody has 36 visits: 0 against 1, where doubles are finest and the leak is largest.
    nobody = LatticeLaplace(Count("mdvis", equals=36.0), 1.0)
    yield broken("low_order_bits", MUTANTS["textbook_float"], nobody, visits(0, 36), relation=REPLACE)
    yield deviating("low_order_bits", MUTANTS["textbook_float"], nobody, visits(0, 36))


@entry("002/warner_rr", title="Warner's randomised response", source=Source("002", "section 1.1"))
def warner() -> Iterator[Draft]:
    """Truth with probability 2/3 on each person's plan; one person's bit changes, event {that bit is reported as 1}."""
    mechanism = from_epsilon(math.log(2), column="idp")
    few = rand().head(4).astype(float)
    pair = Pair(few, few.assign(idp=[0.0, *few["idp"].iloc[1:]]), "the first of four persons changes plan")
    yield exact(mechanism, PureDP(math.log(2)), pair, case="four_persons", relation=REPLACE)
    yield privacy(mechanism, PureDP(math.log(2)), pair, case="four_persons", relation=REPLACE)
    yield conformity(mechanism, pair, case="four_persons")
    yield broken("half_truth_half_coin", RESPONSES["fair_second_coin"], mechanism, pair)
    yield deviating("half_truth_half_coin", RESPONSES["fair_second_coin"], mechanism, pair)
    yield broken("memoised_seed", RESPONSES["memoised_seed"], mechanism, pair)
