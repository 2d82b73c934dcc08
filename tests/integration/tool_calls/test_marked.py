"""What the grammars of calls behind a mark allow, vLLM's parser of that name reads back, whole and streamed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.abstract_parser import Parser
from vllm.parser.parser_manager import ParserManager
from vllm.tool_parsers.llama_tool_parser import Llama3JsonToolParser

from deployments.constraints.tool_calls.marked_formats import MARKED_FORMATS
from deployments.constraints.tool_calls.tools import auto_tag, parse_tools
from grammar_service.backends import CompiledGrammar
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.frontend.constrained_calls import SYNTAXES, CallReader
from model_service.messages import KEY_ARGUMENT
from tests.driving import allowed, grammar_of
from tests.integration.tool_calls.reading import deltas, merged
from tests.tokenizers.tiny_tokenizer import STOP_ID, marked_tokenizer

MARKS = (
    *("<|tool_call|>", "<|function_call|>", "<|role_sep|>", "<|message_sep|>", "<tool_calls>", "</tool_calls>", "<function_call>"),
    *("<|action_start|>", "<|plugin|>", "<|action_end|>", "<|tools_prefix|>", "<|tools_suffix|>", "<|python_tag|>"),
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"$ref": "#/$defs/Count"},
        "size": {"type": "number"},
        "name": {"type": "string", "maxLength": 8},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 10}]},
        "place": {"type": "object", "properties": {"name": {"type": "string"}, "at": {"$ref": "#/$defs/Count"}}, "required": ["name"]},
        "kinds": {"type": "array", "items": {"enum": ["<tool_call>", "{", "]}", 1.0, None]}, "maxItems": 3},
        "exact": {"type": "boolean"},
    },
    "additionalProperties": False,
    "$defs": {"Count": {"type": "integer"}},
}
SCHEMAS = {"look_up": SCHEMA, "order-tea.v2": SCHEMA, "stop": {"type": "object", "properties": {}, "additionalProperties": False}}
TOOLS = [{"type": "function", "function": {"name": name, "strict": True, "parameters": schema}} for name, schema in SCHEMAS.items()]
ARGUMENTS = '{"count": 7, "size": 5.0, "name": "a"}'
CALL = f'{{"name": "look_up", "arguments": {ARGUMENTS}}}'
LLAMA = ["{", "; ".join([CALL.replace("arguments", "parameters")] * 2)[1:]]
CALLS = {
    "granite": ["<|tool_call|>", f"[{CALL}, {CALL}]"],
    "gigachat3": ["<|function_call|>", CALL],
    "granite-20b-fc": ["<function_call>", f" {CALL}", "<function_call>", f" {CALL}"],
    "hunyuan_a13b": ["<tool_calls>", f"[{CALL}, {CALL}]", "</tool_calls>"],
    "jamba": ["<tool_calls>", f"[\n    {CALL},\n    {CALL}\n]", "</tool_calls>"],
    "phi4_mini_json": ["functools[", f"{CALL}, {CALL}]"],
    "xlam": ["[", f"{CALL}, {CALL}]"],
    "llama3_json": LLAMA,
    "llama4_json": LLAMA,
    "internlm": ["<|action_start|>", "<|plugin|>", f"\n{CALL}", "<|action_end|>"],
    "apertus": ["<|tools_prefix|>", f'[{{"look_up": {ARGUMENTS}}}]', "<|tools_suffix|>"],
}
"""As the models' chat templates write calls: special tokens and texts."""
KIMI = (
    *("<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>"),
    *("<|tool_call_end|>", "<|tool_calls_section_end|>"),
)
LONGEST = 1500
EVERY_FORMAT = pytest.mark.parametrize("name", MARKED_FORMATS)


@pytest.fixture(scope="module")
def marked() -> PreTrainedTokenizerFast:
    return marked_tokenizer(MARKS, special=True)


@pytest.fixture(scope="module")
def grammar(vocabulary: GrammarTokenizer) -> Callable[[str, bool], CompiledGrammar]:
    made: dict[tuple[str, bool], CompiledGrammar] = {}

    def make(name: str, single: bool = False) -> CompiledGrammar:
        if (name, single) not in made:
            made[name, single] = grammar_of(auto_tag(parse_tools({"tools": TOOLS}, name), None, name, single).spec, vocabulary)
        return made[name, single]

    return make


def ids(vocabulary: GrammarTokenizer, parts: list[str]) -> list[int]:
    """Of texts and of special tokens; a text may spell one."""
    return [
        one
        for part in parts
        for one in ([vocabulary.special_tokens[part]] if part in MARKS else vocabulary.inner.encode(part.encode()) or ())
    ]


