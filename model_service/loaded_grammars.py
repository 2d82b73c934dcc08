"""Compiled grammars of one vocabulary, loaded from the artifacts that replicas offer."""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import RLock
from weakref import WeakSet, finalize

from grammar_service.backends import CompiledGrammar, Matcher, loading_backends
from grammar_service.backends.mask_budget import StallBudget
from grammar_service.errors import ArtifactError
from grammar_service.heap import trim_heap
from grammar_service.own_memory import TouchedMemory
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.artifact_channel import Payload, fetch
from model_service.errors import GrammarMemoryFull

COMPILER_SHARE = 4
"""One part in so many is for what a compiler keeps of recipes: its rules make the next ones cheap. With a quarter of what 270 schemas take
they compile in 1.4 ms each, as with no bound; with nothing kept in 3.2 ms (the embedded vocabulary)."""

TRIMMED_BYTES = 16 << 20
"""Once grammars and matchers that have gone had taken so much, the allocator (glibc's) returns free memory to the system, in 2 to 12 ms.
Reused memory is not counted: without this, a process grew by 2.1 GB where 0.1 GB were counted."""
MAX_GROWN_BYTES = 64 << 20
"""A grammar whose matchers have made the process grow by so much is kept no longer, and the next request loads a new copy. The schemas of
`load_tests/corpus` grow by at most 4 MiB; llguidance's lexer states of a grammar that was written for it take 120 MiB."""
IN_USE_FACTOR, MIN_IN_USE_BYTES = 5, 256 << 20
"""Grammars that are kept or in use may take this many times `max_bytes`, or this many bytes if that is more, with what their matchers have
made of them. Then loads are refused, and the requests of the largest one end."""
MAX_ENDED_FACTOR = 1.5
"""Grammars may take this many times that limit while the requests that were ended have not let go of theirs."""
TENANT_FACTOR = 7
"""A tenant may not load more while its grammars take over this many times the free bytes, so that other tenants always get some (dynamic
thresholds: Choudhury and Hahne, "Dynamic Queue Length Thresholds", 1998)."""
LOADING_STACK_BYTES = 16 << 20
"""Of every thread that this process starts later, loaders among them. The compile child has accepted the grammar with a quarter of it
(`sandbox.worker.STACK_BYTES`). The default depends on `ulimit -s`, and is 2 MiB where that is unlimited."""
_CHECKED_BYTES = 1 << 20
"""Bytes that a grammar grows by between two looks at the sum of all."""
_log = logging.getLogger(__name__)


@dataclass(eq=False)
class LoadedGrammar:
    """A CompiledGrammar, and how it is counted. `grown_bytes`: by how much the process has grown for it beyond the grammar's own
    `size_bytes`, when it was loaded and by its matchers. `tenant`: whom it was loaded for. `is_over`: it takes too much memory or time, and
    its requests must end. `owner` adds up what all of its grammars take."""

    key: str
    grammar: CompiledGrammar
    tenant: str
    owner: LoadedGrammars
    grown_bytes: int = 0
    is_over: bool = False
    stalls: StallBudget = field(default_factory=StallBudget)

    @property
    def size_bytes(self) -> int:
        return self.grammar.size_bytes + self.grown_bytes

    def matcher(self, stop_token_ids: Sequence[int] | None, max_rollback_tokens: int) -> Matcher:
        return self.grammar.matcher(stop_token_ids, max_rollback_tokens)

    def charge(self, seconds: float, grown_bytes: int) -> bool:
        """Add what one of its matchers has taken for a token (`mask_budget.Effort`). Returns whether its requests must end."""
        if grown_bytes:
            self.owner.count(self, grown_bytes)
        self.is_over = self.is_over or self.stalls.spend(seconds)
        return self.is_over


class MatcherUse:
    """What one of the grammar's matchers has taken, until the matcher is freed."""

    def __init__(self, grammar: LoadedGrammar, matcher: Matcher) -> None:
        self._grammar = grammar
        self._owner = grammar.owner
        self._grown_bytes = 0
        finalize(matcher, self._release)

    def must_end(self) -> bool:
        """Whether the grammar's requests must end. To be asked before each piece of work, which may use memory that has been freed."""
        if self._owner.has_freed:
            self._owner.trim()
        return self._grammar.is_over

    def charge(self, seconds: float, grown_bytes: int) -> bool:
        """As `LoadedGrammar.charge`."""
        self._grown_bytes += grown_bytes
        return self._grammar.charge(seconds, grown_bytes)

    def _release(self) -> None:
        self._owner.release(self._grown_bytes)


def max_bytes_in_use(max_bytes: int) -> int:
    """Bytes that grammars may take which are kept or in use, where those that are kept may take `max_bytes`."""
    return max(MIN_IN_USE_BYTES, IN_USE_FACTOR * max_bytes)


