"""Every stated distribution against its sampler, and what all mechanisms have in common.

The statistical check counts draws in cells of the distribution and compares each count with exact binomial
quantiles at 1e-7 / (number of cells), two-sided: by the union bound one call alarms falsely with
probability at most 1e-7 for any seed, and no test makes more than 10 calls.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.laws import FiniteLaw, Law, ProductLaw, TwoSidedGeometricLaw
from mechanisms.additive_noise import gaussian, geometric, laplace, truncated_geometric
from mechanisms.additive_noise.gaussian import CalibratedGaussian, LatticeGaussian
from mechanisms.additive_noise.geometric import TwoSidedGeometric
from mechanisms.additive_noise.histogram import MUTANTS as SIZES
from mechanisms.additive_noise.histogram import SumAndSize, gaussian_histogram, laplace_histogram
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.additive_noise.truncated_geometric import TruncatedGeometric
from mechanisms.base.mechanism import Dataset, Mechanism, Mutant, TimesEpsilon, tabulate_mutants, unbounded
from mechanisms.base.queries import ClippedSum, Count, Histogram, IdentityQuery, SeveralCounts
from mechanisms.local_model import randomized_response
from mechanisms.local_model.randomized_response import RandomizedResponse, estimated_mean, from_epsilon
from mechanisms.selection import exponential, noisy_max, sparse_vector
from mechanisms.selection.exponential import ExponentialMechanism
from mechanisms.selection.noisy_max import PermuteAndFlip, ReportNoisyMax
from mechanisms.selection.sparse_vector import SparseVector

FALSE_ALARM = 1e-7
DRAWS = 40_000


class WithLaw(Protocol):
    def __call__(self, data: Dataset, n: int, rng: np.random.Generator, /) -> NDArray[Any]: ...

    def law(self, data: Dataset) -> Law: ...


def assert_counts(counts: NDArray[Any], probabilities: NDArray[Any]) -> None:
    """Compare each cell's count with exact binomial quantiles; see the module's docstring."""
    n, tail = int(counts.sum()), FALSE_ALARM / (2 * counts.size)
    low = stats.binom.ppf(tail, n, np.clip(probabilities, 0, 1))
    high = stats.binom.isf(tail, n, np.clip(probabilities, 0, 1))
    wrong = (counts < low) | (counts > high)
    assert not wrong.any(), (counts[wrong], n * probabilities[wrong])


def assert_follows(outputs: NDArray[Any], law: Law) -> None:
    if isinstance(law, ProductLaw):
        for i, part in enumerate(law.parts):
            assert_follows(outputs[:, i], part)
    elif isinstance(law, FiniteLaw):
        seen, counts = np.unique(outputs, axis=0, return_counts=True)
        by_outcome = dict(zip([tuple(r) if r.ndim else r.item() for r in seen], counts.tolist(), strict=True))
        impossible = set(by_outcome) - {o for o, p in zip(law.outcomes, law.probabilities, strict=True) if p > 0}
        assert not impossible
        assert_counts(np.array([by_outcome.get(o, 0) for o in law.outcomes]), law.probabilities)
    else:
        if isinstance(law, TwoSidedGeometricLaw):
            spread = 1.0 / law.log_a
        else:
            spread = law.sigma if hasattr(law, "sigma") else law.scale
        if hasattr(law, "step"):  # centre and spread are in lattice steps; edges lie between lattice points
            edges = law.step * (law.loc + np.unique(np.rint(spread * np.linspace(-3.0, 3.0, 13))) + 0.5)
        else:
            edges = law.loc + spread * np.linspace(-3.0, 3.0, 13)
        cdf = np.concatenate([[0.0], law.cdf(edges), [1.0]])
        cells = np.bincount(np.searchsorted(edges, outputs, side="left"), minlength=edges.size + 1)
        assert_counts(cells, np.diff(cdf))


BITS = np.array([0, 1, 1, 0, 1])
ROWS = np.array([0.0, 1.0, 1.0, 2.0, 2.0, 2.0])
SCORES = np.array([0.0, 1.0, 1.0, -2.0, 3.0])
STREAM = np.array([0.0, 1.0, 0.0, 1.0, 0.5])
COUNTS = SeveralCounts((Count(low=1.0), Count(low=2.0)))
LATTICE = LatticeLaplace(IdentityQuery(), 0.5, 2.0**-4)
GEOMETRIC = TwoSidedGeometric(Count(low=1.0), 1.7)
CHOICE = ExponentialMechanism(IdentityQuery(5.0), 1.0)
WINNER = ReportNoisyMax(IdentityQuery(5.0), 1.0)
RESPONSE = RandomizedResponse(0.4)
STREAMING = SparseVector(IdentityQuery(5.0), 1.0, 0.5, 2)
GAUSSIAN = CalibratedGaussian(COUNTS, 1.0, 1e-3, "classical", 0.25)
CLAMPED = TruncatedGeometric(Count(low=1.0), 1.7, 7)
BOTH = SumAndSize(ClippedSum(low=-1.0, high=2.0, relation="add_remove_one", resolution=1.0), 1.0)
CELLS = Histogram(categories=(0.0, 1.0, 2.0))

REFERENCES: list[tuple[WithLaw, Dataset]] = [
    (GEOMETRIC, ROWS),
    (TwoSidedGeometric(Histogram(categories=(0.0, 1.0, 2.0)), 1.05), ROWS),
    (TwoSidedGeometric(Count(), 50.0), ROWS),
    (LATTICE, 0.3),
    (LatticeLaplace(COUNTS, 1.0, 0.5), ROWS),
    (LatticeLaplace(ClippedSum(low=-1.0, high=1.0), 2.0), ROWS),
    (LatticeGaussian(IdentityQuery(), 2.0), 1.5),
    (LatticeGaussian(COUNTS, 0.5, 0.25), ROWS),
    (GAUSSIAN, ROWS),
    (gaussian_histogram(CELLS, 1.0, 1e-3), ROWS),
    (laplace_histogram(CELLS, 1.0), ROWS),
    (CLAMPED, ROWS),
    (TruncatedGeometric(COUNTS, 1.2, 4), ROWS),
    (BOTH, ROWS),
    (RESPONSE, BITS),
    (from_epsilon(3.0), BITS),
    (CHOICE, SCORES),
    (WINNER, SCORES),
    (ReportNoisyMax(IdentityQuery(5.0), 3.0, "exponential"), SCORES),
    (PermuteAndFlip(IdentityQuery(5.0), 1.0), SCORES),
    (STREAMING, STREAM),
    (SparseVector(IdentityQuery(5.0), 1.0, 0.5, 2, "V2"), STREAM),
]


def with_laws(mutants: dict[str, Mutant[Any]], base: Any, data: Dataset) -> list[tuple[WithLaw, Dataset]]:
    built: list[Any] = [mutant.build(base) for mutant in mutants.values()]
    return [(m, data) for m in built if hasattr(m, "law") and getattr(m, "variant", "") != "V3"]


MUTATED = [
    *with_laws(gaussian.MUTANTS, GAUSSIAN, ROWS),
    *with_laws(truncated_geometric.MUTANTS, CLAMPED, ROWS),
    *with_laws(truncated_geometric.MUTANTS, TruncatedGeometric(COUNTS, 1.2, 4), ROWS),
    *with_laws(SIZES, BOTH, ROWS),
    *with_laws(geometric.MUTANTS, TwoSidedGeometric(Histogram(edges=(0.0, 1.0, 2.0)), 1.3), ROWS),
    *with_laws({k: m for k, m in laplace.MUTANTS.items() if k != "local_sensitivity"}, LATTICE, 2.3),
    (laplace.MUTANTS["local_sensitivity"].build(LatticeLaplace(Count(low=1.0), 0.5)), ROWS),
    (laplace.MUTANTS["local_sensitivity"].build(LatticeLaplace(Count(low=9.0), 0.5)), ROWS),
    (laplace.MUTANTS["bounded_support_noise"].build(LatticeLaplace(COUNTS, 0.5, 0.25)), ROWS),
    *with_laws(randomized_response.MUTANTS, RESPONSE, BITS),
    *with_laws(exponential.MUTANTS, CHOICE, SCORES),
    *with_laws(noisy_max.MUTANTS, WINNER, SCORES),
    *with_laws(noisy_max.FLIP_MUTANTS, PermuteAndFlip(IdentityQuery(5.0), 1.0), SCORES),
    *with_laws(sparse_vector.MUTANTS, STREAMING, STREAM),
]


def name_of(value: object) -> str | None:
    return type(value).__name__ if callable(value) else None


@pytest.mark.parametrize(("mechanism", "data"), [*REFERENCES, *MUTATED], ids=name_of)
def test_draws_follow_the_stated_law(mechanism: WithLaw, data: Dataset) -> None:
    outputs = mechanism(data, DRAWS, np.random.default_rng(20_240))
    assert outputs.shape[0] == DRAWS
    assert_follows(outputs, mechanism.law(data))


@pytest.mark.parametrize(
    ("mechanism", "data"),
    [(GEOMETRIC, ROWS), (LatticeLaplace(COUNTS, 1.0), ROWS), (RESPONSE, BITS), (GAUSSIAN, ROWS), (BOTH, ROWS)],
)
def test_coordinates_are_independent(mechanism: Mechanism, data: Dataset) -> None:
    outputs = mechanism(data, 2 * DRAWS, np.random.default_rng(5))
    # Two coordinates, or two consecutive draws of the only one.
    pair = outputs[:, :2] if outputs.ndim == 2 else outputs.reshape(-1, 2)
    high = pair > np.median(pair, axis=0)
    share = high.mean(axis=0)
    both = int(np.count_nonzero(high.all(axis=1)))
    n = pair.shape[0]
    # Given both margins the joint count is hypergeometric, exactly, under independence.
    law = stats.hypergeom(n, round(share[0] * n), round(share[1] * n))
    assert law.ppf(FALSE_ALARM / 2) <= both <= law.isf(FALSE_ALARM / 2)


SHAPES: list[tuple[Mechanism, Dataset, tuple[int, ...], Any]] = [
    (GEOMETRIC, ROWS, (), np.int64),
    (TwoSidedGeometric(COUNTS, 2.0), ROWS, (2,), np.int64),
    (LATTICE, 0.0, (), np.float64),
    (LatticeLaplace(COUNTS, 1.0), ROWS, (2,), np.float64),
    (LatticeGaussian(COUNTS, 1.0), ROWS, (2,), np.float64),
    (GAUSSIAN, ROWS, (2,), np.float64),
    (CLAMPED, ROWS, (), np.int64),
    (BOTH, ROWS, (2,), np.float64),
    *[(m.build(GAUSSIAN), ROWS, (2,), np.float64) for m in gaussian.MUTANTS.values()],
    *[(m.build(CLAMPED), ROWS, (), np.int64) for m in truncated_geometric.MUTANTS.values()],
    *[(m.build(BOTH), ROWS, (2,), np.float64) for m in SIZES.values()],
    (RESPONSE, BITS, (5,), np.uint8),
    (CHOICE, SCORES, (), np.int64),
    (WINNER, SCORES, (), np.int64),
    (PermuteAndFlip(IdentityQuery(5.0), 1.0), SCORES, (), np.int64),
    (noisy_max.MUTANTS["released_maximum"].build(WINNER), SCORES, (), np.float64),
    (STREAMING, STREAM, (5,), np.int8),
    (SparseVector(IdentityQuery(5.0), 1.0, 0.5, 2, "V3"), STREAM, (5,), np.float64),
    *[(m.build(GEOMETRIC), ROWS, (), np.int64) for m in geometric.MUTANTS.values()],
    *[(m.build(LatticeLaplace(Count(), 1.0)), ROWS, (), np.float64) for m in laplace.MUTANTS.values()],
    *[
        (m.build(LatticeLaplace(Histogram(edges=(0, 1, 2)), 1.0)), ROWS, (2,), np.float64)
        for m in laplace.MUTANTS.values()
    ],
    *[(m.build(RESPONSE), BITS, (5,), np.uint8) for m in randomized_response.MUTANTS.values()],
    *[(m.build(CHOICE), SCORES, (), np.int64) for m in exponential.MUTANTS.values()],
]


@pytest.mark.parametrize(("mechanism", "data", "shape", "dtype"), SHAPES, ids=name_of)
def test_shape_dtype_determinism_and_pickling(
    mechanism: Mechanism, data: Dataset, shape: tuple[int, ...], dtype: Any
) -> None:
    first = mechanism(data, 7, np.random.default_rng(3))
    assert first.shape == (7, *shape)
    assert first.dtype == dtype
    copy = pickle.loads(pickle.dumps(mechanism))
    assert copy == mechanism
    np.testing.assert_array_equal(copy(data, 7, np.random.default_rng(3)), first)
    assert mechanism(data, 1, np.random.default_rng(3)).shape == (1, *shape)
    with pytest.raises(ValueError, match=r"expected a number of draws n >= 1, got 0"):
        mechanism(data, 0, np.random.default_rng(3))


def test_lattice_outputs_stay_on_the_lattice() -> None:
    for data in (0.0, 0.3, 1.0):
        outputs = LATTICE(data, 1000, np.random.default_rng(0))
        np.testing.assert_array_equal(np.fmod(outputs, LATTICE.step), 0.0)


def test_randomized_response_estimates_the_mean() -> None:
    outputs = RESPONSE(BITS, DRAWS, np.random.default_rng(9))
    estimate = estimated_mean(outputs, RESPONSE.parameter)
    # Hoeffding over all DRAWS * 5 published bits: two-sided 1e-7.
    slack = np.sqrt(np.log(2 / FALSE_ALARM) / (2 * outputs.size)) / RESPONSE.parameter
    assert abs(float(estimate.mean()) - BITS.mean()) <= slack
    assert from_epsilon(np.log(2.0)).keep == pytest.approx(2 / 3, rel=1e-15)  # Warner's coin


@pytest.mark.parametrize(
    "build",
    [
        lambda: TwoSidedGeometric(Count(), 1.0),
        lambda: TwoSidedGeometric(Count(), np.exp(-1.0)),  # mutant iii: 1/a for a
        lambda: TwoSidedGeometric(IdentityQuery(1.5), 2.0),
        lambda: TwoSidedGeometric(IdentityQuery(granularity=0.5), 2.0),
        lambda: TwoSidedGeometric(IdentityQuery(), 2.0)(0.5, 1, np.random.default_rng(0)),
        lambda: LatticeLaplace(Count(), 0.0),
        lambda: LatticeLaplace(Count(), 1.0, 0.3),
        lambda: laplace.default_step(0.0),
        lambda: RandomizedResponse(0.0),
        lambda: RandomizedResponse(1.0),
        lambda: from_epsilon(-1.0),
        lambda: RESPONSE.law([0, 2]),
        lambda: RESPONSE.law([]),
        lambda: ExponentialMechanism(IdentityQuery(), -1.0),
        lambda: CHOICE.law(1.0),
        lambda: CHOICE.law([0.0, 1e6]),
        lambda: ReportNoisyMax(IdentityQuery(), 0.0),
        lambda: ReportNoisyMax(IdentityQuery(), 1.0, "uniform"),  # type: ignore[arg-type]
        lambda: WINNER.law(1.0),
        lambda: WINNER.law([0.0, 1e6]),
        lambda: SparseVector(IdentityQuery(), 0.0),
        lambda: SparseVector(IdentityQuery(), 1.0, np.nan),
        lambda: SparseVector(IdentityQuery(), 1.0, 0.0, 0),
        lambda: SparseVector(IdentityQuery(), 1.0, 0.0, 1, "V7"),  # type: ignore[arg-type]
        lambda: STREAMING.law(1.0),
        lambda: STREAMING.law([0.0, 1e9]),
        lambda: SparseVector(IdentityQuery(), 1.0, variant="V3").law([0.0]),
        lambda: SparseVector(IdentityQuery(), 1.0, variant="V6").law([0.0] * 20),
        lambda: tabulate_mutants(
            Mutant("a", lambda base: base, unbounded, "benign", ""), Mutant("a", lambda base: base, None, "benign", "")
        ),
    ],
)
def test_refusals_show_what_was_expected(build: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"expected .*, got "):
        build()


def test_default_step_and_times() -> None:
    assert laplace.default_step(1.0) == 2.0**-10
    assert laplace.default_step(3e-5) <= 3e-5 / 1024 < 2 * laplace.default_step(3e-5)
    assert TimesEpsilon(2.0)(LATTICE) == 1.0
