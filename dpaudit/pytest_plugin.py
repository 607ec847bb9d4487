"""The pytest plugin: privacy audits in a test suite, their budgets, their shares of alpha, and a summary of them.

`auditor.assert_private` works in any test without this plugin. With it, options of the command line and the marker
``dpaudit`` say what a test leaves open, results stand in a section of pytest's summary and as properties in its JUnit
file, and ``--dp-familywise`` makes one alpha hold for a whole session.

Loading this module loads nothing of `auditor` and no numeric library: a session without an audit pays nothing for it,
and a package of the same name in somebody's project does no harm. It is `assert_private` that asks for the `session`.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import pytest

#: Names of the levels, as `dpaudit run --level` has them; the budgets stand in `auditor.claims.claim`.
LEVELS = ("smoke", "standard", "full")
#: Default probability of a false alarm, that of `auditor.audit`.
ALPHA = 0.01
#: Part of a family-wise alpha that is kept for audits nobody declared. Arbitrary: it costs those that are declared
#: ln(10/9) = 0.1 of the five to ten nats of evidence that they need.
KEPT = 0.1
#: What is said of each audit: the names of properties, and fields of `auditor.results.AuditResult`.
FIELDS = (
    "id",
    "verdict",
    "claimed",
    "alpha",
    "draws",
    "lower_bound",
    "reached",
    "resolves",
    "ceiling",
    "log10_max_e_value",
    "truncated_by",
)
#: What the names of all properties of this plugin begin with.
PREFIX = "dpaudit."
#: Property of a test whose own marker declares audits, and that passed without one. Its number is that of no audit.
MISSING = f"{PREFIX}0.missing"
#: What the marker may say.
BUDGETS = ("draws", "seconds", "audits", "ignore")
#: Smallest values of the marker's integers; the first is what `auditor.audit` takes at least.
_LEAST = {"draws": 32, "audits": 0}
HELP = (
    "dpaudit(draws=None, seconds=None, audits=1, ignore=()): budgets of the privacy audits in this test, where it "
    "gives none itself; draws is a number or one for each level, as {'smoke': 100_000}. audits is how many audits the "
    "test makes, which --dp-familywise goes by. ignore names kinds of causes to leave out, such as 'floating-point'."
)


@dataclass(frozen=True)
class DeclaredAudits:
    """What one alpha is split over, known once the tests are collected.

    Parameters
    ----------
    declared : int
        Audits that markers declare, in all selected tests.
    tests : int
        Selected tests, with a marker or without.
    """

    declared: int
    tests: int


def share(alpha: float, family: DeclaredAudits, declared: int, k: int) -> float:
    """Alpha of the k-th audit of a test, k = 1, 2, ...; the test's marker declares so many audits.

    Nine tenths of ``alpha`` go to the declared audits, in equal shares. The last tenth goes to all tests in equal
    shares, for audits that nobody declared: the j-th of a test gets 6 / (pi^2 j^2) of it. Where nothing is declared,
    these have all of ``alpha``.

    Valid because: an audit at level a calls a claim that holds violated with probability at most a, so the probability
    that any audit of a session does is at most the sum of their levels (the union bound: audits may share data, draws
    and anything else). Declared audits have at most ``family.declared`` equal shares of nine tenths of alpha; those of
    one test that are not declared have at most its share of the last tenth, however many they are, as
    1 + 1/4 + 1/9 + ... = pi^2 / 6. The counts are fixed when the tests are collected, before anything is drawn, and the
    number of audits in a test need not be: the share of the k-th does not depend on whether there is another. (An audit
    that is chosen by what an earlier one found needs draws of its own, which it has unless the test gives both the same
    id.) No share depends on the order of the tests, nor on the process that runs one, as every worker of xdist collects
    all tests. Where a failed test is run again, it fails in the end only if it failed at first.
    """
    if k <= declared:
        return alpha * (1 - KEPT) / family.declared
    kept = alpha * KEPT if family.declared else alpha
    return kept / family.tests * 6 / (math.pi * (k - declared)) ** 2


@dataclass(eq=False)
class PytestSession:
    """One run of pytest: what its options say, the test that is running, and the audits of all tests.

    Attributes
    ----------
    alpha, level, seed, familywise
        The options ``--dp-...``; None where not given.
    folder : str
        The folder of tests' ids, as it is named from where pytest was started.
    family : DeclaredAudits or None
        What a family-wise alpha is split over.
    test : str or None
        The test that is running.
    phase : str
        "setup", "call" or "teardown" of that test.
    budgets : mapping
        What its marker says.
    declared : int
        Audits that its marker declared when the tests were collected.
    process : int
        The process that runs it.
    properties : list of tuple of (str, object)
        Its properties.
    audits, own : int
        Audits in it so far, and those in its own body.
    seen : dict of str to list
        Properties of each test that reported some, in this process or another.
    """

    alpha: float | None
    level: str | None
    seed: int | None
    familywise: bool
    folder: str = ""
    family: DeclaredAudits | None = None
    test: str | None = None
    phase: str = ""
    budgets: Mapping[str, Any] = field(default_factory=dict)
    declared: int = 0
    process: int = 0
    properties: list[tuple[str, object]] = field(default_factory=list)
    audits: int = 0
    own: int = 0
    seen: dict[str, list[tuple[str, object]]] = field(default_factory=dict)

    def begin(self, item: pytest.Item) -> None:
        """Begin a test, or begin it again."""
        # A test that is run again says what its last attempt found. xdist may have renamed it after its group.
        item.user_properties[:] = [(name, value) for name, value in item.user_properties if not _is_ours(name)]
        self.test = item.nodeid if item.parent is None else f"{item.parent.nodeid}::{item.name}"
        self.properties, self.budgets = item.user_properties, {}
        self.audits = self.own = 0
        self.declared, self.process = item.stash.get(_DECLARED, 0), os.getpid()
        self.budgets = _marked_options(item)

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Options of an audit: what the test gives, then what its marker says, then the command line.

        Raises
        ------
        SpecificationError
            If alpha is family-wise and the audit is not in a test's own body: its share would depend on which test
            comes first. Or if it is in a copy of the test's process, which would use the same share again.
        """
        options = dict(given)
        self.own += self.phase == "call"
        if self.phase == "call" and self.test is not None:
            options.setdefault("id", self.test if self.own == 1 else f"{self.test}#{self.own}")
        self._budget(options)
        if self.seed is not None:
            options.setdefault("seed", self.seed)
        if self.familywise:
            own = self._share()
            given_alpha = options.setdefault("alpha", own)
            # A smaller one of the test's own is kept, and one that is not in (0, 1) is refused by the audit.
            if isinstance(given_alpha, int | float) and own < given_alpha < 1:
                options["alpha"] = own
        elif self.alpha is not None:
            options.setdefault("alpha", self.alpha)
        return options

    def _budget(self, options: dict[str, Any]) -> None:
        """Fill in draws, seconds and when to stop."""
        draws, seconds = self.budgets.get("draws"), self.budgets.get("seconds")
        if isinstance(draws, Mapping):
            draws = draws.get(self.level or LEVELS[0])
        if self.level is not None:
            from auditor.claims.claim import BUDGETS as OF_LEVELS  # whoever audits has loaded it

            usual, stop = OF_LEVELS[self.level]
            draws = usual if draws is None else draws
            options.setdefault("stop", stop)
        if draws is not None:
            options.setdefault("draws", draws)
        if seconds is not None:
            options.setdefault("seconds", seconds)
        if self.budgets.get("ignore"):
            options.setdefault("ignore", self.budgets["ignore"])

    def _share(self) -> float:
        """Share of a family-wise alpha that the next audit has."""
        if self.test is None or self.phase != "call" or self.family is None:
            where = f"in the {self.phase} of {self.test}" if self.test else "outside of all tests"
            wrong = (
                f"assert_private was called {where}; with --dp-familywise an audit must be in the body of a test, "
                "because its share of alpha must not depend on which test comes first"
            )
        elif self.process != os.getpid():
            wrong = (
                f"assert_private was called in a process that {self.test} started; with --dp-familywise an audit must "
                "be in the process of its test, because others do not know which shares of alpha are used"
            )
        else:
            return share(ALPHA if self.alpha is None else self.alpha, self.family, self.declared, self.own)
        from auditor.errors import SpecificationError

        raise SpecificationError(wrong)

    def replay(self, alpha: float) -> str:
        """A command that runs the test again, and so the audit with its share of alpha."""
        said = ["pytest", f"{self.folder}{self.test}"]
        if self.familywise or self.alpha is not None:
            said += ["--dp-alpha", repr(alpha if self.familywise else self.alpha)]
        for name, value in (("level", self.level), ("seed", self.seed)):
            said += [f"--dp-{name}", str(value)] if value is not None else []
        return shlex.join(said)

    def record(self, result: Any) -> Any:
        """Make a result a property of the test, and a command of pytest what runs it again.

        JUnit files, and the summary of all workers, are made from properties.
        """
        if self.test is None:
            return result
        replay, found = self.replay(result.alpha), result.counterexample
        result = replace(result, replay=replay, counterexample=found and replace(found, replay=replay))
        self.audits += 1
        found = result.to_json()  # plain data: strings, numbers, None
        self.properties += [
            (f"{PREFIX}{self.audits}.{name}", found[name]) for name in FIELDS if found[name] is not None
        ]
        if result.ignore:
            self.properties.append((f"{PREFIX}{self.audits}.ignore", ", ".join(result.ignore)))
        if result.undecided:
            from auditor.report.words import (  # whoever audits has paid for more; it may quote a target
                escape_controls,
                one_line,
            )

            self.properties.append((f"{PREFIX}{self.audits}.undecided", escape_controls(one_line(result.undecided))))
        return result

    def rows(self) -> list[dict[str, Any]]:
        """All audits that were reported, by test and number: `FIELDS`, ``test``, and ``undecided`` where that is so."""
        rows: list[dict[str, Any]] = []
        for test, properties in sorted(self.seen.items()):
            audits: dict[int, dict[str, Any]] = {}
            for name, value in properties:
                if name == MISSING:
                    continue
                k, _, what = name.removeprefix(PREFIX).partition(".")
                audits.setdefault(int(k), {})[what] = value
            rows += [{**row, "test": f"{test}#{k}" if len(audits) > 1 else test} for k, row in sorted(audits.items())]
        return rows

    def forgotten(self) -> list[tuple[str, object]]:
        """Tests that passed without the audits that their own markers declare, and how many these are."""
        found = ((test, dict(properties).get(MISSING)) for test, properties in sorted(self.seen.items()))
        return [(test, declared) for test, declared in found if declared is not None]


