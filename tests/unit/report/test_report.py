"""Reports: complete, deterministic, self-contained, and safe with what a target may call itself."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
import zlib
from dataclasses import fields, replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from auditor.audits.context import Question
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.audits.summary import explain
from auditor.datasets import Pair
from auditor.privacy.guarantees import GaussianDP, Guarantee, PureDP
from auditor.report import (
    plots,
    read_schema,
    render_html,
    render_junit,
    render_markdown,
    render_sarif,
    summary_table,
    svg,
    write_reports,
)
from auditor.report import words as w
from auditor.report.comment import render_comment
from auditor.report.html import MOST_FINDINGS, format_prose
from auditor.report.results_schema import SHAPES, build_schema, describe_fields
from auditor.report.view import ClaimView, RunView
from auditor.results import (
    DERIVED,
    RUN_FAILED,
    AuditResult,
    Counterexample,
    Verdict,
    make_document,
    make_plain,
    write_json,
)

Results = dict[str, Any]
PAIR = Pair(np.array([0]), np.array([1]), "one row, 0 against 1")
GRID = np.linspace(0, 1, 51)


class Response:
    """Randomised response with a true epsilon of ``epsilon``."""

    def __init__(self, epsilon: float) -> None:
        self.keep = 1 / (1 + np.exp(-epsilon))

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        return np.where(rng.random(n) < self.keep, data[0], 1 - data[0])


def claim(name: str, verdict: str = "consistent", expected: str = "consistent", **fields: Any) -> AuditResult:
    """A claim as `run_audit` would leave it, without the draws."""
    violated = Counterexample(
        PAIR.name, "[0]", "[1]", "output is 0", 134, 34, 154, 3.13, 1.01, f"dpaudit run -k '{name}'"
    )
    values: dict[str, Any] = {
        "id": name,
        "entry": "/".join(name.split("/")[:2]),
        "source": {"document": "003", "place": "Section 4.2"},
        "level": "L1",
        "notion": "pure DP",
        "symbol": "ε",
        "claimed": "ε = 1",
        "claimed_level": 1.0,
        "parameters": {"epsilon": 1.0},
        "alpha": 0.001,
        "verdict": Verdict(verdict),
        "expected": Verdict(expected),
        "draws": 308,
        "lower_bound": 0.9,
        "exact": 1.0,
        "ceiling": 4.2,
        "resolution": {"0.1": 1.2, "0.01": 1.7},
        "resolves": 1.7,
        "detect": 2.0,
        "log10_e_value": -0.5,
        "log10_max_e_value": 3.13 if verdict == "violation" else 0.2,
        "pair": PAIR.name,
        "event": "output is 0",
        "counterexample": violated if verdict == "violation" else None,
        "sandwich": "holds",
        "tradeoff": {
            "q": GRID,
            "claimed": PureDP(1.0).cap(GRID, 1.0),
            "exact": PureDP(1.0).cap(GRID, 0.9),
            "points": [[0.22, 0.87]],
        },
        "wealth": {"draws": [40, 80, 308], "log10_e_value": [0.0, 0.2, -0.5]},
    }
    return AuditResult(**{**values, **fields})


def failure_rate(
    claimed: float, resolves: float, upper: float, slack: float, rate: float = 0.0, kind: str = "failure rate"
) -> dict[str, Any]:
    """Fields of a claim that an error fails with a probability, see `claim`."""
    found = {"kind": kind, "claimed": claimed, "rate": rate, "upper": upper, "slack": slack}
    return {
        "level": "L4",
        "notion": "failure rate",
        "claimed_level": claimed,
        "resolves": resolves,
        "exact": None,
        "accuracy": found,
    }


def results(*claims: AuditResult, errata: list[dict[str, Any]] | None = None) -> Results:
    """Results as they are read back from results.json."""
    manifest = {"seed": 0, "alpha": 0.01, "level": "smoke", "dpaudit": "0.1.0", "libraries": {"numpy": "2.4.6"}}
    content: Results = json.loads(json.dumps(make_document(manifest, list(claims), list(errata or []))))
    return content


def sample() -> Results:
    """One claim of each kind: expected and unexpected, without levels, with infinities."""
    erratum = {
        "id": "J1",
        "entry": "003/group",
        "source": {"document": "003", "place": "Theorem 2.1.1"},
        "class": "false",
        "summary": "the delta factor is too small",
        "fails": "delta at a distance of two",
        "correction": "a larger factor",
        "claims": {"003/group/L0/approx/as printed": "as printed", "not in this run": "as corrected"},
    }
    none: dict[str, Any] = dict.fromkeys(("lower_bound", "ceiling", "resolves", "log10_e_value"))
    none["resolution"] = {}
    none |= {"log10_max_e_value": None, "tradeoff": {}, "wealth": {}, "pair": None, "event": None}
    return results(
        claim("003/laplace/L1/pure/fine"),
        claim("003/laplace/L1/pure/mutant", "violation", "violation", exact="inf"),
        claim("003/response/L1/pure/surprise", "violation"),
        claim("003/response/L1/pure/missed", "consistent", "violation"),
        claim("003/response/L1/pure/weak", "inconclusive", resolves=float("inf"), lower_bound=0.0),
        claim("003/response/L1/pure/crash", "error", draws=0, message="the target raised KeyError", **none),
        claim("003/response/L1/pure/ours", sandwich="failed: lower bound 2 is above the exact level 1"),
        claim("003/noise/L3/law/rounded", "deviation", "deviation", level="L3", message="cell 3 is too full"),
        claim("003/noise/L3/law/dependent", "deviation", level="L1", message="draws are not independent"),
        claim(
            "003/group/L0/approx/as printed", "violation", "violation", level="L0", draws=0, counterexample=None, **none
        ),
        claim("001/gauss/L1/gdp/mu 1", notion="Gaussian DP", symbol="μ", claimed="μ = 1", log10_e_value=float("-inf")),
        errata=[erratum],
    )


@pytest.fixture(name="content")
def _content() -> Results:
    return sample()


UNEXPECTED = ("surprise", "missed", "weak", "crash", "ours", "dependent")


# ------------------------------------------------------------------------------------------ schema


def validate(content: Any) -> None:
    jsonschema.Draft202012Validator(read_schema()).validate(content)


def test_the_schema_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(read_schema())


def test_the_published_schema_is_made_from_the_fields_of_a_result() -> None:
    assert read_schema() == build_schema()
    for kind in (AuditResult, Counterexample):
        assert list(describe_fields(kind)) == [part.name for part in fields(kind)]
    names = {part.name for kind in (AuditResult, Counterexample) for part in fields(kind)}
    assert SHAPES.keys() <= names
    assert set(read_schema()["$defs"]["claim"]["properties"]) == {
        *(part.name for part in fields(AuditResult)),
        *DERIVED,
    }


def test_the_sample_is_valid(content: Results) -> None:
    validate(content)
    content["claims"][0]["accuracy"] = {"failure_rate": 0.03, "bounds": [0.02, 0.04]}
    validate(content)


def test_what_an_audit_writes_is_valid_and_renders(tmp_path: Path) -> None:
    guarantees: list[Guarantee] = [PureDP(1.0), GaussianDP(1.0)]
    audits = [
        run_audit(Response(e), g, [PAIR], Settings(draws=2000), Question(id=f"a/b/L1/x/{e} {g.notion}"))
        for e in (0.5, 3.0)
        for g in guarantees
    ]
    assert {audit.verdict for audit in audits} >= {Verdict.VIOLATION}
    content = results(*audits)
    validate(content)
    assert len(write_reports(content, tmp_path)) == 4


def broken() -> list[tuple[str, Any]]:
    """Paths in the sample and values that the schema must refuse there; None deletes."""
    return [
        ("schema", "dpaudit-results/1"),
        ("extra", 1),
        ("errata", None),
        ("manifest.seed", "0"),
        ("manifest.dpaudit", None),
        ("claims.0.verdict", "private"),
        ("claims.0.expected", None),
        ("claims.0.level", "L5"),
        ("claims.0.lower_bound", "infinite"),
        ("claims.0.draws", -1),
        ("claims.0.draws", 1.5),
        ("claims.0.alpha", 2),
        ("claims.0.ok", "yes"),
        ("claims.0.surplus", 1),
        ("claims.0.id", ""),
        ("claims.0.source.place", None),
        ("claims.0.accuracy", 0.1),
        ("claims.0.tradeoff.points", [[0.1, 0.2, 0.3]]),
        ("claims.1.counterexample.n", None),
        ("claims.1.counterexample", {}),
        ("errata.0.class", None),
    ]


@pytest.mark.parametrize(("path", "value"), broken())
def test_broken_results_are_refused(content: Results, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    place: Any = content
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    with pytest.raises(jsonschema.ValidationError):
        validate(content)


# ------------------------------------------------------------------------------- files, determinism


def test_files_are_the_same_to_the_byte_and_only_junit_knows_the_run(content: Results, tmp_path: Path) -> None:
    before = copy.deepcopy(content)
    run = {"started": "2031-05-06T07:08:09Z", "seconds": 12.5, "claim_seconds": {"003/laplace/L1/pure/fine": 3.25}}
    first, second, third = (write_reports(content, tmp_path / n, r) for n, r in (("a", None), ("b", None), ("c", run)))
    assert [path.name for path in first] == ["report.html", "report.md", "junit.xml", "results.sarif"]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    differs = [p.name for p, q in zip(first, third, strict=True) if p.read_bytes() != q.read_bytes()]
    assert differs == ["junit.xml"]
    suites = ET.fromstring((tmp_path / "c" / "junit.xml").read_text(encoding="utf-8"))
    assert suites.get("time") == "12.500"
    assert {suite.get("timestamp") for suite in suites} == {"2031-05-06T07:08:09"}
    assert suites[0][0].get("time") == "3.250"
    assert content == before
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == sorted(p.name for p in first)


def test_bytes_do_not_depend_on_the_hash_seed(content: Results, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(content))
    code = (
        "import hashlib, json, sys; from auditor.report import render_html; "
        "print(hashlib.sha256(render_html(json.load(open(sys.argv[1]))).encode()).hexdigest())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "results.json")],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == hashlib.sha256(render_html(content).encode()).hexdigest()


def test_nothing_refers_to_the_outside_or_to_this_machine(content: Results) -> None:
    page = render_html(content)
    assert "http:" not in page
    assert "https:" not in page
    assert "//" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    for text in (page, render_markdown(content), render_junit(content), render_sarif(content)):
        assert str(Path.cwd()) not in text
        assert "site-packages" not in text
    assert "http" not in render_markdown(content) + render_junit(content)
    assert re.findall(r"https?://[^\"]+", render_sarif(content)) == ["https://json.schemastore.org/sarif-2.1.0.json"]


def test_no_claims(tmp_path: Path) -> None:
    content = results()
    validate(content)
    write_reports(content, tmp_path)
    assert "No claims were audited." in render_html(content)
    assert 'class="sentence bad"' in render_html(content), "nothing selected is a failure, not a pass"
    assert summary_table(content) == "no claims\n"
    assert ET.fromstring(render_junit(content)).get("tests") == "0"


def test_400_claims_are_fast_and_small(tmp_path: Path) -> None:
    record = {"pairs": [PAIR.name], "events": [["output is 0"]] * 46, "chunks": [[0, 20, []]] * 49}
    path = {"draws": np.geomspace(40, 1e6, 49).astype(int), "log10_e_value": np.linspace(0, 3.2, 49)}
    kinds = [("consistent", "consistent"), ("violation", "violation"), ("violation", "consistent")]
    content = results(
        *(claim(f"003/e{i}/L1/pure/case {i}", *kinds[i % 3], record=record, wealth=path) for i in range(400))
    )
    start = time.perf_counter()
    page = write_reports(content, tmp_path)[0]
    assert time.perf_counter() - start < 30
    assert page.stat().st_size < 1e6
    text = page.read_text(encoding="utf-8")
    assert '<article class="claim' not in text
    assert text.count('<article class="finding') == MOST_FINDINGS
    whole = unpack_page(text)
    assert whole.count('<article class="claim') == 400
    tags = parsed(whole)
    assert len(set(tags.ids)) == len(tags.ids)
    assert {link[1:] for link in tags.links if link.startswith("#")} <= {*tags.ids, "print-all"}
    assert sum(i.startswith("claim-") for i in tags.ids) == 400


def unpack_page(page: str) -> str:
    """The page with what its script expands."""
    block = r'<script type="text/plain" id="pack-[^"]+">([^<]*)</script>'
    return re.sub(block, lambda found: zlib.decompress(base64.b64decode(found[1])).decode(), page)


# ------------------------------------------------------------------------------------------ hostile


HOSTILE = "<script>alert(1)</script>'\"><img src=x onerror=alert(2)> ]]> {{ 7*7 }} `|` \x1b[31m \x00 \ud800 \u202e http://evil.example/"


class Tags(HTMLParser):
    """Counts tags and collects ids and links."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [v or "" for k, v in attrs if k == "id"]
        self.links += [v or "" for k, v in attrs if k in ("href", "src")]
        self.handlers += [k for k, _ in attrs if k.startswith("on")]


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    return tags


