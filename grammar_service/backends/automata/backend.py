"""The backend `automata`: a token index (Willard & Louf 2023), written as an automaton over bytes and a packed row a state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from grammar_service.backends.protocol import Backend, CompiledGrammar, CompiledPayload, Fault
from grammar_service.errors import ArtifactError
from grammar_service.spec import GrammarKind, GrammarSpec

if TYPE_CHECKING:
    from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_FORMAT = 1
_ROWS, _OTHER = b"R", b"O"
"""First byte of a payload: ours, or the other backend's."""


class AutomataBackend:
    """A Backend of regexes and choices that another one enforces too: how large an automaton becomes shows only when it is made, for one
    vocabulary, and what becomes too large is the other one's. What it imports comes with the first grammar: judging specs does without it.
    """

    def __init__(self, inner: Backend) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return "automata"

    @property
    def version(self) -> str:
        return f"{_FORMAT}, {self._inner.name} {self._inner.version}"

    def unsupported(self, spec: GrammarSpec) -> list[Fault]:
        if spec.kind not in (GrammarKind.REGEX, GrammarKind.CHOICE):
            return [Fault(None, f"{spec.kind} is not supported")]
        return self._inner.unsupported(spec)

    def library_source(self, spec: GrammarSpec) -> str | None:
        return None

    def compile(self, spec: GrammarSpec, tokenizer: GrammarTokenizer, library_source: str | None = None) -> CompiledPayload:
        from grammar_service.backends.automata.state_rows import compiled

        payload = compiled(spec, tokenizer)
        if payload is not None:
            return replace(payload, data=_ROWS + payload.data)
        payload = self._inner.compile(spec, tokenizer)
        return replace(payload, data=_OTHER + payload.data)

    def load(self, payload: bytes, tokenizer: GrammarTokenizer) -> CompiledGrammar:
        from grammar_service.backends.automata.grammar import AutomataGrammar
        from grammar_service.backends.automata.state_rows import StateRows

        kind, payload = payload[:1], payload[1:]
        if kind == _ROWS:
            rows = StateRows.read(payload)
            if not rows.fits(tokenizer.vocab_size):
                raise ArtifactError("the automaton leads to states or tokens that there are not")
            return AutomataGrammar(rows, tokenizer)
        if kind != _OTHER:
            raise ArtifactError("the payload is of an unknown kind")
        return self._inner.load(payload, tokenizer)
