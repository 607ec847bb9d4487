"""The command line. Progress goes to standard error, results to standard output, the verdict into the exit code."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.shell_completion import shell_complete

from auditor.audits.defaults import DRAWS, METHODS
from auditor.cli.commands import (
    ARGUMENTS,
    BASELINE,
    COMMANDS,
    FAILED,
    LEDGER,
    LEDGER_KEY,
    LIMIT,
    ONE_DRAW,
    SELECTION,
    GivenPath,
    make_folder,
    print_notices,
    tell_missing_page,
)
from auditor.cli.corpus.command import corpus
from auditor.cli.examples import show_example
from auditor.cli.process_end import end_despite_threads, hear_signals, refuse_exit, settle_exit, silence_output
from auditor.cli.prove import prove
from auditor.cli.scores import scores
from auditor.cli.terminal import print_text
from auditor.cli.trace import trace
from auditor.errors import DpauditError, SpecificationError, TargetError
from auditor.events.cause_kinds import IGNORABLE

if TYPE_CHECKING:
    from auditor.claims import Claim
    from auditor.report import RunView
    from auditor.results import AuditResult
    from auditor.runs.baseline import Baseline
    from auditor.runs.journal import Finished, Journal
    from auditor.runs.run import Outcome, Run

F = TypeVar("F", bound=Callable[..., Any])

#: What asks for completion: "bash_source" for a script of the shell, as click has it.
COMPLETE = "_DPAUDIT_COMPLETE"
#: Names of `auditor.datasets.RELATIONS`, which takes longer to import than a list of claims; a test compares them.
RELATIONS = (
    "replace-one",
    "add-remove-one",
    "add-remove-any-order",
    "answers-within",
    "label",
    "cell",
    "per-user",
    "edge",
    "node",
)


_ALPHA = click.option(
    "--alpha",
    type=float,
    default=0.01,
    show_default=True,
    help="Probability of a false alarm, in the whole run.",
)
_SEED = click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the draws, for a target that is seeded."
)
_JOBS = click.option("--jobs", type=click.IntRange(min=1), default=None, help="Worker processes [default: all cores].")
_BACKEND = click.option(
    "--backend",
    type=click.Choice(["loky", "dask"]),
    default="loky",
    show_default=True,
    help="Library that runs the workers: loky on this machine, or dask, here or on a cluster (see --scheduler).",
)
_SCHEDULER = click.option(
    "--scheduler",
    default=None,
    metavar="ADDRESS",
    help="With --backend dask, the scheduler of a cluster, such as tcp://10.0.0.1:8786. Its workers replace --jobs.",
)
_OUT = click.option(
    "--out",
    type=GivenPath(file_okay=False),
    default=None,
    help="Folder for results.json and the reports.",
)

_DETECT = click.option(
    "--detect",
    type=float,
    default=None,
    help="Level at which every L1 and L2 audit must be able to find an event of probability 0.01; otherwise the "
    "verdict is inconclusive [default: what the claim asks for, or twice the claimed level].",
)
_METHOD = click.option(
    "--method",
    type=click.Choice(METHODS),
    default=METHODS[0],
    show_default=True,
    help="Method for L1 and L2 claims: bets that may stop at any time, or the fixed-size method of the literature, for "
    "comparison.",
)
_IGNORE = click.option(
    "--ignore",
    multiple=True,
    metavar="KIND,...",
    help="Kinds of causes that L1 and L2 audits leave out, for example floating-point; every pass names them. All: "
    f"{', '.join(IGNORABLE)}.",
)


def _draws(default: str) -> Callable[[F], F]:
    text = f"Budget of each claim in mechanism outputs, both sides together [default: {default}]."
    return click.option("--draws", type=int, default=None, help=text)


def _max_seconds(default: str) -> Callable[[F], F]:
    text = f"Budget of each claim in seconds [default: {default}]; results then depend on the machine's speed."
    return click.option("--max-seconds", type=float, default=None, help=text)


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order of the help text."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}, epilog=show_example("attack")
)
@click.version_option(package_name="dpaudit")
def cli() -> None:
    """Try to break differential-privacy claims, honestly.

    Exit codes: 0 all as expected; 1 an unexpected finding; 2 an error, a bad specification or a failed check of the
    auditor itself; 3 inconclusive where a verdict was expected; 130 interrupted, with partial results written.
    """


@cli.command(short_help="Audit the claims of files or folders.")
@click.argument("paths", nargs=-1)
@SELECTION
@click.option(
    "--level",
    type=click.Choice(["smoke", "standard", "full"]),
    default="smoke",
    show_default=True,
    help="Budget of each claim: 200 thousand, 2 million or 20 million draws. smoke stops at a verdict, the others "
    "go on for the tightest bounds.",
)
@_options(
    _ALPHA, _SEED, _JOBS, _BACKEND, _SCHEDULER, _draws("that of --level"), _max_seconds("none"), _DETECT, _METHOD, _OUT
)
@_IGNORE
@click.option(
    "--also",
    is_flag=True,
    help="After a violation by a kind of cause that can be ignored, search on without it, if draws are left.",
)
@_options(BASELINE, LEDGER, LEDGER_KEY)
@click.option("--resume", is_flag=True, help="Continue an interrupted run of the same claims and options in --out.")
@click.option("--table", is_flag=True, help="List every claim in the summary, also of a long run.")
@click.option("--dry-run", is_flag=True, help="List what would run and how long it would take, and stop.")
def run(
    paths: tuple[str, ...],
    expression: str | None,
    level: str,
    alpha: float,
    seed: int,
    jobs: int | None,
    backend: str,
    scheduler: str | None,
    draws: int | None,
    max_seconds: float | None,
    detect: float | None,
    method: str,
    out: Path | None,
    baseline: Path | None,
    resume: bool,
    table: bool,
    dry_run: bool,
    ledger: Path | None,
    ledger_key: str,
    ignore: tuple[str, ...],
    also: bool,
) -> None:
    """Audit the claims declared in Python files or folders (default: experiments/).

    With --out, the run saves each claim as it ends. After Ctrl-C, a kill or a power cut, the same command with --resume
    runs only the rest. The summary lists each claim of a run of up to 40; that of a longer run has a line an entry,
    and one for each claim that is not as expected.
    """
    from auditor.cli import listing
    from auditor.runs.baseline import read_baseline
    from auditor.runs.run import Run, choose_jobs

    if resume and out is None:
        raise click.UsageError("--resume needs --out, the folder of the interrupted run")
    if scheduler is not None and jobs is not None:
        raise click.UsageError(f"--jobs is for workers on this machine, got {jobs} with --scheduler {scheduler}")
    asked = Run(
        paths=paths or (listing.DEFAULT,),
        expression=expression,
        level=level,
        alpha=alpha,
        seed=seed,
        jobs=1 if scheduler is not None else choose_jobs(jobs),
        backend=backend,
        scheduler=scheduler,
        draws=draws,
        seconds=max_seconds,
        detect=detect,
        method=method,
        ledger=ledger,
        ledger_key=ledger_key,
        ignore=ignore,
        also=also,
    )
    known = read_baseline(baseline) if baseline is not None else None
    declared = listing.read_declarations(paths)
    selected = declared.select(expression)
    asked = replace(asked, files=declared.files)
    if dry_run:
        _dry_run(asked, selected, out if resume else None)
    else:
        _execute(asked, selected, out, resume, known, table)


def _dry_run(asked: Run, selected: Sequence[Claim], resumed: Path | None) -> None:
    from auditor.runs import dry_run, journal
    from auditor.runs.manifest import fingerprint_run

    # What each worker does before its first claim: this process has just done it.
    start = time.process_time()
    done: Collection[str] = ()
    if resumed is not None:
        done, said = journal.find_resumable(resumed / journal.NAME, fingerprint_run(asked, selected))
        print_notices(said)
    for line in dry_run.format_estimates(dry_run.estimate_claims(asked, selected, done), asked.jobs, start):
        print_text(line)


def _execute(
    asked: Run, selected: Sequence[Claim], out: Path | None, resume: bool, known: Baseline | None, table: bool
) -> NoReturn:
    """Run, write the reports, print the summary, and exit with the run's code."""
    from auditor import report
    from auditor.runs import runner
    from auditor.runs.baseline import apply_baseline
    from auditor.runs.journal import begin_journal
    from auditor.runs.manifest import code_of
    from auditor.runs.progress import Progress
    from auditor.runs.run import exit_code
    from auditor.runs.workers import start_workers

    begun, sources = time.time(), code_of(asked, selected) if out is not None else {}
    if asked.ledger is not None:
        from auditor.runs.ledger import Ledger

        Ledger(asked.ledger, asked.ledger_key).prepare(asked.method)
    with ExitStack() as stack:
        hand_out = stack.enter_context(
            start_workers(asked, lambda line: print_notices([line]), alone=len(selected) == 1)
        )
        log: Journal | None = None
        finished: Finished = {}
        if out is not None:
            make_folder(out)
            log, finished, said = begin_journal(out, asked, selected, resume)
            stack.enter_context(log)
            print_notices(said)
        progress = stack.enter_context(Progress(len(selected), len(finished)))

        def advance(result: AuditResult, took: float) -> None:
            if log is not None:
                log.append(result, took)
            progress.advance(apply_baseline(known, [result])[0] if known is not None else result, took)

        outcome = runner.execute_run(asked, selected, advance, finished=finished, hand_out=hand_out)
    _mark_known(known, outcome)
    content = runner.results_document(asked, selected, outcome)
    if known is not None:
        content["manifest"]["baseline"] = str(known.path)
    shown = report.RunView.of(content)
    try:
        if out is not None:
            record = {**_run_record(asked, outcome, begun), "resumed": len(finished), "sources": sources}
            _write(out, content, record, shown)
        if log is not None and out is not None and not outcome.interrupted:
            log.remove(out / "results.json")
    finally:  # also where the disk is full
        print_text(report.summarize_run(shown, table), nl=False)
    if outcome.interrupted:
        further = "; the same command with --resume runs the rest" if out is not None else ""
        why = outcome.lost or "interrupted"
        print_notices([f"{why}: {len(outcome.results)} of {len(selected)} claims were finished{further}"])
    sys.exit(FAILED if outcome.lost else exit_code(outcome.results, outcome.interrupted))


