"""Private learning with real learners on real data, end to end: teachers, released labels, students.

Run as ``python -m benchmarks.knowledge_transfer [--jobs 2] [--resume] [--out reports/knowledge_transfer.md]``. Each
finished part is a line of the journal (``--journal``): after Ctrl-C, a kill or a power cut, the same command with
``--resume`` does the rest. With a complete journal it writes the report again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import joblib
import numpy as np
import sklearn

from auditor.privacy.exact import composition
from auditor.report.figures import FigureView
from benchmarks import teachers, theorems
from benchmarks.teachers import LEARNERS, TASKS, StudyCell, measured
from benchmarks.transfer_report import EPSILONS, RUNS, STUDENTS, Results, ResultTable, document, plots
from mechanisms.selection import sparse_vector
from mechanisms.teacher_ensembles import online_leaks, online_release, vote_aggregation, vote_distance

SCHEMA = "knowledge-transfer/1"

# ------------------------------------------------------------------------------------ the work


def cells(repetitions: int) -> list[StudyCell]:
    """All parts of the study, the slow ones first."""
    return [
        StudyCell(task, learner, repetition)
        for task in reversed(TASKS)
        for learner in reversed(LEARNERS)
        for repetition in range(repetitions)
    ]


def about(repetitions: int) -> dict[str, Any]:
    """All that results depend on."""
    code = hashlib.sha256()
    for module in (teachers, online_leaks, online_release, sparse_vector, vote_aggregation, vote_distance, composition):
        code.update(Path(str(module.__file__)).read_bytes())
    settings = {"repetitions": repetitions, "epsilons": list(EPSILONS), "runs": RUNS, "students": STUDENTS}
    return {**settings, "code": code.hexdigest()[:16], "numpy": np.__version__, "scikit-learn": sklearn.__version__}


class StudyJournal:
    """Finished parts, a line each, appended and forced to the disk.

    Parameters
    ----------
    path : Path
        The file.
    run : mapping
        See `about`.
    resume : bool
        Go on with the file. False: a file that is there is kept under another name.

    Raises
    ------
    ValueError
        If the file is of another run; nothing is changed then.
    """

    def __init__(self, path: Path, run: Mapping[str, Any], resume: bool) -> None:
        self.path = path
        self.finished: Results = {}
        head = {"schema": SCHEMA, **run}
        if resume and path.exists():
            self.finished = _read(path, head)
        elif path.exists():
            path.replace(path.with_name(path.name + ".old"))
        path.parent.mkdir(parents=True, exist_ok=True)
        partial_file = path.with_name(path.name + ".part")
        lines = [head, *self.finished.values()]
        partial_file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        partial_file.replace(path)

    def append(self, result: dict[str, Any]) -> None:
        """Keep a finished part."""
        self.finished[str(result["key"])] = result
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _read(path: Path, head: Mapping[str, Any]) -> Results:
    first, *lines = path.read_text(encoding="utf-8").split("\n")
    try:
        known = json.loads(first)
    except ValueError:
        known = None
    if known != head:
        raise ValueError(f"expected the journal of {json.dumps(head)} in {path}, got {first[:400]!r}")
    found: Results = {}
    for line in filter(None, lines):
        try:
            result = json.loads(line)
            found[str(result["key"])] = result
        except (ValueError, KeyError, TypeError):
            continue  # the line that was being written when the power failed: its part runs again
    return found


@contextmanager
def progress(total: int, done: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal, a line a part elsewhere, both on standard error; yields what counts a finished part."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        count = iter(range(done + 1, total + 1))
        yield lambda key: print(f"[{next(count)}/{total}] {key}", file=sys.stderr, flush=True)
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total, completed=done)
        yield lambda key: bar.update(task, advance=1, description=key)


def study(
    wanted: Sequence[StudyCell], journal: StudyJournal, jobs: int, work: Callable[[StudyCell], dict[str, Any]]
) -> Results:
    """Do what is not in the journal, on several cores; results do not depend on their number."""
    left = [cell for cell in wanted if cell.key not in journal.finished]
    with (
        warnings.catch_warnings(),
        progress(len(wanted), len(wanted) - len(left)) as count,
        joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1),
    ):
        # After an interruption joblib says what it cancelled; `main` says what is kept.
        warnings.filterwarnings("ignore", message=".*have been cancelled", category=UserWarning)
        for result in joblib.Parallel(return_as="generator_unordered")(joblib.delayed(work)(cell) for cell in left):
            journal.append(result)
            count(str(result["key"]))
    return {cell.key: journal.finished[cell.key] for cell in wanted}


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the study and write the report; 130 if it was interrupted, 2 if the journal is of another run."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.knowledge_transfer", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument("--jobs", type=int, default=-1, help="worker processes, default all cores")
    parser.add_argument("--repetitions", type=int, default=5, help="splits of the data")
    parser.add_argument("--resume", action="store_true", help="go on with the journal")
    parser.add_argument("--journal", type=Path, default=Path("out/knowledge_transfer.jsonl"), help="finished parts")
    parser.add_argument("--out", type=Path, help="Markdown file to write; figures go beside it")
    options = parser.parse_args(arguments)
    wanted = cells(options.repetitions)
    try:
        journal = StudyJournal(options.journal, about(options.repetitions), options.resume)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        work = partial(measured, epsilons=EPSILONS, runs=RUNS, students=STUDENTS)
        results = study(wanted, journal, options.jobs, work)
    except KeyboardInterrupt:
        kept = f"{len(journal.finished)} of {len(wanted)} parts are kept in {journal.path}: --resume does the rest"
        print(f"interrupted; {kept}", file=sys.stderr)
        return 130
    text = document(results, options.repetitions)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
        folder = options.out.parent / "figures"
        folder.mkdir(exist_ok=True)
        for file, plot in plots(ResultTable(results)).items():
            (folder / file).write_text(theorems.picture(cast(FigureView, plot)), encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
