"""`dpaudit reproduce`: the same again, to the byte, or why not; packed results.

Runs have alpha = 1e-6 each, which is the probability that one has another exit code than is asked for.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor.claims import registry
from auditor.runs.diff import pack_bytes, read_results, record_differences
from auditor.runs.manifest import code_of
from auditor.runs.progress import Progress
from auditor.runs.reproduce import Differing, Recorded, Reproduction, changed_files, lines_of, list_names, take_sample
from auditor.runs.run import Run
from tests.commandline import FINE, HEADER, QUICK, Command, Said, declare, process, read, refused


def change(results: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    content = read(results)
    edit(content)
    results.write_text(json.dumps(content), encoding="utf-8")


def ids(results: Path) -> list[str]:
    return [claim["id"] for claim in read(results)["claims"]]


def why(said: Said) -> list[str]:
    """Causes, whether of a claim or of all of them."""
    return [line.strip().removeprefix("why: ") for line in said.out.splitlines() if line.strip().startswith("why: ")]


# ------------------------------------------------------------------------------- the same again


def test_a_packed_file_is_reproduced(dpaudit: Command, results: Path) -> None:
    small = results.with_name("results.json.xz")
    small.write_bytes(pack_bytes(results.read_bytes()))
    results.unlink()
    said = dpaudit("reproduce", small, "--jobs", 1)
    assert (said.code, said.out) == (0, "3 of 3 claims reproduced\n"), said


def test_what_was_ignored_is_ignored_again(dpaudit: Command, tmp_path: Path) -> None:
    results = tmp_path / "out" / "results.json"
    options = ("--ignore", "floating-point,length", "--also", "--out", results.parent)
    said = dpaudit("run", declare(tmp_path), *QUICK, *options)
    assert said.code == 0, said
    assert "not looked at: floating-point, length (2 claims)" in said.out
    manifest = read(results)["manifest"]
    assert (manifest["ignore"], manifest["also"]) == (["floating-point", "length"], True)
    said = dpaudit("reproduce", results, "--jobs", 1)
    assert (said.code, said.out) == (0, "3 of 3 claims reproduced\n"), said


def test_a_part_has_the_shares_of_the_whole_run(dpaudit: Command, tmp_path: Path) -> None:
    """Two claims hold, so each has half of alpha, whichever of them is run again."""
    body = FINE + "    yield privacy(Response(0.9), PureDP(1.0), PAIR, case='weak')\n"
    results = tmp_path / "out" / "results.json"
    assert dpaudit("run", declare(tmp_path, body), *QUICK, "--out", results.parent).code == 0
    assert {claim["alpha"] for claim in read(results)["claims"]} == {5e-7}
    for id_ in ids(results):
        said = dpaudit("reproduce", results, "-k", id_, "--jobs", 1)
        assert (said.code, said.out) == (0, "1 of 1 claims reproduced (the file has 4)\n"), said


def test_claims_that_were_added_since_change_no_share(results: Path, claims: Path) -> None:
    added = "    yield privacy(Response(0.5), PureDP(1.0), PAIR, case='added')\n"
    claims.write_text(HEADER + FINE + added, encoding="utf-8")
    said = process("reproduce", results, "--jobs", 1)
    assert (said.code, said.out) == (0, "3 of 3 claims reproduced\n"), said
    assert "differs: specification_hash" in said.err


def test_a_sample_goes_by_the_hashes_of_ids(dpaudit: Command, results: Path) -> None:
    ordered = sorted(ids(results), key=lambda id_: hashlib.sha256(id_.encode()).hexdigest())
    for n in (1, 2):
        said = dpaudit("reproduce", results, "--sample", n, "--jobs", 1)
        assert (said.code, said.out) == (0, f"{n} of {n} claims reproduced (the file has 3)\n"), said
        assert {line.split()[-1] for line in said.err.splitlines() if line.startswith("[")} == set(ordered[:n])
    assert dpaudit("reproduce", results, "--sample", 9, "--jobs", 1).out == "3 of 3 claims reproduced\n"


def test_an_added_claim_moves_no_other_one_in_a_sample() -> None:
    some = [Recorded(f"a/b/L1/x/{k}", {}) for k in range(40)]
    without = [claim for claim in some if claim.id != "a/b/L1/x/7"]
    assert [claim for claim in take_sample(some, None) if claim.id != "a/b/L1/x/7"] == take_sample(without, None)
    assert take_sample(some, 5) == take_sample(list(reversed(some)), None)[:5]


def test_time_that_runs_out_is_said(dpaudit: Command, tmp_path: Path) -> None:
    body = "".join(f"    yield exact(Response(1.0), PureDP(1.0), PAIR, case='c{k}')\n" for k in range(6))
    assert dpaudit("run", declare(tmp_path, body), *QUICK, "--out", tmp_path / "out").code == 0
    said = dpaudit("reproduce", tmp_path / "out" / "results.json", "--max-seconds", 1e-9, "--jobs", 1)
    assert (said.code, said.out) == (0, "4 of 6 claims reproduced, 2 not reached\n"), said


SLOW = """
    yield privacy(sleepy, PureDP(1.0), PAIR)
    yield conformity(Sleepy(), PAIR)
    yield accuracy(sleepy, PAIR.x, Absolute(0), at_most=0, beta=0.3)
