"""Document 002, section 3: the error of one hypothesis, released with noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy import Absolute
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken_and_deviating,
    entry,
    exact,
    expectation,
    reference,
)
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE, rand
from mechanisms.base.mechanism import IntArray
from mechanisms.learning.error_estimate import MUTANTS, NO_LABEL, ErrorEstimate

_EPSILON = 1.0
#: The index of chronic diseases in whole numbers, 0 to 58, and the hypothesis that those from 20 on visit a doctor.
_ILL = tuple(int(x >= 20) for x in range(59))
#: Records of the claims of accuracy: a power of two, so that errors are exact in float64.
_FEW = 64


@cache
def persons() -> NDArray[np.int64]:
    """Index of chronic diseases, in whole numbers, and whether there was a visit to a doctor; shape (20190, 2)."""
    return np.stack([rand()["disea"].to_numpy().astype(np.int64), (rand()["mdvis"].to_numpy() > 0).astype(np.int64)], 1)


def _flipped_label_pair(data: IntArray, index: int, name: str) -> Pair:
    other = data.copy()
    other[index, 1] = 1 - other[index, 1]
    return Pair(data, other, name)


def _error(hypothesis: tuple[int, ...], data: IntArray) -> float:
    return float(np.mean(np.array(hypothesis)[data[:, 0]] != data[:, 1]))


@entry(
    "002/private_error_estimate",
    title="Noisy error of one hypothesis",
    source=Source("002", "section 3, end of the preamble"),
)
def estimate() -> Iterator[Draft]:
    """Who visits a doctor, predicted from chronic diseases; the label of one person is flipped."""
    data, claim = persons(), PureDP(_EPSILON)
    mechanism = ErrorEstimate(_ILL, len(data), _EPSILON)
    flip = _flipped_label_pair(data, 0, "whether the first person visited a doctor is flipped")
    yield from reference(mechanism, claim, flip, case="all_persons", relation=REPLACE)

    yield from broken_and_deviating(MUTANTS["train_size_for_test_size"], mechanism, flip, relation=REPLACE)
    # Twelve persons of whom six have a label: a mistake is a sixth, and is hidden as if it were a twelfth.
    few = data[:12].copy()
    few[6:, 1] = NO_LABEL
    small = ErrorEstimate(_ILL, 12, _EPSILON)
    labelled = _flipped_label_pair(few, 0, "one of six persons with a label, among twelve")
    yield from reference(small, claim, labelled, case="six_labels_of_twelve", relation=REPLACE, follows=False)
    divided = MUTANTS["divided_by_valid_records"]
    yield from broken_and_deviating(divided, small, labelled, relation=REPLACE)

    yield from _accuracy()


def _accuracy() -> Iterator[Draft]:
    """``P[|error| > t] <= e^(-t n eps)`` and ``E|error| <= 1 / (n eps)``, on 64 persons."""
    data = persons()[:_FEW]
    mechanism = ErrorEstimate(_ILL, _FEW, _EPSILON)
    truth = _error(_ILL, data)
    for records in (1, 3, 5):
        yield _claim_within(mechanism, data, truth, records, f"off_by_more_than_{records}")
    yield expectation(
        mechanism,
        data,
        Absolute(truth),
        at_most=1.0 / (_FEW * _EPSILON),
        # E|Z| = 2 a / (a^2 - 1) for the integer noise.
        exact=mechanism.unit / math.sinh(math.log1p(mechanism.base - 1.0)),
        case="mean_error",
        derived=True,
        note="the mean of the absolute value of Laplace noise is its scale",
    )
    wide = MUTANTS["scale_1_over_eps"]
    yield exact(
        wide.build(mechanism),
        PureDP(_EPSILON / _FEW),
        _flipped_label_pair(data, 0, "the first of 64 persons is flipped"),
        case="scale_1_over_eps",
        relation=REPLACE,
        note=wide.note,
    )
    yield _claim_within(wide.build(mechanism), data, truth, 5, "scale_1_over_eps", wide.note)


def _claim_within(mechanism: Any, data: IntArray, truth: float, records: int, case: str, mistake: str = "") -> Draft:
    t = records / _FEW
    return accuracy(
        mechanism,
        data,
        Absolute(truth),
        at_most=t,
        beta=math.exp(-t * _FEW * _EPSILON),
        exact=mechanism.beyond(round(records / mechanism.step)),
        case=case,
        expected="deviation" if mistake else "consistent",
        is_mutant=bool(mistake),
        note=mistake,
        parameters={"n": _FEW, "t": t, "eps": _EPSILON},
    )
