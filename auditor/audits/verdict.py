"""The verdict of one audit, from what its evidence says."""

from __future__ import annotations

from collections.abc import Callable

from auditor.audits.independence import UNTESTED, Independence
from auditor.results import Verdict


def decide_verdict(
    alarm: Verdict,
    refuted: bool,
    why: str = "",
    missed: Callable[[], str] = str,
    independence: Independence = UNTESTED,
) -> tuple[Verdict, str]:
    """Decide the verdict, and its message where it needs one.

    It is refuted, dependent, too weak or consistent, the first that holds.

    Parameters
    ----------
    alarm : Verdict
        What a refutation is: a violation of a privacy claim, a deviation from any other.
    refuted : bool
        What counts refutes the claim.
    why : str
        What refutes it, in words.
    missed : callable
        What might have been missed, in words; empty if nothing was that is to be found. Asked where it matters only.
    independence : Independence
        What is known of the draws.

    Notes
    -----
    Valid because: a refutation is an alarm only if its draws, or those of another refutation if it was reached again,
    do not look dependent; the test that ``refuted`` reads has then an error of at most alpha. A weaker rung never
    turns into an alarm of privacy: dependent draws are a deviation, of probability
    `auditor.audits.independence.FALSE_ALARM` a test for independent ones, and doubtful refutations are inconclusive.
    """
    note = independence.note
    if refuted and not independence.still:
        again = "reached again on new draws, which do not look so"
        judged = "judged on one draw a call" if independence.alone else again
        return alarm, "; ".join(filter(None, (why, note, judged if note else "")))
    if not independence.passed:
        return Verdict.DEVIATION, note
    if independence.asked:
        then = (
            f"draws taken one a call refute it too, but look dependent as well ({independence.still})"
            if refuted
            else f"new draws{'' if independence.in_calls else ', taken one a call,'} do not refute it"
        )
        return Verdict.INCONCLUSIVE, f"the claim was refuted, but its {note}; {then}"
    if text := missed():
        return Verdict.INCONCLUSIVE, text
    return Verdict.CONSISTENT, ""


def describe_missed(what: str, resolves: float, detect: float, where: str = "") -> str:
    """Describe what may have been missed; empty if nothing was.

    Parameters
    ----------
    what : str
        What there is to be found, with a place for its size: "a level below {}".
    resolves : float
        What would have been found with probability 0.9.
    detect : float
        What was to be found.
    where : str
        Where it was looked for.
    """
    if resolves <= detect:
        return ""
    return f"{what.format(f'{resolves:.4g}')} might have been missed{where}, {detect:.4g} was to be found"
