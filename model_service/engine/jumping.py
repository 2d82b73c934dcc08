"""The scheduler that jumps over what the grammar has decided (vLLM 0.32: `v1/core/sched/scheduler.py`).

vLLM's scheduler knows no decoding phase: in every step each request computes what it has and has not computed yet. So a forced
segment is appended to the output when the token before it is known, and the next step computes all of it in one forward, as it
would a chunk of a prompt: no draft, no mask, no logits for any of its tokens. Preemption, prefix caching, chunking and the token
budget are vLLM's own. Only the workers have to be told which tokens they did not sample (`engine/worker.py`).
"""

from __future__ import annotations

from typing import Any

from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs
from vllm.v1.metrics.stats import PrefillStats
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus

from model_service.engine.backend import ArtifactBackend, KeyedGrammar
from model_service.engine.scheduler import MaskcastScheduler
from model_service.jump_forward.forced import FORCED, NO_LOGITS, Unsent, fitting


class JumpForwardScheduler(MaskcastScheduler):
    """Synchronous: with asynchronous scheduling the next forward would start before the segment is known."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unsent = Unsent()
        self._prefilled: dict[str, list[int]] = {}
        self._jumped: dict[str, int] = {}
        self._admits = self.connector is None
        assert isinstance(self.structured_output_manager.backend, ArtifactBackend)
        self._segmenter = self.structured_output_manager.backend.segmenter()

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        output: SchedulerOutput = super().schedule(throttle_prefills)
        for new in output.scheduled_new_reqs:
            if new.req_id in self._prefilled:
                self._count_prefill(self.requests[new.req_id], new.num_computed_tokens)
        setattr(output, FORCED, self._unsent.take(output.num_scheduled_tokens))
        return output

    def update_from_output(self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput) -> dict[int, EngineCoreOutputs]:
        outputs: dict[int, EngineCoreOutputs] = super().update_from_output(scheduler_output, model_runner_output)
        for client in outputs.values() if self._jumped or self._prefilled else ():
            client.outputs = [piece for output in client.outputs for piece in self._by_origin(output)]
        return outputs

    def _handle_blocked_waiting_request(self, request: Request) -> bool:
        compiling = request.status == RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR
        ready: bool = super()._handle_blocked_waiting_request(request)
        if ready and compiling and self._admits and self._jumps(request) and not request.sampling_params.min_tokens:
            self._admit(request)
        return ready

    def _admit(self, request: Request) -> None:
        """Let the tokens before the first free choice be computed with the prompt. At least one token is left to sample."""
        grammar = _grammar(request)
        params = request.sampling_params
        room = min(request.max_tokens, self.max_model_len - request.num_tokens) - 1
        tokens = fitting(self._segmenter.find(grammar.matcher, ()).tokens, room, params.all_stop_token_ids)
        if tokens and grammar.advance(tokens):
            self._unsent.add(request.request_id, 0, tokens)
            self._prefilled[request.request_id] = tokens
            request.append_output_token_ids(tokens)
            # vLLM asserts that no more is cached than the prompt is long.
            request.prefill_stats = None

    def _count_prefill(self, request: Request, cached: int) -> None:
        """What vLLM would have counted, for the prompt alone."""
        stats = PrefillStats()
        stats.set(request.num_prompt_tokens, min(cached, request.num_prompt_tokens), 0)
        request.prefill_stats = stats

    def _update_request_with_output(self, request: Request, new_token_ids: list[int], is_stale: bool = False) -> tuple[list[int], bool]:
        jumps = self._jumps(request)
        tokens, stopped = super()._update_request_with_output(request, new_token_ids, is_stale)
        if stopped or not jumps or not _grammar(request).advance_ahead(tokens):
            return tokens, stopped
        start, forced = request.num_output_tokens, self._forced(request)
        if not forced:
            return tokens, stopped
        forced, stopped = super()._update_request_with_output(request, forced, is_stale)
        _grammar(request).advance_ahead(forced)
        self._jumped[request.request_id] = len(forced)
        if not stopped:
            self._unsent.add(request.request_id, start, forced)
        return tokens + forced, stopped

    def _forced(self, request: Request) -> list[int]:
        """The segment after the last token, and the end-of-sequence token where nothing else can follow."""
        segment = self._segmenter.find(_grammar(request).matcher, request.output_token_ids)
        end = request.sampling_params.eos_token_id
        tokens = list(segment.tokens)
        if segment.ends and end is not None and request.num_output_tokens + len(tokens) >= request.sampling_params.min_tokens:
            tokens.append(end)
        return tokens

    def _jumps(self, request: Request) -> bool:
        """Whether the grammar holds for the request's next token, and nobody wants to know what the model makes of a forced one."""
        structured = request.structured_output_request
        if structured is None or request.resumable or self.return_sampling_mask:
            return False
        params = request.sampling_params
        if params.num_logprobs is not None or params.prompt_logprobs is not None or params.prompt_logprob_token_ids is not None:
            return False
        return isinstance(structured.grammar, KeyedGrammar) and self._constrained(request)

    def _constrained(self, request: Request) -> bool:
        """Not while the request reasons ahead of its constrained answer."""
        manager = self.structured_output_manager
        return manager.reasoner_cls is None or bool(manager._get_constraint_bounds(request, ()).constraint_start == 0)

    def _by_origin(self, output: EngineCoreOutput) -> list[EngineCoreOutput]:
        """What was prefilled, what was sampled, and what was forced behind it, as outputs of their own: they leave together."""
        forced = self._jumped.pop(output.request_id, 0)
        prefilled = self._prefilled.pop(output.request_id, []) if output.new_token_ids else []
        if not forced and not prefilled:
            return [output]
        cut = len(output.new_token_ids) - forced
        runs = [(prefilled, True), (output.new_token_ids[:cut], False), (output.new_token_ids[cut:], True)]
        parts = [_part(output, tokens, forced) for tokens, forced in runs if tokens]
        first, last = parts[0], parts[-1]
        first.events, first.prefill_stats = output.events, output.prefill_stats
        last.finish_reason, last.stop_reason = output.finish_reason, output.stop_reason
        last.kv_transfer_params, last.ec_transfer_params = output.kv_transfer_params, output.ec_transfer_params
        return parts

    def _free_request(self, request: Request, delay_free_blocks: bool = False) -> Any:
        self._unsent.drop(request.request_id)
        if request.status in (RequestStatus.FINISHED_ABORTED, RequestStatus.FINISHED_ERROR):
            self._prefilled.pop(request.request_id, None)
        return super()._free_request(request, delay_free_blocks)


def _grammar(request: Request) -> KeyedGrammar:
    grammar = request.structured_output_request.grammar
    assert isinstance(grammar, KeyedGrammar)
    return grammar


def _part(output: EngineCoreOutput, tokens: list[int], forced: bool) -> EngineCoreOutput:
    return EngineCoreOutput(
        request_id=output.request_id,
        new_token_ids=tokens,
        num_nans_in_logits=NO_LOGITS if forced else output.num_nans_in_logits,
        trace_headers=output.trace_headers,
    )
