"""Definitions of several tools side by side: vLLM (0.32: `tool_parsers/utils.py`) joins the `$defs` of all tools, and refuses two of one
name that differ, which are an everyday case: each of two pydantic models has its own `Address`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, mapped
from grammar_service.schema.pointer import join, of_fragment


def with_distinct_definitions(tools: Any) -> Any:
    """The tools of a request, in which no two definitions of one name differ: a later one gets another name, and the references to it
    follow. Whatever is no tool is left as it is, for others to refuse."""
    if not isinstance(tools, list):
        return tools
    names = _Names()
    return [_distinct(tool, names) for tool in tools]


class _Names:
    """The definitions that have been met, by name; the next number of each name is remembered, since thousands of tools may share it."""

    def __init__(self) -> None:
        self.told: dict[str, Json] = {}
        self._numbers: dict[str, count[int]] = {}

    def other(self, name: str, definitions: Schema) -> str:
        """A name that is neither told nor one of these."""
        numbers = self._numbers.setdefault(name, count(2))
        return next(other for number in numbers if (other := f"{name}_{number}") not in self.told and other not in definitions)


def _distinct(tool: Any, names: _Names) -> Any:
    function: Any = tool.get("function") if isinstance(tool, dict) else None
    schema: Any = function.get("parameters") if isinstance(function, dict) else None
    if not isinstance(schema, dict) or not isinstance(schema.get("$defs"), dict):
        return tool
    distinct = schema
    # Whatever refers to a definition that has moved has become another one itself.
    while moved := _moving(distinct["$defs"], names):
        distinct = _renamed(distinct, {join("", "$defs", old): join("", "$defs", new) for old, new in moved.items()})
        distinct["$defs"] = {moved.get(name, name): inner for name, inner in distinct["$defs"].items()}
    names.told.update(distinct["$defs"])
    return tool if distinct is schema else {**tool, "function": {**function, "parameters": distinct}}


def _moving(definitions: Schema, names: _Names) -> dict[str, str]:
    """Other names for the definitions that differ from those of the same name."""
    clashing = [name for name, inner in definitions.items() if names.told.get(name, inner) != inner]
    return {name: names.other(name, definitions) for name in clashing}


def _renamed(schema: Json, moved: Mapping[str, str]) -> Any:
    """The schema with its references to the definitions that have moved, and to what is inside of them; `moved` are JSON pointers."""
    if not isinstance(schema, dict):
        return schema
    copy: Schema = mapped(schema, lambda inner: _renamed(inner, moved))
    if isinstance(reference := copy.get("$ref"), str):
        copy["$ref"] = _moved(reference, moved)
    discriminator = copy.get("discriminator")
    if isinstance(discriminator, dict) and isinstance(mapping := discriminator.get("mapping"), dict):
        targets = {value: _moved(target, moved) if isinstance(target, str) else target for value, target in mapping.items()}
        copy["discriminator"] = {**discriminator, "mapping": targets}
    return copy


def _moved(reference: str, moved: Mapping[str, str]) -> str:
    if not reference.startswith("#/$defs/"):
        return reference
    try:
        pointer = of_fragment(reference[1:])
    except UnicodeDecodeError:
        return reference
    steps = pointer.split("/")
    target = moved.get("/".join(steps[:3]))
    return reference if target is None else "#" + "/".join([target, *steps[3:]])
