"""Errors that the package raises on purpose."""

from __future__ import annotations

import importlib
import importlib.util
import math
from pathlib import Path, PurePath

#: The extra of the installation that brings a library which only some audits use.
EXTRAS = {
    "cloudpickle": "run",
    "distributed": "dask",
    "dp_accounting": "training",
    "hypothesis": "search",
    "jinja2": "report",
    "joblib": "run",
    "matplotlib": "plot",
    "pandas": "data",
    "pyarrow": "data",
    "sklearn": "learn",
    "statsmodels": "accuracy",
}
#: Libraries that are installed under another name than the one that is imported.
_INSTALLED_AS = {"dp_accounting": "dp-accounting", "sklearn": "scikit-learn"}


class DpauditError(Exception):
    """Base class of the errors below."""


class SpecificationError(DpauditError, ValueError):
    """A value is not what a claim or an option needs.

    It is raised at load, and shows the value.
    """


class MissingLibraryError(SpecificationError, ImportError):
    """A library that only some audits use is not installed.

    The message names the extra that brings it.
    """


class UnrecordedError(SpecificationError):
    """The ledger cannot be written.

    Nothing may be drawn that would have to be counted in it.
    """


class StrategyError(SpecificationError):
    """An analyst or adversary raised, or did what it may not.

    Not the target is to blame, though it is in a call of the target that they ask it.

    Parameters
    ----------
    message : str
        Who did what.
    public : str, optional
        The same without anything that their exception said, which may hold private data.
    error : str, optional
        Class of the exception that it counts as, where it may be an outcome: what an analyst's code raises is a
        function of the transcript. Empty if it is none, and ends the audit.
    """

    def __init__(self, message: str, public: str | None = None, error: str = SpecificationError.__name__) -> None:
        super().__init__(message)
        self.public = message if public is None else public
        self.error = error


class TargetError(DpauditError, RuntimeError):
    """The target crashed, hung, or answered what cannot be read.

    Parameters
    ----------
    message : str
        What happened, with what the target said.
    public : str, optional
        The same without anything that the target said, which may hold private data.
    """

    def __init__(self, message: str, public: str | None = None) -> None:
        super().__init__(message)
        self.public = message if public is None else public


class TargetRaised(TargetError):  # noqa: N818 - it is what the target did
    """The target's own code raised.

    It is an outcome of the mechanism where it is asked for one draw.

    Parameters
    ----------
    error : str
        Class of the exception.
    message : str
        What happened, with what the target said.
    public : str, optional
        The same without anything that the target said.
    """

    def __init__(self, error: str, message: str, public: str | None = None) -> None:
        super().__init__(message, public)
        self.error = error


def has_library(name: str) -> bool:
    """Whether an optional library is installed; it is not imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # it is kept from being imported
        return False


def require_library(name: str, purpose: str) -> None:
    """Import an optional library, or name the extra that brings it.

    Parameters
    ----------
    name : str
        Its name in an import, one of `EXTRAS`.
    purpose : str
        What it is needed for, in the plural or as a gerund: "CSV files".

    Raises
    ------
    MissingLibraryError
        If it is not installed.
    """
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise MissingLibraryError(describe_missing(name, purpose)) from error


def describe_missing(name: str, purpose: str) -> str:
    """Describe an optional library that is missing.

    It says what the library is needed for, and how to get it.

    Parameters
    ----------
    name : str
        Its name in an import, one of `EXTRAS`.
    purpose : str
        What it is needed for, in the plural or as a gerund.

    Examples
    --------
    >>> describe_missing("pandas", "CSV files")
    "pandas is needed for CSV files: pip install 'dpaudit[data]'"
    """
    return f"{_INSTALLED_AS.get(name, name)} is needed for {purpose}: pip install 'dpaudit[{EXTRAS[name]}]'"


def suggest_extra(error: BaseException) -> str:
    """Suggest the extra that brings what could not be imported.

    Parameters
    ----------
    error : BaseException
        What was raised.

    Returns
    -------
    str
        To end a message; empty if no extra would.

    Examples
    --------
    >>> suggest_extra(ModuleNotFoundError("No module named 'pandas'", name="pandas"))
    " (pip install 'dpaudit[data]' brings it)"
    """
    missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return f" (pip install 'dpaudit[{EXTRAS[missing]}]' brings it)" if missing in EXTRAS else ""


def check_positive(name: str, value: object) -> float:
    """Check an option that must be a positive, finite number.

    Parameters
    ----------
    name : str
        What the option is called in the error.
    value : object
        What was given for it.

    Returns
    -------
    float
        The value.

    Raises
    ------
    SpecificationError
        If it is not.
    """
    if not _read_float(value) > 0:
        raise SpecificationError(f"{name} must be a positive number, got {value!r}")
    return check_number(name, value)


def check_number(name: str, value: object) -> float:
    """Check an option that must be a finite number.

    Parameters
    ----------
    name : str
        What the option is called in the error.
    value : object
        What was given for it.

    Returns
    -------
    float
        The value.

    Raises
    ------
    SpecificationError
        If it is not, or beyond all floats.
    """
    found = _read_float(value)
    if not math.isfinite(found):
        raise SpecificationError(f"{name} must be a finite number, got {value!r}")
    return found


def _read_float(value: object) -> float:
    """A number as a float, infinite if it is beyond all floats; NaN for what is none."""
    import numpy as np  # takes longer to import than all that a list of claims needs

    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def read_path(name: str, path: object) -> Path:
    """Read an option that must be a path.

    Parameters
    ----------
    name : str
        What the option is called in the error.
    path : object
        What was given for it.

    Raises
    ------
    SpecificationError
        If it is none.
    """
    if not isinstance(path, str | PurePath):
        raise SpecificationError(f"{name} must be a path, got {path!r}")
    return Path(path)


def check_id(id_: object) -> None:
    """Check the id of a result, which is a text.

    Raises
    ------
    SpecificationError
        If it is none, or empty.
    """
    if not isinstance(id_, str) or not id_:
        raise SpecificationError(f"id must be a text, got {id_!r}")


def check_alpha(alpha: object) -> None:
    """Check a probability of a false alarm.

    Raises
    ------
    SpecificationError
        If it is no number in (0, 1).
    """
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise SpecificationError(f"alpha must be a number in (0, 1), got {alpha!r}")


class PrivacyViolation(DpauditError, AssertionError):  # noqa: N818 - what it reports is not a fault of the program
    """Evidence against a privacy claim; the message is the counterexample."""
