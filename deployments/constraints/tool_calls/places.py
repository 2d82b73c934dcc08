"""From a place in a grammar that was made of a request back to the place in the request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from grammar_service.schema.pointer import join


@dataclass(frozen=True, slots=True)
class Place:
    """A schema of the request: the arguments of the tool with this index, None: that of the answer."""

    tool: int | None


Places: TypeAlias = Mapping[str, Place]
"""By the JSON pointers of these schemas in the grammar."""


class TrackedSchemas:
    """Schemas that a grammar is made of: they are found in it by being the same objects."""

    def __init__(self) -> None:
        self._tracked: dict[int, tuple[dict[str, Any], Place]] = {}

    def track(self, schema: Any, tool: int | None = None) -> Any:
        """The schema, or a copy of it, to be put into the grammar."""
        if not isinstance(schema, dict):
            return schema  # `true` or `false`, in which there are no places
        copy = dict(schema)
        self._tracked[id(copy)] = copy, Place(tool)
        return copy

    def places(self, grammar: Any) -> Places:
        found, waiting = dict[str, Place](), [("", grammar)]
        while waiting:
            pointer, value = waiting.pop()
            if id(value) in self._tracked:
                found[pointer] = self._tracked[id(value)][1]
            elif isinstance(value, dict):
                waiting += [(join(pointer, name), member) for name, member in value.items()]
            elif isinstance(value, list):
                waiting += [(join(pointer, index), item) for index, item in enumerate(value)]
        return found


def place_in_request(pointer: str, field: str, places: Places) -> str:
    """`param` for a fault at this JSON pointer of a grammar that was made of tools, and of the schema in `field`, which is `tools` where
    there is no other one."""
    place, inner = _found(pointer, places)
    return f"{field}#{inner}" if place.tool is None else f"tools[{place.tool}].function.parameters#{inner}"


def pointer_in_request(pointer: str, places: Places) -> str:
    """For a warning: a JSON pointer into the request for what is of a tool, and into the schema of the answer as it stands there."""
    place, inner = _found(pointer, places)
    return inner if place.tool is None else f"/tools/{place.tool}/function/parameters{inner}"


def _found(pointer: str, places: Places) -> tuple[Place, str]:
    """The schema that it points into, and where in there."""
    end = len(pointer)
    while end >= 0:
        if (place := places.get(pointer[:end])) is not None:
            return place, pointer[end:]
        end = pointer.rfind("/", 0, end)
    return Place(None), pointer
