"""Evidence against one multinomial: draws that fall into cells otherwise than with the stated probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Concentrations of the Dirichlet priors. 1 bets on gross deviations; 4^12, 17 million, on those that 10^8 draws show.
#: A factor of 4 between neighbours costs at most 6 % of the exponent against the best value in between, and their
#: average costs ln 13 = 2.6 nats.
CONCENTRATIONS: FloatArray = np.exp2(2.0 * np.arange(13))
#: Stated probabilities are at least this: products of many may be too small for a double, and are not impossible.
LEAST = 1e-300
#: Probability with which a detectable deviation is flagged, as for levels of privacy.
POWER = 0.9


@dataclass(frozen=True, eq=False)
class Multinomials:
    """Several partitions of the same draws into cells, each with stated probabilities.

    Parameters
    ----------
    probabilities : sequence of ndarray of shape (cells,)
        Of each partition: not negative, summing to 1 within 1e-9. Beside these cells each partition has an impossible
        one; a probability of 0 among them is one that was too small for a double, and counts as `LEAST`.
    """

    probabilities: Sequence[FloatArray]

    @cached_property
    def _flat_tables(self) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """Logarithms of the stated probabilities, the priors' parameters, log gamma of them; where partitions begin."""
        stated = np.maximum(np.concatenate([p / p.sum() for p in self.probabilities]), LEAST)
        prior = CONCENTRATIONS[:, None] * stated
        sizes = [len(p) for p in self.probabilities]
        return np.log(stated), prior, special.gammaln(prior), np.cumsum([0, *sizes[:-1]])

    def log_wealth(self, counts: Sequence[IntArray]) -> FloatArray:
        """Logarithm of the wealth of each partition.

        Parameters
        ----------
        counts : sequence of ndarray of shape (cells + 1,)
            Draws in each cell of each partition; the last is the impossible one.

        Returns
        -------
        ndarray of shape (partitions,)
            Infinite if the impossible cell was hit.

        Notes
        -----
        With cell probabilities pi, counts c of n draws and a Dirichlet prior of parameters kappa pi, the ratio of the
        marginal likelihood to the stated one is

            M_n = Gamma(kappa) / Gamma(kappa + n) * prod_k Gamma(kappa pi_k + c_k) / (Gamma(kappa pi_k) pi_k^c_k).

        The wealth is its average over `CONCENTRATIONS`.

        Valid because: M_n is the product over draws of r_i(k_i) / pi(k_i), where r_i is the prior's prediction given
        the draws before and k_i the cell of draw i. If each cell's true probability is at most (1 + eta) pi, a factor
        has the conditional expectation sum_k p_k r_i(k) / pi_k <= (1 + eta) sum_k r_i(k) = 1 + eta. So
        M_n / (1 + eta)^n is a nonnegative supermartingale that starts at 1, and so is any average of such. By Ville's
        inequality it ever reaches 1/alpha with probability at most alpha, at whatever times one looks. An infinite
        value needs a draw in a cell of stated probability 0, which has probability 0 whatever eta is. A stated
        probability that is raised, to `LEAST`, only makes the factors smaller. The formula
        depends on the counts alone, so that it may be evaluated at the ends of chunks only.
        """
        log_stated, prior, log_gamma, starts = self._flat_tables
        inside = np.concatenate([c[:-1] for c in counts])
        terms = special.gammaln(prior + inside) - log_gamma - inside * log_stated
        n = np.add.reduceat(inside, starts)
        kappa = CONCENTRATIONS[:, None]
        logs = np.add.reduceat(terms, starts, axis=1) + special.gammaln(kappa) - special.gammaln(kappa + n)
        wealth = special.logsumexp(logs, axis=0) - math.log(len(CONCENTRATIONS))
        return np.where([c[-1] > 0 for c in counts], np.inf, wealth)


def average_wealths(logs: FloatArray) -> float:
    """Logarithm of the average of wealths.

    They are given by their logarithms, some of which may be infinite.

    Raises
    ------
    ValueError
        If one is not a number: that must never pass for evidence.
    """
    if np.isnan(logs).any():
        raise ValueError(f"the logarithm of a wealth is not a number: {logs}")
    return float(special.logsumexp(logs)) - math.log(len(logs)) if np.max(logs) < math.inf else math.inf


