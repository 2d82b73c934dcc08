"""`unenforceable: check`: what no backend enforces is checked in the finished answer, and nothing wrong is handed over as right."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.service import MODEL, Service, wait_for

QUESTION = "Say two letters."
TWICE = "^(.)\\1$"
"""Python knows it, and no automaton does."""


def schema(*values: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"pair": {"type": "string", "enum": list(values), "pattern": TWICE}},
        "required": ["pair"],
        "additionalProperties": False,
    }


def asked(*values: str, **fields: Any) -> dict[str, Any]:
    return {"structured_outputs": {"json": schema(*values)}, "unenforceable": "check", "temperature": 1, **fields}


def events(service: Service) -> dict[str, float]:
    families = text_string_to_metric_families(httpx.get(f"{service.url}/metrics", timeout=30).text)
    samples = [sample for family in families for sample in family.samples]
    return {sample.labels["event"]: sample.value for sample in samples if sample.name == "maskcast_answer_checks_total"}


def test_without_it_the_schema_is_refused(service: Service) -> None:
    response = service.chat(QUESTION, structured_outputs={"json": schema("aa", "bb")})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "unsupported_grammar")
    assert response.json()["error"]["param"] == "structured_outputs.json#/properties/pair/pattern"


def test_a_right_answer_is_handed_over_with_what_was_left_out(service: Service) -> None:
    response = service.chat(QUESTION, **asked("aa", "bb"))
    assert response.status_code == 200, response.text
    body = response.json()
    assert json.loads(body["choices"][0]["message"]["content"])["pair"] in ("aa", "bb")
    assert [(told["code"], told["pointer"]) for told in body["maskcast"]["warnings"]] == [
        ("checked_afterwards", "/properties/pair/pattern")
    ]


def test_an_answer_that_stays_wrong_is_an_error_that_says_why(service: Service) -> None:
    response = service.chat(QUESTION, **asked("ab", "ba"))
    assert (response.status_code, response.json()["error"]["code"]) == (422, "constraint_not_met")
    assert "/pair" in response.json()["error"]["message"]


def test_of_several_choices_none_is_wrong_and_wrong_ones_are_asked_for_again(service: Service) -> None:
    before = events(service)
    answers = [service.chat(QUESTION, **asked("aa", "ab", "bb", "ba", n=4, seed=seed)) for seed in range(6)]
    for response in answers:
        assert response.status_code in (200, 422), response.text
        for choice in response.json().get("choices", ()):
            assert json.loads(choice["message"]["content"])["pair"] in ("aa", "bb")
    wait_for(lambda: events(service).get("retried", 0) > before.get("retried", 0), 30, "the retries in the metrics")
    assert events(service)["checked"] > before.get("checked", 0)


def test_a_wrong_answer_is_asked_for_again_with_another_seed(service: Service) -> None:
    """Without the pattern, which the grammar leaves out, a seed shows what the first answer is."""

    def pair(response: httpx.Response) -> str:
        return str(json.loads(response.json()["choices"][0]["message"]["content"])["pair"])

    values, right = ("aa", "ab", "ba", "bb", "cc", "ef"), {"aa", "bb", "cc"}
    plain = schema(*values)
    del plain["properties"]["pair"]["pattern"]
    first = {seed: pair(service.chat(QUESTION, structured_outputs={"json": plain}, temperature=2, seed=seed)) for seed in range(12)}
    wrong = [seed for seed, value in first.items() if value not in right]
    assert wrong, first
    answers = [service.chat(QUESTION, **asked(*values, seed=seed, temperature=2)) for seed in wrong]
    found = [pair(response) for response in answers if response.status_code == 200]
    assert found, (first, [response.text for response in answers])
    assert set(found) <= right


def test_completions_are_checked_as_well(service: Service) -> None:
    right = service.post("/v1/completions", {"model": MODEL, "prompt": "Pair:", "max_tokens": 64, **asked("aa", "bb")})
    assert json.loads(right.json()["choices"][0]["text"])["pair"] in ("aa", "bb")
    wrong = service.post("/v1/completions", {"model": MODEL, "prompt": "Pair:", "max_tokens": 64, **asked("ab")})
    assert wrong.json()["error"]["code"] == "constraint_not_met"


def streamed(service: Service, *values: str) -> list[Any]:
    body = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}], "max_tokens": 64, "stream": True, **asked(*values)}
    text = service.post("/v1/chat/completions", body).text
    return [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line and line != "data: [DONE]"]


def test_a_streams_pieces_are_unchecked_until_its_end_says_otherwise(service: Service) -> None:
    *pieces, last = streamed(service, "aa", "bb")
    assert all(piece["maskcast"]["unchecked"] is True for piece in pieces)
    assert last["maskcast"] == {"checked": True}


def test_a_wrong_stream_ends_with_the_error(service: Service) -> None:
    *pieces, last = streamed(service, "ab", "ba")
    assert last["error"]["code"] == "constraint_not_met"
    assert not any(piece["maskcast"].get("checked") for piece in pieces)


def test_openais_client_reads_checked_streams(service: Service) -> None:
    def read(*values: str) -> str:
        stream = service.client().chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": QUESTION}],
            stream=True,
            temperature=1,
            response_format={"type": "json_schema", "json_schema": {"name": "pair", "schema": schema(*values)}},
            extra_body={"unenforceable": "check"},
        )
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)

    assert json.loads(read("aa", "bb"))["pair"] in ("aa", "bb")
    with pytest.raises(openai.APIError, match="does not meet the constraint"):
        read("ab")


def test_tools_and_tags_are_refused_as_before(service: Service) -> None:
    tool = {"type": "function", "function": {"name": "pair", "parameters": schema("aa")}}
    response = service.chat(QUESTION, tools=[tool], tool_choice="required", unenforceable="check")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "unsupported_grammar")
    assert "'check' is not for tools" in response.json()["error"]["message"]


def test_tools_whose_definitions_clash_are_served(service: Service) -> None:
    def tool(name: str, kind: str) -> dict[str, Any]:
        parameters = {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "required": ["x"], "$defs": {"X": {"enum": [kind]}}}
        return {"type": "function", "function": {"name": name, "parameters": parameters}}

    response = service.chat(QUESTION, tools=[tool("f", "one"), tool("g", "two")], tool_choice="required", parallel_tool_calls=False)
    assert response.status_code == 200, response.text
    call = response.json()["choices"][0]["message"]["tool_calls"][0]["function"]
    assert json.loads(call["arguments"]) == {"x": {"f": "one", "g": "two"}[call["name"]]}
