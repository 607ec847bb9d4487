"""Reading results again and comparing them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from auditor.errors import SpecificationError
from auditor.results import SCHEMA, Verdict

#: Members of a manifest that follow from others, or say how a run went, not what it was.
_DERIVED = ("alpha_split", "claims_selected", "interrupted", "baseline")


def read_results(path: Path) -> dict[str, Any]:
    """Read a results.json.

    Raises
    ------
    SpecificationError
        If it cannot be read, or has no manifest, or a claim of it lacks what every claim has.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpecificationError(f"cannot read {str(path)!r}: {error}") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        schema = content.get("schema") if isinstance(content, dict) else type(content).__name__
        raise SpecificationError(f"{str(path)!r} is not a results.json: expected schema {SCHEMA!r}, got {schema!r}")
    for name, kind in (("manifest", dict), ("claims", list)):
        if not isinstance(content.get(name), kind):
            raise SpecificationError(f"{str(path)!r} is not a results.json: its {name!r} is {content.get(name)!r}")
    for k, claim in enumerate(content["claims"], 1):
        missing = [n for n in ("id", "verdict", "expected", "ok", "lower_bound", "claimed") if n not in claim]
        if missing:
            raise SpecificationError(f"{str(path)!r}: claim {k} has no {missing[0]!r}")
        for name in ("verdict", "expected"):
            if claim[name] not in list(Verdict):
                raise SpecificationError(f"{str(path)!r}: claim {k} has the {name} {claim[name]!r}")
    return content


def manifest_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What two manifests differ in, for example "seed: 0 then, 1 now"; empty if they agree."""
    old, new = _flat(before), _flat(after)
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    return [f"{name}: {_shown(old.get(name))} then, {_shown(new.get(name))} now" for name in names]


def _flat(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Members, with those of "libraries" beside the others; absent is the same as null."""
    flat: dict[str, Any] = {}
    for name, value in manifest.items():
        if isinstance(value, Mapping):
            flat.update(value)
        elif name not in _DERIVED and value is not None:
            flat[name] = value
    return flat


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def differences(before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, str]) -> list[str]:
    """Lines on the claims in which two results differ, by id, with a count at the end; empty if none does.

    Parameters
    ----------
    before, after : mapping
        Parsed contents of results.json.
    names : tuple of str
        What the two are called.
    """
    old, new = ({claim["id"]: claim for claim in content["claims"]} for content in (before, after))
    lines = []
    verdicts = bounds = alone = 0
    for id_ in sorted(old.keys() | new.keys()):
        if id_ not in old or id_ not in new:
            lines.append(f"only in {names[id_ in new]}: {id_}")
            alone += 1
            continue
        changes = []
        for what, key in (("", "verdict"), ("expected ", "expected"), ("claimed ", "claimed")):
            if old[id_][key] != new[id_][key]:
                changes.append(f"{what}{old[id_][key]} -> {new[id_][key]}")
        verdicts += bool(changes)
        if not changes and old[id_]["lower_bound"] != new[id_]["lower_bound"]:
            changes.append(f"lower bound {_shown(old[id_]['lower_bound'])} -> {_shown(new[id_]['lower_bound'])}")
            bounds += 1
        if changes:
            lines.append(f"{id_}: {', '.join(changes)}")
    if lines:
        lines.append(
            f"{len(lines)} of {len(old.keys() | new.keys())} claims differ: {verdicts} in verdict or claim, "
            f"{bounds} in the lower bound only, {alone} in one of the two only"
        )
    return lines


def unreproduced(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Ids of claims whose records differ, apart from what cut them short, what a baseline says, and lines of code."""
    ignored = ("truncated_by", "known", "places")
    old, new = (
        {claim["id"]: {k: v for k, v in claim.items() if k not in ignored} for claim in content["claims"]}
        for content in (before, after)
    )
    return sorted(id_ for id_ in old.keys() | new.keys() if old.get(id_) != new.get(id_))
