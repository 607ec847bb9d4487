"""Document 003, section 4.3: pure privacy costs an error that is linear in the number of queries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from auditor.audits.accuracy import Figure, Largest, Quantile, Setting
from auditor.audits.adversaries.packing import Packing
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Erratum,
    Source,
    accuracy,
    adversary,
    as_corrected,
    as_printed,
    entry,
    exact,
    inequality,
    scaling,
)
from auditor.datasets import Pair
from auditor.privacy.guarantees import ApproxDP, PureDP
from experiments.common import REPLACE
from mechanisms.additive_noise.column_counts import (
    MUTANTS,
    ConstantCounts,
    GaussianCounts,
    LaplaceCounts,
    LargestNormCounts,
)
from mechanisms.base.mechanism import FloatArray
from mechanisms.lower_bounds.packing import RowNames, RowNamesOfMany, certified

#: The lemma's own epsilon, and the packing of the instance: k = 100 columns and as many identical rows.
_EPSILON, _K = 0.25, 100
_LN2 = math.log(2.0)
_SIZES = (25.0, 50.0, 100.0, 200.0, 400.0)

_J2 = Erratum(
    "J2",
    "false",
    "Some dataset has an error above R/2 with probability above 1/2, and Error(Q) > k/2",
    fails="the answer (k/2, ..., k/2), whatever the data, is 0-DP, and its error is exactly k/2 on each of the 2^k "
    "datasets: balls of radius R/2 are disjoint only if they are open",
    correction="an error of at least R/2 with probability above 1/2; Error(Q) >= k/2",
)


@dataclass(frozen=True)
class LargestErrorBelowBound:
    """Whether the largest error is below a bound, 1 or 0: what a lower bound allows only so often."""

    truth: tuple[float, ...]
    bound: float

    def __call__(self, outputs: Any) -> FloatArray:
        """Of n outputs of shape (n, d), shape (n,)."""
        return np.asarray(Largest(self.truth)(outputs) < self.bound, dtype=np.float64)


def _identical_rows(rows: int, columns: int, row: int = -1) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Table of identical rows: the bits of a number, all ones by default."""
    one = (row >> np.arange(columns)) & 1 if columns < 63 else np.ones(columns, dtype=np.int64)
    return np.broadcast_to(one, (rows, columns)).astype(np.int64)


@entry(
    "003/pure_dp_packing_bound",
    title="Pure privacy costs a linear error on one-way marginals",
    source=Source("003", "Lemma 4.3.1 and the instance below it"),
    errata=[_J2],
)
def packing_bound() -> Iterator[Draft]:
    """The 2^k tables of k identical rows of k columns: who names the table too often is not purely private.

    The catalogue counts a distance of 2 k steps of adding and removing between two of the tables, and calls k a
    mistake. For a mechanism that is private on all tables k is right: the empty table is k steps from every one of
    them, and the argument needs the distance from one dataset to all, not between any two. Then 2^k > 2 e^(k/4) is
    enough, for k >= 2. Where tables have at least k rows (or a fixed number), it is a mistake, and such a mechanism
    shows it.
    """
    yield from _attacks()
    yield from _levels()
    yield from _errors()
    yield from _exponents()
    yield from _strictness()


# ------------------------------------------------------------------------------- the adversary


def _attacks() -> Iterator[Draft]:
    table = _identical_rows(10, 10)
    other = table.copy()
    other[0] = 0
    pair = Pair(table, other, "ten rows of ones, one of them replaced by zeros")
    for case, epsilon in (("laplace_at_a_half", 0.5), ("laplace_at_a_quarter", 0.25)):
        yield exact(LaplaceCounts(10, epsilon).plain, PureDP(epsilon), pair, case=case, relation=REPLACE)
        target = LaplaceCounts(_K, epsilon)
        yield adversary(target, PureDP(epsilon), Packing(_K, _K), case=case, exact_level=epsilon)
    yield adversary(
        LargestNormCounts(_K, 0.5), PureDP(0.5), Packing(_K, _K), case="largest_norm_at_a_half", exact_level=0.5
    )
    # Claimed for what it is, the same noise resists: of two rows, 0.1 (1 + e) is allowed.
    yield adversary(
        GaussianCounts(_K, 1.0, 0.1),
        ApproxDP(1.0, 0.1),
        Packing(2, _K),
        case="gaussian_as_approximate",
        exact_level=1.0,
    )
    found = MUTANTS["gaussian_presented_as_pure"]
    for case, k, built in (
        ("gaussian_presented_as_pure", _K, found.build(LaplaceCounts(_K, 0.5))),
        ("gaussian_presented_as_pure__from_a_quarter", 200, GaussianCounts(200, 0.25, 0.1)),
    ):
        yield adversary(
            built,
            PureDP(0.5),
            Packing(k, k),
            case=case,
            expected="violation",
            exact_level=math.inf,
            is_mutant=True,
            note=found.note,
        )


