"""The standard level: lower bounds between 0.9 of the exact level and the exact level, where draws can show it.

Each claim is judged by the published run, of which `tests.claims.test_published` sees that it comes out again; one in
`EVERY` is run here too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor import AuditResult, Verdict
from auditor.audits.summary import TIGHT
from auditor.claims import Claim, registry
from auditor.evidence.power import reachable_level
from auditor.results import result_from
from auditor.runs.audit_claim import audit_claim
from auditor.runs.diff import read_results
from auditor.runs.reproduce import Recorded, take_sample
from auditor.runs.run import Run, settings_of, split_alpha

PUBLISHED = Path(__file__).resolve().parents[2] / "reports" / "full" / "results.json.xz"
#: All claims take some five minutes of a core.
EVERY = 20
RUN = Run(level="standard")
ALL = registry.load_claims(RUN.paths)
ALPHA = split_alpha(ALL, RUN.alpha)
#: Claims that hold, with one pair whose exact curve is known.
KNOWN = [
    claim
    for claim in ALL
    if claim.draft.level == "L1" and claim.draft.expected == Verdict.CONSISTENT and len(claim.draft.curves) == 1
]
#: The events that carry the exact level are too rare for 10^6 draws a side, even if the best one is known beforehand:
#: transcripts of probability 0.01 and less, many coordinates that all have to be in a tail, synthetic databases that
#: are one of many, and tails with delta = 1e-5; or the level is small, and needs more draws.
OUT_OF_REACH = {
    "001/blr_small_database/L1/pure_dp/all_persons",
    "001/blr_small_database/L1/pure_dp/score_times_m",
    "001/blr_small_database/L1/pure_dp/ten_persons",
    "001/gaussian_counting_query/L1/approximate_dp/analytic",
    "001/gaussian_counting_query/L1/approximate_dp/classical",
    "001/gaussian_counting_query/L1/approximate_dp/mean_of_visits",
    "001/gaussian_counting_query/L1/approximate_dp/tail_rule",
    "001/gaussian_counting_query/L1/renyi_dp/count",
    "001/gaussian_counting_query/L1/zcdp/count",
    "001/laplace_query_capacity/L1/pure_dp/all_counts",
    "002/local_sq_simulation/L1/pure_dp/in_random_order",
    "002/parity_amplified_expmech/L1/pure_dp/score_on_random_subset",
    "003/advanced_composition/L1/approximate_dp/adaptive_game",
    "003/advanced_composition/L1/approximate_dp/adaptive_game_sharp",
    "003/advanced_composition/L1/approximate_dp/fixed_list",
    "003/basic_composition/L1/approximate_dp/leaky_responses",
    "003/basic_composition/L1/pure_dp/responses",
    "003/group_privacy/L1/approximate_dp_at_epsilon/chain_at_ln_2",
    "003/group_privacy/L1/approximate_dp_at_epsilon/gaussian_group_of_20_one_person",
    "003/gaussian_projection_marginals/L1/approximate_dp/three_attributes",
    "003/interval_queries/L1/pure_dp/root_without_budget",
    "003/k_counting_queries_laplace/L1/approximate_dp/fifty_counts",
    "003/k_counting_queries_laplace/L1/pure_dp/ten_counts",
    "003/neighbour_convention/L1/approximate_dp/gaussian_histogram",
    "003/neighbour_convention/L1/approximate_dp/gaussian_histogram_under_replace",
    "003/noisy_local_sensitivity_triangles/L1/approximate_dp/network",
    "003/private_multiplicative_weights/L1/pure_dp/threshold_not_refreshed",
    "003/private_multiplicative_weights/L1/pure_dp/two_patterns",
    "003/propose_test_release/L1/approximate_dp/index",
    "003/smooth_sensitivity_cauchy/L1/pure_dp/literature_of_the_index",
    "003/statistical_distance_only_privacy/L1/approximate_dp/ten_persons_shared_values",
    "003/tway_marginals_laplace/L1/approximate_dp/health_gaussian",
    "004/oqr/L1/pure_dp/phases",
    "004/slq/L1/approximate_dp/flag_released",
    "004/slq/L1/approximate_dp/persons",
    "004/slq/L1/approximate_dp/persons_in_hashed_chunks",
    "004/svt_mutants/L1/pure_dp/v1_lyu",
    "004/svt_mutants/L1/pure_dp/v1_lyu__phases",
    "004/svt_mutants/L1/pure_dp/v1_lyu__threshold_seeker",
    "004/svt_mutants/L1/pure_dp/v2_dwork_roth",
    "004/svt_sparse/L1/approximate_dp/two_epochs_of_wide_noise",
}


def reachable(claim: Claim) -> float:
    """Level that the best single event, known beforehand, certifies with the standard budget."""
    draws = settings_of(claim, RUN, ALPHA[claim.id]).draws
    return reachable_level(claim.draft.curves[0], draws // 2, claim.draft.privacy_guarantee, ALPHA[claim.id])


def exact(claim: Claim) -> float:
    return claim.draft.privacy_guarantee.exact_level(claim.draft.curves[0])


def shown(claim: Claim) -> float:
    """The exact level, or what one event can show of it where the notion says more than its cap."""
    claimed = claim.draft.privacy_guarantee
    return claimed.event_level(claim.draft.curves[0]) if claimed.caveat else exact(claim)


def test_the_list_of_what_is_out_of_reach_is_right() -> None:
    assert {claim.id for claim in KNOWN if reachable(claim) < 0.95 * shown(claim)} == OUT_OF_REACH


def assert_tight(claim: Claim, result: AuditResult) -> None:
    assert result.verdict == Verdict.CONSISTENT, claim.id
    assert result.lower_bound is not None, claim.id
    assert result.lower_bound <= exact(claim) * (1 + 1e-8), claim.id
    if claim.id not in OUT_OF_REACH:
        assert result.ceiling is not None, claim.id
        assert result.lower_bound >= TIGHT * min(shown(claim), result.ceiling), claim.id
        assert result.sandwich == "holds", claim.id


def test_the_lower_bounds_of_the_published_run_are_tight() -> None:
    published = {record["id"]: result_from(record) for record in read_results(PUBLISHED)["claims"]}
    for claim in KNOWN:
        assert claim.id in published, f"{claim.id} is not in the published run: make publish"
        assert_tight(claim, published[claim.id])


SAMPLE = {claim.id for claim in take_sample([Recorded(claim.id, {}) for claim in KNOWN], len(KNOWN) // EVERY)}


@pytest.mark.parametrize("claim", [claim for claim in KNOWN if claim.id in SAMPLE], ids=lambda claim: claim.id)
def test_the_lower_bound_is_tight(claim: Claim) -> None:
    """Holds for any seed but for a probability far below 1e-6 where it is asked for.

    There the bound lies at 0.95 to 0.99 of the exact level with a standard deviation below 0.01 of it (benchmarks), so
    that 0.9 is five standard deviations away. It exceeds the exact level, or the claim is called violated, with
    probability at most 1e-7 a claim, the alpha used here.
    """
    assert_tight(claim, audit_claim(claim, RUN, 1e-7))
