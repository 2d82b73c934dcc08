"""Two ways for a step's masks from the engine's thread to its workers (vLLM 0.32): vLLM's own, and through the broadcaster."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from vllm.distributed.device_communicators.shm_broadcast import MessageQueue
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.core.sched.output import GrammarOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_guidance import GuidanceGrammar
from vllm.v1.structured_output.backend_types import StructuredOutputGrammar
from vllm.v1.structured_output.backend_xgrammar import XgrammarGrammar

from grammar_service.backends import Matcher
from grammar_service.backends.llguidance.matcher import LlguidanceMatcher
from grammar_service.backends.xgrammar.matcher import XgrammarMatcher
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.errors import BenchFailed
from load_tests.masks.figures import OURS, STOCK
from load_tests.masks.requests import MaskRequest
from model_service.engine.workers.mask_output import MaskPart, MaskParts
from model_service.masks.client import MaskClient

Drafts = Mapping[str, Sequence[int]]
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Sent:
    """What a step cost the engine's thread: `masks_s` with handing them out, and `accept_s` for the tokens before. `filled_s`: from the
    question to the frame, beside the forward; `worker_bytes`: that each worker gets."""

    masks_s: float
    accept_s: float
    filled_s: float
    worker_bytes: int


class MaskArm(Protocol):
    name: str

    def begin(self, requests: Sequence[MaskRequest], drafts: int) -> None: ...

    def send(self, drafts: Drafts, accepted: Mapping[str, Sequence[int]]) -> Sent:
        """Take the tokens, and have the masks of all requests on their way to the workers."""


class StockMasks:
    """vLLM's: filled on the engine's thread, or by its threads without drafts, and pickled for each worker."""

    name = STOCK

    def __init__(self, manager: StructuredOutputManager, queue: MessageQueue, tokenizer: GrammarTokenizer) -> None:
        self._manager = manager
        self._queue = queue
        self._tokenizer = tokenizer
        self._requests: dict[str, Request] = {}

    def begin(self, requests: Sequence[MaskRequest], drafts: int) -> None:
        self._requests = {request.request_id: self._begun(request, drafts) for request in requests}

    def send(self, drafts: Drafts, accepted: Mapping[str, Sequence[int]]) -> Sent:
        started = time.perf_counter()
        for request_id, tokens in accepted.items():
            self._manager.accept_tokens(self._requests[request_id], list(tokens))
        accepted_at = time.perf_counter()
        ids = list(self._requests)
        masks = GrammarOutput(ids, self._manager.grammar_bitmask(self._requests, ids, drafts))
        filled_at = time.perf_counter()
        _hand_out(self._queue, masks)
        done = time.perf_counter()
        return Sent(done - accepted_at, accepted_at - started, filled_at - accepted_at, len(pickle.dumps(masks, pickle.HIGHEST_PROTOCOL)))

    def _begun(self, request: MaskRequest, drafts: int) -> Request:
        params = SamplingParams(structured_outputs=StructuredOutputsParams(json_object=True))
        begun = Request(request.request_id, [1], params, None)
        grammar = self._grammar(request.grammar.matcher(None, drafts))
        grammar.accept_tokens(request.request_id, list(request.tokens[: request.skip]))
        begun.structured_output_request.grammar = grammar
        return begun

    def _grammar(self, matcher: Matcher) -> StructuredOutputGrammar:
        """vLLM's own, around the library's matcher."""
        size = self._tokenizer.vocab_size
        if isinstance(matcher, XgrammarMatcher):
            return XgrammarGrammar(vocab_size=size, matcher=matcher.library, ctx=None)
        if isinstance(matcher, LlguidanceMatcher):
            return GuidanceGrammar(ll_matcher=matcher.library, ll_tokenizer=self._tokenizer.llguidance, vocab_size=size)
        raise BenchFailed(f"vLLM has no {type(matcher).__name__}")


class FrameMasks:
    """Ours: filled by the broadcaster, and mapped by each worker."""

    name = OURS

    def __init__(self, client: MaskClient, queue: MessageQueue) -> None:
        self._client = client
        self._queue = queue
        self._requests: list[str] = []

    def begin(self, requests: Sequence[MaskRequest], drafts: int) -> None:
        for request_id in self._requests:
            self._client.end(request_id)
        self._requests = [request.request_id for request in requests]
        for request in requests:
            self._client.begin(request.request_id, request.key, None, _behind(request))
        self._await_all()

    def send(self, drafts: Drafts, accepted: Mapping[str, Sequence[int]]) -> Sent:
        started = time.perf_counter()
        for request_id, tokens in accepted.items():
            self._client.accept(request_id, tokens)
        accepted_at = time.perf_counter()
        asked = self._client.ask([(request_id, drafts.get(request_id, ())) for request_id in self._requests])
        asked_at = time.perf_counter()
        if asked is None or len(asked.request_ids) < len(self._requests):
            raise BenchFailed("the broadcaster has lost requests")
        self._forward()
        forward_ended = time.perf_counter()
        reference = self._client.wait(asked)
        if reference is None:
            raise BenchFailed("a frame is gone")
        masks = MaskParts((MaskPart(asked.request_ids, asked.counts, reference),))
        _hand_out(self._queue, masks)
        engine = time.perf_counter() - forward_ended + asked_at - accepted_at
        handed = len(pickle.dumps(masks, pickle.HIGHEST_PROTOCOL))
        return Sent(engine, accepted_at - started, forward_ended - accepted_at, reference.size_bytes + handed)

    def _await_all(self) -> None:
        """Until all grammars are loaded."""
        until = time.monotonic() + PATIENCE_S
        rows = [(request_id, ()) for request_id in self._requests]
        tick = Event()
        while (asked := self._client.ask(rows)) is None or self._client.wait(asked) is None or len(asked.request_ids) < len(rows):
            if time.monotonic() > until:
                raise BenchFailed("the broadcaster does not load the grammars")
            tick.wait(0.01)

    def _forward(self) -> None:
        """As long as the broadcaster fills: it has nothing else to say meanwhile."""
        if self._client.link is None or not self._client.link.poll(PATIENCE_S):
            raise BenchFailed("a frame does not come")


def _behind(request: MaskRequest) -> Callable[[], Sequence[int]]:
    return lambda: request.tokens[: request.skip]


def _hand_out(queue: MessageQueue, masks: object) -> None:
    """As vLLM's executor calls `sample_tokens`."""
    queue.enqueue(("sample_tokens", (masks,), {}, None))
