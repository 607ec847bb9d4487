"""The auditor measured on itself: the counts, the judgement, the oracle, the report, the command."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor import PureDP
from auditor.audits.privacy_loop import Settings
from auditor.calibration import command, rendering
from auditor.calibration.audits import Auditor, AuditOutcome, audit_learned, audit_stated
from auditor.calibration.families import (
    GRADED,
    NULLS,
    PAIR,
    SEARCH,
    Family,
    Gaussian,
    Graded,
    make_gaussian_delta,
    make_lattice_laplace,
    make_response,
    make_several,
)
from auditor.calibration.measure import FALSE_ALARM, Plan, count_rows, run_calibration
from auditor.calibration.oracles import BestEvent, Masses, best_event, simulate_passages
from auditor.errors import DpauditError, SpecificationError
from auditor.evidence.power import divergence_rate
from auditor.privacy.exact import GaussianCurve
from auditor.targets.sampler import make_generator
from tests.commandline import ROOT, Command, refused

#: Fast families of which one has a stated event and one has several pairs, and one mechanism for power.
FEW = (make_lattice_laplace(1.0), replace(SEARCH, share=0.5))
ONE = (GRADED[0],)


def small(**options: Any) -> Plan:
    return Plan(**{"audits": 6, "draws": 400, "nulls": FEW, "graded": ONE, "ratios": (1.5, 4.0), **options})


@pytest.fixture(scope="module")
def content() -> dict[str, Any]:
    return run_calibration(small())


# ---------------------------------------------------------------------------------------- counts


def test_the_same_plan_gives_the_same_bytes_whatever_the_jobs(content: dict[str, Any], tmp_path: Path) -> None:
    for name, found in (("one", content), ("two", run_calibration(small(jobs=2)))):
        (tmp_path / name).mkdir()
        rendering.write_report(found, tmp_path / name)
    for name in rendering.NAMES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_another_seed_draws_anew_and_so_does_every_audit() -> None:
    seen: set[float] = set()

    def spy(family: Family, settings: Settings, key: str) -> AuditOutcome:
        # What the audit would draw first: a double, of which two are alike with probability 2^-53.
        seen.add(float(make_generator(settings.seed, key).random()))
        return AuditOutcome(False, 0.0, settings.draws)

    audits = 2 * (6 + 3) + 2 * 4
    for seed in (0, 1):
        run_calibration(small(auditor=spy, seed=seed))
    assert len(seen) == 2 * audits


def test_every_audit_is_counted_by_both_stopping_rules(content: dict[str, Any]) -> None:
    counts = {
        (row["family"], row["events"], row["stop"], row["pairs"]): row["alarms"]["of"]
        for row in content["false_alarms"]
    }
    laplace = {("Laplace on a lattice", e, s, 1): 6 for e in ("learned", "stated") for s in ("verdict", "budget")}
    assert counts == laplace | {("search over 20 pairs", "learned", s, 20): 3 for s in ("verdict", "budget")}
    assert {row["events"]: row["alarms"]["of"] for row in content["together"]} == {"learned": 18, "stated": 12}
    assert [(row["family"], row["ratio"], row["found"]["of"]) for row in content["power"]] == [
        ("randomised response", 1.5, 4),
        ("randomised response", 4.0, 4),
    ]
    # Six rows twice, both sums twice, and bounds of two points of power.
    assert content["manifest"]["tests"] == 2 * 6 + 2 * 2 + 2


def test_intervals_are_those_of_clopper_and_pearson() -> None:
    def every_third(family: Family, settings: Settings, key: str) -> AuditOutcome:
        return AuditOutcome(int(key.rpartition("/")[2]) % 3 == 0, 0.0, settings.draws)

    row = run_calibration(small(audits=30, auditor=every_third))["false_alarms"][0]
    limits = stats.binomtest(10, 30).proportion_ci(0.99, method="exact")
    found = [row["alarms"][name] for name in ("rate", "low", "high")]
    assert found == pytest.approx([1 / 3, limits.low, limits.high], rel=1e-6)
    assert row["above"] == {"count": 0, "of": 30, "rate": 0.0, "low": 0.0, "high": pytest.approx(1 - 0.005 ** (1 / 30))}


def test_power_is_counted_over_draws() -> None:
    draws = iter([60, 100, 200, 400] * 2)

    def found(family: Family, settings: Settings, key: str) -> AuditOutcome:
        if "level 1," in key:
            return AuditOutcome(False, 0.0, settings.draws)
        n = next(draws)
        return AuditOutcome(n < 400, 0.0, n)

    row = run_calibration(small(auditor=found))["power"][0]
    assert {point["draws"]: point["count"] for point in row["points"]} == {
        3: 0,
        6: 0,
        12: 0,
        25: 0,
        50: 0,
        100: 2,
        200: 3,
        400: 3,
    }
    assert (row["median_draws"], row["ninety_draws"], row["found"]["count"]) == (200.0, "inf", 3)


# ------------------------------------------------------------------------------------- judgement


def erring(alarms: float, above: float = 0.0) -> Auditor:
    """An auditor that errs with these probabilities, whatever it is asked for."""

    def answer(family: Family, settings: Settings, key: str) -> AuditOutcome:
        alarm, over = make_generator(settings.seed, key, "errs").random(2)
        return AuditOutcome(
            bool(alarm < alarms), family.guarantee.level * (9.0 if over < above else 0.5), settings.draws
        )

    return answer


def judged(auditor: Auditor, audits: int = 100) -> dict[str, Any]:
    # 100 audits of one family by both rules; the stated event is left out, it has an auditor of its own.
    return run_calibration(small(audits=audits, nulls=(replace(FEW[0], event=None),), ratios=(), auditor=auditor))


def test_an_auditor_that_errs_as_often_as_it_may_is_sound() -> None:
    # Wrong with a probability of at most 1e-6: that is what is promised.
    content = judged(erring(0.05, 0.05))
    assert content["sound"] is True
    assert content["manifest"]["unsound_by_chance"] == FALSE_ALARM == 1e-6
    assert rendering.format_lines(content)[-1] == "sound"


@pytest.mark.parametrize(
    ("auditor", "what"),
    [(erring(0.3), "false alarms"), (erring(0.0, 0.3), "lower bounds above the exact level")],
    ids=["alpha is not what is said", "bounds are too high"],
)
def test_an_auditor_that_errs_too_often_is_unsound(auditor: Auditor, what: str) -> None:
    content = judged(auditor)
    limit = int(stats.binom.isf(1e-6 / content["manifest"]["tests"], 200, 0.05 + 1e-5)) + 1
    assert stats.binom.cdf(limit, 200, 0.3) < 1e-6  # so that this test fails with less than that, for any seed
    assert content["sound"] is False
    assert any(line.startswith(f"all together, events learned: {what}: ") for line in content["broken"])
    assert rendering.format_lines(content)[-1].startswith("UNSOUND")
    assert rendering.summarize_calibration(content).startswith("UNSOUND: ")
    assert 'class="sentence bad"' in rendering.render_html(content)
    assert "**UNSOUND" in rendering.render_markdown(content)


def halved(family: Family, settings: Settings, key: str) -> AuditOutcome:
    """The engine with a mistake: it tests half of the level that is claimed."""
    return audit_learned(replace(family, guarantee=PureDP(family.guarantee.level / 2)), settings, key)


def test_the_engine_with_a_mistake_in_it_is_unsound() -> None:
    # In 1,000 draws a side the oracle's wealth grows by 50 nats, of which 3 are needed, so that an audit fails to find
    # twice the level that it tests with a probability of at most 0.1. Half of 24 do, for sure: wrong below 1e-6.
    content = run_calibration(small(audits=12, draws=2_000, nulls=(make_response(1.0),), ratios=(), auditor=halved))
    assert stats.binom.cdf(11, 24, 0.9) < 1e-6
    assert stats.binom.sf(11, 24, 0.05) < FALSE_ALARM / content["manifest"]["tests"]
    assert content["sound"] is False
    learned_, stated_ = content["together"]
    assert learned_["alarms"]["count"] >= 12
    # The auditor that is told its event has no mistake.
    assert stated_["alarms"]["count"] <= stats.binom.isf(1e-6, 24, 0.05)


def test_bounds_above_the_truth_count_above_the_claim_too() -> None:
    def bold(family: Family, settings: Settings, key: str) -> AuditOutcome:
        return (
            AuditOutcome("level 1," not in key, 1.6, 2)
            if "level 1.5" in key
            else AuditOutcome(False, 0.0, settings.draws)
        )

    content = run_calibration(small(audits=60, nulls=(replace(FEW[0], event=None),), auditor=bold))
    assert [row["above"]["count"] for row in content["power"]] == [40, 0]
    assert content["broken"] == [
        "randomised response, level 1.5, events learned, stop at verdict: lower bounds above the exact level: "
        "40 of 40, where at most 0.05 of them are promised"
    ]


def test_an_audit_that_fails_ends_the_calibration() -> None:
    def broken(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return np.zeros(n + 1, np.int64)

    with pytest.raises(DpauditError, match=r"too long.*ended in an error"):
        run_calibration(small(nulls=(Family("too long", broken, PureDP(1.0), PAIR),)))


@pytest.mark.parametrize(
    "bad",
    [
        {"audits": 0},
        {"audits": 2.5},
        {"draws": 3},
        {"alpha": 2.0},
        {"alpha": math.nan},
        {"seed": -1},
        {"jobs": 0},
        {"nulls": ()},
        {"ratios": (0.9, 1.5)},
    ],
    ids=str,
)
def test_a_plan_that_cannot_be_is_refused(bad: dict[str, Any]) -> None:
    (value,) = bad.values()
    with pytest.raises(SpecificationError, match=re.escape(repr(value))):
        small(**bad)


def test_rows_that_would_draw_the_same_are_refused() -> None:
    with pytest.raises(SpecificationError, match=r"'randomised response, level 1\.5, .*' twice"):
        small(ratios=(1.5, 1.5))
    with pytest.raises(SpecificationError, match=r"'Laplace on a lattice, level 1, .*' twice"):
        small(nulls=(FEW[0], FEW[0]))


# ------------------------------------------------------------------- families of which all is known


@pytest.mark.parametrize("graded", GRADED, ids=[graded.at(1.0).name for graded in GRADED])
@pytest.mark.parametrize("level", [1.0, 1.25, 2.0])
def test_the_laws_of_a_family_have_its_level_and_are_what_it_draws(graded: Graded, level: float) -> None:
    family, masses = graded.at(level), graded.masses(level)
    claim = family.guarantee
    assert claim.level == pytest.approx(1.0)
    # By sets in the order of the likelihood ratio, which reach the boundary of all events.
    order = np.argsort(-masses.p / np.maximum(masses.q, 1e-300))
    p, q = np.cumsum(masses.p[order]), np.cumsum(masses.q[order])
    usual = (q > 1e-4) & (p < 1 - 1e-4)  # beyond, sums of a table and its cells are no longer exact
    reached = claim.level_of(p[usual], q[usual]).max()
    assert reached == pytest.approx(level, rel=2e-3)  # cells of Gaussian noise are not infinitely fine
    if level > 1:
        assert best_event(masses, claim).rate > 1e-6  # what the oracle's curve is drawn from
    if family.event is None:
        return
    n, share = 100_000, 1e-6 / 4  # wrong with a probability of at most 1e-6: two sides, from above and from below
    rates = stated_probabilities(family, level)
    for rate, data in zip(rates, (family.pairs[0].x, family.pairs[0].y), strict=True):
        count = int(family.event(family.mechanism(data, n, np.random.default_rng(5))).sum())
        assert stats.binom.isf(1 - share, n, rate) <= count <= stats.binom.isf(share, n, rate)


def stated_probabilities(family: Family, level: float) -> tuple[float, float]:
    """Of the stated event under both datasets, in closed form."""
    match family.name:
        case "randomised response":
            return 1 / (1 + math.exp(-level)), 1 / (1 + math.exp(level))
        case "Laplace on a lattice":
            # P[noise >= k] = r^k / (1 + r) for k >= 0, with r = e^(-level/10).
            r = math.exp(-level / 10)
            return 1 / (1 + r), r**10 / (1 + r)
        case "Gaussian, claimed mu":
            return float(stats.norm.cdf(level / 2)), float(stats.norm.cdf(-level / 2))
        case "rare event":
            return 0.005 * math.exp(level), 0.005
        case _:
            return 1 / (1 + math.exp(-level / 4)) ** 4, 1 / (1 + math.exp(level / 4)) ** 4


@pytest.mark.parametrize("family", [f for f in NULLS if f.event is not None], ids=lambda family: str(family.name))
def test_a_stated_event_attains_the_claim(family: Family) -> None:
    p, q = map(np.array, stated_probabilities(family, 1.0))
    assert float(family.guarantee.level_of(p, q)) == pytest.approx(family.guarantee.level)


def test_the_gaussian_with_delta_has_its_epsilon() -> None:
    for level in (1.0, 1.5):
        family = make_gaussian_delta(level)
        assert isinstance(family.mechanism, Gaussian)
        delta = float(family.guarantee.parameters()["delta"])
        assert GaussianCurve(family.mechanism.mu).epsilon(delta) == pytest.approx(level, rel=1e-6)


def test_an_auditor_that_is_told_bets_on_that_event_alone() -> None:
    settings = Settings(alpha=0.05, draws=4_000, stop="verdict", seed=1)
    # Infinite epsilon: 30 draws a side are enough, whatever comes.
    sure = replace(make_response(1.0), mechanism=lambda data, n, rng: np.full(n, data[0]))
    outcome = audit_stated(sure, settings, "sure")
    assert outcome.finding
    assert outcome.draws <= 60
    assert outcome.bound >= 1.0
    # Another event, which says nothing, although the outputs give everything away.
    blind = replace(sure, event=lambda outputs: np.zeros(len(outputs), bool))
    assert audit_stated(blind, settings, "blind") == AuditOutcome(False, 0.0, 4_000)
    with pytest.raises(ValueError, match="search over 20 pairs"):
        audit_stated(SEARCH, settings, "none")


# ---------------------------------------------------------------------------------------- oracle


def test_the_best_event_is_the_best_of_all_sets() -> None:
    masses = Masses(np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.05, 0.1, 0.25, 0.6]))
    claim = PureDP(0.8)
    rates = []
    for chosen in product([False, True], repeat=4):
        inside = np.array(chosen)
        p, q = masses.p[inside].sum(), masses.q[inside].sum()
        rates += [float(divergence_rate(a, b, claim, 0.8)) for a, b in ((p, q), (q, p))]
    assert best_event(masses, claim).rate == pytest.approx(max(rates))


def test_an_oracle_that_is_certain_takes_as_long_as_was_computed() -> None:
    # Without overlap every draw of both sides multiplies the wealth by e^rate: 1/(p0 (1 - q0)), with p0 = 1 - q0.
    event = best_event(Masses(np.array([1.0, 0.0]), np.array([0.0, 1.0])), PureDP(1.0))
    assert event.rate == pytest.approx(-2 * math.log(math.e / (1 + math.e)))
    found = simulate_passages(event, PureDP(1.0), 0.01, 1_000, 5, np.random.default_rng(0))
    assert found.tolist() == [math.ceil(math.log(100) / event.rate)] * 5


def test_the_oracle_passes_as_often_as_all_outcomes_of_three_draws_say() -> None:
    claim, alpha, n, paths = PureDP(0.5), 0.2, 3, 20_000
    event = BestEvent(0.9, 0.1, 1.0)
    p0 = 1 / (1 + math.exp(-0.5))  # by symmetry the projection is the kink
    gain = {True: math.log(0.9 / p0), False: math.log(0.1 / (1 - p0))}
    exact = 0.0
    for right in product([True, False], repeat=2 * n):  # draws of X in the event, and of Y outside it
        walk = np.cumsum([gain[x] + gain[y] for x, y in zip(right[:n], right[n:], strict=True)])
        if walk.max() >= math.log(1 / alpha):
            exact += 0.9 ** sum(right) * 0.1 ** (2 * n - sum(right))
    assert 0.3 < exact < 0.99
    count = int(np.isfinite(simulate_passages(event, claim, alpha, n, paths, np.random.default_rng(7))).sum())
    assert stats.binom.isf(1 - 5e-7, paths, exact) <= count <= stats.binom.isf(5e-7, paths, exact)


def test_the_oracle_keeps_its_promise_where_the_claim_holds() -> None:
    # Bets against epsilon = 1 as if it were 1.3, on draws with 1: alarms in at most alpha, wrong below 1e-6.
    p = 1 / (1 + math.exp(-1.3))
    event = best_event(Masses(np.array([p, 1 - p]), np.array([1 - p, p])), PureDP(1.0))
    paths, alpha = 4_000, 0.05
    truth = 1 / (1 + math.exp(-1.0))
    rng = np.random.default_rng(3)
    gain_in, gain_out = math.log(event.p / truth), math.log((1 - event.p) / (1 - truth))
    draws = rng.random((paths, 2_000)) < truth, rng.random((paths, 2_000)) < truth
    walk = np.cumsum(sum(np.where(right, gain_in, gain_out) for right in draws), axis=1)
    assert int((walk.max(axis=1) >= math.log(1 / alpha)).sum()) <= stats.binom.isf(1e-6, paths, alpha)


# ---------------------------------------------------------------------------------------- report


def test_the_page_has_a_figure_of_alarms_and_two_of_every_power_curve(content: dict[str, Any]) -> None:
    page = rendering.render_html(content)
    pictures = re.findall(r'<svg viewBox="0 0 [^"]+" role="img".*?</svg>', page, flags=re.DOTALL)
    assert len(pictures) == 1 + 2 * len(ONE)
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        assert root.get("aria-label")
        assert "nan" not in picture
    alarms, draws, levels = pictures
    # A mark for each count, with what it says in words.
    rows = len(content["false_alarms"]) + len(content["together"])
    assert alarms.count("<title>") == 2 * rows
    assert draws.count("<title>") == sum(len(row["points"]) for row in content["power"])
    assert levels.count("<title>") == 3 * 2
    assert "; oracle " in draws
    assert not re.search(r"(src|href)=.https?:", page)
    assert "<script" not in page
    # A class without a rule was why wide tables ran out of the window.
    style, _, body = page.partition("</style>")
    used = {name for names in re.findall(r'class="([^"]+)"', body) for name in names.split()}
    assert {name for name in used if not re.search(rf"\.{name}(?![\w-])", style)} <= {"good", "page"}


def test_the_report_is_made_from_the_file_alone(content: dict[str, Any], tmp_path: Path) -> None:
    rendering.write_report(content, tmp_path)
    read = json.loads((tmp_path / "calibration.json").read_text(encoding="utf-8"))
    assert read == content
    assert rendering.render_html(read) == (tmp_path / "calibration.html").read_text(encoding="utf-8")
    assert rendering.render_markdown(read) == (tmp_path / "calibration.md").read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(rendering.NAMES)


def test_the_published_tables_are_what_the_published_numbers_say() -> None:
    read = json.loads((ROOT / "reports" / "calibration.json").read_text(encoding="utf-8"))
    # `dpaudit calibrate --out reports` makes both anew.
    assert rendering.render_markdown(read) == (ROOT / "reports" / "calibration.md").read_text(encoding="utf-8")
    assert read["sound"] is True
    about = read["manifest"]
    assert (about["audits"], about["draws"], about["seed"]) == (command.AUDITS, command.DRAWS, 0)


def test_names_are_escaped(content: dict[str, Any]) -> None:
    hostile = json.loads(json.dumps(content).replace("Laplace on a lattice", "<script>alert(1)</script>"))
    page = rendering.render_html(hostile)
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_the_tables_have_a_row_for_every_count(content: dict[str, Any]) -> None:
    table = [line for line in rendering.render_markdown(content).splitlines() if line.startswith("|")]
    assert len(table) == 2 * 2 + len(content["false_alarms"]) + len(content["together"]) + len(content["power"])
    widths = [line.count("|") for line in table]
    assert len(set(widths)) == 2


# --------------------------------------------------------------------------------------- command


@pytest.fixture(name="few")
def _few(monkeypatch: pytest.MonkeyPatch) -> Callable[[Auditor], None]:
    """The command with fewer families, and an auditor."""

    def use(auditor: Auditor) -> None:
        planned = command.make_plan
        monkeypatch.setattr(
            command,
            "make_plan",
            lambda *given: replace(planned(*given), nulls=FEW, graded=ONE, ratios=(1.5, 4.0), auditor=auditor),
        )

    return use


def test_the_command_writes_three_files_and_says_how_far_it_is(
    dpaudit: Command, few: Callable[[Auditor], None], tmp_path: Path
) -> None:
    few(audit_learned)
    out = tmp_path / "new" / "folder"
    said = dpaudit("calibrate", "--quick", "--audits", 2, "--draws", 400, "--jobs", 1, "--seed", 3, "--out", out)
    # Wrong with a probability of at most 1e-6, for any seed.
    assert said.code == 0, said
    assert said.out.splitlines()[-1] == "sound"
    assert "of 2 flagged" in said.out
    content = json.loads((out / "calibration.json").read_text(encoding="utf-8"))
    assert {name: content["manifest"][name] for name in ("audits", "draws", "alpha", "seed")} == {
        "audits": 2,
        "draws": 400,
        "alpha": 0.05,
        "seed": 3,
    }
    total = count_rows(small())
    marks = [line.split()[0] for line in said.err.splitlines() if line.startswith("[")]
    assert marks == [f"[{k}/{total}]" for k in range(1, total + 1)]
    assert str(out / "calibration.html") in said.err


def test_the_command_fails_for_an_unsound_auditor_and_writes_what_was_found(
    dpaudit: Command, few: Callable[[Auditor], None], tmp_path: Path
) -> None:
    few(erring(1.0))
    said = dpaudit("calibrate", "--audits", 50, "--draws", 400, "--jobs", 1, "--out", tmp_path)
    assert said.code == 2, said
    assert said.out.splitlines()[-1].startswith("UNSOUND: ")
    assert "Traceback" not in said.err
    assert json.loads((tmp_path / "calibration.json").read_text(encoding="utf-8"))["sound"] is False


def test_the_defaults_are_those_that_the_help_says(dpaudit: Command) -> None:
    told = " ".join(dpaudit("calibrate", "--help").out.split())
    assert f"[default: {command.AUDITS}; with --quick {command.FEW}]" in told
    assert f"[default: {command.DRAWS:,}; with --quick {command.SHORT:,}]" in told
    assert command.make_plan(None, None, True, 0.05, 0, 1) == Plan(command.FEW, command.SHORT)
    assert command.make_plan(7, None, True, 0.05, 0, 1) == Plan(7, command.SHORT)
    assert command.make_plan(None, 900, False, 0.1, 2, 3) == Plan(command.AUDITS, 900, 0.1, 2, 3)


def test_a_folder_that_cannot_be_is_refused_before_any_audit(dpaudit: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    refused(dpaudit("calibrate", "--quick", "--out", tmp_path / "file" / "below"), tmp_path / "file" / "below")
    refused(dpaudit("calibrate", "--quick", "--out", ""), "''")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_report_that_cannot_be_written_is_an_error_and_the_numbers_are_shown(
    dpaudit: Command, few: Callable[[Auditor], None], tmp_path: Path
) -> None:
    few(erring(0.0))
    (tmp_path / "calibration.md").mkdir()  # which no file can take the place of
    said = dpaudit("calibrate", "--audits", 2, "--draws", 400, "--jobs", 1, "--out", tmp_path)
    assert said.code == 2, said
    assert said.out.splitlines()[-1] == "sound"
    assert f"cannot write to {str(tmp_path)!r}" in said.err


def test_several_bits_are_drawn_from_all_of_the_row() -> None:
    family = make_several(1.0)
    outputs = family.mechanism(family.pairs[0].x, 3, np.random.default_rng(0))
    assert outputs.shape == (3, 4)
