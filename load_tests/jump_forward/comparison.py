"""Runs the arms in turn, task by task and batch by batch, on engines of one model."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from transformers import AutoTokenizer

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.jump_forward.arms import Arm, MaskcastArm, StockArm, UnconstrainedArm, offer
from load_tests.jump_forward.engines import check_alike, maskcast_engine, stock_engine
from load_tests.jump_forward.figures import MASKCAST, OFF, STOCK, Cell
from load_tests.jump_forward.quiet import quiet
from load_tests.jump_forward.tasks import Ask, Task, make_task
from load_tests.jump_forward.waves import Answer, Wave, run_wave
from model_service.artifact_channel import ArtifactServer
from model_service.engine.environment import prepare_environment
from model_service.settings import EngineSettings

ALONE = 3
"""Requests, one after another, that make a run at batch 1."""

Heard = Callable[[Cell], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """`label` stands behind the names of the tasks; `with_off` adds Maskcast with its jumping switched off."""

    settings: EngineSettings
    tasks: Sequence[str]
    batches: Sequence[int]
    runs: int
    with_off: bool = False
    label: str = ""


async def compare(plan: Plan, heard: Heard) -> list[Cell]:
    """Every cell of the plan; the engines are gone when it returns."""
    tokenizer = AutoTokenizer.from_pretrained(plan.settings.model)
    tasks = [make_task(name, max(plan.batches), tokenizer) for name in plan.tasks]
    cells: list[Cell] = []
    async with _arms(plan, tasks) as arms:
        for task in tasks:
            lengths: dict[Ask, int] = {}
            await _warm_up(arms, task, lengths)
            for batch in (batch for batch in plan.batches if batch <= len(task.asks)):
                for run in range(plan.runs):
                    for cell in await _turn(arms, task, batch, run, lengths):
                        cells.append(replace(cell, task=cell.task + plan.label))
                        heard(cells[-1])
    return cells


@asynccontextmanager
async def _arms(plan: Plan, tasks: Sequence[Task]) -> AsyncIterator[list[Arm]]:
    """Engines start in an order that leaves stock vLLM the environment that it would have alone."""
    settings, off = plan.settings, replace(plan.settings, jump_forward=False)
    async with AsyncExitStack() as until:
        prepare_environment(off)
        server = ArtifactServer(f"maskcast-peers-{os.getpid()}")
        await server.start()
        until.push_async_callback(server.close)
        keys = offer((ask.spec for task in tasks for ask in task.asks), GrammarTokenizer.load(settings.model), server, until)
        stock = stock_engine(off)
        until.callback(stock.close)
        arms: list[Arm] = [StockArm(stock), UnconstrainedArm(stock)]
        if plan.with_off:
            arms.append(MaskcastArm(OFF, maskcast_engine(off, server.name), keys))
            until.callback(arms[-1].host.close)
            check_alike(arms[-1].host.engine.vllm_config, stock.engine.vllm_config)
        prepare_environment(settings)
        arms.append(MaskcastArm(MASKCAST, maskcast_engine(settings, server.name), keys))
        until.callback(arms[-1].host.close)
        check_alike(arms[-1].host.engine.vllm_config, stock.engine.vllm_config)
        yield arms


async def _warm_up(arms: Sequence[Arm], task: Task, lengths: dict[Ask, int]) -> None:
    """All asks at once, so that every grammar is compiled and every kernel has run; stock vLLM, the first, tells the lengths."""
    for arm in arms:
        wave = await run_wave(arm, task, range(len(task.asks)), lengths)
        if arm.name == STOCK:
            lengths.update(zip(task.asks, (answer.tokens for answer in wave.answers), strict=True))


async def _turn(arms: Sequence[Arm], task: Task, batch: int, run: int, lengths: dict[Ask, int]) -> list[Cell]:
    """Each arm once, with the machine to itself, another one first in every run; at batch 1 a few requests, one after another."""
    waves = [range(index, index + 1) for index in range(min(ALONE, len(task.asks)))] if batch == 1 else [range(batch)]
    done: dict[str, list[Wave]] = {arm.name: [] for arm in arms}
    first = run % len(arms)
    for arm in (*arms[first:], *arms[:first]):
        await arm.host.forget()
        await quiet()
        for asks in waves:
            done[arm.name].append(await run_wave(arm, task, asks, lengths))
    stock = _answers(done[STOCK])
    return [_cell(task.name, batch, run, name, waves_of, stock) for name, waves_of in done.items()]


def _answers(waves: Sequence[Wave]) -> list[Answer]:
    return [answer for wave in waves for answer in wave.answers]


def _cell(task: str, batch: int, run: int, arm: str, waves: Sequence[Wave], stock: Sequence[Answer]) -> Cell:
    answers = _answers(waves)
    return Cell(
        task=task,
        batch=batch,
        run=run,
        arm=arm,
        seconds=sum(wave.seconds for wave in waves),
        forwards=sum(wave.forwards.steps for wave in waves),
        seats=sum(wave.forwards.seats for wave in waves),
        tokens=[answer.tokens for answer in answers],
        first_s=[answer.first_s for answer in answers],
        whole_s=[answer.whole_s for answer in answers],
        same_text=sum(answer.text == other.text for answer, other in zip(answers, stock, strict=True)),
    )
