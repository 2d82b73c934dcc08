"""A reasoning parser for vLLM (`reasoning_parser_plugin`), for a model that vLLM has none for: the embedded one.

That model was not taught to think. What it writes between the marks of a tool call comes closest to it, where a request asks for thoughts:
`"chat_template_kwargs": {"thinking": true}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser


@ReasoningParserManager.register_module("embedded")
class EmbeddedReasoningParser(BaseThinkingReasoningParser):  # type: ignore[misc]  # vLLM is untyped to others
    """One for each request. The engine core asks it where the grammar begins, the front end which text are the thoughts."""

    start_token = "<tool_call>"
    end_token = "</tool_call>"

    def __init__(self, tokenizer: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(tokenizer, *arguments, **options)
        self._thinks = bool((options.get("chat_template_kwargs") or {}).get("thinking"))

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        return not self._thinks or bool(super().is_reasoning_end(input_ids))

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        return not self._thinks or bool(super().is_reasoning_end_streaming(input_ids, delta_ids))

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        thoughts, answer = super().extract_reasoning(model_output, request) if self._thinks else (None, model_output)
        return thoughts, answer

    def extract_reasoning_streaming(self, previous_text: str, current_text: str, delta_text: str, *token_ids: Any) -> DeltaMessage | None:
        if not self._thinks:
            return DeltaMessage(content=delta_text)
        return super().extract_reasoning_streaming(previous_text, current_text, delta_text, *token_ids)
