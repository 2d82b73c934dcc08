from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import psutil
import pytest

from grammar_service.limits import Limits
from grammar_service.sandbox import nursery
from grammar_service.sandbox.child import ChildDied, CompileChild
from grammar_service.sandbox.nursery import Zygote
from grammar_service.sandbox.wire import Job, Setup
from grammar_service.spec import GrammarKind, GrammarSpec

MANY = 1 << 30


async def test_a_zygote_that_answered_too_late_is_asked_no_more(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zygote = await Zygote.spawn(Setup(str(model_folder), None, Limits(), MANY, MANY, 1, os.getpid()), 120)
    try:
        child = await zygote.fork(False, MANY)
        process = psutil.Process(child.pid).parent()
        assert process is not None
        process.suspend()
        monkeypatch.setattr(nursery, "_ORDER_TIMEOUT_S", 0.05)
        await child.kill()
        process.resume()
        monkeypatch.undo()
        # It would take the answer about the dead child for that about its own.
        with pytest.raises((ChildDied, OSError)):
            await zygote.fork(False, MANY)
    finally:
        await zygote.kill()


class Nowhere:
    async def reap(self, pid: int) -> None:
        assert pid

    def last_words(self) -> str:
        return ""


async def test_a_child_whose_connection_was_reset_is_not_alive() -> None:
    ours, theirs = socket.socketpair()
    child = CompileChild(1, *await asyncio.open_unix_connection(sock=ours), Nowhere(), MANY)
    running = asyncio.create_task(child.run(Job(GrammarSpec(GrammarKind.REGEX, "a"), "xgrammar")))
    await asyncio.to_thread(theirs.recv, 1, socket.MSG_PEEK)
    theirs.close()  # with the job unread, as a child that is killed before it reads it
    with pytest.raises(ChildDied):
        await running
    assert not child.is_alive
    await child.kill()
