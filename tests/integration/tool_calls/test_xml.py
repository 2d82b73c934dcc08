"""What the grammars of XML tool call formats allow, vLLM's parser of that name reads back: arguments that their schema allows."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from transformers import PreTrainedTokenizerFast

from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import Requested, refusal, take_constraint
from deployments.constraints.tool_calls.tools import auto_tag, forced_tag, parse_tools
from deployments.constraints.tool_calls.xml_formats import XML_FORMATS
from grammar_service.backends import CompiledGrammar
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.errors import GrammarError
from grammar_service.limits import Limits
from grammar_service.resolve import resolve
from grammar_service.tags.mark_suffix import with_suffix
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, grammar_of
from tests.integration.tool_calls.reading import read
from tests.tokenizers.tiny_tokenizer import STOP_ID, marked_tokenizer

MARKS = (
    *("<tool_call>", "</tool_call>", "<seed:tool_call>", "</seed:tool_call>", "<think>", "</think>", "<seed:think>", "</seed:think>"),
    *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<minimax:tool_call>", "</minimax:tool_call>", "｜DSML｜"),
    *("<tool_calls>", "</tool_calls>", "<tool_sep>", "<ifm|tool_calls>", "</ifm|tool_calls>", "<ifm|tool_call>", "</ifm|tool_call>"),
    *("<ifm|arg_key>", "</ifm|arg_key>", "<ifm|arg_value>", "</ifm|arg_value>", "]<]minimax[>[", "<mm:think>", "</mm:think>"),
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "short": {"type": "string", "minLength": 1, "maxLength": 12},
        "code": {"type": "string", "pattern": "^[a-c]{2}-[0-9]+$"},
        "kind": {"enum": ["green", "</parameter>", "5"]},
        "count": {"type": "integer", "minimum": -3, "maximum": 99},
        "size": {"type": "number"},
        "exact": {"type": "boolean"},
        "nothing": {"type": "null"},
        "maybe": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 10}]},
        "on": {"type": ["string", "boolean"]},
        "words": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "place": {"$ref": "#/$defs/Place"},
        "perhaps": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        "mixed": {"type": ["string", "object"], "additionalProperties": {"type": "integer"}},
        "five": {"const": 5},
        "inner": {
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/Count"}, "c": {"const": 7}, "s": {"type": ["string", "integer"], "minimum": 10}},
            "required": ["n", "c", "s"],
        },
        "name": {"$ref": "#/$defs/Name"},
    },
    "additionalProperties": False,
    "$defs": {
        "Name": {"type": "string", "maxLength": 8},
        "Count": {"type": "integer"},
        "Place": {"type": "object", "properties": {"name": {"type": "string"}, "at": {"type": "integer"}}, "required": ["name"]},
    },
}
OTHER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "parameters": schema, "strict": True}}
    for name, schema in (("look_up", SCHEMA), ("add.v2", OTHER), ("stop", {"type": "object", "properties": {}}))
]
DEEPSEEK = (
    '<｜DSML｜{0}>\n<｜DSML｜{1} name="add.v2">\n<｜DSML｜{2} name="a" string="false">7</｜DSML｜{2}>\n</｜DSML｜{1}>\n</｜DSML｜{0}>'
)
GLM = "<tool_call>add.v2<arg_key>a</arg_key><arg_value>7</arg_value></tool_call>"
GLM45 = "<tool_call>add.v2\n<arg_key>a</arg_key>\n<arg_value>7</arg_value>\n</tool_call>"
QWEN = "<tool_call>\n<function=add.v2>\n<parameter=a>\n7\n</parameter>\n</function>\n</tool_call>"
CALLS = {
    **dict.fromkeys(("qwen3_coder", "qwen3_xml", "step3p5"), QWEN),
    "mimo": "<tool_call><function=add.v2><parameter=a>7</parameter></function></tool_call>",
    "seed_oss": QWEN.replace("tool_call", "seed:tool_call"),
    "glm45": GLM45,
    "poolside_v1": f"{GLM45}\n",
    **dict.fromkeys(("glm47", "ling3"), GLM),
    "hy_v3": f"<tool_calls>\n{GLM45.replace('add.v2', 'add.v2<tool_sep>')}\n</tool_calls>",
    "hy_v4": f"<tool_calls>{GLM}</tool_calls>",
    "k2_horizon": f"<tool_calls>\n{GLM45}\n</tool_calls>".replace("<", "<ifm|").replace("<ifm|/", "</ifm|"),
    "minimax_m2": ('<minimax:tool_call>\n<invoke name="add.v2">\n<parameter name="a">7</parameter>\n</invoke>\n</minimax:tool_call>'),
    "minimax_m3": '<tool_call>\n<invoke name="add.v2"><a>7</a></invoke>\n</tool_call>'.replace("<", "]<]minimax[>[<"),
    "deepseek_v32": DEEPSEEK.format("function_calls", "invoke", "parameter"),
    "deepseek_v4": DEEPSEEK.format("tool_calls", "invoke", "parameter"),
    "deepseek_v41": DEEPSEEK.format(" calls", " invoke", " parameter"),
}
"""As the models' chat templates write a call."""
LONGEST, MANY = 3000, 100
EVERY_FORMAT = pytest.mark.parametrize("name", XML_FORMATS)


