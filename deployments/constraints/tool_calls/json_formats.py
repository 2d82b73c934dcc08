"""Tool calls whose arguments are JSON, as the tool call parsers of vLLM (0.32) that bear these names read them back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from deployments.constraints.tool_calls.call_format import CallFormat


def _quoted(before: str, arguments: str) -> Callable[[str], str]:
    return lambda name: f'{before}{{"name": {json.dumps(name)}, "{arguments}": '


_HERMES = CallFormat(_quoted("<tool_call>\n", "arguments"), "}\n</tool_call>", trigger="<tool_call>", marks=("</tool_",))
_LONGCAT = CallFormat(
    _quoted("<longcat_tool_call>\n", "arguments"),
    "}\n</longcat_tool_call>",
    trigger="<longcat_tool_call>",
    marks=("</longc",),
)
_DOTS = CallFormat(
    _quoted("<dots_function_call>\n", "arguments"),
    "}\n</dots_function_call>",
    trigger="<dots_function_call>",
    marks=("</dots_",),
)
_DEEPSEEK_V31 = CallFormat(
    lambda name: f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    separator="",
    opening="<｜tool▁calls▁begin｜>",
    closing="<｜tool▁calls▁end｜>",
    excluded=("<｜tool▁call▁begin｜>",),
    marks=("<｜tool",),
    quotes_names=False,
)
_DEEPSEEK_V3 = replace(
    _DEEPSEEK_V31,
    begin=lambda name: f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n",
    end="\n```<｜tool▁call▁end｜>",
    separator="\n",
)
_KIMI_K2 = CallFormat(
    lambda name: f"<|tool_call_begin|>functions.{name}:",
    "<|tool_call_end|>",
    separator="",
    opening="<|tool_calls_section_begin|>",
    closing="<|tool_calls_section_end|>",
    numbered="<|tool_call_argument_begin|>",
    excluded=("<|tool_call_begin|>",),
    marks=("<|tool_",),
    quotes_names=False,
)
JSON_FORMATS: dict[str, CallFormat] = {
    "hermes": _HERMES,
    "qwen3_json": _HERMES,
    # Its parser takes what stands between the last two marks.
    "granite4": replace(_HERMES, marks=("<tool_", "</tool_")),
    "ernie45": _HERMES,
    "dots": _DOTS,
    "longcat": _LONGCAT,
    "deepseek_v3": _DEEPSEEK_V3,
    "deepseek_v31": _DEEPSEEK_V31,
    "kimi_k2": _KIMI_K2,
}
