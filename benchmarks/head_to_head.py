"""Draws to a verdict on the cases of two published sequential auditors, beside their figures.

Run as ``python -m benchmarks.head_to_head [--audits 1000] [--jobs 2] [--out reports/head_to_head.md]``.

The cases are those of Kutta et al. (trade-off curves) and, before them, González et al. (kernel mean embeddings): the
mean of a dataset with noise of scale 2 / (n epsilon), where n is the number of rows, so that the scale tells n; and
Gaussian and Laplace noise against curves that they do not keep. Outputs lie on a lattice that is so fine, and the same
for both datasets, that their bits tell nothing. Seeds are from 10,000 on: no choice in the engine was made with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditor import ApproxDP, GaussianDP, Pair, PureDP, TradeoffCurve, audit
from auditor.calibration.oracles import Masses, from_cdfs, single_event_rate, whole_distribution_rate
from auditor.privacy.guarantees import Guarantee
from auditor.results import Verdict
from auditor.targets import Mechanism
from benchmarks.false_alarms import CONFIDENCE
from benchmarks.options import parser_of
from mechanisms.additive_noise.gaussian import analytic_mu

Array = NDArray[np.float64]
Noise = Literal["Gaussian", "Laplace"]

ALPHA = 0.05
FIRST_SEED = 10_000
#: Step of the lattice of outputs: less than a millionth of the least scale of noise.
STEP = 2.0**-24
#: Delta of the claims about Gaussian noise; arbitrary, too small to matter in the draws that are made here.
DELTA = 1e-5
#: Most draws a side: of what violates its claim; of what keeps it; at large epsilon.
VIOLATIONS, CONTROLS, LARGE = 100_000, 2_000, 200_000
#: Audits of each large epsilon for one of the other rows: their draws are many.
FEWER = 10
EMPTY = Pair(np.array([0.0]), np.array([0.0, 1.0]), "(0) against (0, 1)")
UNIT = Pair(np.array([0.0]), np.array([1.0]), "0 against 1")
#: Cells between which masses of continuous outputs are computed, from -30 to 30 scales of the wider noise.
_EDGES = np.linspace(-30.0, 30.0, 60_001)


def draw_noise(noise: Noise, size: int, rng: np.random.Generator) -> Array:
    """Draw noise of scale 1: standard normal, or Laplace with density exp(-|x|) / 2.

    Parameters
    ----------
    noise : "Gaussian" or "Laplace"
    size : int
        Number of draws.
    rng : Generator

    Returns
    -------
    ndarray of shape (size,)
    """
    return rng.standard_normal(size) if noise == "Gaussian" else rng.laplace(size=size)


def _round(values: Array) -> Array:
    return np.rint(values / STEP) * STEP


@dataclass(frozen=True)
class LeakingMean:
    """Mean with noise of scale 2 / (n epsilon), which tells the number n of rows."""

    noise: Noise
    epsilon: float

    def __call__(self, data: Array, n: int, rng: np.random.Generator) -> Array:
        """Draw n means."""
        return _round(data.mean() + 2.0 / (len(data) * self.epsilon) * draw_noise(self.noise, n, rng))

    def cdf(self, data: Array, x: Array) -> Array:
        """Distribution function of the output."""
        family = stats.norm if self.noise == "Gaussian" else stats.laplace
        return np.asarray(family.cdf(x, data.mean(), 2.0 / (len(data) * self.epsilon)))


@dataclass(frozen=True)
class PrivateMean:
    """Noisy sum over a noisy number of rows, each of which takes half of the budget.

    One row in [0, 1] moves the sum by at most 1 and the number by 1. The number has Laplace noise of scale 2 / epsilon,
    and the sum too, or Gaussian noise that is calibrated to (epsilon / 2, delta) exactly.
    """

    noise: Noise
    epsilon: float

    def __call__(self, data: Array, n: int, rng: np.random.Generator) -> Array:
        """Draw n means."""
        scale = 2.0 / self.epsilon if self.noise == "Laplace" else 1.0 / analytic_mu(self.epsilon / 2.0, DELTA)
        rows = len(data) + 2.0 / self.epsilon * draw_noise("Laplace", n, rng)
        return _round((data.sum() + scale * draw_noise(self.noise, n, rng)) / np.maximum(rows, 1.0))


@dataclass(frozen=True)
class UnitNoise:
    """A number with noise of scale 1."""

    noise: Noise

    def __call__(self, data: Array, n: int, rng: np.random.Generator) -> Array:
        """Draw n numbers."""
        return _round(data[0] + draw_noise(self.noise, n, rng))


@dataclass(frozen=True)
class Case:
    """A row.

    Parameters
    ----------
    name : str
    mechanism, pair, claim : Mechanism, Pair, Guarantee
        The audit.
    most : int
        Draws a side.
    published : tuple of str
        Figures of the other methods, in the order of the table's columns.
    """

    name: str
    mechanism: Mechanism
    pair: Pair
    claim: Guarantee
    most: int
    published: tuple[str, ...] = ()


def claim_of(noise: Noise, epsilon: float) -> Guarantee:
    """What the document of the mean claims: epsilon, with a delta where noise is Gaussian."""
    return PureDP(epsilon) if noise == "Laplace" else ApproxDP(epsilon, DELTA)


def laplace_curve(shift: float) -> TradeoffCurve:
    """Trade-off curve of Laplace noise of scale 1 whose centre moves by ``shift``, from below."""
    noise = stats.laplace()
    return TradeoffCurve.below(lambda alpha: noise.cdf(noise.isf(alpha) - shift), name=f"Laplace, shift {shift:g}")


#: Means of draws a side that the others publish: González et al., Kutta et al. (1,000 runs each).
MEANS: dict[tuple[Noise, float], tuple[str, str]] = {
    ("Gaussian", 0.01): ("264", "59.09"),
    ("Gaussian", 0.1): ("562", "67.99"),
    ("Laplace", 0.01): ("331", "86.46"),
    ("Laplace", 0.1): ("920", "114.08"),
}
#: Parts of the controls that they reject.
REJECTED: dict[tuple[Noise, float], tuple[str, str]] = {
    ("Gaussian", 0.01): ("0", "0.001"),
    ("Gaussian", 0.1): ("0", "0.058"),
    ("Laplace", 0.01): ("0", "0.001"),
    ("Laplace", 0.1): ("0", "0.027"),
}
#: Mean, median and 90 % quantile of the stopping times that Kutta et al. publish, by noise and claimed shift.
CURVES: dict[tuple[Noise, float], tuple[str, str, str]] = {
    ("Gaussian", 0.5): ("188", "160", "330"),
    ("Gaussian", 0.8): ("1,453", "1,390", "2,570"),
    ("Laplace", 0.5): ("220", "190", "410"),
    ("Laplace", 0.8): ("1,700", "1,500", "3,290"),
}
LARGE_EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)


def leaking_case(noise: Noise, epsilon: float, most: int = VIOLATIONS) -> Case:
    """Row of a mean that tells the number of rows.

    Parameters
    ----------
    noise : "Gaussian" or "Laplace"
    epsilon : float
        Claimed, and what the noise is scaled by.
    most : int
        Draws a side.
    """
    name = f"{noise}, epsilon {epsilon:g}"
    published = MEANS.get((noise, epsilon), ())
    return Case(name, LeakingMean(noise, epsilon), EMPTY, claim_of(noise, epsilon), most, published)


def control_case(noise: Noise, epsilon: float) -> Case:
    """Row of a mean with a private number of rows.

    Parameters
    ----------
    noise : "Gaussian" or "Laplace"
    epsilon : float
        Claimed and kept.
    """
    name = f"{noise}, epsilon {epsilon:g}, private n"
    claim = claim_of(noise, epsilon)
    return Case(name, PrivateMean(noise, epsilon), EMPTY, claim, CONTROLS, REJECTED[noise, epsilon])


def curve_case(noise: Noise, shift: float) -> Case:
    """Row of unit noise on centres 1 apart, where ``shift`` apart is claimed.

    Parameters
    ----------
    noise : "Gaussian" or "Laplace"
    shift : float
        Claimed.
    """
    claim: Guarantee = GaussianDP(shift) if noise == "Gaussian" else laplace_curve(shift)
    name = f"{noise}, true mu 1, claimed {shift:g}"
    return Case(name, UnitNoise(noise), UNIT, claim, VIOLATIONS, CURVES[noise, shift])


def stop_of(case: Case, seed: int) -> float:
    """Draws a side at which an audit refutes the claim; infinite if it does not.

    Parameters
    ----------
    case : Case
    seed : int
    """
    found = audit(
        case.mechanism,
        case.claim,
        case.pair,
        alpha=ALPHA,
        draws=2 * case.most,
        seed=seed,
        id=f"head_to_head/{case.name}",
    )
    return found.draws / 2 if found.verdict == Verdict.VIOLATION else math.inf


def masses_of(case: Case) -> Masses:
    """Masses of the outputs of a leaking mean on its two datasets, folded to absolute values.

    What is lost by folding is little: the centres are 0 and 0.5, the scales 2 / epsilon and 1 / epsilon.
    """
    assert isinstance(case.mechanism, LeakingMean)
    edges = 2.0 / case.mechanism.epsilon * _EDGES
    return from_cdfs(partial(case.mechanism.cdf, case.pair.x), partial(case.mechanism.cdf, case.pair.y), edges)


def describe_oracle(case: Case) -> str:
    """Draws that an auditor needs on average who knows the whole distribution, and who knows the best event."""
    claim, masses = case.claim, masses_of(case)
    assert isinstance(claim, ApproxDP)
    rates = (whole_distribution_rate(masses, claim.epsilon, claim.delta), single_event_rate(masses, claim))
    return " / ".join(f"{math.log(1 / ALPHA) / rate:,.0f}" if rate > 0 else "-" for rate in rates)


def _number(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "-"


def _count_refuted(stops: Array) -> str:
    return f"{np.isfinite(stops).sum():,} of {len(stops):,}"


def _quantiles(stops: Array) -> tuple[str, str]:
    median, ninety = np.quantile(stops, [0.5, 0.9], method="higher").tolist()
    return _number(median), _number(ninety)


def mean_row(case: Case, stops: Array) -> str:
    """Line of the first table.

    Parameters
    ----------
    case : Case
    stops : ndarray of shape (n_audits,)
        Draws a side to the verdict.
    """
    mean = f"{stops.mean():,.1f} ± {stops.std():,.0f}" if np.isfinite(stops).all() else "-"
    flagged = _count_refuted(stops)
    return f"| {' | '.join([case.name, flagged, mean, *_quantiles(stops), *case.published, describe_oracle(case)])} |"


def curve_row(case: Case, stops: Array) -> str:
    """Line of the table of curves.

    Parameters
    ----------
    case : Case
    stops : ndarray of shape (n_audits,)
        Draws a side to the verdict.
    """
    flagged, mean = _count_refuted(stops), _number(float(stops.mean()))
    return f"| {' | '.join([case.name, flagged, mean, *_quantiles(stops), *case.published])} |"


def control_row(case: Case, stops: Array) -> str:
    """Line of the controls: alarms, with an upper confidence limit.

    Parameters
    ----------
    case : Case
    stops : ndarray of shape (n_audits,)
        Draws a side to the verdict.
    """
    alarms, runs = int(np.isfinite(stops).sum()), len(stops)
    limit = 1.0 if alarms == runs else float(stats.beta.ppf(CONFIDENCE, alarms + 1, runs - alarms))
    return f"| {case.name} | {alarms} of {runs:,} | {limit:.2%} | {' | '.join(case.published)} |"


def large_row(case: Case, stops: Array) -> str:
    """Line of the table of large epsilons.

    Parameters
    ----------
    case : Case
    stops : ndarray of shape (n_audits,)
        Draws a side to the verdict.
    """
    flagged = _count_refuted(stops)
    return f"| {' | '.join([case.name, flagged, *_quantiles(stops), describe_oracle(case)])} |"


def report(audits: int, jobs: int, first_seed: int, only: str) -> Iterator[str]:
    """Make the page, line by line.

    Parameters
    ----------
    audits : int
        Of each row; a tenth at large epsilons.
    jobs : int
        Worker processes.
    first_seed : int
    only : str
        Rows whose name holds this text.
    """
    noises: tuple[Noise, ...] = ("Gaussian", "Laplace")
    few = max(audits // FEWER, 1)
    yield f"alpha {ALPHA}, seeds from {first_seed:,}; draws are a side, so that an audit makes twice as many in all."
    tables = (
        (
            f"Mean with noise of scale 2 / (n epsilon), {audits:,} audits a row, at most {VIOLATIONS:,} draws",
            "| case | refuted | mean ± deviation | median | 90 % | González et al., mean | Kutta et al., mean "
            "| oracle: whole distribution / best event |",
            [leaking_case(noise, epsilon) for epsilon in (0.01, 0.1) for noise in noises],
            mean_row,
            audits,
        ),
        (
            f"The same with a private number of rows, {audits:,} audits a row, {CONTROLS:,} draws",
            f"| case | refuted | at most, at {CONFIDENCE:.0%} | González et al. | Kutta et al. |",
            [control_case(noise, epsilon) for epsilon in (0.01, 0.1) for noise in noises],
            control_row,
            audits,
        ),
        (
            f"Curves, {audits:,} audits a row, at most {VIOLATIONS:,} draws",
            "| case | refuted | mean | median | 90 % | Kutta et al., mean | median | 90 % |",
            [curve_case(noise, shift) for noise in noises for shift in (0.5, 0.8)],
            curve_row,
            audits,
        ),
        (
            f"The first table at larger epsilons, {few:,} audits a row, at most {LARGE:,} draws",
            "| case | refuted | median | 90 % | oracle: whole distribution / best event |",
            [leaking_case(noise, epsilon, LARGE) for noise in noises for epsilon in LARGE_EPSILONS],
            large_row,
            few,
        ),
    )
    with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        parallel = joblib.Parallel()
        for title, head, cases, row, runs in tables:
            chosen = [case for case in cases if only in case.name]
            if chosen:
                yield from ("", f"## {title}", "", head, "|" + "---|" * (head.count("|") - 1))
            for case in chosen:
                found = parallel(joblib.delayed(stop_of)(case, first_seed + k) for k in range(runs))
                yield row(case, np.array(found))


def main() -> None:
    """Command line."""
    parser = parser_of("head_to_head", __doc__, "audits", 1_000, FIRST_SEED)
    options = parser.parse_args()
    if options.audits < 1:
        parser.error(f"--audits must be at least 1, got {options.audits}")
    lines = []
    for line in report(options.audits, options.jobs, options.first_seed, options.only):
        print(line, flush=True)
        lines.append(line)
    lines += ["", "Made by `python -m benchmarks.head_to_head`."]
    options.out.write_text("# Head to head\n\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
