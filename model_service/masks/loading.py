"""Grammars on their way to the requests of one engine, loaded beside its steps."""

from __future__ import annotations

import logging
import os
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

from grammar_service.backends import CompiledGrammar
from grammar_service.errors import MaskcastError
from model_service.loaded_grammars import LoadedGrammar, LoadedGrammars

LOADERS = 2
"""Grammars that are loaded at a time."""
_log = logging.getLogger(__name__)


class GrammarLoading:
    """For one thread. `channel`: where the engine's artifacts are fetched."""

    def __init__(self, grammars: LoadedGrammars, channel: str) -> None:
        self._grammars = grammars
        self._channel = channel
        self._loaders = ThreadPoolExecutor(LOADERS, thread_name_prefix="grammars")
        self._loaded: SimpleQueue[tuple[int, CompiledGrammar | None]] = SimpleQueue()
        self._event = os.eventfd(0, os.EFD_CLOEXEC)

    def fileno(self) -> int:
        """Readable when there is something to take."""
        return self._event

    def begin(self, slot: int, key: str) -> None:
        def done(future: Future[LoadedGrammar]) -> None:
            if not future.cancelled():
                self._loaded.put((slot, _grammar(future)))
                os.eventfd_write(self._event, 1)

        self._loaders.submit(self._grammars.get, key, self._channel).add_done_callback(done)

    def take(self) -> list[tuple[int, CompiledGrammar | None]]:
        """Slots with their grammars, None: there is none to be had. To be called when there is something to take."""
        os.eventfd_read(self._event)
        return [self._loaded.get() for _ in range(self._loaded.qsize())]

    def close(self) -> None:
        """Waits for what is being loaded."""
        self._loaders.shutdown(wait=True, cancel_futures=True)
        os.close(self._event)


def _grammar(future: Future[LoadedGrammar]) -> CompiledGrammar | None:
    try:
        return future.result()
    except MaskcastError as error:
        _log.warning("a grammar is left to its engine: %s", error)
    except Exception:  # noqa: BLE001  # else nobody would hear of it, and the slot would wait for good
        _log.exception("a grammar is left to its engine")
    return None
