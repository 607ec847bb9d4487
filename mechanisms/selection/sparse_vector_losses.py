"""Privacy losses of whole runs of sparse vector with hundreds of queries, bounded from both sides.

A run is made of epochs: from a fresh threshold before query s to the first costly answer, at query e, or to the end of
the stream. Given s the probability of (s, e) depends on nothing before it, so that the loss of a run is a sum of losses
of epochs, and a recursion over the epochs has its distribution without listing the transcripts, which are exponentially
many.

Source: catalogue 004, section 0.4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact.privacy_loss import LossCurve, grouped
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require
from mechanisms.selection.sparse_vector import SparseVector
from mechanisms.selection.sparse_vector_distribution import below_and_above, require_near, threshold_nodes

# A product of m probabilities of free answers, 1 - e^-z / 2 each, has m e^-z / 2 <= 37 where it is at least e^-37, and
# grows at less than twice that rate: it needs no more nodes than one of 64 factors. Elsewhere nothing is left of it.
_STEEPEST = 64
# Queries times nodes of the threshold noise: 128 MB of float64, enough for more than 1,000 queries.
_MAX_WORK = 2**24
# Queries times costly answers times lattice points: 256 MB, enough for 200 queries, 20 costly ones and 8,000 points.
_MAX_CELLS = 2**25
# The masses of one order are those of the other times e^-loss: what underflows in one of them, below e^-708, is then
# below e^-100 in the other.
_MAX_LOSS = 600.0


class RunLosses(NamedTuple):
    """A pair of distributions of transcripts, bounded from both sides.

    Attributes
    ----------
    upper : LossCurve
        At least as easy to tell apart as the true pair: delta, epsilon, trade-off, mu and Renyi divergences are at
        least the true ones.
    lower : LossCurve
        At most as easy: all of them are at most the true ones.
    """

    upper: LossCurve
    lower: LossCurve


def run_losses(
    mechanism: SparseVector,
    data: Dataset,
    other: Dataset,
    *,
    revealed: NDArray[np.bool_] | None = None,
    points: int = 4096,
) -> RunLosses:
    """Privacy losses of a whole run that is asked the pool once, in its order.

    Parameters
    ----------
    mechanism : SparseVector
        A row that draws the threshold anew after each costly "above" and stops after `cutoff` of them, with Laplace
        query noise.
    data, other : datasets
        The pair; P is the distribution of the transcript on `data`, Q that on `other`.
    revealed : ndarray of shape (m,), bool, optional
        Queries whose free answer tells the datasets apart for certain, as a released value does that is not the same on
        both. Default none.
    points : int, default 4096
        Lattice points of the losses of the run. Both bounds are within a second-order error in their distance.

    Returns
    -------
    RunLosses
        Bounds from above and from below, up to relative errors of 1e-12 of the masses.

    Raises
    ------
    ValueError
        For other rows, answers so far from the threshold that probabilities underflow, a loss of more than 600, and
        more queries or lattice points than fit.

    Notes
    -----
    Valid because: the distribution of a transcript is the product of the probabilities of its epochs, and both bounds
    come from comparing experiments. From above, each epoch (s, e) is shared out between the two lattice points around
    its loss so that its mass under P and its mass under Q both stay, as if a bit were shown with it; forgetting all
    bits gives the true pair back, so that the pair of histograms is at least as easy to tell apart. From below,
    transcripts that have the same epoch before them are merged as they meet in a cell, their masses under P and under Q
    added up: post-processing, whichever of them meet, so that the cells may be found by rounding each loss to the
    nearest point. What is merged has the same future, which is why the recursion can go on with the sums.

    Cost: m^2 / 2 quadratures, query by query for all epochs at once, and ``3/2 m^2 cutoff points`` additions: on one
    core 1 s for m = 200 and cutoff 2, 5 s for cutoff 31 and 1,024 points.
    """
    first, second = (mechanism.answers(one) - mechanism.threshold for one in (data, other))
    _require_run(mechanism, first, second)
    shown = np.zeros(first.size, dtype=np.bool_) if revealed is None else np.asarray(revealed)
    require(shown.shape == first.shape and shown.dtype == np.bool_, f"{first.size} booleans", revealed)
    require(isinstance(points, (int, np.integer)) and points >= 2, "at least two lattice points", points)
    p, q = (epochs(mechanism, offsets, shown) for offsets in (first, second))
    possible = p.ended > 0
    require(bool(np.all(possible == (q.ended > 0))), "answers closer to the threshold: a probability underflows", first)
    loss = np.zeros(p.ended.shape)
    loss[possible] = np.log(p.ended[possible] / q.ended[possible])
    most = min(mechanism.cutoff, first.size)
    largest = most * float(np.abs(loss).max())
    require(largest <= _MAX_LOSS, f"losses of a run of at most {_MAX_LOSS}", largest)
    step = most * float(np.ptp(loss)) / points or 1.0
    return RunLosses(_upper_curve(p, q, loss, most, step), _lower_curve(p, q, loss, most, step))


def _require_run(mechanism: SparseVector, *offsets: FloatArray) -> None:
    spec = mechanism.spec
    kept = (spec.stops, spec.counts, spec.redraws, spec.releases, spec.query_draws)
    expected = (True, "above", "after_above", None, "every_query")
    require(kept == expected, "a row that redraws after each costly above, and stops after `cutoff` of them", spec)
    require(mechanism.query_scale > 0 and spec.query_noise == "laplace", "Laplace query noise", spec)
    require(offsets[0].size == offsets[1].size, "as many queries on both datasets", [one.size for one in offsets])
    for one in offsets:
        require_near(mechanism, one)


class EpochProbabilities(NamedTuple):
    """Probabilities of epochs by their first query.

    Attributes
    ----------
    ended : ndarray of shape (m, m + 1)
        Row s, column e: the first costly answer is to query e; column m: there is none. 0 for e < s.
    shown : ndarray of shape (m,)
        A free answer has revealed the dataset, before any costly one.
    """

    ended: FloatArray
    shown: FloatArray


def epochs(mechanism: SparseVector, offsets: FloatArray, revealed: NDArray[np.bool_]) -> EpochProbabilities:
    """Probabilities of all epochs, by quadrature over the threshold noise; all s at once, query by query.

    Parameters
    ----------
    mechanism : SparseVector
        See `run_losses`.
    offsets : ndarray of shape (m,)
        Answers less the threshold.
    revealed : ndarray of shape (m,), bool
        See `run_losses`.
    """
    m = offsets.size
    x, fresh = threshold_nodes(mechanism, offsets, min(m, _STEEPEST))
    require(m * x.size <= _MAX_WORK, f"fewer queries: at most {_MAX_WORK} numbers", m * x.size)
    ended, shown, density = np.zeros((m, m + 1)), np.zeros(m), np.empty((m, x.size))
    for e, offset in enumerate(offsets.tolist()):
        below, above = below_and_above(mechanism.spec.query_noise, (x - offset) / mechanism.query_scale)
        density[e] = fresh
        begun = density[: e + 1]
        ended[: e + 1, e] = begun @ above
        begun *= below
        if revealed[e]:
            shown[: e + 1] += begun.sum(axis=1)
            begun[:] = 0.0
    ended[:, m] = density.sum(axis=1)
    return EpochProbabilities(ended, shown)


def _upper_curve(p: EpochProbabilities, q: EpochProbabilities, loss: FloatArray, most: int, step: float) -> LossCurve:
    """Losses shared out between lattice points; masses under Q are those under P times e^-loss."""
    place = np.floor(loss / step).astype(np.int64)
    # The share under P that leaves the sum of the masses under Q as it is.
    above = np.clip(np.expm1(place * step - loss) / np.expm1(-step), 0.0, 1.0)
    shares = [(place, p.ended * (1.0 - above)), (place + 1, p.ended * above)]
    start, mass = _histogram(shares, most)
    kept = mass > 0
    log_p = np.log(mass[kept])
    log_q = log_p - step * (start + np.flatnonzero(kept))
    return grouped(log_p, log_q, _reveal_probability(p, most), _reveal_probability(q, most))


def _lower_curve(p: EpochProbabilities, q: EpochProbabilities, loss: FloatArray, most: int, step: float) -> LossCurve:
    """Transcripts merged as they meet in a cell; masses under P and under Q are added up."""
    place = np.rint(loss / step).astype(np.int64)
    mass_p, mass_q = (_histogram([(place, law.ended)], most)[1] for law in (p, q))
    kept = (mass_p > 0) & (mass_q > 0)  # one of them without the other is an underflow
    return grouped(
        np.log(mass_p[kept]), np.log(mass_q[kept]), _reveal_probability(p, most), _reveal_probability(q, most)
    )


def _histogram(shares: list[tuple[IntArray, FloatArray]], most: int) -> tuple[int, FloatArray]:
    """Masses of whole runs by lattice point, and the first of these points.

    Parameters
    ----------
    shares : list of (ndarray, ndarray), both of shape (m, m + 1)
        Lattice points that an epoch (s, e) adds to the loss, int64, and its probability; for each of the parts that
        epochs are divided into.
    most : int
        Costly answers after which a run stops.
    """
    m = shares[0][0].shape[0]
    low = min(0, *(int(places.min()) for places, _ in shares))
    high = max(0, *(int(places.max()) for places, _ in shares))
    size = most * (high - low) + 1
    require(m * most * size <= _MAX_CELLS, f"fewer lattice points: at most {_MAX_CELLS} cells", m * most * size)
    # Masses of runs whose threshold is fresh before query s, by costly answers so far and by loss; no loss is at -most
    # low, and after c epochs there is none outside c low to c high.
    fresh = np.zeros((m, most, size))
    fresh[0, 0, -most * low] = 1.0
    final = np.zeros(size)
    first, last = -low, (most - 1) * high - most * low + 1
    for s in range(m):
        here = fresh[s, : s + 1, first:last]
        for places, weights in shares:
            for e in range(s, m + 1):
                at = int(places[s, e])
                moved = weights[s, e] * here
                target = slice(first + at, last + at)
                if e >= m - 1:  # the stream is over
                    final[target] += moved.sum(axis=0)
                    continue
                fresh[e + 1, 1 : s + 2, target] += moved[: most - 1]
                if s + 1 >= most:
                    final[target] += moved[most - 1]
    return most * low, final


def _reveal_probability(law: EpochProbabilities, most: int) -> float:
    """Probability that a free answer reveals the dataset, in any of the epochs."""
    m, total = law.shown.size, 0.0
    fresh = np.zeros(m)
    fresh[0] = 1.0
    for _ in range(most):
        total += float(fresh @ law.shown)
        fresh = np.concatenate([[0.0], (fresh @ law.ended)[: m - 1]])
    return total
