"""Every claim that is expected to hold has something that would refute it.

Accuracy: a control, see `auditor.audits.accuracy.controls`; the main job looks for it, and
`tests/claims/test_main_job.py` sees that each claim has one. Privacy and conformity: a mutant of the entry. Where an
entry owes none, its own mechanism with less noise, or more, is refuted here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from auditor.audits.accuracy.controls import scale_noise
from auditor.audits.conformity import StatedLaw, run_conformity
from auditor.audits.context import Question
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.claims import Claim
from auditor.claims.privacy import curve_of_law
from auditor.privacy.guarantees import Guarantee
from auditor.results import Verdict
from tests.claims.declared import CLAIMS

#: Less noise, and more. A noise of a few units in the last place of a lattice may be no smaller than it was.
LESS, MORE = (1 / 4, 1 / 64), (2.0, 16.0)
#: With what a refutation is looked for: 20,000 draws a side, wrongly with probability 1e-4.
SETTINGS = Settings(draws=40_000, alpha=1e-4, independence=False)
#: What has no noise, or a distribution that does not depend on it, is broken otherwise: by entry, from its mechanism.
BROKEN: dict[str, Callable[[Any], Any]] = {
    "003/boneh_shaw_code": lambda score: replace(score, code=replace(score.code, block=score.code.block // 2)),
    "003/tardos_code": lambda score: lambda data, n, rng: np.minimum(score(data, n, rng), 6),
    # At a distance of 0 only the ratio of threshold and noise counts, which is delta's.
    "004/pri_learn": lambda learner: replace(learner, delta=learner.delta / 10),
    "004/label_private": lambda learner: replace(learner, delta=learner.delta / 10),
}


def of_kind(kind: type, claim: Claim) -> bool:
    return isinstance(claim.draft.guarantee, kind)


def without_a_mutant(kind: type, verdict: Verdict) -> list[str]:
    """Entries with a claim of a kind that is expected to hold, and none that is expected to be refuted."""
    refuted = {claim.entry for claim in CLAIMS if of_kind(kind, claim) and claim.draft.expected == verdict}
    held = [claim.entry for claim in CLAIMS if of_kind(kind, claim) and claim.draft.expected == Verdict.CONSISTENT]
    return [entry for entry in dict.fromkeys(held) if entry not in refuted]


def held(entry: str, kind: type) -> list[Claim]:
    return [
        claim
        for claim in CLAIMS
        if claim.entry == entry and of_kind(kind, claim) and claim.draft.expected == Verdict.CONSISTENT
    ]


def versions(claim: Claim, factors: tuple[float, ...]) -> list[Any]:
    """The claim's mechanism with its noise multiplied, or what is broken in its place."""
    if claim.entry in BROKEN:
        return [BROKEN[claim.entry](claim.draft.mechanism)]
    found = [scale_noise(claim.draft.mechanism, factor) for factor in factors]
    return [mechanism for mechanism, names in found if names]


def is_too_loud(claim: Claim) -> bool:
    """Whether less noise breaks the claim: by the distribution, where there is one, or else by draws."""
    draft, guarantee = claim.draft, claim.draft.privacy_guarantee
    for mechanism in versions(claim, LESS):
        if draft.level == "L0":
            curve_of = curve_of_law(mechanism)
            assert curve_of is not None
            if any(guarantee.exact_level(curve_of(pair)) > guarantee.level for pair in draft.pairs):
                return True
        elif run_audit(mechanism, guarantee, draft.pairs, SETTINGS, Question(claim.id)).verdict == Verdict.VIOLATION:
            return True
    return False


def deviates(claim: Claim) -> bool:
    """Whether more noise, or less, or what is broken, is told from the stated distribution."""
    law = claim.draft.guarantee
    assert isinstance(law, StatedLaw)
    names, data = zip(*claim.draft.datasets, strict=True)
    return any(
        run_conformity(mechanism, law, data, names, SETTINGS, Question(claim.id)).verdict == Verdict.DEVIATION
        for mechanism in versions(claim, MORE + LESS)
    )


@pytest.mark.parametrize("entry", without_a_mutant(Guarantee, Verdict.VIOLATION))
def test_less_noise_breaks_what_is_claimed_of_privacy(entry: str) -> None:
    assert any(is_too_loud(claim) for claim in sorted(held(entry, Guarantee), key=lambda claim: claim.draft.level))


@pytest.mark.parametrize("entry", without_a_mutant(StatedLaw, Verdict.DEVIATION))
def test_other_noise_is_told_from_the_stated_law(entry: str) -> None:
    assert any(deviates(claim) for claim in held(entry, StatedLaw))
