"""Document 001: machine learning, lecture 12."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from scipy import special

from auditor.declare import Draft, Source, conformity, entry, exact, privacy
from auditor.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP, RenyiDP, TradeoffCurve
from auditor.neighbors import Pair
from experiments._common import REPLACE, broken, deviating, person, rand, replaced, visits
from experiments._queries import opposed_pair, stream
from mechanisms.exponential import MUTANTS, ExponentialMechanism
from mechanisms.gaussian import MUTANTS as GAUSSIANS
from mechanisms.gaussian import CalibratedGaussian
from mechanisms.queries import Count, Mean, SeveralCounts

_WEAK = Count("hlthp", equals=1.0)


@entry(
    "001/gaussian_counting_query", title="Gaussian noise on a counting query", source=Source("001", "section 12.2, end")
)
def gaussian() -> Iterator[Draft]:
    """Three calibrations as (epsilon, delta)-DP, one also under other notions; the best events are half lines."""
    claim = ApproxDP(1.0, 1e-5)
    pair = replaced("a person in poor health is replaced by one who is not", person(hlthp=1), person(hlthp=0))
    count = CalibratedGaussian(_WEAK, 1.0, 1e-5)
    classical, tail = (CalibratedGaussian(_WEAK, 1.0, 1e-5, rule) for rule in ("classical", "tail"))
    # Step: 2^-20, a thousandth of the mean's sensitivity of 20 / 20,190.
    mean = CalibratedGaussian(Mean(len(rand()), "mdvis", 0.0, 20.0), 1.0, 1e-5, step=2.0**-20)
    for mechanism, moved, case in (
        (count, pair, "analytic"),
        (classical, pair, "classical"),
        (tail, pair, "tail_rule"),
        (mean, visits(0, 20), "mean_of_visits"),
    ):
        yield exact(mechanism, claim, moved, case=case, relation=REPLACE)
        # At a delta of 1e-5 the events that tell are rare: 200,000 draws cannot be sure to detect twice the claim.
        yield privacy(mechanism, claim, moved, case=case, relation=REPLACE, draws={"smoke": 1_000_000})
        yield conformity(mechanism, moved, case=case)

    mu, rho = count.plain().mu(), count.plain().rho()
    curve = TradeoffCurve.below(lambda x: special.ndtr(-special.ndtri(x) - mu), name=f"of a Gaussian, mu = {mu:.4g}")
    notions: tuple[Guarantee, ...] = (
        GaussianDP(mu),
        ZCDP(rho),
        RenyiDP({order: order * rho for order in (2.0, 8.0, 32.0)}),
        curve,
    )
    for notion in notions:
        yield exact(count, notion, pair, case="count", relation=REPLACE)
        yield privacy(count, notion, pair, case="count", relation=REPLACE)

    def mutant(case: str, base: CalibratedGaussian, moved: Pair) -> Draft:
        return broken(
            case, GAUSSIANS[case], base, moved, guarantee=ApproxDP(base.epsilon, base.delta), relation=REPLACE
        )

    yield mutant("variance_as_std", mean, visits(0, 20))
    yield mutant("delta_missing_from_log", count, pair)
    # Nobody has 36 visits: 0 against 1, where float32 is finest and the leak is largest.
    nobody = CalibratedGaussian(Count("mdvis", equals=36.0), 1.0, 1e-5)
    yield mutant("float32_noise", nobody, visits(0, 36))
    yield deviating("float32_noise", GAUSSIANS["float32_noise"], nobody, visits(0, 36))
    # From epsilon = 8.42 on, at this delta. No draws could show it: they would have to tell probabilities below e^-10
    # from 0. They show it where delta is large.
    case = "classical_formula_large_eps"
    large = GAUSSIANS[case].build(CalibratedGaussian(_WEAK, 10.0, 1e-5))
    certain = exact(large, ApproxDP(10.0, 1e-5), pair, case=case, relation=REPLACE, expected="violation")
    yield dataclasses.replace(certain, is_mutant=True, note=GAUSSIANS[case].note)
    yield mutant(case, CalibratedGaussian(_WEAK, 6.0, 0.5), pair)


@entry("001/exponential_mechanism", title="Exponential mechanism", source=Source("001", "section 12.3, Theorem 12.4"))
def exponential() -> Iterator[Draft]:
    """Choices among groups of persons; one replaced person moves one score up and all others down."""
    mechanism = ExponentialMechanism(stream("wwwwwwwwwd"), 1.0)
    yield exact(mechanism, PureDP(1.0), opposed_pair(), case="largest_group", relation=REPLACE)
    yield privacy(mechanism, PureDP(1.0), opposed_pair(), case="largest_group", relation=REPLACE)
    yield conformity(mechanism, opposed_pair(), case="largest_group")

    frequent = ExponentialMechanism(_visits_of(*range(27, 39)), 1.0)
    move = replaced("a person goes from 34 to 38 visits", person(mdvis=34), person(mdvis=38))
    yield exact(frequent, PureDP(1.0), move, case="most_common_visits", relation=REPLACE)
    yield privacy(frequent, PureDP(1.0), move, case="most_common_visits", relation=REPLACE)
    yield conformity(frequent, move, case="most_common_visits")

    yield broken("factor_two_missing", MUTANTS["missing_two"], mechanism, opposed_pair(), relation=REPLACE)
    yield broken("sign_flipped", MUTANTS["wrong_sign"], mechanism, opposed_pair(), relation=REPLACE)
    yield deviating("sign_flipped", MUTANTS["wrong_sign"], mechanism, opposed_pair())
    yield broken("greedy_argmax", MUTANTS["greedy"], mechanism, opposed_pair(), relation=REPLACE)
    yield broken("sum_for_mean_sensitivity", MUTANTS["mean_sensitivity"], mechanism, opposed_pair(), relation=REPLACE)
    # Nobody has 36 visits: the value enters the range with the person who does.
    rare = ExponentialMechanism(_visits_of(33, 34, 35, 36, 37), 1.0)
    enters = replaced("a person goes from 36 to 33 visits", person(mdvis=36), person(mdvis=33))
    yield broken("data_dependent_range", MUTANTS["occurring_only"], rare, enters, relation=REPLACE)
    # 22 persons have 21 visits, 13 have 24: the lead is 10 or 8, and noise on [0, 8.9) can turn only the smaller one.
    behind = ExponentialMechanism(_visits_of(21, 24), 1.0)
    closer = replaced("a person goes from 24 to 21 visits", person(mdvis=24), person(mdvis=21))
    yield broken("uniform_noise_for_gumbel", MUTANTS["uniform_noise"], behind, closer, relation=REPLACE)
    yield deviating("uniform_noise_for_gumbel", MUTANTS["uniform_noise"], mechanism, opposed_pair())


def _visits_of(*values: int) -> SeveralCounts:
    """How many persons have so many visits, for each value."""
    return SeveralCounts(tuple(Count("mdvis", equals=float(value)) for value in values))
