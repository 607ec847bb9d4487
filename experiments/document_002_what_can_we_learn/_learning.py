"""What the experiments on learners share: labelled databases, flips of labels, claims about excess errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from auditor.audits.accuracy import Setting
from auditor.audits.accuracy.smallest import Build
from auditor.claims import Draft, accuracy
from auditor.datasets import Pair
from mechanisms.base.mechanism import IntArray
from mechanisms.learning.fresh_learner import ExampleDistribution, ExcessError, FreshLearner

#: An error of exactly alpha above the best one is a failure, as in the proof of Theorem 3.4; errors are computed to
#: 1e-16, and those of the instances that are named by an alpha are 1e-9 of it above.
_BELOW = 1.0 - 1e-12


def records(*groups: tuple[int, int, int]) -> IntArray:
    """Labelled data from (point, label, how many); shape (rows, 2)."""
    return np.array([[x, y] for x, y, many in groups for _ in range(many)], dtype=np.int64)


def replaced_last(data: IntArray, x: int, y: int, name: str) -> Pair:
    """The data, against the same with the last record replaced by (x, y)."""
    other = data.copy()
    other[-1] = (x, y)
    return Pair(data, other, name)


def flipped_last(data: IntArray, name: str) -> Pair:
    """The data, against the same with the last label flipped."""
    return replaced_last(data, int(data[-1, 0]), 1 - int(data[-1, 1]), name)


def learns(
    learner: FreshLearner,
    examples: ExampleDistribution,
    *,
    alpha: float,
    beta: float,
    case: str,
    best: float | None = None,
    exact: float | None = None,
    mistake: str = "",
    parameters: Mapping[str, Any] | None = None,
    **options: Any,
) -> Draft:
    """Claim that the error is below alpha above the least one, or above ``best``, with probability 1 - beta.

    A ``mistake`` makes it the claim of a mutant, expected to deviate; ``options`` are those of `accuracy`.
    """
    return accuracy(
        learner,
        examples,
        ExcessError(examples, best),
        at_most=alpha,
        strict=True,
        beta=beta,
        exact=exact,
        case=case,
        expected="deviation" if mistake else "consistent",
        is_mutant=bool(mistake),
        parameters={"n": learner.size, "eps": learner.epsilon, "alpha": alpha, **(parameters or {})},
        note=mistake,
        **options,
    )


def by_size(
    examples: ExampleDistribution, alpha: float, epsilon: float, made: type[FreshLearner] = FreshLearner
) -> Build:
    """From a sample size to the learner, which fails where its error is alpha above the least one."""
    error = ExcessError(examples)

    def build(size: Any) -> Setting:
        return Setting(made(epsilon, int(size)), examples, error, alpha * _BELOW)

    return build


def up(size: float) -> int:
    """Least whole number of examples that is enough."""
    return math.ceil(size)
