"""Checks of self-reported parameters against the claim: noise, sensitivity, accountant, seed.

These checks stand beside the statistical audit. They find what is wrong in what is stated, not in what is drawn: a
failed check is a deviation, and no violation by itself. A target states by its attribute ``states``, a process in the
first line it says; both hold the same JSON object, of which all parts are optional::

    {"noise": {"distribution": "laplace", "scale": 2.0, "sensitivity": 1.0},
     "query": "sum",
     "accountant": {"events": [{"gaussian": {"noise_multiplier": 1.0, "count": 100, "sampling_probability": 0.01}},
                               {"laplace": {"scale": 4.0, "sensitivity": 1.0}}],
                    "epsilon": 1.5, "delta": 1e-5},
     "seeded": true}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.audits.self_reported.accountant import (
    SelfReport,
    StatementError,
    accountant_levels,
    curve_of_events,
    shorten_value,
)
from auditor.datasets import Pair
from auditor.datasets.rows import count_rows, has_rows
from auditor.errors import TargetError
from auditor.privacy.exact import (
    DiscreteGaussianLaw,
    GaussianCurve,
    LaplaceCurve,
    PessimisticCurve,
    PrivacyCurve,
    TwoSidedGeometricLaw,
    curve,
)
from auditor.privacy.guarantees import ZCDP, ApproxDP, DeltaDP, Guarantee
from auditor.targets.outputs import Batch, hash_outputs
from auditor.targets.process_settings import call_target
from auditor.targets.sampler import GuardedCall, Sampler

Array: TypeAlias = NDArray[np.float64]

#: A level may exceed the claimed one by this part before a check fails: scales are stated with some seven digits.
SLACK = 1e-6
#: Draws that are compared with one another. Thirty-two coins agree by luck with probability 3e-10.
DRAWS = 32
#: Independent draws are taken for repeated ones with this probability at most.
FALSE_ALARM = 1e-6
#: 1/scale of integer noise is taken to be this at most: e^700 is the largest base of geometric noise that is a double.
#: What is found is then less than the level.
_STEEPEST = 700.0
#: Geometric noise of a larger scale is taken for Laplace noise, from which its level differs by the inverse of the
#: scale; its base is so close to 1 that a double has too few digits of the difference.
_WIDE = 1e9
#: Discrete Gaussian noise is listed but for mass of this size, which decides at a smaller delta.
_LISTED = 1e-40
_GEOMETRIC = ("geometric", "discrete laplace")
_NORM = {"laplace": 1, "geometric": 1, "discrete laplace": 1, "gaussian": 2, "discrete gaussian": 2}
#: Other names of these distributions.
_ALIASES = {
    "two-sided geometric": "geometric",
    "discrete_laplace": "discrete laplace",
    "normal": "gaussian",
    "discrete_gaussian": "discrete gaussian",
}
#: Noiseless queries that can be stated by name, of the rows as they are.
_QUERIES: Mapping[str, Callable[[Array], Any]] = {
    "sum": lambda rows: rows.sum(axis=0),
    "count": len,
    "mean": lambda rows: rows.mean(axis=0),
}


@dataclass(frozen=True)
class Check:
    """Outcome of one check.

    Parameters
    ----------
    name : str
        What was checked: "statement", "noise scale", "sensitivity", "accountant", "accountant and claim" or
        "determinism".
    passed : bool or None
        None where it could not be checked; ``finding`` says why.
    finding : str
        What was found, in words.
    """

    name: str
    passed: bool | None
    finding: str


def states_of(target: Any) -> Any:
    """Statements of a target about itself.

    Its attribute ``states``, or that of the function it is made of; else empty.
    """
    own = getattr(target, "states", None)
    return own if own is not None else getattr(getattr(target, "function", None), "states", None) or {}


def check_statements(
    states: Any,
    guarantee: Guarantee,
    pairs: Sequence[Pair],
    sampler: Sampler | None = None,
    *,
    private: bool = False,
) -> list[Check]:
    """Check what a target states of itself.

    Parameters
    ----------
    states : mapping
        See the module; anything else is a statement that cannot be read. What is not there is not checked, and not
        mentioned.
    guarantee : Guarantee
        The claim.
    pairs : sequence of Pair
        Neighbouring datasets on which a stated sensitivity is tried.
    sampler : Sampler, optional
        If given, determinism is checked on the first pair, with `DRAWS` draws three times; and a method
        ``query(data)`` of its target is tried as the noiseless query.
    private : bool
        Findings hold nothing that was computed from the datasets.

    Returns
    -------
    list of Check
        Never raises for what a target states: a statement that cannot be read is a failed check that shows it.
    """
    checks: list[Check] = []
    if not isinstance(states, Mapping):
        checks.append(
            Check("statement", False, f"what the target states must be a JSON object, got {shorten_value(states)}")
        )
        states = {}
    if "noise" in states:
        checks.append(_run_check("noise scale", lambda: check_noise(states["noise"], guarantee)))
        query = _query(states, sampler)
        if query is not None:
            checks.append(
                _run_check("sensitivity", lambda: check_sensitivity(states["noise"], query, pairs, private=private))
            )
    if "accountant" in states:
        checks.append(_run_check("accountant", lambda: check_accountant(states["accountant"])))
        checks.append(_run_check("accountant and claim", lambda: check_events(states["accountant"], guarantee)))
    if sampler is not None and pairs:
        inferred = getattr(getattr(sampler.target, "hello", None), "inferred", False)
        says = states.get("seeded", None if inferred else getattr(sampler.target, "seeded", None))
        checks.append(check_determinism(sampler, pairs[0].x, says if isinstance(says, bool) else None))
    return checks


def _run_check(name: str, check: Callable[[], Check]) -> Check:
    """A check, failed if the statement cannot be read, and not made if the distributions in it cannot be computed."""
    try:
        # Upper bounds of compositions with hundreds of nats overflow to infinity, which bounds them as well. And
        # a query may be infinite on both datasets.
        with np.errstate(over="ignore", invalid="ignore"):
            return check()
    except StatementError as error:
        return Check(name, False, str(error))
    except (ValueError, ArithmeticError, MemoryError) as error:
        return Check(name, None, f"not checked: it cannot be computed: {error}")


# ----------------------------------------------------------------------------------------- noise


def check_noise(noise: Any, guarantee: Guarantee) -> Check:
    """Check that stated noise has at most the claimed level.

    At the stated sensitivity.

    Parameters
    ----------
    noise : object
        The statement's noise, as read from JSON.
    guarantee : Guarantee
        The claim.

    Raises
    ------
    StatementError
        If the noise cannot be read.

    Notes
    -----
    Valid because: the level is computed from the exact privacy curve of two distributions whose centres are the stated
    sensitivity apart, which is what a query that attains its sensitivity in one number gives. The check fails only if
    every query that attains the sensitivity gives more than is claimed. That is so for Gaussian noise, whose curve
    depends on the Euclidean norm alone, and for a pure claim: the largest loss of Laplace or geometric noise depends on
    the sum of absolute differences alone; also for integer noise and a sensitivity of 1, which cannot be spread over
    several numbers. Other sensitivities can, and may then give less, so that a level above the claim is not held
    against it. A pass speaks of a query that moves in one number. Discrete Gaussian noise at a sensitivity that is no
    integer moves several numbers, by an unknown vector: its rho is at most that of Gaussian noise (Canonne, Kamath and
    Steinke 2020, theorem 14), which can show that a claim of rho holds, and no more. At an integer it has just that
    rho, however it is spread.
    """
    stated = SelfReport.of("noise", noise)
    kind, scale, sensitivity = _noise_of(stated)
    what = f"{kind} noise of scale {scale:g} at sensitivity {sensitivity:g}"
    if kind == "discrete gaussian" and sensitivity != round(sensitivity):
        return _spread_gaussian(guarantee, sensitivity / scale, what)
    found = _check_against(guarantee, noise_curve(kind, scale, sensitivity), "noise scale", what)
    if kind in _GEOMETRIC and sensitivity and 1 / scale > _STEEPEST and found.passed:
        return Check(found.name, None, f"not checked: {what} is too little for its level to be computed")
    if kind == "discrete gaussian" and isinstance(guarantee, ApproxDP | DeltaDP) and 0 < guarantee.delta < _LISTED:
        return Check(found.name, None, f"not checked: {what} is listed for a delta of {_LISTED:g} or more")
    depends = {
        "laplace": not _is_pure(guarantee),
        "gaussian": False,
        "discrete gaussian": sensitivity > 1 and not isinstance(guarantee, ZCDP),
    }.get(kind, sensitivity > 1 and not _is_pure(guarantee))
    if found.passed is False and depends:
        return Check(
            found.name,
            None,
            f"not checked: {found.finding} if the query moves by that in one number; over several it may give less",
        )
    return found


def _is_pure(guarantee: Guarantee) -> bool:
    return isinstance(guarantee, ApproxDP) and guarantee.delta == 0


def _spread_gaussian(guarantee: Guarantee, ratio: float, what: str) -> Check:
    """Discrete Gaussian noise on several numbers; ``ratio`` is the Euclidean sensitivity over the scale."""
    if not isinstance(guarantee, ZCDP):
        return Check("noise scale", None, f"not checked: {what}, in several numbers, is only known by its rho")
    rho = ratio**2 / 2
    if rho <= guarantee.rho * (1 + SLACK):
        return Check("noise scale", True, f"{what} gives ρ ≤ {rho:.6g}, within the claimed {guarantee}")
    return Check("noise scale", None, f"not checked: {what} gives ρ ≤ {rho:.6g}, and may give less than that")


def _noise_of(stated: SelfReport) -> tuple[str, float, float]:
    asked = stated.values.get("distribution")
    kind = _ALIASES.get(asked.lower(), asked.lower()) if isinstance(asked, str) else ""
    if kind and kind not in _NORM:
        raise ValueError(f"the distribution of {shorten_value(asked)} noise is not known here, only {', '.join(_NORM)}")
    if not kind:
        raise StatementError(f"noise: distribution must be one of {', '.join(_NORM)}, got {shorten_value(asked)}")
    scale, sensitivity = stated.positive("scale"), stated.least("sensitivity", 0.0)
    if kind in _GEOMETRIC and sensitivity != round(sensitivity):
        raise StatementError(f"noise: integer noise needs a sensitivity that is an integer, got {sensitivity!r}")
    return kind, scale, sensitivity


def noise_curve(distribution: str, scale: float, sensitivity: float) -> PrivacyCurve:
    """Exact curve of noise on one number that moves by the sensitivity.

    Parameters
    ----------
    distribution : {"laplace", "geometric", "discrete laplace", "gaussian", "discrete gaussian"}
    scale : float
        Density or probability proportional to ``exp(-|z| / scale)`` for the first three, ``exp(-z^2 / (2 scale^2))``
        for the others; above 0.
    sensitivity : float
        At least 0; an integer for noise on integers.

    Raises
    ------
    ValueError
        If the distribution is too wide to be tabulated.
    """
    if distribution == "laplace":
        return LaplaceCurve(sensitivity / scale)
    if distribution == "gaussian":
        return GaussianCurve(sensitivity / scale)
    shift = int(sensitivity)
    if distribution in _GEOMETRIC and scale > _WIDE:
        return LaplaceCurve(sensitivity / scale)
    if distribution in _GEOMETRIC:
        base = math.exp(min(1.0 / scale, _STEEPEST))
        return curve(TwoSidedGeometricLaw(0, base), TwoSidedGeometricLaw(shift, base))
    return curve(DiscreteGaussianLaw(0, scale), DiscreteGaussianLaw(shift, scale))


def _check_against(guarantee: Guarantee, found: PrivacyCurve, name: str, what: str) -> Check:
    level = guarantee.exact_level(found)
    passed = bool(level <= guarantee.level * (1 + SLACK))
    than = "within" if passed else "more than"
    return Check(name, passed, f"{what} gives {guarantee.symbol} = {level:.6g}, {than} the claimed {guarantee}")


# ----------------------------------------------------------------------------------- sensitivity


def _query(states: Mapping[str, Any], sampler: Sampler | None) -> Callable[[Any], Any] | str | None:
    """The target's own noiseless query, or what it is stated to be."""
    own = getattr(sampler.target, "query", None) if sampler is not None else None
    if sampler is not None and callable(own):
        limit = sampler.limit

        def asked(data: Any) -> Any:
            with GuardedCall("the query", "a noiseless answer", limit):
                return call_target(own, data)

        return asked
    return states.get("query")


