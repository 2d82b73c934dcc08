"""The HTTP paths, and what answers at each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from http import HTTPStatus
from importlib.metadata import version

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from deployments.api.http.ingress import HttpIngress, error_response
from deployments.api.http.leaving import CLIENT_CLOSED_REQUEST, ClientLeft
from deployments.api.http.responses import StoredResponses
from deployments.api.translation.apis import Apis
from deployments.errors import ApiError
from grammar_service.warning import shortened

Answer = Callable[[Request], Awaitable[Response]]


def http_application(
    http: HttpIngress,
    responses: StoredResponses,
    apis: Apis,
    is_leaving: Callable[[], bool] = lambda: False,
    playground: Sequence[Route] = (),
) -> Starlette:
    """An application whose own errors are OpenAI's in form. `is_leaving`: whether no more clients shall be sent here. `playground`: the
    paths of its files."""

    async def alive(_: Request) -> Response:
        if is_leaving():
            return JSONResponse({"status": "leaving"}, HTTPStatus.SERVICE_UNAVAILABLE)
        return JSONResponse({"status": "ok"})

    async def able(request: Request) -> Response:
        return await (alive(request) if is_leaving() else http.ready(request))

    async def versions(request: Request) -> Response:
        http.authorize(request)
        return JSONResponse({"version": version("maskcast")})

    async def error(_: Request, raised: Exception) -> Response:
        assert isinstance(raised, ApiError)
        return await http.refused(raised)

    return Starlette(
        routes=[
            *(Route(path, partial(http.answer, api), methods=["POST"]) for path, api in apis.paths().items()),
            _resource("/v1/responses/{id}", GET=responses.get, DELETE=responses.delete),
            Route("/v1/responses/{id}/input_items", responses.input_items),
            Route("/v1/responses/{id}/cancel", responses.cancel, methods=["POST"]),
            Route("/v1/models", http.models),
            Route("/v1/models/{name:path}", http.model),
            _resource("/v1/grammars", GET=http.list_grammars, POST=http.register_grammar),
            Route("/v1/grammars/check", http.check_grammar, methods=["POST"]),
            _resource("/v1/grammars/{name}", GET=http.grammar, DELETE=http.delete_grammar),
            Route("/healthz", alive),
            Route("/health", able),  # as vLLM's server has it: whoever watched one asks there
            Route("/ping", able),  # as SageMaker asks vLLM's server
            Route("/version", versions),
            Route("/-/healthz", alive),  # KubeRay asks for it where Ray Serve's proxies would listen
            Route("/readyz", http.ready),
            Route("/v1/cluster", http.cluster),
            Route("/metrics", http.metrics),
            *playground,
        ],
        exception_handlers={ApiError: error, HTTPException: _unknown, ClientLeft: _left, ClientDisconnect: _left},
    )


def _resource(path: str, **answers: Answer) -> Route:
    """One route for all methods of a path, by their names: a 405 must tell each of them."""

    async def answer(request: Request) -> Response:
        return await answers["GET" if request.method == "HEAD" else request.method](request)

    return Route(path, answer, methods=[*answers])


async def _left(_: Request, __: Exception) -> Response:
    return Response(status_code=CLIENT_CLOSED_REQUEST)


async def _unknown(request: Request, error: Exception) -> Response:
    """No such path, or not with this method."""
    assert isinstance(error, HTTPException)
    message = f"There is no {request.method} {shortened(request.url.path)} here."
    if request.method == "POST":
        message += " This service generates text: POST /v1/chat/completions, /v1/completions, /v1/responses or /v1/messages."
    return error_response(ApiError(error.status_code, message, code="not_found"), error.headers)
