"""What the gateway tells the router of a call, and what becomes of calls whose replica ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
import ray
import yaml
from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.handle import DeploymentHandle

from deployments.access.api_keys import ApiKeys
from deployments.access.key_file import digest_of, new_key
from deployments.answers.receiver import AnswerReceiver
from deployments.api.api_server import open_grammar_registry
from deployments.api.constraining import Constraining
from deployments.api.engine_calls import EngineCalls
from deployments.api.gateway import Gateway
from deployments.api.traced import TracedConstraints, TracedEngines
from deployments.app import SCHEMA, compile_pool
from deployments.config import Settings, parse_settings
from deployments.errors import INGRESS_BUSY
from deployments.grammars.pool import CompilePool
from deployments.grammars.prepared import PreparedGrammars
from deployments.grammars.registry import GrammarRegistry
from grammar_service.limits import Limits
from grammar_service.sandbox.background_thread import BackgroundThread
from model_service.replies import ENGINE_DEAD, Head
from router.turns.shares import FORCED, PROMPT, SAMPLED
from tests.e2e.service import wait_for
from tests.integration.grammar_service.redis_process import PASSWORD, redis_process
from tests.integration.router.fleet import CHECK_S, delete, router_of
from tests.integration.router.gateways import answer, asked, code_of, gateway_of
from tests.integration.router.light_door import door_of
from tests.integration.router.light_model import ENDS_AT_ONCE, ENDS_LATER, ENGINE_ENDS, NO_ENGINE_YET, Fates, LightModel
from tests.recorded_spans import RecordedSpans, own, parent, told

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300), pytest.mark.usefixtures("ray_serve")]
REPLICAS = 3
SMALL, OTHER, ROOT = new_key(), new_key(), new_key()


@pytest.fixture(scope="module")
def settings() -> Settings:
    adapters = {"enable_lora": True, "lora_modules": ["adapted=folder"]}
    return parse_settings({"grammar": {"compile_replicas": 1, "compile_workers": 1}, "model": {"engine_args": adapters}})


@pytest.fixture(scope="module")
def compilers(ray_serve: None, settings: Settings) -> Iterator[DeploymentHandle[Any]]:
    yield serve.run(compile_pool(settings), name="pool", route_prefix=None)
    delete("pool")


@pytest.fixture(scope="module")
def fates(ray_serve: None) -> Any:
    return ray.remote(Fates).options(num_cpus=0).remote()


@pytest.fixture(scope="module")
def models(fates: Any) -> Iterator[DeploymentHandle[Any]]:
    router = RequestRouterConfig.model_validate({"request_router_class": SCHEMA})
    deployment = serve.deployment(
        name="model",
        num_replicas=REPLICAS,
        ray_actor_options={"num_cpus": 0},
        request_router_config=router,
        health_check_period_s=CHECK_S,
    )
    yield serve.run(deployment(LightModel).bind(fates), name="model", route_prefix=None).options()  # with its router
    delete("model")


@pytest_asyncio.fixture(loop_scope="module")
async def grammars(settings: Settings, compilers: DeploymentHandle[Any]) -> PreparedGrammars:
    pool = CompilePool(compilers)
    return PreparedGrammars(pool, Limits(), await pool.fingerprint())


@pytest.fixture
def registry(settings: Settings, compilers: DeploymentHandle[Any], grammars: PreparedGrammars) -> GrammarRegistry:
    return open_grammar_registry(settings, CompilePool(compilers), grammars, BackgroundThread())


@pytest_asyncio.fixture(loop_scope="module")
async def engines(fates: Any, models: DeploymentHandle[Any]) -> AsyncIterator[EngineCalls]:
    """As many replicas as there should be, all of which answer."""
    await fates.forget.remote()
    known = router_of(models).dispatcher
    await asyncio.to_thread(wait_for, lambda: len(known.fleet) == REPLICAS, 60, "replicas in place of those that were struck")
    receiver = AnswerReceiver(ray.get_runtime_context().get_node_id(), "127.0.0.1")
    await receiver.start()
    yield EngineCalls(models, receiver)
    await receiver.close()


@pytest.fixture
def constraints(grammars: PreparedGrammars, registry: GrammarRegistry) -> Constraining:
    return Constraining(grammars, registry)


@pytest.fixture
def gateway(settings: Settings, compilers: DeploymentHandle[Any], constraints: Constraining, engines: EngineCalls) -> Gateway:
    """A new one, in front of them."""
    return gateway_of(settings, compilers, constraints, engines)


@pytest.fixture
def door(gateway: Gateway, registry: GrammarRegistry, settings: Settings) -> httpx.AsyncClient:
    """An ingress in front of it."""
    return door_of(gateway, registry, settings, ApiKeys([]))


@pytest.fixture
def impatient_door(gateway: Gateway, registry: GrammarRegistry, settings: Settings) -> httpx.AsyncClient:
    return door_of(gateway, registry, settings, ApiKeys([]), read_s=0.2, answer_s=10)


@pytest.fixture
def keyed_door(gateway: Gateway, registry: GrammarRegistry, settings: Settings, tmp_path: Path) -> httpx.AsyncClient:
    """It knows the keys of a file."""
    file = tmp_path / "keys.yaml"
    limits = {"requests_per_minute": 2, "tokens_per_minute": 1000, "max_sequences": 2}
    small = {"name": "small", "sha256": digest_of(SMALL), "limits": limits}
    other = {"name": "other", "sha256": digest_of(OTHER), "limits": {"tokens_per_minute": 1000}}
    file.write_text(yaml.safe_dump([small, other, {"name": "root", "sha256": digest_of(ROOT), "scopes": ["admin"]}]))
    return door_of(gateway, registry, settings, ApiKeys([], file))


async def test_a_grammar_has_its_replica(gateway: Gateway) -> None:
    answers = [await answer(gateway, number % 24) for number in range(72)]
    homes = {(answered["key"], answered["replica"]) for answered in answers}
    assert len(homes) == len({key for key, _ in homes})
    assert len({replica for _, replica in homes}) == REPLICAS


async def test_a_call_says_how_long_it_is_and_what_its_grammar_is_expected_to_force(gateway: Gateway) -> None:
    first, second, free = await answer(gateway, 1), await answer(gateway, 1), await answer(gateway)
    assert (first["prompt"], first["forced"]) == (100, 0)
    assert (second["prompt"], second["forced"]) == (100, 40)
    assert free["forced"] == 0


async def test_tenants_share_no_prefixes(gateway: Gateway) -> None:
    """Neither with each other nor by choosing another's salt; for the router, too, their prompts begin differently."""
    mine, yours, nobodys = [await answer(gateway, tenant=tenant) for tenant in ("me", "you", "")]
    copied = await answer(gateway, tenant="you", cache_salt=mine["salt"])
    assert len({told["salt"] for told in (mine, yours, nobodys, copied)}) == 4
    assert len({told["prefix"] for told in (mine, yours, nobodys, copied)}) == 4
    assert (await answer(gateway, tenant="me"))["salt"] == mine["salt"]
    assert nobodys["salt"] is None


