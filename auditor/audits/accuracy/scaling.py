"""Exponents: how a measured number grows with a parameter, against what a theorem says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy.base import Theorem, measured_again
from auditor.audits.accuracy.errors import ErrorSampler, Setting
from auditor.audits.accuracy.failure import HighProbability
from auditor.audits.accuracy.figure import Figure
from auditor.audits.accuracy.measures import Effort, Exactly, Measure, Point, Smallest
from auditor.audits.context import Question
from auditor.audits.finish import Conclusion, finish_audit, labels_of
from auditor.audits.independence import Independence
from auditor.audits.privacy_loop import Settings
from auditor.audits.summary import describe_target
from auditor.audits.verdict import decide_verdict
from auditor.errors import SpecificationError, check_number, require_library
from auditor.results import AuditResult, Verdict
from auditor.targets import source_hash
from auditor.targets.sampler import make_generator

Array = NDArray[np.float64]
_Measured: TypeAlias = tuple[Verdict, str, dict[str, Any]]

#: Confidence of the interval of the exponent that is shown, from the bootstrap.
SHOWN = 0.95
#: Relative variance that every point is taken to have beside that of its draws: a quantile of a lattice's outputs may
#: have none, and would get all of the weight. Arbitrary, small: 0.1 %.
_FLOOR = 1e-6
#: Relative error of a curve and of numbers that are computed.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class PowerLaw(Theorem):
    """A measured number grows as a power of a parameter.

    Times a known factor.

    Parameters
    ----------
    parameter : str
        Name of the parameter.
    at : tuple of float
        Its values, increasing, at least three.
    exponent : float
        The claimed exponent.
    measure : Measure
        What is measured.
    others : tuple of float
        Neighbouring candidates, which the interval of the exponent has to exclude.
    log_factor : callable or None
        The claim's factor that is no power, of the parameter: it is divided out.
    curve : callable or None
        The theorem's bound, of the parameter: no measured number may exceed it.
    within : float
        How far growth over the measured range may be from the power, as a difference of exponents: a finite range
        shows the lower-order terms. Default 0.05, a tenth of the usual distance of candidates; arbitrary.
    criterion : bool
        The measured number itself has the exponent. False: only the bound has it, and growth
        decides nothing; there has to be a ``curve`` then.
    benefit : bool
        Larger is better, as for capacities: growth is worse than claimed if it is slower, and the bound is a lower one.
    both : bool
        The exponent is claimed exactly: growth that is faster and growth that is slower are both worse.
    figure : Figure or None
        The plot of the report that shows the points beside those of other claims.
    """

    parameter: str
    at: tuple[float, ...]
    exponent: float
    measure: Measure
    others: tuple[float, ...] = ()
    log_factor: Callable[[float], float] | None = None
    curve: Callable[[float], float] | None = None
    within: float = 0.05
    criterion: bool = True
    benefit: bool = False
    both: bool = False
    figure: Figure | None = None

    notion: ClassVar[str] = "exponent"
    symbol: ClassVar[str] = "exponent"

    def __post_init__(self) -> None:
        for name, value in (("exponent", self.exponent), ("within", self.within)):
            check_number(name, value)
        for name, values in (("values to measure at", self.at), ("other candidates", self.others)):
            for value in values:
                check_number(name, value)
        if not isinstance(self.measure, Measure):
            raise SpecificationError(f"measure must be such as Quantile(), got {self.measure!r}")
        if len(self.at) < 3 or self.at[0] <= 0 or any(a >= b for a, b in zip(self.at, self.at[1:], strict=False)):
            raise SpecificationError(f"expected at least three increasing positive values to measure at, got {self.at}")
        if not self.within > 0:
            raise SpecificationError(f"within must be positive, got {self.within!r}")
        if any(abs(other - self.exponent) <= self.within for other in self.others):
            raise SpecificationError(f"candidates {self.others} are within {self.within} of {self.exponent}")
        if self.curve is None and not self.criterion:
            raise SpecificationError(
                f"the growth in {self.parameter} decides nothing (criterion=False) and there is no curve: such a claim "
                "cannot fail"
            )
        _ = self._factors(), self.curve_exponent  # here an error names the entry
        if self.figure is not None:
            if not isinstance(self.figure, Figure):
                raise SpecificationError(f"figure must be a Figure, got {self.figure!r}")
            self.figure.places(self.at)

    @property
    def level(self) -> float:
        """The claimed exponent."""
        return float(self.exponent)

    @property
    def drawn(self) -> bool:
        """Nothing is drawn where the measure is computed."""
        return not isinstance(self.measure, Exactly)

    @property
    def basis(self) -> str:
        """Basis of the check, see `Theorem`.

        A formula that is fitted is no distribution that was computed exactly.
        """
        if isinstance(self.measure, Exactly):
            return "computed" if self.measure.formula else "exact"
        return super().basis

    def parameters(self) -> dict[str, Any]:
        """The parameter, where it was measured, and the candidates."""
        return {"parameter": self.parameter, "at": list(self.at), "other candidates": list(self.others)}

    def __str__(self) -> str:
        factor = "" if self.log_factor is None else " times a log factor"
        power = f"{self.parameter}^{self.exponent:.4g}{factor}"
        if self.criterion:
            return f"{self.measure} grows as {power}"
        here = self.curve_exponent
        if here is not None and abs(here - self.exponent) > self.within:
            power += f" in the limit, as {self.parameter}^{here:.3g} over these values"
        return f"{self.measure} is {'above' if self.benefit else 'below'} a bound that grows as {power}"

    @cached_property
    def curve_exponent(self) -> float | None:
        """Exponent of the curve over the values.

        By least squares of the logarithms; None without a curve.
        """
        if self.curve is None:
            return None
        y = np.log(self._read_function("curve", self.curve) / self._factors())
        return float(np.polyfit(np.log(np.array(self.at)), y, 1)[0])

    def __repr__(self) -> str:
        # Without the functions, whose addresses differ between processes; the factors' values stand for them.
        values = [[f(x) for x in self.at] for f in (self.log_factor, self.curve) if f is not None]
        return (
            f"PowerLaw({self.parameter!r}, {self.at}, {self.exponent!r}, {self.measure!r}, {self.others}, {values}, "
            f"{self.within!r}, {self.criterion}, {self.benefit}, {self.both}"
            f"{'' if self.figure is None else f', {self.figure.record(self.at)}'})"
        )

    def place(self, subject: Any) -> Setting | None:
        """The setting at the largest value.

        Of a search for a second parameter, at its largest value.
        """
        return self._build_setting(subject, self.at[-1], largest=True)

    def _build_setting(self, subject: Any, value: float, largest: bool) -> Setting | None:
        """The setting at a value; of a search for a second parameter, at its largest or smallest value."""
        built = subject(value)
        if isinstance(self.measure, Smallest):
            second = self.measure.high if largest else self.measure.low
            built = built(int(second) if self.measure.integer else second)
        return built if isinstance(built, Setting) else None

    @property
    def places(self) -> int:
        """The number of values."""
        return len(self.at)

    def trial(self, subject: Any) -> tuple[Theorem, Any]:
        """The statement and setting that a control is checked with.

        Where a smallest parameter is measured: the failure rate at the curve's, for the last value; else all.
        """
        if not isinstance(self.measure, Smallest) or self.curve is None:
            return self, subject
        last = self.at[-1]
        value = float(self.curve(last))
        if self.measure.integer:
            value = math.floor(value) if self.measure.largest else math.ceil(value)
        setting: Setting = subject(last)(value)
        return HighProbability(setting.at_most, self.measure.beta), setting

    def margin(self, found: Mapping[str, Any]) -> dict[str, Any] | None:
        """Growth that the limits would have told from the claim.

        Or the value that a computed number would have to have.

        Growth that is faster by some exponent moves the limits of the growth by as much.
        """
        if self.criterion:
            faster = self.exponent + self.within - found["growth_lower"]
            slower = found["growth_upper"] - self.exponent + self.within
            told = {"faster": faster} if self.both or not self.benefit else {}
            told |= {"slower": slower} if self.both or self.benefit else {}
            by = max(told.values())
            if not math.isfinite(by):
                return None
            shown = [found["exponent"] + (by if how == "faster" else -by) for how, by in told.items()]
            return {"what": "growth as " + " or as ".join(f"{self.parameter}^{e:.4g}" for e in shown), "by": by}
        if self.drawn:
            return None
        by = min(found["slack"])
        return {"what": f"a number that is {'smaller' if self.benefit else 'larger'} by a factor of {by:.4g}", "by": by}

    def audit(self, subject: Any, settings: Settings, question: Question) -> AuditResult:
        """Measure at each value, fit, and compare.

        ``subject`` builds what is measured at a value.

        See `Theorem.audit`.

        Returns
        -------
        AuditResult
            ``accuracy`` holds the points, the exponent with two intervals, and the slack to the theorem's curve.

        Notes
        -----
        Valid because: "deviation" is returned only if growth between two values, or a point against the curve, is worse
        than claimed by limits which hold for all points together with probability at least 1 - alpha. Under the claim
        that growth between any two of the values is at most the power (and the factor) with ``within`` added, that
        needs a limit to miss; where the draws at some value look dependent, it needs that twice, see
        `confirm_refutation`. Or if draws at the first value are not independent, see `measured_again`. The fit by
        weighted least squares and its bootstrap interval are shown, and make a claim "inconclusive" if the interval
        holds a candidate; they refute nothing.
        """
        require_library("statsmodels", "fitted exponents")  # before any draw
        labels = labels_of(subject, self, "L4", settings, question, mechanism="computed")
        n, share = settings.draws // len(self.at), settings.alpha / len(self.at)

        if self.drawn and n < 1:
            raise SpecificationError(f"{settings.draws:,} draws are less than one at each of {len(self.at):,} values")

        def measure(draw: ErrorSampler) -> _Measured:
            rng = make_generator(settings.seed, question.id, "bootstrap")
            points: list[Point] = []
            for i, x in enumerate(self.at):
                built = subject(x)
                if isinstance(built, Setting) and not points:
                    mechanism = built.mechanism
                    labels.update(mechanism=describe_target(mechanism), source_hash=source_hash(mechanism))
                points.append(self.measure(built, Effort(draw, n, share, rng, i)))
            found = self._fit(points)
            return *self._decide_verdict(points, found), found

        def refuted(measured: _Measured) -> bool:
            return measured[0] == Verdict.DEVIATION

        def build_first() -> Setting | None:
            return self._build_setting(subject, self.at[0], largest=False) if self.drawn else None

        def collect() -> tuple[_Measured, ErrorSampler, Independence]:
            draw = ErrorSampler(settings.seed, question.id, settings.limit)
            return measured_again(measure, refuted, draw, settings, place=build_first)

        def conclude(made: tuple[_Measured, ErrorSampler, Independence]) -> Conclusion:
            measured, draw, independence = made
            _, text, found = measured  # a refutation, or what was not told apart
            decided = decide_verdict(Verdict.DEVIATION, refuted(measured), text, lambda: text, independence)
            return Conclusion(decided, {"draws": draw.draws, "accuracy": found}, independence if self.drawn else None)

        return finish_audit(labels, question.private, collect, conclude)

    def _factors(self) -> Array:
        return np.ones(len(self.at)) if self.log_factor is None else self._read_function("log_factor", self.log_factor)

    def _read_function(self, name: str, function: Callable[[float], float]) -> Array:
        """Values of the curve or the factor, which are positive: nothing exceeds a bound that is NaN."""
        if not callable(function):
            raise SpecificationError(f"{name} must be a function of {self.parameter}, got {function!r}")
        found: list[Any] = []
        for x in self.at:
            try:
                found.append(value := function(x))
            except Exception as error:  # whatever a formula raises outside of where it is defined
                raise SpecificationError(
                    f"{name} raised {type(error).__name__} at {self.parameter} = {x:g}: {error}"
                ) from error
            if not isinstance(value, int | float | np.integer | np.floating) or not 0 < value < math.inf:
                raise SpecificationError(
                    f"{name} must be a finite number above 0, got {value!r} at {self.parameter} = {x:g}"
                )
        return np.array(found, dtype=np.float64)

    def _fit(self, points: Sequence[Point]) -> dict[str, Any]:
        """Exponents, intervals and slack, as a result holds them."""
        import statsmodels.api as sm  # takes longer to import than all the rest together

        factors, x = self._factors(), np.log(np.array(self.at))
        values = np.array([point.value for point in points])
        bad = [f"{self.parameter} = {a:g}: {v:g}" for a, v in zip(self.at, values, strict=True) if not 0 < v < math.inf]
        if bad:
            raise SpecificationError(f"an exponent needs finite positive numbers, measured {'; '.join(bad)}")
        y = np.log(values / factors)
        replicates = np.array([np.log(np.maximum(p.replicates, np.finfo(float).tiny)) for p in points])
        replicates -= np.log(factors)[:, None]
        weights = 1.0 / (replicates.var(axis=1) + _FLOOR)
        fit = sm.WLS(y, sm.add_constant(x), weights=weights).fit()
        constant, slope = (float(value) for value in fit.params)
        if all(point.exact for point in points):  # nothing was drawn: how much the growth itself varies
            slopes = np.diff(y) / np.diff(x)
            low, high = float(slopes.min()), float(slopes.max())
        else:
            # The slope is linear in the logarithms: the same fit of each replicate, at the same weights.
            centred = weights * (x - np.average(x, weights=weights))
            fits = centred @ replicates / (centred @ x)
            low, high = np.quantile(fits, [(1 - SHOWN) / 2, (1 + SHOWN) / 2]).tolist()
        # A quantile of outputs on a lattice may be the same in all replicates; the fit is in the interval all the same.
        low, high = min(low, slope), max(high, slope)
        certified = self._growth(points)
        curve = None if self.curve is None else self._read_function("curve", self.curve)
        slack = None
        if curve is not None:
            slack = (values / curve if self.benefit else curve / values).tolist()
        return {
            "kind": self.notion,
            "parameter": self.parameter,
            "measured": str(self.measure),
            "claimed": self.exponent,
            "exponent": slope,
            "exponent_lower": low,
            "exponent_upper": high,
            "growth_lower": certified[0],
            "growth_upper": certified[1],
            "candidates": list(self.others),
            "curve_exponent": self.curve_exponent,
            "criterion": self.criterion,
            "benefit": self.benefit,
            "constant": math.exp(constant),
            "factors": None if self.log_factor is None else factors.tolist(),
            "outcome": "",
            "points": [
                {
                    "at": a,
                    "value": point.value,
                    "lower": point.low,
                    "upper": point.high,
                    "fit": math.exp(constant + slope * math.log(a)) * factor,
                    "curve": None if curve is None else float(curve[i]),
                }
                for i, (a, point, factor) in enumerate(zip(self.at, points, factors, strict=True))
            ],
            "slack": slack,
            "figure": None if self.figure is None else self.figure.record(self.at),
        }

    def _growth(self, points: Sequence[Point]) -> tuple[float, float]:
        """Certified limits of the growth between two values: the largest lower and the smallest upper one."""
        factors, x = self._factors(), np.log(np.array(self.at))
        with np.errstate(divide="ignore"):
            low = np.log(np.array([p.low for p in points]) / factors)
            high = np.log(np.array([p.high for p in points]) / factors)
        i, j = np.triu_indices(len(points), 1)
        return float(((low[j] - high[i]) / (x[j] - x[i])).max()), float(((high[j] - low[i]) / (x[j] - x[i])).min())

    def _decide_verdict(self, points: Sequence[Point], found: dict[str, Any]) -> tuple[Verdict, str]:
        # A bound that is attained is not exceeded by the rounding of what was computed.
        slack = 1 - TOLERANCE if self.benefit else 1 + TOLERANCE
        bounds = [None if point["curve"] is None else point["curve"] * slack for point in found["points"]]
        over = [
            f"{self.parameter} = {a:g}"
            for a, point, bound in zip(self.at, points, bounds, strict=True)
            if bound is not None and (point.high < bound if self.benefit else point.low > bound)
        ]
        if over:
            found["outcome"] = "bound broken"
            return Verdict.DEVIATION, f"the bound is {'missed' if self.benefit else 'exceeded'} at {', '.join(over)}"
        if not self.criterion:
            if self.drawn and all(math.isinf(p.high) if self.benefit else p.low <= 0 for p in points):
                found["outcome"] = "not told apart"
                return Verdict.INCONCLUSIVE, "the draws are too few to find a broken bound at any value"
            found["outcome"] = "bound holds"
            return Verdict.CONSISTENT, ""
        lower, upper = found["growth_lower"], found["growth_upper"]
        too_fast, too_slow = lower > self.exponent + self.within, upper < self.exponent - self.within
        if (too_fast and (self.both or not self.benefit)) or (too_slow and (self.both or self.benefit)):
            found["outcome"] = "worse than claimed"
            shown = f"at least {lower:.4g}" if too_fast else f"at most {upper:.4g}"
            return Verdict.DEVIATION, f"the exponent of {self.parameter} is {shown}, {self.exponent:.4g} is claimed"
        worse = ([lower] if self.both or not self.benefit else []) + ([upper] if self.both or self.benefit else [])
        if all(map(math.isinf, worse)):
            found["outcome"] = "not told apart"
            return Verdict.INCONCLUSIVE, "the draws are too few for a limit of the growth"
        low, high = found["exponent_lower"], found["exponent_upper"]
        if low > self.exponent + self.within if self.benefit else high < self.exponent - self.within:
            found["outcome"] = "looser: the measured number does better"
            return Verdict.CONSISTENT, ""
        held = [other for other in self.others if low <= other <= high]
        if held:
            found["outcome"] = "not told apart"
            return Verdict.INCONCLUSIVE, f"the exponent may be {held[0]:.4g} as well: it is in [{low:.4g}, {high:.4g}]"
        found["outcome"] = "consistent"
        return Verdict.CONSISTENT, ""