def check_sensitivity(
    noise: Any, query: Callable[[Any], Any] | str, pairs: Sequence[Pair], *, private: bool = False
) -> Check:
    """Check that the noiseless query keeps its stated sensitivity.

    On each pair.

    Parameters
    ----------
    noise : mapping
        The stated noise. Answers of several numbers are compared by the norm that belongs to it: the sum of absolute
        differences, for Gaussian noise the Euclidean one.
    query : callable or {"sum", "count", "mean"}
        By name: of the rows as they are, so a target that clips its rows must offer a query that does.
    pairs : sequence of Pair
    private : bool
        Say on which pair, and not by how much.

    Notes
    -----
    Valid because: sensitivity is a maximum over all neighbours, so one pair on which the query moves by more refutes
    it. Pairs on which it does not prove nothing, and the finding says how many were tried.
    """
    kind, _, sensitivity = _noise_of(SelfReport.of("noise", noise))
    query_of = query if callable(query) else _named_query(query)
    moves: list[tuple[float, str]] = []
    for pair in pairs:
        if query == "mean" and 0 in [count_rows(data) for data in (pair.x, pair.y) if has_rows(data)]:
            continue  # no rows have no mean
        try:
            x, y = (np.asarray(query_of(data), dtype=np.float64).ravel() for data in (pair.x, pair.y))
        except TargetError as error:
            return Check("sensitivity", None, f"not checked: {error.public if private else error}")
        except (TypeError, ValueError):
            return Check("sensitivity", None, "not checked: the rows or the query's answers are not numbers")
        if x.shape != y.shape:
            return Check("sensitivity", False, f'the query has {x.size} and {y.size} numbers on the pair "{pair.name}"')
        move = float(np.linalg.norm(x - y, ord=_NORM[kind]))
        if not math.isfinite(move):
            return Check("sensitivity", False, f'the query is not a finite number on the pair "{pair.name}"')
        moves.append((move, pair.name))
    if not moves:
        return Check("sensitivity", None, "not checked: there is no pair on which the query has an answer")
    move, name = max(moves, key=lambda found: found[0])
    if move > sensitivity * (1 + SLACK):
        by = "" if private else f": by {move:.6g}"
        return Check(
            "sensitivity", False, f'the query moves by more than the stated {sensitivity:g} on the pair "{name}"{by}'
        )
    most = "" if private else f"; by {move:.6g} at most"
    return Check(
        "sensitivity", True, f"the query moves by at most the stated {sensitivity:g} on {len(moves)} pairs{most}"
    )