async def test_the_router_hears_what_a_tenants_calls_cost(gateway: Gateway, models: DeploymentHandle[Any]) -> None:
    shares = router_of(models).dispatcher.shares
    await answer(gateway, tenant="payer")  # who is new begins where the others are
    before = shares.used("payer")
    told = await answer(gateway, tenant="payer", session_id=json.dumps({"prompt_tokens": 50, "total_tokens": 120}))
    assert (told["tenant"], told["progress"]) == ("payer", None)
    assert shares.used("payer") - before == pytest.approx(50 * PROMPT + 30 * SAMPLED + 40 * FORCED)


def sent_by(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def test_a_key_is_let_in_as_often_as_its_limits_say(keyed_door: httpx.AsyncClient) -> None:
    async def ask(key: str, **fields: Any) -> httpx.Response:
        return await keyed_door.post("/v1/completions", json={"prompt": "x" * 400, **fields}, headers=sent_by(key))

    assert (await ask("another-key-that-nobody-has")).status_code == 401
    first, second, third = [await ask(SMALL) for _ in range(3)]
    assert (first.status_code, second.status_code, third.status_code) == (200, 200, 429)
    assert [answer.headers["x-ratelimit-remaining-requests"] for answer in (first, second, third)] == ["1", "0", "0"]
    assert first.headers["x-ratelimit-remaining-tokens"] == "884"
    assert third.json()["error"]["code"] == "rate_limit_exceeded"
    assert 0 < int(third.headers["retry-after"]) <= 65
    assert (await ask(SMALL, max_tokens=2000)).json()["error"]["param"] == "max_tokens"
    free = await ask(ROOT)
    assert free.status_code == 200
    streams = [
        await ask(ROOT, stream=True),
        await keyed_door.post("/v1/completions", json={"prompt": "x", "stream": True}, headers=sent_by(OTHER)),
    ]
    # Also of a tenant without limits: by its tokens it takes turns.
    assert [json.loads(answer.text)["usage asked for"] for answer in streams] == [True, True]
    assert not [name for name in free.headers if name.startswith("x-ratelimit")]


async def test_a_key_may_come_as_anthropics_clients_send_it(keyed_door: httpx.AsyncClient) -> None:
    answers = [await keyed_door.post("/v1/completions", json={"prompt": "x"}, headers={"x-api-key": key}) for key in (OTHER, "another")]
    assert [answer.status_code for answer in answers] == [200, 401]


async def test_requests_about_named_grammars_count_as_others_do(keyed_door: httpx.AsyncClient) -> None:
    listed, named = [await keyed_door.get(path, headers=sent_by(SMALL)) for path in ("/v1/grammars", "/v1/grammars/nobodys")]
    assert (listed.status_code, named.status_code) == (200, 404)
    assert listed.headers["x-ratelimit-remaining-requests"] == "1"
    assert (await keyed_door.get("/v1/grammars", headers=sent_by(SMALL))).status_code == 429
    assert (await keyed_door.post("/v1/completions", json={"prompt": "x"}, headers=sent_by(SMALL))).status_code == 429


async def test_requests_about_named_grammars_take_places(
    gateway: Gateway, compilers: Any, grammars: PreparedGrammars, tmp_path: Path
) -> None:
    """And leave them when they have failed."""
    with redis_process(tmp_path) as redis:
        secrets = {"redis": {"url": redis.url, "password": PASSWORD}, "artifact_secret": "0" * 32}
        settings = parse_settings(secrets)
        registry = open_grammar_registry(settings, CompilePool(compilers), grammars, BackgroundThread())
        door = door_of(gateway, registry, settings, ApiKeys([]))
        redis.pause()
        answers = await asyncio.gather(*(door.get(f"/v1/grammars{end}") for end in ("", "/name") for _ in range(20)))
        redis.resume()
        codes = {answer.json()["error"]["code"] for answer in answers}
        assert {INGRESS_BUSY} < codes <= {INGRESS_BUSY, "registry_unavailable", "request_timeout"}
        assert (await until_ok(door, "/v1/grammars")).json()["data"] == []
        await registry.close()


async def until_ok(door: httpx.AsyncClient, path: str) -> httpx.Response:
    """Once Redis is asked again, some seconds after it has failed."""
    for _ in range(200):
        if (answer := await door.get(path)).status_code == HTTPStatus.OK:
            return answer
        await asyncio.sleep(0.1)  # the poll's interval
    raise AssertionError(answer.text)


async def test_a_key_bounds_what_one_request_asks_for(keyed_door: httpx.AsyncClient) -> None:
    body = {"prompt": "x", "n": 3, "max_tokens": 1}
    refused = await keyed_door.post("/v1/completions", json=body, headers=sent_by(SMALL))
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "n")
    assert (await keyed_door.post("/v1/completions", json=body, headers=sent_by(OTHER))).status_code == 200


