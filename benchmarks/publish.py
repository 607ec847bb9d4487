"""The published run: results.json packed, a summary of it, and from which code it was made.

Run as ``dpaudit run experiments --level standard --out out/standard`` and then ``python -m benchmarks.publish
out/standard/results.json --out reports/full``; `make publish` does both. ``dpaudit reproduce
reports/full/results.json.xz`` runs it again and compares.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.errors import SpecificationError
from auditor.report.markdown import escape_markdown
from auditor.report.view import ClaimView, RunView
from auditor.results import Verdict
from auditor.runs.diff import pack_bytes, read_results, read_run_record

#: What is asked at each level.
LEVELS = {
    "L0": "does the stated distribution itself break the guarantee?",
    "L1": "do the outputs violate the stated guarantee?",
    "L2": "do the parts violate their own, tight, bound?",
    "L3": "do the outputs follow the stated distribution?",
    "L4": "does the accuracy theorem hold at its own parameters?",
}
_ABOUT = """\
`results.json.xz` has every claim with its evidence, packed by xz; every command that takes a results.json reads it.
`run.json` has the hashes of the files of code that made it, and the machine.

    dpaudit reproduce reports/full/results.json.xz --sample 20      run a part again and compare to the byte
    dpaudit report reports/full/results.json.xz --out out/full      the report as HTML, Markdown, JUnit and SARIF"""


def summary(results: Mapping[str, Any]) -> str:
    """The page on a run; it is the same to the byte whenever its results.json is."""
    view = RunView.of(results)
    about = view.manifest
    libraries = ", ".join(f"{name} {version}" for name, version in about["libraries"].items())
    part = f" of the claims that match {escape_markdown(about['selection'])}" if about.get("selection") else ""
    cut = sum(bool(claim.raw.get("truncated_by")) for claim in view.claims)
    text = [
        "# The published run",
        "",
        f"**{escape_markdown(view.sentence)}**",
        "",
        f"`dpaudit run {' '.join(about['paths'])}` at level {about['level']}{part}, with seed {about['seed']} and "
        f"alpha {about['alpha']} for all claims together; dpaudit {about['dpaudit']}, Python {about['python']}, "
        f"{libraries}. " + (f"{cut} claims were cut short by time. " if cut else "") + "Made by `make publish`.",
        "",
        _ABOUT,
        "",
        "Claims by the verdict that they got. All verdicts are the expected ones but for the claims under "
        "“unexpected”: mutants and statements that are false as printed are to be refuted. A pass says “not refuted”; "
        "a pass never means private.",
        "",
        *_table(view.claims, "level", [claim.level for claim in view.claims], LEVELS),
        *_table(view.claims, "document", [claim.entry.partition("/")[0] for claim in view.claims], {}),
        *_list_unexpected(view.unexpected),
    ]
    return "\n".join(text)


def _table(claims: Sequence[ClaimView], what: str, groups: Sequence[str], about: Mapping[str, str]) -> Iterable[str]:
    """Claims of each group by verdict, with a row for all of them at the end."""
    verdicts = [str(verdict) for verdict in Verdict if any(claim.verdict == verdict for claim in claims)]
    header = [what, "claims", *verdicts, "unexpected"]
    yield "| " + " | ".join(header) + " |"
    yield "| --- |" + " ---: |" * (len(header) - 1)
    for group in [*sorted(set(groups)), None]:
        of = [claim for claim, own in zip(claims, groups, strict=True) if group in (None, own)]
        name = "all" if group is None else f"{group}: {about[group]}" if group in about else group
        counts = [sum(claim.verdict == verdict for claim in of) for verdict in verdicts]
        numbers = [len(of), *counts, sum(claim.unexpected for claim in of)]
        yield f"| {name} | " + " | ".join(f"{number:,}" for number in numbers) + " |"
    yield ""


def _list_unexpected(claims: Sequence[ClaimView]) -> Iterable[str]:
    if claims:
        yield from ("## Unexpected", "")
        yield from (f"- {escape_markdown(claim.id)}: {escape_markdown(claim.surprise)}" for claim in claims)
        yield ""


def publish(results: Path, out: Path) -> list[Path]:
    """Write results.json.xz, summary.md and run.json to a folder.

    Times are left out: the files are the same to the byte each time that the run is made from the same code on the same
    machine.

    Raises
    ------
    SpecificationError
        If the results cannot be read, are of an interrupted run, of an attack or of one with a ledger, or there is no
        run.json beside them that says which code made them.
    """
    content, record = read_results(results), read_run_record(results)
    about = content["manifest"]
    if "paths" not in about:
        raise SpecificationError(f"{str(results)!r} is of an attack, not of a run")
    if about.get("interrupted") or len(content["claims"]) != about.get("claims_selected"):
        raise SpecificationError(
            f"{str(results)!r} has {len(content['claims'])} of {about.get('claims_selected')} claims: a run is "
            "published whole"
        )
    if about.get("ledger") is not None:
        raise SpecificationError(f"{str(results)!r} rests on the ledger {about['ledger']!r}, and cannot be run again")
    if record is None or not record.get("sources"):
        raise SpecificationError(f"there is no run.json beside {str(results)!r} that says which code made it")
    kept = {name: record[name] for name in ("schema", "machine", "sources")}
    contents = {
        "results.json.xz": results.read_bytes() if results.suffix == ".xz" else pack_bytes(results.read_bytes()),
        "summary.md": summary(content).encode("utf-8"),
        "run.json": f"{json.dumps(kept, indent=1)}\n".encode(),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, written in contents.items():
        partial = out / f"{name}.part"
        partial.write_bytes(written)
        partial.replace(out / name)
    return [out / name for name in contents]


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish a run; 1 if a claim of it did not come out as expected, 2 if it cannot be published."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.publish", description=__doc__)
    parser.add_argument("results", type=Path, help="results.json of a run")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    options = parser.parse_args(arguments)
    try:
        written = publish(options.results, options.out)
    except (SpecificationError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    for path in written:
        print(f"{path}  {path.stat().st_size:,} bytes")
    return 0 if RunView.of(read_results(options.results)).fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
