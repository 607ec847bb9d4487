"""`dpaudit trace`: two runs of a target with the same random variates."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from auditor.cli.commands import ARGUMENTS, ONE_DRAW, GivenPath, hide_prints, make_folder
from auditor.cli.one_result import name_result, save_result
from auditor.cli.terminal import print_text


@click.command(short_help="Replay a target's random draws on the neighbouring dataset.")
@click.argument("target")
@click.option("--claim", required=True, help='The claim, as for `dpaudit attack`: "epsilon=1".')
@click.option("--data", type=GivenPath(), required=True, help="Dataset: .csv, .json (of any form), .npy or .parquet.")
@click.option("--neighbor", type=GivenPath(), required=True, help="Neighbouring dataset.")
@click.option("--show-data", is_flag=True, help="Show the datasets, and values of outputs.")
@ONE_DRAW
@ARGUMENTS
@click.option("--draws", type=click.IntRange(min=200), default=20_000, show_default=True, help="Draws that certify.")
@click.option("--max-seconds", type=click.FloatRange(min=0, min_open=True), default=None, help="Seconds for them.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the variates.")
@click.option("--out", type=GivenPath(file_okay=False), default=None, help="Folder for results.json and the reports.")
def trace(
    target: str,
    claim: str,
    data: Path,
    neighbor: Path,
    show_data: bool,
    one_draw: bool,
    arguments: Sequence[str],
    draws: int,
    max_seconds: float | None,
    seed: int,
    out: Path | None,
) -> None:
    """Run a target on two datasets with the same variates.

    A Python function draws the same random variates in both runs, and the runs are compared. Findings name the line:
    noise that is missing on one dataset, a scale that depends on the data, a shift larger than the noise allows, a
    variate that is used twice, data that reach the output without noise, draws that compose beyond the claim. Each is
    certified by enumeration or by bets on fresh draws, or called a deviation. That nothing is found is no evidence that
    the claim holds.

    TARGET is named as for `dpaudit attack`: a Python function of this process, or of an environment of its own (pip:).

    Exit codes: 0 nothing found; 1 a violation or a deviation; 2 an error; 3 the target cannot be replayed.
    """
    from auditor.audits.replayed_draws import trace as compare_runs
    from auditor.audits.replayed_draws import with_replay
    from auditor.audits.summary import explain
    from auditor.datasets import Pair
    from auditor.datasets.files import read_pair
    from auditor.privacy.guarantees import parse_claim
    from auditor.runs.run import exit_code
    from auditor.targets.raises import catch_exits
    from auditor.targets.sampler import check_seed
    from auditor.targets.signatures import parse_arguments
    from auditor.targets.target_names import closing_target, show_target, source_of, target_named

    guarantee = parse_claim(claim)
    check_seed(seed)
    pair = Pair(*read_pair(data, neighbor), f"{data.name} against {neighbor.name}")
    if out is not None:
        make_folder(out)
    given = parse_arguments(arguments)
    with (
        hide_prints(print_text, private=not show_data),
        closing_target(target_named(target, one_draw=one_draw, given=given)) as mechanism,
        catch_exits(private=not show_data),
    ):
        result = compare_runs(
            mechanism,
            guarantee,
            pair,
            seed=seed,
            draws=draws,
            seconds=max_seconds,
            private=not show_data,
            id=name_result("trace", "L1", guarantee, show_target(target)),
        )
    words = ["dpaudit", "trace", show_target(target), "--claim", claim, "--data", data, "--neighbor", neighbor]
    words += ["--draws", draws, "--seed", seed, *(["--max-seconds", max_seconds] if max_seconds is not None else [])]
    words += ["--one-draw"] * one_draw + ["--show-data"] * show_data
    words += [word for text in arguments for word in ("--arg", text)]
    result = with_replay(result, shlex.join(map(str, words)))
    if out is not None:
        about = {"target": show_target(target), "one_draw": one_draw}
        about |= {"arguments": list(arguments)} if arguments else {}
        save_result(out, result, {**about, "source": source_of(target, arguments)})
    print_text(explain(result))
    sys.exit(exit_code([result]))