@pytest.fixture(scope="module")
def marked() -> PreTrainedTokenizerFast:
    return marked_tokenizer(MARKS)


def grammar(name: str, vocabulary: GrammarTokenizer, tools: list[dict[str, Any]] | None = None, single: bool = False) -> CompiledGrammar:
    return grammar_of(forced_tag(parse_tools({"tools": tools or TOOLS}, name), name, single).spec, vocabulary)


def as_in(vocabulary: GrammarTokenizer, name: str, text: str) -> str:
    """A text with the marks that the vocabulary has."""
    marks = XML_FORMATS[name].suffixed
    return str(with_suffix(text, marks, vocabulary.added_tokens, "")) if marks else text


def walk(name: str, grammar: CompiledGrammar, vocabulary: GrammarTokenizer, seed: int) -> list[int]:
    """The tokens of a random answer, which likes what looks like a mark, and ends values. Marks are the tokens that models have for
    them."""
    choose, matcher = random.Random(seed), grammar.matcher(None, 0)
    marks = {vocabulary.encode(as_in(vocabulary, name, mark))[0] for mark in MARKS if not XML_FORMATS[name].closing.endswith(mark)}
    likely = {token for token, text in enumerate(vocabulary.vocabulary) if text and set(text) <= set(b'<>/"\\parmetiv=5-nul{}[]: \n')}
    known = XML_FORMATS[name]
    ends = [vocabulary.encode(as_in(vocabulary, name, text)) for text in (str((known.members or {})["after_value"]), known.closing) if text]
    tokens: list[int] = []
    while len(tokens) < LONGEST:
        options = allowed(matcher, vocabulary.vocab_size)
        if STOP_ID in options and (len(options) == 1 or choose.random() < 0.5):
            return tokens
        ending = 0.2 if len(tokens) < LONGEST // 4 else 1
        following = next((end for end in ends if choose.random() < ending and accepted_prefix(matcher, end) == len(end)), [])
        if not following:
            pool = sorted(options & marks) if len(options) < MANY else []
            pool = pool or sorted(options & likely if options & likely and choose.random() < 0.7 else options - {STOP_ID} - marks)
            pool = pool or sorted(options - {STOP_ID})
            following = [choose.choice([one for one in pool if vocabulary.vocabulary[one].isascii()] or pool)]
        assert all(map(matcher.accept, following))
        tokens += following
    raise AssertionError(f"the walk does not end: {b''.join(vocabulary.vocabulary[token] for token in tokens)!r}")


