"""A replica whose engine has other tokens than those that the compile pool makes masks for does not start."""

from __future__ import annotations

import pytest

from grammar_service.artifacts.cache import MemoryCache, TieredCache
from grammar_service.compiler.source import GrammarSource
from grammar_service.limits import Limits
from grammar_service.messages import Compiled, CompileRequest, Refusal
from model_service.errors import EngineSettingsError
from model_service.replica import ModelReplica
from tests.integration.model_service.running_engine import SETTINGS, prepared_environment


@pytest.mark.asyncio
async def test_an_engine_with_other_tokens_is_refused_in_a_sentence() -> None:
    async def compiles(request: CompileRequest) -> Compiled | Refusal:
        raise AssertionError(f"nothing is compiled: {request.key}")

    async def source() -> GrammarSource:
        return GrammarSource(TieredCache(MemoryCache(1 << 20), None), compiles, (b"secret",), "0f" * 32, Limits())

    with prepared_environment(SETTINGS):
        replica = ModelReplica(SETTINGS, source, "other tokens")
        try:
            with pytest.raises(EngineSettingsError, match="the compile pool has other tokens than the engine"):
                await replica.start()
        finally:
            await replica.close()
