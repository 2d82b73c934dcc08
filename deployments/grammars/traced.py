"""The compile pool and its replicas with spans around them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from ray.serve.handle import DeploymentHandle

from deployments.grammars.pool import CompilePool
from deployments.tracing.tracing import Tracing
from grammar_service.messages import Compiled, CompileRequest, Prepared, Refusal
from grammar_service.relaxation import Relax
from grammar_service.resolve import Resolution
from grammar_service.spec import GrammarSpec


class TracedPool(CompilePool):
    """`prepare` and `resolve`: what the ingress waits for."""

    def __init__(self, handle: DeploymentHandle[Any], tracing: Tracing) -> None:
        super().__init__(handle)
        self._tracing = tracing

    async def prepare(self, request: CompileRequest) -> Prepared:
        """See `CompilePool`."""
        asking = self._tracing.current()
        with self._tracing.span("prepare", "client") as span:
            prepared = await super().prepare(replace(request, trace=span.traceparent))
        asking.set(tier=prepared.source)
        return prepared

    async def resolve(self, spec: GrammarSpec, tenant: str, relax: Relax = Relax.NOTHING) -> Resolution:
        """See `CompilePool`."""
        with self._tracing.span("resolve", "client", characters=len(spec.text)):
            return await super().resolve(spec, tenant, relax)


class Compiler(Protocol):
    """What a compile replica asks."""

    async def compile(self, request: CompileRequest) -> Compiled | Refusal: ...


class TracedCompiler:
    """`compile`: where an artifact came from (`tier`), and how long that took, waiting included. What nobody traces has no span."""

    def __init__(self, compiler: Compiler, tracing: Tracing) -> None:
        self._compiler = compiler
        self._tracing = tracing

    async def compile(self, request: CompileRequest) -> Compiled | Refusal:
        """See `GrammarCompiler`."""
        if not request.trace:
            return await self._compiler.compile(request)
        with self._tracing.span("compile", "server", request.trace, kind=str(request.spec.kind)) as span:
            answer = await self._compiler.compile(request)
            if isinstance(answer, Refusal):
                span.fail(answer.code)
            else:
                span.set(tier=answer.source, backend=answer.backend, bytes=len(answer.blob), cost_ms=round(answer.cost_ms, 3))
                span.set(stopgap=answer.key != request.key)
        return answer
