"""Document 003, list after Proposition 1.1.4: structured queries of small global sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from auditor.audits.accuracy import Absolute, Setting
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken,
    broken_and_deviating,
    entry,
    inequality,
    reference,
    scaling,
)
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE, person, rand, replaced, visits
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.queries import ClippedMean, Count, Histogram
from mechanisms.query_release.structured_queries import (
    MUTANTS,
    DistanceToHistogram,
    DistanceToRange,
    LargestCount,
    ThresholdFromData,
    UnclippedMean,
    data_dependent_property,
    datasets,
    distance_by_enumeration,
    global_sensitivity,
    range_not_clipped,
)

_WEAK = Count("hlthp", equals=1.0)
#: 302 persons beside the one who is replaced, as in poor health.
_DISEASED = Count("disea", low=31.0, high=37.9)
#: Failure probability of the accuracy claims, and the noise in units of its scale that it belongs to.
_BETA, _SCALES = math.exp(-3.0), 3.0

#: Small universe and datasets in which sensitivities are enumerated: 4^6 datasets, 73,728 pairs of neighbours.
_UNIVERSE, _SIZE = (0.0, 1.0, 2.0, 3.0), 6
_POSITIVE = Count(low=1.0)


def _largest_of_counts(t: int) -> LargestCount:
    """The largest of t counts of persons: those with 0, 1, 2, ... visits."""
    return LargestCount(tuple(Count("mdvis", equals=float(j)) for j in range(t)))


def _sensitivities() -> list[Row]:
    """Claimed sensitivities against the largest move between neighbours, over all pairs of small datasets."""
    overlapping = tuple(Count(low=float(j), high=float(j + 1)) for j in range(4))
    queries: list[tuple[str, Any]] = [
        *((f"maximum of {t} counts", LargestCount(overlapping[:t])) for t in (1, 2, 4)),
        ("distance to 'at least 4 of 6 rows count'", DistanceToRange(_POSITIVE, 4)),
        ("distance to 'all rows count'", DistanceToRange(_POSITIVE, _SIZE)),
        ("distance to '1 or 2 rows count'", DistanceToRange(_POSITIVE, 1, 2)),
        ("distance to a histogram", DistanceToHistogram(Histogram(categories=(0.0, 1.0)), (2, 1))),
        ("mean of rows in [0, 1]", ClippedMean(_SIZE, None, 0.0, 1.0, resolution=0.5)),
    ]
    return [(name, global_sensitivity(query, _UNIVERSE, _SIZE), query.sensitivity) for name, query in queries]


def _distances() -> list[Row]:
    """Distances by their formulas against the definition, on all datasets of four rows of three values."""
    universe, size = _UNIVERSE[:3], 4
    cells, wanted = Histogram(categories=(0.0, 1.0)), (2, 1)
    properties: list[tuple[str, Any, Callable[[Any], bool]]] = [
        ("at least 3 rows count", DistanceToRange(_POSITIVE, 3), lambda x: float(_POSITIVE(x)) >= 3),
        ("1 or 2 rows count", DistanceToRange(_POSITIVE, 1, 2), lambda x: 1 <= float(_POSITIVE(x)) <= 2),
        ("a histogram", DistanceToHistogram(cells, wanted), lambda x: tuple(cells(x).tolist()) == wanted),
    ]
    return [
        (f"{name}, {data.tolist()}", float(query(data)), distance_by_enumeration(data.tolist(), member, universe))
        for name, query, member in properties
        for data in datasets(universe, size)
    ]


def _claim_declared_sensitivity(case: str, query: Any) -> Draft:
    """A mutant's declared sensitivity against the largest move: here it is too small."""
    return inequality(
        lambda: [("all pairs of neighbours", global_sensitivity(query, _UNIVERSE, _SIZE), query.sensitivity)],
        statement="the declared sensitivity is at least the largest move between neighbours",
        level="L2",
        case=case,
        expected="deviation",
        is_mutant=True,
    )


