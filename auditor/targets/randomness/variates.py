"""Random numbers that are decided no further than the code asks."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.targets.randomness.distributions import MOST_VALUES, Distribution, MassTable, Points, plain_value
from auditor.targets.randomness.paths import Interval, Listed, RandomPath, Unknown
from auditor.targets.randomness.signals import NeedsNumbers, Uncontrolled

#: Points on either side of a comparison that are left out where a function has errors of rounding.
_MARGIN = 4_096
#: What is not followed.
_BEYOND = "needed as a number: only comparisons, sums and products with numbers, and increasing functions are followed"
#: Pairs of values of two variates at most that are compared without deciding the older one's value first.
_MOST_COMPARED = 50_000
#: Pairs of values of two variates at most that are joined into one.
_MOST_PAIRS = 4_000_000
#: Integers below this fit into 64 bits, with a bit to spare.
_LARGEST = 2**62
#: Integers up to this are floats without rounding.
_LARGEST_EXACT = 2**53
_COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
_SUMS = (operator.add, operator.sub, operator.mul)


def draw_number(path: RandomPath, distribution: Distribution) -> Any:
    """Draw a number on a path.

    Parameters
    ----------
    path : RandomPath
        The path.
    distribution : MassTable or Points
        Its distribution.

    Returns
    -------
    Variate or number
        A plain number where the path has a script, or the draw is to be decided at once.
    """
    drawn = path.draw(distribution)
    if not isinstance(drawn, Unknown):
        return drawn
    if isinstance(distribution, Points):
        integral = isinstance(distribution.value(distribution.first), int | np.integer)
        return Variate(path, drawn, distribution.value, distribution.exact, integral=integral)
    variate = Variate(path, drawn, distribution.values)
    numeric = distribution.values.dtype.kind in "iuf"  # code asks others what they are, such as "is None"
    return variate if numeric and not drawn.draws <= path.plain else variate.decide()


def _pair_up(path: RandomPath, one: Listed, two: Listed) -> None:
    """Make one unknown of two: the pairs of their values that are left."""
    rows, columns = np.repeat(one.left, len(two.left)), np.tile(two.left, len(one.left))
    table = MassTable(np.arange(len(rows)), one.masses[rows] * two.masses[columns])
    pair = Listed(table, one.draws | two.draws, [(one, rows), (two, columns)])
    one.joined = two.joined = True
    one.pair, two.pair = (pair, rows), (pair, columns)
    path.unknowns.append(pair)


class Variate:
    """A function of one random number, decided only when asked.

    Arithmetic gives variates. A comparison, and whatever needs a plain number, decides: the path takes one branch and
    leaves the others.

    Parameters
    ----------
    path : RandomPath
        The path that it is drawn on.
    unknown : Listed or Interval
        What it is a function of.
    function : ndarray or callable
        Its value at each of the listed values, or at a point.
    exact : bool
        For points: the function is monotone without errors of rounding.
    rises : bool
        For points: increasing, not decreasing.
    integral : bool
        For points: the values are integers, whatever their type.
    """

    __slots__ = ("exact", "function", "integral", "path", "rises", "unknown")

    def __init__(
        self,
        path: RandomPath,
        unknown: Unknown,
        function: Any,
        exact: bool = True,
        rises: bool = True,
        integral: bool = False,
    ) -> None:
        self.path, self.unknown, self.function = path, unknown, function
        self.exact, self.rises, self.integral = exact, rises, integral

    # ----------------------------------------------------------------------------- decisions

    def settle(self) -> None:
        """Refer to the unknown that this number's has become part of.

        Raises
        ------
        NeedsNumbers
            If that one does not tell this number any more.
        """
        while self.unknown.joined:
            if self.unknown.pair is None:
                raise NeedsNumbers(self.unknown.draws)
            self.unknown, places = self.unknown.pair
            self.function = self.function[places]

    def _values_left(self) -> NDArray[Any]:
        """Values that are left, of a listed unknown."""
        assert isinstance(self.unknown, Listed)  # callers have looked
        left: NDArray[Any] = np.asarray(self.function[self.unknown.left])
        return left

    def decide(self) -> Any:
        """Decide the value: a plain number."""
        self.settle()
        if isinstance(self.unknown, Interval):
            return self._decide_points()
        unknown = self.unknown
        assert isinstance(unknown, Listed)
        values, which = _find_distinct(self._values_left())
        masses = np.bincount(which, unknown.masses[unknown.left], minlength=len(values))
        chosen = self.path.decide(masses.tolist())
        unknown.left = unknown.left[which == chosen]
        return plain_value(values[chosen])

    def _decide_points(self) -> Any:
        unknown = self.unknown
        assert isinstance(unknown, Interval)
        try:
            first = self.function(unknown.low)
        except (OverflowError, ValueError):  # such as the integer part of the logarithm of 0
            self._take_piece([unknown.low, unknown.low + 1, unknown.high], margin=0)
            first = self.function(unknown.low)
        last = self.function(unknown.high - 1)
        if first == last:
            return first
        if not self.integral:
            raise Uncontrolled(f"a continuous random number is {_BEYOND}")
        if abs(last - first) >= MOST_VALUES:
            raise Uncontrolled(f"an integer with {abs(last - first) + 1:.3g} values is needed as a number")
        low, high = int(min(first, last)), int(max(first, last))
        ends = [self._first_point(operator.ge if self.rises else operator.lt, c) for c in range(low + 1, high + 1)]
        self._take_piece(sorted({unknown.low, *ends, unknown.high}), _MARGIN * (not self.exact))
        return self.function(unknown.low)

    def _first_point(self, compare: Callable[[Any, Any], Any], other: Any) -> int:
        """First point left from which on a comparison with a number holds, by bisection; the end if it never does."""
        self.path.check_time()
        unknown = self.unknown
        assert isinstance(unknown, Interval)
        low, high = unknown.low, unknown.high
        while low < high:
            middle = (low + high) // 2
            if compare(self.function(middle), other):
                high = middle
            else:
                low = middle + 1
        return low

    def _take_piece(self, edges: Sequence[int], margin: int) -> None:
        """Decide between pieces of the points, which lose a margin where they meet."""
        unknown = self.unknown
        assert isinstance(unknown, Interval)
        lows = [edge + margin * (edge > unknown.low) for edge in edges[:-1]]
        highs = [edge - margin * (edge < unknown.high) for edge in edges[1:]]
        if margin and len(edges) > 2:
            self.path.whole = False
        count = unknown.points.count
        taken = self.path.decide([max(0, b - a) / count for a, b in zip(lows, highs, strict=True)])
        unknown.low, unknown.high = lows[taken], highs[taken]

    def _compare(self, other: Any, compare: Callable[[Any, Any], Any]) -> Any:
        self.settle()
        if isinstance(other, Variate):
            other.settle()
            if other.unknown is self.unknown:
                if isinstance(self.unknown, Interval):
                    raise Uncontrolled("a continuous random number is compared with itself")
                _check_agreement(compare, self._values_left(), other._values_left(), self.unknown.draws)
                return self._split(np.asarray(compare(self._values_left(), other._values_left()), dtype=bool))
            if isinstance(self.unknown, Interval) and isinstance(other.unknown, Interval):
                raise Uncontrolled("two continuous random numbers are compared")
            if isinstance(self.unknown, Listed) and isinstance(other.unknown, Listed):
                if len(self.unknown.left) * len(other.unknown.left) <= _MOST_COMPARED:
                    _pair_up(self.path, self.unknown, other.unknown)
                    return self._compare(other, compare)
                if min(self.unknown.draws) < min(other.unknown.draws):
                    return compare(self.decide(), other)
                return self._compare(other.decide(), compare)
            if isinstance(self.unknown, Listed):
                return compare(self.decide(), other)
            return self._compare(other.decide(), compare)
        if isinstance(other, np.ndarray):
            return NotImplemented
        if isinstance(self.unknown, Interval):
            return self._split_points(other, compare)
        if isinstance(other, int | float | np.number):
            _check_agreement(compare, self._values_left(), other, self.unknown.draws)
        with np.errstate(all="ignore"):
            return self._split(np.asarray(compare(self._values_left(), other), dtype=bool))

    def _split(self, holds: NDArray[np.bool_]) -> bool:
        """Decide whether a condition holds on the values that are left."""
        unknown = self.unknown
        assert isinstance(unknown, Listed)
        if holds.shape != unknown.left.shape:
            raise NeedsNumbers(unknown.draws)
        masses = unknown.masses[unknown.left]
        taken = self.path.decide([float(masses[~holds].sum()), float(masses[holds].sum())])
        unknown.left = unknown.left[holds == bool(taken)]
        return bool(taken)

    def _split_points(self, other: Any, compare: Callable[[Any, Any], Any]) -> bool:
        unknown = self.unknown
        assert isinstance(unknown, Interval)
        # Below, equal, above, in the order of the points.
        beyond = (operator.ge, operator.gt) if self.rises else (operator.le, operator.lt)
        ends = [self._first_point(far, other) for far in beyond]
        edges = sorted({unknown.low, *ends, unknown.high})
        if len(edges) == 2:
            return bool(compare(self.function(unknown.low), other))
        kinds = [bool(compare(self.function((a + b - 1) // 2), other)) for a, b in itertools.pairwise(edges)]
        merged = [edges[0]]
        for k, edge in enumerate(edges[1:-1]):
            if kinds[k] != kinds[k + 1]:
                merged.append(edge)
        merged.append(edges[-1])
        if len(merged) == 2:
            return kinds[0]
        self._take_piece(merged, _MARGIN * (not self.exact))
        return bool(compare(self.function((unknown.low + unknown.high - 1) // 2), other))

    # ---------------------------------------------------------------------------- arithmetic

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
        """A function of numpy, element for element, beside arrays of the usual types.

        Others, such as arrays of float32, would become objects here, and round what is added to them otherwise.
        """
        for other in inputs:
            kind = other.dtype if isinstance(other, np.ndarray | np.generic) else None
            if kind is not None and not kind.hasobject and not _is_usual(np.asarray(other)):
                if not isinstance(self.unknown, Interval):
                    raise NeedsNumbers(self.unknown.draws)
                raise Uncontrolled(f"a random number meets {kind} of numpy, which is not followed")
        return getattr(ufunc, method)(*(_box(v) if isinstance(v, Variate) else v for v in inputs), **named)

    def _apply(self, function: Callable[[Any], Any]) -> Variate:
        """The value of a function of one number."""
        self.settle()
        if isinstance(self.unknown, Interval):
            raise Uncontrolled(f"a continuous random number is {_BEYOND}")
        with np.errstate(all="ignore"):
            values = np.asarray(function(self.function))
        if values.shape != self.function.shape:
            raise NeedsNumbers(self.unknown.draws)
        return Variate(self.path, self.unknown, values)

    def _apply_monotone(
        self, function: Callable[[Any], Any], rises: bool = True, exact: bool = True, integral: bool = False
    ) -> Variate:
        """The value of a monotone function of one number."""
        if isinstance(self.unknown, Listed):
            return self._apply(function)
        self.settle()
        inner = self.function

        def value(k: int) -> Any:
            with np.errstate(all="ignore"):
                return function(inner(k))

        return Variate(self.path, self.unknown, value, self.exact and exact, self.rises == rises, integral)

    def _combine_with(self, other: Any, combine: Callable[[Any, Any], Any], way: str) -> Any:
        """The value of an operation with another number on the right."""
        if isinstance(other, np.ndarray):
            return NotImplemented
        if isinstance(other, Variate):
            return self._join(other, combine, way)
        if isinstance(self.unknown, Listed):
            self.settle()
            _check_agreement(combine, self._values_left(), other, self.unknown.draws)
            return self._apply(lambda values: combine(values, other))
        if isinstance(other, str | bytes) or not np.isscalar(other):
            raise Uncontrolled(f"a continuous random number is combined with {type(other).__name__}")
        integral = self.integral and isinstance(other, int | np.integer) and way in ("sum", "minus")
        number: Any = other
        if self.unknown.points.wraps and isinstance(other, int | np.integer):  # type: ignore[attr-defined]
            self._check_size(combine, int(other))
        if way == "sum" or (way == "product" and number > 0):
            return self._apply_monotone(lambda v: combine(v, other), integral=integral)
        if way == "minus" or (way == "product" and number < 0):
            return self._apply_monotone(lambda v: combine(v, other), rises=False, integral=integral)
        if way == "product" and other == 0:
            return combine(self.function((self.unknown.low + self.unknown.high) // 2), other)  # type: ignore[attr-defined]
        raise Uncontrolled(f"a continuous random number is {_BEYOND}")

    def _check_size(self, combine: Callable[[Any, Any], Any], number: int) -> None:
        """Refuse sums and products of an integer of numpy that might wrap around."""
        unknown = self.unknown
        assert isinstance(unknown, Interval)
        ends = [combine(int(self.function(k)), number) for k in (unknown.low, unknown.high - 1)]
        if max(map(abs, ends)) >= _LARGEST:
            count = unknown.high - unknown.low
            raise Uncontrolled(f"an integer of numpy with {count:.3g} values may wrap around, which is not followed")

    def _join(self, other: Variate, combine: Callable[[Any, Any], Any], way: str) -> Any:
        """The value of an operation on two random numbers, which become one."""
        self.settle()
        other.settle()
        one, two = self.unknown, other.unknown
        if one is two and isinstance(one, Listed):
            _check_agreement(combine, self._values_left(), other._values_left(), one.draws)
            with np.errstate(all="ignore"):
                return Variate(self.path, one, np.asarray(combine(self.function, other.function)))
        if isinstance(one, Interval) and isinstance(two, Interval):
            raise Uncontrolled("two continuous random numbers are combined")
        if isinstance(one, Interval):
            return self._combine_with(other.decide(), combine, way)
        if isinstance(two, Interval):
            number = self.decide()
            turned = "minus" if way == "difference" else way
            return other._combine_with(number, lambda v, c: combine(c, v), turned if way != "quotient" else "none")
        assert isinstance(one, Listed)
        assert isinstance(two, Listed)
        if len(one.left) * len(two.left) > _MOST_PAIRS:
            older, newer = (self, other) if min(one.draws) < min(two.draws) else (other, self)
            number = older.decide()
            return combine(number, newer) if older is self else combine(newer, number)
        _check_agreement(combine, self._values_left(), other._values_left(), one.draws | two.draws)
        with np.errstate(all="ignore"):
            grid = np.asarray(combine(self._values_left()[:, None], other._values_left()[None, :])).ravel()
        _, first, which = np.unique(tell_apart(grid), return_index=True, return_inverse=True)
        values = grid[first]
        masses = np.outer(one.masses[one.left], two.masses[two.left]).ravel()
        table = MassTable(values, np.bincount(which.ravel(), masses, minlength=len(values)).astype(np.float64))
        rows, columns = np.divmod(first, len(two.left))
        joined = Listed(table, one.draws | two.draws, [(one, one.left[rows]), (two, two.left[columns])])
        one.joined = two.joined = True
        self.path.unknowns.append(joined)
        return Variate(self.path, joined, values)

    def __add__(self, other: Any) -> Any:
        return self._combine_with(other, operator.add, "sum")

    def __radd__(self, other: Any) -> Any:
        return self._combine_with(other, _SwappedOperation(operator.add), "sum")

    def __sub__(self, other: Any) -> Any:
        return self._combine_with(other, operator.sub, "sum" if not isinstance(other, Variate) else "difference")

    def __rsub__(self, other: Any) -> Any:
        return self._combine_with(other, _SwappedOperation(operator.sub), "minus")

    def __mul__(self, other: Any) -> Any:
        return self._combine_with(other, operator.mul, "product")

    def __rmul__(self, other: Any) -> Any:
        return self._combine_with(other, _SwappedOperation(operator.mul), "product")

    def __truediv__(self, other: Any) -> Any:
        return self._combine_with(other, operator.truediv, "product" if not isinstance(other, Variate) else "quotient")

    def __rtruediv__(self, other: Any) -> Any:
        return self._combine_with(other, _SwappedOperation(operator.truediv), "quotient")

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(self.unknown, Interval) and isinstance(other, int | float | np.number):
            if not other:
                raise Uncontrolled(f"a continuous random number is divided by {other!r}, which is not followed")
            return self._apply_monotone(lambda v: v // other, rises=bool(other > 0), integral=True)
        return self._combine_with(other, operator.floordiv, "quotient")

    def __rfloordiv__(self, other: Any) -> Any:
        return self._combine_with(other, _SwappedOperation(operator.floordiv), "quotient")

    def __mod__(self, other: Any) -> Any:
        return self._combine_with(other, operator.mod, "none")

    def __rmod__(self, other: Any) -> Any:
        return self._combine_with(other, _SwappedOperation(operator.mod), "none")

    def __pow__(self, other: Any) -> Any:
        return self._combine_with(other, operator.pow, "none")

    def __rpow__(self, other: Any) -> Any:
        return self._combine_with(other, _SwappedOperation(operator.pow), "none")

    def __and__(self, other: Any) -> Any:
        return self._combine_with(other, operator.and_, "none")

    def __or__(self, other: Any) -> Any:
        return self._combine_with(other, operator.or_, "none")

    def __xor__(self, other: Any) -> Any:
        return self._combine_with(other, operator.xor, "none")

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __rshift__(self, other: Any) -> Any:
        if isinstance(self.unknown, Interval) and np.isscalar(other):
            return self._apply_monotone(lambda v: v >> other, integral=True)
        return self._combine_with(other, operator.rshift, "none")

    def __lshift__(self, other: Any) -> Any:
        return self._combine_with(other, operator.lshift, "none")

    def __neg__(self) -> Variate:
        return self._apply_monotone(operator.neg, rises=False, integral=self.integral)

    def __pos__(self) -> Variate:
        return self

    def __invert__(self) -> Variate:
        return self._apply(operator.invert)

    def __abs__(self) -> Any:
        if isinstance(self.unknown, Interval):
            return -self if self < 0 else self
        return self._apply(operator.abs)

    def floor(self) -> Variate:
        """Largest integer below, as a float.

        Numpy calls this and the following methods by their names.
        """
        return self._apply_monotone(np.floor, integral=True)

    def ceil(self) -> Variate:
        """Smallest integer above."""
        return self._apply_monotone(np.ceil, integral=True)

    def rint(self) -> Variate:
        """Nearest integer."""
        return self._apply_monotone(np.rint, integral=True)

    def trunc(self) -> Variate:
        """Integer towards zero."""
        return self._apply_monotone(np.trunc, integral=True)

    def exp(self) -> Variate:
        """Exponential."""
        return self._apply_monotone(np.exp, exact=False)

    def expm1(self) -> Variate:
        """Exponential less 1."""
        return self._apply_monotone(np.expm1, exact=False)

    def log(self) -> Variate:
        """Logarithm."""
        return self._apply_monotone(np.log, exact=False)

    def log1p(self) -> Variate:
        """Logarithm of 1 and the number."""
        return self._apply_monotone(np.log1p, exact=False)

    def sqrt(self) -> Variate:
        """Square root."""
        return self._apply_monotone(np.sqrt, exact=False)

    def conjugate(self) -> Variate:
        """The number itself."""
        return self

    # --------------------------------------------------------------------------- comparisons

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, operator.ge)

    def __eq__(self, other: Any) -> Any:
        return self._compare(other, operator.eq)

    def __ne__(self, other: Any) -> Any:
        return self._compare(other, operator.ne)

    # ------------------------------------------------------------------------- plain numbers

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __int__(self) -> int:
        if isinstance(self.unknown, Interval):
            return int(self._apply_monotone(_truncate, integral=True).decide())
        return int(self.decide())

    def __index__(self) -> int:
        return int(operator.index(self.decide()))

    def __float__(self) -> float:
        return float(self.decide())

    def __floor__(self) -> int:
        if isinstance(self.unknown, Interval):
            return int(self._apply_monotone(_floor, integral=True).decide())
        return _floor(self.decide())

    def __ceil__(self) -> int:
        return -(-self).__floor__()

    def __trunc__(self) -> int:
        return int(self)

    def __round__(self, digits: int | None = None) -> Any:
        if digits is None and isinstance(self.unknown, Interval):
            return self._apply_monotone(round, integral=True).decide()
        return round(self.decide(), digits) if digits is not None else round(self.decide())

    def __hash__(self) -> int:
        return hash(self.decide())

    def __repr__(self) -> str:
        return repr(self.decide())

    def __format__(self, spec: str) -> str:
        return format(self.decide(), spec)

    def item(self) -> Any:
        """The plain number."""
        return self.decide()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise Uncontrolled("a random number is copied or pickled")

    def __copy__(self) -> Variate:
        return self

    def __deepcopy__(self, memo: Any) -> Variate:
        return self


def _box(variate: Variate) -> NDArray[Any]:
    """An array without dimensions that holds a random number."""
    box = np.empty((), dtype=object)
    box[()] = variate
    return box


def _floor(value: float) -> int:
    return math.floor(value)


def _truncate(value: Any) -> int:
    return int(value)


def _find_distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Distinct values, and which of them each is."""
    if values.dtype == object:  # such as None beside numbers, which have no order
        index: dict[Any, int] = {}
        places = [index.setdefault((type(value), value), len(index)) for value in values]
        found = np.empty(len(index), dtype=object)
        found[:] = [value for _, value in index]
        return found, np.array(places, dtype=np.intp)
    _, first, which = np.unique(tell_apart(values), return_index=True, return_inverse=True)
    return values[first], np.asarray(which).ravel()


