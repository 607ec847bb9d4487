"""Reproduce published bounds on one training run, and measure ours: false alarms, and bounds beside the others.

Run ``python -m benchmarks.one_run`` from the repository's root. The page is the same for the same options.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import special, stats

from auditor import audit_scores
from auditor.audits.training.scores import ASSUMPTIONS, INDEPENDENT, NOTHING
from auditor.evidence.one_run import bound_correct_guesses, exceeds_curve, find_rejected_level
from auditor.privacy.guarantees import ApproxDP, GaussianDP, Guarantee, PureDP
from benchmarks.false_alarms import upper_bound

Array = NDArray[np.float64]

ALPHA, DELTA = 0.05, 1e-5
#: Points of the grid on which a pair of distributions is written, and standard deviations that it spans.
_POINTS, _SPAN = 400_001, 12.0
#: Points at which the quantile of the first score that is not guessed about is integrated over.
_NODES = 20_001
#: Audits of one piece of work.
_BATCH = 20
#: First seed of the audits of false alarms; those below were seen when the numbers of audits were chosen.
_FIRST = 10_000

#: Steinke, Nasr and Jagielski (2023): where, right guesses, guesses, canaries, delta, printed epsilon at 5 %.
STEINKE = (
    ("appendix D, page 45", 75, 100, 100, 0.0, 0.702),
    ("appendix D, page 46", 75, 100, 100, 1e-4, 0.699),
    ("appendix D, page 46", 75, 100, 1_000, 1e-4, 0.673),
    ("section 7, page 28", 1_439, 1_510, 100_000, 1e-5, 2.675),
)

#: Xiang et al. (2025), `compare/RESULTS.txt`: mean shift, sampling rate, canaries, guesses, wrong ones, and the epsilon
#: at delta = 1e-5 of Steinke's bound and of theirs.
XIANG = (
    (0.5, 1.0, 1_000, 100, 26, 0.6519, 1.1926),
    (0.5, 1.0, 1_000, 250, 75, 0.6124, 1.4203),
    (0.5, 1.0, 1_000, 500, 172, 0.4866, 1.4689),
    (0.5, 1.0, 1_000, 1_000, 401, 0.2931, 1.4140),
    (0.5, 1.0, 100_000, 10_000, 2_585, 1.0128, 1.9166),
    (0.5, 1.0, 100_000, 25_000, 7_545, 0.8149, 1.9348),
    (0.5, 1.0, 100_000, 50_000, 17_213, 0.6283, 1.9406),
    (0.5, 1.0, 100_000, 100_000, 40_129, 0.3892, 1.9345),
    (1.0, 1.0, 1_000, 100, 10, 1.6265, 3.1645),
    (1.0, 1.0, 1_000, 250, 36, 1.4767, 3.6327),
    (1.0, 1.0, 1_000, 500, 103, 1.1630, 3.7557),
    (1.0, 1.0, 1_000, 1_000, 309, 0.6902, 3.6700),
    (1.0, 1.0, 100_000, 10_000, 967, 2.1713, 4.2662),
    (1.0, 1.0, 100_000, 25_000, 3_641, 1.7377, 4.3013),
    (1.0, 1.0, 100_000, 50_000, 10_343, 1.3250, 4.3144),
    (1.0, 1.0, 100_000, 100_000, 30_854, 0.7954, 4.3079),
    (2.0, 1.0, 1_000, 100, 1, 3.0052, 5.9018),
    (2.0, 1.0, 1_000, 250, 4, 3.2737, 7.9541),
    (2.0, 1.0, 1_000, 500, 20, 2.7928, 8.9216),
    (2.0, 1.0, 1_000, 1_000, 159, 1.5210, 9.0038),
    (2.0, 1.0, 100_000, 10_000, 51, 4.8674, 9.5899),
    (2.0, 1.0, 100_000, 25_000, 362, 4.1144, 9.8094),
    (2.0, 1.0, 100_000, 50_000, 2_016, 3.1291, 9.8905),
    (2.0, 1.0, 100_000, 100_000, 15_866, 1.6535, 9.9002),
    (1.0, 0.5, 1_000, 100, 24, 0.7484, 2.1584),
    (1.0, 0.5, 1_000, 250, 78, 0.5583, 2.1201),
    (1.0, 0.5, 1_000, 500, 176, 0.4522, 2.2774),
    (1.0, 0.5, 1_000, 1_000, 404, 0.2808, 2.2223),
    (1.0, 0.5, 100_000, 10_000, 2_423, 1.0982, 3.3995),
    (1.0, 0.5, 100_000, 25_000, 7_763, 0.7740, 3.3907),
    (1.0, 0.5, 100_000, 50_000, 17_606, 0.5938, 3.4007),
    (1.0, 0.5, 100_000, 100_000, 40_427, 0.3768, 3.3944),
    (2.0, 0.2, 1_000, 100, 22, 0.8493, 4.6207),
    (2.0, 0.2, 1_000, 250, 87, 0.4015, 3.5077),
    (2.0, 0.2, 1_000, 500, 199, 0.2594, 2.8572),
    (2.0, 0.2, 1_000, 1_000, 432, 0.1666, 2.8743),
    (2.0, 0.2, 100_000, 10_000, 2_156, 1.2476, 7.3328),
    (2.0, 0.2, 100_000, 25_000, 8_697, 0.6054, 7.1450),
    (2.0, 0.2, 100_000, 50_000, 19_868, 0.4009, 7.0063),
    (2.0, 0.2, 100_000, 100_000, 43_173, 0.2640, 7.0250),
)


class ScorePair(NamedTuple):
    """A score of a canary that is in or out: masses on a grid, for the best guess of its coin.

    Parameters
    ----------
    inside, outside : ndarray
        Probabilities of the grid's cells, by falling certainty of the best guess.
    """

    inside: Array
    outside: Array

    def error_above(self, quantile: Array) -> Array:
        """Probability that the best guess is wrong, given that its certainty is above a quantile.

        Parameters
        ----------
        quantile : ndarray
            In [0, 1); linear within a cell.
        """
        mass, wrong = 0.5 * (self.inside + self.outside), 0.5 * np.minimum(self.inside, self.outside)
        ends = np.concatenate([[0.0], np.cumsum(mass)])
        errors = np.concatenate([[0.0], np.cumsum(wrong)])
        above = np.maximum(1.0 - quantile, 1e-300)
        found: Array = np.interp(above, ends, errors) / above
        return found


def subsampled_gaussian(mu: float, rate: float) -> ScorePair:
    """A Gaussian score whose mean moves by ``mu`` with probability ``rate``."""
    x = np.linspace(-_SPAN, _SPAN + mu, _POINTS)
    log_out, log_in = -0.5 * x * x, -0.5 * (x - mu) ** 2
    moved = np.logaddexp(math.log(rate) + log_in, math.log1p(-rate) + log_out) if rate < 1 else log_in
    order = np.argsort(-np.abs(moved - log_out), kind="stable")
    inside, outside = (np.exp(v - special.logsumexp(v))[order] for v in (moved, log_out))
    return ScorePair(inside, outside)


def independent_tail(pair: ScorePair, wrong: int, guesses: int, canaries: int) -> float:
    """Probability of at most so many wrong guesses, where canaries do not interact.

    Xiang et al. (2025), Theorem 2. The most certain guesses are made. Given the certainty of the first that is not, the
    errors are independent, and that certainty's quantile has a beta distribution.

    Parameters
    ----------
    pair : ScorePair
        The distribution of a score.
    wrong, guesses, canaries : int
        Wrong guesses, guesses, and canaries.
    """
    if guesses == canaries:
        return float(stats.binom.cdf(wrong, guesses, pair.error_above(np.zeros(1))[0]))
    a, b = canaries - guesses, guesses + 1
    beta = stats.beta(a, b)
    edges = beta.ppf(np.linspace(0.0, 1.0, _NODES))
    middle = 0.5 * (edges[1:] + edges[:-1])
    return float(np.mean(stats.binom.cdf(wrong, guesses, pair.error_above(middle))))


def epsilon_of(pair: ScorePair, delta: float = DELTA) -> float:
    """Epsilon at which the pair has the privacy profile ``delta``, inside against outside."""

    def beyond(epsilon: float) -> bool:
        return float(np.maximum(pair.inside - math.exp(epsilon) * pair.outside, 0.0).sum()) > delta

    return find_rejected_level(beyond, 0.0)


def independent_epsilon(rate: float, wrong: int, guesses: int, canaries: int) -> float:
    """Epsilon of the largest shift that so few wrong guesses refute."""

    def rejects(mu: float) -> bool:
        return independent_tail(subsampled_gaussian(mu, rate), wrong, guesses, canaries) <= ALPHA

    low, high = 0.0, 8.0
    for _ in range(22):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rejects(middle) else (low, middle)
    return epsilon_of(subsampled_gaussian(low, rate)) if low else 0.0


def guess_epsilon(right: int, guesses: int, canaries: int, delta: float) -> float:
    """Epsilon that Steinke's bound refutes."""
    return find_rejected_level(lambda e: bound_correct_guesses(right, guesses, canaries, e, delta) <= ALPHA, 1.0)


