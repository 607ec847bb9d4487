"""The pytest plugin: budgets, the summary, properties, and shares of a family-wise alpha."""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor import Pair, PureDP, SpecificationError, audit
from auditor.audits.privacy_loop import Settings
from auditor.claims.claim import BUDGETS
from auditor.results import result_from
from dpaudit import pytest_plugin
from dpaudit.pytest_plugin import DeclaredAudits, PytestSession, share

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "pytest.md").read_text(encoding="utf-8")
HEADER = """
import math
import numpy as np
import pytest
import auditor
from auditor import Pair, PureDP, PrivacyViolation, assert_private

PAIR = Pair(np.array([0]), np.array([1]), "one bit")

def respond(data, n, rng, keep=1 / (1 + math.exp(-1.0))):
    return np.where(rng.random(n) < keep, data[0], 1 - data[0])

def leak(data, n, rng):
    return respond(data, n, rng, 0.95)

def private(epsilon=8.0, **options):
    # A claim that holds, and that 2,000 draws could not refute even if every output told its datasets apart.
    return assert_private(respond, PureDP(epsilon), PAIR, **{"inconclusive": "pass", **options})
"""


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Load all that an audit loads: a session within this one forgets what it imported, which numpy does not bear."""
    pair = Pair(np.array([0]), np.array([1]), "one bit")
    audit(lambda data, n, rng: np.full(n, data[0]), PureDP(1.0), pair, draws=400)
    audit(lambda data, n, rng: rng.integers(2, size=n), PureDP(1.0), pair, draws=400)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder for a test suite, with this plugin whether it is installed or not, and with no other."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p dpaudit.pytest_plugin")
    return pytester


Found = dict[str, dict[str, str]]


def properties(suite: pytest.Pytester) -> Found:
    """Properties of each test in the JUnit file."""
    root = ElementTree.parse(suite.path / "junit.xml").getroot()
    return {
        str(case.get("name")): {
            str(one.get("name")): str(one.get("value")) for one in case.iter("property") if one.get("name")
        }
        for case in root.iter("testcase")
    }


def run(suite: pytest.Pytester, body: str, *options: str) -> tuple[pytest.RunResult, Found]:
    """Run a suite in this process."""
    suite.makepyfile(test_suite=HEADER + body)
    done = suite.runpytest_inprocess("--junitxml=junit.xml", "-p", "no:cacheprovider", *options)
    return done, properties(suite)


# What it costs


def test_loading_it_loads_nothing_else() -> None:
    code = "import pytest, sys; had = set(sys.modules); import dpaudit.pytest_plugin; print(*set(sys.modules) - had)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["dpaudit", "dpaudit.pytest_plugin"]


def test_a_session_without_audits_loads_neither_numpy_nor_the_package(suite: pytest.Pytester) -> None:
    suite.makepyfile(auditor="raise RuntimeError('a package of this name in the project does no harm')")
    suite.makepyfile(
        """
        import sys
        import pytest

        @pytest.mark.dpaudit(draws=1_000)
        def test_it():
            assert not {"numpy", "scipy", "auditor"} & set(sys.modules)
            assert "dpaudit.pytest_plugin" in sys.modules
        """
    )
    done = suite.runpytest_subprocess("--dp-familywise", "--dp-level", "smoke", "--strict-markers", timeout=60)
    done.assert_outcomes(passed=1)
    assert "privacy audits" not in done.stdout.str()


def test_the_entry_point_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"]["pytest11"] == {"dpaudit": pytest_plugin.__name__}
    assert "dpaudit" in project["tool"]["setuptools"]["packages"]["find"]["include"]
    installed = [point for point in metadata.entry_points(group="pytest11") if point.name == "dpaudit"]
    assert [point.load() for point in installed] in ([], [pytest_plugin])  # [] until it is installed anew


def test_its_levels_and_limits_are_those_of_the_package() -> None:
    assert tuple(BUDGETS) == pytest_plugin.LEVELS
    assert Settings().alpha == pytest_plugin.ALPHA
    least = pytest_plugin._LEAST["draws"]
    Settings(draws=least)
    with pytest.raises(SpecificationError):
        Settings(draws=least - 1)


# What it reports


def test_audits_stand_in_the_summary_and_in_the_junit_file(suite: pytest.Pytester) -> None:
    done, found = run(
        suite,
        """
