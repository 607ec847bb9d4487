"""Members of a results.json that are of another type than its schema says."""

from __future__ import annotations

from collections.abc import Mapping
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

    Ranges, and members that are missing or unknown, are not looked at: another version may have written the file.

    Parameters
    ----------
    content : mapping
        Parsed content of results.json.

    Returns
    -------
    str
        Where it is and what it holds, as "claims[3].draws is 'many'"; empty where all fits.
    """
    found = _misfit(content, _schema(), "")
    if found is None:
        return ""
    place, value = found
    text = repr(value)
    return f"{place.removeprefix('.')} is {text if len(text) <= _SHOWN else text[:_SHOWN] + '...'}"


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
    elif isinstance(value, list) and "items" in schema:
        for k, item in enumerate(value):
            if found := _misfit(item, schema["items"], f"{place}[{k}]"):
                return found
    return None


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, float) and value.is_integer())
