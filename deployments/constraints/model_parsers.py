"""What cannot be promised of a model, by vLLM's names of the parsers that read its answers (vLLM 0.32)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployments.constraints.tool_calls.formats import TOOL_FORMATS
from deployments.errors import bad_request

WITHOUT_JSON_CALLS = frozenset(
    "cohere_command3 cohere_command4 dots gemma4 glm45 glm47 hf hy_v4 inkling k2_horizon kimi_k3 ling3 minimax_m3 mistral muse_glimmer "
    "openai plamo3 poolside_v1".split()
)
"""Tool call parsers that take the JSON of a forced call, which is the same for all models, for the text of an answer."""
_K2_FORMAT, _K2_XML = "tool_call_format", "xml"
"""What the template of K2 Horizon is told, and vLLM's parser."""
WITHOUT_BUDGET = frozenset("deepseek_v3 granite hunyuan_a13b minimax_m2_append_think muse_glimmer openai_gptoss poolside_v1".split())
"""Reasoning parsers that vLLM has no budget for: it refuses a `thinking_token_budget`."""


def forces_json_calls(tool_parser: str | None) -> bool:
    """Whether calls are forced as JSON, and not in the model's own format. Raises ApiError (400): they cannot be forced at all."""
    if tool_parser not in WITHOUT_JSON_CALLS:
        return True
    if tool_parser not in TOOL_FORMATS:
        message = f"This model's tool call format ({tool_parser}) has no forced calls here. Use tool_choice 'auto'."
        raise bad_request(message, "tool_choice", "unsupported_parameter")
    return False


def refusals(tool_parser: str | None) -> list[str]:
    """What requests are refused because of the settings, a line each, for the operator to read at the start."""
    lines = list[str]()
    if tool_parser is not None and tool_parser not in TOOL_FORMATS:
        forced = ", and forced calls" if tool_parser in WITHOUT_JSON_CALLS else ""
        lines.append(f"model.tool_call_parser {tool_parser!r}: strict tools{forced} are a 400, since no grammar has these calls")
    return lines


def check_template(body: Mapping[str, Any], tool_parser: str | None) -> None:
    """Raises ApiError (400): the chat's template is asked for tool calls in another format than the one that is enforced."""
    arguments = body.get("chat_template_kwargs")
    asked = arguments.get(_K2_FORMAT, _K2_XML) if isinstance(arguments, dict) else _K2_XML
    if tool_parser == "k2_horizon" and asked != _K2_XML:
        field = f"chat_template_kwargs.{_K2_FORMAT}"
        message = f"'{field}' must be {_K2_XML!r} where tool calls are enforced."
        raise bad_request(message, field, "unsupported_parameter")
