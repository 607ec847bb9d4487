"""What a target's exception says, and where it was raised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from auditor.errors import TargetError
from auditor.targets.sources import ENGINE, is_installed


def find_raise(error: BaseException) -> str:
    """Find the line that raised.

    A text such as " (mine.py, line 12)". It is the innermost line in a file of the user's, else the innermost one at
    all. The text is empty if only the auditor's own code was on the way, as for a call that a function does not take.
    """
    lines: list[tuple[str, int]] = []
    at = error.__traceback__
    while at is not None:
        lines.append((at.tb_frame.f_code.co_filename, at.tb_lineno))
        at = at.tb_next
    lines = [line for line in lines if not line[0].startswith(str(ENGINE))]
    if not lines:
        return ""
    file, number = ([line for line in lines if not _is_library(line[0])] or lines)[-1]
    return f" ({Path(file).name}, line {number})"


def describe_error(error: BaseException) -> str:
    """Describe an exception by its text, on one line."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the text of an error of somebody else's
        return ""
    return " ".join(text.split()) if "\n" in text else text


@contextmanager
def catch_exits() -> Iterator[None]:
    """Turn what would end the interpreter within a block into `TargetError`.

    A target that calls ``sys.exit(0)`` would be a pass else, and one that calls ``sys.exit(1)`` a finding.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        what = f"the target raised {type(error).__name__}"
        said = describe_error(error)
        raise TargetError(f"{what}: {said}" if said else what, public=what) from error


@lru_cache(maxsize=1024)
def _is_library(file: str) -> bool:
    return file.startswith("<") or is_installed(Path(file))
