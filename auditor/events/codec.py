"""Events as JSON and back, exactly: what a fixed event is drawn again with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import auditor.events
from auditor.datasets.json_codec import ObjectCodec, encode_exactly
from auditor.errors import SpecificationError
from auditor.events.event_learner import Chain
from auditor.targets.values import Raised, Typed


@cache
def list_event_classes() -> Mapping[str, type]:
    """Classes that an event may be made of, by name.

    They are the frozen dataclasses of this package, and values.

    A new one in any module of the package is found by itself. Classes without equality of their own hold functions or
    fitted models (see `OwnRatio`, `Score`); they are no data and are left out.

    Raises
    ------
    RuntimeError
        If two classes have one name, which is a mistake of ours.
    """
    found: dict[str, type] = {kind.__name__: kind for kind in (Raised, Typed)}
    for module in walk_packages(auditor.events.__path__, f"{auditor.events.__name__}."):
        for value in vars(import_module(module.name)).values():
            if not (isinstance(value, type) and is_dataclass(value)) or value.__name__.startswith("_"):
                continue
            if not value.__module__.startswith(f"{auditor.events.__name__}."):  # imported there, such as a target
                continue
            options = value.__dataclass_params__  # type: ignore[attr-defined]
            if options.frozen and options.eq and found.setdefault(value.__name__, value) is not value:
                raise RuntimeError(f"two classes of events are called {value.__name__}")
    return found


#: Version of the keys of outputs, see `auditor.targets.outputs.hash_outputs`, and classes of which objects hold some.
#: Rows of numbers that differed in zeros at the end had the same key in version 1.
KEYS = 2
_KEYED = ("DiscreteField", "IsValue", "PredictedField", "Rank")

#: Parts of events, and outputs that are objects, as JSON.
OBJECTS = ObjectCodec(list_event_classes, "an event")


def chain_to_json(chain: Chain) -> dict[str, Any] | None:
    """JSON of a chain of events.

    Parameters
    ----------
    chain : Chain

    Returns
    -------
    dict or None
        None if an event holds a function or a fitted model, or reads a place whose key is no plain value: such events
        cannot be drawn again from a record.
    """
    record: dict[str, Any] | None = encode_exactly(chain, OBJECTS.encode, OBJECTS.decode)
    return record if record is None or not _holds_keys(record) else {**record, "keys": KEYS}


def _holds_keys(record: Mapping[str, Any]) -> bool:
    text = json.dumps(record)
    return any(f'"class": "{name}"' in text for name in _KEYED)


def chain_from_json(record: Mapping[str, Any]) -> Chain:
    """Chain that `chain_to_json` wrote.

    Raises
    ------
    SpecificationError
        If the record is none. Classes are looked up in `list_event_classes`; nothing in the record is imported or
        evaluated.
    """
    if isinstance(record, Mapping):
        record = {name: value for name, value in record.items() if name != "keys"}
    chain = OBJECTS.decode(record)
    if not isinstance(chain, Chain):
        raise SpecificationError(f"expected the record of a chain of events, got that of a {type(chain).__name__}")
    cuts = chain.cuts
    if not (isinstance(cuts, tuple) and cuts and all(isinstance(cut, float) for cut in cuts)):
        raise SpecificationError(f"cuts must be floats, at least one, got {cuts!r}")
    if chain.side not in ("below", "above"):
        raise SpecificationError(f'side must be "below" or "above", got {chain.side!r}')
    if not all(callable(getattr(chain.feature, name, None)) for name in ("__call__", "below", "above")):
        raise SpecificationError(f"expected a feature of outputs, got a {type(chain.feature).__name__}")
    try:
        chain.words()
    except Exception as error:  # whatever a damaged record makes of a feature
        raise SpecificationError(f"the recorded event cannot be read: {type(error).__name__}: {error}") from error
    return chain


def check_keys(record: Mapping[str, Any]) -> None:
    """Refuse a record whose keys of outputs are others now.

    Draws can be counted by such an event no more. What was counted before stays as it was.

    Raises
    ------
    SpecificationError
    """
    keys = record.get("keys", 1)
    if keys != KEYS and _holds_keys(record):
        raise SpecificationError(
            f"the recorded event names outputs by keys of version {keys!r}, which other versions of dpaudit have: "
            f"expected version {KEYS}; audit again"
        )
