"""Bodies and constraints that cost the most for their size, as many bytes as are asked for, or a little less."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

ITEMS, BLOCKS = "items of a response", "blocks of a message"
"""Bodies of the Responses and the Messages API, which become chat completions."""
MESSAGES = [{"role": "user", "content": "hello"}]


def _filled(one: Callable[[int], Any], body: Callable[[list[Any]], Any], size: int) -> bytes:
    """With so many entries as there is room for."""
    text, each = len(_json(body([]))), len(_json(one(10_000))) + 1
    return _json(body([one(10_000 + number) for number in range(max(1, (size - text) // each))]))


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _chat(**fields: Any) -> dict[str, Any]:
    return {"messages": MESSAGES, **fields}


def _clashing(number: int) -> dict[str, Any]:
    definitions = {f"D{each}": {"const": number, "$ref": f"#/$defs/D{each + 1}"} for each in range(3)}
    return {
        "type": "function",
        "function": {"name": f"t{number}", "parameters": {"$defs": {**definitions, "D3": {}}, "$ref": "#/$defs/D0"}},
    }


def _parts(number: int) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": str(number)}] * 8}


def _call(number: int) -> dict[str, Any]:
    return {"id": str(number), "function": {"name": "f", "arguments": f"[{','.join(['7e-99'] * 80)}]"}}


def _calling(calls: list[Any]) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": calls}


def _item(number: int) -> dict[str, Any]:
    return {"type": "function_call", "call_id": str(number), "name": "f", "arguments": f"[{','.join(['7e-99'] * 20)}]"}


def _using(values: list[Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": values}}]}


def _tools(tools: list[Any]) -> dict[str, Any]:
    return _chat(tools=tools, tool_choice="required")


def _values(values: list[Any]) -> dict[str, Any]:
    return _chat(guided_json={"enum": values})


BODIES: dict[str, Callable[[int], bytes]] = {
    "one text": lambda size: _json({"messages": [{"role": "user", "content": "a" * (size - 60)}]}),
    "a text of quotes": lambda size: _json({"messages": [{"role": "user", "content": '"' * ((size - 60) // 2)}]}),
    "messages of parts": lambda size: _filled(_parts, lambda all_: {"messages": all_[:2048]}, size),
    "calls with short arguments": lambda size: _filled(_call, lambda all_: {"messages": [*MESSAGES, _calling(all_[:2047])]}, size),
    "tools": lambda size: _filled(lambda number: {"function": {"name": f"t{number}"}}, _tools, size),
    "tools whose definitions clash": lambda size: _filled(_clashing, _tools, size),
    "token ids": lambda size: _filled(lambda number: number, lambda all_: {"prompt": all_}, size),
    "unknown fields": lambda size: _filled(lambda number: number, lambda all_: _chat(**{f"f{each}": 1 for each in all_}), size),
    "choices": lambda size: _filled(str, lambda all_: _chat(guided_choice=all_), size),
    "a schema": lambda size: _filled(
        lambda number: number, lambda all_: _chat(guided_json={"properties": {f"p{each}": {} for each in all_}}), size
    ),
    "numbers in a schema": lambda size: _filled(lambda _: 0.1, _values, size),
    "numbers with exponents": lambda size: _filled(lambda _: 5e-99, _values, size),
    "numbers near 0": lambda size: _filled(lambda _: 1.2345678901234e-310, _values, size),
    "numbers of many digits": lambda size: _filled(lambda _: 10**99, _values, size),
    ITEMS: lambda size: _filled(_item, lambda all_: {"input": all_[:2048]}, size),
    BLOCKS: lambda size: _filled(lambda _: 7e-99, lambda all_: {"messages": [_using(all_)]}, size),
    "brackets": lambda size: _filled(lambda _: [], lambda all_: _chat(metadata=all_), size),
}
Made = Callable[[int, int], str]
"""Of so many characters, and a number that makes it new."""


def _schema(one: Callable[[int], Any], schema: Callable[[list[Any]], Any]) -> tuple[str, Made]:
    def make(size: int, number: int) -> str:
        return _filled(lambda each: one(10_000 * number + each), schema, size).decode()

    return "json_schema", make


def _rules(size: int, number: int) -> str:
    last = size // 26
    return "\n".join(["root ::= r0", *(f'r{each} ::= "{number}" r{each + 1} | "b"' for each in range(last)), f'r{last} ::= "c"'])


CONSTRAINTS: dict[str, tuple[str, Made]] = {
    "alternatives in pairs": _schema(lambda each: {"properties": {f"a{each}": {"type": "null"}}}, lambda all_: {"oneOf": all_}),
    "alternatives": _schema(lambda each: {"properties": {f"a{each}": {"type": "null"}}}, lambda all_: {"anyOf": all_}),
    "patterns of names": _schema(lambda each: {"patternProperties": {f"^x{each}": {}}}, lambda all_: {"anyOf": all_}),
    "properties": _schema(lambda each: f"p{each}", lambda all_: {"properties": {each: {} for each in all_}}),
    "properties that are required": _schema(
        lambda each: f"p{each}",
        lambda all_: {"type": "object", "properties": {each: {"minLength": 1} for each in all_}, "required": all_},
    ),
    "other properties": _schema(
        lambda each: f"p{each}", lambda all_: {"properties": {each: {} for each in all_}, "additionalProperties": {"type": "string"}}
    ),
    "numbers": _schema(lambda each: each, lambda all_: {"enum": all_}),
    "bounds": _schema(lambda each: each, lambda all_: {"anyOf": [{"type": "number", "minimum": each / 7} for each in all_]}),
    "objects": _schema(lambda each: {"a": each}, lambda all_: {"enum": all_}),
    "references": _schema(
        lambda each: f"d{each}",
        lambda all_: {"$defs": {each: {"anyOf": [{"$ref": f"#/$defs/{all_[-1]}"}, {}]} for each in all_}, "$ref": "#/$defs/d10000"},
    ),
    "regex of alternatives": ("regex", lambda size, number: "|".join(f"a{number}{each}b" for each in range(size // 9))),
    "regex of classes": ("regex", lambda size, number: f"[a-z{number % 10}]{{1,3}}" * (size // 13)),
    "regex of look-aheads": ("regex", lambda size, number: f"(?!.*{chr(ord('a') + number % 26)})b" * (size // 9)),
    "unclosed quotes": ("lark", lambda size, number: f"start: {number}" + '"\\' * (size // 2)),
    "choices": ("choice", lambda size, number: json.dumps([f"c{number}{each}" for each in range(size // 14)])),
    "rules": ("ebnf", _rules),
}
