"""The engine's own cost: the time of an audit over the time of drawing the same samples.

Run as ``python -m benchmarks.cost [--pairs 7] [--notions] [--out reports/cost.md]``. Each pair of runs draws an audit's
samples alone (the same calls, chunk by chunk), then audits; the ratio of the two is taken pair by pair and the median
quoted, so that a drifting machine does not matter. The lattice samplers' speed stands in a table of its own, and so
does the cost of a notion of privacy beside pure DP, which ``--notions`` shows alone.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor import ZCDP, ApproxDP, AuditResult, GaussianDP, Pair, PureDP, RenyiDP, TradeoffCurve, audit, one_draw
from auditor.privacy.guarantees import Guarantee
from auditor.privacy.guarantees.base import Array
from auditor.targets import Mechanism
from auditor.targets.sampler import Sampler
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.integer_noise import discrete_gaussian, two_sided_geometric
from mechanisms.base.queries import IdentityQuery
from mechanisms.selection.noisy_max import ReportNoisyMax
from mechanisms.selection.sparse_vector import SparseVector

#: Draws in one timed batch of a sampler.
_BATCH = 1_000_000
#: Draws of both sides in the audits that show the cost of a notion, and audits of each.
_NOTION_DRAWS, _NOTION_AUDITS = (2_000, 50_000, 400_000), 3


@dataclass(frozen=True)
class CostCase:
    """A mechanism that satisfies its claim, so that the audit runs to its budget."""

    name: str
    mechanism: Mechanism
    pairs: tuple[Pair, ...]
    draws: int
    stop: str


def response(data: Any, rng: np.random.Generator) -> int:
    """Randomised response, one draw a call."""
    return int(data[0]) if rng.random() < 0.7310585786300049 else 1 - int(data[0])


def noisy_count(data: Any, rng: np.random.Generator) -> float:
    """A count with noise, one draw a call."""
    return float(np.rint(data.sum() + rng.laplace(0.0, 1.0)))


def noisy_counts(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Three counts, each with two-sided geometric noise of scale 1.25; shape (n, 3)."""
    noise = rng.geometric(-math.expm1(-0.8), (2, n, 3))
    return np.asarray(np.asarray(data) + noise[0] - noise[1], dtype=np.int64)


def named_counts(data: Any, n: int, rng: np.random.Generator) -> list[dict[str, int]]:
    """Three noisy counts by name."""
    return [{"a": a, "b": b, "c": c} for a, b, c in noisy_counts(data, n, rng).tolist()]


def counts_until_zero(data: Any, n: int, rng: np.random.Generator) -> list[list[int]]:
    """The noisy counts up to the first that is not above zero: rows of 0 to 3 numbers."""
    return [list(itertools.takewhile(lambda v: v > 0, row)) for row in noisy_counts(data, n, rng).tolist()]


def counts_above_zero(data: Any, n: int, rng: np.random.Generator) -> list[set[int]]:
    """Names of the noisy counts above zero, as a set."""
    return [{k for k, v in enumerate(row) if v > 0} for row in noisy_counts(data, n, rng).tolist()]


def count_or_text(data: Any, n: int, rng: np.random.Generator) -> list[int | str | None]:
    """The first noisy count if it is above zero; a text for zero, and None below."""
    return [v if v > 0 else "none" if v == 0 else None for v in noisy_counts(data, n, rng)[:, 0].tolist()]


