"""White-box audit of one training run: every step is held against what is claimed of it.

Given the past, what a step of DP-SGD releases along the direction of an example's clipped gradient is a draw of a
Gaussian, whose mean moves by the norm of that gradient if the example is in the batch. So one run of T steps holds T
draws for a claim about steps; composed, they are a claim about the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from auditor.audits.finish import fields_of_claim
from auditor.audits.training.draw_bets import DrawBets, bet_on_draws
from auditor.audits.training.step_level import compose_level, find_level, find_resolved, group_steps
from auditor.audits.training.step_tests import ANYTIME, CANARY_RATE, CERTAIN, StepTest, check_steps
from auditor.audits.training.steps import UNKNOWN, StepRecorder, StepTable
from auditor.audits.training.training_call import write_training_call
from auditor.audits.verdict import decide_verdict, describe_missed
from auditor.errors import SpecificationError, check_alpha, check_id, check_positive, require_library
from auditor.privacy.guarantees import ApproxDP, GaussianDP, Guarantee
from auditor.results import AuditResult, Verdict, usual_level, wealth_fields
from auditor.targets.process_settings import keep_apart
from auditor.targets.sampler import check_seed, make_generator

#: Parts of alpha: the level from the noise, the bets on coins, the tests. Without coins their part goes to the level.
_LEVEL, _BETS, _TESTS = 0.5, 0.25, 0.25
#: An accountant's level may exceed the claimed one by this part before it fails.
_SLACK = 1e-6


@keep_apart()
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
    if not isinstance(table, StepTable):
        raise SpecificationError(f"record must be a StepRecorder, or what read_steps gives, got {record!r}")
    check_id(id)
    _check_arguments(table, claim, alpha, steps, detect, seed)
    tossed = (table.included != UNKNOWN) & np.isfinite(table.score)
    tossing = bool((tossed & (table.coins < 1)).any())
    tests = [*check_steps(table), *_check_accountant(table, claim, steps)]
    by_chance = sum(test.kind != CERTAIN for test in tests)
    share = _TESTS * alpha / max(by_chance, 1)
    failed = [test for test in tests if test.p_value <= (0.0 if test.kind == CERTAIN else share)]
    model = [test.finding for test in failed if test.of_model]
    for_level = alpha * (_LEVEL if tossing else _LEVEL + _BETS)
    found = find_level(table, claim, for_level, bool(model))
    fair = all(test.name != CANARY_RATE for test in failed)
    bets = bet_on_coins(table, alpha * _BETS, seed) if tossing and fair else None
    told = 0.0
    if bets is not None:
        if bets.draws.wealth.best[0] >= -math.log(_BETS * alpha):
            finding = f"steps with the canary differ from those without by more than {bets.bound:.3g}-GDP"
            tests.append(StepTest("canary's coins", math.exp(-float(bets.draws.wealth.best[0])), finding, ANYTIME))
            failed.append(tests[-1])
        # Composed only where it may be more than the level found from the noise.
        if bets.bound > 0 and (not found.level or bets.bound * found.scale > 1 / float(table.multiplier.max())):
            told = compose_level(group_steps(table, 1.0, found.rate, bets.bound), claim)
    bound, wanted, resolves = max(found.level, told), usual_level(claim.level) if detect is None else detect, None
    refuted = bound > claim.level * (1 + _SLACK)
    if not refuted and not failed:
        resolves = find_resolved(table, claim, for_level)
    verdict, message = decide_verdict(
        Verdict.VIOLATION,
        refuted,
        found.finding if found.level >= told else "",
        lambda: "" if resolves is None else describe_missed("a level below {}", resolves, wanted),
    )
    if failed:
        verdict = verdict if refuted else Verdict.DEVIATION
        message = "; ".join(filter(None, [message, *(test.finding for test in failed)]))
    return AuditResult(
        **fields_of_claim(id, id.partition("/")[0], claim, "L1"),
        alpha=alpha,
        verdict=verdict,
        expected=Verdict.CONSISTENT,
        mechanism="training steps",
        title="Steps of one training run",
        draws=table.steps,
        lower_bound=bound,
        ceiling=math.inf,
        resolves=resolves,
        detect=wanted,
        pair=f"{table.steps:,} steps of one run, with and without one example",
        event=found.finding,
        message=message,
        stop="budget",
        replay=write_training_call(
            "audit_steps",
            {"record": record},
            claim,
            {"alpha": alpha, "steps": steps, "detect": detect, "seed": seed, "id": id},
        ),
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


def _check_arguments(
    table: StepTable, claim: Guarantee, alpha: float, steps: int | None, detect: float | None, seed: int
) -> None:
    if not table.steps:
        raise SpecificationError("no step was recorded: call StepRecorder.add at every step")
    check_alpha(alpha)
    check_seed(seed)
    if detect is not None:
        check_positive("detect", detect)
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1):
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


def _check_accountant(table: StepTable, claim: Guarantee, steps: int | None) -> list[StepTest]:
    """What was claimed of steps, composed, against what is claimed of the run."""
    full = replace(table, canary_norm=table.clip)
    level = compose_level(group_steps(full, 1.0, 1.0), claim)
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
    p = table.coins
    with np.errstate(divide="ignore"):  # a canary that is in every step
        share = np.minimum(1.0, np.where(table.included == 1, (1 - p) / p, p / (1 - p)))
    kept = make_generator(seed, "steps", "coins").random(table.steps) < share
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
    weak = int(np.count_nonzero(table.canary_norm < 0.5 * table.clip))
    if weak:
        parts.append(f"and is about an example that adds less than half a clip norm in {weak} of {table.steps} steps")
    return ", ".join(parts)
