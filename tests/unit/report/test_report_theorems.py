"""The report of accuracy claims and computed statements, and the table of errata."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import auditor.report
from auditor.claims import registry
from auditor.report import write_reports
from auditor.report.curves import plot_growth
from auditor.report.explain import explain_verdict
from auditor.report.html import render_html
from auditor.report.markdown import render_markdown
from auditor.report.theorems import tabulate_theorems
from auditor.report.view import ClaimView, RunView
from auditor.results import make_plain, result_from
from auditor.runs.run import Run
from auditor.runs.runner import execute_run, results_document

DECLARED = """
import math
import numpy as np
from auditor import Pair, PureDP
from auditor.audits.accuracy import Absolute, Setting, Smallest
from auditor.claims import (
    Erratum, Source, accuracy, as_corrected, as_printed, entry, expectation, inequality, proof_step, scaling, smallest,
    statement_holds, privacy,
)

PAIR = Pair(np.array([0]), np.array([1]), "one bit")

def response(data, n, rng):
    return np.where(rng.random(n) < 0.7, data[0], 1 - data[0])

class Noise:
    def __init__(self, scale):
        self.scale = scale
    def __call__(self, data, n, rng):
        return rng.laplace(0.0, self.scale, n)

def at(scale, limit=math.nan):
    return Setting(Noise(scale), None, Absolute(0.0), limit)

FALSE = Erratum("J1", "false", "a <b>tail</b> bound", fails="too small | a tail", correction="the exponent is 1")
PROOF = Erratum("J2", "proof", "a union bound", fails="the sum is 1", correction="one row more")

@entry("900/noise", title="Laplace noise", source=Source("900", "Theorem 1"), errata=[FALSE, PROOF])
def noise():
    tail = (Noise(1.0), None, Absolute(0.0))
    bound = math.log(20)
    yield as_printed("J1", accuracy(*tail, at_most=bound, beta=0.03, case="wrong", expected="deviation"))
    yield as_corrected("J1", accuracy(*tail, at_most=bound, beta=0.05, case="right"))
    yield as_printed("J1", privacy(response, PureDP(0.5), PAIR, case="wrong", expected="violation"))
    yield proof_step("J2", inequality(lambda: [("k = 10", 1.0, 1.0)], statement="the union bound is below 1",
                                      relation="<", case="step", expected="deviation"))
    yield statement_holds("J2", expectation(Noise(1.0), None, Absolute(0.0), at_most=1.0))
    yield smallest(lambda b: at(1 / b, 1.0), parameter="b", claimed=4.0, beta=0.05, low=0.5, integer=False)
    yield scaling(lambda b: at(b), parameter="b", at=(1, 2, 4), exponent=1.0, others=(0.5,), curve=lambda b: b,
                  derived=True)
