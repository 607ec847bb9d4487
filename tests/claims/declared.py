"""What the experiments declare and what the inventory lists, for the tests of both."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from auditor.claims import Claim, Entry, registry
from auditor.privacy.guarantees import Guarantee
from tests.cases import check_each
from tests.claims.expressions import Value, evaluate

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"

#: Mistakes in an audit that are made, and seen to be mistakes, in a test: by mutant, the test.
IN_TESTS = {
    "003/local_sensitivity_noise_broken/binning_merges_the_atom": (
        "tests/unit/mechanisms/stability/test_median.py",
        "test_a_bin_that_is_as_wide_as_the_noise_hides_the_atom",
    ),
}

#: Entries whose system is refuted as it stands, negative controls, which claim nothing that holds at L1.
CONTROLS = {"003/local_sensitivity_noise_broken", "002/nonprivate_parity"}

#: Entries whose claims run on less than the whole of the RAND data, with the reason.
SMALL = {
    "003/randomized_response": "an output is as long as the data",
    "002/warner_rr": "an output is as long as the data",
    "002/laplace_mechanism": "the local sensitivity takes leaving out each row, and is 0 only where no row counts",
    "003/discrete_laplace_lattice": "shares are multiples of a power of two only among 2^14 persons",
    "001/blr_small_database": "at a level of 1 the distribution of more than 1,000 rows is below double precision",
    "003/statistical_distance_only_privacy": "its delta is 1/(2n), and has to be large enough to be estimated",
}

#: Reference claims on whose pairs no event has more than the claimed delta to show, whatever the level, and why.
COVERED_BY_DELTA = {
    "004/weak_to_strong/L0/approximate_dp/pair_of_sample_mean_output": "the pair of a mutant that leaks for certain",
    "004/weak_to_strong/L0/approximate_dp/pair_of_threshold_test_skipped": "likewise; slq has pairs near the threshold",
}

ENTRIES: list[Entry] = registry.load_entries([str(EXPERIMENTS)])
CLAIMS: list[Claim] = registry.load_claims([str(EXPERIMENTS)])
INVENTORY: dict[str, dict[str, Any]] = {
    item["id"]: item for item in tomllib.loads((EXPERIMENTS / "inventory.toml").read_text(encoding="utf-8"))["entry"]
}
PRIVACY = [claim for claim in CLAIMS if isinstance(claim.draft.guarantee, Guarantee)]
LISTED = [entry for entry in ENTRIES if entry.id in INVENTORY]


def inherited(id_: str) -> dict[str, dict[str, Any]]:
    """Mutants of other entries that an entry owes too, by name, with the id of their bank.

    What the entry states of them itself comes first; what the bank computes on its own pairs says nothing of others.
    """
    own = {item["name"]: item for item in INVENTORY[id_].get("inherited", [])}
    of_pairs = ("on_pair", "checked_by")
    return {
        mutant["name"]: {
            **{field: value for field, value in mutant.items() if field not in of_pairs},
            **own.get(mutant["name"], {}),
            "bank": bank,
        }
        for bank in INVENTORY[id_]["mutants_from"]
        for mutant in INVENTORY[bank]["mutants"]
        if mutant["kind"] not in ("rejected", "harness")
    }


def left_out(id_: str) -> dict[str, dict[str, Any]]:
    """Those of them that are not claimed under their own name, with the reason."""
    return {name: item for item in INVENTORY[id_].get("inherited_elsewhere", []) for name in item["mutants"]}


#: All that are owed, by the id of their entry and their name: an entry's own, and those that it inherits.
MUTANTS: dict[str, dict[str, Any]] = {
    f"{id_}/{name}": mutant
    for id_, item in INVENTORY.items()
    for name, mutant in [
        *((mutant["name"], mutant) for mutant in item["mutants"]),
        *((name, mutant) for name, mutant in inherited(id_).items() if name not in left_out(id_)),
    ]
}

each_entry = check_each(ENTRIES)
each_claim = check_each(CLAIMS)


def of(entry: Entry) -> list[Claim]:
    return [claim for claim in CLAIMS if claim.entry == entry.id]


def claim_of(case: str) -> Claim:
    """The claim of privacy of a case, where there is one only."""
    (claim,) = (claim for claim in PRIVACY if case_of(claim) == case)
    return claim


def exact_level(claim: Claim) -> float | None:
    """Exact level on the pairs, if it is known."""
    draft = claim.draft
    return max((draft.privacy_guarantee.exact_level(curve) for curve in draft.curves), default=draft.exact_level)


def case_of(claim: Claim) -> str:
    return f"{claim.entry}/{claim.draft.case}"


def name_of(claim: Claim) -> str:
    """Its mutant in the inventory: what follows "__" in a case says how the mutant is asked, not what is broken."""
    return case_of(claim).partition("__")[0]


def _of_case(value: Any, claim: Claim) -> Any:
    """What the inventory states for the claim: a table has it by what follows "__", or by level of audit."""
    if not isinstance(value, dict):
        return value
    asked = case_of(claim).partition("__")[2]
    return value.get(asked, value.get(claim.draft.level) if not asked else None)


def _parameters(claim: Claim) -> dict[str, Value]:
    guarantee = claim.draft.privacy_guarantee
    own = {"eps": getattr(guarantee, "epsilon", guarantee.level), "delta": getattr(guarantee, "delta", 0.0)}
    at = MUTANTS[name_of(claim)].get("at", {})
    return own | {"mu": guarantee.level} | {name: _of_case(value, claim) for name, value in at.items()}


def stated_level(claim: Claim) -> float | None:
    """Level of the claim's mutant over all pairs, if the inventory states one."""
    stated = MUTANTS[name_of(claim)]["true_epsilon"]
    return None if stated in ("unchanged", "not stated") else evaluate(stated, _parameters(claim))


def written_on_pair(claim: Claim) -> Value | None:
    """Level on the claim's pairs at the claimed delta as the inventory writes it, if it has that as well."""
    found: Value | None = _of_case(MUTANTS[name_of(claim)].get("on_pair"), claim)
    return found


def checked_by(claim: Claim) -> str | None:
    """Test that computes that level, or the distribution, by other means, if the inventory names one."""
    found: str | None = _of_case(MUTANTS[name_of(claim)].get("checked_by"), claim)
    return found


def stated_on_pair(claim: Claim) -> float | None:
    """That level, evaluated."""
    stated = written_on_pair(claim)
    return None if stated is None else evaluate(stated, _parameters(claim))


#: Entries that owe all that the inventory lists: every one.
COMPLETE = list(INVENTORY)
