"""Generators whose numbers are drawn on a path: numpy's, and Python's module random."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence, Sized
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from auditor.targets.randomness import distributions as of
from auditor.targets.randomness.distributions import Distribution, plain_value
from auditor.targets.randomness.holders import StandInGenerator
from auditor.targets.randomness.paths import RandomPath
from auditor.targets.randomness.signals import Uncontrolled, as_library
from auditor.targets.randomness.variates import Variate, draw_number

_INTEGER, _FLOAT = np.int64, np.float64


def _as_float(value: Any) -> float:
    return float(value)


def _as_int(value: Any) -> int:
    return int(value)


class PathGenerator(StandInGenerator):
    """A generator of numpy whose numbers are drawn on a path.

    Methods that are not followed raise `Uncontrolled`.

    Parameters
    ----------
    current : callable
        Gives the path of the current call.
    """

    def __reduce__(self) -> Any:
        raise Uncontrolled("a generator is copied or pickled")

    # ------------------------------------------------------------------------------- filling

    def _fill(self, distribution: Callable[..., Distribution], parameters: Sequence[Any], size: Any, dtype: Any) -> Any:
        """Numbers of a distribution whose parameters may be arrays."""
        arrays = [np.asarray(p) for p in parameters]
        if size is None and all(a.ndim == 0 for a in arrays):
            return draw_number(self._current(), distribution(*(a.item() for a in arrays)))
        shape = np.broadcast_shapes(*(a.shape for a in arrays)) if size is None else size
        out = np.empty(shape, dtype=object)
        rows = [np.broadcast_to(a, out.shape).ravel() for a in arrays]
        flat = out.reshape(-1)
        wraps = np.dtype(dtype) not in (_INTEGER, _FLOAT)  # where no 64-bit integer does
        for k in range(out.size):
            drawn = draw_number(self._current(), _of_numpy(distribution(*(plain_value(row[k]) for row in rows))))
            flat[k] = drawn.decide() if wraps and isinstance(drawn, Variate) else drawn
        return as_numpy_type(out, dtype)

    def _draw_integer(self, high: int) -> int:
        """A plain integer from 0 to ``high - 1``."""
        value = draw_number(self._current(), of.uniform_integers(0, high))
        return int(value)

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(np.random.Generator, name) and name not in _FOLLOWED:
            raise Uncontrolled(f"numpy's Generator.{name} is not followed")
        return super().__getattribute__(name)

    # ------------------------------------------------------------------------------ numbers

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """See numpy."""
        _check_plain(out is None and np.dtype(dtype) == np.float64, "Generator.random with out or another dtype")
        return self._fill(lambda: of.UNIFORM, (), size, _FLOAT)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """See numpy."""
        if size is None:
            size = np.broadcast_shapes(np.shape(low), np.shape(high)) or None
        width = high - low
        _check_plain(bool(np.all(width >= 0)) and bool(np.all(width < math.inf)), "uniform from high to low")
        return low + width * self.random(size)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        """See numpy."""
        low, high = (0, low) if high is None else (low, high)
        kind = np.dtype(dtype)
        _check_plain(kind.kind in "biu", f"Generator.integers with dtype {kind}")
        if size is None and np.ndim(low) == np.ndim(high) == 0:
            size = ()
        shift = int(endpoint)

        def law(a: Any, b: Any) -> Distribution:
            a, b = _as_int(a), _as_int(b) + shift
            if a >= b:
                raise as_library(ValueError("low >= high"))
            return of.uniform_integers(a, b, wraps=True)

        drawn = self._fill(law, (low, high), size, kind)
        one = drawn[()] if isinstance(drawn, np.ndarray) and drawn.ndim == 0 else drawn
        return bool(one) if isinstance(one, np.bool_) else one

    def geometric(self, p: Any, size: Any = None) -> Any:
        """See numpy."""

        def law(p: float) -> Distribution:
            if not 0 < p <= 1:
                raise as_library(ValueError("p <= 0, p > 1 or p contains NaNs"))
            return of.geometric(_as_float(p))

        return self._fill(law, (p,), size, _INTEGER)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """See numpy."""

        def law(n: Any, p: Any) -> Distribution:
            if not (n >= 0 and 0 <= p <= 1):
                raise as_library(ValueError("n < 0, p < 0, p > 1 or p is NaN"))
            return of.binomial(_as_int(n), _as_float(p))

        return self._fill(law, (n, p), size, _INTEGER)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """See numpy."""

        def law(rate: Any) -> Distribution:
            if not rate >= 0:
                raise as_library(ValueError("lam < 0 or lam contains NaNs"))
            return of.poisson(_as_float(rate))

        return self._fill(law, (lam,), size, _INTEGER)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """See numpy."""
        return self._fill(lambda a, b: of.laplace(_as_float(a), _check_scale(b)), (loc, scale), size, _FLOAT)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """See numpy."""
        return self._fill(lambda a, b: of.gumbel(_as_float(a), _check_scale(b)), (loc, scale), size, _FLOAT)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """See numpy."""
        return self._fill(lambda a, b: of.normal(_as_float(a), _check_scale(b)), (loc, scale), size, _FLOAT)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """See numpy."""
        _check_plain(out is None and np.dtype(dtype) == np.float64, "standard_normal with out or another dtype")
        return self._fill(lambda: of.normal(0.0, 1.0), (), size, _FLOAT)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """See numpy."""
        return self._fill(lambda b: of.exponential(_check_scale(b)), (scale,), size, _FLOAT)

    def standard_exponential(self, size: Any = None, *others: Any, **named: Any) -> Any:
        """See numpy."""
        _check_plain(not others and not named, "standard_exponential with a dtype, a method or out")
        return self._fill(lambda: of.exponential(1.0), (), size, _FLOAT)

    # --------------------------------------------------------------------- choices and orders

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        """See numpy."""
        _check_plain(bool(replace) or bool(shuffle), "Generator.choice without replacement and shuffle")
        things = np.arange(_as_whole(a, "Generator.choice")) if np.ndim(a) == 0 else np.asarray(a)
        count = things.shape[axis]
        number = math.prod(np.atleast_1d(size)) if size is not None else 1
        if p is not None:
            masses = tuple(float(v) for v in p)
            if len(masses) != count or min(masses) < 0 or abs(math.fsum(masses) - 1) > 1e-8 or not replace:
                if not replace:
                    raise Uncontrolled("Generator.choice with p and without replacement is not followed")
                raise as_library(ValueError("probabilities do not sum to 1"))
            places = [int(draw_number(self._current(), of.categories(masses))) for _ in range(number)]
        elif replace:
            if not count and number:
                raise as_library(ValueError("a cannot be empty unless no samples are taken"))
            places = [self._draw_integer(count) for _ in range(number)]
        else:
            if number > count:
                raise as_library(ValueError("Cannot take a larger sample than population when replace is False"))
            places = self._order(count, number)
        if size is None:
            return things[places[0]] if things.ndim == 1 else things.take(places[0], axis)
        return things.take(np.array(places, dtype=np.intp).reshape(size), axis)

    def _order(self, count: int, number: int | None = None) -> list[int]:
        """Distinct integers below a count, in random order."""
        rest, found = list(range(count)), []
        for _ in range(count if number is None else number):
            found.append(rest.pop(self._draw_integer(len(rest))))
        return found

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """See numpy."""
        if np.ndim(x) == 0:
            return np.array(self._order(_as_whole(x, "Generator.permutation")), dtype=np.intp)
        things = np.asarray(x)
        return things.take(self._order(things.shape[axis]), axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """See numpy."""
        order = self._order(len(x) if axis == 0 else x.shape[axis])
        x[:] = [x[k] for k in order] if isinstance(x, list) else np.asarray(x).take(order, axis)

    def permuted(self, x: Any, *, axis: Any = None, out: Any = None) -> Any:
        """See numpy."""
        things = np.array(x)
        _check_plain(out is None and (axis is None or things.ndim == 1), "Generator.permuted along an axis")
        return things.ravel()[self._order(things.size)].reshape(things.shape)

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """See numpy."""
        return [PathGenerator(self._current) for _ in range(n_children)]


#: Names of numpy's generator that are followed.
_FOLLOWED = frozenset(vars(PathGenerator)) & frozenset(dir(np.random.Generator))


def as_numpy_type(out: Any, dtype: Any) -> Any:
    """Give an array of plain numbers the type that numpy gives it.

    Parameters
    ----------
    out : ndarray of objects
        Plain numbers, or variates among them, which stay objects.
    dtype : data type
        What numpy returns.
    """
    if any(isinstance(value, Variate) for value in out.flat):
        return out
    return out.astype(dtype)


def _of_numpy(distribution: Distribution) -> Distribution:
    """The distribution of an element of an array, which is a float of numpy."""
    if not isinstance(distribution, of.Points) or distribution.wraps:
        return distribution
    value = distribution.value
    return replace(distribution, value=lambda k: _FLOAT(value(k)))


def _check_scale(value: Any) -> float:
    _check_plain(value == value, "noise with a scale that is nan")
    if not value >= 0:
        raise as_library(ValueError("scale < 0"))
    return float(value)


def _as_whole(value: Any, what: str) -> int:
    """A number that has to be an integer: of others Python and numpy think differently from version to version."""
    try:
        return operator.index(value)
    except TypeError:
        raise Uncontrolled(f"{what} with {value!r}, which is no integer, is not followed") from None


def _check_plain(fine: bool, what: str) -> None:
    _check_followed(fine, f"numpy's {what}")


def _check_followed(fine: bool, what: str) -> None:
    if not fine:
        raise Uncontrolled(f"{what} is not followed")


# ------------------------------------------------------------------------------ legacy and Python


def legacy_functions(rng: PathGenerator) -> dict[str, Callable[..., Any]]:
    """Functions of the module ``numpy.random``, and methods of its RandomState, by name."""

    def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        drawn = rng.integers(low, high, size, dtype)
        return int(drawn) if dtype is int and isinstance(drawn, np.integer) else drawn

    def refuse_seed(*_: Any, **__: Any) -> Any:
        raise Uncontrolled("it seeds numpy.random itself")

    def rand(*shape: int) -> Any:
        return rng.random(shape or None)

    def randn(*shape: int) -> Any:
        return rng.standard_normal(shape or None)

    def random(size: Any = None) -> Any:
        return rng.random(size)

    same = ("uniform", "geometric", "binomial", "poisson", "laplace", "gumbel", "normal", "standard_normal")
    more = ("exponential", "standard_exponential")
    found: dict[str, Callable[..., Any]] = {name: getattr(rng, name) for name in (*same, *more)}

    def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
        _check_plain(np.ndim(a) < 2, "random.choice of more than one dimension")
        return rng.choice(a, size, replace, p)

    def permutation(x: Any) -> Any:
        return rng.permutation(x)

    def shuffle(x: Any) -> None:
        rng.shuffle(x)

    found |= {"rand": rand, "randn": randn, "randint": randint, "choice": choice, "seed": refuse_seed}
    found |= {"permutation": permutation, "shuffle": shuffle}
    found |= dict.fromkeys(("random", "random_sample", "ranf", "sample"), random)
    return {name: _with_its_arguments(f"numpy.random.{name}", function) for name, function in found.items()}


def python_functions(path: Callable[[], RandomPath]) -> dict[str, Callable[..., Any]]:
    """Functions of the module ``random``, and methods of its generators, by name."""

    def random() -> Any:
        return draw_number(path(), of.UNIFORM)

    def integer(low: int, high: int) -> Any:
        return draw_number(path(), of.uniform_integers(low, high))

    def randrange(start: Any, stop: Any = None, step: Any = 1) -> Any:
        if stop is None:
            start, stop = 0, start
        start, stop, step = (_as_whole(value, "random.randrange") for value in (start, stop, step))
        if not step:
            raise as_library(ValueError("zero step for randrange()"))
        values = range(start, stop, step)
        if not values:
            raise as_library(ValueError(f"empty range in randrange({start}, {stop})"))
        return values.start + values.step * integer(0, len(values))

    def randint(a: Any, b: Any) -> Any:
        return randrange(a, _as_whole(b, "random.randint") + 1)

    def randbelow(exclusive_upper_bound: Any) -> Any:
        return randrange(exclusive_upper_bound)

    def getrandbits(k: Any) -> Any:
        bits = _as_whole(k, "random.getrandbits")
        if bits < 0:
            raise as_library(ValueError("number of bits must be non-negative"))
        return integer(0, 1 << bits)

    def uniform(a: float, b: float) -> Any:
        return a + (b - a) * random()

    def choice(seq: Sequence[Any]) -> Any:
        _check_sized(seq, "random.choice")
        if not len(seq):
            raise as_library(IndexError("Cannot choose from an empty sequence"))
        return seq[int(integer(0, len(seq)))]

    def choices(population: Sequence[Any], weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> list[Any]:
        _check_sized(population, "random.choices")
        if weights is None and cum_weights is None:
            return [choice(population) for _ in range(k)]
        if cum_weights is not None:
            _check_followed(weights is None, "random.choices with weights of two kinds")
            weights = np.diff([0, *cum_weights]).tolist()
        weights = [float(weight) for weight in weights]
        total = math.fsum(weights)
        usual = len(weights) == len(population) and min(weights, default=-1.0) >= 0 and 0 < total < math.inf
        _check_followed(usual, f"random.choices of {len(population)} with weights {weights}")
        masses = tuple(weight / total for weight in weights)
        return [population[int(draw_number(path(), of.categories(masses)))] for _ in range(k)]

    def sample(population: Sequence[Any], k: Any) -> list[Any]:
        _check_followed(isinstance(population, Sequence), f"random.sample of {type(population).__name__}")
        return _take_from(population, _as_whole(k, "random.sample"))

    def _take_from(population: Sequence[Any], k: int) -> list[Any]:
        rest = list(population)
        if not 0 <= k <= len(rest):
            raise as_library(ValueError("Sample larger than population or is negative"))
        return [rest.pop(int(integer(0, len(rest)))) for _ in range(k)]

    def shuffle(x: Any) -> None:
        x[:] = _take_from(x, len(x))

    def gauss(mu: float = 0.0, sigma: float = 1.0) -> Any:
        _check_followed(sigma >= 0, f"random.gauss with sigma = {sigma!r}")
        return draw_number(path(), of.normal(float(mu), float(sigma)))

    def expovariate(lambd: float = 1.0) -> Any:
        _check_followed(lambd > 0, f"random.expovariate with a rate of {lambd!r}")
        return draw_number(path(), of.exponential(1.0 / float(lambd)))

    def refuse_seed(*_: Any, **__: Any) -> Any:
        raise Uncontrolled("it seeds the module random itself")

    def randbytes(n: int) -> bytes:
        count = _as_whole(n, "a number of random bytes")
        if count > 1:
            raise Uncontrolled(f"{count} random bytes have too many values, {256.0**count:.3g}")
        _check_followed(count >= 0, f"a number of {count} random bytes")
        return bytes([int(integer(0, 256)) for _ in range(count)])

    def token_bytes(nbytes: int | None = None) -> bytes:
        return randbytes(32 if nbytes is None else nbytes)

    found: dict[str, Callable[..., Any]] = {
        "random": random,
        "randrange": randrange,
        "randint": randint,
        "getrandbits": getrandbits,
        "uniform": uniform,
        "choice": choice,
        "choices": choices,
        "sample": sample,
        "shuffle": shuffle,
        "gauss": gauss,
        "normalvariate": gauss,
        "expovariate": expovariate,
        "seed": refuse_seed,
        "randbytes": randbytes,
    }
    found |= {"randbelow": randbelow, "randbits": getrandbits, "token_bytes": token_bytes}
    return {name: _with_its_arguments(f"random.{name}", function) for name, function in found.items()}


def _with_its_arguments(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse arguments that a function does not take: the one that it stands in for may."""

    @wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        try:
            return function(*values, **named)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # it was not entered
                raise Uncontrolled(f"{name} with such arguments is not followed: {error}") from None
            raise

    return call


def _check_sized(values: Any, what: str) -> None:
    _check_followed(isinstance(values, Sized), f"{what} of {type(values).__name__}")
