"""Errors of outputs, and where they are measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.audits.dependence import Trace
from auditor.audits.given_numbers import read_numbers
from auditor.errors import SpecificationError
from auditor.targets import Mechanism
from auditor.targets.outputs import Batch
from auditor.targets.sampler import Call, Prefetch, Sampler
from auditor.targets.values import Raised, strip_type

Array: TypeAlias = NDArray[np.float64]
ErrorOf: TypeAlias = Callable[[Any], ArrayLike]
"""From n outputs to their errors, array of shape (n,), none of them negative; NaN and infinity are failures."""


def _rows(outputs: Any) -> Array:
    if isinstance(outputs, list):  # no number where there is no answer: its error is NaN, a failure
        outputs = [math.nan if isinstance(output, Raised | None) else strip_type(output) for output in outputs]
    array = read_numbers("outputs must be numbers, to have an error", outputs)
    return array.reshape(len(array), -1)


def _read_truth(truth: Any) -> Array:
    found = read_numbers("the truth must be finite numbers", truth).reshape(-1)
    if not found.size or not np.isfinite(found).all():
        raise SpecificationError(f"the truth must be finite numbers, got {truth!r}")
    return found


@dataclass(frozen=True)
class Absolute:
    """Absolute error of a number: ``|output - truth|``."""

    truth: float

    def __post_init__(self) -> None:
        if _read_truth(self.truth).size != 1:
            raise SpecificationError(f"the truth of Absolute must be one number, got {self.truth!r}")

    def __call__(self, outputs: Any) -> Array:
        """Errors of n outputs of shape (n,) or (n, 1)."""
        rows = _rows(outputs)
        if rows.shape[1] != 1:
            raise SpecificationError(f"Absolute is for one number a draw, got outputs of shape {np.shape(outputs)}")
        return np.abs(rows[:, 0] - self.truth)


class Largest:
    """Largest absolute error over the coordinates of a vector.

    Parameters
    ----------
    truth : array_like of shape (d,) or ()
        The true answers.
    """

    def __init__(self, truth: ArrayLike) -> None:
        self.truth: Array = _read_truth(truth)

    def differences(self, outputs: Any) -> Array:
        """Outputs less the truth, shape (n, d).

        Raises
        ------
        SpecificationError
            If outputs are no vectors of d numbers; numpy would compare one number with each of the truth's.
        """
        rows = _rows(outputs)
        if self.truth.size not in (1, rows.shape[1]):
            raise SpecificationError(f"the truth has {self.truth.size} numbers, outputs have shape {np.shape(outputs)}")
        return rows - self.truth

    def __call__(self, outputs: Any) -> Array:
        """Errors of n outputs of shape (n, d)."""
        largest: Array = np.abs(self.differences(outputs)).max(axis=1)
        return largest


class Squared(Largest):
    """Squared error, averaged over the coordinates."""

    def __call__(self, outputs: Any) -> Array:
        """Errors of n outputs of shape (n, d)."""
        mean: Array = (self.differences(outputs) ** 2).mean(axis=1)
        return mean


@dataclass(frozen=True, eq=False)
class Setting:
    """A mechanism with parameters, on one dataset.

    Parameters
    ----------
    mechanism : Mechanism
        What draws.
    data : any
        The dataset.
    error : callable
        From outputs to errors.
    at_most : float
        Largest error that is no failure; only needed where failures are counted.
    """

    mechanism: Mechanism
    data: Any
    error: ErrorOf
    at_most: float = float("nan")


def check_setting(built: Any) -> Setting:
    """Check what a claim's function built.

    Raises
    ------
    SpecificationError
        If it is no `Setting`.
    """
    if not isinstance(built, Setting):
        raise SpecificationError(f"expected a Setting, got {built!r}")
    return built


class Draw(Protocol):
    """Source of n errors at a setting, given a key."""

    def __call__(self, setting: Setting, n: int, *key: str | int) -> Array:
        """Errors, float64 of shape (n,)."""
        ...


#: An error that is above the largest one allowed by less than this part of it is equal to it: 0.4 - 0.3 is above 0.1 in
#: floating point. A hundred thousand roundings, for numbers that are large beside their errors; arbitrary.
ROUNDING = 1e-11
#: Most draws in one call of a mechanism, so that memory does not grow with the budget.
LARGEST_CALL = 1 << 16


@dataclass
class ErrorSampler:
    """Draws errors at settings, and counts what it drew.

    Parameters
    ----------
    seed : int
        The run's seed.
    key : str
        The claim's id.
    limit : float or None
        Seconds that one call of a mechanism may take.
    ahead : Prefetch or None
        Makes calls before they are asked for.
    one_a_call : bool
        See `Sampler.alone`.

    Attributes
    ----------
    traces : dict of Setting to Trace
        The latest draws at each setting: whether they failed, where the setting has a limit, or their errors.
    """

    seed: int
    key: str
    limit: float | None = None
    ahead: Prefetch | None = None
    draws: int = 0
    one_a_call: bool = False
    traces: dict[Setting, Trace] = field(default_factory=dict)
    _samplers: dict[Setting, Sampler] = field(default_factory=dict)

    def alone(self) -> ErrorSampler:
        """Errors of other draws, one a call and in random order."""
        return ErrorSampler(self.seed, self.key, self.limit, one_a_call=True)

    def afresh(self) -> ErrorSampler:
        """Errors of other draws, in calls like those of this sampler."""
        return ErrorSampler(self.seed, f"{self.key}/afresh", self.limit)

    def sampler(self, setting: Setting) -> Sampler:
        """Draws of a setting's mechanism."""
        found = self._samplers.get(setting)
        if found is None:
            found = Sampler(setting.mechanism, self.seed, self.key, self.limit, ahead=self.ahead)
            self._samplers[setting] = found = found.alone() if self.one_a_call else found
        return found

    def expect(self, setting: Setting, *chunks: tuple[int, int]) -> None:
        """Announce the chunks that come next.

        Draws and key of each; nothing depends on it.

        Parameters
        ----------
        setting : Setting
            Where they are drawn.
        *chunks : tuple of (int, int)
            Number of draws, and number of the chunk.
        """
        calls = [
            Call(min(n - first, LARGEST_CALL), ("accuracy", key, part))
            for n, key in chunks
            for part, first in enumerate(range(0, n, LARGEST_CALL))
        ]
        self.sampler(setting).expect(*((setting.data, call) for call in calls))

    def look_on(self, least: int) -> Iterable[Trace]:
        """Extend each trace that is shorter by further draws."""
        drawn = self.draws
        for setting, trace in self.traces.items():
            for i, n in enumerate(trace.missing(least)):
                self(setting, n, "look", i)
        self.draws = drawn
        return self.traces.values()

    def __call__(self, setting: Setting, n: int, *key: str | int) -> Array:
        """Errors of n draws, float64 of shape (n,); NaN counts as infinite.

        Raises
        ------
        TargetError
            If the mechanism fails.
        SpecificationError
            If the error function returns anything but n numbers of at least 0.
        """
        sampler, parts, left, part = self.sampler(setting), [], n, 0
        while left:
            size = min(left, LARGEST_CALL)
            errors = errors_of(setting.error, sampler.draw(setting.data, size, "accuracy", *key, part), size)
            scores = (
                np.minimum(errors, np.finfo(float).max)
                if math.isnan(setting.at_most)
                else find_failures(errors, setting.at_most)
            )
            self.traces.setdefault(setting, Trace()).add("errors", 0, sampler.place, scores)
            parts.append(errors)
            left, part = left - size, part + 1
        self.draws += n
        return np.concatenate(parts)


