"""Every fault of a request is a clear error of OpenAI's shape, and disturbs nobody else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.e2e.service import MODEL, Service

MESSAGES = [{"role": "user", "content": "Say something."}]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
JSON = {"Content-Type": "application/json"}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


BAD: list[tuple[dict[str, Any], str]] = [
    ({"structured_outputs": {"json": {"type": "objec"}}}, "structured_outputs.json#/type"),
    ({"structured_outputs": {"json": {"type": "array", "items": [{"type": "integr"}]}}}, "structured_outputs.json#/items/0/type"),
    (
        {"structured_outputs": {"json": {"type": "string", "maxlength": 3}, "unknown_keywords": "refuse"}},
        "structured_outputs.json#/maxlength",
    ),
    (
        {"structured_outputs": {"json": {"properties": {"a": {"$ref": "https://example.com/x"}}}}},
        "structured_outputs.json#/properties/a/$ref",
    ),
    (
        {"structured_outputs": {"json": {"type": "array", "contains": {"type": "null"}, "uniqueItems": True}}},
        "structured_outputs.json#/contains",
    ),
    ({"structured_outputs": {"json": nested(100)}}, "structured_outputs.json"),
    ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
    ({"structured_outputs": {"regex": "foo**("}}, "structured_outputs.regex"),
    ({"structured_outputs": {"regex": "a\x00b"}}, "structured_outputs.regex"),
    ({"structured_outputs": {"regex": r"(a)\1"}}, "structured_outputs.regex"),
    ({"structured_outputs": {"grammar": ""}}, "structured_outputs.grammar"),
    ({"structured_outputs": {"grammar": "root ::= ("}}, "structured_outputs.grammar"),
    ({"structured_outputs": {"grammar": "start: nothing"}}, "structured_outputs.grammar"),
    ({"structured_outputs": {"grammar": "root ::= root"}}, "structured_outputs.grammar"),
    ({"structured_outputs": {"grammar": "start: start"}}, "structured_outputs.grammar"),
    ({"structured_outputs": {"regex": "[0-9]{4}"}, "allowed_token_ids": [5]}, "allowed_token_ids"),
    ({"structured_outputs": {"regex": "[0-9]{4}"}, "bad_words": list("0123456789")}, "bad_words"),
    ({"structured_outputs": {"structural_tag": {"type": "structural_tag"}}}, "structured_outputs.structural_tag"),
    ({"structured_outputs": {"regex": "a" * 600_000}}, "structured_outputs.regex"),
    ({"guided_json": {}, "guided_regex": "a"}, "guided_regex"),
    ({"max_tokens": "many"}, "max_tokens"),
    ({"max_tokens": 100_000}, "max_tokens"),
    ({"stop": 5}, "stop"),
    ({"n": 0}, "n"),
    ({"presence_penalty": 9}, "presence_penalty"),
    ({"logprobs": True, "top_logprobs": 300}, "top_logprobs"),
    ({"messages": [{"role": "user", "content": "word " * 5000}]}, "messages"),
    ({"structured_outputs": {"json": "[" * 100_000}, "tools": [TOOL]}, "structured_outputs.json"),
    ({"messages": [{"role": "user", "content": [{"type": "nothing"}]}]}, "messages[0].content[0].type"),
    ({"messages": [{"role": "narrator", "content": "hello"}]}, "messages[0].role"),
    ({"messages": []}, "messages"),
    ({"chat_template_kwargs": {"tokenize": True, "padding": "max_length", "max_length": 3_000_000}}, "chat_template_kwargs"),
    ({"repetition_detection": {"max_pattern_size": 30_000, "min_count": 2}}, "repetition_detection.max_pattern_size"),
    ({"use_beam_search": True, "n": 32}, "use_beam_search"),
    ({"prompt_logprobs": 1}, "prompt_logprobs"),
    ({"logprobs": True, "top_logprobs": 20, "n": 128, "max_tokens": 2000}, "max_tokens"),
    ({"n": 10**4299}, "n"),
    ({"top_k": 10**30}, "top_k"),
    ({"logit_bias": {"1000000": 1}}, "logit_bias"),
    ({"tools": []}, "tools"),
    ({"repetition_penalty": 1e-300}, "repetition_penalty"),
]


def same_field(param: str | None, field: str) -> bool:
    return param is not None and (param == field or param.startswith(f"{field}#"))


@pytest.mark.parametrize(("fields", "field"), BAD, ids=[field for _, field in BAD])
def test_a_fault_is_a_400_that_names_its_field(service: Service, fields: dict[str, Any], field: str) -> None:
    response = service.post("/v1/chat/completions", {"model": MODEL, "messages": MESSAGES, "max_tokens": 4, **fields})
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"]
    assert error["code"]
    assert same_field(error["param"], field), error
    if field.startswith("structured_outputs"):
        assert service.post("/v1/grammars/check", fields).json()["error"] == error


def test_a_constraint_is_asked_about_without_an_answer(service: Service) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "requierd": ["a"]}
    asked = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}, "messages": MESSAGES, "n": 2}
    response = service.post("/v1/grammars/check", asked)
    assert response.status_code == 200, response.text
    told = response.json()
    assert {name: told[name] for name in ("object", "kind", "checked_afterwards")} == {
        "object": "grammar.check",
        "kind": "json_schema",
        "checked_afterwards": [],
    }
    assert told["backend"] in ("xgrammar", "llguidance")
    assert isinstance(told["stopgap"], bool)
    assert told["waited_ms"] > 0
    assert [warning["did_you_mean"] for warning in told["maskcast"]["warnings"]] == ["required"]
    nothing = service.post("/v1/grammars/check", {"messages": MESSAGES})
    assert (nothing.status_code, nothing.json()["error"]["param"]) == (400, "response_format")


def test_a_grammar_over_its_deadline_is_a_400_and_the_pool_goes_on(service: Service) -> None:
    heavy = "root ::= " + " | ".join(f"r{i}" for i in range(2000)) + "\n"
    heavy += "\n".join(f"r{i} ::= ([a-z]{{1,{200 + i}}} r{(i * 7) % 2000}){{0,300}}" for i in range(2000))
    response = service.post(
        "/v1/chat/completions", {"model": MODEL, "messages": MESSAGES, "max_tokens": 4, "structured_outputs": {"grammar": heavy}}
    )
    assert response.status_code == 400, response.text
    assert response.json()["error"]["code"] in ("grammar_compile_timeout", "grammar_compile_failed")
    assert service.text("Say yes.", structured_outputs={"regex": "y[a-f]s"})


def test_what_is_not_json_or_too_large_or_unknown_has_its_own_status(service: Service) -> None:
    url = f"{service.url}/v1/chat/completions"
    assert httpx.post(url, content=b"{", headers=JSON, timeout=30).json()["error"]["code"] == "invalid_json"
    large = httpx.post(url, content=b'{"x": "' + b"a" * 2_000_000 + b'"}', headers=JSON, timeout=30)
    assert (large.status_code, large.json()["error"]["code"]) == (413, "body_too_large")
    unknown = service.post("/v1/chat/completions", {"model": "other", "messages": MESSAGES})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    nowhere = httpx.get(f"{service.url}/v1/nowhere", timeout=30)
    assert (nowhere.status_code, nowhere.json()["error"]["code"]) == (404, "not_found")


def test_a_prompt_longer_than_the_context_is_a_400(service: Service) -> None:
    response = service.chat("word " * 5000)
    assert response.status_code == 400
    assert "error" in response.json()


async def test_bad_requests_do_not_disturb_their_neighbours(service: Service) -> None:
    """32 at once, a third of them bad: each good one is valid, each bad one is told why."""

    async def ask(client: httpx.AsyncClient, number: int) -> tuple[bool, httpx.Response]:
        bad = number % 3 == 0
        fields = BAD[number // 3 % len(BAD)][0] if bad else {"structured_outputs": {"json": good_schema(number)}}
        body = {"model": MODEL, "messages": MESSAGES, "max_tokens": 64, "temperature": 1, "seed": number, **fields}
        return bad, await client.post(f"{service.url}/v1/chat/completions", json=body)

    async with httpx.AsyncClient(timeout=180) as client:
        answers = await asyncio.gather(*(ask(client, number) for number in range(32)))
    for number, (bad, response) in enumerate(answers):
        assert response.status_code == (400 if bad else 200), response.text
        if not bad:
            assert json.loads(response.json()["choices"][0]["message"]["content"])[f"f{number % 5}"] in (1, 2, 3)


def good_schema(number: int) -> dict[str, Any]:
    name = f"f{number % 5}"
    return {"type": "object", "properties": {name: {"enum": [1, 2, 3]}}, "required": [name], "additionalProperties": False}


def test_a_web_page_beside_the_service_cannot_use_it(service: Service) -> None:
    """Neither by a request that browsers send without asking, nor by asking, nor under a name of its own."""
    url, origin = f"{service.url}/v1/chat/completions", {"Origin": "http://evil.example"}
    simple = httpx.post(url, content=json.dumps({"messages": MESSAGES}), headers={**origin, "Content-Type": "text/plain"}, timeout=30)
    assert (simple.status_code, simple.json()["error"]["code"]) == (415, "unsupported_media_type")
    asked = httpx.options(url, headers={**origin, "Access-Control-Request-Method": "POST"}, timeout=30)
    assert asked.status_code == 405
    assert not any(name.startswith("access-control") for name in asked.headers)
    rebound = httpx.get(f"{service.url}/v1/models", headers={"Host": "evil.example"}, timeout=30)
    assert (rebound.status_code, rebound.json()["error"]["code"]) == (421, "host_not_allowed")


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/chat/completions", {"POST"}),
        ("/v1/models", {"GET", "HEAD"}),
        ("/v1/grammars", {"GET", "HEAD", "POST"}),
        ("/v1/grammars/a-name", {"GET", "HEAD", "DELETE"}),
    ],
)
def test_a_refused_method_is_told_which_there_are(path: str, methods: set[str], service: Service) -> None:
    answer = httpx.put(f"{service.url}{path}", json={}, timeout=30)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == methods


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 129}, "n"),
        ({"n": "2000"}, "n"),
        ({"tools": [{}] * 513}, "tools"),
        ({"stop": ["x"] * 65}, "stop"),
        ({"top_logprobs": 21}, "top_logprobs"),
    ],
)
def test_what_asks_for_too_much_is_told_of_the_field(fields: dict[str, Any], param: str, service: Service) -> None:
    answer = service.chat("Say.", **fields)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
