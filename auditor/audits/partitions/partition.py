"""Partitions of outputs into cells of known probability, and how draws are counted in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.targets.outputs import Batch

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class View:
    """One partition, in numbers and words.

    Parameters
    ----------
    name : str
        What is looked at: "output", "output[2]", "output[1] and output[2]".
    probabilities : ndarray of shape (cells,)
        Stated, positive.
    labels : tuple of str
        Each cell in words.
    impossible : str
        The impossible cell in words.
    """

    name: str
    probabilities: FloatArray
    labels: tuple[str, ...]
    impossible: str

    def excess(self, observed: IntArray) -> FloatArray:
        """Each cell's part of the observed log-likelihood ratio.

        Shape (cells + 1,), for the counts ``observed``.
        """
        expected = observed.sum() * np.append(self.probabilities, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(observed > 0, observed * np.log(observed / expected), 0.0)
        return np.asarray(logs - observed + expected, dtype=np.float64)

    def worst(self, observed: IntArray) -> str:
        """Describe the cell that deviates most.

        With its observed and stated frequency.
        """
        n, worst = int(observed.sum()), int(np.argmax(self.excess(observed)))
        seen = f"in {int(observed[worst]):,} of {n:,} draws"
        if worst == len(self.labels):
            return f"{self.impossible} {seen}, stated never"
        rate, stated = observed[worst] / max(n, 1), self.probabilities[worst]
        return f"{self.labels[worst]} {seen}, {rate:.4g} of them, stated {stated:.4g}"

    def table(self, observed: IntArray, most: int) -> dict[str, Any]:
        """Labels, stated probabilities and counts of cells.

        At most ``most``, the least deviating ones together.

        The impossible cell is added if it was hit.

        Parameters
        ----------
        observed : ndarray of int, shape (cells + 1,)
            Draws in each cell; the last is the impossible one.
        most : int
            Largest number of rows, the impossible cell aside.
        """
        labels, stated, counts = list(self.labels), self.probabilities.tolist(), observed.tolist()
        if len(labels) > most:
            order = np.argsort(-self.excess(observed)[:-1], kind="stable")
            kept, rest = np.sort(order[: most - 1]).tolist(), order[most - 1 :]
            labels = [*(labels[i] for i in kept), f"the other {len(rest)} cells"]
            stated = [*(stated[i] for i in kept), float(self.probabilities[rest].sum())]
            counts = [*(counts[i] for i in kept), int(observed[rest].sum()), counts[-1]]
        if counts[-1]:
            labels, stated = [*labels, self.impossible], [*stated, 0.0]
        return {"view": self.name, "labels": labels, "stated": stated, "counts": counts[: len(labels)]}


@dataclass(frozen=True, eq=False)
class Merge:
    """A coarser partition: each fine cell's cell, and labels.

    Shape (fine cells,).
    """

    index: IntArray
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Cells:
    """A partition of one output's values, and coarser ones.

    Parameters
    ----------
    view : View
        The fine partition.
    index : callable
        From a batch of n outputs to the cell of each, shape (n,); the number of cells stands for the impossible one.
    merges : tuple of Merge
        The coarser partitions.
    """

    view: View
    index: Callable[[Batch], IntArray]
    merges: tuple[Merge, ...] = ()

    @cached_property
    def views(self) -> list[View]:
        """The fine partition and the coarser ones."""
        fine = self.view
        return [
            fine,
            *(View(fine.name, _sums(fine.probabilities, m), m.labels, fine.impossible) for m in self.merges),
        ]

    def counts(self, index: IntArray) -> list[IntArray]:
        """Draws in each cell of each partition, the impossible one last."""
        fine = np.bincount(index, minlength=len(self.view.labels) + 1)
        merged = [_sums(fine[:-1], m).astype(np.int64) for m in self.merges]
        return [fine, *(np.append(counts, fine[-1]) for counts in merged)]

    @cached_property
    def coarse(self) -> tuple[View, IntArray]:
        """The last partition, with each fine cell's cell in it.

        The impossible one included.
        """
        view = self.views[-1]
        fine = self.merges[-1].index if self.merges else np.arange(len(self.view.labels))
        return view, np.append(fine, len(view.labels))


def _sums(fine: ArrayLike, merge: Merge) -> FloatArray:
    return np.bincount(merge.index, np.asarray(fine, dtype=np.float64), len(merge.labels)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class LawCells:
    """All partitions of the outputs of one distribution.

    Parameters
    ----------
    width : int or None
        Outputs are rows of so many elements; None: they are read as wholes.
    coordinates : tuple of (int, tuple of Cells)
        Partitions of some coordinates, or of the whole output.
    joints : tuple of (int, int)
        Pairs of entries of ``coordinates`` that are looked at together.
    """

    width: int | None
    coordinates: tuple[tuple[int, tuple[Cells, ...]], ...]
    joints: tuple[tuple[int, int], ...] = ()
    views: tuple[View, ...] = field(init=False)

    def __post_init__(self) -> None:
        views = [view for _, several in self.coordinates for cells in several for view in cells.views]
        for i, j in self.joints:
            first, second = (self.coordinates[k][1][0].coarse[0] for k in (i, j))
            labels = tuple(f"{a} and {b}" for a in first.labels for b in second.labels)
            numbers = sorted(self.coordinates[k][0] for k in (i, j))
            name = f"output[{numbers[0]}] and output[{numbers[1]}]"
            outer = np.outer(first.probabilities, second.probabilities).ravel()
            views.append(View(name, outer, labels, f"{first.impossible}, or {second.impossible}"))
        object.__setattr__(self, "views", tuple(views))

    def counts(self, batch: Batch) -> list[IntArray]:
        """Draws in each cell of each view, shape (cells + 1,).

        The last cell is the impossible one.
        """
        found: list[IntArray] = []
        coarse: list[IntArray] = []
        for number, several in self.coordinates:
            values = batch if self.width is None else _elements(batch, self.width, number)
            indices = [cells.index(values) for cells in several]
            for cells, index in zip(several, indices, strict=True):
                found.extend(cells.counts(index))
            if self.joints:
                coarse.append(several[0].coarse[1][indices[0]])
        for i, j in self.joints:
            rows_of, columns_of = (len(self.coordinates[k][1][0].coarse[0].labels) for k in (i, j))
            inside = (coarse[i] < rows_of) & (coarse[j] < columns_of)
            joint = np.where(inside, coarse[i] * columns_of + coarse[j], rows_of * columns_of)
            found.append(np.bincount(joint, minlength=rows_of * columns_of + 1))
        return found


def _elements(batch: Batch, width: int, number: int) -> Batch:
    """One element of each row; what is no row of ``width`` elements gets one that no distribution has."""
    if isinstance(batch, np.ndarray):
        rows = batch.ndim == 2 and batch.shape[1] == width
        return batch[:, number] if rows else [...] * len(batch)
    return [row[number] if isinstance(row, list | tuple) and len(row) == width else ... for row in batch]
