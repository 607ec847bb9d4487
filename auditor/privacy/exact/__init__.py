"""Exact privacy curves of pairs of output distributions that are known in closed form.

A mechanism that states its output distribution on two neighbouring datasets needs no draws: everything the
definition of differential privacy asks about the pair is a property of the two distributions. `curve`
turns a pair of distributions into a `PrivacyCurve`, from which a guarantee reads the smallest level at which
it holds for that pair. `composed` does the same for several mechanisms on the same data.

Where a curve is not exact it is an upper bound, and has an attribute ``optimistic``, the curve from
below: ``getattr(curve, "optimistic", curve)`` is a lower bound for every curve.

Conventions: natural logarithms; a pair is unordered, so every quantity is the worse of the two
orders (P, Q) and (Q, P); the privacy loss of an outcome is ``ln P - ln Q``.

Source: catalogue 000_001_003, Part A (A1 Laplace, A2 Gaussian, A3 geometric, A4 k-fold randomised
response, A5 Cauchy, A11 advanced composition); Dong, Roth, Su (2022) for trade-off curves.
"""

from auditor.privacy.exact.composition import advanced_composition, composed, optimal_composition
from auditor.privacy.exact.curve_bounds import OptimisticCurve, PessimisticCurve
from auditor.privacy.exact.curve_of_distributions import curve
from auditor.privacy.exact.discrete_curves import DiscreteGaussianCurve
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

__all__ = [
    "CauchyCurve",
    "CauchyLaw",
    "DiscreteGaussianCurve",
    "DiscreteGaussianLaw",
    "FiniteLaw",
    "GaussianCurve",
    "GaussianLaw",
    "LaplaceCurve",
    "LaplaceLaw",
    "Law",
    "LossCurve",
    "OptimisticCurve",
    "PessimisticCurve",
    "PrivacyCurve",
    "ProductLaw",
    "TwoSidedGeometricLaw",
    "advanced_composition",
    "composed",
    "curve",
    "optimal_composition",
]
