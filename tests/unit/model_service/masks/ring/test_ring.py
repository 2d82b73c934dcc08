"""One process publishes mask frames, others read them, and none can harm another."""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_service.errors import FrameGone, FrameTooLarge, InvalidFrame, MemoryUnavailable
from model_service.masks.ring.layout import CHECKSUM, RingLayout, written_mark
from model_service.masks.ring.ring import PURPOSE, FrameRef, RingReader, RingWriter
from model_service.shared_memory import MemoryAddress, OwnMemory
from tests.ring_process import SLOT_BYTES, SLOTS, payload
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[5]


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


def read(reader: RingReader, sequence: int, size_bytes: int = SLOT_BYTES) -> bytes:
    return reader.read(FrameRef(reader.address, sequence, size_bytes))


def newest(reader: RingReader) -> int:
    """The last frame that the ring of another process has whole, by its marks; less than 0: there is none."""
    marks = [reader._words[reader._layout.mark_at(slot) // 8] for slot in range(SLOTS)]
    return max(mark // 2 - 1 for mark in marks)


def address_of(writer: Process) -> MemoryAddress:
    pid, descriptor, name = json.loads(writer.greeting)
    return MemoryAddress(pid, descriptor, name)


@pytest.mark.parametrize("checksums", [False, True])
def test_the_last_frames_are_there_and_no_others(checksums: bool) -> None:
    with ring(checksums=checksums) as (writer, reader):
        with pytest.raises(FrameGone):
            read(reader, 0, 0)
        for sequence in range(10):
            writer.publish(sequence, b"%d" % sequence * sequence)
        for sequence in (7, 8, 9):
            assert read(reader, sequence, sequence) == b"%d" % sequence * sequence
        for sequence in (0, 6, 10):
            with pytest.raises(FrameGone):
                read(reader, sequence, sequence)


def test_a_frame_of_another_ring_or_longer_than_a_slot_is_not_there() -> None:
    with ring() as (writer, reader), ring() as (other, _):
        writer.publish(0, b"frame")
        for elsewhere in (FrameRef(other.address, 0, 5), FrameRef(writer.address, 0, 65)):
            with pytest.raises(FrameGone):
                reader.read(elsewhere)


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
                assert read(reader, asked, len(held[asked % slots][1])) == held[asked % slots][1]
            else:
                with pytest.raises(FrameGone):
                    read(reader, asked, 0)


def test_a_frame_that_no_slot_holds_is_refused_and_its_number_stays_free() -> None:
    with ring(slot_bytes=100) as (writer, reader):
        writer.publish(3, bytes(100))
        with pytest.raises(FrameTooLarge, match="101 bytes"):
            writer.publish(4, bytes(101))
        assert read(reader, 3, 100) == bytes(100)
        writer.publish(4, b"shorter")
        assert read(reader, 4, 7) == b"shorter"


def test_numbers_ascend() -> None:
    with ring() as (writer, _):
        writer.publish(5, b"")
        for sequence in (5, 4):
            with pytest.raises(ValueError, match="after frame 5"):
                writer.publish(sequence, b"")


def test_a_closed_ring_keeps_its_frames_for_those_who_have_it() -> None:
    writer = RingWriter(2, 8)
    with closing(RingReader(writer.address)) as reader:
        writer.publish(0, b"last")
        writer.close()
        assert read(reader, 0, 4) == b"last"
        with pytest.raises(MemoryUnavailable):
            RingReader(writer.address)


def test_two_readers_both_get_a_frame(started: Callable[..., Process]) -> None:
    writer = started("writer")
    readers = [started("reader", writer.greeting) for _ in range(2)]
    for sequence in range(5):
        assert writer.asked(f"publish {sequence}") == "published"
        assert [reader.asked(f"read {sequence}") for reader in readers] == ["whole", "whole"]


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
        until(lambda: newest(reader) >= 10)
        writer.kill()
        last = newest(reader)
        assert read(reader, last) == payload(last)
        with pytest.raises(FrameGone):
            read(reader, last + 2)
        assert holders(address_of(writer).name) == [str(os.getpid())]
        with pytest.raises(MemoryUnavailable):
            RingReader(address_of(writer))
    assert holders(address_of(writer).name) == []


def test_a_writer_that_dies_while_it_writes_leaves_nothing_to_read(started: Callable[..., Process]) -> None:
    writer = started("writer")
    with closing(RingReader(address_of(writer))) as reader:
        for sequence in (0, 1):
            assert writer.asked(f"publish {sequence}") == "published"
        writer.tell("torn 2")
        assert writer.process.wait() == -signal.SIGBUS
        for sequence in (0, 2):
            with pytest.raises(FrameGone):
                read(reader, sequence)
        assert read(reader, 1) == payload(1)


def test_whatever_is_read_beside_a_busy_writer_is_whole(started: Callable[..., Process]) -> None:
    writer = started("writer")
    with closing(RingReader(address_of(writer))) as reader:
        assert writer.asked("endless") == "begun"
        until(lambda: newest(reader) >= 0)
        whole = 0
        for attempt in range(2000):
            # Every other time the one that is about to be overwritten, or is just then.
            asked = max(0, newest(reader) - attempt % 2)
            with suppress(FrameGone):
                assert read(reader, asked) == payload(asked)
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
        words[at], words[at + CHECKSUM] = written_mark(0), zlib.crc32(b"whole")
        with pytest.raises(InvalidFrame):
            read(reader, 0, 5)
        memory.map[layout.frame_at(0) : layout.frame_at(0) + 5] = b"whole"
        assert read(reader, 0, 5) == b"whole"
        words.release()


def test_what_is_no_ring_is_refused() -> None:
    with closing(RingWriter(1, 8)) as writer, pytest.raises(MemoryUnavailable, match="is not"):
        RingReader(replace(writer.address, name="maskcast-masks-of-another"))
    with closing(OwnMemory(PURPOSE, 50)) as short, pytest.raises(MemoryUnavailable, match="are no ring"):
        RingReader(short.address)
    with closing(OwnMemory(PURPOSE, 4096)) as empty, pytest.raises(MemoryUnavailable, match="version"):
        RingReader(empty.address)
    with closing(OwnMemory(PURPOSE, 4096)) as other:
        RingLayout(2, 512, checksums=False).write(other.map)
        with pytest.raises(MemoryUnavailable, match="a ring of"):
            RingReader(other.address)
    for slots, slot_bytes in ((0, 8), (2, 0), (2, 1 << 29), (1 << 60, 1 << 60)):
        with pytest.raises(MemoryUnavailable, match="no rings"):
            RingLayout(slots, slot_bytes, checksums=False)


def test_memory_that_could_shrink_under_a_reader_is_refused() -> None:
    descriptor = os.memfd_create("loose", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, 4096)
    with pytest.raises(MemoryUnavailable, match="may shrink"):
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
        with pytest.raises(MemoryUnavailable, match="no shared memory of"):
            RingWriter(2, 1 << 16)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_an_address_travels_as_plain_values() -> None:
    with closing(RingWriter(1, 8)) as writer:
        pid, descriptor, name = json.loads(json.dumps(astuple(writer.address)))
        RingReader(MemoryAddress(pid, descriptor, name)).close()
