"""`maskcast batch`: the requests of a file, in OpenAI's batch format, each answered by one line of another file.

A run that was interrupted goes on where it was: requests that have a line in the output are not sent again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

import aiohttp

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
    root, patience = url.rstrip("/"), aiohttp.ClientTimeout(total=ANSWER_S)
    # For 3,000 requests it takes 0.6 s of processor time, where httpx takes 2.4 (or 10, with one client for 64 connections).
    async with aiohttp.ClientSession(headers=headers, timeout=patience, connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def work() -> None:
            for request in requests:  # shared: each takes the next one
                if request.custom_id in done:
                    counts.skipped += 1
                else:
                    line, is_answered = await _line(session, root, request)
                    answers.write(f"{json.dumps(line, ensure_ascii=False)}\n")
                    answers.flush()
                    counts.answered += is_answered
                    counts.failed += not is_answered
                show(counts.done)

        async with asyncio.TaskGroup() as workers:
            for _ in range(concurrency):
                workers.create_task(work())
    return counts


async def _line(session: aiohttp.ClientSession, root: str, request: BatchRequest) -> tuple[dict[str, Any], bool]:
    """Of the output, and whether the request was answered."""
    line: dict[str, Any] = {"id": f"batch_req_{uuid4().hex}", "custom_id": request.custom_id, "response": None, "error": None}
    if request.body is None:
        line["error"] = {"code": "invalid_request", "message": request.fault}
        return line, False
    try:
        status, content = await _answer(session, f"{root}{request.path}", request.body)
    except (aiohttp.ClientError, TimeoutError) as error:
        line["error"] = {"code": "connection_error", "message": f"{error!r}"}
        return line, False
    try:
        body = json.loads(content)
    except ValueError:
        body = {"text": content.decode(errors="replace")}
    told = body.get("id", "") if isinstance(body, dict) else ""
    line["response"] = {"status_code": status, "request_id": told, "body": body}
    return line, status < HTTPStatus.MULTIPLE_CHOICES


async def _answer(session: aiohttp.ClientSession, url: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
    """The status and the body; asked again while the service is too busy. Raises aiohttp.ClientError, TimeoutError: it could not be reached
    at last."""
    for attempt in range(1, TRIES + 1):
        last, wait_s = attempt == TRIES, min(LONGEST_WAIT_S, 2.0 ** (attempt - 1))
        try:
            async with session.post(url, json=body, allow_redirects=False) as response:
                if last or response.status not in BUSY:
                    return response.status, await response.read()
                told = response.headers.get("Retry-After", "")
                wait_s = min(LONGEST_WAIT_S, int(told)) if told.isdigit() else wait_s
        except (aiohttp.ClientError, TimeoutError):
            if last:
                raise
        await asyncio.sleep(wait_s)
    raise AssertionError("the last one returns or raises")
