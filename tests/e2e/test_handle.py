"""The same service by Ray handle, from this process and from a job of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest
import ray
from pydantic import BaseModel
from ray import cloudpickle, serve

from deployments.client import AsyncStructuredClient, StructuredClient
from deployments.errors import ApiError, OutputTruncated
from load_tests.front_door.clients.messages import Course
from load_tests.front_door.clients.process import client_process
from load_tests.front_door.handle.__main__ import joining
from tests.e2e.service import Service, wait_for

ROOT = Path(__file__).parents[2]


class Answer(BaseModel):
    verdict: Literal["yes", "no"]
    score: Literal[1, 2, 3]


@pytest.fixture(params=["handle", "http"])
def client(service: Service, request: pytest.FixtureRequest) -> StructuredClient:
    if request.param == "http":
        return StructuredClient.over_http(service.url)
    return StructuredClient.over_handle(serve.get_app_handle("maskcast"))


def test_parse_gives_an_instance(client: StructuredClient) -> None:
    assert isinstance(client.parse(Answer, "Is it good?", temperature=1, seed=4, max_tokens=64), Answer)


def test_an_instance_grows_while_its_answer_comes(service: Service, client: StructuredClient) -> None:
    asked: dict[str, Any] = {"temperature": 1, "seed": 4, "max_tokens": 64}
    *growing, whole = client.stream_partial(Answer, "Is it good?", **asked)
    assert growing
    assert growing[-1] == whole == client.parse(Answer, "Is it good?", **asked)

    async def alone() -> list[Answer]:
        async with AsyncStructuredClient(service.url) as other:
            assert await other.parse(Answer, "Is it good?", **asked) == whole
            return [instance async for instance in other.stream_partial(Answer, "Is it good?", **asked)]

    assert asyncio.run(alone())[-1] == whole


def test_generate_tells_text_and_usage(client: StructuredClient) -> None:
    generation = client.generate("Say.", choice=["left", "right"], max_tokens=8)
    assert generation.text in ("left", "right")
    assert generation.finish_reason == "stop"
    assert generation.usage["completion_tokens"] >= 1


def test_a_look_ahead_says_what_it_has_cost(client: StructuredClient) -> None:
    asked = {"method": "cdlh", "d": 5, "reward": {"type": "concepts", "words": ["left"]}}
    generation = client.generate("Say.", choice=["right", "left"], max_tokens=8, lookahead=asked)
    assert generation.text == "left"
    told = generation.usage["completion_tokens_details"]["lookahead"]
    assert told["reward"] == 1
    traced = client.generate("Say.", choice=["right", "left"], max_tokens=8, lookahead={**asked, "trace": True})
    steps = traced.response["choices"][0]["lookahead_steps"]
    assert "".join(step["text"] for step in steps) == "left"
    assert {tried["reward"] for step in steps for tried in step["tried"]} == {0, 1}
    assert told["target_calls"] > len(steps) > told["draft_calls"] == 0  # what is looked at counts, beside a verification a step
    with pytest.raises(ApiError) as caught:
        client.generate("Say.", lookahead={**asked, "method": "cdsl"})
    assert (caught.value.status, caught.value.param) == (400, "lookahead.method")


def test_streamed_text_is_the_generated_text(client: StructuredClient) -> None:
    options = {"regex": "[a-d]{12}", "temperature": 0, "max_tokens": 32}
    assert "".join(client.stream("Say.", **options)) == client.generate("Say.", **options).text


def test_streams_of_several_threads_are_kept_apart(client: StructuredClient) -> None:
    texts = [f"this is what the thread of number {number} is told" for number in range(8)]
    with ThreadPoolExecutor(len(texts)) as threads:
        told = threads.map(lambda text: "".join(client.stream("Say.", choice=[text], max_tokens=64)), texts * 3)
        assert list(told) == texts * 3


def test_a_client_by_handle_goes_to_other_processes(service: Service) -> None:
    client = StructuredClient.over_handle(serve.get_app_handle("maskcast"))
    assert "".join(client.stream("Say.", choice=["left"], max_tokens=8)) == "left"
    arrived: StructuredClient = cloudpickle.loads(cloudpickle.dumps(client))
    assert "".join(arrived.stream("Say.", choice=["right"], max_tokens=8)) == "right"


def test_a_client_by_handle_lets_its_process_fork(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    client = StructuredClient.over_handle(serve.get_app_handle("maskcast"))
    assert client.generate("Say.", choice=["left"], max_tokens=8).text == "left"
    for _ in range(20):
        forked = subprocess.run(["/bin/true"], preexec_fn=os.getpid, check=True, stderr=subprocess.PIPE)  # a true fork
        assert forked.stderr == b""
    assert "fork" not in capfd.readouterr().err  # where gRPC has a hand in it, it says so, or what it could not do


def test_a_stream_that_is_left_frees_its_sequence(client: StructuredClient, service: Service) -> None:
    pieces = client.stream("Say.", regex="[a-z]{1500,1800}", max_tokens=1600)
    assert next(pieces)
    wait_for(lambda: service.status().running == 1, 20, "the stream to be seen")
    pieces.close()  # type: ignore[attr-defined]  # it is a generator
    wait_for(lambda: service.status().running == 0, 20, "the stream's sequence to be freed")


def test_a_refused_request_raises_what_http_would_tell(client: StructuredClient) -> None:
    with pytest.raises(ApiError) as caught:
        client.generate("Say.", regex="(")
    assert (caught.value.status, caught.value.param) == (400, "structured_outputs.regex")
    with pytest.raises(ApiError) as streamed:
        list(client.stream("Say.", json={"type": "nothing"}))
    assert (streamed.value.status, streamed.value.param) == (400, "structured_outputs.json#/type")


def test_an_answer_that_is_cut_is_no_answer(client: StructuredClient) -> None:
    with pytest.raises(OutputTruncated):
        client.parse(Answer, "Is it good?", max_tokens=2)


def test_a_separate_job_uses_the_service(service: Service) -> None:
    address = ray.get_runtime_context().gcs_address
    job = subprocess.run(
        [sys.executable, "examples/handle_job.py"],
        cwd=ROOT,
        env={**os.environ, "RAY_ADDRESS": address},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert job.returncode == 0, job.stderr
    assert "name='Clara Novak' age=34 city='Lisbon'" in job.stdout


@pytest.mark.parametrize("stream", [True, False])
def test_clients_of_the_benchmark_are_answered_by_handle(service: Service, stream: bool) -> None:
    body = {"messages": [{"role": "user", "content": "Say."}], "structured_outputs": {"regex": "[a-d]{12}"}, "max_tokens": 32}
    bodies = [json.dumps({**body, "stream": stream}).encode()] * 4
    with client_process() as client:
        course = Course("", 0, bodies, clients=2, stream=stream, seconds=None, joins=joining())
        answers = client.answers(course, lambda: None, lambda _: None)
    assert [(answer.status, answer.finish, len(answer.text)) for answer in answers] == [(200, "stop", 12)] * 4
    assert all((answer.first_s is not None) == stream for answer in answers)
