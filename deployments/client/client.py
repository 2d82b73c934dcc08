"""A typed client, over HTTP or over a Ray handle: the same calls, the same errors. It needs Ray only for handles.

client = StructuredClient.over_http("http://127.0.0.1:8000")
client = StructuredClient.over_handle(serve.get_app_handle("maskcast"))
person = client.parse(Person, "Extract name, age as JSON.\\n\\nMeet Ada Young. Age: 36.")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import httpx
from pydantic import BaseModel

from deployments.client.partial import GrowingAnswer, text_of, validated
from deployments.client.transport import MAX_RETRIES, HttpTransport, Transport, authorization

if TYPE_CHECKING:
    from ray.serve.handle import DeploymentHandle

Prompt: TypeAlias = str | Sequence[Mapping[str, Any]]
Parsed = TypeVar("Parsed", bound=BaseModel)
CONSTRAINTS = (
    "json",
    "json_object",
    "regex",
    "choice",
    "grammar",
    "structural_tag",
    "whitespace",
    "property_order",
    "canonical",
    "grammar_id",
)


@dataclass(frozen=True)
class Generation:
    """One answer: its text, why it ended ("stop" or "length"), the token counts, and the whole response object."""

    text: str
    finish_reason: str
    usage: dict[str, Any]
    response: dict[str, Any]

    @classmethod
    def of(cls, response: dict[str, Any]) -> Generation:
        """That of a chat completion."""
        choice = response["choices"][0]
        return cls(choice["message"]["content"] or "", choice["finish_reason"], response["usage"], response)


class StructuredClient:
    """Blocking; for threads and Ray jobs. Keyword arguments that are no constraint are OpenAI request fields."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @classmethod
    def over_http(cls, url: str, api_key: str | None = None, timeout_s: float = 600, max_retries: int = MAX_RETRIES) -> StructuredClient:
        """`url` is the server's root, without /v1. A request is sent again, up to `max_retries` times, where the service has not begun it
        and says when to come back."""
        return cls(HttpTransport(httpx.Client(base_url=url, headers=authorization(api_key), timeout=timeout_s), max_retries))

    @classmethod
    def over_handle(cls, handle: DeploymentHandle[Any]) -> StructuredClient:
        """`handle` is the application's, from `serve.get_app_handle("maskcast")`."""
        from deployments.client.by_handle import HandleTransport  # takes Ray

        return cls(HandleTransport(handle))

    def generate(self, prompt: Prompt, **options: Any) -> Generation:
        """Answer a prompt or a list of chat messages, under `json=`, `regex=`, `choice=`, `grammar=`, … or the name of a
        registered grammar, `grammar_id=`, if given.

        Raises:
            ApiError: the request was refused or could not be answered.
        """
        return Generation.of(self._transport.generate("chat", request_body(prompt, options)))

    def parse(self, model: type[Parsed], prompt: Prompt, **options: Any) -> Parsed:
        """The answer as an instance of `model`, whose JSON Schema is the constraint.

        Raises:
            ApiError: as `generate`.
            OutputTruncated: `max_tokens` or the context ended before the JSON did.
        """
        generation = self.generate(prompt, json=model.model_json_schema(), **options)
        return validated(model, generation.text, generation.finish_reason)

    def stream(self, prompt: Prompt, **options: Any) -> Iterator[str]:
        """The answer's text in pieces, as it is generated. Raises ApiError, also in the middle."""
        with closing(self._transport.stream("chat", request_body(prompt, options))) as events:
            yield from filter(None, map(text_of, events))

    def stream_partial(self, model: type[Parsed], prompt: Prompt, **options: Any) -> Iterator[Parsed]:
        """The instance that `parse` returns, as far as it has come, again and again; the last one is whole and valid. The others are not
        validated, and have None for what has no default and has not come. Raises as `parse`, also in the middle."""
        answer = GrowingAnswer(model)
        body = request_body(prompt, {**options, "json": model.model_json_schema()})
        with closing(self._transport.stream("chat", body)) as events:
            yield from filter(None, map(answer.add, events))
        yield answer.whole()

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


def request_body(prompt: Prompt, options: Mapping[str, Any]) -> dict[str, Any]:
    """Of a chat completion."""
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    constraint = {name: value for name, value in options.items() if name in CONSTRAINTS}
    rest = {name: value for name, value in options.items() if name not in CONSTRAINTS}
    return {"messages": messages, **rest, **({"structured_outputs": constraint} if constraint else {})}
