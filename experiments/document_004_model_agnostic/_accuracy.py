"""Streams with a few low answers, and what goes wrong with the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: So far below the threshold, in noise scales of all experiments here, that a top has probability below e^-500.
LOW = -1e4


def lows_and_highs(low: int, queries: int, margin: float) -> NDArray[np.float64]:
    """Answers of a stream at threshold 0.

    Parameters
    ----------
    low : int
        So many come first and are far below the threshold.
    queries : int
        Length m of the stream.
    margin : float
        How far above the threshold all others are.

    Returns
    -------
    ndarray of shape (m,)
    """
    return np.where(np.arange(queries) < low, LOW, margin)


@dataclass(frozen=True)
class UnansweredTops:
    """How many of the high answers got no top.

    Parameters
    ----------
    low : int
        Answers at the beginning that are not high.
    """

    low: int

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        """Numbers for n transcripts, shape (n, m), of 0 for a top, 1 for a bottom and -1 for what was not asked."""
        return np.asarray((np.asarray(outputs)[:, self.low :] != 0).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class BottomCountError:
    """How far the number of bottoms is from what it has to be.

    Parameters
    ----------
    wanted : int
        That number.
    """

    wanted: int

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        """Differences for n transcripts, shape (n, m)."""
        bottoms = (np.asarray(outputs) == 1).sum(axis=1)
        return np.asarray(np.abs(bottoms - float(self.wanted)), dtype=np.float64)
