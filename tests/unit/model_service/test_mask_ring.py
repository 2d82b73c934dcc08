"""One process publishes mask frames, others read them, and none can harm another."""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, replace
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_service.errors import FrameGone, FrameLate, FrameTooLarge, InvalidFrame, RingUnavailable
from model_service.masks.futex import Futex
from model_service.masks.ring import PURPOSE, RingReader, RingWriter
from model_service.masks.ring_layout import CHECKSUM, LENGTH, PUBLISHED_AT, RingLayout, written
from model_service.masks.shared_memory import MemoryAddress, OwnMemory
from tests.ring_process import payload

ROOT = Path(__file__).resolve().parents[3]
NOW = 0.0
"""A deadline that is over: what is not there is late at once."""


class Process:
    """`tests.ring_process` in one of its roles."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "tests.ring_process", *arguments]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.greeting = self.heard()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def heard(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def asked(self, line: str) -> str:
        self.tell(line)
        return self.heard()

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        assert self.process.wait() == -number

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def started() -> Iterator[Callable[..., Process]]:
    processes: list[Process] = []

    def start(*arguments: str) -> Process:
        processes.append(Process(*arguments))
        return processes[-1]

    yield start
    for process in processes:
        process.end()


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    descriptors = open_descriptors()
    yield
    assert not any(PURPOSE in text for text in _held(Path("/proc/self")))
    assert [segment for segment in Path("/dev/shm").iterdir() if PURPOSE in segment.name] == []
    assert open_descriptors() == descriptors


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def holders(name: str) -> list[str]:
    """Processes that hold memory of that name, open or mapped."""
    return [process.name for process in Path("/proc").glob("[0-9]*") if any(name in text for text in _held(process))]


def _held(process: Path) -> Iterator[str]:
    # What has just ended holds nothing.
    with suppress(OSError):
        yield (process / "maps").read_text(encoding="utf-8", errors="replace")
    with suppress(OSError):
        for link in (process / "fd").iterdir():
            with suppress(OSError):
                yield str(link.readlink())


@contextmanager
def ring(slots: int = 3, slot_bytes: int = 64, checksums: bool = False) -> Iterator[tuple[RingWriter, RingReader]]:
    with closing(RingWriter(slots, slot_bytes, checksums)) as writer, closing(RingReader(writer.address)) as reader:
        yield writer, reader


def address_of(writer: Process) -> MemoryAddress:
    pid, descriptor, name = json.loads(writer.greeting)
    return MemoryAddress(pid, descriptor, name)


@pytest.mark.parametrize("checksums", [False, True])
def test_the_last_frames_are_there_and_older_ones_are_gone(checksums: bool) -> None:
    with ring(checksums=checksums) as (writer, reader):
        for sequence in range(10):
            writer.publish(sequence, b"frame %d" % sequence * sequence)
        assert reader.newest == 9
        for sequence in (7, 8, 9):
            assert reader.read(sequence, NOW) == b"frame %d" % sequence * sequence
        for sequence in (0, 6):
            with pytest.raises(FrameGone):
                reader.read(sequence, NOW)
        with pytest.raises(FrameLate):
            reader.read(10, NOW)


def test_an_empty_ring_has_no_newest_frame() -> None:
    with ring() as (_, reader):
        assert reader.newest is None
        with pytest.raises(FrameLate):
            reader.read(0, NOW)


@given(st.integers(1, 4), st.lists(st.tuples(st.integers(1, 6), st.binary(max_size=16)), max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_ring_holds_what_was_published_last_in_each_slot(slots: int, steps: list[tuple[int, bytes]]) -> None:
    with ring(slots, 16) as (writer, reader):
        held: dict[int, tuple[int, bytes]] = {}
        sequence = -1
        for step, data in steps:
            sequence += step
            writer.publish(sequence, data)
            held[sequence % slots] = sequence, data
        for asked in range(sequence + 1):
            if held.get(asked % slots, (-1, b""))[0] == asked:
                assert reader.read(asked, NOW) == held[asked % slots][1]
            else:
                with pytest.raises(FrameGone):
                    reader.read(asked, NOW)


def test_a_frame_that_no_slot_holds_is_refused_and_its_number_stays_free() -> None:
    with ring(slot_bytes=100) as (writer, reader):
        writer.publish(3, bytes(100))
        with pytest.raises(FrameTooLarge, match="101 bytes"):
            writer.publish(4, bytes(101))
        assert reader.read(3, NOW) == bytes(100)
        writer.publish(4, b"shorter")
        assert reader.read(4, NOW) == b"shorter"


def test_numbers_ascend() -> None:
    with ring() as (writer, _):
        writer.publish(5, b"")
        for sequence in (5, 4):
            with pytest.raises(ValueError, match="after frame 5"):
                writer.publish(sequence, b"")


def test_a_reader_waits_no_longer_than_its_deadline() -> None:
    clock = count()
    with closing(RingWriter(1, 8)) as writer, closing(RingReader(writer.address, lambda: float(next(clock)))) as reader:
        with pytest.raises(FrameLate):
            reader.read(0, 5.0)
        assert next(clock) == 6


def test_a_closed_ring_keeps_nobody_waiting() -> None:
    writer = RingWriter(2, 8)
    with closing(RingReader(writer.address)) as reader:
        writer.publish(0, b"last")
        writer.close()
        assert reader.read(0, NOW) == b"last"
        with pytest.raises(RingUnavailable, match="closed before frame 1"):
            reader.read(1, time.monotonic() + 300)
        with pytest.raises(RingUnavailable):
            RingReader(writer.address)


def test_two_readers_wait_for_a_frame_and_both_get_it(started: Callable[..., Process]) -> None:
    writer = started("writer")
    readers = [started("reader", writer.greeting) for _ in range(2)]
    for sequence in range(5):
        for reader in readers:
            reader.tell(f"read {sequence}")
        assert writer.asked(f"publish {sequence}") == "published"
        assert [reader.heard() for reader in readers] == ["whole", "whole"]


def test_who_sleeps_is_woken_by_a_frame() -> None:
    about_to_read: SimpleQueue[int] = SimpleQueue()

    def read_all(reader: RingReader) -> None:
        for sequence in range(200):
            about_to_read.put(sequence)
            reader.read(sequence, time.monotonic() + 3000)

    with closing(RingWriter(2, 8)) as writer, closing(RingReader(writer.address, longest_sleep_s=3000)) as reader:
        thread = Thread(target=read_all, args=(reader,))
        thread.start()
        for _ in range(200):
            writer.publish(about_to_read.get(), b"")
        thread.join()


def test_a_killed_reader_is_nothing_to_the_others(started: Callable[..., Process]) -> None:
    writer = started("writer")
    victim, other = (started("reader", writer.greeting) for _ in range(2))
    victim.tell("read 0")
    victim.kill()
    for sequence in range(5):
        assert writer.asked(f"publish {sequence}") == "published"
        assert other.asked(f"read {sequence}") == "whole"


def test_a_stopped_reader_holds_nobody_up_and_is_told_what_it_missed(started: Callable[..., Process]) -> None:
    writer = started("writer")
    reader = started("reader", writer.greeting)
    reader.process.send_signal(signal.SIGSTOP)
    reader.tell("read 0")
    for sequence in range(5):
        assert writer.asked(f"publish {sequence}") == "published"
    reader.process.send_signal(signal.SIGCONT)
    assert reader.heard() == "FrameGone"


def test_a_killed_writer_leaves_its_last_frames_and_then_no_memory(started: Callable[..., Process]) -> None:
    writer = started("writer")
    with closing(RingReader(address_of(writer))) as reader:
        assert writer.asked("endless") == "begun"
        while (reader.newest or 0) < 10:
            pass
        writer.kill()
        newest = reader.newest
        assert newest is not None
        assert reader.read(newest, NOW) == payload(newest)
        with pytest.raises(FrameLate):
            reader.read(newest + 2, NOW)
        assert holders(address_of(writer).name) == [str(os.getpid())]
        with pytest.raises(RingUnavailable):
            RingReader(address_of(writer))
    assert holders(address_of(writer).name) == []


def test_a_writer_that_dies_while_it_writes_leaves_nothing_to_read(started: Callable[..., Process]) -> None:
    writer = started("writer")
    with closing(RingReader(address_of(writer))) as reader:
        for sequence in (0, 1):
            assert writer.asked(f"publish {sequence}") == "published"
        writer.tell("torn 2")
        assert writer.process.wait() == -signal.SIGBUS
        with pytest.raises(FrameLate):
            reader.read(2, NOW)
        with pytest.raises(FrameGone):
            reader.read(0, NOW)
        assert reader.read(1, NOW) == payload(1)


def test_whatever_is_read_beside_a_busy_writer_is_whole(started: Callable[..., Process]) -> None:
    writer = started("writer")
    with closing(RingReader(address_of(writer))) as reader:
        assert writer.asked("endless") == "begun"
        while reader.newest is None:
            pass
        whole = 0
        for attempt in range(2000):
            # Every other time the one that is about to be overwritten, or is just then.
            asked = max(0, (reader.newest or 0) - attempt % 2)
            with suppress(FrameGone):
                assert reader.read(asked, NOW) == payload(asked)
                whole += 1
        assert whole > 0


def handwritten(layout: RingLayout) -> OwnMemory:
    memory = OwnMemory(PURPOSE, layout.size_bytes)
    layout.write(memory.map)
    return memory


def test_a_frame_with_another_checksum_is_never_returned() -> None:
    layout = RingLayout(1, 16, checksums=True)
    with closing(handwritten(layout)) as memory, closing(RingReader(memory.address)) as reader:
        words = memoryview(memory.map).cast("Q")
        at = layout.mark_at(0) // 8
        words[PUBLISHED_AT // 8], words[at], words[at + LENGTH], words[at + CHECKSUM] = 1, written(0), 5, zlib.crc32(b"whole")
        with pytest.raises(InvalidFrame):
            reader.read(0, time.monotonic() + 0.002)
        memory.map[layout.frame_at(0) : layout.frame_at(0) + 5] = b"whole"
        assert reader.read(0, NOW) == b"whole"
        words.release()


def test_what_is_no_ring_is_refused() -> None:
    with closing(RingWriter(1, 8)) as writer, pytest.raises(RingUnavailable, match="is not"):
        RingReader(replace(writer.address, name="maskcast-masks-of-another"))
    with closing(OwnMemory(PURPOSE, 50)) as short, pytest.raises(RingUnavailable, match="are no ring"):
        RingReader(short.address)
    with closing(OwnMemory(PURPOSE, 4096)) as empty, pytest.raises(RingUnavailable, match="version"):
        RingReader(empty.address)
    with closing(OwnMemory(PURPOSE, 4096)) as other:
        RingLayout(2, 512, checksums=False).write(other.map)
        with pytest.raises(RingUnavailable, match="a ring of"):
            RingReader(other.address)
    for slots, slot_bytes in ((0, 8), (2, 0), (2, 1 << 29), (1 << 60, 1 << 60)):
        with pytest.raises(RingUnavailable, match="no rings"):
            RingLayout(slots, slot_bytes, checksums=False)


def test_memory_that_could_shrink_under_a_reader_is_refused() -> None:
    descriptor = os.memfd_create("loose", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, 4096)
    with pytest.raises(RingUnavailable, match="may shrink"):
        RingReader(MemoryAddress(os.getpid(), descriptor, "loose"))
    os.close(descriptor)


def test_nobody_but_the_writer_can_change_a_ring() -> None:
    with closing(RingWriter(1, 8)) as writer:
        descriptor = os.open(writer.address.path, os.O_RDWR)
        for harm in (
            lambda: mmap.mmap(descriptor, 0),
            lambda: os.pwrite(descriptor, b"harm", 0),
            lambda: os.ftruncate(descriptor, 0),
        ):
            with pytest.raises(PermissionError):
                harm()
        os.close(descriptor)


def test_memory_that_there_is_not_is_an_error_of_ours() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(RingUnavailable, match="no shared memory of"):
            RingWriter(2, 1 << 16)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_who_sleeps_on_a_word_is_woken_without_waiting_for_the_time() -> None:
    word = np.zeros(1, dtype=np.uint32)
    futex = Futex(word.ctypes.data)
    sleeper = Thread(target=futex.wait, args=(0, 3000.0))
    sleeper.start()
    word[0] = 1
    while sleeper.is_alive():
        futex.wake()
    sleeper.join()


def test_who_comes_after_the_change_does_not_sleep() -> None:
    word = np.ones(1, dtype=np.uint32)
    Futex(word.ctypes.data).wait(0, 3000.0)


def test_an_address_travels_as_plain_values() -> None:
    with closing(RingWriter(1, 8)) as writer:
        pid, descriptor, name = json.loads(json.dumps(astuple(writer.address)))
        RingReader(MemoryAddress(pid, descriptor, name)).close()
