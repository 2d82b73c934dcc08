"""What stands around a backend and serves some of its specs in another way."""

from __future__ import annotations

from typing import ClassVar

from grammar_service.backends.protocol import Backend, Fault
from grammar_service.spec import GrammarSpec


class BackendLayer:
    """A Backend that is another one, for specs of some kind: its name, and so the key of a grammar, is not the other one's. `compile` and
    `load` are left to each. `FORMAT` counts up when their payloads change."""

    PREFIX: ClassVar[str]
    FORMAT: ClassVar[int]

    def __init__(self, inner: Backend) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return self.PREFIX + self._inner.name

    @property
    def version(self) -> str:
        return f"{self._inner.version}, {self.FORMAT}"

    def unsupported(self, spec: GrammarSpec) -> list[Fault]:
        return self._inner.unsupported(spec)

    def library_source(self, spec: GrammarSpec) -> str | None:
        return self._inner.library_source(spec)
