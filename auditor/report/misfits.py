"""Members of a results.json that are of another type than its schema says."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from auditor.report import read_schema

_TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
#: Characters of a value that a message shows; arbitrary.
_SHOWN = 60


def find_misfit(content: Mapping[str, Any]) -> str:
    """Find the first member of a type that the schema excludes.

    Or one that lacks a part. Ranges, and members of a claim that are missing or unknown, are not looked at: another
    version may have written the file.

    Parameters
    ----------
    content : mapping
        Parsed content of results.json.

    Returns
    -------
    str
        Where it is and what it holds, as "claims[3].draws is 'many'", or what it lacks; empty where all fits.
    """
    found = _misfit(content, _schema(), "")
    if found is None:
        return ""
    place, value = found
    text = f"lacks {value.name!r}" if isinstance(value, _MissingPart) else f"is {_show(value)}"
    return f"{place.removeprefix('.')} {text}"


@dataclass(frozen=True)
class _MissingPart:
    """A part that is missing."""

    name: str


def _show(value: Any) -> str:
    """A value as a message has it; of an integer without end, how long it is."""
    if isinstance(value, int) and value.bit_length() > _SHOWN * 3:
        return f"an integer of {value.bit_length():,} bits"
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


@cache
def _schema() -> dict[str, Any]:
    return read_schema()


def _misfit(value: Any, schema: Any, place: str) -> tuple[str, Any] | None:
    """Place and value of what does not fit, the first one."""
    if not isinstance(schema, dict):  # true: anything
        return None
    if "$ref" in schema and (found := _misfit(value, _schema()["$defs"][schema["$ref"].rpartition("/")[2]], place)):
        return found
    if "anyOf" in schema:
        tried = [_misfit(value, choice, place) for choice in schema["anyOf"]]
        if all(tried):
            return max((t for t in tried if t), key=lambda found: len(found[0]))
    if "enum" in schema and value not in schema["enum"]:
        return place, value
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if kinds and not any(_is_of(value, kind) for kind in kinds):
        return place, value
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name, member in value.items():
            if found := _misfit(member, known.get(name, others), f"{place}.{name}"):
                return found
        missing = [name for name in schema.get("required", ()) if name not in value]
        if missing and "]." in place:  # inside of a claim
            return place, _MissingPart(missing[0])
    elif isinstance(value, list) and "items" in schema:
        for k, item in enumerate(value):
            if found := _misfit(item, schema["items"], f"{place}[{k}]"):
                return found
        if len(value) < schema.get("minItems", 0):
            return place, value
    return None


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "number" and isinstance(value, int | float) and not abs(value) <= sys.float_info.max:  # "inf" is a text
        return False
    return isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, float) and value.is_integer())
