"""Classes as targets: objects that can be called, methods, and models that are fitted to the data."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.errors import SpecificationError
from auditor.targets.callables import CallAdapter, Mechanism, OneDraw
from auditor.targets.raises import describe_error
from auditor.targets.signatures import bind_function, check_given, list_parameters, split_labels

#: Parameters of a constructor that get an integer from the generator of a draw.
_SEEDED = ("random_state", "seed")
#: Seeds are below this: what numpy's older generators take.
_SEEDS = 2**32


@dataclass(frozen=True)
class FittedModel(CallAdapter):
    """One draw of a model, which is fitted to the data.

    It is made anew each time, and what it has learned is released.

    Parameters
    ----------
    function : type
        Class of the model, with a method ``fit``.
    given : mapping
        Arguments of its constructor.
    seed : str
        Parameter of the constructor that gets an integer from the generator; empty if there is none.
    member : str
        What is released: a fitted attribute, or a method's answer; empty for all attributes that end in "_".
    asked : mapping
        Arguments of the method.
    """

    function: Callable[..., Any]
    given: Mapping[str, Any]
    seed: str = ""
    member: str = ""
    asked: Mapping[str, Any] | None = None

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        """Fit a new model, and release what it has learned."""
        seeded = {self.seed: int(rng.integers(_SEEDS))} if self.seed else {}
        model = self.function(**self.given, **seeded)
        fit_model(model, data)
        if not self.member:
            return read_fitted(model)
        released = getattr(model, self.member)
        return released(**(self.asked or {})) if callable(released) else released

    def spell_values(self) -> str:
        """See `CallAdapter`."""
        return repr((self.given, self.member, self.asked))


def fit_model(model: Any, data: Any) -> None:
    """Fit a model to a dataset.

    Parameters
    ----------
    model : object
        Has a method ``fit(X)`` or ``fit(X, y)``.
    data : dataset
        Members of a dict are passed by name. Any other dataset is X, or where labels are needed a table whose last
        column has them.
    """
    parameters = list_parameters(model.fit) or []
    names = [p.name for p in parameters]
    if isinstance(data, dict) and set(data) <= set(names):
        model.fit(**data)
    elif len(parameters) > 1 and parameters[1].default is inspect.Parameter.empty and names[1] in ("y", "Y"):
        model.fit(*split_labels(data, names[:2]))
    else:
        model.fit(data)


def read_fitted(model: Any) -> dict[str, Any]:
    """Read what a model has learned: attributes that end in "_"."""
    found = {name: value for name, value in sorted(vars(model).items()) if name.endswith("_") and name[0] != "_"}
    if not found:
        raise AttributeError(f"fit has set no attribute of {type(model).__name__} whose name ends in '_'")
    return found


def bind_class(kind: type, member: str, text: str, one_draw: bool, given: Mapping[str, Any]) -> Mechanism:
    """Make a mechanism from a class.

    Parameters
    ----------
    kind : type
        The class. One with a method ``fit`` is a model, see `FittedModel`. Of any other one object is made, which is
        called, or whose method is.
    member : str
        Name of a method, or of a fitted attribute; empty for the object itself.
    text : str
        Name of the target, for errors.
    one_draw : bool
        It draws once.
    given : mapping
        Arguments, for the constructor where it has them, else for the method.

    Raises
    ------
    SpecificationError
        If there is no such member, or arguments are missing or too many.
    """
    static = inspect.getattr_static(kind, member, None) if member else None
    if isinstance(static, staticmethod | classmethod):
        return bind_function(getattr(kind, member), text, one_draw, given)
    parameters = list_parameters(kind)
    own = {p.name for p in parameters or []}
    made = {name: value for name, value in given.items() if name in own}
    asked = {name: value for name, value in given.items() if name not in own}
    is_model = callable(getattr(kind, "fit", None)) and not member.startswith("fit")
    if is_model and not one_draw:
        raise SpecificationError(
            f"target {text!r} is a model with fit: --one-draw fits it anew in each draw and releases what it learns"
        )
    _check_needed(parameters or [], made, text)
    if is_model:
        method = getattr(kind, member, None)
        if callable(method):
            check_given(asked, list_parameters(method) or [], text)
            _check_needed((list_parameters(method) or [])[1:], asked, text)
        else:
            check_given(asked, parameters or [], text)
        seed = next((name for name in _SEEDED if name in own and name not in given), "")
        return OneDraw(FittedModel(kind, made, seed, member, asked))
    try:
        thing = kind(**made)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also one that ends the interpreter
        said = f"{type(error).__name__}: {describe_error(error)}"
        raise SpecificationError(f"target {text!r}: no {kind.__name__} can be made: {said}") from error
    function = getattr(thing, member) if member else thing
    if not callable(function):
        methods = [name for name, part in vars(kind).items() if inspect.isfunction(part) and name[0] != "_"]
        raise SpecificationError(
            f"target {text!r} is a class whose objects cannot be called"
            + (f": name a method, as in {text}.{methods[0]}" if methods and not member else "")
        )
    return bind_function(function, text, one_draw, asked)


def _check_needed(parameters: list[inspect.Parameter], given: Mapping[str, Any], text: str) -> None:
    """Refuse a call in which parameters without a default have no value."""
    for p in parameters:
        if p.default is p.empty and p.name not in given and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            example = json.dumps([[0.5]]) if p.name == "X" else "1"
            raise SpecificationError(f"target {text!r} needs a value for {p.name}: --arg '{p.name}={example}'")
