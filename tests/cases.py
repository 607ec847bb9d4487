"""Check many small cases in one test: with a test for each, pytest would take longer than the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Case = TypeVar("Case")


def check_each(
    cases: Iterable[Case], name: Callable[[Case], str] = lambda case: str(getattr(case, "id", case))
) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """Make a test of a check that goes through all cases.

    It fails with the names of all that do not pass, and with what each of them says.
    """
    listed = list(cases)

    def make_test(check: Callable[[Case], None]) -> Callable[[], None]:
        def test() -> None:
            assert listed, "there are no cases"
            failed = dict[str, Exception]()
            for k, case in enumerate(listed):
                try:
                    check(case)
                except Exception as error:  # noqa: BLE001 - whatever it raises, the others are checked too
                    failed[f"{name(case)} (case {k})"] = error
            if failed:
                said = "\n".join(f"{named}: {type(error).__name__}: {error}" for named, error in failed.items())
                text = f"{len(failed)} of {len(listed)} fail: {', '.join(failed)}\n{said}"
                raise AssertionError(text) from next(iter(failed.values()))

        test.__name__, test.__qualname__, test.__doc__ = check.__name__, check.__qualname__, check.__doc__
        test.__module__ = check.__module__
        return test

    return make_test
