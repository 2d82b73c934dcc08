"""Ingresses that stand apart from the model replica: calls go by Ray Serve, answers by connections of their own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from ray import serve

from deployments.access.key_file import new_key
from deployments.client import StructuredClient
from deployments.commands.lookahead.grid import GRID, Thresholds
from deployments.config import parse_settings
from deployments.errors import ApiError
from load_tests.traces.collector import Collector
from tests.e2e.asked_trace import Asked
from tests.e2e.faults.striking import MESSAGES, strike_under_load
from tests.e2e.service import MODEL, Service, wait_for
from tests.e2e.told_secrets import secrets_of, told_by_files, told_by_processes, told_by_ray, told_in

pytestmark = pytest.mark.timeout(600)
INGRESS_NAME = "Ingress"
INGRESS = f"ServeReplica:maskcast:{INGRESS_NAME}"
REPLICA = "ServeReplica:maskcast:ModelReplica"
MASKCAST = Path(sys.executable).parent / "maskcast"


def test_streamed_pieces_are_the_whole_answer(apart: Service) -> None:
    request = {"model": MODEL, "messages": MESSAGES, "seed": 3, "extra_body": {"structured_outputs": {"regex": "[a-f]{24}"}}}
    pieces = list(apart.client().chat.completions.create(stream=True, **request))  # type: ignore[call-overload]
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces)
    assert len(text) == 24
    assert text == apart.client().chat.completions.create(**request).choices[0].message.content  # type: ignore[call-overload]


def test_a_body_as_large_as_the_settings_allow_reaches_the_engine(apart: Service) -> None:
    """Which says that its model has no eyes."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 6 * 2**20}}
    answers = [apart.post("/v1/chat/completions", {"messages": [{"role": "user", "content": [image] * count}]}) for count in (1, 2)]
    assert [answer.status_code for answer in answers] == [400, 413]
    assert answers[0].json()["error"]["message"] == "'messages[0]': this model takes text only"


def test_a_trace_tells_of_the_way_through_all_processes(apart: Service, collector: Collector) -> None:
    asked = Asked(collector)
    response = apart.chat("Say.", structured_outputs={"regex": "apart-[a-f]{8}"}, stream=True, headers=asked.headers)
    assert response.text.endswith("data: [DONE]\n\n")
    tree = asked.tree("call", "route", "compile", "answer", "decode", "llm_request", "POST /v1/chat/completions")
    assert tree.path("llm_request") == ["POST /v1/chat/completions", "call", "answer", "llm_request"]
    components = {span.name: span.component for span in tree.spans}
    wanted = {"call": INGRESS_NAME, "route": INGRESS_NAME, "compile": "GrammarCompiler", "answer": "ModelReplica", "llm_request": "vllm"}
    assert {name: components[name] for name in wanted} == wanted
    route, answer = tree.told("route"), tree.told("answer")
    assert route["replica"] == route["first_rank"] == answer["replica"]
    assert route["passed_over"] == 0


def test_each_request_has_a_log_line_with_its_id_and_its_trace(apart: Service, collector: Collector) -> None:
    asked = Asked(collector)
    answer = apart.chat("Say.", max_tokens=2, headers=asked.headers).json()

    def told() -> list[dict[str, Any]]:
        folder = Path(os.environ["TMPDIR"])  # of the service that runs
        files = folder.glob("ray/session_latest/logs/worker-*.err")
        lines = (json.loads(line) for file in files for line in file.read_text().splitlines() if line.startswith("{"))
        return [line for line in lines if line.get("trace_id") == asked.trace]

    (line,) = wait_for(told, 20, "the request's line")
    assert (line["logger"], line["component"], line["status"], line["endpoint"]) == ("maskcast.requests", INGRESS_NAME, 200, "chat")
    assert line["request_id"] in answer["id"]


