"""How families of models write tool calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from deployments.constraints.tool_calls.channels.cohere import CohereFormat
from deployments.constraints.tool_calls.channels.harmony import HarmonyFormat
from deployments.constraints.tool_calls.channels.inkling import InklingFormat
from deployments.constraints.tool_calls.channels.kimi import KimiChannels
from deployments.constraints.tool_calls.channels.muse_glimmer import PARSER as MUSE_GLIMMER
from deployments.constraints.tool_calls.channels.muse_glimmer import MuseGlimmerFormat
from deployments.constraints.tool_calls.json_formats import JSON_FORMATS
from deployments.constraints.tool_calls.marked_formats import MARKED_FORMATS
from deployments.constraints.tool_calls.python_formats import PYTHON_FORMATS
from deployments.constraints.tool_calls.token_calls import TOKEN_FORMATS
from deployments.constraints.tool_calls.xml_formats import XML_FORMATS
from grammar_service.schema.json_text import Json


class ToolFormat(Protocol):
    """Writes formats of structural tags. `tools` are names with the schemas of their arguments, None: any; `single`: one call at most."""

    @property
    def text_marks(self) -> tuple[str, ...]:
        """Beginnings of texts that the parser takes for calls wherever they stand, so that strings of a JSON answer must not have them."""

    def writes(self, name: str) -> bool:
        """Whether a tool of this name can be called."""

    def calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> dict[str, Any]:
        """One call or more and nothing else."""

    def text_with_calls(self, tools: Sequence[tuple[str, Json]], single: bool) -> dict[str, Any]:
        """Free text, with calls or without."""

    def answer_or_calls(self, answer: dict[str, Any], tools: Sequence[tuple[str, Json]], single: bool) -> dict[str, Any]:
        """Calls, or else an answer of this format."""


TOOL_FORMATS: Mapping[str, ToolFormat] = {
    **JSON_FORMATS,
    **XML_FORMATS,
    **MARKED_FORMATS,
    **PYTHON_FORMATS,
    **TOKEN_FORMATS,
    "cohere_command3": CohereFormat(("RESPONSE",)),
    "cohere_command4": CohereFormat(("RESPONSE", "TEXT")),
    "inkling": InklingFormat(),
    "openai": HarmonyFormat(),
    "kimi_k3": KimiChannels(),
    MUSE_GLIMMER: MuseGlimmerFormat(),
}
"""By vLLM's name of the parser (`model.tool_call_parser`)."""
