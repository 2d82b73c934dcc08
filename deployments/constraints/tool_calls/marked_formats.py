"""Tool calls behind a mark, often a special token of the model, as the tool call parsers of vLLM (0.32) that bear these names read them
back, most of them with what is changed in them (`model_service/engine/frontend/constrained_calls.py`).

The parsers go by the text of an answer, so that free text must not spell what begins a call either.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from deployments.constraints.tool_calls.call_format import CallFormat
from deployments.constraints.tool_calls.tag_formats import ANY_TOKENS, Format, either, mark, sequence, text, token
from grammar_service.schema.json_text import Json


@dataclass(frozen=True)
class MarkedFormat:
    """See `ToolFormat`. Calls stand between `before` and `after`, and nothing follows; each is behind `mark`, if there is one.
    `is_single`: there is one call at most. `begins_with`: an answer begins with its calls, and these with this character, or has none."""

    before: Format
    call: CallFormat
    after: Format
    mark: Format | None = None
    is_single: bool = False
    begins_with: str = ""

    @property
    def text_marks(self) -> tuple[str, ...]:
        return self.call.text_marks

    def writes(self, name: str) -> bool:
        return self.call.writes(name)

    def calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return sequence(self.before, self._calls(tools, single or self.is_single), self.after)

    def text_with_calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        calls = self.calls(tools, single)
        if self.begins_with:
            text_alone = sequence({"type": "regex", "pattern": rf"[^\{self.begins_with}]"}, {"type": "any_text"})
            return {"type": "optional", "content": either(calls, text_alone)}
        free_text = {**ANY_TOKENS, "excludes": list(self.call.excluded)}
        return sequence(free_text, {"type": "optional", "content": calls})

    def answer_or_calls(self, answer: Format, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        return either(self.calls(tools, single), answer)

    def _calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> Format:
        if self.mark is None:
            return self.call.calls(tools, single)
        call = sequence(self.mark, self.call.calls(tools, True))
        return call if single else {"type": "plus", "content": call}


def _objects(separator: str, *excluded: str, arguments: str = "arguments") -> CallFormat:
    """Of a call's name and its arguments. `excluded`: short beginnings of marks, whose every character takes 40 ms to compile."""
    return CallFormat(
        lambda name: f'{{"name": {json.dumps(name)}, "{arguments}": ',
        "}",
        separator=separator,
        excluded=excluded,
        quotes_names=False,
    )


_NOTHING = text("")
_LLAMA = MarkedFormat(_NOTHING, _objects("; ", arguments="parameters"), _NOTHING, begins_with="{")
MARKED_FORMATS: dict[str, MarkedFormat] = {
    # Granite 3.1 writes the mark as text, the other ones as a token.
    "granite": MarkedFormat(
        sequence(either(token("<|tool_call|>"), text("<tool_call>")), text("[")),
        _objects(", ", "<|tool_c", "<tool_c"),
        text("]"),
    ),
    "granite-20b-fc": MarkedFormat(
        _NOTHING,
        _objects("", "<function_c"),
        _NOTHING,
        mark=sequence(mark("<function_call>"), text(" ")),
    ),
    "hunyuan_a13b": MarkedFormat(
        sequence(mark("<tool_calls>"), text("[")),
        # Answers that are not constrained stand in a mark of their own.
        _objects(", ", "<tool_c", "<ans", "</ans"),
        sequence(text("]"), mark("</tool_calls>")),
    ),
    "jamba": MarkedFormat(
        sequence(mark("<tool_calls>"), text("[\n    ")),
        _objects(",\n    ", "<tool_c"),
        sequence(text("\n]"), mark("</tool_calls>")),
    ),
    "phi4_mini_json": MarkedFormat(text("functools["), _objects(", ", "functools["), text("]")),
    "llama3_json": _LLAMA,
    "llama4_json": _LLAMA,
    "xlam": MarkedFormat(text("["), _objects(", "), text("]"), begins_with="["),
    "internlm": MarkedFormat(
        sequence(mark("<|action_start|>"), mark("<|plugin|>"), text("\n")),
        _objects("", "<|action_s"),
        mark("<|action_end|>"),
        is_single=True,
    ),
    "apertus": MarkedFormat(
        sequence(mark("<|tools_prefix|>"), text("[")),
        CallFormat(lambda name: f"{{{json.dumps(name)}: ", "}", separator=", ", excluded=("<|tools_p",), quotes_names=False),
        sequence(text("]"), mark("<|tools_suffix|>")),
    ),
    "gigachat3": MarkedFormat(
        token("<|function_call|>"),
        # What is kept out besides begins the calls of older models, or ends what the parser takes for the answer's text.
        _objects("", "<|function_c", "<|role_s", "<|message_s", "</s>"),
        _NOTHING,
        is_single=True,
    ),
}
