"""What one model replica is told when it is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class EngineSettings:
    """`engine_args` are further vLLM arguments, by vLLM's names; they win over the named ones."""

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
    engine_args: dict[str, Any] = field(default_factory=dict)

    @property
    def eager(self) -> bool:
        """Whether the model runs without compilation; on a CPU that is our default, since compiling takes minutes there."""
        return bool(self.engine_args.get("enforce_eager", not self.on_gpu))
