"""Sparse vector as document 004 prints it: "top" is free, "bottom" costs, and what breaks it.

The mirror image of `sparse_vector`: answers and threshold are negated, so its costly "above" is the bottom
of the document. In outputs 1 is bottom, 0 is top and -1 is not asked.

Source: document 004, Algorithm 1, Theorems 2.7 and 2.8; catalogue 004, sections 0.2 to 0.4, svt_sparse and svt_mutants.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    Mutant,
    require,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import gauss_legendre
from mechanisms.base.queries import Count, Query, Relation
from mechanisms.selection.sparse_vector import SparseVector, SparseVectorVariant
from mechanisms.selection.sparse_vector_distribution import REACH, laplace_cdf


@dataclass(frozen=True)
class _WrappedQuery:
    """A query made of another one, which states the sensitivities of that one."""

    query: Query

    @property
    def relation(self) -> Relation:
        """The query's."""
        return self.query.relation

    @property
    def sensitivity(self) -> float:
        """The query's."""
        return self.query.sensitivity

    @property
    def linf_sensitivity(self) -> float:
        """The query's."""
        return self.query.linf_sensitivity

    @property
    def granularity(self) -> float:
        """The query's."""
        return self.query.granularity


@dataclass(frozen=True)
class NegatedAnswers(_WrappedQuery):
    """The negated answers of a query.

    Parameters
    ----------
    query : Query
        Whose answers; the sensitivities are the same.
    """

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the negated answers, shape of the query's."""
        return -self.query(data)


