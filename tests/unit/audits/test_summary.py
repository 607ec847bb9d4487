"""Words of summaries."""

from __future__ import annotations

from decimal import Context, localcontext
from fractions import Fraction
from typing import Any

import pytest

from auditor import SpecificationError, explain, one_draw
from auditor.audits.summary import format_duration
from auditor.results import format_certainty


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (2.1e-10, "1 ns"),
        (4.23e-5, "42.3 us"),
        (0.0423, "42.3 ms"),
        (1.26, "1.26 s"),
        (119.0, "119 s"),
        (120.0, "2 minutes"),
        (5400.0, "90 minutes"),
        (9000.0, "2.5 hours"),
        (1e6, "11.6 days"),
    ],
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize("call", [explain, one_draw], ids=["explain", "one_draw"])
def test_nothing_to_explain_or_to_draw_from_is_refused(call: Any) -> None:
    with pytest.raises(SpecificationError, match="got None"):
        call(None)


@pytest.mark.parametrize("alpha", [1e-2, 1e-30, 5e-324])
def test_a_certainty_of_any_alpha_is_written_whatever_the_precision_of_decimals(alpha: float) -> None:
    with localcontext(Context(prec=1)):
        text = format_certainty(alpha)
    assert text.startswith("0.99")
    assert 1 - Fraction(text) >= Fraction(alpha) * Fraction(99, 100)
