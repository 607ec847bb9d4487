"""What the entries about votes of chunks share: their level, the erratum of their distance, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditor.claims import Erratum
from mechanisms.base.mechanism import FloatArray

#: The level of the catalogue's golden values: lambda is 0.974 at T = 1.
EPSILON, DELTA = 8.0, 0.3

ERR2 = Erratum(
    "ERR-2",
    "proof",
    "The distance of Algorithm 4 is the gap between the two largest counts less 1, and "
    "Corollary 3.10 takes it for a distance to instability, which moves by 1 when one record changes.",
    fails="one record changes one vote, which moves the gap by 2, and in a tie the label changes at distance 1: an "
    "epoch costs 4/lambda and not 2/lambda, and a flip leaks more than the bound allows",
    correction="ceil(gap/2) - 1 moves by 1 and is 0 at every flip; with the gap the claim still follows, by the factor "
    "of 2 in the constant of lambda, at least up to the levels that are computed here",
)


def missed(outputs: Any) -> FloatArray:
    """Errors that are the outputs themselves."""
    return np.asarray(outputs, dtype=np.float64)