#: Sessions of this process, the innermost last: pytest's own tests run sessions within sessions.
_SESSIONS: list[PytestSession] = []
_SESSION = pytest.StashKey[PytestSession]()
#: Audits that the marker of a test declares when the tests are collected. A marker of later on was not counted.
_DECLARED = pytest.StashKey[int]()


def session() -> PytestSession | None:
    """The run of pytest that an audit in this process belongs to."""
    return _SESSIONS[-1] if _SESSIONS else None


def _is_ours(name: object) -> bool:
    return isinstance(name, str) and name.startswith(PREFIX)  # other plugins may have names of another kind


def _marked_options(item: pytest.Item) -> dict[str, Any]:
    """What the markers of a test say; the closest wins.

    Raises
    ------
    ValueError
        If one says what it cannot.
    """
    said: dict[str, Any] = {}
    for mark in item.iter_markers("dpaudit"):
        if mark.args:
            raise ValueError(f"the marker dpaudit takes keywords only ({', '.join(BUDGETS)}), got {mark.args!r}")
        for budget, value in mark.kwargs.items():
            if budget not in BUDGETS:
                raise ValueError(f"the marker dpaudit has no {budget!r} (= {value!r}), only {', '.join(BUDGETS)}")
            _check(budget, value)
            said.setdefault(budget, value)
    if item.get_closest_marker("dpaudit") is not None:
        said.setdefault("audits", 1)
    return said


