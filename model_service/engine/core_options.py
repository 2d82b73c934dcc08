"""What the engine core and its workers are told beside vLLM's own arguments: it travels in vLLM's `additional_config` (vLLM 0.32)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from vllm.config import VllmConfig

from model_service.shared_memory import MemoryAddress

_KEY: Final = "maskcast"


class BroadcasterOptions(msgspec.Struct, frozen=True):
    """The name of the broadcaster's socket, and how long a frame is waited for."""

    socket: str
    deadline_s: float


class CoreOptions(msgspec.Struct, frozen=True):
    """`channel`: the replica's artifact channel. `figures`: the page that steps are counted on, None: nobody reads it.
    `count_mask_rows`: whether the different rows of each step are counted, which takes time. `broadcaster` None: masks are filled in the
    engine core."""

    channel: str = ""
    figures: MemoryAddress | None = None
    count_mask_rows: bool = False
    jump_forward: bool = False
    broadcaster: BroadcasterOptions | None = None

    def additional_config(self) -> dict[str, Any]:
        return {_KEY: msgspec.to_builtins(self)}


def core_options(config: VllmConfig) -> CoreOptions:
    """The options in a configuration; the defaults in one of an engine that is stock vLLM."""
    return msgspec.convert(config.additional_config.get(_KEY, {}), CoreOptions)
