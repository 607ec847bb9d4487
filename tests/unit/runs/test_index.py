"""The index of declared claims: when it is valid, and that nothing but time depends on it.

What an index depends on in the process is given (`here`), so that it does not matter what other tests have imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from auditor.claims import registry
from auditor.errors import SpecificationError
from auditor.runs import dependencies, index
from auditor.runs.declarations import ChangedError, Declarations
from auditor.runs.dependencies import Surroundings, hash_versions, look_around
from auditor.runs.index import Index, keep_index, read_index
from tests.commandline import ROOT, Command

HEADER = """
import numpy as np
from auditor import Pair, PureDP
from auditor.claims import Source, entry, mutant, privacy

PAIR = Pair(np.array([0]), np.array([1]), "one bit")

def response(data, n, rng):
    return np.where(rng.random(n) < 0.7, data[0], 1 - data[0])
"""
ENTRY = """
@entry("900/{name}", title="The entry {name}", source=Source("900", "section 1"))
def {name}():
    yield privacy(response, PureDP(1.0), PAIR, case="kept")
    yield mutant("broken", response, PureDP(0.25), PAIR)
"""


def write(file: Path, name: str, header: str = "") -> Path:
    """A file that declares one entry of two claims."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(HEADER + header + ENTRY.format(name=name), encoding="utf-8")
    return file


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with claims in two files, in which the index is on."""
    work = tmp_path / "work"
    write(work / "claims" / "first.py", "first")
    write(work / "claims" / "second.py", "second")
    monkeypatch.chdir(work)
    monkeypatch.delenv(index.OFF, raising=False)
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [str(work / "ahead"), str(work / "lib"), *sys.path])
    before = set(sys.modules)
    yield work
    forget(before, work)


def forget(before: set[str], work: Path) -> None:
    """Forget modules of a folder, and what was declared."""
    for name in set(sys.modules) - before:
        if str(work) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]
    registry._load.cache_clear()
    registry._claims.cache_clear()


@pytest.fixture(name="here")
def _here(folder: Path) -> Surroundings:
    """This process as if it had just begun, long after all files were written."""
    return replace(look_around(), folder=str(folder), strangers=(), begun=time.time() + 60)


@pytest.fixture(name="cache")
def _cache(folder: Path) -> Path:
    return folder.parent / "cache" / "index"


PATHS = ("claims",)


def make(here: Surroundings, cache: Path) -> Index:
    """Load all claims, and see that an index of them is kept."""
    made = Declarations(PATHS, here, cache).index
    assert read_index(cache, PATHS, here) == made
    return made


# --------------------------------------------------------------------------------- what it holds


def test_an_index_has_what_is_declared(here: Surroundings, cache: Path) -> None:
    made = make(here, cache)
    assert [(entry.id, entry.title, entry.document, entry.file) for entry in made.entries] == [
        ("900/first", "The entry first", "900", str(Path("claims", "first.py"))),
        ("900/second", "The entry second", "900", str(Path("claims", "second.py"))),
    ]
    assert [(claim.id, claim.guarantee, claim.expected, claim.is_mutant) for claim in made.claims] == [
        (f"900/{name}/L1/pure_dp/{case}", f"ε = {epsilon}", expected, mutant)
        for name in ("first", "second")
        for case, epsilon, expected, mutant in (
            ("kept", "1", "consistent", False),
            ("broken", "0.25", "violation", True),
        )
    ]


def test_names_of_files_may_be_of_any_bytes(folder: Path, here: Surroundings, cache: Path) -> None:
    for place in (folder / "claims", folder / "ahead"):
        place.mkdir(exist_ok=True)
        Path(os.fsdecode(os.fsencode(place) + b"/of old times \xe9.txt")).touch()
    assert Declarations(["claims"], here, cache).index == Declarations(["claims"], here, cache).index
    assert len(list(cache.iterdir())) == 1


def test_claims_are_loaded_from_their_files_alone(here: Surroundings, cache: Path) -> None:
    make(here, cache)
    declared = Declarations(PATHS, here, cache)
    (claim,) = declared.select("second and kept")
    assert claim.id == "900/second/L1/pure_dp/kept"
    assert declared.files == (str(Path("claims", "second.py")),)
    assert len(declared.select(None)) == 4
    assert not declared.files


def test_without_an_index_all_are_loaded(here: Surroundings, cache: Path) -> None:
    declared = Declarations(PATHS, here, cache)
    (claim,) = declared.select("second and kept")
    assert claim.id == "900/second/L1/pure_dp/kept"
    assert declared.files == ()


def test_an_unknown_id_gets_suggestions(here: Surroundings, cache: Path) -> None:
    make(here, cache)
    with pytest.raises(SpecificationError, match=r"no claim matches 'secnod' .* did you mean 900/second"):
        Declarations(PATHS, here, cache).select("secnod")


def test_claims_that_are_not_what_the_index_has_are_all_loaded(here: Surroundings, cache: Path) -> None:
    made = make(here, cache)
    wrong = replace(made, claims=tuple(replace(claim, guarantee="ε = 7") for claim in made.claims))
    (kept,) = cache.iterdir()
    read = index._dependencies(json.loads(kept.read_bytes().partition(b"\n")[2])["dependencies"])
    for expression in ("second and kept", None):
        keep_index(cache, PATHS, here, wrong, read)
        declared = Declarations(PATHS, here, cache)
        assert declared.index == wrong
        assert {str(claim.draft.guarantee) for claim in declared.select(expression)} <= {"ε = 1", "ε = 0.25"}
        assert declared.index == made
        assert declared.files == ()
        assert read_index(cache, PATHS, here) is None
    keep_index(cache, PATHS, here, wrong, read)
    with pytest.raises(ChangedError):
        Declarations(PATHS, here, cache).load({made.claims[0].id})


# ---------------------------------------------------------------------------------- when it is valid

READING = """
import os
from pathlib import Path

