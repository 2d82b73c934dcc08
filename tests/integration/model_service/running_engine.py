"""A real engine on the embedded model, without Ray: grammars are compiled here and offered as a replica would offer them."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import backend_named
from grammar_service.limits import Limits
from grammar_service.messages import ReadyGrammar
from grammar_service.resolve import resolve
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.artifact_channel import ArtifactServer, Payload
from model_service.engine.environment import prepare_environment
from model_service.errors import EngineSettingsError
from model_service.lookahead.request import read
from model_service.lookahead.rewards import Scoring
from model_service.messages import Call, Endpoint
from model_service.settings import EngineSettings
from tests.e2e.service import wait_for

if TYPE_CHECKING:
    from model_service.engine.engine import Engine

MODEL = "tested"
CONTEXT = 2048
"""Tokens of prompt and answer together."""
SETTINGS = EngineSettings(
    str(EMBEDDED_WEIGHTS),
    MODEL,
    dtype="float32",
    max_model_len=CONTEXT,
    max_num_seqs=64,
    tool_call_parser="hermes",
    cpu_kv_cache_gib=0.25,
)
"""In full precision: what is computed in one forward and what in several then differ too little to change an answer."""
LIMITS = Limits(512 * 1024, 64, 10_000)


@dataclass(frozen=True)
class Answer:
    """Of one choice: its text and token ids, why it ended, and what the usage says of the whole call."""

    text: str
    tokens: tuple[int, ...]
    finish_reason: str
    usage: dict[str, Any]
    choice: dict[str, Any]
    prompt: tuple[int, ...] = ()

    @property
    def forced(self) -> int:
        return int(self.usage["completion_tokens_details"]["forced_tokens"])


class RunningEngine:
    """Asks one engine, several requests at a time."""

    def __init__(self, settings: EngineSettings, rewards: Mapping[str, Scoring] = MappingProxyType({})) -> None:
        prepare_environment(settings)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = ArtifactServer(f"maskcast-test-{uuid4().hex}")
        self._tokenizer = GrammarTokenizer.load(settings.tokenizer)
        self._payloads: dict[str, Payload] = {}
        self.engine: Engine = self._run(self._start(settings, rewards))

    async def _start(self, settings: EngineSettings, rewards: Mapping[str, Scoring]) -> Engine:
        from model_service.engine.engine import Engine  # vLLM reads the environment when it is imported

        await self._server.start()
        engine = Engine(settings, self._server.name, rewards)
        try:
            await engine.start()
        except EngineSettingsError:
            engine.close()
            raise
        return engine

    def close(self) -> None:
        self.engine.close()
        self._run(self._server.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def ask(self, question: str, spec: GrammarSpec | None = None, **fields: Any) -> Answer:
        return self.ask_all([(question, spec, fields)])[0]

    def ask_all(
        self, requests: Sequence[tuple[str, GrammarSpec | None, dict[str, Any]]], finished: Callable[[int], None] = lambda _: None
    ) -> list[Answer]:
        """The first choice of each answer; all requests at once. `finished` is told how many have been answered, after each."""
        for _, spec, _ in requests:
            if spec is not None:
                self._compiled(spec)  # not in the event loop, where engine cores fetch what others need, and do not wait for long
        counting = count(1)

        async def one(request: tuple[str, GrammarSpec | None, dict[str, Any]]) -> Answer:
            answer = await self._ask(*request)
            finished(next(counting))
            return answer

        async def all_of_them() -> list[Answer]:
            return await asyncio.gather(*map(one, requests))

        answers: list[Answer] = self._run(all_of_them())
        return answers

    def events(self, question: str, spec: GrammarSpec | None = None, *, mark_forced: bool = False, **fields: Any) -> list[dict[str, Any]]:
        """The events of a streamed answer."""
        text: str = self._run(self._text(question, spec, {"stream": True, **fields}, mark_forced))
        return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: {")]

    def body(self, question: str, spec: GrammarSpec | None = None, *, mark_forced: bool = False, **fields: Any) -> dict[str, Any]:
        """A whole answer, as JSON."""
        body: dict[str, Any] = json.loads(self._run(self._text(question, spec, fields, mark_forced)))
        return body

    def completion(self, prompt: str, spec: GrammarSpec, **fields: Any) -> str:
        """The text that goes on behind a prompt that is no chat."""
        with ExitStack() as held:
            body = {"model": MODEL, "prompt": prompt, "max_tokens": 96, "temperature": 0, **fields}
            call = Call(Endpoint.COMPLETION, uuid4().hex, body, self._offered(spec, held))
            answer = json.loads(self._run(self._whole(call)))
        text: str = answer["choices"][0]["text"]
        return text

    def mask_counts(self) -> list[Counter[str]]:
        """Of each worker: the frames that were `mapped`, and those that came `inline`."""
        counts = self._run(self.engine._engine.collective_rpc("mask_counts"))  # type: ignore[union-attr]  # it has started
        return [Counter(count) for count in counts]

    def abandon(self, question: str, spec: GrammarSpec | None, after: int, lookahead: dict[str, Any] | None = None) -> None:
        """Leave a streamed answer after some of its pieces."""

        async def leave() -> None:
            with ExitStack() as held:
                body = {"model": MODEL, "messages": [{"role": "user", "content": question}], "max_tokens": 400, "stream": True}
                grammar = self._offered(spec, held) if spec else None
                call = Call(Endpoint.CHAT, uuid4().hex, body, grammar, lookahead=read(lookahead) if lookahead else None)
                _, pieces = await self.engine.respond(call)
                async with aclosing(pieces):
                    for _ in range(after):
                        await anext(pieces)

        self._run(leave())

    def cancel(self, body: dict[str, Any], endpoint: Endpoint) -> bool:
        """Cancel a call that the engine is computing; whether it has ended so."""

        async def cancelled() -> bool:
            before = self.engine.running
            asked = asyncio.create_task(self.engine.respond(Call(endpoint, uuid4().hex, {"model": MODEL, **body}, None)))
            await asyncio.to_thread(wait_for, lambda: self.engine.running > before, 60, "the engine has it")
            asked.cancel()
            await asyncio.wait([asked])
            return asked.cancelled()

        return bool(self._run(cancelled()))

    async def _ask(self, question: str, spec: GrammarSpec | None, fields: dict[str, Any]) -> Answer:
        body = json.loads(await self._text(question, spec, fields))
        assert "choices" in body, body
        choice = body["choices"][0]
        tokens = tuple(choice["token_ids"] or ())
        return Answer(
            choice["message"]["content"] or "",
            tokens,
            choice["finish_reason"],
            body["usage"],
            choice,
            tuple(body["prompt_token_ids"] or ()),
        )

    async def _text(self, question: str, spec: GrammarSpec | None, fields: dict[str, Any], mark_forced: bool = False) -> str:
        messages = [{"role": "user", "content": question}]
        body = {"model": MODEL, "messages": messages, "max_tokens": 96, "temperature": 0, "return_token_ids": True, **fields}
        lookahead, specs = body.pop("lookahead", None), body.pop("wished", ())
        with ExitStack() as held:
            grammar = self._offered(spec, held) if spec else None
            wished = tuple(self._offered(one, held) for one in specs)
            asked = read(lookahead) if lookahead else None
            return await self._whole(Call(Endpoint.CHAT, uuid4().hex, body, grammar, mark_forced, lookahead=asked, wished=wished))

    async def _whole(self, call: Call) -> str:
        _, pieces = await self.engine.respond(call)
        return "".join([piece async for piece in pieces])

    def _offered(self, spec: GrammarSpec, held: ExitStack) -> ReadyGrammar:
        grammar = self._compiled(spec)
        held.enter_context(self._server.offered(grammar.key, lambda: self._payloads[grammar.key]))
        return grammar

    def _compiled(self, spec: GrammarSpec) -> ReadyGrammar:
        grammar = resolve(spec, LIMITS, self._tokenizer.fingerprint).ready()
        if grammar.key not in self._payloads:
            data = backend_named(grammar.backend).compile(spec, self._tokenizer).data
            self._payloads[grammar.key] = Payload(grammar.backend, data)
        return grammar

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(300)


@contextmanager
def prepared_environment(settings: EngineSettings) -> Iterator[None]:
    """That of an engine's process, without one: for parts of it that are played here."""
    wanted: dict[str, str] = {}
    prepare_environment(settings, wanted)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in wanted.items():
            patch.setenv(name, value)
        yield


@contextmanager
def running_engine(rewards: Mapping[str, Scoring] = MappingProxyType({}), **changes: Any) -> Iterator[RunningEngine]:
    """An engine with the tests' settings, changed; requests can name the `rewards`."""
    before = dict(os.environ)
    try:
        with closing(RunningEngine(replace(SETTINGS, **changes), rewards)) as engine:
            yield engine
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