async def test_a_key_is_for_what_its_scopes_say(keyed_door: httpx.AsyncClient) -> None:
    grammar = {"id": "word", "structured_outputs": {"regex": "[a-z]+"}}
    refused = [
        await keyed_door.get("/metrics", headers=sent_by(SMALL)),
        await keyed_door.post("/v1/grammars", json=grammar, headers=sent_by(SMALL)),
        await keyed_door.delete("/v1/grammars/word", headers=sent_by(SMALL)),
        await keyed_door.get("/v1/grammars?tenant=root", headers=sent_by(SMALL)),
    ]
    assert [(answer.status_code, answer.json()["error"]["code"]) for answer in refused] == [(403, "insufficient_scope")] * 4
    for path in ("/v1/grammars", "/v1/models"):
        assert (await keyed_door.get(path, headers=sent_by(SMALL))).status_code == 200
    assert (await keyed_door.get("/metrics")).status_code == 401
    for path in ("/metrics", "/v1/grammars", "/v1/grammars?tenant=small"):
        assert (await keyed_door.get(path, headers=sent_by(ROOT))).status_code == 200


async def test_adapters_are_models_that_are_listed_and_asked(door: httpx.AsyncClient, settings: Settings) -> None:
    listed = (await door.get("/v1/models")).json()["data"]
    assert [model["id"] for model in listed] == [settings.model.served_name, "adapted"]
    assert (await door.get("/v1/models/adapted")).json()["id"] == "adapted"
    answers = [await door.post("/v1/completions", json={"prompt": "x", "model": name}) for name in ("adapted", "another")]
    assert [answer.status_code for answer in answers] == [200, 404]


