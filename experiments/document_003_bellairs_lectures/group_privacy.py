"""Document 003, section 2.1.1: what a guarantee for one person says about groups."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd
from scipy import special

from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Erratum,
    Source,
    as_corrected,
    as_printed,
    entry,
    exact,
    inequality,
    privacy,
    reference,
)
from auditor.datasets import Group, Pair
from auditor.privacy.exact import curve
from auditor.privacy.guarantees import DeltaDP, PureDP
from auditor.privacy.laws import Law, TwoSidedGeometricLaw
from experiments.common import REPLACE, rand
from mechanisms.additive_noise.gaussian import LatticeGaussian
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.queries import Count
from mechanisms.composition.chain import TightGroupPrivacyChain, group_delta, printed_group_delta

#: Nobody in the data has 36 visits, so that the count is the number of persons who have been changed.
_FREQUENT = Count("mdvis", equals=36.0)
_POOR = Count("hlthp", equals=1.0)

#: The catalogue's counterexamples with Gaussian noise: the shift of one person in standard deviations, epsilon, and the
#: size of the group.
_GAUSSIAN = ((0.3, 0.1, 5), (0.05, 0.01, 20))
#: Lattice of the Gaussian count: 200 and 1,300 steps a standard deviation, where the distribution of the lattice and
#: the continuous one have the same curve to six digits.
_STEP = 2.0**-6


@cache
def _change_persons(persons: int) -> pd.DataFrame:
    """The data after the first persons have been changed to 36 visits."""
    data = rand().astype(float)
    data.loc[data.index[:persons], "mdvis"] = 36.0
    return data


def _changed_persons_pair(first: int, second: int) -> Pair:
    return Pair(_change_persons(first), _change_persons(second), f"{first} persons have 36 visits, against {second}")


def _whole_column_pair(column: str) -> Pair:
    data = rand().astype(float)
    return Pair(data.assign(**{column: 0.0}), data.assign(**{column: 1.0}), f"{column} is 0 for all, against 1 for all")


_J1 = Erratum(
    "J1",
    "false",
    "(eps, delta)-DP gives (k eps, e^(k eps) delta)-indistinguishability at distance k",
    fails="for eps < ln(2 - e^(-k eps)), so for k = 2 and eps < 0.481, and as k grows for all eps < ln 2: a chain of "
    "datasets, and ordinary Gaussian noise on a count, show more; the proof's last line puts e^(k eps) delta for "
    "delta (1 + e^eps + ... + e^((k-1) eps))",
    correction="(k eps, delta (e^(k eps) - 1) / (e^eps - 1)), which the chain attains; the printed form holds for "
    "eps >= ln 2",
)


@entry("003/group_privacy", title="Group privacy", source=Source("003", "Theorem 2.1.1"), errata=[_J1])
def group_privacy() -> Iterator[Draft]:
    """(eps, delta) for one person, at distance k: a chain that attains the bound, and Gaussian and Laplace counts."""
    yield from _chain()
    for mu, epsilon, k in _GAUSSIAN:
        yield from _gaussian(mu, epsilon, k)
    yield from _claim_pure_part()
    yield inequality(
        _too_small,
        statement="e^(k eps) < (e^(k eps) - 1) / (e^eps - 1) for eps < ln(2 - e^(-k eps)), k >= 2",
        relation="<",
        case="where_the_printed_factor_is_too_small",
    )
    yield inequality(
        _large_enough,
        statement="(e^(k eps) - 1) / (e^eps - 1) <= e^(k eps) for eps >= ln 2",
        case="where_the_printed_factor_holds",
    )
    yield inequality(
        _useless_answer_rows,
        statement="p <= e^(eps n) (1 - p') for the probabilities of right answers that exclude each other, on two "
        "datasets of n rows",
        case="no_use_below_one_over_n",
        note="at eps = 1/n this is p <= e (1 - p'): the remark that so small an epsilon is of no use",
    )


def _chain() -> Iterator[Draft]:
    """Any stretch of a chain attains the bound; one that ends before the chain does has no event of probability 0."""
    epsilon, delta, k = 0.1, 0.01, 10
    chain = TightGroupPrivacyChain(_FREQUENT, epsilon, delta, k + 2)
    steps = [_changed_persons_pair(i, i + 1) for i in range(k + 2)]
    yield exact(chain, DeltaDP(delta, epsilon), steps, case="every_step_of_the_chain", relation=REPLACE)
    # By draws where the event {1} is at its most probable, and near the end of the chain, where it is rare.
    two = [steps[0], steps[k - 1]]
    yield from reference(
        chain, DeltaDP(delta, epsilon), two, case="chain_of_neighbours", relation=REPLACE, follows=False
    )
    yield from _printed_and_corrected("chain", chain, epsilon, delta, k, _changed_persons_pair(0, k), Group(k))
    # From eps = ln 2 on the printed factor is large enough, for this mechanism as for all.
    large = TightGroupPrivacyChain(_FREQUENT, math.log(2.0), 0.005, 6)
    wide = DeltaDP(printed_group_delta(large.epsilon, large.delta, 5), 5 * large.epsilon)
    yield from reference(
        large, wide, _changed_persons_pair(0, 5), case="chain_at_ln_2", relation=Group(5), follows=False
    )


def _printed_and_corrected(
    case: str,
    mechanism: TightGroupPrivacyChain | LatticeGaussian,
    epsilon: float,
    delta: float,
    k: int,
    pair: Pair,
    group: Group,
) -> Iterator[Draft]:
    """The statement at distance k as printed and as corrected, by the distribution and by draws."""
    printed = DeltaDP(printed_group_delta(epsilon, delta, k), k * epsilon)
    corrected = DeltaDP(group_delta(epsilon, delta, k), k * epsilon)
    for check in (exact, privacy):
        wrong = check(mechanism, printed, pair, case=f"{case}_as_printed", relation=group, expected="violation")
        yield as_printed("J1", wrong)
        yield as_corrected("J1", check(mechanism, corrected, pair, case=f"{case}_as_corrected", relation=group))


def _gaussian(mu: float, epsilon: float, k: int) -> Iterator[Draft]:
    count, one = LatticeGaussian(_FREQUENT, 1.0 / mu, step=_STEP), _changed_persons_pair(0, 1)
    delta = curve(count.law(one.x), count.law(one.y)).delta(epsilon)
    case = f"gaussian_group_of_{k}"
    yield from reference(
        count, DeltaDP(delta, epsilon), one, case=f"{case}_one_person", relation=REPLACE, follows=False
    )
    yield from _printed_and_corrected(case, count, epsilon, delta, k, _changed_persons_pair(0, k), Group(k))


def _claim_pure_part() -> Iterator[Draft]:
    """The pure part is exact: k persons cost k eps, up to everybody."""
    small, ten = LatticeLaplace(_FREQUENT, 0.1), _changed_persons_pair(0, 10)
    yield from reference(small, PureDP(1.0), ten, case="laplace_group_of_10", relation=Group(10), follows=False)
    n, all_of_them = len(rand()), _whole_column_pair("hlthp")
    # Step: one count; the noise is 20,190 of them.
    tiny = LatticeLaplace(_POOR, 1.0 / n, step=1.0)
    yield from reference(tiny, PureDP(1.0), all_of_them, case="laplace_everybody", relation=Group(n), follows=False)


def _too_small() -> list[Row]:
    found = []
    for k in (2, 3, 5, 10, 100):
        # Grid up to a thousandth below the largest epsilon with eps = ln(2 - e^(-k eps)), by iteration from above.
        threshold = math.log(2.0)
        for _ in range(200):
            threshold = math.log(2.0 - math.exp(-k * threshold))
        for epsilon in threshold * np.array([1e-3, 1e-2, 0.1, 0.3, 0.5, 0.8, 0.999]):
            label = f"k = {k}, eps = {epsilon:.4g}"
            found.append((label, printed_group_delta(epsilon, 1.0, k), group_delta(epsilon, 1.0, k)))
    return found


def _large_enough() -> list[Row]:
    return [
        (f"k = {k}, eps = {epsilon:.4g}", group_delta(epsilon, 1.0, k), printed_group_delta(epsilon, 1.0, k))
        for k in (1, 2, 3, 5, 10, 100)
        for epsilon in math.log(2.0) * np.array([1.0, 1.01, 1.5, 3.0])
    ]


def _useless_answer_rows() -> list[Row]:
    """Two datasets of n rows, of zeros and of ones, and the answers "at most half" and "more than half"."""
    found: list[Row] = []
    n, pair = len(rand()), _whole_column_pair("hlthp")
    for total in (0.25, 1.0, 3.0):
        count = LatticeLaplace(_POOR, total / n, step=1.0)
        low, high = _at_most(count.law(pair.x), n / 2), 1.0 - _at_most(count.law(pair.y), n / 2)
        found.append((f"Laplace noise on a count, eps n = {total:g}", low, math.exp(total) * (1.0 - high)))
        # P[at least n/2 + 1 of n randomised responses are the bit], the same for both answers.
        kept = float(special.expit(total / n))
        majority = float(special.betainc(n // 2 + 1, n - n // 2, kept))
        found.append((f"majority of responses, eps n = {total:g}", majority, math.exp(total) * (1.0 - majority)))
    return found


def _at_most(law: Law, value: float) -> float:
    if not isinstance(law, TwoSidedGeometricLaw):
        raise TypeError(f"expected the distribution of a count with noise on a lattice, got {law!r}")
    return float(law.cdf(value))
