"""How a Python function is called: which of its parameters are the dataset, the number of draws and the randomness.

A target is a function (data, n, rng), or (data, rng) of one draw. Functions of other signatures are called by the names
of their parameters, with values from the command line for the rest:

==========================================  ========================================================================
parameter                                   gets
==========================================  ========================================================================
the first one without a value               the dataset
``X`` and ``y``, the first two              the members X and y of a dict, or all columns of a table and the last one
``n``                                       the number of draws
``rng``, ``generator`` and the like         the generator of the draws, also without a default
``seed``, and ``random_state=...``          an integer from the generator
any other                                   what ``--arg NAME=JSON`` gives, or its default
==========================================  ========================================================================

A function of one draw that takes neither generator nor seed draws from randomness of its own: it is not seeded.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditor.datasets.pandas_types import is_frame
from auditor.errors import SpecificationError
from auditor.targets.callables import CallAdapter, Mechanism, OneDraw
from auditor.targets.helper import ASYNC, is_async

#: Names of parameters that take a generator.
_GENERATOR = re.compile(
    r"\w*rng|rng_\w*|r|g|_+|gen|\w*generator|rand|rnd|random|randomness|\w*random_(source|numbers)|source|entropy"
)
#: Names of parameters that take an integer, the second one if it has a default.
_SEED, _STATE = "seed", "random_state"
#: Names of parameters that are settings: none of them takes a generator, though a second parameter without a default
#: may have any other name.
_SETTINGS = re.compile(
    r"eps\w*|ε|delta|δ|\w*(scale|sensitivity|sigma|std|bound|budget|clip|multiplier|size|count|threshold)\w*"
    r"|rho|mu|alpha|beta|gamma|lambda_|low|high|lower|upper|min\w*|max\w*|num\w*|k|m|d|p|q|t|bins|query|queries|column"
    r"|columns|labels?|weights?|domain|x|y|lr|epochs|model|config|params?|privacy\w*|iterations|steps|n|noise\w*"
)
#: Names of parameters that take the number of draws where the generator comes after them.
_SIZES = re.compile(r"n|n_\w+|num\w*|size|count|k|m|draws|trials|samples|runs|reps?|batch\w*")
#: Names of parameters that take the dataset, if the first one is a setting.
_DATA = re.compile(r"data|dataset|database|db|df|rows|records|values|X|x|\w+_data|data_\w+")
#: Annotations of numbers and texts.
_PLAIN = re.compile(r"(<class ')?(int|float|str|bool|complex)('>)?")
#: Seeds are below this: what numpy's older generators take.
_SEEDS = 2**32


def parse_arguments(texts: Sequence[str]) -> dict[str, Any]:
    """Read values of parameters, each as NAME=JSON.

    What JSON does not have: a tuple, which is written as in Python, such as (0, 10), and a word, which is a text.

    Raises
    ------
    SpecificationError
        If one cannot be read, or a name comes twice.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise SpecificationError(f"--arg {text!r}: expected NAME=JSON, as in --arg epsilon=1")
        if name in found:
            raise SpecificationError(f"--arg {text!r}: {name} has a value already, {found[name]!r}")
        try:
            found[name] = json.loads(value)
        except (ValueError, RecursionError):
            found[name] = _read_other(value, text, name)
    return found


def _read_other(value: str, text: str, name: str) -> Any:
    """A tuple, or a word."""
    if re.fullmatch(r"[A-Za-z_][\w.-]*", value):
        return value
    if value.strip().startswith("("):
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(value.strip())
    raise SpecificationError(
        f"--arg {text!r}: expected JSON after {name}=, such as 1, true, [0, 10] or '\"text\"', or a tuple, (0, 10)"
    )


def write_argument(name: str, value: Any) -> str:
    """Write a value as `parse_arguments` reads it.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        What was read.
    """
    written = json.dumps(value)
    return f"{name}={written if _same_value(json.loads(written), value) else repr(value)}"


