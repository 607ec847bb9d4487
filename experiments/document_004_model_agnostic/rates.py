"""Document 004, section 4.1: rates of misclassification and numbers of examples (Theorems 4.3 and 4.4).

The theorems are in O(.) and hide powers of logarithms; sizes are those of the formulas with their constants, rates
those of teachers that the theorems allow. Realizable: thresholds that are one-sided, at the exact distribution of their
errors, in V cells for other dimensions. Agnostic: teachers that are as bad as the hypothesis lets them be, with an
error of the best hypothesis that is half of alpha, as the printed rates need gamma = O(alpha). With the document's
constants n = m^(3/4) leaves alpha above 1/3 up to n of about 10^14: where the printed m is to grow with n, it is the
least that the theorems allow, 4 ln(1/(alpha beta)) / alpha^2, which has the same exponents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize

from auditor.audits.accuracy import Constant, Exactly, Figure, Quantile, Setting
from auditor.claims import Draft, Source, accuracy, broken, entry, scaling
from auditor.datasets import Pair
from auditor.privacy.guarantees import ApproxDP
from experiments.common import REPLACE
from experiments.document_004_model_agnostic._aggregation import missed
from experiments.document_004_model_agnostic.classification import SURE, counted
from mechanisms.base.mechanism import FloatArray
from mechanisms.teacher_ensembles.aggregation_mutants import MUTANTS
from mechanisms.teacher_ensembles.classification_queries import (
    ClassificationSizes,
    LargestThresholdTeachers,
    MislabelledFreshPoints,
    NearestNeighbour,
    SplitTeachers,
    error_budget,
    fewest_queries,
    integrated_error,
    one_sided_rate,
)
from mechanisms.teacher_ensembles.online_release import OnlineRelease
from mechanisms.teacher_ensembles.vote_aggregation import ChunkVotes, ContiguousChunks

_BETA = 0.1
#: m where it is fixed; that of the catalogue's slopes.
_POINTS = 200_000
#: Values of alpha at m fixed; at the least m they start where T is below m.
_FIXED = (0.1, 0.05, 0.025, 0.0125)
_LEAST = (0.1, 0.05, 0.02, 0.01)


@entry("004/rates_pac", title="Rates of misclassification", source=Source("004", "Section 4.1, Theorems 4.3 and 4.4"))
def rates() -> Iterator[Draft]:
    """The theorems at their sizes, and rates against the number of examples and the dimension.

    What is measured falls as fast as the bounds, but for logarithms: at m = 200,000 with the exponent -1.86 where the
    bound, without logarithms, has -2. Only the bound, T/m, is what is claimed.
    """
    yield from _theorems()
    yield from _mutants()
    yield from _examples()
    yield from _dimensions()
    yield from _teachers()


def _theorems() -> Iterator[Draft]:
    """At least m - T labels are right with probability 1 - beta."""
    for alpha, percent in ((0.1, 10), (0.05, 5)):
        sizes = ClassificationSizes(fewest_queries(alpha, _BETA), alpha)
        run = MislabelledFreshPoints(sizes, LargestThresholdTeachers(sizes.examples))
        yield counted(f"realizable_{percent}", run, _BETA, independence=percent == 10)
    noisy = ClassificationSizes(fewest_queries(0.05, _BETA), 0.05, 0.025)
    yield counted("agnostic_5", MislabelledFreshPoints(noisy, SplitTeachers(0.05 / 0.95)), _BETA, independence=False)


@dataclass(frozen=True)
class _TForRoot(ClassificationSizes):
    """T in the place of its square root in the number of chunks; as many examples in all as there should be."""

    @property
    def chunks(self) -> int:
        """k, too large by sqrt(T)."""
        return math.ceil(super().chunks * math.sqrt(self.cutoff))

    @property
    def examples(self) -> int:
        """n', what is left of n for each chunk."""
        right = ClassificationSizes(
            self.queries, self.alpha, self.gamma, self.epsilon, self.delta, self.beta, self.budget
        )
        return right.rows // self.chunks