def hostile() -> Results:
    content = sample()
    for record in content["claims"]:
        for key in (
            "id",
            "entry",
            "claimed",
            "notion",
            "pair",
            "event",
            "message",
            "title",
            "mechanism",
            "source_hash",
        ):
            record[key] = f"{record.get(key)} {HOSTILE}"
        record["source"] = {"document": HOSTILE, "place": HOSTILE}
        record["parameters"] = {HOSTILE: HOSTILE}
        if record["counterexample"]:
            for key in ("pair", "x", "y", "event", "replay"):
                record["counterexample"][key] = HOSTILE
    content["manifest"]["command"] = HOSTILE
    (shown,) = (record["id"] for record in content["claims"] if record["id"].startswith("003/group"))
    content["errata"][0] |= dict.fromkeys(("summary", "class", "id", "fails", "correction"), HOSTILE)
    content["errata"][0]["claims"] = {shown: "as printed"}
    return content


@pytest.mark.parametrize("whole", [20, 0])
def test_hostile_text_stays_text(whole: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.report.html.WHOLE", whole)
    content = hostile()
    write_reports(content, tmp_path)
    tags = parsed(unpack_page(render_html(content)))
    assert tags.tags.count("script") == 1
    assert tags.tags.count("img") == 0
    assert tags.handlers == []
    assert all(link.startswith("#") or link == "data:," for link in tags.links)
    assert "{{ 7*7 }}" in unpack_page(render_html(content))
    for text in (
        render_html(content),
        render_markdown(content),
        render_junit(content),
        render_sarif(content),
        summary_table(content),
    ):
        assert not set(text) & set("\x1b\x00\ud800\u202e")
    assert "<script>" not in re.sub(r"(`+) ?.*? ?\1(?!`)", "", render_markdown(content))
    cases = ET.fromstring(render_junit(content)).iter("testcase")
    assert all("]]>" in str(case.get("name")) for case in cases)
    json.loads(render_sarif(content))


def test_hostile_text_does_not_break_a_table() -> None:
    content = hostile()
    undecided = sum(c["verdict"] in ("error", "inconclusive") and not c["ok"] for c in content["claims"])
    notes = undecided + 1 if undecided else 0  # and a line without text
    assert len(summary_table(content).splitlines()) == len(content["claims"]) + 4 + notes
    rows = [line for line in render_markdown(content).splitlines() if line.startswith("| ") and "Section" not in line]
    widths = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
    assert widths == {4, 9, 12}, "columns of the counts, the errata and the claims"


def test_only_our_script_may_run(content: Results) -> None:
    page = render_html(content)
    script = re.search(r"<script>(.*)</script>", page, re.DOTALL)
    policy = re.search(r"script-src &#39;sha256-([^&]+)&#39;", page)
    assert script is not None
    assert policy is not None
    digest = hashlib.sha256(script[1].encode()).digest()
    assert digest.hex() == base64.b64decode(policy[1]).hex()


def test_clean_leaves_ordinary_text_alone() -> None:
    assert w.escape_controls("ε ≤ 1, δ = 1e-5\nx′\t∞") == "ε ≤ 1, δ = 1e-5\nx′\t∞"
    assert w.escape_controls("\x1b[1m\u202e\U000e0001") == "\\x1b[1m\\u202e\\U000e0001"


# --------------------------------------------------------------------------------------------- html


def text_of(page: str) -> str:
    body = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL).replace("<wbr>", "")
    return " ".join(re.sub(r"<[^>]+>", "", body).split())