def _same_value(a: Any, b: Any) -> bool:
    return type(a) is type(b) and repr(a) == repr(b)


@dataclass(frozen=True)
class CallPlan:
    """Which parameters get dataset, number of draws and randomness.

    Parameters
    ----------
    data : tuple of str
        The dataset's parameter, or X and y; the first one may be called by its place.
    n, rng, seed : str
        Empty if there is none.
    given : mapping
        Values of others.
    by_place : bool
        The dataset's parameter has no name to call it by.
    guessed : bool
        The generator's parameter has no name that tells it.
    """

    data: tuple[str, ...]
    n: str = ""
    rng: str = ""
    seed: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    by_place: bool = False
    guessed: bool = False

    def call(self, function: Callable[..., Any], data: Any, rng: np.random.Generator, n: int = 0) -> Any:
        """Call a function.

        Parameters
        ----------
        function : callable
            Has the parameters of the plan.
        data : dataset
            What it gets.
        rng : numpy.random.Generator
            Source of its randomness, if it takes any.
        n : int
            Number of draws, if it takes one.
        """
        values = dict(self.given)
        if self.n:
            values[self.n] = n
        if self.rng:
            values[self.rng] = rng
        if self.seed:
            values[self.seed] = int(rng.integers(_SEEDS))
        if self.by_place:
            return function(data, **values)
        parts = (data,) if len(self.data) == 1 else split_labels(data, self.data)
        return function(**dict(zip(self.data, parts, strict=True)), **values)


def split_labels(data: Any, names: Sequence[str] = ("X", "y")) -> tuple[Any, Any]:
    """Split a dataset into features and labels.

    Parameters
    ----------
    data : dict, DataFrame or array of shape (rows, columns)
        A dict with members of these names, or a table whose last column has the labels.
    names : sequence of two str
        Names of the members.

    Raises
    ------
    TypeError
        If it is none of these: it is what the target's own code would raise.
    """
    if isinstance(data, dict):
        known = {str(name).lower(): part for name, part in data.items()}
        if not all(name.lower() in known for name in names):
            raise TypeError(f"expected a dataset with members {' and '.join(names)}, got {', '.join(map(str, data))}")
        return known[names[0].lower()], known[names[1].lower()]
    if is_frame(data):
        return data.iloc[:, :-1], data.iloc[:, -1]
    table = np.asarray(data)
    if table.ndim != 2 or table.shape[1] < 2:
        raise TypeError(f"expected a dict of {' and '.join(names)}, or a table with the labels in its last column")
    return table[:, :-1], table[:, -1]


@dataclass(frozen=True)
class PlannedDraw(CallAdapter):
    """A function of one draw, called by a plan."""

    function: Callable[..., Any]
    plan: CallPlan

    def spell_values(self) -> str:
        """See `CallAdapter`."""
        return repr(self.plan)

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        """Draw once."""
        return self.plan.call(self.function, data, rng)


@dataclass(frozen=True)
class PlannedBatch(CallAdapter):
    """A function of n draws, called by a plan."""

    function: Callable[..., Any]
    plan: CallPlan

    def spell_values(self) -> str:
        """See `CallAdapter`."""
        return repr(self.plan)

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        """Draw n times."""
        return self.plan.call(self.function, data, rng, n)


