"""Claims of accuracy (L4), and statements that are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from auditor.audits.accuracy.base import Theorem
from auditor.audits.accuracy.errors import ErrorOf, Setting
from auditor.audits.accuracy.expectation import Expectation
from auditor.audits.accuracy.failure import HighProbability
from auditor.audits.accuracy.figure import Figure
from auditor.audits.accuracy.measures import Measure, Quantile
from auditor.audits.accuracy.phase import PhaseDiagram, Place
from auditor.audits.accuracy.scaling import PowerLaw
from auditor.audits.accuracy.smallest import Build, Search, SmallestParameter
from auditor.audits.given_numbers import read_numbers
from auditor.audits.inequality import TOLERANCE, Comparison, Inequality, Row
from auditor.claims.claim import Draft, check_case, read_expected
from auditor.errors import SpecificationError, check_number
from auditor.targets import Mechanism

#: Levels at which a computed statement may stand.
_COMPUTED = ("L0", "L2", "L4")


def accuracy(
    mechanism: Mechanism,
    data: Any,
    error: ErrorOf,
    *,
    at_most: float,
    beta: float,
    case: str = "reference",
    strict: bool = False,
    expected: str = "consistent",
    exact: float | None = None,
    draws: Mapping[str, int] | None = None,
    detect: float | None = None,
    independence: bool = True,
    is_mutant: bool = False,
    derived: bool = False,
    note: str = "",
    controls: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Draft:
    """Declare that the error is rarely above a bound (L4).

    With probability at least 1 - beta it is at most ``at_most``.

    Parameters
    ----------
    mechanism, data
        What is run, at the theorem's own parameters.
    error : callable
        From n outputs to their errors, array of shape (n,), see `auditor.audits.accuracy.Absolute`.
    at_most, beta, strict, exact
        See `auditor.audits.accuracy.HighProbability`.
    case : str
        Last part of the claim's id.
    expected : str
        Verdict that is expected.
    draws : mapping of str to int, optional
        Budgets that differ from `ACCURACY_BUDGETS`, by level; "full" is ten times what is stated for "standard".
    detect : float, optional
        Failure rate that is to be found, default twice beta.
    independence : bool
        Test first that draws are independent. Not for a mechanism whose draws are slow, where another claim of it does.
    is_mutant : bool
        The mechanism is a broken one, expected to deviate.
    derived : bool
        The constant is derived: the document states the claim with O(.) only.
    note : str
        A sentence for the report.
    controls : mapping of str to Mechanism, optional
        Broken versions in words, of which the check has to refute one; there are others, see
        `auditor.audits.accuracy.controls`.
    parameters : mapping, optional
        Parameters for the report.

    Raises
    ------
    SpecificationError
        If the case cannot be the last part of an id.
    """
    theorem, setting = HighProbability(at_most, beta, strict, exact), Setting(mechanism, data, error, at_most)
    described = (case, expected, draws, detect, is_mutant, derived, note, parameters, controls)
    return replace(_draft(theorem, setting, "L4", *described), independence=independence)


def expectation(
    mechanism: Mechanism,
    data: Any,
    error: ErrorOf,
    *,
    at_most: float,
    case: str = "reference",
    expected: str = "consistent",
    exact: float | None = None,
    draws: Mapping[str, int] | None = None,
    detect: float | None = None,
    is_mutant: bool = False,
    derived: bool = False,
    note: str = "",
    controls: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Draft:
    """Declare that the expected error is below a bound (L4).

    Parameters
    ----------
    mechanism, data, error
        As for `accuracy`.
    at_most : float
        The bound.
    exact : float, optional
        The expected error itself, where it is known, see `auditor.audits.accuracy.Expectation`.
    detect : float, optional
        Expected error that is to be found, default twice the bound.
    case, expected, draws, is_mutant, derived, note, controls, parameters
        As for `accuracy`.

    Raises
    ------
    SpecificationError
        If the case cannot be the last part of an id.
    """
    theorem, setting = Expectation(at_most, exact), Setting(mechanism, data, error)
    return _draft(theorem, setting, "L4", case, expected, draws, detect, is_mutant, derived, note, parameters, controls)


def smallest(
    build: Build,
    *,
    parameter: str,
    claimed: float,
    beta: float,
    low: float,
    high: float | None = None,
    resolution: float = 1.05,
    integer: bool = True,
    largest: bool = False,
    case: str = "reference",
    expected: str = "consistent",
    draws: Mapping[str, int] | None = None,
    is_mutant: bool = False,
    derived: bool = False,
    note: str = "",
    controls: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Draft:
    """Declare the smallest parameter that works (L4).

    ``claimed`` is a value that works; the smallest one that does is measured.

    Parameters
    ----------
    build : callable
        From a value of the parameter to a `Setting`, with the largest error that is no failure.
    parameter : str
        Its name.
    claimed : float
        The theorem's value.
    beta : float
        Allowed probability of failure.
    low, high : float
        Range of the search; default up to ``claimed`` (with ``largest``, up to 100 times it).
    resolution, integer, largest
        See `auditor.audits.accuracy.smallest.Search`.
    case, expected, draws, is_mutant, derived, note, controls, parameters
        As for `accuracy`.
    """
    check_number(f"case {case}: the claimed {parameter}", claimed)
    end = high if high is not None else 100 * claimed if largest else claimed
    theorem = SmallestParameter(parameter, claimed, Search(beta, low, end, resolution, integer, largest))
    return _draft(theorem, build, "L4", case, expected, draws, None, is_mutant, derived, note, parameters, controls)


def scaling(
    build: Callable[[Any], Any],
    *,
    parameter: str,
    at: Sequence[float],
    exponent: float,
    others: Sequence[float] = (),
    log_factor: Callable[[float], float] | None = None,
    measure: Measure | None = None,
    curve: Callable[[float], float] | None = None,
    within: float = 0.05,
    criterion: bool = True,
    benefit: bool = False,
    both: bool = False,
    figure: Figure | None = None,
    case: str = "reference",
    expected: str = "consistent",
    draws: Mapping[str, int] | None = None,
    is_mutant: bool = False,
    derived: bool = False,
    note: str = "",
    controls: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Draft:
    """Declare that a number grows as a power (L4).

    It is measured over values of a parameter.

    Parameters
    ----------
    build : callable
        From a value of the parameter to what ``measure`` measures: a `Setting` for `Quantile` and `Mean`, a function
        from a second parameter to a `Setting` for `Smallest`, a number for `Exactly`.
    parameter, at, exponent, others, log_factor, curve, within, criterion, benefit, both, figure
        See `auditor.audits.accuracy.PowerLaw`.
    measure : Measure, optional
        Default the median of the error.
    case, expected, draws, is_mutant, derived, note, controls, parameters
        As for `accuracy`; draws are shared equally by the values.
    """
    if not isinstance(others, Sequence | np.ndarray):
        raise SpecificationError(f"case {case}: others must be numbers, got {others!r}")
    theorem = PowerLaw(
        parameter,
        tuple(read_numbers(f"case {case}: at must be numbers", at).reshape(-1).tolist()),
        exponent,
        Quantile() if measure is None else measure,
        tuple(others),
        log_factor,
        curve,
        within,
        criterion,
        benefit,
        both,
        figure,
    )
    return _draft(theorem, build, "L4", case, expected, draws, None, is_mutant, derived, note, parameters, controls)


def phases(
    build: Place,
    diagram: PhaseDiagram,
    *,
    case: str = "reference",
    expected: str = "consistent",
    draws: Mapping[str, int] | None = None,
    is_mutant: bool = False,
    derived: bool = False,
    note: str = "",
    controls: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Draft:
    """Declare where trials succeed over two parameters (L4).

    A theorem promises successes on a part of the grid.

    Parameters
    ----------
    build : callable
        From values of the two parameters to a `Setting`, whose ``at_most`` is the largest error that is a success.
    diagram : PhaseDiagram
        The grid, and what is stated of its cells.
    case, expected, draws, is_mutant, derived, note, controls, parameters
        As for `accuracy`; draws are shared equally by the cells.
    """
    return _draft(diagram, build, "L4", case, expected, draws, None, is_mutant, derived, note, parameters, controls)


def inequality(
    rows: Callable[[], Sequence[Row]],
    *,
    statement: str,
    relation: Comparison = "<=",
    level: str = "L0",
    tolerance: float = TOLERANCE,
    case: str = "reference",
    expected: str = "consistent",
    is_mutant: bool = False,
    derived: bool = False,
    note: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> Draft:
    """Declare an inequality between computed numbers, without draws.

    In every row the left side is at most (below, equal to) the right one.

    Parameters
    ----------
    rows : callable
        Returns a list of (case in words, left, right); called when the claim is audited, not when it is loaded.
    statement : str
        In words.
    relation, tolerance
        See `auditor.audits.inequality.Inequality`.
    level : str
        L0 for a statement about a distribution, L2 for one about a component, L4 for one about accuracy.
    case, expected, is_mutant, derived, note, parameters
        As for `accuracy`.

    Raises
    ------
    SpecificationError
        If the level is another.
    """
    if level not in _COMPUTED:
        raise SpecificationError(f"case {case}: a computed statement is of level {', '.join(_COMPUTED)}, got {level!r}")
    theorem = Inequality(statement, relation, tolerance)
    return _draft(theorem, rows, level, case, expected, None, None, is_mutant, derived, note, parameters)


def _draft(
    theorem: Theorem,
    subject: Any,
    level: str,
    case: str,
    expected: str,
    draws: Mapping[str, int] | None,
    detect: float | None,
    is_mutant: bool,
    derived: bool,
    note: str,
    parameters: Mapping[str, Any] | None,
    controls: Mapping[str, Any] | None = None,
) -> Draft:
    check_case(case)
    for name, given in (("controls", controls), ("parameters", parameters)):
        if given is not None and not isinstance(given, Mapping):
            raise SpecificationError(f"case {case}: {name} must be by name, got {given!r}")
    setting = subject if isinstance(subject, Setting) else None
    if not (setting or callable(subject)):
        raise SpecificationError(f"case {case}: expected a function that builds settings, got {subject!r}")
    return Draft(
        level,
        case,
        theorem,
        setting.mechanism if setting else None,
        (),
        read_expected(expected, case),
        draws=draws or {},
        detect=detect,
        is_mutant=is_mutant,
        note=note,
        parameters={**(parameters or {}), **({"constant": "derived"} if derived else {})},
        datasets=(("given", setting.data),) if setting else (),
        subject=subject,
        controls={
            what: replace(setting, mechanism=control) if setting and not isinstance(control, Setting) else control
            for what, control in (controls or {}).items()
        },
    )
