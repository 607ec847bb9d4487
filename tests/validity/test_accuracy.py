"""False alarms of accuracy claims at zero margin, exactly where that can be computed and by simulation elsewhere.

Simulated rates are compared with alpha by a binomial bound at 1e-6, so that each of these tests fails for a valid
procedure with at most that probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.audits.accuracy import HighProbability, PowerLaw, Quantile, Setting
from auditor.audits.accuracy.errors import ErrorSampler
from auditor.audits.accuracy.measures import Effort, Mean
from auditor.audits.accuracy.smallest import Search, bisect_parameter
from auditor.audits.context import Question
from auditor.audits.privacy_loop import Settings
from auditor.evidence.bernoulli import anytime_order_limits, log_evidence, lower_limit, order_limits, upper_limit
from auditor.evidence.mean import GRID, MeanWealth
from auditor.results import Verdict

Rng = np.random.Generator
FALSE_ALARM = 1e-6


def at_most(alarms: int, runs: int, alpha: float) -> bool:
    return alarms <= int(stats.binom.isf(FALSE_ALARM, runs, alpha))


class Errors:
    """A mechanism whose outputs are errors: draws of a distribution."""

    def __init__(self, draw: Callable[[Rng, int], Any]) -> None:
        self.draw = draw

    def __call__(self, data: Any, n: int, rng: Rng) -> Any:
        return self.draw(rng, n)


def errors(draw: Callable[[Rng, int], Any], limit: float = math.nan) -> Setting:
    return Setting(Errors(draw), None, lambda outputs: outputs, limit)


@pytest.mark.parametrize("bound", [0.002, 0.05, 0.5, 0.9])
def test_the_probability_of_ever_calling_a_true_bound_refuted_is_at_most_alpha(bound: float) -> None:
    """Exactly, over all paths of 300 draws that are looked at after every draw, with the rate at the bound."""
    alpha, n = 0.05, 300
    alive, crossed = np.array([1.0]), 0.0  # probability of each count among the paths that have not crossed
    for drawn in range(1, n + 1):
        alive = np.concatenate([alive * (1 - bound), [0.0]]) + np.concatenate([[0.0], alive * bound])
        over = np.array([log_evidence(k, drawn, bound) >= -math.log(alpha) for k in range(drawn + 1)])
        crossed += float(alive[over].sum())
        alive[over] = 0.0
    assert 0 < crossed <= alpha


@pytest.mark.parametrize("rate", [0.03, 0.5, 0.97])
def test_limits_hold_at_all_times_together(rate: float) -> None:
    """Exactly: the probability that any of 80 looks gives an interval without the rate is at most 2 alpha."""
    alpha, n = 0.05, 80
    alive, missed = np.array([1.0]), 0.0
    for drawn in range(1, n + 1):
        alive = np.concatenate([alive * (1 - rate), [0.0]]) + np.concatenate([[0.0], alive * rate])
        limits = [(lower_limit(k, drawn, alpha), upper_limit(k, drawn, alpha)) for k in range(drawn + 1)]
        out = np.array([not low <= rate <= high for low, high in limits])
        missed += float(alive[out].sum())
        alive[out] = 0.0
    assert missed <= 2 * alpha


LAWS: dict[str, Callable[[Rng, int], Any]] = {
    "exponential": lambda rng, n: rng.exponential(1.0, n),
    "Bernoulli": lambda rng, n: 20.0 * (rng.random(n) < 0.05),
    # A Pareto distribution of shape 1.5 has expectation 1 at scale 1/3, and no variance.
    "Pareto": lambda rng, n: (1 + rng.pareto(1.5, n)) / 3,
    "constant": lambda rng, n: np.ones(n),
}


@pytest.mark.parametrize("law", LAWS)
def test_an_expectation_at_the_claim_is_refuted_with_probability_at_most_alpha(law: str) -> None:
    runs, alpha, rng = 300, 0.1, np.random.default_rng(20261120)
    alarms = above = 0
    for _ in range(runs):
        wealth = MeanWealth(np.concatenate([[1.0], GRID]))
        for size in (50, 100, 250, 600):
            wealth.bet(LAWS[law](rng, size))
        alarms += wealth.best[0] >= -math.log(alpha)
        above += wealth.lower_bound(alpha) > 1.0
    assert at_most(alarms, runs, alpha)
    assert at_most(above, runs, alpha)


@pytest.mark.parametrize("q", [0.05, 0.5, 0.99])
@pytest.mark.parametrize("n", [20, 400, 5000])
def test_order_statistics_enclose_the_quantile(q: float, n: int) -> None:
    """Exactly, for continuous distributions; a limit that does not exist encloses everything."""
    alpha = 0.02
    low, high = order_limits(n, q, alpha)
    too_high = 0.0 if low < 0 else float(stats.binom.cdf(low, n, q))
    too_low = 0.0 if high >= n else float(stats.binom.sf(high, n, q))
    assert max(too_high, too_low) <= alpha / 2
    if low >= 0 and high < n:  # and no narrower ranks would do
        assert stats.binom.cdf(low + 1, n, q) > alpha / 2
        assert stats.binom.sf(high - 1, n, q) > alpha / 2


def first_miss(limits: Callable[[int, float, float], tuple[int, int]], q: float, alpha: float, n: int) -> float:
    """Probability that some of n looks, one after each draw, gives ranks that do not enclose the q-quantile.

    Exactly, for continuous distributions: what counts is how many draws are below it, and each is so with probability
    q.
    """
    alive, missed = np.array([1.0]), 0.0
    for drawn in range(1, n + 1):
        alive = np.concatenate([alive * (1 - q), [0.0]]) + np.concatenate([[0.0], alive * q])
        low, high = limits(drawn, q, alpha)
        below = np.arange(drawn + 1)
        # The draw of rank r exceeds the quantile if at most r draws are below it.
        out = ((low >= 0) & (below <= low)) | ((high < drawn) & (below > high))
        missed += float(alive[out].sum())
        alive[out] = 0.0
    return missed


@pytest.mark.parametrize("q", [0.05, 0.5, 0.9])
def test_order_statistics_enclose_the_quantile_at_all_times_together(q: float) -> None:
    """Those of a number of draws that is fixed beforehand do not: whoever stops at a miss sees it too often."""
    alpha = 0.1
    assert 0 < first_miss(anytime_order_limits, q, alpha, 400) <= alpha
    assert first_miss(order_limits, q, alpha, 400) > 2 * alpha


@pytest.mark.parametrize("beta", [0.04, 0.05, 0.08])
def test_the_quantile_of_an_audit_that_stops_at_its_verdict_is_within_its_limits(beta: float) -> None:
    """Errors are Exp(1), and 0.05 of them exceed ln 20: the claim is false, true with nothing to spare, and true."""
    runs, alpha, missed, stopped = 300, 0.1, 0, 0
    theorem, truth = HighProbability(math.log(20), beta), -math.log(beta)
    setting = errors(lambda rng, n: rng.exponential(1.0, n))
    for run in range(runs):
        settings = Settings(alpha=alpha, draws=3_000, stop="verdict")
        found = theorem.collect(ErrorSampler(run, "stop"), setting, settings)
        missed += not found["accuracy"]["quantile_lower"] <= truth <= found["accuracy"]["quantile_upper"]
        stopped += found["draws"] < 3_000
    assert at_most(missed, runs, alpha)
    assert stopped, "no run ended by what was drawn"


def test_the_interval_of_a_bisection_holds_the_crossing() -> None:
    """The error is Exp(1) / value, the limit 1: the failure rate exp(-value) crosses 0.1 at ln 10."""
    runs, alpha, missed = 120, 0.2, 0

    def build(value: float) -> Setting:
        return errors(lambda rng, n: rng.exponential(1.0 / value, n), 1.0)

    for run in range(runs):
        search = Search(0.1, 0.2, 20.0, 1.05, integer=False)
        found = bisect_parameter(build, search, ErrorSampler(run, "bisect"), 1500, alpha)
        missed += not found.low <= math.log(10) <= found.high
    assert at_most(missed, runs, alpha)


def test_means_are_within_their_limits() -> None:
    runs, alpha, missed, rng = 400, 0.2, 0, np.random.default_rng(7)
    for run in range(runs):
        draw = ErrorSampler(run, "mean")
        point = Mean(1.0)(errors(lambda rng, n: rng.random(n) ** 8), Effort(draw, 200, alpha, rng, 0))
        missed += not point.low <= 1 / 9 <= point.high
    assert at_most(missed, runs, alpha)


@pytest.mark.parametrize("exponent", [-1.0, 0.5])
def test_growth_at_the_edge_of_what_is_allowed_is_refuted_with_probability_at_most_alpha(exponent: float) -> None:
    """The medians grow exactly by the claimed power and all that ``within`` adds to it."""
    runs, alpha, within = 120, 0.2, 0.05

    def build(x: float) -> Setting:
        return errors(lambda rng, n: rng.exponential(x ** (exponent + within), n))

    claim = PowerLaw("x", (1.0, 2.0, 4.0, 8.0), exponent, Quantile(0.5), within=within)
    settings = [Settings(alpha=alpha, draws=1200, seed=run) for run in range(runs)]
    verdicts = [claim.audit(build, one, Question(id="a/b/L4/exponent/c")).verdict for one in settings]
    assert at_most(verdicts.count(Verdict.DEVIATION), runs, alpha)
