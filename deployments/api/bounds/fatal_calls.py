"""Calls that replicas have ended over: a client that asks again, as clients do, must not end them one after the other."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from http import HTTPStatus

from deployments.api.protocol import ParsedRequest
from deployments.errors import ApiError

MOST_REPLICAS = 2
"""May end over one call; what else they computed has lost its replica as well, and is innocent for all anybody knows."""
REST_S = 60.0
REMEMBERED = 10_000


class FatalCalls:
    """Counts by digest of what is asked, for a minute since the last time; `clock` in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ended: OrderedDict[bytes, tuple[int, float]] = OrderedDict()

    def check(self, request: ParsedRequest) -> None:
        """Raises ApiError for a request that replicas have ended over, all that may."""
        if not self._ended:
            return
        replicas, until = self._ended.get(_digest(request), (0, 0.0))
        if replicas >= MOST_REPLICAS and self._clock() < until:
            message = f"{replicas} model replicas ended while they computed this request; it is not computed again for a minute."
            raise ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, message, code="request_ends_replicas", kind="server_error")

    def ended(self, request: ParsedRequest) -> None:
        """A replica has, while it computed the request."""
        now, digest = self._clock(), _digest(request)
        while self._ended and (next(iter(self._ended.values()))[1] <= now or len(self._ended) >= REMEMBERED):
            self._ended.popitem(last=False)  # the oldest
        replicas, _ = self._ended.pop(digest, (0, 0.0))
        self._ended[digest] = (replicas + 1, now + REST_S)


def _digest(request: ParsedRequest) -> bytes:
    asked = json.dumps([request.endpoint, request.body, repr(request.requested)], default=repr)
    return blake2b(asked.encode(), digest_size=16).digest()
