"""Confirm that a case shows its defect, by counting or by an exact computation, without the auditor's own method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from auditor.cli.corpus.cases import LibraryCase
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import Guarantee
from auditor.report.words import shorten_text
from auditor.targets import Mechanism
from auditor.targets.outputs import Raised
from auditor.targets.sampler import Sampler
from auditor.targets.target_names import closing_target, target_named

#: Probability, at most, that counting confirms what is not there.
ALPHA = 1e-6
#: Draws of one call; arbitrary.
_CALL = 2_000


@dataclass(frozen=True)
class CaseConfirmation:
    """Result of counting, or of an exact computation, for one version.

    Parameters
    ----------
    level : float
        Lower bound of the level on the crafted pair, at confidence 1 - `ALPHA`; or the exact one.
    exact : bool
        It was computed from the library's figures.
    counts : tuple of int
        Outputs that show the event, on each dataset.
    draws : int
        Draws a side.
    refuted : bool
        The level is above the claim.
    """

    level: float
    exact: bool
    counts: tuple[int, int]
    draws: int
    refuted: bool

    def __str__(self) -> str:
        words = (
            "exactly" if self.exact else f"{self.counts[0]:,} and {self.counts[1]:,} of {self.draws:,}, level at least"
        )
        return f"{words} {self.level:.4g}"


def confirm_case(
    case: LibraryCase, fixed: bool = False, tell: Callable[[str], None] = lambda _: None
) -> CaseConfirmation:
    """Hold a case's event against its claim on the crafted pair.

    Parameters
    ----------
    case : LibraryCase
        No control.
    fixed : bool
        The release without the defect.
    tell : callable
        Takes lines about what is being done.

    Raises
    ------
    SpecificationError
        If the environment cannot be built.
    TargetError
        If the library fails.
    """
    if "level" in case.functions:
        function = "level_fixed" if fixed and "level_fixed" in case.functions else "level"
        with closing_target(target_named(case.target(fixed, function))) as target:
            level = float(_draw_outputs(Sampler(target, 0, case.name), case.crafted.x, 1, 0)[0])
        return CaseConfirmation(level, True, (0, 0), 0, level > case.guarantee.level)
    with closing_target(target_named(case.target(fixed))) as target:
        counts = []
        for data in (case.crafted.x, case.crafted.y):
            tell(f"{case.name}: {case.draws:,} draws")
            counts.append(count_shown(target, data, case.draws, case.shows))
    level = bound_level(case.guarantee, counts[0], counts[1], case.draws)
    return CaseConfirmation(level, False, (counts[0], counts[1]), case.draws, level > case.guarantee.level)


def count_shown(target: Mechanism, data: Any, draws: int, shows: Callable[[Any], bool]) -> int:
    """Count the outputs of some draws that show an event.

    Parameters
    ----------
    target : Mechanism
    data : dataset
    draws : int
    shows : callable
        Whether an output does. What a draw raised is given as the text "raised ClassName".

    Raises
    ------
    SpecificationError
        If ``shows`` raises; the message has the output.
    """
    count, sampler = 0, Sampler(target, 0, "count", catching=True)
    for begin in range(0, draws, _CALL):
        outputs = _draw_outputs(sampler, data, min(_CALL, draws - begin), begin)
        count += sum(_shows(shows, repr(output) if isinstance(output, Raised) else output) for output in outputs)
    return count


def _shows(shows: Callable[[Any], bool], output: Any) -> bool:
    try:
        return bool(shows(output))
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise SpecificationError(f"shows({shorten_text(repr(output), 100)}) raised {said}") from error


def bound_level(guarantee: Guarantee, first: int, second: int, draws: int, alpha: float = ALPHA) -> float:
    """Lower bound of the level, from counts of one event.

    Parameters
    ----------
    guarantee : Guarantee
        Its notion is what the level is of.
    first, second : int
        Counts under two datasets, among as many draws of each.
    draws : int
        Draws a side.
    alpha : float
        Probability, at most, that the bound is above the true level.

    Returns
    -------
    float
        At least 0; infinite where no level allows the counts.

    Notes
    -----
    Valid because: each of the four limits of Clopper and Pearson is wrong with probability at most alpha / 4, so all
    hold together with probability 1 - alpha. Then the true probabilities p and q lie within them, and a level that
    allows (p, q) allows every p' <= p with q' >= q, in both orders and for the complement, as caps increase in q. The
    event is written in the case's file before these draws are made.
    """
    limits = [
        stats.binomtest(count, draws).proportion_ci(1.0 - alpha / 2.0, method="exact") for count in (first, second)
    ]
    (low, high), (other_low, other_high) = ((float(limit.low), float(limit.high)) for limit in limits)
    p = np.array([low, other_low, 1.0 - high, 1.0 - other_high])
    q = np.array([other_high, high, 1.0 - other_low, 1.0 - low])
    return float(np.max(np.where(p > q, guarantee.level_of(p, np.minimum(p, q)), 0.0)))


def _draw_outputs(sampler: Sampler, data: Any, n: int, key: int) -> list[Any]:
    batch, _ = sampler.draw_either_way(data, n, "confirm", key)
    return batch.tolist() if isinstance(batch, np.ndarray) else batch
