"""What every mechanism here is, and what a mutant says about itself.

A mechanism is a frozen dataclass that is callable as ``mechanism(data, n, rng)`` and returns `n`
independent draws, trial axis first. Where its output distribution is known it also has ``law(data)``, whose
outcomes are the outputs themselves. It draws from the generator it is given and from nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.targets import Mechanism as Mechanism
from auditor.targets.mutants import Mutant as Mutant
from auditor.targets.mutants import Twin as Twin

Dataset: TypeAlias = Any
"""A pandas DataFrame (rows are people), an array or a sequence; each query says what it reads."""

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

Base = TypeVar("Base")


class HasEpsilon(Protocol):
    """Anything that claims a pure privacy level."""

    @property
    def epsilon(self) -> float:
        """The claimed level."""
        ...


@dataclass(frozen=True)
class TimesEpsilon:
    """A true level that is `factor` times the claimed one (for `Mutant.true_level`)."""

    factor: float

    def __call__(self, base: HasEpsilon) -> float:
        """Return ``factor * base.epsilon``."""
        return self.factor * base.epsilon


def unbounded(base: object) -> float:  # noqa: ARG001 -- the signature of Mutant.true_level
    """Return `inf`: no pure level holds."""
    return math.inf


def tabulate_mutants(*mutants: Mutant[Base]) -> dict[str, Mutant[Base]]:
    """Return the mutants keyed by name; ValueError if a name repeats."""
    named = {mutant.name: mutant for mutant in mutants}
    if len(named) != len(mutants):
        raise ValueError(f"expected distinct names, got {[mutant.name for mutant in mutants]}")
    return named


def require(condition: bool, expected: str, value: object) -> None:
    """Raise a ValueError that says what was expected and shows `value`, unless `condition`."""
    if not condition:
        raise ValueError(f"expected {expected}, got {value!r}")


def require_positive(name: str, value: float) -> None:
    """Raise a ValueError unless `value` is a finite number > 0."""
    require(isinstance(value, (int, float)) and 0 < value < math.inf, f"a finite {name} > 0", value)


def require_draws(n: int) -> None:
    """Raise a ValueError unless `n` is a positive integer."""
    require(isinstance(n, (int, np.integer)) and n >= 1, "a number of draws n >= 1", n)