def cases() -> list[CostCase]:
    """Mechanisms from 20 nanoseconds to microseconds a draw."""
    answers = IdentityQuery()
    one = (Pair(np.array([0.0]), np.array([1.0])),)
    five = (Pair(np.ones(5), np.array([2.0, 0, 0, 0, 0])),)
    ten = (Pair(np.array([0.0] * 9 + [1.0]), np.array([1.0] * 9 + [0.0])),)
    bit = (Pair(np.array([0]), np.array([1])),)
    three = tuple(Pair(np.array([a, b, 1]), np.array([a + 1, b, 1])) for a in range(53) for b in range(2))
    found = []
    for draws in (400_000, 2_000_000):
        found += [
            CostCase("lattice Laplace", LatticeLaplace(answers, 1.0), one, draws, "verdict"),
            CostCase("noisy max of 5", ReportNoisyMax(answers, 1.0), five, draws, "verdict"),
            CostCase("noisy max of 5", ReportNoisyMax(answers, 1.0), five, draws, "budget"),
            CostCase("sparse vector, 10 queries", SparseVector(answers, 1.0, 0.5, 2), ten, draws, "verdict"),
        ]
        found.append(CostCase("one-draw function: a coin", one_draw(response), bit, draws, "verdict"))
        found.append(CostCase("one-draw function: noisy count", one_draw(noisy_count), one, draws, "verdict"))
    found.append(CostCase("one-draw function: noisy count", one_draw(noisy_count), one, 400_000, "budget"))
    found += [
        CostCase("dict of three counts", named_counts, three[:1], 400_000, "budget"),
        CostCase(f"dict of three counts, {len(three)} pairs", named_counts, three, 400_000, "budget"),
        CostCase("rows of up to three counts", counts_until_zero, three[:1], 400_000, "budget"),
        CostCase("sets of names", counts_above_zero, three[:1], 400_000, "budget"),
        CostCase("a count, a text or None", count_or_text, three[:1], 400_000, "budget"),
    ]
    return found


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what the work returned."""
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def draw_alone(case: CostCase, result: AuditResult) -> None:
    """The audit's calls of the mechanism, without the audit."""
    sampler = Sampler(case.mechanism, 0, "cost")
    for number, (pair, n, _) in enumerate(result.record["chunks"]):
        sampler.draw(case.pairs[pair].x, n, pair, "x", number)
        sampler.draw(case.pairs[pair].y, n, pair, "y", number)


def row(case: CostCase, pairs: int) -> str:
    """One line of the table."""

    def run() -> AuditResult:
        return audit(case.mechanism, PureDP(1.0), case.pairs, draws=case.draws, stop=case.stop, id="cost")

    _, result = timed(run)  # warm-up, and the chunks to draw
    alone, whole = [], []
    for _ in range(pairs):
        alone.append(timed(lambda: draw_alone(case, result))[0])
        whole.append(timed(run)[0])
    ratios = [b / a for a, b in zip(alone, whole, strict=True)]
    extra = [b - a for a, b in zip(alone, whole, strict=True)]
    per_draw = statistics.median(alone) / result.draws * 1e9
    return (
        f"| {case.name} | {result.draws:,} | {case.stop} | {per_draw:,.0f} | {statistics.median(ratios):.3f} "
        f"({min(ratios):.3f} to {max(ratios):.3f}) | {statistics.median(extra) * 1000:,.0f} |"
    )


def sampler_rows(repeats: int) -> list[str]:
    """Draws a second of the lattice samplers, in batches of 10^6."""
    samplers: list[tuple[str, Callable[[np.random.Generator], Any]]] = [
        (f"discrete Laplace, scale {scale:,}", partial(_laplace, math.exp(1 / scale))) for scale in (1, 2**10, 2**20)
    ]
    samplers += [(f"discrete Gaussian, sigma {sigma:,}", partial(_gaussian, sigma)) for sigma in (1, 2**10, 2**20)]
    rows = []
    for name, draw in samplers:
        once = partial(draw, np.random.default_rng(0))
        once()  # warm-up: the expansions are computed once
        rates = [_BATCH / timed(once)[0] / 1e6 for _ in range(repeats)]
        rows.append(f"| {name} | {statistics.median(rates):.1f} ({min(rates):.1f} to {max(rates):.1f}) |")
    return rows


def _laplace(a: float, rng: np.random.Generator) -> Any:
    return two_sided_geometric(a, _BATCH, rng)


def _gaussian(sigma: float, rng: np.random.Generator) -> Any:
    return discrete_gaussian(sigma, _BATCH, rng)


@dataclass(frozen=True)
class TotalVariationByCap(Guarantee):
    """Closeness in total variation, of which the cap is given."""

    distance: float

    notion: ClassVar[str] = "total variation"
    symbol: ClassVar[str] = "TV"
    highest: ClassVar[float] = 1.0

    @property
    def level(self) -> float:
        """Claimed distance."""
        return self.distance

    def cap(self, q: Array, level: Array | float) -> Array:
        """Largest p allowed at q."""
        return np.asarray(np.minimum(1.0, q + level))


