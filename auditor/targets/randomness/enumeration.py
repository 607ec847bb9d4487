"""All outputs of a call with their probabilities, by walking the tree of its random decisions."""

from __future__ import annotations

import heapq
import itertools
import math
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from auditor.errors import SpecificationError
from auditor.targets.callables import Mechanism
from auditor.targets.helper import find_elements
from auditor.targets.outputs import show_output
from auditor.targets.randomness.calls import ControlledSource, ask_once
from auditor.targets.randomness.distributions import MassTable, plain_value
from auditor.targets.randomness.paths import Interval, Listed, RandomPath
from auditor.targets.randomness.signals import (
    NeedsNumbers,
    OutOfBudget,
    Signal,
    TooUnlikely,
    Uncontrolled,
    is_own_error,
    keep_signals,
    raise_caught_signals,
)
from auditor.targets.randomness.variates import Variate, draw_number, tell_apart
from auditor.targets.values import DEEPEST, USUAL, Raised, Typed, find_unreadable, make_visible

#: Times that a walk starts anew with further draws as plain numbers; then all of them are.
_RESTARTS = 8
#: Runs with plain numbers at least, over all paths of a walk; arbitrary: randomness that is not followed shows in them.
_REPEATS = 30
#: Containers of an output inside one another at most; arbitrary, ends the reading of a list that contains itself.
_DEEPEST = 50
#: Packages whose objects are read by what they are, not by their attributes.
_KNOWN = frozenset({*sys.stdlib_module_names, "numpy", "pandas"}) - {"__main__"}
#: All draws as plain numbers.
_ALL = frozenset(range(100_000))
#: Classes whose objects hold nothing else; of those derived from them, attributes may.
_BUILT_IN = (bool, int, float, str, bytes, list, tuple, dict, set, frozenset)
#: What a unit may return.
_SIMPLE = (bool, int, float, str, type(None))
#: Combinations of values that one output may leave open.
_MOST_OPEN = 1_000_000


@dataclass
class Outcomes:
    """Outputs of a call on one dataset, with probabilities.

    Parameters
    ----------
    masses : dict
        Probability of each output, by its key.
    values : dict
        Each output, by its key.
    whole : bool
        Nothing is left out: all paths were walked, and no tail was cut.
    paths : int
        Paths walked.
    caveats : set of str
        What was idealised.
    """

    masses: dict[Hashable, float] = field(default_factory=dict)
    values: dict[Hashable, Any] = field(default_factory=dict)
    whole: bool = True
    paths: int = 0
    caveats: set[str] = field(default_factory=set)

    @property
    def lost(self) -> float:
        """Probability of all that is left out."""
        return 0.0 if self.whole else max(0.0, 1.0 - math.fsum(self.masses.values()))

    @property
    def only_raises(self) -> bool:
        """Whether every output that was found is an exception."""
        return bool(self.values) and all(isinstance(value, Raised) for value in self.values.values())


@dataclass(frozen=True)
class Budget:
    """How far a walk goes.

    Parameters
    ----------
    paths : int
        Paths at most.
    deadline : float
        Time of `time.monotonic` at which it ends.
    lost : float
        Probability that may be left out: it ends when what is not walked is less likely.
    """

    paths: int
    deadline: float
    lost: float


def enumerate_outputs(target: Mechanism, data: Any, source: ControlledSource, budget: Budget) -> Outcomes:
    """Walk all paths of one draw, the likeliest first.

    Parameters
    ----------
    target : Mechanism
        The target; one output is asked for.
    data : dataset
        The dataset.
    source : ControlledSource
        Stands in for the sources of randomness, which it has replaced.
    budget : Budget
        How far to go.

    Returns
    -------
    Outcomes

    Raises
    ------
    Uncontrolled
        If the call does something that cannot be followed.

    Notes
    -----
    Valid because: draws are independent and have the distributions of `auditor.targets.randomness.distributions`. A
    path is a product of sets, one for each draw (or for a sum of some, where they are looked at together only), on
    which the call does the same: every condition that it asks of a draw splits that draw's set. So the sets of all
    paths are disjoint, the probability of a path is a product, and what the outputs lack to 1 is what was not walked
    or was cut. That the call indeed does the same on plain numbers is tried on each path: it is run again with numbers
    from its sets and has to give the same output, in `_REPEATS` runs where there are fewer paths, with other values of
    what the output leaves open: the last, the first, and some between. Generators that it makes itself have to get the
    same seeds in it. No generator that is not replaced may have another state afterwards.
    """
    before = source.read_states()
    found = _walk_anew(target, data, source, budget)
    if source.read_states() != before:
        raise Uncontrolled("it draws from a generator that an object holds, which is not followed")
    return found


