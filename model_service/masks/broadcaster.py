"""Fills the masks of all engines of a node, in a process of its own that knows nothing of Ray.

Engines connect to a Unix socket with an abstract name, so that nothing is left in the file system however the process ends. Only processes
of the same user are served: whoever may connect could also attach a debugger.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread, current_thread

from model_service.masks.broadcaster_counters import BroadcasterCounters, MaskTotals
from model_service.masks.messages import FROM_ENGINE
from model_service.masks.session import EngineSession
from model_service.masks.vocabularies import Vocabularies
from model_service.wire import Connection, is_same_user

LEASE_S = 600.0
SEND_S = 5.0
"""For an engine to take a message in, or to say hello."""
RETRY_S = 1.0
"""Where there are no file descriptors left, say."""
_WAITING = 64
_log = logging.getLogger(__name__)


class MaskBroadcaster:
    """`grammar_bytes`: of the grammars of a vocabulary that stay loaded. `threads`: that fill the masks of one engine, None: half of the
    processor's cores. `clock`: seconds."""

    def __init__(
        self,
        name: str,
        grammar_bytes: int,
        lease_s: float = LEASE_S,
        threads: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._lease_s = lease_s
        self._threads = threads or max(1, (os.cpu_count() or 1) // 2)
        self._clock = clock
        self._counters = BroadcasterCounters()
        self._vocabularies = Vocabularies(grammar_bytes)
        self._sessions: dict[Thread, EngineSession] = {}
        self._lock = Lock()
        self._closing = Event()
        self._wanted_at = clock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._accepting = Thread(target=self._accept, name="masks", daemon=True)

    def start(self) -> None:
        """Raises OSError: the name is taken."""
        self._listener.bind(f"\0{self.name}")
        self._listener.listen(_WAITING)
        self._accepting.start()

    @property
    def totals(self) -> MaskTotals:
        return self._counters.totals

    @property
    def engines(self) -> int:
        """That are connected."""
        return self._counters.engines

    def want(self) -> None:
        """Somebody is about to connect, or may be."""
        self._wanted_at = self._clock()

    def idle_s(self) -> float:
        """Seconds since an engine was connected when this was asked, or somebody wanted it."""
        if self.engines:
            self.want()
        return self._clock() - self._wanted_at

    def close(self) -> None:
        """Ends all sessions, and waits for them."""
        self._closing.set()
        with suppress(OSError):  # it has not been started
            self._listener.shutdown(socket.SHUT_RDWR)
        if self._accepting.ident is not None:
            self._accepting.join()
        self._listener.close()
        with self._lock:
            sessions = dict(self._sessions)
        for thread, session in sessions.items():
            session.end()
            thread.join()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if not self._closing.wait(RETRY_S):
                    _log.warning("engines cannot connect: %s", error)
                continue
            if is_same_user(connection):
                self._serve(connection)
            else:
                connection.close()

    def _serve(self, accepted: socket.socket) -> None:
        connection = Connection(accepted, FROM_ENGINE, SEND_S)
        session = EngineSession(connection, self._vocabularies, self._counters, self._lease_s, self._threads)
        thread = Thread(target=self._run, args=(session,), name="engine", daemon=True)
        with self._lock:
            self._sessions[thread] = session
        thread.start()

    def _run(self, session: EngineSession) -> None:
        try:
            session.run()
        finally:
            with self._lock:
                self._sessions.pop(current_thread(), None)
