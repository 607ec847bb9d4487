"""Document 004, section 5: labels with Gaussian noise, the document's example of weak quality."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from auditor.audits.accuracy import Absolute
from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, accuracy, entry, inequality
from mechanisms.teacher_ensembles.gaussian_labels import MUTANTS, GaussianLabels


@entry(
    "004/weak_quality_example",
    title="Labels with Gaussian noise",
    source=Source("004", "after Definition 5.11"),
)
def labels() -> Iterator[Draft]:
    """The printed bounds on the two labels' probabilities against the Gaussian distribution, and drawn labels."""
    yield inequality(
        _tails,
        statement="the less likely label has a probability below exp(-4 x^2/c^2)",
        relation="<",
        level="L4",
        case="tails",
    )
    likely = 1.0 - GaussianLabels(1.0).unlikely(1.0)
    yield inequality(
        lambda: [("|x| = c", 1.0 - 2.0 * math.exp(-4.0), 2.0 * likely - 1.0)],
        statement="the two probabilities differ by more than 1 - 2 e^-4",
        relation="<",
        level="L4",
        case="difference",
    )
    yield inequality(
        lambda: [("|x| = c", 1.0 - math.exp(-4.0), likely)],
        statement="the larger probability is above 1 - e^-4",
        relation="<",
        level="L4",
        case="larger",
        note="printed with =, in the copy we have; it is Phi(sqrt 8) = 0.99766 at |x| = c",
    )
    yield inequality(
        lambda: [(f"alpha = {a:g}", 1.0 - (a + 0.02), likely - a) for a in (0.0, 0.01, 0.1, 0.3, 0.48)],
        statement="a prediction within alpha of the probability is of (alpha + 0.02)-weak quality",
        relation="<",
        level="L4",
        case="weak_quality",
    )
    for margin in (0.25, 16.0):
        yield _claim_unlikely_labels(f"margin_{margin:g}".replace(".", "_"), GaussianLabels(margin), margin)
    for name, margin in (("variance_c_over_8", 0.25), ("std_for_variance", 16.0)):
        found = MUTANTS[name]
        yield _claim_unlikely_labels(
            name, found.build(GaussianLabels(margin)), margin, expected="deviation", is_mutant=True, note=found.note
        )


def _claim_unlikely_labels(case: str, mechanism: Any, margin: float, **options: Any) -> Draft:
    """Labels at x = c, where the other one is most likely: below e^-4."""
    known = mechanism.unlikely(margin)
    return accuracy(mechanism, margin, Absolute(1.0), at_most=0, beta=math.exp(-4.0), exact=known, case=case, **options)


def _tails() -> list[Row]:
    rows = []
    for margin in (0.1, 1.0, 16.0):
        law = GaussianLabels(margin)
        for x in (1.0, 1.01, 1.5, 3.0, 5.0, -1.0, -1.01, -3.0):
            rows.append((f"c = {margin:g}, x = {x:g} c", law.unlikely(x * margin), law.printed(x * margin)))
    return rows
