"""Who may call."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256
from http import HTTPStatus

from deployments.errors import ApiError


class ApiKeys:
    """The accepted bearer tokens; none means that everybody may call."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = [key.encode() for key in keys]

    def check(self, authorization: str | None) -> str:
        """Who calls, as a name that does not give the key away; empty where everybody may. `authorization` is the header's value.

        Raises:
            ApiError: 401.
        """
        if not self._keys:
            return ""
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        # All keys are compared, in constant time, so that timing tells nothing about them.
        matches = [hmac.compare_digest(token.encode(), key) for key in self._keys]
        if scheme.lower() != "bearer" or not token or not any(matches):
            raise ApiError(
                HTTPStatus.UNAUTHORIZED,
                "Incorrect API key. Send it as 'Authorization: Bearer KEY'.",
                code="invalid_api_key",
                kind="authentication_error",
            )
        return sha256(token.encode()).hexdigest()[:16]
