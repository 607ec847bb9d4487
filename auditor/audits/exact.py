"""Exact audits (L0): the privacy curves of a stated distribution against the claim, without draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.audits.summary import describe_target
from auditor.audits.verdict import decide_verdict
from auditor.datasets import Pair
from auditor.privacy.exact import PrivacyCurve
from auditor.privacy.guarantees import Guarantee
from auditor.results import AuditResult, Verdict
from auditor.targets import Mechanism, source_hash


def allow_rounding(guarantee: Guarantee) -> float:
    """Largest exact level that is within a claim.

    Exact levels come out of floating point with relative errors of about 1e-12.

    Parameters
    ----------
    guarantee : Guarantee
        The claim.
    """
    return guarantee.level * (1 + 1e-9) + 1e-12


def audit_exactly(
    mechanism: Mechanism | None,
    guarantee: Guarantee,
    pairs: Sequence[Pair],
    curves: Sequence[PrivacyCurve],
    alpha: float,
    labels: Mapping[str, Any],
) -> AuditResult:
    """L0: compare the exact level of the stated distribution with the claim.

    A curve that is known within bounds is pessimistic, and has an ``optimistic`` one beside it.

    Parameters
    ----------
    mechanism : callable or None
        What states the distributions.
    guarantee : Guarantee
        The claim.
    pairs : sequence of Pair
        Neighbouring datasets.
    curves : sequence of PrivacyCurve
        The exact curve of each pair.
    alpha : float
        The claim's share, for the record: no draws are made.
    labels : mapping
        Further fields of the result.

    Notes
    -----
    Valid because: the true level on a pair lies between the levels of the two curves. The claim is refuted only if the
    lower of them exceeds it on some pair, and consistent only if the higher of them does on none.
    """
    within = allow_rounding(guarantee)
    high = [guarantee.exact_level(curve) for curve in curves]
    low = [guarantee.exact_level(getattr(curve, "optimistic", curve)) for curve in curves]
    broken, holds = max(low) > within, max(high) <= within
    levels = low if broken else high
    worst = max(range(len(levels)), key=lambda k: levels[k])
    size = f"of at least {low[worst]:.6g}" if high[worst] > low[worst] else f"= {levels[worst]:.6g}"
    between = (
        f"on this pair the stated distribution has {guarantee.symbol} between {low[worst]:.6g} and "
        f"{high[worst]:.6g}: the "
        "curve is not known precisely enough"
    )
    verdict, message = decide_verdict(
        Verdict.VIOLATION,
        broken,
        f"the stated distribution has {guarantee.symbol} {size} on this pair",
        lambda: "" if holds else between,
    )
    return AuditResult(
        notion=guarantee.notion,
        symbol=guarantee.symbol,
        claimed=str(guarantee),
        claimed_level=guarantee.level,
        alpha=alpha,
        verdict=verdict,
        exact=levels[worst],
        pair=pairs[worst].name,
        mechanism=describe_target(mechanism),
        source_hash=source_hash(mechanism),
        message=message,
        **labels,
    )
