"""What the grammars for Muse Glimmer allow, vLLM's parsers of it read back: valid calls behind any reasoning, or an answer."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.parser.parser_manager import ParserManager

from deployments.constraints.tool_calls.channels.muse_glimmer import PARSER
from deployments.constraints.tool_calls.tools import auto_tag, forced_tag, parse_tools
from grammar_service.backends import CompiledGrammar
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.frontend.reasoning import reasoning_ended
from tests.driving import allowed, grammar_of
from tests.integration.tool_calls.reading import deltas, read, request
from tests.tokenizers.tiny_tokenizer import STOP_ID, marked_tokenizer

MARKS = ("<|start|>", "<|message|>", "<|eom|>")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "short": {"type": "string", "minLength": 1, "maxLength": 12},
        "long": {"type": "string", "minLength": 12},
        "code": {"type": "string", "pattern": "^[a-c]{2}-[0-9]+$"},
        "digits": {"type": "string", "pattern": "^[0-9]+$"},
        "kind": {"enum": ["green", "</atem>", "5", "true", 7]},
        "count": {"type": "integer", "minimum": -3, "maximum": 99},
        "size": {"type": "number"},
        "exact": {"type": "boolean"},
        "maybe": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 10}]},
        "words": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "place": {"$ref": "#/$defs/Place"},
        "mixed": {"type": ["string", "object"], "additionalProperties": {"type": "integer"}},
        "five": {"const": 5},
        "whatever": {},
        "größe": {"$ref": "#/$defs/Name"},
    },
    "additionalProperties": False,
    "$defs": {
        "Name": {"type": "string", "maxLength": 8},
        "Place": {"type": "object", "properties": {"name": {"type": "string"}, "at": {"type": "integer"}}, "required": ["name"]},
    },
}
OTHER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
SCHEMAS: dict[str, Any] = {"look_up": SCHEMA, "order-tea.v2": OTHER, "user": OTHER, "stop": {"type": "object", "properties": {}}}
ANSWER = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"], "additionalProperties": False}
THOUGHT = ' to=self<|message|>I <atem:invoke name="stop"></atem:invoke> to=user<|eom|><|start|>assistant'
CALL = '<atem:function_calls>\n<atem:invoke name="{0}">\n{1}</atem:invoke>\n</atem:function_calls>'
LONGEST = 3000


def tools(schemas: dict[str, Any] | None = None, strict: bool = True) -> list[dict[str, Any]]:
    named = (schemas or SCHEMAS).items()
    return [{"type": "function", "function": {"name": name, "parameters": schema, "strict": strict}} for name, schema in named]


@pytest.fixture(scope="module", params=[True, False], ids=["tokens", "texts"])
def marked(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    """Whose marks are special tokens, or several tokens each."""
    return marked_tokenizer(MARKS if request.param else (), special=True)


def forced(vocabulary: GrammarTokenizer, asked: list[dict[str, Any]], single: bool = False) -> CompiledGrammar:
    return grammar_of(forced_tag(parse_tools({"tools": asked}, PARSER), PARSER, single).spec, vocabulary)


def free(vocabulary: GrammarTokenizer, asked: list[dict[str, Any]], answer: Any = None) -> CompiledGrammar:
    return grammar_of(auto_tag(parse_tools({"tools": asked}, PARSER), answer, PARSER).spec, vocabulary)


def walk(grammar: CompiledGrammar, vocabulary: GrammarTokenizer, seed: int, start: Sequence[int] = ()) -> list[int]:
    """The tokens of a random answer, which likes what looks like a mark, and ends values and messages."""
    choose, matcher = random.Random(seed), grammar.matcher(None, 0)
    marks = set(vocabulary.special_tokens.values())
    likely = {token for token, text in enumerate(vocabulary.vocabulary) if text and set(text) <= set(b'<>/"\\|atem:=5-.rulNIf{}[], \n')}
    ends = [vocabulary.encode(text) for text in ("</atem:parameter>\n", '"</atem:parameter>\n', "<|eom|>", "</atem:invoke>\n")]
    tokens, following = list[int](), [*start]
    while len(tokens) < LONGEST:
        options = allowed(matcher, vocabulary.vocab_size)
        if not following and STOP_ID in options and (len(options) == 1 or choose.random() < 0.5):
            return tokens
        ending = 0.15 if len(tokens) < LONGEST // 8 else 1
        following = following or next((end for end in ends if choose.random() < ending and accepted_prefix(matcher, end) == len(end)), [])
        if not following:
            texts = options - marks - {STOP_ID} or options - {STOP_ID}
            pool = sorted(texts & likely if texts & likely and choose.random() < 0.7 else texts)
            following = [choose.choice([one for one in pool if vocabulary.vocabulary[one].isascii()] or pool)]
        assert all(map(matcher.accept, following))
        tokens, following = tokens + following, []
    raise AssertionError(f"the walk does not end: {b''.join(vocabulary.vocabulary[token] for token in tokens)!r}")


def to_user(marked: PreTrainedTokenizerFast) -> list[int]:
    return [*marked.encode(" to=user<|message|>", add_special_tokens=False)]


def read_in_all_ways(tokens: list[int], marked: PreTrainedTokenizerFast, asked: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """The calls with their arguments, which are the same in every way."""
    ways = [read(PARSER, tokens, marked, asked, most > 0, reasons, most) for most in (0, 1, 7, 40) for reasons in (False, True)]
    first, *others = [[(called, json.loads(text)) for called, text in calls] for calls in ways]
    assert all(other == first for other in others), marked.decode(tokens)
    return first


def texts(tokens: list[int], marked: PreTrainedTokenizerFast, asked: list[dict[str, Any]], most: int) -> tuple[str, str]:
    """The reasoning and the answer, by vLLM: in a stream of so many tokens at once, or whole (0)."""
    told = request(PARSER, asked)
    parser = ParserManager.get_parser(PARSER, PARSER, True)(marked, told.tools)
    if not most:
        reasoning, content, _ = parser.parse(marked.decode(tokens), told, enable_auto_tools=True, model_output_token_ids=tokens)
        return reasoning or "", content or ""
    parts: list[DeltaMessage | None] = [
        parser.parse_delta(text, ids, told, [], finished=False) for text, ids in deltas(tokens, marked, most)
    ]
    parts.append(parser.parse_delta("", [], told, [], finished=True))
    return "".join(part.reasoning or "" for part in parts if part), "".join(part.content or "" for part in parts if part)


@pytest.mark.parametrize("member", SCHEMA["properties"])
def test_each_kind_of_argument_is_read_back_and_valid(member: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    schema = {**SCHEMA, "properties": {member: SCHEMA["properties"][member]}, "required": [member]}
    asked = tools({"look_up": schema})
    compiled = forced(vocabulary, asked, single=True)
    for seed in range(6):
        tokens = walk(compiled, vocabulary, seed, vocabulary.encode(" to=look_up") if seed % 3 else ())
        [(_, arguments)] = read_in_all_ways(tokens, marked, asked)
        assert Draft202012Validator(schema).is_valid(arguments), (marked.decode(tokens), arguments)


def test_several_calls_of_several_arguments_are_read_back(marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    compiled, counts, called = forced(vocabulary, tools()), set(), set()
    for seed in range(15):
        calls = read_in_all_ways(walk(compiled, vocabulary, seed), marked, tools())
        for name, arguments in calls:
            Draft202012Validator(SCHEMAS[name]).validate(arguments)
        counts.add(min(len(calls), 2))
        called |= {name for name, _ in calls}
    assert counts == {1, 2}
    assert called == SCHEMAS.keys()


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        *(
            ("", ""),
            ("5 pears", "5 pears"),
            ("2024-01-31", "2024-01-31"),
            ("- a\n- b", "- a\n- b"),
            ("truely", "truely"),
            ('a "b"', 'a "b"'),
        ),
        *(('"5"', "5"), ('"true"', "true"), ('"NaN"', "NaN"), ('"\\u003c|eom|>"', "<|eom|>"), ('" a"', " a"), ("<b>é</b>", "<b>é</b>")),
        *((text, None) for text in ("5", "-0", "1e400", "-Infinity", "NaN", "null", "true\n", " 5", "[1]", '{"a": 1}', '"a', "a <|eom|>")),
        *((text, None) for text in ('"a\tb"', '"\\x"', "a</atem:parameter>b", "a</atem:invoke>", "<|x")),
    ],
)
def test_a_string_is_written_as_it_is_or_in_quotes(
    spelled: str, value: str | None, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer
) -> None:
    asked = tools({"f": {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]}})
    call = CALL.format("f", f'<atem:parameter name="s">{spelled}</atem:parameter>\n')
    tokens = marked.encode(f" to=f<|message|>{call}", add_special_tokens=False)
    assert (accepted_prefix(forced(vocabulary, asked).matcher(None, 0), [*tokens, STOP_ID]) > len(tokens)) == (value is not None)
    if value is not None:
        assert read_in_all_ways(tokens, marked, asked) == [("f", {"s": value})]


def test_a_call_or_an_answer_stands_behind_any_reasoning(marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    call = CALL.format("order-tea.v2", '<atem:parameter name="a">7</atem:parameter>\n')
    compiled = free(vocabulary, tools())
    for begin in ("", THOUGHT, THOUGHT * 2):
        tokens = marked.encode(f"{begin} to=order-tea.v2<|message|>{call}", add_special_tokens=False)
        assert accepted_prefix(compiled.matcher(None, 0), [*tokens, STOP_ID]) > len(tokens)
        assert read_in_all_ways(tokens, marked, tools()) == [("order-tea.v2", {"a": 7})]
        tokens = marked.encode(f"{begin} to=user<|message|>No <call>, f(x): 5 < 6 to=me.", add_special_tokens=False)
        assert accepted_prefix(compiled.matcher(None, 0), [*tokens, STOP_ID]) > len(tokens)
        assert read_in_all_ways(tokens, marked, tools()) == []
        for most in (0, 1, 7):
            reasoning, content = texts(tokens, marked, tools(), most)
            assert (bool(reasoning), content) == (bool(begin), "No <call>, f(x): 5 < 6 to=me.")


def test_calls_that_may_come_are_read_back(marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    compiled, called = free(vocabulary, tools()), 0
    for seed in range(15):
        tokens = walk(compiled, vocabulary, seed, to_user(marked) if seed % 2 else ())
        calls = read_in_all_ways(tokens, marked, tools())
        assert bool(calls) == ("to=user<|message|>" not in marked.decode(tokens))
        for name, arguments in calls:
            Draft202012Validator(SCHEMAS[name]).validate(arguments)
        called += bool(calls)
    assert 0 < called < 30


def test_an_answer_beside_tools_keeps_to_its_schema(marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    compiled = free(vocabulary, tools(), ANSWER)
    for seed in range(20):
        tokens = walk(compiled, vocabulary, seed, to_user(marked))
        assert read_in_all_ways(tokens, marked, tools()) == []
        for most in (0, 1, 7):
            Draft202012Validator(ANSWER).validate(json.loads(texts(tokens, marked, tools(), most)[1]))


def test_constraints_begin_with_the_first_token(marked: PreTrainedTokenizerFast) -> None:
    parser = ParserManager.get_parser(PARSER, PARSER, True)(marked, request(PARSER, tools()).tools)
    assert reasoning_ended(request(PARSER, tools()), parser, marked.encode("<|start|>assistant")) is True


@pytest.mark.parametrize("text", ["a <|message|>", "a <|eom|> b", "<|start|>assistant", "<atem:invoke name="])
def test_text_does_not_spell_a_mark(text: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    matcher = free(vocabulary, tools()).matcher(None, 0)
    assert all(map(matcher.accept, to_user(marked)))
    spelled = [vocabulary.byte_tokens[byte] for byte in text.encode()]
    assert accepted_prefix(matcher, spelled) < len(spelled)


def test_a_tool_that_is_not_strict_has_any_arguments(marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    asked = [*tools({"look_up": SCHEMA}), *tools({"other": OTHER}, strict=False)]
    call = CALL.format("other", '<atem:parameter name="b.c">any <b>text</b></atem:parameter>\n')
    tokens = marked.encode(f" to=other<|message|>{call}", add_special_tokens=False)
    assert accepted_prefix(free(vocabulary, asked).matcher(None, 0), [*tokens, STOP_ID]) > len(tokens)
    assert read_in_all_ways(tokens, marked, asked) == [("other", {"b.c": "any <b>text</b>"})]