def combine_wealths(logs: Sequence[float], draws: Sequence[int], level: float) -> float:
    """Log wealth of several datasets against the widened null.

    The null is widened by ``level``.

    Parameters
    ----------
    logs : sequence of float
        Logarithm of the wealth of each dataset, see `Multinomials.log_wealth`.
    draws : sequence of int
        Draws from each.
    level : float
        Natural logarithm of 1 + eta.

    Notes
    -----
    The average of every dataset's wealth and, if there are several, of the product of all: a deviation on one dataset
    costs ln(datasets + 1), one on all is found with the draws of all.

    Valid because: draws on different datasets are disjoint and independent, so that the product of their
    supermartingales is one; and averages are, see `Multinomials.log_wealth`.
    """
    widened = [log - n * level for log, n in zip(logs, draws, strict=True)]
    return average_wealths(np.array([*widened, sum(widened)] if len(widened) > 1 else widened))


def rejected_level(logs: Sequence[float], draws: Sequence[int], alpha: float) -> float:
    """Largest level whose widened null is rejected at ``alpha``.

    In nats; 0 if none is.

    Parameters
    ----------
    logs : sequence of float
        Logarithm of the wealth of each dataset, see `Multinomials.log_wealth`.
    draws : sequence of int
        Draws from each.
    alpha : float
        Level of the test, in (0, 1).

    Returns
    -------
    float
        With probability at least 1 - alpha, at all times together, some cell's probability is at least exp(level)
        times the stated one. As draws are added it tends to the largest Kullback-Leibler divergence of a partition,
        which is at most the largest log-ratio.

    Notes
    -----
    Valid because: `combine_wealths` decreases in the level, so the bound exceeds the true largest log-ratio L only if
    the null widened by L, which holds, is rejected.
    """
    from scipy import optimize  # takes longer to import than numpy

    threshold = math.log(1 / alpha)

    def excess(level: float) -> float:
        return combine_wealths(logs, draws, level) - threshold

    if excess(0.0) <= 0:
        return 0.0
    if math.isinf(max(logs)):
        return math.inf
    # Every widened wealth, and with it the average, is below the threshold at the level where the largest reaches it.
    high = max(log / n for log, n in zip(logs, draws, strict=True) if n)
    return float(optimize.brentq(excess, 0.0, high, xtol=1e-12))


def detectable_divergence(cells: int, n: int, log_threshold: float) -> float:
    """Divergence, in nats a draw, that n draws flag.

    They do with probability `POWER` on one partition; Kullback-Leibler divergence.

    Parameters
    ----------
    cells : int
        Cells of the partition.
    n : int
        Draws.
    log_threshold : float
        Logarithm of the wealth that flags.

    Returns
    -------
    float
        Infinite without draws; 0 for a single cell, where whatever deviates is impossible.

    Notes
    -----
    Computed, not simulated. For small deviations twice the log-likelihood ratio of the observed frequencies, C, is
    noncentral chi-squared with cells - 1 degrees of freedom and noncentrality 2 n d, whatever the direction of the
    deviation d; and the wealth of concentration kappa is exp(C n / (2 (n + kappa))) (1 + n / kappa)^(-(cells - 1) / 2)
    (the Dirichlet prior is nearly normal). The wealth that flags fixes C, and C fixes d.
    """
    from scipy import optimize  # takes longer to import than numpy

    if n == 0:
        return math.inf
    if cells == 1:
        return 0.0
    degrees = cells - 1
    shrink = n / (n + CONCENTRATIONS)
    cost = 0.5 * degrees * np.log1p(n / CONCENTRATIONS)

    def excess(statistic: float) -> float:
        return average_wealths(0.5 * shrink * statistic - cost) - log_threshold

    # Enough for each concentration by itself, even with all others at 0.
    high = 2 * float(np.min((log_threshold + math.log(len(CONCENTRATIONS)) + cost) / shrink)) + 1.0
    statistic = optimize.brentq(excess, 0.0, high)
    noncentrality = float(special.chndtrinc(statistic, degrees, 1 - POWER))
    return noncentrality / (2 * n)
