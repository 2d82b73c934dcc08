"""Ends constrained answers within their `max_tokens` (vLLM 0.32: `v1/core/sched/scheduler.py`).

The sampled token stays where a short end still fits behind it. Where none does, that token is dropped, and the answer gets the end that
fits in its place: at the last moment, and with no forward of its own, since nothing follows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.engine import EngineCoreOutputs
from vllm.v1.request import Request, RequestStatus

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.core.backend import KeyedGrammar
from model_service.engine.core.jumping import certain_logprobs, is_constrained
from model_service.jump_forward.closing_policy import ClosingPolicy
from model_service.messages import CLOSE_ARGUMENT
from model_service.output_marks import Mark, marked


class AnswerClosing:
    """For one scheduler; its requests ask by an extra argument."""

    def __init__(self, scheduler: Scheduler, tokenizer: GrammarTokenizer) -> None:
        self._scheduler = scheduler
        self._policy = ClosingPolicy(tokenizer)
        self._closed: set[str] = set()

    def close(self, request: Request, sampled: Sequence[int]) -> list[int] | None:
        """The tokens that have ended the request in place of the sampled ones; None: it goes on with those."""
        grammar = self._grammar(request)
        if grammar is None or grammar.must_end:
            return None
        scheduler, output = self._scheduler, request.num_output_tokens
        room = min(request.max_tokens - output, scheduler.max_model_len - request.num_tokens)
        ending = None
        with grammar.watched(counts_time=False):
            ending = self._policy.ending(request.request_id, grammar.matcher, output, sampled, room)
        if ending is None:
            return None
        request.num_output_placeholders = 0
        tokens, stopped = Scheduler._update_request_with_output(scheduler, request, list(ending))
        if not stopped:
            request.status = RequestStatus.FINISHED_LENGTH_CAPPED
        grammar.advance_ahead(tokens)
        self._closed.add(request.request_id)
        return list(tokens)

    def mark(self, outputs: Mapping[int, EngineCoreOutputs]) -> None:
        """Tell the front end which of the outputs are such ends."""
        for output in (output for client in outputs.values() if self._closed for output in client.outputs):
            if output.request_id in self._closed and output.finish_reason is not None:
                output.num_nans_in_logits = marked(marked(output.num_nans_in_logits, Mark.CLOSED), Mark.FORCED)
                if output.new_logprobs is not None:
                    output.new_logprobs = certain_logprobs(output.new_token_ids)
        self._closed.clear()

    def ended(self, request_id: str) -> None:
        self._policy.forget(request_id)

    def _grammar(self, request: Request) -> KeyedGrammar | None:
        """That of a request which asks for it, where it holds for the next token."""
        structured = request.structured_output_request
        if structured is None or request.resumable or CLOSE_ARGUMENT not in (request.sampling_params.extra_args or {}):
            return None
        grammar = structured.grammar
        return grammar if isinstance(grammar, KeyedGrammar) and is_constrained(self._scheduler.structured_output_manager, request) else None