@pytest.mark.parametrize("number", [None, 1])
@pytest.mark.parametrize("fate", [ENGINE_ENDS, ENDS_AT_ONCE])
async def test_a_call_whose_replica_ends_before_the_first_byte_is_answered_by_another(
    gateway: Gateway, fates: Any, fate: str, number: int | None
) -> None:
    await fates.strike.remote(fate)
    replicas = [(await answer(gateway, number))["replica"] for _ in range(8)]
    (struck,) = await fates.struck.remote()
    assert struck not in replicas


async def test_a_trace_tells_of_both_replicas_where_a_call_has_changed_to_another(
    settings: Settings, compilers: DeploymentHandle[Any], constraints: Constraining, engines: EngineCalls, fates: Any
) -> None:
    recorded = RecordedSpans()
    tracing = recorded.tracing
    gateway = gateway_of(settings, compilers, TracedConstraints(constraints, tracing), TracedEngines(engines, tracing))
    await fates.strike.remote(ENGINE_ENDS)
    with tracing.span("request"):
        answered = await answer(gateway, 1)
    first, second = recorded.named("call")
    assert [told(call)["again"] for call in (first, second)] == [False, True]
    assert (first.status.description, second.status.description) == (ENGINE_DEAD, None)
    assert parent(first) == parent(second) == parent(recorded.one("constraint")) == own(recorded.one("request"))
    routes = {parent(route): told(route) for route in recorded.named("route")}
    (struck,) = await fates.struck.remote()
    assert (routes[own(first)]["replica"], routes[own(second)]["replica"]) == (struck, answered["replica"])
    # All others of its grammar go to its first rank; this one was sent past it.
    assert (routes[own(first)]["first_rank"], routes[own(first)]["passed_over"]) == (struck, 0)
    assert (routes[own(second)]["first_rank"], routes[own(second)]["passed_over"]) == (struck, 1)


