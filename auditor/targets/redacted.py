"""Names of targets without the secrets in them."""

from __future__ import annotations

import re


def without_secrets(text: str) -> str:
    """Redact user names, passwords and queries in URLs.

    What else may be secret cannot be told from its form: a token in a URL's path, or an option of a command, is shown.
    """
    return re.sub(r"(:/[^\s?#]*)\?[^\s#]*", r"\1?...", re.sub(r"(:/+)[^/\s]*@", r"\1...@", text))