def _without_alpha(queries: int, error: float, beta: float) -> int:
    """T without its first term."""
    del error
    return error_budget(queries, 0.0, beta)


def _mutants() -> Iterator[Draft]:
    """Teachers are as bad as their number of examples lets them be: split at ``ln(k/beta) / n'``."""
    full = ClassificationSizes(fewest_queries(0.1, _BETA), 0.1)
    yield counted("split", MislabelledFreshPoints(full, SplitTeachers(0.1)), _BETA, independence=False)
    crowded = _TForRoot(full.queries, 0.1)
    shift = min(math.log(crowded.chunks / _BETA) / crowded.examples, 0.5)
    for case, sizes, teachers, note in (
        (
            "budget_without_alpha_m",
            replace(full, budget=_without_alpha),
            SplitTeachers(0.1),
            "T = 3 sqrt(m ln(m/beta)/2): on 2 alpha m points the teachers do not agree",
        ),
        (
            "chunks_with_T_for_sqrt_T",
            crowded,
            SplitTeachers(shift),
            "29 times as many chunks, with four examples each, with which a teacher may err anywhere",
        ),
    ):
        yield accuracy(
            MislabelledFreshPoints(sizes, teachers),
            None,
            missed,
            at_most=sizes.cutoff,
            beta=_BETA,
            case=case,
            expected="deviation",
            is_mutant=True,
            independence=False,
            draws=SURE,
            note=note,
        )
    # One example a chunk, and one point: its nearest neighbour is the first example, whose label changes.
    x = np.array([(0.25 + i / 200.0, 1.0 if i else 0.0) for i in range(80)])
    y = x.copy()
    y[0, 1] = 1.0
    base = OnlineRelease(ChunkVotes(ContiguousChunks(80, 80), NearestNeighbour((0.25,))), 4.0, 0.1)
    pair, name = Pair(x, y, "the label of the example that is nearest"), "all_data_in_every_chunk"
    yield broken(MUTANTS[name], base, pair, guarantee=ApproxDP(4.0, 0.1), relation=REPLACE)


# ------------------------------------------------------------------------------------------ rates


@dataclass(frozen=True)
class _RealizableSizes:
    """Sizes of thresholds in V cells, as functions of alpha; m fixed, or the least that is allowed."""

    queries: int | None
    cells: int = 1

    def sizes(self, alpha: float) -> ClassificationSizes:
        return ClassificationSizes(self.queries or fewest_queries(alpha, _BETA), alpha)

    def rows(self, alpha: float) -> float:
        """Return n, which is k n' and not rounded up to whole examples: alpha is sought for a given n."""
        k = self.sizes(alpha).chunks
        return k * self.cells * math.log(self.cells * k / _BETA) / alpha

    def rate(self, alpha: float) -> float:
        return one_sided_rate(self.sizes(alpha), self.sizes(alpha).examples_of(self.cells), self.cells)


@dataclass(frozen=True)
class _AgnosticSizes:
    """The same with noisy labels, gamma = alpha/2, and teachers that err as much as they may."""

    queries: int | None
    cells: int = 1

    def sizes(self, alpha: float) -> ClassificationSizes:
        return ClassificationSizes(self.queries or fewest_queries(alpha, _BETA), alpha, alpha / 2.0)

    def rows(self, alpha: float) -> float:
        """Return n for ``n' = (V + ln(k/beta)) / alpha^2``, whose constant, 1, is arbitrary: the document says O(.)."""
        k = self.sizes(alpha).chunks
        return k * (self.cells + math.log(k / _BETA)) / alpha**2

    def rate(self, alpha: float) -> float:
        shifts: FloatArray = SplitTeachers(alpha / (1.0 - alpha)).shifts(
            self.sizes(alpha).chunks, np.random.default_rng(0)
        )
        return integrated_error(self.sizes(alpha), shifts)


_Kind = _RealizableSizes | _AgnosticSizes


def _bound(kind: _Kind, alpha: float) -> float:
    sizes = kind.sizes(alpha)
    return sizes.cutoff / sizes.queries


