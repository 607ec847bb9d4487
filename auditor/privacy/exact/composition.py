"""Independent mechanisms on the same data: exact where it is known, bounded from both sides elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from auditor.privacy.exact.curve_bounds import Part, PessimisticCurve
from auditor.privacy.exact.discrete_curves import DiscreteGaussianCurve
from auditor.privacy.exact.privacy_curve import CauchyCurve, GaussianCurve, LaplaceCurve, PrivacyCurve, checked_count
from auditor.privacy.exact.privacy_loss import LossCurve, binomial, product
from auditor.privacy.laws import require


def composed(curves: PrivacyCurve | Sequence[PrivacyCurve], k: int = 1) -> PrivacyCurve:
    """Curve of independent mechanisms on the same dataset.

    Every curve of `curves` counts `k` times.

    Parameters
    ----------
    curves : PrivacyCurve or sequence of PrivacyCurve
        One curve, or several, each of one mechanism's distributions on the same two datasets. Those that are not
        symmetric (`LossCurve`) must be oriented alike: P is the distribution on the first dataset for all of them.
    k : int, default 1
        How often each of them is run; at least 1.

    Returns
    -------
    PrivacyCurve
        A `GaussianCurve` or a `LossCurve`, exact, for Gaussian pairs and for finite pairs as long as their losses are
        few (binomial for two losses). Otherwise a `PessimisticCurve`: everything it says is an upper bound, and what
        its ``optimistic`` says is a lower bound.

    Raises
    ------
    ValueError
        If there are no curves, or `k` is no integer of at least 1.
    TypeError
        If a curve is of a kind that does not list its losses.

    Notes
    -----
    The distributions of independent outputs are products, and privacy losses add. For symmetric curves the answer also
    bounds mechanisms that are chosen adaptively, each with a curve nowhere above the one given for its turn. Source:
    catalogue 000_001_003, A4 and basic_composition; Dong, Roth, Su (2022), section 3.2.
    """
    listed = list(curves) if isinstance(curves, Sequence) else [curves]
    require(len(listed) > 0, "at least one curve", listed)
    count = checked_count(k)
    return composed_parts([(curve, count) for curve in listed])


def composed_parts(parts: Sequence[Part]) -> PrivacyCurve:
    """Curve of independent copies, with a count each.

    See `composed`.
    """
    gaussian, finite, other = 0.0, [], []
    for curve, count in _count_equal_parts(parts):
        if curve.epsilon(0.0) == 0.0:
            continue  # two equal distributions
        match curve:
            case LossCurve() if curve.loss.size == 0:
                return curve  # distributions on disjoint outcomes stay that whatever else is seen
            case GaussianCurve():
                gaussian = math.hypot(gaussian, math.sqrt(count) * curve.shift)
            case LossCurve():
                finite.append((curve, count))
            case LaplaceCurve() | CauchyCurve() | DiscreteGaussianCurve():
                other.append((curve, count))
            case _:
                raise TypeError(f"expected a curve that lists its losses, got {curve!r}")
    joined = product(finite) if finite else None
    left: list[Part] = [*other, *([(joined, 1)] if joined is not None else finite)]
    if gaussian > 0.0:
        left.append((GaussianCurve(gaussian), 1))
    if not left:
        return GaussianCurve(0.0)
    return left[0][0] if len(left) == 1 and left[0][1] == 1 else PessimisticCurve(tuple(left))


def _count_equal_parts(parts: Sequence[Part]) -> list[Part]:
    """Open up compositions, and count equal curves together."""
    counts: dict[PrivacyCurve, int] = {}
    for curve, count in parts:
        inner = curve.parts if isinstance(curve, PessimisticCurve) else ((curve, 1),)
        for one, copies in inner:
            counts[one] = counts.get(one, 0) + copies * count
    return list(counts.items())


def optimal_composition(epsilon: float, k: int, delta: float = 0.0) -> LossCurve:
    """Optimal composition of `k` (epsilon, delta)-DP mechanisms.

    They are chosen adaptively; the worst case is k-fold randomised response.

    Parameters
    ----------
    epsilon : float
        Of each mechanism; finite, at least 0.
    k : int
        Number of mechanisms, at least 1 (10^4 takes milliseconds).
    delta : float, default 0
        Of each mechanism, in [0, 1]: with this probability it tells the datasets apart.

    Returns
    -------
    LossCurve
        Its losses are ``k epsilon, (k-2) epsilon, ... -k epsilon``. No composition has a larger delta anywhere, and
        one has this.

    Notes
    -----
    Masses are binomial, in logarithms, accurate to 1e-11 relatively at k = 10^4. Source: Kairouz, Oh, Viswanath (2015),
    Theorem 3.3; catalogue 000_001_003, A4, and 004, section 0.5.
    """
    require(0.0 <= epsilon < math.inf, "a finite epsilon >= 0", epsilon)
    require(0.0 <= delta <= 1.0, "delta in [0, 1]", delta)
    count = checked_count(k)
    none = -math.expm1(count * math.log1p(-delta)) if delta < 1.0 else 1.0
    if epsilon == 0.0 or none == 1.0:
        log_mass = np.full(1, math.log1p(-none)) if none < 1.0 else np.zeros(0)
        return LossCurve(log_mass, log_mass, none, none)
    up, down = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    curve = binomial(LossCurve(np.array([up, down]), np.array([down, up])), count)
    kept = math.log1p(-none)
    return LossCurve(curve.log_p + kept, curve.log_q + kept, none, none)


def advanced_composition(epsilon: float, k: int, delta_slack: float, delta: float = 0.0) -> tuple[float, float]:
    """Advanced composition of `k` (epsilon, delta)-DP mechanisms.

    Parameters
    ----------
    epsilon : float
        Of each mechanism; finite, at least 0.
    k : int
        Number of mechanisms, at least 1.
    delta_slack : float
        What the theorem may fail with (delta' in the literature), in (0, 1).
    delta : float, default 0
        Of each mechanism, in [0, 1).

    Returns
    -------
    epsilon, delta : float
        ``epsilon sqrt(2 k ln(1/delta_slack)) + k epsilon tanh(epsilon/2)`` and
        ``1 - (1 - delta)^k (1 - delta_slack)``.

    Notes
    -----
    Valid because: an (epsilon, delta)-DP mechanism is an epsilon-DP one but for a probability delta; each loss lies in
    [-epsilon, epsilon] and has a mean of at most epsilon tanh(epsilon/2), whatever went before, so Azuma's inequality
    bounds their sum. An upper bound and never the exact figure, for which see `optimal_composition`. Source: catalogue
    000_001_003, A11.
    """
    require(0.0 <= epsilon < math.inf, "a finite epsilon >= 0", epsilon)
    require(0.0 < delta_slack < 1.0, "delta_slack in (0, 1)", delta_slack)
    require(0.0 <= delta < 1.0, "delta in [0, 1)", delta)
    count = checked_count(k)
    total = epsilon * math.sqrt(2.0 * count * -math.log(delta_slack)) + count * epsilon * math.tanh(epsilon / 2.0)
    return total, -math.expm1(count * math.log1p(-delta) + math.log1p(-delta_slack))
