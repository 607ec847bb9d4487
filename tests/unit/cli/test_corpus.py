"""`dpaudit corpus`: files of cases, confirmation by counting, audits that go on, and the page."""

from __future__ import annotations

import bisect
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from auditor.cli.corpus.audits import METHODS, CaseAudit, audit_cases, read_audits
from auditor.cli.corpus.cases import LibraryCase, find_cases, read_case
from auditor.cli.corpus.confirm import bound_level
from auditor.cli.corpus.page import write_page
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import ApproxDP, GaussianDP, PureDP
from tests.commandline import Command

CASE = '''"""none 1.0: the answer has no noise."""

import random

CASE = {
    "requires": "",
    "fixed": "",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0,1",
    "rows": 1,
    "min_rows": 1,
    "pair": ([0], [1]),
    "level": "unbounded",
    "family": "floats and sampling",
    "cause": ("value",),
    "source": "https://example.org/1",
    "draws": 200,
}


def draw(data, n):
    return [int(data[0]) for _ in range(n)]


def shows(output):
    return output == 1
'''
CONTROL = CASE[: CASE.index('    "pair"')].replace("no noise", "noise").replace('    "fixed": "",\n', "") + (
    '    "family": "floats and sampling",\n}\n\n\ndef draw(data, n):\n'
    "    return [int(data[0]) ^ (random.random() < 0.27) for _ in range(n)]\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("cases/none/bare.py", CASE), ("controls/none/flipped.py", CONTROL), ("helpers.py", "X = 1\n")):
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "corpus"


def test_cases_are_read_without_being_imported(folder: Path) -> None:
    case, control = find_cases(folder)
    assert (case.name, control.name) == ("none/bare", "none/flipped")
    assert not case.is_control
    assert control.is_control
    assert case.level == math.inf
    assert str(case.guarantee) == "ε = 1"
    assert list(case.crafted.x) == [0]
    assert case.shows(1)
    assert not case.shows(0)
    with pytest.raises(SpecificationError, match="a control has no crafted pair"):
        _ = control.crafted


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"claim": "epsilon=1"', '"claim": "epsilon=x"', "epsilon=x"),
        ('"family": "floats and sampling"', '"family": "floats"', "got 'floats'"),
        ('"relation": "replace-one"', '"relation": "rows"', "got 'rows'"),
        ('"pair": ([0], [1])', '"pair": ([0], [0])', "0 rows differ"),
        ('"pair": ([0], [1])', '"pair": ([0],)', "two lists of rows"),
        ('"level": "unbounded"', '"level": "large"', "got 'large'"),
        ('"level": "unbounded"', '"level": 0.5', "above the claim ε = 1, got 0.5"),
        ('"rows": 1', '"rows": True', "rows must not be a bool, got True"),
        ('"domain": "0,1"', '"values": "0,1"', "['values']"),
        ('    "domain": "0,1",\n', "", "lacks domain"),
        ('"rows": 1', '"rows": len("a")', "must be a literal"),
        ("def draw", "def drawn", "a function draw(data, n)"),
        ("def shows", "def show", "either a function shows(output) or a function level(data)"),
        ("CASE = {", "CASES = {", "one dict literal CASE, got 0"),
        ('"""none 1.0: the answer has no noise."""\n', "", "a docstring that says what is wrong"),
        ("def draw", "def (", "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_case_is_named_with_its_file(tmp_path: Path, old: str, new: str, named: str) -> None:
    assert old in CASE
    path = tmp_path / "wrong.py"
    path.write_text(CASE.replace(old, new), encoding="utf-8")
    with pytest.raises(SpecificationError) as caught:
        read_case(path)
    assert named in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("guarantee", "first", "second"),
    [(PureDP(1.0), 900, 100), (ApproxDP(1.0, 0.01), 40, 600), (GaussianDP(1.0), 5, 700)],
)
def test_the_bound_is_that_of_clopper_and_pearson(guarantee: PureDP, first: int, second: int) -> None:
    # Independently: the exact tails at the limits, which are alpha / 4 each.
    bound = bound_level(guarantee, first, second, 1_000, alpha=1e-3)
    more, less = max(first, second), min(first, second)
    low = stats.beta.ppf(1e-3 / 4, more, 1_000 - more + 1)
    high = stats.beta.isf(1e-3 / 4, less + 1, 1_000 - less)
    direct = float(guarantee.level_of(np.array(low), np.array(high)))
    complement = float(guarantee.level_of(np.array(1.0 - high), np.array(1.0 - low)))
    assert bound == pytest.approx(max(direct, complement), rel=1e-9)
    assert bound_level(guarantee, second, first, 1_000, alpha=1e-3) == pytest.approx(bound, rel=1e-9)


def test_counting_confirms_a_true_level_no_more_often_than_it_may() -> None:
    # Randomised response at its exact level: a bound above it is a false confirmation. The fewer of the other dataset's
    # draws are in the event, the higher is the bound: of each count the largest that confirms is searched for.
    n, p = 300, math.e / (1.0 + math.e)

    def most(a: int) -> int:
        return (
            bisect.bisect(range(a + 1), False, key=lambda b: bound_level(PureDP(1.0), a, b, n, alpha=0.05) <= 1.0) - 1
        )

    counts = np.arange(n + 1)
    first = stats.binom.pmf(counts, n, p)
    likely = counts[first > 1e-9]
    wrong = first[likely] @ stats.binom.cdf([most(int(a)) for a in likely], n, 1.0 - p)
    assert wrong <= 0.05
    assert bound_level(PureDP(1.0), 10, 10, 100) == 0.0


def test_confirm_says_what_was_counted(dpaudit: Command, folder: Path) -> None:
    said = dpaudit("corpus", "confirm", folder)
    assert said.code == 0, said
    assert "none/bare: ε = 1; 0 and 200 of 200, level at least" in said.out
    assert said.out.rstrip().endswith("confirmed")
    path = folder / "cases/none/bare.py"
    path.write_text(CASE.replace("int(data[0]) for", "random.getrandbits(1) for"), encoding="utf-8")
    missed = dpaudit("corpus", "confirm", folder)
    assert missed.code == 1, missed
    assert "NOT CONFIRMED" in missed.out


def test_a_run_goes_on_and_writes_the_matrix(dpaudit: Command, folder: Path, tmp_path: Path) -> None:
    words = ("corpus", "run", folder, "--jobs", 1, "--out", tmp_path / "out", "--only", "blind", "--only", "pair 10 s")
    said = dpaudit(*words, "-k", "bare")
    assert said.code == 0, said
    page = (tmp_path / "out" / "corpus.md").read_text(encoding="utf-8")
    assert "| none/bare | ε = 1 | unbounded | violation |" in page
    assert "| blind audits that find the defect | 1 | 1 (100%) | at least 90% |" in page
    assert "[none 1.0: the answer has no noise.](https://example.org/1)" in page
    journal = tmp_path / "out" / "corpus.jsonl"
    kept = journal.read_bytes()
    journal.write_bytes(kept + b'{"case": "cut')
    again = dpaudit(*words, "-k", "bare")
    assert again.code == 0, again
    assert journal.read_bytes() == kept + b'{"case": "cut'
    assert len(read_audits(journal)) == 2


def test_what_the_commands_refuse(dpaudit: Command, folder: Path, tmp_path: Path) -> None:
    for words, named in (
        (("corpus", "list", tmp_path / "none"), "no such file or folder"),
        (("corpus", "list", folder, "-k", "absent"), "'absent'"),
        (("corpus", "run", folder, "--only", "seen"), "'seen'"),
        (("corpus", "report", folder, "--out", tmp_path / "empty"), "no results in"),
    ):
        said = dpaudit(*words)
        assert said.code == 2, said
        assert named in said.err


def _audit(case: str, method: str, verdict: str, said: str = "") -> CaseAudit:
    return CaseAudit(case, method, "", verdict, 1.0, 10, None, said)


def test_the_page_counts_what_is_missed_and_who_is_accused(folder: Path) -> None:
    cases = find_cases(folder)
    audits = [
        _audit("none/bare", "blind", "violation", "length"),
        _audit("none/bare", "pair 10 s", "inconclusive"),
        _audit("none/bare", "pair 60 s", "consistent"),
        _audit("none/flipped", "blind", "violation"),
    ]
    page = write_page(cases, audits, "")
    assert "| of them, name the cause | 1 | 0 (0%) | at least 80% |" in page
    assert "| audits on the crafted pair that find it | 1 | 0 (0%) | at least 95% |" in page
    assert "| fixed releases and controls that are accused | 1 | 1 | 0 |" in page
    assert "| no | missed |" in page


def test_a_larger_budget_is_tried_only_where_a_smaller_one_found_nothing(folder: Path, tmp_path: Path) -> None:
    methods = [method for method in METHODS if method.crafted]
    done = list(audit_cases(find_cases(folder, "bare"), methods, tmp_path))
    assert [audit.method for audit in done] == ["pair 10 s"]
    assert done[0].flagged


def test_an_environment_that_cannot_be_built_is_a_row(folder: Path, tmp_path: Path) -> None:
    path = folder / "cases/none/bare.py"
    path.write_text(CASE.replace('"requires": ""', '"requires": "./no-such-package"'), encoding="utf-8")
    (audit,) = audit_cases(find_cases(folder, "bare"), METHODS[:1], tmp_path)
    assert audit.verdict == "not installed"
    assert not audit.flagged


def test_every_case_of_the_corpus_can_be_read() -> None:
    cases = find_cases(Path("corpus"))
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        assert isinstance(case, LibraryCase)
        assert len(case.path.read_text(encoding="utf-8").splitlines()) <= 60, case.name
        assert "==" in case.requires, case.name
        assert case.is_control or case.source or "?" in case.about, f"{case.name}: what nobody reported is a question"