def test_one(request):
    request.node.user_properties.append(("mine", 1))
    result = private(draws=2_000)
    assert result.id == "test_suite.py::test_one"

def test_two():
    private(draws=2_000)
    with pytest.raises(PrivacyViolation):
        assert_private(leak, PureDP(1.0), PAIR, draws=2_000)

def test_three():
    assert_private(leak, PureDP(1.0), PAIR, draws=2_000)

def test_four():
    pass
""",
    )
    done.assert_outcomes(passed=3, failed=1)
    pair = Pair(np.array([0]), np.array([1]), "one bit")

    def respond(data: NDArray[np.int64], n: int, rng: np.random.Generator) -> NDArray[Any]:
        answers: NDArray[Any] = np.where(rng.random(n) < 1 / (1 + math.exp(-1.0)), data[0], 1 - data[0])
        return answers

    same = audit(respond, PureDP(8.0), pair, draws=2_000, id="test_suite.py::test_one").to_json()
    assert found["test_one"].pop("mine") == "1"
    assert found["test_one"] == {
        f"dpaudit.1.{name}": str(same[name]) for name in pytest_plugin.FIELDS if same[name] is not None
    } | {"dpaudit.1.undecided": result_from(same).undecided}
    assert found["test_two"]["dpaudit.1.verdict"] == "inconclusive"
    assert found["test_two"]["dpaudit.2.verdict"] == "violation"
    assert found["test_two"]["dpaudit.2.id"] == "test_suite.py::test_two#2"
    assert found["test_three"]["dpaudit.1.verdict"] == "violation"
    assert found["test_four"] == {}
    lines = done.outlines[done.outlines.index(next(line for line in done.outlines if "= privacy audits =" in line)) :]
    assert " ".join(lines[1].split()) == "verdict claimed lower bound reached resolves ceiling draws alpha test"
    assert [line.split()[-1] for line in lines[2:6]] == [
        f"test_suite.py::test_{name}" for name in ("one", "three", "two#1", "two#2")
    ]
    assert lines[2].split()[4:] == [
        f"{float(same['lower_bound']):.4g}",
        f"{100 * float(same['reached']):.3g}",
        "%",
        f"{float(same['resolves']):.4g}",
        f"{float(same['ceiling']):.4g}",
        "2,000",
        "0.01",
        "test_suite.py::test_one",
    ]
    assert "dpaudit.2.undecided" not in found["test_two"]
    assert lines[6:8] == [f"test_suite.py::test_{name}: {result_from(same).undecided}" for name in ("one", "two#1")]
    assert lines[8].startswith("Nothing found is no proof")
    assert "dpaudit:" not in done.stdout.str()  # no option, nothing in the header
    # The failing test's own line is shown, not that of the assertion.
    done.stdout.fnmatch_lines([">*assert_private(leak, PureDP(1.0)*", "test_suite.py:*: PrivacyViolation"])


@pytest.mark.parametrize("options", [(), ("--dp-seed=4", "--dp-familywise", "--dp-alpha=1e-3", "--dp-level=smoke")])
def test_the_replay_line_of_a_message_runs_the_same_audit(suite: pytest.Pytester, options: tuple[str, ...]) -> None:
    body = """
def test_another():
    private(draws=2_000)

@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.dpaudit(draws=2_000)
def test_it(n):
    assert_private(leak, PureDP(1.0), PAIR)
"""
    done, found = run(suite, body, *options)
    done.assert_outcomes(passed=1, failed=2)
    *_, line = re.findall(r"^E +replay +(pytest .*)$", done.stdout.str(), flags=re.MULTILINE)
    assert "test_it[2]" in line
    again = suite.runpytest_inprocess(*shlex.split(line)[1:], "--junitxml=junit.xml", "-p", "no:cacheprovider")
    again.assert_outcomes(failed=1)
    assert properties(suite) == {"test_it[2]": found["test_it[2]"]}
    assert found["test_it[2]"]["dpaudit.1.verdict"] == "violation"


def test_nothing_decided_fails_with_its_reason_unless_it_may_pass(suite: pytest.Pytester) -> None:
    done, _ = run(
        suite,
        """
