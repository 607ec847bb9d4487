"""The inventory of what each catalogue entry owes is complete and well formed."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from tests.cases import check_each

INVENTORY = Path(__file__).resolve().parents[3] / "experiments" / "inventory.toml"

COUNTS = {"000": 3, "001": 6, "002": 35, "003": 40, "004": 25}
RELATIONS = {"replace_one", "add_remove_one", "edge", "node", "label", "other", "none"}
LEVELS = {"L0", "L1", "L2", "L3", "L4"}
KINDS = {"violation", "deviation", "accuracy", "rejected", "benign", "harness"}
CLASSES = {"false", "proof", "informal", "slip", "under-specified", "withdrawn"}

FIELDS: dict[str, type] = {
    "id": str,
    "title": str,
    "source": str,
    "relation": list,
    "levels": list,
    "exact": bool,
    "pairs": list,
    "mutants": list,
    "mutants_from": list,
    "accuracy": list,
    "exponents": list,
    "errata": list,
}

#: Only where mutants are inherited: those of them that are not claimed under their own name, and why; and levels of
#: those that are.
LEFT_OUT, INHERITED = "inherited_elsewhere", "inherited"

# The errata that are published, with their class: every one is owed by an entry at least.
PUBLISHED = {
    "J1": "false",
    "J2": "false",
    "J3": "false",
    "J7": "false",
    "J10": "false",
    "J12d": "false",
    "E1": "false",
    "E3": "false",
    "E4": "false",
    "E5": "false",
    "E7": "false",
    "E9": "false",
    "E17": "false",
    "ERR-1": "false",
    "ERR-3": "false",
    "ERR-14": "false",
    "J4": "proof",
    "J6": "proof",
    "J9b": "proof",
    "J12a": "proof",
    "J13": "proof",
    "E2": "proof",
    "E8": "proof",
    "ERR-2": "proof",
    "ERR-4": "proof",
    "ERR-5": "proof",
    "ERR-7": "proof",
    "ERR-8a": "proof",
}

# The catalogue names no mutant, nor another entry's bank, for these.
WITHOUT_MUTANTS = {
    "001/privacy_loss_tail_condition",
    "001/laplace_query_capacity",
    "003/group_privacy",
    "003/blatant_nonprivacy_meter",
    "002/transparent_randomizer",
    "002/central_sq_simulation",
    "002/sq_local_roundtrip",
    "002/sq_parity_lower_bound",
    "002/local_vs_central_parity_gap",
    "002/masked_parity_interactive_local",
    "002/chernoff_hoeffding",
    "002/laplace_sum_tail",
    "004/dist_oracles",
    "004/gap_dist",
    "004/mistake_count",
    "004/slq_utility",
    "004/ledger",
}


def load() -> list[dict[str, Any]]:
    """Return the entries in the order of the file."""
    with INVENTORY.open("rb") as file:
        document = tomllib.load(file)
    assert set(document) == {"entry"}
    entries: list[dict[str, Any]] = document["entry"]
    return entries


ENTRIES = load()
IDS = [entry["id"] for entry in ENTRIES]
each_entry = check_each(ENTRIES, lambda entry: str(entry["id"]))


def is_text(value: object) -> bool:
    """Tell whether the value is a string that says something."""
    return isinstance(value, str) and bool(value.strip())


def test_every_catalogue_entry_is_listed_once() -> None:
    assert len(IDS) == sum(COUNTS.values()) == 109
    assert [name for name, times in Counter(IDS).items() if times > 1] == []
    assert Counter(name.partition("/")[0] for name in IDS) == COUNTS


@each_entry
def test_fields_are_present_and_typed(entry: dict[str, Any]) -> None:
    assert set(entry) - {LEFT_OUT, INHERITED, "claimed_by"} == set(FIELDS)
    for field, kind in FIELDS.items():
        assert isinstance(entry[field], kind), field
    assert re.fullmatch(r"00[0-4]/[A-Za-z][A-Za-z0-9_]*", entry["id"])
    assert is_text(entry["title"])
    assert is_text(entry["source"])
    assert all(is_text(text) for text in entry["pairs"] + entry["accuracy"])


@each_entry
def test_relations_and_levels_are_known(entry: dict[str, Any]) -> None:
    relation, levels = entry["relation"], entry["levels"]
    assert relation
    assert len(relation) == len(set(relation))
    assert set(relation) <= RELATIONS
    assert "none" not in relation or relation == ["none"]
    assert levels, "an entry that is audited at no level owes nothing"
    assert levels == sorted(set(levels))
    assert set(levels) <= LEVELS
    assert ("L4" in levels) == bool(entry["accuracy"])
    assert "L0" not in levels or entry["exact"]


@each_entry
def test_mutants_are_well_formed(entry: dict[str, Any]) -> None:
    names = [mutant["name"] for mutant in entry["mutants"]]
    assert len(names) == len(set(names))
    for mutant in entry["mutants"]:
        assert {"name", "true_epsilon", "kind", "note"} <= set(mutant)
        assert set(mutant) <= {"name", "true_epsilon", "at", "on_pair", "checked_by", "kind", "note"}
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", mutant["name"])
        assert is_text(mutant["true_epsilon"])
        assert is_text(mutant["note"])
        assert mutant["kind"] in KINDS
        # What breaks the claim changes the privacy, what is rejected has no distribution at all.
        assert mutant["kind"] != "violation" or mutant["true_epsilon"] != "unchanged"
        assert (mutant["kind"] == "rejected") == (mutant["true_epsilon"] == "undefined")
        assert mutant["kind"] != "harness" or mutant["true_epsilon"] == "unchanged"


def test_only_the_known_entries_are_without_mutants() -> None:
    without = {e["id"] for e in ENTRIES if not e["mutants"] and not e["mutants_from"]}
    assert without == WITHOUT_MUTANTS


@each_entry
def test_borrowed_banks_exist(entry: dict[str, Any]) -> None:
    banks = {other["id"] for other in ENTRIES if other["mutants"]}
    assert set(entry["mutants_from"]) <= banks - {entry["id"]}
    # By its name alone a claim has to say which mutant it is.
    names = [mutant["name"] for mutant in entry["mutants"]]
    for bank in entry["mutants_from"]:
        names += [mutant["name"] for other in ENTRIES if other["id"] == bank for mutant in other["mutants"]]
    assert [name for name, times in Counter(names).items() if times > 1] == []


@each_entry
def test_what_is_inherited_and_not_claimed_is_well_formed(entry: dict[str, Any]) -> None:
    left = entry.get(LEFT_OUT, [])
    assert left or LEFT_OUT not in entry, "an empty list is no list"
    named = [(item["bank"], name) for item in left for name in item["mutants"]]
    assert len(named) == len(set(named))
    banks = {other["id"]: {mutant["name"] for mutant in other["mutants"]} for other in ENTRIES}
    for item in left:
        assert set(item) - {"claimed_as"} == {"bank", "mutants", "reason"}
        assert item["bank"] in entry["mutants_from"]
        assert item["mutants"]
        assert set(item["mutants"]) <= banks[item["bank"]]
        assert is_text(item["reason"])
        assert is_text(item.get("claimed_as", "none"))


@check_each([e for e in ENTRIES if INHERITED in e], lambda entry: str(entry["id"]))
def test_what_is_stated_of_inherited_mutants_is_of_those_that_are_claimed(entry: dict[str, Any]) -> None:
    names = [item["name"] for item in entry[INHERITED]]
    assert names, "an empty list is no list"
    assert len(names) == len(set(names))
    left = {name for item in entry.get(LEFT_OUT, []) for name in item["mutants"]}
    banks = {other["id"]: other["mutants"] for other in ENTRIES}
    mutants = {mutant["name"]: mutant for bank in entry["mutants_from"] for mutant in banks[bank]}
    for item in entry[INHERITED]:
        assert {"name"} < set(item) <= {"name", "true_epsilon", "at", "on_pair", "checked_by", "note"}
        assert item["name"] not in left
        mutant = mutants[item["name"]]
        assert mutant["kind"] not in ("rejected", "harness")
        assert is_text(item.get("note", mutant["note"]))
        level = item.get("true_epsilon", mutant["true_epsilon"])
        assert is_text(level)
        assert mutant["kind"] != "violation" or level != "unchanged"
        assert level != "undefined"


@each_entry
def test_exponents_are_well_formed(entry: dict[str, Any]) -> None:
    for exponent in entry["exponents"]:
        assert set(exponent) == {"quantity", "parameter", "exponent", "criterion"}
        assert is_text(exponent["quantity"])
        assert is_text(exponent["parameter"])
        # A number, a fraction, or a parameter of the entry with an optional divisor.
        assert re.fullmatch(r"-?\d+(/\d+)?|[a-z](/\d+)?", exponent["exponent"])
        assert isinstance(exponent["criterion"], bool)


@check_each([e for e in ENTRIES if "claimed_by" in e], lambda entry: str(entry["id"]))
def test_claims_are_named_for_each_item_of_accuracy(entry: dict[str, Any]) -> None:
    assert len(entry["claimed_by"]) == len(entry["accuracy"])
    assert all(entry["claimed_by"])


@each_entry
def test_errata_are_well_formed(entry: dict[str, Any]) -> None:
    items = [item["id"] for item in entry["errata"]]
    assert len(items) == len(set(items))
    for item in entry["errata"]:
        assert set(item) == {"id", "class"}
        assert re.fullmatch(r"(J|E|ERR-)\d+[a-e]?", item["id"])
        assert item["class"] in CLASSES


def test_an_erratum_has_one_class_everywhere() -> None:
    classes: dict[str, set[str]] = {}
    for entry in ENTRIES:
        for item in entry["errata"]:
            classes.setdefault(item["id"], set()).add(item["class"])
    assert {name for name, found in classes.items() if len(found) > 1} == set()


def test_published_errata_are_owed_and_no_other_is_published() -> None:
    owed = {item["id"]: item["class"] for entry in ENTRIES for item in entry["errata"]}
    assert {n: c for n, c in owed.items() if c in {"false", "proof"}} == PUBLISHED