def _walk_anew(
    target: Mechanism, data: Any, source: ControlledSource, budget: Budget, repeats: int = _REPEATS
) -> Outcomes:
    """Walk all paths, anew where some draws have to be plain numbers."""
    plain: frozenset[int] = frozenset()
    for _ in range(_RESTARTS):
        try:
            return _walk(target, data, source, budget, plain, repeats)
        except NeedsNumbers as signal:
            plain |= signal.draws
    try:
        return _walk(target, data, source, budget, _ALL, repeats)
    except NeedsNumbers:
        raise Uncontrolled("it treats random numbers in a way that is not followed") from None


def run_once(target: Mechanism, data: Any, source: ControlledSource, budget: Budget) -> tuple[RandomPath, Any] | None:
    """Run the likeliest path alone, to compare later calls with.

    Parameters
    ----------
    target, data, source, budget
        See `enumerate_outputs`.

    Returns
    -------
    tuple of (RandomPath, object) or None
        The path, and its output; None where it cannot be followed, which a walk says.
    """
    path = RandomPath((), _ALL, budget.deadline, budget.lost / 64)
    try:
        with source.using(path):
            output = _call(target, data, source)
        return path, _open_outputs(path, output)[1](0)
    except Signal:
        return None


def run_again(target: Mechanism, data: Any, source: ControlledSource, first: tuple[RandomPath, Any]) -> None:
    """Run a path again after other calls.

    Parameters
    ----------
    target, data, source
        See `enumerate_outputs`.
    first : tuple of (RandomPath, object)
        What `run_once` gave.

    Raises
    ------
    Uncontrolled
        If the output is another one.
    """
    _try_plainly(target, data, source, *first, _ALL)


def follow_units(source: ControlledSource, units: Sequence[Callable[..., Any]], budget: Budget) -> None:
    """Take functions that draw random numbers as single draws.

    Each is walked by itself, once for each choice of arguments. So a loop around it has a path for each of its values,
    and not for each way to come to them.

    Parameters
    ----------
    source : ControlledSource
        Replaces them, wherever modules have them as variables.
    units : sequence of callable
        The functions. They may call one another; their results are numbers, truth values, texts or None.
    budget : Budget
        How far to walk each.

    Notes
    -----
    Valid because: what a unit returns depends on its arguments and on draws that nothing else uses, if it reads no
    state that changes. So given its arguments it is independent of everything else, and its probabilities are those of
    its walk, in which each path is tried on plain numbers. That no other generator is drawn from is seen in the walk
    around it.
    """
    for unit in units:
        if not callable(unit):
            raise SpecificationError(f"a unit must be a function, got {unit!r}")
        source.units.append((unit, _as_unit(unit, source, budget)))


def _as_unit(unit: Callable[..., Any], source: ControlledSource, budget: Budget) -> Callable[..., Any]:
    tables: dict[Hashable, MassTable] = {}

    def draw_unit(*values: Any, **named: Any) -> Any:
        plain = [_decide_value(value) for value in values]
        others = {name: _decide_value(value) for name, value in named.items()}
        key = freeze_output([_replace_generator(plain), _replace_generator(list(others.items()))])
        if key not in tables:
            with keep_signals():  # those that the walk catches are its own
                walked = _walk_anew(lambda *_: [unit(*plain, **others)], None, source, budget, repeats=0)
                tables[key] = _table_of(walked, unit)
        return draw_number(source.current(), tables[key])

    return draw_unit


def _decide_value(value: Any) -> Any:
    if isinstance(value, Variate):
        return value.decide()
    return (
        np.array([_decide_value(v) for v in value])
        if isinstance(value, np.ndarray) and value.dtype == object
        else value
    )


def _replace_generator(values: Sequence[Any]) -> list[Any]:
    return ["generator" if isinstance(value, np.random.Generator) else value for value in values]


