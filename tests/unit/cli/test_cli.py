"""The command line: what it prints, what it writes, and above all its exit codes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from auditor import PureDP, report
from auditor.cli.main import cli, main
from auditor.evidence.power import NARROW, draws_that_count, find_resolution
from tests.commandline import (
    FINE,
    HEADER,
    HELD,
    QUICK,
    REPORTS,
    Command,
    complaints,
    declare,
    interrupt,
    process,
    read,
    refused,
    start,
    until,
)

#: Bodies of the entry and the exit code of their runs, with alpha = 1e-6: a code differs with at most that probability.
BODIES = {
    "all as expected": (FINE, 0),
    "an unexpected violation": (HELD + "    yield privacy(Response(4.0), PureDP(1.0), PAIR, case='worse')\n", 1),
    "a mutant that is none": (HELD + "    yield mutant('benign', Response(1.0), PureDP(1.0), PAIR)\n", 1),
    "a crash": (HELD + "    yield privacy(crashing, PureDP(1.0), PAIR, case='crash')\n", 2),
    "too little power": (HELD + "    yield privacy(Response(1.0), PureDP(1.0), PAIR, case='weak', detect=1.001)\n", 3),
    "a violation and a crash": (
        "    yield privacy(Response(4.0), PureDP(1.0), PAIR)\n"
        "    yield privacy(crashing, PureDP(1.0), PAIR, case='crash')\n",
        2,
    ),
    "a violation and too little power": (
        "    yield privacy(Response(4.0), PureDP(1.0), PAIR)\n"
        "    yield privacy(Response(1.0), PureDP(1.0), PAIR, case='weak', detect=1.001)\n",
        1,
    ),
}


# ------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_every_command_explains_itself(dpaudit: Command, command: str) -> None:
    said = dpaudit(command, "--help")
    assert said.code == 0
    assert said.out.startswith("Usage:")
    assert said.err == ""
    assert "Options:" in said.out
    # It ends with an example that the command line can read.
    *_, head, example = said.out.splitlines()
    assert head.strip() == "Example:"
    program, name, *words = shlex.split(example.partition(" > ")[0])
    assert (program, name) == ("dpaudit", command)
    with cli.make_context("dpaudit", [name, *words], resilient_parsing=False) as context:
        inner = cli.commands[name].make_context(name, words, parent=context)
    assert inner.args == []


def test_the_commands_are_those_of_the_design(dpaudit: Command) -> None:
    assert set(cli.commands) == {
        "run",
        "attack",
        "check",
        "corpus",
        "list",
        "show",
        "report",
        "reproduce",
        "diff",
        "calibrate",
        "baseline",
        "replay",
        "helper",
        "ledger",
        "scores",
        "prove",
        "trace",
        "evidence",
    }
    said = dpaudit("--help")
    assert said.code == 0
    for words in ("130 interrupted", *cli.commands):
        assert words in said.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(dpaudit: Command, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("_DPAUDIT_COMPLETE", f"{shell}_source")
    script = dpaudit()
    assert script.code == 0, script
    assert f"_DPAUDIT_COMPLETE={shell}_complete" in script.out
    if shell == "bash":  # the others need not be installed
        registered = subprocess.run(
            ["bash", "-c", f"{script.out}\ncomplete -p dpaudit"], capture_output=True, text=True, check=True
        )
        assert registered.stdout.endswith("dpaudit\n")
    monkeypatch.setenv("_DPAUDIT_COMPLETE", f"{shell}_complete")
    for typed, word, wanted in (("dpaudit att", 1, "attack"), ("dpaudit run --base", 2, "--baseline")):
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", typed.split()[-1] if shell == "fish" else str(word))
        said = dpaudit()
        assert said.code == 0, said
        assert wanted in re.split(r"[,\t\n]", said.out)
        assert "calibrate" not in said.out


def test_a_shell_without_completion_is_refused(dpaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_DPAUDIT_COMPLETE", "tcsh_source")
    refused(dpaudit(), "bash_source", "'tcsh_source'")


def test_python_dash_m_is_the_same_command_line() -> None:
    said = process("--help")
    assert said.code == 0, said
    assert "Exit codes" in said.out
    assert process("--version").out.startswith("dpaudit, version ")


# ------------------------------------------------------------------------------------- run


@pytest.mark.parametrize("body", BODIES)
def test_the_exit_code_of_a_run_says_how_it_went(dpaudit: Command, tmp_path: Path, body: str) -> None:
    text, code = BODIES[body]
    said = dpaudit("run", declare(tmp_path, text), *QUICK, "--out", tmp_path / "out")
    assert said.code == code, said
    assert "Traceback" not in said.out + said.err
    for name in REPORTS:
        assert (tmp_path / "out" / name).is_file()
    assert list((tmp_path / "out").glob("*.part")) == []
    assert all(claim["ok"] for claim in read(tmp_path / "out" / "results.json")["claims"]) == (code == 0)


@pytest.mark.parametrize("body", ["all as expected", "an unexpected violation", "a crash", "too little power"])
def test_the_process_ends_with_the_same_code(tmp_path: Path, body: str) -> None:
    text, code = BODIES[body]
    said = process("run", declare(tmp_path, text), *QUICK)
    assert said.code == code, said
    assert "Traceback" not in said.out + said.err


def test_the_table_goes_to_standard_output_and_progress_to_standard_error(dpaudit: Command, claims: Path) -> None:
    said = dpaudit("run", claims, *QUICK)
    rows = [line for line in said.out.splitlines() if "900/response" in line]
    assert len(rows) == 3
    assert "3 claims: 3 as expected, 0 unexpected" in said.out
    assert "auditing" not in said.out
    assert "[3/3]" in said.err
    assert "as expected" not in said.err


def test_surprises_are_marked(dpaudit: Command, tmp_path: Path) -> None:
    said = dpaudit("run", declare(tmp_path, BODIES["an unexpected violation"][0]), *QUICK)
    (marked,) = [line for line in said.out.splitlines() if line.startswith("!")]
    assert "worse" in marked
    assert sum("UNEXPECTED" in line for line in said.err.splitlines()) == 1


def test_too_few_draws_for_an_exponent_are_no_failure_of_ours(dpaudit: Command, tmp_path: Path) -> None:
    body = "    from auditor.claims import scaling\n    from auditor.audits.accuracy import Quantile\n"
    body += "    built = lambda k: None\n"
    body += "    yield scaling(built, parameter='k', at=range(1, 41), exponent=1, measure=Quantile())\n"
    said = dpaudit("run", declare(tmp_path, body), "--draws", 32, "--jobs", 1, "--out", tmp_path / "out")
    assert said.code == 2, said
    assert (
        "Could not be audited: 32 draws are less than one at each of 40 values. To do: mend what failed; run it again."
        in said.out
    )


def many(folder: Path, worse: bool) -> Path:
    """Two entries, one of many quick claims."""
    quick = "    for k in range(41):\n        yield exact(Response(1.0), PureDP(1.0), PAIR, case=f'c{k}')\n"
    second = '\n\n@entry("900/other", title="Another", source=Source("900", "2"))\ndef other():\n'
    body = (
        "    yield exact(Response(2.0), PureDP(1.0), PAIR, case='worse')\n"
        if worse
        else HELD.replace("privacy(", "exact(")
    )
    return declare(folder, quick + second + body)


def test_a_long_run_is_summed_up_by_entry_unless_the_table_is_asked_for(dpaudit: Command, tmp_path: Path) -> None:
    claims = many(tmp_path, worse=False)
    said = dpaudit("run", claims, *QUICK)
    assert said.code == 0, said
    assert [" ".join(line.split()) for line in said.out.splitlines()] == [
        "entry claims consistent unexpected",
        "900/response 41 41 -",
        "900/other 1 1 -",
        "",
        "42 claims: 42 as expected, 0 unexpected; --table lists each",
    ]
    # Without a terminal there is no line for each claim of a long run: the first says how many, the last that all are.
    assert len(said.err.splitlines()) < 10
    assert "[42/42]" in said.err
    table = dpaudit("run", claims, *QUICK, "--table")
    assert sum("900/response" in line for line in table.out.splitlines()) == 41
    assert "42 claims: 42 as expected, 0 unexpected\n" in table.out


def test_a_long_run_lists_what_is_unexpected(dpaudit: Command, tmp_path: Path) -> None:
    said = dpaudit("run", many(tmp_path, worse=True), *QUICK)
    assert said.code == 1, said
    marked = [line.split() for line in said.out.splitlines() if line.startswith("!")]
    assert [words[1] for words in marked] == ["900/other", "900/other/L0/pure_dp/worse"]
    assert said.err.count("UNEXPECTED") == 1
    assert said.out.endswith("42 claims: 41 as expected, 1 unexpected (marked !); --table lists each\n")


def test_results_follow_the_published_schema(results: Path) -> None:
    content = read(results)
    jsonschema.validate(content, report.read_schema())
    assert [claim["id"] for claim in content["claims"]] == [
        "900/response/L0/pure_dp/reference",
        "900/response/L1/pure_dp/reference",
        "900/response/L1/pure_dp/strong",
    ]
    about = content["manifest"]
    assert (about["alpha"], about["seed"], about["draws"], about["level"]) == (1e-6, 0, 26_000, "smoke")
    assert "interrupted" not in about
    # What differs between two runs with the same results stands elsewhere.
    text = results.read_text(encoding="utf-8")
    for key in read(results.parent / "run.json"):
        assert key in ("schema", "seconds") or f'"{key}"' not in text


def test_a_run_stops_at_its_budget(results: Path) -> None:
    exact, held, strong = read(results)["claims"]
    assert exact["draws"] == 0
    assert held["draws"] == 26_000
    assert strong["draws"] < 26_000


def test_a_selection_is_run_alone(dpaudit: Command, claims: Path) -> None:
    said = dpaudit("run", claims, *QUICK, "-k", "L1 and not strong")
    assert said.code == 0, said
    assert "1 claim: 1 as expected" in said.out


def test_a_wanted_level_replaces_that_of_every_claim_about_outputs(dpaudit: Command, tmp_path: Path) -> None:
    # No budget resolves a level just above the claimed one.
    body = FINE + "    yield privacy(Response(1.0), PureDP(1.0), PAIR, case='own', detect=1.5)\n"
    claims, out = declare(tmp_path, body), tmp_path / "out"
    said = dpaudit("run", claims, *QUICK, "--detect", 1.0001, "--out", out)
    assert said.code == 3, said
    content = read(out / "results.json")
    assert content["manifest"]["detect"] == 1.0001
    assert [claim["detect"] for claim in content["claims"]] == [None, 1.0001, 1.0001, 1.0001]
    verdicts = [claim["verdict"] for claim in content["claims"]]
    assert verdicts == ["consistent", "inconclusive", "violation", "inconclusive"]
    for claim in content["claims"]:
        assert "--detect 1.0001" in claim["replay"]
    held = content["claims"][1]
    said = dpaudit(*shlex.split(held["replay"])[1:], "--jobs", 1, "--out", tmp_path / "again")
    assert said.code == 3, said
    assert read(tmp_path / "again" / "results.json")["claims"] == [held]
    assert dpaudit("reproduce", out / "results.json", "--jobs", 1).code == 0
    assert dpaudit("run", claims, *QUICK, "--detect", 30).code == 0


def test_the_method_of_the_literature_is_recorded_and_replayed(dpaudit: Command, claims: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = dpaudit("run", claims, *QUICK, "--method", "clopper-pearson", "--detect", 3, "--out", out)
    assert said.code == 0, said
    content = read(out / "results.json")
    assert content["manifest"]["method"] == "clopper-pearson"
    held, strong = content["claims"][1:]
    assert held["draws"] + strong["draws"] > 26_000, "of a fixed size: it does not stop at a verdict"
    said = dpaudit(*shlex.split(held["replay"])[1:], "--jobs", 1, "--out", tmp_path / "again")
    assert said.code == 0, said
    assert read(tmp_path / "again" / "results.json")["claims"] == [held]
    assert dpaudit("reproduce", out / "results.json", "--jobs", 1).code == 0


def test_claims_import_what_is_beside_them(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("EPSILON = 1.0\n", encoding="utf-8")
    body = HELD.replace("PureDP(1.0)", "PureDP(EPSILON)")
    declare(tmp_path, "    from beside import EPSILON\n" + body)
    command = [str(Path(sys.executable).with_name("dpaudit")), "run", "claims.py", *map(str, QUICK)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_violation_is_replayed_by_its_own_line(dpaudit: Command, results: Path) -> None:
    claim = read(results)["claims"][2]
    program, *arguments = shlex.split(claim["counterexample"]["replay"])
    assert program == "dpaudit"
    out = results.parent / "again"
    said = dpaudit(*arguments, "--jobs", 1, "--out", out)
    assert said.code == 0, said
    (again,) = read(out / "results.json")["claims"]
    assert again["id"] == claim["id"]
    assert again["counterexample"] == claim["counterexample"]
    assert again["record"] == claim["record"]


#: What cannot be run, and what the refusal shows.
BAD_RUNS: dict[str, tuple[Sequence[object], Sequence[object]]] = {
    "no match": (("-k", "nothing_like_it"), ("'nothing_like_it'",)),
    "unreadable selection": (("-k", "(strong"), ("'(strong'",)),
    "unknown option": (("--frobnicate", 3), ("--frobnicate",)),
    "unknown level": (("--level", "enormous"), ("'enormous'",)),
    "unknown back end": (("--backend", "threads"), ("'threads'",)),
    "negative alpha": (("--alpha", -0.5), ("-0.5",)),
    "alpha of one": (("--alpha", 1), ("1.0",)),
    "alpha not a number": (("--alpha", "nan"), ("nan",)),
    "alpha not read": (("--alpha", "small"), ("'small'",)),
    "negative draws": (("--draws", -100), ("-100",)),
    "too few draws": (("--draws", 10), ("10",)),
    "draws not whole": (("--draws", 1.5), ("'1.5'",)),
    "negative seed": (("--seed", -7), ("-7",)),
    "negative jobs": (("--jobs", -2), ("-2",)),
    "no jobs": (("--jobs", 0), ("0",)),
    "negative seconds": (("--max-seconds", -1), ("-1.0",)),
    "endless seconds": (("--max-seconds", "inf"), ("inf",)),
    "negative detectable level": (("--detect", -1), ("-1.0",)),
    "no detectable level": (("--detect", 0), ("0.0",)),
    "infinite detectable level": (("--detect", "inf"), ("inf",)),
    "detectable level not a number": (("--detect", "nan"), ("nan",)),
    "empty folder": (("--out", ""), ("''",)),
    "empty path": (("",), ("''",)),
    "empty baseline": (("--baseline", ""), ("''",)),
    "unknown method": (("--method", "bayes"), ("'bayes'",)),
    "missing baseline": (("--baseline", "nowhere.toml"), ("nowhere.toml",)),
    "close to an id": (("-k", "stronk"), ("'stronk'", "did you mean 900/response/L1/pure_dp/strong?")),
}


@pytest.mark.parametrize("bad", BAD_RUNS)
def test_a_run_that_cannot_be_is_refused_in_one_line(dpaudit: Command, claims: Path, bad: str) -> None:
    arguments, shown = BAD_RUNS[bad]
    refused(dpaudit("run", claims, *arguments), *shown)


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("--epsilon", "No such option '--epsilon'. A claim is one option: --claim epsilon=..."),
        ("--relaton", "Did you mean '--relation'?"),
    ],
)
def test_a_parameter_of_a_claim_given_as_an_option_names_the_option_of_claims(
    dpaudit: Command, option: str, shown: str
) -> None:
    said = dpaudit("attack", "counts.py:noisy_count", option, "1")
    assert said.code == 2
    assert shown in said.err


@pytest.mark.parametrize("bad", ["missing.py", "missing_folder"])
def test_a_missing_path_is_refused(dpaudit: Command, tmp_path: Path, bad: str) -> None:
    refused(dpaudit("run", tmp_path / bad), tmp_path / bad)


def test_a_file_that_declares_nothing_is_refused(dpaudit: Command, tmp_path: Path) -> None:
    # "2 an error, a bad specification, nothing selected": a green run of no claims would hide a wrong path.
    file = tmp_path / "nothing.py"
    file.write_text("x = 1\n", encoding="utf-8")
    refused(dpaudit("run", file), file)


@pytest.mark.parametrize("code", [0, 1])
def test_a_file_that_exits_is_refused(dpaudit: Command, tmp_path: Path, code: int) -> None:
    # Else `sys.exit(0)` in a file would be a green run, and `sys.exit(1)` a finding.
    refused(dpaudit("run", declare(tmp_path, HELD + f"\nsys.exit({code})\n")), tmp_path / "claims.py", "SystemExit")


def test_a_claim_with_a_bad_setting_is_refused_before_anything_is_audited(dpaudit: Command, tmp_path: Path) -> None:
    body = HELD + "    yield privacy(Response(1.0), PureDP(1.0), PAIR, case='bad', detect=-3.0)\n"
    refused(dpaudit("run", declare(tmp_path, body), *QUICK), "-3.0")


def test_a_target_that_exits_does_not_end_the_run(dpaudit: Command, tmp_path: Path) -> None:
    quits = "    yield privacy(lambda data, n, rng: sys.exit(0), PureDP(1.0), PAIR, case='quits')\n"
    said = dpaudit("run", declare(tmp_path, quits + HELD), *QUICK, "--out", tmp_path / "out")
    assert said.code == 2, said
    verdicts = [claim["verdict"] for claim in read(tmp_path / "out" / "results.json")["claims"]]
    assert verdicts == ["error", "consistent"]


def test_a_file_for_out_is_refused(dpaudit: Command, claims: Path) -> None:
    refused(dpaudit("run", claims, *QUICK, "--out", claims), claims)


@pytest.mark.parametrize("command", ["run", "attack"])
def test_a_folder_that_cannot_be_made_is_refused(dpaudit: Command, claims: Path, command: str) -> None:
    out = claims / "below_a_file"
    named = (claims,) if command == "run" else (f"{claims}:lawless", *CLAIM, *BIT)
    said = dpaudit(command, *named, "--draws", 400, "--out", out, "--jobs", 1)
    assert said.code == 2, said
    (line,) = complaints(said)
    assert str(out) in line
    assert "dpaudit failed" not in line


# --------------------------------------------------------------------------------- list, show


def test_list_as_json_is_an_array_with_an_object_an_entry(dpaudit: Command, claims: Path) -> None:
    said = dpaudit("list", claims, "--json")
    assert said.code == 0, said
    assert json.loads(said.out) == [
        {
            "entry": "900/response",
            "name": "Randomised response",
            "source": {"document": "900", "place": "section 1"},
            "mechanism": "Response",
            "claims": ["900/response/L0/pure_dp/reference", "900/response/L1/pure_dp/reference"],
            "mutants": ["900/response/L1/pure_dp/strong"],
            "exact": True,
            "accuracy": False,
        }
    ]


def test_list_as_json_says_where_nothing_is_exact(dpaudit: Command, tmp_path: Path) -> None:
    body = "    yield privacy(lawless, PureDP(1.0), PAIR)\n"
    (item,) = json.loads(dpaudit("list", declare(tmp_path, body), "--json").out)
    assert item["exact"] is False
    assert item["mutants"] == []
    assert item["mechanism"] == "lawless"


def test_list_for_people_has_every_claim(dpaudit: Command, claims: Path) -> None:
    said = dpaudit("list", claims)
    assert said.code == 0, said
    for text in ("900/response  Randomised response", "L1/pure_dp/strong", "expected violation", "3 claims"):
        assert text in said.out


def test_list_selects_as_run_does(dpaudit: Command, claims: Path) -> None:
    said = dpaudit("list", claims, "-k", "L1 and not strong")
    assert said.code == 0, said
    assert [line.split()[0] for line in said.out.splitlines()] == [
        "900/response",
        "900/response/L1/pure_dp/reference",
        "1",
    ]
    (item,) = json.loads(dpaudit("list", claims, "-k", "strong", "--json").out)
    assert (item["claims"], item["mutants"]) == ([], ["900/response/L1/pure_dp/strong"])
    refused(dpaudit("list", claims, "-k", "stronk"), "'stronk'", "did you mean 900/response/L1/pure_dp/strong?")


def test_show_one_claim(dpaudit: Command, claims: Path) -> None:
    said = dpaudit("show", "900/response/L1/pure_dp/strong", claims)
    assert said.code == 0, said
    for text in ("900, section 1", "ε = 1", "expected violation", "Response", "one bit: [0] against [1]", "3\n"):
        assert text in said.out
    assert "reference" not in said.out


def test_show_an_entry(dpaudit: Command, claims: Path) -> None:
    assert dpaudit("show", "900/response", claims).out.count("  claimed  ") == 3
    spaced = claims.rename(claims.with_name("my claims.py"))
    assert f"dpaudit run {shlex.quote(str(spaced))} -k" in dpaudit("show", "900/response", spaced).out


def test_show_says_what_an_audit_would_take(dpaudit: Command, claims: Path) -> None:
    said = dpaudit("show", "900/response/L1/pure_dp/reference", claims)
    for text in (
        "alpha       0.01, its share in a run of all 3 claims",
        "smoke 200,000 draws, standard 2,000,000 draws, full 20,000,000 draws",
        "ε = 2 is wanted",
        f"dpaudit run {claims} -k 900/response/L1/pure_dp/reference",
    ):
        assert text in said.out
    (level,) = re.findall(r"for events of probability 0.01; ([0-9.]+) at smoke", said.out)
    counted = draws_that_count(100_000, NARROW, 20_000)
    assert float(level) == pytest.approx(find_resolution(0.01, counted, PureDP(1.0), 0.01), rel=1e-3)
    assert "no draws" in dpaudit("show", "900/response/L0", claims).out


def test_show_takes_the_beginning_of_an_id(dpaudit: Command, claims: Path) -> None:
    assert dpaudit("show", "900/response/L1", claims).out.count("  claimed  ") == 2
    assert dpaudit("show", "900/response/", claims).out.count("  claimed  ") == 3


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("900/unheard_of", None),
        ("900/response/L1/pure_dp/strng", "900/response/L1/pure_dp/strong"),
        ("respnse", "900/response"),
        ("Strong", "900/response/L1/pure_dp/strong"),
    ],
)
def test_an_unknown_id_is_refused_with_what_is_close(
    dpaudit: Command, claims: Path, wanted: str, meant: str | None
) -> None:
    said = dpaudit("show", wanted, claims)
    refused(said, repr(wanted))
    assert (f"did you mean {meant}" in said.err) if meant else ("did you mean" not in said.err)


@pytest.mark.parametrize("command", [("run",), ("list",), ("show", "x")])
def test_a_folder_without_experiments_is_told_from_a_mistake(
    dpaudit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(dpaudit(*command), str(tmp_path), "name the files or folders")


def test_a_closed_pipe_is_no_finding(claims: Path) -> None:
    # As in `dpaudit list | head`, with pipefail: exit code 1 would say that a claim was refuted.
    with start("list", claims, "--json") as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.wait(timeout=60) != 1


# ------------------------------------------------------------------- report, reproduce, diff


def test_reports_are_rendered_again_to_the_byte(dpaudit: Command, results: Path, tmp_path: Path) -> None:
    rendered = [name for name in REPORTS if not name.endswith(".json")]
    before = {name: (results.parent / name).read_bytes() for name in rendered}
    said = dpaudit("report", results, "--out", tmp_path / "elsewhere")
    assert said.code == 0, said
    assert {name: (tmp_path / "elsewhere" / name).read_bytes() for name in rendered} == before
    for name in rendered:
        (results.parent / name).unlink()
    assert dpaudit("report", results).code == 0
    assert {name: (results.parent / name).read_bytes() for name in rendered} == before


@pytest.mark.parametrize("command", ["report", "reproduce", "baseline", "diff", "replay"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("missing.json", None),
        ("list.json", "[1, 2]"),
        ("broken.json", '{"schema": '),
        ("other.json", '{"schema": "dpaudit-results/99", "claims": []}'),
        ("no_claims.json", '{"schema": "dpaudit-results/1", "manifest": {}}'),
        ("no_manifest.json", '{"schema": "dpaudit-results/1", "claims": []}'),
        ("no_id.json", '{"schema": "dpaudit-results/1", "manifest": {}, "claims": [{}]}'),
        (
            "no_number.json",
            '{"schema": "dpaudit-results/2", "manifest": {}, "claims": [{"id": "a/b", "verdict": "consistent", '
            '"expected": "consistent", "ok": true, "claimed": "", "lower_bound": "x"}]}',
        ),
        (
            "no_counterexample.json",
            '{"schema": "dpaudit-results/2", "manifest": {}, "claims": [{"id": "a/b", "verdict": "violation", '
            '"expected": "violation", "ok": true, "claimed": "", "lower_bound": 2, "counterexample": [1]}]}',
        ),
    ],
)
def test_what_is_not_a_results_file_is_refused(
    dpaudit: Command, tmp_path: Path, command: str, name: str, content: str | None
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_text(content, encoding="utf-8")
    refused(dpaudit(command, *([file, file] if command == "diff" else [file])), file)


def test_a_report_that_cannot_be_written_is_refused(dpaudit: Command, results: Path) -> None:
    out = results / "below_a_file"
    refused(dpaudit("report", results, "--out", out), out)


def test_a_number_that_no_audit_gives_is_refused_with_its_claim(dpaudit: Command, results: Path) -> None:
    content = read(results)
    content["claims"][1]["wealth"] = {"draws": [-1], "log10_e_value": [1e308]}
    results.write_text(json.dumps(content), encoding="utf-8")
    for command in (("report",), ("report", "--maintainer", ""), ("diff", results)):
        assert "dpaudit failed" not in dpaudit(*command, results).err
    refused(
        dpaudit("report", results), results, content["claims"][1]["id"], "holds what no report can show (ValueError"
    )


def test_a_verdict_is_told_where_no_report_can_be_written(
    dpaudit: Command, targets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "write_reports", fill)
    quick = ("--draws", 4000, "--no-shrink", "--no-also", "--jobs", 1)
    said = dpaudit("attack", f"{targets}:broken", *CLAIM, *BIT, *quick, "--out", tmp_path)
    assert said.code == 2
    assert "broken violates its claim" in said.out
    assert "No space left on device" in said.err
    assert (tmp_path / "results.json").exists()


def test_reproduce_finds_the_same_again(dpaudit: Command, results: Path) -> None:
    said = dpaudit("reproduce", results, "--jobs", 1)
    assert said.code == 0, said
    assert said.out.splitlines() == ["3 of 3 claims reproduced"]
    assert "differs" not in said.err


@pytest.mark.parametrize(("field", "value"), [("lower_bound", 0.123), ("verdict", "violation"), ("draws", 7_000)])
def test_reproduce_notices_what_was_tampered_with(dpaudit: Command, results: Path, field: str, value: Any) -> None:
    content = read(results)
    held = content["claims"][1]
    held[field] = value
    results.write_text(json.dumps(content), encoding="utf-8")
    said = dpaudit("reproduce", results, "--jobs", 1)
    assert said.code == 1, said
    lines = said.out.splitlines()
    assert [line for line in lines if line.startswith("differs: ")] == [f"differs: {held['id']}"]
    assert any(line.startswith(f"  {field}: ") for line in lines)
    assert lines[-1] == "2 of 3 claims reproduced"


def test_reproduce_says_which_source_has_changed(results: Path, claims: Path) -> None:
    # Another process, which loads the changed file; the claims themselves are as they were.
    changed = HEADER.replace("rng.random(n) < self.keep", "rng.random(n) < 1.0 * self.keep")
    claims.write_text(changed + FINE, encoding="utf-8")
    said = process("reproduce", results, "--jobs", 1)
    assert "differs: source_hash" in said.err, said


def test_an_attack_is_not_reproduced_but_replayed(dpaudit: Command, claims: Path, tmp_path: Path) -> None:
    options = ("--rows", 1, "--draws", 26_000, "--detect", 3, "--out", tmp_path / "a")
    assert dpaudit("attack", f"{claims}:lawless", *CLAIM, *BIT, *options).code == 0
    refused(dpaudit("reproduce", tmp_path / "a" / "results.json"), tmp_path / "a" / "results.json", "replay")


def test_diff_of_a_run_with_itself_is_empty(dpaudit: Command, results: Path) -> None:
    said = dpaudit("diff", results, results)
    assert (said.code, said.out) == (0, "no claim differs\n")


def test_results_of_the_first_schema_are_read_and_compared(dpaudit: Command, results: Path, tmp_path: Path) -> None:
    content = read(results)
    content["schema"] = "dpaudit-results/1"
    for claim in content["claims"]:
        for name in ("resolution", "resolves", "reached"):
            del claim[name]
        claim["detectable_level"] = 1.5 if claim["level"] == "L1" else None
    old = tmp_path / "old.json"
    old.write_text(json.dumps(content), encoding="utf-8")
    said = dpaudit("diff", old, results)
    assert (said.code, said.out) == (0, "no claim differs\n")
    assert dpaudit("report", old, "--out", tmp_path / "old").code == 0
    # What it called detectable was no statement of power, and is shown nowhere.
    assert "1.5" not in (tmp_path / "old" / "report.md").read_text(encoding="utf-8").partition("## All claims")[2]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ok": False, "sandwich": "failed: x"}, "the auditor's own check not failed -> failed"),
        ({"ignore": ["floating-point"]}, "ignored nothing -> floating-point"),
        ({"notion": "zCDP"}, "-> zCDP"),
        ({"ignore": 5}, "ignored nothing -> 5"),
    ],
)
def test_diff_shows_what_a_verdict_goes_with(
    changed: dict[str, Any], said: str, dpaudit: Command, results: Path, tmp_path: Path
) -> None:
    content = read(results)
    content["claims"][1] |= changed
    other = tmp_path / "other.json"
    other.write_text(json.dumps(content), encoding="utf-8")
    found = dpaudit("diff", results, other)
    assert found.code == 1
    assert said in found.out
    assert found.out.endswith(
        "1 of 3 claims differ: 1 in verdict or claim, 0 in a bound or exact level only, 0 in one of the two only\n"
    )


def test_diff_shows_exact_levels(dpaudit: Command, results: Path, tmp_path: Path) -> None:
    content = read(results)
    exact = content["claims"][0]
    was, exact["exact"] = exact["exact"], 0.125
    other = tmp_path / "other.json"
    other.write_text(json.dumps(content), encoding="utf-8")
    said = dpaudit("diff", results, other)
    assert said.code == 1
    assert said.out.splitlines()[0] == f"{exact['id']}: exact level {was} -> 0.125"


def test_diff_shows_verdicts_bounds_and_missing_claims(dpaudit: Command, results: Path, tmp_path: Path) -> None:
    content = read(results)
    exact, held, strong = content["claims"]
    was = held["lower_bound"]
    held["lower_bound"] = 0.25
    strong["verdict"] = "consistent"
    content["claims"] = [held, strong]
    other = tmp_path / "other.json"
    other.write_text(json.dumps(content), encoding="utf-8")
    said = dpaudit("diff", results, other)
    assert said.code == 1, said
    assert said.out.splitlines() == [
        f"only in {results}: {exact['id']}",
        f"{held['id']}: lower bound {was} -> 0.25",
        f"{strong['id']}: violation -> consistent",
        "3 of 3 claims differ: 1 in verdict or claim, 1 in a bound or exact level only, 1 in one of the two only",
    ]
    assert said.err == ""


def test_diff_says_what_the_runs_differ_in(dpaudit: Command, claims: Path, results: Path, tmp_path: Path) -> None:
    options = ("--jobs", 1, "--alpha", 1e-6, "--seed", 1, "--level", "standard", "--draws", 4_000)
    assert dpaudit("run", claims, *options, "--out", tmp_path / "b").code == 3  # too few draws
    said = dpaudit("diff", results, tmp_path / "b" / "results.json")
    assert said.code == 1, said
    lines = said.err.splitlines()
    for text in ("level: smoke then, standard now", "seed: 0 then, 1 now", "draws: 26000 then, 4000 now"):
        assert f"the runs differ: {text}" in lines
    assert not any("alpha" in line or "numpy" in line for line in lines)
    assert "lower bound" in said.out


def test_diff_shows_that_a_claim_itself_has_changed(dpaudit: Command, results: Path, tmp_path: Path) -> None:
    content = read(results)
    content["claims"][1] |= {"claimed": "ε = 2", "lower_bound": 0.25}
    content["manifest"]["libraries"]["numpy"] = "1.0"
    other = tmp_path / "other.json"
    other.write_text(json.dumps(content), encoding="utf-8")
    said = dpaudit("diff", results, other)
    assert said.out.splitlines()[0] == f"{content['claims'][1]['id']}: claimed ε = 1 -> ε = 2"
    assert said.err == f"the runs differ: numpy: {np.__version__} then, 1.0 now\n"


# -------------------------------------------------------------------------- check, calibrate

TARGETS = """
import sys
import time
import numpy as np

