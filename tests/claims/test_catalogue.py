"""The experiments against the inventory of the catalogue, both ways."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from auditor.audits.accuracy import PowerLaw
from auditor.audits.accuracy.base import Theorem
from auditor.audits.conformity import StatedLaw
from auditor.audits.inequality import Inequality
from auditor.claims import Claim, Entry
from auditor.cli.showing import owed_lines
from auditor.privacy.guarantees import Guarantee
from auditor.results import Verdict
from tests.cases import check_each
from tests.claims.declared import (
    CLAIMS,
    COMPLETE,
    ENTRIES,
    EXPERIMENTS,
    IN_TESTS,
    INVENTORY,
    LISTED,
    MUTANTS,
    inherited,
    left_out,
    name_of,
    of,
)


@pytest.fixture(scope="module", autouse=True)
def _inventory_read_once() -> Iterator[None]:
    """A text of TOML is read once in these tests: the inventory takes longer than a check."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tomllib, "loads", functools.cache(tomllib.loads))
        yield


# ---------------------------------------------------------------------- the inventory, both ways

ROOT = Path(__file__).resolve().parents[2]

# -------------------------------------------------------------------------------------- mutants

#: Violations that are computed and not drawn, as they are too rare for an audit: at best 14,000 draws a side show
#: m9b, and a threshold that is kept costs 3/lambda for 2.5/lambda after four passes.
ONLY_COMPUTED = {"004/svt_mutants/m9b_value_released_on_bot", "004/slq/one_threshold_for_both_tests"}

#: Mutants that no constructor refuses.
AUDITED = [name for name, item in MUTANTS.items() if item["kind"] != "rejected"]


@check_each(AUDITED)
def test_a_mutant_of_the_inventory_is_claimed(name: str) -> None:
    claims = [claim for claim in CLAIMS if name_of(claim) == name]
    if name in IN_TESTS:
        assert MUTANTS[name]["kind"] == "harness"
        assert f"def {IN_TESTS[name][1]}(" in (ROOT / IN_TESTS[name][0]).read_text(encoding="utf-8")
        return
    assert claims
    private = {c.draft.expected for c in claims if isinstance(c.draft.guarantee, Guarantee)}
    other = {c.draft.expected for c in claims if not isinstance(c.draft.guarantee, Guarantee) and c.draft.is_mutant}
    assert other <= {Verdict.DEVIATION}
    match MUTANTS[name]["kind"]:
        case "violation":
            assert private == (set() if name in ONLY_COMPUTED else {Verdict.VIOLATION})
            assert private or any(isinstance(claim.draft.guarantee, Inequality) for claim in claims)
        case "benign":
            # Where nothing private is claimed, a claim of accuracy says so.
            accurate = {c.draft.expected for c in claims if isinstance(c.draft.guarantee, Theorem)}
            assert (private or accurate) == {Verdict.CONSISTENT}
        case "deviation":  # none of privacy: that must not be found, and the deviation is to
            assert private <= {Verdict.CONSISTENT}
            assert other
            assert "L1" not in INVENTORY[name.rpartition("/")[0]]["levels"] or private
        case "accuracy":
            assert private <= {Verdict.CONSISTENT}
            assert any(isinstance(claim.draft.guarantee, Theorem) for claim in claims)
        case "harness":
            assert other


@check_each([c for c in CLAIMS if c.draft.is_mutant and c.entry in INVENTORY])
def test_a_mutant_that_is_claimed_is_in_the_inventory(claim: Claim) -> None:
    assert name_of(claim) in MUTANTS
    assert MUTANTS[name_of(claim)]["kind"] != "rejected"


#: Entries that inherit the mutants of others.
HEIRS = [id_ for id_, item in INVENTORY.items() if item["mutants_from"]]


@check_each(HEIRS)
def test_a_mutant_that_is_inherited_is_owed_or_left_out_for_a_reason(id_: str) -> None:
    """What is owed has to be claimed, as any other mutant; what is left out is so nowhere but in this entry."""
    names, left = inherited(id_), left_out(id_)
    owed = {name for name in names if f"{id_}/{name}" in MUTANTS}
    assert owed | set(left) == set(names)
    assert not owed & set(left)
    claimed = {name_of(claim) for claim in CLAIMS}
    for name, item in left.items():
        assert f"{id_}/{name}" not in claimed, "it is claimed after all"
        assert f"{names[name]['bank']}/{name}" in claimed
        assert "claimed_as" not in item or f"{id_}/{item['claimed_as']}" in claimed


WITH_A_LAW = [entry for entry in LISTED if any(claim.draft.level == "L0" and claim.draft.curves for claim in of(entry))]


@check_each(WITH_A_LAW)
def test_an_entry_with_an_exact_law_is_exact_in_the_inventory(entry: Entry) -> None:
    assert INVENTORY[entry.id]["exact"]


@check_each([id_ for id_, item in INVENTORY.items() if "L3" in item["levels"]])
def test_where_conformity_is_owed_the_reference_is_held_against_its_law(id_: str) -> None:
    claims = [claim for claim in of(registered(id_)) if claim.draft.level == "L3"]
    assert any(claim.draft.expected == Verdict.CONSISTENT for claim in claims)


