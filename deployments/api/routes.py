"""The HTTP paths, and the class behind them that Ray Serve deploys."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from ray import serve

from deployments.api.deployment import IngressDeployment
from deployments.api.ingress import error_response
from deployments.errors import ApiError
from model_service.messages import Endpoint


def ingress_class(version: str) -> type[Any]:
    """A class for `serve.deployment`: the ingress with its HTTP paths (Ray Serve 2.60 binds the methods of one class)."""
    api = _api(version)

    @serve.ingress(api)
    class Ingress(IngressDeployment):
        @api.post("/v1/chat/completions")
        async def post_chat(self, request: Request) -> Response:
            return await self.http.answer(Endpoint.CHAT, request)

        @api.post("/v1/completions")
        async def post_completion(self, request: Request) -> Response:
            return await self.http.answer(Endpoint.COMPLETION, request)

        @api.get("/v1/models")
        async def get_models(self, request: Request) -> dict[str, Any]:
            return self.http.models(request)

        @api.get("/v1/models/{name:path}")
        async def get_model(self, name: str, request: Request) -> dict[str, Any]:
            return self.http.model(name, request)

        @api.post("/v1/grammars")
        async def post_grammar(self, request: Request) -> Response:
            return await self.http.register_grammar(request)

        @api.get("/v1/grammars")
        async def get_grammars(self, request: Request) -> dict[str, Any]:
            return await self.http.list_grammars(request)

        @api.get("/v1/grammars/{name}")
        async def get_grammar(self, name: str, request: Request) -> dict[str, Any]:
            return await self.http.grammar(name, request)

        @api.delete("/v1/grammars/{name}")
        async def remove_grammar(self, name: str, request: Request) -> dict[str, Any]:
            return await self.http.delete_grammar(name, request)

        @api.get("/healthz")
        async def get_liveness(self) -> Response:
            return JSONResponse({"status": "ok"})

        @api.get("/readyz")
        async def get_readiness(self) -> Response:
            return await self.http.ready()

        @api.get("/metrics")
        async def get_metrics(self) -> Response:
            return await self.http.metrics()

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
