"""Document 004: model-agnostic private learning via stability."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.declare import Draft, Source, entry, exact, privacy
from auditor.guarantees import PureDP
from auditor.neighbors import Pair
from experiments._common import ADD_REMOVE, REPLACE, added, broken, person
from experiments._queries import THRESHOLD, opposed_pair, stream
from mechanisms.laplace import MUTANTS, LatticeLaplace
from mechanisms.queries import Count, SeveralCounts, Sum
from mechanisms.sparse_vector import MUTANTS as VARIANTS
from mechanisms.sparse_vector import SparseVector, VariantName, Variation, v3_supremum

#: Nine cheap answers and a costly one: 302^9 303 against 303^9 302.
_RARE = "wwwwwwwwwd"
#: Five of each, for the variants that never stop: 302^5 303^5 against 303^5 302^5.
_HALVES = "wwwwwddddd"


@entry("004/laplace_mech", title="Laplace mechanism", source=Source("004", "Definition 2.5, Lemma 2.6"))
def laplace() -> Iterator[Draft]:
    """A sum of visits, clipped to [0, 2], with one person added; event {output <= 0 more}."""
    total = LatticeLaplace(Sum("mdvis", 0.0, 2.0, relation="add_remove_one"), 1.0)
    pair = added("one more person, with 2 visits", person(mdvis=2))
    yield exact(total, PureDP(1.0), pair, case="sum_of_visits", relation=ADD_REMOVE)
    yield privacy(total, PureDP(1.0), pair, case="sum_of_visits", relation=ADD_REMOVE)
    yield broken("scale_inverted", MUTANTS["scale_upside_down"], total, pair)
    yield broken("half_scale", MUTANTS["half_scale"], total, pair)
    yield broken("gaussian_of_same_scale", MUTANTS["gaussian_same_scale"], total, pair)
    yield broken("one_sided", MUTANTS["one_sided"], total, pair)
    counts = SeveralCounts(tuple(Count("mdvis", low=float(v), relation="add_remove_one") for v in (1, 2, 3)))
    all_up = added("one more person, with 5 visits, in all three counts", person(mdvis=5))
    yield broken("linf_sensitivity", MUTANTS["linf_for_l1"], LatticeLaplace(counts, 1.0), all_up, relation=ADD_REMOVE)
    # Nobody has 36 visits: 0 against 1, where doubles are finest and the leak is largest.
    nobody = LatticeLaplace(Count("mdvis", equals=36.0, relation="add_remove_one"), 1.0)
    first = added("one more person, with 36 visits, the first", person(mdvis=36))
    yield broken("float_inverse_cdf", MUTANTS["textbook_float"], nobody, first, relation=ADD_REMOVE)


@entry(
    "004/svt_mutants",
    title="Sparse vector, six published variants",
    source=Source("004", "Algorithm 1; Lyu, Su and Li 2017"),
)
def sparse_vector() -> Iterator[Draft]:
    """V1 and V2 are correct, V3 to V6 are not; counts of persons at the threshold, in the textbook orientation."""
    pair, halves = opposed_pair(), opposed_pair()
    correct: tuple[tuple[VariantName, str], ...] = (("V1", "v1_lyu"), ("V2", "v2_dwork_roth"))
    for variant, case in correct:
        mechanism = SparseVector(stream(_RARE), 1.0, THRESHOLD, cutoff=2, variant=variant)
        yield exact(mechanism, PureDP(1.0), pair, case=case, relation=REPLACE)
        yield privacy(mechanism, PureDP(1.0), pair, case=case, relation=REPLACE)

    base = SparseVector(stream(_RARE), 1.0, THRESHOLD, cutoff=1)
    yield _released(base, pair)
    yield broken("v4_lee_clifton", VARIANTS["V4"], base, pair)
    both = SparseVector(stream(_HALVES), 1.0, THRESHOLD, cutoff=1)
    yield broken("v5_stoddard", VARIANTS["V5"], both, halves)
    yield broken("v6_chen", VARIANTS["V6"], both, halves)


def _released(base: SparseVector, pair: Pair) -> Draft:
    """V3 has no finite law; the supremum of its privacy loss on the pair is computed by quadrature."""
    worst = v3_supremum(Variation("V3")(base), pair.x, pair.y)
    return broken("v3_roth_2011", VARIANTS["V3"], base, pair, exact_level=max(worst.loss, 0.0))