def test_it():
    private(1.0, draws=400, inconclusive="fail")

def test_it_in_an_assertion():
    assert private(1.0, draws=400)

def test_it_may_pass():
    private(1.0, draws=400)
""",
    )
    done.assert_outcomes(passed=1, failed=2)
    (said,) = re.findall(r"^E +AssertionError: test_suite\.py::test_it: (.*)$", done.stdout.str(), flags=re.MULTILINE)
    assert said.startswith("Nothing is decided: ")
    assert "To do: give it more draws" in said
    assert said.endswith("To accept such an audit: inconclusive='pass'.")
    done.stdout.fnmatch_lines(["E *AuditResult(id=*verdict='inconclusive'*"])


FORGETS = """
@pytest.mark.dpaudit(draws=2_000)
def test_forgets():
    auditor.audit(leak, PureDP(1.0), PAIR, draws=2_000)  # and does not look at what it found

@pytest.mark.dpaudit(audits=0)
def test_declares_none():
    pass

@pytest.mark.dpaudit
def test_skips():
    pytest.skip("not here")

@pytest.mark.dpaudit
class TestShared:
    def test_something_else(self):
        pass
"""


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "1")], ids=["one process", "a worker"])
def test_a_test_that_forgets_its_audit_is_named(suite: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result, found = run(suite, FORGETS, *workers)
    result.assert_outcomes(passed=3, skipped=1)
    (line,) = [line for line in result.outlines if "passed without one" in line]
    assert line.startswith("test_suite.py::test_forgets: its marker declares 1, ")
    assert found["test_forgets"] == {"dpaudit.0.missing": "1"}


def test_a_crashing_mechanism_is_reported_as_an_error(suite: pytest.Pytester) -> None:
    done, found = run(
        suite,
        """
def test_it():
    def crash(data, n, rng):
        raise OSError("no \x1b[31mentropy left")
    assert_private(crash, PureDP(1.0), PAIR, draws=2_000)
""",
    )
    done.assert_outcomes(failed=1)
    assert found["test_it"]["dpaudit.1.verdict"] == "error"
    done.stdout.re_match_lines([r"error +ε = 1 +- +- +- +- +0 +0\.01 +test_suite\.py::test_it"])
    said = (
        "test_suite.py::test_it: Could not be audited: the target raised OSError: no \\x1b[31mentropy left "
        "(test_suite.py, line 21), on the dataset [0]. To do: mend"
    )
    assert any(line.startswith(said) for line in done.outlines)


def test_a_test_that_is_run_again_reports_its_last_attempt(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        """
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            for item.attempt in range(2):
                runtestprotocol(item, nextitem=nextitem)
            return True
        """
    )
    done, found = run(
        suite,
        """
def test_it(request):
    private(9.0 - request.node.attempt, draws=400)

def test_once(request):
    if not request.node.attempt:
        private(draws=400)
""",
        "--dp-familywise",
    )
    done.assert_outcomes(passed=4)
    assert found["test_it"]["dpaudit.1.claimed"] == "ε = 8"
    assert found["test_it"]["dpaudit.1.id"] == "test_suite.py::test_it"
    assert not any(name.startswith("dpaudit.2") for name in found["test_it"])
    assert "test_once" not in done.stdout.str().split("privacy audits")[1]
    # Its share is that of the first attempt: 0.01 over two tests, of which it is the first audit.
    assert float(found["test_it"]["dpaudit.1.alpha"]) == pytest.approx(0.01 / 2 * 6 / math.pi**2, rel=1e-6)


# Options and the marker


PRECEDENCE = """
@pytest.mark.dpaudit(draws=900)
class TestMarked:
    def test_marked(self):
        assert private().draws == 900

    @pytest.mark.dpaudit(draws={"smoke": 1_000, "standard": 1_200}, seconds=50)
    def test_closest(self, request):
        result = private()
        level = request.config.getoption("--dp-level")
        assert result.draws == {None: 1_000, "smoke": 1_000, "standard": 1_200}[level]
        assert result.stop == ("budget" if level == "standard" else "verdict")

    def test_given(self):
        result = private(draws=700, seed=3, alpha=0.02, id="mine", stop="verdict")
        assert (result.draws, result.alpha, result.id, result.stop) == (700, 0.02, "mine", "verdict")
        assert result.replay.startswith("pytest test_suite.py::TestMarked::test_given")

    def test_options(self, request):
        result = private()
        seed, alpha = (request.config.getoption(name) for name in ("--dp-seed", "--dp-alpha"))
        assert ("--dp-seed 12" in result.replay) == (seed == 12)
        assert result.alpha == (alpha or 0.01)

