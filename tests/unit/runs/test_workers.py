"""Where the claims of a run are audited."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from auditor.claims import registry
from auditor.runs import workers
from auditor.runs.run import Run
from auditor.runs.runner import execute_run
from auditor.targets.prefetch import POSSIBLE, Meeting
from tests.commandline import declare

SLOW = """
    import os
    def slow(data, n, rng):
        open(os.path.join({folder!r}, str(os.getpid())), "w").close()
        time.sleep({seconds})
        return lawless(data, n, rng)
"""
CLAIM = '    yield privacy(slow, PureDP(1.0), PAIR, case="{case}")\n'


def processes(tmp_path: Path, seconds: float, *cases: str) -> set[int]:
    """Processes in which the claims of a run with two jobs draw."""
    place = tmp_path / "processes"
    place.mkdir()
    body = SLOW.format(folder=str(place), seconds=seconds) + "".join(CLAIM.format(case=case) for case in cases)
    run = Run(paths=(str(declare(tmp_path, body)),), jobs=2, draws=400)
    outcome = execute_run(run, registry.load_claims(run.paths))
    assert [result.verdict.value for result in outcome.results] == ["inconclusive"] * len(cases)
    return {int(path.name) for path in place.iterdir()}


def test_a_run_of_one_claim_is_audited_in_its_own_process(tmp_path: Path) -> None:
    assert processes(tmp_path, 0.0, "one") == {os.getpid()}


def test_a_run_of_several_claims_is_audited_by_workers(tmp_path: Path) -> None:
    assert os.getpid() not in processes(tmp_path, 0.0, "one", "two")


@pytest.mark.parametrize(("jobs", "alone"), [(1, False), (1, True), (2, True)])
def test_numeric_libraries_have_one_thread_in_the_process_of_the_command(jobs: int, alone: bool) -> None:
    with threadpool_limits(2), workers.start_workers(Run(jobs=jobs), alone=alone):
        assert {library["num_threads"] for library in threadpool_info()} == {1}


@pytest.mark.skipif(not POSSIBLE, reason="processes meet by sockets of Unix")
def test_one_claim_whose_draws_take_long_looks_for_a_partner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Callable[[Any], Any]] = []
    asked: list[int] = []

    @contextmanager
    def hire(find: Callable[[Any], Any]) -> Iterator[Callable[[], None]]:
        found.append(pickle.loads(pickle.dumps(find)))
        yield lambda: asked.append(os.getpid())

    monkeypatch.setattr(workers, "hire_partner", hire)
    assert processes(tmp_path, 0.02, "one") == {os.getpid()}
    assert asked
    (find,) = found
    (claim,) = registry.load_claims((str(tmp_path / "claims.py"),))
    assert find(claim.id) is claim.draft.mechanism


def test_a_worker_whose_command_was_killed_removes_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(os, "_exit", lambda _: ended.set())
    folder = tmp_path / "meeting"
    folder.mkdir()
    workers._end_with(Meeting(str(folder), parent=-1))
    assert ended.wait(10)
    assert not folder.exists()
