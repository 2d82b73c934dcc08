"""What one model replica is told when it is built."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from grammar_service.vocabulary.source import TokenizerSource

PromptLookup = bool | Literal["auto"]
JumpForward = Literal["auto", "async", "sync", False]
"""Whether forced tokens are jumped over, and whether a step is scheduled before the one ahead of it is over: "auto" as the engine would
without jumps."""


def by_name(engine_args: Mapping[str, Any]) -> dict[str, Any]:
    """vLLM takes its arguments with underscores and with dashes."""
    return {name.replace("-", "_"): value for name, value in engine_args.items()}


def worker_count(tensor_parallel_size: int, engine_args: Mapping[str, Any]) -> int:
    """The workers of one engine."""
    given = by_name(engine_args)
    return int(given.get("tensor_parallel_size", tensor_parallel_size)) * int(given.get("pipeline_parallel_size", 1))


def adapter_names(engine_args: Mapping[str, Any]) -> tuple[str, ...]:
    """Of the LoRA adapters that an engine starts with, which requests name as models: `lora_modules`, each as vLLM takes it, an object or
    `name=path`.

    Raises:
        ValueError: one of them has no name.
    """
    given = by_name(engine_args).get("lora_modules") or ()
    return tuple(map(_adapter_name, [given] if isinstance(given, str | dict) else given))


def _adapter_name(module: Any) -> str:
    if isinstance(module, str):
        module = json.loads(module) if module.startswith("{") else {"name": module.partition("=")[0]}
    name = module.get("name") if isinstance(module, dict) else None
    if not isinstance(name, str) or not name:
        raise ValueError("each of engine_args.lora_modules needs a name and a path")
    return name


@dataclass(frozen=True)
class DraftSettings:
    """A model that drafts for another. `engine_args`: further vLLM arguments of its engine."""

    model: str
    engine_args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EngineSettings:
    """`max_model_len` None: as many tokens as the model can, cut to what the KV cache holds; `max_num_seqs` None: vLLM's default.
    `engine_args` are further vLLM arguments, by vLLM's names; they win over the named ones. `mask_socket`: the abstract name that the
    node's mask broadcaster listens at; None: masks are filled in the engine core. `mask_deadline_ms`: how long a step waits for them.
    `prompt_lookup`: whether what the prompt makes likely is drafted, "auto": on a CPU, where the engine can. `lookahead`: whether requests
    may look ahead, and `draft` with which model beside the engine's own; `reward_deadline_s`: how long the rewards of one step of theirs
    may take. `grammar_memory_mib`: of the grammars that the engine core keeps loaded.
    `restart_wait_s`: how long a call that an engine has failed waits for the next one; `hang_s`: how long an engine that has requests may
    do nothing before it is killed.
    `gpus_per_worker`: 0 on a CPU. `is_alone`: no other engine computes on this machine's CPUs. `otlp_endpoint`: where vLLM
    sends its spans of calls that are traced, by OTLP over HTTP; None: it makes none."""

    model: str
    served_name: str
    gpus_per_worker: float = 0
    tensor_parallel_size: int = 1
    executor: str = "mp"
    dtype: str = "auto"
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    cpu_kv_cache_gib: float = 0.5
    gpu_memory_utilization: float = 0.9
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    jump_forward: JumpForward = "auto"
    prompt_lookup: PromptLookup = False
    lookahead: bool = False
    draft: DraftSettings | None = None
    reward_deadline_s: float = 10.0
    grammar_memory_mib: int = 512
    count_mask_rows: bool = False
    mask_socket: str | None = None
    mask_deadline_ms: float = 20.0
    restart_wait_s: float = 30.0
    hang_s: float = 30.0
    is_alone: bool = True
    otlp_endpoint: str | None = None
    engine_args: dict[str, Any] = field(default_factory=dict)

    @property
    def tokenizer(self) -> TokenizerSource:
        return TokenizerSource.of(self.model, by_name(self.engine_args))

    @property
    def on_gpu(self) -> bool:
        return self.gpus_per_worker > 0

    def drafting(self, draft: DraftSettings) -> EngineSettings:
        """Of the engine that drafts for this one."""
        return replace(self, model=draft.model, engine_args=draft.engine_args, draft=None, prompt_lookup=False, count_mask_rows=False)

    @property
    def workers(self) -> int:
        """Of this engine."""
        return worker_count(self.tensor_parallel_size, self.engine_args)

    @property
    def eager(self) -> bool:
        """Whether the model runs without compilation; on a CPU that is our default, since compiling takes minutes there."""
        return bool(by_name(self.engine_args).get("enforce_eager", not self.on_gpu))
