"""Tool calls that are calls in Python, as `model_service/engine/frontend/constrained_calls.py` reads them for the tool call parsers of vLLM
(0.32) that bear these names."""

from __future__ import annotations

from deployments.constraints.tool_calls.call_format import CallFormat
from deployments.constraints.tool_calls.marked_formats import MarkedFormat
from deployments.constraints.tool_calls.tag_formats import mark, sequence, text, token


def _calls(separator: str = ", ", excluded: tuple[str, ...] = (), notation: str = "python") -> CallFormat:
    return CallFormat(lambda name: f"{name}(", ")", separator=separator, excluded=excluded, quotes_names=False, notation=notation)


_PYTHONIC = MarkedFormat(text("["), _calls(), text("]"), begins_with="[")
PYTHON_FORMATS: dict[str, MarkedFormat] = {
    "pythonic": _PYTHONIC,
    "llama4_pythonic": _PYTHONIC,
    "olmo3": MarkedFormat(
        mark("<function_calls>"),
        _calls("\n", ("<function_c",), "python_with_json_symbols"),
        mark("</function_calls>"),
    ),
    "lfm2": MarkedFormat(
        sequence(token("<|tool_call_start|>"), text("[")),
        _calls(excluded=("<|tool",)),
        sequence(text("]"), token("<|tool_call_end|>")),
    ),
}