@pytest.mark.parametrize("fate", [ENGINE_ENDS, ENDS_AT_ONCE])
async def test_a_call_of_several_sequences_is_never_sent_again(gateway: Gateway, fates: Any, fate: str) -> None:
    assert (await answer(gateway, n=3))["sequences"] == 3
    await fates.strike.remote(fate)
    assert await code_of(gateway, n=3) == ENGINE_DEAD
    assert len(await fates.struck.remote()) == 1


async def test_a_call_of_several_sequences_that_no_engine_has_had_is_sent_to_another(gateway: Gateway, fates: Any) -> None:
    await fates.strike.remote(NO_ENGINE_YET)
    assert [await code_of(gateway, n=3) for _ in range(8)] == [None] * 8
    assert len(await fates.struck.remote()) == 1


@pytest.mark.parametrize("tenants", [("", "", "", ""), ("me", "me", "me", "me"), ("me", "you", "third", "")])
async def test_a_call_that_replicas_end_over_is_not_given_to_one_after_the_other(
    gateway: Gateway, fates: Any, tenants: tuple[str, ...]
) -> None:
    """Whoever asks: the salt of his prefixes does not make it another one."""
    codes = []
    for tenant in tenants:
        await fates.strike.remote(ENDS_AT_ONCE)
        codes.append(await code_of(gateway, tenant=tenant, prompt="fatal", n=2))
    assert codes == [ENGINE_DEAD, ENGINE_DEAD, "request_ends_engines", "request_ends_engines"]
    await fates.forget.remote()
    assert await code_of(gateway, prompt="another", n=2) is None


async def test_a_body_that_does_not_come_is_not_waited_for(impatient_door: httpx.AsyncClient) -> None:
    async def begun() -> AsyncIterator[bytes]:
        yield b'{"prompt": '
        await asyncio.Event().wait()

    async with impatient_door as door:
        answer = await door.post("/v1/completions", content=begun())
    assert (answer.status_code, answer.json()["error"]["code"], answer.headers["connection"]) == (408, "body_timeout", "close")


async def test_an_answer_that_does_not_end_is_given_up_with_an_error_event(impatient_door: httpx.AsyncClient, fates: Any) -> None:
    await fates.strike.remote(ENDS_LATER)
    async with impatient_door as door:
        answer = await door.post("/v1/completions", json={"prompt": "x", "stream": True})
    assert answer.status_code == 200
    assert json.loads(answer.text.rpartition("data: ")[2])["error"]["code"] == "request_timeout"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"prompt": [' + b"1," * 2000 + b"1]}", 400, "request_too_large"),
        (b'{"prompt": "x", "n": 2000}', 400, "over_limit"),
        (b'{"prompt": "' + b"x" * 100_000 + b'"}', 413, "body_too_large"),
        (b'{"prompt": "' + b"x" * 90_000 + b'", "n": 129}', 400, "over_limit"),
        (b'{"prompt": "' + b"x" * 90_000 + b'"}', 200, None),
    ],
)
async def test_a_body_is_judged_by_the_limits(door: httpx.AsyncClient, body: bytes, status: int, code: str | None) -> None:
    async with door:
        answer = await door.post("/v1/completions", content=body)
    assert answer.status_code == status
    assert code is None or answer.json()["error"]["code"] == code


async def test_an_answer_that_has_begun_ends_with_an_error_event(gateway: Gateway, fates: Any) -> None:
    await fates.strike.remote(ENDS_LATER)
    async with aclosing(asked(gateway, 1)) as items:
        assert await anext(items) == Head(200, stream=True)
        assert json.loads(str(await anext(items)))["replica"] in await fates.struck.remote()
        await fates.fulfil.remote()
        (event,) = [str(item) async for item in items]
    assert json.loads(event.removeprefix("data: "))["error"]["code"] == ENGINE_DEAD
