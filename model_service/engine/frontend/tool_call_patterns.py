"""Linear-time regexes for DeepSeek V3's tool calls (vLLM 0.32: `tool_parsers/deepseekv3_tool_parser.py`).

In vLLM's regexes, the type and the name of a call match any characters, including the markers around them. The search then tries each pair
of markers: an answer of 33,000 characters blocks the event loop for 3 s.
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
    """Make every new parser of this process use these regexes."""
    make = DeepSeekV3ToolParser.__init__

    @wraps(make)
    def make_with_ours(parser: DeepSeekV3ToolParser, *arguments: Any, **options: Any) -> None:
        make(parser, *arguments, **options)
        vars(parser).update(_PATTERNS)

    DeepSeekV3ToolParser.__init__ = make_with_ours
