"""The adapters of seven privacy libraries: their documented commands, and audits of the libraries themselves.

The libraries are installed into environments of their own, which are kept. An adapter without a known defect is flagged
with probability 3e-6 at most: alpha is 1e-6, and the tests of independence on two datasets have a false alarm of 1e-6
each. The libraries draw from their own entropy. Adapters with a known defect are asked for a few draws here: the defect
is a case of the corpus, see `tests.targets.test_corpus_cases`.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from auditor import SpecificationError, Verdict, audit
from auditor.cli.attack import Attack
from auditor.cli.main import cli
from auditor.datasets import RELATIONS
from auditor.privacy.guarantees import parse_claim
from auditor.targets.environments import check_requirements, pip_target
from auditor.targets.process import ProcessTarget
from auditor.targets.target_names import requirements_of
from tests.targets.adapters import ADAPTERS, Adapter

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "adapters"
#: tmlt.core (with Spark) and opacus (with PyTorch) fill a gigabyte each, so they are installed only if this is set.
LARGE = bool(os.environ.get("DPAUDIT_LARGE"))
#: Seven libraries have adapters, and so many of them must have run, whatever is set.
LEAST = 5
ALPHA, DRAWS = 1e-6, 4000

INSTALLED = [adapter for adapter in ADAPTERS if LARGE or not adapter.large]


def _named(adapter: Adapter) -> str:
    return adapter.name


@contextmanager
def running(adapter: Adapter) -> Iterator[ProcessTarget]:
    """The adapter's target; the test is skipped, with pip's message, where the library cannot be installed."""
    where = (FOLDER / adapter.where).relative_to(Path.cwd())
    try:
        target = pip_target(shlex.split(adapter.requirements), str(where))
    except SpecificationError as error:
        pytest.skip(str(error))
    with target:
        yield target


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


# A fresh environment is built by the test that needs it first, in up to two minutes on a busy machine.
@pytest.mark.parametrize("adapter", [a for a in INSTALLED if not (a.slow or a.defect)], ids=_named)
def test_audit_of_the_library(adapter: Adapter) -> None:
    with running(adapter) as target:
        found = audit(target, parse_claim(adapter.claim), adapter.pair, draws=DRAWS, alpha=ALPHA)
    assert found.verdict in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE), f"{found.message}: {found.event}"


@pytest.mark.parametrize("adapter", [a for a in INSTALLED if a.slow or a.defect], ids=_named)
def test_another_adapter_answers(adapter: Adapter) -> None:
    with running(adapter) as target:
        outputs = target(adapter.pair.y, 40, np.random.default_rng(0))
    assert len(outputs) == 40
    assert len({repr(output) for output in outputs}) > 1  # noise of scale 1 is alike 40 times with p < 1e-6


def test_five_libraries_at_least_have_run() -> None:
    ran, failed = set(), {}
    for adapter in {a.library: a for a in INSTALLED}.values():
        try:
            with pip_target(shlex.split(adapter.requirements), f"examples/adapters/{adapter.where}") as target:
                assert len(target(adapter.pair.y, 3, np.random.default_rng(0))) == 3
            ran.add(adapter.library)
        except SpecificationError as error:
            failed[adapter.library] = str(error)
    assert len(ran) >= LEAST, failed


def test_seven_libraries_have_adapters() -> None:
    assert {adapter.library for adapter in ADAPTERS} == {
        "diffprivlib",
        "opacus",
        "opendp",
        "pipeline-dp",
        "python-dp",
        "smartnoise-sql",
        "tmlt.core",
    }
    assert len({adapter.name for adapter in ADAPTERS}) == len(ADAPTERS)


def _commands(text: str) -> set[tuple[str, ...]]:
    """Commands in a document, of one line or several that end in a backslash."""
    joined = re.sub(r"\\\n\s*", " ", text)
    return {tuple(shlex.split(line)) for line in joined.splitlines() if line.strip().startswith("dpaudit attack 'pip:")}


def test_the_readme_and_the_files_document_every_adapter() -> None:
    documented = {tuple(adapter.command) for adapter in ADAPTERS}
    assert _commands((FOLDER / "README.md").read_text(encoding="utf-8")) == documented
    files: set[tuple[str, ...]] = set()
    for path in FOLDER.glob("*.py"):
        files |= _commands(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")), clean=False) or "")
    assert files == documented


@pytest.mark.parametrize("adapter", ADAPTERS, ids=_named)
def test_a_documented_command_is_read(adapter: Adapter) -> None:
    _, name, *options = adapter.command
    given = cli.commands["attack"].make_context(name, list(options)).params  # which refuses unknown options
    requirements = requirements_of(given["target"])
    assert check_requirements(requirements) == requirements
    assert all("==" in requirement for requirement in requirements)
    path, _, function = given["target"].rpartition("#")[2].rpartition(":")
    module = ast.parse(Path(path).read_text(encoding="utf-8"))
    functions = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    assert function in functions
    asked = Attack(**{key: given[key] for key in ("target", "claim", "relation", "domain", "rows", "least")})
    assert parse_claim(asked.claim).level > 0
    RELATIONS[adapter.relation]().check(adapter.pair)


def test_every_public_function_of_an_adapter_is_documented() -> None:
    for path in FOLDER.glob("*.py"):
        module = ast.parse(path.read_text(encoding="utf-8"))
        public = {n.name for n in module.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")}
        assert public == {a.where.rpartition(":")[2] for a in ADAPTERS if a.where.startswith(path.name)}, path.name
