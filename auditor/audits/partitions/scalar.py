"""Cells of distributions on numbers that have a distribution function."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.audits.partitions.partition import Cells, FloatArray, IntArray, Merge, View
from auditor.errors import SpecificationError, check_positive
from auditor.privacy.laws import TwoSidedGeometricLaw
from auditor.targets.outputs import Batch, read_column

#: Cells of equal probability, from fine to coarse: a narrow spike shows in the fine ones, a wrong scale with fewest
#: draws in the coarse ones. Each divides the one before, so that the coarse cells are unions of fine ones.
RESOLUTIONS = (256, 32, 8)
#: A coarser partition is looked at if it has at most this part of the cells of the one before: on a coarse lattice some
#: differ by a cell or two, and each costs a share of the evidence.
COARSER = 0.75
#: Beyond the outermost cells, tails are cut where their probability is a quarter of that of the cut before, down to
#: this: a part in a million that is missing or too many shows after some millions of draws.
TAIL = 1e-6
#: Residues of lattice points: noise that is drawn on a coarser lattice than stated, by a factor of up to 64, falls on
#: few of them; larger factors are wider than the fine cells where the noise is worth some hundred steps.
MODULUS = 64
#: A lattice distribution whose points all have less than this probability has its residues looked at: otherwise the
#: points are cells already.
FINE = 1.0 / MODULUS
#: Lattice points that are summed over for residues where there is no formula: 0.2 s, more than a discrete Gaussian has.
POINTS = 1 << 22
#: Added to every probability that is a difference of distribution functions: more than its rounding error of about
#: 2e-16, so that none is understated; what the sum gains is far below the error that the null is widened by.
ROUNDING = 1e-15
#: Outputs of continuous distributions may be rounded to multiples of this: cells end half-way between two.
GRAIN = 2.0**-20
#: The grain of a distribution whose central half is narrower than `GRAIN`, as a part of that half: cells as wide as
#: `GRAIN` would hold all of it, and no other scale would show.
NARROW = 2.0**-20
#: Distances of doubles at its centre that the central half of a continuous distribution has at least. The rounding of
#: outputs moves the ends of cells by half a distance, which is worth less than a nat in 10^8 draws.
DOUBLES = 2.0**12
#: Steps from 0 up to which all lattice points, and the middles between them, are doubles.
_FARTHEST = 2.0**52
#: By how much a distribution function may decrease from one end of a cell to the next, by rounding.
DECREASE = 1e-12


#: Units in the last place by which a computed lattice point may be off: the step's own rounding, that of the product,
#: and that of the sum with a centre, half a unit each, the first two of a number up to twice as large; and as much
#: again for ``k * step``, with which it is compared.
ULPS = 5


class Scalar(Protocol):
    """A distribution on numbers, or on multiples of ``step``."""

    @property
    def loc(self) -> float:
        """Centre, in steps for a lattice distribution."""
        ...

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Probability of a value at most x."""
        ...


