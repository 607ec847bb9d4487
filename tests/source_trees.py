"""The syntax trees of a package's modules, parsed once in a process."""

from __future__ import annotations

import ast
import gc
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@lru_cache
def parse_package(package: str) -> dict[Path, ast.Module]:
    """Trees by file, in the files' order.

    Trees have millions of nodes without a cycle. To look for cycles among them, time and again while they are made,
    would take three quarters of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        files = sorted((ROOT / package).rglob("*.py"))
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    finally:
        if enabled:
            gc.enable()


@lru_cache
def list_nodes(package: str) -> dict[Path, list[ast.AST]]:
    """All nodes of the trees, by file, as `ast.walk` has them."""
    return {path: list(ast.walk(tree)) for path, tree in parse_package(package).items()}