def read_both(name: str, tokens: list[int], marked: PreTrainedTokenizerFast, tools: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """The calls with their arguments, which are the same whole and streamed."""
    whole, streamed = (
        [(called, json.loads(text)) for called, text in read(name, tokens, marked, tools, stream)] for stream in (False, True)
    )
    assert whole == streamed, marked.decode(tokens)
    return whole


@EVERY_FORMAT
def test_each_kind_of_argument_is_read_back_and_valid(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    for member in SCHEMA["properties"]:
        schema = {**SCHEMA, "properties": {member: SCHEMA["properties"][member]}, "required": [member]}
        tools = [{"type": "function", "function": {"name": "look_up", "parameters": schema, "strict": True}}]
        compiled = grammar(name, vocabulary, tools, single=True)
        for seed in range(3):
            tokens = walk(name, compiled, vocabulary, seed)
            [(_, arguments)] = read_both(name, tokens, marked, tools)
            assert Draft202012Validator(schema).is_valid(arguments), (marked.decode(tokens), arguments)


@EVERY_FORMAT
def test_several_calls_of_several_arguments_are_read_back(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    compiled, most = grammar(name, vocabulary), 0
    for seed in range(15):
        calls = read_both(name, walk(name, compiled, vocabulary, seed), marked, TOOLS)
        most = max(most, len(calls))
        for called, arguments in calls:
            Draft202012Validator(schemas[called]).validate(arguments)
    assert most > 1


@pytest.mark.parametrize("name", [name for name, known in XML_FORMATS.items() if known.suffixed])
def test_marks_have_the_suffix_that_they_have_in_the_vocabulary(name: str) -> None:
    suffix, names = ":x-1", XML_FORMATS[name].suffixed
    marks = [str(with_suffix(mark, names, [f"<{names[0]}{suffix}>"], "")) for mark in MARKS]
    marked = marked_tokenizer(marks)
    marked.init_kwargs["token_suffix"] = suffix
    vocabulary = GrammarTokenizer.from_huggingface(marked)
    compiled = grammar(name, vocabulary)
    for seed in range(5):
        tokens = walk(name, compiled, vocabulary, seed)
        assert f"<tool_calls{suffix}>" in marked.decode(tokens)
        assert read_both(name, tokens, marked, TOOLS)


@EVERY_FORMAT
def test_free_text_may_stand_ahead_of_a_call(name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    matcher = grammar_of(auto_tag(parse_tools({"tools": TOOLS}, name), None, name).spec, vocabulary).matcher(None, 0)
    call = marked.encode(CALLS[name], add_special_tokens=False)
    assert all(map(matcher.accept, [*vocabulary.encode("Let me <b>see</b>: \n"), *call]))
    assert matcher.accept(STOP_ID)
    assert read_both(name, call, marked, TOOLS) == [("add.v2", {"a": 7})]


@pytest.mark.parametrize("name", [name for name, known in XML_FORMATS.items() if known.nothing_follows])
def test_a_tool_that_is_not_strict_has_any_arguments_and_nothing_else(
    name: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer
) -> None:
    tools = [{**tool, "function": {**tool["function"], "strict": tool["function"]["name"] == "look_up"}} for tool in TOOLS]
    compiled = grammar_of(auto_tag(parse_tools({"tools": tools}, name), None, name).spec, vocabulary)
    other = CALLS[name].replace("key>a</", "key>other.b</").replace("a>", "other.b>").replace("7", "any <b>text</b>")
    tokens = marked.encode(other, add_special_tokens=False)
    assert accepted_prefix(compiled.matcher(None, 0), [*tokens, STOP_ID]) == len(tokens) + 1
    assert read_both(name, tokens, marked, tools) == [("add.v2", {"other.b": "any <b>text</b>"})]
    wrong = vocabulary.encode(other.partition("add.v2")[0] + "add.v2 and so on")
    assert accepted_prefix(compiled.matcher(None, 0), wrong) < len(wrong)
    assert accepted_prefix(compiled.matcher(None, 0), vocabulary.encode(f"{CALLS[name]} and so on")) == len(vocabulary.encode(CALLS[name]))


@pytest.mark.parametrize("name", [name for name, known in XML_FORMATS.items() if known.opening])
def test_the_mark_ahead_of_calls_is_followed_by_nothing_else(name: str, vocabulary: GrammarTokenizer) -> None:
    matcher = grammar_of(auto_tag(parse_tools({"tools": TOOLS}, name), None, name).spec, vocabulary).matcher(None, 0)
    mark = vocabulary.encode(XML_FORMATS[name].opening.rstrip("\n"))
    assert accepted_prefix(matcher, mark) == len(mark)
    assert all(map(matcher.accept, mark))
    assert accepted_prefix(matcher, vocabulary.encode("x")) == 0
    assert not matcher.accept(STOP_ID)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"minProperties": 1}, "/minProperties"),
        ({"properties": {"a": {"$ref": "#/properties/b"}, "b": {}}}, "/properties"),
        ({"required": ["b"]}, "/required"),
        ({"properties": {"a": {"type": "number of"}}}, "/properties/a/type"),
        ({"properties": {"a": {"type": "array", "items": {"type": "string", "pattern": "a"}}}}, "/properties/a/items/pattern"),
        ({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "array", "uniqueItems": True}}}, "/$defs/A/uniqueItems"),
    ],
)
def test_what_is_not_enforced_is_refused_at_its_place(schema: dict[str, Any], place: str) -> None:
    tools = [{"function": {"name": "f", "parameters": {"type": "object", **schema}, "strict": True}}]
    requested = take_constraint({"tools": tools}, ConstraintDefaults(), "qwen3_coder")
    assert isinstance(requested, Requested)
    with pytest.raises(GrammarError) as caught:
        resolve(requested.spec, Limits(), "tokenizer")
    assert refusal(caught.value, requested).param == f"tools[0].function.parameters#{place}"
