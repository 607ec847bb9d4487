"""The ladder of verdicts: refuted, dependent, too weak, consistent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.audits.independence import UNTESTED
from auditor.audits.verdict import decide_verdict, describe_missed
from auditor.results import Verdict

FAILED = replace(UNTESTED, passed=False, finding="they repeat")
ASKED = replace(UNTESTED, asked="they look alike", asked_p=0.01)


def few() -> str:
    return "too few"


def test_each_rung_hides_those_below_it() -> None:
    alarm = Verdict.VIOLATION
    assert decide_verdict(alarm, True, "3 > 1", few) == (Verdict.VIOLATION, "3 > 1")
    assert decide_verdict(alarm, False, "3 > 1", few, FAILED) == (
        Verdict.DEVIATION,
        "draws are not independent: they repeat",
    )
    assert decide_verdict(alarm, False, "3 > 1", few, ASKED)[0] == Verdict.INCONCLUSIVE
    assert decide_verdict(alarm, False, "3 > 1", few) == (Verdict.INCONCLUSIVE, "too few")
    assert decide_verdict(alarm, False, "3 > 1") == (Verdict.CONSISTENT, "")


@pytest.mark.parametrize("alarm", [Verdict.VIOLATION, Verdict.DEVIATION])
def test_a_refutation_on_one_draw_a_call_stands_with_a_note(alarm: Verdict) -> None:
    verdict, message = decide_verdict(alarm, True, "3 > 1", few, ASKED)
    assert verdict == alarm
    assert message.startswith("3 > 1; draws may not be independent")
    assert message.endswith("; judged on one draw a call")


def test_dependent_draws_are_never_a_violation() -> None:
    for independence in (replace(FAILED, still="they still do"), replace(ASKED, still="they still do")):
        assert decide_verdict(Verdict.VIOLATION, True, "3 > 1", few, independence)[0] != Verdict.VIOLATION


def test_power_is_asked_for_only_where_it_decides() -> None:
    def never() -> str:
        raise AssertionError

    decide_verdict(Verdict.VIOLATION, True, missed=never)
    decide_verdict(Verdict.VIOLATION, False, missed=never, independence=FAILED)
    decide_verdict(Verdict.VIOLATION, False, missed=never, independence=ASKED)


def test_what_might_have_been_missed_is_said_if_it_was_to_be_found() -> None:
    assert describe_missed("a level below {}", 0.5, 0.5) == ""
    assert describe_missed("a level below {}", 0.51234, 0.5, " here") == (
        "a level below 0.5123 might have been missed here, 0.5 was to be found"
    )
