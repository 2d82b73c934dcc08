"""The parent's end of one compile child process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from grammar_service.errors import ArtifactError
from grammar_service.sandbox_wire import LENGTH_BYTES, Job, Ready, Result, Setup, body_length, frame

_PACKAGE_ROOT = str(Path(__file__).resolve().parent.parent)
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN")
_TAIL_LINES = 40

M = TypeVar("M", bound=msgspec.Struct)


class ChildDied(Exception):
    """The child ended, or sent something else than a message, before it had answered."""


class CompileChild:
    """A running child. Make one with `spawn`; end it with `kill`, which leaves no zombie."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self._listener = asyncio.create_task(self._listen())
        self.fingerprint = ""

    @classmethod
    async def spawn(cls, setup: Setup, start_timeout_s: float) -> CompileChild:
        """A warm child. Raises ChildDied or TimeoutError (no process is left), OSError."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "grammar_service.sandbox_child"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_environment(os.environ),
            start_new_session=True,  # a Ctrl-C at the terminal is the parent's to handle
        )
        child = cls(process)
        try:
            async with asyncio.timeout(start_timeout_s):
                child.fingerprint = (await child._ask(setup, Ready)).fingerprint
        except BaseException:
            await child.kill()
            raise
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def compile(self, job: Job) -> Result:
        """The child's answer. Raises ChildDied. Once this is cancelled the child must be killed: its answer is still to come."""
        return await self._ask(job, Result)

    async def kill(self) -> None:
        """End the process and reap it."""
        if self._process.stdin:
            self._process.stdin.close()
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._listener

    def last_words(self) -> str:
        """The end of the child's standard error."""
        return b"".join(self._tail).decode("utf-8", "replace")

    async def _ask(self, message: msgspec.Struct, kind: type[M]) -> M:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise ChildDied
        try:
            stdin.write(frame(message))
            await stdin.drain()
            body = await stdout.readexactly(body_length(await stdout.readexactly(LENGTH_BYTES)))
            return msgspec.msgpack.decode(body, type=kind)
        except (OSError, EOFError, ValueError, ArtifactError) as error:
            raise ChildDied(str(error)) from None

    async def _listen(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (chunk := await stderr.read(4096)):
            self._tail.append(chunk)


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Only what the child needs: it handles strangers' text, so it gets none of the service's secrets."""
    kept = {name: inherited[name] for name in _PASSED_ON if name in inherited}
    paths = [_PACKAGE_ROOT, *filter(None, [inherited.get("PYTHONPATH")])]
    quiet = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": "", "PYTHONUNBUFFERED": "1"}
    return {**kept, **quiet, "PYTHONPATH": os.pathsep.join(paths)}
