"""What a process imports: libraries that take long to load, only where they are used."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import auditor
import dpaudit
from auditor.cli.main import RELATIONS as NAMES
from auditor.datasets import RELATIONS
from auditor.errors import EXTRAS, describe_missing
from tests.commandline import FINE, HEADER, ROOT

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


#: What a machine with the core alone does, in one process that cannot import anything else.
CORE = """
import contextlib, io, sys
for name in {blocked!r}:
    sys.modules[name] = None
from pathlib import Path
import numpy as np
import auditor
from auditor.cli.main import main
from auditor.errors import MissingLibraryError

def run(*words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = 0
        try:
            main(words)
        except SystemExit as stop:
            code = stop.code
    return code, out.getvalue(), err.getvalue()

def noisy(data, n, rng):
    return np.sum(data) + rng.laplace(scale=0.25, size=n)

pair = auditor.Pair(np.array([0]), np.array([1]))
result = auditor.audit(noisy, auditor.PureDP(1.0), pair, draws=20_000)
assert result.verdict == "violation", result
assert result._repr_html_() is None
Path("target.py").write_text("def noisy(data, n, rng):\\n    return data.sum() + rng.laplace(scale=0.25, size=n)\\n")
attack = "attack target.py:noisy --claim epsilon=1 --relation replace-one --domain 0,1 --draws 20000".split()
code, out, err = run(*attack)
assert code == 1 and "violates its claim" in out, (out, err)
code, out, err = run(*attack, "--out", "out")
assert code == 1, (out, err)
assert "no report.html: jinja2 is needed for reports in HTML: pip install 'dpaudit[report]'" in err, err
assert sorted(p.name for p in Path("out").iterdir()) == [
    "junit.xml", "report.md", "results.json", "results.sarif", "run.json"
]
Path("claims.py").write_text('''{claims}''')
code, out, err = run("run", "claims.py", "--draws", "26000", "--alpha", "1e-6")
assert code == 0, (out, err)
assert "3 claims: 3 as expected" in out
code, out, err = run("report", "out/results.json")
assert code == 0 and "no report.html: jinja2" in err, (out, err)
Path("x.csv").write_text("a\\n0\\n")
for words, library, extra in (
    ("run claims.py --jobs 2", "joblib is needed for several workers", "run"),
    ("run claims.py --backend dask", "distributed is needed for --backend dask", "dask"),
    ("check target.py:noisy --data x.csv", "data file 'x.csv': pandas is needed for CSV files", "data"),
    ("calibrate --quick", "jinja2 is needed for `dpaudit calibrate`", "report"),
):
    code, out, err = run(*words.split())
    assert code == 2 and out == "", (words, out, err)
    assert err.count("\\n") == 1, err
    assert err.startswith(f"dpaudit: {{library}}") and f"pip install 'dpaudit[{{extra}}]'" in err, err
for call, extra in (
    (lambda: auditor.pairs_of(auditor.ReplaceOne(), [0, 1]), "search"),
    (lambda: auditor.audit(noisy, auditor.PureDP(1.0), pair, learners="logistic"), "learn"),
    (lambda: auditor.check_mechanism(noisy, np.array([0])), "run"),
    (lambda: auditor.results_to_frame([result]), "data"),
    (result.plot, "plot"),
):
    try:
        call()
    except MissingLibraryError as error:
        assert f"pip install 'dpaudit[{{extra}}]'" in str(error), error
    else:
        raise AssertionError(extra)
print("done")
"""


def test_the_core_alone_audits_a_function(tmp_path: Path) -> None:
    code = CORE.format(blocked=(*EXTRAS, "markupsafe", "rich"), claims=HEADER + FINE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "done\n", done.stderr


def test_every_extra_that_is_named_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for library, extra in EXTRAS.items():
        said = re.search(r"^(\S+) is needed .*'dpaudit\[(\w+)\]'$", describe_missing(library, "a test"))
        assert said is not None
        assert any(re.match(rf"{re.escape(said[1])}\b", line) for line in extras[extra]), library
        assert said[2] == extra
        assert all(not re.match(rf"{re.escape(said[1])}\b", line) for line in project["dependencies"])
    (everything,) = extras["all"]
    assert set(re.findall(r"\w+", everything)) == {"dpaudit", *EXTRAS.values()} - {"dask"}