def test_unmarked(request):
    assert auditor.audit(respond, PureDP(1.0), PAIR, draws=400).id == "audit/L1/claim/given"  # as ever
"""


@pytest.mark.parametrize(
    "options",
    [(), ("--dp-level=smoke", "--dp-seed=12"), ("--dp-level=standard", "--dp-alpha=0.2")],
    ids=" ".join,
)
def test_the_test_goes_before_the_marker_and_the_marker_before_the_options(
    suite: pytest.Pytester, options: tuple[str, ...]
) -> None:
    done, _ = run(suite, PRECEDENCE, *options, "--strict-markers")
    done.assert_outcomes(passed=5)
    said = re.findall(r"^dpaudit: .*", done.stdout.str(), flags=re.MULTILINE)
    assert (
        said
        == {
            (): [],
            ("--dp-level=smoke", "--dp-seed=12"): ["dpaudit: level smoke, seed 12"],
            ("--dp-level=standard", "--dp-alpha=0.2"): ["dpaudit: alpha 0.2, level standard"],
        }[options]
    )


def test_budgets_of_a_level_are_those_of_a_run() -> None:
    for level, (draws, stop) in BUDGETS.items():
        options = PytestSession(None, level, None, False, test="test", phase="call").options({})
        assert options == {"id": "test", "draws": draws, "stop": stop}
    # A level that the marker's draws do not name has its own.
    marked = PytestSession(None, "full", None, False, test="test", phase="call", budgets={"draws": {"smoke": 40}})
    assert marked.options({})["draws"] == BUDGETS["full"][0]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--dp-alpha=2", "must be a number in (0, 1), got '2'"),
        ("--dp-alpha=nan", "must be a number in (0, 1), got 'nan'"),
        ("--dp-alpha=some", "must be a number in (0, 1), got 'some'"),
        ("--dp-seed=-1", "must be an integer of at least 0, got '-1'"),
        ("--dp-seed=1.5", "must be an integer of at least 0, got '1.5'"),
        ("--dp-level=huge", "huge"),
    ],
)
def test_a_bad_option_is_refused(suite: pytest.Pytester, option: str, said: str) -> None:
    suite.makepyfile("def test_it():\n    pass\n")
    done = suite.runpytest_inprocess(option)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert option.split("=")[0] in done.stderr.str()
    assert said in done.stderr.str()


def test_a_bad_marker_makes_its_own_test_an_error(suite: pytest.Pytester) -> None:
    bad = {
        "1_000": "takes keywords only (draws, seconds, audits, ignore), got (1000,)",
        "drawn=5": "has no 'drawn' (= 5)",
        "draws=5": "draws of the marker dpaudit must be an integer of at least 32, got 5",
        "draws=1e5": "draws of the marker dpaudit must be an integer of at least 32, got 100000.0",
        "draws={'tiny': 100}": "draws for the level 'tiny', expected smoke, standard, full",
        "draws={'smoke': True}": "draws of the marker dpaudit must be an integer of at least 32, got True",
        "seconds=0": "seconds of the marker dpaudit must be a positive number, got 0",
        "seconds='5'": "seconds of the marker dpaudit must be a positive number, got '5'",
        "audits=-1": "audits of the marker dpaudit must be an integer of at least 0, got -1",
        "ignore='float'": "no kind of causes is called 'float'; did you mean floating-point?",
        "ignore=3": "ignore must be names of kinds of causes, got 3",
        "audits=None": "audits of the marker dpaudit must be an integer of at least 0, got None",
    }
    tests = [
        f"@pytest.mark.dpaudit({what})\ndef test_bad_{k}():\n    raise SystemError\n" for k, what in enumerate(bad)
    ]
    fine = "@pytest.mark.dpaudit(draws=np.int64(400), seconds=np.float64(9))\ndef test_fine():\n    private()\n"
    done, found = run(suite, "\n".join([*tests, fine]), "--dp-familywise")
    done.assert_outcomes(passed=1, errors=len(bad))
    for said in bad.values():
        assert said in done.stdout.str()
    assert "During handling" not in done.stdout.str()
    # What is refused declares nothing.
    assert float(found["test_fine"]["dpaudit.1.alpha"]) == pytest.approx(0.009)


def test_a_marker_names_kinds_of_causes_to_ignore(suite: pytest.Pytester) -> None:
    body = """
