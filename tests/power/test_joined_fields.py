"""Defects that only joint values show are found, within a fraction of 20,000 draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor import Verdict, audit
from benchmarks.joined import ALPHA, CLAIM, DRAWS, FOUND, KINDS, PAIR, JointKind

#: Kinds of each family that are audited here, for time: joint values of two fields, of a derived one, a prediction. The
#: learner's own test has all of them, and so has the benchmark.
AUDITED = [kind for kind in KINDS if kind.name.startswith(("exclusive or", "a category", "a digest"))]
#: Audits of a kind, and the least number that finds the defect with a probability of 1 - 1e-6 if each does with 0.95.
AUDITS = 5
LEAST = int(stats.binom.ppf(1e-6, AUDITS, FOUND))


@pytest.mark.parametrize("kind", AUDITED, ids=lambda kind: kind.name)
def test_a_planted_defect_is_found(kind: JointKind) -> None:
    found = [
        audit(kind.mechanism(broken=True), CLAIM, PAIR, draws=DRAWS, alpha=ALPHA, seed=seed, id=kind.name)
        for seed in range(AUDITS)
    ]
    assert sum(one.verdict == Verdict.VIOLATION for one in found) >= LEAST >= 1


def test_planted_levels_are_above_the_claim_and_places_by_themselves_alike() -> None:
    assert all(kind.level(kind.broken) >= 1.7 for kind in KINDS)
    assert all(abs(kind.level(kind.allowed) - CLAIM.level) < 1e-12 for kind in KINDS)
    # Outputs inside and outside of the event: each place's distribution by itself, as counts of its values.
    n = 20_000
    for kind in KINDS:
        rows = [kind.draw(np.full(n, inside), np.random.default_rng(inside)) for inside in (False, True)]
        first, second = ([_flatten(row) for row in side] for side in rows)
        for a, b in zip(zip(*first, strict=True), zip(*second, strict=True), strict=True):
            values = sorted(set(a) | set(b), key=repr)
            index = {value: k for k, value in enumerate(values)}
            counts = [np.bincount([index[value] for value in side], minlength=len(values)) for side in (a, b)]
            assert stats.chi2_contingency(np.array(counts))[1] > 1e-9, kind.name


def _flatten(row: object) -> list[object]:
    if isinstance(row, np.ndarray):
        return list(row.tolist())
    if isinstance(row, dict):
        return [part for value in row.values() for part in _flatten(value)]
    return [part for value in row for part in _flatten(value)] if isinstance(row, list | tuple) else [row]
