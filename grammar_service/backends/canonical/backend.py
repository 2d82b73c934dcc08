"""Another backend's grammars, whose matchers keep to the tokenizer's own sequences."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from grammar_service.backends.protocol import Backend, CompiledGrammar, CompiledPayload, Fault
from grammar_service.errors import ArtifactError
from grammar_service.spec import GrammarSpec

if TYPE_CHECKING:
    from grammar_service.vocabulary.tokenizer import GrammarTokenizer

PREFIX = "canonical-"
_FORMAT = 2
_PRODUCT, _OTHER = b"P", b"O"
"""First byte of a payload: an automaton, or the other backend's."""


class CanonicalBackend:
    """A Backend that is another one for specs that are `canonical`: its name, and so the key of a grammar, is not the other one's."""

    def __init__(self, inner: Backend) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return PREFIX + self._inner.name

    @property
    def version(self) -> str:
        return f"{self._inner.version}, {_FORMAT}"

    def unsupported(self, spec: GrammarSpec) -> list[Fault]:
        return self._inner.unsupported(spec)

    def library_source(self, spec: GrammarSpec) -> str | None:
        return self._inner.library_source(spec)

    def compile(self, spec: GrammarSpec, tokenizer: GrammarTokenizer, library_source: str | None = None) -> CompiledPayload:
        """The product where there is one, else the other one's payload. Raises UnsupportedGrammar also where the tokenizer's own sequences
        are not known: it says why."""
        from grammar_service.backends.canonical.product import payload_of, product_of  # libraries are imported with the first grammar

        _ = tokenizer.canonical
        began = time.perf_counter()
        if (product := product_of(spec, tokenizer)) is not None:
            return CompiledPayload(_PRODUCT + payload_of(product, tokenizer), (time.perf_counter() - began) * 1000)
        payload = self._inner.compile(spec, tokenizer, library_source)
        return replace(payload, data=_OTHER + payload.data)

    def load(self, payload: bytes, tokenizer: GrammarTokenizer) -> CompiledGrammar:
        from grammar_service.backends.canonical.matcher import CanonicalGrammar
        from grammar_service.backends.canonical.product import read

        kind, payload = payload[:1], payload[1:]
        if kind == _PRODUCT:
            return read(payload, tokenizer)
        if kind != _OTHER:
            raise ArtifactError("the payload is of an unknown kind")
        return CanonicalGrammar(self._inner.load(payload, tokenizer), tokenizer.canonical, tokenizer.stop_token_ids)
