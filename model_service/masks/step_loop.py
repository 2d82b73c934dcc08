"""What a broadcaster does for an engine that it has welcomed, step after step."""

from __future__ import annotations

import select
from collections import deque

from grammar_service.backends import CompiledGrammar
from model_service.errors import FrameTooLarge, InvalidMessage
from model_service.masks.broadcaster_counters import BroadcasterCounters
from model_service.masks.engine_requests import EngineRequests
from model_service.masks.frame_filling import FrameFilling
from model_service.masks.frames.header import FrameHeader
from model_service.masks.loading import GrammarLoading
from model_service.masks.messages import Failed, FromEngine, Published, Ready, Step
from model_service.masks.ring.ring import RingWriter
from model_service.wire import Connection


class StepLoop:
    """For one thread. It owns none of what it is given."""

    def __init__(
        self,
        connection: Connection[FromEngine],
        ring: RingWriter,
        filling: FrameFilling,
        loading: GrammarLoading,
        counters: BroadcasterCounters,
    ) -> None:
        self._connection = connection
        self._ring = ring
        self._filling = filling
        self._loading = loading
        self._counters = counters
        self._requests = EngineRequests()
        self._loaded: deque[tuple[int, CompiledGrammar | None]] = deque()

    def run(self, lease_s: float) -> None:
        """Until nothing is said for as long as the lease (TimeoutError), the engine is gone (OSError), or what it says is invalid
        (InvalidMessage)."""
        poll = select.poll()
        for channel in (self._connection, self._loading):
            poll.register(channel.fileno(), select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(0 if self._loaded else lease_s * 1000)}
            if not ready and not self._loaded:
                raise TimeoutError(f"nothing was said for {lease_s:g} s")
            if self._connection.fileno() in ready:
                self._take(self._connection.read())
            if self._loading.fileno() in ready:
                self._loaded.extend(self._loading.take())
            if self._loaded:
                self._report_loaded(*self._loaded.popleft())

    def _take(self, messages: list[FromEngine]) -> None:
        # Where steps have piled up, nobody waits for the masks of any but the last.
        latest = max((at for at, message in enumerate(messages) if isinstance(message, Step) and message.rows), default=-1)
        for at, step in enumerate(messages):
            if not isinstance(step, Step):
                raise InvalidMessage("an engine says hello again")
            self._take_step(step, at == latest)

    def _take_step(self, step: Step, fills: bool) -> None:
        failed = self._requests.take(step)
        if fills:
            self._publish(step)
        elif step.rows:
            self._requests.rows(step)
        for begun in step.begun:
            self._loading.begin(begun.slot, begun.key)
        if failed:
            self._connection.send(Failed(failed))
        if step.late:
            self._counters.add(late=step.late)

    def _publish(self, step: Step) -> None:
        frame = self._frame(step)
        try:
            if frame:
                self._ring.publish(step.number, frame)
        except FrameTooLarge:
            frame = b""
        self._connection.send(Published(step.number, len(frame)))
        if frame:
            header = FrameHeader.read(memoryview(frame))
            self._counters.add(frames=1, rows=header.logits, frame_bytes=len(frame), naive_bytes=header.naive_bytes)

    def _frame(self, step: Step) -> bytes:
        """Empty where there are no masks, so that nobody waits for them."""
        rows = self._requests.rows(step)
        if rows is None:
            return b""
        try:
            return self._filling.frame(rows)
        except (RuntimeError, ValueError):
            # A library has given up on one of them, such as one that is out of fuel.
            failed = [slot for (slot, _), row in zip(step.rows, rows, strict=True) if not self._filling.can_fill(row)]
            self._requests.fail(failed)
            self._connection.send(Failed(failed))
            return b""

    def _report_loaded(self, slot: int, grammar: CompiledGrammar | None) -> None:
        """One at a time: after a long answer its tokens take a while, and steps that come meanwhile should not."""
        is_ready = self._requests.loaded(slot, grammar)
        if is_ready is not None:
            self._connection.send(Ready([slot]) if is_ready else Failed([slot]))
