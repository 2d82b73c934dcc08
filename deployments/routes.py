"""The HTTP paths, and the class behind them that Ray Serve deploys."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from ray import serve

from deployments.errors import ApiError
from deployments.front import FrontDoor
from deployments.ingress import error_response
from model_service.messages import Endpoint


def ingress_class(version: str) -> type[Any]:
    """A class for `serve.deployment`: the front door with HTTP paths."""
    api = _api(version)

    @serve.ingress(api)
    class Ingress(FrontDoor):
        @api.post("/v1/chat/completions")
        async def chat_completions(self, request: Request) -> Response:
            return await self.serve_http(Endpoint.CHAT, request)

        @api.post("/v1/completions")
        async def completions(self, request: Request) -> Response:
            return await self.serve_http(Endpoint.COMPLETION, request)

        @api.get("/v1/models")
        async def list_models(self, request: Request) -> dict[str, Any]:
            self.authorize(request)
            return self.models()

        @api.get("/v1/models/{name:path}")
        async def get_model(self, name: str, request: Request) -> dict[str, Any]:
            self.authorize(request)
            return self.model(name)

        @api.post("/v1/grammars")
        async def post_grammar(self, request: Request) -> Response:
            return await self.register_http(request)

        @api.get("/v1/grammars")
        async def list_grammars(self, request: Request) -> dict[str, Any]:
            self.authorize(request)
            return await self.grammars()

        @api.get("/v1/grammars/{name}")
        async def get_grammar(self, name: str, request: Request) -> dict[str, Any]:
            self.authorize(request)
            return await self.grammar(name)

        @api.delete("/v1/grammars/{name}")
        async def remove_grammar(self, name: str, request: Request) -> dict[str, Any]:
            self.authorize(request)
            return await self.delete_grammar(name)

        @api.get("/healthz")
        async def healthz(self) -> Response:
            return JSONResponse({"status": "ok"})

        @api.get("/readyz")
        async def readyz(self) -> Response:
            return await self.ready()

        @api.get("/metrics")
        async def metrics_page(self) -> Response:
            return await self.metrics()

    return Ingress


def _api(version: str) -> FastAPI:
    """An application whose own errors are OpenAI's in form."""
    api = FastAPI(title="Maskcast", version=version, docs_url=None, redoc_url=None)

    @api.exception_handler(ApiError)
    async def answer_error(_: Request, error: ApiError) -> Response:
        return error_response(error)

    @api.exception_handler(404)
    async def answer_unknown_path(request: Request, _: Exception) -> Response:
        return error_response(ApiError(404, f"There is no {request.method} {request.url.path} here.", code="not_found"))

    return api
