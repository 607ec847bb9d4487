"""Document 000, section 2: geometric noise."""

from __future__ import annotations

import math
from collections.abc import Iterator

from auditor.declare import Draft, Source, conformity, entry, exact, privacy
from auditor.guarantees import PureDP
from experiments._common import ADD_REMOVE, REPLACE, added, broken, deviating, person, replaced, visits
from mechanisms.geometric import MUTANTS, TwoSidedGeometric
from mechanisms.queries import Count, Histogram, Sum
from mechanisms.truncated_geometric import MUTANTS as TRUNCATED
from mechanisms.truncated_geometric import TruncatedGeometric


@entry("000/geometric_mechanism", title="Two-sided geometric noise", source=Source("000", "section 2"))
def geometric() -> Iterator[Draft]:
    """Counts and sums of visits; the pair moves the answer by the whole sensitivity, event {output <= answer}."""
    count = TwoSidedGeometric(Count("hlthp", equals=1.0), math.e)
    pair = replaced("a person in poor health is replaced by one who is not", person(hlthp=1), person(hlthp=0))
    yield exact(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    yield privacy(count, PureDP(1.0), pair, case="count", relation=REPLACE)
    yield conformity(count, pair, case="count")

    total = TwoSidedGeometric(Sum("mdvis", 0.0, 20.0, resolution=1.0), math.exp(1 / 20))
    yield exact(total, PureDP(1.0), visits(0, 20), case="sum_of_visits", relation=REPLACE)
    yield privacy(
        total,
        PureDP(1.0),
        [visits(0, 20), visits(0, 20, index=20_189), visits(5, 10)],
        case="sum_of_visits",
        relation=REPLACE,
    )
    yield conformity(total, visits(0, 20), case="sum_of_visits")

    cells = TwoSidedGeometric(Histogram("mdvis", edges=(0, 1, 3, 6, 11, 78), relation="add_remove_one"), math.e)
    one_more = added("one more person, with 2 visits", person(mdvis=2))
    yield exact(cells, PureDP(1.0), one_more, case="histogram_of_visits", relation=ADD_REMOVE)
    yield privacy(cells, PureDP(1.0), one_more, case="histogram_of_visits", relation=ADD_REMOVE)
    yield conformity(cells, one_more, case="histogram_of_visits")

    yield broken("one_sided", MUTANTS["one_sided"], count, pair)
    double = TwoSidedGeometric(Sum("mdvis", 0.0, 2.0, resolution=1.0), math.sqrt(math.e))
    yield broken("sensitivity_ignored", MUTANTS["unit_sensitivity"], double, visits(0, 2), relation=REPLACE)
    yield broken("rounded_laplace", MUTANTS["rounded_laplace"], count, pair)
    yield deviating("rounded_laplace", MUTANTS["rounded_laplace"], count, pair)
    yield broken("sign_times_geometric", MUTANTS["sign_times_geometric"], count, pair)
    yield deviating("sign_times_geometric", MUTANTS["sign_times_geometric"], count, pair)


@entry(
    "000/truncated_geometric",
    title="Geometric noise with the output clamped",
    source=Source("000", "section 2, last paragraph"),
)
def truncated() -> Iterator[Draft]:
    """Counts up to a public bound of 400; the pair that is worst when noise is redrawn has a count of 0 against 1."""
    count = TruncatedGeometric(Count("hlthp", equals=1.0), math.e, 400)
    pair = replaced("a person in poor health is replaced by one who is not", person(hlthp=1), person(hlthp=0))
    # Nobody has 36 visits, so the clamped half of the noise is all in one cell.
    rare, at_zero = TruncatedGeometric(Count("mdvis", equals=36.0), math.e, 400), visits(0, 36)
    for mechanism, moved, case in ((count, pair, "count"), (rare, at_zero, "count_at_the_end")):
        yield exact(mechanism, PureDP(1.0), moved, case=case, relation=REPLACE)
        yield privacy(mechanism, PureDP(1.0), moved, case=case, relation=REPLACE)
        yield conformity(mechanism, moved, case=case)

    yield broken("reject_and_redraw", TRUNCATED["reject_and_redraw"], rare, at_zero, relation=REPLACE)
    yield deviating("reject_and_redraw", TRUNCATED["reject_and_redraw"], rare, at_zero)
    yield broken("noise_clamped", TRUNCATED["noise_clamped"], count, pair, relation=REPLACE)
    yield deviating("noise_clamped", TRUNCATED["noise_clamped"], count, pair)
    # Everybody is counted, and an output above the number of rows gives away that the dataset is the larger one.
    everybody = TruncatedGeometric(Count("mdvis", low=0.0, relation="add_remove_one"), math.e, 30_000)
    one_more = added("one more person, with 2 visits", person(mdvis=2))
    yield broken("data_dependent_bound", TRUNCATED["bound_from_data"], everybody, one_more, relation=ADD_REMOVE)