# ---------------------------------------------------------------------------- levels, computed


def _levels() -> Iterator[Draft]:
    yield inequality(
        lambda: _largest_resisting_radius(_K),
        statement="the level that the packing certifies of a pure mechanism is at most its own",
        case="certified_of_pure",
    )
    yield inequality(
        _of_gaussians,
        statement="sold as 0.5-DP, Gaussian noise for approximate privacy is certified to be worse",
        relation="<",
        case="certified_of_gaussian",
    )
    yield inequality(
        lambda: _many_rows(2),
        statement="the certified level, with a distance of 2 k, is at most that of a mechanism on tables of at least "
        "k rows",
        case="distance_of_two_steps_a_row",
    )
    yield inequality(
        lambda: _many_rows(1),
        statement="the certified level, with a distance of k, is at most that of a mechanism on tables of at least "
        "k rows",
        case="distance_k_under_add_remove",
        expected="deviation",
        is_mutant=True,
        note="on such tables two of the packing are 2 k steps of adding and removing apart, by any way",
    )
    yield inequality(
        _through_the_empty_table,
        statement="the certified level, with the distance k from the empty table, is at most that of a mechanism on "
        "all tables",
        case="distance_from_the_empty_table",
        derived=True,
    )
    for case, closed in (("open_balls", False), ("closed_balls", True)):
        yield inequality(
            lambda closed=closed: _constant(closed),  # type: ignore[misc]
            statement=f"a constant answer, 0-DP, is certified no level with {'closed' if closed else 'open'} balls",
            case=case,
            expected="deviation" if closed else "consistent",
            is_mutant=closed,
            note="an error of k/2 is in the closed balls of all datasets at once" if closed else "",
        )


def _largest_resisting_radius(k: int) -> list[Row]:
    found: list[Row] = []
    for epsilon in (0.1, 0.25, 0.5, 0.69, 1.0, 2.0):
        for name, mechanism in (
            ("Laplace", LaplaceCounts(k, epsilon)),
            ("largest norm", LargestNormCounts(k, epsilon)),
        ):
            inside = mechanism.inside(k / 2)
            level = certified(math.log(inside) if inside else -math.inf, k * _LN2, k)
            found.append((f"{name} noise, eps = {epsilon:g}, k = {k}", level, epsilon))
    return found


def _of_gaussians() -> list[Row]:
    return [
        (
            f"noise for ({epsilon:g}, 0.1), k = {k}",
            0.5,
            certified(math.log(GaussianCounts(k, epsilon, 0.1).inside(k / 2)), k * _LN2, k),
        )
        for epsilon, k in ((1.0, 100), (0.25, 200), (0.25, 400))
    ]


def _many_rows(steps: int) -> list[Row]:
    return [
        (
            f"eps = {epsilon:g}, k = {k}",
            certified(RowNamesOfMany(k, k, epsilon).log_right(), k * _LN2, steps * k),
            epsilon,
        )
        for epsilon in (0.1, 0.25, 0.4)
        for k in (20, 40, 100)
    ]


def _through_the_empty_table() -> list[Row]:
    return [
        (f"eps = {epsilon:g}, k = {k}", certified(RowNames(k, epsilon).log_right(k), k * _LN2, k), epsilon)
        for epsilon in (0.1, 0.25, 0.4, 0.6, 1.0)
        for k in (4, 20, 100)
    ]


