"""Output distributions of the mutants on their pairs, for the oracle: declared, or computed from the definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.calibration.oracles import Cdf, Masses, from_cdfs
from auditor.claims import Draft
from auditor.datasets import Pair
from auditor.privacy.exact import FiniteLaw, LossCurve, PrivacyCurve, curve
from auditor.privacy.laws import GaussianLaw, LaplaceLaw
from mechanisms.base.noise import gauss_legendre

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Points of a trade-off curve between which a pair of distributions is taken as constant.
POINTS = 4_000
#: Integer noise is followed until this much of its mass is left, too little to move any rate.
_TAIL = 1e-12
#: Trailing zero bits of a float that are told apart; 2^-40 of the mass has more.
_LEVELS = 40
#: Cells of a released answer, in noise scales.
CELL = 1 / 64
#: Released answers are followed so many noise scales beyond all answers: e^-25 = 1e-11 is left, and what a difference
#: of two distribution functions says is not yet rounding.
_REACH = 25.0


def masses_of(draft: Draft) -> Masses | None:
    """Pair of distributions of a mutant on its first pair; None if it is not known.

    In this order: the exact curve that the claim declares, the definitions of this module, the distributions that the
    mechanism states.
    """
    pair, mechanism = draft.pairs[0], draft.mechanism
    if draft.curves:
        return from_curve(draft.curves[0])
    defined = _LAWS.get(type(mechanism).__name__)
    if defined is not None:
        return defined(mechanism, pair)
    law = getattr(mechanism, "law", None)
    return None if law is None else from_curve(curve(law(pair.x), law(pair.y)))


def from_curve(known: PrivacyCurve, points: int = POINTS) -> Masses:
    """Masses of a pair of distributions, from all that their privacy curve says about them.

    A `LossCurve` holds the masses themselves. Otherwise the trade-off curve is cut at ``points`` points and more in the
    tails: between two of them the likelihood ratio hardly moves. Where the two orders differ that is the pair of the
    curve's hull, which says at least as much as the pair itself, so the oracle is not slowed down.
    """
    if isinstance(known, LossCurve):
        p = np.concatenate([np.exp(known.log_p), [known.p_only, 0.0]])
        return Masses(p, np.concatenate([np.exp(known.log_q), [0.0, known.q_only]]))
    half = np.concatenate([[0.0], np.geomspace(1e-15, 1e-3, points // 4), np.linspace(1e-3, 0.5, points)[1:]])
    q = np.unique(np.concatenate([half, 1.0 - half]))
    p = np.minimum(known.tradeoff(q), 1.0)
    return Masses(np.append(np.maximum(np.diff(p), 0.0), p[0]), np.append(np.diff(q), 0.0))


# ------------------------------------------------------------------------------- integer noise


def _integer_noise(first: int, second: int, mass: Callable[[Integers], Array], reach: int) -> Masses:
    """Masses of ``first + Z`` and ``second + Z`` for integer noise Z with the given probabilities."""
    k = np.arange(min(first, second) - reach, max(first, second) + reach + 1)
    p, q = mass(k - first), mass(k - second)
    return Masses(np.append(p, max(0.0, 1 - p.sum())), np.append(q, max(0.0, 1 - q.sum())))


def _lattice_reach(a: float) -> int:
    return math.ceil(-math.log(_TAIL) / math.log1p(a - 1.0))


def _one_sided(a: float) -> Callable[[Integers], Array]:
    """P[G = k] = (1 - 1/a) a^-k for k >= 0."""
    return lambda k: np.where(k >= 0, (1 - 1 / a) * a ** -np.maximum(k, 0).astype(float), 0.0)


def _two_sided(a: float) -> Callable[[Integers], Array]:
    """P[Z = k] = a^-|k| (a - 1) / (a + 1)."""
    return lambda k: a ** -np.abs(k).astype(float) * (a - 1) / (a + 1)


def _one_sided_integers(mechanism: Any, pair: Pair) -> Masses:
    """Answer plus G >= 0."""
    a = mechanism.a
    return _integer_noise(
        int(mechanism.centre(pair.x)), int(mechanism.centre(pair.y)), _one_sided(a), _lattice_reach(a)
    )


def _one_sided_lattice(mechanism: Any, pair: Pair) -> Masses:
    """The same in units of the lattice step."""
    first, second = mechanism.centre(pair.x), mechanism.centre(pair.y)
    a = mechanism.base(first.size)
    return _integer_noise(int(first), int(second), _one_sided(a), _lattice_reach(a))


def _noise_clamped(mechanism: Any, pair: Pair) -> Masses:
    """Two-sided geometric noise clamped from below at 0; the upper bound is out of reach."""
    a = mechanism.a
    if mechanism.bound < _lattice_reach(a):
        raise ValueError(f"expected a bound of at least {_lattice_reach(a)}, got {mechanism.bound}")

    def mass(k: Integers) -> Array:
        return np.where(k > 0, _two_sided(a)(k), np.where(k == 0, a / (a + 1), 0.0))

    return _integer_noise(int(mechanism.centre(pair.x)), int(mechanism.centre(pair.y)), mass, _lattice_reach(a))


def _bound_from_data(mechanism: Any, pair: Pair) -> Masses:
    """Two-sided geometric noise, the output clamped to at most the number of rows."""
    a, found = mechanism.a, []
    answers, rows = [int(mechanism.centre(data)) for data in (pair.x, pair.y)], [len(pair.x), len(pair.y)]
    outputs = np.arange(min(answers) - _lattice_reach(a), max(rows) + 1)
    if outputs[0] < 0:
        raise ValueError(f"expected answers that noise does not take below 0, got {answers}")
    for answer, most in zip(answers, rows, strict=True):
        mass = np.where(outputs <= most, _two_sided(a)(outputs - answer), 0.0)
        mass[outputs == most] += 1 - mass.sum()
        found.append(mass)
    return Masses(found[0], found[1])


def _by_cell_probability(mechanism: Any, pair: Pair) -> Masses:
    """Integer noise whose probabilities the mutant states."""
    first, second = int(mechanism.centre(pair.x)), int(mechanism.centre(pair.y))
    return _integer_noise(first, second, mechanism.cell_probability, _lattice_reach(mechanism.a))


def _point_against_noise(mechanism: Any, pair: Pair) -> Masses:
    """Local sensitivity 0 on one side, so no noise; two-sided geometric noise on the other."""
    first, second = mechanism.law(pair.x), mechanism.law(pair.y)
    point, spread = (first, second) if isinstance(first, FiniteLaw) else (second, first)
    at = float(mechanism.centre(pair.x if point is first else pair.y)) * mechanism.grid
    if point.outcomes != (at,):
        raise ValueError(f"expected a distribution at the point {at}, got {point}")
    hit = float(spread.cdf(at) - spread.cdf(np.nextafter(at, -math.inf)))
    masses = np.array([1.0, 0.0]), np.array([hit, 1.0 - hit])
    return Masses(*masses) if point is first else Masses(*masses[::-1])


# ----------------------------------------------------------------------------- disjoint outputs


def _disjoint_masses() -> Masses:
    return Masses(np.array([1.0, 0.0]), np.array([0.0, 1.0]))


def _coarse_noise(mechanism: Any, pair: Pair) -> Masses:
    """Noise in multiples of k steps: answers that differ by no multiple of k have disjoint outputs."""
    first, second = int(mechanism.centre(pair.x)), int(mechanism.centre(pair.y))
    k = mechanism.steps(1)
    if (first - second) % k == 0:
        raise ValueError(f"expected answers that do not differ by a multiple of {k} steps, got {first} and {second}")
    return _disjoint_masses()


def _shared_noise(mechanism: Any, pair: Pair) -> Masses:
    """One noise for all coordinates: their differences are published."""
    first, second = mechanism.centre(pair.x), mechanism.centre(pair.y)
    if (np.diff(first) == np.diff(second)).all():
        raise ValueError(f"expected answers with other differences, got {first} and {second}")
    return _disjoint_masses()


def _rows_of_bits(mechanism: Any, pair: Pair) -> Masses:
    """One coin for all rows, or coins from a fixed seed: outputs are a row's bits or their complements."""
    first, second = mechanism.bits(pair.x), mechanism.bits(pair.y)
    if (first == second).all() or (first != second).all():
        raise ValueError(f"expected rows that are neither equal nor complements, got {first} and {second}")
    return _disjoint_masses()


