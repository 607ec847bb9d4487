"""Which claims there are, how a run is split over them, and what its exit code says."""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.audits.defaults import DRAWS
from auditor.claims import BUDGETS, Claim, Draft, Entry, Erratum, Source, entry, exact, mutant, privacy, registry
from auditor.datasets import Pair, ReplaceOne
from auditor.errors import SpecificationError
from auditor.privacy.exact import FiniteLaw
from auditor.privacy.guarantees import ApproxDP, GaussianDP, PureDP
from auditor.results import AuditResult, Verdict
from auditor.runs import runner
from auditor.runs.audit_claim import audit_claim
from auditor.runs.manifest import build_manifest
from auditor.runs.run import ALPHA_SPLIT, Outcome, Run, exit_code, settings_of, split_alpha
from auditor.runs.runner import execute_run
from auditor.runs.selection import select_claims

Rng = np.random.Generator
PAIR = Pair(np.array([0]), np.array([1]), "one bit")
SAME = Pair(np.array([0]), np.array([0]), "nothing changes")


class Response:
    """Randomised response on the first bit, with its distribution."""

    def __init__(self, epsilon: float) -> None:
        self.keep = 1 / (1 + math.exp(-epsilon))

    def __call__(self, data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        return np.asarray(np.where(rng.random(n) < self.keep, data[0], 1 - data[0]))

    def law(self, data: Any) -> FiniteLaw:
        return FiniteLaw((int(data[0]), 1 - int(data[0])), np.array([self.keep, 1 - self.keep]))


class OnPaper(Response):
    """A stated distribution that nobody draws from."""

    def __call__(self, data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        raise AssertionError("drawn from")


def lawless(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
    return np.asarray(np.where(rng.random(n) < 0.7, data[0], 1 - data[0]))


def test_an_entry_that_yields_nothing_is_refused_by_name(tmp_path: Path) -> None:
    file = write(tmp_path / "a.py", declared("900/offender", "privacy(response, PureDP(1.0), PAIR)"))
    assert "900/offender: the function has to yield claims" in refusal(file)


def made(*drafts: Draft, id_: str = "900/made") -> list[Claim]:
    """Claims of an entry that yields the drafts."""
    source = Source("900", "section 1")
    return list(Entry(id_, "made here", source, lambda: drafts).claims())


HEADER = """
import math
from pathlib import Path
import numpy as np
from auditor import Pair, PureDP
from auditor.claims import Erratum, Source, as_corrected, as_printed, entry, exact, mutant, proof_step
from auditor.claims import privacy

PAIR = Pair(np.array([0]), np.array([1]), "one bit")

def response(data, n, rng):
    return np.where(rng.random(n) < 0.7, data[0], 1 - data[0])
"""


def declared(id_: str, *claims: str) -> str:
    """Source text of an entry, a line a claim."""
    body = claims or ("yield privacy(response, PureDP(1.0), PAIR)",)
    lines = "".join(f"    {line}\n" for line in body)
    name = id_.replace("/", "_").replace("-", "_")
    return f'\n@entry("{id_}", title="{id_}", source=Source("900", "1"))\ndef entry_{name}():\n{lines}'


def write(path: Path, *entries: str, header: str = HEADER) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header + "".join(entries), encoding="utf-8")
    return path


def ids(entries: Sequence[Entry] | Sequence[Claim]) -> list[str]:
    return [item.id for item in entries]


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what loading packages does to the interpreter."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


# -------------------------------------------------------------------------------- finding entries


def test_entries_of_a_file_come_in_the_order_of_its_lines(tmp_path: Path) -> None:
    file = write(tmp_path / "a.py", declared("900/z"), declared("900/b"), declared("900/m"))
    assert ids(registry.load_entries([str(file)])) == ["900/z", "900/b", "900/m"]


def test_entries_of_a_folder_come_in_the_order_of_file_names(tmp_path: Path) -> None:
    write(tmp_path / "zebra.py", declared("900/first"))
    write(tmp_path / "ant.py", declared("900/second"))
    write(tmp_path / "middle" / "x.py", declared("900/third"))
    write(tmp_path / "_private.py", declared("900/not_found"))
    assert ids(registry.load_entries([str(tmp_path)])) == ["900/second", "900/third", "900/first"]


def test_paths_come_in_the_order_given(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.py", declared("900/a")), write(tmp_path / "b.py", declared("900/b"))
    assert ids(registry.load_entries([str(b), str(a)])) == ["900/b", "900/a"]


@pytest.mark.usefixtures("imports")
def test_files_of_a_package_may_import_one_another(tmp_path: Path) -> None:
    package = tmp_path / "claims_of_a_package"
    write(package / "__init__.py", header="")
    write(package / "_shared.py", header="TITLE = 'shared'\n")
    write(package / "one.py", "\nfrom ._shared import TITLE\n", declared("900/one"))
    write(package / "two.py", "\nfrom .one import entry_900_one\n", declared("900/two"))
    # What `two` imports from `one` is an entry of `one` alone.
    assert ids(registry.load_entries([str(package)])) == ["900/one", "900/two"]
    assert ids(registry.load_entries([str(package / "two.py")])) == ["900/two"]


def test_claim_ids_are_entry_level_notion_and_case(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.py",
        declared(
            "900/rr",
            "yield privacy(response, PureDP(1.0), PAIR)",
            "yield privacy(response, PureDP(1.0), PAIR, case='four-bits.2+1')",
            "yield mutant('strong', response, PureDP(0.5), PAIR)",
        ),
    )
    assert ids(registry.load_claims([str(file)])) == [
        "900/rr/L1/pure_dp/reference",
        "900/rr/L1/pure_dp/four-bits.2+1",
        "900/rr/L1/pure_dp/strong",
    ]


def test_ids_tell_levels_and_notions_apart() -> None:
    drafts = [
        exact(Response(1.0), PureDP(1.0), PAIR),
        privacy(Response(1.0), PureDP(1.0), PAIR),
        privacy(Response(1.0), ApproxDP(1.0, 1e-5), PAIR),
        privacy(Response(1.0), GaussianDP(1.3), PAIR),
    ]
    assert ids(made(*drafts)) == [
        "900/made/L0/pure_dp/reference",
        "900/made/L1/pure_dp/reference",
        "900/made/L1/approximate_dp/reference",
        "900/made/L1/gaussian_dp/reference",
    ]


def test_declarations_are_loaded_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    line = f"Path({str(log)!r}).open('a').write('x')"
    file = write(tmp_path / "a.py", declared("900/a", line, "yield privacy(response, PureDP(1.0), PAIR)"))
    assert registry.load_claims([str(file)]) == registry.load_claims([str(file)])
    assert log.read_text() == "x"


# ----------------------------------------------------------------------------------- refusals


def refusal(path: Path, load: Callable[[list[str]], Any] = registry.load_claims) -> str:
    """The message with which a path is refused, on one line."""
    with pytest.raises(SpecificationError) as caught:
        load([str(path)])
    message = str(caught.value)
    assert message
    return message


def test_two_entries_with_one_id_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.py", declared("900/twice"))
    write(tmp_path / "b.py", declared("900/twice"))
    assert "'900/twice'" in refusal(tmp_path, registry.load_entries)


def test_two_claims_with_one_id_are_refused(tmp_path: Path) -> None:
    line = "yield privacy(response, PureDP(1.0), PAIR, case='same')"
    file = write(tmp_path / "a.py", declared("900/a", line, line))
    assert "'900/a/L1/pure_dp/same'" in refusal(file)


def test_a_file_that_is_named_twice_is_loaded_once(tmp_path: Path) -> None:
    file = write(tmp_path / "claims" / "a.py", declared("900/a"))
    write(tmp_path / "claims" / ".venv" / "broken.py", "1 / 0\n", header="")
    twice = (str(tmp_path / "claims"), str(file), str(tmp_path / "claims" / ".." / "claims"))
    assert ids(registry.load_entries(twice)) == ["900/a"]
    other = write(tmp_path / "b.py", declared("900/a"))
    with pytest.raises(SpecificationError, match=re.escape(f"in {str(file)!r} and {str(other)!r}")):
        registry.load_entries((str(file), str(other)))


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("import no_such_module_anywhere\n", "no_such_module_anywhere"),
        ("raise RuntimeError('while loading')\n", "while loading"),
        ("raise ModuleNotFoundError('no pandas', name='pandas.core')\n", "pip install 'dpaudit[data]' brings it"),
        ("import sys\nsys.exit(0)\n", "SystemExit"),
    ],
    ids=["syntax", "import", "exception", "extra", "exit"],
)
def test_a_broken_module_is_refused_by_name(tmp_path: Path, source: str, shown: str) -> None:
    file = write(tmp_path / "broken.py", source, header="")
    message = refusal(file, registry.load_entries)
    assert str(file) in message
    assert shown in message


@pytest.mark.usefixtures("imports")
def test_a_broken_module_of_a_package_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "package_that_breaks" / "__init__.py", header="")
    file = write(tmp_path / "package_that_breaks" / "module.py", "1 / 0\n", header="")
    message = refusal(file, registry.load_entries)
    assert str(file) in message
    assert "ZeroDivisionError" in message