import index_helper
from index_helper_package import inner

try:
    import index_missing
except ImportError:
    pass

TEXT = Path("data.txt").read_text()
try:
    MORE = Path("absent.txt").read_text()
except OSError:
    MORE = ""
TABLES = sorted(os.listdir("tables"))
MODE = os.environ.get("INDEX_MODE", "")
"""


def prepare(folder: Path) -> None:
    """Claims that read all kinds of things when they are loaded."""
    package = folder / "lib" / "index_helper_package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "inner.py").write_text("INNER = 1\n")
    (folder / "lib" / "index_helper.py").write_text("HELP = 1\n")
    (folder / "data.txt").write_text("one")
    (folder / "tables").mkdir()
    write(folder / "claims" / "first.py", "first", READING)


def edit(name: str, text: str = "# edited\n") -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(text)

    return change


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file of claims": edit("claims/first.py"),
    "another file of claims": edit("claims/second.py"),
    "a new file of claims": lambda folder: write(folder / "claims" / "third.py", "third"),
    "a new file of claims in a new folder": lambda folder: write(folder / "claims" / "more" / "third.py", "third"),
    "a file of claims less": lambda folder: (folder / "claims" / "second.py").unlink(),
    "a module that claims import": edit("lib/index_helper.py"),
    "a module of a package that claims import": edit("lib/index_helper_package/inner.py"),
    "a package in place of its module": lambda folder: (folder / "lib" / "index_helper_package" / "inner").mkdir(),
    "a module found first": edit("ahead/numpy.py"),
    "a module that was missing": edit("ahead/index_missing.py"),
    "a distribution": lambda folder: (folder / "ahead" / "some-1.0.dist-info").mkdir(parents=True),
    "data": edit("data.txt"),
    "data less": lambda folder: (folder / "data.txt").unlink(),
    "data that were missing": edit("absent.txt"),
    "a name in a folder that is listed": edit("tables/new.csv"),
    "a name in a folder of sources": edit("claims/beside.csv"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_what_was_read_ends_an_index(what: str, folder: Path, here: Surroundings, cache: Path) -> None:
    prepare(folder)
    make(here, cache)
    CHANGES[what](folder)
    assert read_index(cache, PATHS, here) is None


def test_compiled_files_that_come_while_claims_are_loaded_do_not_count(
    folder: Path, here: Surroundings, cache: Path
) -> None:
    """`pkgutil.iter_modules` lists folders within packages, and the first process of all compiles what is there."""
    (folder / "lib" / "__pycache__").mkdir(parents=True)
    compiles = 'import os, pathlib\nos.listdir("lib/__pycache__")\npathlib.Path("lib/__pycache__/new.pyc").touch()\n'
    write(folder / "claims" / "first.py", "first", compiles)
    make(here, cache)


def test_what_is_not_read_does_not_end_an_index(
    folder: Path, here: Surroundings, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(folder)
    made = make(here, cache)
    edit("other.txt")(folder)
    edit("ahead/another.py")(folder)
    (folder / "out").mkdir()
    (folder / "another_module.py").touch()
    (folder / "claims" / "__pycache__").mkdir(exist_ok=True)
    os.utime(folder / "claims" / "first.py")
    monkeypatch.setenv("INDEX_OTHER", "1")
    assert read_index(cache, PATHS, here) == made


def test_a_variable_that_was_asked_for_ends_an_index(
    folder: Path, here: Surroundings, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(folder)
    monkeypatch.delenv("INDEX_MODE", raising=False)
    made = make(here, cache)
    monkeypatch.setenv("INDEX_MODE", "")
    assert read_index(cache, PATHS, here) is None
    monkeypatch.delenv("INDEX_MODE")
    assert read_index(cache, PATHS, here) == made


def test_an_index_is_of_these_paths_versions_and_this_folder(here: Surroundings, cache: Path) -> None:
    make(here, cache)
    for other in (
        replace(here, versions="others"),
        replace(here, folder=str(cache)),
        replace(here, search=(*here.search, str(cache))),
    ):
        assert read_index(cache, PATHS, other) is None
    assert read_index(cache, ("claims/first.py",), here) is None


def test_versions_are_of_distributions_python_and_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, engine = tmp_path / "site-packages", tmp_path / "engine"
    (place / "some-1.0.dist-info").mkdir(parents=True)
    (engine / "inner").mkdir(parents=True)
    (engine / "inner" / "part.py").write_text("1")
    monkeypatch.setattr(dependencies, "_ENGINE", str(engine))
    found = [hash_versions([str(place)])]

    def differs() -> bool:
        found.append(hash_versions([str(place)]))
        return found[-1] not in found[:-1]

    assert not differs()
    (place / "some-1.0.dist-info").rename(place / "some-1.1.dist-info")
    assert differs()
    os.utime(place / "some-1.1.dist-info", (0, 0))
    assert differs()
    (engine / "inner" / "part.py").write_text("2")
    assert differs()
    (engine / "table.json").write_text("{}")
    assert differs()
    monkeypatch.setattr(sys, "version", "another")
    assert differs()


def test_a_changed_source_makes_the_index_again(folder: Path, here: Surroundings, cache: Path) -> None:
    before = set(sys.modules)
    make(here, cache)
    write(folder / "claims" / "second.py", "another")
    forget(before, folder)
    assert [entry.id for entry in make(here, cache).entries] == ["900/first", "900/another"]


# ------------------------------------------------------------------------------------ when there is none


def kept(cache: Path) -> list[Path]:
    return sorted(cache.iterdir()) if cache.is_dir() else []


UNSEEN = {
    "a program": "import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', ''], check=True)\n",
    "another folder": "import os\nos.chdir(os.getcwd())\n",
    "what it has written": "open('made.txt', 'w').close()\nopen('made.txt').close()\n",
}


@pytest.mark.parametrize("what", UNSEEN)
def test_claims_that_read_what_cannot_be_seen_have_no_index(
    what: str, folder: Path, here: Surroundings, cache: Path
) -> None:
    write(folder / "claims" / "first.py", "first", UNSEEN[what])
    assert len(Declarations(PATHS, here, cache).index.claims) == 4
    assert kept(cache) == []


def test_sources_younger_than_the_process_have_no_index(here: Surroundings, cache: Path) -> None:
    assert len(Declarations(PATHS, replace(here, begun=time.time()), cache).index.claims) == 4
    assert kept(cache) == []


def test_a_process_that_has_loaded_others_has_no_index(here: Surroundings, cache: Path) -> None:
    now = look_around()
    assert __name__ in now.strangers
    assert not any(name.partition(".")[0] in ("auditor", "numpy", "os", "pytest") for name in now.strangers)
    make(here, cache)
    (file,) = kept(cache)
    file.write_bytes(b"")
    declared = Declarations(PATHS, replace(here, strangers=now.strangers), cache)
    assert len(declared.select("second")) == 2
    assert kept(cache) == [file]
    assert file.read_bytes() == b""


def test_an_index_can_be_done_without(here: Surroundings, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(index.OFF, "1")
    assert len(Declarations(PATHS, here, cache).select("second")) == 2
    assert kept(cache) == []


LASTING = {
    "the search path": "import sys\nsys.path.insert(0, 'elsewhere')\n",
    "a variable": "import os\nos.environ['INDEX_SET'] = '1'\n",
    "the global generator": "np.random.seed(1)\n",
    "the other global generator": "import random\nrandom.seed(1)\n",
    "floating-point errors": "np.seterr(all='ignore')\n",
}


@pytest.mark.parametrize("what", LASTING)
def test_files_that_leave_something_for_others_are_loaded_together(
    what: str, folder: Path, here: Surroundings, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    monkeypatch.setenv("INDEX_SET", "0")  # so that it is restored
    write(folder / "claims" / "first.py", "first", LASTING[what])
    with np.errstate():
        assert make(here, cache).whole
    declared = Declarations(PATHS, here, cache)
    assert len(declared.select("second")) == 2
    assert declared.files == ()


def test_a_package_of_claims_leaves_nothing_for_others(folder: Path, here: Surroundings, cache: Path) -> None:
    (folder / "claims" / "__init__.py").touch()
    assert not make(here, cache).whole


# ------------------------------------------------------------------------------------------- the file


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff\xfe", b"0" * 64 + b"\n{}"], ids=repr)
def test_a_damaged_index_is_made_again(damage: bytes, here: Surroundings, cache: Path) -> None:
    made = make(here, cache)
    (file,) = kept(cache)
    whole = file.read_bytes()
    for content in (damage, whole[:-9], whole.replace(b"second", b"third_")):
        file.write_bytes(content)
        assert read_index(cache, PATHS, here) is None
        assert make(here, cache) == made
    assert kept(cache) == [file]
    assert file.read_bytes() == whole


def test_a_folder_in_place_of_the_index_does_no_harm(here: Surroundings, cache: Path) -> None:
    made = make(here, cache)
    (file,) = kept(cache)
    file.unlink()
    (file / "inside").mkdir(parents=True)
    declared = Declarations(PATHS, here, cache)
    assert declared.index == made
    assert len(declared.select("second")) == 2
    assert kept(cache) == [file]


def test_a_cache_that_cannot_be_written_does_no_harm(here: Surroundings, cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("a file")
    assert len(Declarations(PATHS, here, cache).select("second")) == 2
    assert cache.read_text() == "a file"


def test_the_newest_indexes_are_kept(here: Surroundings, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "KEPT", 2)
    places = [replace(here, versions=f"version {k}") for k in range(4)]
    for k, place in enumerate(places):
        make(place, cache)
        os.utime(cache / index._name(PATHS, place), (k, k))
    assert [read_index(cache, PATHS, place) is not None for place in places] == [False, False, True, True]


def test_others_see_all_of_an_index_or_nothing(here: Surroundings, cache: Path) -> None:
    made = make(here, cache)
    (file,) = kept(cache)
    read = index._dependencies(json.loads(file.read_bytes().partition(b"\n")[2])["dependencies"])
    writers = [threading.Thread(target=keep_index, args=(cache, PATHS, here, made, read)) for _ in range(8)]
    for writer in writers:
        writer.start()
    seen = 0
    while any(writer.is_alive() for writer in writers) or not seen:
        assert read_index(cache, PATHS, here) == made
        seen += 1
    assert kept(cache) == [file]


# ---------------------------------------------------------------------------------------- the command

FRESH = """
import sys
from auditor.runs import dependencies
dependencies.MARGIN = -60.0  # the claims were written a moment ago
from auditor.cli.main import main
for words in {commands!r}:
    try:
        main(words)
    except SystemExit as stop:
        print("exit code", stop.code)
    print("numpy", "numpy" in sys.modules)