def _named_query(query: object) -> Callable[[Any], Any]:
    if not isinstance(query, str) or query not in _QUERIES:
        raise StatementError(f"query must be one of {', '.join(map(repr, _QUERIES))}, got {shorten_value(query)}")
    return lambda data: _QUERIES[query](np.asarray(data, dtype=np.float64))


# ------------------------------------------------------------------------------------ accountant


def check_accountant(accountant: Any) -> Check:
    """Check that an accountant's figure is not too low.

    It is not below the true epsilon of its events, at its delta.

    Notes
    -----
    Valid because: the true epsilon is bracketed (`accountant_levels`), and the check fails only if the figure is below
    the lower end. A figure that is too large is safe; the finding says by how much.
    """
    stated = SelfReport.of("accountant", accountant)
    figure, delta = stated.least("epsilon", 0.0), stated.least("delta", 0.0)
    levels = accountant_levels(stated, delta)
    if isinstance(levels, str):
        return Check("accountant", None, f"not checked: {levels}")
    low, high = levels
    says = f"the accountant says ε = {figure:.6g} at δ = {delta:g}"
    if figure < low * (1 - SLACK):
        return Check("accountant", False, f"{says}; its events give at least {low:.6g}")
    if high == 0.0:
        return Check("accountant", True, f"{says}; its events give 0")
    loose = f", {figure / high:.3g} times that" if figure > high * (1 + SLACK) else ""
    return Check("accountant", True, f"{says}; its events give {high:.6g}{loose}")


