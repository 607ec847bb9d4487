"""Events on the order of two keys of a dict, which may be inside of an output.

Where keys come in the order in which a program met its data, one key before another may tell two datasets apart though
the order of all keys hardly repeats.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature
from auditor.events.screening import compare_counts
from auditor.events.structure import format_path, values_at
from auditor.targets.outputs import Batch
from auditor.targets.values import DEEPEST, strip_type

Array = NDArray[np.float64]
Path = tuple[Any, ...]

#: Outputs a side that are looked at, dicts of an output, and keys of a dict; arbitrary, they bound a look to some ms.
DRAWS, _DICTS, _KEYS = 256, 32, 12
#: Outputs a side of which one is to hold such a dict; arbitrary.
_FIRST = 8
#: Pairs of keys that are offered, and the least score of one: of thousands none reaches it by chance.
_OFFERED, _LEAST = 2, 5.5


@dataclass(frozen=True)
class KeyBefore:
    """Whether a key comes before another one.

    1 or 0; NaN where one of them is missing.

    Parameters
    ----------
    first, second : object
        The keys.
    path : tuple
        Keys and positions that lead to the dict; none where the output is the dict.
    """

    first: Any
    second: Any
    path: Path = ()

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        if isinstance(batch, np.ndarray):
            return np.full(len(batch), np.nan)
        return np.array([self._read(strip_type(part)) for part in values_at(batch, self.path)], dtype=np.float64)

    def _read(self, value: Any) -> float:
        if not isinstance(value, dict) or self.first not in value or self.second not in value:
            return np.nan
        return float(next(key for key in value if key in (self.first, self.second)) == self.first)

    def below(self, cut: float) -> str:
        """In words."""
        del cut
        return f"{format_path(self.path)} has the key {self.second!r} before {self.first!r}"

    def above(self, cut: float) -> str:
        """In words."""
        del cut
        return f"{format_path(self.path)} has the key {self.first!r} before {self.second!r}"


def learn_features(x: Batch, y: Batch) -> Iterator[tuple[Feature, float]]:
    """Pairs of keys whose order differs most.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Past draws of each side.
    """
    n = min(len(x), len(y), DRAWS)
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) or n < _LEAST**2:
        return
    if not any(next(_find_dicts(strip_type(output)), None) for side in (x, y) for output in side[:_FIRST]):
        return
    held = [[dict(itertools.islice(_find_dicts(strip_type(output)), _DICTS)) for output in side[:n]] for side in (x, y)]
    orders = [[(path, keys) for output in side for path, keys in output.items()] for side in held]
    several = Counter(path for path, _ in {*orders[0], *orders[1]})
    counts: list[Counter[KeyBefore]] = [Counter(), Counter()]
    for counter, side in zip(counts, orders, strict=True):
        for (path, keys), times in Counter(order for order in side if several[order[0]] > 1).items():
            for two in itertools.combinations(keys, 2):
                counter[KeyBefore(*two, path)] += times
    pairs = [one for one in dict.fromkeys((*counts[0], *counts[1])) if str(one.first) < str(one.second)]
    # Where keys are missing, that says more.
    reverse = {one: KeyBefore(one.second, one.first, one.path) for one in pairs}
    pairs = [one for one in pairs if all(counter[one] + counter[reverse[one]] == n for counter in counts)]
    if not pairs:
        return
    first, second = (np.array([float(counter[one]) for one in pairs]) for counter in counts)
    scores = compare_counts(first, second, n)
    for k in np.argsort(-scores, kind="stable")[:_OFFERED].tolist():
        if scores[k] >= _LEAST:
            yield pairs[k], float(scores[k])


def _find_dicts(value: Any, path: Path = ()) -> Iterator[tuple[Path, tuple[Any, ...]]]:
    """Dicts of two keys or more in an output: where they are, and their first keys."""
    if len(path) > DEEPEST or not isinstance(value, dict | list | tuple):
        return
    if isinstance(value, dict) and len(value) > 1:
        yield path, tuple(itertools.islice(value, _KEYS))
    for step, part in value.items() if isinstance(value, dict) else enumerate(value[:_DICTS]):
        yield from _find_dicts(strip_type(part), (*path, step))


CAUSES = {KeyBefore: ("order of the output's keys", 2)}
#: Chosen among many; the order of all keys is simpler.
PENALTIES = {KeyBefore: 1.5}
