"""What vLLM's parsers of MiniMax M3 would read in another way, and calls and answers behind its reasoning."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager
from vllm.reasoning.minimax_m3_reasoning_parser import MiniMaxM3ReasoningParser

from deployments.constraints.tool_calls.tools import auto_tag, forced_tag, parse_tools
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.errors import GrammarError
from grammar_service.limits import Limits
from grammar_service.resolve import resolve
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.messages import KEY_ARGUMENT
from tests.driving import grammar_of
from tests.integration.tool_calls.reading import deltas, merged, request
from tests.tokenizers.tiny_tokenizer import STOP_ID, marked_tokenizer

NAME, MARK, BEGIN, END = "minimax_m3", "]<]minimax[>[", "<mm:think>", "</mm:think>"


@pytest.fixture(scope="module", params=[(MARK, BEGIN, END), (BEGIN, END)], ids=["tokens", "texts"])
def marked(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    """Whose marks of calls have a token, or several."""
    return marked_tokenizer(request.param)


def tool(name: str, **members: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "parameters": schema, "strict": True}}


def calls(*written: tuple[str, dict[str, str]]) -> str:
    """As the model's chat template has them."""
    invoked = "".join(
        f'<invoke name="{name}">{"".join(f"<{key}>{value}</{key}>" for key, value in members.items())}</invoke>\n'
        for name, members in written
    )
    return f"<tool_call>\n{invoked}</tool_call>".replace("<", f"{MARK}<")


def read(
    text: str, marked: PreTrainedTokenizerFast, tools: list[dict[str, Any]], prompt: str, most: int
) -> tuple[str, str, list[tuple[str, Any]]]:
    """Reasoning, content and calls, by vLLM: in a stream of so many tokens at once, or whole (0)."""
    told: dict[str, Any] = {"model": "any", "messages": [{"role": "user", "content": "hello"}], "vllm_xargs": {KEY_ARGUMENT: "key"}}
    asked = request(NAME, tools) if tools else ChatCompletionRequest.model_validate(told)
    tokens, ahead = marked.encode(text, add_special_tokens=False), marked.encode(prompt)
    parser = ParserManager.get_parser(NAME if tools else None, NAME, True)(marked, asked.tools)
    parser.set_prompt_token_ids(ahead)
    if not most:
        reasoning, content, found = parser.parse(text, asked, enable_auto_tools=True, model_output_token_ids=tokens)
        return reasoning or "", content or "", [(call.name, json.loads(call.arguments)) for call in found or ()]
    parts: list[DeltaMessage | None] = [
        parser.parse_delta(piece, ids, asked, ahead, finished=False) for piece, ids in deltas(tokens, marked, most)
    ]
    parts.append(parser.parse_delta("", [], asked, ahead, finished=True))
    texts = ("".join((part.reasoning if field else part.content) or "" for part in parts if part) for field in (True, False))
    return next(texts), next(texts), [(name, json.loads(arguments)) for name, arguments in merged(parts)]


def read_in_all_ways(
    text: str, marked: PreTrainedTokenizerFast, tools: list[dict[str, Any]], prompt: str = "hello"
) -> tuple[str, str, list[tuple[str, Any]]]:
    first, *others = (read(text, marked, tools, prompt, most) for most in (0, 1, 3, 25, 1000))
    assert all(other == first for other in others), (first, others)
    return first


def allows(text: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer, tools: list[dict[str, Any]]) -> bool:
    matcher = grammar_of(auto_tag(parse_tools({"tools": tools}, NAME), None, NAME).spec, vocabulary).matcher(None, 0)
    tokens = marked.encode(text, add_special_tokens=False)
    return accepted_prefix(matcher, [*tokens, STOP_ID]) > len(tokens)