def tell_apart(values: NDArray[Any]) -> NDArray[Any]:
    """Tell 0.0 and -0.0 apart.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Numbers.

    Returns
    -------
    ndarray of shape (n_values,)
        The values, or their bits where there is a -0.0: equal only where outputs are.
    """
    if values.dtype == np.float64 and bool(np.any((values == 0.0) & np.signbit(values))):
        return np.ascontiguousarray(values).view(np.int64)
    return values


@dataclass(frozen=True)
class _SwappedOperation:
    """An operation with its operands in the other order."""

    operation: Callable[[Any, Any], Any]

    def __call__(self, value: Any, other: Any) -> Any:
        return self.operation(other, value)


def _check_agreement(combine: Callable[[Any, Any], Any], left: NDArray[Any], other: Any, draws: Iterable[int]) -> None:
    """Have draws as plain numbers where an operation on arrays could give something else.

    Notes
    -----
    Valid because: below 2^62 integers of Python and of numpy have the same sums, products, powers, shifts and bits,
    and up to 2^53 the same quotients and comparisons with floats. Floats are of 64 bits in both. Divisors of 0 and
    powers of numbers that are not positive differ: Python raises where numpy has nan or inf.
    """
    one, two = (other, left) if isinstance(combine, _SwappedOperation) else (left, other)
    operation = combine.operation if isinstance(combine, _SwappedOperation) else combine
    if not _is_as_plain(operation, one, two):
        raise NeedsNumbers(draws)


