"""Document 004, section 5: from weak quality to private soft labels that are accurate (Lemma 5.13, Theorem 5.14).

The stability of the learners here is the one that holds for every distribution of labels, unless a case says that it is
the distribution's own: the document's definition can be read either way. What Lemma 5.13 leaves out (k is to be
72 ln(2/beta') at least, and the output is not strictly inside of the range that strong quality asks for) is not called
an error: the first holds wherever lambda is at least 10.74, as it is here, and is checked.

Two things that are listed as mistakes cost no accuracy: a window of half the width, at a query of weak quality, and
chunks for T in place of 2T. A vote is in the window with probability 63/64 at least, where the proofs count on 3/4, so
the votes agree all the same. Each breaks a step of the proof, and that is what is claimed of it, beside the accuracy
that stands.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.audits.accuracy import Exactly, Quantile, Setting
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Erratum,
    Source,
    accuracy,
    as_corrected,
    as_printed,
    broken,
    entry,
    exact,
    inequality,
    scaling,
)
from auditor.datasets import Pair
from auditor.privacy.guarantees import ApproxDP
from experiments.common import REPLACE
from mechanisms.learning.concentration_window import enough_chunks
from mechanisms.selection.free_tops import required_margin, tail
from mechanisms.teacher_ensembles.soft_label_votes import (
    MUTANTS,
    FreshSoftLabels,
    LargestLabelError,
    OneSoftLabel,
    VotePopulation,
    bins_of,
    failure,
    histograms,
    lemma_chunks,
    printed_chunks,
    stable_distance,
)
from mechanisms.teacher_ensembles.soft_labels import corrected_threshold, noise_scale

_EPSILON, _DELTA, _BETA = 1.0, 0.01, 0.1

# --------------------------------------------------------------------------------------- a query


@dataclass(frozen=True)
class SoftLabelQuery:
    """What Lemma 5.13 and Theorem 5.14 set for a population.

    Parameters
    ----------
    population : VotePopulation
        The chunks, and the learner.
    alpha : float
        Its stability, as the statement is to be read.
    nu : float
        Quality; gamma is ``16 alpha sqrt(2 n') + nu``.
    """

    population: VotePopulation
    alpha: float
    nu: float

    @property
    def spread(self) -> float:
        """``alpha sqrt(2 n')``."""
        return self.alpha * math.sqrt(2.0 * self.population.size)

    @property
    def width(self) -> float:
        """Gamma, before it is raised to 1 over an integer."""
        return 16.0 * self.spread + self.nu

    def bound(self, factor: float = 8.0) -> float:
        """``factor alpha sqrt(2 n') + nu/2``, with alpha raised with gamma; rounded up by 1e-12 of it."""
        raised = 1.0 / bins_of(self.width) - self.width
        return ((factor * self.spread + 0.5 * self.nu) + 0.5 * raised) * (1 + 1e-12)


def _everywhere_query(population: VotePopulation, nu: float) -> SoftLabelQuery:
    return SoftLabelQuery(population, population.alpha_everywhere, nu)


def _lemma(query: SoftLabelQuery, bar: float, bins: int | None = None) -> FreshSoftLabels:
    """The classifier of Lemma 5.13: lambda and w for one query at (1, 0.01)."""
    scale = noise_scale(_EPSILON, _DELTA, 1)
    chunks = lemma_chunks(scale, bar * scale, _BETA)
    return FreshSoftLabels(bins_of(query.width) if bins is None else bins, chunks, scale, bar * scale)


@entry(
    "004/weak_to_strong",
    title="Weak quality becomes strong quality",
    source=Source("004", "Lemma 5.13, Definitions 5.11 and 5.12"),
)
def strong() -> Iterator[Draft]:
    """The lemma at means of labels, both thresholds; its steps; and what a released mean of the votes gives away."""
    corrected, size = corrected_threshold(1.0, _DELTA, 1), 1 << 16
    own = VotePopulation(0.02, size)
    width = 16.0 * own.alpha * math.sqrt(2.0 * size)
    queries = (
        ("mean_of_labels", _everywhere_query(VotePopulation(0.02, size), 1 / 16)),
        ("almost_no_ones", _everywhere_query(VotePopulation(1e-4, size), 1 / 16)),
        ("almost_all_ones", _everywhere_query(VotePopulation(1 - 1e-4, size), 1 / 16)),
        ("own_stability", SoftLabelQuery(own, own.alpha, 1 / 25 - width)),
    )
    for case, query in queries:
        yield _claim_within_bound(case, query, _lemma(query, corrected))
    yield _claim_within_bound("printed_threshold", queries[0][1], _lemma(queries[0][1], 0.5 * corrected))
    yield inequality(
        lambda: [(f"beta' = {b:g}", tail(math.sqrt(5.0) * math.log(2 / b), 1.0), 0.5 * b) for b in _BETAS],
        statement="the noises exceed sqrt(5) lambda ln(2/beta') with probability beta'/2 at most",
        level="L4",
        case="noise",
    )
    yield inequality(
        lambda: [(f"beta' = {b:g}", float(enough_chunks(b / 2)), lemma_chunks(10.74, 0.0, b)) for b in _BETAS],
        statement="k is at least 72 ln(2/beta') where lambda is at least 10.74, whatever w is",
        level="L4",
        case="enough_votes",
        derived=True,
    )
    yield _size_of_a_chunk(1, "alpha and nu fall as 1/n' and n'^(-1/2)")
    yield from _claim_released_labels()
    yield from _half_window(queries[0][1])


_BETAS = (0.5, 0.1, 1e-2, 1e-4, 1e-8)
#: Sizes at which gamma, 32/sqrt(n'), is 1/4, 1/8, 1/16 and 1/32.
_FINE = (float((32 * 4) ** 2), float((32 * 8) ** 2), float((32 * 16) ** 2), float((32 * 32) ** 2))


def _fine_bins(points: int) -> Any:
    """Settings at sizes of a chunk: mean of labels with q = nu/4, and with two points one of no quality beside it."""

    def build(size: float) -> Setting:
        nu = 16.0 / math.sqrt(size)
        q = 0.25 * nu
        population = VotePopulation(q, int(size), (0.0, 0.5 - 0.5 * q)[:points], (1.0, 0.5)[:points])
        query = _everywhere_query(population, nu)
        chunks = printed_chunks(_EPSILON, _DELTA, _BETA, points, 1)
        scale = noise_scale(_EPSILON, _DELTA, 1)
        mechanism = FreshSoftLabels(bins_of(query.width), chunks, scale, corrected_threshold(scale, _DELTA, points))
        return Setting(mechanism, population, LargestLabelError(mechanism, population))

    return build


def _size_of_a_chunk(points: int, note: str = "") -> Draft:
    """Claim that the error falls as ``n'^(-1/2)`` in the size of a chunk."""
    return scaling(
        _fine_bins(points),
        parameter="n'",
        at=_FINE,
        exponent=-0.5,
        measure=Quantile(1.0 - _BETA),
        criterion=False,
        curve=lambda n: 16.0 / math.sqrt(n) * (1 + 1e-9),
        draws={"smoke": 2_000, "standard": 20_000},
        controls={"the bins of a chunk of a quarter of the size": lambda n: _fine_bins(points)(n / 4)},
        case="size_of_a_chunk",
        note=note,
    )


def _claim_within_bound(
    case: str, query: SoftLabelQuery, mechanism: FreshSoftLabels, factor: float = 8.0, **options: Any
) -> Draft:
    """The label is there, and within the bound, with probability 1 - beta."""
    at_most = query.bound(factor)
    known = failure(mechanism, query.population, at_most) if len(query.population.queries) == 1 else None
    # The exact rate is computed to 1e-12; rounding may leave it below 0.
    return accuracy(
        mechanism,
        query.population,
        LargestLabelError(mechanism, query.population),
        at_most=at_most,
        beta=_BETA,
        exact=None if known is None else min(max(known, 0.0), 1.0),
        case=case,
        **options,
    )


def _claim_released_labels() -> Iterator[Draft]:
    base, claim = OneSoftLabel(_EPSILON, _DELTA, 4), ApproxDP(_EPSILON, _DELTA)
    clear, tied = np.full(1000, 0.3), np.array([0.3, 0.3, 0.3, 0.8, 0.8])
    pairs = {
        "sample_mean_output": Pair(
            clear, _replace_first(clear, 0.05), "a thousand votes of 0.3, the first becomes 0.05"
        ),
        "threshold_test_skipped": Pair(
            tied, _replace_first(tied, 0.8), "three votes of 0.3 to two of 0.8, and two to three"
        ),
    }
    for name, pair in pairs.items():
        yield exact(base, claim, pair, case=f"pair_of_{name}", relation=REPLACE)
        yield broken(MUTANTS[name], base, pair, guarantee=claim, relation=REPLACE)


def _replace_first(votes: np.ndarray[Any, np.dtype[np.float64]], value: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    changed = votes.copy()
    changed[0] = value
    return changed


#: Places of a window, between whole numbers of any half-bin; arbitrary.
_PLACES = (np.arange(2_000) + 1 / math.pi) / 2_000


def _split_windows(factor: float) -> list[Row]:
    """How many of 2,000 windows are in no bin of either histogram, with ``gamma = factor alpha sqrt(2 n') + nu``.

    A vote is put into each half-bin that a window meets; the histograms are the mechanism's.
    """
    rows = []
    for spread, nu in itertools.product((1e-3, 1e-2, 0.03), (0.0, 1e-3)):
        bins = bins_of(factor * spread + nu)
        ends = np.clip(_PLACES[:, None] + 4.0 * spread * np.array([-1.0, 1.0]), 0.0, 1.0)
        first, last = np.minimum(np.floor(ends * 2 * bins), 2 * bins - 1).T[:, :, None]
        met = (np.arange(2 * bins) >= first) & (np.arange(2 * bins) <= last)
        fullest = np.maximum(*(found.max(axis=1) for found in histograms(met.astype(np.int64))))
        split = int((fullest < met.sum(axis=1)).sum())
        rows.append((f"alpha sqrt(2n') = {spread:g}, nu = {nu:g}, {bins} bins", float(split), 0.0))
    return rows


def _half_window(query: SoftLabelQuery) -> Iterator[Draft]:
    """What is lost, and what is not, with gamma = 8 alpha sqrt(2 n') + nu."""

    statement = "a window of width 8 alpha sqrt(2 n') lies in one bin of the plain or of the shifted histogram"
    yield inequality(lambda: _split_windows(16.0), statement=statement, level="L4", case="shifted_bin")
    yield inequality(
        lambda: _split_windows(8.0),
        statement=statement,
        level="L4",
        case="half_window",
        expected="deviation",
        is_mutant=True,
        note="the proof of Theorem 5.14 needs it for queries of no quality",
    )
    half = bins_of(8.0 * query.spread + query.nu)
    note = "of no harm at a query of weak quality: narrower bins are more accurate, and votes still agree"
    yield _claim_within_bound(
        "half_window__labels", query, _lemma(query, corrected_threshold(1.0, _DELTA, 1), half), note=note
    )


# ------------------------------------------------------------------------------- the main theorem

_ERR14 = Erratum(
    "ERR-14",
    "false",
    "Theorem 5.14: every label is within 8 alpha sqrt(2n') + nu/2 of the expected prediction, "
    "queries that are not of weak quality included.",
    fails="where the window straddles the edge of a bin, the label can be the midpoint of the bin that the expectation "
    "is not in: with n' = 1 and predictions 1/2 - 1e-6 + z/64 it is off by 0.1289 where 0.125 is stated",
    correction="12 alpha sqrt(2n') + nu/2: the label is the midpoint of a bin that the window of 4 alpha sqrt(2n') "
    "meets",
)


@entry(
    "004/slq_main",
    title="End-to-end accuracy of soft labels",
    source=Source("004", "Theorem 5.14"),
    errata=[_ERR14],
)
def soft_labels() -> Iterator[Draft]:
    """The theorem as printed and corrected, at a learner of one label and at one of many."""
    yield from _claim_straddling_votes()
    yield from _streams()
    yield from _chunks()
    yield from _main_exponents()


def _algorithm_6(query: SoftLabelQuery, cutoff: int, bar: float = 1.0, bins: int | None = None) -> FreshSoftLabels:
    """Algorithm 6 at the theorem's gamma and k; ``bar`` is the part of the corrected threshold."""
    queries = len(query.population.queries)
    scale = noise_scale(_EPSILON, _DELTA, cutoff)
    chunks = printed_chunks(_EPSILON, _DELTA, _BETA, queries, cutoff)
    found = bins_of(query.width) if bins is None else bins
    return FreshSoftLabels(found, chunks, scale, bar * corrected_threshold(scale, _DELTA, queries), cutoff)


def _claim_straddling_votes() -> Iterator[Draft]:
    """One label a chunk, predictions on either side of 1/2: the fuller bin is the one without the expectation."""
    for q in (0.25, 0.4):
        query = _everywhere_query(VotePopulation(q, 1, (0.5 - 1e-6,), (1 / 64,)), 0.0)
        for case, part in (("", 1.0), ("_printed_threshold", 0.5)):
            name = f"one_label_q_{round(100 * q)}{case}"
            mechanism = _algorithm_6(query, 1, part)
            yield as_printed("ERR-14", _claim_within_bound(name, query, mechanism, expected="deviation"))
            yield as_corrected("ERR-14", _claim_within_bound(f"{name}_corrected", query, mechanism, 12.0, derived=True))


def _streams() -> Iterator[Draft]:
    """Twenty queries, three of no quality: half of the votes are on either side of an edge, and cost a test each."""
    stream = (0, 1, 2, *(0, 1) * 4, 2, *(0, 1) * 3, 2, 0)
    query = _everywhere_query(VotePopulation(0.02, 1 << 16, (0.0, 0.98, 0.49), (1.0, 0.02, 0.5), stream), 1 / 16)
    cutoff = stream.count(2)
    few = {"smoke": 2_000, "standard": 20_000}
    for case, part in (("twenty_queries", 1.0), ("twenty_queries_printed_threshold", 0.5)):
        yield _claim_within_bound(case, query, _algorithm_6(query, cutoff, part), draws=few)
    yield _claim_within_bound(
        "twenty_queries_corrected", query, _algorithm_6(query, cutoff), 12.0, derived=True, draws=few
    )
    large = _everywhere_query(VotePopulation(0.005, 1 << 22), 1 / 128)
    yield _claim_within_bound("four_million_labels", large, _algorithm_6(large, 1))
    chunks = printed_chunks(_EPSILON, _DELTA, _BETA, 1, 1)
    wide = bins_of(16.0 * large.spread * math.sqrt(chunks) + large.nu)
    yield _claim_within_bound(
        "gamma_with_n",
        large,
        _algorithm_6(large, 1, bins=wide),
        expected="deviation",
        is_mutant=True,
        note="n for n' in gamma: bins are sqrt(k) as wide as they should be",
    )


def _chunks() -> Iterator[Draft]:
    """Whether a third of the votes is as far from a tie as the tests need; what is printed for 2T, and for T."""

    def distances(factor: float) -> list[Row]:
        rows = []
        for epsilon, queries, cutoff in ((0.1, 1, 1), (1.0, 1, 1), (1.0, 100, 10), (0.5, 1000, 100), (2.0, 1000, 30)):
            chunks = printed_chunks(epsilon, _DELTA, _BETA, queries, cutoff, factor)
            needed = stable_distance(epsilon, _DELTA, _BETA, queries, cutoff)
            rows.append((f"eps = {epsilon:g}, m = {queries}, T = {cutoff}", needed, chunks / 3.0 - 1.0))
        return rows

    statement = "k/3 - 1 is at least the d of Theorem 5.6"
    yield inequality(lambda: distances(2.0), statement=statement, level="L4", case="chunks")
    yield inequality(
        lambda: distances(1.0),
        statement=statement,
        level="L4",
        case="chunks_with_T_for_2T",
        expected="deviation",
        is_mutant=True,
        note="too few chunks for the d that the proof uses",
    )
    query = _everywhere_query(VotePopulation(0.02, 1 << 16), 1 / 16)
    fewer = printed_chunks(_EPSILON, _DELTA, _BETA, 1, 1, factor=1.0)
    usual = _algorithm_6(query, 1)
    mechanism = FreshSoftLabels(usual.bins, fewer, usual.scale, usual.bar)
    note = "of no harm: that d is about twice what a test needs, and nearly all votes agree, not two thirds"
    yield _claim_within_bound("chunks_with_T_for_2T__labels", query, mechanism, note=note)


def _main_exponents() -> Iterator[Draft]:
    queries, size = 1000, 1 << 16

    def examples(epsilon: float, cutoff: int) -> float:
        """Examples with which m queries on which all votes agree are answered with probability 1 - beta, exactly."""
        margin = corrected_threshold(1.0, _DELTA, queries) + required_margin(queries, _BETA)
        return size * (1.0 + margin * noise_scale(epsilon, _DELTA, cutoff))

    yield _size_of_a_chunk(2)
    yield scaling(
        lambda t: examples(_EPSILON, int(t)),
        parameter="T",
        at=(1, 4, 16, 64, 256),
        exponent=0.5,
        measure=Exactly("number of examples", formula=True),
        criterion=False,
        curve=lambda t: size * float(printed_chunks(_EPSILON, _DELTA, _BETA, queries, int(t))),
        case="cutoff",
    )
    yield scaling(
        lambda e: examples(e, 1),
        parameter="eps",
        at=(0.1, 0.3, 1.0, 3.0),
        exponent=-1.0,
        measure=Exactly("number of examples", formula=True),
        criterion=False,
        curve=lambda e: size * float(printed_chunks(e, _DELTA, _BETA, queries, 1)),
        case="epsilon",
    )
