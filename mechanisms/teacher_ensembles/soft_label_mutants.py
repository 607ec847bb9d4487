"""What breaks the soft labels of document 004: other thresholds, other steps between the tests, other partitions.

Source: document 004, Algorithms 6 and 8; catalogue 004, slq and soft_hist.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from mechanisms.base.mechanism import Mutant, TimesEpsilon, tabulate_mutants, unbounded
from mechanisms.selection.free_tops import tail
from mechanisms.teacher_ensembles.soft_histogram import (
    BinsCentredOnTheMean,
    DataDependentRange,
    EndHalfBinsKept,
    MeanOfScoresReleased,
    RoundedToNearest,
    ScoreHistograms,
)
from mechanisms.teacher_ensembles.soft_labels import SoftLabels


@dataclass(frozen=True)
class ChangedStepTwin:
    """Builds the same mechanism with some steps changed (for `Mutant.build`).

    Parameters
    ----------
    name : str
        Field of `SoftLabelSteps`.
    value : object
        Its value.
    """

    name: str
    value: object

    def __call__(self, base: SoftLabels) -> SoftLabels:
        """Return `base` with the other step."""
        return replace(base, steps=replace(base.steps, **{self.name: self.value}))  # type: ignore[arg-type]


@dataclass(frozen=True)
class OtherPartitionTwin:
    """Builds the same mechanism over other partitions (for `Mutant.build`)."""

    partitions: Callable[..., ScoreHistograms]

    def __call__(self, base: SoftLabels) -> SoftLabels:
        """Return `base` with as many bins and the same distance."""
        return replace(base, histograms=self.partitions(base.histograms.bins, base.histograms.distance))


def _half_threshold(base: SoftLabels) -> SoftLabels:
    return replace(base, threshold=base.threshold / 2.0)


def _threshold_for_m_tests(base: SoftLabels) -> SoftLabels:
    return replace(base, threshold=base.threshold - 2.0 * base.scale * math.log(2.0))


def leak(mechanism: SoftLabels) -> float:
    """Probability that one test passes although the distance is 0: ``G(w)``.

    ``(4 sqrt(u) - u) / 6`` with the printed threshold and ``(4 u - u^2) / 6`` with the corrected one, u = delta/(4m).
    """
    return tail(mechanism.threshold, mechanism.scale)


def total_leak(mechanism: SoftLabels) -> float:
    """Most that a run gives away of a vote that decides: ``1 - (1 - leak)^(T + 2)``.

    Valid because: at most T + 2 thresholds are drawn and used. Under each the first test of an unstable histogram
    either passes, with probability at most `leak`, or fails, and then the threshold is drawn anew.
    """
    return -math.expm1((mechanism.cutoff + 2) * math.log1p(-leak(mechanism)))


def run_cost(mechanism: SoftLabels) -> float:
    """Pure loss of a run where no vote decides and distances move by at most 1: ``(2 T + 2.5) / lambda``.

    T queries that pass the second test end an epoch each, at 2/lambda; then one fails both, at 2.5/lambda. Queries that
    fail both cost 2.5/lambda for two units of the counter, so no other run costs more.
    """
    return (2.0 * mechanism.cutoff + 2.5) / mechanism.scale


#: Of Algorithms 6 and 8 with the corrected threshold.
MUTANTS: dict[str, Mutant[SoftLabels]] = tabulate_mutants(
    Mutant(
        "printed_threshold",
        _half_threshold,
        unbounded,
        "violation",
        "lambda ln(4m/delta) for twice that, as the document prints it: a deciding vote is given away with probability "
        "(4 sqrt(u) - u)/6 a test, u = delta/(4m)",
    ),
    Mutant(
        "threshold_forgets_2m_tests",
        _threshold_for_m_tests,
        unbounded,
        "violation",
        "2 lambda ln(2m/delta): twice the leak, more than its share delta/2 if T + 2 > 1.5 m",
    ),
    Mutant(
        "one_threshold_for_both_tests",
        ChangedStepTwin("refreshes_between", False),
        TimesEpsilon(1.2),
        "violation",
        "not refreshed between the tests: up to the first failure 3/lambda for 2.5/lambda, after four passes or more",
    ),
    Mutant(
        "double_failure_costs_one",
        ChangedStepTwin("bottom_costs", 1),
        unbounded,
        "violation",
        "T + 1 queries can fail both tests: 2 T + 2 deciding votes are tested, for T + 2",
    ),
    Mutant(
        "threshold_not_refreshed_after_bot",
        ChangedStepTwin("refreshes_after_bottom", False),
        None,
        "benign",
        "one threshold for the second test and what follows: costs less",
    ),
    Mutant(
        "second_noise_reused",
        ChangedStepTwin("reuses_noise", True),
        TimesEpsilon(2.0),
        "violation",
        "the same draw in both tests: a query costs 2/lambda for 1/lambda where the distances move against each other",
    ),
    Mutant(
        "flag_released",
        ChangedStepTwin("shows_flag", True),
        TimesEpsilon(1.0),
        "benign",
        "the value shows which test it passed",
    ),
)

#: Of the sparse vector of the distances; by the names of its bank.
TESTS: dict[str, Mutant[SoftLabels]] = tabulate_mutants(
    Mutant(
        "m4_no_threshold_noise",
        ChangedStepTwin("noisy_threshold", False),
        None,
        "violation",
        "a threshold without noise: passed tests are no longer free, each test costs up to 1/(2 lambda)",
    ),
    Mutant(
        "m7_no_cutoff",
        ChangedStepTwin("stops", False),
        None,
        "violation",
        "the counter does not end the run: up to 1/lambda for each query that fails both tests",
    ),
)

#: Of the partitions.
PARTITIONS: dict[str, Mutant[SoftLabels]] = tabulate_mutants(
    Mutant(
        "data_dependent_range",
        OtherPartitionTwin(DataDependentRange),
        unbounded,
        "violation",
        "bins between the least and the largest score: one vote moves all midpoints",
    ),
    Mutant(
        "rounded_to_nearest",
        OtherPartitionTwin(RoundedToNearest),
        None,
        "benign",
        "bins by rounding, public all the same",
    ),
    Mutant("end_half_bins_kept", OtherPartitionTwin(EndHalfBinsKept), None, "benign", "dropped votes are counted"),
    Mutant(
        "bins_centred_on_the_mean",
        OtherPartitionTwin(BinsCentredOnTheMean),
        unbounded,
        "violation",
        "a partition from the data: one vote moves all midpoints",
    ),
    Mutant(
        "mean_released",
        OtherPartitionTwin(MeanOfScoresReleased),
        unbounded,
        "violation",
        "the average of the votes for the midpoint",
    ),
)
