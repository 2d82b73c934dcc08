"""What the grammars of calls with arguments as XML, in marks that may be special tokens, allow, vLLM's parser of that name reads back."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.abstract_parser import Parser
from vllm.parser.parser_manager import ParserManager

from deployments.constraints.tool_calls.token_calls import OF_XML
from deployments.constraints.tool_calls.tools import auto_tag, forced_tag, parse_tools
from grammar_service.backends import CompiledGrammar
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.messages import KEY_ARGUMENT
from tests.driving import allowed, grammar_of
from tests.integration.tool_calls.reading import deltas, merged, request
from tests.tokenizers.tiny_tokenizer import STOP_ID, marked_tokenizer

MARKS = (
    *("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", "<｜tool_call_begin｜>", "<｜tool_call_end｜>", "<｜tool_sep｜>"),
    *("<function", "</function>", "<param", "</param>", "<think>", "</think>"),
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "short": {"type": "string", "minLength": 1, "maxLength": 12},
        "long": {"type": "string", "maxLength": 64},
        "code": {"type": "string", "pattern": "^[a-c]{2}-[0-9]+$"},
        "tagged": {"type": "string", "pattern": "^<[a-z&]+>\\n?$"},
        "kind": {"enum": ["green", "</steptml:parameter>", "</param>", "a & b", "5"]},
        "angle": {"const": "<b>"},
        "count": {"type": "integer", "minimum": -3, "maximum": 99},
        "any_count": {"type": "integer"},
        "size": {"type": "number"},
        "part": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "exact": {"type": "boolean"},
        "nothing": {"type": "null"},
        "maybe": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 10}]},
        "on": {"type": ["string", "boolean"]},
        "words": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "pairs": {"type": "array", "items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}},
        "place": {"$ref": "#/$defs/Place"},
        "perhaps": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        "mixed": {"type": ["string", "object"], "additionalProperties": {"type": "integer"}},
        "five": {"const": 5},
        "one": {"enum": [1, 2.5, None, True, "<a>"]},
        "named": {"type": "object", "additionalProperties": {"type": "string"}},
        "whatever": {},
        "inner": {
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/Count"}, "c": {"const": 7}, "s": {"type": ["string", "integer"], "minimum": 10}},
            "required": ["n", "c", "s"],
        },
        "name": {"$ref": "#/$defs/Name"},
        "größe ü": {"type": "string"},
    },
    "additionalProperties": False,
    "$defs": {
        "Name": {"type": "string", "maxLength": 8},
        "Count": {"type": "integer"},
        "Place": {"type": "object", "properties": {"name": {"type": "string"}, "at": {"type": "integer"}}, "required": ["name"]},
    },
}
OTHER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
SCHEMAS = {"look_up": SCHEMA, "add.v2": OTHER, "stop-now": {"type": "object", "properties": {}}}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "parameters": schema, "strict": True}} for name, schema in SCHEMAS.items()
]
AROUND = {
    "step3": (
        '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{}"><steptml:parameter name="a">',
        "</steptml:parameter></steptml:invoke><｜tool_call_end｜>",
    ),
    "minicpm5": ('<function name="{}"><param name="a">', "</param></function>"),
}
"""What stands ahead of an argument and behind it, as the models write calls."""
BETWEEN = {"step3": ("<｜tool_calls_begin｜>", "", "<｜tool_calls_end｜>"), "minicpm5": ("", "\n", "")}
"""What stands ahead of all calls, between them and behind them."""
BEGINNINGS = {"step3": "<｜tool_calls_begin｜>", "minicpm5": "<function"}
STRINGS = (
    *("", " ", " a ", "\t", "a\r\nb\r", "\x00\x01\x0b\x1c\x7f\x85\u2028\ufeff", "null", "true", "5", "{}", '["a"]', '"', "\\n\\", "'"),
    *("Ġgantija", "Ċ", "é日本🜁", "a" * 400, "<", "a < b & c > d", "&lt;&amp;", "<b>bold</b>", "<functionname=", "x]] >]]", "<param"),
    *("</param>", "<![CDATA[x", "<!-- -->", "<?xml", "{'a': 1}", "1_000", "-0", "5.0", "1e400", "NaN", "<｜tool", "<｜tool_sep｜>"),
    *("</steptml:parameter>", "]]>", "<b>]]>", "</function>", "<function name=", "</think>", "a<think>b"),
)
UNWRITTEN = {
    "step3": {"<｜tool", "<｜tool_sep｜>", "</steptml:parameter>", "</think>", "a<think>b"},
    "minicpm5": {"<b>]]>", "</function>", "</think>", "a<think>b"},
}
"""Those that would end the argument, or look like another one's beginning."""
LONGEST = 3000
EVERY_FORMAT = pytest.mark.parametrize("name", sorted(OF_XML))


