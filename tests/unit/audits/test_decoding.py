"""Decoders: the interior point method against HiGHS and by hand, estimates that are consistent, bad input.

Nothing here is random but the programmes, which are the same in every run.
"""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from auditor.audits.adversaries.decoding import Consistent, LeastAbsolute, LeastSquares, Rows, random_rows
from auditor.errors import SpecificationError

HIGHS = LeastAbsolute(solver="highs")
INTERIOR = LeastAbsolute()


def absolute(queries: Any, answers: Any, z: Any) -> Any:
    return np.abs(answers - (queries @ z[:, :, None])[:, :, 0]).sum(axis=1)


def programme(rows: Rows, k: int, n: int, seed: int, noise: float = 1.0, trials: int = 4) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    queries, bits = random_rows(rows, (trials, k, n), rng), rng.integers(0, 2, (trials, n))
    return queries, (queries @ bits[:, :, None])[:, :, 0] + noise * rng.standard_normal((trials, k)), bits


@pytest.mark.parametrize("rows", get_args(Rows))
@pytest.mark.parametrize(("k", "n"), [(40, 10), (10, 10), (6, 10), (120, 30), (1, 1)])
@pytest.mark.parametrize("noise", [0.01, 1.0, 30.0])
def test_the_interior_point_method_and_highs_find_the_same_optimum(rows: Rows, k: int, n: int, noise: float) -> None:
    queries, answers, _ = programme(rows, k, n, 1000 * k + n, noise)
    found, best = INTERIOR(queries, answers), HIGHS(queries, answers)
    assert ((found >= 0) & (found <= 1)).all()
    optimum = absolute(queries, answers, best)
    assert (absolute(queries, answers, found) >= optimum * (1 - 1e-9) - 1e-9).all()
    assert absolute(queries, answers, found) == pytest.approx(optimum, rel=2e-6, abs=2e-6)


def test_integer_answers_and_queries_that_repeat_are_no_obstacle() -> None:
    """Ties, and a matrix without full rank."""
    queries, answers, _ = programme("subset", 20, 12, 7, 1.5)
    queries, answers = np.tile(queries[:, :5], (1, 4, 1)), np.rint(np.tile(answers[:, :5], (1, 4)))
    optimum = absolute(queries, answers, HIGHS(queries, answers))
    assert absolute(queries, answers, INTERIOR(queries, answers)) == pytest.approx(optimum, rel=2e-6, abs=2e-6)


def test_one_bit_is_a_weighted_median() -> None:
    """The optimum is at a breakpoint y_i / q_i, or at an end of the box."""
    rng = np.random.default_rng(5)
    queries, answers = rng.standard_normal((30, 7, 1)), rng.standard_normal((30, 7))
    points = np.concatenate([np.clip(answers / queries[:, :, 0], 0, 1), np.zeros((30, 1)), np.ones((30, 1))], axis=1)
    costs = np.abs(answers[:, None, :] - queries[:, :, 0][:, None, :] * points[:, :, None]).sum(axis=2)
    found = absolute(queries, answers, INTERIOR(queries, answers))
    assert found == pytest.approx(costs.min(axis=1), rel=2e-6)


def test_other_boxes() -> None:
    queries, answers, _ = programme("gaussian", 60, 12, 3)
    for low, high in ((-1.0, 1.0), (0.25, 0.75), (-1000.0, 1001.0)):
        found = LeastAbsolute(low, high)(queries, answers)
        optimum = absolute(queries, answers, LeastAbsolute(low, high, "highs")(queries, answers))
        assert ((found >= low) & (found <= high)).all()
        assert absolute(queries, answers, found) == pytest.approx(optimum, rel=2e-6)


def test_gross_errors_only_count_by_their_sign() -> None:
    """An answer of 10^9 is one of the largest value that the query can have."""
    queries, answers, bits = programme("sign", 200, 10, 11, 0.1)
    spoiled = answers.copy()
    spoiled[:, :30] = 1e9
    assert ((INTERIOR(queries, spoiled) > 0.5) == bits).all()
    found = INTERIOR(queries, spoiled)
    spoiled[:, :30] = np.maximum(queries[:, :30], 0).sum(axis=2)
    optimum = absolute(queries, spoiled, HIGHS(queries, spoiled))
    assert absolute(queries, spoiled, found) == pytest.approx(optimum, rel=2e-6)


@pytest.mark.parametrize("decoder", [INTERIOR, HIGHS, LeastSquares(), Consistent(0.0)], ids=str)
def test_exact_answers_are_decoded(decoder: Any) -> None:
    queries, answers, bits = programme("subset", 80, 20, 2, 0.0)
    np.testing.assert_allclose(decoder(queries, answers), bits, atol=1e-4)


@pytest.mark.parametrize("decoder", [INTERIOR, LeastAbsolute(tolerance=1e-2), LeastSquares(), Consistent(9.0)], ids=str)
def test_trials_do_not_see_one_another(decoder: Any) -> None:
    queries, answers, _ = programme("subset", 40, 10, 9, 2.0)
    alone = np.concatenate([decoder(queries[i : i + 1], answers[i : i + 1]) for i in range(4)])
    np.testing.assert_array_equal(decoder(queries, answers), alone)


def test_a_consistent_estimate_is_consistent() -> None:
    queries, answers, _ = programme("subset", 40, 10, 4)
    error = float(np.abs(answers - (queries @ HIGHS(queries, answers)[:, :, None])[:, :, 0]).max())
    found = Consistent(error)(queries, answers)
    assert np.abs(answers - (queries @ found[:, :, None])[:, :, 0]).max() <= error + 1e-6
    np.testing.assert_array_equal(Consistent(0.0)(queries, answers), 0.5)  # more equations than unknowns, and noise


def test_least_squares_is_orthogonal_to_its_residuals() -> None:
    queries, answers, _ = programme("gaussian", 40, 10, 8)
    residual = answers - (queries @ LeastSquares()(queries, answers)[:, :, None])[:, :, 0]
    assert np.abs(queries.transpose(0, 2, 1) @ residual[:, :, None]).max() < 1e-9


def test_rows_are_what_they_are_called() -> None:
    rng = np.random.default_rng(0)
    assert set(random_rows("subset", (5, 9), rng).ravel()) == {0.0, 1.0}
    assert set(random_rows("sign", (5, 9), rng).ravel()) == {-1.0, 1.0}
    assert len(set(random_rows("gaussian", (5, 9), rng).ravel())) == 45
    with pytest.raises(SpecificationError, match="subset, sign, gaussian, got 'ones'"):
        random_rows("ones", (2, 2), rng)  # type: ignore[arg-type]


def test_bad_input_is_refused() -> None:
    with pytest.raises(SpecificationError, match=r"got 1.0 and 1.0"):
        LeastAbsolute(1.0, 1.0)
    with pytest.raises(SpecificationError, match="interior, highs, got 'simplex'"):
        LeastAbsolute(solver="simplex")  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match=r"tolerance must be in \(0, 1\), got 0"):
        LeastAbsolute(tolerance=0)
    with pytest.raises(SpecificationError, match="at least 0, got -1"):
        Consistent(-1)
    with pytest.raises(SpecificationError, match=r"got \(2, 3\), \(2,\)"):
        INTERIOR(np.ones((2, 3)), np.ones(2))
    with pytest.raises(SpecificationError, match="expected finite answers, got nan"):
        INTERIOR(np.ones((1, 2, 3)), np.array([[1.0, np.nan]]))
