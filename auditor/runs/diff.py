"""Reading results again and comparing them."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from auditor.errors import SpecificationError
from auditor.results import SCHEMA, Verdict, find_wrong_number, make_plain, parse_number, part_reached

#: Members of a manifest that follow from others, or say how a run went, not what it was.
_DERIVED = ("alpha_split", "claims_selected", "interrupted", "baseline")
#: The schema before resolutions: its ``detectable_level`` is read as far as it was a statement of power.
_BEFORE_LEVELS = "dpaudit-results/1"
#: First bytes of an .xz file, whatever its name.
_XZ = b"\xfd7zXZ\x00"
#: What the level of a packed file is; the best there is, as it is packed once and read often.
_PRESET = 9 | lzma.PRESET_EXTREME
#: Members of a claim's record that are not compared: what a baseline says, and lines of code, which move with comments.
_BESIDE = ("known", "new", "places")
#: Members that say most about a claim, and are shown first.
_FIRST = ("verdict", "expected", "claimed", "lower_bound", "log10_e_value", "draws")
#: Characters of a text that a line of a difference shows; arbitrary, two of them fit a line of a terminal.
_SHOWN = 48
#: Characters before the first that differs; arbitrary.
_BEFORE = 12


def read_results(path: Path) -> dict[str, Any]:
    """Read a results.json, also one that is packed as an .xz file.

    Raises
    ------
    SpecificationError
        If it cannot be read, or has no manifest, or a claim of it lacks what every claim has.
    """
    try:
        content = json.loads(_unpack_content(path.read_bytes()).decode("utf-8"))
    except (OSError, ValueError, EOFError, RecursionError, lzma.LZMAError) as error:
        raise SpecificationError(f"cannot read {str(path)!r}: {error}") from error
    if not isinstance(content, dict) or content.get("schema") not in (SCHEMA, _BEFORE_LEVELS):
        schema = content.get("schema") if isinstance(content, dict) else type(content).__name__
        newer = "; it was written by another version of dpaudit" if _is_results_schema(schema) else ""
        raise SpecificationError(
            f"{str(path)!r} is not a results.json: expected schema {SCHEMA!r}, got {schema!r}{newer}"
        )
    for name, kind in (("manifest", dict), ("claims", list)):
        if not isinstance(content.get(name), kind):
            raise SpecificationError(f"{str(path)!r} is not a results.json: its {name!r} is {content.get(name)!r}")
    for k, claim in enumerate(content["claims"], 1):
        if not isinstance(claim, dict):
            raise SpecificationError(f"{str(path)!r}: claim {k} is {claim!r}, expected an object")
        missing = [n for n in ("id", "verdict", "expected", "ok", "lower_bound", "claimed") if n not in claim]
        if missing:
            raise SpecificationError(f"{str(path)!r}: claim {k} has no {missing[0]!r}")
        if not isinstance(claim["id"], str) or not claim["id"]:
            raise SpecificationError(f"{str(path)!r}: claim {k} has the id {claim['id']!r}, expected a text")
        wrong = find_wrong_number(claim)
        if wrong:
            raise SpecificationError(f"{str(path)!r}: claim {k} has the {wrong} {claim[wrong]!r}, expected a number")
        if not isinstance(claim.get("counterexample"), dict | None):
            found = claim["counterexample"]
            raise SpecificationError(f"{str(path)!r}: claim {k} has the counterexample {found!r}, expected an object")
        for name in ("verdict", "expected"):
            if claim[name] not in list(Verdict):
                raise SpecificationError(f"{str(path)!r}: claim {k} has the {name} {claim[name]!r}")
    id_, times = Counter(claim["id"] for claim in content["claims"]).most_common(1)[0] if content["claims"] else ("", 0)
    if times > 1:
        raise SpecificationError(f"{str(path)!r} has {times} claims of the id {id_!r}")
    return content if content["schema"] == SCHEMA else _brought_up(content)


def _brought_up(content: Mapping[str, Any]) -> dict[str, Any]:
    """Content of the first schema as that of this one.

    Its detectable level of a claim that was audited through events said how often the best event occurred, not what
    would have been found: it is left out.
    """
    claims = []
    for claim in content["claims"]:
        members = {name: value for name, value in claim.items() if name != "detectable_level"}
        events = claim.get("level") in ("L1", "L2") and "adversary" not in (claim.get("record") or {})
        reached = part_reached(
            claim.get("level", ""), parse_number(claim["lower_bound"]), parse_number(claim.get("claimed_level"))
        )
        members |= {
            "resolution": {},
            "resolves": None if events else claim.get("detectable_level"),
            "reached": make_plain(reached),
        }
        claims.append(members)
    return {**content, "schema": SCHEMA, "claims": claims}


def read_run_record(results: Path) -> dict[str, Any] | None:
    """Read the run.json beside a results.json, or None.

    It has times, the machine and the code.

    Raises
    ------
    SpecificationError
        If it cannot be read, or is no object.
    """
    path = results.resolve().parent / "run.json"
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpecificationError(f"cannot read {str(path)!r}: {error}") from error
    if not isinstance(content, dict):
        raise SpecificationError(f"{str(path)!r}: expected an object, got {type(content).__name__}")
    return content


def pack_bytes(content: bytes) -> bytes:
    """Compress a file as .xz, deterministically.

    A results.json becomes about a tenth as long.
    """
    return lzma.compress(content, preset=_PRESET)


def _unpack_content(content: bytes) -> bytes:
    return lzma.decompress(content) if content.startswith(_XZ) else content


def _is_results_schema(schema: Any) -> bool:
    name, _, _ = SCHEMA.partition("/")
    return isinstance(schema, str) and schema.startswith(f"{name}/")


def manifest_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Differences of two manifests, as "seed: 0 then, 1 now".

    Empty if they agree.

    Parameters
    ----------
    before, after : mapping
        Manifests; members of mappings in them are compared one by one.
    """
    old, new = _flatten_manifest(before), _flatten_manifest(after)
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    return [f"{name}: {_show_value(old.get(name))} then, {_show_value(new.get(name))} now" for name in names]