def check_events(accountant: Any, guarantee: Guarantee) -> Check:
    """Check that composed events have at most the claimed level.

    Parameters
    ----------
    accountant : object
        The statement's events, as read from JSON.
    guarantee : Guarantee
        The claim.

    Raises
    ------
    StatementError
        If the events cannot be read.

    Notes
    -----
    Valid because: it fails only if a lower bound is above the claim: for epsilon and delta the lower end of
    `accountant_levels`, for other notions the composed curve, which is exact or has a curve below it.
    """
    name, stated = "accountant and claim", SelfReport.of("accountant", accountant)
    what = "the composition of the stated events"
    if isinstance(guarantee, ApproxDP | DeltaDP):
        levels = accountant_levels(stated, guarantee.delta)
        if isinstance(levels, str):
            return Check(name, None, f"not checked: {levels}")
        passed = bool(levels[0] <= guarantee.epsilon * (1 + SLACK))
        found, than = (levels[1], "within") if passed else (levels[0], "more than")
        return Check(name, passed, f"{what} gives ε = {found:.6g}, {than} the claimed {guarantee}")
    composed = curve_of_events(stated)
    if composed is None:
        return Check(name, None, f"not checked: sampled events are held against ε and δ only, not {guarantee}")
    lower = composed.optimistic if isinstance(composed, PessimisticCurve) else composed
    return _check_against(guarantee, lower, name, what)


