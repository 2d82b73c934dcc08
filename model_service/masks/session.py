"""One engine's connection to the broadcaster, from its `Hello` to its end."""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing

from grammar_service.backends.batch_fill import BatchFiller
from grammar_service.errors import MaskcastError
from model_service.errors import InvalidMessage
from model_service.loaded_grammars import LoadedGrammars
from model_service.masks.broadcaster_counters import BroadcasterCounters
from model_service.masks.frame_filling import FrameFilling
from model_service.masks.frames.header import HEADER_WORDS, WORD
from model_service.masks.loading import GrammarLoading
from model_service.masks.messages import VERSION, FromEngine, Hello, Welcome
from model_service.masks.ring.ring import SLOT_BYTES, RingWriter
from model_service.masks.step_loop import StepLoop
from model_service.masks.vocabularies import Vocabularies
from model_service.shared_memory import MemoryAddress, mapped
from model_service.wire import Connection

_log = logging.getLogger(__name__)


class EngineSession:
    """`run` is a thread's. `lease_s`: how long an engine may say nothing; `threads`: that fill its masks."""

    def __init__(
        self, connection: Connection[FromEngine], vocabularies: Vocabularies, counters: BroadcasterCounters, lease_s: float, threads: int
    ) -> None:
        self._connection = connection
        self._vocabularies = vocabularies
        self._counters = counters
        self._lease_s = lease_s
        self._threads = threads

    def run(self) -> None:
        """Until the engine goes away, says something invalid, or nothing at all for too long."""
        try:
            with closing(self._connection), self._counters.connected():
                self._serve()
        except MaskcastError as error:
            self._counters.add(refused=1)
            _log.warning("an engine is sent away: %s", error)
        except OSError as error:
            _log.info("an engine is gone: %s", error)

    def end(self) -> None:
        """From another thread: let `run` return soon."""
        self._connection.end()

    def _serve(self) -> None:
        hello = self._hello()
        grammars = self._grammars(hello)
        with ExitStack() as stack:
            loading = stack.enter_context(closing(GrammarLoading(grammars, hello.channel)))
            ring = stack.enter_context(closing(RingWriter(slot_bytes=_slot_bytes(hello))))
            filling = FrameFilling(BatchFiller(grammars.tokenizer, self._threads), hello.vocab_size)
            self._connection.send(Welcome(ring.address))
            _log.info("engine %s is connected", hello.engine)
            StepLoop(self._connection, ring, filling, loading, self._counters).run(self._lease_s)

    def _hello(self) -> Hello:
        while not (messages := self._connection.read()):
            pass  # a part of it has come
        hello = messages[0]
        if not isinstance(hello, Hello) or hello.version != VERSION or len(messages) > 1 or min(hello.most_rows, hello.vocab_size) < 1:
            raise InvalidMessage("an engine does not say hello as it should")
        return hello

    def _grammars(self, hello: Hello) -> LoadedGrammars:
        address = hello.vocabulary
        if address is None:
            raise InvalidMessage(f"engine {hello.engine} has no vocabulary")
        grammars = self._vocabularies.get(hello.fingerprint, lambda: _content(address))
        if grammars.tokenizer.vocab_size != hello.vocab_size:
            raise InvalidMessage(f"engine {hello.engine} has {hello.vocab_size} tokens, its vocabulary {grammars.tokenizer.vocab_size}")
        return grammars


def _content(address: MemoryAddress) -> bytes:
    with closing(mapped(address)) as memory:
        return bytes(memory)


def _slot_bytes(hello: Hello) -> int:
    """What the longest frame may take, up to a bound."""
    row_words = (hello.vocab_size + 31) // 32
    return min(SLOT_BYTES, WORD * (HEADER_WORDS + hello.most_rows * (row_words + 1)))