def bind_function(function: Callable[..., Any], text: str, one_draw: bool, given: Mapping[str, Any]) -> Mechanism:
    """Make a mechanism from a function of any signature.

    Parameters
    ----------
    function : callable
        The function, a method of an object, or an object that can be called.
    text : str
        Name of the target, for errors.
    one_draw : bool
        It draws once. Functions wrapped by `auditor.one_draw` always do.
    given : mapping
        Values of its further parameters, by name.

    Raises
    ------
    SpecificationError
        If it cannot be called with what there is; the error names the options that mend it.
    """
    if is_async(function):
        raise SpecificationError(f"target {text!r} {ASYNC}")
    if isinstance(function, OneDraw) and (one_draw or given):
        function, one_draw = function.function, True
    parameters = list_parameters(function)
    if not parameters:
        if given or parameters is not None:
            said = "takes no dataset" if parameters is not None else "does not tell its parameters, so --arg has no use"
            raise SpecificationError(f"target {text!r} {said}")
        return _as_mechanism(function, one_draw)
    check_given(given, parameters, text)
    if parameters[0].kind == inspect.Parameter.VAR_POSITIONAL and not given:
        return _as_mechanism(function, one_draw)
    plan, lacking = make_plan(parameters, one_draw, given)
    if lacking or not plan.data or (one_draw and plan.n) or not (one_draw or plan.n):
        raise SpecificationError(f"target {text!r} {_explain_signature(parameters, plan, one_draw, given)}")
    if _is_usual(parameters, plan, one_draw):
        return _as_mechanism(function, one_draw)
    return OneDraw(PlannedDraw(function, plan)) if one_draw else PlannedBatch(function, plan)


def _as_mechanism(function: Callable[..., Any], one_draw: bool) -> Mechanism:
    mechanism: Mechanism = OneDraw(function) if one_draw else function
    return mechanism


def list_parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """List the parameters of a function.

    None of a compiled one that does not tell them.
    """
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def check_given(given: Mapping[str, Any], parameters: Sequence[inspect.Parameter], text: str) -> None:
    """Check that values are given for parameters that there are.

    Parameters
    ----------
    given : mapping
        Values by name.
    parameters : sequence of inspect.Parameter
        Of what is called.
    text : str
        Name of the target.

    Raises
    ------
    SpecificationError
        If one is for no parameter.
    """
    if any(p.kind == p.VAR_KEYWORD for p in parameters):
        return
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for name, value in given.items():
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            raise SpecificationError(
                f"target {text!r} has no parameter {name!r} for --arg {name}={json.dumps(value)}"
                + (f"; did you mean {close[0]!r}?" if close else f": its parameters are {', '.join(names) or 'none'}")
            )