def test_the_page_says_what_it_must(content: Results) -> None:
    page = render_html(content)
    text = text_of(page)
    assert RunView.of(content).sentence in text
    assert "6 unexpected" in text
    heads = [
        text.index(h, text.index("Manifest"))
        for h in (
            "Unexpected 6",
            "Errata 1",
            "All claims 11",
            "Violations, as expected 2",
            "Claim by claim",
            "Glossary",
        )
    ]
    assert heads == sorted(heads)
    assert "134 of 154 draws; x = [0]" in text
    assert "dpaudit run -k &#39;003/response/L1/pure/surprise&#39;" in text
    assert "flagged with probability 0.9" in text
    assert "could not have shown more than ε = 4.2" in text
    assert "If the curve is Gaussian, that is ε =" in text
    assert "running maximum, which decides" in text


def test_every_claim_has_a_section_that_can_be_linked_to(content: Results) -> None:
    tags = parsed(render_html(content))
    assert len(set(tags.ids)) == len(tags.ids)
    assert {link[1:] for link in tags.links if link.startswith("#")} <= set(tags.ids)
    assert "claim-003-laplace-L1-pure-fine" in tags.ids
    assert sum(i.startswith("claim-") for i in tags.ids) == len(content["claims"])


@pytest.mark.parametrize("verdict", ["violation", "consistent"])
def test_a_report_of_one_claim_shows_it_once_and_first(verdict: str) -> None:
    page = render_html(results(claim("003/response/L1/pure/alone", verdict)))
    tags = parsed(page)
    assert len(set(tags.ids)) == len(tags.ids)
    assert {link[1:] for link in tags.links if link.startswith("#")} <= set(tags.ids)
    assert tags.tags.count("article") == 1
    assert not {"filter", "unexpected"} & set(tags.ids)
    assert tags.ids.index("details") < tags.ids.index("claims")


