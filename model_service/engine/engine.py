"""vLLM's engine and its OpenAI serving classes behind one small interface (vLLM 0.32: `entrypoints/launchers/api_server`)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import psutil
from pydantic import ValidationError
from starlette.datastructures import State
from vllm.config import VllmConfig
from vllm.entrypoints.launchers.api_server.app_state import init_app_state
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.completion.protocol import CompletionRequest
from vllm.entrypoints.serve.engine.protocol import ErrorResponse
from vllm.entrypoints.serve.exception_handling.error_response import create_error_response
from vllm.entrypoints.serve.tokenize.protocol import DetokenizeRequest, TokenizeChatRequest, TokenizeCompletionRequest
from vllm.v1.engine.exceptions import EngineDeadError

from model_service.core_figures import CoreFigures, FiguresPage
from model_service.engine.arguments import load_parsers, parse_arguments
from model_service.engine.configuration import USAGE, check_logits, engine_facts, plug, stock_config, with_prompt_lookup
from model_service.engine.drafting import start_draft
from model_service.engine.forking import fork_cores
from model_service.engine.frontend.patched_parsers import patch_parsers
from model_service.engine.frontend.refused_fields import first_fault, refused_field, refused_images
from model_service.engine.frontend.rendering import CURRENT_TENANT, quiet_argument_warnings, render_short_prompts_at_once
from model_service.engine.keyed import KeyedEngine, core_processes
from model_service.engine.lookahead.lookaheads import Asked, Lookaheads
from model_service.engine.lookahead.wished import WishedGrammars
from model_service.engine.output_watch import ForcedTotals
from model_service.engine.workers.executors import executor_class
from model_service.errors import ChannelError, EngineDead, EngineSettingsError, GrammarMemoryFull, InvalidLookahead
from model_service.hang_watch import Look, main_threads
from model_service.jump_forward.account import ForcedAccount
from model_service.jump_forward.forced_usage import ForcedUsage
from model_service.lookahead import Method
from model_service.lookahead.figures import LookaheadFigures
from model_service.lookahead.request import Lookahead
from model_service.lookahead.rewards import Scoring, built
from model_service.lookahead.trace import Traces
from model_service.messages import CALL_ARGUMENT, CLOSE_ARGUMENT, GENERATING, KEY_ARGUMENT, TENANT_ARGUMENT, Call, Endpoint, EngineFacts
from model_service.replies import Head
from model_service.settings import EngineSettings
from model_service.timeline import Timeline

GRAMMAR_FAILED = (
    "The engine ended the request: computing the masks of its grammar takes too long, or the grammar failed, or there was no memory for it."
)
INTERNAL_ERROR = "Internal server error"
"""vLLM's message for a request that the engine core ended with an error."""
LOOKAHEAD_STEPS = "lookahead_steps"
"""What a choice of an answer has of what its look-aheads have tried."""


