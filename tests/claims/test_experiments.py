"""The experiments: entries and their claims, exact levels, pairs."""

from __future__ import annotations

import re
from collections import Counter

import pandas as pd
import pytest

from auditor.accuracy.base import Theorem
from auditor.adversaries import Game
from auditor.conformity import StatedLaw
from auditor.declare import Claim, Entry
from auditor.guarantees import ApproxDP, PureDP
from auditor.neighbors import check_pairs
from auditor.results import Verdict
from experiments._common import ADD_REMOVE, REPLACE
from tests.claims.declared import (
    CLAIMS,
    CONTROLS,
    COVERED_BY_DELTA,
    INVENTORY,
    LEVELS,
    LISTED,
    MUTANTS,
    ON_THIS_PAIR,
    PRIVACY,
    SMALL,
    case_of,
    each_claim,
    each_entry,
    exact_level,
    name_of,
    of,
)

# ------------------------------------------------------------------------------- entries and ids


@each_entry
def test_an_entry_is_in_the_catalogue_or_further(entry: Entry) -> None:
    assert entry.id in INVENTORY or entry.id.startswith("further/")
    assert entry.title
    assert entry.source.document
    assert entry.source.place


@pytest.mark.parametrize("entry", LISTED, ids=lambda entry: entry.id)
def test_an_entrys_document_is_that_of_its_id(entry: Entry) -> None:
    assert entry.source.document == entry.id.partition("/")[0]
    module = entry.function.__module__
    assert module.startswith(f"experiments.document_{entry.source.document}"), module


def test_claim_ids_are_unique() -> None:
    assert [id_ for id_, times in Counter(claim.id for claim in CLAIMS).items() if times > 1] == []


@each_claim
def test_a_claim_id_is_entry_level_notion_and_case(claim: Claim) -> None:
    assert re.fullmatch(
        r"(00[0-4]|further)/[A-Za-z][A-Za-z0-9_]*/L[0-4]/"
        r"(pure_dp|approximate_dp|approximate_dp_at_epsilon|gaussian_dp|zcdp|renyi_dp|f-dp|conformity|"
        r"failure_rate|expected_error|smallest_parameter|exponent|phase_diagram|inequality)/[A-Za-z0-9][A-Za-z0-9_]*",
        claim.id,
    )
    assert claim.id.startswith(f"{claim.entry}/{claim.draft.level}/")
    assert claim.id.endswith(f"/{claim.draft.case}")


@each_entry
def test_an_entry_claims_that_its_reference_is_private(entry: Entry) -> None:
    held = [c for c in of(entry) if not c.draft.is_mutant and c.draft.expected == Verdict.CONSISTENT]
    if entry.id not in CONTROLS and "L1" in INVENTORY.get(entry.id, {"levels": ["L1"]})["levels"]:
        assert any(claim.draft.level == "L1" for claim in held)


@each_entry
def test_a_reference_with_a_law_is_checked_at_l0_on_the_same_pairs(entry: Entry) -> None:
    # Under another notion the law is the same one; a case is exact under one notion at least.
    known = [claim for claim in of(entry) if claim.draft.level == "L0" and claim.draft.pairs]
    exact = {claim.draft.case: [pair.name for pair in claim.draft.pairs] for claim in known}
    for claim in of(entry):
        held = claim.draft.expected == Verdict.CONSISTENT and not claim.draft.is_mutant
        if claim.draft.level == "L1" and held and claim.draft.pairs and hasattr(claim.draft.mechanism, "law"):
            assert set(exact[claim.draft.case]) <= {pair.name for pair in claim.draft.pairs}, claim.id


@each_entry
def test_an_entry_has_mutants(entry: Entry) -> None:
    owed = [name for name in MUTANTS if name.startswith(f"{entry.id}/")] if entry.id in INVENTORY else ["some"]
    assert not owed or any(claim.draft.is_mutant for claim in of(entry))


# -------------------------------------------------------------------------------- exact levels