@dataclass(frozen=True)
class CountDifferences:
    """A stream of differences of two counts, each the one way or the other.

    One person who is counted by one of them moves queries of both kinds, against each other, under add/remove too.

    Parameters
    ----------
    first, second : Count
        The counts; one relation.
    pattern : str
        "+" asks for ``first - second``, "-" for ``second - first``.
    """

    first: Count
    second: Count
    pattern: str

    def __post_init__(self) -> None:
        require(bool(self.pattern) and set(self.pattern) <= {"+", "-"}, 'a pattern of "+" and "-"', self.pattern)
        relations = {self.first.relation, self.second.relation}
        require(relations == {"add_remove_one"}, "counts under add_remove_one", relations)

    @property
    def relation(self) -> Relation:
        """Add/remove: replacing a person could move a difference by 2."""
        return "add_remove_one"

    @property
    def sensitivity(self) -> float:
        """Every answer moves by at most 1."""
        return float(len(self.pattern))

    @property
    def linf_sensitivity(self) -> float:
        """A person is counted once by each count, so moves their difference by at most 1."""
        return 1.0

    @property
    def granularity(self) -> float:
        """Answers are integers."""
        return 1.0

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the answers, shape (m,)."""
        difference = float(self.first(data) - self.second(data))
        return np.array([difference if sign == "+" else -difference for sign in self.pattern])


def noise_scale(epsilon: float, delta: float, cutoff: int, factor: float = 32.0) -> float:
    """Scale of the threshold noise of Algorithm 1, lambda: ``sqrt(factor T ln(1/delta)) / epsilon``.

    Parameters
    ----------
    epsilon, delta : float
        The claimed level; delta in (0, 1).
    cutoff : int
        T, at least 1.
    factor : float, default 32.0
        The document's constant.

    Returns
    -------
    float
        Scale of the threshold noise at sensitivity 1; that of the query noise is twice as large.
    """
    require_positive("epsilon", epsilon)
    require(0 < delta < 1, "a delta in (0, 1)", delta)
    require(isinstance(cutoff, (int, np.integer)) and cutoff >= 1, "a cutoff >= 1", cutoff)
    return math.sqrt(factor * cutoff * math.log(1.0 / delta)) / epsilon


def inverted(query: Query, epsilon: float, delta: float, cutoff: int = 1, threshold: float = 0.0) -> SparseVector:
    """Algorithm 1: up to T + 1 bottoms, threshold noise drawn anew after each.

    Parameters
    ----------
    query : Query
        The stream; answers move by at most its linf sensitivity.
    epsilon, delta : float
        The claimed level.
    cutoff : int
        T. The loop runs while the number of bottoms is at most T, so T + 1 of them are given out.
    threshold : float
        w, public: a noisy answer above it (and its noise) is a top.

    Returns
    -------
    SparseVector
        Its output 1 is bottom, 0 top, -1 not asked.
    """
    scale = noise_scale(epsilon, delta, cutoff) * epsilon
    row = SparseVectorVariant(scale, 2.0 * scale, redraws="after_above")
    return SparseVector(NegatedAnswers(query), epsilon, -threshold, cutoff + 1, row)


def epoch(query: Query, scale: float, threshold: float = 0.0) -> SparseVector:
    """One epoch of Algorithm 1, from a fresh threshold to the first bottom; claims its exact level 2 Delta / lambda.

    Parameters
    ----------
    query, threshold
        As for `inverted`.
    scale : float
        lambda.
    """
    require_positive("scale", scale)
    epsilon = 2.0 * query.linf_sensitivity / scale
    # Scales of a row are in units of sensitivity / epsilon = lambda / 2.
    return SparseVector(
        NegatedAnswers(query), epsilon, -threshold, 1, SparseVectorVariant(2.0, 4.0, redraws="after_above")
    )


# --------------------------------------------------------------------------------- accuracy


def tails(t: ArrayLike, scale: float) -> FloatArray:
    """Probabilities that Lap(2 lambda) - Lap(lambda) exceeds t.

    Parameters
    ----------
    t : array_like
        Any numbers, any shape.
    scale : float
        lambda.

    Notes
    -----
    ``(4 e^(-t/(2 lambda)) - e^(-t/lambda)) / 6`` for t >= 0. Source: catalogue 004, section 0.2.
    """
    require_positive("scale", scale)
    z = np.asarray(t, dtype=np.float64) / scale
    beyond = (4.0 * np.exp(-np.abs(z) / 2.0) - np.exp(-np.abs(z))) / 6.0
    return np.asarray(np.where(z >= 0, beyond, 1.0 - beyond))


def tail(t: float, scale: float) -> float:
    """Probability that Lap(2 lambda) - Lap(lambda) exceeds one number; see `tails`."""
    return float(tails(t, scale))


def all_tops(margin: float, queries: int) -> float:
    """Probability that m answers at w + margin all get a top in one epoch; margin in units of lambda.

    Valid because: given the threshold noise the answers are independent; it is integrated out by Gauss-Legendre, split
    where the integrand has kinks.
    """
    require(isinstance(queries, (int, np.integer)) and queries >= 1, "a number of queries >= 1", queries)
    breaks = np.array([min(-REACH, margin - REACH), 0.0, margin, max(REACH, margin + REACH)])
    x, weights = gauss_legendre(breaks, 0.25)
    return float(weights @ (0.5 * np.exp(-np.abs(x)) * laplace_cdf((margin - x) / 2.0) ** queries))


def required_margin(queries: int, beta: float) -> float:
    """Least margin, in units of lambda, at which m answers all get a top with probability 1 - beta."""
    require(0 < beta < 1, "a beta in (0, 1)", beta)
    most = 8.0 * math.log(8.0 * queries / beta)
    return float(optimize.brentq(lambda a: 1.0 - all_tops(a, queries) - beta, 0.0, most, xtol=1e-10))


def printed_margin(queries: int, cutoff: int, beta: float) -> float:
    """Margin of Theorem 2.8, alpha, in units of lambda: ``4 ln(2 m T / beta)``."""
    return 4.0 * math.log(2.0 * queries * cutoff / beta)


def sharper_margin(queries: int, beta: float) -> float:
    """``2 ln(2 m / (3 beta))`` in units of lambda, which suffices: each answer fails with probability `tail`."""
    return 2.0 * math.log(2.0 * queries / (3.0 * beta))


# ------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True)
class ChangedVariantTwin:
    """Builds the same stream with another row (for `Mutant.build`).

    Parameters
    ----------
    change : callable
        From the row to the mutant's.
    cutoff : int
        Added to the number of bottoms that are given out.
    """

    change: Callable[[SparseVectorVariant], SparseVectorVariant]
    cutoff: int = 0

    def __call__(self, base: SparseVector) -> SparseVector:
        """Return `base` with the other row."""
        return replace(base, variant=self.change(base.spec), cutoff=base.cutoff + self.cutoff)


@dataclass(frozen=True)
class RescaledNoise:
    """A row with other scales: factors on those of threshold and query noise."""

    threshold: float
    query: float

    def __call__(self, row: SparseVectorVariant) -> SparseVectorVariant:
        """Return the row with both scales multiplied."""
        return replace(row, threshold=row.threshold * self.threshold, query=row.query * self.query)


@dataclass(frozen=True)
class ChangedSetting:
    """A row with one other setting."""

    name: str
    value: object

    def __call__(self, row: SparseVectorVariant) -> SparseVectorVariant:
        """Return the row with the setting changed."""
        return replace(row, **{self.name: self.value})  # type: ignore[arg-type]


@dataclass(frozen=True)
class UnderstatedSensitivity(_WrappedQuery):
    """A statistic of twice the sensitivity that it states.

    Parameters
    ----------
    query : Query
        Half of it; its stated sensitivities are kept.
    """

    def __call__(self, data: Dataset) -> FloatArray:
        """Return twice the answers, shape of the query's."""
        return 2.0 * self.query(data)


