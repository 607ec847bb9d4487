"""Source text of functions and classes."""

from __future__ import annotations

import ast
import inspect
import linecache
import tokenize
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any


def source_text(subject: Any) -> tuple[str, int]:
    """Source of a function or class, and its first line.

    Decorators are part of it, as for `inspect`.

    Raises
    ------
    OSError, TypeError
        If there is none, or its file has changed and can no longer be parsed.
    """
    # To find a class `inspect` parses its whole file, each time; many classes of one file are asked for.
    file = inspect.getsourcefile(subject) if inspect.isclass(subject) else None
    place = _classes(file).get(subject.__qualname__) if file else None
    if file is None or place is None:
        try:
            lines, first = inspect.getsourcelines(subject)
        except (SyntaxError, tokenize.TokenError) as error:  # which of them depends on the version of Python
            raise OSError(f"no source of {subject!r}: its file can no longer be parsed ({error})") from error
        return "".join(lines), first
    first, last = place
    return "".join(linecache.getlines(file)[first - 1 : last]), first


@lru_cache(maxsize=1024)
def _classes(file: str) -> Mapping[str, tuple[int, int]]:
    """First and last line of each class of a file, by qualified name; the first one of a name."""
    linecache.checkcache(file)
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # the file has changed
        return {}
    found: dict[str, tuple[int, int]] = {}
    for name, node in _within(tree, ""):
        first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
        found.setdefault(name, (first, node.end_lineno or first))
    return found


def _within(tree: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Classes inside of a node, with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        inner = prefix
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name, node
            inner = f"{prefix}{node.name}."
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{prefix}{node.name}.<locals>."
        yield from _within(node, inner)
