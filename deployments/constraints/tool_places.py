"""From a place in what was made of tools (`tools.required_schema`, `auto_tag`, `forced_tag`) back to the place in the request."""

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
    index, inner = _taken_apart(pointer, tool)
    return f"{field}#{inner}" if index is None else f"tools[{index}].function.parameters#{inner}"


def pointer_in_request(pointer: str, tool: int | None = None) -> str:
    """For a warning: a JSON pointer into the request for what is of a tool, and into the schema of the answer as it stands there."""
    index, inner = _taken_apart(pointer, tool)
    return inner if index is None else f"/tools/{index}/function/parameters{inner}"


def _taken_apart(pointer: str, tool: int | None) -> tuple[int | None, str]:
    """The tool whose arguments it points into, None: into the schema of the answer; and where in there."""
    if tool is not None:
        found = _ARGUMENTS.match(pointer) if pointer.startswith("/format/") else None  # `format` has nothing below it in a schema
        return tool, pointer[found.end() :] if found else pointer
    if found := _ARGUMENTS.match(pointer):
        return int(found["call"] or found["definition"] or found["tag"] or 0), pointer[found.end() :]
    answer = _ANSWER.match(pointer)
    return None, pointer[answer.end() :] if answer else pointer