SEEN = 987654321.5


def values(data):
    return np.asarray(data, dtype=float).ravel()


def total(data, n, rng):  # a sum of values clipped to [0, 1], with Laplace noise on multiples of 2^-10
    return np.clip(values(data), 0, 1).sum() + np.rint(rng.laplace(size=n) * 1024) / 1024


def broken(data, n, rng):  # an eighth of that noise
    return np.clip(values(data), 0, 1).sum() + np.rint(rng.laplace(size=n) * 128) / 1024


def response(data, n, rng):  # randomised response on the last value, epsilon 1
    truthful = rng.random(n) < np.e / (1 + np.e)
    return np.where(truthful, values(data)[-1], 1 - values(data)[-1])


def once(data, rng):
    return float(total(data, 1, rng)[0])


def unseeded(data, n, rng):
    return np.random.default_rng().normal(size=n)


def dependent(data, n, rng):
    return np.full(n, rng.normal())


def raises(data, n, rng):
    raise ValueError(f"cannot digest {values(data).tolist()}")


def too_few(data, n, rng):
    return values(data).repeat(n)[: n - 1].tolist()


def nothing(data, n, rng):
    return None


def number(data, n, rng):
    return 3.0


def not_a_number(data, n, rng):
    return np.full(n, np.nan)


