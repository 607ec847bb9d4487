"""Levels beside the theorem: exact curves known within bounds (L0), components (L2), conformity (L3), in a run."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.audits.conformity import StatedLaw
from auditor.claims import Claim, Draft, Source, component, conformity, entry, exact, privacy, registry
from auditor.datasets import Pair
from auditor.errors import SpecificationError
from auditor.privacy.exact import FiniteLaw, Law, LossCurve, PrivacyCurve
from auditor.privacy.guarantees import PureDP
from auditor.results import AuditResult, Verdict, make_plain
from auditor.runs import runner
from auditor.runs.audit_claim import audit_claim
from auditor.runs.manifest import build_manifest
from auditor.runs.run import Run, split_alpha

PAIR = Pair(np.array([1]), np.array([0]), "1 against 0")


@dataclass(frozen=True)
class Coin:
    """Randomised response of the given level."""

    epsilon: float

    @property
    def keep(self) -> float:
        return math.exp(self.epsilon) / (1 + math.exp(self.epsilon))

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return np.where(rng.random(n) < self.keep, int(data[0]), 1 - int(data[0]))

    def law(self, data: Any) -> Law:
        one = int(data[0])
        return FiniteLaw((one, 1 - one), np.array([self.keep, 1 - self.keep]))


def claim_of(draft: Draft) -> Claim:
    @entry("000/test", title="test", source=Source("000", "nowhere"))
    def only() -> list[Draft]:
        return [draft]

    (claim,) = only.claims()
    return claim


def audit(draft: Draft, alpha: float = 1e-6, **options: Any) -> AuditResult:
    return audit_claim(claim_of(draft), Run(**options), alpha)


# --------------------------------------------------------------------------------------------- L0


@dataclass(frozen=True, eq=False)
class Bounded(LossCurve):
    """A curve that is known within bounds: itself from above, and ``optimistic`` from below."""

    optimistic: PrivacyCurve | None = None


def bounded(low: float, high: float) -> Bounded:
    def losses(epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        keep = math.exp(epsilon) / (1 + math.exp(epsilon))
        p = np.log([keep, 1 - keep])
        return p, p[::-1]

    return Bounded(*losses(high), optimistic=LossCurve(*losses(low)))


@pytest.mark.parametrize(
    ("curves", "verdict", "level"),
    [
        ([(0.8, 0.9)], Verdict.CONSISTENT, 0.9),
        ([(0.9, 1.2)], Verdict.INCONCLUSIVE, 1.2),
        ([(1.1, 1.2)], Verdict.VIOLATION, 1.1),
        ([(0.9, 1.3), (1.1, 1.2)], Verdict.VIOLATION, 1.1),
        ([(0.5, 0.5), (1.0, 1.0)], Verdict.CONSISTENT, 1.0),
    ],
)
def test_a_curve_known_within_bounds_refutes_only_by_its_lower_bound(
    curves: list[tuple[float, float]], verdict: Verdict, level: float
) -> None:
    pairs = tuple(replace(PAIR, name=f"pair {k}") for k in range(len(curves)))
    known = {pair: bounded(*both) for pair, both in zip(pairs, curves, strict=True)}
    draft = replace(exact(Coin(1.0), PureDP(1.0), PAIR), curve_of=known.__getitem__, pairs=pairs)
    result = audit(draft)
    assert result.verdict == verdict
    assert result.exact == pytest.approx(level)
    assert bool(result.message) == (verdict != Verdict.CONSISTENT)
    if verdict == Verdict.VIOLATION:
        assert "at least 1.1" in result.message
        assert result.pair == f"pair {len(curves) - 1}"


def test_a_curve_that_is_exact_needs_no_second_one() -> None:
    assert audit(exact(Coin(1.0), PureDP(1.0), PAIR)).verdict == Verdict.CONSISTENT
    broken = audit(exact(Coin(1.0), PureDP(0.9), PAIR))
    assert broken.verdict == Verdict.VIOLATION
    assert broken.message == "the stated distribution has ε = 1 on this pair"


# --------------------------------------------------------------------------------------------- L2


def test_a_component_is_audited_as_a_claim_of_its_own_level() -> None:
    draft = component(Coin(1.0), PureDP(0.5), PAIR, case="coin", expected="violation", note="one coin")
    assert (draft.level, draft.case, draft.note) == ("L2", "coin", "one coin")
    assert claim_of(draft).id == "000/test/L2/pure_dp/coin"
    result = audit(draft)
    assert (result.level, result.verdict) == ("L2", Verdict.VIOLATION)
    assert result.ok


# --------------------------------------------------------------------------------------------- L3


def test_a_claim_of_conformity_has_its_id_and_runs_as_any_other() -> None:
    draft = conformity(Coin(1.0), PAIR, case="coin")
    assert claim_of(draft).id == "000/test/L3/conformity/coin"
    result = audit(draft)
    assert (result.level, result.verdict, result.pair) == ("L3", Verdict.CONSISTENT, "1 against 0")
    assert result.claimed == "the distribution of Coin"
    assert result.parameters["error"] == 1e-9
    assert result.draws == 200_000
    assert result.replay.startswith("dpaudit run")


def test_a_mutant_is_held_against_the_law_of_the_reference() -> None:
    mutant = conformity(Coin(0.9), PAIR, reference=Coin(1.0), case="weak", expected="deviation", note="too weak")
    assert mutant.is_mutant
    result = audit(mutant)
    assert result.verdict == Verdict.DEVIATION
    assert result.ok
    assert result.mechanism == "Coin"
    assert "x" in str(result.cells["dataset"])
    # Against its own distribution it would pass: the same claim without a reference.
    assert audit(replace(mutant, guarantee=StatedLaw(Coin(0.9)), expected=Verdict.CONSISTENT)).ok


def test_datasets_may_be_given_without_a_pair() -> None:
    draft = conformity(Coin(1.0), np.array([1]), np.array([0]))
    assert [name for name, _ in draft.datasets] == ["dataset 1", "dataset 2"]
    assert draft.pairs == ()
    assert audit(draft).pair == "dataset 1; dataset 2"


def test_what_is_declared_is_checked_at_load() -> None:
    with pytest.raises(SpecificationError, match="at least one dataset"):
        conformity(Coin(1.0), case="none")
    with pytest.raises(SpecificationError, match="method law"):
        conformity(lambda data, n, rng: np.zeros(n), PAIR)
    with pytest.raises(SpecificationError, match="a case must be"):
        conformity(Coin(1.0), PAIR, case="not a case")
    with pytest.raises(SpecificationError, match="no privacy guarantee"):
        _ = conformity(Coin(1.0), PAIR).privacy_guarantee
    assert privacy(Coin(1.0), PureDP(1.0), PAIR).privacy_guarantee == PureDP(1.0)


def test_a_failure_of_ours_on_a_claim_of_conformity_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "claims.py"
    file.write_text(
        "from auditor.claims import Source, conformity, entry\n"
        "class Lawless:\n"
        "    def __call__(self, data, n, rng):\n"
        "        return rng.integers(0, 2, n)\n"
        "    def law(self, data):\n"
        "        raise ValueError('no distribution on these data')\n"
        "@entry('000/lawless', title='t', source=Source('000', 'p'))\n"
        "def lawless():\n"
        "    yield conformity(Lawless(), [1])\n"
    )
    run = Run(paths=(str(file),))
    claims = registry.load_claims(run.paths)
    (result,) = runner.execute_run(run, claims).results
    assert result.verdict == Verdict.ERROR
    assert "no distribution on these data" in result.message
    assert (result.level, result.notion, result.claimed) == ("L3", "conformity", "the distribution of Lawless")
    json.dumps(make_plain(build_manifest(run, claims)))


def test_the_share_of_alpha_counts_claims_of_conformity() -> None:
    drafts = [
        exact(Coin(1.0), PureDP(1.0), PAIR, case="a"),
        privacy(Coin(1.0), PureDP(1.0), PAIR, case="b"),
        conformity(Coin(1.0), PAIR, case="c"),
        conformity(Coin(2.0), PAIR, reference=Coin(1.0), case="d", expected="deviation"),
    ]
    claims = [claim_of(draft) for draft in drafts]
    assert set(split_alpha(claims, 0.01).values()) == {0.005}
