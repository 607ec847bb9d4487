"""Claims of the kind "with probability at least 1 - beta the error is at most alpha"."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from auditor.audits.accuracy.base import Path, Sampled
from auditor.audits.accuracy.errors import ErrorSampler, Setting, find_failures
from auditor.audits.privacy_loop import Settings
from auditor.audits.verdict import describe_missed
from auditor.errors import SpecificationError, check_number
from auditor.evidence.bernoulli import anytime_order_limits, find_detectable, log_evidence, lower_limit, upper_limit
from auditor.results import usual_level

#: Errors that are kept for the quantile: enough for its second digit, in a bounded memory.
KEPT = 200_000


def _complement(beta: float) -> str:
    """Write ``1 - beta`` in six digits, and as a difference where these say 1 of a positive beta."""
    digits = f"{1 - beta:.6g}"
    return f"1 - {beta:.4g}" if beta > 0 and digits == "1" else digits


@dataclass(frozen=True)
class HighProbability(Sampled):
    """The error is at most ``at_most``, but for probability beta.

    Parameters
    ----------
    at_most : float
        The claimed error, at least 0. An error that is larger by rounding alone is no failure.
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
        if not (isinstance(self.at_most, int | float | np.integer | np.floating) and 0 <= self.at_most < math.inf):
            raise SpecificationError(f"at_most must be a finite number of at least 0, got {self.at_most!r}")
        if not (isinstance(self.beta, int | float | np.integer | np.floating) and 0 <= self.beta < 1):
            raise SpecificationError(f"beta must be in [0, 1), got {self.beta!r}")
        if not isinstance(self.strict, bool | np.bool_):
            raise SpecificationError(f"strict must be True or False, got {self.strict!r}")
        if self.exact is not None and not 0 <= check_number("exact", self.exact) <= 1:
            raise SpecificationError(f"exact must be a probability, got {self.exact!r}")

    @property
    def level(self) -> float:
        """The claimed probability of failure."""
        return float(self.beta)

    def parameters(self) -> dict[str, Any]:
        """The claimed error and probability."""
        return {"error": float(self.at_most), "beta": float(self.beta)}

    def __str__(self) -> str:
        return f"error {'<' if self.strict else '≤'} {self.at_most:.4g} with probability ≥ {_complement(self.beta)}"

    @property
    def detect(self) -> float:
        """Twice beta."""
        return min(1.0, usual_level(self.beta))

    def refuted(self, found: dict[str, Any]) -> str:
        """The certified failure rate."""
        return (
            f"the error exceeds {self.at_most:.4g} with probability at least {found['lower_bound']:.4g}, "
            f"{self.beta:.4g} is claimed"
        )

    def missed(self, found: dict[str, Any], detect: float) -> str:
        """Empty where the rate is certified to be at most beta.

        See `Sampled.missed`.
        """
        if found["accuracy"]["upper"] <= self.beta:
            return ""
        return describe_missed("a failure rate below {}", found["resolves"], detect)

    def fails(self, errors: np.ndarray[Any, Any]) -> int:
        """How many of the errors are failures."""
        return int((errors >= self.at_most).sum() if self.strict else find_failures(errors, self.at_most).sum())

    def collect(self, draw: ErrorSampler, setting: Setting, settings: Settings) -> dict[str, Any]:
        """Count failures.

        See `Sampled.collect`.

        Notes
        -----
        Valid because: the evidence of `log_evidence` reaches 1/alpha at the end of some chunk with probability at most
        alpha, for independent draws that fail with probability at most beta. When to stop depends on the draws, so each
        of the limits of the failure rate, and those of the quantile together, holds with probability 1 - alpha at all
        times together, see `lower_limit` and `anytime_order_limits`. The draws that are kept for the quantile are the
        first `KEPT`: how many these are when the audit stops is as good a stopping time. All of these limits at once
        hold with probability 1 - 3 alpha. The quantile's decide nothing.
        """
        path, count = Path(), 0
        lower, upper = 0.0, 1.0
        kept: list[np.ndarray[Any, Any]] = []
        for errors in path.chunks(draw, setting, settings):
            kept.append(errors[: max(KEPT - path.n + len(errors), 0)])
            count += self.fails(errors)
            path.add(log_evidence(count, path.n, self.beta))
            # Each limit holds with probability 1 - alpha; the lower one is above beta exactly if the claim is refuted.
            lower = max(lower, lower_limit(count, path.n, settings.alpha))
            upper = min(upper, upper_limit(count, path.n, settings.alpha))
            if settings.stop == "verdict" and (path.highest >= -math.log(settings.alpha) or upper <= self.beta):
                break
        n, found = path.n, path.fields()
        errors = np.sort(np.concatenate(kept))
        low, high = anytime_order_limits(len(errors), 1 - self.beta, settings.alpha)
        quantile = float(errors[min(math.ceil((1 - self.beta) * len(errors)), len(errors)) - 1])
        return {
            **found,
            "lower_bound": lower,
            "resolves": find_detectable(n, self.beta, settings.alpha),
            "record": {**found["record"], "failures": count},
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