@pytest.fixture(scope="module", params=["special", "added", "text"])
def marked(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    """Of a model whose marks are special tokens, other tokens, or none."""
    return marked_tokenizer(() if request.param == "text" else MARKS, special=request.param == "special")


@pytest.fixture(scope="module")
def grammar(vocabulary: GrammarTokenizer) -> Callable[[str], CompiledGrammar]:
    """With tool_choice "auto"."""
    return cache(lambda name: grammar_of(auto_tag(parse_tools({"tools": TOOLS}, name), None, name).spec, vocabulary))


def calls_of(name: str, vocabulary: GrammarTokenizer, tools: list[dict[str, Any]], single: bool = False) -> CompiledGrammar:
    return grammar_of(forced_tag(parse_tools({"tools": tools}, name), name, single).spec, vocabulary)


def tool(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "look_up", "parameters": schema, "strict": True}}]


def spelled(vocabulary: GrammarTokenizer, text: str) -> list[int]:
    return [vocabulary.byte_tokens[byte] for byte in text.encode()]


def walk(grammar: CompiledGrammar, vocabulary: GrammarTokenizer, start: list[int], seed: int) -> list[int]:
    """The tokens of a random answer that begins with `start`, which likes what looks like a mark, and ends values."""
    choose, matcher, tokens, following = random.Random(seed), grammar.matcher(None, 0), list[int](), [*start]
    marks = {vocabulary.encode(mark)[0] for mark in MARKS if len(vocabulary.encode(mark)) == 1}
    likely = {token for token, text in enumerate(vocabulary.vocabulary) if text and set(text) <= set(b'<>/"![]CDAT&\\param=5-.nul{}:, \n')}
    ends = [*map(vocabulary.encode, ("</param>", "]]></param>", "</steptml:parameter>", '"', "]", "}"))]
    while len(tokens) < LONGEST:
        options = allowed(matcher, vocabulary.vocab_size)
        if not following and STOP_ID in options and (len(options) == 1 or choose.random() < 0.5):
            return tokens
        ending = 0.15 if len(tokens) < LONGEST // 6 else 0.9
        following = following or next((e for e in ends if choose.random() < ending and accepted_prefix(matcher, e) == len(e)), [])
        if not following:
            pool = options & marks if choose.random() < 0.3 else options & likely
            following = [choose.choice(sorted(pool or options - {STOP_ID} - marks or options - {STOP_ID}))]
        tokens.append(following[0])
        assert matcher.accept(following[0])
        following = following[1:]
    raise AssertionError(f"the walk does not end: {b''.join(vocabulary.vocabulary[token] for token in tokens)!r}")


def of_vllm(name: str, marked: PreTrainedTokenizerFast, tools: list[dict[str, Any]], reasons: bool) -> tuple[ChatCompletionRequest, Parser]:
    asked = request(name, tools)
    asked.vllm_xargs = {KEY_ARGUMENT: "key"}
    parser = ParserManager.get_parser(name, "step3" if reasons else None, True)(marked, asked.tools)
    return parser.adjust_request(asked), parser


def stream(
    name: str, tokens: list[int], marked: PreTrainedTokenizerFast, tools: list[dict[str, Any]], most: int, reasons: bool = False
) -> list[DeltaMessage]:
    asked, parser = of_vllm(name, marked, tools, reasons)
    pieces = [*deltas(tokens, marked, most)]
    told = [parser.parse_delta(text, some, asked, [], finished=some is pieces[-1][1]) for text, some in pieces]
    return [delta for delta in told if delta]


def read_all_ways(
    name: str,
    tokens: list[int],
    marked: PreTrainedTokenizerFast,
    tools: list[dict[str, Any]],
    reasons: bool = False,
    at_once: tuple[int, ...] = (1, 7, LONGEST),
) -> list[tuple[str, Any]]:
    """The calls with their arguments, which are the same whole, and in streams of one token at once, of several, and of all."""
    asked, parser = of_vllm(name, marked, tools, reasons)
    text = str(marked.decode(tokens, skip_special_tokens=False))
    _, _, found = parser.parse(text, asked, enable_auto_tools=True, model_output_token_ids=tokens)
    whole = [(call.name, json.loads(call.arguments)) for call in found or ()]
    for most in at_once:
        calls = merged(stream(name, tokens, marked, tools, most, reasons))
        assert [(called, json.loads(arguments)) for called, arguments in calls] == whole, text
    return whole


