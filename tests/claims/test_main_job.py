"""The main job: `dpaudit run experiments`, as a process, from the command line to the reports."""

from __future__ import annotations

import fcntl
import json
import math
import re
import resource
import statistics
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from auditor import report
from auditor.claims import registry
from auditor.report.words import make_slugs
from auditor.results import parse_number
from auditor.runs.manifest import build_manifest
from auditor.runs.run import Run

ROOT = Path(__file__).resolve().parents[2]
#: Seconds after which the job hangs.
HANGS = 3_000
#: The time that the job kept a core busy, in units of `_take_yardstick` while it ran: machines differ in speed, and one
#: machine from day to day by a factor of two. Twice as much is allowed, as the job's work is not that of the yardstick.
RATIO = 15_000
#: Seconds between looks at the yardstick; arbitrary.
PAUSE = 10
#: Bytes that a report may have to open at once in a browser.
LARGEST_REPORT = 2_500_000


@dataclass(frozen=True)
class Job:
    code: int
    out: str
    err: str
    busy: float
    folder: Path
    content: dict[str, Any]

    @property
    def claims(self) -> list[dict[str, Any]]:
        return list(self.content["claims"])


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Job:
    """One run for all tests, at the defaults: a change that changes the draws may fail by chance, one in a hundred.

    The workers of pytest-xdist share it: the first one makes it while the others wait.
    """
    shared = tmp_path_factory.getbasetemp().parent / f"main-job-{testrun_uid}"
    shared.mkdir(exist_ok=True)
    folder, said = shared / "out", shared / "said.json"
    with open(shared / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            said.write_text(json.dumps(_run_job(folder)), encoding="utf-8")
    content = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return Job(**json.loads(said.read_text(encoding="utf-8")), folder=folder, content=content)


def _run_job(folder: Path) -> dict[str, Any]:
    """Exit code and output of a run by two workers, and the time that it kept a core busy."""
    before, units = resource.getrusage(resource.RUSAGE_CHILDREN), [_take_yardstick()]
    command = [*(sys.executable, "-m", "auditor", "run", "experiments"), *("--jobs", "2", "--out", str(folder))]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(HANGS // PAUSE):
            try:
                out, err = process.communicate(timeout=PAUSE)
                break
            except subprocess.TimeoutExpired:
                units.append(_take_yardstick())
        else:
            process.kill()
            raise TimeoutError(f"the main job took more than {HANGS} seconds")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"code": process.returncode, "out": out, "err": err, "busy": seconds / statistics.median(units)}


def _take_yardstick() -> float:
    """Seconds of a core for a piece of work like the engine's: many calls of numpy on small arrays."""
    rng, begun = np.random.default_rng(0), time.process_time()
    for _ in range(10_000):
        values = np.sort(rng.random(64))
        np.cumsum(values).searchsorted(0.5)
    return time.process_time() - begun


def test_everything_is_as_expected(job: Job) -> None:
    surprises = [(c["id"], c["verdict"], c["expected"], c["message"]) for c in job.claims if not c["ok"]]
    assert surprises == []
    assert job.code == 0, job.err


def test_every_declared_claim_was_audited(job: Job) -> None:
    declared = [claim.id for claim in registry.load_claims(Run().paths)]  # as others name them, so loaded once
    assert [claim["id"] for claim in job.claims] == declared
    assert job.content["manifest"]["claims_selected"] == len(declared)


def test_it_is_quick(job: Job) -> None:
    assert job.busy < 2 * RATIO


def test_no_lower_bound_is_above_the_exact_level(job: Job) -> None:
    assert [c["id"] for c in job.claims if c["sandwich"].startswith("failed")] == []
    compared, outputs = 0, [claim for claim in job.claims if claim["level"] == "L1"]
    for claim in outputs:
        bound, exact = parse_number(claim["lower_bound"]), parse_number(claim["exact"])
        if bound is not None and exact is not None:
            assert bound <= exact * (1 + 1e-8) + 1e-9, claim["id"]
            compared += 1
    assert compared > len(outputs) / 2


def test_violations_come_with_an_example_and_nothing_else_does(job: Job) -> None:
    for claim in job.claims:
        refuted = claim["verdict"] == "violation" and claim["level"] != "L0"
        assert (claim["counterexample"] is not None) == refuted, claim["id"]
        if refuted:
            assert claim["log10_max_e_value"] >= -math.log10(claim["alpha"])
            bound = parse_number(claim["lower_bound"])
            assert bound is not None
            assert bound >= claim["claimed_level"] * (1 - 1e-8)  # written to 8 digits


def test_every_claim_that_holds_says_what_would_have_been_found(job: Job) -> None:
    for claim in job.claims:
        if claim["verdict"] == "consistent" and claim["level"] == "L1":
            bound, resolves, ceiling = (parse_number(claim[k]) for k in ("lower_bound", "resolves", "ceiling"))
            assert bound is not None
            assert resolves is not None
            assert ceiling is not None
            assert bound < ceiling, claim["id"]
            assert claim["claimed_level"] < resolves <= claim["detect"], claim["id"]


def test_every_claim_of_accuracy_that_holds_has_something_that_refutes_it(job: Job) -> None:
    """Each names a broken version that its check refuted; limits of an exponent may need the standard level's draws."""
    for claim in job.claims:
        found = claim["accuracy"]
        if claim["verdict"] != "consistent" or not found:
            continue
        assert found["basis"] in ("measured", "exact", "computed")
        if found["control"] is None:
            assert (found["kind"], found.get("criterion")) == ("exponent", True), claim["id"]
            assert found["basis"] == "measured", claim["id"]


def test_what_was_asked_has_the_same_hash_in_another_process(job: Job) -> None:
    asked = Run()
    here = build_manifest(asked, registry.load_claims(asked.paths))
    assert job.content["manifest"]["specification_hash"] == here["specification_hash"]
    assert job.content["manifest"]["source_hash"] == here["source_hash"]


def test_the_summary_has_one_line_an_entry_on_standard_output(job: Job) -> None:
    heading, *rows, empty, totals = job.out.splitlines()
    assert (heading.split()[0], empty) == ("entry", "")
    counted = Counter(claim["entry"] for claim in job.claims)
    assert [(row.split()[0], int(row.split()[1])) for row in rows] == list(counted.items())
    said = f"{len(job.claims):,} claims: {len(job.claims):,} as expected, 0 unexpected; --table lists each"
    assert totals == said


def test_progress_goes_to_standard_error_a_line_every_few_seconds(job: Job) -> None:
    progress = [line for line in job.err.splitlines() if line.startswith("[")]
    assert progress[-1].startswith(f"[{len(job.claims)}/{len(job.claims)}] ")
    assert 1 < len(progress) < len(job.claims) / 4
    assert {line.split()[-1] for line in progress} <= {claim["id"] for claim in job.claims}
    assert "Traceback" not in job.err
    assert "Warning" not in job.err
    assert "auditing" not in job.out


def test_the_reports_are_written_and_of_a_size_to_open(job: Job) -> None:
    names = {"results.json", "run.json", "report.html", "report.md", "junit.xml", "results.sarif"}
    assert {path.name for path in job.folder.iterdir()} == names
    assert (job.folder / "report.html").stat().st_size < LARGEST_REPORT
    jsonschema.validate(job.content, report.read_schema())
    cases = ET.parse(job.folder / "junit.xml").getroot().iter("testcase")
    assert len(list(cases)) == len(job.claims)
    assert json.loads((job.folder / "results.sarif").read_text(encoding="utf-8"))["runs"][0]["results"] == []
    ids = [claim["id"] for claim in job.claims]
    text = (job.folder / "report.md").read_text(encoding="utf-8").replace("\\_", "_")
    assert all(id_ in text for id_ in ids)
    page = (job.folder / "report.html").read_text(encoding="utf-8")
    assert set(make_slugs(ids)) <= set(re.findall(r"<tr id=(\S+) ", page))
