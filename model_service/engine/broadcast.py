"""The schedulers whose masks come from the broadcaster (vLLM 0.32: `v1/core/sched`, and `EngineCore.step` in `v1/engine/core.py`)."""

from __future__ import annotations

import time
from typing import Any

from vllm.config import VllmConfig
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.request import Request

from grammar_service.tokenizer import GrammarTokenizer
from model_service.engine.jumping import JumpForwardScheduler
from model_service.engine.mask_asking import MaskAsking, Needed
from model_service.engine.mask_output import StepMasks
from model_service.engine.scheduler import BROADCASTER, CHANNEL, MaskcastAsyncScheduler, MaskcastScheduler
from model_service.engine.told_grammar import ToldBackend
from model_service.engine.watched import WatchedScheduler
from model_service.masks.client import MaskClient
from model_service.masks.messages import VERSION, Hello


class Broadcast(WatchedScheduler):
    """To be put before another scheduler. Asks as soon as a step is scheduled, so that its masks are filled beside the forward."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        backend = self.structured_output_manager.backend
        assert isinstance(backend, ToldBackend)
        self._client = _client(self.vllm_config, backend.vocabulary)
        self._asking = MaskAsking(self._client, self.structured_output_manager, self.requests, backend.vocabulary.vocab_size)
        self._needed: Needed | None = None

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        output: SchedulerOutput = super().schedule(throttle_prefills)
        began = time.perf_counter_ns()
        self._asking.begin(output)
        self._needed = self._asking.ask(output)
        self.count_masks(began, 0)
        return output

    def get_grammar_bitmask(self, scheduler_output: SchedulerOutput) -> StepMasks | None:
        began = time.perf_counter_ns()
        needed, self._needed = self._needed, None
        return self._counted(began, self._asking.masks(scheduler_output, needed) if needed else None)

    def _counted(self, began_ns: int, masks: StepMasks | None) -> StepMasks | None:
        self.count_masks(began_ns, 0 if masks is None else masks.rows)
        return masks

    def _free_request(self, request: Request, delay_free_blocks: bool = False) -> Any:
        self._asking.end(request.request_id)
        return super()._free_request(request, delay_free_blocks)

    def shutdown(self) -> None:
        self._client.close()
        super().shutdown()


class BroadcastScheduler(Broadcast, MaskcastScheduler):
    """Synchronous, a token at a time."""


class BroadcastJumpForwardScheduler(Broadcast, JumpForwardScheduler):
    """Synchronous, with forced segments."""


class BroadcastAsyncScheduler(Broadcast, MaskcastAsyncScheduler):
    """A step is scheduled before the tokens of the one before it are known, so that it is asked for later: when vLLM wants its masks. Its
    forward runs by then."""

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        output: SchedulerOutput = super(Broadcast, self).schedule(throttle_prefills)
        self._asking.begin(output)
        if not output.num_scheduled_tokens:
            # Nobody wants its masks, but some requests may have ended.
            self._asking.ask(output)
        return output

    def get_grammar_bitmask(self, scheduler_output: SchedulerOutput) -> StepMasks | None:
        began = time.perf_counter_ns()
        return self._counted(began, self._asking.masks(scheduler_output, self._asking.ask(scheduler_output)))


def _client(config: VllmConfig, vocabulary: GrammarTokenizer) -> MaskClient:
    channel, broadcaster = config.additional_config[CHANNEL], config.additional_config[BROADCASTER]
    most_rows = config.scheduler_config.max_num_seqs * (1 + config.num_speculative_tokens)
    engine = f"{channel}-{config.parallel_config.data_parallel_rank}"
    hello = Hello(VERSION, engine, vocabulary.vocab_size, vocabulary.fingerprint, channel, most_rows)
    return MaskClient(broadcaster["socket"], hello, vocabulary.portable(), deadline_s=broadcaster["deadline_s"])
