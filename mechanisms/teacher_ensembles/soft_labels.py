"""Soft labels by votes of chunks: two histograms, two tests, one budget (Algorithms 6, 7 and 8 of document 004).

A classifier is trained on each of k chunks of the data; a query is answered with the midpoint of the bin that most
scores lie in, if the histogram's noisy distance to instability passes a noisy threshold: first over the plain
partition, then, with a fresh threshold, over the half-shifted one. Outputs have shape (n, m): the midpoint in units of
gamma/2 (odd from the plain partition, even from the shifted one), `BOTTOM` where both tests failed, `HALTED` where the
run had ended before.

Source: document 004, Algorithms 6 to 8, Theorem 5.4; catalogue 004, slq, sections 0.3 and 0.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.laws import FiniteLaw
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.base.noise import gauss_legendre
from mechanisms.learning.hypotheses import BoolArray
from mechanisms.selection import free_tops
from mechanisms.selection.sparse_vector_distribution import REACH, laplace_cdf
from mechanisms.teacher_ensembles.soft_ensembles import SoftLabelEnsemble
from mechanisms.teacher_ensembles.soft_histogram import HistogramReadings, ScoreHistograms

#: Both tests failed.
BOTTOM = -1
#: The run had ended before this query.
HALTED = -2

# exp(-700) is still a normal double: with distances further away from the threshold what is possible would look
# impossible.
_MAX_GAP = 700.0
# Transcripts times nodes: 128 MB of float64.
_MAX_WORK = 2**24


# ----------------------------------------------------------------------------------- the algorithm


@dataclass(frozen=True)
class SoftLabelSteps:
    """What Algorithms 6 and 8 do between the tests, and what their mutants do.

    Parameters
    ----------
    refreshes_between, refreshes_after_bottom : bool
        Whether the threshold's noise is drawn anew after the first failed test, and after the second.
    bottom_costs : int
        Added to the counter if both tests fail.
    reuses_noise : bool
        The second test adds the noise of the first.
    shows_flag : bool
        Outputs are followed by which test decided: 0 or 1, `HALTED` where none did; shape (n, 2 m).
    noisy_threshold : bool
        Whether the threshold has noise at all.
    stops : bool
        Whether the counter ends the run.
    """

    refreshes_between: bool = True
    refreshes_after_bottom: bool = True
    bottom_costs: int = 2
    reuses_noise: bool = False
    shows_flag: bool = False
    noisy_threshold: bool = True
    stops: bool = True


def noise_scale(epsilon: float, delta: float, cutoff: int) -> float:
    """Scale of the threshold noise of Algorithm 6, lambda: ``sqrt(64 T ln(2/delta)) / epsilon``."""
    require(0 < delta < 1, "a delta in (0, 1)", delta)
    return free_tops.noise_scale(epsilon, delta / 2.0, cutoff, 64.0)


def printed_threshold(scale: float, delta: float, queries: int) -> float:
    """Threshold w as Algorithm 6 prints it: ``lambda ln(4 m / delta)``."""
    return scale * math.log(4.0 * queries / delta)


def corrected_threshold(scale: float, delta: float, queries: int) -> float:
    """Threshold w as the proof of Theorem 5.4 needs it: ``2 lambda ln(4 m / delta)``.

    That of Algorithm 3, ``2 lambda ln(2 m / delta)``, for 2 m tests.
    """
    return 2.0 * printed_threshold(scale, delta, queries)


@dataclass(frozen=True)
class SoftLabels:
    """Algorithm 6 for a list of m public queries; `printed` and `corrected` set its parameters.

    Parameters
    ----------
    ensemble : SoftLabelEnsemble
        From the data to scores, shape (m, k).
    histograms : ScoreHistograms
        Partitions and distance.
    epsilon, delta : float
        The claimed level.
    scale : float
        lambda: scale of the threshold's noise, half of that of the distances.
    threshold : float
        w.
    cutoff : int
        T: the run goes on while the counter is at most T. 0 is a run up to the first query that fails the first test.
    steps : SoftLabelSteps
        What happens between the tests.
    """

    ensemble: SoftLabelEnsemble
    histograms: ScoreHistograms
    epsilon: float
    delta: float
    scale: float
    threshold: float
    cutoff: int
    steps: SoftLabelSteps = field(default_factory=SoftLabelSteps)

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(0 <= self.delta < 1, "a delta in [0, 1)", self.delta)
        require_positive("scale", self.scale)
        require(math.isfinite(self.threshold), "a finite threshold", self.threshold)
        require(isinstance(self.cutoff, (int, np.integer)) and self.cutoff >= 0, "a cutoff >= 0", self.cutoff)

    def readings(self, data: Dataset) -> HistogramReadings:
        """What both tests of each query see; arrays of shape (2, m)."""
        return self.histograms(self.ensemble(data))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `n` runs; shape (n, m), or (n, 2 m) with flags; float64 if values are, else int64."""
        require_draws(n)
        values, distances = self.readings(data)
        steps, m = self.steps, values.shape[1]
        outputs, flags = np.full((n, m), HALTED, dtype=values.dtype), np.full((n, m), HALTED, dtype=values.dtype)
        counter, bar = np.zeros(n, dtype=np.int64), self._bars(n, rng)
        for i in range(m):
            runs = np.flatnonzero(self.goes_on(counter))
            noise = rng.laplace(0.0, 2.0 * self.scale, runs.size)
            first = distances[0, i] + noise > bar[runs]
            outputs[runs[first], i], flags[runs, i] = values[0, i], np.where(first, 0, 1)
            failed = runs[~first]
            if steps.refreshes_between:
                bar[failed] = self._bars(failed.size, rng)
            again = noise[~first] if steps.reuses_noise else rng.laplace(0.0, 2.0 * self.scale, failed.size)
            second = distances[1, i] + again > bar[failed]
            outputs[failed, i] = np.where(second, values[1, i], BOTTOM)
            counter[failed] += np.where(second, 1, steps.bottom_costs)
            if steps.refreshes_after_bottom:
                bar[failed[~second]] = self._bars(int((~second).sum()), rng)
        return np.concatenate([outputs, flags], axis=1) if steps.shows_flag else outputs

    def _bars(self, n: int, rng: np.random.Generator) -> FloatArray:
        if not self.steps.noisy_threshold:
            return np.full(n, self.threshold)
        return self.threshold + rng.laplace(0.0, self.scale, n)

    def goes_on(self, counter: IntArray) -> BoolArray:
        """Whether runs with these counters go on; same shape."""
        return np.asarray((counter <= self.cutoff) | (not self.steps.stops), dtype=np.bool_)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the transcripts, tuples of outputs; ValueError for distances too far from a threshold.

        Where the second test adds the noise of the first, for one query only.
        """
        readings = self.readings(data)
        if self.steps.reuses_noise:
            return _distribution_of_reused_noise(self, readings)
        masses: dict[tuple[float, ...], float] = {}
        for transcript, mass in transcripts(self, readings):
            masses[transcript] = masses.get(transcript, 0.0) + mass
        return FiniteLaw(tuple(masses), np.array(list(masses.values())))

    def probability(self, data: Dataset, decided: list[int]) -> float:
        """Probability that of the first queries each is decided as stated, for streams too long for `law`.

        Parameters
        ----------
        data : Dataset
            The data.
        decided : list of int
            For each query 0 if the first test passes, 1 if the second does, 2 if none does.

        Raises
        ------
        ValueError
            If the run halts earlier.
        """
        integral, density, counter = _Integral(self, self.readings(data)), None, 0
        for i, how in enumerate(decided):
            require(bool(self.goes_on(np.array(counter))), f"a run that lasts {len(decided)} queries", decided)
            require(how in (0, 1, 2), "0, 1 or 2", how)
            density, cost = integral.ask(i, density)[how]
            counter += cost
        return 1.0 if density is None else float(density.sum())


def printed(
    ensemble: SoftLabelEnsemble, histograms: ScoreHistograms, epsilon: float, delta: float, cutoff: int, queries: int
) -> SoftLabels:
    """Algorithm 6 as it is printed.

    Parameters
    ----------
    ensemble, histograms
        As for `SoftLabels`.
    epsilon, delta : float
        The claimed level.
    cutoff, queries : int
        T and m.
    """
    require(isinstance(queries, (int, np.integer)) and 1 <= cutoff <= queries, "1 <= T <= m", (cutoff, queries))
    scale = noise_scale(epsilon, delta, cutoff)
    return SoftLabels(
        ensemble, histograms, epsilon, delta, scale, printed_threshold(scale, delta, queries), int(cutoff)
    )


def corrected(
    ensemble: SoftLabelEnsemble, histograms: ScoreHistograms, epsilon: float, delta: float, cutoff: int, queries: int
) -> SoftLabels:
    """Algorithm 6 with the threshold that its proof needs; takes what `printed` takes."""
    base = printed(ensemble, histograms, epsilon, delta, cutoff, queries)
    scale, threshold = base.scale, corrected_threshold(base.scale, delta, queries)
    return SoftLabels(ensemble, histograms, epsilon, delta, scale, threshold, base.cutoff)


def until_first_failure(
    ensemble: SoftLabelEnsemble, histograms: ScoreHistograms, scale: float, threshold: float
) -> SoftLabels:
    """The part of a run up to the first query that fails the first test, with its second test.

    Claims 2.5/lambda, its exact level for a distance that moves by at most 1 and is the same function on both sides:
    2/lambda for the first threshold (see `selection.free_tops.epoch`), and half of 1/lambda for the second, which
    serves a single test.
    """
    require_positive("scale", scale)
    return SoftLabels(ensemble, histograms, 2.5 / scale, 0.0, scale, threshold, 0)


def one_query(ensemble: SoftLabelEnsemble, histograms: ScoreHistograms, scale: float, threshold: float) -> SoftLabels:
    """The part of a run that answers one query; claims 1/lambda.

    Each of its two tests has a fresh threshold and noise of scale 2 lambda, so costs at most 1/(2 lambda) where its
    distance moves by at most 1 and the bin does not change.
    """
    require_positive("scale", scale)
    return SoftLabels(ensemble, histograms, 1.0 / scale, 0.0, scale, threshold, 0)


@dataclass(frozen=True)
class FirstAnswer:
    """The first label that a run gives, `BOTTOM` if it gives none: all that a vote which decides everything can show.

    Parameters
    ----------
    run : SoftLabels
        Without flags.
    """

    run: SoftLabels

    def __post_init__(self) -> None:
        require(not self.run.steps.shows_flag, "a run without flags", self.run.steps)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `n` of them, shape (n,)."""
        outputs = self.run(data, n, rng)
        given = outputs > BOTTOM
        return np.where(given.any(axis=1), outputs[np.arange(n), given.argmax(axis=1)], BOTTOM)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution; see `SoftLabels.law`."""
        transcript, masses = self.run.law(data), dict[float, float]()
        for outputs, mass in zip(transcript.outcomes, transcript.probabilities.tolist(), strict=True):
            first = next((label for label in outputs if label > BOTTOM), BOTTOM)  # type: ignore[attr-defined]
            masses[first] = masses.get(first, 0.0) + mass
        return FiniteLaw(tuple(masses), np.array(list(masses.values())))


# -------------------------------------------------------------------------------------- exact distributions

_Density = FloatArray


class _Branch(NamedTuple):
    """What is left of the threshold noise's weights after one query, and what the query costs."""

    density: _Density
    cost: int


