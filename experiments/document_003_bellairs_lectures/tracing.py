"""Document 003, Theorem 5.2.2: no (1, 1/(10n))-private mechanism answers so many attribute means within 1/2.

What the experiments found beside the catalogue:

* It has the theorem's contradiction once a given innocent user is accused with probability below 0.33/n. That takes
  somebody in the coalition to be accused for certain. Nobody else is: with probability 1 - xi, as the codes have it,
  0.9/(e n + 1) is what is needed, 0.318/n at n = 9.
* Its bounds for Gaussian noise are estimates; what an accusation tells at delta = 1/(10n) can be computed: 2.60, 0.912
  and 0.226 for standard deviations of 0.3, 1 and 3, where the levels of the mechanisms are 103, 14 and 3.0.
* The last display of the proof conditions on i = i0 where i = i* is meant; the value is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.audits.accuracy import Constant, Figure, Largest, Setting, Smallest
from auditor.audits.adversaries.fingerprints import (
    BonehShaw,
    Tardos,
    innocent_tail,
    smallest_block,
    traced_distribution,
)
from auditor.audits.adversaries.tracing import Tracing
from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, accuracy, broken, entry, inequality, privacy, scaling
from auditor.datasets import Pair
from auditor.privacy.exact import FiniteLaw, GaussianCurve, curve
from auditor.privacy.guarantees import ApproxDP, PureDP
from experiments.common import REPLACE
from experiments.document_003_bellairs_lectures._tracing_phases import diagrams
from mechanisms.additive_noise.gaussian import analytic_mu
from mechanisms.base.mechanism import FloatArray
from mechanisms.lower_bounds.attribute_means import (
    MUTANTS,
    AttributeMeans,
    CalibratedMeans,
    GaussianMeans,
    LaplaceMeans,
)
from mechanisms.lower_bounds.code_mutants import MUTANTS as MISTAKES

_ROWS = 9
_CODE = BonehShaw(_ROWS + 1, 100)
#: What Theorem 5.2.2 says that nobody achieves.
_CLAIM = ApproxDP(1.0, 1 / (10 * _ROWS))
#: Largest error of the least accurate answers here: below 1/2 by more than the rounding of releases; arbitrary.
_NEARLY = 0.499
_DRAWS = {"smoke": 4_000, "standard": 8_000}


# ------------------------------------------------------------------------ what an accusation tells


def accusation_rates(code: BonehShaw, ones: Callable[[FloatArray], FloatArray]) -> tuple[float, float]:
    """Exact probabilities that i* is accused, with his row and with that of another user in its place.

    Parameters
    ----------
    code : BonehShaw
        The code.
    ones : callable
        From the true mean of a column to the probability that its answer is above 1/2; answers are independent.
    """
    users, blocks = np.arange(1, code.users + 1), np.arange(code.users + 1)
    pairs = [(i0, i) for i0 in users.tolist() for i in users.tolist() if i != i0]
    dropped, watched = np.array(pairs).T
    traced, found = Tracing(AttributeMeans(), code), []
    for present in (1, 0):
        rows = traced.members(dropped, watched, present)
        means = (rows[:, :, None] <= blocks).mean(axis=1)
        law = traced_distribution(code.users, code.block, ones(means))
        found.append(float(law[np.arange(len(pairs)), watched].mean()))
    return found[0], found[1]


def accusation_level(code: BonehShaw, ones: Callable[[FloatArray], FloatArray], delta: float) -> float:
    """Exact epsilon, at a delta, of whether i* is accused."""
    laws = [FiniteLaw((0, 1), np.array([1 - p, p])) for p in accusation_rates(code, ones)]
    return float(curve(laws[0], laws[1]).epsilon(delta))


@dataclass(frozen=True)
class _Gaussian:
    """Probability that a mean plus Gaussian noise is above 1/2."""

    deviation: float

    def __call__(self, means: FloatArray) -> FloatArray:
        return np.asarray(special.ndtr((means - 0.5) / self.deviation))


def _majority(means: FloatArray) -> FloatArray:
    return np.asarray(means > 0.5, dtype=np.float64)


def _uniform_noise(means: FloatArray) -> FloatArray:
    """The same for the noise of `_WithinOneHalf`."""
    return np.clip(0.5 + (means - 0.5) / (2 * _NEARLY), 0.0, 1.0)


#: Answers whose error is below 1/2, by the probability of an answer above 1/2.
_ACCURATE: dict[str, Callable[[FloatArray], FloatArray]] = {
    "exact means": _majority,
    "uniform noise of up to 0.499": _uniform_noise,
}


def _constant_half(means: FloatArray) -> FloatArray:
    return np.full(means.shape, 0.5)


# ------------------------------------------------------------------------------------------ targets


@dataclass(frozen=True)
class _WithinOneHalf(AttributeMeans):
    """Means plus uniform noise of less than 1/2: nearly the least accurate answers that the theorem speaks of."""

    def noise(self, size: tuple[int, ...], rows: int, rng: np.random.Generator) -> FloatArray:
        return rows * rng.uniform(-_NEARLY, _NEARLY, size)


@dataclass(frozen=True)
class _Coins:
    """Answers that ignore the data: fair coins."""

    def each(self, stack: NDArray[np.int8], rng: np.random.Generator) -> FloatArray:
        return rng.integers(0, 2, (len(stack), stack.shape[2]), dtype=np.int8).astype(np.float64)

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.integers(0, 2, (n, np.asarray(data).shape[1]), dtype=np.int8).astype(np.float64)


@entry(
    "003/fingerprinting_dp_attack",
    title="Tracing the rows of accurate attribute means",
    source=Source("003", "Theorem 5.2.2"),
)
def fingerprinting_dp_attack() -> Iterator[Draft]:
    """Accurate means are traced to their rows, and noise of the scale that privacy needs hides them.

    Data are codewords for n + 1 users without that of a user i0; in the neighbour the row of i* is overwritten by it.
    The event is that i* is accused, averaged over both users and over codes, see `Tracing`; where answers have additive
    noise, the means of his two blocks tell more. Claims about accusations alone do not test whether draws are
    independent: most comparisons would be ties. Those with blocks do.
    """
    delta = _CLAIM.delta
    exact, accurate = Tracing(AttributeMeans(), _CODE), Tracing(_WithinOneHalf(), _accurate_code())
    yield _claim_accurate_means(exact, "exact_means", accusation_level(_CODE, _majority, delta), note="no noise")
    yield _claim_accurate_means(
        accurate,
        "error_below_one_half",
        accusation_level(_accurate_code(), _uniform_noise, delta),
        draws={"smoke": 20_000, "standard": 4_000},
        note="uniform noise of up to 0.499: every word is feasible",
    )
    # All users are accused, not the first one: some tens of trials.
    tardos = Tracing(AttributeMeans(), Tardos(_ROWS - 2, _ROWS - 3))
    yield _claim_accurate_means(
        tardos,
        "exact_means_tardos",
        math.inf,
        claim=ApproxDP(1.0, 1 / (10 * tardos.rows)),
        draws={"smoke": 400, "standard": 600},
        note="six rows and 18,000 columns",
    )
    # What an accusation tells, exactly. At a deviation of 3 twice as much would take 1.5 million draws.
    for deviation in (1.0, 3.0):
        target = GaussianMeans(deviation)
        traced = Tracing(target, _CODE)
        own = GaussianCurve(target.mu(_ROWS, _CODE.length)).epsilon(delta)
        level = accusation_level(_CODE, _Gaussian(deviation), delta)
        draft = privacy(
            traced,
            ApproxDP(level, delta),
            traced.pair(),
            case=f"gaussian_{deviation:g}",
            relation=REPLACE,
            exact_level=level,
            draws={"smoke": 30_000, "standard": 30_000},
            detect=None if deviation == 1 else 2.5,
            note=f"noise of standard deviation {deviation:g}, whose own level is {own:.4g}",
        )
        yield replace(draft, independence=False)
    weak = Tracing(GaussianMeans(0.3), _CODE)
    level = accusation_level(_CODE, _Gaussian(0.3), delta)
    yield _claim_accurate_means(weak, "gaussian_0_3", level, note="too little noise for the claim")
    yield _claim_accurate_means(
        weak.with_difference(), "gaussian_0_3_blocks", None, draws=_DRAWS, note="by two blocks", independence=True
    )
    private = Tracing(CalibratedMeans(_CLAIM.epsilon), _CODE, difference=True)
    yield privacy(
        private,
        _CLAIM,
        private.pair(),
        case="reference",
        relation=REPLACE,
        draws={"smoke": 24_000, "standard": 24_000},
        note="Gaussian noise for (1, 1/(10n))",
    )
    # Laplace noise grows with the columns: with a tenth of them it hides less, and more draws cost the same.
    pure = Tracing(LaplaceMeans(1.0), BonehShaw(_ROWS + 1, 10), difference=True)
    yield privacy(
        pure,
        PureDP(1.0),
        pure.pair(),
        case="laplace",
        relation=REPLACE,
        draws={"smoke": 40_000, "standard": 80_000},
        note="Laplace noise, ten columns a block",
    )
    yield from _mutants()
    yield from _mistakes()
    yield from _accuracy()
    yield from diagrams()


def _accurate_code() -> BonehShaw:
    """A code that accuses an innocent user with probability at most 1/100: 0.09/n."""
    return BonehShaw(_ROWS + 1, smallest_block(_ROWS + 1, 0.1))


def _claim_accurate_means(
    traced: Tracing,
    case: str,
    exact_level: float | None,
    *,
    claim: ApproxDP = _CLAIM,
    independence: bool = False,
    draws: Mapping[str, int] | None = None,
    **options: Any,
) -> Draft:
    """Claim that means which are too accurate are (1, 1/(10n))-private, expected to be refuted."""
    draft = privacy(
        traced,
        claim,
        traced.pair(),
        case=case,
        relation=REPLACE,
        expected="violation",
        exact_level=exact_level,
        draws=draws or {"smoke": 20_000, "standard": 20_000},
        **options,
    )
    return replace(draft, independence=independence)


def _mutants() -> Iterator[Draft]:
    # One of six majorities turns on one of nine rows: the level is 9/6 of the claimed one.
    base, columns = LaplaceMeans(1.0), 6
    before = np.zeros((_ROWS, columns), dtype=np.int64)
    before[: _ROWS // 2, 0] = 1
    after = before.copy()
    after[_ROWS // 2, 0] = 1
    yield broken(
        MUTANTS["rounding_before_noise"],
        base,
        Pair(after, before, "the fifth of nine rows makes a majority in one of six columns"),
        relation=REPLACE,
        true_level=base.epsilon * _ROWS / columns,
        draws={"smoke": 40_000, "standard": 200_000},
    )


# ------------------------------------------------------------------------- mistakes of the audit


def _is_accused(outputs: Any) -> FloatArray:
    return np.asarray(outputs, dtype=np.float64)


def _is_spared(outputs: Any) -> FloatArray:
    return 1.0 - np.asarray(outputs, dtype=np.float64)


def _mistakes() -> Iterator[Draft]:
    """Against answers that ignore the data, a user is accused as often with his row as without it."""
    rate = accusation_rates(_CODE, _constant_half)[1]
    traced = Tracing(_Coins(), _CODE)
    yield accuracy(
        traced,
        np.array([0]),
        _is_accused,
        at_most=0.5,
        beta=rate,
        exact=rate,
        controls={"an accusation, each time": Constant(1.0)},
        case="row_replaced",
        draws={"smoke": 2_000, "standard": 20_000},
        independence=False,
        derived=True,
        note="answers that ignore the data",
    )
    for name in ("tracer_sees_i", "infeasible_accusations_uncounted"):
        yield accuracy(
            MISTAKES[name].build(traced),
            np.array([0]),
            _is_spared,
            at_most=0.5,
            beta=1 - rate,
            case=name,
            draws={"smoke": 2_500, "standard": 5_000},
            expected="deviation",
            independence=False,
            is_mutant=True,
            derived=True,
            note=MISTAKES[name].note,
        )
    statement = "the two tables differ in at most one row"
    yield inequality(lambda: _differing_rows(traced), statement=statement, level="L2", case="one_row_differs")
    shuffled = MISTAKES["rows_shuffled"]
    sorted_rows: Any = shuffled.build(traced)
    yield inequality(
        lambda: _differing_rows(sorted_rows),
        statement=statement,
        level="L2",
        case=shuffled.name,
        expected="deviation",
        is_mutant=True,
        note=shuffled.note,
    )


def _differing_rows(traced: Tracing) -> list[Row]:
    """Rows in which the two tables differ, the most over all i*, for each i0; different users' codewords differ."""
    found: list[Row] = []
    for dropped in range(1, traced.code.users + 1):
        watched = np.setdiff1d(np.arange(1, traced.code.users + 1), [dropped])
        all_dropped = np.full(watched.shape, dropped)
        present, replaced = (traced.members(all_dropped, watched, k) for k in (1, 0))
        found.append((f"i0 = {dropped}", float((present != replaced).sum(axis=1).max()), 1.0))
    return found


