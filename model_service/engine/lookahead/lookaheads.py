"""Requests that look ahead (vLLM 0.32: `v1/engine/async_llm.py`, `v1/engine/output_processor.py`, `v1/metrics/stats.py`).

Such a request is known to the engine's output processor and not to its core: there it has children, which come and go. What its machine
says is put where the core's outputs come in, so that text, stop strings, deltas, usage and metrics are vLLM's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus

from vllm.exceptions import GracefulHTTPError
from vllm.v1.engine import EngineCoreEvent, EngineCoreEventType, EngineCoreOutput, EngineCoreRequest, FinishReason
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError
from vllm.v1.metrics.stats import IterationStats, PrefillStats

from grammar_service.canonical.automaton import CanonicalAutomaton
from model_service.engine.lookahead.children import Children
from model_service.engine.lookahead.engine_model import EngineModel
from model_service.engine.lookahead.own_tokens import OwnTokens
from model_service.errors import InvalidScore, LookaheadError, RewardFailed, RewardLate
from model_service.lookahead import Stop, machine_for
from model_service.lookahead.driver import Driver
from model_service.lookahead.figures import LookaheadFigures
from model_service.lookahead.instructions import End, Tokens
from model_service.lookahead.judging import TextJudge
from model_service.lookahead.request import Lookahead
from model_service.lookahead.rewards import Scoring
from model_service.lookahead.totals import LookaheadTotals
from model_service.lookahead.trace import Traces
from model_service.output_marks import Mark, marked

_STATUS = {RewardLate: HTTPStatus.GATEWAY_TIMEOUT, InvalidScore: HTTPStatus.BAD_GATEWAY, RewardFailed: HTTPStatus.BAD_GATEWAY}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request wants of its look-ahead, and who keeps account of it; `traces` None: what is tried is not told. `canonical`: the
    sequences that it is to keep to, None: any."""

    lookahead: Lookahead
    reward: Scoring
    figures: LookaheadFigures
    traces: Traces | None = None
    canonical: CanonicalAutomaton | None = None


class Lookaheads:
    """Of one engine. `draft`: requests to the engine that drafts, None: there is none; `text_of`: what tokens say; `deadline_s`: how long
    the rewards of a step may take."""

    def __init__(
        self, engine: AsyncLLM, children: Children, draft: Children | None, text_of: Callable[[Tokens], str], deadline_s: float
    ) -> None:
        self._engine = engine
        self._children = children
        self._draft = draft
        self._text_of = text_of
        self._deadline_s = deadline_s
        self._running: dict[str, asyncio.Task[None]] = {}
        self.totals = LookaheadTotals()

    def begin(self, request: EngineCoreRequest, asked: Asked, choice: int) -> None:
        """The output processor knows the request by now; the answer's choice of that number is its text."""
        self._engine._run_output_handler()
        task = asyncio.create_task(self._drive(request, asked, choice))
        self._running[request.request_id] = task
        task.add_done_callback(lambda _: self._running.pop(request.request_id, None))

    def sweep(self) -> None:
        """End those that the output processor knows no more: nobody waits for them."""
        for request_id, task in self._running.items():
            if not self._engine.output_processor.has_request(request_id):
                task.cancel()

    async def _drive(self, request: EngineCoreRequest, asked: Asked, choice: int) -> None:
        try:
            await self._said(request, asked, choice)
        except EngineDeadError:
            self._failed(request, EngineDeadError())
        except LookaheadError as error:
            self.totals.failed(error)
            self._failed(request, GracefulHTTPError(str(error), _STATUS.get(type(error), HTTPStatus.INTERNAL_SERVER_ERROR)))
        except Exception as error:  # noqa: BLE001  # the task's outermost frame: whoever waits for the answer hears of it
            self._failed(request, error)

    async def _said(self, request: EngineCoreRequest, asked: Asked, choice: int) -> None:
        began, first = time.monotonic(), True
        stop, lookahead = self._stop(request), asked.lookahead
        target = EngineModel(self._children, request)
        draft = EngineModel(self._draft, request) if self._draft is not None else None
        machine = machine_for(lookahead.method, lookahead.parameters, stop, lookahead.seed)
        asked.figures.add(machine.account)
        judge = TextJudge(asked.reward, lambda text: self._text_of(text[:-1] if stop.ended(text) else text), self._deadline_s)
        trace = None if asked.traces is None else asked.traces.begin(choice, self._text_of)
        own = None if asked.canonical is None else OwnTokens(asked.canonical, stop.ends)
        try:
            async with aclosing(Driver(machine, lookahead.parameters, target, draft, judge, trace).run()) as said:
                async for tokens, end in said:
                    output = _output(request, tokens, end)
                    if first:
                        _begin(output, request, began, target.cached)
                    first = False
                    if own is not None and own.are_left(tokens):
                        output.num_nans_in_logits = marked(output.num_nans_in_logits, Mark.NOT_CANONICAL)
                    if not self._put(output):
                        return
        finally:
            self.totals.ended(machine.account, judge.seconds)

    def _stop(self, request: EngineCoreRequest) -> Stop:
        # One token behind the last draft is always computed, and must find a place.
        room = self._engine.model_config.max_model_len - 1 - len(request.prompt_token_ids or ())
        params = request.sampling_params
        return Stop(max(0, min(params.max_tokens, room)), frozenset(params.all_stop_token_ids))

    def _put(self, output: EngineCoreOutput) -> bool:
        """Whether the answer goes on."""
        stats = IterationStats() if self._engine.log_stats else None
        done = self._engine.output_processor.process_outputs([output], time.monotonic(), stats)
        if self._engine.logger_manager is not None:
            self._engine.logger_manager.record(None, stats)
        return not done.reqs_to_abort and output.finish_reason is None

    def _failed(self, request: EngineCoreRequest, error: Exception) -> None:
        state = self._engine.output_processor.request_states.get(request.request_id)
        self._engine.output_processor.abort_requests([request.request_id], internal=True)
        if state is not None and state.queue is not None:
            state.queue.put(error)


def _output(request: EngineCoreRequest, tokens: Tokens, end: End | None) -> EngineCoreOutput:
    output = EngineCoreOutput(request.request_id, list(tokens))
    if end is not None:
        output.finish_reason = FinishReason.LENGTH if end.cut else FinishReason.STOP
        if not end.cut and tokens[-1] != request.sampling_params.eos_token_id:
            output.stop_reason = tokens[-1]
    return output


def _begin(output: EngineCoreOutput, request: EngineCoreRequest, began: float, cached: int) -> None:
    """What the core would tell with a first output."""
    output.events = [EngineCoreEvent.new_event(kind, began) for kind in (EngineCoreEventType.QUEUED, EngineCoreEventType.SCHEDULED)]
    output.prefill_stats = PrefillStats()
    output.prefill_stats.set(len(request.prompt_token_ids or ()), cached, 0)