def test_never_says_private_of_a_mechanism(content: Results) -> None:
    texts = (
        text_of(render_html(content)),
        render_markdown(content),
        render_junit(content),
        render_sarif(content),
        summary_table(content),
    )
    for text in texts:
        rest = re.sub(r"pass never means private", "", text)
        assert not re.search(r"\bprivate\b", rest)
    assert "not refuted" in texts[0]


def test_sentence() -> None:
    fine = [claim(f"a/b/L1/x/{i}") for i in range(40)]
    caught = [claim(f"a/b/L1/m/{i}", "violation", "violation") for i in range(18)]
    expected = "58 claims: 40 expected to hold were not refuted, 18 known to be broken were caught; nothing unexpected."
    assert RunView.of(results(*fine, *caught)).sentence == expected
    one = RunView.of(results(claim("a/b/L1/x/1", "error"))).sentence
    assert one == "1 claim: 1 unexpected (1 error)."


def test_what_is_optional_may_be_absent(content: Results, tmp_path: Path) -> None:
    definition = read_schema()["$defs"]
    content["manifest"] = {key: content["manifest"][key] for key in definition["manifest"]["required"]}
    required = definition["claim"]["required"]
    content["claims"] = [{key: record[key] for key in required} for record in content["claims"]]
    validate(content)
    assert len(write_reports(content, tmp_path)) == 4
    assert summary_table(content)


