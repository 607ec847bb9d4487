"""What the library claims of its counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tally.counts import FloatCount, NoisyCount

from auditor import Pair, PureDP, ReplaceOne
from auditor.claims import Draft, Source, entry, mutant, privacy

PAIRS = [
    Pair(np.array([0, 1, 1]), np.array([0, 1, 0]), "the last row leaves the group"),
    Pair(np.array([0]), np.array([1]), "one row alone"),
]


@entry("tally/noisy_count", title="Counts with geometric noise", source=Source("tally", "tally/counts.py"))
def noisy_count() -> Iterator[Draft]:
    """What is released, and a broken version, which shows that the audit can see what it looks for."""
    yield privacy(NoisyCount(0.5), PureDP(0.5), PAIRS, relation=ReplaceOne())
    yield mutant("half_the_noise", NoisyCount(1.0), PureDP(0.5), PAIRS)


@entry("tally/float_count", title="Counts with Laplace noise", source=Source("tally", "tally/counts.py"))
def float_count() -> Iterator[Draft]:
    """The old release."""
    yield privacy(FloatCount(0.5), PureDP(0.5), PAIRS, relation=ReplaceOne())
