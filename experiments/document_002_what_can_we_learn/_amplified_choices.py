"""Mutants of the choice by the exponential mechanism, those of the generic learner; used by `amplified`.

Of the whole learner only the output is seen, of candidates that are random themselves: what would be impossible for
some candidates is less likely, no more, and losses are smaller. So what breaks the whole learner is claimed of it, and
the rest, and what the bank has as infinite, of the test part: of what is chosen among fixed candidates, for which Lemma
4.5 and footnote 4 claim the same level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from auditor.claims import Draft, accuracy, broken, broken_and_deviating, deviating, exact
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE
from experiments.document_002_what_can_we_learn._amplified_accuracy import ALPHA, BETA, EPSILON, target, true_error
from experiments.document_002_what_can_we_learn._amplified_rows import Rows, flipped, one_bit, rows_of
from mechanisms.learning.amplified_choices import MUTANTS
from mechanisms.learning.amplified_fresh import FreshAmplified, UniformBits
from mechanisms.learning.amplified_parity import ParityErrors, astar, corrected
from mechanisms.learning.amplified_selection import ExponentialSelection
from mechanisms.learning.boosting import BoostedLearner, TrainTestSplit
from mechanisms.learning.boosting_parts import ChosenHypothesis

#: The first of twelve candidates is the wrong one; twelve runs are those of the reference parameters.
_TWELVE = (1, *(0,) * 11)


def choice_mutants() -> Iterator[Draft]:
    """The whole bank of the generic learner."""
    yield from _of_the_whole_learner()
    yield from _of_the_test_part()
    yield from _claim_useless_choices()


def whole(runs: int, tests: int) -> tuple[BoostedLearner, Pair]:
    """The learner at eps = 1 on rows (1, 0), one for each run, and a pair of which a test label is flipped."""
    split = TrainTestSplit(runs, 1, tests)
    learner = replace(astar(1.0, 1, split), selection=ExponentialSelection(1.0))
    return learner, flipped(one_bit(split), runs, "a test label on which the two parities differ")


def fixed(codes: tuple[int, ...], epsilon: float = 1.0) -> ChosenHypothesis:
    """The choice among fixed parities of one bit."""
    return ChosenHypothesis(codes, ParityErrors(1), ExponentialSelection(epsilon), epsilon)


def parity_rows(right: int, wrong: int = 0) -> Rows:
    """Test rows on which parity 0 is right and parity 1 is wrong, and rows of the other kind."""
    return rows_of(*((1, 0),) * right, *((1, 1),) * wrong)


def _of_the_whole_learner() -> Iterator[Draft]:
    twelve, label = whole(12, 4)
    yield from broken_and_deviating(MUTANTS["half_missing"], twelve, label, relation=REPLACE)
    one, decided = whole(6, 1)
    for name, asked in (
        ("deduplicated_on_sample", ""),
        ("argmax_on_ties", "whole_learner"),
        ("sample_dependent_class", "whole_learner"),
    ):
        yield broken(MUTANTS[name], one, decided, asked=asked, relation=REPLACE)
    # Halves of four test rows, and runs that have found the same.
    four, among = whole(4, 4)
    for name in ("score_on_random_subset", "parameters_with_multiplicity"):
        yield from broken_and_deviating(MUTANTS[name], four, among, relation=REPLACE)


def _of_the_test_part() -> Iterator[Draft]:
    twelve, agree = fixed(_TWELVE), "a test label on which one candidate errs, and no other"
    single = flipped(parity_rows(1), 0, agree)
    yield broken(MUTANTS["noisy_min_lap_1_over_eps"], twelve, single, relation=REPLACE)
    yield broken(MUTANTS["sample_dependent_class"], twelve, single, relation=REPLACE)
    double = flipped(parity_rows(2), 0, f"{agree}; two test rows")
    yield broken(MUTANTS["sample_dependent_class__consistent"], twelve, double, relation=REPLACE)
    # All are wrong on one row each, or only the first is wrong on both.
    yield broken(MUTANTS["argmax_on_ties"], twelve, double, relation=REPLACE)
    # A lead of three test rows, against one of a single row; the noise is worth more than one and less than three.
    reused = flipped(parity_rows(3), 0, "a lead of three test rows, against one of one")
    yield broken(MUTANTS["gumbel_noise_reused"], fixed((0, 1)), reused, relation=REPLACE)
    # At eps = 2 a candidate with 745 errors has the smallest weight there is, and with 746 it has none.
    edge = flipped(parity_rows(746, 745), 0, "candidates with 745 and 746 errors change places")
    yield broken(MUTANTS["exp_underflow"], fixed(_TWELVE, 2.0), edge, relation=REPLACE)
    # Eleven equal weights, and the last one, e^-15 or e^-14, which is lost or kept beside them.
    last, lead = (*(0,) * 11, 1), flipped(parity_rows(30), 0, "the last candidate trails by 30 errors, or by 28")
    name = "float32_cumulative_sum"
    yield replace(
        exact(
            MUTANTS[name].build(fixed(last)),
            PureDP(1.0),
            lead,
            case=name,
            relation=REPLACE,
            expected="violation",
            note=f"{MUTANTS[name].note}; among twelve candidates that is an event of probability 1e-7, so it is "
            "computed and not drawn",
        ),
        is_mutant=True,
    )


def _claim_useless_choices() -> Iterator[Draft]:
    """What keeps privacy and loses accuracy, at the reference parameters."""
    learner, label = whole(12, 4)
    rates = MUTANTS["score_over_n"]
    note = f"four test rows, so eps/4; {rates.note}"
    yield exact(rates.build(learner), PureDP(0.25), label, case=rates.name, relation=REPLACE, note=note)
    yield broken(MUTANTS["sign_flipped"], learner, label, relation=REPLACE)
    sizes, distribution = corrected(10, EPSILON, ALPHA, BETA, choice_only=True), UniformBits(10)
    fresh = FreshAmplified(EPSILON, sizes, ExponentialSelection(EPSILON), distribution)
    for name in (rates.name, "sign_flipped"):
        yield deviating(MUTANTS[name], learner, label, relation=REPLACE)
        yield accuracy(
            MUTANTS[name].build(fresh),
            target(10),
            true_error(distribution),
            at_most=ALPHA,
            beta=BETA,
            case=name,
            expected="deviation",
            is_mutant=True,
            draws={"smoke": 2_000, "standard": 5_000},
            independence=False,
            note=MUTANTS[name].note,
        )
