"""The sparse vector technique: six published variants, two of them private.

Textbook orientation: "above" is the costly outcome, and a run stops after `cutoff` of them. (The
document 004 prints the mirror image; negate answers and threshold to go from one to the other.)

Source: Lyu, Su and Li (2017), Figure 1; catalogue 004, sections 0.2 to 0.4 and svt_mutants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from auditor.exact import FiniteLaw
from mechanisms.common import Dataset, FloatArray, Mutant, require, require_draws, require_positive, table
from mechanisms.noise import gauss_legendre, without_low_bits
from mechanisms.queries import Query

VariantName: TypeAlias = Literal["V1", "V2", "V3", "V4", "V5", "V6"]

# Beyond 40 threshold scales from every kink the integrand holds less than e^-40 of its integral.
_REACH = 40.0
# exp(-700) is still a normal double: answers further from the threshold than this many noise scales
# would make possible transcripts look impossible (and need millions of nodes).
_MAX_GAP = 700.0
# Transcripts times nodes of one step: 128 MB of float64, enough for 12 queries without cutoff.
_MAX_WORK = 2**24


@dataclass(frozen=True)
class Variant:
    """One row of the table, noise scales in units of sensitivity / epsilon.

    Parameters
    ----------
    threshold, query : float
        Scales of threshold and query noise; 0 is no noise.
    threshold_by_cutoff, query_by_cutoff : bool
        Whether the scale is multiplied by the cutoff.
    redraws : bool
        Whether the threshold noise is drawn anew after each "above".
    stops : bool
        Whether the run ends after `cutoff` of them.
    releases : bool
        Whether "above" releases the noisy answer itself.
    """

    threshold: float
    query: float
    threshold_by_cutoff: bool = False
    query_by_cutoff: bool = False
    redraws: bool = False
    stops: bool = True
    releases: bool = False


# With the budget eps split into eps1 for the threshold and eps2 for the queries.
VARIANTS: dict[str, Variant] = {
    # Lyu et al.: eps1 = eps2 = eps/2, scales 1/eps1 and 2c/eps2.
    "V1": Variant(2.0, 4.0, query_by_cutoff=True),
    # Dwork and Roth: eps1 = eps2 = eps/2, scales c/eps1 (redrawn: c/eps2) and 2c/eps1.
    "V2": Variant(2.0, 4.0, threshold_by_cutoff=True, query_by_cutoff=True, redraws=True),
    # Roth 2011: eps1 = eps2 = eps/2, scales 1/eps1 and c/eps2, releases the compared answer.
    "V3": Variant(2.0, 2.0, query_by_cutoff=True, releases=True),
    # Lee and Clifton 2014: eps1 = eps/4, eps2 = 3 eps/4, scales 1/eps1 and 1/eps2.
    "V4": Variant(4.0, 4.0 / 3.0),
    # Stoddard et al. 2014: eps1 = eps/2, no query noise, no cutoff.
    "V5": Variant(2.0, 0.0, stops=False),
    # Chen et al. 2015: eps1 = eps2 = eps/2, scales 1/eps1 and 1/eps2, no cutoff.
    "V6": Variant(2.0, 2.0, stops=False),
}


@dataclass(frozen=True)
class SparseVector:
    """Answer "is this query above the threshold?" for a stream of queries.

    Parameters
    ----------
    query : Query
        The stream's answers, shape (m,); each moves by at most its linf sensitivity.
    epsilon : float
        Claimed pure level.
    threshold : float, default 0.0
        Public.
    cutoff : int, default 1
        Most "above" answers; V5 and V6 ignore it.
    variant : str, default "V1"
        Row of `VARIANTS`. V1 and V2 satisfy the claim; see `true_epsilon` for the others.

    Notes
    -----
    Outputs have shape (n, m). All variants but V3: int8, 1 above, 0 below, -1 not asked because
    the run has stopped. V3: float64, the released noisy answer where above (without its low-order
    bits), NaN elsewhere.
    """

    query: Query
    epsilon: float
    threshold: float = 0.0
    cutoff: int = 1
    variant: VariantName = "V1"

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(math.isfinite(self.threshold), "a finite threshold", self.threshold)
        require(isinstance(self.cutoff, (int, np.integer)) and self.cutoff >= 1, "a cutoff >= 1", self.cutoff)
        require(self.variant in VARIANTS, f"a variant among {list(VARIANTS)}", self.variant)

    @property
    def spec(self) -> Variant:
        """The variant's row."""
        return VARIANTS[self.variant]

    @property
    def threshold_scale(self) -> float:
        """Laplace scale of the threshold noise."""
        factor = self.cutoff if self.spec.threshold_by_cutoff else 1
        return self.spec.threshold * factor * self.query.linf_sensitivity / self.epsilon

    @property
    def query_scale(self) -> float:
        """Laplace scale of the query noise; 0 for none."""
        factor = self.cutoff if self.spec.query_by_cutoff else 1
        return self.spec.query * factor * self.query.linf_sensitivity / self.epsilon

    @property
    def true_epsilon(self) -> float:
        """Supremum of the privacy loss over all pairs and all lengths of the stream.

        With sensitivity D and scales b_w, b_q: ``D/b_w + c 2D/b_q``, and ``c (D/b_w + 2D/b_q)``
        if the threshold is redrawn; infinite without query noise, without cutoff, and for V3
        (every cheap "below" before a released answer costs up to D/b_q).
        """
        if not self.spec.stops or self.spec.releases or self.query_scale == 0.0:
            return math.inf
        sensitivity = self.query.linf_sensitivity
        thresholds = self.cutoff if self.spec.redraws else 1
        return sensitivity * (thresholds / self.threshold_scale + 2.0 * self.cutoff / self.query_scale)

    def answers(self, data: Dataset) -> FloatArray:
        """Return the stream's answers, shape (m,); ValueError for a single number."""
        answers = self.query(data)
        require(answers.ndim == 1 and answers.size > 0, "a vector of answers", answers)
        return answers

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `n` transcripts; shape (n, m), see the class for their coding."""
        require_draws(n)
        answers = self.answers(data)
        symbols = np.full((n, answers.size), -1, dtype=np.int8)
        released = np.full((n, answers.size), np.nan) if self.spec.releases else None
        bar = self.threshold + rng.laplace(0.0, self.threshold_scale, n)
        asked = np.ones(n, dtype=np.bool_)
        tops = np.zeros(n, dtype=np.int64)
        for i, answer in enumerate(answers):
            noisy = answer + rng.laplace(0.0, self.query_scale, n) if self.query_scale else np.full(n, answer)
            above = asked & (noisy >= bar)
            symbols[asked, i] = above[asked]
            if released is not None:
                released[above, i] = without_low_bits(noisy[above])
            tops += above
            if self.spec.stops:
                asked &= tops < self.cutoff
            if self.spec.redraws:
                bar[above] = self.threshold + rng.laplace(0.0, self.threshold_scale, int(above.sum()))
        return symbols if released is None else released

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output law on `data` over transcripts, as tuples of 1, 0 and -1.

        Gauss-Legendre over the threshold noise, split at its kinks; relative errors below 1e-13.
        For V5, closed form: transcripts that no threshold produces are absent.

        Raises
        ------
        ValueError
            For V3 (its outputs are real: see `v3_log_ratio`), and for more transcripts than fit
            (V6: more than about 12 queries).
        """
        require(not self.spec.releases, "a variant with finitely many outputs", self.variant)
        offsets = self.answers(data) - self.threshold
        if self.query_scale == 0.0:
            return _noiseless_law(offsets, self.threshold_scale)
        _require_near(self, offsets)
        return self._quadrature_law(offsets)

    def _quadrature_law(self, offsets: FloatArray) -> FiniteLaw:
        x, fresh = self._threshold_nodes(offsets)
        transcripts = np.full((1, offsets.size), -1, dtype=np.int8)
        tops = np.zeros(1, dtype=np.int64)
        density = fresh[None, :]  # weight of the threshold noise, jointly with the transcript so far
        finished: list[tuple[NDArray[np.int8], FloatArray]] = []
        for i, offset in enumerate(offsets):
            require(density.size * 2 <= _MAX_WORK, "a stream with fewer transcripts", offsets.size)
            below = _laplace_cdf((x - offset) / self.query_scale)
            up = density * _laplace_cdf((offset - x) / self.query_scale)
            if self.spec.redraws:
                up = up.sum(axis=1, keepdims=True) * fresh
            transcripts = np.concatenate([transcripts, transcripts])
            transcripts[: tops.size, i], transcripts[tops.size :, i] = 0, 1
            density = np.concatenate([density * below, up])
            tops = np.concatenate([tops, tops + 1])
            if self.spec.stops:
                stop = tops == self.cutoff
                finished.append((transcripts[stop], density[stop].sum(axis=1)))
                transcripts, density, tops = transcripts[~stop], density[~stop], tops[~stop]
        finished.append((transcripts, density.sum(axis=1)))
        rows = [tuple(row) for part, _ in finished for row in part.tolist()]
        mass = np.concatenate([part for _, part in finished])
        # Many moderate gaps can still multiply to an underflow.
        require(bool(np.all(mass > 0)), "answers closer to the threshold: a probability underflows", offsets)
        return FiniteLaw(tuple(rows), mass)

    def _threshold_nodes(self, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Nodes of the threshold noise, and their weights times its density."""
        scale = self.threshold_scale
        kinks = np.concatenate([[0.0], offsets])
        breaks = np.concatenate([[kinks.min() - _REACH * scale], kinks, [kinks.max() + _REACH * scale]])
        growth = 1.0 / scale + offsets.size / self.query_scale
        x, w = gauss_legendre(breaks, 8.0 / growth)
        return x, w * np.exp(-np.abs(x) / scale) / (2.0 * scale)


def _require_near(mechanism: SparseVector, offsets: FloatArray) -> None:
    gap = float(np.max(np.abs(offsets))) / min(mechanism.threshold_scale, mechanism.query_scale)
    require(gap <= _MAX_GAP, f"answers within {_MAX_GAP} noise scales of the threshold", gap)


def _laplace_cdf(z: FloatArray) -> FloatArray:
    tail = 0.5 * np.exp(-np.abs(z))
    return np.asarray(np.where(z < 0, tail, 1.0 - tail), dtype=np.float64)


def _noiseless_law(offsets: FloatArray, scale: float) -> FiniteLaw:
    """V5: the threshold noise falls between two sorted answers, which fixes the transcript."""
    ends = np.concatenate([[-np.inf], np.unique(offsets), [np.inf]]) / scale
    left, right = ends[:-1], ends[1:]
    # Difference of two CDFs on the side where they are small; a piece across 0 adds both.
    upper = np.where(left >= 0, _laplace_cdf(-left) - _laplace_cdf(-right), 0.0)
    lower = np.where(right <= 0, _laplace_cdf(right) - _laplace_cdf(left), 0.0)
    across = np.where((left < 0) & (right > 0), 1.0 - _laplace_cdf(left) - _laplace_cdf(-right), 0.0)
    patterns = (offsets[None, :] / scale >= right[:, None]).astype(np.int64)
    return FiniteLaw(tuple(tuple(row) for row in patterns.tolist()), upper + lower + across)


# ----------------------------------------------------------------------- V3: released answers


@dataclass(frozen=True)
class WorstRelease:
    """Where the privacy loss of V3 is largest.

    Parameters
    ----------
    loss : float
        ``max |ln P - ln Q|``, the exact level of the pair.
    index : int
        Which query's answer is released; m if none is.
    value : float
        The released value (NaN if none is).
    """

    loss: float
    index: int
    value: float


def v3_log_ratio(mechanism: SparseVector, data: Dataset, other: Dataset, index: int, value: float) -> float:
    """Exact privacy loss of one output of V3 with cutoff 1.

    Parameters
    ----------
    mechanism : SparseVector
        Variant V3, cutoff 1.
    data, other : datasets
        The pair; the loss is ``ln P - ln Q`` with P on `data`.
    index : int
        Query whose noisy answer is released; m for "all below".
    value : float
        The released answer; ignored for "all below".

    Returns
    -------
    float
        With ``I(v)`` the integral of the threshold's density times ``prod over i < index of
        P[answer i below]`` up to ``v - T``: ``ln f(v - q) + ln I(v)`` minus the same on `other`.
    """
    first, second = mechanism.answers(data), mechanism.answers(other)
    _require_v3(mechanism, first, second)
    require(0 <= index <= first.size, f"an index from 0 to {first.size}", index)
    return _v3_loss(mechanism, first, second, index, value)


def _v3_loss(mechanism: SparseVector, first: FloatArray, second: FloatArray, index: int, value: float) -> float:
    """See `v3_log_ratio`; on the two datasets' answers."""
    if index == first.size:
        value = math.inf
        moved = 0.0
    else:
        moved = (abs(value - second[index]) - abs(value - first[index])) / mechanism.query_scale
    kinks = np.concatenate([first[:index], second[:index]]) - mechanism.threshold
    x, w = _nodes_up_to(mechanism, kinks, value - mechanism.threshold)
    logs = [_log_integral(mechanism, answers[:index], x, w) for answers in (first, second)]
    return float(moved + logs[0] - logs[1])


def v3_supremum(mechanism: SparseVector, data: Dataset, other: Dataset) -> WorstRelease:
    """Exact level of a pair for V3 with cutoff 1, and the output that shows it.

    For each index the loss is constant for values below all answers, constant up to e^-40 far
    above them, and smooth between the kinks: a grid of 1/8 of a noise scale with all kinks, then a
    bounded minimisation around the best point. Accurate to about 1e-9.
    """
    first, second = mechanism.answers(data), mechanism.answers(other)
    _require_v3(mechanism, first, second)
    kinks = np.unique(np.concatenate([first, second, [mechanism.threshold]]))
    scale = max(mechanism.threshold_scale, mechanism.query_scale)
    inner = np.arange(kinks[0] - scale, kinks[-1] + 20.0 * scale, mechanism.query_scale / 8.0)
    grid = np.unique(np.concatenate([inner, kinks]))
    last = first.size
    none = abs(_v3_loss(mechanism, first, second, last, math.inf))
    best = WorstRelease(none, last, math.nan)
    for index in range(last):

        def loss(value: float, index: int = index) -> float:
            return abs(_v3_loss(mechanism, first, second, index, value))

        values = [loss(float(v)) for v in grid]
        k = int(np.argmax(values))
        low, high = grid[max(k - 1, 0)], grid[min(k + 1, grid.size - 1)]
        found = optimize.minimize_scalar(
            lambda v, loss=loss: -loss(v), bounds=(low, high), method="bounded", options={"xatol": 1e-10}
        )
        for value in (float(grid[k]), float(found.x)):
            if loss(value) > best.loss:
                best = WorstRelease(loss(value), index, value)
    return best


def _require_v3(mechanism: SparseVector, *answers: FloatArray) -> None:
    require(mechanism.variant == "V3", "variant V3", mechanism.variant)
    for stream in answers:
        _require_near(mechanism, stream - mechanism.threshold)
    require(mechanism.cutoff == 1, "cutoff 1 (no exact formula here beyond it)", mechanism.cutoff)


def _nodes_up_to(mechanism: SparseVector, kinks: FloatArray, end: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and plain weights from far below all kinks up to `end`."""
    scale = mechanism.threshold_scale
    kinks = np.concatenate([kinks, [0.0]])
    end = min(end, float(kinks.max()) + _REACH * scale)
    low = min(float(kinks.min()), end) - _REACH * scale
    breaks = np.concatenate([[low, end], kinks[kinks < end]])
    growth = 1.0 / scale + kinks.size / mechanism.query_scale
    return gauss_legendre(breaks, 8.0 / growth)


def _log_integral(mechanism: SparseVector, answers: FloatArray, x: FloatArray, w: FloatArray) -> float:
    """Log of the integral of the threshold's density times P[all answers below]."""
    z = (x[:, None] + mechanism.threshold - answers) / mechanism.query_scale
    away = np.abs(z)
    log_below = np.where(z < 0, -away - math.log(2.0), np.log1p(-0.5 * np.exp(-away))).sum(axis=1)
    exponent = log_below - np.abs(x) / mechanism.threshold_scale
    peak = float(exponent.max())
    return peak + math.log(float(w @ np.exp(exponent - peak)))


# ------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True)
class Variation:
    """Builds another variant with the same parameters (for `Mutant.build`)."""

    variant: VariantName

    def __call__(self, base: SparseVector) -> SparseVector:
        """Return `base` as this variant."""
        return replace(base, variant=self.variant)


@dataclass(frozen=True)
class VariationLevel:
    """True level of another variant with the same parameters (for `Mutant.true_epsilon`)."""

    variant: VariantName

    def __call__(self, base: SparseVector) -> float:
        """Return that variant's `SparseVector.true_epsilon`."""
        return replace(base, variant=self.variant).true_epsilon


def _mutant(variant: VariantName, note: str) -> Mutant[SparseVector]:
    return Mutant(variant, Variation(variant), VariationLevel(variant), "violation", note)


MUTANTS: dict[str, Mutant[SparseVector]] = table(
    _mutant("V3", "releases the compared answer: K cheap answers cost K D/b_q; long runs of 0 against 1"),
    _mutant("V4", "(1 + 6c) eps / 4: 0^K 1 against 1^K 0 as K grows; (1 + 3c) eps / 4 for monotone queries"),
    _mutant("V5", "no query noise: 0 1 against 1 0, the order of two answers is published"),
    _mutant("V6", "no cutoff: r costly answers cost (1/2 + r) eps; 0^K 1^K against 1^K 0^K"),
)