@pytest.mark.parametrize(("name", "member"), [(name, member) for name in sorted(OF_XML) for member in SCHEMA["properties"]])
def test_each_kind_of_argument_is_read_back_and_valid(
    name: str, member: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer
) -> None:
    schema = {**SCHEMA, "properties": {member: SCHEMA["properties"][member]}, "required": [member]}
    compiled = calls_of(name, vocabulary, tool(schema), single=True)
    for seed in range(2):
        tokens = walk(compiled, vocabulary, [], seed)
        [(_, arguments)] = read_all_ways(name, tokens, marked, tool(schema))
        assert Draft202012Validator(schema).is_valid(arguments), (marked.decode(tokens), arguments)


@EVERY_FORMAT
def test_several_calls_of_several_arguments_are_read_back_behind_any_text(
    name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer, grammar: Callable[[str], CompiledGrammar]
) -> None:
    called, most = set(), 0
    for seed in range(24):
        text = ["", "Let me <b>see</b>: \n", "<fun 1 < 2 & ]]> <｜to\n\n"][seed % 3]
        tokens = walk(grammar(name), vocabulary, [*vocabulary.encode(text), *vocabulary.encode(BEGINNINGS[name])], seed)
        calls = read_all_ways(name, tokens, marked, TOOLS)
        assert calls, marked.decode(tokens)
        for called_name, arguments in calls:
            Draft202012Validator(SCHEMAS[called_name]).validate(arguments)
        called |= {called_name for called_name, _ in calls}
        most = max(most, len(calls))
        assert content(name, tokens, marked).rstrip("\n") == text.rstrip("\n")
    assert called == SCHEMAS.keys()
    assert most > 2


def content(name: str, tokens: list[int], marked: PreTrainedTokenizerFast, most: int = 1) -> str:
    return "".join(delta.content or "" for delta in stream(name, tokens, marked, TOOLS, most))


@EVERY_FORMAT
def test_calls_as_the_model_writes_them_are_in_the_grammar(
    name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer, grammar: Callable[[str], CompiledGrammar]
) -> None:
    calls = written(name, vocabulary, "add.v2", "7", "-12")
    for text in ("", "Let me see.\n"):
        tokens = [*vocabulary.encode(text), *calls]
        assert accepts(grammar(name), tokens)
        assert read_all_ways(name, tokens, marked, TOOLS) == [("add.v2", {"a": 7}), ("add.v2", {"a": -12})]
    assert not accepts(grammar(name), [*calls, *spelled(vocabulary, "And")])
    assert not accepts(grammar(name), written(name, vocabulary, "add.v2", "seven"))


def written(name: str, vocabulary: GrammarTokenizer, called: str, *values: str) -> list[int]:
    """Calls of a tool, one for each text of its argument, in which no special token stands."""
    (first, between, last), (before, after) = BETWEEN[name], AROUND[name]
    tokens = vocabulary.encode(first)
    for index, value in enumerate(values):
        tokens += vocabulary.encode(f"{between if index else ''}{before.format(called)}") + spelled(vocabulary, value)
        tokens += vocabulary.encode(after)
    return tokens + vocabulary.encode(last)


def accepts(grammar: CompiledGrammar, tokens: list[int]) -> bool:
    return accepted_prefix(grammar.matcher(None, 0), [*tokens, STOP_ID]) == len(tokens) + 1


