"""The events of a stream whose answer is checked when it is finished."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from deployments.api.checking.choices import UNFINISHED

_DATA, _BETWEEN, _DONE = "data: ", "\n\n", "[DONE]"
_UNCHECKED = '"maskcast":{"unchecked":true},'


class CheckedStream:
    """Follows the events, and keeps the text of each choice. The first event is left to `WarnedAnswer`, which marks it."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._cut: set[int] = set()
        self._last: dict[str, Any] = {}
        self._begun = False
        self.failed = False
        """An event was an error: there is nothing to check."""

    @property
    def finished(self) -> list[str]:
        """The texts of the choices that were not cut off."""
        return [text for index, text in sorted(self._texts.items()) if index not in self._cut]

    @property
    def is_whole(self) -> bool:
        return not self._cut

    def piece(self, piece: str) -> str:
        """The events of a piece marked as unchecked, without the one that ends the stream."""
        return "".join(self._event(event) for event in piece.split(_BETWEEN) if event)

    def checked(self) -> Iterator[str]:
        """The events of a stream that has passed its check."""
        told = {name: self._last[name] for name in ("id", "object", "created", "model") if name in self._last}
        yield f"{_DATA}{json.dumps({**told, 'choices': [], 'maskcast': {'checked': self.is_whole}})}{_BETWEEN}{_DATA}{_DONE}{_BETWEEN}"

    def _event(self, event: str) -> str:
        data = event.removeprefix(_DATA)
        if data == _DONE:
            return ""
        told = json.loads(data)
        if "error" in told:
            self.failed = True
            return event + _BETWEEN
        self._last = told
        for choice in told.get("choices", ()):
            self._follow(choice)
        mark, self._begun = _UNCHECKED if self._begun else "", True
        return f"{_DATA}{{{mark}{data.removeprefix('{')}{_BETWEEN}"

    def _follow(self, choice: dict[str, Any]) -> None:
        index, delta = choice.get("index", 0), choice.get("delta")
        more = (delta.get("content") if isinstance(delta, dict) else choice.get("text")) or ""
        self._texts[index] = self._texts.get(index, "") + more
        if choice.get("finish_reason") == UNFINISHED:
            self._cut.add(index)
