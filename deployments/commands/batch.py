"""`maskcast batch`: the requests of a file, in OpenAI's batch format, each answered by one line of another file.

A run that was interrupted goes on where it was: requests that have a line in the output are not sent again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

import httpx

from deployments.client.transport import retry_after_s
from deployments.errors import BatchFailed

PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages")
TRIES, LONGEST_WAIT_S = 8, 30.0
"""Of a request that the service is too busy for, or that it cannot be reached with; and between two of them."""
ANSWER_S = 3600.0
"""For an answer; the service has a bound of its own."""
BUSY = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """One line of the input. `fault`: why it is not sent."""

    custom_id: str
    path: str = ""
    body: dict[str, Any] | None = None
    fault: str = ""


@dataclass(slots=True)
class BatchCounts:
    """Requests that were answered, and those that were refused or could not be; `skipped` had been answered before."""

    answered: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def done(self) -> int:
        return self.answered + self.failed + self.skipped


def run_batch(source: Path, target: Path, url: str, key: str | None, concurrency: int, show: Callable[[int, int], None]) -> BatchCounts:
    """Send the requests of `source` to the service at `url`, so many at a time. `show` hears how many are done, and of how many.

    Raises:
        BatchFailed: a file cannot be read or written.
    """
    try:
        done = finished_ids(target)
        with source.open(encoding="utf-8") as lines:
            total = sum(1 for line in lines if line.strip())
        with source.open(encoding="utf-8") as lines, target.open("a", encoding="utf-8") as answers:
            return asyncio.run(_send_all(read_requests(lines), done, answers, url, key, concurrency, lambda count: show(count, total)))
    except (OSError, UnicodeDecodeError) as error:
        raise BatchFailed(f"{error}") from error


def finished_ids(target: Path) -> set[str]:
    """Those that have a line in the output; half a line that an interruption has left is cut off."""
    found, whole = set[str](), 0
    if not target.exists():
        return found
    with target.open("rb+") as answers:
        for line in answers:
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            with suppress(ValueError, KeyError, TypeError):
                found.add(str(json.loads(line)["custom_id"]))
        answers.truncate(whole)
    return found


def read_requests(lines: TextIO) -> Iterator[BatchRequest]:
    """One for each line that is not blank; a name that was there before is a fault."""
    seen = set[str]()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        request = _read(line, number)
        if request.custom_id in seen:
            request = BatchRequest(f"line-{number}", fault=f"the custom_id {request.custom_id[:100]!r} is there twice")
        seen.add(request.custom_id)
        yield request


def _read(line: str, number: int) -> BatchRequest:
    try:
        given = json.loads(line)
    except ValueError as error:
        return BatchRequest(f"line-{number}", fault=f"line {number} is not JSON: {error}")
    custom_id = given.get("custom_id") if isinstance(given, dict) else None
    if not isinstance(custom_id, str):
        return BatchRequest(f"line-{number}", fault=f"line {number} has no 'custom_id'")
    if given.get("method", "POST") != "POST" or given.get("url") not in PATHS:
        return BatchRequest(custom_id, fault=f"'method' must be POST, and 'url' one of: {', '.join(PATHS)}")
    if not isinstance(given.get("body"), dict):
        return BatchRequest(custom_id, fault="'body' must be an object")
    return BatchRequest(custom_id, given["url"], {name: value for name, value in given["body"].items() if name != "stream"})


async def _send_all(
    requests: Iterator[BatchRequest],
    done: set[str],
    answers: TextIO,
    url: str,
    key: str | None,
    concurrency: int,
    show: Callable[[int], None],
) -> BatchCounts:
    counts, headers = BatchCounts(), {"Authorization": f"Bearer {key}"} if key else {}
    tls = httpx.create_ssl_context(trust_env=False)

    async def work() -> None:
        # A client of its own: for each request, httpx looks through all connections of a client, which of 64 takes most of its time.
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=ANSWER_S, verify=tls, trust_env=False) as client:
            for request in requests:  # shared: each takes the next one
                if request.custom_id in done:
                    counts.skipped += 1
                else:
                    line, is_answered = await _line(client, request)
                    answers.write(f"{json.dumps(line, ensure_ascii=False)}\n")
                    answers.flush()
                    counts.answered += is_answered
                    counts.failed += not is_answered
                show(counts.done)

    async with asyncio.TaskGroup() as workers:
        for _ in range(concurrency):
            workers.create_task(work())
    return counts


async def _line(client: httpx.AsyncClient, request: BatchRequest) -> tuple[dict[str, Any], bool]:
    """Of the output, and whether the request was answered."""
    line: dict[str, Any] = {"id": f"batch_req_{uuid4().hex}", "custom_id": request.custom_id, "response": None, "error": None}
    if request.body is None:
        line["error"] = {"code": "invalid_request", "message": request.fault}
        return line, False
    try:
        response = await _answer(client, request)
    except httpx.HTTPError as error:
        line["error"] = {"code": "connection_error", "message": f"{error!r}"}
        return line, False
    try:
        body = response.json()
    except ValueError:
        body = {"text": response.text}
    told = body.get("id", "") if isinstance(body, dict) else ""
    line["response"] = {"status_code": response.status_code, "request_id": told, "body": body}
    return line, response.is_success


async def _answer(client: httpx.AsyncClient, request: BatchRequest) -> httpx.Response:
    """Asked again while the service is too busy. Raises httpx.HTTPError: it could not be reached at last."""
    for attempt in range(1, TRIES + 1):
        last, wait_s = attempt == TRIES, min(LONGEST_WAIT_S, 2.0 ** (attempt - 1))
        try:
            response = await client.post(request.path, json=request.body)
        except httpx.TransportError:
            if last:
                raise
        else:
            if last or response.status_code not in BUSY:
                return response
            told_s = retry_after_s(response)
            wait_s = wait_s if told_s is None else min(LONGEST_WAIT_S, told_s)
        await asyncio.sleep(wait_s)
    raise AssertionError("the last one returns or raises")