@pytest.mark.parametrize("name", ["nowhere.py", "nowhere"])
def test_a_missing_path_is_refused_by_name(tmp_path: Path, name: str) -> None:
    assert str(tmp_path / name) in refusal(tmp_path / name)


def test_a_folder_without_python_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    assert str(tmp_path) in refusal(tmp_path)


def test_a_file_that_is_not_python_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("nothing", encoding="utf-8")
    assert str(file) in refusal(file)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("raise RuntimeError('no claims today')", "no claims today"),
        ("yield 3", "such as privacy(...), got 3"),
        ("yield privacy(response, PureDP(-1.0), PAIR)", "-1.0"),
        (
            "yield privacy(response, PureDP(1.0), PAIR, expected='maybe')",
            "inconclusive, got 'maybe'",
        ),
        ("yield privacy(response, PureDP(1.0), PAIR, expected='error')", "got 'error'"),
        ("yield privacy(response, PureDP(1.0), PAIR, expected='holds')", "got 'holds'"),
        ("yield privacy(response, 1.0, PAIR)", "such as PureDP(1.0), got 1.0"),
        ("yield privacy(response, PureDP(1.0), PAIR, draws=5)", "by level, such as {'smoke': 100_000}, got 5"),
    ],
    ids=["raises", "no draft", "bad guarantee", "bad expectation", "an error", "no audit", "a level", "draws"],
)
def test_an_entry_that_cannot_be_read_is_refused_by_name(tmp_path: Path, line: str, shown: str) -> None:
    file = write(tmp_path / "a.py", declared("900/fine"), declared("900/offender", line, "yield"))
    message = refusal(file)
    assert "900/offender" in message
    assert shown in message


