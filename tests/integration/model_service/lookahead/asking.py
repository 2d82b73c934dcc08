"""Asks a running engine what look-aheads ask."""

from __future__ import annotations

from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from grammar_service.spec import GrammarSpec
from model_service.lookahead.instructions import Ahead, Row, Tokens
from tests.integration.model_service.running_engine import RunningEngine

if TYPE_CHECKING:
    from model_service.engine.lookahead.engine_model import EngineModel

END = 1
VOCABULARY = 2048


def prompt_of(length: int, seed: int = 0) -> Tokens:
    """Any tokens but those of the template."""
    chance = Random(f"{seed}-{length}")
    return tuple(chance.randrange(300, VOCABULARY) for _ in range(length))


class Asking:
    """For texts after one prompt. `ends`: whether they end where the model ends them."""

    def __init__(
        self, engine: RunningEngine, prompt: Tokens, spec: GrammarSpec | None = None, salt: str | None = None, *, ends: bool = True
    ) -> None:
        self._engine = engine
        self._prompt = prompt
        self._spec = spec
        self._salt = salt
        self._ends = ends

    def verify(self, said: Tokens, drafts: Tokens, likeliest: int = 3) -> tuple[Row, ...]:
        with ExitStack() as held:
            rows: tuple[Row, ...] = self._engine._run(self.model(held).verify(said, drafts, likeliest))
        return rows

    def roll(self, *texts: Tokens, length: int, scored: bool = False) -> tuple[Ahead, ...]:
        with ExitStack() as held:
            asked = self.model(held).roll(texts, [length] * len(texts), scored=scored)
            aheads: tuple[Ahead, ...] = self._engine._run(asked)
        return aheads

    def model(self, held: ExitStack) -> EngineModel:
        from model_service.engine.lookahead.engine_model import EngineModel

        running = self._engine.engine._engine
        assert running is not None
        assert running.children is not None
        return EngineModel(running.children, self._request(held))

    def _request(self, held: ExitStack) -> Any:
        from vllm.sampling_params import SamplingParams
        from vllm.v1.engine import EngineCoreRequest

        from model_service.engine.key_constraint import key_constraint

        params = SamplingParams(temperature=0, max_tokens=100)
        if self._ends:
            params.update_from_generation_config({}, END)
        if self._spec is not None:
            params.structured_outputs = key_constraint(self._engine._offered(self._spec, held).key)
        return EngineCoreRequest(uuid4().hex, list(self._prompt), None, params, None, 0.0, None, self._salt, None)