class _Integral:
    """Weights of the threshold noise on nodes, jointly with what has been answered.

    Gauss-Legendre over the threshold noise, split at its kinks; relative errors below 1e-13.
    """

    def __init__(self, mechanism: SoftLabels, readings: HistogramReadings) -> None:
        self._mechanism, scale = mechanism, mechanism.scale
        offsets = readings.distances - mechanism.threshold
        gap = float(np.abs(offsets).max()) / scale
        require(gap <= _MAX_GAP, f"distances within {_MAX_GAP} noise scales of the threshold", gap)
        kinks = np.concatenate([[0.0], offsets.ravel()])
        breaks = np.concatenate([[kinks.min() - REACH * scale], kinks, [kinks.max() + REACH * scale]])
        # A threshold that is never refreshed serves two tests a query, each with noise of scale 2 lambda.
        x, w = gauss_legendre(breaks, 8.0 * scale / (1.0 + offsets.shape[1]))
        self.fresh: _Density = w * np.exp(-np.abs(x) / scale) / (2.0 * scale)
        if not mechanism.steps.noisy_threshold:
            x, self.fresh = np.zeros(1), np.ones(1)
        # Probability that a test fails, and that it passes, on each node; shape (2, m, nodes).
        z = (x - offsets[..., None]) / (2.0 * scale)
        self._fails, self._passes = laplace_cdf(z), laplace_cdf(-z)

    def ask(self, query: int, density: _Density | None) -> tuple[_Branch, _Branch, _Branch]:
        """Pass of the first test, pass of the second, failure of both, given the weights before (None: fresh)."""
        steps = self._mechanism.steps
        before = self.fresh if density is None else density
        first = before * self._passes[0, query]
        failed = self._renew_density(before * self._fails[0, query], steps.refreshes_between)
        second = failed * self._passes[1, query]
        bottom = self._renew_density(failed * self._fails[1, query], steps.refreshes_after_bottom)
        return _Branch(first, 0), _Branch(second, 1), _Branch(bottom, steps.bottom_costs)

    def _renew_density(self, density: _Density, refreshes: bool) -> _Density:
        return density.sum() * self.fresh if refreshes else density


