"""What an entry of the corpus of defective mechanisms is, and the sound noise that the corrected versions use."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.datasets import Relation
from auditor.privacy.guarantees import Guarantee
from auditor.targets import Mechanism, one_draw

#: Spacing of the lattice that corrected versions round noisy numbers to. Rounding is post-processing of the noisy
#: real number, and at 2^-10 it leaves nothing of what the doubles' last bits give away.
GRID = 2.0**-10


@dataclass(frozen=True, eq=False)
class CorpusDefect:
    """A mechanism with a defect, and the same mechanism without it.

    Parameters
    ----------
    name : str
        The defect in a few words.
    about : str
        What is wrong, in one line.
    broken, corrected : Mechanism
        Both versions.
    guarantee : Guarantee
        What both claim.
    relation : Relation
        Between which datasets.
    values : tuple
        Domain of a row.
    rows : int
        Rows of the datasets that an audit tries, about.
    cause : tuple of str
        Words of which one is to stand in what a maintainer is told; none for a distribution that is just another one.
    draws : int
        Budget of an audit, both sides together; the corrected version is held against the same.
    verdicts : tuple of str
        Verdicts that count as caught.
    """

    name: str
    about: str
    broken: Mechanism
    corrected: Mechanism
    guarantee: Guarantee
    relation: Relation
    values: tuple[Any, ...]
    rows: int
    cause: tuple[str, ...]
    draws: int = 2_000
    verdicts: tuple[str, ...] = ("violation",)


def defect(
    about: str,
    guarantee: Guarantee,
    relation: Relation,
    values: Sequence[Any],
    rows: int,
    cause: Sequence[str],
    *,
    batch: bool = False,
    **options: Any,
) -> Callable[[Callable[..., Any]], CorpusDefect]:
    """Entry of the corpus from one function that is both versions.

    The function takes ``(data, rng, fixed)`` and draws once, or with ``batch`` ``(data, n, rng, fixed)`` and draws n
    times; its name is the defect's.
    """

    def entry(function: Callable[..., Any]) -> CorpusDefect:
        def version(fixed: bool) -> Mechanism:
            @functools.wraps(function)
            def mechanism(*arguments: Any) -> Any:
                return function(*arguments, fixed)

            return mechanism if batch else one_draw(mechanism)

        name = function.__name__.replace("_", " ")
        both = version(False), version(True)
        return CorpusDefect(name, about, *both, guarantee, relation, tuple(values), rows, tuple(cause), **options)

    return entry


def found_in(names: dict[str, Any]) -> tuple[CorpusDefect, ...]:
    """All entries among a module's globals, in their order."""
    return tuple(value for value in names.values() if isinstance(value, CorpusDefect))


def geometric(rng: np.random.Generator, scale: float) -> int:
    """Two-sided geometric noise, ``P[k]`` proportional to ``exp(-|k| / scale)``."""
    p = -math.expm1(-1.0 / scale)
    return int(rng.geometric(p)) - int(rng.geometric(p))


def geometrics(rng: np.random.Generator, scale: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Independent two-sided geometric noise of this shape."""
    p = -math.expm1(-1.0 / scale)
    return np.asarray(rng.geometric(p, shape) - rng.geometric(p, shape))


def rounded(value: float) -> float:
    """The nearest multiple of `GRID`; never a negative zero."""
    return math.floor(value / GRID + 0.5) * GRID
