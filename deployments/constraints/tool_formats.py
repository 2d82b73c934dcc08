"""How families of models write tool calls, as the tool call parsers of vLLM (0.32) that bear these names read them back.

Known are the formats whose arguments are JSON. Where they are XML, strings stand unquoted, and what a schema says of them would not be
enforced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grammar_service.schema.json_text import Json

PLAIN_NAME = re.compile(r"[\w.\-]+", re.ASCII)


@dataclass(frozen=True)
class ToolFormat:
    """A call is what `begin` makes of the tool's name, the arguments, and `end`; `numbered` formats have the call's number between the
    beginning and this text. Calls are set apart by `separator`, and stand together between `opening` and `closing`. Free text must not
    have the texts `kept_out`, which the parser would take for a call or a part of one. `leads`: an answer begins with calls, or has none.
    """

    begin: Callable[[str], str]
    end: str
    separator: str = "\n"
    opening: str = ""
    closing: str = ""
    numbered: str = ""
    trigger: str = ""
    kept_out: tuple[str, ...] = ()
    leads: bool = False
    quotes_names: bool = True

    def writes(self, name: str) -> bool:
        """Whether a tool of this name can be called."""
        return self.quotes_names or PLAIN_NAME.fullmatch(name) is not None

    def calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> dict[str, Any]:
        """One call or more and nothing else, as a format of structural tags; `tools` are names with the schemas of their arguments."""
        tags = [self._call(name, schema) for name, schema in tools]
        calls = {"type": "tags_with_separator", "tags": tags, "separator": self.separator, "at_least_one": True, "stop_after_first": single}
        return {"type": "tag", "begin": self.opening, "content": calls, "end": self.closing} if self.opening else calls

    def text_with_calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> dict[str, Any]:
        """Free text, with calls or without."""
        if self.leads:
            return {"type": "or", "elements": [self.calls(tools, single), _text_without_braces_first(self.kept_out)]}
        tags = [self.calls(tools, single)] if self.opening else [self._call(name, schema) for name, schema in tools]
        excludes = {"excludes": list(self.kept_out)} if self.kept_out else {}
        trigger = self.opening or self.trigger
        return {"type": "triggered_tags", "triggers": [trigger], "tags": tags, "stop_after_first": single, **excludes}

    def _call(self, name: str, schema: Json) -> dict[str, Any]:
        content: dict[str, Any] = {"type": "json_schema", "json_schema": schema}
        if self.numbered:
            number = {"type": "regex", "pattern": "[0-9]{1,3}"}
            content = {"type": "sequence", "elements": [number, {"type": "const_string", "value": self.numbered}, content]}
        return {"type": "tag", "begin": self.begin(name), "content": content, "end": self.end}


def _text_without_braces_first(kept_out: Sequence[str]) -> dict[str, Any]:
    """A text that does not begin as a call does."""
    rest = {"type": "any_text", "excludes": list(kept_out)}
    return {"type": "optional", "content": {"type": "sequence", "elements": [{"type": "regex", "pattern": r"[^{]"}, rest]}}


def _quoted(before: str, arguments: str) -> Callable[[str], str]:
    return lambda name: f'{before}{{"name": {json.dumps(name)}, "{arguments}": '


_HERMES = ToolFormat(_quoted("<tool_call>\n", "arguments"), "}\n</tool_call>", trigger="<tool_call>")
_LONGCAT = ToolFormat(_quoted("<longcat_tool_call>\n", "arguments"), "}\n</longcat_tool_call>", trigger="<longcat_tool_call>")
_DOTS = ToolFormat(_quoted("<dots_function_call>\n", "arguments"), "}\n</dots_function_call>", trigger="<dots_function_call>")
# The parser takes any object with a "name" for a call, wherever it stands, however the name is escaped.
_LLAMA = ToolFormat(_quoted("", "parameters"), "}", separator="; ", kept_out=('"name"', r"\u006"), leads=True)
_DEEPSEEK_V31 = ToolFormat(
    lambda name: f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    separator="",
    opening="<｜tool▁calls▁begin｜>",
    closing="<｜tool▁calls▁end｜>",
    kept_out=("<｜tool▁call▁begin｜>",),
    quotes_names=False,
)
_DEEPSEEK_V3 = replace(
    _DEEPSEEK_V31,
    begin=lambda name: f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n",
    end="\n```<｜tool▁call▁end｜>",
    separator="\n",
)
_KIMI_K2 = ToolFormat(
    lambda name: f"<|tool_call_begin|>functions.{name}:",
    "<|tool_call_end|>",
    separator="",
    opening="<|tool_calls_section_begin|>",
    closing="<|tool_calls_section_end|>",
    numbered="<|tool_call_argument_begin|>",
    kept_out=("<|tool_call_begin|>",),
    quotes_names=False,
)
TOOL_FORMATS: dict[str, ToolFormat] = {
    "hermes": _HERMES,
    "qwen3_json": _HERMES,
    "granite4": _HERMES,
    "ernie45": _HERMES,
    "dots": _DOTS,
    "longcat": _LONGCAT,
    "llama3_json": _LLAMA,
    "llama4_json": _LLAMA,
    "deepseek_v3": _DEEPSEEK_V3,
    "deepseek_v31": _DEEPSEEK_V31,
    "kimi_k2": _KIMI_K2,
}
"""By vLLM's name of the parser (`model.tool_call_parser`)."""
