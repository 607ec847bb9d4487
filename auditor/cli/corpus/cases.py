"""A case of the corpus: one file that declares a released defect and draws from the library that has it."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from auditor.datasets import Pair, Relation, relation_named
from auditor.datasets.files import parse_domain
from auditor.datasets.rows import make_rows
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import Guarantee, parse_claim

#: What the defects of a family have in common.
FAMILIES = (
    "floats and sampling",
    "sensitivities and bounds",
    "thresholds and partitions",
    "local protocols",
    "quantiles and histograms",
    "models",
    "synthetic data",
    "accountants and configuration",
    "training",
    "SQL and dataframes",
)
#: Level of a pair on which some event is possible under one dataset alone, or nearly so.
UNBOUNDED = "unbounded"
#: A missing value in a literal, where the domain is of numbers.
_NAN = "nan"
#: Name of the literal in a case's file.
_LITERAL = "CASE"


@dataclass(frozen=True)
class LibraryCase:
    """A mechanism of a released library, with what is known about it.

    A file of the corpus is a Python file for the library's environment. It holds a dict literal ``CASE``, whose keys
    are the parameters from ``requires`` on, and a function ``draw(data, n)``. It is read here and not imported, since
    the library is not installed where dpaudit is.

    Parameters
    ----------
    path : Path
        The file.
    about : str
        First line of its docstring: library, version, and what is wrong.
    functions : mapping of str to str
        Source of each function of the file, by name.
    requires : str
        Requirements of pip, separated by spaces.
    claim, relation, domain : str
        As `dpaudit attack` takes them.
    family : str
        One of `FAMILIES`.
    rows, min_rows : int
        Most and fewest rows of the datasets that a blind audit makes.
    arithmetic, outside : bool
        The claim is about all numbers between the ends of the domain, or about values outside it, too: a blind audit
        tries them, as `dpaudit attack` does with the options of these names.
    fixed : str
        Requirements of a release without the defect; "" if there is none.
    pair : tuple of two lists, optional
        Rows of the crafted datasets on which the defect shows best; "nan" is NaN among numbers. A control has none.
    level : float
        True level on that pair, or a lower bound of it; infinite for `UNBOUNDED`, and 0 for a control.
    cause : tuple of str
        Words of which one is to stand in what a maintainer is told; none if the distribution is just another one.
    source : str
        Address of the public report; "" if there is none.
    draws : int
        Draws a side by which the case is confirmed.
    """

    path: Path
    about: str
    functions: Mapping[str, str] = field(repr=False)
    requires: str
    claim: str
    relation: str
    domain: str
    family: str
    rows: int = 10
    min_rows: int = 0
    arithmetic: bool = False
    outside: bool = False
    fixed: str = ""
    pair: tuple[list[Any], list[Any]] | None = None
    level: float = 0.0
    cause: tuple[str, ...] = ()
    source: str = ""
    draws: int = 20_000

    @property
    def name(self) -> str:
        """Folder and file, such as "opendp/last_bit"."""
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def is_control(self) -> bool:
        """Whether the mechanism is believed to be right."""
        return self.pair is None

    @property
    def shown_level(self) -> str:
        """The level in words."""
        return UNBOUNDED if math.isinf(self.level) else f"{self.level:.3g}"

    @cached_property
    def guarantee(self) -> Guarantee:
        """The claim."""
        return parse_claim(self.claim)

    @cached_property
    def kind(self) -> Relation:
        """The relation between datasets."""
        return relation_named(self.relation)

    @cached_property
    def values(self) -> list[Any]:
        """Values of a row."""
        return parse_domain(self.domain)

    @cached_property
    def crafted(self) -> Pair:
        """The crafted pair, as a target gets it; `SpecificationError` for a control."""
        if self.pair is None:
            raise SpecificationError(f"{self.name}: a control has no crafted pair")
        numbers = all(isinstance(value, int | float) for value in self.values)
        pair = [[float(row) if numbers and row == _NAN else row for row in rows] for rows in self.pair]
        x, y = (make_rows([*self.values, *rows], rows) for rows in pair)
        return Pair(x, y, "crafted pair")

    def target(self, fixed: bool = False, function: str = "") -> str:
        """Name of the target, as `dpaudit attack` takes it.

        Parameters
        ----------
        fixed : bool
            The release without the defect.
        function : str
            Another function than the one that draws.
        """
        drawn = "draw_fixed" if fixed and "draw_fixed" in self.functions else "draw"
        return f"pip:{self.fixed if fixed else self.requires}#{self.path}:{function or drawn}"

    @cached_property
    def shows(self) -> Callable[[Any], bool]:
        """The event that is counted, compiled without the rest of the file."""
        names: dict[str, Any] = {}
        exec(compile(self.functions["shows"], str(self.path), "exec"), names)
        found: Callable[[Any], bool] = names["shows"]
        return found


#: Keys of a case's literal.
_KEYS = [item.name for item in fields(LibraryCase) if item.name not in ("path", "about", "functions")]
_NEEDED = ("requires", "claim", "relation", "domain", "family")
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys([*_NEEDED, "fixed", "source"], str),
    **dict.fromkeys(["rows", "min_rows", "draws"], int),
    **dict.fromkeys(["arithmetic", "outside"], bool),
    "pair": tuple,
    "level": (str, int, float),
    "cause": tuple,
}


def find_cases(folder: Path, text: str = "") -> list[LibraryCase]:
    """Read all cases below a folder, in the order of their names.

    Parameters
    ----------
    folder : Path
        A folder, or the file of one case.
    text : str
        Only cases whose name contains it.

    Raises
    ------
    SpecificationError
        If there is none, or a file is not a case.
    """
    if not folder.exists():
        raise SpecificationError(
            f"no such file or folder: {str(folder)!r} in {str(Path.cwd())!r}; the cases of dpaudit are in the folder "
            "'corpus' of its checkout"
        )
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    cases = [read_case(path) for path in paths if folder.is_file() or _is_case(path)]
    found = [case for case in cases if text in case.name]
    if not found:
        raise SpecificationError(f"no case in {str(folder)!r}" + f" has {text!r} in its name" * bool(text))
    return found


def read_case(path: Path) -> LibraryCase:
    """Read the file of a case, without importing it.

    Raises
    ------
    SpecificationError
        If it cannot be read, or something is missing or wrong; the message names the file and the value.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError) as error:
        raise SpecificationError(f"case {str(path)!r} cannot be read: {error}") from error
    try:
        functions = {item.name: ast.unparse(item) for item in tree.body if isinstance(item, ast.FunctionDef)}
        about = (ast.get_docstring(tree) or "").partition("\n")[0]
        case = LibraryCase(path=path, about=about, functions=functions, **_read_literal(tree))
        _check_case(case)
    except SpecificationError as error:
        raise SpecificationError(f"case {str(path)!r}: {error}") from error
    return case


