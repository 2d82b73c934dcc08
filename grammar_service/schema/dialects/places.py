"""Where things of a translated schema stand in what the user wrote."""

from __future__ import annotations

from collections.abc import Mapping


class Places:
    """`moved` has the pointers that were given to keywords and schemas, each with the user's own; what is below them moved along."""

    def __init__(self, moved: Mapping[str, str] | None = None) -> None:
        self._moved = moved or {}

    def original(self, pointer: str) -> str:
        """The user's pointer of what stands at `pointer` of the translation."""
        if not self._moved:
            return pointer
        end = len(pointer)
        while end > 0:
            if (place := self._moved.get(pointer[:end])) is not None:
                return place + pointer[end:]
            end = pointer.rfind("/", 0, end)
        return pointer