# ----------------------------------------------------------------------------------------- accuracy


def forced_level(rows: int, xi: float) -> float:
    """Smallest epsilon at delta = 1/(10n) that leaves an innocent user accused with probability xi, if nobody else is.

    Somebody of the n in the coalition is accused with probability 1 - xi (A10).
    """
    return math.log(((1 - xi) / rows - 1 / (10 * rows)) / xi)


def _contradiction() -> list[Row]:
    """Codes with the theorem's xi: what it forces, by the tail of a fixed word, and exactly who is traced."""
    rows = []
    for n in (4, 6, _ROWS):
        xi = 0.9 / (math.e * n + 1)
        code = BonehShaw(n + 1, smallest_block(n + 1, (n + 1) * xi))
        forced = forced_level(n, innocent_tail(code.users, code.block))
        rows.append((f"n = {n}, what is forced", 1.0, forced))
        for name, ones in _ACCURATE.items():
            rows.append((f"n = {n}, {name}", forced, accusation_level(code, ones, 1 / (10 * n))))
    return rows


#: Standard deviations of Gaussian noise; 95 % bounds of the catalogue for what an accusation tells, from 4,000 runs;
#: and levels of the mechanisms, on all of the columns and on the 900 in which two codewords can differ. As printed.
_GAUSSIAN = ((0.3, 2.2, 103.0, 86.0), (1.0, 0.72, 14.0, 12.4), (3.0, 0.14, 3.0, 2.6))


