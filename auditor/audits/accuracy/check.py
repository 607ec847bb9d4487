"""The public function for one accuracy claim."""

from __future__ import annotations

from typing import Any

from auditor.audits.accuracy.controls import add_basis_and_control
from auditor.audits.accuracy.errors import ErrorOf, Setting
from auditor.audits.accuracy.failure import HighProbability
from auditor.audits.context import Question
from auditor.audits.counterexamples.replay_call import ReplayCall
from auditor.audits.defaults import DRAWS
from auditor.audits.privacy_loop import Settings
from auditor.errors import SpecificationError, check_id
from auditor.results import AuditResult
from auditor.targets import Mechanism
from auditor.targets.process_settings import keep_apart


@keep_apart()
def check_accuracy(
    mechanism: Mechanism,
    data: Any,
    error: ErrorOf,
    *,
    at_most: float,
    beta: float,
    strict: bool = False,
    id: str = "audit/L4/failure_rate/given",  # noqa: A002 - it is the claim's id
    alpha: float = 0.01,
    draws: int = DRAWS,
    seconds: float | None = None,
    stop: str = "verdict",
    seed: int = 0,
    detect: float | None = None,
    limit: float | None = 60.0,
) -> AuditResult:
    """Check that a mechanism's error is rarely above a bound.

    It is at most ``at_most`` with probability at least 1 - beta.

    Parameters
    ----------
    mechanism : callable
        ``(data, n, rng) -> outputs``.
    data : any
        The dataset.
    error : callable
        From n outputs to their errors, array of shape (n,), none negative; see `auditor.audits.accuracy.Absolute`.
    at_most, beta : float
        The claim.
    strict : bool
        An error of exactly ``at_most`` is a failure.
    id, alpha, draws, seconds, stop, seed, limit
        As for `auditor.audit`; with ``stop="verdict"`` it also stops when the claim is certified to hold on ``data``.
    detect : float, optional
        Failure rate that is to be found, default twice ``beta``.

    Returns
    -------
    AuditResult
        Of verdict "deviation", "consistent", "inconclusive" or "error"; ``accuracy`` has the failure rate with its
        limits, the quantile of the error, the slack of the bound, and what would have refuted it.

    Raises
    ------
    SpecificationError
        If an argument is not what it must be.
    """
    if not callable(mechanism):
        raise SpecificationError(f"mechanism must be callable as (data, n, rng), got {mechanism!r}")
    if not callable(error):
        raise SpecificationError(f"error must be callable as (outputs), got {error!r}")
    check_id(id)
    settings = Settings(alpha=alpha, draws=draws, seconds=seconds, stop=stop, seed=seed, detect=detect, limit=limit)
    call = ReplayCall()
    arguments = [call.name_object(mechanism, "mechanism"), call.show_data(data, "data")]
    arguments.append(call.name_object(error, "error"))
    options = {"at_most": at_most, "beta": beta, "strict": strict, "alpha": alpha, "draws": draws, "stop": stop}
    replay = call.write_line("check_accuracy", arguments, {**options, "seed": seed, "id": id})
    question = Question(id=id, replay=replay)
    theorem, setting = HighProbability(at_most, beta, strict), Setting(mechanism, data, error, at_most)
    return add_basis_and_control(theorem.audit(setting, settings, question), theorem, setting, settings, question, {})
