"""Noise primitives of libraries, which are recorded as one draw each: diffprivlib, OpenDP, PyDP, and torch's draws.

A library that is not imported is not looked at. What a primitive draws inside is not recorded by itself.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .patching import Substitute, refuse_call
from .recorder import PrimitiveNoise, Tape
from .torch_draws import find_torch_draws

#: Parameters of mechanisms that are looked at.
_PARAMETERS = ("epsilon", "delta", "sensitivity", "lower", "upper", "gamma", "dimension")
Current = Callable[[], Tape]


def find_units(current: Current) -> list[Substitute]:
    """What to replace, for the libraries that are imported.

    Parameters
    ----------
    current : callable
        Gives the tape of the current call.
    """
    return [
        *_diffprivlib_units(current),
        *_opendp_units(current),
        *_pydp_units(current),
        *find_torch_draws(current),
    ]


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and 0 < value < math.inf


# ------------------------------------------------------------------------------------ diffprivlib


def _diffprivlib_units(current: Current) -> Iterator[Substitute]:
    base = sys.modules.get("diffprivlib.mechanisms.base")
    for root in (getattr(base, name, None) for name in ("DPMachine", "DPMechanism")):
        if isinstance(root, type):
            yield from _randomise_methods(root, current)


def _randomise_methods(kind: type, current: Current) -> Iterator[Substitute]:
    method = vars(kind).get("randomise")
    if method is not None and not getattr(method, "__isabstractmethod__", False):
        yield kind, "randomise", _recorded_randomise(method, current)
    below: list[type] = kind.__subclasses__()
    for heir in below:
        yield from _randomise_methods(heir, current)


def _recorded_randomise(method: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def randomise(self: Any, *values: Any, **named: Any) -> Any:
        given = next(iter([*values, *named.values()]), None)
        parameters = {name: _parameter_of(self, name) for name in _PARAMETERS}
        known = {name: value for name, value in parameters.items() if value is not None}
        noise = _noise_of_mechanism(self, given, known)
        return current().record_unit(
            f"diffprivlib.{type(self).__name__}", lambda: method(self, *values, **named), known, noise
        )

    return randomise


def _parameter_of(mechanism: Any, name: str) -> Any:
    """A parameter; releases before 0.3 keep them with an underscore."""
    found = getattr(mechanism, name, None)
    found = getattr(mechanism, f"_{name}", None) if found is None else found
    return found if isinstance(found, int | float) else None


def _noise_of_mechanism(mechanism: Any, given: Any, known: dict[str, Any]) -> PrimitiveNoise:
    kind = type(mechanism).__name__
    epsilon, sensitivity = known.get("epsilon", 0.0), known.get("sensitivity", 0.0)
    if kind == "Laplace" and _is_positive(sensitivity):
        level = epsilon - math.log(1 - known.get("delta", 0.0))
        if _is_positive(level):
            return PrimitiveNoise(given, "laplace", sensitivity / level)
    if kind == "Geometric" and _is_positive(epsilon) and _is_positive(sensitivity):
        return PrimitiveNoise(given, "laplace", sensitivity / epsilon, whole=True)
    scale = getattr(mechanism, "_scale", None)
    if kind in ("Gaussian", "GaussianAnalytic") and _is_positive(scale):
        return PrimitiveNoise(given, "gaussian", float(scale))  # type: ignore[arg-type]  # a number, as was just looked at
    return PrimitiveNoise(given)


# ----------------------------------------------------------------------------------------- OpenDP


def _opendp_units(current: Current) -> Iterator[Substitute]:
    core, combinators = (sys.modules.get(f"opendp.{name}") for name in ("core", "combinators"))
    if core is None or combinators is None:
        return
    parts: dict[int, tuple[Any, Callable[[Any], Any]]] = {}  # of chains, by identity: the chain, and what it does
    make, invoke_core = getattr(combinators, "make_chain_mt", None), core.measurement_invoke

    def invoke(this: Any, arg: Any) -> Any:
        chain = parts.get(id(this))
        if chain is not None:
            return chain[1](arg)
        noise, parameters = _noise_of_measurement(this, arg)
        return current().record_native("opendp.Measurement", lambda: invoke_core(this, arg), parameters, noise)

    def chain_mt(measurement1: Any, transformation0: Any) -> Any:
        made = make(measurement1, transformation0)  # type: ignore[misc]  # looked at where this is yielded
        parts[id(made)] = made, lambda arg: invoke(measurement1, transformation0(arg))
        return made

    yield core, "measurement_invoke", invoke
    if make is not None:
        yield combinators, "make_chain_mt", chain_mt
    if hasattr(core, "queryable_eval"):
        yield core, "queryable_eval", refuse_call("asks a queryable of opendp, which draws inside and is not replayed")


def _noise_of_measurement(measurement: Any, given: Any) -> tuple[PrimitiveNoise, dict[str, Any]]:
    """Noise of a measurement as its privacy map tells it: of Laplace noise, epsilon is distance over scale."""
    metric, measure = str(measurement.input_metric), str(measurement.output_measure)
    try:
        one, two = (float(measurement.map(_distance(metric, k))) for k in (1, 2))
    except Exception:  # noqa: BLE001 - whatever a map raises, it tells nothing
        return PrimitiveNoise(given), {}
    name = metric.partition("(")[0]
    whole = all(isinstance(value, int) for value in (given if isinstance(given, list) else [given]))
    if measure.startswith("MaxDivergence") and _is_positive(one):
        if name in ("AbsoluteDistance", "L1Distance") and math.isclose(two, 2 * one, rel_tol=1e-6):
            return PrimitiveNoise(given, "laplace", 1 / one, whole), {"scale": 1 / one}
        return PrimitiveNoise(given), {"epsilon": one}
    if measure.startswith("ZeroConcentratedDivergence") and _is_positive(one) and not whole:
        if name in ("AbsoluteDistance", "L2Distance") and math.isclose(two, 4 * one, rel_tol=1e-6):
            return PrimitiveNoise(given, "gaussian", 1 / math.sqrt(2 * one)), {"scale": 1 / math.sqrt(2 * one)}
        return PrimitiveNoise(given), {"rho": one}
    return PrimitiveNoise(given), {}


def _distance(metric: str, size: int) -> Any:
    """A distance, of the type that the metric is of."""
    return float(size) if "(f" in metric else size


# ------------------------------------------------------------------------------------------- PyDP


def _pydp_units(current: Current) -> Iterator[Substitute]:
    native = getattr(sys.modules.get("pydp._pydp"), "_mechanisms", None)
    kind = getattr(native, "NumericalMechanism", None)
    if kind is not None:
        yield kind, "add_noise", _recorded_add_noise(kind.add_noise, current)
    algorithm = getattr(sys.modules.get("pydp.algorithms._algorithm"), "MetaAlgorithm", None)
    if algorithm is not None:
        yield from _algorithm_methods(algorithm, current)


def _recorded_add_noise(method: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def add_noise(self: Any, result: Any) -> Any:
        asked = {name: getattr(self, name, None) for name in ("epsilon", "delta", "sensitivity", "std")}
        known = {name: float(value) for name, value in asked.items() if isinstance(value, int | float)}
        whole, noise = isinstance(result, int), PrimitiveNoise(result)
        if type(self).__name__ == "LaplaceMechanism" and _is_positive(known.get("sensitivity")):
            noise = PrimitiveNoise(result, "laplace", known["sensitivity"] / known["epsilon"], whole)
        elif type(self).__name__ == "GaussianMechanism" and _is_positive(known.get("std")) and not whole:
            noise = PrimitiveNoise(result, "gaussian", known["std"])
        return current().record_native(f"pydp.{type(self).__name__}", lambda: method(self, result), known, noise)

    return add_noise


def _algorithm_methods(kind: Any, current: Current) -> Iterator[Substitute]:
    """Algorithms take rows and release in C++: what they add noise to is not seen, only the rows are."""
    rows: dict[int, tuple[Any, list[Any]]] = {}  # by identity: the algorithm, and what it was given
    add, add_all, reset = kind.add_entry, kind.add_entries, kind.reset
    quick, partial = kind.quick_result, kind.result

    def recorded(self: Any, call: Callable[[], Any], given: list[Any]) -> Any:
        known = {name: getattr(self, name) for name in ("epsilon", "delta")}
        known = {name: float(value) for name, value in known.items() if isinstance(value, int | float)}
        return current().record_native(f"pydp.{type(self).__name__}", call, known, PrimitiveNoise(given))

    def held(self: Any) -> list[Any]:
        return rows.setdefault(id(self), (self, []))[1]

    def add_entry(self: Any, value: Any) -> Any:
        held(self).append(value)
        return add(self, value)

    def add_entries(self: Any, data: Any) -> Any:
        held(self).extend(data)
        return add_all(self, data)

    def start_again(self: Any) -> Any:
        rows.pop(id(self), None)
        return reset(self)

    def quick_result(self: Any, data: Any) -> Any:
        return recorded(self, lambda: quick(self, data), list(data))

    def result(self: Any, *values: Any, **named: Any) -> Any:
        return recorded(self, lambda: partial(self, *values, **named), list(held(self)))

    yield from [(kind, "add_entry", add_entry), (kind, "add_entries", add_entries), (kind, "reset", start_again)]
    yield from [(kind, "quick_result", quick_result), (kind, "result", result)]