def _against_n(kind: _Kind, alphas: tuple[float, ...], exponent: float, case: str, figure: str) -> Draft:
    alpha_of = {kind.rows(alpha): alpha for alpha in alphas}
    return scaling(
        lambda n: kind.rate(alpha_of[n]),
        parameter="n",
        at=sorted(alpha_of),
        exponent=exponent,
        measure=Exactly("expected rate"),
        curve=lambda n: _bound(kind, alpha_of[n]),
        criterion=False,
        figure=Figure("Rate of misclassification", figure, "private examples n", "rate"),
        case=case,
    )


def _examples() -> Iterator[Draft]:
    yield _against_n(_RealizableSizes(_POINTS), _FIXED, -2.0, "realizable_fixed_m", "realizable, m = 200,000")
    yield _against_n(_RealizableSizes(None), _LEAST, -2.0 / 3.0, "realizable_least_m", "realizable, m as it must be")
    yield _against_n(_AgnosticSizes(_POINTS), _FIXED, -2.0 / 3.0, "agnostic_fixed_m", "agnostic, m = 200,000")
    yield _against_n(_AgnosticSizes(None), _LEAST, -2.0 / 5.0, "agnostic_least_m", "agnostic, m as it must be")
    # The first of them by simulation, with an interval: fresh teachers and points, and one run of Algorithm 3.
    kind = _RealizableSizes(_POINTS)
    alpha_of = {kind.rows(alpha): alpha for alpha in _FIXED}

    def simulated(n: float) -> Setting:
        sizes = kind.sizes(alpha_of[n])
        return Setting(MislabelledFreshPoints(sizes, LargestThresholdTeachers(sizes.examples)), None, _rate)

    yield scaling(
        simulated,
        parameter="n",
        at=sorted(alpha_of),
        exponent=-2.0,
        # The theorem's bound is on a rate that one run has with probability 1 - beta, so on the median too.
        measure=Quantile(),
        curve=lambda n: _bound(kind, alpha_of[n]),
        criterion=False,
        controls={
            "no label for any point": lambda n: replace(
                simulated(n), mechanism=Constant(kind.sizes(alpha_of[n]).queries)
            )
        },
        case="realizable_fixed_m_simulated",
        # Runs at each of four sizes, 20 milliseconds each: 23 have limits of their median at the alpha of a whole run.
        draws={"smoke": 92, "standard": 200},
    )


def _rate(outputs: FloatArray) -> FloatArray:
    return missed(outputs) / _POINTS


def _against_cells(
    build: Callable[[int], _Kind], at: tuple[int, ...], alpha: float, exponent: float, case: str
) -> Draft:
    """At as many examples as one cell needs for a given alpha; more cells make do with a larger alpha."""
    rows = build(1).rows(alpha)

    def attained(cells: float) -> float:
        kind = build(int(cells))
        return float(optimize.brentq(lambda a: math.log(kind.rows(a) / rows), alpha / 2.0, 0.32, xtol=1e-6))

    return scaling(
        lambda cells: build(int(cells)).rate(attained(cells)),
        parameter="V",
        at=at,
        exponent=exponent,
        measure=Exactly("expected rate"),
        curve=lambda cells: _bound(build(int(cells)), attained(cells)),
        criterion=False,
        case=case,
    )


def _dimensions() -> Iterator[Draft]:
    yield _against_cells(lambda v: _RealizableSizes(_POINTS, v), (1, 2, 4), 0.0125, 2.0, "cells_realizable_fixed_m")
    yield _against_cells(lambda v: _RealizableSizes(None, v), (1, 2, 4, 8), 0.02, 2.0 / 3.0, "cells_realizable_least_m")
    yield _against_cells(lambda v: _AgnosticSizes(_POINTS, v), (1, 16, 64), 0.02, 2.0 / 3.0, "cells_agnostic_fixed_m")
    yield _against_cells(lambda v: _AgnosticSizes(None, v), (1, 16, 64), 0.02, 2.0 / 5.0, "cells_agnostic_least_m")


# ------------------------------------------------------------------------------ number of teachers

