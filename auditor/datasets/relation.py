"""Pairs of datasets, and the protocol of a relation between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring datasets.

    Parameters
    ----------
    x, y : array, DataFrame, list or tuple
        Datasets; a row is an element of the first axis.
    name : str
        What is special about the pair, in words.
    """

    x: Any
    y: Any
    name: str = "given pair"


class Relation(Protocol):
    """When two datasets are neighbours.

    A relation must be symmetric: if (x, y) are neighbours, so are (y, x). A claim is about both orders of a pair, and
    one set of draws is held against both, so a one-sided relation would be audited for more than it says.
    """

    name: ClassVar[str]

    def check(self, pair: Pair) -> None:
        """Raise `SpecificationError` if the pair's datasets are not neighbours."""

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """Neighbouring datasets of about ``size`` rows from ``values``.

        Parameters
        ----------
        values : sequence
            What a row (for graphs an edge, for labels a label) may be, the two extremes first and last; the others may
            go unused.
        size : int
            Rows of a dataset (nodes of a graph), at least 1; some pairs have fewer, or one more.

        Yields
        ------
        Pair
            Neighbours under the relation.
        """
