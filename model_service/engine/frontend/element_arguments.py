"""Reads the arguments of one tool call that are elements of XML (vLLM 0.32: `tool_parsers/utils.py`, whose conversion by type it has)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import regex
from vllm.tool_parsers.utils import coerce_to_schema_type, extract_types_from_schema

from model_service.engine.frontend.call_arguments import with_escaped_surrogates


class ElementArguments:
    """See `ArgumentsReader`. `element` matches an argument: its name and its text, the first of the groups behind that has one. `end` is
    behind all of them; only then they are told. `schemas` are those of the arguments."""

    def __init__(self, element: regex.Pattern[str], end: str, schemas: Mapping[str, Any]) -> None:
        self._element = element
        self._end = end
        self._schemas = schemas
        self._rest = ""
        self._searched = 0

    def read(self, piece: str) -> tuple[str, str | None]:
        self._rest += piece
        end = self._rest.find(self._end, self._searched)
        if end < 0:
            self._searched = max(0, len(self._rest) - len(self._end) + 1)
            return "", None
        found = {one[1]: next(text for text in one.groups()[1:] if text is not None) for one in self._element.finditer(self._rest[:end])}
        values = (f"{_dumped(name)}: {_json_of(text, self._schemas.get(name))}" for name, text in found.items())
        return f"{{{', '.join(values)}}}", self._rest[end + len(self._end) :]


def _json_of(text: str, schema: Any) -> str:
    """The value of one argument. Numbers are as they are written: vLLM makes doubles of them. So is what is nested too deep to be read."""
    try:
        value = coerce_to_schema_type(text, extract_types_from_schema(schema))
        if isinstance(value, int | float) and not isinstance(value, bool):
            with suppress(ValueError):
                value = json.loads(text)
        return _dumped(value)
    except RecursionError:
        return text


def _dumped(value: Any) -> str:
    return with_escaped_surrogates(json.dumps(value, ensure_ascii=False))
