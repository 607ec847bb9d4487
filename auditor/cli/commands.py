"""Commands that list, check, compare and render; `auditor.cli.main` has those that audit."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auditor.cli.terminal import print_text
from auditor.errors import DpauditError, SpecificationError, describe_missing, require_library

try:
    import fcntl
except ImportError:  # no POSIX system
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from auditor.results import AuditResult

#: Exit code of an error, a bad specification or a failure of ours; never 1, which is a finding.
FAILED = 2


class GivenPath(click.Path):
    """A path that is not empty.

    "" would be the current folder, and is mostly an unset variable of a script.
    """

    def __init__(self, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty path, and check others as click does.

        Parameters
        ----------
        value : str or Path
            What was given.
        param, ctx
            Parameter and context of click, for its message.
        """
        if value == "":
            self.fail("expected a path, got ''", param, ctx)
        return super().convert(value, param, ctx)


class ResultsPath(GivenPath):
    """A results.json, also named by the folder that holds it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Find the file in a folder.

        Parameters
        ----------
        value, param, ctx
            As for `GivenPath`.
        """
        path = super().convert(value, param, ctx)
        return path / "results.json" if path.is_dir() else path


def _refuse_repeats(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> str | None:
    """Refuse a second -k.

    "and" or "or" could be meant, and one of the two expressions would be forgotten.
    """
    if len(given) > 1:
        joined = " and ".join(f"({expression})" for expression in given)
        raise click.BadParameter(f"given {len(given)} times; join them, as in -k {shlex.quote(joined)}", ctx, param)
    return given[0] if given else None


SELECTION = click.option(
    "-k",
    "expression",
    multiple=True,
    callback=_refuse_repeats,
    metavar="TEXT",
    help='Claims whose id matches, for example "laplace and not mutant".',
)
LIMIT = click.option(
    "--limit",
    type=float,
    default=60.0,
    show_default=True,
    help="Seconds that one call may take; a process has at least 10 s to start.",
)
ONE_DRAW = click.option(
    "--one-draw",
    is_flag=True,
    help="The target is a Python function (data, rng) or (data) that draws once, or a model with fit.",
)
ARGUMENTS = click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=JSON",
    help="Value of a further parameter of a Python function or class, such as epsilon=1; may be given several times.",
)
BASELINE = click.option(
    "--baseline",
    type=GivenPath(),
    default=None,
    help="File of known findings; these do not make the command fail (see `dpaudit baseline`).",
)


LEDGER = click.option(
    "--ledger",
    type=GivenPath(dir_okay=False),
    default=None,
    help="File in which the evidence of L1 and L2 claims adds up from run to run (see `dpaudit ledger`).",
)
LEDGER_KEY = click.option(
    "--ledger-key",
    default="",
    help="A text, such as the version of a service; with another text, evidence starts anew.",
)


def print_notices(lines: Iterable[str]) -> None:
    """Print notices on standard error."""
    for line in lines:
        print_text(line, err=True)


@contextmanager
def hide_prints(tell: Callable[[str], None], private: bool) -> Iterator[Callable[[str], None]]:
    """Keep what a target in this process prints out of results.

    Its beginning goes to standard error, or nowhere where datasets are private; what is told goes where it went before.

    Parameters
    ----------
    tell : callable
        Takes lines for the user.
    private : bool
        What is printed may hold data that are not to be shown.
    """
    from auditor.targets.process_settings import limit_prints

    error = sys.stderr

    def tell_as_before(line: str) -> None:
        with redirect_stderr(error):
            tell(line)

    with open(os.devnull, "w", encoding="utf-8") as nowhere, limit_prints(nowhere if private else error):
        yield tell_as_before


def tell_missing_page(written: Sequence[Path]) -> None:
    """Say why report.html is not among the reports, if so."""
    if all(path.suffix != ".html" for path in written):
        print_notices([f"no report.html: {describe_missing('jinja2', 'reports in HTML')}"])


