"""What the three entries of lecture 7 share: attributes of real persons, dataset families, errors of projections."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from auditor.audits.accuracy import Largest, Setting, Squared
from auditor.audits.accuracy.errors import ErrorOf
from auditor.claims import Draft, expectation
from auditor.datasets import Pair
from auditor.targets import Mechanism
from experiments.common import added, person, rand
from mechanisms.base.mechanism import FloatArray
from mechanisms.query_release.projections import ConvexBody, ProjectedMoments
from mechanisms.query_release.second_moments import NoisyMoments, SecondMoments, SignedHistogram

#: Yes-or-no attributes of a person of the RAND data: any visit, coinsurance, individual deductible plan, a payment
#: incentive of 6 or more, a medical limit of 6 or more, physical limitations, many chronic diseases, good health.
ATTRIBUTES = (
    ("mdvis", 1.0),
    ("lncoins", 0.1),
    ("idp", 0.5),
    ("lpi", 6.0),
    ("fmde", 6.0),
    ("physlm", 0.5),
    ("disea", 10.6),
    ("hlthg", 0.5),
)
#: Somebody with all of them moves all sums of products up: the sum of all outputs is the sufficient statistic.
_ALL = person(mdvis=5, lncoins=4, idp=1, lpi=7, fmde=7, physlm=1, disea=20, hlthg=1)
#: Level and delta at which the error is measured: noise of 3.73 d, the catalogue's.
EPSILON, DELTA = 1.0, 1e-5
#: Where the distribution of the error shows. A bound ``b c n sqrt(d)`` on the mean squared error says more than plain
#: noise, ``(c d)^2``, and than the answer 0, at most ``n^2``, for ``b c sqrt(d) < n < c d^1.5 / b``. On K, with b =
#: 2.355, that begins at d = 6 and is from 28 to 50 people at d = 10; on what relaxes K, with b = 4, it begins at d =
#: 17. K is enumerated up to d = 12, where the window is from 31 to 65 people: exponents are out of reach on K itself. n
#: = 4d in families of datasets: between n = c sqrt(d), below which nothing is known, and c d^1.5, above which plain
#: noise is as good.
ROWS = 4
#: Draws at which a claim that no draw fails is decided: 21.5 / -ln(0.9) = 204.
EVERY = {"smoke": 300, "standard": 2_000}
#: Constants of the bound on the mean squared error, 2 n times the expected width over d^2: ``2 sqrt(2 ln 2)`` for K,
#: whose width is that of 2^d normal variables of deviation d, and 4 for the nuclear ball, d times an operator norm.
HULL, RELAXED = 2.0 * math.sqrt(2.0 * math.log(2.0)), 4.0
#: The plot of errors at n = 4d.
FIGURE = "Error of projected second moments"
AXIS = "n sqrt(d), at n = 4d"
MEASURED = "root mean square error of an entry, in persons"


def one_more() -> Pair:
    """One more person in the data, who has all attributes."""
    return added("one more person, who has all attributes", _ALL)


@cache
def _signs(persons: int, attributes: int) -> FloatArray:
    """Attributes of the first persons, as signs."""
    return SecondMoments(attributes, ATTRIBUTES[:attributes]).signs(rand().head(persons))


def few_and_one_more(persons: int, attributes: int) -> Pair:
    """The first persons of the data as signs, with one more who has all attributes, and without."""
    rows = _signs(persons, attributes)
    return Pair(np.concatenate([rows, np.ones((1, attributes))]), rows, f"one more person than {persons}")


def projected(d: int, body: ConvexBody, size: float, tolerance: float = 0.01) -> ProjectedMoments:
    """The mechanism on rows of d signs at the level at which the error is measured."""
    return ProjectedMoments(NoisyMoments(SecondMoments(d), EPSILON, DELTA), body, size, tolerance)


def bound(d: float, people: float, constant: float = HULL) -> float:
    """Bound on the mean squared error of an entry, ``constant c n sqrt(d)`` with noise of deviation c d.

    It bounds the median as well: that of a convex function of normal noise is at most its mean (Kwapien 1994), and
    noise on whole numbers with a deviation of ten or more is normal to all digits. The gap of the projection adds up to
    ``tolerance c n sqrt(d)``, which is left out here: the claims are stricter than the theorem by that.
    """
    noise = NoisyMoments(SecondMoments(int(d)), EPSILON, DELTA).scale / d
    return constant * noise * people * math.sqrt(d)


def dimension(product: float) -> int:
    """D of a value of n sqrt(d) at n = 4d."""
    return round(math.cbrt(product / ROWS) ** 2)


# ----------------------------------------------------------------------------------------- families


def repeated(d: int, people: int, distinct: int) -> SignedHistogram:
    """So many people of so many distinct rows, equally often up to one.

    The rows are random, of a generator whose seed is arbitrary and fixed: they are the same whenever this is called.
    """
    rng, rows = np.random.default_rng([7, d, distinct]), np.zeros((0, d))
    while len(rows) < distinct:
        drawn = np.concatenate([rows, rng.choice(np.array([-1.0, 1.0]), (distinct, d))])
        # In the order in which they came.
        rows = drawn[np.sort(np.unique(drawn, axis=0, return_index=True)[1])][:distinct]
    share, left = divmod(people, distinct)
    return SignedHistogram(rows, np.where(np.arange(distinct) < left, share + 1.0, float(share)))


def independent(d: int, people: int) -> SignedHistogram:
    """So many people with independent fair signs, drawn once."""
    rows = np.random.default_rng([8, d, people]).choice(np.array([-1.0, 1.0]), (people, d))
    return SignedHistogram(rows, np.ones(people))


def worst_number(d: int) -> int:
    """Distinct rows that give about the largest error at n = 4d: a bit fewer than sqrt(d).

    Then the singular values of the data, ``4 d^2 / r``, are those of the noise, of up to ``2 c d^1.5``.
    """
    return max(1, round(0.8 * math.sqrt(d)))


def families(d: int, people: int) -> tuple[SignedHistogram, ...]:
    """One row, the worst number of rows and twice that, and independent rows."""
    worst = worst_number(d)
    return (*(repeated(d, people, r) for r in (1, worst, 2 * worst)), independent(d, people))


@dataclass(frozen=True)
class FamilyErrors:
    """Root mean square errors of the entries on several datasets at once, under the same noise.

    Noise on whole numbers does not depend on the data, so each column of the output is the error on its dataset.
    """

    released: ProjectedMoments

    def __call__(self, data: Sequence[SignedHistogram], n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` rows of errors; float64 of shape (n, datasets)."""
        noisy = self.released.noisy
        nobody = SignedHistogram(np.ones((1, noisy.query.dimension)), np.zeros(1))
        noise = noisy(nobody, n, rng)
        errors = []
        for one in data:
            truth = noisy.query(one)
            errors.append(np.sqrt(((self.released.project(truth + noise, one) - truth) ** 2).mean(axis=1)))
        return np.stack(errors, axis=1)


