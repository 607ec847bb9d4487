"""Document 004, section 5: the window in which most predictions of a stable learner lie.

The window of Lemma 5.8 is wider than its proof needs: Markov's inequality over the coins is not needed, as
``E_r Var_D <= n' alpha^2 / 2`` by itself gives a failure rate of at most 1/64 at the printed window, and 1/4 at a
quarter of it, for learners with and without coins. So the sentence after the lemma, that the bad set has a measure
below 1/8, holds too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from auditor.audits.accuracy import Absolute, Constant, Exactly
from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, accuracy, entry, inequality, scaling
from mechanisms.base.mechanism import IntArray
from mechanisms.learning.average_stability import expected_outputs
from mechanisms.learning.concentration_window import (
    FAR_MUTANTS,
    MUTANTS,
    BernoulliVote,
    FarVotes,
    SampleMeanCentre,
    VoteDeviation,
    enough_chunks,
    few_inside,
    most_moved,
    started,
    stressed,
)
from mechanisms.learning.stable_learners import (
    FiniteRecordDistribution,
    LogisticLoss,
    StepSizes,
    StochasticGradientDescent,
)

#: Probability of the label 1 where any would do; arbitrary.
_Q = 0.3
#: A draw is hundreds of votes.
_FEW = {"smoke": 2_000, "standard": 20_000, "full": 100_000}


@entry(
    "004/conc_window",
    title="Stability concentrates the votes",
    source=Source("004", "Lemma 5.8, Definition 5.9, Corollary 5.10"),
)
def window() -> Iterator[Draft]:
    """The lemma and the corollary at learners that make a step tight, and mistakes about centre and width."""
    # One label of odds 1 to t is sqrt(t) standard deviations away with probability 1/(1 + t): Chebyshev's inequality is
    # nearly tight at t just above 64, the window's 8 deviations, or 4, for a quarter of it.
    one, realistic, rarely = BernoulliVote(1 / 66, 1), BernoulliVote(0.1, 1000), stressed(1 / 9, 1, 0.124)
    learners = (("one_label", one), ("thousand_labels", realistic), ("coins_of_one_in_eight", rarely))
    for case, votes in learners:
        yield _claim_covered(case, votes, 4.0, 0.25)
        yield _claim_covered(f"{case}_derived", votes, 4.0, 1 / 64, derived=True)
    yield _claim_covered("quarter_of_the_window", BernoulliVote(0.19, 1), 1.0, 0.25, derived=True)
    yield _claim_covered("bad_set_below_one_in_eight", rarely, 4.0, 1 / 8)
    yield inequality(
        lambda: [(f"probability {p:g}", stressed(1 / 9, 1, p).unstable_coins, 1 / 8) for p in (0.05, 0.1, 0.124)],
        statement="coins with a mean squared move above 8 alpha^2 have probability 1/8 at most",
        level="L4",
        case="markov",
    )
    yield inequality(
        lambda: [(case, votes.variance, 0.5 * votes.size * votes.alpha**2) for case, votes in learners],
        statement="Var = n' alpha^2 / 2, averaged over the coins, for learners that are linear in the labels",
        relation="==",
        level="L4",
        case="variance",
        derived=True,
    )
    yield inequality(
        lambda: [(f"beta' = {b:g}", few_inside(0.75, enough_chunks(b)), b) for b in (0.5, 0.1, 1e-2, 1e-4, 1e-8)],
        statement="of 72 ln(1/beta') votes, each inside with probability 3/4, fewer than 2/3 are with beta' at most",
        level="L4",
        case="hoeffding",
    )
    beta = 0.1
    chunks = enough_chunks(beta)
    for case, votes in learners:
        inside = 1.0 - votes.outside(votes.window())
        yield _votes(case, FarVotes(chunks, votes.window()), votes, beta, exact=few_inside(inside, chunks))
    yield scaling(
        lambda n: BernoulliVote(_Q, int(n)).window(_quarter_window(int(n))),
        parameter="n'",
        at=(100, 1000, 10_000, 100_000),
        exponent=-0.5,
        measure=Exactly("exact window of 3/4 of the votes"),
        criterion=False,
        curve=lambda n: BernoulliVote(_Q, int(n)).window(),
        case="window",
    )
    yield from _window_mutants(realistic, chunks, beta)
    yield from _claim_orders()


#: Features and labels that agree mostly, and descent that is not linear in them; arbitrary.
_PAIRS = FiniteRecordDistribution(((1.0, 0.0), (1.0, 1.0), (-2.0, 1.0)), (0.2, 0.5, 0.3))
_DESCENT = StochasticGradientDescent(LogisticLoss(0.1), StepSizes(0.5), "permuted")
#: Of how many records all datasets and all orders are tried.
_RECORDS = 4


def _claim_orders() -> Iterator[Draft]:
    """The randomisation of descent in a random order, which Definition 5.9 asks to be consistent: it is."""
    once = np.array(list(itertools.permutations(range(_RECORDS))))
    again = np.array([[*first, *second] for first, second in itertools.product(once, repeat=2)])
    hit = np.array(list(itertools.product(range(_RECORDS), repeat=_RECORDS)))
    two = replace(_DESCENT, passes=2)

    def ends(*cases: tuple[str, StochasticGradientDescent, IntArray]) -> list[Row]:
        """The largest and the smallest expected weight over the coins, by enumeration."""
        rows = []
        for case, learner, coins in cases:
            found = expected_outputs(learner, _PAIRS, _RECORDS, coins)
            rows.append((f"{case}, n = {_RECORDS}", float(found.max()), float(found.min())))
        return rows

    statement = "the expected weight over the data is the same for all coins of the learner"
    yield inequality(
        lambda: ends(
            ("one pass in a random order", _DESCENT, once),
            ("the same order in each of two passes", two, np.tile(once, 2)),
            ("one pass, the mean of the weights", replace(_DESCENT, average=True), once),
        ),
        statement=statement,
        relation="==",
        level="L4",
        case="random_order_is_consistent",
        note="after Definition 5.9: descent that permutes the records",
    )
    for case, learner, coins, note in (
        ("order_of_each_pass", two, again, "a fresh order in each pass: a record may be used twice in a row"),
        ("order_with_replacement", _DESCENT, hit, "records drawn with replacement: one may be used twice"),
    ):
        yield inequality(
            partial(ends, (case.replace("_", " "), learner, coins)),
            statement=statement,
            relation="==",
            level="L4",
            case=case,
            expected="deviation",
            is_mutant=True,
            note=note,
        )


def _claim_covered(case: str, votes: BernoulliVote, factor: float, beta: float, derived: bool = False) -> Draft:
    width = votes.window(factor)
    # A vote at the edge of the window is inside; distances and windows are rounded.
    at_most, exact = width * (1 + 1e-9), votes.outside(width)
    controls = {"votes that are 1 away": Constant(1.0)}
    return accuracy(
        VoteDeviation(),
        votes,
        Absolute(0.0),
        at_most=at_most,
        beta=beta,
        exact=exact,
        case=case,
        derived=derived,
        controls=controls,
    )


def _votes(case: str, far: FarVotes, votes: BernoulliVote, beta: float, **options: Any) -> Draft:
    controls = {"votes of which none is inside": Constant(1.0)}
    case, at_most = f"{case}_of_k", 1 / 3
    return accuracy(
        far, votes, Absolute(0.0), at_most=at_most, beta=beta, draws=_FEW, case=case, controls=controls, **options
    )


def _quarter_window(size: int) -> float:
    """Width, in units of ``alpha sqrt(2 n')``, of the smallest window with 3/4 of the votes."""
    votes = BernoulliVote(_Q, size)
    low, high = 0.0, 4.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if votes.outside(votes.window(middle)) <= 0.25 else (middle, high)
    return high


def _window_mutants(realistic: BernoulliVote, chunks: int, beta: float) -> Iterator[Draft]:
    wide = started(_Q, 4096)
    centre = MUTANTS["expectation_over_coins_too"]
    yield _claim_covered("random_start", wide, 4.0, 0.25)
    yield accuracy(
        centre.build(VoteDeviation()),
        wide,
        Absolute(0.0),
        at_most=wide.window(),
        beta=0.25,
        exact=1.0,
        case=centre.name,
        expected="deviation",
        is_mutant=True,
        note=centre.note,
    )
    yield accuracy(
        FarVotes(chunks, wide.window()),
        wide,
        Absolute(0.0),
        at_most=1 / 3,
        beta=beta,
        exact=1.0,
        draws=_FEW,
        case="initialisation_per_chunk",
        expected="deviation",
        is_mutant=True,
        note="the start differs from chunk to chunk: votes are around two centres, and none is near their mean",
    )
    # Stability and window of n = k n' labels, for votes of n' labels.
    whole = BernoulliVote(realistic.q, chunks * realistic.size)
    yield accuracy(
        FarVotes(chunks, whole.window()),
        realistic,
        Absolute(0.0),
        at_most=1 / 3,
        beta=beta,
        draws=_FEW,
        exact=few_inside(1.0 - realistic.outside(whole.window()), chunks),
        case="window_with_n",
        expected="deviation",
        is_mutant=True,
        note="n for n' in window and stability: too narrow by sqrt(k)",
    )

    def deviations(size: int) -> list[Row]:
        width = 4.0 * realistic.alpha * math.sqrt(2.0 * size)
        return [(f"n' = {realistic.size}, window of {size}", width, 8.0 * math.sqrt(realistic.variance))]

    statement = "the window of a learner that is linear in the labels is 8 standard deviations of a vote"
    yield inequality(
        lambda: deviations(realistic.size),
        statement=statement,
        relation="==",
        level="L4",
        case="eight_deviations",
        derived=True,
    )
    yield inequality(
        lambda: deviations(chunks * realistic.size),
        statement=statement,
        relation="==",
        level="L4",
        case="window_with_n__alpha_of_chunks",
        expected="deviation",
        is_mutant=True,
        note="n for n' in the window only: too wide by sqrt(k)",
    )
    fixed = FarVotes(9, realistic.window())
    moved = FAR_MUTANTS["centred_at_the_sample_mean"]

    def moves(votes: FarVotes) -> list[Row]:
        """Nine votes at the edge of the window, of which the first takes any value."""
        before = np.full(9, realistic.expectation + 0.99 * votes.window)
        most = most_moved(votes, before, np.linspace(0.0, 1.0, 101), realistic.expectation)
        return [("nine votes just inside, the first replaced", most, 1.0)]

    def centred() -> list[Row]:
        return moves(SampleMeanCentre(fixed.chunks, fixed.window))

    statement = "replacing one vote changes the number inside by 1 at most"
    yield inequality(lambda: moves(fixed), statement=statement, level="L4", case="one_vote_counts_once")
    yield inequality(
        centred,
        statement=statement,
        level="L4",
        case=moved.name,
        expected="deviation",
        is_mutant=True,
        note=moved.note,
    )
