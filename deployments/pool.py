"""How the compile pool is reached through Ray Serve: by key, with its refusals and failures as errors of ours."""

from __future__ import annotations

from typing import Any

from ray.exceptions import RayActorError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from ray.serve.handle import DeploymentHandle

from grammar_service.errors import PoolBusy, PoolUnavailable
from grammar_service.messages import Compiled, CompileRequest, Refusal

ATTEMPTS = 3


class CompilePool:
    """Every request for one key goes to one compile replica, so that the key is compiled once."""

    def __init__(self, handle: DeploymentHandle[Any]) -> None:
        self._handle = handle

    async def prepare(self, request: CompileRequest) -> None:
        """Have the artifact made and kept by the pool.

        Raises:
            GrammarError: it cannot be compiled.
            PoolBusy, PoolUnavailable: not now.
        """
        answer = await self._ask("prepare", request)
        if isinstance(answer, Refusal):
            raise answer.error()

    async def compile(self, request: CompileRequest) -> Compiled | Refusal:
        """The artifact itself. Raises PoolBusy, PoolUnavailable."""
        answer = await self._ask("compile", request)
        assert isinstance(answer, Compiled | Refusal)
        return answer

    async def fingerprint(self) -> str:
        """The fingerprint of the tokenizer that the pool compiles for; waits until the pool is up."""
        answer: str = await self._handle.options(method_name="fingerprint").remote()
        return answer

    async def _ask(self, method: str, request: CompileRequest) -> Compiled | Refusal | None:
        handle = self._handle.options(session_id=request.key, method_name=method)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answer: Compiled | Refusal | None = await handle.remote(request)
                return answer
            except BackPressureError as error:
                raise PoolBusy("the compile pool's queue is full") from error
            except (RayActorError, DeploymentUnavailableError) as error:
                # The replica that owned the key has died; the ring gives the key to another one.
                if attempt == ATTEMPTS:
                    raise PoolUnavailable("the compile replicas keep ending") from error
        raise AssertionError("unreachable")
