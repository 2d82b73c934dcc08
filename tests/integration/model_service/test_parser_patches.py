"""DeepSeek V3's tool calls are found as vLLM finds them, in linear time; Hunyuan 4's in a stream of pieces of any length."""

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

    from model_service.engine.frontend.parser_patches import replace_tool_call_patterns

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


HY4_MARKS = ("<tool_calls>", "</tool_calls>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
HY4 = ["Well. ", "<tool_calls>", "<tool_call>", "f", "</tool_call>", "<tool_call>", "g", "<arg_key>", "a", "</arg_key>", "<arg_value>"]
HY4 += ["1", "</arg_value>", "</tool_call>", "</tool_calls>"]


@pytest.mark.parametrize("length", [1, 2, 5, 9, len(HY4)])
def test_a_call_without_arguments_ends_where_it_ends_in_pieces_of_any_length(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.tool_parsers.hy_v4_tool_parser import HYV4ToolExtractor

    from model_service.engine.frontend.parser_patches import split_streams_at_calls

    monkeypatch.setattr(HYV4ToolExtractor, "extract_tool_calls_streaming", HYV4ToolExtractor.extract_tool_calls_streaming)
    split_streams_at_calls()
    vocabulary = {text: number for number, text in enumerate(dict.fromkeys([*HY4_MARKS, *HY4]))}
    extractor, content, calls = HYV4ToolExtractor(vocabulary, "", strict=True), "", dict[int, list[str]]()
    tools: Any = [{"name": "f", "parameters": None}, {"name": "g", "parameters": {"properties": {"a": {"type": "integer"}}}}]
    for begin in range(0, len(HY4), length):
        before, piece = HY4[:begin], HY4[begin : begin + length]
        tokens = [[vocabulary[text] for text in texts] for texts in (before, before + piece, piece)]
        found: Any = extractor.extract_tool_calls_streaming("".join(before), "".join(before + piece), "".join(piece), *tokens, tools)
        content += (found and found["content"]) or ""
        for call in found["tool_calls"] if found else ():
            calls.setdefault(call["index"], []).extend(filter(None, (call["name"], call["arguments"])))
    assert content == "Well. "
    assert [(name, "".join(arguments)) for name, *arguments in calls.values()] == [("f", "{}"), ("g", '{"a": 1}')]
