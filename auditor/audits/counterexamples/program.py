"""A short program that counts an event on two datasets without dpaudit."""

from __future__ import annotations

import re
from collections.abc import Collection

from auditor.audits.counterexamples.snippet import list_imports, python_of_pair
from auditor.datasets import Pair
from auditor.events.event_learner import Chain
from auditor.events.features import Distance

#: Draws a side; arbitrary, some seconds of most functions, and enough for an event that is seen in 1 of 100.
DRAWS = 1_000
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_PLACE = r"output(?:\[\d+\])*"
_TERM = r"\(output\[\d+\] [-+] \d+(?:\.\d+)?(?:e[+-]?\d+)?\)"
#: Forms of events that are Python, or nearly so.
_FORMS = (
    (re.compile(rf"({_PLACE}) is -0\.0"), r"str(\1) == '-0.0'"),  # which equals 0.0
    (re.compile(rf"({_PLACE}) (<=|>|<|>=) ({_NUMBER})"), r"\1 \2 \3"),
    (re.compile(rf"({_NUMBER}) (<=|<) ({_PLACE}) (<=|<) ({_NUMBER})"), r"\1 \2 \3 \4 \5"),
    (re.compile(rf"({_PLACE}) (?:=|is) ({_NUMBER})"), r"\1 == \2"),
    (re.compile(rf"({_PLACE}) in \{{({_NUMBER}(?:, {_NUMBER})*)\}}"), r"\1 in (\2,)"),
    (re.compile(rf"output is (\[{_NUMBER}(?:, {_NUMBER})*\])"), r"list(output) == \1"),
    (re.compile(rf"sum\(output\) (<=|>) ({_NUMBER})"), r"sum(output) \1 \2"),
    (re.compile(rf"({_TERM}) ({_TERM}) (<=|>) ({_NUMBER})"), r"\1 * \2 \3 \4"),
    (re.compile(rf"({_PLACE}) leaves the remainder (\d+) when divided by (\d+)"), r"\1 % \3 == \2"),
    (re.compile(rf"({_PLACE}) does not leave the remainder (\d+) when divided by (\d+)"), r"\1 % \3 != \2"),
    (re.compile(r"character (\[-?\d+\]) in the text of output (<=|>) ('[^'\\]')"), r"output\1 \2 \3"),
)
#: Numbers of an event, without those of places and of letters.
_WRITTEN = re.compile(rf"(?<![\w.\[']){_NUMBER}(?![\w.'])")
#: How a function is called: by the names of its parameters where one is called n, else as (data, n, rng).
_CALL = """def call(data):
    rng = np.random.default_rng()
    seed = int(rng.integers(2**32))
    known = {"n": n, "rng": rng, "generator": rng, "seed": seed, "random_state": seed}
    given = {
        name: known.get(name, rng)
        for name, parameter in list(inspect.signature(draw).parameters.items())[1:]
        if name in known or (parameter.default is parameter.empty and str(parameter)[0] != "*")
    }
    return draw(data, **given) if "n" in given else draw(data, n, rng)
"""


def list_numbers(chain: Chain) -> list[float]:
    """List the numbers of an event of one cut, unrounded.

    Parameters
    ----------
    chain : Chain
        The event.
    """
    (cut,) = chain.cuts[:1]
    return [chain.feature.centre - cut, chain.feature.centre + cut] if isinstance(chain.feature, Distance) else [cut]


def restore_numbers(event: str, exact: Collection[float]) -> str:
    """Write the unrounded numbers into an event in words.

    Parameters
    ----------
    event : str
        The event in words, whose numbers have six digits.
    exact : collection of float
        Numbers of the event that are known.

    Returns
    -------
    str
        Empty if another number may be rounded.

    Examples
    --------
    >>> restore_numbers("output > 2e+07", [20000000.25]), restore_numbers("output is 1.23457", [])
    ('output > 20000000.25', '')
    """
    known = {f"{value:.6g}": value for value in exact}
    for text in _WRITTEN.findall(event):
        if text not in known and ("e" in text or len(re.sub(r"\D", "", text).lstrip("0")) == 6):
            return ""
    return _WRITTEN.sub(
        lambda found: found[0] if known.get(found[0]) in (None, float(found[0])) else repr(known[found[0]]), event
    )


def express_event(event: str) -> str:
    """Python expression for an event on ``output``.

    Parameters
    ----------
    event : str
        The event in words, as reports have it, or as `restore_numbers` has it.

    Returns
    -------
    str
        Empty for events that a line of Python does not tell.

    Examples
    --------
    >>> express_event("output[2] is 4"), express_event("output is 1 plus a float")
    ('output[2] == 4', '')
    """
    for form, expression in _FORMS:
        if form.fullmatch(event):
            return form.sub(expression, event)
    return ""


def write_program(
    target: str, pair: Pair, event: str, one_draw: bool = False, arguments: object = (), exact: Collection[float] = ()
) -> str:
    """Write a program that counts an event on two datasets.

    Parameters
    ----------
    target : str
        Name of the target, as the command line takes it.
    pair : Pair
        Datasets that may be shown.
    event : str
        The event in words.
    one_draw : bool
        The target draws once a call.
    arguments : sequence of str
        Further arguments of the target.
    exact : collection of float
        Numbers of the event, unrounded, see `list_numbers`.

    Returns
    -------
    str
        Empty if the target is no function that is called with data and a number of draws, if the datasets are too large
        to be pasted, or if no line of Python tells the event, as where its numbers are rounded.
    """
    event = restore_numbers(event, exact)
    scheme, _, rest = target.partition(":")
    where, _, name = (rest.rpartition("#")[2] if scheme == "pip" else target).rpartition(":")
    counted, shown = express_event(event), python_of_pair(pair)
    callable_name = re.fullmatch(r"[^\W\d]\w*", name)
    plain = callable_name and where and scheme not in ("exec", "http", "https") and not one_draw and not arguments
    if not plain or not counted or shown is None:
        return ""
    x, y = shown
    loader, loaded = (
        ("runpy", f"runpy.run_path({where!r})[{name!r}]")
        if where.endswith(".py")
        else ("importlib", f"importlib.import_module({where!r}).{name}")
    )
    text = "\n".join(
        [
            "",
            f"draw = {loaded}",
            f"n = {DRAWS}",
            "",
            "",
            _CALL,
            "",
            f'for name, data in {{"x": {x}, "x\'": {y}}}.items():',
            f"    shown = sum(bool({counted}) for output in call(data))",
            f"    print(name, {event!r}, shown, 'of', n)",
            "",
        ]
    )
    return "\n".join([*sorted((f"import {loader}", "import inspect")), *list_imports(text)]) + "\n" + text
