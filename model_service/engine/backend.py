"""Our structured-output backend inside vLLM's engine core (vLLM 0.32: `v1/structured_output/backend_types.py`).

vLLM hands `compile_grammar` a string; ours is a grammar key. The grammar is loaded from the artifact that the replica offers: from
its tables, or from the recipe of one that has compiled in the sandbox, and compiles faster than its tables can be read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any

import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from grammar_service.backends import Backend, CompiledGrammar, Matcher, backend_named
from grammar_service.backends.trial import accepted_prefix
from grammar_service.segments import Segmenter
from grammar_service.tokenizer import GrammarTokenizer
from model_service.artifact_channel import fetch

LOADED_BYTES = 512 << 20


class KeyedGrammar(StructuredOutputGrammar):
    """One request's matcher, in vLLM's clothes."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._ahead = 0
        self._violated = False

    @property
    def matcher(self) -> Matcher:
        return self._matcher

    def advance(self, tokens: Sequence[int]) -> bool:
        """Take tokens; False where one of them is forbidden."""
        # What follows termination (a stop token that vLLM appends) is not the grammar's concern.
        return all(self._matcher.is_terminated() or self._matcher.accept(token) for token in tokens)

    def advance_ahead(self, tokens: Sequence[int]) -> bool:
        """Take tokens that vLLM will offer once more, and then be told whether they were allowed."""
        self._ahead += len(tokens)
        self._violated = self._violated or not self.advance(tokens)
        return not self._violated

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        known, self._ahead = self._ahead, 0
        return not self._violated and self.advance(tokens[known:])

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        return tokens[: accepted_prefix(self._matcher, tokens)]

    def rollback(self, num_tokens: int) -> None:
        self._matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        self._matcher.fill(bitmask, batch_index)

    def is_terminated(self) -> bool:
        return self._matcher.is_terminated()

    def reset(self) -> None:
        self._matcher.reset()


class LoadedGrammars:
    """Compiled grammars of one engine core, least recently used out first; called from several threads.

    It keeps its backends, whose compilers stay warm. They load without the interpreter's lock, beside the engine's own work.
    """

    def __init__(self, tokenizer: GrammarTokenizer, channel: str, max_bytes: int = LOADED_BYTES) -> None:
        self._tokenizer = tokenizer
        self._backends: dict[str, Backend] = {}
        self._channel = channel
        self._max_bytes = max_bytes
        self._held: OrderedDict[str, CompiledGrammar] = OrderedDict()
        self._lock = Lock()
        self.loaded = 0

    def __len__(self) -> int:
        """Those that are held now; `loaded` have been in all, and as often as they had to be."""
        return len(self._held)

    def get(self, key: str) -> CompiledGrammar:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        payload = fetch(self._channel, key)
        grammar = self._backend(payload.backend).load(payload.data, self._tokenizer)
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


class ArtifactBackend(StructuredOutputBackend):
    """Serves every structured request of an engine, whichever of our backends compiled its grammar."""

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int, channel: str, max_rollback_tokens: int) -> None:
        super().__init__(vllm_config=vllm_config, tokenizer=tokenizer, vocab_size=vocab_size)
        vocabulary = GrammarTokenizer.from_huggingface(tokenizer, vocab_size)
        # Python code that takes a while for a large vocabulary: now, since later it would hold up the engine's steps.
        _ = vocabulary.spaces
        self._vocabulary = vocabulary
        self.grammars = LoadedGrammars(vocabulary, channel)
        self._max_rollback_tokens = max_rollback_tokens

    def compile_grammar(
        self, request_type: StructuredOutputOptions, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> KeyedGrammar:
        """A matcher for the artifact whose key stands in `grammar_spec`."""
        stops: Sequence[int] | None = sorted(stop_token_ids) if stop_token_ids else None
        return KeyedGrammar(self.grammars.get(grammar_spec).matcher(stops, self._max_rollback_tokens))

    def segmenter(self) -> Segmenter:
        """Takes seconds for a large vocabulary."""
        return Segmenter(self._vocabulary)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """All tokens allowed: int32 `[max_num_seqs, ceil(vocab_size / 32)]`."""
        return torch.full((max_num_seqs, (self.vocab_size + 31) // 32), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Nothing outlives the engine core."""
