"""Exact one-sided limits for a probability, from a count."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special


def clopper_pearson(
    count: ArrayLike, n: ArrayLike, alpha: float, side: Literal["lower", "upper"]
) -> NDArray[np.float64]:
    """One-sided limit of Clopper and Pearson (1934).

    Its confidence is 1 - alpha.

    Parameters
    ----------
    count, n : array_like
        Successes among n independent draws, 0 <= count <= n.
    alpha : float
        Probability, at most, that the limit is on the wrong side of the true probability; all of it on this side.
    side : {"lower", "upper"}
        Which limit.

    Returns
    -------
    ndarray
        The lower limit is the smallest p with P[Binomial(n, p) >= count] >= alpha, 0 for a count of 0; the upper one
        the largest p with P[Binomial(n, p) <= count] >= alpha, 1 for a count of n.

    Notes
    -----
    Valid because: the lower limit exceeds p only if P[Binomial(n, p) >= count] < alpha, and the probability that the
    count X has P[Binomial(n, p) >= X] < alpha is less than alpha, whatever p. The upper limit is 1 minus the lower one
    of the failures.
    """
    count, n = np.asarray(count, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if not np.all((count >= 0) & (count <= n)):
        raise ValueError(f"counts must be from 0 to the number of draws, got {count} of {n}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be in (0, 1), got {alpha!r}")
    if side == "lower":
        # P[Binomial(n, p) >= count] is the regularised incomplete beta function of (count, n - count + 1) at p.
        return np.where(count > 0, special.betaincinv(np.maximum(count, 1), n - count + 1, alpha), 0.0)
    if side == "upper":
        return np.where(count < n, special.betainccinv(count + 1, np.maximum(n - count, 1), alpha), 1.0)
    raise ValueError(f'side must be "lower" or "upper", got {side!r}')
