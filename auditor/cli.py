"""The command line. Progress goes to standard error, results to standard output, the verdict into the exit code."""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from auditor.errors import DpauditError, SpecificationError, TargetError
from auditor.progress import Progress

#: Exit code of an error, a bad specification or a failure of ours; never 1, which is a finding.
FAILED = 2

F = TypeVar("F", bound=Callable[..., Any])


def _run_options(function: F) -> F:
    for option in reversed(
        (
            click.option(
                "--alpha",
                type=float,
                default=0.01,
                show_default=True,
                help="Probability of a false alarm in the whole run.",
            ),
            click.option(
                "--seed", type=int, default=0, show_default=True, help="Same seed, same results, to the byte."
            ),
            click.option(
                "--jobs", type=click.IntRange(min=1), default=None, help="Worker processes [default: all cores]."
            ),
            click.option("--backend", type=click.Choice(["loky", "dask"]), default="loky", show_default=True),
            click.option(
                "--draws", type=int, default=None, help="Budget of each claim in outputs, both sides together."
            ),
            click.option("--max-seconds", type=float, default=None, help="Budget of each claim in seconds."),
            click.option(
                "--out", type=click.Path(file_okay=False, path_type=Path), default=None, help="Folder for the reports."
            ),
        )
    ):
        function = option(function)
    return function


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="dpaudit")
def cli() -> None:
    """Try to break differential-privacy claims, honestly.

    Exit codes: 0 all as expected; 1 an unexpected finding; 2 an error, a bad specification or a failed check of the
    auditor itself; 3 inconclusive where a verdict was expected; 130 interrupted, with partial results written.
    """


@cli.command()
@click.argument("paths", nargs=-1)
@click.option("-k", "expression", default=None, help='Claims whose id matches, for example "laplace and not mutant".')
@click.option("--level", type=click.Choice(["smoke", "standard", "full"]), default="smoke", show_default=True)
@click.option("--dry-run", is_flag=True, help="List what would run, and stop.")
@_run_options
def run(
    paths: tuple[str, ...],
    expression: str | None,
    level: str,
    dry_run: bool,
    alpha: float,
    seed: int,
    jobs: int | None,
    backend: str,
    draws: int | None,
    max_seconds: float | None,
    out: Path | None,
) -> None:
    """Audit the claims declared in Python files or folders (default: experiments/)."""
    from auditor import registry, runner

    asked = runner.Run(
        paths=paths or ("experiments",),
        expression=expression,
        level=level,
        alpha=alpha,
        seed=seed,
        jobs=jobs if jobs is not None else os.cpu_count() or 1,
        backend=backend,
        draws=draws,
        seconds=max_seconds,
    )
    selected = registry.select(registry.claims(asked.paths), expression)
    if dry_run:
        shares = runner.shares(selected, alpha)
        for claim in selected:
            settings = runner.settings_of(claim, asked, shares[claim.id])
            budget = "exact" if claim.draft.level == "L0" else f"{settings.draws:,} draws"
            click.echo(f"{claim.id}  {claim.draft.guarantee}  {budget}  alpha {shares[claim.id]:.3g}")
        click.echo(f"{len(selected)} claims would run")
        return
    _execute(asked, selected, out)


def _execute(asked: Any, selected: Sequence[Any], out: Path | None) -> None:
    """Run, write the reports, print the table, and exit with the run's code."""
    from auditor import report, runner

    if out is not None:
        _writable(out)
    begun = time.time()
    with Progress(len(selected)) as progress:
        outcome = runner.execute(asked, selected, progress.advance)
    content = runner.results_document(asked, selected, outcome)
    if out is not None:
        _write(out, content, _run_record(asked, outcome, begun))
    click.echo(report.summary_table(content), nl=False)
    if outcome.interrupted:
        click.echo(f"interrupted: {len(outcome.results)} of {len(selected)} claims were finished", err=True)
    sys.exit(runner.exit_code(outcome.results, outcome.interrupted))


