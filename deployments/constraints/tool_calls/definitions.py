"""Definitions of several tools side by side: vLLM (0.32: `tool_parsers/utils.py`) joins the `$defs` of all tools, and refuses two of one
name that differ, which are an everyday case: each of two pydantic models has its own `Address`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from deployments.errors import over_limit
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, mapped, walk
from grammar_service.schema.pointer import join, of_fragment

MOST = 4096
"""Definitions of all tools together. Each takes 20 µs where it clashes with another one."""


def with_distinct_definitions(tools: Any) -> Any:
    """The tools of a request, in which no two definitions of one name differ: a later one gets another name, and the references to it
    follow. Whatever is no tool is left as it is, for others to refuse.

    Raises:
        ApiError: there are too many definitions.
    """
    if not isinstance(tools, list):
        return tools
    if sum(map(_number, tools)) > MOST:
        raise over_limit("tools", f"The 'tools' may have {MOST} definitions ('$defs') at most.")
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


def _parameters(tool: Any) -> Any:
    """Its schema, if that has definitions."""
    function: Any = tool.get("function") if isinstance(tool, dict) else None
    schema: Any = function.get("parameters") if isinstance(function, dict) else None
    return schema if isinstance(schema, dict) and isinstance(schema.get("$defs"), dict) else None


def _number(tool: Any) -> int:
    schema = _parameters(tool)
    return len(schema["$defs"]) if schema else 0


def _distinct(tool: Any, names: _Names) -> Any:
    schema = _parameters(tool)
    if schema is None:
        return tool
    distinct = schema
    if moved := _moving(schema["$defs"], names):
        distinct = _renamed(schema, {join("", "$defs", old): join("", "$defs", new) for old, new in moved.items()})
        distinct["$defs"] = {moved.get(name, name): inner for name, inner in distinct["$defs"].items()}
    names.told.update(distinct["$defs"])
    return tool if distinct is schema else {**tool, "function": {**tool["function"], "parameters": distinct}}


def _moving(definitions: Schema, names: _Names) -> dict[str, str]:
    """Other names for the definitions that differ from those of the same name. Whatever refers to one that moves becomes another one
    itself."""
    users: dict[str, list[str]] = {}
    for user, inner in definitions.items():
        for name in _referred(inner) if user in names.told else ():
            users.setdefault(name, []).append(user)
    moving = dict.fromkeys(name for name, inner in definitions.items() if names.told.get(name, inner) != inner)
    waiting = list(moving)
    while waiting:
        more = [user for user in users.get(waiting.pop(), ()) if user not in moving]
        moving.update(dict.fromkeys(more))
        waiting += more
    return {name: names.other(name, definitions) for name in definitions if name in moving}


def _referred(definition: Json) -> Iterator[str]:
    """The names of the definitions that one refers to, or to what is inside of them."""
    for _, schema in walk(definition):
        if not isinstance(schema, dict):
            continue
        discriminator = schema.get("discriminator")
        mapping = discriminator.get("mapping") if isinstance(discriminator, dict) else None
        for reference in (schema.get("$ref"), *(mapping.values() if isinstance(mapping, dict) else ())):
            if isinstance(reference, str) and (steps := _steps(reference)):
                yield steps[2].replace("~1", "/").replace("~0", "~")


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
    steps = _steps(reference)
    target = moved.get("/".join(steps[:3]))
    return reference if target is None else "#" + "/".join([target, *steps[3:]])


def _steps(reference: str) -> list[str]:
    """Of the JSON pointer in a reference to a definition; none in others."""
    if not reference.startswith("#/$defs/"):
        return []
    try:
        return of_fragment(reference[1:]).split("/")
    except UnicodeDecodeError:
        return []