"""
LIST, AS_JSON, TYPO = ["list", "claims"], ["list", "claims", "--json"], ["run", "claims", "-k", "secnod"]
SHOW = ["show", "900/second", "claims"]
RUN = ["run", "claims", "-k", "second and kept", "--draws", "2000", "--jobs", "2", "--out"]


def fresh(*commands: list[str]) -> tuple[list[str], str]:
    """Commands in a new process: what each printed, and what all said on standard error."""
    code = FRESH.format(commands=list(commands))
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    parts = done.stdout.split("numpy ")
    return [parts[0], *(part.partition("\n")[2] for part in parts[1:-1])], done.stderr + "".join(
        "numpy\n" if part.startswith("True") else "" for part in parts[1:2]
    )


def test_a_command_gives_the_same_with_an_index_and_without(
    dpaudit: Command, folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loud = "import sys\nprint('first is loaded', file=sys.stderr)\n"
    write(folder / "claims" / "first.py", "first", loud)
    commands = (LIST, AS_JSON, TYPO, [*RUN, "with"])
    (said, *_), errors = fresh(LIST)
    assert "first is loaded" in errors
    assert len(kept(cache)) == 1
    with_index, errors = fresh(*commands)
    shown, more = fresh(SHOW)
    assert "first is loaded" not in errors + more
    assert "numpy\n" not in errors  # of a list
    monkeypatch.setenv(index.OFF, "1")
    commands = (LIST, AS_JSON, TYPO, [*RUN, "without"])
    without = [dpaudit(*command) for command in commands]
    assert [part.partition("exit code")[0] for part in with_index] == [each.out for each in without]
    assert said == with_index[0]
    assert shown == [dpaudit(*SHOW).out]
    assert [f"exit code {each.code}" in part for part, each in zip(with_index, without, strict=True)][2:] == [
        True,
        True,
    ]
    assert without[2].err.strip() in errors
    assert Path("with", "results.json").read_bytes() == Path("without", "results.json").read_bytes()
    records = [json.loads(Path(out, "run.json").read_text())["sources"] for out in ("with", "without")]
    assert records[0] == records[1]