def walk(grammar: CompiledGrammar, vocabulary: GrammarTokenizer, start: list[int], seed: int) -> list[int]:
    """The tokens of a random answer that begins with `start`."""
    choose, matcher, tokens, following = random.Random(seed), grammar.matcher(None, 0), list[int](), [*start]
    likely = {token for token, text in enumerate(vocabulary.vocabulary) if text and set(text) <= set(b'"{}[]:, \\<|>tol_cal/n0123.-eE')}
    closing = {token for token, text in enumerate(vocabulary.vocabulary) if text in (b'"', b"}", b"]", b'"}')}
    while len(tokens) < LONGEST:
        options = allowed(matcher, vocabulary.vocab_size)
        if not following and STOP_ID in options and (len(options) == 1 or choose.random() < 0.5):
            return tokens
        pool = options & closing if len(tokens) > LONGEST // 4 or choose.random() < 0.3 else options & likely
        token = following.pop(0) if following else choose.choice(sorted(pool or options - {STOP_ID}))
        assert matcher.accept(token)
        tokens.append(token)
    raise AssertionError(f"the walk does not end: {b''.join(vocabulary.vocabulary[token] for token in tokens)!r}")


def text_of(tokens: list[int], marked: PreTrainedTokenizerFast) -> str:
    return str(marked.decode(tokens, skip_special_tokens=False))


def read(name: str, tokens: list[int], marked: PreTrainedTokenizerFast, most: int | None) -> list[tuple[str, Any]]:
    """The calls, by vLLM: in a stream of `most` tokens at once, or whole."""
    if most is None:
        request, parser = of_vllm(name, marked)
        _, _, calls = parser.parse(text_of(tokens, marked), request, enable_auto_tools=True, model_output_token_ids=tokens)
        return [(call.name, json.loads(call.arguments)) for call in calls or ()]
    return [(called, json.loads(arguments)) for called, arguments in merged(stream(name, tokens, marked, most))]


def of_vllm(name: str, marked: PreTrainedTokenizerFast) -> tuple[ChatCompletionRequest, Parser]:
    told = {"model": "any", "messages": [{"role": "user", "content": "hello"}], "tools": TOOLS, "tool_choice": "auto"}
    request = ChatCompletionRequest.model_validate({**told, "vllm_xargs": {KEY_ARGUMENT: "key"}})
    return request, ParserManager.get_parser(name, None, True)(marked, request.tools)


def stream(name: str, tokens: list[int], marked: PreTrainedTokenizerFast, most: int) -> Iterator[DeltaMessage]:
    request, parser = of_vllm(name, marked)
    for text, some in [*deltas(tokens, marked, most), ("", [STOP_ID])]:
        if delta := parser.parse_delta(text, some, request, [], finished=some == [STOP_ID]):
            yield delta


def content(name: str, tokens: list[int], marked: PreTrainedTokenizerFast) -> str:
    """The streamed text."""
    return "".join(delta.content or "" for delta in stream(name, tokens, marked, 1))


def read_all_ways(name: str, tokens: list[int], marked: PreTrainedTokenizerFast) -> list[tuple[str, Any]]:
    whole, *streamed = (read(name, tokens, marked, most) for most in (None, 1, 3))
    assert streamed == [whole, whole], text_of(tokens, marked)
    return whole


@EVERY_FORMAT
def test_calls_are_read_back_whole_and_streamed(
    name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer, grammar: Callable[[str, bool], CompiledGrammar]
) -> None:
    called, most = set(), 0
    for seed in range(30):
        tokens = walk(grammar(name, False), vocabulary, ids(vocabulary, CALLS[name][:1]), seed)
        calls = read_all_ways(name, tokens, marked)
        assert calls, text_of(tokens, marked)
        for called_name, arguments in calls:
            Draft202012Validator(SCHEMAS[called_name]).validate(arguments)
        called |= {called_name for called_name, _ in calls}
        most = max(most, len(calls))
    assert called == SCHEMAS.keys()
    assert (most == 1) == MARKED_FORMATS[name].is_single


@EVERY_FORMAT
def test_a_call_as_the_model_writes_it_may_stand_behind_any_text(
    name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer, grammar: Callable[[str, bool], CompiledGrammar]
) -> None:
    ahead = [] if MARKED_FORMATS[name].begins_with else ["Let me {see} <b>é</b>: [\n"]
    tokens = ids(vocabulary, [*ahead, *CALLS[name]])
    matcher = grammar(name, False).matcher(None, 0)
    assert all(map(matcher.accept, [*tokens, STOP_ID]))
    assert {called for called, _ in read_all_ways(name, tokens, marked)} == {"look_up"}


