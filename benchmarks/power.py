"""Power: draws to a verdict and lower bounds on the cases that other auditors were measured on.

Run as ``python -m benchmarks.power [--runs 101] [--jobs 2] [--out reports/power.md]``. Every case is one fixed pair,
alpha = 0.05, at most 200,000 draws a side, nothing told about the event. Beside each median stands the single-event
oracle: ln(1/alpha) over the divergence rate of the best single event, known beforehand.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from auditor import AnswersWithin, ApproxDP, GaussianDP, Pair, PureDP, audit
from auditor.datasets import check_pairs
from auditor.evidence.power import divergence_rate
from auditor.privacy.exact import FiniteLaw
from auditor.privacy.guarantees import Guarantee
from auditor.results import Verdict
from auditor.targets import Mechanism
from mechanisms.additive_noise.gaussian import LatticeGaussian
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.queries import IdentityQuery
from mechanisms.local_model.randomized_response import from_epsilon
from mechanisms.selection.noisy_max import ReleasedMaximum, ReportNoisyMax
from mechanisms.selection.sparse_vector import SparseVector, VariantName

ALPHA = 0.05
DRAWS_A_SIDE = 200_000
ANSWERS = IdentityQuery(sensitivity=1.0, linf_sensitivity=1.0)


@dataclass(frozen=True)
class PowerCase:
    """One row of the table.

    Parameters
    ----------
    name, true : str
        What is audited; its true level on the pair, in words.
    mechanism, pair, claim : Mechanism, Pair, Guarantee
        The audit.
    oracle : callable or None
        Divergence rate of the best single event at the claim, nats a draw.
    bound_at_least : float or None
        Target for the lower bound.
    draws_at_most : int or None
        Target for the median draws a side to a verdict; None: never to be flagged, 0: not judged.
    exact : float
        True level on the pair, infinite if there is none; no lower bound may exceed it.
    whole : callable or None
        Divergence rate of the whole distribution, which bounds every auditor's.
    """

    name: str
    true: str
    mechanism: Mechanism
    pair: Pair
    claim: Guarantee
    oracle: Callable[[Guarantee], float] | None
    bound_at_least: float | None
    draws_at_most: int | None
    exact: float
    whole: Callable[[Guarantee], float] | None = None


Cdf = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def half_lines(p: Cdf, q: Cdf, reach: float) -> Callable[[Guarantee], float]:
    """Best half line, from two distribution functions."""
    t = np.linspace(-reach, reach, 8001)

    def best(claim: Guarantee) -> float:
        below = divergence_rate(p(t), q(t), claim, claim.level).max()
        return float(max(below, divergence_rate(1 - p(t), 1 - q(t), claim, claim.level).max()))

    return best


def _power(cdf: Cdf, k: int) -> Cdf:
    """Distribution function of the maximum of k."""
    return lambda t: cdf(t) ** k


def likelihood_sets(mechanism: SparseVector | ReportNoisyMax, pair: Pair) -> Callable[[Guarantee], float]:
    """Best set of outcomes, in the order of their likelihood ratio (Neyman and Pearson)."""

    def best(claim: Guarantee) -> float:
        return _best_set(mechanism.law(pair.x), mechanism.law(pair.y), claim)

    return best


def _best_set(first: FiniteLaw, second: FiniteLaw, claim: Guarantee) -> float:
    q_of = dict(zip(second.outcomes, second.probabilities.tolist(), strict=True))
    p = first.probabilities
    q = np.array([q_of.get(outcome, 0.0) for outcome in first.outcomes])
    rates = []
    for a, b in ((p, q), (q, p)):
        order = np.argsort(-(np.log(a + 1e-300) - np.log(b + 1e-300)))
        rates.append(
            divergence_rate(
                np.minimum(np.cumsum(a[order]), 1), np.minimum(np.cumsum(b[order]), 1), claim, claim.level
            ).max()
        )
    return float(max(rates))


def whole_law(law: Any, claim: Guarantee) -> float:
    """Divergence rate of a symmetric pair (law, law + 1), as a whole, from the nearest pair that satisfies pure DP.

    Where the likelihood ratio p/q exceeds e^eps, the nearest pair has p0 = e^eps q0 and p0 + q0 = p + q; by symmetry
    the masses come out right. No auditor grows faster, whatever it bets on.
    """
    y = np.linspace(-40.0, 41.0, 810_001)
    p, q = law.pdf(y), law.pdf(y - 1)
    e = math.exp(claim.level)
    beyond = p > e * q
    rate = special.rel_entr(p, e * (p + q) / (1 + e)) + special.rel_entr(q, (p + q) / (1 + e))
    return 2 * float(np.where(beyond, rate, 0.0).sum() * (y[1] - y[0]))


def _answers(*values: float) -> NDArray[np.float64]:
    return np.array(values)


def _svt(variant: VariantName, cutoff: int) -> SparseVector:
    return SparseVector(ANSWERS, 1.0, threshold=0.5, cutoff=cutoff, variant=variant)


def _laplace_case(scale: float, pair: Pair, bound_at_least: float | None, draws_at_most: int) -> PowerCase:
    law, moved = stats.laplace(0, scale), stats.laplace(1, scale)
    return PowerCase(
        f"Laplace, scale {scale:g}",
        f"{1 / scale:.3g}",
        LatticeLaplace(ANSWERS, 1 / scale),
        pair,
        PureDP(1.0),
        half_lines(law.cdf, moved.cdf, 12 * scale),
        bound_at_least,
        draws_at_most,
        1 / scale,
        partial(whole_law, law),
    )


def cases() -> list[PowerCase]:
    """The issue's table."""
    one = Pair(_answers(0.0), _answers(1.0), "0 against 1")
    rare = Pair(_answers(*[0] * 9, 1), _answers(*[1] * 9, 0), "0^9 1 against 1^9 0")
    halves = Pair(_answers(*[0] * 5, *[1] * 5), _answers(*[1] * 5, *[0] * 5), "0^5 1^5 against 1^5 0^5")
    spread = Pair(_answers(1, 1, 1, 1, 1), _answers(2, 0, 0, 0, 0), "(1,1,1,1,1) against (2,0,0,0,0)")
    all_up = Pair(_answers(1, 1, 1, 1, 1), _answers(2, 2, 2, 2, 2), "(1,1,1,1,1) against (2,2,2,2,2)")
    check_pairs([one, rare, halves, spread, all_up], AnswersWithin(1.0))
    bit = Pair(np.array([0]), np.array([1]), "one bit")
    pure, approx = PureDP(1.0), ApproxDP(1.0, 1e-5)

    def gauss(sigma: float) -> Callable[[Guarantee], float]:
        return half_lines(stats.norm(0, sigma).cdf, stats.norm(1, sigma).cdf, 8 * sigma)

    def maximum(low: float, high: float) -> Callable[[Guarantee], float]:
        return half_lines(_power(stats.laplace(low, 2).cdf, 5), _power(stats.laplace(high, 2).cdf, 5), 30)

    v4, v5, v6 = _svt("V4", 1), _svt("V5", 1), _svt("V6", 1)
    inf = math.inf
    return [
        PowerCase("Laplace, scale 1", "1", LatticeLaplace(ANSWERS, 1.0), one, pure, None, 0.97, None, 1.0),
        _laplace_case(0.5, one, 1.96, 200),
        _laplace_case(0.8, one, None, 0),
        _laplace_case(0.9, one, None, 0),
        _laplace_case(0.95, one, None, 0),
        PowerCase(
            "Gaussian, sigma 3.7306, as mu",
            "mu 0.2680",
            LatticeGaussian(ANSWERS, 3.7306),
            one,
            GaussianDP(1 / 3.7306),
            None,
            0.92 / 3.7306,
            None,
            1 / 3.7306,
        ),
        PowerCase(
            "Gaussian, sigma 3.7306, as (1, 1e-5)",
            "1",
            LatticeGaussian(ANSWERS, 3.7306),
            one,
            approx,
            None,
            None,
            None,
            1.0001,
        ),
        PowerCase(
            "Gaussian, sigma 1.8653, as mu",
            "mu 0.5361",
            LatticeGaussian(ANSWERS, 1.8653),
            one,
            GaussianDP(1 / 1.8653),
            None,
            0.95 / 1.8653,
            None,
            1 / 1.8653,
        ),
        PowerCase(
            "Gaussian, sigma 1.8653, as (1, 1e-5)",
            "2.155",
            LatticeGaussian(ANSWERS, 1.8653),
            one,
            approx,
            gauss(1.8653),
            None,
            25_000,
            inf,
        ),
        PowerCase("sparse vector V1", "at most 1", _svt("V1", 2), rare, pure, None, None, None, 1.0),
        PowerCase("sparse vector V2", "at most 1", _svt("V2", 2), rare, pure, None, None, None, 1.0),
        PowerCase("sparse vector V3", "2.5 reachable", _svt("V3", 1), rare, pure, None, 2.0, 25_000, inf),
        PowerCase("sparse vector V4", "1.741", v4, rare, pure, likelihood_sets(v4, rare), 1.55, 12_000, 1.7411),
        PowerCase("sparse vector V5", "infinite", v5, halves, pure, likelihood_sets(v5, halves), 9.0, 200, inf),
        PowerCase("sparse vector V6", "4.061", v6, halves, pure, likelihood_sets(v6, halves), 3.0, 1_500, 4.0615),
        PowerCase("noisy max", "at most 1", ReportNoisyMax(ANSWERS, 1.0), spread, pure, None, None, None, 1.0),
        PowerCase(
            "noisy max, value released",
            "2.5",
            ReleasedMaximum(ANSWERS, 1.0),
            all_up,
            pure,
            maximum(1, 2),
            2.3,
            1_500,
            2.5,
        ),
        PowerCase("randomised response", "1", from_epsilon(1.0), bit, pure, None, 0.975, None, 1.0),
    ]