class Engine:
    """One vLLM engine. `rewards`: those that requests may name."""

    def __init__(self, settings: EngineSettings, channel: str, rewards: Mapping[str, Scoring] = MappingProxyType({})) -> None:
        self._settings = settings
        self._channel = channel
        self._rewards = rewards
        self._page = FiguresPage()
        self._state = State()
        self._engine: KeyedEngine | None = None
        self._drafts: KeyedEngine | None = None
        self._wished: WishedGrammars | None = None

    async def start(self) -> None:
        """Load the model; takes from ten seconds to minutes. Raises EngineSettingsError: vLLM refuses the arguments, a parser that they
        name cannot be read, or the model's logits are not of its vocabulary."""
        # In threads: they wait for others, and this one has others to answer.
        self._settings = await asyncio.to_thread(with_prompt_lookup, self._settings)
        arguments = parse_arguments(self._settings)
        load_parsers(arguments)
        config = plug(await asyncio.to_thread(stock_config, arguments), self._settings, self._channel, self._page.address)
        engine = self._engine = await asyncio.to_thread(self._load, config)
        await check_logits(engine)
        if self._settings.lookahead:
            engine.lookaheads = await self._looking(engine)
        await engine.reset_mm_cache()  # or what vLLM has tried its memory with would stay in it
        render_short_prompts_at_once(engine.renderer)
        quiet_argument_warnings()
        patch_parsers()
        tasks = await engine.get_supported_tasks()
        try:
            await init_app_state(engine, self._state, arguments, tasks)
        except (ValueError, TypeError) as error:  # an adapter that does not fit the model, say, or parsers that do not go together
            raise EngineSettingsError(f"engine arguments: {error}") from error

    @property
    def running(self) -> int:
        """Requests that the engine has accepted and not yet finished."""
        return self._engine.get_num_unfinished_requests() if self._engine else 0

    @property
    def forced(self) -> ForcedTotals:
        """Forced tokens since the engine started."""
        return self._engine.forced if self._engine else ForcedTotals()

    @property
    def lookaheads(self) -> dict[str, int]:
        """What all look-aheads have come to (`LookaheadTotals`); nothing where there are none."""
        return self._engine.lookaheads.totals.as_dict() if self._engine and self._engine.lookaheads else {}

    @property
    def outstanding_prefill_tokens(self) -> int:
        """Tokens of accepted prompts, and of the forced segments behind them, that wait to be computed."""
        return self._engine.outstanding_prefill_tokens if self._engine else 0

    @property
    def step_tokens(self) -> int:
        """The most tokens that a step computes."""
        return self._engine.step_tokens if self._engine else 0

    @property
    def facts(self) -> EngineFacts | None:
        """None as long as it has not started."""
        return engine_facts(self._engine.vllm_config) if self._engine else None

    @property
    def core(self) -> CoreFigures:
        """What the engine core has counted so far."""
        return self._page.read()

    async def check_health(self) -> None:
        """Raises EngineDead when the engine core or one of its workers is gone."""
        try:
            for engine in filter(None, (self._engine, self._drafts)):
                await engine.check_health()
        except EngineDeadError as error:
            raise self._dead() from error

    def look(self) -> Look:
        """What its processes do; those of the engine that drafts for it compute for its requests alone."""
        return Look(self.running > 0, self.core.steps, main_threads(self._processes()))

    def kill(self) -> None:
        """The processes of the engine, a core's workers before it: who is suspended does not notice that its parent has ended."""
        for process in reversed(self._processes()):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _processes(self) -> list[int]:
        """Of this machine; each core before its workers."""
        found = list[int]()
        for engine in filter(None, (self._engine, self._drafts)):
            for core in core_processes(engine):
                with suppress(psutil.NoSuchProcess):
                    found += [core, *(child.pid for child in psutil.Process(core).children(recursive=True))]
        return found

    def close(self) -> None:
        for engine in filter(None, (self._engine, self._drafts)):
            # What has not ended in time is killed, and has its name asked before: vLLM stumbles over what ends in between.
            with suppress(psutil.NoSuchProcess):
                engine.shutdown()
        self._page.close()

    async def respond(self, call: Call, timeline: Timeline | None = None) -> tuple[Head, AsyncGenerator[str, None]]:
        """A head, and one JSON body or the pieces of an event stream; closing the pieces early frees the sequence. The `timeline` of a call
        that is traced is complete with its last piece.

        Raises:
            EngineDead: the engine ended before it answered; later than that, the stream tells.
        """
        assert self._engine is not None, "start() comes first"
        try:
            asked = None if call.lookahead is None else await self._asked(call, call.lookahead)
        except InvalidLookahead as error:
            field = ".".join(filter(None, ("lookahead", error.field)))
            return Head(HTTPStatus.BAD_REQUEST, stream=False), _whole(create_error_response(error.message, param=field).model_dump_json())
        except (ChannelError, GrammarMemoryFull) as error:
            status = HTTPStatus.SERVICE_UNAVAILABLE
            refusal = create_error_response(f"a grammar of the reward: {error}", status.phrase, status)
            return Head(status, stream=False), _whole(refusal.model_dump_json())
        if not self._engine.vllm_config.model_config.is_multimodal_model and (fault := refused_images(call.body)):
            # vLLM calls it a fault of the server.
            message, place = fault
            refusal = create_error_response(message, param=place)
            return Head(HTTPStatus.BAD_REQUEST, stream=False), _whole(refusal.model_dump_json())
        account = self._engine.follow(call.request_id, asked, call.trace, timeline)
        usage = _usage(account, call, asked)
        try:
            answer = await self._serve(call, is_traced=timeline is not None)
        except EngineDeadError as error:
            raise self._dead() from error
        except ValidationError as error:
            message, field = first_fault(error, call.endpoint)
            answer = create_error_response(message, param=field)
        except Exception as error:  # noqa: BLE001  # vLLM's front end raises whatever its web server's handlers map
            answer = create_error_response(error)
        finally:
            # Whoever keeps account of the call has found it by now.
            self._engine.forget(call.request_id)
        if isinstance(answer, ErrorResponse):
            if _is_cancelled():  # vLLM makes an answer of it, which would seem to have cost nothing
                raise asyncio.CancelledError
            if call.constraint is not None and answer.error.message == INTERNAL_ERROR:
                answer.error.message = GRAMMAR_FAILED
            answer.error.param = refused_field(answer.error.param, answer.error.message, call.endpoint, call.body)
            return Head(answer.error.code or HTTPStatus.INTERNAL_SERVER_ERROR, stream=False), _whole(answer.model_dump_json())
        if isinstance(answer, AsyncGenerator):
            return Head(HTTPStatus.OK, stream=True), _events(answer, usage, is_constrained=call.constraint is not None)
        return Head(HTTPStatus.OK, stream=False), _whole(usage.whole(answer.model_dump_json()))

    def _dead(self) -> EngineDead:
        """The engine and the one that drafts for it go together: whoever waits for the one that is left hears of it."""
        for engine in filter(None, (self._engine, self._drafts)):
            engine.output_processor.propagate_error(EngineDeadError())
        return EngineDead("the engine process has ended")

    async def _looking(self, engine: KeyedEngine) -> Lookaheads:
        assert engine.children is not None
        tokenizer, drafts = engine.get_tokenizer(), None
        self._wished = await asyncio.to_thread(WishedGrammars, self._settings.tokenizer, self._rewards)
        if self._settings.draft is not None:
            self._drafts = await start_draft(self._settings.drafting(self._settings.draft), self._settings, self._channel)
            await self._drafts.reset_mm_cache()
            drafts = self._drafts.children

        def text_of(tokens: Sequence[int]) -> str:
            return str(tokenizer.decode(list(tokens), skip_special_tokens=True))

        return Lookaheads(engine, engine.children, drafts, text_of, self._settings.reward_deadline_s)

    async def _asked(self, call: Call, lookahead: Lookahead) -> Asked:
        """Raises InvalidLookahead, ChannelError, GrammarMemoryFull."""
        if not self._settings.lookahead:
            raise InvalidLookahead("", "this service does not look ahead")
        if lookahead.method is not Method.CDLH and self._drafts is None:
            raise InvalidLookahead("method", f"{lookahead.method} needs a draft model, which this service has not")
        assert self._wished is not None, "start() comes first"
        return await self._wished.thread.run(call.tenant, self._built, self._wished, call, lookahead)

    def _built(self, wished: WishedGrammars, call: Call, lookahead: Lookahead) -> Asked:
        reward = built(lookahead.reward, wished.sources(call.wished, self._channel, call.tenant))
        canonical = wished.own_sequences() if _is_canonical(call) else None
        return Asked(lookahead, reward, LookaheadFigures(), Traces() if lookahead.trace else None, canonical)

    def _load(self, config: VllmConfig) -> KeyedEngine:
        if not self._settings.on_gpu:
            fork_cores()
        own = {"traces_all": self._settings.otlp_endpoint is None}  # of an endpoint in `engine_args`, only vLLM knows
        return KeyedEngine(config, executor_class(config), log_stats=True, usage_context=USAGE, log_requests=False, **own)

    async def _serve(self, call: Call, is_traced: bool) -> Any:
        body = with_ours(call, is_followed=call.constraint is not None or call.lookahead is not None or is_traced)
        CURRENT_TENANT.set(call.tenant)
        if call.endpoint not in GENERATING:
            return await self._tokenize(call)
        if call.endpoint is Endpoint.CHAT:
            return await self._state.openai_serving_chat.create_chat_completion(ChatCompletionRequest.model_validate(body))
        return await self._state.openai_serving_completion.create_completion(CompletionRequest.model_validate(body))

    async def _tokenize(self, call: Call) -> Any:
        tokenizing = self._state.serving_tokenization
        if call.endpoint is Endpoint.DETOKENIZE:
            return await tokenizing.create_detokenize(DetokenizeRequest.model_validate(call.body), None)
        kind = TokenizeChatRequest if "messages" in call.body else TokenizeCompletionRequest
        return await tokenizing.create_tokenize(kind.model_validate(call.body), None)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def with_ours(call: Call, *, is_followed: bool) -> dict[str, Any]:
    """The body of a call, and what the engine is to know beside it. `is_followed`: what it does for the call finds its way back."""
    key = {} if call.constraint is None else {KEY_ARGUMENT: call.constraint.key}
    followed = {CALL_ARGUMENT: call.request_id} if is_followed else {}
    ours = {**key, **followed, **({TENANT_ARGUMENT: call.tenant} if call.tenant else {})}
    theirs = call.body.get("vllm_xargs") or {}
    # What is no object is left to vLLM, which refuses it.
    told = {"vllm_xargs": {**theirs, **ours}} if ours and isinstance(theirs, Mapping) else {}
    return {**call.body, **told, "request_id": call.request_id}


