"""What a key is charged for calls, and which of its requests take places, at a door without replicas."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import yaml

from deployments.access.api_keys import ApiKeys
from deployments.access.charges import TokenMeter
from deployments.access.key_file import digest_of, new_key
from deployments.access.prefixes import TenantPrefixes
from deployments.api.api_server import request_reader
from deployments.api.call_facts import CallFacts
from deployments.api.checking import AnswerChecker
from deployments.api.engine_calls import Engines
from deployments.api.gateway import Gateway
from deployments.api.protocol import ParsedRequest
from deployments.config import Settings
from deployments.grammars.registry import GrammarRegistry
from grammar_service.messages import AnswerCheck, ReadyGrammar
from grammar_service.sandbox.background_thread import BackgroundThread
from model_service.messages import Call, Endpoint
from model_service.replies import Failure, Head
from router.turns.progress import Progress
from tests.integration.router.light_door import door_of

ME = new_key()
STATUS = {"answer": 200, "counted answer": 200, "no such thing": 400, "reward": 502}


class Unconstrained:
    async def ready(self, request: ParsedRequest, tenant: str) -> ReadyGrammar | None:
        return None


class Answers:
    """With the status that the prompt names, and its usage where the prompt says so."""

    async def ask(self, call: Call, key: str) -> AsyncGenerator[Head | Failure | str, None]:
        status = STATUS[call.body["prompt"]]
        yield Head(status, stream=False)
        usage = {"prompt_tokens": 10, "total_tokens": 50} if "counted" in call.body["prompt"] else None
        yield json.dumps({"usage": usage} if status == 200 else {"error": {"message": "no", "code": status}})


class NeverAnswers:
    """A call reaches them, or waits in their line."""

    def __init__(self, waits: bool) -> None:
        self._waits = waits
        self.asked = asyncio.Event()

    async def ask(self, call: Call, key: str) -> AsyncGenerator[Head | Failure | str, None]:
        assert isinstance(call.progress, Progress)
        call.progress.waits = self._waits
        self.asked.set()
        await asyncio.Event().wait()
        yield ""


async def no_faults(check: AnswerCheck) -> tuple[str | None, ...]:
    return (None,) * len(check.answers)


def gateway_of(engines: Engines) -> Gateway:
    checker = AnswerChecker(no_faults, lambda event, number: None, 0, 2.0)
    prefixes = TenantPrefixes(b"secret", shared=False)
    return Gateway(request_reader(Settings()), Unconstrained(), engines, CallFacts(2048), checker, prefixes, BackgroundThread())


@pytest.fixture
def door(tmp_path: Path) -> httpx.AsyncClient:
    """One key has a thousand tokens a minute; a prompt is thought to have a hundred."""
    file = tmp_path / "keys.yaml"
    limits = {"tokens_per_minute": 1000}
    file.write_text(yaml.safe_dump([{"name": "me", "sha256": digest_of(ME), "scopes": ["admin"], "limits": limits}]))
    return door_of(gateway_of(Answers()), cast(GrammarRegistry, None), Settings(), ApiKeys([], file))


def sent_by(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    ("asked", "charged"),
    [
        ({"prompt": "counted answer"}, 50),
        ({"prompt": "answer"}, 300),
        ({"prompt": "reward"}, 300),
        ({"prompt": "no such thing"}, 0),
        ({"prompt": "answer", "n": "many"}, 0),
    ],
)
async def test_an_answer_that_tells_no_usage_is_charged_what_it_may_have_taken(
    door: httpx.AsyncClient, asked: dict[str, Any], charged: int
) -> None:
    """But for what is refused before an engine computes anything."""
    await door.post("/v1/completions", json={"max_tokens": 200, **asked}, headers=sent_by(ME))
    next_one = await door.post("/v1/completions", json={"prompt": "answer", "max_tokens": 100}, headers=sent_by(ME))
    assert next_one.headers["x-ratelimit-remaining-tokens"] == str(1000 - charged - 200)


@pytest.mark.parametrize(("waits", "tokens"), [(True, 0), (False, 500)])
async def test_who_leaves_is_charged_unless_he_was_still_in_line(waits: bool, tokens: int) -> None:
    engines, meter = NeverAnswers(waits), TokenMeter(500)
    leaving = asyncio.ensure_future(anext(gateway_of(engines).answer(Endpoint.COMPLETION, {"prompt": "x"}, meter=meter)))
    await engines.asked.wait()
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert meter.tokens == tokens


async def test_bodies_of_grammars_that_do_not_come_take_places_too(door: httpx.AsyncClient) -> None:
    """Of eight, one is left to others."""

    async def begun() -> AsyncIterator[bytes]:
        yield b'{"id": '
        await asyncio.Event().wait()

    asked = [asyncio.create_task(door.post("/v1/grammars", content=begun(), headers=sent_by(ME))) for _ in range(8)]
    answered, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    assert [(await task).json()["error"]["code"] for task in answered] == ["ingress_busy"]


async def test_requests_that_wait_to_be_admitted_take_places_too(door: httpx.AsyncClient) -> None:
    """Each holds all its headers, also when its client has left."""
    body = {"prompt": "answer", "max_tokens": 1}
    answers = await asyncio.gather(*(door.post("/v1/completions", json=body, headers=sent_by(ME)) for _ in range(60)))
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(503) > 30
    assert set(statuses) == {200, 503}
