"""One model replica: an engine, the grammars it needs, and how the two meet.

A plain class; `deployments.app` makes a Ray Serve deployment of it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import ExitStack, aclosing
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from grammar_service.compiler.source import GrammarSource
from grammar_service.errors import GrammarError, MaskcastError, PoolBusy, PoolUnavailable
from grammar_service.messages import ReadyGrammar, Refusal
from grammar_service.spec import GrammarKind, GrammarSpec
from model_service.artifact_channel import ArtifactServer, PayloadView
from model_service.core_figures import CoreFigures, fingerprint_number
from model_service.engine.environment import prepare_environment
from model_service.engine.forking import begin_importing
from model_service.engine_keeper import EngineKeeper, Laps
from model_service.errors import EngineDead, EngineSettingsError
from model_service.lookahead.rewards import Scoring
from model_service.messages import Call, Endpoint, ReplicaStatus
from model_service.replies import ENGINE_DEAD, Failure, Head
from model_service.settings import EngineSettings
from model_service.timeline import Timeline

if TYPE_CHECKING:
    from model_service.engine.engine import Engine

WARM_UP: Final = GrammarSpec(GrammarKind.JSON_OBJECT, "")
logger = logging.getLogger(__name__)


class ModelReplica:
    """`open_source` waits for the compile pool and gives what finds artifacts; `name` tells replicas apart in status and logs; `rewards`:
    those that requests may name."""

    def __init__(
        self,
        settings: EngineSettings,
        open_source: Callable[[], Awaitable[GrammarSource]],
        name: str,
        rewards: Mapping[str, Scoring] = MappingProxyType({}),
    ) -> None:
        self._settings = settings
        self._open_source = open_source
        self._opened: GrammarSource | None = None
        self._name = name
        self._rewards = rewards
        self._artifacts = ArtifactServer(f"maskcast-{os.getpid()}-{name}")
        self._keeper: EngineKeeper[Engine] = EngineKeeper(self._make_engine, settings.hang_s)

    async def start(self) -> None:
        """Load the engine and warm it up; takes from half a minute to minutes."""
        prepare_environment(self._settings)
        if not self._settings.on_gpu:
            begin_importing()
        await self._artifacts.start()
        await self._keeper.start()

    async def close(self) -> None:
        await self._keeper.close()
        await self._artifacts.close()
        if self._opened is not None:
            await self._opened.close()

    @property
    def _source(self) -> GrammarSource:
        assert self._opened is not None, "start() comes first"
        return self._opened

    async def check_health(self) -> None:
        """Raises EngineDead, on which the replica is to be replaced."""
        await self._keeper.check_health()

    async def status(self) -> ReplicaStatus:
        """Of the engine that runs now; where none does, none of its figures."""
        grammar, restarts = self._source.counters(), self._keeper.restarts
        if (engine := self._keeper.current) is None:
            return ReplicaStatus(self._name, 0, grammar, restarts=restarts, restart_s=self._keeper.restart_s)
        forced = engine.forced
        jumps = {"forced_tokens": forced.tokens, "forced_segments": forced.segments, "steps_saved": forced.steps_saved}
        load, step = engine.outstanding_prefill_tokens, engine.step_tokens
        lookaheads, restart_s = engine.lookaheads, self._keeper.restart_s
        return ReplicaStatus(
            self._name, engine.running, grammar, jumps, load, step, engine.core, restarts, lookaheads, restart_s, engine.facts
        )

    @property
    def core(self) -> CoreFigures:
        """What the core of the engine that runs now has counted; where none does, nothing."""
        engine = self._keeper.current
        return engine.core if engine is not None else CoreFigures()

    async def respond(self, call: Call, timeline: Timeline | None = None) -> AsyncGenerator[Head | Failure | str, None]:
        """A head and the body, or a failure in place of the head. Every call is answered; one that an engine has failed to answer before
        waits for this one, should that be on its way. `timeline` is for a call that is traced."""
        try:
            engine = await self._keeper.engine(self._settings.restart_wait_s if call.avoid else 0)
        except EngineDead as error:
            yield Failure(ENGINE_DEAD, str(error), replica=self._name, computing=False)
            return
        async with aclosing(self._answer(engine, call, timeline)) as items:
            async for item in items:
                yield item

    async def _answer(self, engine: Engine, call: Call, timeline: Timeline | None = None) -> AsyncGenerator[Head | Failure | str, None]:
        try:
            with ExitStack() as held:
                for grammar in (call.constraint, *call.wished):
                    if grammar is not None:
                        held.enter_context(self._artifacts.offered(grammar.key, await self._payload(grammar)))
                head, pieces = await engine.respond(call, timeline)
                yield head
                async with aclosing(pieces):
                    async for piece in pieces:
                        yield piece
        except (GrammarError, PoolBusy, PoolUnavailable) as error:
            refusal = Refusal.of(error)
            yield Failure(refusal.code, refusal.message, refusal.pointer)
        except EngineDead as error:
            self._keeper.ended(engine)
            yield Failure(ENGINE_DEAD, str(error), replica=self._name)

    async def _make_engine(self, laps: Laps) -> Engine:
        from model_service.engine.engine import Engine  # vLLM reads the environment when it is imported

        engine = Engine(self._settings, self._artifacts.name, self._rewards)
        try:
            await engine.start()
            laps.lap("loading")
            if self._opened is None:
                # Only now, so that the engine and the pool start side by side.
                self._opened = await self._open_source()
                laps.lap("compile pool")
            self._check_vocabulary(engine)
            await self._warm_up(engine)
            laps.lap("warm-up")
        except BaseException:
            engine.close()
            raise
        return engine

    def _check_vocabulary(self, engine: Engine) -> None:
        """Raises EngineSettingsError: masks that the pool has made would be of other tokens than the engine's."""
        if engine.core.vocabulary != fingerprint_number(self._source.fingerprint):
            raise EngineSettingsError(
                "the compile pool has other tokens than the engine: do the nodes have the same files, and are `tokenizer`, `revision` and "
                "`hf_overrides` in model.engine_args?"
            )

    async def _payload(self, grammar: ReadyGrammar) -> Callable[[], PayloadView]:
        artifact = await self._source.get(grammar)
        # The engine core mostly has the grammar already: only a fetch pays for expanding the payload.
        return lambda: PayloadView(artifact.header.backend, artifact.payload())

    async def _warm_up(self, engine: Engine) -> None:
        """The first requests on an engine take seconds."""
        constraint = self._source.resolve(WARM_UP)
        for number, (endpoint, body, constrained) in enumerate(_warm_up_calls(self._settings.served_name)):
            call = Call(endpoint, f"warm-up-{number}", body, constraint if constrained else None)
            accepted = (200, 400) if endpoint is Endpoint.CHAT else (200,)  # models without a chat template refuse chats
            async for item in self._answer(engine, call):
                if isinstance(item, Failure) or (isinstance(item, Head) and item.status not in accepted):
                    raise MaskcastError(f"the engine failed its warm-up: {item}")


def _warm_up_calls(model: str) -> list[tuple[Endpoint, dict[str, Any], bool]]:
    """Bodies, and whether to constrain them: greedy and sampled, with log probabilities, alone and in twos; and a chat."""
    common = {"model": model, "max_tokens": 8}
    text = {**common, "prompt": "Say something."}
    return [
        (Endpoint.CHAT, {**common, "messages": [{"role": "user", "content": "Say something."}], "temperature": 0}, False),
        (Endpoint.COMPLETION, {**text, "temperature": 0}, True),
        (Endpoint.COMPLETION, {**text, "temperature": 1, "top_p": 0.9, "seed": 1, "n": 2}, True),
        (Endpoint.COMPLETION, {**text, "temperature": 1, "logprobs": 1}, True),
    ]
