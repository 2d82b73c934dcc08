"""How many tokens a replica has accepted and not yet computed for their first answer: prompts, and the segments behind them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class _Waiting:
    tokens: int
    key: str | None


class PrefillLoad:
    """A grammar forces the same first segment for every request; its length is known once one of them has been answered."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._first_segments: OrderedDict[str, int] = OrderedDict()
        self._remembered = remembered

    @property
    def tokens(self) -> int:
        """Outstanding tokens of all requests."""
        return sum(waiting.tokens for waiting in self._waiting.values())

    def accepted(self, request_id: str, prompt_tokens: int, key: str | None) -> None:
        forced = self._first_segments.get(key, 0) if key else 0
        self._waiting[request_id] = _Waiting(prompt_tokens + forced, key)

    def answered(self, request_id: str, forced: int | None = None) -> None:
        """The first token has come, behind `forced` tokens that were prefilled; or the request has ended, which tells nothing of them."""
        waiting = self._waiting.pop(request_id, None)
        if waiting is None or waiting.key is None or forced is None:
            return
        self._first_segments[waiting.key] = forced
        self._first_segments.move_to_end(waiting.key)
        while len(self._first_segments) > self._remembered:
            self._first_segments.popitem(last=False)
