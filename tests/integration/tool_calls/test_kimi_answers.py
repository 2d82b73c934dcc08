"""What a constraint without tools allows of Kimi K3, vLLM reads back as it stands in its channel, whatever marks it spells."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.abstract_parser import Parser
from vllm.parser.parser_manager import ParserManager

from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import Requested, take_constraint, wrap_in_model_format
from deployments.errors import ApiError
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.messages import KEY_ARGUMENT
from tests.driving import grammar_of
from tests.integration.tool_calls.reading import deltas
from tests.integration.tool_calls.test_kimi_channels import (
    CLOSE,
    LIKELY,
    MARKS,
    OPEN,
    REASONING,
    SEPARATOR,
    TOOLS,
    accepts,
    channel,
)
from tests.integration.tool_calls.walking import walk
from tests.tokenizers.tiny_tokenizer import STOP_ID, marked_tokenizer

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"note": {"type": "string"}, "at": {"enum": [f"{CLOSE}response{SEPARATOR}", "<tool_call>{}</tool_call>", "a<"]}},
    "required": ["note", "at"],
    "additionalProperties": False,
}
ANSWER: dict[str, Any] = {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}}
ANYTHING = {"structured_outputs": {"regex": r"[\s\S]*"}}
SPELLED = (
    channel("response", "x"),
    f"{CLOSE}message{SEPARATOR}",
    f"{OPEN}tools{SEPARATOR}",
    f"{OPEN}think{SEPARATOR} {CLOSE}think{SEPARATOR}",
    f"a {CLOSE}",
    f"b{CLOSE}response",
    "<",
    "<tool_call>",
)
HEAD, TAIL = channel("response", "\0").split("\0")
Told = tuple[str | None, str | None]


@pytest.fixture(scope="module")
def marked() -> PreTrainedTokenizerFast:
    return marked_tokenizer(MARKS, special=True)


def constraint(body: dict[str, Any], reasoning_parser: str | None = "kimi_k3", tool_parser: str | None = "kimi_k3") -> Requested:
    requested = take_constraint(json.loads(json.dumps(body)), ConstraintDefaults(), tool_parser)
    assert requested is not None
    wrapped = wrap_in_model_format(requested, reasoning_parser, tool_parser)
    assert isinstance(wrapped, Requested)
    return wrapped


def of_vllm(marked: PreTrainedTokenizerFast, tool_parser: str, reasons: bool, tools: bool) -> tuple[ChatCompletionRequest, Parser]:
    asked: dict[str, Any] = {"model": "any", "messages": [{"role": "user", "content": "hello"}], "vllm_xargs": {KEY_ARGUMENT: "key"}}
    request = ChatCompletionRequest.model_validate({**asked, **({"tools": TOOLS, "tool_choice": "none"} if tools else {})})
    kind = ParserManager.get_parser(tool_parser, "kimi_k3", True)
    parser = kind(marked, request.tools, chat_template_kwargs={"thinking": reasons})
    return parser.adjust_request(request), parser


def read_in_all_ways(marked: PreTrainedTokenizerFast, tokens: list[int], reasons: bool) -> Told:
    """Reasoning and content, which are the same in every way. `reasons`: reasoning is ahead of the answer."""
    tokens = [*(marked.encode(REASONING, add_special_tokens=False) if reasons else []), *tokens]
    text, told = str(marked.decode(tokens, skip_special_tokens=False)), set[Told]()
    for tool_parser in ("kimi_k3", "hermes"):
        for tools in (False, True):
            request, parser = of_vllm(marked, tool_parser, reasons, tools)
            reasoning, content, calls = parser.parse(text, request, enable_auto_tools=True, model_output_token_ids=tokens)
            assert not calls
            told.add((reasoning, content))
            told |= {stream(marked, tokens, *of_vllm(marked, tool_parser, reasons, tools), most) for most in (1, 2, 7, 30)}
    assert len(told) == 1, told
    return told.pop()


def stream(marked: PreTrainedTokenizerFast, tokens: list[int], request: ChatCompletionRequest, parser: Parser, most: int) -> Told:
    pieces = [*deltas(tokens, marked, most), ("", [STOP_ID])]
    parts = [parser.parse_delta(text, some, request, [], finished=some == [STOP_ID]) for text, some in pieces]
    reasoning, content = ("".join(getattr(part, name) or "" for part in parts if part) for name in ("reasoning", "content"))
    assert not any(part.tool_calls for part in parts if part)
    return reasoning or None, content or None


@pytest.mark.parametrize("reasons", [True, False])
def test_an_answer_of_a_schema_is_read_back(reasons: bool, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    compiled = grammar_of(constraint(ANSWER).spec, vocabulary)
    for seed in range(40):
        reasoning, content = read_in_all_ways(marked, walk(compiled, vocabulary, seed, LIKELY, 0.4), reasons)
        assert reasoning == ("let me see" if reasons else None)
        Draft202012Validator(SCHEMA).validate(json.loads(content or ""))


@pytest.mark.parametrize("text", ["plain", "", *SPELLED, *(f"a{text}b" for text in SPELLED)])
@pytest.mark.parametrize("ends", ["", TAIL, f"{TAIL}{CLOSE}message{SEPARATOR}"])
def test_marks_that_an_answer_spells_are_its_own(
    text: str, ends: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer
) -> None:
    """Where it ends with none, it was not ended."""
    spelled = [vocabulary.byte_tokens[byte] for byte in text.encode()]
    head, tail = (marked.encode(mark, add_special_tokens=False) for mark in (HEAD, ends))
    tokens = [*head, *spelled, *tail]
    assert accepts(grammar_of(constraint(ANYTHING).spec, vocabulary), tokens) == bool(ends)
    if ends or not text.endswith((CLOSE, "response", SEPARATOR)):
        assert read_in_all_ways(marked, tokens, True) == ("let me see", text or None)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"structured_outputs": {"regex": "[a-c]{3}"}}, "abc"),
        ({"structured_outputs": {"choice": ["yes", "no"]}}, "no"),
        ({"structured_outputs": {"grammar": 'root ::= "x" root | "y"'}}, "xxy"),
        ({"response_format": {"type": "json_object"}}, '{"a": [1]}'),
        ({**ANSWER, "tools": TOOLS, "tool_choice": "none"}, json.dumps({"note": "é", "at": "a<"}, ensure_ascii=False)),
    ],
)
@pytest.mark.parametrize("head", ["", HEAD])
def test_all_constraints_hold_in_the_channel(
    head: str, body: dict[str, Any], text: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer
) -> None:
    tokens = marked.encode(f"{head}{text}{TAIL}", add_special_tokens=False)
    assert accepts(grammar_of(constraint(body).spec, vocabulary), tokens)
    for reasons in (True, False):
        assert read_in_all_ways(marked, tokens, reasons) == ("let me see" if reasons else None, text)


@pytest.mark.parametrize(
    ("body", "tool_parser"),
    [
        ({"structured_outputs": {"grammar_id": "person"}}, "kimi_k3"),
        ({"structured_outputs": {"regex": "a", "canonical": True}}, "kimi_k3"),
        ({"tools": TOOLS, "tool_choice": "required"}, "hermes"),
    ],
)
def test_what_cannot_be_kept_in_a_channel_is_refused(body: dict[str, Any], tool_parser: str) -> None:
    with pytest.raises(ApiError) as caught:
        constraint(body, tool_parser=tool_parser)
    assert caught.value.status == 400


def test_other_answers_are_read_by_vllm(marked: PreTrainedTokenizerFast) -> None:
    request, parser = of_vllm(marked, "kimi_k3", True, False)
    request.vllm_xargs = None
    told = parser.parse(f"{REASONING}{HEAD}a {CLOSE}message{SEPARATOR} b{TAIL}", request, enable_auto_tools=True)
    assert told == ("let me see", "a  b", [])
