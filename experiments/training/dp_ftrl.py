"""DP-FTRL on digits: noise that is correlated between the steps of several epochs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from auditor.claims import Draft, Source, broken, deviating, entry, exact, reference
from auditor.privacy.guarantees import GaussianDP
from experiments.common import ADD_REMOVE
from experiments.training._rows import CORNER, PIXELS, corner_canary, digits, planted
from mechanisms.training.dp_ftrl import DPFTRL, MUTANTS
from mechanisms.training.dp_sgd import FeatureReader
from mechanisms.training.models import LogisticRegression

_RUNS: Mapping[str, int] = {"smoke": 20_000, "standard": 200_000}
#: A distribution shows in fewer.
_SAME = {"draws": {"smoke": 20_000, "standard": 50_000}}
_BROKEN_RUNS: Mapping[str, int] = {"smoke": 20_000, "standard": 20_000}
#: And what is broken by little shows in more.
_MORE: Mapping[str, int] = {"smoke": 60_000, "standard": 60_000}


@entry(
    "further/dp_ftrl",
    title="Training with correlated noise",
    source=Source("Choquette-Choo et al. 2023", "banded matrices; Denisov et al. 2022 for the square root"),
)
def dp_ftrl() -> Iterator[Draft]:
    """Batches in a fixed order, three epochs; the last row is the canary, in the first batch of an epoch."""
    model, reader = LogisticRegression(PIXELS), FeatureReader(CORNER)
    pair = planted(digits(12), corner_canary(), "an image with ink in a corner behind 12 images")
    thrice = DPFTRL(model, reader, 0.1, 1.0, 6, batch=6.0, learning_rate=0.02, epochs=3)
    claim = GaussianDP(thrice.mu())
    yield from reference(thrice, claim, pair, case="three_epochs", relation=ADD_REMOVE, draws=_RUNS, follows=_SAME)
    for name, mutant in MUTANTS.items():
        certain = exact(mutant.build(thrice), claim, pair, case=name, relation=ADD_REMOVE, expected="violation")
        yield dataclasses.replace(certain, is_mutant=True, note=mutant.note)
        yield broken(mutant, thrice, pair, guarantee=claim, relation=ADD_REMOVE, draws=_MORE)
    yield deviating(MUTANTS["participation_counted_once"], thrice, pair, relation=ADD_REMOVE, draws=_BROKEN_RUNS)
