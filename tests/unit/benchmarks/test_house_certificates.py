"""Reference mechanisms and mutants, walked: the catalogue's verdicts and stated distributions come out."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.privacy.laws import FiniteLaw
from auditor.targets.randomness.calls import ControlledSource
from auditor.targets.randomness.enumeration import Budget, enumerate_outputs
from benchmarks.house_certificates import (
    compare_law,
    count_computed,
    geometric_table,
    list_house_claims,
    replace_samplers,
    tabulate_entries,
    two_sided_table,
    walk_claim,
)
from mechanisms.base.integer_noise import draw_geometric, two_sided_geometric


def test_claims_are_walked_as_the_catalogue_has_them() -> None:
    """Of the quick ones each is as expected, or is said to be out of reach."""
    listed = list_house_claims(path="experiments/document_001_lecture_dp/exponential.py")
    claims = [claim for claim in listed if len(claim.draft.pairs) <= 2]
    assert len(claims) >= 5
    source = ControlledSource()
    replace_samplers(source)
    with source.replacing():
        rows = [walk_claim(claim, source, 0.5) for claim in claims]
    assert not any(row.contradicts for row in rows), [row for row in rows if row.contradicts]
    verdicts = {(row.expected, row.verdict) for row in rows}
    assert ("consistent", "holds") in verdicts
    assert ("violation", "violation") in verdicts
    computed = count_computed("experiments/document_001_lecture_dp/exponential.py")
    header, _, line = tabulate_entries(rows, computed)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert header.count("|") == line.count("|")
    assert cells[0] == "001/exponential_mechanism"
    assert sum(int(cell or 0) for cell in cells[1:4]) == len(rows)
    assert cells[4] == str(computed.total()) != "0"


@pytest.mark.parametrize(("table", "draw"), [(geometric_table, draw_geometric), (two_sided_table, two_sided_geometric)])
def test_tables_are_those_of_the_samplers(table: object, draw: object) -> None:
    made = table(1.5)  # type: ignore[operator]
    drawn = draw(1.5, 200_000, np.random.default_rng(2))  # type: ignore[operator]
    for value in range(-4, 5):
        mass = float(made.masses[made.values == value].sum())
        assert abs(np.mean(drawn == value) - mass) < 6 * np.sqrt(max(mass, 1e-9) / 200_000)


class _Coin:
    """A bit of one of numpy's types, with its stated distribution."""

    def __init__(self, kind: type[np.generic], share: float) -> None:
        self.kind, self.share = kind, share

    def __call__(self, data: object, n: int, rng: np.random.Generator) -> NDArray[Any]:
        return (rng.random(n) < 0.75).astype(self.kind)

    def law(self, data: object) -> FiniteLaw:
        return FiniteLaw((1, 0), np.array([self.share, 1 - self.share]))


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint64, np.float16, np.int64])
def test_stated_distributions_are_compared_by_value(kind: type[np.generic]) -> None:
    source = ControlledSource()
    with source.replacing():
        walked = enumerate_outputs(_Coin(kind, 0.75), None, source, Budget(100, time.monotonic() + 60, 1e-9))
    assert compare_law(_Coin(kind, 0.75), None, walked) == "agrees"
    assert compare_law(_Coin(kind, 0.7), None, walked) == "differs"
