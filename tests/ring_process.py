"""The other end of a ring of mask frames, in a process of its own: `python -m tests.ring_process writer | reader ADDRESS`.

It does what the lines on its standard input say, and answers each with a line.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import sys
import tempfile
from dataclasses import astuple
from itertools import count

from model_service.errors import MaskError
from model_service.masks.ring.ring import FrameRef, RingReader, RingWriter
from model_service.shared_memory import MemoryAddress

SLOTS = 2
SLOT_BYTES = 1 << 18


def payload(sequence: int, size_bytes: int = SLOT_BYTES) -> bytes:
    """Of which every part tells the sequence number."""
    return (sequence.to_bytes(8, "little") * (size_bytes // 8 + 1))[:size_bytes]


def main() -> None:
    role, *arguments = sys.argv[1:]
    if role == "writer":
        _write(RingWriter(slots=SLOTS, slot_bytes=SLOT_BYTES, checksums=False))
    else:
        pid, descriptor, name = json.loads(arguments[0])
        _read(RingReader(MemoryAddress(pid, descriptor, name)))


def _write(writer: RingWriter) -> None:
    """`publish S`, `endless`, `torn S`: which dies in the middle of writing."""
    _say(json.dumps(astuple(writer.address)))
    for line in sys.stdin:
        command, *number = line.split()
        if command == "endless":
            _say("begun")
            for sequence in count():
                writer.publish(sequence, payload(sequence))
        data = _half_there() if command == "torn" else payload(int(number[0]))
        writer.publish(int(number[0]), data)
        _say("published")
    writer.close()


def _half_there() -> memoryview:
    """Bytes of which the second half cannot be read: their file has been cut, and whoever tries is killed by SIGBUS."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryFile() as file:
        file.write(b"torn" * (SLOT_BYTES // 4))
        file.flush()
        view = memoryview(mmap.mmap(file.fileno(), SLOT_BYTES))
        os.ftruncate(file.fileno(), SLOT_BYTES // 2)
        return view


def _read(reader: RingReader) -> None:
    """`read S` answers with the sequence number that the frame is full of, or the name of the error."""
    _say("attached")
    for line in sys.stdin:
        sequence = int(line.split()[1])
        try:
            frame = reader.read(FrameRef(reader.address, sequence, SLOT_BYTES))
            _say("whole" if frame == payload(sequence) else "TORN")
        except MaskError as error:
            _say(type(error).__name__)
    reader.close()


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
