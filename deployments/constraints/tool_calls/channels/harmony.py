"""Tool calls of gpt-oss in its own format, Harmony (vLLM 0.32: `parser/harmony.py`, which reads the marks by their ids).

Reasoning is any number of messages in the channel `analysis`, a call is a message in `commentary` to the function, and an answer is one in
`final`. Where text and a mark could both follow there would be nothing forced, so that a call has one form of several: the one of the
model's own documentation. Text ahead of calls is not allowed, since vLLM joins it to the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deployments.constraints.tool_calls.call_format import PLAIN_NAME
from deployments.constraints.tool_calls.tag_formats import ANY_TOKENS, Format, either, json_arguments, sequence, text, token
from grammar_service.backends.channels.harmony import NEXT_MESSAGE, REASONING, message
from grammar_service.schema.json_text import Json

REASONING_PARSER, TOOL_PARSER = "openai_gptoss", "openai"
"""vLLM's names of the parsers that read it."""
_NEXT: tuple[Any, ...] = NEXT_MESSAGE
_REASONING: Any = REASONING


class HarmonyFormat:
    """See `ToolFormat`. The parser goes by ids of tokens, which no text has."""

    text_marks: tuple[str, ...] = ()

    def writes(self, name: str) -> bool:
        return PLAIN_NAME.fullmatch(name) is not None

    def calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return sequence(_REASONING, _calls(tools, single))

    def text_with_calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return self.answer_or_calls(ANY_TOKENS, tools, single)

    def answer_or_calls(self, answer: Format, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        final: Any = message("final")
        return sequence(_REASONING, either(_calls(tools, single), sequence(final, answer)))


def _calls(tools: Sequence[tuple[str, Json]], single: bool) -> Format:
    call: Format = either(*(_call(name, schema) for name, schema in tools))
    return call if single else sequence(call, {"type": "star", "content": sequence(*_NEXT, call)})


def _call(name: str, schema: Json) -> Format:
    recipient = text(f"commentary to=functions.{name} ")
    header = token("<|channel|>"), recipient, token("<|constrain|>"), text("json"), token("<|message|>")
    return sequence(*header, json_arguments(schema))
