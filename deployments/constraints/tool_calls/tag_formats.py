"""Formats of structural tags that several formats of tool calls are made of."""

from __future__ import annotations

from typing import Any

from grammar_service.schema.json_text import Json

Format = dict[str, Any]
ANY_TOKENS: Format = {"type": "any_tokens"}


def token(spelling: str) -> Format:
    """A special token."""
    return {"type": "token", "token": spelling}


def mark(spelling: str) -> Format:
    """A special token, or its text where the model has no such token."""
    return {"type": "mark", "text": spelling}


def text(value: str) -> Format:
    return {"type": "const_string", "value": value}


def sequence(*elements: Format) -> Format:
    return {"type": "sequence", "elements": list(elements)}


def either(*elements: Format) -> Format:
    return {"type": "or", "elements": list(elements)}


def json_arguments(schema: Json) -> Format:
    """None: any object."""
    return {"type": "json_schema", "json_schema": {"type": "object"} if schema is None else schema}