def make_folder(out: Path) -> None:
    """Make the folder first, so that a bad path fails early.

    Until the command ends, no other one writes there: two would leave reports of both.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise SpecificationError(f"cannot write to {str(out)!r}: {error}") from error
    command = click.get_current_context(silent=True)
    if command is not None and fcntl is not None:
        command.with_resource(_hold_folder(out))


@contextmanager
def _hold_folder(out: Path) -> Iterator[None]:
    folder = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(folder)
        raise SpecificationError(
            f"another dpaudit writes to {str(out)!r} at this moment: give another --out, or wait until it ends"
        ) from error
    except OSError:  # a file system without such locks
        pass
    try:
        yield
    finally:
        os.close(folder)


@click.command(short_help="Check whether a mechanism can be audited, and how fast.")
@click.argument("target")
@click.option(
    "--data",
    type=GivenPath(),
    default=None,
    help="Dataset: .csv, .json (of any form), .npy or .parquet [default: one row, 0].",
)
@click.option("--show-data", is_flag=True, help="Show what the target says when it fails on a dataset from a file.")
@click.option(
    "--draws", type=click.IntRange(min=1), default=200_000, show_default=True, help="Budget for the time estimate."
)
@ONE_DRAW
@ARGUMENTS
@LIMIT
def check(
    target: str,
    data: Path | None,
    show_data: bool,
    draws: int,
    one_draw: bool,
    arguments: tuple[str, ...],
    limit: float,
) -> None:
    """Check whether TARGET answers and how fast, whether equal seeds repeat it, and whether its draws are independent.

    TARGET is as for `dpaudit attack`. Exit codes: 0 the target can be audited; 1 its draws are not independent; 2 it
    does not answer.
    """
    from auditor.cli.check import inspect_target
    from auditor.targets.signatures import parse_arguments

    given = parse_arguments(arguments)
    with hide_prints(print_text, private=data is not None and not show_data):
        lines, sound = inspect_target(target, data, draws, one_draw, limit, given=given, show_data=show_data)
    for line in lines:
        print_text(line)
    sys.exit(0 if sound else 1)


@click.command(name="list", short_help="List the declared entries and claims.")
@click.argument("paths", nargs=-1)
@SELECTION
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array with one object per entry.")
def list_(paths: tuple[str, ...], expression: str | None, as_json: bool) -> None:
    """List the entries and claims that PATHS declare (default: experiments/), or those that -k selects."""
    from auditor.cli import listing

    if as_json:
        click.echo(json.dumps(listing.list_entries(paths, expression), indent=1, ensure_ascii=False))
        return
    for line in listing.list_lines(paths, expression):
        print_text(line)


@click.command(short_help="Show what a claim states and what its audit takes.")
@click.argument("claim_id", metavar="ID")
@click.argument("paths", nargs=-1)
def show(claim_id: str, paths: tuple[str, ...]) -> None:
    """Show what a claim states and what its audit would take.

    ID is a claim, an entry such as 003/laplace_mechanism, or the beginning of an id up to a slash. PATHS are the files
    or folders that declare it (default: experiments/).
    """
    from auditor.cli.listing import read_declarations

    declared = read_declarations(paths)  # before what takes long to import
    from auditor.cli.showing import show_lines

    for line in show_lines(claim_id, declared, paths):
        print_text(line)


@click.command(short_help="Render the reports again.")
@click.argument("results", type=ResultsPath())
@click.option("--out", type=GivenPath(file_okay=False), default=None, help="Folder [default: that of RESULTS].")
@BASELINE
@click.option(
    "--comment", is_flag=True, help="Print a short summary in Markdown, for a comment on a change; write no files."
)
@click.option(
    "--maintainer",
    default=None,
    metavar="ID",
    help="Print one finding as a page for the maintainer of what was audited; ID may be a part that one id has.",
)
def report(results: Path, out: Path | None, baseline: Path | None, comment: bool, maintainer: str | None) -> None:
    """Render the reports again from a results.json, and print the names of the files."""
    from auditor import report as rendering
    from auditor.report.comment import render_comment as as_comment
    from auditor.runs.baseline import apply_baseline, list_notices, read_baseline
    from auditor.runs.diff import read_results, read_run_record
    from auditor.runs.journal import NAME as JOURNAL

    if comment and out is not None:
        raise click.UsageError(f"--comment prints and writes no files: it cannot be used with --out {out}")
    if maintainer is not None and (comment or baseline is not None):
        other = "--comment" if comment else f"--baseline {baseline}"
        raise click.UsageError(f"--maintainer {maintainer} is about one finding: it cannot be used with {other}")
    content = _check_types(read_results(results), results)
    journal = results.with_name(JOURNAL)
    if journal.exists() and not content["manifest"].get("interrupted"):
        print_notices([f"{journal} is of a run that has not ended: {results} is of a run before it"])
    if maintainer is not None:
        with _refuse_odd_numbers(content, results):
            _write_maintainer_page(content, results, maintainer, out)
        return
    folder = out or results.resolve().parent
    if baseline is not None:
        known = read_baseline(baseline)
        marked = apply_baseline(known, _results_of(content, results))
        content["claims"] = [result.to_json() for result in marked]
        print_notices(list_notices(known, marked))
    if comment:
        with _refuse_odd_numbers(content, results):
            print_text(as_comment(content), nl=False)
        return
    make_folder(folder)
    with _refuse_odd_numbers(content, results):
        written = rendering.write_reports(content, folder, read_run_record(results))
    tell_missing_page(written)
    for path in written:
        print_text(path)


#: What rendering raises of numbers and members that no audit gives.
_ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@contextmanager
def _refuse_odd_numbers(content: Mapping[str, Any], path: Path) -> Iterator[None]:
    """Name the claim that cannot be rendered: a file that was edited may hold numbers that no audit gives."""
    try:
        yield
    except DpauditError:
        raise
    except _ODD as error:
        if os.environ.get("DPAUDIT_TRACEBACK"):
            raise
        from auditor.report import find_unrendered

        claim = find_unrendered(content)
        what = f"claim {claim!r} holds" if claim else "it holds"
        why = f"{type(error).__name__}: {error}; DPAUDIT_TRACEBACK=1 shows where"
        raise SpecificationError(f"{str(path)!r} cannot be rendered: {what} what no report can show ({why})") from error


def _write_maintainer_page(content: Mapping[str, Any], results: Path, part: str, out: Path | None) -> None:
    """Print the page on one finding, or write it to a folder."""
    from auditor.audits.counterexamples.program import list_numbers, write_program
    from auditor.datasets import Pair
    from auditor.datasets.json_codec import data_from_json
    from auditor.events.codec import chain_from_json
    from auditor.report.maintainer import choose_finding, render_maintainer_page
    from auditor.results import write_whole

    claim = choose_finding(content, part)
    found, about = claim.counterexample or {}, content["manifest"]
    again = found.get("again") or {}
    data, chain = again.get("data"), again.get("chain")
    program = str(found.get("code") or "")
    if data:
        pair = Pair(data_from_json(data["x"]), data_from_json(data["y"]), "counterexample")
        target, once = str(about.get("target") or ""), bool(about.get("one_draw"))
        exact: Sequence[float] = ()
        with suppress(SpecificationError):  # of another version, say
            exact = list_numbers(chain_from_json(chain)) if chain else ()
        program = write_program(target, pair, found["event"], once, about.get("arguments") or (), exact) or program
    page = render_maintainer_page(content, claim, results.name, program)
    if out is None:
        print_text(page, nl=False)
        return
    make_folder(out)
    write_whole(out / "maintainer.md", page)
    print_text(out / "maintainer.md")


def _check_types(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """The content of a results.json, all of which is of the types that its schema says."""
    from auditor.report.misfits import find_misfit

    misfit = find_misfit(content)
    if misfit:
        raise SpecificationError(f"{str(path)!r} does not follow its schema: {misfit}")
    return content


def _results_of(content: Mapping[str, Any], path: Path) -> list[AuditResult]:
    """The results of a results.json that has been read from ``path``."""
    from auditor.results import result_from

    try:
        return [result_from(claim) for claim in content["claims"]]
    except ValueError as error:
        raise SpecificationError(f"{str(path)!r}: {error}") from error


@click.command(short_help="Write an evidence sheet for a reviewer.")
@click.argument("results", type=ResultsPath())
@click.argument("claim_id", metavar="[ID]", required=False)
@click.option("--unit", default="", help='What a row stands for, such as "one patient"; results do not know it.')
@click.option(
    "--out", type=GivenPath(file_okay=False), default=None, help="Folder for evidence.html and evidence.json."
)
def evidence(results: Path, claim_id: str | None, unit: str, out: Path | None) -> None:
    """Write one page on one claim: what was tested, hazard by hazard, with what resolution, and what was not.

    ID is the claim, or a part that one id has, if RESULTS has several claims of privacy. Without --out the page is
    printed as Markdown. With --out there are a page to print and a JSON statement in the form of an in-toto
    attestation, to be signed.
    """
    from auditor.report.evidence_sheet import make_statement, render_sheet_html, render_sheet_markdown
    from auditor.results import write_whole
    from auditor.runs.diff import read_results

    if out is not None:
        require_library("jinja2", "pages in HTML")
    content = _check_types(read_results(results), results)
    if out is not None:
        make_folder(out)
    with _refuse_odd_numbers(content, results):
        statement = make_statement(content, results.name, sha256(results.read_bytes()).hexdigest(), claim_id, unit)
        if out is None:
            print_text(render_sheet_markdown(statement), nl=False)
            return
        page = render_sheet_html(statement)
        text = json.dumps(statement, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    for name, written in (("evidence.html", page), ("evidence.json", text)):
        write_whole(out / name, written)
        print_text(out / name)


@click.command(short_help="Write findings to a baseline, as known.")
@click.argument("results", type=ResultsPath())
@click.option(
    "-o",
    "--output",
    type=GivenPath(dir_okay=False),
    default=Path("dpaudit-baseline.toml"),
    show_default=True,
    help="File to write; what it already has about the same findings is kept.",
)
def baseline(results: Path, output: Path) -> None:
    """Write the findings of a results.json as known findings, for --baseline.

    Read the file, give each finding a reason, and keep the file under version control. It identifies a finding by its
    claim, verdict, kind of cause and certified level: another cause, or a level above "up_to", is a new finding. Errors
    are not findings and are left out. Entries of claims that RESULTS does not have are kept.
    """
    from auditor.runs.baseline import findings_of, read_baseline, write_baseline
    from auditor.runs.diff import read_results

    content = _check_types(read_results(results), results)
    before = read_baseline(output) if output.exists() else None
    found, kept, others = findings_of(_results_of(content, results), before)
    write_baseline(output, [*found, *kept])
    text = f"{len(found)} known finding{'s' * (len(found) != 1)} in {output}"
    print_text(text + (f", and {len(kept)} of claims that {results} does not have" if kept else ""))
    if others:
        print_notices([f"left out: {others} unexpected errors or failed checks, which a baseline cannot hold"])
    if content["manifest"].get("interrupted"):
        print_notices([f"{results} is of an interrupted run: it does not have all claims"])


@click.command(short_help="Run recorded results again, and compare.")
@click.argument("results", type=ResultsPath())
@SELECTION
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=None,
    help="Number of claims to run: the first by the hash of their ids, the same ones each time.",
)
@click.option(
    "--max-seconds",
    type=float,
    default=None,
    help="Start no claim after this time; the output states how many were not reached.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Worker processes [default: all cores].")
def reproduce(
    results: Path, expression: str | None, sample: int | None, max_seconds: float | None, jobs: int | None
) -> None:
    """Run the claims of a results.json again, compare to the byte, and give reasons for differences.

    RESULTS may be packed (results.json.xz). Each claim keeps its share of alpha, whatever part of the file runs again.
    A claim that a time limit had cut short runs as far as it ran before. Differences between the two runs, such as
    versions, go to standard error. Lines of code and the notes of a baseline are not compared.

    Exit codes: 0 every claim that ran has the same record; 1 some differ, or are not declared any more; 2 the claims
    could not run; 130 interrupted.
    """
    from auditor.runs import reproduce

    found = reproduce.reproduce_results(results, expression, sample, jobs, max_seconds)
    print_notices(found.notices)
    for line in reproduce.lines_of(found):
        print_text(line)
    if found.lost or found.interrupted:
        print_notices([found.lost or "interrupted"])
    sys.exit(found.code)


@click.command(short_help="Replay a counterexample.")
@click.argument("results", type=ResultsPath())
@click.argument("claim_id", metavar="[ID]", required=False)
@click.option("--target", default=None, help="Target to draw from [default: the attacked one].")
@click.option("--data", type=GivenPath(), default=None, help="Dataset of the attack, if it was private.")
@click.option("--neighbor", type=GivenPath(), default=None, help="Neighbouring dataset of the attack.")
@click.option("--seed", type=int, default=None, help="Draw afresh, with this seed.")
@ONE_DRAW
@ARGUMENTS
@LIMIT
def replay(
    results: Path,
    claim_id: str | None,
    target: str | None,
    data: Path | None,
    neighbor: Path | None,
    seed: int | None,
    one_draw: bool,
    arguments: Sequence[str],
    limit: float,
) -> None:
    """Replay the counterexample of a results.json.

    ID is the claim, or a part that one id has, if several have a counterexample. After `dpaudit attack`, a seeded
    target gives exactly the recorded draws. Otherwise, as after `dpaudit run`, fresh draws are taken, and the evidence
    has to refute the claim again on these. --one-draw and --arg are for the target of --target; the attacked one is
    called as before. Exit codes: 0 reproduced; 1 not reproduced; 2 the target could not be drawn from.
    """
    from auditor.cli.replay import draw_again

    with hide_prints(print_text, private=data is not None):
        found = draw_again(
            results, claim_id, target, data, neighbor, seed, limit, one_draw=one_draw, arguments=arguments
        )
    for line in found.lines:
        print_text(line)
    sys.exit(0 if found.reproduced else 1)


@click.command(short_help="Compare two results.")
@click.argument("first", type=ResultsPath())
@click.argument("second", type=ResultsPath())
def diff(first: Path, second: Path) -> None:
    """Compare two results.json claim by claim: verdicts, claims, what was ignored, failed checks, bounds, exact levels.

    Differences between the runs themselves, such as the seed, go to standard error: another seed alone moves lower
    bounds. Exit codes: 0 no claim differs; 1 some do; 2 a file cannot be read.
    """
    from auditor.runs.diff import list_differences, manifest_differences, read_results

    before, after = read_results(first), read_results(second)
    print_notices(f"the runs differ: {line}" for line in manifest_differences(before["manifest"], after["manifest"]))
    lines = list_differences(before, after, (str(first), str(second)))
    for line in lines or ["no claim differs"]:
        print_text(line)
    sys.exit(1 if lines else 0)


@click.command(short_help="Measure the auditor itself.")
@click.option(
    "--audits",
    type=click.IntRange(min=1),
    default=None,
    help="Audits of each mechanism with each stopping rule [default: 60; with --quick 4].",
)
@click.option(
    "--draws",
    type=int,
    default=None,
    help="Outputs per audit, both sides together [default: 20,000; with --quick 4,000].",
)
@click.option(
    "--alpha", type=float, default=0.05, show_default=True, help="Probability of a false alarm in each audit."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same figures.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Worker processes [default: all cores].")
@click.option("--quick", is_flag=True, help="Few and short audits: some 20 seconds instead of three minutes.")
@click.option(
    "--out",
    type=GivenPath(file_okay=False),
    default=None,
    help="Folder for calibration.json, calibration.md and calibration.html, with figures.",
)
def calibrate(
    audits: int | None, draws: int | None, alpha: float, seed: int, jobs: int | None, quick: bool, out: Path | None
) -> None:
    """Measure the auditor itself on this machine: how often it errs, what it finds, and how fast.

    It audits mechanisms whose true level is known, many times. Where that is the claimed level, every finding is a
    false alarm, and so is every lower bound above it. Where it is larger, the audit is compared with an oracle that
    knows the best event beforehand. A sound auditor is called unsound with probability 1e-6 at most.

    Exit codes: 0 the false alarms fit alpha; 2 there are too many.
    """
    require_library("jinja2", "`dpaudit calibrate`")
    from auditor.calibration.command import make_plan, report_calibration

    plan = make_plan(audits, draws, quick, alpha, seed, jobs)
    if out is not None:
        make_folder(out)
    sys.exit(0 if report_calibration(plan, out) else FAILED)


@click.command(short_help="Print the helper for targets in Python.")
def helper() -> None:
    """Print a file that serves a Python function as a target, on any Python from 3.8, with nothing installed.

    Keep the file beside your function. The target is then "exec:python dpaudit_target.py my_file.py:my_function".
    """
    from auditor.targets import helper as file

    click.echo(Path(str(file.__file__)).read_text(encoding="utf-8"), nl=False)


@click.command(short_help="Show the evidence in a ledger.")
@click.argument("file", type=GivenPath(dir_okay=False))
@click.option("--verify", is_flag=True, help="Recompute the wealth from the recorded bets and counts.")
@click.option("--all", "everything", is_flag=True, help="Show earlier sources and specifications as well.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object with an array of series.")
def ledger(file: Path, verify: bool, everything: bool, as_json: bool) -> None:
    """Show what `dpaudit run` and `dpaudit attack` keep with --ledger: claims, nights, draws, wealth, verdict.

    Exit codes: 0 shown, and with --verify all as recorded; 1 with --verify, something is not as recorded; 2 the file
    cannot be read.
    """
    from auditor.runs.ledger import show

    if verify and (as_json or everything):
        other = "--json" if as_json else "--all"
        raise click.UsageError(f"--verify recomputes all series and prints text: it cannot be used with {other}")
    if verify:
        lines, sound = show.verify_ledger(file)
    else:
        lines, sound = show.as_json(file) if as_json else show.format_ledger(file, everything), True
    for line in lines:
        print_text(line)
    sys.exit(0 if sound else 1)


COMMANDS = (ledger, check, list_, show, report, evidence, baseline, reproduce, replay, diff, calibrate, helper)
