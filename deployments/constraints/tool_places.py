"""From a place in what was made of tools (`tools.required_schema`, `tools.auto_tag`) back to the place in the request."""

from __future__ import annotations

import re

_ARGUMENTS = re.compile(
    r"(?:/items(?:/anyOf/(?P<call>\d+))?/properties/parameters"
    r"|/\$defs/tool(?P<definition>\d+)"
    r"|/format(?:/elements/0)?(?:(?:/tags/0)?/content)?/tags/(?P<tag>\d+)/content(?:/elements/2)?/json_schema)(?=/|\Z)"
)
"""Where the schema of a tool's arguments stands; a call without a number is the only one."""
_ANSWER = re.compile(r"/format/elements/1/json_schema(?=/|\Z)")


def place_in_request(pointer: str, field: str, tool: int | None = None) -> str:
    """`param` for a fault at this JSON pointer: of the arguments of this `tool` alone, or of what was made of all tools and of the schema
    in `field`, which is `tools` where there is no other one."""
    if tool is not None:
        return _arguments(tool, pointer)
    if found := _ARGUMENTS.match(pointer):
        return _arguments(int(found["call"] or found["definition"] or found["tag"] or 0), pointer[found.end() :])
    answer = _ANSWER.match(pointer)
    return f"{field}#{pointer[answer.end() :] if answer else pointer}"


def _arguments(index: int, pointer: str) -> str:
    return f"tools[{index}].function.parameters#{pointer}"