def in_floats(data, n, rng):
    return data[0] + rng.laplace(size=n)

@pytest.mark.dpaudit(draws=4_000, ignore="floating-point")
def test_ignored():
    assert_private(in_floats, PureDP(1.0), PAIR, alpha=1e-6, inconclusive="pass")

@pytest.mark.dpaudit(draws=4_000, ignore=["floating-point"])
def test_its_own_goes_first():
    with pytest.raises(PrivacyViolation, match="floating-point"):
        assert_private(in_floats, PureDP(1.0), PAIR, alpha=1e-6, ignore=())
"""
    done, found = run(suite, body)
    done.assert_outcomes(passed=2)
    assert found["test_ignored"]["dpaudit.1.ignore"] == "floating-point"
    assert "dpaudit.1.ignore" not in found["test_its_own_goes_first"]
    assert "test_suite.py::test_ignored: not looked at: floating-point" in done.stdout.str()


# One alpha for a session


def test_shares_add_up_to_alpha_at_most_whatever_the_tests_do() -> None:
    rng = np.random.default_rng(20)
    for _ in range(200):
        declares = rng.integers(0, 4, size=rng.integers(1, 30))
        makes = rng.integers(0, 40, size=declares.size)
        family = DeclaredAudits(int(declares.sum()), declares.size)
        total = math.fsum(
            share(0.05, family, int(declared), k)
            for declared, made in zip(declares, makes, strict=True)
            for k in range(1, made + 1)
        )
        assert 0 <= total <= 0.05 * (1 + 1e-12)
    # Nothing is left over where tests do what they declare, but for the tenth that is kept.
    assert math.fsum(share(0.05, DeclaredAudits(3, 9), 3, k) for k in (1, 2, 3)) == pytest.approx(0.045)
    # ... and all is used in the limit where nobody declares anything.
    assert math.fsum(share(0.05, DeclaredAudits(0, 1), 0, k) for k in range(1, 10_000)) == pytest.approx(0.05, rel=1e-4)


def alarms(shares: list[float], sessions: int) -> int:
    """Sessions with a false alarm, in which every audit is of a claim that holds with nothing to spare.

    Each audit is a test martingale: bets on a fair coin, at odds that are fair, until it is flipped 2,000 times. Such
    wealth reaches 1/a with a probability of nearly a, for which `auditor.audit` leaves much more room.
    """
    rng = np.random.default_rng(21)
    alarm = np.zeros(sessions, dtype=bool)
    for own in shares:
        wealth = np.cumsum(np.where(rng.random((sessions, 2_000)) < 0.5, math.log(1.1), math.log(0.9)), axis=1)
        alarm |= wealth.max(axis=1) >= -math.log(own)
    return int(alarm.sum())


def test_a_session_of_claims_without_margin_has_false_alarms_at_most_as_often_as_alpha() -> None:
    alpha, sessions = 0.4, 300
    # More sessions than this have a probability of at most 1e-6 for a rate of alpha.
    limit = stats.binom.isf(1e-6, sessions, alpha)
    family = DeclaredAudits(4, 3)  # two tests declare two audits each, one none; all make three
    shares = [share(alpha, family, declared, k) for declared in (2, 2, 0) for k in (1, 2, 3)]
    assert alarms(shares, sessions) <= limit
    # The harness is seen to fail without the split, and with one that forgets that a test may make several audits.
    assert alarms([alpha] * len(shares), sessions) > limit
    assert alarms([alpha / 3] * len(shares), sessions) > limit


SHARED = """
@pytest.mark.dpaudit(draws=1_000)
def test_one():
    private()

