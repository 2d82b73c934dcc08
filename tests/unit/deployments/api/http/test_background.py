"""Responses that are made in the background, at a door without replicas."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import yaml

from deployments.access.api_keys import ApiKeys
from deployments.access.key_file import digest_of, new_key
from deployments.api.api_server import open_apis
from deployments.api.http.background import BackgroundResponses
from deployments.config import Settings
from deployments.errors import INGRESS_BUSY
from deployments.grammars.registry import GrammarRegistry
from grammar_service.errors import CacheUnavailable
from grammar_service.sandbox.background_thread import BackgroundThread
from model_service.messages import Call
from model_service.replies import Failure, Head
from tests.integration.router.light_door import MOST_ONGOING, door_of
from tests.unit.deployments.api.test_charged_calls import gateway_of
from tests.unit.deployments.api.translation.chunks import whole

ASKED = {"input": "hi", "background": True}


class Engine:
    """Answers when it may, and hears when nobody waits any more."""

    def __init__(self) -> None:
        self.may_answer, self.asked, self.given_up = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.status = 200
        self.fault: Exception | None = None

    async def ask(self, call: Call, key: str) -> AsyncGenerator[Head | Failure | str, None]:
        if self.fault is not None:
            raise self.fault
        self.asked.set()
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        yield Head(self.status, stream=False)
        error = {"error": {"message": "no such thing", "type": "invalid_request_error", "code": self.status}}
        yield json.dumps(whole({"content": "hello"}) if self.status == 200 else error)


class Ingress:
    """An ingress without replicas, and the engine behind it."""

    def __init__(self, answer_s: float = 60.0, keys: ApiKeys | None = None) -> None:
        self.engine = Engine()
        self.apis = open_apis(Settings(), BackgroundThread())
        self.background = BackgroundResponses(self.apis.responses, lambda _: asyncio.sleep(0))
        registry, gateway = cast(GrammarRegistry, None), gateway_of(self.engine)
        self.door = door_of(
            gateway, registry, Settings(), keys or ApiKeys([]), answer_s=answer_s, apis=self.apis, background=self.background
        )

    async def begin(self, **fields: Any) -> dict[str, Any]:
        answer = await self.door.post("/v1/responses", json={**ASKED, **fields})
        assert answer.status_code == 200, answer.text
        response: dict[str, Any] = answer.json()
        assert (response["status"], response["background"], response["output"]) == ("in_progress", True, [])
        return response

    async def read(self, response_id: str) -> dict[str, Any]:
        response: dict[str, Any] = (await self.door.get(f"/v1/responses/{response_id}")).json()
        return response

    async def ended(self, response_id: str) -> dict[str, Any]:
        for _ in range(10_000):
            if (response := await self.read(response_id))["status"] != "in_progress":
                return response
            await asyncio.sleep(0)
        raise AssertionError("it is in progress for ever")

    async def cancel(self, response_id: str) -> httpx.Response:
        return await self.door.post(f"/v1/responses/{response_id}/cancel")


async def test_it_is_in_progress_until_it_has_its_answer() -> None:
    ingress = Ingress()
    begun = await ingress.begin(metadata={"a": "b"})
    await ingress.engine.asked.wait()
    assert await ingress.read(begun["id"]) == begun
    ingress.engine.may_answer.set()
    response = await ingress.ended(begun["id"])
    assert (response["status"], response["metadata"]) == ("completed", {"a": "b"})
    assert response["output"][0]["content"][0]["text"] == "hello"
    assert response["usage"]["total_tokens"] > 0
    await ingress.background.close(0)


async def test_all_of_them_have_half_of_the_places() -> None:
    """So that they can be read and cancelled, and others asked."""
    ingress = Ingress()
    begun = [await ingress.begin() for _ in range(MOST_ONGOING // 2)]
    assert (await ingress.door.post("/v1/responses", json=ASKED)).json()["error"]["code"] == INGRESS_BUSY
    assert (await ingress.cancel(begun.pop()["id"])).json()["status"] == "cancelled"
    await ingress.engine.given_up.wait()
    ingress.engine.may_answer.set()
    assert (await ingress.door.post("/v1/responses", json={"input": "hi"})).status_code == 200
    await ingress.background.close(10)
    assert {(await ingress.read(response["id"]))["status"] for response in begun} == {"completed"}
    begun.append(await ingress.begin())
    assert (await ingress.ended(begun[-1]["id"]))["status"] == "completed"


async def test_who_has_as_many_as_his_key_may_have_can_cancel_one(tmp_path: Path) -> None:
    key, file = new_key(), tmp_path / "keys.yaml"
    file.write_text(yaml.safe_dump([{"name": "me", "sha256": digest_of(key), "limits": {"concurrent_requests": 1}}]))
    ingress = Ingress(keys=ApiKeys([], file))
    ingress.door.headers["Authorization"] = f"Bearer {key}"
    begun = await ingress.begin()
    assert (await ingress.door.post("/v1/responses", json=ASKED)).status_code == 429
    assert (await ingress.read(begun["id"]))["status"] == "in_progress"
    assert (await ingress.cancel(begun["id"])).json()["status"] == "cancelled"
    await ingress.engine.given_up.wait()


@pytest.mark.parametrize("how", ["cancel", "delete"])
async def test_who_cancels_or_deletes_it_ends_its_work(how: str) -> None:
    ingress = Ingress()
    begun = await ingress.begin()
    await ingress.engine.asked.wait()
    if how == "cancel":
        assert (await ingress.cancel(begun["id"])).json() == begun | {"status": "cancelled"}
        assert (await ingress.cancel(begun["id"])).json()["status"] == "cancelled", "once more changes nothing"
    else:
        assert (await ingress.door.delete(f"/v1/responses/{begun['id']}")).status_code == 200
    await asyncio.wait_for(ingress.engine.given_up.wait(), 10)
    assert (await ingress.read(begun["id"])).get("status") == ("cancelled" if how == "cancel" else None)
    await ingress.background.close(0)


async def test_what_has_ended_is_not_cancelled() -> None:
    ingress = Ingress()
    ingress.engine.may_answer.set()
    begun = await ingress.begin()
    response = await ingress.ended(begun["id"])
    assert (await ingress.cancel(begun["id"])).json() == response
    waited_for = (await ingress.door.post("/v1/responses", json={"input": "hi"})).json()
    refused = [await ingress.cancel(name) for name in (waited_for["id"], "resp_" + "0" * 32)]
    assert [(answer.status_code, answer.json()["error"]["code"]) for answer in refused] == [
        (400, "response_not_in_background"),
        (404, "response_not_found"),
    ]


async def test_a_stored_response_is_not_streamed() -> None:
    ingress = Ingress()
    begun = await ingress.begin()
    answer = await ingress.door.get(f"/v1/responses/{begun['id']}?stream=true")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "stream")
    await ingress.background.close(0)


async def test_an_error_is_told_by_the_response() -> None:
    ingress = Ingress()
    ingress.engine.status = 400
    ingress.engine.may_answer.set()
    refused_by_engine = await ingress.ended((await ingress.begin())["id"])
    refused_by_reader = await ingress.ended((await ingress.begin(temperature=-1))["id"])
    assert refused_by_engine["error"] == {"code": "invalid_prompt", "message": "no such thing"}
    assert "temperature" in refused_by_reader["error"]["message"]
    assert {response["status"] for response in (refused_by_engine, refused_by_reader)} == {"failed"}


async def test_a_fault_of_ours_is_told_by_the_response_too() -> None:
    ingress = Ingress()
    ingress.engine.fault = ValueError("nobody thought of it")
    response = await ingress.ended((await ingress.begin())["id"])
    assert (response["status"], response["error"]) == ("failed", {"code": "server_error", "message": "Internal error."})


async def test_they_are_renewed_whatever_the_store_does(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress, faults = Ingress(), [RuntimeError("unheard of"), CacheUnavailable("gone")]
    renew = ingress.apis.responses.renew

    async def faulty(keys: Any) -> Any:
        if faults:
            raise faults.pop()
        return await renew(keys)

    monkeypatch.setattr(ingress.apis.responses, "renew", faulty)
    begun = await ingress.begin()
    await ingress.engine.asked.wait()
    await ingress.cancel(begun["id"])
    await asyncio.wait_for(ingress.engine.given_up.wait(), 10)
    assert not faults


async def test_an_answer_that_is_there_is_stored_also_by_an_ingress_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress, storing = Ingress(), asyncio.Event()
    store = ingress.apis.responses._store
    finish = store.finish

    async def gone(*_: Any) -> bool:
        monkeypatch.setattr(store, "finish", finish)
        storing.set()
        raise CacheUnavailable("gone")

    monkeypatch.setattr(store, "finish", gone)
    ingress.engine.may_answer.set()
    begun = await ingress.begin()
    await storing.wait()
    await ingress.background.close(0)
    assert (await ingress.read(begun["id"]))["status"] == "completed"


async def test_it_has_as_long_as_any_answer() -> None:
    ingress = Ingress(answer_s=0.01)
    response = await ingress.ended((await ingress.begin())["id"])
    assert (response["status"], response["error"]["code"]) == ("failed", "server_error")
    assert "in time" in response["error"]["message"]
    await ingress.engine.given_up.wait()


async def test_an_ingress_that_ends_waits_for_it_and_says_so_where_it_cannot() -> None:
    ingress = Ingress()
    begun = await ingress.begin()
    await ingress.engine.asked.wait()
    closing = asyncio.create_task(ingress.background.close(10))
    ingress.engine.may_answer.set()
    await closing
    assert (await ingress.read(begun["id"]))["status"] == "completed"
    ingress = Ingress()
    begun = await ingress.begin()
    await ingress.background.close(0.01)
    response = await ingress.read(begun["id"])
    assert (response["status"], response["error"]["code"]) == ("failed", "server_error")


async def test_only_what_has_an_answer_is_gone_on_from() -> None:
    ingress = Ingress()
    begun = await ingress.begin()
    answer = await ingress.door.post("/v1/responses", json={"input": "and", "previous_response_id": begun["id"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "previous_response_not_completed")
    ingress.engine.may_answer.set()
    await ingress.ended(begun["id"])
    assert (await ingress.door.post("/v1/responses", json={"input": "and", "previous_response_id": begun["id"]})).status_code == 200
    await ingress.background.close(0)
