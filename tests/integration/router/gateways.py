"""A gateway in front of replicas without a model, and what it answers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from ray.serve.handle import DeploymentHandle

from deployments.access.caller import ANYBODY
from deployments.access.prefixes import TenantPrefixes
from deployments.api.api_server import request_reader
from deployments.api.call_facts import CallFacts
from deployments.api.checking import AnswerChecker
from deployments.api.constraining import Constraints
from deployments.api.engine_calls import Engines
from deployments.api.gateway import Gateway
from deployments.config import Settings
from deployments.errors import ApiError
from deployments.grammars.pool import CompilePool
from grammar_service.sandbox.background_thread import BackgroundThread
from model_service.messages import Endpoint
from model_service.replies import Head


def gateway_of(settings: Settings, compilers: DeploymentHandle[Any], constraints: Constraints, engines: Engines) -> Gateway:
    checker = AnswerChecker(CompilePool(compilers).judge, lambda event, number: None, 0, 2.0)
    prefixes = TenantPrefixes(b"secret", shared=False)
    return Gateway(request_reader(settings), constraints, engines, CallFacts(2048), checker, prefixes, BackgroundThread())


def asked(gateway: Gateway, number: int | None, tenant: str = "", **fields: Any) -> AsyncGenerator[Head | str, None]:
    """Under the grammar of this number, or under none."""
    body: dict[str, Any] = {"prompt": "x" * 400, **fields}
    if number is not None:
        body["structured_outputs"] = {"choice": [str(number)]}
    return gateway.answer(Endpoint.COMPLETION, body, replace(ANYBODY, name=tenant))


async def answer(gateway: Gateway, number: int | None = None, tenant: str = "", **fields: Any) -> dict[str, Any]:
    async with aclosing(asked(gateway, number, tenant, **fields)) as items:
        head, piece = [item async for item in items]
    assert head == Head(200, stream=True)
    answered: dict[str, Any] = json.loads(str(piece))
    return answered


async def code_of(gateway: Gateway, **fields: Any) -> str | None:
    """Of the error that a request is answered with."""
    try:
        await answer(gateway, **fields)
    except ApiError as error:
        return error.code
    return None
