"""Names and the first lines of docstrings follow the rules of CONTRIBUTING."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_trees import forgotten_trees, list_nodes, parse_package  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
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
#: Everyday words that do not tell what a private helper does or returns; words in -ed are refused by themselves.
VAGUE = set(
    re.findall(
        r"\w+",
        """
    about above absent accurate across adaptive affordable against alike alive all alternating and any apart appears as
    aside asked at back behind below benign beside between borderline both broken built canonical central childless
    chosen claiming clear closer closest continue covers decodes deviates die different differing disjoint distinct
    doubled doubt drawn drops each early elsewhere empty enough equals everybody everywhere exact feasible fewer fewest
    finds first firsts fits flat flips found four fresh from frozen furthest gains general gist guilty half halfway hard
    harmonic hashable hear hidden hits identical impossible inconsistent independent innocent inside integer is item
    itself joint judge k keeping kept known larger largest last later leaks learns least linear local longest look loses
    lower lowest main many middle missing misses more most moves nearest neighbouring next nights noisy nobody not
    nothing numeric of often once one online only open optional or other others ours outside own pairwise parallel
    pessimistic piece place places plain practical private public pure put quadratic quarter quiet race random reach
    realizable recurring remaining remote resisting revealing right rising said same say secret seen self settle sharp
    short shown slow small smallest some sparse special spoke spread stable straddling subject sufficient suppressing
    symmetric synthetic taken this through tight to together told took top tries trips try twelve twice two typical
    unanimous uneven uniform unless unlikely unseen up upper usable useless voting wanted where whole with within
    without word words worst wrong zero
    """,
    )
)
#: The packages whose classes, private names and prose follow the rules; `dpaudit` has the pytest plugin.
PACKAGES = ("auditor", "mechanisms", "experiments", "benchmarks", "dpaudit")
#: What may stand in prose as it is: names in code, and what they are called with.
LAW_ALLOWED = re.compile(
    r"""
    ``[^`]*`` | `[^`]*`                             # code
    | ^\s*law(?:s|_p,[ ]law_q)?[ ]:[ ][\w ]+$        # a parameter and its type
    | \blaw\(data\) | \(law,[ ]law[ ]\+[ ]1\) | len\(laws\)
    | \bauditor(?:\.\w+)+                          # a module
    | \*law\* | "law"                              # the word itself
    """,
    re.MULTILINE | re.VERBOSE,
)
#: The docstrings of commands are help texts: their first line is all that `dpaudit --help` shows.
HELP = "commands.py"

Named = ast.ClassDef | ast.FunctionDef


def trees(package: str = "auditor") -> dict[Path, ast.Module]:
    return parse_package(package)


def public(package: str = "auditor") -> Iterator[tuple[Path, Named]]:
    """Public classes and functions of a package, with their modules."""
    for path, nodes in list_nodes(package).items():
        for node in nodes:
            if isinstance(node, Named) and not node.name.startswith("_"):
                yield path, node


def first_line(node: Named) -> str:
    return (ast.get_docstring(node) or "").split("\n")[0]


def test_the_first_line_of_a_docstring_is_short() -> None:
    long = [
        f"{path.name}: {node.name}: {line}"
        for path, node in public()
        if path.name != HELP
        if len((line := re.sub(r"``[^`]+``", "code", first_line(node))).split()) > WORDS
    ]
    assert long == []


def test_the_first_line_of_a_docstring_is_plain() -> None:
    pattern = re.compile(rf"\b({'|'.join(REFUSED)})\b")
    odd = [
        f"{path.name}: {node.name}: {first_line(node)}" for path, node in public() if pattern.search(first_line(node))
    ]
    assert odd == []


def test_two_public_classes_do_not_share_a_name() -> None:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path, node in definitions():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert all(trees(package) for package in PACKAGES)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def all_nodes() -> dict[Path, list[ast.AST]]:
    """The modules of all packages, with their nodes."""
    return {path: nodes for package in PACKAGES for path, nodes in list_nodes(package).items()}


def definitions() -> list[tuple[Path, Named]]:
    """Classes and functions of all packages, with their modules."""
    return [(path, node) for path, nodes in all_nodes().items() for node in nodes if isinstance(node, Named)]


def is_vague(name: str) -> bool:
    """Whether a private name is one word that does not tell what is done or returned."""
    words = re.findall(r"[A-Z]?[a-z0-9]+", name)
    word = words[0].lower() if len(words) == 1 else ""
    return re.match("_[^_]", name) is not None and (word in VAGUE or re.search("[^e]ed$", word) is not None)


@pytest.mark.parametrize(
    ("name", "vague"),
    [
        ("_more", True),
        ("_Enough", True),
        ("_ranked", True),
        ("_seed", False),
        ("_shown_share", False),
        ("found", False),
    ],
)
def test_a_vague_name_is_one_word_without_a_noun(name: str, vague: bool) -> None:
    assert is_vague(name) == vague


def test_a_private_name_tells_what_is_done_or_returned() -> None:
    vague = [f"{path.relative_to(ROOT)}: {node.name}" for path, node in definitions() if is_vague(node.name)]
    assert vague == []


def prose(path: Path, nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Docstrings, texts and comments about laws of a module, with their lines.

    A text that is one identifier is a name in code.
    """
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not node.value.isidentifier():
            yield node.lineno, node.value
    if re.search(r"#.*\blaw", path.read_text(encoding="utf-8"), re.IGNORECASE) is None:
        return  # what is looked for is in no comment, and to find these takes long
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def names_a_law(text: str) -> bool:
    """Whether a text calls a distribution a law."""
    return re.search(r"\blaws?\b", LAW_ALLOWED.sub(" ", text), re.IGNORECASE) is not None


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("the law of the outputs", True),
        ("Laws that a mechanism may state.", True),
        ("States its distribution by ``law(data)``, see `law`.", False),
        ("    law : FiniteLaw\n        The distribution.", False),
        ("    law : FiniteLaw\n        The law.", True),
    ],
)
def test_prose_about_laws_is_told_from_code(text: str, refused: bool) -> None:
    assert names_a_law(text) == refused


def test_prose_in_code_says_distribution() -> None:
    laws = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path, nodes in all_nodes().items()
        for line, text in prose(path, nodes)
        if names_a_law(text)
    ]
    assert laws == []


def test_pages_say_distribution() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
    pages += [*sorted((ROOT / "auditor" / "report").glob("*.html")), ROOT / "experiments" / "inventory.toml"]
    laws = [
        f"{path.name}: {line}"
        for path in pages
        for line in re.sub(
            r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
        ).splitlines()
        if names_a_law(line)
    ]
    assert laws == []


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