def _mark_known(known: Baseline | None, outcome: Outcome) -> None:
    """Mark the results that a baseline holds, and say what is stale in it."""
    from auditor.runs import baseline

    if known is not None:
        outcome.results = baseline.apply_baseline(known, outcome.results)
        print_notices(baseline.list_notices(known, outcome.results))


def _write(out: Path, content: dict[str, Any], record: dict[str, Any], shown: RunView | None = None) -> None:
    from auditor import report
    from auditor.results import write_json, write_whole

    try:
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "results.json", content)
        write_whole(out / "run.json", json.dumps(record, indent=1) + "\n")
        written = report.write_reports(content if shown is None else shown, out, record)
    except OSError as error:
        raise SpecificationError(f"cannot write to {str(out)!r}: {error}") from error
    tell_missing_page(written)
    print_text(f"reports are in {out}: open {written[0]}", err=True)


def _run_record(asked: Run, outcome: Outcome, begun: float) -> dict[str, Any]:
    """run.json: all that differs between two runs with the same results."""
    return {
        "schema": "dpaudit-run/1",
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun)),
        "seconds": round(time.time() - begun, 3),
        **({"jobs": asked.jobs} if asked.scheduler is None else {"scheduler": asked.scheduler}),
        "backend": asked.backend,
        "machine": platform.platform(),
        "claim_seconds": {id_: round(took, 3) for id_, took in outcome.seconds.items()},
    }