# --------------------------------------------------------------------------------- real outputs


def _released_maximum(mechanism: Any, pair: Pair) -> Masses:
    """Largest noisy score, from its distribution function."""
    scores = mechanism.scaled(pair.x) * mechanism.scale
    low, high = scores.min() - 12 * mechanism.scale, scores.max() + _REACH * mechanism.scale  # e^-12d is below
    edges = np.arange(low, high, CELL * mechanism.scale / 8)
    return from_cdfs(
        lambda x: np.exp(mechanism.log_cdf(pair.x, x)), lambda x: np.exp(mechanism.log_cdf(pair.y, x)), edges
    )


def _released_answers(mechanism: Any, pair: Pair) -> Masses | None:
    """Sparse vector that releases what is above, cutoff 1: which query that is and the cell of its answer, or none.

    P[query i is the first above, its answer in dv] = f((v - q_i) / b) / b I_i(v) dv, with I_i(v) the integral of the
    threshold noise's density times P[all earlier answers below] up to v - T (see `release_log_ratio`).
    """
    if mechanism.spec.releases != "above" or mechanism.cutoff != 1:
        return None
    answers = [mechanism.answers(data) - mechanism.threshold for data in (pair.x, pair.y)]
    scale, noise = mechanism.threshold_scale, mechanism.query_scale
    kinks = np.unique(np.concatenate([*answers, [0.0]]))
    widest = _REACH * max(scale, noise)
    inner = np.arange(kinks[0] - widest, kinks[-1] + widest, CELL * min(scale, noise))
    edges = np.unique(np.concatenate([inner, kinks]))
    nodes = 4  # a cell is far shorter than the scale: exact to rounding
    x, w = gauss_legendre(edges, math.inf, nodes)
    threshold = w * np.exp(-np.abs(x) / scale) / (2 * scale)
    found = []
    for offsets in answers:
        below, rows = np.ones_like(x), []
        for offset in offsets:
            step = (threshold * below).reshape(-1, nodes).sum(axis=1)
            rows.append(np.diff(_laplace((edges - offset) / noise)) * (np.cumsum(step) - 0.5 * step))
            below = below * _laplace((x - offset) / noise)
        mass = np.append(np.concatenate(rows), (threshold * below).sum())
        found.append(mass / mass.sum())
    return Masses(found[0], found[1])


