"""What the grammars for Kimi K3 allow, vLLM's parser of that name reads back: answers, and calls that their schemas allow."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.exceptions import VLLMValidationError
from vllm.parser.abstract_parser import Parser
from vllm.parser.parser_manager import ParserManager

from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import Requested, refusal, take_constraint
from grammar_service.backends import CompiledGrammar
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.errors import GrammarError
from grammar_service.limits import Limits
from grammar_service.resolve import resolve
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.messages import KEY_ARGUMENT
from tests.driving import grammar_of
from tests.integration.tool_calls import test_literals
from tests.integration.tool_calls.reading import deltas, merged
from tests.integration.tool_calls.walking import LONGEST, walk
from tests.tokenizers.tiny_tokenizer import STOP_ID, marked_tokenizer

OPEN, CLOSE, SEPARATOR = MARKS = "<|open|>", "<|close|>", "<|sep|>"
SCHEMA: dict[str, Any] = {
    **test_literals.SCHEMA,
    "properties": {
        **test_literals.SCHEMA["properties"],
        "kind": {"enum": ["green", "<tool_call|>", "5", "a<"]},
        "coded": {"type": ["integer", "string", "null"], "enum": [1, "<", "null", None, "1"]},
        "a&amp;b c": {"type": "string", "minLength": 2},
        "any": {"anyOf": [{"type": "array", "items": {"type": "string", "maxLength": 5}}, {"$ref": "#/$defs/Place"}, {"type": "string"}]},
    },
}
OTHER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
SCHEMAS = {"look_up": SCHEMA, "add.v2": OTHER, "stop": {"type": "object", "properties": {}}}
TOOLS = [{"type": "function", "function": {"name": name, "strict": True, "parameters": schema}} for name, schema in SCHEMAS.items()]
ANSWER = {"type": "object", "properties": {"note": {"type": "string"}, "n": {"type": "integer"}}, "required": ["note"]}
NAMED = {"type": "function", "function": {"name": "add.v2"}}
REASONING = f"let me see{CLOSE}think{SEPARATOR}"
LIKELY = b'<>/"\\|open cls5-.nul{}[]:, \n'
"""What looks like a mark."""
Told = tuple[str | None, list[tuple[str, Any]]]


@pytest.fixture(scope="module")
def marked() -> PreTrainedTokenizerFast:
    return marked_tokenizer(MARKS, special=True)


def channel(name: str, text: str, *rest: str) -> str:
    return f"{OPEN}{name}{SEPARATOR}{text}{CLOSE}{name}{SEPARATOR}{''.join(rest)}"


def call(arguments: str, name: str = "add.v2") -> str:
    return f'{OPEN}call tool="{name}" index="1"{SEPARATOR}{arguments}{CLOSE}call{SEPARATOR}'


def argument(key: str, kind: str, value: str) -> str:
    return f'{OPEN}argument key="{key}" type="{kind}"{SEPARATOR}{value}{CLOSE}argument{SEPARATOR}'


CALL = channel("response", "Let me <b>see</b>: \n", channel("tools", call(argument("a", "number", "7"))), f"{CLOSE}message{SEPARATOR}")
"""As the model's template writes an answer."""


def constraint(body: dict[str, Any]) -> Requested:
    requested = take_constraint(json.loads(json.dumps({"tools": TOOLS, **body})), ConstraintDefaults(), "kimi_k3")
    assert isinstance(requested, Requested)
    return requested


def grammar(vocabulary: GrammarTokenizer, body: dict[str, Any]) -> CompiledGrammar:
    return grammar_of(constraint(body).spec, vocabulary)


def accepts(compiled: CompiledGrammar, tokens: list[int]) -> bool:
    return accepted_prefix(compiled.matcher(None, 0), [*tokens, STOP_ID]) == len(tokens) + 1


def ids(vocabulary: GrammarTokenizer, text: str) -> list[int]:
    """The tokens of a text with marks, which are special tokens."""
    parts = re.split("|".join(f"({re.escape(mark)})" for mark in MARKS), text)
    marks = vocabulary.special_tokens
    return [token for part in parts if part for token in ([marks[part]] if part in MARKS else vocabulary.encode(part))]


