"""Tool calls with a text for each argument, in XML, as the tool call parsers of vLLM (0.32) that bear these names read them back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deployments.constraints.tool_calls.call_format import CallFormat
from grammar_service.tags.arguments import Conversion

_THINKING = ("<think>", "</think>")
"""Marks of reasoning: with a reasoning parser, vLLM takes them out of arguments, or what follows them."""
_PARAMETER = ("</parameter", "</ parameter", "< /parameter", "<parameter", "< parameter", "</function>")
_NAMED_PARAMETER = ("</parameter", "</ parameter", "< /parameter", "<parameter", "< parameter", "</invoke>")
"""The parsers read marks with spaces in them as well."""
_ARGUMENT = ("</arg_value>", "</tool_call>")
_CALL, _CALL_IN_JSON = ("<tool_call", "</tool_call"), ("</", "<arg", "<too", "<thi")
"""Without their ends, since the model's own marks may have a suffix there."""
_CONTROLS = tuple(map(chr, [*range(9), 11, 12, *range(14, 32)]))
_IN_JSON = ("</", "< ", "<par", "<thi")
"""Short, since each of their characters costs compile time; in JSON, what stands there can be written with an escape."""


def _members(
    before_name: str, before_value: str, after_value: str, excludes: tuple[str, ...], in_json: tuple[str, ...] = _IN_JSON
) -> dict[str, Any]:
    return {
        "before_name": before_name,
        "before_string": before_value,
        "before_json": before_value,
        "after_value": after_value,
        "excludes": [*excludes, *_THINKING],
        "json_excludes": list(in_json),
    }


_QWEN = CallFormat(
    lambda name: f"<tool_call>\n<function={name}>\n",
    "</function>\n</tool_call>",
    trigger="<tool_call>",
    excluded=("<function=",),
    quotes_names=False,
    # The parser takes one line break from either end of a value.
    members=_members("<parameter=", ">\n", "\n</parameter>\n", _PARAMETER),
)
_MIMO = replace(
    _QWEN,
    begin=lambda name: f"<tool_call><function={name}>",
    end="</function></tool_call>",
    separator="",
    members=_members("<parameter=", ">", "</parameter>", _PARAMETER),
)
_SEED = replace(
    _QWEN,
    begin=lambda name: f"<seed:tool_call>\n<function={name}>\n",
    end="</function>\n</seed:tool_call>",
    trigger="<seed:tool_call>",
    members=_members("<parameter=", ">\n", "\n</parameter>\n", (*_PARAMETER, "<seed:think>", "</seed:think>")),
)
_GLM45 = CallFormat(
    lambda name: f"<tool_call>{name}\n",
    "</tool_call>",
    trigger="<tool_call>",
    excluded=("<think>", "</think>"),
    quotes_names=False,
    members=_members("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n", _ARGUMENT),
)
_GLM47 = replace(
    _GLM45,
    begin=lambda name: f"<tool_call>{name}",
    separator="",
    members=_members("<arg_key>", "</arg_key><arg_value>", "</arg_value>", _ARGUMENT),
)
_MINIMAX = CallFormat(
    lambda name: f'<invoke name="{name}">\n',
    "</invoke>\n",
    separator="",
    opening="<minimax:tool_call>\n",
    closing="</minimax:tool_call>",
    excluded=("<invoke name=", "</minimax:tool_call>"),
    quotes_names=False,
    members=_members('<parameter name="', '">', "</parameter>\n", _NAMED_PARAMETER),
)
_M3 = "]<]minimax[>["
# What ends a value has this in it, whatever is ahead; strings of JSON have it with an escape.
_M3_MARKS, _M3_MARKS_IN_JSON = ("<]minimax", "<mm:think>", "</mm:think>"), ("<]m", "<mm:", "</mm")
# Objects and arrays are JSON too: elements inside of one another could not be counted, or have one name twice.
_MINIMAX_M3 = CallFormat(
    lambda name: f'{_M3}<invoke name="{name}">',
    f"{_M3}</invoke>\n",
    separator="",
    opening=f"{_M3}<tool_call>\n",
    closing=f"{_M3}</tool_call>",
    excluded=("<mm:think>", "</mm:think>"),
    nothing_follows=True,
    quotes_names=False,
    members={
        **_members(f"{_M3}<", ">", f"{_M3}</", ()),
        "after_closing_name": ">",
        "excludes": [*_M3_MARKS],
        "json_excludes": [*_M3_MARKS_IN_JSON],
    },
)
# The model ends each call with a line break, the last one too: as a separator it would lead into another call.
_POOLSIDE = replace(_GLM45, end="</tool_call>\n", separator="", conversion=Conversion.STRING_OR_JSON)
_HUNYUAN3 = CallFormat(
    lambda name: f"\n<tool_call>{name}<tool_sep>\n",
    "</tool_call>",
    separator="",
    opening="<tool_calls>",
    closing="\n</tool_calls>",
    excluded=("<tool_call>", *_THINKING),
    nothing_follows=True,
    quotes_names=False,
    # In a stream, the parser escapes no control characters of strings but line breaks and tabs.
    members=_members("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n", ("</arg_value", *_CALL, *_CONTROLS), _CALL_IN_JSON),
    conversion=Conversion.DIRECT_TYPES,
    suffixed=("tool_calls", "tool_call", "tool_sep", "arg_key", "arg_value", "think"),
)
_HUNYUAN4 = replace(
    _HUNYUAN3,
    begin=lambda name: f"<tool_call>{name}",
    closing="</tool_calls>",
    excluded=("</tool_calls>", *_THINKING),
    # The parser counts the marks of a call, wherever they stand.
    members=_members("<arg_key>", "</arg_key><arg_value>", "</arg_value>", ("<arg_", "</arg_", *_CALL), _CALL_IN_JSON),
    suffixed=("tool_calls", "tool_call", "arg_key", "arg_value", "think"),
)
_K2_HORIZON = CallFormat(
    lambda name: f"\n<ifm|tool_call>{name}\n",
    "</ifm|tool_call>",
    separator="",
    opening="<ifm|tool_calls>",
    closing="\n</ifm|tool_calls>",
    excluded=("<ifm|think", "</ifm|think"),
    nothing_follows=True,
    quotes_names=False,
    members={
        **_members("<ifm|arg_key>", "</ifm|arg_key>\n<ifm|arg_value>", "</ifm|arg_value>\n", (), ("<ifm", "</ifm")),
        "excludes": ["<ifm|", "</ifm|"],
    },
)


