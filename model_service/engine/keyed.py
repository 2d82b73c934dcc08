"""An `AsyncLLM` whose requests carry grammar keys (vLLM 0.32: `v1/engine/async_llm.py`).

vLLM's front end validates, and for some kinds compiles, a constraint before the engine sees it. So the serving classes get
bodies without constraints, and the key, which travels in `vllm_xargs`, becomes the constraint here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from vllm.exceptions import VLLMValidationError
from vllm.outputs import RequestOutput
from vllm.sampling_params import SamplingParams
from vllm.v1.engine import EngineCoreRequest
from vllm.v1.engine.async_llm import AsyncLLM

from model_service.engine.core_options import core_options
from model_service.engine.key_constraint import key_constraint
from model_service.engine.lookahead.children import Children
from model_service.engine.lookahead.lookaheads import Asked, Lookaheads
from model_service.engine.output_watch import ForcedTotals, OutputWatch
from model_service.engine.trace_watch import TraceWatch
from model_service.jump_forward.account import ForcedAccount
from model_service.jump_forward.prefill_load import PrefillLoad
from model_service.messages import CALL_ARGUMENT, KEY_ARGUMENT, MOST_ARGUMENT
from model_service.timeline import Timeline

MOST_PROMPT_TOKENS = 1 << 19
"""Of all candidates of a look-ahead's step: each has the whole prompt. The engine core takes 0.1 s to read as many."""


@dataclass
class Followed:
    """A call of which the engine keeps account; its prompts come in the order of their choices. `asked` None: it does not look ahead.
    `trace`: the span that it belongs to; its `timeline` is None where nobody traces it."""

    account: ForcedAccount = field(default_factory=ForcedAccount)
    choices: int = 0
    asked: Asked | None = None
    trace: str = ""
    timeline: Timeline | None = None


