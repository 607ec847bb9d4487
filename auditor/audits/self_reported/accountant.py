"""Bounds from both sides on the true epsilon of the events that an accountant counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

from auditor.privacy.exact import GaussianCurve, LaplaceCurve, PessimisticCurve, PrivacyCurve
from auditor.privacy.exact.composition import composed_parts

#: Events of an accountant; arbitrary, more than any accountant lists whose steps are alike.
_MOST_EVENTS = 20
#: Steps with Laplace noise, whose losses are convolved, times the number of events: so many take some ten seconds.
_MOST_CONVOLVED = 20_000
#: Steps of one event: more than any training run has.
_MOST_STEPS = 10_000_000
#: Spacing of dp-accounting's grid of privacy losses, its default. The losses of one step of each event take at most so
#: many points together, about two seconds, and the composed losses at most the last number.
_STEP, _POINTS, _MOST_POINTS = 1e-4, 200_000, 5_000_000
#: Losses beyond so many standard deviations are left out when the size of a grid is estimated.
_REACH = 12.0


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


#: Least delta at which a sampled composition is bounded, and what dp-accounting may have of mass beside it: it cuts
#: tails of 1e-15 a composition, and transforms of 10^6 losses are rounded by some 1e-14 together (measured against
#: exact curves: below 1e-14 at 400 steps). At this delta the mass moves the lower bound by less than 0.1 %.
LEAST_DELTA, _MASS = 1e-10, 1e-12


@dataclass(frozen=True)
class Event:
    """Noise added to queries on samples of the rows.

    It is added some times.

    Parameters
    ----------
    kind : {"gaussian", "laplace"}
    scale : float
        Standard deviation, or scale, over the sensitivity.
    count : int
        How often.
    sampling : float
        Probability with which each row is in the sample, independently (Poisson sampling); 1 for no sampling.
    """

    kind: str
    scale: float
    count: int
    sampling: float

    @property
    def curve(self) -> PrivacyCurve:
        """Curve of one step, without sampling."""
        return GaussianCurve(1 / self.scale) if self.kind == "gaussian" else LaplaceCurve(1 / self.scale)

    @property
    def span(self) -> float:
        """Width of the privacy losses of one step, about."""
        return 1 / self.scale**2 + 2 * _REACH / self.scale if self.kind == "gaussian" else 2 / self.scale


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
    At delta = 0 epsilons add; a sampled event has ``ln(1 + q (e^eps - 1))``. Otherwise dp-accounting bounds the sampled
    composition from above, by connecting dots of the privacy curve. Its error is of second order in the spacing h of
    the grid (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022): e(2h) is about 4 e(h), and at least 2 e(h). Hence
    u(2h) - u(h) = e(2h) - e(h) >= e(h), and the true value is at least u(h) - (u(2h) - u(h)). What is computed has a
    mass of up to m beside that: tails that are cut off and taken as infinite losses, and rounding. So u(h) is replaced
    by its value at delta + m, which is at most the one at delta without that mass; u(2h) is at most too large. Below
    `LEAST_DELTA` that mass would decide, and nothing is bounded.
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
    if sum(map(_width, events)) > _MOST_POINTS * _spacing(events):
        return "so little noise, or so many steps, would need a grid of too many privacy losses"
    if delta < LEAST_DELTA:
        return f"sampled events can be bounded at a delta of {LEAST_DELTA:g} or more, got {delta:g}"
    step = _spacing(events)
    try:
        fine, less = (_by_dp_accounting(events, at, step) for at in (delta, delta + _MASS))
        coarse = _by_dp_accounting(events, delta, 2 * step)
    except ImportError:
        return "sampled events need dp-accounting, which is not installed"
    if not math.isfinite(coarse):
        return f"the composition of sampled events has no finite bound at a delta of {delta:g}"
    return max(0.0, min(fine, 2 * less - coarse)), fine


def _largest_loss(event: Event) -> float:
    if event.kind == "gaussian":
        return math.inf
    epsilon = 1 / event.scale
    if event.sampling == 1 or epsilon > 700:  # e^epsilon is no double then, and sampling hardly helps
        return epsilon + (math.log(event.sampling) if epsilon > 700 else 0.0)
    return math.log1p(event.sampling * math.expm1(epsilon))


def _width(event: Event) -> float:
    """Width of the composed privacy losses of one event's steps, about: that of a Gaussian of the same variance."""
    # The variance of a sampled likelihood ratio, capped where it overflows; the sum of the widths is a bound too.
    exponent = event.span if event.kind == "laplace" else 1 / event.scale**2
    variance = event.count * event.sampling**2 * math.expm1(min(exponent, 700.0))
    return min(variance + 2 * _REACH * math.sqrt(variance), event.count * event.span)


def _spacing(events: tuple[Event, ...]) -> float:
    return max(_STEP, sum(event.span for event in events) / _POINTS)


def _by_dp_accounting(events: tuple[Event, ...], delta: float, step: float) -> float:
    """Upper bound on epsilon, with losses on a grid of this spacing."""
    return float(_losses(events, step).get_epsilon_for_delta(delta))


@lru_cache(maxsize=8)  # one accountant's events are asked for twice, at two spacings
def _losses(events: tuple[Event, ...], step: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    made = {"gaussian": pld.from_gaussian_mechanism, "laplace": pld.from_laplace_mechanism}
    composed = [
        made[event.kind](event.scale, value_discretization_interval=step, sampling_prob=event.sampling).self_compose(
            event.count
        )
        for event in events
    ]
    return reduce(lambda one, two: one.compose(two), composed)


def shorten_value(value: object) -> str:
    """A value in at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
