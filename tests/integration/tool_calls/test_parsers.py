"""What the grammar of a tool call format allows, vLLM's parser of that name reads back: the same tool, arguments that its schema allows."""

from __future__ import annotations

import inspect
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.engine.adapters import ParserEngineToolAdapter
from vllm.reasoning import _REASONING_PARSERS_TO_REGISTER, ReasoningParserManager
from vllm.tool_parsers import _TOOL_PARSERS_TO_REGISTER, ToolParser, ToolParserManager

from deployments.constraints.model_parsers import WITHOUT_JSON_CALLS
from deployments.constraints.tool_calls.formats import TOOL_FORMATS
from deployments.constraints.tool_calls.json_formats import JSON_FORMATS
from deployments.constraints.tool_calls.tools import auto_tag, parse_tools
from grammar_service.backends import CompiledGrammar, Matcher
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.reasoning.masks import end_marks
from tests.driving import allowed, grammar_of
from tests.tokenizers.tiny_tokenizer import STOP_ID, marked_tokenizer

# What ends all calls stands before what begins another one.
MARKS = (
    *("<tool_call>", "</tool_call>", "<longcat_tool_call>", "</longcat_tool_call>", "<|python_tag|>"),
    *("<dots_function_call>", "</dots_function_call>"),
    *("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"),
    *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    *("<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_call_argument_begin|>", "<think>", "</think>"),
)
MARKS_OF_REASONING = (
    *("<think>", "</think>", "<tool_call>", "<|tool_call>", "<seed:think>", "</seed:think>", "<mm:think>", "</mm:think>", "<answer>"),
    *("<|channel>", "<channel|>", "<|END_THINKING|>", "<|content_text|>", "<|message_model|>", "<|end_message|>"),
    *("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>", "<|close|>", "<|open|>", "<|sep|>", "<ifm|think>", "</ifm|think>"),
)
OF_OTHER_TOKENIZERS = {"hf", "mistral", "olmo3", "poolside_v1"}
LONGEST, MANY = 600, 100
SCHEMAS = {
    "get_weather": {
        "type": "object",
        "properties": {
            "city": {"$ref": "#/$defs/City"},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
            "exact": {"type": "boolean"},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
        "$defs": {"City": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}}, "required": ["name"]}},
    },
    "order-tea.v2": {
        "type": "object",
        "properties": {
            "kinds": {"type": "array", "items": {"enum": ["green", "black", "{"]}, "minItems": 1, "maxItems": 3},
            "note": {"type": "string"},
        },
        "required": ["kinds"],
        "additionalProperties": False,
    },
}
TOOLS = [{"type": "function", "function": {"name": name, "strict": True, "parameters": schema}} for name, schema in SCHEMAS.items()]
EVERY_FORMAT = pytest.mark.parametrize("name", JSON_FORMATS)


@pytest.fixture(scope="module")
def marked() -> PreTrainedTokenizerFast:
    return marked_tokenizer(MARKS)


def grammar(name: str, vocabulary: GrammarTokenizer, single: bool = False) -> CompiledGrammar:
    return grammar_of(auto_tag(parse_tools({"tools": TOOLS}), None, name, single).spec, vocabulary)


def request() -> ChatCompletionRequest:
    return ChatCompletionRequest.model_validate(
        {"model": "any", "messages": [{"role": "user", "content": "hello"}], "tools": TOOLS, "tool_choice": "auto"}
    )


def parser(name: str, marked: PreTrainedTokenizerFast) -> ToolParser:
    return ToolParserManager.get_tool_parser(name)(marked, request().tools)


def walk(grammar: CompiledGrammar, vocabulary: GrammarTokenizer, start: str, seed: int) -> list[int]:
    """The tokens of a random answer that begins with `start`. A mark is written as the one token that it is where the grammar wants it,
    and sometimes inside of a string."""
    choose, matcher = random.Random(seed), grammar.matcher(None, 0)
    marks = {vocabulary.encode(mark)[0] for mark in MARKS}
    tokens: list[int] = []
    following = vocabulary.encode(start)
    while len(tokens) < LONGEST:
        token = following.pop(0) if following else step(matcher, vocabulary, marks, choose, len(tokens) > 60)
        assert matcher.accept(token)
        if token == STOP_ID:
            return tokens
        tokens.append(token)
    raise AssertionError(f"the walk does not end: {b''.join(vocabulary.vocabulary[token] for token in tokens)!r}")


def step(matcher: Matcher, vocabulary: GrammarTokenizer, marks: set[int], choose: random.Random, closes: bool) -> int:
    options = allowed(matcher, vocabulary.vocab_size)
    if STOP_ID in options and (options == {STOP_ID} or choose.random() < 0.7):
        return STOP_ID
    # Inside of a string nearly everything may come next, marks too that do not end the call there.
    if wanted := sorted(options & marks if len(options) < MANY or choose.random() < 0.1 else ()):
        return wanted[0] if closes else choose.choice(wanted)
    plain = sorted(option for option in options - marks - {STOP_ID} if vocabulary.vocabulary[option].isascii())
    closing = [option for option in plain if vocabulary.vocabulary[option] in (b'"', b"}", b"]", b'"}')]
    return choose.choice((closes and closing) or plain or sorted(options))


