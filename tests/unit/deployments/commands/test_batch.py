"""Requests in files: every line has its answer, once, whatever happens."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from deployments.commands import batch
from deployments.commands.batch import BatchCounts, run_batch
from deployments.errors import BatchFailed

CHAT = "/v1/chat/completions"


@contextmanager
def answering(statuses: dict[str, list[int]]) -> Iterator[tuple[str, Counter[str]]]:
    """A service that answers each prompt with its statuses in turn, then with 200; its URL, and how often each was asked."""
    asked = Counter[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = body["prompt"]
            asked[prompt] += 1
            left = statuses.get(prompt, [])
            status = left.pop(0) if left else 200
            data = json.dumps({"id": f"id-{prompt}", "key": self.headers.get("Authorization"), "body": body}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def request(custom_id: str, **changes: Any) -> dict[str, Any]:
    return {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": {"prompt": custom_id, "stream": True}, **changes}


def written(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def run(source: Path, target: Path, url: str, concurrency: int = 4) -> BatchCounts:
    return run_batch(source, target, url, "secret", concurrency, lambda done, total: None)


def lines_of(target: Path) -> dict[str, Any]:
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert len({line["custom_id"] for line in lines}) == len(lines)
    return {line["custom_id"]: line for line in lines}


def test_each_request_has_a_line(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(20)]
    source = written(tmp_path / "in", [*map(request, names), ""])
    with answering({"r3": [400]}) as (url, _):
        counts = run(source, tmp_path / "out", url)
    assert (counts.answered, counts.failed, counts.skipped) == (19, 1, 0)
    found = lines_of(tmp_path / "out")
    assert set(found) == set(names)
    assert found["r3"]["response"]["status_code"] == 400
    told = found["r4"]["response"]
    assert (told["status_code"], told["request_id"], found["r4"]["error"]) == (200, "id-r4", None)
    assert told["body"]["body"] == {"prompt": "r4"}, "whole answers, no streams"
    assert told["body"]["key"] == "Bearer secret"


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    source = written(tmp_path / "in", [request(name) for name in ("a", "b", "c")])
    target = tmp_path / "out"
    target.write_text(json.dumps({"custom_id": "a", "response": {}}) + "\n" + '{"custom_id": "b", "resp')
    with answering({}) as (url, asked):
        counts = run(source, target, url)
    assert (counts.answered, counts.skipped) == (2, 1)
    assert asked == {"b": 1, "c": 1}
    assert sorted(lines_of(target)) == ["a", "b", "c"]  # each where it was answered


def test_a_busy_service_is_asked_again(tmp_path: Path) -> None:
    source = written(tmp_path / "in", [request("a"), request("b")])
    with answering({"a": [503, 429], "b": [503] * batch.TRIES}) as (url, asked):
        counts = run(source, tmp_path / "out", url)
    assert (counts.answered, counts.failed) == (1, 1)
    assert asked == {"a": 3, "b": batch.TRIES}
    assert lines_of(tmp_path / "out")["b"]["response"]["status_code"] == 503


def test_what_is_no_request_has_a_line_that_says_why(tmp_path: Path) -> None:
    wrong = [
        "{",
        [],
        {"url": CHAT, "body": {}},
        request("method", method="GET"),
        request("url", url="/v1/embeddings"),
        request("body", body=[]),
        request("twice"),
        request("twice"),
    ]
    with answering({}) as (url, _):
        counts = run(written(tmp_path / "in", wrong), tmp_path / "out", url, 1)
    assert (counts.answered, counts.failed) == (1, 7)
    found = lines_of(tmp_path / "out")
    told = {name: line["error"]["message"] for name, line in found.items() if line["error"]}
    assert set(told) == {"line-1", "line-2", "line-3", "method", "url", "body", "line-8"}
    assert "not JSON" in told["line-1"]
    assert "custom_id" in told["line-2"]
    assert CHAT in told["url"]
    assert "'twice'" in told["line-8"]


def test_a_service_that_is_not_there_leaves_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "TRIES", 1)
    with answering({}) as (url, _):
        pass
    assert run(written(tmp_path / "in", [request("a")]), tmp_path / "out", url).failed == 1
    assert lines_of(tmp_path / "out")["a"]["error"]["code"] == "connection_error"


def test_files_that_cannot_be_read_or_written_are_told_of(tmp_path: Path) -> None:
    source = written(tmp_path / "in", [request("a")])
    with pytest.raises(BatchFailed):
        run(tmp_path / "none", tmp_path / "out", "http://127.0.0.1:1")
    with pytest.raises(BatchFailed):
        run(source, tmp_path, "http://127.0.0.1:1")
    source.write_bytes(b"\xff\n")
    with pytest.raises(BatchFailed):
        run(source, tmp_path / "out", "http://127.0.0.1:1")
