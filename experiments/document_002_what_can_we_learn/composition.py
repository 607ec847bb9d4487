"""Document 002, section 2: composition, on the same data and on disjoint blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from auditor.claims import Draft, Source, broken, conformity, entry, exact, privacy, reference
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from auditor.targets.analysts import FixedList
from experiments.common import REPLACE, person, rand, replaced, visits
from mechanisms.base.queries import Count
from mechanisms.composition.composition import Accountant, LeakyResponsePart, RowBit
from mechanisms.composition.disjoint_blocks import (
    MUTANTS,
    AdaptiveBlocks,
    BlocksDrawnWithReplacement,
    DisjointBlocks,
    deduplicated_by,
    filtered_by,
)
from mechanisms.local_model.repeated_response import (
    FILTER_MUTANTS,
    NOISE_MUTANTS,
    NUMBER_MUTANTS,
    FilteredResponses,
    IndependentAnswers,
    NumberOfOnes,
    RaiseStakes,
)

_OFTEN = Count("mdvis", low=10.0)
#: Whether the first person has had ten visits to a doctor.
_BIT = RowBit(_OFTEN)

# ----------------------------------------------------------------------------------- one dataset


@entry("002/sequential_composition", title="Budgets add up, adaptively too", source=Source("002", "Claim 2.2"))
def sequential() -> Iterator[Draft]:
    """Responses to one bit: levels in advance, what is made of the answers, and levels chosen in view of answers.

    The claim is stated for mechanisms that are fixed in advance; the document uses it for chosen ones, which a privacy
    filter covers: an analyst who likes the answers is refused what would exceed the budget. All answers 1 attains it.
    """
    pair = visits(0, 40)
    number = NumberOfOnes(_BIT, 0.5, 4)
    chosen = FilteredResponses(_BIT, (0.25, 0.5, 0.75), 1.0, RaiseStakes(4, 3))
    two = IndependentAnswers(Count("hlthp", equals=1.0), _OFTEN, 1.5)
    both = replaced("a person enters both groups", person(hlthp=0, mdvis=0), person(hlthp=1, mdvis=20), index=10_000)
    for case, mechanism, pairs in (
        ("four_responses", Accountant([LeakyResponsePart(_BIT)] * 4, 2.0), pair),
        ("number_of_ones", number, pair),
        ("chosen_levels", chosen, pair),
        ("two_counts", two, both),
    ):
        yield from reference(mechanism, PureDP(mechanism.epsilon), pairs, case=case, relation=REPLACE, follows=False)
    yield conformity(number, pair, case="number_of_ones")
    yield conformity(chosen, pair, case="chosen_levels")

    yield broken(NOISE_MUTANTS["shared_seed"], two, both, relation=REPLACE)
    # The number that gives the bit away, two, has probability 0.53.
    name = "raw_data_to_post_processing"
    yield broken(NUMBER_MUTANTS[name], NumberOfOnes(_BIT, 1.0, 2), pair, relation=REPLACE)
    each_once = FilteredResponses(_BIT, (0.5, 1.0, 1.0), 1.0, FixedList((0, 1, 2)))
    yield broken(FILTER_MUTANTS["maximum_for_sum"], each_once, pair, relation=REPLACE)
    name = "budget_checked_at_the_end"
    # Levels 1 and 1.5 where the first answer is 1; the filter would end it there.
    raises = FilteredResponses(_BIT, (1.0, 1.5), 1.0, RaiseStakes(2, 2))
    yield broken(FILTER_MUTANTS[name], raises, pair, relation=REPLACE)
    # Query 1 says that the analyst stops for now.
    stops = FilteredResponses(_BIT, (1.0,), 1.0, FixedList((0, 1, 0)))
    yield broken(FILTER_MUTANTS["early_stop_refunds"], stops, pair, relation=REPLACE)


# --------------------------------------------------------------------------------------- blocks

#: Three blocks, and rows beyond them that nothing reads.
_ENDS, _LEVELS = (6_000, 12_000, 18_000), (0.5, 1.0, 0.75)


def _shifting_pair() -> Pair:
    """The first person's index of diseases is missing, or not; where the cuts shift, every count moves.

    The persons at the ends of blocks have had many visits and none by turns, so that each block wins one who counts for
    one who does not, or the reverse.
    """
    data = rand().astype(float)
    for index, number in zip((0, *_ENDS), (0.0, 20.0, 0.0, 20.0), strict=True):
        data.loc[data.index[index], "mdvis"] = number
    missing = data.copy()
    missing.loc[missing.index[0], "disea"] = np.nan
    return Pair(data, missing, "the first person's index of diseases goes missing")


def _distinct_pair() -> Pair:
    """The last person has an incentive payment of her own, or that of the first person."""
    return replaced(
        "the last person's incentive is one that nobody else has",
        person(lpi=100.0),
        person(lpi=float(rand()["lpi"].iloc[0])),
        len(rand()) - 1,
    )


@entry(
    "002/parallel_composition_disjoint",
    title="Disjoint blocks cost the largest budget",
    source=Source("002", "Lemma 4.5 and Theorem 5.7"),
)
def parallel() -> Iterator[Draft]:
    """Noisy counts on three blocks of the data; one person changes, at the first and the last place of every block.

    The document uses this without stating it.
    """
    blocks = DisjointBlocks(_OFTEN, _ENDS, _LEVELS)
    pairs = [visits(0, 40, index) for start, end in blocks.blocks for index in (start, end - 1)]
    yield from reference(
        blocks, PureDP(blocks.epsilon), pairs, case="first_and_last_of_blocks", relation=REPLACE, follows=False
    )
    # Each block on its own: its level is that of its count.
    for i, level in enumerate(_LEVELS):
        case, ends = f"block_{i}", pairs[2 * i : 2 * i + 2]
        yield from reference(blocks, PureDP(level), ends, case=case, relation=REPLACE, follows=False)
    beyond = visits(0, 40, _ENDS[-1])
    yield exact(blocks, PureDP(0.0), beyond, case="first_row_beyond", relation=REPLACE)
    # The threshold is the first block's count, so that both questions are put to the second block.
    threshold = int(blocks.centres(rand())[0])
    adaptive = AdaptiveBlocks(_OFTEN, Count("mdvis", low=1.0), _ENDS, _LEVELS, threshold)
    yield privacy(
        adaptive,
        PureDP(adaptive.epsilon),
        pairs[2],
        case="questions_by_answers",
        relation=REPLACE,
        # Whichever count is asked for moves by 1, so the second block's answer costs exactly its level.
        exact_level=_LEVELS[1],
    )

    shared = visits(0, 40, _ENDS[1])
    yield broken(MUTANTS["overlapping_blocks"], blocks, shared, relation=REPLACE)
    valid = filtered_by(Count("disea", low=0.0))
    yield broken(valid, blocks, _shifting_pair(), relation=REPLACE)
    fewer = _distinct_pair()
    values = len(set(fewer.x["lpi"]))
    yield broken(
        deduplicated_by("lpi"),
        DisjointBlocks(_OFTEN, (200, 400, values), _LEVELS),
        fewer,
        asked="deduplicated",
        relation=REPLACE,
    )
    often = int(np.argmax(BlocksDrawnWithReplacement(_OFTEN, _ENDS, _LEVELS).costs()))
    name = "blocks_with_replacement"
    yield broken(MUTANTS[name], blocks, visits(0, 40, often), relation=REPLACE)
