"""Document 003, sections 8.2 and 9.2: the VC dimension of a class against its size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from auditor.audits.inequality import Row
from auditor.claims import Draft, Erratum, Source, as_corrected, as_printed, entry, inequality
from mechanisms.learning.class_sizes import (
    Table,
    at_most,
    conjunctions,
    parities,
    points,
    sauer,
    thresholds,
    vc_dimension,
    written_conjunctions,
)

#: Also shown by the entry of the learner, whose sample size uses the bound.
J10 = Erratum(
    "J10",
    "false",
    "log |C| <= d VC(C) for every class C of functions on {0,1}^d",
    fails="for the document's own thresholds c_t, 0 <= t <= 2^d: VC(C) = 1, and there are 2^d + 1 of them",
    correction="Sauer's sum, |C| <= sum over i <= VC of C(2^d, i), which is at most (2^d)^VC for VC >= 2: the printed "
    "bound can fail at VC = 1 only, and there by one function",
)

_CLASSES: dict[str, Callable[[int], Table]] = {
    "thresholds": thresholds,
    "points": points,
    "conjunctions": conjunctions,
    "parities": parities,
    "at most one point": lambda d: at_most(d, 1),
    "at most two points": lambda d: at_most(d, 2),
}
#: Every class in these dimensions; thresholds and functions of one point further too.
_DIMENSIONS = (1, 2, 3, 4)


@entry(
    "003/vc_and_size_bounds",
    title="VC dimension against the size of a class",
    source=Source("003", "section 8.2, fact 2; section 9.2"),
    errata=[J10],
)
def class_sizes() -> Iterator[Draft]:
    """Sizes by counting different functions, VC dimensions by trying all sets of points.

    At VC = 0 a class has one function, and (2^d)^0 = 1: the printed bound holds. Not only thresholds break it at
    VC = 1: the functions that are 1 at no more than one point do.
    """
    yield inequality(
        lambda: [(name, vc, math.log2(size)) for name, _, size, vc in _measured_sizes()],
        statement="VC(C) <= log2 |C|",
        case="dimension_at_most_log_size",
    )
    yield as_printed(
        "J10",
        inequality(
            lambda: [(name, float(size), 2.0 ** (d * vc)) for name, d, size, vc in _measured_sizes()],
            statement="|C| <= (2^d)^VC(C)",
            case="size_as_printed",
            expected="deviation",
        ),
    )
    yield as_corrected(
        "J10",
        inequality(
            lambda: [(name, float(size), float(sauer(1 << d, vc))) for name, d, size, vc in _measured_sizes()],
            statement="|C| <= sum over i <= VC of C(2^d, i)",
            case="size_as_corrected",
        ),
    )
    yield as_corrected(
        "J10",
        inequality(
            lambda: [(name, float(size), 2.0 ** (d * vc) + (vc == 1)) for name, d, size, vc in _measured_sizes()],
            statement="|C| <= (2^d)^VC(C), and one more where VC = 1",
            case="size_and_one_more_at_dimension_one",
        ),
    )
    yield inequality(
        _sauer_against_printed,
        statement="Sauer's sum is at most (2^d)^VC for VC >= 2",
        case="printed_bound_holds_from_two",
    )
    yield inequality(
        lambda: [
            (f"d = {d}", float(len(at_most(d, k))), float(sauer(1 << d, k))) for d in (2, 3, 4) for k in (1, 2, 3)
        ],
        statement="functions that are 1 at no more than VC points are as many as Sauer's sum",
        relation="==",
        case="sauer_is_attained",
    )
    yield inequality(
        lambda: [(f"d = {d}", float(vc_dimension(parities(d))), float(d)) for d in (1, 2, 3, 4)],
        statement="parities: VC = d = log2 |C|, so that d VC is too large by a factor of d",
        relation="==",
        case="parities",
    )
    yield inequality(
        lambda: [
            (f"conjunctions, d = {d}", float(len(written_conjunctions(d))), float(sauer(1 << d, d))) for d in (2, 3, 4)
        ],
        statement="|C| <= sum over i <= VC of C(2^d, i)",
        case="representations_counted",
        expected="deviation",
        is_mutant=True,
        note="all 4^d sets of literals are counted, of which many are the same function: a lemma is refuted that holds",
    )


def _measured_sizes() -> list[tuple[str, int, int, int]]:
    """Of each class: its name, d, its size and its VC dimension."""
    found = [(f"{name}, d = {d}", d, build(d)) for d in _DIMENSIONS for name, build in _CLASSES.items()]
    found += [(f"thresholds, d = {d}", d, thresholds(d)) for d in (5, 6)]
    return [(name, d, len(table), vc_dimension(table)) for name, d, table in found]


def _sauer_against_printed() -> list[Row]:
    """Logarithms, for numbers of any size; with VC up to all of the points."""
    return [
        (f"d = {d}, VC = {vc}", math.log2(sauer(1 << d, vc)), float(d * vc))
        for d in (1, 2, 3, 4, 6, 8)
        for vc in sorted({2, 3, 4, 8, 1 << d})
        if 2 <= vc <= 1 << d
    ]