def test_an_interrupted_run_says_so() -> None:
    content = results(claim("a/b/L1/x/y"))
    content["manifest"] |= {"interrupted": True, "claims_selected": 2397}
    validate(content)
    for text in (render_html(content), render_markdown(content)):
        assert "Interrupted: 1 of 2,397 claims were finished." in text
    assert 'class="sentence bad"' in render_html(content)


def test_infinities_are_shown_and_sorted(content: Results) -> None:
    page = render_html(content)
    # Of mutant: level and bound as they are shown, which is what the script reads; and of the distribution: no bound.
    assert "<td>∞<td>0.9<td>90 %<td>–<td>–<td>308<td>" in page, "what a pass resolves is nothing to a violation"
    assert "<td>1<td>–<td>–<td>–<td>–<td>–<td>" in page
    body = page.partition("<body>")[2]  # not the head, which has a hash of letters
    assert "nan" not in body.lower().replace("nan)", "").split("<script>")[0].replace("dominan", "")


def test_plots_are_there_where_there_are_data(content: Results) -> None:
    page = render_html(content)
    sections = {r["id"]: s for r, s in zip(content["claims"], page.split('<article class="claim')[1:], strict=True)}
    assert sections["003/laplace/L1/pure/fine"].count("<svg") == 3
    assert sections["003/laplace/L1/pure/mutant"].count('class="ring"') == 2  # plot and key
    assert 'href="#square"' in sections["003/laplace/L1/pure/fine"]
    assert sections["003/group/L0/approx/as printed"].count("<svg") == 1
    assert sections["003/response/L1/pure/crash"].count('class="point"') == 0
    assert not re.search(r'(?:points|d|cx|cy|x|y)="[^"]*(?:nan|inf)', page)


@pytest.mark.parametrize(
    "fields",
    [
        {"claimed_level": 0.0, "lower_bound": 0.0, "exact": 0.0, "resolves": 0.0, "ceiling": 0.0},
        {"claimed_level": float("inf"), "lower_bound": 3.0, "exact": float("inf"), "ceiling": float("inf")},
        {"claimed_level": float("nan"), "lower_bound": None, "exact": None},
        {"wealth": {"draws": [40], "log10_e_value": [0.0]}},
        {"wealth": {"draws": [40, 80], "log10_e_value": [float("-inf"), float("inf")]}},
        {"wealth": {"draws": [40, 80], "log10_e_value": [-900.0, 900.0]}},
        {"alpha": 1.0},
        {"tradeoff": {"q": [0.0, 1.0], "claimed": [0.0, 1.0], "exact": None, "points": []}},
        {"counterexample": Counterexample("p", "x", "y", "e", 0, 0, 0, float("inf"), float("inf"), "r")},
        {
            "truncated_by": "time",
            "unseeded": True,
            "notion": "zCDP",
            "symbol": "ρ",
            "caveat": "One event shows a part.",
        },
        {"exact": 0.5, "event_level": 0.35, "symbol": "ρ"},
        {"exact": float("inf"), "event_level": 3.0},
    ],
)
def test_extreme_numbers_render(fields: dict[str, Any]) -> None:
    content = results(claim("a/b/L1/x/y", "violation", **fields))
    page = render_html(content)
    assert not re.search(r'(?:points|d|cx|cy|x|y|width)="[^"]*(?:nan|inf|e[+-])', page)
    for render in (render_markdown, render_junit, render_sarif, summary_table):
        assert render(content)