class LoadedGrammars:
    """Least recently used out first, beyond `max_bytes`, of which the compiler of recipes has a part; called from several threads. A
    grammar counts as in use for as long as somebody holds the object.

    It keeps its backends, whose compiler stays warm. They load without the interpreter's lock, beside the process's other work.
    """

    def __init__(
        self,
        tokenizer: GrammarTokenizer,
        max_bytes: int,
        max_in_use_bytes: int | None = None,
    ) -> None:
        threading.stack_size(LOADING_STACK_BYTES)
        self.tokenizer = tokenizer
        compiler_bytes = max_bytes // COMPILER_SHARE
        self._backends = loading_backends(compiler_bytes)
        self._max_bytes = max_bytes - compiler_bytes
        self._max_in_use_bytes = max_bytes_in_use(max_bytes) if max_in_use_bytes is None else max_in_use_bytes
        self._held: OrderedDict[str, LoadedGrammar] = OrderedDict()
        self._in_use: WeakSet[LoadedGrammar] = WeakSet()
        """Those that are kept or used."""
        self._lock = RLock()
        self.has_freed = False
        """Whether much has been freed that the allocator may still keep."""
        self._released_bytes = 0
        self._used_backends = set[str]()
        """Those that have loaded a grammar. With its first one a backend makes tables of the vocabulary, which are not counted."""
        self.loaded = 0

    def __len__(self) -> int:
        """Those that are held now; `loaded` have been in all, and as often as they had to be."""
        return len(self._held)

    def __contains__(self, key: str) -> bool:
        """Whether `get` need not ask the channel."""
        return key in self._held

    def get(self, key: str, channel: str, tenant: str = "") -> LoadedGrammar:
        """`channel`: the replica's that offers the artifact, see `artifact_channel.fetch`. `tenant`: whose request wants it; empty:
        somebody who may use all there is.

        Raises:
            ChannelError, ArtifactError.
            GrammarMemoryFull: it is not loaded, and there is no room for it.
        """
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
            self._check_room(tenant)
        grammar = self._load(key, fetch(channel, key), tenant)
        with self._lock:
            self._held[key] = grammar
            self._in_use.add(grammar)
            self.loaded += 1
            while len(self._held) > 1 and sum(held.size_bytes for held in self._held.values()) > self._max_bytes:
                self._held.popitem(last=False)
        return grammar

    def _load(self, key: str, payload: Payload, tenant: str) -> LoadedGrammar:
        """What the load takes beyond the library's own figure is counted. Raises ArtifactError."""
        if (backend := self._backends.get(payload.backend)) is None:
            raise ArtifactError(f"there is no backend named {payload.backend[:40]!r}")
        self.trim()
        memory = TouchedMemory()
        loaded = backend.load(payload.data, self.tokenizer)
        grown_bytes = max(0, memory.bytes() - loaded.size_bytes) if payload.backend in self._used_backends else 0
        self._used_backends.add(payload.backend)
        grammar = LoadedGrammar(key, loaded, tenant, self, grown_bytes)
        finalize(grammar, self.release, grammar.size_bytes)
        return grammar

    def drop(self, grammar: LoadedGrammar) -> None:
        """Drop a grammar that failed, so that the next request loads a new copy: all its matchers share its lexer's states."""
        with self._lock:
            if self._held.get(grammar.key) is grammar:
                del self._held[grammar.key]

    def count(self, grammar: LoadedGrammar, grown_bytes: int) -> None:
        """The process has grown by so much for a grammar."""
        self.trim()
        with self._lock:
            before, grammar.grown_bytes = grammar.grown_bytes, grammar.grown_bytes + grown_bytes
            if before // _CHECKED_BYTES == grammar.grown_bytes // _CHECKED_BYTES:
                return
            if before <= MAX_GROWN_BYTES < grammar.grown_bytes:
                finalize(grammar, self.release, MAX_GROWN_BYTES)  # with its lexer's states
                self.drop(grammar)
            if (ended := self._to_end(grammar)) is not None:
                _log.warning("ending the requests of grammar %s: it takes %d MiB", ended.key, ended.size_bytes >> 20)
                ended.is_over = True
                self.drop(ended)

    def _to_end(self, growing: LoadedGrammar) -> LoadedGrammar | None:
        """The largest of the tenant that takes most, where all take too much. What has been ended is on its way out, and if it takes too
        long for that, nobody else grows."""
        sizes = {grammar: grammar.size_bytes for grammar in self._in_use}
        lasting = {grammar: size for grammar, size in sizes.items() if not grammar.is_over}
        if sum(lasting.values()) > self._max_in_use_bytes:
            of_tenants = Counter[str]()
            for grammar, size in lasting.items():
                of_tenants[grammar.tenant] += size
            ((tenant, _),) = of_tenants.most_common(1)
            return max((grammar for grammar in lasting if grammar.tenant == tenant), key=lasting.__getitem__)
        return growing if growing in lasting and sum(sizes.values()) > MAX_ENDED_FACTOR * self._max_in_use_bytes else None

    def _check_room(self, tenant: str) -> None:
        sizes = [(grammar.tenant, grammar.size_bytes) for grammar in self._in_use]
        free = self._max_in_use_bytes - sum(size for _, size in sizes)
        own = sum(size for owner, size in sizes if owner == tenant)
        if free <= 0 or (tenant and own > TENANT_FACTOR * free):
            raise GrammarMemoryFull("the grammars of other requests leave no memory for this one")

    def release(self, grown_bytes: int) -> None:
        """A grammar or a matcher that has taken so much has gone."""
        self._released_bytes += grown_bytes
        if self._released_bytes >= TRIMMED_BYTES:
            self.has_freed, self._released_bytes = True, 0

    def trim(self) -> None:
        """Give back what was freed, before something else uses it and nobody counts that."""
        if self.has_freed:
            self.has_freed = False
            trim_heap()