def _own_level(deviation: float, columns: int) -> float:
    return GaussianCurve(GaussianMeans(deviation).mu(_ROWS, columns)).epsilon(_CLAIM.delta)


def _own_levels() -> list[Row]:
    return [
        (f"standard deviation {deviation:g}, {columns} columns", _own_level(deviation, columns), printed)
        for deviation, _, all_of_them, different in _GAUSSIAN
        for columns, printed in ((_CODE.length, all_of_them), (_ROWS * _CODE.block, different))
    ]


def _bounds_below_levels() -> list[Row]:
    rows = []
    for deviation, printed, _, _ in _GAUSSIAN:
        exact = accusation_level(_CODE, _Gaussian(deviation), _CLAIM.delta)
        name = f"standard deviation {deviation:g}"
        rows.append((f"{name}, 4,000 runs", printed, exact))
        rows.append((f"{name}, the mechanism", exact, _own_level(deviation, _ROWS * _CODE.block)))
    return rows


def _bounds_from_runs() -> list[Row]:
    """What 2,000 runs with exact means give: of n users in the coalition one is always traced, and never another.

    That it is always and never is computed with the distribution of who is traced; the limit of a rate with no events
    is that of Clopper and Pearson, at 95 % and at 97.5 %.
    """
    always, never = accusation_rates(_CODE, _majority)
    runs, rows = 2_000, [("nobody else is accused", never, 0.0)]
    for confidence, printed in ((0.95, 4.2), (0.975, 4.0)):
        limit = float(special.betaincinv(1, runs, confidence))
        rows.append((f"{100 * confidence:g} %", math.log((always - _CLAIM.delta) / limit), printed))
    return rows


