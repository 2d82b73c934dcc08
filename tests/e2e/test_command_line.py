"""`maskcast serve`, as a user runs it: what it prints, what it answers, and that nothing is left of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import httpx
import psutil
import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.local.ports import free_port
from deployments.local.processes import segments_of
from tests.e2e.service import wait_for

ROOT = Path(__file__).parents[2]
MASKCAST = Path(sys.executable).parent / "maskcast"
START_S = 400.0


def shared_memory() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}


def marked(mark: str) -> list[psutil.Process]:
    """Processes with this mark in their environment: all that a command has started, orphans too."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.environ().get("MARK") == mark:
                found.append(process)
    return found


@contextmanager
def command(folder: Path, *arguments: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a temporary folder of its own; afterwards nothing of it may be left."""
    mark, earlier = uuid4().hex, shared_memory()
    temporary = Path("/tmp") / f"mct-{mark[:8]}"  # Ray's sockets need a short path
    temporary.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        process = subprocess.Popen(
            [str(MASKCAST), *arguments],
            cwd=ROOT,
            env={**environment, **more, "MARK": mark, "TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(120)
    wait_for(lambda: not marked(mark), 20, "the command's processes to be gone")
    assert list(temporary.iterdir()) == []
    temporary.rmdir()
    others = {name for pid in psutil.pids() for name in segments_of(pid)}
    assert shared_memory() - others <= earlier


def told(command: list[str], **environment: str) -> str:
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_serve_answers_until_it_is_interrupted_and_leaves_nothing(tmp_path: Path) -> None:
    """With the settings of the example of a model that thinks, which thinks where it is asked to."""
    port = free_port("127.0.0.1")
    url = f"http://127.0.0.1:{port}"
    with command(tmp_path, "serve", "--config", "examples/reasoning.yaml", "--port", str(port)) as process:
        wait_for(lambda: "Serving at" in (tmp_path / "out").read_text() or process.poll() is not None, START_S, "the service")
        assert process.poll() is None, (tmp_path / "err").read_text()
        assert "ModelReplica" in told([str(MASKCAST), "status", "--url", url])
        thought = told([sys.executable, "examples/think_first.py"], MASKCAST_URL=url)
        process.send_signal(signal.SIGINT)
        process.wait(120)
    assert '"name"' in (tmp_path / "out").read_text()
    assert re.search(r"thought:.*record_person.*Clara Novak", thought, re.DOTALL)
    assert re.search(r"answered: name='Clara Novak' age=34\n[1-9]\d* of \d+ tokens were forced", thought), thought
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz")


def test_without_a_model_a_processor_serves_a_real_one_which_finds_what_the_text_says(tmp_path: Path) -> None:
    with command(tmp_path, "serve", "--port", str(free_port("127.0.0.1")), "--once") as process:
        process.wait(START_S)
    text, told = (tmp_path / "out").read_text(), (tmp_path / "err").read_text()
    assert process.returncode == 0, told
    assert "model.context_length 8192: the model's own" in told
    (answer,) = [json.loads(found) for found in re.findall(r'^\{"name".*\}$', text, re.MULTILINE)]
    assert answer == {"name": "Ingrid Solheim", "city": "Utrecht", "product": "garden chairs", "quantity": 4}


def in_hub_cache(home: Path, name: str) -> None:
    """The embedded model without its chat template, as the hub's client keeps a model that it has downloaded."""
    cached = home / "hub" / f"models--{name.replace('/', '--')}"
    snapshot = cached / "snapshots" / "0a1b"
    shutil.copytree(EMBEDDED_WEIGHTS, snapshot, ignore=shutil.ignore_patterns("chat_template*"))
    tokenizer = snapshot / "tokenizer_config.json"
    told = json.loads(tokenizer.read_text())
    told.pop("chat_template", None)
    tokenizer.write_text(json.dumps(told))
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("0a1b")


def test_a_name_of_the_hub_without_a_chat_template_is_served_from_its_cache_by_two_replicas_of_two_workers(tmp_path: Path) -> None:
    in_hub_cache(tmp_path / "home", "them/plain")
    port = free_port("127.0.0.1")
    url = f"http://127.0.0.1:{port}"
    two = ["--config", "examples/two_replicas_tp2.yaml", "--port", str(port)]
    offline = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    with command(tmp_path, "serve", "them/plain", *two, "--max-model-len", "1k", "--enforce-eager", **offline) as process:
        wait_for(lambda: "Serving at" in (tmp_path / "out").read_text() or process.poll() is not None, START_S, "the service")
        text, told = (tmp_path / "out").read_text(), (tmp_path / "err").read_text()
        assert process.poll() is None, told
        chat = httpx.post(f"{url}/v1/chat/completions", json={"model": "them/plain", "messages": [{"role": "user", "content": "Hello."}]})
        asked = {"model": "them/plain", "prompt": "Is it?", "max_tokens": 8}
        completions = [
            httpx.post(f"{url}/v1/completions", json={**asked, "structured_outputs": {"choice": [word]}}, timeout=60)
            for word in ("yes", "no", "perhaps", "never")  # grammars spread over replicas
        ]
    assert "1000 tokens of context" in text
    assert "no chat template" in told
    assert chat.status_code == 400
    assert "chat template" in chat.json()["error"]["message"]
    assert [completion.json()["choices"][0]["text"] for completion in completions] == ["yes", "no", "perhaps", "never"]


def test_a_taken_port_is_one_sentence_and_a_failure(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with command(tmp_path, "serve", "embedded", "--port", str(taken.getsockname()[1])) as process:
            process.wait(60)
    assert process.returncode == 1
    *reasons, message = (tmp_path / "err").read_text().strip().splitlines()
    assert "taken" in message
    assert all(reason.startswith("model.") for reason in reasons)


def test_a_file_of_requests_is_answered_by_a_service_of_its_own(tmp_path: Path) -> None:
    ask, choice = "Is it far?", {"choice": ["yes", "no"]}
    bodies = {
        "/v1/chat/completions": {"messages": [{"role": "user", "content": ask}], "structured_outputs": choice},
        "/v1/completions": {"prompt": ask, "structured_outputs": choice},
        "/v1/responses": {"input": ask, "structured_outputs": choice},
        "/v1/messages": {"messages": [{"role": "user", "content": ask}], "max_tokens": 8, "structured_outputs": choice},
    }
    requests = [
        {"custom_id": f"{url} {number}", "method": "POST", "url": url, "body": bodies[url]} for url in bodies for number in range(5)
    ]
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(f"{json.dumps(request)}\n" for request in requests))
    with command(tmp_path, "batch", str(source), "-o", str(target), "embedded") as process:
        assert process.wait(START_S) == 0, (tmp_path / "err").read_text()
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert {line["custom_id"] for line in lines} == {request["custom_id"] for request in requests}
    assert {line["response"]["status_code"] for line in lines} == {200}
    assert "20 answered, 0 failed" in (tmp_path / "err").read_text()
