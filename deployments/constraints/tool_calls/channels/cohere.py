"""Tool calls of Cohere's models in their own format (vLLM 0.32: `parser/cohere_command.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deployments.constraints.tool_calls.call_format import PLAIN_NAME
from deployments.constraints.tool_calls.tag_formats import ANY_TOKENS, Format, either, json_arguments, mark, sequence, text
from deployments.constraints.tool_calls.token_calls import TokenCalls
from grammar_service.schema.json_text import Json


@dataclass(frozen=True)
class CohereFormat:
    """See `ToolFormat`. Calls of Cohere's models (`parser/cohere_command.py`; `engine/frontend/cohere_calls.py` reads them) stand behind a
    text, which has marks with one of the names `blocks`, or none."""

    blocks: tuple[str, ...]

    # The parser takes out citations and marks, wherever they stand.
    text_marks: tuple[str, ...] = ("<|STA", "<|END", "<co", "</co")

    def writes(self, name: str) -> bool:
        return PLAIN_NAME.fullmatch(name) is not None

    def calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return _COHERE_CALLS.calls(tools, single)

    def text_with_calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        free_text = {**ANY_TOKENS, "excludes": ["<|START_", "<|END_"]}
        return sequence(self._in_blocks(free_text), {"type": "optional", "content": self.calls(tools, single)})

    def answer_or_calls(self, answer: Format, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return either(self.calls(tools, single), self._in_blocks(answer))

    def _in_blocks(self, content: Format) -> Format:
        ends = ((mark(f"<|START_{name}|>"), {"type": "optional", "content": mark(f"<|END_{name}|>")}) for name in self.blocks)
        return either(content, *(sequence(start, content, end) for start, end in ends))


def _cohere_call(name: str, schema: Json) -> Format:
    number: Format = {"type": "regex", "pattern": "[0-9]{1,3}"}
    head = sequence(text('{"tool_call_id": "'), number, text(f'", "tool_name": "{name}", "parameters": '))
    return sequence(head, json_arguments(schema), text("}"))


_COHERE_CALLS = TokenCalls(
    _cohere_call,
    before=sequence(mark("<|START_ACTION|>"), text("[\n    ")),
    separator=text(",\n    "),
    after=sequence(text("\n]"), mark("<|END_ACTION|>")),
)