def find_failures(errors: Array, at_most: float) -> NDArray[np.bool_]:
    """Find the errors above the largest allowed one, beyond rounding.

    Parameters
    ----------
    errors : ndarray of shape (n,)
        Errors, at least 0.
    at_most : float
        Largest error that is no failure.

    Returns
    -------
    ndarray of bool of shape (n,)

    Raises
    ------
    SpecificationError
        If no largest error is given.
    """
    if math.isnan(at_most):
        raise SpecificationError(f"a Setting whose failures are counted needs at_most, got {at_most!r}")
    return errors > at_most * (1.0 + ROUNDING)


def errors_of(error: ErrorOf, outputs: Batch, n: int) -> Array:
    """Errors of n outputs, checked.

    Parameters
    ----------
    error : callable
        From outputs to errors.
    outputs : ndarray of shape (n,) or (n, d), or list
        The outputs.
    n : int
        Their number.

    Returns
    -------
    ndarray of shape (n,)
        At least 0; infinite where the error is NaN.

    Raises
    ------
    SpecificationError
        If the errors are not n numbers of at least 0, or cannot be measured.
    """
    try:
        measured = error(outputs)
    except SpecificationError:
        raise
    except Exception as raised:
        raise SpecificationError(f"the error function raised {type(raised).__name__}: {raised}") from raised
    found = read_numbers("errors must be numbers", measured)
    if found.shape != (n,):
        raise SpecificationError(f"the error of {n} outputs must be an array of shape ({n},), got {found.shape}")
    found = np.where(np.isnan(found), np.inf, found)
    if found.min() < 0:
        raise SpecificationError(f"errors must be at least 0, got {found.min():g}")
    return found