def _unchanged_row(row: SparseVectorVariant) -> SparseVectorVariant:
    return row


def _gaussian(row: SparseVectorVariant) -> SparseVectorVariant:
    return replace(row, threshold_noise="gaussian", query_noise="gaussian")


def _double_query(base: SparseVector) -> SparseVector:
    return replace(base, query=UnderstatedSensitivity(base.query))


def _every_answer_costs(base: SparseVector) -> float:
    """``m Delta / (2 lambda)``: what any stream with fresh query noise costs at most, and these mutants do."""
    streams = [
        query for query in (base.query, getattr(base.query, "query", None)) if isinstance(query, CountDifferences)
    ]
    require(bool(streams), "a stream of CountDifferences", base.query)
    return len(streams[0].pattern) * base.query.linf_sensitivity / base.query_scale


def _larger_level(factor: float) -> Callable[[SparseVector], float]:
    return lambda base: factor * base.epsilon


def bank(cutoff: int, delta: float, epsilon: float) -> dict[str, Mutant[SparseVector]]:
    """The mutants m1 to m18 of one epoch, see `epoch`.

    Parameters
    ----------
    cutoff, delta, epsilon
        Parameters of the run whose noise scale lambda is wrong (m10 to m12).

    Returns
    -------
    dict
        By name. True levels are suprema over all streams; m4 to m9 of a stream as long as the reference's.
    """
    require_positive("epsilon", epsilon)
    require(0 < delta < 1, "a delta in (0, 1)", delta)
    root, log, inner = 1 / math.sqrt(cutoff), 1 / math.sqrt(math.log(1 / delta)), math.sqrt(epsilon)
    decimal = 1 / math.sqrt(math.log(10.0))

    def scaled(name: str, factor: float, note: str) -> Mutant[SparseVector]:
        return Mutant(
            name, ChangedVariantTwin(RescaledNoise(factor, factor)), _larger_level(1 / factor), "violation", note
        )

    def row(
        name: str, change: Callable[[SparseVectorVariant], SparseVectorVariant], level: float, note: str
    ) -> Mutant[SparseVector]:
        return Mutant(name, ChangedVariantTwin(change), _larger_level(level), "violation", note)

    def costly(
        name: str, change: Callable[[SparseVectorVariant], SparseVectorVariant], note: str
    ) -> Mutant[SparseVector]:
        return Mutant(name, ChangedVariantTwin(change), _every_answer_costs, "violation", note)

    def infinite(
        name: str, change: Callable[[SparseVectorVariant], SparseVectorVariant], note: str
    ) -> Mutant[SparseVector]:
        return Mutant(name, ChangedVariantTwin(change), unbounded, "violation", note)

    return tabulate_mutants(
        row("m1_query_noise_lambda", RescaledNoise(1, 0.5), 1.5, "query noise Lap(lambda): 3 Delta/lambda an epoch"),
        row(
            "m2_scales_swapped",
            RescaledNoise(2, 0.5),
            1.25,
            "threshold 2 lambda, query lambda: 2.5 Delta/lambda an epoch",
        ),
        costly("m4_no_threshold_noise", ChangedSetting("threshold", 0.0), "tops are no longer free"),
        costly(
            "m5_threshold_redrawn_every_query",
            ChangedSetting("redraws", "always"),
            "every query costs Delta/(2 lambda)",
        ),
        infinite("m6_no_query_noise", ChangedSetting("query", 0.0), "a top above a bottom: their order is published"),
        costly("m7_no_cutoff", ChangedSetting("stops", False), "the epoch never ends"),
        costly(
            "m8_counter_counts_tops",
            ChangedSetting("counts", "below"),
            "bottoms are not counted; the redraw stays on them",
        ),
        costly("m9a_value_released_on_top", ChangedSetting("releases", "below"), "the noisy answer is shown"),
        costly(
            "m9b_value_released_on_bot",
            ChangedSetting("releases", "above"),
            "the noisy answer is shown after free tops",
        ),
        scaled("m10_no_sqrt_T", root, "lambda lacks sqrt(T)"),
        scaled("m11_no_log_delta", log, "lambda lacks sqrt(ln(1/delta))"),
        scaled("m12_eps_inside_the_root", inner, "sqrt(32 T ln(1/delta)/eps): too small for eps < 1"),
        infinite("m14_one_query_draw", ChangedSetting("query_draws", "once"), "differences of answers have no noise"),
        infinite("m15_gaussian_noise", _gaussian, "Gaussian noise of the same scales: no pure level"),
        scaled("m16_log_base", decimal, "log10 for the natural logarithm in lambda"),
        row(
            "m16_log_base_of_the_threshold",
            RescaledNoise(decimal, 1),
            0.5 * (1 / decimal + 1),
            "log10 in the threshold's lambda only: (sqrt(ln 10) + 1) Delta/lambda an epoch",
        ),
        costly(
            "m17_one_sided_threshold_noise",
            ChangedSetting("threshold_noise", "negative_exponential"),
            "the threshold is never below w, so that tops are no longer free",
        ),
        Mutant("m18_sensitivity_two", _double_query, _larger_level(2.0), "violation", "the statistic moves by 2"),
    )


#: What is wrong with a whole run, and private all the same: at most (E + 1) Delta/lambda in E epochs instead of
#: 2 E Delta/lambda, one epoch less, and sqrt(ln 2) of it.
HARMLESS = tabulate_mutants(
    Mutant(
        "m3_threshold_not_redrawn",
        ChangedVariantTwin(ChangedSetting("redraws", "never")),
        None,
        "benign",
        "one threshold for all epochs",
    ),
    Mutant(
        "m13_stops_after_T",
        ChangedVariantTwin(_unchanged_row, cutoff=-1),
        None,
        "benign",
        "T bottoms, where T + 1 are to be given out",
    ),
    Mutant(
        "m16_log_base_2",
        ChangedVariantTwin(RescaledNoise(math.log(2.0) ** -0.5, math.log(2.0) ** -0.5)),
        None,
        "benign",
        "log2 for the natural logarithm in lambda: more noise than is needed",
    ),
)
