"""The span of an HTTP request: what it begins with, what it tells, and how its client finds it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from opentelemetry.trace import StatusCode
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from deployments.api.http.traced import TracedHttp
from tests.recorded_spans import SAMPLED, UNSAMPLED, RecordedSpans, own, parent, told

PATH = "/v1/completions"


def client(recorded: RecordedSpans) -> httpx.AsyncClient:
    async def answer(request: Request) -> Response:
        if request.query_params.get("status"):
            return PlainTextResponse("", int(request.query_params["status"]))
        return StreamingResponse(pieces())

    async def pieces() -> AsyncIterator[str]:
        for piece in "ab":
            recorded.tracing.span(f"piece {piece}").end()
            yield piece

    application = Starlette(routes=[Route(path, answer, methods=["POST", "GET"]) for path in (PATH, "/metrics")])
    return httpx.AsyncClient(transport=httpx.ASGITransport(TracedHttp(application, recorded.tracing)), base_url="http://localhost")


async def test_a_stream_is_one_span_from_its_headers_to_its_last_byte_and_all_is_below_it() -> None:
    recorded = RecordedSpans(sample_ratio=0)
    answer = await client(recorded).post(PATH, headers={"traceparent": SAMPLED})
    assert answer.text == "ab"
    request = recorded.one(f"POST {PATH}")
    assert recorded.spans[-1] is request
    assert parent(request) == SAMPLED.split("-")[2]
    assert [parent(recorded.one(f"piece {piece}")) for piece in "ab"] == [own(request)] * 2
    assert told(request)["http.response.status_code"] == 200
    assert answer.headers["traceparent"] == f"00-{'7' * 32}-{own(request)}-01"


@pytest.mark.parametrize(("status", "outcome"), [(400, StatusCode.UNSET), (429, StatusCode.UNSET), (503, StatusCode.ERROR)])
async def test_only_the_services_own_faults_are_faults_of_the_span(status: int, outcome: StatusCode) -> None:
    recorded = RecordedSpans()
    await client(recorded).post(f"{PATH}?status={status}")
    (span,) = recorded.spans
    assert (told(span)["http.response.status_code"], span.status.status_code) == (status, outcome)


async def test_what_is_not_to_be_traced_leaves_nothing_but_its_name() -> None:
    recorded = RecordedSpans()
    answer = await client(recorded).post(PATH, headers={"traceparent": UNSAMPLED})
    assert recorded.spans == []
    assert answer.headers["traceparent"].endswith("-00")


async def test_two_parents_are_none() -> None:
    recorded = RecordedSpans()
    await client(recorded).post(PATH, headers=[("traceparent", SAMPLED), ("traceparent", UNSAMPLED)])
    assert parent(recorded.one(f"POST {PATH}")) == ""


async def test_health_and_metrics_are_no_requests_to_trace() -> None:
    recorded = RecordedSpans()
    answer = await client(recorded).get("/metrics?status=200")
    assert recorded.spans == []
    assert "traceparent" not in answer.headers