def test_calls_of_one_text_have_the_types_of_their_own_tools(marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    tools = [tool("a", x={"type": "string"}), tool("b", x={"type": "integer"}), tool("c", x={"type": ["string", "boolean"]})]
    text = calls(*((name, {"x": "1"}) for name in ("a", "b", "a", "c", "b")))
    text = text.replace(f'"c">{MARK}<x>1', f'"c">{MARK}<x>no')
    assert allows(text, marked, vocabulary, tools)
    expected = [("a", {"x": "1"}), ("b", {"x": 1}), ("a", {"x": "1"}), ("c", {"x": "no"}), ("b", {"x": 1})]
    assert read_in_all_ways(text, marked, tools)[2] == expected


@pytest.mark.parametrize(
    ("value", "is_allowed"),
    [
        *(
            (value, True)
            for value in ("", " ", "]<", "x]<]", "</s>", "a < b > c", "<x>1</x>", "]]]", "\x01\t\r\n", "null", "5", "é🙂", "{}")
        ),
        *((value, False) for value in (MARK, f"a{MARK}</s>", f"{MARK}</invoke>", "]<]minimax", BEGIN, f"a{END}b")),
    ],
)
def test_strings_stand_as_they_are(value: str, is_allowed: bool, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    tools, text = [tool("f", s={"type": "string"})], calls(("f", {"s": "@"})).replace("@", value)
    assert allows(text, marked, vocabulary, tools) == is_allowed
    if is_allowed:
        assert read_in_all_ways(text, marked, tools)[2] == [("f", {"s": value})]


@pytest.mark.parametrize("value", ["-0", "5.0", "1e99", "-12.5E-3", "123456789012345678901234567890", "0.1"])
def test_numbers_are_those_that_are_written(value: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    tools = [tool("f", n={"type": "number"}, o={"type": "object", "additionalProperties": {"type": "number"}})]
    text = calls(("f", {"n": value, "o": f'{{"a": {value}}}'}))
    assert allows(text, marked, vocabulary, tools)
    [(_, arguments)] = read_in_all_ways(text, marked, tools)[2]
    assert arguments == {"n": float(value), "o": {"a": json.loads(value)}}
    assert not allows(calls(("f", {"n": "1e400", "o": "{}"})), marked, vocabulary, tools)


@pytest.mark.parametrize("name", ["invoke", "/a"])
def test_an_argument_whose_end_would_be_another_one_is_refused(name: str) -> None:
    spec = forced_tag(parse_tools({"tools": [tool("f", **{name: {"type": "string"}})]}, NAME), NAME, True).spec
    with pytest.raises(GrammarError, match="cannot have the name"):
        resolve(spec, Limits(), "tokenizer")


def test_text_ahead_of_calls_is_content(marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    tools = [tool("f", s={"type": "string"})]
    text = f"Well]<]: {MARK}<b> " + calls(("f", {"s": "a"}))
    assert allows(text, marked, vocabulary, tools)
    assert read_in_all_ways(text, marked, tools)[1:] == (f"Well]<]: {MARK}<b> ", [("f", {"s": "a"})])
    assert not allows(f"{text} and so on", marked, vocabulary, tools)
    assert not allows(f"a {BEGIN}", marked, vocabulary, tools)


@pytest.mark.parametrize("prompt", [BEGIN, f"{BEGIN}a{END}b\n{BEGIN}", f"hello\n{END}\n{BEGIN}"])
@pytest.mark.parametrize("reasoning", ["let me see", "use <mm:think> and </mm", "", "<"])
def test_calls_and_answers_stand_behind_the_reasoning(prompt: str, reasoning: str, marked: PreTrainedTokenizerFast) -> None:
    tools = [tool("f", s={"type": "string"})]
    text = calls(("f", {"s": "a"}))
    assert read_in_all_ways(f"{reasoning}{END}{text}", marked, tools, prompt) == (reasoning, "", [("f", {"s": "a"})])
    answer = json.dumps({"note": f"{BEGIN} {END}"})
    assert read_in_all_ways(f"{reasoning}{END}{answer}", marked, [], prompt) == (reasoning, answer, [])


@pytest.mark.parametrize("prompt", ["hello", f"{BEGIN}a{END}b\nhello", f"hello\n{END}"])
def test_a_constrained_answer_does_not_reason_unless_it_was_asked_to(prompt: str, marked: PreTrainedTokenizerFast) -> None:
    for answer in (json.dumps({"note": f"{BEGIN} {END}"}), "<", "<b>"):
        assert read_in_all_ways(answer, marked, [], prompt) == ("", answer, [])


@pytest.mark.parametrize("prompt", [BEGIN, f"{BEGIN}a{END}b\n{BEGIN}"])
@pytest.mark.parametrize("drafts", [1, 4])
def test_the_core_sees_the_end_of_the_reasoning_that_the_prompt_begins(prompt: str, drafts: int, marked: PreTrainedTokenizerFast) -> None:
    for told in ({}, {"chat_template_kwargs": {"thinking_mode": "enabled"}}):
        reasoner = MiniMaxM3ReasoningParser(marked, **told)
        ahead, tokens = marked.encode(prompt), marked.encode(f"see</mm:{END}{{}}", add_special_tokens=False)
        behind = len(marked.encode(f"see</mm:{END}", add_special_tokens=False))
        ended = [
            reasoner.is_reasoning_end_streaming([*ahead, *tokens[:end]], tokens[max(end - drafts, 0) : end])
            for end in range(1, len(tokens) + 1)
        ]
        assert ended.index(True) == behind - 1


def test_a_schema_of_everything_is_valid_in_calls(marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    inner = {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}, "s": {"type": ["string", "integer"]}}, "$defs": {}}
    members: dict[str, Any] = {"o": inner, "list": {"type": "array", "items": {"const": 7}}, "maybe": {"type": ["string", "null"]}}
    asked = tool("f", **members)
    asked["function"]["parameters"]["$defs"] = {"N": {"type": "integer"}}
    text = calls(("f", {"o": '{"n": 5, "s": "7"}', "list": "[7, 7]", "maybe": "null"}), ("f", {"o": "{}", "list": "[]", "maybe": ""}))
    assert allows(text, marked, vocabulary, [asked])
    found = read_in_all_ways(text, marked, [asked])[2]
    assert [arguments["o"] for _, arguments in found] == [{"n": 5, "s": "7"}, {}]
    for _, arguments in found:
        Draft202012Validator(asked["function"]["parameters"]).validate(arguments)
