"""What one model replica is told when it is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class EngineSettings:
    """`engine_args` are further vLLM arguments, by vLLM's names; they win over the named ones. `mask_socket`: the abstract name that the
    node's mask broadcaster listens at; None: masks are filled in the engine core. `mask_deadline_ms`: how long a step waits for them.
    `restart_wait_s`: how long a call that an engine has failed waits for the next one.
    `is_alone`: no other engine computes on this machine's CPUs."""

    model: str
    served_name: str
    on_gpu: bool = False
    tensor_parallel_size: int = 1
    executor: str = "mp"
    dtype: str = "auto"
    max_model_len: int = 2048
    max_num_seqs: int = 64
    cpu_kv_cache_gib: float = 0.5
    gpu_memory_utilization: float = 0.9
    tool_call_parser: str = "hermes"
    jump_forward: bool = True
    count_mask_rows: bool = False
    mask_socket: str | None = None
    mask_deadline_ms: float = 20.0
    restart_wait_s: float = 30.0
    is_alone: bool = True
    engine_args: dict[str, Any] = field(default_factory=dict)

    @property
    def eager(self) -> bool:
        """Whether the model runs without compilation; on a CPU that is our default, since compiling takes minutes there."""
        return bool(self.engine_args.get("enforce_eager", not self.on_gpu))

    @property
    def jumps(self) -> bool:
        """Whether forced tokens are jumped over. Not with drafts, which would be proposed for the places of forced tokens, and not in a
        pipeline, whose stages hear of sampled tokens in another way."""
        arguments = {name.replace("-", "_"): value for name, value in self.engine_args.items()}
        return self.jump_forward and not arguments.get("speculative_config") and arguments.get("pipeline_parallel_size", 1) == 1
