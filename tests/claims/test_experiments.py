"""The experiments: entries and their claims, exact levels, pairs."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from auditor.audits.accuracy.base import Theorem
from auditor.audits.adversaries import Game
from auditor.audits.check_mechanism import check_mechanism
from auditor.audits.conformity import StatedLaw
from auditor.claims import Claim, Entry
from auditor.datasets import check_pairs
from auditor.privacy.guarantees import ApproxDP, DeltaDP, PureDP
from auditor.results import Verdict
from experiments.common import ADD_REMOVE, REPLACE
from tests.cases import check_each
from tests.claims.declared import (
    CLAIMS,
    CONTROLS,
    COVERED_BY_DELTA,
    ENTRIES,
    INVENTORY,
    LISTED,
    MUTANTS,
    PRIVACY,
    SMALL,
    case_of,
    checked_by,
    each_claim,
    each_entry,
    exact_level,
    name_of,
    of,
    stated_level,
    stated_on_pair,
    written_on_pair,
)

ROOT = Path(__file__).resolve().parents[2]

# ------------------------------------------------------------------------------- entries and ids


@each_entry
def test_an_entry_is_in_the_catalogue_or_further(entry: Entry) -> None:
    assert entry.id in INVENTORY or entry.id.startswith("further/")
    assert entry.title
    assert entry.source.document
    assert entry.source.place


@check_each(LISTED)
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


def owes_privacy(entry: Entry) -> bool:
    return entry.id not in CONTROLS and "L1" in INVENTORY.get(entry.id, {"levels": ["L1"]})["levels"]


@check_each([e for e in ENTRIES if owes_privacy(e)])
def test_an_entry_claims_that_its_reference_is_private(entry: Entry) -> None:
    held = [c for c in of(entry) if not c.draft.is_mutant and c.draft.expected == Verdict.CONSISTENT]
    assert any(claim.draft.level == "L1" for claim in held)


def has_a_law(claim: Claim) -> bool:
    """Whether it is the reference's, and its distribution is stated."""
    draft = claim.draft
    held = draft.expected == Verdict.CONSISTENT and not draft.is_mutant
    return draft.level == "L1" and held and bool(draft.pairs) and hasattr(draft.mechanism, "law")


#: Pairs on which a case is exact. Under another notion the distribution is the same one; it is exact under one at
#: least.
EXACT = {case_of(c): {pair.name for pair in c.draft.pairs} for c in CLAIMS if c.draft.level == "L0" and c.draft.pairs}


@check_each([c for c in CLAIMS if has_a_law(c)])
def test_a_reference_with_a_law_is_checked_at_l0_on_the_same_pairs(claim: Claim) -> None:
    assert EXACT[case_of(claim)] <= {pair.name for pair in claim.draft.pairs}


@check_each([e for e in ENTRIES if e.id not in INVENTORY or any(name.startswith(f"{e.id}/") for name in MUTANTS)])
def test_an_entry_has_mutants(entry: Entry) -> None:
    assert any(claim.draft.is_mutant for claim in of(entry))


# -------------------------------------------------------------------------------- exact levels


@check_each(PRIVACY)
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


def decimals(stated: Any) -> int | None:
    """Decimals of a number that is written out; None for an expression."""
    found = re.fullmatch(r"\d+\.(\d+)", stated) if isinstance(stated, str) else None
    return len(found[1]) if found else None


def is_computed(claim: Claim) -> bool:
    return "not computed: " not in MUTANTS[name_of(claim)]["note"]


#: Claims of what the inventory lists as mutants, and those that are broken.
KNOWN = [
    claim
    for claim in PRIVACY
    if name_of(claim) in MUTANTS and (claim.draft.is_mutant or MUTANTS[name_of(claim)]["kind"] == "violation")
]
BROKEN = [claim for claim in KNOWN if claim.draft.expected == Verdict.VIOLATION]


@check_each([c for c in BROKEN if is_computed(c)])
def test_a_mutants_exact_level_is_that_of_the_inventory(claim: Claim) -> None:
    exact, stated, guarantee = exact_level(claim), stated_level(claim), claim.draft.privacy_guarantee
    assert exact is not None
    if stated is not None and not isinstance(guarantee, DeltaDP):  # whose level is a delta
        assert exact <= stated * (1 + 1e-9)
    if (on_pair := stated_on_pair(claim)) is not None:
        # A number is right to its last digit; scales of Gaussian noise are rounded to lattices, about 1e-8.
        places = decimals(written_on_pair(claim))
        assert exact == pytest.approx(on_pair, rel=1e-7 if places is None else 0, abs=0.5 * 10.0 ** -(places or 99))
    elif checked_by(claim) is None:
        # At a positive delta a finite level is that of the pair, and the inventory's is not.
        assert stated is not None, "neither stated nor computed elsewhere"
        assert getattr(guarantee, "delta", 0.0) == 0 or stated == math.inf
        assert exact == pytest.approx(stated, rel=1e-9)


@check_each([c for c in KNOWN if c.draft.expected == Verdict.CONSISTENT and isinstance(c.draft.guarantee, PureDP)])
def test_a_harmless_mutants_level_is_at_most_the_claimed_one(claim: Claim) -> None:
    # A statement about all pairs; the claim's pairs need not attain it.
    exact, stated = exact_level(claim), stated_level(claim)
    assert exact is not None
    assert exact <= (claim.draft.guarantee.level if stated is None else stated) * (1 + 1e-9)


@check_each([name for name, item in MUTANTS.items() if item["kind"] == "violation"])
def test_how_large_a_violation_is_has_been_said(name: str) -> None:
    """Every claim of it is held against the inventory above, or in a test named there, or the note says why not."""
    tests = MUTANTS[name].get("checked_by", {})
    for place in tests.values() if isinstance(tests, dict) else [tests]:
        path, _, test = place.partition("::")
        assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), place
    claims = [claim for claim in BROKEN if name_of(claim) == name]
    assert claims or tests
    # What has a distribution is computed.
    assert all(exact_level(claim) is None for claim in claims if not is_computed(claim))


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


@check_each([c for c in PRIVACY if c.draft.level == "L0"])
def test_a_law_that_is_checked_is_that_of_what_is_drawn_from(claim: Claim) -> None:
    assert claim.draft.curves
    assert len(claim.draft.curves) == len(claim.draft.pairs)


# -------------------------------------------------------------------------------------- pairs


@check_each([c for c in CLAIMS if not isinstance(c.draft.guarantee, Theorem)])
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


#: One privacy claim of each mechanism, a reference's of one class in an entry, with its pairs.
DRAWN = {
    (claim.entry, type(claim.draft.mechanism), claim.draft.is_mutant and claim.id): claim
    for claim in CLAIMS
    if claim.draft.level == "L1" and claim.draft.pairs
}


@check_each(DRAWN.values())
def test_a_mechanism_keeps_the_conventions(claim: Claim) -> None:
    """Wrong mutants too: they are wrong in what they release. Distributions are compared by the claims of L3."""
    mechanism, pair = claim.draft.mechanism, claim.draft.pairs[0]
    assert mechanism is not None
    check_mechanism(mechanism, pair.x, pair.y, draws=0)
