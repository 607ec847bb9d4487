"""The corpus of defects: each is caught with its cause named, and its corrected version is not flagged.

A corrected version is flagged with probability 3e-6 at most, whatever the seed: alpha is 1e-6, and the tests of
independence on the first pair's two datasets have a false alarm of 1e-6 each. The draws are seeded, so that a run is as
good as every other one.
"""

from __future__ import annotations

import pytest

from auditor.cli.corpus.audits import describe_finding
from benchmarks.corpus.table import DEFECTS, LIBRARIES, NOT_YET, CorpusDefect
from benchmarks.defects import ALPHA, SILENT, DefectAudit, attack, caught, names_the_cause, row

by_name = pytest.mark.parametrize("entry", DEFECTS, ids=[entry.name.replace(" ", "_") for entry in DEFECTS])


@by_name
def test_caught_and_its_correction_is_not(entry: CorpusDefect) -> None:
    found, clean = attack(entry.broken, entry).result, attack(entry.corrected, entry).result
    assert clean.verdict in SILENT, f"{clean.message} {clean.event}"
    if entry.name in NOT_YET:
        assert not caught(entry, found), f"{entry.name} is caught now: take it out of NOT_YET"
    else:
        assert caught(entry, found), f"{found.verdict}: {found.message}"
        assert names_the_cause(entry, found), describe_finding(found)


def test_names_are_distinct_and_what_is_not_caught_is_in_the_corpus() -> None:
    names = [*(entry.name for entry in DEFECTS), *(entry.name for entry in LIBRARIES)]
    assert len(set(names)) == len(names)
    assert set(NOT_YET) <= set(names)


def test_a_row_of_the_benchmark() -> None:
    (entry,) = [entry for entry in DEFECTS if entry.name == "one sided noise"]
    found, clean = attack(entry.broken, entry), attack(entry.corrected, entry)
    line = row(entry, DefectAudit(found.result, 1.25), clean, True)
    assert line.startswith("| one sided noise: noise that is never negative | violation | 1.2 | ")
    assert line.endswith(" | yes |")
    assert found.result.alpha == ALPHA
    assert line.count("|") == 10
