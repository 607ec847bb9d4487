"""One path of a call: which random numbers it drew, and what is known of them so far."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.targets.randomness.distributions import Distribution, MassTable, Points, plain_value
from auditor.targets.randomness.signals import OutOfBudget, TooUnlikely, Uncontrolled

#: Turns that go once over the values of a number; arbitrary, a prime near the number of runs that are made.
_TURNS = 31


class Unknown:
    """A random number that is known up to a set of values.

    Attributes
    ----------
    draws : frozenset of int
        Places of the draws that it is made of.
    joined : bool
        It has become part of another one.
    pair : tuple of Listed and ndarray, or None
        The one that it has become part of, with the place of its value for each of that one's; None where only some
        function of it is left, so that it cannot be looked at any more.
    """

    draws: frozenset[int]
    joined: bool = False
    pair: tuple[Listed, NDArray[np.intp]] | None = None

    @property
    def mass(self) -> float:
        """Probability of the values that are left."""
        raise NotImplementedError


class Listed(Unknown):
    """A random number with listed values.

    Attributes
    ----------
    left : ndarray of int
        Places of the values that are left.
    """

    def __init__(self, table: MassTable, draws: frozenset[int], parts: Sequence[tuple[Listed, NDArray[np.intp]]] = ()):
        self.values, self.masses, self.draws = table.values, table.masses, draws
        self.left = np.flatnonzero(table.masses > 0)
        self.parts = parts

    @property
    def mass(self) -> float:
        """Probability of the values that are left."""
        return float(self.masses[self.left].sum())

    def pick(self, turn: int) -> int:
        """Place of one of the values that are left.

        Parameters
        ----------
        turn : int
            0 for the likeliest, 1 for the last, 2 for the first; more for others.
        """
        if turn == 0:
            return int(self.left[np.argmax(self.masses[self.left])])
        return int(self.left[(-1, 0)[turn - 1] if turn <= 2 else turn * len(self.left) // _TURNS % len(self.left)])

    def numbers_at(self, place: int) -> dict[int, Any]:
        """Values of the draws that give the value at a place."""
        if not self.parts:
            (draw,) = self.draws
            return {draw: plain_value(self.values[place])}
        found: dict[int, Any] = {}
        for part, places in self.parts:
            found |= part.numbers_at(int(places[place]))
        return found


class Interval(Unknown):
    """A random number with equally likely points.

    Attributes
    ----------
    low, high : int
        The points that are left: from ``low`` to ``high - 1``.
    """

    def __init__(self, points: Points, draws: frozenset[int]):
        self.points, self.draws = points, draws
        self.low, self.high = points.first, points.count

    @property
    def mass(self) -> float:
        """Probability of the points that are left."""
        return (self.high - self.low) / self.points.count


@dataclass
class RandomPath:
    """A path through a call, from one decision to the next.

    Parameters
    ----------
    prefix : tuple of int
        Decisions that were taken before; later ones take the likeliest branch and leave the others.
    plain : frozenset of int
        Places of draws that are decided at once.
    deadline : float
        Time of `time.monotonic` at which the path ends.
    least : float
        Probability at which it is left: a loop may go on for ever.
    script : sequence, optional
        Numbers to give out instead: the call then sees plain numbers only.
    seeds : list of str
        Seeds of the generators that the call itself makes.
    """

    prefix: tuple[int, ...] = ()
    plain: frozenset[int] = frozenset()
    deadline: float = math.inf
    least: float = 0.0
    script: Sequence[Any] | None = None
    seeds: list[str] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    branches: list[tuple[float, tuple[int, ...]]] = field(default_factory=list)
    unknowns: list[Unknown] = field(default_factory=list)
    count: int = 0
    whole: bool = True
    caveats: set[str] = field(default_factory=set)

    def draw(self, distribution: Distribution) -> Any:
        """Draw an `Unknown`, or the plain number of the script."""
        self.check_time()
        place = self.count
        self.count += 1
        if self.script is not None:
            if place >= len(self.script):
                raise Uncontrolled("it draws other random numbers when it is run again")
            return self.script[place]
        draws = frozenset([place])
        if isinstance(distribution, Points):
            if distribution.caveat:
                self.caveats.add(distribution.caveat)
            unknown: Unknown = Interval(distribution, draws)
        else:
            self.whole &= distribution.whole
            self.caveats |= distribution.caveats
            unknown = Listed(distribution, draws)
        self.unknowns.append(unknown)
        return unknown

    def check_time(self) -> None:
        """Raise `OutOfBudget` when the time is up."""
        if time.monotonic() > self.deadline:
            raise OutOfBudget

    def decide(self, masses: Sequence[float]) -> int:
        """Take one of several branches.

        Parameters
        ----------
        masses : sequence of float
            Probability of each within what is left of one unknown; the others are independent.
        """
        live = [k for k, mass in enumerate(masses) if mass > 0]
        if len(live) == 1:
            return live[0]
        step = len(self.taken)
        if step < len(self.prefix):
            chosen = self.prefix[step]
        else:
            self.check_time()
            chosen = max(live, key=lambda k: masses[k])
            share = self.mass / math.fsum(masses)
            if share * masses[chosen] < self.least:
                raise TooUnlikely
            begun = tuple(self.taken)
            self.branches += [(share * masses[k], (*begun, k)) for k in live if k != chosen]
        self.taken.append(chosen)
        return chosen

    @property
    def mass(self) -> float:
        """Probability of the path so far.

        Unknowns that are not joined are independent.
        """
        return math.prod(unknown.mass for unknown in self.unknowns if not unknown.joined)

    def numbers(self, turn: int = 0) -> list[Any]:
        """Plain numbers of all draws that lead along this path.

        Of the values that are left, the likeliest at the first turn and others at later ones, see `Listed.pick`; of
        points, the middle one.

        Parameters
        ----------
        turn : int
            Which values.
        """
        found: dict[int, Any] = {}
        for unknown in self.unknowns:
            if unknown.joined:
                continue
            if isinstance(unknown, Listed):
                found |= unknown.numbers_at(unknown.pick(turn))
            elif isinstance(unknown, Interval):
                (draw,) = unknown.draws
                found[draw] = unknown.points.value((unknown.low + unknown.high) // 2)
        return [found[k] for k in range(self.count)]
