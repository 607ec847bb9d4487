"""Triangles of a graph with noise scaled to a noisy bound on their local sensitivity, and its mutants.

Neighbours are graphs of which one has one edge more. With the edge {u, v} come as many triangles as u and v have common
neighbours, so the local sensitivity LS is the largest number of common neighbours of two nodes. One edge moves LS by at
most one, so LS can itself be released with Laplace noise; raised by ln(1/delta)/epsilon it is a bound on LS but for a
probability of delta/2, and that bound scales the noise on the number of triangles.

Source: document 003, section 2.2.3; catalogue 000_001_003, noisy_local_sensitivity_triangles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from auditor.datasets.graphs import check_adjacency
from auditor.privacy.exact import FiniteLaw, LossCurve, TwoSidedGeometricLaw
from auditor.privacy.exact.discrete_curves import geometric_pair
from auditor.privacy.exact.privacy_loss import grouped
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import base_for, gauss_legendre, two_sided_geometric

BoolArray: TypeAlias = NDArray[np.bool_]

#: Mass of the bound, and of the answer, that the stated distribution leaves out on each side: far below any delta that
#: is asked for, and below what rounding adds to a sum of the rest.
NEGLECTED = 1e-18
# Bounds times answers in one block of the mixture: 32 MB of float64.
_BLOCK = 2**22


class TriangleCounts(NamedTuple):
    """What the mechanism reads from a graph.

    Attributes
    ----------
    nodes : int
        Number of nodes, which is public.
    triangles : int
        Number of triangles.
    sensitivity : int
        Their local sensitivity: the largest number of common neighbours of two nodes; 0 for fewer than two nodes.
    """

    nodes: int
    triangles: int
    sensitivity: int


def counts(graph: Dataset) -> TriangleCounts:
    """Triangles of a graph and their local sensitivity.

    Parameters
    ----------
    graph : array_like of shape (n, n)
        Symmetric, zeros and ones, zeros on the diagonal; n below 2^24, where float32 stops to count exactly.

    Raises
    ------
    SpecificationError
        If it is not; shows the first entry that is wrong.

    Notes
    -----
    Entry (u, v) of the square of the adjacency array is the number of common neighbours of u and v. Summed over the
    edges, both ways, it counts each triangle six times.
    """
    edges = check_adjacency("triangles", graph).astype(np.float32)
    common = edges @ edges
    closed = int(np.sum(common * edges, dtype=np.float64))
    np.fill_diagonal(common, 0.0)
    return TriangleCounts(len(edges), closed // 6, int(common.max(initial=0.0)))


@dataclass(frozen=True)
class _NoisyBound:
    """What the mechanism shares with its mutants; they replace one method each."""

    epsilon: float
    delta: float
    step: float = 1.0
    bound_step: float = 2.0**-3

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(0 < self.delta < 1, "a delta in (0, 1)", self.delta)
        for step in (self.step, self.bound_step):
            require_positive("step", step)
            require(step <= 1 and math.frexp(step)[0] == 0.5, "a power of two of at most 1 as step", step)

    def bound_sensitivity(self, nodes: int) -> int:
        """How far one edge is taken to move the local sensitivity: 1."""
        del nodes  # only a mutant looks at it
        return 1

    def offset(self, nodes: int) -> int:
        """What is added to the noisy local sensitivity, in lattice steps of the bound."""
        scale = self.bound_sensitivity(nodes) / self.epsilon
        return math.ceil(scale * math.log(1.0 / self.delta) / self.bound_step)

    def base(self, nodes: int) -> float:
        """Return the base of the noise of the bound, for one lattice step."""
        return base_for(self.epsilon, round(self.bound_sensitivity(nodes) / self.bound_step))

    def answer(self, of: TriangleCounts) -> float:
        """Return what the noise is added to: the number of triangles."""
        return float(of.triangles)

    def centre(self, of: TriangleCounts) -> int:
        """Return the bound without its noise, in lattice steps."""
        return round(of.sensitivity / self.bound_step) + self.offset(of.nodes)

    def bounds(self, of: TriangleCounts, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` bounds in lattice steps; int64 of shape (n,), some of them may be 0 or less."""
        return self.centre(of) + two_sided_geometric(self.base(of.nodes), n, rng)

    def is_answered(self, bounds: IntArray) -> BoolArray:
        """Whether there is an answer with such bounds; same shape."""
        return np.asarray(bounds > 0)

    def answers(self, of: TriangleCounts, bounds: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw one answer for each bound; float64 of shape (n,), NaN where there is none.

        Valid because: ``floor(E s)`` of a standard exponential E is geometric with ratio ``exp(-1/s)``, and the
        difference of two is two-sided geometric. Rounding in float64 moves no mass by more than a few times 2^-53 of
        the number itself, and what is added is a whole number, whose bits do not depend on the graph.
        """
        scale = np.maximum(bounds, 0) * (self.bound_step / (self.epsilon * self.step))
        up, down = np.floor(rng.standard_exponential((2, bounds.size)) * scale)
        noisy = self.answer(of) + (up - down) * self.step
        return np.asarray(np.where(self.is_answered(bounds), noisy, np.nan), dtype=np.float64)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,), multiples of the step or NaN."""
        require_draws(n)
        of = counts(data)
        return self.answers(of, self.bounds(of, n, rng), rng)

    def bound_law(self, of: TriangleCounts) -> tuple[IntArray, FloatArray]:
        """Values of the bound in lattice steps, and their probabilities; both of shape (m,).

        The noise is listed until at most 1e-18 of its mass is left on each side, and that is added to the ends.
        """
        noise = TwoSidedGeometricLaw(0, self.base(of.nodes))
        # P[Z > r] = a^-r / (a + 1), and a > 1.
        reach = math.ceil(-math.log(2.0 * NEGLECTED) / noise.log_a)
        z = np.arange(-reach, reach + 1)
        mass = np.exp(-noise.log_a * np.abs(z)) * ((noise.a - 1.0) / (noise.a + 1.0))
        mass[[0, -1]] = noise.a ** (1.0 - reach) / (noise.a + 1.0)  # P[Z >= r]
        return self.centre(of) + z, mass

    # ------------------------------------------------------------------------------- accuracy

    def expected_error(self, data: Dataset) -> float:
        """``E[max(bound, 0)] / epsilon``: the expected absolute error of Laplace noise, where "no answer" counts as 0.

        An upper bound on the lattice, where the error of a scale s is ``1 / sinh(1/s) < s`` steps.
        """
        bounds, mass = self.bound_law(counts(data))
        return float(mass @ np.maximum(bounds, 0)) * self.bound_step / self.epsilon

    def error_bound(self, data: Dataset, beta: float) -> float:
        """Error that is exceeded, or no answer given, with probability at most ``beta + delta / 2``, for LS >= 1.

        ``(LS + (ln(1/delta) + ln(1/beta)) / epsilon) ln(2/beta) / epsilon``, each of the three terms rounded up to its
        lattice.

        Valid because: the noise of the bound exceeds r steps with probability ``a^-r / (a + 1)``, at most beta/2 for
        ``a^-r <= beta``; that of the answer exceeds j steps in absolute value with probability
        ``2 exp(-j/s - 1/s) / (1 + exp(-1/s)) <= exp(-j/s)``, at most beta/2 for ``j >= s ln(2/beta)``, for every s that
        the bound allows; and a bound of at most 0 is below LS, for which the probability is delta/2. For LS = 0 it is
        at most delta.
        """
        require(0 < beta < 1, "a beta in (0, 1)", beta)
        of = counts(data)
        above = math.ceil(math.log(1.0 / beta) / math.log1p(self.base(of.nodes) - 1.0))
        scale = (self.centre(of) + above) * self.bound_step / (self.epsilon * self.step)
        return math.ceil(scale * math.log(2.0 / beta)) * self.step


@dataclass(frozen=True)
class NoisyLocalSensitivity(_NoisyBound):
    """Number of triangles plus noise scaled to a noisy bound on its local sensitivity; the bound stays hidden.

    Parameters
    ----------
    epsilon : float
        Claimed level; also the level at which the bound and, given a valid bound, the answer are released.
    delta : float
        Claimed delta, in (0, 1).
    step : float, default 1.0
        Lattice of the answers, a power of two of at most 1. The default is that of the count itself.
    bound_step : float, default 2**-3
        Lattice of the bound, likewise. The default rounds ln(1/delta)/epsilon up by at most an eighth of a triangle.

    Notes
    -----
    The bound is ``LS + Z h + ceil(ln(1/delta) / (epsilon h)) h`` with h the lattice of the bound and Z two-sided
    geometric of base ``exp(epsilon h)``. It is below LS with probability at most delta/2. If it is at most 0, which has
    probability at most ``delta exp(-epsilon LS) / (1 + exp(-epsilon h))``, the output is NaN, "no answer" (003 leaves
    open what happens; releasing the count would not be private).
    Otherwise the output is the number of triangles plus a whole number of steps g, two-sided geometric of base
    ``exp(epsilon g / bound)``: Laplace noise of scale bound / epsilon on the lattice.

    Both lattices are public, so the low-order bits of an output say nothing about the graph.
    """

    def masses(self, of: TriangleCounts) -> tuple[FloatArray, float]:
        """Probabilities of an answer that is 0, 1, .. steps above the count, shape (k,), and of none at all.

        The distribution is symmetric: the probabilities of answers below the count are the same. Exact but for
        rounding, below 1e-12 of each probability, and for at most 1e-18 of the mass of the bound and of the answer on
        each side, which counts for the outermost value that is listed.
        """
        bounds, mass = self.bound_law(of)
        answered = self.is_answered(bounds)
        return _mixture(_noise_log_base(self, bounds[answered]), mass[answered]), float(mass[~answered].sum())

    def law(self, data: Dataset) -> FiniteLaw:
        """Output distribution on a graph: two-sided geometric ones mixed over the bound; for its error see `masses`."""
        of = counts(data)
        above, none = self.masses(of)
        k = np.arange(-above.size + 1, above.size)
        outcomes, probabilities = (self.answer(of) + k * self.step).tolist(), np.concatenate([above[:0:-1], above])
        if none > 0.0:
            outcomes, probabilities = [*outcomes, math.nan], np.append(probabilities, none)
        return FiniteLaw(tuple(outcomes), probabilities)


def _noise_log_base(mechanism: _NoisyBound, bounds: IntArray) -> FloatArray:
    """Logarithm of the base of the answer's noise for bounds >= 0; infinite at 0, where there is no noise."""
    with np.errstate(divide="ignore"):
        return np.asarray(mechanism.epsilon * mechanism.step / (bounds * mechanism.bound_step), dtype=np.float64)


def _mixture(log_a: FloatArray, mass: FloatArray) -> FloatArray:
    """Mix two-sided geometric distributions at 0, 1, .. until `NEGLECTED` is left beyond, which the last one gets.

    ``P[Z = k] = tanh(log_a / 2) exp(-log_a k)`` and ``P[Z >= k] = exp(-log_a k) / (1 + exp(-log_a))``.
    """
    above_half = mass / (1.0 + np.exp(-log_a))
    quiet = np.isinf(log_a)
    finite = np.where(quiet, 1.0, log_a)  # any number: what has no noise is set apart

    def beyond(k: float) -> float:
        return float(np.where(quiet, float(k <= 0), np.exp(-finite * k)) @ above_half)

    high = 1.0
    while beyond(high) > NEGLECTED:
        high *= 2.0
    if high > 1.0:
        high = optimize.brentq(lambda k: beyond(k) / NEGLECTED - 1.0, high / 2.0, high, xtol=0.5)
    size = math.ceil(high) + 2  # the root is within half a step
    peak = mass * np.tanh(0.5 * finite)
    found = np.zeros(size)
    rows = max(1, _BLOCK // mass.size)
    for start in range(0, size, rows):
        k = np.arange(start, min(start + rows, size), dtype=np.float64)
        found[start : start + k.size] = np.where(quiet, 0.0, peak) @ np.exp(-np.outer(finite, k))
    found[0] += float(mass[quiet].sum())
    found[-1] = beyond(size - 1.0)
    return np.trim_zeros(found, "b")  # without noise there is only the first


def log_density(epsilon: float, delta: float, sensitivity: int, log_distance: float) -> float:
    """Logarithm of the density of the answer of the mechanism without lattices, at a distance from the count.

    Parameters
    ----------
    epsilon, delta : float
        Parameters of the mechanism.
    sensitivity : int
        Local sensitivity of the graph.
    log_distance : float
        Natural logarithm of the distance, which may be too small for a float.

    Notes
    -----
    The density at distance t is the integral over b > 0 of ``p(b) epsilon exp(-epsilon t / b) / (2 b)`` with p the
    density of the bound. As p(0) > 0, it grows like ``p(0) (epsilon / 2) ln(1/t)`` towards the count, while the density
    of a neighbour with another count is finite there. So the log-ratio is unbounded: the answer alone satisfies no pure
    level (catalogue 000_001_003, noisy_local_sensitivity_triangles).

    Gauss-Legendre over ln b, split at the kink of p; relative error below 1e-9.
    """
    centre = sensitivity + math.log(1.0 / delta) / epsilon
    # Below, exp(-epsilon t / b) is less than e^-50; above, p(b) is less than e^-50 of its peak.
    low, high = log_distance + math.log(epsilon / 50.0), math.log(centre + 50.0 / epsilon)
    # p(e^s) varies by a factor of e^(epsilon e^s) at most while s moves by 1.
    kink = math.log(centre)
    fine = min(1.0, 4.0 / (epsilon * math.exp(high)))
    start = max(low, kink - 8.0)
    parts = [gauss_legendre(np.array([start, max(start, kink), high]), fine)]
    if low < start:
        parts.append(gauss_legendre(np.array([low, start]), 0.5))
    s, w = (np.concatenate(side) for side in zip(*parts, strict=True))
    exponent = -epsilon * (np.abs(np.exp(s) - centre) + np.exp(log_distance - s))
    return math.log(0.25 * epsilon * epsilon * float(w @ np.exp(exponent)))


# --------------------------------------------------------------------------------- the bound shown


@dataclass(frozen=True)
class NoisyBoundPublished(_NoisyBound):
    """The bound is released with the answer: rows (bound, answer)."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n, 2), the second NaN where the bound is not positive."""
        require_draws(n)
        of = counts(data)
        bounds = self.bounds(of, n, rng)
        return np.stack([bounds * self.bound_step, self.answers(of, bounds, rng)], axis=1)

    def curve(self, first: TriangleCounts, second: TriangleCounts) -> LossCurve:
        """Privacy curve of (bound, answer) on two graphs with such counts; distributions of two numbers are not listed.

        For each bound the losses are those of two geometric distributions of one base, which `geometric_pair` lists,
        plus that of the bound. Exact but for rounding and for at most 1e-18 of the mass of the bound on each side,
        which counts for its outermost value, or as infinite loss.
        """
        (bounds, mass), (others, other_mass) = self.bound_law(first), self.bound_law(second)
        shift = round(abs(self.answer(first) - self.answer(second)) / self.step)
        both, at, of = np.intersect1d(bounds, others, return_indices=True)
        log_p, log_q = np.log(mass[at]), np.log(other_mass[of])
        log_a = _noise_log_base(self, np.maximum(both, 0))
        sides = [(log_p[both <= 0], log_q[both <= 0])]
        for k in np.flatnonzero(both > 0):
            answered = _shifted_curve(float(log_a[k]), shift)
            sides.append((log_p[k] + answered.log_p, log_q[k] + answered.log_q))
        p, q = (np.concatenate(side) for side in zip(*sides, strict=True))
        return grouped(p, q, float(np.delete(mass, at).sum()), float(np.delete(other_mass, of).sum()))


def _shifted_curve(log_a: float, shift: int) -> LossCurve:
    """Two-sided geometric distribution against itself, that many steps on."""
    if shift == 0:
        return LossCurve(np.zeros(1), np.zeros(1))
    return geometric_pair(TwoSidedGeometricLaw(0, math.exp(log_a)), shift)


# ------------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True)
class SensitivityOffsetDropped(NoisyLocalSensitivity):
    """The noisy local sensitivity as it is: below the true one nearly half of the time."""

    def offset(self, nodes: int) -> int:
        """Nothing."""
        del nodes
        return 0


@dataclass(frozen=True)
class LocalSensitivityDirectly(NoisyLocalSensitivity):
    """Noise scaled to the local sensitivity itself, without noise; the exact count where it is 0."""

    def centre(self, of: TriangleCounts) -> int:
        """Return the local sensitivity in lattice steps."""
        return round(of.sensitivity / self.bound_step)

    def bounds(self, of: TriangleCounts, n: int, rng: np.random.Generator) -> IntArray:
        """Return it `n` times."""
        del rng
        return np.full(n, self.centre(of))

    def bound_law(self, of: TriangleCounts) -> tuple[IntArray, FloatArray]:
        """A point."""
        return np.array([self.centre(of)]), np.ones(1)

    def is_answered(self, bounds: IntArray) -> BoolArray:
        """Always."""
        return np.ones(bounds.shape, dtype=np.bool_)


@dataclass(frozen=True)
class SensitivityOfNodes(_NoisyBound):
    """The local sensitivity is taken to move by as much as there are nodes."""

    def bound_sensitivity(self, nodes: int) -> int:
        """Return the number of nodes."""
        return max(nodes, 1)


@dataclass(frozen=True)
class OrderedTriangles(NoisyLocalSensitivity):
    """Every triangle is counted once for each order of its nodes."""

    def answer(self, of: TriangleCounts) -> float:
        """Return six times the number of triangles."""
        return 6.0 * of.triangles


MUTANTS = tabulate_mutants(
    Mutant(
        "offset_dropped",
        Twin(SensitivityOffsetDropped),
        None,
        "violation",
        "ln(1/delta)/epsilon is not added; shown by two hubs of a few nodes, where small bounds are the likeliest",
    ),
    Mutant(
        "local_sensitivity_used_directly",
        Twin(LocalSensitivityDirectly),
        unbounded,
        "violation",
        "the count is exact where LS = 0, and noisy on a neighbour with LS = 1",
    ),
    Mutant(
        "noisy_bound_published",
        Twin(NoisyBoundPublished),
        None,
        "violation",
        "(epsilon, delta) is claimed with the bound shown, which costs epsilon by itself: (2 epsilon, delta/2) holds",
    ),
    Mutant(
        "local_sensitivity_taken_as_n",
        Twin(SensitivityOfNodes),
        None,
        "benign",
        "noise and offset of the bound are n times as large: private, and useless",
    ),
    Mutant(
        "ordered_triangles",
        Twin(OrderedTriangles),
        None,
        "violation",
        "the answer moves by 6 LS, and the noise is scaled to LS",
    ),
)
