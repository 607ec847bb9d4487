"""Learners of events, one in each file: modules of this package are found and loaded by themselves.

A module has

- ``learn_features``, a `Learner`: features for a kind of output that few mechanisms have, none for other outputs;
- ``CAUSES``: for each class of its features a standard phrase without values of outputs in it, or a function that
  gives it, and the rank of its simplicity, both as in `auditor.events.root_causes`;
- ``PENALTIES``, if its features are chosen among many or have many parameters: for each class the nats by which an
  event has to beat simpler ones. Features without it are rather preferred to others;
- ``DRAWS``, if it looks at the first draws alone: the most of them a side. It looks again once they have doubled.

The features are frozen dataclasses, which `auditor.events.codec` finds by themselves.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeAlias

from auditor.events.features import Feature
from auditor.targets.outputs import Batch

Learner: TypeAlias = Callable[[Batch, Batch], Iterable[tuple[Feature, float]]]
"""From past draws of each side to features with scores: how clearly the sides differ, in standard errors; infinite for
a feature that was not chosen among others, which may be judged on the same draws."""

LEARNERS: list[Learner] = []
CAUSES: dict[type, tuple[str | Callable[[Any], str], int]] = {}
PENALTIES: dict[type, float] = {}
MOST_DRAWS: dict[Learner, int] = {}

for _info in iter_modules(__path__):
    _module = import_module(f"{__name__}.{_info.name}")
    LEARNERS.append(_module.learn_features)
    CAUSES.update(_module.CAUSES)
    PENALTIES.update(getattr(_module, "PENALTIES", {}))
    if hasattr(_module, "DRAWS"):
        MOST_DRAWS[_module.learn_features] = _module.DRAWS