def words(data, n, rng):  # "yes" with probability 0.99 or 0.01
    return ["yes" if u < (0.99 if values(data)[-1] else 0.01) else "no" for u in rng.random(n)]


def ragged(data, n, rng):  # lists of 1 to 3, or of 2 to 4 numbers
    return [[1.0] * int(k) for k in rng.integers(1, 4, n) + int(values(data)[-1])]


def exits(data, n, rng):
    sys.exit(0)


def exits_once(data, rng):
    sys.exit(0)


def sleeps(data, n, rng):
    print("asleep", file=sys.stderr, flush=True)
    time.sleep(60)


def stubborn(data, n, rng):
    begun = time.monotonic()
    while time.monotonic() < begun + 60:
        try:
            time.sleep(0.01)
        except Exception:
            pass


constant = 7
"""


@pytest.fixture
def targets(tmp_path: Path) -> Path:
    file = tmp_path / "targets.py"
    file.write_text(TARGETS, encoding="utf-8")
    return file


def test_check_a_sound_target(dpaudit: Command, targets: Path) -> None:
    # The independence tests fail a sound target with probability at most 1e-6.
    said = dpaudit("check", f"{targets}:total")
    assert said.code == 0, said
    assert "shape (16,), float64" in said.out
    assert "seeded        yes" in said.out
    assert "no sign against it" in said.out
    assert "200,000 draws take about" in said.out
    assert re.search(r"an audit with that many about \S+ m?s on one pair of datasets and \S+ m?s on 100", said.out)


def test_check_of_a_target_that_wants_other_data_says_how(dpaudit: Command, targets: Path) -> None:
    said = dpaudit("check", f"{targets}:raises")
    refused(said, "cannot digest", "name another with --data")


def test_check_a_function_of_one_draw(dpaudit: Command, targets: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.array([0.5, 1.0]))
    said = dpaudit("check", f"{targets}:once", "--one-draw", "--data", tmp_path / "data.npy", "--draws", 400)
    assert said.code == 0, said
    assert "400 draws take about" in said.out


def test_check_finds_a_target_with_entropy_of_its_own(dpaudit: Command, targets: Path) -> None:
    said = dpaudit("check", f"{targets}:unseeded")
    assert said.code == 0, said
    assert "seeded        no" in said.out


def test_check_says_what_cannot_be_read(dpaudit: Command, targets: Path) -> None:
    targets.write_text(
        "class Answer:\n"
        "    def __init__(self, value): self._value = value\n"
        "def opaque(data, n, rng): return [Answer(value) for value in rng.normal(size=n)]\n"
    )
    done = dpaudit("check", f"{targets}:opaque")
    assert "unreadable    objects of class Answer: an audit reads only their texts" in done.out
    assert "seeded        yes" in done.out


def test_check_says_that_outputs_never_vary(dpaudit: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n"
        "def seeded(data):\n    return sum(data) + np.random.default_rng(0).laplace()\n"
        "def noisy(data, n, rng):\n    return rng.laplace(size=n)\n",
        encoding="utf-8",
    )
    said = dpaudit("check", f"{file}:seeded", "--one-draw")
    assert said.code == 0, said
    (line,) = [line for line in said.out.splitlines() if line.startswith("varies")]
    assert "draws on this dataset are all the same output. Is noise added, and is no seed fixed inside?" in line
    assert "varies" not in dpaudit("check", f"{file}:noisy").out


def test_check_finds_dependent_draws(dpaudit: Command, targets: Path) -> None:
    said = dpaudit("check", f"{targets}:dependent")
    assert said.code == 1, said
    assert "independent   NO" in said.out


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("raises", "cannot digest"),
        ("too_few", "asked for"),
        ("nothing", "None"),
        ("exits", "SystemExit"),
        ("constant", "not callable"),
        ("missing", "missing"),
    ],
)
def test_check_a_target_that_does_not_answer(dpaudit: Command, targets: Path, name: str, shown: str) -> None:
    refused(dpaudit("check", f"{targets}:{name}"), shown)


def test_check_refuses_a_budget_below_one(dpaudit: Command, targets: Path) -> None:
    refused(dpaudit("check", f"{targets}:total", "--draws", -4), -4)


@pytest.mark.parametrize(
    "bad",
    [("--audits", 0), ("--audits", -2), ("--draws", 3), ("--alpha", 2.0), ("--seed", -1)],
    ids=str,
)
def test_a_calibration_that_cannot_be_is_refused(dpaudit: Command, bad: tuple[str, object]) -> None:
    # A calibration of no audits would say "sound".
    refused(dpaudit("calibrate", "--audits", 2, "--draws", 400, *bad), bad[1])


# ------------------------------------------------------------------------------------- attack

CLAIM = ("--claim", "epsilon=1")
BIT = ("--relation", "replace-one", "--domain", "0,1")
#: Neighbours under replace-one; the first row is private and unmistakable.
PRIVATE = {"x": [987654321.5, 1.0, 1.0], "y": [987654321.5, 1.0, 0.0]}


def save(folder: Path, kind: str) -> tuple[object, ...]:
    """The private datasets as files, and the options that name them."""
    for name, rows in PRIVATE.items():
        file = folder / f"{name}.{kind}"
        if kind == "npy":
            np.save(file, np.array(rows))
        elif kind == "json":
            file.write_text(json.dumps(rows), encoding="utf-8")
        else:
            file.write_text("\n".join(["value", *map(str, rows)]) + "\n", encoding="utf-8")
    return ("--data", folder / f"x.{kind}", "--neighbor", folder / f"y.{kind}")


def test_a_target_that_keeps_its_claim_is_consistent(dpaudit: Command, targets: Path, tmp_path: Path) -> None:
    # alpha = 1e-6 is the probability of a false alarm.
    said = dpaudit("attack", f"{targets}:response", *CLAIM, *BIT, "--alpha", 1e-6, "--out", tmp_path / "out")
    assert said.code == 0, said
    assert "consistent" in said.out
    assert "9 of 10 audits would find an event of probability 1 % that shows ε = " in said.out
    assert "private" not in said.out
    for name in REPORTS:
        assert (tmp_path / "out" / name).is_file()
    content = read(tmp_path / "out" / "results.json")
    jsonschema.validate(content, report.read_schema())
    (claim,) = content["claims"]
    assert claim["alpha"] == 1e-6
    assert 0 < claim["lower_bound"] <= 1


def test_a_broken_target_is_refuted_with_an_example_that_can_be_replayed(
    dpaudit: Command, targets: Path, tmp_path: Path
) -> None:
    # Shift 8 scales: the counts of the best event are some 40 of 40 against 0.
    said = dpaudit("attack", f"{targets}:broken", *CLAIM, *BIT, "--rows", 3, "--out", tmp_path / "out")
    assert said.code == 1, said
    for text in ("violates its claim ε = 1", "event", "on x'", "lower bound", "e-value"):
        assert text in said.out
    (claim,) = read(tmp_path / "out" / "results.json")["claims"]
    assert claim["verdict"] == "violation"
    assert claim["lower_bound"] > 1
    replay = claim["counterexample"]["replay"]
    assert replay in said.out
    again = dpaudit(*shlex.split(replay)[1:])
    assert again.out == said.out
    assert again.code == 1


def test_an_attack_with_too_few_draws_is_inconclusive(dpaudit: Command, targets: Path) -> None:
    said = dpaudit("attack", f"{targets}:total", *CLAIM, *BIT, "--draws", 80, "--rows", 1)
    assert said.code == 3, said
    assert "inconclusive" in said.out


def test_a_function_of_one_draw_is_attacked(dpaudit: Command, targets: Path) -> None:
    said = dpaudit(
        "attack", f"{targets}:once", "--one-draw", *CLAIM, *BIT, "--rows", 1, "--draws", 4_000, "--alpha", 1e-6
    )
    assert said.code in (0, 3), said
    assert "lower bound" in said.out


def test_an_attack_wants_the_level_that_is_asked_for(dpaudit: Command, targets: Path, tmp_path: Path) -> None:
    # alpha = 1e-6 is the probability of a false alarm; 26,000 draws tell a true epsilon of 1 from 3, never from 1.0001.
    options = (f"{targets}:response", *CLAIM, *BIT, "--rows", 1, "--draws", 26_000, "--alpha", 1e-6)
    assert dpaudit("attack", *options, "--detect", 3).code == 0
    said = dpaudit("attack", *options, "--detect", 1.0001, "--out", tmp_path / "out")
    assert said.code == 3, said
    content = read(tmp_path / "out" / "results.json")
    assert content["manifest"]["detect"] == content["claims"][0]["detect"] == 1.0001
    assert dpaudit(*shlex.split(content["claims"][0]["replay"])[1:]).out == said.out


def test_stopping_at_the_budget_certifies_more(
    dpaudit: Command, targets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(targets.parent)  # the name of the target keys the draws
    bounds = []
    for stop in ("verdict", "budget"):
        out = tmp_path / stop
        options = (*BIT, "--rows", 1, "--draws", 20_000, "--stop", stop, "--out", out)
        assert dpaudit("attack", f"{targets.name}:broken", *CLAIM, *options).code == 1
        (claim,) = read(out / "results.json")["claims"]
        bounds.append((claim["draws"], claim["lower_bound"]))
    (few, low), (many, high) = bounds
    assert few < many == 20_000
    assert low < high


@pytest.mark.parametrize(
    ("text", "notion", "claimed"),
    [
        ("epsilon=1.5", "pure DP", "ε = 1.5"),
        (" epsilon = 1.5 ", "pure DP", "ε = 1.5"),
        ("epsilon=1.5, delta=1e-6", "approximate DP", "ε = 1.5, δ = 1e-06"),
        ("delta=1e-6,epsilon=1.5", "approximate DP", "ε = 1.5, δ = 1e-06"),
        ("mu=0.5", "Gaussian DP", "μ = 0.5"),
    ],
)
def test_claims_have_several_forms(
    dpaudit: Command, targets: Path, tmp_path: Path, text: str, notion: str, claimed: str
) -> None:
    dpaudit("attack", f"{targets}:total", "--claim", text, *BIT, "--draws", 400, "--out", tmp_path / "out")
    (claim,) = read(tmp_path / "out" / "results.json")["claims"]
    assert (claim["notion"], claim["claimed"]) == (notion, claimed)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "epsilon",
        "epsilon=",
        "epsilon=one",
        "epsilon=-1",
        "epsilon=nan",
        "epsilon=inf",
        "epsilon=1,",
        "epsilon=1, delta=1",
        "epsilon=1, delta=-1e-6",
        "epsilon=1, delta=nan",
        "delta=1e-6",
        "mu=-0.5",
        "mu=nan",
        "epsilon=1, mu=1",
        "budget=1",
        "epsilon=1, epsilon=2",
        "1.0",
    ],
)
def test_a_malformed_claim_is_refused_as_it_was_written(dpaudit: Command, targets: Path, text: str) -> None:
    refused(dpaudit("attack", f"{targets}:total", "--claim", text, *BIT), repr(text))


@pytest.mark.parametrize("kind", ["csv", "json", "npy"])
def test_datasets_come_from_files(dpaudit: Command, targets: Path, tmp_path: Path, kind: str) -> None:
    options = (*save(tmp_path, kind), "--relation", "replace-one", "--draws", 26_000, "--out", tmp_path / "out")
    said = dpaudit("attack", f"{targets}:total", *CLAIM, *options, "--alpha", 1e-6)
    assert said.code in (0, 3), said
    (claim,) = read(tmp_path / "out" / "results.json")["claims"]
    assert claim["draws"] == 26_000
    assert claim["pair"] == f"x.{kind} against y.{kind}"


@pytest.mark.parametrize("name", ["total", "broken", "raises", "too_few", "words", "exits"])
@pytest.mark.parametrize("kind", ["csv", "json", "npy"])
def test_private_values_are_never_written_down(
    dpaudit: Command, targets: Path, tmp_path: Path, name: str, kind: str
) -> None:
    said = dpaudit(
        "attack", f"{targets}:{name}", *CLAIM, *save(tmp_path, kind), "--draws", 2_000, "--out", tmp_path / "out"
    )
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(REPORTS), said
    for path in (tmp_path / "out").iterdir():
        text = path.read_text(encoding="utf-8")
        assert "987654321" not in text, path.name
        assert "9.876543" not in text, path.name
    if name == "broken":
        assert said.code == 1, said
        assert "(not shown)" in said.out


BAD_DATA: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "no neighbour": (("--data", "x.json"), ("--neighbor",)),
    "no data": (("--neighbor", "x.json"), ("--data",)),
    "neither": ((), ("--data",)),
    "relation without domain": (("--relation", "replace-one"), ("--domain",)),
    "unknown relation": (("--relation", "cousins", "--domain", "0,1"), ("'cousins'",)),
    "one value": (("--relation", "replace-one", "--domain", "5"), ("'5'",)),
    "empty range": (("--relation", "replace-one", "--domain", "3:3"), ("'3:3'",)),
    "no rows": ((*BIT, "--rows", "0"), ("0",)),
    "too many rows": ((*BIT, "--rows", "1000000000000"), ("1000000000000",)),
    "too many values": (("--relation", "replace-one", "--domain", "0:1000000000000"), ("'0:1000000000000'",)),
    "words as answers": (("--relation", "answers-within", "--domain", "a,b"), ("'a,b'",)),
    "missing file": (("--data", "missing.csv", "--neighbor", "x.json"), ("missing.csv",)),
    "unknown format": (("--data", "x.xlsx", "--neighbor", "x.json"), ("x.xlsx",)),
    "not json": (("--data", "broken.json", "--neighbor", "x.json"), ("broken.json",)),
    "an object": (("--data", "object.json", "--neighbor", "x.json"), ("object.json", "different kinds", "dict")),
    "empty table": (("--data", "empty.csv", "--neighbor", "x.json"), ("empty.csv",)),
    "not numpy": (("--data", "broken.npy", "--neighbor", "x.json"), ("broken.npy",)),
    "pickled": (("--data", "pickled.npy", "--neighbor", "x.json"), ("pickled.npy",)),
    "a single number": (
        ("--data", "scalar.npy", "--neighbor", "x.json"),
        ("scalar.npy", "different kinds", "a number"),
    ),
    "the same twice": (("--data", "x.json", "--neighbor", "x.json", "--relation", "replace-one"), ("0 rows differ",)),
    "two rows differ": (
        ("--data", "x.json", "--neighbor", "far.json", "--relation", "replace-one"),
        ("2 rows differ",),
    ),
    "another length": (("--data", "x.json", "--neighbor", "short.json", "--relation", "replace-one"), ("3 rows", "2")),
    "the same length": (("--data", "x.json", "--neighbor", "y.json", "--relation", "add-remove-one"), ("3 rows",)),
    "not a row removed": (
        ("--data", "x.json", "--neighbor", "other.json", "--relation", "add-remove-one"),
        ("not those of the longer",),
    ),
}


@pytest.mark.parametrize("bad", BAD_DATA)
def test_bad_datasets_are_refused(
    dpaudit: Command, targets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path, "json")
    for name, text in {
        "far.json": "[987654321.5, 0, 0]",
        "short.json": "[987654321.5, 1]",
        "other.json": "[987654321.5, 0]",
        "broken.json": "[1, ",
        "object.json": '{"rows": [1]}',
        "empty.csv": "",
        "broken.npy": "not an array",
        "x.xlsx": "",
    }.items():
        Path(name).write_text(text, encoding="utf-8")
    np.save("pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save("scalar.npy", np.array(3.0))
    arguments, shown = BAD_DATA[bad]
    said = dpaudit("attack", f"{targets}:total", *CLAIM, *arguments)
    refused(said, *shown)
    assert "987654321" not in said.err


@pytest.mark.parametrize(
    "options",
    [
        ("--alpha", -1.0),
        ("--alpha", 1.0),
        ("--draws", -5),
        ("--seed", -3),
        ("--jobs", -3),
        ("--max-seconds", -2.0),
        ("--max-seconds", float("inf")),
        ("--detect", 0.0),
        ("--detect", float("nan")),
    ],
    ids=str,
)
def test_an_attack_with_a_bad_option_is_refused(dpaudit: Command, targets: Path, options: tuple[str, object]) -> None:
    refused(dpaudit("attack", f"{targets}:total", *CLAIM, *BIT, *options), options[1])


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("{file}:missing", "'missing'"),
        ("{file}:constant", "not callable"),
        ("{file}.py:total", "no such file"),
        ("{file}", "package.module:callable"),
        ("no.such.module:f", "no.such.module"),
        ("exec:no-such-program -v", "no-such-program"),
        ("ftp://localhost/", "ftp://localhost/"),
    ],
)
def test_a_target_that_is_none_is_refused(dpaudit: Command, targets: Path, target: str, shown: str) -> None:
    refused(dpaudit("attack", target.format(file=targets), *CLAIM, *BIT), shown)


@pytest.mark.parametrize(("target", "shown"), [("exec:cat", "without outputs"), ("http://localhost:1/", "refused")])
def test_a_target_elsewhere_that_does_not_answer_is_an_error(dpaudit: Command, target: str, shown: str) -> None:
    said = dpaudit("attack", target, *CLAIM, *BIT, "--limit", 5)
    assert said.code == 2, said
    assert f"attack/L1/pure_dp/{target}: error: " in said.out
    assert shown in said.out


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("raises", "the target raised ValueError: cannot digest"),
        ("too_few", "outputs were asked for"),
        ("nothing", "returned None"),
        ("number", "returned 3"),
        ("exits", "SystemExit"),
    ],
)
def test_a_target_that_cannot_answer_is_an_error(
    dpaudit: Command, targets: Path, tmp_path: Path, name: str, shown: str
) -> None:
    said = dpaudit("attack", f"{targets}:{name}", *CLAIM, *BIT, "--rows", 1, "--out", tmp_path / "out")
    assert said.code == 2, said
    assert "Traceback" not in said.err
    assert shown in said.out
    (claim,) = read(tmp_path / "out" / "results.json")["claims"]
    assert claim["verdict"] == "error"
    assert shown in claim["message"]


def test_a_function_of_one_draw_that_exits_is_no_success(dpaudit: Command, targets: Path) -> None:
    said = dpaudit("attack", f"{targets}:exits_once", "--one-draw", *CLAIM, *BIT, "--rows", 1, "--draws", 400)
    assert said.code in (2, 3), said


@pytest.mark.parametrize(("name", "output"), [("words", "yes"), ("ragged", "length")])
def test_outputs_need_not_be_numbers(dpaudit: Command, targets: Path, name: str, output: str) -> None:
    # "yes" is 99 times more frequent; one list in three has a length that the other side never has. 20,000 draws a
    # side: missed with probability below 1e-6 by far.
    said = dpaudit("attack", f"{targets}:{name}", *CLAIM, *BIT, "--rows", 1, "--draws", 40_000)
    assert said.code == 1, said
    (event,) = [line for line in said.out.splitlines() if line.startswith("  event")]
    assert event.split(None, 1)[1]


def test_not_a_number_is_an_output(dpaudit: Command, targets: Path) -> None:
    said = dpaudit("attack", f"{targets}:not_a_number", *CLAIM, *BIT, "--rows", 1, "--draws", 400)
    assert said.code == 3, said
    assert "inconclusive" in said.out


@pytest.mark.parametrize("name", ["sleeps", "stubborn"])
def test_a_target_that_hangs_is_an_error_at_its_limit(dpaudit: Command, targets: Path, name: str) -> None:
    begun = time.monotonic()
    said = dpaudit("attack", f"{targets}:{name}", *CLAIM, *BIT, "--limit", 0.3)
    assert time.monotonic() - begun < 20
    assert said.code == 2, said
    assert "did not answer within 0.3 s" in said.out


# ------------------------------------------------------------------------------------- Ctrl-C

SLOW = """
    def asleep(data, n, rng):
        time.sleep(60)

    yield privacy(lawless, PureDP(1.0), PAIR, case='quick_1')
    yield privacy(lawless, PureDP(1.0), PAIR, case='quick_2')
    for k in range(12):  # more than wait for two workers
        yield privacy(asleep, PureDP(1.0), PAIR, case=f'slow_{k}')
