"""What the engine core and its workers are told beside vLLM's own arguments: it travels with vLLM's `additional_config` (vLLM 0.32)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from vllm.config import VllmConfig

from model_service.shared_memory import MemoryAddress


class BroadcasterOptions(msgspec.Struct, frozen=True):
    """The name of the broadcaster's socket, and how long a frame is waited for."""

    socket: str
    deadline_s: float


class CoreOptions(msgspec.Struct, frozen=True):
    """`channel`: the replica's artifact channel. `figures`: the page that steps are counted on, None: nobody reads it.
    `count_mask_rows`: whether the different rows of each step are counted, which takes time. `prompt_lookup`: whether drafts come with the
    step. `lookahead`: whether requests may verify drafts. `broadcaster` None: masks are filled in the engine core. `grammar_bytes`: of the
    grammars that stay loaded there."""

    channel: str = ""
    figures: MemoryAddress | None = None
    count_mask_rows: bool = False
    jump_forward: bool = False
    prompt_lookup: bool = False
    lookahead: bool = False
    broadcaster: BroadcasterOptions | None = None
    grammar_bytes: int = 512 << 20


class _Carrier(dict[str, Any]):
    """What the operator has put into `additional_config`, with our options beside it. They are no entries, because vLLM names its cache of
    compiled models by a digest of these (`VllmConfig.compute_hash`): ours differ with every start, and each would compile anew."""

    options = CoreOptions()


def carry(config: VllmConfig, options: CoreOptions) -> None:
    """Have the configuration hold the options, wherever it is sent."""
    given: Mapping[str, Any] = config.additional_config
    config.additional_config = _Carrier(given)
    config.additional_config.options = options


def core_options(config: VllmConfig) -> CoreOptions:
    """The options in a configuration; the defaults in one of an engine that is stock vLLM."""
    carried = config.additional_config
    return carried.options if isinstance(carried, _Carrier) else CoreOptions()
