"""Errors that the package raises on purpose."""

from __future__ import annotations


class DpauditError(Exception):
    """Base class of the errors below."""


class SpecificationError(DpauditError, ValueError):
    """A claim, a pair, an option or a declaration is not what it must be. Raised at load, shows the value."""


class TargetError(DpauditError, RuntimeError):
    """The audited target crashed, hung past its limit, or answered what cannot be read."""


class PrivacyViolation(DpauditError, AssertionError):  # noqa: N818 - what it reports is not a fault of the program
    """Evidence against a privacy claim; the message is the counterexample."""
