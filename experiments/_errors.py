"""Errors of vectors of answers that several experiments measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class FirstAnswerError:
    """Absolute error of the first answer.

    Parameters
    ----------
    truth : float
        The true answer.
    """

    truth: float

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n vectors of answers, shape (n, k)."""
        return np.abs(np.asarray(outputs, dtype=np.float64)[:, 0] - self.truth)


@dataclass(frozen=True, eq=False)
class LengthOfError:
    """Length, in the l2 norm, of the error of a vector.

    Parameters
    ----------
    truth : array_like of shape (k,)
        The true vector.
    """

    truth: ArrayLike

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n vectors, shape (n, k)."""
        errors = np.asarray(outputs, dtype=np.float64) - np.asarray(self.truth)
        return np.asarray(np.linalg.norm(errors, axis=1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class TypicalError:
    """Mean over the answers of their absolute errors: its expectation is that of a single answer.

    Parameters
    ----------
    truth : array_like of shape (k,)
        The true answers.
    """

    truth: ArrayLike

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n vectors of answers, shape (n, k)."""
        errors = np.abs(np.asarray(outputs, dtype=np.float64) - np.asarray(self.truth))
        return np.asarray(errors.mean(axis=1), dtype=np.float64)