def _check(name: str, value: object) -> None:
    """Check what a marker says."""
    if name == "ignore":
        from auditor.events.cause_kinds import read_kinds  # loads next to nothing

        read_kinds(value)  # type: ignore[arg-type]  # whatever it is, it is checked
    elif name == "draws" and isinstance(value, Mapping):
        for level, draws in value.items():
            if level not in LEVELS:
                raise ValueError(f"the marker dpaudit has draws for the level {level!r}, expected {', '.join(LEVELS)}")
            _number("draws", draws)
    elif value is not None or name == "audits":  # None: as if it were not given
        _number(name, value)


def _number(name: str, value: Any) -> None:
    """Check a number that a marker says."""
    kind: type = Real if name == "seconds" else Integral
    good = isinstance(value, kind) and not isinstance(value, bool)
    if not good or not (0 < value < math.inf if name == "seconds" else value >= _LEAST[name]):
        wanted = "a positive number" if name == "seconds" else f"an integer of at least {_LEAST[name]}"
        raise ValueError(f"{name} of the marker dpaudit must be {wanted}, got {value!r}")


def _count_declared(items: Sequence[pytest.Item]) -> int:
    """Audits that the markers of tests declare, also kept with each test; one whose marker is refused will not run."""
    for item in items:
        try:
            item.stash[_DECLARED] = int(_marked_options(item).get("audits", 0))
        except ValueError:
            item.stash[_DECLARED] = 0
    return sum(item.stash[_DECLARED] for item in items)


