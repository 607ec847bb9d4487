"""One thread for numeric libraries, within a block."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


@cache
def _threads(loaded: str) -> Any:
    """The thread pools of the libraries that are loaded; looking for them takes milliseconds."""
    del loaded  # another name, another look
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread(loaded: str = "numpy") -> AbstractContextManager[Any]:
    """Limit numeric libraries to one thread in a block.

    Results must not depend on the number of threads, and threads that wait for others cost more than they give.

    Parameters
    ----------
    loaded : str
        Name of a library that is loaded by now.
    """
    limit: AbstractContextManager[Any] = _threads(loaded).limit(limits=1)
    return limit
