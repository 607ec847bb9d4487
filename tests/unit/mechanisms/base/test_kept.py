"""Values of a dataset that are kept between calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mechanisms.base import kept


class Squares:
    """Counts its calls."""

    calls = 0

    def __call__(self, data: Any, power: int = 2) -> Any:
        self.calls += 1
        return np.asarray(data) ** power


def test_a_value_is_computed_once_for_each_content_and_argument() -> None:
    function, data = Squares(), np.array([1, 2, 3])
    for _ in range(3):
        assert kept.compute_once(function, data).tolist() == [1, 4, 9]
        assert kept.compute_once(function, data.copy()).tolist() == [1, 4, 9]
    assert function.calls == 1
    assert kept.compute_once(function, data, 3).tolist() == [1, 8, 27]
    assert kept.compute_once(function, data.astype(np.float64)).dtype == np.float64
    data[0] = 5  # the same object with another content
    assert kept.compute_once(function, data).tolist() == [25, 4, 9]
    assert kept.compute_once(Squares(), data).tolist() == [25, 4, 9]


def test_what_is_kept_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        kept.compute_once(Squares(), np.array([1, 2]))[0] = 0


def test_objects_are_computed_each_time() -> None:
    function, data = Squares(), np.array([1, 2.0], dtype=object)
    assert [kept.compute_once(function, data).tolist() for _ in range(2)] == [[1, 4.0]] * 2
    assert function.calls == 2


def test_the_oldest_goes_when_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_kept", {})
    monkeypatch.setattr(kept, "_taken", 0)
    monkeypatch.setattr(kept, "_ROOM", 3 * kept._KEY)
    function = Squares()
    for value in (1, 2, 3, 1):
        kept.compute_once(function, np.array([value]))
    assert function.calls == 4
    kept.compute_once(function, np.array([1]))
    assert function.calls == 4
    assert kept._taken == sum(size for _, size in kept._kept.values()) <= kept._ROOM
    assert kept.compute_once(function, np.zeros(10 * kept._KEY)).size == 10 * kept._KEY  # too large to be kept