def _is_as_plain(operation: Callable[[Any, Any], Any], one: Any, two: Any) -> bool:
    """Whether an operation gives the same on arrays as on the plain numbers in them."""
    if not (_is_usual(one) and _is_usual(two)):
        return False
    wholes = _is_whole(one), _is_whole(two)
    if operation in _COMPARISONS and wholes[0] == wholes[1]:
        return True
    if operation in _SUMS and wholes == (False, False):
        return True
    (low_1, high_1), (low_2, high_2) = _find_ends(one, wholes[0]), _find_ends(two, wholes[1])
    most_1, most_2 = max(-low_1, high_1), max(-low_2, high_2)
    if (wholes[0] and most_1 >= _LARGEST) or (wholes[1] and most_2 >= _LARGEST):
        return False
    exact = (not wholes[0] or most_1 <= _LARGEST_EXACT) and (not wholes[1] or most_2 <= _LARGEST_EXACT)
    if operation in _COMPARISONS:
        return exact
    if operation in (operator.truediv, operator.floordiv, operator.mod):
        return exact and bool(np.all(np.asarray(two) != 0))
    if operation in (operator.lshift, operator.rshift):
        return all(wholes) and low_2 >= 0 and high_2 < 62 and most_1 * 2**high_2 < _LARGEST
    if operation is operator.pow:
        if all(wholes):
            return bool(low_2 >= 0 and (most_1 <= 1 or high_2 * math.log2(most_1) < 61.9))
        corners = itertools.product((low_1, high_1), (low_2, high_2))
        return bool(exact and low_1 > 0 and max(b * math.log(a) for a, b in corners) < 700)
    if all(wholes) and operation in _SUMS:
        return bool((most_1 * most_2 if operation is operator.mul else most_1 + most_2) < _LARGEST)
    return True


def _is_usual(values: Any) -> bool:
    if isinstance(values, np.ndarray):
        return str(values.dtype.name) in ("bool", "int64", "float64")
    return isinstance(values, int | float | np.bool_ | np.int64)  # a float64 is a float


def _is_whole(values: Any) -> bool:
    return str(values.dtype.kind) in "bi" if isinstance(values, np.ndarray | np.generic) else isinstance(values, int)


def _find_ends(values: Any, whole: bool) -> tuple[Any, Any]:
    if not isinstance(values, np.ndarray):
        return (values, values) if not whole else (int(values), int(values))
    return values.min().item(), values.max().item()
