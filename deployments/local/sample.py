"""One extraction through the HTTP endpoint, shown as it happens: what a new user sees first."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

import httpx
import jsonschema
from rich.console import Console

from deployments.errors import StartError

DOCUMENT = "Meet Clara Novak. The person is 34 years old. Works as software developer. Lives in Lisbon."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "job": {"type": "string"}, "city": {"type": "string"}},
    "required": ["name", "age", "job", "city"],
    "additionalProperties": False,
}
READY_TIMEOUT_S = 300.0
READY_POLL_S = 0.25
ANSWER_TIMEOUT_S = 120.0


class Sample:
    """Asks the service at `url`; `api_keys` are those that it accepts."""

    def __init__(self, url: str, model: str, api_keys: Sequence[str], console: Console) -> None:
        self._url = url
        self._model = model
        self._headers = {"Authorization": f"Bearer {api_keys[0]}"} if api_keys else {}
        self._console = console

    def run(self) -> None:
        """Prints the request and the streamed answer.

        Raises:
            StartError: the service does not become ready, or its answer does not follow the schema.
        """
        try:
            with self._client() as client:
                _await_ready(client)
                answer = self._ask(client)
        except httpx.HTTPError as error:
            raise StartError(f"the sample request failed: {error!r}") from error
        check_answer(answer)
        self._print("The answer follows the schema.\n")

    def await_ready(self) -> None:
        """All that can be done where the service accepts keys that nobody here knows. Raises StartError."""
        with self._client() as client:
            _await_ready(client)
        self._print("The keys are known by their digests only: no sample request is sent.\n")

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self._url, headers=self._headers, timeout=ANSWER_TIMEOUT_S, trust_env=False)

    def _ask(self, client: httpx.Client) -> str:
        body = sample_request(self._model)
        self._print(f"\nPOST {self._url}/v1/chat/completions\n{json.dumps(body, indent=2)}\n\nstreamed answer:\n")
        answer = ""
        with client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code != HTTPStatus.OK:
                raise StartError(f"the sample request was answered with {response.status_code}: {response.read().decode()}")
            for piece in pieces(response.iter_lines()):
                answer += piece
                self._print(piece)
        self._print("\n\n")
        return answer

    def _print(self, text: str) -> None:
        self._console.print(text, end="", markup=False, highlight=False, soft_wrap=True)


def sample_request(model: str) -> dict[str, Any]:
    schema = {"name": "person", "strict": True, "schema": SCHEMA}
    return {
        "model": model,
        "messages": [{"role": "user", "content": f"Extract name, age, job, city as JSON.\n\n{DOCUMENT}"}],
        "response_format": {"type": "json_schema", "json_schema": schema},
        "max_tokens": 128,
        "temperature": 0,
        "stream": True,
    }


def pieces(lines: Iterator[str]) -> Iterator[str]:
    """The texts in an OpenAI event stream of chat chunks.

    Raises:
        StartError: the stream carries an error, or ends without its last event.
    """
    for line in lines:
        data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if data == "[DONE]":
            return
        if data:
            yield from _texts(json.loads(data))
    raise StartError("the sample request's answer was cut off")


def check_answer(answer: str) -> None:
    """Raises StartError when the answer is not JSON that follows the sample's schema."""
    try:
        jsonschema.validate(json.loads(answer), SCHEMA)
    except (json.JSONDecodeError, jsonschema.ValidationError) as error:
        raise StartError(f"the sample's answer does not follow its schema: {str(error).splitlines()[0]}") from error


def _texts(chunk: dict[str, Any]) -> Iterator[str]:
    if "error" in chunk:
        raise StartError(f"the sample request failed: {chunk['error'].get('message', chunk['error'])}")
    for choice in chunk.get("choices", ()):
        yield choice.get("delta", {}).get("content") or ""


def _await_ready(client: httpx.Client) -> None:
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
