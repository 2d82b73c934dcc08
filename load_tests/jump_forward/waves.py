"""A wave: requests that are sent together and awaited together, and what was measured of them."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from uuid import uuid4

from vllm import TokensPrompt

from load_tests.jump_forward.arms import Arm
from load_tests.jump_forward.engines import Forwards
from load_tests.jump_forward.tasks import Ask, Task


@dataclass(frozen=True, slots=True)
class Answer:
    """Seconds are counted from the sending."""

    tokens: int
    text: str
    first_s: float
    whole_s: float


@dataclass(frozen=True, slots=True)
class Wave:
    seconds: float
    forwards: Forwards
    answers: tuple[Answer, ...]


async def run_wave(arm: Arm, task: Task, asks: range, lengths: dict[Ask, int]) -> Wave:
    """Send the asks of that range at once; `lengths` are those of stock vLLM's answers."""
    before, started = arm.host.counter.total, time.perf_counter()
    answers = await asyncio.gather(*(_answer(arm, task, task.asks[index], lengths) for index in asks))
    seconds = time.perf_counter() - started
    return Wave(seconds, arm.host.counter.total.since(before), tuple(answers))


async def _answer(arm: Arm, task: Task, ask: Ask, lengths: dict[Ask, int]) -> Answer:
    params = arm.params(ask, task.max_tokens, lengths.get(ask))
    started, first_s, tokens, text = time.perf_counter(), 0.0, 0, ""
    async for output in arm.host.engine.generate(TokensPrompt(prompt_token_ids=list(ask.prompt)), params, str(uuid4())):
        piece = output.outputs[0]
        if not tokens and piece.token_ids:
            first_s = time.perf_counter() - started
        tokens += len(piece.token_ids)
        text += piece.text
    return Answer(tokens, text, first_s, time.perf_counter() - started)