@entry(
    "003/laplace_structured_queries",
    title="Laplace noise on a maximum, a distance, a bounded mean",
    source=Source("003", "list after Proposition 1.1.4"),
)
def structured() -> Iterator[Draft]:
    """Counts are of persons, where the document divides by n; each pair moves its answer by the whole sensitivity.

    Noise stays on a lattice of a thousandth of the sensitivity, so an error above 3 scales has a probability of at most
    e^-3 there too. The constants of the accuracy claims are those of the Laplace tail: catalogue 000_001_003,
    laplace_structured_queries.
    """
    size = len(rand())
    largest = LatticeLaplace(_largest_of_counts(8), 1.0)
    tenth = LatticeLaplace(DistanceToRange(_WEAK, size // 10), 1.0)
    halves = LatticeLaplace(
        DistanceToHistogram(Histogram("idp", categories=(0.0, 1.0)), (size // 2, size - size // 2)), 1.0
    )
    limited = LatticeLaplace(
        ClippedMean(size, "physlm", 0.0, 1.0), 1.0, step=2.0**-25
    )  # 1,661 steps to the sensitivity
    weaker = replaced("a person in good health is replaced by one in poor health", person(hlthp=0), person(hlthp=1))
    plan = replaced("a person changes plan", person(idp=0), person(idp=1))
    limitation = replaced("a person becomes limited", person(physlm=0), person(physlm=1))
    for mechanism, pair, case, what in (
        (largest, visits(0, 77), "maximum_of_counts", "the largest of 8 counts"),
        (tenth, weaker, "distance_to_a_share", "how far from a tenth of the persons in poor health"),
        (halves, plan, "distance_to_a_histogram", "how far from half of the persons on either plan"),
        (limited, limitation, "linear_query", "the mean of a score from 0 to 1"),
    ):
        yield from reference(mechanism, PureDP(1.0), pair, case=case, relation=REPLACE, follows={"note": ""}, note=what)
        query: Any = mechanism.query
        # One step more for the rounding of an answer that is not on the lattice; counts are.
        rounding = mechanism.step if mechanism is limited else 0.0
        yield accuracy(
            mechanism,
            pair.x,
            Absolute(float(query(pair.x))),
            at_most=_SCALES * mechanism.steps(1) * mechanism.step + rounding,
            beta=_BETA,
            case=case,
            derived=True,
            note="error at most GS ln(1/beta) / eps, with beta = e^-3",
        )

    yield inequality(
        _sensitivities,
        statement="claimed sensitivities are the largest moves between neighbours",
        relation="==",
        level="L2",
        case="sensitivities",
        note="all pairs of neighbours among 4,096 datasets",
    )
    yield inequality(
        _distances,
        statement="distances to a property are Hamming distances to its nearest member",
        relation="==",
        level="L2",
        case="distances",
        note="all members of three properties, all datasets of four rows",
    )

    def of_counts(t: float) -> Setting:
        query = _largest_of_counts(int(t))
        return Setting(LatticeLaplace(query, 1.0), rand(), Absolute(float(query(rand()))))

    yield scaling(
        of_counts,
        parameter="t",
        at=(1, 4, 16, 64),
        exponent=0.0,
        others=(0.5, 1.0),
        curve=lambda _: math.log(2.0),
        case="error_of_the_maximum",
        note="the median error is ln 2 scales, whatever the number of counts",
    )

    # Both groups have 302 members without the person, who joins one: the top two tie on one side.
    tie = replaced("a person with many diseases is replaced", person(disea=33, hlthp=0), person(disea=10, hlthp=0))
    leader = LatticeLaplace(LargestCount((_WEAK, _DISEASED)), 1.0)
    yield broken(MUTANTS["argmax_released"], leader, tie, relation=REPLACE)
    over = MUTANTS["sum_of_sensitivities"]
    yield accuracy(
        over.build(largest),
        rand(),
        Absolute(float(largest.query(rand()))),
        at_most=_SCALES,
        beta=_BETA,
        case="sum_of_sensitivities",
        expected="deviation",
        is_mutant=True,
        note=over.note,
    )
    sampled = MUTANTS["distance_to_sampled_property"]
    yield from broken_and_deviating(sampled, tenth, weaker, relation=REPLACE)
    # Persons with a disease index of 25 to 37.9 are many more than those in poor health, so the distance is not 0.
    moving = data_dependent_property(Count("disea", low=25.0, high=37.9))
    both = replaced(
        "a person with many diseases is replaced by one in poor health",
        person(disea=33, hlthp=0),
        person(disea=10, hlthp=1),
    )
    yield _claim_declared_sensitivity(
        "data_dependent_property", ThresholdFromData(Count(equals=1.0), Count(equals=2.0))
    )
    yield broken(moving, tenth, both, relation=REPLACE)
    # The logarithm of the coinsurance rate goes up to ln 101 = 4.6 in these data.
    logs = LatticeLaplace(ClippedMean(size, "lncoins", 0.0, 1.0), 1.0, step=2.0**-25)
    free = replaced("a person's plan goes from free to full coinsurance", person(lncoins=0), person(lncoins=4.61512))
    yield _claim_declared_sensitivity("range_not_clipped", UnclippedMean(_SIZE, None, 3.0))
    yield broken(range_not_clipped(5.0), logs, free, relation=REPLACE)