@cli.command(short_help="Attack one mechanism.")
@click.argument("target")
@click.option(
    "--claim",
    required=True,
    help='The claim: "epsilon=1", "epsilon=1, delta=1e-6", "mu=0.5", "rho=0.1", "renyi=2:0.3,8:1.1" or '
    '"tradeoff=curve.csv".',
)
@click.option(
    "--data",
    type=GivenPath(),
    default=None,
    help="Dataset: .csv, .json (of any form), .npy or .parquet. Reports do not show its values.",
)
@click.option("--neighbor", type=GivenPath(), default=None, help="Neighbouring dataset.")
@click.option("--show-data", is_flag=True, help="Show datasets from files in the reports.")
@click.option(
    "--relation",
    default=None,
    help=f"How the datasets differ: {', '.join(RELATIONS)}; per-user:KEY and label:KEY name the column.",
)
@click.option("--domain", default=None, help='Instead of files, the values of a row: "0,1", "0:10", "a,b,c".')
@click.option(
    "--adversary",
    default=None,
    metavar="NAME[:KEY=VALUE,...]",
    help="Instead of datasets, an attack that makes up data: reconstruction, decoding, exhaustive, packing, tracing or "
    "tardos. For targets that release the sums (unit=means: means) of the columns of a table of 0 and 1.",
)
@click.option(
    "--rows", type=int, default=10, show_default=True, help="Largest number of rows of a dataset made from the domain."
)
@click.option(
    "--min-rows", "least", type=int, default=0, show_default=True, help="Smallest number of rows that the claim covers."
)
@click.option("--outside", is_flag=True, help="Try values outside the domain too: the claim does not assume it.")
@click.option(
    "--arithmetic",
    is_flag=True,
    help="Try numbers between the ends of the domain too, and up to 65,536 rows, at which sums overflow or round.",
)
@ONE_DRAW
@ARGUMENTS
@LIMIT
@click.option("--shrink/--no-shrink", default=True, help="After a violation, look for a smaller counterexample.")
@click.option(
    "--stop",
    type=click.Choice(["verdict", "budget"]),
    default="verdict",
    show_default=True,
    help="Stop as soon as the claim is refuted, or go on for the tightest lower bound.",
)
@_IGNORE
@click.option(
    "--also/--no-also",
    default=True,
    show_default=True,
    help="After a violation by a kind of cause that can be ignored, search on without it in the rest of the budget.",
)
@_options(_ALPHA, _SEED, _draws(f"{DRAWS:,}"), _max_seconds("60 without --draws, else none"), _DETECT, _METHOD)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=None,
    help="Processes that draw, at most two of use, one for a service [default: 1 for a command, else all cores].",
)
@click.option(
    "--backend", type=click.Choice(["loky", "dask"]), default="loky", help="No effect: an attack is one claim."
)
@_options(_OUT, BASELINE, LEDGER, LEDGER_KEY)
def attack(
    jobs: int | None, backend: str, out: Path | None, baseline: Path | None, max_seconds: float | None, **asked: Any
) -> None:
    """Attack one mechanism, in any language.

    TARGET is one of

    \b
      package.module:callable       a Python function (data, n, rng) of n draws; with --one-draw
      path/to/file.py:callable      (data, rng) or (data) of one draw; see --arg for further parameters
      exec:COMMAND                  a process that reads and writes lines of JSON
      http://..., https://...       a service with the same protocol
      pip:REQUIREMENT ...#WHERE:F   a function in a separate environment

    There are three ways to get datasets: give two by --data and --neighbor; let the attack make them from --relation
    and --domain; or name an --adversary, which makes up its own, such as reconstruction:rows=64,queries=256 or
    packing:rows=50,columns=50,unit=means. Without --draws and --max-seconds the attack ends after 400,000 draws or 60
    seconds.
    """  # noqa: D301 - the escape is click's mark of lines to keep
    del backend  # the options of `run` are taken, so that one script can call both
    from auditor.audits.summary import explain
    from auditor.cli.attack import Attack, attack_once
    from auditor.results import make_document
    from auditor.runs.baseline import read_baseline
    from auditor.runs.run import Outcome, exit_code

    given = Attack(**asked, seconds=max_seconds)
    known = read_baseline(baseline) if baseline is not None else None
    if out is not None:
        make_folder(out)
    if given.ledger is not None:
        from auditor.runs.ledger import Ledger

        Ledger(given.ledger, given.ledger_key).prepare(given.method)
    about, result, seconds = attack_once(given, lambda line: print_notices([line]), jobs)
    outcome = Outcome([result], {result.id: seconds})
    _mark_known(known, outcome)
    (result,) = outcome.results
    try:
        if out is not None:
            about |= {"baseline": str(known.path)} if known is not None else {}
            record = {"schema": "dpaudit-run/1", "seconds": round(seconds, 3), "machine": platform.platform()}
            _write(out, make_document(about, [result], []), record)
    finally:  # also where the disk is full
        print_text(explain(result))
        if result.known:
            print_text(f"known from {baseline}: {result.known}")
        if result.new:
            print_text(f"new to {baseline}: {result.new}")
    sys.exit(exit_code([result]))


