"""Document 000: differential privacy and the statistical query model."""

from __future__ import annotations

import math
from collections.abc import Iterator

from auditor.declare import Draft, Source, entry, exact, privacy
from auditor.guarantees import PureDP
from experiments._common import ADD_REMOVE, REPLACE, added, broken, person, replaced, visits
from mechanisms.geometric import MUTANTS, TwoSidedGeometric
from mechanisms.queries import Count, Histogram, Sum


@entry("000/geometric_mechanism", title="Two-sided geometric noise", source=Source("000", "section 2"))
def geometric() -> Iterator[Draft]:
    """Counts and sums of visits; the pair moves the answer by the whole sensitivity, event {output <= answer}."""
    count = TwoSidedGeometric(Count("hlthp", equals=1.0), math.e)
    pair = replaced("a person in poor health is replaced by one who is not", person(hlthp=1), person(hlthp=0))
    yield exact(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    yield privacy(count, PureDP(1.0), pair, case="count", relation=REPLACE)

    total = TwoSidedGeometric(Sum("mdvis", 0.0, 20.0, resolution=1.0), math.exp(1 / 20))
    yield exact(total, PureDP(1.0), visits(0, 20), case="sum_of_visits", relation=REPLACE)
    yield privacy(
        total,
        PureDP(1.0),
        [visits(0, 20), visits(0, 20, index=20_189), visits(5, 10)],
        case="sum_of_visits",
        relation=REPLACE,
    )

    cells = TwoSidedGeometric(Histogram("mdvis", edges=(0, 1, 3, 6, 11, 78), relation="add_remove_one"), math.e)
    one_more = added("one more person, with 2 visits", person(mdvis=2))
    yield exact(cells, PureDP(1.0), one_more, case="histogram_of_visits", relation=ADD_REMOVE)
    yield privacy(cells, PureDP(1.0), one_more, case="histogram_of_visits", relation=ADD_REMOVE)

    yield broken("one_sided", MUTANTS["one_sided"], count, pair)
    double = TwoSidedGeometric(Sum("mdvis", 0.0, 2.0, resolution=1.0), math.sqrt(math.e))
    yield broken("sensitivity_ignored", MUTANTS["unit_sensitivity"], double, visits(0, 2), relation=REPLACE)
    yield broken("rounded_laplace", MUTANTS["rounded_laplace"], count, pair)
    yield broken("sign_times_geometric", MUTANTS["sign_times_geometric"], count, pair)
