"""Conformity audits find every mutant with another distribution, and pass every reference."""

from __future__ import annotations

import pytest

from auditor import check_conformity
from auditor.results import Verdict
from benchmarks.samplers import BANKS, SAME_LAW, SamplerMutantCase, cases

#: Level of the audits: a test of a correct sampler fails with at most this probability.
RARELY = 1e-6


def test_every_mutant_of_a_bank_is_held_against_its_reference() -> None:
    # Banks of mechanisms that came later are held against theirs by the claims in experiments/.
    built = {f"{case.family}/{case.name}" for case in cases()}
    assert built | SAME_LAW == {f"{family}/{name}" for family, (bank, *_) in BANKS.items() for name in bank}
    assert not built & SAME_LAW


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: f"{case.family}/{case.name}")
def test_every_mutant_with_another_law_is_found(case: SamplerMutantCase) -> None:
    """At alpha 1e-6, with draws for ten times the divergence of the subtlest of them: misses are rarer than 1e-6."""
    result = check_conformity(case.mutant, *case.datasets, reference=case.reference, alpha=RARELY, draws=400_000)
    assert result.verdict == Verdict.DEVIATION
    assert result.log10_max_e_value is not None
    assert result.log10_max_e_value >= 6 or "not independent" in result.message


REFERENCES = {f"{case.family} {case.reference!r}": case for case in cases()}


@pytest.mark.parametrize("name", REFERENCES)
def test_every_reference_follows_its_law(name: str) -> None:
    """False alarm: 1e-6 each, and as much for the tests of independence."""
    case = REFERENCES[name]
    result = check_conformity(case.reference, *case.datasets, alpha=RARELY, draws=200_000)  # type: ignore[arg-type]
    assert result.verdict == Verdict.CONSISTENT, result.message
