"""Streams of required calls are told as vLLM tells them, without reading the answer again for each token."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager
from vllm.tool_parsers import _TOOL_PARSERS_TO_REGISTER, ToolParserManager

from deployments.constraints.model_parsers import WITHOUT_JSON_CALLS
from tests.tokenizers.tiny_tokenizer import marked_tokenizer

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\[]{}:, é\n', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='ab"', max_size=3), inner, max_size=3),
    max_leaves=6,
)
CALLS = st.lists(st.fixed_dictionaries({"name": st.text(alphabet='fg"\\', max_size=4), "parameters": VALUES}), max_size=4)
MARKS = (
    *("<tool_call>", "</tool_call>", "<longcat_tool_call>", "</longcat_tool_call>", "<|python_tag|>", "<think>", "</think>"),
    *("<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>", "<minimax:tool_call>", "</minimax:tool_call>", "｜DSML｜"),
    *("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"),
    *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    *("<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_call_argument_begin|>"),
    *("<|tool_call_start|>", "<|tool_call_end|>"),
    *("<|tool_call|>", "<tool_calls>", "</tool_calls>", "<tool_sep>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
)
TEXTS = st.builds(json.dumps, CALLS, indent=st.sampled_from([None, 1])) | st.builds(json.dumps, VALUES)


@pytest.fixture(scope="module")
def stock() -> Any:
    """vLLM's own function."""
    from vllm.tool_parsers.streaming import extract_required_tool_call_streaming  # vLLM reads the environment when it is imported

    return extract_required_tool_call_streaming


def extracting() -> Any:
    from model_service.engine.frontend.required_tool_calls import RequiredToolCallStream

    stream = RequiredToolCallStream()

    def extract(*, previous_text: str, current_text: str, **told: Any) -> Any:
        return stream.extract(current_text[len(previous_text) :], **told)

    return extract


def told(extract: Any, text: str, ends: list[int]) -> list[Any]:
    """Of each piece of the text, without ids, which are drawn."""
    found = []
    for begin, end in zip([0, *ends], ends, strict=False):
        delta, has_name = extract(previous_text=text[:begin], current_text=text[:end], tool_call_idx=0, tool_call_id_type="random")
        calls = [call.model_dump(exclude={"id"}) for call in delta.tool_calls] if delta is not None else None
        found.append((calls, has_name))
    return found


@given(text=TEXTS, data=st.data())
def test_they_are_told_as_by_vllm(stock: Any, text: str, data: st.DataObject) -> None:
    ends = sorted(data.draw(st.sets(st.integers(1, len(text)), min_size=1)) | {len(text)})
    assert told(extracting(), text, ends) == told(stock, text, ends)


@pytest.mark.parametrize("text", ["", "no array", '[{"name": "f", "parameters": {}}] and more [{"name": "g"', '{"name": {"name": 1}}'])
def test_so_is_what_is_none(stock: Any, text: str) -> None:
    ends = list(range(1, len(text) + 1))
    assert told(extracting(), text, ends) == told(stock, text, ends)


def test_what_was_read_is_not_read_again() -> None:
    from model_service.engine.frontend.required_tool_calls import ToolCallScan

    text = json.dumps([{"name": "f", "parameters": {"a": "x" * 50}}])
    whole = ToolCallScan().extended(text)
    other = "~" * len(text)  # nothing of it is looked at
    assert whole.extended(other).spans == whole.spans


FORCED = sorted(set(_TOOL_PARSERS_TO_REGISTER) - WITHOUT_JSON_CALLS)
SCHEMA = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}
CALLED = [("look_up", {"a": ["é{", '"]']}), ("f", {}), ("look_up", {"a": []})]


@pytest.fixture(scope="module")
def every_mark() -> PreTrainedTokenizerFast:
    """Parsers are made only where the tokenizer has their marks."""
    return marked_tokenizer(MARKS)


@pytest.mark.parametrize("name", FORCED)
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look_up"}}])
def test_each_parser_reads_forced_calls_whole_and_in_a_stream(
    name: str, choice: Any, every_mark: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.parser.abstract_parser import DelegatingParser

    from model_service.engine.frontend.required_tool_calls import replace_required_tool_call_streaming

    monkeypatch.setattr(DelegatingParser, "_extract_tool_calls_streaming", DelegatingParser._extract_tool_calls_streaming)
    replace_required_tool_call_streaming()
    # As where VLLM_ENFORCE_STRICT_TOOL_CALLING is 0, which the engine sets before it imports vLLM.
    monkeypatch.setattr(ToolParserManager.get_tool_parser(name), "supports_required_and_named", True)
    expected = CALLED if choice == "required" else CALLED[:1]
    text = json.dumps([{"name": called, "parameters": arguments} for called, arguments in expected])
    pieces = list(text if choice == "required" else json.dumps(expected[0][1]))
    assert read(name, pieces, choice, every_mark) == (expected, expected)


def read(name: str, pieces: list[str], choice: Any, tokenizer: PreTrainedTokenizerFast) -> tuple[list[Any], list[Any]]:
    """The calls of a text that comes in these pieces, whole and streamed."""
    tools = [{"type": "function", "function": {"name": called, "parameters": SCHEMA}} for called in ("look_up", "f")]
    body = {"model": "any", "messages": [{"role": "user", "content": "hello"}], "tools": tools, "tool_choice": choice}
    asked = ChatCompletionRequest.model_validate(body)
    whole, streaming = (ParserManager.get_parser(name, None, True)(tokenizer, asked.tools) for _ in range(2))
    _, _, calls = whole.parse("".join(pieces), asked, enable_auto_tools=True)
    found: dict[int, list[str]] = {}
    for index, piece in enumerate(pieces):
        ids = tokenizer.encode(piece, add_special_tokens=False)
        delta = streaming.parse_delta(piece, ids, asked, [], finished=index == len(pieces) - 1)
        for call in delta.tool_calls if delta else ():
            parts = found.setdefault(call.index, ["", ""])
            parts[0] += call.function.name or ""
            parts[1] += call.function.arguments or ""
    streamed = [(called, json.loads(arguments)) for _, (called, arguments) in sorted(found.items())]
    return [(call.name, json.loads(call.arguments)) for call in calls or ()], streamed
