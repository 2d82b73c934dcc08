"""Errors that vLLM's serving classes answer with, under this service's codes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from deployments.errors import ApiError

_CODES: dict[int, str] = {
    HTTPStatus.NOT_FOUND: "model_not_found",
    HTTPStatus.BAD_GATEWAY: "reward_failed",
    HTTPStatus.GATEWAY_TIMEOUT: "reward_timeout",
}
_DATA, _ERROR, _BETWEEN = "data: ", 'data: {"error"', "\n\n"


def engine_error(status: int, answer: Mapping[str, Any]) -> ApiError:
    """The error of a whole answer."""
    error = answer.get("error") or {}
    kind = "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
    code = _CODES.get(status) or ("invalid_request" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "internal_error")
    return ApiError(status, str(error.get("message", "")), code=code, param=error.get("param"), kind=kind)


def error_body(content: str) -> str:
    """Of a whole answer that is an error."""
    answer = json.loads(content)
    return json.dumps(engine_error(_status(answer), answer).body())


def with_codes(piece: str) -> str:
    """Some events of a stream, whole ones. In a text the mark of an error would have its quotes escaped."""
    if _ERROR not in piece:
        return piece
    return _BETWEEN.join(map(_event, piece.split(_BETWEEN)))


def _event(event: str) -> str:
    return f"{_DATA}{error_body(event.removeprefix(_DATA))}" if event.startswith(_ERROR) else event


def _status(answer: Mapping[str, Any]) -> int:
    """vLLM's code of an error is its status."""
    return int(answer["error"].get("code") or HTTPStatus.INTERNAL_SERVER_ERROR)
