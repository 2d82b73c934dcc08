"""What matchers have in common whose states are numbered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable


class StateMatcher(ABC):
    """The part of a Matcher that goes from state to state and back. The first state is 0."""

    def __init__(self, stops: Iterable[int]) -> None:
        self._stops = frozenset(stops)
        self._course = [0]
        self._has_ended = False

    @abstractmethod
    def _after(self, state: int, token: int) -> int | None:
        """The state behind a token, None where there is none."""

    @abstractmethod
    def _may_end(self, state: int) -> bool:
        """Whether a stop token may come there."""

    @property
    def _state(self) -> int:
        return self._course[-1]

    def accept(self, token: int) -> bool:
        if self._has_ended:
            return False
        if token in self._stops:
            self._has_ended = self._may_end(self._state)
            return self._has_ended
        after = self._after(self._state, token)
        if after is None:
            return False
        self._course.append(after)
        return True

    def rollback(self, n: int) -> None:
        accepted = len(self._course) - 1 + self._has_ended
        if not 0 <= n <= accepted:
            raise ValueError(f"cannot take back {n} of {accepted} tokens")
        if n and self._has_ended:
            self._has_ended = False
            n -= 1
        del self._course[len(self._course) - n :]

    @property
    def names_tokens(self) -> bool:
        return False

    def is_terminated(self) -> bool:
        return self._has_ended

    def reset(self) -> None:
        self._course = [0]
        self._has_ended = False