@EVERY_FORMAT
def test_strings_are_read_back_as_they_are(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    tools = tool({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
    compiled = calls_of(name, vocabulary, tools)
    for string in STRINGS:
        is_in_section = name == "minicpm5" and not {"<", "&", "\n"}.isdisjoint(string)
        tokens = written(name, vocabulary, "look_up", f"<![CDATA[{string}]]>" if is_in_section else string)
        assert accepts(compiled, tokens) == (string not in UNWRITTEN[name]), string
        if string not in UNWRITTEN[name]:
            assert read_all_ways(name, tokens, marked, tools, at_once=(4, LONGEST)) == [("look_up", {"a": string})]


@pytest.mark.parametrize("value", ["-0", "5.0", "0.1", "1e99", "-1E-99", "9" * 200, "9007199254740993"])
@EVERY_FORMAT
def test_numbers_are_read_back(name: str, value: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    tools = tool({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]})
    compiled = calls_of(name, vocabulary, tools)
    tokens = written(name, vocabulary, "look_up", value)
    assert accepts(compiled, tokens)
    assert read_all_ways(name, tokens, marked, tools) == [("look_up", {"a": json.loads(value)})]
    assert not accepts(compiled, written(name, vocabulary, "look_up", "1e400"))


@EVERY_FORMAT
def test_no_text_of_a_value_is_a_special_token(name: str, vocabulary: GrammarTokenizer) -> None:
    special = set(vocabulary.special_tokens.values())
    for schema in ({"type": "string"}, {"type": "string", "minLength": 2}, {"type": ["string", "integer"]}, {"type": "object"}):
        tools = tool({"type": "object", "properties": {"a": schema}, "required": ["a"]})
        matcher = calls_of(name, vocabulary, tools).matcher(None, 0)
        first = vocabulary.encode(BETWEEN[name][0] + AROUND[name][0].format("look_up"))
        assert all(map(matcher.accept, [*first, *spelled(vocabulary, '{"' if schema == {"type": "object"} else "a")]))
        assert allowed(matcher, vocabulary.vocab_size) & special <= set(vocabulary.encode(AROUND[name][1])[:1])


@EVERY_FORMAT
def test_a_tool_that_is_not_strict_has_any_arguments(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    tools = [{**one, "function": {**one["function"], "strict": one["function"]["name"] == "look_up"}} for one in TOOLS]
    compiled = grammar_of(auto_tag(parse_tools({"tools": tools}, name), None, name).spec, vocabulary)
    tokens = written(name, vocabulary, "add.v2", "seven", "<![CDATA[1 < 2\n]]>" if name == "minicpm5" else "1 < 2\n")
    assert accepts(compiled, tokens)
    assert read_all_ways(name, tokens, marked, tools) == [("add.v2", {"a": "seven"}), ("add.v2", {"a": "1 < 2\n"})]


@EVERY_FORMAT
def test_one_call_is_all_where_calls_are_not_parallel(name: str, vocabulary: GrammarTokenizer) -> None:
    compiled = grammar_of(auto_tag(parse_tools({"tools": TOOLS}, name), None, name, True).spec, vocabulary)
    assert accepts(compiled, written(name, vocabulary, "add.v2", "7"))
    assert not accepts(compiled, written(name, vocabulary, "add.v2", "7", "8"))


@EVERY_FORMAT
def test_an_answer_without_a_call_is_free_text_that_spells_none(
    name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer, grammar: Callable[[str], CompiledGrammar]
) -> None:
    for text in ("", "Tea {is} fine: \n<b>1</b> & <fun <｜to <", "Ġ <param name"):
        tokens = spelled(vocabulary, text)
        assert accepts(grammar(name), tokens)
        assert read_all_ways(name, tokens, marked, TOOLS) == []
        assert content(name, tokens, marked) == text
    assert not accepts(grammar(name), spelled(vocabulary, f"a {BEGINNINGS[name]}"))


@EVERY_FORMAT
def test_calls_are_read_behind_reasoning(name: str) -> None:
    reasoning = marked_tokenizer(MARKS)
    vocabulary = GrammarTokenizer.from_huggingface(reasoning)
    tokens = [*vocabulary.encode("Well: <b></think>"), *written(name, vocabulary, "add.v2", "7", "8")]
    assert read_all_ways(name, tokens, reasoning, TOOLS, reasons=True) == [("add.v2", {"a": 7}), ("add.v2", {"a": 8})]


@EVERY_FORMAT
def test_forced_calls_are_json(name: str, marked: PreTrainedTokenizerFast) -> None:
    arguments = {"a": 7, "b": "<function name= <｜tool_calls_begin｜>"}
    text = json.dumps([{"name": "add.v2", "parameters": arguments}], ensure_ascii=False)
    tokens = marked.encode(text, add_special_tokens=False)
    asked, parser = of_vllm(name, marked, TOOLS, reasons=False)
    asked.tool_choice = "required"
    _, _, calls = parser.parse(text, asked, enable_auto_tools=True)
    assert [(call.name, json.loads(call.arguments)) for call in calls or ()] == [("add.v2", arguments)]
    pieces = [*deltas(tokens, marked)]
    told = merged(parser.parse_delta(piece, some, asked, [], finished=some is pieces[-1][1]) for piece, some in pieces)
    assert [(called, json.loads(streamed)) for called, streamed in told] == [("add.v2", arguments)]


def test_answers_without_a_constraint_are_read_by_vllm(marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    asked, parser = of_vllm("minicpm5", marked, TOOLS, reasons=False)
    asked.vllm_xargs = None
    text = marked.decode(written("minicpm5", vocabulary, "add.v2", " 7 "), skip_special_tokens=False)
    _, _, calls = parser.parse(text.replace("function name", "function  name"), asked, enable_auto_tools=True)
    assert [json.loads(call.arguments) for call in calls or ()] == [{"a": 7}]
