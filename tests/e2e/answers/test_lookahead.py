"""Look-aheads over HTTP, and what the metrics tell of them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from openai import OpenAI
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.answers.faulty_reward import HANGS, NAN
from tests.e2e.service import MODEL, Service, wait_for

ASKED: dict[str, Any] = {"method": "cdlh", "d": 5, "reward": {"type": "concepts", "words": ["right"]}}


def counted(service: Service) -> dict[str, float]:
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(httpx.get(f"{service.url}/metrics", timeout=30).text):
        for sample in family.samples:
            if sample.name == "maskcast_lookahead_total":
                sums[sample.labels["counted"]] = sums.get(sample.labels["counted"], 0) + sample.value
    return sums


def test_the_openai_client_streams_one_and_the_metrics_count_it(service: Service) -> None:
    client: OpenAI = service.client()
    before = counted(service)
    stream = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Say."}],
        max_tokens=8,
        stream=True,
        extra_body={"structured_outputs": {"choice": ["left", "right"]}, "lookahead": {**ASKED, "trace": True}},
    )
    parts = [part.choices[0] for part in stream]
    assert "".join(part.delta.content or "" for part in parts) == "right"
    steps = [step for part in parts for step in part.model_dump().get("lookahead_steps", ())]
    assert "".join(step["text"] for step in steps) == "right"
    grown = wait_for(lambda: _grown(before, counted(service)), 60, "the metrics of a look-ahead")
    assert grown["answers"] >= 1
    assert grown["target_calls"] > grown["tokens"] > 0
    assert grown["reward_us"] > 0


def test_each_prompt_of_a_completion_looks_ahead(service: Service) -> None:
    asked = {"prompt": ["Say.", "Say it."], "structured_outputs": {"choice": ["left", "right"]}, "lookahead": ASKED, "max_tokens": 8}
    answer = service.post("/v1/completions", {"model": MODEL, **asked}).json()
    assert [choice["text"] for choice in answer["choices"]] == ["right", "right"]
    told = answer["usage"]["completion_tokens_details"]["lookahead"]
    assert told["reward"] == 1
    assert told["target_calls"] > answer["usage"]["completion_tokens"]


def test_it_is_one_request_whatever_it_looks_at(service: Service) -> None:
    """For the metrics, for rate limits (which count the usage), and for who counts an engine's seats."""
    answered, endless = service.requests("chat"), {"lookahead": ASKED, "guided_regex": "[a-z]{900,1000}"}
    stream = service.client().chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "Say."}], max_tokens=1000, stream=True, extra_body=endless
    )
    parts = iter(stream)
    next(parts)
    wait_for(lambda: service.status().running == 1, 20, "the look-ahead to be one request")
    stream.close()
    wait_for(lambda: service.status().running == 0, 30, "the look-ahead to end")
    answer = service.chat("Say.", structured_outputs={"choice": ["left", "right"]}, lookahead=ASKED, max_tokens=8).json()
    usage = answer["usage"]
    assert usage["completion_tokens_details"]["lookahead"]["target_calls"] > usage["completion_tokens"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    wait_for(lambda: service.requests("chat") >= answered + 2, 60, "the requests to be counted")
    assert service.requests("chat") == answered + 2


def test_a_fault_is_a_400_with_its_field(service: Service) -> None:
    response = service.chat("Say.", lookahead={**ASKED, "k": 99})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "lookahead.k")
    response = service.chat("Say.", lookahead=ASKED, temperature=0.7)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "temperature")


def test_a_grammar_may_be_wished_for(service: Service) -> None:
    asked = {"method": "cdlh", "d": 4, "reward": {"type": "grammar", "choice": ["right", "write"]}}
    response = service.chat("Say.", structured_outputs={"choice": ["left", "right"]}, lookahead=asked)
    assert response.json()["choices"][0]["message"]["content"] == "right"
    refused = service.chat("Say.", lookahead={**asked, "reward": {"type": "grammar", "regex": "("}})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "lookahead.reward.regex")


def test_a_reward_of_the_settings_is_asked_by_its_name(service: Service) -> None:
    asked = {"method": "cdlh", "d": 4, "reward": {"type": "named", "name": "brief"}}
    answer = service.chat("Say.", structured_outputs={"choice": ["right", "left"]}, lookahead=asked).json()
    assert answer["choices"][0]["message"]["content"] == "left"
    assert answer["usage"]["completion_tokens_details"]["lookahead"]["reward"] == 1
    unknown = service.chat("Say.", lookahead={**asked, "reward": {"type": "named", "name": "long"}})
    assert (unknown.status_code, unknown.json()["error"]["param"]) == (400, "lookahead.reward.name")


@pytest.mark.parametrize(("fault", "status", "code"), [(NAN, 502, "reward_failed"), (HANGS, 504, "reward_timeout")])
def test_a_reward_that_fails_is_the_documented_answer_or_an_event_once_something_was_said(
    service: Service, fault: str, status: int, code: str
) -> None:
    """Texts come to the fault after a while; what hangs is asked no more, and whoever asks it waits in vain."""
    asked = {"method": "cdlh", "d": 1, "k": 1, "reward": {"type": "named", "name": "faulty"}}
    fields = {"structured_outputs": {"regex": f"[a-f]{{12}} {fault}"}, "lookahead": asked}
    lines = service.chat("Say.", stream=True, **fields).text.splitlines()
    *parts, last = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    assert "".join(choice["delta"].get("content") or "" for part in parts for choice in part["choices"])
    assert last["error"]["code"] == code
    refused = service.chat("Say.", **fields)
    assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)
    wait_for(lambda: service.status().running == 0, 60, "the look-aheads to end")


def _grown(before: dict[str, float], now: dict[str, float]) -> dict[str, float]:
    """Nothing, until an answer is counted."""
    grown = {name: value - before.get(name, 0) for name, value in now.items()}
    return grown if grown.get("answers") else {}
