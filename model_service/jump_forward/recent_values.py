"""What the members of a grammar's answers were of late: an enum, a boolean or a unit is often what it was."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterator
from typing import Any

from model_service.jump_forward.prompt_lookup import count_words

RECENT = 8
"""Values of a member that count."""
FEW = 3
"""Values that tell nothing of how long others are."""
LONGEST = 32
"""Bytes of one."""
LONGEST_NAME, MOST_MEMBERS = 64, 64
REMEMBERED = 1024
"""Grammars of tenants."""


class RecentValues:
    """By an owner, whose answers tell nobody else anything, and the name of a member, wherever it stands."""

    def __init__(self) -> None:
        self._owners: OrderedDict[Hashable, dict[str, deque[bytes]]] = OrderedDict()

    def add(self, owner: Hashable, text: bytes) -> None:
        """An answer. What is no JSON object or array is left out."""
        if not text.lstrip().startswith((b"{", b"[")):
            return
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            return
        members = self._owners.setdefault(owner, {})
        self._owners.move_to_end(owner)
        if len(self._owners) > REMEMBERED:
            self._owners.popitem(last=False)
        for name, value in _scalars(values):
            members.setdefault(name, deque(maxlen=RECENT)).append(value)
            if len(members) > MOST_MEMBERS:
                del members[next(iter(members))]

    def words(self, owner: Hashable, name: str) -> int:
        """How many the member's value has most often; 0: too few are known."""
        values = self._owners.get(owner, {}).get(name, ())
        return Counter(map(count_words, reversed(values))).most_common(1)[0][0] if len(values) >= FEW else 0

    def likely(self, owner: Hashable, name: str) -> bytes:
        """The JSON of the value that the member had most often, the later one of two; empty: none is known."""
        values = self._owners.get(owner, {}).get(name)
        return Counter(reversed(values)).most_common(1)[0][0] if values else b""


def _scalars(value: Any) -> Iterator[tuple[str, bytes]]:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, list):
            waiting += (item for item in found if isinstance(item, dict | list))
            continue
        for name, member in found.items():
            if isinstance(member, dict | list):
                waiting.append(member)
            elif (
                len(name) <= LONGEST_NAME
                and len(text := json.dumps(member, ensure_ascii=False).encode("utf-8", "surrogatepass")) <= LONGEST
            ):
                yield name, text