def errors_on(released: ProjectedMoments, data: Sequence[SignedHistogram]) -> Setting:
    """The largest error over several datasets."""
    return Setting(FamilyErrors(released), tuple(data), Largest(np.zeros(len(data))))


# ------------------------------------------------------------------------------------------- errors


@dataclass(frozen=True, eq=False)
class OneSidedError:
    """An error in units of its own, or by how much it is below a number; 0 where it is above that.

    Parameters
    ----------
    error : callable
        From outputs to errors.
    unit : float
        What they are divided by.
    most : float or None
        The number, for a bound from below.
    """

    error: ErrorOf
    unit: float
    most: float | None = None

    def __call__(self, outputs: FloatArray) -> FloatArray:
        """Errors of n outputs, shape (n,)."""
        found = np.asarray(self.error(outputs), dtype=np.float64) / self.unit
        return found if self.most is None else np.maximum(self.most - found, 0.0)


@dataclass(frozen=True, eq=False)
class RootMeanSquareEntry:
    """Root of the mean squared error of the entries.

    Parameters
    ----------
    truth : ndarray of shape (d^2,)
        y.
    """

    truth: FloatArray

    def __call__(self, outputs: FloatArray) -> FloatArray:
        """Errors of n outputs, shape (n,)."""
        return np.sqrt(Squared(self.truth)(outputs))


def between(
    case: str,
    mechanism: Mechanism,
    data: object,
    error: ErrorOf,
    unit: float,
    limits: tuple[float, float],
    *,
    draws: Mapping[str, int],
    note: str = "",
) -> Iterator[Draft]:
    """Claims that the mean of an error, in units of its own, is between two numbers.

    From below it is claimed that on average the error is so far below twice the larger number. That the difference is 0
    above it only makes it larger.
    """
    low, high = limits
    for name, most in ((case, None), (f"{case}_from_below", 2 * high)):
        at_most = high if most is None else most - low
        yield expectation(
            mechanism,
            data,
            OneSidedError(error, unit, most),
            at_most=at_most,
            case=name,
            draws=draws,
            detect=1.1 * at_most,
            derived=True,
            note=note,
        )


