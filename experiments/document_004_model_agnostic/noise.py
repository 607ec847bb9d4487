"""Document 004: the Laplace mechanism."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import pandas as pd

from auditor.audits.accuracy import Absolute, Exactly, Setting
from auditor.claims import Draft, Source, accuracy, broken, broken_and_deviating, entry, reference, scaling
from auditor.privacy.guarantees import PureDP
from experiments.common import ADD_REMOVE, added, person, rand
from mechanisms.additive_noise.laplace import MUTANTS, LatticeLaplace
from mechanisms.base.queries import ClippedSum, Count, SeveralCounts


@entry("004/laplace_mech", title="Laplace mechanism", source=Source("004", "Definition 2.5, Lemma 2.6"))
def laplace() -> Iterator[Draft]:
    """A sum of visits, clipped to [0, 2], with one person added; event {output <= 0 more}."""
    total = _sum(1.0)
    pair = added("one more person, with 2 visits", person(mdvis=2))
    yield from reference(total, PureDP(1.0), pair, case="sum_of_visits", relation=ADD_REMOVE)
    yield broken(MUTANTS["scale_inverted"], total, pair)
    yield broken(MUTANTS["half_scale"], total, pair)
    yield from broken_and_deviating(MUTANTS["gaussian_of_same_scale"], total, pair)
    yield broken(MUTANTS["one_sided_exponential"], total, pair, case="one_sided")
    counts = SeveralCounts(tuple(Count("mdvis", low=float(v), relation="add_remove_one") for v in (1, 2, 3)))
    all_up = added("one more person, with 5 visits, in all three counts", person(mdvis=5))
    yield broken(MUTANTS["linf_sensitivity"], LatticeLaplace(counts, 1.0), all_up, relation=ADD_REMOVE)
    # Nobody has 36 visits: 0 against 1, where doubles are finest and the leak is largest.
    nobody = LatticeLaplace(Count("mdvis", equals=36.0, relation="add_remove_one"), 1.0)
    first = added("one more person, with 36 visits, the first", person(mdvis=36))
    yield broken(MUTANTS["float_inverse_cdf"], nobody, first, relation=ADD_REMOVE)
    yield from _accuracy()


def _sum(epsilon: float) -> LatticeLaplace:
    return LatticeLaplace(ClippedSum("mdvis", 0.0, 2.0, relation="add_remove_one"), epsilon)


@cache
def _visits() -> pd.DataFrame:
    data: pd.DataFrame = rand().astype(float)
    return data


def _quantile(mechanism: LatticeLaplace, beta: float) -> float:
    """Least t with P[|noise| > t] <= beta, of the integer noise: ``2 a^-k / (a + 1)`` for more than k steps."""
    a = mechanism.base(1)
    return mechanism.step * math.ceil(math.log(2.0 / (beta * (a + 1.0))) / math.log(a))


def _accuracy() -> Iterator[Draft]:
    """``P[|error| > t] = e^(-t eps/gamma)`` of the continuous distribution; integer noise is lighter by 0.1 %."""
    for epsilon, scales in ((1.0, 1.0), (0.25, 3.0)):
        total = _sum(epsilon)
        gamma, a = total.query.sensitivity, total.base(1)
        most = scales * gamma / epsilon
        yield accuracy(
            total,
            _visits(),
            Absolute(float(total.query(_visits()))),
            at_most=most,
            beta=math.exp(-scales),
            exact=2.0 * a ** -math.floor(most / total.step) / (a + 1.0),
            case=f"tail_at_{scales:g}",
            derived=True,
        )
    yield scaling(
        lambda epsilon: _quantile(_sum(epsilon), 0.5),
        parameter="eps",
        at=(1 / 16, 1 / 4, 1.0, 4.0, 16.0),
        exponent=-1.0,
        others=(-0.5, -2.0),
        both=True,
        measure=Exactly("median of the error"),
        # A step more, for the lattice.
        curve=lambda epsilon: 2.0 * math.log(2.0) / epsilon + 2.0**-10,
        case="error_and_epsilon",
        derived=True,
    )
    yield scaling(
        lambda epsilon: Setting(_sum(epsilon), _visits(), Absolute(float(_sum(epsilon).query(_visits())))),
        parameter="eps",
        at=(1 / 16, 1 / 4, 1.0, 4.0, 16.0),
        exponent=-1.0,
        others=(-0.5, -2.0),
        both=True,
        case="error_and_epsilon_drawn",
        derived=True,
    )