def _deepseek(calls: str, invoke: str, parameter: str) -> CallFormat:
    """Of models whose marks have these names."""
    return CallFormat(
        lambda name: f'<｜DSML｜{invoke} name="{name}">\n',
        f"</｜DSML｜{invoke}>\n",
        separator="",
        opening=f"<｜DSML｜{calls}>\n",
        closing=f"</｜DSML｜{calls}>",
        excluded=(f"<｜DSML｜{invoke} name=",),
        quotes_names=False,
        members={
            "before_name": f'<｜DSML｜{parameter} name="',
            "before_string": '" string="true">',
            "before_json": '" string="false">',
            "after_value": f"</｜DSML｜{parameter}>\n",
            "excludes": ["｜DSML｜", *_THINKING],
            "json_excludes": ["｜D", "<thi", "</thi"],
        },
    )


XML_FORMATS: dict[str, CallFormat] = {
    "qwen3_coder": _QWEN,
    "qwen3_xml": _QWEN,
    "step3p5": replace(_QWEN, separator=""),
    "mimo": _MIMO,
    "seed_oss": _SEED,
    "glm45": _GLM45,
    "glm47": _GLM47,
    "ling3": _GLM47,
    "poolside_v1": _POOLSIDE,
    "hy_v3": _HUNYUAN3,
    "hy_v4": _HUNYUAN4,
    "k2_horizon": _K2_HORIZON,
    "minimax_m2": _MINIMAX,
    "minimax_m3": _MINIMAX_M3,
    "deepseek_v32": _deepseek("function_calls", "invoke", "parameter"),
    "deepseek_v4": _deepseek("tool_calls", "invoke", "parameter"),
    "deepseek_v41": _deepseek(" calls", " invoke", " parameter"),
}
