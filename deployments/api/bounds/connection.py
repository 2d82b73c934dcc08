"""One client's connection (uvicorn 0.54: `protocols/http/httptools_impl.py`), which must send each request whole within a time, and must
take its answers."""

from __future__ import annotations

import logging
from asyncio import TimerHandle, Transport
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEADERS = 256
"""Of a request. A header takes 120 bytes of memory beside its text, so 32 KiB of tiny ones would take 800 KiB."""
MAX_URL_BYTES = 8 << 10
"""Bytes. Reading the parameters of a longer one takes the loop tens of milliseconds."""
GRACE_S = 1.0
"""Seconds in which an application that has waited as long may still say so."""
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n"
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_QUIET = logging.getLogger(f"{__name__}.faults")
"""For errors alone. Of each malformed request, uvicorn would write a warning: whoever has no key could fill the disk."""
_QUIET.setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """`read_timeout_s` for a request from its first byte to its last one, and for the first one to come. `write_timeout_s` for the client
    to take what waits for it, once that is as much as a connection may hold (64 KiB: asyncio's high-water mark). A connection that is older
    than `max_age_s` ends with its next answer: a balancer, as Kubernetes has it, chooses for new ones alone, and pools of clients would
    stay with a cluster that is being replaced, and away from an ingress that has come. Beyond `max_connections` that are open, a new one is
    closed with a 503."""

    read_timeout_s: float = 30.0
    write_timeout_s: float = 60.0
    max_header_bytes: int = 32 << 10
    max_age_s: float = 60.0
    max_connections: int = 16_384


class BoundedConnection(HttpToolsProtocol):
    """Closes a connection whose client is slower than the bounds, or whose headers have no end. A request that comes in one piece, as most
    do, costs no timer, and neither does an answer that is read."""

    def __init__(self, *args: Any, bounds: ConnectionBounds, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bounds = bounds
        self.logger = _QUIET
        self._since = 0.0
        self._slow: TimerHandle | None = None
        self._stalled: TimerHandle | None = None
        self._is_whole = False
        self._in_headers = True
        self._overhead_bytes = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        if len(self.connections) > self._bounds.max_connections:
            transport.write(TOO_MANY)
            self._close()
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        self._is_read()
        super().connection_lost(exc)
        if self.cycle is not None:
            self.cycle.body = bytearray()  # the cycle waits for the garbage collector

    def data_received(self, data: bytes) -> None:
        self._overhead_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():  # it was answered with a 400
            self._abort_later()
        # Line feeds after an answer begin no request, but they end uvicorn's keep-alive timer: they start ours.
        if self._is_whole and not (self.cycle and self.cycle.response_complete):
            self._overhead_bytes = 0
            self._wait_no_more()
            return
        self._wait()
        # The parser buffers headers and trailers until they end.
        if self._overhead_bytes > self._bounds.max_header_bytes and not self.transport.is_closing():
            self.transport.write(TOO_LARGE)
            self._close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._abort_later()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._is_read()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        if self.transport.is_closing():
            self._abort_later()

    def on_url(self, url: bytes) -> None:
        # In pieces, of which each is as large as what was received.
        if len(self.url) + len(url) > MAX_URL_BYTES:
            raise ValueError("the URL is too long")
        super().on_url(url)

    def on_message_begin(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            # Pipelined requests would be queued without a bound, and hide that the client disconnects. The client gets a 400.
            raise ValueError("pipelined requests are not supported")
        super().on_message_begin()
        self._is_whole, self._in_headers = False, True

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_headers:  # trailers are ignored
            return
        if len(self.headers) == MOST_HEADERS:
            raise ValueError("too many headers")
        super().on_header(name, value)

    def on_response_complete(self) -> None:
        """An idle connection keeps nothing of its last request: no limit counts it."""
        self.headers, self.cycle.body = [], bytearray()
        self.scope = self.cycle.scope = {**self.cycle.scope, "headers": []}
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_later()

    def on_body(self, body: bytes) -> None:
        # Twice, since small chunks of a chunked body have headers of about their own size.
        self._overhead_bytes = max(0, self._overhead_bytes - 2 * len(body))
        super().on_body(body)

    def on_headers_complete(self) -> None:
        self._in_headers = False
        super().on_headers_complete()
        if self.loop.time() - self._since > self._bounds.max_age_s:
            self.cycle.keep_alive = False  # which it tells the client

    def on_message_complete(self) -> None:
        self._is_whole = True
        super().on_message_complete()

    def _wait(self) -> None:
        if self._slow is None and not self.transport.is_closing():
            self._slow = self.loop.call_later(self._bounds.read_timeout_s + GRACE_S, self._close)

    def _close(self) -> None:
        self.transport.close()
        self._abort_later()

    def _abort_later(self) -> None:
        """A closed transport stays until the client has read what was written before. This sets a limit to that."""
        if self._stalled is None:
            self._stalled = self.loop.call_later(self._bounds.write_timeout_s, self.transport.abort)

    def _is_read(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _wait_no_more(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None
