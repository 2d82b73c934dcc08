"""Where the masks of an engine's steps come from: vLLM's own filling, or the mask broadcaster, which is asked for those that a step needs
(vLLM 0.32: `v1/core/sched/scheduler.py`, `v1/structured_output/__init__.py`, `EngineCore.step` in `v1/engine/core.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from vllm.config import VllmConfig
from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.utils import strip_speculative_padding

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.core.deferred_grammar import DeferredGrammar
from model_service.engine.core_options import BroadcasterOptions, CoreOptions, core_options
from model_service.engine.workers.mask_output import MaskPart, StepMasks
from model_service.masks.client import Asked, MaskClient
from model_service.masks.frames.encoding import encode
from model_service.masks.messages import VERSION, Hello

Row = tuple[str, Sequence[int]]
_NO_DRAFTS: Sequence[int] = ()


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


@dataclass(frozen=True, slots=True)
class Needed:
    """The masks of a step: the broadcaster's, those of them that it has been asked for, and those that only vLLM itself can tell. `known`:
    as in `MaskParts`."""

    rows: list[Row]
    asked: Asked | None
    others: list[str]
    known: Mapping[str, int]


class MaskAsking:
    """For the scheduler's thread. `requests` are the scheduler's own, by id; `vocab_size` is that of the logits."""

    def __init__(self, client: MaskClient, manager: StructuredOutputManager, requests: Mapping[str, Request], vocab_size: int) -> None:
        self._client = client
        self._manager = manager
        self._requests = requests
        self._vocab_size = vocab_size
        self._grammars: dict[str, DeferredGrammar] = {}

    def begin(self, output: SchedulerOutput) -> None:
        """Let the broadcaster know of the requests that are scheduled for the first time: it can load their grammars meanwhile."""
        for new in output.scheduled_new_reqs:
            request = self._requests[new.req_id]
            grammar = request.structured_output_request and request.structured_output_request.grammar
            # A session's later requests start their grammar anew.
            if isinstance(grammar, DeferredGrammar) and not request.resumable:
                self._client.begin(request.request_id, grammar.key, grammar.stops, grammar.take_all)
                self._grammars[request.request_id] = grammar

    def end(self, request_id: str) -> None:
        if self._grammars.pop(request_id, None) is not None:
            self._client.end(request_id)

    def ask(self, output: SchedulerOutput) -> Needed:
        """Tell the broadcaster what its requests have taken since it was asked last, and ask it for their masks. Does not wait for it."""
        rows, others = self._needed(output)
        grammars, accept = self._grammars, self._client.accept
        for request_id, _ in rows:
            if tokens := grammars[request_id].take_unsent():
                accept(request_id, tokens)
        drafts = output.scheduled_spec_decode_tokens
        known = {request_id: len(strip_speculative_padding(tokens)) for request_id, tokens in drafts.items()} if drafts else {}
        return Needed(rows, self._client.ask(rows), others, known)

    def masks(self, output: SchedulerOutput, needed: Needed) -> StepMasks | None:
        """What has been asked for, and the rest, filled; None where nothing is masked."""
        rest = needed.others + _not_asked(needed)
        if needed.asked is None and not rest:
            return None
        fill = partial(self._filled, output)
        return StepMasks(self._client, fill, needed.asked, fill(rest) if rest else None, needed.known)

    def _needed(self, output: SchedulerOutput) -> tuple[list[Row], list[str]]:
        rows, others = [], []
        drafts, grammars, requests = output.scheduled_spec_decode_tokens, self._grammars, self._requests
        reasons = self._manager.reasoner_cls is not None
        for request_id in output.num_scheduled_tokens:
            request = requests.get(request_id)
            if request is None or request.structured_output_request is None or request.is_prefill_chunk:
                continue
            tokens = drafts.get(request_id, _NO_DRAFTS)
            start = self._constrained_from(request, tokens) if reasons else 0
            if start == 0 and request_id in grammars and not _has_banned(grammars[request_id]):
                rows.append((request_id, tokens))
            else:
                others.append(request_id)
        return rows, others

    def _constrained_from(self, request: Request, drafts: Sequence[int]) -> int:
        """The draft from which on the grammar holds, 0 without drafts; one behind the last where the request still reasons after all."""
        bounds = self._manager._get_constraint_bounds(request, strip_speculative_padding(drafts))
        return int(bounds.constraint_start)

    def _filled(self, output: SchedulerOutput, request_ids: Sequence[str]) -> MaskPart:
        drafts = output.scheduled_spec_decode_tokens
        masks = self._manager.grammar_bitmask(self._requests, request_ids, drafts)
        counts = [1 + len(drafts.get(request_id, _NO_DRAFTS)) for request_id in request_ids]
        return MaskPart(request_ids, counts, encode(masks, self._vocab_size))


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


def _has_banned(grammar: DeferredGrammar) -> bool:
    """Whether a drawn token was refused here, of which the broadcaster knows nothing."""
    return grammar.canonical is not None and grammar.canonical.banned > 0


def _not_asked(needed: Needed) -> list[str]:
    if needed.asked is None:
        return [request_id for request_id, _ in needed.rows]
    if len(needed.asked.request_ids) == len(needed.rows):
        return []
    asked = frozenset(needed.asked.request_ids)
    return [request_id for request_id, _ in needed.rows if request_id not in asked]
