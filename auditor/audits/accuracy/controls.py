"""Controls: broken versions of what a theorem is about, of which its check has to refute one.

A claim of accuracy that nothing refutes says nothing: its bound may be above every error that there can be. So a claim
that was not refuted is checked again on controls, with few draws, until one is refuted: the same mechanism with its
noise multiplied, more and more, then divided (a theorem may promise that an attack succeeds), and what the experiment
gives by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy.base import Theorem
from auditor.audits.accuracy.errors import Setting
from auditor.audits.context import Question
from auditor.audits.privacy_loop import Settings
from auditor.results import ANSWER_ZERO, AuditResult, Verdict
from auditor.targets.sampler import Sampler

#: Parameters that noise is inversely proportional to, and parameters that it is proportional to.
_INVERSE, _PROPORTIONAL = ("epsilon", "epsilons", "epsilon0", "step_epsilon", "rho", "mu"), ("scale", "sigma")
#: How much more noise there is, one after the other; and how much less. Arbitrary: a small factor says how much power
#: there is, and a large one makes any answer as good as a random one.
FACTORS = (2.0, 8.0, 64.0, 4096.0, 1 / 8, 1 / 4096)
#: Draws on a control, and the probability that one is called refuted that is not. A control fails in nearly every draw.
DRAWS, ALPHA = 120, 1e-3
#: How deep a parameter may be in mechanisms that are made of others.
_DEPTH = 6


@runtime_checkable
class Noisy(Protocol):
    """A mechanism that knows what it is with more noise, or less."""

    def with_noise(self, factor: float) -> Any:
        """The mechanism with ``factor`` times the noise."""


def scale_noise(mechanism: Any, factor: float, depth: int = _DEPTH) -> tuple[Any, tuple[str, ...]]:
    """A mechanism with its noise multiplied, and the parameters.

    None if no parameter is known to scale the noise.

    Parameters
    ----------
    mechanism : dataclass
        Built again with other values of the parameters that its noise is known to depend on, its own and those of the
        mechanisms that it is made of.
    factor : float
        By how much; below 1 there is less noise.
    """
    if isinstance(mechanism, Noisy):
        return mechanism.with_noise(factor), (f"{factor:g} times the noise",)
    if not is_dataclass(mechanism) or isinstance(mechanism, type) or depth == 0:
        return mechanism, ()
    changed: dict[str, Any] = {}
    names: list[str] = []
    for name in (field.name for field in fields(mechanism) if field.init):
        value = getattr(mechanism, name)
        if name in (*_INVERSE, *_PROPORTIONAL) and is_numeric(value):
            times = 1 / factor if name in _INVERSE else factor
            changed[name] = tuple(part * times for part in value) if isinstance(value, tuple) else value * times
            names.append(f"{times:g} {name}" if times > 1 else f"{name} / {1 / times:g}")
        elif callable(value):  # sizes that were computed for some epsilon are no part of the mechanism that has noise
            inner, said = scale_noise(value, factor, depth - 1)
            if said:
                changed[name] = inner
                names += said
    return (replace(mechanism, **changed), tuple(dict.fromkeys(names))) if changed else (mechanism, ())


def is_numeric(value: Any) -> bool:
    """Whether it is a number, or a tuple of some."""
    if isinstance(value, tuple):
        return bool(value) and all(map(is_numeric, value))
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def with_noise(subject: Any, factor: float, names: list[str]) -> Any:
    """A claim's subject with `scale_noise` mechanisms.

    ``names`` takes up the parameters that were changed, once it is built.

    Parameters
    ----------
    subject : object
        A `Setting`, or a function that builds one; anything else is returned as it is.
    factor : float
        Multiplies the noise.
    names : list of str
        Is added to.

    Returns
    -------
    object
        Of the kind of ``subject``.
    """
    if isinstance(subject, Setting):
        mechanism, said = scale_noise(subject.mechanism, factor)
        names += [name for name in said if name not in names]
        return replace(subject, mechanism=mechanism)
    if callable(subject):
        build: Callable[..., Any] = subject
        return lambda *values: with_noise(build(*values), factor, names)
    return subject


@dataclass(frozen=True, eq=False)
class Constant:
    """The same output, whatever the data.

    Parameters
    ----------
    output : array_like
        The output.
    """

    output: Any

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return the output ``n`` times; shape (n, ...)."""
        del data, rng
        value = np.asarray(self.output)
        return np.broadcast_to(value, (n, *value.shape)).copy()


