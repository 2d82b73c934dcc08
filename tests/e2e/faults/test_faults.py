"""Processes die, clients leave, Redis goes away: the service recovers, and every accepted request is answered."""

from __future__ import annotations

import asyncio
import contextlib
import signal

import httpx
import psutil
import pytest
import ray

from grammar_service.spec import GrammarKind, GrammarSpec
from tests.e2e.faults.striking import MESSAGES, strike_under_load
from tests.e2e.service import MODEL, Service, wait_for

ENDLESS = {"structured_outputs": {"regex": "[a-z]{1500,1800}"}, "max_tokens": 1600}
REPLICA = "ServeReplica:maskcast:ModelReplica"


@pytest.fixture(autouse=True)
def healthy(service: Service) -> None:
    service.wait_until_ready()


def running(service: Service) -> float:
    return service.status().running


def engine_cores(service: Service) -> list[psutil.Process]:
    """They are named when they have been started; one worker on a CPU is in its core."""
    below = (each for replica in service.processes(REPLICA) for each in replica.children(recursive=True))
    return [core for core in below if core.name().startswith("VLLM::")]


def is_alive(process: psutil.Process) -> bool:
    """One that has ended is not, whether or not its parent has taken note."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_an_engine_knows_the_ray_that_it_belongs_to(service: Service) -> None:
    """Or it would start another where its workers are Ray's."""
    cores = engine_cores(service)
    assert {core.environ().get("RAY_ADDRESS") for core in cores} == {ray.get_runtime_context().gcs_address}


async def test_a_client_that_leaves_frees_its_sequence(service: Service) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        body = {"model": MODEL, "messages": MESSAGES, "stream": True, **ENDLESS}
        async with client.stream("POST", f"{service.url}/v1/chat/completions", json=body) as response:
            lines = response.aiter_lines()
            assert (await anext(lines)).startswith("data:")
            await asyncio.to_thread(wait_for, lambda: running(service) == 1, 20, "the request to run")
    await asyncio.to_thread(wait_for, lambda: running(service) == 0, 20, "the stream's sequence to be freed")


async def test_a_client_that_leaves_without_streaming_frees_its_sequence(service: Service) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        body = {"model": MODEL, "messages": MESSAGES, **ENDLESS}
        asking = asyncio.create_task(client.post(f"{service.url}/v1/chat/completions", json=body))
        await asyncio.to_thread(wait_for, lambda: running(service) == 1, 20, "the request to run")
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
    await asyncio.to_thread(wait_for, lambda: running(service) == 0, 20, "the sequence to be freed")


async def test_a_full_service_says_so_at_once_and_answers_everybody(service: Service) -> None:
    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        body = {"model": MODEL, "messages": MESSAGES, "max_tokens": 40, "guided_regex": "[a-z]{60}"}
        return await client.post(f"{service.url}/v1/chat/completions", json=body)

    async with httpx.AsyncClient(timeout=180, limits=httpx.Limits(max_connections=None)) as client:
        answers = await asyncio.gather(*(ask(client) for _ in range(120)))
    full = [answer for answer in answers if answer.status_code == 503]
    assert {answer.status_code for answer in answers} == {200, 503}
    for answer in full:
        assert answer.json()["error"]["code"] == "model_busy", answer.text
        assert int(answer.headers["Retry-After"]) >= 1


async def test_a_killed_compile_replica_is_replaced_under_load(service: Service) -> None:
    statuses = await strike_under_load(service, service.processes("ServeReplica:maskcast:GrammarCompiler")[:1])
    assert statuses[200] >= 36, statuses  # what was being compiled there may be told to come again
    assert set(statuses) <= {200, 503}
    await asyncio.to_thread(service.wait_until_ready)


async def test_a_killed_compile_child_is_replaced_under_load(service: Service) -> None:
    statuses = await strike_under_load(service, service.processes("grammar_service.sandbox.zygote"))
    assert statuses[200] >= 36, statuses  # both are made anew, and who has waited long enough is told to come again
    assert set(statuses) <= {200, 503}
    assert service.text("Say.", structured_outputs={"regex": "zz[a-c]top"})


async def test_a_killed_redis_degrades_the_service_and_no_request_fails(service: Service) -> None:
    redis = service.processes("redis-server")
    assert redis
    assert await strike_under_load(service, redis) == {200: 40}
    await asyncio.to_thread(wait_for, lambda: service.ready()["status"] == "degraded", 20, "the service to take note")
    assert service.ready()["degraded"] == ["redis"]
    assert service.text("Say.", structured_outputs={"regex": "fresh[x-z]"})
    service.cluster.restart_redis()


async def test_a_killed_controller_of_ray_serve_finds_all_replicas_as_they_were(service: Service) -> None:
    marks = (REPLICA, "ServeReplica:maskcast:GrammarCompiler")
    before = [process.pid for mark in marks for process in service.processes(mark)]
    (controller,) = service.processes("ServeController")
    assert await strike_under_load(service, [controller]) == {200: 40}
    await asyncio.to_thread(wait_for, lambda: service.processes("ServeController"), 60, "another controller")
    await asyncio.to_thread(wait_for, lambda: service.ready()["status"] == "ready", 60, "it to have found the replicas")
    assert [process.pid for mark in marks for process in service.processes(mark)] == before


async def test_a_killed_engine_core_is_replaced_in_its_replica_and_no_request_fails(service: Service) -> None:
    try:
        cores = await asyncio.to_thread(wait_for, lambda: engine_cores(service), 60, "the engine's core")
    except AssertionError as error:
        raise AssertionError(service.family()) from error
    before = await asyncio.to_thread(service.status)
    assert await strike_under_load(service, cores) == {200: 40}
    after = await asyncio.to_thread(service.status)
    assert (after.replica, after.restarts) == (before.replica, before.restarts + 1)
    assert service.text("Say.", structured_outputs={"regex": "back[x-z]"})


async def test_an_engine_core_that_hangs_is_replaced_and_no_request_fails(service: Service) -> None:
    """By a watch: its process has not ended, and never would."""
    cores = await asyncio.to_thread(wait_for, lambda: engine_cores(service), 60, "the engine's core")
    before = await asyncio.to_thread(service.status)
    assert await strike_under_load(service, cores, sent=signal.SIGSTOP) == {200: 40}
    after = await asyncio.to_thread(service.status)
    assert (after.replica, after.restarts) == (before.replica, before.restarts + 1)
    assert not any(map(is_alive, cores))


def test_a_restarted_replica_gets_its_grammars_without_a_compile(service: Service) -> None:
    spec = GrammarSpec(GrammarKind.EBNF, 'root ::= "kept-" [0-4]{3}')
    grammar = {"structured_outputs": {"grammar": spec.text}}
    assert service.text("Say.", **grammar)
    made = service.artifact(spec)
    replica = service.status().replica
    engine = [below for process in service.processes(REPLICA) for below in process.children(recursive=True)]
    for process in service.processes(REPLICA):
        process.kill()
    wait_for(lambda: service.status().replica != replica, 240, "another replica")
    service.wait_until_ready(240)
    fresh = service.status().grammar
    assert engine
    wait_for(lambda: not any(map(is_alive, engine)), 60, "the old replica's engine to be gone")
    assert service.text("Say.", **grammar)
    after = service.status().grammar
    # From Redis, or with the request where the ingress had to ask the pool anew.
    assert after["redis_hits"] <= fresh["redis_hits"] + 1
    assert after["pool_calls"] == fresh["pool_calls"]
    assert service.artifact(spec) == made