def _usage(account: ForcedAccount, call: Call, asked: Asked | None) -> ForcedUsage:
    def more() -> dict[str, Any]:
        told = {"not_canonical": account.not_canonical} if _is_canonical(call) else {}
        if account.drafted:
            # As OpenAI tells them of what a client predicts.
            rejected = account.drafted - account.accepted
            told |= {"accepted_prediction_tokens": account.accepted, "rejected_prediction_tokens": rejected}
        if CLOSE_ARGUMENT in (call.body.get("vllm_xargs") or {}):
            told["closed_at_limit"] = account.closed
        if asked is None:
            return told
        left_out = {} if asked.traces is None else {"steps_left_out": asked.traces.left_out}
        return {**told, "lookahead": {**asked.figures.as_dict(), **left_out}}

    traces = None if asked is None else asked.traces
    return ForcedUsage(account, call.mark_forced, more, {} if traces is None else {LOOKAHEAD_STEPS: traces.new_steps})


def _is_canonical(call: Call) -> bool:
    return call.constraint is not None and call.constraint.spec.canonical


async def _whole(answer: str) -> AsyncGenerator[str, None]:
    yield answer


async def _events(events: AsyncGenerator[str, None], usage: ForcedUsage, *, is_constrained: bool) -> AsyncGenerator[str, None]:
    async with aclosing(events):
        async for event in events:
            is_failure = is_constrained and event.startswith('data: {"error"')
            yield usage.event(event.replace(INTERNAL_ERROR, GRAMMAR_FAILED) if is_failure else event)
