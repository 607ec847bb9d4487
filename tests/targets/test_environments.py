"""Virtual environments of audited libraries: what is built, when, and what a target in one can see."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from auditor.errors import SpecificationError
from auditor.targets import environments
from auditor.targets.environments import (
    cache_folder,
    check_requirements,
    environment_of,
    find_environment,
    list_installed,
    pip_target,
)
from auditor.targets.process import ProcessTarget


def wheel(folder: Path, version: str, scale: int) -> Path:
    """A wheel of a tiny library: pip installs it without an index and without building anything."""
    path = folder / f"tinynoise-{version}-py3-none-any.whl"
    about = f"tinynoise-{version}.dist-info"
    parts = {
        "tinynoise.py": f"SCALE = {scale}\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: tinynoise\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*parts, f"{about}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**parts, f"{about}/RECORD": record}.items():
            archive.writestr(name, content)
    return path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A cache with an environment that has the tiny library, and the library's wheel."""
    cache, library = tmp_path_factory.mktemp("cache"), wheel(tmp_path_factory.mktemp("wheels"), "1.5", 3)
    find_environment([str(library)], cache=cache)
    return cache, library


# ------------------------------------------------------------------------------------- building


def test_an_environment_is_built_once_and_has_what_was_asked_for(
    shared: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    cache, library = shared
    folder = find_environment([str(library)], cache=cache)
    said = capfd.readouterr()
    assert said.out + said.err == ""  # it was there
    assert folder.parent == cache
    assert list_installed(folder)["tinynoise"] == "1.5"
    assert "numpy" not in list_installed(folder)


def test_an_environment_says_that_it_is_built_and_where(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = find_environment([], cache=tmp_path)
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err == f"building an environment with no packages ...; kept in {folder}\n"
    assert subprocess.run([folder / "bin" / "python", "-c", "import json"], check=False).returncode == 0


def test_a_build_that_was_killed_is_done_again(tmp_path: Path) -> None:
    folder = find_environment([], cache=tmp_path)
    (folder / "dpaudit-environment.json").unlink()  # it is written last
    (folder / "half").touch()
    assert find_environment([], cache=tmp_path) == folder
    assert not (folder / "half").exists()


def test_an_environment_whose_interpreter_has_gone_is_built_again(tmp_path: Path) -> None:
    folder = find_environment([], cache=tmp_path)
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to(tmp_path / "gone")
    assert find_environment([], cache=tmp_path) == folder
    assert list_installed(folder) == {}


def test_two_builders_at_once_build_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found: list[Path] = []
    builders = [threading.Thread(target=lambda: found.append(find_environment([], cache=tmp_path))) for _ in range(3)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert len(found) == 3
    assert len(set(found)) == 1
    assert capfd.readouterr().err.count("building") == 1


def test_a_failed_build_leaves_nothing_and_quotes_pip(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match=r"no environment with .*missing.* could be built") as caught:
        find_environment([str(tmp_path / "missing.whl")], cache=tmp_path / "cache")
    assert "missing.whl" in str(caught.value).splitlines()[-1]
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_a_build_past_its_limit_ends_with_all_that_it_started(tmp_path: Path) -> None:
    slow = tmp_path / "python"
    script = f"touch $TMPDIR/unpacked; echo $TMPDIR > {tmp_path}/place; sleep 30 & echo $! > {tmp_path}/child; sleep 30"
    slow.write_text(f'#!/bin/sh\ncase "$*" in *venv*) {script};; esac\n')
    slow.chmod(0o755)
    begun = time.monotonic()
    with pytest.raises(SpecificationError, match=r"within 0.5 s"):
        find_environment([], cache=tmp_path, python=str(slow), limit=0.5)
    assert time.monotonic() - begun < 20
    assert not Path((tmp_path / "place").read_text().strip()).exists()
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "cmdline"
    while child.exists() and child.read_bytes():  # it is empty of a process that is dead and not yet reaped
        assert time.monotonic() - begun < 20
        time.sleep(0.01)


def test_interpreters_that_do_not_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="does not run"):
        find_environment([], cache=tmp_path, python=str(tmp_path / "python"))


# ------------------------------------------------------------------------------------- names in the cache


@pytest.fixture
def unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which nothing is built: for tests of names alone."""
    monkeypatch.setattr(environments, "_build", lambda folder, *_: folder.mkdir(exist_ok=True))
    return tmp_path / "cache"


def test_the_order_of_requirements_does_not_matter_and_anything_else_does(unbuilt: Path) -> None:
    folder = find_environment(["b<2", "a==1"], cache=unbuilt)
    assert folder == find_environment(["a==1", "b<2", "a==1"], cache=unbuilt)
    assert folder != find_environment(["a==1", "b<3"], cache=unbuilt)
    assert folder != find_environment(["a==1"], cache=unbuilt)
    other = unbuilt.parent / "python"
    other.write_text("#!/bin/sh\necho another version\n")
    other.chmod(0o755)
    assert folder != find_environment(["b<2", "a==1"], cache=unbuilt, python=str(other))


def test_a_changed_local_package_is_installed_again(
    unbuilt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "work" / "package"
    (source / "src" / "package.egg-info").mkdir(parents=True)
    (source / "src" / "module.py").write_text("SCALE = 1\n")
    monkeypatch.chdir(source.parent)
    forms = ["./package", "./package[fast]", str(source), f"package @ file://{source}"]
    before = [find_environment([form], cache=unbuilt) for form in forms]
    assert len(set(before)) == len(forms)
    # What building and importing it writes is no change.
    (source / "build").mkdir()
    (source / "build" / "module.py").touch()
    (source / "src" / "package.egg-info" / "PKG-INFO").touch()
    (source / ".git").mkdir()
    (source / ".git" / "HEAD").touch()
    assert [find_environment([form], cache=unbuilt) for form in forms] == before
    (source / "src" / "module.py").write_text("SCALE = 2\n")
    after = [find_environment([form], cache=unbuilt) for form in forms]
    assert not set(before) & set(after)
    # pip takes this name for a package of the index, so the folder beside it does not count.
    plain = find_environment(["package"], cache=unbuilt)
    (source / "src" / "module.py").write_text("SCALE = 3\n")
    assert find_environment(["package"], cache=unbuilt) == plain


@pytest.mark.parametrize(
    "form",
    ["{}", "{}[fast]", '{}[fast] ; python_version > "3"', "own @ file://{url}", "own @ file://localhost{url}#egg=own"],
)
def test_every_way_to_name_a_local_package_sees_its_changes(form: str, unbuilt: Path, tmp_path: Path) -> None:
    package, behind = tmp_path / "my package", tmp_path / "behind"
    package.mkdir()
    behind.mkdir()
    (package / "pyproject.toml").write_text("[project]\n")
    (package / "linked").symlink_to(behind)
    (behind / "again").symlink_to(package)  # round and round
    requirement = form.format(package, url=str(package).replace(" ", "%20"))
    found = [find_environment([requirement], cache=unbuilt)]
    for file in (package / "own.py", behind / "beside.py"):
        file.write_text("changed = True\n")
        found.append(find_environment([requirement], cache=unbuilt))
    assert len(set(found)) == 3


def test_a_changed_wheel_is_installed_again(unbuilt: Path, tmp_path: Path) -> None:
    library = wheel(tmp_path, "1.5", 3)
    before = find_environment([str(library)], cache=unbuilt)
    assert before.name.startswith("tinynoise-1.5")
    wheel(tmp_path, "1.5", 4)
    assert find_environment([str(library)], cache=unbuilt) != before


def test_names_in_the_cache_hold_no_secrets(unbuilt: Path) -> None:
    folder = find_environment(["name @ https://user:hidden@host/name.zip?token=hidden"], cache=unbuilt)
    assert "hidden" not in str(folder)


def test_where_environments_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DPAUDIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / "home" / ".cache" / "dpaudit" / "environments"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert cache_folder() == tmp_path / "user" / "dpaudit" / "environments"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPAUDIT_CACHE", "own")
    assert cache_folder() == tmp_path / "own" / "environments"


def test_a_cache_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SpecificationError, match="DPAUDIT_CACHE names another"):
        find_environment([], cache=tmp_path / "file" / "cache")


@pytest.mark.parametrize(
    ("requirement", "said"),
    [
        ("--index-url=https://elsewhere/", "not an option"),
        ("-r requirements.txt", "not an option"),
        ("numpy --pre", "not an option"),
        ("", "expected text"),
        ("  ", "expected text"),
        ("numpy\n--pre", "expected text"),
        ("<", "quoted"),
        (7, "expected text"),
        ("--index-url=https://user:hidden@elsewhere/", "not an option"),
    ],
)
def test_other_requirements_are_refused(requirement: str, said: str) -> None:
    with pytest.raises(SpecificationError, match=said) as caught:
        check_requirements([requirement])
    assert "hidden" not in str(caught.value)


def test_one_text_is_no_sequence_of_requirements() -> None:
    with pytest.raises(SpecificationError, match="a sequence"):
        check_requirements("numpy")


# ------------------------------------------------------------------------------------- targets

ADAPTER = """
import http.client, importlib.util, os, random, shutil, sys
import beside
import tinynoise

def noise(data, rng=None):
    return data[0] + tinynoise.SCALE + beside.ONE

def surroundings(data):
    ours = any(name.startswith(("PYTHON", "DPAUDIT_AUTHORIZATION")) for name in os.environ)
    return [importlib.util.find_spec("numpy") is None, importlib.util.find_spec("auditor") is None, ours,
            shutil.which("python"), sys.prefix, hasattr(http.client, "HTTPConnection"), os.getcwd()]
"""


def test_a_target_in_an_environment_sees_its_libraries_and_none_of_ours(
    shared: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, library = shared
    (tmp_path / "adapter.py").write_text(ADAPTER)
    (tmp_path / "beside.py").write_text("ONE = 1\n")
    monkeypatch.chdir(tmp_path)
    poison = tmp_path / "poison"
    poison.mkdir()
    (poison / "tinynoise.py").write_text("SCALE = 1000\n")
    monkeypatch.setenv("DPAUDIT_AUTHORIZATION", "hidden")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(poison), *sys.path]))
    rng = np.random.default_rng(0)
    for where in ("adapter.py", "adapter"):
        with pip_target([str(library)], f"{where}:noise", cache=cache) as target:
            assert target([10], 3, rng) == [14, 14, 14]
            assert environment_of(target) == find_environment([str(library)], cache=cache)
    with pip_target([str(library)], "adapter.py:surroundings", cache=cache) as target:
        no_numpy, no_auditor, variables, python, prefix, standard, folder = target([0], 1, rng)[0]
    environment_ = str(find_environment([str(library)], cache=cache))
    assert (no_numpy, no_auditor, variables, standard) == (True, True, False, True)
    assert prefix == environment_
    assert python == os.path.join(environment_, "bin", "python")
    assert folder == str(tmp_path)


def test_other_targets_have_no_environment() -> None:
    assert environment_of(ProcessTarget([sys.executable])) is None
    assert environment_of(len) is None


@pytest.mark.parametrize(
    ("where", "said"),
    [("missing.py:f", "no such file"), ("module", "module:name"), (":f", "module:name"), ("m:", "name")],
)
def test_functions_that_cannot_be_are_refused_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecificationError, match=said):
        pip_target(["tinynoise"], where, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
