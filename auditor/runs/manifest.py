"""What the results of a run depend on: its manifest, and hashes of its code and of its datasets."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from auditor.audits.privacy_loop import Settings
from auditor.audits.summary import describe_target
from auditor.claims import Claim
from auditor.results import make_plain
from auditor.runs.run import ALPHA_SPLIT, Run, settings_of, split_alpha
from auditor.targets import source_hash
from auditor.targets.content import spell_out
from auditor.targets.python_files import find_files
from auditor.targets.sources import (
    ENGINE,
    find_package,
    find_versions,
    hash_bytes,
    hash_files,
    hash_parts,
    imported_files,
    is_installed,
    project_files,
)

#: Libraries whose versions bear on the numbers.
LIBRARIES = ("numpy", "scipy", "pandas", "scikit-learn", "statsmodels")


def build_manifest(run: Run, selected: Sequence[Claim]) -> dict[str, Any]:
    """Manifest of a run: all that its results depend on.

    Versions, seed, options, and hashes of the specification and of the targets.

    Parameters
    ----------
    run : Run
        What was asked for.
    selected : sequence of Claim
        Claims of the run.
    """
    alpha = split_alpha(selected, run.alpha)
    specification = "\n".join(
        f"{c.id}|{c.draft.guarantee!r}|{c.draft.expected}|{describe_target(c.draft.mechanism)}|"
        f"{[p.name for p in c.draft.pairs] or [name for name, _ in c.draft.datasets]}|"
        f"{_spell_settings(settings_of(c, run, alpha[c.id]))}"
        for c in selected
    )
    sources = sorted(
        {source_hash(c.draft.subject if c.draft.mechanism is None else c.draft.mechanism) for c in selected}
    )
    return {
        **find_versions(["dpaudit"]),
        "python": platform.python_version(),
        "libraries": find_versions(LIBRARIES),
        "paths": list(run.paths),
        "selection": run.expression,
        "level": run.level,
        "seed": run.seed,
        "alpha": run.alpha,
        "alpha_split": ALPHA_SPLIT,
        "draws": run.draws,
        "seconds": run.seconds,
        "detect": run.detect,
        "method": run.method,
        **({"ignore": list(run.ignore)} if run.ignore else {}),
        **({"also": True} if run.also else {}),
        **({"ledger": str(run.ledger)} if run.ledger is not None else {}),
        **({"ledger_key": run.ledger_key} if run.ledger_key else {}),
        # Without addresses in memory, which differ from process to process.
        "specification_hash": hash_bytes(re.sub(r" at 0x[0-9a-f]+", "", specification).encode()),
        "source_hash": hash_bytes("".join(sources).encode()),
        "claims_selected": len(selected),
    }


def _spell_settings(settings: Settings) -> str:
    """Settings as text, with what is ignored only where something is."""
    further = {name: value for name, value in (("ignore", settings.ignore), ("also", settings.also)) if value}
    return f"{replace(settings, seconds=None, chunks=None)}" + (f"|{further}" if further else "")


def fingerprint_run(run: Run, selected: Sequence[Claim]) -> dict[str, Any]:
    """Hash of all that the results of a run depend on.

    Its manifest, and hashes of the code and of the datasets.

    The manifest's hashes are of the claims and of the audited classes themselves; these are of all files that they
    could call, because a claim that is taken from a journal is not looked at again.

    Parameters
    ----------
    run : Run
        What was asked for.
    selected : sequence of Claim
        Claims of the run.

    Returns
    -------
    dict
        The `build_manifest` as JSON has it, with ``code_hash`` and ``data_hash``, 16 digits each.
    """
    texts: dict[int, bytes] = {}
    data = []
    for claim in selected:
        draft = claim.draft
        for dataset in (*(side for pair in draft.pairs for side in (pair.x, pair.y)), *(d for _, d in draft.datasets)):
            if id(dataset) not in texts:
                texts[id(dataset)] = hash_parts(spell_out(dataset, key="seen by the class alone").encode()).encode()
            data.append(texts[id(dataset)])
    hashes = {"code_hash": hash_files(code_files(run, selected)), "data_hash": hash_parts(*data)}
    return {**make_plain(build_manifest(run, selected)), **hashes}


def code_of(run: Run, selected: Sequence[Claim]) -> dict[str, str]:
    """Hashes of source files: engine, claims and mechanisms.

    They are those on the disk now.

    Parameters
    ----------
    run : Run
        Its paths declare the claims.
    selected : sequence of Claim
        Claims of the run.

    Returns
    -------
    dict of str to str
        By names that are the same on every machine: from the package's folder on for what is in a package, else
        relative to the working directory, or the bare name of a file elsewhere. Two files of one name share a hash.
    """
    found: dict[str, list[Path]] = {}
    for file in code_files(run, selected):
        found.setdefault(_name(file.resolve()), []).append(file)
    return {name: hash_files(found[name]) for name in sorted(found)}


def _name(file: Path) -> str:
    folder, package = find_package(file)
    if package:
        return file.relative_to(folder).as_posix()
    return file.relative_to(Path.cwd()).as_posix() if file.is_relative_to(Path.cwd()) else file.name


def code_files(run: Run, selected: Sequence[Claim]) -> set[Path]:
    """Source files of this package, the claims and their mechanisms.

    Those that claims and mechanisms import of the project are among them.

    Parameters
    ----------
    run : Run
        Its paths declare the claims.
    selected : sequence of Claim
        Claims whose mechanisms count.
    """
    names = {"auditor"}
    for claim in selected:
        mechanism = claim.draft.mechanism
        for part in (mechanism, type(mechanism), getattr(mechanism, "function", None)):
            names.add(str(getattr(part, "__module__", "")))
    files: set[Path] = set()
    for name in names:
        files.update(_files_of(name))
    for place in {_package_or_file(Path(file).resolve()) for file in find_files(run.paths)}:
        files.update(place.rglob("*.py") if place.is_dir() else [place])
    # A module beside the mechanism that it imports makes results too, as a package around it does.
    modules = names | {claim.module for claim in selected}
    own = project_files(getattr(sys.modules.get(name), "__file__", None) for name in modules)
    imported, _ = imported_files(frozenset(file for file in own if not file.is_relative_to(ENGINE)))
    return {file.resolve() for file in files} | imported


def _package_or_file(file: Path) -> Path:
    """The package that a file of claims stands in, whether or not it is loaded; else the file."""
    folder, package = find_package(file)
    return folder / package[0] if package and not is_installed(folder / package[0]) else file


def _files_of(name: str) -> Iterable[Path]:
    package = sys.modules.get(name.partition(".")[0])
    own = getattr(sys.modules.get(name), "__file__", None)
    folders = [Path(folder) for folder in getattr(package, "__path__", ())]
    if name != "auditor" and any(is_installed(folder.resolve()) for folder in folders):
        folders = []  # an installed package may be huge, and has a version
    if folders:
        return (file for folder in folders for file in folder.rglob("*.py"))
    return [Path(own)] if own is not None and Path(own).is_file() else []
