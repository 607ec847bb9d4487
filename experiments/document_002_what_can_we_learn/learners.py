"""Document 002, section 3.1: the generic private learner, agnostic and on consistent data.

The document states sample sizes as O(.). The constants of the agnostic claims are those that a Hoeffding argument gives
(`agnostic_bound`), or the 6 of the printed proof; those of the consistent case are of `realizable_bound`. Failure
probabilities are exact: of the instances with identical bad hypotheses by a sum over a binomial distribution, of those
with independent ones by quadrature.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    broken,
    broken_and_deviating,
    conformity,
    deviating,
    entry,
    exact,
    inequality,
    mutant,
    reference,
)
from auditor.datasets import Pair
from auditor.privacy.exact import curve
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE
from experiments.document_002_what_can_we_learn._learning import flipped_last, learns, records, replaced_last, up
from experiments.document_002_what_can_we_learn._sample_sizes import E2, agnostic_sizes, realizable_sizes
from mechanisms.learning.agnostic_learner import AgnosticLearner, LabelsAt, level_of_flip
from mechanisms.learning.agnostic_mutants import MUTANTS, CumulativeSumInFloat32
from mechanisms.learning.fresh_learner import FiniteExampleDistribution, FreshLearner, agnostic_bound
from mechanisms.learning.hypotheses import (
    HypothesisClass,
    IntervalFunctions,
    ParityFunctions,
    PointFunctions,
    ThresholdFunctions,
)

_ONE = PureDP(1.0)
#: Hypotheses whose weights sum to 1 % and less of the mass where each is below 2^-24 of it; each call sums all of them,
#: so draws are few.
_MANY = PointFunctions(1 << 17)
_FEW = {"smoke": 20_000, "standard": 200_000}

# ------------------------------------------------------------------------------------------ pairs


def _zeros(n: int) -> Pair:
    """Records (0, 0), of which the last one is flipped: the hypothesis that contains point 0 gains, all others lose."""
    return flipped_last(records((0, 0, n)), f"{n} records (0, 0), the last label flipped")


def _favoured_pair() -> Pair:
    """The same among 256 hypotheses, where one record of six contradicts the others, which favour point 0."""
    return flipped_last(records((0, 1, 5), (0, 0, 1)), "five records (0, 1) and one (0, 0), whose label is flipped")


def _cases() -> Iterator[tuple[str, HypothesisClass, Pair]]:
    """Classes and pairs; the event that tells has probability 0.028 to 0.076, but in ``points_2_balanced``."""
    yield "points_2", PointFunctions(2), _zeros(6)
    yield "points_16", PointFunctions(16), _zeros(1)
    yield "points_256", PointFunctions(256), _favoured_pair()
    balanced = flipped_last(records((0, 1, 1), (0, 0, 1)), "records (0, 1) and (0, 0), whose label is flipped")
    yield "points_2_balanced", PointFunctions(2), balanced
    yield "thresholds_4", ThresholdFunctions(4), _zeros(3)
    high = flipped_last(records((16, 0, 5)), "five records (16, 0), the last label flipped")
    yield "parities_5_bits", ParityFunctions(5), high


# --------------------------------------------------------------------------------- agnostic learner


@entry(
    "002/exp_mech_generic_agnostic",
    title="Generic agnostic learner by the exponential mechanism",
    source=Source("002", "section 3.1, Lemma 3.3, Theorem 3.4"),
    errata=[E2],
)
def agnostic() -> Iterator[Draft]:
    """Points, thresholds and parities; one label is flipped, after which the database may be inconsistent."""
    for case, hypotheses, pair in _cases():
        learner = AgnosticLearner(hypotheses, 1.0)
        yield from reference(learner, _ONE, pair, case=case, relation=REPLACE)
    yield inequality(
        _levels,
        statement="exact level of a flip = max{eps - ln(1 + p (e^eps - 1)), ln(1 + p (e^eps - 1))}",
        relation="==",
        case="level_of_a_flip",
        derived=True,
    )
    yield from _weights()
    yield from _arithmetic()
    yield from _classes_from_data()
    yield from agnostic_sizes()


def _levels() -> list[Row]:
    """The catalogue's formula against enumeration: K = 2 to 256, n = 1 to 20, all records (0, 0) or half of them."""
    rows: list[Row] = []
    for k in (2, 3, 16, 256):
        for n in range(1, 21):
            for ones in (0, n // 2):
                data = records((0, 1, ones), (0, 0, n - ones))
                pair, learner = flipped_last(data, ""), AgnosticLearner(PointFunctions(k), 1.0)
                first = learner.law(pair.x)
                known = curve(first, learner.law(pair.y)).epsilon(0.0)
                rows.append((f"K = {k}, n = {n}, {ones} ones", known, level_of_flip(first.probabilities[0], 1.0)))
    return rows


def _weights() -> Iterator[Draft]:
    """Mutants with other weights or another noise."""
    sixteen, eight = AgnosticLearner(PointFunctions(16), 1.0), AgnosticLearner(PointFunctions(8), 1.0)
    one, two = _zeros(1), _zeros(2)
    yield broken(MUTANTS["half_missing"], sixteen, one, relation=REPLACE)
    yield deviating(MUTANTS["half_missing"], sixteen, two)
    rates = MUTANTS["score_over_n"]
    yield exact(
        rates.build(sixteen), PureDP(0.5), two, case=rates.name, relation=REPLACE, note=f"two records; {rates.note}"
    )
    yield deviating(rates, sixteen, _zeros(6))
    yield from broken_and_deviating(MUTANTS["sign_flipped"], sixteen, two, relation=REPLACE)
    yield from broken_and_deviating(MUTANTS["noisy_min_lap_1_over_eps"], eight, one, relation=REPLACE)
    few, four = AgnosticLearner(PointFunctions(4), 1.0), _zeros(4)
    yield from broken_and_deviating(MUTANTS["score_on_random_subset"], few, four, relation=REPLACE)
    intervals = AgnosticLearner(IntervalFunctions(4), 1.0)
    counted = MUTANTS["parameters_with_multiplicity"]
    yield from broken_and_deviating(counted, intervals, four, relation=REPLACE)


def _arithmetic() -> Iterator[Draft]:
    """Mutants that compute or draw badly."""
    two = AgnosticLearner(PointFunctions(2), 1.0)
    # At eps = 4 a hypothesis with 372 mistakes has nearly the smallest weight there is, and with 373 it has none.
    four = AgnosticLearner(PointFunctions(2), 4.0)
    edge = replaced_last(
        records((0, 0, 372), (1, 0, 373)), 0, 0, "two hypotheses with 372 and 373 mistakes change places"
    )
    yield from broken_and_deviating(MUTANTS["exp_underflow"], four, edge, relation=REPLACE)
    ties = flipped_last(records((0, 1, 1), (0, 0, 1)), "one mistake each, against none and two")
    yield broken(MUTANTS["argmax_on_ties"], two, ties, relation=REPLACE)
    lost = replaced_last(
        records((0, 0, 373), (1, 0, 373)), 0, 0, "373 mistakes each, where both weights are 0, against 374 and 372"
    )
    yield broken(MUTANTS["argmax_on_ties"], four, lost, asked="after_underflow", relation=REPLACE)
    reused = MUTANTS["gumbel_noise_reused"]
    crossing = flipped_last(records((0, 1, 3)), "a lead of three records, against one of a single record")
    yield broken(reused, two, crossing, relation=REPLACE)
    yield from _single_precision()


def _single_precision() -> Iterator[Draft]:
    """Cumulative sums in float32 over 2^17 points, of which the first two lead all others by 32 records.

    Where the leaders tie their weights sum to 2 and all others, of weight e^-16, are lost; where they do not the others
    are kept, with 1.1 % of the mass: an infinite level. What is released is which of the leaders was chosen, or that
    another one was. By 34 records the others are lost on both sides: the distribution is wrong, and nothing leaks.
    """
    found, many = MUTANTS["float32_cumulative_sum"], AgnosticLearner(_MANY, 1.0)
    exactly, wrong = LabelsAt(many, (0, 1)), LabelsAt(CumulativeSumInFloat32(_MANY, 1.0), (0, 1))
    lost, kept = (
        flipped_last(records((0, 1, lead), (1, 1, lead)), f"two of 2^17 points lead by {lead} records")
        for lead in (34, 32)
    )
    rare = {"smoke": 60_000, "standard": 200_000}
    yield mutant(found.name, wrong, _ONE, kept, relation=REPLACE, draws=rare, note=found.note)
    yield conformity(wrong, lost, reference=exactly, case=found.name, expected="deviation", draws=_FEW, note=found.note)


# ----------------------------------------------------------------------- classes that depend on data


def _classes_from_data() -> Iterator[Draft]:
    four, many = AgnosticLearner(PointFunctions(4), 1.0), AgnosticLearner(PointFunctions(64), 1.0)
    occurs = replaced_last(records((0, 1, 1), (1, 1, 1)), 0, 1, "the only record at point 1 goes to point 0")
    yield broken(MUTANTS["sample_dependent_class"], four, occurs, relation=REPLACE)
    contradicted = _zeros(2)
    yield broken(MUTANTS["sample_dependent_class__consistent"], four, contradicted, relation=REPLACE)
    appears = replaced_last(records((63, 0, 4)), 0, 0, "point 0 appears in the sample")
    yield broken(MUTANTS["deduplicated_on_sample"], many, appears, relation=REPLACE)


# --------------------------------------------------------------------------------- consistent data


@entry(
    "002/exp_mech_realizable",
    title="The generic learner on consistent data",
    source=Source("002", "remark after Theorem 3.4"),
)
def realizable() -> Iterator[Draft]:
    """The same learner, on a database that is consistent with a point and one that is with none."""
    learner = AgnosticLearner(PointFunctions(16), 1.0)
    pair = flipped_last(records((0, 1, 3), (1, 0, 1)), "consistent with point 0, against a second point with label 1")
    yield from reference(learner, _ONE, pair, case="consistent_with_a_point", relation=REPLACE)
    four, flip = AgnosticLearner(PointFunctions(4), 1.0), _zeros(4)
    yield from broken_and_deviating(MUTANTS["eps_halved"], four, flip, relation=REPLACE)
    yield from realizable_sizes()


# ----------------------------------------------------------------------------------- another class

#: Sixteen points, uniformly; the concept is the interval 4, .. 11, the hypotheses are thresholds, of which the best one
#: is wrong at the four points from 12 on.
_CONCEPT = (np.arange(16) >= 4) & (np.arange(16) < 12)
_GRID = np.stack([np.arange(16), _CONCEPT], axis=1).astype(np.int64)


@entry(
    "002/exp_mech_improper",
    title="Hypothesis class other than the concept class",
    source=Source("002", "remark and 'Implications' after Theorem 3.4"),
)
def improper() -> Iterator[Draft]:
    """Intervals are learned by thresholds: the error is close to the least one of a threshold, not to 0."""
    learner = AgnosticLearner(ThresholdFunctions(4), 1.0)
    pair = replaced_last(records((1, 1, 2), (3, 0, 2)), 0, 1, "an interval's labels, the last record replaced")
    yield from reference(learner, _ONE, pair, case="interval_by_thresholds", relation=REPLACE)

    alpha, beta, epsilon = 0.1, 0.05, 0.5
    hypotheses = ThresholdFunctions(16)
    examples = FiniteExampleDistribution(hypotheses, _GRID, np.full(16, 1.0 / 16.0))
    size = up(agnostic_bound(np.log(hypotheses.size - 1), epsilon, alpha, beta))
    fresh = FreshLearner(epsilon, size)
    yield learns(fresh, examples, alpha=alpha, beta=beta, case="close_to_the_best_threshold", derived=True)
    described = up(agnostic_bound(np.log(2.0) * (_BITS + 1), epsilon, alpha, beta))
    yield inequality(
        lambda: [(f"{m} points", IntervalFunctions(m).size, 2.0 ** (_bits(m) + 1)) for m in (1, 4, 16, 100, 1000)],
        statement="|H| <= 2^(l + 1) where each hypothesis has a description of l bits at most",
        level="L4",
        case="hypotheses_of_l_bits",
    )
    yield learns(
        FreshLearner(epsilon, described),
        FiniteExampleDistribution(IntervalFunctions(16), _GRID, np.full(16, 1.0 / 16.0)),
        alpha=alpha,
        beta=beta,
        case="described_in_l_bits",
        derived=True,
        parameters={"l": _BITS},
    )
    yield learns(
        fresh,
        examples,
        alpha=alpha,
        beta=beta,
        best=0.0,
        case="compared_with_best_concept",
        mistake="the error is compared with the best interval, which is no hypothesis",
    )


def _bits(points: int) -> int:
    """Bits of a description of an interval: both of its ends, or that it is empty, numbered through."""
    return (IntervalFunctions(points).size - 1).bit_length()


_BITS = _bits(16)
