"""Tells in an OpenAI answer what its grammar has forced: in the usage figures, and, where asked for, by spans of its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from model_service.jump_forward.account import ForcedAccount

DATA = "data: "


class ForcedUsage:
    """For one answer, whole or streamed. Spans are `[start, end]` in characters of the text that the choice has generated. `more`: further
    figures, as they are when the usage is told; `of_choice`: by the name that it gets in a choice, a list of what is new of that choice."""

    def __init__(
        self,
        account: ForcedAccount,
        spans: bool,
        more: Callable[[], dict[str, Any]] = dict,
        of_choice: Mapping[str, Callable[[int], list[Any]]] = MappingProxyType({}),
    ) -> None:
        self._account = account
        self._spans = spans
        self._more = more
        self._of_choice = of_choice

    def whole(self, text: str) -> str:
        """A response object, as JSON."""
        body = msgspec.json.decode(text)
        self._add_usage(body)
        if self._spans:
            for choice in body["choices"]:
                self._cut(choice)
                choice["forced_spans"] = self._account.spans(choice["index"])
        for choice in body["choices"] if self._of_choice else ():
            choice.update({name: new(choice["index"]) for name, new in self._of_choice.items()})
        return _as_json(body)

    def event(self, text: str) -> str:
        """One server-sent event; most need no change."""
        if (not self._spans and not self._of_choice and '"usage"' not in text) or not text.startswith(f"{DATA}{{"):
            return text
        body = msgspec.json.decode(text.removeprefix(DATA))
        self._add_usage(body)
        for choice in body.get("choices", ()):
            if "role" not in choice.get("delta", ()):  # the event ahead of the text
                self._add_new(choice)
        return f"{DATA}{_as_json(body)}\n\n"

    def _add_new(self, choice: dict[str, Any]) -> None:
        found = {name: new(choice["index"]) for name, new in self._of_choice.items()}
        if self._spans:
            found["forced_spans"] = self._account.new_spans(choice["index"])
        choice.update({name: values for name, values in found.items() if values})

    def _cut(self, choice: dict[str, Any]) -> None:
        """A stop string that a sampled token ended may have begun in forced text."""
        if not isinstance(choice.get("stop_reason"), str):
            return
        text = choice["text"] if "text" in choice else choice["message"].get("content")
        if text is not None:
            self._account.cut(choice["index"], len(text))

    def _add_usage(self, body: dict[str, Any]) -> None:
        if usage := body.get("usage"):
            details = usage.get("completion_tokens_details") or {}
            usage["completion_tokens_details"] = {**details, "forced_tokens": self._account.tokens, **self._more()}


def _as_json(body: dict[str, Any]) -> str:
    # Log probabilities make answers of megabytes, for which the standard library takes seven times as long.
    return msgspec.json.encode(body).decode()
