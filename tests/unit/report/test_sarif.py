"""SARIF by its schema, findings beside the code that they are about, and the comment on a change."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from auditor.claims import Source, entry, inequality, privacy
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from auditor.report import read_schema, render_sarif
from auditor.report.comment import LIMIT, MARK, render_comment
from auditor.results import AuditResult, Counterexample, Verdict, make_document, result_from
from auditor.runs.diff import record_differences
from auditor.runs.source_locations import add_places, find_places, place_of
from auditor.targets import one_draw
from auditor.targets.process import ProcessTarget
from tests.commandline import Command, complaints, declare, read, refused

#: The schema of the OASIS committee, of version 2.1.0 as it was published, unchanged; OASIS allows copies of its work.
#: It was taken from the package @microsoft/jest-sarif 1.0.0-beta.0 of the npm registry (MIT licence).
SCHEMA = Path(__file__).parent / "sarif-2.1.0-rtm.5.json"
SCHEMA_SHA256 = "2d99159ae54a3eea97f81781cff48780548657c35949f4b7f25e99a2ba4de4f8"

HERE = Path(__file__).resolve()
FOLDER = HERE.parents[3]
PLACES = {"mechanism": {"file": "a lib/counts.py", "line": 12}, "claim": {"file": "claims/counts.py", "line": 3}}


def claim(name: str = "a/b/L1/pure/x", verdict: str = "violation", **fields: Any) -> AuditResult:
    found = Counterexample("one row", "[0]", "[1]", "output is 0", 134, 34, 154, 3.13, 1.21, f"dpaudit run -k '{name}'")
    values: dict[str, Any] = {
        "id": name,
        "entry": "/".join(name.split("/")[:2]),
        "source": {"document": "a", "place": "section 1"},
        "level": "L1",
        "notion": "pure DP",
        "symbol": "ε",
        "claimed": "ε = 1",
        "claimed_level": 1.0,
        "parameters": {},
        "alpha": 0.01,
        "verdict": Verdict(verdict),
        "expected": Verdict.CONSISTENT,
        "draws": 308,
        "lower_bound": 1.21,
        "counterexample": found if verdict == "violation" else None,
        "pair": "one row",
        "event": "output is 0",
    }
    return AuditResult(**{**values, **fields})


def results(*claims: AuditResult, **manifest: Any) -> dict[str, Any]:
    about = {"seed": 0, "alpha": 0.01, "level": "smoke", "dpaudit": "0.1.0", **manifest}
    content: dict[str, Any] = json.loads(json.dumps(make_document(about, claims, [])))
    jsonschema.Draft202012Validator(read_schema()).validate(content)
    return content


EVERY = results(
    claim(places=PLACES),
    claim("a/b/L1/pure/known", known="issue 7", places=PLACES),
    claim("a/b/L1/pure/elsewhere"),
    claim("a/c/L1/pure/weak", "inconclusive", resolves=float("inf"), places={"claim": PLACES["claim"]}),
    claim("a/c/L1/pure/crash", "error", message="the target raised KeyError: '<b>|x'", lower_bound=None),
    claim("a/c/L1/pure/fine", "consistent", places=PLACES),
    claim("a/c/L1/pure/ours", "consistent", sandwich="failed: the bound is above the exact level"),
)


# ------------------------------------------------------------------------------------------- SARIF


@pytest.fixture(name="valid", scope="module")
def _valid() -> jsonschema.Draft4Validator:
    content = SCHEMA.read_bytes()
    assert hashlib.sha256(content).hexdigest() == SCHEMA_SHA256
    return jsonschema.Draft4Validator(json.loads(content))


@pytest.mark.parametrize(
    "content", [EVERY, results(), results(claim("a/b/L1/pure/fine", "consistent")), results(claim(), interrupted=True)]
)
def test_sarif_is_valid_by_its_schema(valid: jsonschema.Draft4Validator, content: dict[str, Any]) -> None:
    log = json.loads(render_sarif(content))
    valid.validate(log)
    (run,) = log["runs"]
    assert run["invocations"] == [{"executionSuccessful": not content["manifest"].get("interrupted", False)}]
    assert len(run["results"]) == sum(not c["ok"] for c in content["claims"])


BREAKS: list[Callable[[dict[str, Any]], Any]] = [
    lambda run: run.pop("tool"),
    lambda run: run["results"][0].update(level="fatal"),
    lambda run: run["results"][0]["locations"][0]["physicalLocation"]["region"].update(startLine=0),
    lambda run: run["results"][0].update(path="x"),
]


@pytest.mark.parametrize("break_it", BREAKS)
def test_the_schema_refuses_what_is_no_sarif(
    valid: jsonschema.Draft4Validator, break_it: Callable[[dict[str, Any]], Any]
) -> None:
    log = json.loads(render_sarif(EVERY))
    break_it(log["runs"][0])
    assert not valid.is_valid(log)


def test_findings_stand_beside_the_mechanism_then_the_claim_then_the_record() -> None:
    (run,) = json.loads(render_sarif(EVERY))["runs"]
    found = {result["partialFingerprints"]["claimId/v1"].rpartition("/")[2]: result for result in run["results"]}
    assert set(found) == {"x", "known", "elsewhere", "weak", "crash", "ours"}

    def where(location: dict[str, Any]) -> tuple[str, int]:
        physical = location["physicalLocation"]
        return physical["artifactLocation"]["uri"], physical["region"]["startLine"]

    # Claims begin in line 5 of results.json: a brace, schema, manifest, errata, and the opening of the claims.
    record = {name: ("results.json", 6 + k) for k, name in enumerate(("x", "known", "elsewhere", "weak"))}
    mechanism, declared = ("a%20lib/counts.py", 12), ("claims/counts.py", 3)
    assert where(found["x"]["locations"][0]) == mechanism
    assert [where(place) for place in found["x"]["relatedLocations"]] == [declared, record["x"]]
    assert where(found["weak"]["locations"][0]) == declared
    assert [where(place) for place in found["weak"]["relatedLocations"]] == [record["weak"]]
    assert where(found["elsewhere"]["locations"][0]) == record["elsewhere"]
    assert "relatedLocations" not in found["elsewhere"]
    for result in run["results"]:
        (location,) = result["locations"]
        assert location["logicalLocations"][0]["fullyQualifiedName"] == result["partialFingerprints"]["claimId/v1"]
        artifact = location["physicalLocation"]["artifactLocation"]
        assert (artifact.get("uriBaseId") == "%SRCROOT%") == (artifact["uri"] != "results.json")
    listed = [artifact["location"]["uri"] for artifact in run["artifacts"]]
    assert listed == ["results.json", mechanism[0], declared[0]]
    assert found["known"]["suppressions"] == [{"kind": "external", "justification": "issue 7"}]


def test_claims_on_one_line_are_not_taken_for_one_finding() -> None:
    (run,) = json.loads(render_sarif(EVERY))["runs"]
    prints = [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]]
    assert len(set(prints)) == len(prints)
    moved = json.loads(json.dumps(EVERY).replace('"line": 12', '"line": 99'))
    (after,) = json.loads(render_sarif(moved))["runs"]
    assert [result["partialFingerprints"]["primaryLocationLineHash"] for result in after["results"]] == prints


# ------------------------------------------------------------------------------------------ places


class Coin:
    """A mechanism with a class of its own."""

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        return rng.integers(0, 2, n)

    def draws(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        return self(data, n, rng)


def flip(data: Any, rng: np.random.Generator) -> int:
    return int(rng.integers(0, 2))


def biased(keep: float, data: Any, n: int, rng: np.random.Generator) -> Any:
    return rng.random(n) < keep


@functools.wraps(flip)
def wrapped(*arguments: Any) -> int:
    return flip(*arguments)


class Unhashable(type):
    __hash__ = None  # type: ignore[assignment]


class Odd(metaclass=Unhashable):
    """A class that cannot be a key."""


def circle() -> None:
    """A function that says that it wraps itself."""


circle.__wrapped__ = circle  # type: ignore[attr-defined]


def line_of(text: str) -> int:
    return HERE.read_text(encoding="utf-8").splitlines().index(text) + 1


COIN, FLIP = line_of("class Coin:"), line_of("def flip(data: Any, rng: np.random.Generator) -> int:")
BIASED = line_of("def biased(keep: float, data: Any, n: int, rng: np.random.Generator) -> Any:")
DRAWS = line_of("    def draws(self, data: Any, n: int, rng: np.random.Generator) -> Any:")


@pytest.mark.parametrize(
    ("mechanism", "line"),
    [
        (Coin(), COIN),
        (Coin().draws, DRAWS),
        (one_draw(flip), FLIP),
        (wrapped, FLIP),
        (functools.partial(biased, 0.7), BIASED),
    ],
)
def test_the_place_of_a_mechanism(mechanism: Any, line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    assert find_places(mechanism) == {"mechanism": {"file": "tests/unit/report/test_sarif.py", "line": line}}
    monkeypatch.chdir(HERE.parent)
    assert find_places(mechanism) == {"mechanism": {"file": "test_sarif.py", "line": line}}


def test_no_place_is_better_than_one_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    exec("def typed_in(data, n, rng): return [0] * n", names)
    process = ProcessTarget.__new__(ProcessTarget)
    for thing in (np.random.default_rng, np.random.default_rng(0).random, pytest.approx, len, 3, None, Odd(), circle):
        assert place_of(thing) == {}
    assert find_places(names["typed_in"]) == find_places(process) == find_places(None) == {}
    monkeypatch.chdir(tmp_path)
    assert find_places(Coin()) == {}


PAIR = Pair(np.array([0]), np.array([1]), "one row")


@entry("a/b", title="A coin", source=Source("a", "section 1"))
def coin() -> Any:
    yield privacy(Coin(), PureDP(1.0), PAIR)
    yield inequality(lambda: [("one", 1.0, 2.0)], statement="one is at most two")


def test_results_of_a_run_are_located(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    claims = list(coin.claims())
    begins = line_of('@entry("a/b", title="A coin", source=Source("a", "section 1"))')
    declared = {"file": "tests/unit/report/test_sarif.py", "line": begins}
    found = add_places([claim(one.id) for one in claims] + [claim("z/z/L1/pure/other")], claims, [coin])
    assert found[0].places == {
        "mechanism": {"file": "tests/unit/report/test_sarif.py", "line": COIN},
        "claim": declared,
    }
    assert found[1].places["claim"] == declared
    assert found[1].places["mechanism"]["line"] == begins + 3  # what computes the rows
    assert found[2].places == {}
    assert "places" not in found[2].to_json()
    assert result_from(found[0].to_json()).places == found[0].places
    results(*found)


HOLDS = """
    yield exact(Response(1.0), PureDP(1.0), PAIR)
    yield privacy(Response(3.0), PureDP(1.0), PAIR)
