"""The smallest parameter that works, by a stochastic bisection."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.audits.accuracy.base import CHUNKS, Theorem, measured_again
from auditor.audits.accuracy.errors import ErrorSampler, Setting, check_setting, find_failures
from auditor.audits.accuracy.failure import HighProbability
from auditor.audits.context import Question
from auditor.audits.finish import Conclusion, finish_audit, labels_of
from auditor.audits.independence import Independence
from auditor.audits.loop import ChunkLoop
from auditor.audits.privacy_loop import Settings
from auditor.audits.summary import describe_target
from auditor.audits.verdict import decide_verdict, describe_missed
from auditor.errors import SpecificationError, check_number
from auditor.evidence.bernoulli import find_detectable, lower_limit, upper_limit
from auditor.results import AuditResult, Verdict, usual_level
from auditor.targets import source_hash

Array = NDArray[np.float64]

#: Part of the draws that are left that a value may use. Values near the crossing use all of theirs, and there are a few
#: of them; arbitrary.
PART = 0.25

Build = Callable[[Any], Setting]
#: The side to which a theorem's value is rounded, of a largest value that works or not: there it still says less.
_SIDE = {False: "up", True: "down"}


@dataclass(frozen=True)
class Search:
    """A search for where the failure rate crosses ``beta``.

    A failure is an error above the setting's limit.

    Parameters
    ----------
    beta : float
        Allowed probability of failure.
    low, high : float
        Range of the parameter, 0 < low < high.
    resolution : float
        The search ends when it knows the value up to this factor, above 1.
    integer : bool
        The parameter is an integer.
    largest : bool
        Small values work, and the largest one is sought: a capacity.
    """

    beta: float
    low: float
    high: float
    resolution: float = 1.05
    integer: bool = True
    largest: bool = False

    def __post_init__(self) -> None:
        for name in ("beta", "low", "high", "resolution"):
            check_number(name, getattr(self, name))
        if not 0 < self.beta < 1:
            raise SpecificationError(f"beta must be in (0, 1), got {self.beta!r}")
        if not 0 < self.low < self.high < math.inf:
            raise SpecificationError(f"the range must have 0 < low < high, got {self.low!r} and {self.high!r}")
        if not self.resolution > 1:
            raise SpecificationError(f"resolution must be above 1, got {self.resolution!r}")
        if self.ends[0] > self.ends[1]:
            raise SpecificationError(f"there is no integer from {self.low!r} to {self.high!r}")

    @property
    def evaluations(self) -> int:
        """Largest number of values that are tried.

        Both ends, and a bisection on the logarithm from either side of the undecided.
        """
        halvings = math.log2(max(math.log(self.high / self.low) / math.log(self.resolution), 1.0))
        return 2 + 2 * math.ceil(halvings)

    @property
    def ends(self) -> tuple[float, float]:
        """Ends of the range, integers where the parameter is one."""
        return (float(math.ceil(self.low)), float(math.floor(self.high))) if self.integer else (self.low, self.high)

    def between(self, a: float, b: float) -> float | None:
        """Geometric mean of a < b, if there is room.

        None if they are closer than the resolution, or than integers can be.

        Parameters
        ----------
        a, b : float
            Values of the parameter, positive.
        """
        if b <= a * self.resolution:
            return None
        middle = math.sqrt(a * b)
        if not self.integer:
            return middle
        rounded = float(round(middle))
        return rounded if a < rounded < b else (a + 1 if a + 1 < b else None)


@dataclass(frozen=True)
class Decision:
    """Failures among draws at one value, with limits.

    The limits are those of the failure rate.

    ``words`` is "works", "fails" or "undecided".
    """

    count: int
    n: int
    lower: float
    upper: float
    words: str


def decide_setting(
    setting: Setting, draw: ErrorSampler, draws: int, beta: float, alpha: float, *key: str | int
) -> Decision:
    """Draw until the failure rate's side of beta is certain.

    It ends at the budget, too.

    Parameters
    ----------
    setting : Setting
        Where to draw; its ``at_most`` says what a failure is.
    draw : ErrorSampler
        Makes the draws.
    draws : int
        Budget.
    beta : float
        Allowed probability of failure.
    alpha : float
        Probability, at most, of a wrong decision.
    *key : str or int
        Keys the draws.

    Raises
    ------
    SpecificationError
        If the setting has no ``at_most``.

    Notes
    -----
    Valid because: the limits are e-process limits at alpha / 2 each, which hold at all times together, so that the
    decision is wrong with probability at most alpha, whenever it is taken.
    """
    loop, count = ChunkLoop(CHUNKS, draws), 0
    lower, upper = 0.0, 1.0
    for part in loop:
        count += int(find_failures(draw(setting, loop.take(), *key, part), setting.at_most).sum())
        lower = max(lower, lower_limit(count, loop.used, alpha / 2))
        upper = min(upper, upper_limit(count, loop.used, alpha / 2))
        if not lower <= beta < upper:
            break
    return Decision(
        count, loop.used, lower, upper, "fails" if lower > beta else "works" if upper <= beta else "undecided"
    )


@dataclass
class SearchPath:
    """Values tried by a bisection, and its interval.

    Attributes
    ----------
    low, high : float
        Interval of the value that is sought: certified values, or 0 and infinity where none was.
    undecided : list of float
        Values between them at which the failure rate is too close to beta for the budget.
    steps : list of dict
        Each value that was tried, with its failures, draws and decision.
    contradicted : bool
        A larger value is certified to be too small than one that is certified to be too large; ``low`` and ``high`` are
        then exchanged, so that they hold all that was tried between them.
    """

    low: float = 0.0
    high: float = math.inf
    undecided: list[float] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    contradicted: bool = False

    def value(self, beta: float) -> float:
        """Estimate of the value at which the rate crosses beta.

        It is where a line through the logits of the failure rates, between the limits, crosses.
        """
        return float(self.crossings(beta, np.array([step["failures"] for step in self.near()], float)[:, None])[0])

    def replicates(self, beta: float, rng: np.random.Generator, count: int) -> Array:
        """Bootstrap replicates of the estimate.

        The failures at each value are drawn again, binomially.

        Parameters
        ----------
        beta : float
            Allowed probability of failure, in (0, 1).
        rng : numpy.random.Generator
            Of the replicates.
        count : int
            Number of replicates.

        Returns
        -------
        ndarray of shape (count,)
            Values of the parameter.
        """
        near = self.near()
        n = np.array([step["draws"] for step in near])
        rates = np.array([step["failures"] for step in near]) / n
        return self.crossings(beta, rng.binomial(n[:, None], rates[:, None], (len(near), count)).astype(float))

    def near(self) -> list[dict[str, Any]]:
        """The values from one limit to the other."""
        return [step for step in self.steps if self.low <= step["value"] <= self.high]

    def crossings(self, beta: float, failures: Array) -> Array:
        """Estimates from nearby values' failures, shape (n_values, n_replicates).

        Parameters
        ----------
        beta : float
            Allowed probability of failure, in (0, 1).
        failures : ndarray of shape (n_values, n_replicates)
            Number of failures at each value of `near`.

        Returns
        -------
        ndarray of shape (n_replicates,)
            Values of the parameter, within the interval.
        """
        near = self.near()
        x = np.log([step["value"] for step in near])[:, None]
        n = np.array([step["draws"] for step in near], float)[:, None]
        rate = (failures + 0.5) / (n + 1.0)  # half a failure and half a success: no infinite logits
        y, weights = special.logit(rate), n * rate * (1 - rate)
        mean_x, mean_y = ((weights * v).sum(axis=0) / weights.sum(axis=0) for v in (x, y))
        spread = (weights * (x - mean_x) ** 2).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (weights * (x - mean_x) * (y - mean_y)).sum(axis=0) / spread
            crossing = mean_x + (special.logit(beta) - mean_y) / slope
        crossing = np.where(np.isfinite(crossing), crossing, mean_x)
        low, high = (math.log(self.low) if self.low > 0 else x.min()), min(math.log(self.high), x.max())
        estimates: Array = np.exp(np.clip(crossing, low, high))
        return estimates


def bisect_parameter(
    build: Build, search: Search, draw: ErrorSampler, draws: int, alpha: float, *key: str | int
) -> SearchPath:
    """Find where the failure rate crosses beta.

    Parameters
    ----------
    build : callable
        From a value of the parameter to the setting there.
    search : Search
        What is sought.
    draw : ErrorSampler
        Draws errors.
    draws : int
        Budget; each value may use a quarter of what is left, of which those far from the crossing need little.
    alpha : float
        Probability, at most, that the interval does not hold the value that is sought.

    Notes
    -----
    Valid because: each decision is wrong with probability at most alpha over the number of values that may be tried,
    which is fixed beforehand (see `decide_setting`), and each value has separate draws. With a failure rate that is
    monotone in the parameter, which is assumed, the value that is sought lies between certified ones. Where the rate is
    so close to beta that the budget does not decide, the search goes on from both sides.
    """
    found, share = SearchPath(), alpha / search.evaluations

    def place(value: float) -> None:
        setting = check_setting(build(int(value) if search.integer else value))
        left = draws - sum(step["draws"] for step in found.steps)
        budget = max(math.ceil(PART * left), CHUNKS.first)
        decision = decide_setting(setting, draw, budget, search.beta, share, *key, len(found.steps))
        found.steps.append(
            {"value": value, "failures": decision.count, "draws": decision.n, "decision": decision.words}
        )
        if decision.words == "undecided":
            found.undecided.append(value)
        elif (decision.words == "works") == search.largest:
            found.low = max(found.low, value)
        else:
            found.high = min(found.high, value)
        found.undecided = [v for v in found.undecided if found.low < v < found.high]

    first, last = search.ends
    place(first)
    place(last)
    # Between a value that is too small (or undecided) and one that is too large (or undecided) there is a crossing.
    while found.low < last and found.high > first and len(found.steps) < search.evaluations:
        low, high = max(found.low, first), min(found.high, last)
        inner = sorted(found.undecided)
        gaps = [(low, inner[0]), (inner[-1], high)] if inner else [(low, high)]
        gaps.sort(key=lambda gap: gap[0] / gap[1])
        value = next((v for v in (search.between(*gap) for gap in gaps) if v is not None), None)
        if value is None:
            break
        place(value)
    if found.low > found.high:
        found.low, found.high, found.contradicted = found.high, found.low, True
    return found


@dataclass(frozen=True)
class SmallestParameter(Theorem):
    """At a theorem's parameter, large errors are rare.

    The error exceeds the setting's limit with probability at most beta.

    Parameters
    ----------
    parameter : str
        Name of the parameter.
    claimed : float
        The theorem's value of it.
    search : Search
        Where the smallest (or largest) value that works is sought.
    """

    parameter: str
    claimed: float
    search: Search

    notion: ClassVar[str] = "smallest parameter"

    def __post_init__(self) -> None:
        claimed, search = self.claimed, self.search
        if isinstance(claimed, bool) or not isinstance(claimed, int | float | np.integer | np.floating):
            raise SpecificationError(f"the claimed {self.parameter} must be a number, got {claimed!r}")
        if not 0 < claimed < math.inf:
            raise SpecificationError(f"the claimed {self.parameter} must be a finite number above 0, got {claimed!r}")
        if search.integer and claimed != int(claimed):  # a value that is rounded down is not the one that is claimed
            raise SpecificationError(
                f"the claimed {self.parameter} must be an integer, got {claimed!r}: round it {_SIDE[search.largest]}, "
                "or set integer=False"
            )

    @property
    def symbol(self) -> str:  # type: ignore[override]
        """Name of the parameter."""
        return self.parameter

    @property
    def level(self) -> float:
        """The theorem's value."""
        return float(self.claimed)

    def parameters(self) -> dict[str, Any]:
        """The theorem's value, and beta."""
        return {self.parameter: self.claimed, "beta": self.search.beta}

    def __str__(self) -> str:
        return f"{self.parameter} = {self.claimed:,.6g} suffices for a failure rate ≤ {self.search.beta:g}"

    def place(self, subject: Any) -> Setting:
        """Where the theorem's own value is."""
        return check_setting(subject(int(self.claimed) if self.search.integer else self.claimed))

    def trial(self, subject: Any) -> tuple[Theorem, Any]:
        """The failure rate at the theorem's value."""
        setting = self.place(subject)
        return HighProbability(setting.at_most, self.search.beta), setting

    def audit(self, subject: Any, settings: Settings, question: Question) -> AuditResult:
        """Check that the theorem's value works, and bisect.

        ``subject`` builds a setting for each value.

        See `Theorem.audit`.

        Notes
        -----
        Valid because: "deviation" is returned only if the theorem's own value was certified to fail, by
        `decide_setting` at half of alpha, and again if the draws of any value looked dependent, see
        `confirm_refutation`; the other half is the bisection's, which decides nothing. Draws that are not independent
        are one too, see `measured_again`.
        """
        labels = labels_of(subject, self, "L4", settings, question)
        draw, search = ErrorSampler(settings.seed, question.id, settings.limit), self.search

        def measure(draw: ErrorSampler) -> tuple[Decision, SearchPath]:
            setting = self.place(subject)
            labels.update(mechanism=describe_target(setting.mechanism), source_hash=source_hash(setting.mechanism))
            own = decide_setting(setting, draw, settings.draws // 2, search.beta, settings.alpha / 2, "claimed")
            return own, bisect_parameter(subject, search, draw, settings.draws // 2, settings.alpha / 2)

        def collect() -> tuple[tuple[Decision, SearchPath], ErrorSampler, Independence]:
            return measured_again(
                measure, lambda found: found[0].words == "fails", draw, settings, place=lambda: self.place(subject)
            )

        return finish_audit(labels, question.private, collect, lambda made: self._conclude(*made, settings.alpha / 2))

    def _conclude(
        self, measured: tuple[Decision, SearchPath], draw: ErrorSampler, independence: Independence, alpha: float
    ) -> Conclusion:
        own, found = measured
        search = self.search
        value = found.value(search.beta)
        decided = decide_verdict(
            Verdict.DEVIATION,
            own.words == "fails",
            f"at {self.parameter} = {self.claimed:,.6g} the failure rate is at least {own.lower:.4g}, "
            f"{search.beta:g} is claimed",
            lambda: self._describe_doubt(own, found, alpha),
            independence,
        )
        fields = {
            "draws": draw.draws,
            "accuracy": {
                "kind": self.notion,
                "parameter": self.parameter,
                "claimed": self.claimed,
                "beta": search.beta,
                "failures": own.count,
                "draws": own.n,
                "rate_lower": own.lower,
                "rate_upper": own.upper,
                "measured": value,
                "lower": found.low,
                "upper": found.high,
                "largest": search.largest,
                "slack": value / self.claimed if search.largest else self.claimed / value,
                "steps": found.steps,
            },
        }
        return Conclusion(decided, fields, independence)

    def _describe_doubt(self, own: Decision, found: SearchPath, alpha: float) -> str:
        """Describe why nothing is decided; empty if the theorem's value works, or hardly fails."""
        if found.contradicted:
            return (
                f"{self.parameter} = {found.low:g} and {found.high:g} contradict one another: the failure rate is not "
                "monotone, or draws are not independent"
            )
        if own.words == "works":
            return ""
        beta = self.search.beta
        what = f"a failure rate below {{}} at {self.parameter} = {self.claimed:,.6g}"
        return describe_missed(what, find_detectable(own.n, beta, alpha), min(1.0, usual_level(beta)))