class KeyedEngine(AsyncLLM):
    """`traces_all`: whether vLLM, where it is to trace, makes spans of calls that have no `trace` as well."""

    def __init__(self, *args: Any, traces_all: bool = True, **options: Any) -> None:
        super().__init__(*args, **options)
        if core_options(self.vllm_config).prompt_lookup:
            # It would refuse what its rejection sampler does not know: requests with that have no drafts.
            self.input_processor.speculative_config = None
        self._load = PrefillLoad()
        self._watch = OutputWatch(self.output_processor, self._load, bool(self.vllm_config.scheduler_config.async_scheduling))
        self._times = TraceWatch(self.output_processor, traces_all)
        self._calls: dict[str, Followed] = {}
        self.children = Children(self) if core_options(self.vllm_config).lookahead else None
        self.lookaheads: Lookaheads | None = None
        self._asked: dict[str, tuple[Asked, int]] = {}

    @property
    def forced(self) -> ForcedTotals:
        return self._watch.totals

    @property
    def outstanding_prefill_tokens(self) -> int:
        return self._load.tokens

    @property
    def step_tokens(self) -> int:
        """The most that a step computes."""
        tokens: int = self.vllm_config.scheduler_config.max_num_batched_tokens
        return tokens

    def follow(self, call_id: str, asked: Asked | None = None, trace: str = "", timeline: Timeline | None = None) -> ForcedAccount:
        """Keep account of a call that is about to come, until it is forgotten; with a timeline, also of when what was done. `asked`: it
        looks ahead so."""
        followed = self._calls.setdefault(call_id, Followed(asked=asked, trace=trace, timeline=timeline))
        if timeline is not None:
            timeline.forced = followed.account
        return followed.account

    def forget(self, call_id: str) -> None:
        self._calls.pop(call_id, None)

    def generate(
        self, prompt: Any, sampling_params: SamplingParams, request_id: str, **options: Any
    ) -> AsyncGenerator[RequestOutput, None]:
        """As vLLM's, for a request whose only constraint is its key."""
        call = self._calls.get(take_argument(sampling_params, CALL_ARGUMENT) or "")
        key = constrain(sampling_params)
        if key is not None:
            # Chats say whether the reasoning of their prompt has ended. Completions do not: vLLM would wait for an end that never comes.
            options.setdefault("reasoning_ended", True)
        bound_answer(sampling_params)
        first = call.choices if call else 0
        if call:
            call.choices += sampling_params.n
            if call.asked is not None and sampling_params.n != 1:
                raise VLLMValidationError("look-ahead makes one answer", parameter="n")
            if call.timeline is not None:
                options["trace_headers"] = {"traceparent": call.trace}
        outputs = super().generate(prompt, sampling_params, request_id, **options)
        return self._followed(outputs, request_id, call, first, (_length(prompt), key))

    async def _followed(
        self,
        outputs: AsyncGenerator[RequestOutput, None],
        request_id: str,
        call: Followed | None,
        first_choice: int,
        prefill: tuple[int, str | None],
    ) -> AsyncGenerator[RequestOutput, None]:
        self._load.accepted(request_id, *prefill)
        if call is not None:
            self._watch.watch(request_id, call.account, first_choice)
            if call.asked is not None:
                self._asked[request_id] = (call.asked, first_choice)
            if call.timeline is not None:
                self._times.watch(request_id, call.timeline)
        try:
            async with aclosing(outputs):
                async for output in outputs:
                    yield output
        finally:
            self._asked.pop(request_id, None)
            self._load.answered(request_id)
            self._watch.forget(request_id)
            self._times.forget(request_id)

    async def _add_request(self, request: EngineCoreRequest, prompt: str | None, parent_req: Any, index: int, queue: Any) -> None:
        asked = self._asked.get(request.external_req_id or "") if self._asked else None
        if asked is None:
            await super()._add_request(request, prompt, parent_req, index, queue)
            return
        assert self.lookaheads is not None
        if request.mm_features or request.prompt_token_ids is None:
            raise VLLMValidationError("look-ahead takes prompts of text alone", parameter="messages")
        if asked[0].lookahead.parameters.k * len(request.prompt_token_ids) > MOST_PROMPT_TOKENS:
            raise VLLMValidationError(f"'k' times the prompt's tokens may be {MOST_PROMPT_TOKENS:,}", parameter="lookahead.k")
        self.check_admission(request_id=request.request_id)
        self.output_processor.add_request(request, prompt, parent_req, index, queue)
        self.lookaheads.begin(request, *asked)

    async def abort(self, request_id: str | Iterable[str], internal: bool = False) -> None:
        await super().abort(request_id, internal)
        if self.lookaheads is not None:
            self.lookaheads.sweep()


def _length(prompt: Any) -> int:
    """Tokens of a prompt that vLLM's front end has read."""
    tokens = prompt.get("prompt_token_ids") if isinstance(prompt, dict) else None
    return len(tokens or ())


def take_argument(params: SamplingParams, name: str) -> str | None:
    """One of the extra arguments, taken out."""
    extra = dict(params.extra_args or {})
    value = extra.pop(name, None)
    params.extra_args = extra or None
    return None if value is None else str(value)


def bound_answer(params: SamplingParams) -> None:
    """By the most that is among the extra arguments, if it is."""
    if (most := take_argument(params, MOST_ARGUMENT)) is not None:
        params.max_tokens = int(most) if params.max_tokens is None else min(params.max_tokens, int(most))


def constrain(params: SamplingParams) -> str | None:
    """Turn the key among the extra arguments into the constraint, in place of whatever vLLM derived from tools, and return it.

    Raises:
        VLLMValidationError: a constraint without a key came this far; it must not run unenforced.
    """
    key = take_argument(params, KEY_ARGUMENT)
    if key is None and params.structured_outputs is not None:
        raise VLLMValidationError("the request carries a constraint that the grammar service has not compiled")
    if key is not None:
        params.structured_outputs = key_constraint(key)
    return key


def core_processes(engine: AsyncLLM) -> list[int]:
    """Of this machine: the processes of the engine's cores. None, where it has not begun."""
    manager = getattr(getattr(engine.engine_core, "resources", None), "engine_manager", None)
    return [process.pid for process in getattr(manager, "processes", ()) if process.pid is not None]
