"""Claims about the expectation of an error: mean squared errors, expected maxima."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from auditor.audits.accuracy.base import Path, Sampled
from auditor.audits.accuracy.errors import ErrorSampler, Setting
from auditor.audits.privacy_loop import Settings
from auditor.audits.verdict import describe_missed
from auditor.errors import SpecificationError, check_number
from auditor.evidence.mean import GRID, MeanWealth, detectable_mean

#: Normal quantile of the interval that is shown for the mean, and of the power: 95 % and 90 %.
_SHOWN = 1.96


@dataclass(frozen=True)
class Expectation(Sampled):
    """The expected error is at most ``at_most``.

    The error is never negative.

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
        if not (isinstance(self.at_most, int | float | np.integer | np.floating) and 0 < self.at_most < math.inf):
            raise SpecificationError(f"at_most must be a finite number above 0, got {self.at_most!r}")
        if self.exact is not None and check_number("exact", self.exact) < 0:
            raise SpecificationError(f"exact must be a finite number of at least 0, got {self.exact!r}")

    @property
    def level(self) -> float:
        """The claimed expectation."""
        return float(self.at_most)

    def parameters(self) -> dict[str, Any]:
        """The claimed expectation."""
        return {"expected error": float(self.at_most)}

    def __str__(self) -> str:
        return f"expected error ≤ {self.at_most:.4g}"

    @property
    def detect(self) -> float:
        """Twice the claimed expectation."""
        return 2 * self.at_most

    def refuted(self, found: dict[str, Any]) -> str:
        """The mean that was observed."""
        mean = found["accuracy"]["mean"]
        return f"the expected error is above the {self.at_most:.4g} that is claimed; {mean:.4g} in the draws"

    def missed(self, found: dict[str, Any], detect: float) -> str:
        """See `Sampled`.

        See `Sampled.missed`.
        """
        return describe_missed("an expected error below {}", found["resolves"], detect)

    def collect(self, draw: ErrorSampler, setting: Setting, settings: Settings) -> dict[str, Any]:
        """Bet that the expectation is larger.

        See `Sampled.collect`.

        Returns
        -------
        dict
            ``lower_bound`` is a certified lower bound of the expectation. There is no upper one without a bound on the
            errors: the interval beside the mean assumes that it is nearly normal, and decides nothing.

        Notes
        -----
        Valid because: the wealth of `MeanWealth` at the claimed expectation reaches 1/alpha with probability at most
        alpha for independent draws.
        """
        path, wealth = Path(), MeanWealth(np.concatenate([[1.0], GRID]) * self.at_most)
        total = squares = 0.0
        for errors in path.chunks(draw, setting, settings):
            with np.errstate(over="ignore"):
                total, squares = total + float(errors.sum()), squares + float((errors**2).sum())
            wealth.bet(errors)
            path.add(float(wealth.current[0]))
            if settings.stop == "verdict" and path.highest >= -math.log(settings.alpha):
                break
        n = path.n
        mean = total / n
        deviation = math.sqrt(max(squares / n - mean**2, 0.0)) if math.isfinite(squares) else math.inf
        lower = wealth.lower_bound(settings.alpha)
        if path.highest >= -math.log(settings.alpha):
            lower = max(lower, self.at_most)
        return {
            **path.fields(),
            "lower_bound": lower,
            "resolves": detectable_mean(self.at_most, n, deviation, settings.alpha),
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
