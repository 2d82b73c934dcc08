"""What the grammars for gpt-oss allow, vLLM's parser of Harmony reads back: content that keeps to its constraint, and valid calls."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import jsonschema
import pytest
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.harmony import HarmonyParser, get_encoding
from vllm.parser.parser_manager import ParserManager

from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import Requested, take_constraint, wrap_in_model_format
from deployments.errors import ApiError
from grammar_service.backends import Matcher
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, grammar_of
from tests.tokenizers.harmony_folder import MARKS, harmony_vocabulary

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
ANSWER: dict[str, Any] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {**SCHEMA, "required": ["city"]}}}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA, "strict": True}} for name in ("get_weather", "order-tea.v2")
]
STOP = 0


@pytest.fixture(scope="module")
def vocabulary() -> GrammarTokenizer:
    return harmony_vocabulary()


class Decoder:
    """All that vLLM's parser wants of a tokenizer."""

    def get_vocab(self) -> dict[str, int]:
        return {}

    def decode(self, tokens: Sequence[int]) -> str:
        return str(get_encoding().decode(list(tokens)))


def constraint(body: dict[str, Any]) -> Requested:
    requested = take_constraint(json.loads(json.dumps(body)), ConstraintDefaults(), "openai")
    assert requested is not None
    framed = wrap_in_model_format(requested, "openai_gptoss", "openai")
    assert isinstance(framed, Requested)
    return framed


def walk(body: dict[str, Any], vocabulary: GrammarTokenizer, seed: int) -> str:
    """A random answer, marks included."""
    choose, matcher = random.Random(seed), grammar_of(constraint(body).spec, vocabulary).matcher(None, 0)
    spelled = dict(enumerate(MARKS))
    text = ""
    while not matcher.is_terminated():
        token = step(matcher, vocabulary, choose)
        assert matcher.accept(token)
        text += spelled[token] if token in spelled else vocabulary.vocabulary[token].decode("ascii")
        assert len(text) < 4000
    return text


def step(matcher: Matcher, vocabulary: GrammarTokenizer, choose: random.Random) -> int:
    options = allowed(matcher, vocabulary.vocab_size)
    marks = sorted(option for option in options if option < len(MARKS))
    texts = [option for option in sorted(options) if option >= len(MARKS) and vocabulary.vocabulary[option].isascii()]
    if marks and (not texts or choose.random() < 0.2):
        return choose.choice(marks)
    closing = [option for option in texts if vocabulary.vocabulary[option] in (b'"', b"}")]
    return choose.choice(closing if closing and choose.random() < 0.2 else texts)


def read(text: str, body: dict[str, Any]) -> tuple[str | None, str | None, list[tuple[str, str]]]:
    """Reasoning, content and calls, by vLLM."""
    kind = ParserManager.get_parser(
        tool_parser_name="openai", reasoning_parser_name="openai_gptoss", enable_auto_tools=True, is_harmony=True
    )
    assert kind is HarmonyParser
    request = ChatCompletionRequest.model_validate({"model": "any", "messages": [{"role": "user", "content": "hello"}], **body})
    parser = kind(Decoder(), request.tools, model_config=None)
    tokens = get_encoding().encode(text, allowed_special="all")
    reasoning, content, calls = parser.parse("", request, model_output_token_ids=tokens)
    return reasoning, content, [(call.name, call.arguments) for call in calls or ()]


def test_an_answer_keeps_to_its_schema_behind_any_reasoning(vocabulary: GrammarTokenizer) -> None:
    reasoned = 0
    for seed in range(40):
        text = walk({"response_format": ANSWER}, vocabulary, seed)
        reasoning, content, calls = read(text, {})
        jsonschema.validate(json.loads(content or ""), ANSWER["json_schema"]["schema"])
        assert not calls
        reasoned += "analysis" in text
        assert bool(reasoning) <= ("analysis" in text)
    assert 0 < reasoned < 40


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "order-tea.v2"}}])
def test_forced_calls_are_read_back(choice: Any, parallel: bool, vocabulary: GrammarTokenizer) -> None:
    body = {"tools": TOOLS, "tool_choice": choice, "parallel_tool_calls": parallel}
    counts = set()
    for seed in range(40):
        _, content, calls = read(walk(body, vocabulary, seed), body)
        assert not content
        check(calls)
        counts.add(min(len(calls), 2))
        assert choice == "required" or {name for name, _ in calls} == {"order-tea.v2"}
    assert counts == ({1, 2} if parallel and choice == "required" else {1})


@pytest.mark.parametrize("beside", [{}, {"response_format": ANSWER}])
def test_calls_that_may_come_are_read_back_and_so_is_an_answer(beside: dict[str, Any], vocabulary: GrammarTokenizer) -> None:
    body = {"tools": TOOLS, "tool_choice": "auto", **beside}
    called = 0
    for seed in range(40):
        _, content, calls = read(walk(body, vocabulary, seed), {"tools": TOOLS})
        if calls:
            called += 1
            check(calls)
        elif beside:
            jsonschema.validate(json.loads(content or ""), ANSWER["json_schema"]["schema"])
    assert 0 < called < 40


@pytest.mark.parametrize(
    ("constraint_", "text"),
    [
        ({"regex": "[a-c]{3}"}, "abc"),
        ({"choice": ["yes", "no"]}, "no"),
        ({"grammar": 'root ::= "x" root | "y"'}, "xxy"),
        ({"json_object": True}, '{"a": [1]}'),
    ],
)
def test_other_constraints_hold_in_the_answer(constraint_: dict[str, Any], text: str, vocabulary: GrammarTokenizer) -> None:
    body = {"structured_outputs": constraint_}
    matcher = grammar_of(constraint(body).spec, vocabulary).matcher(None, 0)
    head = [MARKS.index("<|channel|>"), *vocabulary.encode("final"), MARKS.index("<|message|>")]
    assert all(map(matcher.accept, [*head, *vocabulary.encode(text), STOP]))
    _, content, _ = read(f"<|channel|>final<|message|>{text}<|return|>", {})
    assert content == text


@pytest.mark.parametrize(
    "body",
    [
        {"structured_outputs": {"grammar_id": "person"}},
        {"structured_outputs": {"regex": "a", "canonical": True}},
    ],
)
def test_what_cannot_be_kept_in_a_channel_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        constraint(body)
    assert caught.value.status == 400


def test_a_call_ends_with_the_stop_token_that_models_end_it_with(vocabulary: GrammarTokenizer) -> None:
    call, specials = MARKS.index("<|call|>"), MARKS.index
    compiled = grammar_of(constraint({"tools": TOOLS, "tool_choice": "required"}).spec, vocabulary)
    matcher = compiled.matcher([STOP, call], 0)
    recipient = vocabulary.encode("commentary to=functions.get_weather ")
    header = [specials("<|channel|>"), *recipient, specials("<|constrain|>"), *vocabulary.encode("json"), specials("<|message|>")]
    for token in [*header, *vocabulary.encode('{"city": "x", "days": 1}')]:
        assert call not in allowed(matcher, vocabulary.vocab_size)
        assert matcher.accept(token)
    assert allowed(matcher, vocabulary.vocab_size) >= {STOP, call}
    assert matcher.accept(call)


def check(calls: list[tuple[str, str]]) -> None:
    assert calls
    for name, arguments in calls:
        assert name in {tool["function"]["name"] for tool in TOOLS}
        jsonschema.validate(json.loads(arguments), SCHEMA)
