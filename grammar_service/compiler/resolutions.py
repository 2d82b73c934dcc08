"""What long specs were resolved to: a schema of everyday size can take a second of rewriting, and is asked for again and again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import astuple
from hashlib import blake2b

from grammar_service.messages import Refusal
from grammar_service.relaxation import Relax
from grammar_service.resolve import Resolution
from grammar_service.spec import GrammarSpec

MOST_CHARACTERS = 32 * 1024 * 1024
"""Of all that is remembered: some hundreds of the longest specs that there are."""

MOST = 10_000
"""However short: a refusal has few characters, and takes memory all the same."""


class Resolutions:
    """The ones that were asked for last. Each tenant's apart: they were made in children that serve no other tenant."""

    def __init__(self, most_characters: int = MOST_CHARACTERS) -> None:
        self._most = most_characters
        self._characters = 0
        self._known: OrderedDict[bytes, tuple[Resolution | Refusal, int]] = OrderedDict()

    def get(self, spec: GrammarSpec, tenant: str, relax: Relax) -> Resolution | Refusal | None:
        """None: not known, or no longer."""
        digest = _digest(spec, tenant, relax)
        if (found := self._known.get(digest)) is None:
            return None
        self._known.move_to_end(digest)
        return found[0]

    def keep(self, spec: GrammarSpec, tenant: str, relax: Relax, answer: Resolution | Refusal) -> None:
        """A refusal must be one that another try would only repeat."""
        digest, size = _digest(spec, tenant, relax), _characters(answer)
        self._forget(digest)
        self._known[digest] = (answer, size)
        self._characters += size
        while self._characters > self._most or len(self._known) > MOST:
            self._forget(next(iter(self._known)))

    def _forget(self, digest: bytes) -> None:
        if (found := self._known.pop(digest, None)) is not None:
            self._characters -= found[1]


def _digest(spec: GrammarSpec, tenant: str, relax: Relax) -> bytes:
    return blake2b(repr((astuple(spec), tenant, relax)).encode(), digest_size=16).digest()


def _characters(answer: Resolution | Refusal) -> int:
    if isinstance(answer, Refusal):
        return len(answer.message)
    return len(answer.spec.text) + len(answer.library_source or "")
