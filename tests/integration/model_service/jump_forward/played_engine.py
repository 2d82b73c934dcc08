"""An engine core around vLLM's real schedulers, and ours, without a model: its worker keeps tokens and a cache as vLLM's model runners do,
and refuses a forward that reads anything but what stands there (vLLM 0.32: `v1/engine/core.py`, `v1/worker/gpu_model_runner.py`,
`v1/worker/gpu/model_runner.py`)."""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from grammar_service.spec import GrammarKind, GrammarSpec
from model_service.messages import TENANT_ARGUMENT
from model_service.settings import JumpForward
from tests.integration.model_service.running_engine import SETTINGS

_RECORD = '{"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer", "maximum": 150}}'
_REGEXES = (
    "(yes|no), and that is all there is to say about it",
    r'\{"first": [0-9], "second": [0-9]\}',
    "[a-z]{5,30}",
    "[ab]{2}(x|y){3}the end of it: (1|2)",
    "([a-z]{2}, one of the words that follow: ){3}end",
    "All of this is known, and nobody is asked for it",
)
SPECS = {
    f"{number:064x}": spec
    for number, spec in enumerate(
        [
            *(GrammarSpec(GrammarKind.REGEX, regex) for regex in _REGEXES),
            GrammarSpec(GrammarKind.JSON_SCHEMA, f'{_RECORD}, "required": ["name", "age"], "additionalProperties": false}}'),
        ]
    )
}
RECORD = len(_REGEXES)
FORCED = _REGEXES.index("All of this is known, and nobody is asked for it")
BLOCK = 16
CONTEXT = 256


@dataclass(frozen=True)
class Ask:
    """`spec`: the place in `SPECS`, None: without a constraint. `arrives`, `leaves`: at which step. `tenant`: whose it is. `penalty`: of
    tokens by how often they were there; the worker that is played here knows of none."""

    spec: int | None
    prompt: int
    most: int
    arrives: int = 0
    leaves: int | None = None
    tenant: str = ""
    penalty: float = 0.0


@dataclass(frozen=True)
class Play:
    """`forgets`: the steps at which the prefix cache is emptied and all requests begin anew; `second`: on which model runner."""

    asks: Sequence[Ask]
    blocks: int = 400
    budget: int = 512
    seats: int = 8
    caching: bool = True
    forgets: frozenset[int] = frozenset()
    second: bool = False

    @property
    def calm(self) -> Play:
        """The same requests, with room for all of them, and nobody leaves."""
        return replace(self, asks=[replace(ask, leaves=None) for ask in self.asks], blocks=400, budget=512, forgets=frozenset())


@dataclass
class _Kept:
    """What a worker keeps of a request; `blocks` of its cache."""

    tokens: list[int]
    prompt: int
    blocks: list[int]
    computed: int


