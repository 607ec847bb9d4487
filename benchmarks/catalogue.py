"""The page of all entries, mutants and errata, generated from what the experiments declare; nothing is drawn."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from auditor.claims import Claim, Entry, Erratum, registry
from auditor.report.errata import CLASSES

LEVELS = ("L0", "L1", "L2", "L3", "L4")

_HEAD = """\
# Catalogue

What the experiments of this repository declare: every entry of the five source documents and some further ones, the
mutants that have to be caught, and the errata. This page is made by
`python -m benchmarks.catalogue --out docs/catalogue.md`, and a test holds it against the experiments. `dpaudit show ID`
prints what an entry's claims state, their pairs, datasets and budgets, and the command that runs them;
[reports/theorems.md](../reports/theorems.md) and [reports/mutants.md](../reports/mutants.md) have what was measured."""

_COLUMNS = """\
In the tables of entries, the columns L0 to L4 count claims by [level](reading-a-report.md#levels), mutants not
included: L0 the stated distribution, L1 the theorem on outputs, L2 a part against its own bound, L3 the distribution
of the outputs, L4 accuracy. "Errata" names what is wrong in the statement as printed; the end of the page says what."""

_MUTANTS = """\
Broken (or harmlessly different) versions, each a claim of its own. "Expected" is the verdict it has to get: `violation`
of the claimed guarantee, `deviation` from the stated distribution or accuracy, or `consistent` for a change that breaks
nothing. The same mutant may be asked in several ways."""

_ERRATA = """\
What is wrong in the copies of the documents that we have. A false statement has a claim that refutes it as printed and
one that holds as corrected; where only a step of a proof fails, the step is refuted and the statement holds. An erratum
that no claim shows is refused when the experiments are loaded."""


def document(paths: Sequence[str] = ("experiments",)) -> str:
    """The page in Markdown.

    Parameters
    ----------
    paths : sequence of str
        Files or folders that declare claims.
    """
    entries = registry.load_entries(paths)
    of: dict[str, list[Claim]] = {entry.id: [] for entry in entries}
    for claim in registry.load_claims(paths):
        of[claim.entry].append(claim)
    documents: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.id.partition("/")[0]):
        documents.setdefault(entry.id.partition("/")[0], []).append(entry)
    lines = [_HEAD, "", *_summary(documents, of), "", _COLUMNS, ""]
    for name, listed in documents.items():
        lines += [f"## {_heading(name, listed)}", "", *_entries(listed, of), ""]
    lines += ["## Mutants", "", _MUTANTS, ""]
    for name, listed in documents.items():
        lines += [f"### Mutants of {name}", "", *_mutants(listed, of), ""]
    lines += ["## Errata", "", _ERRATA, "", *_errata(documents, of)]
    return "\n".join(lines).rstrip() + "\n"


def _heading(name: str, listed: Sequence[Entry]) -> str:
    """The document's name, with what its package says of it."""
    package = listed[0].function.__module__.rpartition(".")[0]
    said = (import_module(package).__doc__ or "").strip().splitlines() if package.count(".") else []
    return said[0].rstrip(".") if said else name


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = ()) -> Iterator[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "|".join("---:" if head in right else "---" for head in heads) + "|"
    for row in rows:
        yield "| " + " | ".join(_cell(value) for value in row) + " |"


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def _stated_claims(claims: Sequence[Claim], level: str | None = None) -> list[Claim]:
    """Claims of what is stated, not of mutants."""
    return [c for c in claims if not c.draft.is_mutant and level in (None, c.draft.level)]


def _mutant_claims(claims: Sequence[Claim]) -> list[Claim]:
    return [claim for claim in claims if claim.draft.is_mutant]


def _summary(documents: dict[str, list[Entry]], of: dict[str, list[Claim]]) -> Iterator[str]:
    heads = ("document", "entries", "claims", *LEVELS, "claims of mutants", "errata")
    rows: list[tuple[int | str, ...]] = []
    for name, listed in documents.items():
        claims = [claim for entry in listed for claim in of[entry.id]]
        counts = [len(_stated_claims(claims, level)) for level in LEVELS]
        errata = len({erratum.id for entry in listed for erratum in entry.errata})
        rows.append((name, len(listed), len(claims), *counts, len(_mutant_claims(claims)), errata))
    sums = [sum(int(row[k]) for row in rows) for k in range(1, len(heads))]
    yield from _table(heads, [*rows, ("all", *sums)], right=heads[1:])


def _entries(listed: Sequence[Entry], of: dict[str, list[Claim]]) -> Iterator[str]:
    heads = ("entry", "what it is", "place", *LEVELS, "mutants", "errata")
    rows = []
    for entry in listed:
        claims = of[entry.id]
        counts = [len(_stated_claims(claims, level)) or "" for level in LEVELS]
        errata = ", ".join(dict.fromkeys(erratum.id for erratum in entry.errata))
        rows.append(
            (f"`{entry.id}`", entry.title, entry.source.place, *counts, len(_mutant_claims(claims)) or "", errata)
        )
    yield from _table(heads, rows, right=(*LEVELS, "mutants"))


def _mutants(listed: Sequence[Entry], of: dict[str, list[Claim]]) -> Iterator[str]:
    rows = [
        (f"`{entry.id}`", f"`{claim.draft.case}`", claim.draft.level, str(claim.draft.guarantee), claim.draft.expected)
        for entry in listed
        for claim in _mutant_claims(of[entry.id])
    ]
    yield from _table(("entry", "mutant", "level", "claimed", "expected"), rows) if rows else ["None."]


def _errata(documents: dict[str, list[Entry]], of: dict[str, list[Claim]]) -> Iterator[str]:
    for name, listed in documents.items():
        found: dict[str, tuple[Erratum, Entry]] = {}
        for entry in listed:
            for erratum in entry.errata:
                found.setdefault(erratum.id, (erratum, entry))
        if not found:
            continue
        yield f"### Errata of {name}"
        yield ""
        for id_, (erratum, entry) in found.items():
            yield f"**{id_}**, {_cell(entry.source.place)}: {CLASSES[erratum.kind]}."
            yield ""
            yield f"- stated: {_cell(erratum.summary)}"
            if erratum.fails:
                yield f"- fails: {_cell(erratum.fails)}"
            if erratum.correction:
                yield f"- right: {_cell(erratum.correction)}"
            for claim in (claim for other in listed for claim in of[other.id]):
                shows = claim.draft.shows
                if shows is not None and shows.erratum == id_:
                    yield f"- {shows.role}: `{claim.id}`, expected {claim.draft.expected}"
            yield ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.catalogue", description=__doc__)
    parser.add_argument("paths", nargs="*", default=["experiments"], help="files or folders that declare claims")
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write [default: standard output]")
    options = parser.parse_args(arguments)
    text = document(options.paths)
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
