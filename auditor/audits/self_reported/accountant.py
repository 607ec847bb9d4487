"""Bounds from both sides on the true epsilon of the events that an accountant counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from auditor.audits.self_reported.sampled_events import Event, bound_sampled_events
from auditor.privacy.exact import PessimisticCurve, PrivacyCurve
from auditor.privacy.exact.composition import composed_parts

#: Events of an accountant; arbitrary, more than any accountant lists whose steps are alike.
_MOST_EVENTS = 20
#: Steps with Laplace noise, whose losses are convolved, times the number of events: so many take some ten seconds.
_MOST_CONVOLVED = 20_000
#: Steps of one event: more than any training run has.
_MOST_STEPS = 10_000_000


class StatementError(ValueError):
    """A target's statement about itself cannot be read.

    The message shows the value and what was expected.
    """


@dataclass(frozen=True)
class SelfReport:
    """One object in a target's statement, checked on reading.

    Parameters
    ----------
    name : str
        Where it stands.
    values : mapping
    """

    name: str
    values: Mapping[str, Any]

    @classmethod
    def of(cls, name: str, value: object) -> SelfReport:
        """Read an object.

        Parameters
        ----------
        name : str
            Where it stands, for messages.
        value : object
            As read from JSON.

        Raises
        ------
        StatementError
            If it is none.
        """
        if not isinstance(value, Mapping):
            raise StatementError(f"{name} must be a JSON object, got {shorten_value(value)}")
        return cls(name, value)

    def number(self, key: str, expected: str, default: float | None = None) -> float:
        """A finite number, or the default where there is none.

        Parameters
        ----------
        key : str
            Name of the value.
        expected : str
            What it should be, for the message.
        default : float or None
            In place of a missing value; None if it must be there.

        Raises
        ------
        StatementError
            If it is not a finite number.
        """
        value = self.values.get(key, default)
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                found = float(value)
            except OverflowError:
                found = math.inf
            if math.isfinite(found):
                return found
        raise StatementError(f"{self.name}: {key} must be {expected}, got {shorten_value(value)}")

    def positive(self, key: str, default: float | None = None) -> float:
        """A finite number above 0.

        Parameters
        ----------
        key : str
            Name of the value.
        default : float or None
            In place of a missing value; None if it must be there.

        Raises
        ------
        StatementError
            If it is something else.
        """
        expected = "a finite number above 0"
        value = self.number(key, expected, default)
        if value <= 0:
            raise StatementError(f"{self.name}: {key} must be {expected}, got {value!r}")
        return value

    def least(self, key: str, least: float, default: float | None = None) -> float:
        """A finite number of at least ``least``.

        Parameters
        ----------
        key : str
            Name of the value.
        least : float
            Smallest value allowed.
        default : float or None
            In place of a missing value; None if it must be there.

        Raises
        ------
        StatementError
            If it is something else.
        """
        expected = f"a finite number of at least {least:g}"
        value = self.number(key, expected, default)
        if value < least:
            raise StatementError(f"{self.name}: {key} must be {expected}, got {value!r}")
        return value


def events_of(stated: SelfReport) -> tuple[Event, ...]:
    """Read the events of an accountant.

    Raises
    ------
    StatementError
        If they cannot be read.
    """
    listed = stated.values.get("events")
    if not isinstance(listed, list | tuple) or not 1 <= len(listed) <= _MOST_EVENTS:
        raise StatementError(
            f"accountant: events must be a list of 1 to {_MOST_EVENTS} objects, got {shorten_value(listed)}"
        )
    return tuple(_event(one) for one in listed)


def _event(one: object) -> Event:
    kind = next(iter(one)) if isinstance(one, Mapping) and len(one) == 1 else None
    if kind not in ("gaussian", "laplace") or not isinstance(one, Mapping):
        raise StatementError(
            f'accountant: an event must be {{"gaussian": ...}} or {{"laplace": ...}}, got {shorten_value(one)}'
        )
    stated = SelfReport.of(f"accountant: {kind}", one[kind])
    if "noise_multiplier" in stated.values:
        scale = stated.positive("noise_multiplier")
    else:
        scale = stated.positive("scale") / stated.positive("sensitivity", 1.0)
    count, sampling = stated.least("count", 1.0, 1.0), stated.positive("sampling_probability", 1.0)
    if count != int(count) or count > _MOST_STEPS:
        raise StatementError(f"{stated.name}: count must be an integer of 1 to {_MOST_STEPS}, got {count!r}")
    if sampling > 1:
        raise StatementError(f"{stated.name}: sampling_probability must be in (0, 1], got {sampling!r}")
    return Event(str(kind), scale, int(count), sampling)


def curve_of_events(stated: SelfReport) -> PrivacyCurve | None:
    """Curve of the composition; None where there is a sampled event.

    Raises
    ------
    StatementError, ValueError
        If the events cannot be read, or are too many for a composition.
    """
    events = events_of(stated)
    if any(event.sampling < 1 for event in events):
        return None
    steps = len(events) * sum(event.count for event in events if event.kind == "laplace")
    if steps > _MOST_CONVOLVED:
        raise ValueError(
            f"at most {_MOST_CONVOLVED} steps with Laplace noise, times events, can be composed, got {steps}"
        )
    return _compose_events(events)


@lru_cache(maxsize=8)  # asked for twice: the curve holds what took long to compute
def _compose_events(events: tuple[Event, ...]) -> PrivacyCurve:
    return composed_parts([(event.curve, event.count) for event in events])


def accountant_levels(stated: SelfReport, delta: float) -> tuple[float, float] | str:
    """Bounds on the true epsilon of the stated events.

    At a delta, for adding or removing a row.

    Parameters
    ----------
    stated : SelfReport
        The statement's events.
    delta : float
        In [0, 1).

    Returns
    -------
    (float, float) or str
        A lower and an upper bound; or why there are none.

    Raises
    ------
    StatementError, ValueError
        If the events cannot be read, or are too many for a composition.

    Notes
    -----
    Without sampling the bounds are those of `auditor.privacy.exact`: equal, or a composition bounded from both sides.
    At delta = 0 epsilons add; a sampled event has ``ln(1 + q (e^eps - 1))``. For other sampled events see
    `bound_sampled_events`.
    """
    events = events_of(stated)
    if delta >= 1:
        raise StatementError(f"accountant: delta must be in [0, 1), got {delta!r}")
    if delta == 0.0:
        total = math.fsum(event.count * _largest_loss(event) for event in events)
        return total, total
    found = curve_of_events(stated)
    if found is not None:
        lower = found.optimistic if isinstance(found, PessimisticCurve) else found
        return lower.epsilon(delta), found.epsilon(delta)
    return bound_sampled_events(events, delta)


def _largest_loss(event: Event) -> float:
    if event.kind == "gaussian":
        return math.inf
    epsilon = 1 / event.scale
    if event.sampling == 1 or epsilon > 700:  # e^epsilon is no double then, and sampling hardly helps
        return epsilon + (math.log(event.sampling) if epsilon > 700 else 0.0)
    return math.log1p(event.sampling * math.expm1(epsilon))


def shorten_value(value: object) -> str:
    """A value in at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