def check_scalar(law: Scalar, name: str) -> None:
    """Check a distribution's centre, step and cdf.

    Parameters
    ----------
    law : Scalar
        The stated distribution.
    name : str
        What it is the distribution of, for the error.

    Raises
    ------
    SpecificationError
        If the centre is no finite number, the step no positive one, or the function does not take arrays.
    """
    loc, step = getattr(law, "loc", None), getattr(law, "step", None)
    if isinstance(loc, bool) or not isinstance(loc, int | float | np.integer | np.floating) or not math.isfinite(loc):
        raise SpecificationError(f"the distribution of {name} needs loc, a finite number: its centre; got {loc!r}")
    if step is not None:
        check_positive(f"the step of the distribution of {name}", step)
    try:
        found = np.asarray(law.cdf(np.array([float(loc), float(loc) + 1.0])), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SpecificationError(f"the cdf of {name} must take an array of numbers: {error}") from None
    if found.shape != (2,):
        raise SpecificationError(f"the cdf of {name} must take an array: of 2 numbers it gives shape {found.shape}")


def _differences(below: FloatArray, edges: FloatArray, name: str) -> FloatArray:
    """Probabilities of cells, from those below their ends; a function that decreases has none."""
    mass = np.diff(below)
    wrong = np.flatnonzero(~(mass >= -DECREASE))
    if len(wrong):
        ends = [-math.inf, *edges.tolist(), math.inf]
        i = int(wrong[0])
        raise SpecificationError(
            f"the cdf of {name} must grow from 0 to 1: it is {below[i]:.6g} at {ends[i]:.6g} and {below[i + 1]:.6g} at "
            f"{ends[i + 1]:.6g}"
        )
    return np.maximum(mass, 0.0)


def _targets(resolution: int) -> list[float]:
    """Probabilities below the ends of cells: equal ones, and a ladder into both tails."""
    equal = [j / resolution for j in range(1, resolution)]
    steps = math.floor(math.log(1 / (resolution * TAIL), 4))
    ladder = [4.0**-i / resolution for i in range(1, steps + 1)]
    return [*ladder, *equal, *(1 - u for u in ladder)]


def _quantiles(law: Scalar, centre: float, targets: FloatArray, within: float = 0.0) -> FloatArray:
    """Smallest numbers at which the distribution function reaches the targets, by bisection; all arrays (k,).

    They are too large by at most ``within``.
    """
    reach = 1.0
    while law.cdf(centre - reach) >= targets.min() or law.cdf(centre + reach) < targets.max():
        reach *= 2.0
        if not math.isfinite(reach):
            raise SpecificationError(f"the distribution function does not go from 0 to 1: {law!r}")
    low, high = np.full(len(targets), centre - reach), np.full(len(targets), centre + reach)
    # 200 halvings reach neighbouring floats from any bracket, but for centres beside 0, where more digits say nothing.
    for _ in range(200):
        if (high - low <= within).all():
            break
        middle = 0.5 * (low + high)
        reached = law.cdf(middle) >= targets
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def _intervals(
    law: Scalar, name: str, edges_of: Callable[[FloatArray], FloatArray], words: Callable[[float, float], str]
) -> tuple[View, FloatArray, tuple[Merge, ...]]:
    """Cells between the edges that ``edges_of`` places at quantiles, all resolutions at once."""
    nested = [edges_of(np.array(_targets(r))) for r in RESOLUTIONS]
    # Without ladders: few enough for the joint cells of two coordinates.
    nested.append(edges_of(np.arange(1, RESOLUTIONS[-1]) / RESOLUTIONS[-1]))
    edges = np.unique(np.concatenate(nested))
    below = np.concatenate([[0.0], law.cdf(edges), [1.0]])
    view = View(
        name, _differences(below, edges, name) + ROUNDING, _labels(edges, words), f"{name} is not a finite number"
    )
    merges: list[Merge] = []
    size = len(edges) + 1
    for own in nested[1:]:
        kept = np.isin(edges, own)
        if kept.sum() + 1 <= COARSER * size:
            size = int(kept.sum()) + 1
            # Cell i lies between edges i - 1 and i, so it is behind as many kept edges as there are before edge i.
            index = np.concatenate([[0], np.cumsum(kept)])
            merges.append(Merge(index.astype(np.int64), _labels(edges[kept], words)))
    return view, edges, tuple(merges)


def _labels(edges: FloatArray, words: Callable[[float, float], str]) -> tuple[str, ...]:
    return tuple(words(a, b) for a, b in itertools.pairwise([-math.inf, *edges.tolist(), math.inf]))


def continuous_cells(law: Scalar, name: str, rounding: float | None) -> Cells:
    """Cells of a continuous distribution.

    Outputs may be multiples of ``rounding``.

    Parameters
    ----------
    law : Scalar
        The stated distribution.
    name : str
        What is looked at, see `View`.
    rounding : float or None
        Step of the outputs' lattice; None if they are not rounded.
    """
    grain = _find_grain(law, name) if rounding is None else rounding

    def edges_of(targets: FloatArray) -> FloatArray:
        return (np.floor(_quantiles(law, float(law.loc), targets) / grain) + 0.5) * grain

    def words(a: float, b: float) -> str:
        return (
            f"{name} < {b:.6g}"
            if a == -math.inf
            else f"{name} > {a:.6g}"
            if b == math.inf
            else _format_interval(a, name, b)
        )

    view, edges, merges = _intervals(law, name, edges_of, words)
    cells = len(view.labels)
    if rounding is not None:
        view = View(name, view.probabilities, view.labels, f"{name} is not a multiple of {rounding:.6g}")

    def index(batch: Batch) -> IntArray:
        values = read_column(batch)
        good = np.isfinite(values) if rounding is None else _whole_steps(values, rounding, float(law.loc))[1]
        return np.where(good, np.searchsorted(edges, values), cells)

    return Cells(view, index, merges)


def _find_grain(law: Scalar, name: str) -> float:
    """Step of the lattice that outputs may be on.

    It is `GRAIN`, and `NARROW` of the central half of the probability where that is narrower than `GRAIN`.

    Valid because: any ends of cells are, of outputs that are not rounded. Those that are, to `GRAIN`, are nearly all
    one number if the distribution is as narrow as that, and do not follow it.

    Raises
    ------
    SpecificationError
        If the central half is narrower than `DOUBLES` distances of doubles, which are no continuous numbers then.
    """
    centre = float(law.loc)
    low, high = _quantiles(law, centre, np.array([0.25, 0.75])).tolist()
    width, distance = high - low, math.ulp(max(abs(low), abs(high)))
    if not width:  # half of the probability on one number
        return GRAIN
    if width < DOUBLES * distance:
        raise SpecificationError(
            f"the central half of the distribution of {name} is {width:.6g} wide at {centre:.6g}, where doubles are "
            f"{distance:.6g} apart: their rounding shows; state a distribution nearer to 0, or the rounding of outputs"
        )
    return GRAIN if width >= GRAIN else max(2.0 ** math.floor(math.log2(NARROW * width)), 2.0**-1000)


def _format_interval(a: float, name: str, b: float) -> str:
    return f"{a:.6g} < {name} < {b:.6g}"


def _whole_steps(values: FloatArray, step: float, around: float) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Values in steps, rounded, and which are finite and that many steps; ``around`` is the centre of the distribution.

    Exactly so many where the step is a power of 2. Otherwise lattice points are no doubles: k * step, k / 10 and
    around + z * step differ by the rounding of their parts, each by half a unit in the last place of the largest at
    most. So `ULPS` of these are allowed. What the last bits tell is a question of privacy, for level L1.
    """
    with np.errstate(invalid="ignore"):
        steps = np.rint(values / step)
        near = steps * step == values
        if math.frexp(step)[0] != 0.5:
            units = np.spacing(np.maximum(np.abs(values), abs(around)))
            near |= np.abs(steps * step - values) <= np.minimum(ULPS * units, 0.25 * step)
    return steps, np.isfinite(steps) & near


def lattice_cells(law: Scalar, name: str, step: float) -> tuple[Cells, ...]:
    """Cells of a distribution on the multiples of a step.

    Ranges of them, and, where steps are small, residues.

    Parameters
    ----------
    law : Scalar
        The stated distribution.
    name : str
        What is looked at, see `View`.
    step : float
        Step of the lattice, positive.

    Raises
    ------
    SpecificationError
        If points are `_FARTHEST` and more steps from 0: as doubles, which is how outputs are read, they are not told
        apart, and a right sampler would seem to miss some.
    """
    centre = float(law.loc) * step

    def edges_of(targets: FloatArray) -> FloatArray:
        points = np.rint(_quantiles(law, centre, targets, step / 4) / step)
        if (farthest := float(np.abs(points).max())) >= _FARTHEST:
            raise SpecificationError(
                f"the distribution of {name} lies {farthest:.6g} steps of {step:.6g} from 0, where doubles do not tell "
                "neighbouring steps apart: state a distribution nearer to 0"
            )
        # Below the lowest too: a point that has nearly all the probability is a cell of its own.
        return np.unique(np.concatenate([points + 0.5, [points.min() - 0.5]])) * step

    def words(a: float, b: float) -> str:
        low, high = a + 0.5 * step, b - 0.5 * step
        if a == -math.inf:
            return f"{name} <= {high:.8g}"
        if b == math.inf:
            return f"{name} >= {low:.8g}"
        return f"{name} = {low:.8g}" if high - low < 0.5 * step else f"{low:.8g} <= {name} <= {high:.8g}"

    view, edges, merges = _intervals(law, name, edges_of, words)
    view = View(name, view.probabilities, view.labels, f"{name} is not a multiple of {step:.6g}")
    cells = len(view.labels)

    def index(batch: Batch) -> IntArray:
        values = read_column(batch)
        return np.where(_whole_steps(values, step, centre)[1], np.searchsorted(edges, values), cells)

    ranges = Cells(view, index, merges)
    largest = float(np.max(law.cdf(edges + step) - law.cdf(edges)))  # of the points behind the edges
    residues = _residues(law, step, centre) if largest < FINE else None
    if residues is None:
        return (ranges,)
    return ranges, _residue_cells(residues, name, step, centre)


def _residue_cells(probabilities: FloatArray, name: str, step: float, centre: float) -> Cells:
    def labels(modulus: int) -> tuple[str, ...]:
        return tuple(f"{name} is {r} modulo {modulus}, in steps of {step:.6g}" for r in range(modulus))

    def index(batch: Batch) -> IntArray:
        steps, good = _whole_steps(read_column(batch), step, centre)
        # The remainder of a float is exact, and beyond 2^53 the float is all that there is.
        return np.where(good, np.mod(np.where(good, steps, 0.0), MODULUS), MODULUS).astype(np.int64)

    view = View(name, probabilities, labels(MODULUS), f"{name} is not a multiple of {step:.6g}")
    # Modulo 8 and 2: a lattice that is too coarse by a small factor shows there with fewest draws.
    return Cells(view, index, tuple(Merge(np.arange(MODULUS) % m, labels(m)) for m in (8, 2)))


def _residues(law: Scalar, step: float, centre: float) -> FloatArray | None:
    """Probabilities of the residues of lattice points modulo `MODULUS`; None if they cost too much."""
    if isinstance(law, TwoSidedGeometricLaw):
        # Sum over j of a^-|r + j m|, for r from 0 to m - 1, times (a - 1) / (a + 1).
        r = np.arange(MODULUS)
        both = np.exp(-law.log_a * r) + np.exp(-law.log_a * (MODULUS - r))
        mass = both / -math.expm1(-law.log_a * MODULUS) * math.expm1(law.log_a) / (law.a + 1.0)
        return np.asarray(np.roll(mass, law.loc % MODULUS) + ROUNDING, dtype=np.float64)
    # Half the largest sum of rounding errors is left out in each tail.
    ends = np.rint(_quantiles(law, centre, np.array([ROUNDING, 1 - ROUNDING]), step / 4) / step)
    if ends[1] - ends[0] > POINTS:
        return None
    points = np.arange(ends[0], ends[1] + 2)
    below = law.cdf((points - 0.5) * step)
    below[0], below[-1] = 0.0, 1.0
    mass = np.bincount(np.mod(points[:-1], MODULUS).astype(np.int64), np.diff(below), MODULUS)
    return np.asarray(mass + ROUNDING, dtype=np.float64)
