"""The deployments' own errors, and what a client sees of any error.

MaskcastError (grammar_service.errors)
├── SettingsError      the operator's settings are wrong
├── StartError         the service cannot start on this machine as it is
├── StatusError        the service whose state was asked for does not tell it
├── SimulationFailed   (commands.simulation) there is nothing to play, or nothing to draw with
├── TuningFailed       (commands.lookahead.cases) the validation file is none, or the service does not answer it
├── BatchFailed        a file of requests, or of answers, cannot be read or written
├── ApiError           an answer that is an error, in OpenAI's form
├── OutputTruncated    (client) an answer ended before its grammar did
├── RewardHangs        a reward is computed for so long that its replica is to be replaced
├── AnswerLost         the connection that an answer comes by is lost
├── RoomFull           (api.bounds.room) too many wait already
├── Late               (telemetry.kept) what is read takes longer than anybody waits
├── ClientLeft         (api.http.leaving) nobody waits for the answer any more
└── _ReplicaLost       (api.gateway) a replica ended before the first byte: another one is asked
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from grammar_service.errors import CompileFailed, CompileTimeout, GrammarError, MaskcastError, PoolBusy, PoolUnavailable
from grammar_service.warning import shortened

INGRESS_BUSY = "ingress_busy"
"""Error code: the ingress has no room for the request; clients retry later."""


class SettingsError(MaskcastError):
    """The operator's settings are wrong; the message names the key or the file."""


class StartError(MaskcastError):
    """The service cannot start on this machine as it is; the message says what to do."""


class StatusError(MaskcastError):
    """The service whose state was asked for does not tell it."""


class BatchFailed(MaskcastError):
    """A file of requests, or of answers, cannot be read or written."""


class ApiError(MaskcastError):
    """An answer that is an error, in OpenAI's form.

    `param` names the request's field, with the JSON pointer of the fault behind a `#` where there is one.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        kind: str = "invalid_request_error",
        retry_after_s: int | None = None,
        more_headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.kind = kind
        self.retry_after_s = retry_after_s
        self.more_headers = dict(more_headers or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.status, self.message, self.code, self.param, self.kind, self.retry_after_s, self.more_headers)

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}

    def headers(self) -> dict[str, str]:
        return self.more_headers if self.retry_after_s is None else {**self.more_headers, "Retry-After": str(self.retry_after_s)}


class RewardHangs(MaskcastError):
    """A reward is computed for so long that its replica is to be replaced."""


class AnswerLost(MaskcastError):
    """The connection that an answer comes by is lost; the message says at which end."""


class OutputTruncated(MaskcastError):
    """An answer ended before its grammar did; a larger `max_tokens` may help."""


def _restore(
    status: int, message: str, code: str, param: str | None, kind: str, retry_after_s: int | None, more_headers: dict[str, str]
) -> ApiError:
    return ApiError(status, message, code=code, param=param, kind=kind, retry_after_s=retry_after_s, more_headers=more_headers)


def bad_request(message: str, param: str | None = None, code: str = "invalid_request") -> ApiError:
    return ApiError(HTTPStatus.BAD_REQUEST, message, code=code, param=param)


def over_limit(param: str, message: str) -> ApiError:
    """For what is too large or too long."""
    return bad_request(message, param, "over_limit")


def unavailable(message: str, code: str, retry_after_s: int = 1) -> ApiError:
    return ApiError(HTTPStatus.SERVICE_UNAVAILABLE, message, code=code, kind="service_unavailable_error", retry_after_s=retry_after_s)


ADVICE = {
    CompileTimeout.code: "Make the grammar smaller, or ask the operator for a longer compile deadline.",
    CompileFailed.code: "Make the grammar smaller.",
}


def refused(error: GrammarError, param: str) -> ApiError:
    """The 400 for a constraint that came in the field `param`."""
    advice, message = ADVICE.get(error.code), error.message.rstrip()
    message = f"{message.removesuffix('.')}. {advice}" if advice else message
    return bad_request(message, f"{param}#{shortened(error.pointer)}" if error.pointer is not None else param, error.code)


def translated(error: MaskcastError, param: str | None = None) -> ApiError:
    """What a client sees of an error of ours."""
    match error:
        case ApiError():
            return error
        case GrammarError():
            return refused(error, param or "structured_outputs")
        case PoolBusy():
            return unavailable("The grammar compilers are busy; try again in a moment.", "compile_pool_busy")
        case PoolUnavailable():
            return unavailable("The grammar compilers are not available; try again in a moment.", "compile_pool_unavailable", 5)
        case _:
            return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, str(error), code="internal_error", kind="server_error")
