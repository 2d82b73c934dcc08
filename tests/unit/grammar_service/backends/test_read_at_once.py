"""Payloads are read by several threads, also the first ones of a process.

msgspec resolves a type when it is first asked for, and another thread that asks meanwhile reads with what is there by then, which ends the
process (msgspec 0.22); types have to be resolved where modules are imported.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
READERS = """
import os, sys, threading
import msgspec
import {module} as module

sys.setswitchinterval(1e-6)

def read(start):
    start.wait()
    try:
        {call}
    except Exception:
        pass

def first():
    start = threading.Barrier(4)
    threads = [threading.Thread(target=read, args=(start,)) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

for _ in range(200):
    child = os.fork()  # which has imported all, and read nothing
    if not child:
        first()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"ended with status {{status}}"
"""
ANYTHING = r'msgspec.msgpack.encode(["", "", "", b"", None, 0, 0, True, [1, 2, 3, 4]])'
THREADS = {
    "xgrammar": ("grammar_service.backends.xgrammar.payload", f"module.read_payload({ANYTHING}, '')"),
    "a library's source": ("grammar_service.backends.llguidance.source", "module.read_source('[1, [2, 3]]')"),
}


@pytest.mark.parametrize(("module", "call"), THREADS.values(), ids=THREADS.keys())
def test_several_threads_read_the_first_ones(module: str, call: str) -> None:
    script = READERS.format(module=module, call=call)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_types_are_resolved_where_modules_are_imported() -> None:
    """In all rooms but those in whose processes one thread reads."""
    one_thread = ("grammar_service/sandbox", "grammar_service/conformance", "deployments/commands", "load_tests")
    late = re.compile(r"msgspec\.(msgpack|json)\.decode\([^\n]*type=")
    files = [file for room in ("grammar_service", "model_service", "router", "deployments") for file in (ROOT / room).rglob("*.py")]
    paths = [file.relative_to(ROOT).as_posix() for file in files if late.search(file.read_text())]
    assert [path for path in sorted(paths) if not path.startswith(one_thread)] == []