# -------------------------------------------------------------------------------------------- table


#: What an audit that decided nothing has of its own, and what its sentence says has to be done.
UNDECIDED: list[tuple[dict[str, Any], str]] = [
    ({"verdict": "error", "message": "the target raised KeyError"}, "mend what failed; `dpaudit check TARGET`"),
    ({"verdict": "error", "message": "did it answer?"}, "mend what failed"),
    ({"verdict": "error", "message": "no pandas", "record": {"failed": RUN_FAILED}}, "mend what failed; run it again."),
    (
        {"message": "a level below 3 might have been missed"},
        "draws (--draws, draws=) or ask for less (--detect, detect=)",
    ),
    ({"message": "a", "truncated_by": "time"}, "more time (--max-seconds, seconds=) or ask for less"),
    ({"message": "a", "detect": None}, "give it more draws (--draws, draws=)."),
    (
        {"message": "a", "independence": {"asked": "they repeat", "asked_p": 0.01}},
        "make each output draw noise of its own",
    ),
    ({"message": "a", "level": "L0"}, "state distributions whose exact curve is known more precisely"),
    ({"message": "a", "notion": "exponent"}, "fit it over a wider range"),
    ({"message": "a", "notion": "smallest parameter"}, "the failure rate is not monotone"),
]


@pytest.mark.parametrize(("fields", "remedy"), UNDECIDED)
def test_an_audit_that_decides_nothing_says_the_same_everywhere(fields: dict[str, Any], remedy: str) -> None:
    base = claim("003/response/L1/pure/weak", "inconclusive", counterexample=None)
    result = replace(base, **{**fields, "verdict": Verdict(fields.get("verdict", "inconclusive"))})
    sentence = result.undecided
    assert sentence.startswith("Could not be audited: " if "verdict" in fields else "Nothing is decided: ")
    assert f": {result.message}{'' if result.message.endswith('?') else '.'} To do: " in sentence
    assert remedy in sentence
    assert str(result).endswith(sentence)
    assert explain(result).endswith(sentence)  # what `dpaudit attack` prints
    content = results(result)
    (failure,) = [
        *ET.fromstring(render_junit(content)).iter("failure"),
        *ET.fromstring(render_junit(content)).iter("error"),
    ]
    assert str(failure.get("message")).endswith(sentence)
    assert sentence in str(failure.text)
    shown = {
        "table": summary_table(content),
        "html": unescape(re.sub("<[^>]+>", "", re.sub("</?code>", "`", render_html(content)))),
        "markdown": render_markdown(content).replace("\\", ""),
        "comment": render_comment(content).replace("\\", ""),
        "sarif": json.loads(render_sarif(content))["runs"][0]["results"][0]["message"]["text"],
    }
    assert [name for name, text in shown.items() if sentence not in text] == []


def test_an_audit_that_decides_something_needs_no_remedy() -> None:
    for verdict in ("violation", "deviation", "consistent"):
        assert claim("003/response/L1/pure/fine", verdict, message="seen").undecided == ""


def test_summary_table(content: Results) -> None:
    head, rule, *rows, gap, crash_note, weak, end, totals = summary_table(content).splitlines()
    assert head.split() == [
        "id",
        "source",
        "claimed",
        "exact",
        "lower",
        "reached",
        "resolves",
        "ceiling",
        "draws",
        "verdict",
        "expected",
    ]
    assert set(rule) <= {"-", " "}
    assert (gap, end) == ("", "")
    assert weak.startswith("! 003/response/L1/pure/weak: Nothing is decided: ")
    assert crash_note.startswith(
        "! 003/response/L1/pure/crash: Could not be audited: the target raised KeyError. To do:"
    )
    assert totals == "11 claims: 5 as expected, 6 unexpected (marked !)"
    assert [row.startswith("!") for row in rows] == [not r["ok"] for r in content["claims"]]
    starts = [m.start() for m in re.finditer(r"(?<=  )-", f"  {rule}")]
    assert all(row[s - 3] == " " for row in rows for s in starts[1:] if len(row) > s), "columns are aligned"
    crash = next(row for row in rows if "crash" in row)
    assert re.split(r"\s{2,}", crash) == [
        *(
            "!",
            "003/response/L1/pure/crash",
            "003, Section 4.2",
            "ε = 1",
            "1",
            "-",
            "-",
            "-",
            "-",
            "-",
            "error",
            "consistent",
        ),
    ]
    assert "check failed" in next(row for row in rows if "ours" in row)