"""


@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("claims") / "noise.py"
    path.write_text(DECLARED, encoding="utf-8")
    run = Run(paths=(str(path),))
    claims = registry.load_claims(run.paths)
    outcome = execute_run(run, claims)
    content: dict[str, Any] = json.loads(json.dumps(results_document(run, claims, outcome)))
    return content


def without(content: dict[str, Any], *cases: str) -> dict[str, Any]:
    kept = [record for record in content["claims"] if not record["id"].endswith(cases)]
    return {**content, "claims": kept}


def rows_of(content: dict[str, Any]) -> list[str]:
    """Ids of the rows of the table of errata, in both formats."""
    page, text = render_html(content), render_markdown(content)
    table = page.partition('<section id="errata">')[2].partition("</section>")[0]
    in_page = re.findall(r'<tr><th scope="row">(.*?)</th>', table)
    in_text = re.findall(r"^\| (900 J\d) \|", text, re.MULTILINE)
    assert in_page == in_text
    return in_page


def test_results_are_valid_and_come_back_from_their_records(run: dict[str, Any], tmp_path: Path) -> None:
    schema = json.loads((Path(auditor.report.__file__).parent / "schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(run, schema)
    for record in run["claims"]:
        assert result_from(record).to_json() == record
        assert record["ok"], record["id"]
    write_reports(run, tmp_path)


def test_an_erratum_has_a_row_with_what_fails_by_how_much_and_what_is_right(run: dict[str, Any]) -> None:
    assert rows_of(run) == ["900 J1", "900 J2"]
    text = render_markdown(run)
    (first,) = (line for line in text.splitlines() if line.startswith("| 900 J1"))
    assert "900, Theorem 1" in first
    assert "false as printed" in first
    assert "fails with probability ≥ 0.0" in first
    assert "where ≤ 0.03 is stated" in first
    assert "ε ≥ 0." in first
    assert "where ε = 0.5 is stated" in first
    assert "too small \\| a tail" in first
    assert "not refuted: 900/noise/L4/failure\\_rate/right" in first
    (second,) = (line for line in text.splitlines() if line.startswith("| 900 J2"))
    assert "holds; the printed step does not" in second
    assert "1 where &lt; 1 is stated (k = 10)" in second


def test_a_row_is_gone_with_the_claims_that_show_it(run: dict[str, Any]) -> None:
    assert rows_of(without(run, "/step")) == ["900 J1"]
    assert rows_of(without(run, "failure_rate/wrong")) == ["900 J1", "900 J2"], "another claim shows it"
    assert rows_of(without(run, "/wrong")) == ["900 J2"]
    assert rows_of(without(run, "/wrong", "/step")) == []
    assert (
        "Errata"
        not in render_html(without(run, "/wrong", "/step")).partition('id="manifest"')[0].partition("<main>")[2]
    )


def test_a_claim_that_did_not_come_out_accuses_nobody(run: dict[str, Any]) -> None:
    content = json.loads(json.dumps(run))
    for record in content["claims"]:
        if record["id"].endswith("/step"):
            record |= {"verdict": "consistent", "ok": False}
    assert rows_of(content) == ["900 J1"]


def test_a_correction_that_was_not_checked_says_so(run: dict[str, Any]) -> None:
    assert "(not confirmed here" not in render_markdown(run)
    content = json.loads(json.dumps(run))
    for record in content["claims"]:
        if record["id"].endswith("/right"):
            record |= {"verdict": "deviation", "ok": False}
    assert "(not confirmed here" in render_markdown(content)


def test_the_table_of_theorems_has_what_is_claimed_found_and_the_slack(run: dict[str, Any]) -> None:
    found = {claim.id.partition("/L")[2]: row for claim, row in tabulate_theorems(RunView.of(run))}
    assert set(found) == {
        "4/failure_rate/wrong",
        "4/failure_rate/right",
        "4/expected_error/reference",
        "4/smallest_parameter/reference",
        "4/exponent/reference",
    }
    exponent = found["4/exponent/reference"]
    assert exponent.claimed == "1"
    assert float(exponent.found.split()[0]) == pytest.approx(1.0, abs=0.05)
    assert exponent.outcome == "consistent"
    assert float(exponent.slack.split()[0]) == pytest.approx(1 / math.log(2), abs=0.2)
    assert found["4/smallest_parameter/reference"].claimed == "4"


def test_every_kind_is_said_in_words(run: dict[str, Any]) -> None:
    said = {claim.id.partition("/L")[2]: " ".join(explain_verdict(claim)) for claim in RunView.of(run).claims}
    assert "Not refuted: error ≤ 2.996 with probability ≥ 0.95." in said["4/failure_rate/right"]
    assert "would have been flagged with probability 0.9" in said["4/failure_rate/right"]
    assert said["4/failure_rate/wrong"].startswith("Not as claimed: error ≤ 2.996 with probability ≥ 0.97.")
    assert "The mean error was" in said["4/expected_error/reference"]
    assert "The smallest value of b that works is about" in said["4/smallest_parameter/reference"]
    assert "The interval excludes 0.5." in said["4/exponent/reference"]
    assert "The constant is derived" in said["4/exponent/reference"]
    assert "it holds in 0 of 1 case; the worst is" in said["0/inequality/step"]


@pytest.mark.parametrize(
    ("kind", "found", "said", "unsaid"),
    [
        ("failure_rate/right", {"quantile": 0.0, "slack": "inf"}, "This quantile was 0: any bound above 0", "inf"),
        ("failure_rate/right", {"quantile": 0.0, "error": 0.0}, "The error was above 0 in", "quantile"),
        ("failure_rate/right", {"quantile": "inf"}, "More than 5 % of the errors were infinite.", "∞"),
        ("exponent", {"growth_lower": "-inf", "growth_upper": "inf"}, "No exponent could be certified", "∞"),
        ("exponent", {"growth_lower": "-inf"}, "between some two values the exponent is at most", "∞"),
    ],
)
def test_sentences_do_not_say_what_says_nothing(
    run: dict[str, Any], kind: str, found: dict[str, Any], said: str, unsaid: str
) -> None:
    (record,) = (record for record in run["claims"] if f"/{kind}" in record["id"])
    changed = {**record, "verdict": "consistent", "draws": 100, "accuracy": {**record["accuracy"], **found}}
    text = " ".join(explain_verdict(ClaimView(changed, "claim", 1)))
    assert said in text
    assert unsaid not in text


def test_points_limits_fit_and_the_theorems_curve_are_drawn(run: dict[str, Any]) -> None:
    plots = {claim.id: plot_growth(claim) for claim in RunView.of(run).claims}
    drawn = [id_ for id_, plot in plots.items() if plot]
    assert drawn == ["900/noise/L4/exponent/reference"]
    plot = plots[drawn[0]]
    assert plot.count("<circle") == plot.count('class="mark limits"') == 3
    assert 'class="claimed"' in plot
    assert 'class="fit"' in plot


@pytest.mark.parametrize("values", [(5e-324, 1e-300, 1e-200), (1e200, 1e300, 1.7e308), (0.0, 1.0, math.inf)])
def test_the_smallest_and_largest_floats_are_drawn(run: dict[str, Any], values: tuple[float, ...]) -> None:
    claim = next(claim for claim in run["claims"] if claim["id"] == "900/noise/L4/exponent/reference")
    points = [
        {**point, **dict.fromkeys(("value", "lower", "upper", "fit", "curve"), make_plain(value))}
        for point, value in zip(claim["accuracy"]["points"], values, strict=True)
    ]
    drawn = {**claim, "accuracy": {**claim["accuracy"], "points": points}}
    page = render_html({**run, "claims": [drawn]})
    assert page.count('class="mark limits"') >= 3
    assert not re.search(r' (?:d|cx|cy|x|y)="[^"]*(?:nan|inf|e[+-])', page)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)


def test_hostile_names_stay_text(run: dict[str, Any]) -> None:
    hostile = "<img src=x onerror=alert(1)>|\x1b[31m"
    content = json.loads(json.dumps(run).replace('"b"', json.dumps(hostile)).replace('"k = 10"', json.dumps(hostile)))
    tags = Tags()
    tags.feed(render_html(content))
    assert "img" not in tags.names
    assert "b" not in tags.names, "markup in an erratum is text"
    for text in (render_html(content), render_markdown(content)):
        assert "\x1b" not in text
    widths = {
        len(re.findall(r"(?<!\\)\|", line))
        for line in render_markdown(content).splitlines()
        if line.startswith("| 900/noise")
    }
    assert widths == {10, 12}


def test_limits_that_are_infinite_or_zero_are_drawn_to_the_edge(run: dict[str, Any]) -> None:
    content = json.loads(json.dumps(run))
    (record,) = (r for r in content["claims"] if r["notion"] == "exponent")
    record["accuracy"]["points"][0] |= {"lower": 0.0, "upper": "inf"}
    (claim,) = (c for c in RunView.of(content).claims if c.text("notion") == "exponent")
    assert np.isfinite([float(v) for v in re.findall(r"[MV](-?[\d.]+)", plot_growth(claim))]).all()


def draws_of(record: dict[str, Any]) -> str:
    return dict(ClaimView(record, "claim", 1).facts)["draws"].partition("; ")[2]


def test_a_report_says_what_ended_the_draws_or_nothing(run: dict[str, Any]) -> None:
    records = {record["id"].rpartition("noise/")[2]: record for record in run["claims"]}
    right = next(record for name, record in records.items() if name.endswith("failure_rate/right"))
    least = next(record for name, record in records.items() if "smallest" in name)
    mean = next(record for name, record in records.items() if "expected" in name)
    wide = {**right, "accuracy": {**right["accuracy"], "upper": 0.06}}
    closer = {**right, "accuracy": {**right["accuracy"], "upper": 0.049}}
    assert draws_of(wide) == draws_of(mean) == draws_of({**closer, "stop": "budget"}) == "the whole budget"
    assert draws_of(closer) == "ended where the claim was certified"
    assert draws_of({**closer, "truncated_by": "time"}) == "cut short by time"
    assert draws_of(least) == draws_of({**mean, "independence": {"asked": "a tie", "asked_p": 0.01}}) == ""
    assert draws_of({**mean, "record": {"assumes": "nothing"}}) == ""
