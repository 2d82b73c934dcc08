"""Compiled grammars of one vocabulary, loaded from the artifacts that replicas offer."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from weakref import WeakKeyDictionary

from grammar_service.backends import CompiledGrammar, loading_backends
from grammar_service.errors import ArtifactError
from grammar_service.own_memory import resident_bytes
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.artifact_channel import fetch
from model_service.errors import GrammarMemoryFull

COMPILER_SHARE = 4
"""One part in so many is for what a compiler keeps of recipes: its rules make the next ones cheap. With a quarter of what 270 schemas take
they compile in 1.4 ms each, as with no bound; with nothing kept in 3.2 ms (the embedded vocabulary)."""

TRIMMED_EVERY = 100
"""Loads, after which the allocator (glibc's) gives back what it keeps of grammars that have gone: loaders have arenas of their own, and
free pages of those lie between used ones. With 2,000 schemas a process of 541 to 548 MiB takes 516 to 535. It takes 2 to 5 ms, which is
what a load does."""

MEMORY_CHECK_INTERVAL = 64
"""Calls of `get` between two checks of the process's memory. Each load checks it, too."""
MAX_GROWTH_FACTOR, MIN_GROWTH_BYTES = 2, 256 << 20
"""When the process grows by more than this multiple of `max_bytes`, and by more than these bytes, all grammars are dropped. llguidance
creates lexer states lazily and does not report them: the 250,000 of one grammar may take 375 MiB."""
IN_USE_FACTOR, MIN_IN_USE_BYTES = 5, 256 << 20
"""Grammars that are kept or in use may take this many times `max_bytes`, or this many bytes if that is more. Then loads are refused."""
TENANT_FACTOR = 7
"""A tenant may not load more while its grammars take over this many times the free bytes, so that other tenants always get some (dynamic
thresholds: Choudhury and Hahne, "Dynamic Queue Length Thresholds", 1998)."""


class LoadedGrammars:
    """Least recently used out first, beyond `max_bytes`, of which the compiler of recipes has a part; called from several threads. A
    grammar counts as in use for as long as somebody holds the object.

    It keeps its backends, whose compiler stays warm. They load without the interpreter's lock, beside the process's other work.
    """

    def __init__(
        self,
        tokenizer: GrammarTokenizer,
        max_bytes: int,
        resident: Callable[[], int] = resident_bytes,
        max_in_use_bytes: int | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        compiler_bytes = max_bytes // COMPILER_SHARE
        self._backends = loading_backends(compiler_bytes)
        self._max_bytes = max_bytes - compiler_bytes
        self._max_growth_bytes = max(MIN_GROWTH_BYTES, MAX_GROWTH_FACTOR * max_bytes)
        self._max_in_use_bytes = max(MIN_IN_USE_BYTES, IN_USE_FACTOR * max_bytes) if max_in_use_bytes is None else max_in_use_bytes
        self._resident = resident
        self._baseline_bytes = resident()
        self._held: OrderedDict[str, CompiledGrammar] = OrderedDict()
        self._in_use: WeakKeyDictionary[CompiledGrammar, str] = WeakKeyDictionary()
        """Those that are kept or used, each with the tenant that it was loaded for."""
        self._lock = Lock()
        self._requests = self.loaded = 0

    def __len__(self) -> int:
        """Those that are held now; `loaded` have been in all, and as often as they had to be."""
        return len(self._held)

    def __contains__(self, key: str) -> bool:
        """Whether `get` need not ask the channel."""
        return key in self._held

    def get(self, key: str, channel: str, tenant: str = "") -> CompiledGrammar:
        """`channel`: the replica's that offers the artifact, see `artifact_channel.fetch`. `tenant`: whose request wants it; empty:
        somebody who may use all there is.

        Raises:
            ChannelError, ArtifactError.
            GrammarMemoryFull: it is not loaded, and there is no room for it.
        """
        with self._lock:
            self._requests += 1
            if self._requests % MEMORY_CHECK_INTERVAL == 0:
                self._drop_all_if_grown()
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
            self._check_room(tenant)
        payload = fetch(channel, key)
        if (backend := self._backends.get(payload.backend)) is None:
            raise ArtifactError(f"there is no backend named {payload.backend[:40]!r}")
        grammar = backend.load(payload.data, self.tokenizer)
        with self._lock:
            self._drop_all_if_grown()
            self._held[key] = grammar
            self._in_use[grammar] = tenant
            self.loaded += 1
            while len(self._held) > 1 and sum(g.size_bytes for g in self._held.values()) > self._max_bytes:
                self._held.popitem(last=False)
            trimmed = self.loaded % TRIMMED_EVERY == 0
        if trimmed:
            _trim()
        return grammar

    def drop(self, key: str, grammar: CompiledGrammar) -> None:
        """Drop a grammar that failed, so that the next request loads a new copy: all its matchers share its lexer's states."""
        with self._lock:
            if self._held.get(key) is grammar:
                del self._held[key]

    def _check_room(self, tenant: str) -> None:
        sizes = [(owner, grammar.size_bytes) for grammar, owner in self._in_use.items()]
        free = self._max_in_use_bytes - sum(size for _, size in sizes)
        own = sum(size for owner, size in sizes if owner == tenant)
        if free <= 0 or (tenant and own > TENANT_FACTOR * free):
            raise GrammarMemoryFull("the grammars of other requests leave no memory for this one")

    def _drop_all_if_grown(self) -> None:
        if self._resident() - self._baseline_bytes > self._max_growth_bytes:
            self._held.clear()
            _trim()
            self._baseline_bytes = self._resident()


def _trim() -> None:
    ctypes.CDLL(None).malloc_trim(0)
