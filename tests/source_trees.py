"""The syntax trees of a package's modules, parsed once for the tests of a module."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@lru_cache
def parse_package(package: str) -> dict[Path, ast.Module]:
    """Trees by file, in the files' order."""
    files = sorted((ROOT / package).rglob("*.py"))
    with _collecting_nothing():
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}


@lru_cache
def list_nodes(package: str) -> dict[Path, list[ast.AST]]:
    """All nodes of the trees, by file, as `ast.walk` has them."""
    with _collecting_nothing():
        return {path: list(ast.walk(tree)) for path, tree in parse_package(package).items()}


@contextmanager
def _collecting_nothing() -> Iterator[None]:
    """Make objects without a look for cycles among them, which takes three quarters of the time of a parser."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@pytest.fixture(scope="module", autouse=True)
def forgotten_trees() -> Iterator[None]:
    """Forget the trees with the module that imports this: every later look for cycles would go through them."""
    yield
    list_nodes.cache_clear()
    parse_package.cache_clear()
