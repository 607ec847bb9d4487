"""The pages of docs/: every command and every piece of code is run, generated pages are current, links lead somewhere.

A page is read as a session in one folder, from the top: a block of Python whose first line is a comment with the name
of a file is written to that file, another one is run, and what it prints is shown in a block of text after it; the
lines after ``$`` of a console block are run; ``$ echo $?`` shows the exit code of the one before, which otherwise has
to be 0. Lines that are shown as output have to come, in their order (those of a command with whatever numbers); "..."
stands for some. Blocks behind a comment ``<!-- not run: why -->`` are only checked for the names of their commands and
options.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from auditor.claims import registry
from auditor.cli.main import cli, main
from benchmarks import catalogue, reference

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
#: Pages whose blocks are run here; those of the others are run by tests of their own.
SESSIONS = (
    "tutorial.md",
    "auditing-your-library.md",
    "reading-a-report.md",
    "how-it-works.md",
    "reproducing.md",
    "notebooks.md",
    "for-maintainers.md",
    "for-researchers.md",
    "for-reviewers.md",
    "training.md",
    "certificates.md",
)
_BLOCK = re.compile(
    r"(?P<mark><!-- not run: [^>]+ -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    run: bool


def blocks(page: str) -> list[Block]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return [Block(found["language"], found["text"], not found["mark"]) for found in _BLOCK.finditer(text)]


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Commands of a console block, each with the output that is shown."""
    for part in re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield command, shown


def masked(line: str) -> str:
    """A line without its numbers and its alignment."""
    return " ".join(re.sub(r"-?\d[\d.,^]*", "#", re.sub(r"-{2,}", "-", line)).split())


def assert_shown(shown: list[str], said: str, read: Callable[[str], str] = masked) -> None:
    """Every line that is shown was said, in this order."""
    left = iter([read(line) for line in said.splitlines()])
    for line in shown:
        found = line.strip() in ("", "...") or read(line) in left
        assert found, f"{line!r} is not in\n{said}"


def dpaudit(words: list[str]) -> tuple[int, str, str]:
    """The command line in this process: a process of its own takes seconds to start."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


def called(command: str, folder: Path) -> tuple[int, str]:
    """Exit code and output of a command of a page."""
    command, _, file = command.partition(" > ")
    program, *words = shlex.split(command)
    if program == "dpaudit":
        # Results do not depend on the number of workers, which take seconds to start.
        code, out, err = dpaudit([*words, "--jobs", "1"] if words[0] == "run" else words)
    else:
        assert program == "pytest", command
        done = subprocess.run(
            [sys.executable, "-m", program, "-p", "no:cacheprovider", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        code, out, err = done.returncode, done.stdout, done.stderr
    if file:
        (folder / file.strip()).write_text(out, encoding="utf-8")
    return code, out + err


def run_console(block: Block, folder: Path) -> None:
    code, said = 0, ""
    for command, shown in commands(block):
        if command == "echo $?":
            assert shown == [str(code)], said
            code = 0
            continue
        assert code == 0, said
        code, said = called(command, folder)
        assert_shown(shown, said)
    assert code == 0, said


def run_python(block: Block, folder: Path) -> str:
    script = folder / "block.py"
    script.write_text(block.text, encoding="utf-8")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(script))
    script.unlink()
    return out.getvalue()


def test_what_is_shown_but_was_not_said_is_found() -> None:
    said = "x  violates ε = 1\nlower bound 0.5\n"
    assert_shown(["x violates ε = 2", "..."], said)
    for shown, read in ((["y violates ε = 1"], masked), (["lower bound 0.6"], str.strip)):
        with pytest.raises(AssertionError, match="is not in"):
            assert_shown(shown, said, read)
    with pytest.raises(AssertionError, match="is not in"):
        assert_shown(["lower bound 0.5", "x violates ε = 1"], said)


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the examples of a checkout, which modules are imported from and forgotten with."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    yield tmp_path
    forget_modules(tmp_path)


def forget_modules(folder: Path) -> None:
    """Forget what was imported from a folder, as a process of its own would."""
    for name, module in list(sys.modules.items()):
        if str(folder) in str(getattr(module, "__file__", None)):
            del sys.modules[name]
    registry._load.cache_clear()
    registry._claims.cache_clear()


@pytest.mark.parametrize("page", SESSIONS)
def test_a_page_runs_as_it_is_written(page: str, folder: Path) -> None:
    said = ""
    for block in blocks(page):
        if not block.run:
            continue
        named = re.match(r"# ([\w/]+\.py)\n", block.text)
        if block.language == "python" and named:
            (folder / named[1]).parent.mkdir(exist_ok=True)
            (folder / named[1]).write_text(block.text, encoding="utf-8")
            forget_modules(folder)
        elif block.language == "python":
            said = run_python(block, folder)
        elif block.language == "console":
            run_console(block, folder)
        else:
            assert block.language == "text", f"a block of {block.language!r} is neither run nor shown"
            assert_shown(block.text.splitlines(), said, str.strip)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_has_the_options_that_it_is_given(page: str) -> None:
    inline = re.findall(r"`(dpaudit [^`]+)`", re.sub(_BLOCK, "", (DOCS / page).read_text(encoding="utf-8")))
    shown = [command for block in blocks(page) if block.language == "console" for command, _ in commands(block)]
    for line in [*inline, *shown]:
        words = line.split()
        if words[0] != "dpaudit" or len(words) < 2 or not re.fullmatch(r"[a-z]+", words[1]):
            continue
        assert words[1] in cli.commands, line
        known = {option for parameter in cli.commands[words[1]].params for option in parameter.opts}
        known |= {option for parameter in cli.commands[words[1]].params for option in parameter.secondary_opts}
        given = {word.partition("=")[0] for word in words[2:] if re.match(r"--[a-z]", word)}
        assert given <= {*known, "--help"}, line


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    text = re.sub(_BLOCK, "", (DOCS / page).read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (DOCS / file).resolve() if file else DOCS / page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), target


def anchors(text: str) -> set[str]:
    """Anchors of headings, as forges make them."""
    heads = re.findall(r"^#+ (.+)$", re.sub(_BLOCK, "", text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_catalogue_is_what_the_experiments_declare() -> None:
    with contextlib.chdir(ROOT):
        made = catalogue.document()
    assert made == (DOCS / "catalogue.md").read_text(encoding="utf-8"), (
        "run `python -m benchmarks.catalogue --out docs/catalogue.md`"
    )


def test_the_reference_is_what_the_code_offers() -> None:
    assert reference.document() == (DOCS / "reference.md").read_text(encoding="utf-8"), (
        "run `python -m benchmarks.reference --out docs/reference.md`"
    )


def test_the_reference_has_every_command_and_every_public_name() -> None:
    import auditor

    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert [name for name in cli.commands if f"### dpaudit {name}\n" not in text] == []
    assert [name for name in auditor.__all__ if f"| `{name}" not in text] == []
    groups = {name: command for name, command in cli.commands.items() if isinstance(command, click.Group)}
    parts = {f"{name} {part}": command for name, group in groups.items() for part, command in group.commands.items()}
    assert parts
    assert [name for name in parts if f"#### dpaudit {name}\n" not in text] == []
    for command in [*cli.commands.values(), *parts.values()]:
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert re.search(rf"^\| `[^`]*{max(parameter.opts, key=len)}\b", text, flags=re.MULTILINE)
