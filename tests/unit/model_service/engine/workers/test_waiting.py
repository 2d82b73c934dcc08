from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from vllm.distributed.device_communicators import shm_broadcast
from vllm.distributed.device_communicators.shm_broadcast import MessageQueue

from model_service.engine.workers.waiting import wait_asleep

WAITED_S = 0.2


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[MessageQueue, MessageQueue]]:
    """What is written into the first comes out of the second."""
    monkeypatch.setattr(shm_broadcast, "SpinCondition", shm_broadcast.SpinCondition)  # put back afterwards
    wait_asleep()
    writer = MessageQueue(1, 1)
    reader = MessageQueue.create_from_handle(writer.export_handle(), 0)
    yield writer, reader
    reader.shutdown()
    writer.shutdown()


def test_messages_come_in_order(ends: tuple[MessageQueue, MessageQueue]) -> None:
    writer, reader = ends
    for number in range(5):
        writer.enqueue(number)
        assert reader.dequeue(timeout=5) == number


def test_whoever_waits_leaves_the_processor_to_others(ends: tuple[MessageQueue, MessageQueue]) -> None:
    writer, reader = ends
    writer.enqueue("a message a moment ago")
    reader.dequeue(timeout=5)
    before = time.thread_time()
    with pytest.raises(TimeoutError):
        reader.dequeue(timeout=WAITED_S)
    assert time.thread_time() - before < WAITED_S / 2