@pytest.mark.parametrize("claim", PRIVACY, ids=lambda claim: claim.id)
def test_an_exact_level_agrees_with_what_is_expected(claim: Claim) -> None:
    """Premise of the sandwich; the slack is that of L0, for levels computed in floating point."""
    exact, claimed = exact_level(claim), claim.draft.guarantee.level
    if exact is None:
        assert claim.draft.level != "L0"
    elif claim.draft.expected == Verdict.CONSISTENT:
        assert exact <= claimed * (1 + 1e-9) + 1e-9, claim.id
    else:
        assert claim.draft.expected == Verdict.VIOLATION
        assert exact > claimed * (1 + 1e-3), claim.id


@pytest.mark.parametrize(
    "claim",
    [
        c
        for c in CLAIMS
        # At a positive delta a level is that of the pair, and the inventory's is not.
        if (isinstance(c.draft.guarantee, PureDP) or (c in PRIVACY and case_of(c) in ON_THIS_PAIR))
        and name_of(c) in MUTANTS
        and MUTANTS[name_of(c)]["true_epsilon"] in {*LEVELS, "unchanged"}
    ],
    ids=lambda claim: claim.id,
)
def test_a_mutants_exact_level_is_that_of_the_inventory(claim: Claim) -> None:
    exact, claimed = exact_level(claim), claim.draft.guarantee.level
    stated = MUTANTS[name_of(claim)]["true_epsilon"]
    assert exact is not None
    if case_of(claim) in ON_THIS_PAIR:
        assert exact <= LEVELS[stated](claimed)
        assert exact == pytest.approx(ON_THIS_PAIR[case_of(claim)], abs=5e-5)
    elif claim.draft.expected == Verdict.CONSISTENT:
        # A statement about all pairs; the claim's pairs need not attain it.
        assert exact <= LEVELS.get(stated, LEVELS["eps"])(claimed) * (1 + 1e-9)
    else:
        assert exact == pytest.approx(LEVELS[stated](claimed), rel=1e-9)


def test_values_that_need_a_pair_belong_to_mutants_that_are_claimed() -> None:
    assert set(ON_THIS_PAIR) <= {case_of(claim) for claim in CLAIMS if claim.draft.is_mutant}


def test_no_delta_alone_covers_what_a_reference_shows() -> None:
    """At an exact level of 0 a claim of a level above it says nothing of the level: nothing could refute it."""
    covered = {
        claim.id
        for claim in PRIVACY
        if isinstance(claim.draft.guarantee, ApproxDP)
        and claim.draft.guarantee.delta > 0
        and claim.draft.guarantee.level > 0
        and not claim.draft.is_mutant
        and claim.draft.expected == Verdict.CONSISTENT
        and exact_level(claim) == 0
    }
    assert covered == set(COVERED_BY_DELTA)


@pytest.mark.parametrize("claim", [c for c in PRIVACY if c.draft.level == "L0"], ids=lambda claim: claim.id)
def test_a_law_that_is_checked_is_that_of_what_is_drawn_from(claim: Claim) -> None:
    assert claim.draft.curves
    assert len(claim.draft.curves) == len(claim.draft.pairs)


# -------------------------------------------------------------------------------------- pairs


@pytest.mark.parametrize("claim", [c for c in CLAIMS if not isinstance(c.draft.guarantee, Theorem)], ids=lambda c: c.id)
def test_every_pair_is_of_neighbours(claim: Claim) -> None:
    """Each pair is of the claim's relation; where none is named, it differs in one row. Adversaries make up data."""
    assert claim.draft.pairs or isinstance(claim.draft.guarantee, StatedLaw) or isinstance(claim.draft.subject, Game)
    for pair in claim.draft.pairs:
        same_length = len(pair.x) == len(pair.y)
        check_pairs([pair], claim.draft.relation or (REPLACE if same_length else ADD_REMOVE))
    names = [pair.name for pair in claim.draft.pairs]
    assert len(names) == len(set(names)), "a report tells pairs apart by their names"


def test_the_data_are_real() -> None:
    # All but what would cost too much, or is about other data than rows of a table, runs on the whole of the RAND data.
    tables = {c.id: [d for p in c.draft.pairs for d in (p.x, p.y) if isinstance(d, pd.DataFrame)] for c in CLAIMS}
    small = {id_ for id_, data in tables.items() if data and min(map(len, data)) < 20_000}
    assert {"/".join(id_.split("/")[:2]) for id_ in small} <= set(SMALL)
