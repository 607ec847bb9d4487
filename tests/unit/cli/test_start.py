"""What a process imports: libraries that take long to load, only where they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import auditor
import dpaudit
from auditor.cli.main import RELATIONS as NAMES
from auditor.datasets import RELATIONS

#: Each takes longer to import than this package.
SLOW = ("pandas", "scipy.stats", "statsmodels", "sklearn")
MODULES = (
    "auditor.cli.main",
    "auditor.cli.attack",
    "auditor.runs.runner",
    "auditor.claims.registry",
    "auditor.audits.privacy",
    "auditor.audits.conformity",
    "auditor.targets.helper",
)

AUDIT = """
import numpy as np
import auditor

def noisy(data, size, rng):
    up, down = rng.geometric(1 - np.exp(-{level}), size=(2, size))
    return np.sum(data) + up - down

pair = auditor.Pair({x}, {y})
result = auditor.audit(noisy, auditor.PureDP(1.0), pair, relation=auditor.ReplaceOne(), draws=20_000)
assert result.verdict.value == "{verdict}", result
"""
SOURCES = {
    "arrays": ("np.zeros(5, int)", "np.array([0, 0, 1, 0, 0])"),
    "lists": ("[0, 0, 0]", "[0, 1, 0]"),
}


def _loaded(code: str, libraries: tuple[str, ...] = SLOW) -> list[str]:
    """Slow libraries that a new process has after running the code."""
    code = f"import sys\n{code}\nprint('loaded', *(name for name in {libraries!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("module", MODULES)
def test_importing_a_module_imports_no_slow_library(module: str) -> None:
    assert _loaded(f"import {module}") == []


def test_a_list_of_claims_needs_no_numpy() -> None:
    code = "import auditor.cli.main, auditor.cli.listing, auditor.runs.declarations"
    assert _loaded(code, ("numpy", "joblib")) == []


def test_the_help_names_all_relations() -> None:
    assert tuple(RELATIONS) == NAMES


@pytest.mark.parametrize(("level", "verdict"), [(1.0, "consistent"), (3.0, "violation")], ids=["kept", "broken"])
@pytest.mark.parametrize("data", SOURCES)
def test_an_audit_of_plain_data_imports_no_slow_library(data: str, level: float, verdict: str) -> None:
    x, y = SOURCES[data]
    modules = "\n".join(f"import {module}" for module in MODULES)
    assert _loaded(modules + AUDIT.format(x=x, y=y, level=level, verdict=verdict)) == []


def test_dpaudit_has_the_public_names() -> None:
    assert [name for name in auditor.__all__ if getattr(dpaudit, name) is not getattr(auditor, name)] == []
    assert {*auditor.__all__} <= {*dir(dpaudit)}
    assert dpaudit.__version__ == auditor.__version__
    names: dict[str, object] = {}
    exec("from dpaudit import *", names)
    assert {*auditor.__all__} <= {*names}
    with pytest.raises(AttributeError, match="'dpaudit' has no attribute 'audits'"):
        dpaudit.audits  # noqa: B018
