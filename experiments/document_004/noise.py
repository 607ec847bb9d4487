"""Document 004: the Laplace mechanism."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.declare import Draft, Source, conformity, entry, exact, privacy
from auditor.guarantees import PureDP
from experiments._common import ADD_REMOVE, added, broken, deviating, person
from mechanisms.laplace import MUTANTS, LatticeLaplace
from mechanisms.queries import Count, SeveralCounts, Sum


@entry("004/laplace_mech", title="Laplace mechanism", source=Source("004", "Definition 2.5, Lemma 2.6"))
def laplace() -> Iterator[Draft]:
    """A sum of visits, clipped to [0, 2], with one person added; event {output <= 0 more}."""
    total = LatticeLaplace(Sum("mdvis", 0.0, 2.0, relation="add_remove_one"), 1.0)
    pair = added("one more person, with 2 visits", person(mdvis=2))
    yield exact(total, PureDP(1.0), pair, case="sum_of_visits", relation=ADD_REMOVE)
    yield privacy(total, PureDP(1.0), pair, case="sum_of_visits", relation=ADD_REMOVE)
    yield conformity(total, pair, case="sum_of_visits")
    yield broken("scale_inverted", MUTANTS["scale_upside_down"], total, pair)
    yield broken("half_scale", MUTANTS["half_scale"], total, pair)
    yield broken("gaussian_of_same_scale", MUTANTS["gaussian_same_scale"], total, pair)
    yield deviating("gaussian_of_same_scale", MUTANTS["gaussian_same_scale"], total, pair)
    yield broken("one_sided", MUTANTS["one_sided"], total, pair)
    counts = SeveralCounts(tuple(Count("mdvis", low=float(v), relation="add_remove_one") for v in (1, 2, 3)))
    all_up = added("one more person, with 5 visits, in all three counts", person(mdvis=5))
    yield broken("linf_sensitivity", MUTANTS["linf_for_l1"], LatticeLaplace(counts, 1.0), all_up, relation=ADD_REMOVE)
    # Nobody has 36 visits: 0 against 1, where doubles are finest and the leak is largest.
    nobody = LatticeLaplace(Count("mdvis", equals=36.0, relation="add_remove_one"), 1.0)
    first = added("one more person, with 36 visits, the first", person(mdvis=36))
    yield broken("float_inverse_cdf", MUTANTS["textbook_float"], nobody, first, relation=ADD_REMOVE)
