"""The way from the evidence of an audit to its result, or from the failure of its target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from auditor.audits.context import Question
from auditor.audits.independence import Independence
from auditor.audits.interfaces import Statement
from auditor.audits.privacy_loop import Settings
from auditor.audits.summary import describe_target
from auditor.errors import TargetError, UnrecordedError
from auditor.results import AuditResult, Verdict
from auditor.targets import Mechanism, source_hash

T = TypeVar("T")


@dataclass(frozen=True)
class Conclusion:
    """What the evidence of one audit comes to.

    Parameters
    ----------
    decided : (Verdict, str)
        Verdict and message, see `auditor.audits.verdict.decide_verdict`.
    fields : mapping
        Further fields of the result; they replace those that were known before any draw.
    independence : Independence or None
        What is known of the draws; None where nothing was to be tested.
    keep : callable or None
        Keeps the evidence, and says so in the result.
    """

    decided: tuple[Verdict, str]
    fields: Mapping[str, Any] = field(default_factory=dict)
    independence: Independence | None = None
    keep: Callable[[AuditResult], AuditResult] | None = None


def finish_audit(
    labels: dict[str, Any], private: bool, collect: Callable[[], T], conclude: Callable[[T], Conclusion]
) -> AuditResult:
    """Collect evidence and conclude from it.

    A failure of the target is a result as well, of verdict "error".

    Parameters
    ----------
    labels : dict
        Fields of the result that are known before any draw, see `labels_of`; ``collect`` may add some.
    private : bool
        Datasets are not shown, nor what the target says of them.
    collect : callable
        Draws, and gives the evidence. Only here may the target fail.
    conclude : callable
        From the evidence to what it comes to.
    """
    try:
        evidence = collect()
    except TargetError as error:
        return end_in_error(labels, private, error)
    found = conclude(evidence)
    fields = {**labels, **found.fields}
    if found.independence is not None:
        fields |= {"independence": asdict(found.independence), "unseeded": not found.independence.seeded}
    verdict, message = found.decided
    result = AuditResult(**fields, verdict=verdict, message=message)
    return result if found.keep is None else found.keep(result)


def end_in_error(labels: Mapping[str, Any], private: bool, error: TargetError | UnrecordedError) -> AuditResult:
    """Result of an audit that an error ended.

    The target failed, or a ledger cannot be written.

    Parameters
    ----------
    labels : mapping
        Fields of the result that are known before any draw, see `labels_of`.
    private : bool
        Datasets are not shown; of an error of the target only its public message is.
    error : TargetError or UnrecordedError
        What ended it.
    """
    message = error.public if private and isinstance(error, TargetError) else str(error)
    return AuditResult(**labels, verdict=Verdict.ERROR, message=message)


def fields_of_claim(id_: str, entry: str, statement: Statement, level: str) -> dict[str, Any]:
    """Fields of a result that say what is claimed.

    Parameters
    ----------
    id_ : str
        The result's id.
    entry : str
        The entry that it belongs to.
    statement : Guarantee or Theorem
        The claim.
    level : str
        Level of the audit, "L0" to "L4".
    """
    return {
        "id": id_,
        "entry": entry,
        "source": {"document": "", "place": ""},
        "level": level,
        "notion": statement.notion,
        "symbol": statement.symbol,
        "claimed": str(statement),
        "claimed_level": statement.level,
        "parameters": statement.parameters(),
    }


def labels_of(
    target: Mechanism, statement: Statement, level: str, settings: Settings, question: Question, **own: Any
) -> dict[str, Any]:
    """Fields of a result that are known before any draw.

    ``own`` are those of one level; those of the question replace others.

    Parameters
    ----------
    target : Mechanism
        What is audited.
    statement : Guarantee or Theorem
        What is claimed of it.
    level : str
        Level of the audit, "L0" to "L4".
    settings : Settings
        How it is audited.
    question : Question
        Labels of the result.
    **own : object
        Fields of one level of audits.
    """
    return {
        **fields_of_claim(question.id, "/".join(question.id.split("/")[:2]), statement, level),
        "alpha": settings.alpha,
        "expected": Verdict.CONSISTENT,
        "mechanism": describe_target(target),
        "source_hash": source_hash(target),
        "stop": settings.stop,
        "replay": question.replay,
        **own,
        **question.labels,
    }