def _table_of(walked: Outcomes, unit: Callable[..., Any]) -> MassTable:
    values = list(walked.values.values())
    if any(isinstance(value, Raised) for value in values):
        raise Uncontrolled(f"the unit {unit.__name__} may raise an exception")
    numbers = np.array(values, dtype=None if all(type(v) is type(values[0]) for v in values) else object)
    if numbers.ndim != 1 or (numbers.dtype == object and not all(isinstance(v, _SIMPLE) for v in values)):
        raise Uncontrolled(f"the unit {unit.__name__} returns {show_output(values[0])}, not a number, a text or None")
    return MassTable(numbers, np.array(list(walked.masses.values())), walked.whole, frozenset(walked.caveats))


def _walk(
    target: Mechanism, data: Any, source: ControlledSource, budget: Budget, plain: frozenset[int], repeats: int
) -> Outcomes:
    found = Outcomes()
    waiting: list[tuple[float, tuple[int, ...]]] = [(-1.0, ())]
    rest = 1.0
    tried: list[tuple[RandomPath, Callable[[int], Any]]] = []
    while waiting and rest > budget.lost:
        if found.paths >= budget.paths or time.monotonic() > budget.deadline:
            break
        mass, prefix = heapq.heappop(waiting)
        path, counted = RandomPath(prefix, plain, budget.deadline, budget.lost / 64), None
        try:
            with source.using(path):
                output = _call(target, data, source)
            counted, expect = _open_outputs(path, output)
        except TooUnlikely:
            found.whole = False
        except OutOfBudget:
            heapq.heappush(waiting, (mass, prefix))
            break
        if counted is not None:
            _try_plainly(target, data, source, path, expect(0), plain)
            if len(tried) < repeats:
                tried.append((path, expect))
        for key, (probability, value) in (counted or {}).items():
            found.masses[key] = found.masses.get(key, 0.0) + probability
            found.values.setdefault(key, value)
        for share, branch in path.branches:
            heapq.heappush(waiting, (-share, branch))
        found.paths += 1
        found.whole &= path.whole
        found.caveats |= path.caveats
        rest = -math.fsum(m for m, _ in waiting) if len(waiting) < 64 or found.paths % 64 == 0 else rest
    for k in range(max(0, repeats - found.paths) if tried else 0):
        if time.monotonic() > budget.deadline:
            raise Uncontrolled(f"the time was up before it had run {repeats} times with the same random numbers")
        _try_other_values(target, data, source, *tried[k % len(tried)], 1 + k // len(tried), plain)
    found.whole &= not waiting
    total = math.fsum(found.masses.values())
    if total > 1.0 + 1e-9 or (found.whole and total < 1.0 - 1e-9):
        raise AssertionError(f"probabilities of all paths add up to {total!r}: this is an error of dpaudit")
    return found


def _call(target: Mechanism, data: Any, source: ControlledSource) -> Any:
    """One output; what the target raises is one."""
    with raise_caught_signals():
        try:
            outputs = ask_once(target, data, source.rng)
        except Exception as error:  # noqa: BLE001 - whatever it raises is what it does
            if is_own_error(error):
                source.failures.append(error)
            outputs = [Raised(type(error).__name__)]
    try:
        (output,) = outputs
    except (TypeError, ValueError):
        raise Uncontrolled(f"one output was asked for, it returned {show_output(outputs)}") from None
    return output


def _open_outputs(path: RandomPath, output: Any) -> tuple[dict[Hashable, tuple[float, Any]], Callable[[int], Any]]:
    """Outputs of a path by key, with probabilities, and the one that `RandomPath.numbers` leads to at a turn.

    There are several where the output leaves values open.
    """
    variates: dict[int, Variate] = {}
    _collect(output, variates, 0)
    for variate in variates.values():
        variate.settle()
        if isinstance(variate.unknown, Interval):
            variate.decide()
    open_ones: dict[int, list[Variate]] = {}
    for variate in variates.values():
        if isinstance(variate.unknown, Listed):
            open_ones.setdefault(id(variate.unknown), []).append(variate)
    choices = [_joint_values(group) for group in open_ones.values()]
    if math.prod(len(c) for c in choices) > _MOST_OPEN:
        raise OutOfBudget
    others = math.prod(u.mass for u in path.unknowns if not u.joined and id(u) not in open_ones)
    counted: dict[Hashable, tuple[float, Any]] = {}
    fixed = {id(v): v.decide() for v in variates.values() if isinstance(v.unknown, Interval)}
    for combination in itertools.product(*choices):
        values, mass = dict(fixed), others
        for group, (numbers, share) in zip(open_ones.values(), combination, strict=True):
            mass *= share
            values |= {id(variate): number for variate, number in zip(group, numbers, strict=True)}
        plain = _substitute(output, values)
        key = freeze_output(plain)
        counted[key] = (counted[key][0] + mass if key in counted else mass, plain)

    def expect(turn: int) -> Any:
        picked = {
            id(variate): plain_value(variate.function[variate.unknown.pick(turn)])
            for variate in variates.values()
            if isinstance(variate.unknown, Listed)
        }
        return _substitute(output, fixed | picked)

    return counted, expect


def _joint_values(group: list[Variate]) -> list[tuple[tuple[Any, ...], float]]:
    """Values of the variates that follow from one unknown, with their probabilities."""
    unknown = group[0].unknown
    assert isinstance(unknown, Listed)
    columns = [np.asarray(variate.function)[unknown.left] for variate in group]
    keys = zip(*(tell_apart(column).tolist() for column in columns), strict=True)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    found: dict[tuple[Any, ...], tuple[tuple[Any, ...], float]] = {}
    for key, numbers, mass in zip(keys, rows, unknown.masses[unknown.left].tolist(), strict=True):
        found[key] = (numbers, found[key][1] + mass if key in found else mass)
    return list(found.values())


def _collect(value: Any, found: dict[int, Variate], depth: int) -> None:
    """Variates in an output."""
    if depth > _DEEPEST:
        raise Uncontrolled(f"its output is nested in more than {_DEEPEST} containers, which is not read")
    if isinstance(value, Variate):
        found[id(value)] = value
    elif isinstance(value, np.ndarray):
        if value.dtype == object:
            for element in value.flat:
                _collect(element, found, depth + 1)
    elif isinstance(value, dict):
        for key, element in value.items():
            _collect(key, found, depth + 1)
            _collect(element, found, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for element in value:
            _collect(element, found, depth + 1)
    elif hasattr(value, "__dict__") and not isinstance(value, type) and depth < 20:
        inside: dict[int, Variate] = {}
        for element in vars(value).values():
            _collect(element, inside, depth + 1)
        if inside:  # its attributes are not replaced: they are plain numbers from the start
            raise NeedsNumbers(frozenset().union(*(variate.unknown.draws for variate in inside.values())))


def _substitute(value: Any, values: Mapping[int, Any]) -> Any:
    """An output with plain numbers for its variates."""
    if isinstance(value, Variate):
        return values[id(value)]
    if not values and getattr(value, "__dict__", None):  # of a derived class, whose attributes would be lost
        return value
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [_substitute(element, values) for element in value]
    if isinstance(value, dict):
        return {_substitute(k, values): _substitute(v, values) for k, v in value.items()}
    if isinstance(value, list):
        return [_substitute(element, values) for element in value]
    if isinstance(value, tuple):
        return tuple(_substitute(element, values) for element in value)
    return value


def freeze_output(value: Any, depth: int = 0) -> Hashable:
    """A key that equal outputs share, and no others.

    Numbers of numpy are those of Python where their types are the usual ones; sequences are one kind; the order of a
    dict counts.

    Parameters
    ----------
    value : object
        An output.
    depth : int
        Containers around it.

    Raises
    ------
    Uncontrolled
        If not all of the output can be read.
    """
    if depth > _DEEPEST:
        raise Uncontrolled(f"its output is nested in more than {_DEEPEST} containers, which is not read")
    if type(value) is np.ndarray or isinstance(value, np.generic):
        if value.size == 0 and value.ndim > 1:
            return ("empty", value.dtype.name, value.shape)
        if value.dtype.kind in "biuf" and value.dtype.char != "g":
            key = freeze_output(value.tolist(), depth)
            return key if value.dtype.name in USUAL else (value.dtype.name, key)
        if value.dtype.kind in "OSU":
            value = value.tolist()
        elif isinstance(value, np.longdouble):  # no number of Python
            return (value.dtype.name, repr(value))
    if isinstance(value, _BUILT_IN) and getattr(value, "__dict__", None) and not isinstance(value, Enum):
        return _freeze_subclass(value, depth)
    if isinstance(value, bool | int | str | bytes) or value is None:
        return (type(value).__name__, value)
    if isinstance(value, float):
        return ("float", value.hex())
    if isinstance(value, list | tuple):
        return ("sequence", *(freeze_output(element, depth + 1) for element in value))
    if isinstance(value, dict):
        parts = value.items()
        return ("dict", *((freeze_output(k, depth + 1), freeze_output(v, depth + 1)) for k, v in parts))
    if isinstance(value, set | frozenset):
        return ("set", frozenset(freeze_output(element, depth + 1) for element in value))
    if isinstance(value, Raised):
        return ("raised", value.error)
    if isinstance(value, Typed):
        return (value.kind, freeze_output(value.value, depth + 1))
    seen = make_visible(value)
    unread = find_unreadable([seen]) or _find_hidden(value)
    if unread:
        raise Uncontrolled(f"its output has {', '.join(unread)}, of which not all can be read")
    return ("other", repr(value)) if seen is value else freeze_output(seen, depth + 1)


def _freeze_subclass(value: Any, depth: int) -> Hashable:
    """A key of a number, text or container of a derived class, with its attributes."""
    kind: Any = next(kind for kind in type(value).__mro__ if kind in _BUILT_IN)
    attributes: dict[str, Any] = vars(value)
    if any(name.startswith("_") for name in attributes):
        raise Uncontrolled(f"its output has objects of class {type(value).__qualname__}, of which not all can be read")
    plain = kind.__new__(kind, value) if kind not in (list, dict, set) else kind(value)
    return (type(value).__qualname__, freeze_output(plain, depth + 1), freeze_output(attributes, depth + 1))


def _find_hidden(value: Any, depth: int = 0) -> list[str]:
    """Classes of an object, and of those in it, that keep what is not read; attributes that are not public count."""
    if find_elements(value) is not None or depth > DEEPEST or type(value).__module__.partition(".")[0] in _KNOWN:
        return []
    names = [*getattr(value, "__dict__", ()), *(name for kind in type(value).__mro__ for name in _slots_of(kind))]
    if any(name.startswith("_") for name in names):
        return [f"objects of class {type(value).__qualname__}"]
    return [found for name in names for found in _find_hidden(getattr(value, name, None), depth + 1)]


def _slots_of(kind: type) -> list[str]:
    slots = kind.__dict__.get("__slots__", ())
    return [name for name in ([slots] if isinstance(slots, str) else slots) if name not in ("__weakref__", "__dict__")]


def _try_other_values(
    target: Mechanism,
    data: Any,
    source: ControlledSource,
    path: RandomPath,
    expect: Callable[[int], Any],
    turn: int,
    plain: frozenset[int],
) -> None:
    """Run a path again with other values of what its output leaves open.

    Values that variates treat in another way than plain numbers give the same wrong output each time, and ask for plain
    numbers; randomness that is not followed does not.
    """
    try:
        _try_plainly(target, data, source, path, expect(turn), _ALL, turn)
    except Uncontrolled as signal:
        if plain is _ALL:
            raise
        try:
            _try_plainly(target, data, source, path, expect(turn), _ALL, turn)
        except Uncontrolled:
            raise NeedsNumbers(_ALL) from None
        raise signal from None


def _try_plainly(
    target: Mechanism,
    data: Any,
    source: ControlledSource,
    path: RandomPath,
    expected: Any,
    plain: frozenset[int],
    turn: int = 0,
) -> None:
    """Run a path again with plain numbers: the output has to be the expected one."""
    source.failures.clear()  # errors of variates, which plain numbers may not have
    numbers = path.numbers(turn)
    again = RandomPath(script=numbers)
    with source.using(again):
        output = _call(target, data, source)
    if source.failures:
        error = source.failures.pop()
        raise Uncontrolled(f"a random number of it cannot be followed ({type(error).__name__}: {error})") from error
    seeds_agree = again.seeds == path.seeds
    if again.count == len(numbers) and seeds_agree and freeze_output(output) == freeze_output(expected):
        return
    if plain is not _ALL:
        raise NeedsNumbers(_ALL)
    if not seeds_agree:
        raise Uncontrolled("it makes generators with seeds that differ from call to call")
    found = show_output(output) if again.count == len(numbers) else "after other draws"
    raise Uncontrolled(
        f"run again with the same random numbers it returns {found}, not {show_output(expected)}: it has randomness "
        "that is not followed, or looks at more than values"
    )
