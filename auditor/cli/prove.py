"""`dpaudit prove`: the exact level of code on a small domain."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from auditor.cli.commands import ARGUMENTS, ONE_DRAW, GivenPath, hide_prints, make_folder
from auditor.cli.one_result import load_function, name_result, save_result
from auditor.cli.terminal import print_text


@click.command(short_help="Bracket the exact level of code on a small domain.")
@click.argument("target")
@click.option("--claim", required=True, help='The claim, as for `dpaudit attack`: "epsilon=1".')
@click.option("--relation", required=True, help="How the datasets differ, as for `dpaudit attack`: replace-one, ...")
@click.option("--domain", required=True, help='Values of a row: "0,1", "0:3", "a,b,c".')
@click.option("--rows", type=click.IntRange(min=0), default=2, show_default=True, help="Most rows of a dataset.")
@click.option("--min-rows", type=click.IntRange(min=0), default=0, show_default=True, help="Fewest rows of a dataset.")
@ONE_DRAW
@ARGUMENTS
@click.option("--max-seconds", type=float, default=60.0, show_default=True, help="Time in all.")
@click.option("--out", type=GivenPath(file_okay=False), default=None, help="Folder for results.json and the reports.")
def prove(
    target: str,
    claim: str,
    relation: str,
    domain: str,
    rows: int,
    min_rows: int,
    one_draw: bool,
    arguments: Sequence[str],
    max_seconds: float,
    out: Path | None,
) -> None:
    """Bracket the exact level of code on a small domain.

    TARGET is a Python function, named as for `dpaudit attack`; no exec:, http: or pip: target. It runs in this process,
    once for each path of its random decisions, on every pair of neighbouring datasets of the domain. Discrete noise is
    walked exactly; of continuous noise comparisons with numbers are, and anything else is said to be out of reach. No
    draws are made, so chance plays no part. The verdict "holds" is about these datasets alone.

    Exit codes: 0 the claim holds on these datasets; 1 it is violated; 2 an error; 3 not all could be enumerated.
    """
    from auditor.audits.certificates import prove as bracket_level
    from auditor.audits.summary import explain
    from auditor.datasets import relation_named
    from auditor.datasets.files import parse_domain
    from auditor.privacy.guarantees import parse_claim
    from auditor.runs.run import exit_code
    from auditor.targets.raises import catch_exits
    from auditor.targets.target_names import show_target, source_of

    guarantee, values, kind = parse_claim(claim), parse_domain(domain), relation_named(relation)
    with hide_prints(print_text, private=False):
        mechanism = load_function(target, one_draw, arguments, "walked")
        if out is not None:
            make_folder(out)
        with catch_exits():
            result = bracket_level(
                mechanism,
                guarantee,
                relation=kind,
                domain=values,
                rows=rows,
                min_rows=min_rows,
                seconds=max_seconds,
                id=name_result("prove", "L0", guarantee, show_target(target)),
            )
    words = ["dpaudit", "prove", target, "--claim", claim, "--relation", relation, "--domain", domain]
    words += ["--rows", str(rows), "--min-rows", str(min_rows), *["--one-draw"] * one_draw]
    words += [word for argument in arguments for word in ("--arg", argument)]
    result = replace(result, replay=shlex.join(words))
    if out is not None:
        about = {"target": target, "domain": domain, "relation": relation, "source": source_of(target, arguments)}
        save_result(out, result, about)
    print_text(explain(result))
    sys.exit(exit_code([result]))
