"""The child that measures: `python -m load_tests.grammar.child`, an assignment on its standard input, a line a step on its output.

A process of its own, since what it measures may take minutes, gigabytes, or the process with it.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.grammar import codec, pool, ready
from load_tests.grammar.messages import Assignment, Began, Line, Measured, Ready

Part = Callable[[Assignment, GrammarTokenizer], Iterator[Began | Measured]]
PARTS: dict[str, Part] = {"codec": codec.measure, "pool": pool.measure, "ready": ready.measure}


def main() -> None:
    assignment = msgspec.json.decode(sys.stdin.buffer.read(), type=Assignment)
    # Whatever native code prints goes to standard error instead.
    lines = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    tokenizer = GrammarTokenizer.load(assignment.tokenizer_path)
    _ = tokenizer.llguidance, tokenizer.spaces, tokenizer.names, tokenizer.fingerprint
    _limit_memory(assignment.memory_limit_bytes)
    _say(lines, Ready())
    for line in PARTS[assignment.part](assignment, tokenizer):
        _say(lines, line)


def _say(lines: BinaryIO, line: Line) -> None:
    lines.write(msgspec.json.encode(line) + b"\n")
    lines.flush()


def _limit_memory(beyond_now: int) -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + beyond_now
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main()
