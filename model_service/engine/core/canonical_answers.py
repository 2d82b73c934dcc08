"""Answers that keep to the tokenizer's own tokens (vLLM 0.32: `v1/core/sched/scheduler.py`, `v1/worker/gpu_model_runner.py`).

No token is looked at beforehand whether the tokenizer's own sequences go on behind it; the one that was drawn is, with what the grammar
forces behind it, and what may come next is its next mask. If it leads nowhere it is dropped before vLLM sees it, left out of the next
mask, and the last token is computed once more: rejection, so that what is drawn has the distribution of a mask without it. Nothing is
emitted in that step. A worker of the first model runner drops what it has sampled itself when it hears that the request has fewer output
tokens, as it does where keys and values could not be loaded.
"""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import torch
from vllm.config import VllmConfig
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.engine import EngineCoreOutputs
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

from grammar_service.backends.canonical.matcher import CanonicalMatcher
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.core.backend import KeyedGrammar
from model_service.engine.core.jumping import Jumping, is_constrained
from model_service.engine.core_options import core_options
from model_service.output_marks import Mark, marked

THREADS = max(1, (os.cpu_count() or 1) // 2)
MOST_REDRAWS = 64
"""At one place, and of an answer beyond one for each of its tokens: each takes a forward that nobody is charged for. What is drawn then is
kept; if it leads nowhere indeed, the answer falls back to the grammar's own masks."""


def can_redraw(config: VllmConfig) -> bool:
    """Whether a drawn token can be taken back: not where the next step is under way, nor where others have it already."""
    has_drafts = bool(config.num_speculative_tokens) and not core_options(config).prompt_lookup  # of which canonical answers have none
    stepped = not config.scheduler_config.async_scheduling and not has_drafts
    return bool(stepped and not config.use_v2_model_runner and config.parallel_config.pipeline_parallel_size == 1)


class CanonicalAnswers:
    """Of one scheduler, whose own are `manager` and `requests`. `answers` have ended, `fallbacks` of them as nobody's own tokens; `redraws`
    were dropped. Nothing computes while tokens are looked at: the masks behind all of a step's are filled in `THREADS`."""

    def __init__(
        self, manager: StructuredOutputManager, requests: Mapping[str, Request], vocabulary: GrammarTokenizer, redraws: bool
    ) -> None:
        self._manager = manager
        self._requests = requests
        self._threads = ThreadPoolExecutor(THREADS, "canonical masks") if THREADS > 1 else None
        self._masks = torch.zeros(0, (vocabulary.vocab_size + 31) // 32, dtype=torch.int32)
        self._redraws = redraws
        self._fallen: set[str] = set()
        self._drawn: list[CanonicalMatcher] = []
        self.answers = self.fallbacks = self.redraws = 0

    def scheduled(self, output: SchedulerOutput, but: Container[str] = ()) -> None:
        """Of requests that are scheduled for the first time, each token will be looked at; `but`: those whose samples are no tokens."""
        for new in output.scheduled_new_reqs if self._redraws else ():
            request = self._requests[new.req_id]
            grammar = _grammar(request)
            if grammar is not None and grammar.canonical is not None:
                grammar.canonical.prunes = _tells_of_its_prompt(request) or new.req_id in but

    def computed(self, output: SchedulerOutput, computed: ModelRunnerOutput, jumping: Jumping | None, but: Container[str] = ()) -> None:
        """Drop what leads nowhere of a step's tokens; `but`: requests whose samples are no tokens."""
        sampled, drawn = computed.sampled_token_ids, list[tuple[KeyedGrammar, CanonicalMatcher, Request, int]]()
        for request_id in output.num_scheduled_tokens if sampled and self._redraws else ():
            request = self._requests.get(request_id)
            grammar = _grammar(request) if request is not None and request_id not in but else None
            if request is None or grammar is None or (matcher := grammar.canonical) is None:
                continue
            row = computed.req_id_to_index[request_id]
            few = matcher.banned < MOST_REDRAWS and matcher.dropped < MOST_REDRAWS + request.num_output_tokens
            if len(sampled[row]) != 1 or not few or grammar.must_end or not self._can_drop(request):
                continue
            with grammar.watched():
                if matcher.draw(sampled[row][0]):
                    drawn.append((grammar, matcher, request, row))
                    if jumping is not None:
                        matcher.draw_on(jumping.find_ahead(request, matcher, sampled[row][0]))
        self._drawn = [matcher for _, matcher, _, _ in drawn]
        for (grammar, matcher, request, row), mask in zip(drawn, self._behind([grammar for grammar, *_ in drawn]), strict=True):
            with grammar.watched():
                if not matcher.settle(mask):
                    sampled[row] = []
                    request.num_computed_tokens -= 1
                    self.redraws += 1

    def _behind(self, grammars: Sequence[KeyedGrammar]) -> npt.NDArray[np.int32]:
        """The next masks after the drawn tokens, from the wrapped matchers: `[len(grammars), words]`. Each is timed by itself: what a slow
        one takes must not be counted for the others, nor for nobody."""
        drawn = self._drawn
        if len(self._masks) < len(drawn):
            self._masks = torch.zeros(len(drawn), self._masks.shape[1], dtype=torch.int32)

        def fill(row: int) -> None:
            grammars[row].timed_fill(drawn[row].inner, self._masks, row)

        rows = range(len(drawn))
        for _ in map(fill, rows) if self._threads is None else self._threads.map(fill, rows):
            pass
        masks: npt.NDArray[np.int32] = self._masks.numpy()
        return masks[: len(drawn)]

    def taken(self) -> None:
        """vLLM has had the step's tokens."""
        for matcher in self._drawn:
            matcher.undraw()
        self._drawn.clear()

    def ended(self, request: Request) -> None:
        """Whatever became of it."""
        grammar = _grammar(request)
        failed = request.status in (RequestStatus.FINISHED_ABORTED, RequestStatus.FINISHED_ERROR)
        if grammar is None or not grammar.is_canonical or failed:
            return
        self.answers += 1
        if grammar.canonical is not None and grammar.canonical.has_fallen_back:
            self.fallbacks += 1
            self._fallen.add(request.request_id)

    def tell(self, outputs: Mapping[int, EngineCoreOutputs]) -> None:
        """With its last output, of each answer that does not keep to these tokens."""
        for client in outputs.values() if self._fallen else ():
            for output in client.outputs:
                if output.finish_reason is not None and output.request_id in self._fallen:
                    output.num_nans_in_logits = marked(output.num_nans_in_logits, Mark.NOT_CANONICAL)
        self._fallen.clear()

    def _can_drop(self, request: Request) -> bool:
        is_running = request.status == RequestStatus.RUNNING and not request.num_stale_output_tokens
        return is_running and not _tells_of_its_prompt(request) and is_constrained(self._manager, request)


def _grammar(request: Request) -> KeyedGrammar | None:
    structured = request.structured_output_request
    grammar = structured.grammar if structured is not None else None
    return grammar if isinstance(grammar, KeyedGrammar) else None


def _tells_of_its_prompt(request: Request) -> bool:
    """That comes with the first token, which must not be dropped then."""
    told = request.sampling_params
    return told.prompt_logprobs is not None or told.prompt_logprob_token_ids is not None
