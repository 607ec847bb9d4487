"""The rooms of `auditor` and the folders of `mechanisms`: imports point down, and none comes back by way of others."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

from tests.source_trees import forgotten_trees, list_nodes  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
#: Packages and modules of `auditor`, from the top floor to the ground; docs/architecture.md says what each is for.
ROOMS = (
    "cli",
    "calibration",
    "runs",
    "claims",
    "audits",
    "report",
    "events",
    "evidence",
    "targets",
    "datasets",
    "privacy",
    "results",
    "errors",
)
#: Floors at most: rooms that stand one above the other.
FLOORS = 10
#: The facades, which give the public names, and the door.
LOOSE = ("auditor", "auditor.__main__", "auditor.training")
#: Folders of `mechanisms`: each imports those before it only.
TOPICS = (
    "base",
    "additive_noise",
    "selection",
    "stability",
    "composition",
    "statistical_queries",
    "local_model",
    "learning",
    "query_release",
    "lower_bounds",
    "teacher_ensembles",
    "training",
)


@lru_cache
def imports(package: str = "auditor") -> dict[str, set[str]]:
    """Modules of a package that each of them imports, anywhere in the file: for types and inside functions too."""
    files = {file: file.relative_to(ROOT).with_suffix("") for file in list_nodes(package)}
    names = {file: ".".join(path.parts).removesuffix(".__init__") for file, path in files.items()}
    known, found = set(names.values()), {}
    for file, name in names.items():
        found[name] = set[str]()
        for node in list_nodes(package)[file]:
            if isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names} & known
            elif isinstance(node, ast.ImportFrom) and node.module in known:
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                found[name] |= (full & known) or {node.module}
    return found


def room(module: str) -> str:
    return module.split(".")[1]


def test_every_room_is_known() -> None:
    assert {room(module) for module in imports() if module not in LOOSE} == set(ROOMS)
    assert len(ROOMS) <= 13


def test_imports_point_down() -> None:
    upward = [
        f"{module} imports {other}"
        for module, others in imports().items()
        if module not in LOOSE
        for other in others
        if other in LOOSE or ROOMS.index(room(other)) < ROOMS.index(room(module))
    ]
    assert not upward


def test_the_house_has_few_floors() -> None:
    floors: dict[str, int] = {}
    for name in reversed(ROOMS):
        below = {room(o) for m, others in imports().items() if m not in LOOSE and room(m) == name for o in others}
        floors[name] = 1 + max((floors[other] for other in below - {name}), default=0)
    assert max(floors.values()) <= FLOORS


def test_no_module_imports_itself_by_way_of_others() -> None:
    left = {module: set(others) - {module} for module, others in imports().items() if module != "auditor"}
    while ready := [module for module, others in left.items() if not others & left.keys()]:
        for module in ready:
            del left[module]
    assert not left


def test_mechanisms_import_topics_before_theirs() -> None:
    found = imports("mechanisms")
    assert {room(module) for module in found if module != "mechanisms"} == set(TOPICS)
    later = [
        f"{module} imports {other}"
        for module, others in found.items()
        for other in others
        if TOPICS.index(room(other)) > TOPICS.index(room(module))
    ]
    assert not later


def test_files_that_pages_name_are_there() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    named = {
        (page.name, path)
        for page in pages
        if page.name != "CHANGELOG.md"
        for path in re.findall(r"`((?:auditor|mechanisms|experiments)/[\w/.]+)`", page.read_text(encoding="utf-8"))
    }
    assert ("architecture.md", "auditor/audits/interfaces.py") in named
    missing = {path for _, path in named if not (ROOT / path).exists()}
    assert missing == {  # the examples of CONTRIBUTING
        "auditor/events/learners/bit_parity.py",
        "auditor/privacy/guarantees/total_variation.py",
        "experiments/coin.py",
        "mechanisms/local_model/coin.py",
    }
