"""The action, the jobs, the hooks and the example of continuous integration are run as they are written."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from auditor.claims import registry
from auditor.cli.main import cli, main
from tests.commandline import Said

# Not by an import statement: the library has no types, and comes with distributed.
yaml = importlib.import_module("yaml")

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "ci"
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
WORKFLOW = yaml.safe_load((EXAMPLE / ".github" / "workflows" / "audit.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((EXAMPLE / ".gitlab-ci.yml").read_text(encoding="utf-8"))["audit"]
#: Enough to find what is wrong in the example and to decide the rest, in a fraction of the time.
CHEAP = "--draws=160000\n--jobs=1"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the scripts are of bash")


@pytest.fixture(name="library")
def _library(tmp_path: Path) -> Path:
    """A copy of the example, and a `dpaudit` on the path that is this one."""
    shutil.copytree(EXAMPLE, tmp_path / "library", ignore=shutil.ignore_patterns("__pycache__", "out"))
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "dpaudit"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m auditor "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return tmp_path / "library"


@pytest.fixture(name="here")
def _here(
    library: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Said]]:
    """Commands in this process and in the copy, which is loaded afresh: a process takes seconds to start."""
    monkeypatch.chdir(library)
    monkeypatch.setattr(sys, "path", ["", *sys.path])

    def forget() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "tally"]:
            del sys.modules[name]
        registry._load.cache_clear()
        registry._claims.cache_clear()

    def call(command: str) -> Said:
        program, *arguments = shlex.split(command)
        assert program == "dpaudit"
        capsys.readouterr()
        try:
            main(arguments)
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    forget()
    yield call
    forget()


def bash(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    # As a runner on GitHub calls it.
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@dataclass
class Job:
    """What a runner knows while it runs the steps of the action."""

    inputs: dict[str, str]
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    used: dict[str, dict[str, str]] = field(default_factory=dict)
    summary: str = ""
    code: int = 0
    said: str = ""

    def value(self, name: str) -> str:
        kind, _, rest = name.strip().partition(".")
        if kind == "inputs":
            return self.inputs[rest]
        assert kind == "steps", name
        step, _, output = rest.partition(".outputs.")
        return self.outputs.get(step, {}).get(output, "")

    def filled(self, text: str) -> str:
        return re.sub(r"\$\{\{(.+?)\}\}", lambda found: self.value(found[1]), text)

    def holds(self, condition: str) -> bool:
        for term in condition.split("&&"):
            if term.strip() == "always()":
                continue
            name, wanted = re.fullmatch(r"\s*([\w.-]+) (==|!=) '(\w*)'\s*", term).group(1, 3)  # type: ignore[union-attr]
            if (self.value(name) == wanted) != ("==" in term):
                return False
        return True


def run_action(library: Path, given: Mapping[str, str]) -> Job:
    """The action's steps, as a runner takes them; actions of others and what installs are noted, not run."""
    assert set(given) <= set(ACTION["inputs"])
    job = Job({name: str(given.get(name, about["default"])) for name, about in ACTION["inputs"].items()})
    output, summary = library.parent / "output", library.parent / "summary"
    for step in ACTION["runs"]["steps"]:
        if (job.code and "always()" not in step.get("if", "")) or not job.holds(step.get("if", "always()")):
            continue
        if "uses" in step:
            job.used[step["uses"]] = {name: job.filled(str(value)) for name, value in step["with"].items()}
            continue
        assert step["shell"] == "bash"
        if "pip install" in step["run"]:
            job.used["pip"] = {}
            continue
        for file in (output, summary):
            file.write_text("", encoding="utf-8")
        variables = {name: job.filled(value) for name, value in step.get("env", {}).items()}
        variables |= {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
        done = bash(step["run"], library, **variables)
        job.code, job.said = job.code or done.returncode, job.said + done.stdout + done.stderr
        job.summary += summary.read_text(encoding="utf-8")
        lines = (line.partition("=") for line in output.read_text(encoding="utf-8").splitlines())
        job.outputs.setdefault(step.get("id", ""), {}).update({name: value for name, _, value in lines})
    return job


def from_workflow(**changed: str) -> dict[str, str]:
    """Inputs that the example's workflow gives to the action; upload is an expression there."""
    (step,) = [s for s in WORKFLOW["jobs"]["dpaudit"]["steps"] if "/dpaudit@" in s.get("uses", "")]
    return {**step["with"], "upload": "true", "arguments": CHEAP, **changed}


# ------------------------------------------------------------------------------------------ action


def test_the_workflow_passes_on_the_example(library: Path) -> None:
    job = run_action(library, from_workflow())
    assert job.code == 0, job.said
    assert job.outputs["audit"] == {
        "results": "out/results.json",
        "comment": "out/comment.md",
        "sarif": "out/results.sarif",
        "exit-code": "0",
    }
    assert list(job.used) == ["actions/setup-python@v6", "pip", "github/codeql-action/upload-sarif@v4"]
    assert job.used["github/codeql-action/upload-sarif@v4"] == {
        "sarif_file": "out/results.sarif",
        "category": "dpaudit",
    }
    assert job.summary == (library / "out" / "comment.md").read_text(encoding="utf-8")
    assert "nothing unexpected in 3 claims" in job.summary
    for name in ("results.json", "results.sarif", "junit.xml", "report.html"):
        assert (library / "out" / name).is_file()


def test_the_workflow_fails_on_a_broken_mechanism_and_shows_where(library: Path) -> None:
    file = library / "tally" / "counts.py"
    code = file.read_text(encoding="utf-8")
    file.write_text(code.replace("1 - math.exp(-self.epsilon)", "1 - math.exp(-2 * self.epsilon)"), encoding="utf-8")
    job = run_action(library, from_workflow(upload="false"))
    assert job.code == 1, job.said
    assert job.outputs["audit"]["exit-code"] == "1"
    assert "github/codeql-action/upload-sarif@v4" not in job.used
    line = next(k for k, text in enumerate(code.splitlines(), 1) if text.startswith("@dataclass"))
    assert f"`tally/noisy_count/L1/pure_dp/reference`; at `tally/counts.py:{line}`" in job.summary
    log = json.loads((library / "out" / "results.sarif").read_text(encoding="utf-8"))
    open_ones = [result for result in log["runs"][0]["results"] if "suppressions" not in result]
    (physical,) = [result["locations"][0]["physicalLocation"] for result in open_ones]
    assert (physical["artifactLocation"]["uri"], physical["region"]["startLine"]) == ("tally/counts.py", line)


def test_what_stops_before_there_are_results_fails_with_2_and_says_so(library: Path) -> None:
    (library / "out").mkdir()
    (library / "out" / "results.json").write_text("{}", encoding="utf-8")
    injected = "claims; touch hacked $(touch hacked) `touch hacked`"
    job = run_action(library, from_workflow(path=injected))
    assert job.code == 2, job.said
    assert job.outputs["audit"] == {"exit-code": "2"}
    assert "ended with exit code 2 before it had results" in job.summary
    assert injected in job.said
    assert "github/codeql-action/upload-sarif@v4" not in job.used
    assert not (library / "hacked").exists()


def test_no_expression_stands_in_a_script() -> None:
    """What an input holds must not become code."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(ACTION["inputs"])


def test_the_page_lists_the_inputs_with_their_defaults() -> None:
    rows = dict(re.findall(r"^\| `([\w-]+)` \| (?:`(.*?)`|none) \|", PAGE, flags=re.MULTILINE))
    assert rows == {name: about["default"] for name, about in ACTION["inputs"].items()}
    for name in ACTION["outputs"]:
        assert f"`{name}`" in PAGE


def test_the_workflow_uses_the_outputs_that_there_are() -> None:
    text = (EXAMPLE / ".github" / "workflows" / "audit.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"steps\.dpaudit\.outputs\.([\w-]+)", text)) <= set(ACTION["outputs"])


# --------------------------------------------------------------------------- other jobs, and the page


def commands() -> list[str]:
    (block,) = re.findall(r"^```console\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    return [line[2:] for line in block.splitlines()]


def test_the_commands_of_the_page_and_of_gitlab_run(here: Callable[[str], Said]) -> None:
    change, audit, report = commands()
    assert change == "cd examples/ci"
    assert GITLAB["script"] == [audit]
    assert GITLAB["after_script"] == [f"{report} > out/comment.md"]
    done = here(f"{audit} {' '.join(CHEAP.split())}")
    assert done.code == 0, done
    assert "3 claims: 2 as expected, 0 unexpected, 1 known" in done.out
    assert here(report).out.startswith("<!-- dpaudit -->\n### dpaudit: nothing unexpected in 3 claims\n")
    assert Path(GITLAB["artifacts"]["reports"]["junit"]).is_file()
    assert GITLAB["allow_failure"]["exit_codes"] == [3]


@pytest.mark.parametrize(
    "file", [".github/workflows/audit.yml", ".gitlab-ci.yml", ".pre-commit-config.yaml"], ids=lambda f: Path(f).stem
)
def test_the_page_shows_the_files_of_the_example(file: str) -> None:
    shown = re.findall(r"^```yaml\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert (EXAMPLE / file).read_text(encoding="utf-8") in shown
    assert f"`{file}`" in PAGE or file == ".gitlab-ci.yml"


# ------------------------------------------------------------------------------------------- hooks


def test_the_hooks_run_as_the_example_configures_them(here: Callable[[str], Said]) -> None:
    (repository,) = yaml.safe_load(Path(".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    configured = {hook["id"]: {**HOOKS[hook["id"]], **hook} for hook in repository["hooks"]}
    assert set(configured) == set(HOOKS)
    names = [path.as_posix() for path in sorted(Path().rglob("*.py"))]
    for id_, said in (("dpaudit-list", "tally/float_count"), ("dpaudit-run", "0 unexpected, 1 known")):
        hook = configured[id_]
        changed = [name for name in names if re.search(hook.get("files", ""), name)]
        changed = [name for name in changed if not re.search(hook.get("exclude", "^$"), name)]
        given = changed if hook.get("pass_filenames", True) else []
        # pre-commit splits an entry as a shell does, and puts the arguments before the names.
        cheap = CHEAP.split() if id_ == "dpaudit-run" else []
        done = here(f"{hook['entry']} {shlex.join([*hook['args'], *cheap, *given])}")
        assert done.code == 0, done
        assert said in done.out


def test_the_hook_takes_claim_files_only_and_all_at_once() -> None:
    hook = HOOKS["dpaudit-run"]
    taken = [
        name
        for name in ("claims/a.py", "claims/_shared.py", "x/claims/b/c.py", "claims/__init__.py", "tally/claims.py")
        if re.search(hook["files"], name) and not re.search(hook["exclude"], name)
    ]
    assert taken == ["claims/a.py", "x/claims/b/c.py"]
    assert hook["require_serial"] is True


def test_every_option_that_is_written_down_exists() -> None:
    known = {option for command in cli.commands.values() for parameter in command.params for option in parameter.opts}
    texts = [PAGE, (ROOT / "action.yml").read_text(encoding="utf-8"), json.dumps(HOOKS)]
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", "\n".join(texts)))
    of_others = {"--quiet", "--disable-pip-version-check", "--edit-last", "--create-if-none", "--body-file"}
    assert named - of_others <= known
