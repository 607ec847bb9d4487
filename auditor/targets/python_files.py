"""Python files that paths stand for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auditor.errors import SpecificationError


def find_files(paths: Sequence[str]) -> list[str]:
    """Python files of paths, in the order in which they are loaded.

    Paths come in their order, then file names; in folders, names that begin with an underscore are left out.

    Raises
    ------
    SpecificationError
        If a path does not exist, or a folder has no Python files.
    """
    found: list[str] = []
    for path in map(Path, paths):
        if path.is_file():
            found.append(str(path))
            continue
        if not path.is_dir():
            raise SpecificationError(f"no such file or folder: {str(path)!r}")
        files = sorted(p for p in path.rglob("*.py") if not p.name.startswith("_"))
        if not files:
            raise SpecificationError(f"no Python files in {str(path)!r}")
        found += map(str, files)
    return found
