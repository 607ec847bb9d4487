"""Document 003, lecture 7, end: parities of t attributes by the two-way mechanism on products."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from auditor.audits.accuracy import Figure, Setting
from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, entry, exact, inequality, privacy, scaling
from auditor.privacy.guarantees import ApproxDP, GaussianDP
from experiments._common import ADD_REMOVE, broken, rand
from experiments.document_003._projected import (
    ATTRIBUTES,
    DELTA,
    EPSILON,
    HULL,
    RELAXED,
    errors_on,
    few_and_one_more,
    one_more,
    repeated,
    squared_error,
)
from mechanisms.query_release.product_attributes import MUTANTS, ProductMoments, SmallestSign
from mechanisms.query_release.projections import Body, Hull, NuclearBall, ProjectedMoments
from mechanisms.query_release.second_moments import NoisyMoments

#: A level at which some hundred draws tell 1.5 times the claim.
_LARGE = 4.0


@entry(
    "003/tway_to_2way_reduction",
    title="t-way parities through product attributes",
    source=Source("003", "Lecture 7, end"),
)
def product_attributes() -> Iterator[Draft]:
    """D = C(d, t/2) products of attributes; t odd takes one attribute that is constant.

    The notes give d^2 coordinates for every t, which is right for t = 4: d^(t/2) is meant.
    """
    yield from _privacy()
    yield from _identities()
    yield from _errors()


def _noisy(d: int, order: int, epsilon: float = EPSILON) -> NoisyMoments:
    return NoisyMoments(ProductMoments(d, ATTRIBUTES[:d], order=order), epsilon, DELTA)


def _privacy() -> Iterator[Draft]:
    more = one_more()
    for d, order in ((5, 4), (4, 3)):
        noisy, case = _noisy(d, order), f"{order}_way_{d}_attributes"
        yield exact(noisy, GaussianDP(noisy.mu), more, case=case, relation=ADD_REMOVE)
    four = _noisy(4, 4, _LARGE)
    yield exact(four, ApproxDP(_LARGE, DELTA), more, case="4_way_4_attributes", relation=ADD_REMOVE)
    yield exact(four, GaussianDP(four.mu), more, case="4_way_4_attributes", relation=ADD_REMOVE)
    yield privacy(
        four,
        GaussianDP(four.mu),
        more,
        case="4_way_4_attributes",
        relation=ADD_REMOVE,
        draws={"smoke": 6_000, "standard": 80_000},
    )
    large = NoisyMoments(ProductMoments(4, order=4), _LARGE, DELTA)
    yield broken(
        "R_d_kept",
        MUTANTS["R_d_kept"],
        large,
        few_and_one_more(30, 4),
        guarantee=GaussianDP(large.mu),
        relation=ADD_REMOVE,
        draws={"smoke": 10_000, "standard": 50_000},
    )


# --------------------------------------------------------------------------------------- identities


def _from_products(query: ProductMoments) -> list[Row]:
    """Largest difference between a parity and any of the moments that are to be it, on the whole data."""
    moments, truth = query(rand()), query.true_parities(rand())
    apart = np.abs(moments[query.splits] - truth[:, None]).max()
    label = f"t = {query.order}, d = {query.dimension}, {query.splits.shape[1]} splits of {len(truth)} sets"
    return [(label, float(apart), 0.0)]


_ORDERS = ((4, 2), (6, 3), (8, 4), (8, 5), (8, 6))


def _identities() -> Iterator[Draft]:
    yield inequality(
        lambda: [row for d, t in _ORDERS for row in _from_products(ProductMoments(d, ATTRIBUTES[:d], order=t))],
        statement="without noise every parity of t attributes is the second moment of any split of it",
        relation="==",
        level="L4",
        case="parities_without_noise",
    )
    yield inequality(
        lambda: [row for d, t in _ORDERS[2:] for row in _from_products(SmallestSign(d, ATTRIBUTES[:d], order=t))],
        statement="without noise every parity of t attributes is the second moment of any split of it",
        relation="==",
        level="L4",
        case="attributes_not_products",
        expected="deviation",
        is_mutant=True,
        note="conjunctions for products",
    )


# ----------------------------------------------------------------------------------------- accuracy

#: People at which the error is measured as d grows. The bound 4 c n sqrt(D) says more than an error of n and than plain
#: noise of c D between 15 sqrt(D) and 0.93 D^1.5 people: from 174 for the largest D here to 201 for the smallest.
_PEOPLE = 176
_AT = (9, 12, 17)
#: The same for the ten products whose hull K is enumerated: between 28 and 50 people the bound with 2.355 says more.
_FEW_PEOPLE = 37
#: Distinct rows of the datasets: the worst number falls from 6 to 2 as d grows.
_DISTINCT = (2, 3, 4, 6)


def _released(d: int, order: int, body: Body, people: float) -> ProjectedMoments:
    return ProjectedMoments(NoisyMoments(ProductMoments(d, order=order), EPSILON, DELTA), body, people)


def _bound(released: ProjectedMoments, constant: float) -> float:
    """Bound on the mean squared error of a moment: ``constant c n sqrt(D)``."""
    return constant * released.noisy.scale * released.size / math.sqrt(released.width)


def _errors() -> Iterator[Draft]:
    # What is bounded is the mean over all products. A parity by the mean over its splits, six and four of them here, is
    # nearer already with plain noise, so the bound says nothing of it at sizes at which K can be enumerated.
    for d, order in ((5, 4), (4, 3)):
        released = _released(d, order, Hull(), _FEW_PEOPLE)
        for distinct, name in ((1, "_one_row"), (3, "")):
            data = repeated(d, _FEW_PEOPLE, distinct)
            yield squared_error(
                released,
                data,
                _bound(released, HULL),
                case=f"{order}_way_products{name}",
                note=f"all products of {released.width} attributes; the bound is below plain noise and n^2",
            )

    def worst(d: float) -> Setting:
        data = [repeated(int(d), _PEOPLE, distinct) for distinct in _DISTINCT]
        return errors_on(_released(int(d), 4, NuclearBall(), _PEOPLE), data)

    yield scaling(
        worst,
        parameter="d",
        at=_AT,
        exponent=0.5,
        others=(0.25, 0.75, 1.0),
        # Random rows, a handful of them: one dimension's are worse than another's by up to 5 %, a tenth in the exponent
        # between neighbouring dimensions. Well below the distance to other candidates.
        within=0.15,
        log_factor=lambda d: (math.comb(int(d), 2) / d**2) ** 0.25,
        curve=lambda d: math.sqrt(_bound(_released(int(d), 4, NuclearBall(), _PEOPLE), RELAXED)),
        case="four_way_worst_family",
        derived=True,
        draws={"smoke": 3 * 24, "standard": 3 * 100},
        figure=Figure(
            "Error of four-way parities", "nuclear ball, worst family", "d", "root mean square error, in persons"
        ),
        note="sqrt(n) D^(1/4) with D = C(d, 2), which is d^2/2 up to the factor that is divided out",
    )