def of_vllm(marked: PreTrainedTokenizerFast, body: dict[str, Any], reasons: bool) -> tuple[ChatCompletionRequest, Parser]:
    asked = {
        "model": "any",
        "messages": [{"role": "user", "content": "hello"}],
        "vllm_xargs": {KEY_ARGUMENT: "key"},
        "tools": TOOLS,
        **body,
    }
    request = ChatCompletionRequest.model_validate(asked)
    parser = ParserManager.get_parser("kimi_k3", "kimi_k3" if reasons else None, True)(marked, request.tools)
    return parser.adjust_request(request), parser


def stream(marked: PreTrainedTokenizerFast, tokens: list[int], body: dict[str, Any], reasons: bool, most: int) -> Told:
    request, parser = of_vllm(marked, body, reasons)
    pieces = [*deltas(tokens, marked, most), ("", [STOP_ID])]
    parts = [parser.parse_delta(text, some, request, [], finished=some == [STOP_ID]) for text, some in pieces]
    content = "".join(part.content or "" for part in parts if isinstance(part, DeltaMessage))
    return content or None, [(called, json.loads(arguments)) for called, arguments in merged(parts)]


def whole(marked: PreTrainedTokenizerFast, tokens: list[int], body: dict[str, Any], reasons: bool) -> Told:
    request, parser = of_vllm(marked, body, reasons)
    text = str(marked.decode(tokens, skip_special_tokens=False))
    reasoning, content, calls = parser.parse(text, request, enable_auto_tools=True, model_output_token_ids=tokens)
    assert reasoning == ("let me see" if reasons else None)
    return content, [(one.name, json.loads(one.arguments)) for one in calls or ()]


def read_in_all_ways(marked: PreTrainedTokenizerFast, tokens: list[int], body: dict[str, Any] | None = None) -> Told:
    """Content and calls, which are the same in every way. Beside calls, vLLM leaves content out of a whole answer that is all spaces."""
    reasoned, asked = [*marked.encode(REASONING, add_special_tokens=False), *tokens], body or {}
    ways = [whole(marked, tokens, asked, False), whole(marked, reasoned, asked, True)]
    for most in (1, 3, 10, LONGEST):
        ways += [stream(marked, tokens, asked, False, most), stream(marked, reasoned, asked, True, most)]
    first, *others = [(content if not calls or (content or "").strip() else None, calls) for content, calls in ways]
    assert all(other == first for other in others), marked.decode(tokens)
    return first


def tool(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "look_up", "parameters": schema, "strict": True}}]


