"""The engines of the experiment, and how one of them is asked for a task's answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from load_tests.lookahead.arms import LookaheadArm, Task
from load_tests.lookahead.models import CONTEXT, DRAFT, TARGET
from model_service.lookahead.instructions import Tokens
from model_service.lookahead.request import Lookahead
from model_service.lookahead.rewards.specs import ConceptsSpec
from model_service.messages import Call, Endpoint
from model_service.settings import DraftSettings, EngineSettings

if TYPE_CHECKING:
    from model_service.engine.engine import Engine

PLAIN, UNCACHED, FEW_BLOCKS = "as it is by default", "without prefix cache", "chunks of 64 tokens, 9 blocks"
SETTINGS: dict[str, dict[str, Any]] = {
    PLAIN: {},
    UNCACHED: {"engine_args": {"enable_prefix_caching": False}},
    FEW_BLOCKS: {"engine_args": {"max_num_batched_tokens": 64, "num_gpu_blocks_override": 10}, "max_num_seqs": 48},
    "two tensor parallel workers": {"tensor_parallel_size": 2, "is_alone": False},
}
"""What engines have beside the models; those that draft have it too. vLLM keeps one of the blocks for itself. The 9 others hold the longest
text of the context, which takes 8, and two or three with examples before them: some are preempted."""


@dataclass(frozen=True, slots=True)
class Said:
    """`cached`: tokens of the prompt that the prefix cache had. `details`: what the usage says of the look-ahead; nothing where there was
    none."""

    tokens: Tokens
    cached: int
    details: dict[str, Any]


@asynccontextmanager
async def running(folder: Path, changes: dict[str, Any]) -> AsyncIterator[Engine]:
    """The engine of a replica with the experiment's models, and the one that drafts. The environment is that of `settings_of(folder)`."""
    from model_service.engine.engine import Engine

    draft = DraftSettings(str(folder / DRAFT.name), changes.get("engine_args", {}))
    engine = Engine(replace(settings_of(folder), draft=draft, **changes), "maskcast-experiment")
    try:
        await engine.start()
        yield engine
    finally:
        engine.close()


def settings_of(folder: Path) -> EngineSettings:
    """In full precision, as the plain loops compute."""
    return EngineSettings(
        str(folder / TARGET.name),
        TARGET.name,
        dtype="float32",
        max_model_len=CONTEXT,
        max_num_seqs=128,
        cpu_kv_cache_gib=0.25,
        lookahead=True,
        reward_deadline_s=600,  # of a machine that is held up, what was not yet found is not lost
    )


async def ask(engine: Engine, task: Task, arm: LookaheadArm | None, seed: int, salt: str, most: int) -> Said:
    """`arm` None: greedily. `salt`: only those that have the same find what the others have computed. `most`: tokens."""
    body = {
        "prompt": list(task.prompt),
        "max_tokens": most,
        "temperature": 0,
        "return_token_ids": True,
        "cache_salt": salt,
    }
    lookahead = None if arm is None else Lookahead(arm.method, arm.parameters, ConceptsSpec(task.words), seed)
    _, pieces = await engine.respond(Call(Endpoint.COMPLETION, uuid4().hex, body, None, lookahead=lookahead))
    answer = json.loads("".join([piece async for piece in pieces]))
    if "choices" not in answer:
        raise RuntimeError(answer)
    usage = answer["usage"]
    details = (usage.get("completion_tokens_details") or {}).get("lookahead") or {}
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Said(tuple(answer["choices"][0]["token_ids"]), cached, details)
