"""Claims of the kind "with probability at least 1 - beta the error is at most alpha"."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from auditor.accuracy.base import Theorem, independence_of
from auditor.accuracy.errors import ErrorSampler, Setting
from auditor.audit import Question, labels_of
from auditor.collect import Clock, Settings
from auditor.errors import SpecificationError, TargetError
from auditor.evidence.bernoulli import detectable, log_evidence, lower_limit, order_limits, upper_limit
from auditor.results import AuditResult, Verdict

#: Draws in the first chunk, and each later one as a part of what has been drawn: evidence does not depend on chunks, so
#: they only bound how late a verdict is.
FIRST, GROWTH = 50, 0.25
#: Errors that are kept for the quantile: enough for its second digit, in a bounded memory.
KEPT = 200_000


@dataclass(frozen=True)
class HighProbability(Theorem):
    """With probability at least 1 - beta the error is at most ``at_most``.

    Parameters
    ----------
    at_most : float
        The claimed error, at least 0.
    beta : float
        Claimed probability of failure, in [0, 1).
    strict : bool
        An error of exactly ``at_most`` is a failure.
    exact : float or None
        The exact probability of failure, where it is known.
    """

    at_most: float
    beta: float
    strict: bool = False
    exact: float | None = None

    notion: ClassVar[str] = "failure rate"
    symbol: ClassVar[str] = "failure rate"

    def __post_init__(self) -> None:
        if not (isinstance(self.at_most, int | float | np.number) and 0 <= self.at_most < math.inf):
            raise SpecificationError(f"at_most must be a finite number of at least 0, got {self.at_most!r}")
        if not (isinstance(self.beta, int | float | np.number) and 0 <= self.beta < 1):
            raise SpecificationError(f"beta must be in [0, 1), got {self.beta!r}")
        if self.exact is not None and not 0 <= self.exact <= 1:
            raise SpecificationError(f"exact must be a probability, got {self.exact!r}")

    @property
    def level(self) -> float:
        """The claimed probability of failure."""
        return float(self.beta)

    def parameters(self) -> dict[str, Any]:
        """The claimed error and probability."""
        return {"error": float(self.at_most), "beta": float(self.beta)}

    def __str__(self) -> str:
        return f"error {'<' if self.strict else '≤'} {self.at_most:.4g} with probability ≥ {1 - self.beta:.6g}"

    def audit(self, subject: Any, settings: Settings, question: Question) -> AuditResult:
        """Draw errors at the setting ``subject`` and count the failures.

        Notes
        -----
        Valid because: "deviation" is returned only if the evidence of `log_evidence` reached 1/alpha at the end of
        some chunk, which has probability at most alpha for independent draws that fail with probability at most beta;
        or if the draws failed the tests of independence.
        """
        setting: Setting = subject
        detect = settings.detect if settings.detect is not None else min(1.0, 2 * self.beta if self.beta else 0.1)
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
            message = (
                f"the error exceeds {self.at_most:.4g} with probability at least {found['lower_bound']:.4g}, "
                f"{self.beta:.4g} is claimed"
            )
        elif found["detectable_level"] > detect and found["accuracy"]["upper"] > self.beta:
            verdict = Verdict.INCONCLUSIVE
            message = (
                f"a failure rate below {found['detectable_level']:.4g} might have been missed, {detect:.4g} was to be "
                "detectable"
            )
        return AuditResult(**base, **found, verdict=verdict, message=message)

    def fails(self, errors: np.ndarray[Any, Any]) -> int:
        """How many of the errors are failures."""
        return int((errors >= self.at_most).sum() if self.strict else (errors > self.at_most).sum())

    def _collect(self, draw: ErrorSampler, setting: Setting, settings: Settings) -> dict[str, Any]:
        path: list[tuple[int, float]] = []
        count, n, highest = 0, 0, 0.0
        lower, upper = 0.0, 1.0
        kept: list[np.ndarray[Any, Any]] = []
        clock, truncated_by = Clock(settings.seconds), None
        while n < settings.draws and not (settings.chunks is not None and len(path) >= settings.chunks):
            if path and not clock.left():
                truncated_by = "time"
                break
            size = min(max(FIRST, math.ceil(GROWTH * n)), settings.draws - n)
            errors = draw(setting, size, len(path))
            if n < KEPT:
                kept.append(errors[: KEPT - n])
            count, n = count + self.fails(errors), n + size
            log = log_evidence(count, n, self.beta)
            highest = max(highest, log)
            path.append((n, log))
            # Each limit holds with probability 1 - alpha; the lower one is above beta exactly if the claim is refuted.
            lower = max(lower, lower_limit(count, n, settings.alpha))
            upper = min(upper, upper_limit(count, n, settings.alpha))
            if settings.stop == "verdict" and (highest >= -math.log(settings.alpha) or upper <= self.beta):
                break
        errors = np.sort(np.concatenate(kept))
        low, high = order_limits(len(errors), 1 - self.beta, settings.alpha)
        quantile = float(errors[min(math.ceil((1 - self.beta) * len(errors)), len(errors)) - 1])
        log10 = 1 / math.log(10)
        return {
            "draws": n,
            "lower_bound": lower,
            "detectable_level": detectable(n, self.beta, settings.alpha),
            "log10_e_value": path[-1][1] * log10,
            "log10_max_e_value": highest * log10,
            "truncated_by": truncated_by,
            "wealth": {"draws": [n for n, _ in path], "log10_e_value": [log * log10 for _, log in path]},
            "record": {"chunks": [[n, log] for n, log in path], "failures": count},
            "accuracy": {
                "kind": self.notion,
                "claimed": self.beta,
                "error": self.at_most,
                "failures": count,
                "draws": n,
                "rate": count / n,
                "lower": lower,
                "upper": upper,
                "quantile": quantile,
                "quantile_lower": float(errors[low]) if low >= 0 else 0.0,
                "quantile_upper": float(errors[high]) if high < len(errors) else math.inf,
                "slack": self.at_most / quantile if quantile > 0 else math.inf,
            },
        }
