"""Patterns for DeepSeek V3's tool calls that take linear time (vLLM 0.32: `tool_parsers/deepseekv3_tool_parser.py`).

In vLLM's own, the type of a call and its name may have any characters, also the marks around them. Each mark in an answer is then tried
with all that follow: 33,000 characters of them hold the event loop for 3 s.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import regex
from vllm.tool_parsers.deepseekv3_tool_parser import DeepSeekV3ToolParser

_TO_NAME = r"(?P<type>[^\n<]*)<｜tool▁sep｜>(?P<function_name>[^\n<]*)\n"
_TO_ARGUMENTS = rf"{_TO_NAME}```json\n"
_PATTERNS = {
    "tool_call_regex": regex.compile(rf"<｜tool▁call▁begin｜>{_TO_ARGUMENTS}(?P<function_arguments>.*)\n```<｜tool▁call▁end｜>"),
    "stream_tool_call_portion_regex": regex.compile(rf"{_TO_ARGUMENTS}(?P<function_arguments>.*[^\n`])"),
    "stream_tool_call_name_regex": regex.compile(_TO_NAME),
}


def replace_tool_call_patterns() -> None:
    """Each parser that is made in this process from now on has these in place of its own."""
    make = DeepSeekV3ToolParser.__init__

    @wraps(make)
    def make_with_ours(parser: DeepSeekV3ToolParser, *arguments: Any, **options: Any) -> None:
        make(parser, *arguments, **options)
        vars(parser).update(_PATTERNS)

    DeepSeekV3ToolParser.__init__ = make_with_ours
