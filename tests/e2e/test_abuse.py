"""Hostile constraints over HTTP: each ends in a grammar or in a clear refusal, in time, and the service goes on as before."""

from __future__ import annotations

import json
import time

import httpx
import pytest

from load_tests.reporting.running_service import memory_mib
from tests.e2e.service import Service
from tests.hostile_corpus import HOSTILE, request_field

LONGEST_S = 30.0
"""The compile deadline (2 s of a processor), and what a busy machine needs around it."""
GROWTH_MIB = 512
JSON = {"Content-Type": "application/json"}
CODES = {"invalid_grammar", "unsupported_grammar", "grammar_too_large", "grammar_compile_timeout", "grammar_compile_failed"}
CODES |= {"invalid_json", "body_too_large"}


@pytest.fixture(scope="module")
def memory_before(service: Service) -> float:
    assert service.text("Is it far?", structured_outputs={"choice": ["yes", "no"]})
    return memory_mib()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_constraint_is_served_or_clearly_refused(name: str, service: Service, memory_before: float) -> None:
    body = {"messages": [{"role": "user", "content": "Go."}], "structured_outputs": request_field(HOSTILE[name]), "max_tokens": 2}
    started = time.monotonic()
    # Escaped as ASCII, so that lone surrogates get as far as the service.
    answer = httpx.post(f"{service.url}/v1/chat/completions", content=json.dumps(body).encode("ascii"), headers=JSON, timeout=60)
    assert time.monotonic() - started < LONGEST_S
    assert answer.status_code in (200, 400, 413), answer.text
    if answer.status_code != 200:
        error = answer.json()["error"]
        assert error["code"] in CODES
        assert error["message"]


@pytest.mark.parametrize("raw", [b'{"messages": "\xff"}', b"\xef\xbb\xbf\x00", b"[" * 100_000, b'{"a": 1e999}', b'{"a": NaN}'])
def test_a_body_that_is_no_json_is_a_400(raw: bytes, service: Service) -> None:
    answer = httpx.post(f"{service.url}/v1/chat/completions", content=raw, headers=JSON, timeout=60)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] in ("invalid_json", "invalid_request", "grammar_too_large", "request_too_large")


def test_after_all_that_the_service_answers_and_the_memory_is_back(service: Service, memory_before: float) -> None:
    assert service.text("Is it far?", structured_outputs={"choice": ["yes", "no"]}) in ("yes", "no")
    assert service.ready()["status"] == "ready"
    assert memory_mib() < memory_before + GROWTH_MIB
