"""Claims about the expectation of an error: mean squared errors, expected maxima."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from auditor.accuracy.base import Theorem, independence_of
from auditor.accuracy.errors import ErrorSampler, Setting
from auditor.accuracy.failure import FIRST, GROWTH
from auditor.audit import Question, labels_of
from auditor.collect import Clock, Settings
from auditor.errors import SpecificationError, TargetError
from auditor.evidence.mean import STAKES, MeanWealth
from auditor.results import AuditResult, Verdict

#: Normal quantile of the interval that is shown for the mean, and of the power: 95 % and 90 %.
_SHOWN, _POWER = 1.96, 1.2816


@dataclass(frozen=True)
class Expectation(Theorem):
    """The expectation of the error, which is never negative, is at most ``at_most``.

    Parameters
    ----------
    at_most : float
        The claimed bound, positive.
    exact : float or None
        The exact expectation, where it is known.
    """

    at_most: float
    exact: float | None = None

    notion: ClassVar[str] = "expected error"
    symbol: ClassVar[str] = "expected error"

    def __post_init__(self) -> None:
        if not (isinstance(self.at_most, int | float | np.number) and 0 < self.at_most < math.inf):
            raise SpecificationError(f"at_most must be a finite number above 0, got {self.at_most!r}")

    @property
    def level(self) -> float:
        """The claimed expectation."""
        return float(self.at_most)

    def parameters(self) -> dict[str, Any]:
        """The claimed expectation."""
        return {"expected error": float(self.at_most)}

    def __str__(self) -> str:
        return f"expected error ≤ {self.at_most:.4g}"

    def audit(self, subject: Any, settings: Settings, question: Question) -> AuditResult:
        """Draw errors at the setting ``subject`` and bet that their expectation is larger.

        Returns
        -------
        AuditResult
            ``lower_bound`` is a certified lower bound of the expectation. There is no upper one without a bound on the
            errors: the interval beside the mean assumes that it is nearly normal, and decides nothing.

        Notes
        -----
        Valid because: "deviation" is returned only if the wealth of `MeanWealth` at the claimed expectation reached
        1/alpha, which has probability at most alpha for independent draws, or if those failed the tests of
        independence.
        """
        setting: Setting = subject
        detect = settings.detect if settings.detect is not None else 2 * self.at_most
        base = labels_of(setting.mechanism, self, "L4", settings, question, detect=detect, exact=self.exact)
        draw = ErrorSampler(settings.seed, question.id, settings.limit)
        try:
            tested = independence_of(draw.sampler(setting), setting, settings)
            base |= {"independence": asdict(tested), "unseeded": not tested.seeded}
            if not tested.passed:
                message = f"draws are not independent: {tested.finding}"
                return AuditResult(**base, verdict=Verdict.DEVIATION, message=message)
            found = self._collect(draw, setting, settings)
        except TargetError as error:
            return AuditResult(**base, verdict=Verdict.ERROR, message=error.public if question.private else str(error))
        verdict, message = Verdict.CONSISTENT, ""
        if found["log10_max_e_value"] >= -math.log10(settings.alpha):
            verdict = Verdict.DEVIATION
            mean = found["accuracy"]["mean"]
            message = f"the expected error is above the {self.at_most:.4g} that is claimed; {mean:.4g} in the draws"
        elif found["detectable_level"] > detect:
            verdict = Verdict.INCONCLUSIVE
            message = (
                f"an expected error below {found['detectable_level']:.4g} might have been missed, {detect:.4g} was to "
                "be detectable"
            )
        return AuditResult(**base, **found, verdict=verdict, message=message)

    def _collect(self, draw: ErrorSampler, setting: Setting, settings: Settings) -> dict[str, Any]:
        path: list[tuple[int, float]] = []
        wealth, n = MeanWealth(self.at_most), 0
        total = squares = 0.0
        clock, truncated_by = Clock(settings.seconds), None
        while n < settings.draws and not (settings.chunks is not None and len(path) >= settings.chunks):
            if path and not clock.left():
                truncated_by = "time"
                break
            size = min(max(FIRST, math.ceil(GROWTH * n)), settings.draws - n)
            errors = draw(setting, size, len(path))
            n += size
            total, squares = total + float(errors.sum()), squares + float((errors**2).sum())
            wealth.bet(errors)
            path.append((n, float(wealth.current[0])))
            if settings.stop == "verdict" and wealth.best[0] >= -math.log(settings.alpha):
                break
        mean = total / n
        deviation = math.sqrt(max(squares / n - mean**2, 0.0)) if math.isfinite(squares) else math.inf
        log10, lower = 1 / math.log(10), wealth.lower_bound(settings.alpha)
        if wealth.best[0] >= -math.log(settings.alpha):
            lower = max(lower, self.at_most)
        return {
            "draws": n,
            "lower_bound": lower,
            "detectable_level": self._detectable(n, deviation, settings.alpha),
            "log10_e_value": path[-1][1] * log10,
            "log10_max_e_value": float(wealth.best[0]) * log10,
            "truncated_by": truncated_by,
            "wealth": {"draws": [n for n, _ in path], "log10_e_value": [log * log10 for _, log in path]},
            "record": {"chunks": [[n, log] for n, log in path]},
            "accuracy": {
                "kind": self.notion,
                "claimed": self.at_most,
                "draws": n,
                "mean": mean,
                "mean_lower": mean - _SHOWN * deviation / math.sqrt(n),
                "mean_upper": mean + _SHOWN * deviation / math.sqrt(n),
                "lower": lower,
                "slack": self.at_most / mean if mean > 0 else math.inf,
            },
        }

    def _detectable(self, n: int, deviation: float, alpha: float) -> float:
        """Smallest expectation that would have been flagged with probability about 0.9, by a normal approximation.

        With the mean m' = m + d and the observed deviation, a stake s gains about s d / m - s^2 (deviation / m)^2 / 2 a
        draw; the best admissible one is taken, its share of the prior is paid, and the mean is taken to be lower by its
        90 % quantile.
        """
        threshold = -math.log(alpha) + math.log(len(STAKES))
        if not math.isfinite(deviation):
            return math.inf
        spread = deviation / self.at_most
        excess = min((threshold / n + s * s * spread * spread / 2) / s for s in STAKES)
        return float(self.at_most * (1 + excess + _POWER * spread / math.sqrt(n)))