def one_run(index: int, seed: int, stop: str) -> tuple[int | None, float]:
    """Draws a side to a verdict (None: not flagged) and the lower bound."""
    case = cases()[index]
    result = audit(
        case.mechanism,
        case.claim,
        case.pair,
        alpha=ALPHA,
        draws=2 * DRAWS_A_SIDE,
        stop=stop,
        seed=seed,
        id=f"power/{index}",
    )
    return (result.draws // 2 if result.verdict == Verdict.VIOLATION else None), float(result.lower_bound or 0.0)


def row(index: int, runs: int, bounds: int, parallel: joblib.Parallel) -> str:
    """One line of the table."""
    case = cases()[index]
    stopped = parallel(joblib.delayed(one_run)(index, seed, "verdict") for seed in range(runs))
    long = parallel(joblib.delayed(one_run)(index, seed, "budget") for seed in range(bounds))
    draws = np.array([math.inf if n is None else n for n, _ in stopped])
    flagged = int(np.isfinite(draws).sum())
    lower = np.array([bound for _, bound in long])
    rate = case.oracle(case.claim) if case.oracle else 0.0
    oracle = math.log(1 / ALPHA) / rate if rate > 0 else math.inf
    verdict = f"{flagged} of {runs} flagged"
    ratio = ""
    if case.draws_at_most is not None:
        median, ninety = np.quantile(draws, [0.5, 0.9], method="higher")
        verdict = f"{median:,.0f} ({ninety:,.0f})"
        ratio = f"{oracle:,.0f}: {median / oracle:.2f} ({ninety / oracle:.2f})" if math.isfinite(oracle) else ""
        if case.whole is not None:
            ratio += f"; whole distribution {math.log(1 / ALPHA) / case.whole(case.claim):,.0f}"
    wanted = "" if case.bound_at_least is None else f"{case.bound_at_least:.4g}"
    never = "" if isinstance(case.claim, GaussianDP) else "never"  # not asked of the bounds on mu
    most = never if case.draws_at_most is None else f"{case.draws_at_most:,}" if case.draws_at_most else ""
    bound = f"{np.median(lower):.4g} ({lower.min():.4g})"
    return f"| {case.name} | {case.true} | {bound} | {wanted} | {verdict} | {most} | {ratio} |"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=101, help="audits to a verdict, of each case")
    parser.add_argument("--bounds", type=int, default=21, help="audits of the whole budget, of each case")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    lines = [
        f"alpha {ALPHA}, at most {DRAWS_A_SIDE:,} draws a side; {options.runs} audits to a verdict, "
        f"{options.bounds} of the whole budget, of each case",
        "",
        "| case | true on this pair | lower bound, median (least) | wanted | draws a side to a verdict, median (90 %) "
        "| wanted at most | single-event oracle: ratio of median (90 %) |",
        "|---|---|---|---|---|---|---|",
    ]
    with joblib.parallel_config("loky", n_jobs=options.jobs, inner_max_num_threads=1):
        parallel = joblib.Parallel()
        for index, case in enumerate(cases()):
            if options.only in case.name:
                lines.append(row(index, options.runs, options.bounds, parallel))
                print(lines[-1], flush=True)
    if options.out is not None:
        options.out.write_text("# Power\n\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
