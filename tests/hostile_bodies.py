"""Bodies of requests that cost a server far more than their size, over the limits and as large as these allow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

SIZE = 4 << 20
"""Bytes, twice what `http.max_body_mib` allows by default."""
MESSAGES = [{"role": "user", "content": "hello"}]


def chat(**fields: Any) -> bytes:
    return json.dumps({"messages": MESSAGES, **fields}, separators=(",", ":")).encode()


def _with(items: bytes) -> bytes:
    return b'{"messages":[{"role":"user","content":"hello"}],"x":' + items + b"}"


def _repeated(item: bytes, size: int = SIZE) -> bytes:
    return b"[" + item * (size // len(item)) + b"0]"


def tool(name: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters or {"type": "object"}}}


def _tools(number: int) -> list[dict[str, Any]]:
    return [{"function": {"name": f"t{index}"}} for index in range(number)]


def _clashing(tools: int, definitions: int) -> Iterator[dict[str, Any]]:
    """Each has definitions of the same names that differ, and refer to each other."""
    for index in range(tools):
        inner = {f"D{number}": {"const": index, "$ref": f"#/$defs/D{number + 1}"} for number in range(definitions)}
        yield tool(f"t{index}", {"$defs": {**inner, f"D{definitions}": {}}, "$ref": "#/$defs/D0"})


HOSTILE_BODIES: dict[str, Callable[[], bytes]] = {
    "brackets": lambda: _with(_repeated(b"[],")),
    "brackets within the limit": lambda: _with(_repeated(b"[],", 147_000)),
    "nested as deep as it is long": lambda: b"[" * SIZE,
    "nested just beyond the limit, after many brackets": lambda: _with(_repeated(b"[],", 140_000)[:-1] + b"[" * 170 + b"]" * 171),
    "380,000 keys": lambda: b"{" + b",".join(b'"k%d":1' % index for index in range(380_000)) + b"}",
    "as many keys as there may be": lambda: b"{" + b",".join(b'"k%d":1' % index for index in range(62_000)) + b"}",
    "empty texts": lambda: _with(_repeated(b'"",')),
    "texts of brackets": lambda: _with(b'"' + b"[{," * (SIZE // 3) + b'"'),
    "a text of quotes": lambda: _with(b'"' + b'\\"' * (SIZE // 2) + b'"'),
    "a text without an end": lambda: _with(b'"\\' * (SIZE // 2)),
    "numbers of thousands of digits": lambda: b'{"prompt":[' + b",".join([b"9" * 4000] * 520) + b"]}",
    "numbers of thousands of digits in tools": lambda: chat(tools=[tool("f", {"enum": [10**3999] * 520})]),
    "numbers of seventeen digits": lambda: _with(_repeated(b"9007199254740993.0,")),
    "numbers with an exponent": lambda: _with(_repeated(b"5e-99,")),
    "numbers at the end of all": lambda: _with(_repeated(b"1.7976931348623158079e308,")),
    "as many numbers at the end of all as there may be": lambda: _with(_repeated(b"1.7976931348623158079e308,", 60_000)),
    "numbers next to nothing": lambda: _with(_repeated(b"1.2345678901234567E-00310,")),
    "numbers": lambda: _with(_repeated(b"1,")),
    "16,000 tools": lambda: chat(tools=_tools(16_000), tool_choice="none"),
    "as many tools as there may be": lambda: chat(tools=_tools(512), tool_choice="required"),
    "tools whose definitions clash": lambda: chat(tools=list(_clashing(512, 7)), tool_choice="required"),
    "more definitions than tools may have": lambda: chat(tools=list(_clashing(512, 24)), tool_choice="required"),
    "one tool of many definitions": lambda: chat(tools=list(_clashing(2, 2_000)), tool_choice="required"),
    "messages": lambda: chat(messages=MESSAGES * 80_000),
    "as many messages as there may be": lambda: chat(messages=[{"role": "user", "content": [{"type": "text", "text": "x"}] * 8}] * 2048),
    "logit bias": lambda: chat(logit_bias={str(index): 1 for index in range(200_000)}),
    "stop texts": lambda: chat(stop=["x"] * 200_000),
    "a model's name": lambda: chat(model="m" * SIZE),
    "a large choice": lambda: chat(guided_choice=[str(index) for index in range(200_000)]),
    "a wide schema": lambda: chat(guided_json={"properties": {f"p{index}": {} for index in range(27_000)}}),
}
