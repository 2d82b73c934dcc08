"""What an engine does with an encoded artifact, until it has the first mask."""

from __future__ import annotations

import torch

from grammar_service.artifacts.artifact import decode
from grammar_service.backends import Backend, CompiledGrammar, backend_named
from grammar_service.mac import Secret
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_SMALL = (GrammarSpec(GrammarKind.JSON_OBJECT, ""), GrammarSpec(GrammarKind.REGEX, "a"))


class Reader:
    """Keeps its backends, as an engine does: their compilers are warm with what they have read."""

    def __init__(self, tokenizer: GrammarTokenizer, secret: Secret) -> None:
        self._tokenizer = tokenizer
        self._secret = secret
        self._backends: dict[str, Backend] = {name: backend_named(name) for name in ("xgrammar", "llguidance", "automata")}
        self._row = torch.zeros((1, (tokenizer.vocab_size + 31) // 32), dtype=torch.int32)

    def warm_up(self) -> None:
        """Read a small grammar with each backend, as engines do before they are ready."""
        for backend in self._backends.values():
            spec = next(spec for spec in _SMALL if not backend.unsupported(spec))
            self.mask(backend.load(backend.compile(spec, self._tokenizer).data, self._tokenizer))

    def load(self, blob: bytes, key: str) -> CompiledGrammar:
        """The grammar of an encoded artifact. Raises ArtifactError."""
        artifact = decode(blob, self._secret, key=key, fingerprint=self._tokenizer.fingerprint)
        return self._backends[artifact.header.backend].load(artifact.payload, self._tokenizer)

    def mask(self, grammar: CompiledGrammar) -> torch.Tensor:
        """Its first mask: int32 [1, ceil(V/32)]; the same tensor every time."""
        grammar.matcher(None, 0).fill(self._row, 0)
        return self._row

    def first_mask(self, blob: bytes, key: str) -> torch.Tensor:
        """From the artifact to the mask. Raises ArtifactError."""
        return self.mask(self.load(blob, key))
