"""Cells of a finite distribution: its outcomes, and groups of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from auditor.audits.partitions.partition import Cells, FloatArray, IntArray, Merge, View
from auditor.privacy.laws import FiniteLaw
from auditor.targets.outputs import Batch, hash_outputs, show_output

#: Most outcomes that have cells of their own, the most probable ones; and the smallest probability of a cell: a part in
#: a million that is missing or too many shows after some millions of draws.
MOST, RARE = 1024, 1e-6
#: Cells that all other outcomes share: enough to see that some of many equally rare outcomes never occur.
SHARED = 64
#: Ranges of numbers, about so many, that are looked at beside single outcomes.
RANGES = (32, 8)
#: Elements of tuples that are looked at by themselves, evenly spaced over all: arbitrary, bounds the time.
ELEMENTS = 64


def finite_cells(law: FiniteLaw, name: str) -> Cells:
    """Cells of a finite distribution.

    Common outcomes by themselves, rare ones in groups.

    Parameters
    ----------
    law : FiniteLaw
        Outcomes of probability 0 are impossible, as are those that it does not name.
    name : str
        What is looked at, for the labels.
    """
    mass = law.probabilities
    possible = np.flatnonzero(mass > 0)
    numeric = all(_is_number(law.outcomes[i]) for i in possible.tolist())
    if numeric:
        possible = possible[np.argsort([float(law.outcomes[i]) for i in possible.tolist()])]  # type: ignore[arg-type]
    common = np.zeros(len(mass), dtype=np.bool_)
    common[np.argsort(-mass, kind="stable")[:MOST]] = True
    common = (common & (mass >= RARE))[possible]
    own, rare = possible[common], possible[~common]
    group = _parts(mass[rare], SHARED, RARE)
    cell = np.empty(len(possible), dtype=np.int64)
    cell[common], cell[~common] = np.arange(len(own)), len(own) + group
    labels = [f"{name} = {show_output(law.outcomes[i])}" for i in own.tolist()]
    for g in range(group.max(initial=-1) + 1):
        members = rare[group == g]
        which = f", group {g + 1}" if group.max() else ""
        if numeric:
            which = f" from {show_output(law.outcomes[members[0]])} to {show_output(law.outcomes[members[-1]])}"
        labels.append(f"{name} is one of {len(members):,} rare outcomes{which}")
    probabilities = np.bincount(cell, mass[possible]).astype(np.float64)
    known = hash_outputs([law.outcomes[i] for i in possible.tolist()])
    sort = np.argsort(known)
    known, number = known[sort], cell[sort]

    def index(batch: Batch) -> IntArray:
        found = hash_outputs(batch)
        place = np.minimum(np.searchsorted(known, found), len(known) - 1)
        return np.where(known[place] == found, number[place], len(labels))

    view = View(name, probabilities, tuple(labels), f"{name} is none of the stated outcomes")
    return Cells(view, index, tuple(_groups([law.outcomes[i] for i in own.tolist()], view)))


def _is_number(outcome: Hashable) -> bool:
    return isinstance(outcome, int | float | np.integer | np.floating) and not isinstance(outcome, bool)


def _parts(mass: FloatArray, most: int, least: float) -> IntArray:
    """Split a sequence into at most so many parts of about equal mass, not much smaller than ``least``."""
    total = float(mass.sum())
    parts = max(1, min(most, int(total / least)))
    middles = np.cumsum(mass) - 0.5 * mass
    found: IntArray = np.unique(np.floor(parts * middles / max(total, least)), return_inverse=True)[1]
    return found


def _groups(outcomes: Sequence[Hashable], view: View) -> Iterable[Merge]:
    """Coarser cells of a finite distribution: ranges of numbers, and each coordinate of tuples."""
    rest = view.labels[len(outcomes) :]  # the rare ones have a cell of their own in each
    if all(map(_is_number, outcomes)):
        for ranges in RANGES:
            if len(outcomes) > ranges:
                yield _ranges([float(o) for o in outcomes], view, ranges)  # type: ignore[arg-type]
        return
    if not all(isinstance(o, tuple) for o in outcomes):
        return
    rows = [o for o in outcomes if isinstance(o, tuple)]
    width = {len(row) for row in rows}
    if len(width) != 1 or (m := width.pop()) < 2:
        return
    for i in np.unique(np.linspace(0, m - 1, min(m, ELEMENTS)).round().astype(int)).tolist():
        symbols = list(dict.fromkeys(row[i] for row in rows))
        if len(symbols) > 1:
            index = [symbols.index(row[i]) for row in rows]
            labels = [f"{view.name}[{i}] = {show_output(s)}" for s in symbols]
            yield Merge(np.array([*index, *range(len(symbols), len(symbols) + len(rest))]), (*labels, *rest))


def _ranges(values: Sequence[float], view: View, ranges: int) -> Merge:
    """Neighbouring numbers together, given in order; about so many cells of equal probability."""
    group = _parts(view.probabilities[: len(values)], ranges, RARE)
    ends = [np.array(values)[group == g] for g in range(group.max() + 1)]
    labels = [f"{e[0]:.6g} <= {view.name} <= {e[-1]:.6g}" for e in ends]
    rest = view.labels[len(values) :]
    index = np.concatenate([group, len(labels) + np.arange(len(rest))])
    return Merge(index, (*labels, *rest))