def test_long_ids_are_shortened_in_the_middle() -> None:
    long = claim("003/a_very_long_name_of_an_entry_that_goes_on/L1/approximate/" + "x" * 80 + " the end")
    lines = summary_table(results(long, claim("a/b/L1/x/y"))).splitlines()
    assert max(map(len, lines)) <= 160
    assert "…" in lines[2]
    assert "the end" in lines[2]
    assert lines[2].startswith("   003/a_very_long")


# ------------------------------------------------------------------------------------ junit and sarif


def test_junit_counts(content: Results) -> None:
    root = ET.fromstring(render_junit(content).encode())
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("11", "4", "2")
    assert sum(int(str(s.get("failures"))) for s in root) == len(root.findall(".//failure")) == 4
    errors = [case.get("name") for case in root.iter("testcase") if case.find("error") is not None]
    assert errors == ["003/response/L1/pure/crash", "003/response/L1/pure/ours"]
    surprise = next(case for case in root.iter("testcase") if str(case.get("name")).endswith("surprise"))
    failure = surprise.find("failure")
    assert failure is not None
    assert failure.get("message") == "violation where consistent was expected"
    assert "134 of 154" in str(failure.text)
    assert not root.findall(".//*[@time]")


def test_sarif_structure(content: Results, tmp_path: Path) -> None:
    document = json.loads(render_sarif(content))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "dpaudit"
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules)
    found = run["results"]
    names = [f["partialFingerprints"]["claimId/v1"].rsplit("/", 1)[1] for f in found]
    assert names == ["surprise", "dependent", "crash", "weak", "missed", "ours"]
    assert {f["level"] for f in found} == {"error", "warning"}
    assert [f["level"] for f in found] == ["error", "warning", "error", "warning", "error", "error"]
    for f in found:
        assert rules[f["ruleIndex"]] == f["ruleId"]
        assert f["message"]["text"]
        assert "\n" not in f["message"]["text"]
    assert "134 of 154" in found[0]["message"]["text"]
    assert "x = [0]" in found[0]["message"]["text"]
    write_json(tmp_path / "results.json", content)
    lines = (tmp_path / "results.json").read_text(encoding="utf-8").splitlines()
    for f in found:
        location = f["locations"][0]
        line = lines[location["physicalLocation"]["region"]["startLine"] - 1]
        assert json.loads(line.rstrip(","))["id"] == location["logicalLocations"][0]["fullyQualifiedName"]


def test_sarif_without_findings_is_an_empty_run() -> None:
    (run,) = json.loads(render_sarif(results(claim("a/b/L1/x/y"))))["runs"]
    assert run["results"] == run["tool"]["driver"]["rules"] == []


# --------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (1.0, "1"),
        (0.04382, "0.04382"),
        (float("inf"), "∞"),
        (1e-5, "1e-5"),
        (999.9, "999.9"),
        (999.96, "1,000"),
        (-12345.6, "-12,350"),
        (8.674e4, "86,740"),
        (1.5e12, "1.5e12"),
    ],
)
def test_levels(value: float | None, text: str) -> None:
    assert w.format_level(value) == text


def test_large_shares_and_values_are_written_out() -> None:
    shares = (0.9999, 0.00001, 9.99, 26.7, 2.5e9, math.inf)
    assert [w.format_percent(share) for share in shares] == [
        "99.99 %", "0.001 %", "999 %", "2,670 %", "2.5e11 %", "∞ %"
    ]  # fmt: skip
    values = (179800.0, 7.66675e7, -3.0, 1765780.25, 1e14, 1e-9, 0.25)
    assert [w.format_scalar(value) for value in values] == [
        "179,800", "76,667,500", "-3", "1.76578e6", "1e14", "1e-9", "0.25"
    ]  # fmt: skip