# ----------------------------------------------------------------------------------- determinism


def check_determinism(sampler: Sampler, data: Any, says: bool | None) -> Check:
    """Check that a target repeats itself under its seed only.

    Parameters
    ----------
    sampler : Sampler
        Its draws here are keyed by "determinism".
    data : dataset
    says : bool or None
        Whether the target says that it is seeded.

    Notes
    -----
    Valid because: a target that says it is seeded and answers the same request in two ways contradicts itself. For
    two answers that must be independent (other seeds, or none) let the first be followed by the second: if all draws
    are independent, then given which values occur, every order of them is equally likely. The answers agree in
    n! (2 c_1)! (2 c_2)! ... / ((2n)! c_1! c_2! ...) of these orders, where c_i is how often a value occurs in one of
    them. Only where that is below 1e-6 are equal answers held against the target.
    """
    name = "determinism"
    try:
        first = sampler.draw(data, DRAWS, name, "one")
        again = sampler.draw(data, DRAWS, name, "one")
        other = sampler.draw(data, DRAWS, name, "two")
    except TargetError as error:
        return Check(name, None, f"not checked: {error.public}")
    repeats = bool((hash_outputs(first) == hash_outputs(again)).all())
    if says and not repeats:
        return Check(
            name, False, "it says that it is seeded, and answers otherwise when asked again with the same seed"
        )
    if (hash_outputs(first) == hash_outputs(other)).all():
        if chance_of_agreement(first) < FALSE_ALARM:
            return Check(name, False, "constant seed: its outputs are the same whatever the seed")
        return Check(name, None, "not checked: its outputs vary too little to tell a constant seed from luck")
    if repeats:
        return Check(name, True, "it repeats itself with the same seed, and does not with another")
    return Check(name, True, "it has entropy of its own: it does not repeat itself")


def chance_of_agreement(outputs: Batch) -> float:
    """Probability that independent draws repeat these outputs.

    Given the values of both; see above.
    """
    _, counts = np.unique(hash_outputs(outputs), return_counts=True)
    n = int(counts.sum())
    logs = special.gammaln(2 * counts + 1) - special.gammaln(counts + 1)
    return float(np.exp(special.gammaln(n + 1) - special.gammaln(2 * n + 1) + logs.sum()))