def test_granite_may_write_the_mark_as_text(
    marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer, grammar: Callable[[str, bool], CompiledGrammar]
) -> None:
    tokens = ids(vocabulary, [f"Well: <tool_call>[{CALL}]"])
    matcher = grammar("granite", False).matcher(None, 0)
    assert all(map(matcher.accept, [*tokens, STOP_ID]))
    assert read_all_ways("granite", tokens, marked) == [("look_up", {"count": 7, "size": 5.0, "name": "a"})]


@EVERY_FORMAT
def test_one_call_is_all_where_calls_are_not_parallel(
    name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer, grammar: Callable[[str, bool], CompiledGrammar]
) -> None:
    for seed in range(10):
        tokens = walk(grammar(name, True), vocabulary, ids(vocabulary, CALLS[name][:1]), seed)
        assert len(read(name, tokens, marked, None)) == 1


@EVERY_FORMAT
def test_text_does_not_spell_what_begins_a_call(
    name: str, vocabulary: GrammarTokenizer, grammar: Callable[[str, bool], CompiledGrammar]
) -> None:
    for text in MARKED_FORMATS[name].call.excluded:
        matcher = grammar(name, False).matcher(None, 0)
        tokens = list(vocabulary.inner.encode(f"a {text}x".encode()) or ())
        assert not all(map(matcher.accept, tokens))


@EVERY_FORMAT
def test_an_answer_without_a_call_is_free_text(
    name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer, grammar: Callable[[str, bool], CompiledGrammar]
) -> None:
    text = "true tea {is} [fine]: \n<b>1</b> <tool_> <|> é <"
    tokens = ids(vocabulary, [text])
    matcher = grammar(name, False).matcher(None, 0)
    assert all(map(matcher.accept, [*tokens, STOP_ID]))
    assert read_all_ways(name, tokens, marked) == []
    assert content(name, tokens, marked) == text


@pytest.mark.parametrize("most", [None, 1])
def test_kimi_reads_constrained_arguments_as_they_are_written(most: int | None) -> None:
    marked = marked_tokenizer(KIMI)
    arguments = '{"count": 7, "size": 5.0, "name": "a"}'
    text = f"{KIMI[0]}{KIMI[1]}functions.look_up:0{KIMI[2]}{arguments}{KIMI[3]}{KIMI[4]}"
    tokens = marked.encode(text, add_special_tokens=False)
    assert read("kimi_k2", tokens, marked, most) == [("look_up", json.loads(arguments))]


@pytest.mark.parametrize("name", sorted(MARKED_FORMATS.keys() - {"granite", "gigachat3"}))
@pytest.mark.parametrize(
    "answer",
    [
        [1, {"name": "x"}],
        {"name": "Ada", "parameters": 5},
        {"name": "look_up", "job": "nurse"},
        {"name": "look_up", "parameters": "not a call"},
        [{"name": "look_up", "arguments": [1]}],
        {"a": "<tool_calls>[ functools[ <function_call> <|tools_prefix|>"},
    ],
)
def test_an_answer_of_a_schema_is_no_call(name: str, answer: Any) -> None:
    plain, text = marked_tokenizer(("<tool_calls>", "</tool_calls>", "<|python_tag|>")), json.dumps(answer)
    tokens = plain.encode(text, add_special_tokens=False)
    assert read_all_ways(name, tokens, plain) == []
    assert content(name, tokens, plain) == text


def test_an_answer_is_told_as_soon_as_it_cannot_be_a_call() -> None:
    reader = CallReader(SYNTAXES[Llama3JsonToolParser], {"look_up": {}})
    assert [reader.read(piece)[0] for piece in ('{"na', 'me": "look_', 'down", ', '"x": 1')] == ["", "", "", '{"name": "look_down", "x": 1']


def test_arguments_that_are_no_object_have_an_end(marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    values = [5, "}", [{}], {"a": '\\"'}]
    calls = ", ".join(CALL.replace(ARGUMENTS, json.dumps(value)) for value in values)
    tokens = ids(vocabulary, ["<tool_calls>", f"[{calls}]", "</tool_calls>"])
    assert read_all_ways("hunyuan_a13b", tokens, marked) == [("look_up", value) for value in values]


def test_answers_without_a_constraint_are_read_by_vllm(marked: PreTrainedTokenizerFast) -> None:
    request, parser = of_vllm("hunyuan_a13b", marked)
    request.vllm_xargs = None
    text = f"<tool_calls> [ {CALL.replace(':', ' :')} ] </tool_calls>"
    _, _, calls = parser.parse(text, request, enable_auto_tools=True)
    assert [json.loads(call.arguments) for call in calls or ()] == [json.loads(ARGUMENTS)]