@pytest.mark.parametrize("bad", ["noslash", "a/b/c", "a b/c", "/c", "a/", ""])
def test_an_entry_needs_a_document_and_a_name(bad: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        entry(bad, title="t", source=Source("d", "p"))
    assert repr(bad) in str(caught.value)


@pytest.mark.parametrize("bad", ["", "with space", "a/b", "semi;colon", "ünicode"])
@pytest.mark.parametrize("declare", [privacy, exact], ids=["privacy", "exact"])
def test_a_case_is_part_of_an_id(declare: Callable[..., Draft], bad: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        declare(Response(1.0), PureDP(1.0), PAIR, case=bad)
    assert repr(bad) in str(caught.value)


@pytest.mark.parametrize("bad", ["0.1", float("nan"), -1.0])
def test_an_exact_level_is_a_number_of_at_least_0(bad: Any) -> None:
    message = f"case reference: the exact level must be a number of at least 0, got {bad!r}"
    with pytest.raises(SpecificationError, match=re.escape(message)):
        privacy(Response(1.0), PureDP(1.0), PAIR, exact_level=bad)


@pytest.mark.parametrize("declare", [privacy, exact], ids=["privacy", "exact"])
def test_pairs_are_checked_when_they_are_declared(declare: Callable[..., Draft]) -> None:
    with pytest.raises(SpecificationError, match="nothing changes"):
        declare(Response(1.0), PureDP(1.0), [PAIR, SAME], relation=ReplaceOne())
    with pytest.raises(SpecificationError, match="no pair"):
        declare(Response(1.0), PureDP(1.0), [])


def test_a_mutants_pairs_are_checked_too() -> None:
    with pytest.raises(SpecificationError, match="nothing changes"):
        mutant("m", Response(2.0), PureDP(1.0), SAME, relation=ReplaceOne())


def test_nothing_is_exact_without_a_law() -> None:
    with pytest.raises(SpecificationError, match="lawless"):
        exact(lawless, PureDP(1.0), PAIR)


# ---------------------------------------------------------------------------- what a draft says


def test_the_exact_curve_comes_from_the_law() -> None:
    draft = privacy(Response(1.0), PureDP(1.0), [PAIR, SAME])
    assert [PureDP(1.0).exact_level(curve) for curve in draft.curves] == pytest.approx([1.0, 0.0])
    assert privacy(lawless, PureDP(1.0), PAIR).curves == ()


def test_a_mutant_is_expected_to_be_refuted() -> None:
    draft = mutant("strong", lawless, PureDP(0.5), PAIR, true_level=math.log(7 / 3))
    assert draft.is_mutant
    assert draft.case == "strong"
    assert draft.expected == Verdict.VIOLATION
    assert draft.exact_level == math.log(7 / 3)


def test_a_mutants_own_law_overrules_its_stated_level() -> None:
    draft = mutant("strong", Response(2.0), PureDP(1.0), PAIR, true_level=99.0)
    assert draft.exact_level is None
    assert PureDP(1.0).exact_level(draft.curves[0]) == pytest.approx(2.0)


# ----------------------------------------------------------------------------------- selection


CASES = ["count", "mean_of_visits", "half_scale", "Half_Range"]


def selected(expression: str | None) -> list[str]:
    claims = made(*(privacy(lawless, PureDP(1.0), PAIR, case=case) for case in CASES))
    return [claim.draft.case for claim in select_claims(claims, expression)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (None, CASES),
        ("count", ["count"]),
        ("COUNT", ["count"]),
        ("half", ["half_scale", "Half_Range"]),
        ("900/made", CASES),
        ("not half", ["count", "mean_of_visits"]),
        ("not not half", ["half_scale", "Half_Range"]),
        ("count or mean", ["count", "mean_of_visits"]),
        ("half and scale", ["half_scale"]),
        ("half and not scale", ["Half_Range"]),
        # "and" binds closer than "or", "not" closer than both.
        ("count or half and scale", ["count", "half_scale"]),
        ("(count or half) and scale", ["half_scale"]),
        ("(count or half)and(scale)", ["half_scale"]),
        ("not (count or scale)", ["mean_of_visits", "Half_Range"]),
        ("not count and not mean", ["half_scale", "Half_Range"]),
        ("count or count", ["count"]),
    ],
)
def test_a_selection_is_a_logical_expression(expression: str | None, expected: list[str]) -> None:
    assert selected(expression) == expected


@pytest.mark.parametrize("expression", ["", "  "])
def test_an_empty_selection_is_refused(expression: str) -> None:
    with pytest.raises(SpecificationError, match=f"the selection '{expression}' is empty"):
        selected(expression)


def test_a_whole_id_selects_one_claim_even_where_others_contain_it() -> None:
    claims = made(*(privacy(lawless, PureDP(1.0), PAIR, case=case) for case in ("scale", "scale_two")))
    assert ids(select_claims(claims, "900/made/L1/pure_dp/scale")) == ["900/made/L1/pure_dp/scale"]
    assert len(select_claims(claims, "pure_dp/scale")) == 2


@pytest.mark.parametrize("expression", ["(count", "count)", "and", "count and", "or count", "not", "()", "count mean"])
def test_a_selection_that_cannot_be_read_is_refused(expression: str) -> None:
    with pytest.raises(SpecificationError, match="cannot read the selection") as caught:
        selected(expression)
    assert repr(expression) in str(caught.value)


@pytest.mark.parametrize("expression", ["nothing_like_it", "count and mean", "not 900"])
def test_a_selection_without_a_match_is_refused(expression: str) -> None:
    with pytest.raises(SpecificationError, match="no claim matches") as caught:
        selected(expression)
    assert repr(expression) in str(caught.value)


# ----------------------------------------------------------------------------------- one run


def test_shares_add_up_to_alpha_over_the_claims_expected_to_hold() -> None:
    claims = made(
        exact(Response(1.0), PureDP(1.0), PAIR),
        privacy(lawless, PureDP(1.0), PAIR, case="a"),
        privacy(lawless, PureDP(1.0), PAIR, case="b"),
        mutant("broken", Response(2.0), PureDP(1.0), PAIR),
        mutant("benign", lawless, PureDP(1.0), PAIR, expected="consistent"),
    )
    split = split_alpha(claims, 0.03)
    holding = [c for c in claims if c.draft.expected == Verdict.CONSISTENT and c.draft.level != "L0"]
    assert len(holding) == 3
    assert math.fsum(split[claim.id] for claim in holding) == pytest.approx(0.03)
    assert set(split) == set(ids(claims))
    assert set(split.values()) == {0.01}


def test_claims_expected_to_be_inconclusive_share_alpha_as_they_may_hold() -> None:
    """Each had all of alpha, so that 20 true claims had a false alarm in two of five runs at alpha 0.05."""
    claims = made(*(privacy(lawless, PureDP(1.0), PAIR, case=case, expected="inconclusive") for case in ("a", "b")))
    assert set(split_alpha(claims, 0.03).values()) == {0.015}
    assert build_manifest(Run(), claims)["alpha_split"] == ALPHA_SPLIT


def test_a_run_of_mutants_alone_gives_each_the_whole_alpha() -> None:
    claims = made(*(mutant(case, Response(2.0), PureDP(1.0), PAIR) for case in ("a", "b")))
    assert set(split_alpha(claims, 0.03).values()) == {0.03}


@pytest.mark.parametrize("level", list(BUDGETS))
def test_a_level_sets_the_budget_and_when_to_stop(level: str) -> None:
    (claim,) = made(privacy(lawless, PureDP(1.0), PAIR, detect=1.5))
    settings = settings_of(claim, Run(level=level, seed=7, seconds=3.0), 0.002)
    assert (settings.draws, settings.stop) == BUDGETS[level]
    assert (settings.alpha, settings.seed, settings.seconds, settings.detect) == (0.002, 7, 3.0, 1.5)
    assert settings.chunks is None


def test_budgets_grow_with_the_level_and_only_smoke_stops_at_the_verdict() -> None:
    draws = [BUDGETS[level][0] for level in ("smoke", "standard", "full")]
    assert draws == sorted(set(draws))
    assert [BUDGETS[level][1] for level in ("smoke", "standard", "full")] == ["verdict", "budget", "budget"]


def test_a_claims_own_budget_replaces_the_levels_and_the_runs_replaces_both() -> None:
    (claim,) = made(privacy(lawless, PureDP(1.0), PAIR, draws={"smoke": 4_000}))
    assert settings_of(claim, Run(level="smoke"), 0.01).draws == 4_000
    assert settings_of(claim, Run(level="standard"), 0.01).draws == BUDGETS["standard"][0]
    assert settings_of(claim, Run(level="smoke", draws=500), 0.01).draws == 500


def test_chunks_to_replay_are_looked_up_by_id() -> None:
    one, two = made(*(privacy(lawless, PureDP(1.0), PAIR, case=case) for case in ("one", "two")))
    run = Run(chunks={one.id: 5})
    assert settings_of(one, run, 0.01).chunks == 5
    assert settings_of(two, run, 0.01).chunks is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"level": "huge"},
        {"jobs": 0},
        {"jobs": -2},
        {"backend": "threads"},
        {"alpha": 0.0},
        {"alpha": -0.5},
        {"alpha": 1.0},
        {"alpha": math.nan},
        {"draws": 3},
        {"draws": -100},
        {"seconds": 0.0},
        {"seconds": -1.0},
        {"seed": -1},
    ],
    ids=str,
)
def test_a_run_with_a_bad_option_is_refused_before_anything_is_drawn(wrong: dict[str, Any]) -> None:
    (value,) = wrong.values()
    with pytest.raises(SpecificationError) as caught:
        Run(**wrong)
    assert repr(value) in str(caught.value)