@pytest.mark.xdist_group("together")
@pytest.mark.dpaudit(draws=1_000, audits=2)
@pytest.mark.parametrize("epsilon", [8.0, 8.5])
def test_two(epsilon):
    private(epsilon)
    private(epsilon + 1)
    private(epsilon, draws=400)

def test_unmarked():
    private(draws=1_000)
    private(draws=1_000, alpha=1e-6)

@pytest.mark.dpaudit(audits=0)
def test_none():
    pass
"""


def test_shares_are_the_same_in_any_order_and_on_any_number_of_workers(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        """
        def pytest_addoption(parser):
            parser.addoption("--backwards", action="store_true")

        def pytest_collection_modifyitems(config, items):
            if config.getoption("--backwards"):
                items.reverse()
        """
    )
    options = ("--dp-familywise", "--dp-alpha=0.02", "--dp-seed=5")
    done, found = run(suite, SHARED, *options)
    done.assert_outcomes(passed=5)
    declared, kept = 0.9 * 0.02 / 5, 0.1 * 0.02 / 5 * 6 / math.pi**2
    for name, shares in {
        "test_one": [declared],
        "test_two[8.0]": [declared, declared, kept],
        "test_two[8.5]": [declared, declared, kept],
        "test_unmarked": [kept, 1e-6],
        "test_none": [],
    }.items():
        alphas = [float(value) for key, value in found[name].items() if key.endswith(".alpha")]
        assert alphas == pytest.approx(shares, rel=1e-6), name
    summary = done.stdout.str().split("privacy audits")[1].rsplit("\n=", 1)[0]
    assert "of alpha 0.02, the probability of any false alarm in the session" in summary

    backwards, same = run(suite, SHARED, *options, "--backwards")
    assert same == found
    assert summary in backwards.stdout.str()

    workers = suite.runpytest_subprocess(
        *options, "--junitxml=junit.xml", "-p", "xdist", "-n", "2", "--dist", "loadgroup", timeout=120
    )
    workers.assert_outcomes(passed=5)
    there = {name.removesuffix("@together"): said for name, said in properties(suite).items()}
    assert there == found
    assert workers.stdout.str().split("privacy audits")[1].rsplit("\n=", 1)[0].replace("@together", "") == summary


def test_a_single_audit_is_repeated_with_its_share(suite: pytest.Pytester) -> None:
    _, found = run(suite, SHARED, "--dp-familywise", "--dp-seed=5")
    own = found["test_one"]
    done = suite.runpytest_inprocess(
        "test_suite.py::test_one", f"--dp-alpha={own['dpaudit.1.alpha']}", "--dp-seed=5", "--junitxml=junit.xml"
    )
    done.assert_outcomes(passed=1)
    assert properties(suite)["test_one"] == own


def test_a_larger_alpha_is_cut_and_a_bad_one_refused(suite: pytest.Pytester) -> None:
    done, found = run(
        suite,
        """
@pytest.mark.dpaudit(draws=400)
@pytest.mark.parametrize("alpha", [0.5, 0.001, 7, "x", True])
def test_it(alpha):
    private(alpha=alpha)
""",
        "--dp-familywise",
    )
    done.assert_outcomes(passed=2, failed=3)
    assert float(found["test_it[0.5]"]["dpaudit.1.alpha"]) == pytest.approx(0.009 / 5)
    assert float(found["test_it[0.001]"]["dpaudit.1.alpha"]) == 0.001
    for value in ("7", "'x'", "True"):
        assert f"alpha must be a number in (0, 1), got {value}" in done.stdout.str()


IN_FIXTURES = """
@pytest.fixture
def before():
    private(draws=400)

def test_before(before):
    private(draws=400)

@pytest.fixture
def after():
    yield
    private(draws=400)

def test_after(after):
    private(draws=400)
