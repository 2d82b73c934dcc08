"""Two of Maskcast's engines in turn: one fills its masks, the other has a broadcaster (vLLM 0.32)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from uuid import uuid4

from transformers import AutoTokenizer

from deployments.reporting.report import Row
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.jump_forward.arms import MaskcastArm, offer
from load_tests.jump_forward.engines import maskcast_engine
from load_tests.jump_forward.quiet import quiet
from load_tests.jump_forward.tasks import Ask, Task, make_task
from load_tests.jump_forward.waves import run_wave
from load_tests.masks.course import Process
from load_tests.masks.engines import BROADCASTER, IN_PROCESS
from load_tests.masks.processes import run_broadcaster
from model_service.artifact_channel import ArtifactServer
from model_service.settings import EngineSettings


async def turns(settings: EngineSettings, names: Sequence[str], batch: int, runs: int) -> list[Row]:
    """A row for each task, run and arm; the engines are gone when it returns."""
    tokenizer = AutoTokenizer.from_pretrained(settings.model)
    tasks = [make_task(name, batch, tokenizer) for name in names]
    rows: list[Row] = []
    lengths: dict[Ask, int] = {}
    async with _arms(settings, tasks) as arms:
        for task in tasks:
            for arm in arms:
                await run_wave(arm, task, range(len(task.asks)), lengths)
            for run in range(runs):
                for arm in arms if run % 2 else arms[::-1]:
                    await arm.host.forget()
                    await quiet()
                    wave = await run_wave(arm, task, range(len(task.asks)), lengths)
                    tokens = sum(answer.tokens for answer in wave.answers)
                    spent = {"seconds": round(wave.seconds, 4), "tokens": tokens, "seconds_per_1000_tokens": 1000 * wave.seconds / tokens}
                    rows.append({"task": task.name, "run": run, "arm": arm.name, "requests": len(task.asks), **spent})
    return rows


@asynccontextmanager
async def _arms(settings: EngineSettings, tasks: Sequence[Task]) -> AsyncIterator[list[MaskcastArm]]:
    async with AsyncExitStack() as until:
        server = ArtifactServer(f"maskcast-peers-{os.getpid()}")
        await server.start()
        until.push_async_callback(server.close)
        keys = offer((ask.spec for task in tasks for ask in task.asks), GrammarTokenizer.load(settings.model), server, until)
        name = f"maskcast-bench-{uuid4().hex}"
        broadcaster = until.enter_context(closing(Process(run_broadcaster, name)))
        broadcaster.answer()
        arms = []
        for label, of_arm in ((IN_PROCESS, settings), (BROADCASTER, replace(settings, mask_socket=name))):
            arms.append(MaskcastArm(label, maskcast_engine(of_arm, server.name), keys))
            until.callback(arms[-1].host.close)
        yield arms