def _constant(closed: bool) -> list[Row]:
    found: list[Row] = []
    for k in (4, 6, 10):
        errors = _constant_errors(k)
        right = float(np.mean(errors <= k / 2 if closed else errors < k / 2))
        level = certified(math.log(right) if right else -math.inf, k * _LN2, k)
        found.append((f"k = {k}", level, 0.0))
    return found


def _constant_errors(k: int) -> FloatArray:
    """Error of the constant k/2 on each of the 2^k tables, shape (2^k,)."""
    tables = np.stack([_identical_rows(k, k, row) for row in range(1 << k)])
    answers = ConstantCounts(k, k / 2).each(tables, np.random.default_rng(0))
    return np.asarray(np.abs(answers - tables.sum(axis=1)).max(axis=1), dtype=np.float64)


# --------------------------------------------------------------------------------- the lemma's error


def _errors() -> Iterator[Draft]:
    yield inequality(
        lambda: [(f"k = {k}", _LN2 + 2 * _EPSILON * k, k * _LN2) for k in (4, 5, 10, 100, 1000)],
        statement="2 e^(2 eps k) < 2^k at eps = 1/4 (adding and removing, between two tables), for k >= 4",
        relation="<",
        case="enough_datasets",
        level="L4",
    )
    yield inequality(
        lambda: [(f"k = {k}", k * _LN2, _LN2 + 2 * _EPSILON * k) for k in (1, 2, 3)],
        statement="2^k <= 2 e^(2 eps k) at eps = 1/4 for k <= 3, which the condition leaves out",
        case="too_few_datasets",
        level="L4",
    )
    yield inequality(
        lambda: [(f"k = {k}", _LN2 + _EPSILON * k, k * _LN2) for k in (2, 3, 4, 10, 100, 1000)],
        statement="2 e^(eps k) < 2^k at eps = 1/4 (replacing, or through the empty table), for k >= 2",
        relation="<",
        case="enough_datasets_by_replacing",
        level="L4",
        derived=True,
    )
    # An error below k/2 has a probability below 1/2 for pure privacy, and near 1 for approximate privacy.
    for k in (4, 20, 100):
        table, truth = _identical_rows(k, k), (float(k),) * k
        for name, mechanism in (
            ("laplace", LaplaceCounts(k, _EPSILON)),
            ("largest_norm", LargestNormCounts(k, _EPSILON)),
        ):
            yield accuracy(
                mechanism,
                table,
                LargestErrorBelowBound(truth, k / 2),
                at_most=0,
                beta=0.5,
                exact=mechanism.inside(k / 2),
                case=f"{name}_does_not_beat_half_of_k_{k}",
                draws={"smoke": 200, "standard": 2_000},
                note="a failure is an error below k/2",
            )
    gaussian = GaussianCounts(_K, 1.0, 0.1)
    missed = 1.0 - gaussian.inside(_K / 2)
    yield accuracy(
        gaussian,
        _identical_rows(_K, _K),
        Largest((float(_K),) * _K),
        at_most=_K / 2,
        beta=0.01,
        strict=True,
        exact=missed,
        case="approximate_privacy_beats_half_of_k",
        draws={"smoke": 5_000, "standard": 20_000},
        note="(1, 0.1): what pure privacy cannot do",
    )


def _harmonic_number(k: float) -> float:
    """H_k, the expectation of the largest of k exponential variables."""
    return sum(1.0 / i for i in range(1, int(k) + 1))


def _normal_maximum(k: float) -> float:
    """Median of the largest of k normal variables in absolute value; ``sqrt(2 ln k)`` to leading order."""
    return float(special.ndtri((1.0 + 2.0 ** (-1.0 / k)) / 2.0))


