"""The mechanism's own log-likelihood ratio, where it offers one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.errors import TargetError
from auditor.targets.callables import OneDraw
from auditor.targets.outputs import Batch
from auditor.targets.process_settings import call_target
from auditor.targets.sampler import GuardedCall, Sampler

Array = NDArray[np.float64]

#: Outputs that are also given one by one, to see that each is read by itself; arbitrary, each costs a call.
_ALONE = 8
#: Relative difference between an output's values alone and among others that is put down to rounding.
_ROUNDING = 1e-6

_NAME = "the target's log_likelihood_ratio"


@dataclass(frozen=True, eq=False)
class OwnRatio:
    """A target's own log-likelihood ratio of a pair (x, y).

    The target has ``log_likelihood_ratio(outputs, x, y)``.

    Parameters
    ----------
    function : callable
        Takes the outputs as the auditor holds them, see `as_batch`, and both datasets; returns an array of shape (n,),
        NaN where an output has no ratio. It is the target's word for it and is not relied on: any function of one
        output and the pair makes valid events.
    x, y : object
        The pair's datasets.
    limit : float or None
        Seconds that one call may take.

    Raises
    ------
    TargetError
        On a call, if the function raises, is past its limit, or returns what is not n numbers.
    """

    function: Callable[[Batch, Any, Any], Any]
    x: Any
    y: Any
    limit: float | None = None

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        n = len(batch)
        with GuardedCall(_NAME, f"{n} outputs", self.limit):
            found = call_target(self.function, batch, self.x, self.y)
        try:
            values = np.array(found, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise TargetError(f"{_NAME} returned a {type(found).__name__}, expected {n} numbers") from None
        if values.shape != (n,):
            raise TargetError(f"{_NAME} returned an array of shape {values.shape}, expected ({n},)")
        return values

    def check(self, batch: Batch) -> None:
        """Raise `TargetError` unless values do not depend on the batch.

        Some outputs are evaluated alone and among others.

        Values that depend on the rest of the batch, or on chance, would make draws fall into an event together, and the
        bet takes draws to be independent.
        """
        among = self(batch)[:_ALONE]
        alone = np.array([self(batch[k : k + 1])[0] for k in range(len(among))])
        if not np.allclose(among, alone, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True):
            k = int(np.argmin(np.isclose(among, alone, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True)))
            raise TargetError(
                f"{_NAME} gave one output {alone[k]:.6g} alone and {among[k]:.6g} among {len(batch)}: "
                "it must read each output by itself"
            )

    def below(self, cut: float) -> str:
        """In words."""
        return f"the mechanism's own log-likelihood ratio <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"the mechanism's own log-likelihood ratio > {cut:.6g}"


def own_ratio(sampler: Sampler, x: Any, y: Any) -> OwnRatio | None:
    """Feature of a target that has a method ``log_likelihood_ratio``, None for others.

    Parameters
    ----------
    sampler : Sampler
        Has the target and the limit of a call.
    x, y : object
        The pair's datasets.
    """
    target = sampler.target.function if isinstance(sampler.target, OneDraw) else sampler.target
    function = getattr(target, "log_likelihood_ratio", None)
    return OwnRatio(function, x, y, sampler.limit) if callable(function) else None
