"""A JSON answer beside tools has nothing that the model's parser would take for a call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.constraints.tool_calls.formats import TOOL_FORMATS
from deployments.constraints.tool_calls.tools import auto_tag, parse_tools
from grammar_service.backends import CompiledGrammar
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import grammar_of
from tests.tokenizers.tiny_tokenizer import STOP_ID, tiny_tokenizer

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": SCHEMA}}]
NOTE = {"type": "object", "properties": {"note": {"type": "string"}, "at": {"const": "<tool_call> [TOOL_CALLS]"}}, "required": ["note"]}
SPECIAL = (
    *("[TOOL_CALLS]", "[ARGS]", "<|tool_call>", "<tool_call|>", '<|"|>', "<|tool_call_start|>", "<|tool_call_end|>", "<|tool_call|>"),
    *("<|action_start|>", "<|plugin|>", "<|action_end|>", "<|tools_prefix|>", "<|tools_suffix|>", "<tool_calls>", "</tool_calls>"),
    *("<|function_call|>", "<|content_thinking|>", "<|content_text|>", "<|content_invoke_tool_json|>"),
    *("<|end_message|>", "<|message_model|>"),
)
BEGINNINGS = {"inkling": ("<|content_text|>",)}
"""Special tokens ahead of an answer."""


@pytest.fixture(scope="module")
def vocabulary() -> GrammarTokenizer:
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": list(SPECIAL)})
    tokenizer.add_tokens(["<arg_key>", "<arg_value>", "<tool_sep>", "<tool_call>"])
    return GrammarTokenizer.from_huggingface(tokenizer)


def answers(name: str, schema: Any, vocabulary: GrammarTokenizer) -> CompiledGrammar:
    return grammar_of(auto_tag(parse_tools({"tools": TOOLS}, name), schema, name).spec, vocabulary)


def accepts(grammar: CompiledGrammar, text: str, vocabulary: GrammarTokenizer, name: str) -> bool:
    ahead = [vocabulary.special_tokens[spelling] for spelling in BEGINNINGS.get(name, ())]
    tokens = [*ahead, *(vocabulary.byte_tokens[byte] for byte in text.encode())]
    return accepted_prefix(grammar.matcher(None, 0), [*tokens, STOP_ID]) == len(tokens) + 1


@pytest.mark.parametrize(
    "name", sorted(name for name, known in TOOL_FORMATS.items() if known.text_marks and not name.startswith(("hy_", "muse_")))
)
def test_a_mark_of_a_call_is_written_with_an_escape(name: str, vocabulary: GrammarTokenizer) -> None:
    grammar = answers(name, NOTE, vocabulary)
    assert accepts(grammar, json.dumps({"note": "plain <b> [x]"}), vocabulary, name)
    for mark in TOOL_FORMATS[name].text_marks:
        answer = json.dumps({"note": f"use {mark} here"}, ensure_ascii=False)
        assert not accepts(grammar, answer, vocabulary, name)
        assert accepts(grammar, answer.replace(mark[0], f"\\u{ord(mark[0]):04x}"), vocabulary, name)