"""


def test_audits_in_fixtures_are_refused_where_alpha_is_shared(suite: pytest.Pytester) -> None:
    done, _ = run(suite, IN_FIXTURES, "--dp-familywise")
    done.assert_outcomes(passed=1, errors=2)
    for where in ("the setup of test_suite.py::test_before", "the teardown of test_suite.py::test_after"):
        assert f"assert_private was called in {where}; with --dp-familywise" in done.stdout.str()


def test_audits_in_fixtures_are_reported_with_the_test_that_asked(suite: pytest.Pytester) -> None:
    done, found = run(suite, IN_FIXTURES)
    done.assert_outcomes(passed=2)
    # Their draws are not keyed by the test, which for a fixture of wider scope is whichever comes first.
    general = "audit/L1/claim/given"
    for name, ids in {
        "test_before": [general, "test_suite.py::test_before"],
        "test_after": ["test_suite.py::test_after", general],
    }.items():
        assert [value for key, value in found[name].items() if key.endswith(".id")] == ids


def test_audits_outside_of_tests_are_refused_where_alpha_is_shared(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_suite=HEADER + "private(draws=400)\n\ndef test_it():\n    pass\n")
    suite.runpytest_inprocess("--dp-alpha=0.1").assert_outcomes(passed=1)
    done = suite.runpytest_inprocess("--dp-familywise")
    done.assert_outcomes(errors=1)
    assert "assert_private was called outside of all tests; with --dp-familywise" in done.stdout.str()


MARKED_LATE = """
@pytest.mark.dpaudit
def test_declared():
    private(draws=400)

def test_late():
    for _ in range(5):
        private(draws=400)
"""


@pytest.mark.parametrize("selected", ["declared or late", "late"])
def test_a_marker_that_comes_after_the_collection_has_no_share(suite: pytest.Pytester, selected: str) -> None:
    suite.makeconftest(
        "import pytest\n\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_setup(item):\n"
        "    if 'late' in item.name:\n        item.add_marker(pytest.mark.dpaudit(audits=5))\n"
    )
    done, found = run(suite, MARKED_LATE, "--dp-familywise", "-k", selected)
    done.assert_outcomes(passed=2 if "declared" in selected else 1, deselected=0 if "declared" in selected else 1)
    shares = [float(value) for test in found.values() for name, value in test.items() if name.endswith(".alpha")]
    assert math.fsum(shares) <= 0.01


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied here")
def test_audits_in_a_forked_process_are_refused_where_alpha_is_shared(suite: pytest.Pytester) -> None:
    forks = """
import multiprocessing

def child(told):
    try:
        told.put(f"alpha {private(draws=400).alpha}")
    except auditor.SpecificationError as error:
        told.put(str(error))

def test_forks():
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    process = context.Process(target=child, args=(told,))
    process.start()
    pytest.fail(told.get(timeout=60))
"""
    done, _ = run(suite, forks, "--dp-familywise", "-W", "ignore::DeprecationWarning")
    assert "in a process that test_suite.py::test_forks started; with --dp-familywise" in done.stdout.str()


def test_every_worker_repeating_all_tests_is_refused_where_alpha_is_shared(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_it():\n    pass\n")
    done = suite.runpytest_inprocess("-p", "xdist", "-n", "2", "--dist", "each", "--dp-familywise")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "--dp-familywise does not go with --dist each" in done.stderr.str()


# The page


def test_the_page_is_run(suite: pytest.Pytester) -> None:
    """Its claims hold with nothing to spare: its alpha makes a false alarm one in a million for any seed."""
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    (command,) = re.findall(r"^\$ pytest (.*)", PAGE, flags=re.MULTILINE)
    suite.makepyfile(test_noise=code)
    done = suite.runpytest_inprocess(*command.split())
    done.assert_outcomes(passed=2)
    said = {key for found in properties(suite).values() for key in found}
    named = set(re.findall(r"`(dpaudit\.\d\.\w+)`", PAGE))
    assert named >= {key for key in said if key.startswith("dpaudit.1.")}
    assert named <= said
    done.stdout.fnmatch_lines(["dpaudit: alpha 1e-06 for the whole session, level smoke, seed 7"])
    for share_of in properties(suite).values():
        assert float(share_of["dpaudit.1.alpha"]) == pytest.approx(3e-7)
    assert share(0.01, DeclaredAudits(0, 1_000), 0, 1) == pytest.approx(0.000006, rel=0.02)


def test_every_option_stands_on_the_page(suite: pytest.Pytester) -> None:
    options = set(re.findall(r"--dp-[a-z]+", suite.runpytest_inprocess("--help").stdout.str()))
    assert options == set(re.findall(r"--dp-[a-z]+", PAGE))
