"""What the experiments declare and what the inventory lists, for the tests of both."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor import registry
from auditor.declare import Claim, Entry
from auditor.guarantees import Guarantee

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"

#: Mutants whose level in the inventory is a supremum that no finite pair attains: their level on the claim's pair.
#: V3 on 5 queries with one top, at eps = 2, by quadrature; V6 with 10 queries, by enumeration, and against an analyst
#: who asks in phases, by recursion. All are computed again in tests/unit.
ON_THIS_PAIR = {
    # Twice the level is for all graphs; on the claim's, of LS 2 and 3, at level 3 and delta = 1e-2, by convolution.
    "003/noisy_local_sensitivity_triangles/noisy_bound_published": 5.07125,
    # Eight points and one record: no finite pair attains twice the level; by quadrature.
    "002/exp_mech_generic_agnostic/noisy_min_lap_1_over_eps": 1.9053,
    # One error against eleven candidates without any; by quadrature.
    "002/parity_amplified_expmech/noisy_min_lap_1_over_eps": 1.96715,
    # Six blocks of one row (1, 0) and one test row: what is infinite for some candidates is not for random ones; by
    # listing them.
    "002/parity_amplified_expmech/argmax_on_ties__whole_learner": 1.54702,
    "002/parity_amplified_expmech/sample_dependent_class__whole_learner": 3.20819,
    # Distances 18 and 14 against 16, at a threshold of 17: eleven answers and a refusal, by quadrature.
    "004/oqr/distance_of_sensitivity_two": 1.76663,
    # Eleven blocks of one row (1, 0) and eps = 1/2, a test label decides: in closed form.
    "002/parity_amplified_Astar/shared_laplace_draw__choice": 3.5828,
    "002/parity_amplified_Astar/no_noise__choice": 3.5828,
    # No pure level holds for Gaussian noise; on ten tops and a bottom, by quadrature.
    "004/svt_mutants/m15_gaussian_noise": 2.50277,
    "004/svt_mutants/v3_roth_2011": 4.0,
    "004/svt_mutants/v6_chen": 4.0611,
    "004/svt_mutants/v6_chen__phases": 2.1009,
}

#: The inventory's values that are numbers or functions of the claimed level alone.
LEVELS: dict[str, Callable[[float], float]] = {
    "inf": lambda eps: math.inf,
    "eps": lambda eps: eps,
    "2*eps": lambda eps: 2 * eps,
    "sqrt(2)*eps": lambda eps: math.sqrt(2) * eps,
    "1/eps": lambda eps: 1 / eps,
    "ln(3)": lambda eps: math.log(3),
}

#: Mistakes in an audit that are made, and seen to be mistakes, in a test: by mutant, the test.
IN_TESTS = {
    "003/local_sensitivity_noise_broken/binning_merges_the_atom": (
        "tests/unit/test_median.py",
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
    "001/blr_small_database": "at a level of 1 the exact law of more than 1,000 rows is below double precision",
    "003/statistical_distance_only_privacy": "its delta is 1/(2n), and has to be large enough to be estimated",
}

#: Reference claims on whose pairs no event has more than the claimed delta to show, whatever the level, and why.
COVERED_BY_DELTA = {
    "004/weak_to_strong/L0/approximate_dp/pair_of_sample_mean_output": "the pair of a mutant that leaks for certain",
    "004/weak_to_strong/L0/approximate_dp/pair_of_threshold_test_skipped": "likewise; slq has pairs near the threshold",
}

ENTRIES: list[Entry] = registry.load([str(EXPERIMENTS)])
CLAIMS: list[Claim] = registry.claims([str(EXPERIMENTS)])
INVENTORY: dict[str, dict[str, Any]] = {
    item["id"]: item for item in tomllib.loads((EXPERIMENTS / "inventory.toml").read_text(encoding="utf-8"))["entry"]
}
PRIVACY = [claim for claim in CLAIMS if isinstance(claim.draft.guarantee, Guarantee)]
LISTED = [entry for entry in ENTRIES if entry.id in INVENTORY]


def inherited(id_: str) -> dict[str, dict[str, Any]]:
    """Mutants of other entries that an entry owes too, by name, with the id of their bank."""
    return {
        mutant["name"]: {**mutant, "bank": bank}
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

each_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
each_claim = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)


def of(entry: Entry) -> list[Claim]:
    return [claim for claim in CLAIMS if claim.entry == entry.id]


def exact_level(claim: Claim) -> float | None:
    """Exact level on the pairs, if it is known."""
    draft = claim.draft
    return max((draft.privacy_guarantee.exact_level(curve) for curve in draft.curves), default=draft.exact_level)


def case_of(claim: Claim) -> str:
    return f"{claim.entry}/{claim.draft.case}"


def name_of(claim: Claim) -> str:
    """Its mutant in the inventory: what follows "__" in a case says how the mutant is asked, not what is broken."""
    return case_of(claim).partition("__")[0]


#: Entries that owe all that the inventory lists: every one.
COMPLETE = list(INVENTORY)
