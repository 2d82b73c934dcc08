"""What the grammars of tool calls allow whose arguments are no JSON, vLLM's parser of that name reads back: arguments that their schema
allows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from transformers import PreTrainedTokenizerFast

from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import Requested, refusal, take_constraint
from deployments.constraints.tool_calls.python_formats import PYTHON_FORMATS
from deployments.constraints.tool_calls.tools import auto_tag, forced_tag, parse_tools
from grammar_service.backends import CompiledGrammar
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.errors import GrammarError
from grammar_service.limits import Limits
from grammar_service.resolve import resolve
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import grammar_of
from tests.integration.tool_calls.reading import read
from tests.integration.tool_calls.walking import walk
from tests.tokenizers.tiny_tokenizer import STOP_ID, tiny_tokenizer

QUOTE, BEGIN, END = '<|"|>', "<|tool_call>", "<tool_call|>"
MARKS = (
    QUOTE,
    BEGIN,
    END,
    "<|channel>",
    "<channel|>",
    "<|turn>",
    "<turn|>",
    "<|tool_response>",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    "<start_function_call>",
    "<end_function_call>",
    "<escape>",
)
PLACE = {"type": "object", "properties": {"name": {"type": "string"}, "at": {"type": "integer"}}, "required": ["name"]}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "short": {"type": "string", "minLength": 1, "maxLength": 12},
        "code": {"type": "string", "pattern": "^[a-c]{2}-[0-9]+$"},
        "kind": {"enum": ["green", "<tool_call|>", "5"]},
        "count": {"type": "integer", "minimum": -3, "maximum": 99},
        "size": {"type": "number"},
        "part": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "exact": {"type": "boolean"},
        "nothing": {"type": "null"},
        "maybe": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 10}]},
        "on": {"type": ["string", "boolean"]},
        "words": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
        "pairs": {"type": "array", "items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}},
        "point": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}], "minItems": 1},
        "place": {"$ref": "#/$defs/Place"},
        "perhaps": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        "places": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
        "some": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "shape": {"anyOf": [{"$ref": "#/$defs/Circle"}, {"$ref": "#/$defs/Box"}]},
        "five": {"const": 5},
        "one": {"enum": [1, 2.5, None, True, "a"]},
        "named": {"type": "object", "additionalProperties": {"type": "string"}},
        "anything": {"type": "object"},
        "whatever": {},
        "inner": {
            "type": "object",
            "properties": {
                "n": {"$ref": "#/$defs/Count"},
                "c": {"const": 7},
                "s": {"type": ["string", "integer"], "minimum": 10},
                "deep": {"type": "object", "properties": {"list": {"type": "array", "items": {"enum": ["a", 5]}}}},
            },
            "required": ["n", "c", "s"],
        },
        "name": {"$ref": "#/$defs/Name"},
        "größe": {"type": "string"},
    },
    "additionalProperties": False,
    "$defs": {
        "Name": {"type": "string", "maxLength": 8},
        "Count": {"type": "integer"},
        "Place": PLACE,
        "Circle": {"type": "object", "properties": {"kind": {"const": "circle"}, "size": {"type": "number"}}, "required": ["kind", "size"]},
        "Box": {"type": "object", "properties": {"kind": {"const": "box"}, "size": PLACE}, "required": ["kind", "size"]},
    },
}
OTHER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
PYTHON: dict[str, Any] = {
    "one": {"enum": [1, 2.5, None, True, "a", "\"'\n\\"]},
    "counts": {"type": "object", "additionalProperties": {"type": "number"}},
    "shape": {"anyOf": [{"$ref": "#/$defs/Place"}, {"$ref": "#/$defs/Name"}]},
    "object": {"type": "object", "properties": {"a b": {"type": "boolean"}, "größe": {"type": "string"}}, "required": ["a b"]},
    "from": {"type": "string"},
    "page-size": {"type": "integer"},
    "$filter": {"type": "string", "maxLength": 4},
}
IN_PYTHON = {**SCHEMA, "properties": {**{name: one for name, one in SCHEMA["properties"].items() if name != "größe"}, **PYTHON}}
SCHEMAS = {"gemma4": SCHEMA, "functiongemma": SCHEMA, **dict.fromkeys(PYTHON_FORMATS, IN_PYTHON)}
CALLS = {
    "gemma4": "<|tool_call>call:add{a:7}<tool_call|>",
    "functiongemma": "<start_function_call>call:add{a:7}<end_function_call>",
    "lfm2": "<|tool_call_start|>[add(a=7)]<|tool_call_end|>",
    **dict.fromkeys(("pythonic", "llama4_pythonic"), "[add(a=7)]"),
    "olmo3": "<function_calls>add(a=7)</function_calls>",
}
"""As the models' chat templates write a call."""
LIKELY = b'<>/"\\|tool_call=5-.nul{}[]:, \n'
"""What looks like a mark."""
EVERY_FORMAT = pytest.mark.parametrize("name", CALLS)