def _has_far_answer(outputs: Any) -> FloatArray:
    """1 for answers of which one is wrong by 1/2 or more; data are as in `_extremes`."""
    return np.asarray((np.asarray(outputs)[:, 0] > 0.5) | (np.asarray(outputs)[:, 1] <= 0.5), dtype=np.float64)


def _normal_maximum(columns: float) -> float:
    """Median of the largest of so many normal variables in absolute value."""
    return float(special.ndtri((1.0 + 2.0 ** (-1.0 / columns)) / 2.0))


def _laplace_maximum(columns: float) -> float:
    """The same for Laplace variables of scale 1."""
    return -math.log(-math.expm1(-math.log(2.0) / columns))


def _means_of(columns: float, target: AttributeMeans) -> Callable[[int], Setting]:
    def build(rows: int) -> Setting:
        # Noise does not depend on the data.
        nobody = np.broadcast_to(np.int8(0), (rows, int(columns)))
        return Setting(target, nobody, Largest(0.0), at_most=0.5)

    return build


def _figure(name: str) -> Figure:
    return Figure("Rows for attribute means within 1/2", name, "attributes", "smallest number of rows, eps = 1")


def _accuracy() -> Iterator[Draft]:
    extremes = np.tile(np.array([0, 1], dtype=np.int64), (_ROWS, 1))
    yield accuracy(
        _WithinOneHalf(),
        extremes,
        _has_far_answer,
        at_most=0,
        beta=0,
        case="feasible",
        draws={"smoke": 400, "standard": 4_000},
        note="an error below 1/2 rounds a mean of 0 to 0, and of 1 to 1",
    )
    yield inequality(
        _contradiction,
        statement="a code with xi <= 0.9/(e n + 1) forces an epsilon of at least 1, which accurate answers have",
        level="L4",
        case="contradiction",
        derived=True,
    )
    yield inequality(
        _bounds_from_runs,
        statement="2,000 runs with exact means bound epsilon by 4.0 to 4.2",
        relation="==",
        tolerance=0.0125,  # printed with two digits
        level="L4",
        case="bounds_from_runs",
        derived=True,
    )
    yield inequality(
        _own_levels,
        statement="levels of Gaussian noise at delta = 1/(10n), on all columns and on those that can differ",
        relation="==",
        tolerance=0.036,  # half of the last digit of 14
        level="L4",
        case="levels_of_gaussian_noise",
        derived=True,
    )
    yield inequality(
        _bounds_below_levels,
        statement="bounds from 4,000 runs are below what an accusation tells, and that is below the mechanism's level",
        level="L4",
        case="bounds_below_levels",
        derived=True,
        note="bounds as the catalogue has them, 2.2, 0.72 and 0.14",
    )
    yield scaling(
        lambda columns: _means_of(columns, CalibratedMeans(1.0)),
        parameter="d",
        at=(64, 256, 1024, 4096),
        exponent=0.5,
        others=(0.25, 1.0),
        # The noise grows with ln(1/delta) too; n is of the order of sqrt(d).
        log_factor=lambda d: _normal_maximum(d) / analytic_mu(1.0, 0.1 / math.sqrt(d)),
        measure=Smallest(beta=0.5, low=16, high=4_096, resolution=1.05),
        case="rows_gaussian",
        draws={"smoke": 2_400, "standard": 12_000},
        figure=_figure("Gaussian noise, delta = 1/(10n)"),
    )
    yield scaling(
        lambda columns: _means_of(columns, LaplaceMeans(1.0)),
        parameter="d",
        at=(16, 64, 256, 1024),
        exponent=1.0,
        others=(0.5,),
        log_factor=_laplace_maximum,
        measure=Smallest(beta=0.5, low=16, high=65_536, resolution=1.05),
        case="rows_laplace",
        draws={"smoke": 2_400, "standard": 12_000},
        figure=_figure("Laplace noise, pure"),
    )
