"""JUnit XML: where a test case stands."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from auditor.report import render_junit, render_sarif

DECLARED, MECHANISM = {"file": "claims/counts.py", "line": 3}, {"file": "a lib/counts.py", "line": 12}


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ({"mechanism": MECHANISM, "claim": DECLARED}, ("claims/counts.py", "3")),
        ({"mechanism": MECHANISM}, ("a lib/counts.py", "12")),
        ({}, (None, None)),
        (None, (None, None)),
    ],
)
@pytest.mark.parametrize("verdict", ["consistent", "violation", "error"])
def test_a_case_stands_where_its_claim_is_declared(
    places: dict[str, Any] | None, expected: tuple[str | None, str | None], verdict: str
) -> None:
    claim = {"id": "a/b/L1/x/y", "entry": "a/b", "verdict": verdict, "expected": "consistent", "places": places}
    content = {"manifest": {}, "claims": [{**claim, "ok": verdict == "consistent"}]}
    (case,) = ET.fromstring(render_junit(content)).iter("testcase")
    assert (case.get("file"), case.get("line")) == expected


@pytest.mark.parametrize("verdict", ["consistent", "violation", "inconclusive"])
def test_a_failed_check_of_ours_is_an_error_whatever_the_verdict(verdict: str) -> None:
    """The exit code is 2 then."""
    claim = {"id": "a/b/L1/x/y", "entry": "a/b", "verdict": verdict, "expected": "consistent", "ok": False}
    content = {"manifest": {}, "claims": [{**claim, "sandwich": "failed: 3 is above the exact level 2"}]}
    root = ET.fromstring(render_junit(content))
    assert (root.get("errors"), root.get("failures")) == ("1", "0")
    (found,) = root.iter("error")
    assert "the auditor's own check failed: 3 is above the exact level 2" in str(found.get("message"))
    assert json.loads(render_sarif(content))["runs"][0]["results"][0]["level"] == "error"


@pytest.mark.parametrize("finished", [0, 1])
def test_an_interrupted_run_does_not_look_like_a_pass(finished: int) -> None:
    claim = {"id": "a/b/L1/x/y", "entry": "a/b", "verdict": "consistent", "expected": "consistent", "ok": True}
    content = {"manifest": {"interrupted": True, "claims_selected": 9}, "claims": [claim][:finished]}
    root = ET.fromstring(render_junit(content))
    assert (root.get("tests"), root.get("errors")) == (str(finished + 1), "1")
    (found,) = root.iter("error")
    assert f"{finished} of 9 claims were finished" in str(found.get("message"))
