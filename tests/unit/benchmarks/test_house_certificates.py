"""Reference mechanisms and mutants, walked: the catalogue's verdicts and stated distributions come out."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.targets.randomness.calls import ControlledSource
from benchmarks.house_certificates import (
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