def _laplace(x: Array) -> Array:
    return LaplaceLaw(0.0, 1.0).cdf(x)


# -------------------------------------------------------------------------------- float structure


def float_masses(cdf: Cdf, bits: int) -> Masses:
    """Floating-point noise added to 0 and to 1: masses of the output's cell with its trailing zero bits.

    Parameters
    ----------
    cdf : callable
        Distribution function of the noise, symmetric about 0.
    bits : int
        Bits of the significand: 53 for doubles, 24 for single precision.

    Returns
    -------
    Masses
        Of the outputs on 0 and on 1.

    Notes
    -----
    The noise is taken as a real number rounded to a float, its low bits as uniform. On 0 the output is the noise: an
    odd multiple of 2^j ulps with probability 2^-(j + 1). On 1 it is 1 + noise: the same in units of the noise's ulp
    where that is the coarser one; where the noise is finer by m bits it is rounded, ties to even, and odd with
    probability 1/2 - 2^-(m + 1). Which floats a sampler can return at all says more still; no auditor here asks that.
    """
    powers = 2.0 ** np.arange(-bits, 7)
    ends = np.concatenate([-powers, powers])
    edges = np.unique(np.concatenate([ends, 1 + ends, np.linspace(0, 1, 257)]))  # 256 cells where the ratio moves
    middle = 0.5 * (edges[1:] + edges[:-1])
    own, noise = _ulp(middle, bits), _ulp(middle - 1.0, bits)
    uniform = np.append(0.5 ** np.arange(1, _LEVELS + 1), 0.5**_LEVELS)
    finer = np.maximum(own - noise, 0)
    odd = np.where(finer > 0, 0.5 - 0.5 ** (finer + 1.0), 0.5)[:, None]
    rounded = np.concatenate([odd, (1 - odd) * uniform[1:] / uniform[1:].sum()], axis=1)
    coarser = np.maximum(own, noise)
    zero, one = np.zeros((2, len(middle), int(coarser.max() - own.min()) + _LEVELS + 1))
    cells = np.arange(len(middle))
    for j in range(_LEVELS + 1):
        zero[cells, own - own.min() + j] = uniform[j]
        one[cells, coarser - own.min() + j] = rounded[:, j]
    p, q = ((np.diff(cdf(edges - answer))[:, None] * part).ravel() for answer, part in ((0.0, zero), (1.0, one)))
    return Masses(np.append(p, max(0.0, 1 - p.sum())), np.append(q, max(0.0, 1 - q.sum())))


