"""A process that is confined goes on with what it has, and gets nothing more of the kernel."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

ATTEMPTS = {
    "a file": "open('/etc/passwd')",
    "the parent's environment": "open(f'/proc/{os.getppid()}/environ')",
    "the name of a file": "os.stat('/etc/passwd')",
    "a socket of the network": "socket.socket()",
    "a pair of sockets": "socket.socketpair()",
    "a pipe": "os.pipe()",
    "a second descriptor": "os.dup(1)",
    "a file in memory": "os.memfd_create('m')",
    "a descriptor by a socket": "socket.recv_fds(ours, 10, 1)",
    "a process": "os.fork()",
    "a program": "os.execv('/bin/true', ['true'])",
    "a thread": "_thread.start_new_thread(print, ())",
    "a signal to another process": "os.kill(os.getppid(), 0)",
    "more rights": "os.setuid(0)",
    "more descriptors": "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
}
PROGRAM = """
    import _thread, os, resource, socket, sys
    from grammar_service.sandbox.confinement import confine
    ours, theirs = socket.socketpair()
    theirs.sendall(b"more")
    confine()
    try:
        {attempt}
    except (PermissionError, RuntimeError, ValueError) as error:
        print(type(error).__name__)
"""


def ran(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nothing_more_is_to_be_had(attempt: str) -> None:
    done = ran(PROGRAM.format(attempt=ATTEMPTS[attempt]))
    assert done.stdout.strip() in ("PermissionError", "RuntimeError", "ValueError"), done.stderr
    assert done.returncode == 0


def test_what_it_has_goes_on_to_work() -> None:
    done = ran(
        """
        import socket, time
        from grammar_service.sandbox.confinement import confine
        ours, theirs = socket.socketpair()
        confine()
        theirs.sendall(bytes(100_000))
        received = sum(len(ours.recv(1 << 16)) for _ in range(2))
        memory = bytearray(1 << 26)
        time.sleep(0.001)
        print(received, len(memory), hash(str(time.time())) is not None)
        """
    )
    assert done.stdout.split() == ["100000", str(1 << 26), "True"], done.stderr
