"""Source text of classes is what `inspect` finds."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.targets.callables import load_file
from auditor.targets.source_text import source_text
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
