"""The evidence sheet: what it states follows from the results, and no more."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import auditor
from auditor.errors import SpecificationError
from auditor.events.cause_kinds import IGNORABLE
from auditor.privacy.guarantees import GaussianDP, Guarantee, PureDP, parse_claim
from auditor.report.evidence_sheet import find_meaning, make_statement, render_sheet_html, render_sheet_markdown
from auditor.report.view import ClaimView
from auditor.results import make_document
from tests.commandline import Command

PAIR = auditor.Pair([0], [1])
HAZARDS = ["values", "bits", "arithmetic", "exceptions", "shape", "independence", "composition", "sampling"]


def noisy(data: Any, n: int, rng: np.random.Generator) -> Any:
    p = 1 - math.exp(-1)
    return sum(data) + rng.geometric(p, n) - rng.geometric(p, n)


def results(*audits: auditor.AuditResult, **manifest: Any) -> dict[str, Any]:
    return make_document({"dpaudit": "0.1.0", "seed": 0, **manifest}, audits, [])


@pytest.fixture(scope="module")
def passed() -> auditor.AuditResult:
    return auditor.audit(noisy, PureDP(1.0), PAIR, draws=4_000)


@pytest.fixture(scope="module")
def refuted() -> auditor.AuditResult:
    return auditor.audit(noisy, PureDP(0.2), PAIR, draws=20_000)


def hazards_of(content: dict[str, Any]) -> dict[str, dict[str, str]]:
    stated = make_statement(content, "results.json", "0" * 64)["predicate"]["hazards"]
    return {hazard["name"]: hazard for hazard in stated}


def test_a_pass_states_what_was_tested_and_with_what_resolution(passed: auditor.AuditResult) -> None:
    found = hazards_of(results(passed))
    assert list(found) == HAZARDS
    assert {name for name, hazard in found.items() if hazard["status"] == "tested"} == {
        *("values", "bits", "exceptions", "shape", "independence")
    }
    assert f"{passed.resolution['0.01']:.4g}" in found["values"]["resolution"]
    assert "not measured" in found["bits"]["resolution"]  # no planted violation of the measurement lies in bits


class Answer:
    """An object of which only the text can be read."""

    def __init__(self, value: float) -> None:
        self._value = value


def test_what_could_not_be_read_is_not_tested(passed: auditor.AuditResult) -> None:
    def answers(data: Any, n: int, rng: np.random.Generator) -> Any:
        return [Answer(value) for value in rng.normal(size=n)]

    gap = "what objects in the outputs hold beside their texts"
    unread = auditor.audit(answers, PureDP(1.0), PAIR, draws=400, detect=9.0)
    for result, said in ((unread, True), (passed, False)):
        stated = make_statement(results(result), "results.json", "0" * 64)["predicate"]
        assert (gap in stated["not tested"]) == said


def test_a_violation_names_its_hazard_and_says_nothing_of_others(refuted: auditor.AuditResult) -> None:
    assert refuted.verdict == "violation"
    found = hazards_of(results(refuted))
    assert found["values"]["status"] == "found"
    assert {found[name]["status"] for name in ("bits", "exceptions", "shape")} == {"not tested"}
    assert not any(found[name]["resolution"] for name in ("values", "bits", "exceptions", "shape"))


def test_the_fixed_size_method_has_no_exceptions_among_its_events() -> None:
    fixed = auditor.audit(noisy, PureDP(1.0), PAIR, draws=20_000, method="clopper-pearson")
    assert fixed.verdict == "consistent"
    found = hazards_of(results(fixed))
    assert found["values"]["status"] == "tested"
    assert (found["exceptions"]["status"], found["exceptions"]["resolution"]) == ("not tested", "")


def test_a_private_trace_that_draws_certify_states_their_tests() -> None:
    def loud(data: Any, rng: np.random.Generator) -> float:
        return float(5 * data[0] + rng.laplace())

    traced = auditor.trace(auditor.one_draw(loud), PureDP(1.0), PAIR, private=True)
    assert traced.verdict == "violation"
    found = hazards_of(results(traced))
    assert (found["values"]["status"], found["independence"]["status"]) == ("found", "tested")


def test_what_is_ignored_is_said_where_it_would_have_shown(passed: auditor.AuditResult) -> None:
    found = hazards_of(results(replace(passed, ignore=("lattice", "missing-values", "keys", "shared-noise"))))
    assert found["values"]["how"].endswith("left out of the audit: shared-noise")
    assert found["bits"]["how"].endswith("left out of the audit: lattice")
    assert found["shape"]["how"].endswith("left out of the audit: missing-values, keys")
    assert "left out" not in found["exceptions"]["how"]
    found = hazards_of(results(replace(passed, ignore=tuple(IGNORABLE))))
    assert {name for name in HAZARDS if found[name]["how"].startswith("left out of the audit")} == {
        *("bits", "exceptions", "shape")
    }
    assert found["values"]["status"] == "tested"


def test_what_a_further_search_found_or_passed_is_stated() -> None:
    def bits(data: Any, n: int, rng: np.random.Generator, scale: float) -> Any:
        return data[0] + rng.laplace(scale=scale, size=n)

    for scale, values in ((0.5, "found"), (2.0, "tested")):
        audited = auditor.audit(partial(bits, scale=scale), PureDP(1.0), PAIR, draws=40_000, also=True, seed=1)
        assert audited.counterexample is not None
        assert audited.counterexample.cause.startswith("floating-point")
        found = hazards_of(results(audited))
        assert (found["bits"]["status"], found["values"]["status"]) == ("found", values)
        assert f"{audited.also[-1]['draws']:,} further draws" in found["values"]["how"]
        assert found["shape"]["status"] == ("not tested" if values == "found" else "tested")


@pytest.mark.parametrize(
    ("cause", "hazard"),
    [
        ("coordinate 3: threshold on its value", "values"),
        ("output never varies; threshold on the value of the output", "values"),
        ("learned score", "values"),
        ("equal coordinates 1 and 2: repeated noise", "values"),
        ("floating-point bit structure of coordinate 3", "bits"),
        ("lattice: values of which outputs are multiples", "bits"),
        ("exception", "exceptions"),
        ("key that is present or not", "shape"),
        ("NaN or infinite values at a place of the output", "shape"),
        ("order of the output's keys", "shape"),
    ],
)
def test_every_cause_is_of_one_hazard(refuted: auditor.AuditResult, cause: str, hazard: str) -> None:
    assert refuted.counterexample is not None
    seen = replace(refuted, counterexample=replace(refuted.counterexample, cause=cause))
    assert [name for name, found in hazards_of(results(seen)).items() if found["status"] == "found"] == [hazard]


def test_values_outside_the_domain_count_as_arithmetic(passed: auditor.AuditResult) -> None:
    assert hazards_of(results(passed, outside=True))["arithmetic"]["status"] == "tested"


def test_scores_of_canaries_are_no_events_on_outputs() -> None:
    rng = np.random.default_rng(0)
    scored = auditor.audit_scores(rng.normal(size=200), rng.normal(size=200), PureDP(1.0))
    found = hazards_of(results(scored, outside=True))
    for name in ("values", "bits", "arithmetic", "exceptions", "shape"):
        assert found[name]["status"] == "not tested"
        assert found[name]["how"] == "no events on outputs were learned in this audit"


def response(data: Any, rng: np.random.Generator) -> int:
    return int(data[0]) if rng.random() < 0.75 else 1 - int(data[0])


def test_a_certificate_states_what_was_walked() -> None:
    held = results(auditor.prove(auditor.one_draw(response), PureDP(math.log(3)), pairs=PAIR))
    found = hazards_of(held)
    assert {name for name, hazard in found.items() if hazard["status"] == "tested"} == {
        *("values", "bits", "exceptions", "shape")
    }
    assert found["values"]["how"] == "all random decisions of the code were walked on 1 pair of 2 datasets"
    page = render_sheet_markdown(make_statement(held, "results.json", "0" * 64))
    assert "| pairs | 1 pair of 2 datasets; the worst: \\[0\\] against \\[1\\] |" in page
    assert "| certified level | from 1.099 to 1.099 on these datasets |" in page
    assert "holds on the datasets that were walked, and on no others." in page
    assert "rarer than the resolution" not in page
    broken = results(auditor.prove(auditor.one_draw(response), PureDP(1.0), pairs=PAIR))
    assert {hazard["status"] for hazard in hazards_of(broken).values()} == {"not tested"}
    assert "shows that the claim does not hold." in render_sheet_markdown(make_statement(broken, "a", "0" * 64))


def test_a_replay_states_that_it_was_one() -> None:
    traced = results(auditor.trace(auditor.one_draw(lambda data, rng: data[0] + rng.laplace()), PureDP(1.0), PAIR))
    page = render_sheet_markdown(make_statement(traced, "results.json", "0" * 64))
    assert "Not refuted by two runs with the same random variates." in page
    assert {hazard["status"] for hazard in hazards_of(traced).values()} == {"not tested"}
    assert "does not show that the claim holds." in page


@pytest.mark.parametrize("claim", ["epsilon=1", "epsilon=0.3,delta=0.01", "mu=1", "rho=0.1"])
def test_what_a_claim_allows_is_its_cap_rounded_up(claim: str) -> None:
    guarantee: Guarantee = parse_claim(claim)
    grid = np.concatenate([[0.0], np.geomspace(1e-4, 0.5, 60), np.linspace(0.51, 1, 50)])
    cap = guarantee.cap(grid, guarantee.level)
    view = ClaimView({"tradeoff": {"q": grid.tolist(), "claimed": cap.tolist()}}, "", 1)
    meaning = find_meaning(view)
    fine = np.linspace(0, 1, 1_001)
    exact = float(np.max(guarantee.cap(fine, guarantee.level) - fine))
    assert exact * (1 - 1e-4) <= meaning["advantage"] <= exact * 1.011
    for rate, allowed in meaning["true positive rates"].items():
        tight = float(guarantee.cap(np.array([float(rate)]), guarantee.level)[0])
        assert tight * (1 - 1e-6) <= allowed <= tight * 1.011


def test_pure_dp_has_its_closed_form(passed: auditor.AuditResult) -> None:
    meaning = find_meaning(ClaimView(passed.to_json(), "", 1))
    assert meaning["advantage"] == math.ceil(1000 * math.tanh(0.5)) / 1000
    assert meaning["true positive rates"]["0.01"] == 0.0272  # e / 100, rounded up


def test_a_claim_without_a_plot_has_no_meaning_in_numbers() -> None:
    assert find_meaning(ClaimView({}, "", 1)) == {}


def test_the_statement_is_one_of_in_toto_and_holds_no_time(passed: auditor.AuditResult) -> None:
    content = results(passed)
    statement = make_statement(content, "results.json", "ab" * 32, unit="one patient")
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert {"name": "results.json", "digest": {"sha256": "ab" * 32}} in statement["subject"]
    assert all(subject["name"] and subject["digest"] for subject in statement["subject"])
    assert statement["predicateType"].startswith("urn:")
    assert statement["predicate"]["claim"]["unit"] == "one patient"
    assert json.dumps(statement, allow_nan=False) == json.dumps(
        make_statement(content, "results.json", "ab" * 32, unit="one patient"), allow_nan=False
    )


def test_pages_show_all_hazards_and_escape_names(passed: auditor.AuditResult) -> None:
    statement = make_statement(results(passed, target="<b>|x"), "results.json", "0" * 64)
    page, text = render_sheet_html(statement), render_sheet_markdown(statement)
    assert "<b>|x" not in page
    assert "&lt;b&gt;|x" in page
    statement["predicate"]["summary"] = "The evidence reached 10^2.6"
    assert "reached 10<sup>2.6</sup>" in render_sheet_html(statement), "as in the report"
    for name in HAZARDS:
        assert f">{name}<" in page
        assert f"| {name} |" in text


def test_a_claim_has_to_be_named_among_several(passed: auditor.AuditResult) -> None:
    gaussian = replace(auditor.audit(noisy, GaussianDP(1.5), PAIR, draws=400), id="audit/L1/gaussian_dp/given")
    content = results(passed, gaussian)
    with pytest.raises(SpecificationError, match="2 claims of privacy"):
        make_statement(content, "results.json", "0" * 64)
    named = make_statement(content, "results.json", "0" * 64, gaussian.id)
    assert named["predicate"]["claim"]["notion"] == "Gaussian DP"
    with pytest.raises(SpecificationError, match=f"did you mean {gaussian.id}"):
        make_statement(content, "results.json", "0" * 64, gaussian.id + "x")
    with pytest.raises(SpecificationError, match="no claims of privacy"):
        make_statement(results(), "results.json", "0" * 64)


def test_the_command_prints_or_writes(dpaudit: Command, tmp_path: Path, passed: auditor.AuditResult) -> None:
    file, sheet = tmp_path / "results.json", tmp_path / "sheet"
    file.write_text(json.dumps(results(passed)), encoding="utf-8")
    printed = dpaudit("evidence", file)
    assert printed.code == 0, printed
    assert printed.out.startswith("# Evidence: noisy")
    written = dpaudit("evidence", file, "--unit", "one patient", "--out", sheet)
    assert written.code == 0, written
    assert "one patient" in (sheet / "evidence.html").read_text(encoding="utf-8")
    assert json.loads((sheet / "evidence.json").read_text(encoding="utf-8"))["predicate"]["verdict"] == passed.verdict
    assert dpaudit("evidence", file, "nothing").code == 2