def answer_zero(setting: Setting, settings: Settings, question: Question) -> Setting | None:
    """The setting of a mechanism that answers 0.

    Its outputs keep type and shape; None if they are no numbers.

    Parameters
    ----------
    setting : Setting
        Whose mechanism is replaced; it is drawn from once.
    settings : Settings
        Seed and limit of the draw.
    question : Question
        Its id keys the draw.
    """
    sampler = Sampler(setting.mechanism, settings.seed, f"{question.id}/control", settings.limit)
    output = sampler.draw(setting.data, 1, "zero")
    if not isinstance(output, np.ndarray) or output.dtype.kind not in "iufb":
        return None
    return replace(setting, mechanism=Constant(np.zeros_like(output[0])))


def add_basis_and_control(
    result: AuditResult,
    theorem: Theorem,
    subject: Any,
    settings: Settings,
    question: Question,
    given: Mapping[str, Any],
) -> AuditResult:
    """Add to a result how the statement was checked.

    And, unless it was refuted, what would have refuted it.

    In ``accuracy``, "basis" is "measured", "exact" or "computed", and "control" what would have refuted the statement.
    That is computed from the result, where the statement knows how; otherwise it is the first control that is refuted.
    None stands where there is neither: then nothing is known that the check could have found.

    Parameters
    ----------
    result : AuditResult
        A control is looked for if its verdict is "consistent".
    theorem, subject, settings, question
        What was checked, and how; of the settings, the seed and the limit count here.
    given : mapping of str to any
        Controls that are tried first: in words, and as a subject.
    """
    if not result.accuracy:
        return result
    found: dict[str, Any] = {**result.accuracy, "basis": theorem.basis}
    if result.verdict == Verdict.CONSISTENT:
        found["control"] = theorem.margin(result.accuracy)
        if found["control"] is None and theorem.drawn:
            found["control"] = find_refuted(theorem, subject, settings, question, given)
    return replace(result, accuracy=found)


def find_refuted(
    theorem: Theorem, subject: Any, settings: Settings, question: Question, given: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The first control that a statement's check refutes.

    None if it refutes none. See `add_basis_and_control`.

    Parameters
    ----------
    theorem : Theorem
        The statement.
    subject : object
        What it was checked on, see `Theorem.audit`.
    settings : Settings
        Of these, the seed and the limit count here.
    question : Question
        Its id keys the draws.
    given : mapping of str to object
        Controls that are tried first: in words, and as a subject.

    Returns
    -------
    dict or None
        ``what`` the control is, the ``message`` of its refutation, and ``zero`` if the answer 0 to everything is
        refuted, too.
    """
    few = Settings(
        alpha=ALPHA, draws=DRAWS, stop="verdict", seed=settings.seed, limit=settings.limit, independence=False
    )

    def refuted(control: Any, k: int) -> str | None:
        """The message of the refutation; None if there is none."""
        part, place = theorem.trial(control)
        with np.errstate(all="ignore"):  # a mechanism that is broken on purpose may overflow or divide by 0
            found = part.audit(place, replace(few, draws=DRAWS * part.places), Question(f"{question.id}/control/{k}"))
        return found.message if found.verdict == Verdict.DEVIATION else None

    found: dict[str, Any] | None = None
    for k, (what, control) in enumerate(given.items(), 1):
        if (message := refuted(control, k)) is not None:
            found = {"what": what, "message": message}
            break
    for k, factor in enumerate(FACTORS if found is None else (), len(given) + 1):
        names: list[str] = []
        try:
            message = refuted(with_noise(subject, factor, names), k)
        except (ValueError, ArithmeticError):  # there is no mechanism with such parameters
            continue
        if not names:
            break
        if message is not None:
            found = {"what": ", ".join(names), "message": message}
            break
    if not isinstance(subject, Setting) or (constant := answer_zero(subject, settings, question)) is None:
        return found
    message = refuted(constant, 0)
    if found is None:
        return None if message is None else {"what": ANSWER_ZERO, "message": message, "zero": True}
    return found if message is None else {**found, "zero": True}