"""


def test_a_run_points_at_file_and_line(
    dpaudit: Command, valid: jsonschema.Draft4Validator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of library").mkdir()
    monkeypatch.chdir(tmp_path)
    file = declare(tmp_path / "of library", HOLDS)
    code = file.read_text(encoding="utf-8").splitlines()
    expected = {
        "mechanism": {"file": "of library/claims.py", "line": code.index("class Response:") + 1},
        "claim": {"file": "of library/claims.py", "line": next(k for k, s in enumerate(code, 1) if s[:1] == "@")},
    }
    said = dpaudit("run", "of library/claims.py", "--jobs", 1, "--draws", 26_000, "--out", "out")
    assert said.code == 1, said
    content = read(tmp_path / "out" / "results.json")
    jsonschema.validate(content, read_schema())
    assert [one["places"] for one in content["claims"]] == [expected, expected]
    log = json.loads((tmp_path / "out" / "results.sarif").read_text(encoding="utf-8"))
    valid.validate(log)
    (found,) = log["runs"][0]["results"]
    physical = found["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "of%20library/claims.py", "uriBaseId": "%SRCROOT%"}
    assert physical["region"] == {"startLine": expected["mechanism"]["line"]}
    assert str(tmp_path) not in json.dumps(log)
    # Code that has moved in its file gives the same result.
    moved = json.loads(json.dumps(content).replace(f'"line": {expected["claim"]["line"]}', '"line": 999'))
    assert moved != content
    assert all(record_differences(*two) == [] for two in zip(content["claims"], moved["claims"], strict=True))


def test_an_attack_points_at_its_target(dpaudit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    target = ("attack", "examples/noisy_count.py:noisy_count", "--claim", "epsilon=1", "--relation", "replace-one")
    said = dpaudit(*target, "--domain", "0,1", "--rows", 2, "--draws", 26_000, "--no-shrink", "--out", tmp_path)
    assert said.code == 1, said
    (one,) = read(tmp_path / "results.json")["claims"]
    assert one["places"] == {"mechanism": {"file": "examples/noisy_count.py", "line": 9}}
    assert "at `examples/noisy_count.py:9`" in render_comment(read(tmp_path / "results.json"))


# ----------------------------------------------------------------------------------------- comment


def test_the_comment_has_a_line_for_each_unexpected_result() -> None:
    lines = render_comment(EVERY).splitlines()
    assert lines[:2] == [MARK, "### dpaudit: 5 unexpected of 7 claims"]
    assert "| violation | 0 | 2 | 1 |" in lines
    assert "| consistent | 1 | 1 | 0 |" in lines
    found = [line for line in lines if line.startswith("- ")]
    assert len(found) == 5
    (broken,) = [line for line in found if "`a/b/L1/pure/x`" in line]
    assert broken == (
        "- **violation where consistent was expected**: `a/b/L1/pure/x`; at `a lib/counts.py:12`; claimed ε = 1, "
        "certified ε of at least 1.21 on one row; replay: `dpaudit run -k 'a/b/L1/pure/x'`"
    )
    (crash,) = [line for line in found if "crash" in line]
    assert "KeyError: '&lt;b&gt;\\|x'" in crash
    (weak,) = [line for line in found if "weak" in line]
    assert "at `claims/counts.py:3`" in weak
    (ours,) = [line for line in found if "ours" in line]
    assert "the auditor's own check failed" in ours
    assert "issue 7" not in "".join(lines)


def test_the_comment_of_a_fine_an_empty_and_an_interrupted_run() -> None:
    assert "### dpaudit: nothing unexpected in 1 claim\n" in render_comment(results(claim(verdict="consistent")))
    assert "### dpaudit: nothing was audited\n" in render_comment(results())
    interrupted = render_comment(results(claim(verdict="consistent"), interrupted=True, claims_selected=9))
    assert "### dpaudit: interrupted\n" in interrupted
    assert "**Interrupted: 1 of 9 claims were finished.**" in interrupted


@pytest.mark.parametrize("limit", [LIMIT, 2_000, 5_000])
@pytest.mark.parametrize("text", ["x", "ε" * 5_000, "`" * 3_000, "<" * 2_000])
def test_the_comment_fits_and_says_what_does_not(limit: int, text: str) -> None:
    many = [claim(f"a/b/L1/pure/{text}{k}", "error", message=text * 3, lower_bound=None) for k in range(700)]
    said = render_comment(make_document({}, many, []), limit)
    assert len(said.encode()) <= limit
    shown = sum(line.startswith("- **error") for line in said.splitlines())
    assert f"- … and {700 - shown} more" in said
    assert "never “private”" in said


def test_a_limit_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="got 100"):
        render_comment(results(), 100)


def test_hostile_text_is_no_markup_in_a_comment() -> None:
    hostile = "\x1b[31m<script>alert(1)</script> `| [x](http://e) @team ![](http://e)\n# heading"
    content = results(
        claim(f"a/b/L1/pure/{hostile}", "error", message=hostile, places={"claim": {"file": hostile, "line": 1}})
    )
    content["manifest"]["dpaudit"] = hostile
    said = render_comment(content)
    assert "\x1b" not in said
    outside = re.sub(r"(`+).+?\1(?!`)", "", said)  # code shows what stands in it as it is
    assert "<script" not in outside
    assert "](http" not in outside.replace("\\[", "").replace("\\]", "")
    assert not re.search("^# heading", said, re.MULTILINE)
    assert "@team" not in outside


def test_report_prints_the_comment(dpaudit: Command, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(EVERY), encoding="utf-8")
    said = dpaudit("report", path, "--comment")
    assert (said.code, said.out) == (0, render_comment(EVERY))
    assert complaints(said) == []
    assert [file.name for file in tmp_path.iterdir()] == ["results.json"]
    refused(dpaudit("report", path, "--comment", "--out", tmp_path / "x"), "--out", tmp_path / "x")
    refused(dpaudit("report", tmp_path / "none.json", "--comment"), "none.json")
