"""Losses spread over many coordinates: draws to a verdict, over those of an auditor who knows the distributions.

Run as ``python -m benchmarks.spread [--audits 20] [--jobs 2] [--out reports/spread.md]``. Vectors of independent
coordinates, each moved by 1, are audited against an oracle that bets on the best event of their likelihood ratio, and
mutants whose loss is spread over many answers, 100 times each, against the oracle of ``benchmarks/mutants.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias, cast

import joblib
import numpy as np
from numpy.typing import NDArray

from auditor.audits.privacy_loop import Settings, collect_evidence
from auditor.calibration.oracles import single_event_rate
from auditor.claims import Draft, broken, registry
from auditor.datasets import Pair
from auditor.privacy.exact import GaussianCurve, PrivacyCurve, composed, curve
from auditor.privacy.guarantees import GaussianDP, Guarantee, PureDP
from auditor.privacy.laws import LaplaceLaw, TwoSidedGeometricLaw
from auditor.targets.sampler import Sampler
from benchmarks.mutant_distributions import from_curve
from benchmarks.mutants import ALPHA, FACTOR, WANTED, OracleDraws, oracle
from benchmarks.options import parser_of
from experiments.common import REPLACE
from mechanisms.composition.composition import MUTANTS as ACCOUNTANTS
from mechanisms.query_release.counting_queries import MUTANTS as COUNTS
from mechanisms.selection.released_answers import worst_release
from mechanisms.selection.sparse_vector import MUTANTS as VARIANTS
from mechanisms.selection.sparse_vector import OtherVariantTwin
from mechanisms.statistical_queries.statistical_queries import MUTANTS as CHUNKS

Array: TypeAlias = NDArray[np.float64]

#: Wanted of vectors: a median within so many times the oracle's draws.
VECTOR_FACTOR = 2.5
#: An audit stops at so many times the oracle's draws; arbitrary, it decides nothing but the time of the benchmark.
_FURTHER = 6
#: Claimed level of the pure claims, and of the Gaussian ones; arbitrary.
_EPSILON, _MU = 1.0, 0.25
#: Widths of vectors, and how many times the claim is exceeded.
_WIDTHS, _TIMES = (20, 120), (2, 3, 4)
#: Levels that the growth along a direction is computed at, and most draws that it is added up over, as a multiple of
#: the oracle's; arbitrary.
_LEVELS, _LONGEST = 41, 20
#: Lattice that Laplace and Gaussian noise is rounded to: bits of floats would tell the two vectors apart.
_STEP = 2.0**-6
#: Audits of each mutant: the requirement speaks of 100.
_MUTANT_AUDITS = 100


@dataclass(frozen=True)
class ShiftedVector:
    """Independent noise of one kind on each coordinate of an integer vector.

    Parameters
    ----------
    noise : {"Laplace", "geometric", "Gaussian"}
        Kind.
    scale : float
        Of each coordinate: 1/epsilon, or the deviation.
    """

    noise: str
    scale: float

    def __call__(self, data: NDArray[np.int64], n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw n vectors."""
        shape = (n, len(data))
        if self.noise == "geometric":
            share = -math.expm1(-1.0 / self.scale)
            return np.asarray(data + rng.geometric(share, shape) - rng.geometric(share, shape))
        drawn = rng.laplace(0.0, self.scale, shape) if self.noise == "Laplace" else rng.normal(0.0, self.scale, shape)
        return np.asarray(np.rint((data + drawn) / _STEP) * _STEP)

    def curve(self, width: int) -> PrivacyCurve:
        """Exact curve of two vectors that differ by 1 in each coordinate."""
        if self.noise == "Gaussian":
            return GaussianCurve(math.sqrt(width) / self.scale)
        if self.noise == "Laplace":
            return composed(curve(LaplaceLaw(0.0, self.scale), LaplaceLaw(1.0, self.scale)), width)
        base = math.exp(1.0 / self.scale)
        return composed(curve(TwoSidedGeometricLaw(0, base), TwoSidedGeometricLaw(1, base)), width)