def transcripts(mechanism: SoftLabels, readings: HistogramReadings) -> Iterator[tuple[tuple[float, ...], float]]:
    """All transcripts with their probabilities; the same one may come several times, if both tests give one value.

    ValueError if there are more than fit.
    """
    integral, m = _Integral(mechanism, readings), readings.values.shape[1]
    values = [(first.item(), second.item(), BOTTOM) for first, second in readings.values.T]
    running: list[tuple[tuple[float, ...], tuple[int, ...], _Density | None, int]] = [((), (), None, 0)]
    for i in range(m):
        require(3 * len(running) * integral.fresh.size <= _MAX_WORK, "fewer queries: too many transcripts", m)
        after: list[tuple[tuple[float, ...], tuple[int, ...], _Density | None, int]] = []
        for outputs, flags, density, counter in running:
            for how, (left, cost) in enumerate(integral.ask(i, density)):
                said, flagged = (*outputs, values[i][how]), (*flags, min(how, 1))
                if i + 1 < m and mechanism.goes_on(np.array(counter + cost)):
                    after.append((said, flagged, left, counter + cost))
                    continue
                rest = (HALTED,) * (m - i - 1)
                shown = (*flagged, *rest) if mechanism.steps.shows_flag else ()
                yield (*said, *rest, *shown), float(left.sum())
        running = after


