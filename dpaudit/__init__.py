"""dpaudit: the public names of `auditor`, under the name by which they are installed.

They are imported when they are asked for: every session of pytest loads `dpaudit.pytest_plugin`, which must not load
`auditor`, nor a package of that name in somebody's project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor import *  # noqa: F403
    from auditor import __version__ as __version__


def __getattr__(name: str) -> Any:
    import auditor

    if name in (*auditor.__all__, "__all__", "__version__"):
        return getattr(auditor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    import auditor

    return [*globals(), *auditor.__all__]
