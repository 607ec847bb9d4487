"""Document 001, section 12.2: Gaussian noise on a counting query."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator

from scipy import special

from auditor.audits.accuracy import Absolute, Setting, Squared
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken,
    deviating,
    entry,
    exact,
    expectation,
    inequality,
    reference,
    scaling,
)
from auditor.datasets import Pair
from auditor.privacy.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, RenyiDP, TradeoffCurve
from experiments.common import REPLACE, person, rand, replaced, visits
from mechanisms.additive_noise.gaussian import MUTANTS as GAUSSIANS
from mechanisms.additive_noise.gaussian import CalibratedGaussian, Rule, analytic_mu, tail_mu
from mechanisms.additive_noise.laplace import default_step
from mechanisms.base.queries import ClippedMean, Count, Query

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
    mean = CalibratedGaussian(ClippedMean(len(rand()), "mdvis", 0.0, 20.0), 1.0, 1e-5, step=2.0**-20)
    for mechanism, moved, case in (
        (count, pair, "analytic"),
        (classical, pair, "classical"),
        (tail, pair, "tail_rule"),
        (mean, visits(0, 20), "mean_of_visits"),
    ):
        # At a delta of 1e-5 the events that tell are rare.
        draws = {"smoke": 1_000_000}
        yield from reference(mechanism, claim, moved, case=case, relation=REPLACE, draws=draws, follows={"draws": {}})

    mu, rho = count.plain().mu(), count.plain().rho()
    curve = TradeoffCurve.below(lambda x: special.ndtr(-special.ndtri(x) - mu), name=f"of a Gaussian, mu = {mu:.4g}")
    notions: tuple[Guarantee, ...] = (
        GaussianDP(mu),
        ZCDP(rho),
        RenyiDP({order: order * rho for order in (2.0, 8.0, 32.0)}),
        curve,
    )
    for notion in notions:
        # An event of probability 0.01 tells less under these than under epsilon.
        draws = {"smoke": 500_000}
        yield from reference(count, notion, pair, case="count", relation=REPLACE, draws=draws, follows=False)

    yield from _accuracy(count, mean)

    def wrong(name: str, base: CalibratedGaussian, moved: Pair) -> Draft:
        return broken(GAUSSIANS[name], base, moved, guarantee=ApproxDP(base.epsilon, base.delta), relation=REPLACE)

    yield wrong("variance_as_std", mean, visits(0, 20))
    yield wrong("delta_missing_from_log", count, pair)
    # Nobody has 36 visits: 0 against 1, where float32 is finest and the leak is largest.
    nobody = CalibratedGaussian(Count("mdvis", equals=36.0), 1.0, 1e-5)
    yield wrong("float32_noise", nobody, visits(0, 36))
    yield deviating(GAUSSIANS["float32_noise"], nobody, visits(0, 36))
    # From epsilon = 8.42 on, at this delta. No draws could show it: they would have to tell probabilities below e^-10
    # from 0. They show it where delta is large.
    case = "classical_formula_large_eps"
    large = GAUSSIANS[case].build(CalibratedGaussian(_WEAK, 10.0, 1e-5))
    certain = exact(large, ApproxDP(10.0, 1e-5), pair, case=case, relation=REPLACE, expected="violation")
    yield dataclasses.replace(certain, is_mutant=True, note=GAUSSIANS[case].note)
    yield wrong(case, CalibratedGaussian(_WEAK, 6.0, 0.5), pair)


#: Median of the absolute value of a standard normal variable.
_MEDIAN = float(special.ndtri(0.75))


def _error(query: Query, epsilon: float, delta: float, rule: Rule, rows: int) -> Setting:
    """The error of an answer on the first so many persons, noise on a lattice of a thousandth of the sensitivity."""
    data = rand().head(rows)
    mechanism = CalibratedGaussian(query, epsilon, delta, rule, default_step(query.sensitivity))
    return Setting(mechanism, data, Absolute(float(query(data))))


def _accuracy(count: CalibratedGaussian, mean: CalibratedGaussian) -> Iterator[Draft]:
    """Tails and standard deviations; exponents of the median error, which is 0.674 standard deviations.

    The exponents in epsilon and delta are those of the classical rule, ``s = D sqrt(2 ln(1.25 / delta)) / epsilon``.
    """
    for mechanism, case, steps in ((count, "count", 0), (mean, "mean_of_visits", 1)):
        truth, s = float(mechanism.query(rand())), mechanism.sigma()
        # One step more where the answer is rounded to the lattice.
        at_most = 2.0 * s + steps * mechanism.step
        yield accuracy(
            mechanism,
            rand(),
            Absolute(truth),
            at_most=at_most,
            beta=2.0 * float(special.ndtr(-2.0)),
            case=case,
            derived=True,
            note="P[|error| > t] = 2 Phi(-t / s), at t = 2 s",
        )
        squared = (s + steps * mechanism.step) ** 2
        yield expectation(
            mechanism, rand(), Squared(truth), at_most=squared, case=case, derived=True, note="standard deviation s"
        )
    yield inequality(
        lambda: [("tail rule", 1 / tail_mu(1.0, 1e-5), 4.379), ("analytic", 1 / analytic_mu(1.0, 1e-5), 3.731)],
        statement="scales at epsilon = 1, delta = 1e-5, in sensitivities: 4.379 by the tail rule, 3.731 analytically",
        relation="==",
        level="L4",
        tolerance=2e-4,  # printed with three decimals
        case="scales_of_two_calibrations",
    )

    def of_rows(n: float) -> Setting:
        return _error(ClippedMean(int(n), "mdvis", 0.0, 20.0), 1.0, 1e-5, "analytic", int(n))

    def of_epsilon(epsilon: float) -> Setting:
        return _error(_WEAK, epsilon, 1e-5, "classical", len(rand()))

    def of_delta(log: float) -> Setting:
        return _error(_WEAK, 1.0, math.exp(-log), "classical", len(rand()))

    def median(build: Callable[[float], Setting]) -> Callable[[float], float]:
        def bound(value: float) -> float:
            mechanism = build(value).mechanism
            assert isinstance(mechanism, CalibratedGaussian)
            return _MEDIAN * mechanism.sigma() + mechanism.step

        return bound

    for build, parameter, at, exponent, others, case in (
        (of_rows, "n", (64, 256, 1024, 4096, 16_384), -1.0, (-0.5, -2.0), "error_and_rows"),
        (of_epsilon, "eps", (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1), -1.0, (-0.5, -2.0), "error_and_epsilon"),
        (of_delta, "ln(1/delta)", (8, 16, 32, 64, 128), 0.5, (0.0, 1.0), "error_and_delta"),
    ):
        yield scaling(
            build,
            parameter=parameter,
            at=at,
            exponent=exponent,
            others=others,
            curve=median(build),
            case=case,
            derived=True,
        )