"""
SLEEPY = '''
from auditor.audits.accuracy import Absolute
from auditor.claims import conformity
from auditor.claims import accuracy


def sleepy(data, n, rng):
    time.sleep(0.02)
    return np.where(rng.random(n) < 0.7, data[0], 1 - data[0])


class Sleepy(Response):
    """A slow one that states its distribution."""

    def __init__(self):
        super().__init__(1.0)

    def __call__(self, data, n, rng):
        time.sleep(0.02)
        return super().__call__(data, n, rng)


@entry('''


def test_claims_of_each_kind_that_time_cut_short_are_reproduced(dpaudit: Command, tmp_path: Path) -> None:
    """Each is cut short after three calls or so of 0.02 seconds, out of many; how many chunks it was is recorded."""
    file = tmp_path / "claims.py"
    file.write_text(HEADER.replace("@entry(", SLEEPY, 1) + SLOW, encoding="utf-8")
    options = ("--jobs", 1, "--alpha", 1e-6, "--max-seconds", 0.05)
    assert dpaudit("run", file, *options, "--out", tmp_path / "out").code in (0, 3)
    content = read(tmp_path / "out" / "results.json")
    assert {claim["level"]: claim["truncated_by"] for claim in content["claims"]} == dict.fromkeys(
        ("L1", "L3", "L4"), "time"
    )
    said = dpaudit("reproduce", tmp_path / "out" / "results.json", "--jobs", 1)
    assert (said.code, said.out) == (0, "3 of 3 claims reproduced\n"), said


# --------------------------------------------------------------------------- what differs, and why


def test_a_changed_seed_contradicts_the_replay_lines(dpaudit: Command, results: Path) -> None:
    change(results, lambda content: content["manifest"].update(seed=1))
    said = dpaudit("reproduce", results, "--jobs", 1)
    assert said.code == 1, said
    # Nothing of the exact claim is drawn, but its replay line has the seed too.
    assert said.out.splitlines()[-1] == "0 of 3 claims reproduced"
    assert why(said).count("its replay line has the seed 0, the manifest 1: the file was changed after the run") == 3
    assert "--seed 0" in said.out
    assert "--seed 1" in said.out


@pytest.mark.parametrize(
    ("name", "value", "said_so"),
    [
        ("level", "standard", "its replay line has the level smoke, the manifest standard"),
        ("draws", 26_001, "its replay line has the draws 26000, the manifest 26001"),
        ("detect", 3.0, "its replay line has the detect no, the manifest 3.0"),
        ("ignore", ["length"], "its replay line has the ignore no, the manifest length"),
    ],
)
def test_other_changed_options_do_too(dpaudit: Command, results: Path, name: str, value: Any, said_so: str) -> None:
    change(results, lambda content: content["manifest"].update({name: value}))
    said = dpaudit("reproduce", results, "-k", "reference", "--jobs", 1)
    assert said.code == 1, said
    assert any(cause.startswith(said_so) for cause in why(said)), said


def test_a_changed_mechanism_is_named(results: Path, claims: Path) -> None:
    claims.write_text(HEADER.replace("< self.keep", "< 0.99 * self.keep") + FINE, encoding="utf-8")
    said = process("reproduce", results, "--jobs", 1)
    assert said.code == 1, said
    # The exact claim's distribution is as it was: the hash of the source differs, and so does its record.
    assert said.out.splitlines()[-1] == "0 of 3 claims reproduced"
    assert why(said).count("the source of Response has changed") == 3
    assert "claims.py" in why(said)[-1]
    assert why(said)[-1].startswith("the code, ")


def test_a_changed_declaration_is_named(results: Path, claims: Path) -> None:
    # Of another length: Python takes its own bytecode for that of a file of the same length and the same second.
    claims.write_text(
        HEADER + FINE.replace("privacy(Response(1.0), PureDP(1.0)", "privacy(Response(1.0), PureDP(1.25)")
    )
    said = process("reproduce", results, "--jobs", 1)
    assert said.code == 1, said
    assert said.out.splitlines()[-1] == "2 of 3 claims reproduced"
    assert "it is declared otherwise: claimed, claimed_level, parameters" in " ".join(why(said))


def test_another_version_of_a_library_is_a_cause(dpaudit: Command, results: Path) -> None:
    def older(content: dict[str, Any]) -> None:
        content["manifest"]["libraries"]["numpy"] = "1.0"
        content["manifest"]["dpaudit"] = "0.0.1"

    change(results, older)
    said = dpaudit("reproduce", results, "--jobs", 1)
    assert said.code == 0, "the records are the same"
    assert why(said) == []
    assert "differs: numpy: 1.0 then, " in said.err
    change(results, lambda content: content["claims"][1].update(draws=7_000))
    said = dpaudit("reproduce", results, "--jobs", 1)
    assert said.code == 1, said
    assert "  draws: 7000 then, 26000 now" in said.out.splitlines()
    assert [cause.partition(":")[0] for cause in why(said)[:2]] == ["dpaudit", "numpy"]


def test_a_difference_that_nothing_explains_is_to_be_reported(dpaudit: Command, results: Path) -> None:
    change(results, lambda content: content["claims"][1].update(lower_bound=0.123))
    (results.parent / "run.json").unlink()
    said = dpaudit("reproduce", results, "--jobs", 1)
    assert said.code == 1, said
    (cause,) = why(said)
    assert "please report it" in cause
    assert "a run.json beside results.json would say which code it was" in cause
    assert said.out.splitlines()[1].startswith("  lower_bound: 0.123 then, ")


def test_files_of_code_that_are_not_those_of_the_run_are_named(dpaudit: Command, results: Path) -> None:
    record = results.parent / "run.json"
    about = read(record)
    assert {"claims.py", "auditor/results.py"} <= {Path(n).name if "claims" in n else n for n in about["sources"]}
    about["sources"] |= {"auditor/gone.py": "0" * 16, "mechanisms/gone.py": "0" * 16}
    record.write_text(json.dumps(about), encoding="utf-8")
    said = dpaudit("reproduce", results, "--jobs", 1)
    assert said.code == 0, said
    (line,) = [line for line in said.err.splitlines() if line.startswith("code: ")]
    # Those of the engine come last.
    assert line.index("mechanisms/gone.py") < line.index("auditor/gone.py")
    assert why(said) == []
    record.write_text("[]", encoding="utf-8")
    refused(dpaudit("reproduce", results, "--jobs", 1), record, "list")


def test_a_claim_that_is_not_declared_any_more(dpaudit: Command, results: Path) -> None:
    change(results, lambda content: content["claims"][1].update(id="900/response/L1/pure_dp/gone"))
    said = dpaudit("reproduce", results, "--jobs", 1)
    assert said.code == 1, said
    first, cause, *_, last = said.out.splitlines()
    assert first == "differs: 900/response/L1/pure_dp/gone"
    assert "is not declared in" in cause
    assert last == "2 of 3 claims reproduced"
    refused(dpaudit("reproduce", results, "-k", "gone", "--jobs", 1), "900/response/L1/pure_dp/gone")


@pytest.mark.parametrize(
    ("change_of", "cause"),
    [
        ({"unseeded": True}, "its target has its own source of randomness"),
        ({"verdict": "error", "message": "it hung"}, "it ended in an error then: it hung"),
        ({"truncated_by": "time", "record": {}}, "time cut it short, and the file does not say after how many chunks"),
        ({"replay": "rm -rf '"}, "its replay line is not what a run writes"),
        ({"alpha": 4e-7}, "its replay line has the alpha 1e-06, the claim 4e-07"),
    ],
)
def test_what_explains_a_single_claim(dpaudit: Command, results: Path, change_of: dict[str, Any], cause: str) -> None:
    change(results, lambda content: content["claims"][1].update(change_of))
    said = dpaudit("reproduce", results, "--jobs", 1)
    assert said.code == 1, said
    assert said.out.splitlines()[-1] == "2 of 3 claims reproduced"
    assert any(line.startswith(cause) for line in why(said)), said
    assert "please report it" not in said.out


def test_ctrl_c_shows_what_was_compared(dpaudit: Command, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "advance", interrupted)
    said = dpaudit("reproduce", results, "--jobs", 1)
    assert (said.code, said.out) == (130, "1 of 3 claims reproduced, 2 not reached\n"), said
    assert said.err.splitlines()[-1] == "interrupted"


@pytest.mark.parametrize(("interrupted", "lost", "code"), [(False, "", 0), (True, "", 130), (True, "no workers", 2)])
def test_the_exit_code_of_what_was_not_reached(interrupted: bool, lost: str, code: int) -> None:
    assert Reproduction(3, 3, 1, (), (), (), interrupted, lost).code == code


# ------------------------------------------------------------------------------------ bad input


def test_of_very_many_claims_that_differ_the_ids_are_shown() -> None:
    differing = tuple(Differing(f"a/b/L1/x/{k}", ("alpha: 1 then, 2 now",), ("some cause",)) for k in range(60))
    lines = list(lines_of(Reproduction(60, 60, 0, differing, ("numpy: 1 then, 2 now",), (), False, "")))
    assert [line for line in lines if line.startswith("differs: ")] == [f"differs: {claim.id}" for claim in differing]
    assert lines.count("  alpha: 1 then, 2 now") == lines.count("  why: some cause") == 50
    assert lines[-2:] == ["why: numpy: 1 then, 2 now", "0 of 60 claims reproduced"]


def edited(**members: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda content: content["manifest"].update(members)


@pytest.mark.parametrize(
    ("edit", "shown"),
    [
        (edited(alpha="0.01"), "'0.01'"),
        (edited(alpha=7), "7"),
        (edited(seed=None), "seed None"),
        (edited(seed=True), "seed True"),
        (edited(level="thorough"), "thorough"),
        (edited(paths="experiments"), "'experiments'"),
        (edited(paths=["nowhere"]), "is of a run of nowhere, and is run again in the same folder"),
        (edited(draws="many"), "many"),
        (edited(selection=3), "selection 3"),
        (edited(method="guess"), "guess"),
        (lambda content: content["claims"][0].update(alpha=0), "alpha 0"),
        (lambda content: content["claims"][0].update(id=3), "id 3"),
        (lambda content: content["claims"].append(content["claims"][0]), "2 claims of the id"),
        (lambda content: content["claims"].clear(), "has no claims"),
        (lambda content: content.update(claims=["x"]), "claim 1 is 'x'"),
        (lambda content: content.update(schema="dpaudit-results/99"), "another version of dpaudit"),
    ],
)
def test_a_file_that_cannot_be_run_again_is_refused(
    dpaudit: Command, results: Path, edit: Callable[[dict[str, Any]], Any], shown: str
) -> None:
    change(results, edit)
    refused(dpaudit("reproduce", results, "--jobs", 1), results, shown)


@pytest.mark.parametrize(
    "content", [pack_bytes(b"{}")[:-9], pack_bytes(b"{}")[:5], pack_bytes(b"[" * 100_000), pack_bytes(b"\xff{}")]
)
def test_a_packed_file_that_cannot_be_read_is_refused(dpaudit: Command, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "results.json.xz"
    file.write_bytes(content)
    for command in ("reproduce", "report", "baseline", "replay"):
        refused(dpaudit(command, file), file)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("-k", "nothing of it"), "nothing"),
        (("-k", "(response"), "(response"),
        (("-k", "response", "-k", "strong"), "-k '(response) and (strong)'"),
        (("--sample", 0), "0"),
        (("--max-seconds", -1), "-1"),
    ],
)
def test_bad_options_are_refused(dpaudit: Command, results: Path, options: tuple[object, ...], shown: str) -> None:
    refused(dpaudit("reproduce", results, *options), shown)


def test_a_second_selection_of_a_run_is_refused(dpaudit: Command, claims: Path) -> None:
    refused(dpaudit("run", claims, "-k", "response", "-k", "strong", *QUICK), "given 2 times")


# ----------------------------------------------------------------------------------- packed files


def test_packing_gives_the_same_bytes_and_loses_none(results: Path) -> None:
    content = results.read_bytes()
    small = pack_bytes(content)
    assert small == pack_bytes(content)
    assert len(small) < len(content)
    assert lzma.decompress(small) == content


def test_results_are_read_from_their_folder(dpaudit: Command, results: Path, tmp_path: Path) -> None:
    assert results.name == "results.json"
    folder = results.parent
    assert dpaudit("diff", folder, results).out == "no claim differs\n"
    for command in ("replay", "reproduce", "evidence", "report", "baseline"):
        output = ["-o", tmp_path / "known.toml"] if command == "baseline" else []
        by_folder, by_file = dpaudit(command, folder, *output), dpaudit(command, results, *output)
        assert (by_folder.code, by_folder.out) == (by_file.code, by_file.out)
    refused(dpaudit("replay", tmp_path), str(tmp_path / "results.json"))


def test_every_command_reads_packed_results(dpaudit: Command, results: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.xz"
    small.write_bytes(pack_bytes(results.read_bytes()))
    assert read_results(small) == read_results(results)
    assert dpaudit("diff", small, results).out == "no claim differs\n"
    assert dpaudit("replay", small).code == 0
    assert dpaudit("baseline", small, "-o", tmp_path / "known.toml").code == 0
    assert dpaudit("report", small, "--out", tmp_path / "report").code == 0
    for name in ("report.html", "report.md", "results.sarif"):
        assert (tmp_path / "report" / name).read_bytes() == (results.parent / name).read_bytes()


# ------------------------------------------------------------------------------ differences, files


LONG = "x" * 400


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": 1.0}, ["a: 1 then, 1.0 now"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a: 2 items then, 1 now"]),
        (
            {"a": {"b": [[1, None]]}, "z": 1},
            {"a": {"b": [[1, "x"]]}, "z": 2},
            ["z: 1 then, 2 now", 'a.b[0][1]: null then, "x" now'],
        ),
        ({"a": 1}, {"b": 1}, ["a: in the file alone", "b: not in the file"]),
        ({"a": 1, "verdict": "x"}, {"a": 2, "verdict": "y"}, ['verdict: "x" then, "y" now', "a: 1 then, 2 now"]),
        ({"places": 1, "known": "x"}, {}, []),
        ({"truncated_by": "time"}, {"truncated_by": None}, []),
        ({"truncated_by": None}, {"truncated_by": "time"}, ['truncated_by: null then, "time" now']),
    ],
)
def test_differences_of_records(old: dict[str, Any], new: dict[str, Any], lines: list[str]) -> None:
    assert record_differences(old, new) == lines


def test_a_long_text_is_shown_where_it_differs() -> None:
    (line,) = record_differences({"a": LONG + "1" + LONG}, {"a": LONG + "2" + LONG})
    assert len(line) < 120
    assert "xxxx1xxxx" in line
    assert "xxxx2xxxx" in line
    (line,) = record_differences({"a": LONG}, {"a": "short"})
    assert line.endswith('"short" now')


def test_the_code_of_a_run_is_also_what_its_mechanisms_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in (("noise_of_it", "SCALE = 1\n"), ("sums_of_it", "from noise_of_it import SCALE\n")):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    file = declare(tmp_path, name="imports_it.py")
    file.write_text("import sums_of_it\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    asked, claims = Run(paths=(str(file),)), registry.load_claims((str(file),))
    then = code_of(asked, claims)
    assert {"imports_it.py", "sums_of_it.py", "noise_of_it.py"} <= {Path(name).name for name in then}
    (tmp_path / "noise_of_it.py").write_text("SCALE = 2\n", encoding="utf-8")
    assert [Path(name).name for name in changed_files(then, code_of(asked, claims))] == ["noise_of_it.py"]


def test_the_hashes_of_code_are_of_the_files(tmp_path: Path) -> None:
    first, second = declare(tmp_path, name="first.py"), declare(tmp_path, name="second.py")
    paths = (str(first), str(second))
    then = code_of(Run(paths=paths[:1]), registry.load_claims(paths[:1]))
    assert "first.py" in then
    assert "second.py" not in then
    assert "auditor/results.py" in then
    assert not any(name.startswith("/") for name in then)
    first.write_text(first.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    assert "first.py" in changed_files(then, code_of(Run(paths=paths[:1]), registry.load_claims(paths[:1])))
    assert changed_files({"a": "1", "b": "2"}, {"b": "3", "c": "4"}) == ["a", "b", "c"]
    assert list_names(["auditor/a.py", "b.py"]) == "b.py, auditor/a.py"
    assert list_names([f"{k}.py" for k in range(7)]).endswith("4.py and 2 more")
