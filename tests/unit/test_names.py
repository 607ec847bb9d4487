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
#: Rooms whose first lines are still longer, and the number of such lines, which may only fall.
LONG = {"audits": 210, "privacy/guarantees": 21, "cli": 6}
#: Classes of one name in two modules of the engine, which may only become fewer.
SHARED = {"Counts", "Found", "Plan", "Raised", "Statement"}

Named = ast.ClassDef | ast.FunctionDef


@lru_cache(maxsize=1)
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "auditor").rglob("*.py"))}


def public(tree: ast.Module) -> Iterator[Named]:
    return (node for node in ast.walk(tree) if isinstance(node, Named) and not node.name.startswith("_"))


def first_line(node: Named) -> str:
    return (ast.get_docstring(node) or "").split("\n")[0]


def room_of(path: Path) -> str:
    first, *rest = path.relative_to(ROOT / "auditor").parts
    return f"{first}/{rest[0]}" if first == "privacy" and len(rest) > 1 else first


def test_the_first_line_of_a_docstring_is_short() -> None:
    long: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in trees().items():
        for node in public(tree):
            line = re.sub(r"``[^`]+``", "code", first_line(node))
            if len(line.split()) > WORDS:
                long[room_of(path)].append(f"{path.name}: {node.name}: {line}")
    for room, lines in long.items():
        assert len(lines) <= LONG.get(room, 0), "\n".join(lines)


def test_the_first_line_of_a_docstring_is_plain() -> None:
    pattern = re.compile(rf"\b({'|'.join(REFUSED)})\b")
    odd = [
        f"{path.name}: {node.name}: {first_line(node)}"
        for path, tree in trees().items()
        if room_of(path) not in LONG
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
    assert {name for name, files in found.items() if len(files) > 1} <= SHARED


def test_a_module_is_named_by_what_it_holds() -> None:
    assert [path for path in trees() if path.stem in EVERYDAY] == []
