"""Numbers that are measured at one value of a parameter: a quantile or mean of errors, a smallest parameter."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy.errors import ErrorSampler, check_setting
from auditor.audits.accuracy.smallest import Search, bisect_parameter
from auditor.audits.given_numbers import read_numbers
from auditor.errors import SpecificationError, check_number, check_positive
from auditor.evidence.bernoulli import order_limits

Array = NDArray[np.float64]

#: Replicates of the bootstrap: enough for the 2.5 % quantiles that are shown.
REPLICATES = 400


@dataclass(frozen=True)
class Point:
    """A measured number.

    Parameters
    ----------
    value : float
        Estimate.
    low, high : float
        Limits that hold with the probability that was asked for, both together.
    replicates : ndarray of shape (REPLICATES,)
        What the estimate might have been: from a bootstrap, where there are draws.
    exact : bool
        The number was computed, not estimated.
    """

    value: float
    low: float
    high: float
    replicates: Array
    exact: bool = False


@dataclass(frozen=True)
class Effort:
    """Draws, error probability and key of a measurement."""

    draw: ErrorSampler
    n: int
    alpha: float
    rng: np.random.Generator
    key: int


class Measure(ABC):
    """A quantity and how it is measured.

    ``subject`` is what the claim's function built for one value of the parameter.
    """

    @abstractmethod
    def __call__(self, subject: Any, effort: Effort) -> Point:
        """Measure; the limits miss the truth with probability at most the effort's alpha."""

    @abstractmethod
    def __str__(self) -> str:
        """In words."""


@dataclass(frozen=True)
class Quantile(Measure):
    """A quantile of the error, by default its median.

    Notes
    -----
    Valid because: the limits are order statistics, see `order_limits`; no distribution is assumed.
    """

    q: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < check_number("the quantile", self.q) < 1:
            raise SpecificationError(f"the quantile must be in (0, 1), got {self.q!r}")

    def __call__(self, subject: Any, effort: Effort) -> Point:
        """Order statistics of the errors."""
        n = effort.n
        errors = np.sort(effort.draw(check_setting(subject), n, effort.key))
        low, high = order_limits(n, self.q, effort.alpha)
        rank = min(max(math.ceil(self.q * n), 1), n) - 1
        # The quantile of a resampled set is the draw whose rank is about Beta distributed.
        ranks = np.minimum((effort.rng.beta(rank + 1, n - rank, REPLICATES) * n).astype(int), n - 1)
        return Point(
            float(errors[rank]),
            float(errors[low]) if low >= 0 else 0.0,
            float(errors[high]) if high < n else math.inf,
            errors[ranks],
        )

    def __str__(self) -> str:
        return "median error" if self.q == 0.5 else f"{100 * self.q:g} % quantile of the error"


@dataclass(frozen=True)
class Mean(Measure):
    """The mean of an error of at most ``bound``.

    Notes
    -----
    Valid because: the limits are empirical Bernstein bounds (Maurer and Pontil 2009, theorem 4), which hold for
    independent draws in [0, bound] with probability 1 - alpha, half of it on either side. An error above the bound is
    refused.
    """

    bound: float

    def __post_init__(self) -> None:
        check_positive("the bound of errors", self.bound)

    def __call__(self, subject: Any, effort: Effort) -> Point:
        """Mean of the errors."""
        n = effort.n
        errors = effort.draw(check_setting(subject), n, effort.key)
        if errors.max() > self.bound:
            raise SpecificationError(f"an error of {errors.max():.6g} is above the stated bound of {self.bound:.6g}")
        mean, log = float(errors.mean()), math.log(4 / effort.alpha)
        variance = float(errors.var(ddof=1)) if n > 1 else self.bound**2
        width = math.sqrt(2 * variance * log / n) + 7 * self.bound * log / (3 * max(n - 1, 1))
        replicates = mean + effort.rng.standard_normal(REPLICATES) * math.sqrt(variance / n)
        return Point(mean, max(mean - width, 0.0), mean + width, np.maximum(replicates, np.finfo(float).tiny))

    def __str__(self) -> str:
        return "mean error"


def _explain_undecided(steps: Sequence[Mapping[str, Any]], draws: int) -> str:
    """Say that a search had too few draws; empty where it decided at each value."""
    undecided = [f"{step['value']:g}" for step in steps if step["decision"] == "undecided"]
    return f": {draws:,} draws are too few to decide at {', '.join(undecided)}" if undecided else ""


@dataclass(frozen=True)
class Smallest(Measure):
    """Smallest value of a second parameter with rare large errors.

    The error exceeds the setting's limit with probability <= beta.

    The claim's function builds, for each value of the first parameter, a function from the second one to a `Setting`.
    See `Search` for the parameters.
    """

    beta: float
    low: float
    high: float
    resolution: float = 1.05
    integer: bool = True
    largest: bool = False

    def __post_init__(self) -> None:
        _ = self.search  # here an error names the entry

    @property
    def search(self) -> Search:
        """The search over the second parameter."""
        return Search(self.beta, self.low, self.high, self.resolution, self.integer, self.largest)

    def __call__(self, subject: Any, effort: Effort) -> Point:
        """Bisect over the second parameter."""
        found = bisect_parameter(subject, self.search, effort.draw, effort.n, effort.alpha, effort.key)
        low, high = found.low, found.high
        if not (low > 0 and math.isfinite(high)):
            raise SpecificationError(
                f"the {'largest' if self.largest else 'smallest'} value that works is not between {self.low:g} and "
                f"{self.high:g}{_explain_undecided(found.steps, effort.n)}"
            )
        replicates = found.replicates(self.beta, effort.rng, REPLICATES)
        return Point(found.value(self.beta), low, high, replicates)

    def __str__(self) -> str:
        return f"{'largest' if self.largest else 'smallest'} value that works"


@dataclass(frozen=True)
class Exactly(Measure):
    """A number that is computed exactly.

    The claim's function returns it, and nothing is drawn.

    Parameters
    ----------
    what : str
        In words.
    formula : bool
        It is the value of the document's own formula, such as a sample size, and no quantity of an exact distribution:
        a claim says how the formula grows, and nothing is measured.
    """

    what: str = "exact value"
    formula: bool = False

    def __call__(self, subject: Any, effort: Effort) -> Point:
        """The number itself."""
        del effort
        value = float(read_numbers("an exact number must be one", subject).reshape(()))
        return Point(value, value, value, np.full(REPLICATES, value), exact=True)

    def __str__(self) -> str:
        return self.what
