"""The schedulers that plug Maskcast into vLLM's engine core (vLLM 0.32: `v1/core/sched`).

The engine core builds one `StructuredOutputManager` and hands it to the scheduler; its `backend` is chosen on the first
request unless somebody has set it. Setting it here is the whole plug: vLLM's own grammar compilers never run. Where masks come from, and
whether forced tokens are jumped over, are objects of their own, chosen by the options in the configuration.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from multiprocessing import parent_process
from threading import Thread
from typing import Any

from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.engine import EngineCoreOutputs
from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus

from model_service.core_figures import FiguresWriter, fingerprint_number
from model_service.engine.core.answer_closing import AnswerClosing
from model_service.engine.core.backend import ArtifactBackend
from model_service.engine.core.bounded_steps import BoundedSteps, can_bound
from model_service.engine.core.canonical_answers import CanonicalAnswers, can_redraw
from model_service.engine.core.deferred_grammar import DeferredBackend
from model_service.engine.core.jumping import Jumping
from model_service.engine.core.mask_source import mask_source
from model_service.engine.core.prompt_drafts import PromptDrafts
from model_service.engine.core.step_counter import StepCounter
from model_service.engine.core_options import CoreOptions, core_options
from model_service.engine.verification import MOST_DRAFTS
from model_service.engine.workers.mask_output import StepMasks
from model_service.tenants.step_cost import StepCost


class MaskcastScheduler(Scheduler):
    """For synchronous scheduling. `masks` is where masks come from; `jumping` None: all tokens are the model's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _end_with_parent()
        options, manager = core_options(self.vllm_config), self.structured_output_manager
        backend = self._plug_backend(options)
        self.masks = mask_source(self.vllm_config, manager, self.requests, backend.vocabulary, super().get_grammar_bitmask)
        self.jumping = self._jumping(backend) if options.jump_forward and not self.return_sampling_mask else None
        self._cost = StepCost(self.max_num_running_reqs, self.max_num_scheduled_tokens)
        self.prompt_drafts = self._prompt_drafts(backend) if options.prompt_lookup else None
        self._undrafted = set[str]()
        """Requests that want to know of certain tokens at each place, which vLLM does not tell in a step with drafts."""
        self._drafting_ns = 0
        """What finding the next step's drafts has taken, while all requests waited: it is a part of that step's cost."""
        self.closing = AnswerClosing(self, backend.vocabulary)
        self.canonical = CanonicalAnswers(manager, self.requests, backend.vocabulary, can_redraw(self.vllm_config))
        self._steps = BoundedSteps(self, self._cost) if can_bound(self.vllm_config) and not options.lookahead else None
        vocabulary, writer = fingerprint_number(backend.vocabulary.fingerprint), FiguresWriter(options.figures)
        drafts = self.prompt_drafts.counts if self.prompt_drafts is not None else {}
        self._counter = StepCounter(writer, backend.grammars, self.canonical, drafts, options.count_mask_rows, vocabulary)

    def _plug_backend(self, options: CoreOptions) -> ArtifactBackend:
        config, manager = self.vllm_config, self.structured_output_manager
        drafts = MOST_DRAFTS if options.lookahead else 0
        backend = (ArtifactBackend if options.broadcaster is None else DeferredBackend)(
            vllm_config=config,
            tokenizer=manager.tokenizer,
            vocab_size=config.model_config.get_vocab_size(),
            channel=options.channel,
            grammar_bytes=options.grammar_bytes,
            max_rollback_tokens=max(config.num_speculative_tokens, drafts),
            # Each is for a token that the step computes.
            verified_rows=min(self.max_num_running_reqs * (1 + drafts), self.max_num_scheduled_tokens) if drafts else 0,
        )
        manager.backend = backend
        backend.load_for(manager)
        return backend

    def _jumping(self, backend: ArtifactBackend) -> Jumping:
        admits = self.connector is None
        return Jumping(self.structured_output_manager, backend.segmenter(), self.requests, self.max_model_len, admits)

    def _prompt_drafts(self, backend: ArtifactBackend) -> PromptDrafts | None:
        if self.jumping is None:
            return None
        return PromptDrafts(backend.vocabulary, self.jumping.segmenter, self._cost, self.num_spec_tokens)

    def add_request(self, request: Request) -> None:
        if self._steps is not None:
            self._steps.added(request)
        if self.prompt_drafts is not None and request.sampling_params is not None and request.sampling_params.logprob_token_ids:
            self._undrafted.add(request.request_id)
            for running in self.running:
                running.spec_token_ids = []
        super().add_request(request)

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        began = time.perf_counter_ns()
        with self._steps.bounded() if self._steps is not None else nullcontext(), self._without_padding():
            output: SchedulerOutput = super().schedule(throttle_prefills)
        self._counter.begin_step(output, began)
        if self.jumping is not None:
            self.jumping.scheduled(output)
        self.canonical.scheduled(output, self._no_tokens())
        began = time.perf_counter_ns()
        self.masks.scheduled(output)
        self._counter.count_masks(began)
        return output

    @contextmanager
    def _without_padding(self) -> Iterator[None]:
        """vLLM gives requests whose prompts are cached as many drafts of nothing as there may be of others."""
        most: int = self.vllm_config.num_speculative_tokens
        self.num_spec_tokens = most if self.prompt_drafts is None else 0
        try:
            yield
        finally:
            self.num_spec_tokens = most

    def get_grammar_bitmask(self, scheduler_output: SchedulerOutput) -> GrammarOutput | StepMasks | None:
        began = time.perf_counter_ns()
        masks = self.masks.masks(scheduler_output)
        self._counter.count_masks(began, masks)
        return masks

    def update_from_output(self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput) -> dict[int, EngineCoreOutputs]:
        self.canonical.computed(scheduler_output, model_runner_output, self.jumping, self._no_tokens())
        self._judge_drafts(scheduler_output, model_runner_output)
        outputs: dict[int, EngineCoreOutputs] = super().update_from_output(scheduler_output, model_runner_output)
        self.canonical.taken()
        took_ns = self._counter.end_step(scheduler_output)
        if rows := len(scheduler_output.num_scheduled_tokens):
            drafts = sum(map(len, scheduler_output.scheduled_spec_decode_tokens.values()))
            self._cost.add(rows, scheduler_output.total_num_scheduled_tokens - rows, took_ns + self._drafting_ns, drafts)
            self._drafting_ns = 0
        if self.jumping is not None:
            self.jumping.split(outputs)
        _first_ones_first(outputs.values())
        self.canonical.tell(outputs)
        self.closing.mark(outputs)
        return outputs

    def _judge_drafts(self, output: SchedulerOutput, computed: ModelRunnerOutput) -> None:
        if self.prompt_drafts is None or not computed.sampled_token_ids:
            return
        for name, drafts in output.scheduled_spec_decode_tokens.items():
            sampled = len(computed.sampled_token_ids[computed.req_id_to_index[name]])
            if sampled:
                self.prompt_drafts.record(name, len(drafts), sampled - 1)

    def update_draft_token_ids(self, draft_token_ids: DraftTokenIds) -> None:
        names, drafts = draft_token_ids.req_ids, draft_token_ids.draft_token_ids
        began = time.perf_counter_ns()
        found = [self._drafts(*one) if not self._undrafted else [] for one in zip(names, drafts, strict=True)]
        self._drafting_ns = time.perf_counter_ns() - began
        super().update_draft_token_ids(DraftTokenIds(names, found))

    def _drafts(self, request_id: str, drafts: list[int]) -> list[int]:
        """In place of those that the workers know of, which have not heard what is forced behind the step's tokens."""
        request = self.requests.get(request_id)
        if self.jumping is None or request is None or request.is_finished() or request.is_prefill_chunk:
            return drafts
        if self.prompt_drafts is None:
            return [] if self.jumping.waits(request) else drafts
        return self.prompt_drafts.find(request, len(self.running)) if self.jumping.applies(request) else []

    def _is_answer(self, request: Request) -> bool:
        """Somebody's, and not a part of another one's."""
        return True

    def _no_tokens(self) -> Container[str]:
        """Requests whose samples are not to become tokens."""
        return ()

    def _handle_blocked_waiting_request(self, request: Request) -> bool:
        status = request.status
        ready: bool = super()._handle_blocked_waiting_request(request)
        return ready and self._unblocked(request, status)

    def _unblocked(self, request: Request, status: RequestStatus) -> bool:
        """The request had that status and may be scheduled now. False: it must not."""
        if self.jumping is not None:
            self.jumping.unblocked(request, status)
        return True

    def _update_request_with_output(self, request: Request, new_token_ids: list[int], is_stale: bool = False) -> tuple[list[int], bool]:
        if (closed := self.closing.close(request, new_token_ids)) is not None:
            return closed, True
        jumping = self.jumping if self.jumping is not None and self.jumping.applies(request) else None
        tokens, stopped = super()._update_request_with_output(request, new_token_ids, is_stale)
        if stopped or jumping is None or not self._may_append(request):
            return tokens, stopped
        start, forced = request.num_output_tokens, jumping.forced_behind(request, tokens)
        if not forced:
            return tokens, stopped
        forced, stopped = self._append(request, forced)
        jumping.appended(request, start, forced, stopped)
        return tokens + forced, stopped

    def _may_append(self, request: Request) -> bool:
        """Whether tokens that were not sampled may follow what the request has just got."""
        return True

    def _append(self, request: Request, tokens: list[int]) -> tuple[list[int], bool]:
        """Such tokens, as far as the request takes them, and whether it has stopped there."""
        appended: tuple[list[int], bool] = Scheduler._update_request_with_output(self, request, tokens)
        return appended

    def _free_request(self, request: Request, delay_free_blocks: bool = False) -> Any:
        self.masks.ended(request.request_id)
        if self._steps is not None:
            self._steps.ended(request)
        if self._is_answer(request):
            self.canonical.ended(request)
        self.closing.ended(request.request_id)
        if self.jumping is not None:
            self.jumping.ended(request)
        if self.prompt_drafts is not None:
            self.prompt_drafts.ended(request)
            self._undrafted.discard(request.request_id)
        return super()._free_request(request, delay_free_blocks)

    def shutdown(self) -> None:
        self.masks.close()
        super().shutdown()


def _first_ones_first(clients: Iterable[EngineCoreOutputs]) -> None:
    """Whoever waits for a first token has waited longest: it leaves before what others have of the step. vLLM's outputs come in the order
    in which requests began, a new one last, and the front end detokenizes and writes one after the other, in chunks
    (`v1/engine/async_llm.py`, `VLLM_V1_OUTPUT_PROC_CHUNK_SIZE`)."""
    for client in clients:
        new = {output.request_id for output in client.outputs if output.prefill_stats is not None}
        if new and len(new) < len(client.outputs):
            client.outputs.sort(key=lambda output: output.request_id not in new)


def _end_with_parent() -> None:
    """An engine core whose replica is killed waits for requests for ever, and keeps its GPU. Ray ends it, unless Ray was killed as well."""
    if (parent := parent_process()) is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    Thread(target=wait, name="end with parent", daemon=True).start()
