"""How many different mask rows an engine's requests need in a step."""

from __future__ import annotations

from collections import Counter, deque


class MaskRows:
    """Requests of one grammar that began in one step are in the same state of it for `alike_steps`, and need one row. Then each is in one
    of `states`, of which n requests hit states·(1 - (1 - 1/states)^n) on average."""

    def __init__(self, states: int, alike_steps: int) -> None:
        self._states = states
        self._alike_steps = alike_steps
        self._apart: Counter[str] = Counter()
        self._together: dict[tuple[str, int], int] = {}
        self._to_part: deque[tuple[str, int]] = deque()
        self.rows = 0.0
        """In a step."""

    @property
    def parting(self) -> int | None:
        """The step in which the next ones part."""
        return self._to_part[0][1] + self._alike_steps if self._to_part else None

    def begin(self, key: str, step: int) -> None:
        """Steps do not run backwards."""
        others = self._together.get((key, step), 0)
        if self._alike_steps:
            self._together[key, step] = others + 1
            if not others:
                self._to_part.append((key, step))
        self._count(key, 0 if others else 1)

    def end(self, key: str, began: int) -> None:
        """One that began in that step has ended."""
        others = self._together.get((key, began), 1) - 1
        if others:
            self._together[key, began] = others
        else:
            self._together.pop((key, began), None)
            self._count(key, -1)

    def part(self, step: int) -> None:
        """Those whose time together is over by this step."""
        while self._to_part and self._to_part[0][1] + self._alike_steps <= step:
            key, began = self._to_part.popleft()
            self._count(key, self._together.pop((key, began), 1) - 1)

    def _count(self, key: str, change: int) -> None:
        before = self._apart[key]
        self.rows += self._distinct(before + change) - self._distinct(before)
        self._apart[key] += change
        if not self._apart[key]:
            del self._apart[key]

    def _distinct(self, requests: int) -> float:
        return self._states * (1 - (1 - 1 / self._states) ** requests)
