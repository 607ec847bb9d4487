"""The JSON Schema of results.json, made from the fields of `AuditResult`.

Names, types and descriptions of members are those of the dataclasses. `SHAPES` adds what a type does not tell: the
members of a mapping, and the values that a text may have. `python -m auditor.report.results_schema` prints the schema,
and a test holds schema.json against it.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_origin, get_type_hints

from auditor.events.cause_kinds import IGNORABLE
from auditor.results import DERIVED, SCHEMA, AuditResult, Counterexample, Verdict

Schema = dict[str, Any]


def _refer_to(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _optional_schema(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(items: Schema, **rest: Any) -> Schema:
    return {"type": "array", "items": items, **rest}


def _object(members: Mapping[str, Schema], required: bool = False, **rest: Any) -> Schema:
    named = {"required": list(members)} if required else {}
    return {"type": "object", **named, "additionalProperties": False, "properties": dict(members), **rest}


def _with_description(description: str, schema: Schema) -> Schema:
    return {"description": description, **schema}


TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NAME, NUMBER, LEVEL = _refer_to("name"), _refer_to("number"), _refer_to("level")
COUNT, PROBABILITY, POSITIVE = _refer_to("count"), _refer_to("probability"), {"type": "integer", "minimum": 1}

#: Schema of a field by its type.
TYPES: dict[Any, Schema] = {
    str: TEXT,
    bool: FLAG,
    int: COUNT,
    float: NUMBER,
    str | None: {"type": ["string", "null"]},
    float | None: LEVEL,
    Verdict: _refer_to("verdict"),
    Counterexample | None: _optional_schema(_refer_to("counterexample")),
    Mapping[str, float]: {"type": "object", "additionalProperties": NUMBER},
}

#: What a type does not tell, by the name of the field.
SHAPES: dict[str, Schema] = {
    "id": NAME,
    "entry": NAME,
    "source": _refer_to("source"),
    "level": {"enum": ["L0", "L1", "L2", "L3", "L4"]},
    "alpha": PROBABILITY,
    "stop": {"enum": ["verdict", "budget"]},
    "method": {"enum": ["e-process", "clopper-pearson", "enumeration", "replay"]},
    "sandwich": {"type": "string", "pattern": "^(holds$|failed|loose|$)"},
    "again": _optional_schema(_refer_to("again")),
    "checks": _list(
        _object(
            {
                "name": TEXT,
                "passed": _with_description("null if it could not be checked.", {"type": ["boolean", "null"]}),
                "finding": TEXT,
            },
            required=True,
        )
    ),
    "ledger": _object(
        {
            "file": TEXT,
            "identity": _with_description("Made with the file; it keys the draws.", TEXT),
            "series": POSITIVE,
            "night": _with_description("Number of this run in the series.", POSITIVE),
            "own_draws": _with_description("Draws of this run.", COUNT),
            "draws": _with_description("Draws of all runs.", COUNT),
            "first_chunk": COUNT,
            "chunks": _with_description("Chunks of this run.", COUNT),
            "afresh": _with_description("Why earlier evidence of the claim was not taken up; empty otherwise.", TEXT),
        },
        required=True,
    ),
    "places": _object({"mechanism": _refer_to("place"), "claim": _refer_to("place")}),
    "ignore": _list({"enum": list(IGNORABLE)}),
    "also": _list(
        _object(
            {
                "ignore": _with_description(
                    "Kinds of causes that this search left out.", _list({"enum": list(IGNORABLE)})
                ),
                "verdict": _refer_to("verdict"),
                "cause": _with_description("Of a violation.", TEXT),
                "pair": {"type": ["string", "null"]},
                "event": {"type": ["string", "null"]},
                "draws": COUNT,
                "lower_bound": LEVEL,
                "log10_max_e_value": LEVEL,
                "message": TEXT,
            },
            required=True,
        )
    ),
    "independence": _object(
        {
            "passed": FLAG,
            "finding": TEXT,
            "p_values": {"type": "object", "additionalProperties": NUMBER},
            "draws": COUNT,
            "seeded": FLAG,
            "untied": COUNT,
            "asked": _with_description(
                "What looked dependent in the draws of a first refutation, which had to be reached again.", TEXT
            ),
            "asked_p": PROBABILITY,
            "in_calls": _with_description(
                "It was to be reached in calls like the first ones; otherwise by one draw a call.", FLAG
            ),
            "still": _with_description("What looks dependent in draws that were taken one a call.", TEXT),
        }
    ),
    "tradeoff": _object(
        {
            "q": _list(PROBABILITY),
            "claimed": _list(NUMBER),
            "exact": _optional_schema(_list(NUMBER)),
            "points": _list(_list(PROBABILITY, minItems=2, maxItems=2)),
            "draws": _list(COUNT),
        }
    ),
    "wealth": _object({"draws": _list(COUNT), "log10_e_value": _list(NUMBER)}),
    "cells": _object(
        {"view": TEXT, "dataset": TEXT, "labels": _list(TEXT), "stated": _list(PROBABILITY), "counts": _list(COUNT)}
    ),
    # Each kind of audit adds members to its record: others may follow.
    "record": {
        "type": "object",
        "properties": {
            "pairs": _list(TEXT),
            "events": _list(_list(TEXT)),
            "chunks": _list({"type": "array"}),
            "method": _with_description("Given where it is not the e-process.", TEXT),
            "judged": _with_description(
                "Fixed-size method: counts of the event in the second half, and their limits.", {"type": "object"}
            ),
            "training": _with_description(
                "Classifiers: models fitted, and rows that they were trained on, over all fits.",
                _object({"fits": COUNT, "rows": COUNT}),
            ),
        },
    },
}

#: What other schemas refer to, and is no dataclass of results.
PARTS: dict[str, Schema] = {
    "number": _with_description(
        "A number, or one that JSON cannot write.", {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan"]}]}
    ),
    "level": _with_description(
        "A level in the notion's own unit (epsilon, mu, rho); null where it does not apply.", _optional_schema(NUMBER)
    ),
    "probability": {"type": "number", "minimum": 0, "maximum": 1},
    "count": {"type": "integer", "minimum": 0},
    "name": {"type": "string", "minLength": 1},
    "verdict": {"enum": [str(verdict) for verdict in Verdict]},
    "source": _with_description(
        "Document and place of a statement.", _object({"document": TEXT, "place": TEXT}, required=True)
    ),
    "place": _object({"file": NAME, "line": POSITIVE}, required=True),
    "manifest": {
        "description": "What was run with what. Other members may follow.",
        "type": "object",
        "required": ["dpaudit", "seed", "alpha"],
        "properties": {
            "seed": {"type": "integer"},
            "alpha": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "level": TEXT,
            "dpaudit": NAME,
            "ledger": _with_description("File in which evidence is carried from run to run.", TEXT),
            "ledger_key": TEXT,
            "libraries": {"type": "object", "additionalProperties": TEXT},
            "specification_hash": TEXT,
            "source_hash": TEXT,
            "claims_selected": COUNT,
            "interrupted": FLAG,
        },
    },
    "erratum": {
        "description": "A statement of a document that is wrong.",
        "type": "object",
        "required": ["id", "source", "class", "summary", "claims"],
        "additionalProperties": False,
        "properties": {
            "id": NAME,
            "entry": NAME,
            "source": _refer_to("source"),
            "class": NAME,
            "summary": _with_description("What is stated.", TEXT),
            "fails": _with_description("What fails.", TEXT),
            "correction": _with_description("What is right.", TEXT),
            "claims": {
                "description": "What each claim shows of it, by claim id.",
                "type": "object",
                "additionalProperties": {"enum": ["as printed", "as corrected", "printed step", "statement"]},
            },
        },
    },
    "again": {
        "description": "What `dpaudit replay` needs: datasets, event, claim, and the key of the draws.",
        "type": "object",
        "required": ["data", "rows", "whole", "chain", "claim", "alpha", "counts"],
        "additionalProperties": False,
        "properties": {
            "data": _with_description(
                "Both datasets; null if they are private or too large.",
                _optional_schema({**_object({}, properties={"x": True, "y": True}), "required": ["x", "y"]}),
            ),
            "rows": _with_description("Which rows of the attack's datasets they have.", {"type": ["object", "null"]}),
            "whole": _with_description("They are those of the attack.", FLAG),
            "chain": _with_description("The event; null if it holds private values.", {"type": ["object", "null"]}),
            "claim": {"type": ["object", "null"]},
            "alpha": True,
            "counts": _refer_to("counted"),
            "before": _with_description("Counts that the first bets rest on.", _refer_to("counted")),
            "key": TEXT,
            "seed": COUNT,
            "one_a_call": FLAG,
            "digest": _with_description("Of the recorded draws.", {"type": ["string", "null"]}),
        },
    },
    "counted": _with_description(
        "Draws in the event on x, on x', and how many draws a side.", _list(COUNT, minItems=3, maxItems=3)
    ),
}


def describe_fields(kind: type) -> dict[str, tuple[str, str]]:
    """Read type and description of each field of a dataclass.

    Parameters
    ----------
    kind : type
        Its docstring ends with the section of parameters.

    Returns
    -------
    dict
        By name, in the order of the docstring, each in one line.
    """
    section = (inspect.getdoc(kind) or "").partition("----------\n")[2]
    parts = (part.partition("\n") for part in re.split(r"^(?=\S)", section, flags=re.MULTILINE)[1:])
    heads = ((head.partition(" : "), " ".join(text.split())) for head, _, text in parts)
    return {name: (written, text) for (name, _, written), text in heads}


def build_schema() -> Schema:
    """Build the JSON Schema (2020-12) of results.json."""
    names = [part.name for part in fields(AuditResult)]
    # Later fields were added to files of the same version, or are absent where they are empty.
    claim = _record(AuditResult, names[: names.index("counterexample") + 1])
    for name in DERIVED:
        value = getattr(AuditResult, name)
        claim["required"].append(name)
        claim["properties"][name] = _with_description(
            " ".join((inspect.getdoc(value) or "").split()), TYPES[get_type_hints(value.fget)["return"]]
        )
    needed = [part.name for part in fields(Counterexample) if part.default is MISSING]
    members = {
        "schema": {"const": SCHEMA},
        "manifest": _refer_to("manifest"),
        "claims": _list(_refer_to("claim")),
        "errata": _list(_refer_to("erratum")),
    }
    titles = _with_description(
        "Titles of the source documents, by name.", {"type": "object", "additionalProperties": TEXT}
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Made from the code by `python -m auditor.report.results_schema`.",
        "$id": f"urn:{SCHEMA.replace('-', ':').replace('/', ':')}",
        "title": "dpaudit results",
        "description": "Content of results.json. Numbers have 8 significant digits; infinities and NaN are the strings "
        '"inf", "-inf" and "nan"; None is null.',
        **_object({**members, "documents": titles}),
        "required": list(members),
        "$defs": {**PARTS, "claim": claim, "counterexample": _record(Counterexample, needed)},
    }


def _record(kind: type, required: list[str]) -> Schema:
    """Schema of the record of a dataclass."""
    hints = get_type_hints(kind)
    described = {name: text for name, (_, text) in describe_fields(kind).items()}
    members = {name: _with_description(described[name], SHAPES.get(name) or _schema_of(hints[name])) for name in hints}
    return {"type": "object", "required": required, "additionalProperties": False, "properties": members}


def _schema_of(hint: Any) -> Schema:
    return {"type": "object"} if get_origin(hint) is Mapping and hint not in TYPES else TYPES[hint]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(build_schema(), indent=1, ensure_ascii=False) + "\n")