def _writable(out: Path) -> None:
    """Make the folder before the work is done, not after."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise SpecificationError(f"cannot write to {str(out)!r}: {error}") from error


def _write(out: Path, content: dict[str, Any], record: dict[str, Any]) -> None:
    from auditor import report
    from auditor.results import write_json

    try:
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "results.json", content)
        (out / "run.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        report.write_reports(content, out, record)
    except OSError as error:
        raise SpecificationError(f"cannot write to {str(out)!r}: {error}") from error
    click.echo(f"reports are in {out}: open {out / 'report.html'}", err=True)


def _run_record(asked: Any, outcome: Any, begun: float) -> dict[str, Any]:
    """run.json: all that differs between two runs with the same results."""
    return {
        "schema": "dpaudit-run/1",
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun)),
        "seconds": round(time.time() - begun, 3),
        "jobs": asked.jobs,
        "backend": asked.backend,
        "machine": platform.platform(),
        "claim_seconds": {id_: round(took, 3) for id_, took in outcome.seconds.items()},
    }


@cli.command()
@click.argument("target")
@click.option("--claim", "claim_text", required=True, help='"epsilon=1, delta=1e-6" or "mu=0.5".')
@click.option("--data", "data", type=click.Path(path_type=Path), default=None, help="Dataset: .csv, .json or .npy.")
@click.option("--neighbor", "neighbor", type=click.Path(path_type=Path), default=None, help="Neighbouring dataset.")
@click.option("--relation", default=None, help="replace-one, add-remove-one or answers-within.")
@click.option("--domain", default=None, help='Values of a row: "0,1", "0:10", "a,b,c".')
@click.option("--rows", type=int, default=10, show_default=True, help="Rows of the datasets made from the domain.")
@click.option("--one-draw", is_flag=True, help="The target is a function (data, rng) of one draw.")
@click.option("--stop", type=click.Choice(["verdict", "budget"]), default="verdict", show_default=True)
@_run_options
def attack(
    target: str,
    claim_text: str,
    data: Path | None,
    neighbor: Path | None,
    relation: str | None,
    domain: str | None,
    rows: int,
    one_draw: bool,
    stop: str,
    alpha: float,
    seed: int,
    jobs: int | None,
    backend: str,
    draws: int | None,
    max_seconds: float | None,
    out: Path | None,
) -> None:
    """Attack one mechanism: TARGET is package.module:callable or path/to/file.py:callable."""
    del jobs, backend  # one claim runs in one process
    from auditor import runner
    from auditor.attack import attack_once
    from auditor.results import document

    if out is not None:
        _writable(out)
    asked, result, seconds = attack_once(
        target, claim_text, data, neighbor, relation, domain, rows, one_draw, stop, alpha, seed, draws, max_seconds
    )
    if out is not None:
        content = document(asked, [result], [])
        _write(out, content, {"schema": "dpaudit-run/1", "seconds": round(seconds, 3), "machine": platform.platform()})
    from auditor.findings import explain

    click.echo(explain(result))
    sys.exit(runner.exit_code([result]))


@cli.command()
@click.argument("target")
@click.option(
    "--data", type=click.Path(path_type=Path), default=None, help="Dataset: .csv, .json or .npy [default: 0]."
)
@click.option(
    "--draws", type=click.IntRange(min=1), default=200_000, show_default=True, help="Budget for the time estimate."
)
@click.option("--one-draw", is_flag=True, help="The target is a function (data, rng) of one draw.")
def check(target: str, data: Path | None, draws: int, one_draw: bool) -> None:
    """Check that TARGET answers, its speed, whether it is seeded, and whether its draws are independent."""
    from auditor.attack import check_target

    lines, sound = check_target(target, data, draws, one_draw)
    for line in lines:
        click.echo(line)
    sys.exit(0 if sound else 1)


@cli.command(name="list")
@click.argument("paths", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="An array with an object an entry.")
def list_(paths: tuple[str, ...], as_json: bool) -> None:
    """List the entries and claims that are declared."""
    from auditor import registry
    from auditor.findings import describe

    where = paths or ("experiments",)
    claims = registry.claims(where)
    listed = []
    for entry in registry.load(where):
        own = [claim for claim in claims if claim.entry == entry.id]
        listed.append(
            {
                "entry": entry.id,
                "name": entry.title,
                "source": {"document": entry.source.document, "place": entry.source.place},
                "mechanism": ", ".join(sorted({describe(c.draft.mechanism) for c in own if not c.draft.is_mutant})),
                "claims": [claim.id for claim in own if not claim.draft.is_mutant],
                "mutants": [claim.id for claim in own if claim.draft.is_mutant],
                "exact": any(claim.draft.curves for claim in own),
                "accuracy": any(claim.draft.level == "L4" for claim in own),
            }
        )
    if as_json:
        click.echo(json.dumps(listed, indent=1, ensure_ascii=False))
        return
    for item in listed:
        click.echo(f"{item['entry']}  {item['name']}")
        for claim in claims:
            if claim.entry == item["entry"]:
                click.echo(f"  {claim.id}  {claim.draft.guarantee}  expected {claim.draft.expected}")
    entries, plural = len(listed), "entry" if len(listed) == 1 else "entries"
    click.echo(f"{entries} {plural}, {len(claims)} claim{'s' * (len(claims) != 1)}")


@cli.command()
@click.argument("claim_id", metavar="ID")
@click.argument("paths", nargs=-1)
def show(claim_id: str, paths: tuple[str, ...]) -> None:
    """Show what a claim or an entry states."""
    from auditor import registry
    from auditor.findings import describe, show_data

    claims = [c for c in registry.claims(paths or ("experiments",)) if claim_id in (c.id, c.entry)]
    if not claims:
        raise SpecificationError(f"no claim or entry has the id {claim_id!r} (see `dpaudit list`)")
    for claim in claims:
        draft = claim.draft
        click.echo(f"{claim.id}\n  {claim.title}" + (f": {draft.note}" if draft.note else ""))
        click.echo(f"  source     {claim.source.document}, {claim.source.place}")
        click.echo(f"  claimed    {draft.guarantee} ({draft.guarantee.notion}), expected {draft.expected}")
        click.echo(f"  mechanism  {describe(draft.mechanism)}")
        for pair in draft.pairs:
            click.echo(f"  pair       {pair.name}: {show_data(pair.x)} against {show_data(pair.y)}")
        known = [draft.guarantee.exact_level(c) for c in draft.curves]
        if draft.exact_level is not None:
            known.append(draft.exact_level)
        click.echo(f"  exact      {max(known):.6g}" if known else "  exact      not known")


@cli.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=None, help="Folder [default: that of RESULTS]."
)
def report(results: Path, out: Path | None) -> None:
    """Render the reports again from a results.json."""
    from auditor import report as rendering

    content = _read(results)
    _writable(out or results.resolve().parent)
    beside = results.resolve().parent / "run.json"
    record = json.loads(beside.read_text(encoding="utf-8")) if beside.is_file() else None
    written = rendering.write_reports(content, out or results.resolve().parent, record)
    for path in written:
        click.echo(path)


@cli.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Worker processes [default: all cores].")
def reproduce(results: Path, jobs: int | None) -> None:
    """Run again what a results.json records, and compare."""
    from auditor import registry, runner

    before = _read(results)
    about = before["manifest"]
    if "paths" not in about:
        raise SpecificationError(
            f"{str(results)!r} is of an attack, not of a run: its replay line stands in the result"
        )
    asked = runner.Run(
        paths=tuple(about["paths"]),
        expression=about["selection"],
        level=about["level"],
        alpha=about["alpha"],
        seed=about["seed"],
        draws=about["draws"],
        jobs=jobs if jobs is not None else os.cpu_count() or 1,
        chunks={c["id"]: len(c["record"]["chunks"]) for c in before["claims"] if c.get("truncated_by") == "time"},
    )
    selected = registry.select(registry.claims(asked.paths), asked.expression)
    with Progress(len(before["claims"])) as progress:
        outcome = runner.execute(asked, selected, progress.advance, only={c["id"] for c in before["claims"]})
    after = runner.results_document(asked, selected, outcome)
    for name in ("dpaudit", "python", "libraries", "specification_hash", "source_hash"):
        if about.get(name) != after["manifest"][name]:
            click.echo(f"differs: {name}: {about.get(name)} then, {after['manifest'][name]} now", err=True)
    ignored = {"truncated_by"}
    old = {c["id"]: {k: v for k, v in c.items() if k not in ignored} for c in before["claims"]}
    new = {c["id"]: {k: v for k, v in c.items() if k not in ignored} for c in after["claims"]}
    differing = sorted(id_ for id_ in old.keys() | new.keys() if old.get(id_) != new.get(id_))
    for id_ in differing:
        click.echo(f"differs: {id_}")
    click.echo(f"{len(new) - len([i for i in differing if i in new])} of {len(old)} claims reproduced")
    sys.exit(1 if differing else 0)


@cli.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
def diff(first: Path, second: Path) -> None:
    """Compare two results.json claim by claim: verdicts and lower bounds."""
    before, after = ({c["id"]: c for c in _read(path)["claims"]} for path in (first, second))
    changed = False
    for id_ in sorted(before.keys() | after.keys()):
        if id_ not in before or id_ not in after:
            click.echo(f"only in {first if id_ in before else second}: {id_}")
        elif before[id_]["verdict"] != after[id_]["verdict"]:
            click.echo(f"{id_}: {before[id_]['verdict']} -> {after[id_]['verdict']}")
        elif before[id_]["lower_bound"] != after[id_]["lower_bound"]:
            click.echo(f"{id_}: lower bound {before[id_]['lower_bound']} -> {after[id_]['lower_bound']}")
        else:
            continue
        changed = True
    if not changed:
        click.echo("no claim differs")
    sys.exit(1 if changed else 0)


@cli.command()
@click.option("--audits", type=click.IntRange(min=1), default=200, show_default=True, help="Audits of each mechanism.")
@click.option("--draws", type=int, default=20_000, show_default=True, help="Outputs an audit, both sides together.")
@click.option("--alpha", type=float, default=0.05, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
def calibrate(audits: int, draws: int, alpha: float, seed: int) -> None:
    """Measure the auditor itself on this machine: false alarms at zero margin, and what it finds above."""
    from auditor.calibrate import calibration

    lines, sound = calibration(audits, draws, alpha, seed, lambda text: click.echo(text, err=True))
    for line in lines:
        click.echo(line)
    sys.exit(0 if sound else FAILED)


def _read(path: Path) -> dict[str, Any]:
    from auditor.results import SCHEMA

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpecificationError(f"cannot read {str(path)!r}: {error}") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        schema = content.get("schema") if isinstance(content, dict) else type(content).__name__
        raise SpecificationError(f"{str(path)!r} is not a results.json: expected schema {SCHEMA!r}, got {schema!r}")
    return content


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: every failure is one line and exit code 2, never a traceback."""
    words = list(arguments) if arguments is not None else sys.argv[1:]
    try:
        # Not cli.main: that turns a closed pipe into exit code 1, which here is a finding.
        with cli.make_context("dpaudit", words) as context:
            cli.invoke(context)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the flush at exit says nothing
        sys.exit(FAILED)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(FAILED)
    except (DpauditError, TargetError) as error:
        click.echo(f"dpaudit: {error}", err=True)
        sys.exit(FAILED)
    except ValueError as error:  # bad parameters of declared objects
        click.echo(f"dpaudit: {error}", err=True)
        sys.exit(FAILED)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        if os.environ.get("DPAUDIT_TRACEBACK"):
            raise
        click.echo(
            f"dpaudit failed: {type(error).__name__}: {error}\n"
            "This is a fault of dpaudit; please report it with the traceback that DPAUDIT_TRACEBACK=1 shows.",
            err=True,
        )
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
