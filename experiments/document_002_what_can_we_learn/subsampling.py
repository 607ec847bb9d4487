"""Document 002, techniques: a random subset as a tool for privacy, which the document does not state as a lemma.

What is claimed here is derived from the proof of its Lemma 4.2, and is not to be cited from it: a bound for each way to
draw the subset and each kind of neighbours, attained by noisy sums. The bound of one does not hold for the other. The
two negative controls are learners of parities without what makes the document's learner private.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, broken, entry, exact, inequality, reference
from auditor.datasets import Pair
from auditor.privacy.exact import curve
from auditor.privacy.guarantees import PureDP
from experiments.common import ADD_REMOVE, REPLACE
from mechanisms.learning.parity import PrivateParityLearner
from mechanisms.learning.subsampling import (
    MUTANTS,
    FixedNumberOfRows,
    IndependentRows,
    NoisySum,
    added_level,
    between,
    replaced_level,
)

#: Level of the inner mechanism, and probability of a row, both large enough for the bounds to differ; arbitrary.
_INNER, _P = 1.0, 0.25
#: Draws that resolve twice an amplified level.
_ENOUGH = {"smoke": 300_000}


def _sums(first: Sequence[int], second: Sequence[int], name: str) -> Pair:
    def rows(of: Sequence[int]) -> NDArray[np.int64]:
        return np.array(of, dtype=np.int64)

    return Pair(rows(first), rows(second), name)


#: Every pair with the bound that it attains.
_REPLACED = _sums([1], [-1], "one row, 1 or -1")
_ADDED = _sums([1], [], "one row, 1, or none")
_ADDED_TO_FOUR = _sums([1, 0, 1, -1, 1], [0, 1, -1, 1], "a row 1 more than four")
_OF_FOUR = _sums([1, 0, 0, 0], [0, 0, 0, 0], "one of four rows, 1 or 0")


def _parity_pair(name: str, *others: tuple[int, int]) -> Pair:
    """One bit: a row (1, 1) or (1, 0) that comes first."""

    def rows(label: int) -> NDArray[np.uint8]:
        return np.array([(1, label), *others], dtype=np.uint8)

    return Pair(rows(1), rows(0), name)


@entry(
    "002/subsample_then_run",
    title="Sampling as a tool for privacy",
    source=Source("002", "section 1, techniques (no lemma)"),
)
def subsampling() -> Iterator[Draft]:
    """Noisy sums of values -1, 0 and 1 of the rows taken, at the bounds for both kinds of subsets and of neighbours."""
    inner = NoisySum(_INNER)
    replaced, added = IndependentRows(inner, _P), IndependentRows(inner, _P, replace=False)
    fixed = FixedNumberOfRows(inner, 1, 4)
    for case, mechanism, pair, relation in (
        ("independent_rows_replaced", replaced, _REPLACED, REPLACE),
        ("independent_rows_added", added, _ADDED, ADD_REMOVE),
        ("one_row_of_four", fixed, _OF_FOUR, REPLACE),
    ):
        yield from reference(
            mechanism, PureDP(mechanism.epsilon), pair, case=case, relation=relation, draws=_ENOUGH, follows=False
        )
    yield exact(
        added, PureDP(added.epsilon), _ADDED_TO_FOUR, case="independent_rows_added_to_four", relation=ADD_REMOVE
    )
    # The subset with a parity learner in place of the sum: L = 0 and U = 2.
    learner, one = PrivateParityLearner(2.0, 1), _parity_pair("one row of one bit, (1, 1) or (1, 0)")
    amplified = PureDP(between(learner.p, 0.0, 2.0))
    yield from reference(learner, amplified, one, case="parities", relation=REPLACE, follows=False)
    yield from _wrong_bounds(replaced, fixed)
    yield inequality(
        _attained_levels,
        statement="the level on the tight pair is the bound for its subsets and neighbours",
        relation="==",
        case="bounds_attained",
        derived=True,
    )
    beside = _parity_pair("(1, 1) or (1, 0) beside (0, 1)", (0, 1))
    base = PrivateParityLearner(1.0, 1)
    yield broken(MUTANTS["deterministic_consistent_learner"], base, one, relation=REPLACE)
    yield broken(MUTANTS["fixed_size_with_parity_steps"], base, beside, relation=REPLACE)


def _wrong_bounds(replaced: IndependentRows, fixed: FixedNumberOfRows) -> Iterator[Draft]:
    """Bounds that are claimed for what they are not the bounds of."""
    yield exact(
        replaced,
        PureDP(added_level(_P, _INNER)),
        _REPLACED,
        case="independent_rows_with_the_bound_for_added_rows",
        relation=REPLACE,
        expected="violation",
        note="ln(1 + p (e^e0 - 1)) is for neighbours with a row more or less",
    )
    moved = _sums([1, -1, -1, -1], [-1, -1, -1, -1], "one of four rows, 1 or -1, the others -1")
    yield exact(
        fixed,
        PureDP(fixed.epsilon),
        moved,
        case="inner_level_of_added_rows",
        relation=REPLACE,
        expected="violation",
        note="m of n rows: the inner level has to be that for replaced rows, of which one moves this sum by 2",
    )
    right = FixedNumberOfRows(NoisySum(_INNER, moves=2), 1, 4)
    yield from reference(
        right,
        PureDP(right.epsilon),
        moved,
        case="one_row_of_four_signed",
        relation=REPLACE,
        draws=_ENOUGH,
        follows=False,
    )


def _attained_levels() -> list[Row]:
    rows: list[Row] = []

    def add(label: str, mechanism: IndependentRows | FixedNumberOfRows, pair: Pair, bound: float) -> None:
        level = curve(mechanism.law(pair.x), mechanism.law(pair.y)).epsilon(0.0)
        rows.append((label, level, bound))

    for inner in (0.1, 1.0, 3.0):
        for p in (0.05, 0.25, 0.9):
            at = f"e0 = {inner:g}, p = {p:g}"
            drawn = IndependentRows(NoisySum(inner), p)
            add(f"independent, replaced: {at}", drawn, _REPLACED, replaced_level(p, inner))
            add(f"independent, added: {at}", drawn, _ADDED, added_level(p, inner))
        for size in (1, 3):
            at = f"e0 = {inner:g}, {size} of 4 rows"
            add(at, FixedNumberOfRows(NoisySum(inner), size, 4), _OF_FOUR, added_level(size / 4, inner))
    return rows
