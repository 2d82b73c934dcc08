"""The compile pool's deployment: a `GrammarCompiler` in Ray Serve's clothes."""

from __future__ import annotations

from deployments.builders import limits, model_path, open_cache, secret
from deployments.config import Settings
from deployments.telemetry import GrammarMetrics
from grammar_service.messages import Compiled, CompileRequest, Refusal
from grammar_service.service import GrammarCompiler


class CompilerDeployment:
    """One compile replica."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Ray Serve awaits constructors
        grammar = settings.grammar
        self._compiler = GrammarCompiler(
            tokenizer_path=model_path(settings),
            vocab_size=None,
            limits=limits(settings),
            deadline_s=grammar.compile_deadline_s,
            memory_limit_bytes=grammar.compile_memory_mib << 20,
            cache=open_cache(settings),
            secret=secret(settings),
        )
        await self._compiler.start()
        self._metrics = GrammarMetrics("compiler")

    async def fingerprint(self) -> str:
        """The tokenizer's fingerprint, which is part of every key."""
        return self._compiler.fingerprint

    async def prepare(self, request: CompileRequest) -> Refusal | None:
        """Have the artifact made and kept, without sending it."""
        answer = await self.compile(request)
        return answer if isinstance(answer, Refusal) else None

    async def compile(self, request: CompileRequest) -> Compiled | Refusal:
        answer = await self._compiler.compile(request)
        self._metrics.update(await self._compiler.counters())
        return answer

    async def check_health(self) -> None:
        await self._compiler.check_health()

    async def __del__(self) -> None:
        # Ray Serve awaits this when it stops a replica, also one whose constructor failed.
        if hasattr(self, "_compiler"):
            await self._compiler.close()