def _distribution_of_reused_noise(mechanism: SoftLabels, readings: HistogramReadings) -> FiniteLaw:
    """One query, by quadrature over the noise z of both tests.

    The first test fails if its threshold's noise is at least ``z + d1 - w``, the second passes if the other one's is
    below ``z + d2 - w``.
    """
    require(readings.values.shape[1] == 1, "one query", readings.values.shape[1])
    require(mechanism.steps.refreshes_between, "a threshold for each test", mechanism.steps)
    require(mechanism.steps.noisy_threshold, "a noisy threshold", mechanism.steps)
    scale, offsets = mechanism.scale, readings.distances[:, 0] - mechanism.threshold
    kinks = np.concatenate([[0.0], -offsets])
    breaks = np.concatenate([[kinks.min() - 2 * REACH * scale], kinks, [kinks.max() + 2 * REACH * scale]])
    z, w = gauss_legendre(breaks, 3.0 * scale)
    weights = w * np.exp(-np.abs(z) / (2.0 * scale)) / (4.0 * scale)
    passes, fails = laplace_cdf((z + offsets[:, None]) / scale), laplace_cdf(-(z + offsets[:, None]) / scale)
    masses = [weights @ passes[0], weights @ (fails[0] * passes[1]), weights @ (fails[0] * fails[1])]
    first, second = (row[0].item() for row in readings.values)
    return FiniteLaw(((first,), (second,), (BOTTOM,)), np.array(masses))