# ----------------------------------------------------------------------------------- L0


@pytest.mark.parametrize(
    ("epsilon", "verdict"), [(1.0, Verdict.CONSISTENT), (0.5, Verdict.CONSISTENT), (1.001, Verdict.VIOLATION)]
)
def test_the_stated_law_is_judged_without_draws(epsilon: float, verdict: Verdict) -> None:
    (claim,) = made(exact(OnPaper(epsilon), PureDP(1.0), [SAME, PAIR]))
    result = audit_claim(claim, Run(), 0.01)
    assert result.verdict == verdict
    assert result.level == "L0"
    assert result.draws == 0
    assert result.lower_bound is None
    assert result.exact == pytest.approx(epsilon)
    # The pair that decides is the one that is named.
    assert result.pair == PAIR.name
    assert result.ok == (verdict == Verdict.CONSISTENT)
    assert exit_code([result]) == (0 if result.ok else 1)


def test_a_statement_that_is_false_as_printed_is_expected_to_be_violated() -> None:
    (claim,) = made(exact(OnPaper(2.0), PureDP(1.0), PAIR, expected="violation"))
    result = audit_claim(claim, Run(), 0.01)
    assert result.verdict == Verdict.VIOLATION
    assert result.ok
    assert exit_code([result]) == 0