@check_each([c for c in CLAIMS if c.draft.level == "L3"])
def test_a_mutant_is_held_against_the_law_of_something_else(claim: Claim) -> None:
    assert isinstance(claim.draft.guarantee, StatedLaw)
    assert claim.draft.is_mutant == (claim.draft.expected == Verdict.DEVIATION)
    if claim.draft.is_mutant:
        reference: object = claim.draft.guarantee.reference
        assert reference != claim.draft.mechanism


@check_each(LISTED)
def test_what_an_entry_owes_is_shown_with_the_claims_that_meet_it(entry: Entry) -> None:
    """What is claimed under another name stands among what is left out."""
    shown = list(owed_lines(entry.id, [str(EXPERIMENTS)], of(entry)))
    item, text = INVENTORY[entry.id], "\n".join(shown)
    assert shown[0] == f"{entry.id} owes"
    for mutant in item["mutants"]:
        name = f"{entry.id}/{mutant['name']}"
        line = next(line for line in shown if line.startswith(f"  mutant      {mutant['name']} "))
        claimed = [claim.id for claim in of(entry) if name_of(claim) == name]
        assert line.partition("): ")[2] == ", ".join(claimed) or name in IN_TESTS or mutant["kind"] == "rejected"
    assert all(part in text for part in [*item["pairs"], *item["accuracy"], *(e["id"] for e in item["errata"])])
    assert all(left["reason"] in text for left in item.get("inherited_elsewhere", []))


# ------------------------------------------------------------------------- entries that are complete

complete = check_each(COMPLETE)


def registered(id_: str) -> Entry:
    found = [entry for entry in ENTRIES if entry.id == id_]
    assert len(found) == 1, f"{id_} is owed"
    return found[0]


@complete
def test_every_level_that_is_owed_is_claimed(id_: str) -> None:
    claimed = {claim.draft.level for claim in of(registered(id_))}
    assert claimed >= set(INVENTORY[id_]["levels"])


@check_each([id_ for id_ in COMPLETE if INVENTORY[id_]["accuracy"]])
def test_what_is_owed_in_accuracy_is_claimed_to_hold(id_: str) -> None:
    """At least one claim an item, and none of those that show an exponent beside a bound's counts."""
    claims = [claim for claim in of(registered(id_)) if claim.draft.level == "L4" and not claim.draft.is_mutant]
    held = [claim.draft.guarantee for claim in claims if claim.draft.expected == Verdict.CONSISTENT]
    criteria = [law for law in held if not isinstance(law, PowerLaw) or law.criterion]
    assert len(criteria) >= len(INVENTORY[id_]["accuracy"])
    assert any(not isinstance(law, PowerLaw) for law in criteria)


@check_each([id_ for id_, item in INVENTORY.items() if "claimed_by" in item])
def test_claims_that_are_named_for_an_item_of_accuracy_are_made(id_: str) -> None:
    made = {claim.id: claim.draft for claim in of(registered(id_))}
    for item, named in zip(INVENTORY[id_]["accuracy"], INVENTORY[id_]["claimed_by"], strict=True):
        drafts = [made[f"{id_}/{name}"] for name in named]
        assert not any(draft.is_mutant for draft in drafts), item
        assert any(draft.expected == Verdict.CONSISTENT for draft in drafts), item


@check_each([id_ for id_ in COMPLETE if INVENTORY[id_]["exponents"]])
def test_every_exponent_that_is_owed_is_claimed(id_: str) -> None:
    laws = [claim.draft.guarantee for claim in of(registered(id_)) if claim.draft.expected == Verdict.CONSISTENT]
    claimed = {(round(law.exponent, 6), law.criterion) for law in laws if isinstance(law, PowerLaw)}
    for owed in INVENTORY[id_]["exponents"]:
        value = round(float(Fraction(owed["exponent"])), 6)
        if owed["quantity"].startswith("achieved"):  # what a bound is compared with; shown, and no criterion
            continue
        # A formula may be all that has the exponent; that a measured number has it says more.
        assert (value, True) in claimed or (not owed["criterion"] and (value, False) in claimed), owed


CRITERIA = [c for c in CLAIMS if isinstance(c.draft.guarantee, PowerLaw) and c.draft.guarantee.criterion]


@check_each(CRITERIA)
def test_exponents_that_are_criteria_are_told_from_their_neighbours(claim: Claim) -> None:
    assert isinstance(claim.draft.guarantee, PowerLaw)
    assert claim.draft.guarantee.others


@complete
def test_published_errata_are_those_that_are_owed(id_: str) -> None:
    owed = {item["id"]: item["class"] for item in INVENTORY[id_]["errata"] if item["class"] in ("false", "proof")}
    assert {erratum.id: erratum.kind for erratum in registered(id_).errata} == owed


@check_each([entry for entry in ENTRIES if entry.errata])
def test_nothing_is_published_that_the_catalogue_does_not_class(entry: Entry) -> None:
    classes = {item["id"]: item["class"] for item in INVENTORY.get(entry.id, {"errata": []})["errata"]}
    for erratum in entry.errata:
        assert classes.get(erratum.id) == erratum.kind
        assert erratum.summary
        assert erratum.fails
        assert erratum.correction


@check_each([entry for entry in ENTRIES if entry.errata])
def test_an_erratum_is_shown_beside_what_is_right(entry: Entry) -> None:
    for erratum in entry.errata:
        shown = [claim.draft.shows for claim in of(entry)]
        roles = {one.role for one in shown if one is not None and one.erratum == erratum.id}
        wanted = {"as printed", "as corrected"} if erratum.kind == "false" else {"printed step", "statement"}
        assert roles == wanted
