"""Jumping over what the grammar has decided (vLLM 0.32: `v1/core/sched/scheduler.py`).

vLLM's scheduler knows no decoding phase: in every step each request computes what it has and has not computed yet. So a forced
segment is appended to the output when the token before it is known, and the next step computes all of it in one forward, as it
would a chunk of a prompt: no draft, no mask, no logits for any of its tokens. Preemption, prefix caching, chunking and the token
budget are vLLM's own. Only the workers have to be told which tokens they did not sample (`engine/workers/forced_tokens.py`). Where the
next forward starts before the segment is known, that takes a word more (`engine/core/async_scheduler.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs
from vllm.v1.metrics.stats import PrefillStats
from vllm.v1.outputs import LogprobsLists
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

from grammar_service.backends import Matcher
from grammar_service.segments import MOST_TAIL, Segment, Segmenter
from model_service.engine.core.backend import KeyedGrammar
from model_service.jump_forward.forced import FORCED, Unsent, fitting
from model_service.output_marks import Mark, marked


class Jumping:
    """Of one scheduler, whose own are `manager` and `requests`. This decides what is forced. Ahead of the first choice it appends that as
    well (`unblocked`); behind a token the scheduler does (`MaskcastScheduler._update_request_with_output`). `admits`: whether requests may
    be admitted with more tokens than their prompts have. `context`: the answer that a segment of a request follows."""

    def __init__(
        self, manager: StructuredOutputManager, segmenter: Segmenter, requests: Mapping[str, Request], max_model_len: int, admits: bool
    ) -> None:
        self._manager = manager
        self.segmenter = segmenter
        self._requests = requests
        self._max_model_len = max_model_len
        self._admits = admits
        self.context: Callable[[Request], Sequence[int]] = _output
        self._unsent = Unsent()
        self._prefilled: dict[str, list[int]] = {}
        self._jumped: dict[str, int] = {}
        self._ahead: dict[str, Segment] = {}

    def scheduled(self, output: SchedulerOutput) -> None:
        """Let the workers know, with the step, of the forced tokens that it computes the first of."""
        for new in output.scheduled_new_reqs:
            if new.req_id in self._prefilled:
                _count_prefill(self._requests[new.req_id], new.num_computed_tokens)
        setattr(output, FORCED, self._unsent.take(output.num_scheduled_tokens))

    def unblocked(self, request: Request, status: RequestStatus) -> None:
        """The request had that status and may be scheduled now. If it is its grammar that has come, the tokens before the first free choice
        are computed with the prompt. At least one token is left to sample."""
        compiled = status == RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR
        if not compiled or not self._admits or not self.applies(request) or request.sampling_params.min_tokens:
            return
        grammar, params = _grammar(request), request.sampling_params
        room = min(request.max_tokens, self._max_model_len - request.num_tokens) - 1
        segment = grammar.forced(lambda: self.segmenter.find(grammar.matcher, self.context(request)))
        tokens = fitting(segment.tokens, room, params.all_stop_token_ids)
        if tokens and grammar.advance(tokens):
            self._unsent.add(request.request_id, 0, tokens)
            self._prefilled[request.request_id] = tokens
            request.append_output_token_ids(tokens)
            # vLLM asserts that no more is cached than the prompt is long.
            request.prefill_stats = None

    def applies(self, request: Request) -> bool:
        """Whether the grammar holds for the request's next token, and nobody wants to know what the model makes of others in a forced one's
        place."""
        structured = request.structured_output_request
        if structured is None or request.resumable:
            return False
        params = request.sampling_params
        if params.num_logprobs or params.logprob_token_ids:
            return False
        if params.prompt_logprobs is not None or params.prompt_logprob_token_ids is not None:
            return False
        return isinstance(structured.grammar, KeyedGrammar) and is_constrained(self._manager, request)

    def forced_behind(self, request: Request, tokens: Sequence[int]) -> list[int]:
        """The segment after the tokens that the request has just got, and the end-of-sequence token where nothing else can follow."""
        grammar = _grammar(request)
        if not grammar.advance_ahead(tokens):
            return []
        segment = self._ahead.pop(request.request_id, None) or grammar.forced(
            lambda: self.segmenter.find(grammar.matcher, self.context(request))
        )
        forced = list(segment.tokens)
        end, least = request.sampling_params.eos_token_id, request.sampling_params.min_tokens
        if segment.ends and end is not None and request.num_output_tokens + len(forced) >= least:
            forced.append(end)
        return forced

    def find_ahead(self, request: Request, matcher: Matcher, token: int) -> Sequence[int]:
        """What is forced behind a token that the matcher has taken, and the request will get in this step, if nobody drops it."""
        if not self.applies(request):
            return ()
        emitted = [*self.context(request)[-MOST_TAIL:], token]
        segment = self._ahead[request.request_id] = _grammar(request).forced(lambda: self.segmenter.find(matcher, emitted))
        return segment.tokens

    def appended(self, request: Request, start: int, forced: Sequence[int], stopped: bool) -> None:
        """What was forced behind `start` output tokens, as far as the request took it, and whether it has stopped there."""
        _grammar(request).advance_ahead(forced)
        self._jumped[request.request_id] = len(forced)
        if not stopped:
            self._unsent.add(request.request_id, start, forced)

    def waits(self, request: Request) -> bool:
        """Whether the request has forced tokens that no step has computed."""
        return request.request_id in self._unsent

    def split(self, outputs: Mapping[int, EngineCoreOutputs]) -> None:
        """What was prefilled, what was sampled, and what was forced behind it, become outputs of their own: they leave together."""
        self._ahead.clear()
        for client in outputs.values() if self._jumped or self._prefilled else ():
            client.outputs = [piece for output in client.outputs for piece in self._by_origin(output)]

    def ended(self, request: Request) -> None:
        self._unsent.drop(request.request_id)
        if request.status in (RequestStatus.FINISHED_ABORTED, RequestStatus.FINISHED_ERROR):
            self._prefilled.pop(request.request_id, None)

    def _by_origin(self, output: EngineCoreOutput) -> list[EngineCoreOutput]:
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
        last.spec_decode_metrics = output.spec_decode_metrics
        last.kv_transfer_params, last.ec_transfer_params = output.kv_transfer_params, output.ec_transfer_params
        return parts


def is_constrained(manager: StructuredOutputManager, request: Request) -> bool:
    """Not while the request reasons ahead of its constrained answer."""
    return manager.reasoner_cls is None or bool(manager._get_constraint_bounds(request, ()).constraint_start == 0)


def _output(request: Request) -> Sequence[int]:
    output: Sequence[int] = request.output_token_ids
    return output


def _count_prefill(request: Request, cached: int) -> None:
    """What vLLM would have counted, for the prompt alone."""
    stats = PrefillStats()
    stats.set(request.num_prompt_tokens, min(cached, request.num_prompt_tokens), 0)
    request.prefill_stats = stats


def _grammar(request: Request) -> KeyedGrammar:
    grammar = request.structured_output_request.grammar
    assert isinstance(grammar, KeyedGrammar)
    return grammar


def _part(output: EngineCoreOutput, tokens: list[int], forced: bool) -> EngineCoreOutput:
    rows = output.new_logprobs
    if rows is not None:
        # vLLM has cut these for as many tokens as there are now, of which the model was asked for the first.
        rows = certain_logprobs(tokens) if forced else rows.slice_request(0, len(tokens))
    return EngineCoreOutput(
        request_id=output.request_id,
        new_token_ids=tokens,
        num_nans_in_logits=marked(0, Mark.FORCED) if forced else output.num_nans_in_logits,
        new_logprobs=rows,
        trace_headers=output.trace_headers,
    )


def certain_logprobs(tokens: list[int]) -> LogprobsLists:
    """vLLM's log-probabilities are among what the grammar allows: there is no other text."""
    ids = np.array(tokens, np.int32)[:, None]
    return LogprobsLists(ids, np.zeros(ids.shape, np.float32), np.ones(len(tokens), np.int32))
