"""The benchmark of traces of libraries: programs of this process are judged, and the page says what came out."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from auditor import PureDP, Verdict, one_draw, trace
from auditor.datasets import Pair
from auditor.privacy.exact.privacy_curve import GaussianCurve
from benchmarks.traced_libraries import (
    EXACT_SCALE,
    TEXTBOOK_SCALE,
    LibraryTrace,
    TracedCase,
    is_found,
    is_judged_rightly,
    judge_case,
    list_library_traces,
    write_document,
)

CASES = list_library_traces()


def test_each_wrong_program_has_its_datasets() -> None:
    assert sum(bool(case.finding) for case in CASES) == 13
    for case in CASES:
        x, y = (case.pair(np.random.default_rng(25))[side] for side in (0, 1))
        assert repr(Pair(x, y).x) != repr(Pair(x, y).y)


def test_scales_are_right_and_wrong() -> None:
    assert GaussianCurve(1 / EXACT_SCALE).epsilon(1e-5) < 10 < GaussianCurve(1 / TEXTBOOK_SCALE).epsilon(1e-5)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if "noisy_sum" in case.target or "key_of_one" in case.target],
    ids=lambda case: f"{case.name} {case.given}",
)
def test_programs_of_this_process_are_judged(case: LibraryTrace) -> None:
    judged = judge_case(case, 0.2)
    assert is_found(judged) == bool(case.finding)
    assert is_judged_rightly(judged)
    assert judged.overhead > 0


def test_the_page_says_what_is_missed() -> None:
    wrong, right = (next(case for case in CASES if bool(case.finding) == broken) for broken in (True, False))
    drawn = trace(one_draw(lambda data, rng: rng.laplace()), PureDP(1.0), Pair([0], [1]))
    checks = [{"name": wrong.finding, "passed": False, "finding": "a.py:1: 2 | 3"}]
    accused = dataclasses.replace(drawn, verdict=Verdict.DEVIATION, checks=checks)
    silent = dataclasses.replace(accused, verdict=Verdict.CONSISTENT, checks=[])
    rows = [TracedCase(wrong, accused, 1.0, silent, 2.0), TracedCase(right, silent, 1.0, None, 2.0)]
    page = write_document(rows, 60.0)
    assert "finds 1 of the wrong ones; 1 of these are missed by 60 s" in page
    assert "No right one is accused." in page
    assert "a.py:1: 2 / 3" in page
    falsely = [rows[0], TracedCase(right, accused, 1.0, None, 2.0)]
    assert f"Right ones that are accused: {right.name}." in write_document(falsely, 60.0)
