"""Names of targets without the secrets in them."""

from __future__ import annotations

import re


def without_secrets(text: str) -> str:
    """The text without what may be secret in the URLs in it: user names, passwords and queries.

    What else may be secret cannot be told from its form: a token in a URL's path, or an option of a command, is shown.
    """
    return re.sub(r"(:/[^\s?#]*)\?[^\s#]*", r"\1?...", re.sub(r"(:/+)[^/\s]*@", r"\1...@", text))
