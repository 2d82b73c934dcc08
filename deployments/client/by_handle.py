"""How the client's calls reach the service by Ray handle."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, cast

from ray import get_runtime_context
from ray.exceptions import RayActorError, RayTaskError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError, RequestCancelledError
from ray.serve.handle import DeploymentHandle, DeploymentResponse
from ray.util import get_node_ip_address

from deployments.answers.receiver import AnswerReceiver
from deployments.client.answer_thread import AnswerThread
from deployments.client.transport import parse_events
from deployments.errors import INGRESS_BUSY, AnswerLost, ApiError, unavailable

LOST = (AnswerLost, RayActorError, DeploymentUnavailableError, RequestCancelledError)
FAULTS = (RayTaskError, BackPressureError, *LOST)


class HandleTransport:
    """Calls go over gRPC, as those within the service do, and streams have the answers' own way: each piece would else be an object of
    Ray's core, or a message of its own (Ray Serve 2.60). It goes to other processes as its handle does."""

    def __init__(self, handle: DeploymentHandle[Any]) -> None:
        self._handle = handle.options(_by_reference=False, request_serialization="pickle")
        self._methods: dict[str, DeploymentHandle[Any]] = {}
        self._opening = Lock()
        self._thread: AnswerThread | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return HandleTransport, (self._handle,)

    def generate(self, endpoint: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._call("generate", endpoint, dict(body))

    async def generate_async(self, endpoint: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """As `generate`, for a caller that has an event loop."""
        with _as_api_errors():
            answer: dict[str, Any] = await self._method("generate").remote(endpoint, dict(body))
            return answer

    def stream(self, endpoint: str, body: Mapping[str, Any]) -> Generator[dict[str, Any]]:
        pieces = self._answers().pieces(partial(self._method("send_stream").remote, endpoint, dict(body)))
        try:
            with _as_api_errors():
                yield from parse_events(line for piece in pieces for line in piece.splitlines())
        finally:
            pieces.close()

    def register_grammar(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._call("register_grammar", dict(body))

    def list_grammars(self, after: str = "") -> dict[str, Any]:
        return self._call("grammars", after)

    def delete_grammar(self, name: str) -> dict[str, Any]:
        return self._call("delete_grammar", name)

    def _call(self, method: str, *arguments: Any) -> dict[str, Any]:
        response = cast(DeploymentResponse[Any], self._method(method).remote(*arguments))
        with _as_api_errors():
            answer: dict[str, Any] = response.result()
            return answer

    def _method(self, name: str) -> DeploymentHandle[Any]:
        if (method := self._methods.get(name)) is None:
            method = self._methods[name] = self._handle.options(method_name=name)
        return method

    def _answers(self) -> AnswerThread:
        with self._opening:
            if self._thread is None:
                self._thread = AnswerThread(AnswerReceiver(get_runtime_context().get_node_id(), get_node_ip_address()))
            return self._thread


@contextmanager
def _as_api_errors() -> Iterator[None]:
    """Raises what a caller is told of a fault in the block."""
    try:
        yield
    except FAULTS as error:
        raise api_error(error) from None


def api_error(error: Exception) -> Exception:
    """What a caller is told of one of `FAULTS`: what the ingress has raised, or why there is no answer."""
    if isinstance(error, BackPressureError):
        return unavailable("The service's ingresses are busy; try again in a moment.", INGRESS_BUSY)
    if not isinstance(error, RayTaskError) or isinstance(error.cause, LOST):
        return unavailable("The service's ingress ended, or cannot be reached; try again in a moment.", "ingress_lost", 5)
    return error.cause if isinstance(error.cause, ApiError) else error
