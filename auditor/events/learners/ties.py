"""Events on numbers of an output that are tied: by a fixed difference or ratio, by their sum, or by their distances.

A defect may leave each number as it was and tie it to another: noise that is used twice, now and then; a total that is
that of the other numbers; a vector that has the length 1. A tie shows as a value near which a difference, say, often
lies on one dataset and hardly ever on the other. Statistics of all numbers, such as the length of the vector, are read
as numbers too.

Nothing here bears on validity: an event is chosen on past draws, and bets are made on later ones only. What is chosen
here is moreover judged on past draws that it was not chosen on. Where single numbers differ as clearly, nothing is
offered.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from auditor.events.discrete_fields import OutputPlace, find_places, mix_keys
from auditor.events.features import Feature
from auditor.events.screening import best_columns, compare_counts, screen_coordinates, screen_tails
from auditor.targets.outputs import Batch

Array = NDArray[np.float64]

#: Most numbers of an output, most of which pairs are looked at, and draws a side; arbitrary, they bound a look to some
#: ms.
_WIDEST, _PAIRED, DRAWS = 12, 6, 512
#: Numbers of fewer values are fields, see `joined_fields`; as many as these tell apart.
_SEVERAL = 32
#: Part of the outputs of a side that are different, where these are no symbols; arbitrary.
_DISTINCT = 0.5
#: Parts of the draws that are looked for in a short interval, and the least number of these; arbitrary.
_PARTS, _FEWEST = (1 / 32, 1 / 8), 12
#: Least score of a tie and of a statistic in standard errors, and how often there are more draws on one side than on
#: the other. The score is larger than that of any single number by the last factor. Arbitrary: far beyond what a choice
#: among hundreds shows by chance.
_LEAST, _TAIL, _TIMES, _MORE = 5.5, 8.0, 8.0, 1.5
#: The numbers of a tie are so much denser than those of the middle half; arbitrary.
_DENSE = 8.0
#: Draws a side from which ties are looked for, and ties and statistics that are offered; arbitrary.
_FIRST, _OFFERED = 128, 2
_WORDS = {"norm": "length of the vector of", "sum": "sum of", "range": "range of", "gap": "least difference of two of"}


@dataclass(frozen=True)
class Tie:
    """How far numbers are from being tied.

    NaN where one of them is missing.

    Parameters
    ----------
    kind : str
        "difference" of the first number and the second one, "ratio" (its logarithm), "rest" (the first one without the
        sum of the others), or of all numbers their "norm", "sum", "range" or "gap", the least distance of two.
    places : tuple of OutputPlace
        Where the numbers are.
    centre : float or None
        The value from which the distance is taken; None: the feature is the value itself.
    """

    kind: str
    places: tuple[OutputPlace, ...]
    centre: float | None = None

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        return self.read(np.array([place.numbers(batch) for place in self.places]))

    def read(self, numbers: Array) -> Array:
        """Values from the numbers at the places, shape (number of places, n)."""
        with np.errstate(all="ignore"):
            value = self._read(numbers)
            value = value if self.centre is None else np.abs(value - self.centre)
        return np.where(np.isfinite(value), value, np.nan)

    def _read(self, numbers: Array) -> Array:
        if self.kind == "difference":
            return np.asarray(numbers[0] - numbers[1])
        if self.kind == "ratio":
            return np.asarray(np.log(np.abs(numbers[0])) - np.log(np.abs(numbers[1])))
        if self.kind == "rest":
            return np.asarray(numbers[0] - numbers[1:].sum(axis=0))
        if self.kind == "norm":
            return np.asarray(np.sqrt((numbers**2).sum(axis=0)))
        if self.kind == "sum":
            return np.asarray(numbers.sum(axis=0))
        if self.kind == "range":
            return np.asarray(numbers.max(axis=0) - numbers.min(axis=0))
        return np.asarray(np.diff(np.sort(numbers, axis=0), axis=0).min(axis=0))

    @property
    def name(self) -> str:
        """In words."""
        first, *others = (place.name for place in self.places)
        if self.kind == "difference":
            said = f"{first} - {others[0]}"
        elif self.kind == "ratio":
            said = f"log |{first} / {others[0]}|"
        elif self.kind == "rest":
            said = " - ".join((first, *others))
        else:
            said = f"{_WORDS[self.kind]} {first}{', ...,' if len(others) > 1 else ' and'} {others[-1]}"
        return said if self.centre is None else f"|{said} {'-' if self.centre >= 0 else '+'} {abs(self.centre):.6g}|"

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self.name} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self.name} > {cut:.6g}"


def learn_features(x: Batch, y: Batch) -> Iterator[tuple[Feature, float]]:
    """Ties that hold on one side, and statistics that differ.

    They do so more clearly than any single number.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Past draws of each side.
    """
    n = min(len(x), len(y), DRAWS)
    if n < _FIRST or any(isinstance(side, np.ndarray) and side.dtype.kind not in "iuf" for side in (x, y)):
        return
    x, y = x[:n], y[:n]
    if isinstance(x, np.ndarray) and x.ndim == 2 and x.shape[1] > _WIDEST:
        return
    places = find_places(x, y)
    read = [(place, place.numbers(x), place.numbers(y)) for place in places]
    kept = [(place, a, b) for place, a, b in read if np.isfinite(a).all() and np.isfinite(b).all()]
    kept = [(place, a, b) for place, a, b in kept if len(np.unique(np.concatenate([a, b]))) > _SEVERAL]
    if not 2 <= len(kept) <= _WIDEST:
        return
    first, second = (np.array([one[k] for one in kept]) for k in (1, 2))
    # Outputs that repeat are symbols, which say all that there is to say.
    if any(len(np.unique(mix_keys([row.view(np.int64) for row in side]))) <= _DISTINCT * n for side in (first, second)):
        return
    alone = max(float(screen(first.T, second.T).max()) for screen in (screen_coordinates, screen_tails))
    if _MORE * alone >= math.sqrt(n):  # no score is larger
        return
    ties = _list_ties([place for place, _, _ in kept])
    order = {place: k for k, (place, _, _) in enumerate(kept)}
    a, b = (
        np.array([tie.read(numbers[[order[place] for place in tie.places]]) for tie in ties])
        for numbers in (first, second)
    )
    whole = [k for k, tie in enumerate(ties) if tie.kind in _WORDS]
    scores = screen_tails(a[whole].T, b[whole].T)
    for k in best_columns(scores, _OFFERED, max(_TAIL, _MORE * alone)):
        yield ties[whole[k]], float(scores[k])
    found = {}
    for k, score, centre in sorted(_find_centres(a, b), key=lambda one: one[1]):
        if score >= max(_LEAST, _MORE * alone):
            found[replace(ties[k], centre=centre)] = score
    yield from list(found.items())[::-1][:_OFFERED]


def _list_ties(places: list[OutputPlace]) -> list[Tie]:
    pairs = list(itertools.combinations(places, 2)) if len(places) <= _PAIRED else []
    ties = [Tie(kind, pair) for kind in ("difference", "ratio") for pair in pairs]
    ties += [Tie(kind, tuple(places)) for kind in _WORDS if kind != "gap" or len(places) > 2]
    if len(places) > 2:
        ties += [Tie("rest", (place, *(other for other in places if other != place))) for place in places]
    return ties


def _find_centres(a: Array, b: Array) -> Iterator[tuple[int, float, float]]:
    """Values near which one side often lies: the row, the score, and the value.

    Rows are statistics, of shape (number of statistics, n).
    """
    n = a.shape[1]
    for side, other in ((a, b), (b, a)):
        ordered = np.sort(side, axis=1)
        middle = ordered[:, (3 * n) // 4] - ordered[:, n // 4]
        for part in _PARTS:
            k = max(int(part * n), _FEWEST)
            widths = ordered[:, k:] - ordered[:, :-k]
            at = np.argmin(np.where(np.isnan(widths), math.inf, widths), axis=1)
            rows = np.arange(len(side))
            low, high = ordered[rows, at], ordered[rows, at + k]
            centre, reach = (low + high) / 2, high - low
            own, less = ((np.abs(one - centre[:, None]) <= reach[:, None]).sum(axis=1) for one in (side, other))
            scores = compare_counts(own.astype(np.float64), less.astype(np.float64), n)
            # Whole numbers repeat, and have no density.
            dense = (reach == 0) | (_DENSE * reach / k <= 2 * middle / n)
            for j in np.flatnonzero((scores >= _LEAST) & (own + 1 >= _TIMES * (less + 1)) & dense).tolist():
                yield j, float(scores[j]), float(f"{centre[j]:.15g}")


def _name_cause(tie: Tie) -> str:
    if tie.kind in ("norm", "sum", "range"):
        return f"threshold on the {tie.kind} of the numbers of the output"
    return "shared noise: numbers of the output are tied on one dataset more than on the other"


CAUSES = {Tie: (_name_cause, 2)}
#: Chosen among some dozens, with one parameter.
PENALTIES = {Tie: 3.0}
