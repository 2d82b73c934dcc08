"""DeepSeek V3's tool calls are found as vLLM finds them, in linear time."""

from __future__ import annotations

from typing import Any

import pytest

BEGIN, SEPARATOR, END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
CALL = f'{BEGIN}function{SEPARATOR}look\n```json\n{{"a": "<b>", "c": 1}}\n```{END}'
NAMES = ("tool_call_regex", "stream_tool_call_portion_regex", "stream_tool_call_name_regex")
ENOUGH_S = 20.0
"""Of linear time there are milliseconds, of vLLM's own hours."""


class Tokenizer:
    """Has the marks of calls in its vocabulary."""

    def get_vocab(self) -> dict[str, int]:
        return {mark: number for number, mark in enumerate(("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", BEGIN, END))}


@pytest.fixture(scope="module")
def patterns() -> tuple[dict[str, Any], dict[str, Any]]:
    """vLLM's own, and those in their place."""
    from vllm.tool_parsers.deepseekv3_tool_parser import DeepSeekV3ToolParser  # vLLM reads the environment when it is imported

    from model_service.engine.frontend.tool_call_patterns import replace_tool_call_patterns

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeepSeekV3ToolParser, "__init__", DeepSeekV3ToolParser.__init__)  # so that it is as before in the end
        theirs = of(DeepSeekV3ToolParser(Tokenizer()))
        replace_tool_call_patterns()
        return theirs, of(DeepSeekV3ToolParser(Tokenizer()))


def of(parser: Any) -> dict[str, Any]:
    return {name: getattr(parser, name) for name in NAMES}


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"Well. <｜tool▁calls▁begin｜>{CALL}\n{CALL}<｜tool▁calls▁end｜>",
        f"{BEGIN}function{SEPARATOR}look\nno JSON",
        f"{CALL}{BEGIN}function{SEPARATOR}",
        "no call",
    ],
)
def test_calls_are_found_as_vllm_finds_them(patterns: tuple[dict[str, Any], dict[str, Any]], text: str) -> None:
    theirs, ours = patterns
    assert ours["tool_call_regex"].findall(text) == theirs["tool_call_regex"].findall(text)
    for name in NAMES[1:]:
        streamed = text.rsplit(BEGIN, maxsplit=1)[-1]
        for end in range(len(streamed) + 1):
            assert groups(ours[name].match(streamed[:end])) == groups(theirs[name].match(streamed[:end]))


def groups(match: Any) -> Any:
    return match and match.groupdict()


@pytest.mark.parametrize("text", [f"{BEGIN}f{SEPARATOR}x", f"f{SEPARATOR}x", f"{BEGIN}f{SEPARATOR}x\n```json\n"])
def test_an_answer_of_nothing_but_marks_takes_linear_time(patterns: tuple[dict[str, Any], dict[str, Any]], text: str) -> None:
    for pattern in patterns[1].values():
        pattern.findall(text * 20_000, timeout=ENOUGH_S)
