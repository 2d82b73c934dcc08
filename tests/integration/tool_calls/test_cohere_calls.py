"""What the grammars of Cohere's tool calls allow is read back, whole and streamed, behind reasoning and without."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.abstract_parser import Parser
from vllm.parser.parser_manager import ParserManager
from vllm.reasoning import ReasoningParserManager

from deployments.constraints.tool_calls.tools import auto_tag, forced_tag, parse_tools
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.reasoning.masks import end_marks
from model_service.messages import KEY_ARGUMENT
from tests.driving import grammar_of
from tests.integration.tool_calls.reading import deltas, merged
from tests.integration.tool_calls.test_blocks import SCHEMA, SCHEMAS, TOOLS, walk
from tests.integration.tool_calls.walking import check_calls
from tests.tokenizers.tiny_tokenizer import STOP_ID, tiny_tokenizer

MARKS = tuple(f"<|{side}_{name}|>" for name in ("ACTION", "THINKING", "RESPONSE", "TEXT") for side in ("START", "END"))
ARGUMENTS = '{"text": "<|END_ACTION|> <co>\\\\", "size": 5.0}'
CALL = f'{{"tool_call_id": "0", "tool_name": "look_up", "parameters": {ARGUMENTS}}}'
CALLS = f"<|START_ACTION|>[\n    {CALL},\n    {CALL.replace('0', '1', 1)}\n]<|END_ACTION|>"
"""As the templates of the package write them."""
THOUGHT = "<|START_THINKING|>Hm.<|END_THINKING|>"
TEXT = "Let me {see} <b>é</b>: ["
WAYS = (None, 1, 5, 4000)
"""Tokens at once; None: the answer is read whole."""
HOSTILE = (
    "{}",
    '{"size": 1e400}',
    f'{{"count": {"9" * 400}}}',
    r'{"text": "\ud800"}',
    f'{{"whatever": {"[" * 300}{"]" * 300}}}',
    '{"text": "a \\"}]"}',
)
EVERY_FORMAT = pytest.mark.parametrize("name", ["cohere_command3", "cohere_command4"])
Answer = tuple[str, list[tuple[str, str]]]


@pytest.fixture(scope="module", params=[True, False], ids=["special", "plain"])
def marked(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([*MARKS], special_tokens=request.param)
    return tokenizer


def of_vllm(name: str, marked: PreTrainedTokenizerFast, **fields: Any) -> tuple[ChatCompletionRequest, Parser]:
    told = {
        "model": "any",
        "messages": [{"role": "user", "content": "hello"}],
        "tools": TOOLS,
        "vllm_xargs": {KEY_ARGUMENT: "key"},
        **fields,
    }
    request = ChatCompletionRequest.model_validate(told)
    parser = ParserManager.get_parser(name, name, True)(marked, request.tools)
    return parser.adjust_request(request), parser


def read(name: str, tokens: list[int], marked: PreTrainedTokenizerFast, most: int | None) -> Answer:
    """The content and the calls."""
    request, parser = of_vllm(name, marked)
    if most is None:
        _, content, calls = parser.parse(str(marked.decode(tokens, skip_special_tokens=False)), request, enable_auto_tools=True)
        return content or "", [(call.name, call.arguments) for call in calls or ()]
    pieces = [*deltas(tokens, marked, most), ("", [STOP_ID])]
    told = [parser.parse_delta(text, some, request, [], finished=some == [STOP_ID]) for text, some in pieces]
    return "".join(delta.content or "" for delta in told if delta), merged(told)


def read_all_ways(name: str, tokens: list[int], marked: PreTrainedTokenizerFast) -> Answer:
    """Behind reasoning, and without, where the package may take content for reasoning."""
    whole, *others = (read(name, [*tokens_of(THOUGHT, marked), *tokens], marked, most) for most in WAYS)
    assert all(other == whole for other in others), marked.decode(tokens)
    assert all(read(name, tokens, marked, most)[1] == whole[1] for most in WAYS)
    return whole


def tokens_of(text: str, marked: PreTrainedTokenizerFast) -> list[int]:
    """A mark within a string is text, as the model may spell it."""
    spelled = text.replace(ARGUMENTS, "\0")
    inner = marked.encode(ARGUMENTS, add_special_tokens=False, split_special_tokens=True)
    pieces = [[*map(int, marked.encode(piece, add_special_tokens=False))] for piece in spelled.split("\0")]
    return [token for index, piece in enumerate(pieces) for token in [*(inner if index else ()), *piece]]


@EVERY_FORMAT
@pytest.mark.parametrize("single", [False, True])
def test_calls_are_read_back(name: str, single: bool, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    compiled = grammar_of(forced_tag(parse_tools({"tools": TOOLS}, name), name, single).spec, vocabulary)
    answers = [read_all_ways(name, walk(compiled, vocabulary, seed), marked) for seed in range(16)]
    assert not any(content for content, _ in answers)
    check_calls((calls for _, calls in answers), SCHEMAS, single)


@EVERY_FORMAT
@pytest.mark.parametrize("member", SCHEMA["properties"])
def test_each_kind_of_argument_is_read_back_and_valid(
    name: str, member: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer
) -> None:
    schema = {**SCHEMA, "properties": {member: SCHEMA["properties"][member]}, "required": [member]}
    tools = [{"type": "function", "function": {"name": "look_up", "strict": True, "parameters": schema}}]
    compiled = grammar_of(forced_tag(parse_tools({"tools": tools}, name), name, True).spec, vocabulary)
    for seed in range(3):
        [(_, arguments)] = read_all_ways(name, walk(compiled, vocabulary, seed), marked)[1]
        Draft202012Validator(schema).validate(json.loads(arguments))


@EVERY_FORMAT
def test_calls_may_stand_behind_any_text(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    grammar = grammar_of(auto_tag(parse_tools({"tools": TOOLS}, name), None, name).spec, vocabulary)
    block = "TEXT" if name == "cohere_command4" else "RESPONSE"
    texts = (TEXT, f"<|START_{block}|>{TEXT}", f"<|START_{block}|>{TEXT}<|END_{block}|>")
    for ahead, behind in [("", CALLS), *((text, calls) for text in texts for calls in (CALLS, ""))]:
        tokens = tokens_of(ahead + behind, marked)
        assert accepted_prefix(grammar.matcher(None, 0), [*tokens, STOP_ID]) == len(tokens) + 1
        calls = 2 * [("look_up", ARGUMENTS)] if behind else []
        assert read_all_ways(name, tokens, marked) == (TEXT if ahead else "", calls)


@EVERY_FORMAT
@pytest.mark.parametrize("arguments", HOSTILE)
def test_arguments_end_where_their_braces_do(name: str, arguments: str, marked: PreTrainedTokenizerFast) -> None:
    """Of two calls, the package reads one."""
    tokens = [int(token) for token in marked.encode(CALLS.replace(ARGUMENTS, arguments), add_special_tokens=False)]
    assert read_all_ways(name, tokens, marked) == ("", 2 * [("look_up", arguments)])


@EVERY_FORMAT
def test_an_answer_of_a_schema_may_stand_in_place_of_calls(
    name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer
) -> None:
    note = {"type": "object", "properties": {"note": {"type": "string"}, "at": {"type": "array", "items": {"type": "number"}}}}
    grammar = grammar_of(auto_tag(parse_tools({"tools": TOOLS}, name), note, name).spec, vocabulary)
    answers = 0
    for seed in range(30):
        content, calls = read_all_ways(name, walk(grammar, vocabulary, seed), marked)
        answers += not calls
        if not calls:
            Draft202012Validator({**note, "additionalProperties": False}).validate(json.loads(content))
    assert answers


@EVERY_FORMAT
@pytest.mark.parametrize("text", MARKS)
def test_text_does_not_spell_a_mark(name: str, text: str, vocabulary: GrammarTokenizer) -> None:
    grammar = grammar_of(auto_tag(parse_tools({"tools": TOOLS}, name), None, name).spec, vocabulary)
    tokens = [vocabulary.byte_tokens[byte] for byte in f"a {text}x".encode()]
    assert accepted_prefix(grammar.matcher(None, 0), tokens) < len(tokens)


@EVERY_FORMAT
def test_nothing_but_its_end_ends_the_reasoning(name: str, marked: PreTrainedTokenizerFast) -> None:
    found = end_marks(ReasoningParserManager.get_reasoning_parser(name)(marked))
    assert found.end == (marked.convert_tokens_to_ids("<|END_THINKING|>"),)
    assert found.others == {marked.convert_tokens_to_ids(mark) for mark in MARKS if "START" in mark and "THINKING" not in mark}


@EVERY_FORMAT
@pytest.mark.parametrize("fields", [{"vllm_xargs": None}, {"tool_choice": "none"}, {"tools": None}])
def test_other_answers_are_read_by_the_package(name: str, fields: dict[str, Any], marked: PreTrainedTokenizerFast) -> None:
    request, parser = of_vllm(name, marked, **fields)
    _, content, calls = parser.parse(f"{THOUGHT}{TEXT}{CALLS.replace(ARGUMENTS, '{}')}", request, enable_auto_tools=True)
    assert content == TEXT
    assert request.structured_outputs is None
    assert [call.arguments for call in calls or ()] == (["", ""] if "vllm_xargs" in fields else [])
