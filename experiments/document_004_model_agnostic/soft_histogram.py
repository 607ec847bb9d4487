"""Document 004, section 5: the two partitions of [0, 1], and one query over both."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, broken, deviating, entry, inequality, reference
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE
from experiments.document_004_model_agnostic._soft_votes import (
    HALVES,
    HIGH,
    LOW,
    LOW_IN,
    SAFE,
    moves,
    one_query_of,
    votes_change,
)
from mechanisms.base.mechanism import FloatArray, IntArray
from mechanisms.teacher_ensembles.soft_ensembles import EchoEnsemble
from mechanisms.teacher_ensembles.soft_histogram import ScoreHistograms, is_stable, padded
from mechanisms.teacher_ensembles.soft_label_mutants import PARTITIONS
from mechanisms.teacher_ensembles.soft_labels import one_query
from mechanisms.teacher_ensembles.vote_distance import all_votes, gap_distance


@entry(
    "004/soft_hist",
    title="Plain and half-shifted partitions of [0, 1]",
    source=Source("004", "Definitions 5.1 to 5.3 and 5.5"),
)
def histograms() -> Iterator[Draft]:
    """Edges of bins, how far a distance moves, and one query over both partitions."""
    yield inequality(
        _edges, statement="a score is in the bin that the definition says", relation="==", level="L2", case="edges"
    )
    yield inequality(
        lambda: [(case, gap, 2.0) for case, gap, _ in moves()],
        statement="the gap distance moves by at most 2 when a vote changes",
        level="L2",
        case="gap_distance",
    )
    yield inequality(
        lambda: [(case, safe, 1.0) for case, _, safe in moves()],
        statement="half of the gap, rounded up, moves by at most 1",
        level="L2",
        case="safe_distance",
    )
    yield inequality(
        _stable_otherwise,
        statement="a histogram is d-stable, for a natural number d, if and only if its distance is d or more: "
        "histograms of which one holds alone",
        relation="==",
        level="L2",
        case="d_stable",
        derived=True,
        note="Definition 5.5, on all histograms of so many votes and for all d; a single bin has an empty second one",
    )
    yield inequality(
        _least_distances,
        statement="the distance of a d-stable histogram is above d - 1, for d that are no natural numbers too",
        relation="<",
        level="L2",
        case="d_stable_between",
        derived=True,
    )
    # The one vote that changes leaves a bin for the other, and the shifted bin.
    votes = [LOW_IN] * 4 + [LOW] * 5 + [HIGH]
    pair = votes_change("a vote leaves a bin", [*votes, LOW_IN], [*votes, HIGH])
    one = one_query(EchoEnsemble(), HALVES, 0.5, 2.0)
    yield from reference(one, PureDP(2.0), pair, level="L2", case="one_query", relation=REPLACE)
    yield from _other_partitions()


def _other_partitions() -> Iterator[Draft]:
    base = one_query(EchoEnsemble(), SAFE, 1.0, 2.0)
    # Eleven scores in one bin, and one at the end that moves within its bin.
    pair = votes_change("the least score changes", [0.6] * 11 + [0.1], [0.6] * 11 + [0.2])
    for name in ("data_dependent_range", "bins_centred_on_the_mean", "mean_released"):
        yield broken(PARTITIONS[name], base, pair, relation=REPLACE, level="L2")
    # 0.6 is in [1/2, 3/4), but nearer to 1/2; of the scores near 0 a shifted bin of half the width holds ten.
    yield deviating(PARTITIONS["rounded_to_nearest"], base, one_query_of([0.6] * 12))
    near_zero = one_query_of([0.05] * 5 + [0.1] * 4 + [0.26] * 6 + [0.3] * 3)
    yield deviating(PARTITIONS["end_half_bins_kept"], base, near_zero)


def _histograms() -> Iterator[tuple[str, IntArray, FloatArray]]:
    """All histograms of some numbers of bins and votes, and the distances that Algorithm 8 tests."""
    for bins, votes in ((1, 9), (2, 12), (3, 12), (4, 9), (6, 6)):
        counts = np.array([[votes]]) if bins == 1 else all_votes(votes, bins)
        yield f"{bins} bins, {votes} votes", counts, gap_distance(padded(counts)).astype(np.float64)


def _stable_otherwise() -> list[Row]:
    return [
        (f"{case}, d = {d}", float((is_stable(counts, d) != (distances >= d)).sum()), 0.0)
        for case, counts, distances in _histograms()
        for d in range(14)
    ]


def _least_distances() -> list[Row]:
    rows = []
    for case, counts, distances in _histograms():
        for d in (0.25, 0.5, 1.0, 1.5, 2.75, 4.5):
            stable = is_stable(counts, d)
            if stable.any():
                rows.append((f"{case}, d = {d:g}", d - 1.0, float(distances[stable].min())))
    return rows


def _edges() -> list[Row]:
    """The bin of a score by itself, by the definition: numbered from 1, 0 for none."""
    rows = []
    for bins, shifted, expected in (
        (4, False, {0.0: 1, 0.25: 2, 0.5: 3, 0.75: 4, 1.0: 4, 0.125: 1, 0.875: 4}),
        (4, True, {0.0: 0, 0.125: 1, 0.375: 2, 0.25: 1, 0.625: 3, 0.875: 0, 1.0: 0}),
        # 0.3 / 0.1 is 2.9999999999999996, 0.1 * 3 is 0.30000000000000004, and 0.7 / 0.1 is 6.999999999999999.
        (10, False, {0.3: 4, 0.1 * 3: 4, 0.7: 8, 0.6: 7, 0.1: 2, 1.0: 10}),
        (10, True, {0.05: 1, 0.15: 2, 0.3: 3, 0.95: 0, 0.85: 9}),
    ):
        of = ScoreHistograms(bins).shifted if shifted else ScoreHistograms(bins).plain
        for score, bin_ in expected.items():
            counts = of(np.array([[score]]))[0]
            found = float(np.argmax(counts) + 1 if counts.any() else 0)
            rows.append((f"{score!r}, gamma = 1/{bins}, {'shifted' if shifted else 'plain'}", found, float(bin_)))
    return rows
