"""Equality of results: by all that they hold, arrays included."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import auditor
from auditor.results import AuditResult


@pytest.fixture(scope="module")
def found() -> AuditResult:
    def shows(data: Any, n: int, rng: np.random.Generator) -> Any:
        return np.full(n, data[0])

    return auditor.audit(shows, auditor.PureDP(1.0), auditor.Pair(np.array([0, 1]), np.array([1, 1])), draws=2_000)


def test_a_result_with_a_counterexample_equals_its_pickled_copy(found: AuditResult) -> None:
    copy = pickle.loads(pickle.dumps(found))
    assert found.counterexample is not None
    assert copy == found
    assert copy.counterexample == found.counterexample


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array([1.0, math.nan]), np.array([1.0, math.nan])),
        ([{"a": np.array([[1, 2]])}], [{"a": np.array([[1, 2]])}]),
        (math.nan, float("nan")),
        (0.5, np.float64(0.5)),
    ],
    ids=str,
)
def test_members_of_the_same_content_are_equal(found: AuditResult, one: Any, other: Any) -> None:
    assert replace(found, record={"member": one}) == replace(found, record={"member": other})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([1, 2]), np.array([1.0, 2.0])),
        (np.array([1, 2]), np.array([[1, 2]])),
        (np.array([1, 2]), [1, 2]),
        ((1, 2), (1, 2, 3)),
        ({"a": 1}, {"b": 1}),
        (math.nan, 1.0),
        (1.0, math.nan),
    ],
    ids=str,
)
def test_members_of_other_content_are_not(found: AuditResult, one: Any, other: Any) -> None:
    assert replace(found, record={"member": one}) != replace(found, record={"member": other})


def test_a_result_is_nothing_else(found: AuditResult) -> None:
    assert found != found.to_json()
    assert found != replace(found, counterexample=None)
