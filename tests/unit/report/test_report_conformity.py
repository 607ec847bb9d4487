"""Reports of conformity, of all notions and of both methods: what is said fits what was checked."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import jsonschema
import numpy as np
import pytest
from scipy import stats

from auditor.audits.conformity import check_conformity
from auditor.audits.context import Question
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.datasets import Pair
from auditor.privacy.guarantees import ZCDP, ApproxDP, DeltaDP, GaussianDP, Guarantee, PureDP, RenyiDP, TradeoffCurve
from auditor.privacy.laws import FiniteLaw
from auditor.report import read_schema, render_html, render_junit, render_markdown, render_sarif, summary_table
from auditor.report.explain import explain_verdict
from auditor.report.partition_plots import compute_deviations, plot_cells, short_labels
from auditor.report.plots import plot_evidence, plot_levels, plot_tradeoff
from auditor.report.view import ClaimView, RunView
from auditor.results import AuditResult, Verdict, make_document

Results = dict[str, Any]
PAIR = Pair(np.array([0]), np.array([1]), "one row, 0 against 1")


class Die:
    """A die with a stated distribution; ``loaded`` of its throws are ones, ``seventh`` sevens, whatever is stated."""

    def __init__(self, loaded: float = 0.0, seventh: float = 0.0) -> None:
        self.loaded, self.seventh = loaded, seventh

    def law(self, data: Any) -> FiniteLaw:
        return FiniteLaw(tuple(range(1, 7)), np.full(6, 1 / 6))

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        thrown = rng.integers(1, 7, n)
        kind = rng.random(n)
        return np.where(kind < self.loaded, 1, np.where(kind > 1 - self.seventh, 7, thrown))


def response(data: Any, n: int, rng: np.random.Generator) -> Any:
    """Randomised response of epsilon ln 3."""
    return np.where(rng.random(n) < 0.75, data[0], 1 - data[0])


def results(*claims: AuditResult) -> Results:
    manifest = {"seed": 0, "alpha": 0.01, "dpaudit": "0.1.0"}
    content: Results = json.loads(json.dumps(make_document(manifest, list(claims), [])))
    jsonschema.Draft202012Validator(read_schema()).validate(content)
    return content


def view(result: AuditResult, **changes: Any) -> ClaimView:
    (record,) = results(result)["claims"]
    return RunView.of({"claims": [record | changes]}).claims[0]


@pytest.fixture(name="honest", scope="module")
def _honest() -> AuditResult:
    # The shares of alpha are so small that a false alarm has probability 1e-6.
    return check_conformity(Die(), 0, reference=Die(), draws=20_000, alpha=1e-6, id="d/die/L3/conformity/honest")


@pytest.fixture(name="loaded", scope="module")
def _loaded() -> AuditResult:
    # 6,000 draws, of which about 2,670 are ones instead of 1,000: the evidence fails to decide with probability < 1e-6.
    return check_conformity(Die(loaded=1 / 3), 0, reference=Die(), draws=6_000, id="d/die/L3/conformity/loaded")


@pytest.fixture(name="seven", scope="module")
def _seven() -> AuditResult:
    # No seven in 2,000 draws has probability 0.9^2000.
    return check_conformity(Die(seventh=0.1), 0, reference=Die(), draws=2_000, id="d/die/L3/conformity/seven")


def every(content: Results) -> tuple[str, ...]:
    return (
        render_html(content),
        render_markdown(content),
        render_junit(content),
        render_sarif(content),
        summary_table(content),
    )


# --------------------------------------------------------------------------------------- conformity


def test_a_pass_says_which_divergence_it_would_have_caught(honest: AuditResult) -> None:
    assert honest.verdict == Verdict.CONSISTENT
    text = " ".join(explain_verdict(view(honest)))
    assert "20,000 draws gave no sufficient evidence against the distribution of Die." in text
    said = re.search(r"A divergence of (\S+) nats a draw.*probability 0.9; .* exceeds (\S+) % diverges", text)
    assert said is not None
    assert honest.resolves is not None
    # Shown with four and three digits.
    assert float(said[1]) == pytest.approx(honest.resolves, rel=1e-3)
    assert float(said[2]) == pytest.approx(100 * math.sqrt(honest.resolves / 2), rel=1e-2)
    assert "A pass never proves that the outputs follow the stated distribution." in text


@pytest.mark.parametrize(
    ("resolves", "said"),
    [
        ("inf", "No divergence was sure to be flagged."),
        (0.0, "any other would have been flagged"),
        (5.0, "A divergence of 5 nats a draw"),
    ],
)
def test_extreme_reach_of_a_pass(honest: AuditResult, resolves: Any, said: str) -> None:
    text = " ".join(explain_verdict(view(honest, resolves=resolves)))
    assert said in text
    assert "total variation" not in text, "a distance beyond 1 says nothing"


def test_a_deviation_is_said_with_its_evidence_and_a_certified_ratio(loaded: AuditResult) -> None:
    assert loaded.verdict == Verdict.DEVIATION
    claim = view(loaded)
    text = " ".join(explain_verdict(claim))
    assert text.startswith(
        "Wrong, but by itself no violation of the guarantee: outputs do not follow the distribution of Die:"
    )
    assert re.search(r"The evidence reached 10\^\d+\.\d; 10\^2\.0 decides\.", text)
    assert loaded.lower_bound is not None
    ratio = re.search(r"a log-ratio of (\S+) nats: it is at least (\S+) times as probable", text)
    assert ratio is not None
    assert float(ratio[2]) == pytest.approx(math.exp(loaded.lower_bound), rel=1e-4)
    # What is certified holds: a one has 8/18 of the draws instead of 3/18. It fails with probability alpha = 0.01 at
    # most for each seed; this seed is fixed, and a factor of 8/3 is far beyond what 6,000 draws certify.
    assert float(ratio[2]) < 8 / 3
    assert "would have been flagged" not in text
    assert dict(claim.facts)["worst cell"].startswith("output = 1")
    assert dict(claim.facts)["wanted"] == "a divergence of 0.01 nats a draw was to be found"


def test_an_impossible_output_is_named(seven: AuditResult) -> None:
    text = " ".join(explain_verdict(view(seven)))
    assert "outputs occur that the stated distribution excludes" in text
    assert "One such output refutes the stated distribution" in text
    assert "∞ nats" not in text
    picture = str(plot_cells(view(seven)))
    assert picture.count('class="mark far"') == 1, "an infinite deviation is an arrow"
    assert not re.search(r'(?:d|x|y|width)="[^"]*(?:nan|inf)', picture)


def test_dependent_draws_are_a_deviation_without_evidence(honest: AuditResult) -> None:
    dependent = AuditResult(
        id="d/die/L3/conformity/same",
        entry="d/die",
        source={"document": "", "place": ""},
        level="L3",
        notion="conformity",
        claimed="the distribution of Die",
        claimed_level=1e-9,
        parameters={},
        alpha=0.01,
        verdict=Verdict.DEVIATION,
        expected=Verdict.DEVIATION,
        message="draws are not independent: the same twice",
    )
    claim = view(dependent)
    assert explain_verdict(claim) == [
        "Wrong, but by itself no violation of the guarantee: draws are not independent: the same twice."
    ]
    assert dict(claim.facts)["draws"] == "none"
    assert plot_cells(claim) == plot_evidence(claim) == plot_levels(claim) == plot_tradeoff(claim) == ""
    assert all(every(results(dependent, honest)))


def test_a_claim_of_conformity_has_cells_and_evidence_and_no_levels(honest: AuditResult, loaded: AuditResult) -> None:
    for result in (honest, loaded):
        claim = view(result)
        assert plot_cells(claim)
        assert plot_evidence(claim)
        assert "all datasets together" in plot_evidence(claim)
        assert plot_levels(claim) == plot_tradeoff(claim) == ""
        assert str(plot_cells(claim)).count('class="row"') == len(claim.raw["cells"]["labels"])
    shown = view(loaded).raw["cells"]
    n, ones = sum(shown["counts"]), shown["counts"][shown["labels"].index("output = 1")]
    assert f"<title>output = 1: {ones:,} of {n:,} draws, {ones / n:.4g} of them; stated 0.1667" in str(
        plot_cells(view(loaded))
    )


def test_deviations_that_were_expected_have_a_section(loaded: AuditResult) -> None:
    record = results(loaded)["claims"][0] | {"expected": "deviation", "ok": True}
    page = render_html({"claims": [record]})
    assert 'href="#deviations"' in page
    assert 'id="violations"' not in page
    assert "## Deviations, as expected" in render_markdown({"claims": [record]})
    table = summary_table({"claims": [record]})
    assert " Die " in table
    assert "the distribution of" not in table


def test_an_unexpected_deviation_is_a_warning_and_a_failure(loaded: AuditResult) -> None:
    content = results(loaded)
    (found,) = json.loads(render_sarif(content))["runs"][0]["results"]
    assert found["level"] == "warning"
    assert found["properties"]["checked"] == "L3, conformity"
    assert 'type="deviation"' in render_junit(content)


def test_claims_of_conformity_are_not_sorted_by_a_level(honest: AuditResult) -> None:
    assert "<td data-sort=->" in render_html(results(honest))


# -------------------------------------------------------------------------------------------- cells


@pytest.mark.parametrize(("count", "n", "p"), [(579, 1480, 0.46211716), (3, 10, 0.5), (0, 100, 0.02), (40, 40, 0.9)])
def test_deviations_are_signed_roots_of_binomial_deviances(count: int, n: int, p: float) -> None:
    ratio = stats.binom.logpmf(count, n, count / n) - stats.binom.logpmf(count, n, p)
    found = compute_deviations([count, n - count], [p, 1 - p])
    # Log-likelihoods of thousands of draws cancel to about ten digits.
    assert found[0] == pytest.approx(math.copysign(math.sqrt(2 * ratio), count / n - p), rel=1e-6)
    assert found[1] == pytest.approx(-found[0], rel=1e-6)


def test_deviations_at_the_ends() -> None:
    assert compute_deviations([5], [1.0]) == [0.0]
    assert compute_deviations([4, 1], [1.0, 0.0]) == [-math.inf, math.inf]
    # 1 - p is rounded to 0 here, the probability of the other cell is not.
    assert all(map(math.isfinite, compute_deviations([10, 1], [1.0, 1e-20])))


def test_deviations_of_a_law_that_is_followed_are_about_standard_normal() -> None:
    stated = [0.5, 0.3, 0.15, 0.05]
    counts = np.random.default_rng(7).multinomial(10_000, stated, size=2_000)
    found = np.array([compute_deviations(row.tolist(), stated) for row in counts])
    # The mean square of 2,000 values deviates from 1 by sqrt(2 / 2000) = 0.032: five of these have probability 6e-7,
    # and the approximation is off by less than 1 % at 500 expected draws.
    assert np.abs((found**2).mean(axis=0) - 1).max() < 5 * 0.032 + 0.01


@pytest.mark.parametrize(
    ("labels", "of", "expected"),
    [
        (["output <= 2", "3 <= output <= 3", "4 <= output <= 7"], "output", ["≤ 2", "= 3", "4…7"]),
        (["output[1] <= 2 and output[4] = 5"], "output[1] and output[4]", ["≤ 2, = 5"]),
        (["output is 0 modulo 8, in steps of 0.25"], "output", ["is 0 modulo 8"]),
        (["output <= -1.25", "-1.24 <= output <= 0.51"], "output", ["≤ -1.25", "-1.24…0.51"]),
        (["output <= -12.4775", "-12.4765 <= output <= 12.4"], "output", ["≤ -12.5", "-12.5…12.4"]),
        (
            ["output <= 5.0001", "5.0002 <= output <= 5.0004", "output >= 9.5"],
            "output",
            ["≤ 5.0001", "5.0002…5.0004", "≥ 9.5000"],
        ),
        (["output is not a multiple of 0.125", "output = 10.5"], "output", ["is not a multiple of 0.125", "= 10.5"]),
        (["the other 7 cells"], "output", ["the other 7 cells"]),
        (["output = 1e-07"], "output", ["= 1e-07"]),
        (["anything"], "", ["anything"]),
    ],
)
def test_short_labels(labels: list[str], of: str, expected: list[str]) -> None:
    assert short_labels(labels, of) == expected


@pytest.mark.parametrize("shown", [{}, {"labels": ["a"], "stated": [1.0], "counts": [0]}, {"labels": ["a"]}])
def test_no_plot_without_draws_in_cells(honest: AuditResult, shown: Results) -> None:
    assert plot_cells(view(honest, cells=shown)) == ""


def test_hostile_labels_stay_text(honest: AuditResult) -> None:
    text = '<script>alert(1)</script>\x1b"'
    shown = {"view": text, "dataset": text, "labels": [text, "output = 2"], "stated": [0.5, 0.5], "counts": [3, 4]}
    page = render_html({"claims": [results(honest)["claims"][0] | {"cells": shown}]})
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert page.count("&lt;script&gt;alert") >= 4, "view, dataset, label and title"


# -------------------------------------------------------------------------------- notions and methods

NOTIONS: list[Guarantee] = [
    PureDP(1.2),
    ApproxDP(1.0, 0.1),
    DeltaDP(0.2, 1.0),
    GaussianDP(1.5),
    ZCDP(0.6),
    RenyiDP({2.0: 1.0, 8.0: 1.2}),
    TradeoffCurve((0.0, 0.25, 1.0), (1.0, 0.25, 0.0)),
]


@pytest.mark.parametrize("guarantee", NOTIONS, ids=lambda guarantee: guarantee.notion)
@pytest.mark.parametrize("method", ["e-process", "clopper-pearson"])
def test_every_notion_renders_with_both_methods(guarantee: Guarantee, method: str) -> None:
    settings = Settings(draws=4_000, method=method)
    result = run_audit(response, guarantee, [PAIR], settings, Question(id="d/r/L2/n/c", labels={"level": "L2"}))
    claim = view(result)
    texts = every(results(result))
    assert all(texts)
    assert f"Levels</strong> of {guarantee.symbol}<" in texts[0]
    assert dict(claim.facts)["checked"] == "L2, component"
    assert plot_tradeoff(claim)
    text = " ".join(explain_verdict(claim))
    assert ("Here t is a factor on what is claimed" in text) == (guarantee.symbol == "t")
    assert (guarantee.caveat in text) if guarantee.caveat else True
    if method == "e-process":
        assert plot_evidence(claim)
        assert claim.limits == ""
    else:
        assert plot_evidence(claim) == ""
        judged = result.record["judged"]
        counts = f"{judged['x']:,} of {judged['n']:,} draws on x and in {judged['y']:,} on x′"
        assert counts in dict(claim.facts)["evidence"]
        assert f"at least {judged['p_lower']:.4g} on x and at most {judged['q_upper']:.4g} on x′" in claim.limits


def test_a_counterexample_without_e_value_shows_its_limits() -> None:
    # Of 10,000 judging draws 7,500 answer truly: at epsilon 0.1 nothing but a violation is possible, up to 1e-6.
    result = run_audit(
        response, PureDP(0.1), [PAIR], Settings(draws=20_000, method="clopper-pearson"), Question(id="d/r/L1/n/c")
    )
    assert result.verdict == Verdict.VIOLATION
    page = render_html(results(result))
    assert '<th scope="row">limits<td>' in page
    assert '<th scope="row">e-value<td>' not in page


def test_points_of_the_trade_off_plot_say_how_often_they_were_seen() -> None:
    result = run_audit(response, PureDP(1.2), [PAIR], Settings(draws=4_000), Question(id="d/r/L1/n/c"))
    claim = view(result)
    points, draws = claim.raw["tradeoff"]["points"], claim.raw["tradeoff"]["draws"]
    assert len(points) == len(draws) > 0
    for (q, p), n in zip(points, draws, strict=True):
        # Rates have 8 digits, so that the counts can be told from them.
        assert f"{round(q * n):,} of {n:,} draws on x′ ({q:.4g}), {round(p * n):,} on x ({p:.4g})" in plot_tradeoff(
            claim
        )
        assert abs(q * n - round(q * n)) < 1e-3


@pytest.mark.parametrize(("point", "logarithmic"), [([0.0, 0.004], True), ([0.01, 0.049], True), ([0.2, 0.3], False)])
def test_rare_events_are_plotted_on_logarithmic_axes(point: list[float], logarithmic: bool) -> None:
    result = run_audit(response, PureDP(1.2), [PAIR], Settings(draws=2_000), Question(id="d/r/L1/n/c"))
    claim = view(result, tradeoff=results(result)["claims"][0]["tradeoff"] | {"points": [point], "draws": [1000]})
    picture = str(plot_tradeoff(claim))
    assert ("on logarithmic axes" in picture) == logarithmic
    xs = [float(x) for x in re.findall(r'<circle class="point" cx="([\d.]+)"', picture)]
    assert len(xs) == 1
    assert 52 <= xs[0] <= 348, "inside the axes"
    assert not re.search(r'(?:points|d|cx|cy)="[^"]*(?:nan|inf|e[+-])', picture)
