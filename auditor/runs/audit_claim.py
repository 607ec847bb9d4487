"""One declared claim: which audit it takes, and its result or its failure."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from auditor.audits.accuracy.base import Theorem
from auditor.audits.accuracy.controls import add_basis_and_control
from auditor.audits.accuracy.errors import Setting
from auditor.audits.adversaries.game import Game, run_game
from auditor.audits.conformity import StatedLaw, run_conformity
from auditor.audits.context import Question
from auditor.audits.defaults import METHODS
from auditor.audits.exact import audit_exactly
from auditor.audits.privacy import run_audit
from auditor.claims import Claim, registry
from auditor.errors import SpecificationError
from auditor.results import RUN_FAILED, AuditResult, Verdict
from auditor.runs.run import Run, settings_of
from auditor.targets.prefetch import Ahead
from auditor.targets.process_settings import keep_apart, limit_prints

if TYPE_CHECKING:
    from auditor.runs.ledger import Ledger


def drawn_from(claim: Claim) -> Any:
    """The target that a claim's draws are from."""
    return claim.draft.subject.mechanism if isinstance(claim.draft.subject, Setting) else claim.draft.mechanism


def audit_claim(
    claim: Claim, run: Run, alpha: float, ahead: Callable[[Sequence[Any]], Ahead] | None = None
) -> AuditResult:
    """Audit one declared claim.

    A failure of the auditor itself is an "error" and never stops the run.

    Parameters
    ----------
    claim : Claim
        What is declared.
    run : Run
        Gives budgets, seed, method and ledger.
    alpha : float
        The claim's share of alpha, in (0, 1).
    ahead : callable, optional
        Makes an `Ahead` for datasets; by default no call is made ahead of time.
    """
    draft = claim.draft
    labels: dict[str, Any] = {
        "entry": claim.entry,
        "source": {"document": claim.source.document, "place": claim.source.place},
        "title": claim.title if not draft.note else f"{claim.title}: {draft.note}",
        "level": draft.level,
        "expected": draft.expected,
        "parameters": {**draft.guarantee.parameters(), **draft.parameters},
    }
    # The share of alpha is given, so that the claim alone is judged as it was among the others.
    replay = (
        f"dpaudit run {shlex.join(run.paths)} -k {shlex.quote(claim.id)} --level {run.level} --seed {run.seed} "
        f"--alpha {alpha:.8g}"
        + (f" --draws {run.draws}" if run.draws is not None else "")
        + (f" --detect {run.detect!r}" if run.detect is not None else "")
        + (f" --method {run.method}" if run.method != METHODS[0] else "")
        + (f" --ignore {','.join(run.ignore)}" if run.ignore else "")
        + (" --also" if run.also else "")
        + (f" --ledger {shlex.quote(str(run.ledger))}" if run.ledger is not None else "")
        + (f" --ledger-key {shlex.quote(run.ledger_key)}" if run.ledger_key else "")
    )
    question = Question(claim.id, draft.curves, draft.exact_level, labels, replay, ledger=_ledger(run), ahead=ahead)
    settings = settings_of(claim, run, alpha)
    with keep_apart(claim.module):
        if isinstance(draft.guarantee, Theorem):
            result = draft.guarantee.audit(draft.subject, settings, question)
            return add_basis_and_control(result, draft.guarantee, draft.subject, settings, question, draft.controls)
        if draft.mechanism is None or draft.level == "L0":
            about = {**labels, "id": claim.id, "replay": replay}
            return audit_exactly(draft.mechanism, draft.privacy_guarantee, draft.pairs, draft.curves, alpha, about)
        if isinstance(draft.subject, Game):
            return run_game(draft.subject, draft.privacy_guarantee, settings, question)
        if isinstance(draft.guarantee, StatedLaw):
            names, datasets = zip(*draft.datasets, strict=True)
            if draft.pairs:
                labels["pair"] = "; ".join(pair.name for pair in draft.pairs)
            return run_conformity(draft.mechanism, draft.guarantee, datasets, names, settings, question)
        return run_audit(draft.mechanism, draft.guarantee, draft.pairs, settings, question)


def _ledger(run: Run) -> Ledger | None:
    if run.ledger is None:
        return None
    from auditor.runs.ledger import Ledger

    return Ledger(run.ledger.absolute(), run.ledger_key)


def audit_by_id(
    run: Run, id_: str, alpha: float, take: Callable[[], Connection | None] | None = None
) -> tuple[AuditResult, float]:
    """Audit one claim in a worker.

    It loads the declarations itself: pairs may be large, ids are not.

    Parameters
    ----------
    run : Run
        The run.
    id_ : str
        The claim's id.
    alpha : float
        The claim's share of alpha, in (0, 1).
    take : callable, optional
        Gives a connection to a partner, see `Ahead`; default no partner is looked for.

    Returns
    -------
    AuditResult
        The result; an "error" if the auditor itself failed.
    float
        Seconds that it took.
    """
    begun = time.perf_counter()
    ahead = None if take is None else partial(Ahead, take, id_)
    try:
        with limit_prints(sys.stderr):
            result = audit_claim(declared_claim(run, id_), run, alpha, ahead)
    except SpecificationError as error:  # what was asked for cannot be done, such as with too few draws
        result = make_failure(run, id_, alpha, str(error))
    except Exception as error:  # noqa: BLE001 - a failure of ours is reported with the claim, and the others still run
        result = make_failure(run, id_, alpha, f"dpaudit failed: {type(error).__name__}: {error}")
    return result, time.perf_counter() - begun


def declared_claim(run: Run, id_: str) -> Claim:
    """The claim of a run with this id.

    Parameters
    ----------
    run : Run
        The run; its files are searched.
    id_ : str
        The claim's id.
    """
    return next(claim for claim in registry.load_claims(run.loaded) if claim.id == id_)


def make_failure(run: Run, id_: str, alpha: float, message: str) -> AuditResult:
    """The "error" of a claim that could not be audited.

    Parameters
    ----------
    run : Run
        The run.
    id_ : str
        The claim's id.
    alpha : float
        The claim's share of alpha.
    message : str
        What failed.
    """
    claim = declared_claim(run, id_)
    guarantee = claim.draft.guarantee
    return AuditResult(
        id=claim.id,
        entry=claim.entry,
        source={"document": claim.source.document, "place": claim.source.place},
        level=claim.draft.level,
        notion=guarantee.notion,
        claimed=str(guarantee),
        claimed_level=guarantee.level,
        parameters={},
        alpha=alpha,
        verdict=Verdict.ERROR,
        expected=claim.draft.expected,
        title=claim.title,
        message=message,
        record={"failed": RUN_FAILED},
    )
