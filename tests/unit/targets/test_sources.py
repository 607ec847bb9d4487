"""Source text of classes is what `inspect` finds; published hashes are what they were."""

from __future__ import annotations

import hashlib
import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.targets import one_draw, source_hash
from auditor.targets.callables import load_file
from auditor.targets.sources import find_versions, hash_bytes, hash_files, hash_parts, imported_files, source_text
from auditor.targets.target_names import source_of
from mechanisms.additive_noise import laplace
from mechanisms.selection import sparse_vector

MODULE = '''\
import functools


@functools.total_ordering
class Decorated:
    """Two lines

    and a nested class."""

    class Inner:
        x = 1

    # a comment inside
    def __lt__(self, other):
        return True
# a comment outside

def made():
    class Local:
        y = 2

    return Local

if True:
    class Under:
        pass

class Twice:
    a = 1

class Twice:
    a = 2
'''


def classes(module: Any) -> list[type]:
    return [found for found in vars(module).values() if inspect.isclass(found) and found.__module__ == module.__name__]


@pytest.fixture
def written(tmp_path: Path) -> Any:
    path = tmp_path / "written.py"
    path.write_text(MODULE, encoding="utf-8")
    return load_file(path)


def test_the_text_is_that_of_inspect(written: Any) -> None:
    subjects = [*classes(laplace), *classes(sparse_vector), written.Decorated, written.Decorated.Inner, written.Under]
    assert len(subjects) > 6
    for subject in subjects:
        lines, first = inspect.getsourcelines(subject)
        assert source_text(subject) == ("".join(lines), first)
    assert source_text(written.Decorated)[0].startswith("@functools")


def test_of_functions_and_local_classes_too(written: Any) -> None:
    assert source_text(written.made)[0].startswith("def made")
    assert source_text(written.made()) == ("    class Local:\n        y = 2\n", 19)
    assert "a = 1" in source_text(written.Twice)[0]  # as inspect has it


@pytest.mark.parametrize("subject", [int, np.ndarray, type("Made", (), {})])
def test_without_source_it_raises_as_inspect_does(subject: type) -> None:
    with pytest.raises((OSError, TypeError)):
        source_text(subject)


def test_a_file_that_can_no_longer_be_read_raises(tmp_path: Path) -> None:
    path = tmp_path / "gone.py"
    path.write_text("class Here:\n    pass\n", encoding="utf-8")
    module = load_file(path)
    path.write_text("class Here(:\n", encoding="utf-8")
    with pytest.raises(OSError, match="can no longer be parsed"):
        source_text(module.Here)
    assert module.__name__ in sys.modules


def sha(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def test_hashes_in_published_files_and_ledgers_stay_the_same(tmp_path: Path) -> None:
    a, b, target = tmp_path / "a.py", tmp_path / "b.py", tmp_path / "target.py"
    a.write_bytes(b"1\n")
    b.write_bytes(b"2\n")
    assert hash_bytes(b"x") == hashlib.sha256(b"x").hexdigest()[:16]  # specification and sources of a manifest
    assert hash_parts(b"x", b"yz") == sha(sha(b"x") + sha(b"yz")).hex()[:16]  # parts of a ledger's fingerprint
    assert hash_parts(b"xy", b"z") != hash_parts(b"x", b"yz")
    expected = sha(b"".join(sorted([sha(b"1\n"), sha(b"2\n")]))).hex()[:16]  # code of a run.json and a journal
    assert hash_files([a, b]) == hash_files([b, a]) == expected
    target.write_text("def draw(data, rng):\n    return 1\n", encoding="utf-8")
    draw = load_file(target).draw
    text = sha(b"def draw(data, rng):\n    return 1\n").hex()[:16]
    assert source_hash(draw) == source_hash(one_draw(draw)) == text  # a claim of a results.json
    name = f"exec:run {target}"
    words = [name.encode(), b"run", str(target).encode()]
    assert source_of(name) == sha(b"\0".join(words) + b"\0" + target.read_bytes()).hex()[:16]


def test_imports_of_the_project_are_followed_and_others_named(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text("import numpy\nfrom second import x\n", encoding="utf-8")
    second.write_text("import json\nx = 1\n", encoding="utf-8")
    files, others = imported_files(frozenset([first]))
    assert files == {first, second}
    assert {"numpy", "json"} <= others


def test_a_library_that_is_missing_has_no_version() -> None:
    assert find_versions(["numpy", "no-such-library"]) == {"numpy": np.__version__, "no-such-library": "not installed"}
