"""Names and the first lines of docstrings follow the rules of CONTRIBUTING."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Packages over which the name of a public class stands once.
PACKAGES = ("auditor", "mechanisms", "experiments", "benchmarks")
#: Most words of a first line; code between backquotes counts as one.
WORDS = 12
#: Phrases of everyday speech, in place of which the field has a term, or nothing is missing.
REFUSED = ("what came of", "says", "said", "so many", "of its own", "nobody", "stands")
#: Module names that tell nothing of what a module holds.
EVERYDAY = {"auditing", "cells", "frames", "helpers", "misc", "places", "reading", "stuff", "things", "utils"}
#: Least part of the functions and methods of several parameters that document them; the rest have room for plain ones.
DOCUMENTED = 0.9
#: Largest part of the functions whose names are one word, which seldom says what is done with what.
ONE_WORD = 0.4
#: The docstrings of commands are help texts: their first line is all that `dpaudit --help` shows.
HELP = "commands.py"

Named = ast.ClassDef | ast.FunctionDef


@lru_cache
def trees(package: str = "auditor") -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / package).rglob("*.py"))}


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


def test_two_public_classes_do_not_share_a_name() -> None:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for path, tree in trees(package).items():
            for node in public(tree):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert all(trees(package) for package in PACKAGES)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_a_module_is_named_by_what_it_holds() -> None:
    assert [path for path in trees() if path.stem in EVERYDAY] == []


def functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, bool]]:
    """Public functions, and methods of public classes; whether it is a method."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node, False
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                    yield inner, True


def parameters(node: ast.FunctionDef, method: bool) -> int:
    """Number of parameters, without self or cls."""
    given = node.args
    static = any(ast.unparse(decorator) == "staticmethod" for decorator in node.decorator_list)
    named = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) - (method and not static)
    return named + (given.vararg is not None) + (given.kwarg is not None)


def test_functions_of_several_parameters_document_them() -> None:
    several = [
        (path, node, method)
        for path, tree in trees().items()
        if path.name != HELP
        for node, method in functions(tree)
        if parameters(node, method) >= 2
    ]
    missing = [entry for entry in several if "Parameters\n---" not in (ast.get_docstring(entry[1]) or "")]
    explained = {entry[1].name for entry in several if entry[2] and entry not in missing}

    def refers(node: ast.FunctionDef) -> bool:
        """Whether a method leaves it to the one that it overrides."""
        override = any(ast.unparse(decorator).endswith("override") for decorator in node.decorator_list)
        return override or re.search(rf"\bSee `[\w.]*\b{node.name}`", ast.get_docstring(node) or "") is not None

    bare = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path, node, method in missing
        if not (method and node.name in explained and refers(node))
    ]
    assert len(bare) <= (1 - DOCUMENTED) * len(several), bare


def test_most_functions_have_names_of_several_words() -> None:
    names = [node.name for tree in trees().values() for node, method in functions(tree) if not method]
    one_word = sorted(name for name in names if "_" not in name)
    assert len(one_word) <= ONE_WORD * len(names), one_word
