"""How the compile pool is reached through Ray Serve: by key, with its refusals and failures as errors of ours."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from hashlib import sha256
from typing import Any

from ray.exceptions import RayActorError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from ray.serve.handle import DeploymentHandle

from deployments.telemetry.logs import current_request_id
from grammar_service.errors import PoolBusy, PoolUnavailable
from grammar_service.messages import AnswerCheck, Compiled, CompileRequest, Prepared, Refusal, Verdicts
from grammar_service.relaxation import Relax
from grammar_service.resolve import Resolution
from grammar_service.spec import GrammarSpec

ATTEMPTS = 3
PATIENCE_S = 30.0
"""A caller whose turn has not come by then may as well come again."""


class CompilePool:
    """Every request for one key goes to one compile replica, so that the key is compiled once."""

    def __init__(self, handle: DeploymentHandle[Any]) -> None:
        self._handle = handle

    async def prepare(self, request: CompileRequest) -> Prepared:
        """Have the artifact made and kept by the pool, or at least its stopgap.

        Raises:
            GrammarError: it cannot be compiled.
            PoolBusy, PoolUnavailable: not now.
        """
        answer = await self._ask("prepare", request.key, _asked(request))
        if isinstance(answer, Refusal):
            raise answer.error()
        assert isinstance(answer, Prepared)
        return answer

    async def compile(self, request: CompileRequest) -> Compiled | Refusal:
        """The artifact itself. Raises PoolBusy, PoolUnavailable."""
        answer = await self._ask("compile", request.key, _asked(request))
        assert isinstance(answer, Compiled | Refusal)
        return answer

    async def resolve(self, spec: GrammarSpec, tenant: str, relax: Relax = Relax.NOTHING) -> Resolution:
        """The resolution of a long spec, or of one of which something may be left out (`relax`). Raises as `prepare` does."""
        answer = await self._ask("resolve", _digest(spec.text), spec, tenant, relax)
        if isinstance(answer, Refusal):
            raise answer.error()
        assert isinstance(answer, Resolution)
        return answer

    async def judge(self, check: AnswerCheck) -> tuple[str | None, ...]:
        """What is wrong with each answer, None where nothing is. Raises PoolBusy, PoolUnavailable."""
        answer = await self._ask("judge", _digest(check.spec.text), check)
        if isinstance(answer, Refusal):
            raise answer.error()
        assert isinstance(answer, Verdicts)
        return answer.faults

    async def fingerprint(self) -> str:
        """The fingerprint of the tokenizer that the pool compiles for; waits until the pool is up."""
        answer: str = await self._handle.options(method_name="fingerprint").remote()
        return answer

    async def _ask(self, method: str, key: str, *arguments: CompileRequest | AnswerCheck | GrammarSpec | str | bool) -> object:
        handle = self._handle.options(session_id=key, method_name=method)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with asyncio.timeout(PATIENCE_S):
                    answer: object = await handle.remote(*arguments)
                return answer
            except BackPressureError as error:
                raise PoolBusy("the compile pool's queue is full") from error
            except TimeoutError:
                raise PoolBusy("the compile pool does not get round to the grammar") from None
            except (RayActorError, DeploymentUnavailableError) as error:
                # The replica that owned the key has died; the ring gives the key to another one.
                if attempt == ATTEMPTS:
                    raise PoolUnavailable("the compile replicas keep ending") from error
        raise AssertionError("unreachable")


def _asked(request: CompileRequest) -> CompileRequest:
    """By the request that this process is about, where it tells its own requests apart."""
    return replace(request, request_id=current_request_id())


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
