"""The privacy curve of two distributions."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np

from auditor.privacy.exact.composition import composed_parts
from auditor.privacy.exact.discrete_curves import (
    DiscreteGaussianCurve,
    finite_pair,
    geometric_pair,
    unequal_geometric_pair,
)
from auditor.privacy.exact.privacy_curve import CauchyCurve, GaussianCurve, LaplaceCurve, PrivacyCurve
from auditor.privacy.exact.privacy_loss import LossCurve
from auditor.privacy.laws import (
    CauchyLaw,
    DiscreteGaussianLaw,
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    Law,
    ProductLaw,
    TwoSidedGeometricLaw,
)


def curve(law_p: Law, law_q: Law) -> PrivacyCurve:
    """Privacy curve of an unordered pair of distributions.

    Parameters
    ----------
    law_p, law_q : Law
        The mechanism's output distributions on two neighbouring datasets.

    Returns
    -------
    PrivacyCurve
        Exact for finite distributions, Laplace and Gaussian distributions of equal scale, Cauchy distributions,
        geometric distributions of equal base, and for the products that `composed` has exactly. What is listed only in
        part (discrete Gaussian distributions, geometric distributions of different bases) is an upper bound within
        1e-40. Other products are bounded from above by a `PessimisticCurve`, whose ``optimistic`` bounds them from
        below. In products, coordinates with equal distributions are dropped.

    Raises
    ------
    ValueError
        If no curve is known for the pair (for instance two Laplace distributions of different scale); the message names
        both distributions.

    Notes
    -----
    Source: catalogue 000_001_003, A1 to A5.
    """
    if law_p is law_q or law_p == law_q:
        return LossCurve(np.zeros(1), np.zeros(1))
    match law_p, law_q:
        case FiniteLaw(), FiniteLaw():
            return finite_pair(law_p, law_q)
        case LaplaceLaw(), LaplaceLaw() if law_p.scale == law_q.scale:
            return LaplaceCurve(abs(law_p.loc - law_q.loc) / law_p.scale)
        case GaussianLaw(), GaussianLaw() if law_p.sigma == law_q.sigma:
            return GaussianCurve(abs(law_p.loc - law_q.loc) / law_p.sigma)
        case CauchyLaw(), CauchyLaw():
            # 2 arcsinh of half the chord is the arccosh of A5 without its loss of digits for nearby distributions.
            chord = math.hypot(law_p.scale - law_q.scale, law_p.loc - law_q.loc)
            return CauchyCurve(2.0 * math.asinh(chord / (2.0 * math.sqrt(law_p.scale) * math.sqrt(law_q.scale))))
        case TwoSidedGeometricLaw(), TwoSidedGeometricLaw() if law_p.step == law_q.step:
            if law_p.a == law_q.a:
                return geometric_pair(law_p, abs(law_p.loc - law_q.loc))
            return unequal_geometric_pair(law_p, law_q)
        case DiscreteGaussianLaw(), DiscreteGaussianLaw() if (law_p.sigma, law_p.step) == (law_q.sigma, law_q.step):
            return DiscreteGaussianCurve(abs(law_p.loc - law_q.loc), law_p.sigma)
        case ProductLaw(), ProductLaw() if len(law_p.parts) == len(law_q.parts):
            return _product_pair(law_p, law_q)
    raise _unsupported_error(law_p, law_q)


def _unsupported_error(law_p: Law, law_q: Law) -> ValueError:
    names = [repr(law) if len(repr(law)) <= 200 else repr(law)[:200] + "..." for law in (law_p, law_q)]
    return ValueError(
        "no exact privacy curve is known for this pair; expected two distributions that are finite, or Cauchy, or "
        "Laplace, Gaussian or discrete Gaussian of equal scale, or geometric of equal step, or products of these with "
        f"the same number of coordinates, got {names[0]} and {names[1]}"
    )


def _product_pair(law_p: ProductLaw, law_q: ProductLaw) -> PrivacyCurve:
    moved = Counter(_from_zero(p, q) for p, q in zip(law_p.parts, law_q.parts, strict=True) if p is not q and p != q)
    return composed_parts([(curve(p, q), count) for (p, q), count in moved.items()])


def _from_zero(law_p: Law, law_q: Law) -> tuple[Law, Law]:
    """Geometric distributions of equal base at 0 and their distance, so that equal shifts are counted together.

    What is computed from the pair is the same: it is symmetric, and a translation of the outcomes changes nothing.
    """
    match law_p, law_q:
        case TwoSidedGeometricLaw(), TwoSidedGeometricLaw() if (law_p.a, law_p.step) == (law_q.a, law_q.step):
            return replace(law_p, loc=0), replace(law_q, loc=abs(law_p.loc - law_q.loc))
    return law_p, law_q
