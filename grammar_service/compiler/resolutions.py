"""What specs were resolved to: a schema of everyday size can take a second of rewriting, and is asked for again and again."""

from __future__ import annotations

from dataclasses import astuple
from hashlib import blake2b

from grammar_service.bounded_cache import BoundedCache
from grammar_service.messages import Refusal
from grammar_service.relaxation import Relax
from grammar_service.resolve import Resolution
from grammar_service.spec import GrammarSpec
from grammar_service.warning import characters

MOST_BYTES = 64 << 20
MOST = 10_000


class Resolutions:
    """The ones that were asked for last. Each tenant's apart: they were made in children that serve no other tenant."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._known: BoundedCache[bytes, Resolution | Refusal] = BoundedCache(MOST, most_bytes, _size)

    def get(self, spec: GrammarSpec, tenant: str, relax: Relax) -> Resolution | Refusal | None:
        """None: not known, or no longer."""
        return self._known.get(_digest(spec, tenant, relax))

    def keep(self, spec: GrammarSpec, tenant: str, relax: Relax, answer: Resolution | Refusal) -> None:
        """A refusal must be one that another try would only repeat."""
        self._known.put(_digest(spec, tenant, relax), answer)


def _digest(spec: GrammarSpec, tenant: str, relax: Relax) -> bytes:
    return blake2b(repr((astuple(spec), tenant, relax)).encode(), digest_size=16).digest()


def _size(answer: Resolution | Refusal) -> int:
    if isinstance(answer, Refusal):
        return len(answer.message) + len(answer.pointer or "")
    return len(answer.spec.text) + len(answer.library_source or "") + characters(answer.warnings) + sum(map(len, answer.left_out))
