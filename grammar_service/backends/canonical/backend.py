"""Another backend's grammars, whose matchers keep to the tokenizer's own sequences."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from grammar_service.backends.backend_layer import BackendLayer
from grammar_service.backends.protocol import CompiledGrammar, CompiledPayload
from grammar_service.errors import ArtifactError
from grammar_service.spec import GrammarSpec

if TYPE_CHECKING:
    from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_PRODUCT, _OTHER = b"P", b"O"
"""First byte of a payload: an automaton, or the other backend's."""


class CanonicalBackend(BackendLayer):
    """For specs that are `canonical`."""

    PREFIX, FORMAT = "canonical-", 2

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
