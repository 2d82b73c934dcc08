"""One extraction through the HTTP endpoint, shown as it happens: what a new user sees first."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx
import jsonschema
from rich.console import Console

from deployments.errors import StartError


@dataclass(frozen=True)
class Extraction:
    """A text, and the kinds of JSON's values that are to be found in it, by name."""

    prompt: str
    kinds: Mapping[str, str]

    @property
    def schema(self) -> dict[str, Any]:
        properties = {name: {"type": kind} for name, kind in self.kinds.items()}
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


EXERCISE = Extraction(
    "Extract name, age, job, city as JSON.\n\nMeet Clara Novak. The person is 34 years old. Works as software developer. Lives in Lisbon.",
    {"name": "string", "age": "integer", "job": "string", "city": "string"},
)
"""Of the kind that the embedded model has learned."""
MESSAGE = Extraction(
    "Extract the customer's name, the city, the product and the quantity as JSON.\n\n"
    "Dear team, the garden chairs have arrived today, all four of them, and they look lovely on our balcony in Utrecht. "
    "Kind regards, Ingrid Solheim",
    {"name": "string", "city": "string", "product": "string", "quantity": "integer"},
)
MOST_TOKENS = 128
READY_TIMEOUT_S = 300.0
READY_POLL_S = 0.25
ANSWER_TIMEOUT_S = 120.0


class Sample:
    """Asks the service at `url` for `extraction`; `api_keys` are those that it accepts."""

    def __init__(self, url: str, model: str, api_keys: Sequence[str], console: Console, extraction: Extraction = MESSAGE) -> None:
        self._url = url
        self._model = model
        self._extraction = extraction
        self._headers = {"Authorization": f"Bearer {api_keys[0]}"} if api_keys else {}
        self._console = console

    def run(self) -> None:
        """Prints the request and the streamed answer. A model that cannot chat, or finds no end, is told and goes on serving.

        Raises:
            StartError: the service does not become ready or fails, or its answer does not follow the schema.
        """
        try:
            with self._client() as client:
                await_ready(client)
                self._print(f"{self._ask(client)}\n")
        except httpx.HTTPError as error:
            raise StartError(f"the sample request failed: {error!r}") from error

    def await_ready(self) -> None:
        """All that can be done where the service accepts keys that nobody here knows. Raises StartError."""
        with self._client() as client:
            await_ready(client)
        self._print("The keys are known by their digests only: no sample request is sent.\n")

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self._url, headers=self._headers, timeout=ANSWER_TIMEOUT_S, trust_env=False)

    def _ask(self, client: httpx.Client) -> str:
        """Returns what became of it."""
        body = sample_request(self._model, self._extraction)
        self._print(f"\nPOST {self._url}/v1/chat/completions\n{json.dumps(body, indent=2)}\n\nstreamed answer:\n")
        answer = Answer()
        with client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code == HTTPStatus.BAD_REQUEST:
                return f"refused: {_message(response.read())}"
            if response.status_code != HTTPStatus.OK:
                raise StartError(f"the sample request was answered with {response.status_code}: {response.read().decode()}")
            for piece in answer.pieces(response.iter_lines()):
                self._print(piece)
        self._print("\n\n")
        if answer.finish == "length":
            return f"The answer was cut at {MOST_TOKENS} tokens: the model has found no end."
        check_answer(answer.text, self._extraction.schema)
        return "The answer follows the schema."

    def _print(self, text: str) -> None:
        self._console.print(text, end="", markup=False, highlight=False, soft_wrap=True)


class Answer:
    """Of an OpenAI event stream of chat chunks: its text, and why it ended."""

    def __init__(self) -> None:
        self.text = ""
        self.finish = ""

    def pieces(self, lines: Iterator[str]) -> Iterator[str]:
        """The texts, as they come.

        Raises:
            StartError: the stream carries an error, or ends without its last event.
        """
        for line in lines:
            data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
            if data == "[DONE]":
                return
            if data:
                piece = self._piece(json.loads(data))
                self.text += piece
                yield piece
        raise StartError("the sample request's answer was cut off")

    def _piece(self, chunk: dict[str, Any]) -> str:
        if "error" in chunk:
            raise StartError(f"the sample request failed: {chunk['error'].get('message', chunk['error'])}")
        choices = chunk.get("choices", ())
        self.finish = next((choice["finish_reason"] for choice in choices if choice.get("finish_reason")), self.finish)
        return "".join(choice.get("delta", {}).get("content") or "" for choice in choices)


def sample_request(model: str, extraction: Extraction) -> dict[str, Any]:
    schema = {"name": "answer", "strict": True, "schema": extraction.schema}
    return {
        "model": model,
        "messages": [{"role": "user", "content": extraction.prompt}],
        "response_format": {"type": "json_schema", "json_schema": schema},
        "max_tokens": MOST_TOKENS,
        "temperature": 0,
        "stream": True,
    }


def check_answer(answer: str, schema: dict[str, Any]) -> None:
    """Raises StartError when the answer is not JSON that follows the schema."""
    try:
        jsonschema.validate(json.loads(answer), schema)
    except (json.JSONDecodeError, jsonschema.ValidationError) as error:
        raise StartError(f"the sample's answer does not follow its schema: {str(error).splitlines()[0]}") from error


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")


def await_ready(client: httpx.Client) -> None:
    """Raises StartError: the service is not ready in time."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    reason = ""
    while time.monotonic() < deadline:
        try:
            response = client.get("/readyz", timeout=5.0)
            if response.status_code == HTTPStatus.OK:
                return
            reason = response.text
        except httpx.TransportError as error:
            reason = repr(error)
        time.sleep(READY_POLL_S)
    raise StartError(f"the service was not ready after {READY_TIMEOUT_S:.0f} s: {reason}")