for _command in (*COMMANDS, corpus, prove, scores, trace):
    cli.add_command(_command)
for _name, _command in cli.commands.items():
    _command.epilog = show_example(_name)


def _explain_option(error: click.NoSuchOption) -> click.UsageError:
    """Name the option of claims where a parameter of one is given as an option."""
    name = error.option_name.lstrip("-")
    options = [] if error.ctx is None else [option for given in error.ctx.command.params for option in given.opts]
    if "--claim" in options:
        from auditor.privacy.guarantees import NOTIONS  # takes longer to import than click

        if any(name in keys for keys in NOTIONS):
            return click.UsageError(f"{error.message} A claim is one option: --claim {name}=...", ctx=error.ctx)
    return error


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Every failure is one line and exit code 2, never a traceback.
    """
    code = 0
    try:
        _run_command(arguments)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)  # as Python has it
        raise
    except BaseException as error:
        code = FAILED
        if os.environ.get("DPAUDIT_TRACEBACK"):
            raise
        # A target has closed standard error, say, so that a failure cannot be told as usual; Python's own exit code for
        # that is 1, which here is a finding.
        name = type(error).__name__
        with suppress(OSError):
            os.write(2, f"dpaudit failed, and cannot say why: {name} (DPAUDIT_TRACEBACK=1 shows where)\n".encode())
        sys.exit(FAILED)
    finally:
        if arguments is None:  # the process is this command's
            settle_exit(code)
            end_despite_threads(code)


def _run_command(arguments: Sequence[str] | None) -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # a letter that its encoding lacks ends no command
    words = list(arguments) if arguments is not None else sys.argv[1:]
    complete = os.environ.get(COMPLETE, "")
    if complete:  # not a command, but a shell that asks for its script or for completions
        failed = shell_complete(cli, {}, "dpaudit", COMPLETE, complete)
        if failed:
            print_text(
                f"dpaudit: {COMPLETE} must be bash_source, zsh_source or fish_source, got {complete!r}", err=True
            )
        sys.exit(FAILED if failed else 0)
    if "" not in sys.path:
        sys.path.insert(0, "")  # the folder one stands in, as `python -m` has it: claims import what is beside them
    try:
        # Not cli.main: that turns a closed pipe into exit code 1, which here is a finding.
        with hear_signals(), refuse_exit(FAILED), cli.make_context("dpaudit", words) as context:
            cli.invoke(context)
    except BrokenPipeError:
        silence_output()
        sys.exit(FAILED)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        (_explain_option(error) if isinstance(error, click.NoSuchOption) else error).show()
        sys.exit(FAILED)
    except (DpauditError, TargetError) as error:
        print_text(f"dpaudit: {error}", err=True)
        sys.exit(FAILED)
    except ValueError as error:  # bad parameters of declared objects
        print_text(f"dpaudit: {error}", err=True)
        sys.exit(FAILED)
    except (KeyboardInterrupt, click.Abort):
        print_text("interrupted", err=True)
        sys.exit(130)
    except SystemExit:
        raise
    except OSError as error:  # a full disk, a folder that is gone
        if os.environ.get("DPAUDIT_TRACEBACK"):
            raise
        with suppress(OSError):
            print_text(f"dpaudit: the system refused: {error} (DPAUDIT_TRACEBACK=1 shows where)", err=True)
        try:
            sys.stdout.flush()
        except OSError:
            silence_output()
        sys.exit(FAILED)
    except BaseException as error:
        if os.environ.get("DPAUDIT_TRACEBACK"):
            raise
        print_text(
            f"dpaudit failed: {type(error).__name__}: {error}\n"
            "This is a fault of dpaudit; please report it with the traceback that DPAUDIT_TRACEBACK=1 shows.",
            err=True,
        )
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
