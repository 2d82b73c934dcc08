"""Where the masks of an engine's steps come from (vLLM 0.32: `v1/core/sched`, and `EngineCore.step` in `v1/engine/core.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from vllm.config import VllmConfig
from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.core.mask_asking import MaskAsking, Needed
from model_service.engine.core_options import BroadcasterOptions, CoreOptions, core_options
from model_service.engine.workers.mask_output import StepMasks
from model_service.masks.client import MaskClient
from model_service.masks.messages import VERSION, Hello


class MaskSource(Protocol):
    """For the scheduler's thread."""

    def scheduled(self, output: SchedulerOutput) -> None:
        """A step has been scheduled; its forward starts now."""

    def masks(self, output: SchedulerOutput) -> GrammarOutput | StepMasks | None:
        """What the executor is to be given for a scheduled step; None where nothing is masked."""

    def ended(self, request_id: str) -> None:
        """Whatever became of the request."""

    def close(self) -> None:
        """No step comes any more."""


class InProcessMasks:
    """vLLM's own: `fill` is its scheduler's `get_grammar_bitmask`."""

    def __init__(self, fill: Callable[[SchedulerOutput], GrammarOutput | None]) -> None:
        self._fill = fill

    def scheduled(self, output: SchedulerOutput) -> None:
        """Nothing can be filled ahead."""

    def masks(self, output: SchedulerOutput) -> GrammarOutput | None:
        return self._fill(output)

    def ended(self, request_id: str) -> None:
        """Nothing is held of it."""

    def close(self) -> None:
        """Nothing is held at all."""


class BroadcastMasks:
    """The broadcaster's. It is asked as soon as a step is scheduled, so that masks are filled beside the forward; where a step is scheduled
    before the tokens of the one before it are known, it is asked when vLLM wants the masks: the forward runs by then."""

    def __init__(self, client: MaskClient, asking: MaskAsking) -> None:
        self._client = client
        self._asking = asking
        self._needed: Needed | None = None

    def scheduled(self, output: SchedulerOutput) -> None:
        self._asking.begin(output)
        self._needed = None if output.pending_structured_output_tokens else self._asking.ask(output)

    def masks(self, output: SchedulerOutput) -> StepMasks | None:
        needed, self._needed = self._needed, None
        return self._asking.masks(output, self._asking.ask(output) if needed is None else needed)

    def ended(self, request_id: str) -> None:
        self._asking.end(request_id)

    def close(self) -> None:
        self._client.close()


def mask_source(
    config: VllmConfig,
    manager: StructuredOutputManager,
    requests: Mapping[str, Request],
    vocabulary: GrammarTokenizer,
    fill: Callable[[SchedulerOutput], GrammarOutput | None],
) -> MaskSource:
    """That of a scheduler, by its options; `fill` is its own `get_grammar_bitmask`, as vLLM wrote it."""
    options = core_options(config)
    if options.broadcaster is None:
        return InProcessMasks(fill)
    client = _client(config, options, options.broadcaster, vocabulary)
    return BroadcastMasks(client, MaskAsking(client, manager, requests, vocabulary.vocab_size))


def _client(config: VllmConfig, options: CoreOptions, broadcaster: BroadcasterOptions, vocabulary: GrammarTokenizer) -> MaskClient:
    most_rows = config.scheduler_config.max_num_seqs * (1 + config.num_speculative_tokens)
    engine = f"{options.channel}-{config.parallel_config.data_parallel_rank}"
    hello = Hello(VERSION, engine, vocabulary.vocab_size, vocabulary.fingerprint, options.channel, most_rows)
    return MaskClient(broadcaster.socket, hello, vocabulary.portable(), deadline_s=broadcaster.deadline_s)