def squared_error(
    released: ProjectedMoments,
    data: SignedHistogram,
    at_most: float,
    by: Mechanism | None = None,
    draws: Mapping[str, int] = EVERY,
    **options: Any,
) -> Draft:
    """Claim of the mean squared error of an entry, or of that of another mechanism that releases the same moments."""
    error = Squared(released.noisy.query(data))
    return expectation(by or released, data, error, at_most=at_most, derived=True, draws=draws, **options)


@dataclass(frozen=True)
class NoisyAndProjectedMoments:
    """The noisy moments and the projected ones, side by side: float64 of shape (n, 2 d^2)."""

    released: ProjectedMoments

    def __call__(self, data: object, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs."""
        noisy = self.released.noisy(data, n, rng)
        return np.concatenate([noisy, self.released.project(noisy, data)], axis=1)


@dataclass(frozen=True)
class NoisyMomentsTwice(NoisyAndProjectedMoments):
    """The noisy moments twice."""

    def __call__(self, data: object, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs."""
        noisy = self.released.noisy(data, n, rng)
        return np.concatenate([noisy, noisy], axis=1)


@dataclass(frozen=True, eq=False)
class ProjectionGeometry:
    """Lengths and inner products of y, the noise and the projection, from what `NoisyAndProjectedMoments` gives.

    Parameters
    ----------
    released : ProjectedMoments
        What was run.
    truth : ndarray of shape (d^2,)
        y.
    """

    released: ProjectedMoments
    truth: FloatArray

    def parts(self, outputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Noise w and error, the projection minus y; each of shape (n, d^2)."""
        noisy, found = np.split(np.asarray(outputs, dtype=np.float64), 2, axis=1)
        return noisy - self.truth, found - self.truth

    def matrices(self, rows: FloatArray) -> FloatArray:
        """Rows of shape (n, d^2) as matrices."""
        return rows.reshape(len(rows), self.released.width, self.released.width)


@dataclass(frozen=True, eq=False)
class BodyWidth:
    """``max over the body of <z, w>``, from the noisy moments.

    Parameters
    ----------
    body : ConvexBody
        Of d x d matrices.
    truth : ndarray of shape (d^2,)
        y.
    """

    body: ConvexBody
    truth: FloatArray

    def __call__(self, outputs: FloatArray) -> FloatArray:
        """Errors of n outputs, shape (n,)."""
        d = math.isqrt(len(self.truth))
        return self.body.support((np.asarray(outputs, dtype=np.float64) - self.truth).reshape(-1, d, d))


class ErrorOverWidth(ProjectionGeometry):
    """``|y - yh|^2 / (n max over the body of <z, w>)``."""

    def __call__(self, outputs: FloatArray) -> FloatArray:
        """Errors of n outputs, shape (n,)."""
        noise, error = self.parts(outputs)
        width = self.released.size * self.released.body.support(self.matrices(noise))
        return np.asarray((error**2).sum(axis=1) / width)


class PrintedStep(ProjectionGeometry):
    """``|p - yt| / |y - p|``, p being the foot of the perpendicular from yt to the line through y and yh."""

    def __call__(self, outputs: FloatArray) -> FloatArray:
        """Errors of n outputs, shape (n,)."""
        noise, error = self.parts(outputs)
        along = np.abs((noise * error).sum(axis=1)) / np.linalg.norm(error, axis=1)
        across = np.sqrt(np.maximum((noise**2).sum(axis=1) - along**2, 0.0))
        return np.asarray(across / along)


class CorrectStep(ProjectionGeometry):
    """``|yh - y| / |p - y|``, less what the gap of the projection that was found, which is computed anew, explains.

    ``|yh - y|^2 <= <yh - y, w> + gap``, and the first term is ``|yh - y| |p - y|``.
    """

    def __call__(self, outputs: FloatArray) -> FloatArray:
        """Errors of n outputs, shape (n,)."""
        noise, error = self.parts(outputs)
        rest = noise - error
        largest = self.released.size * self.released.body.support(self.matrices(rest))
        gap = largest - (rest * (error + self.truth)).sum(axis=1)
        excess = np.maximum((error**2).sum(axis=1) - np.maximum(gap, 0.0), 0.0)
        return np.asarray(excess / (noise * error).sum(axis=1))