def test_a_page_writes_numbers_of_python_as_they_are_printed() -> None:
    said = format_prose("ε = inf at n = 1.5e+06, δ = 1e-05 and p = 2e-10: 10^3.5 decides; `dpaudit show`")
    assert said == ("ε = ∞ at n = 1.5e6, δ = 1e-5 and p = 2e-10: 10<sup>3.5</sup> decides; <code>dpaudit show</code>")
    assert [svg.label_tick(value) for value in (-200000.0, -2.0, 0.5)] == ["−200k", "−2", "0.5"]
    assert svg.shorten_count(1e-6) == "1e-6"


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ({"lower_bound": 0.5, "exact": "inf", "claimed_level": 1.0}, "lower bound ≤ exact ≤ claimed"),
        ({"exact": 1.0, "claimed_level": 1.0}, "exact ≤ claimed"),
    ],
)
def test_the_order_of_levels_names_those_that_are_shown(levels: dict[str, Any], said: str) -> None:
    assert plots.say_order(ClaimView(levels, "claim", 1)) == f"If the claim is true, {said}."
    assert plots.say_order(ClaimView({"claimed_level": 1.0}, "claim", 1)) == ""


def test_a_ring_in_the_corner_of_a_trade_off_plot_hides_no_label() -> None:
    square = plots.draw_definitions().partition('<g id="corner">')[0]
    ends = [-6 + float(x) for x in re.findall(r'<text x="(-[\d.]+)" y=', square)]  # in pixels from the axis
    assert len(ends) == 5
    assert max(ends) <= -plots.RING - 2


def test_slugs_are_stable_and_unique() -> None:
    assert w.make_slugs(["a/b c", "a b/c", "a-b-c", "ε"]) == [
        "claim-a-b-c",
        "claim-a-b-c-2",
        "claim-a-b-c-3",
        "claim-unnamed",
    ]


def test_flat_and_shorten() -> None:
    assert w.flatten_value({"a": {"b": 1}, "c": [{"d": None}, {"d": True}], "e": list(range(20))}) == [
        ("a, b", "1"),
        ("c 1, d", "–"),
        ("c 2, d", "yes"),
        ("e", "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … (20 values)"),
    ]
    assert [w.shorten_text("abcdefgh", n) for n in (8, 7, 4, 2)] == ["abcdefgh", "abc…fgh", "ab…h", "ab"]
    assert w.format_e_value(-0.01) == "10^0.0"
    assert make_plain(float("nan")) == "nan"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "reached"),  # 90 % of the level
        ({"lower_bound": 0.7}, ""),
        ({"lower_bound": 0.1, "exact": 0.4}, "loose"),
        ({"lower_bound": 0.1, "exact": None}, ""),
        ({"resolves": 2.5, "detect": 3.0}, "out of reach"),
        ({"lower_bound": 0.1, "claimed_level": 0.0, "exact": 0.0, "resolves": 0.09}, ""),
        ({"verdict": Verdict.INCONCLUSIVE, "resolves": 2.5}, ""),
        ({"notion": "conformity"}, ""),
        (failure_rate(0.01, 0.06, upper=0.04, slack=2.0), "out of reach"),
        (failure_rate(0.01, 0.06, upper=0.01, slack=2.0), ""),  # too few to find 0.02, and enough to exclude it
        (failure_rate(0.1, 0.15, upper=0.12, slack=20.0), "loose"),
        (failure_rate(0.1, 0.15, upper=0.12, slack=1.05), "reached"),
        (failure_rate(0.1, 0.15, upper=0.12, slack=20.0, rate=0.095), "reached"),
        (failure_rate(0.1, 0.15, upper=0.06, slack=math.inf), ""),  # a quantile of 0 says nothing of the bound
        (failure_rate(0.1, 0.15, upper=0.01, slack=math.inf), "loose"),
        (failure_rate(0.1, 0.15, upper=0.02, slack=math.nan), ""),
        (failure_rate(0.1, 0.15, upper=0.12, slack=math.inf, rate=0.095), "reached"),
        (failure_rate(0.1, 0.15, upper=math.nan, slack=math.inf, kind="expected error"), "loose"),
        ({**failure_rate(0.1, 0.15, upper=0.12, slack=20.0), "exact": 0.1}, "reached"),
        (failure_rate(0.0, 0.45, upper=0.45, slack=1.0, kind="phase diagram"), ""),
    ],
)
def test_a_pass_says_whether_its_claim_is_reached_loose_or_out_of_reach(fields: dict[str, Any], said: str) -> None:
    (view,) = RunView.of(results(claim("003/laplace/L1/pure_dp/count", **fields))).claims
    assert view.strength == said
    assert view.said == ", ".join(filter(None, (str(fields.get("verdict", "consistent")), said)))


def test_the_pair_of_a_stated_distribution_is_named(content: Results) -> None:
    exact = next(record for record in content["claims"] if record["level"] == "L0")
    exact |= {"pair": "one joins", "expected": "consistent", "ok": False}
    assert "- pair: one joins" in render_markdown(content).splitlines()
