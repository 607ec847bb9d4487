"""Document 003, lecture 7, end: parities of t attributes by the two-way mechanism on products."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from auditor.audits.accuracy import Figure, Setting
from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, broken, entry, exact, inequality, reference, scaling
from auditor.privacy.guarantees import ApproxDP, GaussianDP
from experiments.common import ADD_REMOVE, rand
from experiments.document_003_bellairs_lectures._projected import (
    ATTRIBUTES,
    DELTA,
    EPSILON,
    HULL,
    RELAXED,
    ROWS,
    errors_on,
    few_and_one_more,
    one_more,
    repeated,
    squared_error,
    worst_number,
)
from mechanisms.query_release.product_attributes import MUTANTS, ProductMoments, SmallestSign
from mechanisms.query_release.projections import ConvexBody, NuclearBall, ProjectedMoments, SignVectorHull
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


def _noisy_moments(d: int, order: int, epsilon: float = EPSILON) -> NoisyMoments:
    return NoisyMoments(ProductMoments(d, ATTRIBUTES[:d], order=order), epsilon, DELTA)


def _privacy() -> Iterator[Draft]:
    more = one_more()
    for d, order in ((5, 4), (4, 3)):
        noisy, case = _noisy_moments(d, order), f"{order}_way_{d}_attributes"
        yield exact(noisy, GaussianDP(noisy.mu), more, case=case, relation=ADD_REMOVE)
    four = _noisy_moments(4, 4, _LARGE)
    yield exact(four, ApproxDP(_LARGE, DELTA), more, case="4_way_4_attributes", relation=ADD_REMOVE)
    draws = {"smoke": 6_000, "standard": 80_000}
    yield from reference(
        four, GaussianDP(four.mu), more, case="4_way_4_attributes", relation=ADD_REMOVE, draws=draws, follows=False
    )
    large = NoisyMoments(ProductMoments(4, order=4), _LARGE, DELTA)
    yield broken(
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

#: Attributes at which the error is measured, at n = 4 D people. At fixed n the sizes in reach are too near an edge of
#: the window of n, 15 sqrt(D) << n << D^1.5: from d = 12 to 24 the error grows as d^0.6, not d^0.5.
_AT = (9, 12, 17, 24)
#: People, for the ten products whose hull K is enumerated: the bound with 2.355 says more than an error of n, and than
#: plain noise, between 28 and 50 people.
_FEW_PEOPLE = 37


def _projected_moments(d: int, order: int, body: ConvexBody, people: float) -> ProjectedMoments:
    return ProjectedMoments(NoisyMoments(ProductMoments(d, order=order), EPSILON, DELTA), body, people)


def _product(d: int) -> float:
    """``n sqrt(D)`` at n = 4 D people."""
    return ROWS * math.sqrt(math.comb(d, 2)) ** 3


def _bound(released: ProjectedMoments, constant: float) -> float:
    """Bound on the mean squared error of a moment: ``constant c n sqrt(D)``."""
    return constant * released.noisy.scale * released.size / math.sqrt(released.width)


def _errors() -> Iterator[Draft]:
    # What is bounded is the mean over all products. A parity by the mean over its splits, six and four of them here, is
    # nearer already with plain noise, so the bound says nothing of it at sizes at which K can be enumerated.
    for d, order in ((5, 4), (4, 3)):
        released = _projected_moments(d, order, SignVectorHull(), _FEW_PEOPLE)
        for distinct, name in ((1, "_one_row"), (3, "")):
            data = repeated(d, _FEW_PEOPLE, distinct)
            yield squared_error(
                released,
                data,
                _bound(released, HULL),
                case=f"{order}_way_products{name}",
                note=f"all products of {released.width} attributes; the bound is below plain noise and n^2",
            )

    def released_at(product: float) -> ProjectedMoments:
        d = next(d for d in _AT if math.isclose(product, _product(d)))
        return _projected_moments(d, 4, NuclearBall(), ROWS * math.comb(d, 2))

    def worst(product: float) -> Setting:
        released = released_at(product)
        width, d = released.width, released.noisy.query.dimension
        data = [repeated(d, ROWS * width, times * worst_number(width)) for times in (1, 2)]
        return errors_on(released, data)

    yield scaling(
        worst,
        parameter="n sqrt(D)",
        at=tuple(_product(d) for d in _AT),
        exponent=0.5,
        others=(0.25, 0.75, 1.0),
        curve=lambda product: math.sqrt(_bound(released_at(product), RELAXED)),
        case="four_way_worst_family",
        derived=True,
        draws={"smoke": 4 * 24, "standard": 4 * 60},
        figure=Figure(
            "Error of four-way parities",
            "nuclear ball, worst family",
            "n sqrt(D)",
            "root mean square error, in persons",
        ),
        note="sqrt(n) D^(1/4) with D = C(d, 2), at d of 9 to 24 and n = 4 D; at fixed n these sizes are too small",
    )