#: m of the exponents of k: so many that alpha m is 50 times the other term of T, sqrt(m ln(m/beta) / 2), or more, down
#: to an alpha of 3e-5, where 10^12 points have 7 times as much. And what n and V are multiplied by.
_MANY_POINTS, _TIMES = (1e14, 1e15, 1e16, 1e17), (1.0, 3.0, 10.0, 30.0)
#: The largest alpha, and V where it is as large as logarithms of k, and larger.
_LARGEST, _CELLS = 0.1, 300


def _teachers() -> Iterator[Draft]:
    """K against m, n and V: as the text before Theorem 4.3 solves the formulas for it, but for their logarithms.

    With ``T = 3 (gamma + alpha) m``, k is ``c ln(4 m T / min(delta, beta/2)) sqrt(T)``, and n is ``k V ln(V k/beta) /
    alpha`` or ``k (V + ln(k/beta)) / alpha^2``. Logarithms are divided out at their own values.
    """
    for kind, name, powers, others in (
        (_RealizableSizes, "realizable", (1.0, -1.0, 1.0), (2.0 / 3.0, 0.5)),
        (_AgnosticSizes, "agnostic", (2.0 / 3.0, -1.0 / 3.0, 1.0 / 3.0), (1.0, 0.5)),
    ):
        cells, most = 1 if kind is _RealizableSizes else _CELLS, _MANY_POINTS[-1]
        rows = kind(round(most), cells).rows(_LARGEST)
        crowded = kind(round(most), round(cells * _TIMES[-1])).rows(_LARGEST)
        # The largest value of m and V and the least of n go with the largest alpha.
        for parameter, at, exponent, solved in (
            ("m", _MANY_POINTS, powers[0], _SolvedSizes(kind, rows=rows, cells=cells)),
            ("n", tuple(rows * times for times in _TIMES), powers[1], _SolvedSizes(kind, queries=most, cells=cells)),
            ("V", tuple(cells * times for times in _TIMES), powers[2], _SolvedSizes(kind, rows=crowded, queries=most)),
        ):
            sign = -1.0 if exponent < 0 else 1.0
            yield scaling(
                solved.chunks,
                parameter=parameter,
                at=at,
                exponent=exponent,
                others=tuple(sign * other for other in others),
                log_factor=solved.logarithms,
                measure=Exactly("k of Algorithm 4", formula=True),
                both=True,
                case=f"{name}_teachers_by_{parameter}",
                note="logarithms divided out" + (", gamma = alpha/2" if kind is _AgnosticSizes else ""),
            )


@dataclass(frozen=True)
class _SolvedSizes:
    """Sizes at given m, n and V, of which one is left open: alpha is what n examples reach.

    Parameters
    ----------
    kind : type
        `_RealizableSizes` or `_AgnosticSizes`.
    rows, queries, cells : float or None
        n, m and V; the open one is None.
    """

    kind: type[_RealizableSizes | _AgnosticSizes]
    rows: float | None = None
    queries: float | None = None
    cells: float | None = None

    def _solve(self, value: float) -> tuple[_Kind, float]:
        rows, queries, cells = (value if given is None else given for given in (self.rows, self.queries, self.cells))
        kind = self.kind(round(queries), round(cells))
        alpha = optimize.brentq(lambda a: math.log(kind.rows(a) / rows), 1e-6, 0.3, xtol=1e-12)
        return kind, float(alpha)

    def chunks(self, value: float) -> float:
        """Number of teachers, k, at a value of what is open."""
        kind, alpha = self._solve(value)
        return float(kind.sizes(alpha).chunks)

    def logarithms(self, value: float) -> float:
        """What k has beside the powers, by the logarithms of both formulas."""
        kind, alpha = self._solve(value)
        sizes = kind.sizes(alpha)
        noise = math.log(4.0 * sizes.queries * sizes.cutoff / min(sizes.delta, sizes.beta / 2.0))
        if isinstance(kind, _RealizableSizes):
            return noise**2 * math.log(kind.cells * sizes.chunks / _BETA)
        added = 1.0 + math.log(sizes.chunks / _BETA) / kind.cells  # V + ln(k/beta), in units of V
        return math.cbrt(noise**4 * added)