@dataclass
class Worker:
    """By request: `seats`: in how many forwards it took part; `segments`: how many forced ones were told of it, behind a sampled token;
    `sampled`: how many output tokens it had when one was last sampled; `computed`: tokens, by all of its forwards."""

    vocab_size: int
    second: bool
    asynchronous: bool
    kept: dict[str, _Kept] = field(default_factory=dict)
    cells: dict[tuple[int, int], int] = field(default_factory=dict)
    seats: Counter[str] = field(default_factory=Counter)
    segments: Counter[str] = field(default_factory=Counter)
    sampled: Counter[str] = field(default_factory=Counter)
    computed: Counter[str] = field(default_factory=Counter)

    def execute(self, output: Any) -> None:
        """The update of the requests, and the forward."""
        from model_service.jump_forward.forced import FORCED

        for gone in output.finished_req_ids:
            self.kept.pop(gone, None)
        forced = getattr(output, FORCED, {})
        new = {request.req_id: request for request in output.scheduled_new_reqs}
        for name, told in new.items():
            tokens = list(told.prefill_token_ids if self.second else told.prompt_token_ids)
            self.kept[name] = _Kept(tokens, len(told.prompt_token_ids), list(told.block_ids[0]), told.num_computed_tokens)
        self._update(output.scheduled_cached_reqs)
        for name, segment in forced.items():
            self.segments[name] += segment.start > 0
            if not (self.second and name in new):
                self._take(name, segment)
        for name, length in output.num_scheduled_tokens.items():
            self._forward(self.kept[name], length)
            self.seats[name] += 1
            self.computed[name] += length

    def sample(self, output: Any, masks: Any) -> Any:
        """For each request the token that is likeliest at its place, of those that are allowed."""
        from vllm.v1.outputs import ModelRunnerOutput

        rows = {} if masks is None else dict(zip(masks.structured_output_request_ids, masks.grammar_bitmask, strict=True))
        names = list(output.num_scheduled_tokens)
        sampled = [self._sampled(name, rows.get(name)) for name in names]
        return ModelRunnerOutput(names, {name: row for row, name in enumerate(names)}, sampled, pooler_output=[])

    def _update(self, told: Any) -> None:
        for number, name in enumerate(told.req_ids):
            kept, blocks = self.kept[name], told.new_block_ids[number]
            again = name in told.resumed_req_ids
            kept.blocks = list(blocks[0]) if again else kept.blocks + list(blocks[0] if blocks else ())
            kept.computed = told.num_computed_tokens[number]
            if self.asynchronous and name in told.all_token_ids:
                kept.tokens = list(told.all_token_ids[name])

    def _take(self, name: str, segment: Any) -> None:
        kept = self.kept[name]
        start = kept.prompt + segment.start
        assert len(kept.tokens) >= start, f"{name}: {len(kept.tokens)} tokens, and forced ones from {start}"
        kept.tokens[start : start + len(segment.tokens)] = segment.tokens
        assert kept.tokens[start:] == list(segment.tokens), name

    def _forward(self, kept: _Kept, length: int) -> None:
        end = kept.computed + length
        assert end <= len(kept.tokens), "a token is computed that nobody knows"
        ahead = 0
        for place, token in enumerate(kept.tokens[:end]):
            ahead = hash((ahead, token))
            cell = kept.blocks[place // BLOCK], place % BLOCK
            if place < kept.computed:
                assert self.cells[cell] == ahead, "what was computed is not what stands there"
            self.cells[cell] = ahead
        kept.computed = end

    def _sampled(self, name: str, mask: Any) -> list[int]:
        kept = self.kept[name]
        if kept.computed < len(kept.tokens):
            return []
        kept.tokens.append(chosen(name, len(kept.tokens), mask, self.vocab_size))
        self.sampled[name] = len(kept.tokens) - kept.prompt
        return [kept.tokens[-1]]


def chosen(name: str, place: int, mask: Any, vocab_size: int) -> int:
    """The likeliest token at a place of a request, of those that its mask allows."""
    chances = _chances(name, place, vocab_size).copy()
    if mask is not None:
        chances[np.unpackbits(mask.view(np.uint8), bitorder="little", count=vocab_size) == 0] = -1
    return int(chances.argmax())


@cache
def _chances(name: str, place: int, vocab_size: int) -> Any:
    return np.random.default_rng([int(name), place]).random(vocab_size, dtype=np.float32)


@cache
def _config(jump_forward: JumpForward, channel: str) -> bytes:
    from model_service.engine.arguments import parse_arguments
    from model_service.engine.configuration import plug, stock_config

    settings = replace(SETTINGS, jump_forward=jump_forward, max_model_len=CONTEXT)
    return pickle.dumps(plug(stock_config(parse_arguments(settings)), settings, channel))


class Core:
    """Plays requests: `jump_forward` as in the settings."""

    def __init__(self, play: Play, jump_forward: JumpForward, channel: str) -> None:
        import torch
        from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
        from vllm.v1.structured_output import StructuredOutputManager

        self._play = play
        config = pickle.loads(_config(jump_forward, channel))
        config.scheduler_config.max_num_batched_tokens, config.scheduler_config.max_num_seqs = play.budget, play.seats
        config.cache_config.num_gpu_blocks, config.cache_config.enable_prefix_caching = play.blocks, play.caching
        attention = FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=8, dtype=torch.float32)
        kept = KVCacheConfig(num_blocks=play.blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], attention)])
        self._manager = StructuredOutputManager(config)
        self.asynchronous = config.scheduler_config.async_scheduling
        kind = config.scheduler_config.get_scheduler_cls()
        self.scheduler = kind(config, kept, self._manager, block_size=BLOCK, hash_block_size=BLOCK)
        self.scheduler.use_v2_model_runner = play.second
        self.worker: Any = Worker(config.model_config.get_vocab_size(), play.second, self.asynchronous)
        self.requests: dict[str, Any] = {}
        self._make_requests()

    def run(self) -> dict[str, list[int]]:
        """The output of each request, when all have ended (`EngineCore.step`, `EngineCore.step_with_batch_queue`)."""
        queue: deque[tuple[Any, Any]] = deque()
        self._step = 0
        while self._admit() or self.scheduler.has_requests() or queue:
            deferred = None
            if self.scheduler.has_requests():
                output = self.scheduler.schedule()
                self.worker.execute(output)
                if output.pending_structured_output_tokens:
                    deferred = output
                else:
                    queue.appendleft(self._sampled(output))
                    if len(queue) < 1 + self.asynchronous and (output.total_num_scheduled_tokens or self.scheduler.has_requests()):
                        continue
            elif not queue:
                continue
            self._depart()
            self.scheduler.update_from_output(*queue.pop())
            if deferred is not None:
                queue.appendleft(self._sampled(deferred))
        return {name: list(request.output_token_ids) for name, request in self.requests.items()}

    def close(self) -> None:
        self.scheduler.shutdown()

    def _make_requests(self) -> None:
        from vllm.sampling_params import SamplingParams
        from vllm.utils.hashing import sha256
        from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
        from vllm.v1.request import Request

        from model_service.engine.key_constraint import key_constraint

        init_none_hash(sha256)
        hasher = get_request_block_hasher(BLOCK, sha256) if self._play.caching else None
        end = self._manager.tokenizer.eos_token_id
        for number, ask in enumerate(self._play.asks):
            constraint = None if ask.spec is None else key_constraint(list(SPECS)[ask.spec])
            whose = {TENANT_ARGUMENT: ask.tenant} if ask.tenant else None
            params = SamplingParams(max_tokens=ask.most, structured_outputs=constraint, extra_args=whose, frequency_penalty=ask.penalty)
            params.update_from_generation_config({}, end)
            self.requests[str(number)] = request = Request(str(number), [5] * ask.prompt, params, None, block_hasher=hasher)
            if constraint is not None:
                self._manager.grammar_init(request)
        self._manager.executor.shutdown(wait=True)

    def _admit(self) -> bool:
        """Whether somebody has yet to come."""
        for number, ask in enumerate(self._play.asks):
            if ask.arrives == self._step:
                self.scheduler.add_request(self.requests[str(number)])
        if self._step in self._play.forgets:
            self.scheduler.reset_prefix_cache(reset_running_requests=True)
        self._step += 1
        return any(ask.arrives >= self._step for ask in self._play.asks)

    def _depart(self) -> None:
        from vllm.v1.request import RequestStatus

        gone = [str(number) for number, ask in enumerate(self._play.asks) if ask.leaves == self._step]
        self.scheduler.finish_requests(gone, RequestStatus.FINISHED_ABORTED)

    def _sampled(self, output: Any) -> tuple[Any, Any]:
        return output, self.worker.sample(output, self.scheduler.get_grammar_bitmask(output))