def _ulp(x: Array, bits: int) -> Integers:
    """Exponent of the last bit of floats of this size."""
    return np.asarray(np.frexp(x)[1], dtype=np.int64) - bits


def _of_answers(masses: Masses, mechanism: Any, pair: Pair) -> Masses:
    """Masses on 0 and 1 in the order of the pair's answers."""
    answers = [float(mechanism.query(data)) for data in (pair.x, pair.y)]
    if sorted(answers) != [0.0, 1.0]:
        raise ValueError(f"expected the answers 0 and 1, got {answers}")
    return masses if answers[0] == 0.0 else Masses(masses.q, masses.p)


def _textbook_float(mechanism: Any, pair: Pair) -> Masses:
    """Textbook Laplace noise in doubles."""
    noise = LaplaceLaw(0.0, mechanism.calibration / mechanism.epsilon)
    return _of_answers(float_masses(noise.cdf, 53), mechanism, pair)


def _single_precision(mechanism: Any, pair: Pair) -> Masses:
    """Textbook Gaussian noise in single precision."""
    return _of_answers(float_masses(GaussianLaw(0.0, mechanism.sigma(1)).cdf, 24), mechanism, pair)


def _disjoint_outputs(mechanism: Any, pair: Pair) -> Masses:
    """Outputs of the two datasets are never the same, as the claim's pair is chosen."""
    del mechanism, pair
    return _disjoint_masses()


#: By the mutant's class. A mutant that is neither here nor states its own has the row "no distribution known".
_LAWS: dict[str, Callable[[Any, Pair], Masses | None]] = {
    "OneSidedGeometric": _one_sided_integers,
    "OneSidedNoise": _one_sided_lattice,
    "NoiseClamped": _noise_clamped,
    "DataDependentBound": _bound_from_data,
    "RoundedLaplace": _by_cell_probability,
    "SignTimesGeometric": _by_cell_probability,
    "LocalSensitivity": _point_against_noise,
    "NoiseRoundedBeforeAdding": _coarse_noise,
    "SameNoiseForAllAnswers": _shared_noise,
    "NoiseSharedByUsers": _shared_noise,
    "SharedSeed": _disjoint_outputs,
    "DeduplicatedBlocks": _disjoint_outputs,
    "OneCoinForAllRows": _rows_of_bits,
    "MemoisedSeed": _rows_of_bits,
    "ReleasedMaximum": _released_maximum,
    "SparseVector": _released_answers,
    "TextbookLaplace": _textbook_float,
    "GaussianInFloat32": _single_precision,
}
