"""Known findings: what the file holds, what it lets pass, and what it never does."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor import report
from auditor.errors import SpecificationError
from auditor.events.cause_kinds import kind_of
from auditor.events.root_causes import PHRASES
from auditor.results import SCHEMA as RESULTS
from auditor.results import AuditResult, Counterexample, Verdict, result_from
from auditor.runs.baseline import (
    FINDINGS,
    NO_REASON,
    OLD,
    SCHEMA,
    Baseline,
    Finding,
    apply_baseline,
    cause_of_result,
    find_leeway,
    findings_of,
    level_of_result,
    list_notices,
    read_baseline,
    write_baseline,
)
from auditor.runs.run import exit_code
from tests.commandline import HELD, QUICK, Command, complaints, declare, read, refused

ID = "a/b/L1/x/y"


def result(verdict: str, expected: str = "consistent", id_: str = ID, **fields: Any) -> AuditResult:
    return AuditResult(
        id=id_,
        entry="a/b",
        source={"document": "a", "place": "b"},
        level="L1",
        notion="pure DP",
        claimed="ε = 1",
        claimed_level=1.0,
        parameters={},
        alpha=0.01,
        verdict=Verdict(verdict),
        expected=Verdict(expected),
        **fields,
    )


def known(*findings: Finding) -> Baseline:
    return Baseline(Path("known.toml"), {finding.id: finding for finding in findings})


def shown(cause: str) -> Counterexample:
    return Counterexample("pair", "[0]", "[1]", "event", 9, 0, 9, 3.0, 1.2, "replay", cause)


FLOATS, SCALE = "floating-point bit structure", "threshold on the value of the output"
VIOLATION = Finding(ID, Verdict.VIOLATION, "ε = 1", (FLOATS,), 1.5, 3.0, "mended in 2.0")

# --------------------------------------------------------------------------------- the file

bounds = st.none() | st.floats(min_value=0, allow_nan=False)
# A reason loses the white space around it; ids and claims are taken as they are.
reasons = st.text(max_size=20).map(str.strip)
causes = st.none() | st.lists(st.text(), min_size=1, max_size=3).map(tuple)


def as_read(finding: Finding) -> Finding:
    """With the level that is meant where none is written: the certified one, where there are causes."""
    if finding.up_to is None and finding.causes is not None:
        return replace(finding, up_to=finding.lower_bound)
    return finding


findings_strategy = st.lists(
    st.builds(
        Finding, st.text(min_size=1, max_size=20), st.sampled_from(FINDINGS), st.text(), causes, bounds, bounds, reasons
    ).map(as_read),
    unique_by=lambda finding: finding.id,
    max_size=5,
)


@given(findings_strategy)
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, findings: list[Finding]) -> None:
    path = tmp_path_factory.mktemp("baseline") / "known.toml"
    write_baseline(path, findings)
    assert dict(read_baseline(path).findings) == {finding.id: finding for finding in findings}
    assert [p.name for p in path.parent.iterdir()] == ["known.toml"]


def test_the_file_is_for_people_and_keeps_its_order(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    two = Finding("a/a/L1/x/y", Verdict.INCONCLUSIVE, "μ = 1", (FLOATS, ""), math.inf, math.inf)
    write_baseline(path, [VIOLATION, two])
    comment, _, rest = path.read_text(encoding="utf-8").partition("schema = ")
    assert all(line.startswith("# ") for line in comment.splitlines())
    assert rest.splitlines() == [
        '"dpaudit-baseline/2"',
        "",
        "[[finding]]",
        'id = "a/a/L1/x/y"',
        'verdict = "inconclusive"',
        'claimed = "μ = 1"',
        f'cause = ["{FLOATS}", ""]',
        "lower_bound = inf",
        "up_to = inf",
        'reason = ""',
        "",
        "[[finding]]",
        'id = "a/b/L1/x/y"',
        'verdict = "violation"',
        'claimed = "ε = 1"',
        f'cause = "{FLOATS}"',
        "lower_bound = 1.5",
        "up_to = 3.0",
        'reason = "mended in 2.0"',
    ]


GOOD = 'schema = "dpaudit-baseline/2"\n\n[[finding]]\nid = "a"\nverdict = "violation"\n'
#: Bad files, and what their refusal shows: always the file, and the line where there is one to blame.
BAD: dict[str, tuple[str | bytes, list[str]]] = {
    "no schema": ("[[finding]]\nid = 'a'\nverdict = 'violation'\n", ["got None"]),
    "another schema": ('schema = "dpaudit-results/1"\n', ["dpaudit-baseline/2", "dpaudit-results/1"]),
    "not TOML": (GOOD + "reason = because\n", ["line 6"]),
    "a key twice": (GOOD + 'id = "b"\n', ["line 6"]),
    "not UTF-8": (b"\xff\xfe", ["utf-8"]),
    "an unknown key": (GOOD + 'reasons = "typo"\n', ["line 6", "'reasons'"]),
    "an unknown key at the top": ('known = 1\nschema = "dpaudit-baseline/2"\n', ["line 1", "'known'"]),
    "findings that are no tables": ('schema = "dpaudit-baseline/2"\nfinding = 3\n', ["line 2", "[[finding]]"]),
    "no id": (GOOD + '\n[[finding]]\nverdict = "violation"\n', ["line 7", "'id'"]),
    "no verdict": (GOOD + '\n[[finding]]\nid = "b"\n', ["line 7", "'verdict'"]),
    "an id that is no text": (GOOD + '\n[[finding]]\nverdict = "violation"\nid = 3\n', ["line 9", "got 3"]),
    "an empty id": (GOOD + '\n[[finding]]\nid = ""\nverdict = "violation"\n', ["line 8", "empty"]),
    "an unknown verdict": (GOOD + '\n[[finding]]\nid = "b"\nverdict = "private"\n', ["line 9", "'private'"]),
    "an error": (GOOD + '\n[[finding]]\nid = "b"\nverdict = "error"\n', ["line 9", "nothing was audited"]),
    "the same claim twice": (GOOD + '\n[[finding]]\nid = "a"\nverdict = "violation"\n', ["line 8", "twice"]),
    "a bound that is no number": (GOOD + 'lower_bound = "1"\n', ["line 6", "'1'"]),
    "a bound that is true": (GOOD + "lower_bound = true\n", ["line 6", "True"]),
    "a bound that is not a number": (GOOD + "lower_bound = nan\n", ["line 6", "nan"]),
    "a negative bound": (GOOD + "lower_bound = -1\n", ["line 6", "-1"]),
    "a reason that is no text": (GOOD + "reason = 3\n", ["line 6", "got 3"]),
    "a cause that is no text": (GOOD + "cause = 3\n", ["line 6", "got 3"]),
    "a list of causes with a number": (GOOD + 'cause = ["a", 3]\n', ["line 6", "['a', 3]"]),
    "no cause in the list": (GOOD + "cause = []\n", ["line 6", "[]"]),
    "head-room that is not a number": (GOOD + "up_to = nan\n", ["line 6", "nan"]),
    "negative head-room": (GOOD + "up_to = -1\n", ["line 6", "-1"]),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_file_is_refused_with_its_line(tmp_path: Path, bad: str) -> None:
    content, shown = BAD[bad]
    path = tmp_path / "known.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SpecificationError) as refusal:
        read_baseline(path)
    for text in [str(path), *shown]:
        assert text in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_toml_cannot_hold_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="half a surrogate pair: id = "):
        write_baseline(tmp_path / "known.toml", [replace(VIOLATION, id="attack/\udcff")])
    assert not list(tmp_path.iterdir())


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="cannot be read"):
        read_baseline(tmp_path / "none.toml")


# -------------------------------------------------------------------------- what is known

#: (verdict, expected, sandwich) of a result, and whether a baseline with a violation of that id holds it.
HELD_OR_NOT = [
    ("violation", "consistent", "", True),
    ("violation", "inconclusive", "loose: ...", True),
    ("violation", "violation", "", False),
    ("violation", "consistent", "failed: lower bound 2 is above the exact level 1", False),
    ("violation", "violation", "failed: lower bound 2 is above the exact level 1", False),
    ("deviation", "consistent", "", False),
    ("inconclusive", "consistent", "", False),
    ("consistent", "violation", "", False),
    ("error", "consistent", "", False),
]


@pytest.mark.parametrize(("verdict", "expected", "sandwich", "held"), HELD_OR_NOT)
def test_a_finding_of_the_same_cause_is_known_by_id_and_verdict(
    verdict: str, expected: str, sandwich: str, held: bool
) -> None:
    given_ = result(verdict, expected, sandwich=sandwich, counterexample=shown(FLOATS))
    (marked,) = apply_baseline(known(VIOLATION), [given_])
    assert marked.known == ("mended in 2.0" if held else "")
    assert (marked.verdict, marked.ok) == (given_.verdict, given_.ok)
    assert exit_code([marked]) == (0 if held else exit_code([given_]))
    assert apply_baseline(known(VIOLATION), [result(verdict, expected, "other", sandwich=sandwich)])[0].known == ""


def test_a_finding_without_a_reason_is_known_all_the_same() -> None:
    (marked,) = apply_baseline(known(Finding(ID, Verdict.VIOLATION)), [result("violation")])
    assert marked.known == NO_REASON


#: Cause and bound of a violation, and what is said of it beside `VIOLATION`; known where nothing is.
COVERED_OR_NOT: list[tuple[str, float | None, list[str]]] = [
    (FLOATS, 1.5, []),
    (f"{FLOATS} of coordinate 3", 3.0, []),
    (FLOATS, None, []),
    (FLOATS, 3.0000001, ["a higher level: the baseline goes up to level = 3", "certified is 3"]),
    (FLOATS, math.inf, ["certified is inf"]),
    (SCALE, 1.5, [f"another cause: the baseline has {FLOATS}, found was {SCALE}"]),
    ("", 1.5, ["found was none"]),
    (SCALE, 12.27, ["another cause", "; a higher level: the baseline goes up to level = 3, certified is 12.27"]),
]


@pytest.mark.parametrize(("cause", "bound", "said"), COVERED_OR_NOT)
def test_another_cause_or_a_higher_level_is_a_new_finding(cause: str, bound: float | None, said: list[str]) -> None:
    (marked,) = apply_baseline(known(VIOLATION), [result("violation", lower_bound=bound, counterexample=shown(cause))])
    assert marked.known == ("" if said else "mended in 2.0")
    assert exit_code([marked]) == (1 if said else 0)
    assert bool(marked.new) == bool(said)
    for text in said:
        assert text in marked.new
    # As it is read from its record, of 8 digits.
    assert apply_baseline(known(VIOLATION), [result_from(marked.to_json())])[0].new == marked.new


def test_an_exact_level_above_what_is_forgiven_is_a_new_finding() -> None:
    """An audit that stops at the verdict certifies little more than the claim."""
    for exact, new in ((2.9, False), (3.0, False), (3.01, True), (math.inf, True)):
        given_ = result("violation", lower_bound=1.1, exact=exact, counterexample=shown(FLOATS))
        (marked,) = apply_baseline(known(VIOLATION), [given_])
        assert bool(marked.new) == new
        assert exit_code([marked]) == int(new)
    assert "goes up to level = 3, exact is inf" in marked.new


def test_a_known_finding_that_stopped_at_the_verdict_is_said_to_hide_a_larger_leak() -> None:
    given_ = result("violation", lower_bound=1.1, counterexample=shown(FLOATS))
    baseline = known(VIOLATION)
    (line,) = list_notices(baseline, apply_baseline(baseline, [given_]))
    assert line.startswith("baseline: 1 known finding stopped at the verdict, so that a larger leak")
    for other in (replace(given_, stop="budget"), replace(given_, exact=2.0)):
        assert list_notices(baseline, apply_baseline(baseline, [other])) == []
    any_level = known(replace(VIOLATION, up_to=math.inf))
    assert list_notices(any_level, apply_baseline(any_level, [given_])) == []


def test_people_may_list_causes_and_forgive_any_level() -> None:
    both = known(replace(VIOLATION, causes=(FLOATS, SCALE), up_to=math.inf))
    for cause in (FLOATS, SCALE):
        assert apply_baseline(both, [result("violation", lower_bound=40.0, counterexample=shown(cause))])[0].known
    assert apply_baseline(both, [result("violation", counterexample=shown("length of the output"))])[0].new


def test_an_entry_of_the_old_form_is_known_by_id_and_verdict_and_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(GOOD.replace(SCHEMA, OLD).replace('"a"', f'"{ID}"') + 'lower_bound = 1.0\nreason = "r"\n')
    old = read_baseline(path)
    assert old.findings == {ID: Finding(ID, Verdict.VIOLATION, lower_bound=1.0, reason="r")}
    found = result("violation", lower_bound=40.0, counterexample=shown(SCALE))
    (marked,) = apply_baseline(old, [found])
    assert (marked.known, marked.new) == ("r", "")
    (line,) = list_notices(old, [marked])
    assert line.startswith(
        f"baseline: 1 of 1 entries have no cause, as in files of the form {OLD}: they are known by id"
    )
    assert f"`dpaudit baseline RESULTS -o {path}` renews them" in line
    # Renewed it has both, and keeps its reason; what was not audited stays as it was.
    renewed, kept, _ = findings_of([found], known(old.findings[ID], Finding("elsewhere", Verdict.DEVIATION)))
    assert renewed == [Finding(ID, Verdict.VIOLATION, "ε = 1", (SCALE,), 40.0, 80.0, "r")]
    write_baseline(path, [*renewed, *kept])
    assert list(read_baseline(path).findings.values()) == [renewed[0], *kept]


#: Phrases of one kind, which audits of one defect may give with other draws.
KINDS = [
    (SCALE, f"output never varies; {SCALE}", "set of values of the output", "coordinate 7: threshold on its value"),
    (FLOATS, f"{FLOATS} of coordinate 2", "floating-point sign bit of zero"),
    ("shared noise: it cancels in a " + SCALE, "equal coordinates 1 and 2: repeated noise"),
    ("length of the output",),
    ("exception",),
    ("draws are not independent",),
    ("an adversary: tracing",),
    ("an adversary: packing",),
    ("",),
]


def test_causes_have_kinds() -> None:
    kinds = [{kind_of(phrase) for phrase in phrases} for phrases in KINDS]
    assert [len(kind) for kind in kinds] == [1] * len(KINDS)
    assert len(set.union(*kinds)) == len(KINDS)
    # No phrase for another thing than numbers of an output is taken for one.
    fixed = {phrase for phrase in PHRASES.values() if isinstance(phrase, str)}
    assert {phrase for phrase in fixed if kind_of(phrase) != "values"} == {
        "number of bits that are set in the output",
        "lattice: values of which outputs are multiples",
        "equal coordinates: repeated noise",
        "length of the output",
        "order of the output's keys",
        "type of the output",
    }


@pytest.mark.parametrize(
    ("verdict", "fields", "cause", "level"),
    [
        ("violation", {"counterexample": shown(FLOATS), "lower_bound": 1 / 3}, FLOATS, 0.33333333),
        ("violation", {"level": "L0", "exact": 2.0}, "", 2.0),
        ("violation", {"level": "L0"}, "", None),
        ("deviation", {"independence": {"passed": False}, "lower_bound": 0.5}, "draws are not independent", 0.5),
        ("deviation", {"checks": ({"name": "restart", "passed": False}, {"name": "x", "passed": None})},
         "check of restart", None),
        ("deviation", {"lower_bound": 0.2}, "", 0.2),
        ("inconclusive", {"independence": {"passed": True, "asked": "a"}, "lower_bound": 1.0},
         "draws may not be independent", None),
        ("inconclusive", {"lower_bound": 1.0}, "", None),
        ("consistent", {"lower_bound": 1.0}, "", None),
    ],
)  # fmt: skip
def test_cause_and_level_of_a_result(verdict: str, fields: dict[str, Any], cause: str, level: float | None) -> None:
    made = replace(result(verdict), **fields)
    assert (cause_of_result(made), level_of_result(made)) == (cause, level)


@pytest.mark.parametrize(
    ("fields", "up_to"),
    [
        ({"lower_bound": 0.82}, 1.64),
        ({"lower_bound": 0.8201}, 1.65),
        ({"lower_bound": 12.27, "stop": "budget"}, 15.4),
        ({"lower_bound": 1.2, "exact": 1.25003}, 1.26),
        ({"lower_bound": 1.2, "exact": math.inf}, math.inf),
        ({"lower_bound": 1.2, "exact": 1.0}, 2.4),
        ({"lower_bound": 1e-11}, 2e-11),
        ({"lower_bound": 0.0}, 0.0),
        ({}, None),
    ],
)
def test_a_finding_is_written_with_head_room(fields: dict[str, Any], up_to: float | None) -> None:
    assert find_leeway(result("violation", **fields)) == up_to


def test_other_findings_still_decide_the_exit_code() -> None:
    both = [result("violation", counterexample=shown(FLOATS)), result("inconclusive", id_="a/b/L1/x/z")]
    assert exit_code(both) == 1
    assert exit_code(apply_baseline(known(VIOLATION), both)) == 3
    assert exit_code(apply_baseline(known(VIOLATION), both[:1]), interrupted=True) == 130


@pytest.mark.parametrize(
    ("verdict", "claimed", "said"),
    [
        ("violation", "ε = 1", []),
        ("violation", "ε = 2", ["known with the claim ε = 2, which now is ε = 1"]),
        ("consistent", "ε = 1", ["stale: known as violation, now consistent as expected"]),
        ("deviation", "ε = 1", ["stale: known as violation, now deviation"]),
        ("error", "ε = 1", ["known as violation, could not be audited now"]),
    ],
)
def test_stale_entries_are_noticed(verdict: str, claimed: str, said: list[str]) -> None:
    baseline = known(Finding(ID, Verdict.VIOLATION, claimed, ("",)))
    lines = list_notices(baseline, apply_baseline(baseline, [result(verdict)]))
    assert lines == [f"baseline: {ID}: {text}" for text in said]


def test_a_failed_check_of_ours_makes_nothing_stale() -> None:
    failed = result("violation", sandwich="failed: lower bound 2 is above the exact level 1")
    baseline = known(VIOLATION)
    assert list_notices(baseline, apply_baseline(baseline, [failed])) == [
        f"baseline: {ID}: known as violation, could not be audited now"
    ]
    now_expected = result("violation", "violation")
    assert list_notices(baseline, apply_baseline(baseline, [now_expected])) == [
        f"baseline: {ID}: stale: known as violation, now violation as expected"
    ]


def test_a_claim_that_was_not_audited_is_not_stale() -> None:
    baseline = known(VIOLATION, Finding("c", Verdict.VIOLATION, causes=("",)))
    lines = list_notices(baseline, apply_baseline(baseline, [result("violation", counterexample=shown(FLOATS))]))
    assert lines == ["baseline: 1 of 2 entries are of claims that were not audited here"]


def test_a_new_baseline_keeps_reasons_and_claims_of_other_runs() -> None:
    results = [
        result("violation", lower_bound=2.5, counterexample=shown(f"{FLOATS} of coordinate 1")),
        result("violation", "violation", "mutant"),
        result("consistent", "violation", "missed", lower_bound=0.5),
        result("violation", id_="higher", lower_bound=3.5, counterexample=shown(FLOATS)),
        result("violation", id_="other", lower_bound=1.5, counterexample=shown(SCALE)),
        result("error", id_="crash"),
        result("violation", "violation", "ours", sandwich="failed: x"),
    ]
    before = known(
        VIOLATION,
        Finding("elsewhere", Verdict.DEVIATION),
        Finding("missed", Verdict.INCONCLUSIVE, reason="r"),
        replace(VIOLATION, id="higher"),
        replace(VIOLATION, id="other"),
    )
    found, kept, others = findings_of(results, before)
    assert found == [
        Finding(ID, Verdict.VIOLATION, "ε = 1", (FLOATS,), 2.5, 3.0, "mended in 2.0"),
        Finding("missed", Verdict.CONSISTENT, "ε = 1", ("",)),
        # A reason is not said of another finding than the one for which it was given.
        Finding("higher", Verdict.VIOLATION, "ε = 1", (FLOATS,), 3.5, 7.0),
        Finding("other", Verdict.VIOLATION, "ε = 1", (SCALE,), 1.5, 3.0),
    ]
    assert [finding.id for finding in kept] == ["elsewhere"]
    assert others == 2
    assert findings_of([], None) == ([], [], 0)


# --------------------------------------------------------------------------- command line

#: alpha = 1e-6 is the probability of a false alarm; a true level of 4 is missed with far smaller probability.
BROKEN = "    yield privacy(Response(4.0), PureDP(1.0), PAIR, case='worse')\n"
WORSE = "900/response/L1/pure_dp/worse"


@pytest.fixture
def baseline(dpaudit: Command, tmp_path: Path) -> Path:
    """Baseline of a run with one finding."""
    said = dpaudit("run", declare(tmp_path, HELD + BROKEN), *QUICK, "--out", tmp_path / "out")
    assert said.code == 1, said
    said = dpaudit("baseline", tmp_path / "out" / "results.json", "-o", tmp_path / "known.toml")
    assert (said.code, said.err) == (0, "")
    assert said.out == f"1 known finding in {tmp_path / 'known.toml'}\n"
    return tmp_path / "known.toml"


def give_reason(path: Path, reason: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count('reason = ""') == 1
    path.write_text(text.replace('reason = ""', f"reason = {json.dumps(reason)}"), encoding="utf-8")


def test_a_known_finding_does_not_make_a_run_fail(dpaudit: Command, tmp_path: Path, baseline: Path) -> None:
    give_reason(baseline, "issue 7 <b>")
    out = tmp_path / "again"
    said = dpaudit("run", tmp_path / "claims.py", *QUICK, "--out", out, "--baseline", baseline)
    assert said.code == 0, said
    (marked,) = [line for line in said.out.splitlines() if line.startswith("k")]
    assert "worse" in marked
    assert "2 claims: 1 as expected, 0 unexpected, 1 known (marked k)" in said.out
    assert complaints(said) == []
    assert "UNEXPECTED" not in said.err
    assert sum(line.endswith("  known") for line in said.err.splitlines()) == 1
    content = read(out / "results.json")
    jsonschema.validate(content, report.read_schema())
    assert [claim["known"] for claim in content["claims"]] == ["", "issue 7 <b>"]
    assert [claim["ok"] for claim in content["claims"]] == [True, False]
    assert content["manifest"]["baseline"] == str(baseline)
    # The reports say so, too, and none calls it a failure.
    suites = ET.fromstring((out / "junit.xml").read_text(encoding="utf-8"))
    assert (suites.get("failures"), suites.get("errors"), suites.get("skipped")) == ("0", "0", "1")
    (skipped,) = suites.iter("skipped")
    assert skipped.get("message") == "known: issue 7 <b>"
    (finding,) = json.loads((out / "results.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    assert finding["suppressions"] == [{"kind": "external", "justification": "issue 7 <b>"}]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Known findings" in page
    assert "issue 7 &lt;b&gt;" in page
    assert "issue 7 <b>" not in page
    text = (out / "report.md").read_text(encoding="utf-8")
    assert "## Known findings" in text
    assert "## Unexpected" not in text
    # It is no difference between two runs, and the run can be reproduced.
    assert dpaudit("diff", tmp_path / "out" / "results.json", out / "results.json").code == 0
    assert dpaudit("reproduce", out / "results.json", "--jobs", 1).code == 0


#: Textbook Laplace noise in floating point: of scale 2, ε is 0.5 but for the bits; of scale 0.02 it is 50.
TEXTBOOK = """    def noisy(data, n, rng):
        return data.sum() + rng.laplace(scale={scale}, size=n)
    yield privacy(noisy, PureDP(0.5), PAIR, case='textbook')
