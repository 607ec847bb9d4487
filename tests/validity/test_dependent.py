"""False alarms about targets that keep their claim in each draw, and whose draws depend on one another."""

from __future__ import annotations

import pytest
from scipy import stats

from benchmarks.dependent import CASES, batch
from benchmarks.families import ALPHA

AUDITS = 12
#: Fails for any seed with probability below 1e-6 where alarms have probability ALPHA.
MOST = int(stats.binom.isf(1e-6, AUDITS, ALPHA))
#: Each had 40 % or more of false alarms where nothing but the tests beforehand looked at the draws.
NAMES = (
    ("event", "a tenth of the draws of 6 calls alike"),
    ("game", "table of 16"),
    ("phase diagram", "a tenth of the draws of a call alike"),
)


@pytest.mark.parametrize(("audited", "name"), NAMES)
def test_dependent_draws_raise_no_more_alarms_than_alpha_allows(audited: str, name: str) -> None:
    case = next(k for k, case in enumerate(CASES) if (case.audited, case.name) == (audited, name))
    counts = batch(case, range(500, 500 + AUDITS))
    assert counts["alarm"] + counts["error"] <= MOST
