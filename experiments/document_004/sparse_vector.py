"""Document 004: model-agnostic private learning via stability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from auditor.analysts import Phases, ThresholdSeeker
from auditor.declare import Draft, Source, conformity, entry, exact, mutant, privacy
from auditor.dialogue import ExactDialogue
from auditor.guarantees import PureDP
from auditor.neighbors import Pair
from experiments._common import ADD_REMOVE, REPLACE, added, broken, deviating, person
from experiments._queries import THRESHOLD, opposed_pair, stream
from mechanisms.laplace import MUTANTS, LatticeLaplace
from mechanisms.queries import Count, SeveralCounts, Sum
from mechanisms.sparse_vector import MUTANTS as VARIANTS
from mechanisms.sparse_vector import SparseVector, VariantName, Variation
from mechanisms.sparse_vector_law import v3_supremum

#: Nine cheap answers and a costly one: 302^9 303 against 303^9 302.
_RARE = "wwwwwwwwwd"
#: Five of each, for the variants that never stop: 302^5 303^5 against 303^5 302^5.
_HALVES = "wwwwwddddd"
#: One of each, for an analyst who asks them again and again: 302 303 against 303 302.
_BOTH = "wd"
#: An ordered pool: below the threshold and then above, against above and then below. Of all places of the step among
#: 15 queries none costs more.
_ORDERED = "wwwwwwwwwwddddd"


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


@entry(
    "004/svt_mutants",
    title="Sparse vector, six published variants",
    source=Source("004", "Algorithm 1; Lyu, Su and Li 2017"),
)
def sparse_vector() -> Iterator[Draft]:
    """V1 and V2 are correct, V3 to V6 are not; counts of persons at the threshold, in the textbook orientation.

    What follows "__" in a case is an analyst who chooses the queries in view of past answers; elsewhere the list is
    fixed.
    """
    pair, halves = opposed_pair(), opposed_pair()
    correct: tuple[tuple[VariantName, str], ...] = (("V1", "v1_lyu"), ("V2", "v2_dwork_roth"))
    for variant, case in correct:
        mechanism = SparseVector(stream(_RARE), 1.0, THRESHOLD, cutoff=2, variant=variant)
        yield exact(mechanism, PureDP(1.0), pair, case=case, relation=REPLACE)
        yield privacy(mechanism, PureDP(1.0), pair, case=case, relation=REPLACE)
        yield conformity(mechanism, pair, case=case)

    base = SparseVector(stream(_RARE), 1.0, THRESHOLD, cutoff=1)
    yield _released(base, pair)
    yield broken("v4_lee_clifton", VARIANTS["V4"], base, pair)
    yield deviating("v4_lee_clifton", VARIANTS["V4"], base, pair)
    both = SparseVector(stream(_HALVES), 1.0, THRESHOLD, cutoff=1)
    yield broken("v5_stoddard", VARIANTS["V5"], both, halves)
    yield broken("v6_chen", VARIANTS["V6"], both, halves)
    yield from _asked_adaptively(pair)


def _asked_adaptively(pair: Pair) -> Iterator[Draft]:
    """The same guarantee for adaptive analysts; V1 and V4 against one of them, V1 and V6 against another."""
    private = SparseVector(stream(_ORDERED), 1.0, THRESHOLD, cutoff=2)
    seeker = ThresholdSeeker(range(len(_ORDERED)))
    found = ExactDialogue(private, seeker)
    yield exact(found, PureDP(1.0), pair, case="v1_lyu__threshold_seeker", relation=REPLACE)
    yield privacy(found, PureDP(1.0), pair, case="v1_lyu__threshold_seeker", relation=REPLACE)
    yield conformity(found, pair, case="v1_lyu__threshold_seeker")
    yield mutant(
        "v4_lee_clifton__threshold_seeker",
        ExactDialogue(replace(private, variant="V4"), seeker),
        PureDP(1.0),
        pair,
        note="bisection over an ordered pool, two answers above the threshold allowed",
    )
    private = SparseVector(stream(_BOTH), 1.0, THRESHOLD, cutoff=2)
    # Nine cheap answers before each of the two costly ones that are allowed, whenever they come.
    epochs = ExactDialogue(private, Phases(0, 1, length=9, epochs=2))
    yield exact(epochs, PureDP(1.0), pair, case="v1_lyu__phases", relation=REPLACE)
    yield privacy(epochs, PureDP(1.0), pair, case="v1_lyu__phases", relation=REPLACE)
    yield conformity(epochs, pair, case="v1_lyu__phases")
    yield mutant(
        "v6_chen__phases",
        ExactDialogue(replace(private, variant="V6"), Phases(0, 1, length=2, epochs=3)),
        PureDP(1.0),
        pair,
        note="two cheap queries and a costly one, begun anew after each answer above the threshold, three times",
    )


def _released(base: SparseVector, pair: Pair) -> Draft:
    """V3 has no finite law; the supremum of its privacy loss on the pair is computed by quadrature."""
    worst = v3_supremum(Variation("V3")(base), pair.x, pair.y)
    return broken("v3_roth_2011", VARIANTS["V3"], base, pair, exact_level=max(worst.loss, 0.0))
