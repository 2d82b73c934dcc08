"""The schedulers that plug our backend into vLLM's engine core (vLLM 0.32: `v1/core/sched`).

The engine core builds one `StructuredOutputManager` and hands it to the scheduler; its `backend` is chosen on the first
request unless somebody has set it. Setting it here is the whole plug: vLLM's own grammar compilers never run.
"""

from __future__ import annotations

from typing import Any

from vllm.config import VllmConfig
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.structured_output import StructuredOutputManager

from model_service.engine.backend import ArtifactBackend
from model_service.engine.told_grammar import ToldBackend
from model_service.engine.watched import WatchedScheduler

CHANNEL = "maskcast_channel"
BROADCASTER = "maskcast_broadcaster"
"""Among the additional arguments, where masks come from a broadcaster: the name of its socket, and how long a frame is waited for."""


def plug_backend(manager: StructuredOutputManager, config: VllmConfig) -> None:
    """Make our backend the manager's; `config.additional_config` names the replica's artifact channel."""
    backend = ToldBackend if BROADCASTER in config.additional_config else ArtifactBackend
    manager.backend = backend(
        vllm_config=config,
        tokenizer=manager.tokenizer,
        vocab_size=config.model_config.get_vocab_size(),
        channel=config.additional_config[CHANNEL],
        max_rollback_tokens=config.num_speculative_tokens,
    )


class MaskcastScheduler(WatchedScheduler):
    """For synchronous scheduling: vLLM's CPU platform turns asynchronous scheduling off."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        plug_backend(self.structured_output_manager, self.vllm_config)


class MaskcastAsyncScheduler(WatchedScheduler, AsyncScheduler):
    """For asynchronous scheduling, which vLLM keeps only for subclasses of its `AsyncScheduler`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        plug_backend(self.structured_output_manager, self.vllm_config)
