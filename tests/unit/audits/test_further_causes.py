"""What an audit ignores, and what it finds beside a first violation: in results, replays, ledgers and every report."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import Pair, PureDP, SpecificationError, Verdict, audit, explain, report
from auditor.audits import further_causes
from auditor.audits.context import Question
from auditor.audits.further_causes import find_further_causes
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.claims import component, mutant, privacy
from auditor.claims.claim import Claim, Draft, Entry, Source
from auditor.report.results_schema import build_schema
from auditor.results import AuditResult, Counterexample, make_document, result_from
from auditor.runs.ledger import Ledger
from auditor.runs.manifest import build_manifest
from auditor.runs.run import Run, settings_of

PAIR = Pair(0, 1, "0 against 1")
CLAIM = PureDP(1.0)
#: A false alarm has at most this probability.
SAFE = 1e-6


def textbook(data: int, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Laplace noise of the right scale, in floating point."""
    return data + rng.laplace(size=n)


def half(data: int, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Half of the scale, in floating point."""
    return data + rng.laplace(scale=0.5, size=n)


def lengths(data: int, n: int, rng: np.random.Generator) -> list[Any]:
    """A length that gives the data away, beside integers with half of the noise that they need."""
    noise = rng.geometric(1 - math.exp(-2.0), size=(2, n))
    return [[v] * (1 + data) if data else [v] for v in (data + noise[0] - noise[1]).tolist()]


def every_report(result: AuditResult) -> Iterator[str]:
    """The reports of one claim, and what the library says."""
    content = make_document({"dpaudit": "0", "seed": 0, "alpha": 0.01}, [result], [])
    jsonschema.validate(content, build_schema())
    assert result_from(content["claims"][0]).to_json() == content["claims"][0]
    yield from (explain(result), report.summary_table(content))
    yield from (report.render_html(content), report.render_markdown(content), report.render_junit(content))


def test_what_is_ignored_is_no_finding_and_every_pass_says_so() -> None:
    assert audit(textbook, CLAIM, PAIR, draws=2_000, alpha=SAFE).verdict == Verdict.VIOLATION
    found = audit(textbook, CLAIM, PAIR, draws=60_000, alpha=SAFE, ignore="floating-point")
    assert found.verdict == Verdict.CONSISTENT
    assert found.ignore == ("floating-point",)
    assert found.to_json()["ignore"] == ["floating-point"]
    assert str(found).endswith("; not looked at: floating-point")
    assert "ignore='floating-point'" in found.replay
    for text in every_report(found):
        assert "not looked at: floating-point" in text.replace("\\", "")


def test_a_wrong_scale_is_found_behind_the_floats() -> None:
    found = audit(half, CLAIM, PAIR, draws=20_000, alpha=SAFE, ignore=["floating-point"])
    assert found.counterexample is not None
    assert found.counterexample.cause == "threshold on the value of the output"
    assert "ignored      floating-point: not looked at" in explain(found)


def test_without_ignore_nothing_is_recorded() -> None:
    found = audit(half, CLAIM, PAIR, draws=2_000, alpha=SAFE)
    assert not {"ignore", "also"} & found.to_json().keys()
    assert "ignore" not in found.replay
    assert repr(Settings()) == repr(Settings(ignore="floating-point", also=True))
    for text in every_report(found):
        assert "not looked at" not in text
        assert "lso violated" not in text


def test_what_stands_beside_floats_is_named() -> None:
    found = audit(half, CLAIM, PAIR, draws=20_000, alpha=SAFE, also=True)
    assert found.counterexample is not None
    assert found.counterexample.cause == "floating-point bit structure"
    (other,) = found.also
    assert (other["verdict"], other["ignore"]) == (Verdict.VIOLATION, ("floating-point",))
    assert other["cause"] == "threshold on the value of the output"
    assert 1 <= other["lower_bound"] <= 2
    assert found.draws + other["draws"] <= 20_000
    # The verdict and its draws are those without the search.
    alone = audit(half, CLAIM, PAIR, draws=20_000, alpha=SAFE)
    assert {**found.to_json(), "replay": "", "also": [], "counterexample": None} == {
        **alone.to_json(),
        "replay": "",
        "also": [],
        "counterexample": None,
    }
    assert audit(half, CLAIM, PAIR, draws=20_000, alpha=SAFE, also=True).also == found.also
    for text in every_report(found):
        assert "violated without floating-point: threshold on the value of the output" in text.replace("\\", "")
        assert "a statement by itself at confidence 0.999999" in text


def test_where_nothing_stands_beside_it_that_is_stated() -> None:
    found = audit(textbook, CLAIM, PAIR, draws=20_000, alpha=SAFE, also=True)
    (other,) = found.also
    assert other["verdict"] in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE)
    assert other["cause"] == ""
    for text in every_report(found):
        assert "ithout floating-point not refuted by" in text.replace("\\", "")


def test_the_search_goes_on_until_a_cause_cannot_be_ignored() -> None:
    found = audit(lengths, CLAIM, PAIR, draws=20_000, alpha=SAFE, also=True)
    kinds = [other["ignore"] for other in found.also]
    assert found.also[-1]["cause"].startswith(("value", "threshold", "set of values", "difference"))
    assert all(set(before) < set(after) for before, after in itertools.pairwise(kinds))


def test_searches_keep_to_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(further_causes, "LEAST_DRAWS", 500)
    asked: list[tuple[Settings, Question]] = []
    seen = Counterexample("p", "x", "y", "e", 1, 0, 1, 3.0, 2.0, "r", "floating-point bit structure")
    first = replace(audit(half, CLAIM, PAIR, draws=400), draws=1_000, counterexample=seen, verdict=Verdict.VIOLATION)

    def search(settings: Settings, question: Question) -> AuditResult:
        asked.append((settings, question))
        return replace(first, draws=settings.draws, counterexample=None, verdict=Verdict.CONSISTENT)

    def found(settings: Settings, begun: float = 0.0, result: AuditResult = first) -> int:
        asked.clear()
        return len(find_further_causes(result, settings, Question("own"), search, time.monotonic() - begun))

    on = Settings(also=True)
    assert found(on) == 1
    settings, question = asked[0]
    assert (settings.draws, settings.ignore, settings.also, settings.alpha) == (4_000, ("floating-point",), False, 0.01)
    assert question.id != "own"  # the draws are keyed by it
    assert question.shrink is None
    assert found(replace(on, draws=1_500)) == 1
    assert asked[0][0].draws == 500
    assert found(replace(on, draws=1_010)) == 0
    assert found(replace(on, seconds=60.0)) == 1
    assert asked[0][0].seconds == further_causes.MOST_SECONDS
    assert found(replace(on, seconds=60.0), begun=50.0) == 1
    assert 9 < (asked[0][0].seconds or 0) <= 10
    assert found(replace(on, seconds=60.0), begun=61.0) == 0
    assert found(Settings()) == found(replace(on, method="clopper-pearson")) == 0
    values = replace(first, counterexample=replace(seen, cause="threshold on the value of the output"))
    assert found(on, result=values) == found(on, result=replace(first, verdict=Verdict.ERROR)) == 0


def test_another_ignore_is_another_series_of_a_ledger(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    small = Settings(draws=2_000, independence=False, alpha=SAFE, also=True)

    def night(settings: Settings) -> AuditResult:
        return run_audit(textbook, CLAIM, [PAIR], settings, Question("own/lap/L1/pure_dp/given", ledger=ledger))

    ignoring = replace(small, ignore="floating-point")
    assert night(ignoring).verdict != Verdict.VIOLATION
    plain = night(small)
    assert (plain.verdict, plain.also) == (Verdict.VIOLATION, ())
    assert plain.ledger["afresh"] == "changed: ignore"
    again = night(ignoring)
    assert (again.ledger["night"], again.draws) == (2, 4_000)
    assert again.verdict != Verdict.VIOLATION


def made(*drafts: Draft) -> list[Claim]:
    return list(Entry("900/lap", "Laplace", Source("900", "1"), lambda: drafts).claims())


def test_claims_declare_what_they_are_not_about_and_runs_add_to_it() -> None:
    plain = made(privacy(textbook, CLAIM, PAIR))
    (claim, part, bad) = made(
        privacy(textbook, CLAIM, PAIR, ignore="floating-point"),
        component(textbook, CLAIM, PAIR, ignore=["lattice"]),
        mutant("half", half, CLAIM, PAIR, ignore="floating-point"),
    )
    assert claim.id == plain[0].id
    assert [settings_of(c, Run(), 0.01).ignore for c in (claim, part, bad)] == [
        ("floating-point",),
        ("lattice",),
        ("floating-point",),
    ]
    assert settings_of(claim, Run(ignore="length", also=True), 0.01).ignore == ("floating-point", "length")
    assert settings_of(claim, Run(also=True), 0.01).also
    hashes = [
        build_manifest(run, claims)["specification_hash"]
        for run, claims in (
            (Run(), plain),
            (Run(), [claim]),
            (Run(ignore="length"), plain),
            (Run(also=True), plain),
        )
    ]
    assert len(set(hashes)) == 4
    assert not {"ignore", "also"} & build_manifest(Run(), [claim]).keys()
    with pytest.raises(SpecificationError, match="did you mean floating-point"):
        privacy(textbook, CLAIM, PAIR, ignore="float")
