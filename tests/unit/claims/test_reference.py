"""Claims of a reference mechanism and of its mutants, declared in one call each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.claims import (
    Draft,
    Mutant,
    Twin,
    broken,
    broken_and_deviating,
    component,
    conformity,
    deviating,
    exact,
    mutant,
    privacy,
    reference,
)
from auditor.datasets import Pair, ReplaceOne
from auditor.errors import SpecificationError
from auditor.privacy.exact import FiniteLaw
from auditor.privacy.guarantees import ApproxDP, GaussianDP, PureDP
from auditor.results import Verdict
from auditor.runs.audit_claim import audit_claim
from auditor.runs.run import Run
from tests.unit.claims.test_registry import PAIR, made

Rng = np.random.Generator
REPLACE = ReplaceOne()
OTHER = Pair(np.array([1]), np.array([0]), "the other way")
FEW = {"smoke": 2_000}


@dataclass(frozen=True)
class Response:
    """Randomised response on the first bit, with its distribution."""

    epsilon: float = 1.0

    def __call__(self, data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        return np.asarray(np.where(rng.random(n) < 1 / (1 + math.exp(-self.epsilon)), data[0], 1 - data[0]))

    def law(self, data: Any) -> FiniteLaw:
        keep = 1 / (1 + math.exp(-self.epsilon))
        return FiniteLaw((int(data[0]), 1 - int(data[0])), np.array([keep, 1 - keep]))


@dataclass(frozen=True)
class Twice(Response):
    """At twice the level."""

    def __call__(self, data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        return Response(2 * self.epsilon)(data, n, rng)

    def law(self, data: Any) -> FiniteLaw:
        return Response(2 * self.epsilon).law(data)


@dataclass(frozen=True)
class Gaussian:
    """A number with Gaussian noise, which has no epsilon."""

    mu: float = 1.0

    def __call__(self, data: Any, n: int, rng: Rng) -> NDArray[np.float64]:
        return np.asarray(data[0] + rng.normal(scale=1 / self.mu, size=n))


@dataclass(frozen=True)
class Narrow(Gaussian):
    """Half of the noise, and no distribution stated."""

    def __call__(self, data: Any, n: int, rng: Rng) -> NDArray[np.float64]:
        return Gaussian(2 * self.mu)(data, n, rng)


TWICE: Mutant[Response] = Mutant("twice", Twin(Twice), lambda base: 2 * base.epsilon, "violation", "twice the level")
NARROW: Mutant[Gaussian] = Mutant("narrow", Twin(Narrow), lambda base: 2 * base.mu, "violation", "half of the noise")


def fields_of(draft: Draft) -> dict[str, Any]:
    """All that a draft states; a curve is compared by its level."""
    curves = [curve.epsilon(0.0) for curve in draft.curves]
    return {**vars(replace(draft, curve_of=None)), "curves": curves}


def test_a_reference_is_claimed_as_by_three_calls() -> None:
    mechanism, pairs = Response(), [PAIR, OTHER]
    options: dict[str, Any] = {"case": "both", "relation": REPLACE, "note": "a note", "parameters": {"k": 1}}
    found = list(reference(mechanism, PureDP(1.0), pairs, draws=FEW, detect=3.0, **options))
    apart = [
        exact(mechanism, PureDP(1.0), pairs, **options),
        privacy(mechanism, PureDP(1.0), pairs, draws=FEW, detect=3.0, **options),
        conformity(mechanism, PAIR, OTHER, draws=FEW, **options),
    ]
    assert list(map(fields_of, found)) == list(map(fields_of, apart))


def test_a_part_is_claimed_at_level_two() -> None:
    found = list(reference(Response(), PureDP(1.0), PAIR, level="L2"))
    assert [draft.level for draft in found] == ["L0", "L2", "L3"]
    assert fields_of(found[1]) == fields_of(component(Response(), PureDP(1.0), PAIR))


def test_conformity_may_be_left_out_or_have_other_options() -> None:
    assert [draft.level for draft in reference(Response(), PureDP(1.0), PAIR, follows=False)] == ["L0", "L1"]
    *_, found = reference(Response(), PureDP(1.0), PAIR, draws=FEW, follows={"reference": Twice(), "draws": {}})
    assert fields_of(found) == fields_of(conformity(Response(), PAIR, reference=Twice()))


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [(Response(), {"level": "L4"}, "level L1 or L2, got 'L4'"), (Gaussian(), {}, "Gaussian states no distribution")],
)
def test_what_no_reference_can_claim_is_refused(mechanism: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        list(reference(mechanism, PureDP(1.0), PAIR, **options))


def test_a_mutant_names_its_claim_and_claims_what_its_reference_does() -> None:
    found = broken(TWICE, Response(), PAIR, relation=REPLACE, draws=FEW)
    by_hand = mutant("twice", Twice(), PureDP(1.0), PAIR, relation=REPLACE, draws=FEW, note="twice the level")
    assert fields_of(found) == fields_of(by_hand)
    assert found.curves[0].epsilon(0.0) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("options", "case"),
    [
        ({}, "twice"),
        ({"asked": "far"}, "twice__far"),
        ({"case": "doubled"}, "doubled"),
        ({"case": "doubled", "asked": "far"}, "doubled__far"),
    ],
)
def test_a_case_is_the_mutants_name_and_how_it_is_asked(options: dict[str, Any], case: str) -> None:
    base = Response()
    drafts = [broken(TWICE, base, PAIR, **options), deviating(TWICE, base, PAIR, **options)]
    assert [draft.case for draft in (*drafts, *broken_and_deviating(TWICE, base, PAIR, **options))] == [case] * 4


def test_a_mutant_of_any_notion_has_the_level_of_that_notion() -> None:
    found = broken(NARROW, Gaussian(), PAIR, guarantee=GaussianDP(1.0))
    assert (found.guarantee, found.exact_level, found.expected) == (GaussianDP(1.0), 2.0, Verdict.VIOLATION)
    assert broken(NARROW, Gaussian(), PAIR, guarantee=GaussianDP(1.0), attained=False).exact_level is None
    assert broken(TWICE, Response(), PAIR, guarantee=ApproxDP(1.0, 0.1)).guarantee == ApproxDP(1.0, 0.1)


def test_a_reference_without_epsilon_needs_a_guarantee() -> None:
    with pytest.raises(SpecificationError, match="mutant narrow: Gaussian has no epsilon, so give the guarantee"):
        broken(NARROW, Gaussian(), PAIR)


def test_a_benign_mutant_is_expected_to_be_consistent() -> None:
    harmless = replace(TWICE, kind="benign")
    assert broken(harmless, Response(), PAIR).expected == Verdict.CONSISTENT
    assert broken(harmless, Response(), PAIR).is_mutant
    assert broken(TWICE, Response(), PAIR, level="L2").level == "L2"


def test_a_mutant_is_held_against_its_references_law() -> None:
    found = deviating(TWICE, Response(), PAIR, draws=FEW)
    by_hand = conformity(
        Twice(), PAIR, reference=Response(), case="twice", expected="deviation", draws=FEW, note="twice the level"
    )
    assert fields_of(found) == fields_of(by_hand)


def test_a_mutant_is_declared_at_both_levels_on_the_same_pairs() -> None:
    found = list(broken_and_deviating(TWICE, Response(), [PAIR, OTHER], relation=REPLACE, draws=FEW))
    apart = [
        broken(TWICE, Response(), [PAIR, OTHER], relation=REPLACE, draws=FEW),
        deviating(TWICE, Response(), PAIR, OTHER, relation=REPLACE, draws=FEW),
    ]
    assert list(map(fields_of, found)) == list(map(fields_of, apart))


@pytest.mark.parametrize(
    "drafts",
    [
        (*reference(Response(), PureDP(1.0), PAIR), *broken_and_deviating(TWICE, Response(), PAIR)),
        (broken(NARROW, Gaussian(), PAIR, guarantee=GaussianDP(1.0)),),
    ],
)
def test_their_audits_get_the_expected_verdicts(drafts: tuple[Draft, ...]) -> None:
    # A claim that holds is refuted with probability 1e-7 at most; the mutants have twice the level.
    for claim in made(*drafts):
        assert audit_claim(claim, Run(("made here",)), 1e-7).verdict == claim.draft.expected, claim.id
