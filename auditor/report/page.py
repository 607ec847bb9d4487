"""Common parts of the HTML pages."""

from __future__ import annotations

import re
from importlib.resources import files

import jinja2


def asset(name: str) -> str:
    """A file of this package. Line ends may have been changed by git on checkout; the bytes of a page must not."""
    return (files("auditor.report") / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def environment() -> jinja2.Environment:
    """Templates that escape everything, and in which a name that does not exist is an error."""
    return jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)


def without_indentation(page: str) -> str:
    """A page without its template's indentation, a twentieth of a long one; no text has a line that begins with "<"."""
    return re.sub(r"\n\s+(?=<)", "\n", page)
