"""Tool calls of Inkling in its own format (vLLM 0.32: `parser/inkling.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.constraints.tool_calls.call_format import PLAIN_NAME
from deployments.constraints.tool_calls.tag_formats import ANY_TOKENS, Format, either, json_arguments, sequence, text, token
from deployments.constraints.tool_calls.token_calls import TokenCalls
from grammar_service.schema.json_text import Json

_THOUGHT, _TEXT, _END_BLOCK = token("<|content_thinking|>"), token("<|content_text|>"), token("<|end_message|>")
_NEXT_BLOCK = sequence(_END_BLOCK, token("<|message_model|>"))
# The parser goes by the text, wherever it stands.
_TOKENS_OF_BLOCK = {**ANY_TOKENS, "excludes": ["<|content_", "<|message_m", "<|end_m"]}
_THOUGHTS: Format = {"type": "star", "content": sequence(_THOUGHT, _TOKENS_OF_BLOCK, _NEXT_BLOCK)}


class InklingFormat:
    """See `ToolFormat`. An answer of Inkling is blocks (`parser/inkling.py`), the first of which the prompt has begun: any number of
    thoughts, a text or none, and calls, each in a block of its own with the tool's name ahead of it. These grammars know of the thoughts,
    since calls may follow them without the text at which other constraints begin (`engine/frontend/reasoning.py`)."""

    text_marks: tuple[str, ...] = ("<|con", "<|mes", "<|end")

    def writes(self, name: str) -> bool:
        return PLAIN_NAME.fullmatch(name) is not None

    def calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return sequence(_THOUGHTS, _INKLING_CALLS.calls(tools, single))

    def text_with_calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        ahead: Format = {"type": "optional", "content": sequence(_TEXT, _TOKENS_OF_BLOCK, _NEXT_BLOCK)}
        alone = sequence(_TEXT, _TOKENS_OF_BLOCK, {"type": "optional", "content": _END_BLOCK})
        return sequence(_THOUGHTS, either(sequence(ahead, _INKLING_CALLS.calls(tools, single)), alone))

    def answer_or_calls(self, answer: Format, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        ended = sequence(_TEXT, answer, {"type": "optional", "content": _END_BLOCK})
        return sequence(_THOUGHTS, either(_INKLING_CALLS.calls(tools, single), ended))


def _inkling_call(name: str, schema: Json) -> Format:
    """Without the end of its block."""
    arguments = {**json_arguments(schema), "excludes": ["<|"]}
    head = sequence(text(name), token("<|content_invoke_tool_json|>"), text(f'{{"name":"{name}","args":'))
    return sequence(head, arguments, text("}"))


_INKLING_CALLS = TokenCalls(_inkling_call, separator=_NEXT_BLOCK, after=_END_BLOCK)
