"""What a user sees of canonical output: over HTTP, by handle and by name, whole, streamed and several at once."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from ray import serve

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.client import StructuredClient
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.e2e.service import MODEL, Service, wait_for

QUESTION = "Extract name, age as JSON.\n\nMeet Clara Novak. The person is 34 years old."
PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"]}
FLAGS = {"type": "object", "additionalProperties": {"type": "boolean"}, "minProperties": 2, "maxProperties": 4}
CONSTRAINTS: list[dict[str, Any]] = [
    {"json": PERSON},
    {"json": PERSON, "whitespace": "flexible"},
    {"json": FLAGS, "whitespace": "compact"},
    {"regex": "[a-z ]{4,20}\\.( [0-9]{1,4})?"},
    {"choice": ["the end", "then ends", "their end, and more"]},
    {"grammar": 'root ::= "a" [b-z]{1,4} (" end" | "\\n")'},
]


@pytest.fixture(scope="module")
def tokenizer() -> GrammarTokenizer:
    return GrammarTokenizer.load(EMBEDDED_WEIGHTS)


def canonical(choice: dict[str, Any], tokenizer: GrammarTokenizer) -> bool:
    """Of an answer that ended by itself."""
    tokens = [token for token in choice["token_ids"] if token not in tokenizer.stop_token_ids]
    return tokens == tokenizer.encode(choice["message"]["content"])


def details(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = body["usage"]["completion_tokens_details"]
    return found


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda constraint: next(iter(constraint)))
def test_answers_are_what_the_tokenizer_makes_of_them(
    service: Service, tokenizer: GrammarTokenizer, constraint: dict[str, Any], temperature: float
) -> None:
    asked = {"structured_outputs": {**constraint, "canonical": True}, "temperature": temperature, "n": 4 if temperature else 1, "seed": 5}
    body = service.chat(QUESTION, return_token_ids=True, **asked).json()
    ended = [choice for choice in body["choices"] if choice["finish_reason"] == "stop"]
    assert ended
    assert all(canonical(choice, tokenizer) for choice in ended)
    assert details(body)["not_canonical"] == 0
    assert details(body)["forced_tokens"] > 0 or constraint != {"json": PERSON}


def test_masks_of_plain_requests_stay_plain(service: Service, tokenizer: GrammarTokenizer) -> None:
    """The same constraint with and without, in turn."""
    constraint = {"regex": "[a-z ]{20,40}\\."}
    for _ in range(2):
        plain = service.chat(QUESTION, return_token_ids=True, structured_outputs=constraint, temperature=1.5, n=8, seed=3).json()
        asked = {**constraint, "canonical": True}
        kept = service.chat(QUESTION, return_token_ids=True, structured_outputs=asked, temperature=1.5, n=8, seed=3).json()
        assert not all(canonical(choice, tokenizer) for choice in plain["choices"])
        assert all(canonical(choice, tokenizer) for choice in kept["choices"])
        assert "not_canonical" not in details(plain)


def test_a_stream_tells_in_its_usage(service: Service) -> None:
    stream = service.client().chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": QUESTION}],
        extra_body={"structured_outputs": {"json": PERSON, "canonical": True}},
        stream=True,
        stream_options={"include_usage": True},
    )
    *_, last = stream
    assert last.usage is not None
    assert last.usage.completion_tokens_details is not None
    assert last.usage.completion_tokens_details.model_extra is not None
    assert last.usage.completion_tokens_details.model_extra["not_canonical"] == 0


def test_by_handle_and_by_name(service: Service) -> None:
    client = StructuredClient.over_handle(serve.get_app_handle("maskcast"))
    direct = client.generate(QUESTION, json=PERSON, canonical=True, temperature=0, max_tokens=64)
    client.register_grammar("canonical-person", json=PERSON, canonical=True)
    try:
        named = client.generate(QUESTION, grammar_id="canonical-person", temperature=0, max_tokens=64)
    finally:
        client.delete_grammar("canonical-person")
    assert json.loads(direct.text) == json.loads(named.text)
    assert details(direct.response)["not_canonical"] == details(named.response)["not_canonical"] == 0


def test_a_look_ahead_keeps_to_it_too(service: Service, tokenizer: GrammarTokenizer) -> None:
    asked = {"method": "cdlh", "d": 5, "reward": {"type": "concepts", "words": ["end"]}}
    constraint = {"choice": ["the start", "the very end"], "canonical": True}
    body = service.chat(QUESTION, return_token_ids=True, structured_outputs=constraint, lookahead=asked).json()
    assert body["choices"][0]["message"]["content"] == "the very end"
    assert canonical(body["choices"][0], tokenizer)


def test_metrics_count_them(service: Service) -> None:
    service.chat(QUESTION, structured_outputs={"json": PERSON, "canonical": True}, temperature=0)
    wait_for(lambda: counted(service, "maskcast_engine_canonical_answers_total"), 60, "a canonical answer to be counted")


def counted(service: Service, name: str) -> float:
    families = text_string_to_metric_families(httpx.get(f"{service.url}/metrics", timeout=30).text)
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)