@pytest.fixture(scope="module")
def marked() -> PreTrainedTokenizerFast:
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": [*MARKS]})
    return tokenizer


def grammar(name: str, vocabulary: GrammarTokenizer, tools: list[dict[str, Any]], single: bool = False) -> CompiledGrammar:
    return grammar_of(forced_tag(parse_tools({"tools": tools}, name), name, single).spec, vocabulary)


def read_in_all_ways(name: str, tokens: list[int], marked: PreTrainedTokenizerFast, tools: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """The calls with their arguments, which are the same in every way."""
    reasons = (False, True) if name == "gemma4" else (False,)
    ways = [read(name, tokens, marked, tools, stream, one) for stream in (False, True) for one in reasons]
    first, *others = [[(called, json.loads(text)) for called, text in calls] for calls in ways]
    assert all(other == first for other in others), marked.decode(tokens)
    return first


def several(name: str) -> list[dict[str, Any]]:
    schemas = {"look_up": SCHEMAS[name], "add": OTHER, "stop": {"type": "object", "properties": {}}}
    return [{"type": "function", "function": {"name": called, "parameters": schema, "strict": True}} for called, schema in schemas.items()]


def tool(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "look_up", "parameters": schema, "strict": True}}]


@pytest.mark.parametrize(("name", "member"), [(name, member) for name in CALLS for member in SCHEMAS[name]["properties"]])
def test_each_kind_of_argument_is_read_back_and_valid(
    name: str, member: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer
) -> None:
    schema = {**SCHEMAS[name], "properties": {member: SCHEMAS[name]["properties"][member]}, "required": [member]}
    compiled = grammar(name, vocabulary, tool(schema), single=True)
    for seed in range(4):
        tokens = walk(compiled, vocabulary, seed, LIKELY)
        [(_, arguments)] = read_in_all_ways(name, tokens, marked, tool(schema))
        assert Draft202012Validator(schema).is_valid(arguments), (marked.decode(tokens), arguments)


