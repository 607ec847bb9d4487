"""Common parts of the HTML pages."""

from __future__ import annotations

import base64
import re
import zlib
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


def read_asset(name: str) -> str:
    """Read a file of this package.

    Git may have changed line ends on checkout; the bytes of a page must not change.
    """
    return (files("auditor.report") / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def create_environment() -> jinja2.Environment:
    """Create templates that escape everything and refuse unknown names."""
    import jinja2  # only what writes a page need load it

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(read_asset),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def without_indentation(page: str) -> str:
    """Strip a page of its template's indentation.

    It is a twentieth of a long page; no text has a line that begins with "<".
    """
    return re.sub(r"\n\s+(?=<)", "\n", page)


def pack_text(text: str) -> str:
    """Compress text for a data block of a page.

    `DecompressionStream` of a browser expands it. The bytes depend on the text and on the version of zlib.
    """
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()