def _alpha(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be a number in (0, 1), got {text!r}")
    return value


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"must be an integer of at least 0, got {text!r}")
    return int(text)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("dpaudit", "privacy audits (auditor.assert_private); what a test gives itself goes first")
    group.addoption(
        "--dp-alpha",
        type=_alpha,
        metavar="A",
        help=f"probability of a false alarm, of each audit, or of the session with --dp-familywise (default {ALPHA})",
    )
    group.addoption(
        "--dp-level",
        choices=LEVELS,
        help="budget of each audit: 200 thousand, 2 million or 20 million draws, as of dpaudit run",
    )
    group.addoption("--dp-seed", type=_seed, metavar="N", help="seed of the audits (default 0)")
    group.addoption(
        "--dp-familywise",
        action="store_true",
        help="one alpha for the whole session: its audits have shares, of which those that the marker dpaudit declares "
        "are the largest",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and begin a session."""
    config.addinivalue_line("markers", HELP)
    familywise = config.getoption("--dp-familywise")
    if familywise and config.getoption("dist", "no") == "each":
        raise pytest.UsageError("--dp-familywise does not go with --dist each: every worker would have all of alpha")
    own = PytestSession(
        config.getoption("--dp-alpha"), config.getoption("--dp-level"), config.getoption("--dp-seed"), familywise
    )
    if config.rootpath != config.invocation_params.dir:
        own.folder = f"{os.path.relpath(config.rootpath, config.invocation_params.dir)}/"
    config.stash[_SESSION] = own
    config.pluginmanager.register(_Reports(own), "dpaudit_reports")
    _SESSIONS.append(own)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the session."""
    own = config.stash.get(_SESSION, None)
    if own in _SESSIONS:
        _SESSIONS.remove(own)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what the options are, if one is given."""
    own = config.stash[_SESSION]
    said = [f"{name} {value}" for name, value in (("level", own.level), ("seed", own.seed)) if value is not None]
    if own.alpha is not None or own.familywise:
        alpha = f"alpha {ALPHA if own.alpha is None else own.alpha:g}"
        said.insert(0, f"{alpha} for the whole session" if own.familywise else alpha)
    return f"dpaudit: {', '.join(said)}" if said else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Count what a family-wise alpha is split over."""
    own = session.config.stash[_SESSION]
    if own.familywise:
        own.family = DeclaredAudits(_count_declared(session.items), len(session.items))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin a test, or refuse its marker."""
    own = item.config.stash[_SESSION]
    own.phase, wrong = "setup", ""
    try:
        own.begin(item)
    except ValueError as error:
        wrong = str(error)
    if wrong:
        pytest.fail(wrong, pytrace=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Begin a test's own body, and see whether it made an audit."""
    own = item.config.stash[_SESSION]
    own.phase = "call"
    result = yield  # raises what the test raises
    declared = own.budgets.get("audits", 0)
    if declared and not own.audits and any(mark.name == "dpaudit" for mark in item.own_markers):
        own.properties.append((MISSING, declared))
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Begin what comes after a test's body."""
    item.config.stash[_SESSION].phase = "teardown"


class _Reports:
    """What goes with one session and not with a test, for which a hook is not told the session."""

    def __init__(self, own: PytestSession) -> None:
        self.own = own

    def pytest_runtest_logfinish(self) -> None:
        """End a test."""
        self.own.test = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test reported, wherever it ran; a later report of it says all of the earlier ones."""
        ours = [(name, value) for name, value in report.user_properties if _is_ours(name)]
        if ours:
            self.own.seen[report.nodeid] = ours
        elif report.when == "setup":  # it may be run again, without an audit
            self.own.seen.pop(report.nodeid, None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write what the audits of all tests found."""
    own = config.stash[_SESSION]
    forgotten, rows = own.forgotten(), own.rows()
    if forgotten:
        terminalreporter.write_sep("=", "declared, and not audited")
    for test, declared in forgotten:
        terminalreporter.write_line(
            f"{test}: its marker declares {declared}, and it passed without one: assert_private was not called"
        )
    if not rows:
        return
    terminalreporter.write_sep("=", "privacy audits")
    head = ("verdict", "claimed", "lower bound", "reached", "resolves", "ceiling", "draws", "alpha", "test")
    table = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[k]) for line in table) for k in range(len(head) - 1)]
    for line in table:
        terminalreporter.write_line("  ".join([*map(str.ljust, line, widths), line[-1]]))
    for row in rows:
        if row.get("undecided"):
            terminalreporter.write_line(f"{row['test']}: {row['undecided']}")
        if row.get("ignore"):
            terminalreporter.write_line(f"{row['test']}: not looked at: {row['ignore']}")
    terminalreporter.write_line(
        "Nothing found is no proof: 9 of 10 audits would find an event of probability 1 % that shows the level under "
        "resolves, of the kinds that are learned. Reached: the lower bound as a part of the claim."
    )
    if own.familywise:
        spent, alpha = math.fsum(row["alpha"] for row in rows), ALPHA if own.alpha is None else own.alpha
        terminalreporter.write_line(
            f"These shares add up to {spent:.4g} of alpha {alpha:g}, the probability of any false alarm in the session."
        )


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """One audit's line of the summary."""

    def level(name: str) -> str:
        value = row.get(name)  # "inf" where a level is infinite
        return "-" if value is None else f"{float(value):.4g}"

    lower, resolves, ceiling = (level(name) for name in ("lower_bound", "resolves", "ceiling"))
    part = row.get("reached")
    reached = "-" if part is None else f"{100 * float(part):.3g} %"
    return (
        row["verdict"],
        row["claimed"],
        lower,
        reached,
        resolves,
        ceiling,
        f"{row['draws']:,}",
        f"{row['alpha']:.3g}",
        row["test"],
    )
