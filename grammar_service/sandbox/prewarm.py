"""Typical grammars, compiled before the first request: their rules (strings, numbers, objects) are most others' rules too."""

from __future__ import annotations

import json

from grammar_service.schema.json_text import Json
from grammar_service.spec import COMPACT, FLEXIBLE, STANDARD, GrammarKind, GrammarSpec

_SCALARS: dict[str, Json] = {
    "name": {"type": "string"},
    "note": {"type": ["string", "null"]},
    "count": {"type": "integer"},
    "share": {"type": "number"},
    "level": {"type": "integer", "minimum": 0, "maximum": 100},
    "active": {"type": "boolean"},
    "kind": {"enum": ["first", "second", "third"]},
    "id": {"type": "string", "format": "uuid"},
}
_RECORD: dict[str, Json] = {"type": "object", "properties": _SCALARS, "required": ["name", "count"]}
_LIST: dict[str, Json] = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": _RECORD},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
        "extra": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["items"],
}

TYPICAL: tuple[GrammarSpec, ...] = (
    *(GrammarSpec(GrammarKind.JSON_OBJECT, "", whitespace) for whitespace in (STANDARD, COMPACT, FLEXIBLE)),
    *(
        GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), whitespace)
        for schema in (_RECORD, _LIST)
        for whitespace in (STANDARD, FLEXIBLE)
    ),
)
