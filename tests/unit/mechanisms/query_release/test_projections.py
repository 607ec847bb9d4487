"""Projections onto K, L and the nuclear ball, against other solvers and by their optimality conditions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from auditor.audits.accuracy import PowerLaw, Setting, Squared
from auditor.audits.accuracy.expectation import Expectation
from auditor.claims import Draft
from auditor.results import Verdict
from experiments.document_003_bellairs_lectures._projected import (
    FamilyErrors,
    independent,
    projected,
    repeated,
    worst_number,
)
from experiments.document_003_bellairs_lectures.product_attributes import product_attributes
from experiments.document_003_bellairs_lectures.projection import gaussian_projection
from experiments.document_003_bellairs_lectures.relaxed_projection import relaxed_projection
from mechanisms.query_release import projections
from mechanisms.query_release.projection_mutants import MUTANTS
from mechanisms.query_release.projections import (
    ConvexBody,
    NuclearBall,
    ProjectedMoments,
    RelaxedHull,
    SignVectorHull,
    onto_l1_ball,
    relaxed_by_program,
    sign_vectors,
)
from mechanisms.query_release.second_moments import NoisyMoments, SecondMoments, SignedHistogram

BODIES: list[ConvexBody] = [SignVectorHull(), RelaxedHull(), NuclearBall()]


def points(n: int, d: int, scale: float = 1.0, seed: int = 0) -> Any:
    return scale * np.random.default_rng([seed, d]).standard_normal((n, d, d))


def inner(a: Any, b: Any) -> Any:
    return (a * b).sum(axis=(1, 2))


# --------------------------------------------------------------------------------------------- K


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_vertices_are_all_rows_once(d: int) -> None:
    both = np.concatenate([sign_vectors(d), -sign_vectors(d)])
    assert sorted(map(tuple, both.tolist())) == sorted(itertools.product((-1.0, 1.0), repeat=d))


@pytest.mark.parametrize("d", [2, 3, 4])
def test_the_hull_by_brute_force(d: int) -> None:
    g = points(5, d)
    every = [np.outer(v, v) for v in itertools.product((-1.0, 1.0), repeat=d)]
    expected = [max(abs(float((one * vertex).sum())) for vertex in every) for one in g]
    np.testing.assert_allclose(SignVectorHull().support(g), expected)


@pytest.mark.parametrize("d", [2, 3, 4, 6])
def test_the_projection_onto_the_hull_by_nonnegative_least_squares(d: int) -> None:
    radius, g = 3.0, points(6, d, 4.0)
    found = SignVectorHull().project(g, radius, 1e-6)
    vertices = radius * np.array([np.outer(v, v).ravel() for v in sign_vectors(d)])
    vertices = np.concatenate([vertices, -vertices])
    for one, matrix in zip(g, found.matrices, strict=True):
        # A heavy row makes the weights sum to one, up to the square of its weight.
        heavy = 1e4
        system = np.concatenate([vertices.T, np.full((1, len(vertices)), heavy)])
        weights = optimize.nnls(system, np.append(one.ravel(), heavy))[0]
        np.testing.assert_allclose(matrix.ravel(), weights @ vertices, atol=1e-2)


def test_two_attributes_are_clipped() -> None:
    # K is a square: the mean of the diagonal and the mean beside it, each in [-1, 1].
    g = points(200, 2, 3.0)
    found = SignVectorHull().project(g, 2.0, 1e-9).matrices
    for places in ([(0, 0), (1, 1)], [(0, 1), (1, 0)]):
        mean = np.clip(sum(g[:, i, j] for i, j in places) / 2, -2.0, 2.0)
        for i, j in places:
            np.testing.assert_allclose(found[:, i, j], mean, atol=1e-4)


# ------------------------------------------------------------------------------------- all bodies


@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
@pytest.mark.parametrize("d", [2, 5, 7])
def test_the_gap_bounds_what_is_left(body: Any, d: int) -> None:
    g, radius, tolerance = points(10, d, 4.0), 3.0, 0.5
    found = body.project(g, radius, tolerance)
    rest = g - found.matrices
    assert (found.gap <= tolerance).all()
    # In the body: no linear function is larger on it than the body's maximum, up to the accuracy of that.
    for direction in (rest, points(10, d, seed=1)):
        assert (inner(direction, found.matrices) <= radius * body.support(direction) * (1 + 2e-3) + 1e-9).all()
    # The maximum that the gap is about, known within a thousandth.
    left = radius * body.support(rest) - inner(rest, found.matrices)
    assert (left <= found.gap + 2e-3 * radius * body.support(rest) + 1e-8).all()
    # Against a far better projection: at most the root of the gap away.
    best = body.project(g, radius, 0.1).matrices
    assert (inner(found.matrices - best, found.matrices - best) <= (math.sqrt(0.5) + math.sqrt(0.1)) ** 2).all()


@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
def test_points_of_the_body_stay(body: Any) -> None:
    inside = np.array([np.outer(v, v) for v in sign_vectors(4)[:3]]).mean(axis=0)[None]
    found = body.project(inside, 1.0, 1e-2)
    assert inner(found.matrices - inside, found.matrices - inside)[0] <= 1e-2


@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
def test_a_trial_does_not_depend_on_the_others(body: Any) -> None:
    # Up to the order of summation, which may decide between equal vertices: each is within the root of its gap.
    g, tolerance = points(6, 4, 4.0), 1e-2 if isinstance(body, RelaxedHull) else 1e-8
    together = body.project(g, 3.0, tolerance).matrices
    alone = np.concatenate([body.project(g[k : k + 1], 3.0, tolerance).matrices for k in range(6)])
    assert inner(together - alone, together - alone).max() <= 4 * tolerance + 1e-12


def test_the_bodies_contain_each_other() -> None:
    for d in (3, 6):
        g = points(10, d)
        low, high = RelaxedHull().limits(g)
        assert (SignVectorHull().support(g) <= high).all()
        assert (low <= NuclearBall().support(g) * (1 + 1e-12)).all()
        assert (high - low <= 1e-3 * high).all()


def test_the_upper_bound_holds_for_any_vectors() -> None:
    rng = np.random.default_rng(3)
    g = points(20, 5)
    attained = RelaxedHull().limits(g)[0]
    for rank in (1, 2, 5):
        vectors = rng.standard_normal((20, 5, rank))
        vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
        assert (RelaxedHull().upper(g, vectors) >= attained * (1 - 1e-12)).all()


@pytest.mark.parametrize("d", [3, 6])
def test_frank_wolfe_against_the_semidefinite_program(d: int) -> None:
    radius = 10.0
    g = points(3, d, 20.0)
    found = RelaxedHull().project(g, radius, 0.5)
    for one, matrix, gap in zip(g, found.matrices, found.gap, strict=True):
        solved = relaxed_by_program(one, radius)
        # Both squared distances to the point differ by at most twice the gap; the solver's own accuracy is 1e-6 or so.
        distances = [float(((one - other) ** 2).sum()) for other in (matrix, solved)]
        assert -1e-4 * distances[1] <= distances[0] - distances[1] <= 2 * gap + 1e-4 * distances[1]
        assert float(((matrix - solved) ** 2).sum()) <= gap + 1e-4 * distances[1]


@pytest.mark.parametrize("radius", [0.5, 3.0, 100.0])
def test_the_l1_ball_by_bisection(radius: float) -> None:
    values = np.random.default_rng(4).standard_normal((5, 7)) * 2
    found = onto_l1_ball(values, radius)
    for row, projected_row in zip(values, found, strict=True):
        if np.abs(row).sum() <= radius:
            np.testing.assert_allclose(projected_row, row)
            continue

        def left(threshold: float, row: Any = row) -> float:
            return float(np.maximum(np.abs(row) - threshold, 0).sum() - radius)

        threshold = optimize.brentq(left, 0.0, float(np.abs(row).max()), xtol=1e-14)
        np.testing.assert_allclose(projected_row, np.sign(row) * np.maximum(np.abs(row) - threshold, 0), atol=1e-9)


# ---------------------------------------------------------------------------------- the mechanism

NOISY = NoisyMoments(SecondMoments(4), 1.0, 1e-5)
DATA = SignedHistogram(sign_vectors(4)[:2], np.array([10.0, 6.0]))


@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
def test_no_error_is_above_the_bound(body: Any) -> None:
    released = ProjectedMoments(NOISY, body, 20.0, 0.01)
    truth = NOISY.query(DATA)
    noisy = NOISY(DATA, 100, np.random.default_rng(5))
    found = released.project(noisy, DATA)
    bound = 2 * released.size * body.support((noisy - truth).reshape(-1, 4, 4)) + released.gap
    assert (((found - truth) ** 2).sum(axis=1) <= bound).all()
    assert (np.linalg.norm(found - truth, axis=1) <= np.linalg.norm(noisy - truth, axis=1) + released.gap**0.5).all()


def test_mutants_do_what_they_say() -> None:
    released, rng = ProjectedMoments(NOISY, SignVectorHull(), 20.0), np.random.default_rng(6)
    truth = NOISY.query(DATA)
    exact = MUTANTS["exact_y_projected"].build(released)(DATA, 3, rng)
    # Within the gap; the same in every draw.
    assert (exact == exact[0]).all()
    assert ((exact[0] - truth) ** 2).sum() <= released.gap
    private = MUTANTS["private_n"].build(released)
    assert isinstance(private, ProjectedMoments)
    assert private.radius(DATA) == 16.0
    assert private.radius(np.ones((3, 4))) == 3.0
    assert released.radius(DATA) == 20.0
    assert np.abs(MUTANTS["projection_onto_K"].build(released)(DATA, 50, rng)).max() <= 1 + 1e-9
    relaxed = replace(released, body=RelaxedHull())
    equal = MUTANTS["factors_forced_equal"].build(relaxed)(DATA, 20, rng).reshape(20, 4, 4)
    assert (np.linalg.eigvalsh(equal) >= -1e-9).all()
    wide = ProjectedMoments(NoisyMoments(SecondMoments(9), 1.0, 1e-5), RelaxedHull(), 20.0)
    nine = SignedHistogram(np.ones((1, 9)), np.array([20.0]))
    long = MUTANTS["vectors_not_normalised"].build(wide)(nine, 5, rng).reshape(5, 9, 9)
    assert np.linalg.matrix_rank(long).max() == 6
    # One atom of L, whose entries are all at most the radius.
    early = MUTANTS["frank_wolfe_stopped_early"].build(relaxed)(DATA, 20, rng)
    assert np.abs(early).max() <= 20.0 + 1e-9


def test_private_n_shows_in_what_is_outside() -> None:
    # With one person fewer, no output is outside of 15 K; with 16 persons, many are.
    private = MUTANTS["private_n"].build(ProjectedMoments(NOISY, SignVectorHull(), 20.0, 1e-6))
    fewer = SignedHistogram(DATA.rows, np.array([10.0, 5.0]))
    rng = np.random.default_rng(7)
    # The largest entry of a point of n K is at most n.
    with_all, without = (np.abs(private(data, 200, rng)).max(axis=1) for data in (DATA, fewer))
    assert without.max() <= 15 + 1e-9
    assert (with_all > 15 + 1e-9).any()


def test_a_fifth_of_the_families_has_the_worst() -> None:
    # At d = 24 and n = 96. Errors of ten draws each vary by 1 %, the worst of a flat top is within 6 % of another's.
    d, rng = 24, np.random.default_rng(8)
    every = [repeated(d, 4 * d, r) for r in (*range(1, d + 1, 2), worst_number(d))] + [independent(d, 4 * d)]
    errors = np.median(FamilyErrors(projected(d, NuclearBall(), 4 * d))(every, 10, rng), axis=0)
    assert errors[-2] >= 0.94 * errors.max()
    assert errors[0] < 0.9 * errors.max()
    assert errors[-1] < 0.95 * errors.max()


def test_families_are_what_they_say() -> None:
    family = repeated(5, 17, 4)
    assert family.counts.tolist() == [5.0, 4.0, 4.0, 4.0]
    assert len(np.unique(family.rows, axis=0)) == 4
    assert np.array_equal(family.rows, repeated(5, 40, 4).rows)
    assert len(repeated(3, 8, 8).rows) == 8


# ---------------------------------------------------------------------------------------- mistakes


def test_mistakes_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="from 1 to 12 dimensions for enumeration, got 13"):
        SignVectorHull().support(np.zeros((1, 13, 13)))
    with pytest.raises(ValueError, match=r"a finite size > 0, got 0\.0"):
        ProjectedMoments(NOISY, SignVectorHull(), 0.0)
    with pytest.raises(ValueError, match="a finite tolerance > 0"):
        ProjectedMoments(NOISY, SignVectorHull(), 1.0, -1.0)
    monkeypatch.setattr(projections, "_STEPS", 1)
    for body in (SignVectorHull(), RelaxedHull()):
        with pytest.raises(RuntimeError, match="the gap is above 1e-09 after 1 steps"):
            body.project(points(2, 4, 5.0), 1.0, 1e-9)


# --------------------------------------------------------------------------------- what a bound says

LECTURE_7 = (gaussian_projection, relaxed_projection, product_attributes)


def held_errors() -> list[Draft]:
    """Claims that hold of mean squared errors of projections."""
    drafts = [draft for entry in LECTURE_7 for draft in entry.function()]
    return [
        draft
        for draft in drafts
        if isinstance(draft.mechanism, ProjectedMoments)
        and isinstance(draft.guarantee, Expectation)
        and isinstance(draft.subject, Setting)
        and isinstance(draft.subject.error, Squared)
        and draft.expected == Verdict.CONSISTENT
    ]


def test_a_bound_on_the_error_is_below_those_of_plain_noise_and_of_the_answer_0() -> None:
    """The answer 0 is off by n on data of one row, on which each mechanism is claimed as well."""
    refuted: dict[tuple[str, int, float], bool] = {}
    for draft in held_errors():
        released, claimed, setting = draft.mechanism, draft.guarantee, draft.subject
        assert isinstance(released, ProjectedMoments)
        assert isinstance(claimed, Expectation)
        if draft.case == "two_hundred_persons":  # which compares with plain noise
            continue
        assert claimed.at_most < min(released.noisy.scale**2, released.size**2), draft.case
        key = (type(released.body).__name__, released.width, released.size)
        nothing = float(setting.error(np.zeros((1, released.width**2)))[0])
        refuted[key] = refuted.get(key, False) or nothing > claimed.at_most
    assert len(refuted) >= 4
    assert all(refuted.values()), refuted


def test_curves_of_bounds_are_below_those_errors_too() -> None:
    claims = {
        draft.case: draft.guarantee for draft in (*gaussian_projection.function(), *product_attributes.function())
    }
    sizes: dict[str, Callable[[float], tuple[float, float]]] = {
        "bound_and_people": lambda n: (64, n),
        "bound_and_attributes": lambda d: (d, 350),
        "four_way_worst_family": lambda product: (round((product / 4) ** (2 / 3)), 4 * round((product / 4) ** (2 / 3))),
    }
    for case, of in sizes.items():
        law = claims[case]
        assert isinstance(law, PowerLaw)
        assert law.curve is not None
        for value in law.at:
            width, people = of(value)
            scale = projected(int(width), NuclearBall(), people).noisy.scale
            assert law.curve(value) < min(scale, people), (case, value)
