"""The forced tokens that the workers have yet to hear of."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

FORCED = "maskcast_forced"
"""The attribute of the scheduler's output that holds the forced tokens of its requests: a mapping by request id."""


@dataclass(frozen=True, slots=True)
class ForcedTokens:
    """Output tokens that the grammar has decided; `start` is how many output tokens the request had before them."""

    start: int
    tokens: tuple[int, ...]


class Unsent:
    """Forced tokens by request, until a step is scheduled that computes the first of them.

    Workers know of the tokens that they have sampled themselves; of forced ones they must be told once, whatever happens in
    between: a step without the request, a step that has budget for some of them only, a preemption.
    """

    def __init__(self) -> None:
        self._forced: dict[str, ForcedTokens] = {}

    def add(self, request_id: str, start: int, tokens: Sequence[int]) -> None:
        """Tokens that follow whatever of the request is still unsent."""
        before = self._forced.get(request_id)
        if before is None:
            self._forced[request_id] = ForcedTokens(start, tuple(tokens))
        else:
            self._forced[request_id] = ForcedTokens(before.start, (*before.tokens, *tokens))

    def __contains__(self, request_id: object) -> bool:
        return request_id in self._forced

    def take(self, scheduled: Container[str]) -> dict[str, ForcedTokens]:
        """Those of the requests that are scheduled; they count as sent."""
        taken = {request_id: forced for request_id, forced in self._forced.items() if request_id in scheduled}
        for request_id in taken:
            del self._forced[request_id]
        return taken

    def drop(self, request_id: str) -> None:
        """The request has ended."""
        self._forced.pop(request_id, None)


def fitting(tokens: Sequence[int], room: int, stops: Container[int]) -> list[int]:
    """The longest start of `tokens` that has at most `room` tokens and no stop token."""
    end = next((place for place, token in enumerate(tokens) if token in stops), len(tokens))
    return list(tokens[: max(0, min(room, end))])
