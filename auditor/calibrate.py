"""The auditor measured on itself: false alarms at zero margin, and violations that it must find."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditor.auditing import audit
from auditor.guarantees import PureDP
from auditor.neighbors import Pair
from auditor.results import Verdict

#: Probability with which a sound auditor would be reported as unsound.
_FALSE_ALARM = 1e-6
#: Factor by which the second group of audits exceeds its claim.
_EXCESS = 1.5


@dataclass(frozen=True)
class Response:
    """Randomised response on the first bit: a pair of neighbours attains epsilon exactly, in every event."""

    epsilon: float

    def __call__(self, data: NDArray[np.int64], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``n`` bits, each kept with probability e^eps / (1 + e^eps)."""
        keep = rng.random(n) < 1 / (1 + math.exp(-self.epsilon))
        return np.asarray(np.where(keep, data[0], 1 - data[0]))


def calibration(audits: int, draws: int, alpha: float, seed: int, say: Callable[[str], None]) -> tuple[list[str], bool]:
    """Audit randomised response at its exact level and above it, many times.

    Returns
    -------
    list of str, bool
        A report, and whether the false alarms are compatible with ``alpha`` (a sound auditor fails this with
        probability at most 1e-6).
    """
    pair = Pair(np.array([0]), np.array([1]))
    flagged, above, found = 0, 0, 0
    for k in range(audits):
        null = audit(Response(1.0), PureDP(1.0), pair, alpha=alpha, draws=draws, seed=seed + k, id="calibrate/null")
        flagged += null.verdict == Verdict.VIOLATION
        above += (null.lower_bound or 0.0) > 1.0
        broken = audit(
            Response(_EXCESS), PureDP(1.0), pair, alpha=alpha, draws=draws, seed=seed + k, id="calibrate/broken"
        )
        found += broken.verdict == Verdict.VIOLATION
        if (k + 1) % max(1, audits // 10) == 0:
            say(f"{k + 1} of {audits}")
    sound = all(stats.binom.sf(count - 1, audits, alpha) > _FALSE_ALARM for count in (flagged, above))
    return [
        f"claims that hold exactly     {flagged} of {audits} flagged, {above} lower bounds above the truth; "
        f"at most {alpha:.1%} are allowed",
        f"claims exceeded by {_EXCESS - 1:.0%}      {found} of {audits} flagged with {draws:,} draws",
        "sound" if sound else "UNSOUND: more false alarms than alpha allows",
    ], sound
