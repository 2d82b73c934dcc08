"""Stands between an engine and its mask broadcaster, and loses a message of the engine's when it is told to."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from threading import Event, Thread

_LENGTH = struct.Struct("<I")
_READ_BYTES = 1 << 16


class MessageRelay:
    """Listens at one abstract name, and connects to the other for each connection."""

    def __init__(self, name: str, target: str) -> None:
        self._target = target
        self._losing = Event()
        self.lost = Event()
        self._connections: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"\0{name}")
        self._listener.listen()
        self._threads = [Thread(target=self._accept)]
        self._threads[0].start()

    def lose_one(self) -> None:
        """The next message that comes whole."""
        self._losing.set()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for connection in self._connections:
            _end(connection)
        for thread in self._threads[1:]:
            thread.join()
        for connection in [self._listener, *self._connections]:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                engine, _ = self._listener.accept()
            except OSError:
                return
            broadcaster = socket.socket(socket.AF_UNIX)
            broadcaster.connect(f"\0{self._target}")
            self._connections += [engine, broadcaster]
            for pump in (Thread(target=self._forward, args=(engine, broadcaster)), Thread(target=_back, args=(broadcaster, engine))):
                pump.start()
                self._threads.append(pump)

    def _forward(self, engine: socket.socket, broadcaster: socket.socket) -> None:
        unread = bytearray()
        while data := _read(engine):
            unread += data
            while len(unread) >= _LENGTH.size and len(unread) >= (end := _LENGTH.size + _LENGTH.unpack_from(unread)[0]):
                if self._losing.is_set():
                    self._losing.clear()
                    self.lost.set()
                else:
                    broadcaster.sendall(unread[:end])
                del unread[:end]
        _end(broadcaster)


def _back(broadcaster: socket.socket, engine: socket.socket) -> None:
    while data := _read(broadcaster):
        engine.sendall(data)
    _end(engine)


def _read(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_READ_BYTES)
    except OSError:
        return b""


def _end(connection: socket.socket) -> None:
    with suppress(OSError):  # its other end has gone first
        connection.shutdown(socket.SHUT_RDWR)