def make_plan(
    parameters: Sequence[inspect.Parameter], one_draw: bool, given: Mapping[str, Any]
) -> tuple[CallPlan, list[str]]:
    """Plan the call of a function.

    Parameters
    ----------
    parameters : sequence of inspect.Parameter
        Of the function.
    one_draw : bool
        It draws once.
    given : mapping
        Values of further parameters.

    Returns
    -------
    CallPlan, list of str
        The plan, and parameters for which there is no value.
    """
    rest = [p for p in parameters if p.name not in given and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not rest:
        return CallPlan((), given=given), []
    if _is_setting(rest[0]) and rest[0].name not in ("X", "x"):
        rest.sort(key=lambda p: _DATA.fullmatch(p.name) is None)  # keeps the order of others
    labelled = len(rest) > 1 and rest[0].name in ("X", "x") and rest[1].name == "y" and _is_needed(rest[1])
    data, others = rest[: 1 + labelled], rest[1 + labelled :]
    n = next((p for p in others if p.name == "n" and (_is_needed(p) or not one_draw)), None)
    rng = next((p for p in others if _takes_generator(p)), None)
    seed = next((p for p in others if p.name == _SEED or (p.name == _STATE and not _is_needed(p))), None)
    guessed = False
    by_place = [p for p in others if p.kind != p.KEYWORD_ONLY]
    if not one_draw and n is None and len(by_place) > 1 and (rng is None or rng is by_place[1]):
        first, second = by_place[:2]
        sized = _SIZES.fullmatch(first.name) or not _is_setting(first)
        if sized and (rng is second or not _is_setting(second)):
            n, rng, guessed = first, second, rng is None
    if rng is None and seed is None and by_place:
        # Not only those that are named as one may be meant.
        place = by_place[0] if by_place[0] is not n else next(iter(by_place[1:]), None)
        if place is not None and _is_needed(place) and not _is_setting(place) and (one_draw or n is not None):
            rng, guessed = place, True
    seed = None if rng is not None else seed
    taken = [p for p in (n, rng, seed) if p is not None]
    names = ["" if p is None else p.name for p in (n, rng, seed)]
    plan = CallPlan(
        data=tuple(p.name for p in data),
        n=names[0],
        rng=names[1],
        seed=names[2],
        given=given,
        by_place=len(data) == 1 and data[0] is parameters[0] and data[0].kind != inspect.Parameter.KEYWORD_ONLY,
        guessed=guessed,
    )
    return plan, [p.name for p in others if _is_needed(p) and p not in taken]


def _is_needed(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty


def _takes_generator(parameter: inspect.Parameter) -> bool:
    if "Generator" in str(parameter.annotation) or "RandomState" in str(parameter.annotation):
        return True
    if _is_annotated_plain(parameter):
        return False
    return _GENERATOR.fullmatch(parameter.name) is not None or (parameter.name == _STATE and _is_needed(parameter))


def _is_annotated_plain(parameter: inspect.Parameter) -> bool:
    return _PLAIN.fullmatch(str(parameter.annotation)) is not None


def _is_setting(parameter: inspect.Parameter) -> bool:
    return _is_annotated_plain(parameter) or _SETTINGS.fullmatch(parameter.name) is not None


def _is_usual(parameters: Sequence[inspect.Parameter], plan: CallPlan, one_draw: bool) -> bool:
    """Whether a function is called as (data, n, rng), or as (data, rng), by the places of its parameters."""
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    wanted = [*plan.data, plan.rng] if one_draw else [*plan.data, plan.n, plan.rng]
    return plan.by_place and not plan.given and names[: len(wanted)] == wanted


def _explain_signature(
    parameters: Sequence[inspect.Parameter], plan: CallPlan, one_draw: bool, given: Mapping[str, Any]
) -> str:
    """What is wrong with the parameters of a function, and the options that mend it."""
    shown = f"has the parameters ({', '.join(_show_parameter(p) for p in parameters)})"
    if not plan.data:
        return f"{shown}, all of which --arg gives: one has to be left for the dataset"
    if one_draw and plan.n:
        return f"{shown} and draws n at once: leave out --one-draw"
    single = one_draw or not plan.n
    lacking = make_plan(parameters, single, given)[1]
    options = [*(["--one-draw"] if single and not one_draw else []), *(_example_of(name) for name in lacking)]
    expected = "(data, rng) or (data)" if one_draw else "(data, n, rng)"
    return f"{shown}, expected {expected}: try {' '.join(options)}"


def _show_parameter(parameter: inspect.Parameter) -> str:
    """A parameter without its annotation; defaults only where they are short."""
    if _is_needed(parameter):
        return str(parameter.replace(annotation=parameter.empty))
    value = repr(parameter.default)
    return f"{parameter.name}={value if len(value) <= 12 else '...'}"


def _example_of(name: str) -> str:
    """An option that gives a value to a parameter."""
    lowered = name.lower()
    value = "1e-6" if lowered in ("delta", "δ") else "'[0, 1]'" if lowered in ("bounds", "domain", "bins") else "1"
    return f"--arg {name}={value}"


def takes_randomness(target: object) -> bool:
    """Whether a target takes a generator or a seed.

    True where it does not tell.
    """
    function: Any = target.function if isinstance(target, OneDraw) else target
    return not isinstance(function, PlannedDraw | PlannedBatch) or bool(function.plan.rng or function.plan.seed)


def explain_guess(target: object) -> str:
    """Explain which parameter was taken for the generator by guess.

    Empty if none was.
    """
    one_draw = isinstance(target, OneDraw)
    function: Any = target.function if isinstance(target, OneDraw) else target
    if isinstance(function, PlannedDraw | PlannedBatch):
        plan = function.plan
    else:
        parameters = list_parameters(function)
        if not parameters:
            return ""
        plan = make_plan(parameters, one_draw, {})[0]
    if not plan.guessed:
        return ""
    return f"; its parameter {plan.rng!r} got the generator: if it is a setting, give it by {_example_of(plan.rng)}"
