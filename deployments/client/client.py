"""A typed client, over HTTP or over a Ray handle: the same calls, the same errors.

client = StructuredClient.over_http("http://127.0.0.1:8000")
client = StructuredClient.over_handle(serve.get_app_handle("maskcast"))
person = client.parse(Person, "Extract name, age as JSON.\\n\\nMeet Ada Young. Age: 36.")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import httpx
from pydantic import BaseModel
from ray.serve.handle import DeploymentHandle

from deployments.client.by_handle import HandleTransport
from deployments.client.transport import HttpTransport, Transport
from deployments.errors import ApiError, OutputTruncated

Prompt: TypeAlias = str | Sequence[Mapping[str, Any]]
Parsed = TypeVar("Parsed", bound=BaseModel)
CONSTRAINTS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag", "whitespace", "canonical", "grammar_id")


@dataclass(frozen=True)
class Generation:
    """One answer: its text, why it ended ("stop" or "length"), the token counts, and the whole response object."""

    text: str
    finish_reason: str
    usage: dict[str, Any]
    response: dict[str, Any]


class StructuredClient:
    """Blocking; for threads and Ray jobs. Keyword arguments that are no constraint are OpenAI request fields."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @classmethod
    def over_http(cls, url: str, api_key: str | None = None, timeout_s: float = 600) -> StructuredClient:
        """`url` is the server's root, without /v1."""
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        return cls(HttpTransport(httpx.Client(base_url=url, headers=headers, timeout=timeout_s)))

    @classmethod
    def over_handle(cls, handle: DeploymentHandle[Any]) -> StructuredClient:
        """`handle` is the application's, from `serve.get_app_handle("maskcast")`."""
        return cls(HandleTransport(handle))

    def generate(self, prompt: Prompt, **options: Any) -> Generation:
        """Answer a prompt or a list of chat messages, under `json=`, `regex=`, `choice=`, `grammar=`, … or the name of a
        registered grammar, `grammar_id=`, if given.

        Raises:
            ApiError: the request was refused or could not be answered.
        """
        response = self._transport.generate("chat", _body(prompt, options))
        choice = response["choices"][0]
        return Generation(choice["message"]["content"] or "", choice["finish_reason"], response["usage"], response)

    def register_grammar(self, name: str, *, replace: bool = False, **constraint: Any) -> dict[str, Any]:
        """Name a constraint (`json=`, `regex=`, …), so that it is compiled before it is used; its object, as HTTP answers it.

        Raises:
            ApiError: the constraint is at fault, or the name stands for another one and `replace` is not set.
        """
        return self._transport.register_grammar({"id": name, "structured_outputs": constraint, "replace": replace})

    def list_grammars(self) -> list[dict[str, Any]]:
        """The objects of all named grammars. Raises ApiError."""
        grammars: list[dict[str, Any]] = []
        page: dict[str, Any] = {"has_more": True, "last_id": ""}
        while page["has_more"]:
            page = self._transport.list_grammars(page["last_id"])
            grammars += page["data"]
        return grammars

    def delete_grammar(self, name: str) -> None:
        """Raises ApiError: there is no such grammar, or the server's settings name it."""
        self._transport.delete_grammar(name)

    def stream(self, prompt: Prompt, **options: Any) -> Iterator[str]:
        """The answer's text in pieces, as it is generated. Raises ApiError, also in the middle."""
        for event in self._transport.stream("chat", _body(prompt, options)):
            if "error" in event:
                raise _streamed_error(event["error"])
            for choice in event["choices"]:
                if text := choice["delta"].get("content"):
                    yield text

    def parse(self, model: type[Parsed], prompt: Prompt, **options: Any) -> Parsed:
        """The answer as an instance of `model`, whose JSON Schema is the constraint.

        Raises:
            ApiError: as `generate`.
            OutputTruncated: `max_tokens` or the context ended before the JSON did.
        """
        generation = self.generate(prompt, json=model.model_json_schema(), **options)
        if generation.finish_reason == "length":
            raise OutputTruncated(f"the answer was cut after {generation.usage['completion_tokens']} tokens: {generation.text!r}")
        return model.model_validate_json(generation.text)


def _body(prompt: Prompt, options: Mapping[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    constraint = {name: value for name, value in options.items() if name in CONSTRAINTS}
    rest = {name: value for name, value in options.items() if name not in CONSTRAINTS}
    return {"messages": messages, **rest, **({"structured_outputs": constraint} if constraint else {})}


def _streamed_error(error: Mapping[str, Any]) -> ApiError:
    return ApiError(500, str(error.get("message")), code=str(error.get("code")), kind=str(error.get("type")))