@dataclass(frozen=True)
class KLPrivacy(Guarantee):
    """Bounded Kullback-Leibler divergences in both orders, of which the inverse of the cap is given."""

    kappa: float

    notion: ClassVar[str] = "KL"
    symbol: ClassVar[str] = "κ"

    @property
    def level(self) -> float:
        """Claimed divergence."""
        return self.kappa

    def level_of(self, p: Array, q: Array) -> Array:
        """The larger of the two divergences."""
        both = [special.rel_entr(a, b) + special.rel_entr(1 - a, 1 - b) for a, b in ((p, q), (q, p))]
        return np.where(p > q, np.maximum(*both), 0.0)


def _gaussian_curve(t: float) -> TradeoffCurve:
    return TradeoffCurve.below(lambda a: np.asarray(special.ndtr(special.ndtri(1.0 - a) - 1.3 * t)))


#: Claims that Laplace noise of scale 1 satisfies, with bounds times a number: each audit has another one, near 1, so
#: that it makes its tables anew.
NOTIONS: tuple[tuple[str, Callable[[float], Guarantee]], ...] = (
    ("pure DP", lambda t: PureDP(t)),
    ("approximate DP", lambda t: ApproxDP(t, 1e-3)),
    ("Gaussian DP", lambda t: GaussianDP(1.3 * t)),
    ("zCDP", lambda t: ZCDP(0.5 * t)),
    ("Renyi DP, 2 orders", lambda t: RenyiDP({2: 0.8 * t, 8: 1.0 * t})),
    ("trade-off curve, 200 points", _gaussian_curve),
    ("total variation, by its cap", lambda t: TotalVariationByCap(0.5 * t)),
    ("KL divergence, by the inverse of its cap", lambda t: KLPrivacy(0.5 * t)),
)


def notion_rows() -> list[str]:
    """Least time of an audit by notion, over that under pure DP."""
    mechanism, pair = LatticeLaplace(IdentityQuery(), 1.0), Pair(np.array([0.0]), np.array([1.0]))
    audit(mechanism, PureDP(1.0), pair, draws=_NOTION_DRAWS[0], id="cost")  # warm-up
    ratios: dict[str, list[float]] = {name: [] for name, _ in NOTIONS}
    for draws in _NOTION_DRAWS:
        least = dict.fromkeys(ratios, math.inf)
        for k in range(_NOTION_AUDITS):
            for name, claim in NOTIONS:
                guarantee = claim(1.0 + 1e-6 * k + 1e-9 * draws)
                begun = time.process_time()
                audit(mechanism, guarantee, pair, draws=draws, id="cost")
                least[name] = min(least[name], time.process_time() - begun)
        for name, _ in NOTIONS:
            ratios[name].append(least[name] / least["pure DP"])
    return [f"| {name} | " + " | ".join(f"{ratio:.2f}" for ratio in found) + " |" for name, found in ratios.items()]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7, help="pairs of runs of each case")
    parser.add_argument("--notions", action="store_true", help="the cost of a notion alone")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    notions = [
        "",
        "## Cost of a notion",
        "",
        f"CPU time of an audit of Laplace noise over that under pure DP, the least of {_NOTION_AUDITS} audits each.",
        "",
        "| notion | " + " | ".join(f"{draws:,} draws" for draws in _NOTION_DRAWS) + " |",
        "|---" * (1 + len(_NOTION_DRAWS)) + "|",
        *notion_rows(),
    ]
    print("\n".join(notions), flush=True)
    if options.notions:
        return
    lines = [
        f"Median of {options.pairs} pairs of runs: drawing the samples alone, and the whole audit.",
        "",
        "| mechanism | draws, both sides | stop | ns a draw | audit / drawing alone | extra ms |",
        "|---|---|---|---|---|---|",
    ]
    for case in cases():
        lines.append(row(case, options.pairs))
        print(lines[-1], flush=True)
    lines += ["", "| sampler | million draws a second, one core |", "|---|---|", *sampler_rows(options.pairs)]
    print("\n".join(lines[-6:]), flush=True)
    lines += notions
    if options.out is not None:
        options.out.write_text("# The engine's own cost\n\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
