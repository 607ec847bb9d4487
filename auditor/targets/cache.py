"""The user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path


def find_cache(part: str) -> Path:
    """Folder of one kind of cached files.

    It is in $DPAUDIT_CACHE, else $XDG_CACHE_HOME/dpaudit, else ~/.cache/dpaudit.

    Raises
    ------
    RuntimeError
        If none of these is set, and the user has no home.
    """
    own, user = os.environ.get("DPAUDIT_CACHE"), os.environ.get("XDG_CACHE_HOME", "")
    if own:
        return Path(own).absolute() / part
    # The standard says that a relative path there is to be ignored.
    base = Path(user) if Path(user).is_absolute() else Path.home() / ".cache"
    return base / "dpaudit" / part