def _is_case(path: Path) -> bool:
    return any(line.startswith(f"{_LITERAL} =") for line in path.read_text(encoding="utf-8").splitlines())


def _read_literal(tree: ast.Module) -> dict[str, Any]:
    found = [
        item.value for item in tree.body if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == _LITERAL
    ]
    if len(found) != 1:
        raise SpecificationError(f"expected one dict literal {_LITERAL}, got {len(found)}")
    try:
        literal = ast.literal_eval(found[0])
    except ValueError as error:
        raise SpecificationError(f"{_LITERAL} must be a literal: {error}") from error
    if not isinstance(literal, dict) or not all(key in _KEYS for key in literal):
        unknown = sorted(set(literal) - set(_KEYS), key=str) if isinstance(literal, dict) else literal
        raise SpecificationError(f"{_LITERAL} must be a dict with keys of {', '.join(_KEYS)}; got {unknown!r}")
    missing = [key for key in _NEEDED if key not in literal]
    if missing:
        raise SpecificationError(f"{_LITERAL} lacks {', '.join(missing)}")
    for key, value in literal.items():
        if not isinstance(value, _TYPES[key]) or (isinstance(value, bool) and _TYPES[key] is not bool):
            raise SpecificationError(f"{key} must not be a {type(value).__name__}, got {value!r}")
    if "level" in literal:
        literal["level"] = _read_level(literal["level"])
    return literal


def _read_level(given: float | str) -> float:
    if isinstance(given, str) and given != UNBOUNDED:
        raise SpecificationError(f'level must be a number or "{UNBOUNDED}", got {given!r}')
    return math.inf if isinstance(given, str) else float(given)


def _check_case(case: LibraryCase) -> None:
    """Raise `SpecificationError` if something is missing, or does not fit the rest."""
    if not case.about:
        raise SpecificationError("expected a docstring that says what is wrong")
    if "draw" not in case.functions:
        raise SpecificationError("expected a function draw(data, n)")
    kind, guarantee, _ = case.kind, case.guarantee, case.values  # each is read here, and refused if it cannot be
    if case.family not in FAMILIES:
        raise SpecificationError(f"family must be one of {', '.join(FAMILIES)}, got {case.family!r}")
    if not (0 <= case.min_rows <= case.rows and case.rows >= 1 and case.draws >= 1):
        raise SpecificationError(f"got min_rows={case.min_rows}, rows={case.rows}, draws={case.draws}")
    if case.is_control:
        return
    if len(case.pair or ()) != 2 or not all(isinstance(rows, list) for rows in case.pair or ()):
        raise SpecificationError(f"pair must be two lists of rows, got {case.pair!r}")
    kind.check(case.crafted)
    if case.level <= guarantee.level:
        raise SpecificationError(f"level must be above the claim {guarantee}, got {case.level}")
    if ("shows" in case.functions) == ("level" in case.functions):
        raise SpecificationError("expected either a function shows(output) or a function level(data)")
