"""Names and the first lines of docstrings follow the rules of CONTRIBUTING."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Most words of a first line; code between backquotes counts as one.
WORDS = 12
#: Phrases of everyday speech, in place of which the field has a term, or nothing is missing.
REFUSED = ("what came of", "says", "said", "so many", "of its own", "nobody", "stands")
#: Module names that tell nothing of what a module holds.
EVERYDAY = {"auditing", "cells", "frames", "helpers", "misc", "places", "reading", "stuff", "things", "utils"}
#: The docstrings of commands are help texts: their first line is all that `dpaudit --help` shows.
HELP = "commands.py"

Named = ast.ClassDef | ast.FunctionDef


@lru_cache(maxsize=1)
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "auditor").rglob("*.py"))}


def public(tree: ast.Module) -> Iterator[Named]:
    return (node for node in ast.walk(tree) if isinstance(node, Named) and not node.name.startswith("_"))


def first_line(node: Named) -> str:
    return (ast.get_docstring(node) or "").split("\n")[0]


def test_the_first_line_of_a_docstring_is_short() -> None:
    long = [
        f"{path.name}: {node.name}: {line}"
        for path, tree in trees().items()
        if path.name != HELP
        for node in public(tree)
        if len((line := re.sub(r"``[^`]+``", "code", first_line(node))).split()) > WORDS
    ]
    assert long == []


def test_the_first_line_of_a_docstring_is_plain() -> None:
    pattern = re.compile(rf"\b({'|'.join(REFUSED)})\b")
    odd = [
        f"{path.name}: {node.name}: {first_line(node)}"
        for path, tree in trees().items()
        for node in public(tree)
        if pattern.search(first_line(node))
    ]
    assert odd == []


def test_two_classes_of_the_engine_do_not_share_a_name() -> None:
    found: defaultdict[str, set[Path]] = defaultdict(set)
    for path, tree in trees().items():
        for node in public(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].add(path)
    assert {name for name, files in found.items() if len(files) > 1} == set()


def test_a_module_is_named_by_what_it_holds() -> None:
    assert [path for path in trees() if path.stem in EVERYDAY] == []
