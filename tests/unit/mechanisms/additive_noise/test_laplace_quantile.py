"""Tails and quantiles of the Laplace mechanism of document 004 on its lattice, against its distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.document_004_model_agnostic.noise import _accuracy, _quantile, _sum
from mechanisms.base.queries import ClippedSum


def test_the_quantile_is_the_least_that_will_do() -> None:
    for epsilon in (1 / 16, 1.0, 16.0):
        mechanism = _sum(epsilon)
        assert isinstance(mechanism.query, ClippedSum)
        a = mechanism.base(1)
        # P[|Z| > k], by adding up both tails far out; e^-60 of it is left out.
        k = np.arange(math.ceil(60 / math.log(a)))
        mass = a ** -k.astype(float) * (a - 1) / (a + 1)
        for beta in (0.5, 0.05):
            steps = round(_quantile(mechanism, beta) / mechanism.step)
            assert 2 * mass[steps + 1 :].sum() <= beta * (1 + 1e-9)
            assert 2 * mass[steps:].sum() > beta
            # The continuous distribution: ln(1/beta) scales.
            assert _quantile(mechanism, beta) == pytest.approx(2.0 * math.log(1 / beta) / epsilon, abs=2.0**-9)


def test_the_tail_is_that_of_the_integer_noise() -> None:
    drafts = {draft.case: draft for draft in _accuracy()}
    for case, scales in (("tail_at_1", 1.0), ("tail_at_3", 3.0)):
        theorem = drafts[case].guarantee
        exact = theorem.exact  # type: ignore[union-attr]
        assert exact == pytest.approx(math.exp(-scales), rel=1e-3)
        assert exact <= math.exp(-scales)
