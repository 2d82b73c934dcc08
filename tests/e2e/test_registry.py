"""Named grammars as a user meets them: over HTTP, by handle, after a restart, and while Redis is away."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest
from ray import serve

from deployments.client import StructuredClient
from deployments.errors import ApiError
from tests.e2e.service import Service, wait_for

VOWELS = {"regex": "[aeiou]{6}"}
DIGITS = {"regex": "[0-9]{4}"}


@pytest.fixture(autouse=True)
def nothing_stays_registered(service: Service) -> Iterator[None]:
    yield
    for grammar in grammars(service):
        httpx.delete(f"{service.url}/v1/grammars/{grammar['id']}", timeout=30)


def grammars(service: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(f"{service.url}/v1/grammars", timeout=30).json()["data"]
    return found


def register(service: Service, name: str, constraint: dict[str, Any], **fields: Any) -> httpx.Response:
    return service.post("/v1/grammars", {"id": name, "structured_outputs": constraint, **fields})


def named(name: str) -> dict[str, Any]:
    return {"structured_outputs": {"grammar_id": name}}


def test_a_registered_grammar_holds_in_every_form_of_a_request(service: Service) -> None:
    registered = register(service, "vowels", VOWELS)
    assert registered.status_code == 201, registered.text
    grammar = registered.json()
    assert (grammar["object"], grammar["id"], grammar["kind"]) == ("grammar", "vowels", "regex")
    for form in (named("vowels"), {"response_format": {"type": "grammar", "grammar_id": "vowels"}}):
        text = service.text("Say.", **form)
        assert len(text) == 6
        assert set(text) <= set("aeiou")
    assert httpx.get(f"{service.url}/v1/grammars/vowels", timeout=30).json() == grammar
    assert grammar in grammars(service)


def test_a_name_keeps_its_meaning_until_it_is_replaced(service: Service) -> None:
    first = register(service, "mine", VOWELS).json()
    again = register(service, "mine", VOWELS)
    assert (again.status_code, again.json()) == (200, first)
    other = register(service, "mine", DIGITS)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "grammar_exists")
    assert not service.text("Say.", **named("mine")).isdigit()
    assert register(service, "mine", DIGITS, replace=True).status_code == 201
    assert service.text("Say.", **named("mine")).isdigit()


def test_a_deleted_name_is_unknown_at_once(service: Service) -> None:
    register(service, "short-lived", VOWELS)
    assert service.text("Say.", **named("short-lived"))
    url = f"{service.url}/v1/grammars/short-lived"
    assert httpx.delete(url, timeout=30).json() == {"object": "grammar.deleted", "id": "short-lived", "deleted": True}
    refused = service.chat("Say.", **named("short-lived"))
    error = refused.json()["error"]
    assert (refused.status_code, error["param"], error["code"]) == (400, "structured_outputs.grammar_id", "grammar_not_found")
    for answer in (httpx.get(url, timeout=30), httpx.delete(url, timeout=30)):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "grammar_not_found")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"id": "a/b", "structured_outputs": VOWELS}, "id"),
        ({"id": "bad", "structured_outputs": {"json": {"type": "objec"}}}, "structured_outputs.json#/type"),
        ({"id": "bad", "structured_outputs": {"grammar": "root ::= missing"}}, "structured_outputs.grammar"),
        ({"id": "bad"}, "structured_outputs"),
    ],
)
def test_a_faulty_registration_is_a_400_that_names_its_field(service: Service, body: dict[str, Any], field: str) -> None:
    answer = service.post("/v1/grammars", body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, field)
    assert "bad" not in [grammar["id"] for grammar in grammars(service)]


def test_grammars_of_the_settings_are_ready_and_fixed(service: Service) -> None:
    assert service.text("Say.", **named("from-settings")) in ("left", "right")
    wait_for(lambda: service.events("registry").get("compiled_ahead", 0) >= 1, 60, "the settings' grammar to be compiled ahead")
    for answer in (
        register(service, "from-settings", VOWELS, replace=True),
        httpx.delete(f"{service.url}/v1/grammars/from-settings", timeout=30),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "grammar_in_settings")


@pytest.mark.parametrize("way", ["handle", "http"])
def test_the_client_registers_lists_uses_and_deletes(service: Service, way: str) -> None:
    over_http = way == "http"
    client = StructuredClient.over_http(service.url) if over_http else StructuredClient.over_handle(serve.get_app_handle("maskcast"))
    grammar = client.register_grammar(f"by-{way}", choice=["north", "south"])
    assert grammar in client.list_grammars()
    assert client.generate("Say.", grammar_id=f"by-{way}", max_tokens=16).text in ("north", "south")
    with pytest.raises(ApiError) as caught:
        client.register_grammar(f"by-{way}", choice=["east", "west"])
    assert (caught.value.status, caught.value.param) == (409, "id")
    client.delete_grammar(f"by-{way}")
    with pytest.raises(ApiError) as caught:
        client.generate("Say.", grammar_id=f"by-{way}")
    assert (caught.value.status, caught.value.param) == (400, "structured_outputs.grammar_id")


def test_names_outlive_the_process_that_registered_them(service: Service) -> None:
    grammar = register(service, "lasting", DIGITS).json()
    (door,) = service.processes("ServeReplica:maskcast:ModelReplica")
    door.kill()
    wait_for(lambda: not door.is_running() or door.status() == psutil.STATUS_ZOMBIE, 30, "the process with the door to end")
    wait_for(lambda: grammar in grammars(service), 120, "another door")
    assert service.text("Say.", **named("lasting")).isdigit()


def test_known_names_work_while_redis_hangs(service: Service) -> None:
    register(service, "known", DIGITS)
    assert service.text("Say.", **named("known")).isdigit()
    redis = service.processes("redis-server")
    try:
        for process in redis:
            process.send_signal(signal.SIGSTOP)
        for _ in range(5):
            assert service.text("Say.", **named("known")).isdigit()
        answer = register(service, "new", VOWELS)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "registry_unavailable")
    finally:
        for process in redis:
            process.send_signal(signal.SIGCONT)
    wait_for(lambda: register(service, "new", VOWELS).status_code == 201, 60, "the registry to be back")
