"""The compile pool's deployment: a `GrammarCompiler` in Ray Serve's clothes."""

from __future__ import annotations

from deployments.builders import open_cache, sandbox_settings, secret, tokenizer_source
from deployments.config import Settings
from deployments.grammars.traced import Compiler, TracedCompiler
from deployments.names import COMPILER
from deployments.replica_process import listen_on_node_only
from deployments.telemetry.logs import about_request, log_json, trace_id_of
from deployments.telemetry.metrics import CompileMetrics, GrammarMetrics
from deployments.tracing.opening import close_tracing, open_tracing
from grammar_service.compiler.service import GrammarCompiler
from grammar_service.heap import HeapWatch, settle_heap
from grammar_service.messages import AnswerCheck, Compiled, CompileRequest, Prepared, Refusal, Verdicts
from grammar_service.relaxation import Relax
from grammar_service.resolve import Resolution
from grammar_service.spec import GrammarSpec


class CompilerDeployment:
    """One compile replica."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Ray Serve awaits constructors
        if settings.telemetry.logs == "json":
            log_json(COMPILER)
        listen_on_node_only()
        grammar = settings.grammar
        self._compiler = GrammarCompiler(
            tokenizer=tokenizer_source(settings),
            deadline_s=grammar.compile_deadline_s,
            sandbox=sandbox_settings(settings),
            cache=open_cache(settings),
            secret=secret(settings),
            head_start_s=settings.redis.head_start_ms / 1000,
            times=CompileMetrics(),
        )
        await self._compiler.start()
        self._tracing = open_tracing(settings, COMPILER)
        self._answering: Compiler = self._compiler if self._tracing is None else TracedCompiler(self._compiler, self._tracing)
        settle_heap()
        self._heap = HeapWatch()
        self._metrics = GrammarMetrics("compiler")

    async def fingerprint(self) -> str:
        """The tokenizer's fingerprint, which is part of every key."""
        return self._compiler.fingerprint

    async def prepare(self, request: CompileRequest) -> Prepared | Refusal:
        """Have the artifact made and kept, without sending what is large."""
        answer = await self.compile(request)
        return answer if isinstance(answer, Refusal) else Prepared.of(answer)

    async def resolve(self, spec: GrammarSpec, tenant: str, relax: Relax = Relax.NOTHING) -> Resolution | Refusal:
        about_request("", tenant, "")
        return await self._compiler.resolve(spec, tenant, relax)

    async def judge(self, check: AnswerCheck) -> Verdicts | Refusal:
        about_request("", check.tenant, "")
        return await self._compiler.judge(check)

    async def compile(self, request: CompileRequest) -> Compiled | Refusal:
        about_request(request.request_id, request.tenant, trace_id_of(request.trace))
        answer = await self._answering.compile(request)
        await self._count()
        return answer

    async def check_health(self) -> None:
        await self._compiler.check_health()
        self._heap.check()
        # What was compiled behind an answer is counted though no other request follows.
        await self._count()

    async def _count(self) -> None:
        self._metrics.update(await self._compiler.counters())

    async def __del__(self) -> None:
        # Ray Serve awaits this when it stops a replica, also one whose constructor failed.
        if hasattr(self, "_compiler"):
            await self._compiler.close()
        await close_tracing(getattr(self, "_tracing", None))
