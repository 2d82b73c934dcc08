"""Calls that engines have ended over: a client that asks again, as clients do, must not end them one after the other."""

from __future__ import annotations

import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from http import HTTPStatus

from deployments.api.protocol import ParsedRequest
from deployments.errors import ApiError

MOST_ENGINES = 2
"""May end over one call; what else they computed has lost its engine as well, and is innocent for all anybody knows."""
SAME_S = 5.0
"""Calls alike that one replica loses within so long were lost with one engine: the next one takes longer to start."""
REST_S = 60.0
REMEMBERED = 10_000


@dataclass(slots=True)
class _Ended:
    """How many engines have, when each replica's last one did, and until when the call rests."""

    engines: int = 0
    at: dict[str, float] = field(default_factory=dict)
    until: float = 0.0


class FatalCalls:
    """Counts by digest of what is asked, for a minute since the last time; `clock` in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._calls: OrderedDict[bytes, _Ended] = OrderedDict()

    def check(self, request: ParsedRequest) -> None:
        """Raises ApiError for a request that as many engines have ended over as may."""
        self._expire(self._clock())
        if not self._calls:
            return
        ended = self._calls.get(_digest(request))
        if ended is not None and ended.engines >= MOST_ENGINES and self._clock() < ended.until:
            message = f"{ended.engines} engines ended while they computed this request; it is not computed again for a minute."
            raise ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, message, code="request_ends_engines", kind="server_error")

    def ended(self, request: ParsedRequest, replica: str) -> None:
        """An engine has, or all of this replica, while it computed the request."""
        now, digest = self._clock(), _digest(request)
        self._expire(now)
        if len(self._calls) >= REMEMBERED:
            self._calls.popitem(last=False)  # the oldest
        ended = self._calls.pop(digest, None) or _Ended()
        ended.engines += now - ended.at.get(replica, -math.inf) >= SAME_S
        ended.at[replica], ended.until = now, now + REST_S
        self._calls[digest] = ended

    def _expire(self, now: float) -> None:
        while self._calls and next(iter(self._calls.values())).until <= now:
            self._calls.popitem(last=False)


def _digest(request: ParsedRequest) -> bytes:
    asked = json.dumps([request.endpoint, request.body, repr(request.requested)], default=repr)
    return blake2b(asked.encode(), digest_size=16).digest()