@pytest.mark.parametrize("member", SCHEMA["properties"])
def test_each_kind_of_argument_is_read_back_and_valid(member: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    schema = {**SCHEMA, "properties": {member: SCHEMA["properties"][member]}, "required": [member]}
    body = {"tools": tool(schema), "tool_choice": "required", "parallel_tool_calls": False}
    compiled = grammar(vocabulary, body)
    for seed in range(4):
        tokens = walk(compiled, vocabulary, seed, LIKELY, 0.4)
        _, [(_, arguments)] = read_in_all_ways(marked, tokens, body)
        assert Draft202012Validator(schema).is_valid(arguments), (marked.decode(tokens), arguments)


@pytest.mark.parametrize("body", [{}, {"tool_choice": "required"}, {"tool_choice": NAMED}, {"parallel_tool_calls": False}])
def test_calls_are_read_back(body: dict[str, Any], marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    compiled, counts, names = grammar(vocabulary, body), set(), set()
    for seed in range(40):
        content, calls = read_in_all_ways(marked, walk(compiled, vocabulary, seed, LIKELY, 0.4), body)
        for called, arguments in calls:
            Draft202012Validator(SCHEMAS[called]).validate(arguments)
        assert "tool_choice" not in body or not content
        counts.add(min(len(calls), 2))
        names |= {called for called, _ in calls}
    assert counts == (
        {0, 1, 2} if not body else {1, 2} if body == {"tool_choice": "required"} else {1} if "tool_choice" in body else {0, 1}
    )
    assert names == ({"add.v2"} if body.get("tool_choice") == NAMED else SCHEMAS.keys())


def test_an_answer_of_a_schema_or_calls_are_read_back(marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    body = {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": ANSWER}}}
    compiled, called = grammar(vocabulary, body), 0
    for seed in range(40):
        content, calls = read_in_all_ways(marked, walk(compiled, vocabulary, seed, LIKELY, 0.4))
        called += bool(calls)
        assert bool(content) != bool(calls)
        for name, arguments in calls:
            Draft202012Validator(SCHEMAS[name]).validate(arguments)
        if content:
            Draft202012Validator(ANSWER).validate(json.loads(content))
    assert 0 < called < 40


@pytest.mark.parametrize("text", [CALL, CALL.removeprefix(f"{OPEN}response{SEPARATOR}"), CALL.removesuffix(f"{CLOSE}message{SEPARATOR}")])
def test_a_call_may_stand_behind_text(text: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    tokens = marked.encode(text, add_special_tokens=False)
    assert accepts(grammar(vocabulary, {}), tokens)
    content, calls = whole(marked, tokens, {}, False)
    assert (content, calls) == stream(marked, tokens, {}, False, 1) == ("Let me <b>see</b>: \n", [("add.v2", {"a": 7})])


@pytest.mark.parametrize("text", ["", "Yes.", " a <|sep|> <| <|opened|> <", "<|open", "tools<|sep|>"])
def test_an_answer_may_be_text(text: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    frame = channel("response", "\0").split("\0")
    before, after = (marked.encode(part, add_special_tokens=False) for part in frame)
    tokens = [*before, *(vocabulary.byte_tokens[byte] for byte in text.encode()), *after]
    assert accepts(grammar(vocabulary, {}), tokens)
    assert read_in_all_ways(marked, tokens) == (text or None, [])


@pytest.mark.parametrize("text", [OPEN, f"a {CLOSE}response{SEPARATOR}", f"{OPEN}tools{SEPARATOR}"])
def test_no_text_spells_a_mark(text: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    spelled = [vocabulary.byte_tokens[byte] for byte in text.encode()]
    assert accepted_prefix(grammar(vocabulary, {}).matcher(None, 0), spelled) < len(spelled)
    tools = tool({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string"}}}})
    compiled = grammar(vocabulary, {"tools": tools, "tool_choice": "required"})
    for before in (argument("a", "string", "\0"), argument("b", "array", '["\0"]')):
        written = channel("response", "", channel("tools", call(before, "look_up"))).split("\0")
        ahead, behind = (marked.encode(part, add_special_tokens=False) for part in written)
        assert accepts(compiled, [*ahead, *vocabulary.encode("a <b>"), *behind])
        assert accepted_prefix(compiled.matcher(None, 0), [*ahead, *spelled, *behind]) < len(ahead) + len(spelled)


@pytest.mark.parametrize(
    "value", ["", "\0\x01\x1f", "é\U0001f600\u2028", "null", "5", ' "a" ', f"{SEPARATOR}<|{SEPARATOR}", "</b>\\u003c", "a" * 2000]
)
def test_strings_are_read_as_they_are_written(value: str, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    tools = tool({"type": "object", "properties": {"a": {"type": ["string", "null", "integer"]}}, "required": ["a"]})
    written = channel("response", "", channel("tools", call(argument("a", "string", "\0"), "look_up"))).split("\0")
    ahead, behind = (marked.encode(part, add_special_tokens=False) for part in written)
    tokens = [*ahead, *(vocabulary.byte_tokens[byte] for byte in value.encode()), *behind]
    body = {"tools": tools, "tool_choice": "required"}
    assert accepts(grammar(vocabulary, body), tokens)
    assert read_in_all_ways(marked, tokens, body) == (None, [("look_up", {"a": value})])


@pytest.mark.parametrize("bounds", [{}, {"minimum": 3}])
def test_integers_have_no_more_digits_than_python_reads(bounds: dict[str, Any], vocabulary: GrammarTokenizer) -> None:
    tools = tool({"type": "object", "properties": {"a": {"type": "integer", **bounds}}, "required": ["a"]})
    compiled = grammar(vocabulary, {"tools": tools, "tool_choice": "required"})
    matcher = compiled.matcher(None, 0)
    written = channel("response", "", channel("tools", call(argument("a", "number", "\0"), "look_up"))).partition("\0")[0]
    assert all(map(matcher.accept, ids(vocabulary, written)))
    assert accepted_prefix(matcher, vocabulary.encode("9" * 190)) == len(vocabulary.encode("9" * 190))
    assert accepted_prefix(matcher, vocabulary.encode("9" * 250)) < len(vocabulary.encode("9" * 250))


@pytest.mark.parametrize(
    ("kind", "text", "is_written"),
    [
        *(("number", text, True) for text in ("-0", "5.0", "1e-7", "0", "1.5E+10")),
        *(("number", text, False) for text in ("1e400", "-1e999", "NaN", "Infinity", "9" * 5000, "", "01")),
        *((kind, "5", False) for kind in ("null", "boolean", "array", "integer")),
        ("null", "null", True),
        ("boolean", "true", False),
    ],
)
def test_a_value_is_of_the_type_beside_it(
    kind: str, text: str, is_written: bool, marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer
) -> None:
    tools = tool({"type": "object", "properties": {"a": {"type": ["string", "null", "number"]}}, "required": ["a"]})
    body = {"tools": tools, "tool_choice": "required"}
    tokens = marked.encode(channel("response", "", channel("tools", call(argument("a", kind, text), "look_up"))), add_special_tokens=False)
    assert accepts(grammar(vocabulary, body), tokens) == is_written
    if is_written:
        assert read_in_all_ways(marked, tokens, body) == (None, [("look_up", {"a": json.loads(text)})])


def test_a_tool_that_is_not_strict_has_any_arguments(marked: PreTrainedTokenizerFast, vocabulary: GrammarTokenizer) -> None:
    tools = [*tool(SCHEMA), {"type": "function", "function": {"name": "add.v2", "parameters": OTHER}}]
    arguments = argument("other.b", "string", "any <b>text</b>") + argument("c", "object", '{"a": 1}')
    tokens = marked.encode(channel("response", "", channel("tools", call(arguments))), add_special_tokens=False)
    assert accepts(grammar(vocabulary, {"tools": tools}), tokens)
    assert read_in_all_ways(marked, tokens) == (None, [("add.v2", {"other.b": "any <b>text</b>", "c": {"a": 1}})])


def test_a_named_tool_is_refused_where_vllm_has_no_constraint(marked: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_ENFORCE_STRICT_TOOL_CALLING", "0")
    with pytest.raises(VLLMValidationError, match="Named tool choice"):
        of_vllm(marked, {"tool_choice": NAMED, "vllm_xargs": None}, False)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"minProperties": 1, "properties": {"a": {"type": "integer"}}}, "/minProperties"),
        ({"properties": {"a<b": {"type": "string"}}}, "/properties/a<b"),
        ({"properties": {"a": {"type": "number of"}}}, "/properties/a/type"),
        ({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "array", "uniqueItems": True}}}, "/$defs/A/uniqueItems"),
    ],
)
def test_what_is_not_enforced_is_refused_at_its_place(schema: dict[str, Any], place: str) -> None:
    requested = constraint({"tools": tool({"type": "object", **schema})})
    with pytest.raises(GrammarError) as caught:
        resolve(requested.spec, Limits(), "tokenizer")
    assert refusal(caught.value, requested).param == f"tools[0].function.parameters#{place}"


def test_a_model_without_these_marks_is_told_so(vocabulary: GrammarTokenizer) -> None:
    other = GrammarTokenizer.from_huggingface(marked_tokenizer(MARKS[:2], special=True))
    with pytest.raises(GrammarError, match="no special token"):
        grammar(other, {})
