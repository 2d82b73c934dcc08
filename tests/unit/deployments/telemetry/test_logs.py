"""Log lines as JSON: what they hold, and what tells requests apart in them."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import logging.config
from collections.abc import Iterator
from logging.handlers import MemoryHandler
from pathlib import Path
from typing import Any

import pytest

from deployments.telemetry.logs import RAY_SERVE, LoggedRequests, about_request, current_request_id, handlers_kept, log_json, trace_id_of
from model_service.messages import Endpoint


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What this process logs, until the test has ended."""
    root, stream = logging.getLogger(), io.StringIO()
    before = root.handlers
    log_json("Ingress", stream)
    yield stream
    root.handlers = before


def lines(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_line_is_one_object_whatever_the_message(written: io.StringIO) -> None:
    logging.getLogger("deployments.access").warning('the "file"\nis %s', "gone")
    (line,) = lines(written)
    assert (line["level"], line["logger"], line["component"]) == ("WARNING", "deployments.access", "Ingress")
    assert line["message"] == 'the "file"\nis gone'
    assert "request_id" not in line


def test_an_exception_is_part_of_its_line(written: io.StringIO) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("deployments").exception("it failed")
    (line,) = lines(written)
    assert line["exception"].endswith("ValueError: no")


async def test_requests_side_by_side_have_lines_of_their_own(written: io.StringIO) -> None:
    requests = LoggedRequests(lambda: "")

    async def answer(request_id: str) -> None:
        about_request(request_id, "", "")
        await asyncio.sleep(0)
        logging.getLogger("deployments").warning("in between")
        requests.finished(Endpoint.CHAT, 200, 0.25, "billing")

    async with asyncio.TaskGroup() as group:
        for name in ("a", "b"):
            group.create_task(answer(name))
    assert [(line["message"], line["request_id"]) for line in lines(written)] == [
        ("in between", "a"),
        ("request", "a"),
        ("in between", "b"),
        ("request", "b"),
    ]


async def test_all_lines_about_a_request_tell_whose_it_is_and_its_trace(written: io.StringIO) -> None:
    """Only the last one did, and in the processes behind the ingress none."""

    async def answer() -> str:
        about_request("0c1d", "billing", trace_id_of(f"00-{'4b' * 16}-{'f9' * 8}-01"))
        await asyncio.create_task(asyncio.to_thread(logging.getLogger("model_service").warning, "in between"))
        return current_request_id()

    assert await asyncio.create_task(answer()) == "0c1d"
    logging.getLogger("model_service").warning("of nobody's request")
    about, other = lines(written)
    assert (about["request_id"], about["tenant"], about["trace_id"]) == ("0c1d", "billing", "4b" * 16)
    assert not {"request_id", "tenant", "trace_id"} & other.keys()


@pytest.mark.parametrize("traceparent", ["", f"00-{'4b' * 16}-{'f9' * 8}-00"])
def test_a_trace_that_nobody_records_has_no_id(traceparent: str) -> None:
    assert trace_id_of(traceparent) == ""


def test_the_line_of_a_request_tells_its_tenant_and_trace_and_nothing_that_is_not_there(written: io.StringIO) -> None:
    LoggedRequests(lambda: "4bf9").finished(Endpoint.COMPLETION, 429, 0.00123456, "billing")
    LoggedRequests(lambda: "").finished(Endpoint.COMPLETION, 401, 0.0, "")
    refused, unknown = ({key: line[key] for key in line if key not in ("time", "process")} for line in lines(written))
    told = {"level": "INFO", "logger": "maskcast.requests", "component": "Ingress", "message": "request", "endpoint": "completion"}
    assert refused == {**told, "status": 429, "seconds": 0.0012, "tenant": "billing", "trace_id": "4bf9"}
    assert unknown == {**told, "status": 401, "seconds": 0.0}


@pytest.fixture
def gathering(tmp_path: Path) -> Iterator[MemoryHandler]:
    """As Ray Serve gives its logger one. The configuration below closes all handlers there are, pytest's too, which takes no harm."""
    file = logging.FileHandler(tmp_path / "serve.log")
    handler, logger = MemoryHandler(1, target=file), logging.getLogger(RAY_SERVE)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    file.close()


def test_what_ray_serve_logs_is_written_though_a_library_configures_logging(gathering: MemoryHandler, tmp_path: Path) -> None:
    with handlers_kept():
        logging.config.dictConfig({"version": 1, "disable_existing_loggers": False})
    logging.getLogger(RAY_SERVE).warning("still here")
    assert (tmp_path / "serve.log").read_text() == "still here\n"
    assert not gathering.buffer