def _exponents() -> Iterator[Draft]:

    def figure(curve: str) -> Figure:
        return Figure("Largest error of k one-way marginals, epsilon = 1", curve, "k", "median of the largest error")

    draws = {"smoke": 2_000, "standard": 20_000}

    def build(kind: Any) -> Any:
        def at(k: float) -> Setting:
            size = int(k)
            return Setting(kind(size), _identical_rows(size, size), Largest((k,) * size))

        return at

    yield scaling(
        build(lambda k: LargestNormCounts(k, 1.0)),
        parameter="k",
        at=_SIZES,
        exponent=1.0,
        others=(0.5,),
        measure=Quantile(0.5),
        both=True,
        figure=figure("pure, noise by the largest norm"),
        case="largest_error_pure",
        draws=draws,
        note="noise by the largest norm, without a log factor",
    )
    yield scaling(
        build(lambda k: LaplaceCounts(k, 1.0)),
        parameter="k",
        at=_SIZES,
        exponent=1.0,
        others=(0.5,),
        log_factor=_harmonic_number,
        measure=Quantile(0.5),
        both=True,
        figure=figure("pure, Laplace noise"),
        case="largest_error_laplace",
        draws=draws,
        note="k ln k",
    )
    yield scaling(
        build(lambda k: GaussianCounts(k, 1.0, 0.1)),
        parameter="k",
        at=_SIZES,
        exponent=0.5,
        others=(1.0,),
        log_factor=_normal_maximum,
        measure=Quantile(0.5),
        both=True,
        figure=figure("(1, 0.1), Gaussian noise"),
        case="largest_error_approximate",
        draws=draws,
        note="(1, 0.1): sqrt(k ln k)",
    )


# ----------------------------------------------------------------------- strict, as it is printed


def _strictness() -> Iterator[Draft]:
    """The constant answer is 0-DP: at eps = 1/4 the lemma speaks of it for k >= 4, and asks for one dataset."""
    yield as_printed(
        "J2",
        inequality(
            lambda: _largest_share(strict=True),
            statement="1/2 < P[error > k/2] on one of the 2^k tables",
            relation="<",
            level="L4",
            case="error_above_half_of_k_as_printed",
            expected="deviation",
        ),
    )
    yield as_corrected(
        "J2",
        inequality(
            lambda: _largest_share(strict=False),
            statement="1/2 < P[error >= k/2] on one of the 2^k tables",
            relation="<",
            level="L4",
            case="error_of_half_of_k_as_corrected",
        ),
    )
    k = 6
    yield as_printed(
        "J2",
        accuracy(
            ConstantCounts(k, k / 2),
            _identical_rows(k, k),
            LargestErrorAtMostBound((float(k),) * k, k / 2),
            at_most=0,
            beta=0.5,
            case="constant_answer_as_printed",
            expected="deviation",
            independence=False,
            draws={"smoke": 200, "standard": 200},
            note="a failure is an error of at most k/2; by symmetry every one of the tables has the same",
        ),
    )
    yield as_corrected(
        "J2",
        accuracy(
            ConstantCounts(k, k / 2),
            _identical_rows(k, k),
            LargestErrorBelowBound((float(k),) * k, k / 2),
            at_most=0,
            beta=0.5,
            case="constant_answer_as_corrected",
            controls={"counts at epsilon = 1000": LaplaceCounts(k, 1000.0)},
            independence=False,
            draws={"smoke": 200, "standard": 200},
            note="a failure is an error below k/2",
        ),
    )


@dataclass(frozen=True)
class LargestErrorAtMostBound:
    """Whether the largest error is at most a bound, 1 or 0."""

    truth: tuple[float, ...]
    bound: float

    def __call__(self, outputs: Any) -> FloatArray:
        """Of n outputs of shape (n, d), shape (n,)."""
        return np.asarray(Largest(self.truth)(outputs) <= self.bound, dtype=np.float64)


def _largest_share(*, strict: bool) -> list[Row]:
    """The largest probability over the tables of an error above (at least) k/2: 0 or 1, as a constant has no noise."""
    found: list[Row] = []
    for k in (4, 6, 10):
        errors = _constant_errors(k)
        share = float((errors > k / 2 if strict else errors >= k / 2).max())
        found.append((f"constant answer, k = {k}", 0.5, share))
    for k in (4, 20, 100):
        # Counts are integers: an error above k/2, k even, is one of at least k/2 + 1.
        radius = k / 2 + 1 if strict else k / 2
        inside = LaplaceCounts(k, _EPSILON).inside(radius)
        found.append((f"Laplace noise, eps = 1/4, k = {k}", 0.5, 1.0 - inside))
    return found
