"""What the ingress can say of a call's length before the model replica has tokenized it."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

REMEMBERED = 10_000
CHARACTERS_PER_TOKEN = 4
NEWEST = 0.2
LOOKED_AT = 20_000
"""Values in one field; what is longer is measured by its end."""
_PROMPT_FIELDS = "messages", "tools", "prompt"
_NO_TEXT = frozenset({"image_url", "input_audio"})
# Only as a key of the answer's own: inside a JSON string the quotes would be escaped.
_FORCED = re.compile(r'"forced_tokens":\s*(\d{1,9})')


class CallSizes:
    """Estimates, in tokens, for the router. A prompt has a quarter as many as characters, as English text has in large vocabularies; images
    count for nothing. A grammar is expected to force as much as in its latest answers, as far as their usage figures tell, and
    nothing at first. No estimate is over `longest`, the model's context."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._forced: OrderedDict[str, float] = OrderedDict()

    def prompt(self, body: Mapping[str, Any]) -> int:
        characters = sum(_characters(body.get(field)) for field in _PROMPT_FIELDS)
        return min(self._longest, characters // CHARACTERS_PER_TOKEN)

    def forced(self, key: str) -> int:
        return min(self._longest, round(self._forced.get(key, 0.0)))

    def answered(self, key: str, piece: str) -> None:
        """A piece of an answer under the grammar `key`; most tell nothing."""
        if '"forced_tokens"' not in piece:
            return
        told = [int(digits) for digits in _FORCED.findall(piece)]
        if not told:
            return
        known = self._forced.get(key, float(told[-1]))
        self._forced[key] = known + NEWEST * (told[-1] - known)
        self._forced.move_to_end(key)
        if len(self._forced) > REMEMBERED:
            self._forced.popitem(last=False)


def _characters(value: Any) -> int:
    """Of all texts in it; a number is a token."""
    found, left = 0, [value]
    for _ in range(LOOKED_AT):
        if not left:
            break
        match left.pop():
            case str(text):
                found += len(text)
            case int():
                found += CHARACTERS_PER_TOKEN
            case list(items):
                left.extend(items)
            case dict(items):
                left.extend(item for name, item in items.items() if name not in _NO_TEXT)
    return found