# ----------------------------------------------------------------------------------- failures


def run_of(file: Path) -> tuple[list[Claim], Outcome]:
    # alpha = 1e-6: a claim that holds is called violated, and stops early, with at most this probability.
    run = Run(paths=(str(file),), draws=2_000, alpha=1e-6)
    claims = registry.load_claims(run.paths)
    return claims, execute_run(run, claims)


FAILURES = {
    # The mechanism is at fault:
    "raises": ("def bad(data, n, rng):\n    raise RuntimeError('no entropy left')\n", "", "no entropy left"),
    "exits": ("def bad(data, n, rng):\n    raise SystemExit(0)\n", "", "SystemExit"),
    "one output too few": ("def bad(data, n, rng):\n    return [0] * (n - 1)\n", "", "outputs were asked for"),
    # We are, or a plug-in of ours:
    "a learner raises": (
        "bad = response\ndef learn(x, y):\n    raise KeyError('a plug-in breaks')\n",
        ", learners=learn",
        "a plug-in breaks",
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_an_error_and_the_other_claims_still_run(tmp_path: Path, failure: str) -> None:
    source, option, shown = FAILURES[failure]
    file = write(
        tmp_path / "a.py",
        source,
        declared(
            "900/a",
            "yield privacy(response, PureDP(1.0), PAIR, case='before')",
            f"yield privacy(bad, PureDP(1.0), PAIR, case='bad'{option})",
            "yield privacy(response, PureDP(1.0), PAIR, case='after')",
        ),
    )
    claims, outcome = run_of(file)
    before, bad, after = outcome.results
    assert ids(claims) == [before.id, bad.id, after.id]
    assert bad.verdict == Verdict.ERROR
    assert not bad.ok
    assert shown in bad.message
    assert (bad.entry, bad.level, bad.claimed, bad.expected) == ("900/a", "L1", before.claimed, Verdict.CONSISTENT)
    for fine in (before, after):
        assert fine.verdict != Verdict.ERROR
        assert fine.draws == 2_000
    assert not outcome.interrupted
    assert exit_code(outcome.results) == 2


def test_progress_hears_of_every_claim_and_interruption_keeps_what_is_finished(tmp_path: Path) -> None:
    lines = [f"yield privacy(response, PureDP(1.0), PAIR, case='{case}')" for case in "abc"]
    run = Run(paths=(str(write(tmp_path / "a.py", declared("900/a", *lines))),), draws=2_000)
    claims = registry.load_claims(run.paths)
    heard: list[str] = []

    def listen(result: AuditResult, took: float) -> None:
        heard.append(result.id)
        assert took >= 0

    assert not execute_run(run, claims, listen).interrupted
    assert heard == ids(claims)

    def press(result: AuditResult, took: float) -> None:
        if result.id == claims[1].id:
            raise KeyboardInterrupt

    outcome = execute_run(run, claims, press)
    assert outcome.interrupted
    assert [result.id for result in outcome.results] == ids(claims[:2])
    content = runner.results_document(run, claims, outcome)
    assert content["manifest"]["interrupted"] is True
    assert len(content["claims"]) == 2
    assert "documents" not in content, "no docstring says what it is"


def test_the_title_of_a_document_is_that_of_its_module_or_package() -> None:
    by_id = {entry.id: entry for entry in registry.load_entries(["experiments/document_001_lecture_dp/definitions.py"])}
    claims = list(by_id["001/dp_definition_checks"].claims())
    assert runner.collect_documents(claims) == {"001": "Machine learning, lecture 12: differential privacy"}


def test_the_manifest_says_what_results_depend_on_and_no_more() -> None:
    claims = made(privacy(Response(1.0), PureDP(1.0), PAIR), mutant("m", Response(2.0), PureDP(1.0), PAIR))
    base = build_manifest(Run(), claims)
    assert base == build_manifest(Run(jobs=2), claims)
    assert base["claims_selected"] == 2
    stronger = [replace(c, draft=replace(c.draft, guarantee=PureDP(0.9))) for c in claims]
    for other in (
        build_manifest(Run(), stronger),
        build_manifest(Run(), claims[:1]),
        build_manifest(Run(draws=DRAWS + 1), claims),
    ):
        assert other["specification_hash"] != base["specification_hash"]
    other_source = [replace(claims[0], draft=replace(claims[0].draft, mechanism=lawless))]
    assert build_manifest(Run(), other_source)["source_hash"] != base["source_hash"]


ERRATUM = 'errata=[Erratum("J1", "false", "as stated", "what fails", "what is right")]'


def test_errata_name_the_claims_that_show_them(tmp_path: Path) -> None:
    wrong = 'yield as_printed("J1", privacy(response, PureDP(0.5), PAIR, case="wrong", expected="violation"))'
    right = 'yield as_corrected("J1", privacy(response, PureDP(1.0), PAIR, case="right"))'
    text = declared("900/a", wrong, right).replace('"1")', f'"1"), {ERRATUM}')
    run = Run(paths=(str(write(tmp_path / "a.py", text, declared("900/b"))),))
    claims = registry.load_claims(run.paths)
    assert runner.collect_errata(claims) == [
        {
            "id": "J1",
            "entry": "900/a",
            "class": "false",
            "source": {"document": "900", "place": "1"},
            "summary": "as stated",
            "fails": "what fails",
            "correction": "what is right",
            "claims": {"900/a/L1/pure_dp/wrong": "as printed", "900/a/L1/pure_dp/right": "as corrected"},
        }
    ]
    assert [list(e["claims"]) for e in runner.collect_errata(claims[1:])] == [["900/a/L1/pure_dp/right"]]
    assert runner.collect_errata(claims[2:]) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('yield as_printed("J9", privacy(response, PureDP(0.5), PAIR, expected="violation"))', "'J9', the entry lists"),
        ('yield as_printed("J1", privacy(response, PureDP(0.5), PAIR))', "must expect violation or deviation"),
        ('yield proof_step("J1", privacy(response, PureDP(0.5), PAIR))', "must expect violation or deviation"),
        (
            'yield as_corrected("J1", privacy(response, PureDP(0.5), PAIR, expected="violation"))',
            "must expect consistent, not violation",
        ),
        ("yield privacy(response, PureDP(1.0), PAIR)", "nothing that is expected to be refuted shows the erratum 'J1'"),
    ],
)
def test_nothing_is_accused_that_no_claim_shows(tmp_path: Path, line: str, message: str) -> None:
    text = declared("900/a", line).replace('"1")', f'"1"), {ERRATUM}')
    with pytest.raises(SpecificationError, match=re.escape(message)):
        registry.load_claims([str(write(tmp_path / "a.py", text))])