PAGE = Path(__file__).parents[3] / "docs" / "guide" / "model-formats.md"
MEANT = {"yes": True, "no": False}


def rows(heading: str) -> dict[str, tuple[str, str]]:
    """The last two cells of the page's table below a heading, by each of the names in the first."""
    table = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found: dict[str, tuple[str, str]] = {}
    for line in table.splitlines():
        if line.startswith("| `"):
            names, *_, first, second = (cell.strip() for cell in line.strip("|").replace("\\|", "").split("|"))
            found |= {name.strip("` "): (first, second) for name in names.split(",")}
    return found


def test_the_guide_has_every_parser_of_tools_and_what_is_enforced_there() -> None:
    told = rows("Tool calls")
    assert told.keys() == set(_TOOL_PARSERS_TO_REGISTER)
    assert {name for name, (strict, _) in told.items() if MEANT[strict]} == TOOL_FORMATS.keys()
    assert {name for name, (_, forced) in told.items() if forced != "JSON"} == WITHOUT_JSON_CALLS
    assert {name for name, (_, forced) in told.items() if forced == "own"} == WITHOUT_JSON_CALLS & TOOL_FORMATS.keys()


def test_forced_calls_are_json_only_where_the_parser_reads_it() -> None:
    """Harmony's, Cohere's and the templates' have a `parse` of their own."""
    own = {"openai", "hf", "cohere_command3", "cohere_command4"}
    native = {
        name
        for name in _TOOL_PARSERS_TO_REGISTER
        if "supports_required_and_named = False" in inspect.getsource(ToolParserManager.get_tool_parser(name))
    }
    typed = {name for name in ("hy_v4",) if not ToolParserManager.get_tool_parser(name).supports_required_and_named}
    assert native | typed | own == WITHOUT_JSON_CALLS


def test_the_guide_has_every_parser_of_reasoning_and_what_is_known_of_its_end() -> None:
    told = rows("Reasoning")
    assert told.keys() == set(_REASONING_PARSERS_TO_REGISTER)
    tokenizer = marked_tokenizer(MARKS_OF_REASONING)
    for name, (_, bound) in told.items():
        if name not in OF_OTHER_TOKENIZERS:
            reasoner = ReasoningParserManager.get_reasoning_parser(name)(tokenizer, chat_template_kwargs={"thinking": True})
            assert MEANT[bound] == bool(end_marks(reasoner).end), name


def beginning(name: str) -> str:
    """What leads into a call."""
    known = JSON_FORMATS[name]
    return known.opening or known.trigger


def check(calls: list[tuple[str, str]]) -> None:
    assert calls
    for name, arguments in calls:
        jsonschema.validate(json.loads(arguments), SCHEMAS[name])


@EVERY_FORMAT
def test_the_parser_reads_back_what_the_grammar_allows(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    compiled = grammar(name, vocabulary)
    called = set()
    for seed in range(40):
        text = marked.decode(walk(compiled, vocabulary, beginning(name), seed))
        told = parser(name, marked).extract_tool_calls(text, request())
        assert told.tools_called, text
        calls = [(call.function.name, call.function.arguments) for call in told.tool_calls]
        check(calls)
        called |= {called_name for called_name, _ in calls}
    assert called == SCHEMAS.keys()


@EVERY_FORMAT
def test_the_parser_reads_a_stream_back(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    compiled = grammar(name, vocabulary)
    for seed in range(10):
        check(streamed(parser(name, marked), walk(compiled, vocabulary, beginning(name), seed), marked))


def streamed(parser: ToolParser, tokens: list[int], marked: PreTrainedTokenizerFast) -> list[tuple[str, str]]:
    """The calls of a stream of single tokens."""
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    for delta in deltas(parser, tokens, marked):
        for call in delta.tool_calls if delta else ():
            if call.function and call.function.name:
                names[call.index] = call.function.name
            arguments[call.index] = arguments.get(call.index, "") + ((call.function and call.function.arguments) or "")
    return [(names[index], arguments[index]) for index in sorted(names)]


def deltas(parser: ToolParser, tokens: list[int], marked: PreTrainedTokenizerFast) -> Iterator[DeltaMessage | None]:
    asked, before = request(), ""
    for end in range(1, len(tokens) + 1):
        text = marked.decode(tokens[:end])
        yield parser.extract_tool_calls_streaming(
            before, text, text[len(before) :], tokens[: end - 1], tokens[:end], tokens[end - 1 : end], asked
        )
        before = text
    if isinstance(parser, ParserEngineToolAdapter):
        yield parser.finish_streaming()


@EVERY_FORMAT
def test_one_call_is_all_where_calls_are_not_parallel(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    compiled = grammar(name, vocabulary, single=True)
    for seed in range(10):
        text = marked.decode(walk(compiled, vocabulary, beginning(name), seed))
        assert len(parser(name, marked).extract_tool_calls(text, request()).tool_calls) == 1


@EVERY_FORMAT
def test_an_answer_without_a_call_is_free_text(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    text = "Tea {is} fine: \n<b>1</b>."
    matcher = grammar(name, vocabulary).matcher(None, 0)
    assert all(matcher.accept(token) for token in [*vocabulary.encode(text), STOP_ID])
    told: Any = parser(name, marked).extract_tool_calls(text, request())
    assert not told.tools_called
    assert told.content == text
