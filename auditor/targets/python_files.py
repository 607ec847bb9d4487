"""Python files that paths stand for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auditor.errors import SpecificationError


def find_files(paths: Sequence[str]) -> list[str]:
    """Python files of paths, in the order in which they are loaded.

    Paths come in their order, then file names. In folders, files that begin with an underscore and hidden folders, such
    as .venv, are left out. A file that several paths name comes once.

    Raises
    ------
    SpecificationError
        If a path does not exist, or a folder has no Python files.
    """
    found: dict[Path, str] = {}
    for path in map(Path, paths):
        if path.is_file():
            found.setdefault(path.resolve(), str(path))
            continue
        if not path.is_dir():
            raise SpecificationError(f"no such file or folder: {str(path)!r}")
        files = sorted(p for p in path.rglob("*.py") if not (p.name.startswith("_") or _is_hidden(p, path)))
        if not files:
            raise SpecificationError(f"no Python files in {str(path)!r}")
        for file in files:
            found.setdefault(file.resolve(), str(file))
    return list(found.values())


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)