@dataclass(frozen=True)
class VectorCase:
    """A vector whose level is a multiple of what is claimed.

    Parameters
    ----------
    noise : str
        See `ShiftedVector`.
    width : int
        Coordinates.
    times : float
        True level over the claimed one.
    directions : {"one", "both"}
        Whether all coordinates move up, or half of them, at random places, down.
    pure : bool
        Whether the claim is pure privacy; Gaussian privacy otherwise.
    """

    noise: str
    width: int
    times: float
    directions: str
    pure: bool

    @property
    def claim(self) -> Guarantee:
        """What is claimed."""
        return PureDP(_EPSILON) if self.pure else GaussianDP(_MU)

    @property
    def mechanism(self) -> ShiftedVector:
        """Noise of the level.

        Of Laplace and geometric noise the Gaussian level is that of the limit of many coordinates.
        """
        level = self.times * self.claim.level
        return ShiftedVector(self.noise, (self.width if self.pure else math.sqrt(self.width)) / level)

    @property
    def pair(self) -> Pair:
        """The vectors without noise."""
        up = np.ones(self.width, dtype=np.int64)
        if self.directions == "both":
            up[np.random.default_rng(self.width).permutation(self.width)[: self.width // 2]] = -1
        return Pair(np.zeros(self.width, dtype=np.int64), up, f"{self.width} coordinates moved by 1")

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.noise}, {self.width} coordinates, {self.directions}"

    def oracle(self) -> OracleDraws:
        """The best event of the likelihood ratio, known beforehand."""
        rate = single_event_rate(from_curve(self.mechanism.curve(self.width)), self.claim)
        return OracleDraws(math.log(1 / ALPHA) / rate if rate > 0 else math.inf, "single event")

    def cosine(self, n: Any) -> Any:
        """What n draws a side tell of the direction, where coordinates move both ways.

        Each shift is estimated with an error of sqrt(2/n) deviations. The cosine between all estimates and all shifts
        is 1 / sqrt(1 + 2 d / (n mu^2)) with the true mu; a known direction has 1.
        """
        mu = math.sqrt(self.width) / self.mechanism.scale
        return 1.0 / np.sqrt(1.0 + 2.0 * self.width / (n * mu**2))

    def learner_draws(self) -> float:
        """Draws a side of an auditor who knows all but the shifts, for a Gaussian claim.

        Each draw is bet on along the direction of the shifts as those before it estimate them, by the best event there.
        The level along it is the true one times the cosine, so that nothing is gained until that exceeds the claim.
        """
        levels = np.linspace(0.0, self.times * self.claim.level, _LEVELS)
        rates = [single_event_rate(from_curve(GaussianCurve(level)), self.claim) if level else 0.0 for level in levels]
        n = np.arange(1, math.ceil(_LONGEST * self.oracle().draws))
        gained = np.cumsum(np.interp(levels[-1] * self.cosine(n), levels, rates))
        return float(n[min(int(gained.searchsorted(math.log(1 / ALPHA))), len(n) - 1)])


def vector_cases() -> list[VectorCase]:
    """All rows of the tables of vectors."""
    return [
        VectorCase(noise, width, times, directions, width == min(_WIDTHS) and noise != "Gaussian")
        for width in _WIDTHS
        for noise in ("Laplace", "geometric", "Gaussian")
        for directions in ("one", "both")
        for times in _TIMES
    ]


def count_draws(mechanism: Any, claim: Guarantee, pairs: Sequence[Pair], most: int, seed: int) -> float:
    """Count draws a side to a verdict; infinite if ``most`` do not suffice."""
    settings = Settings(alpha=ALPHA, draws=2 * most, seed=seed)
    evidence = collect_evidence(Sampler(mechanism, seed, "spread"), claim, pairs, settings)
    return evidence.n if evidence.wealth.best[0] >= math.log(1 / ALPHA) else math.inf


@cache
def _drafts() -> dict[tuple[str, str], Draft]:
    """Claims at level L1, by entry and case."""
    claims = registry.load_claims(["experiments"])
    return {(c.entry, c.draft.case): c.draft for c in claims if c.draft.level == "L1" and c.draft.pairs}


@cache
def spread_mutants() -> dict[str, Draft]:
    """Mutants at parameters where their loss is spread over many answers, by what they are."""
    drafts = _drafts()
    ten = drafts["000/sq_to_dp_learner", "ten_answers"].mechanism
    first = drafts["000/sq_to_dp_learner", "shared_chunk"].pairs
    counts = drafts["003/basic_composition", "laplace_counts"]
    fifty = drafts["003/k_counting_queries_laplace", "fifty_counts"]
    stopped = drafts["004/svt_mutants", "v4_lee_clifton"]
    base: Any = replace(cast(Any, stopped.mechanism), variant="V1")
    released = OtherVariantTwin("V3")(base)
    return {
        "one chunk for ten queries": broken(CHUNKS["shared_chunk"], ten, first, relation=REPLACE),
        "budget of four counts divided by sqrt(k)": broken(
            ACCOUNTANTS["budget_divided_by_sqrt_k"], counts.mechanism, counts.pairs, relation=REPLACE
        ),
        "fifty counts without their log factor": broken(
            COUNTS["sqrt_k_without_log"],
            fifty.mechanism,
            fifty.pairs,
            guarantee=fifty.privacy_guarantee,
            relation=REPLACE,
        ),
        "ten queries before the answer that V3 releases": broken(
            VARIANTS["v3_roth_2011"],
            base,
            stopped.pairs,
            exact_level=worst_release(released, stopped.pairs[0].x, stopped.pairs[0].y).loss,
            relation=REPLACE,
        ),
    }


def audit_vector(case: VectorCase, seed: int) -> float:
    """Draws a side of one audit of a vector."""
    return count_draws(case.mechanism, case.claim, [case.pair], math.floor(_FURTHER * case.oracle().draws), seed)


def audit_mutant(which: str, seed: int) -> float:
    """Draws a side of one audit of a mutant."""
    draft = spread_mutants()[which]
    found = oracle(draft)
    if found is None:
        raise ValueError(f"expected a mutant with known distributions, got {which}")
    most = math.floor(_FURTHER * found.draws)
    return count_draws(draft.mechanism, draft.privacy_guarantee, draft.pairs, most, seed)


def _quote(draws: Sequence[float], of: float) -> tuple[float, str]:
    """Median over the oracle's draws, and the cells of a table with it and the 90 % quantile."""
    ratios = np.quantile(draws, [0.5, 0.9], method="higher") / of
    cells = " | ".join(f"{one:.2f}" if math.isfinite(one) else f"> {_FURTHER}" for one in ratios.tolist())
    return float(ratios[0]), cells


def vector_row(case: VectorCase, draws: Sequence[float]) -> tuple[str, bool]:
    """One line of a table of vectors, and whether the median is as wanted."""
    known = case.oracle().draws
    median, cells = _quote(draws, known)
    both = case.directions == "both"
    cosine = f"{case.cosine(VECTOR_FACTOR * known):.2f}" if both else ""
    learner = f"{case.learner_draws() / known:.2f}" if both and not case.pure else ""
    good = median <= VECTOR_FACTOR
    line = f"| {case.noise} | {case.directions} | {case.claim} | {case.times:g} | {known:,.0f} | {cells} | {cosine} "
    return f"{line}| {learner} | {'yes' if good else 'no'} |", good


def mutant_row(which: str, draws: Sequence[float]) -> tuple[str, bool]:
    """One line of the table of mutants, and whether enough audits are within the factor."""
    draft = spread_mutants()[which]
    found = oracle(draft)
    known = math.nan if found is None else found.draws
    caught = sum(n <= FACTOR * known for n in draws)
    good = caught >= WANTED * len(draws)
    line = f"| {which} | {draft.guarantee} | {known:,.0f} | {_quote(draws, known)[1]} "
    return f"{line}| {caught} of {len(draws)} | {'yes' if good else 'no'} |", good


def document(audits: int, first_seed: int, jobs: int, only: str = "") -> tuple[str, bool]:
    """The report, and whether all that is wanted holds."""
    cases = [case for case in vector_cases() if only in case.name]
    names = [which for which in spread_mutants() if only in which]
    work = [(audit_mutant, which, seed) for which in names for seed in range(first_seed, first_seed + _MUTANT_AUDITS)]
    others = [(audit_vector, case, seed) for case in cases for seed in range(first_seed, first_seed + audits)]
    with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        done = joblib.Parallel(batch_size=5)(joblib.delayed(run)(*rest) for run, *rest in [*work, *others])
    found: dict[object, list[float]] = {}
    for (_, which, _), n in zip([*work, *others], done, strict=True):
        found.setdefault(which, []).append(n)
    rows = [mutant_row(which, found[which]) for which in names]
    vectors = {width: [vector_row(c, found[c]) for c in cases if c.width == width] for width in _WIDTHS}
    text = [
        "# Losses spread over many coordinates",
        "",
        f"Audits at alpha {ALPHA} with nothing told about the event. Draws are draws a side, as a multiple of those of "
        "an oracle that knows both distributions; an audit ends without a verdict at "
        f"{_FURTHER} times those. Wanted: of vectors a median of at most {VECTOR_FACTOR:g}, of mutants {WANTED:.0%} of "
        f"the audits within {FACTOR:g} times.",
        "",
        f"{sum(good for lines in vectors.values() for _, good in lines)} of "
        f"{sum(map(len, vectors.values()))} rows of vectors and {sum(good for _, good in rows)} of {len(rows)} mutants "
        "have what is wanted.",
    ]
    for width, lines in vectors.items():
        text += [
            "",
            f"## Vectors of {width} coordinates",
            "",
            f"{audits} audits of each row. All coordinates have noise of one scale, and move by 1: all up, or half of "
            "them up and half down. The oracle bets on the best event of the likelihood ratio. The cosine says how "
            f"much of the direction anybody can estimate from {VECTOR_FACTOR:g} times the oracle's draws who does not "
            "know that all shifts have one size: a known one has 1. The learner knows all but the shifts, takes their "
            "estimates from the draws so far for the direction, and bets each draw on the best event along it; it is "
            "computed for Gaussian claims, which sums of many coordinates come close to.",
            "",
            "| noise | directions | claim | true level over it | oracle | median | 90 % | cosine | learner | at most "
            f"{VECTOR_FACTOR:g} |",
            "|---|---|---|---:|---:|---:|---:|---:|---:|---|",
            *[line for line, _ in lines],
        ]
    text += [
        "",
        "## Mutants",
        "",
        f"{_MUTANT_AUDITS} audits of each. The oracle is that of `benchmarks/mutants.py`. Noise reused for the answers "
        "of private multiplicative weights is not among them, because one audit takes 216,000 draws a side: see "
        "`mutants.md`.",
        "",
        f"| mutant | claim | oracle | median | 90 % | within {FACTOR:g} times | {WANTED:.0%} of them |",
        "|---|---|---:|---:|---:|---:|---|",
        *[line for line, _ in rows],
        "",
        "Made by `python -m benchmarks.spread`.",
        "",
    ]
    return "\n".join(text), all(good for _, good in rows) and all(g for lines in vectors.values() for _, g in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a row misses what is wanted."""
    parser = parser_of("spread", __doc__, "audits", 20, first_seed=0)
    options = parser.parse_args(arguments)
    if options.audits < 1:
        parser.error(f"--audits must be at least 1, got {options.audits}")
    text, good = document(options.audits, options.first_seed, options.jobs, options.only)
    options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    # Not this module's own functions: workers find those of the module by name, with their caches.
    from benchmarks.spread import main as run

    raise SystemExit(run())
