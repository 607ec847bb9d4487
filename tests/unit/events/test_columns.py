"""Features of outputs that are built alike read each of them as they read it among others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from auditor.events.elements import Elements, read_once
from auditor.events.features import Feature, Shape
from auditor.events.output_types import KeyOrder, KindIs, kinds_of
from auditor.events.presence import PresenceCounts, moved_items
from auditor.events.structure import Item, structure_of
from auditor.targets.values import kind_of
from tests.unit.targets.test_columns import ALIKE

#: No batch with this in it is built alike.
ODD: list[Any] = [{"odd": [1, {2}]}]
FEATURES: list[Feature] = [
    *(Elements(kind) for kind in ("sum", "max", "min", "missing", "distinct", "descents", "size")),
    *(Elements(kind, ("number", 1.0)) for kind in ("count", "first", "last")),
    *(Elements(kind, ("number", "nan")) for kind in ("count", "first", "last")),
    Elements("count", ("bool", True)),
    Elements("first", ("NoneType", None)),
    *(Item(path, kind) for path in (("a",), (1,), ("b", "z"), ("c",), ("c", 0)) for kind in ("number", "present")),
    Item(("b",), "difference", ("a",)),
    Item((0,), "difference", (1,)),
    Shape("number"),
    Shape("length"),
    KindIs("dict"),
    KindIs("sequence"),
]


@pytest.mark.parametrize("feature", FEATURES, ids=repr)
@pytest.mark.parametrize("batch", ALIKE.values(), ids=ALIKE)
def test_features_read_what_they_read_among_others(feature: Feature, batch: list[Any]) -> None:
    among = feature(read_once([*batch, *ODD]))[:-1]
    for read in (feature(batch), feature(read_once(batch))):
        np.testing.assert_array_equal(read, among)
        np.testing.assert_array_equal(np.signbit(read[read == 0]), np.signbit(among[among == 0]))


@pytest.mark.parametrize("batch", ALIKE.values(), ids=ALIKE)
def test_orders_of_keys_and_kinds_are_those_among_others(batch: list[Any]) -> None:
    assert KeyOrder()(batch) == KeyOrder()([*batch, *ODD])[:-1]
    assert kinds_of(batch) == [kind_of(value) for value in batch]


@pytest.mark.parametrize("batch", ALIKE.values(), ids=ALIKE)
def test_structure_and_moved_items_are_those_of_outputs_that_are_subclasses(batch: list[Any]) -> None:
    other = [_subclassed(value) for value in batch]
    assert structure_of(batch, batch) == structure_of(other, other)
    assert moved_items(batch, batch[::-1]) == moved_items(other, other[::-1])


def _subclassed(value: Any) -> Any:
    """The same output, of a class that is never read by columns."""
    kind = type("Other", (type(value),), {})
    return kind(value)


def test_counts_of_alike_outputs_are_those_of_each() -> None:
    alike, each = PresenceCounts(), PresenceCounts()
    alike.add_alike(["a", "b"], 3, 2)
    each.add([["a", "b"]] * 3, [["a", "b"]] * 2)
    assert (alike.x, alike.y) == (each.x, each.y) == (Counter(a=3, b=3), Counter(a=2, b=2))
    assert list(alike.x) == ["a", "b"]