"""


@pytest.mark.parametrize("alone", [False, True])
def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, alone: bool) -> None:
    """A terminal sends the signal to the whole group, a supervisor to the process that it has started."""
    out = tmp_path / "out"
    with start("run", declare(tmp_path, SLOW), "--draws", 2_000, "--jobs", 2, "--out", out) as running:
        said = interrupt(running, until(running, "[2/14]"), alone)
    assert said.code == 130, said
    assert "Traceback" not in said.err, said
    assert "KeyboardInterrupt" not in said.err, said
    assert "2 of 14 claims were finished" in said.err
    assert [line for line in complaints(said) if not line.startswith("interrupted: ")] == []
    content = read(out / "results.json")
    jsonschema.validate(content, report.read_schema())
    assert content["manifest"]["interrupted"] is True
    assert [claim["id"].rpartition("/")[2] for claim in content["claims"]] == ["quick_1", "quick_2"]
    for name in REPORTS:
        assert (out / name).is_file()
    rows = [line for line in said.out.splitlines() if "quick_" in line and "To do: " not in line]
    assert len(rows) == 2


def test_ctrl_c_during_an_attack(targets: Path) -> None:
    with start("attack", f"{targets}:sleeps", *CLAIM, *BIT) as running:
        said = interrupt(running, until(running, "asleep"))
    assert said.code == 130, said
    assert "Traceback" not in said.err, said


def test_a_failure_of_ours_is_never_a_finding(dpaudit: Command, claims: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("in our own code")

    monkeypatch.setattr(report, "summarize_run", fails)
    said = dpaudit("run", claims, *QUICK)
    assert said.code == 2, said
    assert "Traceback" not in said.err
    assert complaints(said)[0].startswith("dpaudit failed: ZeroDivisionError: in our own code")
    assert "DPAUDIT_TRACEBACK=1" in said.err
    monkeypatch.setenv("DPAUDIT_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["run", str(claims), *map(str, QUICK)])


def test_old_reports_are_replaced(dpaudit: Command, claims: Path, results: Path) -> None:
    shutil.copy(results, results.with_name("before.json"))
    said = dpaudit("run", claims, *QUICK, "--seed", 1, "--out", results.parent)
    assert said.code == 0, said
    assert read(results)["manifest"]["seed"] == 1
    assert read(results)["claims"] != read(results.with_name("before.json"))["claims"]


def test_a_letter_that_the_terminal_lacks_ends_no_command(claims: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    said = process("list", claims)
    assert said.code == 0, said
    assert r"\u03b5 = 1" in said.out


def test_texts_that_utf_8_lacks_are_kept_and_lose_no_run(dpaudit: Command, tmp_path: Path) -> None:
    """Half of a surrogate pair, as Python has it of names of files in other encodings."""
    title = r"""title="Randomised response"""
    file = declare(tmp_path, HELD)
    file.write_text(file.read_text(encoding="utf-8").replace(title, title + r" \udce9"), encoding="utf-8")
    out = tmp_path / "out"
    said = dpaudit("run", file, *QUICK, "--out", out)
    assert said.code == 0, said
    assert sorted(path.name for path in out.iterdir()) == sorted(REPORTS)
    assert read(out / "results.json")["claims"][0]["title"] == "Randomised response \udce9"
    for asked in (("report", out), ("diff", out, out), ("evidence", out, "--out", tmp_path / "sheet")):
        assert dpaudit(*asked).code == 0
