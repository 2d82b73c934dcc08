"""The structural tags that are made of strict tools compile, and bind the arguments of every call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.constraints.tool_calls.tools import auto_tag, parse_tools
from grammar_service.backends import CompiledGrammar
from grammar_service.errors import UnsupportedGrammar
from grammar_service.limits import Limits
from grammar_service.resolve import resolve
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer

CITY = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}, "days": {"type": "integer"}}, "required": ["city"]}
ANSWER = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}


def tools(**schemas: Any) -> list[Any]:
    functions = [{"name": name, "parameters": schema, "strict": True} for name, schema in schemas.items()]
    return parse_tools({"tools": [{"type": "function", "function": function} for function in functions]})


def compiled(answer: Any = None, **schemas: Any) -> CompiledGrammar:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    return grammar_of(auto_tag(tools(**schemas), answer, "hermes").spec, tokenizer)


def call(name: str, arguments: Any) -> str:
    return f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {json.dumps(arguments)}}}\n</tool_call>'


def test_calls_in_free_text_have_valid_arguments() -> None:
    grammar = compiled(weather=CITY, stop={"type": "object", "properties": {}, "additionalProperties": False})
    assert accepts(grammar, "No call at all.")
    assert accepts(grammar, "I ask. " + call("weather", {"city": "Rome", "days": 2}) + "\n" + call("stop", {}))
    for arguments in ({}, {"city": 1}, {"city": "Rome", "hours": 2}, {"city": "A long name"}):
        assert not accepts(grammar, call("weather", arguments)), arguments
    assert not accepts(grammar, call("nothing", {}))
    assert not accepts(grammar, call("stop", {"city": "Rome"}))


def test_with_an_answer_schema_there_are_valid_calls_or_a_valid_answer() -> None:
    grammar = compiled(ANSWER, weather=CITY)
    assert accepts(grammar, '{"done": true}')
    assert accepts(grammar, call("weather", {"city": "Rome"}) + "\n" + call("weather", {"city": "Oslo"}))
    assert not accepts(grammar, "free text")
    assert not accepts(grammar, '{"done": 1}')
    assert not accepts(grammar, call("weather", {"city": 1}))
    assert not accepts(grammar, call("weather", {"city": "Rome"}) + '\n{"done": true}')


@pytest.mark.parametrize(
    ("answer", "pointer"),
    [(None, "/format/tags/1/content/json_schema"), (ANSWER, "/format/elements/0/tags/1/content/json_schema")],
)
def test_a_tool_that_cannot_be_enforced_is_refused_at_its_keyword(answer: Any, pointer: str) -> None:
    weak = {"type": "object", "properties": {"ids": {"type": "array", "uniqueItems": True}}}
    with pytest.raises(UnsupportedGrammar) as caught:
        resolve(auto_tag(tools(weather=CITY, pick=weak), answer, "hermes").spec, Limits(), "fingerprint")
    assert caught.value.pointer == pointer + "/properties/ids/uniqueItems"
