"""Document 001, section 12.2: Gaussian noise on a counting query."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from scipy import special

from auditor.declare import Draft, Source, conformity, entry, exact, privacy
from auditor.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, RenyiDP, TradeoffCurve
from auditor.neighbors import Pair
from experiments._common import REPLACE, broken, deviating, person, rand, replaced, visits
from mechanisms.gaussian import MUTANTS as GAUSSIANS
from mechanisms.gaussian import CalibratedGaussian
from mechanisms.queries import Count, Mean

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