def _flatten_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Members, with those of "libraries" beside the others; absent is the same as null."""
    flat: dict[str, Any] = {}
    for name, value in manifest.items():
        if isinstance(value, Mapping):
            flat.update(value)
        elif name not in _DERIVED and value is not None:
            flat[name] = value
    return flat


def _show_value(value: Any) -> str:
    if value is None:
        return "not given"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def list_differences(before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, str]) -> list[str]:
    """Lines on claims that differ between two results.

    They are by id, with a count at the end; empty if none differs.

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
        was, now = (_list_conditions(claim) for claim in (old[id_], new[id_]))
        changes += [f"{what} {was[what]} -> {now[what]}" for what in was if was[what] != now[what]]
        verdicts += bool(changes)
        if not changes:
            changes = [
                f"{what} {_show_value(old[id_].get(key))} -> {_show_value(new[id_].get(key))}"
                for what, key in (("lower bound", "lower_bound"), ("exact level", "exact"))
                if old[id_].get(key) != new[id_].get(key)
            ]
            bounds += bool(changes)
        if changes:
            lines.append(f"{id_}: {', '.join(changes)}")
    if lines:
        lines.append(
            f"{len(lines)} of {len(old.keys() | new.keys())} claims differ: {verdicts} in verdict or claim, "
            f"{bounds} in a bound or exact level only, {alone} in one of the two only"
        )
    return lines


def _list_conditions(claim: Mapping[str, Any]) -> dict[str, str]:
    """What a verdict goes with: the notion, what was left out, and the auditor's own check."""
    failed = str(claim.get("sandwich") or "").startswith("failed")
    ignored = claim.get("ignore") or "nothing"  # of a file that was made by hand it may be anything
    return {
        "notion": str(claim.get("notion") or "not given"),
        "ignored": ", ".join(map(str, ignored)) if isinstance(ignored, list) else str(ignored),
        "the auditor's own check": "failed" if failed else "not failed",
    }


def record_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Differences of two records, as "lower_bound: 0.98 then, 0.97 now".

    To the byte; empty if there are none.

    What a baseline says and lines of code are left out, and that time cut the first one short. What says most comes
    first, then whole members before what is inside of others.

    Parameters
    ----------
    before, after : mapping
        Records of one claim, see `AuditResult.to_json`.
    """
    beside = (*_BESIDE, *(("truncated_by",) if before.get("truncated_by") == "time" else ()))
    old, new = ({name: value for name, value in record.items() if name not in beside} for record in (before, after))
    if json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True):
        return []
    found = sorted(_changes(old, new, ""), key=lambda change: _rank(change[0]))
    return [f"{where}: {text}" for where, text in found]


def _rank(where: str) -> tuple[int, int]:
    """Order of members: those that say most, then by how far inside they are."""
    first = _FIRST.index(where) if where in _FIRST else len(_FIRST)
    return first, where.count(".") + where.count("[")


def _changes(old: Any, new: Any, where: str) -> Iterator[tuple[str, str]]:
    """Innermost members that differ, each with what it was and is."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            inner = f"{where}.{name}" if where else name
            if name not in old or name not in new:
                there = "in the file alone" if name in old else "not in the file"
                yield inner, there
            else:
                yield from _changes(old[name], new[name], inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from _changes(first, second, f"{where}[{k}]")
    elif isinstance(old, list) and isinstance(new, list):
        yield where, f"{len(old)} items then, {len(new)} now"
    elif json.dumps(old) != json.dumps(new):
        yield where, f"{_excerpt(old, new)} then, {_excerpt(new, old)} now"


def _excerpt(value: Any, other: Any) -> str:
    """A value, of a long text the part where it begins to differ from another."""
    text, beside = (json.dumps(v, ensure_ascii=False) for v in (value, other))
    if len(text) <= _SHOWN:
        return text
    same = next((k for k, (a, b) in enumerate(zip(text, beside, strict=False)) if a != b), min(len(text), len(beside)))
    start = max(0, min(same - _BEFORE, len(text) - _SHOWN))
    end = start + _SHOWN
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
