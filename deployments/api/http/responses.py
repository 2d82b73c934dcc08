"""Responses that were stored: read again, with the items that they answered, and deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from deployments.access.caller import Scope
from deployments.api.http.ingress import HttpIngress
from deployments.api.translation.exchange import Reserve
from deployments.api.translation.responses_api import ResponsesApi, StoredResponse
from deployments.errors import ApiError, bad_request

PAGE, MOST = 20, 100
"""Items that a list has where the request does not say, and at most."""

ReadResponse = Callable[[str, str, Reserve], Awaitable[StoredResponse | None]]
"""Reads a stored response, by its id and tenant."""


class StoredResponses:
    """Each tenant sees its own. The limits of keys do not count these requests: clients poll background responses, and a client whose
    concurrent requests are all in the background must be able to cancel one. Methods raise ApiError."""

    def __init__(self, http: HttpIngress, api: ResponsesApi) -> None:
        self._http = http
        self._api = api

    async def get(self, request: Request) -> Response:
        if request.query_params.get("stream") == "true":
            raise bad_request("A stored response is not streamed again.", "stream", "unsupported_parameter")
        return await self._answered(request, self._api.stored, lambda stored: stored.response)

    async def cancel(self, request: Request) -> Response:
        """Cancels a background response; one that has ended stays as it is."""
        return await self._answered(request, self._api.cancel, lambda stored: stored.response)

    async def delete(self, request: Request) -> Response:
        caller = self._http.authorize(request, Scope.GENERATE)
        name = request.path_params["id"]
        async with self._http.hold_place(caller):
            if not await self._api.delete(name, caller.name):
                raise _not_found()
        return JSONResponse({"id": name, "object": "response", "deleted": True})

    async def input_items(self, request: Request) -> Response:
        """A page of them, the last first, unless `order` is `asc`; `after` is the id of one."""

        def listed(stored: StoredResponse) -> dict[str, Any]:
            items = list(enumerate(stored.items))
            placed, more = _page(items if request.query_params.get("order") == "asc" else items[::-1], stored.response["id"], request)
            page = [{"type": "message", **item, "id": _id(item, stored.response["id"], index)} for index, item in placed]
            ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
            return {"object": "list", "data": page, "has_more": more, **ends}

        return await self._answered(request, self._api.stored, listed)

    async def _answered(self, request: Request, read: ReadResponse, told: Callable[[StoredResponse], Any]) -> Response:
        """The place and the memory are given back when the client has the answer."""
        caller = self._http.authorize(request, Scope.GENERATE)
        async with AsyncExitStack() as until_sent:
            await until_sent.enter_async_context(self._http.hold_place(caller))
            held = self._http.hold(caller.name)
            until_sent.callback(held.release)
            stored = await read(request.path_params["id"], caller.name, held.reserve_beside)
            if stored is None:
                raise _not_found()
            content = msgspec.json.encode(told(stored))
            return self._http.whole(content, HTTPStatus.OK, {}, until_sent.pop_all().aclose)
        raise AssertionError("no context here swallows an error")


def _id(item: Any, response_id: str, index: int) -> str:
    """Clients need not give one."""
    return item.get("id") or f"item_{response_id.removeprefix('resp_')}{index}"


def _page(items: list[tuple[int, Any]], response_id: str, request: Request) -> tuple[list[tuple[int, Any]], bool]:
    """Of the items and their numbers, and whether there are more."""
    limit = request.query_params.get("limit", str(PAGE))
    if not (limit.isascii() and limit.isdigit() and len(limit) < 4 and 1 <= int(limit) <= MOST):
        raise bad_request(f"'limit' must be a number from 1 to {MOST}.", "limit")
    after = request.query_params.get("after")
    begin = next((place for place, (index, item) in enumerate(items, 1) if _id(item, response_id, index) == after), 0) if after else 0
    return items[begin : begin + int(limit)], begin + int(limit) < len(items)


def _not_found() -> ApiError:
    return ApiError(HTTPStatus.NOT_FOUND, "There is no response of this id, or no longer.", code="response_not_found", param="response_id")