@EVERY_FORMAT
def test_several_calls_of_several_arguments_are_read_back(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    tools = several(name)
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    compiled, most = grammar(name, vocabulary, tools), 0
    for seed in range(15):
        calls = read_in_all_ways(name, walk(compiled, vocabulary, seed, LIKELY), marked, tools)
        most = max(most, len(calls))
        for called, arguments in calls:
            Draft202012Validator(schemas[called]).validate(arguments)
    assert most > 1


@pytest.mark.parametrize("name", [*PYTHON_FORMATS, "functiongemma"])
def test_calls_of_tools_that_are_not_strict_are_read_back_too(
    name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer
) -> None:
    tools = [{"type": "function", "function": {"name": "free", "parameters": {"type": "object"}}}, *tool(OTHER)]
    compiled, called = grammar(name, vocabulary, tools), set[str]()
    for seed in range(20):
        called |= {name for name, _ in read_in_all_ways(name, walk(compiled, vocabulary, seed, LIKELY), marked, tools)}
    assert called == {"free", "look_up"}


def test_marks_may_be_texts() -> None:
    unmarked = tiny_tokenizer()
    vocabulary = GrammarTokenizer.from_huggingface(unmarked)
    place, words = r'{name:<escape>"a" <b>\n<escape>}', "[<escape>{<escape>,<escape><esc<escape>]"
    call = f"<start_function_call>call:look_up{{place:{place},words:{words}}}<end_function_call>"
    schema = {**SCHEMA, "required": ["place"]}
    matcher = grammar("functiongemma", vocabulary, tool(schema)).matcher(None, 0)
    tokens = [vocabulary.byte_tokens[byte] for byte in call.encode()]
    assert all(map(matcher.accept, [*tokens, STOP_ID]))
    for most in (1, 3, 50):
        [(name, arguments)] = read("functiongemma", tokens, unmarked, tool(schema), stream=True, most=most)
        assert (name, json.loads(arguments)) == ("look_up", {"place": {"name": r'"a" <b>\n'}, "words": ["{", "<esc"]})


@EVERY_FORMAT
def test_a_call_may_come_or_text(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    matcher = grammar_of(auto_tag(parse_tools({"tools": several(name)}, name), None, name).spec, vocabulary).matcher(None, 0)
    call = marked.encode(CALLS[name], add_special_tokens=False)
    ahead = vocabulary.encode("Let me <b>see</b>: \n") if name in ("gemma4", "functiongemma", "lfm2", "olmo3") else []
    assert all(map(matcher.accept, [*ahead, *call, STOP_ID]))
    assert read_in_all_ways(name, call, marked, several(name)) == [("add", {"a": 7})]
    for text in ("Let me see: f(x), [1]", "a < b", "Yes.", "\n\nYes", "1. f(a=1)", ""):
        matcher.reset()
        assert all(map(matcher.accept, [*vocabulary.encode(text), STOP_ID]))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, "a <|tool_call>") for name in ("gemma4", "lfm2")),
        *((name, "[f()]") for name in ("pythonic", "llama4_pythonic")),
        ("olmo3", "Well: <function_calls>see"),
        ("functiongemma", "a <start_function_call>"),
    ],
)
def test_text_does_not_look_like_a_call(name: str, text: str, vocabulary: GrammarTokenizer) -> None:
    matcher = grammar_of(auto_tag(parse_tools({"tools": several(name)}, name), None, name).spec, vocabulary).matcher(None, 0)
    spelled = [vocabulary.byte_tokens[byte] for byte in text.encode()]
    assert accepted_prefix(matcher, spelled) < len(spelled)


@pytest.mark.parametrize(
    ("name", "schema", "place"),
    [
        ("pythonic", {"properties": {"a(b": {"type": "string"}}}, ""),
        ("gemma4", {"minProperties": 1, "properties": {"a": {"type": "integer"}}}, ""),
        ("gemma4", {}, ""),
        ("gemma4", {"properties": {"a:b": {"type": "string"}}}, ""),
        ("gemma4", {"properties": {"a": {"type": "number of"}}}, "/properties/a/type"),
        ("gemma4", {"properties": {"a": {"type": "array", "uniqueItems": True, "items": {"type": "string"}}}}, "/properties/a"),
        ("gemma4", {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "array", "uniqueItems": True}}}, "/properties/a"),
        (
            "gemma4",
            {"properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}}},
            "/properties/a/additionalProperties",
        ),
    ],
)
def test_what_is_not_enforced_is_refused_at_its_place(name: str, schema: dict[str, Any], place: str) -> None:
    requested = take_constraint({"tools": tool({"type": "object", **schema})}, ConstraintDefaults(), name)
    assert isinstance(requested, Requested)
    with pytest.raises(GrammarError) as caught:
        resolve(requested.spec, Limits(), "tokenizer")
    assert refusal(caught.value, requested).param == f"tools[0].function.parameters#{place}"