def test_a_service_with_keys_tells_no_secret(apart: Service, keys: tuple[str, str]) -> None:
    """In errors, on its page of metrics, in logs, arguments and environments of processes, and in what Ray keeps."""
    wrong = new_key()
    own, in_file = keys
    secrets = secrets_of(apart, own=own, in_file=in_file, wrong=wrong)
    asked = [
        apart.post("/v1/completions", {"prompt": "Say.", "max_tokens": 2, **fields}, headers={"Authorization": f"Bearer {key}"})
        for key in (own, in_file, wrong, f"{own} {in_file}")
        for fields in ({}, {"structured_outputs": {"regex": "("}}, {"structured_outputs": {"grammar_id": "nobody"}}, {"n": 1000})
    ]
    refused = [
        apart.post("/v1/grammars", {"id": "x", "structured_outputs": {"regex": "a"}}, headers={"Authorization": f"Bearer {in_file}"}),
        httpx.get(f"{apart.url}/metrics", headers={"Authorization": f"Bearer {in_file}"}, timeout=30),
        httpx.get(f"{apart.url}/v1/models/{wrong}", headers={"Authorization": f"Basic {own}"}, timeout=30),
    ]
    assert {answer.status_code for answer in asked} == {200, 400, 401}
    assert [answer.status_code for answer in refused] == [403, 403, 401]
    for answer in (*asked, *refused):
        assert told_in(answer.text + str(answer.headers), secrets) == []
    wait_for(lambda: "in-file" in apart.metrics(), 60, "the page to tell of the key's tenant by its name")
    assert told_in(apart.metrics(), secrets) == []
    assert told_by_processes(secrets) == []
    assert told_by_files(secrets) == []
    assert told_by_ray(secrets) == []


def test_thresholds_are_tuned_at_its_port(apart: Service, tmp_path: Path) -> None:
    """By the command, of the one service here that has a draft."""
    cases, settings, curves = tmp_path / "cases.jsonl", tmp_path / "thresholds.yaml", tmp_path / "curves.png"
    wished = {"type": "concepts", "words": ["right"]}
    easy = {"prompt": "Say.", "reward": wished, "structured_outputs": {"choice": ["left", "right"]}}
    hard = {**easy, "structured_outputs": {"choice": ["left", "wrong"]}}
    cases.write_text("\n".join(map(json.dumps, (easy, hard))))
    options = ["--cost", "1", "--d", "5", "--max-tokens", "8", "--output", str(settings), "--plot", str(curves)]
    done = subprocess.run(
        [str(MASKCAST), "lookahead", "tune", str(cases), "--url", apart.url, *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "MASKCAST_API_KEY": apart.key},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(GRID)} cases" in done.stderr
    told = parse_settings(yaml.safe_load(settings.read_text())).model.lookahead_defaults
    assert settings.read_text() in done.stdout
    assert Thresholds(told.a_t, told.r_t, told.b) in GRID
    assert curves.read_bytes().startswith(b"\x89PNG")
    shares = {row.split("│")[4].strip() for row in done.stdout.splitlines() if row.count("│") == 9}
    assert shares <= {"0.0", "50.0"}  # what is hard cannot be satisfied
    assert "50.0" in shares


async def test_a_client_that_leaves_frees_its_sequence(apart: Service) -> None:
    endless = {"model": MODEL, "messages": MESSAGES, "stream": True, "max_tokens": 1600, "guided_regex": "[a-z]{1500,1800}"}
    url = f"{apart.url}/v1/chat/completions"
    async with httpx.AsyncClient(timeout=60, headers=apart.headers) as client, client.stream("POST", url, json=endless) as response:
        lines = response.aiter_lines()  # kept: dropped, it would close the response
        assert (await anext(lines)).startswith("data:")
        await asyncio.to_thread(wait_for, lambda: apart.status().running == 1, 20, "the request to run")
    await asyncio.to_thread(wait_for, lambda: apart.status().running == 0, 20, "the stream's sequence to be freed")


async def test_a_killed_replica_is_replaced_and_its_requests_wait_for_the_next(apart: Service) -> None:
    assert await strike_under_load(apart, apart.processes(REPLICA), requests=16) == {200: 16}


def ended(begun: str, stream: Iterator[str]) -> int | str:
    """How long its text is, or the code of the error that it ends with."""
    try:
        return len(begun + "".join(stream))
    except ApiError as error:
        return error.code


def test_a_killed_ingress_is_replaced_while_the_other_answers(apart: Service) -> None:
    first, second = apart.processes(INGRESS)
    by_handle = StructuredClient.over_handle(serve.get_app_handle("maskcast"))
    streams = [by_handle.stream("Say.", regex="[a-z]{300}", max_tokens=320) for _ in range(4)]
    begun = [next(stream) for stream in streams]
    first.kill()
    assert {*map(ended, begun, streams)} == {300, "ingress_lost"}  # the other one goes on
    again = apart.client().with_options(max_retries=3)  # a connection may have been waiting for the one that was killed
    for _ in range(10):
        assert again.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=4).choices  # type: ignore[arg-type]
    assert second.is_running()
    wait_for(lambda: len(apart.processes(INGRESS)) == 2, 120, "another ingress")
