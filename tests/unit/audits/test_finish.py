"""From evidence to a result, and from the failure of a target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.audits.context import Question
from auditor.audits.finish import Conclusion, finish_audit, labels_of
from auditor.audits.independence import UNTESTED
from auditor.audits.privacy_loop import Settings
from auditor.errors import TargetError, TargetRaised
from auditor.privacy.guarantees import PureDP
from auditor.results import Verdict, wealth_fields

LABELS = labels_of(max, PureDP(1.0), "L1", Settings(), Question("a/b/L1/pure_dp/c"))


def test_what_was_found_replaces_what_was_known_before() -> None:
    tested = replace(UNTESTED, seeded=False, draws=7)
    conclusion = Conclusion((Verdict.CONSISTENT, "so"), {"alpha": 0.5}, tested)
    result = finish_audit(
        LABELS, False, lambda: 3, lambda drawn: replace(conclusion, fields={"alpha": 0.5, "draws": drawn})
    )
    assert (result.id, result.verdict, result.message) == ("a/b/L1/pure_dp/c", Verdict.CONSISTENT, "so")
    assert (result.alpha, result.draws, result.unseeded, result.independence["draws"]) == (0.5, 3, True, 7)


@pytest.mark.parametrize(("private", "shown"), [(False, "Alice"), (True, "ValueError")])
def test_a_target_that_fails_is_an_error_and_a_private_one_is_not_quoted(private: bool, shown: str) -> None:
    error = TargetRaised("ValueError", "the target raised ValueError: Alice", "the target raised ValueError")

    def collect() -> int:
        raise error

    def conclude(drawn: int) -> Conclusion:
        raise AssertionError(drawn)

    result = finish_audit(LABELS, private, collect, conclude)
    assert result.verdict == Verdict.ERROR
    assert shown in result.message
    assert ("Alice" in result.message) is not private


def test_a_failure_after_the_draws_is_ours() -> None:
    def conclude(drawn: int) -> Conclusion:
        raise TargetError(str(drawn))

    with pytest.raises(TargetError):
        finish_audit(LABELS, False, lambda: 3, conclude)


def test_evidence_is_kept_with_the_result() -> None:
    conclusion = Conclusion((Verdict.CONSISTENT, ""), keep=lambda result: replace(result, ledger={"draws": 5}))
    assert finish_audit(LABELS, False, lambda: None, lambda _: conclusion).ledger == {"draws": 5}


def test_wealth_is_shown_in_decimal_logarithms() -> None:
    fields = wealth_fields([(8, 0.0), (13, 2.302585092994046)], 4.605170185988092, sides=2)
    assert fields["log10_e_value"] == pytest.approx(1.0)
    assert fields["log10_max_e_value"] == pytest.approx(2.0)
    assert fields["wealth"] == {"draws": [16, 26], "log10_e_value": pytest.approx([0.0, 1.0])}
    assert wealth_fields([], 0.0)["log10_e_value"] == 0.0