"""


def test_a_larger_leak_behind_known_floats_is_a_new_finding(dpaudit: Command, tmp_path: Path) -> None:
    path, out, id_ = tmp_path / "known.toml", tmp_path / "out", "900/response/L1/pure_dp/textbook"
    fine = declare(tmp_path, TEXTBOOK.format(scale=2.0), "fine.py")
    assert dpaudit("run", fine, *QUICK, "--out", out).code == 1
    assert dpaudit("baseline", out / "results.json", "-o", path).code == 0
    assert read_baseline(path).findings[id_].causes == (FLOATS,)
    # With every seed this is the known finding, and with no seed is the other one.
    assert {dpaudit("run", fine, *QUICK, "--seed", seed, "--baseline", path).code for seed in range(1, 4)} == {0}
    claims = declare(tmp_path, TEXTBOOK.format(scale=0.02), "regressed.py")
    assert {dpaudit("run", claims, *QUICK, "--seed", seed, "--baseline", path).code for seed in range(1, 4)} == {1}
    said = dpaudit("run", claims, *QUICK, "--baseline", path, "--out", out)
    assert said.code == 1, said
    new = f"another cause: the baseline has {FLOATS}, found was "
    assert f"! {id_}: violation where consistent was expected, new to the baseline: {new}" in said.out
    assert "1 unexpected (marked !)" in said.out
    assert complaints(said)[0].startswith(f"baseline: {id_}: new: {new}")
    assert f"UNEXPECTED, new to the baseline: {new}" in said.err
    content = read(out / "results.json")
    jsonschema.validate(content, report.read_schema())
    assert content["claims"][0]["new"].startswith(new)
    (failure,) = ET.fromstring((out / "junit.xml").read_text(encoding="utf-8")).iter("failure")
    assert new in str(failure.get("message"))
    (finding,) = json.loads((out / "results.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    assert new in finding["message"]["text"]
    assert "suppressions" not in finding
    for name in ("report.html", "report.md"):
        assert new in (out / name).read_text(encoding="utf-8")
    comment = dpaudit("report", out / "results.json", "--comment", "--baseline", path)
    assert new in comment.out
    # Written down again, it loses what was said of the other finding.
    give_reason(path, "floats")
    assert dpaudit("baseline", out / "results.json", "-o", path).code == 0
    assert (read_baseline(path).findings[id_].reason, dpaudit("run", claims, *QUICK, "--baseline", path).code) == (
        "",
        0,
    )


def test_a_new_finding_fails_beside_a_known_one(dpaudit: Command, tmp_path: Path, baseline: Path) -> None:
    body = HELD + BROKEN + BROKEN.replace("worse", "new")
    said = dpaudit("run", declare(tmp_path, body, "more.py"), *QUICK, "--baseline", baseline)
    assert said.code == 1, said
    assert "1 unexpected (marked !), 1 known (marked k)" in said.out


def test_a_known_violation_that_becomes_an_error_is_new(dpaudit: Command, tmp_path: Path, baseline: Path) -> None:
    body = HELD + BROKEN.replace("Response(4.0)", "crashing")
    said = dpaudit("run", declare(tmp_path, body, "crashes.py"), *QUICK, "--baseline", baseline)
    assert said.code == 2, said
    assert f"baseline: {WORSE}: known as violation, could not be audited now" in said.err


def test_an_entry_that_no_longer_occurs_is_stale_and_no_failure(
    dpaudit: Command, tmp_path: Path, baseline: Path
) -> None:
    body = HELD + BROKEN.replace("Response(4.0)", "Response(1.0)")
    said = dpaudit("run", declare(tmp_path, body, "mended.py"), *QUICK, "--baseline", baseline)
    assert said.code == 0, said
    assert complaints(said) == [f"baseline: {WORSE}: stale: known as violation, now consistent as expected"]


def test_a_baseline_that_is_written_again_keeps_its_reasons(dpaudit: Command, tmp_path: Path, baseline: Path) -> None:
    give_reason(baseline, "issue 7")
    before = baseline.read_bytes()
    assert dpaudit("baseline", tmp_path / "out" / "results.json", "-o", baseline).code == 0
    assert baseline.read_bytes() == before


def test_errors_are_left_out_and_said(dpaudit: Command, tmp_path: Path) -> None:
    body = HELD + "    yield privacy(crashing, PureDP(1.0), PAIR, case='crash')\n"
    assert dpaudit("run", declare(tmp_path, body), *QUICK, "--out", tmp_path / "out").code == 2
    said = dpaudit("baseline", tmp_path / "out" / "results.json", "-o", tmp_path / "known.toml")
    assert said.code == 0, said
    assert said.out.startswith("0 known findings in")
    assert "left out: 1 unexpected errors or failed checks" in said.err
    assert read_baseline(tmp_path / "known.toml").findings == {}


def test_reports_are_rendered_again_with_a_baseline(dpaudit: Command, tmp_path: Path, baseline: Path) -> None:
    said = dpaudit("report", tmp_path / "out" / "results.json", "--baseline", baseline, "--out", tmp_path / "again")
    assert said.code == 0, said
    suites = ET.fromstring((tmp_path / "again" / "junit.xml").read_text(encoding="utf-8"))
    assert (suites.get("failures"), suites.get("skipped")) == ("0", "1")


def test_a_known_finding_of_an_attack(dpaudit: Command, tmp_path: Path) -> None:
    target = f"{declare(tmp_path)}:lawless"
    options = ("--claim", "epsilon=0.1", "--relation", "replace-one", "--domain", "0,1", "--rows", 1)
    said = dpaudit("attack", target, *options, "--out", tmp_path / "out")
    assert said.code == 1, said
    path = tmp_path / "known.toml"
    assert dpaudit("baseline", tmp_path / "out" / "results.json", "-o", path).code == 0
    said = dpaudit("attack", target, *options, "--baseline", path, "--out", tmp_path / "again")
    assert said.code == 0, said
    assert said.out.endswith(f"known from {path}: {NO_REASON}\n")
    assert read(tmp_path / "again" / "results.json")["claims"][0]["known"] == NO_REASON
    assert dpaudit("attack", target, *options[2:], "--claim", "mu=0.1", "--baseline", path).code == 1
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub("^up_to = .*$", "up_to = 0.05", text, flags=re.MULTILINE), encoding="utf-8")
    said = dpaudit("attack", target, *options, "--baseline", path)
    assert said.code == 1, said
    assert f"new to {path}: a higher level: the baseline goes up to ε = 0.05, certified is " in said.out


@pytest.mark.parametrize("command", ["run", "attack", "report"])
def test_a_bad_baseline_is_refused_before_anything_is_done(dpaudit: Command, tmp_path: Path, command: str) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text(GOOD + "reason = 3\n", encoding="utf-8")
    claims = declare(tmp_path)
    if command == "report":
        assert dpaudit("run", claims, *QUICK, "--out", tmp_path / "out").code == 0
    arguments = {
        "run": (claims, *QUICK),
        "attack": (f"{claims}:lawless", "--claim", "epsilon=1", "--relation", "replace-one", "--domain", "0,1"),
        "report": (tmp_path / "out" / "results.json",),
    }[command]
    refused(dpaudit(command, *arguments, "--baseline", bad), bad, "line 6")


def test_what_is_no_results_file_makes_no_baseline(dpaudit: Command, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    for content, shown in (
        ('{"schema": "dpaudit-results/1", "manifest": {}, "claims": [{"id": "a"}]}', "claim 1 has no 'verdict'"),
        ('{"schema": "dpaudit-results/1", "manifest": {}, "claims": 3}', "'claims'"),
        ("[]", "list"),
    ):
        results.write_text(content, encoding="utf-8")
        refused(dpaudit("baseline", results, "-o", tmp_path / "known.toml"), results, shown)
    assert not (tmp_path / "known.toml").exists()


def test_a_bad_file_is_not_written_over(dpaudit: Command, tmp_path: Path, baseline: Path) -> None:
    baseline.write_text("not a baseline", encoding="utf-8")
    refused(dpaudit("baseline", tmp_path / "out" / "results.json", "-o", baseline), baseline)
    assert baseline.read_text(encoding="utf-8") == "not a baseline"


def test_a_result_without_an_id_is_no_finding(dpaudit: Command, tmp_path: Path) -> None:
    """It made a baseline that no run could read."""
    claim = result("violation").to_json() | {"id": ""}
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"schema": RESULTS, "manifest": {}, "claims": [claim]}), encoding="utf-8")
    refused(dpaudit("baseline", path, "-o", tmp_path / "known.toml"), path, "the id ''")
    assert not (tmp_path / "known.toml").exists()