def reproduced_rows(jobs: int) -> Iterator[str]:
    """Tables of published figures beside ours."""
    yield "| Steinke et al. | right | guesses | canaries | delta | printed | here |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for where, right, guesses, canaries, delta, printed in STEINKE:
        found = guess_epsilon(right, guesses, canaries, delta)
        yield f"| {where} | {right:,} | {guesses:,} | {canaries:,} | {delta:g} | {printed} | {found:.4f} |"
    found = bound_correct_guesses(75, 100, 100, math.log(3))
    yield f"| appendix D, page 45, probability at ε = ln 3 | 75 | 100 | 100 | 0 | 0.553 | {found:.4f} |"
    yield ""
    yield (
        "| score | canaries | guesses | wrong | Steinke, theirs | here | with their interval "
        "| independent canaries, theirs | here |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    yield from Parallel(n_jobs=jobs)(delayed(_xiang_row)(*row) for row in XIANG)


def _xiang_row(mu: float, rate: float, canaries: int, guesses: int, wrong: int, steinke: float, theirs: float) -> str:
    right = guesses - wrong
    name = f"Gaussian, μ = {mu:g}" + (f", sampled at {rate:g}" if rate < 1 else "")
    plain, shifted = guess_epsilon(right, guesses, canaries, DELTA), _shifted_epsilon(right, guesses, canaries)
    return (
        f"| {name} | {canaries:,} | {guesses:,} | {wrong:,} | {steinke:.4f} | {plain:.4f} | {shifted:.4f} "
        f"| {theirs:.4f} | {independent_epsilon(rate, wrong, guesses, canaries):.4f} |"
    )


def _shifted_epsilon(right: int, guesses: int, canaries: int) -> float:
    """Steinke's bound with P[v - i < X <= v] in the place of P[v - i <= X < v], as their code has it."""
    i = np.arange(1, right + 1)

    def rejects(epsilon: float) -> bool:
        p = 1.0 / (1.0 + math.exp(-epsilon))
        gained = (stats.binom.cdf(right, guesses, p) - stats.binom.cdf(right - i, guesses, p)) / i
        tail = stats.binom.sf(right - 1, guesses, p)
        return float(tail + 2 * canaries * DELTA * gained.max()) <= ALPHA

    return find_rejected_level(rejects, 1.0)


# ------------------------------------------------------------------------------------------ false alarms


Coins = NDArray[np.bool_]


@dataclass(frozen=True)
class CanaryNull:
    """A release of canary scores that keeps a claim with no margin, or next to none.

    Parameters
    ----------
    name : str
        For tables.
    scores : callable
        From a generator and coins to scores.
    claim : Guarantee
        What it keeps exactly.
    interacting : bool
        Canaries interact, so that no bound that assumes otherwise has to hold.
    times : int
        So many times the usual number of audits that assume that canaries do not interact, where that does not show a
        rate of at most alpha: bets for the deadline use nearly all of it.
    """

    name: str
    scores: Callable[[np.random.Generator, Coins], Array]
    claim: Guarantee
    interacting: bool = False
    times: int = 1


def _gaussian(rng: np.random.Generator, coins: Coins) -> Array:
    return np.round(rng.normal(size=len(coins)) + coins, 2)


def _laplace(rng: np.random.Generator, coins: Coins) -> Array:
    return np.floor(rng.laplace(size=len(coins)) + coins)  # cells of width 1: exactly epsilon = 1, with many ties


def _responses(rng: np.random.Generator, coins: Coins) -> Array:
    return np.where(rng.random(len(coins)) < math.e / (1 + math.e), coins, ~coins).astype(float)


def _unequal(rng: np.random.Generator, coins: Coins) -> Array:
    """Gaussian scores of exactly 1-GDP, around centres that differ between canaries by much more."""
    return np.round(rng.normal(size=len(coins)) + coins + 5 * rng.integers(0, 20, len(coins)), 2)


def _interacting(rng: np.random.Generator, coins: Coins) -> Array:
    """All coins through randomised response of level 1.05, or none: each canary is exactly within 1-GDP."""
    if rng.random() >= 0.7485:
        return np.zeros(len(coins))
    return np.where(rng.random(len(coins)) < math.exp(1.05) / (1 + math.exp(1.05)), coins, ~coins).astype(float)


NULLS = (
    CanaryNull("Gaussian scores", _gaussian, GaussianDP(1.0), times=3),
    CanaryNull("Gaussian scores around different centres", _unequal, GaussianDP(1.0)),
    CanaryNull("Laplace scores with ties", _laplace, PureDP(1.0), times=8),
    CanaryNull("randomised response", _responses, PureDP(1.0), times=8),
    CanaryNull("randomised response, as (ε, δ)", _responses, ApproxDP(1.0, DELTA), times=8),
    CanaryNull("interacting canaries", _interacting, GaussianDP(1.0), interacting=True),
    CanaryNull("interacting canaries, as ε", _interacting, PureDP(1.05), interacting=True),
)


def audit_null(null: int, assume: str, seed: int, canaries: int) -> tuple[bool, float]:
    """Whether an audit refutes what holds, and its bound.

    Parameters
    ----------
    null : int
        Index in `NULLS`.
    assume : str
        What is assumed.
    seed : int
        Seed of the scores and of the audit.
    canaries : int
        Number of canaries.
    """
    rng = np.random.default_rng(seed)
    coins = rng.random(canaries) < 0.5
    scores = NULLS[null].scores(rng, coins)
    result = audit_scores(scores[coins], scores[~coins], NULLS[null].claim, assume=assume, alpha=ALPHA, seed=seed)
    return result.verdict == "violation", result.lower_bound or 0.0


def _batch(null: int, assume: str, seeds: range, canaries: int) -> list[tuple[bool, float]]:
    return [audit_null(null, assume, seed, canaries) for seed in seeds]


def alarm_rows(audits: int, canaries: int, jobs: int, only: str = "") -> Iterator[str]:
    """Table of false alarms."""
    yield "| scores | claim | assumes | audits | refuted | 99 % upper bound | at most 5 % | median bound |"
    yield "|---|---|---|---:|---:|---:|---|---:|"
    for k, null in enumerate(NULLS):
        for assume in ASSUMPTIONS if null.name.startswith(only) else ():
            made = audits * (null.times if assume == INDEPENDENT else 1)
            work = [range(_FIRST + s, _FIRST + min(s + _BATCH, made)) for s in range(0, made, _BATCH)]
            parts = Parallel(n_jobs=jobs)(delayed(_batch)(k, assume, seeds, canaries) for seeds in work)
            done = [one for part in parts for one in part]
            alarms = sum(alarm for alarm, _ in done)
            most = upper_bound(alarms, made)
            holds = "yes" if most <= ALPHA else "not shown"
            if null.interacting and assume == INDEPENDENT:
                holds = "the assumption fails"
            yield (
                f"| {null.name} | {null.claim} | {assume} | {made} | {alarms} | {most:.4f} | {holds} "
                f"| {statistics.median(bound for _, bound in done):.3f} |"
            )


# ----------------------------------------------------------------------------------------------- bounds


def bound_rows(audits: int) -> Iterator[str]:
    """Table of bounds on Gaussian scores, mu = 1, 1,000 canaries, in epsilon at delta = 1e-5 where they are of mu."""
    yield "| bound | median | as ε at δ = 1e-5 |"
    yield "|---|---:|---:|"
    claim, canaries = GaussianDP(1.0), 1_000
    samples = []
    for seed in range(audits):
        rng = np.random.default_rng(5_000 + seed)
        coins = rng.random(canaries) < 0.5
        samples.append((_gaussian(rng, coins), coins))

    def median(bound: Callable[[int, Array, Coins], float]) -> float:
        return statistics.median(bound(seed, *sample) for seed, sample in enumerate(samples))

    def right(scores: Array, coins: Coins) -> int:
        order = np.argsort(scores, kind="stable")
        return int(coins[order[canaries // 2 :]].sum() + (~coins[order[: canaries // 2]]).sum())

    def ours(assume: str) -> Callable[[int, Array, Coins], float]:
        return lambda seed, scores, coins: (
            audit_scores(scores[coins], scores[~coins], claim, assume=assume, alpha=ALPHA, seed=seed).lower_bound or 0.0
        )

    steinke = median(lambda _, s, c: guess_epsilon(right(s, c), canaries, canaries, DELTA))
    yield f"| Steinke et al., all guessed about | | {steinke:.3f} |"

    def recursion(_: int, scores: Array, coins: Coins) -> float:
        n = right(scores, coins)
        return find_rejected_level(lambda mu: exceeds_curve(n, canaries, canaries, claim, mu, ALPHA), 1.0)

    rows: list[tuple[str, float]] = [
        ("Mahloujifar et al., all guessed about", median(recursion)),
        (f"dpaudit, assumes {NOTHING}, learned", median(ours(NOTHING))),
        (f"dpaudit, assumes {INDEPENDENT}, anytime, learned", median(ours(INDEPENDENT))),
    ]
    for name, mu in rows:
        yield f"| {name} | μ = {mu:.3f} | {epsilon_of(subsampled_gaussian(mu, 1.0)):.3f} |"
    wrong = round(statistics.median(canaries - right(*sample) for sample in samples))
    fixed = independent_epsilon(1.0, wrong, canaries, canaries)
    yield f"| Xiang et al., independent canaries, fixed size, all guessed about, family known | | {fixed:.3f} |"
    yield f"| truth | μ = 1 | {epsilon_of(subsampled_gaussian(1.0, 1.0)):.3f} |"


TEXT = """# One training run

Published bounds reproduced, and ours measured. Canaries are included by fair coins; see
[training](../docs/training.md).

## Published figures

All at 5 %, epsilon at delta = 1e-5 in the second table. "Steinke" is the bound of their Theorem 5.2. The code that
Xiang et al. compare with has P[v - i < X <= v] where the theorem has P[v - i <= X < v], which makes it larger by 0.01
at most; "with their interval" is the bound with that change. The last two columns are the bound of Xiang et al., which
assumes that canaries do not interact and that scores are of the named family.
"""

ALARMS = """
## False alarms

The claim holds with no margin. "interacting canaries" are the mechanism of docs/training.md: each canary is within the
claim, and an audit that assumes that canaries do not interact refutes it.
"""

BOUNDS = """
## Bounds

Gaussian scores, mu = 1, 1,000 canaries, alpha = 5 %.
"""


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=400, help="audits of each row of false alarms")
    parser.add_argument("--canaries", type=int, default=1_000, help="canaries of these")
    parser.add_argument("--only", default="", help="only the nulls whose names begin so, and nothing else")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    asked = parser.parse_args()
    if asked.only:
        print("\n".join(alarm_rows(asked.audits, asked.canaries, asked.jobs, asked.only)))
        return
    lines: list[Any] = [*TEXT.splitlines(), "", *reproduced_rows(asked.jobs)]
    lines += [*ALARMS.splitlines(), "", *alarm_rows(asked.audits, asked.canaries, asked.jobs)]
    lines += [*BOUNDS.splitlines(), "", *bound_rows(100)]
    page = "\n".join([*lines, "", "Made by `python -m benchmarks.one_run`."]) + "\n"
    print(page)
    if asked.out is not None:
        asked.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
