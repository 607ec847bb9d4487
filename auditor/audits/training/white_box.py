"""White-box audit of one training run: every step is held against what is claimed of it.

Given the past, what a step of DP-SGD releases along the direction of an example's clipped gradient is a draw of a
Gaussian, whose mean moves by the norm of that gradient if the example is in the batch. So one run of T steps holds T
draws for a claim about steps; composed, they are a claim about the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.audits.self_reported.accountant import SelfReport, accountant_levels
from auditor.audits.training.draw_bets import DrawBets, bet_on_draws
from auditor.audits.training.step_tests import CANARY_RATE, CERTAIN, StepTest, check_steps
from auditor.audits.training.steps import UNKNOWN, StepRecorder, StepTable
from auditor.audits.verdict import decide_verdict, describe_missed
from auditor.errors import SpecificationError, require_library
from auditor.evidence.binomial import clopper_pearson
from auditor.privacy.guarantees import ApproxDP, GaussianDP, Guarantee
from auditor.results import AuditResult, Verdict, usual_level, wealth_fields
from auditor.targets.sampler import make_generator

Array = NDArray[np.float64]

#: Parts of alpha: the level from the noise, the bets on coins, the tests. Without coins their part goes to the level.
_LEVEL, _BETS, _TESTS = 0.5, 0.25, 0.25
#: Scales of the alternatives over that of the null, one expert each: from a scale that is lower by a thousandth, which
#: 10^7 coordinates show, to one of a twentieth. Equal masses; arbitrary, any are valid.
RATIOS: Array = np.array([0.999, 0.998, 0.995, 0.99, 0.98, 0.96, 0.92, 0.85, 0.7, 0.5, 0.25, 0.05])
#: Halvings of an interval of logarithms of scales.
_HALVINGS = 50
#: Norms of the canary that are told apart: each is rounded down to a multiple of this part of the clip norm, coarser
#: until there are no more kinds of steps than an accountant takes.
_NORMS, _KINDS = 0.01, 20
#: Relative rounding error of a norm: one that is the clip norm but for that is not rounded down to the next multiple.
_ROUNDING = 1e-9
#: An accountant's level may exceed the claimed one by this part before it fails.
_SLACK = 1e-6
#: Normal quantile for a power of 0.9.
_POWER = 1.2816
#: No scale below this part of the claimed one is told from it: the level would be larger than anybody asks for.
_LOWEST = 1e-2


@dataclass(frozen=True)
class Steps:
    """Steps of one kind: as many with the same noise and sampling.

    Parameters
    ----------
    count : int
        How many.
    multiplier : float
        Standard deviation of the noise over the norm of what the canary adds.
    rate : float
        Sampling rate.
    """

    count: int
    multiplier: float
    rate: float


def audit_steps(
    record: StepRecorder | StepTable,
    claim: Guarantee,
    *,
    alpha: float = 0.01,
    steps: int | None = None,
    detect: float | None = None,
    seed: int = 0,
    id: str = "steps/L1/claim/given",  # noqa: A002 - it is the result's id
) -> AuditResult:
    """Audit one training run from the record of its steps.

    Parameters
    ----------
    record : StepRecorder or StepTable
        Every step that the claim is about; their number must not depend on what was released.
    claim : Guarantee
        Of the whole run, for adding or removing an example: `ApproxDP`, or `GaussianDP` without sampling.
    alpha : float
        Probability of a false alarm, in (0, 1): half of it for the level, a quarter for bets on the coins of the
        canary, a quarter for the tests of noise and sampling together.
    steps : int, optional
        Steps that the accountant counted; more in the record are a deviation.
    detect : float, optional
        Level that is to be found, default twice the claim.
    seed : int
        Seed of the coins that leave out steps where the canary's own coin is not fair.
    id : str
        The result's id.

    Returns
    -------
    AuditResult
        ``lower_bound`` is the level of the recorded steps at confidence 1 - alpha, composed; ``checks`` are the tests,
        with p-values in ``record``; ``caveat`` says what is assumed. "violation" where the level is beyond the claim,
        "deviation" where a test fails.

    Raises
    ------
    SpecificationError
        If an argument is not what it must be, or nothing was recorded.
    MissingLibraryError
        If sampled steps are to be composed and dp-accounting is not installed.

    Notes
    -----
    Valid because: a verdict rests on three statements, each of which errs with probability at most its share of alpha:
    the level (see `bound_scale` and `bound_rate`), bets on coins (see `bet_on_coins`), and the tests (see
    `auditor.audits.training.step_tests`), which share theirs equally. Where a test finds that steps are no independent
    sampled Gaussians, the first of these falls away, and no level is computed from it.
    """
    table = record.table() if isinstance(record, StepRecorder) else record
    _check_arguments(table, claim, alpha, steps)
    tossed = (table.included != UNKNOWN) & np.isfinite(table.score)
    tossing = bool(tossed.any()) and table.coin < 1
    tests = [*check_steps(table), *_check_accountant(table, claim, steps)]
    by_chance = sum(test.kind != CERTAIN for test in tests)
    share = _TESTS * alpha / max(by_chance, 1)
    failed = [test for test in tests if test.p_value <= (0.0 if test.kind == CERTAIN else share)]
    model = [test.finding for test in failed if test.of_model]
    found = _find_level(table, claim, alpha * (_LEVEL if tossing else _LEVEL + _BETS), bool(model))
    fair = all(test.name != CANARY_RATE for test in failed)
    bets = bet_on_coins(table, alpha * _BETS, seed) if tossing and fair else None
    told = 0.0 if bets is None else compose_level(_steps_of(table, 1.0, 1.0, bets.bound), claim)
    bound = max(found.level, told)
    wanted = usual_level(claim.level) if detect is None else detect
    why = found.finding
    if bets is not None and told > found.level:
        why = f"steps with the canary differ from those without by more than {bets.bound:.3g}-GDP"
    verdict, message = decide_verdict(
        Verdict.VIOLATION,
        bound > claim.level * (1 + _SLACK),
        why,
        lambda: describe_missed("a level below {}", found.resolves, wanted),
    )
    if failed and verdict != Verdict.VIOLATION:
        verdict, message = Verdict.DEVIATION, "; ".join(test.finding for test in failed)
    elif failed:
        message = "; ".join([message, *(test.finding for test in failed)])
    return AuditResult(
        id=id,
        entry=id.partition("/")[0],
        source={"document": "", "place": ""},
        level="L1",
        notion=claim.notion,
        symbol=claim.symbol,
        claimed=str(claim),
        claimed_level=claim.level,
        parameters=claim.parameters(),
        alpha=alpha,
        verdict=verdict,
        expected=Verdict.CONSISTENT,
        mechanism="training steps",
        title="Steps of one training run",
        draws=table.steps,
        lower_bound=bound,
        ceiling=math.inf,
        resolves=found.resolves,
        detect=wanted,
        pair=f"{table.steps:,} steps of one run, with and without one example",
        event=found.finding,
        message=message,
        stop="budget",
        caveat=_describe_assumptions(table, told > found.level or bool((table.rate < 1).any()), bool(model)),
        checks=[
            {"name": test.name, "passed": test not in failed, "finding": test.finding if test in failed else ""}
            for test in tests
        ],
        record={
            "assumes": "claim-about-steps",
            "steps": table.steps,
            "scale": found.scale,
            "rate": found.rate,
            "step_level": None if bets is None else bets.bound,
            "tests": [
                {"name": t.name, "p_value": t.p_value, "at": 0.0 if t.kind == CERTAIN else share, "kind": t.kind}
                for t in tests
            ],
        },
        **({} if bets is None else wealth_fields(bets.draws.path, float(bets.draws.wealth.best[0]))),
    )


def _check_arguments(table: StepTable, claim: Guarantee, alpha: float, steps: int | None) -> None:
    if not table.steps:
        raise SpecificationError("no step was recorded: call StepRecorder.add at every step")
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise SpecificationError(f"alpha must be a number in (0, 1), got {alpha!r}")
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
        raise SpecificationError(f"steps must be a positive integer, got {steps!r}")
    sampled = bool((table.rate < 1).any())
    composed = isinstance(claim, ApproxDP) and claim.delta > 0
    if not composed and not (isinstance(claim, GaussianDP) and not sampled):
        raise SpecificationError(
            "claim must be about the whole run: ApproxDP(epsilon, delta) with a delta above 0, or GaussianDP(mu) where "
            f"every step uses all examples; got {claim!r}"
        )
    if sampled:
        require_library("dp_accounting", "levels of sampled steps")


# ----------------------------------------------------------------------------------------------- level


@dataclass(frozen=True)
class RunLevel:
    """Level of the run that its noise and batches certify.

    Parameters
    ----------
    level : float
        In the claim's unit; 0 if nothing is certified.
    scale : float
        Upper bound of the noise's standard deviation over the claimed one; infinite if there is none.
    rate : float
        Lower bound of the sampling rate over the claimed one.
    resolves : float
        Level that would have been found with probability 0.9, about.
    finding : str
        In words.
    """

    level: float
    scale: float
    rate: float
    resolves: float
    finding: str


def _find_level(table: StepTable, claim: Guarantee, alpha: float, broken: bool) -> RunLevel:
    measured = bool((table.rate < 1).any()) and bool((table.batch != UNKNOWN).all()) and math.isfinite(table.examples)
    share = alpha / 2 if measured else alpha
    rate = bound_rate(table, share) if measured else 1.0
    squares, n = sum_of_squares(table)
    scale = bound_scale(squares, n, share)
    stated = compose_level(_steps_of(table, 1.0, 1.0), claim)
    # By normal approximations: relative deviations of scale and rate that are told from none.
    missed = math.sqrt((math.log(len(RATIOS)) - math.log(share)) / n) + _POWER / math.sqrt(2 * n) if n else 1.0
    raised = (_POWER - float(special.ndtri(share))) / math.sqrt(max(table.batch.sum(), 1)) if measured else 0.0
    resolves = math.inf
    if missed < 1 and stated > 0:
        most = min(1.0 + raised, 1.0 / float(table.rate.max()))
        resolves = claim.level * compose_level(_steps_of(table, 1.0 - missed, most), claim) / stated
    if broken or not math.isfinite(scale):
        return RunLevel(0.0, scale, rate, resolves, "")
    level = compose_level(_steps_of(table, scale, rate), claim)
    norm = float(np.max(table.canary_norm / table.clip))
    finding = f"noise has at most {scale:.4g} times the claimed scale, the canary adds up to {norm:.4g} clip norms"
    return RunLevel(level, scale, rate, resolves, finding)


def sum_of_squares(table: StepTable) -> tuple[list[tuple[float, int]], int]:
    """Sums of squares with their numbers of coordinates, all together first.

    Of the noise of all coordinates, and of each layer; where the sum before noise is not known, of what was released
    along the canary's direction.

    Parameters
    ----------
    table : StepTable
        The record.

    Returns
    -------
    list of (float, int), int
        And the number of coordinates of the first.
    """
    if table.has_noise:
        layers = [
            (float(s), int(n) * table.steps) for s, n in zip(table.squares.sum(axis=0), table.layers, strict=True)
        ]
        whole = (math.fsum(s for s, _ in layers), sum(n for _, n in layers))
        return ([whole, *layers] if len(layers) > 1 else [whole]), whole[1]
    along = table.score[np.isfinite(table.score)]
    return [(float(along @ along), len(along))], len(along)


def bound_scale(squares: Sequence[tuple[float, int]], n: int, alpha: float) -> float:
    """Bound the noise's standard deviation, over the claimed one, from above.

    Parameters
    ----------
    squares : sequence of (float, int)
        Sums of squares in claimed units, with their numbers of coordinates, see `sum_of_squares`.
    n : int
        Coordinates of the first; nothing is bounded without any.
    alpha : float
        Probability that the bound is too small.

    Returns
    -------
    float
        Infinite if there is none.

    Notes
    -----
    Valid because: for a variate of N(m, s^2), c < k and s >= k, the factor (k / c) exp(-x^2 (1/c^2 - 1/k^2) / 2) has
    expectation at most 1, with equality for m = 0 and s = k. So, given the past, has the product over the independent
    coordinates of a step, and over steps; so have averages over c and over layers. What a signal adds to the noise, and
    scales that are larger than k, only make it smaller. The average exceeds 1/alpha with probability at most alpha if
    no scale is below k. It is also so for the level of full batches, if scales s_t that differ from step to step have
    the same sum of 1 / s_t^2, on which the level depends, as T steps of scale k: the logarithm of the expectation of a
    step's factor, -ln(1 + a / m) / 2 + const with m = 1 / s_t^2, is concave in m, so that equal scales are worst. The
    factors grow with k, so that the rejected k are an interval from the bound on.
    """
    if not n:
        return math.inf
    threshold = -math.log(alpha)

    def wealth(scale: float) -> float:
        logs = [
            special.logsumexp(-count * np.log(RATIOS) - 0.5 * total * (RATIOS**-2.0 - 1.0) / scale**2)
            for total, count in squares
        ]
        return float(special.logsumexp(logs)) - math.log(len(RATIOS) * len(squares))

    low, high = math.log(_LOWEST), math.log(1 / _LOWEST)
    if wealth(math.exp(high)) < threshold:
        return math.inf
    if wealth(math.exp(low)) >= threshold:
        return _LOWEST
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if wealth(math.exp(middle)) >= threshold else (middle, high)
    return math.exp(high)


def bound_rate(table: StepTable, alpha: float) -> float:
    """Bound the sampling rate, over the claimed one, from below.

    Parameters
    ----------
    table : StepTable
        The record, with batch sizes.
    alpha : float
        Probability that the bound is too large.

    Notes
    -----
    Valid because: if no example is drawn with a rate above r times the claimed one, given the draws before, the number
    of drawn examples is stochastically smaller than a binomial one of that rate; the bound is that of Clopper and
    Pearson. Where claimed rates differ between steps, the smallest of the bounds of equal rates is taken, each at its
    share of alpha.
    """
    rates = np.unique(table.rate)
    ratios = []
    for rate in rates:
        drawn = table.batch[table.rate == rate]
        count, n = int(drawn.sum()), round(len(drawn) * table.examples)
        ratios.append(float(clopper_pearson(count, n, alpha / len(rates), "lower")) / float(rate))
    return min(ratios)


def _steps_of(table: StepTable, scale: float, rate: float, mu: float | None = None) -> list[Steps]:
    """Kinds of steps with scaled noise and rates; or with a level ``mu`` each."""
    if mu is not None:
        multipliers = np.full(table.steps, 1 / mu if mu > 0 else math.inf)
    else:
        with np.errstate(divide="ignore"):
            norms, unit = table.canary_norm / table.clip, _NORMS
            while True:
                rounded = np.floor(norms / unit * (1 + _ROUNDING)) * unit
                multipliers = table.multiplier * scale / rounded
                kinds = {(m, q) for m, q in zip(multipliers, table.rate, strict=True) if math.isfinite(m)}
                if len(kinds) <= _KINDS:
                    break
                unit *= 2
    rates = np.where(table.rate < 1, np.minimum(table.rate * rate, 1.0), 1.0)
    found: dict[tuple[float, float], int] = {}
    for m, q in zip(multipliers, rates, strict=True):
        if math.isfinite(m):
            found[float(m), float(q)] = found.get((float(m), float(q)), 0) + 1
    return [Steps(count, m, q) for (m, q), count in found.items()]


def compose_level(kinds: Sequence[Steps], claim: Guarantee) -> float:
    """Level of the composition of steps, rounded down.

    Parameters
    ----------
    kinds : sequence of Steps
        The steps.
    claim : Guarantee
        Says in which notion, and at which delta.
    """
    if not kinds:
        return 0.0
    if isinstance(claim, GaussianDP):
        return math.sqrt(math.fsum(kind.count / kind.multiplier**2 for kind in kinds))
    assert isinstance(claim, ApproxDP)
    for halvings in range(12):  # noise so small that no grid holds its losses: more noise has a smaller level
        events = [
            {
                "gaussian": {
                    "noise_multiplier": kind.multiplier * 2**halvings,
                    "sampling_probability": kind.rate,
                    "count": kind.count,
                }
            }
            for kind in kinds
        ]
        levels = accountant_levels(SelfReport.of("steps", {"events": events}), claim.delta)
        if not isinstance(levels, str):
            return levels[0] if math.isfinite(levels[0]) else math.inf
    return 0.0


def _check_accountant(table: StepTable, claim: Guarantee, steps: int | None) -> list[StepTest]:
    """What was claimed of steps, composed, against what is claimed of the run."""
    full = replace(table, canary_norm=table.clip)
    level = compose_level(_steps_of(full, 1.0, 1.0), claim)
    found = [
        StepTest(
            "accountant and claim",
            0.0 if level > claim.level * (1 + _SLACK) else 1.0,
            f"{table.steps} steps as claimed compose to {claim.symbol} = {level:.4g}, claimed is {claim.level:.4g}",
            CERTAIN,
        )
    ]
    if steps is not None:
        finding = f"{table.steps} steps were made, the accountant counted {steps}"
        found.append(StepTest("steps", 0.0 if table.steps > steps else 1.0, finding, CERTAIN))
    return found


# ------------------------------------------------------------------------------------------------ bets


@dataclass(frozen=True)
class CoinBets:
    """Bets on the coins of the canary.

    Parameters
    ----------
    draws : DrawBets
        Step after step.
    bound : float
        Largest mu such that steps are not all within mu-GDP.
    """

    draws: DrawBets
    bound: float


def bet_on_coins(table: StepTable, alpha: float, seed: int) -> CoinBets:
    """Bet that steps with the canary differ by more than is claimed.

    Valid because: the canary's coin at a step is independent of everything else given the past. Where it is not fair,
    steps with its likelier side are kept by another coin, so that it is fair among the steps kept. What a step releases
    along a direction that the past fixes, less what others added (which is independent of the coin), is then a draw
    with a fair coin, and 1/noise-GDP is claimed of it; see `bet_on_draws`.

    Parameters
    ----------
    table : StepTable
        The record, with coins.
    alpha : float
        Probability of a false alarm.
    seed : int
        Seed of the further coins.
    """
    p = table.coin
    kept = make_generator(seed, "steps", "coins").random(table.steps) < np.where(
        table.included == 1, min(1.0, (1 - p) / p), min(1.0, p / (1 - p))
    )
    use = kept & (table.included != UNKNOWN) & np.isfinite(table.score)
    claim = GaussianDP(float(1 / table.multiplier.min()))
    draws = bet_on_draws(table.score[use], table.included[use] == 1, claim, alpha)
    return CoinBets(draws, draws.bound_level(claim, alpha))


def _describe_assumptions(table: StepTable, alike: bool, broken: bool) -> str:
    """What the level rests on, for the result."""
    if broken:
        return "rests on bets on the canary's coins only: steps are not independent sampled Gaussians"
    parts = ["assumes that the claim is about each step, and that what was recorded is what was done"]
    if table.has_noise:
        parts.append("that noise is Gaussian and independent (tested)")
    else:
        parts.append("that noise is Gaussian and independent (not tested: the sum before noise was not recorded)")
    if bool((table.rate < 1).any()):
        known = bool((table.batch != UNKNOWN).all()) and math.isfinite(table.examples)
        parts.append(f"that examples are drawn independently ({'tested' if known else 'not tested: no batches'})")
    if alike:
        parts.append("and that steps deviate alike from what is claimed of them")
    return ", ".join(parts)
