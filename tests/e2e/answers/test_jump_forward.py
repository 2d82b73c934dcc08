"""What a user sees of jump-forward: the usage figures, the spans where they are asked for, the metrics."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.service import MODEL, Service, wait_for

QUESTION = "Extract name, age as JSON.\n\nMeet Clara Novak. The person is 34 years old."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}


def test_usage_says_how_much_was_forced(service: Service) -> None:
    constrained = service.chat(QUESTION, response_format=FORMAT, temperature=0).json()["usage"]
    assert 0 < constrained["completion_tokens_details"]["forced_tokens"] < constrained["completion_tokens"]
    free = service.chat(QUESTION, temperature=0, max_tokens=4).json()["usage"]
    assert free["completion_tokens_details"]["forced_tokens"] == 0


def test_the_openai_client_reads_it_from_a_stream(service: Service) -> None:
    stream = service.client().chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": QUESTION}],
        response_format=FORMAT,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    *_, last = stream
    assert last.usage is not None
    details: Any = last.usage.completion_tokens_details
    assert details.forced_tokens > 0


def test_forced_text_is_marked_where_that_is_asked_for(service: Service) -> None:
    choice = service.chat(QUESTION, response_format=FORMAT, temperature=0, mark_forced=True).json()["choices"][0]
    text = choice["message"]["content"]
    forced = "".join(text[start:end] for start, end in choice["forced_spans"])
    assert forced.startswith('{"name":')
    assert '"age": ' in forced
    assert json.loads(text)["name"] not in forced
    plain = service.chat(QUESTION, response_format=FORMAT, temperature=0).json()["choices"][0]
    assert "forced_spans" not in plain


def test_a_wrong_mark_is_refused(service: Service) -> None:
    response = service.chat(QUESTION, mark_forced="yes")
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "mark_forced"


def test_text_completions_count_over_all_prompts_and_choices(service: Service) -> None:
    body = {"model": MODEL, "prompt": ["One:", "Two:"], "n": 2, "max_tokens": 32, "temperature": 1, "seed": 1, "mark_forced": True}
    answer = service.post("/v1/completions", {**body, "structured_outputs": {"choice": ["the first one", "the last one"]}}).json()
    assert len(answer["choices"]) == 4
    for choice in answer["choices"]:
        assert choice["text"] in ("the first one", "the last one")
        assert choice["forced_spans"][0][0] == 0
    assert answer["usage"]["completion_tokens_details"]["forced_tokens"] >= 4


def test_metrics_tell_tokens_segments_and_steps(service: Service) -> None:
    service.chat(QUESTION, response_format=FORMAT, temperature=0)

    def counted() -> dict[str, float]:
        sums = _sums(service)
        return sums if sums["maskcast_forced_segments_total"] else {}

    sums = wait_for(counted, 60, "the metrics of a jump")
    assert sums["maskcast_forced_tokens_total"] > sums["maskcast_forced_segments_total"]
    assert sums["maskcast_steps_saved_total"] == sums["maskcast_forced_tokens_total"]


def test_a_replica_tells_routers_of_its_load(service: Service) -> None:
    stats = service.routing_stats()
    assert stats.pop("taken_at") > 0
    assert stats["step_ms"] >= 0
    assert stats["step_tokens"] >= 64
    assert (stats["requests"], stats["prefill_tokens"]) == (0, 0)


def test_the_metrics_tell_what_each_engine_does(service: Service) -> None:
    service.chat("Say.", structured_outputs={"regex": "told-[a-c]{3}"})

    def told() -> set[str]:
        page = httpx.get(f"{service.url}/metrics", timeout=30).text
        samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
        return {
            sample.name for sample in samples if sample.name.startswith("maskcast_engine_") and sample.labels["replica"] and sample.value
        }

    names = {f"maskcast_engine_{name}_total" for name in ("steps", "step_us", "masked_steps", "mask_rows", "grammars_loaded")}
    wait_for(lambda: {*names, "maskcast_engine_grammars_resident"} <= told(), 60, "the metrics of an engine")


def _sums(service: Service) -> dict[str, float]:
    names = ("maskcast_forced_tokens_total", "maskcast_forced_segments_total", "maskcast_steps_saved_total")
    sums = dict.fromkeys(names, 0.0)
    for family in text_string_to_metric_families(httpx.get(f"{service.url}/metrics", timeout=30).text):
        for sample in family.samples:
            if sample.name in sums:
                sums[sample.name] += sample.value
    return sums


def test_an_answer_that_its_limit_would_cut_is_closed_where_the_request_asks(service: Service) -> None:
    asked: dict[str, Any] = {"response_format": FORMAT, "temperature": 0, "max_tokens": 12}
    with pytest.raises(json.JSONDecodeError):
        json.loads(service.chat(QUESTION, **asked).json()["choices"][0]["message"]["content"])
    body = service.chat(QUESTION, **asked, close_at_limit=True).json()
    assert json.loads(body["choices"][0]["message"]["content"]).keys() == SCHEMA["properties"].keys()
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] <= 12
    assert body["usage"]["completion_tokens_details"]["closed_at_limit"] == 1
