"""Compiled grammars of one vocabulary, loaded from the artifacts that replicas offer."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from grammar_service.backends import Backend, CompiledGrammar, backend_named
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.artifact_channel import fetch


class LoadedGrammars:
    """Least recently used out first, beyond `max_bytes`; called from several threads.

    It keeps its backends, whose compilers stay warm. They load without the interpreter's lock, beside the process's other work.
    """

    def __init__(self, tokenizer: GrammarTokenizer, max_bytes: int) -> None:
        self.tokenizer = tokenizer
        self._backends: dict[str, Backend] = {}
        self._max_bytes = max_bytes
        self._held: OrderedDict[str, CompiledGrammar] = OrderedDict()
        self._lock = Lock()
        self.loaded = 0

    def __len__(self) -> int:
        """Those that are held now; `loaded` have been in all, and as often as they had to be."""
        return len(self._held)

    def get(self, key: str, channel: str) -> CompiledGrammar:
        """`channel`: the replica's that offers the artifact, see `artifact_channel.fetch`. Raises ChannelError, ArtifactError."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        payload = fetch(channel, key)
        grammar = self._backend(payload.backend).load(payload.data, self.tokenizer)
        with self._lock:
            self._held[key] = grammar
            self.loaded += 1
            while len(self._held) > 1 and sum(g.size_bytes for g in self._held.values()) > self._max_bytes:
                self._held.popitem(last=False)
        return grammar

    def _backend(self, name: str) -> Backend:
        with self._lock:
            if name not in self._backends:
                self._backends[name] = backend_named(name)
            return self._backends[name]
