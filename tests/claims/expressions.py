"""Levels as the inventory writes them: expressions in the claimed level and in parameters, evaluated."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

Value = float | str
Array = NDArray[np.floating[Any]]

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def level_of_masses(loss: Array, log_q: Array, delta: float) -> float:
    """Least epsilon >= 0 at which P exceeds e^epsilon Q by delta, from Q and the losses ln(P/Q)."""

    def excess(epsilon: float) -> float:
        more = loss > epsilon
        return float((np.exp(loss[more] + log_q[more]) * -np.expm1(epsilon - loss[more])).sum()) - delta

    return float(optimize.brentq(excess, 0.0, loss.max(), xtol=1e-13)) if excess(0.0) > 0 else 0.0


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Delta of Gaussian noise at epsilon; `mu` is the shift in standard deviations (catalogue, A4)."""
    left, right = stats.norm.cdf(mu / 2 - epsilon / mu), stats.norm.logcdf(-mu / 2 - epsilon / mu)
    return float(left - math.exp(epsilon + right))


def gaussian_shift(epsilon: float, delta: float) -> float:
    """Shift in standard deviations at which Gaussian noise has this level: the analytic calibration."""
    return float(optimize.brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, 1e-3, 50.0, xtol=1e-15))


def responses_level(step: float, k: float, delta: float) -> float:
    """Level at delta of k binary answers, each the true one with odds e^step (catalogue, A6)."""
    wrong = np.arange(round(k) + 1)
    return level_of_masses(step * (k - 2 * wrong), stats.binom.logpmf(wrong, round(k), stats.logistic.cdf(step)), delta)


def lattice_level(step: float, shift: float, delta: float) -> float:
    """Level at delta of an integer, moved by `shift`, plus noise k with mass as e^(-step |k|)."""
    k = np.arange(-math.ceil(60 / step), round(shift) + math.ceil(60 / step) + 1)
    log_q = math.log(math.tanh(step / 2)) - step * np.abs(k - shift)
    return level_of_masses(step * (np.abs(k - shift) - np.abs(k)), log_q, delta)


def lattice_gaussian_level(sigma: float, shift: float, delta: float) -> float:
    """Level at delta of an integer, moved by `shift`, plus noise k with mass as e^(-k^2 / (2 sigma^2))."""
    reach = math.ceil(40 * sigma)
    k = np.arange(-reach, round(shift) + reach + 1)
    log_total = math.log(np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2).sum())
    log_q = -0.5 * ((k - shift) / sigma) ** 2 - log_total
    return level_of_masses(0.5 * ((k - shift) ** 2 - k**2) / sigma**2, log_q, delta)


_FUNCTIONS: dict[str, Callable[..., float]] = {
    "ln": math.log,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "atanh": math.atanh,
    "abs": abs,
    "max": max,
    "min": min,
    "ceil": math.ceil,
    "round": round,
    "C": math.comb,
    "gaussian_shift": gaussian_shift,
    "responses_level": responses_level,
    "lattice_level": lattice_level,
    "lattice_gaussian_level": lattice_gaussian_level,
}


def evaluate(value: Value, names: Mapping[str, Value]) -> float:
    """Value of an expression; ``^`` is a power.

    Parameters
    ----------
    value : float or str
        A number, or an expression of numbers, names, + - * / ^, parentheses and the functions above.
    names : mapping
        Parameters; a value may be an expression of others.
    """

    def of(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id="inf"):
                return math.inf
            case ast.Name(id=written) if (name := written.removesuffix("_")) in names:
                return evaluate(names[name], {key: other for key, other in names.items() if key != name})
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -of(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](of(left), of(right))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*map(of, arguments))
        raise ValueError(f"expected numbers, functions and {sorted(names)}, got {ast.unparse(node)!r} in {value!r}")

    if not isinstance(value, str):
        return value
    try:
        # "lambda" is a word of the language, and no name in it.
        parsed = ast.parse(re.sub(r"\blambda\b", "lambda_", value.replace("^", "**")), mode="eval")
    except SyntaxError:
        raise ValueError(f"expected an expression, got {value!r}") from None
    return float(of(parsed.body))