def test_an_erratum_is_false_or_one_of_a_proof() -> None:
    with pytest.raises(SpecificationError, match="'informal'"):
        Erratum("J1", "informal", "as stated")  # type: ignore[arg-type]


def test_what_is_wrong_in_a_claim_names_its_entry() -> None:
    def drafts() -> Iterator[Draft]:
        yield privacy(lawless, PureDP(1.0), PAIR, case="good")
        yield privacy(lawless, PureDP(1.0), PAIR, case="not good")

    wrong = Entry("900/made", "made here", Source("900", "section 1"), drafts)
    with pytest.raises(SpecificationError, match=r"^entry 900/made: a case must be of .*, got 'not good'$"):
        list(wrong.claims())


# ----------------------------------------------------------------------------------- exit codes


def judged(verdict: str, expected: str, sandwich: str = "holds") -> AuditResult:
    return AuditResult(
        id=f"900/x/L1/pure_dp/{verdict}_for_{expected}",
        entry="900/x",
        source={"document": "900", "place": "1"},
        level="L1",
        notion="pure DP",
        claimed="ε = 1",
        claimed_level=1.0,
        parameters={},
        alpha=0.01,
        verdict=Verdict(verdict),
        expected=Verdict(expected),
        sandwich=sandwich,
    )


FINE = [judged(verdict, verdict) for verdict in Verdict]
#: Every way to differ from what was expected, with the exit code that it has by itself.
SURPRISES = [
    (judged(verdict, expected), 2 if verdict == "error" else 3 if verdict == "inconclusive" else 1)
    for verdict, expected in itertools.permutations(Verdict, 2)
] + [(judged(verdict, verdict, "failed: lower bound above exact"), 2) for verdict in ("consistent", "violation")]
#: What wins over what.
RANK = {0: 0, 3: 1, 1: 2, 2: 3}


def test_all_as_expected_is_zero_whatever_was_expected() -> None:
    assert exit_code(FINE) == 0
    assert exit_code([]) == 0
    assert exit_code([judged("consistent", "consistent", "loose: lower bound is far below")]) == 0


@pytest.mark.parametrize(("result", "code"), SURPRISES, ids=lambda value: getattr(value, "id", str(value)))
def test_each_surprise_has_its_code(result: AuditResult, code: int) -> None:
    assert exit_code([result]) == code
    assert exit_code([*FINE, result, *FINE]) == code


def test_the_worst_surprise_wins_in_any_order() -> None:
    for (first, a), (second, b) in itertools.permutations(SURPRISES, 2):
        assert exit_code([first, FINE[0], second]) == max(a, b, key=RANK.__getitem__), (first.id, second.id)


def test_an_interruption_wins_over_everything() -> None:
    for result, _ in SURPRISES:
        assert exit_code([result], interrupted=True) == 130
    assert exit_code([], interrupted=True) == 130
    assert exit_code(FINE, interrupted=True) == 130
